"""The cases of an audit of the library: one of each mechanism and each estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from ..mechanisms import (
    SparseVector,
    above_threshold,
    bounded_sum,
    choose_buckets,
    discrete_laplace,
    exponential,
    geometric,
    noisy_max,
    permute_and_flip,
    select_on_line,
    sparse_counts,
    sparse_vector_top_k,
    top_k,
)
from ..model_selection import PrivateGridSearchCV, private_confusion_matrix, private_score
from ..naive_bayes import PrivateNaiveBayes
from ..preprocessing import PrivateQuantileClipper, PrivateStandardScaler, private_quantiles
from ..quality import quality_report
from ..sample_aggregate import SampleAggregate
from ..selection import DPTopKSelector, most_frequent_items
from ..synthesis import (
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
)
from ..tree import PrivateDecisionTreeClassifier, PrivateRandomForestClassifier


@dataclass(frozen=True)
class AuditCase:
    """What to audit, and how thoroughly.

    Attributes
    ----------
    mechanism : callable or estimator
    dataset, neighbour : object
    epsilon : number, optional
        The claim; None takes the estimator's.
    n_trials : int
        Trials on each data set in a full run.
    options : mapping
        Further arguments of `audit`.
    replays : bool
        Whether it can be replayed; False for bare noise, which a replay cannot follow.
    """

    mechanism: Any
    dataset: Any
    neighbour: Any
    epsilon: Any = None
    n_trials: int = 5_000
    options: Mapping[str, Any] = field(default_factory=dict)
    replays: bool = True

    @property
    def quick_trials(self) -> int:
        """Trials on each data set in a quick run: a tenth, and at least 300."""
        return max(self.n_trials // 10, 300)


# --- mechanisms: noise, selections, and sparse vectors

_ANSWERS, _RECORDS = {"relation": "answers"}, {"relation": "records"}


def _at_once(mechanism: Callable[[Any, int], Any], data: Any, neighbour: Any) -> AuditCase:
    """Case of a mechanism on arrays, which draws a million trials at once."""
    return AuditCase(mechanism, data, neighbour, 1.0, 1_000_000, {"vectorised": True})


def _selecting(
    select: Callable[[list[int]], Any], data: Any = (3, 0), neighbour: Any = (4, 0)
) -> AuditCase:
    """Case of a selection: the second score's probability changes by nearly the whole factor."""
    return AuditCase(select, list(data), list(neighbour), 1.0, 200_000)


def _noisy_max(scores: list[int], n: int) -> Any:
    starts = np.arange(n) * len(scores)
    return noisy_max(np.tile(scores, n), 1.0, 1, starts=starts) - starts


def _buckets(costs: Any) -> str:
    return str(choose_buckets(np.split(costs, [4, 7]), 4, 1.0, 1).tolist())


def _cells(cells: Any) -> Any:
    found, noisy = sparse_counts(cells, np.ones(len(cells), dtype=int), (2, 2), 1.0, 1)
    return found.tolist(), noisy.tolist()


def _stream(answers: list[int]) -> Any:
    vector = SparseVector(1.0, 3, 1)
    vector.query_many(answers)
    return vector.positives.tolist(), vector.gap


def _items(baskets: list[list[str]]) -> Any:
    found = most_frequent_items(baskets, 2, ["a", "b", "c"], epsilon=1.0, max_items=2)
    return tuple(found["item"]), tuple(found["count"])


_BASKETS = [["a"], ["a"], ["a", "b"], ["b"]]

