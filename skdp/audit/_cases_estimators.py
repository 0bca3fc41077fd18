"""Audit cases of the estimators and of the private scores, on data sets of a few records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.tree import DecisionTreeClassifier

from ..classification import (
    DiffGenTransformer,
    PrivPfCClassifier,
    PrivPfCTransformer,
    ProjectedHistogramTransformer,
)
from ..cluster import DPKMeans
from ..compose import PrivateClassifier, PrivateRegressor
from ..datacube import DataCube
from ..domain import Categorical, Domain, Numeric, forbid
from ..histogram import RangeTreeHistogram
from ..model_selection import (
    PrivateConformalClassifier,
    PrivateConformalRegressor,
    PrivateGridSearchCV,
    private_confusion_matrix,
    private_score,
    private_score_report,
)
from ..models import (
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateDecisionTreeClassifier,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateNaiveBayes,
    PrivatePCA,
    PrivateRandomForestClassifier,
    PrivateRidge,
    SampleAggregate,
)
from ..preprocessing import PrivateQuantileClipper, PrivateStandardScaler
from ..quality import PrivateQualityReport, quality_report
from ..selection import DPTopKSelector
from ..synthesis import (
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
)
from ._cases import AuditCase, audited, enter, synopsis_features

# Estimators on data sets of a few records, where one record changes most.

_LINE = Domain({"x": Numeric(0, 4, bins=4)})
_PLANE_COLUMNS: dict[str, Numeric | Categorical] = {
    "x": Numeric(0, 3, bins=3),
    "s": Categorical(["a", "b"]),
}
_PLANE = Domain(_PLANE_COLUMNS)
_SPACE = _PLANE.with_attribute("z", Numeric(0, 1, integer=True))
_LABEL = Categorical([0, 1])
_LINE_ROWS = pd.DataFrame({"x": [0.5, 0.5, 0.5, 2.5]})
_PLANE_ROWS = pd.DataFrame({"x": [0.5, 0.5, 0.5, 2.5], "s": ["a", "a", "b", "b"]})
_NUMBERS_ROWS = pd.DataFrame({"x": [0.5, 0.5, 0.5, 2.5], "z": [0, 1, 0, 1]})
# Where a fit takes a tenth of a second.
_FEW = 2_000


def last_gone(
    mechanism: Any, data: Any, features: Any = None, epsilon: Any = None, n_trials: int = 5_000
) -> AuditCase:
    """Case of a mechanism on rows, or on a pair of rows and labels, with and without the last."""
    less = tuple(part[:-1] for part in data) if isinstance(data, tuple) else data[:-1]
    options = {} if features is None else {"features": features}
    return AuditCase(mechanism, data, less, epsilon, n_trials, options)


def line_case(estimator: Any, features: Any = synopsis_features, **trials: Any) -> AuditCase:
    """Case of an estimator on one column of four cells."""
    return last_gone(estimator, _LINE_ROWS, features, **trials)


def plane_case(estimator: Any, features: Any = synopsis_features, **trials: Any) -> AuditCase:
    """Case of an estimator on two columns of three and two cells."""
    return last_gone(estimator, _PLANE_ROWS, features, **trials)


enter(
    {
        "HDPViewSynthesizer": line_case(HDPViewSynthesizer(1.0, domain=_LINE)),
        "HDPViewSynthesizer, two columns": plane_case(HDPViewSynthesizer(1.0, domain=_PLANE)),
        "PrivTreeSynthesizer": line_case(PrivTreeSynthesizer(1.0, domain=_LINE)),
        "PrivTreeSynthesizer, two columns": plane_case(PrivTreeSynthesizer(1.0, domain=_PLANE)),
        "KDTreeSynthesizer": line_case(KDTreeSynthesizer(1.0, domain=_LINE, xi0=2, xi1=1)),
        "KDTreeSynthesizer, cells": line_case(
            KDTreeSynthesizer(1.0, domain=_LINE, strategy="cell")
        ),
        "KDTreeSynthesizer, hierarchical": plane_case(
            KDTreeSynthesizer(1.0, domain=_PLANE, strategy="hierarchical")
        ),
        "GridSynthesizer": line_case(GridSynthesizer(1.0, domain=_LINE, rule="uniform")),
        "GridSynthesizer, cells": line_case(GridSynthesizer(1.0, domain=_LINE, rule="identity")),
    }
)


# One person with many more rows than are kept, of two kinds.
_PERSONS = pd.DataFrame(
    {"x": [0.5, 2.5, *[0.5] * 6, *[2.5] * 6], "who": ["ann", "bea", *["cyd"] * 12]}
)


def _one_person_less(dataset: pd.DataFrame, neighbour: pd.DataFrame) -> bool:
    """Whether the neighbour is the data set without all rows of one person."""
    gone = set(dataset["who"]) - set(neighbour["who"])
    return len(gone) == 1 and dataset[~dataset["who"].isin(gone)].equals(neighbour)


def _person_case(estimator: Any, **trials: Any) -> AuditCase:
    """Case of a synthesizer on one column, whose unit of privacy is the person."""
    estimator = estimator.set_params(max_contributions=3, unit="who")
    options = {"features": synopsis_features, "relation": _one_person_less}
    return AuditCase(estimator, _PERSONS, _PERSONS.iloc[:2], options=options, **trials)


def _node_features(histogram: Any) -> Any:
    """All noisy counts of a histogram, without the estimates computed from them."""
    return "", histogram.noisy_counts_


def _bucket_features(histogram: Any) -> Any:
    """The buckets, which are released too, and the counts of all nodes of the tree over them."""
    tree = histogram.tree_
    shape = f"{histogram.codes_.tolist()} {tree.lower.tolist()} {tree.upper.tolist()}"
    return shape, histogram.noisy_counts_


def _histogram_case(features: Any = _node_features, **parameters: Any) -> AuditCase:
    return line_case(RangeTreeHistogram(1.0, domain=_LINE, **parameters), features)


enter(
    {
        "GridSynthesizer, persons": _person_case(
            GridSynthesizer(1.0, domain=_LINE, rule="identity")
        ),
        "MarginalSynthesizer, persons": _person_case(
            MarginalSynthesizer(1.0, domain=_LINE), n_trials=_FEW
        ),
        "RangeTreeHistogram": _histogram_case(),
        # A record is in several nodes: only their counts together show its cost.
        "RangeTreeHistogram, every level": _histogram_case(branching=2, budget="uniform"),
        "RangeTreeHistogram, adaptive": _histogram_case(_bucket_features, partition="adaptive"),
        "RangeTreeHistogram, dawa": _histogram_case(_bucket_features, partition="dawa"),
        "RangeTreeHistogram, ahp": _histogram_case(_bucket_features, partition="ahp"),
        "PrivateStandardScaler": line_case(
            PrivateStandardScaler(1.0, bounds=(0, 4)),
            lambda scaler: np.append(scaler.mean_, scaler.scale_),
        ),
        "PrivateQuantileClipper": line_case(
            PrivateQuantileClipper(1.0, bounds=(0, 4), quantiles=(0.25, 0.75)),
            lambda clipper: np.append(clipper.lower_, clipper.upper_),
        ),
    }
)


def _grid_features(release: Any) -> Any:
    """The grid as a label, and all noisy counts of its cells."""
    return str(release.grid_), release.noisy_counts_.ravel()


def _grid_case(estimator: Any, **options: Any) -> AuditCase:
    # Enough records for grids of several cells to be candidates. The last record is removed; its
    # label is rare in its cell.
    rows = pd.DataFrame({"x": [0.5] * 15 + [2.5] * 15, "s": ["a"] * 14 + ["b"] * 15 + ["a"]})
    return last_gone(estimator(1.0, domain=_PLANE, target="s", **options), rows, _grid_features)


def _additive_features(model: Any) -> Any:
    """All functions of a model."""
    scores = [shape.scores.ravel() for shape in model.shape_functions_.values()]
    return "", np.concatenate([np.atleast_1d(model.intercept_), *scores])


def _tree_features(tree: Any) -> Any:
    """Splits of a tree as text, and its counts."""
    nodes = tree.model.nodes
    shape = [None if node is None else (node.column, *node.children.tolist()) for node in nodes]
    return str(shape), tree.model.class_counts.ravel()


def _tree_case(**options: Any) -> AuditCase:
    tree = PrivateDecisionTreeClassifier(1.0, domain=_PLANE, target="s", max_depth=1, **options)
    return plane_case(tree, lambda model: _tree_features(model.tree_))


def _forest_features(model: Any) -> Any:
    found = [_tree_features(tree) for tree in model.trees_]
    return "".join(text for text, _ in found), np.concatenate([each for _, each in found])


def _coefficients(model: Any) -> Any:
    return "", np.concatenate([np.ravel(model.intercept_), np.ravel(model.coef_)])


def _linear_case(estimator: Any, target: str, **options: Any) -> AuditCase:
    return plane_case(estimator(1.0, domain=_PLANE, target=target, **options), _coefficients)


def _bayes_features(model: Any) -> Any:
    tables = [each.ravel() for each in model.feature_log_prob_.values()]
    return "", np.concatenate([model.class_log_prior_, *tables])


class _Largest(BaseEstimator):
    """The worst that an output can do: it jumps from one end of the range to the other."""

    def fit(self, X: Any, y: Any = None) -> _Largest:
        self.found_ = float(np.max(X) > 2)
        return self


def _aggregate_case(how: str, n_blocks: int | None = None) -> AuditCase:
    return last_gone(
        SampleAggregate(_Largest(), 1.0, (0, 1), n_blocks, output="found_", aggregate=how),
        _PLANE_ROWS[["x"]],
        lambda model: (str(model.n_blocks_), np.atleast_1d(model.value_)),
    )


enter(
    {
        "PrivPfCTransformer": _grid_case(PrivPfCTransformer),
        "PrivPfCTransformer, as in the paper": _grid_case(PrivPfCTransformer, selection="paper"),
        "PrivPfCClassifier": _grid_case(PrivPfCClassifier),
        "DiffGenTransformer": _grid_case(DiffGenTransformer, n_specializations=2),
        "ProjectedHistogramTransformer": _grid_case(ProjectedHistogramTransformer, n_attributes=1),
        "PrivateAdditiveClassifier": plane_case(
            PrivateAdditiveClassifier(1.0, domain=_PLANE, target="s"), _additive_features
        ),
        "PrivateAdditiveRegressor": last_gone(
            PrivateAdditiveRegressor(1.0, domain=_SPACE.select(["x", "z"]), target="x"),
            _NUMBERS_ROWS,
            _additive_features,
        ),
        "PrivateDecisionTreeClassifier": _tree_case(prune=False),
        "PrivateDecisionTreeClassifier, id3": _tree_case(algorithm="id3"),
        "PrivateRandomForestClassifier": plane_case(
            PrivateRandomForestClassifier(
                1.0, domain=_PLANE, target="s", rows="apart", max_depth=1
            ),
            _forest_features,
        ),
        "PrivateLinearRegression": _linear_case(PrivateLinearRegression, "x"),
        "PrivateLinearRegression, functional": _linear_case(
            PrivateLinearRegression, "x", solver="functional"
        ),
        "PrivateRidge": _linear_case(PrivateRidge, "x", alpha=2),
        "PrivateLogisticRegression": _linear_case(PrivateLogisticRegression, "s"),
        "PrivateLogisticRegression, functional": _linear_case(
            PrivateLogisticRegression, "s", solver="functional"
        ),
        "PrivateLogisticRegression, local search": _linear_case(
            PrivateLogisticRegression, "s", solver="local-search"
        ),
        "PrivateLinearSVC": _linear_case(PrivateLinearSVC, "s", solver="genetic"),
        "PrivateNaiveBayes": plane_case(
            PrivateNaiveBayes(1.0, domain=_PLANE, target="s"), _bayes_features
        ),
        "SampleAggregate": _aggregate_case("mean"),
        "SampleAggregate, winsorised": _aggregate_case("winsorised", 2),
        "PrivatePCA": last_gone(
            PrivatePCA(epsilon=1.0, domain=_SPACE.select(["x", "z"])),
            _NUMBERS_ROWS,
            lambda pca: ("", np.append(pca.mean_, pca.covariance_)),
        ),
    }
)


@audited("DPTopKSelector")
def _() -> AuditCase:
    # One column is right and one constant; without the last record the lead is smaller.
    rows = pd.DataFrame({"u": [0] * 4 + [1] * 4, "v": 0, "y": [0] * 4 + [1] * 4})
    domain = Domain({name: Numeric(0, 1, integer=True) for name in "uv"} | {"y": _LABEL})
    return last_gone(
        DPTopKSelector(1, 1.0, domain=domain, target="y"),
        rows,
        lambda fitted: (tuple(fitted.selected_), *fitted.label_counts_),
    )


def _cube_features(cube: DataCube) -> Any:
    """Everything that a cube has measured."""
    return "", np.concatenate([table.ravel() for table in cube.sources_.values()])


def _summing_cube(measure: str, value: float) -> AuditCase:
    cube = DataCube(1.0, domain=_PLANE, strategy="base", measure=measure, value="x", resolution=1)
    # A record with the largest possible contribution.
    return last_gone(cube, pd.DataFrame({"x": [1.0, value], "s": ["a", "b"]}), _cube_features)


def _view_features(estimator: Any) -> Any:
    """All facts and numbers of a model but the rows, which are drawn from the others."""
    facts, arrays = synopsis_features(estimator)
    drawn = ("rows", "row_weights")
    return facts, {name: array for name, array in arrays.items() if name not in drawn}


def _marginal_case(copies: int, **parameters: Any) -> AuditCase:
    """Case on three columns, between which there is something to choose."""
    rows = pd.concat([_PLANE_ROWS.assign(z=[0, 0, 1, 1])] * copies, ignore_index=True)
    estimator = MarginalSynthesizer(1.0, domain=_SPACE, **parameters)
    return last_gone(estimator, rows, _view_features, n_trials=_FEW)


@audited("MarginalSynthesizer, target")
def _() -> AuditCase:
    case = _marginal_case(600, target="s", max_order=2)
    X, y = case.dataset.drop(columns="s"), case.dataset["s"]
    return replace(case, dataset=(X, y), neighbour=(X.iloc[:-1], y.iloc[:-1]))


def _edges(estimator: Any) -> Any:
    """The edges of the network, and the total."""
    model = estimator.synopsis_.model
    return tuple(sorted(model.pairs)), float(model.total)


def _network_case(score_function: str) -> AuditCase:
    """Case in which the network is chosen; theta is so small that tables of two columns fit."""
    estimator = PrivBayesSynthesizer(
        1.0,
        domain=Domain(dict.fromkeys("xyz", _LABEL)),
        score_function=score_function,
        beta=0.9,
        theta=0.01,
        max_cells=4,
    )
    # Two columns agree but in the last record.
    rows = pd.DataFrame({"x": [0, 1] * 6 + [0], "y": [0, 1] * 6 + [1], "z": [0, 0, 1, 1] * 3 + [0]})
    return last_gone(estimator, rows, _edges, n_trials=10_000)


enter(
    {
        # Two sources: the record in one cell of each shifts both, and both budgets must count.
        "DataCube": line_case(
            DataCube(1.0, domain=_LINE, strategy={"x": 1, (): 1}), _cube_features
        ),
        "DataCube, sums": _summing_cube("sum", 3.0),
        # A record between the ends adds to both tables.
        "DataCube, means": _summing_cube("mean", 1.0),
        "MarginalSynthesizer": _marginal_case(600),
        "MarginalSynthesizer, few records": _marginal_case(1),
        "MarginalSynthesizer, one column": line_case(
            MarginalSynthesizer(1.0, domain=_LINE), _view_features, n_trials=_FEW
        ),
        "MarginalSynthesizer, two columns": plane_case(
            MarginalSynthesizer(1.0, domain=_PLANE), _view_features, n_trials=_FEW
        ),
        # One cell is empty by a public rule.
        "MarginalSynthesizer, rules": plane_case(
            MarginalSynthesizer(
                1.0, domain=Domain(_PLANE_COLUMNS, structure=[forbid("x >= 2 and s == 'a'")])
            ),
            _view_features,
            n_trials=_FEW,
        ),
        "MarginalSynthesizer, coarse tables of pairs": _marginal_case(600, max_order=2),
        # A network without a choice: the total and two tables.
        "PrivBayesSynthesizer": plane_case(
            PrivBayesSynthesizer(1.0, domain=_PLANE), n_trials=10_000
        ),
        # So small tables that a parent is taken in groups.
        "PrivBayesSynthesizer, hierarchical": plane_case(
            PrivBayesSynthesizer(1.0, domain=_PLANE, encoding="hierarchical", theta=0.2),
            n_trials=10_000,
        ),
        "PrivBayesSynthesizer, network": _network_case("R"),
        "PrivBayesSynthesizer, network by F": _network_case("F"),
        "PrivBayesSynthesizer, network by mutual information": _network_case("mutual_information"),
    }
)


def _centroid_features(estimator: Any) -> Any:
    """Centroids, their noisy counts, and the noisy grid, if there are any."""
    grid = None if estimator.synopsis_ is None else synopsis_features(estimator)
    return estimator.cluster_centers_.ravel(), estimator.cluster_counts_, grid


def _centres_and_counts(estimator: Any) -> Any:
    """Centroids and their noisy counts only, where nearly every release has other boxes."""
    return np.append(estimator.cluster_centers_.ravel(), estimator.cluster_counts_)


def _k_means_case(
    algorithm: str,
    n_clusters: Any = 2,
    *,
    features: Any = _centroid_features,
    n_trials: int = 5_000,
    **parameters: Any,
) -> AuditCase:
    # The record that is removed is alone in its cluster.
    rows = np.array([[-0.5]] * 4 + [[0.75]])
    estimator = DPKMeans(n_clusters, 1.0, bounds=(-1, 1), algorithm=algorithm, **parameters)
    return last_gone(estimator, rows, features, n_trials=n_trials)


@audited("DPKMeans, many columns")
def _() -> AuditCase:
    # Columns are projected; the record that is removed is alone in its cluster.
    rows = np.tile([[-0.5]] * 4 + [[0.75]], (1, 51))

    def released(estimator: Any) -> Any:
        return np.append(estimator.cluster_centers_.mean(axis=1), estimator.cluster_counts_)

    estimator = DPKMeans(2, 1.0, bounds=(-1, 1), n_init=2, n_samples=100)
    return last_gone(estimator, rows, released, n_trials=1_000)


_STARTS = [[-0.5], [0.5]]

enter(
    {
        "DPKMeans": _k_means_case("auto", n_init=2),
        # A round follows if many records are declared; the declared number need not be true.
        "DPKMeans, a grid and a round": _k_means_case("auto", n_init=2, n_samples=200),
        # All records are in one bin, which is divided again.
        "DPKMeans, narrow ranges": last_gone(
            DPKMeans(1, 1.0, bounds=(-100, 100), n_init=2, n_samples=1_000),
            np.full((1_000, 1), 0.3),
            _centres_and_counts,
            n_trials=1_000,
        ),
        "DPKMeans, a tree and a round": _k_means_case(
            "auto", n_init=2, n_samples=2_000, features=_centres_and_counts
        ),
        "DPKMeans, choice of k": _k_means_case("auto", [2, 3], n_init=2),
        "DPKMeans, lloyd": _k_means_case("lloyd", init=_STARTS, n_rounds=2),
        "DPKMeans, lloyd-improved": _k_means_case("lloyd-improved", init=_STARTS),
        "DPKMeans, uniform-grid": _k_means_case("uniform-grid", n_init=2),
        "DPKMeans, m-estimator": _k_means_case("m-estimator", n_init=2),
        "DPKMeans, extended-grid": _k_means_case("extended-grid", n_init=2),
        "DPKMeans, hybrid": _k_means_case("hybrid", n_init=2),
        "DPKMeans, sample-aggregate": _k_means_case("sample-aggregate"),
        "DPKMeans, genetic": _k_means_case("genetic", n_trials=3_000),
    }
)


def _probabilities(estimator: Any) -> Any:
    return estimator.predict_proba(pd.DataFrame({"x": [0.5, 1.5, 2.5]})).ravel()


def _search_case(strategy: str, choice: float, epsilon: float, **params: Any) -> AuditCase:
    # The candidates predict one label each if the release has both labels, so only the choice
    # between them varies.
    search = PrivateGridSearchCV(
        PrivateClassifier(
            DecisionTreeClassifier(max_depth=1), HDPViewSynthesizer(0.2, domain=_PLANE, target="s")
        ),
        {"estimator__class_weight": [{"a": 1e9, "b": 1}, {"a": 1, "b": 1e9}]},
        epsilon=choice,
        strategy=strategy,
        **params,
    )
    data = pd.DataFrame({"x": [1.5] * 78}), pd.Series(["a"] * 37 + ["b"] * 41)
    return last_gone(search, data, lambda search: search.best_index_, epsilon, 1_500)


def _conformal_case(make: Callable[..., Any], constant: Any, truth: list[Any]) -> AuditCase:
    # The row that is removed is the only one that the model does not predict.
    model = constant.fit(np.zeros((2, 1)), [0, 1])
    return last_gone(
        lambda data: (
            make(model, epsilon=1.0, confidence_level=[0.2, 0.5]).conformalize(*data).thresholds_
        ),
        (np.zeros((30, 1)), np.array(truth)),
        epsilon=1.0,
        n_trials=2_000,
    )


enter(
    {
        "PrivateClassifier": last_gone(
            PrivateClassifier(
                DecisionTreeClassifier(max_depth=2),
                HDPViewSynthesizer(1.0, domain=_PLANE, target="s"),
            ),
            (_PLANE_ROWS[["x"]], _PLANE_ROWS["s"]),
            _probabilities,
            1.0,
            n_trials=4_000,
        ),
        "PrivateClassifier, default": last_gone(
            PrivateClassifier(epsilon=1.0, domain=_PLANE, target="s"),
            (_PLANE_ROWS[["x"]], _PLANE_ROWS["s"]),
            _probabilities,
            1.0,
            n_trials=2_000,
        ),
        "PrivateRegressor, default": last_gone(
            PrivateRegressor(epsilon=1.0, domain=_PLANE, target="x"),
            (_PLANE_ROWS[["s"]], _PLANE_ROWS["x"]),
            lambda model: model.predict(pd.DataFrame({"s": ["a", "b"]})),
            1.0,
            n_trials=2_000,
        ),
        "PrivateGridSearchCV": _search_case("noisy-max", 1.0, 1.2),
        # Three times the fit, of which every run makes one.
        "PrivateGridSearchCV, random-stopping": _search_case(
            "random-stopping", 0.5, 1.1, eta=1, runs=3
        ),
        # Two candidates at half their epsilon, and the winner.
        "PrivateGridSearchCV, halving": _search_case("halving", 0.5, 0.9),
        "PrivateConformalClassifier": _conformal_case(
            PrivateConformalClassifier,
            DummyClassifier(strategy="constant", constant=0),
            [0] * 29 + [1],
        ),
        "PrivateConformalRegressor": _conformal_case(
            partial(PrivateConformalRegressor, bounds=(0, 1)),
            DummyRegressor(strategy="constant", constant=0.0),
            [0.0] * 29 + [1.0],
        ),
    }
)


def _scores_case(score: Callable[..., Any], n_trials: int = 20_000) -> AuditCase:
    # The record that is removed was predicted wrongly, by the whole range.
    return last_gone(
        lambda data: score(*data),
        (np.array([0, 1, 0, 1, 0]), np.array([0, 1, 0, 1, 1])),
        epsilon=1.0,
        n_trials=n_trials,
    )


def _score_case(metric: str, n_trials: int = 5_000, **options: Any) -> AuditCase:
    def score(truth: Any, guess: Any) -> Any:
        result = private_score(truth, guess, metric, epsilon=1.0, **options)
        return np.array([result.value, result.lower, result.upper])

    return _scores_case(score, n_trials)


class _Same(BaseEstimator):
    """Predicts the only column."""

    def fit(self, X: Any, y: Any = None) -> Any:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        return X[:, 0]


def _reported(truth: Any, guess: Any) -> Any:
    report = private_score_report(
        _Same(), guess[:, None], truth, bounds=(0, 1), epsilon=1.0, trained_elsewhere=True
    )
    return np.array([float(report[name]) for name in report.metrics])


def _confused(truth: Any, guess: Any) -> Any:
    table = private_confusion_matrix(truth, guess, labels=[0, 1], epsilon=1.0)
    return table.to_numpy().ravel()


enter(
    {
        "private_score, accuracy": _score_case("accuracy", 20_000),
        "private_confusion_matrix": _scores_case(_confused),
        "private_score, roc_auc": _score_case("roc_auc", score_range=(-1, 2)),
        "private_score, f1": _score_case("f1"),
        "private_score, log_loss": _score_case("log_loss"),
        "private_score, r2": _score_case("r2", bounds=(0, 1)),
        "private_score_report": _scores_case(_reported, 5_000),
        "private_score, mean_squared_error": _score_case(
            "mean_squared_error", 20_000, bounds=(0, 1)
        ),
    }
)


@audited("quality_report")
def _() -> AuditCase:
    # Most records lie far from the synthetic rows, as does the one that is removed.
    rows = _PLANE_ROWS.iloc[[0, *[3] * 7]].reset_index(drop=True)

    def report(records: Any) -> Any:
        found = quality_report(records, rows[:1], domain=_PLANE, epsilon=1.0)
        assert isinstance(found, PrivateQualityReport)
        tables = (found.scores, found.columns)
        return np.concatenate([table.iloc[:, 1:].to_numpy(float).ravel() for table in tables])

    return last_gone(report, rows, epsilon=1.0, n_trials=3_000)
