"""K-means of many columns: clusters found in a random projection, means released in all columns.

Boxes tell only a few of many columns apart. A random projection to a few dimensions keeps
distances in proportion (Johnson and Lindenstrauss): clusters that are far apart for their width
stay so, and all columns help to tell them apart. What must be measured in all columns is only the
means of the clusters that were found.

Privacy (neighbours add or remove one record). The signs of the projection are random and
independent of the records, so that the projected rows are like other public functions of each row.
A grid of four of them costs its part of the budget as in `auto`. Every other step uses labels and
centres that are frozen: a record has one label, so it is in one cell of a histogram of lengths,
adds 1 to one count, and to one cluster's sums integers whose absolute values sum to at most a
released bound. Each of the three has a part of the step's budget, and the steps add up to epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._validation import BoolArray, CodeArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace
from .auto import averaged_counts, grid_sketch
from .lloyd import BLOCK, best_kmeans, clipped, nearest, noisy_sums
from .task import Clustering, Task, cluster_masses, cluster_released

__all__ = ["MANY_AXES", "projected"]

# More axes than this are projected.
MANY_AXES = 50
# Projected coordinates, and how many of them have a grid.
_WIDE = 8
_GRID = 4
# Codes of a projected coordinate; they reach this many standard deviations from the mean.
_SIDE = 2**16
_DEVIATIONS = 2.5
# No coordinate is farther from the middle than this many of the largest possible deviations.
_FARTHEST = 3
# Parts of the budget: to centre and scale the coordinates; then twice the other one, for the grid
# and for the means of its groups, up to twice as much where few axes make means less noisy. The
# rest is for means in all columns.
_PLACE = Fraction(1, 25)
_FIND = Fraction(1, 10)
_FEWER_AXES = 200
# Parts of what is left: the mean of all rows, each time that it is measured, at most so many times
# and while it improves at least by this factor; then the first of two steps for clusters.
_MIDDLE = Fraction(1, 25)
_MOST_TIMES = 6
_BETTER = 0.7
_FIRST = Fraction(9, 20)
# Groups for each requested cluster: as many as this bound on the noise of their means allows.
_GROUPS_EACH = 3
_GROUP_NOISE = 0.3
# Shares of a step for lengths and for counts.
_LENGTH_SHARE = Fraction(1, 20)
_COUNT_SHARE = Fraction(1, 20)
# Lengths are counted in bins by powers of two: so many for each power, and in all.
_PER_POWER = 6
_LENGTHS = 96
# Share of a cluster's rows that are no longer than its reach; and where noise is at most this share
# of the squared distances.
_WITHIN = 0.75
_WITHIN_LARGE = 0.99
_LITTLE = 0.0005
# A bin counts if it has this many units of noise; lengths of all rows add this many to a cluster.
_CLEAR = 3.0
_PRIOR = 10.0
# Clusters times columns for each record times epsilon: with more, the noise of their means in all
# columns adds more than a tenth to the squared distances to one mean.
_MOST_NOISE = 0.1
# Mean absolute value of a normal variable.
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)


def projected(task: Task) -> Clustering:
    """Clusters of a random projection, with means in all columns."""
    n = task.measure_total()
    left = task.parts["clustering"]
    rows, d = task.points, len(task.shape)
    validity = None
    # Fewer clusters where the noise of more hides what they gain: by released and public numbers.
    most = max(int(_MOST_NOISE * float(left) * n / d), 1)
    asked, k = task.clusters, min(max(task.clusters), most)
    if task.init is None and k == 1:
        labels = np.zeros(len(rows), dtype=np.int64)
        frozen = ((np.array(task.shape, dtype=np.int64) - 1) // 2)[None]
    elif task.init is None:
        task = replace(task, clusters=tuple(c for c in asked if c <= k) or (k,))
        task.progress("clusters of a projection")
        place = left * _PLACE
        # With half as many axes or fewer twice as much.
        part = left * _FIND * Fraction(_FEWER_AXES, min(max(d, _FEWER_AXES // 2), _FEWER_AXES))
        wide, center = _placed(rows, task, n, place)
        found, validity = _found(wide, task, n, part)
        labels, k = nearest(wide, np.rint(found)), len(found)
        left -= place + 2 * part
        everyone, left = _centered(rows, task, n, center, left)
        frozen = np.tile(everyone, (k, 1))
    else:
        k, frozen = len(task.init), _codes_of(task.init, task.shape)
        labels = nearest(rows, frozen.astype(np.float64))
    task.progress("means in all columns")
    masses = np.full(k, n / k)
    top = sum(task.shape)
    if k > 1:
        first = _measured(_Rows(rows, labels, top), frozen, masses, left * _FIRST, task.source)
        # All columns tell clusters apart that the projection may have mixed.
        frozen = _codes_of(first.means, task.shape)
        labels, masses = nearest(rows, frozen.astype(np.float64)), first.counts
        left -= left * _FIRST
    last = _measured(_Rows(rows, labels, top), frozen, masses, left, task.source)
    means = np.clip(last.means, 0.0, np.array(task.shape) - 1.0)
    # As many rows as were asked for: further ones repeat the first, and no record is nearest to
    # them.
    more = max(min(asked) - len(means), 0)
    means = np.concatenate([means, means[np.arange(more) % len(means)]])
    return Clustering(means, np.append(last.counts, np.zeros(more)), validity=validity)


def _codes_of(means: FloatArray, shape: tuple[int, ...]) -> IntArray:
    """The nearest integer points of the box."""
    codes: IntArray = np.rint(np.clip(means, 0, np.array(shape) - 1)).astype(np.int64)
    return codes


# --- where clusters are


@dataclass(frozen=True)
class _Center:
    """Root mean squares over the columns, from the projection: released.

    Attributes
    ----------
    offset : float
        Distance of the mean of all rows from the middle of the box, in codes.
    spread : float
        Distance of rows from their mean.
    """

    offset: float
    spread: float


def _placed(rows: CodeArray, task: Task, n: int, epsilon: Fraction) -> tuple[CodeArray, _Center]:
    """Projected rows, as codes around their released mean.

    One scale serves all coordinates, because the signs treat them alike.
    """
    d = len(task.shape)
    signs = 2 * task.generator.integers(0, 2, (d, _WIDE)) - 1
    farthest = math.ceil(_FARTHEST * math.sqrt(sum(size**2 for size in task.shape)))
    wide = np.empty((len(rows), _WIDE), dtype=np.int64)
    for block in _blocks(rows):
        # Twice the distance to the middle of the box is an integer, and all sums are exact.
        twice = 2.0 * rows[block] - (np.array(task.shape) - 1)
        wide[block] = np.clip((twice @ signs).astype(np.int64), -farthest, farthest)
    everyone = _Rows(wide, np.zeros(len(wide), dtype=np.int64), 2 * _WIDE * farthest)
    masses = np.array([float(n)])
    zero = np.zeros((1, _WIDE), dtype=np.int64)
    step = _measured(everyone, zero, masses, epsilon * Fraction(3, 4), task.source)
    mean = np.rint(np.clip(step.means, -farthest, farthest)).astype(np.int64)
    length = _reach(everyone, mean, epsilon / 4, 0.5, task.source)[0]
    deviation = max(float(length) / (_WIDE * _MEAN_ABSOLUTE), 1.0)
    half = math.ceil(_DEVIATIONS * deviation)
    codes = np.clip((wide - mean + half) * _SIDE // (2 * half), 0, _SIDE - 1).astype(np.int32)
    # A coordinate adds up twice the distances of all columns, with random signs.
    unit = 2 * math.sqrt(d)
    return codes, _Center(math.sqrt(float((mean**2).mean())) / unit, deviation / unit)


def _found(
    wide: CodeArray, task: Task, n: int, part: Fraction
) -> tuple[FloatArray, dict[int, float] | None]:
    """Centroids in the projection: of the means of more groups than requested, from a grid.

    Spends ``part`` twice.
    """
    k = max(task.clusters)
    narrow = np.ascontiguousarray(wide[:, :_GRID])
    flat = replace(task, points=narrow, shape=(_SIDE,) * _GRID, init=None)
    sketch = grid_sketch(flat, n, part)
    points, weights = sketch.centers, sketch.masses
    space = replace(flat, points=wide, shape=(_SIDE,) * _WIDE)
    whole = np.array([[0, _SIDE]] * _WIDE)
    if not len(points):
        return cluster_released(space, np.empty((0, _WIDE)), weights, whole)
    affordable = int(_GROUP_NOISE * float(part) * n / _WIDE)
    size = min(max(k, min(_GROUPS_EACH * k, affordable)), len(points))
    starts = flat.greedy_starts(points, weights, size, flat.n_init, sketch.ranges)
    groups = np.rint(best_kmeans(points, weights, starts, flat.shape)[0])
    masses = np.maximum(cluster_masses(points, weights, groups), 1.0)
    frozen = np.full((len(groups), _WIDE), _SIDE // 2)
    frozen[:, :_GRID] = groups
    labelled = _Rows(wide, nearest(narrow, groups), _SIDE * _WIDE)
    step = _measured(labelled, frozen, masses, part, task.source)
    means = np.clip(step.means, 0.0, _SIDE - 1.0)
    weights = np.where(step.sure, step.counts, 0.0) if step.sure.sum() >= k else step.counts
    kept = weights > 0
    means, weights = means[kept], weights[kept]
    return cluster_released(space, means, weights, whole)


def _centered(
    rows: CodeArray, task: Task, n: int, center: _Center, budget: Fraction
) -> tuple[IntArray, Fraction]:
    """A point near the mean of all rows, and what is left; the middle of the box if that is near.

    The noise is proportional to the distance from the last point, so that a few steps arrive.
    """
    point = ((np.array(task.shape, dtype=np.int64) - 1) // 2)[None]
    everyone = _Rows(rows, np.zeros(len(rows), dtype=np.int64), sum(task.shape))
    left, part = budget, budget * _MIDDLE
    better = math.sqrt(2) * len(task.shape) / (float(part) * n)
    offset = center.offset
    for _ in range(_MOST_TIMES):
        if offset <= center.spread or better > _BETTER:
            break
        step = _measured(everyone, point, np.array([float(n)]), part, task.source)
        point = _codes_of(step.means, task.shape)
        offset = better * math.hypot(offset, center.spread)
        left -= part
    return point[0], left


# --- means of labelled rows


@dataclass(frozen=True)
class _Rows:
    """Private integer points and their labels; no L1 distance between two is above ``top``."""

    points: IntArray | CodeArray
    labels: IntArray
    top: int

    def residuals(self, frozen: IntArray) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Blocks of labels, differences to the frozen centres, and their L1 norms."""
        for block in _blocks(self.points):
            labels = self.labels[block]
            residual = self.points[block] - frozen[labels]
            yield labels, residual, np.abs(residual).sum(axis=1)


