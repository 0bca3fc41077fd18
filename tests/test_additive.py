"""Additive models: bounded integers per record, priors and posteriors, the estimators."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skdp
from skdp._models import group_values
from skdp._random import noise_source
from skdp.additive import merged_labels
from skdp.algorithms.additive import (
    UNIT,
    Identity,
    Logit,
    PairPlan,
    Records,
    additive_parts,
    fit_additive,
    fitting,
    located,
    pairs,
)
from skdp.algorithms.additive import pairs as calibration
from skdp.algorithms.additive.fitting import agreed, column_shares, measure_columns
from skdp.algorithms.additive.model import Draft, Prior
from skdp.algorithms.additive.pairs import (
    _GRAIN,
    _REACH,
    _moments,
    calibrate,
    coarse_axis,
    monotone,
)
from skdp.exceptions import DomainError
from skdp.mechanisms import noisy_max

# ------------------------------------------------------------------------------ links and records


def some_scores(n_outputs, n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-40 * UNIT, 40 * UNIT, size=(n, n_outputs))
    return np.concatenate([scores, np.zeros((1, n_outputs), dtype=np.int64), scores // 50])


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_residuals_of_classes_are_bounded_integers_near_the_exact_ones(n_classes):
    link = Logit(n_classes)
    scores = some_scores(link.n_outputs)
    labels = np.arange(len(scores)) % n_classes
    residuals = link.residuals(scores, labels)
    assert residuals.dtype == np.int64
    assert np.abs(residuals).sum(axis=1).max() <= link.reach * UNIT
    exact = np.eye(n_classes)[labels] - link.probabilities(scores / UNIT)
    np.testing.assert_allclose(
        residuals / UNIT, exact[:, -link.n_outputs :], atol=1.1 / UNIT + 1e-4
    )


def test_a_record_has_the_same_residual_in_any_company():
    link = Logit(4)
    scores = some_scores(4)
    labels = np.arange(len(scores)) % 4
    together = link.residuals(scores, labels)
    alone = [link.residuals(scores[i : i + 1], labels[i : i + 1])[0] for i in range(len(scores))]
    assert np.array_equal(together, alone)


@pytest.mark.parametrize("link", [Logit(2), Logit(3), Identity(np.array([-UNIT, 0, 700]))])
@pytest.mark.parametrize("size", [0.1, 3.0, 200.0])
def test_no_record_moves_the_moments_by_more_than_is_paid_for(link, size):
    rng = np.random.default_rng(3)
    n, n_functions = 300, 5
    tables = rng.normal(0, size * UNIT, (n, n_functions, link.n_outputs)).astype(np.int64)
    scores = some_scores(link.n_outputs)[:n]
    most = _REACH // (2 if link.n_outputs == 1 else 1)
    if isinstance(link, Identity):
        most = _REACH // 2
    for label in range(3 if link.n_outputs != 1 or isinstance(link, Identity) else 2):
        for i in range(0, n, 10):
            one = Records(
                np.array([[i]]), np.array([label]), np.array([1]), (n,), scores[i : i + 1]
            )
            gradient, hessian = _moments(
                one,
                link,
                lambda g: tables[g[:, 0]].swapaxes(0, 1),
                n_functions,
                most,
            )
            assert np.abs(gradient).sum() <= _REACH
            assert np.abs(np.triu(hessian)).sum() <= most**2
            assert np.array_equal(hessian, hessian.T)


@pytest.mark.parametrize("link", [Logit(2), Logit(3), Identity(np.array([-UNIT, 0, 700]))])
def test_a_step_has_noise_for_what_a_record_moves_at_most(link, monkeypatch):
    """Both sums pay for the bounds of the test above, with parts that sum to epsilon."""
    calls = []

    def recorded(values, epsilon, sensitivity, *, random_state):
        calls.append((epsilon, sensitivity))
        return values

    monkeypatch.setattr(calibration, "discrete_laplace", recorded)
    nothing = np.zeros((1, link.n_outputs), dtype=np.int64)
    records = Records(nothing[:, :1], nothing[:, 0], np.ones(1, int), (1,), nothing)
    calibration.newton_step(
        records,
        link,
        lambda groups: np.full((2, len(groups), link.n_outputs), UNIT),
        np.zeros(2),
        1.0,
        Fraction(1),
        noise_source(0),
    )
    (rate, reach), (other, most) = calls
    assert reach == _REACH
    assert most == (reach // 2 if link.n_outputs == 1 else reach) ** 2
    assert rate + other == 1


def test_moments_are_those_of_the_loss_where_nothing_is_cut():
    rng = np.random.default_rng(5)
    link, n = Logit(2), 200
    tables = rng.normal(0, 0.3 * UNIT, (n, 3, 1)).astype(np.int64)
    scores = rng.normal(0, UNIT, (n, 1)).astype(np.int64)
    labels = rng.integers(0, 2, n)
    records = Records(np.arange(n)[:, None], labels, np.ones(n, dtype=np.int64), (n,), scores)
    gradient, hessian = _moments(
        records,
        link,
        lambda g: tables[g[:, 0]].swapaxes(0, 1),
        3,
        _REACH // 2,
    )
    features = np.concatenate([np.ones((n, 1)), tables[:, :, 0] / UNIT], axis=1)
    share = 1 / (1 + np.exp(-scores[:, 0] / UNIT))
    np.testing.assert_allclose(gradient / _GRAIN, features.T @ (labels - share), atol=n / _GRAIN)
    curvature = np.maximum(share * (1 - share), 0.1)
    exact = (features * curvature[:, None]).T @ features
    np.testing.assert_allclose(hessian / _GRAIN**2, exact, atol=n * 2 / _GRAIN)


# ------------------------------------------------------------------------------------- one column


def test_the_posterior_follows_precise_sums_and_forgets_noisy_ones():
    truth = np.sin(np.arange(20) / 3)
    curvature = np.full(20, 100.0)
    for prior in (Prior(20, range(20)), Prior(20, None)):
        near = prior.update(curvature * truth, curvature, np.full(20, 1e-6))
        np.testing.assert_allclose(near.mean, truth, atol=1e-3)
        far = prior.update(curvature * truth, curvature, np.full(20, 1e12))
        np.testing.assert_allclose(far.mean, 0, atol=1e-3)


def test_neighbours_help_where_there_is_an_order():
    rng = np.random.default_rng(0)
    truth = np.sin(np.arange(32) / 6)
    seen = truth + rng.normal(0, 0.7, 32)
    errors = [
        np.square(prior.update(seen, np.ones(32), np.full(32, 0.49)).mean - truth).mean()
        for prior in (Prior(32, range(32)), Prior(32, None))
    ]
    assert errors[0] < 0.8 * errors[1]


def test_likely_scales_shrink_what_is_noise():
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 10, 30)
    shrunk = Prior(30, None).update(noise, np.full(30, 5.0), np.full(30, 100.0))
    # Without shrinkage it would be up to 4.
    assert np.abs(shrunk.mean).max() < 0.15


def test_groups_of_columns():
    number = group_values(skdp.Numeric(0, 100, bins=64, special=[-1], nullable=True), 8)
    assert len(number.labels) == 8 + 2 and number.chain == list(range(8))
    np.testing.assert_allclose(number.edges, np.linspace(0, 100, 9))
    free = group_values(skdp.Categorical(list("abc")), 2)
    assert free.chain is None and len(free.labels) == 3
    ordered = group_values(skdp.Categorical(list(range(40)), ordered=True), 10)
    assert len(ordered.labels) <= 10
    order = [ordered.chain.index(group) for group in ordered.groups]
    assert order == sorted(order)
    # Runs of categories are written by their names.
    grades = [f"grade {place}" for place in range(40)]
    ordered = group_values(skdp.Categorical(grades, ordered=True, nullable=True), 10)
    shown = [ordered.labels[group] for group in ordered.chain]
    assert shown[0].startswith("grade 0 .. grade ")
    assert shown[-1].endswith(" .. grade 39")
    assert ordered.labels[ordered.groups[-1]] == "missing"
    pair = merged_labels(shown, np.array([0, 0, *[1] * (len(shown) - 2)]), 2)
    assert pair[0].startswith("grade 0 to grade ")
    assert pair[1].endswith(" to grade 39")
    assert ".." not in "".join(pair)


# ------------------------------------------------------------------- histograms and calibration


def test_budgets_of_columns_sum_to_the_whole_and_make_the_noise_least():
    sizes = [2, 2, 40, 7, 500]
    shares = column_shares(sizes)
    assert sum(shares) == 1

    def noise(parts):
        return sum(n / float(part) ** 2 for n, part in zip(sizes, parts, strict=True))

    best = noise(shares)
    assert best < 0.6 * noise([0.2] * 5)
    for i in range(5):
        moved = [share * (Fraction(9, 10) if i == j else 1) for j, share in enumerate(shares)]
        assert best < noise([part / sum(moved) for part in moved])


def test_columns_are_measured_with_the_stated_noise():
    # Mean squares of 4,000 draws: relative standard deviation 0.035.
    exact = [np.zeros((2_000, 2), dtype=np.int64), np.zeros((50, 80), dtype=np.int64)]
    noisy, variances = measure_columns(exact, Fraction(1, 10), 3, noise_source(0))
    for table, variance, share in zip(noisy, variances, column_shares([2_000, 50]), strict=True):
        assert abs(variance / (2 * (30 / float(share)) ** 2) - 1) < 0.01
        assert abs(np.mean(table**2) / variance - 1) < 0.15


def test_totals_of_columns_agree():
    tables = [np.array([[1.0, 5.0], [2.0, 0.0]]), np.array([[6.0, 9.0]])]
    found = agreed(tables, [1.0, 2.0])
    for table in found:
        np.testing.assert_allclose(table.sum(axis=0), (4.5, 7))
    np.testing.assert_allclose(found[0] - tables[0], [[0.75, 1], [0.75, 1]])


def scored_records(n, factor, shift, seed=0):
    """Records of two groups whose class has a logit of shift + factor * what the draft says."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, (n, 2))
    draft = Draft.empty(np.array([-0.5]), (2, 2))
    draft.shapes = [np.array([[-1.0], [1.0]]), np.array([[-0.7], [0.7]])]
    draft.sizes = [np.full(2, n / 2.0)] * 2
    score = -0.5 + shift + factor * (2.0 * groups[:, 0] - 1 + 1.4 * groups[:, 1] - 0.7)
    labels = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return Records(groups, labels, np.ones(n, dtype=np.int64), (2, 2)), draft


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.0), (0.5, 0.3), (1.4, -0.6)])
def test_calibration_finds_factor_and_shift(factor, shift):
    records, draft = scored_records(20_000, factor, shift)
    calibrate(records, Logit(2), draft, 1.0, Fraction(1), 2e4, noise_source(0))
    # Scores count as the middle of their interval, at most half of it away.
    np.testing.assert_allclose(draft.shapes[0][:, 0], [-factor, factor], atol=0.25)
    np.testing.assert_allclose(draft.intercept, [-0.5 + shift], atol=0.25)


