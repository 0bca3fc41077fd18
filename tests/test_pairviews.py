"""Pair views: what they cost, how one record changes them, and that all of them are noisy."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp
from skdp import Categorical, Domain, Numeric, PairViewSynthesizer, Synopsis, Taxonomy
from skdp._random import noise_source
from skdp.kernels.pairviews import (
    box_trees,
    choice,
    errors,
    maps,
    measure,
    pair_views,
    pair_views_parts,
    pairs,
    simulation,
    single,
    view_shares,
)
from skdp.kernels.pairviews.box_trees import TreeMeasurement, TreePlan, measure_tree, spread
from skdp.kernels.pairviews.choice import SCORE_RANGE, choose_pairs, gram, pair_scores
from skdp.kernels.pairviews.errors import (
    error_class,
    exact_answers,
    publish_errors,
    random_weights,
)
from skdp.kernels.pairviews.maps import map_counts, measure_map
from skdp.kernels.pairviews.pairs import PAIR_PLAN
from skdp.kernels.pairviews.raking import rake
from skdp.mechanisms import discrete_laplace, noisy_max, top_k
from skdp.release import ErrorBars, PairTable, TreeDensity, TreeModel, couple
from skdp.rows import CountTable

ONE = Fraction(1)


def random_table(rng, shape, n):
    codes = np.stack([rng.integers(0, size, n) for size in shape], axis=1)
    return CountTable.from_codes(codes, shape)


def neighbours(table):
    """The tables with one record more, for every cell of a small domain."""
    full = np.repeat(table.codes, table.counts, axis=0)
    for cell in itertools.product(*(range(size) for size in table.shape)):
        yield CountTable.from_codes(np.vstack([full, [cell]]), table.shape)


# --- the budget


@settings(max_examples=100)
@given(
    epsilon=st.fractions(Fraction(1, 10_000), 100).filter(bool),
    shape=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    share=st.sampled_from([0, 0.05, 0.3]),
    total=st.floats(-1e5, 1e8),
    labelled=st.booleans(),
)
def test_parts_sum_to_epsilon(epsilon, shape, share, total, labelled):
    parts = pair_views_parts(epsilon, shape, share)
    assert sum(parts.values()) == epsilon
    assert parts.get("errors", 0) == epsilon * Fraction(str(share))
    n_used = sum(size > 1 for size in shape)
    shares = view_shares(parts["views"], total, n_used, labelled=labelled)
    assert sum(shares[:4]) == parts["views"] and min(shares[:4]) >= 0
    assert 0 <= shares.n_pairs <= max(n_used - 1, 0)
    assert 0 <= shares.n_extra <= n_used * (n_used - 1) // 2 - shares.n_pairs
    # Only what is measured has a budget.
    assert bool(shares.pairs) == bool(shares.n_pairs)
    assert bool(shares.extra) == bool(shares.n_extra)
    assert sum(single.single_shares(shape)) == (1 if n_used else 0)


@pytest.mark.parametrize("share", [-0.1, 1, 2.5, math.nan, "a", None, True])
def test_error_share_is_checked_before_anything_is_spent(share):
    ledger = skdp.PrivacyLedger()
    domain = Domain({"a": Numeric(0, 1, bins=4)})
    with pytest.raises((ValueError, TypeError), match="error_share"):
        PairViewSynthesizer(domain=domain, error_share=share, ledger=ledger).fit([[0.5]])
    assert ledger.spent == 0


class Recorder:
    """Stands in for a mechanism and records the arguments of each call."""

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.calls = []

    def __call__(self, values, *args, **kwargs):
        self.calls.append((np.array(values, copy=True), *args))
        return self.mechanism(values, *args, **kwargs)


@pytest.mark.parametrize("n", [0, 3000, 60_000])
@pytest.mark.parametrize("target", [None, 1])
def test_every_call_of_a_mechanism_is_paid_for(monkeypatch, n, target):
    """Add up what is spent on one record by the calls themselves, not by the plan."""
    noise, best, top = Recorder(discrete_laplace), Recorder(noisy_max), Recorder(top_k)
    for module in (box_trees, errors, measure, single):
        monkeypatch.setattr(module, "discrete_laplace", noise)
    monkeypatch.setattr(choice, "noisy_max", best)
    monkeypatch.setattr(choice, "top_k", top)
    trees = []

    def noted(counts, epsilon, *args, **kwargs):
        before = len(noise.calls)
        trees.append(epsilon)
        result = measure_tree(counts, epsilon, *args, **kwargs)
        del noise.calls[before:]  # the tree has a test of its own
        return result

    for module in (pairs, single):
        monkeypatch.setattr(module, "measure_tree", noted)

    def spent():
        """What was spent since the last call of this function, and the calls for noise."""
        total = sum(trees, Fraction(0))
        for _, price, *_ in noise.calls:
            total += price
        for _, price, score_range in best.calls:
            assert score_range == SCORE_RANGE
            total += price
        for _, _, price, score_range in top.calls:
            assert score_range == SCORE_RANGE
            total += price
        calls = [args[0] if args else 1 for _, _, *args in noise.calls]
        for record in (trees, noise.calls, best.calls, top.calls):
            record.clear()
        return total, calls

    measure_all = measure.measure_table
    measured = []

    def by_table(table, *args, **kwargs):
        model = measure_all(table, *args, **kwargs)
        measured.append((table, *spent()))
        return model

    monkeypatch.setattr(measure, "measure_table", by_table)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 60, n)
    codes = np.stack([x, x // 20, rng.integers(0, 4, n), (x % 7)], axis=1)
    table = CountTable.from_codes(codes, (60, 3, 4, 7))
    epsilon = Fraction(13, 10)
    parts = pair_views_parts(epsilon, table.shape, 0.05)
    pair_views(table, parts, label=target, random_state=1)
    price, sensitivities = spent()
    assert price == parts["errors"] and sensitivities in ([1], [ErrorBars.MOST])
    # Without a label one table of all records; with one a table for each class, each within the
    # same price, and no record in two of them.
    assert len(measured) == (1 if target is None else 3)
    assert sum(mine.n for mine, *_ in measured) == table.n
    for code, (mine, price, sensitivities) in enumerate(measured):
        assert price + parts["errors"] == epsilon
        # The total, and the views that are measured cell by cell.
        assert sensitivities == [1] * (4 if target is None else 3)
        if target is not None:
            assert mine.shape == (60, 1, 4, 7)
            assert mine.n == table.dense((target,))[code]


def test_a_record_changes_the_measurements_of_its_own_class_only():
    """With a seed for each class, one record more changes no other class."""
    rng = np.random.default_rng(0)
    table = random_table(rng, (12, 3, 4, 5), 3000)
    orders = [np.arange(size) for size in table.shape]
    parts = pair_views_parts(Fraction(2), table.shape, 0)

    def models(table):
        return [
            measure.measure_class(table, code, 1, parts, orders, noise_source(code))
            for code in range(3)
        ]

    more = CountTable.from_codes(
        np.concatenate([table.codes, [[3, 1, 0, 2]]]),
        table.shape,
        np.concatenate([table.counts, [500]]),
    )
    before, after = models(table), models(more)
    assert after[1].total == pytest.approx(before[1].total + 500, abs=60)
    for code in (0, 2):
        assert after[code].total == before[code].total
        for mine, other in zip(
            before[code].density.marginals, after[code].density.marginals, strict=True
        ):
            np.testing.assert_array_equal(mine, other)
    for code, model in enumerate(before):
        assert model.view([1]).nonzero()[0].tolist() == [code]


# --- the adaptive tree


def path_prices(measured):
    prices = [measured.prices[kind] for kind in measured.price]
    sums = list(prices)
    for node in range(1, len(prices)):
        sums[node] += sums[measured.parent[node]]
    return [sums[leaf] for leaf in np.flatnonzero(measured.is_leaf)]


@settings(max_examples=60)
@given(
    shape=st.one_of(
        st.tuples(st.integers(2, 80)),
        st.tuples(st.integers(1, 25), st.integers(2, 25)),
        st.tuples(st.integers(1, 6), st.integers(2, 6), st.integers(1, 6)),
    ),
    epsilon=st.sampled_from([Fraction(1, 100), Fraction(1, 3), Fraction(5), Fraction(100)]),
    scale=st.sampled_from([0, 3, 1000]),
    plan=st.sampled_from([PAIR_PLAN, TreePlan(2, Fraction(5, 2), 8), TreePlan(1, ONE, 64)]),
    seed=st.integers(0, 1000),
)
def test_every_path_costs_exactly_epsilon(shape, epsilon, scale, plan, seed):
    rng = np.random.default_rng(seed)
    counts = (scale * rng.gamma(0.2, size=shape)).astype(np.int64)
    masses = [rng.gamma(0.3, size=size) + 1e-6 for size in shape]
    measured = measure_tree(counts, epsilon, counts.sum(), masses, plan, random_state=seed)
    assert set(path_prices(measured)) == {epsilon}
    assert (measured.variances[1:] > 0).all() and np.isfinite(measured.variances).all()
    # The leaves are a partition: each cell lies in one of them.
    covered = np.zeros(shape, dtype=int)
    for leaf in np.flatnonzero(measured.is_leaf):
        sides = zip(measured.lower[leaf], measured.upper[leaf], strict=True)
        covered[tuple(slice(low, high) for low, high in sides)] += 1
    assert (covered == 1).all()
    # Children of one node do not overlap and fill it: levels compose in parallel.
    volume = np.prod(measured.upper - measured.lower, axis=1)
    children = np.bincount(measured.parent[1:], weights=volume[1:], minlength=len(volume))
    inner = ~measured.is_leaf
    np.testing.assert_array_equal(children[inner], volume[inner])
    assert (np.bincount(measured.parent[1:], minlength=len(volume))[inner] >= 2).all()
    assert np.bincount(measured.parent[1:]).max() <= max(plan.cap * 2, 4)


def test_a_tree_measures_every_box_with_the_budget_it_names(monkeypatch):
    noise = Recorder(discrete_laplace)
    monkeypatch.setattr(box_trees, "discrete_laplace", noise)
    rng = np.random.default_rng(2)
    counts = rng.poisson(3.0, size=(30, 30))
    masses = [np.ones(30)] * 2
    measured = measure_tree(counts, ONE, counts.sum(), masses, PAIR_PLAN, random_state=0)
    sizes = {}
    for exact, price in noise.calls:
        sizes[price] = sizes.get(price, 0) + len(np.atleast_1d(exact))
        # A record lies in one box at most of what is measured with one price.
        assert exact.sum() <= counts.sum()
    budgets = PAIR_PLAN.budgets(ONE)
    assert sum(budgets) == ONE
    # Each box once with the budget of its level; those that end early once more with the rest.
    level = np.zeros(len(measured.parent), dtype=int)
    for node in range(1, len(level)):
        level[node] = level[measured.parent[node]] + 1
    for depth in range(1, level.max() + 1):
        assert sizes[budgets[depth - 1]] >= (level == depth).sum()
        early = measured.is_leaf & (level == depth)
        rest = sum(budgets[depth:], Fraction(0))
        if rest:
            assert sizes[rest] >= early.sum()
    assert (
        sum(sizes.values()) == (level > 0).sum() + (measured.is_leaf & (level < len(budgets))).sum()
    )


def test_splits_follow_from_released_numbers_alone(monkeypatch):
    """With the noise fixed so that released counts are equal, tables cannot be told apart."""

    def constant(values, *args, **kwargs):
        return np.full_like(np.asarray(values), 200)

    monkeypatch.setattr(box_trees, "discrete_laplace", constant)
    masses = [np.ones(20), np.linspace(1, 2, 20)]
    rng = np.random.default_rng(0)
    trees = [
        measure_tree(rng.poisson(mean, size=(20, 20)), ONE, 5000.0, masses, PAIR_PLAN)
        for mean in (0, 4, 90)
    ]
    for tree in trees[1:]:
        for mine, first in zip(tree, trees[0], strict=True):
            np.testing.assert_array_equal(mine, first)


def test_estimates_are_consistent_and_not_negative():
    rng = np.random.default_rng(4)
    counts = rng.poisson(rng.gamma(0.2, 20, size=(40, 25)))
    masses = [np.ones(40), np.ones(25)]
    measured = measure_tree(
        counts, Fraction(1, 2), float(counts.sum()), masses, PAIR_PLAN, random_state=1
    )
    estimates = measured.estimates()
    assert (estimates >= 0).all()
    sums = np.bincount(measured.parent[1:], weights=estimates[1:], minlength=len(estimates))
    inner = ~measured.is_leaf
    np.testing.assert_allclose(sums[inner], estimates[inner], atol=1e-6)
    table = spread(measured, np.full(counts.shape, 1e-3))
    assert table.sum() == pytest.approx(counts.sum())
    exact = np.abs(table - counts).sum()
    flat = np.abs(counts.mean() - counts).sum()
    assert exact < 0.7 * flat


def test_much_budget_recovers_the_table():
    rng = np.random.default_rng(4)
    counts = rng.poisson(rng.gamma(0.5, 20, size=(12, 9)))
    masses = [np.ones(12), np.ones(9)]
    measured = measure_tree(counts, Fraction(100), counts.sum(), masses, PAIR_PLAN)
    table = spread(measured, np.ones(counts.shape))
    assert np.abs(table - counts).max() <= 2


# --- the only pair


@settings(max_examples=60)
@given(
    shape=st.tuples(st.integers(1, 60), st.integers(2, 60)),
    epsilon=st.sampled_from([Fraction(1, 100), Fraction(1, 3), Fraction(5), Fraction(100)]),
    scale=st.sampled_from([0, 0.01, 3, 1000]),
    seed=st.integers(0, 1000),
)
def test_every_path_of_a_map_costs_exactly_epsilon(shape, epsilon, scale, seed):
    rng = np.random.default_rng(seed)
    counts = (scale * rng.gamma(0.2, size=shape)).astype(np.int64)
    noise = Recorder(discrete_laplace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maps, "discrete_laplace", noise)
        measured = measure_map(counts, epsilon, float(counts.sum()), 2.0, random_state=seed)
    assert set(path_prices(measured)) == {epsilon}
    # Down every path, what the calls themselves spend on a box adds up to what it names.
    spent = sum(price * len(exact) for exact, price in noise.calls)
    assert spent == sum(measured.prices[kind] for kind in measured.price)
    covered = np.zeros(shape, dtype=int)
    for leaf in np.flatnonzero(measured.is_leaf):
        sides = zip(measured.lower[leaf], measured.upper[leaf], strict=True)
        covered[tuple(slice(low, high) for low, high in sides)] += 1
    assert (covered == 1).all()
    volume = np.prod(measured.upper - measured.lower, axis=1)
    children = np.bincount(measured.parent[1:], weights=volume[1:], minlength=len(volume))
    np.testing.assert_array_equal(children[~measured.is_leaf], volume[~measured.is_leaf])
    table, _ = map_counts(measured, np.ones(shape, dtype=bool))
    assert (table >= 0).all() and np.isfinite(table).all() and table.sum() > 0


def test_the_boxes_of_a_map_follow_from_released_numbers_alone(monkeypatch):
    """With the noise fixed so that released counts are equal, tables cannot be told apart."""

    def constant(values, *args, **kwargs):
        return 40 * (np.arange(len(values)) % 7)

    monkeypatch.setattr(maps, "discrete_laplace", constant)
    rng = np.random.default_rng(0)
    trees = [measure_map(rng.poisson(mean, size=(50, 60)), ONE, 900.0, 2.0) for mean in (0, 4, 90)]
    assert np.unique(trees[0].price).size > 4
    for tree in trees[1:]:
        for mine, first in zip(tree, trees[0], strict=True):
            np.testing.assert_array_equal(mine, first)


@pytest.mark.parametrize(("shape", "share"), [((12, 9), ONE), ((90, 80), Fraction(6, 7))])
def test_a_dense_map_is_measured_cell_by_cell(shape, share):
    counts = np.random.default_rng(0).poisson(300.0, size=shape)
    measured = measure_map(counts, ONE, float(counts.sum()), 2.0, random_state=0)
    volume = np.prod(measured.upper - measured.lower, axis=1)
    assert (volume[measured.is_leaf] == 1).all()
    assert {measured.prices[kind] for kind in measured.price[measured.is_leaf]} == {share}


def test_an_empty_region_is_one_box_and_gets_the_whole_budget():
    counts = np.zeros((128, 128), dtype=np.int64)
    counts[:8, :8] = 40
    measured = measure_map(counts, ONE, float(counts.sum()), 2.0, random_state=0)
    volume = np.prod(measured.upper - measured.lower, axis=1)
    leaf = measured.is_leaf
    assert volume[leaf].max() > 256 and leaf.sum() < 400
    table, total = map_counts(measured, np.ones(counts.shape, dtype=bool))
    assert total == pytest.approx(counts.sum(), abs=80)
    assert np.abs(table - counts)[:8, :8].mean() < 8 and table[40:, 40:].mean() < 0.02


def test_independent_columns_are_recognised():
    rng = np.random.default_rng(0)
    mean = np.outer(0.9 ** np.arange(40), 1 / np.arange(1, 31))
    free = rng.poisson(2000 * mean / mean.sum())
    bound = rng.poisson(np.where((np.indices(mean.shape).sum(axis=0) % 40) < 8, 8.0, 0.1))
    found = []
    for counts in (free, bound):
        epsilon = Fraction(1, 4)
        measured = measure_map(counts, epsilon, float(counts.sum()), 10.0, random_state=1)
        table, _ = map_counts(measured, np.ones(counts.shape, dtype=bool))
        product = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        found.append(np.abs(table - product).sum() / table.sum())
    assert found[0] < 1e-9 and found[1] > 0.5


def test_forbidden_cells_of_a_map_are_empty():
    rng = np.random.default_rng(0)
    allowed = np.ones((30, 20), dtype=bool)
    allowed[:10, 5:] = False
    counts = rng.poisson(20, size=allowed.shape) * allowed
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(100)):
        measured = measure_map(counts, epsilon, float(counts.sum()), 2.0, random_state=0)
        table, _ = map_counts(measured, allowed)
        assert (table[~allowed] == 0).all() and table.sum() > 0


def test_leaves_are_drawn_towards_the_model_by_their_noise():
    model = np.array([[100.0, 100.0, 100.0, 100.0]])
    leaves = np.array([0, 1, 2, 3])[:, None]
    values = np.array([400.0, 0.0, 150.0, 150.0, 100.0])

    def table(deviation, **kwargs):
        measured = TreeMeasurement(
            lower=np.concatenate([[[0, 0]], np.hstack([0 * leaves, leaves])]),
            upper=np.concatenate([[[1, 4]], np.hstack([0 * leaves + 1, leaves + 1])]),
            parent=np.array([-1, 0, 0, 0, 0]),
            values=values,
            variances=np.array([0.0, *[deviation**2] * 4]),
            prices=[ONE],
            price=np.zeros(5, dtype=np.int64),
        )
        return spread(measured, model, **kwargs)[0]

    np.testing.assert_allclose(table(50.0), values[1:], atol=1e-9)
    # A doubt of half the larger of the two, 50 or 75, against noise of 50.
    expected = [50.0, 100 + 50 * 9 / 13, 100 + 50 * 9 / 13, 100.0]
    np.testing.assert_allclose(table(50.0, trust=2.0), expected)
    np.testing.assert_allclose(table(1e-6, trust=2.0), values[1:], atol=1e-9)
    np.testing.assert_allclose(table(1e6, trust=2.0), model[0], atol=1e-3)


# --- choosing pairs


def test_gram_counts_all_pairs():
    rng = np.random.default_rng(0)
    table = random_table(rng, (5, 3, 9), 20_000)
    bins = [np.array([0, 0, 1, 1, 2]), np.arange(3), np.arange(9) // 4]
    counts, starts = gram(table, bins)
    assert starts.tolist() == [0, 3, 6, 9]
    for a, b in itertools.product(range(3), repeat=2):
        expected = np.zeros((3, 3), dtype=np.int64)
        for row, number in zip(table.codes, table.counts, strict=True):
            expected[bins[a][row[a]], bins[b][row[b]]] += number
        np.testing.assert_array_equal(counts[3 * a : 3 * a + 3, 3 * b : 3 * b + 3], expected)


def test_gram_stays_exact_for_large_counts():
    codes = np.array([[0, 0], [0, 1], [1, 1]])
    counts = np.array([2**40 + 1, 3, 2**24 + 1])
    table = CountTable.from_codes(codes, (2, 2), counts)
    found, _ = gram(table, [np.arange(2), np.arange(2)])
    assert found[0, 2] == 2**40 + 1 and found[0, 3] == 3 and found[1, 3] == 2**24 + 1


@pytest.mark.parametrize("seed", range(5))
def test_one_record_changes_every_score_by_exactly_one(seed):
    """The sensitivity of the choice, by brute force over all records that can be added."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, (3, 2, 4), int(rng.integers(0, 12)))
    bins = [np.array([0, 1, 1]), np.arange(2), np.arange(4)]
    counts, starts = gram(table, bins)
    expected = rng.integers(0, 4, size=counts.shape)
    scores = pair_scores(counts, expected, starts)
    changes = set()
    for more in neighbours(table):
        after = pair_scores(gram(more, bins)[0], expected, starts)
        changes |= set((after - scores)[np.triu_indices(3, 1)].tolist())
    assert changes == {-1, 1}
    assert SCORE_RANGE == max(changes) - min(changes)


