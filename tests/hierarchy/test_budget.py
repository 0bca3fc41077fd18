"""Budgets of nodes and plans of levels, against optimisers and brute force."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over
from measured_trees import membership, parents
from scipy.optimize import minimize

from skdp import hierarchy
from skdp.hierarchy import Blue, Tree

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


def test_nodes_that_cost_nothing_leave_all_to_the_leaves():
    tree = hierarchy.perfect_tree(2, 2)
    np.testing.assert_array_equal(
        hierarchy.cube_root_shares(tree, np.zeros(7)), [0, 0, 0, 1, 1, 1, 1]
    )
    for bad in (np.full(7, -1.0), np.full(7, np.nan), np.ones(6)):
        with pytest.raises(ValueError, match="costs must hold"):
            hierarchy.cube_root_shares(tree, bad)
    for workload in ("short", 0, True, [], [0], [1.5], ["a"], None, {}):
        with pytest.raises(ValueError, match="workload|length"):
            hierarchy.as_workload(workload, 100)


def test_level_shares_give_early_leaves_the_rest():
    tree = Tree.from_intervals([(0, 4), (0, 1), (1, 4), (1, 2), (2, 4), (2, 3), (3, 4)])
    np.testing.assert_allclose(
        hierarchy.level_shares(tree, [1, 2, 3, 4]), [0.1, 0.9, 0.2, 0.7, 0.3, 0.4, 0.4]
    )
    np.testing.assert_allclose(hierarchy.uniform_shares(tree)[0], 0.25)
    for bad in ([1, 1], [0, 0, 0, 0], [-1, 1, 1, 1], [np.nan, 1, 1, 1]):
        with pytest.raises(ValueError, match="share|Shares"):
            hierarchy.level_shares(tree, bad)


def test_a_node_that_takes_all_leaves_nothing_negative():
    # The cube of the cube root of some of these costs lies below them.
    tree = Tree.from_parents([-1, 0, 0, 1, 1])
    for cost in np.linspace(0.01, 10, 1000):
        for node in range(tree.n_nodes):
            shares = hierarchy.cube_root_shares(tree, cost * (np.arange(tree.n_nodes) == node))
            assert (shares >= 0).all() and (shares <= 1).all()


# --- plans


@over("n, counts", [(64, (4, 16, 64)), (256, (16, 256)), (4096, (16, 256, 4096))])
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


@over("name", ["lengths", "all", "quantiles"])
@over("n", [16, 64])
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
        hierarchy.cube_root_shares(tree, hierarchy.range_usage(tree)),
        hierarchy.level_shares(tree, [0, 0, 0, 1]),
    ]
    assert score(found) <= (1 + 1e-9) * min(map(score, others))