def test_calibration_under_noise_keeps_what_is_expected():
    records, draft = scored_records(50, 1.4, -0.6)
    calibrate(records, Logit(2), draft, 0.6, Fraction(1, 10_000), 50.0, noise_source(0))
    np.testing.assert_allclose(draft.shapes[0][:, 0], [-0.6, 0.6], atol=0.25)
    np.testing.assert_allclose(draft.intercept, [-0.5], atol=0.25)


# Each in the middle of an interval.
MIDDLES = np.arange(-3.5, 4)


def bent_records(n, seed=0):
    """Records whose class has a logit of twice the score below 0 and of a third of it above."""
    rng = np.random.default_rng(seed)
    draft = Draft.empty(np.array([0.0]), (8,))
    draft.shapes = [MIDDLES[:, None]]
    draft.sizes = [np.full(8, n / 8.0)]
    groups = rng.integers(0, 8, (n, 1))
    score = MIDDLES[groups[:, 0]]
    logit = np.where(score < 0, 2 * score, score / 3)
    labels = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    return Records(groups, labels, np.ones(n, dtype=np.int64), (8,)), draft


def test_a_rising_line_finds_a_bend_that_no_factor_has():
    records, draft = bent_records(40_000)
    scores, logits = monotone(records, draft, Fraction(1), noise_source(0))
    assert (np.diff(scores) > 0).all() and (np.diff(logits) > 0).all()
    found = np.interp(MIDDLES, scores, logits)
    np.testing.assert_allclose(found, np.where(MIDDLES < 0, 2 * MIDDLES, MIDDLES / 3), atol=0.45)
    # It goes on with one slope, farther than any score of the model.
    farthest = np.abs(draft.shapes[0]).max() + abs(draft.intercept[0])
    assert scores[-1] > farthest and scores[0] < -farthest


