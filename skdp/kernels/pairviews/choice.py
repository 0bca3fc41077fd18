"""Which pairs are measured: those with counts furthest from the expected ones.

The pairs of the tree are chosen one by one by noisy maxima, in the order of Kruskal's algorithm for
a spanning tree; the expected counts are those of independence. Pairs beyond the tree are the noisy
top of those with the largest errors of the tree model.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import running_sums
from ..._random import noise_source
from ..._types import FloatArray, IntArray
from ...mechanisms import noisy_max, top_k
from ...release import TreeDensity, group_sums
from ...rows import Counts
from .attributes import Attribute, equal_mass_bins

__all__ = [
    "SCORE_RANGE",
    "BinnedPairs",
    "choose_extra_pairs",
    "choose_pairs",
    "gram",
    "pair_scores",
]

# One selection score changes by one, up or down, with one record.
SCORE_RANGE = 2
# Bins of an attribute in the scores of pairs.
_BINS = 8


class BinnedPairs(NamedTuple):
    """All pairs of binned attributes; the counts are exact and private.

    Attributes
    ----------
    bins : list of ndarray of int64
        Bin of each code of each attribute.
    counts, starts : ndarray of int64
        From `gram`.
    """

    bins: list[IntArray]
    counts: IntArray
    starts: IntArray

    @classmethod
    def of(cls, table: Counts, attributes: Sequence[Attribute]) -> BinnedPairs:
        """Count all pairs in eight bins an attribute, about equal in released mass."""
        bins = [equal_mass_bins(each.mu, each.order, _BINS) for each in attributes]
        return cls(bins, *gram(table, bins))

    def independent(self, attributes: Sequence[Attribute], total: float) -> IntArray:
        """The expected counts of independent attributes, from released values only."""
        binned = np.concatenate(
            [
                group_sums(each.mu, bin_of, int(bin_of.max()) + 1)
                for each, bin_of in zip(attributes, self.bins, strict=True)
            ]
        )
        return np.rint(total * np.outer(binned, binned)).astype(np.int64)

    def expect(
        self, expected: IntArray, tree: TreeDensity, pairs: Sequence[tuple[int, int]], total: float
    ) -> IntArray:
        """Expected counts with those of a released tree for some pairs."""
        found = expected.copy()
        for a, b in pairs:
            rows, columns = (slice(*self.starts[axis : axis + 2]) for axis in (a, b))
            joint = np.rint(total * _binned_pair(tree, a, b, self.bins)).astype(np.int64)
            found[rows, columns], found[columns, rows] = joint, joint.T
        return found

    def block(self, a: int, b: int) -> IntArray:
        """The exact counts of one pair."""
        rows, columns = (slice(*self.starts[axis : axis + 2]) for axis in (a, b))
        return self.counts[rows, columns]


# --- exact counts of all pairs


def gram(table: Counts, bins: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Exact counts of all pairs of binned attributes at once.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    bins : sequence of ndarray of int
        Bin of each code of each attribute, 0, 1, ... without gaps.

    Returns
    -------
    counts : ndarray of int64, shape (n_bins, n_bins)
        Bins of all attributes one after the other, on both axes.
    starts : ndarray of int64, shape (n_attributes + 1,)
        Where the bins of an attribute begin.
    """
    sizes = [int(bin_of.max()) + 1 for bin_of in bins]
    starts = running_sums(np.array(sizes))
    result = np.zeros((starts[-1], starts[-1]), dtype=np.int64)
    pairs = list(itertools.combinations(range(len(bins)), 2))
    singles = list(range(len(bins)))
    tables = table.regrouped_many(
        [
            *(((i, j), (bins[i], bins[j])) for i, j in pairs),
            *(((i,), (bins[i],)) for i in singles),
        ]
    )
    for (i, j), pair in zip(pairs, tables, strict=False):
        rows, columns = slice(*starts[i : i + 2]), slice(*starts[j : j + 2])
        result[rows, columns], result[columns, rows] = pair, pair.T
    np.fill_diagonal(result, np.concatenate(list(tables)))
    return result, starts


# --- scores and choice


def pair_scores(counts: IntArray, expected: IntArray, starts: IntArray) -> IntArray:
    """Distance of the counts of each pair of attributes from the expected counts.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_bins, n_bins)
        Exact and private, from `gram`.
    expected : ndarray of int64, shape (n_bins, n_bins)
        Integers computed from released values only.
    starts : ndarray of int64, shape (n_attributes + 1,)

    Returns
    -------
    ndarray of int64, shape (n_attributes, n_attributes)
        Sums of absolute differences; one record changes each by exactly one, up or down.
    """
    distance = np.abs(counts - expected)
    by_row = np.add.reduceat(distance, starts[:-1], axis=0)
    return np.add.reduceat(by_row, starts[:-1], axis=1)


