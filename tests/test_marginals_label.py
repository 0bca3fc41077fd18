"""Marginals with a label: what classes tell beyond the noise, and the grid."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from skdp.kernels.marginals import plan_views
from skdp.kernels.marginals.candidates import Candidates
from skdp.kernels.marginals.classes import _bins, _parts
from skdp.kernels.marginals.grid import measure_grid
from skdp.kernels.marginals.lawful import Laws
from skdp.kernels.marginals.population import Population, Target
from skdp.kernels.marginals.shrinkage import shrunk
from skdp.kernels.pairviews.attributes import Attribute

import skdp
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric
from skdp._random import noise_source, sampling_generator
from skdp.rows import CountTable

DOMAIN = Domain(
    {
        **{name: Numeric(0, 1, bins=16) for name in "xyz"},
        "kind": Categorical(list("abcd")),
        "label": Categorical(["no", "yes"]),
    }
)


def rows(n: int, share: float, told: bool, seed: int = 0) -> pd.DataFrame:
    """Rows whose label follows from x and y together, or from nothing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.random(n) for name in "xyz"})
    frame["kind"] = rng.choice(list("abcd"), n)
    yes = (frame["x"] > 0.5) & (frame["y"] > 0.4) if told else rng.random(n) < share
    frame["label"] = np.where(yes, "yes", "no")
    return frame


