"""Kernels of private k-means: grids, k-means on what is released, rounds, and what they spend."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.cluster import KMeans

from skdp._random import noise_source, sampling_generator
from skdp.algorithms.kmeans import auto as kmeans_auto
from skdp.algorithms.kmeans import auto as kmeans_sketch
from skdp.algorithms.kmeans import dplloyd, genetic, lloyd
from skdp.algorithms.kmeans import grid as eugkm
from skdp.algorithms.kmeans import lloyd as kmeans_rows
from skdp.algorithms.kmeans import sketch as kmeans_cells
from skdp.algorithms.kmeans import sketch as kmeans_ranges
from skdp.algorithms.kmeans import sketch as kmeans_tree
from skdp.algorithms.kmeans import task as kmeans_task
from skdp.algorithms.kmeans.algorithms import ALGORITHMS, algorithm_parts
from skdp.algorithms.kmeans.dplloyd import lloyd_rounds
from skdp.algorithms.kmeans.genetic import block_centroids, genetic_rounds
from skdp.algorithms.kmeans.grid import hybrid_share
from skdp.algorithms.kmeans.lloyd import (
    best_kmeans,
    kmeans_plus_plus,
    lloyd_on_cells,
    nearest,
    nearest_distances,
    noisy_round,
    ray_turi,
    sphere_packing,
    swapped,
    validity,
)
from skdp.algorithms.kmeans.sketch import Cells, cover, full_grid_edges, grid_edges, measure_cells
from skdp.algorithms.kmeans.task import Task
from skdp.exceptions import InsecureSeedWarning
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


def test_validity_is_its_formula_and_least_for_the_true_number():
    points = blobs().astype(np.float64)
    weights = np.ones(len(points))
    found = {}
    for k in range(2, 7):
        fitted = KMeans(k, n_init=5, random_state=0).fit(points)
        found[k] = validity(points, weights, fitted.cluster_centers_)
        whole = ((points - points.mean(axis=0)) ** 2).sum()
        assert found[k] == pytest.approx(fitted.inertia_ / whole * k**1.15)
    assert min(found, key=lambda k: found[k]) == 3
    assert validity(points, -weights, points[:2]) == math.inf
    assert validity(points[:1], weights[:1], points[:2]) == math.inf


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
@pytest.mark.parametrize(
    ("algorithm", "shape"), [*((each, COORDINATES) for each in ALGORITHMS), ("auto", (2**20,) * 4)]
)
def test_every_algorithm_spends_exactly_its_budget(
    monkeypatch, algorithm, shape, epsilon, n_records
):
    spent = []
    k = 3
    points = points_in(COORDINATES[:1] * len(shape), 500, 6)
    task = make_task(points, shape, k, algorithm, epsilon, n_records=n_records)

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
    patch(genetic, "discrete_laplace", noise_cost)
    patch(genetic, "noisy_max", lambda scores, epsilon, reach, **kwargs: epsilon)
    patch(genetic, "top_k", lambda scores, k, epsilon, reach, **kwargs: epsilon)
    patch(eugkm, "measure_cells", grid_cost)
    patch(kmeans_sketch, "measure_cells", grid_cost)
    patch(kmeans_sketch, "measure_tree", lambda binned, margins, n, k, epsilon, source: epsilon)
    patch(kmeans_sketch, "measure_margins", lambda binned, margins, n, epsilon, source: epsilon)
    find_ranges = kmeans_sketch.find_ranges

    def ranges_recorded(*args):
        found = find_ranges(*args)
        spent.append(found[1])
        return found

    monkeypatch.setattr(kmeans_sketch, "find_ranges", ranges_recorded)
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


def even_margins(shape, units=80.0):
    """Margins of whole axes in bins of 64 with so many units of noise."""
    whole = np.array([[0, size] for size in shape])
    return kmeans_ranges.Margins.even(shape, whole, units)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_divides_the_box_and_its_exact_counts_are_true(monkeypatch, weighted):
    exact = _Exact()
    monkeypatch.setattr(kmeans_tree, "discrete_laplace", exact)
    monkeypatch.setattr(kmeans_ranges, "discrete_laplace", exact)
    monkeypatch.setattr(kmeans_tree, "_ZERO", 0.0)
    points = skewed_points(3_000, 4, 0)
    margins = even_margins((1024,) * 4)
    binned = kmeans_ranges.Binned.of(points, margins.edges)
    if weighted:
        bins, counts = np.unique(binned.bins, axis=0, return_counts=True)
        binned = kmeans_ranges.Binned(bins, counts, binned.edges)
    margins = kmeans_ranges.measure_margins(binned, margins, 3_000, Fraction(1), None)
    assert all(mass.sum() == pytest.approx(1) for mass in margins.masses)
    assert sum(cost for _, cost, _ in exact.calls) == 1
    leaves = kmeans_tree.measure_tree(binned, margins, 3_000, 3, Fraction(1), None)
    bins = kmeans_ranges.Binned.of(points, margins.edges).bins
    inside = (leaves.lower[None] <= bins[:, None]) & (bins[:, None] < leaves.upper[None])
    inside = inside.all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert np.prod(leaves.upper - leaves.lower, axis=1).sum() == 64**4
    assert 20 < len(leaves.counts) < 1_000
    np.testing.assert_allclose(leaves.counts, inside.sum(axis=0), atol=1e-6)


class _Best:
    """In place of a selection: the best score, and all scores and costs."""

    def __init__(self):
        self.calls = []

    def __call__(self, scores, epsilon, score_range, *, random_state=None):
        self.calls.append((np.array(scores), epsilon, score_range))
        return int(np.argmax(scores))


def test_ranges_of_wide_axes_are_found_for_what_is_said_to_be_spent(monkeypatch):
    size, n = 2**20, 20_000
    generator = np.random.default_rng(5)
    points = np.empty((n, 4), dtype=np.int32)
    # One axis is tight, one ten and one a thousand times too wide, one has a single value.
    points[:, 0] = generator.integers(0, size, n)
    points[:, 1] = size // 3 + generator.integers(0, size // 10, n)
    points[:, 2] = size // 5 + generator.integers(0, size // 1000, n)
    points[:, 3] = 777
    spec = (size,) * 4, n, Fraction(1, 2)
    best, look = _Best(), _Exact()
    monkeypatch.setattr(kmeans_ranges, "noisy_max", best)
    monkeypatch.setattr(kmeans_ranges, "discrete_laplace", look)
    found, spent = kmeans_ranges.find_ranges(points, *spec, None)
    ((largest, price, sensitivity),) = look.calls
    # A single value: all records are in a short interval.
    assert largest.tolist() == [n] and sensitivity == 1 and price == Fraction(20, n)
    assert price + sum(epsilon for _, epsilon, _ in best.calls) == spent <= Fraction(3, 10)
    widths = found[:, 1] - found[:, 0]
    assert widths[0] == size
    assert ((found[1:, 0] <= points[:, 1:]) & (points[:, 1:] < found[1:, 1])).all()
    assert widths[1] < size / 5 and widths[2] < size / 200 and widths[3] < size / 200
    # One record more lowers or raises no score of a selection by more than one against another.
    fewer = _Best()
    monkeypatch.setattr(kmeans_ranges, "noisy_max", fewer)
    kmeans_ranges.find_ranges(points[:-1], *spec, None)
    assert look.calls[1][0].tolist() == [n - 1]
    assert len(fewer.calls) == len(best.calls) > 6
    for (scores, _, reach), (others, _, _) in zip(best.calls, fewer.calls, strict=True):
        assert reach == 1 and np.ptp(scores - others) == 1


def test_ranges_cost_nothing_where_noise_would_decide(monkeypatch):
    best = _Best()
    monkeypatch.setattr(kmeans_ranges, "noisy_max", best)
    points = np.full((200, 2), 5, dtype=np.int32)
    for n in (-40.0, 1, 200):
        found, spent = kmeans_ranges.find_ranges(points, (2**20,) * 2, n, Fraction(1, 6), None)
        assert found.tolist() == [[0, 2**20]] * 2 and spent == 0 and not best.calls


def test_tight_bounds_cost_one_look(monkeypatch):
    best = _Best()
    monkeypatch.setattr(kmeans_ranges, "noisy_max", best)
    size, n = 2**20, 20_000
    points = np.random.default_rng(6).integers(0, size, (n, 10)).astype(np.int32)
    spec = (size,) * 10, n, Fraction(1, 2)
    found, spent = kmeans_ranges.find_ranges(points, *spec, seeded(4))
    assert found.tolist() == [[0, size]] * 10 and spent == Fraction(20, n) and not best.calls


def test_clipping_moves_no_mean_of_a_grid():
    """A round corrects a cloud that is right already by no more than the noise."""
    generator = np.random.default_rng(12)
    # Most records are near a centre, and some far away on one side, where they are clipped.
    values = np.concatenate([generator.normal(300, 5, (9_000, 2)), np.full((1_000, 2), 800.0)])
    points = np.rint(values).astype(np.int32)
    task = make_task(points, (1_000, 1_000), 1)
    center = points.mean(axis=0)[None]
    for fine, near in ((True, 2.0), (False, 1_000.0)):
        cloud = kmeans_sketch._Cloud(points.astype(np.float64), np.ones(len(points)), fine)
        moved = np.abs(kmeans_sketch._round(task, cloud, center, Fraction(1_000)).means - center)
        assert moved.max() < near
        assert fine or moved.max() > 10


def test_ranges_seldom_lose_records():
    """Selected with noise: bounds that are not wide stay, and wide ones become narrow."""
    generator = np.random.default_rng(10)
    size, n = 2**20, 5_000
    lost, wide = {1: [], 12: []}, {1: [], 12: []}
    source = seeded(2)
    for factor in lost:
        for _ in range(40):
            middles = generator.uniform(0.1, 0.9, 5)
            values = middles[generator.integers(0, 5, n)] + generator.normal(0, 0.03, n)
            start = generator.uniform(0, 1 - 1 / factor)
            points = np.clip((values / factor + start) * size, 0, size - 1).astype(np.int32)
            # A selection gets 40 units of noise.
            budget = Fraction(800, n)
            found, _ = kmeans_ranges.find_ranges(points[:, None], (size,), n, budget, source)
            low, high = found[0]
            lost[factor].append(1 - ((points >= low) & (points < high)).mean())
            wide[factor].append((high - low) / (points.max() - points.min()))
    assert np.mean(lost[1]) < 0.02 and np.mean(lost[12]) < 0.06
    assert np.median(wide[12]) < 2.5


def test_margins_are_exact_without_noise_and_even_where_noise_hides_them(monkeypatch):
    points = skewed_points(20_000, 1, 3)
    margins = even_margins((1024,))
    binned = kmeans_ranges.Binned.of(points, margins.edges)
    noisy = kmeans_ranges.measure_margins(binned, margins, 20_000, Fraction(1, 1_000), seeded(1))
    below = np.cumsum(noisy.masses[0]) - np.cumsum(binned.margin(0)) / 20_000
    assert 1e-4 < np.abs(below).max() < 0.7
    exact = _Exact()
    monkeypatch.setattr(kmeans_ranges, "discrete_laplace", exact)
    found = kmeans_ranges.measure_margins(binned, margins, 20_000, Fraction(10), None)
    ((values, epsilon, sensitivity),) = exact.calls
    assert epsilon == 10 and sensitivity == 1
    np.testing.assert_allclose(found.masses[0], 0.98 * values / 20_000 + 0.02 / 64, atol=1e-4)


def test_a_tree_has_boxes_of_their_own_beyond_the_ranges():
    size, n = 2**20, 20_000
    generator = np.random.default_rng(8)
    points = (size // 2 + generator.integers(0, size // 50, (n, 2))).astype(np.int32)
    points[:200] = size // 2 + size // 20 + generator.integers(0, size // 500, (200, 2))
    ranges = np.array([[size // 2, size // 2 + size // 50]] * 2)
    margins = kmeans_ranges.Margins.even((size,) * 2, ranges, 80.0)
    assert margins.ranges.tolist() == ranges.tolist()
    for edge, mass in zip(margins.edges, margins.masses, strict=True):
        assert edge[0] == 0 and edge[-1] == size and (np.diff(edge) > 0).all()
        assert mass.sum() == pytest.approx(1) and (mass > 0).all()
    binned = kmeans_ranges.Binned.of(points, margins.edges)
    for axis, edge in enumerate(margins.edges):
        at = binned.bins[:, axis]
        assert ((edge[at] <= points[:, axis]) & (points[:, axis] < edge[at + 1])).all()
    leaves = kmeans_tree.measure_tree(binned, margins, n, 3, Fraction(1), seeded(4))
    volume = np.prod(leaves.upper - leaves.lower, axis=1).sum()
    assert volume == math.prod(len(edge) - 1 for edge in margins.edges)
    beyond = (leaves.lower >= margins.cores[:, 1]).any(axis=1)
    assert leaves.counts[beyond].sum() == pytest.approx(200, abs=60)
    small = leaves.counts * beyond > 20
    wide = margins.edges[0][leaves.upper[small, 0]] - margins.edges[0][leaves.lower[small, 0]]
    assert (wide < size // 20).any()


def test_a_grid_of_ranges_covers_the_box_and_uses_its_own_cells_only(monkeypatch):
    shape, ranges = (2**20, 2**20), np.array([[400, 500], [2**20 - 100, 2**20]])
    points = (ranges[:, 0] + points_in((100, 100), 5_000, 9)).astype(np.int32)
    points[:50] = 2**19
    task = make_task(points, shape)
    monkeypatch.setattr(kmeans_sketch, "TUNING", replace(kmeans_sketch.TUNING, most_cells=100))
    sketch = kmeans_sketch._grid_sketch(task, 5_000, ranges, EXACT, Fraction(0))
    edges = sketch.release.edges
    assert set(range(400, 501, 10)) <= set(edges[0].tolist()) and len(edges[0]) < 120
    assert set(range(2**20 - 100, 2**20 + 1, 10)) <= set(edges[1].tolist())
    assert sketch.release.cells.counts.sum() == 5_000
    # Records beyond the ranges are counted in wide cells.
    inside = ((sketch.cloud.points > ranges[:, 0] - 1) & (sketch.cloud.points < ranges[:, 1])).all(
        1
    )
    assert sketch.cloud.weights[inside].sum() == pytest.approx(4_950, rel=0.01)


def test_lone_noisy_cells_of_an_empty_table_are_seldom_kept():
    kept = 0
    for seed in range(20):
        task = make_task(np.empty((0, 2), dtype=np.int32), (2**20,) * 2, seed=seed)
        sketch = kmeans_sketch.grid_sketch(task, 4_000, Fraction(1))
        kept += len(sketch.masses)
    assert kept <= 2


def test_small_clusters_beside_large_ones_are_found():
    """Three clusters of 5,000 records and six of 150: every small one has a centroid."""
    generator = np.random.default_rng(4)
    middles = np.array([[i, j] for i in range(3) for j in range(3)]) * 300_000 + 200_000
    labels = np.repeat(np.arange(9), [5_000] * 3 + [150] * 6)
    points = (middles[labels] + generator.normal(0, 10_000, (len(labels), 2))).astype(np.int32)
    for seed in range(3):
        centroids = kmeans_auto.auto(make_task(points, (2**20,) * 2, 9, seed=seed)).centroids
        away = np.sqrt(((middles[:, None] - centroids) ** 2).sum(axis=2).min(axis=1))
        assert (away < 100_000).all()


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
        margins = even_margins((1024,) * 5)
        binned = kmeans_ranges.Binned.of(points, margins.edges)
        exact.calls.clear()
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
        margins = even_margins((1024,) * 30)
        binned = kmeans_ranges.Binned.of(points, margins.edges)
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
    low, high, masses = kmeans_sketch._standing_blocks(cells, edges, Fraction(1), 5.0)
    assert masses.sum() == counts.sum()
    assert (low >= 512).all() and (high <= 1024).all()
    nothing = cells.select(counts == 0)
    assert len(kmeans_sketch._standing_blocks(nothing, edges, Fraction(1), 5.0)[2]) == 0


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
        original = getattr(genetic, name)
        monkeypatch.setattr(genetic, name, spy(original))
    # The same seed gives the same candidates in the first round, whatever the points.
    first = []
    for record in range(len(points) + 1):
        ranges.clear()
        rows = np.delete(points, record, axis=0) if record < len(points) else points
        genetic.genetic(make_task(rows, shape, 3, "genetic", n_records=100), rounds=2)
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
    low, high = genetic._private_range(task, 0, Fraction(1))
    assert 370 <= low <= 420 and 480 <= high <= 530
    empty = make_task(points[:0], (1000,), 2, "sample-aggregate")
    for _ in range(20):
        low, high = genetic._private_range(empty, 0, Fraction(1))
        assert 0 <= low <= high <= 999
