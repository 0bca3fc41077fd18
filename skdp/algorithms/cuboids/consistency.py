"""The lattice of cuboids, consistency of noisy tables, L2, L1 and Linf, and its variances."""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from ..._random import sampling_generator
from ..._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_between,
    as_epsilon,
    as_integer,
    check_choice,
)
from ...mechanisms import discrete_laplace_quantile

# --- how large a cube can be planned and held in memory

# A cube of 12 dimensions has 4,096 cuboids; planning compares them pairwise.
MAX_CUBOIDS = 4096
# Largest table that may be measured, and all tables together: 2**26 cells are 512 MiB.
MAX_SOURCE_CELLS = 2**25
MAX_CELLS = 2**26
# A bit mask of dimensions is an int64.
MAX_DIMENSIONS = 62


def _check_extent(sizes: tuple[int, ...], top: int) -> None:
    """Raise ValueError, with the remedies, for a cube that cannot be planned or held.

    ``top``: cuboids with at most this many dimensions are published.
    """
    d = len(sizes)
    # Numbers of cuboids of 0, 1, ... dimensions, and of their cells: the coefficients of the
    # polynomial prod (1 + size x).
    cells = np.ones(1, dtype=object)
    for size in sizes:
        cells = np.convolve(cells, np.array([1, size], dtype=object))
    n_cells = list(itertools.accumulate(cells.tolist()))
    n_cuboids = list(itertools.accumulate(math.comb(d, order) for order in range(d + 1)))

    def possible(order: int) -> bool:
        few = n_cuboids[order] <= MAX_CUBOIDS and n_cells[order] <= MAX_CELLS
        return few and d <= MAX_DIMENSIONS

    if possible(top):
        return
    largest = max(filter(possible, range(1, top)), default=None)
    fewer = "" if largest is None else f"max_order={largest} publishes fewer cuboids; or "
    raise ValueError(
        f"The cube has {n_cuboids[top]:,} cuboids with {n_cells[top]:,} cells; at most "
        f"{MAX_CUBOIDS:,} cuboids, {MAX_CELLS:,} cells and {MAX_DIMENSIONS} dimensions can be "
        f"handled. Remedies: {fewer}choose fewer dimensions; or coarser bins or fewer categories."
    )


# --- the cuboids, and which of them contain which


def dimensions_of(mask: int) -> tuple[int, ...]:
    """Numbers of the dimensions of a cuboid, ascending."""
    found, rest = [], int(mask)
    while rest:
        found.append((rest & -rest).bit_length() - 1)
        rest &= rest - 1
    return tuple(found)


def with_dimension(masks: Iterable[int]) -> dict[int, list[int]]:
    """The cuboids that have each dimension, in their order."""
    found: dict[int, list[int]] = defaultdict(list)
    for mask in masks:
        for i in dimensions_of(mask):
            found[i].append(mask)
    return found


def axis_of(mask: int, dimension: int) -> int:
    """Axis of a dimension in the table of a cuboid."""
    return (mask & ((1 << dimension) - 1)).bit_count()


@dataclass(frozen=True, eq=False)
class Lattice:
    """The cuboids that may be measured or published, with each one all those below it.

    Use :func:`lattice` to build one.

    Attributes
    ----------
    sizes : tuple of int
        Number of values of each dimension.
    masks : ndarray of int64, shape (m,)
        The cuboids, those of fewer dimensions first.
    published : ndarray of bool, shape (m,)
        Which of them are wanted; the others may serve as sources.
    cells : ndarray of float64, shape (m,)
        Number of cells of each.
    freedom : ndarray of float64, shape (m,)
        Product of (size - 1): the dimension of the space of interactions of exactly these
        dimensions. 0 where they are known.
    above : sparse array of shape (m, m)
        1 in row S and column C where S is contained in C. ``above @ x`` sums over the cuboids
        above, ``above.T @ x`` over those below, each including the cuboid itself.
    """

    sizes: tuple[int, ...]
    masks: IntArray
    published: BoolArray
    cells: FloatArray
    freedom: FloatArray
    above: sparse.csr_array

    def __len__(self) -> int:
        return len(self.masks)

    @functools.cached_property
    def position(self) -> dict[int, int]:
        """Position of each mask."""
        return {int(mask): place for place, mask in enumerate(self.masks)}

    @functools.cached_property
    def below(self) -> sparse.csr_array:
        """The transpose of ``above``, by rows."""
        return self.above.T.tocsr()

    def shape(self, mask: int) -> tuple[int, ...]:
        """Shape of the table of a cuboid."""
        return tuple(self.sizes[i] for i in dimensions_of(mask))

    def below_of(self, place: int) -> NDArray[np.intp]:
        """Positions of the cuboids contained in the one at ``place``."""
        rows = self.below
        return rows.indices[rows.indptr[place] : rows.indptr[place + 1]]