def test_a_rising_line_is_what_is_expected_where_all_is_noise():
    records, draft = bent_records(50)
    found = []
    for seed in range(8):
        scores, logits = monotone(records, draft, Fraction(1, 10_000), noise_source(seed))
        found.append(np.interp([-2, 2], scores, logits))
    np.testing.assert_allclose(np.median(found, axis=0), [-2, 2], atol=0.2)
    np.testing.assert_allclose(np.mean(found, axis=0), [-2, 2], atol=0.5)


@pytest.mark.parametrize("seed", range(5))
def test_lines_rise_under_any_noise(seed):
    records, draft = bent_records(300, seed)
    scores, logits = monotone(records, draft, Fraction(1, 20), noise_source(seed))
    assert (np.diff(scores) > 0).all() and (np.diff(logits) > 0).all()


@pytest.mark.parametrize("alone", [False, True])
def test_a_record_is_in_one_cell_of_the_calibration(alone):
    records, _ = scored_records(400, 1.0, 0.0)
    tables = []

    def watch(values, epsilon, random_state=None):
        tables.append(values)
        return values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "discrete_laplace", watch)
        for left_out in (None, 0, 17, 399):
            kept = np.arange(400) != (-1 if left_out is None else left_out)
            some = Records(records.groups[kept], records.labels[kept], records.counts[kept], (2, 2))
            draft = scored_records(4, 1, 0)[1]
            if alone:
                monotone(some, draft, Fraction(1), None)
            else:
                calibrate(some, Logit(2), draft, 1.0, Fraction(1), 4e2, None)
    assert tables[0].sum() == 400
    for table in tables[1:]:
        assert np.abs(tables[0] - table).sum() == 1