def release(frame: pd.DataFrame, epsilon: float, **parameters) -> MarginalSynthesizer:
    view = MarginalSynthesizer(epsilon, domain=DOMAIN, target="label", random_state=0, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return view.fit(frame)


@pytest.mark.parametrize("ordered", [True, False])
def test_noise_alone_tells_nothing_of_classes(ordered):
    rng = np.random.default_rng(0)
    expected = np.outer([700.0, 300.0], np.full(16, 10.0))
    noises = np.rint(rng.laplace(0, 400, (20, *expected.shape)))
    left = [shrunk(expected + each, 2 * 400.0**2, expected, ordered) - expected for each in noises]
    assert np.square(left).sum() < 0.02 * np.square(noises).sum()


@pytest.mark.parametrize("ordered", [True, False])
def test_differences_above_the_noise_stay(ordered):
    rng = np.random.default_rng(0)
    true = np.array([[400.0] * 8 + [2000.0] * 8, [1600.0] * 8 + [0.0] * 8])
    expected = np.outer(true.sum(axis=1), true.sum(axis=0)) / true.sum()
    found = shrunk(true + rng.laplace(0, 50, true.shape), 2 * 50.0**2, expected, ordered)
    assert np.abs(found - true).sum() < 0.1 * np.abs(expected - true).sum()


def test_a_population_follows_a_table_over_bins():
    attributes = [Attribute.of(np.ones(size), np.arange(size), 128) for size in (16, 16, 2)]
    generator = sampling_generator(noise_source(0))
    population = Population.of(attributes, Laws.of(None, attributes), 20_000, generator)
    halves = np.arange(16) // 8
    table = np.array([[[0.05, 0.2], [0.2, 0.05]], [[0.2, 0.05], [0.05, 0.2]]])
    target = Target((0, 1, 2), table, (halves, halves, np.arange(2)))
    population.fit([target], 10)
    assert population.margin(target.axes, target.bins) == pytest.approx(table, abs=0.02)
    # Inside the bins nothing changes.
    assert population.margin((0,)) == pytest.approx(np.full(16, 1 / 16), abs=0.01)


def grid_of(table, pairs, epsilon, total=4000.0):
    attributes = [Attribute.of(np.ones(n), np.arange(n), 128) for n in table.shape]
    source = noise_source(0)
    generator = sampling_generator(source)
    population = Population.of(attributes, Laws.of(None, attributes), 10_000, generator)
    ordered = [True] * len(attributes)
    return measure_grid(
        table, 2, attributes, ordered, pairs, total, Fraction(epsilon), population, source
    )


def test_a_grid_holds_the_columns_that_tell_something_and_counts_them():
    codes = np.array([[a, b, int(a >= 4)] for a in range(8) for b in range(8)] * 60)
    table = CountTable.from_codes(codes, (8, 8, 2))
    pairs = {
        (0, 2): table.dense((0, 2)) / table.n,
        (1, 2): table.dense((1, 2)) / table.n,
    }
    found = grid_of(table, pairs, 5)
    assert found.axes == (0, 2)
    assert (found.bins[0] == (np.arange(8) >= 4)).all()
    assert found.table == pytest.approx(np.array([[0.5, 0.0], [0.0, 0.5]]), abs=0.03)


def test_there_is_no_grid_without_signal_or_without_information():
    codes = np.array([[a, b, int(a >= 4)] for a in range(8) for b in range(8)])
    table = CountTable.from_codes(codes, (8, 8, 2))
    even = {(0, 2): np.full((8, 2), 1 / 16), (1, 2): np.full((8, 2), 1 / 16)}
    assert grid_of(table, even, 5) is None
    known = {(0, 2): table.dense((0, 2)) / table.n}
    assert grid_of(table, known, Fraction(1, 1000)) is None


@pytest.mark.parametrize("total", [1.0, 1000.0, 1e4, 1e5, 1e7])
@pytest.mark.parametrize("workload", ["all", {(0, 1): 1.0}])
@pytest.mark.parametrize("max_order", [1, 3])
def test_the_parts_of_a_plan_with_a_label_add_up(total, workload, max_order):
    views = Fraction(9, 10)
    plan = plan_views(
        views, total, (5, 6, 7, 2), max_order=max_order, workload=workload, labelled=True
    )
    assert sum(plan.budget().values()) == views
    assert plan.single > 0 and plan.classes > 0
    assert (plan.grid > 0) == (max_order > 1 and workload == "all")
    assert (plan.n_views == 0) == (plan.views == 0)


def test_a_label_that_nothing_tells_of_is_independent_in_the_release():
    view = release(rows(4000, 0.1, told=False), 0.2)
    synthetic = view.sample(20_000, random_state=0)
    yes = synthetic["label"] == "yes"
    for name in "xyz":
        by_half = yes.groupby(synthetic[name] > 0.5).mean()
        assert (by_half < 0.5).all()
    by_kind = yes.groupby(synthetic["kind"]).mean()
    assert (by_kind < 0.5).all()


def test_two_columns_tell_a_label_together():
    view = release(rows(20_000, 0.3, told=True), 1.0)
    synthetic = view.sample(20_000, random_state=0)
    told = (synthetic["x"] > 0.5) & (synthetic["y"] > 0.4)
    assert ((synthetic["label"] == "yes") == told).mean() > 0.93
    assert {"single", "classes", "grid"} <= set(view.synopsis_.model.budget)


def test_no_grid_where_sets_are_named_or_none_is_chosen():
    frame = rows(2000, 0.3, told=True)
    for parameters in ({"max_order": 1}, {"workload": {("x", "y"): 1}}):
        assert "grid" not in release(frame, 1.0, **parameters).synopsis_.model.budget


def test_an_empty_table_has_a_release():
    view = release(rows(0, 0.3, told=False), 1.0)
    assert isinstance(view.synopsis_, skdp.Synopsis)
    assert len(view.sample(100, random_state=0)) == 100


def test_a_single_bin_that_stands_out_is_kept():
    rng = np.random.default_rng(0)
    true = np.array([[9000.0] + [40.0] * 31, [3000.0] + [10.0] * 31])
    true[:, 20] = [30.0, 500.0]
    expected = np.outer(true.sum(axis=1), true.sum(axis=0)) / true.sum()
    noisy = true + rng.laplace(0, 25, true.shape)
    found = shrunk(noisy, 2 * 25.0**2, expected, True)
    assert found[1, 20] == pytest.approx(500, abs=120)
    # The other bins do not follow their noise.
    others = np.arange(1, 32) != 20
    assert np.abs(found - true)[:, 1:][:, others].mean() < 12


@pytest.mark.parametrize("label_known", [True, False])
def test_sets_weigh_by_what_is_known_of_the_label(label_known):
    table = CountTable.from_codes(np.zeros((1, 3), dtype=np.int32), (2, 2, 2))
    attributes = [Attribute.of(np.ones(2), np.arange(2), 128)] * 3
    offered = Candidates(table, attributes, range(3), 2, "all", 2, 100.0, label_known=label_known)
    ratio = offered._weight((0, 1)) / offered._weight((0, 2))
    assert ratio == (2 if label_known else 0.5)


def test_columns_that_tell_the_same_count_once():
    rng = np.random.default_rng(0)
    n = 40_000
    x = rng.integers(0, 16, n)
    frame = pd.DataFrame({name: (x + rng.random(n)) / 16 for name in "xyz"})
    frame["kind"] = rng.choice(list("abcd"), n)
    frame["label"] = np.where(rng.random(n) < 0.4 + 0.2 * (x >= 8), "yes", "no")
    synthetic = release(frame, 2.0).sample(40_000, random_state=0)
    high = (synthetic[list("xyz")] >= 0.5).all(axis=1)
    # Three independent columns in each class would say 0.77.
    assert (synthetic.loc[high, "label"] == "yes").mean() == pytest.approx(0.6, abs=0.04)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_three_classes_of_which_one_has_three_records(epsilon):
    domain = Domain({**dict(DOMAIN.items()), "label": Categorical(["no", "rare", "yes"])})
    frame = rows(3000, 0.3, told=True)
    frame.loc[:2, "label"] = "rare"
    view = MarginalSynthesizer(epsilon, domain=domain, target="label", random_state=0).fit(frame)
    synthetic = view.sample(20_000, random_state=0)
    assert (synthetic["label"] == "rare").mean() < 0.1
    told = (synthetic["x"] > 0.5) & (synthetic["y"] > 0.4)
    if epsilon >= 1:
        usual = synthetic["label"] != "rare"
        assert ((synthetic["label"] == "yes") == told)[usual].mean() > 0.8


def test_rare_neighbours_share_a_bin_and_other_codes_have_their_own():
    mass = np.array([600.0, 250.0, 120.0] + [1.0] * 30)
    tail = Attribute.of(mass, np.arange(len(mass)), 128)
    bins = _bins(tail, True, signal=1_000.0)
    assert bins[:3].tolist() == [0, 1, 2]
    assert bins.max() <= 5
    assert (np.diff(bins) >= 0).all()
    kinds = Attribute.of(mass, None, 128)
    assert len(np.unique(_bins(kinds, False, signal=1_000.0))) == len(mass)


def test_shares_of_columns_add_up_and_grow_slowly_with_their_codes():
    shares = _parts([2, 16, 32, 64, 500])
    assert sum(shares) == 1
    assert shares == sorted(shares)
    assert shares[3] == shares[4]
    assert float(shares[3] / shares[0]) == pytest.approx(32**0.25, rel=1e-3)