@functools.lru_cache(maxsize=8)
def lattice(
    sizes: tuple[int, ...], max_order: int | None = None, known: tuple[int, ...] = ()
) -> Lattice:
    """Build the lattice of the cuboids with at most ``max_order`` dimensions.

    Cuboids of more dimensions are added as possible sources, as long as their tables are small
    enough to be measured and there are at most 4,096 cuboids in all.

    Parameters
    ----------
    sizes : tuple of int
        Number of values of each dimension.
    max_order : int, optional
        Publish cuboids with at most this number of dimensions; all by default.
    known : tuple of int, default=()
        Masks of cuboids that are known without error, and with them all below.

    Raises
    ------
    ValueError
        If there are too many cuboids, or their tables are too large; the message says how large
        and what to do.
    """
    d = len(sizes)
    top = d if max_order is None else min(max_order, d)
    _check_extent(sizes, top)
    masks = _choose_masks(sizes, top)
    array = np.array(masks, dtype=np.int64)
    bits = array[:, None] >> np.arange(d) & 1 if d else np.zeros((1, 0), dtype=np.int64)
    size_row = np.array(sizes, dtype=np.float64)
    cells = np.where(bits, size_row, 1.0).prod(axis=1)
    freedom = np.where(bits, size_row - 1.0, 1.0).prod(axis=1)
    for mask in known:
        freedom[array & ~mask == 0] = 0.0
    return Lattice(sizes, array, bits.sum(axis=1) <= top, cells, freedom, _containment(masks))


def _choose_masks(sizes: tuple[int, ...], top: int) -> list[int]:
    """The cuboids that are published, and larger ones that may be sources."""
    d = len(sizes)
    masks: list[int] = []
    for order in range(d + 1):
        level = (
            [
                sum(1 << i for i in chosen)
                for chosen in itertools.combinations(range(d), order)
                if order <= top or math.prod(sizes[i] for i in chosen) <= MAX_SOURCE_CELLS
            ]
            if math.comb(d, order) <= MAX_CUBOIDS
            else []
        )
        if order > top and (not level or len(masks) + len(level) > MAX_CUBOIDS):
            break
        masks.extend(sorted(level))
    return masks


def _containment(masks: list[int]) -> sparse.csr_array:
    """1 in row S and column C where cuboid S is contained in cuboid C."""
    array = np.array(masks, dtype=np.int64)
    by_value = np.argsort(array)
    ordered = array[by_value]
    rows, columns = [], []
    for place, mask in enumerate(masks):
        below = np.zeros(1, dtype=np.int64)
        for i in dimensions_of(mask):
            below = np.concatenate([below, below | 1 << i])
        rows.append(by_value[np.searchsorted(ordered, below)])
        columns.append(np.full(len(below), place))
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(masks),) * 2)


# ------------------------------------------------------------------------------------------------
# L2 consistency: the tables that agree with each other and are closest in weighted squares.
#
# A table is the sum of its interactions, one part for each set S of its dimensions, which sums to
# zero along every dimension of S. Summing a table C over the dimensions outside S keeps the
# interactions of S and destroys no other information about them, so least squares decouples: the
# estimate for S is the mean of these sums over all measured C that contain S, with weights
# 1 / (v_C n_C), minus the parts of smaller sets (the means along each axis).


