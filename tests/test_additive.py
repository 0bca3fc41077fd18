"""Additive models as estimators."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from loops import over

import skdp
from skdp._models import group_values
from skdp.exceptions import DomainError


def test_groups_of_columns():
    number = group_values(skdp.Numeric(0, 100, bins=64, special=[-1], nullable=True), 8)
    assert len(number.labels) == 8 + 2 and number.chain == list(range(8))
    np.testing.assert_allclose(number.edges, np.linspace(0, 100, 9))
    free = group_values(skdp.Categorical(list("abc")), 2)
    assert free.chain is None and len(free.labels) == 3
    # Runs of categories are written by their names.
    grades = [f"grade {place}" for place in range(40)]
    ordered = group_values(skdp.Categorical(grades, ordered=True, nullable=True), 10)
    shown = [ordered.labels[group] for group in ordered.chain]
    assert len(shown) <= 10 and shown[-1].endswith(" .. grade 39")
    assert ordered.labels[ordered.groups[-1]] == "missing"


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


def of_ill(**params):
    given = {"domain": DOMAIN, "target": "ill", "random_state": 0, **params}
    return skdp.PrivateAdditiveClassifier(**given)


def fitted(**params):
    rows, _ = people()
    return of_ill(**params).fit(rows.drop(columns="ill"), rows["ill"])


def test_probabilities_are_calibrated_and_near_the_truth():
    rows, score = people(seed=1)
    truth = 1 / (1 + np.exp(-score))
    shown = fitted(random_state=1).predict_proba(rows.drop(columns="ill"))[:, 1]
    assert np.abs(shown - truth).mean() < 0.03
    for low in np.arange(0, 1, 0.2):
        inside = (shown >= low) & (shown < low + 0.2)
        assert abs(shown[inside].mean() - truth[inside].mean()) < 0.04


def test_contributions_sum_to_the_score():
    model = fitted()
    rows = people(500)[0].drop(columns="ill")
    parts = model.explain(rows)
    assert parts.shape == (500, len(model.shape_functions_))
    share = model.predict_proba(rows)[:, 1]
    np.testing.assert_allclose(parts.sum(axis=1) + model.intercept_, np.log(share / (1 - share)))
    assert (model.explain(rows.assign(city="atlantis"))[:, 1] == 0).all()


def test_standard_errors_are_those_of_the_noise_and_of_chance():
    # 60 releases of the same records: the spread of scores against what is stated, of categories,
    # as numbers are cut elsewhere each time. Chance and shrinkage are stated too.
    rows, _ = people(3_000)
    models = [of_ill(epsilon=0.5, random_state=seed).fit(rows) for seed in range(60)]
    shapes = [model.shape_functions_["city"] for model in models]
    spread = np.std([shape.scores for shape in shapes], axis=0, ddof=1)
    stated = np.sqrt(np.mean([np.square(shape.std_errors) for shape in shapes], axis=0))
    assert 0.6 < np.sqrt(np.mean(spread**2) / np.mean(stated**2)) < 1.4


def test_functions_can_be_edited():
    model = fitted()
    before = model.shape_functions_["age"].scores.copy()
    model.set_shape("age", -before)
    assert np.array_equal(model.shape_functions_["age"].scores, -before)
    model.set_shape("city", np.zeros(3))
    assert model.feature_importances_[1] == 0
    with pytest.raises(ValueError, match="one for each group"):
        model.set_shape("age", [1.0, 2.0])
    with pytest.raises(ValueError, match="must be finite"):
        model.set_shape("city", [np.nan, 0, 0])
    with pytest.raises(DomainError, match="no column 'shoe'"):
        model.set_shape("shoe", [0.0])


def test_several_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    scores = np.stack([X[:, 0], X[:, 1], -X[:, 0] - X[:, 1]], axis=1)
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    given = {"domain": skdp.Numeric(-4, 4), "classes": [0, 1, 2], "random_state": 0}
    model = skdp.PrivateAdditiveClassifier(**given).fit(X, y)
    assert model.score(X, y) > (scores.argmax(axis=1) == y).mean() - 0.03
    assert model.explain(X[:5]).shape == (5, 2, 3)
    assert list(model.shape_functions_["x0"].to_frame())[1:3] == ["score_0", "std_error_0"]


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
    few = people(10)[0]
    for wrong, error, message in (
        (skdp.PrivateAdditiveRegressor(domain=DOMAIN, target="ill"), DomainError, "a Numeric"),
        (of_ill(domain=DOMAIN.select(["ill"])), DomainError, "no column except the label"),
    ):
        with pytest.raises(error, match=message):
            wrong.fit(few[[*wrong.domain.names]])


def test_pictures_name_dates_classes_and_categories():
    pytest.importorskip("matplotlib")
    rng, n = np.random.default_rng(0), 20_000
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, n), unit="D")
    rows = pd.DataFrame({"day": days, "city": rng.choice(list("pqrs"), n)})
    domain = {"day": skdp.Date("2020-01-01", "2020-12-31", bins=12), "city": list("pqrs")}
    labels = np.where(rows["day"] < "2020-06-01", "b", np.where(rows["city"] < "r", "c", "a"))
    model = skdp.PrivateAdditiveClassifier(epsilon=100.0, domain=domain, classes=list("abc"))
    figure = model.fit(rows, labels).plot()
    figure.canvas.draw()
    for axes in figure.axes:
        ticks = {each.get_text() for each in axes.get_xticklabels()}
        assert ticks == set("pqrs") if axes.get_xlabel() == "city" else "2020" in " ".join(ticks)
    assert [each.get_text() for each in figure.axes[0].get_legend().get_texts()] == list("abc")
    with pytest.raises(DomainError, match="no column"):
        model.plot(["shoe"])


def test_columns_have_more_groups_where_many_records_pay_for_them():
    X = pd.DataFrame(np.random.default_rng(0).random((4_000, 2)), columns=["x", "z"])
    domain = skdp.Domain(
        {"x": skdp.Numeric(0, 1, bins=300), "z": skdp.Numeric(0, 1, bins=20, nullable=True)}
    )
    given = {"domain": domain, "classes": [False, True]}
    for params, n_groups in (
        ({"epsilon": 0.5}, 32),
        ({"epsilon": 100.0}, 128),
        ({"max_groups": 8}, 8),
    ):
        model = skdp.PrivateAdditiveClassifier(**given, **params).fit(X, X["x"] > 0.5)
        shape = model.shape_functions_["x"]
        assert len(shape.labels) == n_groups and len(shape.edges) == n_groups + 1
        assert len(model.shape_functions_["z"].labels) == n_groups + 1


def wide(n=8_000, seed=0):
    """Declared from 0 to 100, but most values are below 5; a spike at 0."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(0, 1, (n, 4))) * (rng.random((n, 4)) < 0.8)
    score = np.log(X[:, 0] + 0.1) - np.log(X[:, 1] + 0.1) + 2 * (X[:, 2] > 1)
    return X, rng.random(n) < 1 / (1 + np.exp(1 - 2 * score))


