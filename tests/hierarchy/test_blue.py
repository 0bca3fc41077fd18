"""Trees of counts against dense least squares, brute force and closed forms."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over
from trees import measured_trees, membership, of_each, parents

from skdp import hierarchy
from skdp._validation import project_to_simplex
from skdp.hierarchy import Blue, Tree

PAIR = hierarchy.perfect_tree(2, 1)

# --- estimates


@settings(max_examples=150)
@given(measured_trees(exact=False))
def test_blue_is_dense_least_squares(case):
    """Wherever the measured nodes determine it; those of infinite variances were not measured."""
    tree, values, variances = case
    blue = Blue(tree, variances)
    x = blue.estimate(values)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(np.where(tree.is_leaf, x, tree.child_sums(x)), x, atol=1e-9)
    A, used = membership(tree), np.isfinite(variances)
    scaled = A[used] / np.sqrt(variances[used])[:, None]
    rank = np.linalg.matrix_rank(A[used]) if used.any() else 0
    # Each node, and other sums of leaves.
    for node, asked in enumerate([*A, np.ones(A.shape[1]), np.arange(A.shape[1]) - 2.0]):
        known = used.any() and np.linalg.matrix_rank(np.vstack([A[used], asked])) == rank
        found = [blue.query_variance(asked), *blue.variances[node : node + 1]]
        assert (np.isfinite(found) == known).all()
        if not known:
            with pytest.raises(ValueError, match="do not determine"):
                blue.noise_weights(asked)
            continue
        # By pseudo-inverse: the estimate of a determined sum is unique.
        row = asked @ np.linalg.pinv(scaled) / np.sqrt(variances[used])
        np.testing.assert_allclose(asked @ x[tree.leaves], row @ values[used], atol=1e-7)
        np.testing.assert_allclose(found, row**2 @ variances[used], rtol=1e-7, atol=1e-10)
        weights = blue.noise_weights(asked)
        np.testing.assert_allclose(weights[used], row, rtol=1e-6, atol=1e-8)
        assert (weights[~used] == 0).all()


@settings(max_examples=100)
@given(parents(), st.data())
def test_exact_nodes_are_the_limit_of_small_variances(given_parents, data):
    tree = Tree.from_parents(given_parents)
    truth = data.draw(of_each(tree.n_bins, st.integers(0, 20)))
    counts = tree.node_counts(truth).astype(float)
    exact = data.draw(of_each(tree.n_nodes, st.booleans()))
    variances = np.where(exact, 0.0, 1.0 + np.arange(tree.n_nodes) % 3)
    values = counts + np.where(exact, 0.0, np.sin(np.arange(tree.n_nodes)) * 5)
    blue, near = Blue(tree, variances), Blue(tree, np.where(exact, 1e-7, variances))
    np.testing.assert_allclose(blue.estimate(values), near.estimate(values), atol=1e-4)
    np.testing.assert_allclose(blue.variances, near.variances, atol=1e-5)
    np.testing.assert_allclose(blue.estimate(values)[exact], counts[exact], atol=1e-9)
    assert (blue.variances[exact] <= 1e-12).all()


def test_contradicting_exact_values():
    """Those nearest the leaves win, and the result is consistent."""
    np.testing.assert_array_equal(Blue(PAIR, [0.0, 0.0, 0.0]).estimate([10, 3, 4]), [7, 3, 4])
    # Not measured: ignored.
    assert np.isfinite(Blue(PAIR, [1, np.inf, 1]).estimate([1, np.nan, 1])).all()
    for nothing in (0.0, -2.0):
        assert not project_to_simplex(np.array([3, -1]), nothing).any()


@settings(max_examples=60)
@given(st.integers(1, 400), st.sampled_from([2, 3, 12, "levels", "wide"]), st.integers(0, 10**6))
def test_range_variances(n_bins, kind, seed):
    """The walk along two paths equals the sum over all nodes, for ranges cut anywhere."""
    rng = np.random.default_rng(seed)
    if kind == "levels":
        tree = hierarchy.level_tree(n_bins, [1, max(1, n_bins // 3)])
    elif kind == "wide":  # leaves of several bins
        ends = np.cumsum([0, *rng.integers(1, 9, n_bins)])
        pairs = [(0, ends[-1])]
        pairs += [(ends[i], ends[min(i + 40, n_bins)]) for i in range(0, n_bins, 40)]
        tree = Tree.from_intervals(pairs + list(itertools.pairwise(ends)))
    else:
        tree = hierarchy.balanced_tree(n_bins, kind)
    blue = Blue(tree, np.exp(rng.normal(size=tree.n_nodes)))
    start = rng.uniform(-1, tree.n_bins, 20)
    stop = start + rng.uniform(0, tree.n_bins, 20)
    start[:10], stop[:10] = np.floor(start[:10]), np.ceil(stop[:10])
    weights = tree.overlaps(np.clip(start, 0, tree.n_bins), np.clip(stop, 0, tree.n_bins))
    found, exact = blue.range_variances(start, stop), blue.query_variance(weights)
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12)


# --- non-negative counts


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.floats(-10, 10), st.floats(0.1, 10)), min_size=1, max_size=7),
    st.floats(0.01, 20),
    st.booleans(),
)
def test_projection_of_a_family(children, total, deep):
    z, s = np.array(children).T
    chain = 30 if deep else 0
    tree = Tree.from_parents([*range(-1, chain), *[chain] * len(z)])
    variances = np.concatenate([[1e-9], np.full(chain, np.inf), s])
    values = np.concatenate([[total], np.zeros(chain), z])
    root, x = np.split(hierarchy.non_negative(Blue(tree, variances), values), [1])
    x = x[chain:]
    assert x.sum() == pytest.approx(float(root[0])) and (x >= 0).all()
    # The nearest counts of this sum: each is moved by its variance times one number, or is 0.
    moves = (x - z) / s
    kept = x > 1e-6
    assert np.ptp(moves[kept]) <= 1e-5 and (moves >= moves[kept].min() - 1e-5).all()


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


@settings(max_examples=150)
@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 200), min_size=1, max_size=30),
    total=st.floats(1e-3, 1e6),
)
def test_projection_to_the_simplex(values, total):
    values = np.array(values)
    x = project_to_simplex(values, total)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(total, rel=1e-6, abs=1e-6)
    # Optimal: all positive entries moved by the same shift, the others by less.
    shift = (x - values)[x > 0]
    assert np.ptp(shift) <= 1e-6 * (1 + np.abs(values).max())
    assert (values[x == 0] + shift.max() <= 1e-6 * (1 + np.abs(values).max())).all()


# ------------------------------------------------------------------------------------------------
# GBLUE and Boost.


@settings(max_examples=40)
@given(measured_trees(exact=False, largest=12, spread=4.0))
def test_gblue_converges_to_blue(case):
    tree, values, variances = case
    blue = Blue(tree, variances)
    found, _ = hierarchy.gblue(tree, values, variances, tol=1e-9)
    known = np.isfinite(blue.variances)
    np.testing.assert_allclose(found[known], blue.estimate(values)[known], atol=1e-6)
    assert np.isfinite(found).all()
    # As in the paper: equal variances.
    equal, _ = hierarchy.gblue(tree, values, tol=1e-9)
    np.testing.assert_allclose(equal, Blue(tree, np.ones(tree.n_nodes)).estimate(values), atol=1e-6)


def test_gblue_says_when_it_stops_early():
    tree = hierarchy.perfect_tree(2, 6)
    with pytest.warns(RuntimeWarning, match="3 sweeps"):
        assert hierarchy.gblue(tree, np.arange(tree.n_nodes) % 7, max_sweeps=3)[1] == 3


@over("branching, height", [(2, 0), (2, 5), (3, 3), (12, 2)])
def test_boost_is_blue_on_perfect_trees(branching, height):
    tree = hierarchy.perfect_tree(branching, height)
    values = np.random.default_rng(0).normal(size=tree.n_nodes)
    np.testing.assert_allclose(
        hierarchy.boost(values, branching),
        Blue(tree, np.ones(tree.n_nodes)).estimate(values),
        atol=1e-10,
    )