def test_the_choice_has_no_cycle_and_takes_the_best():
    scores = np.array(
        [[0, 900, 800, 10], [900, 0, 850, 5], [800, 850, 0, 7], [10, 5, 7, 0]], dtype=np.int64
    )
    chosen = choose_pairs(scores, 3, Fraction(50), random_state=0)
    assert chosen == [(0, 1), (1, 2), (0, 3)]
    labelled = choose_pairs(scores, 3, Fraction(50), label=2, random_state=0)
    assert sorted(labelled) == [(0, 2), (1, 2), (2, 3)]
    some = choose_pairs(scores, 2, Fraction(50), among=[3, 2, 1], random_state=0)
    assert some == [(1, 2), (2, 3)]


@pytest.mark.parametrize("target", [None, "d", "e"])
@pytest.mark.parametrize("seed", range(4))
def test_columns_with_one_value_are_in_no_pair(seed, target):
    # Noise could choose a pair that carries no information.
    rng = np.random.default_rng(0)
    domain = Domain(
        {
            **{name: Numeric(0, 3, integer=True) for name in "abc"},
            "d": Categorical(["k"]),
            "e": Categorical(["l", "m"]),
        }
    )
    frame = pd.DataFrame(rng.integers(0, 4, (8000, 3)), columns=list("abc"))
    frame = frame.assign(d="k", e=rng.choice(["l", "m"], 8000))
    view = PairViewSynthesizer(1.0, domain=domain, target=target, random_state=seed).fit(frame)
    pairs = view.synopsis_.model.pairs
    assert pairs and 3 not in {axis for pair in pairs for axis in pair}
    if target == "e":
        assert 4 not in {axis for pair in pairs for axis in pair}


