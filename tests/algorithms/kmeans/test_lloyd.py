"""Assignment, starts and indices of k-means, and the noise of a private round."""

import math
from fractions import Fraction

import numpy as np
import pytest
from boxed import Recorder
from clustered import points_in, seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from skdp.algorithms.kmeans import lloyd
from skdp.algorithms.kmeans.lloyd import (
    best_kmeans,
    kmeans_plus_plus,
    lloyd_on_cells,
    nearest,
    nearest_distances,
    noisy_round,
    ray_turi,
    validity,
)

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
    assert np.concatenate([nearest(point[None], centroids) for point in points]).tolist() == truth
    monkeypatch.setattr(lloyd, "BLOCK", 200)
    assert nearest(points, centroids).tolist() == truth


def test_distances_of_candidate_sets_are_exact(monkeypatch):
    monkeypatch.setattr(lloyd, "BLOCK", 300)
    points = points_in((1024, 300), 100, 2)
    candidates = np.random.default_rng(3).integers(0, 300, size=(7, 4, 2))
    apart = ((points[:, None, None].astype(int) - candidates) ** 2).sum(axis=3).min(axis=2)
    assert nearest_distances(points, candidates).tolist() == apart.sum(axis=0).tolist()


# --- k-means on released points


def blobs(seed=0):
    generator = np.random.default_rng(seed)
    middles = np.array([[100, 100], [700, 300], [400, 900.0]])
    return np.clip(
        np.concatenate([generator.normal(m, 40, size=(200, 2)) for m in middles]), 0, 999
    ).astype(np.int32)


def test_lloyd_on_cells_is_lloyd_and_the_best_start_wins():
    points = blobs().astype(np.float64)
    weights = np.random.default_rng(1).integers(1, 5, size=len(points)).astype(np.float64)
    starts = np.stack([points[[0, 1, 2]], points[[0, 250, 500]], points[[0, 250, 260]]])
    centroids, costs = lloyd_on_cells(points, weights, starts, (1000, 1000), 100)
    for start, found, cost in zip(starts, centroids, costs, strict=True):
        reference = KMeans(3, init=start, n_init=1, tol=0).fit(points, sample_weight=weights)
        np.testing.assert_allclose(found, reference.cluster_centers_, rtol=1e-6)
        assert cost == pytest.approx(reference.inertia_)
    many = np.concatenate([starts[[0] * 20], starts, starts[[0] * 20]])
    _, cost = best_kmeans(points, weights, many, (1000, 1000))
    assert cost == pytest.approx(min(costs))


def test_lloyd_on_signed_cells_ends_inside_the_box():
    generator = np.random.default_rng(2)
    points, starts = generator.random((500, 3)) * 99, generator.random((8, 4, 3)) * 99
    weights = generator.normal(0, 1, 500)
    centroids, costs = lloyd_on_cells(points, weights, starts, (100,) * 3)
    assert np.isfinite(costs).all() and (centroids >= 0).all() and (centroids <= 99).all()
    # A cluster without positive weight stays where it was.
    stuck, _ = lloyd_on_cells(points, -np.ones(500), starts, (100,) * 3)
    assert (stuck == starts).all()


def test_greedy_starts_take_each_blob_and_nothing_negative():
    points = blobs().astype(np.float64)
    weights = np.ones(len(points))
    weights[:200] = -3
    generator = np.random.default_rng(3)
    assert (kmeans_plus_plus(points, weights, 2, 30, generator)[:, :, 0] > 250).all()
    three = kmeans_plus_plus(points, np.ones(len(points)), 3, 30, generator)
    assert all(len(set(nearest(start, points[[0, 250, 450]]))) == 3 for start in three)
    assert kmeans_plus_plus(points, np.zeros(len(points)), 4, 2, generator).shape == (2, 4, 2)


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
    # Labels that were released before, or the nearest centroids.
    given = generator.integers(0, k, 30) if data.draw(st.booleans()) else None
    exact = []
    for first in (0, 1):
        rows, labels = points[first:], None if given is None else given[first:]
        recorder = Recorder()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lloyd, "discrete_laplace", recorder)
            noisy_round(rows, centroids, reach, Fraction(1), Fraction(1), None, labels)
        assert recorder.calls[0][2] == 1
        assert [call[2] for call in recorder.calls[1:]] == reach.tolist()
        exact.append((recorder.calls[0][0], np.array([call[0] for call in recorder.calls[1:]])))
    counts, sums = exact[0][0] - exact[1][0], exact[0][1] - exact[1][1]
    assert sorted(counts.tolist()) == [0] * (k - 1) + [1]
    mine = int(counts.argmax())
    assert given is None or given[0] == mine
    assert (np.delete(sums, mine, axis=0) == 0).all()
    residual = points[0] - centroids[mine]
    length = int(np.abs(residual).sum())
    assert np.abs(sums[mine]).sum() <= min(length, reach[mine])
    if length <= reach[mine]:
        assert (sums[mine] == residual).all()
    else:
        assert np.abs(sums[mine]).sum() > reach[mine] - d


@given(st.integers(0, 2**32 - 1), st.integers(4, 8))
def test_a_record_moves_a_round_between_ends_by_what_its_noise_covers(seed, d):
    # Axes of any width, records and centroids at the corners of the box among others.
    generator = np.random.default_rng(seed)
    low = generator.integers(-(2**20), 2**20, d)
    ends = np.stack([low, low + 2 ** generator.integers(0, 21, d) - 1])
    points, centroids = (
        np.where(generator.random((n, d)) < 0.5, ends[generator.integers(2, size=n)], mixed)
        for n in (9, 3)
        for mixed in [generator.integers(ends[0], ends[1] + 1, (n, d))]
    )
    reach = generator.integers(1, (ends[1] - ends[0]).sum() + 2, 3)
    labels, calls = generator.integers(0, 3, 9), []
    for first in (0, 1):
        both = {"discrete_laplace": Recorder(), "max_norm_noise": Recorder()}
        with pytest.MonkeyPatch.context() as patch:
            for name, recorder in both.items():
                patch.setattr(lloyd, name, recorder)
            parts = (Fraction(1), Fraction(1), None)
            noisy_round(points[first:], centroids, reach, *parts, labels[first:], ends)
        calls.append([each.calls for each in both.values()])
    for sizes, *pairs in zip((np.sum, np.max), *calls, strict=True):
        for (one, _, most, *_), (other, _, same, *_) in zip(*pairs, strict=True):
            assert sizes(np.abs(one - other)) <= most == same


def test_noise_of_a_round_has_the_variance_it_states():
    k, nobody = 400, np.empty((0, 20), dtype=np.int32)
    reach = np.repeat([1000, 10], k // 2)
    centroids = np.zeros((k, 20), dtype=np.int64)
    measured = noisy_round(nobody, centroids, reach, Fraction(1, 5), Fraction(2), seeded(1))
    stated = (measured.count_variance, measured.sum_variances[0], measured.sum_variances[-1])
    assert stated == pytest.approx((50, 2 * 500**2, 2 * 5**2), rel=0.01)
    found = (measured.counts, measured.sums[: k // 2], measured.sums[k // 2 :])
    # The standard error of the variance of 400 draws is 11%, of those of 4,000 3.5%.
    for values, variance, slack in zip(found, stated, (0.4, 0.15, 0.15), strict=True):
        assert values.var() == pytest.approx(variance, rel=slack)