def consistent_l2(
    cube: Lattice,
    tables: Mapping[int, NDArray],
    noise: FloatArray,
    known: Mapping[int, FloatArray] | None = None,
) -> dict[int, FloatArray]:
    """Tables that agree with each other and are closest to the noisy ones in weighted squares.

    The best linear unbiased estimate of every published cuboid: each measured cuboid is weighted
    by the inverse of its noise variance. Exact, in O(d * prod(n_i + 1)) operations.

    Parameters
    ----------
    cube : Lattice
    tables : mapping of int to ndarray
        Noisy table of each measured cuboid.
    noise : ndarray of float64, shape (m,)
        Variance of the noise in each cell of a measured cuboid, inf for those not measured.
    known : mapping of int to ndarray, default=None
        Tables without error, which agree with each other; the lattice names them too.

    Returns
    -------
    dict of int to ndarray of float64
        The published cuboids that the measured and the known ones determine.
    """
    weighted, precision = _pool_downward(cube, tables, noise)
    # Interactions are estimated one by one: those of known tables take the place of measured ones.
    exact, weights = _pool_downward(cube, known or {}, np.ones(len(cube)))
    result = _interactions(cube, weighted | exact, precision | weights)
    # Add the interactions of all smaller sets, spread evenly over the dimensions they lack.
    having = with_dimension(result)
    for i, size in enumerate(cube.sizes):
        for mask in having[i]:
            result[mask] += np.expand_dims(result[mask ^ 1 << i], axis_of(mask, i)) / size
    return result


def _pool_downward(
    cube: Lattice, tables: Mapping[int, NDArray], noise: FloatArray
) -> tuple[dict[int, FloatArray], dict[int, float]]:
    """For each cuboid the weighted sum of the measured ones above it, and the sum of weights."""
    weighted: dict[int, FloatArray] = {}
    precision: dict[int, float] = {}
    for mask, table in tables.items():
        place = cube.position[mask]
        weight = 1.0 / (noise[place] * cube.cells[place])
        weighted[mask] = weight * np.asarray(table, dtype=np.float64)
        precision[mask] = float(weight)
    # After dimension i, a cuboid without i holds the sums from those that have it.
    having = with_dimension(weighted)
    for i in range(len(cube.sizes)):
        for mask in having[i]:
            smaller = mask ^ 1 << i
            summed = weighted[mask].sum(axis=axis_of(mask, i))
            if smaller in weighted:
                weighted[smaller] += summed
                precision[smaller] += precision[mask]
            else:
                weighted[smaller], precision[smaller] = summed, precision[mask]
                for each in dimensions_of(smaller):
                    having[each].append(smaller)
    return weighted, precision


def _interactions(
    cube: Lattice, weighted: dict[int, FloatArray], precision: dict[int, float]
) -> dict[int, FloatArray]:
    """Estimated interactions of every published cuboid that the measured ones determine."""
    result: dict[int, FloatArray] = {}
    for mask, place in cube.position.items():
        if not cube.published[place]:
            continue
        # Cuboids below come first: one that is missing leaves those above it undetermined.
        if not all(mask ^ 1 << i in result for i in dimensions_of(mask)):
            continue
        if mask in weighted:
            result[mask] = without_means(weighted[mask] / precision[mask])
        elif not cube.freedom[place]:
            result[mask] = np.zeros(cube.shape(mask))
    return result


def without_means(table: FloatArray) -> FloatArray:
    """The residual of a table after subtracting the means along every axis.

    It is the interaction of all dimensions of the table.
    """
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


# ------------------------------------------------------------------------------------------------
# L1 and Linf consistency: consistent tables with the least sum or maximum of absolute residuals.
#
# Residuals are divided by the scale of their noise. Both are linear programs. The unknowns are the
# cells of the largest measured tables; smaller ones are sums of them. Tables agree with some common
# table (of real numbers, possibly negative) if and only if each two agree where they overlap,
#   because
# interactions can be chosen one by one.


# Larger linear programs take minutes.
MAX_LP_CELLS = 100_000


