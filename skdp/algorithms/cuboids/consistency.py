"""Consistency of noisy tables: L2 by least squares, L1 and Linf by linear programs.

L2 consistency: the tables that agree with each other and are closest in weighted squares.

A table is the sum of its interactions, one part for each set S of its dimensions, which sums to
zero along every dimension of S. Summing a table C over the dimensions outside S keeps the
interactions of S and destroys no other information about them, so least squares decouples: the
estimate for S is the mean of these sums over all measured C that contain S, with weights
1 / (v_C n_C), minus the parts of smaller sets (the means along each axis).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from ..._random import sampling_generator
from ..._validation import FloatArray, as_between, as_epsilon, as_integer, check_choice
from ...mechanisms import discrete_laplace_quantile
from .lattice import Lattice, axis_of, dimensions_of, with_dimension


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
    residuals = _residuals(unknowns, tables, scales)
    program = (_l1_program if norm == "l1" else _linf_program)(residuals, unknowns.agreements())
    solution = optimize.linprog(method="highs", **program)
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

    def agreements(self) -> list[sparse.csr_array]:
        """Matrices that give zero if and only if the tables agree where they overlap."""
        equal = []
        for overlap in sorted({a & b for a, b in itertools.combinations(self.offsets, 2)}):
            first, *others = [mask for mask in self.offsets if mask & overlap == overlap]
            equal += [self.summed(first, overlap) - self.summed(other, overlap) for other in others]
        return equal

    def tables(self, values: FloatArray) -> dict[int, FloatArray]:
        """The tables that a solution stands for."""
        result = {}
        for mask, start in self.offsets.items():
            shape = self.cube.shape(mask)
            result[mask] = values[start : start + math.prod(shape)].reshape(shape)
        return result


class _Residuals(NamedTuple):
    """What was measured: ``observed @ unknowns - y`` are residuals in units of ``unit``."""

    observed: sparse.csr_array
    y: FloatArray
    unit: FloatArray


def _residuals(
    unknowns: _Unknowns, tables: Mapping[int, NDArray], scales: Mapping[int, float]
) -> _Residuals:
    observe, target, scale = [], [], []
    for mask, table in tables.items():
        above = next(big for big in unknowns.offsets if mask & big == mask)
        observe.append(unknowns.summed(above, mask))
        target.append(np.asarray(table, dtype=np.float64).ravel())
        scale.append(np.full(table.size, float(scales[mask])))
    return _Residuals(sparse.vstack(observe), np.concatenate(target), np.concatenate(scale))


def _l1_program(residuals: _Residuals, agreements: list[sparse.csr_array]) -> dict[str, Any]:
    """Arguments of `linprog` for the least sum of absolute residuals."""
    # observed - unit * over + unit * under = y, at the cost sum(over + under).
    observed, y, unit = residuals
    unknown, slack = observed.shape[1], 2 * len(y)
    identity = sparse.csr_array(sparse.diags(unit))
    measured = sparse.hstack([observed, -identity, identity])
    return {
        "c": np.concatenate([np.zeros(unknown), np.ones(slack)]),
        "A_eq": sparse.vstack([measured, *_padded(agreements, slack)]).tocsr(),
        "b_eq": np.concatenate([y, *_zeros(agreements)]),
        "bounds": _bounds(unknown, slack),
    }


def _linf_program(residuals: _Residuals, agreements: list[sparse.csr_array]) -> dict[str, Any]:
    """Arguments of `linprog` for the least largest absolute residual."""
    # |observed - y| <= unit * worst, at the cost worst.
    observed, y, unit = residuals
    unknown = observed.shape[1]
    column = sparse.csr_array(unit[:, None])
    sides = [sparse.hstack([observed, -column]), sparse.hstack([-observed, -column])]
    program = {
        "c": np.append(np.zeros(unknown), 1.0),
        "A_ub": sparse.vstack(sides).tocsr(),
        "b_ub": np.concatenate([y, -y]),
        "bounds": _bounds(unknown, 1),
    }
    if agreements:
        program["A_eq"] = sparse.vstack(_padded(agreements, 1)).tocsr()
        program["b_eq"] = np.concatenate(_zeros(agreements))
    return program


def _padded(agreements: list[sparse.csr_array], slack: int) -> list[sparse.csr_array]:
    """Constraints on the unknowns as constraints on the unknowns and the slack variables."""
    return [sparse.hstack([rows, sparse.csr_array((rows.shape[0], slack))]) for rows in agreements]


def _zeros(agreements: list[sparse.csr_array]) -> list[FloatArray]:
    return [np.zeros(rows.shape[0]) for rows in agreements]


def _bounds(unknown: int, slack: int) -> list[tuple[int | None, None]]:
    """The unknowns are free, the slack variables not negative."""
    return [(None, None)] * unknown + [(0, None)] * slack


# --- variances of reconstructions without a closed form (L1 and Linf), by simulation


def simulated_interactions(
    cube: Lattice,
    rates: Mapping[int, float],
    reconstruct: Callable[[dict[int, FloatArray]], dict[int, FloatArray]],
    runs: int,
) -> FloatArray:
    """Variance of the interactions of a reconstruction without closed form, from noise alone.

    The error of a reconstruction that commutes with adding consistent tables does not depend on
    the truth, and it is the same for all cells of a cuboid: so noise on an empty cube gives the
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
            # The difference of two geometric numbers has the discrete Laplace distribution.
            one, other = rng.geometric(-math.expm1(-rate), (2, *cube.shape(mask)))
            noisy[mask] = (one - other).astype(np.float64)
        for mask, table in reconstruct(noisy).items():
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
