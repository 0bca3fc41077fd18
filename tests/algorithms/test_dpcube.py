"""The kd-trees of DPCube, and usefulness: kernels against brute force, fused counts, errors."""

import math
from fractions import Fraction

import numpy as np
import pytest
from boxed import Recorder, as_table, dense_tables, quieted, slices
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp._validation import dyadic_floor
from skdp.algorithms import dpcube
from skdp.algorithms.dpcube import (
    hierarchical_kdtree,
    hierarchical_parts,
    kd_boxes,
    two_step_kdtree,
    two_step_parts,
)
from skdp.hierarchy import Tree, gblue
from skdp.inspection import sufficient_epsilon, usefulness
from skdp.mechanisms import discrete_laplace, discrete_laplace_variance


def assert_exact(view, cells):
    """Its boxes hold each cell once, and its counts are theirs."""
    exact, seen = [], np.zeros(cells.shape, dtype=int)
    for box in zip(view.lower, view.upper, strict=True):
        seen[slices(*box)] += 1
        exact.append(cells[slices(*box)].sum())
    assert (seen == 1).all()
    np.testing.assert_allclose(view.counts, exact, atol=1e-9)


# --- kd-tree: boxes of a noisy histogram


def kd_by_recursion(cells, epsilon, xi0, xi1, corrected, measure, lower, upper):
    block = cells[slices(lower, upper)].astype(float)
    n = block.size
    r = math.exp(-float(dyadic_floor(epsilon)))
    if measure == "deviation":
        uneven = np.abs(block - block.sum() / n).sum() - corrected * n * 2 * r / (1 - r**2)
    else:
        kept = block[block > 0]
        uneven = (kept * np.log(kept / (kept.sum() / n))).sum()
        mean = max(block.sum() / n, 0)
        uneven -= corrected * n * dpcube._entropy_noise(np.array(mean), epsilon)
    heavy = block.sum()
    if n == 1 or not (uneven > xi1 or heavy > xi0):
        return [(tuple(lower), tuple(upper))]
    sides = [b - a for a, b in zip(lower, upper, strict=True)]
    axis = sides.index(max(sides))
    sums = block.sum(axis=tuple(i for i in range(cells.ndim) if i != axis))
    width = min(
        range(1, len(sums)),
        key=lambda k: (abs(2 * sums[:k].sum() - sums.sum()), abs(2 * k - len(sums)), k),
    )
    left, right = list(upper), list(lower)
    left[axis] = right[axis] = lower[axis] + width
    rest = (cells, epsilon, xi0, xi1, corrected, measure)
    return kd_by_recursion(*rest, lower, left) + kd_by_recursion(*rest, right, upper)


@settings(max_examples=120)
@given(
    cells=dense_tables(least=-3),
    xi0=st.sampled_from([0, 5.5, 30, 1e9]),
    xi1=st.sampled_from([0.1, 7.3, 1e9]),
    corrected=st.booleans(),
    measure=st.sampled_from(["deviation", "entropy"]),
)
def test_kd_boxes_equal_the_recursion(cells, xi0, xi1, corrected, measure):
    epsilon = Fraction(2)
    lower, upper, box = kd_boxes(
        cells, epsilon, xi0=xi0, xi1=xi1, noise_correction=corrected, unevenness=measure
    )
    found = sorted(zip(map(tuple, lower.tolist()), map(tuple, upper.tolist()), strict=True))
    d = cells.ndim
    rest = (epsilon, xi0, xi1, corrected, measure)
    assert found == sorted(kd_by_recursion(cells, *rest, [0] * d, list(cells.shape)))
    for i, (a, b) in enumerate(zip(lower, upper, strict=True)):
        assert (box.reshape(cells.shape)[slices(a, b)] == i).all()


# --- kd-tree: two steps


@settings(max_examples=40)
@given(cells=dense_tables())
def test_two_step_without_noise_is_exact(cells):
    with pytest.MonkeyPatch.context() as patch:
        recorder = Recorder()
        patch.setattr(dpcube, "discrete_laplace", recorder)
        view = two_step_kdtree(as_table(cells), two_step_parts(Fraction(1), 0.25), xi0=3, xi1=0.5)
    assert_exact(view, cells)
    # Every cell, and every box again; each with sensitivity 1 and its part.
    first, second = recorder.calls
    assert first[0].size == cells.size and first[1:] == (Fraction(1, 4), 1)
    assert len(second[0]) == len(view.lower) and second[1:] == (Fraction(3, 4), 1)


@over("kernel", ["two-step", "hierarchical"])
def test_as_published_the_last_counts_are_the_release(kernel):
    cells = np.random.default_rng(0).integers(0, 30, (16, 16))
    table, seed = as_table(cells), {"random_state": 0}
    for calibration in ("tight", "paper"):
        if kernel == "two-step":
            parts = two_step_parts(Fraction(1))
            view = two_step_kdtree(table, parts, xi0=9, xi1=9, calibration=calibration, **seed)
        else:
            parts = hierarchical_parts(Fraction(1), cells.shape, 3)
            view = hierarchical_kdtree(table, parts, calibration=calibration, **seed)
        assert (view.counts == view.measured).all() == (calibration == "paper")


