"""Choosing a partition of a line into buckets by noisy costs: the first step of DAWA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import Call, Tape, noise_source
from .._types import BoolArray, IntArray
from .._validation import as_integer
from ._inversion import noise_rate
from ._noise import as_integers, geometric
from ._selection import as_range

# Sums of costs and noise up to this fit into 64 bits.
_SAFE = 2**60


def choose_buckets(
    costs: Sequence[ArrayLike],
    n_bins: int,
    epsilon: Any,
    score_range: int,
    *,
    penalty: int = 0,
    random_state: Any = None,
) -> IntArray:
    """Choose consecutive buckets of bins with a small sum of noisy costs.

    Parameters
    ----------
    costs : sequence of array-like of int
        Exact costs of the candidate buckets of 1, 2, 4, 8, ... bins. Each array has either one
        cost for every first bin (``n_bins - length + 1`` costs), or, in all arrays, one for every
        ``length`` bins (``ceil(n_bins / length)`` costs; the last bucket may be shorter).
    n_bins : int
    epsilon : number or Fraction
        Privacy parameter of the choice. The noise is drawn at its dyadic floor.
    score_range : int
        The range R: when one record is added, the costs of the buckets that hold it change by
        amounts that lie in one interval of length R, and no other cost changes.
    penalty : int, default=0
        Public cost of each bucket, added to the exact one.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ndarray of int64, shape (n_buckets + 1,)
        Edges of the buckets, from 0 to ``n_bins``.

    Raises
    ------
    TypeError
        If costs are not integers, or a parameter has the wrong type.
    ValueError
        If the arrays have other lengths, or a parameter is out of range.

    References
    ----------
    C. Li, M. Hay, G. Miklau, Y. Wang: A Data- and Workload-Aware Algorithm for Range Queries
    Under Differential Privacy, PVLDB 7, 2014.

    Examples
    --------
    >>> from skdp.mechanisms import choose_buckets
    >>> costs = [[0, 0, 0, 0], [0, 9000, 0], [9000]]
    >>> choose_buckets(costs, 4, epsilon=1.0, score_range=2, penalty=500)
    array([0, 2, 4])
    """
    # Privacy. Released: the partition whose noisy costs, cost - G of each bucket with G geometric
    # of rate eps_d / R, have the least sum. Every partition has exactly one bucket that holds the
    # record, and with it its cost moves by some d in [lo, lo + R]. Raise the noise of that bucket
    # of the winner by d - lo, between 0 and R: the winner then moves by lo, as do all partitions
    # with the same bucket, and every other one by lo at least, so it still wins; ties go to a
    # public order. Geometric noise pays exp(rate) per unit, exp(eps_d) in all. The costs are
    # not released.
    size = as_integer(n_bins, "n_bins", 1)
    arrays = [as_integers(each, "costs", "Scale and round them.") for each in costs]
    lengths = [len(each) for each in arrays]
    _check_lengths(lengths, size)
    width = as_range(score_range)
    rate = noise_rate(epsilon, width)
    extra = as_integer(penalty, "penalty", 0)
    # Unsigned and signed 64-bit integers together would become floating-point numbers.
    wide = any(each.dtype == np.uint64 for each in arrays)
    exact = np.concatenate([each.astype(object if wide else np.int64) for each in arrays])
    source = noise_source(random_state)
    if isinstance(source, Tape):
        # The tape adds noise to scores, of which the largest wins.
        public = (width, size, tuple(lengths), extra)
        edges: IntArray = source.answer(Call("buckets", -exact, rate, public))
        return edges
    noise = geometric(exact.size, epsilon, width, random_state=source)
    return least_cost_edges(_differences(exact, noise, size, extra), lengths, size, extra)


def _differences(exact: NDArray[Any], noise: IntArray, size: int, penalty: int) -> NDArray[Any]:
    """Costs minus noise, as Python integers where sums of them may not fit into 64 bits."""
    largest = int(noise.max()) + max(int(exact.max()), -int(exact.min())) + penalty
    if largest * (size + 1) < _SAFE:
        return exact.astype(np.int64) - noise
    return exact.astype(object) - noise.astype(object)


def _has_all_starts(lengths: Sequence[int], n_bins: int) -> bool:
    return list(lengths) == [n_bins - 2**k + 1 for k in range(n_bins.bit_length())]


def _check_lengths(lengths: Sequence[int], n_bins: int) -> None:
    aligned = [-(-n_bins // 2**k) for k in range(len(lengths))]
    if lengths and (_has_all_starts(lengths, n_bins) or (lengths == aligned and aligned[-1] == 1)):
        return
    raise ValueError(
        f"costs must have one array for each of the lengths 1, 2, 4, ... with one cost for every "
        f"first bin or for every length bins of {n_bins}, got arrays of {list(lengths)} costs."
    )


def least_cost_edges(
    costs: NDArray[Any], lengths: Sequence[int], n_bins: int, penalty: int
) -> IntArray:
    """Edges of the buckets with the least sum of costs, each bucket ``penalty`` dearer.

    Parameters
    ----------
    costs : ndarray of int
        Of all candidates, those of one length after those of another.
    lengths : sequence of int
        Number of candidates of 1, 2, 4, ... bins.
    n_bins, penalty : int
    """
    tables = np.split(costs + penalty, np.cumsum(lengths)[:-1])
    if _has_all_starts(lengths, n_bins):
        return _of_all_starts(tables, n_bins)
    return _of_aligned(tables, n_bins)


def _of_all_starts(tables: Sequence[NDArray[Any]], n_bins: int) -> IntArray:
    """Dynamic programme over the end of the last bucket; ties go to the shortest last bucket."""
    ending = np.zeros((n_bins + 1, len(tables)), dtype=tables[0].dtype)
    for k, table in enumerate(tables):
        ending[2**k :, k] = table
    back = 2 ** np.arange(len(tables))
    best = np.zeros(n_bins + 1, dtype=tables[0].dtype)
    last = np.zeros(n_bins + 1, dtype=np.int64)
    for stop in range(1, n_bins + 1):
        fits = min(len(tables), stop.bit_length())
        sums = best[stop - back[:fits]] + ending[stop, :fits]
        choice = int(sums.argmin())
        best[stop], last[stop] = sums[choice], back[choice]
    edges = [n_bins]
    while edges[-1]:
        edges.append(edges[-1] - int(last[edges[-1]]))
    return np.array(edges[::-1], dtype=np.int64)


def _of_aligned(tables: Sequence[NDArray[Any]], n_bins: int) -> IntArray:
    """Dynamic programme up a binary tree; ties go to the whole bucket."""
    best = tables[0]
    whole: list[BoolArray] = [np.ones(len(best), dtype=bool)]
    for table in tables[1:]:
        halves = best[::2].copy()
        halves[: len(best) // 2] += best[1::2]
        whole.append(table <= halves)
        best = np.where(whole[-1], table, halves)
    reached = np.ones(1, dtype=bool)
    starts = []
    for k in reversed(range(len(tables))):
        starts.append(np.flatnonzero(reached & whole[k]) << k)
        if k:
            reached = np.repeat(reached & ~whole[k], 2)[: len(tables[k - 1])]
    return np.append(np.sort(np.concatenate(starts)), n_bins).astype(np.int64)
