"""Linear models as estimators."""

import numpy as np
import pandas as pd
import pytest
from designs import DOMAIN, design_of, people, refused
from loops import over

import skdp
from skdp._models import number_link
from skdp.algorithms import linear
from skdp.algorithms.additive import UNIT
from skdp.exceptions import DomainError


def test_numbers_keep_their_units_and_odd_values_have_indicators():
    age, score, city = design_of()[1]
    assert [len(each.labels) for each in (age, score, city)] == [2, 2, 3]
    means = age.shift[0] + age.scale[0] * age.codes[:20, 0]
    np.testing.assert_allclose(means, np.arange(2.5, 100, 5))
    assert age.codes[20].tolist() == [0, 1] and score.codes[8].tolist() == [0, 1]


# ------------------------------------------------------------------------------------- estimators

NAMES = ("PrivateLogisticRegression", "PrivateLinearSVC", "PrivateNaiveBayes")
SOLVERS = ("auto", "functional", "local-search", "genetic")


@pytest.mark.parametrize("solver", ["auto", "functional", "local-search"])
def test_solvers_learn(solver):
    rows, pay, ill = people()
    searches = solver == "local-search"
    epsilon = 20.0 if searches else 2.0
    number = skdp.PrivateLinearRegression(
        epsilon=epsilon, domain=DOMAIN, target_range=(0, 80), solver=solver, random_state=0
    ).fit(rows, pay)
    assert number.score(rows, pay) > 0.8
    assert np.isnan(number.coef_std_).all() == searches
    model = skdp.PrivateLogisticRegression(
        epsilon=epsilon, domain=DOMAIN, classes=["no", "yes"], solver=solver, random_state=0
    ).fit(rows, ill)
    assert model.score(rows, ill) > 0.8
    assert model.coef_.shape == (1, 7) and model.intercept_.shape == (1,)


