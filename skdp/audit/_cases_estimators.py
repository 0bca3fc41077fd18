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
from ._cases import AuditCase, audited, synopsis_features

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


def line_case(estimator: Any, **trials: Any) -> AuditCase:
    """Case of a synthesizer on one column of four cells."""
    options = {"features": synopsis_features}
    return AuditCase(estimator, _LINE_ROWS, _LINE_ROWS.iloc[:-1], options=options, **trials)


def plane_case(estimator: Any, **trials: Any) -> AuditCase:
    """Case of a synthesizer on two columns of three and two cells."""
    options = {"features": synopsis_features}
    return AuditCase(estimator, _PLANE_ROWS, _PLANE_ROWS.iloc[:-1], options=options, **trials)


def space_case(estimator: Any, copies: int, **trials: Any) -> AuditCase:
    """Case of a synthesizer on three columns, between which there is something to choose."""
    rows = pd.concat([_PLANE_ROWS.assign(z=[0, 0, 1, 1])] * copies, ignore_index=True)
    options = {"features": synopsis_features}
    return AuditCase(estimator, rows, rows.iloc[:-1], options=options, **trials)


@audited("HDPViewSynthesizer")
def _() -> AuditCase:
    return line_case(HDPViewSynthesizer(1.0, domain=_LINE))


@audited("HDPViewSynthesizer, two columns")
def _() -> AuditCase:
    return plane_case(HDPViewSynthesizer(1.0, domain=_PLANE))


@audited("PrivTreeSynthesizer")
def _() -> AuditCase:
    return line_case(PrivTreeSynthesizer(1.0, domain=_LINE))


@audited("PrivTreeSynthesizer, two columns")
def _() -> AuditCase:
    return plane_case(PrivTreeSynthesizer(1.0, domain=_PLANE))


@audited("KDTreeSynthesizer")
def _() -> AuditCase:
    return line_case(KDTreeSynthesizer(1.0, domain=_LINE, xi0=2, xi1=1))


@audited("KDTreeSynthesizer, cells")
def _() -> AuditCase:
    return line_case(KDTreeSynthesizer(1.0, domain=_LINE, strategy="cell"))


@audited("KDTreeSynthesizer, hierarchical")
def _() -> AuditCase:
    return plane_case(KDTreeSynthesizer(1.0, domain=_PLANE, strategy="hierarchical"))


@audited("GridSynthesizer")
def _() -> AuditCase:
    return line_case(GridSynthesizer(1.0, domain=_LINE, rule="uniform"))


@audited("GridSynthesizer, cells")
def _() -> AuditCase:
    return line_case(GridSynthesizer(1.0, domain=_LINE, rule="identity"))


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


@audited("GridSynthesizer, persons")
def _() -> AuditCase:
    return _person_case(GridSynthesizer(1.0, domain=_LINE, rule="identity"))


@audited("MarginalSynthesizer, persons")
def _() -> AuditCase:
    return _person_case(MarginalSynthesizer(1.0, domain=_LINE), n_trials=2_000, quick_trials=180)


def _node_features(histogram: Any) -> Any:
    """All noisy counts of a histogram, without the estimates computed from them."""
    return "", histogram.noisy_counts_


def _bucket_features(histogram: Any) -> Any:
    """The buckets, and the counts of all nodes of the tree over them."""
    tree = histogram.tree_
    shape = f"{histogram.codes_.tolist()} {tree.lower.tolist()} {tree.upper.tolist()}"
    return shape, histogram.noisy_counts_


def _histogram_case(features: Any = _node_features, **parameters: Any) -> AuditCase:
    histogram = RangeTreeHistogram(1.0, domain=_LINE, **parameters)
    options = {"features": features}
    return AuditCase(histogram, _LINE_ROWS, _LINE_ROWS.iloc[:-1], options=options)


@audited("RangeTreeHistogram")
def _() -> AuditCase:
    return _histogram_case()


@audited("RangeTreeHistogram, every level")
def _() -> AuditCase:
    # A record is in several nodes: only their counts together show its cost.
    return _histogram_case(branching=2, budget="uniform")


@audited("RangeTreeHistogram, adaptive")
def _() -> AuditCase:
    return _histogram_case(_bucket_features, partition="adaptive")


@audited("RangeTreeHistogram, dawa")
def _() -> AuditCase:
    # The buckets are released too: which there are is compared first.
    return _histogram_case(_bucket_features, partition="dawa")