def choose_pairs(
    scores: IntArray,
    n_pairs: int,
    epsilon: Fraction,
    *,
    among: Sequence[int] | None = None,
    label: int | None = None,
    joined: Sequence[tuple[int, int]] = (),
    measured: bool = True,
    random_state: Any = None,
) -> list[tuple[int, int]]:
    """Choose pairs with high scores that form one or more trees, without a cycle.

    Parameters
    ----------
    scores : ndarray of int64, shape (n_attributes, n_attributes)
        From `pair_scores`.
    n_pairs : int
        At most the number of attributes minus one.
    epsilon : Fraction
        Cost of the whole choice.
    among : sequence of int, default=None
        Attributes that pairs may consist of; by default all.
    label : int, default=None
        An attribute that all pairs must contain.
    joined : sequence of tuple of two int, default=()
        Pairs that belong to the trees anyway, by public rules.
    measured : bool, default=True
        Whether those are measured anyway too; if False they can be chosen like the others.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    list of tuple of two int
        Each in increasing order.
    """
    # Privacy. Released: the pairs in the order of their choice. Each is a noisy maximum over the
    # pairs that close no cycle with those chosen before, which are released, or with those that
    # public rules join, and over the latter where they can be chosen. One record changes
    # every score by one up or down (the counts of one cell change, the expected ones are made of
    # released values): all changes lie in [-1, 1], the range is 2. Each choice costs
    # epsilon / n_pairs; they compose one after the other.
    source = noise_source(random_state)
    n = len(scores)
    component = np.arange(n)
    axes = np.arange(n) if among is None else np.sort(np.asarray(among))
    at_first, at_second = np.triu_indices(len(axes), 1)
    first, second = axes[at_first], axes[at_second]
    chosen: list[tuple[int, int]] = []
    ruled = np.zeros(len(first), dtype=bool)
    for a, b in joined:
        component[component == component[b]] = component[a]
        ruled |= (first == a) & (second == b) & (not measured)
    for _ in range(n_pairs):
        allowed = component[first] != component[second]
        if label is not None:
            allowed &= (first == label) | (second == label)
        allowed |= ruled
        candidates = np.flatnonzero(allowed)
        at = noisy_max(
            scores[first[candidates], second[candidates]],
            epsilon / n_pairs,
            SCORE_RANGE,
            random_state=source,
        )
        a, b = int(first[candidates[at]]), int(second[candidates[at]])
        ruled[candidates[at]] = False
        component[component == component[b]] = component[a]
        chosen.append((a, b))
    return chosen


def choose_extra_pairs(
    binned: BinnedPairs,
    tree: TreeDensity,
    total: float,
    n_pairs: int,
    epsilon: Fraction,
    *,
    among: Sequence[int],
    but: Sequence[tuple[int, int]],
    random_state: Any = None,
) -> list[tuple[int, int]]:
    """Choose the pairs with the largest errors of the tree model.

    Parameters
    ----------
    binned : BinnedPairs
        Exact and private.
    tree : TreeDensity
        The released model.
    total : float
        The released number of records, positive.
    n_pairs : int
    epsilon : Fraction
        Cost of the whole choice.
    among : sequence of int
        Attributes that pairs may consist of, ascending.
    but : sequence of tuple of two int
        Pairs that are measured already.
    random_state : None, int or NoiseSource, default=None
    """
    # Privacy. Released: the pairs of the noisy top scores. As in `choose_pairs` one record changes
    # every score by one up or down, because the expected counts are made of released values.
    candidates = [pair for pair in itertools.combinations(among, 2) if pair not in but]
    scores = np.empty(len(candidates), dtype=np.int64)
    for i, (a, b) in enumerate(candidates):
        expected = np.rint(total * _binned_pair(tree, a, b, binned.bins)).astype(np.int64)
        scores[i] = np.abs(binned.block(a, b) - expected).sum()
    best = top_k(scores, n_pairs, epsilon, SCORE_RANGE, random_state=random_state)
    return [candidates[i] for i in best]


def _binned_pair(tree: TreeDensity, a: int, b: int, bins: Sequence[IntArray]) -> FloatArray:
    """Joint probabilities of the bins of two attributes in the tree model."""
    table = tree.pair(a, b)
    for position, axis in enumerate((a, b)):
        bin_of = bins[axis]
        group = tree.groups.get(axis)
        size = int(bin_of.max()) + 1
        # Bins may cut groups: each group is divided among the bins in proportion to its codes.
        share = np.zeros((tree.sizes[axis], size))
        mass = tree.grouped[axis]
        codes = np.arange(len(bin_of)) if group is None else group
        inside = np.divide(
            tree.marginals[axis], mass[codes], out=np.zeros(len(codes)), where=mass[codes] > 0
        )
        np.add.at(share, (codes, bin_of), inside)
        table = np.moveaxis(np.tensordot(share, table, axes=(0, position)), 0, position)
    return table