@dataclass(frozen=True)
class _Measured:
    """Released means.

    Attributes
    ----------
    means : ndarray of float64, shape (k, d)
        Steps from the frozen centres are shrunk where noise is large.
    counts : ndarray of float64, shape (k,)
    sure : ndarray of bool, shape (k,)
        Whether the count stands out from its noise.
    """

    means: FloatArray
    counts: FloatArray
    sure: BoolArray


def _measured(
    rows: _Rows, frozen: IntArray, masses: FloatArray, budget: Fraction, source: NoiseSource
) -> _Measured:
    """Counts and means of the labels, around frozen centres; spends ``budget``."""
    k, d = frozen.shape
    of_sums = budget * (1 - _COUNT_SHARE - _LENGTH_SHARE)
    noise = 2 * (d * k / (float(of_sums) * max(float(masses.sum()), 1.0))) ** 2
    within = _WITHIN_LARGE if noise < _LITTLE else _WITHIN
    reach = _reach(rows, frozen, budget * _LENGTH_SHARE, within, source)
    counts = np.zeros(k, dtype=np.int64)
    sums = np.zeros((k, d), dtype=np.int64)
    for labels, residual, length in rows.residuals(frozen):
        clipped(residual, length, reach[labels])
        counts += np.bincount(labels, minlength=k)
        for axis in range(d):
            # Exact in floats: partial sums are integers below 2**53.
            added = np.bincount(labels, weights=residual[:, axis], minlength=k)
            sums[:, axis] += added.astype(np.int64)
    # Privacy. Labels and frozen centres are public or released, so a record is in one histogram
    # cell and one count, and changes the sums of one label by integers whose absolute values sum to
    # at most its released reach. The three parts of the step sum to ``budget``.
    of_counts = budget * _COUNT_SHARE
    released = noisy_sums(counts, sums, reach, of_counts, of_sums, source)
    estimated, sure = averaged_counts(released, masses, float(masses.sum()))
    size = np.maximum(estimated, 1.0)[:, None]
    steps = released.sums / size
    variance = released.sum_variances[:, None] / size**2
    beyond = np.maximum((steps**2).mean(axis=1, keepdims=True) - variance, 0.0)
    return _Measured(frozen + steps * (beyond / (beyond + variance)), estimated, sure)