_MECHANISMS: dict[str, Callable[[], AuditCase]] = {
    "discrete_laplace": lambda: _at_once(
        lambda count, n: discrete_laplace(np.full(n, count), 1.0), 0, 1
    ),
    "above_threshold": lambda: _at_once(
        lambda count, n: above_threshold(np.full(n, count), 1.0, 0), 0, 1
    ),
    # One-sided noise protects where the largest of several noisy scores is reported.
    "geometric": lambda: AuditCase(
        lambda scores, n: np.argmax(np.add(scores, geometric((n, 2), 1.0)), axis=1),
        [3, 0], [4, 0], 1.0, 1_000_000, {"vectorised": True}, replays=False,
    ),
    "noisy_max": lambda: _at_once(_noisy_max, [3, 0], [4, 0]),
    # Costs of counts 1, 1, 0, 0 and of one record more in the first bin: the costs of the buckets
    # that hold it rise by one, and that of [1, 3) does not change.
    "choose_buckets": lambda: AuditCase(
        _buckets, np.array([0, 0, 0, 0, 0, 1, 0, 2]), np.array([0, 0, 0, 0, 1, 1, 0, 3]), 1.0,
        200_000, _ANSWERS,
    ),
    "exponential": lambda: _selecting(lambda scores: exponential(scores, 1.0, 1)),
    "permute_and_flip": lambda: _selecting(lambda scores: permute_and_flip(scores, 1.0, 1)),
    "select_on_line": lambda: _selecting(
        lambda scores: select_on_line([0, 2], scores, 4, 1.0, 1)
    ),
    "bounded_sum": lambda: AuditCase(
        lambda records: bounded_sum(records, -1, 2, 1.0, resolution=0.5),
        np.array([0.5, 1.0]), np.array([0.5, 1.0, 2.0]), 1.0, 100_000, _RECORDS,
    ),
    # The two best scores move, the others stay: their chance of selection changes by e.
    "top_k": lambda: _selecting(
        lambda scores: top_k(scores, 2, 1.0, 1), (4, 4, 0, 0), (5, 5, 0, 0)
    ),
    # The record more is alone in its cell.
    "sparse_counts": lambda: AuditCase(
        _cells, np.array([[0, 1], [0, 1]]), np.array([[0, 1], [0, 1], [1, 0]]), 1.0, 50_000,
        _RECORDS,
    ),
    # Answers just below the threshold, then one just above it: together the negative ones reveal
    # the most, and they cost the most if the noise of the threshold does not cover them.
    "SparseVector": lambda: AuditCase(
        _stream, [0] * 8 + [3], [1] * 8 + [2], 1.0, 50_000, _ANSWERS
    ),
    "sparse_vector_top_k": lambda: AuditCase(
        lambda answers: sparse_vector_top_k(
            answers, 1, 1.0, 4, monotonic=True, max_passes=3
        ).tolist(),
        [0] * 4 + [4], [1] * 4 + [4], 1.0, 50_000, _ANSWERS,
    ),
    # One person has the rare item c.
    "most_frequent_items": lambda: AuditCase(
        _items, _BASKETS, [*_BASKETS, ["b", "c"]], 1.0, 20_000, _RECORDS
    ),
    "private_quantiles": lambda: AuditCase(
        lambda values: int(
            private_quantiles(values, 0.5, epsilon=1.0, domain=(0, 9), step=1).values[0]
        ),
        [4, 4, 4], [4, 4, 4, 9], 1.0, 50_000, _RECORDS,
    ),
}  # fmt: skip

# --- estimators and private scores, on a few records, where one of them changes most

_LABEL = Categorical([0, 1])
_LINE = Domain({"x": Numeric(0, 4, bins=4)})
_PLANE = Domain({"x": Numeric(0, 3, bins=3), "s": Categorical(["a", "b"])})
_SPACE = _PLANE.with_attribute("z", Numeric(0, 1, integer=True))
_NUMBERS = _SPACE.select(["x", "z"])
_LINE_ROWS = pd.DataFrame({"x": [0.5, 0.5, 0.5, 2.5]})
_PLANE_ROWS = _LINE_ROWS.assign(s=["a", "a", "b", "b"])
_SPACE_ROWS = _PLANE_ROWS.assign(z=[0, 0, 1, 1])
_NUMBERS_ROWS = _LINE_ROWS.assign(z=[0, 1, 0, 1])
_LABELLED = _PLANE_ROWS[["x"]], _PLANE_ROWS["s"]
# Enough records for grids of several cells to be candidates. The last record is removed; its label
# is rare in its cell.
_GRID_ROWS = pd.DataFrame({"x": [0.5] * 15 + [2.5] * 15, "s": ["a"] * 14 + ["b"] * 15 + ["a"]})
# One column is right and one constant; without the last record the lead is smaller.
_SELECTED_ROWS = pd.DataFrame({"u": [0] * 4 + [1] * 4, "v": 0, "y": [0] * 4 + [1] * 4})
_SELECTED = Domain({name: Numeric(0, 1, integer=True) for name in "uv"} | {"y": _LABEL})
# The record that is removed was predicted wrongly, by the whole range.
_GUESSED = np.array([0, 1, 0, 1, 0]), np.array([0, 1, 0, 1, 1])


