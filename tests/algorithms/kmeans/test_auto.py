"""The default algorithm of k-means: clipping, grids of ranges, cells that are kept, projections."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from clustered import EXACT, make_task, points_in, seeded
from sklearn.cluster import KMeans

from skdp import DPKMeans
from skdp.algorithms.kmeans import auto as kmeans_sketch
from skdp.algorithms.kmeans.auto import MANY_AXES, _reach_within, _Rows


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
        moved = np.abs(kmeans_sketch._round(task, cloud, center, Fraction(1_000))[0].means - center)
        assert moved.max() < near
        assert fine or moved.max() > 10


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


# ------------------------------------------------------------------------------------------------
# Many columns.


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


def test_reach_is_a_quantile_of_the_lengths():
    generator = np.random.default_rng(10)
    points = generator.integers(0, 1_000, (4_000, 6)).astype(np.int32)
    labels = generator.integers(0, 2, 4_000)
    points[labels == 1] //= 8
    rows = _Rows(points, labels, 6_000)
    reach = _reach_within(rows, np.zeros((2, 6), dtype=np.int64), Fraction(1), 0.75, seeded(0))
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


def test_a_cell_beside_others_holds_records_more_likely_than_one_alone():
    counts = np.zeros((20, 20), dtype=np.int64)
    counts[2:4, 2:4] = counts[10, 10] = 80
    # Clusters that are as large as these are small, and counts as extreme as noise may make them.
    for large in (10_000, 10**15):
        counts[15:17, 15:17], counts[0, 19] = large, -large
        chances = kmeans_sketch._chances(counts.ravel(), [np.arange(21)] * 2, 0.1).reshape(20, 20)
        assert (chances[2:4, 2:4] > 0.5).all() and (chances[15:17, 15:17] > 0.999).all()
        assert chances[10, 10] < 0.5 * chances[2, 2] and chances[18, 3] < 0.01
