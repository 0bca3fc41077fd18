"""PrivPfC, DiffGen and projected histograms as estimators."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people
from loops import over
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import skdp
from skdp import (
    DiffGenTransformer,
    Numeric,
    PrivateClassifier,
    PrivPfCClassifier,
    PrivPfCTransformer,
    ProjectedHistogramTransformer,
)
from skdp import classification as privpfc_module

pytestmark = pytest.mark.filterwarnings("ignore::skdp.InsecureSeedWarning")

ROWS = people(4000)
X, Y = ROWS.drop(columns="income"), ROWS["income"]
GIVEN = {"domain": DOMAIN, "target": "income", "random_state": 0}
TRANSFORMERS = [PrivPfCTransformer, DiffGenTransformer, ProjectedHistogramTransformer]


@pytest.fixture(scope="module")
def release():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.InsecureSeedWarning)
        return PrivPfCTransformer(epsilon=2.0, **GIVEN).fit(X, Y)


# --------------------------------------------------------------------------------- the release


def test_finds_the_predictor_that_matters(release):
    assert "age" in release.grid_.columns
    assert set(release.grid_.to_frame()["column"]) == set(release.grid_.columns)
    assert release.histogram_.shape == (*release.grid_.shape, 2)
    assert release.classes_.tolist() == ["high", "low"]
    assert repr(release.grid_).startswith("Grid(age: ")


def test_histogram_is_the_projection_of_the_noisy_counts(release):
    noisy, histogram = release.noisy_counts_, release.histogram_
    assert noisy.dtype == np.int64
    assert histogram.min() >= 0
    assert abs(histogram.sum() - 4000) < 100
    # Setting negative counts to zero would keep every positive count and raise the total.
    assert np.ptp((noisy - histogram)[histogram > 0]) < 1e-6


def test_paper_sets_negative_counts_to_zero():
    release = PrivPfCTransformer(epsilon=0.3, calibration="paper", **GIVEN).fit(X, Y)
    assert np.array_equal(release.histogram_, np.maximum(release.noisy_counts_, 0))
    assert release.privacy_loss_.parts.keys() == {"total", "grid", "counts"}


@over("estimator", TRANSFORMERS)
def test_coordinates_name_the_groups(estimator):
    release = estimator(epsilon=2.0, **GIVEN).fit(X, Y)
    out, columns = release.transform(X), list(release.grid_.columns)
    assert out.shape == (len(X), len(columns))
    assert release.get_feature_names_out().tolist() == columns
    assert (out >= 0).all() and (out < release.grid_.shape).all()
    if "age" in columns:
        ordered = out[np.argsort(X["age"].to_numpy()), columns.index("age")]
        assert (np.diff(ordered) >= 0).all()


@over("estimator", TRANSFORMERS)
def test_the_training_set_is_the_grid(estimator):
    release = estimator(epsilon=2.0, **GIVEN).fit(X, Y)
    out = release.prepare(X)
    assert out.shape == (len(X), sum(release.grid_.shape))
    assert (out.sum(axis=1) == len(release.grid_.columns)).all()
    rows, labels, weight = release.make_training_set()
    assert rows.shape[1] == out.shape[1]
    assert weight.min() > 0
    assert weight.sum() == pytest.approx(release.histogram_.sum())
    assert set(labels) <= set(release.classes_)
    # Every training row is the one-hot form of one cell, and its weight that cell's count.
    for row, label, count in zip(rows[:20], labels[:20], weight[:20], strict=True):
        cell, begin = [], 0
        for size in release.grid_.shape:
            cell.append(int(np.flatnonzero(row[begin : begin + size])[0]))
            begin += size
        assert release.histogram_[(*cell, release.classes_.tolist().index(label))] == count
    model = PrivateClassifier(LogisticRegression(), FrozenEstimator(release)).fit(X, Y)
    assert model.score(X, Y) > 0.75
    assert release.make_training_set(500)[2].sum() == pytest.approx(500)
    with pytest.raises(ValueError, match="at least 0"):
        release.make_training_set(-1)


@over("estimator", TRANSFORMERS)
def test_samples_follow_the_histogram(estimator):
    release = estimator(epsilon=2.0, **GIVEN).fit(X, Y)
    rows = release.sample(20_000, random_state=0)
    assert rows.columns.tolist() == list(DOMAIN.names)
    coordinates = release.transform(rows.drop(columns="income"))
    found = np.zeros(release.histogram_.shape)
    label = np.searchsorted(release.classes_, rows["income"].to_numpy().astype(str))
    np.add.at(found, (*coordinates.T, label), 1)
    expected = release.histogram_ / release.histogram_.sum()
    # Total variation of a multinomial sample; its mean is below sqrt(cells / n) / 2.
    assert np.abs(found / 20_000 - expected).sum() / 2 < 0.75 * np.sqrt(expected.size / 20_000)
    assert len(release.sample()) == max(0, round(release.histogram_.sum()))


def test_label_inside_the_table_or_beside_it(release):
    inside = PrivPfCTransformer(epsilon=2.0, **GIVEN).fit(ROWS)
    assert np.array_equal(inside.noisy_counts_, release.noisy_counts_)
    assert np.array_equal(inside.transform(ROWS), release.transform(X))
    assert inside.n_features_in_ == 3


# ---------------------------------------------------------------------------------- classifiers


def test_classes_may_be_declared_on_the_release():
    domain = DOMAIN.select(["age", "sex", "work"])
    release = PrivPfCTransformer(
        epsilon=2.0, domain=domain, classes=["low", "high"], random_state=0
    )
    assert PrivateClassifier(LogisticRegression(), release).fit(X, Y).score(X, Y) > 0.75
    twice = PrivateClassifier(LogisticRegression(), release, classes=["low", "high"])
    with pytest.raises(ValueError, match="declared twice"):
        twice.fit(X, Y)


@over("calibration", ["tight", "paper"])
def test_three_classes(calibration):
    rows = np.random.default_rng(0).uniform(0, 3, (6000, 3))
    labels = np.array(["x", "y", "z"])[rows[:, 1].astype(int)]
    given = {"domain": Numeric(0, 3, bins=12), "classes": ["z", "x", "y"], "random_state": 0}
    model = PrivPfCClassifier(epsilon=1.0, calibration=calibration, **given).fit(rows, labels)
    assert model.classes_.tolist() == ["x", "y", "z"]
    assert model.score(rows, labels) > 0.8


def test_cells_lean_on_the_additive_model_as_far_as_it_predicts_their_records():
    rng = np.random.default_rng(0)
    shares = np.stack([rng.uniform(0.1, 0.9, 2000)] * 2, axis=1)
    shares[:, 1] = 1 - shares[:, 0]
    # Three records a cell, as the model says: it knows more than they do.
    true = rng.binomial(3, shares[:, 0]).astype(float)
    few = np.stack([true, 3 - true], axis=1)
    assert privpfc_module._best_weight(few, shares, 1.0) == 65
    # Forty records a cell, which contradict the model.
    other = rng.binomial(40, shares[:, 1]).astype(float)
    many = np.stack([other, 40 - other], axis=1)
    assert privpfc_module._best_weight(many, shares, 1.0) == 1
    # Without records nothing is learned.
    assert privpfc_module._best_weight(np.zeros((4, 2)), shares[:4], 2.5) == 2.5


@over("n_classes", [2, 3])
def test_cells_that_differ_by_chance_alone_predict_the_overall_shares(n_classes):
    rng = np.random.default_rng(0)
    variance, overall = 200.0, np.full(n_classes, 1 / n_classes)

    def evidence(shares):
        exact = np.stack([rng.multinomial(100, each) for each in shares])
        noisy = exact + np.rint(rng.laplace(0, 10, exact.shape)).astype(np.int64)
        counts = np.maximum(noisy, 0).astype(float)
        # Smoothed by the overall shares, as good as by an additive model without effects.
        release = SimpleNamespace(
            noisy_counts_=noisy.reshape(8, 8, n_classes),
            histogram_=counts.reshape(8, 8, n_classes),
            smoothed_=(counts + 57 * overall).reshape(8, 8, n_classes),
            shares_=counts.sum(axis=0) / counts.sum(),
        )
        return privpfc_module._evidence(release, variance)

    chance = np.mean([evidence(np.tile(overall, (64, 1))) for _ in range(10)])
    assert 0.05 <= chance < 0.3
    assert evidence(rng.dirichlet(np.full(n_classes, 0.3), 64)) > 0.9


def test_shares_are_pulled_to_those_of_all_records():
    model = PrivPfCClassifier(epsilon=1.0, **GIVEN).fit(X, Y)
    assert abs(model.shares_[1] - np.mean(Y == model.classes_[1])) < 0.02
    logits = []
    for model.evidence_ in (0.0, 0.5, 1.0):
        shares = model.predict_proba(X)
        logits.append(np.log(shares[:, 1] / shares[:, 0]))
    overall = np.log(model.shares_[1] / model.shares_[0])
    np.testing.assert_allclose(logits[0], overall)
    np.testing.assert_allclose(logits[1], (overall + logits[2]) / 2)


def test_paper_predicts_the_largest_count():
    model = PrivPfCClassifier(epsilon=1.0, calibration="paper", **GIVEN).fit(X, Y)
    largest = model.classes_[model.histogram_.argmax(axis=-1)]
    cells = tuple(model._coordinates(X).T)
    decided = model.histogram_.max(axis=-1)[cells] > 0
    assert np.array_equal(model.predict(X)[decided], largest[cells][decided])


def test_unknown_values_follow_the_rest():
    rows = pd.DataFrame({"a": ["p", "q"] * 2000, "b": ["u", "u", "v", "v"] * 1000})
    domain = {"a": ["p", "q"], "b": ["u", "v"]}
    model = PrivPfCClassifier(epsilon=3.0, domain=domain, classes=[0, 1], random_state=0)
    model.fit(rows, (rows["a"] == "p").astype(int))
    shares = model.predict_proba(pd.DataFrame({"a": ["p", "?"], "b": ["u", "v"]}))[:, 1]
    assert shares[0] > 0.9 and shares[1] == pytest.approx(0.5, abs=0.05)


# -------------------------------------------------------------------------------------- inputs


def small(**changes):
    given = {"domain": Numeric(0, 1, bins=4), "classes": [0, 1], "random_state": 0, **changes}
    return PrivPfCClassifier(epsilon=given.pop("epsilon", 1.0), **given)


RNG = np.random.default_rng(0)
POINTS = RNG.uniform(0, 1, (500, 2))
LABELS = (POINTS[:, 0] > 0.5).astype(int)


def test_one_candidate_is_the_grid_of_one_cell():
    model = small(max_grids=1).fit(POINTS, LABELS)
    assert repr(model.grid_) == "Grid(one cell)" and model.histogram_.shape == (2,)
    assert len(np.unique(model.predict(POINTS))) == 1
    transformer = PrivPfCTransformer(domain=Numeric(0, 1, bins=4), classes=[0, 1], max_grids=1)
    assert transformer.fit(POINTS, LABELS).transform(POINTS).shape == (500, 1)
    assert transformer.get_feature_names_out().tolist() == ["all"]
