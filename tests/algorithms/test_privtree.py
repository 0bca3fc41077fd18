"""PrivTree: its loss by exact laws, its boxes by plain recursion."""

import itertools
import math
from fractions import Fraction

import pytest
from boxed import Recorder, as_table, corners, dense_tables, slices
from exact_laws import probability_of_split
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp.algorithms import privtree as pt
from skdp.algorithms.privtree import privtree, privtree_parameters, privtree_parts

GRID = 4


# --- PrivTree: parameters and privacy


@over("epsilon", ["0.0005", "0.05", "0.5", "3", "50"])
@over("n_split", [1, 2, 5, 10])
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
    assert paper.floor_steps == -paper.delta_steps
    # An empty box has at most half a divided part.
    empty = probability_of_split(tight.floor_steps, math.exp(-float(tight.rate)))
    assert empty <= 0.5 / fanout * (1 + 1e-9)


def tree_law(counts, public, rate, depth=0, low=0):
    """Probability of every partition of a line, by plain recursion."""
    if len(counts) == 1:
        return {((low, low + 1),): 1.0}
    biased = max(GRID * sum(counts) - depth * public.delta_steps, public.floor_steps)
    r = math.exp(-rate)
    # N is symmetric; 1 - p would lose its digits.
    p, stop = probability_of_split(biased, r), probability_of_split(1 - biased, r)
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


@over("calibration", ["tight", "paper"])
@over("epsilon", [Fraction(1, 2), Fraction(2)])
def test_privtree_partition_is_private_by_its_exact_law(calibration, epsilon):
    public = privtree_parameters({"tree": epsilon}, (4,), calibration=calibration)
    law = tree_law((3, 0, 1, 2), public, float(public.rate))
    assert sum(law.values()) == pytest.approx(1)
    assert worst_ratio(public, float(public.rate)) <= epsilon
    # Not vacuous: with three times the rate it fails.
    assert worst_ratio(public, 3 * float(public.rate)) > epsilon


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


@over("shape, n_split", [((8,) * 4, 4), ((8, 1, 8), 2), ((8,) * 9, 6)])
def test_privtree_halves_all_columns_but_at_most_six(shape, n_split):
    parts = privtree_parts(Fraction(1), shape)
    assert privtree_parameters(parts, shape).n_split == n_split
    # The paper halves all of them.
    published = privtree_parameters(parts, shape, calibration="paper")
    assert published.n_split == sum(size > 1 for size in shape)


@settings(max_examples=80)
@given(cells=dense_tables(), n_split=st.integers(1, 4), epsilon=st.sampled_from([1, 8, 100]))
def test_privtree_without_noise_equals_the_recursion(cells, n_split, epsilon):
    parts = privtree_parts(Fraction(epsilon), cells.shape, n_split=n_split)
    public = privtree_parameters(parts, cells.shape, n_split=n_split)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pt, "discrete_laplace", recorder := Recorder())
        patch.setattr(pt, "above_threshold", recorder.above_threshold)
        view = privtree(as_table(cells), parts, n_split=n_split)
    found = [(*ends, count) for ends, count in zip(corners(view.boxes), view.counts, strict=True)]
    nowhere = [0] * cells.ndim
    expected = privtree_by_recursion(cells, public, nowhere, list(cells.shape), nowhere, 0)
    assert sorted(found) == sorted(expected)
