"""Exact scores and true rows say so once; likelihoods of rows under each release."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from estimators import CASES, DOMAIN, people
from loops import over
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

import skdp
from skdp.base import SAID, NoScore
from skdp.model_selection import PrivateGridSearchCV, private_cross_val_score

ROWS = people(400)
X, Y = ROWS.drop(columns="income"), ROWS["income"]
FEATURES = DOMAIN.select(["age", "sex", "work"])


@pytest.fixture
def unsaid(monkeypatch):
    """Nothing was said before."""
    said = set(SAID)
    SAID.intersection_update({"ledger"})
    yield
    SAID.update(said)


def leaks(action):
    """Texts of the leaks that an action warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(one.message) for one in caught if one.category is skdp.PrivacyLeakWarning]


def given(case):
    rows = case.rows(ROWS)
    domain, target = (case.params.get(name) for name in ("domain", "target"))
    if isinstance(domain, skdp.Domain):
        rows = rows[[name for name in domain.names if name in rows]]
    return (rows.drop(columns=target), rows[target]) if target else (rows, None)


# --- in model selection


@over("case", CASES)
def test_every_estimator_runs_in_a_pipeline_or_says_where_to_put_it(case):
    ledger = skdp.PrivacyLedger()
    pipeline = make_pipeline(case.make(ledger=ledger))
    if not issubclass(case.estimator, NoScore):
        found = cross_validate(pipeline, *given(case), cv=2, error_score="raise")
        assert np.isfinite(found["test_score"]).all() and ledger.spent == 2
        return
    # scikit-learn finds no score, and nothing is fitted.
    with pytest.raises(TypeError, match="'score' method"):
        cross_validate(pipeline, *given(case), cv=2)
    with pytest.raises(AttributeError, match=r"(Put it|Put a private model|fit it by itself)"):
        _ = case.make().score
    with pytest.raises(TypeError, match=r"has none\. (Put|It releases)"):
        PrivateGridSearchCV(pipeline, {}).fit(X, Y)
    assert ledger.spent == 0


# --- likelihoods

TABLE = skdp.Domain({"a": skdp.Categorical(range(4)), "b": skdp.Categorical(range(3))})
EVERY = np.array([*itertools.product(range(4), range(3))])
PAIRS = np.array([[0, 0]] * 600 + [[1, 2]] * 200 + [[3, 1]] * 200)
RELEASES = {
    "cube": (skdp.DataCube, {}),
    "columns": (skdp.DataCube, {"max_order": 1}),
    "grid": (skdp.PrivPfCTransformer, {"target": "b"}),
    "views": (skdp.HDPViewSynthesizer, {}),
    "marginals": (skdp.MarginalSynthesizer, {}),
    "network": (skdp.PrivBayesSynthesizer, {}),
}


@over("name", RELEASES)
def test_probabilities_of_all_rows_are_those_of_the_release(name):
    make, more = RELEASES[name]
    release = make(epsilon=1e6, domain=TABLE, random_state=0, **more).fit(PAIRS)
    exact = np.zeros((4, 3))
    np.add.at(exact, tuple(PAIRS.T), 1 / len(PAIRS))
    if name == "columns":
        exact = np.outer(exact.sum(1), exact.sum(0))
    if name == "grid":
        # Two values of a column are in one cell.
        assert release.grid_.groups[0].tolist() == [0, 1, 2, 2]
        exact[2:] = exact[2:].mean(axis=0)
    floor = 1 / (1001 * 12)
    found = np.exp(release.score_samples(EVERY)).reshape(4, 3)
    np.testing.assert_allclose(found, np.maximum(exact, floor), rtol=0.01)
    # Undeclared values have the floor, and a row the same value whatever the others are.
    odd = release.score_samples(np.array([[0, 0], [9, 0]]))
    np.testing.assert_allclose(odd, [math.log(found[0, 0]), math.log(floor)], rtol=1e-3)
    assert release.score(PAIRS) == release.score_samples(PAIRS).mean()


