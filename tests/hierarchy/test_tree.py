"""Trees: no bin is counted twice in a level, whatever made them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import over
from trees import membership, parents

from skdp import hierarchy
from skdp.hierarchy import Tree

# What is wrong, and parent, lower and upper.
BROKEN_TREES = {
    "overlapping siblings": ([-1, 0, 0], [0, 0, 1], [3, 2, 3]),
    "a gap between siblings": ([-1, 0, 0], [0, 0, 2], [3, 1, 3]),
    "a gap at the end": ([-1, 0, 0], [0, 0, 1], [3, 1, 2]),
    "an only child that is smaller": ([-1, 0], [0, 0], [2, 1]),
    "outside of the parent": ([-1, 0, 0], [0, 0, 1], [2, 1, 3]),
    "siblings out of order": ([-1, 0, 0], [0, 1, 0], [2, 2, 1]),
    "a cycle": ([-1, 2, 1], [0, 0, 0], [1, 1, 1]),
    "two roots": ([-1, -1], [0, 0], [1, 1]),
    "not by level": ([-1, 0, 1, 0], [0, 0, 0, 1], [2, 1, 1, 2]),
    "an empty node": ([-1, 0, 0], [0, 0, 1], [1, 1, 1]),
    "nothing": ([], [], []),
    "fractions": ([-1, 0], [0.0, 0.5], [1, 1]),
}


@over("name", BROKEN_TREES)
def test_a_tree_that_counts_a_record_twice_in_a_level_cannot_be_made(name):
    parent, lower, upper = map(np.array, BROKEN_TREES[name])
    with pytest.raises(ValueError, match=r"rule|entry|integers"):
        Tree(parent, lower, upper, np.arange(len(parent)))


def test_nobody_can_write_to_a_tree():
    arrays = [np.array(each) for each in ([-1, 0, 0], [0, 0, 1], [2, 1, 2], [0, 1, 2])]
    tree = Tree(*arrays)
    for mine, array in zip(arrays, (tree.parent, tree.lower, tree.upper, tree.order), strict=True):
        mine[:] = 0
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
    assert tree.upper.tolist() == [2, 1, 2] and tree.lower.tolist() == [0, 0, 1]


# --- structure


@given(parents())
def test_level_order_keeps_the_tree(given_parents):
    tree = Tree.from_parents(given_parents)
    original = np.array(given_parents)
    above = np.where(tree.parent >= 0, tree.order[tree.parent], -1)
    assert sorted(tree.order) == list(range(len(original)))
    np.testing.assert_array_equal(original[tree.order], above)
    assert (np.diff(tree.parent) >= 0).all()
    np.testing.assert_array_equal(tree.depth[1:], tree.depth[tree.parent[1:]] + 1)
    A = membership(tree)
    for node in range(tree.n_nodes):
        np.testing.assert_array_equal(
            np.flatnonzero(A[node]), np.arange(tree.lower[node], tree.upper[node])
        )


@given(st.integers(1, 200), st.integers(2, 9))
def test_balanced_trees(n_bins, branching):
    tree = hierarchy.balanced_tree(n_bins, branching)
    assert_nested(tree)
    size = tree.upper - tree.lower
    assert (size[tree.is_leaf] == 1).all() and tree.n_bins == n_bins
    np.testing.assert_array_equal(tree.n_children[size > 1], np.minimum(size[size > 1], branching))
    for node in np.flatnonzero(~tree.is_leaf):
        children = slice(tree.first_child[node], tree.first_child[node] + tree.n_children[node])
        assert np.ptp(size[children]) <= 1


@over("n, counts", [(4096, [16, 256]), (1000, [8, 64]), (17, [1, 4]), (1, [])])
def test_level_trees(n, counts):
    tree = hierarchy.level_tree(n, counts)
    assert_nested(tree)
    assert np.diff(tree.level_starts).tolist() == sorted({1, *counts, n})
    for start, stop in itertools.pairwise(tree.level_starts):
        assert np.ptp(tree.upper[start:stop] - tree.lower[start:stop]) <= 1


def assert_nested(tree):
    """Children cover their parent from left to right."""
    for node in np.flatnonzero(~tree.is_leaf):
        first, number = tree.first_child[node], tree.n_children[node]
        children = np.arange(first, first + number)
        assert (tree.parent[children] == node).all()
        assert tree.lower[children[0]] == tree.lower[node]
        assert tree.upper[children[-1]] == tree.upper[node]
        np.testing.assert_array_equal(tree.upper[children[:-1]], tree.lower[children[1:]])


@given(st.integers(2, 40), st.randoms(use_true_random=False))
def test_intervals_in_any_order(n_bins, random):
    tree = hierarchy.balanced_tree(n_bins, 3)
    pairs = list(zip(tree.lower.tolist(), tree.upper.tolist(), strict=True))
    random.shuffle(pairs)
    again = Tree.from_intervals(pairs)
    np.testing.assert_array_equal(again.lower, tree.lower)
    np.testing.assert_array_equal(again.upper, tree.upper)
    np.testing.assert_array_equal(again.parent, tree.parent)
    assert [pairs[i] for i in again.order] == list(zip(again.lower, again.upper, strict=True))


# --- answers without consistency


def smallest_cover(tree, low, high):
    """Nodes inside a range whose parent is not inside."""
    inside = (tree.lower >= low) & (tree.upper <= high)
    return inside & ~np.where(tree.parent >= 0, inside[np.maximum(tree.parent, 0)], False)


def test_range_usage_counts_the_covers():
    tree = hierarchy.balanced_tree(11, 3)
    covers = [smallest_cover(tree, a, b) for a in range(11) for b in range(a + 1, 12)]
    np.testing.assert_allclose(hierarchy.range_usage(tree), np.mean(covers, axis=0))
