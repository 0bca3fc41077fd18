"""Audit cases of the estimators and of the private scores, on data sets of a few records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeClassifier

from ..additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from ..classification import (
    DiffGenTransformer,
    PrivPfCClassifier,
    PrivPfCTransformer,
    ProjectedHistogramTransformer,
)
from ..cluster import DPKMeans
from ..compose import PrivateClassifier, PrivateRegressor
from ..datacube import DataCube
from ..decomposition import PrivatePCA
from ..domain import Categorical, Domain, Numeric
from ..histogram import RangeTreeHistogram
from ..linear_model import (
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateRidge,
)
from ..model_selection import (
    PrivateGridSearchCV,
    private_confusion_matrix,
    private_score,
)
from ..naive_bayes import PrivateNaiveBayes
from ..preprocessing import PrivateQuantileClipper, PrivateStandardScaler
from ..quality import quality_report
from ..sample_aggregate import SampleAggregate
from ..selection import DPTopKSelector
from ..synthesis import (
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
)
from ..tree import PrivateDecisionTreeClassifier, PrivateRandomForestClassifier
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
        "HDPViewSynthesizer": line_case(HDPViewSynthesizer(epsilon=1.0, domain=_LINE)),
        "PrivTreeSynthesizer": line_case(PrivTreeSynthesizer(epsilon=1.0, domain=_LINE)),
        "KDTreeSynthesizer": line_case(KDTreeSynthesizer(epsilon=1.0, domain=_LINE, xi0=2, xi1=1)),
        "GridSynthesizer": line_case(GridSynthesizer(epsilon=1.0, domain=_LINE, rule="uniform")),
    }
)


def _node_features(histogram: Any) -> Any:
    """All noisy counts of a histogram, without the estimates computed from them."""
    return "", histogram.noisy_counts_


def _histogram_case(features: Any = _node_features, **parameters: Any) -> AuditCase:
    return line_case(RangeTreeHistogram(epsilon=1.0, domain=_LINE, **parameters), features)


enter(
    {
        "RangeTreeHistogram": _histogram_case(),
        "PrivateStandardScaler": line_case(
            PrivateStandardScaler(epsilon=1.0, domain=(0, 4)),
            lambda scaler: np.append(scaler.mean_, scaler.scale_),
        ),
        "PrivateQuantileClipper": line_case(
            PrivateQuantileClipper(epsilon=1.0, domain=(0, 4), quantiles=(0.25, 0.75)),
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
    return last_gone(
        estimator(epsilon=1.0, domain=_PLANE, target="s", **options), rows, _grid_features
    )


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
    tree = PrivateDecisionTreeClassifier(
        epsilon=1.0, domain=_PLANE, target="s", max_depth=1, **options
    )
    return plane_case(tree, lambda model: _tree_features(model.tree_))


def _forest_features(model: Any) -> Any:
    found = [_tree_features(tree) for tree in model.trees_]
    return "".join(text for text, _ in found), np.concatenate([each for _, each in found])


def _coefficients(model: Any) -> Any:
    return "", np.concatenate([np.ravel(model.intercept_), np.ravel(model.coef_)])


def _linear_case(estimator: Any, target: str, **options: Any) -> AuditCase:
    return plane_case(
        estimator(epsilon=1.0, domain=_PLANE, target=target, **options), _coefficients
    )


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
        SampleAggregate(
            _Largest(),
            epsilon=1.0,
            output_range=(0, 1),
            n_blocks=n_blocks,
            output="found_",
            aggregate=how,
        ),
        _PLANE_ROWS[["x"]],
        lambda model: (str(model.n_blocks_), np.atleast_1d(model.value_)),
    )


enter(
    {
        "PrivPfCTransformer": _grid_case(PrivPfCTransformer),
        "PrivPfCClassifier": _grid_case(PrivPfCClassifier),
        "DiffGenTransformer": _grid_case(DiffGenTransformer, n_specializations=2),
        "ProjectedHistogramTransformer": _grid_case(ProjectedHistogramTransformer, n_attributes=1),
        "PrivateAdditiveClassifier": plane_case(
            PrivateAdditiveClassifier(epsilon=1.0, domain=_PLANE, target="s"), _additive_features
        ),
        "PrivateAdditiveRegressor": last_gone(
            PrivateAdditiveRegressor(epsilon=1.0, domain=_SPACE.select(["x", "z"]), target="x"),
            _NUMBERS_ROWS,
            _additive_features,
        ),
        "PrivateDecisionTreeClassifier": _tree_case(prune=False),
        "PrivateRandomForestClassifier": plane_case(
            PrivateRandomForestClassifier(
                epsilon=1.0, domain=_PLANE, target="s", rows="apart", max_depth=1
            ),
            _forest_features,
        ),
        "PrivateLinearRegression": _linear_case(PrivateLinearRegression, "x"),
        "PrivateRidge": _linear_case(PrivateRidge, "x", alpha=2),
        "PrivateLogisticRegression": _linear_case(PrivateLogisticRegression, "s"),
        "PrivateLinearSVC": _linear_case(PrivateLinearSVC, "s", solver="genetic"),
        "PrivateNaiveBayes": plane_case(
            PrivateNaiveBayes(epsilon=1.0, domain=_PLANE, target="s"), _bayes_features
        ),
        "SampleAggregate": _aggregate_case("mean"),
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
        DPTopKSelector(1, epsilon=1.0, domain=domain, target="y"),
        rows,
        lambda fitted: (tuple(fitted.selected_), *fitted.label_counts_),
    )


def _cube_features(cube: DataCube) -> Any:
    """Everything that a cube has measured."""
    return "", np.concatenate([table.ravel() for table in cube.sources_.values()])


def _view_features(estimator: Any) -> Any:
    """All facts and numbers of a model but the rows, which are drawn from the others."""
    facts, arrays = synopsis_features(estimator)
    drawn = ("rows", "row_weights")
    return facts, {name: array for name, array in arrays.items() if name not in drawn}


def _marginal_case(copies: int, **parameters: Any) -> AuditCase:
    """Case on three columns, between which there is something to choose."""
    rows = pd.concat([_PLANE_ROWS.assign(z=[0, 0, 1, 1])] * copies, ignore_index=True)
    estimator = MarginalSynthesizer(epsilon=1.0, domain=_SPACE, **parameters)
    return last_gone(estimator, rows, _view_features, n_trials=_FEW)


enter(
    {
        # Two sources: the record in one cell of each shifts both, and both budgets must count.
        "DataCube": line_case(
            DataCube(epsilon=1.0, domain=_LINE, strategy={"x": 1, (): 1}), _cube_features
        ),
        "MarginalSynthesizer": _marginal_case(600),
        # A network without a choice: the total and two tables.
        "PrivBayesSynthesizer": plane_case(
            PrivBayesSynthesizer(epsilon=1.0, domain=_PLANE), n_trials=10_000
        ),
    }
)


def _centroid_features(estimator: Any) -> Any:
    """Centroids, their noisy counts, and the noisy grid, if there are any."""
    grid = None if estimator.synopsis_ is None else synopsis_features(estimator)
    return estimator.cluster_centers_.ravel(), estimator.cluster_counts_, grid


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
    estimator = DPKMeans(n_clusters, epsilon=1.0, domain=(-1, 1), algorithm=algorithm, **parameters)
    return last_gone(estimator, rows, features, n_trials=n_trials)


enter(
    {
        "DPKMeans": _k_means_case("auto", n_init=2),
    }
)


def _probabilities(estimator: Any) -> Any:
    return estimator.predict_proba(pd.DataFrame({"x": [0.5, 1.5, 2.5]})).ravel()


def _search_case() -> AuditCase:
    # The candidates predict one label each if the release has both labels, so only the choice
    # between them varies.
    search = PrivateGridSearchCV(
        PrivateClassifier(
            DecisionTreeClassifier(max_depth=1),
            HDPViewSynthesizer(epsilon=0.2, domain=_PLANE, target="s"),
        ),
        {"estimator__class_weight": [{"a": 1e9, "b": 1}, {"a": 1, "b": 1e9}]},
        epsilon=1.0,
    )
    data = pd.DataFrame({"x": [1.5] * 78}), pd.Series(["a"] * 37 + ["b"] * 41)
    return last_gone(search, data, lambda search: search.best_index_, 1.2, 1_500)


enter(
    {
        "PrivateClassifier": last_gone(
            PrivateClassifier(
                DecisionTreeClassifier(max_depth=2),
                HDPViewSynthesizer(epsilon=1.0, domain=_PLANE, target="s"),
            ),
            (_PLANE_ROWS[["x"]], _PLANE_ROWS["s"]),
            _probabilities,
            1.0,
            n_trials=4_000,
        ),
        "PrivateRegressor, default": last_gone(
            PrivateRegressor(epsilon=1.0, domain=_PLANE, target="x"),
            (_PLANE_ROWS[["s"]], _PLANE_ROWS["x"]),
            lambda model: model.predict(pd.DataFrame({"s": ["a", "b"]})),
            1.0,
            n_trials=2_000,
        ),
        "PrivateGridSearchCV": _search_case(),
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


def _confused(truth: Any, guess: Any) -> Any:
    table = private_confusion_matrix(truth, guess, labels=[0, 1], epsilon=1.0)
    return table.to_numpy().ravel()


enter(
    {
        "private_score, accuracy": _score_case("accuracy", 20_000),
        "private_confusion_matrix": _scores_case(_confused),
    }
)


@audited("quality_report")
def _() -> AuditCase:
    # Most records lie far from the synthetic rows, as does the one that is removed.
    rows = _PLANE_ROWS.iloc[[0, *[3] * 7]].reset_index(drop=True)

    def report(records: Any) -> Any:
        found = quality_report(records, rows[:1], domain=_PLANE, epsilon=1.0)
        tables = (found.scores, found.columns)
        return np.concatenate([table.iloc[:, 1:].to_numpy(float).ravel() for table in tables])

    return last_gone(report, rows, epsilon=1.0, n_trials=3_000)