def consistent_lp(
    cube: Lattice, tables: Mapping[int, NDArray], scales: Mapping[int, float], norm: str
) -> dict[int, FloatArray]:
    """Tables that agree with each other and are closest to the noisy ones in L1 or L-infinity.

    Residuals are divided by the scale of their noise. The L1 solution is the most likely truth
    under Laplace noise.

    Parameters
    ----------
    cube : Lattice
    tables : mapping of int to ndarray
        Noisy table of each measured cuboid.
    scales : mapping of int to float
        Scale of the noise of each measured cuboid.
    norm : {"l1", "linf"}

    Returns
    -------
    dict of int to ndarray of float64
        The published cuboids that the measured ones determine.

    Raises
    ------
    ValueError
        If the tables have more than 100,000 cells, or the solver fails.
    """
    check_lp_size(cube, tuple(tables))
    unknowns = _Unknowns.of(cube, tuple(tables))
    above = [next(big for big in unknowns.offsets if mask & big == mask) for mask in tables]
    observed = sparse.vstack([unknowns.summed(*each) for each in zip(above, tables, strict=True)])
    y = np.concatenate([np.ravel(table) for table in tables.values()]).astype(np.float64)
    unit = np.concatenate([np.full(table.size, scales[mask]) for mask, table in tables.items()])
    agreements, n_slack = unknowns.agreements(), 2 * len(y) if norm == "l1" else 1
    right, within = np.zeros(agreements.shape[0]), {}
    equal = sparse.hstack([agreements, sparse.csr_array((len(right), n_slack))])
    if norm == "l1":
        # observed - unit * over + unit * under = y, at the cost sum(over + under).
        scale, right = sparse.diags(unit), np.append(right, y)
        equal = sparse.vstack([equal, sparse.hstack([observed, -scale, scale])])
    else:
        # |observed - y| <= unit * worst, at the cost worst.
        column = sparse.csr_array(unit[:, None])
        sides = [sparse.hstack([sign * observed, -column]) for sign in (1, -1)]
        within = {"A_ub": sparse.vstack(sides).tocsr(), "b_ub": np.concatenate([y, -y])}
    solution = optimize.linprog(
        np.repeat([0.0, 1.0], [unknowns.size, n_slack]),
        A_eq=equal.tocsr(),
        b_eq=right,
        bounds=[(None, None)] * unknowns.size + [(0, None)] * n_slack,
        method="highs",
        **within,
    )
    if solution.x is None:
        raise ValueError(
            f"The linear program of consistency={norm!r} was not solved ({solution.message}). "
            "Use consistency='l2', which needs no solver."
        )
    # The solver meets its constraints to about 1e-7; least squares removes that remainder.
    noise = np.full(len(cube), np.inf)
    noise[[cube.position[mask] for mask in unknowns.offsets]] = 1.0
    return consistent_l2(cube, unknowns.tables(solution.x), noise)


def check_lp_size(cube: Lattice, masks: tuple[int, ...]) -> None:
    """Raise ValueError for linear programs that would take too long."""
    cells = sum(math.prod(cube.shape(mask)) for mask in masks)
    if cells > MAX_LP_CELLS:
        raise ValueError(
            f"The measured cuboids have {cells:,} cells; the linear programs of consistency='l1' "
            f"and 'linf' take at most {MAX_LP_CELLS:,}. Use consistency='l2', which is exact, fast "
            "and has the smallest error, or fewer dimensions."
        )


class _Unknowns(NamedTuple):
    """The cells of the largest measured tables, one after the other.

    Attributes
    ----------
    cube : Lattice
    offsets : dict of int to int
        Where the cells of each of these tables begin.
    size : int
        Number of all cells.
    """

    cube: Lattice
    offsets: dict[int, int]
    size: int

    @classmethod
    def of(cls, cube: Lattice, masks: tuple[int, ...]) -> _Unknowns:
        """The unknowns when the cuboids ``masks`` are measured."""
        offsets: dict[int, int] = {}
        size = 0
        for mask in masks:
            if not any(mask != other and mask & other == mask for other in masks):
                offsets[mask] = size
                size += math.prod(cube.shape(mask))
        return cls(cube, offsets, size)

    def summed(self, mask: int, target: int) -> sparse.csr_array:
        """Matrix that sums the unknown table ``mask`` to ``target``."""
        shape = self.cube.shape(target)
        cells = np.arange(math.prod(shape)).reshape(shape)
        for axis, dimension in enumerate(dimensions_of(mask)):
            if not target >> dimension & 1:
                cells = np.repeat(np.expand_dims(cells, axis), self.cube.sizes[dimension], axis)
        rows = cells.ravel()
        columns = self.offsets[mask] + np.arange(len(rows))
        size = (math.prod(shape), self.size)
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=size)

    def agreements(self) -> sparse.csr_array:
        """A matrix that gives zero if and only if the tables agree where they overlap."""
        equal = [sparse.csr_array((0, self.size))]
        for overlap in sorted({a & b for a, b in itertools.combinations(self.offsets, 2)}):
            first, *others = [mask for mask in self.offsets if mask & overlap == overlap]
            equal += [self.summed(first, overlap) - self.summed(other, overlap) for other in others]
        return sparse.vstack(equal)

    def tables(self, values: FloatArray) -> dict[int, FloatArray]:
        """The tables that a solution stands for."""
        result = {}
        for mask, start in self.offsets.items():
            shape = self.cube.shape(mask)
            result[mask] = values[start : start + math.prod(shape)].reshape(shape)
        return result