def test_a_weak_budget_chooses_at_random():
    scores = np.array([[0, 9, 0], [9, 0, 0], [0, 0, 0]], dtype=np.int64)
    chosen = {
        choose_pairs(scores, 1, Fraction(1, 1000), random_state=seed)[0] for seed in range(60)
    }
    assert chosen == {(0, 1), (0, 2), (1, 2)}


# --- single attributes


def test_unordered_categories_are_not_cut_by_their_codes():
    """Renaming categories does not change the accuracy: their codes have no order."""
    rng = np.random.default_rng(0)
    n = 30_000
    a = np.minimum(rng.geometric(0.05, n) - 1, 59)
    b = np.where(rng.random(n) < 0.8, a % 3, rng.integers(0, 3, n))
    errors = {}
    shuffled = rng.permutation(60)
    for name, rename in (("sorted", np.arange(60)), ("shuffled", shuffled)):
        codes = np.stack([rename[a], b], axis=1)
        table = CountTable.from_codes(codes, (60, 3))
        exact = table.dense()
        found = []
        for seed in range(6):
            parts = pair_views_parts(Fraction(1, 10), table.shape, 0)
            model = pair_views(table, parts, orders=[None, None], random_state=seed)
            found.append(np.abs(model.view([0, 1]) - exact).sum())
        errors[name] = np.mean(found)
    assert errors["shuffled"] < 1.15 * errors["sorted"]


