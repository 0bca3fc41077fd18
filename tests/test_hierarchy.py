"""Trees of counts against dense least squares, brute force and closed forms."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from skdp import hierarchy
from skdp.hierarchy import Blue, Tree
from skdp.mechanisms import discrete_laplace_quantile, discrete_laplace_variance


@st.composite
def parents(draw, largest=30):
    """Parent arrays of random trees, nodes in random order."""
    n = draw(st.integers(1, largest))
    above = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, n)]
    order = draw(st.permutations(range(n)))
    given = [0] * n
    for node, parent in enumerate(above):
        given[order[node]] = -1 if parent < 0 else order[parent]
    return given


# parent, lower, upper, and what is wrong with them
BROKEN_TREES = {
    "overlapping siblings": ([-1, 0, 0], [0, 0, 1], [3, 2, 3], "tile it from left"),
    "the same child twice": ([-1, 0, 0], [0, 0, 0], [2, 2, 2], "tile it from left"),
    "a gap between siblings": ([-1, 0, 0], [0, 0, 2], [3, 1, 3], "tile it from left"),
    "a gap at the end": ([-1, 0, 0], [0, 0, 1], [3, 1, 2], "last child"),
    "a gap at the beginning": ([-1, 0, 0], [0, 1, 2], [3, 2, 3], "tile it from left"),
    "an only child that is smaller": ([-1, 0], [0, 0], [2, 1], "last child"),
    "outside of the parent": ([-1, 0, 0], [0, 0, 1], [2, 1, 3], "last child"),
    "before the parent": ([-1, 0, 0, 2, 2], [0, 0, 1, 0, 1], [2, 1, 2, 1, 2], "from left"),
    "siblings out of order": ([-1, 0, 0], [0, 1, 0], [2, 2, 1], "tile it from left"),
    "a cycle": ([-1, 2, 1], [0, 0, 0], [1, 1, 1], "comes before"),
    "its own parent": ([-1, 1], [0, 0], [1, 1], "comes before"),
    "two roots": ([-1, -1], [0, 0], [1, 1], "is the root"),
    "no root": ([0, 0], [0, 0], [1, 1], "is the root"),
    "an odd root": ([-2, 0], [0, 0], [1, 1], "order of their parents"),
    "a root that begins late": ([-1, 0], [1, 1], [2, 2], "begins at bin 0"),
    "not by level": ([-1, 0, 1, 0], [0, 0, 0, 1], [2, 1, 1, 2], "order of their parents"),
    "an empty node": ([-1, 0, 0], [0, 0, 1], [1, 1, 1], "at least one bin"),
    "no parent of that number": ([-1, 7], [0, 0], [1, 1], "comes before"),
    "lengths": ([-1, 0], [0], [1, 1], "one entry for each"),
    "nothing": ([], [], [], "one-dimensional|one entry"),
    "fractions": ([-1, 0], [0.0, 0.5], [1, 1], "integers"),
}


@pytest.mark.parametrize("name", BROKEN_TREES)
def test_a_tree_that_counts_a_record_twice_in_a_level_cannot_be_made(name):
    parent, lower, upper, message = BROKEN_TREES[name]
    arrays = [np.array(each) for each in (parent, lower, upper)]
    with pytest.raises(ValueError, match=message):
        Tree(*arrays, np.arange(len(parent)))


@pytest.mark.parametrize("order", [[0, 0], [1, 2], [0]])
def test_the_order_of_a_tree_numbers_each_node(order):
    with pytest.raises(ValueError, match="order"):
        Tree(np.array([-1, 0]), np.zeros(2, int), np.ones(2, int), np.array(order))


@settings(max_examples=200)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=6), st.data())
def test_a_tree_that_can_be_made_holds_each_bin_on_one_path(parent, data):
    n = len(parent)
    ends = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    arrays = [np.array(parent), np.array(data.draw(ends)), np.array(data.draw(ends))]
    try:
        tree = Tree(*arrays, np.arange(n))
    except ValueError:
        return
    holders = (tree.lower[:, None] <= np.arange(tree.n_bins)) & (
        np.arange(tree.n_bins) < tree.upper[:, None]
    )
    for at in range(tree.n_bins):
        nodes = np.flatnonzero(holders[:, at])
        assert tree.parent[nodes].tolist() == [-1, *nodes[:-1]] and tree.is_leaf[nodes[-1]]


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


def test_shares_of_a_path_are_checked_where_they_are_spent():
    tree = hierarchy.balanced_tree(4, 2)
    counts, epsilon = np.zeros(4, int), Fraction(1)
    for shares in (
        [10**6] * tree.n_nodes,
        [500_001, *[250_000] * 2, *[250_000] * 4],
        [-(10**6), *[10**6] * 6],
        [0.5] * tree.n_nodes,
        [1],
    ):
        with pytest.raises(ValueError, match="shares"):
            hierarchy.measure(tree, counts, np.array(shares), epsilon, random_state=1)
    for shares in ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [-1, 1, 1, 1, 1, 1, 1], [np.nan] * 7):
        with pytest.raises(ValueError, match=r"shares|more than 1"):
            hierarchy.exact_shares(tree, shares)


@st.composite
def measured_trees(draw, unmeasured=True, exact=True, largest=30, spread=100.0):
    """A tree with values and variances, some of them infinite or zero."""
    tree = Tree.from_parents(draw(parents(largest)))
    kinds = [st.floats(1 / spread, spread)]
    kinds += [st.just(np.inf)] * unmeasured + [st.just(0.0)] * exact
    variances = draw(
        st.lists(st.one_of(kinds), min_size=tree.n_nodes, max_size=tree.n_nodes).map(np.array)
    )
    values = draw(
        st.lists(st.integers(-50, 50), min_size=tree.n_nodes, max_size=tree.n_nodes).map(np.array)
    )
    return tree, values.astype(float), variances


def membership(tree):
    """Matrix (nodes, leaves): which leaves each node holds."""
    inside = np.zeros((tree.n_nodes, len(tree.leaves)))
    for j, leaf in enumerate(tree.leaves):
        node = leaf
        while node >= 0:
            inside[node, j] = 1.0
            node = tree.parent[node]
    return inside


def dense(tree, values, variances):
    """Estimates and covariance of the leaves by dense least squares; all leaves determined."""
    A = membership(tree)
    used = np.isfinite(variances)
    weight = 1 / np.sqrt(variances[used])
    x = np.linalg.lstsq(A[used] * weight[:, None], values[used] * weight, rcond=None)[0]
    covariance = np.linalg.inv((A[used].T / variances[used]) @ A[used])
    return A, x, covariance


def determined(tree, variances):
    """Whether the finite measurements determine every leaf."""
    A = membership(tree)[np.isfinite(variances)]
    return len(A) and np.linalg.matrix_rank(A) == len(tree.leaves)


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


def test_the_example_of_the_paper():
    """Five bins, branching 2: four levels."""
    tree = hierarchy.balanced_tree(5, 2)
    assert tree.n_levels == 4 and tree.n_nodes == 9
    assert sorted(tree.upper[1:3] - tree.lower[1:3]) == [2, 3]


@pytest.mark.parametrize(
    ("n", "counts"), [(4096, [16, 256]), (1000, [8, 64]), (17, [1, 4]), (1, [])]
)
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


def test_intervals_may_repeat_and_leaves_may_be_wide():
    tree = Tree.from_intervals([(0, 10), (0, 10), (0, 4), (4, 10), (4, 5), (5, 10)])
    assert tree.n_levels == 4
    np.testing.assert_array_equal(tree.leaf_widths, [4, 1, 5])
    np.testing.assert_array_equal(tree.node_counts(np.arange(10))[tree.leaves], [6, 4, 35])
    np.testing.assert_allclose(tree.leaf_weights(np.arange(10.0)), [1.5, 4, 7])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0, 0], "exactly one root"),
        ([-1, -1, 0], "exactly one root.*found 2"),
        ([-1, 2, 3, 1], "cycle"),
        ([1, 0], "exactly one root"),
        ([-1, 1], "cycle"),
        ([-1, 7], "not in 0..1"),
        ([-1, -2], "not in 0..1"),
        ([], "non-empty"),
        ([[-1]], "one-dimensional"),
        ([-1.0, 0.0], "integers"),
    ],
)
def test_bad_parents(bad, message):
    with pytest.raises(ValueError, match=message):
        Tree.from_parents(bad)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([(0, 6), (0, 4), (3, 6)], "overlap"),
        ([(0, 6), (0, 2), (3, 6)], "missing"),
        ([(0, 6), (0, 2)], "missing"),
        ([(0, 6), (2, 6)], "missing"),
        ([(0, 3), (3, 6)], "both roots"),
        ([(0, 3), (1, 6)], "overlap|both roots"),
        ([(1, 3)], "begin at bin 0"),
        ([(0, 3), (2, 2)], "empty"),
        ([(3, 0)], "empty"),
        ([(0.0, 1.0)], "integers"),
        ([], "pairs"),
        ([(0, 1, 2)], "pairs"),
    ],
)
def test_bad_intervals(bad, message):
    with pytest.raises(ValueError, match=message):
        Tree.from_intervals(bad)


def test_bad_shapes():
    for call in (
        lambda: hierarchy.balanced_tree(0, 2),
        lambda: hierarchy.balanced_tree(5, 1),
        lambda: hierarchy.perfect_tree(2, -1),
        lambda: hierarchy.level_tree(100, [3, 10]),
        lambda: hierarchy.level_tree(100, [200]),
        lambda: hierarchy.balanced_tree(4, 2).node_counts([1, 2, 3]),
        lambda: hierarchy.balanced_tree(4, 2).leaf_weights([1, 2, 3]),
    ):
        with pytest.raises(ValueError, match="must|has|one"):
            call()
    with pytest.raises(TypeError, match="branching must be an integer"):
        hierarchy.balanced_tree(5, True)


# --- estimates


@settings(max_examples=100)
@given(measured_trees(unmeasured=False, exact=False), st.data())
def test_blue_is_dense_least_squares(case, data):
    tree, values, variances = case
    blue = Blue(tree, variances)
    A, x, covariance = dense(tree, values, variances)
    np.testing.assert_allclose(blue.estimate(values), A @ x, atol=1e-8)
    np.testing.assert_allclose(blue.variances, np.diag(A @ covariance @ A.T), rtol=1e-8)
    q = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=A.shape[1], max_size=A.shape[1])))
    Q = np.stack([q, np.ones(len(q)), np.arange(len(q))], axis=1).astype(float)
    variances_of_q = np.diag(Q.T @ covariance @ Q)
    np.testing.assert_allclose(blue.query_variance(Q), variances_of_q, rtol=1e-8, atol=1e-10)
    gain = (covariance @ (A.T / variances)).T @ Q
    np.testing.assert_allclose(blue.noise_weights(Q), gain, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(gain.T @ values, Q.T @ blue.estimate(values)[tree.leaves], atol=1e-7)


@settings(max_examples=100)
@given(measured_trees(exact=False))
def test_unmeasured_nodes(case):
    """Infinite variances: equal to dense least squares wherever that is determined."""
    tree, values, variances = case
    blue = Blue(tree, variances)
    x = blue.estimate(values)
    assert np.isfinite(x).all()
    inner = ~tree.is_leaf
    np.testing.assert_allclose(tree.child_sums(x)[inner], x[inner], atol=1e-9)
    A = membership(tree)
    used = np.isfinite(variances)
    rank = np.linalg.matrix_rank(A[used]) if used.any() else 0
    for node in range(tree.n_nodes):
        known = used.any() and np.linalg.matrix_rank(np.vstack([A[used], A[node]])) == rank
        assert np.isfinite(blue.variances[node]) == known
        if known:
            # By pseudo-inverse: the estimate of a determined sum is unique.
            scaled = A[used] / np.sqrt(variances[used])[:, None]
            row = A[node] @ np.linalg.pinv(scaled)
            np.testing.assert_allclose(
                x[node], row @ (values[used] / np.sqrt(variances[used])), atol=1e-7
            )
            np.testing.assert_allclose(blue.variances[node], row @ row, rtol=1e-7)
            leaves = A[node]
            np.testing.assert_allclose(blue.query_variance(leaves), row @ row, rtol=1e-7)
            weights = blue.noise_weights(leaves)
            np.testing.assert_allclose(
                weights[used], row / np.sqrt(variances[used]), rtol=1e-6, atol=1e-8
            )
            assert (weights[~used] == 0).all()
        else:
            assert np.isinf(blue.query_variance(A[node]))
            with pytest.raises(ValueError, match="do not determine"):
                blue.noise_weights(A[node])


@settings(max_examples=100)
@given(parents(), st.data())
def test_exact_nodes_are_the_limit_of_small_variances(given_parents, data):
    tree = Tree.from_parents(given_parents)
    truth = data.draw(
        st.lists(st.integers(0, 20), min_size=tree.n_bins, max_size=tree.n_bins).map(np.array)
    )
    counts = tree.node_counts(truth).astype(float)
    exact = np.array(
        data.draw(st.lists(st.booleans(), min_size=tree.n_nodes, max_size=tree.n_nodes))
    )
    variances = np.where(exact, 0.0, 1.0 + np.arange(tree.n_nodes) % 3)
    values = counts + np.where(exact, 0.0, np.sin(np.arange(tree.n_nodes)) * 5)
    blue, near = Blue(tree, variances), Blue(tree, np.where(exact, 1e-7, variances))
    np.testing.assert_allclose(blue.estimate(values), near.estimate(values), atol=1e-4)
    np.testing.assert_allclose(blue.variances, near.variances, atol=1e-5)
    np.testing.assert_allclose(blue.estimate(values)[exact], counts[exact], atol=1e-9)
    assert (blue.variances[exact] <= 1e-12).all()


def test_contradicting_exact_values():
    """Those nearest the leaves win, and the result is consistent."""
    tree = hierarchy.perfect_tree(2, 1)
    blue = Blue(tree, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(blue.estimate([10, 3, 4]), [7, 3, 4])


def test_one_node():
    tree = Tree.from_parents([-1])
    blue = Blue(tree, [4.0])
    assert blue.estimate([3.0]) == [3.0] and blue.variances == [4.0]
    assert blue.query_variance([2.0]) == 16.0
    assert hierarchy.gblue(tree, [3.0])[0] == [3.0]
    assert hierarchy.non_negative(blue, [-3.0]) == [0.0]
    np.testing.assert_array_equal(blue.range_variances([0.0, 0.0], [0.5, 0.0]), [1.0, 0.0])


@pytest.mark.parametrize(
    ("variances", "message"),
    [
        ([1, -1, 1], "negative or NaN.*node 1"),
        ([1, np.nan, 1], "negative or NaN"),
        ([1, 1], "one entry for each of the 3"),
    ],
)
def test_bad_variances(variances, message):
    with pytest.raises(ValueError, match=message):
        Blue(hierarchy.perfect_tree(2, 1), variances)


def test_bad_values_and_weights():
    tree = hierarchy.perfect_tree(2, 1)
    blue = Blue(tree, [1, np.inf, 1])
    assert np.isfinite(blue.estimate([1, np.nan, 1])).all()  # not measured: ignored
    with pytest.raises(ValueError, match="node 2 is nan"):
        blue.estimate([1, 1, np.nan])
    with pytest.raises(ValueError, match="one entry for each"):
        blue.estimate([1, 1])
    with pytest.raises(ValueError, match="one row for each of the 2 leaves"):
        blue.query_variance([1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="positive"):
        hierarchy.gblue(tree, [1, 1, 1], tol=0)


@settings(max_examples=60)
@given(st.integers(1, 400), st.sampled_from([2, 3, 12, "levels"]), st.integers(0, 10**6))
def test_range_variances(n_bins, kind, seed):
    """The walk along two paths equals the sum over all nodes, for ranges cut anywhere."""
    rng = np.random.default_rng(seed)
    if kind == "levels":
        tree = hierarchy.level_tree(n_bins, [1, max(1, n_bins // 3)])
    else:
        tree = hierarchy.balanced_tree(n_bins, kind)
    blue = Blue(tree, np.exp(rng.normal(size=tree.n_nodes)))
    start = rng.uniform(-1, n_bins, 20)
    stop = start + rng.uniform(0, n_bins, 20)
    start[:10], stop[:10] = np.floor(start[:10]), np.ceil(stop[:10])
    weights = tree.overlaps(np.clip(start, 0, n_bins), np.clip(stop, 0, n_bins))
    np.testing.assert_allclose(
        blue.range_variances(start, stop), blue.query_variance(weights), rtol=1e-9, atol=1e-12
    )


def test_range_variances_over_wide_leaves():
    leaves = np.cumsum([0, *([3, 1, 7, 2] * 40)])
    pairs = [(0, leaves[-1])]
    pairs += [(leaves[i], leaves[i + 40]) for i in range(0, 160, 40)]
    tree = Tree.from_intervals(pairs + list(itertools.pairwise(leaves)))
    rng = np.random.default_rng(0)
    blue = Blue(tree, rng.uniform(0.5, 2, tree.n_nodes))
    start = rng.uniform(0, tree.n_bins, 50)
    stop = np.minimum(start + rng.exponential(20, 50), tree.n_bins)
    weights = tree.overlaps(start, stop)
    np.testing.assert_allclose(
        blue.range_variances(start, stop), blue.query_variance(weights), rtol=1e-9
    )


@settings(max_examples=40)
@given(measured_trees(unmeasured=False, exact=False, largest=12, spread=4.0))
def test_gblue_converges_to_blue(case):
    tree, values, variances = case
    found, _ = hierarchy.gblue(tree, values, variances, tol=1e-9)
    np.testing.assert_allclose(found, Blue(tree, variances).estimate(values), atol=1e-6)
    # As in the paper: equal variances.
    equal, _ = hierarchy.gblue(tree, values, tol=1e-9)
    np.testing.assert_allclose(equal, Blue(tree, np.ones(tree.n_nodes)).estimate(values), atol=1e-6)


@settings(max_examples=40)
@given(measured_trees(exact=False, largest=12, spread=4.0))
def test_gblue_leaves_unmeasured_nodes_out(case):
    tree, values, variances = case
    blue = Blue(tree, variances)
    found, _ = hierarchy.gblue(tree, values, variances, tol=1e-9)
    known = np.isfinite(blue.variances)
    np.testing.assert_allclose(found[known], blue.estimate(values)[known], atol=1e-6)
    assert np.isfinite(found).all()


def test_gblue_says_when_it_stops_early():
    tree = hierarchy.perfect_tree(2, 6)
    values = np.arange(tree.n_nodes) % 7
    with pytest.warns(RuntimeWarning, match="3 sweeps"):
        _, n_sweeps = hierarchy.gblue(tree, values, max_sweeps=3)
    assert n_sweeps == 3
    sweeps = [hierarchy.gblue(tree, values, tol=tol)[1] for tol in (1e-3, 1e-6)]
    assert 5 < sweeps[0] < sweeps[1] < 100


@pytest.mark.parametrize(("branching", "height"), [(2, 0), (2, 5), (3, 3), (12, 2)])
def test_boost_is_blue_on_perfect_trees(branching, height):
    tree = hierarchy.perfect_tree(branching, height)
    values = np.random.default_rng(0).normal(size=tree.n_nodes)
    np.testing.assert_allclose(
        hierarchy.boost(values, branching),
        Blue(tree, np.ones(tree.n_nodes)).estimate(values),
        atol=1e-10,
    )


def test_boost_refuses_other_trees():
    with pytest.raises(ValueError, match="cannot have 9 nodes"):
        hierarchy.boost(np.zeros(9), 2)


# --- non-negative counts


def project_by_search(z, s, total):
    """Projection onto {x >= 0, sum = total} by trying every set of zeros."""
    best, found = np.inf, None
    for kept in itertools.product([False, True], repeat=len(z)):
        kept = np.array(kept)
        if not kept.any():
            continue
        x = np.zeros(len(z))
        x[kept] = z[kept] + s[kept] * (total - z[kept].sum()) / s[kept].sum()
        cost = ((x - z) ** 2 / s).sum()
        if (x >= -1e-12).all() and cost < best:
            best, found = cost, x
    return found


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.floats(-10, 10), st.floats(0.1, 10)), min_size=1, max_size=7),
    st.floats(0, 20),
    st.booleans(),
)
def test_projection_of_a_family(children, total, deep):
    z, s = np.array(children).T
    chain = 30 if deep else 0
    tree = Tree.from_parents([*range(-1, chain), *[chain] * len(z)])
    variances = np.concatenate([[1e-9], np.full(chain, np.inf), s])
    values = np.concatenate([[total], np.zeros(chain), z])
    x = hierarchy.non_negative(Blue(tree, variances), values)
    np.testing.assert_allclose(x[tree.leaves], project_by_search(z, s, x[0]), atol=1e-6)


@settings(max_examples=100)
@given(measured_trees())
def test_non_negative_estimates_are_consistent(case):
    tree, values, variances = case
    blue = Blue(tree, variances)
    x = hierarchy.non_negative(blue, values)
    assert (x >= 0).all()
    inner = ~tree.is_leaf
    np.testing.assert_allclose(tree.child_sums(x)[inner], x[inner], atol=1e-6)
    estimate = blue.estimate(values)
    if (variances > 0).all() and np.isfinite(variances).all() and (estimate > 0).all():
        np.testing.assert_allclose(x, estimate, atol=1e-8)


@pytest.mark.parametrize(("kind", "n"), [("chain", 3_001), ("comb", 2_001)])
def test_many_levels_without_recursion(kind, n):
    if kind == "chain":
        above = np.arange(-1, n - 1)
    else:  # each inner node has a leaf and the next inner node
        above = np.append(-1, np.repeat(np.arange(0, n - 1, 2), 2))
    tree = Tree.from_parents(above)
    assert tree.n_levels > n // 2
    blue = Blue(tree, np.ones(n))
    values = np.full(n, 5.0)
    x = blue.estimate(values)
    assert (hierarchy.non_negative(blue, values) >= 0).all()
    if kind == "chain":  # n measurements of one number
        np.testing.assert_allclose(x, 5.0)
        assert blue.variances[-1] == pytest.approx(1 / n)
    np.testing.assert_allclose(tree.child_sums(x)[~tree.is_leaf], x[~tree.is_leaf], atol=1e-6)


# --- answers without consistency


def smallest_cover(tree, low, high):
    """Nodes inside a range whose parent is not inside."""
    inside = (tree.lower >= low) & (tree.upper <= high)
    return inside & ~np.where(tree.parent >= 0, inside[np.maximum(tree.parent, 0)], False)


@given(st.integers(1, 60), st.integers(2, 5), st.data())
def test_cover_of_a_range(n_bins, branching, data):
    tree = hierarchy.balanced_tree(n_bins, branching)
    low = data.draw(st.integers(0, n_bins - 1))
    high = data.draw(st.integers(low + 1, n_bins))
    weights = np.zeros(n_bins)
    weights[low:high] = 1.0
    cover = hierarchy.cover_weights(tree, np.ones(tree.n_nodes, dtype=bool), weights)
    np.testing.assert_array_equal(cover, smallest_cover(tree, low, high))


def test_cover_skips_unmeasured_nodes_and_cuts_only_the_finest():
    tree = Tree.from_intervals([(0, 8), (0, 4), (4, 8), (0, 2), (2, 4)])
    measured = np.array([False, True, True, True, True])
    cover = hierarchy.cover_weights(tree, measured, tree.leaf_weights(np.ones(8)))
    np.testing.assert_array_equal(cover, [0, 1, 1, 0, 0])
    half = tree.leaf_weights(np.array([1, 1, 1, 0, 0, 0, 1, 1.0]))
    cover = hierarchy.cover_weights(tree, measured, half)
    np.testing.assert_array_equal(cover, [0, 0, 0.5, 1, 0.5])


# --- budgets


@given(parents(12), st.data())
@settings(max_examples=30)
def test_cube_root_shares_are_optimal(given_parents, data):
    tree = Tree.from_parents(given_parents)
    costs = np.array(
        data.draw(st.lists(st.floats(0.1, 10), min_size=tree.n_nodes, max_size=tree.n_nodes))
    )
    shares = hierarchy.cube_root_shares(tree, costs)
    paths = membership(tree).T
    np.testing.assert_allclose(paths @ shares, 1.0)
    value = (costs / shares**2).sum()
    scipy = minimize(
        lambda x: (costs / x**2).sum(),
        np.full(tree.n_nodes, 1.0 / tree.n_levels),
        jac=lambda x: -2 * costs / x**3,
        bounds=[(1e-3, 1)] * tree.n_nodes,
        constraints={"type": "ineq", "fun": lambda x: 1 - paths @ x, "jac": lambda x: -paths},
        method="SLSQP",
        options={"maxiter": 500},
    )
    # It may stop slightly outside the constraints.
    found = scipy.x / (paths @ scipy.x).max()
    assert value <= (costs / found**2).sum() * (1 + 1e-9)
    # No feasible direction improves: a convex problem, so this is the optimum.
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = rng.dirichlet(np.ones(tree.n_levels), size=1)[0]
        mixed = 0.9 * shares + 0.1 * hierarchy.level_shares(tree, other)
        assert (costs / mixed**2).sum() >= value * (1 - 1e-9)


def test_cube_root_is_geometric_on_perfect_trees():
    tree = hierarchy.perfect_tree(8, 3)
    np.testing.assert_allclose(
        hierarchy.cube_root_shares(tree, np.ones(tree.n_nodes)), hierarchy.geometric_shares(tree)
    )
    np.testing.assert_allclose(
        hierarchy.geometric_shares(tree)[[0, 1, 9, 73]], np.array([1, 2, 4, 8]) / 15
    )


def test_zero_costs_and_bad_costs():
    tree = hierarchy.perfect_tree(2, 2)
    np.testing.assert_array_equal(
        hierarchy.cube_root_shares(tree, np.zeros(7)), [0, 0, 0, 1, 1, 1, 1]
    )
    for bad in (np.full(7, -1.0), np.full(7, np.nan), np.ones(6)):
        with pytest.raises(ValueError, match="costs must hold"):
            hierarchy.cube_root_shares(tree, bad)


def test_range_usage_counts_the_covers():
    tree = hierarchy.balanced_tree(11, 3)
    covers = [smallest_cover(tree, a, b) for a in range(11) for b in range(a + 1, 12)]
    np.testing.assert_allclose(hierarchy.range_usage(tree), np.mean(covers, axis=0))


def test_level_shares_give_early_leaves_the_rest():
    tree = Tree.from_intervals([(0, 4), (0, 1), (1, 4), (1, 2), (2, 4), (2, 3), (3, 4)])
    np.testing.assert_allclose(
        hierarchy.level_shares(tree, [1, 2, 3, 4]), [0.1, 0.9, 0.2, 0.7, 0.3, 0.4, 0.4]
    )
    np.testing.assert_allclose(hierarchy.uniform_shares(tree)[0], 0.25)
    for bad in ([1, 1], [0, 0, 0, 0], [-1, 1, 1, 1], [np.nan, 1, 1, 1]):
        with pytest.raises(ValueError, match="share|Shares"):
            hierarchy.level_shares(tree, bad)
    with pytest.raises(ValueError, match="ratio"):
        hierarchy.geometric_shares(tree, ratio=0)


@given(parents(20), st.data())
def test_exact_shares_never_overspend(given_parents, data):
    tree = Tree.from_parents(given_parents)
    costs = data.draw(st.lists(st.floats(0, 10), min_size=tree.n_nodes, max_size=tree.n_nodes))
    shares = hierarchy.cube_root_shares(tree, costs)
    whole = hierarchy.exact_shares(tree, shares)
    assert whole.dtype == np.int64 and (whole >= 0).all()
    spent = (membership(tree).T @ whole).astype(int)
    assert (spent <= 10**6).all() and (spent >= 10**6 - tree.n_levels).all()
    assert (spent[whole[tree.leaves] > 0] == 10**6).all()
    assert np.abs(whole / 1e6 - shares).max() < 1e-4


def test_a_node_that_takes_all_leaves_nothing_negative():
    # The cube of the cube root of some of these costs lies below them.
    tree = Tree.from_parents([-1, 0, 0, 1, 1])
    for cost in np.linspace(0.01, 10, 1000):
        for node in range(tree.n_nodes):
            shares = hierarchy.cube_root_shares(tree, cost * (np.arange(tree.n_nodes) == node))
            assert (shares >= 0).all() and (shares <= 1).all()


def test_many_different_shares_are_rounded_down():
    tree = hierarchy.level_tree(5000, [1])
    shares = np.concatenate([[0.1], np.linspace(0.2, 0.9, 5000)])
    whole = hierarchy.exact_shares(tree, shares)
    assert len(np.unique(whole)) < 100
    assert (whole <= np.round(shares * 1e6)).all() and (whole >= shares * 1e6 * 0.979 - 1).all()


def test_exact_shares_refuse():
    tree = hierarchy.perfect_tree(2, 1)
    for bad, message in [
        ([0.5, 0.6, 0.5], "more than 1"),
        ([0.5, -0.1, 0.5], "not negative, got -0.1 for node 1"),
        ([0.5, 0.5], "each of the 3 nodes"),
        ([0.0, 0.0, 1.0], "Neither leaf 0"),
        ([np.inf, 0, 0], "finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            hierarchy.exact_shares(tree, bad)


# --- plans


@pytest.mark.parametrize(
    ("n", "counts"), [(64, (4, 16, 64)), (256, (16, 256)), (4096, (16, 256, 4096))]
)
def test_the_closed_form_of_plans_is_the_variance_of_blue(n, counts):
    shares = tuple(Fraction(k, sum(range(len(counts) + 1))) for k in range(1, len(counts) + 1))
    plan = hierarchy.LevelPlan(counts, shares)
    tree = hierarchy.level_tree(n, counts)
    nodes = hierarchy.level_shares(tree, [0, *map(float, shares)])
    blue = Blue(tree, hierarchy.share_variances(nodes))
    for name in ("lengths", "quantiles"):
        workload = hierarchy.as_workload(name, n)
        exact = hierarchy.workload_variances(blue, workload)
        tolerance = 1e-9 if n <= 1024 or name == "quantiles" else 0.02
        np.testing.assert_allclose(plan.variances(n, workload), exact, rtol=tolerance)


@pytest.mark.parametrize("n", [1000, 4096, 10_000])
def test_quantiles_are_planned_for_all_prefixes(n):
    asked = hierarchy.as_workload("quantiles", n)
    every = hierarchy.Workload(tuple(range(1, n + 1)), (1 / n,) * n, anchored=True)
    plan = hierarchy.plan_levels(n, asked)
    found = plan.variances(n, every).mean()
    assert plan.variances(n, asked).mean() == pytest.approx(found, rel=0.02)
    other = hierarchy.plan_levels(n, hierarchy.as_workload("lengths", n))
    assert found < 0.9 * other.variances(n, every).mean()


def dense_objective(n, counts, shares, workload):
    """Objective of a plan from the inverse of the information matrix and all ranges."""
    levels = [np.arange(n) * count // n for count in counts]
    information = sum(
        (level[:, None] == level) * share**2 / 2
        for level, share in zip(levels, shares, strict=True)
    )
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = np.linalg.inv(information).cumsum(axis=0).cumsum(axis=1)
    variances = []
    for length in workload.lengths:
        a = np.arange(1 if workload.anchored else n - length + 1)
        b = a + length
        variances.append((sums[b, b] - 2 * sums[a, b] + sums[a, a]).mean())
    return workload.objective(np.array(variances))


@pytest.mark.parametrize("name", ["lengths", "all", "quantiles"])
@pytest.mark.parametrize("n", [16, 64])
def test_plans_are_as_good_as_trying_everything(n, name):
    workload = hierarchy.as_workload(name, n)
    plan = hierarchy.plan_levels(n, workload)
    assert sum(plan.shares) == 1 and plan.counts[-1] == n
    found = dense_objective(n, plan.counts, [float(share) for share in plan.shares], workload)
    powers = [2**i for i in range((n // 2).bit_length())]
    grid = np.arange(1, 10) / 10
    tried = []
    for inner in (*[()], *itertools.combinations(powers, 1), *itertools.combinations(powers, 2)):
        for parts in itertools.product(grid, repeat=len(inner)):
            if sum(parts) < 0.99:
                shares = [*parts, 1 - sum(parts)]
                tried.append(dense_objective(n, (*inner, n), shares, workload))
    assert found <= min(tried) * 1.001
    assert found <= np.median(tried) * 0.9


def test_the_plan_of_theory_for_64_bins():
    """All ranges of 64 bins: seven equal levels 127, leaves alone 44, the best two levels 36.6."""
    workload = hierarchy.Workload(tuple(range(1, 65)), tuple(np.arange(64, 0, -1) / 2080))
    assert workload.objective(2.0 * np.arange(1, 65)) == pytest.approx(44.0)
    equal = hierarchy.LevelPlan(tuple(2**j for j in range(7)), (Fraction(1, 7),) * 7)
    assert workload.objective(equal.variances(64, workload)) == pytest.approx(127.2, abs=0.1)
    plan = hierarchy.plan_levels(64, workload)
    assert plan.counts == (4, 64)
    assert workload.objective(plan.variances(64, workload)) == pytest.approx(36.6, abs=0.1)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 4097, 1_000_003])
def test_plans_for_any_number_of_bins(n):
    for workload in ("lengths", "all", "quantiles", 16, [5, 900]):
        declared = hierarchy.as_workload(workload, n)
        plan = hierarchy.plan_levels(n, declared)
        assert sum(plan.shares) == 1
        tree_levels = hierarchy.level_tree(n, plan.counts).n_levels if n < 10_000 else 1
        assert tree_levels >= 1
        flat = hierarchy.LevelPlan((n,), (Fraction(1),))
        found, plain = (workload_mean(p, n, declared) for p in (plan, flat))
        assert found <= plain * 1.0001


def workload_mean(plan, n, workload):
    return float(workload.objective(plan.variances(n, workload)))


@pytest.mark.parametrize("bad", ["short", 0, -3, True, [], [0], [1.5], ["a"], None, 2.5, {}])
def test_bad_workloads(bad):
    with pytest.raises(ValueError, match="workload|length"):
        hierarchy.as_workload(bad, 100)


def test_optimal_shares_on_an_irregular_tree():
    pairs = [(0, 60), (0, 1), (1, 20), (20, 60)]
    pairs += [(i, i + 1) for i in range(1, 20)] + [(i, i + 10) for i in range(20, 60, 10)]
    tree = Tree.from_intervals(pairs + [(i, i + 1) for i in range(20, 60)])
    workload = hierarchy.as_workload("lengths", 60)

    def score(shares):
        blue = Blue(tree, hierarchy.share_variances(shares))
        return workload.objective(hierarchy.workload_variances(blue, workload))

    found = hierarchy.optimal_shares(tree, workload)
    assert hierarchy.exact_shares(tree, found) is not None
    others = [
        hierarchy.uniform_shares(tree),
        hierarchy.geometric_shares(tree),
        hierarchy.cube_root_shares(tree, hierarchy.range_usage(tree)),
        hierarchy.level_shares(tree, [0, 0, 0, 1]),
    ]
    assert score(found) < 0.97 * min(map(score, others))


def test_optimal_shares_on_an_even_tree_are_the_plan():
    tree = hierarchy.balanced_tree(4096, 16)
    workload = hierarchy.as_workload("lengths", 4096)
    shares = hierarchy.optimal_shares(tree, workload)
    plan = hierarchy.plan_levels(4096, workload)
    np.testing.assert_allclose(
        shares[tree.level_starts[:-1]], [0, *map(float, plan.shares)], atol=0.002
    )


# --- measuring


def test_measure_draws_the_noise_it_reports():
    """Scaled squares of the noise, per level: false alarm below 1e-6, a scale off by 20% fails."""
    tree = hierarchy.level_tree(4000, [40])
    shares = hierarchy.exact_shares(tree, hierarchy.level_shares(tree, [0.2, 0.3, 0.5]))
    counts = np.arange(4000)
    truth = tree.node_counts(counts)
    for epsilon in (Fraction(1, 10), Fraction(1)):
        noisy = hierarchy.measure(tree, counts, shares, epsilon, random_state=11)
        assert noisy.values.dtype == np.int64
        error = noisy.values - truth
        for level in (1, 2):
            at = slice(*tree.level_starts[level : level + 2])
            part = epsilon * Fraction(int(shares[at][0]), 10**6)
            expected = discrete_laplace_variance(part)
            np.testing.assert_allclose(noisy.variances[at], expected)
            n = error[at].size
            spread = 5 * np.sqrt((5 + 1 / expected) / n)
            ratio = (error[at] ** 2).mean() / expected
            assert abs(ratio - 1) < spread
            if level == 2:
                assert abs(ratio * 1.44 - 1) > spread and abs(ratio / 1.44 - 1) > spread


def test_unmeasured_nodes_are_not_released():
    tree = hierarchy.perfect_tree(2, 1)
    shares = hierarchy.exact_shares(tree, [0.0, 1.0, 1.0])
    noisy = hierarchy.measure(tree, [70, 80], shares, Fraction(1), random_state=0)
    assert noisy.values[0] == 0 and np.isinf(noisy.variances[0])
    assert np.isfinite(noisy.variances[1:]).all()


def test_reported_variances_are_those_of_releases():
    """Ratio of measured to reported variance over 400 releases: 5 sigma, and 20% would show."""
    tree = hierarchy.balanced_tree(60, 4)
    shares = hierarchy.exact_shares(tree, hierarchy.geometric_shares(tree))
    counts = np.arange(60) % 9
    epsilon = Fraction(1, 2)
    blue = Blue(tree, hierarchy.measured_variances(shares, epsilon))
    Q = np.stack([np.arange(60) < 17, np.arange(60) >= 30, np.arange(60) == 5], axis=1).astype(
        float
    )
    errors = []
    for seed in range(400):
        noisy = hierarchy.measure(tree, counts, shares, epsilon, random_state=seed)
        errors.append((blue.estimate(noisy.values)[tree.leaves] - counts) @ Q)
    ratio = np.mean(np.square(errors), axis=0) / blue.query_variance(Q)
    # The squared error has a relative standard deviation of at most sqrt(5) (Laplace).
    assert (np.abs(ratio - 1) < 0.4).all()
    assert abs(np.log(ratio).mean()) < 0.2


# --- the law of the noise


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_quantile_of_one_term(epsilon, level):
    variance = discrete_laplace_variance(epsilon)
    exact = discrete_laplace_quantile(level, epsilon)
    found = hierarchy.noise_quantile([1.0], [variance], level)
    assert found >= exact - 1
    assert np.floor(found) >= exact or found >= exact * 0.999
    assert found <= exact + 0.06 * np.sqrt(variance) + 1


def laplace_draws(rng, variance, size):
    """Discrete Laplace noise of a variance 2 r / (1 - r)^2, as a difference of geometrics."""
    half = 1 + 1 / variance
    r = half - np.sqrt(half**2 - 1)
    return rng.geometric(1 - r, size) - rng.geometric(1 - r, size)


@pytest.mark.parametrize("case", ["few", "many", "one dominates", "two scales"])
def test_coverage_of_sums(case):
    """Coverage over 200,000 draws: at least the level less 5 sigma, at most 1.5 points more."""
    rng = np.random.default_rng(5)
    weights, variances = {
        "few": (rng.uniform(0.2, 1, 4), np.full(4, 200.0)),
        "many": (rng.uniform(-1, 1, 150), np.full(150, 8.0)),
        "one dominates": (np.append(rng.uniform(0, 0.05, 40), 1.0), np.full(41, 2e4)),
        "two scales": (rng.uniform(0.5, 1, 60), np.repeat([200.0, 2e4], 30)),
    }[case]
    total = sum(w * laplace_draws(rng, v, 200_000) for w, v in zip(weights, variances, strict=True))
    for level in (0.8, 0.95, 0.99):
        half = hierarchy.noise_quantile(weights, variances, level)
        covered = (np.abs(total) <= half).mean()
        sigma = np.sqrt(level * (1 - level) / 200_000)
        assert level - 5 * sigma <= covered <= level + 0.015
        # The test would notice an interval that is 10% too short.
        assert (np.abs(total) <= 0.9 * half).mean() < level - 5 * sigma


@pytest.mark.parametrize("number", [1, 5, 40])
def test_terms_may_be_given_together(number):
    weights, variances = np.array([0.3, 1.0, 0.7]), np.array([8.0, 8.0, 200.0])
    times = np.array([number, 1, 2 * number])
    one_by_one = [np.repeat(each, times) for each in (weights, variances)]
    expected = hierarchy.noise_quantile(*one_by_one, 0.95)
    assert hierarchy.noise_quantile(weights, variances, 0.95, times) == pytest.approx(
        expected, rel=2e-3
    )


def test_fine_units_change_nothing():
    # Sums in small units have weights as small and variances as large.
    coarse = hierarchy.noise_quantile([1.0, 0.5], [1e6, 1e6], 0.95)
    fine = hierarchy.noise_quantile([1e-7, 0.5e-7], [1e20, 1e20], 0.95)
    assert fine == pytest.approx(coarse, rel=1e-3)


def test_quantile_of_nothing_and_bad_levels():
    assert hierarchy.noise_quantile([0.0, 1.0], [1.0, 0.0], 0.95) == 0.0
    assert hierarchy.noise_quantile([], [], 0.95) == 0.0
    for level in (0, 1, -0.5, np.nan):
        with pytest.raises(ValueError, match="level"):
            hierarchy.noise_quantile([1.0], [1.0], level)


def test_a_million_bins():
    tree = hierarchy.balanced_tree(1_000_000, 16)
    blue = Blue(tree, np.ones(tree.n_nodes))
    x = blue.estimate(np.ones(tree.n_nodes))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (hierarchy.non_negative(blue, x) > 0).all()


@settings(max_examples=150)
@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 200), min_size=1, max_size=30),
    total=st.floats(1e-3, 1e6),
)
def test_projection_to_the_simplex(values, total):
    values = np.array(values)
    x = hierarchy.project_to_simplex(values, total)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(total, rel=1e-6, abs=1e-6)
    # Optimal: all positive entries moved by the same shift, the others by less.
    shift = (x - values)[x > 0]
    assert np.ptp(shift) <= 1e-6 * (1 + np.abs(values).max())
    assert (values[x == 0] + shift.max() <= 1e-6 * (1 + np.abs(values).max())).all()


def test_projection_onto_nothing():
    assert not hierarchy.project_to_simplex(np.array([3, -1]), 0.0).any()
    assert not hierarchy.project_to_simplex(np.array([3, -1]), -2.0).any()
