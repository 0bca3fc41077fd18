"""Genetic k-means and sample and aggregate: ranges of scores, blocks and axes."""

import itertools
from fractions import Fraction

import numpy as np
from clustered import make_task, points_in

from skdp.algorithms.kmeans import genetic
from skdp.algorithms.kmeans.genetic import block_centroids, genetic_rounds


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
        original = getattr(genetic, name)
        monkeypatch.setattr(genetic, name, spy(original))
    # The same seed gives the same candidates in the first round, whatever the points.
    first = []
    for record in range(len(points) + 1):
        ranges.clear()
        rows = np.delete(points, record, axis=0) if record < len(points) else points
        genetic.genetic(make_task(rows, shape, 3, "genetic", n_records=100, n_rounds=2))
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
    low, high = genetic._private_range(task, 0, Fraction(1))
    assert 370 <= low <= 420 and 480 <= high <= 530
    empty = make_task(points[:0], (1000,), 2, "sample-aggregate")
    for _ in range(20):
        low, high = genetic._private_range(empty, 0, Fraction(1))
        assert 0 <= low <= high <= 999