@over("solver, rounds", [("local-search", 40), ("genetic", 14)])
def test_searches_take_their_parameters(solver, rounds, monkeypatch):
    rows, _, ill = people()
    calls, models = [], []

    def first(scores, epsilon, *given, **_):
        # The first candidate moves the constant up; of several, the first ones survive.
        calls.append(epsilon)
        return 0

    def kept(*given, **more):
        models.append(search(*given, **more))
        return models[-1]

    search = linear.fit_local_search
    monkeypatch.setattr(linear, "noisy_max", first)
    monkeypatch.setattr(
        linear,
        "top_k",
        lambda _, k, epsilon, *given, **more: (calls.append(epsilon), np.arange(k))[1],
    )
    monkeypatch.setattr("skdp.linear_model.fit_local_search", kept)
    given = {"domain": DOMAIN, "classes": ["no", "yes"], "solver": solver, "random_state": 0}
    given |= {"n_rounds": rounds, "start": 0.5, "step": 0.25, "decay": 0.9}
    model = skdp.PrivateLogisticRegression(**given).fit(rows, ill)
    assert len(calls) == rounds and sum(calls) == model.privacy_loss_.parts["model"]
    if solver == "local-search":
        steps = np.maximum(np.rint(0.25 * 0.9 ** np.arange(rounds) * UNIT), 1)
        assert models[0].intercept == pytest.approx(0.5 + steps.sum() / UNIT)
        assert (models[0].coef == 0.5).all()
    for wrong in ({"n_rounds": 0}, {"decay": 2}, {"start": -(2**63)}, {"start": [1, 2]}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            skdp.PrivateLogisticRegression(**{**given, **wrong}).fit(rows, ill)


def test_slopes_of_numbers_with_a_long_tail():
    # Most records of the last groups lie near their lower ends: with their middles it is 0.3.
    rng = np.random.default_rng(0)
    x = np.minimum(rng.lognormal(size=(10_000, 1)), 100)
    y = rng.random(10_000) < 1 / (1 + np.exp(0.7 * x[:, 0] - 2))
    models = [
        skdp.PrivateLogisticRegression(
            epsilon=1, domain=[(0.0, 100.0)], classes=[False, True], random_state=seed
        ).fit(x, y)
        for seed in range(8)
    ]
    assert np.mean([model.coef_ for model in models]) < -0.45


def test_means_of_groups_at_the_end_of_the_largest_floats_cost_what_others_do():
    # Sums of these numbers are no floats.
    rows = np.append(np.full(30_000, 1e305), 0.0)[:, None]
    model = skdp.PrivateLinearRegression(epsilon=1, domain=[(0, 1e305)], target_range=(0, 1))
    y = np.arange(len(rows)) % 2
    assert skdp.audit.replay(model, (rows, y), (rows[:-1], y[:-1]), n=4).passed


def test_coefficients_are_in_units_of_the_columns():
    rows, pay, _ = people()
    model = skdp.PrivateLinearRegression(
        epsilon=20.0, domain=DOMAIN, target_range=(0, 80), random_state=0
    ).fit(rows, pay)
    coef = dict(zip(model.feature_labels_, model.coef_, strict=True))
    assert abs(coef["age"] - 0.3) < 0.03
    assert abs(coef["city = a"] - coef["city = b"] - 10) < 1
    by_hand = model.intercept_ + coef["age"] * 46.0 + coef["score"] * 0.1 + coef["city = b"]
    row = pd.DataFrame({"age": [46.0], "score": [0.1], "city": ["b"]})
    # But for the place of the number in its group of a 128th of the records.
    np.testing.assert_allclose(model.predict(row), by_hand, rtol=0.01)


@over("name", NAMES)
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


def test_wrong_parameters_are_refused_before_the_charge():
    rows, pay, ill = people(50)
    label = {"domain": DOMAIN, "classes": "ab"}
    regression = skdp.PrivateLinearRegression

    refused(regression(domain=DOMAIN), DomainError, "target_range", rows, pay)
    refused(skdp.PrivateLogisticRegression(domain=DOMAIN), DomainError, "classes=", rows, ill)
    refused(skdp.PrivateLinearSVC(solver="functional", **label), ValueError, "solver", rows, ill)
    wide = skdp.Domain({name: skdp.Categorical(list(range(4000))) for name in ("a", "b")})
    codes = np.zeros((4, 2), dtype=int)
    many = regression(domain=wide, target_range=(0, 1), solver="functional")
    refused(many, DomainError, "8,000 features", pd.DataFrame(codes, columns=["a", "b"]), pay[:4])
    wide = skdp.Categorical(list(range(5000)))
    refused(regression(domain=wide, target_range=(0, 1)), DomainError, "categories", codes, pay[:4])


MODELS_OF_NUMBERS = ["PrivateLinearRegression", "PrivateAdditiveRegressor"]
TREES = ["PrivateDecisionTreeClassifier", "PrivateRandomForestClassifier"]


def model_of(name, epsilon, **params):
    declared = {"target_range": (0, 1)} if name in MODELS_OF_NUMBERS else {"classes": [0, 1, 2]}
    domain = skdp.Numeric(0, 1, bins=4)
    return getattr(skdp, name)(epsilon=epsilon, domain=domain, **declared, **params)


MODELS = [
    *((name, {}) for name in [*NAMES, *MODELS_OF_NUMBERS, *TREES, "PrivateAdditiveClassifier"]),
    *(("PrivateLogisticRegression", {"solver": solver}) for solver in SOLVERS),
    *(("PrivateLinearRegression", {"solver": solver}) for solver in SOLVERS),
    *(("PrivateLinearSVC", {"solver": solver}) for solver in SOLVERS if solver != "functional"),
]


@pytest.mark.filterwarnings("ignore:.*released a total")
@over("name, params", MODELS)
def test_noise_fits_into_integers_down_to_the_least_epsilon_of_a_row(name, params):
    X, y = np.zeros((30, 2)), np.zeros(30)
    model = model_of(name, 3e-6, ledger=skdp.PrivacyLedger(), **params)
    assert np.isfinite(np.asarray(model.fit(X, y).predict(X), dtype=float)).all()
    shared = model_of(name, 1e-5, privacy_id="who", max_rows_per_id=4, **params)
    rows = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "who": range(30)})
    shared.set_params(domain=skdp.Domain({c: skdp.Numeric(0, 1, bins=4) for c in "ab"}))
    refused(shared, ValueError, "64-bit", rows, y)


@over("solver", ["auto", "functional", "local-search", "genetic"])
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


@over(
    "name",
    ["PrivateLinearSVC", "PrivateNaiveBayes", "PrivateRandomForestClassifier", "PrivPfCClassifier"],
)
def test_weights_and_warm_starts_are_refused_with_the_remedy(name):
    model = getattr(skdp, name)
    with pytest.raises(TypeError, match="threshold of predict_proba"):
        model(domain=DOMAIN, class_weight="balanced")
    with pytest.raises(TypeError, match="one fit with all of epsilon"):
        model(domain=DOMAIN, warm_start=True)
    with pytest.raises(TypeError, match="threshold of predict_proba"):
        model(domain=DOMAIN).set_params(class_weight="balanced")
    fitted = model(domain=skdp.Numeric(0, 1), classes=[0, 1])
    with pytest.raises(TypeError, match="sample_weight"):
        fitted.fit(np.zeros((2, 2)), [0, 1], sample_weight=np.ones(2))
    with pytest.raises(TypeError, match="takes X and y"):
        fitted.fit(np.zeros((2, 2)), [0, 1], shoe=1)
