"""Kernels of linear models: what one record adds at most, and solvers against exact answers."""

from fractions import Fraction

import numpy as np
from designs import DOMAIN, design_of
from loops import over
from scipy.ndimage import maximum_filter1d, minimum_filter1d

import skdp
from skdp._random import noise_source
from skdp.algorithms import linear
from skdp.algorithms.additive import UNIT, Identity, Logit, Records
from skdp.algorithms.linear import (
    LOSSES,
    _asked,
    _scores,
    _sums,
    _table,
    _widest,
    fit_functional,
    most_products,
    objectives,
)

HUGE = Fraction(10**6)
UVW = skdp.Domain({name: skdp.Numeric(0, 9, integer=True) for name in "uvw"})


def some_records(n=400, n_labels=2, seed=0, domain=DOMAIN, one_hot="categories"):
    design, columns = design_of(domain, one_hot)
    rng = np.random.default_rng(seed)
    sizes = tuple(len(each.column.values) for each in columns)
    groups = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    counts = rng.integers(1, 4, n)
    return Records(groups, rng.integers(0, n_labels, n), counts, sizes), design


# ----------------------------------------------------------------------------- features, moments


@over("one_hot", ["categories", "all"])
def test_a_group_has_one_feature_at_most_and_it_is_at_most_one(one_hot):
    records, design = some_records(200, one_hot=one_hot)
    for column in design.columns:
        assert ((column.values != 0).sum(axis=1) <= 1).all()
        assert np.abs(column.units()).max() <= UNIT
    weights = np.random.default_rng(0).integers(-UNIT, UNIT, (1 + design.n_features, 2))
    rows = np.hstack([np.full((len(records.groups), 1), UNIT), design.rows(records.groups)])
    assert (design.scores(records.groups, weights) == rows @ weights).all()


@over("one_hot", ["categories", "all"])
@over("link", [Logit(2), Logit(3), Identity(np.array([-UNIT, 300, UNIT]))])
def test_no_record_adds_more_products_than_are_paid_for(link, one_hot):
    records, design = some_records(300, one_hot=one_hot)
    if isinstance(link, Identity):
        outcomes, reach = np.stack([np.full(3, UNIT), link.outcomes], axis=1), 2
    else:
        outcomes, reach = np.eye(link.n_classes, dtype=np.int64) * UNIT, 1
    worst = 0
    for i in range(len(records.counts)):
        one = Records(records.groups[i : i + 1], np.array([i % 2]), np.array([1]), records.n_groups)
        cross, products = _sums(one, design, outcomes)
        worst = max(worst, np.abs(cross).sum() + np.abs(products[_asked(design)]).sum())
    assert 0.7 * most_products(design, reach) * UNIT**2 < worst
    assert worst <= most_products(design, reach) * UNIT**2


def test_least_squares_are_exact_where_noise_vanishes():
    rng = np.random.default_rng(1)
    records, design = some_records(3_000, 5, domain=UVW)
    link = Identity(rng.integers(-UNIT, UNIT, 5))
    model = fit_functional(
        records, design, link, HUGE, float(records.counts.sum()), noise_source(0)
    )
    rows = np.hstack([np.ones((3_000, 1)), design.rows(records.groups) / UNIT])
    root = np.sqrt(records.counts)[:, None]
    target = link.outcomes[records.labels] / UNIT
    exact = np.linalg.lstsq(rows * root, target * root[:, 0], rcond=None)[0]
    np.testing.assert_allclose(np.r_[model.intercept, model.coef[0]], exact, atol=2e-3)
    assert model.std.max() < 1e-3


def test_standard_errors_are_those_of_the_noise():
    records, design = some_records(3_000, 5, domain=UVW)
    link = Identity(np.linspace(-UNIT, UNIT, 5).astype(np.int64))
    total = float(records.counts.sum())
    found = [
        fit_functional(records, design, link, Fraction(2), total, noise_source(seed))
        for seed in range(200)
    ]
    spread = np.std([model.coef[0] for model in found], axis=0)
    # 200 runs tell a standard deviation to 5%: 20% is four of these.
    np.testing.assert_allclose(np.mean([model.std[0] for model in found], axis=0), spread, rtol=0.2)


# --------------------------------------------------------------------------------------- searches


@over("loss", LOSSES)
@over("width", [1, 37, 700, 5 * UNIT, 50 * UNIT])
def test_spread_is_the_largest_difference_within_a_window(loss, width):
    goal, table = objectives(Logit(2), loss)[0], _table(loss)
    size = min(width, len(table) - 1) + 1
    exact = int((maximum_filter1d(table, size) - minimum_filter1d(table, size)).max())
    assert goal.spread(width) >= exact
    if width in (1, 37):
        assert goal.spread(width) == max(exact, 1)


@over("loss", LOSSES)
def test_no_record_spreads_the_candidates_of_a_search_by_more_than_is_paid_for(loss):
    records, design = some_records(300, 3, one_hot="all")
    link = Identity(np.array([-UNIT, 100, UNIT])) if loss == "squares" else Logit(2)
    goal = objectives(link, loss)[0]
    rng = np.random.default_rng(0)
    worst = 0.0
    for i in range(0, 300, 3):
        label = np.array([i % (3 if loss == "squares" else 2)])
        one = Records(records.groups[i : i + 1], label, np.array([1]), records.n_groups)
        for step in (30, 300):
            for score in rng.integers(-3 * UNIT**2, 3 * UNIT**2, 4):
                gains = linear._gains(one, design, goal, np.array([score]), step)
                assert gains.max() - gains.min() <= goal.spread(2 * step)
                worst = max(worst, (gains.max() - gains.min()) / goal.spread(2 * step))
        population = rng.integers(-UNIT, UNIT, (20, 1 + design.n_features))
        scores, reach = _scores(one, design, goal, population)
        assert scores.max() - scores.min() <= reach
        margins = design.rows(one.groups) @ population[:, 1:].T + population[:, 0] * UNIT
        assert np.ptp(margins) <= _widest(design, population) * UNIT
    assert worst > 0.9


def test_gains_are_those_of_moving_one_weight():
    records, design = some_records(200)
    goal = objectives(Logit(2), "logistic")[0]
    rows = np.hstack([np.full((200, 1), UNIT), design.rows(records.groups)]).astype(np.int64)
    weights = np.random.default_rng(0).integers(-UNIT, UNIT, rows.shape[1])
    gains = linear._gains(records, design, goal, rows @ weights, 77)
    before = goal.at(rows @ weights, records.labels) @ records.counts
    for place in range(len(weights)):
        for sign, way in ((1, 0), (-1, 1)):
            moved = weights.copy()
            moved[place] += sign * 77
            after = goal.at(rows @ moved, records.labels) @ records.counts
            assert gains[2 * place + way] == before - after