@over(
    "name, error",
    [
        ("PrivateAdditiveClassifier", 0.22),
        ("PrivateNaiveBayes", 0.22),
        ("PrivateDecisionTreeClassifier", 0.28),
        ("PrivateClassifier", 0.24),
    ],
)
def test_groups_are_where_the_records_are(name, error):
    params = {"epsilon": 1.0, "domain": skdp.Numeric(0, 100, bins=10), "classes": [False, True]}
    model = getattr(skdp, name)(**params).fit(*wide())
    X, y = wide(seed=1)
    assert np.mean(model.predict(X) != y) < error
    parts = model.privacy_loss_.parts
    assert parts["groups"] == sum(parts.values()) / 20 == Fraction(1, 20)
    cut = getattr(model, "estimator_", model).domain_["x0"]
    inside = np.histogram(X[:, 0], cut.edges)[0] / len(X)
    assert inside[0] > 0.18 and 20 < cut.bins <= 32 and inside[1:].max() < 0.17


def test_records_at_the_upper_end_are_no_error():
    domain = {"g": skdp.Numeric(0, 10, decimals=1)}  # its last bin is one number
    model = skdp.PrivateAdditiveClassifier(epsilon=1.0, domain=domain, classes=[0, 1])
    model.fit(pd.DataFrame({"g": [10.0] * 2000}), [0, 1] * 1000)