# --- variances of reconstructions without a closed form (L1 and Linf), by simulation


def simulated_interactions(
    cube: Lattice, rates: Mapping[int, float], scales: Mapping[int, float], norm: str, runs: int
) -> FloatArray:
    """Variance of the interactions of `consistent_lp`, from noise alone.

    Its error commutes with adding consistent tables, so that it does not depend on the truth, and
    it is the same for all cells of a cuboid: so noise on an empty cube gives the variances, with
    all cells and runs pooled. No data are read.

    Parameters
    ----------
    cube : Lattice
    rates : mapping of int to float
        The noise of each measured cuboid is discrete Laplace of ratio exp(-rate).
    scales, norm
        As for `consistent_lp`.
    runs : int
        Number of simulated reconstructions.

    Returns
    -------
    ndarray of float64, shape (m,)
        As from `interaction_variances`.
    """
    rng = sampling_generator(2)
    squares: dict[int, float] = {}
    for _ in range(runs):
        noisy = {}
        for mask, rate in rates.items():
            # The difference of two geometric numbers has the discrete Laplace distribution.
            one, other = rng.geometric(-math.expm1(-rate), (2, *cube.shape(mask)))
            noisy[mask] = (one - other).astype(np.float64)
        for mask, table in consistent_lp(cube, noisy, scales, norm).items():
            squares[mask] = squares.get(mask, 0.0) + float((without_means(table) ** 2).sum())
    variances = np.where(cube.freedom > 0, np.inf, 0.0)
    for mask, total in squares.items():
        place = cube.position[mask]
        if cube.freedom[place]:
            variances[place] = total / (runs * cube.freedom[place])
    return variances


# ------------------------------------------------------------------------------------------------
# How far L1 and Linf consistency may be off.


class ConsistencyBound(NamedTuple):
    """Bounds of the sum of the absolute errors of all measured cells, in records.

    Attributes
    ----------
    published : float
        By the paper's formula, for continuous Laplace noise.
    tight : float
        For the discrete noise that is drawn.
    """

    published: float
    tight: float


def consistency_bound(
    n_cells: int, n_sources: int, epsilon: float, norm: str = "l1", delta: float = 0.05
) -> ConsistencyBound:
    """How far tables may be off after L1 or Linf consistency, with probability 1 - ``delta``.

    Parameters
    ----------
    n_cells : int
        Number of cells of all measured cuboids together.
    n_sources : int
        Number of measured cuboids, which have equal budgets.
    epsilon : float
        Privacy parameter of all of them together.
    norm : {"l1", "linf"}, default="l1"
        ``consistency`` of the `DataCube`.
    delta : float, default=0.05
        Probability that a bound fails.

    Returns
    -------
    ConsistencyBound

    Notes
    -----
    The true tables are consistent, so the consistent ones are no farther from the noisy ones than
    the true ones are, and at most twice as far from the true ones: by the sum of the absolute
    noise (L1), or by its maximum in each cell (Linf). The sum is bounded by Chernoff's inequality,
    the maximum by the exact law.

    Examples
    --------
    >>> from skdp.inspection import consistency_bound
    >>> bound = consistency_bound(n_cells=100, n_sources=4, epsilon=1.0)
    >>> round(bound.published), round(bound.tight)
    (1012, 1005)
    """
    n, sources = as_integer(n_cells, "n_cells", 1), as_integer(n_sources, "n_sources", 1)
    check_choice(norm, "norm", ("l1", "linf"))
    fails = float(as_between(delta, "delta", 1e-300, 1 - 1e-9, meaning="it is a probability."))
    each = as_epsilon(epsilon) / sources
    scale = 1 / float(each)
    if norm == "linf":
        largest = discrete_laplace_quantile((1 - fails) ** (1 / n), each)
        return ConsistencyBound(2 * n * scale * math.log(n / fails), 2.0 * n * largest)
    # Sums of exponentials with mean 1 exceed n u with probability at most (u exp(1 - u))**n.
    goal = math.log(fails) / n
    u = optimize.brentq(lambda u: math.log(u) - u + 1 - goal, 1.0, 3.0 - 2 * goal)
    rest = math.exp(-1 / scale)

    def exceeded(share: float) -> float:
        # The logarithm of E[exp(t |X|)] for t = share / scale.
        grown = math.exp((share - 1) / scale)
        law = math.log((1 - rest) / (1 + rest)) + math.log1p(2 * grown / (1 - grown))
        return (n * law - math.log(fails)) * scale / share

    found = optimize.minimize_scalar(exceeded, bounds=(1e-6, 1 - 1e-9), method="bounded")
    return ConsistencyBound(2 * n * scale * u, 2 * float(found.fun))


