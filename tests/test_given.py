"""Conditional draws: models against the exact conditional, computed by brute force."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from densities import by_tree, dense, random_forest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from skdp.release import Boxes, BoxModel, PairTable, TreeDensity, TreeModel
from skdp.release.rounding import draw_in_ranges, patterns, shared_keys
from skdp.release.trees import ENOUGH

SHAPE = (3, 4, 5, 2)
# Probability that a test of a law fails although the law is right.
FALSE_ALARM = 1e-6


def random_tree(rng, shape=SHAPE, **options):
    return random_forest(rng, shape, joined=0.85, **options)


def under(table, weights):
    """The law of records under weights, as a table that sums to 1."""
    for axis, vector in weights.items():
        table = table * vector.reshape([-1 if other == axis else 1 for other in range(table.ndim)])
    return table / table.sum()


def one_hot(size, code):
    return (np.arange(size) == code).astype(np.float64)


def fits(codes, table, false_alarm=FALSE_ALARM):
    """Whether codes follow a law; cells with fewer than 5 expected are put together."""
    observed = np.bincount(np.ravel_multi_index(codes.T, table.shape), minlength=table.size)
    expected = len(codes) * table.ravel()
    if observed[expected == 0].any():
        return False
    small = expected < 5
    observed = np.append(observed[~small], observed[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    statistic = ((observed - expected) ** 2 / expected).sum()
    return statistic < chi2.isf(false_alarm, max(len(expected) - 1, 1))


WHERE = {1: np.array([1.0, 0.5, 0.0, 1.0]), 2: np.array([0.0, 1.0, 0.3, 1.0, 0.0])}


@pytest.mark.parametrize("grouped", [(), (1, 2)])
def test_draws_under_a_condition_follow_the_exact_law(grouped):
    tree = random_tree(np.random.default_rng(5), grouped=grouped)
    table = dense(tree)
    codes = by_tree(tree).sample_codes(60_000, np.random.default_rng(1), WHERE)
    assert codes.dtype == np.int32 and codes.shape == (60_000, 4)
    assert fits(codes, under(table, WHERE))
    # Wrong laws are rejected: no condition, weights taken as all or nothing, independent columns.
    assert not fits(codes, table)
    assert not fits(codes, under(table, {axis: np.ceil(w) for axis, w in WHERE.items()}))
    alone = np.ones(())
    for axis, mu in enumerate(tree.marginals):
        alone = np.multiply.outer(alone, mu * WHERE.get(axis, 1.0))
    assert not fits(codes, alone / alone.sum())


@pytest.mark.parametrize("grouped", [(), (0, 2), (1, 2)])
@pytest.mark.parametrize("told", [(0,), (2,), (3, 0), (1, 2)])
def test_draws_given_known_values_follow_the_exact_law(grouped, told):
    rng = np.random.default_rng(11)
    tree = random_tree(rng, grouped=grouped)
    table = dense(tree)
    weights = {axis: w for axis, w in WHERE.items() if axis not in told}
    known = np.full((40_000, 4), -1)
    # Rows of two kinds in turn: each must follow its own law.
    first = [int(rng.integers(SHAPE[axis])) for axis in told]
    second = [(code + 1) % SHAPE[axis] for axis, code in zip(told, first, strict=True)]
    known[::2, told], known[1::2, told] = first, second
    codes = by_tree(tree).sample_given(known, np.random.default_rng(2), weights)
    laws = [
        under(table, weights | {a: one_hot(SHAPE[a], c) for a, c in zip(told, kind, strict=True)})
        for kind in (first, second)
    ]
    assert fits(codes[::2], laws[0]) and fits(codes[1::2], laws[1])
    assert not fits(codes[::2], laws[1])


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    seed=st.integers(0, 10_000),
    zeros=st.booleans(),
)
def test_known_codes_stay_and_codes_of_weight_zero_are_never_drawn(shape, seed, zeros):
    rng = np.random.default_rng(seed)
    grouped = [axis for axis in range(len(shape)) if shape[axis] > 1 and rng.random() < 0.3]
    tree = random_tree(rng, shape, grouped=grouped, zeros=zeros)
    known = np.stack([rng.integers(-1, size, 15) for size in shape], axis=1)
    weights = {axis: rng.random(shape[axis]) for axis in range(len(shape)) if rng.random() < 0.5}
    for axis in weights:
        weights[axis][rng.random(shape[axis]) < 0.5] = 0.0
        weights[axis][rng.integers(shape[axis])] = 1.0
    model = by_tree(tree)
    codes = model.sample_given(known, rng, weights)
    assert (codes >= 0).all() and (codes < shape).all()
    assert (codes[known >= 0] == known[known >= 0]).all()
    for axis, vector in weights.items():
        assert (vector[codes[known[:, axis] < 0, axis]] > 0).all()


def test_a_condition_of_probability_zero_follows_what_is_nearest_and_warns():
    mu = np.array([0.5, 0.5])
    pair = np.array([[0.5, 0.0], [0.0, 0.5]])
    tree = TreeDensity([mu, mu, mu], [PairTable((0, 1), pair), PairTable((1, 2), pair)])
    model = by_tree(tree)
    never = {0: np.array([1.0, 0.0]), 1: np.array([0.0, 1.0])}
    with pytest.warns(UserWarning, match="probability zero"):
        codes = model.sample_codes(1000, np.random.default_rng(0), never)
    # The third column follows its neighbour, as the tree has it.
    assert (codes[:, 0] == 0).all() and (codes[:, 1] == 1).all()
    assert (codes[:, 2] == 1).mean() > 0.99
    with warnings.catch_warnings():
        # What given rows hold may be private: no warning depends on it.
        warnings.simplefilter("error")
        known = np.array([[0, -1, 1], [0, -1, 0]])
        codes = model.sample_given(known, np.random.default_rng(0))
    assert codes[1].tolist() == [0, 0, 0] and codes[0, [0, 2]].tolist() == [0, 1]


def weighted_model(rng, n_rows=60_000):
    tree = random_tree(rng)
    rows = tree.sample(n_rows, rng)
    weights = rng.gamma(2.0, size=n_rows) * (1 + (rows[:, 0] == rows[:, 1]))
    return TreeModel(tree, 1.0, rows=rows, row_weights=weights / weights.sum())


def law_of_rows(model):
    table = np.zeros(model.shape)
    np.add.at(table, tuple(model.rows.T), model.row_weights)
    return table


def test_weighted_records_serve_where_enough_of_them_agree():
    rng = np.random.default_rng(3)
    model = weighted_model(rng)
    table = law_of_rows(model)
    codes = model.sample_codes(60_000, np.random.default_rng(0), WHERE)
    assert fits(codes, under(table, WHERE)) and not fits(codes, under(dense(model.density), WHERE))
    known = np.full((40_000, 4), -1)
    known[:, 3], known[::2, 0] = 1, 2
    codes = model.sample_given(known, np.random.default_rng(0), WHERE)
    hot = {3: one_hot(2, 1)}
    assert fits(codes[1::2], under(table, WHERE | hot))
    assert fits(codes[::2], under(table, WHERE | hot | {0: one_hot(3, 2)}))


def test_the_density_serves_where_few_weighted_records_agree():
    rng = np.random.default_rng(3)
    model = weighted_model(rng, n_rows=ENOUGH)
    codes = model.sample_codes(40_000, np.random.default_rng(0), WHERE)
    assert fits(codes, under(dense(model.density), WHERE))
    known = np.full((40_000, 4), -1)
    known[:, 0] = 1
    codes = model.sample_given(known, np.random.default_rng(0))
    assert fits(codes, under(dense(model.density), {0: one_hot(3, 1)}))


def boxes():
    lower = [[0, 0, 0], [2, 0, 0], [2, 1, 0], [2, 1, 2]]
    upper = [[2, 3, 4], [4, 1, 4], [4, 3, 2], [4, 3, 4]]
    return BoxModel(Boxes(lower, upper), [40, 100, -5, 20], (4, 3, 4))


def dense_boxes(model):
    table = np.zeros(model.shape)
    for low, high, count in zip(model.boxes.lower, model.boxes.upper, model.counts, strict=True):
        part = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        table[part] += max(count, 0) / np.prod(high - low)
    return table


def test_boxes_draw_in_their_covered_part():
    model = boxes()
    table = dense_boxes(model)
    where = {0: np.array([0.0, 1.0, 0.2, 1.0]), 1: np.array([1.0, 1.0, 0.0])}
    codes = model.sample_codes(40_000, np.random.default_rng(0), where)
    assert fits(codes, under(table, where)) and not fits(codes, table / table.sum())
    known = np.full((60_000, 3), -1)
    known[::2, 2], known[1::3, 1] = 3, 1
    codes = model.sample_given(known, np.random.default_rng(0), {0: where[0]})
    hot = {2: one_hot(4, 3), 1: one_hot(3, 1)}
    for axes in itertools.product([0, 1], repeat=2):
        rows = ((known[:, 2] >= 0) == axes[0]) & ((known[:, 1] >= 0) == axes[1])
        told = {axis: hot[axis] for axis, flag in zip((2, 1), axes, strict=True) if flag}
        assert fits(codes[rows], under(table, {0: where[0]} | told))


def test_boxes_without_a_positive_count_under_the_condition():
    model = boxes()
    where = {0: np.array([0.0, 0, 1, 1]), 1: np.array([0.0, 1, 1]), 2: np.array([1.0, 1, 0, 0])}
    with pytest.warns(UserWarning, match="each column is drawn by itself"):
        codes = model.sample_codes(2000, np.random.default_rng(0), where)
    for axis, vector in where.items():
        assert (vector[codes[:, axis]] > 0).all()
    codes = model.sample_given(np.array([[3, 2, 0], [2, -1, 1]]), np.random.default_rng(0), where)
    assert codes[0].tolist() == [3, 2, 0] and codes[1, [0, 2]].tolist() == [2, 1]
    empty = BoxModel(Boxes([[0, 0]], [[4, 4]]), [-3], (4, 4))
    with pytest.warns(UserWarning, match="probability zero"):
        codes = empty.sample_codes(500, np.random.default_rng(0), {0: np.array([0.0, 0, 1, 0])})
    assert set(codes[:, 0]) == {2} and set(codes[:, 1]) == {0, 1, 2, 3}


@given(
    mass=st.lists(st.sampled_from([0.0, 1e-300, 1e-17, 0.5, 1.0]), min_size=1, max_size=8),
    data=st.data(),
)
def test_positions_without_mass_are_never_drawn(mass, data):
    mass = np.array(mass)
    first = data.draw(st.integers(0, len(mass) - 1))
    stop = data.draw(st.integers(first + 1, len(mass)))
    u = np.array([0.0, 0.3, 0.999, np.nextafter(1.0, 0.0)])
    drawn = draw_in_ranges(mass, np.full(4, first), np.full(4, stop), u)
    assert ((drawn >= first) & (drawn < stop)).all()
    if mass[first:stop].any():
        assert (mass[drawn] > 0).all()


def test_keys_and_patterns_tell_rows_apart():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, (200, 50)), rng.integers(0, 3, (100, 50))
    second[:40] = first[rng.integers(0, 200, 40)]
    mine, others = shared_keys(first, second, [2**20] * 50)
    same = (first[:, None] == second[None]).all(axis=2)
    assert ((mine[:, None] == others[None]) == same).all()
    told = first > 0
    seen = patterns(told)
    assert sorted(np.concatenate([rows for _, rows in seen])) == list(range(200))
    assert all((told[rows] == flags).all() for flags, rows in seen)
