"""Data-dependent histograms of one column: DAWA, AHP and the adaptive tree."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from boxed import Recorder
from loops import over

import skdp
from skdp import RangeTreeHistogram, hierarchy
from skdp.algorithms import dawa
from skdp.algorithms.dawa import bucket_costs, similar_groups
from skdp.mechanisms import choose_buckets
from skdp.mechanisms.selection import least_cost_edges


def partitions(n_bins, *, aligned):
    """All partitions into buckets of 1, 2, 4, ... bins, by their edges, with the candidates."""

    def from_(start):
        if start == n_bins:
            yield []
            return
        for k in range(n_bins.bit_length() + 1):
            length = 2**k
            if aligned and (start % length or length >= 2 * n_bins):
                continue
            stop = min(start + length, n_bins) if aligned else start + length
            if stop <= n_bins:
                for rest in from_(stop):
                    yield [(k, start // length if aligned else start, start, stop), *rest]

    return list(from_(0))


def lengths_of(n_bins, *, aligned):
    if aligned:
        powers = [2**k for k in range(n_bins.bit_length() + 1) if 2**k < 2 * n_bins]
        return [-(-n_bins // power) for power in powers]
    return [n_bins - 2**k + 1 for k in range(n_bins.bit_length())]


@over("aligned", [False, True])
@over("n_bins", [1, 2, 3, 5, 6, 7, 8])
def test_the_dynamic_programme_finds_the_least_sum(n_bins, aligned):
    rng = np.random.default_rng(n_bins)
    lengths = lengths_of(n_bins, aligned=aligned)
    first = np.append(0, np.cumsum(lengths))
    for penalty in (0, 3):
        costs = rng.integers(-9, 9, sum(lengths))
        sums = {}
        for partition in partitions(n_bins, aligned=aligned):
            edges = (0, *(stop for *_, stop in partition))
            total = sum(int(costs[first[k] + place]) + penalty for k, place, *_ in partition)
            sums[edges] = min(total, sums.get(edges, total))
        for given in (costs, costs.astype(object)):
            found = least_cost_edges(given, lengths, n_bins, penalty)
            assert sums[tuple(found.tolist())] == min(sums.values())


@over("aligned", [False, True])
@over("n_bins", [1, 2, 6, 9])
def test_costs_are_distances_to_the_median_and_move_by_one(n_bins, aligned):
    counts = np.random.default_rng(n_bins).integers(0, 6, n_bins)
    costs = bucket_costs(counts, aligned=aligned)
    assert [len(each) for each in costs] == lengths_of(n_bins, aligned=aligned)
    for k, each in enumerate(costs):
        for place, cost in enumerate(each.tolist()):
            start = place * 2**k if aligned else place
            inside = counts[start : start + 2**k]
            assert cost == pytest.approx(np.abs(inside - np.median(inside)).sum())
    for bin_ in range(n_bins):
        more = counts.copy()
        more[bin_] += 1
        changes = np.concatenate(bucket_costs(more, aligned=aligned)) - np.concatenate(costs)
        assert np.abs(changes).max(initial=0) <= 1


def test_the_law_of_the_choice_is_private():
    """Every output of all noise on three bins; the noise is cut off where it is rare."""
    rate, most = 2.0, 4
    lengths = lengths_of(3, aligned=False)
    noise = np.array(list(itertools.product(range(most + 1), repeat=sum(lengths))))
    weight = np.exp(-rate * noise.sum(axis=1))

    def law(counts):
        costs = np.concatenate(bucket_costs(np.array(counts)))
        found = {}
        for each, mass in zip(costs - noise, weight, strict=True):
            edges = tuple(least_cost_edges(each, lengths, 3, 1).tolist())
            found[edges] = found.get(edges, 0.0) + mass
        return found

    worst = 0.0
    for counts in ([0, 0, 0], [1, 0, 2], [2, 2, 2]):
        for bin_ in range(3):
            more = list(counts)
            more[bin_] += 1
            here, there = law(counts), law(more)
            ratios = [abs(math.log(here[edges] / there[edges])) for edges in here]
            worst = max(worst, *ratios)
    # R is 2; the mass that is cut off adds less than one percent.
    assert 0.9 * rate < worst < 2 * rate * 1.01


@over(
    "costs, penalty, edges",
    [
        # As floating-point numbers the costs of both partitions would be equal.
        ([np.array([2**62 + 1, 0], dtype=np.uint64), [2**62]], 0, [0, 2]),
        ([np.array([2**62 + 1, 0], dtype=np.uint64), [2**62 + 2]], 0, [0, 1, 2]),
        # The least 64-bit integer has no positive counterpart.
        ([[-(2**63)] * 2, [0]], 2**70, [0, 2]),
        ([[-(2**63)] * 2, [0]], 0, [0, 1, 2]),
    ],
)
def test_costs_of_all_64_bits_are_exact(costs, penalty, edges):
    assert choose_buckets(costs, 2, 1e6, 1, penalty=penalty, random_state=0).tolist() == edges


# --- AHP


def test_similar_groups():
    order, edges = similar_groups(np.array([3, 100, 0, 101, 50, -4]), 3.5, 1.0)
    assert order.tolist() == [3, 1, 4, 0, 2, 5]
    assert edges.tolist() == [0, 2, 3, 6]
    order, edges = similar_groups(np.zeros(4, dtype=np.int64), 1.0, 1.0)
    assert order.tolist() == [0, 1, 2, 3] and edges.tolist() == [0, 4]


# --- the adaptive tree


PLAN = hierarchy.LevelPlan((4, 16, 64), (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)))


def test_large_counts_give_the_planned_tree(monkeypatch):
    monkeypatch.setattr(dawa, "discrete_laplace", Recorder())
    counts = np.full(64, 10**6)
    release = dawa.adaptive_tree(counts, 64, Fraction(1), PLAN)
    assert np.diff(release.tree.level_starts).tolist() == [1, 4, 16, 64]
    np.testing.assert_array_equal(release.values[1:], release.tree.node_counts(counts)[1:])


# --- siblings that differ by noise alone


def evened(children, variance=1.0):
    """Estimates of 8 siblings below a known node, whose sibling is one leaf of 8 bins."""
    tree = hierarchy.Tree.from_intervals(
        [(0, 16), (0, 8), (8, 16), *[(i, i + 1) for i in range(8)]]
    )
    variances = np.where(np.arange(tree.n_nodes) < 3, 1e-6, variance)
    values = np.array([children.sum() + 30, children.sum(), 30, *children])
    blue = hierarchy.Blue(tree, variances)
    return [hierarchy.non_negative(blue, values, even=even)[3:] for even in (False, True)]


def test_siblings_are_pulled_together_by_james_stein():
    rng = np.random.default_rng(0)
    for scale, least, most in ((0.1, 0.0, 0.0), (3.0, 0.3, 1.0), (1e3, 0.999, 1.0)):
        children = 5000 + scale * rng.normal(size=8)
        plain, even = evened(children)
        mean = children.mean()
        kept = max(0.0, 1 - 5 / ((children - mean) ** 2).sum())
        np.testing.assert_allclose(even - mean, kept * (children - mean), atol=1e-2)
        assert least <= kept <= most
        np.testing.assert_allclose(plain, children, atol=1e-2)
        assert even.sum() == pytest.approx(children.sum(), abs=1e-3)


# --- in the estimator


@over("partition", ["dawa", "ahp"])
def test_records_lie_anywhere_in_their_group(partition):
    """A group of 64 equal bins: half of it holds a binomial number of its records."""
    release = RangeTreeHistogram(
        epsilon=20.0, domain=skdp.Numeric(0, 64, 64), partition=partition, random_state=0
    ).fit(np.repeat(np.arange(64), 100))
    (group,) = release.tree_.leaf_widths
    found = release.count((0, 32 - 1e-9), return_interval=True)
    assert group == 64 and found.value == pytest.approx(3200, abs=10)
    assert found.std == pytest.approx(40, rel=0.02)
    # Whatever the records are.
    assert found.lower < 10 and found.upper > 6390
