"""A noisy tree of boxes over integer points, cut by the margins of the axes.

In many dimensions most cells of a grid hold few records or none: either the noise of the empty
ones outweighs the records, or the records of sparse cells are lost with them. A tree has small
boxes where the records are and loses none: its leaves cover the whole box, with large leaves where
it is empty.

Privacy (neighbours add or remove one record). *Margins*: a record is in one bin of each axis, so
a histogram of every axis at ``epsilon / d`` costs ``epsilon``. *Tree*: a level of the tree counts
disjoint boxes, so it costs its part of the budget once. A box that is not divided gets all of the
remaining budget instead of one part, and no descendant of it is counted: along the path of a record
the parts add up to ``epsilon``. Which boxes are divided, and where, depends on margins and earlier
levels, which are released. Making the counts agree with each other is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._types import BoolArray, CodeArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ..splitting import renumbered
from .ranges import Binned, Margins

__all__ = ["Leaves", "measure_tree"]

# Parts of the budget for the levels, from the top.
_LEVELS = (Fraction(4, 19), Fraction(6, 19), Fraction(9, 19))
_MOST_CHILDREN = 16
# Records that a child should have, in units of the noise of its level; more if the leaves would
# become too many.
_CHILD = 2.0
_MOST_LEAVES = 4000
# Leaves for each requested cluster, where these are more.
_LEAVES_EACH = 160
# A count below this many standard deviations becomes zero, unless all of its siblings do.
_ZERO = 1.0


@dataclass(frozen=True)
class Leaves:
    """Boxes that divide the domain, with estimates of their counts.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Ends in bins; upper ends are excluded.
    counts : ndarray of float64, shape (m,)
        Not negative.
    """

    lower: IntArray
    upper: IntArray
    counts: FloatArray


@dataclass(frozen=True)
class _Level:
    """Children that are counted together; those that are not final are divided again, in order."""

    lower: IntArray
    upper: IntArray
    parent: IntArray
    final: BoolArray
    values: FloatArray
    variances: FloatArray


def measure_tree(
    binned: Binned, margins: Margins, n: int, k: int, epsilon: Fraction, source: NoiseSource
) -> Leaves:
    """Noisy counts of a tree's boxes, made to agree; the parts along a path sum to ``epsilon``.

    Parameters
    ----------
    binned : Binned
        Private.
    margins : Margins
        Released: a box is cut on the axis along which it is widest by its margin, at the mean.
    n : int
        Public or released number of records.
    k : int
        Number of clusters that the leaves should tell apart.
    epsilon : Fraction
    source : NoiseSource
    """
    cuts = _Cuts.of(margins)
    lower, upper, box = _roots(binned, margins)
    # The rows in boxes that may be divided; ``box`` is that of each.
    rows: IntArray | None = None
    estimates = np.zeros(len(lower))
    estimates[0] = n
    least = max(_CHILD, n * float(epsilon) / max(_MOST_LEAVES, _LEAVES_EACH * k))
    levels: list[_Level] = []
    for depth, part in enumerate(_LEVELS):
        parts = np.maximum(estimates, 0.0) * float(part * epsilon) / least
        wanted = np.clip(parts, 1, _MOST_CHILDREN).astype(np.int64)
        bins = binned.bins if rows is None else binned.bins[rows]
        lower, upper, parent, box = _children(lower, upper, box, bins, wanted, cuts)
        if depth == 0:
            # The parts of the ranges and the boxes beyond them are one family.
            parent = np.zeros_like(parent)
        last = depth == len(_LEVELS) - 1
        final = (np.bincount(parent)[parent] == 1) | last
        exact = binned.tally(box, rows, len(lower))
        budgets = (final, sum(_LEVELS[depth:]) * epsilon), (~final, part * epsilon)
        values, variances = _measured(exact, budgets, source)
        levels.append(_Level(lower, upper, parent, final, values, variances))
        open_boxes = np.flatnonzero(~final)
        if not len(open_boxes):
            break
        box = renumbered(open_boxes, len(final))[box]
        stay = box >= 0
        rows = np.flatnonzero(stay) if rows is None else rows[stay]
        box = box[stay]
        lower, upper, estimates = lower[open_boxes], upper[open_boxes], values[open_boxes]
    counts = _agreeing(levels, float(n))
    return Leaves(
        np.concatenate([level.lower[level.final] for level in levels]),
        np.concatenate([level.upper[level.final] for level in levels]),
        np.concatenate([count[level.final] for level, count in zip(levels, counts, strict=True)]),
    )


def _roots(binned: Binned, margins: Margins) -> tuple[IntArray, IntArray, IntArray]:
    """The box of the ranges and, beyond them, boxes that are counted with its parts.

    Clusters of few records may be there, but cuts by the margins would not find them.
    """
    low = np.zeros(len(binned.edges), dtype=np.int64)
    high = np.array([len(mass) for mass in margins.masses])
    lower, upper = [low], [high]
    box = np.zeros(len(binned.bins), dtype=np.int64)
    for axis, (first, last) in enumerate(margins.cores.tolist()):
        bins = binned.bins[:, axis]
        for beyond, start, stop in (
            (bins < first, 0, first),
            (bins >= last, last, int(high[axis])),
        ):
            if start < stop:
                box[(box == 0) & beyond] = len(lower)
                lower.append(lower[0].copy())
                upper.append(upper[0].copy())
                lower[-1][axis], upper[-1][axis] = start, stop
        lower[0][axis], upper[0][axis] = first, last
    return np.stack(lower), np.stack(upper), box


def _children(
    lower: IntArray, upper: IntArray, box: IntArray, bins: CodeArray, wanted: IntArray, cuts: _Cuts
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut boxes in two, and their parts again, until each box has the requested number of parts.

    Parameters
    ----------
    lower, upper : ndarray of int64, shape (m, d)
    box : ndarray of int64, shape (n,)
        Box of each row.
    bins : ndarray of int32, shape (n, d)
        The rows.
    wanted : ndarray of int64, shape (m,)
        Number of parts, at least 1; a box that cannot be cut further has fewer parts.
    cuts : _Cuts

    Returns
    -------
    lower, upper, parent : ndarray of int64
        Of each part.
    box : ndarray of int64, shape (n,)
        Part of each row.
    """
    parent = np.arange(len(lower))
    while True:
        axis, cut, able = cuts.best(lower, upper)
        at = np.flatnonzero(able & (wanted > 1))
        if not len(at):
            return lower, upper, parent, box
        first = len(lower)
        # New box of the rows after the cut of a box; boxes that are not cut have no such rows.
        beyond = np.zeros(first, dtype=np.int64)
        beyond[at] = first + np.arange(len(at))
        border = np.full(first, np.iinfo(np.int32).max, dtype=np.int32)
        border[at] = cut[at]
        over = bins[np.arange(len(bins)), axis[box]] >= border[box]
        box = np.where(over, beyond[box], box)
        above = wanted[at] * (1 - cuts.share(lower[at], upper[at], axis[at], cut[at]))
        right = np.clip(np.rint(above).astype(np.int64), 1, wanted[at] - 1)
        new_lower, new_upper = lower[at], upper[at]
        new_lower[np.arange(len(at)), axis[at]] = cut[at]
        upper = upper.copy()
        upper[at, axis[at]] = cut[at]
        rest = wanted.copy()
        rest[at] -= right
        lower = np.concatenate([lower, new_lower])
        upper = np.concatenate([upper, new_upper])
        parent = np.concatenate([parent, parent[at]])
        wanted = np.concatenate([rest, right])


