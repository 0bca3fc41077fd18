"""Samples with rounded counts: exact bounds, the rules of the domain, seeds, odd sizes."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from densities import by_tree, dense, random_forest
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp
from skdp import Categorical, Domain, Numeric, Synopsis
from skdp.__main__ import main
from skdp.release import Boxes, BoxModel, PairTable, TreeDensity, TreeModel
from skdp.release.boxes import spread_evenly
from skdp.release.rounding import (
    count_records,
    deal,
    places,
    round_line,
    round_lines,
    round_table,
    shuffled_line,
    similar_first,
    sort_within,
)
from skdp.release.tree_density import GivenTree
from skdp.release.trees import round_tree

SLACK = 1e-6


def generator(seed=0):
    return np.random.default_rng(seed)


def tally(codes, axes, shape):
    sizes = [shape[axis] for axis in axes]
    return np.bincount(
        np.ravel_multi_index([codes[:, axis] for axis in axes], sizes), minlength=np.prod(sizes)
    )


# -- lines and tables ------------------------------------------------------------------------------


@settings(max_examples=60)
@given(size=st.integers(1, 40), total=st.integers(0, 500), seed=st.integers(0, 10_000))
def test_counts_of_a_line_and_its_running_sums_are_off_by_less_than_one(size, total, seed):
    rng = generator(seed)
    expected = rng.gamma(0.3, size=size) * (rng.random(size) < 0.7) + (np.arange(size) == 0)
    counts = round_line(expected, total, rng)
    wanted = expected / expected.sum() * total
    assert counts.sum() == total and not counts[expected == 0].any()
    assert (np.abs(counts - wanted) < 1 + SLACK).all()
    assert (np.abs(np.cumsum(counts - wanted)) < 1 + SLACK).all()


def test_counts_of_a_line_are_unbiased():
    expected = np.array([0.1, 1.4, 0.0, 2.2, 0.3])
    rng = generator()
    mean = np.mean([round_line(expected, 4, rng) for _ in range(20_000)], axis=0)
    # Standard errors are at most 0.0036.
    np.testing.assert_allclose(mean, expected, atol=0.025)


def test_lines_are_rounded_one_by_one():
    expected = np.array([0.0, 0.0, 3.0, 1.0, 0.0, 5.0])
    counts = round_lines(expected, np.array([2, 3, 1]), np.array([0, 8, 4]), generator())
    assert counts.tolist() == [0, 0, 6, 2, 0, 4]
    assert sorted(shuffled_line(np.array([1.0, 3.0]), 4, generator()).tolist()) == [0, 1, 1, 1]


@settings(max_examples=60)
@given(
    shape=st.tuples(st.integers(1, 25), st.integers(1, 25)),
    scale=st.sampled_from([1, 3, 40]),
    seed=st.integers(0, 10_000),
)
def test_cells_and_columns_of_a_table_are_off_by_less_than_one(shape, scale, seed):
    rng = generator(seed)
    law = rng.gamma(rng.choice([0.05, 0.5, 5.0]), size=shape) * (rng.random(shape) < 0.6)
    law[:, 0] += law.sum(axis=1) == 0
    rows = rng.integers(0, scale + 1, shape[0])
    expected = law / law.sum(axis=1, keepdims=True) * rows[:, None]
    counts = round_table(expected, rows, rng)
    np.testing.assert_array_equal(counts.sum(axis=1), rows)
    assert not counts[expected == 0].any()
    assert (np.abs(counts - expected) < 1 + SLACK).all()
    assert (np.abs(counts.sum(axis=0) - expected.sum(axis=0)) < 1 + SLACK).all()


def test_large_counts_are_rounded_in_spite_of_the_last_bits():
    rng = generator()
    law = rng.dirichlet(np.full(30, 0.3), size=20)
    rows = rng.integers(0, 500_000_000, 20)
    counts = round_table(law * rows[:, None], rows, rng)
    np.testing.assert_array_equal(counts.sum(axis=1), rows)
    assert np.abs(counts - law * rows[:, None]).max() < 1 + SLACK
    # The sum of the fractions misses 1 by more than a rounding error.
    for _ in range(200):
        counts = round_table(np.array([[0.9999999, 3e-7, 2.0]]), np.array([3]), rng)
        assert counts.sum() == 3


def test_a_table_that_the_first_pass_leaves_uneven_is_repaired():
    # The last rows can only take what the first ones should have left.
    rng = generator()
    for _ in range(300):
        expected = np.zeros((6, 3))
        expected[:4, :2] = 0.5
        expected[4:, 1:] = [[0.5, 0.5], [1 / 3, 2 / 3]]
        counts = round_table(expected, np.ones(6, dtype=np.int64), rng)
        assert (np.abs(counts.sum(axis=0) - expected.sum(axis=0)) < 1 + SLACK).all()


def test_cells_of_a_table_are_nearly_unbiased():
    expected = np.array([[0.2, 0.5, 0.3], [0.6, 0.0, 0.4], [0.1, 0.8, 0.1]])
    rng = generator()
    ones = np.ones(3, dtype=np.int64)
    mean = np.mean([round_table(expected, ones, rng) for _ in range(4000)], axis=0)
    # Standard errors are at most 0.008. To keep the sums of columns takes a little from the cells.
    np.testing.assert_allclose(mean, expected, atol=0.1)


# -- strata ----------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=8), share=st.floats(0, 1))
def test_each_place_of_a_stratum_is_given_once(sizes, share):
    sizes = np.array(sizes)
    parts = np.split(places(sizes, share, generator()), np.cumsum(sizes)[:-1])
    for size, part in zip(sizes, parts, strict=True):
        assert sorted(part.tolist()) == list(range(size))
    line = np.arange(sizes.sum(), dtype=np.int32)
    assert sorted(deal(line, sizes, share, generator()).tolist()) == line.tolist()


def test_neighbours_get_each_value_in_its_share():
    line = np.repeat(np.arange(3, dtype=np.int32), [500, 300, 200])
    dealt = deal(line, np.array([1000]), (5**0.5 - 1) / 2, generator())
    for start in range(0, 1000, 50):
        some = np.bincount(dealt[start : start + 50], minlength=3)
        assert np.abs(some - [25, 15, 10]).max() <= 3


def test_sorting_keeps_the_order_of_equal_keys():
    for largest in (3, 300, 100_000):
        keys = generator().integers(0, largest, 2000)
        order = generator(1).permutation(2000)
        expected = order[np.argsort(keys[order], kind="stable")]
        np.testing.assert_array_equal(sort_within(order, keys), expected)


# -- models ----------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    n=st.sampled_from([0, 1, 2, 30, 700]),
    seed=st.integers(0, 10_000),
)
def test_views_of_a_tree_are_kept(shape, n, seed):
    rng = generator(seed)
    grouped = [axis for axis in range(len(shape)) if shape[axis] > 1 and rng.random() < 0.3]
    forest = random_forest(rng, shape, grouped=grouped)
    codes = round_tree(forest, n, rng)
    assert codes.shape == (n, len(shape)) and codes.dtype == np.int32
    for axis, mass in enumerate(forest.marginals):
        counts = np.bincount(codes[:, axis], minlength=len(mass))
        assert not counts[mass == 0].any()
        assert np.abs(counts - n * mass).max() < 3
    for edge in forest.edges:
        drawn = [forest.groups.get(a, np.arange(shape[a]))[codes[:, a]] for a in edge.axes]
        counts = np.zeros(edge.table.shape)
        np.add.at(counts, tuple(drawn), 1)
        assert np.abs(counts - n * edge.table).max() < 3
        assert not counts[edge.table == 0].any()


def chain(seed=3, sizes=(12, 9, 15, 4)):
    """Columns that each depend on the one before."""
    rng = generator(seed)
    law = rng.dirichlet(np.ones(sizes[0]))
    marginals, edges = [law], []
    for axis, size in enumerate(sizes[1:]):
        table = marginals[-1][:, None] * rng.dirichlet(np.full(size, 0.5), size=sizes[axis])
        edges.append(PairTable((axis, axis + 1), table))
        marginals.append(table.sum(axis=0))
    return TreeDensity(marginals, edges)


def distance(model, codes, order):
    """Mean total variation of all views of so many columns, from those of a tree."""
    table, n, total = dense(model), len(codes), []
    for axes in itertools.combinations(range(table.ndim), order):
        rest = tuple(axis for axis in range(table.ndim) if axis not in axes)
        gap = tally(codes, axes, table.shape) / n - table.sum(axis=rest).ravel()
        total.append(np.abs(gap).sum() / 2)
    return np.mean(total)


def test_rounded_rows_are_nearer_to_a_tree_than_independent_ones():
    density = chain()
    for n in (500, 20_000):
        rounded = round_tree(density, n, generator())
        independent = density.sample(n, generator())
        for order, ratio in ((1, 0.25), (2, 0.5), (3, 0.8)):
            assert distance(density, rounded, order) < ratio * distance(density, independent, order)


def test_children_of_an_attribute_are_independent_given_it():
    coin, pair = np.full(2, 0.5), np.array([[0.4, 0.1], [0.1, 0.4]])
    star = TreeDensity([coin] * 24, [PairTable((0, axis), pair) for axis in range(1, 24)])
    for density, correlation in ((star, 0.36), (TreeDensity([coin] * 24), 0.0)):
        codes = round_tree(density, 1000, generator())
        off = np.corrcoef(codes[:, 1:].T) - correlation
        # Standard errors of independent rows are 0.03.
        assert np.abs(off[~np.eye(23, dtype=bool)]).max() < 0.1
        within = np.corrcoef(codes[codes[:, 0] == 0, 1:].T)
        assert np.abs(within[~np.eye(23, dtype=bool)]).max() < 0.16


def test_the_posterior_of_a_tree_is_the_conditional_law():
    rng = generator(2)
    forest = random_forest(rng, (3, 4, 5, 2), grouped=(1, 2))
    weights = {1: rng.random(4), 3: np.array([0.2, 1.0])}
    table = dense(forest)
    for axis, vector in weights.items():
        table = table * vector.reshape([-1 if a == axis else 1 for a in range(4)])
    posterior = GivenTree(forest, weights).posterior()
    np.testing.assert_allclose(dense(posterior), table / table.sum(), atol=1e-12)
    zero = TreeDensity([np.array([0.0, 1.0]), np.array([0.5, 0.5])])
    assert GivenTree(zero, {0: np.array([1.0, 0.0])}).posterior() is None
    codes = by_tree(forest).round_codes(2000, rng, weights)
    for axis in range(4):
        rest = tuple(other for other in range(4) if other != axis)
        wanted = 2000 * table.sum(axis=rest) / table.sum()
        assert np.abs(np.bincount(codes[:, axis], minlength=len(wanted)) - wanted).max() < 2.5


def test_weights_of_probability_zero_are_drawn_as_by_independent_rows():
    model = by_tree(TreeDensity([np.array([0.0, 1.0]), np.array([0.5, 0.5])]))
    with pytest.warns(UserWarning, match="probability zero"):
        codes = model.round_codes(20, generator(), {0: np.array([1.0, 0.0])})
    assert not codes[:, 0].any()
    boxes = BoxModel(Boxes([[0, 0], [1, 0]], [[1, 2], [2, 2]]), [0, 5], (2, 2))
    with pytest.warns(UserWarning, match="probability zero"):
        codes = boxes.round_codes(20, generator(), {0: np.array([1.0, 0.0])})
    assert not codes[:, 0].any()


@pytest.mark.parametrize("n", [0, 1, 7, 400, 5000])
def test_records_are_taken_as_often_as_expected(n):
    rng = generator(n)
    rows = rng.integers(0, (3, 8, 20), (2000, 3)).astype(np.int32)
    weights = rng.gamma(0.5, size=2000) * (rng.random(2000) < 0.9)
    weights[0] += weights.sum() * 1e-4
    features = [rows[:, axis] for axis in range(3)]
    order = similar_first(rows, (3, 8, 20))
    counts = count_records(weights, n, order, features, 3, rng)
    expected = n * weights / weights.sum()
    assert counts.sum() == n and not counts[weights == 0].any()
    if n * 8 >= 2000:
        assert (np.abs(counts - expected) < 1 + SLACK).all()
    for feature in features:
        off = np.bincount(feature, weights=counts - expected)
        assert np.abs(off).max() < 2.5


def test_weighted_records_keep_views_of_pairs():
    rng = generator(1)
    density = chain()
    rows = density.sample(20_000, rng)
    weights = rng.gamma(2.0, size=20_000)
    weights /= weights.sum()
    model = TreeModel(density, 1.0, rows=rows, row_weights=weights)
    drawn = {
        name: getattr(model, name)(3000, generator()) for name in ("round_codes", "sample_codes")
    }
    found = {}
    for name, codes in drawn.items():
        for axes in (*((axis,) for axis in range(4)), (0, 1)):
            sizes = [model.shape[axis] for axis in axes]
            cell = np.ravel_multi_index([rows[:, axis] for axis in axes], sizes)
            wanted = 3000 * np.bincount(cell, weights=weights, minlength=np.prod(sizes))
            found[name, axes] = np.abs(tally(codes, axes, model.shape) - wanted)
    assert max(found["round_codes", (axis,)].max() for axis in range(4)) < 2.5
    assert found["round_codes", (0, 1)].sum() < found["sample_codes", (0, 1)].sum() / 2


def test_boxes_get_their_counts_and_sides_theirs():
    rng = generator()
    lower = np.stack(np.meshgrid(np.arange(12), np.arange(15), indexing="ij"), axis=-1)
    lower = 2 * lower.reshape(-1, 2)
    counts = rng.gamma(0.4, size=180) * 10 - 0.5
    model = BoxModel(Boxes(lower, lower + 2), counts, (24, 30))
    for n in (1, 50, 3000):
        codes = model.round_codes(n, rng)
        expected = np.maximum(counts, 0)
        expected *= n / expected.sum()
        found = np.bincount(codes[:, 0] // 2 * 15 + codes[:, 1] // 2, minlength=180)
        if n * 8 >= 180:
            assert (np.abs(found - expected) < 1 + SLACK).all()
        table = (found - expected).reshape(12, 15)
        assert max(np.abs(table.sum(axis=axis)).max() for axis in (0, 1)) < 2.5


def test_records_are_spread_evenly_inside_boxes():
    lower, upper = np.array([[0, 5, 2], [4, 0, 2]]), np.array([[4, 15, 3], [10, 5, 3]])
    codes = spread_evenly(lower, upper, np.array([40, 30]), {}, generator())
    assert (np.abs(np.bincount(codes[:40, 0]) - 10) <= 1).all()
    assert (np.abs(np.bincount(codes[:40, 1])[5:] - 4) <= 1).all()
    assert (np.abs(np.bincount(codes[40:, 0])[4:] - 5) <= 1).all() and (codes[:, 2] == 2).all()
    weights = {1: np.array([0.0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])}
    codes = spread_evenly(lower, upper, np.array([40, 32]), weights, generator())
    assert (codes[:40, 1] == 14).all()
    assert np.abs(np.bincount(codes[40:, 1])[3:] - [8, 24]).max() <= 1
    nothing = BoxModel(Boxes([[0, 0]], [[4, 9]]), [-3], (4, 9)).round_codes(36, generator())
    assert (np.bincount(nothing[:, 0]) == 9).all() and (np.bincount(nothing[:, 1]) == 4).all()


def test_large_columns():
    size = 1_000_000
    mass = generator().gamma(0.1, size=size)
    groups = {0: np.repeat(np.arange(100), size // 100)}
    grouped = np.bincount(groups[0], weights=mass / mass.sum())
    table = np.outer(grouped, [0.25, 0.75])
    density = TreeDensity(
        [mass / mass.sum(), np.array([0.25, 0.75])], [PairTable((0, 1), table)], groups
    )
    codes = round_tree(density, 5000, generator())
    assert np.abs(np.bincount(codes[:, 0], minlength=size) - 5000 * density.marginals[0]).max() < 3
    assert np.bincount(codes[:, 1]).tolist() == [1250, 3750]


# -- what users call -------------------------------------------------------------------------------

DOMAIN = Domain(
    {
        "age": Numeric(20, 59, integer=True),
        "sex": Categorical(["F", "M"]),
        "always": Categorical(["yes"]),
    }
)


def people(n=2000):
    rng = generator()
    return pd.DataFrame(
        {"age": rng.integers(20, 60, n), "sex": rng.choice(["F", "M"], n), "always": "yes"}
    )


def fitted(estimator, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(rows)


ESTIMATORS = {
    "pairs": skdp.MarginalSynthesizer(epsilon=2, domain=DOMAIN, random_state=0),
    "classes": skdp.MarginalSynthesizer(epsilon=2, domain=DOMAIN, target="sex", random_state=0),
    "boxes": skdp.HDPViewSynthesizer(epsilon=2, domain=DOMAIN, random_state=0),
    "cells": skdp.PrivPfCClassifier(epsilon=2, domain=DOMAIN, target="sex", random_state=0),
    "line": skdp.RangeTreeHistogram(epsilon=2, domain=DOMAIN.select(["age"]), random_state=0),
    "one column": skdp.MarginalSynthesizer(
        epsilon=2, domain=DOMAIN.select(["age"]), random_state=0
    ),
    "constant": skdp.HDPViewSynthesizer(
        epsilon=2, domain=DOMAIN.select(["always"]), random_state=0
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_release_draws_both_ways(name):
    estimator = ESTIMATORS[name]
    release = fitted(estimator, people()[list(estimator.domain)])
    for method in ("rounded", "independent"):
        for n in (0, 1, 2, 50, 9000):
            rows = release.sample(n, random_state=1, method=method)
            assert len(rows) == n
            pd.testing.assert_frame_equal(rows, release.sample(n, random_state=1, method=method))
        assert not rows.equals(release.sample(9000, random_state=2, method=method)) or (
            name == "constant"
        )
    pd.testing.assert_frame_equal(
        release.sample(50, random_state=1), release.sample(50, random_state=1, method="rounded")
    )
    for wrong in ("round", None, 1):
        with pytest.raises(ValueError, match="method must be 'rounded' or 'independent', got"):
            release.sample(5, method=wrong)


def test_rows_of_a_synopsis_are_rounded(tmp_path):
    synopsis = fitted(ESTIMATORS["pairs"], people()).synopsis_
    rows = synopsis.sample(random_state=0)
    assert len(rows) == max(0, round(synopsis.total))
    for column in ("age", "sex"):
        counts = synopsis.sample_codes(1000, 0)[:, DOMAIN.index(column)]
        wanted = synopsis.view([column]) * 1000 / synopsis.total
        assert np.abs(np.bincount(counts, minlength=len(wanted)) - wanted).max() < 2
    # Rows are in random order: each half is like the other.
    halves = [half["age"].mean() for half in (rows[:1000], rows[1000:])]
    assert abs(halves[0] - halves[1]) < 3
    synopsis.save(tmp_path / "release.skdp")
    again = Synopsis.load(tmp_path / "release.skdp")
    pd.testing.assert_frame_equal(rows, again.sample(random_state=0))
    with pytest.raises(ValueError, match="method must be"):
        synopsis.sample(given=people(3)[["age"]], method="other")
    with pytest.raises(ValueError, match="method must be"):
        synopsis.sample_codes(3, method="other")


@pytest.mark.parametrize("name", ["pairs", "classes", "boxes"])
def test_rows_under_a_condition_are_rounded_too(name):
    release = fitted(ESTIMATORS[name], people())
    rows = release.sample(1000, 0, where="age >= 40")
    assert (rows["age"] >= 40).all()
    share = release.count("age >= 40 and sex == 'F'") / release.count("age >= 40")
    assert abs((rows["sex"] == "F").sum() - 1000 * share) < 5
    pd.testing.assert_frame_equal(rows, release.sample(1000, 0, where="age >= 40"))


RULES = Domain(
    {
        "amount": Numeric(0, 100, bins=20),
        "balance": Numeric(0, 100, bins=20),
        "kind": Categorical(["single", "joint"]),
        "second": Numeric(0, 50, bins=10, nullable=True),
        "grade": Categorical(["A", "B"]),
        "sub": Categorical(["A1", "A2", "B1"]),
    },
    structure=[
        skdp.at_most("balance", "amount"),
        skdp.forbid("second != None and kind != 'joint'"),
        skdp.derived("grade", from_="sub", map={"A1": "A", "A2": "A", "B1": "B"}),
        skdp.forbid("amount >= 0 and amount <= 30 and kind == 'joint' and sub == 'B1'"),
    ],
)


@pytest.mark.parametrize("target", [None, "kind"])
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_rounded_rows_obey_the_rules(target, epsilon):
    rng = generator()
    n = 2000
    amount = rng.uniform(0, 100, n)
    kind = np.where((rng.random(n) < 0.4) & (amount > 30), "joint", "single")
    sub = rng.choice(["A1", "A2", "B1"], n)
    rows = pd.DataFrame(
        {
            "amount": amount,
            "balance": amount * rng.random(n),
            "kind": kind,
            "second": np.where(kind == "joint", rng.uniform(0, 50, n), np.nan),
            "grade": [each[0] for each in sub],
            "sub": sub,
        }
    )
    release = skdp.MarginalSynthesizer(epsilon=epsilon, domain=RULES, target=target, random_state=0)
    release = fitted(release, rows)
    for n_samples, where in ((1, None), (3000, None), (500, "amount < 60 and kind == 'joint'")):
        drawn = release.sample(n_samples, 1, where=where)
        assert (drawn["balance"] <= drawn["amount"]).all()
        assert drawn.loc[drawn["kind"] == "single", "second"].isna().all()
        assert (drawn["sub"].str[0] == drawn["grade"]).all()
        low = (drawn["amount"] < 30) & (drawn["kind"] == "joint") & (drawn["sub"] == "B1")
        assert not low.any()


def test_the_command_line_draws_both_ways(tmp_path):
    view, drawn = tmp_path / "release.skdp", tmp_path / "rows.csv"
    synopsis = fitted(ESTIMATORS["pairs"], people()).synopsis_
    synopsis.save(view)
    for method in ("rounded", "independent"):
        options = [
            "--rows",
            "40",
            "--seed",
            "1",
            "--method",
            method,
            "--out",
            str(drawn),
            "--force",
        ]
        assert main(["sample", str(view), *options]) == 0
        expected = synopsis.sample(40, 1, method=method)
        pd.testing.assert_frame_equal(pd.read_csv(drawn), expected, check_dtype=False)
