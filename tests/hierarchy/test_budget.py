"""Budgets of nodes and plans of levels, against optimisers and brute force."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over
from trees import membership, of_each, parents

from skdp import hierarchy
from skdp.hierarchy import Blue, Tree
from skdp.mechanisms import discrete_laplace_quantile, discrete_laplace_variance

# --- budgets


@given(parents(12), st.data())
@settings(max_examples=60)
def test_cube_root_shares_are_optimal(given_parents, data):
    tree = Tree.from_parents(given_parents)
    costs = data.draw(of_each(tree.n_nodes, st.floats(0.1, 10)))
    shares = hierarchy.cube_root_shares(tree, costs)
    np.testing.assert_allclose(membership(tree).T @ shares, 1.0)
    # The sum of costs / shares**2 is convex, and its slope at a node is what multipliers of the
    # paths through it add up to, that is what the slopes of its children do.
    slopes, inner = costs / shares**3, ~tree.is_leaf
    np.testing.assert_allclose(tree.child_sums(slopes)[inner], slopes[inner])


def test_nodes_that_cost_nothing_leave_all_to_the_leaves():
    shares = hierarchy.cube_root_shares(hierarchy.perfect_tree(2, 2), np.zeros(7))
    assert shares.tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_level_shares_give_early_leaves_the_rest():
    tree = Tree.from_intervals([(0, 4), (0, 1), (1, 4), (1, 2), (2, 4), (2, 3), (3, 4)])
    np.testing.assert_allclose(
        hierarchy.level_shares(tree, [1, 2, 3, 4]), [0.1, 0.9, 0.2, 0.7, 0.3, 0.4, 0.4]
    )
    np.testing.assert_allclose(hierarchy.uniform_shares(tree)[0], 0.25)


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


# ------------------------------------------------------------------------------------------------
# Measuring within epsilon, and the law of the noise.


@given(parents(20), st.data())
def test_exact_shares_never_overspend(given_parents, data):
    tree = Tree.from_parents(given_parents)
    shares = hierarchy.cube_root_shares(tree, data.draw(of_each(tree.n_nodes, st.floats(0, 10))))
    whole = hierarchy.exact_shares(tree, shares)
    assert whole.dtype == np.int64 and (whole >= 0).all()
    spent = (membership(tree).T @ whole).astype(int)
    assert (spent <= 10**6).all() and (spent >= 10**6 - tree.n_levels).all()
    assert (spent[whole[tree.leaves] > 0] == 10**6).all()
    assert np.abs(whole / 1e6 - shares).max() < 1e-4


def test_many_different_shares_are_rounded_down():
    shares = np.append(0.1, np.linspace(0.2, 0.9, 5000))
    whole = hierarchy.exact_shares(hierarchy.level_tree(5000, [1]), shares)
    assert len(np.unique(whole)) < 100
    assert (whole <= np.round(shares * 1e6)).all() and (whole >= shares * 1e6 * 0.979 - 1).all()


# --- measuring


def test_measure_draws_the_noise_it_reports():
    """Scaled squares of the noise, per level: false alarm below 1e-6, a scale off by 20% fails."""
    tree = hierarchy.level_tree(4000, [40])
    shares = hierarchy.exact_shares(tree, hierarchy.level_shares(tree, [0, 0.5, 0.5]))
    counts = np.arange(4000)
    truth = tree.node_counts(counts)
    for epsilon in (Fraction(1, 10), Fraction(1)):
        noisy = hierarchy.measure(tree, counts, shares, epsilon, random_state=11)
        assert noisy.dtype == np.int64
        # What is not measured is not released.
        variances = hierarchy.measured_variances(shares, epsilon)
        assert noisy[0] == 0 and np.isinf(variances[0])
        error = noisy - truth
        for level in (1, 2):
            at = slice(*tree.level_starts[level : level + 2])
            expected = discrete_laplace_variance(epsilon * Fraction(int(shares[at][0]), 10**6))
            np.testing.assert_allclose(variances[at], expected)
            n = error[at].size
            spread = 5 * np.sqrt((5 + 1 / expected) / n)
            ratio = (error[at] ** 2).mean() / expected
            assert abs(ratio - 1) < spread
            if level == 2:
                assert abs(ratio * 1.44 - 1) > spread and abs(ratio / 1.44 - 1) > spread


# --- the law of the noise


@over("level", [0.5, 0.9, 0.95, 0.999])
@over("epsilon", [0.01, 0.1, 1.0])
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


@over("case", ["few", "many", "one dominates", "two scales"])
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


@over("number", [1, 5, 40])
def test_terms_may_be_given_together_and_in_any_unit(number):
    weights, variances = np.array([0.3, 1.0, 0.7]), np.array([8.0, 8.0, 200.0])
    times = np.array([number, 1, 2 * number])
    expected = hierarchy.noise_quantile(
        np.repeat(weights, times), np.repeat(variances, times), 0.95
    )
    found = hierarchy.noise_quantile(weights, variances, 0.95, times)
    assert found == pytest.approx(expected, rel=2e-3)
    # Sums in small units have weights as small and variances as large.
    coarse = hierarchy.noise_quantile([1.0, 0.5], [1e6, 1e6], 0.95)
    fine = hierarchy.noise_quantile([1e-7, 0.5e-7], [1e20, 1e20], 0.95)
    assert fine == pytest.approx(coarse, rel=1e-3)
    assert hierarchy.noise_quantile([0.0, 1.0], [1.0, 0.0], 0.95) == 0.0
    assert hierarchy.noise_quantile([], [], 0.95) == 0.0