@audited("RangeTreeHistogram, ahp")
def _() -> AuditCase:
    return _histogram_case(_bucket_features, partition="ahp")


@audited("PrivateStandardScaler")
def _() -> AuditCase:
    def features(scaler: Any) -> Any:
        return np.array([scaler.mean_[0], scaler.scale_[0]])

    return AuditCase(
        PrivateStandardScaler(1.0, bounds=(0, 4)),
        _LINE_ROWS,
        _LINE_ROWS.iloc[:-1],
        options={"features": features},
    )


@audited("PrivateQuantileClipper")
def _() -> AuditCase:
    def features(clipper: Any) -> Any:
        return np.array([clipper.lower_[0], clipper.upper_[0]])

    return AuditCase(
        PrivateQuantileClipper(1.0, bounds=(0, 4), quantiles=(0.25, 0.75)),
        _LINE_ROWS,
        _LINE_ROWS.iloc[:-1],
        options={"features": features},
    )


def _grid_features(release: Any) -> Any:
    """The grid as a label, and all noisy counts of its cells."""
    return str(release.grid_), release.noisy_counts_.ravel()


def _grid_case(estimator: Any, **options: Any) -> AuditCase:
    # Enough records for grids of several cells to be candidates. The last record is removed; its
    # label is rare in its cell.
    rows = pd.DataFrame({"x": [0.5] * 15 + [2.5] * 15, "s": ["a"] * 14 + ["b"] * 15 + ["a"]})
    features = {"features": _grid_features}
    return AuditCase(
        estimator(1.0, domain=_PLANE, target="s", **options),
        rows,
        rows.iloc[:-1],
        options=features,
    )


@audited("PrivPfCTransformer")
def _() -> AuditCase:
    return _grid_case(PrivPfCTransformer)


@audited("PrivPfCTransformer, as in the paper")
def _() -> AuditCase:
    return _grid_case(PrivPfCTransformer, selection="paper")


@audited("PrivPfCClassifier")
def _() -> AuditCase:
    return _grid_case(PrivPfCClassifier)


@audited("DiffGenTransformer")
def _() -> AuditCase:
    return _grid_case(DiffGenTransformer, n_specializations=2)


@audited("ProjectedHistogramTransformer")
def _() -> AuditCase:
    return _grid_case(ProjectedHistogramTransformer, n_attributes=1)


def _additive_features(model: Any) -> Any:
    """All functions of a model."""
    scores = [shape.scores.ravel() for shape in model.shape_functions_.values()]
    return "", np.concatenate([np.atleast_1d(model.intercept_), *scores])


@audited("PrivateAdditiveClassifier")
def _() -> AuditCase:
    return AuditCase(
        PrivateAdditiveClassifier(1.0, domain=_PLANE, target="s"),
        _PLANE_ROWS,
        _PLANE_ROWS.iloc[:-1],
        options={"features": _additive_features},
    )


@audited("PrivateAdditiveRegressor")
def _() -> AuditCase:
    return AuditCase(
        PrivateAdditiveRegressor(1.0, domain=_SPACE.select(["x", "z"]), target="x"),
        _PLANE_ROWS.assign(z=[0, 1, 0, 1])[["x", "z"]],
        _PLANE_ROWS.assign(z=[0, 1, 0, 1])[["x", "z"]].iloc[:-1],
        options={"features": _additive_features},
    )


def _tree_features(tree: Any) -> Any:
    """Splits of a tree as text, and its counts."""
    nodes = tree.model.nodes
    shape = [None if node is None else (node.column, *node.children.tolist()) for node in nodes]
    return str(shape), tree.model.class_counts.ravel()


@audited("PrivateDecisionTreeClassifier")
def _() -> AuditCase:
    return AuditCase(
        PrivateDecisionTreeClassifier(1.0, domain=_PLANE, target="s", max_depth=1, prune=False),
        _PLANE_ROWS,
        _PLANE_ROWS.iloc[:-1],
        options={"features": lambda model: _tree_features(model.tree_)},
    )


@audited("PrivateDecisionTreeClassifier, id3")
def _() -> AuditCase:
    return AuditCase(
        PrivateDecisionTreeClassifier(1.0, domain=_PLANE, target="s", algorithm="id3", max_depth=1),
        _PLANE_ROWS,
        _PLANE_ROWS.iloc[:-1],
        options={"features": lambda model: _tree_features(model.tree_)},
    )


