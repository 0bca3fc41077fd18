"""Private k-means: input and release of an algorithm, and k-means on releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._validation import CodeArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace
from .lloyd import (
    best_kmeans,
    kmeans_plus_plus,
    nearest,
    ray_turi,
    sphere_packing,
    validity,
)
from .sketch import Cells, Leaves

__all__ = ["Clustering", "Task", "cluster_masses", "cluster_released"]

# More clusters than this get no starts where there are fewer points.
_MANY = 500


@dataclass(frozen=True)
class Task:
    """Private points, and the public parameters of the clustering.

    Attributes
    ----------
    points : ndarray of int, shape (n, d)
        Codes below ``shape``: private. They may lie in a file.
    shape : tuple of int
    clusters : tuple of int
        Numbers of clusters to choose from, ascending.
    parts : mapping of str to Fraction
        The budget, by name.
    n_records : int or None
        Public number of records, or None.
    n_init : int
        Starts on released points.
    n_rounds : int or None
        Rounds of "lloyd", "lloyd-improved" and "genetic"; None for those of the algorithm.
    init : ndarray of float64, shape (k, d), or None
        Public starting centroids in codes, instead of drawn ones.
    source : NoiseSource
        Source of the noise, and of all other secret randomness.
    generator : numpy.random.Generator
        Generator for post-processing, and for starts.
    theta : float
        Records times epsilon for one cell of a grid.
    n_blocks : int or None
        Blocks of sample and aggregate, or None.
    progress : callable
        Is told, as text, which step begins, in numbers that are public or released.
    """

    points: CodeArray
    shape: tuple[int, ...]
    clusters: tuple[int, ...]
    parts: Mapping[str, Fraction]
    n_records: int | None
    n_init: int
    n_rounds: int | None
    init: FloatArray | None
    source: NoiseSource
    generator: np.random.Generator
    theta: float = 10.0
    n_blocks: int | None = None
    progress: Callable[[str], None] = lambda text: None

    @property
    def n_axes(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def measure_total(self) -> int:
        """Number of records, at least 1: the public one, or a noisy one.

        Each call without a public number spends the part "records": an algorithm calls it once.
        """
        if self.n_records is not None:
            return max(1, self.n_records)
        epsilon = self.parts["records"]
        return max(1, int(discrete_laplace(len(self.points), epsilon, random_state=self.source)))

    def starts(self, k: int) -> FloatArray:
        """Starts that do not look at any data, (n_init, k, d)."""
        if self.init is not None:
            return self.init[None]
        return sphere_packing(self.shape, k, self.n_init, self.generator)

    def greedy_starts(
        self, points: FloatArray, weights: FloatArray, k: int, n: int, ranges: IntArray
    ) -> FloatArray:
        """Starts on released points: two thirds by k-means++, one third spread over ranges."""
        if self.init is not None:
            return self.init[None]
        greedy = n - n // 3
        starts = kmeans_plus_plus(points, weights, k, greedy, self.generator)
        if greedy < n:
            low, high = ranges.T
            spread = sphere_packing(tuple(high - low), k, n - greedy, self.generator)
            starts = np.concatenate([starts, low + spread])
        return starts


@dataclass(frozen=True)
class Clustering:
    """The release of an algorithm.

    Attributes
    ----------
    centroids : ndarray of float64, shape (k, d)
        In codes.
    counts : ndarray of float64, shape (k,), or None
        Noisy numbers of records of the clusters.
    cells : Cells or None
        The noisy grid.
    edges : list of ndarray or None
        Edges of the grid.
    cell_epsilon : Fraction or None
        The noise of the cells.
    validity : dict of int to float, or None
        Validity of every number of clusters tried.
    leaves : Leaves or None
        Boxes of a noisy tree, in parts of the axes that ``edges`` separate.
    """

    centroids: FloatArray
    counts: FloatArray | None = None
    cells: Cells | None = None
    edges: list[IntArray] | None = None
    cell_epsilon: Fraction | None = None
    validity: dict[int, float] | None = None
    leaves: Leaves | None = None


def cluster_released(
    task: Task,
    points: FloatArray,
    weights: FloatArray,
    ranges: IntArray | None = None,
    cloud: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, dict[int, float] | None]:
    """Best centroids on released points, for the most valid number of clusters.

    Parameters
    ----------
    task : Task
    points : ndarray of float64, shape (m, d)
        If there are none, one point in the middle of the box is used.
    weights : ndarray of float64, shape (m,)
        May be negative.
    ranges : ndarray of int64, shape (d, 2), default=None
        Start by k-means++ on the points as well, and by sphere packing in these ranges of codes.
        None: by sphere packing in the whole box.
    cloud : tuple of ndarray, default=None
        Points and positive weights on which numbers of clusters are compared, by `validity`. None:
        on the released points, by the validity of Ray and Turi, as the dissertation does.

    Returns
    -------
    centroids : ndarray of float64, shape (k, d)
    validity : dict of int to float, or None
        None where there was no choice.
    """
    if not len(points):
        points = (np.array([task.shape], dtype=np.float64) - 1) / 2
        weights = np.ones(1)
    found = {}
    filled = points[weights > 0]
    for k in task.clusters:
        if task.init is None and 0 < len(filled) <= k and k > _MANY:
            # Nothing to search for, and starts for so many clusters would take long.
            found[k] = filled[np.arange(k) % len(filled)]
            continue
        if ranges is None:
            starts = task.starts(k)
        else:
            starts = task.greedy_starts(points, weights, k, task.n_init, ranges)
        found[k] = best_kmeans(points, weights, starts, task.shape)[0]
    if len(found) == 1:
        return found[task.clusters[0]], None
    valid = {
        k: validity(*cloud, c) if cloud else ray_turi(points, weights, c) for k, c in found.items()
    }
    return found[min(valid, key=lambda k: valid[k])], valid


def cluster_masses(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> FloatArray:
    """Sum of the weights of the released points that are nearest to each centroid."""
    labels = nearest(points, centroids)
    return np.bincount(labels, weights=weights, minlength=len(centroids)).astype(np.float64)
