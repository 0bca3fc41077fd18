"""Every algorithm of k-means spends exactly its budget."""

from fractions import Fraction

import pytest
from clustered import make_task, points_in
from loops import over

from skdp.algorithms.kmeans import auto as kmeans_auto
from skdp.algorithms.kmeans import auto as kmeans_sketch
from skdp.algorithms.kmeans import dplloyd, genetic
from skdp.algorithms.kmeans import grid as eugkm
from skdp.algorithms.kmeans import task as kmeans_task
from skdp.algorithms.kmeans.algorithms import ALGORITHMS

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
        patch(dplloyd, "discrete_laplace", noise_cost)
        patch(genetic, "discrete_laplace", noise_cost)
        patch(genetic, "noisy_max", lambda scores, epsilon, reach, **kwargs: epsilon)
        patch(genetic, "top_k", lambda scores, k, epsilon, reach, **kwargs: epsilon)
        patch(eugkm, "measure_cells", grid_cost)
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
