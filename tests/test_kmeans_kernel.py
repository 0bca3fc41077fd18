"""Kernels of private k-means: grids, k-means on what is released, rounds, and what they spend."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.stats import chi2
from sklearn.cluster import KMeans
from sklearn.metrics import calinski_harabasz_score

from skdp._random import noise_source, sampling_generator
from skdp.exceptions import InsecureSeedWarning
from skdp.kernels.kmeans import auto as kmeans_auto
from skdp.kernels.kmeans import auto as kmeans_sketch
from skdp.kernels.kmeans import cells as kmeans_cells
from skdp.kernels.kmeans import dplloyd, eugkm, lloyd, privgene, sample_aggregate
from skdp.kernels.kmeans import ranges as kmeans_ranges
from skdp.kernels.kmeans import rows as kmeans_rows
from skdp.kernels.kmeans import task as kmeans_task
from skdp.kernels.kmeans import tree as kmeans_tree
from skdp.kernels.kmeans.algorithms import ALGORITHMS, algorithm_parts
from skdp.kernels.kmeans.cells import Cells, cover, full_grid_edges, grid_edges, measure_cells
from skdp.kernels.kmeans.dplloyd import lloyd_rounds
from skdp.kernels.kmeans.eugkm import hybrid_share
from skdp.kernels.kmeans.lloyd import (
    best_kmeans,
    calinski_harabasz,
    kmeans_plus_plus,
    lloyd_on_cells,
    nearest,
    nearest_distances,
    ray_turi,
    sphere_packing,
    swapped,
)
from skdp.kernels.kmeans.privgene import genetic_rounds
from skdp.kernels.kmeans.rows import noisy_round
from skdp.kernels.kmeans.sample_aggregate import block_centroids
from skdp.kernels.kmeans.task import Task
from skdp.release import Boxes

EXACT = Fraction(10_000)  # so much budget that noise is zero


def seeded(seed):
    with pytest.warns(InsecureSeedWarning):
        return noise_source(seed)


def points_in(shape, n, seed):
    generator = np.random.default_rng(seed)
    return (generator.random((n, len(shape))) * shape).astype(np.int32)


def make_task(points, shape, k=3, algorithm="auto", epsilon=Fraction(1), seed=0, **changes):
    source = seeded(seed)
    n_records = changes.pop("n_records", None)
    given = {
        "points": points,
        "shape": shape,
        "clusters": (k,),
        "parts": algorithm_parts(algorithm, epsilon, n_records),
        "n_records": n_records,
        "n_init": 6,
        "n_rounds": 5,
        "init": None,
        "source": source,
        "generator": sampling_generator(source),
    }
    return Task(**{**given, **changes})


# --- assignment


def test_assignment_is_exact_whatever_the_matrix_around_a_row(monkeypatch):
    shape = (2**20,) * 40
    points, centroids = points_in(shape, 60, 0), points_in(shape, 5, 1).astype(np.float64)
    # A point exactly between two centroids, and one a single code off.
    points[0] = (centroids[3] + centroids[1]).astype(np.int64) // 2
    centroids[1] += (centroids[3] + centroids[1]) % 2
    truth = [
        min(
            range(5),
            key=lambda j: sum((int(a) - int(b)) ** 2 for a, b in zip(x, centroids[j], strict=True)),
        )
        for x in points
    ]
    assert nearest(points, centroids).tolist() == truth
    alone = np.concatenate([nearest(point[None], centroids) for point in points])
    assert alone.tolist() == truth
    monkeypatch.setattr(lloyd, "BLOCK", 200)
    assert nearest(points, centroids).tolist() == truth


def test_distances_of_candidate_sets_are_exact(monkeypatch):
    monkeypatch.setattr(lloyd, "BLOCK", 300)
    points = points_in((1024, 300), 100, 2)
    candidates = np.random.default_rng(3).integers(0, 300, size=(7, 4, 2))
    apart = ((points[:, None, None].astype(int) - candidates) ** 2).sum(axis=3).min(axis=2)
    assert nearest_distances(points, candidates).tolist() == apart.sum(axis=0).tolist()


# --- grids


def test_full_grid_is_cut_like_the_published_runs():
    sides = [len(edge) - 1 for edge in full_grid_edges((2**20, 2**20), 500)]
    assert sides == [23, 22]


@settings(max_examples=60)
@given(st.lists(st.integers(1, 2**20), min_size=1, max_size=32), st.floats(1, 2e5))
def test_grids_cover_the_box_and_stay_small(shape, n_cells):
    for edges in (full_grid_edges(shape, n_cells), grid_edges(shape, min(n_cells, 64))):
        assert all(
            edge[0] == 0 and edge[-1] == size for edge, size in zip(edges, shape, strict=True)
        )
        assert all((np.diff(edge) > 0).all() for edge in edges)
    total = math.prod(len(edge) - 1 for edge in full_grid_edges(shape, n_cells))
    assert min(math.prod(shape), n_cells) * 0.999 <= total <= 2 ** len(shape) * max(n_cells, 1)
    wide = [2**20] * 30
    assert math.prod(len(edge) - 1 for edge in full_grid_edges(wide, n_cells)) <= 2 * n_cells


def counted_by_hand(points, edges):
    table, _ = np.histogramdd(points, bins=[np.asarray(edge) - 0.5 for edge in edges])
    return table.astype(int)


@pytest.mark.parametrize("at_once", [2**18, 7])
def test_cells_hold_the_points_and_no_cell_is_missed(monkeypatch, at_once):
    monkeypatch.setattr(kmeans_cells, "_CELLS_AT_ONCE", at_once)
    points = points_in((30, 17, 1), 400, 4)
    edges = full_grid_edges((30, 17, 1), 20)
    truth = counted_by_hand(points, edges)
    cells = measure_cells(points, edges, EXACT, None, seeded(0))
    assert len(cells.counts) == truth.size
    assert (cells.counts.reshape(truth.shape) == truth).all()
    assert (cells.upper > cells.lower).all()
    kept = measure_cells(points, edges, EXACT, 20, seeded(0))
    assert kept.counts.tolist() == truth[truth >= 20].tolist()
    assert len(np.unique(kept.places, axis=0)) == len(kept.counts)


@pytest.mark.parametrize("at_once", [2**18, 1000])
def test_empty_cells_pass_the_threshold_with_the_chance_of_the_noise(monkeypatch, at_once):
    # False alarm about 1e-6; epsilon a quarter larger or smaller must be rejected.
    monkeypatch.setattr(kmeans_cells, "_CELLS_AT_ONCE", at_once)
    epsilon, threshold, n_cells = 0.5, 6, 40_000
    edges = [np.arange(n_cells + 1)]
    nobody = np.empty((0, 1), dtype=np.int32)
    cells = measure_cells(nobody, edges, Fraction(1, 2), threshold, seeded(5))

    def deviation(epsilon):
        r = math.exp(-epsilon)
        chance = r**threshold / (1 + r)
        passed = (len(cells.counts) - n_cells * chance) / math.sqrt(n_cells * chance)
        excess = (cells.counts - threshold).mean() - r / (1 - r)
        spread = math.sqrt(r) / (1 - r) / math.sqrt(len(cells.counts))
        return max(abs(passed), abs(excess / spread))

    assert deviation(epsilon) < 5
    assert deviation(epsilon * 0.8) > 5 and deviation(epsilon * 1.25) > 5


@settings(max_examples=40)
@given(st.data())
def test_cover_completes_cells_to_a_partition(data):
    sides = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    total = math.prod(sides)
    chosen = sorted(data.draw(st.sets(st.integers(0, total - 1), max_size=total)))
    places = np.stack(np.unravel_index(np.array(chosen, dtype=int), sides), axis=1)
    lower, upper, index = cover(places.astype(np.int64), sides)
    Boxes(lower, upper).check_volume(sides)
    owner = np.full(sides, -2)
    for low, high, cell in zip(lower, upper, index, strict=True):
        window = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        assert (owner[window] == -2).all()
        owner[window] = cell
    assert sorted(owner[owner >= 0].tolist()) == list(range(len(chosen)))
    assert (owner != -2).all()
    assert len(lower) <= (2 * len(sides) + 1) * len(chosen) + 1


# --- k-means on released points


def blobs(seed=0):
    generator = np.random.default_rng(seed)
    middles = np.array([[100, 100], [700, 300], [400, 900.0]])
    return np.clip(
        np.concatenate([generator.normal(m, 40, size=(200, 2)) for m in middles]), 0, 999
    ).astype(np.int32)


def test_lloyd_on_cells_is_lloyd():
    points = blobs().astype(np.float64)
    weights = np.random.default_rng(1).integers(1, 5, size=len(points)).astype(np.float64)
    starts = np.stack([points[[0, 1, 2]], points[[0, 250, 500]], points[[0, 250, 260]]])
    centroids, costs = lloyd_on_cells(points, weights, starts, (1000, 1000), 100)
    for start, found, cost in zip(starts, centroids, costs, strict=True):
        reference = KMeans(3, init=start, n_init=1, tol=0).fit(points, sample_weight=weights)
        np.testing.assert_allclose(found, reference.cluster_centers_, rtol=1e-6)
        assert cost == pytest.approx(reference.inertia_)


def test_lloyd_on_signed_cells_ends_inside_the_box():
    generator = np.random.default_rng(2)
    points = generator.random((500, 3)) * 99
    starts = generator.random((8, 4, 3)) * 99
    weights = generator.normal(0, 1, 500)
    centroids, costs = lloyd_on_cells(points, weights, starts, (100,) * 3)
    assert np.isfinite(costs).all()
    assert (centroids >= 0).all() and (centroids <= 99).all()
    # A cluster without positive weight stays where it was.
    stuck, _ = lloyd_on_cells(points, -np.ones(500), starts, (100,) * 3)
    assert (stuck == starts).all()


def test_best_start_wins():
    points = blobs().astype(np.float64)
    bad, good = points[[0, 1, 2]], points[[0, 250, 500]]
    starts = np.stack([bad] * 20 + [good] + [bad] * 20)
    centroids, cost = best_kmeans(points, np.ones(len(points)), starts, (1000, 1000))
    reference = KMeans(3, n_init=5, random_state=0).fit(points)
    assert cost == pytest.approx(reference.inertia_)
    assert len(centroids) == 3


def test_greedy_starts_take_each_blob_and_nothing_negative():
    points = blobs().astype(np.float64)
    weights = np.ones(len(points))
    weights[:200] = -3
    generator = np.random.default_rng(3)
    starts = kmeans_plus_plus(points, weights, 2, 30, generator)
    assert (starts[:, :, 0] > 250).all()
    three = kmeans_plus_plus(points, np.ones(len(points)), 3, 30, generator)
    assert all(len(set(nearest(start, points[[0, 250, 450]]))) == 3 for start in three)
    nobody = kmeans_plus_plus(points, np.zeros(len(points)), 4, 2, generator)
    assert nobody.shape == (2, 4, 2)


@pytest.mark.parametrize(("shape", "k"), [((1000, 1000), 15), ((1000,) * 3, 20), ((9, 2000), 4)])
def test_sphere_packing_spreads_the_starts(shape, k):
    generator = np.random.default_rng(4)

    def gap(start):
        return min(np.linalg.norm(a - b) for a, b in itertools.combinations(start, 2))

    packed = sphere_packing(shape, k, 6, generator)
    assert (packed >= -0.5).all() and (packed <= np.array(shape) - 0.5).all()
    uniform = generator.random((60, k, len(shape))) * shape
    assert np.mean([gap(s) for s in packed]) > 1.3 * np.mean([gap(s) for s in uniform])


def test_sphere_packing_ends_where_nothing_fits():
    assert sphere_packing((1, 1), 5, 2, np.random.default_rng(5)).shape == (2, 5, 2)


def test_ray_turi_is_its_formula():
    points = np.array([[0.0], [2.0], [10.0], [12.0]])
    weights = np.array([1.0, 3.0, 2.0, 2.0])
    centroids = np.array([[1.0], [11.0]])
    assert ray_turi(points, weights, centroids) == pytest.approx(1.0 / 100)
    assert ray_turi(points, weights, np.array([[1.0], [1.0]])) == math.inf
    assert ray_turi(points, -weights, centroids) == math.inf


def test_calinski_harabasz_is_that_of_scikit_learn():
    points = blobs().astype(np.float64)
    fitted = KMeans(3, n_init=5, random_state=0).fit(points)
    weights = np.ones(len(points))
    expected = (len(points) - 3) / calinski_harabasz_score(points, fitted.labels_)
    found = calinski_harabasz(points, weights, fitted.cluster_centers_)
    assert found == pytest.approx(expected)
    assert calinski_harabasz(points, -weights, fitted.cluster_centers_) == math.inf
    assert calinski_harabasz(points[:1], weights[:1], points[:2]) == math.inf


def test_the_number_of_clusters_is_found_where_a_gap_between_two_is_small():
    """Eight clusters, two of them near each other: the index of Ray and Turi chose 7 here."""
    generator = np.random.default_rng(0)
    places = np.array([[i, j] for i in range(3) for j in range(3)][:8]) * 300 + 150
    places[7] = places[6] + [110, 60]
    points = places[generator.integers(0, 8, 16_000)] + generator.normal(0, 18, (16_000, 2))
    points = np.clip(points, 0, 999).astype(np.int32)
    for seed in range(3):
        task = make_task(points, (1_000, 1_000), clusters=tuple(range(2, 15)), seed=seed)
        assert len(kmeans_auto.auto(task).centroids) == 8


@pytest.mark.parametrize("wide", [10, 100])
def test_wide_bounds_are_never_worse_than_one_point(wide):
    """Ten columns at little signal; without ranges it is 2 and 100 times worse than one point."""
    generator = np.random.default_rng(1)
    size, d = 2**20, 10
    middles = generator.uniform(-0.8, 0.8, (8, d))
    X = middles[generator.integers(0, 8, 20_000)] + generator.normal(0, 0.1, (20_000, d))
    points = np.clip((X / wide + 1) / 2 * size, 0, size - 1).astype(np.int32)
    one = ((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()
    task = make_task(points, (size,) * d, 8, epsilon=Fraction(1, 10))
    centroids = kmeans_auto.auto(task).centroids
    away = points - centroids[nearest(points, centroids)]
    assert (away.astype(float) ** 2).sum(axis=1).mean() < 0.6 * one


# --- private rounds


class _Recorder:
    """Stands for `discrete_laplace`: adds nothing, and keeps what it was given."""

    def __init__(self):
        self.calls = []

    def __call__(self, values, epsilon, sensitivity=1, *, random_state=None):
        values = np.array(values)
        self.calls.append((values, Fraction(epsilon), sensitivity))
        return values


@settings(max_examples=50)
@given(st.data())
def test_a_record_moves_a_round_by_what_its_noise_covers(data):
    d = data.draw(st.integers(1, 6))
    k = data.draw(st.integers(1, 5))
    seed = data.draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    shape = (2**20,) * d
    points = points_in(shape, 30, seed)
    centroids = generator.integers(0, 2**20, size=(k, d))
    reach = generator.integers(1, 2 ** generator.integers(1, 22), size=k)
    exact = []
    for rows in (points, points[1:]):
        recorder = _Recorder()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kmeans_rows, "discrete_laplace", recorder)
            noisy_round(rows, centroids, reach, Fraction(1), Fraction(1), None)
        assert recorder.calls[0][2] == 1
        assert [call[2] for call in recorder.calls[1:]] == reach.tolist()
        exact.append((recorder.calls[0][0], np.array([call[0] for call in recorder.calls[1:]])))
    counts, sums = exact[0][0] - exact[1][0], exact[0][1] - exact[1][1]
    assert sorted(counts.tolist()) == [0] * (k - 1) + [1]
    mine = int(counts.argmax())
    assert (np.delete(sums, mine, axis=0) == 0).all()
    residual = points[0] - centroids[mine]
    length = int(np.abs(residual).sum())
    assert np.abs(sums[mine]).sum() <= min(length, reach[mine])
    if length <= reach[mine]:
        assert (sums[mine] == residual).all()
    else:
        assert np.abs(sums[mine]).sum() > reach[mine] - d


def test_noise_of_a_round_has_the_variance_it_states():
    # chi-square of the sums and counts; false alarm about 2e-6.
    k, d = 400, 20
    centroids = np.zeros((k, d), dtype=np.int64)
    reach = np.full(k, 1000)
    reach[k // 2 :] = 10
    nobody = np.empty((0, d), dtype=np.int32)
    measured = noisy_round(nobody, centroids, reach, Fraction(1, 5), Fraction(2), seeded(1))
    for sums, most in ((measured.sums[: k // 2], 1000), (measured.sums[k // 2 :], 10)):
        # |noise| / scale is exponential: twice its sum is chi-square, lattice effects aside.
        scale = np.abs(sums).sum() * 2 * float(2) / most
        low, high = chi2.ppf([1e-6, 1 - 1e-6], 2 * sums.size)
        assert low < scale < high
        assert not low < scale * 0.8 < high and not low < scale * 1.25 < high
    assert (measured.sum_variances[0], measured.sum_variances[-1]) == pytest.approx(
        (2 * 500**2, 2 * 5**2), rel=0.01
    )
    assert measured.counts.var() == pytest.approx(measured.count_variance, rel=0.4)
    assert measured.count_variance == pytest.approx(50, rel=0.01)


def test_every_round_freezes_its_centroids(monkeypatch):
    """A record between two centroids is counted once, although the first one moves away."""
    recorder = _Recorder()
    monkeypatch.setattr(dplloyd, "discrete_laplace", recorder)
    points = np.array([[45], [0], [0]], dtype=np.int32)
    init = np.array([[0.0], [100.0]])
    task = make_task(points, (101,), 2, "lloyd", n_rounds=1, init=init)
    dplloyd.lloyd(task)
    assert recorder.calls[0][0].tolist() == [3, 0]


# --- what is spent

COORDINATES = (64, 64, 64)


@pytest.mark.parametrize("n_records", [None, 500])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(7, 3), Fraction(40)])
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_every_algorithm_spends_exactly_its_budget(monkeypatch, algorithm, epsilon, n_records):
    spent = []
    k = 3
    points = points_in(COORDINATES, 500, 6)
    task = make_task(points, COORDINATES, k, algorithm, epsilon, n_records=n_records)

    def patch(module, name, cost):
        original = getattr(module, name)

        def recorded(*args, **kwargs):
            spent.append(cost(*args, **kwargs))
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, recorded)

    def noise_cost(values, epsilon, sensitivity=1, **kwargs):
        # Clusters are disjoint; the blocks' centroids are not: a block moves all k.
        return Fraction(epsilon) * (k if algorithm == "sample-aggregate" else 1)

    def grid_cost(points, edges, epsilon, threshold, source):
        return Fraction(epsilon)

    patch(kmeans_task, "discrete_laplace", lambda values, epsilon, **kwargs: Fraction(epsilon))
    patch(dplloyd, "discrete_laplace", noise_cost)
    patch(sample_aggregate, "discrete_laplace", noise_cost)
    for module in (sample_aggregate, privgene):
        patch(module, "noisy_max", lambda scores, epsilon, reach, **kwargs: epsilon)
    patch(privgene, "top_k", lambda scores, k, epsilon, reach, **kwargs: epsilon)
    patch(eugkm, "measure_cells", grid_cost)
    patch(kmeans_sketch, "measure_cells", grid_cost)
    patch(kmeans_sketch, "measure_tree", lambda binned, margins, n, k, epsilon, source: epsilon)
    measure_margins = kmeans_sketch.measure_margins

    def margins_recorded(*args):
        found = measure_margins(*args)
        spent.append(found[2])
        return found

    monkeypatch.setattr(kmeans_sketch, "measure_margins", margins_recorded)
    patch(
        kmeans_auto,
        "noisy_round",
        lambda points, centroids, reach, counts, sums, source: counts + sums,
    )
    ALGORITHMS[algorithm][0](task)
    assert sum(spent) == epsilon == sum(task.parts.values())
    assert ("records" in task.parts) == (n_records is None and algorithm != "lloyd")


class _Exact:
    """In place of noise: exact counts, and what each measurement cost."""

    def __init__(self):
        self.calls = []

    def __call__(self, values, epsilon, sensitivity=1, *, random_state=None):
        self.calls.append((np.array(values), Fraction(epsilon), sensitivity))
        return np.array(values)


def skewed_points(n, d, seed):
    values = np.random.default_rng(seed).exponential(60, size=(n, d))
    return np.minimum(values, 1023).astype(np.int32)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_divides_the_box_and_its_exact_counts_are_true(monkeypatch, weighted):
    exact = _Exact()
    monkeypatch.setattr(kmeans_tree, "discrete_laplace", exact)
    monkeypatch.setattr(kmeans_ranges, "discrete_laplace", exact)
    monkeypatch.setattr(kmeans_tree, "_ZERO", 0.0)
    points = skewed_points(3_000, 4, 0)
    binned = kmeans_ranges.Binned.of(points, (1024,) * 4)
    if weighted:
        bins, counts = np.unique(binned.bins, axis=0, return_counts=True)
        binned = kmeans_ranges.Binned(bins, counts, binned.edges)
    margins, _, spent = kmeans_ranges.measure_margins(
        points, binned, 3_000, Fraction(1), Fraction(1), False, None
    )
    assert spent == 1
    assert all(mass.sum() == pytest.approx(1) for mass in margins.masses)
    assert sum(cost for _, cost, _ in exact.calls) == 1
    leaves = kmeans_tree.measure_tree(binned, margins, 3_000, 3, Fraction(1), None)
    bins = kmeans_ranges.Binned.of(points, (1024,) * 4).bins
    inside = (leaves.lower[None] <= bins[:, None]) & (bins[:, None] < leaves.upper[None])
    inside = inside.all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert np.prod(leaves.upper - leaves.lower, axis=1).sum() == 64**4
    assert 20 < len(leaves.counts) < 1_000
    np.testing.assert_allclose(leaves.counts, inside.sum(axis=0), atol=1e-6)


def test_narrow_ranges_are_cut_again_and_every_record_stays_in_a_bin(monkeypatch):
    """Costs of all histograms add up to what is said to be spent, and exact counts are true."""
    exact = _Exact()
    monkeypatch.setattr(kmeans_ranges, "discrete_laplace", exact)
    size, n = 2**20, 20_000
    generator = np.random.default_rng(5)
    points = np.empty((n, 3), dtype=np.int32)
    # One axis is tight, one a hundred times too wide with a far cluster, one has a single value.
    points[:, 0] = generator.integers(0, size, n)
    points[:, 1] = size // 3 + generator.integers(0, size // 100, n)
    points[:90, 1] = size - 7
    points[:, 2] = 777
    binned = kmeans_ranges.Binned.of(points, (size,) * 3)
    margins, again, spent = kmeans_ranges.measure_margins(
        points, binned, n, Fraction(3, 10), Fraction(1), False, None
    )
    assert sum(epsilon for _, epsilon, _ in exact.calls) == spent > Fraction(3, 10)
    low, high = margins.ranges.T
    assert (low[0], high[0]) == (0, size)
    assert size // 3 - size // 20 < low[1] < size // 3 and high[1] - low[1] < size // 8
    assert low[2] <= 777 < high[2] < size // 64
    for axis, edge in enumerate(margins.edges):
        assert edge[0] == 0 and edge[-1] == size and (np.diff(edge) > 0).all()
        assert margins.masses[axis].sum() == pytest.approx(1) and (margins.masses[axis] > 0).all()
        at = again.bins[:, axis]
        assert ((edge[at] <= points[:, axis]) & (points[:, axis] < edge[at + 1])).all()
    # A neighbour changes each histogram of an axis by one, if at all.
    others = _Exact()
    monkeypatch.setattr(kmeans_ranges, "discrete_laplace", others)
    fewer = kmeans_ranges.Binned.of(points[:-1], (size,) * 3)
    kmeans_ranges.measure_margins(points[:-1], fewer, n, Fraction(3, 10), Fraction(1), False, None)
    cost = Fraction(0)
    for (values, epsilon, _), (without, same, _) in zip(exact.calls, others.calls, strict=True):
        assert epsilon == same
        cost += epsilon * int(np.abs(values - without).sum())
    # The last count is of the records beyond the ranges, and this one is not.
    assert cost == spent - exact.calls[-1][1]


def test_axes_that_may_be_narrow_are_measured_again_within_the_limit(monkeypatch):
    """Counts of one axis are averaged by precision, and no more is spent than may be."""
    generator = np.random.default_rng(6)
    size, n = 2**20, 5_000
    for wide, alone in ((60, False), (1, True)):
        points = (size // 2 + generator.integers(0, size // (2 * wide), (n, 2))).astype(np.int32)
        binned = kmeans_ranges.Binned.of(points, (size,) * 2)
        for most in (Fraction(1, 10), Fraction(1, 100)):
            exact = _Exact()
            monkeypatch.setattr(kmeans_ranges, "discrete_laplace", exact)
            first = Fraction(1, 100)
            margins, _, spent = kmeans_ranges.measure_margins(
                points, binned, n, first, most, True, None
            )
            assert sum(epsilon for _, epsilon, _ in exact.calls) == spent <= most
            assert (spent == first) == (alone or most == first)
            assert (margins.ranges[0].tolist() == [0, size]) == (spent == first)
    axis = kmeans_ranges._Axis(np.arange(3), np.zeros(2), np.full(2, np.inf), 0, 2)
    monkeypatch.setattr(kmeans_ranges, "discrete_laplace", lambda values, *_, **__: values)
    axis.measured(np.array([4, 8]), Fraction(1), None)
    axis.measured(np.array([14, 18]), Fraction(2), None)
    np.testing.assert_allclose(axis.counts, [12, 16])
    np.testing.assert_allclose(axis.scales, 5**-0.5)


def test_a_tree_has_boxes_of_their_own_beyond_the_ranges():
    size, n = 2**20, 20_000
    generator = np.random.default_rng(8)
    points = (size // 2 + generator.integers(0, size // 50, (n, 2))).astype(np.int32)
    # Too few to be seen in the histogram of an axis.
    points[:200] = size // 2 + size // 20 + generator.integers(0, size // 500, (200, 2))
    binned = kmeans_ranges.Binned.of(points, (size,) * 2)
    margins, binned, _ = kmeans_ranges.measure_margins(
        points, binned, n, Fraction(1, 50), Fraction(1, 2), False, seeded(3)
    )
    assert (margins.ranges[:, 1] < size // 2 + size // 20).all()
    leaves = kmeans_tree.measure_tree(binned, margins, n, 3, Fraction(1), seeded(4))
    volume = np.prod(leaves.upper - leaves.lower, axis=1).sum()
    assert volume == math.prod(len(edge) - 1 for edge in margins.edges)
    beyond = (leaves.lower >= margins.cores[:, 1]).any(axis=1)
    assert leaves.counts[beyond].sum() == pytest.approx(200, abs=60)
    small = leaves.counts * beyond > 20
    wide = margins.edges[0][leaves.upper[small, 0]] - margins.edges[0][leaves.lower[small, 0]]
    assert (wide < size // 20).any()


def test_a_grid_of_ranges_covers_the_box_and_uses_its_own_cells_only():
    shape, ranges = (2**20, 2**20), np.array([[400, 500], [2**20 - 100, 2**20]])
    points = (ranges[:, 0] + points_in((100, 100), 5_000, 9)).astype(np.int32)
    points[:50] = 2**19
    task = make_task(points, shape)
    sketch = kmeans_sketch._grid_sketch(task, 5_000, ranges, 100, EXACT, Fraction(0))
    edges = sketch.release.edges
    assert edges[0].tolist() == [0, *range(400, 501, 10), 2**20]
    assert edges[1].tolist() == [0, *range(2**20 - 100, 2**20 + 1, 10)]
    assert sketch.release.cells.counts.sum() == 5_000
    low, high = sketch.cloud.points.min(axis=0), sketch.cloud.points.max(axis=0)
    assert (low >= ranges[:, 0] - 1).all() and (high <= ranges[:, 1]).all()


def test_the_ends_of_a_range_are_found_as_often_as_the_noise_allows():
    """By Bayes' rule: an end is too early no more often than stated, but sometimes."""
    generator = np.random.default_rng(10)
    n, bins, runs = 20_000, 64, 400
    early = np.zeros((runs, 2), dtype=bool)
    for run in range(runs):
        length = int(np.exp(generator.uniform(0, np.log(bins))))
        first = int(generator.integers(0, bins - length + 1))
        held = generator.exponential(size=length) * (generator.random(length) < 0.5)
        held[[0, -1]] = np.maximum(held[[0, -1]], 0.5)
        counts = np.zeros(bins)
        counts[first : first + length] = n * held / held.sum()
        scale = n / generator.choice([30, 60, 300])
        noisy = counts + generator.laplace(0, scale, bins)
        axis = kmeans_ranges._Axis(np.arange(bins + 1), noisy, np.full(bins, scale), 0, bins)
        ((low, high),) = axis.likely(n, 0.1)
        early[run] = low > first, high < first + length
    # Whole bins make ends late rather than early.
    assert (early.mean(axis=0) < 0.1).all() and (early.mean(axis=0) > 0.003).all()


