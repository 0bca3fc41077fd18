"""Data cubes: which cuboids to measure, with what budget, and how to make all of them agree.

A cuboid is the table of counts over some of the dimensions; the 2**d cuboids of d dimensions form
a lattice. Noise goes into a few of them, the sources; every cuboid below a source can be computed
from it by summation. Everything in this module is either planning, which reads the public sizes
of the dimensions only, or post-processing of noisy tables. A cuboid is named by a bit mask: bit i
stands for dimension i.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from threadpoolctl import threadpool_limits

from ._random import sampling_generator

__all__ = [
    "Lattice",
    "Plan",
    "best_sources",
    "blue_variances",
    "box_variances",
    "cell_variances",
    "check_lp_size",
    "consistent_l2",
    "consistent_lp",
    "derive",
    "dimensions_of",
    "equal_shares",
    "interaction_variances",
    "lattice",
    "plan_all",
    "plan_base",
    "plan_bmax",
    "plan_optimized",
    "plan_pmost",
    "simulated_interactions",
]

# A cube of 12 dimensions has 4,096 cuboids; planning compares them pairwise.
MAX_CUBOIDS = 4096
# Largest table that may be measured, and all tables together: 2**26 cells are 512 MiB.
MAX_SOURCE_CELLS = 2**25
MAX_CELLS = 2**26

Floats = NDArray[np.float64]
Tables = Mapping[int, NDArray]
Progress = Callable[[str], None]


def dimensions_of(mask: int) -> tuple[int, ...]:
    """Numbers of the dimensions of a cuboid, ascending."""
    return tuple(i for i in range(int(mask).bit_length()) if mask >> i & 1)


@dataclass(frozen=True, eq=False)
class Lattice:
    """The cuboids that may be measured or published: with each one, all those below it.

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
        dimensions.
    above : sparse array of shape (m, m)
        1 in row S and column C where S is contained in C. ``above @ x`` sums over the cuboids
        above, ``above.T @ x`` over those below, each including the cuboid itself.
    """

    sizes: tuple[int, ...]
    masks: NDArray[np.int64]
    published: NDArray[np.bool_]
    cells: Floats
    freedom: Floats
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
def lattice(sizes: tuple[int, ...], max_order: int | None = None) -> Lattice:
    """Build the lattice of the cuboids with at most ``max_order`` dimensions.

    Cuboids of more dimensions, whose tables are not too large to be measured, are added as
    possible sources as long as there are at most 4,096 cuboids in all.

    Parameters
    ----------
    sizes : tuple of int
        Number of values of each dimension.
    max_order : int, optional
        Publish cuboids up to this number of dimensions; all by default.

    Raises
    ------
    ValueError
        If there are too many cuboids, or their tables are too large; the message says how large
        and what to do.
    """
    d = len(sizes)
    top = d if max_order is None else min(max_order, d)
    _check_extent(sizes, top)
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
    array = np.array(masks, dtype=np.int64)
    bits = array[:, None] >> np.arange(d) & 1 if d else np.zeros((1, 0), dtype=np.int64)
    size_row = np.array(sizes, dtype=np.float64)
    cells = np.where(bits, size_row, 1.0).prod(axis=1)
    freedom = np.where(bits, size_row - 1.0, 1.0).prod(axis=1)

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
    above = sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(masks),) * 2)
    return Lattice(sizes, array, bits.sum(axis=1) <= top, cells, freedom, above)


def _check_extent(sizes: tuple[int, ...], top: int) -> None:
    """Refuse cubes that cannot be planned or held, with the remedies."""
    d = len(sizes)
    # Coefficients: cuboids, and cells, of each number of dimensions.
    cells = [1] + [0] * d
    for done, size in enumerate(sizes):
        for order in range(done + 1, 0, -1):
            cells[order] += size * cells[order - 1]
    n_cuboids = list(itertools.accumulate(math.comb(d, order) for order in range(d + 1)))
    n_cells = list(itertools.accumulate(cells))
    if n_cuboids[top] <= MAX_CUBOIDS and n_cells[top] <= MAX_CELLS and d <= 62:
        return
    possible = [
        order
        for order in range(1, top)
        if n_cuboids[order] <= MAX_CUBOIDS and n_cells[order] <= MAX_CELLS and d <= 62
    ]
    remedies = []
    if possible:
        order = possible[-1]
        remedies.append(
            f"publish only cuboids of at most {order} dimensions, max_order={order} "
            f"({n_cuboids[order]:,} cuboids, {n_cells[order]:,} cells)"
        )
    remedies.append("choose fewer dimensions")
    remedies.append("use coarser bins or fewer categories")
    raise ValueError(
        f"The cube has {n_cuboids[top]:,} cuboids with {n_cells[top]:,} cells, which take "
        f"{_bytes(8 * n_cells[top])}; at most {MAX_CUBOIDS:,} cuboids, {MAX_CELLS:,} cells "
        f"({_bytes(8 * MAX_CELLS)}) and 62 dimensions can be handled. Remedies: "
        + "; or ".join(remedies)
        + "."
    )


def _bytes(number: int) -> str:
    units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    power = min(len(units) - 1, max(0, (number.bit_length() - 1) // 10))
    value = number / 1024**power
    return (
        f"{value:,.0f} {units[power]}"
        if value >= 10 or not power
        else f"{value:.1f} {units[power]}"
    )


# --- variances: n_C cells, noise variance v_C in each cell of a measured cuboid C -----------------


def interaction_variances(cube: Lattice, noise: Floats) -> Floats:
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


def cell_variances(cube: Lattice, interactions: Floats) -> Floats:
    """Variance in each cell of every cuboid, from those of the interactions.

    A cell of A is the sum over S in A of its interaction S times n_S / n_A, and the projection
    has prod_{i in S} (1 - 1 / n_i) on its diagonal.
    """
    return (cube.below @ (cube.freedom * cube.cells * interactions)) / cube.cells**2


def blue_variances(cube: Lattice, noise: Floats) -> Floats:
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
    cube: Lattice, mask: int, interactions: Floats, weights: Sequence[Floats]
) -> Floats:
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


def best_sources(cube: Lattice, noise: Floats) -> tuple[Floats, NDArray[np.intp]]:
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
    # Small tables first: where sources tie, the sums are shorter.
    measured = np.flatnonzero(np.isfinite(noise))
    for place in measured[np.argsort(cube.cells[measured], kind="stable")]:
        below = cube.below_of(place)
        variance = noise[place] * cube.cells[place] / cube.cells[below]
        better = variance < best[below] * (1 - 1e-12)
        best[below[better]] = variance[better]
        source[below[better]] = place
    return best, source


# --- consistency: noisy tables in, agreeing tables out --------------------------------------------


def derive(cube: Lattice, tables: Tables, noise: Floats) -> dict[int, Floats]:
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


def _sum_to(table: NDArray, mask: int, target: int) -> Floats:
    """Sum a table over the dimensions of ``mask`` that ``target`` lacks."""
    axes = tuple(
        axis for axis, dimension in enumerate(dimensions_of(mask)) if not target >> dimension & 1
    )
    return np.asarray(table.sum(axis=axes), dtype=np.float64)


def consistent_l2(cube: Lattice, tables: Tables, noise: Floats) -> dict[int, Floats]:
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

    Returns
    -------
    dict of int to ndarray of float64
        The published cuboids that the measured ones determine.

    Notes
    -----
    A table is the sum of its interactions, one part for each set S of its dimensions, which sums
    to zero along every dimension of S. Summing a table C over the dimensions outside S keeps the
    interactions of S and destroys no other information about them, so least squares decouples:
    the estimate for S is the mean of these sums over all measured C that contain S, with weights
    1 / (v_C n_C), less the parts of smaller sets (the means along each axis).
    """
    weighted: dict[int, Floats] = {}
    precision: dict[int, float] = {}
    for mask, table in tables.items():
        place = cube.position[mask]
        weight = 1.0 / (noise[place] * cube.cells[place])
        weighted[mask] = weight * np.asarray(table, dtype=np.float64)
        precision[mask] = float(weight)
    # After dimension i, a cuboid without i holds the sums from those that have it.
    for i in range(len(cube.sizes)):
        for mask in [mask for mask in weighted if mask >> i & 1]:
            smaller = mask ^ 1 << i
            summed = weighted[mask].sum(axis=_axis(mask, i))
            if smaller in weighted:
                weighted[smaller] += summed
                precision[smaller] += precision[mask]
            else:
                weighted[smaller], precision[smaller] = summed, precision[mask]
    result: dict[int, Floats] = {}
    for mask, place in cube.position.items():
        if not cube.published[place]:
            continue
        # Cuboids below come first: one that is missing leaves those above it undetermined.
        if not all(mask ^ 1 << i in result for i in dimensions_of(mask)):
            continue
        if not cube.freedom[place]:
            result[mask] = np.zeros(cube.shape(mask))
        elif mask in weighted:
            result[mask] = _without_means(weighted[mask] / precision[mask])
    # Add the interactions of all smaller sets, spread evenly over the dimensions they lack.
    for i, size in enumerate(cube.sizes):
        for mask in result:
            if mask >> i & 1:
                result[mask] += np.expand_dims(result[mask ^ 1 << i], _axis(mask, i)) / size
    return result


