"""Audits of the ways of mechanisms and estimators, beside the one of each in `skdp.audit`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skdp import (
    DataCube,
    Domain,
    DPKMeans,
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    PrivateClassifier,
    PrivateDecisionTreeClassifier,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivBayesSynthesizer,
    PrivPfCTransformer,
    PrivTreeSynthesizer,
    RangeTreeHistogram,
    forbid,
)
from skdp.audit import AUDITS, AuditCase
from skdp.audit._cases import (
    _BASKETS,
    _GRID_ROWS,
    _GUESSED,
    _LABEL,
    _LABELLED,
    _LABELS,
    _LINE_ROWS,
    _LINES,
    _PLANE,
    _PLANE_ROWS,
    _PLANES,
    _SPACE,
    _SPACE_ROWS,
    _Largest,
    _selecting,
    last_gone,
)
from skdp.mechanisms import SparseVector, discrete_laplace, top_k
from skdp.model_selection import private_score
from skdp.preprocessing import private_quantiles
from skdp.sample_aggregate import SampleAggregate
from skdp.selection import most_frequent_items

# --- mechanisms


def _stream(data: Any, neighbour: Any, *given: Any, **more: Any) -> AuditCase:
    def mechanism(answers: list[Any]) -> Any:
        vector = SparseVector(1.0, *given, **more)
        said = vector.query_many(answers).tolist()
        if "answer_share" not in more:
            return said
        return vector.positives.tolist(), vector.gaps.tolist(), vector.answers.tolist()

    options = {"relation": "answers", "sensitivity": more.get("sensitivity", 1)}
    return AuditCase(mechanism, data, neighbour, 1.0, 50_000, options)


def _all_counts(baskets: Any) -> Any:
    found = most_frequent_items(baskets, 3, ["a", "b", "c"], epsilon=1.0, max_items=1)
    return tuple(found.sort_values("item")["count"])


def _quantiles(quantiles: Any, bounds: Any, values: Any) -> Any:
    found = private_quantiles(values, quantiles, epsilon=1.0, domain=bounds, step=1)
    return found.values.tolist(), [float(end) for end in found.range]


def _score(metric: str, options: dict[str, Any], data: Any) -> Any:
    result = private_score(*data, metric, epsilon=1.0, **options)
    return result.value, result.lower, result.upper


_RECORDS = {"relation": "records"}
_MECHANISMS = {
    # Wide noise is drawn as a high and a low part: another path through the code.
    "discrete_laplace, wide": AuditCase(
        lambda total, n: discrete_laplace(np.full(n, total), 1.0, sensitivity=10**6),
        0, 10**6, 1.0, 1_000_000, {"vectorised": True, "sensitivity": 10**6},
    ),
    # The best score inside the true set falls behind one outside.
    "top_k, canonical": _selecting(
        lambda scores: tuple(top_k(scores, 2, 1.0, 1, method="canonical", ordered=False)),
        (3, 3, 2, 2), (4, 4, 2, 2),
    ),
    "top_k, joint": _selecting(
        lambda scores: tuple(top_k(scores, 2, 1.0, 1, method="joint")), (3, 3, 2, 2), (4, 4, 2, 2)
    ),
    "SparseVector, monotonic with answers": _stream(
        [0] * 6 + [2, 2], [1] * 6 + [2, 2], 2, 2, monotonic=True, answer_share=0.2
    ),
    "SparseVector, a new threshold each time": _stream(
        [0] * 4 + [2, 2], [1] * 4 + [1, 1], 2, 2, variant="dwork-roth", noise="two-sided"
    ),
    # From 0.1 to 0.6 is two steps of the lattice.
    "SparseVector, on a lattice": _stream(
        [0.1] * 6 + [1.6], [0.6] * 6 + [1.1], 1.5, 1, sensitivity=0.5, lattice=0.25
    ),
    "most_frequent_items, all counts": AuditCase(
        _all_counts, _BASKETS, [*_BASKETS, ["b"]], 1.0, 20_000, _RECORDS
    ),
    "private_quantiles, recursive": AuditCase(
        partial(_quantiles, [0.25, 0.5, 0.75], (0, 9)), [4, 4, 4], [4, 4, 4, 9], 1.0, 50_000,
        _RECORDS,
    ),
    "private_quantiles, no bounds": AuditCase(
        partial(_quantiles, 0.5, None), [4, 4, 4], [4, 4, 4, 999], 1.0, 50_000, _RECORDS
    ),
    **{
        f"private_score, {metric}": last_gone(
            partial(_score, metric, options), _GUESSED, 5_000, 1.0
        )
        for metric, options in [
            ("roc_auc", {"score_range": (-1, 2)}),
            ("f1", {}),
            ("log_loss", {}),
            ("r2", {"domain": (0, 1)}),
            ("mean_squared_error", {"domain": (0, 1)}),
        ]
    },
}  # fmt: skip

# --- estimators

# One person with many more rows than are kept, of two kinds.
_PERSONS = pd.DataFrame(
    {"x": [0.5, 2.5, *[0.5] * 6, *[2.5] * 6], "who": ["ann", "bea", *["cyd"] * 12]}
)


def _one_person_less(dataset: pd.DataFrame, neighbour: pd.DataFrame) -> bool:
    """Whether the neighbour is the data set without all rows of one person."""
    gone = set(dataset["who"]) - set(neighbour["who"])
    return len(gone) == 1 and dataset[~dataset["who"].isin(gone)].equals(neighbour)


def _person_case(estimator: Any, n_trials: int = 5_000) -> AuditCase:
    """Case of a synthesizer on one column, whose unit of privacy is the person."""
    estimator = estimator.set_params(max_rows_per_id=3, privacy_id="who")
    options = {"relation": _one_person_less}
    return AuditCase(estimator, _PERSONS, _PERSONS.iloc[:2], None, n_trials, options)


_TRIPLES: dict[str, Any] = {"epsilon": 1.0, "domain": _SPACE}
_MANY = pd.concat([_SPACE_ROWS] * 600, ignore_index=True)
# Two columns agree but in the last record; theta is so small that tables of two columns fit.
_NETWORK: dict[str, Any] = {
    "epsilon": 1.0, "domain": Domain(dict.fromkeys("xyz", _LABEL)), "beta": 0.9, "theta": 0.01,
    "max_cells": 4,
}  # fmt: skip
_NETWORK_ROWS = pd.DataFrame(
    {"x": [0, 1] * 6 + [0], "y": [0, 1] * 6 + [1], "z": [0, 0, 1, 1] * 3 + [0]}
)
_SUMS: dict[str, Any] = {**_PLANES, "strategy": "base", "value": "x", "resolution": 1}
_CENTRED: dict[str, Any] = {"epsilon": 1.0, "domain": (-1, 1)}
# The record that is removed is alone in its cluster.
_POINTS = np.array([[-0.5]] * 4 + [[0.75]])
_STARTS = [[-0.5], [0.5]]
_RULED = Domain(
    dict(zip(_PLANE.names, _PLANE.attributes, strict=True)),
    structure=[forbid("x >= 2 and s == 'a'")],
)

_LISTED: list[tuple[str, Any, Any, int]] = [
    ("two columns", HDPViewSynthesizer(**_PLANES), _PLANE_ROWS, 5_000),
    ("two columns", PrivTreeSynthesizer(**_PLANES), _PLANE_ROWS, 5_000),
    ("cells", KDTreeSynthesizer(**_LINES, strategy="cell"), _LINE_ROWS, 5_000),
    ("hierarchical", KDTreeSynthesizer(**_PLANES, strategy="hierarchical"), _PLANE_ROWS, 5_000),
    ("cells", GridSynthesizer(**_LINES, rule="identity"), _LINE_ROWS, 5_000),
    # A record is in several nodes: only their counts together show its cost.
    ("levels", RangeTreeHistogram(**_LINES, branching=2, budget="uniform"), _LINE_ROWS, 5_000),
    ("adaptive", RangeTreeHistogram(**_LINES, partition="adaptive"), _LINE_ROWS, 5_000),
    ("dawa", RangeTreeHistogram(**_LINES, partition="dawa"), _LINE_ROWS, 5_000),
    ("ahp", RangeTreeHistogram(**_LINES, partition="ahp"), _LINE_ROWS, 5_000),
    ("as in the paper", PrivPfCTransformer(**_LABELS, selection="paper"), _GRID_ROWS, 5_000),
    (
        "id3",
        PrivateDecisionTreeClassifier(**_LABELS, max_depth=1, algorithm="id3"),
        _PLANE_ROWS,
        5_000,
    ),
    (
        "functional",
        PrivateLinearRegression(**_PLANES, target="x", solver="functional"),
        _PLANE_ROWS,
        5_000,
    ),
    ("functional", PrivateLogisticRegression(**_LABELS, solver="functional"), _PLANE_ROWS, 5_000),
    ("local", PrivateLogisticRegression(**_LABELS, solver="local-search"), _PLANE_ROWS, 5_000),
    (
        "winsorised",
        SampleAggregate(
            _Largest(),
            epsilon=1.0,
            output_range=(0, 1),
            n_blocks=2,
            output="found_",
            aggregate="winsorised",
        ),
        _PLANE_ROWS[["x"]],
        5_000,
    ),
    # A record with the largest possible contribution; one between the ends adds to both tables.
    (
        "sums",
        DataCube(**_SUMS, measure="sum"),
        pd.DataFrame({"x": [1.0, 3.0], "s": ["a", "b"]}),
        5_000,
    ),
    (
        "means",
        DataCube(**_SUMS, measure="mean"),
        pd.DataFrame({"x": [1.0, 1.0], "s": ["a", "b"]}),
        5_000,
    ),
    (
        "target",
        MarginalSynthesizer(**_TRIPLES, target="s", max_order=2),
        (_MANY[["x", "z"]], _MANY["s"]),
        2_000,
    ),
    ("few records", MarginalSynthesizer(**_TRIPLES), _SPACE_ROWS, 2_000),
    ("one column", MarginalSynthesizer(**_LINES), _LINE_ROWS, 2_000),
    ("two columns", MarginalSynthesizer(**_PLANES), _PLANE_ROWS, 2_000),
    # One cell is empty by a public rule.
    ("rules", MarginalSynthesizer(epsilon=1.0, domain=_RULED), _PLANE_ROWS, 2_000),
    ("coarse tables of pairs", MarginalSynthesizer(**_TRIPLES, max_order=2), _MANY, 2_000),
    # So small tables that a parent is taken in groups.
    (
        "hierarchical",
        PrivBayesSynthesizer(**_PLANES, encoding="hierarchical", theta=0.2),
        _PLANE_ROWS,
        10_000,
    ),
    *(
        (
            f"network by {score}",
            PrivBayesSynthesizer(**_NETWORK, score_function=score),
            _NETWORK_ROWS,
            10_000,
        )
        for score in ("R", "F", "mutual_information")
    ),
    # Columns are projected.
    (
        "many columns",
        DPKMeans(2, **_CENTRED, n_init=2, n_samples=100),
        np.tile(_POINTS, (1, 51)),
        1_000,
    ),
    # A round follows if many records are declared; the declared number need not be true.
    ("a grid and a round", DPKMeans(2, **_CENTRED, n_init=2, n_samples=200), _POINTS, 5_000),
    # All records are in one bin, which is divided again.
    (
        "narrow ranges",
        DPKMeans(1, epsilon=1.0, domain=(-100, 100), n_init=2, n_samples=1_000),
        np.full((1_000, 1), 0.3),
        1_000,
    ),
    ("a tree and a round", DPKMeans(2, **_CENTRED, n_init=2, n_samples=2_000), _POINTS, 5_000),
    ("choice of k", DPKMeans([2, 3], **_CENTRED, n_init=2), _POINTS, 5_000),
    ("lloyd", DPKMeans(2, **_CENTRED, algorithm="lloyd", init=_STARTS, n_rounds=2), _POINTS, 5_000),
    (
        "lloyd-improved",
        DPKMeans(2, **_CENTRED, algorithm="lloyd-improved", init=_STARTS),
        _POINTS,
        5_000,
    ),
    *(
        (algorithm, DPKMeans(2, **_CENTRED, algorithm=algorithm, n_init=2), _POINTS, 5_000)
        for algorithm in ("uniform-grid", "m-estimator", "extended-grid", "hybrid")
    ),
    ("sample-aggregate", DPKMeans(2, **_CENTRED, algorithm="sample-aggregate"), _POINTS, 5_000),
    ("genetic", DPKMeans(2, **_CENTRED, algorithm="genetic"), _POINTS, 3_000),
    ("default", PrivateClassifier(**_LABELS), _LABELLED, 2_000),
]

#: The audits of the library, and those of this file.
CASES: dict[str, Callable[[], AuditCase]] = dict(AUDITS)
CASES |= {name: partial(lambda case: case, case) for name, case in _MECHANISMS.items()}
CASES |= {
    f"{type(estimator).__name__}, {way}": partial(last_gone, estimator, rows, n_trials)
    for way, estimator, rows, n_trials in _LISTED
}
CASES |= {
    "GridSynthesizer, persons": lambda: _person_case(GridSynthesizer(**_LINES, rule="identity")),
    "MarginalSynthesizer, persons": lambda: _person_case(MarginalSynthesizer(**_LINES), 2_000),
}
