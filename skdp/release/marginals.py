"""ViewsModel: linear answers from coefficients with known variances, and rows that agree with them.

An answer is what the weighted rows say, corrected by every measured coefficient: the measured part
of a question is answered without bias whatever the rows got wrong, and its variance is that of
exactly this question. What was not measured comes from the rows, and its variance is estimated
from the dependence that was measured at the next coarser level.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .._validation import BoolArray, FloatArray, IntArray
from ..domain.query import Query
from .coefficients import Coefficients, EffectLaw, Ladder, Look, MeasuredSums, along
from .columns import ColumnEstimate
from .model import Reach, Weights, added, by_attributes, covariance_from
from .rounding import product_of_weights
from .trees import TreeModel

__all__ = ["Tuning", "ViewsModel"]

Axes = tuple[int, ...]


class Tuning(NamedTuple):
    """What the estimated part of error bars rests on; chosen by ``benchmarks/questions.py``.

    Attributes
    ----------
    cut : float
        Variance of the share of a cut cell that a question selects, as a part of that of a cell
        that lies on one side entirely, if the columns depend on each other completely.
    dependence : float
        Mean square contingency from which on a pair counts as completely dependent.
    surprise : float
        Standard deviations that are added to a measured contingency.
    alike : float
        Scales on which a question bears with one sign: both high tells of coarse and finer groups.
        As many times the variance of an effect is allowed for.
    third : float
        As ``cut``, for a third column given a measured pair.
    heap : float
        Variance of the records of a bin that a question cuts, as a part of the square of those that
        stand out of its neighbours: all of them may lie at one number, on either side of its end.
    """

    cut: float = 0.5
    dependence: float = 0.25
    surprise: float = 1.0
    alike: float = 4.0
    third: float = 0.05
    heap: float = 0.3


TUNING = Tuning()

# Two columns are tabulated over the rows if they have at most this many cells.
_DENSE_CELLS = 1 << 20
# A condition cuts two codes; weights of more codes are not ones of a range.
_MOST_CUT = 2
# Shares of a code that differ by less from none and from all are these.
_WHOLE = 1e-9
# Sets of columns by which it is judged how far rows are off.
_MOST_SETS = 200


class Trust(NamedTuple):
    """How far answers follow the coefficients of one set, arrays of their shape.

    Attributes
    ----------
    added : ndarray of float64
        Share of the measured distance from the rows that answers add.
    noise, lacking : ndarray of float64
        Variances of what answers then hold of the noise, and of what they lack of the truth.
    """

    added: FloatArray
    noise: FloatArray
    lacking: FloatArray


class _Part(NamedTuple):
    """One product of weights: of codes, of units, and what is constant."""

    factor: float
    weights: dict[int, FloatArray]


class ViewsModel(TreeModel):
    """Weighted rows, and the coefficients of everything measured.

    Parameters
    ----------
    rows_model : TreeModel
    columns : mapping of int to ColumnEstimate
        Of every column of more than one code.
    coefficients : Coefficients
        Of every subset of columns that was measured.
    possible : mapping of tuple of int to ndarray of bool, default=()
        Combinations of codes that public rules allow.
    cells : tuple of float, default=None
        If the rows are the counts of all columns together: the variance of one of them, and that of
        the sum over all other cells.
    sums : mapping of (int, int) to MeasuredSums, default=()
        Of a number, for each code of another column.
    prior : str, default=""
        Kind and fingerprint of the prior that the rows start from.
    followed : collection of tuple of int, default=()
        Sets of columns to whose tables the rows were fitted.
    misfit : float, default=None
        Mean absolute distance from the rows of pairs that were not measured, as a share of the
        records; None if it was not released.
    """

    kind: ClassVar[str] = "views"
    independent: ClassVar[bool] = False

    def __init__(
        self,
        rows_model: TreeModel,
        columns: Mapping[int, ColumnEstimate],
        coefficients: Coefficients,
        possible: Mapping[Axes, BoolArray] | None = None,
        cells: tuple[float, float] | None = None,
        sums: Mapping[tuple[int, int], MeasuredSums] | None = None,
        prior: str = "",
        followed: Collection[Axes] = (),
        misfit: float | None = None,
    ) -> None:
        super().__init__(
            rows_model.density,
            rows_model.total,
            extra=rows_model.extra,
            rows=rows_model.rows,
            row_weights=rows_model.row_weights,
            budget=rows_model.budget,
        )
        self.columns = dict(columns)
        self.coefficients = coefficients
        self.possible = dict(possible or {})
        self.cells = cells
        self.sums = dict(sums or {})
        self.prior = prior
        self.followed = sorted(followed)
        self.misfit = misfit
        look = coefficients.looks[()]
        self._total = float(look.values)
        self.total_variance = float(look.variances)
        self._caches: dict[Any, Any] = {}

    @property
    def _enough(self) -> float:
        """Any, where the rows are the cells of a table of all columns: a cell is many records."""
        whole = any({*axes} >= {*self.columns} for axes in self.followed)
        listed = self.cells is not None or (whole and not self.density.groups)
        return 0.5 if listed else super()._enough

    # ---------------------------------------------------------------- parts of a question

    def _part(self, weights: Weights) -> _Part:
        """Weights without columns that do not matter."""
        factor, left = 1.0, {}
        for axis, vector in weights.items():
            vector = np.asarray(vector, dtype=np.float64)
            allowed = self.possible.get((axis,))
            inside = vector if allowed is None else vector[allowed]
            if axis not in self.columns or (inside == inside[0]).all():
                factor *= float(inside[0])
            else:
                left[axis] = vector if allowed is None else np.where(allowed, vector, 0.0)
        if not self._allowed(left):
            factor = 0.0
        return _Part(factor, left if factor else {})

    def _allowed(self, weights: Weights) -> bool:
        """Whether public rules leave any record that meets the conditions."""
        for axes, allowed in self.possible.items():
            if len(axes) > 1 and all(axis in weights for axis in axes):
                chosen = [np.flatnonzero(weights[axis]) for axis in axes]
                if not allowed[np.ix_(*chosen)].any():
                    return False
        return True

    def _only(self, axis: int) -> int:
        """The one code that records can have of a column without an estimate."""
        return int(np.argmax(self.possible.get((axis,), np.ones(1))))

    def _size(self, axis: int, axes: Axes) -> int:
        """Groups of a column in the finest table that a question on some columns can use."""
        found = 1
        for part in self._measured(axes):
            if axis in part:
                found = max(found, self.coefficients.looks[part].values.shape[part.index(axis)] + 1)
        return found

    def _mixing(self, axis: int, size: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """How weights of codes become weights of groups.

        Group of each code, its share in its group, and a matrix that gives groups without codes
        the weight of the groups around them: nothing is in them, and so they say least.
        """
        key = "mixing", axis, size
        if key not in self._caches:
            ladder = self.coefficients.ladders[axis]
            group = ladder.groups(size)
            # Of the rows: noise of many codes would weigh as records do.
            mass = self._row_counts(axis) + 1e-9 / self.shape[axis]
            whole = ladder.sums(mass, size)
            filled = np.diag((whole > 0).astype(np.float64))
            for level in reversed([each for each in ladder.sizes if each < size]):
                wide = size // level
                empty = np.flatnonzero(filled.sum(axis=1) == 0)
                around = np.repeat(whole.reshape(level, wide).sum(axis=1), wide)
                for place in empty[around[empty] > 0].tolist():
                    near = slice(place // wide * wide, (place // wide + 1) * wide)
                    filled[place, near] = whole[near] / whole[near].sum()
            self._caches[key] = group, mass / whole[group], filled
        return self._caches[key]

    def _hats(self, axis: int, vectors: FloatArray, size: int) -> FloatArray:
        """Coefficients of mean weights of groups; the first over its root is the mean."""
        group, shares, filled = self._mixing(axis, size)
        found = np.zeros((size, *vectors.shape[1:]))
        np.add.at(found, group, shares.reshape(-1, *[1] * (vectors.ndim - 1)) * vectors)
        functions = self.coefficients.functions(axis, size)
        hats: FloatArray = functions.T @ (filled @ found)
        return hats * math.sqrt(self.coefficients.ladders[axis].n_units / size)

    def _mean(self, axis: int, hat: FloatArray) -> FloatArray:
        found: FloatArray = hat[0] / math.sqrt(self.coefficients.ladders[axis].n_units)
        return found

    # ---------------------------------------------------------------- what rows get wrong

    def _row_cells_of(self, axes: Axes, sizes: Sequence[int]) -> FloatArray:
        """Counts of groups among the rows."""
        cell = np.zeros(len(self.rows), dtype=np.int64)
        for axis, size in zip(axes, sizes, strict=True):
            groups = self.coefficients.ladders[axis].groups(size)
            cell = cell * size + groups[self.rows[:, axis]]
        sums = np.bincount(cell, weights=self.row_weights, minlength=math.prod(sizes))
        counts: FloatArray = self._total * sums.astype(np.float64, copy=False)
        return counts.reshape(tuple(sizes))

    def _away(self, axes: Axes) -> FloatArray:
        """Measured coefficients less those of the rows; 0 where nothing was measured."""
        key = "away", axes
        if key not in self._caches:
            look = self.coefficients.looks[axes]
            sizes = tuple(length + 1 for length in look.values.shape)
            rows = self.coefficients.of_table(axes, self._row_cells_of(axes, sizes))
            self._caches[key] = np.where(look.precision > 0, look.values - rows, 0.0)
        return self._caches[key]

    def _residual(self, axes: Axes) -> FloatArray:
        """What answers add to the rows: the distance as far as it is believed."""
        return self.trust(axes).added * self._away(axes)

    def trust(self, axes: Axes) -> Trust:
        """How far answers follow the measured coefficients of a set, scale by scale.

        Rows that were fitted to a table of the set hold some of its coefficients already, and of
        their noise: the share that a regression finds. As much is added as is missing to the share
        that is believed. That follows from one law of the true coefficients of a scale, over all
        sets that rows were fitted to; for other sets, of their distances from the rows. A bar
        allows for one standard deviation more of the variance of those.
        """
        key = "trust", axes
        if key not in self._caches:
            look = self.coefficients.looks[axes]
            found = Trust(*(np.zeros(look.values.shape) for _ in Trust._fields))
            followed = self._is_followed(axes)
            for scale, block in self._scales(axes):
                seen = self._effects(axes, block)
                if not seen:
                    continue
                [believed], [mean], [spread] = self._law(len(axes), scale, followed).told(
                    *map(np.atleast_1d, seen)
                )
                if followed:
                    mean, spread = TUNING.alike * mean, TUNING.alike * spread
                    believed = mean / (mean + seen[2])
                told, away = look.values[block], self._away(axes)[block]
                energy = float((told**2).sum())
                held = float(((told - away) * told).sum()) / energy if followed and energy else 0.0
                held = min(max(held, 0.0), 1.0)
                # Rows that hold all of it may still be off: where noise is nothing, all is added.
                missing = (float(believed) - held) / (1.0 - held) if held < 1.0 else 0.0
                added = max(missing, float(believed) ** 2)
                found.added[block] = added
                whole = held + added * (1.0 - held)
                found.noise[block] = whole**2 * look.variances[block]
                lacking = (1.0 - whole) ** 2 * float(mean + TUNING.surprise * spread)
                found.lacking[block] = lacking / self._n_units(axes)
            self._caches[key] = found
        return self._caches[key]

    def _law(self, order: int, scale: Axes, followed: bool) -> EffectLaw:
        """The law of the effects of a scale over all sets of an order."""
        key = order, scale, followed
        if "blocks" not in self._caches:
            blocks: dict[Any, list[Any]] = {}
            for axes in self.coefficients.looks:
                for other, block in self._scales(axes):
                    each = len(axes), other, self._is_followed(axes)
                    blocks.setdefault(each, []).append((axes, block))
            self._caches["blocks"] = blocks
        if ("law", key) not in self._caches:
            alike = self._caches["blocks"][key]
            some = alike[:: -(-len(alike) // _MOST_SETS)]
            seen = [each for each in (self._effects(*one) for one in some) if each]
            energies, numbers, noises = map(np.array, zip(*seen, strict=True))
            self._caches["law", key] = EffectLaw.fitted(energies, numbers, noises)
        return self._caches["law", key]

    def _scales(self, axes: Axes) -> Iterator[tuple[Axes, tuple[slice, ...]]]:
        """The blocks of the coefficients of a set that belong to one level of each column."""
        shape = self.coefficients.looks[axes].values.shape
        levels = [
            [
                (level, slice(coarse - 1, fine - 1))
                for level, (coarse, fine) in enumerate(pairwise(self.coefficients.ladders[a].sizes))
                if fine - 1 <= size
            ]
            for a, size in zip(axes, shape, strict=True)
        ]
        for several in product(*levels):
            yield tuple(sorted(level for level, _ in several)), tuple(cut for _, cut in several)

    def _effects(self, axes: Axes, block: tuple[slice, ...]) -> tuple[float, int, float] | None:
        """Sum of squares, number and noise of effects, as if each column had one unit."""
        look = self.coefficients.looks[axes]
        known = look.precision[block] > 0
        if not known.any():
            return None
        seen = look.values[block] if self._is_followed(axes) else self._away(axes)[block]
        scale = self._n_units(axes)
        noise = float(look.variances[block][known].mean())
        return scale * float((seen[known] ** 2).sum()), int(known.sum()), scale * noise

    def _n_units(self, axes: Axes) -> int:
        return math.prod(self.coefficients.ladders[axis].n_units for axis in axes)

    def _is_followed(self, axes: Axes) -> bool:
        """Whether the rows were fitted to a table that holds these columns."""
        return any({*axes} <= {*each} for each in self.followed)

    def _coarse_sizes(self, axes: Axes) -> list[int]:
        """Numbers of groups by which the dependence of measured columns is judged."""
        sizes = []
        for axis, most in zip(axes, self.coefficients.looks[axes].values.shape, strict=True):
            levels = self.coefficients.ladders[axis].sizes
            fitting = [size for size in levels if 1 < size <= min(most + 1, 8)]
            sizes.append(fitting[-1] if fitting else levels[1])
        return sizes

    def _row_counts(self, axis: int) -> FloatArray:
        """Share of the rows with each code."""
        key = "rows", axis
        if key not in self._caches:
            codes, size = self.rows[:, axis], self.shape[axis]
            found = np.bincount(codes, weights=self.row_weights, minlength=size)
            self._caches[key] = found.astype(np.float64, copy=False)
        known: FloatArray = self._caches[key]
        return known

    def _column_residual(self, axis: int) -> FloatArray:
        key = "column", axis
        if key not in self._caches:
            self._caches[key] = self.columns[axis].counts - self._total * self._row_counts(axis)
        return self._caches[key]

    def _measured(self, axes: Axes) -> Iterator[Axes]:
        """Subsets of two and more columns that were measured together."""
        looks = self.coefficients.looks
        for order in range(2, len(axes) + 1):
            for part in combinations(axes, order):
                if part in looks:
                    yield part

    # ---------------------------------------------------------------- answers

    @property
    def about(self) -> str:
        """What was released, in words."""
        return f"noisy counts of each column and of {len(self.pairs):,} pairs of columns"

    def answer(self, queries: Sequence[Query]) -> FloatArray:
        """Expected counts under the weights, one for each query."""
        return added(queries, self._answer)

    def _answer(self, queries: Sequence[Weights]) -> FloatArray:
        parts = [self._part(query) for query in queries]
        answers = np.zeros(len(queries))
        for axes, members in by_attributes([part.weights for part in parts]).items():
            factors = np.array([parts[i].factor for i in members])
            stacked = {
                axis: np.stack([parts[i].weights[axis] for i in members], axis=1) for axis in axes
            }
            answers[members] = factors * self._answered(axes, stacked, len(members))
        return answers

    def _answered(self, axes: Axes, weights: dict[int, FloatArray], n: int) -> FloatArray:
        if not axes:
            return np.full(n, self._total)
        if self.cells is not None:
            return self._total * self._of_rows(axes, weights, n)
        if len(axes) == 1:
            [axis] = axes
            return self.columns[axis].counts @ weights[axis]
        share = self._of_rows(axes, weights, n)
        found = self._total * share + self._corrections(axes, weights, share)
        for key in _both_ways(axes):
            if key in self.sums:
                found = self._summed(key, weights, found)
        return found

    def _summed(
        self, key: tuple[int, int], weights: Mapping[int, FloatArray], others: FloatArray
    ) -> FloatArray:
        """Answers from measured sums of a number by groups, and the others as they are."""
        (axis, by), known = key, self.sums[key]
        (whole, of_value, none), fits = known.told(weights[axis])
        counts, w = self.columns[by].counts, weights[by]
        told = whole * (counts @ w) + of_value * (known.sums @ w)
        return np.where(fits, told + (none - whole) * (known.n_missing @ w), others)

    def _corrections(
        self, axes: Axes, weights: dict[int, FloatArray], share: FloatArray
    ) -> FloatArray:
        """What everything measured adds to the rows, of which this share answers each query."""
        n = len(share)
        sizes = {axis: self._size(axis, axes) for axis in axes}
        hats = {axis: self._hats(axis, weights[axis], sizes[axis]) for axis in axes}
        means = {axis: self._mean(axis, hats[axis]) for axis in axes}
        pure: dict[Axes, FloatArray] = {}
        for axis in axes:
            residual = self._column_residual(axis)
            pure[axis,] = residual @ weights[axis] - means[axis] * residual.sum()
        for part in self._measured(axes):
            value = self._residual(part)
            told = np.broadcast_to(value[..., None], (*value.shape, n))
            for axis in part:
                inside = hats[axis][1 : 1 + told.shape[0]]
                told = (told * inside.reshape(len(inside), *[1] * (told.ndim - 2), n)).sum(axis=0)
            pure[part] = told
        if len(axes) > 2 and axes not in self.coefficients.looks:
            return self._shared_out(pure, axes, weights, means, share)
        found = np.zeros(n)
        for part, told in pure.items():
            found += told * _times([means[other] for other in axes if other not in part])
        return found

    def _shared_out(
        self,
        pure: Mapping[Axes, FloatArray],
        axes: Axes,
        weights: dict[int, FloatArray],
        means: Mapping[int, FloatArray],
        share: FloatArray,
    ) -> FloatArray:
        """Corrections of parts of columns that no table holds together, one for each query.

        As much of each as of the rows with weight on its columns, and of one record more, meets the
        conditions on the others: where rows have nothing in common, nothing is corrected. So sums
        and counts under one condition are shared out alike, and means agree with both. Counts are
        not negative then. They need not add up to those of fewer columns.
        """
        n = len(share)
        found = np.zeros(n)
        on = {axis: (each != 0).astype(np.float64) for axis, each in weights.items()}
        # Conditions are their own; only values are replaced.
        valued = {axis for axis in axes if not np.array_equal(on[axis], weights[axis])}
        rows = max(self._total, 1.0)
        shares = {frozenset[int](): share}
        for part, told in pure.items():
            kept = {axis: on[axis] for axis in part}
            key = frozenset(valued & kept.keys())
            if key not in shares:
                shares[key] = self._of_rows(axes, weights | kept, n)
            others = _times([means[other] for other in axes if other not in part])
            meeting = rows * self._of_rows(part, kept, n)
            found += told * (rows * shares[key] + others) / (meeting + 1.0)
        plain = np.all([(each >= 0).all(axis=0) for each in weights.values()], axis=0)
        return np.where(plain, np.maximum(found, -self._total * share), found)

    def _of_rows(self, axes: Axes, weights: dict[int, FloatArray], n: int) -> FloatArray:
        """Share of the rows under queries on the same columns."""
        if len(axes) == 1:
            alone: FloatArray = self._row_counts(axes[0]) @ weights[axes[0]]
            return alone
        if len(axes) == 2 and self.shape[axes[0]] * self.shape[axes[1]] <= _DENSE_CELLS:
            key = "rows", axes
            if key not in self._caches:
                self._caches[key] = self._row_table(axes)
            return np.einsum("iq,iq->q", weights[axes[0]], self._caches[key] @ weights[axes[1]])
        codes, masses = self._row_cells(axes, merged=n >= 8)
        shares = np.empty(n)
        for query in range(n):
            product = masses
            for axis, column in zip(axes, codes, strict=True):
                product = product * weights[axis][column, query]
            shares[query] = product.sum()
        return shares

    # ---------------------------------------------------------------- errors

    @property
    def covers(self) -> str:
        """What variances cover, in words."""
        prior = f", with a prior: {self.prior}" if self.prior else ""
        return f"the noise, and an estimate of what was not measured{prior}"

    def variance(self, queries: Sequence[Query]) -> FloatArray:
        """Variance of each answer: of the noise, and of what was not measured."""
        return self._variances(queries).sum(axis=1)

    def covariance(self, queries: Sequence[Query]) -> FloatArray:
        """Covariance of the errors of a few answers; estimated parts count as independent."""
        noise = covariance_from(lambda several: self._variances(several)[:, 0], queries)
        return noise + np.diag(self._variances(queries)[:, 1])

    def _variances(self, queries: Sequence[Query]) -> FloatArray:
        found = [self._variance_of(each.products) for each in queries]
        return np.array(found, dtype=np.float64).reshape(-1, 2)

    def reach(self, queries: Sequence[Query], level: float) -> Reach:
        """How far answers may be off: normal, with their own variance."""
        known = self._variances(queries)
        std = np.sqrt(known.sum(axis=1))
        half = float(ndtri(0.5 + level / 2)) * std
        cut = " Bins covered in part are taken as covered in proportion."
        noise, estimated = known[0].tolist()
        text = self._guarantee(noise, estimated, level)
        return Reach(std, half, half, text + cut * any(each.cuts for each in queries))

    def _guarantee(self, noise: float, estimated: float, level: float) -> str:
        whole = noise + estimated
        share = round(100 * noise / whole) if whole > 0 else 100
        text = (
            f"The interval is made to contain the true answer with a probability of "
            f"{100 * level:g}%. "
        )
        if share >= 99:
            return text + "Its width is that of the noise, whose law is known."
        return text + (
            f"{share}% of its variance is noise, whose law is known; the rest is for what was not "
            "measured, and is estimated" + (f", with a prior: {self.prior}." if self.prior else ".")
        )

    def _variance_of(self, questions: Sequence[Weights]) -> tuple[float, float]:
        """Variance of a sum of answers: of the noise, and of what was not measured."""
        parts = [part for part in map(self._part, questions) if part.factor]
        parts = _merged(parts)
        if self.cells is not None and any(part.weights for part in parts):
            met = np.zeros(len(self.rows))
            for factor, weights in parts:
                met += factor * product_of_weights(self.rows, np.ones(len(met)), weights)
            return self.cells[0] * float(met @ met) + self.cells[1], 0.0
        if len(parts) == 1 and len(parts[0].weights) <= 1:
            factor, weights = parts[0]
            if not weights:
                return factor**2 * self.total_variance, 0.0
            [(axis, vector)] = weights.items()
            inside = self._cut_codes(axis, vector, {})
            known, hidden = map(float, self.columns[axis].parts_of_variance(vector))
            return factor**2 * known, factor**2 * (inside + hidden)
        constant = 0.0
        single: dict[int, FloatArray] = {}
        several: dict[Axes, FloatArray] = {}
        parts, noise_of_sums = self._without_sums(parts)
        estimated = 0.0
        for factor, weights in parts:
            axes = tuple(sorted(weights))
            sizes = {axis: self._size(axis, axes) for axis in axes}
            hats = {axis: self._hats(axis, weights[axis], sizes[axis]) for axis in axes}
            means = {axis: float(self._mean(axis, hats[axis])) for axis in axes}
            constant += factor * math.prod(means.values())
            for axis in axes:
                others = factor * math.prod(means[other] for other in axes if other != axis)
                pure = others * (weights[axis] - means[axis])
                single[axis] = single[axis] + pure if axis in single else pure
            for part in self._measured(axes):
                told: Any = factor * math.prod(means[a] for a in axes if a not in part)
                for axis, size in zip(
                    part, self.coefficients.looks[part].values.shape, strict=True
                ):
                    told = np.multiply.outer(told, hats[axis][1 : 1 + size])
                several[part] = several[part] + told if part in several else told
            estimated += math.sqrt(self._unmeasured(axes, weights)) * abs(factor)
        noise = constant**2 * self.total_variance + noise_of_sums
        lacking = 0.0
        for axis, pure in single.items():
            known, hidden = map(float, self.columns[axis].parts_of_variance(pure))
            noise, lacking = noise + known, lacking + hidden
        for part, told in several.items():
            trust, squares = self.trust(part), told**2
            noise += float((squares * trust.noise).sum())
            lacking += float((squares * trust.lacking).sum())
        return noise, estimated**2 + lacking

    def _without_sums(self, parts: Sequence[_Part]) -> tuple[list[_Part], float]:
        """Parts without those that measured sums answer, and the variance of the noise of these."""
        left: list[_Part] = []
        summed: dict[tuple[int, int], FloatArray] = {}
        for part in parts:
            keys = [key for key in _both_ways(tuple(part.weights)) if key in self.sums]
            for axis, by in keys:
                told, fits = self.sums[axis, by].told(part.weights[axis][:, None])
                if fits[0]:
                    whole, of_value, none = part.factor * told[:, 0]
                    w = part.weights[by]
                    # The sums, and the numbers without a value.
                    new = np.stack([of_value * w, (none - whole) * w])
                    summed[axis, by] = summed.get((axis, by), 0.0) + new
                    left.append(_Part(float(whole), {by: w}))
                    break
            else:
                left.append(part)
        noise = sum(
            float((each**2).sum(axis=1) @ self.sums[key].variances) for key, each in summed.items()
        )
        return left, noise

    def _unmeasured(self, axes: Axes, weights: Weights) -> float:
        """Variance of what the rows add to the measured part of one product of weights."""
        if len(axes) < 2:
            return 0.0
        squares = {axis: weights[axis] ** 2 for axis in axes}
        whole = max(self._counted(squares), 1.0)
        pairs = []
        for pair in combinations(axes, 2):
            cut = self._cut(pair, {axis: weights[axis] for axis in pair})
            if cut > 0 and len(axes) > 2:
                both = max(self._counted({axis: squares[axis] for axis in pair}), 1.0)
                cut *= min(whole / both, 1.0) ** 2
            pairs.append(cut)
        found = max(pairs)
        for axis in axes:
            others = {other: weights[other] for other in axes if other != axis}
            found += self._cut_codes(axis, weights[axis], others)
        if len(axes) > 2 and axes not in self.coefficients.looks:
            found += TUNING.third * min(self._third(axis, whole, squares) for axis in axes)
        return found

    def _third(self, axis: int, whole: float, squares: Mapping[int, FloatArray]) -> float:
        """Variance of the share of a column among records that meet the other conditions.

        The share lies between that of the rows and that among all records.
        """
        others = {other: each for other, each in squares.items() if other != axis}
        count = max(self._counted(others), 1.0)
        alone = self._counted({axis: squares[axis]}) / max(self._total, 1.0)
        share = (min(whole / count, 1.0) + min(max(alone, 0.0), 1.0)) / 2
        strength = max(self.strength((min(axis, other), max(axis, other))) for other in others)
        return strength * count**2 * share * (1 - share)

    def _counted(self, weights: Weights) -> float:
        """What the rows count under weights."""
        axes = tuple(sorted(weights))
        stacked = {axis: weights[axis][:, None] for axis in axes}
        return self._total * float(self._of_rows(axes, stacked, 1)[0])

    def _cut_codes(self, axis: int, vector: FloatArray, others: Weights) -> float:
        """Variance of the parts of codes that a range covers in part.

        Records of a code may lie anywhere in it, the more so the more its count differs from those
        of its neighbours, among the records that meet the other conditions.
        """
        # What is left of a mean that was taken off is no part of a bin.
        cut = np.flatnonzero((vector > _WHOLE) & (vector < 1 - _WHOLE))
        if not 0 < len(cut) <= _MOST_CUT or vector.min() < 0 or vector.max() > 1:
            return 0.0
        found = 0.0
        for code in cut.tolist():
            near = np.arange(max(code - 1, 0), min(code + 2, len(vector)))
            counts = np.maximum(self._counts_of(axis, near, others), 0.0)
            inside = counts[code - near[0]]
            rough = float((np.abs(counts - inside) / np.maximum(counts + inside, 1e-300)).max())
            found += TUNING.heap * (rough * inside) ** 2
        return found

    def _counts_of(self, axis: int, codes: IntArray, others: Weights) -> FloatArray:
        """Counts of codes, among records that meet other conditions as the rows tell it."""
        if not others:
            return self.columns[axis].counts[codes]
        ones = np.zeros((self.shape[axis], len(codes)))
        ones[codes, np.arange(len(codes))] = 1.0
        stacked = {other: np.tile(others[other][:, None], len(codes)) for other in others}
        weights = {**stacked, axis: ones}
        return self._total * self._of_rows(tuple(sorted(weights)), weights, len(codes))

    def grid(self, pair: Axes) -> tuple[int, ...]:
        """Groups of each column in the finest table of a pair; 1 and 1 if none was measured."""
        return self.coefficients.grids.get(pair, (1, 1))

    def _block_counts(self, pair: Axes) -> FloatArray:
        """Counts of the blocks of the finest table of a pair, not negative."""
        key = "blocks", pair
        if key not in self._caches:
            sizes, ladders = self.grid(pair), self.coefficients.ladders
            table = self._row_cells_of(pair, sizes)
            for place, (axis, size) in enumerate(zip(pair, sizes, strict=True)):
                own = ladders[axis].sums(self._column_residual(axis), size)
                pure = (own - own.mean()) / sizes[1 - place]
                table = table + (pure[:, None] if place == 0 else pure[None, :])
            if pair in self.coefficients.looks:
                told = self._residual(pair)[tuple(slice(0, size - 1) for size in sizes)]
                hat = np.zeros(sizes)
                hat[1:, 1:] = told / math.sqrt(
                    math.prod(
                        size / ladders[axis].n_units for axis, size in zip(pair, sizes, strict=True)
                    )
                )
                for place, axis in enumerate(pair):
                    hat = along(self.coefficients.functions(axis, sizes[place]), hat, place)
                table = table + hat
            self._caches[key] = np.maximum(table, 0.0)
        return self._caches[key]

    def _cut(self, pair: Axes, weights: Weights) -> float:
        """Variance of the part of blocks that a question cuts."""
        sizes = self.grid(pair)
        means, squares = [], []
        for axis, size in zip(pair, sizes, strict=True):
            ladder = self.coefficients.ladders[axis]
            mass = np.maximum(self.columns[axis].counts, 0.0) + 1e-9
            block = ladder.sums(mass, size)
            vector = weights[axis]
            safe = np.where(block > 0, block, 1.0)
            means.append(ladder.sums(mass * vector, size) / safe)
            squares.append(ladder.sums(mass * vector**2, size) / safe)
        mean = np.multiply.outer(*means)
        spread = np.maximum(np.multiply.outer(*squares) - mean**2, 0.0)
        if not spread.any():
            return 0.0
        counts = self._block_counts(pair)
        return TUNING.cut * self.strength(pair) * float((counts**2 * spread).sum())

    def strength(self, pair: Axes) -> float:
        """How strongly a pair depends on each other, from 0 to 1, no less than was measured."""
        key = "strength", pair
        if key not in self._caches:
            self._caches[key] = self._measured_strength(pair)
        return self._caches[key]

    def _measured_strength(self, pair: Axes) -> float:
        total = max(self._total, 1.0)
        look = self.coefficients.looks.get(pair)
        if look is None:
            return self._typical_strength()
        ladders = self.coefficients.ladders
        # The mean square contingency of coarse groups, without what noise adds to it.
        sizes = self._coarse_sizes(pair)
        hat, variance = look.values, look.variances
        cut = tuple(slice(0, size - 1) for size in sizes)
        units = [ladders[axis].n_units for axis in pair]
        scale = math.prod(unit / size for unit, size in zip(units, sizes, strict=True))
        pure = np.zeros(sizes)
        pure[1:, 1:][tuple(slice(0, s) for s in hat[cut].shape)] = hat[cut] * math.sqrt(scale)
        noise = float(variance[cut].mean()) * scale
        margins = [
            np.maximum(ladders[axis].sums(self.columns[axis].counts, size), 0.02 * total / size)
            for axis, size in zip(pair, sizes, strict=True)
        ]
        expected = np.multiply.outer(*margins) / total
        table = pure
        for place, axis in enumerate(pair):
            table = along(self.coefficients.functions(axis, sizes[place]), table, place)
        told = float((table**2 / expected).sum()) / total
        by_chance = noise * float((1 / expected).sum()) / total
        spread = noise * math.sqrt(2 * float((1 / expected**2).sum())) / total
        found = max(told - by_chance, 0.0) + TUNING.surprise * spread
        return min(found / TUNING.dependence, 1.0)

    def _typical_strength(self) -> float:
        """Of pairs that were not measured."""
        if self.misfit is not None:
            # A distance that is a product of normal factors of each column has (pi / 2)**2 times
            # the squared mean distance as its mean square; of distances that are spread as by an
            # exponential law, the mean square is twice the square of the mean.
            return min(2.0 * (math.pi / 2 * self.misfit) ** 2 / TUNING.cut, 1.0)
        measured = [axes for axes in self.coefficients.looks if len(axes) == 2]
        if not measured:
            return 1.0
        return float(np.median([self.strength(pair) for pair in measured]))

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Counts for every combination of the codes of one or two attributes, without bias."""
        if len(axes) == 1:
            [axis] = axes
            if axis not in self.columns:
                alone = np.zeros(self.shape[axis])
                alone[self._only(axis)] = self._total
                return alone
            if self.cells is not None:
                return self._total * self._row_counts(axis)
            return self.columns[axis].counts.copy()
        a, b = axes
        if a > b:
            return self.view([b, a]).T
        if a not in self.columns or b not in self.columns:
            # One of them has one code that records can have.
            first, second = self.view([a]), self.view([b])
            return np.outer(first, second) / (self._total if self._total else 1.0)
        table = self._total * self._row_table(axes)
        if self.cells is not None:
            return table
        sizes = [self._size(axis, (a, b)) for axis in (a, b)]
        spread = [self._mixing(axis, size) for axis, size in zip((a, b), sizes, strict=True)]
        for place, axis in enumerate(axes):
            residual = self._column_residual(axis)
            # What a weight of 1 for a code adds to the mean of groups.
            means = [shares * filled.mean(axis=0)[group] for group, shares, filled in spread]
            pure = residual - means[place] * residual.sum()
            other = means[1 - place]
            table += np.multiply.outer(pure, other) if place == 0 else np.outer(other, pure)
        if (a, b) in self.coefficients.looks:
            hat = self._residual((a, b))
            for place, (axis, size) in enumerate(zip((a, b), sizes, strict=True)):
                functions = self.coefficients.functions(axis, size)[:, 1:]
                functions = functions * math.sqrt(self.coefficients.ladders[axis].n_units / size)
                hat = along(spread[place][2].T @ functions[:, : hat.shape[place]], hat, place)
            hat = hat[np.ix_(*(group for group, _, _ in spread))]
            table += hat * np.multiply.outer(*(shares for _, shares, _ in spread))
        if (a, b) in self.possible:
            table = np.where(self.possible[a, b], table, 0.0)
        return table

    # ---------------------------------------------------------------- files

    def __getstate__(self) -> dict[str, Any]:
        state = self.to_arrays()
        return {"shape": list(self.shape), "facts": state[0], "arrays": state[1]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        again = type(self).from_arrays(tuple(state["shape"]), state["facts"], state["arrays"])
        self.__dict__.update(again.__dict__)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts, arrays = super().to_arrays()
        columns = []
        for axis in sorted(self.columns):
            each, ladder = self.columns[axis], self.coefficients.ladders[axis]
            columns.append(
                {
                    "axis": axis,
                    "blocks": list(each.sizes),
                    "variances": [[size, value] for size, value in each.variances.items()],
                    "total_variance": each.total_variance,
                    "groups": list(ladder.sizes),
                    "looks": 0 if each.looks is None else len(each.looks[1]),
                }
            )
        looks = self.coefficients.looks
        facts["columns"] = columns
        facts["looks"] = [
            [list(axes), list(np.shape(look.values)), list(self.coefficients.grids.get(axes, ()))]
            for axes, look in looks.items()
        ]
        facts["possible"] = [list(axes) for axes in self.possible]
        facts["followed"] = [list(axes) for axes in self.followed]
        facts["misfit"] = self.misfit
        facts["cells"] = None if self.cells is None else list(self.cells)
        facts["sums"] = [[*key, *map(float, each.variances)] for key, each in self.sums.items()]
        for name in ("values", "has_value", "missing", "sums", "n_missing"):
            vectors = [getattr(each, name).astype(np.float64) for each in self.sums.values()]
            if vectors:
                arrays[f"sums_{name}"] = _chained(vectors)
        if self.prior:
            facts["prior"] = self.prior
        order = sorted(self.columns)
        arrays["counts"] = _chained([self.columns[axis].counts for axis in order])
        arrays["units"] = _chained([self.coefficients.ladders[axis].units for axis in order])
        arrays["finer"] = _chained([self.columns[axis].finer[0] for axis in order])
        arrays["finer_estimated"] = _chained([self.columns[axis].finer[1] for axis in order])
        arrays["margin_variances"] = _chained(
            [each.looks[1] for axis in order if (each := self.columns[axis]).looks is not None]
        )
        arrays["look_values"] = _chained([np.ravel(look.values) for look in looks.values()])
        arrays["look_precision"] = _chained([np.ravel(look.precision) for look in looks.values()])
        if self.possible:
            arrays["possible"] = _chained(
                [mask.ravel().astype(np.int8) for mask in self.possible.values()]
            )
        return facts, arrays

    def to_page(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What the script of a page answers from."""
        facts, arrays = self.to_arrays()
        kept = ("columns", "looks", "possible", "cells", "sums", "prior", "misfit")
        for name in ("rows", "marginals", "tables", "groups"):
            arrays.pop(name, None)
        arrays |= {f"rows{axis}": codes for axis, codes in enumerate(self.rows.T)}
        # Cut and given to the sets in the order of the looks.
        trusts = [self.trust(axes) for axes in self.coefficients.looks if len(axes) > 1]
        for name in Trust._fields:
            arrays[f"trust_{name}"] = _chained([getattr(each, name).ravel() for each in trusts])
        return {name: facts.get(name) for name in kept}, arrays

    @classmethod
    def from_arrays(
        cls,
        shape: tuple[int, ...],
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> ViewsModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        rows_model = TreeModel.from_arrays(shape, facts, arrays)
        finite = ("counts", "margin_variances", "finer", "finer_estimated")
        for name in (*finite, "look_values", "look_precision"):
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} must be finite")
        possible: dict[Axes, BoolArray] = {}
        if facts["possible"]:
            masks = _Cutter(arrays["possible"])
            for axes in facts["possible"]:
                key = tuple(int(axis) for axis in axes)
                sizes = [shape[axis] for axis in key]
                possible[key] = masks.take(math.prod(sizes)).reshape(sizes).astype(bool)
        counts, units = _Cutter(arrays["counts"]), _Cutter(arrays["units"])
        margins = _Cutter(arrays["margin_variances"])
        finer, lacking = _Cutter(arrays["finer"]), _Cutter(arrays["finer_estimated"])
        columns: dict[int, ColumnEstimate] = {}
        ladders: dict[int, Ladder] = {}
        for each in facts["columns"]:
            axis = int(each["axis"])
            size, allowed = shape[axis], possible.get((axis,))
            ladder = Ladder(units.take(size).astype(np.int64), _levels(each["groups"]))
            if ladder.units.min() < 0 or ladder.units.max() >= ladder.n_units:
                raise ValueError("the units of a column do not fit its groups")
            variances = {int(blocks): float(value) for blocks, value in each["variances"]}
            blocks = _levels(each["blocks"])
            if not variances or not {*variances} <= {*blocks} or not _positive(*variances.values()):
                raise ValueError("the variances of a column do not fit its blocks")
            n_inside = size if allowed is None else int(allowed.sum())
            if blocks[-1] < n_inside or not _positive(float(each["total_variance"])):
                raise ValueError("the blocks of a column do not fit the domain")
            column = ColumnEstimate(size, blocks, variances, float(each["total_variance"]))
            column.codes = None if allowed is None else np.flatnonzero(allowed)
            column.counts = counts.take(size).astype(np.float64)
            n_finer = len(column.finer[0])
            column.finer = finer.take(n_finer), lacking.take(n_finer)
            if n_finer and not (column.finer[0] > 0).all() or (column.finer[1] < 0).any():
                raise ValueError("the variances of a column must be positive")
            if each["looks"]:
                found = margins.take(int(each["looks"]))
                if len(found) >= ladder.n_units or found.min() <= 0:
                    raise ValueError("the looks at a column do not fit its groups")
                column.join(ladder, None, found)
            columns[axis], ladders[axis] = column, ladder
        several = {
            axis
            for axis, size in enumerate(shape)
            if possible.get((axis,), np.ones(size)).sum() > 1
        }
        if {*columns} != several:
            raise ValueError("the columns do not fit the domain")
        coefficients = Coefficients(ladders)
        values, precision = _Cutter(arrays["look_values"]), _Cutter(arrays["look_precision"])
        for axes, sizes, grid in facts["looks"]:
            key = tuple(int(axis) for axis in axes)
            if list(key) != sorted({*key} & {*columns}) or len(sizes) != len(key):
                raise ValueError("a table is not of columns of the domain")
            for axis, size in zip(key, sizes, strict=True):
                if size + 1 not in ladders[axis].sizes:
                    raise ValueError("a table does not fit the groups of its columns")
            n = math.prod(sizes)
            look = Look(values.take(n).reshape(sizes), precision.take(n).reshape(sizes))
            if (look.precision < 0).any():
                raise ValueError("precisions must not be negative")
            coefficients.looks[key] = look
            if grid:
                if len(grid) != len(key) or any(
                    size not in ladders[axis].sizes for axis, size in zip(key, grid, strict=True)
                ):
                    raise ValueError("a grid does not fit the groups of its columns")
                coefficients.grids[key] = tuple(int(size) for size in grid)
        if () not in coefficients.looks or not (coefficients.looks[()].precision > 0).all():
            raise ValueError("the total is missing")
        cells = None if facts["cells"] is None else tuple(float(each) for each in facts["cells"])
        if cells is not None and not (len(cells) == 2 and all(0 <= x < math.inf for x in cells)):
            raise ValueError("the variances of joint counts must be two, not negative")
        sums = _sums_of(facts["sums"], arrays, shape, several)
        prior = str(facts.get("prior", ""))
        followed = [tuple(int(axis) for axis in axes) for axes in facts["followed"]]
        if not all({*axes} <= {*columns} for axes in followed):
            raise ValueError("the rows follow a table that is not of columns of the domain")
        misfit = None if facts["misfit"] is None else float(facts["misfit"])
        if misfit is not None and not 0 <= misfit < math.inf:
            raise ValueError("a distance from the rows must not be negative")
        return cls(
            rows_model, columns, coefficients, possible, cells, sums, prior, followed, misfit
        )  # fmt: skip


def _sums_of(
    facts: Sequence[Any],
    arrays: Mapping[str, NDArray[Any]],
    shape: tuple[int, ...],
    columns: set[int],
) -> dict[tuple[int, int], MeasuredSums]:
    """Measured sums from a file."""
    found: dict[tuple[int, int], MeasuredSums] = {}
    if not facts:
        return found
    cut = {name: _Cutter(arrays[f"sums_{name}"]) for name in MeasuredSums._fields[:-1]}
    for axis, by, *variances in facts:
        axis, by = int(axis), int(by)
        if axis == by or not {axis, by} <= columns:
            raise ValueError("sums are not of columns of the domain")
        if len(variances) != 2 or not all(0 <= float(each) < math.inf for each in variances):
            raise ValueError("the variances of sums must be two, not negative")
        read = {
            name: each.take(shape[axis if name in ("values", "has_value", "missing") else by])
            for name, each in cut.items()
        }
        if not all(np.isfinite(each).all() for each in read.values()):
            raise ValueError("sums must be finite")
        found[axis, by] = MeasuredSums(
            read["values"],
            read["has_value"].astype(bool),
            read["missing"].astype(bool),
            read["sums"],
            read["n_missing"],
            (float(variances[0]), float(variances[1])),
        )
    return found


class _Cutter:
    """Takes arrays from one that holds them one after the other."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self._at = array, 0

    def take(self, n: int) -> NDArray[Any]:
        """The next numbers; ValueError if there are too few."""
        found = self._array[self._at : self._at + n]
        if len(found) != n:
            raise ValueError("an array of the file is too short")
        self._at += n
        return found


def _levels(sizes: Sequence[int]) -> tuple[int, ...]:
    """Numbers of blocks of the levels of a tree; ValueError if they do not divide each other."""
    found = tuple(int(size) for size in sizes)
    if not found or found[0] != 1 or any(b % a or b <= a for a, b in pairwise(found)):
        raise ValueError("levels must begin with 1, and each must divide the next")
    return found


def _positive(*numbers: float) -> bool:
    """Whether all are positive and finite."""
    return all(0 < number < math.inf for number in numbers)


def _chained(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0)


def _both_ways(axes: Axes) -> list[tuple[int, int]]:
    """A pair of columns in both orders; nothing for more or fewer columns."""
    return [(axes[0], axes[1]), (axes[1], axes[0])] if len(axes) == 2 else []


def _times(factors: Sequence[FloatArray]) -> FloatArray | float:
    """Product of arrays; 1 of none."""
    found: FloatArray | float = 1.0
    for factor in factors:
        found = found * factor
    return found


def _merged(parts: Sequence[_Part]) -> list[_Part]:
    """Parts that differ in one column only, as one."""
    found: list[_Part] = []
    for part in parts:
        for place, other in enumerate(found):
            one = _joined(other, part)
            if one is not None:
                found[place] = one
                break
        else:
            found.append(part)
    return found


def _joined(first: _Part, second: _Part) -> _Part | None:
    axes = {*first.weights, *second.weights}
    differing = []
    for axis in axes:
        a, b = first.weights.get(axis), second.weights.get(axis)
        if a is None or b is None or not np.array_equal(a, b):
            differing.append(axis)
    if len(differing) > 1:
        return None
    if not differing:
        return _Part(first.factor + second.factor, first.weights)
    [axis] = differing
    known = first.weights.get(axis, second.weights.get(axis))
    assert known is not None
    ones = np.ones(len(known))
    vector = first.factor * first.weights.get(axis, ones) + second.factor * second.weights.get(
        axis, ones
    )
    if (vector == vector[0]).all():
        rest = {a: w for a, w in first.weights.items() if a != axis}
        return _Part(float(vector[0]), rest if vector[0] else {})
    return _Part(1.0, {**first.weights, **second.weights, axis: vector})