@audited("PrivateRandomForestClassifier")
def _() -> AuditCase:
    def features(model: Any) -> Any:
        found = [_tree_features(tree) for tree in model.trees_]
        return "".join(text for text, _ in found), np.concatenate([each for _, each in found])

    return AuditCase(
        PrivateRandomForestClassifier(1.0, domain=_PLANE, target="s", rows="apart", max_depth=1),
        _PLANE_ROWS,
        _PLANE_ROWS.iloc[:-1],
        options={"features": features},
    )


def _coefficients(model: Any) -> Any:
    return "", np.concatenate([np.ravel(model.intercept_), np.ravel(model.coef_)])


def _linear_case(estimator: Any, target: str, **options: Any) -> AuditCase:
    return AuditCase(
        estimator(1.0, domain=_PLANE, target=target, **options),
        _PLANE_ROWS,
        _PLANE_ROWS.iloc[:-1],
        options={"features": _coefficients},
    )


@audited("PrivateLinearRegression")
def _() -> AuditCase:
    return _linear_case(PrivateLinearRegression, "x")


@audited("PrivateLinearRegression, functional")
def _() -> AuditCase:
    return _linear_case(PrivateLinearRegression, "x", solver="functional")


@audited("PrivateRidge")
def _() -> AuditCase:
    return _linear_case(PrivateRidge, "x", alpha=2)


@audited("PrivateLogisticRegression")
def _() -> AuditCase:
    return _linear_case(PrivateLogisticRegression, "s")


@audited("PrivateLogisticRegression, functional")
def _() -> AuditCase:
    return _linear_case(PrivateLogisticRegression, "s", solver="functional")


@audited("PrivateLogisticRegression, local search")
def _() -> AuditCase:
    return _linear_case(PrivateLogisticRegression, "s", solver="local-search")


@audited("PrivateLinearSVC")
def _() -> AuditCase:
    return _linear_case(PrivateLinearSVC, "s", solver="genetic")


@audited("PrivateNaiveBayes")
def _() -> AuditCase:
    def features(model: Any) -> Any:
        tables = [each.ravel() for each in model.feature_log_prob_.values()]
        return "", np.concatenate([model.class_log_prior_, *tables])

    return AuditCase(
        PrivateNaiveBayes(1.0, domain=_PLANE, target="s"),
        _PLANE_ROWS,
        _PLANE_ROWS.iloc[:-1],
        options={"features": features},
    )


class _Largest(BaseEstimator):
    """The worst that an output can do: it jumps from one end of the range to the other."""

    def fit(self, X: Any, y: Any = None) -> _Largest:
        self.found_ = float(np.max(X) > 2)
        return self


def _aggregate_case(how: str) -> AuditCase:
    rows = _PLANE_ROWS[["x"]]
    return AuditCase(
        SampleAggregate(
            _Largest(), 1.0, (0, 1), None if how == "mean" else 2, output="found_", aggregate=how
        ),
        rows,
        rows.iloc[:-1],
        options={"features": lambda model: (str(model.n_blocks_), np.atleast_1d(model.value_))},
    )


@audited("SampleAggregate")
def _() -> AuditCase:
    return _aggregate_case("mean")


@audited("SampleAggregate, winsorised")
def _() -> AuditCase:
    return _aggregate_case("winsorised")


@audited("PrivatePCA")
def _() -> AuditCase:
    return AuditCase(
        PrivatePCA(epsilon=1.0, domain=_SPACE.select(["x", "z"])),
        _PLANE_ROWS.assign(z=[0, 1, 0, 1])[["x", "z"]],
        _PLANE_ROWS.assign(z=[0, 1, 0, 1])[["x", "z"]].iloc[:-1],
        options={"features": lambda pca: ("", np.append(pca.mean_, pca.covariance_))},
    )


@audited("DPTopKSelector")
def _() -> AuditCase:
    # One column is right and one constant; without the last record the lead is smaller.
    rows = pd.DataFrame({"u": [0] * 4 + [1] * 4, "v": 0, "y": [0] * 4 + [1] * 4})
    domain = Domain({name: Numeric(0, 1, integer=True) for name in "uv"} | {"y": _LABEL})
    estimator = DPTopKSelector(1, 1.0, domain=domain, target="y")
    options = {"features": lambda fitted: (tuple(fitted.selected_), *fitted.label_counts_)}
    return AuditCase(estimator, rows, rows.iloc[:-1], options=options)