# --- pairs beyond the tree


def test_a_view_that_no_record_agrees_with_leaves_their_weights():
    tree = TreeDensity([np.array([0.0, 1.0]), np.array([0.25, 0.75])], [], {})
    rows = np.array([[0, 0], [0, 1]], dtype=np.int32)
    np.testing.assert_allclose(rake(rows, tree, [], rounds=3), [0.25, 0.75])


def test_raked_records_agree_with_all_views():
    rng = np.random.default_rng(0)
    joint = rng.gamma(1.0, size=(3, 4, 5))
    joint /= joint.sum()
    marginals = [joint.sum(axis=(1, 2)), joint.sum(axis=(0, 2)), joint.sum(axis=(0, 1))]
    pairs = [
        PairTable((0, 1), joint.sum(axis=2)),
        PairTable((1, 2), joint.sum(axis=0)),
        PairTable((0, 2), joint.sum(axis=1)),
    ]
    tree = TreeDensity(marginals, pairs[:2])
    rows = tree.sample(20_000, rng)
    weights = rake(rows, tree, pairs, rounds=60)
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1)
    for pair in pairs:
        sizes = pair.table.shape
        cell = np.ravel_multi_index(rows[:, pair.axes].T, sizes)
        found = np.bincount(cell, weights=weights, minlength=pair.table.size).reshape(sizes)
        np.testing.assert_allclose(found, pair.table, atol=1e-4)
    # Before raking the extra pair is off by much more.
    implied = tree.pair(0, 2)
    assert np.abs(implied - pairs[2].table).max() > 5e-3


