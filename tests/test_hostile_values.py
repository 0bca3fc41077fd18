"""Values that raise, warn or deceive: each has its meaning, and no other record feels it."""

import contextlib
import itertools
import re
import warnings
from collections import deque

import numpy as np
import pandas as pd
import pytest
from estimators import CASES, DOMAIN, people
from loops import over
from odd_values import SECRET, Equal, Panic, Panics, hostile
from pipelines import X, Y, model
from scored import Answers, of_model
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp.model_selection import PrivateGridSearchCV, private_cross_val_score, private_score
from skdp.model_selection._metrics import TABLE, answers_of
from skdp.tables import as_labels, object_array, row_taker

# --- what is read


@over("odd", ["y_true", "y"])
def test_complex_numbers_are_refused_before_the_charge(odd):
    ledger = skdp.PrivacyLedger()
    given = {"metric": "mean_squared_error", "domain": (0, 1), "epsilon": 1, "ledger": ledger}
    given |= {"y_true": np.zeros(3), "y": np.zeros(3)}
    with pytest.raises(ValueError, match="[Cc]omplex"):
        private_score(**{**given, odd: np.zeros(3, complex)})
    assert ledger.spent == 0
    # pandas takes the type of a Series from the records: one of them must not decide.
    private_score(**{**given, odd: pd.Series(np.zeros(3, complex))})
    assert ledger.spent == 1


# By position: to show the objects would be to look into them.
@over("container, position", itertools.product([deque, object_array], range(len(hostile()))))
def test_labels_are_read_entry_by_entry(container, position):
    labels = [*people(30)["income"].iloc[1:], hostile()[position]]
    rows = people(30).drop(columns="income")
    ledger = skdp.PrivacyLedger(3)
    release = skdp.GridSynthesizer(epsilon=1, domain=DOMAIN, target="income", rule=1, ledger=ledger)
    release.fit(rows, container(labels))
    truth = ["low"] * 30
    private_score(container(labels), container(labels), "accuracy", epsilon=0.5, ledger=ledger)
    private_score(
        container(labels), truth, "f1", labels=["low", "high"], epsilon=0.5, ledger=ledger
    )
    private_score(
        container(labels), [1.0] * 30, "mean_squared_error", domain=(0, 1), epsilon=1, ledger=ledger
    )
    assert ledger.spent == 3


def test_one_nested_label_changes_no_other():
    # All entries were lists: a column. One of another length was an error before the charge.
    column = [["low"], ["high"]] * 50
    assert as_labels(column).tolist() == ["low", "high"] * 50
    for odd in (["low", "high"], [], [["low"]], None, "low"):
        assert as_labels([*column, odd])[:100].tolist() == ["low", "high"] * 50
    score = private_score([*column, [1, 2]], ["low"] * 101, "accuracy", epsilon=10_000)
    assert float(score) == pytest.approx(50 / 101)


# --- baskets


def test_baskets_are_read_after_the_charge():
    ledger, read = skdp.PrivacyLedger(1), []

    class Watched(list):
        def __iter__(self):
            read.append(ledger.spent)
            return super().__iter__()

    for epsilon in (2.0, 1.0):
        with contextlib.suppress(skdp.BudgetExceededError):
            skdp.most_frequent_items(
                [Watched(["a"])] * 3, 1, ["a"], epsilon=epsilon, max_items=1, ledger=ledger
            )
    assert read == [1, 1, 1]


@over("persons", [False, True])
def test_no_basket_raises(persons):
    for odd in hostile():
        ledger = skdp.PrivacyLedger()
        found = skdp.most_frequent_items(
            [odd, *["a"] * 50] if persons else [odd, *[["a"]] * 50, ["a", odd]],
            1,
            ["a", "b"],
            epsilon=1_000.0,
            max_items=2,
            ledger=ledger,
            persons=[odd, *range(50)] if persons else None,
        )
        assert ledger.spent == 1_000
        # A dict is a basket of its keys; with persons= it is an item, which nobody declared.
        assert found["count"].tolist() == ([50] if persons else [51 + (type(odd) is dict)])


