"""Every algorithm of k-means spends exactly its budget; rounds of DPLloyd, the share of Hybrid."""

from fractions import Fraction

import numpy as np
import pytest
from clustered import Exact, make_task, points_in
from loops import over

from skdp.algorithms.kmeans import algorithms, genetic
from skdp.algorithms.kmeans import auto as kmeans_auto
from skdp.algorithms.kmeans import auto as kmeans_sketch
from skdp.algorithms.kmeans import task as kmeans_task
from skdp.algorithms.kmeans.algorithms import ALGORITHMS, hybrid_share, lloyd_rounds

# --- what is spent

COORDINATES = (64, 64, 64)


@over("n_records", [None, 500])
@over("epsilon", [Fraction(1, 10), Fraction(7, 3), Fraction(40)])
@over("algorithm, shape", [*((each, COORDINATES) for each in ALGORITHMS), ("auto", (2**20,) * 4)])
def test_every_algorithm_spends_exactly_its_budget(algorithm, shape, epsilon, n_records):
    spent = []
    k = 3
    points = points_in(COORDINATES[:1] * len(shape), 500, 6)
    task = make_task(points, shape, k, algorithm, epsilon, n_records=n_records)

    def noise_cost(values, epsilon, sensitivity=1, **kwargs):
        # Clusters are disjoint; the blocks' centroids are not: a block moves all k.
        return Fraction(epsilon) * (k if algorithm == "sample-aggregate" else 1)

    def grid_cost(points, edges, epsilon, threshold, source):
        return Fraction(epsilon)

    find_ranges = kmeans_sketch.find_ranges

    def ranges_recorded(*args):
        found = find_ranges(*args)
        spent.append(found[1])
        return found

    with pytest.MonkeyPatch.context() as monkeypatch:

        def patch(module, name, cost):
            original = getattr(module, name)

            def recorded(*args, **kwargs):
                spent.append(cost(*args, **kwargs))
                return original(*args, **kwargs)

            monkeypatch.setattr(module, name, recorded)

        patch(kmeans_task, "discrete_laplace", lambda values, epsilon, **kwargs: Fraction(epsilon))
        patch(algorithms, "discrete_laplace", noise_cost)
        patch(genetic, "discrete_laplace", noise_cost)
        patch(genetic, "noisy_max", lambda scores, epsilon, reach, **kwargs: epsilon)
        patch(genetic, "top_k", lambda scores, k, epsilon, reach, **kwargs: epsilon)
        patch(algorithms, "measure_cells", grid_cost)
        patch(kmeans_sketch, "measure_cells", grid_cost)
        patch(kmeans_sketch, "measure_tree", lambda binned, margins, n, k, epsilon, source: epsilon)
        patch(kmeans_sketch, "measure_margins", lambda binned, margins, n, epsilon, source: epsilon)
        monkeypatch.setattr(kmeans_sketch, "find_ranges", ranges_recorded)
        patch(
            kmeans_auto,
            "noisy_round",
            lambda points, centroids, reach, counts, sums, source: counts + sums,
        )
        ALGORITHMS[algorithm][0](task)
    assert sum(spent) == epsilon == sum(task.parts.values())
    assert ("records" in task.parts) == (n_records is None and algorithm != "lloyd")


# --- rounds and shares


def test_every_round_freezes_its_centroids(monkeypatch):
    """A record between two centroids is counted once, although the first one moves away."""
    recorder = Exact()
    monkeypatch.setattr(algorithms, "discrete_laplace", recorder)
    points = np.array([[45], [0], [0]], dtype=np.int32)
    init = np.array([[0.0], [100.0]])
    task = make_task(points, (101,), 2, "lloyd", n_rounds=1, init=init)
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
