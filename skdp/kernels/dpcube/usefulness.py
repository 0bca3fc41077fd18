"""DPCube: error bounds of counts over noisy cells, and an epsilon that bounds a belief."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..._validation import as_between, as_epsilon, as_integer, as_level, dyadic_floor
from ...mechanisms import discrete_laplace_quantile
from ...mechanisms._noise import noise_bound


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
    n_cells: int,
    epsilon: float,
    delta: float = 0.05,
    *,
    n_queries: int = 1,
    n_records: float | None = None,
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
    n_records : float, default=None
        Public number of records, or a bound on it: the bounds are then of *relative* counts, which
        are counts divided by it.

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

    Conversely, a relative error of e needs at least ``bound / e`` records, where ``bound`` is
    that of absolute counts: the paper's corollary for relative ones.

    References
    ----------
    Y. Xiao, L. Xiong, C. Yuan, "Differentially Private Data Release through Multidimensional
    Partitioning", SDM 2010, Corollary 41.

    Examples
    --------
    >>> bounds = usefulness(100, 0.05, 0.05)
    >>> [round(bound) for bound in bounds]
    [15202, 775, 1528]
    >>> round(usefulness(100, 0.05, 0.05, n_records=1_000_000).queries, 5)
    0.00078
    """
    as_integer(n_cells, "n_cells", 1)
    as_integer(n_queries, "n_queries", 1)
    as_level(delta, "delta")
    unit = 1.0 if n_records is None else float(as_between(n_records, "n_records", 1, 1e300))
    exact = as_epsilon(epsilon)
    rate = float(dyadic_floor(exact))
    # A union bound over the cells, as published but with this noise, is better for few cells.
    apart = n_cells * discrete_laplace_quantile(1 - delta / n_cells, exact)
    one, rates, number = np.ones(1), np.full(1, rate), np.full(1, float(n_cells))
    every = min(noise_bound(0 * one, one, rates, number, delta / 2), float(apart))
    single = noise_bound(one, one, rates, number, delta / (2 * n_queries))
    published = n_cells * math.log(n_cells / delta) / float(exact)
    return Usefulness(published / unit, min(single, every) / unit, every / unit)


class SufficientEpsilon(NamedTuple):
    """Epsilon of one release that keeps a belief below a bound, after all of them.

    Attributes
    ----------
    published : float
        That of the DPCube paper, log(after / before) / releases, for a single count each.
    presence : float
        If the belief is that a record is in the table.
    value : float
        If it is known to be there, and the belief is about its value: half of ``presence``.
    """

    published: float
    presence: float
    value: float


def sufficient_epsilon(before: float, after: float, *, n_releases: int = 1) -> SufficientEpsilon:
    """Largest epsilon with which a belief about one record rises to a given probability at most.

    Parameters
    ----------
    before : float
        Probability that an attacker gives a statement about one record beforehand, in (0, 1).
    after : float
        The largest that it may become, in (``before``, 1).
    n_releases : int, default=1
        Number of releases, each at the epsilon returned.

    Returns
    -------
    SufficientEpsilon

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    Releases of l times epsilon in all multiply the odds that a record is in the table by at most
    exp(l epsilon), and the odds of one value against others by at most exp(2 l epsilon), since a
    change of value removes a record and adds another. The paper's bound, for probabilities instead
    of odds, is looser; it holds for values where a release is one count, which such a change moves
    by one, but not for histograms, in which it moves two cells.

    References
    ----------
    Y. Xiao, L. Xiong, C. Yuan, "Differentially Private Data Release through Multidimensional
    Partitioning", SDM 2010, Theorem 33 and Corollary 31.

    Examples
    --------
    >>> [round(epsilon, 2) for epsilon in sufficient_epsilon(0.1, 0.5)]
    [1.61, 2.2, 1.1]
    """
    first, last = as_level(before, "before"), as_level(after, "after")
    if last <= first:
        raise ValueError(f"after must be larger than before={before!r}, got {after!r}.")
    number = as_integer(n_releases, "n_releases", 1)
    odds = math.log(last / first) + math.log1p(-first) - math.log1p(-last)
    return SufficientEpsilon(math.log(last / first) / number, odds / number, odds / 2 / number)
