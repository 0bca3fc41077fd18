"""DAWA: buckets of bins with similar counts, chosen privately, and a range tree over them.

Step 1 chooses buckets of 1, 2, 4, ... bins by dynamic programming over noisy costs. The cost of a
bucket is how far its counts are from their median in total. Step 2 measures the buckets; the paper
uses its GreedyH tree, here it is the library's own planned tree.

References
----------
C. Li, M. Hay, G. Miklau, Y. Wang: A Data- and Workload-Aware Algorithm for Range Queries Under
Differential Privacy, PVLDB 7, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ... import hierarchy
from ..._random import noise_source
from ..._types import IntArray
from ...hierarchy import Workload
from ...mechanisms import choose_buckets
from .adaptive import LineRelease, bucket_tree, with_missing

# Shares of epsilon as published.
DAWA_SHARES = {"partition": Fraction(1, 4), "counts": Fraction(3, 4)}
# Up to this many bins buckets begin anywhere, as published. Beyond it a bucket of 2**k bins begins
# at a multiple of 2**k: all starts would take time with the square of the number of bins.
_MOST_STARTS = 8192
# Penalty of each bucket beside the published 1 / epsilon of the counts, in mean noises of a cost.
# One of them makes up for the mean of the one-sided noise; the rest for the luck of the winner
# among many candidates. Chosen on generated histograms.
_LUCK_OF_ALL = 3
_LUCK_OF_ALIGNED = 2
# Numbers held at once while costs are computed.
_CHUNK = 1 << 22
# A record changes the cost of a bucket by -1, 0 or 1.
_COST_RANGE = 2


def dawa(
    counts: IntArray,
    n_values: int,
    parts: Mapping[str, Fraction],
    workload_of: Callable[[int], Workload],
    *,
    random_state: Any = None,
) -> LineRelease:
    """Release buckets of similar bins, and a tree of noisy counts over them.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_values,) or (n_values + 1,)
        Exact and private, in the order of the line; then the missing values, if they have a cell.
    n_values : int
    parts : mapping of str to Fraction
        Budget for "partition" and "counts".
    workload_of : callable
        Workload to plan for, given the number of buckets.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    LineRelease
    """
    # Privacy. Released: the buckets, at the part "partition", and noisy counts of the tree over
    # them, at the part "counts" on every path: sequential composition. A record moves the cost of
    # a bucket that holds it by at most 1 in either direction: a median minimises the sum of
    # distances, each set of counts has one that is an integer, and for a fixed centre one record
    # changes one distance by 1. So R = 2; no other cost changes. A missing value is in no bucket
    # and is counted with all of epsilon.
    source = noise_source(random_state)
    epsilon = sum(parts.values(), Fraction(0))
    aligned = n_values > _MOST_STARTS
    luck = _LUCK_OF_ALIGNED if aligned else _LUCK_OF_ALL
    penalty = math.ceil(1 / parts["counts"] + luck * _COST_RANGE / parts["partition"])
    edges = choose_buckets(
        bucket_costs(counts[:n_values], aligned=aligned),
        n_values,
        parts["partition"],
        _COST_RANGE,
        penalty=penalty,
        random_state=source,
    )
    tree, shares = bucket_tree(edges, workload_of(len(edges) - 1), parts["counts"] / epsilon)
    if len(counts) > n_values:
        tree, shares = with_missing(tree, shares)
    noisy = hierarchy.measure(tree, counts, shares, epsilon, random_state=source)
    return LineRelease(tree, np.arange(len(counts)), shares, noisy.values)


def bucket_costs(counts: IntArray, *, aligned: bool = False) -> list[IntArray]:
    """Sum of distances to the median, of all buckets of 1, 2, 4, ... bins.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_bins,)
        Exact and private.
    aligned : bool, default=False
        Whether a bucket begins at a multiple of its length only. The last one may be shorter.
    """
    n = len(counts)
    costs = [np.zeros(n, dtype=np.int64)]
    length = 2
    while length <= n or (aligned and length < 2 * n):
        if aligned:
            whole = n // length
            each = _distances(counts[: whole * length].reshape(whole, length))
            if whole * length < n:
                each = np.append(each, _distances(counts[None, whole * length :]))
            costs.append(each)
        else:
            costs.append(_distances(np.lib.stride_tricks.sliding_window_view(counts, length)))
        length *= 2
    return costs


def _distances(buckets: IntArray) -> IntArray:
    """Upper half minus lower half of each row, which is the sum of distances to its median."""
    number, length = buckets.shape
    half, step = length // 2, max(1, _CHUNK // length)
    out = np.zeros(number, dtype=np.int64)
    if half == 0:
        return out
    for first in range(0, number, step):
        rows = np.partition(buckets[first : first + step], half, axis=1)
        upper, lower = rows[:, length - half :], rows[:, :half]
        out[first : first + step] = upper.sum(axis=1) - lower.sum(axis=1)
    return out