def _measured(
    exact: IntArray, budgets: Sequence[tuple[BoolArray, Fraction]], source: NoiseSource
) -> tuple[FloatArray, FloatArray]:
    """Noisy counts of disjoint boxes, some with one budget and some with another; variances."""
    values, variances = np.empty(len(exact)), np.empty(len(exact))
    for these, budget in budgets:
        if these.any():
            values[these] = discrete_laplace(exact[these], budget, random_state=source)
            variances[these] = discrete_laplace_variance(budget)
    return values, variances


def _agreeing(levels: list[_Level], n: float) -> list[FloatArray]:
    """Counts that add up to those of their parents, none negative.

    Upward every box's count is averaged with the sum of its children, by their precision;
    downward the children divide the count of their parent; those near zero get nothing.
    """
    upward: list[tuple[FloatArray, FloatArray]] = []
    below = None
    for level in reversed(levels):
        values, variances = level.values.copy(), level.variances.copy()
        if below is not None:
            inner = ~level.final
            own, theirs = 1 / variances[inner], 1 / below[1]
            values[inner] = (values[inner] * own + below[0] * theirs) / (own + theirs)
            variances[inner] = 1 / (own + theirs)
        upward.append((values, variances))
        below = np.bincount(level.parent, values), np.bincount(level.parent, variances)
    totals = np.array([n])
    counts = []
    for level, (values, variances) in zip(levels, reversed(upward), strict=True):
        parent = level.parent
        shares = values > _ZERO * np.sqrt(variances)
        shares |= np.bincount(parent, shares)[parent] == 0
        while True:
            loose = np.where(shares, variances, 0.0)
            gap = totals - np.bincount(parent, np.where(shares, values, 0.0))
            fitted = np.where(shares, values, 0.0)
            fitted += loose * (gap / np.bincount(parent, loose))[parent]
            # Removes rounding: with a total of zero the last share of a family may be slightly
            # negative.
            below_zero = fitted < -1e-6
            if not below_zero.any():
                break
            shares &= ~below_zero
        counts.append(np.maximum(fitted, 0.0))
        totals = counts[-1][~level.final]
    return counts