def _axis(mask: int, dimension: int) -> int:
    """Axis of a dimension in the table of a cuboid."""
    return (mask & ((1 << dimension) - 1)).bit_count()


# Larger linear programs take minutes.
MAX_LP_CELLS = 100_000


def consistent_lp(
    cube: Lattice, tables: Tables, scales: Mapping[int, float], norm: str
) -> dict[int, Floats]:
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
    # Unknown are the cells of the largest measured tables; smaller ones are sums of them. Tables
    # agree with some common table (of real numbers, possibly negative) if and only if each two
    # agree where they overlap, because interactions can be chosen one by one.
    largest = [m for m in tables if not any(m != other and m & other == m for other in tables)]
    offsets = dict(
        zip(largest, np.cumsum([0] + [tables[mask].size for mask in largest]), strict=False)
    )
    unknown = sum(tables[mask].size for mask in largest)

    def summed(mask: int, target: int) -> sparse.csr_array:
        """Matrix that sums the unknown table ``mask`` to ``target``."""
        cells = np.arange(math.prod(cube.shape(target))).reshape(cube.shape(target))
        for axis, dimension in enumerate(dimensions_of(mask)):
            if not target >> dimension & 1:
                cells = np.repeat(np.expand_dims(cells, axis), cube.sizes[dimension], axis)
        rows = cells.ravel()
        columns = offsets[mask] + np.arange(len(rows))
        size = (math.prod(cube.shape(target)), unknown)
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=size)

    observe, target, scale = [], [], []
    for mask, table in tables.items():
        above = next(big for big in largest if mask & big == mask)
        observe.append(summed(above, mask))
        target.append(np.asarray(table, dtype=np.float64).ravel())
        scale.append(np.full(table.size, float(scales[mask])))
    observed, y, unit = sparse.vstack(observe), np.concatenate(target), np.concatenate(scale)
    overlaps = {a & b for a, b in itertools.combinations(largest, 2)}
    equal = []
    for overlap in sorted(overlaps):
        first, *others = [mask for mask in largest if mask & overlap == overlap]
        equal += [summed(first, overlap) - summed(other, overlap) for other in others]

    cells = len(y)
    identity = sparse.csr_array(sparse.diags(unit))
    zero = np.zeros(unknown)
    if norm == "l1":
        # observed - unit * over + unit * under = y, at the cost sum(over + under).
        cost = np.concatenate([zero, np.ones(2 * cells)])
        blocks = [sparse.hstack([observed, -identity, identity])]
        extra = 2 * cells
        upper: dict[str, Any] = {}
        right = [y]
    else:
        # |observed - y| <= unit * worst, at the cost worst.
        cost = np.append(zero, 1.0)
        column = sparse.csr_array(unit[:, None])
        upper = {
            "A_ub": sparse.vstack(
                [sparse.hstack([observed, -column]), sparse.hstack([-observed, -column])]
            ).tocsr(),
            "b_ub": np.concatenate([y, -y]),
        }
        blocks, right, extra = [], [], 1
    for row in equal:
        blocks.append(sparse.hstack([row, sparse.csr_array((row.shape[0], extra))]))
        right.append(np.zeros(row.shape[0]))
    if blocks:
        upper |= {"A_eq": sparse.vstack(blocks).tocsr(), "b_eq": np.concatenate(right)}
    bounds = [(None, None)] * unknown + [(0, None)] * extra
    solution = optimize.linprog(cost, bounds=bounds, method="highs", **upper)
    if solution.x is None:
        raise ValueError(
            f"The linear program of consistency={norm!r} was not solved ({solution.message}). "
            "Use consistency='l2', which needs no solver."
        )
    fitted = {
        mask: solution.x[offsets[mask] : offsets[mask] + tables[mask].size].reshape(
            cube.shape(mask)
        )
        for mask in largest
    }
    # The solver meets its constraints to about 1e-7; least squares removes that rest.
    noise = np.full(len(cube), np.inf)
    noise[[cube.position[mask] for mask in largest]] = 1.0
    return consistent_l2(cube, fitted, noise)