def last_gone(mechanism: Any, data: Any, n_trials: int = 5_000, epsilon: Any = None) -> AuditCase:
    """Case of a mechanism on rows, or on a pair of rows and labels, with and without the last."""
    less = tuple(part[:-1] for part in data) if isinstance(data, tuple) else data[:-1]
    return AuditCase(mechanism, data, less, epsilon, n_trials)


class _Largest(BaseEstimator):
    """The worst that an output can do: it jumps from one end of the range to the other."""

    def fit(self, X: Any, y: Any = None) -> _Largest:
        self.found_ = float(np.max(X) > 2)
        return self


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
    less = tuple(part[:-1] for part in data)
    options = {"features": lambda fitted: fitted.best_index_}
    return AuditCase(search, data, less, 1.2, 1_500, options)


def _accuracy(data: Any) -> Any:
    truth, guess = data
    result = private_score(truth, guess, "accuracy", epsilon=1.0)
    return result.value, result.lower, result.upper


def _confusion(data: Any) -> Any:
    return private_confusion_matrix(*data, labels=[0, 1], epsilon=1.0).to_numpy()


def _quality(records: Any) -> Any:
    found = quality_report(records, _PLANE_ROWS[:1], domain=_PLANE, epsilon=1.0)
    return [table.iloc[:, 1:].to_numpy(float) for table in (found.scores, found.columns)]


