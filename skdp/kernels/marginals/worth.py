"""Whether any two attributes depend on each other enough for views, before anything is measured.

Without a view single attributes can have the whole budget; so this has to be known first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from ..._random import NoiseSource
from ..._types import IntArray
from ...mechanisms import noisy_max
from ...rows import Counts
from ..pairviews.budget import used_attributes
from ..privbayes.scores import Independence

__all__ = ["BINS", "least_distance", "worth_views"]

# Bins of an attribute: neighbouring codes, by public sizes alone.
BINS = 8
# Scales of noise above the expected highest noise.
_ABOVE = 2.0


def worth_views(
    table: Counts,
    epsilon: Fraction,
    orders: Sequence[IntArray | None],
    source: NoiseSource,
) -> bool:
    """Whether a pair is further from independence than noise alone would make it seem.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    epsilon : Fraction
    orders : sequence of ndarray of int or None
        For each attribute its codes in an order in which neighbours are similar.
    source : NoiseSource
    """
    # Privacy. Released: whether a pair or the public number has the highest noisy score. The score
    # of a pair is the distance of its exact counts from the product of its exact margins, over
    # public bins; one record changes each by at most half of `score_range`, up or down, and the
    # public number by nothing. Releasing less than the place of the maximum costs no more.
    bins = [_bins(size, order) for size, order in zip(table.shape, orders, strict=True)]
    pairs = list(combinations(used_attributes(table.shape), 2))
    score = Independence(0)
    tables = table.regrouped_many([((a, b), (bins[a], bins[b])) for a, b in pairs])
    least = round(min(least_distance(len(pairs), float(epsilon)), 1e15))
    scores = np.array([*(score(each) for each in tables), least], dtype=np.int64)
    best = noisy_max(scores, epsilon, score.score_range, random_state=source)
    return bool(best < len(pairs))


def least_distance(n_pairs: int, epsilon: float) -> float:
    """Distance from independence, in records, that noise alone seldom makes of the best pair.

    The highest of n noises of scale s is about s * log(n); it is rarely so many scales above that.
    """
    return Independence.score_range * (math.log(max(n_pairs, 1)) + _ABOVE) / epsilon


def _bins(size: int, order: IntArray | None) -> IntArray | None:
    """Bin of each code; None where codes are few."""
    if size <= BINS:
        return None
    place = np.arange(size) if order is None else np.argsort(order)
    return place * BINS // size
