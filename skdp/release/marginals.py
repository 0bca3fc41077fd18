"""ViewsModel: linear answers from coefficients and a prior, and rows that agree with them.

An answer is what the weighted rows say, corrected by what is believed of every measured
coefficient. Its error is that of everything the question holds: the noise of the total and the
columns, what measured sets leave open, and what sets that were not measured may hold
(`docs/theory/marginals`). Covariances of many answers at once are inner products of features.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial, reduce
from itertools import chain, combinations, pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .._random import caller_level
from .._validation import BoolArray, CodeArray, FloatArray, IntArray
from ..domain.query import Query, Weights, at_points
from .basis import Coefficients, ColumnEstimate, Ladder, Look, along
from .files import Arrays, Facts, as_probabilities, demand, packed, unpacked
from .model import Release, added, kept, product_of_weights, under
from .prior import ColumnBasis, Prior, standing_out, to_one_side
from .products import Products, Stacked, covariances
from .rounding import count_records

Axes = tuple[int, ...]

# Tables of the rows that are kept, and numbers that are computed together.
_MOST_TABLES, _AT_ONCE = 128, 1 << 20
# Variance of the records of a bin that a question cuts, as a part of the square of those that stand
# out of its neighbours: all of them may lie at one number, on either side of its end.
_LUMP = 0.3


# --- records that stand for a release, and draws among them

# Fewer weighted rows than this that meet a condition, by their effective number, say too little
# about the other columns.
ENOUGH = 50
# Rounded rows keep the counts of at most this many columns, and of as many pairs.
_ROUNDED = 64


def inverse(probabilities: FloatArray, u: FloatArray) -> IntArray:
    """Positions drawn with the given probabilities, from uniform numbers."""
    return inverse_rows(probabilities[None], np.zeros(len(u), dtype=np.int64), u)


def inverse_rows(table: FloatArray, rows: IntArray, u: FloatArray) -> IntArray:
    """Positions drawn with the probabilities in one row each of a table."""
    reach = np.cumsum(table, axis=1, dtype=np.float64)
    reach /= reach[:, -1:]
    # All rows as one sorted array: row r lies between r and r + 1.
    line = (reach + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(line, rows + u, side="right") - rows * table.shape[1]
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    return np.clip(found, 0, last[rows])


class WeightedRows:
    """Records, and how much each of them counts.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_rows, n_attributes)
    weights : ndarray of float64, shape (n_rows,)
        They sum to 1.
    shape : sequence of int
        Number of codes of each attribute.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    def __init__(self, codes: CodeArray, weights: FloatArray, shape: Sequence[int]) -> None:
        self.codes, self.weights, self.shape = codes, weights, tuple(shape)
        if codes.shape != (len(weights), len(self.shape)):
            raise ValueError("rows and row_weights do not fit together.")
        if codes.size and ((codes < 0).any() or (codes >= np.array(self.shape)).any()):
            raise ValueError("rows hold codes outside of the domain.")

    # ---------------------------------------------------------------- shares

    def cells(self, first: int, others: Sequence[int]) -> tuple[Any, list[CodeArray]]:
        """Shares of the rows in each cell of some columns, by the codes of one more; and the cells.

        Of cells without rows there are none.
        """
        place = np.zeros(len(self.codes), dtype=np.int64)
        for axis in others:
            place, _ = pd.factorize(place * self.shape[axis] + self.codes[:, axis])
        rows = np.zeros(int(place.max(initial=0)) + 1, dtype=np.int64)
        rows[place] = np.arange(len(place))
        at, shape = (place, self.codes[:, first]), (len(rows), self.shape[first])
        return csr_array((self.weights, at), shape), [self.codes[rows, axis] for axis in others]

    def table(self, axes: Sequence[int]) -> FloatArray:
        """Shares of the rows with each combination of codes."""
        columns = [self.codes[:, axis] for axis in axes]
        return self.table_of(columns, [self.shape[axis] for axis in axes])

    def table_of(self, columns: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> FloatArray:
        """Shares of the rows in the cells of a table, from the place of each row on each axis."""
        cell = np.ravel_multi_index(tuple(columns), tuple(sizes))
        sums = np.bincount(cell, weights=self.weights, minlength=math.prod(sizes))
        return sums.reshape(sizes).astype(np.float64, copy=False)

    # ---------------------------------------------------------------- draws

    def _meeting(self, weights: Weights, enough: float) -> tuple[FloatArray, dict[int, FloatArray]]:
        """Weights of rows under the conditions that enough of them meet, and the other conditions.

        One condition after the other is left out, each time the one that leaves most rows.
        """
        agreeing = partial(product_of_weights, self.codes, self.weights)
        kept, others = dict(weights), {}
        agree = agreeing(kept)
        if not agree.any():
            warnings.warn(
                "No record of the release meets this condition. The rows drawn satisfy it, but "
                "some of their columns are drawn by themselves.",
                UserWarning,
                stacklevel=caller_level(),
            )
        while kept and _effective(agree) < enough:
            without = {
                axis: agreeing({a: w for a, w in kept.items() if a != axis}) for axis in kept
            }
            axis = max(without, key=lambda each: _effective(without[each]))
            others[axis], agree = kept.pop(axis), without[axis]
        return agree, others

    def draw(
        self,
        n_samples: int,
        generator: np.random.Generator,
        weights: Weights,
        enough: float = ENOUGH,
        pairs: Sequence[IntArray] | None = None,
    ) -> CodeArray:
        """Draw records by their weights, under those of a condition.

        Parameters
        ----------
        n_samples : int
        generator : numpy.random.Generator
        weights : mapping of int to ndarray
        enough : float, default=50
            How many records must agree, by their effective number, to say anything about the other
            columns.
        pairs : sequence of ndarray of int, default=None
            The cell of each row in tables. Each record is then taken as often as is expected,
            rounded, so that counts of single columns and of these cells are kept. None: the
            records drawn are independent.
        """
        agree, others = self._meeting(weights, enough)
        if pairs is None:
            codes = self.codes[inverse(agree, generator.random(n_samples))]
        else:
            codes = self.codes[self._rounded(n_samples, generator, agree, pairs)]
        # New codes of the columns of conditions that too few records meet.
        for axis, vector in others.items():
            law = self.table((axis,)) * vector
            codes[:, axis] = inverse(law if law.any() else vector, generator.random(len(codes)))
        return codes

    def _rounded(
        self, number: int, generator: np.random.Generator, agree: FloatArray, pairs: Any
    ) -> IntArray:
        """Positions of records in random order, each as often as is expected, rounded."""
        possible = np.flatnonzero(agree > 0)
        codes = self.codes[possible]
        single = [codes[:, axis] for axis, size in enumerate(self.shape) if size > 1]
        # Neighbours agree in many columns, those of few codes first.
        by_size = np.argsort(self.shape, kind="stable")[::-1]
        order = np.lexsort([codes[:, axis] for axis in by_size.tolist()])
        features: list[NDArray[np.integer]] = list(single[:_ROUNDED])
        features += [cells[possible] for cells in pairs[:_ROUNDED]]
        counts = count_records(agree[possible], number, order, features, generator)
        return generator.permutation(np.repeat(possible, counts))


def _effective(weights: FloatArray) -> float:
    """How many equal weights would say as much."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


# --- the release


@dataclass(eq=False, repr=False)
class ViewsModel(Release):
    """Weighted rows, and the coefficients of everything measured.

    Parameters
    ----------
    rows : WeightedRows
        Records that agree with all that was released.
    columns : mapping of int to ColumnEstimate
        Of every column of more than one code.
    coefficients : Coefficients
        Of every subset of columns that was measured.
    possible : mapping of tuple of int to ndarray of bool, default=()
        Combinations of codes that public rules allow.
    cells : tuple of float, default=None
        If the rows are the counts of all columns together: the variance of one of them, and that of
        the sum over all other cells.
    prior : str, default=""
        Kind and fingerprint of the prior that the rows start from.
    followed : collection of tuple of int, default=()
        Sets of columns to whose tables the rows were fitted.
    misfits : mapping of int to float, default=()
        What is believed of the mean distance from the rows of pairs that were not measured, as a
        share of the records, by how many of their columns are ordered; empty if none was released.
    budget : mapping of str to float, default=()
        How epsilon was divided, for the record.
    """

    kind: ClassVar[str] = "views"
    independent: ClassVar[bool] = False

    rows: WeightedRows
    columns: Mapping[int, ColumnEstimate]
    coefficients: Coefficients
    possible: Mapping[Axes, BoolArray] = field(default_factory=dict)
    cells: tuple[float, float] | None = None
    prior: str = ""
    followed: Collection[Axes] = ()
    misfits: Mapping[int, float] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shape, self.total = self.rows.shape, float(self.coefficients.looks[()].values)
        self.followed = sorted(self.followed)
        self._cells = lru_cache(_MOST_TABLES)(self.rows.cells)
        self._latest: Products | None = None

    @property
    def total_variance(self) -> float:
        """Variance of the number of records, as the average of all that was measured of it."""
        return 1.0 / float(self.coefficients.looks[()].precision)

    @property
    def pairs(self) -> list[Axes]:
        """The pairs of columns that were measured."""
        return [axes for axes in self.coefficients.looks if len(axes) == 2]

    # ---------------------------------------------------------------- what is known

    @cached_property
    def bases(self) -> dict[int, ColumnBasis]:
        """Groups and features of each column."""
        ladders = self.coefficients.ladders
        return {
            axis: ColumnBasis(each.counts, ladders[axis]) for axis, each in self.columns.items()
        }

    @cached_property
    def believed(self) -> Prior:
        """What is believed of sets of columns."""
        tables = {axes: look for axes, look in self.coefficients.looks.items() if len(axes) > 1}
        return Prior(self.total, self.bases, tables, self._expected, self.misfits)

    def _expected(self, axes: Axes) -> FloatArray:
        """Coefficients that are expected of a set: those of independent columns, or of the rows.

        Rows that were fitted to a table hold its noise.
        """
        followed = any({*axes} <= {*each} for each in self.followed)
        if len(axes) > 2 or not followed:
            return self._row_coefficients(axes)
        margins = [
            self.coefficients.ladders[axis].sums(self.bases[axis].mass, size)
            for axis, size in zip(axes, self.sizes(axes), strict=True)
        ]
        return self.coefficients.of_table(axes, self.total * reduce(np.multiply.outer, margins))

    def sizes(self, axes: Axes) -> tuple[int, ...]:
        """Groups of each column in the finest table of a set."""
        return tuple(length + 1 for length in self.coefficients.looks[axes].values.shape)

    # ---------------------------------------------------------------- rows

    @kept
    def rows_in_groups(self, axes: Axes) -> FloatArray:
        """Counts of the rows in the cells of the finest table of a set."""
        return self.total * self.rows.table_of(self._groups_of_rows(axes), self.sizes(axes))

    def _groups_of_rows(self, axes: Axes) -> list[IntArray]:
        """Group of each row in each of some columns, in the finest table of these."""
        ladders = self.coefficients.ladders
        return [
            ladders[axis].groups(size)[self.rows.codes[:, axis]]
            for axis, size in zip(axes, self.sizes(axes), strict=True)
        ]

    def _row_coefficients(self, axes: Axes) -> FloatArray:
        """Coefficients of a set among the rows."""
        return self.coefficients.of_table(axes, self.rows_in_groups(axes))

    @kept
    def _away(self, axes: Axes) -> FloatArray:
        """Coefficients of a set as measured, in the functions of `turn`, less those of the rows."""
        away = self.coefficients.looks[axes].less(self._row_coefficients(axes))
        for place, (axis, size) in enumerate(zip(axes, self.sizes(axes), strict=True)):
            away = along(self.bases[axis].turn(size)[0].T, away, place)
        return away

    def corrected(self, axes: Axes) -> FloatArray:
        """What is believed of the coefficients of a set, less those of the rows."""
        return self.believed.belief(axes).gain * self._away(axes)

    def taken(self, axes: Axes) -> FloatArray:
        """What is not believed of the coefficients of a set, less those of the rows."""
        return (1.0 - self.believed.belief(axes).gain) * self._away(axes)

    def lost(self, axes: Axes, coefs: Sequence[FloatArray]) -> FloatArray:
        """Of n weighted sums by how much more they were shrunk than noise explains.

        An estimate is off by what was taken off it, less the noise in that. The mean square of what
        was taken off, less the variance of this noise, estimates the square of the bias (C. Stein,
        Annals of Statistics 9, 1981): where the prior is wrong, this shows it.
        """
        taken = under(self.taken(axes), coefs)
        removed = under(self.believed.belief(axes).removed, [each**2 for each in coefs])
        found: FloatArray = np.sign(taken) * np.sqrt(np.maximum(taken**2 - removed, 0.0))
        return found

    @kept
    def _row_shares(self, axis: int) -> FloatArray:
        """Shares of the rows with each code."""
        return self.rows.table((axis,))

    def of_rows(self, axes: Axes, weights: Stacked) -> FloatArray:
        """Share of the rows under each of n products of weights, (n_codes, n) for each column."""
        first, *others = sorted(axes, key=lambda axis: self.shape[axis], reverse=True)
        table, codes = self._cells(first, tuple(others))
        shares, step = [np.zeros(0)], max(1, _AT_ONCE // table.shape[0])
        for start in range(0, weights[first].shape[1], step):
            part = slice(start, start + step)
            product = table @ weights[first][:, part]
            for axis, column in zip(others, codes, strict=True):
                product *= weights[axis][:, part][column]
            shares.append(product.sum(axis=0))
        return np.concatenate(shares)

    def column_residual(self, axis: int) -> FloatArray:
        """Counts of a column, less those of the rows."""
        return self.columns[axis].counts - self.total * self._row_shares(axis)

    # ---------------------------------------------------------------- answers

    @property
    def about(self) -> str:
        """What was released, in words."""
        return f"noisy counts of each column and of {len(self.pairs):,} pairs of columns"

    def answer(self, queries: Sequence[Query]) -> FloatArray:
        """Expected counts under the weights, one for each query."""
        step = max(1, _AT_ONCE // max(self.shape))

        def answers(products: Sequence[Weights]) -> FloatArray:
            parts = (products[at : at + step] for at in range(0, len(products), step))
            return np.concatenate([np.zeros(0), *(self.asked(part).answers() for part in parts)])

        return added(queries, answers)

    def asked(self, products: Sequence[Weights]) -> Products:
        """Products with what follows from them; a single one is kept, as its error comes next."""
        if len(products) != 1 or not products[0]:
            return Products(self, products)
        if self._latest is None or self._latest.products[0] is not products[0]:
            self._latest = Products(self, products)
        return self._latest

    def mean_of(self, axis: int, axes: Axes) -> FloatArray:
        """How codes count where their column is not looked at: as its records do.

        Beside a table of the columns all units alike: what this leaves out is in its coefficients.
        Of a column by itself as the noise of its total is spread over its codes.
        """
        if len(axes) > 1:
            basis = self.bases[axis]
            return basis.even if axes in self.coefficients.looks else basis.mass
        spread = self.of_total(axis)
        return spread / spread.sum()

    @kept
    def lumps(self, axis: int) -> FloatArray:
        """Deviations of the parts of codes that a range covers in part.

        Records of a code may lie anywhere in it, the more so the more its count differs from those
        of its neighbours.
        """
        return math.sqrt(_LUMP) * standing_out(self.columns[axis].counts)

    def leaning(self, axis: int, widths: FloatArray) -> FloatArray:
        """As `Release.leaning`; see `to_one_side`."""
        if axis not in self.columns:
            return super().leaning(axis, widths)
        return to_one_side(self.columns[axis], widths)

    @kept
    def of_total(self, axis: int) -> FloatArray:
        """Covariances of the counts of a column with their sum."""
        return self.columns[axis].covariance(np.ones(self.shape[axis]))

    def measured(self, axes: Axes) -> Iterator[Axes]:
        """Subsets of two and more columns that were measured together."""
        subsets = (combinations(axes, order) for order in range(2, len(axes) + 1))
        return filter(self.coefficients.looks.__contains__, chain.from_iterable(subsets))

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Counts for every combination of the codes of one or two attributes, without bias."""
        if len(axes) == 1:
            [axis] = axes
            if axis in self.columns and self.cells is None:
                return self.columns[axis].counts.copy()
            return self.total * self._row_shares(axis)
        a, b = axes
        if a > b:
            return self.view([b, a]).T
        if a not in self.columns or b not in self.columns:
            # One of them has one code that records can have.
            first, second = self.view([a]), self.view([b])
            return np.outer(first, second) / (self.total if self.total else 1.0)
        table = self.total * self.rows.table(axes)
        if self.cells is not None:
            return table
        rows, columns = self.bases[a], self.bases[b]
        one, other = self.column_residual(a), self.column_residual(b)
        known = (a, b) in self.coefficients.looks
        means = [each.even if known else each.mass for each in (rows, columns)]
        table += np.outer(one - means[0] * one.sum(), means[1])
        table += np.outer(means[0], other - means[1] * other.sum())
        if known:
            sizes = self.sizes((a, b))
            coefs = [each.of_codes(n) for each, n in zip((rows, columns), sizes, strict=True)]
            table += coefs[0].T @ self.corrected((a, b)) @ coefs[1]
        if (a, b) in self.possible:
            table = np.where(self.possible[a, b], table, 0.0)
        return table

    # ---------------------------------------------------------------- errors

    @property
    def covers(self) -> str:
        """What variances cover, in words."""
        prior = f", with a prior: {self.prior}" if self.prior else ""
        return f"the noise, and an estimate of what was not measured{prior}"

    def ends(self, query: Query) -> tuple[Query, Query, float]:
        """The query without and with all that may lie at single numbers: blocks of codes.

        And the variance of these as they were measured: a single number follows no law.
        """
        variances = []

        def end(beyond: float) -> Query:
            def of(weights: FloatArray, axis: int) -> FloatArray:
                points = at_points(weights, not beyond) & (axis in self.columns)
                for code in np.flatnonzero(points).tolist():
                    block, variance = self.columns[axis].around(code)
                    weights = np.where(block, beyond, weights)
                    variances.append(variance)
                return weights

            return query.replaced(of)

        return end(0.0), end(1.0), sum(variances)

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Covariances of equally many answers each, (n, k, k)."""
        if self.cells is not None:
            return np.array([self._covariance_of_cells(queries) for queries in blocks])
        return covariances(self, blocks)

    def _covariance_of_cells(self, queries: Sequence[Query]) -> FloatArray:
        """Where the rows are the counts of all columns together."""
        variance, elsewhere = self.cells or (0.0, 0.0)
        meeting = partial(product_of_weights, self.rows.codes, np.ones(len(self.rows.codes)))
        met = np.array([sum(map(meeting, query.products)) for query in queries])
        return variance * (met @ met.T) + elsewhere * np.eye(len(queries))

    # ---------------------------------------------------------------- draws

    @property
    def _enough(self) -> float:
        """How many rows must meet a condition: any, where they are the cells of all columns."""
        whole = any({*axes} >= {*self.columns} for axes in self.followed)
        ladders = self.coefficients.ladders.values()
        alone = all(np.bincount(each.units).max() == 1 for each in ladders)
        return 0.5 if self.cells is not None or (whole and alone) else ENOUGH

    def sample_codes(
        self, number: int, generator: np.random.Generator, weights: Weights, rounded: bool = False
    ) -> CodeArray:
        """Draw records from the weighted ones; see `WeightedRows.draw`."""
        cells = None
        if rounded:
            cells = [
                np.ravel_multi_index(tuple(self._groups_of_rows(axes)), self.sizes(axes))
                for axes in self.pairs
            ]
        return self.rows.draw(number, generator, weights, self._enough, cells)

    # ---------------------------------------------------------------- files

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        ladders, looks = self.coefficients.ladders, self.coefficients.looks
        columns = [
            {
                "axis": axis,
                "blocks": each.sizes,
                "variances": [*each.variances.items()],
                "total_variance": each.total_variance,
                "counts": each.counts,
                "finer": np.concatenate([np.zeros(0), *each.scales[2:]]),
                "margins": np.zeros(0) if each.looks is None else each.looks[1],
                "groups": ladders[axis].sizes,
                "units": ladders[axis].units,
                "ordered": ladders[axis].n_ordered,
            }
            for axis, each in sorted(self.columns.items())
        ]
        return packed(
            {
                "rows": self.rows.codes,
                "row_weights": self.rows.weights,
                "columns": columns,
                "looks": [{"axes": axes, **look._asdict()} for axes, look in looks.items()],
                "possible": [
                    {"axes": axes, "mask": mask.astype(np.int8)}
                    for axes, mask in self.possible.items()
                ],
                "misfits": sorted(self.misfits.items()),
                **{name: getattr(self, name) for name in ("followed", "cells", "prior", "budget")},
            }
        )

    @classmethod
    def from_arrays(cls, shape: tuple[int, ...], facts: Facts, arrays: Arrays) -> ViewsModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        facts = unpacked(facts, arrays)
        weights = as_probabilities(facts["row_weights"])
        rows = WeightedRows(facts["rows"].astype(np.int32), weights, shape)
        possible = {_axes(each["axes"]): each["mask"].astype(bool) for each in facts["possible"]}
        for axes, mask in possible.items():
            demand(mask.shape == tuple(shape[axis] for axis in axes), "a rule has another shape")
        allowed = [
            possible.get((axis,), np.ones(size, dtype=bool)) for axis, size in enumerate(shape)
        ]
        columns, ladders = {}, {}
        for each in facts["columns"]:
            axis = int(each["axis"])
            columns[axis], ladders[axis] = _column_of(each, allowed[axis])
        several = {axis for axis, each in enumerate(allowed) if each.sum() > 1}
        demand({*columns} == several, "the columns do not fit the domain")
        coefficients = Coefficients(ladders)
        for each in facts["looks"]:
            axes, parts = _axes(each["axes"]), (each["values"], each["precision"])
            look = Look(*(part.astype(np.float64) for part in parts))
            levels = zip(axes, look.values.shape, strict=True)
            fits = list(axes) == sorted({*axes} & several) and bool((look.precision >= 0).all())
            fits = fits and look.values.shape == look.precision.shape
            fits = fits and all(size + 1 in ladders[axis].sizes for axis, size in levels)
            demand(fits, "a table does not fit the groups of its columns")
            coefficients.looks[axes] = look
        total = coefficients.looks[()]
        fits = bool(total.precision > 0) and abs(float(total.values)) < 2.0**63
        demand(fits, "the total is missing, or no number of records")
        followed = [_axes(axes) for axes in facts["followed"]]
        misfits = {int(kind): float(each) for kind, each in facts["misfits"]}
        numbers = [float(each) for each in facts["cells"] or ()]
        fits = all({*axes} <= several for axes in followed) and len(numbers) in (0, 2)
        fits = fits and all(0 <= each < math.inf for each in [*misfits.values(), *numbers])
        demand(fits, "what is said of the rows does not fit the domain")
        cells = (numbers[0], numbers[1]) if numbers else None
        prior, budget = str(facts["prior"]), facts["budget"]
        return cls(rows, columns, coefficients, possible, cells, prior, followed, misfits, budget)


def _column_of(facts: Mapping[str, Any], allowed: BoolArray) -> tuple[ColumnEstimate, Ladder]:
    """A column of a file, and its groups."""
    size, n_inside = len(allowed), int(allowed.sum())
    ladder = Ladder(
        facts["units"].astype(np.int64), _levels(facts["groups"]), int(facts["ordered"])
    )
    units, margins = ladder.units, facts["margins"]
    fits = units.shape == (size,) and 0 <= units.min() and units.max() < ladder.n_units
    fits = fits and 0 <= ladder.n_ordered <= size and len(margins) < ladder.n_units
    blocks, total_variance = _levels(facts["blocks"]), float(facts["total_variance"])
    variances = {int(blocks): float(value) for blocks, value in facts["variances"]}
    fits = fits and variances and {*variances} <= {*blocks} and n_inside <= blocks[-1]
    demand(fits, "the groups of a column do not fit the domain")
    codes = np.flatnonzero(allowed)
    column = ColumnEstimate(size, blocks, variances, total_variance, codes=codes)
    ends = np.cumsum([0, *map(len, column.scales[2:])])
    fits = facts["counts"].shape == (size,) and facts["finer"].shape == (ends[-1],)
    demand(fits, "the counts of a column do not fit the domain")
    positive = [*variances.values(), total_variance, *facts["finer"], *margins]
    demand(all(0 < each < math.inf for each in positive), "a variance must be positive")
    column.counts = facts["counts"].astype(np.float64)
    column.scales[2:] = [facts["finer"][a:b] for a, b in pairwise(ends)]
    column.join(ladder, None, margins)
    return column, ladder


def _axes(given: Sequence[Any]) -> Axes:
    """Positions of columns in a file."""
    return tuple(int(axis) for axis in given)


def _levels(sizes: Sequence[int]) -> tuple[int, ...]:
    """Numbers of blocks of the levels of a tree; ValueError if they do not divide each other."""
    found = tuple(int(size) for size in sizes)
    nested = found[:1] == (1,) and all(a < b and not b % a for a, b in pairwise(found))
    demand(nested, "levels must begin with 1, and each must divide the next")
    return found