# ------------------------------------------------------------------------------------------------
# Variances of cuboids: after weighted least squares, and from the one best source.
#
# A cuboid C has n_C cells; if it is measured, each of its cells gets noise of the variance v_C.


def interaction_variances(cube: Lattice, noise: FloatArray) -> FloatArray:
    """Variance of the interactions after weighted least squares.

    Parameters
    ----------
    cube : Lattice
    noise : ndarray of float64, shape (m,)
        Variance of the noise in each cell of a measured cuboid, inf for those not measured.

    Returns
    -------
    ndarray of float64, shape (m,)
        For each set S of dimensions the number u_S such that the estimated interactions S (a
        table over S that sums to zero along each axis) have the covariance u_S times the
        projection onto such tables. inf where no measured cuboid contains S, 0 where S has a
        dimension of one value and hence no interactions.

    Notes
    -----
    Tables split into orthogonal spaces of interactions, one for each set S of dimensions, and
    least squares decouples: the interactions S are estimated from all measured cuboids C that
    contain S, with weights 1 / (v_C n_C). With Omega_S the sum of these, u_S = 1 / (n_S Omega_S).
    """
    precision = cube.above @ (1.0 / (noise * cube.cells))
    result = np.zeros(len(cube))
    free = cube.freedom > 0
    with np.errstate(divide="ignore"):
        result[free] = 1.0 / (cube.cells[free] * precision[free])
    return result


def cell_variances(cube: Lattice, interactions: FloatArray) -> FloatArray:
    """Variance in each cell of every cuboid, from those of the interactions.

    A cell of A is the sum over S in A of its interaction S times n_S / n_A, and the projection
    has prod_{i in S} (1 - 1 / n_i) on its diagonal.
    """
    return (cube.below @ (cube.freedom * cube.cells * interactions)) / cube.cells**2


def blue_variances(cube: Lattice, noise: FloatArray) -> FloatArray:
    """Cell variance of every cuboid after weighted least squares.

    Parameters
    ----------
    cube : Lattice
    noise : ndarray of float64, shape (m,)
        Variance of the noise in each cell of a measured cuboid, inf for those not measured.

    Returns
    -------
    ndarray of float64, shape (m,)
        inf where the measured cuboids do not determine the cuboid.
    """
    return cell_variances(cube, interaction_variances(cube, noise))


def box_variances(
    cube: Lattice, mask: int, interactions: FloatArray, weights: Sequence[FloatArray]
) -> FloatArray:
    """Variance of weighted sums of cells of one cuboid, exactly.

    Parameters
    ----------
    cube : Lattice
    mask : int
        The cuboid.
    interactions : ndarray of float64, shape (m,)
        From `interaction_variances`.
    weights : sequence of ndarray of float64, shape (k_i, n_i)
        For each dimension of the cuboid k_i vectors of weights.

    Returns
    -------
    ndarray of float64, shape (k_1, k_2, ...)
        For each combination of vectors q_1, q_2, ...: the variance of the sum of the cells
        weighted by the product q_1 q_2 ...

    Notes
    -----
    n_A**-2 * sum over S in A of n_S**2 u_S * prod_{i in S} (|q_i|**2 - (sum q_i)**2 / n_i) *
    prod_{i not in S} (sum q_i)**2.
    """
    dimensions = dimensions_of(mask)
    result = np.zeros((2,) * len(dimensions))
    for corner in itertools.product((0, 1), repeat=len(dimensions)):
        part = sum(1 << i for i, inside in zip(dimensions, corner, strict=True) if inside)
        place = cube.position[part]
        result[corner] = cube.cells[place] ** 2 * interactions[place]
    for vectors in weights:
        squared_sum = vectors.sum(axis=1) ** 2
        inside = (vectors**2).sum(axis=1) - squared_sum / vectors.shape[1]
        # Takes the axis of one dimension from the front and puts its vectors at the end.
        factors = np.stack([squared_sum, np.maximum(inside, 0.0)])
        result = np.tensordot(result, factors, axes=([0], [0]))
    return result / cube.cells[cube.position[mask]] ** 2


