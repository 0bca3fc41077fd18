"""Workloads that are known beforehand: HDPView's, the error of a release on them, and HDMM.

Workloads are products of one kind of query on each of k attributes, over all sets of k attributes.
HDMM (McKenna, Miklau, Hay, Machanavajjhala) measures a strategy for one of them: here a product of
p-identity strategies, on each attribute all its codes and p weighted sums of them, with weights of
least expected error. Which error a strategy has follows from the workload alone, so it is found
without the records. Of the paper's three searches this is OPT with one product; the others are in
``benchmarks/reproduce/hdmm.py``.

References
----------
R. McKenna, G. Miklau, M. Hay, A. Machanavajjhala. Optimizing error of high-dimensional statistical
queries under differential privacy. PVLDB 11(10), 2018.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ._random import caller_level, sampling_generator
from ._validation import FloatArray, IntArray, as_integer, check_choice
from .base import AnswersStatistics, match_rows
from .domain.bins import MAX_BINS
from .domain.query import Query
from .exceptions import PrivacyLeakWarning
from .mechanisms import discrete_laplace, discrete_laplace_variance
from .release import StrategyModel, Synopsis
from .tables import Counts, CountTable

__all__ = ["Workload", "error_on"]

# --- workloads: their queries, and how often two cells of an attribute are asked for together


def _random_ranges(n: int) -> FloatArray:
    # The ends are two uniform draws, sorted.
    first, last = np.sort(np.indices((n, n)), axis=0)
    inside = np.maximum(last - first - 1, 0)
    return np.asarray(1 - ((n - 1 - first) ** 2 + last**2 - inside**2) / n**2)


def _ranges(n: int) -> FloatArray:
    first, last = np.sort(np.indices((n, n)), axis=0)
    return np.asarray((first + 1) * (n - last) / (n * (n + 1) / 2))


def _prefixes(n: int) -> FloatArray:
    return np.asarray(1 - np.max(np.indices((n, n)), axis=0) / n)


_GRAMS: dict[str, Callable[[int], FloatArray]] = {
    "marginals": lambda n: np.eye(n) / n,
    "prefixes": _prefixes,
    "ranges": _ranges,
    "random ranges": _random_ranges,
}


@dataclass(frozen=True)
class Workload:
    """All counting queries of one kind on every set of k columns: HDPView's workloads.

    Parameters
    ----------
    kind : {"marginals", "prefixes", "ranges", "random ranges"}
        What is asked of each column of a set: one code; the codes up to one; the codes between two,
        all ranges alike; or those between two codes that are drawn at random.
    k : int, default=2
        Columns of a set; all columns, where there are fewer.

    Examples
    --------
    >>> from skdp.workloads import Workload
    >>> Workload("prefixes", 1).gram(2).tolist()
    [[1.0, 0.5], [0.5, 0.5]]
    """

    kind: str
    k: int = 2

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", tuple(_GRAMS))
        as_integer(self.k, "k", 1)

    def gram(self, size: int) -> FloatArray:
        """W'W / (number of queries) of a column: how often two codes are asked for together."""
        return _GRAMS[self.kind](size)

    def draw(
        self, shape: Sequence[int], n_queries: int, generator: np.random.Generator
    ) -> list[Query]:
        """Random queries of the workload, for a domain of this shape."""
        found = []
        for _ in range(n_queries):
            axes = generator.permutation(len(shape))[: self.k].tolist()
            found.append(Query(({axis: self._one(shape[axis], generator) for axis in axes},)))
        return found

    def _one(self, size: int, generator: np.random.Generator) -> FloatArray:
        codes = np.arange(size)
        if self.kind == "random ranges":
            low, high = np.sort(generator.integers(0, size, size=2)).tolist()
        elif self.kind == "ranges":
            # Two different places between the codes, or at their ends.
            low, high = np.sort(generator.choice(size + 1, size=2, replace=False)) - [0, 1]
        else:
            high = int(generator.integers(0, size))
            low = high if self.kind == "marginals" else 0
        return ((codes >= low) & (codes <= high)).astype(np.float64)


# --- strategies