@dataclass(frozen=True)
class _Cuts:
    """Where to cut boxes, by the first moments of the margins up to every edge.

    Attributes
    ----------
    sums : ndarray of float64, shape (3, d, b)
        Mass, first and second moment of an axis below each edge.
    places : ndarray of float64, shape (d, b)
        The edges, in codes; infinite beyond the last one.
    """

    sums: FloatArray
    places: FloatArray

    @classmethod
    def of(cls, margins: Margins) -> _Cuts:
        longest = max(len(edge) for edge in margins.edges)
        sums = np.zeros((3, len(margins.edges), longest))
        places = np.full(sums.shape[1:], np.inf)
        for axis, (edge, mass) in enumerate(zip(margins.edges, margins.masses, strict=True)):
            width = np.diff(edge).astype(np.float64)
            middle = (edge[:-1] + edge[1:] - 1) / 2
            places[axis, : len(edge)] = edge - 0.5
            squares = middle**2 + width**2 / 12
            for power, moment in enumerate((np.ones(len(mass)), middle, squares)):
                sums[power, axis, 1 : len(edge)] = np.cumsum(mass * moment)
        return cls(sums, places)

    def best(self, lower: IntArray, upper: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
        """Axis of largest variance of each box, edge nearest the mean, and whether it exists."""
        axes = np.arange(lower.shape[1])
        mass, first, second = self.sums[:, axes, upper] - self.sums[:, axes, lower]
        mean = first / mass
        variance = np.where(upper - lower > 1, second / mass - mean**2, -np.inf)
        axis = variance.argmax(axis=1)
        at = np.arange(len(lower))
        distance = np.abs(self.places[axis] - mean[at, axis][:, None])
        low, high = lower[at, axis] + 1, upper[at, axis] - 1
        cut = np.clip(distance.argmin(axis=1), low, np.maximum(high, low))
        return axis, cut, high >= low

    def share(self, lower: IntArray, upper: IntArray, axis: IntArray, cut: IntArray) -> FloatArray:
        """Share of a box's records below a cut, from the margin of the axis."""
        at = np.arange(len(axis))
        mass = self.sums[0]
        below = mass[axis, cut] - mass[axis, lower[at, axis]]
        share: FloatArray = below / (mass[axis, upper[at, axis]] - mass[axis, lower[at, axis]])
        return share
