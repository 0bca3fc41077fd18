"""The default of DPKMeans: a noisy grid or tree, then rounds that measure residuals.

Rows of many columns are projected first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter

from ..._random import NoiseSource
from ..._validation import BoolArray, CodeArray, FloatArray, IntArray, exclusive_cumsum
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ..grid import grid_size
from .lloyd import (
    Clustering,
    Task,
    best_kmeans,
    blocks,
    cluster_masses,
    cluster_released,
    lloyd_on_cells,
    nearest,
    noisy_round,
)
from .sketch import (
    MOST_FLAT,
    Margins,
    bins_of,
    edges_around,
    find_ranges,
    grid_edges,
    measure_cells,
    measure_margins,
    measure_tree,
)


@dataclass(frozen=True)
class Tuning:
    """Numbers of "auto", chosen by the mean squared distance of ``benchmarks/kmeans.py``.

    Shares are parts of epsilon or of what a comment says; "noise" is one standard deviation.

    Attributes
    ----------
    theta : float
        Records per unit of noise that a cell of the grid should have.
    loose : float
        Length of a range, where it is not the whole axis, in those of the records.
    most_cells, most_dense : int
        Most cells of the grid in the ranges, and of one that is released whole: memory.
    alone, among : float
        Parts of the threshold that a cell must reach to be kept: by itself, also beyond the ranges,
        and where its neighbourhood stands out.
    octave : int
        Cells beyond the ranges before their width doubles; the first have this part of a range.
    crowded : float
        Noise by which a neighbourhood must stand out.
    alike : float
        Neighbours for which the share of all cells that hold records counts.
    share_flat, share : Fraction
        Share of the grid, and of the tree, in the budget if rounds follow.
    margins, most_margins : Fraction
        Share of margins: at least and at most.
    tells : int
        Records per unit of noise in each axis for which the share grows.
    surely : float
        Units of noise by which the released number of records is at most too large.
    cloud, cloud_each : int
        Points of a cloud, at least one for each box; and points for each requested cluster, where
        these are more, but no more than records.
    grid_pays : int
        In three dimensions a grid is used if N epsilon / k is at most this.
    rounds_pay_flat, rounds_pay : int
        Rounds follow if N epsilon / k^2 is larger.
    reaches : tuple of float
        Multiples of the mean L1 norm at which residuals are clipped: the largest is taken for which
        noise adds little.
    little : float
        Most that noise may add, as a share of the mean squared distance.
    counts : Fraction
        Share of a round for its counts.
    first_round : Fraction
        Share of a first round in what the tree leaves, in more than three dimensions.
    split, most_split, split_noise : int, int, float
        That round measures more centroids than requested: at most so many for each, so many in
        total, and as many as this bound on their noise allows.
    split_starts, split_many : int
        Sets that they start from; and centroids for each where many are requested.
    finalists : int
        Best sets on the means that are tried on the cloud.
    """

    theta: float = 4.0
    loose: float = 1.6
    most_cells: int = 2**15
    most_dense: int = 2**18
    alone: float = 1.6
    among: float = 0.3
    octave: int = 4
    crowded: float = 2.0
    alike: float = 3.0
    share_flat: Fraction = Fraction(4, 5)
    share: Fraction = Fraction(9, 20)
    margins: Fraction = Fraction(2, 25)
    most_margins: Fraction = Fraction(3, 25)
    tells: int = 20
    surely: float = 2.0
    cloud: int = 4096
    cloud_each: int = 100
    grid_pays: int = 400
    rounds_pay_flat: int = 40
    rounds_pay: int = 10
    reaches: tuple[float, ...] = (2.0, 1.5, 1.0)
    little: float = 0.0005
    counts: Fraction = Fraction(3, 50)
    first_round: Fraction = Fraction(2, 5)
    split: int = 6
    most_split: int = 60
    split_noise: float = 0.15
    split_starts: int = 6
    split_many: int = 3
    finalists: int = 4


TUNING = Tuning()

# --- the first release of "auto": a noisy grid or tree, and a cloud of points that represents it


@dataclass(frozen=True)
class _Cloud:
    """Weighted points that represent the records, from released numbers.

    Attributes
    ----------
    points : ndarray of float64, shape (m, d)
        In codes.
    weights : ndarray of float64, shape (m,)
        Positive, with the number of records as their sum.
    fine : bool
        Whether they are from a grid, and as close as its cells to the records.
    """

    points: FloatArray
    weights: FloatArray
    fine: bool


@dataclass(frozen=True)
class _Sketch:
    """A released grid or tree, and the input for k-means from it.

    Attributes
    ----------
    release : Clustering
        Without centroids.
    centers : ndarray of float64, shape (m, d)
        Means of the boxes that are not empty.
    masses : ndarray of float64, shape (m,)
    cloud : Cloud
    ranges : ndarray of int64, shape (d, 2)
        Codes that nearly all records are between.
    left : Fraction
        Budget for rounds.
    """

    release: Clustering
    centers: FloatArray
    masses: FloatArray
    cloud: _Cloud
    ranges: IntArray
    left: Fraction

    @classmethod
    def of(
        cls,
        task: Task,
        n: int,
        release: Clustering,
        boxes: tuple[IntArray, IntArray, FloatArray],
        margins: Margins | None,
        ranges: IntArray,
        left: Fraction,
    ) -> _Sketch:
        """A cloud of points in boxes, in proportion to their counts.

        Along an axis they are spread in proportion to its margin, or evenly without margins.
        """
        lower, upper, masses = boxes
        size = max(TUNING.cloud, min(TUNING.cloud_each * max(task.clusters), n))
        each = np.maximum(np.rint(size * masses / max(masses.sum(), 1.0)).astype(np.int64), 1)
        box = np.repeat(np.arange(len(each)), each)
        rank = np.arange(len(box)) - np.repeat(exclusive_cumsum(each), each)
        points = np.empty((len(box), lower.shape[1]))
        for axis in range(lower.shape[1]):
            # Equal steps, in a random order of its own on every axis.
            order = np.lexsort((task.generator.random(len(box)), box))
            u = np.empty(len(box))
            u[order] = (rank + 0.5) / each[box]
            low, high = lower[box, axis], upper[box, axis]
            if margins is None:
                points[:, axis] = low - 0.5 + u * (high - low)
            else:
                points[:, axis] = margins.quantiles(axis, low, high, u)
        centers = _weighted_sums(points, np.ones(len(box)), box, len(each)) / each[:, None]
        weights = (n * masses / max(masses.sum(), 1.0) / each)[box]
        return cls(release, centers, masses, _Cloud(points, weights, margins is None), ranges, left)


def _weighted_sums(
    values: FloatArray, weights: FloatArray, labels: IntArray, size: int
) -> FloatArray:
    """Weighted sums of rows by label, (size, d)."""
    columns = [np.bincount(labels, weights * column, minlength=size) for column in values.T]
    return np.stack(columns, axis=1)


def first_sketch(task: Task, n: int, budget: Fraction, rounds: bool, flat: bool) -> _Sketch:
    """Ranges, then a grid, or margins and a tree.

    Privacy. The ranges return what they spent, the margins spend their share, and the grid or tree,
    with the rounds that follow, gets the rest. All shares depend on public facts and on released
    numbers: that of the records and the ranges.

    Parameters
    ----------
    task : Task
    n : int
        Public or released number of records.
    budget : Fraction
    rounds : bool
        Whether a part of the budget is left for rounds.
    flat : bool
        Whether it is a grid.
    """
    d = task.n_axes
    least = n - TUNING.surely / float(task.parts["records"]) if "records" in task.parts else n
    margin = min(
        max(TUNING.margins * budget, Fraction(TUNING.tells * d, n)), TUNING.most_margins * budget
    )
    ranges, spent = find_ranges(task.points, task.shape, least, budget, task.source)
    budget -= spent
    if flat:
        epsilon = budget * TUNING.share_flat if rounds else budget
        return _grid_sketch(task, n, ranges, epsilon, budget - epsilon)
    margins = Margins.even(task.shape, ranges, n * float(margin) / d)
    bins = bins_of(task.points, margins.edges)
    margins = measure_margins(bins, margins, n, margin, task.source)
    budget -= margin
    epsilon = budget * TUNING.share if rounds else budget
    return _tree_sketch(task, n, bins, margins, epsilon, budget - epsilon)


def _grid_sketch(
    task: Task, n: int, ranges: IntArray, epsilon: Fraction, left: Fraction
) -> _Sketch:
    """A noisy grid, and what its cells hold."""
    size = grid_size("extended", n, epsilon, task.n_axes, TUNING.theta)
    narrowed = np.count_nonzero(ranges[:, 1] - ranges[:, 0] < task.shape)
    size = min(max(size, 4.0) * TUNING.loose**narrowed, TUNING.most_cells)
    low, high = ranges.T
    inner = grid_edges((high - low).tolist(), size)
    edges = [
        edges_around(first + edge, each, TUNING.octave)
        for first, edge, each in zip(low, inner, task.shape, strict=True)
    ]
    n_cells = math.prod(len(edge) - 1 for edge in edges)
    # Of a larger grid only the cells above the threshold are released.
    dense = n_cells <= TUNING.most_dense
    # Noise that one empty cell reaches on average.
    threshold = max(1, math.ceil(math.log(max(n_cells / 2, 1)) / float(epsilon)))
    cells = measure_cells(task.points, edges, epsilon, None if dense else threshold, task.source)
    within = ((cells.lower >= low) & (cells.upper <= high)).all(axis=1)
    # A cell of noise would do harm far from the others.
    far = cells.counts >= TUNING.alone * threshold
    sure = np.where(within, _standing_out(cells.counts, edges, threshold, epsilon), far)
    chances = 1.0 * sure
    if dense and len(edges) <= MOST_FLAT:
        chances = np.maximum(chances, within * _chances(cells.counts, edges, float(epsilon)))
    masses = cells.counts * chances
    out = masses >= 1.0
    kept = cells.select(out)
    boxes = kept.lower, kept.upper, masses[out]
    release = Clustering(np.empty(0), None, cells, edges, epsilon)
    return _Sketch.of(task, n, release, boxes, None, ranges, left)


def _tree_sketch(
    task: Task, n: int, bins: CodeArray, margins: Margins, epsilon: Fraction, left: Fraction
) -> _Sketch:
    """A tree that is cut by margins."""
    leaves = measure_tree(bins, margins, n, max(task.clusters), epsilon, task.source)
    release = Clustering(np.empty(0), None, None, margins.edges, None, leaves=leaves)
    filled = leaves.counts > 0
    lower, upper = (
        np.stack([edge[bin] for edge, bin in zip(margins.edges, ends[filled].T, strict=True)], 1)
        for ends in (leaves.lower, leaves.upper)
    )
    boxes = lower, upper, leaves.counts[filled]
    return _Sketch.of(task, n, release, boxes, margins, margins.ranges, left)


def _standing_out(
    counts: IntArray, edges: list[IntArray], threshold: int, epsilon: Fraction
) -> BoolArray:
    """Cells that are almost surely not empty, by their own count or with their neighbours.

    In a dense grid a cell below the threshold is kept as well if the cells around it, 3 on every
    axis, stand out together. Otherwise the sparse rims of clusters would be lost.
    """
    sides = [len(edge) - 1 for edge in edges]
    if len(sides) > 3 or len(counts) != math.prod(sides):
        return counts >= threshold
    around = counts.reshape(sides)
    for axis, side in enumerate(sides):
        sums = np.concatenate([np.zeros_like(around.take([0], axis)), around.cumsum(axis)], axis)
        at = np.arange(side)
        upper, lower = np.minimum(at + 2, side), np.maximum(at - 1, 0)
        around = sums.take(upper, axis) - sums.take(lower, axis)
    noise = math.sqrt((3 ** len(sides) - 1) * discrete_laplace_variance(epsilon))
    crowded = around.ravel() >= threshold + TUNING.crowded * noise
    return (counts >= TUNING.alone * threshold) | (crowded & (counts >= TUNING.among * threshold))


# Steps in which the chances of cells are found.
_STEPS = 30


def _chances(counts: IntArray, edges: list[IntArray], epsilon: float) -> FloatArray:
    """Chance that a cell of a dense grid holds records, given the noisy counts of all.

    Beforehand it is that of the cells around it, 3 on every axis, and of all cells, which count as
    much as a few around it; any number of records is as likely as any other of its order. What
    explains all counts is found in steps. So small clusters beside large ones are not lost.
    """
    sides, around = [len(edge) - 1 for edge in edges], 3 ** len(edges)
    x = np.maximum(counts, 0) * epsilon
    empty = np.exp(-x)
    # Of all numbers up to the largest, with noise; both densities are without a common factor.
    filled = 2 / ((3 + x) * max(math.log1p(float(x.max())), 1.0))
    chances: FloatArray = 1 - empty
    for _ in range(_STEPS):
        near = around * uniform_filter(chances.reshape(sides), 3, mode="constant").ravel()
        share = near - chances + TUNING.alike * chances.mean()
        share = np.clip(share / (around - 1 + TUNING.alike), 1e-9, 1.0)
        chances = share * filled / (share * filled + (1 - share) * empty)
    return chances


# --- the rounds


def auto(task: Task) -> Clustering:
    """The recommended algorithm: grid or tree, many starts on it, rounds of clipped residuals.

    Privacy: the number of records, then the grid, or margins and tree, then one or two rounds,
    each with its budget; how the budget is divided, and whether it all goes to one center, is
    decided by the first release and public facts. The radii to which residuals are clipped, the
    starts and the number of clusters are read from releases. More than 50 columns, a public
    number, are projected; in more than three, where noise of two means hides what they gain, one
    center is released instead.
    """
    n = task.measure_total()
    budget = task.parts["clustering"]
    k = max(task.clusters)
    many = task.n_axes > MANY_AXES
    # Fewer clusters where the noise of more hides what they gain: by released and public numbers.
    most = max(int(_MOST_NOISE * float(budget) * n / task.n_axes), 1)
    alone = task.n_axes > MOST_FLAT and (most == 1 or (many and k == 1))
    if task.init is None and alone:
        return one_center(task, n)
    if many:
        return projected(task, n, most)
    few = n * budget <= TUNING.grid_pays * k
    flat = task.n_axes < MOST_FLAT or (task.n_axes == MOST_FLAT and few)
    rounds = n * float(budget) / k**2 > (TUNING.rounds_pay_flat if flat else TUNING.rounds_pay)
    task.progress("boxes")
    sketch = first_sketch(task, n, budget, rounds, flat)
    release = sketch.release
    task.progress("clusters of the boxes")
    cloud = sketch.cloud
    judged = (cloud.points, cloud.weights) if len(cloud.weights) else None
    centroids, validity = cluster_released(
        task, sketch.centers, sketch.masses, sketch.ranges, judged
    )
    counts = cluster_masses(sketch.centers, sketch.masses, centroids)
    if rounds and len(sketch.centers):
        left = sketch.left
        task.progress("means of the clusters")
        if not flat:
            cloud, centroids = _first_round(task, sketch, centroids, left * TUNING.first_round)
            left -= left * TUNING.first_round
        measured, _ = _round(task, cloud, centroids, left)
        centroids, counts = measured.means, measured.counts
    return replace(release, centroids=centroids, counts=counts, validity=validity)


@dataclass(frozen=True)
class _Measured:
    """Released means.

    Attributes
    ----------
    means : ndarray of float64, shape (k, d)
        Steps from the frozen centroids are shrunk where noise is large.
    counts : ndarray of float64, shape (k,)
    sure : ndarray of bool, shape (k,)
        Whether the count stands out from its noise.
    """

    means: FloatArray
    counts: FloatArray
    sure: BoolArray


def _first_round(
    task: Task, sketch: _Sketch, centroids: FloatArray, budget: Fraction
) -> tuple[_Cloud, FloatArray]:
    """A round with more centroids than requested, then k-means on the cloud that it corrects.

    The means of parts of a cluster show where the boxes were too coarse, and starts are compared
    again on better points.
    """
    k, d = centroids.shape
    n = float(sketch.cloud.weights.sum())
    affordable = int(TUNING.split_noise * float(budget) * n / d)
    parts = min(
        TUNING.split * k,
        len(sketch.masses),
        affordable,
        max(TUNING.most_split, TUNING.split_many * k),
    )
    if parts <= k or task.init is not None:
        measured, cloud = _round(task, sketch.cloud, centroids, budget)
        candidates = measured.means[None]
    else:
        starts = task.greedy_starts(
            sketch.centers, sketch.masses, parts, TUNING.split_starts, sketch.ranges
        )
        finer = best_kmeans(sketch.centers, sketch.masses, starts, task.shape)[0]
        measured, cloud = _round(task, sketch.cloud, finer, budget)
        candidates = centroids[None]
        means, counts = measured.means[measured.sure], measured.counts[measured.sure]
        if len(means) >= k:
            starts = np.concatenate(
                [task.greedy_starts(means, counts, k, task.n_init, sketch.ranges), centroids[None]]
            )
            found = lloyd_on_cells(means, counts, starts, task.shape)
            best = np.argsort(found[1], kind="stable")[: TUNING.finalists]
            candidates = np.concatenate([candidates, found[0][best]])
    final = best_kmeans(cloud.points, cloud.weights, candidates, task.shape)[0]
    return cloud, final


def _round(
    task: Task, cloud: _Cloud, centroids: FloatArray, budget: Fraction
) -> tuple[_Measured, _Cloud]:
    """One private round, and the cloud with counts and means of the clusters as measured.

    The cloud gives the radii of clipping and a prior of the counts.
    """
    k, d = centroids.shape
    n = float(cloud.weights.sum())
    frozen = np.rint(centroids).astype(np.int64)
    labels = nearest(cloud.points, frozen.astype(np.float64))
    mass: FloatArray = np.bincount(labels, cloud.weights, minlength=k).astype(np.float64)
    residual = cloud.points - frozen[labels]
    spread = _spread(residual, cloud.weights, labels, mass)
    epsilon_count = budget * TUNING.counts
    epsilon_sum = budget - epsilon_count
    factor = _reach(spread, mass, n, d, float(epsilon_sum))
    reach = np.clip(np.ceil(factor * spread), 1, sum(task.shape)).astype(np.int64)
    released = noisy_round(task.points, frozen, reach, epsilon_count, epsilon_sum, task.source)

    counts, sure = released.averaged(mass)
    size = np.maximum(counts, 1.0)
    per = 1 / np.maximum(mass, 1e-9)[:, None]
    like = expected = _weighted_sums(residual, cloud.weights, labels, k) * per
    if cloud.fine:
        # Cells are small: the points of the cloud are clipped as the records in them.
        length = np.maximum(np.abs(residual).sum(axis=1), 1.0)
        weights = cloud.weights * np.minimum(reach[labels] / length, 1.0)
        like = _weighted_sums(residual, weights, labels, k) * per
    steps = np.where(sure[:, None], released.sums / size[:, None] - like, 0.0)
    steps = _pooled(steps, released.sum_variances / size**2, sure)

    top = np.array(task.shape) - 1.0
    moved = frozen + expected + steps
    points = np.clip(cloud.points + steps[labels], 0.0, top)
    scale = np.where(sure, counts / np.maximum(mass, 1e-9), 1.0)[labels]
    means = np.clip(moved, 0.0, top)
    moved_cloud = replace(cloud, points=points, weights=cloud.weights * scale)
    return _Measured(means, counts, sure), moved_cloud


def _spread(
    residual: FloatArray, weights: FloatArray, labels: IntArray, mass: FloatArray
) -> FloatArray:
    """Mean L1 norm of the residuals of each cluster of the cloud."""
    k, n = len(mass), float(weights.sum())
    length = np.abs(residual).sum(axis=1)
    # An almost empty cluster uses the mean over all clusters, in part.
    prior = 0.05 * n / k
    total = np.bincount(labels, weights * length, minlength=k)
    spread: FloatArray = (total + prior * (weights @ length) / n) / (mass + prior)
    return spread


def _reach(spread: FloatArray, mass: FloatArray, n: float, d: int, epsilon: float) -> float:
    """Radius of clipping in mean L1 norms: the largest whose noise matters little."""
    size = np.maximum(mass, 0.05 * n / len(mass))
    noise = 2 * d**2 * float(mass @ (spread / (epsilon * size)) ** 2)
    fitting = [
        reach for reach in TUNING.reaches if reach**2 * noise <= TUNING.little * (mass @ spread**2)
    ]
    return fitting[0] if fitting else TUNING.reaches[-1]


def _pooled(steps: FloatArray, noise: FloatArray, sure: BoolArray) -> FloatArray:
    """Steps shrunk toward zero: the noisiest steps shrink most.

    The spread beyond the noise is estimated by the method of moments, weighted by precision and
    repeated, because the weights depend on it.
    """
    squares = (steps**2).mean(axis=1)
    spread = float(np.median(squares)) + 1e-9
    for _ in range(8):
        weights = sure / (spread + noise) ** 2
        if not weights.any():
            break
        spread = max(float(weights @ (squares - noise) / weights.sum()), 0.0) + 1e-9
    return steps * (spread / (spread + noise))[:, None]


# ------------------------------------------------------------------------------------------------
# Many columns: clusters are found in a random projection, means released in all columns.
#
# Boxes tell only a few of many columns apart. A random projection to a few dimensions keeps
# distances in proportion (Johnson and Lindenstrauss): clusters that are far apart for their width
# stay so, and all columns help to tell them apart. What must be measured in all columns is only the
# means of the clusters that were found.
#
# Privacy (neighbours add or remove one record). The signs of the projection are random and
# independent of the records, so that the projected rows are like other public functions of each
# row. A grid of four of them costs its part of the budget as in `auto`. Every other step uses
# labels and centroids that are frozen: a record has one label, so it is in one cell of a histogram
# of lengths, adds 1 to one count, and to one cluster's sums integers whose absolute values sum to
# at most a released bound. Each of the three has a part of the step's budget, and the steps add up
# to epsilon.


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
# Parts of the budget: to center and scale the coordinates; then twice the other one, for the grid
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


def one_center(task: Task, n: int) -> Clustering:
    """One center, as far from the middle of the box as noise lets it be seen."""
    budget, d, ends = task.parts["clustering"], task.n_axes, _ends(task.shape)
    middle = ends.sum(axis=0, keepdims=True) // 2
    half = np.maximum(ends[1] - middle, 1)
    task.progress("the mean of all")
    # The part that makes the error of a center in a corner least.
    of_count = budget / (1 + Fraction((d**2 / 6) ** (1 / 3)).limit_denominator(100))
    everyone = np.zeros(len(task.points), dtype=np.int64)
    # Privacy. A round (see `noisy_round`) around a public point, in which all records have one
    # label. Its two parts sum to the budget; count and sums are all that is read of the records.
    parts = (of_count, budget - of_count, task.source)
    released = noisy_round(task.points, middle, half.sum(axis=1), *parts, everyone, ends)
    # Of two released numbers of records, weighted by precision; and a divisor that is larger where
    # it is uncertain, so that the mean of few records stays near the middle.
    own, known = released.count_variance, task.total_variance
    count = np.asarray((n * own + released.counts * known) / (own + known), dtype=np.float64)
    size = np.maximum(count, 1.0)
    size += own * known / (own + known) / size
    # What is common to all columns, in parts of their axes, is shrunk by itself.
    steps = released.sums / half / size
    variance = released.sum_variances * (1 / half**2).mean() / size**2
    common = steps.mean(axis=1, keepdims=True)
    steps = _shrunk(common, variance / d) + _shrunk(steps - common, variance)
    return _repeated(task, np.clip(middle + steps * half, *ends.astype(np.float64)), count)


def _shrunk(steps: FloatArray, variance: FloatArray) -> FloatArray:
    """Steps of each row shrunk by the part of their mean square that noise explains.

    Noise counts a standard deviation of its mean square more: the fourth moment of Laplace noise is
    six times its squared variance.
    """
    square = np.maximum((steps**2).mean(axis=1), 1e-300)
    most = variance * (1 + math.sqrt(5 / steps.shape[1]))
    return steps * np.maximum(1 - most / square, 0.0)[:, None]


def _repeated(
    task: Task, means: FloatArray, counts: FloatArray, valid: dict[int, float] | None = None
) -> Clustering:
    """As many centroids as were asked for: further ones repeat the first, and attract no record."""
    more = max(min(task.clusters) - len(means), 0)
    means = np.concatenate([means, means[np.arange(more) % len(means)]])
    return Clustering(means, np.append(counts, np.zeros(more)), validity=valid)


def projected(task: Task, n: int, most: int) -> Clustering:
    """At most so many clusters of a random projection, with means in all columns."""
    left = task.parts["clustering"]
    rows, d = task.points, len(task.shape)
    asked, validity = task, None
    k = min(max(task.clusters), most)
    if task.init is None:
        task = replace(task, clusters=tuple(c for c in task.clusters if c <= k) or (k,))
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
    ends = _ends(task.shape)
    if k > 1:
        first = _means(_Rows(rows, labels, ends), frozen, masses, left * _FIRST, task.source)
        # All columns tell clusters apart that the projection may have mixed.
        frozen = _codes_of(first.means, task.shape)
        labels, masses = nearest(rows, frozen.astype(np.float64)), first.counts
        left -= left * _FIRST
    last = _means(_Rows(rows, labels, ends), frozen, masses, left, task.source)
    means = np.clip(last.means, 0.0, np.array(task.shape) - 1.0)
    return _repeated(asked, means, last.counts, validity)


def _ends(shape: tuple[int, ...]) -> IntArray:
    """First and last code of each axis, (2, d)."""
    return np.array([np.zeros(len(shape)), np.array(shape) - 1], dtype=np.int64)


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
    for block in blocks(*rows.shape):
        # Twice the distance to the middle of the box is an integer, and all sums are exact.
        twice = 2.0 * rows[block] - (np.array(task.shape) - 1)
        wide[block] = np.clip((twice @ signs).astype(np.int64), -farthest, farthest)
    everyone = _Rows(
        wide, np.zeros(len(wide), dtype=np.int64), np.outer([-1, 1], np.full(_WIDE, farthest))
    )
    masses = np.array([float(n)])
    zero = np.zeros((1, _WIDE), dtype=np.int64)
    step = _means(everyone, zero, masses, epsilon * Fraction(3, 4), task.source)
    mean = np.rint(np.clip(step.means, -farthest, farthest)).astype(np.int64)
    length = _reach_within(everyone, mean, epsilon / 4, 0.5, task.source)[0]
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
    # The coordinates were scaled to fill the box.
    sketch = _grid_sketch(flat, n, np.array([[0, _SIDE]] * _GRID), part, Fraction(0))
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
    labelled = _Rows(wide, nearest(narrow, groups), _ends(space.shape))
    step = _means(labelled, frozen, masses, part, task.source)
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
    everyone = _Rows(rows, np.zeros(len(rows), dtype=np.int64), _ends(task.shape))
    left, part = budget, budget * _MIDDLE
    better = math.sqrt(2) * len(task.shape) / (float(part) * n)
    offset = center.offset
    for _ in range(_MOST_TIMES):
        if offset <= center.spread or better > _BETTER:
            break
        step = _means(everyone, point, np.array([float(n)]), part, task.source)
        point = _codes_of(step.means, task.shape)
        offset = better * math.hypot(offset, center.spread)
        left -= part
    return point[0], left


# --- means of labelled rows


class _Rows(NamedTuple):
    """Private integer points between two public ``ends``, (2, d), and their labels."""

    points: IntArray | CodeArray
    labels: IntArray
    ends: IntArray


def _means(
    rows: _Rows, frozen: IntArray, masses: FloatArray, budget: Fraction, source: NoiseSource
) -> _Measured:
    """Counts and means of the labels, around frozen centroids; spends ``budget``."""
    k, d = frozen.shape
    of_sums = budget * (1 - _COUNT_SHARE - _LENGTH_SHARE)
    noise = 2 * (d * k / (float(of_sums) * max(float(masses.sum()), 1.0))) ** 2
    within = _WITHIN_LARGE if noise < _LITTLE else _WITHIN
    reach = _reach_within(rows, frozen, budget * _LENGTH_SHARE, within, source)
    # Privacy. Labels and frozen centroids are public or released, so a record is in one histogram
    # cell and one count, and changes the sums of one label by integers whose absolute values sum to
    # at most its released reach, or are at most its distance to the public ends of their axis. The
    # three parts of the step sum to ``budget``.
    of_counts = budget * _COUNT_SHARE
    released = noisy_round(
        rows.points, frozen, reach, of_counts, of_sums, source, rows.labels, rows.ends
    )
    estimated, sure = released.averaged(masses)
    size = np.maximum(estimated, 1.0)
    steps = _shrunk(released.sums / size[:, None], released.sum_variances / size**2)
    return _Measured(frozen + steps, estimated, sure)


def _reach_within(
    rows: _Rows, frozen: IntArray, epsilon: Fraction, within: float, source: NoiseSource
) -> IntArray:
    """Length that a share of the residuals of each label does not exceed, from a histogram."""
    k, top = len(frozen), int((rows.ends[1] - rows.ends[0]).sum())
    exact = np.zeros((k, _LENGTHS), dtype=np.int64)
    # Bin b has the lengths below top * 2**-(b / _PER_POWER), in integers.
    ends = [math.floor(top * 2.0 ** (-b / _PER_POWER)) for b in range(1, _LENGTHS)]
    for block in blocks(*rows.points.shape):
        labels = rows.labels[block]
        length = np.abs(rows.points[block] - frozen[labels]).sum(axis=1)
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
    limits = np.array([top, *ends], dtype=np.int64)[place]
    return np.maximum(limits, 1)


def _clear(counts: FloatArray, unit: float) -> FloatArray:
    """Counts that stand out from their noise, the others zero; the largest if none does."""
    out = counts > _CLEAR * unit
    if not out.any():
        return (counts == counts.max()) * 1.0
    found: FloatArray = np.where(out, counts, 0.0)
    return found
