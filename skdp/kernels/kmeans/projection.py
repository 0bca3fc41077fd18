"""K-means of many columns: clusters are found in a random projection, means released in all columns.

Boxes tell only a few of many columns apart. A random projection to a few dimensions keeps
distances in proportion (Johnson and Lindenstrauss): clusters that are far apart for their width
stay so, and all columns help to tell them apart. What must be measured in all columns is only the
means of the clusters that were found.

Privacy (neighbours add or remove one record). The signs of the projection are random and
independent of the records, so that the projected rows are like other public functions of each row.
A grid of four of them costs its part of the budget as in `sketch`. Every other step uses labels and
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
from ..._types import CodeArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace
from ...rows import CodedRows
from .assign import BLOCK, nearest
from .auto import averaged_counts
from .lloyd import best_kmeans, swapped
from .rows import Points, clipped, noisy_sums
from .sketch import grid_sketch
from .task import Clustering, Task, cluster_masses, cluster_released

__all__ = ["MANY_AXES", "projected"]

# More axes than this are projected.
MANY_AXES = 40
# Projected coordinates, and how many of them have a grid.
_WIDE = 8
_GRID = 4
# Codes of a projected coordinate; they reach this many standard deviations from the mean.
_SIDE = 2**16
_DEVIATIONS = 2.5
# No coordinate is farther from the middle than this many of the largest possible deviations.
_FARTHEST = 3
# Parts of the budget: to centre and scale the coordinates, the grid, and the means of its groups.
# The rest is for means in all columns: of all rows, if these are far from the middle, then twice.
_PLACE = Fraction(1, 25)
_GRID_PART = Fraction(1, 10)
_GROUPS_PART = Fraction(1, 10)
_MIDDLE = Fraction(1, 20)
_FIRST = Fraction(9, 20)
# Groups for each requested cluster: as many as this bound on the noise of their means allows.
_GROUPS_EACH = 3
_GROUP_NOISE = 0.3
# Shares of a step for lengths and for counts.
_LENGTH_SHARE = Fraction(1, 20)
_COUNT_SHARE = Fraction(1, 20)
# Lengths are counted in bins by powers of two: so many for each power, and in all.
_PER_POWER = 4
_LENGTHS = 64
# Share of a cluster's rows that are no longer than its reach.
_WITHIN = 0.75
# A bin counts if it has this many units of noise; the lengths of all rows add this many to a cluster.
_CLEAR = 3.0
_PRIOR = 10.0
# Mean absolute value of a normal variable.
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)


def projected(task: Task) -> Clustering:
    """Clusters of a random projection, with means in all columns."""
    n = task.measure_total()
    budget = task.parts["clustering"]
    rows = _in_memory(task.points)
    middle = (np.array(task.shape, dtype=np.int64) - 1) // 2
    centroids, validity, spent = task.init, None, Fraction(0)
    off_center = True
    if centroids is None:
        wide, off_center = _placed(rows, task, n, budget * _PLACE)
        found, validity = _found(wide, task, n, budget)
        spent = budget * (_PLACE + _GRID_PART + _GROUPS_PART)
        labels = nearest(wide, np.rint(found))
        k = len(found)
    else:
        k = len(centroids)
        labels = nearest(rows, np.rint(centroids))
    left, top = budget - spent, sum(task.shape)
    masses = np.full(k, n / k)
    frozen = np.tile(middle, (k, 1))
    if centroids is not None:
        frozen = np.rint(centroids).astype(np.int64)
    elif off_center:
        everyone = np.zeros(len(rows), dtype=np.int64)
        whole = _Rows(rows, everyone, top)
        measured = _measured(whole, middle[None], np.array([float(n)]), left * _MIDDLE, task.source)
        frozen = np.tile(_codes_of(measured.means, task.shape), (k, 1))
        left -= left * _MIDDLE
    first = left * _FIRST
    for part in (first, left - first):
        measured = _measured(_Rows(rows, labels, top), frozen, masses, part, task.source)
        frozen, masses = _codes_of(measured.means, task.shape), measured.counts
        if RELABEL and part is first:
            labels = nearest(rows, frozen.astype(np.float64))
    means = np.clip(measured.means, 0.0, np.array(task.shape) - 1.0)
    return Clustering(means, measured.counts, validity=validity)


RELABEL = False


def _in_memory(points: Points) -> CodeArray:
    """The rows themselves: private."""
    if not isinstance(points, CodedRows):
        return points
    rows, counts = points.count(range(len(points.shape)))
    return np.repeat(rows, counts, axis=0)


def _codes_of(means: FloatArray, shape: tuple[int, ...]) -> IntArray:
    """The nearest integer points of the box."""
    codes: IntArray = np.rint(np.clip(means, 0, np.array(shape) - 1)).astype(np.int64)
    return codes


# --- where clusters are


def _placed(
    rows: CodeArray, task: Task, n: int, epsilon: Fraction
) -> tuple[CodeArray, bool]:
    """Projected rows, as codes around their released mean; and whether that is off the middle.

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
    mean = np.rint(step.means).astype(np.int64)
    length = _reach(everyone, mean, epsilon / 4, task.source, 0.5)[0]
    deviation = max(float(length) / (_WIDE * _MEAN_ABSOLUTE), 1.0)
    half = math.ceil(_DEVIATIONS * deviation)
    codes = np.clip((wide - mean + half) * _SIDE // (2 * half), 0, _SIDE - 1).astype(np.int32)
    return codes, bool((mean**2).mean() > deviation**2)


def _found(
    wide: CodeArray, task: Task, n: int, budget: Fraction
) -> tuple[FloatArray, dict[int, float] | None]:
    """Centroids in the projection: of the means of more groups than requested, from a grid."""
    k = max(task.clusters)
    flat = replace(
        task, points=np.ascontiguousarray(wide[:, :_GRID]), shape=(_SIDE,) * _GRID, init=None
    )
    sketch = grid_sketch(flat, n, budget * _GRID_PART, False)
    points, weights = sketch.centers, sketch.masses
    space = replace(flat, points=wide, shape=(_SIDE,) * _WIDE)
    whole = np.array([[0, _SIDE]] * _WIDE)
    if not len(points):
        return cluster_released(space, np.empty((0, _WIDE)), weights, whole)
    epsilon = budget * _GROUPS_PART
    affordable = int(_GROUP_NOISE * float(epsilon) * n / _WIDE)
    size = min(max(k, min(_GROUPS_EACH * k, affordable)), len(points))
    starts = flat.greedy_starts(points, weights, size, flat.n_init, sketch.ranges)
    groups = np.rint(best_kmeans(points, weights, starts, flat.shape)[0])
    masses = np.maximum(cluster_masses(points, weights, groups), 1.0)
    frozen = np.full((len(groups), _WIDE), _SIDE // 2)
    frozen[:, :_GRID] = groups
    labelled = _Rows(wide, nearest(flat.points, groups), _SIDE * _WIDE)
    step = _measured(labelled, frozen, masses, epsilon, task.source)
    means = np.clip(step.means, 0.0, _SIDE - 1.0)
    weights = np.where(step.sure, step.counts, 0.0) if step.sure.sum() >= k else step.counts
    kept = weights > 0
    means, weights = means[kept], weights[kept]
    centroids, validity = cluster_released(space, means, weights, whole)
    if len(means):
        centroids = swapped(means, weights, centroids, space.shape)
    return centroids, validity


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
    sure: IntArray


def _measured(
    rows: _Rows, frozen: IntArray, masses: FloatArray, budget: Fraction, source: NoiseSource
) -> _Measured:
    """Counts and means of the labels, around frozen centres; spends ``budget``."""
    k, d = frozen.shape
    reach = _reach(rows, frozen, budget * _LENGTH_SHARE, source)
    counts = np.zeros(k, dtype=np.int64)
    sums = np.zeros((k, d), dtype=np.int64)
    for labels, residual, length in rows.residuals(frozen):
        clipped(residual, length, reach[labels])
        counts += np.bincount(labels, minlength=k)
        for axis in range(d):
            # Exact in floats: partial sums are integers below 2**53.
            added = np.bincount(labels, weights=residual[:, axis], minlength=k)
            sums[:, axis] += added.astype(np.int64)
    of_counts = budget * _COUNT_SHARE
    of_sums = budget * (1 - _COUNT_SHARE - _LENGTH_SHARE)
    released = noisy_sums(counts, sums, reach, of_counts, of_sums, source)
    estimated, sure = averaged_counts(released, masses, float(masses.sum()))
    size = np.maximum(estimated, 1.0)[:, None]
    steps = released.sums / size
    noise = released.sum_variances[:, None] / size**2
    beyond = np.maximum((steps**2).mean(axis=1, keepdims=True) - noise, 0.0)
    return _Measured(frozen + steps * (beyond / (beyond + noise)), estimated, sure)


def _reach(
    rows: _Rows,
    frozen: IntArray,
    epsilon: Fraction,
    source: NoiseSource,
    within: float = _WITHIN,
) -> IntArray:
    """Length that most residuals of each label do not exceed, from a noisy histogram."""
    k = len(frozen)
    exact = np.zeros((k, _LENGTHS), dtype=np.int64)
    # Bin b has the lengths below top * 2**-(b / _PER_POWER), in integers.
    ends = [math.floor(rows.top * 2.0 ** (-b / _PER_POWER)) for b in range(1, _LENGTHS)]
    for labels, _, length in rows.residuals(frozen):
        bins = len(ends) - np.searchsorted(np.array(ends[::-1]), length, side="left")
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
