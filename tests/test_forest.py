"""The released forest: answers and samples against the dense table that it stands for."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from densities import dense, random_forest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from skdp import Categorical, Domain, Numeric, Synopsis
from skdp.release import ErrorBars, PairTable, TreeDensity, TreeModel, couple

NAMES = "abcdef"


def weighted_sum(table, weights):
    for axis, vector in weights.items():
        shape = [1] * table.ndim
        shape[axis] = -1
        table = table * vector.reshape(shape)
    return table.sum()


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    seed=st.integers(0, 10_000),
    zeros=st.booleans(),
)
def test_answers_equal_those_of_the_dense_table(shape, seed, zeros):
    rng = np.random.default_rng(seed)
    grouped = [axis for axis in range(len(shape)) if shape[axis] > 1 and rng.random() < 0.3]
    forest = random_forest(rng, shape, grouped=grouped, zeros=zeros)
    table = dense(forest)
    assert table.sum() == pytest.approx(1.0)
    model = TreeModel(forest, 1000.0)
    queries = [{}]
    for _ in range(12):
        axes = np.flatnonzero(rng.random(len(shape)) < 0.6).tolist()
        # Any weights, as sums of a column need them.
        queries.append({axis: rng.normal(size=shape[axis]) for axis in axes})
    expected = [1000.0 * weighted_sum(table, query) for query in queries]
    np.testing.assert_allclose(model.answer(queries), expected, atol=1e-7)


@settings(max_examples=40)
@given(shape=st.lists(st.integers(1, 5), min_size=2, max_size=5), seed=st.integers(0, 10_000))
def test_views_equal_the_margins_of_the_dense_table(shape, seed):
    rng = np.random.default_rng(seed)
    grouped = [axis for axis in range(len(shape)) if shape[axis] > 1 and rng.random() < 0.3]
    forest = random_forest(rng, shape, grouped=grouped)
    table = dense(forest)
    model = TreeModel(forest, 7.0)
    for a, b in itertools.permutations(range(len(shape)), 2):
        others = tuple(axis for axis in range(len(shape)) if axis not in (a, b))
        margin = table.sum(axis=others)
        margin = margin if a < b else margin.T
        np.testing.assert_allclose(model.view([a, b]), 7.0 * margin, atol=1e-9)
    for a in range(len(shape)):
        others = tuple(axis for axis in range(len(shape)) if axis != a)
        np.testing.assert_allclose(model.view([a]), 7.0 * table.sum(axis=others), atol=1e-9)


def chi_square_fits(observed, expected, false_alarm):
    """Whether counts fit an expectation; cells below 5 are put together."""
    small = expected < 5
    observed = np.append(observed[~small], observed[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    statistic = ((observed - expected) ** 2 / expected).sum()
    return statistic < chi2.isf(false_alarm, len(expected) - 1)


@pytest.mark.parametrize("grouped", [(), (1, 2)])
def test_samples_follow_the_density(grouped):
    # False alarm 1e-6 for each law accepted; a wrong density must be rejected.
    rng = np.random.default_rng(5)
    forest = random_forest(rng, (3, 4, 5, 2), grouped=grouped)
    table = dense(forest)
    codes = TreeModel(forest, 1.0).sample_codes(60_000, np.random.default_rng(1))
    assert codes.dtype == np.int32 and codes.shape == (60_000, 4)
    observed = np.bincount(np.ravel_multi_index(codes.T, table.shape), minlength=table.size)
    assert chi_square_fits(observed, 60_000 * table.ravel(), 1e-6)
    independent = np.ones(())
    for mu in forest.marginals:
        independent = np.multiply.outer(independent, mu)
    assert not chi_square_fits(observed, 60_000 * independent.ravel(), 1e-6)


def test_codes_without_mass_are_never_drawn():
    forest = TreeDensity(
        [np.array([0.0, 0.5, 0.5, 0.0]), np.array([0.5, 0.0, 0.5])],
        [PairTable((0, 1), np.array([[0, 0, 0], [0.5, 0, 0], [0, 0, 0.5], [0, 0, 0]]))],
    )
    codes = forest.sample(5000, np.random.default_rng(0))
    assert {tuple(row) for row in codes.tolist()} == {(1, 0), (2, 2)}


def test_cycles_and_wrong_shapes_are_refused():
    mu = [np.full(2, 0.5)] * 3
    table = np.full((2, 2), 0.25)
    edges = [PairTable(axes, table) for axes in ((0, 1), (1, 2), (0, 2))]
    with pytest.raises(ValueError, match="cycle"):
        TreeDensity(mu, edges)
    with pytest.raises(ValueError, match="shape"):
        TreeDensity(mu, [PairTable((0, 1), np.full((2, 3), 1 / 6))])
    with pytest.raises(ValueError, match="weighted records"):
        TreeModel(TreeDensity(mu, edges[:2]), 1.0, extra=edges[2:])


# --- margins


@settings(max_examples=50)
@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    seed=st.integers(0, 10_000),
    rounds=st.integers(0, 20),
)
def test_coupling_makes_margins_exact_and_not_negative(shape, seed, rounds):
    rng = np.random.default_rng(seed)
    table = rng.gamma(0.3, size=shape) * (rng.random(shape) < 0.6)
    rows, columns = (rng.gamma(0.5, size=size) for size in shape)
    rows, columns = rows / rows.sum(), columns / columns.sum()
    fitted = couple(table, rows, columns, rounds)
    assert (fitted >= 0).all()
    np.testing.assert_allclose(fitted.sum(axis=1), rows, atol=1e-12)
    np.testing.assert_allclose(fitted.sum(axis=0), columns, atol=1e-12)


def test_coupling_keeps_a_table_that_fits():
    table = np.array([[0.1, 0.2], [0.3, 0.4]])
    fitted = couple(table, table.sum(axis=1), table.sum(axis=0))
    np.testing.assert_allclose(fitted, table)


# --- weighted records beyond the forest


def with_rows():
    rng = np.random.default_rng(3)
    forest = random_forest(rng, (3, 4, 2))
    rows = forest.sample(500, rng)
    weights = rng.random(500)
    missing = [p for p in ((0, 1), (0, 2), (1, 2)) if p not in [e.axes for e in forest.edges]]
    shape = [len(forest.marginals[axis]) for axis in missing[0]]
    extra = [PairTable(missing[0], np.full(shape, 1 / math.prod(shape)))]
    return forest, extra, rows, weights / weights.sum()


def test_wide_queries_are_answered_by_the_weighted_records():
    forest, extra, rows, weights = with_rows()
    model = TreeModel(forest, 100.0, extra=extra, rows=rows, row_weights=weights)
    query = {0: np.array([1.0, 0.0, 1.0]), 1: np.array([0.0, 1.0, 1.0, 0.5]), 2: np.ones(2)}
    hit = query[0][rows[:, 0]] * query[1][rows[:, 1]] * query[2][rows[:, 2]]
    assert model.answer([query])[0] == pytest.approx(100 * (weights @ hit))
    axes = extra[0].axes
    pair = {axis: rng_weights for axis, rng_weights in query.items() if axis in axes}
    expected = 100 * weighted_sum(extra[0].table, {i: pair[a] for i, a in enumerate(axes)})
    assert model.answer([pair])[0] == pytest.approx(expected)
    np.testing.assert_allclose(model.view(list(axes)), 100 * extra[0].table)
    np.testing.assert_allclose(model.view(list(axes[::-1])), 100 * extra[0].table.T)
    assert model.view([2]).sum() == pytest.approx(100)


def test_weighted_records_are_drawn_by_weight():
    forest, extra, rows, weights = with_rows()
    model = TreeModel(forest, 100.0, extra=extra, rows=rows, row_weights=weights)
    codes = model.sample_codes(50_000, np.random.default_rng(0))
    cells = np.ravel_multi_index(codes.T, (3, 4, 2))
    expected = np.bincount(np.ravel_multi_index(rows.T, (3, 4, 2)), weights=weights, minlength=24)
    observed = np.bincount(cells, minlength=24)
    assert chi_square_fits(observed, 50_000 * expected, 1e-6)
    even = np.bincount(np.ravel_multi_index(rows.T, (3, 4, 2)), minlength=24) / len(rows)
    assert not chi_square_fits(observed, 50_000 * even, 1e-6)


# --- error bars


BARS = ErrorBars(0.95, 30.0, False, 0.95, 2000, "all such queries")


def test_factors_are_whole_bounded_and_larger_for_rare_answers():
    factors = ErrorBars.factors(np.array([-5.0, 0.0, 10.0, 100.0, 500.0, 1000.0, 1e9]), 1000.0)
    assert factors.dtype == np.int64
    assert factors.tolist() == [80, 80, 80, 26, 16, 80, 80]
    assert factors.max() <= ErrorBars.MOST


def test_half_widths_grow_with_the_level_and_never_shrink_below_it():
    assert BARS.half_width(10.0, 100.0, 0.95) == 30.5
    assert BARS.half_width(10.0, 100.0, 0.5) == 30.5
    assert BARS.half_width(10.0, 100.0, 0.99) == pytest.approx(30.5 * math.log(100) / math.log(20))
    assert "not guaranteed" in " ".join(BARS.guarantee(0.99).split())
    assert "not guaranteed" not in BARS.guarantee(0.9)
    assert "95%" in BARS.guarantee(0.95)
    scaled = ErrorBars(0.95, 800.0, True, 0.95, 2000, "all such queries")
    assert scaled.half_width(500.0, 1000.0, 0.95) == 50.5
    assert scaled.half_width(0.0, 1000.0, 0.95) == 10.5


def test_without_error_bars_intervals_are_refused():
    model = TreeModel(TreeDensity([np.full(2, 0.5)]), 10.0)
    with pytest.raises(ValueError, match="error_share"):
        model.error({}, 0.95)


# --- files and tables


DOMAIN = Domain(
    {
        "x": Numeric(0, 3, bins=3),
        "y": Categorical(["p", "q", "r"], nullable=True),
        "z": Numeric(0, 1, integer=True),
    }
)


def synopses():
    rng = np.random.default_rng(11)
    forest, extra, rows, weights = with_rows()
    budget = {"single": 0.25}
    yield TreeModel(random_forest(rng, (3, 4, 2)), 12.5, error_bars=BARS, budget=budget)
    yield TreeModel(random_forest(rng, (3, 4, 2), grouped=(1,)), -3.0)
    yield TreeModel(TreeDensity(forest.marginals), 5.0)
    yield TreeModel(forest, 50.0, extra=extra, rows=rows, row_weights=weights)


@pytest.mark.parametrize("model", list(synopses()))
def test_save_and_load(model, tmp_path):
    release = Synopsis.from_model(DOMAIN, model, mechanism="test")
    path = tmp_path / "release.skdp"
    release.save(path)
    again = Synopsis.load(path)
    assert type(again.model) is TreeModel
    assert again.total == release.total
    assert again.model.error_bars == model.error_bars
    assert again.model.budget == model.budget
    assert again.model.pairs == model.pairs
    queries = [
        None,
        {"x": (0, 2)},
        "x <= 2 and y == 'q'",
        "y in ['p', None] and z == 1",
        "x<1 & z=0",
    ]
    np.testing.assert_array_equal(again.count(queries), release.count(queries))
    np.testing.assert_array_equal(again.sample_codes(50, 0), release.sample_codes(50, 0))
    second = tmp_path / "again.skdp"
    again.save(second)
    assert second.read_bytes() == path.read_bytes()
    assert "pairs" in repr(release)


def test_files_that_do_not_fit_together_are_refused():
    model = next(synopses())
    facts, arrays = model.to_arrays()
    shape = model.shape

    def load(changed_facts=None, changed_arrays=None, of=shape):
        return TreeModel.from_arrays(
            of, {**facts, **(changed_facts or {})}, {**arrays, **(changed_arrays or {})}
        )

    assert load().total == model.total
    with pytest.raises(ValueError, match="domain"):
        load(of=(3, 4, 3))
    with pytest.raises(ValueError, match="pair"):
        load({"edges": [[0, 9]]})
    with pytest.raises(ValueError, match="total"):
        load({"total": math.inf})
    with pytest.raises(ValueError, match="negative"):
        load(changed_arrays={"tables": -arrays["tables"]})
    with pytest.raises(ValueError, match="sum to 1"):
        load(changed_arrays={"marginals": arrays["marginals"] * 2})
    rows = np.array([[0, 0, 7]])
    with pytest.raises(ValueError, match="outside"):
        load(changed_arrays={"rows": rows, "row_weights": np.ones(1)})


def test_to_frame_lists_every_released_number():
    model = next(synopses())
    listed = model.to_frame(DOMAIN)
    singles = listed[listed["second"] == ""]
    assert singles.groupby("first")["count"].sum().round(6).eq(12.5).all()
    assert len(listed) == 9 + sum(pair.table.size for pair in model.density.edges)
    grouped = list(synopses())[1]
    labels = grouped.to_frame(DOMAIN)
    assert labels["first_value"].str.contains(r"\.\.\.").any() or (
        labels["second_value"].str.contains(r"\.\.\.").any()
    )