def _cube_features(cube: DataCube) -> Any:
    """Everything that a cube has measured."""
    return "", np.concatenate([table.ravel() for table in cube.sources_.values()])


@audited("DataCube")
def _() -> AuditCase:
    # Two sources: the record in one cell of each shifts both, and both budgets must count.
    cube = DataCube(1.0, domain=_LINE, strategy={"x": 1, (): 1})
    options = {"features": _cube_features}
    return AuditCase(cube, _LINE_ROWS, _LINE_ROWS.iloc[:-1], options=options)


@audited("DataCube, sums")
def _() -> AuditCase:
    return _summing_cube("sum", 3.0)


@audited("DataCube, means")
def _() -> AuditCase:
    # A record between the ends adds to both tables.
    return _summing_cube("mean", 1.0)


def _summing_cube(measure: str, value: float) -> AuditCase:
    cube = DataCube(1.0, domain=_PLANE, strategy="base", measure=measure, value="x", resolution=1)
    # A record with the largest possible contribution.
    rows = pd.DataFrame({"x": [1.0, value], "s": ["a", "b"]})
    options = {"features": _cube_features}
    return AuditCase(cube, rows, rows.iloc[:-1], options=options)


def _view_features(estimator: Any) -> Any:
    """All facts and numbers of a model but the rows, which are drawn from the others."""
    facts, arrays = synopsis_features(estimator)
    drawn = ("rows", "row_weights")
    return facts, {name: array for name, array in arrays.items() if name not in drawn}


def _marginal_case(copies: int, **parameters: Any) -> AuditCase:
    # A fit takes a tenth of a second.
    estimator = MarginalSynthesizer(1.0, domain=_SPACE, **parameters)
    case = space_case(estimator, copies, n_trials=2_000, quick_trials=180)
    return replace(case, options={"features": _view_features})


@audited("MarginalSynthesizer")
def _() -> AuditCase:
    return _marginal_case(600)


@audited("MarginalSynthesizer, few records")
def _() -> AuditCase:
    return _marginal_case(1)


@audited("MarginalSynthesizer, one column")
def _() -> AuditCase:
    estimator = MarginalSynthesizer(1.0, domain=_LINE)
    case = line_case(estimator, n_trials=2_000, quick_trials=180)
    return replace(case, options={"features": _view_features})


@audited("MarginalSynthesizer, two columns")
def _() -> AuditCase:
    estimator = MarginalSynthesizer(1.0, domain=_PLANE)
    case = plane_case(estimator, n_trials=2_000, quick_trials=180)
    return replace(case, options={"features": _view_features})


@audited("MarginalSynthesizer, rules")
def _() -> AuditCase:
    # One cell is empty by a public rule.
    domain = Domain(_PLANE_COLUMNS, structure=[forbid("x >= 2 and s == 'a'")])
    estimator = MarginalSynthesizer(1.0, domain=domain)
    case = plane_case(estimator, n_trials=2_000, quick_trials=180)
    return replace(case, options={"features": _view_features})


@audited("MarginalSynthesizer, coarse tables of pairs")
def _() -> AuditCase:
    return _marginal_case(600, max_order=2)


@audited("MarginalSynthesizer, target")
def _() -> AuditCase:
    case = _marginal_case(600, target="s", max_order=2)
    X, y = case.dataset.drop(columns="s"), case.dataset["s"]
    return replace(case, dataset=(X, y), neighbour=(X.iloc[:-1], y.iloc[:-1]))


@audited("MarginalSynthesizer, MST")
def _() -> AuditCase:
    return _marginal_case(600, plan="mst")


@audited("MarginalSynthesizer, AIM")
def _() -> AuditCase:
    return _marginal_case(600, plan="aim", max_order=2)


@audited("PrivBayesSynthesizer")
def _() -> AuditCase:
    # A network without a choice: the total and two tables.
    return plane_case(PrivBayesSynthesizer(1.0, domain=_PLANE), n_trials=10_000)


@audited("PrivBayesSynthesizer, hierarchical")
def _() -> AuditCase:
    # So small tables that a parent is taken in groups.
    estimator = PrivBayesSynthesizer(1.0, domain=_PLANE, encoding="hierarchical", theta=0.2)
    return plane_case(estimator, n_trials=10_000)