# --- scores of models: no row changes another's


def fitted_models():
    """Models that predict numbers in which an ulp shows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 37))
    y = X @ rng.normal(size=37) > 0
    yield LinearRegression().fit(X, X @ rng.normal(size=37))
    for one in (LogisticRegression(), MLPClassifier((16,), max_iter=5, random_state=0)):
        one.fit(X, y)
        yield Answers(lambda X, fitted=one: fitted.predict_proba(X)[:, 0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@over("n_rows, odd", itertools.product([1, 500, 2_500], ["fails", "only more"]))
def test_a_row_changes_no_other_rows_prediction(n_rows, odd):
    """Not by one ulp, whether it fails (NaN), or only fills one more table."""
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 37))
    places = rng.integers(0, TABLE, n_rows)
    row = np.full(37, np.nan) if odd == "fails" else rng.normal(size=37)
    # A place that is taken, so that the tables are others too.
    taken = places[-1]
    for fitted in fitted_models():
        _, take = row_taker(X)
        before = answers_of(fitted, "predict", take, np.arange(n_rows), places)
        for position in (0, n_rows // 2, n_rows):
            more = np.insert(X, position, row, axis=0)
            coins = np.insert(places, position, taken)
            _, take = row_taker(more)
            after = answers_of(fitted, "predict", take, np.arange(n_rows + 1), coins)
            assert np.isnan(after[position]) == (odd == "fails")
            assert np.delete(after, position).tolist() == before.tolist()
        assert not np.isnan(before.astype(float)).any()


@over(
    "answer, right",
    [
        (lambda X: np.zeros(len(X)), 1),
        (lambda X: pd.Series(np.zeros(len(X), dtype=int)), 1),
        (lambda X: np.zeros((len(X), 2)), 0),
        (lambda X: np.zeros(len(X) - 1), 0),
        (lambda X: None, 0),
        (lambda X: np.full(len(X), np.nan), 0),
        (lambda X: np.full(len(X), np.inf), 0),
        (lambda X: np.array(["0"] * len(X)), 1),
        (lambda X: object_array([Equal()] * len(X)), 0),
    ],
)
def test_odd_predictions_are_wrong(answer, right):
    X, y = np.zeros((3, 1)), np.zeros(3, dtype=int)
    assert of_model("accuracy", epsilon=10_000)(Answers(answer), X, y) == right
    loss = of_model("mean_squared_error", epsilon=1e6, domain=(0, 2))
    # Text is read as numbers are; an infinite one is clipped to the largest.
    worst = 0 if right else 1 if "'1'" in repr(answer(X)) else 4
    assert loss(Answers(answer), X, y) == pytest.approx(-worst, abs=0.01)


# --- scores of models: nothing leaves


def strict():
    """Raises at an unknown category, with the category in its text."""
    encoder = make_column_transformer((OneHotEncoder(), ["sex"]), ("passthrough", ["age"]))
    return model(make_pipeline(encoder, DecisionTreeClassifier(max_depth=2)), 20)


@pytest.mark.parametrize("task", ["one model", "search", "cross-validation"])
def test_no_exception_and_no_warning_tells_a_value(task, capfd):
    secret = pd.DataFrame({"age": [30.0], "sex": [SECRET], "work": ["full"]})
    rows, labels = pd.concat([X, secret], ignore_index=True), [*Y, "low"]
    # It meets no value that the domain lacks: a gap, in place of this one.
    with pytest.raises(ValueError, match=r"unknown categories \[(nan|None)\]"):
        strict().fit(X, Y).predict(rows)
    ledger = skdp.PrivacyLedger()
    scorer = of_model(epsilon=100, ledger=ledger)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if task == "one model":
            result = scorer(strict().fit(X, Y), rows, labels)
        elif task == "search":
            grid = {"estimator__decisiontreeclassifier__max_depth": [1, 2]}
            PrivateGridSearchCV(strict(), grid, ledger=ledger).fit(rows, labels)
            result = 1.0
        else:
            result = private_cross_val_score(
                strict(), rows, labels, epsilon=100, cv=2, ledger=ledger
            ).value
    assert np.isfinite(result).all() and np.all(np.asarray(result) > 0.5)
    assert ledger.spent > 0
    assert not any(SECRET in str(warning.message) for warning in caught)
    assert SECRET not in "".join(capfd.readouterr())


def test_warnings_of_predict_stay_inside_even_where_they_are_errors():
    def warn(X):
        warnings.warn(SECRET, stacklevel=1)
        np.float64(1) / np.zeros(len(X))
        return np.zeros(len(X))

    scorer = of_model(epsilon=10_000)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert scorer(Answers(warn), np.zeros((3, 1)), np.zeros(3)) == 1


@over("error", [Panic, SystemExit, GeneratorExit, MemoryError, KeyboardInterrupt])
def test_what_is_no_exception_stays_inside(error):
    def fail(X):
        if (X > 5).any():
            raise error(SECRET)
        return np.zeros(len(X))

    rows, scorer = np.arange(10.0)[:, None], of_model(epsilon=10_000)
    # Who ends the process is heard.
    heard = error is KeyboardInterrupt
    with pytest.raises(error) if heard else contextlib.nullcontext():
        assert scorer(Answers(fail), rows, np.zeros(10)) == 0.6
    # Labels that cannot be compared count as wrong.
    assert scorer(Answers(lambda X: np.zeros(len(X))), rows[:2], [0, Panics(0)]) == 0.5


def test_true_rows_are_predicted_after_the_charge():
    called = []
    answers = Answers(lambda X: called.append(len(X)) or np.zeros(len(X)))
    ledger = skdp.PrivacyLedger(1)
    scorer = of_model(epsilon=2, ledger=ledger)
    with pytest.raises(skdp.BudgetExceededError):
        scorer(answers, np.zeros((3, 1)), np.zeros(3))
    assert called == []


# --- a release of nobody


def warnings_of(case, rows, **params):
    """What is said of a fit. Shown, not raised: an error would lose what was paid for."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        assert case.make(**params).fit(rows).privacy_loss_ is not None
    return [str(each.message) for each in caught]


