"""A population of rows that follows released views: proportional fitting and Gibbs steps.

The model is a product of factors, one for each view. Proportional fitting scales factors until the
weighted rows have the margins wanted; then rows are drawn again by their weights, and column by
column given the others. So the rows stay many different ones, however many views there are.
Post-processing of released numbers.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..._validation import TINY, BoolArray, CodeArray, FloatArray, IntArray, ratio, running_sums
from ...domain import Zeros
from ...release.basis import EffectLaw
from ...release.marginals import inverse

# Logarithm of a factor that stands for an impossible combination.
_NEVER = float(np.log(np.finfo(np.float32).tiny))
# What is taken off that of one that rules forbid: more than any view can outweigh.
_FORBIDDEN = 1e4
# Numbers held at once while a column is drawn.
_CHUNK = 1 << 17
# The same while margins of pairs are counted.
_CHUNK_OF_CODES = 1 << 22

Axes = tuple[int, ...]
# What the margins of some attributes should be: probabilities, one axis for each attribute.
Targets = Mapping[Axes, FloatArray]

# Single precision is enough to draw a code, and takes half the time.
Logs: TypeAlias = NDArray[np.float32]


# ------------------------------------------------------------------------------------------------
# The numbers of views that change a release, each with unit, meaning and what chose it.
#
# "Plan": errors of questions on all tables but one, by value. "Questions":
# ``benchmarks/questions.py``. "Fidelity": marginals and ranges of the tables of
# ``benchmarks/_fidelity_tables.py``.


@dataclass(frozen=True)
class Tuning:
    """How epsilon is divided, what is measured, and how rows follow it."""

    # ---------------------------------------------------------------- shares of epsilon

    # By how much "ranges" raises the budget of single columns, and "cells" lowers it; questions.
    word: float = 2.0
    # Share that the choice of sets takes, and what of it the distances of the others; questions.
    choice: Fraction = Fraction(1, 20)
    rest: Fraction = Fraction(2, 5)
    # Share of single columns beside one table of all, and joint counts; plan.
    beside: Fraction = Fraction(1, 10)
    # Mean distance of pairs of columns from independent ones, as a share of the records, for each
    # ordered column and one more: its median over tables, and the standard deviation of its
    # logarithm; distances of the tables of ``benchmarks/_question_tables.py``.
    dependence: float = 0.07
    unlike: float = 0.8

    # ---------------------------------------------------------------- what is measured

    # The square of the number of sets, for each unit of records times epsilon and cell; plan.
    sets: float = 2.0
    # Records times epsilon of a mean cell from which on all columns are one table; plan.
    whole: float = 5.0
    # Empty cells that may pass as joint counts, for each record and for each empty cell; fidelity.
    false: float = 0.01

    # ---------------------------------------------------------------- groups of codes

    # Most groups of a column in tables of several; fidelity.
    groups: int = 128
    # Columns of at most so many codes have a group for each; fidelity.
    few: int = 16
    # Blocks of a column, for each cube root of its records times epsilon; the share of its budget
    # that they take; and after how many halvings it is measured again; questions.
    blocks: float = 4.5
    of_blocks: Fraction = Fraction(7, 10)
    halvings: int = 3

    # ---------------------------------------------------------------- the choice of sets

    # Bins of an attribute in the scores of sets; fidelity.
    bins: int = 8

    # ---------------------------------------------------------------- rows

    # Rows that are fitted first, and in the end at least; questions.
    rows: int = 30_000
    # Rows of a trial that asks for the sizes of errors only, and of the public table that it reads;
    # widths of `tests/test_expected.py`.
    rows_of_trial: int = 10_000
    # Sweeps of fitting few rows and then all; weights alone have twice as many; questions.
    sweeps: int = 2
    # Share of the rows that take a new code when a column is drawn again; questions.
    redrawn: float = 0.25
    # Share of a step of a factor that is taken: the steps of views that overlap add up; fidelity.
    damped: float = 0.5
    # A model's count below this is as uncertain as this one, in standard deviations of the noise;
    # fidelity.
    floor: float = 0.02
    # Share of even widths in the mass by which codes are grouped; fidelity.
    kept: float = 0.1
    # Standard deviations by which a prior must be nearer to tables to be used;
    # `tests/algorithms/marginals/test_prior.py`.
    clear: float = 2.0
    # Records that rows without a prior count for beside those of one; the same tests.
    without: float = 200.0


TUNING = Tuning()

# What rounding may leave of a probability of zero.
_EVEN = 1e-15
# A table of several columns has at most so many cells, and there are at most so many rows.
MOST_CELLS = 1 << 18
ROWS_ONCE = 100_000


# --- what rows need to know of a column, all released or public


class Attribute(NamedTuple):
    """Released probabilities of an attribute, and the groups that rows tell apart.

    Attributes
    ----------
    mu : ndarray of float64
        Probability of each code.
    groups : ndarray of int64
        Group of each code, without gaps.
    order : ndarray of int64
        Groups in the order in which they are cut.
    """

    mu: FloatArray
    groups: IntArray
    order: IntArray

    @property
    def grouped(self) -> FloatArray:
        """Probability of each group."""
        return np.bincount(self.groups, weights=self.mu).astype(np.float64, copy=False)

    def codes(self, drawn: NDArray[np.integer], generator: np.random.Generator) -> NDArray[Any]:
        """Codes drawn inside of the given groups by their probabilities."""
        if len(self.order) == len(self.mu):
            return drawn
        sequence = np.argsort(self.groups, kind="stable")
        ends = np.searchsorted(self.groups[sequence], np.arange(len(self.order) + 1))
        first, stop = ends[drawn], ends[drawn + 1]
        # Codes of a group of probability zero are equally likely.
        reach = running_sums(self.mu[sequence] + _EVEN)
        wanted = reach[first] + generator.random(len(drawn)) * (reach[stop] - reach[first])
        found = np.searchsorted(reach, wanted, side="right") - 1
        return sequence[np.clip(found, first, stop - 1)]


def equal_mass_bins(mass: FloatArray, order: IntArray, n_bins: int) -> IntArray:
    """Bin of each code: consecutive in the order, about equal in mass, without gaps."""
    ordered = mass[order]
    middle = (np.cumsum(ordered) - ordered / 2) / max(ordered.sum(), 1e-300)
    wanted = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    bins = np.empty(len(mass), dtype=np.int64)
    bins[order] = np.unique(wanted, return_inverse=True)[1].reshape(-1)
    return bins


def between_groups(mass: FloatArray, groups: IntArray, size: int, ordered: IntArray) -> FloatArray:
    """What makes values of codes, (n_codes, size), from those of consecutive groups of them.

    Values of ordered codes are linear in normal scores of ranks between the middles of groups, and
    for one step beyond, as the logarithm of the density of normal variables is in each of them. The
    others have the values of their groups.
    """
    found, own = np.eye(size)[groups], groups[ordered]
    mass = np.maximum(mass[ordered], 0.0) + TINY
    scores = ndtri((np.cumsum(mass) - mass / 2.0) / mass.sum())
    middles = np.bincount(own, mass * scores, size) / np.maximum(np.bincount(own, mass, size), TINY)
    held = np.unique(own)
    middles = middles[held]
    if len(held) < 2 or not (np.diff(middles) > 0).all():
        return found
    at = np.clip(np.searchsorted(middles, scores) - 1, 0, len(held) - 2)
    steps = np.clip((scores - middles[at]) / np.diff(middles)[at], -1.0, 2.0)[:, None]
    found[ordered] = (1.0 - steps) * np.eye(size)[held[at]] + steps * np.eye(size)[held[at + 1]]
    return found


# --- a prior: public rows, or those of an earlier release, that rows start from

# Privacy. Nothing here costs anything: the prior is public or was charged when it was released, and
# it is compared with released numbers alone. Tables and their noise are those of a release without
# a prior; only which sets are chosen, and which rows agree with the tables, follow from it.


class Prior(NamedTuple):
    """Weighted rows.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
        Codes.
    weights : ndarray of float64, shape (n_rows,)
        Shares of the records; they add up to 1.
    worth : float
        Number of independent records that tell as much.
    name : str
        What the release says of it: kind and fingerprint.
    """

    rows: CodeArray
    weights: FloatArray
    worth: float
    name: str

    @classmethod
    def of(cls, codes: CodeArray, kind: str) -> Prior:
        """Rows that are all different, from codes of at least one record."""
        rows, counts = np.unique(codes, axis=0, return_counts=True)
        coded = np.column_stack([rows, counts]).astype("<i8")
        name = f"{kind}, SHA-256 {hashlib.sha256(coded.tobytes()).hexdigest()}"
        return cls(rows.astype(np.int32), counts / len(codes), float(len(codes)), name)


def nearer_to(
    second: Population,
    first: Population,
    tables: Sequence[tuple[Axes, Sequence[IntArray], FloatArray, float]],
    records: float,
) -> bool:
    """Whether released tables are clearly nearer to the second of two populations.

    The squared distances of each cell are compared, in units of the variance of its noise and of a
    sample: twice the log likelihood ratio, whose standard deviation is known. Of each table its
    columns, their groups, noisy counts, and the variance of their noise.
    """
    nearer = doubt = 0.0
    for axes, groups, told, variance in tables:
        one, two = (
            records * rows.grouped(axes, groups, told.shape).margin(axes)
            for rows in (first, second)
        )
        spread = variance + (one + two) / 2
        nearer += float((((told - one) ** 2 - (told - two) ** 2) / spread).sum())
        doubt += float((4 * (two - one) ** 2 / spread).sum())
    return nearer > TUNING.clear * math.sqrt(doubt)


# --- rows that follow targets


class Population:
    """Rows drawn from a product of factors.

    Parameters
    ----------
    attributes : sequence of Attribute
        The first model, of independent columns; their groups are the codes of the population.
    rows : ndarray of int32, shape (n_rows, n_attributes)
        Codes of rows drawn from it.
    zeros : Zeros
        Combinations of codes that rules allow; rows break none of them.
    generator : numpy.random.Generator
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        rows: CodeArray,
        zeros: Zeros,
        generator: np.random.Generator,
    ) -> None:
        self.sizes = [len(each.order) for each in attributes]
        self._generator = generator
        self._allowed = {
            axes: _grouped(axes, allowed, attributes) for axes, allowed in zeros.items()
        }
        self.columns = _groups_of(attributes, rows)
        self.weights = np.full(len(rows), 1.0 / len(rows))
        # Logarithms of a table over the codes of some attributes; none is so small that later
        # tables could not raise it.
        self._factors: dict[Axes, FloatArray] = {
            axes: np.log(np.maximum(shares, TINY)) for axes, shares in alone_of(attributes).items()
        }

    @classmethod
    def of(
        cls,
        attributes: Sequence[Attribute],
        zeros: Zeros,
        n_rows: int,
        generator: np.random.Generator,
    ) -> Population:
        """Rows of attributes that depend on each other through the rules only."""
        columns = [
            each.codes(inverse(each.grouped, generator.random(n_rows)), generator)
            for each in attributes
        ]
        rows = zeros.mended(np.stack(columns, axis=1).astype(np.int32))
        rows = np.concatenate([rows, *_lacking(rows, attributes, zeros)])
        found = cls(attributes, rows, zeros, generator)
        if zeros:
            found.fit(alone_of(attributes), 2 * TUNING.sweeps)
        return found

    def with_prior(self, prior: Prior, attributes: Sequence[Attribute], zeros: Zeros) -> Population:
        """Rows of a prior, and with a small weight those here, which have what it lacks.

        Its weights are settled only: rows drawn again would forget what the prior knows.
        """
        found = copy.copy(self)
        kept = ~zeros.breaks(prior.rows)
        share = prior.worth / (prior.worth + TUNING.without)
        weights = share * prior.weights[kept]
        found.weights = np.concatenate([weights, (1 - share) * self.weights])
        found.weights /= found.weights.sum()
        own = _groups_of(attributes, prior.rows[kept])
        found.columns = [np.concatenate(both) for both in zip(own, self.columns, strict=True)]
        return found

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weights)

    def margin(self, axes: Sequence[int]) -> FloatArray:
        """Weighted shares of the combinations of codes of some attributes."""
        sizes = [self.sizes[axis] for axis in axes]
        found = np.bincount(self._cells(axes), weights=self.weights, minlength=math.prod(sizes))
        return found.astype(np.float64, copy=False).reshape(sizes)

    def margins_of_pairs(self, first: int, last: int) -> FloatArray:
        """Weighted shares of the codes of columns first to last - 1 with those from first on.

        Rows are the codes of the former, columns those of the latter, side by side.
        """
        starts = np.cumsum([0, *self.sizes[first:]])
        n_codes = starts[last - first]
        found = np.zeros((n_codes, starts[-1]))
        step = max(1, _CHUNK_OF_CODES // len(found[0]))
        for begin in range(0, self.n_rows, step):
            part = slice(begin, begin + step)
            held = np.zeros((len(self.weights[part]), len(found[0])))
            for start, column in zip(starts, self.columns[first:], strict=False):
                held[np.arange(len(held)), start + column[part]] = 1.0
            found += (held[:, :n_codes] * self.weights[part, None]).T @ held
        return found

    def grouped(
        self, axes: Sequence[int], groups: Sequence[IntArray], sizes: Sequence[int]
    ) -> Population:
        """The rows with groups, of which there are so many, in place of the codes of columns."""
        found = copy.copy(self)
        found.sizes, found.columns = [*self.sizes], [*self.columns]
        for axis, each, size in zip(axes, groups, sizes, strict=True):
            found.sizes[axis] = size
            found.columns[axis] = each.astype(np.int32)[self.columns[axis]]
        return found

    def fit(self, targets: Targets, sweeps: int) -> None:
        """Move factors and rows until the margins are those wanted.

        Each column in turn is drawn again for some of the rows, and the tables that hold it are
        fitted again: if all rows followed factors that were moved together, what these have too
        much would add up. Without sweeps the rows stay, and have other weights.
        """
        if not sweeps:
            self.scale(targets)
        own = [
            {axes: table for axes, table in targets.items() if axis in axes}
            for axis in range(len(self.sizes))
        ]
        for _ in range(sweeps):
            self.scale(targets)
            self.resample(self.n_rows)
            for axis in self._generator.permutation(len(self.sizes)).tolist():
                if self.sizes[axis] > 1:
                    self._draw(axis)
                    self.scale(own[axis])

    def scale(self, targets: Targets) -> None:
        """Proportional fitting of the weights, and of the factors with them."""
        # As if one more row lay in each cell.
        least = 1.0 / self.n_rows
        for axes, table in targets.items():
            cell = self._cells(axes)
            found = np.bincount(cell, weights=self.weights, minlength=table.size)
            step = np.log((table.ravel() + least) / (found + least)) * TUNING.damped
            self.weights *= np.exp(step)[cell]
            before = self._factors.get(axes, 0.0)
            self._factors[axes] = np.maximum(before + step.reshape(table.shape), _NEVER)
        self.weights /= self.weights.sum()

    def settle(self, targets: Targets, rounds: int = 2 * TUNING.sweeps) -> None:
        """Proportional fitting of the weights alone: the rows stay as they are.

        Rows cannot meet all tables at once where some cells have none. Single columns come last:
        they are known best, and asked for most.
        """
        wide = sorted(targets.items(), key=lambda target: -len(target[0]))
        cells = [(table, self._cells(axes)) for axes, table in wide]
        for table, cell in cells * rounds:
            found = np.bincount(cell, weights=self.weights, minlength=table.size)
            self.weights *= ((table.ravel() + TINY) / (found + TINY))[cell]
        self.weights /= self.weights.sum()

    def in_codes(
        self, attributes: Sequence[Attribute], targets: Targets, zeros: Zeros
    ) -> tuple[CodeArray, FloatArray]:
        """Rows with codes drawn inside of groups, which break no rule, and their weights."""
        drawn = zip(attributes, self.columns, strict=True)
        codes = [each.codes(column, self._generator) for each, column in drawn]
        # Column by column in memory.
        rows = np.stack(codes).astype(np.int32, copy=False).T
        # Codes inside of groups were drawn without a look at the rules.
        found = zeros.mended(rows)
        if found is not rows:
            # Codes that replace others move the margins; weights move them back.
            self.columns = _groups_of(attributes, found)
            self.settle(targets)
        return found, self.weights

    def resample(self, n_rows: int) -> None:
        """Rows of equal weights, drawn by their weights."""
        reach = np.cumsum(self.weights)
        at = (np.arange(n_rows) + self._generator.random()) / n_rows
        chosen = np.minimum(np.searchsorted(reach / reach[-1], at), self.n_rows - 1)
        self.columns = [column[chosen] for column in self.columns]
        self.weights = np.full(n_rows, 1.0 / n_rows)

    def _draw(self, axis: int) -> None:
        """Draw one column of some rows given the others, from the factors that hold it."""
        barriers = {axes: (each - 1.0) * _FORBIDDEN for axes, each in self._allowed.items()}
        factors = [*self._factors.items(), *barriers.items()]
        again = np.flatnonzero(self._generator.random(self.n_rows) < TUNING.redrawn)
        u = self._generator.random(len(again))
        # Of each table the lines along the column, one for each combination of the others.
        lines = [
            (axes, np.moveaxis(log, axes.index(axis), -1).astype(np.float32, order="C"))
            for axes, log in factors
            if axis in axes
        ]
        drawn = self.columns[axis].copy()
        step = max(1, _CHUNK // self.sizes[axis])
        for first in range(0, len(again), step):
            rows = again[first : first + step]
            drawn[rows] = _drawn(self._logs(axis, lines, rows), u[first : first + step])
        self.columns[axis] = drawn

    def _logs(self, axis: int, lines: Sequence[tuple[Axes, Logs]], rows: IntArray) -> Logs:
        """Sums of the logarithms of factors for each code of an attribute, (n_rows, size)."""
        total = np.zeros((len(rows), self.sizes[axis]), dtype=np.float32)
        for axes, own in lines:
            cell = np.zeros(len(rows), dtype=np.int64)
            for other in axes:
                if other != axis:
                    cell = cell * self.sizes[other] + self.columns[other][rows]
            total += np.take(own.reshape(-1, own.shape[-1]), cell, axis=0)
        return total

    def possible(self, axes: Sequence[int]) -> BoolArray:
        """Which combinations of codes no rule among these attributes forbids."""
        allowed = np.ones([self.sizes[axis] for axis in axes], dtype=bool)
        for held, each in self._allowed.items():
            if set(held) <= set(axes):
                allowed &= each.reshape([self.sizes[axis] if axis in held else 1 for axis in axes])
        return allowed

    def _cells(self, axes: Sequence[int]) -> IntArray:
        columns, sizes = zip(
            *((self.columns[axis], self.sizes[axis]) for axis in axes), strict=True
        )
        return np.ravel_multi_index(columns, sizes)


def alone_of(attributes: Sequence[Attribute]) -> dict[Axes, FloatArray]:
    """The margins of single columns."""
    return {(axis,): each.grouped for axis, each in enumerate(attributes)}


def _lacking(rows: CodeArray, attributes: Sequence[Attribute], zeros: Zeros) -> Iterator[CodeArray]:
    """A row of each group of codes that independent rows have and these do not.

    Rules may leave it few partners, so that no row kept to them by chance; drawing one column at a
    time would never find it.
    """
    for axis in sorted({axis for axes in zeros for axis in axes}):
        each = attributes[axis]
        held = np.bincount(each.groups[rows[:, axis]], minlength=len(each.order))
        for group in np.flatnonzero((held == 0) & (each.grouped * len(rows) >= 1)).tolist():
            row = rows[group % len(rows)].copy()
            codes = {axis: np.flatnonzero(each.groups == group)}
            found = zeros.nearest(dict(enumerate(row.tolist())), codes) or {}
            row[[*found]] = [*found.values()]
            yield row[None]


def _grouped(axes: Axes, allowed: BoolArray, attributes: Sequence[Attribute]) -> BoolArray:
    """Allowed combinations of groups of codes: those with an allowed combination of codes."""
    for place, axis in enumerate(axes):
        groups = attributes[axis].groups
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        allowed = np.logical_or.reduceat(allowed.take(order, place), starts, axis=place)
    return allowed


def _groups_of(attributes: Sequence[Attribute], rows: CodeArray) -> list[CodeArray]:
    """Columns of the groups of rows of codes."""
    pairs = zip(attributes, rows.T, strict=True)
    return [each.groups.astype(np.int32)[column] for each, column in pairs]


def _drawn(logs: Logs, u: FloatArray) -> IntArray:
    """A code for each row, by its own shares."""
    # Whole columns of many rows at a time: short rows keep a processor waiting.
    reach = np.ascontiguousarray(logs.T)
    reach -= reach.max(axis=0)
    np.exp(reach, out=reach)
    for before, line in itertools.pairwise(reach):
        line += before
    at = (u * reach[-1]).astype(np.float32)
    drawn = np.zeros(len(u), dtype=np.int64)
    for line in reach[:-1]:
        drawn += line <= at
    return drawn


def posterior_mean(noisy: FloatArray, variance: float, model: FloatArray) -> FloatArray:
    """Expected true counts of cells, given noisy ones and those of a model.

    A cell is off the model by something whose variance is in proportion to the model's count, as
    that of a count by chance. The factor has one law for all cells of the table (`EffectLaw`): many
    may agree with the model, and some be far from it.

    Parameters
    ----------
    noisy : ndarray of float64
    variance : float
        Of the noise of a cell.
    model : ndarray of float64
        Counts of the same shape, not negative.

    Returns
    -------
    ndarray of float64
        Not negative.
    """
    counts = model + TUNING.floor * math.sqrt(variance)
    away = (noisy - model).ravel()
    cells = away**2 / counts.ravel(), np.ones(away.size, dtype=np.int64), variance / counts.ravel()
    share, _, _ = EffectLaw.fitted(*cells).told(*cells)
    mean: FloatArray = np.maximum(model + (share * away).reshape(model.shape), 0.0)
    return mean


def with_margins(table: FloatArray, margins: Sequence[FloatArray]) -> FloatArray:
    """A table scaled until it has the given margins, one for each of its axes."""
    fitted = np.maximum(table, 1e-15)
    for _ in range(2 * TUNING.sweeps):
        for place, wanted in enumerate(margins):
            others = tuple(each for each in range(table.ndim) if each != place)
            fitted *= np.expand_dims(ratio(wanted, fitted.sum(axis=others)), others)
    if not fitted.sum() > 0:
        # The zeros of noisy margins can contradict each other in every cell.
        fitted = np.maximum(table, 1e-15)
    return fitted / fitted.sum()