def _three_columns() -> pd.DataFrame:
    """Records of three columns of two codes, of which two agree but in the last record."""
    same = pd.DataFrame({"x": [0, 1] * 6, "y": [0, 1] * 6, "z": [0, 0, 1, 1] * 3})
    return pd.concat([same, pd.DataFrame({"x": [0], "y": [1], "z": [0]})], ignore_index=True)


def _network_case(score_function: str) -> AuditCase:
    """Case in which the network is chosen; theta is so small that tables of two columns fit."""
    domain = Domain(dict.fromkeys("xyz", _LABEL))
    estimator = PrivBayesSynthesizer(
        1.0, domain=domain, score_function=score_function, beta=0.9, theta=0.01, max_cells=4
    )
    rows = _three_columns()
    return AuditCase(estimator, rows, rows.iloc[:-1], options={"features": _edges}, n_trials=10_000)


def _edges(estimator: Any) -> Any:
    """The edges of the network, and the total."""
    model = estimator.synopsis_.model
    return tuple(sorted(model.pairs)), float(model.total)


@audited("PrivBayesSynthesizer, network")
def _() -> AuditCase:
    return _network_case("R")


@audited("PrivBayesSynthesizer, network by F")
def _() -> AuditCase:
    return _network_case("F")


@audited("PrivBayesSynthesizer, network by mutual information")
def _() -> AuditCase:
    return _network_case("mutual_information")


def _centroid_features(estimator: Any) -> Any:
    """Centroids, their noisy counts, and the noisy grid, if there are any."""
    counts, synopsis = estimator.cluster_counts_, estimator.synopsis_
    return (
        estimator.cluster_centers_.ravel(),
        counts,
        None if synopsis is None else synopsis_features(estimator),
    )


def _k_means_case(algorithm: str, **parameters: Any) -> AuditCase:
    # The record that is removed is alone in its cluster.
    rows = np.array([[-0.5]] * 4 + [[0.75]])
    estimator = DPKMeans(2, 1.0, bounds=(-1, 1), algorithm=algorithm, **parameters)
    options = {"features": _centroid_features}
    return AuditCase(estimator, rows, rows[:-1], options=options)


_STARTS = [[-0.5], [0.5]]


@audited("DPKMeans")
def _() -> AuditCase:
    return _k_means_case("auto", n_init=2)


@audited("DPKMeans, a grid and a round")
def _() -> AuditCase:
    # A round follows if many records are declared; the declared number need not be true.
    return _k_means_case("auto", n_init=2, n_samples=200)


@audited("DPKMeans, narrow ranges")
def _() -> AuditCase:
    # All records are in one bin, which is divided again.
    rows = np.full((1_000, 1), 0.3)

    def released(estimator: Any) -> Any:
        return np.append(estimator.cluster_centers_.ravel(), estimator.cluster_counts_)

    estimator = DPKMeans(1, 1.0, bounds=(-100, 100), n_init=2, n_samples=1_000)
    return AuditCase(estimator, rows, rows[:-1], options={"features": released}, n_trials=1_000)


@audited("DPKMeans, a tree and a round")
def _() -> AuditCase:
    # Nearly every release has different boxes, so only results computed from them are compared.
    def released(estimator: Any) -> Any:
        return np.append(estimator.cluster_centers_.ravel(), estimator.cluster_counts_)

    case = _k_means_case("auto", n_init=2, n_samples=2_000)
    return replace(case, options={"features": released})


@audited("DPKMeans, many columns")
def _() -> AuditCase:
    # Columns are projected; the record that is removed is alone in its cluster.
    rows = np.tile([[-0.5]] * 4 + [[0.75]], (1, 51))

    def released(estimator: Any) -> Any:
        return np.append(estimator.cluster_centers_.mean(axis=1), estimator.cluster_counts_)

    estimator = DPKMeans(2, 1.0, bounds=(-1, 1), n_init=2, n_samples=100)
    return AuditCase(estimator, rows, rows[:-1], options={"features": released}, n_trials=1_000)


@audited("DPKMeans, choice of k")
def _() -> AuditCase:
    case = _k_means_case("auto", n_init=2)
    return replace(case, mechanism=case.mechanism.set_params(n_clusters=[2, 3]))


@audited("DPKMeans, lloyd")
def _() -> AuditCase:
    return _k_means_case("lloyd", init=_STARTS, n_rounds=2)


@audited("DPKMeans, lloyd-improved")
def _() -> AuditCase:
    return _k_means_case("lloyd-improved", init=_STARTS)


