"""Rounds of DPLloyd, the share of Hybrid, and the ranges of genetic k-means, blocks and axes."""

import itertools
from fractions import Fraction

import numpy as np
from boxed import Recorder
from clustered import make_task, points_in

from skdp.algorithms.kmeans import algorithms
from skdp.algorithms.kmeans.algorithms import (
    block_centroids,
    genetic_rounds,
    hybrid_share,
    lloyd_rounds,
)

# --- rounds and shares


def test_every_round_freezes_its_centroids(monkeypatch):
    """A record between two centroids is counted once, although the first one moves away."""
    recorder = Recorder()
    monkeypatch.setattr(algorithms, "discrete_laplace", recorder)
    points = np.array([[45], [0], [0]], dtype=np.int32)
    task = make_task(points, (101,), 2, "lloyd", n_rounds=1, init=np.array([[0.0], [100.0]]))
    algorithms.lloyd(task)
    assert recorder.calls[0][0].tolist() == [3, 0]


def test_rounds_follow_the_corrected_rule():
    # Least budgets of a round on two data sets of the dissertation, r = 1.
    assert lloyd_rounds(0.0106 * 5.2, 107_091, 5, 2) == 5
    assert lloyd_rounds(0.0106 * 4.8, 107_091, 5, 2) == 4
    assert lloyd_rounds(0.0962 * 3.1, 48_841, 5, 6) == 3
    assert lloyd_rounds(0.0962 * 2.9, 48_841, 5, 6) == 2
    assert lloyd_rounds(1e-9, 1, 5, 6) == 2 and lloyd_rounds(1e9, 10**6, 5, 6) == 7


def test_hybrid_compares_what_can_be_compared():
    assert hybrid_share(1e-3, 1000, 5, 2, 10) is None
    assert hybrid_share(0.05, 5_000, 15, 2, 10) is None
    share = hybrid_share(1.0, 48_842, 5, 6, 10)
    assert share is not None and 0.5 <= share < 1
    # The share minimises .14 V(f eps) + .42 R((1 - f) eps), here by hand on [-1, 1]^6.
    c = (4 * 6 * 0.225**2) ** (1 / 3)

    def error(f):
        grid = 12 * 5 ** (4 / 6) / (3 * 10**1.5 * (48_842 * f) ** 0.5)
        return 0.14 * grid + 0.42 * 2 * 25 * (6 + c) ** 3 / (48_842 * (1 - f)) ** 2

    assert float(share) == min(np.arange(1, 20) / 20, key=error)


# ------------------------------------------------------------------------------------------------
# Genetic k-means and sample and aggregate.


def test_genetic_scores_stay_within_the_range_of_the_noise(monkeypatch):
    ranges = []

    def spy(original):
        def recorded(scores, *args, **kwargs):
            ranges.append((scores, args[-1]))
            return original(scores, *args, **kwargs)

        return recorded

    shape = (2**20, 2**20, 2**15)
    corners = np.array(list(itertools.product(*[(0, size - 1) for size in shape])), dtype=np.int32)
    points = np.concatenate([points_in(shape, 40, 7), corners])
    for name in ("noisy_max", "top_k"):
        original = getattr(algorithms, name)
        monkeypatch.setattr(algorithms, name, spy(original))
    # The same seed gives the same candidates in the first round, whatever the points.
    first = []
    for record in range(len(points) + 1):
        ranges.clear()
        rows = np.delete(points, record, axis=0) if record < len(points) else points
        algorithms.genetic(make_task(rows, shape, 3, "genetic", n_records=100, n_rounds=2))
        first.append(ranges[0])
    whole, reach = first[-1]
    for scores, same in first[:-1]:
        assert same == reach
        moved = scores - whole
        assert (moved >= 0).all() and moved.max() <= reach
    assert max((scores - whole).max() for scores, _ in first[:-1]) > reach / 4
    # Rounds are bounded.
    found = [genetic_rounds(e, n) for e, n in ((1e-3, 100), (1.0, 100_000), (1e4, 10**6))]
    assert found == [8, 12, 30]


def test_a_record_changes_one_block():
    class Scripted:
        def __init__(self, blocks):
            self.blocks = blocks

        def record_below(self, bound, size, records):
            assert bound == 6 and len(records) == size
            return self.blocks[:size]

    points = points_in((500, 500), 120, 8)
    blocks = np.random.default_rng(9).integers(0, 6, size=120)
    found = [
        block_centroids(points[:n], (500, 500), 3, 6, Scripted(blocks), np.random.default_rng(0))
        for n in (120, 119)
    ]
    changed = (found[0] != found[1]).any(axis=(1, 2))
    assert np.flatnonzero(changed).tolist() == [blocks[119]]


def test_range_of_an_axis_holds_nearly_all_points():
    points = (400 + 100 * np.random.default_rng(10).random((5_000, 1))).astype(np.int32)
    task = make_task(points, (1000,), 2, "sample-aggregate")
    low, high = algorithms._private_range(task, 0, Fraction(1))
    assert 370 <= low <= 420 and 480 <= high <= 530
    empty = make_task(points[:0], (1000,), 2, "sample-aggregate")
    for _ in range(20):
        low, high = algorithms._private_range(empty, 0, Fraction(1))
        assert 0 <= low <= high <= 999