@over("case, epsilon", itertools.product(CASES, [0.5, 20]))
def test_a_release_of_nobody_warns(case, epsilon):
    if case.name in ("PrivateQuantileClipper", "SampleAggregate"):
        pytest.skip("releases no total")
    more = {"algorithm": "uniform-grid"} if case.name == "DPKMeans" else {}
    # None fits: text in the numbers, as pandas 2 keeps it in a column of objects.
    rows = case.rows(people(2_000))
    rows = rows.assign(age=pd.Series(["about 40"] * len(rows), dtype=object))
    # Noise alone shows more than three standard deviations at most once in 100 releases (discrete
    # Laplace): five times in a row 1e-10. The first that warns is enough.
    told = (warnings_of(case, rows, epsilon=epsilon, **more) for _ in range(5))
    assert any(re.search("no records fit|skipped about", text) for each in told for text in each)


@over("case", CASES)
def test_a_release_of_somebody_does_not_warn(case):
    assert warnings_of(case, case.rows(people(5_000)), epsilon=20) == []


@over("value", [5e-324, 1e-310, 2.2e-308])
def test_no_underflow_tells_of_a_value(value):
    X = np.random.default_rng(0).uniform(0, 100, (50, 2))
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X, np.vstack([X, [value, value]])):
            skdp.GridSynthesizer(epsilon=1.0, domain=skdp.Numeric(0, 100, bins=5)).fit(rows)
            skdp.PrivateStandardScaler(epsilon=1.0, domain=(0, 1e6)).fit(rows)
            private_score(
                rows[:, 0], rows[:, 1], "neg_mean_absolute_error", epsilon=1.0, domain=(0, 100)
            )