def _reach(
    rows: _Rows, frozen: IntArray, epsilon: Fraction, within: float, source: NoiseSource
) -> IntArray:
    """Length that a share of the residuals of each label does not exceed, from a histogram."""
    k = len(frozen)
    exact = np.zeros((k, _LENGTHS), dtype=np.int64)
    # Bin b has the lengths below top * 2**-(b / _PER_POWER), in integers.
    ends = [math.floor(rows.top * 2.0 ** (-b / _PER_POWER)) for b in range(1, _LENGTHS)]
    for labels, _, length in rows.residuals(frozen):
        bins = len(ends) - np.searchsorted(ends[::-1], length, side="left")
        np.add.at(exact, (labels, bins), 1)
    # Privacy. A record has one label and one length, so it is in one cell: noise of sensitivity 1
    # in all cells, with records or not, costs epsilon. Bins, clearing and pooling use released
    # numbers and public ones only.
    noisy = discrete_laplace(exact, epsilon, random_state=source).astype(np.float64)
    unit = 1 / float(epsilon)
    pooled = _clear(noisy.sum(axis=0), unit * math.sqrt(k))
    own = np.stack([_clear(row, unit) for row in noisy])
    mixed = own + _PRIOR * unit * pooled / max(float(pooled.sum()), 1e-9)
    beyond = np.cumsum(mixed, axis=1)
    place = (beyond > (1 - within) * beyond[:, -1:]).argmax(axis=1)
    limits = np.array([rows.top, *ends], dtype=np.int64)[place]
    return np.maximum(limits, 1)


def _clear(counts: FloatArray, unit: float) -> FloatArray:
    """Counts that stand out from their noise, the others zero; the largest if none does."""
    out = counts > _CLEAR * unit
    if not out.any():
        out = counts == counts.max()
        return out * 1.0
    found: FloatArray = np.where(out, counts, 0.0)
    return found


def _blocks(points: IntArray | CodeArray) -> Iterator[slice]:
    """Slices of rows that fit into a cache."""
    step = max(1, BLOCK // points.shape[1])
    for first in range(0, len(points), step):
        yield slice(first, first + step)