def test_a_density_with_noise_is_one():
    values = np.linspace(-60, 3_000, 400_001)
    for mean in (None, np.array(0.2), np.array(3.0), np.array(100.0)):
        density = kmeans_ranges._density(values, 3.0, mean) / 3.0
        assert (density >= 0).all()
        assert trapezoid(density, values) == pytest.approx(1, abs=1e-4)
        expected = 0 if mean is None else float(mean)
        assert trapezoid(values * density, values) == pytest.approx(expected, abs=1e-2)


def test_records_beyond_the_ranges_are_looked_for(monkeypatch):
    """One count of all of them decides whether ranges are as narrow as they seem."""
    exact = _Exact()
    monkeypatch.setattr(kmeans_ranges, "discrete_laplace", exact)
    generator = np.random.default_rng(11)
    size, n = 2**20, 20_000
    points = (size // 2 + generator.integers(0, size // 40, (n, 2))).astype(np.int32)
    for far in (0, 2_000):
        # Each bin has too few to stand out.
        points[:far] = generator.integers(0, size, (far, 2))
        binned = kmeans_ranges.Binned.of(points, (size,) * 2)
        margins, binned, _ = kmeans_ranges.measure_margins(
            points, binned, n, Fraction(1, 500), Fraction(1, 10), True, None
        )
        (count,), cost, sensitivity = exact.calls[-1]
        assert sensitivity == 1 and cost == Fraction(100, n)
        assert (count < 0.005 * n) == (far == 0) == margins.near


def test_the_choice_of_grid_or_tree_is_of_released_numbers():
    generator = np.random.default_rng(8)
    size, n = 2**20, 6_000
    even = generator.integers(0, size, (n, 2))
    tail = np.minimum(np.exp(generator.normal(0, 1, (n, 2))) * size / 15, size - 1)
    for points, tree in ((even, False), (tail, True)):
        task = make_task(points.astype(np.int32), (size,) * 2, 5, n_records=n)
        sketch = kmeans_sketch.first_sketch(task, n, Fraction(1, 5), True, True)
        assert (sketch.release.leaves is not None) == tree
        task = make_task(points[:50].astype(np.int32), (size,) * 2, 5, n_records=50)
        few = kmeans_sketch.first_sketch(task, 50, Fraction(1, 5), True, True)
        assert few.release.leaves is None and few.left == Fraction(1, 25)


def test_ranges_are_left_whole_where_noise_would_decide():
    for n in (1, 200):
        points = np.full((n, 2), 5, dtype=np.int32)
        for epsilon in (Fraction(1, 1000), Fraction(1, 50)):
            binned = kmeans_ranges.Binned.of(points, (2**20,) * 2)
            found = kmeans_ranges.measure_margins(
                points, binned, n, epsilon, epsilon, True, seeded(1)
            )
            assert found[2] == epsilon
            assert found[0].ranges.tolist() == [[0, 2**20]] * 2


def test_swaps_leave_a_poor_optimum():
    points = blobs().astype(np.float64)
    weights = np.ones(len(points))
    poor = np.array([[90.0, 100], [110, 100], [550, 600]])
    stuck = lloyd_on_cells(points, weights, poor[None], (1000, 1000))[1][0]
    better = swapped(points, weights, poor, (1000, 1000))
    middles = np.array([[100, 100], [700, 300], [400, 900.0]])
    assert sorted(nearest(middles, better)) == [0, 1, 2]
    assert lloyd_on_cells(points, weights, better[None], (1000, 1000))[1][0] < stuck / 5
    one = points.mean(axis=0)[None]
    assert (swapped(points, weights, one, (1000, 1000)) == one).all()


def test_no_path_through_a_tree_costs_more_than_its_budget(monkeypatch):
    exact = _Exact()
    monkeypatch.setattr(kmeans_tree, "discrete_laplace", exact)
    points = skewed_points(2_000, 5, 1)

    def measured(points):
        binned = kmeans_ranges.Binned.of(points, (1024,) * 5)
        exact.calls.clear()
        margins = kmeans_ranges.Margins.even(binned.edges)
        kmeans_tree.measure_tree(binned, margins, 2_000, 3, Fraction(3, 10), None)
        return list(exact.calls)

    monkeypatch.setattr(kmeans_tree, "_ZERO", 0.0)
    whole = measured(points)
    compared = 0
    for record in range(0, 2_000, 100):
        without = measured(np.delete(points, record, axis=0))
        cost = Fraction(0)
        for (values, epsilon, sensitivity), (others, same, _) in zip(whole, without, strict=False):
            if len(values) != len(others) or epsilon != same:
                # Counts released earlier differ, and from here on so may the boxes.
                break
            assert sensitivity == 1
            cost += epsilon * int(np.abs(values - others).sum())
        else:
            compared += 1
            assert cost == Fraction(3, 10)
    assert compared >= 5


def test_a_tree_has_few_leaves_whatever_the_data():
    for n in (0, 1, 40_000):
        points = skewed_points(n, 30, 2)
        binned = kmeans_ranges.Binned.of(points, (1024,) * 30)
        margins = kmeans_ranges.Margins.even(binned.edges)
        for epsilon in (Fraction(1, 10_000), Fraction(10_000)):
            leaves = kmeans_tree.measure_tree(binned, margins, max(n, 1), 3, epsilon, seeded(3))
            assert np.isfinite(leaves.counts).all() and (leaves.counts >= 0).all()
            assert 1 <= len(leaves.counts) <= 4_096


def test_sparse_cells_far_from_the_crowd_are_kept_as_blocks():
    edges = [np.arange(17) * 64] * 2
    rows, columns = np.divmod(np.arange(256), 16)
    counts = np.where((rows >= 8) & (columns >= 8), 3, 0)
    lower = np.stack([rows, columns], axis=1) * 64
    cells = Cells(lower, lower + 64, lower // 64, counts)
    low, high, masses = kmeans_sketch._standing_blocks(cells, edges, Fraction(1))
    assert masses.sum() == counts.sum()
    assert (low >= 512).all() and (high <= 1024).all()
    nothing = cells.select(counts == 0)
    assert len(kmeans_sketch._standing_blocks(nothing, edges, Fraction(1))[2]) == 0


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
        original = getattr(privgene, name)
        monkeypatch.setattr(privgene, name, spy(original))
    # The same seed gives the same candidates in the first round, whatever the points.
    first = []
    for record in range(len(points) + 1):
        ranges.clear()
        rows = np.delete(points, record, axis=0) if record < len(points) else points
        privgene.genetic(make_task(rows, shape, 3, "genetic", n_records=100), rounds=2)
        first.append(ranges[0])
    whole, reach = first[-1]
    for scores, same in first[:-1]:
        assert same == reach
        moved = scores - whole
        assert (moved >= 0).all() and moved.max() <= reach
    assert max((scores - whole).max() for scores, _ in first[:-1]) > reach / 4


def test_genetic_rounds_are_bounded():
    assert genetic_rounds(1e-3, 100) == 8
    assert genetic_rounds(1.0, 100_000) == 12
    assert genetic_rounds(1e4, 10**6) == 30


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
    low, high = sample_aggregate._private_range(task, 0, Fraction(1))
    assert 370 <= low <= 420 and 480 <= high <= 530
    empty = make_task(points[:0], (1000,), 2, "sample-aggregate")
    for _ in range(20):
        low, high = sample_aggregate._private_range(empty, 0, Fraction(1))
        assert 0 <= low <= high <= 999
