"""Learners of the fidelity benchmark: trained on a release, tested on true rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from benchmarks._fidelity_releases import Release
from benchmarks._fidelity_tables import Table
from benchmarks.views import independence
from skdp import Categorical, Numeric, PrivateClassifier, PrivPfCTransformer
from skdp.exceptions import InsecureSeedWarning
from skdp.rows import CountTable

__all__ = ["LEARNERS", "Score", "folds", "majority", "naive_bayes", "privpfc", "score", "trained"]

_DEPTH = 8


class Score(NamedTuple):
    """Share of wrong labels, and AUC (of several classes: the mean of one against the rest)."""

    error: float
    auc: float


def folds(table: Table, most: int | None = None) -> Iterator[tuple[Table, Table]]:
    """Training and test parts: three times five folds, or the first ``most`` of them."""
    splitter = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0)
    for number, (train, test) in enumerate(splitter.split(table.rows, table.rows[table.target])):
        if number == most:
            return
        yield table.part(train), table.part(test)


def _encoded(table: Table, one_hot: bool) -> Any:
    texts = [name for name in _predictors(table) if isinstance(table.domain[name], Categorical)]
    numbers = [name for name in _predictors(table) if name not in texts]
    if one_hot:
        listed = [list(table.domain[name].categories) for name in texts]
        return make_column_transformer(
            (StandardScaler(), numbers), (OneHotEncoder(categories=listed), texts)
        )
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_column_transformer((ordinal, texts), ("passthrough", numbers))


def _predictors(table: Table) -> list[str]:
    return [name for name in table.domain.names if name != table.target]


def boosted(table: Table) -> Any:
    """Boosted trees with scikit-learn's defaults behind an ordinal encoder."""
    return make_pipeline(_encoded(table, False), HistGradientBoostingClassifier(random_state=0))


def logistic(table: Table) -> Any:
    """Logistic regression, categories one-hot and numbers scaled."""
    return make_pipeline(_encoded(table, True), LogisticRegression(max_iter=500))


def tree(table: Table) -> Any:
    """One tree of eight levels behind an ordinal encoder."""
    single = DecisionTreeClassifier(max_depth=_DEPTH, random_state=0)
    return make_pipeline(_encoded(table, False), single)


LEARNERS: dict[str, Callable[[Table], Any]] = {
    "boosted": boosted,
    "logistic": logistic,
    "tree": tree,
}


def trained(learner: str, made: Release, seed: int, *, middles: bool = False) -> Any:
    """A learner trained on synthetic rows: through `PrivateClassifier` where that is possible.

    Parameters
    ----------
    learner : str
        One of `LEARNERS`.
    made : Release
    seed : int
    middles : bool, default=False
        Put every number into the middle of its bin instead of anywhere in it. The test rows stay
        as they are. A column that is 0 in nearly all records needs it: synthetic values fill the
        first bin, and a tree that cuts this bin at random treats all true zeros as it treats the
        few synthetic values below its first cut.
    """
    table = made.table
    model = LEARNERS[learner](table)
    X = table.rows[_predictors(table)]
    if getattr(made.estimator, "target", None) is not None and not middles:
        private = PrivateClassifier(model, FrozenEstimator(made.estimator), random_state=seed)
        return private.fit(X, table.rows[table.target])
    synthetic = made.frame(seed)
    if middles:
        synthetic = _in_middles(table, synthetic)
    labels = np.array(synthetic[table.target].tolist())
    if len(np.unique(labels)) < 2:
        return majority(table)
    return model.fit(synthetic[_predictors(table)], labels)


def _in_middles(table: Table, rows: pd.DataFrame) -> pd.DataFrame:
    codes, domain = table.domain.encode(rows), table.domain
    means = {
        name: domain[name].means()[codes[:, axis]]
        for axis, name in enumerate(domain.names)
        if isinstance(domain[name], Numeric)
    }
    return rows.assign(**means)


def majority(train: Table) -> Any:
    """Always the most frequent label of the true rows, which is not private."""
    return DummyClassifier().fit(train.rows[_predictors(train)], train.rows[train.target])


def privpfc(learner: str, train: Table, epsilon: float, seed: int) -> Any:
    """A learner trained on the cells of a PrivPfC grid, as `PrivateClassifier` does it."""
    release = PrivPfCTransformer(
        epsilon, domain=train.domain, target=train.target, random_state=seed
    )
    models = {
        "boosted": HistGradientBoostingClassifier(random_state=0),
        "logistic": LogisticRegression(max_iter=500),
        "tree": DecisionTreeClassifier(max_depth=_DEPTH, random_state=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        model = PrivateClassifier(models[learner], release, random_state=seed)
        return model.fit(train.rows[_predictors(train)], train.rows[train.target])


class NaiveBayes:
    """Class histograms of single columns as a classifier; every class has all of epsilon."""

    def __init__(self, train: Table, epsilon: float, seed: int) -> None:
        domain, codes = train.domain, train.codes
        self.domain, self.label = domain, domain.index(train.target)
        self.classes_ = np.array(domain[train.target].categories)
        orders = [attribute.order() for attribute in domain.attributes]
        self.priors, self.tables = [], []
        for code in range(len(self.classes_)):
            exact = CountTable.from_codes(codes[codes[:, self.label] == code], domain.shape)
            views = independence(exact, epsilon, 1000 * seed + code, orders)
            self.priors.append(np.log(max(views[0].sum(), 1.0)))
            # One pseudo-count for each code.
            self.tables.append([np.log((view + 1) / (view + 1).sum()) for view in views])

    def predict_proba(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Probabilities of the classes."""
        label = {self.domain.names[self.label]: self.classes_[0]}
        codes = self.domain.encode(X.assign(**label))
        scores = np.empty((len(X), len(self.classes_)))
        for code, (prior, table) in enumerate(zip(self.priors, self.tables, strict=True)):
            scores[:, code] = prior
            for axis, logs in enumerate(table):
                if axis != self.label:
                    scores[:, code] += logs[codes[:, axis]]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """Most probable classes."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def naive_bayes(train: Table, epsilon: float, seed: int) -> NaiveBayes:
    """Class histograms as a classifier."""
    return NaiveBayes(train, epsilon, seed)


def score(model: Any, test: Table) -> Score:
    """Error and AUC on true rows."""
    X, y = test.rows[_predictors(test)], test.rows[test.target].to_numpy()
    error = float(np.mean(model.predict(X) != y))
    shown = model.predict_proba(X)
    full = np.zeros((len(y), len(np.unique(y))))
    place = {label: position for position, label in enumerate(np.unique(y).tolist())}
    for column, label in enumerate(np.asarray(model.classes_).tolist()):
        if label in place:
            full[:, place[label]] = shown[:, column]
    each = [roc_auc_score(y == label, full[:, position]) for label, position in place.items()]
    return Score(error, float(np.mean(each)))