def numbered_records(n, factor, shift, seed=0):
    """The same with numbers, of which the draft says another multiple and is shifted."""
    records, draft = scored_records(n, 1.0, 0.0, seed)
    draft.intercept = np.array([0.1])
    draft.shapes = [0.1 * shape for shape in draft.shapes]
    at = sum(shape[records.groups[:, j], 0] for j, shape in enumerate(draft.shapes))
    outcomes = np.rint((0.1 + shift + factor * at) * UNIT).astype(np.int64)
    return replace(records, labels=np.arange(n)), draft, Identity(outcomes)


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.0), (0.5, 0.3), (1.4, -0.3)])
def test_calibration_of_numbers_finds_factor_and_shift(factor, shift):
    records, draft, link = numbered_records(5_000, factor, shift)
    calibrate(records, link, draft, 0.8, Fraction(10), 5e3, noise_source(0))
    np.testing.assert_allclose(draft.shapes[0][:, 0], [-0.1 * factor, 0.1 * factor], atol=0.01)
    np.testing.assert_allclose(draft.intercept, [0.1 + shift], atol=0.01)


def test_no_record_moves_sums_of_numbers_by_more_than_is_paid_for(monkeypatch):
    records, draft, link = numbered_records(60, 3.0, 0.4)
    link = Identity(np.clip(link.outcomes, -UNIT, UNIT), 0.3, 300)
    calls = []

    def watch(values, epsilon, sensitivity, random_state=None):
        calls.append((np.atleast_1d(values), epsilon, sensitivity))
        return np.zeros(np.shape(values), dtype=np.int64)

    for name in (calibration, fitting):
        monkeypatch.setattr(name, "discrete_laplace", watch)
    worst = {}
    for record in range(60):
        alone = Records(records.groups[[record]], np.array([record]), np.ones(1, int), (2, 2))
        calls.clear()
        calibrate(alone, link, draft.copy(), 1.0, Fraction(1), 60.0, None)
        located(alone, link, Fraction(1), 60.0, None)
        assert [epsilon for _, epsilon, _ in calls] == [1, Fraction(1, 2), Fraction(1, 2)]
        for number, (values, _, sensitivity) in enumerate(calls):
            worst[number] = max(worst.get(number, 0), np.abs(values).sum() / sensitivity)
    assert all(0.3 < each <= 1 for each in worst.values()), worst


# ---------------------------------------------------------------------------------- the estimators

DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(0, 100, bins=20),
        "city": skdp.Categorical(["a", "b", "c"]),
        "noise": skdp.Numeric(0, 1, bins=4, nullable=True),
        "ill": skdp.Categorical(["no", "yes"]),
    }
)


def people(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "city": rng.choice(["a", "b", "c"], n),
            "noise": rng.uniform(0, 1, n),
        }
    )
    score = (rows["age"] - 60) / 15 + rows["city"].map({"a": 1.0, "b": 0.0, "c": -1.0})
    rows["ill"] = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    return rows, score


def fitted(epsilon=1.0, **params):
    rows, _ = people()
    model = skdp.PrivateAdditiveClassifier(
        epsilon=epsilon, domain=DOMAIN, target="ill", random_state=0, **params
    )
    return model.fit(rows.drop(columns="ill"), rows["ill"])


def test_probabilities_are_calibrated_and_near_the_truth():
    rows, score = people(seed=1)
    truth = 1 / (1 + np.exp(-score))
    shown = fitted().predict_proba(rows.drop(columns="ill"))[:, 1]
    assert np.abs(shown - truth).mean() < 0.03
    for low in np.arange(0, 1, 0.2):
        inside = (shown >= low) & (shown < low + 0.2)
        assert abs(shown[inside].mean() - truth[inside].mean()) < 0.04


