"""PrivateClassifier in Pipelines and cross-validation."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import searched
from estimators import DOMAIN, people
from loops import over
from scipy.special import softmax
from searched import SQUARE
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skdp
from skdp.model_selection import PrivateGridSearchCV, private_cross_val_score

ROWS = people(3000)
X, Y = ROWS.drop(columns="income"), ROWS["income"]
RELEASE = skdp.HDPViewSynthesizer(epsilon=2.0, domain=DOMAIN, target="income")


def encoded(classifier):
    """A classifier that can read the text columns."""
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "work"]), remainder="passthrough"
    )
    return make_pipeline(encoder, classifier)


def test_trains_on_public_rows_and_on_the_release_and_on_nothing_else():
    """The inner estimator must never meet a true row or label."""
    seen = []

    class Spy(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append((np.array(X), np.array(y)))
            return super().fit(X, y, sample_weight)

    domain = DOMAIN.select(["age", "income"])
    release = skdp.HDPViewSynthesizer(epsilon=1.0, domain=domain, target="income")
    rows = pd.DataFrame({"age": np.random.default_rng(5).uniform(17, 90, len(X))})
    skdp.PrivateClassifier(Spy(), release).fit(rows, Y)
    assert len(seen) == 2 and not {*seen[1][0][:, 0]} & {*rows["age"]}
    # It was tried out on public rows before, which depend on the domain alone.
    skdp.PrivateClassifier(Spy(), release).fit(rows[:0], Y[:0])
    (trial, labels), (other, _) = seen[0], seen[2]
    assert len(trial) == 500 and set(labels) == {"low", "high"}
    np.testing.assert_array_equal(trial, other)


UNPAID = skdp.PrivacyLedger()
SEVERAL = skdp.MarginalSynthesizer(epsilon=1, domain=DOMAIN, ledger=UNPAID)
NUMBERS = skdp.MarginalSynthesizer(epsilon=1, domain=SQUARE, ledger=UNPAID)
GRID = skdp.PrivPfCTransformer(domain=SQUARE, classes=[0, 1], ledger=UNPAID)
FITTED = {
    target: FrozenEstimator(
        skdp.MarginalSynthesizer(epsilon=1, domain=DOMAIN, target=target).fit(ROWS)
    )
    for target in ("income", None)
}
TEXTS = {"classes": ["high", "low"]}
DEFAULT = {"epsilon": 1, "domain": DOMAIN, "ledger": UNPAID}
TINY = {**DEFAULT, "epsilon": 3e-6, "target": "income"}


def labelled(release, target="income", model=skdp.PrivateClassifier, **params):
    release = release if target is None else clone(release).set_params(target=target)
    return model(LinearRegression(), release, **params)


REGRESSOR = skdp.PrivateRegressor


@over(
    "model, error, message",
    [
        (labelled(SEVERAL, **TEXTS), ValueError, "twice, as target='income' and by classes="),
        (labelled(SEVERAL, None), skdp.DomainError, "No column is declared as the label"),
        (labelled(SEVERAL, "age"), skdp.DomainError, "of intervals"),
        (labelled(SEVERAL, "wage"), skdp.DomainError, "wage"),
        (labelled(FrozenEstimator(SEVERAL), None), NotFittedError, "not fitted"),
        (labelled(FITTED[None], None), ValueError, "already has its label"),
        (labelled(FITTED["income"], None, **TEXTS), ValueError, "give PrivateClassifier no"),
        (labelled(SEVERAL, model=REGRESSOR), skdp.DomainError, "PrivateClassifier"),
        (labelled(NUMBERS, "a", REGRESSOR, target_range=(0, 1)), ValueError, "declared twice"),
        (labelled(NUMBERS, None, REGRESSOR), skdp.DomainError, "target_range"),
        # Without an estimator, or with one and the parameters of the default release.
        (skdp.PrivateClassifier(domain=DOMAIN, target="income"), TypeError, "epsilon"),
        (skdp.PrivateClassifier(None, SEVERAL), ValueError, "no estimator"),
        (labelled(SEVERAL, epsilon=1), ValueError, "beside it"),
        (labelled(GRID, None, **TEXTS), ValueError, "declared twice"),
        (skdp.PrivateClassifier(**DEFAULT), ValueError, "No column is declared as the label"),
        (skdp.PrivateClassifier(**TINY), ValueError, "at least 3e-05"),
    ],
)
def test_what_is_not_declared_is_refused_before_the_charge(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(X, Y)
    assert UNPAID.spent == 0


class WeightedRelease(skdp.HDPViewSynthesizer):
    """Two cells, the second three times as heavy."""

    def make_training_set(self, n_samples=None, random_state=None):
        return np.array([[0.0], [1.0]]), np.array([0, 1]), np.array([1000.0, 3000.0])


class Weighted(BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        self.classes_, self.n_ = np.unique(y), len(y)
        self.share_ = np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Unweighted(Weighted):
    def fit(self, X, y):
        return super().fit(X, y)


@over("kind, n", [(Weighted, 2), (Unweighted, 4000)])
def test_weights_are_used_or_drawn_in_proportion(kind, n):
    release = WeightedRelease(domain=skdp.Numeric(0, 1, bins=2))
    model = skdp.PrivateClassifier(kind(), release, classes=[0, 1], random_state=0)
    model.fit(np.zeros((5, 1)), np.zeros(5))
    # 4000 draws of a coin that shows 1 three times out of four: five standard deviations.
    assert abs(model.estimator_.share_ - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)
    assert model.estimator_.n_ == n


# --- Pipelines and cross-validation


def test_a_frozen_release_is_trained_on_and_not_paid_again():
    ledger = skdp.PrivacyLedger(2)
    release = clone(RELEASE).set_params(ledger=ledger).fit(X, Y)
    for classifier in (encoded(DecisionTreeClassifier(max_depth=3)), encoded(LogisticRegression())):
        model = skdp.PrivateClassifier(classifier, FrozenEstimator(release)).fit(X, Y)
        assert model.score(X, Y) > 0.7 and list(model.classes_) == ["high", "low"]
        assert model.privacy_loss_ == release.privacy_loss_
        # The true labels are not read any more.
        assert model.fit(X, ["anything"] * len(X)).score(X, Y) > 0.7
    assert ledger.spent == 2
    with pytest.raises(skdp.exceptions.DomainError, match="needs a Numeric"):
        skdp.PrivateRegressor(LinearRegression(), FrozenEstimator(release)).fit(X, Y)


# --- rows to predict


class Seen(DecisionTreeClassifier):
    """Keeps the rows that it was trained on and those that it predicted; each row is a label."""

    met = []

    def fit(self, X, y):
        self.met[:] = [X]
        return super().fit(np.zeros((len(y), 1)), y)

    def predict(self, X):
        self.met.append(X)
        return np.resize(self.classes_, len(X))


MEANT = skdp.Domain(
    {
        "town": skdp.Categorical(["A", "B", "else"], other="else"),
        "sex": ["F", "M"],
        "age": (17, 90),
        "pay": skdp.Numeric(0, 1000, special=[-1]),
        "seen": skdp.Date("2020-01-01", "2020-12-31"),
        "label": ["no", "yes"],
    }
)
GIVEN = pd.DataFrame(
    {
        "town": ["A", "Cuba", None, "B"],
        "sex": ["M", "x", "F", None],
        "age": [16, 500, 17, 90],
        "pay": [0.5, 2000.0, -1.0, np.nan],
        "seen": ["2020-02-03", "2019-01-01", "2021-01-01", None],
    }
)


@over("how", [lambda t: t, pl.from_pandas, lambda t: t.to_numpy(dtype=object)])
@over("frozen", [False, True])
def test_rows_are_predicted_as_a_fit_reads_them(how, frozen):
    known = GIVEN[:1].assign(pay=[9.0])
    rows, y = how(pd.concat([known] * 200, ignore_index=True)), ["no", "yes"] * 100
    release = skdp.MarginalSynthesizer(epsilon=1, domain=MEANT, target="label")
    if frozen:
        release = FrozenEstimator(release.fit(rows, y))
    model = skdp.PrivateClassifier(Seen(), release).fit(rows, y)
    model.predict(how(GIVEN))
    trained, met = Seen.met[0], Seen.met[-1]
    assert type(met) is type(trained)
    if isinstance(met, pd.DataFrame):
        assert [*met.dtypes] == [*trained.dtypes]
    met = pd.DataFrame(np.asarray(met), columns=[*GIVEN]).astype(object)
    town, sex, age, pay, seen = (met[name].where(met[name].notna(), None) for name in GIVEN)
    assert [*town] == ["A", "else", None, "B"] and [*sex] == ["M", None, "F", None]
    assert [*age] == [17, 90, 17, 90] and [*pay] == [0.5, 1000, -1, None]
    days = [None if day is None else str(day)[:10] for day in seen]
    assert days == ["2020-02-03", "2020-01-01", "2020-12-31", None]


def test_no_gap_changes_the_type_of_other_rows_to_predict_which_is_that_of_training_rows():
    domain = {"n": skdp.Numeric(0, 4, integer=True), "b": [False, True], "c": [1, 2]}
    domain["label"] = [0, 1]
    rows = pd.DataFrame({"n": [1, 2, 3], "b": [True, False, True], "c": 2, "label": [0, 1, 1]})
    release = skdp.MarginalSynthesizer(epsilon=1, domain=domain, target="label").fit(rows)
    whole = rows[["n", "b", "c"]][:2]
    holed = pd.DataFrame({"n": [1, 2, None], "b": [True, False, None], "c": [2, 2, None]})
    one, other = release.prepare(whole), release.prepare(holed)
    pd.testing.assert_frame_equal(one, other[:2])
    assert (release.make_training_set(9)[0].dtypes == one.dtypes).all()
    assert one["n"].dtype == "int64" and other["n"].tolist() == [1, 2, 2]


# --- what could fail after the charge is tried before


class Fails(DecisionTreeClassifier):
    """Raises what is no Exception, as Polars does, on more rows than a trial has."""

    def fit(self, X, y, sample_weight=None):
        if len(y) > 500:
            raise SystemExit("too many rows")
        return super().fit(X, y, sample_weight)


def test_a_failed_training_loses_no_release():
    ledger = skdp.PrivacyLedger(2)
    model = skdp.PrivateClassifier(encoded(Fails()), clone(RELEASE).set_params(ledger=ledger))
    with pytest.raises(skdp.exceptions.TrainingError, match="too many rows") as error:
        model.fit(X, Y)
    assert ledger.spent == 2 and model.privacy_loss_.epsilon == 2
    assert error.value.synthesizer is model.synthesizer_
    with pytest.raises(NotFittedError):
        model.predict(X)
    # It goes on as the error says.
    frozen = FrozenEstimator(model.synthesizer_)
    again = skdp.PrivateClassifier(encoded(LogisticRegression()), frozen)
    assert again.fit(X, Y).score(X, Y) > 0.7 and ledger.spent == 2
    # A model that was fitted before forgets what it learned from another release.
    fitted = skdp.PrivateClassifier(encoded(DecisionTreeClassifier()), RELEASE).fit(X, Y)
    with pytest.raises(skdp.exceptions.TrainingError):
        fitted.set_params(estimator=encoded(Fails())).fit(X, Y)
    with pytest.raises(NotFittedError):
        fitted.predict(X)


@over(
    "changes, error, message",
    [
        # Text without an encoder, a parameter that is refused when it trains, no predict.
        ({"estimator": LogisticRegression()}, ValueError, "declared domain.*could not convert"),
        ({"estimator": encoded(DecisionTreeClassifier(max_depth=-1))}, ValueError, "max_depth"),
        ({"estimator": OneHotEncoder()}, ValueError, "predict"),
        # A category that the release may lack.
        (
            {"estimator__columntransformer__onehotencoder__handle_unknown": "error"},
            ValueError,
            "=-1",
        ),
        ({"n_samples": -1}, ValueError, "n_samples"),
        ({"n_samples": "all"}, TypeError, "n_samples"),
        ({"random_state": "x"}, TypeError, "random_state"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_the_charge(changes, error, message):
    ledger = skdp.PrivacyLedger()
    release = clone(RELEASE).set_params(ledger=ledger)
    model = skdp.PrivateClassifier(encoded(DecisionTreeClassifier()), release)
    with pytest.raises(error, match=f"(?s){message}"):
        model.set_params(**changes).fit(X, Y)
    # Not a row was read: the same of no rows, whose labels are none.
    with pytest.raises(error, match=f"(?s){message}"):
        model.fit(X.iloc[:0], Y.iloc[:0])
    assert ledger.spent == 0
    with pytest.raises(error, match=f"(?s){message}"):
        PrivateGridSearchCV(model, {}, ledger=ledger).fit(X, Y)
    with pytest.raises(error, match=f"(?s){message}"):
        private_cross_val_score(model, X, Y, epsilon=1, ledger=ledger)
    assert ledger.spent == 0


# --- labels that were encoded on the way


@pytest.mark.filterwarnings("ignore:y holds whole numbers")
def test_meta_estimators_that_encode_labels_take_declared_text():
    numbers, domain = X[["age"]], DOMAIN.select(["age"])
    public = {"epsilon": 5, "domain": domain, "classes": ["low", "high"]}
    release = skdp.GridSynthesizer(epsilon=5, domain=domain, rule="identity")
    tree = DecisionTreeClassifier(max_depth=2)
    for inner in (
        skdp.PrivateClassifier(tree, release, classes=["low", "high"]),
        skdp.PrivateAdditiveClassifier(**public),
    ):
        for outer in (VotingClassifier([("a", inner)]), OneVsRestClassifier(inner)):
            assert outer.fit(numbers, Y).score(numbers, Y) > 0.7
            assert set(outer.predict(numbers)) == {"low", "high"}
        shares = cross_val_predict(inner, numbers, Y, cv=2, method="predict_proba")
        assert ((shares[:, 0] > 0.5) == (Y == "high")).mean() > 0.7


def test_labels_of_another_type_than_declared_are_positions_or_refused():
    ledger, truth = skdp.PrivacyLedger(5), np.arange(len(X)) % 2 == 0
    given = {"domain": DOMAIN, "target": "income", "max_grids": 10, "ledger": ledger}
    inner = skdp.PrivPfCClassifier(epsilon=5, **given)
    for model in (skdp.PrivateClassifier(encoded(LogisticRegression()), RELEASE), inner):
        with pytest.raises(skdp.DomainError, match="declared labels are text"):
            model.fit(X, truth)
    # A trial charges no ledger of a private estimator inside.
    skdp.PrivateClassifier(inner, RELEASE).set_params(estimator__epsilon=2).fit(X, Y)
    assert ledger.spent == 2 and len(ledger.to_frame()) == 1
    inner.set_params(epsilon=3)
    with pytest.warns(UserWarning, match="positions in alphabetical order"):
        inner.fit(X, (Y == "low").to_numpy().astype(int))
    assert inner.classes_.tolist() == [0, 1] and inner.predict(X).dtype.kind == "i"


# ------------------------------------------------------------------------- without an estimator


def test_the_default_is_privpfc_twice_where_records_times_epsilon_are_few():
    given = {"domain": DOMAIN, "target": "income"}
    model = skdp.PrivateClassifier(epsilon=0.2, **given).fit(X, Y).estimator_
    assert model.score(X, Y) > 0.5
    assert [type(each) for each in model.models_] == [skdp.PrivPfCClassifier] * 2
    # With an estimator, the default release has the parameters.
    ledger, tree = skdp.PrivacyLedger(3), encoded(DecisionTreeClassifier(max_depth=3))
    released = skdp.PrivateClassifier(tree, epsilon=2, ledger=ledger, **given).fit(X, Y)
    assert isinstance(released.synthesizer_, skdp.MarginalSynthesizer)
    assert ledger.spent == released.privacy_loss_.epsilon == 2 and released.score(X, Y) > 0.7


@over("epsilon, least", [(5, 0.7), (200, 0.75)])
def test_the_default_adds_what_both_models_say_beyond_the_overall_shares(epsilon, least):
    ledger = skdp.PrivacyLedger(200)
    model = skdp.PrivateClassifier(epsilon=epsilon, domain=DOMAIN, target="income", ledger=ledger)
    cells, additive = model.fit(X, Y).estimator_.models_
    assert isinstance(cells, skdp.PrivPfCClassifier) and model.score(X, Y) > least
    # Charged once and beforehand, whatever is fitted; the models' own parts sum to the rest.
    assert len(ledger.to_frame()) == 1 and float(ledger.spent) == epsilon
    parts, shares = model.privacy_loss_.parts, model.predict_proba(X)
    assert additive.privacy_loss_.epsilon == Fraction(4, 5) * parts["models"]
    assert cells.privacy_loss_.epsilon + additive.privacy_loss_.epsilon == parts["models"]
    away = [
        np.log(each[:, 1] / each[:, 0]) - np.log(cells.shares_[1] / cells.shares_[0])
        for each in (cells.predict_proba(X), additive.predict_proba(X), shares)
    ]
    np.testing.assert_allclose(away[2], 0.4 * away[0] + 0.8 * away[1], atol=1e-9)


def test_the_default_is_privpfc_twice_where_columns_say_something_together_only():
    X = np.random.default_rng(0).uniform(-1, 1, (6_000, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = skdp.PrivateClassifier(epsilon=2, domain=skdp.Numeric(-1, 1, bins=4), classes=[0, 1])
    assert model.fit(X, y).score(X, y) > 0.9
    first, second = model.estimator_.models_
    assert isinstance(second, skdp.PrivPfCClassifier)
    logs = sum(
        share * np.log(each.predict_proba(X)) for share, each in ((0.2, first), (0.8, second))
    )
    np.testing.assert_allclose(model.predict_proba(X), softmax(logs, axis=1), atol=1e-9)


def test_without_an_estimator_a_regressor_is_additive():
    X = np.linspace(0, 1, 5_000)[:, None]
    model = skdp.PrivateRegressor(epsilon=2.0, domain=skdp.Numeric(0, 1), target_range=(0, 10))
    assert model.fit(X, 10 * X[:, 0]).score(X, 10 * X[:, 0]) > 0.9
    assert model.n_features_in_ == 1 and model.estimator_.target_range == (0, 10)
    ledger = skdp.PrivacyLedger()
    again = clone(model).set_params(ledger=ledger).fit(X[:5], X[:5, 0])
    assert ledger.to_frame()["name"][0] == "PrivateRegressor"
    assert pickle.loads(pickle.dumps(again)).predict(X[:5]).shape == (5,)


# ---------------------------------------------------------------------------------- regressors


def test_a_regressor_learns_from_the_release():
    domain = SQUARE.with_attribute("y", skdp.Numeric(0, 3))
    release = skdp.MarginalSynthesizer(epsilon=2, domain=domain, target="y")
    target = 3 * searched.X["a"]
    estimator = skdp.PrivateRegressor(DecisionTreeRegressor(max_depth=4), release)
    estimator.fit(searched.X, target)
    assert estimator.score(searched.X, target) > 0.8 and estimator.privacy_loss_.epsilon == 2
    for few in (searched.X[:0], searched.X[:1]):
        release = skdp.MarginalSynthesizer(epsilon=0.01, domain=SQUARE)
        estimator = skdp.PrivateRegressor(LinearRegression(), release, target_range=(0, 2))
        assert np.isfinite(estimator.fit(few, few["a"]).predict(searched.X)).all()


@over(
    "kind, labels", [(skdp.PrivateClassifier, "classes"), (skdp.PrivateRegressor, "target_range")]
)
def test_verbose_tells_of_parts_and_not_of_rows(kind, labels, capsys):
    X = np.random.default_rng(0).uniform(0, 1, (137, 2))
    given = {"epsilon": 1.0, "domain": skdp.Numeric(0, 1), labels: [0, 1], "random_state": 0}
    for verbose in (0, 1):
        kind(verbose=verbose, **given).fit(X, (X[:, 0] > 0.5).astype(int))
        said = capsys.readouterr().err
        assert ("groups" in said) == bool(verbose) and "137" not in said