@settings(max_examples=40)
@given(cells=dense_tables(), height=st.integers(1, 6))
def test_hierarchical_without_noise_is_exact(cells, height):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpcube, "discrete_laplace", recorder := Recorder())
        parts = hierarchical_parts(Fraction(1), cells.shape, height)
        view = hierarchical_kdtree(as_table(cells), parts)
    assert len(parts) == height + 1 and sum(parts.values()) == 1
    assert_exact(view, cells)
    assert all(sensitivity == 1 for _, _, sensitivity in recorder.calls)
    # A final box of level k has all that the levels above it left, exactly.
    left = {1 - Fraction(k, height + 1) for k in range(height + 1)}
    assert set(view.epsilon) <= left
    assert {epsilon for _, epsilon, _ in recorder.calls} <= left | {Fraction(1, height + 1)}


def test_hierarchical_cuts_at_the_median(monkeypatch):
    quieted(monkeypatch)
    cells = np.array([[1] * 10 + [0] * 20, [1] * 10 + [0] * 20])
    view = hierarchical_kdtree(as_table(cells), hierarchical_parts(Fraction(1), cells.shape, 1))
    assert sorted(view.upper[:, 1].tolist()) == [5, 30]


def test_a_range_tree_is_estimated_by_gblue_on_a_tree_of_several_columns():
    # The future work of the GBLUE paper: conditions on several columns. Any tree will do, so the
    # estimates are those of the iterative algorithm on the same noisy sums.
    cells = np.random.default_rng(0).poisson(20, size=(5, 7))
    parts = hierarchical_parts(Fraction(1), cells.shape, 4)
    measured = []
    estimates = dpcube._Sums.estimates

    def kept(sums):
        measured.append(sums)
        return estimates(sums)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpcube._Sums, "estimates", kept)
        view = hierarchical_kdtree(as_table(cells), parts, middle=True, random_state=0)
    (sums,) = measured
    tree = Tree.from_parents(np.concatenate(sums._parent))
    variances = np.array(
        [math.inf if e is None else discrete_laplace_variance(e) for e in sums._epsilon]
    )
    values = np.concatenate(sums._value)
    found, sweeps = gblue(tree, values[tree.order], variances[tree.order], tol=1e-9)
    assert sweeps > 3
    np.testing.assert_allclose(np.sort(found[tree.leaves]), np.sort(view.counts), atol=1e-6)


# --- fused counts and their errors


@over("cells", [[50, 0, 9, 9, 9, 0, 0, 1], [[30] * 3, [0] * 3]])
def test_boxes_are_fused_with_the_sums_of_their_cells(cells):
    # Equal noise in both: a box of n cells is worth n times as much as the sum of the cells.
    calls = []

    def recording(*given, **more):
        calls.append(discrete_laplace(*given, **more))
        return calls[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpcube, "discrete_laplace", recording)
        parts = two_step_parts(Fraction(1))
        view = two_step_kdtree(as_table(np.array(cells)), parts, xi0=10, xi1=1e9, random_state=1)
    noisy, again = calls
    boxes = zip(view.lower, view.upper, strict=True)
    sums = np.array([noisy[slices(*box)].sum() for box in boxes])
    sizes = (view.upper - view.lower).prod(axis=1)
    assert (view.measured == again).all() and sizes.max() > 1 and (sums != again).any()
    # Boxes of one size: what their cells exceed them by on average is taken off.
    excess = np.array([(sums - again)[sizes == size].mean() for size in sizes])
    fused = again + (sums - excess - again) / (sizes + 1)
    np.testing.assert_allclose(view.counts, fused, atol=1e-9)


# --- usefulness


def test_usefulness_of_the_papers_example():
    found = usefulness(100, 0.05, 0.05)
    assert found.published == pytest.approx(100 * math.log(2000) / 0.05)
    assert found.queries == pytest.approx(775, abs=1)
    assert usefulness(100, 0.05, 0.05, n_queries=5050).queries == pytest.approx(1439, abs=1)
    relative = usefulness(100, 0.05, 0.05, n_records=2_000)
    np.testing.assert_allclose(np.array(relative) * 2_000, found)


@over("n_cells, epsilon", [(1, 0.5), (3, 0.1), (50, 1.0), (400, 0.05)])
def test_usefulness_holds_and_is_tight(n_cells, epsilon):
    # 4,000 draws at 10%: at most .1 + 4 standard errors, and within 80% of the true quantile
    # (Chernoff bounds are loose by a factor, the published one by the number of cells).
    noise = discrete_laplace(np.zeros((4000, n_cells), dtype=int), epsilon, random_state=7)
    one = np.abs(noise.sum(axis=1))
    worst = np.maximum(np.maximum(noise, 0).sum(axis=1), -np.minimum(noise, 0).sum(axis=1))
    bounds = usefulness(n_cells, epsilon, 0.1)
    for errors, bound in ((one, bounds.queries), (worst, bounds.every_query)):
        assert np.mean(errors > bound) <= 0.1 + 4 * math.sqrt(0.09 / 4000)
        assert bound <= 1.8 * np.quantile(errors, 0.9) + 1
    assert bounds.queries <= bounds.every_query
    assert n_cells < 3 or bounds.every_query < bounds.published


def test_a_sufficient_epsilon_bounds_the_posterior_and_is_the_largest():
    # The attacker's posterior after the likeliest output, for a Laplace-like ratio of exp(epsilon).
    for before, after, releases in ((0.1, 0.5, 1), (0.01, 0.02, 3), (0.9, 0.95, 2)):
        found = sufficient_epsilon(before, after, n_releases=releases)
        for epsilon, changes in ((found.presence, 1), (found.value, 2)):
            odds = before / (1 - before) * math.exp(epsilon * changes * releases)
            assert odds / (1 + odds) == pytest.approx(after)
        # The paper's: its bound on the probability is met with something to spare.
        assert before * math.exp(found.published * releases) == pytest.approx(after)
        assert found.published < found.presence