# --- error bars


def released(table, epsilon=1, seed=0, **kwargs):
    parts = pair_views_parts(Fraction(epsilon), table.shape, 0.05)
    return pair_views(table, parts, random_state=seed, **kwargs)


@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1000)])
def test_published_quantile_has_the_sensitivity_that_is_paid_for(monkeypatch, share):
    """One record more moves the quantile by at most the sensitivity, for every record."""
    rng = np.random.default_rng(3)
    table = random_table(rng, (2, 2, 2), 40)
    model = released(table, Fraction(1, 10))
    noise = Recorder(discrete_laplace)
    monkeypatch.setattr(errors, "discrete_laplace", noise)
    ordered = [True, False, True]
    publish_errors(table, model, share, ordered, random_state=0)
    before, _, sensitivity = noise.calls[-1]
    assert sensitivity == (1 if share < 1 else ErrorBars.MOST)
    moves = set()
    for more in neighbours(table):
        publish_errors(more, model, share, ordered, random_state=0)
        moves.add(int(abs(noise.calls[-1][0] - before)))
    assert 0 < max(moves) <= sensitivity


def test_exact_answers_do_not_depend_on_the_way(monkeypatch):
    rng = np.random.default_rng(0)
    table = random_table(rng, (8, 7, 3), 500)
    batches = list(error_class(table.shape, [True, False, True]))
    assert sum(len(queries) for _, queries in batches) == 2000
    densely = [exact_answers(table, *batch) for batch in batches]
    monkeypatch.setattr(errors, "_ERROR_CELLS", 0)
    by_rows = [exact_answers(table, *batch) for batch in batches]
    for mine, other in zip(densely, by_rows, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert any(answers.any() for answers in densely)


@pytest.mark.parametrize(
    ("epsilon", "scaled"), [("0.1", False), pytest.param(4, True, marks=pytest.mark.slow)]
)
def test_intervals_cover_fresh_queries_of_the_class(epsilon, scaled):
    # 2,000 published and 2,000 fresh queries on each of 8 releases. Coverage below 95% less three
    # standard errors in the mean over the releases would be a defect; intervals made five
    # times narrower must fail.
    rng = np.random.default_rng(1)
    n = 20_000
    x = rng.gamma(2.0, 8.0, n).astype(int)
    codes = np.stack([np.minimum(x, 59), (x // 3 + rng.integers(0, 4, n)) % 20, x % 5], axis=1)
    table = CountTable.from_codes(codes, (60, 20, 5))
    covered, narrow, ratios = [], [], []
    for seed in range(8):
        model = released(table, epsilon, seed)
        assert model.error_bars.scaled is scaled
        queries, exact = [], []
        for axes in ((0, 1), (0, 2), (1, 2)):
            some = [
                {a: random_weights(table.shape[a], True, rng) for a in axes} for _ in range(700)
            ]
            queries += some
            exact.append(exact_answers(table, axes, some))
        errors = np.abs(model.answer(queries) - np.concatenate(exact))
        widths = np.array(
            [model.error_bars.half_width(a, model.total, 0.95) for a in model.answer(queries)]
        )
        covered.append((errors <= widths).mean())
        narrow.append((errors <= widths / 5).mean())
        ratios.append(np.median(widths) / np.quantile(errors, 0.95))
    assert np.mean(covered) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / len(errors))
    assert np.mean(narrow) < 0.9
    assert np.median(ratios) < 4


@pytest.mark.slow
def test_the_largest_quantile_of_the_classes_is_published(monkeypatch):
    """Each class is covered, and a record changes what is published by one at most."""
    rng = np.random.default_rng(3)
    table = random_table(rng, (4, 3, 2, 3), 60)
    model = released(table, Fraction(1, 10))
    noise = Recorder(discrete_laplace)
    monkeypatch.setattr(errors, "discrete_laplace", noise)

    def published(more, orders):
        bars = publish_errors(
            more, model, Fraction(1, 100), [True] * 4, orders=orders, random_state=0
        )
        return int(noise.calls[-1][0]), bars

    alone = [published(table, (order,))[0] for order in (1, 2, 3, 4)]
    together, bars = published(table, (4, 3, 2, 1))
    assert together == max(alone) and len(set(alone)) > 1
    assert "one, two, three or four attributes (in each of these cases)" in bars.text
    moves = {abs(published(more, (1, 2, 3, 4))[0] - together) for more in neighbours(table)}
    assert moves == {0, 1}
    # Two used attributes have no queries on three.
    small = random_table(rng, (4, 3, 1), 60)
    two = released(small, 1)
    bars = publish_errors(small, two, Fraction(1, 100), [True] * 3, orders=(2, 3), random_state=0)
    assert bars.text.endswith("on two attributes") and bars.n_queries == 2000


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_intervals_on_two_columns_cover_and_are_not_wide(epsilon):
    # As above. The published quantile alone would make intervals of twice its noise of 1 / (0.05
    # epsilon) at least, much wider than the errors are.
    rng = np.random.default_rng(1)
    x = rng.normal(30, 6, 30_000)
    codes = np.clip(np.stack([x, x + rng.normal(0, 4, len(x))], axis=1), 0, 59).astype(int)
    table = CountTable.from_codes(codes, (60, 60))
    covered, ratios = [], []
    queries = [{a: random_weights(60, True, rng) for a in (0, 1)} for _ in range(1000)]
    exact = exact_answers(table, (0, 1), queries)
    for seed in range(8):
        model = released(table, epsilon, seed)
        assert model.error_bars.simulated
        errors = np.abs(model.answer(queries) - exact)
        half = model.error_bars.half_width(0.0, model.total, 0.95)
        covered.append((errors <= half).mean())
        ratios.append(2 * half / np.quantile(errors, 0.95))
    assert np.mean(covered) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 1000)
    # Twice the errors of noise alone are a ratio of 4 where all errors are noise.
    assert np.median(ratios) <= 5
    assert "noise alone" in model.error_bars.guarantee(0.95)


def test_the_errors_of_all_simulations_count():
    """One simulation whose noise is small by luck does not make intervals narrow."""
    rng = np.random.default_rng(0)
    table = random_table(rng, (6, 6), 3000)
    model = released(table, 10)
    lucky, other = released(table, 10), TreeModel(model.density, model.total + 900)
    reach = [
        publish_errors(
            table, model, Fraction(1, 100), [True, True], simulated=(table, models), random_state=0
        ).reach
        for models in ([lucky], [lucky, other], [other])
    ]
    assert reach[0] < 20 and reach[1] > 300
    assert reach[1] == pytest.approx(reach[2], rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["correlated", "one cell", "three spikes", "even", "a line"])
@pytest.mark.parametrize("epsilon", ["0.03", "0.06"])
def test_intervals_on_two_columns_cover_where_records_are_few(shape, epsilon):
    # n epsilon is 30 or 60: a release has a handful of boxes, and all its errors follow a handful
    # of draws. The seeds are fixed, so that nothing fails by chance.
    rng = np.random.default_rng(7)
    n, size = 1000, 64
    x, y = rng.normal(0.4 * size, 0.08 * size, n), rng.integers(0, size, n)
    codes = {
        "correlated": np.stack([x, x + rng.normal(0, 0.03 * size, n)], axis=1),
        "one cell": np.tile([40, 11], (n, 1)),
        "three spikes": np.array([[5, 50], [33, 20], [60, 61]])[rng.integers(0, 3, n)],
        "even": np.stack([y, rng.integers(0, size, n)], axis=1),
        "a line": np.stack([y, y], axis=1),
    }[shape]
    table = CountTable.from_codes(np.clip(codes, 0, size - 1).astype(int), (size, size))
    rng = np.random.default_rng(99)
    queries = [{a: random_weights(size, True, rng) for a in (0, 1)} for _ in range(300)]
    exact = exact_answers(table, (0, 1), queries)
    covered = []
    for seed in range(60):
        model = released(table, epsilon, seed)
        half = model.error_bars.half_width(0.0, model.total, 0.95)
        covered.append((np.abs(model.answer(queries) - exact) <= half).mean())
    assert np.mean(covered) >= 0.93


def test_the_published_quantile_overrules_the_simulation(monkeypatch):
    """A model whose errors exceed the noise gets wider intervals."""
    rng = np.random.default_rng(0)
    table = random_table(rng, (6, 6), 30_000)
    model = released(table)
    drawn = CountTable.from_codes(model.sample_codes(30_000, rng), table.shape)
    wrong = TreeModel(model.density, model.total + 9000)
    for which, reach in ((model, (0, 200)), (wrong, (4000, 9500))):
        bars = publish_errors(
            table, which, ONE, [True, True], simulated=(drawn, [released(drawn)]), random_state=0
        )
        assert reach[0] <= bars.reach <= reach[1]


@pytest.mark.parametrize("shape", [(60, 1, 40), (80, 1)])
def test_the_simulation_draws_cells_where_there_are_too_many_records(shape, monkeypatch):
    # A thousand million rows would take 40 GB. Both ways of drawing have the same law.
    rng = np.random.default_rng(2)
    table = random_table(rng, shape, 5000)
    large = CountTable.from_codes(table.codes, shape, table.counts * (10**9 // 5000))
    most = simulation.MOST_ROWS_DRAWN
    one_by_one = TreeModel.sample_codes
    asked = []

    def counted(model, n_samples, generator):
        asked.append(n_samples)
        assert n_samples <= most
        return one_by_one(model, n_samples, generator)

    monkeypatch.setattr(TreeModel, "sample_codes", counted)
    model = released(large)
    assert model.error_bars.simulated and not asked
    monkeypatch.setattr(simulation, "MOST_CELLS_DRAWN", 79)
    assert not released(large).error_bars.simulated and not asked
    model = released(table)
    assert model.error_bars.simulated and len(asked) == 1
    rows = simulation.draw_records(model, noise_source(1)).dense().ravel()
    monkeypatch.setattr(simulation, "MOST_ROWS_DRAWN", 10)
    monkeypatch.setattr(simulation, "MOST_CELLS_DRAWN", 10**6)
    cells = np.array(
        [simulation.draw_records(model, noise_source(seed)).dense().ravel() for seed in range(400)]
    )
    assert (cells.sum(axis=1) == rows.sum()).all() and rows.sum() == round(model.total)
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    expected = model.view(axes).ravel()
    assert np.abs(cells.mean(axis=0) - expected).max() < 6 * np.sqrt(expected.max() / 400)
    for drawn in (rows, cells[0]):
        # Chi-squared of as many degrees of freedom as there are cells with records.
        used = expected > 0
        score = ((drawn - expected)[used] ** 2 / expected[used]).sum()
        assert abs(score - used.sum()) < 6 * math.sqrt(2 * used.sum() + len(drawn))
        assert not drawn[~used].any()


# --- the estimator


def test_it_beats_independence_where_columns_depend():
    rng = np.random.default_rng(0)
    n = 20_000
    x = rng.random(n)
    frame = pd.DataFrame(
        {"a": x, "b": np.clip(x + rng.normal(0, 0.05, n), 0, 1), "c": rng.random(n)}
    )
    domain = Domain(dict.fromkeys("abc", Numeric(0, 1, bins=32)))
    view = PairViewSynthesizer(1.0, domain=domain, random_state=0).fit(frame)
    assert (0, 1) in view.synopsis_.model.pairs
    query = {"a": (0, 0.25), "b": (0, 0.25)}
    exact = ((x <= 0.25) & (frame["b"] <= 0.25)).sum()
    assert view.count(query) == pytest.approx(exact, abs=200)
    assert exact > 2 * n / 16  # independence would say n / 16
    sample = view.sample(random_state=0)
    assert np.corrcoef(sample["a"], sample["b"])[0, 1] > 0.95
    answer = view.count(query, return_interval=True)
    assert answer.lower <= exact <= answer.upper
    assert "misfit" in answer.guarantee and answer.std > 0
    assert view.synopsis_.model.budget["forest"] > 0


def test_error_share_zero_gives_no_intervals():
    domain = Domain({"a": Numeric(0, 1, bins=4)})
    view = PairViewSynthesizer(domain=domain, error_share=0).fit(np.full((50, 1), 0.3))
    assert set(view.privacy_loss_.parts) == {"total", "views"}
    assert abs(view.count("a <= 0.5") - 50) < 50
    with pytest.raises(ValueError, match="error_share"):
        view.count("a <= 0.5", return_interval=True)


def odd_tables():
    rng = np.random.default_rng(0)
    line = Domain({"a": Numeric(0, 1, bins=70)})
    yield "one column", line, pd.DataFrame({"a": rng.random(300)})
    constant = Domain({"a": Categorical(["x"]), "b": Numeric(0, 1, bins=60)})
    yield "a column with one value", constant, pd.DataFrame({"a": "x", "b": rng.random(300)})
    two = Domain({"a": Numeric(0, 1, bins=60), "b": Categorical(list("pqr"), nullable=True)})
    yield (
        "two columns",
        two,
        pd.DataFrame({"a": rng.random(300), "b": rng.choice(list("pqr"), 300)}),
    )
    four = Domain(
        {
            "a": Numeric(0, 1, bins=60, nullable=True),
            "b": Categorical(
                list("pqrs"), taxonomy=Taxonomy.from_tree({"u": ["q", "s"], "v": ["p", "r"]})
            ),
            "c": Numeric(0, 9, integer=True),
            "d": Categorical(["k"]),
        }
    )
    rows = {
        "a": rng.random(3000),
        "b": rng.choice(list("pqrs"), 3000),
        "c": rng.integers(0, 10, 3000),
    }
    frame = pd.DataFrame(rows).assign(d="k")
    yield "mixed", four, frame
    yield "ten rows", four, frame.iloc[:10]
    yield "all rows equal", four, pd.concat([frame.iloc[[0]]] * 2000, ignore_index=True)
    yield "empty", four, frame.iloc[:0]


@pytest.mark.parametrize("epsilon", [0.001, 1, 100])
@pytest.mark.parametrize(
    ("domain", "frame"), [pytest.param(*rest, id=name) for name, *rest in odd_tables()]
)
def test_odd_tables(domain, frame, epsilon, tmp_path):
    view = PairViewSynthesizer(epsilon, domain=domain, random_state=5).fit(frame)
    assert np.isfinite(view.count())
    sample = view.sample(200, random_state=0)
    assert list(sample.columns) == list(domain.names) and len(sample) == 200
    assert domain.encode(sample).min() >= 0
    answer = view.count(return_interval=True)
    # A count is not negative; its noisy value may be.
    assert answer.lower <= max(answer.value, 0.0) < answer.upper
    if epsilon == 100:
        assert view.count() == pytest.approx(len(frame), abs=10)
    view.synopsis_.save(tmp_path / "file")
    loaded = Synopsis.load(tmp_path / "file")
    assert loaded.count() == view.count()
    assert len(view.synopsis_.to_frame()) >= sum(domain.shape)


def test_negative_totals_are_legal():
    domain = Domain({"a": Numeric(0, 1, bins=3), "b": Numeric(0, 1, bins=3)})
    totals = []
    for seed in range(12):
        view = PairViewSynthesizer(0.01, domain=domain, random_state=seed).fit(np.zeros((0, 2)))
        totals.append(view.count())
        assert len(view.sample(random_state=0)) == max(0, round(view.count()))
        assert (view.synopsis_.model.density.marginals[0] >= 0).all()
    assert min(totals) < 0 < max(totals)


def test_an_unknown_target_costs_nothing():
    ledger = skdp.PrivacyLedger()
    domain = Domain({"a": Numeric(0, 1, bins=3)})
    with pytest.raises(skdp.DomainError, match="target"):
        PairViewSynthesizer(domain=domain, target="b", ledger=ledger).fit([[0.1]], [1])
    assert ledger.spent == 0


def test_wide_columns_are_grouped_and_that_is_said():
    rng = np.random.default_rng(0)
    x = rng.random(20_000)
    frame = pd.DataFrame({"a": x, "b": x, "c": x > 0.5})
    domain = Domain(
        {
            "a": Numeric(0, 1, bins=100_000),
            "b": Numeric(0, 1, bins=3000),
            "c": Categorical([False, True]),
        }
    )
    with pytest.warns(UserWarning, match="'a', 'b' apart"):
        # Shown, not raised: an error would lose what was paid for.
        warnings.filterwarnings("error", message=".* apart")
        view = PairViewSynthesizer(1.0, domain=domain, random_state=0).fit(frame)
    assert "'a', 'b'" in view.synopsis_.mechanism
    assert max(table.size for table in view.synopsis_.model._tables.values()) <= 512 * 512
    assert view.count("a <= 0.3 and b <= 0.3") == pytest.approx(
        ((frame["a"] <= 0.3) & (frame["b"] <= 0.3)).sum(), abs=400
    )
    sample = view.sample(5000, random_state=0)
    assert np.corrcoef(sample["a"], sample["b"])[0, 1] > 0.95
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        PairViewSynthesizer(1.0, domain=domain.select(["a"])).fit(frame[["a"]])


def test_pairs_of_grouped_and_plain_attributes_are_counted_alike():
    rng = np.random.default_rng(0)
    table = random_table(rng, (40, 7), 900)
    groups = np.arange(40) // 3
    found = table.regrouped((0, 1), (groups, None))
    exact = table.dense((0, 1))
    expected = np.stack([exact[groups == g].sum(axis=0) for g in range(14)])
    np.testing.assert_array_equal(found, expected)


def test_measured_margins_are_those_of_the_single_views():
    rng = np.random.default_rng(0)
    n = 30_000
    x = rng.integers(0, 50, n)
    codes = np.stack([x, x // 5, rng.integers(0, 6, n)], axis=1)
    model = released(CountTable.from_codes(codes, (50, 10, 6)))
    assert model.extra and len(model.density.edges) == 2
    for (a, b), table in model._tables.items():
        np.testing.assert_allclose(table.sum(axis=1), model.density.marginals[a], atol=1e-9)
        np.testing.assert_allclose(table.sum(axis=0), model.density.marginals[b], atol=1e-9)
    kept = couple(model.extra[0].table, *(model.density.marginals[a] for a in model.extra[0].axes))
    np.testing.assert_allclose(kept, model.extra[0].table, atol=1e-6)
