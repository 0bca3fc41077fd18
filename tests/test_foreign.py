"""Hostile pipelines, honest pipelines, and what is known of the objects of others."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import logging
import math
import pickle
import random
import sys
import types
from functools import partial
from io import FileIO
from numbers import Integral

import joblib
import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN
from pipelines import (
    INFERRED,
    PRIVATE_SCORE,
    Changed,
    X,
    Y,
    applied,
    clip,
    encode,
    model,
    numbers,
    release,
    texts,
)
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.metaestimators import available_if

import skdp
from skdp._pipelines import Range, Refusal, carries, library, replaced, row_by_row
from skdp.audit import replay
from skdp.audit._cases_pipelines import SILENT_STEPS, outcomes, tables
from skdp.inspection import assert_private, privacy_report
from skdp.model_selection import (
    PrivateGridSearchCV,
    PrivateKFold,
    make_private_scorer,
    private_cross_val_score,
)
from skdp.rows import as_frame

imblearn = pytest.importorskip("imblearn")
from imblearn.pipeline import make_pipeline as make_sampling_pipeline  # noqa: E402

NUMBERS = X[["age"]].to_numpy()
RAW = LogisticRegression().fit(NUMBERS, Y)
HIDDEN = FrozenEstimator(RAW)
AGES = skdp.HDPViewSynthesizer(100, domain=skdp.Numeric(0, 120))


def patched(estimator, name="fit"):
    setattr(estimator, name, lambda *args, **kwargs: estimator)
    return estimator


class Subclass(OneHotEncoder):
    def fit(self, X, y=None):
        self.rows_ = X
        return super().fit(X, y)


class Borrowed(StandardScaler):
    """It says that it is scikit-learn's."""


Borrowed.__module__, Borrowed.__qualname__ = "sklearn.preprocessing", "Binarizer"


class Named(SimpleImputer):
    """It has the name of a transformer that is known."""


Named.__name__ = Named.__qualname__ = "OneHotEncoder"


class LyingParams(ClassifierMixin, BaseEstimator):
    def get_params(self, deep=True):
        raise RuntimeError("no")

    def fit(self, X, y):
        return self


class Carrier(ClassifierMixin, BaseEstimator):
    rows = NUMBERS

    def fit(self, X, y):
        return self


