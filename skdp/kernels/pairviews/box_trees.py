"""Trees of boxes that get smaller where the counts are large, by which views are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays import running_sums
from ..._random import noise_source
from ..._types import BoolArray, FloatArray, IntArray
from ...hierarchy import Blue, Tree, non_negative
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .boxes import box_counts, divide, leaf_numbers, prefix_sums

__all__ = [
    "TreeMeasurement",
    "TreePlan",
    "combined",
    "joined",
    "measure_tree",
    "root",
    "spread",
    "without_impossible",
]


@dataclass(frozen=True)
class TreePlan:
    """How a tree of boxes is measured.

    Parameters
    ----------
    levels : int
        Number of measured levels below the root.
    ratio : Fraction
        Budget of a level divided by that of the level above.
    cap : int
        Largest number of children of a box.
    noise_ratio : float, default=2.0
        A box with the noisy count z is divided into ``z * budget / noise_ratio`` boxes.
    """

    levels: int
    ratio: Fraction
    cap: int
    noise_ratio: float = 2.0

    def budgets(self, epsilon: Fraction) -> list[Fraction]:
        """Budget of each level; they sum to ``epsilon``."""
        powers = [self.ratio**level for level in range(self.levels)]
        return [epsilon * power / sum(powers) for power in powers]

    def children(self, counts: FloatArray, budget: Fraction) -> FloatArray:
        """Number of parts, measured with ``budget``, of boxes with these counts."""
        return np.minimum(np.maximum(counts, 0.0) * (float(budget) / self.noise_ratio), self.cap)


class TreeMeasurement(NamedTuple):
    """A measured tree of boxes in level order.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (n_nodes, n_axes)
    parent : ndarray of int64, shape (n_nodes,)
        -1 for the root.
    values, variances : ndarray of float64, shape (n_nodes,)
    prices : list of Fraction
        The budgets that nodes are measured with.
    price : ndarray of int64, shape (n_nodes,)
        Position in ``prices`` of the budget of each node.
    """

    lower: IntArray
    upper: IntArray
    parent: IntArray
    values: FloatArray
    variances: FloatArray
    prices: list[Fraction]
    price: IntArray

    @property
    def is_leaf(self) -> BoolArray:
        """Whether a node has no children."""
        leaf = np.ones(len(self.parent), dtype=bool)
        leaf[self.parent[1:]] = False
        return leaf

    def total(self) -> float:
        """The number of records by all measurements together, unbiased: it may be negative."""
        tree = Tree.from_parents(self.parent)
        blue = Blue(tree, self.variances[tree.order])
        return float(blue.subtree_estimate(self.values[tree.order])[0][0])

    def estimates(self) -> FloatArray:
        """Consistent, non-negative counts of all nodes."""
        tree = Tree.from_parents(self.parent)
        out = np.empty(len(self.parent))
        values, variances = self.values[tree.order], self.variances[tree.order]
        out[tree.order] = non_negative(Blue(tree, variances), values)
        return out


class _Level(NamedTuple):
    """The nodes of one level, as in `TreeMeasurement`."""

    lower: IntArray
    upper: IntArray
    parent: IntArray
    values: FloatArray
    variances: FloatArray
    price: IntArray


def measure_tree(
    counts: NDArray[np.integer],
    epsilon: Fraction,
    total: float,
    masses: Sequence[FloatArray],
    plan: TreePlan,
    *,
    random_state: Any = None,
) -> TreeMeasurement:
    """Measure a table of one or more axes by boxes that are smaller where counts are large.

    Parameters
    ----------
    counts : ndarray of int
        Exact and private.
    epsilon : Fraction
        Cost of the whole tree.
    total : float
        The released number of records, the value of the root.
    masses : sequence of ndarray
        Released or public mass of the positions of each axis, all positive: boxes are cut
        into parts of equal mass.
    plan : TreePlan
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    TreeMeasurement
    """
    # Privacy. Released: noisy counts of boxes. Whether a box is divided or measured again depends
    # on its released noisy count and public numbers only, so the choice of the next measurements is
    # post-processing of the earlier ones. A record lies in one box of each level it reaches: boxes
    # of one level are disjoint and compose in parallel, levels one after the other. A level costs
    # its budget; a box that is not divided is measured once more with the budgets of all levels
    # that its path does not reach. So every path costs exactly epsilon (the prices along it add
    # up).
    source = noise_source(random_state)
    budgets = plan.budgets(epsilon)
    sums = prefix_sums(counts)
    cumulated = [running_sums(mass) for mass in masses]
    level = root(counts.shape, total)
    levels, n_above, prices = [level], 0, [Fraction(0)]
    # The root is always divided: its count is already released.
    wanted = np.maximum(plan.children(level.values, budgets[0]), 2.0)
    divided = (level.upper > 1).any(axis=1)
    for depth, budget in enumerate(budgets):
        if not divided.any():
            break
        above, low, high = divide(
            level.lower[divided], level.upper[divided], wanted[divided], cumulated
        )
        parent = n_above + np.flatnonzero(divided)[above]
        n_above += len(level.parent)
        exact = box_counts(sums, low, high)
        noisy = discrete_laplace(exact, budget, random_state=source).astype(np.float64)
        variance = np.full(len(noisy), discrete_laplace_variance(budget))
        price = np.full(len(noisy), len(prices))
        prices.append(budget)
        rest = sum(budgets[depth + 1 :], Fraction(0))
        divided = np.zeros(len(noisy), dtype=bool)
        if rest:
            wanted = plan.children(noisy, budgets[depth + 1])
            divided = (wanted >= 2.0) & (high - low > 1).any(axis=1)
            ends = ~divided
            again = discrete_laplace(exact[ends], rest, random_state=source)
            noisy[ends], variance[ends] = combined(
                noisy[ends], variance[ends], again, discrete_laplace_variance(rest)
            )
            price[ends] = len(prices)
            prices.append(budget + rest)
        level = _Level(low, high, parent, noisy, variance, price)
        levels.append(level)
    return joined(levels, prices)


def root(shape: tuple[int, ...], total: float, variance: float = 0.0) -> _Level:
    """The box of all cells, whose count is released already."""
    return _Level(
        np.zeros((1, len(shape)), dtype=np.int64),
        np.array([shape], dtype=np.int64),
        np.array([-1]),
        np.array([float(total)]),
        np.array([float(variance)]),
        np.array([0]),
    )


def combined(
    first: FloatArray, first_variance: FloatArray, second: IntArray, second_variance: float
) -> tuple[FloatArray, FloatArray]:
    """Two measurements of the same counts weighted by their precision, and the variance."""
    v, w = first_variance, second_variance
    return (w * first + v * second) / (v + w), v * w / (v + w)


def joined(levels: Sequence[_Level], prices: list[Fraction]) -> TreeMeasurement:
    """All levels, from the root down."""
    return TreeMeasurement(
        np.concatenate([level.lower for level in levels]),
        np.concatenate([level.upper for level in levels]),
        np.concatenate([level.parent for level in levels]),
        np.concatenate([level.values for level in levels]),
        np.concatenate([level.variances for level in levels]),
        prices,
        np.concatenate([level.price for level in levels]),
    )


def without_impossible(measurement: TreeMeasurement, allowed: BoolArray) -> TreeMeasurement:
    """The measurement with the exact count 0 for leaves that public rules leave empty."""
    leaf = np.flatnonzero(measurement.is_leaf)
    number = leaf_numbers(measurement.lower[leaf], measurement.upper[leaf], allowed.shape)
    cells = np.bincount(number.ravel(), weights=allowed.ravel(), minlength=len(leaf))
    empty = leaf[cells == 0]
    values, variances = measurement.values.copy(), measurement.variances.copy()
    values[empty] = variances[empty] = 0.0
    return measurement._replace(values=values, variances=variances)


def spread(measurement: TreeMeasurement, model: FloatArray, *, trust: float = 0.0) -> FloatArray:
    """Estimated counts of all cells: leaves of a measured tree spread in proportion to a model.

    Parameters
    ----------
    measurement : TreeMeasurement
    model : ndarray of float64
        Of the shape of the table; only proportions matter.
    trust : float, default=0.0
        If positive, the count of each leaf is shrunk towards that of the model; noisier leaves are
        shrunk more. The assumed relative error of the model is 1 / ``trust``.

    Returns
    -------
    ndarray of float64
        Of the shape of ``model``, not negative.
    """
    leaf = np.flatnonzero(measurement.is_leaf)
    estimates = measurement.estimates()
    counts = estimates[leaf]
    number = leaf_numbers(measurement.lower[leaf], measurement.upper[leaf], model.shape)
    mass = np.bincount(number.ravel(), weights=model.ravel(), minlength=len(leaf))
    if trust:
        # Discrete Laplace noise has heavy tails: occasionally the error of a leaf is as large as
        # its count, and the sums above it are too noisy to correct that.
        modelled = mass * (estimates[0] / mass.sum())
        doubt = (np.maximum(modelled, counts) / trust) ** 2
        known = np.divide(
            doubt, doubt + measurement.variances[leaf], out=np.ones(len(leaf)), where=doubt > 0
        )
        counts = modelled + known * (counts - modelled)
    density = np.divide(counts, mass, out=np.zeros(len(leaf)), where=mass > 0)
    return density[number] * model