def best_sources(cube: Lattice, noise: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """Cell variance of every cuboid when it is summed from the one best source above it.

    Returns
    -------
    variances : ndarray of float64, shape (m,)
        inf where no measured cuboid is above.
    source : ndarray of int, shape (m,)
        Position of that source, -1 for none.
    """
    best = np.full(len(cube), np.inf)
    source = np.full(len(cube), -1, dtype=np.intp)
    # Small tables first: in a tie, the sums are shorter.
    measured = np.flatnonzero(np.isfinite(noise))
    for place in measured[np.argsort(cube.cells[measured], kind="stable")]:
        below = cube.below_of(place)
        variance = noise[place] * cube.cells[place] / cube.cells[below]
        better = variance < best[below] * (1 - 1e-12)
        best[below[better]] = variance[better]
        source[below[better]] = place
    return best, source


# --- publishing without consistency: every cuboid is summed from its one best source


def derive(
    cube: Lattice, tables: Mapping[int, NDArray], noise: FloatArray
) -> dict[int, FloatArray]:
    """Sum every published cuboid from its one best source; cuboids need not agree.

    Parameters
    ----------
    cube : Lattice
    tables : mapping of int to ndarray
        Noisy table of each measured cuboid.
    noise : ndarray of float64, shape (m,)
        Variance of the noise in each cell of a measured cuboid, inf for those not measured.

    Returns
    -------
    dict of int to ndarray of float64
        The published cuboids that lie below a measured one.
    """
    _, source = best_sources(cube, noise)
    return {
        mask: _sum_to(tables[int(cube.masks[source[place]])], int(cube.masks[source[place]]), mask)
        for mask, place in cube.position.items()
        if cube.published[place] and source[place] >= 0
    }


def _sum_to(table: NDArray, mask: int, target: int) -> FloatArray:
    """Sum a table over the dimensions of ``mask`` that ``target`` lacks."""
    axes = tuple(
        axis for axis, dimension in enumerate(dimensions_of(mask)) if not target >> dimension & 1
    )
    return np.asarray(table.sum(axis=axes), dtype=np.float64)


# --- weighted sums of cells of any cuboids: the law of their noise
#
# A question is a sum of products: for some sets of dimensions one weight for each code, multiplied
# over the dimensions and summed over the cells. Its interactions S have the weights prod_{i in S}
# (q_i - mean q_i) * prod_{i not in S} mean q_i, so that its error is known exactly from those of
# the interactions, and so is the weight that it gives to each cell of each measured cuboid. Codes
# with the same weights are treated together: a box has two kinds in each dimension.

Weights = Mapping[int, FloatArray]


class Terms(NamedTuple):
    """Independent noises in an answer: their weights and variances, and how many of each."""

    weight: FloatArray
    variance: FloatArray
    times: FloatArray

    @property
    def total(self) -> float:
        """Variance of the sum."""
        return float((self.times * self.weight**2) @ self.variance)


class Functional:
    """A weighted sum of cells of published cuboids.

    Parameters
    ----------
    cube : Lattice
    parts : sequence of dict of int to ndarray of float64, shape (n_i,)
        Products to be added up: real weights for the codes of some dimensions.
    factors : sequence of float
        A factor for each part.
    """

    def __init__(self, cube: Lattice, parts: Sequence[Weights], factors: Sequence[float]) -> None:
        self._cube = cube
        self._factors = factors
        self._axes = sorted({axis for part in parts for axis in part})
        self._own = [sum(1 << axis for axis in part) for part in parts]
        self._number: dict[int, FloatArray] = {}
        # Weights of each part for each kind of code of an axis, and their means over the codes.
        self._weights: list[dict[int, tuple[FloatArray, float]]] = [{} for _ in parts]
        for axis in self._axes:
            plain = np.ones(cube.sizes[axis])
            listed = np.stack([np.asarray(part.get(axis, plain), float) for part in parts])
            kinds, number = np.unique(listed, axis=1, return_counts=True)
            self._number[axis] = number.astype(np.float64)
            for own, row in zip(self._weights, kinds, strict=True):
                own[axis] = row, float(row @ number) / cube.sizes[axis]

    def variance(self, interactions: FloatArray) -> float:
        """Variance of the answer, from `interaction_variances` or their simulation."""
        total = 0.0
        for mask in self._interactions_within(self._all):
            times = self._outer([self._number[axis] for axis in dimensions_of(mask)])
            square = float((self._component(mask) ** 2 * times).sum())
            total += float(interactions[self._cube.position[mask]]) * square
        return total

    def terms(self, noise: FloatArray, interactions: FloatArray) -> Terms:
        """Weights of the noise in the measured cuboids after weighted least squares.

        Parameters
        ----------
        noise : ndarray of float64, shape (m,)
            Variance in each cell of a measured cuboid, inf for those not measured.
        interactions : ndarray of float64, shape (m,)
            From `interaction_variances`.
        """
        cube, known, found = self._cube, {}, []
        for place in np.flatnonzero(np.isfinite(noise)).tolist():
            mask = int(cube.masks[place])
            inside = mask & self._all
            if inside not in known:
                known[inside] = self._summed(inside, interactions)
            weight = known[inside] / (noise[place] * cube.cells[place])
            found.append(self._of_source(place, weight, noise))
        return _joined(found)

    def terms_of_sources(self, noise: FloatArray, source: Sequence[int]) -> Terms:
        """The same where each cuboid is summed from one measured cuboid.

        Parameters
        ----------
        noise : as for `terms`
        source : sequence of int
            Position of the measured cuboid for each part.
        """
        found = []
        for place in sorted(set(source)):
            inside = int(self._cube.masks[place]) & self._all
            axes = dimensions_of(inside)
            weight = np.zeros([len(self._number[axis]) for axis in axes])
            for factor, own, each in zip(self._factors, self._weights, source, strict=True):
                if each == place:
                    weight += factor * self._outer([own[axis][0] for axis in axes])
            found.append(self._of_source(place, weight, noise))
        return _joined(found)

    def cells(self, measured: Sequence[int]) -> int:
        """Number of weights that `terms` would compute, for measured cuboids by their masks."""
        sizes = {axis: len(number) for axis, number in self._number.items()}
        return sum(
            math.prod(sizes[axis] for axis in dimensions_of(mask & self._all)) for mask in measured
        )

    @property
    def _all(self) -> int:
        return sum(1 << axis for axis in self._axes)

    def _interactions_within(self, inside: int) -> set[int]:
        """The sets of dimensions, among some, whose interactions matter to a part."""
        found = set()
        for own in self._own:
            subsets = [0]
            for axis in dimensions_of(own & inside):
                subsets += [each | 1 << axis for each in subsets]
            found.update(subsets)
        return found

    def _component(self, mask: int) -> FloatArray:
        """Weights of the interactions of a set of dimensions."""
        axes = dimensions_of(mask)
        result = np.zeros([len(self._number[axis]) for axis in axes])
        for factor, own, held in zip(self._factors, self._own, self._weights, strict=True):
            # A part without one of the dimensions does not depend on their interactions.
            if not mask & ~own:
                rest = math.prod(mean for axis, (_, mean) in held.items() if not mask >> axis & 1)
                inside = self._outer([held[axis][0] - held[axis][1] for axis in axes])
                result += factor * rest * inside
        return result

    def _summed(self, inside: int, interactions: FloatArray) -> FloatArray:
        """Weights of all interactions within some dimensions, spread over these."""
        cube, axes = self._cube, dimensions_of(inside)
        result = np.zeros([len(self._number[axis]) for axis in axes])
        for mask in self._interactions_within(inside):
            place = cube.position[mask]
            shape = [len(self._number[axis]) if mask >> axis & 1 else 1 for axis in axes]
            # The inverse of the precision with which they are known.
            known = interactions[place] * cube.cells[place]
            result += known * self._component(mask).reshape(shape)
        return result

    def _of_source(self, place: int, weight: FloatArray, noise: FloatArray) -> Terms:
        """Terms of one measured cuboid."""
        mask = int(self._cube.masks[place])
        axes = dimensions_of(mask & self._all)
        times = self._outer([self._number[axis] for axis in axes])
        others = math.prod(self._cube.sizes[axis] for axis in dimensions_of(mask & ~self._all))
        flat = np.ravel(weight)
        return Terms(flat, np.full(len(flat), noise[place]), np.ravel(times) * others)

    @staticmethod
    def _outer(vectors: Sequence[FloatArray]) -> FloatArray:
        return functools.reduce(np.multiply.outer, vectors, np.ones(()))


def _joined(terms: Sequence[Terms]) -> Terms:
    return Terms(*(np.concatenate(each) for each in zip(*terms, strict=True)))
