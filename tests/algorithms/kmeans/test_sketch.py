"""Grids, trees, margins and ranges from which k-means starts, and what they cost."""

import math
from fractions import Fraction

import numpy as np
import pytest
from boxed import Recorder
from clustered import EXACT, points_in, seeded
from grids import Chooser
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp.algorithms.kmeans import sketch
from skdp.algorithms.kmeans.sketch import cover, full_grid_edges, grid_edges, measure_cells
from skdp.release import Boxes

# --- grids


@settings(max_examples=60)
@given(st.lists(st.integers(1, 2**20), min_size=1, max_size=32), st.floats(1, 2e5))
def test_grids_cover_the_box_and_stay_small(shape, n_cells):
    for edges in (full_grid_edges(shape, n_cells), grid_edges(shape, min(n_cells, 64))):
        assert [(edge[0], edge[-1]) for edge in edges] == [(0, size) for size in shape]
        assert all((np.diff(edge) > 0).all() for edge in edges)
    total = math.prod(len(edge) - 1 for edge in full_grid_edges(shape, n_cells))
    assert min(math.prod(shape), n_cells) * 0.999 <= total <= 2 ** len(shape) * max(n_cells, 1)
    # As in the published runs.
    assert [len(edge) - 1 for edge in full_grid_edges((2**20, 2**20), 500)] == [23, 22]


@over("at_once", [2**18, 7])
def test_cells_hold_the_points_and_no_cell_is_missed(monkeypatch, at_once):
    monkeypatch.setattr(sketch, "_CELLS_AT_ONCE", at_once)
    points = points_in((30, 17, 1), 400, 4)
    edges = full_grid_edges((30, 17, 1), 20)
    truth = np.histogramdd(points, bins=[np.asarray(edge) - 0.5 for edge in edges])[0].astype(int)
    cells = measure_cells(points, edges, EXACT, None, seeded(0))
    assert len(cells.counts) == truth.size
    assert (cells.counts.reshape(truth.shape) == truth).all()
    assert (cells.upper > cells.lower).all()
    kept = measure_cells(points, edges, EXACT, 20, seeded(0))
    assert kept.counts.tolist() == truth[truth >= 20].tolist()
    assert len(np.unique(kept.places, axis=0)) == len(kept.counts)


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


def skewed_points(n, d, seed):
    values = np.random.default_rng(seed).exponential(60, size=(n, d))
    return np.minimum(values, 1023).astype(np.int32)


def even_margins(shape, units=80.0):
    """Margins of whole axes in bins of 64 with so many units of noise."""
    whole = np.array([[0, size] for size in shape])
    return sketch.Margins.even(shape, whole, units)


def test_a_tree_divides_the_box_and_its_exact_counts_are_true(monkeypatch):
    exact = Recorder()
    monkeypatch.setattr(sketch, "discrete_laplace", exact)
    monkeypatch.setattr(sketch, "_ZERO", 0.0)
    points = skewed_points(3_000, 4, 0)
    margins = even_margins((1024,) * 4)
    bins = sketch.bins_of(points, margins.edges)
    margins = sketch.measure_margins(bins, margins, 3_000, Fraction(1), None)
    assert all(mass.sum() == pytest.approx(1) for mass in margins.masses)
    assert sum(cost for _, cost, _ in exact.calls) == 1
    leaves = sketch.measure_tree(bins, margins, 3_000, 3, Fraction(1), None)
    inside = (leaves.lower[None] <= bins[:, None]) & (bins[:, None] < leaves.upper[None])
    inside = inside.all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert np.prod(leaves.upper - leaves.lower, axis=1).sum() == 64**4
    assert 20 < len(leaves.counts) < 1_000
    np.testing.assert_allclose(leaves.counts, inside.sum(axis=0), atol=1e-6)


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
    best, look = Chooser(), Recorder()
    monkeypatch.setattr(sketch, "noisy_max", best)
    monkeypatch.setattr(sketch, "discrete_laplace", look)
    found, spent = sketch.find_ranges(points, *spec, None)
    ((largest, price, sensitivity),) = look.calls
    # A single value: all records are in a short interval.
    assert largest.tolist() == [n] and sensitivity == 1 and price == Fraction(20, n)
    assert price + sum(epsilon for _, epsilon, _ in best.calls) == spent <= Fraction(3, 10)
    widths = found[:, 1] - found[:, 0]
    assert widths[0] == size
    assert ((found[1:, 0] <= points[:, 1:]) & (points[:, 1:] < found[1:, 1])).all()
    assert widths[1] < size / 5 and widths[2] < size / 200 and widths[3] < size / 200
    # One record more lowers or raises no score of a selection by more than one against another.
    fewer = Chooser()
    monkeypatch.setattr(sketch, "noisy_max", fewer)
    sketch.find_ranges(points[:-1], *spec, None)
    assert look.calls[1][0].tolist() == [n - 1]
    assert len(fewer.calls) == len(best.calls) > 6
    for (scores, _, reach), (others, _, _) in zip(best.calls, fewer.calls, strict=True):
        assert reach == 1 and np.ptp(scores - others) == 1
    # Where noise would decide, ranges cost nothing.
    best.calls.clear()
    monkeypatch.setattr(sketch, "noisy_max", best)
    few = np.full((200, 2), 5, dtype=np.int32)
    for records in (-40.0, 1, 200):
        found, spent = sketch.find_ranges(few, (size,) * 2, records, Fraction(1, 6), None)
        assert found.tolist() == [[0, size]] * 2 and spent == 0 and not best.calls


def test_margins_are_those_of_the_records_and_a_little_everywhere(monkeypatch):
    points = skewed_points(20_000, 1, 3)
    margins = even_margins((1024,))
    monkeypatch.setattr(sketch, "discrete_laplace", exact := Recorder())
    bins = sketch.bins_of(points, margins.edges)
    found = sketch.measure_margins(bins, margins, 20_000, Fraction(10), None)
    ((values, epsilon, sensitivity),) = exact.calls
    assert epsilon == 10 and sensitivity == 1
    np.testing.assert_allclose(found.masses[0], 0.98 * values / 20_000 + 0.02 / 64, atol=1e-4)


@over("seed", range(5))
def test_margins_see_clusters_beyond_the_range_and_no_noise_there(seed):
    """Most records have nearly one value: the range is around it, and a twentieth are far away."""
    points = np.random.default_rng(seed).normal(300, 2, (10_000, 1)).astype(np.int32)
    points[:500] = 1000
    margins = sketch.Margins.even((1024,), np.array([[280, 320]]), 80.0)
    bins = sketch.bins_of(points, margins.edges)
    [found] = sketch.measure_margins(bins, margins, 10_000, Fraction(1, 4), seeded(seed)).masses
    beyond = {1000: 0.05, 100: 0.0, 600: 0.0}
    at = np.searchsorted(margins.edges[0], list(beyond), side="right") - 1
    np.testing.assert_allclose(found[at], [*beyond.values()], atol=0.005)
