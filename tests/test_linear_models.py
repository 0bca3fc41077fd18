"""Linear models: what one record adds at most, solvers against exact answers, the estimators."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp._models import feature_columns, number_link
from skdp._random import noise_source
from skdp.algorithms import linear as auto
from skdp.algorithms import linear as moments
from skdp.algorithms import linear as search
from skdp.algorithms.additive import UNIT, Identity, Logit, Records
from skdp.algorithms.linear import (
    LOSSES,
    Design,
    _asked,
    _offspring,
    _scores,
    _sums,
    _table,
    _widest,
    fit_functional,
    most_products,
    noisy_moments,
    objectives,
)
from skdp.exceptions import DomainError

DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(0, 100, bins=20, nullable=True),
        "score": skdp.Numeric(-1, 1, bins=8, special=[9]),
        "city": skdp.Categorical(["a", "b", "c"]),
    }
)
HUGE = Fraction(10**6)


def design_of(domain=DOMAIN, one_hot="categories"):
    columns = feature_columns(domain, one_hot, 32)
    return Design(tuple(each.column for each in columns)), columns


def some_records(n=400, n_labels=2, seed=0, domain=DOMAIN, one_hot="categories"):
    design, columns = design_of(domain, one_hot)
    rng = np.random.default_rng(seed)
    sizes = tuple(len(each.column.values) for each in columns)
    groups = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    counts = rng.integers(1, 4, n)
    return Records(groups, rng.integers(0, n_labels, n), counts, sizes), design


# ----------------------------------------------------------------------------- features, moments


@pytest.mark.parametrize("one_hot", ["categories", "all", ["age"]])
def test_a_group_has_one_feature_at_most_and_it_is_at_most_one(one_hot):
    design, columns = design_of(one_hot=one_hot)
    for column in design.columns:
        assert ((column.values != 0).sum(axis=1) <= 1).all()
        assert np.abs(column.units()).max() <= UNIT
    assert design.n_features == sum(len(each.labels) for each in columns)


@pytest.mark.parametrize("one_hot", ["categories", "all", ["age"]])
def test_sparse_rows_are_the_same_rows(one_hot):
    records, design = some_records(200, one_hot=one_hot)
    sparse = design.sparse_rows(records.groups)
    np.testing.assert_array_equal(sparse.toarray(), design.rows(records.groups))
    assert sparse.nnz == records.groups.size


def test_numbers_keep_their_units_and_odd_values_have_indicators():
    age, score, city = design_of()[1]
    assert age.labels == ("age", "age = (missing)") or age.labels[0] == "age"
    assert len(age.labels) == len(score.labels) == 2 and len(city.labels) == 3
    means = age.shift[0] + age.scale[0] * age.codes[:20, 0]
    np.testing.assert_allclose(means, np.arange(2.5, 100, 5))
    assert age.codes[20].tolist() == [0, 1] and score.codes[8].tolist() == [0, 1]


@pytest.mark.parametrize("one_hot", ["categories", "all"])
@pytest.mark.parametrize("link", [Logit(2), Logit(3), Identity(np.array([-UNIT, 300, UNIT]))])
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


@pytest.mark.parametrize("one_hot", ["categories", "all"])
def test_moments_are_exact_where_noise_vanishes(one_hot):
    records, design = some_records(one_hot=one_hot)
    outcomes = np.eye(2, dtype=np.int64) * UNIT
    found = noisy_moments(records, design, outcomes, 1, np.ones(2), HUGE, noise_source(0))
    rows = np.hstack([np.ones((400, 1)), design.rows(records.groups) / UNIT])
    weighted = rows * records.counts[:, None]
    np.testing.assert_allclose(found.products, weighted.T @ rows, atol=1e-3)
    np.testing.assert_allclose(found.cross, weighted.T @ np.eye(2)[records.labels], atol=1e-3)


def test_least_squares_are_exact_where_noise_vanishes():
    rng = np.random.default_rng(1)
    domain = skdp.Domain({name: skdp.Numeric(0, 9, integer=True) for name in "uvw"})
    records, design = some_records(3_000, 5, domain=domain)
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
    records, design = some_records(
        3_000, 5, domain=skdp.Domain({name: skdp.Numeric(0, 9, integer=True) for name in "uvw"})
    )
    link = Identity(np.linspace(-UNIT, UNIT, 5).astype(np.int64))
    total = float(records.counts.sum())
    found = [
        fit_functional(records, design, link, Fraction(2), total, noise_source(seed))
        for seed in range(200)
    ]
    spread = np.std([model.coef[0] for model in found], axis=0)
    said = np.mean([model.std[0] for model in found], axis=0)
    # 200 runs tell a standard deviation to 5%: 20% is four of these.
    np.testing.assert_allclose(said, spread, rtol=0.2)


def test_the_signal_decides_between_moments_and_columns(monkeypatch):
    records, design = some_records(100)
    taken = []
    for name in ("fit_functional", "fit_smooth"):
        monkeypatch.setattr(auto, name, lambda *args, name=name: taken.append(name))
    for link, total in ((Identity(np.array([0, 1])), 1e7), (Identity(np.array([0, 1])), 100.0)):
        auto.fit_auto(records, design, link, Fraction(1), total, None)
    auto.fit_auto(records, design, Logit(2), Fraction(1), 1e7, None)
    assert taken == ["fit_functional", "fit_smooth", "fit_smooth"]


# --------------------------------------------------------------------------------------- searches


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("width", [1, 37, 700, 5 * UNIT, 50 * UNIT])
def test_spread_is_the_largest_difference_within_a_window(loss, width):
    goal = objectives(Logit(2), loss)[0]
    table = _table(loss)
    near = min(width, len(table) - 1)
    # Losses are convex: the largest difference within a window is at one of its ends, or where it
    # covers the least loss and one end.
    ends = max(
        abs(int(table[start + step]) - int(table[start]))
        for start in range(0, len(table) - near, max(near // 7, 1))
        for step in (near, near // 2)
    )
    exact = max(
        int(part.max() - part.min())
        for part in np.lib.stride_tricks.sliding_window_view(table, near + 1)[:: max(near // 50, 1)]
    )
    assert goal.spread(width) >= max(ends, exact)
    if width in (1, 37):
        assert goal.spread(width) == max(exact, 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_record_spreads_the_candidates_of_a_search_by_more_than_is_paid_for(loss):
    records, design = some_records(300, 3, one_hot=["age"])
    link = Identity(np.array([-UNIT, 100, UNIT])) if loss == "squares" else Logit(2)
    goal = objectives(link, loss)[0]
    rng = np.random.default_rng(0)
    worst = 0.0
    for i in range(0, 300, 3):
        label = np.array([i % (3 if loss == "squares" else 2)])
        one = Records(records.groups[i : i + 1], label, np.array([1]), records.n_groups)
        for step in (30, 300):
            for score in rng.integers(-3 * UNIT**2, 3 * UNIT**2, 4):
                gains = search._gains(one, design, goal, np.array([score]), step)
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
    gains = search._gains(records, design, goal, rows @ weights, 77)
    before = goal.at(rows @ weights, records.labels) @ records.counts
    for place in range(len(weights)):
        for sign, way in ((1, 0), (-1, 1)):
            moved = weights.copy()
            moved[place] += sign * 77
            after = goal.at(rows @ moved, records.labels) @ records.counts
            assert gains[2 * place + way] == before - after
        feature = search._feature(records, design, place)
        assert np.array_equal(np.broadcast_to(feature, 200), rows[:, place])


@pytest.mark.parametrize("crossover", [True, False])
def test_children_are_made_of_their_parents(crossover):
    rng = np.random.default_rng(0)
    parents = rng.integers(-100, 100, (10, 30)) * 10**6
    children = _offspring(parents, crossover, 1.0, rng)
    # All weights but the mutated one are those of a parent, at the same place.
    inherited = [(child == parents).any(axis=0).sum() for child in children]
    assert min(inherited) >= 29
    copies = [(child == parents).sum(axis=1).max() >= 29 for child in children]
    assert all(copies) != crossover


# ------------------------------------------------------------------------------------- estimators

NAMES = ("PrivateLogisticRegression", "PrivateLinearSVC", "PrivateNaiveBayes")


def people(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "score": rng.uniform(-1, 1, n),
            "city": rng.choice(["a", "b", "c"], n),
        }
    )
    score = (rows["age"] - 50) / 15 + 2 * rows["city"].map({"a": 1.0, "b": 0.0, "c": -1.0})
    pay = 20 + 0.3 * rows["age"] + 10 * (rows["city"] == "a") + rng.normal(0, 3, n)
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    return rows, pay, ill


@pytest.mark.parametrize(
    "solver",
    ["auto", "functional", "local-search", pytest.param("genetic", marks=pytest.mark.slow)],
)
def test_solvers_learn(solver):
    rows, pay, ill = people()
    searches = solver in ("local-search", "genetic")
    epsilon = 20.0 if searches else 2.0
    number = skdp.PrivateLinearRegression(
        epsilon=epsilon, domain=DOMAIN, target_range=(0, 80), solver=solver, random_state=0
    ).fit(rows, pay)
    assert number.score(rows, pay) > (0.5 if solver == "genetic" else 0.8)
    assert np.isnan(number.coef_std_).all() == searches
    model = skdp.PrivateLogisticRegression(
        epsilon=epsilon, domain=DOMAIN, classes=["no", "yes"], solver=solver, random_state=0
    ).fit(rows, ill)
    assert model.score(rows, ill) > 0.8
    assert model.coef_.shape == (1, 7) and model.intercept_.shape == (1,)


def test_coefficients_are_in_units_of_the_columns():
    rows, pay, _ = people()
    model = skdp.PrivateLinearRegression(
        epsilon=20.0, domain=DOMAIN, target_range=(0, 80), random_state=0
    ).fit(rows, pay)
    coef = dict(zip(model.feature_labels_, model.coef_, strict=True))
    assert abs(coef["age"] - 0.3) < 0.03
    assert abs(coef["city = a"] - coef["city = b"] - 10) < 1
    by_hand = model.intercept_ + coef["age"] * 47.5 + coef["score"] * 0.125 + coef["city = b"]
    row = pd.DataFrame({"age": [46.0], "score": [0.1], "city": ["b"]})
    np.testing.assert_allclose(model.predict(row), by_hand)


def test_ridge_shrinks_more_the_larger_alpha():
    rows, pay, _ = people(5_000)
    for solver in ("auto", "functional"):
        sizes = [
            np.abs(
                skdp.PrivateRidge(
                    epsilon=20.0,
                    domain=DOMAIN,
                    target_range=(0, 80),
                    alpha=alpha,
                    solver=solver,
                    random_state=0,
                )
                .fit(rows, pay)
                .coef_[0]
            )
            for alpha in (0, 1_000, 100_000)
        ]
        assert sizes == sorted(sizes, reverse=True) and sizes[2] < 0.1 * sizes[0]


@pytest.mark.parametrize("name", NAMES)
def test_classifiers_of_several_classes(name):
    rows, pay, _ = people()
    kinds = np.array(["low", "mid", "high"])[np.digitize(pay, [32, 42])]
    model = getattr(skdp, name)(
        epsilon=4.0, domain=DOMAIN, classes=["low", "mid", "high"], random_state=0
    )
    model.fit(rows, kinds)
    assert model.score(rows, kinds) > 0.6
    assert model.classes_.tolist() == ["high", "low", "mid"]
    if name != "PrivateNaiveBayes":
        assert model.coef_.shape == (3, 7) and model.decision_function(rows).shape == (20_000, 3)
    if name != "PrivateLinearSVC":
        np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)


def test_naive_bayes_is_that_of_the_true_counts_where_noise_vanishes():
    rows, _, ill = people(50_000)
    model = skdp.PrivateNaiveBayes(
        epsilon=1_000.0, domain=DOMAIN, classes=["no", "yes"], random_state=0
    ).fit(rows, ill)
    for label, shown in zip(["no", "yes"], model.feature_log_prob_["city"], strict=True):
        truth = [np.mean(rows["city"][ill == label] == city) for city in "abc"]
        np.testing.assert_allclose(np.exp(shown), truth, atol=0.01)
    assert abs(np.exp(model.class_log_prior_[1]) - np.mean(ill == "yes")) < 0.01
    np.testing.assert_allclose(np.exp(model.feature_log_prob_["age"]).sum(axis=1), 1)


@pytest.mark.parametrize("epsilon", [1.0, 1_000.0])
def test_columns_that_say_the_same_do_not_make_naive_bayes_sure(epsilon):
    rng = np.random.default_rng(0)
    y = rng.random(20_000) < 0.3
    x = np.where(rng.random(20_000) < 0.7, y, ~y).astype(int)
    X = np.repeat(x[:, None], 8, axis=1)
    model = skdp.PrivateNaiveBayes(
        epsilon=epsilon, domain=skdp.Categorical([0, 1]), classes=[False, True], random_state=0
    ).fit(X, y)
    # Bayes' theorem for one column.
    likely = [0.3 * a / (0.3 * a + 0.7 * (1 - a)) for a in (0.3, 0.7)]
    found = model.predict_proba([[0] * 8, [1] * 8])[:, 1]
    np.testing.assert_allclose(found, likely, atol=0.05)
    assert model.score(X, y) >= 0.69


def clouds(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal(size=(n, 3)) @ np.diag([0.3, 0.15, 0.05]) @ TURN.T, -1, 1)


TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]


def test_components_are_those_of_the_covariance():
    X = clouds()
    pca = skdp.PrivatePCA(epsilon=50, domain=skdp.Numeric(-1, 1, bins=200), random_state=0).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    np.testing.assert_allclose(pca.explained_variance_, values[::-1], rtol=0.02)
    np.testing.assert_allclose(np.abs(pca.components_ @ vectors[:, ::-1]), np.eye(3), atol=0.02)
    np.testing.assert_allclose(pca.explained_variance_ratio_.sum(), 1)
    back = pca.inverse_transform(pca.transform(X))
    np.testing.assert_allclose(back, X, atol=1e-9)
    first = skdp.PrivatePCA(1, epsilon=1, domain=skdp.Numeric(-1, 1)).fit(X)
    assert first.transform(X).shape == (20_000, 1)
    assert first.get_feature_names_out().tolist() == ["privatepca0"]


# -------------------------------------------------------------------------------------- bad input


def refused(estimator, error, match, *data):
    estimator.set_params(ledger=skdp.PrivacyLedger())
    with pytest.raises(error, match=match):
        estimator.fit(*data)
    assert estimator.ledger.spent == 0


def test_wrong_parameters_are_refused_before_the_charge():
    rows, pay, ill = people(50)
    number, label = {"domain": DOMAIN, "target_range": (0, 80)}, {"domain": DOMAIN, "classes": "ab"}
    regression, ridge = skdp.PrivateLinearRegression, skdp.PrivateRidge
    refused(regression(solver="exact", **number), ValueError, "solver", rows, pay)
    refused(ridge(solver="genetic", **number), ValueError, "solver", rows, pay)
    refused(ridge(alpha=-1, **number), ValueError, "alpha", rows, pay)
    refused(regression(one_hot="some", **number), ValueError, "one_hot", rows, pay)
    refused(regression(one_hot=3, **number), TypeError, "one_hot", rows, pay)
    refused(regression(one_hot=["shoe"], **number), DomainError, "shoe", rows, pay)
    refused(regression(max_groups=1, **number), ValueError, "max_groups", rows, pay)
    refused(regression(domain=DOMAIN), DomainError, "target_range", rows, pay)
    refused(skdp.PrivateLogisticRegression(domain=DOMAIN), DomainError, "classes=", rows, ill)
    refused(skdp.PrivateLinearSVC(solver="functional", **label), ValueError, "solver", rows, ill)
    refused(skdp.PrivateNaiveBayes(domain=DOMAIN), DomainError, "classes=", rows, ill)
    naive = skdp.PrivateNaiveBayes(classes=["no", "yes"])
    refused(naive, DomainError, "domain is required", rows, ill)
    wide = skdp.Domain({name: skdp.Categorical(list(range(4000))) for name in ("a", "b")})
    codes = np.zeros((4, 2), dtype=int)
    many = regression(domain=wide, target_range=(0, 1), solver="functional")
    refused(many, DomainError, "8,000 features", pd.DataFrame(codes, columns=["a", "b"]), pay[:4])
    wide = skdp.Categorical(list(range(5000)))
    refused(regression(domain=wide, target_range=(0, 1)), DomainError, "categories", codes, pay[:4])
    with pytest.raises(TypeError):
        skdp.PrivateLogisticRegression(class_weight="balanced")


MODELS_OF_NUMBERS = ["PrivateLinearRegression", "PrivateRidge", "PrivateAdditiveRegressor"]
TREES = ["PrivateDecisionTreeClassifier", "PrivateRandomForestClassifier"]


def model_of(name, epsilon, **params):
    declared = {"target_range": (0, 1)} if name in MODELS_OF_NUMBERS else {"classes": [0, 1, 2]}
    domain = skdp.Numeric(0, 1, bins=4)
    return getattr(skdp, name)(epsilon=epsilon, domain=domain, **declared, **params)


def with_solvers(names):
    for name in names:
        solvers = {"PrivateLinearSVC": ["auto", "local-search", "genetic"]}.get(
            name, ["auto", "functional", "local-search", "genetic"]
        )
        linear = name in ("PrivateLogisticRegression", "PrivateLinearSVC", MODELS_OF_NUMBERS[0])
        for solver in solvers if linear else [None]:
            yield pytest.param(name, {"solver": solver} if solver else {}, id=f"{name}, {solver}")


EVERY_MODEL = [*NAMES, *MODELS_OF_NUMBERS, *TREES, "PrivateAdditiveClassifier"]


@pytest.mark.filterwarnings("ignore:.*released a total")
@pytest.mark.parametrize(("name", "params"), list(with_solvers(EVERY_MODEL)))
def test_noise_that_does_not_fit_is_refused_before_the_charge(name, params):
    X, y = np.zeros((30, 2)), np.zeros(30)
    # 64-bit integers hold the noise of any fit down to this epsilon, and none is refused.
    model = model_of(name, 3e-7, ledger=skdp.PrivacyLedger(), **params)
    if params.get("solver") == "functional":
        model.set_params(epsilon=1e-6)
    assert np.isfinite(np.asarray(model.fit(X, y).predict(X), dtype=float)).all()
    refused(model_of(name, 2.9e-7, **params), ValueError, "64-bit", X, y)
    refused(model_of(name, 1e-9, **params), ValueError, "64-bit", X, y)
    shared = model_of(name, 1e-6, privacy_id="who", max_rows_per_id=4, **params)
    rows = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "who": range(30)})
    shared.set_params(domain=skdp.Domain({c: skdp.Numeric(0, 1, bins=4) for c in "ab"}))
    refused(shared, ValueError, "64-bit", rows, y)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3])
def test_noise_of_products_of_many_columns_is_refused_before_the_charge(epsilon):
    X = np.zeros((3, 2_000 if epsilon > 1e-6 else 2))
    domain = skdp.Numeric(0, 1, bins=4)
    regression = skdp.PrivateLinearRegression(
        epsilon=epsilon, domain=domain, target_range=(0, 1), solver="functional"
    )
    refused(regression, ValueError, "64-bit", X, np.zeros(3))
    refused(skdp.PrivatePCA(epsilon=epsilon, domain=domain), ValueError, "64-bit", X)


def test_components_of_what_are_no_numbers_are_refused():
    rows = people(50)[0]
    pca = skdp.PrivatePCA
    refused(pca(domain=DOMAIN.select(["city"])), DomainError, "city", rows[["city"]])
    refused(pca(domain=DOMAIN.select(["age"])), DomainError, "missing or special", rows[["age"]])
    plain = skdp.Numeric(0, 1)
    refused(pca(3, domain=plain), ValueError, "at most 2", np.zeros((5, 2)))
    refused(pca(0, domain=plain), ValueError, "n_components", np.zeros((5, 2)))


@pytest.mark.filterwarnings("ignore:.*released a total")
@pytest.mark.parametrize("epsilon", [0.001, 1000.0])
@pytest.mark.parametrize("name", [*NAMES, "PrivateLinearRegression", "PrivateRidge", "PrivatePCA"])
def test_odd_tables_are_fitted(name, epsilon):
    rng = np.random.default_rng(0)
    constant, single = np.zeros((200, 2)), rng.uniform(size=(200, 1))
    domain = skdp.Numeric(0, 1, bins=4)
    if name == "PrivatePCA":
        for X in (constant, single):
            fitted = skdp.PrivatePCA(epsilon=epsilon, domain=domain).fit(X)
            assert np.isfinite(fitted.transform(X)).all()
        return
    numbers = name in ("PrivateLinearRegression", "PrivateRidge")
    declared = {"target_range": (0, 1)} if numbers else {"classes": [0, 1]}
    model = getattr(skdp, name)(epsilon=epsilon, domain=domain, **declared)
    # One class only; constant columns; one column that separates the classes.
    for X, y in ((constant, np.zeros(200)), (single, (single[:, 0] > 0.5).astype(int))):
        predicted = model.fit(X, y).predict(X)
        assert np.isin(predicted, [0, 1]).all() or numbers and np.isfinite(predicted).all()


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", "functional", "local-search", "genetic"])
def test_five_hundred_columns(solver):
    X = np.random.default_rng(0).uniform(size=(300, 500))
    model = skdp.PrivateLogisticRegression(
        epsilon=1.0, domain=skdp.Numeric(0, 1, bins=4), classes=[0, 1], solver=solver
    )
    assert np.isfinite(model.fit(X, X[:, 0] > 0.5).coef_).all()


def test_rows_are_counted_in_engines():
    polars = pytest.importorskip("polars")
    rows, _, ill = people(2_000)
    domain = DOMAIN.with_attribute("ill", skdp.Categorical(["no", "yes"]))
    frame = polars.from_pandas(rows.assign(ill=ill)).lazy()
    with pytest.warns(skdp.InsecureSeedWarning):
        lazy = skdp.PrivateLogisticRegression(domain=domain, target="ill", random_state=0)
        eager = skdp.PrivateLogisticRegression(domain=domain, target="ill", random_state=0)
        np.testing.assert_array_equal(lazy.fit(frame).coef_, eager.fit(rows, ill).coef_)


def test_noise_of_moments_has_the_declared_scale():
    records, design = some_records(50)
    outcomes = np.eye(2, dtype=np.int64) * UNIT
    spread = [
        noisy_moments(records, design, outcomes, 1, np.ones(2), Fraction(1), noise_source(s))
        for s in range(60)
    ]
    values = np.array([each.cross for each in spread])
    # 60 runs of 16 sums: a standard deviation to 4%.
    ratio = values.std(axis=0).mean() / spread[0].std
    assert 0.85 < ratio < 1.15
    assert moments.most_products(design, 1) == 1 + 3 + 3 + 2


@pytest.mark.parametrize("solver", ["auto", "functional", "local-search", "genetic"])
def test_a_column_of_one_value_says_nothing_and_hides_nobody(solver):
    """Its half width of 0 must not turn codes into integers without a bound."""
    domain = skdp.Domain({"same": skdp.Numeric(5, 5, integer=True), "x": skdp.Numeric(0, 1)})
    rows = pd.DataFrame({"same": [5.0, 5.0], "x": [0.9, 0.1]})
    model = skdp.PrivateLogisticRegression(
        epsilon=1.0, domain=domain, classes=["a", "b"], solver=solver, random_state=0
    ).fit(rows, ["a", "b"])
    assert np.isfinite(model.coef_).all() and np.abs(model.coef_).max() < 1e6
    target = skdp.Domain({"x": domain["x"], "y": domain["same"]})
    constant = skdp.PrivateLinearRegression(
        epsilon=1.0, domain=target, target="y", solver=solver, random_state=0
    ).fit(rows[["x"]], rows["same"])
    np.testing.assert_allclose(constant.predict(rows[["x"]]), 5.0)

    assert np.abs(number_link(target, "y")[0].outcomes).max() == 0


@pytest.mark.parametrize(
    "name",
    [
        "PrivateLogisticRegression",
        "PrivateLinearSVC",
        "PrivateNaiveBayes",
        "PrivateDecisionTreeClassifier",
        "PrivateRandomForestClassifier",
        "PrivateAdditiveClassifier",
        "PrivPfCClassifier",
        "PrivPfCTransformer",
        "DiffGenTransformer",
        "ProjectedHistogramTransformer",
    ],
)
def test_weights_and_warm_starts_are_refused_with_the_remedy(name):
    model = getattr(skdp, name)
    with pytest.raises(TypeError, match="threshold of predict_proba"):
        model(domain=DOMAIN, class_weight="balanced")
    with pytest.raises(TypeError, match="one fit with all of epsilon"):
        model(domain=DOMAIN, warm_start=True)
    with pytest.raises(TypeError, match="threshold of predict_proba"):
        model(domain=DOMAIN).set_params(class_weight="balanced")
    ledger = skdp.PrivacyLedger()
    fitted = model(domain=skdp.Numeric(0, 1), classes=[0, 1], ledger=ledger)
    X, y = np.zeros((4, 2)), [0, 1, 0, 1]
    with pytest.raises(TypeError, match="sample_weight"):
        fitted.fit(X, y, sample_weight=np.ones(4))
    with pytest.raises(TypeError, match="takes X and y"):
        fitted.fit(X, y, shoe=1)
    assert ledger.spent == 0


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_no_rows_have_no_predictions(classes):
    model = skdp.PrivateLogisticRegression(domain=skdp.Numeric(0, 1), classes=classes)
    model.fit(np.zeros((4, 2)), [0, 1, 0, 1])
    frame = pd.DataFrame(np.zeros((0, 2)))
    assert model.predict_proba(frame).shape == (0, len(classes))
    assert model.predict(frame).shape == (0,)


def test_components_of_ranges_without_squares_are_refused():
    pca = skdp.PrivatePCA
    wide = skdp.Numeric(-1e200, 1e200)
    refused(pca(domain=wide), DomainError, "too wide for squares", np.zeros((5, 2)))