def check_lp_size(cube: Lattice, masks: tuple[int, ...]) -> None:
    """Refuse linear programs that would take too long."""
    cells = sum(math.prod(cube.shape(mask)) for mask in masks)
    if cells > MAX_LP_CELLS:
        raise ValueError(
            f"The measured cuboids have {cells:,} cells; the linear programs of consistency='l1' "
            f"and 'linf' take at most {MAX_LP_CELLS:,}. Use consistency='l2', which is exact, fast "
            "and has the smallest error, or fewer dimensions."
        )


def simulated_interactions(
    cube: Lattice,
    rates: Mapping[int, float],
    reconstruct: Callable[[dict[int, Floats]], dict[int, Floats]],
    runs: int,
) -> Floats:
    """Variance of the interactions of a reconstruction without closed form, from noise alone.

    The error of a reconstruction that commutes with adding consistent tables does not depend on
    the truth, and it is the same for all cells of a cuboid: so noise on an empty cube tells the
    variances, with all cells and runs pooled. No data are read.

    Parameters
    ----------
    cube : Lattice
    rates : mapping of int to float
        The noise of each measured cuboid is discrete Laplace of ratio exp(-rate).
    reconstruct : callable
        From noisy tables to tables that agree.
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
            # A difference of two geometric numbers has the discrete Laplace law.
            one, other = rng.geometric(-math.expm1(-rate), (2, *cube.shape(mask)))
            noisy[mask] = (one - other).astype(np.float64)
        for mask, table in reconstruct(noisy).items():
            squares[mask] = squares.get(mask, 0.0) + float((_without_means(table) ** 2).sum())
    variances = np.where(cube.freedom > 0, np.inf, 0.0)
    for mask, total in squares.items():
        place = cube.position[mask]
        if cube.freedom[place]:
            variances[place] = total / (runs * cube.freedom[place])
    return variances


def _without_means(table: Floats) -> Floats:
    """The interactions of all dimensions of a table: the rest when the means are taken off."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


