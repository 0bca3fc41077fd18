"""The default algorithm of k-means in many columns: projections."""

import numpy as np
import pytest
from loops import over
from sklearn.cluster import KMeans

from skdp import DPKMeans
from skdp.algorithms.kmeans.auto import _chances

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


@over("n, d, epsilon, most", [(10_000, 100, 1, 0.3), (2_000, 60, 1_000, 0.002)])
def test_clusters_of_many_columns_are_found(n, d, epsilon, most):
    # The tree of boxes, for fewer columns, has an excess of 0.7 with 100 columns like these.
    X, labels = mixture(n, d, 5, 1)
    model = DPKMeans(5, epsilon=epsilon, domain=(-1, 1), random_state=0).fit(X)
    assert excess(model, X, labels) < most
    sizes = np.sort(np.bincount(labels))
    assert np.sort(model.cluster_counts_) == pytest.approx(sizes, rel=max(most, 0.05))
    assert model.synopsis_ is None and model.validity_ is None


def test_fewer_clusters_are_found_where_noise_would_hide_more():
    rows = np.random.default_rng(0).uniform(0.5, 0.9, (400, 60))
    model = DPKMeans(5, epsilon=1, domain=(0, 1), random_state=0).fit(rows)
    assert model.cluster_centers_.shape == (5, 60) and model.n_clusters_ == 5
    # All repeat one, to which all rows belong.
    assert (model.cluster_centers_ == model.cluster_centers_[0]).all()
    assert not model.predict(rows).any() and not model.cluster_counts_[1:].any()


def test_one_center_loses_little_where_noise_hides_more():
    # Values at the ends of their ranges, of different widths: records times epsilon are 150 and 25.
    ends = np.random.default_rng(0).choice([0.0, 1.0], (1_500, 30), p=[0.8, 0.2])
    ends[:, 0] *= 0.1
    domain = [(0, 0.1), *[(0, 1)] * 29]
    for epsilon, most in ((0.1, 1.1), (1 / 60, 1.8)):
        of_noise = []
        for seed in range(5):
            model = DPKMeans(4, epsilon=epsilon, domain=domain, random_state=seed).fit(ends)
            assert (model.cluster_centers_ == model.cluster_centers_[0]).all()
            assert model.synopsis_ is None
            of_noise.append(-model.score(ends) / ((ends - ends.mean(axis=0)) ** 2).sum())
        # Laplace noise has six times the variance: 1.5 and more. The middle of the box has 1.6.
        assert np.mean(of_noise) < most


def test_a_cell_beside_others_holds_records_more_likely_than_one_alone():
    counts = np.zeros((20, 20), dtype=np.int64)
    counts[2:4, 2:4] = counts[10, 10] = 80
    # Clusters that are as large as these are small, and counts as extreme as noise may make them.
    for large in (10_000, 10**15):
        counts[15:17, 15:17], counts[0, 19] = large, -large
        chances = _chances(counts.ravel(), [np.arange(21)] * 2, 0.1).reshape(20, 20)
        assert (chances[2:4, 2:4] > 0.5).all() and (chances[15:17, 15:17] > 0.999).all()
        assert chances[10, 10] < 0.5 * chances[2, 2] and chances[18, 3] < 0.01
