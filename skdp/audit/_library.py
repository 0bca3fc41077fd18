"""Replays of the library itself: one case of each estimator."""

from __future__ import annotations

from collections.abc import Iterable
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
)
from ..naive_bayes import PrivateNaiveBayes
from ..preprocessing import PrivateQuantileClipper, PrivateStandardScaler
from ..sample_aggregate import SampleAggregate
from ..selection import DPTopKSelector
from ..synthesis import (
    GridSynthesizer,
    HDMMSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
)
from ..tree import PrivateDecisionTreeClassifier, PrivateRandomForestClassifier
from ._replay import ReplayResult, replay

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


def cases() -> tuple[tuple[Any, Any], ...]:
    """An estimator of each class, and its rows, or a pair of rows and labels."""
    return (
        (HDPViewSynthesizer(**_LINES), LINE_ROWS),
        (PrivTreeSynthesizer(**_LINES), LINE_ROWS),
        (KDTreeSynthesizer(**_LINES, xi0=2, xi1=1), LINE_ROWS),
        (GridSynthesizer(**_LINES, rule="uniform"), LINE_ROWS),
        (HDMMSynthesizer(**_LINES), LINE_ROWS),
        (RangeTreeHistogram(**_LINES), LINE_ROWS),
        (PrivateStandardScaler(epsilon=1.0, domain=(0, 4)), LINE_ROWS),
        (PrivateQuantileClipper(epsilon=1.0, domain=(0, 4), quantiles=(0.25, 0.75)), LINE_ROWS),
        (PrivPfCTransformer(**_LABELS), _GRID_ROWS),
        (PrivPfCClassifier(**_LABELS), _GRID_ROWS),
        (DiffGenTransformer(**_LABELS, n_specializations=2), _GRID_ROWS),
        (ProjectedHistogramTransformer(**_LABELS, n_attributes=1), _GRID_ROWS),
        (PrivateAdditiveClassifier(**_LABELS), PLANE_ROWS),
        (PrivateAdditiveRegressor(epsilon=1.0, domain=_NUMBERS, target="x"), _NUMBERS_ROWS),
        (PrivateDecisionTreeClassifier(**_LABELS, max_depth=1, prune=False), PLANE_ROWS),
        (PrivateRandomForestClassifier(**_LABELS, max_depth=1), PLANE_ROWS),
        (PrivateLinearRegression(**_PLANES, target="x"), PLANE_ROWS),
        (PrivateLogisticRegression(**_LABELS), PLANE_ROWS),
        (PrivateLinearSVC(**_LABELS, solver="genetic"), PLANE_ROWS),
        (PrivateNaiveBayes(**_LABELS), PLANE_ROWS),
        (
            SampleAggregate(_Largest(), epsilon=1.0, output_range=(0, 1), output="found_"),
            PLANE_ROWS[["x"]],
        ),
        (PrivatePCA(epsilon=1.0, domain=_NUMBERS), _NUMBERS_ROWS),
        (DPTopKSelector(1, epsilon=1.0, domain=_SELECTED, target="y"), _SELECTED_ROWS),
        # Two sources: the record in one cell of each shifts both, and both budgets must count.
        (DataCube(**_LINES, strategy={"x": 1, (): 1}), LINE_ROWS),
        (MarginalSynthesizer(epsilon=1.0, domain=_SPACE), pd.concat([_SPACE_ROWS] * 600)),
        # A network without a choice: the total and two tables.
        (PrivBayesSynthesizer(**_PLANES), PLANE_ROWS),
        (DPKMeans(2, epsilon=1.0, domain=(-1, 1), n_init=2), _CLUSTERED),
        (
            PrivateClassifier(DecisionTreeClassifier(max_depth=2), HDPViewSynthesizer(**_LABELS)),
            (PLANE_ROWS[["x"]], PLANE_ROWS["s"]),
        ),
        (PrivateRegressor(**_PLANES, target="x"), (PLANE_ROWS[["s"]], PLANE_ROWS["x"])),
    )


def _last_gone(data: Any) -> Any:
    return tuple(part[:-1] for part in data) if isinstance(data, tuple) else data[:-1]


#: An estimator and two neighbouring tables, by the name of its class.
REPLAYS = {type(made).__name__: (made, data, _last_gone(data)) for made, data in cases()}


def replay_library(names: Iterable[str] | None = None, *, n: int = 12) -> list[ReplayResult]:
    """Replay every estimator of the library on its pair.

    Parameters
    ----------
    names : iterable of str, optional
        Entries of `REPLAYS`, the names of classes; default all.
    n : int, default=12
        Number of pairs of runs for each entry.

    Returns
    -------
    list of ReplayResult

    Raises
    ------
    ValueError
        If a name has no entry.
    """
    chosen = list(REPLAYS if names is None else names)
    unknown = [name for name in chosen if name not in REPLAYS]
    if unknown:
        raise ValueError(f"There is no replay of {unknown[0]!r}; there are {', '.join(REPLAYS)}.")
    return [replay(*REPLAYS[name], n=n) for name in chosen]