class Reaches(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.mean_ = NUMBERS.mean()
        return self


class Honest(ClassifierMixin, BaseEstimator):
    """A classifier of a user's own, which knows its arguments only."""

    def __init__(self, depth=2):
        self.depth = depth

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    @property
    def size(self):
        return math.sqrt(self.depth)

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@dataclasses.dataclass
class Usual(TransformerMixin, BaseEstimator):
    """All that classes of users have."""

    depth: int = 2
    _parameter_constraints = {"depth": [Integral, None]}
    __slots__ = ()

    @staticmethod
    def twice(X):
        return 2 * X

    @classmethod
    def default(cls):
        return cls()

    @functools.cached_property
    def root(self):
        return math.sqrt(self.depth)

    @available_if(lambda self: self.depth > 1)
    def transform(self, X):
        LOGGER.debug("transforms")
        return honest_module.shifted(self.twice(X))

    def fit(self, X, y=None):
        return self


class HonestTransformer(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.mean_ = np.mean(X, axis=0)
        return self

    def transform(self, X):
        return shifted(X) - self.mean_


class Repeats(type(skdp._random.noise_source(None))):
    """A source of a user's, which says that it is not seeded."""

    def _take(self, count):
        return np.zeros(count, dtype=np.uint64)


class Tricky(list):
    """A list of candidates that is another one at the second reading."""


class Hides(dict):
    def items(self):
        return []


class KeepsItself(ClassifierMixin, BaseEstimator):
    def __sklearn_clone__(self):
        return self

    def fit(self, X, y):
        return self


class Steps(list):
    """A list of steps that is another one for those who look."""

    def __iter__(self):
        return iter(())


class Word(str):
    """A text that may equal anything."""


class Low(float):
    """A number that NumPy asks what to do."""

    def __array_ufunc__(self, *args, **kwargs):
        raise RuntimeError(args)


class Kind(skdp.Categorical):
    """Categories that see every value."""


class Label(str):
    """A label that is compared with every true label."""


def with_rows(estimator):
    estimator.rows = X
    return estimator


def shifted(X):
    return X + 1


def of_the_raw(X):
    return X - NUMBERS.mean()


def reads_a_file(X):
    return pd.read_csv("people.csv")


def closes_over(table):
    def inner(X):
        return X - table.mean()

    return inner


class Callable:
    def __call__(self, X):
        return X


FRAME = as_frame(NUMBERS)
FULL = logging.getLogger("full")
FULL.rows = NUMBERS
CACHED = joblib.Memory(None).cache(of_the_raw)


def as_was_inferred(X):
    return X / INFERRED["age"].upper


def as_long_as_the_raw(X):
    return X * FRAME.n_rows


def through_a_class(X):
    return X * len(FileIO("people.csv").readall())


def through_a_library(X):
    return X * logging.sys.modules["__main__"].NUMBERS.mean()


def through_itself(X):
    return X * through_itself.__globals__["NUMBERS"].mean()


def through_a_text(X):
    return X * getattr(np, "load")("people.npy").mean()  # noqa: B009


def through_a_store(X):
    return X * len(pd.HDFStore("people.h5").keys())


def through_a_logger(X):
    return X * FULL.rows.mean()


def usual(X):
    LOGGER.debug("%s rows", getattr(X, "shape", "some"))
    return X


def regressor():
    release = skdp.MarginalSynthesizer(1, domain=skdp.Numeric(0, 120))
    return skdp.PrivateRegressor(LinearRegression(), release, target_range=(0, 120))


def swapped():
    """A composite that was fitted to raw rows, with parameters that were set afterwards."""
    fitted = VotingRegressor([("a", LinearRegression())]).fit(NUMBERS, NUMBERS[:, 0])
    return fitted.set_params(a=regressor())


def retrained():
    """A model of a release, whose parameters no longer show what it was trained with."""
    fitted = skdp.PrivateClassifier(CalibratedClassifierCV(HIDDEN), AGES, classes=["high", "low"])
    return fitted.fit(NUMBERS, Y).set_params(estimator=SVC())


def front(step):
    return make_pipeline(step, model())


def plain(*steps):
    return make_pipeline(numbers(), *steps, model())


def of_text(step):
    return make_pipeline(texts(), step, model())


def bounded(*steps, low=0, high=1):
    return plain(applied(np.nan_to_num), clip(low, high), *steps)


def bounded_only(*steps):
    return plain(clip(0, 1), *steps)


def ordinal():
    return OrdinalEncoder(
        categories=[["a", "b"]], handle_unknown="use_encoded_value", unknown_value=-1
    )


refitted = model(DummyClassifier(), domain=INFERRED).fit(X, Y)
refitted.set_params(synthesizer__domain=DOMAIN)

honest_module, hostile_module = types.ModuleType("honest"), types.ModuleType("hostile")
honest_module.shifted, honest_module.SCALE = shifted, [1, 2]
hostile_module.shifted, hostile_module.TABLE = shifted, X
LOGGER = logging.getLogger("honest")

# None of these may pass.
HOSTILE = {
    # by way of objects that are taken for harmless
    **{
        function.__name__: model(make_pipeline(applied(function), SVC()))
        for function in (
            as_was_inferred,
            as_long_as_the_raw,
            through_a_class,
            through_a_library,
            through_itself,
            through_a_text,
            through_a_store,
            through_a_logger,
        )
    },
    "a cached function": model(make_pipeline(applied(CACHED), SVC())),
    "rows in a slice": model(make_pipeline(applied(np.take, kw_args={"axis": slice(X)}), SVC())),
    "rows in a default": model(SVC(class_weight=collections.defaultdict(lambda: NUMBERS.mean()))),
    "an inferred domain behind a release": model(
        skdp.PrivPfCClassifier(1, domain=INFERRED, target="income")
    ),
    "frozen, another model set since": FrozenEstimator(retrained()),
    "frozen, another model set since, in a pipeline": FrozenEstimator(make_pipeline(retrained())),
    "frozen, parameters set since": FrozenEstimator(swapped()),
    "frozen, parameters set since, in a pipeline": FrozenEstimator(make_pipeline(swapped())),
    # lists and texts that hold a row for each value
    "a mask of rows": model(
        make_pipeline(applied(shifted, kw_args={"mask": (NUMBERS[:, 0] > 40).tolist()}), SVC())
    ),
    "an array of a column": model(
        make_pipeline(applied(shifted, kw_args={"mask": NUMBERS[:, 0]}), SVC())
    ),
    "lists of rows": model(
        SVC(class_weight={k: X[30 * k : 30 * k + 30].to_numpy().tolist() for k in range(4)})
    ),
    "rows by their number": model(SVC(class_weight=dict(enumerate(NUMBERS[:, 0].tolist())))),
    "a set of values": model(SVC(class_weight=set(range(50)))),
    "a long text": model(SVC(class_weight=X.to_csv() * 5)),
    "a large integer": model(SVC(class_weight=int.from_bytes(X.to_csv().encode() * 5))),
    "folds of true rows": model(GridSearchCV(SVC(), {"C": [1]}, cv=list(KFold(2).split(NUMBERS)))),
    "candidates that are a column": model(GridSearchCV(SVC(), {"C": np.tile(NUMBERS[:, 0], 2)})),
    "more categories than are declared": model(
        make_pipeline(OneHotEncoder(categories=[[*map(str, range(100))]]), SVC())
    ),
    "a list in a closure": model(make_pipeline(applied(closes_over(Y.tolist())), SVC())),
    "a list after a sampler": make_sampling_pipeline(
        release(), applied(shifted, kw_args={"mask": Y.tolist()}), SVC()
    ),
    # raise where a number is missing
    "another mark of the missing, imputed": bounded_only(
        SimpleImputer(
            missing_values=-1, strategy="constant", fill_value=0, keep_empty_features=True
        )
    ),
    "another mark of the missing, indicated": bounded_only(
        MissingIndicator(features="all", missing_values=-1)
    ),
    "missing as before": bounded_only(
        SimpleImputer(strategy="constant", fill_value=np.nan, keep_empty_features=True),
        Binarizer(),
    ),
    # models of raw rows, carried behind the release
    "frozen, one against the rest": model(OneVsRestClassifier(HIDDEN)),
    "frozen, calibrated": model(CalibratedClassifierCV(HIDDEN)),
    "frozen, bagged": model(BaggingClassifier(HIDDEN)),
    "frozen, stacked": model(StackingClassifier([("a", HIDDEN)], cv="prefit")),
    "frozen, on top of a stack": model(
        StackingClassifier([("a", LogisticRegression())], final_estimator=HIDDEN)
    ),
    "frozen, voting": model(VotingClassifier([("a", HIDDEN)])),
    "frozen, selects": model(make_pipeline(SelectFromModel(HIDDEN, prefit=True), SVC())),
    "frozen, in a pipeline in a bag": model(BaggingClassifier(make_pipeline(HIDDEN))),
    "frozen, among candidates": model(GridSearchCV(Pipeline([("a", SVC())]), {"a": [HIDDEN]})),
    "frozen, among candidates of a random search": model(
        RandomizedSearchCV(Pipeline([("a", SVC())]), {"a": [HIDDEN, SVC()]})
    ),
    "frozen, among many candidates": model(
        GridSearchCV(Pipeline([("a", SVC())]), {"a": [HIDDEN], "a__C": range(1, 20_000)})
    ),
    "frozen, among many candidates for true rows": GridSearchCV(
        model(Pipeline([("a", SVC())])),
        {"estimator__a": [HIDDEN], "estimator__a__C": range(1, 20_000)},
        cv=PrivateKFold(2),
        scoring=PRIVATE_SCORE,
    ),
    "drawn by an unknown object": model(
        RandomizedSearchCV(SVC(), {"C": type("Draws", (), {"rvs": lambda *_, **__: HIDDEN})()})
    ),
    "frozen, halved": model(HalvingGridSearchCV(Pipeline([("a", SVC())]), {"a": [HIDDEN]})),
    "frozen, in a union": model(make_pipeline(make_union(HIDDEN, "passthrough"), SVC())),
    "frozen, among columns": model(
        make_pipeline(make_column_transformer((HIDDEN, ["age"])), SVC())
    ),
    "frozen, in a threshold": model(
        make_pipeline(StandardScaler(), RFE(BaggingClassifier(HIDDEN)))
    ),
    "goes on from what it learned": make_sampling_pipeline(
        release(), SGDClassifier(warm_start=True).fit(NUMBERS, Y)
    ),
    "prefit, not frozen": make_sampling_pipeline(
        release(), SelectFromModel(RAW, prefit=True), LogisticRegression()
    ),
    "prefit stack, not frozen": make_sampling_pipeline(
        release(), StackingClassifier([("a", RAW)], cv="prefit")
    ),
    "predictions by a method": model(make_pipeline(applied(RAW.predict_proba), SVC())),
    "predictions by a function": model(make_pipeline(applied(lambda Z: RAW.predict(Z)), SVC())),
    "fitted among options": model(make_pipeline(applied(shifted, kw_args={"m": RAW}), SVC())),
    "fitted, in a class of one's own": make_sampling_pipeline(release(), Honest(depth=RAW)),
    "a dict that hides": model(SGDClassifier(class_weight=Hides(a=X))),
    "a list that hides": model(SGDClassifier(class_weight=Tricky([1]))),
    "keeps itself": model(KeepsItself()),
    "an attribute of the instance": make_sampling_pipeline(release(), with_rows(Honest())),
    "modules": model(make_pipeline(applied(lambda Z: sys.modules["x"].TABLE), SVC())),
    "a module of rows": model(make_pipeline(applied(lambda Z: hostile_module.TABLE), SVC())),
    "an import": model(make_pipeline(applied(lambda Z: __import__("x").TABLE), SVC())),
    "a vectorised function behind": model(make_pipeline(applied(np.vectorize(of_the_raw)), SVC())),
    "remembered results": model(make_pipeline(applied(functools.lru_cache(of_the_raw)), SVC())),
    "a helper of the raw": model(make_pipeline(applied(lambda Z: of_the_raw(Z)), SVC())),
    "a helper inside": model(make_pipeline(applied(lambda Z: [NUMBERS for _ in Z]), SVC())),
    "a generator in a search in a search": GridSearchCV(
        GridSearchCV(model(), {"estimator__C": [1]}, cv=(i for i in ())),
        {"estimator__estimator__C": [1]},
    ),
    "rows as a starting point": model(KMeans(2, init=NUMBERS[:2])),
    "a metric of the raw": model(KNeighborsClassifier(metric=lambda a, b: NUMBERS.sum())),
    "a kernel that closes over rows": model(SVC(kernel=closes_over(NUMBERS))),
    "a tokenizer of a method": model(TfidfVectorizer(tokenizer=Callable().__call__)),
    "a score on raw rows": model(
        GridSearchCV(SVC(), {"C": [1]}, scoring=lambda e, A, b: e.score(NUMBERS, Y))
    ),
    "a scorer of a closure": model(
        GridSearchCV(SVC(), {"C": [1]}, scoring=make_scorer(closes_over(Y)))
    ),
    "a choice by raw rows": model(GridSearchCV(SVC(), {"C": [1]}, refit=partial(max, NUMBERS))),
    "columns by a closure behind": model(
        make_pipeline(make_column_transformer(("passthrough", closes_over(NUMBERS))), SVC())
    ),
    "a function of the raw behind": model(make_pipeline(applied(of_the_raw), SVC())),
    "a function of a file behind": model(make_pipeline(applied(reads_a_file), SVC())),
    "a default of the raw behind": model(make_pipeline(applied(lambda Z, W=NUMBERS: W), SVC())),
    "a partial behind": model(make_pipeline(applied(partial(np.add, NUMBERS)), SVC())),
    "options behind": model(make_pipeline(applied(shifted, kw_args={"a": NUMBERS}), SVC())),
    "a generator behind": model(GridSearchCV(SVC(), {"C": [1]}, cv=(x for x in [(0, 1)]))),
    "a class that holds rows": model(Carrier()),
    "a class that reaches rows": model(Reaches()),
    "parameters that cannot be listed": model(LyingParams()),
    "a patched estimator behind": make_sampling_pipeline(release(), patched(SVC())),
    "a frame among parameters": model(SGDClassifier(class_weight=X)),
    # functions in front
    "a mean": plain(applied(lambda Z: Z - Z.mean())),
    "a function of one's own": plain(applied(shifted)),
    "a ufunc of one's own": plain(applied(np.frompyfunc(shifted, 1, 1))),
    "a partial": plain(applied(partial(np.clip, a_min=NUMBERS, a_max=None))),
    "a bound method": plain(applied(Callable().__call__)),
    "a callable object": plain(applied(Callable())),
    "a vectorised function": plain(applied(np.vectorize(shifted))),
    "an array as a bound": plain(clip(NUMBERS, 90)),
    "where": plain(applied(np.sign, kw_args={"where": NUMBERS > 0})),
    "out": plain(applied(np.sign, kw_args={"out": NUMBERS})),
    "out of a clip": plain(applied(np.clip, kw_args={"a_min": 0, "a_max": 1, "out": NUMBERS})),
    "a fill of arrays": plain(applied(np.nan_to_num, kw_args={"nan": NUMBERS})),
    "sums": plain(applied(np.cumsum)),
    "order": plain(applied(np.sort)),
    "two numbers": plain(applied(np.add)),
    "an inverse that is tried": plain(
        applied(np.cbrt, inverse_func=np.positive, check_inverse=True)
    ),
    "an inverse that closes over rows": plain(
        applied(np.cbrt, inverse_func=closes_over(NUMBERS), check_inverse=False)
    ),
    "names by a function": plain(applied(np.cbrt, feature_names_out=lambda self, names: names)),
    "validated": plain(applied(np.cbrt, validate=True)),
    "an overflow": plain(applied(np.exp)),
    "a root of what may be negative": plain(applied(np.sqrt)),
    "a logarithm of zero": bounded(applied(np.log)),
    "digits": plain(applied(np.round, kw_args={"decimals": 2})),
    "a clip of one side": make_pipeline(numbers(), clip(0, None), PolynomialFeatures(), model()),
    "bounds lost": make_pipeline(numbers(), clip(0, 1), applied(np.cbrt), Binarizer(), model()),
    "bounds of one column": make_pipeline(
        numbers(),
        ColumnTransformer(
            [("a", clip(0, 1), ["age"])],
            remainder="passthrough",
        ),
        applied(np.log1p),
        model(),
    ),
    "a clip of bounds that hide": plain(applied(np.clip, kw_args=Hides(a_min=0, a_max=1))),
    "bounds the wrong way round": make_pipeline(numbers(), clip(5, 1), applied(np.log1p), model()),
    "a fill below the bounds": make_pipeline(
        numbers(),
        clip(0, 1),
        applied(np.nan_to_num, kw_args={"nan": -5}),
        applied(np.log1p),
        model(),
    ),
    "weights turn bounds round": make_pipeline(
        numbers(),
        clip(0, 1),
        FeatureUnion([("a", "passthrough")], transformer_weights={"a": -1}),
        applied(np.log1p),
        model(),
    ),
    "predictions are not bounded": make_pipeline(
        numbers(),
        clip(0, 1),
        VotingRegressor(
            [
                (
                    "a",
                    skdp.PrivateRegressor(
                        LinearRegression(), skdp.MarginalSynthesizer(1, domain=DOMAIN, target="age")
                    ),
                )
            ]
        ),
        applied(np.log1p),
        model(),
    ),
    "bounds of targets": TransformedTargetRegressor(
        make_pipeline(applied(np.log1p), model()),
        transformer=clip(0, 1),
    ),
    "missing after a clip": make_pipeline(numbers(), clip(0, 1), PolynomialFeatures(), model()),
    "very high powers": bounded(PolynomialFeatures(400), high=10),
    "bits to a high power": plain(
        applied(np.isnan),
        clip(0, 1),
        applied(np.tanh),
        applied(np.exp),
        clip(0, 10),
        applied(np.exp),
        PolynomialFeatures(3),
    ),
    "a bound that is asked": plain(clip(Low(0), 1)),
    "a bound under a name that is asked": plain(
        applied(np.clip, kw_args={Word("a_min"): 0, "a_max": 1})
    ),
    "a fill that is asked": bounded(
        SimpleImputer(strategy="constant", fill_value=Low(0), keep_empty_features=True)
    ),
    "a mark that is asked": bounded(MissingIndicator(features="all", missing_values=Low(0))),
    "a threshold that is asked": bounded(Binarizer(threshold=Low(0))),
    "a degree that is asked": bounded(PolynomialFeatures(Low(2))),
    "a weight that is asked": plain(
        FeatureUnion([("a", "passthrough")], transformer_weights={"a": Low(0.5)})
    ),
    "categories that are asked": of_text(encode(categories=[[Word("a"), "b"]])),
    "half precision": of_text(encode(dtype=np.float16)),
    "a code that is asked": of_text(
        OrdinalEncoder(
            categories=[["a"]], handle_unknown="use_encoded_value", unknown_value=Low(-1)
        )
    ),
    "texts that are numbers, not as they came": plain(ordinal()),
    "numbers that are texts, not as they came": of_text(applied(np.sign)),
    "numbers that are bits, not as they came": plain(applied(np.isnan), applied(np.negative)),
    # steps that warn or raise on a value
    "warns of an unknown category": of_text(encode(handle_unknown="warn")),
    "raises on an unknown category": of_text(encode(handle_unknown="error")),
    "warns where a category is dropped": of_text(encode(drop="first")),
    "raises on infinity": plain(encode(categories=[[1, 2]])),
    "rare categories": of_text(encode(min_frequency=3)),
    "at most so many categories": of_text(encode(max_categories=3)),
    "learned categories": of_text(encode(categories="auto")),
    "names of categories by a function": front(
        encode(feature_name_combiner=lambda name, value: name)
    ),
    "ordinal, raises": of_text(OrdinalEncoder(categories=[["a"]])),
    "a constant raises on infinity": front(
        SimpleImputer(strategy="constant", keep_empty_features=True)
    ),
    "text raises on missing cells": front(
        SimpleImputer(strategy="constant", fill_value="x", keep_empty_features=True)
    ),
    "an empty column": bounded(SimpleImputer(strategy="constant")),
    "an indicator": bounded(
        SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True)
    ),
    "missing where": bounded(MissingIndicator(features="missing-only")),
    "missing or infinite": plain(MissingIndicator(features="all")),
    "squares": plain(PolynomialFeatures()),
    "bits": plain(Binarizer()),
    "bins": plain(KBinsDiscretizer(strategy="uniform")),
    "knots of the data": bounded(SplineTransformer()),
    "splines of one row": bounded(SplineTransformer(knots=np.array([[0.0], [1.0]]))),
    # composites
    "sparse": of_text(encode(sparse_output=True)),
    "sparse, among columns": front(
        make_column_transformer(
            (make_pipeline(texts(), encode(sparse_output=True)), ["sex"]), sparse_threshold=0
        )
    ),
    "sparse bits": bounded_only(MissingIndicator(features="all", sparse=True)),
    "as they came, joined": front(make_column_transformer(("passthrough", ["age", "sex"]))),
    "as they came, the rest": front(
        make_column_transformer((numbers(), ["age"]), remainder="passthrough")
    ),
    "as they came, united": front(make_union(numbers(), "passthrough")),
    "columns by type": front(
        make_column_transformer((numbers(), make_column_selector(dtype_include=float)))
    ),
    "large weights": plain(FeatureUnion([("a", "passthrough")], transformer_weights={"a": 1e300})),
    "columns by a function": front(make_column_transformer(("passthrough", lambda Z: ["age"]))),
    "columns by a changed selector": front(
        make_column_transformer(
            ("passthrough", type("S", (make_column_selector,), {"__call__": lambda s, Z: []})())
        )
    ),
    "a scaler called remainder": front(
        ColumnTransformer([("remainder", StandardScaler(), ["age"])], remainder="passthrough")
    ),
    "a cache, deeper": front(Pipeline([("a", FunctionTransformer())], memory="/tmp/x")),
    "no such step": Pipeline([("a", "nothing"), ("m", model())]),
    "a scaler ten deep": functools.reduce(
        lambda inner, _: make_pipeline(inner), range(10), front(StandardScaler())
    ),
    "targets as one array": VotingRegressor([("a", regressor())]),
    "steps that hide": Pipeline(Steps([("a", StandardScaler()), ("m", model())])),
    "columns that hide": front(ColumnTransformer(Steps([("a", StandardScaler(), ["age"])]))),
    "parts that hide": front(FeatureUnion(Steps([("a", StandardScaler())]))),
    "votes that hide": VotingRegressor(Steps([("a", StandardScaler())])),
    "a word that may change": Pipeline([("a", Word("passthrough")), ("m", model())]),
    "the rest by a word that may change": front(
        ColumnTransformer([("a", numbers(), ["age"])], remainder=Word("drop"))
    ),
    # classes and instances that are not what they seem
    "categories of a class of one's own": skdp.GridSynthesizer(1, domain=Kind(["a", "b"])),
    "the same in a domain": release(
        domain=skdp.Domain({"a": Kind(["a", "b"]), "income": DOMAIN["income"]})
    ),
    "labels that are asked": skdp.PrivateClassifier(SVC(), AGES, classes=[Label("high"), "low"]),
    "blocks with a model of raw rows": skdp.SampleAggregate(HIDDEN, 1.0, (0, 1)),
    "blocks with a function of raw rows": skdp.SampleAggregate(
        make_pipeline(applied(of_the_raw), LinearRegression()), 1.0, (0, 1)
    ),
    "a subclass": front(Subclass(categories=[["a"]], handle_unknown="ignore")),
    "a borrowed name": front(Borrowed()),
    "a name that is known": front(Named(strategy="mean")),
    "a patched fit": front(patched(encode())),
    "a patched transform": front(patched(FunctionTransformer(), "transform")),
    "a patched release": skdp.PrivateClassifier(LogisticRegression(), patched(release())),
    "a patched charge": patched(release(), "_spend"),
    "a patched model": patched(model()),
    "a patched pipeline": patched(make_pipeline(model())),
    "parameters that lie": patched(front(StandardScaler()), "get_params"),
    "a changed sampler": make_sampling_pipeline(
        Changed(1, domain=DOMAIN, target="income"), LogisticRegression()
    ),
    "a patched sampler": make_sampling_pipeline(
        patched(release(), "fit_resample"), LogisticRegression()
    ),
    "a frozen changed sampler": make_sampling_pipeline(
        FrozenEstimator(Changed(1, domain=DOMAIN, target="income").fit(X, Y)), LogisticRegression()
    ),
    # seeds
    "a source that repeats": release(random_state=Repeats()),
    "a bag sets seeds": BaggingClassifier(model()),
    "boosting sets seeds": AdaBoostClassifier(model()),
    "seeded folds": GridSearchCV(
        model(),
        {"estimator__C": [1, 2]},
        cv=PrivateKFold(3, random_state=0),
        scoring=PRIVATE_SCORE,
    ),
    "scores that say they are private": GridSearchCV(
        model(),
        {"estimator__C": [1, 2]},
        cv=PrivateKFold(3),
        scoring=types.SimpleNamespace(_score_epsilon=0),
    ),
    "folds that say they are secret": GridSearchCV(
        model(),
        {"estimator__C": [1, 2]},
        cv=types.SimpleNamespace(_secret_folds=True, random_state=None, get_n_splits=lambda: 3),
        scoring=PRIVATE_SCORE,
    ),
    "a choice by a closure": GridSearchCV(
        model(),
        {"estimator__C": [1, 2]},
        cv=PrivateKFold(3),
        scoring=PRIVATE_SCORE,
        refit=closes_over(NUMBERS),
    ),
    "candidates that change": PrivateGridSearchCV(
        model(), {"estimator__C": Tricky([1, 2])}, epsilon=0.1
    ),
    "a domain drawn by a search": RandomizedSearchCV(
        model(),
        {"synthesizer__domain": uniform()},
        cv=PrivateKFold(3),
        scoring=PRIVATE_SCORE,
    ),
    # inferred domains, rebuilt
    "inferred": release(domain=INFERRED),
    "inferred, copied": release(domain=skdp.Domain(INFERRED)),
    "inferred, as a dict": release(domain=dict(INFERRED.items())),
    "inferred, one attribute": skdp.MarginalSynthesizer(1, domain=INFERRED["age"]),
    "inferred, a list": skdp.MarginalSynthesizer(1, domain=[INFERRED["age"], DOMAIN["age"]]),
    "inferred, among declared": release(
        domain=skdp.Domain({**dict(DOMAIN.items()), "sex": INFERRED["sex"]})
    ),
    "inferred labels": skdp.PrivateClassifier(
        LogisticRegression(),
        skdp.HDPViewSynthesizer(1, domain=DOMAIN.select(["age", "sex", "work"])),
        classes=INFERRED["income"],
    ),
    "inferred when it was fitted": refitted,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name):
    report = privacy_report(HOSTILE[name])
    assert not report.private, report
    # For a reason of its own, not for the type of its columns.
    own = [reason for reason in report.reasons if "gets its rows from" not in reason]
    assert "as they came" in name or not all("as they came" in reason for reason in own), report
    with pytest.raises(AssertionError, match="is not private"):
        assert_private(HOSTILE[name])


MADE = model(DummyClassifier()).fit(X, Y)
private_scaler = skdp.PrivateStandardScaler(0.5, bounds=(0, 100))
splitter = StratifiedKFold(3, shuffle=True, random_state=0)

MANY = [f"c{i}" for i in range(100)]
# All of these must pass, and what they cost.
HONEST = {
    "the usual function": (model(make_pipeline(applied(usual), SVC())), 1),
    "a cache": (model(make_pipeline(applied(usual), SVC(), memory=joblib.Memory(None))), 1),
    "another mark of the missing, where nothing is": (
        bounded(MissingIndicator(features="all", missing_values=-1)),
        1,
    ),
    "frozen, as it was fitted": (
        FrozenEstimator(make_pipeline(numbers(), regressor()).fit(NUMBERS, NUMBERS[:, 0])),
        0,
    ),
    "blocks": (skdp.SampleAggregate(make_pipeline(StandardScaler(), Honest()), 1.0, (0, 1)), 1),
    "a forest": (model(RandomForestClassifier(random_state=0)), 1),
    "scaled, searched": (
        model(
            GridSearchCV(
                make_pipeline(StandardScaler(), SVC()),
                {"svc__C": np.logspace(-3, 3, 4)},
                cv=splitter,
            )
        ),
        1,
    ),
    "drawn behind": (model(RandomizedSearchCV(SVC(), {"C": uniform(0, 1)}, n_iter=3)), 1),
    "scored behind": (
        model(GridSearchCV(SVC(), {"C": [1]}, scoring=make_scorer(accuracy_score))),
        1,
    ),
    "scored by name behind": (model(GridSearchCV(SVC(), {"C": [1]}, scoring="roc_auc")), 1),
    "estimators as candidates behind": (
        model(GridSearchCV(Pipeline([("a", SVC())]), {"a": [SVC(), DecisionTreeClassifier()]})),
        1,
    ),
    "given folds behind": (
        model(GridSearchCV(SVC(), {"C": [1]}, cv=list(KFold(2).split(range(20))))),
        1,
    ),
    "as many categories as are declared": (
        model(
            make_pipeline(
                OneHotEncoder(categories=[MANY], handle_unknown="ignore"),
                SVC(class_weight=dict.fromkeys(MANY, 1)),
            ),
            domain=skdp.Domain({"a": skdp.Categorical(MANY), "income": DOMAIN["income"]}),
        ),
        1,
    ),
    "alphas behind": (model(RidgeClassifierCV(alphas=np.logspace(-3, 3, 7))), 1),
    "a kernel behind": (model(GaussianProcessClassifier(1.0 * RBF(1.0))), 1),
    "columns behind": (
        model(
            make_pipeline(
                ColumnTransformer(
                    [
                        ("n", make_pipeline(SimpleImputer(), MinMaxScaler()), ["age"]),
                        ("c", OneHotEncoder(handle_unknown="ignore"), ["sex", "work"]),
                        ("t", "drop", make_column_selector(dtype_include="number")),
                    ]
                ),
                LogisticRegression(class_weight={"low": 1, "high": 2}),
            )
        ),
        1,
    ),
    "columns by a function behind": (
        model(make_pipeline(make_column_transformer(("drop", lambda Z: Z.columns[:1])), SVC())),
        1,
    ),
    "a function behind": (model(make_pipeline(applied(shifted), SVC())), 1),
    "a lambda behind": (model(make_pipeline(applied(lambda Z: np.log1p(np.abs(Z))), SVC())), 1),
    "a library's function behind": (model(make_pipeline(applied(np.cumsum), SVC())), 1),
    "a partial behind": (
        model(make_pipeline(applied(partial(np.clip, a_min=0)), SVC())),
        1,
    ),
    "a class of one's own behind": (model(Honest()), 1),
    "usual classes behind": (model(make_pipeline(Usual(3), SVC())), 1),
    "usual classes behind a sampler": (
        make_sampling_pipeline(release(), Usual(3), Honest().fit(NUMBERS, Y)),
        1,
    ),
    "fitted before, cloned": (model(BaggingClassifier(LogisticRegression().fit(NUMBERS, Y))), 1),
    "a private model in a function": (
        model(make_pipeline(applied(lambda Z: MADE.predict(Z)), SVC())),
        1,
    ),
    "a transformer of one's own behind": (model(make_pipeline(HonestTransformer(), SVC())), 1),
    "a stack behind": (
        model(StackingClassifier([("a", SVC()), ("b", Honest(3))], final_estimator=SVC())),
        1,
    ),
    "one against the rest behind": (model(OneVsRestClassifier(SVC())), 1),
    "a private model, frozen, calibrated behind": (
        model(CalibratedClassifierCV(FrozenEstimator(model(DummyClassifier()).fit(X, Y)))),
        1,
    ),
    "goes on, not fitted": (model(SGDClassifier(warm_start=True)), 1),
    "text behind": (model(TfidfVectorizer(ngram_range=(1, 2), tokenizer=str.split)), 1),
    "frames": (
        model().set_params(
            estimator=make_pipeline(StandardScaler().set_output(transform="pandas"), SVC())
        ),
        1,
    ),
    "the identity": (front(FunctionTransformer()), 1),
    "passed through": (front("passthrough"), 1),
    "in frames": (
        plain(applied(np.cbrt, feature_names_out="one-to-one").set_output(transform="pandas")),
        1,
    ),
    "clipped": (plain(clip(0, 120)), 1),
    "clipped, in NumPy's newer words": (plain(applied(np.clip, kw_args={"min": 0, "max": 120})), 1),
    "a logarithm of what is clipped": (bounded(applied(np.log1p)), 1),
    "a logarithm and its inverse": (
        bounded(applied(np.log1p, inverse_func=np.expm1, check_inverse=False)),
        1,
    ),
    "whole numbers": (plain(applied(np.floor)), 1),
    "two digits": (bounded(applied(np.round, kw_args={"decimals": 2})), 1),
    "squares": (bounded(PolynomialFeatures(2)), 1),
    "bits": (bounded(Binarizer(threshold=0.5)), 1),
    "declared categories": (of_text(encode()), 1),
    "declared order": (of_text(ordinal()), 1),
    "columns, each in its way": (
        front(
            ColumnTransformer(
                [
                    ("n", make_pipeline(numbers(), clip(0, 120)), ["age"]),
                    ("c", make_pipeline(texts(), encode()), ["sex"]),
                ],
                remainder=texts(),
            )
        ),
        1,
    ),
    "columns by a pattern": (
        front(make_column_transformer((numbers(), make_column_selector(pattern="^a")))),
        1,
    ),
    "small weights": (
        plain(FeatureUnion([("a", "passthrough")], transformer_weights={"a": 0.5})),
        1,
    ),
    "declared numbers": (bounded_only(encode(categories=[[1, 2.5]])), 1),
    "a constant for what is missing": (
        bounded(SimpleImputer(strategy="constant", keep_empty_features=True)),
        1,
    ),
    "privately scaled": (front(private_scaler), 1.5),
    "sampled": (make_sampling_pipeline(release(), StandardScaler(), SVC()), 1),
    "a private search": (
        PrivateGridSearchCV(model(SVC()), {"estimator__C": np.logspace(-2, 2, 3)}, epsilon=0.5),
        1.5,
    ),
    "a search with private scores": (
        RandomizedSearchCV(
            model(SVC()),
            {"estimator__C": uniform(0, 1)},
            n_iter=2,
            cv=PrivateKFold(2),
            scoring=make_private_scorer("accuracy", epsilon=0.5),
        ),
        5 + 2,
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest(name):
    estimator, epsilon = HONEST[name]
    assert_private(estimator)
    assert float(privacy_report(estimator).epsilon) == epsilon
    # Nor does a look change anything.
    assert_private(copy.deepcopy(estimator))


# --- what passes is silent, and treats each row by itself


@pytest.mark.parametrize("place, name", list(enumerate(SILENT_STEPS)))
def test_what_passes_is_silent_on_odd_values(place, name):
    # On some types of columns; `python -m skdp audit --replay` tries them all.
    step, types = SILENT_STEPS[name], list(tables())[place % 17 :: 17]
    if "ColumnTransformer" in name:
        # scikit-learn 1.6 takes no tables of Arrow, whatever is in them.
        types = [each for each in types if not each.startswith("Arrow")]
    assert privacy_report(make_pipeline(step, model())).private
    with_odd, without = (outcomes(step, types, odd) for odd in (True, False))
    assert len(without) > 20 and not any(isinstance(each, str) for each in without.values())
    # Texts, in which NaN equals itself.
    assert {k: str(v) for k, v in with_odd.items()} == {k: str(v) for k, v in without.items()}


@pytest.mark.parametrize(
    "step, types",
    [
        (applied(np.nan_to_num), "pandas Int64"),
        (applied(np.sign), "pandas Arrow bool"),
        (make_pipeline(clip(0, 1), applied(np.log1p)), "numpy objects, numbers"),
        (make_pipeline(clip(0, 1), applied(np.sqrt)), "Arrow decimal"),
        (encode(), "pandas objects, texts"),
        (ordinal(), "numpy objects, texts"),
        (
            make_pipeline(clip(0, 1), SimpleImputer(strategy="constant", keep_empty_features=True)),
            "pandas objects, numbers",
        ),
        (make_column_transformer(("passthrough", [0])), "pandas, inferred, numbers"),
        (make_union("passthrough"), "pandas, inferred, numbers"),
    ],
)
def test_what_is_not_silent_on_columns_as_they_came_does_not_pass(step, types):
    with_odd, without = (outcomes(step, [types], odd) for odd in (True, False))
    assert {k: str(v) for k, v in with_odd.items()} != {k: str(v) for k, v in without.items()}
    assert not replay(partial(outcomes, step, [types]), True, False, epsilon=1.0, n=1).passed
    reasons = privacy_report(front(step)).reasons
    assert any("as they came" in reason for reason in reasons)


@pytest.mark.parametrize("name", SILENT_STEPS)
def test_what_passes_treats_each_row_by_itself(name):
    step, rng = SILENT_STEPS[name], random.Random(0)
    # In blocks of vector units a place decides which instruction computes a number.
    column = np.array([math.nan, 1e-320, *(rng.uniform(-2, 2) for _ in range(69))])[:, None]
    together = np.asarray(step.fit_transform(column))
    for n_rows in (1, 2, 7, 33, len(column) - 1):
        for part in (slice(n_rows), slice(-n_rows, None)):
            alone = np.asarray(step.fit_transform(np.asfortranarray(column[part])))
            assert alone.dtype == together.dtype
            assert alone.tolist().__repr__() == together[part].tolist().__repr__()


@pytest.mark.parametrize(
    "step, n_columns",
    [
        # Matrices so large that their product is computed in blocks.
        (skdp.PrivatePCA(50, epsilon=50, domain=skdp.Numeric(-1, 1)), 200),
        (skdp.DPKMeans(3, 50, bounds=(-1, 1)), 9),
        (skdp.PrivateStandardScaler(50, bounds=(-1, 1)), 9),
        (skdp.PrivateQuantileClipper(50, bounds=(-1, 1)), 9),
    ],
    ids=lambda value: type(value).__name__,
)
def test_private_steps_hand_on_each_row_by_itself(step, n_columns):
    rows = np.random.default_rng(0).uniform(-1, 1, (3_000, n_columns))
    together = step.fit(rows).transform(rows)
    for n_rows in (1, 2, 3, 17, 100, 999, 2_999):
        assert (step.transform(rows[:n_rows]) == together[:n_rows]).all()


def test_ranges():
    as_came, plain = Range(), row_by_row(numbers(), Range())
    assert plain == Range(kind="numbers") and row_by_row(texts(), plain) == Range(kind="texts")
    known = row_by_row(clip(0, 5), plain)
    assert known == Range(0, 5, True, "numbers")
    assert row_by_row(clip(0, 5), Range(3, 9, False, "numbers")) == Range(3, 5, False, "numbers")
    filled = row_by_row(applied(np.nan_to_num, kw_args={"nan": -1.0}), known)
    assert filled == Range(-1, 5, False, "numbers")
    assert row_by_row(applied(np.nan_to_num), plain).missing is False
    assert not row_by_row(applied(np.nan_to_num), plain).bounded
    assert Range(0, 1, False).joined(Range(-1, 0.5, True)) == Range(-1, 1, True)
    for other, kind in ((plain, "numbers"), (as_came, ""), (Range(kind="texts"), "fixed")):
        assert plain.joined(other).kind == other.joined(plain).kind == kind
    for unplain in (as_came, row_by_row(texts(), plain), row_by_row(applied(np.isnan), plain)):
        refused = row_by_row(clip(0, 5), unplain)
        assert isinstance(refused, Refusal) and "as they came" in refused.why
    assert row_by_row(StandardScaler(), known) is None
    refused = row_by_row(applied(np.log), known)
    assert isinstance(refused, Refusal) and refused.alone and "between" in refused.why


def test_libraries_and_instances():
    assert library(StandardScaler()) == "sklearn" and library(release()) == "skdp"
    assert library(Borrowed()) == "" and library(Subclass()) == __name__
    assert (
        replaced(StandardScaler().fit(NUMBERS))
        == ""
        == replaced(model(DummyClassifier()).fit(X, Y))
    )
    assert replaced(patched(SVC())) == "fit" and replaced(patched(model(), "classes_")) == ""


def test_what_is_carried_is_named():
    def what(thing):
        return carries(thing, lambda frozen: False)

    assert what(NUMBERS).startswith("a table") and what(X).startswith("a table")
    assert what(Y) and what([{"a": (1, [X])}]) and what(np.array([X, 1], dtype=object)[:1])
    assert not what(np.arange(3)) and not what({"a": [1, "b", None, 2.5, (3, range(4))]})
    assert "RAW" not in what(HIDDEN) and "LogisticRegression" in what(HIDDEN)
    assert "of_the_raw" in what(of_the_raw)
    assert what(hostile_module) and not what(honest_module)
    assert what(sys) and not what(np) and not what(math)
    assert "read_csv" in what(reads_a_file)
    assert what(lambda Z: globals()["X"]) and what(iter([1]))
    assert not what(shifted) and not what(np.mean) and not what(np.log) and not what(len)
    assert what(np.frompyfunc(shifted, 1, 1)) and what([].append) == ""
    nest = []
    nest.append(nest)
    assert not what(nest)


def test_a_report_of_a_frozen_model_behind_says_which():
    (reason,) = privacy_report(model(OneVsRestClassifier(HIDDEN))).reasons
    assert "carries what a frozen LogisticRegression learned" in reason
    assert privacy_report(model(OneVsRestClassifier(HIDDEN))).epsilon == 1


# --- seeds and folds


def test_a_bag_seeds_the_noise_and_the_report_says_so():
    bag = BaggingClassifier(model(DummyClassifier()), n_estimators=2)
    (step,) = (step for step in privacy_report(bag).steps if step.epsilon)
    assert step.verdict == "leaks" and step.seeded and "BaggingClassifier sets" in step.why
    ledger = skdp.PrivacyLedger()
    square = skdp.MarginalSynthesizer(1, domain=skdp.Numeric(0, 100), ledger=ledger)
    inner = skdp.PrivateClassifier(DummyClassifier(), square, classes=[0, 1])
    with pytest.warns(skdp.exceptions.InsecureSeedWarning):
        BaggingClassifier(inner, n_estimators=2).fit(NUMBERS, Y == "low")
    assert ledger.to_frame()["seeded"].all() and ledger.spent == 2


def seed_of_the_mean(X):
    return X - X.mean()


def test_a_name_is_no_seed():
    steps = [("seed", applied(seed_of_the_mean)), ("m", model(DummyClassifier()))]
    with pytest.raises(ValueError, match="is not private"):
        private_cross_val_score(Pipeline(steps), NUMBERS, Y, epsilon=1)
    search = PrivateGridSearchCV(Pipeline(steps), {"m__estimator__strategy": ["prior"]})
    with pytest.raises(ValueError, match="is not private"):
        search.fit(NUMBERS, Y)


def test_seeded_folds_are_no_secret():
    secret = privacy_report(model(), cv=PrivateKFold(4))
    known = privacy_report(model(), cv=PrivateKFold(4, random_state=0))
    assert (secret.cv_epsilon, known.cv_epsilon) == (3, 4)
    assert any("come from a seed" in note for note in known.notes)


def test_a_generator_of_folds_is_not_used_up():
    folds = KFold(3).split(NUMBERS)
    report = privacy_report(model(), cv=folds)
    assert report.cv_epsilon is None and len(list(folds)) == 3
    folds = KFold(3).split(NUMBERS)
    report = privacy_report(GridSearchCV(model(), {"estimator__C": [1]}, cv=folds))
    assert report.epsilon is None and len(list(folds)) == 3
    assert privacy_report(model(), cv=list(KFold(3).split(NUMBERS))).cv_epsilon == 3

    class Asks:
        def split(self, X, y=None, groups=None):
            yield from KFold(2).split(X)

        def get_n_splits(self, X=None, y=None, groups=None):
            return len(X)

    assert privacy_report(model(), cv=Asks()).cv_epsilon is None


def test_pickled_releases_pass_as_before():
    made = model(DummyClassifier()).fit(X, Y)
    assert_private(pickle.loads(pickle.dumps(made)))
    assert_private(FrozenEstimator(pickle.loads(pickle.dumps(made))))
