"""The default algorithm of k-means: clipping, grids of ranges, and cells that are kept."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from clustered import EXACT, make_task, points_in

from skdp.algorithms.kmeans import auto as kmeans_sketch


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