def test_more_epsilon_is_better():
    rows, score = people(seed=1)
    truth = 1 / (1 + np.exp(-score))
    errors = [
        np.abs(fitted(e).predict_proba(rows.drop(columns="ill"))[:, 1] - truth).mean()
        for e in (0.005, 0.1, 1.0, 10.0)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.025


def test_contributions_sum_to_the_score():
    model = fitted()
    rows = people(500)[0].drop(columns="ill")
    parts = model.explain(rows)
    assert parts.shape == (500, len(model.shape_functions_))
    share = model.predict_proba(rows)[:, 1]
    np.testing.assert_allclose(parts.sum(axis=1) + model.intercept_, np.log(share / (1 - share)))
    unknown = rows.assign(city="atlantis")
    assert (model.explain(unknown)[:, 1] == 0).all()


def test_standard_errors_are_those_of_the_noise():
    # 60 releases of the same records: the spread of scores against what is stated. The ratio of
    # root mean squares over 20 groups has a standard deviation of about 0.06.
    rows, _ = people(3_000)
    shapes = [
        skdp.PrivateAdditiveClassifier(epsilon=0.5, domain=DOMAIN, target="ill", random_state=seed)
        .fit(rows)
        .shape_functions_["age"]
        for seed in range(60)
    ]
    spread = np.std([shape.scores for shape in shapes], axis=0, ddof=1)
    stated = np.sqrt(np.mean([np.square(shape.std_errors) for shape in shapes], axis=0))
    ratio = np.sqrt(np.mean(spread**2) / np.mean(stated**2))
    assert 0.6 < ratio < 1.4


def test_functions_can_be_edited_and_made_monotone():
    model = fitted(interactions=0)
    before = model.shape_functions_["age"].scores.copy()
    model.make_monotone("age")
    assert (np.diff(model.shape_functions_["age"].scores) >= 0).all()
    model.make_monotone("age", "decreasing")
    assert (np.diff(model.shape_functions_["age"].scores) <= 0).all()
    model.set_shape("age", before)
    assert np.array_equal(model.shape_functions_["age"].scores, before)
    model.set_shape("city", np.zeros(3))
    assert model.feature_importances_[1] == 0
    with pytest.raises(ValueError, match="has no order"):
        model.make_monotone("city")
    with pytest.raises(ValueError, match="one for each group"):
        model.set_shape("age", [1.0, 2.0])
    with pytest.raises(ValueError, match="must be finite"):
        model.set_shape("city", [np.nan, 0, 0])
    with pytest.raises(DomainError, match="no column 'shoe'"):
        model.set_shape("shoe", [0.0])
    with pytest.raises(ValueError, match="direction"):
        model.make_monotone("age", "up")


def test_several_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    scores = np.stack([X[:, 0], X[:, 1], -X[:, 0] - X[:, 1]], axis=1)
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    best = (scores.argmax(axis=1) == y).mean()
    for epsilon in (0.1, 1, 10):
        model = skdp.PrivateAdditiveClassifier(
            epsilon=epsilon,
            domain=skdp.Numeric(-4, 4),
            classes=[0, 1, 2],
            interactions=[("x0", "x2")] if epsilon == 1 else 0,
            random_state=0,
        ).fit(X, y)
        assert model.score(X, y) > best - 0.03
        if epsilon == 1:
            assert model.explain(X[:5]).shape == (5, 4, 3)
    assert model.shape_functions_["x0"].scores.shape[1] == 3
    assert model.explain(X[:5]).shape == (5, 3, 3)
    assert list(model.shape_functions_["x0"].to_frame())[:3] == ["group", "score_0", "std_error_0"]
    shares = model.predict_proba(X[:5])
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_a_regressor_learns_sums_of_functions():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (20_000, 3))
    y = 3 * np.sin(6 * X[:, 0]) + 2 * X[:, 1] + rng.normal(0, 0.3, 20_000)
    model = skdp.PrivateAdditiveRegressor(
        epsilon=1, domain=skdp.Numeric(0, 1), target_range=(-5, 7), random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.92
    assert model.feature_importances_.argmax() == 0
    assert model.predict(X).min() >= -5
    with pytest.raises(DomainError, match="needs a Numeric"):
        skdp.PrivateAdditiveRegressor(domain=DOMAIN, target="ill").fit(people(10)[0])
    with pytest.raises(ValueError, match="pair"):
        skdp.PrivateAdditiveRegressor(domain=skdp.Numeric(0, 1), target_range=3).fit(X, y)


def test_hostile_tables():
    one = skdp.Domain({"x": skdp.Numeric(0, 1, bins=2), "y": skdp.Categorical(["a"])})
    rows = pd.DataFrame({"x": [0.5] * 50, "y": "a"})
    model = skdp.PrivateAdditiveClassifier(epsilon=1, domain=one, target="y", random_state=0).fit(
        rows
    )
    assert set(model.predict(rows)) == {"a"}
    assert model.predict_proba(rows).shape == (50, 1)
    # Separable data, and a label that is a copy of a column.
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (5_000, 2))
    y = (X[:, 0] > 0.5).astype(int)
    for epsilon in (0.001, 1, 1000):
        model = skdp.PrivateAdditiveClassifier(
            epsilon=epsilon, domain=skdp.Numeric(0, 1), classes=[0, 1], random_state=0
        ).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, y) > 0.98
    wide = rng.integers(0, 2, (300, 200)).astype(float)
    model = skdp.PrivateAdditiveClassifier(
        epsilon=1, domain=skdp.Numeric(0, 1, bins=2), classes=[0, 1], random_state=0
    ).fit(wide, wide[:, 0])
    assert np.isfinite(model.predict_proba(wide)).all()
    with pytest.raises(ValueError, match="max_groups"):
        skdp.PrivateAdditiveClassifier(domain=DOMAIN, target="ill", max_groups=1).fit(people(10)[0])
    with pytest.raises(DomainError, match="no column except the label"):
        skdp.PrivateAdditiveClassifier(domain=DOMAIN.select(["ill"]), target="ill").fit(
            people(10)[0][["ill"]]
        )


ASKED = ({"pairs": ((0, 1),)}, {"n_pairs": 1}, {})


