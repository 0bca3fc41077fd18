"""Synthetic rows of a release: all of them, or those under a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from .._random import even_points
from .._validation import BoolArray, CodeArray, FloatArray, IntArray, as_sample_size, check_choice
from ..domain import Domain, Identifier, Numeric
from ..domain.attributes import read
from ..domain.query import (
    Query,
    Region,
    Weights,
    both,
    parts_of,
    region_of_range,
    region_of_values,
    runs_of,
    weights_of,
)
from .marginals import WeightedRows, inverse, inverse_rows
from .model import Release, product_of_weights
from .prior import Roundest
from .rounding import round_line

# Smallest and largest number allowed, for each row.
Bounds = tuple[FloatArray, FloatArray]
# Draws so many rows under weights, as `Release.sample_codes`.
Draw = Callable[[int, np.random.Generator, Weights], CodeArray]

# Ways of drawing rows.
METHODS = ("rounded", "independent")
# How often rows are drawn again that break the structure, before a search takes their place.
_REDRAWS = 30
# How often rows are drawn again whose values cannot satisfy condition and structure at once.
_ROUNDS = 50


# --- draws from what is no list of records

# Records that stand for a release that can draw any number of them, and most of their codes.
_DRAWN, _MOST_NUMBERS = 1 << 17, 1 << 24


class DrawsRecords:
    """What a kind of release inherits that defines `from_uniform`: draws, also under conditions.

    Records under conditions, and rounded ones, are taken from records that are made once from
    points that lie evenly, so that equal questions have equal answers.
    """

    shape: tuple[int, ...]

    def from_uniform(self, u: FloatArray) -> tuple[CodeArray, list[IntArray]]:
        """Records, and of each the cells whose counts rounded records keep.

        From uniform numbers in [0, 1), (n_samples, n_attributes + 1).
        """
        raise NotImplementedError

    @cached_property
    def drawn(self) -> tuple[WeightedRows, list[IntArray]]:
        """Records that stand for the release, and their cells."""
        return self.even(max(min(_DRAWN, _MOST_NUMBERS // len(self.shape)), 2))

    def even(self, n_rows: int) -> tuple[WeightedRows, list[IntArray]]:
        """Records of points that lie evenly, a power of 2 of at most so many, and their cells."""
        codes, cells = self.from_uniform(even_points(n_rows, len(self.shape) + 1))
        return WeightedRows(codes, np.full(len(codes), 1.0 / len(codes)), self.shape), cells

    def sample_codes(
        self, number: int, generator: np.random.Generator, weights: Weights, rounded: bool = False
    ) -> CodeArray:
        """Draw records; see `Release`."""
        if not rounded and not weights:
            return self.from_uniform(generator.random((number, len(self.shape) + 1)))[0]
        rows, cells = self.drawn
        if rounded and number > len(rows.codes):
            return self.sample_codes(number, generator, weights)
        return rows.draw(number, generator, weights, pairs=cells if rounded else None)


# --- conditions on drawn rows: weights of codes, and the numbers that are allowed inside a bin


class Conjunction:
    """One of the disjoint conjunctions that a condition consists of.

    Parameters
    ----------
    regions : mapping of str to Region
    domain : Domain
    roundest : Roundest
        What lies at single numbers.

    Attributes
    ----------
    asked : dict of int to ndarray
        As from `parse`, with all or nothing of the bins of single numbers.
    weights : dict of int to ndarray
        The same without the codes that the rules of the domain leave no row for.
    possible : bool
        Whether any row satisfies it.
    """

    def __init__(self, regions: Mapping[str, Region], domain: Domain, roundest: Roundest) -> None:
        self.zeros = domain.structure.zeros
        within = _within_rules(regions, domain)
        self.asked, self.weights = (
            {axis: roundest.rounded(each, axis) for axis, each in weights_of(of, domain).items()}
            for of in (regions, within)
        )
        # Each code of a derived column stands for one value: codes satisfy conditions on it.
        self._numbers = {
            name: (domain.index(name), region)
            for name, region in within.items()
            if name in domain.names and isinstance(region.attribute, Numeric)
        }
        left = self.zeros.narrowed(self._codes)
        self.possible = left is not None
        for axis, codes in (left or {}).items():
            allowed = np.isin(np.arange(domain.shape[axis]), codes)
            if axis in self.weights or not allowed.all():
                self.weights[axis] = self.weights.get(axis, np.ones(len(allowed))) * allowed

    @property
    def _codes(self) -> dict[int, IntArray]:
        """Codes that weights leave of the attributes that they are about."""
        return {axis: np.flatnonzero(each) for axis, each in self.weights.items()}

    def bounds(self, codes: CodeArray, generator: np.random.Generator) -> dict[str, Bounds]:
        """As `Draws` finds them for one conjunction."""
        return {
            name: _bounds_of(region, codes[:, axis].astype(np.int64), generator)
            for name, (axis, region) in self._numbers.items()
        }

    def draw(self, draw: Draw, number: int, generator: np.random.Generator) -> CodeArray:
        """Rows that break no rule; ValueError if one is not found.

        A release that honours the structure gives other rows little or no probability. Few are
        drawn: where a condition has probability zero, or where rules hold in its weighted records
        only.
        """
        codes = draw(number, generator, self.weights)
        rows = np.flatnonzero(self.zeros.breaks(codes))
        for _ in range(_REDRAWS):
            if not len(rows):
                return codes
            codes[rows] = draw(len(rows), generator, self.weights)
            rows = rows[self.zeros.breaks(codes[rows])]
        for row in rows.tolist():
            found = self.zeros.nearest(dict(enumerate(codes[row].tolist())), self._codes)
            if found is None:
                raise ValueError("No row was found that satisfies the condition and the rules.")
            codes[row, [*found]] = [*found.values()]
        return codes


def _within_rules(regions: Mapping[str, Region], domain: Domain) -> dict[str, Region]:
    """A conjunction without numbers that rules of `at_most` leave no row for.

    Most draws of codes would be in vain, where a condition cuts the bins of both columns.
    """
    found = dict(regions)
    for column, bound in domain.structure.pairs:
        for name, other in ((column, bound), (bound, column)):
            if name in regions:
                low, high = regions[name].extent()
                ends = (low, None) if name == column else (None, high)
                within = region_of_range(other, domain[other], *ends)
                if domain[other].nullable:
                    within |= region_of_values(other, domain[other], [None])
                found = both(found, {other: within})
    return found


def _bounds_of(region: Region, codes: IntArray, generator: np.random.Generator) -> Bounds:
    """Bounds on the numbers of one column; NaN where a code is no bin.

    Where a condition covers several runs of numbers of a bin, each row has one of them, in
    proportion to what it covers of the bin.
    """
    attribute: Any = region.attribute
    held, (starts, stops, after) = attribute.contents, runs_of(region.cuts)
    ends = after.reshape(2, -1)
    low, high = np.full((2, len(codes)), np.nan)
    for code in np.unique(codes[codes < attribute.bins]).tolist():
        rows = np.flatnonzero(codes == code)
        left, right = held.ends[[code, code + 1]].tolist()
        last = np.inf if code == attribute.bins - 1 else right
        met = np.flatnonzero((starts <= last) & (stops >= left))
        if not len(met):
            continue
        runs = starts[met], stops[met], ends[:, met].ravel(), np.arange(len(met)), len(met)
        shares = held.between(*runs)[0][:, code]
        chosen = met[inverse(shares, generator.random(len(rows)))] if len(met) > 1 else met[0]
        low[rows], high[rows] = starts[chosen], stops[chosen]
    return held.numbers(low, high)


# --- draws


class Draws:
    """Synthetic rows of a release under a condition.

    Parameters
    ----------
    model : Release
    domain : Domain
    generator : numpy.random.Generator
    where : dict, str or None
        As in `parse`.
    method : {"rounded", "independent"}

    Raises
    ------
    ValueError
        As in `parse`, or if no row satisfies the condition.
    """

    def __init__(
        self, model: Release, domain: Domain, generator: Any, where: Any, method: str
    ) -> None:
        check_choice(method, "method", METHODS)
        self.model, self.domain, self.generator, self.where = model, domain, generator, where
        self.rounded = method == "rounded"
        # The disjoint conjunctions that make the condition; of those that rules leave a row for.
        roundest = Roundest(model, domain)
        every = [Conjunction(regions, domain, roundest) for regions in parts_of(where, domain)]
        self.parts = [part for part in every if part.possible]
        if not self.parts:
            raise ValueError(
                f"No row can satisfy where={where!r}. Its conditions contradict each other or a "
                "rule of the domain, or lie outside of the declared range."
            )

    def codes(self, n_samples: Any) -> CodeArray:
        """So many rows as codes; None: as many as the release estimates under the condition."""
        draw = partial(self.model.sample_codes, rounded=self.rounded)
        expected = self.model.answer([Query((part.asked,)) for part in self.parts])
        number = as_sample_size(n_samples, float(expected.sum()), len(self.domain))
        if len(self.parts) == 1:
            return self.parts[0].draw(draw, number, self.generator)
        shares = np.maximum(expected, 0.0)
        shares = shares if shares.any() else np.ones(len(self.parts))
        if self.rounded:
            numbers = round_line(shares, number, self.generator)
        else:
            numbers = self.generator.multinomial(number, shares / shares.sum())
        each = zip(self.parts, numbers.tolist(), strict=True)
        codes = np.concatenate([part.draw(draw, rows, self.generator) for part, rows in each])
        return codes[self.generator.permutation(number)]

    def frame(self, n_samples: Any) -> pd.DataFrame:
        """So many rows; see `Synopsis.sample`.

        Codes alone do not tell whether values can satisfy a rule of `at_most` and the condition at
        once: rows whose values cannot are drawn again.
        """
        drawn, fits = self._decoded(self.codes(n_samples))
        frame = drawn[fits]
        for _ in range(_ROUNDS):
            if len(frame) == len(drawn):
                break
            more, fits = self._decoded(self.codes(len(drawn) - len(frame)))
            frame = pd.concat([frame, more[fits]], ignore_index=True)
        else:
            raise ValueError(
                f"No row was found that satisfies where={self.where!r} and the rules of at_most: "
                "they seem to contradict each other."
            )
        for name in self.domain.columns:
            if isinstance(self.domain.declared(name), Identifier):
                frame[name] = drawn[name]  # those of more rows begin with 1 again
        return frame

    def _decoded(self, codes: CodeArray) -> tuple[pd.DataFrame, BoolArray]:
        """Rows of codes, and where no column that rules compare is beyond its bounds."""
        bounds = self._bounds(codes)
        frame = self.domain.decode(codes, self.generator, within=bounds)
        fits = np.ones(len(frame), dtype=bool)
        for name in bounds.keys() & {*chain(*self.domain.structure.pairs)}:
            attribute: Any = self.domain[name]
            numbers = read(frame[[name]]).column(name).numbers(attribute.coding().clock)
            low, high = bounds[name]
            fits &= ~((numbers < low) | (numbers > high))
        return frame, fits

    def _bounds(self, codes: CodeArray) -> dict[str, Bounds]:
        """Bounds on the numbers that may be drawn for rows of codes, by column.

        Where the numbers allowed in a bin are no range, one of them is drawn for each row: both
        ends are that number. NaN where a code is no bin. A row whose cell several conjunctions
        divide belongs to each in proportion to its share of the cell.
        """
        if len(self.parts) == 1:
            return self.parts[0].bounds(codes, self.generator)
        n, bounds = len(codes), dict[str, Bounds]()
        each = [product_of_weights(codes, np.ones(n), part.weights) for part in self.parts]
        chosen = inverse_rows(np.stack(each, axis=1), np.arange(n), self.generator.random(n))
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(chosen == number)
            for name, ends in part.bounds(codes[rows], self.generator).items():
                if name not in bounds:
                    bounds[name] = np.full(n, -np.inf), np.full(n, np.inf)
                bounds[name][0][rows], bounds[name][1][rows] = ends
        return bounds