@over("make, how", [(skdp.KDTreeSynthesizer, "cell"), (skdp.DataCube, "base")])
def test_probabilities_sum_to_one_where_noise_made_many_records(make, how):
    domain = skdp.Domain({"a": (0, 29), "b": (0, 29)})
    release = make(epsilon=0.1, domain=domain, strategy=how).fit(np.zeros((3000, 2)))
    every = np.array([*itertools.product(range(30), range(30))])
    assert np.exp(release.score_samples(every)).sum() == pytest.approx(1, abs=0.02)


def test_likelihoods_of_one_column():
    ages = np.repeat([20, 40], [300, 700])
    tree = skdp.RangeTreeHistogram(epsilon=1e6, domain=(0, 99), random_state=0).fit(ages)
    found = np.exp(tree.score_samples(pd.Series([20, 40, 60])))
    np.testing.assert_allclose(found, [0.3, 0.7, 1 / (1001 * 100)], rtol=0.01)
    assert tree.score(ages) == tree.score_samples(ages[:, None]).mean()
    with pytest.raises(ValueError, match="features"):
        tree.score(np.ones((2, 2)))


def test_rules_leave_a_row_its_own_arithmetic():
    domain = skdp.Domain(TABLE, structure=[skdp.forbid("a == 1 and b == 1")])
    release = skdp.MarginalSynthesizer(epsilon=1.0, domain=domain, random_state=0).fit(PAIRS)
    for row in EVERY[:, None]:
        [alone] = release.score_samples(row)
        assert release.score_samples(np.vstack([row, EVERY]))[0] == alone


def test_a_search_chooses_by_likelihood():
    ledger = skdp.PrivacyLedger()
    cube = skdp.DataCube(epsilon=1.0, domain=TABLE, strategy="base", ledger=ledger)
    search = PrivateGridSearchCV(
        cube, {"epsilon": [0.001, 2.0]}, epsilon=0.5, metric="log_likelihood", domain=(-12, 0)
    ).fit(PAIRS)
    assert search.best_params_ == {"epsilon": 2.0} and float(ledger.spent) == 2.501
    with pytest.raises(ValueError, match="a row's log-likelihood"):
        PrivateGridSearchCV(cube, {}, metric="log_likelihood").fit(PAIRS)


# --- what is said once


@over("case", [case for case in CASES if not issubclass(case.estimator, NoScore)])
def test_an_exact_score_says_so_once(case, unsaid):
    SAID.discard("score")
    model = case.make().fit(*given(case))
    [text] = leaks(lambda: [model.score(*given(case)) for _ in range(2)])
    assert text.startswith(f"{case.name}.score is exact") and "private_score" in text


def test_true_rows_behind_a_private_step_say_so_once(unsaid):
    grid = skdp.PrivPfCTransformer(epsilon=1.0, domain=FEATURES, classes=["low", "high"])
    trapped = make_pipeline(grid, LogisticRegression())
    [text] = leaks(lambda: [trapped.fit(X, Y) for _ in range(2)])
    assert "PrivateClassifier(LogisticRegression(), synthesizer=PrivPfCTransformer(...))" in text
    # What it says to do.
    model = skdp.PrivateClassifier(LogisticRegression(), synthesizer=grid)
    SAID.clear()
    assert not leaks(lambda: model.fit(X, Y)) or "ledger" in SAID
    assert SAID <= {"ledger"}


def test_nothing_is_said_in_a_composition_that_is_private(unsaid):
    selector = skdp.DPTopKSelector(k=3, epsilon=1.0, domain=FEATURES, classes=["low", "high"])
    model = skdp.PrivateNaiveBayes(epsilon=1.0, domain=FEATURES, classes=["low", "high"])
    pipeline = make_pipeline(selector.set_output(transform="pandas"), model)
    assert not leaks(lambda: private_cross_val_score(pipeline, X, Y, epsilon=1, cv=2))
    assert not leaks(lambda: PrivateGridSearchCV(pipeline, {}).fit(X, Y))
    [text] = leaks(lambda: pipeline.fit(X, Y))
    assert "make_pipeline(DPTopKSelector(...), PrivateLogisticRegression(...))" in text