def test_parts_and_plan_sum_to_epsilon():
    parts = additive_parts(Fraction(1, 3))
    assert sum(parts.values()) == Fraction(1, 3)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 4, (5_000, 2))
    records = Records(groups, groups[:, 0] // 2, np.ones(5_000, dtype=np.int64), (4, 4))
    priors = [Prior(4, range(4)), Prior(4, None)]
    original = fitting.discrete_laplace
    # One factor of all columns; then weights of each, and more and more rounds. Pairs are listed,
    # chosen, or do not pay.
    plans = [None, *(PairPlan([range(4), None], **asked) for asked in ASKED)]
    for epsilon, plan in product(
        (Fraction(1, 100), Fraction(4, 5), Fraction(9, 10), Fraction(100)), plans
    ):
        spent = []
        source = noise_source(0)

        def watch(*args, spent=spent, **kwargs):
            spent.append(args[1])
            return original(*args, **kwargs)

        def watch_choice(*args, spent=spent, **kwargs):
            spent.append(args[1])
            return noisy_max(*args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            for module in (calibration, fitting, pairs, calibration):
                patch.setattr(module, "discrete_laplace", watch)
            patch.setattr(pairs, "noisy_max", watch_choice)
            fit_additive(records, Logit(2), priors, epsilon, 5_000.0, source, plan)
        assert sum(spent) == epsilon


def test_pictures_are_drawn():
    pytest.importorskip("matplotlib")
    model = fitted(interactions=[("city", "age")])
    figure = model.plot(["age", "city", "noise"])
    assert len(figure.axes) == 3
    figure = model.plot(["city"], level=0.8)
    assert figure.axes[0].get_xlabel() == "city"
    with pytest.raises(DomainError, match="no column"):
        model.plot(["shoe"])
    # All functions, and a scale of colours.
    figure = model.plot()
    assert len(figure.axes) == 5
    drawn = [ax for ax in figure.axes if ax.collections and ax.get_ylabel() == "city"]
    assert [ax.get_xlabel() for ax in drawn] == ["age"]


def test_pictures_name_dates_classes_and_categories():
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    n = 20_000
    cities = [f"c{place:02}" for place in range(40)]
    sizes = ["small", "middle", "large"]
    rows = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, n), unit="D"),
            "city": rng.choice(cities, n),
            "size": rng.choice(sizes, n),
        }
    )
    domain = skdp.Domain(
        {
            "day": skdp.Date("2020-01-01", "2020-12-31", bins=12),
            "city": skdp.Categorical(cities),
            "size": skdp.Categorical(sizes, ordered=True),
        }
    )
    # Middle sizes have the class that no other has; the last ten cities have the lowest scores.
    labels = np.where(rows["size"] == "middle", "b", np.where(rows["city"] < "c30", "c", "a"))
    model = skdp.PrivateAdditiveClassifier(
        epsilon=100.0,
        domain=domain,
        classes=list("abc"),
        interactions=[("day", "city")],
        random_state=0,
    ).fit(rows, labels)
    figure = model.plot(["day", "city", "size", "day x city"])
    figure.canvas.draw()
    day, city, size, pair = figure.axes[:4]
    assert "2020" in " ".join(each.get_text() for each in day.get_xticklabels())
    assert [each.get_text() for each in day.get_legend().get_texts()] == list("abc")
    assert city.get_xlabel() == "city (20 of 40)"
    shown = {each.get_text() for each in city.get_xticklabels()}
    assert shown >= set(cities[30:])
    assert [each.get_text() for each in size.get_xticklabels()] == sizes
    assert pair.get_xticklabels()[0].get_text().startswith("2020-")


# ------------------------------------------------------------------------------------------- pairs


@pytest.mark.parametrize(
    "link",
    [
        Logit(2),
        Logit(3),
        *(Identity(np.arange(-UNIT, UNIT + 1, 64), reach=reach) for reach in (UNIT, 301)),
    ],
)
def test_residuals_and_weight_of_a_record_stay_within_the_joint_bound(link):
    scores = np.arange(-9 * UNIT, 9 * UNIT)[:, None] * np.arange(1, link.n_outputs + 1)
    for label in range(len(getattr(link, "outcomes", range(getattr(link, "n_classes", 0))))):
        residuals = link.residuals(scores, np.full(len(scores), label))
        weights = link.weights(scores)
        assert weights.dtype == residuals.dtype == np.int64
        assert weights.min() >= 0
        assert np.abs(residuals).sum(axis=1).max() <= link.reach
        reach = np.abs(residuals).sum(axis=1) + weights
        assert reach.max() <= link.joint
        if link.n_outputs == 1:
            assert reach.max() >= 0.98 * link.reach


def test_axes_have_few_groups_of_about_equal_size():
    even = coarse_axis(np.full(32, 10.0), range(32))
    assert even.n_groups == even.n_ordered == 8
    assert np.bincount(even.groups).tolist() == [4] * 8
    skewed = coarse_axis(np.array([900.0] + [5.0] * 20 + [50.0]), range(21))
    assert (np.diff(skewed.groups[:21]) >= 0).all()
    # The value outside the order is alone.
    assert skewed.groups[21] == skewed.n_ordered == skewed.n_groups - 1
    free = coarse_axis(np.array([3.0, 90, 4, 80, 70, 60, 50, 40, 30, 1]), None)
    assert free.n_groups == 8 and free.n_ordered == 0
    assert (free.groups[[0, 2, 9]] == 7).all()
    empty = coarse_axis(np.zeros(5), range(5))
    assert empty.n_groups == 5