# --- planning -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """Which cuboids to measure, and which share of epsilon each gets.

    Attributes
    ----------
    masks : tuple of int
        The sources.
    shares : tuple of Fraction
        Positive; they sum to 1 exactly.
    """

    masks: tuple[int, ...]
    shares: tuple[Fraction, ...]


def equal_shares(cube: Lattice, places: NDArray[np.integer] | list[int]) -> Plan:
    """Plan that measures the cuboids at ``places`` with equal budgets."""
    masks = tuple(int(cube.masks[place]) for place in sorted(places))
    return Plan(masks, (Fraction(1, len(masks)),) * len(masks))


def plan_all(cube: Lattice) -> Plan:
    """Noise in every published cuboid."""
    return equal_shares(cube, np.flatnonzero(cube.published))


def plan_base(cube: Lattice) -> Plan:
    """Noise in the base cuboid alone, the table over all dimensions.

    Raises
    ------
    ValueError
        If that table is too large to be measured.
    """
    base = (1 << len(cube.sizes)) - 1
    if base not in cube.position:
        cells = math.prod(cube.sizes)
        raise ValueError(
            f"strategy='base' measures the table over all dimensions, which has {cells:,} cells "
            f"({_bytes(8 * cells)}); at most {MAX_SOURCE_CELLS:,} can be measured. Use another "
            "strategy, which measures smaller tables."
        )
    return Plan((base,), (Fraction(1),))


# Distinct thresholds that the greedy covers are tried with; cubes of up to 8 dimensions have
# fewer, and beyond that neighbouring thresholds give the same cover or nearly so.
_MAX_THRESHOLDS = 400


@dataclass(frozen=True, eq=False)
class _Covers:
    """How much the noise grows from any source to any published cuboid.

    Attributes
    ----------
    growth : ndarray of float64, shape (m, n_published)
        Cells of the source summed into one cell of the cuboid; inf where it is not below.
    """

    cube: Lattice
    growth: Floats

    @classmethod
    def of(cls, cube: Lattice) -> _Covers:
        growth = np.full((len(cube), len(cube)), np.inf)
        for place in range(len(cube)):
            below = cube.below_of(place)
            growth[place, below] = cube.cells[place] / cube.cells[below]
        return cls(cube, growth[:, cube.published])

    def thresholds(self) -> Floats:
        distinct = np.unique(self.growth[np.isfinite(self.growth)])
        if len(distinct) > _MAX_THRESHOLDS:
            chosen = np.geomspace(1, len(distinct), _MAX_THRESHOLDS).round().astype(int) - 1
            distinct = distinct[np.unique(chosen)]
        return distinct

    def greedy(self, threshold: float, worth: Floats) -> Iterator[int]:
        """Sources in the order of a greedy cover within the threshold."""
        covers = self.growth <= threshold
        left = np.ones(covers.shape[1], dtype=bool)
        gain = covers @ worth
        while True:
            # The first of equals has the fewest dimensions.
            chosen = int(np.argmax(gain))
            if gain[chosen] <= 1e-12 * worth.sum():
                return
            yield chosen
            new = covers[chosen] & left
            left &= ~new
            gain -= covers[:, new] @ worth[new]

    def cover(self, threshold: float, limit: float = math.inf) -> list[int] | None:
        """Sources that cover everything within the threshold; None if more than ``limit``."""
        chosen: list[int] = []
        for source in self.greedy(threshold, np.ones(self.growth.shape[1])):
            if len(chosen) >= limit:
                return None
            chosen.append(source)
        return chosen

    def score(self, chosen: list[int], worth: Floats | None) -> tuple[float, float]:
        """Variance with equal budgets, in units of that of one source, and what breaks ties.

        The largest variance and the plain mean, or the weighted mean and the largest.
        """
        return _ranked(len(chosen) ** 2 * self.growth[chosen].min(axis=0), worth)

    def score_consistent(self, chosen: list[int], worth: Floats | None) -> tuple[float, float]:
        """The same after weighted least squares."""
        noise = np.full(len(self.cube), np.inf)
        noise[chosen] = len(chosen) ** 2
        return _ranked(blue_variances(self.cube, noise)[self.cube.published], worth)

    def prune(
        self, chosen: list[int], worth: Floats | None
    ) -> tuple[tuple[float, float], list[int]]:
        """Leave sources out as long as that does not hurt."""
        score = self.score(chosen, worth)
        while len(chosen) > 1:
            trials = [
                (self.score(chosen[:place] + chosen[place + 1 :], worth), place)
                for place in range(len(chosen))
            ]
            best, place = min(trials)
            if best > score:
                break
            score = best
            chosen = chosen[:place] + chosen[place + 1 :]
        return score, chosen


def _ranked(variances: Floats, worth: Floats | None) -> tuple[float, float]:
    """Largest and plain mean variance, or weighted mean and largest: the second breaks ties."""
    largest = float(variances.max())
    if math.isinf(largest):
        return math.inf, math.inf
    pair = (largest, variances.mean()) if worth is None else (worth @ variances, largest)
    # Rounded, so that equal variances are equal.
    first, second = (float(f"{value:.12g}") for value in pair)
    return first, second


# Sets with more members are not pruned one by one: each leaves too little to gain.
_MAX_PRUNED = 128


def plan_bmax(cube: Lattice, weights: Floats | None = None, consistent: bool = False) -> Plan:
    """Few sources with equal budgets that keep the largest variance small.

    For every threshold a greedy cover chooses sources such that each cuboid is summed from at
    most that many cells; members that are not needed are left out, and the set with the least
    actual variance wins. Measuring everything, and the base alone, are among the candidates; of
    sets with equal largest variance the one with the smaller mean wins.

    Parameters
    ----------
    cube : Lattice
    weights : ndarray of float64, shape (m,), optional
        Keep the mean variance with these weights small instead of the largest one.
    consistent : bool, default=False
        Compare the candidates by their variance after weighted least squares, instead of that
        of cuboids summed from one source.
    """
    covers = _Covers.of(cube)
    worth = None if weights is None else weights[cube.published] / weights[cube.published].sum()
    everything = np.flatnonzero(cube.published).tolist()
    best_raw = covers.score(everything, worth)
    candidates = [everything]
    # Few sources first: they bound how many are worth trying.
    for threshold in covers.thresholds()[::-1]:
        # s sources score at least s**2, and pruning leaves out few: many more cannot win.
        chosen = covers.cover(threshold, 2 * math.sqrt(best_raw[0]) + 8)
        if chosen is None:
            continue
        candidates.append(chosen)
        if len(chosen) <= _MAX_PRUNED:
            candidates.append(covers.prune(chosen, worth)[1])
        best_raw = min(best_raw, covers.score(candidates[-1], worth))
    scored = covers.score_consistent if consistent else covers.score
    distinct = {frozenset(chosen): chosen for chosen in candidates}.values()
    return equal_shares(cube, min(distinct, key=lambda chosen: scored(chosen, worth)))


def plan_pmost(
    cube: Lattice,
    limit: float,
    noise_of: Callable[[int], float],
    weights: Floats | None = None,
) -> Plan:
    """Sources with equal budgets that bring most cuboids within a bound on the variance.

    Parameters
    ----------
    cube : Lattice
    limit : float
        Bound on the cell variance of a cuboid.
    noise_of : callable
        Noise variance in the cells of each of s sources with equal budgets.
    weights : ndarray of float64, shape (m,), optional
        Worth of publishing each cuboid; all the same by default.

    Raises
    ------
    ValueError
        If no cuboid can meet the bound.
    """
    covers = _Covers.of(cube)
    worth = np.ones(len(cube)) if weights is None else weights
    worth = worth[cube.published]
    best: tuple[float, float, list[int]] | None = None
    for count in range(1, int(cube.published.sum()) + 1):
        # 1e-9: a bound copied from a plan's own figures is met.
        threshold = limit * (1 + 1e-9) / noise_of(count)
        if threshold < 1:
            break
        chosen = list(itertools.islice(covers.greedy(threshold, worth), count))
        growth = covers.growth[chosen].min(axis=0)
        # Fewer sources than foreseen have larger budgets, and may bring more within the bound.
        precise = growth <= limit * (1 + 1e-9) / noise_of(len(chosen))
        gain = float(worth[precise].sum())
        spread = float(worth[precise] @ growth[precise]) * noise_of(len(chosen))
        if best is None or (gain, -spread) > (best[0], -best[1]):
            best = (gain, spread, chosen)
    if best is None or best[0] <= 0:
        raise ValueError(
            f"No cuboid can be published with a cell variance of at most {limit:g}: the whole of "
            f"epsilon in one cuboid gives {noise_of(1):.6g}. Raise max_variance, or epsilon."
        )
    return equal_shares(cube, best[2])


# Work of the search for `optimized`, in evaluations of the objective for a cube of 5 to 8
# dimensions, and at least. Larger cubes get fewer evaluations, since each costs more; smaller
# ones have fewer optima to be found.
_SEARCH = 90_000
_MIN_SEARCH = 3_000
_TINY_SHARE = 1e-5


class _Search:
    """Sources and budgets with the least variance after weighted least squares.

    The variances are smooth in the budgets e = softmax(t), but not convex: a source that has no
    budget has no gradient either. So many starts are descended with L-BFGS, and the best of them
    improved by adding, dropping and exchanging sources, each time with new budgets. Only the
    ratios of budgets matter, so the search takes 2 / e**2 for the variance of the noise.
    """

    def __init__(self, cube: Lattice, weights: Floats | None, progress: Progress) -> None:
        self.cube = cube
        self.progress = progress
        # Rows: interactions that must be known. Those without freedom are zero.
        needed = np.flatnonzero(cube.published & (cube.freedom > 0))
        wanted = np.flatnonzero(cube.published)
        self.freedom = cube.freedom[needed]
        squared = cube.cells[wanted] ** 2
        self.squared = squared
        above = cube.above[needed]
        below = cube.above[needed][:, wanted].T
        dense = len(cube) <= 512
        self.above = above.toarray() if dense else above.tocsc()
        self.below = np.ascontiguousarray(below.toarray()) if dense else below.tocsr()
        self.mean = None if weights is None else weights[wanted] / weights[wanted].sum()
        self.evaluations = 0
        cost = cube.above.nnz / 3**8
        ease = min(1.0, len(cube) / 32) ** 2
        self.budget = max(_MIN_SEARCH, int(_SEARCH * ease / max(1.0, cost)))

    def spent(self) -> float:
        """Share of the work that is done."""
        return self.evaluations / self.budget

    def covers(self, places: NDArray[np.integer]) -> bool:
        """Whether these sources determine everything that is wanted."""
        return bool((np.asarray(self.above[:, places].sum(axis=1)).ravel() > 0).all())

    def value(self, places: NDArray[np.integer], share: Floats) -> float:
        """The objective: largest or mean variance."""
        precision = self.above[:, places] @ (share**2 / (2 * self.cube.cells[places]))
        variance = (self.below @ (self.freedom / precision)) / self.squared
        return float(variance.max() if self.mean is None else self.mean @ variance)

    def values(self, shares: Floats, power: float) -> Floats:
        """The objective, the maximum smoothed, for each column of shares of all cuboids."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            precision = self.above @ (shares**2 / (2 * self.cube.cells[:, None]))
            variance = (self.below @ (self.freedom[:, None] / precision)) / self.squared[:, None]
            if self.mean is not None:
                result = self.mean @ variance
            else:
                top = variance.max(axis=0)
                result = top * ((variance / top) ** power).sum(axis=0) ** (1 / power)
        # Many columns at once cost less each than a call for every one.
        self.evaluations += shares.shape[1] // 4
        return np.where(np.isfinite(result), result, np.inf)

    def _slope(
        self, above: Any, cells: Floats, logits: Floats, power: float
    ) -> tuple[float, Floats]:
        """Logarithm of the smoothed objective and its gradient in the logits."""
        self.evaluations += 1
        # The floor keeps precisions positive where a share would underflow.
        share = np.exp(np.maximum(logits - logits.max(), -20.0))
        share /= share.sum()
        precision = above @ (share * share / (2 * cells))
        ratio = self.freedom / precision
        variance = (self.below @ ratio) / self.squared
        if self.mean is not None:
            total = float(self.mean @ variance)
            value, slope = math.log(total), self.mean / total
        else:
            top = variance.max()
            relative = (variance / top) ** power
            total = float(relative.sum())
            value, slope = math.log(top) + math.log(total) / power, relative / variance / total
        # Chain rule: variances <- precisions <- shares <- logits.
        by_precision = -(self.below.T @ (slope / self.squared)) * ratio / precision
        by_share = (above.T @ by_precision) * share / cells
        return value, share * (by_share - share @ by_share)

    def descend(
        self,
        places: NDArray[np.integer],
        share: Floats,
        powers: tuple[float, ...],
        steps: int,
        tolerance: float = 1e-7,
    ) -> _Solution:
        """Improve the budgets of given sources; sources that end without budget are dropped."""
        above, cells = self.above[:, places], self.cube.cells[places]
        logits = np.log(np.maximum(share, 1e-6))
        for power in powers if self.mean is None else powers[-1:]:
            found = optimize.minimize(
                lambda x, power=power: self._slope(above, cells, x, power),
                logits,
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": steps, "maxcor": 15, "ftol": tolerance, "gtol": 1e-9},
            )
            logits = found.x
        share = np.exp(logits - logits.max())
        share /= share.sum()
        kept = share > _TINY_SHARE
        if not kept.all() and self.covers(places[kept]):
            places, share = places[kept], share[kept] / share[kept].sum()
        return _Solution(self.value(places, share), places, share)

    def starts(self) -> Iterator[tuple[NDArray[np.integer], Floats]]:
        """Greedy covers with their best budgets, and budgets of random product form."""
        covers = _Covers.of(self.cube)
        seen = set()
        for threshold in covers.thresholds():
            chosen = covers.cover(threshold)
            key = tuple(sorted(chosen or ()))
            if key and key not in seen:
                seen.add(key)
                places = np.array(key)
                yield places, self._closed_form(covers.growth[places])
        d = len(self.cube.sizes)
        bits = (self.cube.masks[:, None] >> np.arange(d) & 1).astype(float)
        rng = sampling_generator(0)
        while True:
            logits = bits @ rng.normal(0, rng.choice([0.5, 1.0, 1.5]), d)
            logits += rng.normal(0, 0.5, len(bits))
            share = np.exp(logits - logits.max())
            yield np.arange(len(bits)), share / share.sum()

    def _closed_form(self, growth: Floats) -> Floats:
        """Best budgets if each cuboid were summed from the source that is nearest to it."""
        owner, best = growth.argmin(axis=0), growth.min(axis=0)
        share = np.zeros(len(growth))
        for place in range(len(growth)):
            mine = owner == place
            if not mine.any():
                continue
            if self.mean is None:
                share[place] = math.sqrt(best[mine].max())
            else:
                share[place] = (self.mean[mine] @ best[mine]) ** (1 / 3)
        share = np.maximum(share, 1e-4 * share.max())
        return share / share.sum()

    def improve(self, found: _Solution) -> _Solution:
        """Add or drop the source that helps most, until none does."""
        m = len(self.cube)
        while self.spent() < 1:
            places, share = found.places, found.share
            full = np.zeros(m)
            full[places] = share
            trials: list[tuple[float, NDArray[np.integer], Floats]] = []
            others = np.setdiff1d(np.arange(m), places)
            ranked = []
            for size in (0.03, 0.1, 0.25):
                columns = np.repeat((full * (1 - size))[:, None], len(others), axis=1)
                columns[others, np.arange(len(others))] = size
                ranked += [
                    (value, other, size)
                    for value, other in zip(self.values(columns, 32), others, strict=True)
                ]
            added: set[int] = set()
            for value, other, size in sorted(ranked):
                if len(added) == 10:
                    break
                if other not in added and math.isfinite(value):
                    added.add(other)
                    new = np.append(places, other), np.append(share * (1 - size), size)
                    trials.append((value, *new))
            if len(places) > 1:
                columns = np.repeat(full[:, None], len(places), axis=1)
                columns[places, np.arange(len(places))] = 0
                columns /= columns.sum(axis=0)
                for place in np.argsort(values := self.values(columns, 32))[:6]:
                    if math.isfinite(values[place]):
                        kept = np.arange(len(places)) != place
                        rest = share[kept] / share[kept].sum()
                        trials.append((values[place], places[kept], rest))
            best = min(
                (self.descend(new, budget, (8, 64, 512), 15) for _, new, budget in trials),
                default=found,
                key=lambda solution: solution.value,
            )
            if best.value >= found.value * (1 - 2e-4):
                break
            found = best
        return found

    def hop(self, found: _Solution, rng: np.random.Generator, until: float) -> _Solution:
        """Disturb the sources at random and descend again; keep what is better or hardly worse."""
        best = current = found
        idle = 0
        while self.spent() < until:
            places, share = self._disturb(current, rng)
            if not self.covers(places):
                self.evaluations += 1
                continue
            trial = self.descend(places, share, (16, 128), 20)
            if trial.value < 1.02 * current.value:
                trial = self.descend(trial.places, trial.share, (128, 512), 30)
            idle += 1
            worse = trial.value / current.value - 1
            if worse < 0 or rng.random() < 0.3 * math.exp(-worse / 0.02):
                current = trial
            if trial.value < best.value * (1 - 1e-5):
                best, idle = trial, 0
            if idle > 100:
                current, idle = best, 0
        return best

    def _disturb(
        self, found: _Solution, rng: np.random.Generator
    ) -> tuple[NDArray[np.integer], Floats]:
        cube = self.cube
        full = np.zeros(len(cube))
        full[found.places] = found.share
        for _ in range(rng.integers(1, 4)):
            places = np.flatnonzero(full)
            source = rng.choice(places)
            kind = rng.integers(4)
            if kind == 0 and len(places) > 2:
                odds = 1 / full[places]
                full[rng.choice(places, p=odds / odds.sum())] = 0
            elif kind == 1:
                full[rng.integers(len(cube))] += rng.choice([0.02, 0.05, 0.15]) * full.sum()
            elif kind == 2 and cube.sizes:
                flipped = int(cube.masks[source]) ^ (1 << int(rng.integers(len(cube.sizes))))
                other = cube.position.get(flipped, source)
                moved = full[source]
                full[source] -= moved
                full[other] += moved
            else:
                moved = full[source] * rng.uniform(0.2, 1)
                full[source] -= moved
                full[rng.integers(len(cube))] += moved
        places = np.flatnonzero(full)
        share = np.maximum(full[places] / full[places].sum(), 1e-3)
        return places, share / share.sum()

    def run(self) -> _Solution:
        """The whole search: starts, local search of the best, random hops, a last descent."""
        pool: list[_Solution] = []
        for places, share in self.starts():
            pool.append(self.descend(places, share, (8, 64), 40))
            if self.spent() > 0.25 or len(pool) >= 320:
                break
        pool.sort(key=lambda solution: solution.value)
        self._report(f"best of {len(pool)} starts", pool[0])
        best = [
            self.improve(self.descend(start.places, start.share, (64, 512), 40))
            for start in pool[:6]
            if start is pool[0] or self.spent() < 0.6
        ]
        best.sort(key=lambda solution: solution.value)
        self._report("local search", best[0])
        rng = sampling_generator(1)
        starts, done = best[:4], self.spent()
        for number, start in enumerate(starts, start=1):
            until = done + (1 - done) * number / len(starts)
            best.append(self.hop(start, rng, until))
            self._report(f"random search {number} of {len(starts)}", min(best, key=_value_of))
        found = min(best, key=_value_of)
        last = self.descend(found.places, found.share, (512, 4096), 200, 1e-11)
        return min(found, last, key=_value_of)

    def _report(self, stage: str, found: _Solution) -> None:
        kind = "largest" if self.mean is None else "mean"
        self.progress(
            f"planning: {stage}, {min(1, self.spent()):.0%} done, {kind} cell variance "
            f"{found.value:.6g} / epsilon**2 with {len(found.places)} sources"
        )