_LINES: dict[str, Any] = {"epsilon": 1.0, "domain": _LINE}
_PLANES: dict[str, Any] = {"epsilon": 1.0, "domain": _PLANE}
_LABELS = {**_PLANES, "target": "s"}
_ESTIMATORS: dict[str, Callable[[], AuditCase]] = {
    "HDPViewSynthesizer": lambda: last_gone(HDPViewSynthesizer(**_LINES), _LINE_ROWS),
    "PrivTreeSynthesizer": lambda: last_gone(PrivTreeSynthesizer(**_LINES), _LINE_ROWS),
    "KDTreeSynthesizer": lambda: last_gone(
        KDTreeSynthesizer(**_LINES, xi0=2, xi1=1), _LINE_ROWS
    ),
    "GridSynthesizer": lambda: last_gone(GridSynthesizer(**_LINES, rule="uniform"), _LINE_ROWS),
    "RangeTreeHistogram": lambda: last_gone(RangeTreeHistogram(**_LINES), _LINE_ROWS),
    "PrivateStandardScaler": lambda: last_gone(
        PrivateStandardScaler(epsilon=1.0, domain=(0, 4)), _LINE_ROWS
    ),
    "PrivateQuantileClipper": lambda: last_gone(
        PrivateQuantileClipper(epsilon=1.0, domain=(0, 4), quantiles=(0.25, 0.75)), _LINE_ROWS
    ),
    "PrivPfCTransformer": lambda: last_gone(PrivPfCTransformer(**_LABELS), _GRID_ROWS),
    "PrivPfCClassifier": lambda: last_gone(PrivPfCClassifier(**_LABELS), _GRID_ROWS),
    "DiffGenTransformer": lambda: last_gone(
        DiffGenTransformer(**_LABELS, n_specializations=2), _GRID_ROWS
    ),
    "ProjectedHistogramTransformer": lambda: last_gone(
        ProjectedHistogramTransformer(**_LABELS, n_attributes=1), _GRID_ROWS
    ),
    "PrivateAdditiveClassifier": lambda: last_gone(
        PrivateAdditiveClassifier(**_LABELS), _PLANE_ROWS
    ),
    "PrivateAdditiveRegressor": lambda: last_gone(
        PrivateAdditiveRegressor(epsilon=1.0, domain=_NUMBERS, target="x"), _NUMBERS_ROWS
    ),
    "PrivateDecisionTreeClassifier": lambda: last_gone(
        PrivateDecisionTreeClassifier(**_LABELS, max_depth=1, prune=False), _PLANE_ROWS
    ),
    "PrivateRandomForestClassifier": lambda: last_gone(
        PrivateRandomForestClassifier(**_LABELS, max_depth=1), _PLANE_ROWS
    ),
    "PrivateLinearRegression": lambda: last_gone(
        PrivateLinearRegression(**_PLANES, target="x"), _PLANE_ROWS
    ),
    "PrivateRidge": lambda: last_gone(PrivateRidge(**_PLANES, target="x", alpha=2), _PLANE_ROWS),
    "PrivateLogisticRegression": lambda: last_gone(
        PrivateLogisticRegression(**_LABELS), _PLANE_ROWS
    ),
    "PrivateLinearSVC": lambda: last_gone(
        PrivateLinearSVC(**_LABELS, solver="genetic"), _PLANE_ROWS
    ),
    "PrivateNaiveBayes": lambda: last_gone(PrivateNaiveBayes(**_LABELS), _PLANE_ROWS),
    "SampleAggregate": lambda: last_gone(
        SampleAggregate(_Largest(), epsilon=1.0, output_range=(0, 1), output="found_"),
        _PLANE_ROWS[["x"]],
    ),
    "PrivatePCA": lambda: last_gone(PrivatePCA(epsilon=1.0, domain=_NUMBERS), _NUMBERS_ROWS),
    "DPTopKSelector": lambda: last_gone(
        DPTopKSelector(1, epsilon=1.0, domain=_SELECTED, target="y"), _SELECTED_ROWS
    ),
    # Two sources: the record in one cell of each shifts both, and both budgets must count.
    "DataCube": lambda: last_gone(DataCube(**_LINES, strategy={"x": 1, (): 1}), _LINE_ROWS),
    "MarginalSynthesizer": lambda: last_gone(
        MarginalSynthesizer(epsilon=1.0, domain=_SPACE), pd.concat([_SPACE_ROWS] * 600), 2_000
    ),
    # A network without a choice: the total and two tables.
    "PrivBayesSynthesizer": lambda: last_gone(PrivBayesSynthesizer(**_PLANES), _PLANE_ROWS),
    # The record that is removed is alone in its cluster.
    "DPKMeans": lambda: last_gone(
        DPKMeans(2, epsilon=1.0, domain=(-1, 1), n_init=2), np.array([[-0.5]] * 4 + [[0.75]])
    ),
    "PrivateClassifier": lambda: last_gone(
        PrivateClassifier(DecisionTreeClassifier(max_depth=2), HDPViewSynthesizer(**_LABELS)),
        _LABELLED, 4_000, 1.0,
    ),
    "PrivateRegressor, default": lambda: last_gone(
        PrivateRegressor(**_PLANES, target="x"), (_PLANE_ROWS[["s"]], _PLANE_ROWS["x"]), 2_000
    ),
    "PrivateGridSearchCV": _search_case,
    "private_score, accuracy": lambda: last_gone(_accuracy, _GUESSED, 20_000, 1.0),
    "private_confusion_matrix": lambda: last_gone(_confusion, _GUESSED, 20_000, 1.0),
    # Most records lie far from the synthetic rows, as does the one that is removed.
    "quality_report": lambda: last_gone(
        _quality, _PLANE_ROWS.iloc[[0, *[3] * 7]].reset_index(drop=True), 3_000, 1.0
    ),
}  # fmt: skip

#: Name of a mechanism or estimator, perhaps followed by a comma and a variant, to a function that
#: makes its case when it is run.
AUDITS: dict[str, Callable[[], AuditCase]] = {**_MECHANISMS, **_ESTIMATORS}
