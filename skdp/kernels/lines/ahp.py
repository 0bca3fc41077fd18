"""AHP: groups of bins with similar noisy counts, which need not be neighbours.

All bins are counted with noise; small noisy counts become zero; the sorted rest is cut greedily
into groups of similar counts. Each group is then counted again, and its bins share the count.

References
----------
X. Zhang, R. Chen, J. Xu, X. Meng, Y. Xie: Towards Accurate Histogram Publication under
Differential Privacy, SDM 2014.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ... import hierarchy
from ..._random import noise_source
from ..._types import FloatArray, IntArray
from ...hierarchy import Tree
from ...mechanisms import discrete_laplace
from .adaptive import SHARE_UNIT, LineRelease, with_missing

# Shares of epsilon as published.
AHP_SHARES = {"partition": Fraction(1, 2), "counts": Fraction(1, 2)}
# Published constant of the threshold below which a noisy count becomes zero.
_THRESHOLD = 0.35


def ahp(
    counts: IntArray, n_values: int, parts: Mapping[str, Fraction], *, random_state: Any = None
) -> LineRelease:
    """Release groups of bins with similar noisy counts, and their noisy counts.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_values,) or (n_values + 1,)
        Exact and private; the missing values last, if they have a cell.
    n_values : int
    parts : mapping of str to Fraction
        Budget for "partition" and "counts".
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    LineRelease
    """
    # Privacy. Released: groups that follow from noisy counts of all bins (sensitivity 1, part
    # "partition"), and a noisy count of each group (sensitivity 1, as groups are disjoint, part
    # "counts"): sequential composition. A missing value is in no group and is counted with all of
    # epsilon.
    source = noise_source(random_state)
    epsilon = sum(parts.values(), Fraction(0))
    noisy = discrete_laplace(counts[:n_values], parts["partition"], random_state=source)
    threshold = _THRESHOLD * math.log(max(n_values, 2)) / float(parts["partition"])
    order, edges = similar_groups(noisy, threshold, float(parts["counts"]))
    n = len(edges) - 1
    # A root that is not measured, and one leaf for each group.
    low, high = np.append(0, edges[:-1]), np.append(n_values, edges[1:])
    tree = Tree(np.append(-1, np.zeros(n, dtype=np.int64)), low, high, np.arange(n + 1))
    share = parts["counts"] / epsilon
    shares = np.append(0, np.full(n, SHARE_UNIT * share.numerator // share.denominator))
    if len(counts) > n_values:
        tree, shares = with_missing(tree, shares)
        order = np.append(order, n_values)
    measured = hierarchy.measure(tree, counts[order], shares, epsilon, random_state=source)
    return LineRelease(tree, order, shares, measured.values)


def similar_groups(noisy: IntArray, threshold: float, epsilon: float) -> tuple[IntArray, IntArray]:
    """Bins in the order of their noisy counts, and where groups of similar ones begin and end.

    A bin joins the group of the next larger ones if that costs less than a group of its own: the
    squared distances to the mean of the group, against the noise of one more count.

    Parameters
    ----------
    noisy : ndarray of int64, shape (n_bins,)
    threshold : float
        Noisy counts of at most this become zero; these bins are one group.
    epsilon : float
        Of the count of each group.
    """
    kept = np.where(noisy > threshold, noisy, 0)
    order = np.argsort(-kept, kind="stable")
    ordered = kept[order].astype(np.float64)
    n_large = int(np.count_nonzero(ordered))
    starts = _greedy_starts(ordered[:n_large], 2.0 / epsilon**2)
    if n_large < len(ordered):
        starts.append(n_large)
    return order, np.array([*starts, len(ordered)], dtype=np.int64)


def _greedy_starts(ordered: FloatArray, noise: float) -> list[int]:
    """Where groups begin in a decreasing list of values."""
    starts: list[int] = []
    size, mean = 0, 0.0
    for place, value in enumerate(ordered.tolist()):
        # Squared distances to the mean grow by this if the value joins.
        if size and (value - mean) ** 2 * size / (size + 1) <= noise:
            size, mean = size + 1, mean + (value - mean) / (size + 1)
        else:
            starts.append(place)
            size, mean = 1, value
    return starts
