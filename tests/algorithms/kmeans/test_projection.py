"""K-means of many columns: a random projection finds clusters, whose means have all columns."""

from fractions import Fraction

import numpy as np
import pytest
from clustered import seeded
from sklearn.cluster import KMeans

from skdp import DPKMeans
from skdp.algorithms.kmeans import projection
from skdp.algorithms.kmeans.lloyd import clipped
from skdp.algorithms.kmeans.projection import MANY_AXES, _measured, _reach, _Rows

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.InsecureSeedWarning")


def mixture(n, d, k, seed, spread=0.1):
    """Gaussian clusters in [-1, 1]^d, and their labels."""
    generator = np.random.default_rng(seed)
    middles = generator.uniform(-0.8, 0.8, (k, d))
    labels = generator.integers(0, k, n)
    return np.clip(middles[labels] + generator.normal(0, spread, (n, d)), -1, 1), labels


def excess(model, X, labels):
    means = np.stack([X[labels == j].mean(axis=0) for j in np.unique(labels)])
    best = KMeans(len(means), init=means, n_init=1).fit(X).inertia_
    return -model.score(X) / best - 1


def test_clusters_of_many_columns_are_found():
    # The tree of boxes, for fewer columns, has an excess of 0.7 with 100 columns like these.
    X, labels = mixture(10_000, 100, 5, 1)
    model = DPKMeans(5, domain=(-1, 1), random_state=0).fit(X)
    assert excess(model, X, labels) < 0.3
    assert model.cluster_counts_.sum() == pytest.approx(len(X), rel=0.05)
    assert model.synopsis_ is None and model.validity_ is None


def test_little_noise_leaves_no_error():
    X, labels = mixture(2_000, 60, 4, 2)
    model = DPKMeans(4, epsilon=1_000, domain=(-1, 1), random_state=0).fit(X)
    assert excess(model, X, labels) < 0.002
    assert np.sort(model.cluster_counts_) == pytest.approx(np.sort(np.bincount(labels)), abs=1)


def test_few_columns_have_a_tree():
    X, _ = mixture(400, MANY_AXES, 2, 6)
    assert DPKMeans(2, domain=(-1, 1), n_init=2).fit(X).synopsis_ is not None


def test_clipped_residuals_keep_to_their_limit():
    generator = np.random.default_rng(8)
    residual = generator.integers(-1_000, 1_000, (500, 7))
    limit = generator.integers(1, 5_000, 500)
    before, length = residual.copy(), np.abs(residual).sum(axis=1)
    clipped(residual, length, limit)
    assert (np.abs(residual).sum(axis=1) <= limit).all()
    assert (residual[length <= limit] == before[length <= limit]).all()
    assert (np.sign(residual) * np.sign(before) >= 0).all()


def test_a_record_changes_one_label_by_its_reach(monkeypatch):
    # Exact sums and counts as they reach the noise, of neighbours.
    seen = []

    def spy(counts, sums, reach, *rest):
        seen.append((counts.copy(), sums.copy(), reach.copy()))
        return noisy(counts, sums, reach, *rest)

    noisy = projection.noisy_sums
    monkeypatch.setattr(projection, "noisy_sums", spy)
    monkeypatch.setattr(projection, "_reach", lambda *rest: np.array([2_000, 3_000, 4_000]))
    points = np.random.default_rng(9).integers(0, 1_000, (60, 5)).astype(np.int32)
    points[0] = 999
    labels = np.arange(60) % 3
    frozen = np.full((3, 5), 100)
    for kept in (slice(None), slice(1, None)):
        rows = _Rows(points[kept], labels[kept], 5_000)
        _measured(rows, frozen, np.full(3, 20.0), Fraction(10_000), seeded(0))
    (counts, sums, reach), (fewer, less, same) = seen
    assert (reach == same).all()
    assert (counts - fewer).tolist() == [1, 0, 0]
    assert (sums - less)[1:].tolist() == [[0] * 5] * 2
    assert 0.9 * reach[0] <= np.abs(sums - less)[0].sum() <= reach[0]


def test_reach_is_a_quantile_of_the_lengths():
    generator = np.random.default_rng(10)
    points = generator.integers(0, 1_000, (4_000, 6)).astype(np.int32)
    labels = generator.integers(0, 2, 4_000)
    points[labels == 1] //= 8
    rows = _Rows(points, labels, 6_000)
    reach = _reach(rows, np.zeros((2, 6), dtype=np.int64), Fraction(1), 0.75, seeded(0))
    lengths = points.sum(axis=1)
    for j in range(2):
        share = (lengths[labels == j] <= reach[j]).mean()
        # Bins are an eighth wide, and the reach is the end of one.
        assert 0.74 < share < 0.97


def test_fewer_clusters_are_found_where_noise_would_hide_more():
    rows = np.random.default_rng(0).uniform(0.5, 0.9, (400, 60))
    model = DPKMeans(5, epsilon=1, domain=(0, 1), random_state=0).fit(rows)
    assert model.cluster_centers_.shape == (5, 60) and model.n_clusters_ == 5
    # All repeat one, to which all rows belong.
    assert (model.cluster_centers_ == model.cluster_centers_[0]).all()
    assert not model.predict(rows).any() and not model.cluster_counts_[1:].any()