@dataclass(frozen=True, eq=False)
class _Solution:
    """Sources with their budgets, and the objective there at epsilon 1."""

    value: float
    places: NDArray[np.integer]
    share: Floats


def _value_of(solution: _Solution) -> float:
    return solution.value


def plan_optimized(
    cube: Lattice, weights: Floats | None = None, progress: Progress = lambda text: None
) -> Plan:
    """Sources and unequal budgets with the least variance after weighted least squares.

    Parameters
    ----------
    cube : Lattice
    weights : ndarray of float64, shape (m,), optional
        Minimise the mean variance with these weights instead of the largest one.
    progress : callable, optional
        Called with a line of text after each stage.

    Returns
    -------
    Plan
        A local optimum: the same for the same arguments.
    """
    if not (cube.published & (cube.freedom > 0) & (cube.masks > 0)).any():
        # Every cuboid has one cell: the total is all there is.
        return equal_shares(cube, [0])
    # Products with matrices of a few hundred rows: threads would wait for each other.
    with threadpool_limits(1, user_api="blas"):
        found = _Search(cube, weights, progress).run()
    # Shares are multiples of 2**-20, so that nothing is lost where epsilon is a dyadic number;
    # what rounding leaves goes to the largest.
    units = [math.floor(share * 2**20) for share in found.share]
    units[int(np.argmax(found.share))] += 2**20 - sum(units)
    pairs = sorted(
        (int(cube.masks[place]), Fraction(unit, 2**20))
        for place, unit in zip(found.places, units, strict=True)
        if unit
    )
    return Plan(tuple(mask for mask, _ in pairs), tuple(share for _, share in pairs))