@audited("DPKMeans, uniform-grid")
def _() -> AuditCase:
    return _k_means_case("uniform-grid", n_init=2)


@audited("DPKMeans, m-estimator")
def _() -> AuditCase:
    return _k_means_case("m-estimator", n_init=2)


@audited("DPKMeans, extended-grid")
def _() -> AuditCase:
    return _k_means_case("extended-grid", n_init=2)


@audited("DPKMeans, hybrid")
def _() -> AuditCase:
    return _k_means_case("hybrid", n_init=2)


@audited("DPKMeans, sample-aggregate")
def _() -> AuditCase:
    return _k_means_case("sample-aggregate")


@audited("DPKMeans, genetic")
def _() -> AuditCase:
    return replace(_k_means_case("genetic"), n_trials=3_000)


def _probabilities(estimator: Any) -> Any:
    return estimator.predict_proba(pd.DataFrame({"x": [0.5, 1.5, 2.5]})).ravel()


@audited("PrivateClassifier")
def _() -> AuditCase:
    release = HDPViewSynthesizer(1.0, domain=_PLANE, target="s")
    return AuditCase(
        PrivateClassifier(DecisionTreeClassifier(max_depth=2), release),
        (_PLANE_ROWS[["x"]], _PLANE_ROWS["s"]),
        (_PLANE_ROWS[["x"]].iloc[:-1], _PLANE_ROWS["s"].iloc[:-1]),
        1.0,
        n_trials=4_000,
        options={"features": _probabilities},
    )


@audited("PrivateClassifier, default")
def _() -> AuditCase:
    return AuditCase(
        PrivateClassifier(epsilon=1.0, domain=_PLANE, target="s"),
        (_PLANE_ROWS[["x"]], _PLANE_ROWS["s"]),
        (_PLANE_ROWS[["x"]].iloc[:-1], _PLANE_ROWS["s"].iloc[:-1]),
        1.0,
        n_trials=2_000,
        options={"features": _probabilities},
    )


@audited("PrivateRegressor, default")
def _() -> AuditCase:
    return AuditCase(
        PrivateRegressor(epsilon=1.0, domain=_PLANE, target="x"),
        (_PLANE_ROWS[["s"]], _PLANE_ROWS["x"]),
        (_PLANE_ROWS[["s"]].iloc[:-1], _PLANE_ROWS["x"].iloc[:-1]),
        1.0,
        n_trials=2_000,
        options={"features": lambda model: model.predict(pd.DataFrame({"s": ["a", "b"]}))},
    )


def _search_case(strategy: str, choice: float, epsilon: float, **params: Any) -> AuditCase:
    # The candidates predict one label each if the release has both labels, so only the choice
    # between them varies.
    search = PrivateGridSearchCV(
        PrivateClassifier(
            DecisionTreeClassifier(max_depth=1),
            HDPViewSynthesizer(0.2, domain=_PLANE, target="s"),
        ),
        {"estimator__class_weight": [{"a": 1e9, "b": 1}, {"a": 1, "b": 1e9}]},
        epsilon=choice,
        strategy=strategy,
        **params,
    )
    rows = pd.DataFrame({"x": [1.5] * 78})
    labels = pd.Series(["a"] * 37 + ["b"] * 41)
    return AuditCase(
        search,
        (rows, labels),
        (rows[:-1], labels[:-1]),
        epsilon,
        n_trials=1_500,
        quick_trials=300,
        options={"features": lambda search: search.best_index_},
    )


@audited("PrivateGridSearchCV")
def _() -> AuditCase:
    return _search_case("noisy-max", 1.0, 1.2)


@audited("PrivateGridSearchCV, random-stopping")
def _() -> AuditCase:
    # Three times the fit, of which every run makes one.
    return _search_case("random-stopping", 0.5, 1.1, eta=1, runs=3)


@audited("PrivateGridSearchCV, halving")
def _() -> AuditCase:
    # Two candidates at half their epsilon, and the winner.
    return _search_case("halving", 0.5, 0.9)


def _conformal_case(make: Callable[..., Any], X: Any, y: Any) -> AuditCase:
    # The row that is removed is the only one that the model does not predict.
    return AuditCase(
        lambda data: make(epsilon=1.0, confidence_level=[0.2, 0.5]).conformalize(*data).thresholds_,
        (X, y),
        (X[:-1], y[:-1]),
        1.0,
        n_trials=2_000,
        quick_trials=200,
    )


