"""privacy_report on a corpus of pipelines: good, bad and subtle."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipelines import (
    INFERRED,
    PRIVATE_SCORE,
    Changed,
    X,
    Y,
    clip,
    encode,
    model,
    numbers,
    release,
    texts,
)
from scipy.stats import randint
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.image import PatchExtractor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneOut,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp.inspection import assert_private, privacy_report
from skdp.model_selection import PrivateGridSearchCV, PrivateKFold, private_cross_val_score

imblearn = pytest.importorskip("imblearn")
from imblearn import FunctionSampler  # noqa: E402
from imblearn.ensemble import BalancedBaggingClassifier  # noqa: E402
from imblearn.over_sampling import SMOTE, RandomOverSampler  # noqa: E402
from imblearn.pipeline import make_pipeline as make_sampling_pipeline  # noqa: E402


class Mystery(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class ChangedPipeline(Pipeline):
    pass


class MysteryTransformer(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def centre(X):
    return X - X.mean()


nested = model()
for _ in range(10):
    nested = make_pipeline(FunctionTransformer(), nested)
fitted = model(DummyClassifier(), 2).fit(X, Y)
released = release().fit(X, Y)


def regressor(estimator=None):
    inner = LinearRegression() if estimator is None else estimator
    return skdp.PrivateRegressor(inner, skdp.MarginalSynthesizer(0.7, domain=DOMAIN, target="age"))


# (name, estimator, private?, epsilon of one fit (None: cannot be told), verdicts that must occur)
CORPUS = [
    # good
    ("a release", release(), True, 1, {"private"}),
    ("pair views", skdp.MarginalSynthesizer(0.3, domain=DOMAIN), True, 0.3, {"private"}),
    ("a model", model(epsilon=0.5), True, 0.5, {"private", "post-processing"}),
    ("a fitted model", fitted, True, 2, {"private"}),
    (
        "a scaler behind",
        model(make_pipeline(StandardScaler(), LogisticRegression())),
        True,
        1,
        {"post-processing"},
    ),
    (
        "a search behind",
        model(GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]})),
        True,
        1,
        {"post-processing"},
    ),
    (
        "an ensemble behind",
        model(BaggingClassifier(DecisionTreeClassifier())),
        True,
        1,
        {"private"},
    ),
    ("in a pipeline", make_pipeline(FunctionTransformer(), model()), True, 1, {"public"}),
    (
        "passthrough",
        Pipeline([("a", "passthrough"), ("b", None), ("c", model())]),
        True,
        1,
        {"public"},
    ),
    ("ten deep", nested, True, 1, {"private"}),
    (
        "a logarithm in front",
        make_pipeline(numbers(), clip(0, 100), FunctionTransformer(np.log1p), model()),
        True,
        1,
        {"public"},
    ),
    (
        "row by row",
        make_pipeline(numbers(), FunctionTransformer(np.sign), model()),
        True,
        1,
        {"public"},
    ),
    ("declared categories", make_pipeline(texts(), encode(), model()), True, 1, {"public"}),
    (
        "constant for missing",
        make_pipeline(
            numbers(),
            clip(0, 1),
            SimpleImputer(strategy="constant", keep_empty_features=True),
            model(),
        ),
        True,
        1,
        {"public"},
    ),
    (
        "squares of bounded numbers",
        make_pipeline(
            numbers(),
            FunctionTransformer(np.nan_to_num),
            clip(0, 1),
            PolynomialFeatures(),
            model(),
        ),
        True,
        1,
        {"public"},
    ),
    (
        "columns chosen by name",
        make_pipeline(make_column_transformer((numbers(), ["age"]), remainder="drop"), model()),
        True,
        1,
        {"public"},
    ),
    (
        "sampler",
        make_sampling_pipeline(release(), StandardScaler(), LogisticRegression()),
        True,
        1,
        {"private", "post-processing"},
    ),
    ("frozen", FrozenEstimator(fitted), True, 0, {"private"}),
    ("histogram", skdp.RangeTreeHistogram(0.25, bounds=(0, 1), bins=8), True, 0.25, {"private"}),
    (
        "private search",
        PrivateGridSearchCV(model(), {"estimator__C": [0.1, 1.0, 10.0]}, epsilon=0.25),
        True,
        1.25,
        {"private"},
    ),
    (
        "private search of releases",
        PrivateGridSearchCV(model(), {"synthesizer__epsilon": [0.5, 1.5]}, epsilon=0.25),
        True,
        2.25,
        {"private"},
    ),
    (
        "private scores in a search",
        GridSearchCV(
            model(),
            {"estimator__C": [1, 2]},
            cv=PrivateKFold(3),
            scoring=PRIVATE_SCORE,
        ),
        True,
        7 + 0.6,
        {"private"},
    ),
    ("regressor", regressor(), True, 0.7, {"private"}),
    (
        "private search of pipelines",
        PrivateGridSearchCV(
            make_pipeline(FunctionTransformer(), model()),
            {"privateclassifier__estimator__C": [1, 2]},
            epsilon=0.25,
        ),
        True,
        2.25,
        {"private"},
    ),
    (
        "two private scores in a search",
        GridSearchCV(
            model(),
            {"estimator__C": [1]},
            cv=PrivateKFold(2),
            scoring={"a": PRIVATE_SCORE, "b": PRIVATE_SCORE},
            refit="a",
        ),
        True,
        3 + 0.4,
        {"private"},
    ),
    (
        "random search with private scores",
        RandomizedSearchCV(
            model(),
            {"estimator__C": [1, 2, 3]},
            n_iter=2,
            cv=PrivateKFold(3),
            scoring=PRIVATE_SCORE,
        ),
        True,
        7 + 0.6,
        {"private"},
    ),
    (
        "a target scaled behind",
        regressor(TransformedTargetRegressor(LinearRegression(), transformer=StandardScaler())),
        True,
        0.7,
        {"post-processing"},
    ),
    (
        "declared threshold behind",
        model(FixedThresholdClassifier(LogisticRegression(), threshold=0.3)),
        True,
        1,
        {"public"},
    ),
    (
        "tuned and calibrated behind",
        model(TunedThresholdClassifierCV(CalibratedClassifierCV(LogisticRegression()))),
        True,
        1,
        {"post-processing"},
    ),
    (
        "stacked, halved, cached behind",
        model(
            Pipeline(
                [
                    ("a", RFECV(LogisticRegression())),
                    ("b", HalvingGridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]})),
                ],
                memory="/tmp/x",
            ),
        ),
        True,
        1,
        {"post-processing"},
    ),
    ("frozen pipeline", FrozenEstimator(make_pipeline(FunctionTransformer(), fitted)), True, 0, {}),
    (
        "trained on a frozen release",
        skdp.PrivateClassifier(LogisticRegression(), FrozenEstimator(released)),
        True,
        0,
        {"private", "post-processing"},
    ),
    (
        "search on a frozen release",
        PrivateGridSearchCV(
            skdp.PrivateClassifier(LogisticRegression(), FrozenEstimator(released)),
            {"estimator__C": [1, 2]},
            epsilon=0.25,
        ),
        True,
        0.25,
        {"private"},
    ),
    (
        "a frozen sampler releases anew",
        make_sampling_pipeline(FrozenEstimator(released), LogisticRegression()),
        True,
        1,
        {"private"},
    ),
    (
        "oversampled synthetic rows",
        make_sampling_pipeline(release(), SMOTE(), LogisticRegression()),
        True,
        1,
        {"post-processing"},
    ),
    ("a release of a release", model(model(epsilon=2)), True, 1, {"post-processing"}),
    (
        "a release of a release, charged",
        model(model(epsilon=2, ledger=skdp.PrivacyLedger())),
        True,
        3,
        {"post-processing"},
    ),
    (
        "clipped",
        make_pipeline(numbers(), clip(0, 1), model()),
        True,
        1,
        {"public"},
    ),
    (
        "columns chosen by pattern",
        make_pipeline(
            make_column_transformer((numbers(), make_column_selector(pattern="age"))),
            model(),
        ),
        True,
        1,
        {"public"},
    ),
    (
        "columns chosen by type",
        make_pipeline(
            make_column_transformer((numbers(), make_column_selector(dtype_include=float))),
            model(),
        ),
        False,
        1,
        {"unknown"},
    ),
    (
        "the rest scaled privately",
        make_pipeline(
            make_column_transformer(
                ("drop", ["sex"]), remainder=skdp.PrivateStandardScaler(0.5, bounds=(0, 100))
            ),
            model(),
        ),
        True,
        1.5,
        {"private"},
    ),
    (
        "the same column twice",
        make_union(
            skdp.PrivateStandardScaler(0.5, bounds=(0, 100)),
            skdp.PrivateStandardScaler(0.25, bounds=(0, 100)),
        ),
        True,
        0.75,
        {"private"},
    ),
    (
        "vote of regressors",
        VotingRegressor([("a", regressor()), ("b", regressor()), ("c", "drop")]),
        False,
        1.4,
        {"private", "leaks"},
    ),
    # bad
    (
        "a logarithm warns of what is not positive",
        make_pipeline(FunctionTransformer(np.log1p), model()),
        False,
        1,
        {"leaks"},
    ),
    ("a norm raises", make_pipeline(Normalizer(), model()), False, 1, {"leaks"}),
    ("hashing raises", make_pipeline(HashingVectorizer(), model()), False, 1, {"leaks"}),
    ("products raise", make_pipeline(PolynomialFeatures(), model()), False, 1, {"leaks"}),
    (
        "an empty column is dropped",
        make_pipeline(clip(0, 1), SimpleImputer(strategy="constant"), model()),
        False,
        1,
        {"leaks"},
    ),
    (
        "a target transformed one by one raises",
        TransformedTargetRegressor(regressor(), func=np.cbrt, inverse_func=np.positive),
        False,
        0.7,
        {"unknown", "leaks"},
    ),
    (
        "a threshold raises on a third label",
        FixedThresholdClassifier(model(), threshold=0.3),
        False,
        1,
        {"leaks"},
    ),
    (
        "a sampler raises on one label",
        make_sampling_pipeline(FunctionSampler(), model()),
        False,
        1,
        {"leaks"},
    ),
    (
        "no private step",
        make_pipeline(FunctionTransformer(), FunctionTransformer()),
        False,
        0,
        {"public"},
    ),
    ("plain classifier", LogisticRegression(), False, 0, {"leaks"}),
    ("scaler in front", make_pipeline(StandardScaler(), model()), False, 1, {"leaks"}),
    ("components in front", make_pipeline(PCA(2), model()), False, 1, {"leaks"}),
    ("selection in front", make_pipeline(SelectKBest(k=1), model()), False, 1, {"leaks"}),
    (
        "one column scaled",
        make_pipeline(
            ColumnTransformer([("scale", MinMaxScaler(), ["age"])], remainder="passthrough"),
            model(),
        ),
        False,
        1,
        {"leaks"},
    ),
    ("clusters", KMeans(3), False, 0, {"leaks"}),
    (
        "oversampled true rows",
        make_sampling_pipeline(RandomOverSampler(), LogisticRegression()),
        False,
        0,
        {"leaks"},
    ),
    ("true rows first", make_sampling_pipeline(SMOTE(), model()), False, 1, {"leaks"}),
    (
        "scaler before the sampler",
        make_sampling_pipeline(StandardScaler(), release(), LogisticRegression()),
        False,
        1,
        {"leaks"},
    ),
    (
        "search on exact scores",
        GridSearchCV(model(), {"estimator__C": [1, 2]}, cv=3),
        False,
        7,
        {"leaks"},
    ),
    (
        "dear search",
        GridSearchCV(model(), {"synthesizer__epsilon": [1, 2]}, cv=5),
        False,
        17,
        {"leaks"},
    ),
    (
        "random search",
        RandomizedSearchCV(model(), {"estimator__C": [1, 2, 3]}, n_iter=2, cv=2, refit=False),
        False,
        4,
        {"leaks"},
    ),
    ("bagging", BaggingClassifier(model(), n_estimators=3), False, 3, {"leaks"}),
    ("stacking", StackingClassifier([("a", model())]), False, 6, {"leaks"}),
    (
        "stacking on a release, topped privately",
        StackingClassifier([("a", LogisticRegression())], final_estimator=model()),
        False,
        None,
        {"leaks"},
    ),
    (
        "stacking of what was fitted",
        StackingClassifier([("a", fitted)], cv="prefit"),
        False,
        0,
        {"leaks"},
    ),
    ("calibration", CalibratedClassifierCV(model(), cv=3), False, 3, {"leaks"}),
    (
        "calibration of one",
        CalibratedClassifierCV(model(), cv=3, ensemble=False),
        False,
        4,
        {"leaks"},
    ),
    (
        "calibration of a frozen model",
        CalibratedClassifierCV(FrozenEstimator(fitted)),
        False,
        0,
        {"leaks"},
    ),
    ("tuned threshold", TunedThresholdClassifierCV(model(), cv=3), False, 4, {"leaks"}),
    (
        "tuned threshold, one split",
        TunedThresholdClassifierCV(model(), cv=0.2, refit=False),
        False,
        2,
        {"leaks"},
    ),
    # Two labels are declared, so that there is one fit.
    ("one against the rest", OneVsRestClassifier(model()), False, 1, {"leaks"}),
    # Three columns: 3 fits to each of 3 folds, 3 to all rows, and a last one.
    ("feature elimination", RFECV(model(), cv=3), False, 13, {"leaks"}),
    ("several outputs", MultiOutputClassifier(model()), False, None, {"leaks"}),
    ("bagging of samplers", BalancedBaggingClassifier(model()), False, 10, {"unknown"}),
    (
        "halving",
        HalvingGridSearchCV(model(), {"estimator__C": [1, 2]}),
        False,
        11,
        {"leaks"},
    ),
    ("a process needs no fit but learns", GaussianProcessRegressor(), False, 0, {"leaks"}),
    ("rows that multiply", make_pipeline(PatchExtractor(), model()), False, 1, {"leaks"}),
    (
        "a plain search in a private one",
        PrivateGridSearchCV(
            GridSearchCV(model(), {"estimator__C": [1, 2]}, cv=2),
            {"estimator__estimator__fit_intercept": [True, False]},
        ),
        False,
        10.1,
        {"leaks"},
    ),
    (
        "a search in a search",
        GridSearchCV(
            GridSearchCV(model(), {"estimator__C": [1, 2]}, cv=2),
            {"estimator__estimator__fit_intercept": [True, False]},
            cv=3,
        ),
        False,
        35,
        {"leaks"},
    ),
    (
        "a private scaler, a plain classifier",
        make_pipeline(skdp.PrivateStandardScaler(0.5, bounds=(0, 100)), LogisticRegression()),
        False,
        0.5,
        {"private", "leaks"},
    ),
    (
        "components of a private scaler",
        make_pipeline(skdp.PrivateStandardScaler(0.5, bounds=(0, 100)), PCA(1), model()),
        False,
        1.5,
        {"leaks"},
    ),
    (
        "a target scaled by its mean",
        TransformedTargetRegressor(regressor(), transformer=StandardScaler()),
        False,
        0.7,
        {"leaks"},
    ),
    ("a target scaled, nothing private", TransformedTargetRegressor(), False, 0, {"leaks"}),
    # subtle
    (
        "noisy scores of folds by position",
        GridSearchCV(model(), {"estimator__C": [1, 2]}, cv=3, scoring=PRIVATE_SCORE),
        False,
        7 + 0.6,
        {"leaks"},
    ),
    (
        "one score of two is exact",
        GridSearchCV(
            model(),
            {"estimator__C": [1]},
            cv=PrivateKFold(2),
            scoring={"a": PRIVATE_SCORE, "b": "accuracy"},
            refit="a",
        ),
        False,
        3,
        {"leaks"},
    ),
    (
        "a candidate of a search leaks",
        GridSearchCV(
            Pipeline([("a", "passthrough"), ("b", model())]),
            {"a": ["passthrough", StandardScaler()]},
            cv=PrivateKFold(2),
            scoring=PRIVATE_SCORE,
        ),
        False,
        5 + 0.4,
        {"leaks"},
    ),
    (
        "a seed among the candidates",
        RandomizedSearchCV(
            model(),
            {"synthesizer__random_state": [None, 3]},
            n_iter=1,
            cv=PrivateKFold(2),
            scoring=PRIVATE_SCORE,
        ),
        False,
        3 + 0.2,
        {"leaks"},
    ),
    (
        "a seed drawn by a search",
        RandomizedSearchCV(
            model(),
            {"synthesizer__random_state": randint(0, 5)},
            n_iter=1,
            cv=PrivateKFold(2),
            scoring=PRIVATE_SCORE,
        ),
        False,
        None,
        {"unknown"},
    ),
    (
        "a longer candidate leaks",
        PrivateGridSearchCV(
            Pipeline([("m", model())]),
            {"m": [model(), make_pipeline(StandardScaler(), model())]},
            epsilon=0.25,
        ),
        False,
        2.25,
        {"leaks"},
    ),
    (
        "a candidate knows true rows",
        PrivateGridSearchCV(
            model(),
            {"estimator": [LogisticRegression(), FrozenEstimator(LinearRegression())]},
            epsilon=0.25,
        ),
        False,
        1.25,
        {"unknown"},
    ),
    (
        "columns chosen by their values",
        make_pipeline(
            make_column_transformer(("passthrough", lambda X: X.columns[X.mean() > 0])), model()
        ),
        False,
        1,
        {"unknown"},
    ),
    (
        "a sampler with a function",
        make_sampling_pipeline(FunctionSampler(func=centre), model()),
        False,
        1,
        {"unknown"},
    ),
    (
        "a threshold around a leak",
        FixedThresholdClassifier(make_pipeline(StandardScaler(), model())),
        False,
        1,
        {"leaks"},
    ),
    (
        "the rest scaled",
        make_pipeline(
            make_column_transformer(("drop", ["sex"]), remainder=StandardScaler()), model()
        ),
        False,
        1,
        {"leaks"},
    ),
    (
        "splines raise outside",
        make_pipeline(SplineTransformer(knots=[[0], [1]], extrapolation="error"), model()),
        False,
        1,
        {"leaks"},
    ),
    (
        "frozen, of an inferred domain",
        FrozenEstimator(model(DummyClassifier(), domain=INFERRED).fit(X, Y)),
        False,
        0,
        {"unknown"},
    ),
    ("frozen, never fitted", FrozenEstimator(model()), False, 0, {"unknown"}),
    (
        "frozen, behind a leak",
        FrozenEstimator(make_pipeline(MysteryTransformer(), fitted)),
        False,
        0,
        {"unknown"},
    ),
    (
        "a frozen scaler behind",
        model(make_pipeline(FrozenEstimator(StandardScaler()), LogisticRegression())),
        False,
        1,
        {"unknown"},
    ),
    (
        "cached, though frozen",
        Pipeline([("a", FunctionTransformer()), ("b", FrozenEstimator(fitted))], memory="/tmp/x"),
        False,
        0,
        {"leaks"},
    ),
    ("seeded", model(random_state=0), False, 1, {"leaks"}),
    ("seeded numpy integer", release(random_state=np.int64(4)), False, 1, {"leaks"}),
    ("inferred domain", release(domain=INFERRED), False, 1, {"leaks"}),
    (
        "a mean in a function",
        make_pipeline(FunctionTransformer(centre), model()),
        False,
        1,
        {"unknown"},
    ),
    ("encoder learns categories", make_pipeline(OneHotEncoder(), model()), False, 1, {"leaks"}),
    (
        "encoder raises on unknown",
        make_pipeline(OrdinalEncoder(categories=[["a", "b"]]), model()),
        False,
        1,
        {"leaks"},
    ),
    ("bins from quantiles", make_pipeline(KBinsDiscretizer(), model()), False, 1, {"leaks"}),
    ("mean for missing", make_pipeline(SimpleImputer(), model()), False, 1, {"leaks"}),
    (
        "release inside a plain pipeline",
        make_pipeline(release(), LogisticRegression()),
        False,
        1,
        {"unknown"},
    ),
    (
        "labels of a vote",
        VotingClassifier([("a", model()), ("b", model(epsilon=0.5))]),
        False,
        1.5,
        {"leaks", "private"},
    ),
    ("a dummy knows the labels", DummyClassifier(), False, 0, {"leaks"}),
    ("union", FeatureUnion([("a", "passthrough"), ("b", PCA(1))]), False, 0, {"leaks"}),
    (
        "cache on disk",
        Pipeline([("a", FunctionTransformer()), ("b", model())], memory="/tmp/x"),
        False,
        1,
        {"leaks"},
    ),
    ("unknown classifier", Mystery(), False, 0, {"unknown"}),
    ("a changed release", Changed(1, domain=DOMAIN, target="income"), False, None, {"unknown"}),
    (
        "a model on a changed release",
        skdp.PrivateClassifier(LogisticRegression(), Changed(1, domain=DOMAIN, target="income")),
        False,
        None,
        {"unknown"},
    ),
    ("a changed pipeline", ChangedPipeline([("a", model())]), False, None, {"unknown"}),
    ("unknown in front", make_pipeline(MysteryTransformer(), model()), False, 1, {"unknown"}),
    (
        "frozen scaler",
        make_pipeline(FrozenEstimator(StandardScaler()), model()),
        False,
        1,
        {"unknown"},
    ),
    (
        "foreign synthesizer",
        skdp.PrivateClassifier(LogisticRegression(), Mystery()),
        False,
        0,
        {"unknown"},
    ),
    (
        "seeded choice",
        PrivateGridSearchCV(model(), {"estimator__C": [1]}, epsilon=0.25, random_state=3),
        False,
        1.25,
        {"leaks"},
    ),
]


@pytest.mark.parametrize(
    ("name", "estimator", "private", "epsilon", "verdicts"),
    CORPUS,
    ids=[case[0] for case in CORPUS],
)
def test_corpus(name, estimator, private, epsilon, verdicts):
    report = privacy_report(estimator)
    assert report.private == private, report
    assert report.epsilon == (None if epsilon is None else Fraction(str(epsilon)))
    found = {step.verdict for step in report.steps}
    assert set(verdicts) <= found
    assert private == (not report.reasons)
    for step in report.steps:
        assert step.why.endswith(".") or step.verdict == "unknown"
        assert step.sound or step.remedy, step
    if private:
        assert_private(estimator)
    else:
        with pytest.raises(AssertionError, match="is not private") as caught:
            assert_private(estimator)
        assert all(reason in str(caught.value) for reason in report.reasons)


def test_the_corpus_is_large_and_mixed():
    verdicts = [private for _, _, private, _, _ in CORPUS]
    assert len(CORPUS) >= 100 and sum(verdicts) >= 40 and verdicts.count(False) >= 50


def test_report_reads():
    report = privacy_report(make_pipeline(StandardScaler(), model(epsilon=0.5)), cv=4)
    text = repr(report)
    assert "NOT private" in text and "remedy: PrivateStandardScaler" in text
    assert "cross-validation spends epsilon = 2" in text
    frame = report.to_frame()
    assert list(frame["step"]) == [
        "standardscaler",
        "privateclassifier__synthesizer",
        "privateclassifier__estimator",
    ]
    assert frame["epsilon"].tolist() == [0, 0.5, 0]
    page = report._repr_html_()
    assert "<table" in page and "leaks" in page and "PrivateStandardScaler" in page
    # Nothing of a name becomes markup.
    odd = Pipeline([("<script>", FunctionTransformer()), ("m", model())])
    assert "<script>" not in privacy_report(odd)._repr_html_()


def test_price_of_folds():
    assert privacy_report(model(epsilon=0.5), cv=5).cv_epsilon == Fraction(5, 2)
    assert privacy_report(model(epsilon=0.5), cv=KFold(3)).cv_epsilon == Fraction(3, 2)
    assert privacy_report(model(epsilon=0.5), cv=PrivateKFold(5)).cv_epsilon == 2
    unknown = privacy_report(model(epsilon=0.5), cv=LeaveOneOut())
    assert unknown.cv_epsilon is None
    assert any("depends on the rows" in note for note in unknown.notes)
    assert privacy_report(model(epsilon=0.5)).cv_epsilon is None


def test_searches_of_unknown_price_say_so():
    class Uniform:
        def rvs(self, random_state=None):
            return 1.0

    search = RandomizedSearchCV(model(), {"synthesizer__epsilon": Uniform()}, n_iter=4)
    assert privacy_report(search).epsilon is None
    fixed = RandomizedSearchCV(model(), {"estimator__C": Uniform()}, n_iter=4, cv=2)
    assert privacy_report(fixed).epsilon == 9
    assert (
        privacy_report(GridSearchCV(model(), {"estimator__C": [1]}, cv=LeaveOneOut())).epsilon
        is None
    )


def test_swallowed_errors_are_mentioned():
    search = GridSearchCV(model(), {"estimator__C": [1]}, cv=2)
    assert any("error_score" in note for note in privacy_report(search).notes)
    search.set_params(error_score="raise")
    assert not any("error_score" in note for note in privacy_report(search).notes)


def test_bad_input():
    with pytest.raises(TypeError, match="got the class LogisticRegression"):
        privacy_report(LogisticRegression)
    with pytest.raises(TypeError, match="has no fit"):
        privacy_report("model")
    refused = privacy_report(release(epsilon=-1))
    assert not refused.private and refused.epsilon is None
    assert "will refuse" in refused.reasons[0]


def test_the_report_reads_no_row_and_spends_nothing():
    ledger = skdp.PrivacyLedger(1)
    privacy_report(GridSearchCV(model(ledger=ledger), {"estimator__C": [1, 2]}), cv=3)
    assert ledger.spent == 0


# --- the forecast is what the ledger sees

EPSILONS = st.sampled_from([0.1, 0.25, 0.3, 1, 2])
NUMBERS = pd.DataFrame({"a": np.linspace(0, 1, 40), "b": np.linspace(1, 0, 40)})
LABELS = pd.Series(np.arange(40) % 2)
SQUARE = skdp.Domain({"a": skdp.Numeric(0, 1, bins=4), "b": skdp.Numeric(0, 1, bins=4)})
LABELLED = SQUARE.with_attribute("c", skdp.Categorical([0, 1]))


def pipelines(ledger):
    """Random compositions of steps that charge one ledger."""

    def release(epsilon):
        return skdp.HDPViewSynthesizer(epsilon, domain=SQUARE, ledger=ledger)

    def private(epsilon):
        return skdp.PrivateClassifier(DecisionTreeClassifier(), release(epsilon), classes=[0, 1])

    def search(pair):
        epsilon, depths = pair
        return PrivateGridSearchCV(private(epsilon), {"estimator__max_depth": depths}, epsilon=0.5)

    def dear(pair):
        epsilon, others = pair
        return PrivateGridSearchCV(private(epsilon), {"synthesizer__epsilon": others}, epsilon=0.5)

    leaf = st.one_of(
        EPSILONS.map(private),
        st.tuples(EPSILONS, st.lists(st.integers(1, 4), min_size=1, max_size=3)).map(search),
        st.tuples(EPSILONS, st.lists(EPSILONS, min_size=1, max_size=3)).map(dear),
    )
    grids = st.tuples(leaf, st.booleans(), st.integers(2, 3)).map(
        lambda t: GridSearchCV(
            Pipeline([("m", t[0])]), {"m": [t[0], private(1)]}, cv=t[2], refit=False
        )
    )
    return st.recursive(
        st.one_of(leaf, grids),
        lambda inner: st.one_of(
            inner.map(lambda e: make_pipeline(FunctionTransformer(), e)),
            inner.map(lambda e: make_pipeline("passthrough", None, e)),
            st.lists(leaf, min_size=1, max_size=3).map(
                lambda es: VotingClassifier([(f"v{i}", e) for i, e in enumerate(es)])
            ),
        ),
        max_leaves=3,
    )


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_ledger_sees_what_was_forecast(data):
    ledger = skdp.PrivacyLedger()
    estimator = data.draw(pipelines(ledger))
    report = privacy_report(estimator, cv=2)
    estimator.fit(NUMBERS, LABELS)
    assert report.epsilon == ledger.spent


def test_folds_cost_what_was_forecast():
    ledger = skdp.PrivacyLedger()
    estimator = make_pipeline(FunctionTransformer(), model(DummyClassifier(), 0.3, ledger=ledger))
    cross_val_score(estimator, X, Y, cv=3)
    assert ledger.spent == privacy_report(estimator, cv=3).cv_epsilon
    cross_val_predict(estimator, X, Y, cv=2)
    assert ledger.spent == 5 * Fraction("0.3")
    before = ledger.spent
    estimator = model(DummyClassifier(), 0.3, ledger=ledger)
    private_cross_val_score(estimator, X, Y, epsilon=0.5, cv=4)
    price = privacy_report(estimator, cv=PrivateKFold(4)).cv_epsilon
    assert ledger.spent - before == price + Fraction(1, 2)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda m: BaggingClassifier(m, n_estimators=3),
        lambda m: StackingClassifier([("a", m), ("b", "drop")], cv=3),
        lambda m: CalibratedClassifierCV(m, cv=3),
        lambda m: CalibratedClassifierCV(m, cv=2, ensemble=False),
        lambda m: TunedThresholdClassifierCV(m, cv=3),
        lambda m: TunedThresholdClassifierCV(m, cv=0.3, refit=False),
        lambda m: FixedThresholdClassifier(m),
        lambda m: RandomizedSearchCV(m, {"estimator__max_depth": [1, 2]}, n_iter=1, cv=2),
        lambda m: skdp.PrivateClassifier(
            GridSearchCV(m, {"estimator__max_depth": [1, 2]}, cv=2),
            clone(m.synthesizer).set_params(epsilon=200),
            classes=[0, 1],
        ),
        lambda m: make_sampling_pipeline(
            FrozenEstimator(
                skdp.HDPViewSynthesizer(2, domain=LABELLED, target="c", ledger=m.synthesizer.ledger)
            ),
            DecisionTreeClassifier(),
        ),
    ],
)
def test_meta_estimators_cost_what_was_forecast(wrap):
    ledger = skdp.PrivacyLedger()
    # With hardly any noise, so that no release shows one label only: some of these then refuse.
    inner = skdp.MarginalSynthesizer(100, domain=SQUARE, ledger=ledger)
    m = skdp.PrivateClassifier(DecisionTreeClassifier(), inner, classes=[0, 1])
    estimator = wrap(m)
    report = privacy_report(estimator)
    labels = (NUMBERS["a"] > 0.5).astype(int)
    estimator.fit(NUMBERS, labels)
    assert report.epsilon == ledger.spent > 0


# Few columns first: the score tells all of an elimination to go on to the end.
def fewest(estimator, X, y):
    return -X.shape[1]


def most(estimator, X, y):
    return X.shape[1]


@pytest.mark.parametrize(
    ("wrap", "exact"),
    [
        (lambda m: OneVsRestClassifier(m), True),
        (lambda m: OneVsOneClassifier(m), True),
        (lambda m: OutputCodeClassifier(m, code_size=1.7, random_state=3), True),
        (lambda m: SelectFromModel(m, importance_getter=importances), True),
        (lambda m: RFE(m, importance_getter=importances), True),
        (lambda m: RFE(m, importance_getter=importances, n_features_to_select=1, step=2), True),
        (lambda m: RFE(m, importance_getter=importances, n_features_to_select=0.4, step=0.5), True),
        (lambda m: RFE(m, importance_getter=importances, n_features_to_select=9), True),
        (lambda m: RFECV(m, importance_getter=importances, cv=2, scoring=fewest), True),
        (lambda m: RFECV(m, importance_getter=importances, cv=3, scoring=most), False),
        (
            lambda m: RFECV(
                m,
                importance_getter=importances,
                cv=2,
                scoring=fewest,
                step=2,
                min_features_to_select=2,
            ),
            True,
        ),
        (lambda m: SequentialFeatureSelector(m, n_features_to_select=2, cv=2), True),
        (
            lambda m: SequentialFeatureSelector(
                m, n_features_to_select=0.5, cv=2, direction="backward"
            ),
            True,
        ),
        (lambda m: SequentialFeatureSelector(m, cv=2), True),
        (lambda m: SequentialFeatureSelector(m, cv=2, tol=0.9), True),
        (lambda m: MultiOutputClassifier(m), True),
        (lambda m: ClassifierChain(m), True),
        (lambda m: ClassifierChain(m, cv=2, order=[1, 2, 0]), True),
        (
            lambda m: HalvingGridSearchCV(
                m, {"estimator__max_depth": [1, 2, 3, 4]}, cv=2, factor=2, min_resources=40
            ),
            True,
        ),
        (
            lambda m: HalvingGridSearchCV(
                m,
                {"synthesizer__epsilon": [200, 100, 50, 25]},
                cv=2,
                factor=2,
                refit=False,
                min_resources=40,
            ),
            False,
        ),
        # Rows for one round only.
        (
            lambda m: HalvingGridSearchCV(
                m, {"estimator__max_depth": [1, 2, 3, 4]}, cv=2, factor=2, min_resources=200
            ),
            False,
        ),
        (
            lambda m: HalvingGridSearchCV(
                m,
                {"estimator__max_depth": [1, 2, 3, 4]},
                cv=2,
                factor=2,
                min_resources=200,
                aggressive_elimination=True,
            ),
            True,
        ),
        (
            lambda m: HalvingGridSearchCV(
                m,
                {"n_samples": [50, 60, 70, 80]},
                resource="estimator__max_depth",
                max_resources=8,
                cv=2,
                factor=2,
            ),
            True,
        ),
        (
            lambda m: HalvingRandomSearchCV(
                m,
                {"estimator__max_depth": randint(1, 9)},
                n_candidates=5,
                cv=2,
                factor=2,
                min_resources=40,
            ),
            True,
        ),
        (
            lambda m: HalvingRandomSearchCV(
                m,
                {"estimator__max_depth": [1, 2, 3]},
                n_candidates=2,
                cv=2,
                factor=2,
                min_resources=40,
            ),
            True,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_prices_that_were_unknown(wrap, exact):
    """What the ledger sees is at most what was forecast, and mostly all of it."""
    rng = np.random.default_rng(0)
    features = rng.random((200, 3))
    labels = (3 * features[:, 0]).astype(int)
    ledger = skdp.PrivacyLedger()
    estimator = wrap(None)
    several = isinstance(estimator, MultiOutputClassifier | ClassifierChain)
    elimination = isinstance(estimator, RFE | RFECV | SequentialFeatureSelector)
    numbers = skdp.Numeric(0, 1, bins=2)
    inner = skdp.HDPViewSynthesizer(100, domain=numbers, ledger=ledger)
    m = skdp.PrivateClassifier(
        DecisionTreeClassifier(), inner, classes=[0, 1, 2], n_samples=100, random_state=0
    )
    estimator = wrap(m)
    before = privacy_report(estimator)
    assert not before.private
    if elimination or (several and getattr(estimator, "order", None) is None):
        # One attribute for every column does not say how many there are; nor do labels.
        assert before.epsilon is None
    else:
        assert before.epsilon is not None
    y = np.stack([labels % 2] * 3, axis=1) if several else labels
    estimator.fit(features, y)
    after = privacy_report(estimator)
    assert 0 < ledger.spent <= after.epsilon
    assert before.epsilon in (None, after.epsilon)
    assert (ledger.spent == after.epsilon) == exact


def importances(fitted):
    return np.arange(fitted.n_features_in_) + 1.0


def test_columns_that_are_declared_price_an_elimination():
    assert privacy_report(RFE(model(), n_features_to_select=1)).epsilon == 3
    assert privacy_report(SequentialFeatureSelector(model(), cv=2)).epsilon == 6
    several = skdp.MarginalSynthesizer(1, domain=[skdp.Numeric(0, 1)] * 5)
    inner = skdp.PrivateClassifier(DummyClassifier(), several, classes=[0, 1])
    assert privacy_report(RFE(make_pipeline(inner), n_features_to_select=1)).epsilon == 5


def test_labels_that_are_not_declared_price_nothing():
    def wrapped(labels):
        inner = skdp.MarginalSynthesizer(1, domain=SQUARE)
        return OneVsRestClassifier(skdp.PrivateClassifier(DummyClassifier(), inner, classes=labels))

    # 0 and 1 are what each of the inner models is asked; how many of them there are is in y.
    for labels in ([0, 1], [False, True], None, skdp.Numeric(0, 1)):
        assert privacy_report(wrapped(labels)).epsilon is None
    assert privacy_report(wrapped(["a", "b"])).epsilon == 1
    assert "no label that is not declared" in privacy_report(wrapped(["a", "b"])).reasons[0]
    assert privacy_report(wrapped(skdp.Categorical("abcd"[i] for i in range(4)))).epsilon == 4
    assert privacy_report(wrapped(skdp.Numeric(1, 5, integer=True))).epsilon == 5
    assert privacy_report(OneVsOneClassifier(wrapped(["a", "b", "c"]).estimator)).epsilon == 3
    assert privacy_report(MultiOutputClassifier(model())).epsilon is None
    folds = KFold(2).split(NUMBERS)
    assert privacy_report(ClassifierChain(model(), order=[0, 1], cv=folds)).epsilon is None
    assert privacy_report(RFECV(model(), cv=LeaveOneOut())).epsilon is None
    grid = {"estimator__C": [1]}
    assert privacy_report(HalvingGridSearchCV(model(), grid, cv=LeaveOneOut())).epsilon is None
    drawn = HalvingRandomSearchCV(model(), {"estimator__C": randint(1, 9)})
    assert privacy_report(drawn).epsilon is None
    dear = {"synthesizer__epsilon": randint(1, 9)}
    drawn = HalvingRandomSearchCV(model(), dear, n_candidates=3)
    assert privacy_report(drawn).epsilon is None
    resource = HalvingGridSearchCV(model(), grid, resource="synthesizer__epsilon", max_resources=8)
    assert privacy_report(resource).epsilon is None


def test_reports_of_models_that_travelled():
    with pytest.warns(skdp.exceptions.InsecureSeedWarning):
        seeded = model(DummyClassifier(), random_state=4).fit(X, Y)
    for one in (seeded, fitted):
        twin = pickle.loads(pickle.dumps(one))
        assert privacy_report(twin).private == privacy_report(one).private
        frozen = FrozenEstimator(twin)
        assert privacy_report(frozen).private == privacy_report(one).private


def test_a_frozen_model_protects_whom_its_release_protects():
    owned = X.assign(who=np.arange(len(X)) // 2)
    made = skdp.HDPViewSynthesizer(
        2, domain=DOMAIN, target="income", max_contributions=2, unit="who"
    ).fit(owned, Y)
    trained = skdp.PrivateClassifier(DummyClassifier(), FrozenEstimator(made)).fit(X, Y)
    for one in (trained, FrozenEstimator(trained)):
        assert any("one person (at most 2" in note for note in privacy_report(one).notes)