def crossed(n=20_000, seed=0):
    """Two columns that say nothing alone and everything together, and two of noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = (rng.random(n) < np.where(X[:, 0] * X[:, 2] > 0, 0.85, 0.15)).astype(int)
    return X, y


def of_pairs(epsilon=1.0, interactions="auto", **params):
    return skdp.PrivateAdditiveClassifier(
        epsilon=epsilon,
        domain=skdp.Numeric(-1, 1, bins=16),
        classes=[0, 1],
        interactions=interactions,
        random_state=0,
        **params,
    )


def test_groups_of_pairs_are_written_as_those_of_columns_are():
    rng = np.random.default_rng(0)
    n = 20_000
    rows = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, n), unit="D"),
            "hours": rng.integers(0, 90, n),
            "pay": rng.choice([-1.0, 500.0, 1500.0, 2500.0], n),
        }
    )
    domain = skdp.Domain(
        {
            "day": skdp.Date("2020-01-01", "2020-12-31", bins=12),
            "hours": skdp.Numeric(0, 89, integer=True),
            "pay": skdp.Numeric(0, 3000, bins=3, special=[-1]),
        }
    )
    pairs = [("day", "hours"), ("hours", "pay")]
    model = skdp.PrivateAdditiveClassifier(
        epsilon=100.0, domain=domain, classes=[0, 1], interactions=pairs, random_state=0
    ).fit(rows, rng.integers(0, 2, n))
    days, hours = model.shape_functions_["day x hours"].labels
    assert days[0].startswith("2020-01-01 to 2020-")
    assert days[-1].endswith(" to 2020-12-31")
    assert hours[0].startswith("0 to ")
    assert hours[-1].endswith(" to 89")
    _, pay = model.shape_functions_["hours x pay"].labels
    assert pay == ("[0, 1000)", "[1000, 2000)", "[2000, 3000]", "-1")


def test_pairs_that_pay_are_found_and_fit():
    # Sums of residuals of the pair are about 7,000 records, the noise of its choice about 100.
    X, y = crossed()
    model = of_pairs().fit(X, y)
    assert list(model.shape_functions_)[4] == "x0 x x2"
    assert model.score(X, y) > 0.8
    assert of_pairs(interactions=0).fit(X, y).score(X, y) < 0.6
    pair = model.shape_functions_["x0 x x2"]
    assert np.abs(pair.scores.mean(axis=0)).max() < 0.2
    np.testing.assert_array_equal(np.sign(pair.scores), np.sign(np.outer(*[range(-7, 9, 2)] * 2)))
    frame = pair.to_frame()
    assert list(frame) == ["x0", "x2", "score", "std_error", "records"] and len(frame) == 64
    # Half of it is the importance of either column.
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 2}
    score = model.explain(X[:50]).sum(axis=1) + model.intercept_
    np.testing.assert_allclose(model.predict_proba(X[:50])[:, 1], 1 / (1 + np.exp(-score)))
    clone = pickle.loads(pickle.dumps(model))
    assert np.array_equal(clone.predict_proba(X[:9]), model.predict_proba(X[:9]))


def test_few_records_times_epsilon_have_no_pairs():
    X, y = crossed(5_000)
    model = of_pairs(0.5).fit(X, y)
    assert list(model.shape_functions_) == ["x0", "x1", "x2", "x3"]


def test_pairs_can_be_listed_and_counted():
    X, y = crossed(3_000)
    assert list(of_pairs(interactions=2).fit(X, y).shape_functions_)[4] == "x0 x x2"
    assert len(of_pairs(interactions=99).fit(X[:, :2], y).shape_functions_) == 3
    model = of_pairs(interactions=[("x3", "x1")]).fit(X, y)
    assert list(model.shape_functions_)[4:] == ["x1 x x3"]
    for wrong in ([("x0", "x0")], [("x0", "x1"), ("x1", "x0")], ["x0"], [("x0",)], "all", -1):
        with pytest.raises(ValueError, match="interactions"):
            of_pairs(interactions=wrong).fit(X, y)
    with pytest.raises(DomainError, match="do not have"):
        of_pairs(interactions=[("x0", "shoe")]).fit(X, y)


def test_pairs_are_edited_and_monotone_with_their_columns():
    X, y = crossed()
    model = of_pairs(interactions=[("x0", "x2")]).fit(X, y)
    model.make_monotone("x2")
    assert (np.diff(model.shape_functions_["x0 x x2"].scores, axis=1) >= 0).all()
    grid = np.column_stack([np.full(50, -0.7), np.zeros(50), np.linspace(-1, 1, 50), np.zeros(50)])
    assert (np.diff(model.predict_proba(grid)[:, 1]) >= 0).all()
    with pytest.raises(ValueError, match="is a pair"):
        model.make_monotone("x0 x x2")
    model.set_shape("x0 x x2", np.zeros((8, 8)))
    assert model.shape_functions_["x0 x x2"].importance == 0


def test_a_regressor_learns_a_product():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 3))
    y = X[:, 0] + 2 * X[:, 1] * X[:, 2]
    params = {"domain": skdp.Numeric(-1, 1), "target_range": (-3, 3), "random_state": 0}
    model = skdp.PrivateAdditiveRegressor(epsilon=1.0, **params).fit(X, y)
    assert "x1 x x2" in model.shape_functions_
    assert model.score(X, y) > 0.8
    assert (
        skdp.PrivateAdditiveRegressor(epsilon=1.0, interactions=0, **params).fit(X, y).score(X, y)
        < 0.5
    )


def test_no_record_moves_the_scores_of_pairs_or_their_sums_by_more_than_is_paid_for():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, (300, 3))
    labels = rng.integers(0, 2, 300)
    draft = Draft.empty(np.array([0.3]), (3, 3, 3))
    draft.shapes = [rng.normal(size=(3, 1)) for _ in range(3)]
    draft.sizes = [np.full(3, 100.0)] * 3
    plan = pairs.PairPlan([range(3)] * 3, n_pairs=1)

    def run(kept):
        seen = []

        def choose(scores, epsilon, score_range, random_state=None):
            seen.append((scores, score_range))
            return 1

        def add(values, epsilon, sensitivity, random_state=None):
            seen.append((values, sensitivity))
            return values

        some = Records(groups[kept], labels[kept], np.ones(kept.sum(), dtype=np.int64), (3, 3, 3))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pairs, "noisy_max", choose)
            patch.setattr(pairs, "discrete_laplace", add)
            pairs.add_pairs(
                some, Logit(2), draft.copy(), np.array([50.0]), plan, Fraction(1), 300.0, None
            )
        return seen

    everyone = run(np.ones(300, dtype=bool))
    for left_out in range(0, 300, 25):
        (scores, score_range), (sums, sensitivity) = run(np.arange(300) != left_out)
        changes = everyone[0][0] - scores
        assert changes.max() - changes.min() <= score_range
        assert np.abs(everyone[1][0] - sums).sum() <= sensitivity


def test_nobody_s_pairs_are_chosen_by_noise_alone():
    nobody = Records(np.zeros((0, 3), dtype=np.int64), np.zeros(0, int), np.zeros(0, int), (3,) * 3)
    plan = pairs.PairPlan([range(3)] * 3, n_pairs=1)
    chosen = set()
    for seed in range(30):
        draft = Draft.empty(np.array([0.3]), (3, 3, 3))
        pairs.add_pairs(
            nobody, Logit(2), draft, np.zeros(1), plan, Fraction(1), 0.0, noise_source(seed)
        )
        chosen.add(draft.pairs[0].columns)
    # Each of the three wins with probability 1/3: one is missing once in 64,000 runs.
    assert len(chosen) == 3


@pytest.mark.parametrize("estimator", [skdp.PrivateAdditiveRegressor, skdp.PrivateLinearRegression])
@pytest.mark.parametrize("high", [1, 10])
def test_without_signal_a_regression_predicts_about_the_mean(estimator, high):
    """Many columns of noise, a target near an end of its range, and 500 records times epsilon."""
    rng = np.random.default_rng(0)
    n = 5_000
    X = rng.random((n, 8))
    y = rng.normal(0.2, 0.05, n) + 0.05 * X[:, 0]
    errors = []
    for seed in range(4):
        model = estimator(
            epsilon=0.1, domain=skdp.Numeric(0, 1), target_range=(0, high), random_state=seed
        )
        errors.append(np.mean((model.fit(X, y).predict(X) - y) ** 2) / y.var())
    # In units of the error of the mean; the range is 10 or 100 times the spread.
    assert np.mean(errors) < (2 if high == 1 else 20)


@pytest.mark.parametrize(("epsilon", "n_groups"), [(0.5, 32), (100.0, 128)])
def test_columns_have_more_groups_where_many_records_pay_for_them(epsilon, n_groups):
    rng = np.random.default_rng(0)
    X = rng.random((4_000, 2))
    y = (0.5 + 0.4 * np.sign(np.sin(40 * X[:, 0])) > rng.random(4_000)).astype(int)
    domain = skdp.Domain(
        {"x": skdp.Numeric(0, 1, bins=300), "z": skdp.Numeric(0, 1, bins=20, nullable=True)}
    )
    model = skdp.PrivateAdditiveClassifier(
        epsilon=epsilon, domain=domain, classes=[0, 1], random_state=0
    )
    frame = pd.DataFrame(X, columns=["x", "z"])
    model.fit(frame, y)
    shape = model.shape_functions_["x"]
    assert len(shape.labels) == n_groups and len(shape.edges) == n_groups + 1
    assert len(model.shape_functions_["z"].labels) == 21
    few = clone(model).set_params(max_groups=8).fit(frame, y)
    assert len(few.shape_functions_["x"].labels) == 8
    if epsilon > 1:
        assert model.score(frame, y) > 0.8 > few.score(frame, y) + 0.1
