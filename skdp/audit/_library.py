"""Replays of the library itself: one case of each estimator."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeClassifier

from .._validation import replacing
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


def _last_gone(estimator: Any, data: Any) -> tuple[Any, Any, Any]:
    """Case of rows, or of a pair of rows and labels, with and without the last."""
    less = tuple(part[:-1] for part in data) if isinstance(data, tuple) else data[:-1]
    return estimator, data, less


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


def cases() -> tuple[tuple[Any, Any, Any], ...]:
    """One case of each estimator."""
    return (
        _last_gone(HDPViewSynthesizer(**_LINES), LINE_ROWS),
        _last_gone(PrivTreeSynthesizer(**_LINES), LINE_ROWS),
        _last_gone(KDTreeSynthesizer(**_LINES, xi0=2, xi1=1), LINE_ROWS),
        _last_gone(GridSynthesizer(**_LINES, rule="uniform"), LINE_ROWS),
        _last_gone(HDMMSynthesizer(**_LINES), LINE_ROWS),
        _last_gone(RangeTreeHistogram(**_LINES), LINE_ROWS),
        _last_gone(PrivateStandardScaler(epsilon=1.0, domain=(0, 4)), LINE_ROWS),
        _last_gone(
            PrivateQuantileClipper(epsilon=1.0, domain=(0, 4), quantiles=(0.25, 0.75)), LINE_ROWS
        ),
        _last_gone(PrivPfCTransformer(**_LABELS), _GRID_ROWS),
        _last_gone(PrivPfCClassifier(**_LABELS), _GRID_ROWS),
        _last_gone(DiffGenTransformer(**_LABELS, n_specializations=2), _GRID_ROWS),
        _last_gone(ProjectedHistogramTransformer(**_LABELS, n_attributes=1), _GRID_ROWS),
        _last_gone(PrivateAdditiveClassifier(**_LABELS), PLANE_ROWS),
        _last_gone(
            PrivateAdditiveRegressor(epsilon=1.0, domain=_NUMBERS, target="x"), _NUMBERS_ROWS
        ),
        _last_gone(PrivateDecisionTreeClassifier(**_LABELS, max_depth=1, prune=False), PLANE_ROWS),
        _last_gone(PrivateRandomForestClassifier(**_LABELS, max_depth=1), PLANE_ROWS),
        _last_gone(PrivateLinearRegression(**_PLANES, target="x"), PLANE_ROWS),
        _last_gone(PrivateLogisticRegression(**_LABELS), PLANE_ROWS),
        _last_gone(PrivateLinearSVC(**_LABELS, solver="genetic"), PLANE_ROWS),
        _last_gone(PrivateNaiveBayes(**_LABELS), PLANE_ROWS),
        _last_gone(
            SampleAggregate(_Largest(), epsilon=1.0, output_range=(0, 1), output="found_"),
            PLANE_ROWS[["x"]],
        ),
        _last_gone(PrivatePCA(epsilon=1.0, domain=_NUMBERS), _NUMBERS_ROWS),
        _last_gone(DPTopKSelector(1, epsilon=1.0, domain=_SELECTED, target="y"), _SELECTED_ROWS),
        # Two sources: the record in one cell of each shifts both, and both budgets must count.
        _last_gone(DataCube(**_LINES, strategy={"x": 1, (): 1}), LINE_ROWS),
        _last_gone(MarginalSynthesizer(epsilon=1.0, domain=_SPACE), pd.concat([_SPACE_ROWS] * 600)),
        # A network without a choice: the total and two tables.
        _last_gone(PrivBayesSynthesizer(**_PLANES), PLANE_ROWS),
        _last_gone(DPKMeans(2, epsilon=1.0, domain=(-1, 1), n_init=2), _CLUSTERED),
        _last_gone(
            PrivateClassifier(DecisionTreeClassifier(max_depth=2), HDPViewSynthesizer(**_LABELS)),
            (PLANE_ROWS[["x"]], PLANE_ROWS["s"]),
        ),
        _last_gone(PrivateRegressor(**_PLANES, target="x"), (PLANE_ROWS[["s"]], PLANE_ROWS["x"])),
    )


#: An estimator and two neighbouring tables, by the name of its class.
REPLAYS = {type(case[0]).__name__: case for case in cases()}


def replay_library(
    out: str | Path | None = "skdp_audit",
    *,
    names: Iterable[str] | None = None,
    n: int = 12,
    verbose: int = 1,
) -> list[ReplayResult]:
    """Replay every estimator of the library on its pair, and write a report.

    Parameters
    ----------
    out : path or None, default="skdp_audit"
        Folder for ``replay.csv``. None writes nothing.
    names : iterable of str, optional
        Entries of `REPLAYS`, the names of classes; default all.
    n : int, default=12
        Number of pairs of runs for each entry.
    verbose : int, default=1
        Whether to print progress to standard error.

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
    results = []
    for number, name in enumerate(chosen, start=1):
        results.append(replay(*REPLAYS[name], n=n, name=name))
        if verbose:
            print(f"[{number}/{len(chosen)}] {results[-1]}", file=sys.stderr)
    if out is not None:
        path = Path(out) / "replay.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            pd.concat([result.to_frame() for result in results]).to_csv(part)
        if verbose:
            print(f"Report in {path.resolve()}", file=sys.stderr)
    return results