def p_identity(gram: FloatArray, p: int | None = None, seed: int = 0) -> tuple[float, FloatArray]:
    """Strategy [I; B] with columns scaled to one, B >= 0 of p rows, by L-BFGS.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
    p : int, default=None
        None: n / 16.
    seed : int
        Of the start.

    Returns
    -------
    error : float
        tr(G X), X the inverse of the strategy's A'A.
    rows : ndarray of shape (p, n)
        B; zeros where the codes alone are better.
    """
    n = len(gram)
    p = p or max(1, n // 16)
    start = sampling_generator(seed).random((p, n))

    def error(flat: FloatArray) -> tuple[float, FloatArray]:
        rows = flat.reshape(p, n)
        scale = 1 + rows.sum(axis=0)
        inner = rows.T @ np.linalg.inv(np.eye(p) + rows @ rows.T)
        inverse = np.eye(n) - inner @ rows
        scaled = scale[:, None] * gram * scale
        slope = 2 * ((gram * scale) * inverse.T).sum(axis=1) - 2 * rows @ inverse @ scaled @ inverse
        return float((scaled * inverse).sum()), slope.ravel()

    found = minimize(
        error, start.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (p * n)
    )
    plain = float(np.trace(gram))
    if found.fun < plain:
        return float(found.fun), found.x.reshape(p, n)
    return plain, np.zeros((p, n))


class Strategy(NamedTuple):
    """A product strategy in whole numbers, and the error of the workload.

    Attributes
    ----------
    matrices : list of ndarray of int64, shape (n_i + p_i, n_i)
        Of each attribute; every column sums to ``sums`` of the attribute.
    sums : list of int
    error : float
        Mean over the queries of the variance of an answer, for noise of variance 1 in measurements
        of sums 1.
    """

    matrices: list[IntArray]
    sums: list[int]
    error: float

    @property
    def sensitivity(self) -> int:
        """What one record adds to all measurements together."""
        return math.prod(self.sums)

    @property
    def shares(self) -> list[Any]:
        """The matrices scaled to sums of 1."""
        return [m / total for m, total in zip(self.matrices, self.sums, strict=True)]

    @property
    def inverses(self) -> list[FloatArray]:
        """Inverses of A'A, for these."""
        return [np.linalg.inv(each.T @ each) for each in self.shares]


# Bits of the sum of a product of columns: counts times it stay within 64 bits.
_BITS = 30
_PASSES = 3


def product_strategy(workload: Workload, shape: Sequence[int]) -> tuple[list[FloatArray], float]:
    """B of each attribute of a product of p-identity strategies, improved in turn, and the error.

    Real numbers: see `planned_strategy` for what is measured.
    """
    grams = [workload.gram(size) for size in shape]
    k = min(workload.k, len(grams))
    rows = [p_identity(gram)[1] for gram in grams]
    inverses = [_inverse(each) for each in rows]
    for _ in range(_PASSES if k < len(grams) else 0):
        for axis in range(len(grams)):
            inside, outside = _weights(grams, inverses, k, axis)
            _, rows[axis] = p_identity((inside * grams[axis] + outside) / (inside + outside))
            inverses[axis] = _inverse(rows[axis])
    return rows, _error(grams, inverses, k)


@lru_cache(maxsize=16)
def planned_strategy(workload: Workload, shape: tuple[int, ...]) -> Strategy:
    """The product strategy for a workload in whole numbers."""
    rows, _ = product_strategy(workload, shape)
    bits = _BITS // max(sum(size > 1 for size in shape), 1)
    matrices = [_in_integers(each, 1 << bits if each.shape[1] > 1 else 1) for each in rows]
    made = Strategy(matrices, [int(each[:, 0].sum()) for each in matrices], 0.0)
    grams = [workload.gram(size) for size in shape]
    return made._replace(error=_error(grams, made.inverses, min(workload.k, len(grams))))


def _error(grams: Sequence[FloatArray], inverses: Sequence[FloatArray], k: int) -> float:
    """Mean variance of a query over all sets of k attributes."""
    inside, outside = _weights(grams, inverses, k, 0)
    total = ((inside * grams[0] + outside) * inverses[0]).sum()
    return float(total) / math.comb(len(grams), k)


def _inverse(rows: FloatArray) -> FloatArray:
    """Inverse of A'A for A = [I; B] with columns scaled to one."""
    scale = 1 + rows.sum(axis=0)
    found: FloatArray = np.linalg.inv(np.eye(len(scale)) + rows.T @ rows) * scale[:, None] * scale
    return found


def _weights(
    grams: Sequence[FloatArray], inverses: Sequence[FloatArray], k: int, axis: int
) -> tuple[float, float]:
    """Errors of all other attributes, summed over the sets with and without ``axis``."""
    sums = [1.0] + [0.0] * k
    for other, (gram, x) in enumerate(zip(grams, inverses, strict=True)):
        if other != axis:
            # Of an attribute in a set, and of one over which the query sums.
            held, summed = float((gram * x).sum()), float(x.sum())
            for place in range(k, 0, -1):
                sums[place] = sums[place] * summed + sums[place - 1] * held
            sums[0] *= summed
    return sums[k - 1], sums[k]


def _in_integers(rows: FloatArray, total: int) -> IntArray:
    """[I; B] with columns of whole numbers of a given sum; codes get what rounding leaves."""
    matrix = np.concatenate([np.eye(rows.shape[1]), rows]) / (1 + rows.sum(axis=0))
    whole = np.floor(total * matrix).astype(np.int64)
    codes = np.arange(rows.shape[1])
    whole[codes, codes] += total - whole.sum(axis=0)
    # A code without a measurement of its own takes one unit from the largest sum.
    bare = codes[whole[codes, codes] == 0]
    whole[whole[:, bare].argmax(axis=0), bare] -= 1
    whole[bare, bare] += 1
    return whole[whole.any(axis=1)]


def measure_strategy(
    table: Counts, strategy: Strategy, epsilon: Fraction, *, random_state: Any = None
) -> StrategyModel:
    """Estimated counts of all cells from a measured strategy.

    Parameters
    ----------
    table : CountTable
        The private table.
    strategy : Strategy
    epsilon : Fraction
    random_state : None, int or NoiseSource

    Returns
    -------
    StrategyModel
        Unbiased, by least squares.
    """
    # Privacy. Released: A x with noise, x the counts of all cells. The matrix is public: it follows
    # from domain and workload. A record is in one cell and adds that column of A, whose entries are
    # whole numbers from 0 on that sum to the same K for every cell: sensitivity K, epsilon in all.
    # Every measurement has noise, those of empty cells too. The estimate is computed from these.
    total = strategy.sensitivity
    noisy = discrete_laplace(
        _applied(strategy.matrices, table.dense()), epsilon, total, random_state=random_state
    )
    solved = [np.linalg.pinv(each) for each in strategy.shares]
    counts, variance = _applied(solved, noisy / total), discrete_laplace_variance(epsilon, total)
    return StrategyModel(counts.ravel(), table.shape, strategy.shares, variance, 1 / total)


def _applied(matrices: Sequence[Any], cells: Any) -> Any:
    """The product of matrices, one for each axis, times a table."""
    for axis, matrix in enumerate(matrices):
        cells = np.moveaxis(np.tensordot(matrix, cells, axes=(1, axis)), 0, axis)
    return cells


# --- the error of a release on a workload


def error_on(
    release: Any,
    rows: Any,
    workload: Workload,
    *,
    n_queries: int | None = None,
    random_state: Any = None,
) -> float:
    """Root mean square error of a release over a workload: HDPView's measure.

    It compares with exact counts, and is NOT private: for public rows, or for the data owner only.

    Parameters
    ----------
    release : Synopsis, or fitted synthesizer or DataCube
    rows : array-like or frame of shape (n_rows, n_features)
        The records.
    workload : Workload
    n_queries : int, default=None
        Draw so many queries of the workload. None: the mean is over all of them, in closed form,
        for which the tables of each ``k`` columns must fit into memory.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the queries.

    Returns
    -------
    float
        In records.

    Raises
    ------
    DomainError, TypeError, ValueError
        If the rows do not have the columns of the release, or a table is too large.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GridSynthesizer, Numeric
    >>> from skdp.workloads import Workload, error_on
    >>> public = np.random.default_rng(0).uniform(0, 1, size=(1000, 2))
    >>> view = GridSynthesizer(domain=Numeric(0, 1, bins=16), rule="identity").fit(public)
    >>> 5 < error_on(view, public, Workload("ranges", 2)) < 20
    True
    """
    known = release._asked() if isinstance(release, AnswersStatistics) else release
    if not isinstance(known, Synopsis):
        raise TypeError(f"release must be a Synopsis or a fitted synthesizer, got {release!r}.")
    if not isinstance(workload, Workload):
        raise TypeError(f"workload must be a skdp.workloads.Workload, got {workload!r}.")
    matched, domain = match_rows(rows, None, known.counted, None, structure=True, spare=True)
    codes = domain.encode_columns(matched)
    table = CountTable.from_codes(codes[(codes >= 0).all(axis=1)], domain.shape)
    warnings.warn(
        "error_on compares with exact counts: its result is not private.",
        PrivacyLeakWarning,
        stacklevel=caller_level(),
    )
    k = min(workload.k, len(domain.shape))
    if n_queries is not None:
        number = as_integer(n_queries, "n_queries", 1)
        queries = workload.draw(domain.shape, number, sampling_generator(random_state))
        errors = known.model.answer(queries) - _exact(table, queries)
        return float(np.sqrt(np.mean(errors**2)))
    squares = []
    for axes in itertools.combinations(range(len(domain.shape)), k):
        if math.prod(domain.shape[axis] for axis in axes) > MAX_BINS:
            raise ValueError(
                f"The columns {[domain.names[axis] for axis in axes]} have too many cells to "
                "compare all: give n_queries=."
            )
        # The mean square of all weighted sums of the errors of cells.
        error = known.model.view(list(axes)) - table.project(axes).dense()
        sums = error
        for place, axis in enumerate(axes):
            gram = workload.gram(domain.shape[axis])
            sums = np.moveaxis(np.tensordot(gram, sums, axes=(1, place)), 0, place)
        squares.append(max(float((sums * error).sum()), 0.0))
    return math.sqrt(float(np.mean(squares)))


def _exact(table: CountTable, queries: Any) -> Any:
    """Exact counts of queries that are one product."""
    found = []
    for query in queries:
        inside = table.counts.astype(np.float64)
        for axis, weights in query.products[0].items():
            inside = inside * weights[table.codes[:, axis]]
        found.append(inside.sum())
    return np.array(found)
