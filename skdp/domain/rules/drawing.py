"""Rows for codes: values are drawn within the cells so that rules hold for the values too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..._types import FloatArray, IntArray
from ..categorical import Categorical
from ..identifiers import Identifier
from .declared import TotalOf
from .numberline import spans
from .structure import Structure

__all__ = ["draw_columns"]

Bounds = Mapping[str, tuple[Any, Any]]


def draw_columns(
    declared: Mapping[str, Any],
    structure: Structure,
    codes: Mapping[str, IntArray],
    n_rows: int,
    rng: np.random.Generator,
    bounds: Bounds,
) -> dict[str, pd.Series]:
    """All columns of rows with these codes, in declared order.

    Parameters
    ----------
    declared : mapping of str to attribute
        All columns in order.
    structure : Structure
    codes : mapping of str to ndarray of int
        Of the measured columns. They do not break the structure.
    n_rows : int
    rng : numpy.random.Generator
    bounds : mapping of str to (lower, upper)
        Closed ranges on the number line, for all rows or for each.
    """
    drawn: dict[str, pd.Series] = {}
    linked = structure.compared
    for name, attribute in declared.items():
        if name not in codes or name in linked:
            continue
        if name in bounds:
            lower, upper = bounds[name]
            drawn[name] = attribute.decode(codes[name], rng, lower=lower, upper=upper)
        else:
            drawn[name] = attribute.decode(codes[name], rng)
    drawn |= _draw_linked(declared, structure, codes, rng, bounds)
    for name, attribute in declared.items():
        rule = structure.derived.get(name)
        if isinstance(attribute, Identifier):
            drawn[name] = attribute.fresh(n_rows)
        elif rule is not None and not isinstance(rule, TotalOf):
            own = structure.codes_of(name)[codes[structure.base_of(name)]]
            # Each of its codes stands for one value: nothing is drawn.
            drawn[name] = attribute.decode(own, rng)
    for name, rule in structure.derived.items():
        if isinstance(rule, TotalOf):
            drawn[name] = _total(declared[name], [drawn[part] for part in rule.parts])
    return {name: drawn[name] for name in declared}


def _draw_linked(
    declared: Mapping[str, Any],
    structure: Structure,
    codes: Mapping[str, IntArray],
    rng: np.random.Generator,
    bounds: Bounds,
) -> dict[str, pd.Series]:
    """Columns that rules of `at_most` compare, the larger ones first.

    A column is drawn from what its cell allows, but not below the least value of any column that
    it bounds, and not above the values drawn for its own bounds. There always is such a value,
    because chains are compared as a whole: no allowed row has a column whose least value exceeds
    the greatest value of one of its bounds.
    """
    above, names = structure.bounds_of(), structure.compared
    if not names:
        return {}
    below = {name: [other for other in above if name in above[other]] for name in names}
    of_cell = {name: _cells(declared, structure, codes, name, bounds) for name in names}
    plain = {name: _cells(declared, structure, codes, name, {}) for name in names}
    # Where bounds from outside contradict a rule, the rule holds and the bounds do not.
    astray = np.zeros(len(next(iter(codes.values()))), dtype=bool)
    for name in names:
        for bound in above.get(name, ()):
            astray |= of_cell[name][0] > of_cell[bound][1]
    for name in names:
        for end in (0, 1):
            of_cell[name][end][astray] = plain[name][end][astray]
    numbers: dict[str, FloatArray] = {}
    drawn: dict[str, pd.Series] = {}
    # A bound has fewer columns above it than what it bounds.
    for name in sorted(names, key=lambda each: len(above.get(each, ()))):
        attribute = declared[name]
        if name in structure.derived or isinstance(attribute, Categorical):
            # Each code stands for one value.
            numbers[name] = of_cell[name][0]
            if name in codes:
                drawn[name] = attribute.decode(codes[name], rng)
            continue
        low, high = of_cell[name]
        for other in below[name]:
            low = np.where(np.isnan(low), low, np.fmax(low, of_cell[other][0]))
        for bound in above.get(name, ()):
            high = np.where(np.isnan(high), high, np.fmin(high, numbers[bound]))
        numbers[name] = attribute.draw(codes[name], rng, low, high)
        drawn[name] = attribute._finish(numbers[name])
    return drawn


def _cells(
    declared: Mapping[str, Any],
    structure: Structure,
    codes: Mapping[str, IntArray],
    name: str,
    bounds: Bounds,
) -> tuple[FloatArray, FloatArray]:
    """Least and greatest value that each row can have, within bounds that reach into its cell."""
    own = codes[structure.base_of(name)]
    if name in structure.derived:
        own = structure.codes_of(name)[own]
    low, high = (end[own] for end in spans(declared[name]))
    if name in bounds and name not in structure.derived:
        least = -np.inf if bounds[name][0] is None else bounds[name][0]
        most = np.inf if bounds[name][1] is None else bounds[name][1]
        reach = np.fmax(low, least) <= np.fmin(high, most)
        low = np.where(reach, np.fmax(low, least), low)
        high = np.where(reach, np.fmin(high, most), high)
    return low, high


def _total(attribute: Any, parts: list[pd.Series]) -> pd.Series:
    """The sum of the parts, missing where one of them is."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    if attribute.integer:
        return total.astype("Int64" if attribute.nullable else "int64")
    return total.astype("float64")
