"""The cases of an audit of the library: one of each estimator."""

from __future__ import annotations

from collections.abc import Mapping
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
from ..naive_bayes import PrivateNaiveBayes
from ..preprocessing import PrivateQuantileClipper, PrivateStandardScaler
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
    """

    mechanism: Any
    dataset: Any
    neighbour: Any
    epsilon: Any = None
    n_trials: int = 5_000
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def quick_trials(self) -> int:
        """Trials on each data set in a quick run: a tenth, and at least 300."""
        return max(self.n_trials // 10, 300)


def last_gone(mechanism: Any, data: Any, n_trials: int = 5_000, epsilon: Any = None) -> AuditCase:
    """Case of a mechanism on rows, or on a pair of rows and labels, with and without the last."""
    less = tuple(part[:-1] for part in data) if isinstance(data, tuple) else data[:-1]
    return AuditCase(mechanism, data, less, epsilon, n_trials)


# --- a few records, where one of them changes most

LABEL = Categorical([0, 1])
LINE = Domain({"x": Numeric(0, 4, bins=4)})
PLANE = Domain({"x": Numeric(0, 3, bins=3), "s": Categorical(["a", "b"])})
_SPACE = PLANE.with_attribute("z", Numeric(0, 1, integer=True))
_NUMBERS = _SPACE.select(["x", "z"])
LINE_ROWS = pd.DataFrame({"x": [0.5, 0.5, 0.5, 2.5]})
PLANE_ROWS = LINE_ROWS.assign(s=["a", "a", "b", "b"])
_SPACE_ROWS = PLANE_ROWS.assign(z=[0, 0, 1, 1])
_NUMBERS_ROWS = LINE_ROWS.assign(z=[0, 1, 0, 1])
# Enough records for grids of several cells to be candidates. The last record is removed; its label
# is rare in its cell.
_GRID_ROWS = pd.DataFrame({"x": [0.5] * 15 + [2.5] * 15, "s": ["a"] * 14 + ["b"] * 15 + ["a"]})
# One column is right and one constant; without the last record the lead is smaller.
_SELECTED_ROWS = pd.DataFrame({"u": [0] * 4 + [1] * 4, "v": 0, "y": [0] * 4 + [1] * 4})
_SELECTED = Domain({name: Numeric(0, 1, integer=True) for name in "uv"} | {"y": LABEL})
# The record that is removed is alone in its cluster.
_CLUSTERED = np.array([[-0.5]] * 4 + [[0.75]])


class _Largest(BaseEstimator):
    """The worst that an output can do: it jumps from one end of the range to the other."""

    def fit(self, X: Any, y: Any = None) -> _Largest:
        self.found_ = float(np.max(X) > 2)
        return self


_LINES: dict[str, Any] = {"epsilon": 1.0, "domain": LINE}
_PLANES: dict[str, Any] = {"epsilon": 1.0, "domain": PLANE}
_LABELS = {**_PLANES, "target": "s"}


def cases() -> tuple[AuditCase, ...]:
    """One case of each estimator."""
    return (
        last_gone(HDPViewSynthesizer(**_LINES), LINE_ROWS),
        last_gone(PrivTreeSynthesizer(**_LINES), LINE_ROWS),
        last_gone(KDTreeSynthesizer(**_LINES, xi0=2, xi1=1), LINE_ROWS),
        last_gone(GridSynthesizer(**_LINES, rule="uniform"), LINE_ROWS),
        last_gone(RangeTreeHistogram(**_LINES), LINE_ROWS),
        last_gone(PrivateStandardScaler(epsilon=1.0, domain=(0, 4)), LINE_ROWS),
        last_gone(
            PrivateQuantileClipper(epsilon=1.0, domain=(0, 4), quantiles=(0.25, 0.75)), LINE_ROWS
        ),
        last_gone(PrivPfCTransformer(**_LABELS), _GRID_ROWS),
        last_gone(PrivPfCClassifier(**_LABELS), _GRID_ROWS),
        last_gone(DiffGenTransformer(**_LABELS, n_specializations=2), _GRID_ROWS),
        last_gone(ProjectedHistogramTransformer(**_LABELS, n_attributes=1), _GRID_ROWS),
        last_gone(PrivateAdditiveClassifier(**_LABELS), PLANE_ROWS),
        last_gone(
            PrivateAdditiveRegressor(epsilon=1.0, domain=_NUMBERS, target="x"), _NUMBERS_ROWS
        ),
        last_gone(PrivateDecisionTreeClassifier(**_LABELS, max_depth=1, prune=False), PLANE_ROWS),
        last_gone(PrivateRandomForestClassifier(**_LABELS, max_depth=1), PLANE_ROWS),
        last_gone(PrivateLinearRegression(**_PLANES, target="x"), PLANE_ROWS),
        last_gone(PrivateRidge(**_PLANES, target="x", alpha=2), PLANE_ROWS),
        last_gone(PrivateLogisticRegression(**_LABELS), PLANE_ROWS),
        last_gone(PrivateLinearSVC(**_LABELS, solver="genetic"), PLANE_ROWS),
        last_gone(PrivateNaiveBayes(**_LABELS), PLANE_ROWS),
        last_gone(
            SampleAggregate(_Largest(), epsilon=1.0, output_range=(0, 1), output="found_"),
            PLANE_ROWS[["x"]],
        ),
        last_gone(PrivatePCA(epsilon=1.0, domain=_NUMBERS), _NUMBERS_ROWS),
        last_gone(DPTopKSelector(1, epsilon=1.0, domain=_SELECTED, target="y"), _SELECTED_ROWS),
        # Two sources: the record in one cell of each shifts both, and both budgets must count.
        last_gone(DataCube(**_LINES, strategy={"x": 1, (): 1}), LINE_ROWS),
        last_gone(
            MarginalSynthesizer(epsilon=1.0, domain=_SPACE), pd.concat([_SPACE_ROWS] * 600), 2_000
        ),
        # A network without a choice: the total and two tables.
        last_gone(PrivBayesSynthesizer(**_PLANES), PLANE_ROWS),
        last_gone(DPKMeans(2, epsilon=1.0, domain=(-1, 1), n_init=2), _CLUSTERED),
        last_gone(
            PrivateClassifier(DecisionTreeClassifier(max_depth=2), HDPViewSynthesizer(**_LABELS)),
            (PLANE_ROWS[["x"]], PLANE_ROWS["s"]),
            4_000,
            epsilon=1.0,
        ),
        last_gone(
            PrivateRegressor(**_PLANES, target="x"), (PLANE_ROWS[["s"]], PLANE_ROWS["x"]), 2_000
        ),
    )


#: The case of each estimator, by the name of its class.
AUDITS: dict[str, AuditCase] = {type(case.mechanism).__name__: case for case in cases()}