@audited("PrivateConformalClassifier")
def _() -> AuditCase:
    X, y = np.zeros((30, 1)), np.array([0] * 29 + [1])
    model = DummyClassifier(strategy="constant", constant=0).fit(np.zeros((2, 1)), [0, 1])
    return _conformal_case(partial(PrivateConformalClassifier, model), X, y)


@audited("PrivateConformalRegressor")
def _() -> AuditCase:
    X, y = np.zeros((30, 1)), np.array([0.0] * 29 + [1.0])
    model = DummyRegressor(strategy="constant", constant=0.0).fit(X, y)
    return _conformal_case(partial(PrivateConformalRegressor, model, bounds=(0, 1)), X, y)


def _score_case(score: Callable[..., Any], n_trials: int = 20_000) -> AuditCase:
    # The record that is removed was predicted wrongly, by the whole range.
    truth, guess = np.array([0, 1, 0, 1, 0]), np.array([0, 1, 0, 1, 1])
    return AuditCase(
        lambda data: score(*data),
        (truth, guess),
        (truth[:-1], guess[:-1]),
        1.0,
        n_trials=n_trials,
        quick_trials=n_trials // 10,
    )


@audited("private_score, accuracy")
def _() -> AuditCase:
    def score(truth: Any, guess: Any) -> Any:
        result = private_score(truth, guess, "accuracy", epsilon=1.0)
        return np.array([result.value, result.lower, result.upper])

    return _score_case(score)


@audited("private_confusion_matrix")
def _() -> AuditCase:
    def score(truth: Any, guess: Any) -> Any:
        table = private_confusion_matrix(truth, guess, labels=[0, 1], epsilon=1.0)
        return table.to_numpy().ravel()

    return _score_case(score)


def _numbers_of(result: Any) -> Any:
    return np.array([result.value, result.lower, result.upper])


@audited("private_score, roc_auc")
def _() -> AuditCase:
    return _score_case(
        lambda truth, guess: _numbers_of(
            private_score(truth, guess, "roc_auc", epsilon=1.0, score_range=(-1, 2))
        ),
        n_trials=5_000,
    )


@audited("private_score, f1")
def _() -> AuditCase:
    return _score_case(
        lambda truth, guess: _numbers_of(private_score(truth, guess, "f1", epsilon=1.0)),
        n_trials=5_000,
    )


@audited("private_score, log_loss")
def _() -> AuditCase:
    return _score_case(
        lambda truth, guess: _numbers_of(private_score(truth, guess, "log_loss", epsilon=1.0)),
        n_trials=5_000,
    )


@audited("private_score, r2")
def _() -> AuditCase:
    return _score_case(
        lambda truth, guess: _numbers_of(
            private_score(truth, guess, "r2", bounds=(0, 1), epsilon=1.0)
        ),
        n_trials=5_000,
    )


@audited("private_score_report")
def _() -> AuditCase:
    class Same(BaseEstimator):
        """Predicts the only column."""

        def fit(self, X: Any, y: Any = None) -> Any:
            return self

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def predict(self, X: Any) -> Any:
            return X[:, 0]

    def score(truth: Any, guess: Any) -> Any:
        report = private_score_report(
            Same(), guess[:, None], truth, bounds=(0, 1), epsilon=1.0, trained_elsewhere=True
        )
        return np.array([float(report[name]) for name in report.metrics])

    return _score_case(score, n_trials=5_000)


@audited("private_score, mean_squared_error")
def _() -> AuditCase:
    def score(truth: Any, guess: Any) -> Any:
        result = private_score(truth, guess, "mean_squared_error", bounds=(0, 1), epsilon=1.0)
        return np.array([result.value, result.lower, result.upper])

    return _score_case(score)


@audited("quality_report")
def _() -> AuditCase:
    # Most records lie far from the synthetic rows, as does the one that is removed.
    rows = _PLANE_ROWS.iloc[[0, *[3] * 7]].reset_index(drop=True)

    def report(records: Any) -> Any:
        found = quality_report(records, rows[:1], domain=_PLANE, epsilon=1.0)
        assert isinstance(found, PrivateQualityReport)
        tables = (found.scores, found.columns)
        return np.concatenate([table.iloc[:, 1:].to_numpy(float).ravel() for table in tables])

    return AuditCase(report, rows, rows[:-1], 1.0, n_trials=3_000, quick_trials=300)
