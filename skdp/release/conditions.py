"""What drawn rows must satisfy: conditions, and columns that a user gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._validation import BoolArray, CodeArray, FloatArray, IntArray, places_by_group
from ..domain import Domain, Numeric
from ..domain.attributes import read
from ..domain.bins import Points
from ..domain.query import Weights, both, parts_of, weights_of
from ..domain.regions import POINT, Region, region_of_range, region_of_values
from ..domain.values import some
from .density import inverse, inverse_rows
from .model import product_of_weights

# ------------------------------------------------------------------------------------------------
# Conditions on drawn rows: weights of codes, and the numbers that are allowed inside a bin.


# Smallest and largest number allowed, for each row.
Bounds = tuple[FloatArray, FloatArray]


class Conjunction:
    """One of the disjoint conjunctions that a condition consists of.

    Parameters
    ----------
    regions : mapping of str to Region
    domain : Domain

    Attributes
    ----------
    asked : dict of int to ndarray
        As from `parse`.
    weights : dict of int to ndarray
        The same without what rules of `at_most` leave no row for.
    empty : str or None
        A column none of whose values satisfies it.
    """

    def __init__(self, regions: Mapping[str, Region], domain: Domain) -> None:
        self.asked: Weights = weights_of(regions, domain)
        regions = _within_rules(regions, domain)
        self.weights: Weights = weights_of(regions, domain)
        empty = [domain.names[axis] for axis, each in self.weights.items() if not each.any()]
        self.empty = empty[0] if empty else None
        # Each code of a derived column stands for one value: codes satisfy conditions on it.
        self.numbers = {
            name: (domain.index(name), region)
            for name, region in regions.items()
            if name in domain.names and isinstance(region.attribute, Numeric)
        }

    def share(self, codes: CodeArray) -> FloatArray:
        """Share of the cell of each row that satisfies it."""
        return product_of_weights(codes, np.ones(len(codes)), self.weights)

    def bounds(self, codes: CodeArray, generator: np.random.Generator) -> dict[str, Bounds]:
        """As `Condition.bounds`."""
        return {
            name: _bounds_of(region, codes[:, axis].astype(np.int64), generator)
            for name, (axis, region) in self.numbers.items()
        }


def _within_rules(regions: Mapping[str, Region], domain: Domain) -> dict[str, Region]:
    """A conjunction without numbers that rules of `at_most` leave no row for.

    Most draws of codes would be in vain, where a condition cuts the bins of both columns.
    """
    found = dict(regions)
    for column, above in domain.structure.bounds.items():
        for bound in above:
            for name, other in ((column, bound), (bound, column)):
                if name in regions:
                    low, high = regions[name].extent()
                    ends = (low, None) if name == column else (None, high)
                    within = region_of_range(other, domain[other], *ends)
                    if domain[other].nullable:
                        within |= region_of_values(other, domain[other], [None])
                    found = both(found, {other: within})
    return found


class Condition:
    """What drawn rows must satisfy: a query that covers something.

    Parameters
    ----------
    query : dict, str or None
        As in `parse`.
    domain : Domain

    Attributes
    ----------
    parts : list of Conjunction
        Disjoint; the condition is their union.
    columns : tuple of str
        Columns that the query names.

    Raises
    ------
    ValueError
        As in `parse`, or if no value of some column satisfies it.
    """

    def __init__(self, query: Any, domain: Domain) -> None:
        found = parts_of(query, domain)
        self.query = query
        self.columns = tuple(dict.fromkeys(name for regions in found for name in regions))
        parts = [Conjunction(regions, domain) for regions in found]
        self.parts = [part for part in parts if part.empty is None]
        if not self.parts:
            raise ValueError(
                f"No row can satisfy where={query!r}: it leaves no value of column "
                f"{parts[0].empty!r}. Its conditions contradict each other or a rule, or lie "
                "outside of the declared range."
            )

    @property
    def nothing(self) -> bool:
        """Whether every row satisfies it."""
        return len(self.parts) == 1 and not self.parts[0].weights

    def bounds(self, codes: CodeArray, generator: np.random.Generator) -> dict[str, Bounds]:
        """Bounds on the numbers that may be drawn for rows of codes, by column.

        Where the numbers allowed in a bin are no range, one of them is drawn for each row: both
        ends are that number. NaN where a code is no bin. A row whose cell several conjunctions
        divide belongs to each in proportion to its share of the cell.
        """
        if len(self.parts) == 1:
            return self.parts[0].bounds(codes, generator)
        shares = np.stack([part.share(codes) for part in self.parts], axis=1)
        chosen = inverse_rows(shares, np.arange(len(codes)), generator.random(len(codes)))
        bounds: dict[str, Bounds] = {}
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(chosen == number)
            for name, (low, high) in part.bounds(codes[rows], generator).items():
                if name not in bounds:
                    bounds[name] = (np.full(len(codes), -np.inf), np.full(len(codes), np.inf))
                bounds[name][0][rows], bounds[name][1][rows] = low, high
        return bounds


def _bounds_of(region: Region, codes: IntArray, generator: np.random.Generator) -> Bounds:
    """Bounds on the numbers of one column; NaN where a code is no bin.

    Where a condition covers several runs of numbers of a bin, each row has one of them, in
    proportion to what it covers of the bin.
    """
    attribute: Any = region.attribute
    held, (starts, stops) = attribute.contents, region.ends
    low, high = np.full((2, len(codes)), np.nan)
    for code in np.unique(codes[codes < attribute.bins]).tolist():
        rows = np.flatnonzero(codes == code)
        left, right = held.ends[[code, code + 1]].tolist()
        last = np.inf if code == attribute.bins - 1 else right
        met = np.flatnonzero((starts <= last) & (stops >= left))
        if not len(met):
            continue
        size = held.between(starts[met], stops[met], np.arange(len(met)), len(met))[0][:, code]
        shares = np.maximum(size, POINT * (starts[met] == stops[met]))
        chosen = met[inverse(shares, generator.random(len(rows)))] if len(met) > 1 else met[0]
        low[rows], high[rows] = starts[chosen], stops[chosen]
    if isinstance(held, Points):
        return held.grid.value(low), held.grid.value(high - 1)
    # Floats strictly between the ends satisfy ``<`` and ``<=`` alike.
    inner = np.nextafter(low, np.inf), np.nextafter(high, -np.inf)
    wide = inner[0] <= inner[1]
    return np.where(wide, inner[0], low), np.where(wide, inner[1], high)


# --- known: columns that a user gives, their codes, and what they say about measured columns


@dataclass
class Known:
    """Columns that are given, and their codes.

    Attributes
    ----------
    frame : Rows
        The columns given, with the names of the domain.
    domain : Domain
    names : list of str
        The columns given, in their order.
    codes : ndarray of int32, shape (n_rows, n_attributes)
        Of measured columns. -1 where a value is unknown: in columns that are not given, for values
        without a code, and for values that break a rule together.
    derived : dict of str to ndarray
        Codes of the derived columns that are given; they count where the column that they follow
        from is unknown.
    native : DataFrame or None
        What the user gave, if that is a frame of pandas.
    """

    frame: Any
    domain: Domain
    names: list[str]
    codes: CodeArray
    derived: dict[str, IntArray]
    native: pd.DataFrame | None

    @classmethod
    def read(cls, data: Any, domain: Domain, what: str) -> Known:
        """Columns of any container.

        Raises
        ------
        DomainError, TypeError, ValueError
            If the container cannot be read, a column is not declared or cannot be conditioned on,
            or its type cannot hold the declared values.
        """
        frame = read(data)
        if frame.n_unnamed:
            names = domain.names_for(frame.n_unnamed, frame.named)
            if names is None:
                raise ValueError(
                    f"{what} has {frame.n_unnamed} columns without names, which are taken by "
                    f"position and so must be all {len(domain)} columns of the domain. Give a "
                    "frame whose columns are named."
                )
            frame = frame.with_names(names)
        names = list(frame.names)
        extra = [name for name in names if name not in domain.columns]
        if extra:
            raise ValueError(
                f"{what} has columns that the domain does not declare: {some(extra)}. Select the "
                "declared columns first."
            )
        told = [name for name in names if domain.find(name) is not None]
        # Without the structure, derived columns have codes too, and rows that break it.
        found = np.zeros((frame.n_rows, 0), dtype=np.int32)
        if told:
            plain = domain.plain(told)
            found = plain.encode_columns(plain.check_schema(frame.select(told)))
        codes = np.full((frame.n_rows, len(domain)), -1, dtype=np.int32, order="F")
        derived = {}
        for column, name in enumerate(told):
            if name in domain.names:
                codes[:, domain.index(name)] = found[:, column]
            else:
                derived[name] = found[:, column].astype(np.int64)
        native = data if isinstance(data, pd.DataFrame) else None
        return cls(frame, domain, names, codes, derived, native)

    @property
    def n_rows(self) -> int:
        """Number of rows given."""
        return len(self.codes)

    @property
    def index(self) -> pd.Index:
        """Row labels of a frame of pandas, else positions."""
        return pd.RangeIndex(self.n_rows) if self.native is None else self.native.index

    def at(self, rows: IntArray) -> Known:
        """What is known of some rows, for draws of their codes."""
        derived = {name: codes[rows] for name, codes in self.derived.items()}
        return replace(self, codes=self.codes[rows], derived=derived, native=None)

    def forget_contradictions(self) -> None:
        """Count values that break a rule together as unknown, in the columns of the rule."""
        told = self.codes.copy()
        for zeros in self.domain.structure.zeros:
            rows = np.flatnonzero(zeros.broken_by(told))
            self.codes[rows[:, None], list(zeros.axes)] = -1

    def values(self, name: str) -> pd.Series:
        """A column as it was given."""
        if self.native is not None and name in self.native.columns:
            return self.native[name]
        return pd.Series(self.frame.column(name).objects(), index=self.index)

    def missing(self, name: str) -> BoolArray:
        """Where a column has no value; an undeclared category is a value."""
        column, attribute = self.frame.column(name), self.domain.find(name)
        absent: BoolArray = column.factorize()[0] < 0
        if isinstance(attribute, Numeric):
            # A value that is no number is missing.
            codes = column.codes(attribute.coding())
            absent = (codes < 0) | (codes == attribute.n_values)
        return absent

    def numbers(self, name: str) -> FloatArray:
        """A column on the number line; nan where it has no value. Out of range is the nearest."""
        attribute, column = self.domain[name], self.frame.column(name)
        assert isinstance(attribute, Numeric)
        coding = attribute.coding()
        codes = column.codes(coding)
        low, high = attribute.span(np.maximum(codes, 0))
        own = np.clip(attribute.nearest(column.numbers(coding.clock)), low, high)
        return np.where(codes >= 0, own, np.nan)

    def bounds(self) -> dict[str, Bounds]:
        """The numbers given, so that those drawn beside them agree with them."""
        found: dict[str, Bounds] = {}
        for name in self.names:
            if name in self.domain.names and isinstance(self.domain[name], Numeric):
                numbers = self.numbers(name)
                found[name] = numbers, numbers
        return found

    def groups(self) -> list[tuple[IntArray, dict[int, FloatArray]]]:
        """Rows with equal derived values, and the weights that these give to measured columns."""
        rows = np.arange(self.n_rows)
        if not self.derived:
            return [(rows, {})]
        table = np.stack(list(self.derived.values()), axis=1)
        base = [self.domain.index(self.domain.structure.base_of(name)) for name in self.derived]
        table = np.where(self.codes[:, base] >= 0, -1, table)
        distinct, at = np.unique(table, axis=0, return_inverse=True)
        parts = places_by_group(at.reshape(-1), len(distinct))
        return [(part, self._weights(codes)) for codes, part in zip(distinct, parts, strict=True)]

    def _weights(self, codes: IntArray) -> dict[int, FloatArray]:
        """Weights of the codes of measured columns from which these derived codes follow."""
        structure = self.domain.structure
        weights: dict[int, FloatArray] = {}
        for name, code in zip(self.derived, codes.tolist(), strict=True):
            axis = self.domain.index(structure.base_of(name))
            own = (structure.codes_of(name) == code).astype(np.float64)
            both = own * weights.get(axis, 1.0)
            # A value that is unknown or contradicts another says nothing.
            if both.any():
                weights[axis] = both
        return weights
