"""PrivTree, kd-tree and grid: kernels against brute force, privacy by exact laws, estimators."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from densities import asked, reach_of
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp
from skdp._validation import dyadic_floor
from skdp.algorithms import dpcube
from skdp.algorithms import privtree as pt
from skdp.algorithms.boxes import Blocks
from skdp.algorithms.dpcube import (
    MOST_CELLS,
    hierarchical_kdtree,
    hierarchical_parts,
    kd_boxes,
    two_step_kdtree,
    two_step_parts,
)
from skdp.algorithms.privtree import privtree, privtree_parameters, privtree_parts
from skdp.hierarchy import Tree, gblue
from skdp.inspection import sufficient_epsilon, usefulness
from skdp.mechanisms import discrete_laplace, discrete_laplace_variance
from skdp.release import AnySpread, Boxes, BoxModel, KnownNoise
from skdp.tables import CountTable

GRID = 4


def as_table(cells):
    occupied = np.argwhere(cells > 0)
    return CountTable.from_codes(occupied, cells.shape, cells[tuple(occupied.T)])


def slices(lower, upper):
    return tuple(slice(a, b) for a, b in zip(lower, upper, strict=True))


@st.composite
def dense_tables(draw, least=0, largest=40, most_side=6):
    shape = tuple(draw(st.lists(st.integers(1, most_side), min_size=1, max_size=3)))
    count = st.one_of(st.just(0), st.integers(least, 3), st.integers(least, largest))
    n_cells = math.prod(shape)
    cells = draw(st.lists(count, min_size=n_cells, max_size=n_cells))
    return np.array(cells, dtype=np.int64).reshape(shape)


class Recorder:
    """Stands for `discrete_laplace`: adds no noise and remembers what it was asked."""

    def __init__(self):
        self.calls = []

    def __call__(self, values, epsilon, sensitivity=1, *, random_state=None):
        self.calls.append((np.array(values), epsilon, sensitivity))
        return np.array(values, dtype=np.int64)

    def above_threshold(self, values, epsilon, threshold, *, random_state=None):
        return self(values, epsilon) > threshold


@pytest.fixture
def quiet(monkeypatch):
    """No noise in the kernels; the calls are recorded."""
    recorder = Recorder()
    monkeypatch.setattr(pt, "discrete_laplace", recorder)
    monkeypatch.setattr(pt, "above_threshold", recorder.above_threshold)
    for module in (dpcube, dpcube):
        monkeypatch.setattr(module, "discrete_laplace", recorder)
    return recorder


def covered_once(lower, upper, shape):
    seen = np.zeros(shape, dtype=int)
    for a, b in zip(lower, upper, strict=True):
        seen[slices(a, b)] += 1
    return (seen == 1).all()


# --- PrivTree: parameters and privacy


@pytest.mark.parametrize("epsilon", ["0.0005", "0.05", "0.5", "3", "50"])
@pytest.mark.parametrize("n_split", [1, 2, 5, 10])
def test_privtree_tests_lose_at_most_their_part(epsilon, n_split):
    parts = privtree_parts(2 * Fraction(epsilon), (8,) * 10, n_split=n_split)
    assert parts == {"tree": Fraction(epsilon), "counts": Fraction(epsilon)}
    tight, paper = (
        privtree_parameters(parts, (8,) * 10, n_split=n_split, calibration=calibration)
        for calibration in ("tight", "paper")
    )
    assert tight.loss <= parts["tree"] and paper.loss <= parts["tree"]
    assert tight.lam <= paper.lam
    # The published formulas, up to the grid.
    fanout = 2**n_split
    published = (2 * fanout - 1) / (fanout - 1) / float(epsilon)
    assert published <= paper.lam <= published * 1.002
    assert paper.delta == pytest.approx(paper.lam * math.log(fanout), abs=1 / GRID)
    assert paper.floor == -paper.delta
    # An empty box has at most half a divided part.
    r = math.exp(-float(tight.rate))
    assert r ** (1 - tight.floor_steps) / (1 + r) <= 0.5 / fanout * (1 + 1e-9)


def split_probability(b, r):
    """P(b + N > 0) for discrete Laplace N."""
    return r ** (1 - b) / (1 + r) if b <= 0 else 1 - r**b / (1 + r)


def tree_law(counts, public, rate, depth=0, low=0):
    """Probability of every partition of a line, by plain recursion."""
    if len(counts) == 1:
        return {((low, low + 1),): 1.0}
    biased = max(GRID * sum(counts) - depth * public.delta_steps, public.floor_steps)
    r = math.exp(-rate)
    # N is symmetric; 1 - p would lose its digits.
    p, stop = split_probability(biased, r), split_probability(1 - biased, r)
    law = {((low, low + len(counts)),): stop}
    middle = (len(counts) + 1) // 2
    left = tree_law(counts[:middle], public, rate, depth + 1, low)
    right = tree_law(counts[middle:], public, rate, depth + 1, low + middle)
    for (a, pa), (b, pb) in itertools.product(left.items(), right.items()):
        law[a + b] = law.get(a + b, 0.0) + p * pa * pb
    return law


def worst_ratio(public, rate):
    worst = 0.0
    for cells in itertools.product(range(0, 5), [0, 2], [0, 3], [0, 1]):
        one = tree_law(cells, public, rate)
        for place in range(4):
            more = list(cells)
            more[place] += 1
            two = tree_law(tuple(more), public, rate)
            worst = max(worst, *(abs(math.log(one[k] / two[k])) for k in one))
    return worst


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_privtree_partition_is_private_by_its_exact_law(calibration, epsilon):
    public = privtree_parameters({"tree": epsilon}, (4,), calibration=calibration)
    law = tree_law((3, 0, 1, 2), public, float(public.rate))
    assert sum(law.values()) == pytest.approx(1)
    worst = worst_ratio(public, float(public.rate))
    assert worst <= epsilon
    # Not vacuous: with three times the rate it fails.
    assert worst_ratio(public, 3 * float(public.rate)) > epsilon


def test_privtree_follows_its_law():
    # 4,000 trees: each share within 4.5 standard errors (false alarm below 1e-4 for all).
    cells = np.array([3, 0, 1, 2])
    parts = privtree_parts(Fraction(2), (4,))
    public = privtree_parameters(parts, (4,))
    law = tree_law(tuple(cells), public, float(public.rate))
    found = dict.fromkeys(law, 0)
    n = 4000
    for seed in range(n):
        view = privtree(as_table(cells), parts, random_state=seed)
        ends = sorted(zip(view.lower[:, 0].tolist(), view.upper[:, 0].tolist(), strict=True))
        found[tuple(ends)] += 1
    for box, p in law.items():
        assert abs(found[box] - n * p) < 4.5 * math.sqrt(n * p * (1 - p)) + 1
    # It would reject the law of noise a quarter wider.
    wrong = tree_law(tuple(cells), public, float(public.rate) * 0.8)
    assert any(
        abs(found[box] - n * p) > 6 * math.sqrt(n * p * (1 - p)) + 1 for box, p in wrong.items()
    )


# --- PrivTree: algorithm


def privtree_by_recursion(cells, public, lower, upper, halvings, depth):
    """Boxes without noise: sorted list of (lower, upper, count)."""
    divisible = [i for i in range(cells.ndim) if upper[i] - lower[i] > 1]
    count = int(cells[slices(lower, upper)].sum())
    biased = max(GRID * count - depth * public.delta_steps, public.floor_steps)
    if not divisible or biased <= 0:
        return [(tuple(lower), tuple(upper), count)]
    axes = sorted(divisible, key=lambda i: (halvings[i], i))[: public.n_split]
    boxes = []
    for sides in itertools.product([0, 1], repeat=len(axes)):
        a, b, h = list(lower), list(upper), list(halvings)
        for axis, side in zip(axes, sides, strict=True):
            middle = lower[axis] + (upper[axis] - lower[axis] + 1) // 2
            h[axis] += 1
            if side:
                a[axis] = middle
            else:
                b[axis] = middle
        boxes += privtree_by_recursion(cells, public, a, b, h, depth + 1)
    return boxes


@pytest.mark.parametrize(("shape", "n_split"), [((8,) * 4, 4), ((8, 1, 8), 2), ((8,) * 9, 6)])
def test_privtree_halves_all_columns_but_at_most_six(shape, n_split):
    parts = privtree_parts(Fraction(1), shape)
    assert privtree_parameters(parts, shape).n_split == n_split


@settings(max_examples=80)
@given(cells=dense_tables(), n_split=st.integers(1, 4), epsilon=st.sampled_from([1, 8, 100]))
def test_privtree_without_noise_equals_the_recursion(cells, n_split, epsilon):
    parts = privtree_parts(Fraction(epsilon), cells.shape, n_split=n_split)
    public = privtree_parameters(parts, cells.shape, n_split=n_split)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pt, "discrete_laplace", recorder := Recorder())
        patch.setattr(pt, "above_threshold", recorder.above_threshold)
        view = privtree(as_table(cells), parts, n_split=n_split)
    found = sorted(
        (tuple(a), tuple(b), c)
        for a, b, c in zip(
            view.lower.tolist(), view.upper.tolist(), view.counts.tolist(), strict=True
        )
    )
    d = cells.ndim
    assert found == sorted(
        privtree_by_recursion(cells, public, [0] * d, list(cells.shape), [0] * d, 0)
    )


def test_privtree_noises_every_test_and_every_count(quiet):
    cells = np.zeros((8, 8), dtype=np.int64)
    cells[0, 0] = 100
    parts = privtree_parts(Fraction(1), cells.shape)
    public = privtree_parameters(parts, cells.shape)
    view = privtree(as_table(cells), parts)
    *tests, counts = quiet.calls
    assert all(call[1:] == (public.rate, 1) for call in tests)
    assert counts[1:] == (parts["counts"], 1) and len(counts[0]) == len(view.lower)
    # All four parts of a divided box are tested, those without records too.
    assert [len(values) for values, _, _ in tests[:3]] == [1, 4, 4]
    assert (view.lower[view.counts > 0] == 0).all()


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1)])
def test_privtree_of_one_cell(shape):
    parts = privtree_parts(Fraction(1), shape)
    assert parts == {"counts": Fraction(1)}
    view = privtree(
        CountTable.from_codes(np.zeros((5, len(shape)), dtype=int), shape), parts, random_state=0
    )
    assert view.lower.tolist() == [[0] * len(shape)]


@pytest.mark.parametrize(
    ("n_split", "error"), [(0, ValueError), (11, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_privtree_refuses_a_wrong_number_of_attributes(n_split, error):
    with pytest.raises(error, match="split_attributes"):
        privtree_parts(Fraction(1), (4, 4), n_split=n_split)


def test_privtree_refuses_an_unknown_calibration():
    with pytest.raises(ValueError, match="'tight' or 'paper'"):
        privtree_parts(Fraction(1), (4, 4), calibration="loose")


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
    expected = kd_by_recursion(cells, *rest, [0] * d, list(cells.shape))
    assert found == sorted(expected)
    for i, (a, b) in enumerate(zip(lower, upper, strict=True)):
        assert (box.reshape(cells.shape)[slices(a, b)] == i).all()


def test_noise_alone_does_not_divide_a_large_empty_box():
    noisy = discrete_laplace(np.zeros((64, 64), dtype=np.int64), 0.1, random_state=3)
    corrected, _, _ = kd_boxes(noisy, Fraction(1, 10), xi0=1e9, xi1=50)
    published, _, _ = kd_boxes(noisy, Fraction(1, 10), xi0=1e9, xi1=50, noise_correction=False)
    assert 3 * len(corrected) < len(published)


# --- kd-tree: two steps


@settings(max_examples=40)
@given(cells=dense_tables())
def test_two_step_without_noise_is_exact(cells):
    with pytest.MonkeyPatch.context() as patch:
        recorder = Recorder()
        patch.setattr(dpcube, "discrete_laplace", recorder)
        parts = two_step_parts(Fraction(1), 0.25)
        view = two_step_kdtree(as_table(cells), parts, xi0=3, xi1=0.5)
    assert covered_once(view.lower, view.upper, cells.shape)
    exact = [cells[slices(a, b)].sum() for a, b in zip(view.lower, view.upper, strict=True)]
    np.testing.assert_allclose(view.counts, exact, atol=1e-9)
    # Every cell, and every box again; each with sensitivity 1 and its part.
    first, second = recorder.calls
    assert first[0].size == cells.size and first[1:] == (Fraction(1, 4), 1)
    assert len(second[0]) == len(view.lower) and second[1:] == (Fraction(3, 4), 1)


@settings(max_examples=40)
@given(cells=dense_tables(), height=st.integers(1, 6))
def test_hierarchical_without_noise_is_exact(cells, height):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpcube, "discrete_laplace", recorder := Recorder())
        parts = hierarchical_parts(Fraction(1), cells.shape, height)
        view = hierarchical_kdtree(as_table(cells), parts)
    assert len(parts) == height + 1 and sum(parts.values()) == 1
    assert covered_once(view.lower, view.upper, cells.shape)
    exact = [cells[slices(a, b)].sum() for a, b in zip(view.lower, view.upper, strict=True)]
    np.testing.assert_allclose(view.counts, exact, atol=1e-9)
    assert all(sensitivity == 1 for _, _, sensitivity in recorder.calls)
    # A final box of level k has all that the levels above it left, exactly.
    left = {1 - Fraction(k, height + 1) for k in range(height + 1)}
    assert set(view.epsilon) <= left
    spent = {epsilon for _, epsilon, _ in recorder.calls}
    assert spent <= left | {Fraction(1, height + 1)}


def test_hierarchical_cuts_at_the_median(quiet):
    cells = np.array([[1] * 10 + [0] * 20, [1] * 10 + [0] * 20])
    view = hierarchical_kdtree(as_table(cells), hierarchical_parts(Fraction(1), cells.shape, 1))
    assert sorted(view.upper[:, 1].tolist()) == [5, 30]


def test_a_range_tree_is_cut_in_the_middle_and_made_consistent(quiet):
    cells = np.zeros((4, 6), dtype=np.int64)
    cells[0, 0], cells[3, 5] = 40, 7
    parts = hierarchical_parts(Fraction(1), cells.shape, 3)
    view = hierarchical_kdtree(as_table(cells), parts, middle=True)
    assert sorted(map(tuple, np.hstack([view.lower, view.upper]).tolist())) == [
        (a, b, a + 2, c) for a in (0, 2) for b, c in ((0, 1), (1, 3), (3, 4), (4, 6))
    ]
    assert dict(zip(map(tuple, view.lower.tolist()), view.counts, strict=True))[0, 0] == 40
    assert view.counts.sum() == 47


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
    parent = np.concatenate(sums._parent)
    tree = Tree.from_parents(parent)
    variances = np.array(
        [math.inf if e is None else discrete_laplace_variance(e) for e in sums._epsilon]
    )
    values = np.concatenate(sums._value)
    found, sweeps = gblue(tree, values[tree.order], variances[tree.order], tol=1e-9)
    assert sweeps > 3
    np.testing.assert_allclose(np.sort(found[tree.leaves]), np.sort(view.counts), atol=1e-6)


def test_hierarchical_serves_wide_domains():
    shape = (50,) * 30
    rows = np.random.default_rng(0).integers(0, 50, size=(2000, 30))
    parts = hierarchical_parts(Fraction(1), shape)
    view = hierarchical_kdtree(CountTable.from_codes(rows, shape), parts, random_state=0)
    assert len(view.lower) == 2**12
    Boxes(view.lower, view.upper).check_volume(shape)


@pytest.mark.parametrize(
    ("height", "error", "message"),
    [
        (0, ValueError, "between 1 and 16"),
        (17, ValueError, "between 1 and 16"),
        (3.0, TypeError, "integer"),
        (True, TypeError, "integer"),
    ],
)
def test_wrong_heights_are_refused(height, error, message):
    with pytest.raises(error, match=message):
        hierarchical_parts(Fraction(1), (10, 10), height)


def test_heights_that_might_need_too_many_counts_are_refused():
    with pytest.raises(ValueError, match="Take height=5"):
        hierarchical_parts(Fraction(1), (10**6, 10), 12)
    assert len(hierarchical_parts(Fraction(1), (10**6, 10))) == 6
    with pytest.raises(ValueError, match="fewer bins"):
        hierarchical_parts(Fraction(1), (10**8,), 1)


@pytest.mark.parametrize(("share", "error"), [(0, ValueError), (1, ValueError), ("a", TypeError)])
def test_wrong_cell_shares_are_refused(share, error):
    with pytest.raises(error, match="cell_share"):
        two_step_parts(Fraction(1), share)


# --- fused counts and their errors


def boxes_of(view, shape):
    return BoxModel(
        Boxes(view.lower, view.upper),
        view.counts,
        shape,
        AnySpread(view.epsilon, view.measured),
    )


def test_boxes_are_fused_with_the_sums_of_their_cells():
    # Equal noise in both: a box of n cells is worth n times as much as the sum of the cells.
    for cells in ([50, 0], [[30] * 3, [0] * 3]):
        cells = np.array(cells)
        calls = []

        def recording(values, epsilon, *, random_state, calls=calls):
            calls.append(discrete_laplace(values, epsilon, random_state=random_state))
            return calls[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dpcube, "discrete_laplace", recording)
            view = two_step_kdtree(
                as_table(cells), two_step_parts(Fraction(20)), xi0=10, xi1=1e9, random_state=1
            )
        noisy, again = calls
        sums = np.array(
            [noisy[slices(a, b)].sum() for a, b in zip(view.lower, view.upper, strict=True)]
        )
        sizes = (view.upper - view.lower).prod(axis=1)
        assert (view.measured == again).all()
        # Boxes of one size: what their cells exceed them by on average is taken off.
        excess = np.array([(sums - again)[sizes == size].mean() for size in sizes])
        np.testing.assert_allclose(
            view.counts, again + (sums - excess - again) / (sizes + 1), atol=1e-9
        )
    assert sizes.max() > 1


def test_fusing_does_not_change_the_total():
    cells = np.zeros((32, 32), dtype=np.int64)
    cells[:16] = 4
    for share in (0.3, 0.5):
        view = two_step_kdtree(as_table(cells), two_step_parts(Fraction(1), share), random_state=2)
        assert view.counts.sum() == pytest.approx(view.measured.sum())
        assert not np.allclose(view.counts, view.measured)


@pytest.mark.parametrize("strategy", ["two-step", "hierarchical"])
def test_fused_counts_are_covered(strategy):
    # 300 releases. Squared standardised errors of the last counts: mean 1, standard error about
    # .09, so .36 is four of them; misses at nominal 10% of 100: 4 standard errors are 12%.
    cells = np.zeros((8, 8), dtype=np.int64)
    cells[:3, :3] = 40
    table = as_table(cells)
    cutting = {0: (np.arange(8) < 3).astype(float)}
    errors, squares, missed, missed_cutting = [], [], [], []
    for seed in range(300):
        if strategy == "two-step":
            view = two_step_kdtree(table, two_step_parts(Fraction(1)), random_state=seed)
        else:
            parts = hierarchical_parts(Fraction(1), cells.shape, 3)
            view = hierarchical_kdtree(table, parts, random_state=seed)
        model = boxes_of(view, cells.shape)
        errors.append((model.total - cells.sum(), view.measured.sum() - cells.sum()))
        squares.append(errors[-1][1] ** 2 / model.noise_variances().sum())
        if seed % 3:
            continue
        std, below, above, _ = reach_of(model, {}, 0.9)
        assert std**2 == pytest.approx(model.noise_variances().sum())
        missed.append(not -above <= errors[-1][0] <= below)
        # All records are inside a query that cuts boxes: covered too.
        error = model.answer(asked([cutting]))[0] - cells.sum()
        _, below, above, _ = reach_of(model, cutting, 0.9)
        missed_cutting.append(not -above <= error <= below)
    assert abs(np.mean(squares) - 1) < 0.36
    for wrong in (0.7, 1.4):
        assert abs(np.mean(squares) / wrong**2 - 1) > 0.36
    fused, last = np.mean(np.square(errors), axis=0)
    assert fused == pytest.approx(last) if strategy == "two-step" else fused < last
    assert np.mean(missed) < 0.22 and np.mean(missed_cutting) < 0.22


def test_uneven_boxes_are_covered_whatever_is_in_them():
    # All records of every box at its worst place; 95% nominal on each of 400 releases.
    n, missed_above, missed_below = 400, 0, 0
    lower, upper = np.array([[0], [4], [8]]), np.array([[4], [8], [16]])
    records = np.array([100, 300, 50])
    inside = {0: ((np.arange(16) >= 2) & (np.arange(16) < 12)).astype(float)}
    widths = []
    for seed in range(n):
        counts = discrete_laplace(records, 0.2, random_state=seed)
        model = BoxModel(Boxes(lower, upper), counts, (16,), AnySpread(0.2))
        _, below, above, guarantee = reach_of(model, inside, 0.95)
        [value] = model.answer(asked([inside]))
        widths.append(below + above)
        missed_above += value + above < 450
        missed_below += value - below > 300
        assert "any spread" in guarantee
    # Each side misses 2.5%: below 2.5% + 4 standard errors, and not never.
    assert 0 < missed_above <= 0.025 * n + 4 * math.sqrt(0.025 * n)
    assert 0 < missed_below <= 0.025 * n + 4 * math.sqrt(0.025 * n)
    # As wide as the cut boxes and the noise, no more.
    assert np.median(widths) < 150 + 2 * 4.8 * 5 * math.sqrt(2)


def test_intervals_without_a_cut_box_are_those_of_the_noise():
    boxes = Boxes([[0], [4]], [[4], [8]])
    whole = {0: (np.arange(8) < 4).astype(float)}
    plain = BoxModel(boxes, [10, 20], (8,), KnownNoise(1))
    uneven = BoxModel(boxes, [10, 20], (8,), AnySpread(1))
    assert reach_of(plain, whole, 0.9) == reach_of(uneven, whole, 0.9)


@settings(max_examples=40)
@given(cells=dense_tables(least=-3), seed=st.integers(0, 100))
def test_answers_from_projections_equal_those_box_by_box(cells, seed):
    rng = np.random.default_rng(seed)
    lower = np.argwhere(np.ones(cells.shape))
    model = BoxModel(Boxes(lower, lower + 1), cells.ravel(), cells.shape)
    queries = []
    for _ in range(7):
        axes = rng.permutation(cells.ndim)[: rng.integers(0, cells.ndim + 1)]
        queries.append({int(i): rng.random(cells.shape[i]) for i in axes})
    expected = []
    for query in queries:
        table = cells.astype(float)
        for axis, weights in query.items():
            shape = [-1 if i == axis else 1 for i in range(cells.ndim)]
            table = table * weights.reshape(shape)
        expected.append(table.sum())
    np.testing.assert_allclose(model.answer(asked(queries)), expected, atol=1e-8)


# --- estimators

PLANE = skdp.Domain({"x": skdp.Numeric(0, 1, bins=16), "y": skdp.Numeric(0, 1, bins=16)})
ROWS = pd.DataFrame(np.random.default_rng(0).beta(2, 5, size=(3000, 2)), columns=["x", "y"])
VARIANTS = {
    "privtree": (skdp.PrivTreeSynthesizer, {}),
    "privtree paper": (skdp.PrivTreeSynthesizer, {"calibration": "paper", "split_attributes": 1}),
    "two-step": (skdp.KDTreeSynthesizer, {}),
    "cell": (skdp.KDTreeSynthesizer, {"strategy": "cell"}),
    "hierarchical": (skdp.KDTreeSynthesizer, {"strategy": "hierarchical", "height": 5}),
    "identity": (skdp.GridSynthesizer, {"rule": "identity"}),
    "uniform": (skdp.GridSynthesizer, {"rule": "uniform"}),
    "extended": (skdp.GridSynthesizer, {"rule": "extended"}),
    "m-estimator": (skdp.GridSynthesizer, {"rule": "m-estimator"}),
    "eight": (skdp.GridSynthesizer, {"rule": 8}),
}


@pytest.fixture(params=list(VARIANTS))
def make(request):
    estimator, params = VARIANTS[request.param]
    return lambda **more: estimator(**{"domain": PLANE, **params, **more})


def test_releases_answer_close_to_the_truth(make):
    view = make(epsilon=20, random_state=1).fit(ROWS)
    query = "x < 0.25 and y >= 0.5"
    truth = len(ROWS.query(query))
    answer = view.count(query, return_interval=True, level=0.999)
    assert abs(answer.value - truth) < 0.2 * truth + 20
    assert answer.lower <= truth <= answer.upper
    assert abs(view.count() - len(ROWS)) < 30
    assert view.mean("x") == pytest.approx(ROWS["x"].mean(), abs=0.05)


def test_releases_can_be_saved(make, tmp_path):
    view = make(epsilon=1, random_state=1).fit(ROWS)
    view.synopsis_.save(tmp_path / "view.skdp")
    again = skdp.Synopsis.load(tmp_path / "view.skdp")
    assert again.mechanism == view.synopsis_.mechanism
    for query in (None, "x < 0.3", {"x": (0.2, 0.4), "y": (0, 0.77)}):
        assert again.count(query, return_interval=True) == view.count(query, return_interval=True)


@pytest.mark.parametrize(
    "n_releases", [pytest.param(1, id="1"), pytest.param(20, id="20", marks=pytest.mark.slow)]
)
def test_intervals_cover_fresh_queries(make, n_releases):
    # 100 fresh ranges a release at nominal 90%: at least that less three standard errors, taking
    # the answers of one release for one.
    rng = np.random.default_rng(5)
    covered = []
    for seed in range(n_releases):
        view = make(epsilon=0.5, random_state=seed).fit(ROWS)
        low = rng.random((100, 2)) * 0.8
        high = low + rng.random((100, 2)) * (1 - low)
        # Ranges of whole bins, so that the truth is that of the codes.
        low, high = np.floor(low * 16) / 16, np.ceil(high * 16) / 16
        queries = [
            {"x": (a, b - 1e-9), "y": (c, d - 1e-9)}
            for (a, c), (b, d) in zip(low.tolist(), high.tolist(), strict=True)
        ]
        answers = view.count(queries, return_interval=True, level=0.9)
        for answer, (a, c), (b, d) in zip(answers, low, high, strict=True):
            inside = (ROWS["x"] >= a) & (ROWS["x"] < b) & (ROWS["y"] >= c) & (ROWS["y"] < d)
            covered.append(answer.lower <= inside.sum() <= answer.upper)
    assert np.mean(covered) >= 0.9 - 3 * math.sqrt(0.09 / max(n_releases, 10))


BAD_TABLES = {
    "one column": (skdp.Domain({"x": skdp.Numeric(0, 1, bins=5)}), ROWS[["x"]]),
    "one value": (
        skdp.Domain({"x": skdp.Categorical(["a"]), "y": skdp.Numeric(0, 1, bins=4)}),
        ROWS.assign(x="a"),
    ),
    "a million values": (skdp.Domain({"x": skdp.Numeric(0, 1, bins=10**6)}), ROWS[["x"]]),
    "all rows equal": (PLANE, ROWS.iloc[:1].iloc[np.zeros(500, dtype=int)]),
    "ten rows": (PLANE, ROWS.iloc[:10]),
    "no row": (PLANE, ROWS.iloc[:0]),
}


# A million cells of noise make many boxes of two steps.
def _one_is_slow(bad, epsilon):
    return bad == "a million values" and epsilon == 1


@pytest.mark.parametrize(
    ("bad", "epsilon"),
    [
        pytest.param(bad, epsilon, marks=[pytest.mark.slow] * _one_is_slow(bad, epsilon))
        for bad in BAD_TABLES
        for epsilon in (0.001, 1, 100)
    ],
)
def test_bad_tables_are_released(make, bad, epsilon):
    domain, rows = BAD_TABLES[bad]
    if bad == "a million values" and epsilon != 1:
        return
    view = make(domain=domain, epsilon=epsilon, random_state=0).fit(rows)
    assert math.isfinite(view.count())
    assert list(view.sample(5, random_state=0).columns) == list(domain.names)
    assert sum(view.privacy_loss_.parts.values()) == view.privacy_loss_.epsilon
    if epsilon == 100:
        assert abs(view.count() - len(rows)) < 2


WIDE = skdp.Domain({f"c{i}": skdp.Numeric(0, 1, bins=10) for i in range(12)})


class Untouchable(dict):
    """Rows whose values must not be read."""


@pytest.mark.parametrize(
    ("estimator", "params", "remedy"),
    [
        (skdp.KDTreeSynthesizer, {}, "hierarchical"),
        (skdp.KDTreeSynthesizer, {"strategy": "cell"}, "hierarchical"),
        (skdp.GridSynthesizer, {"rule": "identity"}, "extended"),
        (skdp.GridSynthesizer, {"rule": 8}, "extended"),
    ],
)
def test_domains_too_large_are_refused_before_the_charge(monkeypatch, estimator, params, remedy):
    ledger = skdp.PrivacyLedger(1)
    rows = pd.DataFrame(np.random.default_rng(0).random((5, 12)), columns=WIDE.names)
    monkeypatch.setattr(
        skdp.Domain, "encode_columns", lambda *_: pytest.fail("values were read before the refusal")
    )
    with pytest.raises(skdp.DomainError, match=remedy) as refusal:
        estimator(domain=WIDE, ledger=ledger, **params).fit(rows)
    assert "Nothing was read or spent" in str(refusal.value)
    assert ledger.spent == 0


@pytest.mark.parametrize("rule", ["uniform", "extended", "m-estimator", 2])
def test_grids_of_wide_domains_stay_small(rule):
    rows = np.random.default_rng(0).random((20_000, 12))
    view = skdp.GridSynthesizer(epsilon=50, domain=WIDE, rule=rule).fit(
        pd.DataFrame(rows, columns=WIDE.names)
    )
    assert len(view.synopsis_.model.boxes) <= MOST_CELLS


@pytest.mark.parametrize(
    ("estimator", "params", "error", "message"),
    [
        (skdp.KDTreeSynthesizer, {"strategy": "quad"}, ValueError, "strategy must be"),
        (skdp.KDTreeSynthesizer, {"xi0": -1}, ValueError, "xi0"),
        (skdp.KDTreeSynthesizer, {"unevenness": "gini"}, ValueError, "unevenness must be"),
        (skdp.KDTreeSynthesizer, {"strategy": "range-tree", "height": 99}, ValueError, "height"),
        (skdp.KDTreeSynthesizer, {"xi1": math.inf}, ValueError, "xi1"),
        (skdp.KDTreeSynthesizer, {"xi1": "5"}, TypeError, "xi1"),
        (skdp.KDTreeSynthesizer, {"cell_share": 1}, ValueError, "cell_share"),
        (skdp.KDTreeSynthesizer, {"strategy": "hierarchical", "height": 0}, ValueError, "height"),
        (skdp.PrivTreeSynthesizer, {"split_attributes": 0}, ValueError, "split_attributes"),
        (skdp.PrivTreeSynthesizer, {"calibration": "x"}, ValueError, "calibration"),
        (skdp.GridSynthesizer, {"rule": "square"}, ValueError, "rule must be"),
        (skdp.GridSynthesizer, {"rule": 0}, ValueError, "fewer than one"),
        (skdp.GridSynthesizer, {"rule": True}, ValueError, "rule must be"),
        (skdp.GridSynthesizer, {"theta": 0}, ValueError, "theta must lie between"),
        (skdp.GridSynthesizer, {"rule": 2, "theta": "10"}, TypeError, "theta"),
        (skdp.KDTreeSynthesizer, {"cell_share": 1e-30}, ValueError, "cell_share"),
    ],
)
def test_wrong_parameters_cost_nothing(estimator, params, error, message):
    ledger = skdp.PrivacyLedger(1)
    with pytest.raises(error, match=message):
        estimator(domain=PLANE, ledger=ledger, **params).fit(ROWS)
    assert ledger.spent == 0


def test_the_rules_follow_the_noisy_number_of_records():
    sizes = {
        rule: len(
            skdp.GridSynthesizer(epsilon=1, domain=skdp.Numeric(0, 1, bins=1000), rule=rule)
            .fit(np.random.default_rng(0).random((10_000, 2)))
            .synopsis_.model.boxes
        )
        for rule in ("uniform", "extended", "m-estimator")
    }
    # N epsilon / 10 = 980 cells, in two columns the extended rule is the same; 10000 / 3.03.
    assert 31**2 <= sizes["uniform"] <= 33**2 and 31**2 <= sizes["extended"] <= 33**2
    assert 56**2 <= sizes["m-estimator"] <= 60**2


def test_theta_is_the_records_times_epsilon_of_a_box():
    rows = np.random.default_rng(0).random((10_000, 2))
    domain = skdp.Numeric(0, 1, bins=1000)
    for theta, low, high in ((100, 9, 11), (1, 97, 101)):
        for rule in ("uniform", "extended"):
            view = skdp.GridSynthesizer(epsilon=1, domain=domain, rule=rule, theta=theta).fit(rows)
            assert low**2 <= len(view.synopsis_.model.boxes) <= high**2


def test_measured_counts_are_checked():
    boxes = Boxes([[0], [4]], [[4], [8]])
    for wrong in ([1], [1, math.inf], ["a", "b"]):
        with pytest.raises(ValueError, match="counts must"):
            BoxModel(boxes, [10.5, 20], (8,), AnySpread(1, wrong))
    model = BoxModel(boxes, [10.5, 20], (8,), AnySpread(1, [5000, 21]))
    # An unlucky measurement far from the answer: the interval reaches both.
    _, below, above, _ = reach_of(model, {}, 0.9)
    assert below == 0 and above > 4990


# --- groups


def test_groups_agree_with_pandas():
    domain = skdp.Domain(
        {
            "age": skdp.Numeric(20, 24, integer=True),
            "pay": skdp.Numeric(0, 10, bins=5, nullable=True),
            "sex": skdp.Categorical(["F", "M"]),
        }
    )
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {
            "age": rng.integers(20, 25, 400),
            "pay": rng.choice([1.0, 3.0, 5.0, 7.0, 9.0, np.nan], 400),
            "sex": rng.choice(["F", "M"], 400),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        view = skdp.GridSynthesizer(
            epsilon=1000, domain=domain, rule="identity", random_state=0
        ).fit(rows)
    found = view.aggregate("age", "pay", "sex == 'F'").set_index("age")
    expected = rows[rows["sex"] == "F"].groupby("age")["pay"].agg(["count", "sum", "mean"])
    pd.testing.assert_frame_equal(
        found, expected.astype({"count": float}), check_index_type=False, atol=1e-9
    )
    both = view.aggregate(["sex", "age"]).set_index(["sex", "age"])["count"]
    assert both["M", 22] == len(rows.query("sex == 'M' and age == 22"))
    bins = view.aggregate("pay")
    assert bins["pay"][1] == pd.Interval(2.0, 4.0, closed="left") and bins["pay"][5] is None
    assert bins["count"][5] == rows["pay"].isna().sum()
    ages = view.synopsis_.aggregate("age", "age")
    assert ages["mean"].tolist() == [20, 21, 22, 23, 24]


def test_groups_without_records_have_no_mean():
    domain = skdp.Domain({"a": skdp.Categorical(["x", "y"]), "b": skdp.Numeric(0, 4, bins=4)})
    release = skdp.Synopsis(
        domain, BoxModel(Boxes([[0, 0], [1, 0]], [[1, 4], [2, 4]]), [8, -3], domain.shape)
    )
    groups = release.aggregate("a", "b")
    assert groups["mean"][0] == 2 and math.isnan(groups["mean"][1])


@pytest.mark.parametrize("by", [[], ["x", "x"], "z", ["x", "y", "z"]])
def test_groups_by_wrong_columns_are_refused(by):
    release = skdp.Synopsis(PLANE, BoxModel(Boxes([[0, 0]], [[16, 16]]), [8], PLANE.shape))
    with pytest.raises(ValueError):
        release.aggregate(by)


def test_too_many_groups_are_refused():
    domain = skdp.Domain({"x": skdp.Numeric(0, 1, bins=10**6)})
    release = skdp.Synopsis(domain, BoxModel(Boxes([[0]], [[10**6]]), [8], domain.shape))
    with pytest.raises(ValueError, match="100,000"):
        release.aggregate("x")


@pytest.mark.parametrize("mean", [0, 1, 3, 10, 100])
@pytest.mark.parametrize("epsilon", [0.02, 0.2, 1.0])
def test_the_correction_of_the_entropy_is_what_noise_adds(mean, epsilon):
    cells = np.full((1, 200_000), round(mean / epsilon))
    noisy = discrete_laplace(cells, Fraction(epsilon), random_state=3).ravel()
    blocks = Blocks.whole((len(noisy),), noisy)
    size = np.array([len(noisy)])
    lack = dpcube._entropy_lack(blocks, size, noisy)[0]
    corrected = lack - size[0] * dpcube._entropy_noise(noisy.mean(), Fraction(epsilon))
    assert abs(corrected) < 0.15 * lack


@pytest.mark.parametrize("strategy", ["cell", "two-step", "range-tree"])
def test_the_largest_and_smallest_value_show_above_the_noise(strategy):
    rows = pd.DataFrame({"x": np.r_[np.repeat(np.arange(20, 60), 200), 99], "s": 0})
    rows.loc[rows["x"] < 40, "s"] = 1
    domain = skdp.Domain({"x": skdp.Numeric(0, 99, integer=True), "s": skdp.Categorical([0, 1])})
    reached = []
    for seed in range(20):
        view = skdp.KDTreeSynthesizer(
            epsilon=2, domain=domain, strategy=strategy, random_state=seed
        )
        release = view.fit(rows).synopsis_
        reached.append((release.min("x"), release.max("x"), release.max("x", "s == 1")))
        assert release.max("x", level=0.999) <= release.max("x", level=0.5)
    low, high, part = np.array(reached).T
    # Each fails with probability 0.05 at most: more than 6 of 20 have one of 1e-4. The one record
    # at 99 is not seen, and boxes cut off at most a few values.
    assert (high >= 50).all() and (low <= 30).all()
    assert np.count_nonzero(high > 59) <= 6 and np.count_nonzero(low < 20) <= 6
    assert np.count_nonzero(part > 39) <= 6 and (part >= 30).all()


# --- usefulness


def test_usefulness_of_the_papers_example():
    found = usefulness(100, 0.05, 0.05)
    assert found.published == pytest.approx(100 * math.log(2000) / 0.05)
    assert found.queries == pytest.approx(775, abs=1)
    assert usefulness(100, 0.05, 0.05, n_queries=5050).queries == pytest.approx(1439, abs=1)


@pytest.mark.parametrize(("n_cells", "epsilon"), [(1, 0.5), (3, 0.1), (50, 1.0), (400, 0.05)])
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


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0, 1, 0.1), ValueError),
        ((2.5, 1, 0.1), TypeError),
        ((2, 0, 0.1), ValueError),
        ((2, 1, 0), ValueError),
        ((2, 1, 1), ValueError),
        ((2, 1, "a"), TypeError),
    ],
)
def test_usefulness_refuses(arguments, error):
    with pytest.raises(error):
        usefulness(*arguments)
    with pytest.raises((ValueError, TypeError), match="n_queries"):
        usefulness(2, 1, 0.1, n_queries=0)
    for wrong in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="n_records"):
            usefulness(2, 1, 0.1, n_records=wrong)


def test_usefulness_of_relative_counts():
    absolute = usefulness(100, 0.05)
    relative = usefulness(100, 0.05, n_records=2_000)
    np.testing.assert_allclose(np.array(relative) * 2_000, absolute)
    # Corollary 41: with so many records the relative error is at most 0.1.
    needed = absolute.published / 0.1
    assert usefulness(100, 0.05, n_records=needed).published == pytest.approx(0.1)


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


@pytest.mark.parametrize(
    "arguments", [(0, 0.5), (0.5, 1), (0.5, 0.5), (0.6, 0.5), (0.1, 0.2, 0), (math.nan, 0.5)]
)
def test_a_sufficient_epsilon_needs_beliefs_that_rise(arguments):
    before, after, *releases = arguments
    with pytest.raises(ValueError, match="before|after|n_releases"):
        sufficient_epsilon(before, after, **dict(zip(["n_releases"], releases, strict=False)))


def test_histograms_move_two_cells_when_a_value_changes():
    # Two cells of noise: the paper's bound for a value fails, half of the odds' holds.
    epsilon = sufficient_epsilon(0.1, 0.5).published
    ratio = math.exp(2 * epsilon)
    assert 0.1 * ratio / (0.1 * ratio + 0.9) > 0.7
