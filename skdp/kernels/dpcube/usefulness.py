"""Usefulness of DPCube: error bounds of counts over noisy cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy.optimize import minimize_scalar

from ..._validation import as_epsilon, as_integer, as_number, dyadic_floor
from ...mechanisms import discrete_laplace_quantile

__all__ = ["Usefulness", "usefulness"]


class Usefulness(NamedTuple):
    """Error bounds of counts over noisy cells; each holds with probability 1 - delta.

    Attributes
    ----------
    published : float
        The bound of the DPCube paper for one query, ``n_cells * log(n_cells / delta) / epsilon``.
    queries : float
        Bound for the given number of queries together, each over any set of cells.
    every_query : float
        Bound for all sets of cells together.
    """

    published: float
    queries: float
    every_query: float


def usefulness(
    n_cells: int, epsilon: float, delta: float = 0.05, *, n_queries: int = 1
) -> Usefulness:
    """Error bounds of counts over noisy cells: the published bound, and tight ones.

    Cells are counted with discrete Laplace noise, as by ``KDTreeSynthesizer(strategy="cell")`` and
    ``GridSynthesizer(rule="identity")``; a query adds up any cells.

    Parameters
    ----------
    n_cells : int
        Number of cells of the domain. For queries over fewer cells, give their number.
    epsilon : float
        Privacy parameter of the counts.
    delta : float, default=0.05
        Probability that a bound fails.
    n_queries : int, default=1
        Number of queries, chosen before looking at the release, for which the bound holds
        together.

    Returns
    -------
    Usefulness

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    The published bound requires the error of every cell to be at most its share. In fact errors
    cancel: a sum of n noises Z exceeds ``t`` with probability at most ``exp(-u t) E[exp(u Z)]**n``
    for any u > 0 (Chernoff), for one query on either side. For all sets of cells at once, the worst
    set takes all positive noises or all negative ones, so the same is applied to max(Z, 0).

    References
    ----------
    Y. Xiao, L. Xiong, C. Yuan, "Differentially Private Data Release through Multidimensional
    Partitioning", SDM 2010, Corollary 41.

    Examples
    --------
    >>> bounds = usefulness(100, 0.05, 0.05)
    >>> [round(bound) for bound in bounds]
    [15202, 775, 1528]
    """
    _check(n_cells, delta, n_queries)
    exact = as_epsilon(epsilon)
    rate = float(dyadic_floor(exact))
    # A union bound over the cells, as published but with this noise, is better for few cells.
    apart = n_cells * discrete_laplace_quantile(1 - delta / n_cells, exact)
    every = min(_chernoff(_log_moment_of_positive_part, n_cells, rate, delta / 2), float(apart))
    single = _chernoff(_log_moment, n_cells, rate, delta / (2 * n_queries))
    return Usefulness(n_cells * math.log(n_cells / delta) / float(exact), min(single, every), every)


def _check(n_cells: int, delta: float, n_queries: int) -> None:
    as_integer(n_cells, "n_cells", 1)
    as_integer(n_queries, "n_queries", 1)
    if not 0 < as_number(delta, "delta") < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}.")


def _chernoff(
    log_moment: Callable[[float, float], float], n_cells: int, rate: float, failure: float
) -> float:
    """Bound that a sum of ``n_cells`` independent noises exceeds with probability <= ``failure``.

    Parameters
    ----------
    log_moment : callable (u, rate) -> float
        Logarithm of the moment-generating function of one noise at u, for u < rate.
    n_cells : int
    rate : float
        Epsilon of the noise.
    failure : float
    """

    def bound(share: float) -> float:
        u = share * rate
        return (n_cells * log_moment(u, rate) + math.log(1 / failure)) / u

    found = minimize_scalar(
        bound, bounds=(1e-6, 1 - 1e-9), method="bounded", options={"xatol": 1e-6}
    )
    return float(found.fun)


def _log_moment(u: float, rate: float) -> float:
    """Log moment-generating function of discrete Laplace noise Z."""
    # E exp(uZ) = (cosh(rate) - 1) / (cosh(rate) - cosh(u)), in a form that does not cancel.
    return -math.log(-math.expm1(u - rate) * -math.expm1(-u - rate) / math.expm1(-rate) ** 2)


def _log_moment_of_positive_part(u: float, rate: float) -> float:
    """Log moment-generating function of max(Z, 0)."""
    # E exp(u max(Z, 0)) = tanh(rate/2) (1 / (1 - exp(u - rate)) + 1 / (exp(rate) - 1)).
    return math.log(math.tanh(rate / 2) * (-1 / math.expm1(u - rate) + 1 / math.expm1(rate)))
