"""Audits of the ways of mechanisms and estimators, beside the one of each in `skdp.audit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivBayesSynthesizer,
    PrivPfCTransformer,
    PrivTreeSynthesizer,
    forbid,
)
from skdp.audit import AUDITS, AuditCase, synopsis_features
from skdp.audit._cases import (
    _at_once,
    _frequent_items,
    _quantile_case,
    _selecting,
    _stream,
)
from skdp.audit._cases_estimators import (
    _FEW,
    _LABEL,
    _LINE,
    _PLANE,
    _PLANE_COLUMNS,
    _PLANE_ROWS,
    _aggregate_case,
    _cube_features,
    _grid_case,
    _histogram_case,
    _k_means_case,
    _linear_case,
    _marginal_case,
    _probabilities,
    _score_case,
    _tree_case,
    _view_features,
    last_gone,
    line_case,
    plane_case,
)
from skdp.mechanisms import SparseVector, discrete_laplace, top_k

#: The audits of the library, and those of this file.
CASES: dict[str, Callable[[], AuditCase]] = dict(AUDITS)


def enter(cases):
    for name, case in cases.items():
        audited(name)(partial(replace, case))


def audited(name):
    def enter_one(make):
        assert name not in CASES
        CASES[name] = make
        return make

    return enter_one


enter(
    {
        # Wide noise is drawn as a high and a low part: another path through the code.
        "discrete_laplace, wide": _at_once(
            lambda total, n: discrete_laplace(np.full(n, total), 1.0, sensitivity=10**6),
            0,
            10**6,
            sensitivity=10**6,
        ),
    }
)


enter(
    {
        # The best score inside the true set falls behind one outside.
        "top_k, canonical": _selecting(
            lambda scores: tuple(top_k(scores, 2, 1.0, 1, method="canonical", ordered=False)),
            [3, 3, 2, 2],
            [4, 4, 2, 2],
            30_000,
        ),
        "top_k, joint": _selecting(
            lambda scores: tuple(top_k(scores, 2, 1.0, 1, method="joint")),
            [3, 3, 2, 2],
            [4, 4, 2, 2],
            30_000,
        ),
    }
)


def _all_found(vector: SparseVector) -> Any:
    return vector.positives.tolist(), vector.gaps.tolist(), vector.answers.tolist()


enter(
    {
        "SparseVector, monotonic with answers": _stream(
            [0] * 6 + [2, 2],
            [1] * 6 + [2, 2],
            2,
            2,
            shown=_all_found,
            monotonic=True,
            answer_share=0.2,
        ),
        "SparseVector, a new threshold each time": _stream(
            [0] * 4 + [2, 2], [1] * 4 + [1, 1], 2, 2, variant="dwork-roth", noise="two-sided"
        ),
        # From 0.1 to 0.6 is two steps of the lattice.
        "SparseVector, on a lattice": _stream(
            [0.1] * 6 + [1.6], [0.6] * 6 + [1.1], 1.5, 1, sensitivity=0.5, lattice=0.25
        ),
    }
)


enter(
    {
        "most_frequent_items, all counts": _frequent_items(
            3, 1, ["b"], lambda found: tuple(found.sort_values("item")["count"])
        ),
        "private_quantiles, recursive": _quantile_case(
            9, [0.25, 0.5, 0.75], (0, 9), lambda found: found.values.tolist()
        ),
        "private_quantiles, no bounds": _quantile_case(
            999, 0.5, None, lambda found: (int(found.range[1]), int(found.values[0]))
        ),
    }
)


enter(
    {
        "HDPViewSynthesizer, two columns": plane_case(
            HDPViewSynthesizer(epsilon=1.0, domain=_PLANE)
        ),
        "PrivTreeSynthesizer, two columns": plane_case(
            PrivTreeSynthesizer(epsilon=1.0, domain=_PLANE)
        ),
        "KDTreeSynthesizer, cells": line_case(
            KDTreeSynthesizer(epsilon=1.0, domain=_LINE, strategy="cell")
        ),
        "KDTreeSynthesizer, hierarchical": plane_case(
            KDTreeSynthesizer(epsilon=1.0, domain=_PLANE, strategy="hierarchical")
        ),
        "GridSynthesizer, cells": line_case(
            GridSynthesizer(epsilon=1.0, domain=_LINE, rule="identity")
        ),
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
    estimator = estimator.set_params(max_rows_per_id=3, privacy_id="who")
    options = {"features": synopsis_features, "relation": _one_person_less}
    return AuditCase(estimator, _PERSONS, _PERSONS.iloc[:2], options=options, **trials)


def _bucket_features(histogram: Any) -> Any:
    """The buckets, which are released too, and the counts of all nodes of the tree over them."""
    tree = histogram.tree_
    shape = f"{histogram.codes_.tolist()} {tree.lower.tolist()} {tree.upper.tolist()}"
    return shape, histogram.noisy_counts_


enter(
    {
        "GridSynthesizer, persons": _person_case(
            GridSynthesizer(epsilon=1.0, domain=_LINE, rule="identity")
        ),
        "MarginalSynthesizer, persons": _person_case(
            MarginalSynthesizer(epsilon=1.0, domain=_LINE), n_trials=_FEW
        ),
        # A record is in several nodes: only their counts together show its cost.
        "RangeTreeHistogram, every level": _histogram_case(branching=2, budget="uniform"),
        "RangeTreeHistogram, adaptive": _histogram_case(_bucket_features, partition="adaptive"),
        "RangeTreeHistogram, dawa": _histogram_case(_bucket_features, partition="dawa"),
        "RangeTreeHistogram, ahp": _histogram_case(_bucket_features, partition="ahp"),
    }
)


enter(
    {
        "PrivPfCTransformer, as in the paper": _grid_case(PrivPfCTransformer, selection="paper"),
        "PrivateDecisionTreeClassifier, id3": _tree_case(algorithm="id3"),
        "PrivateLinearRegression, functional": _linear_case(
            PrivateLinearRegression, "x", solver="functional"
        ),
        "PrivateLogisticRegression, functional": _linear_case(
            PrivateLogisticRegression, "s", solver="functional"
        ),
        "PrivateLogisticRegression, local search": _linear_case(
            PrivateLogisticRegression, "s", solver="local-search"
        ),
        "SampleAggregate, winsorised": _aggregate_case("winsorised", 2),
    }
)


def _summing_cube(measure: str, value: float) -> AuditCase:
    cube = DataCube(
        epsilon=1.0, domain=_PLANE, strategy="base", measure=measure, value="x", resolution=1
    )
    # A record with the largest possible contribution.
    return last_gone(cube, pd.DataFrame({"x": [1.0, value], "s": ["a", "b"]}), _cube_features)


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
        epsilon=1.0,
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
        "DataCube, sums": _summing_cube("sum", 3.0),
        # A record between the ends adds to both tables.
        "DataCube, means": _summing_cube("mean", 1.0),
        "MarginalSynthesizer, few records": _marginal_case(1),
        "MarginalSynthesizer, one column": line_case(
            MarginalSynthesizer(epsilon=1.0, domain=_LINE), _view_features, n_trials=_FEW
        ),
        "MarginalSynthesizer, two columns": plane_case(
            MarginalSynthesizer(epsilon=1.0, domain=_PLANE), _view_features, n_trials=_FEW
        ),
        # One cell is empty by a public rule.
        "MarginalSynthesizer, rules": plane_case(
            MarginalSynthesizer(
                epsilon=1.0,
                domain=Domain(_PLANE_COLUMNS, structure=[forbid("x >= 2 and s == 'a'")]),
            ),
            _view_features,
            n_trials=_FEW,
        ),
        "MarginalSynthesizer, coarse tables of pairs": _marginal_case(600, max_order=2),
        # So small tables that a parent is taken in groups.
        "PrivBayesSynthesizer, hierarchical": plane_case(
            PrivBayesSynthesizer(epsilon=1.0, domain=_PLANE, encoding="hierarchical", theta=0.2),
            n_trials=10_000,
        ),
        "PrivBayesSynthesizer, network": _network_case("R"),
        "PrivBayesSynthesizer, network by F": _network_case("F"),
        "PrivBayesSynthesizer, network by mutual information": _network_case("mutual_information"),
    }
)


def _centres_and_counts(estimator: Any) -> Any:
    """Centroids and their noisy counts only, where nearly every release has other boxes."""
    return np.append(estimator.cluster_centers_.ravel(), estimator.cluster_counts_)


@audited("DPKMeans, many columns")
def _() -> AuditCase:
    # Columns are projected; the record that is removed is alone in its cluster.
    rows = np.tile([[-0.5]] * 4 + [[0.75]], (1, 51))

    def released(estimator: Any) -> Any:
        return np.append(estimator.cluster_centers_.mean(axis=1), estimator.cluster_counts_)

    estimator = DPKMeans(2, epsilon=1.0, domain=(-1, 1), n_init=2, n_samples=100)
    return last_gone(estimator, rows, released, n_trials=1_000)


_STARTS = [[-0.5], [0.5]]


enter(
    {
        # A round follows if many records are declared; the declared number need not be true.
        "DPKMeans, a grid and a round": _k_means_case("auto", n_init=2, n_samples=200),
        # All records are in one bin, which is divided again.
        "DPKMeans, narrow ranges": last_gone(
            DPKMeans(1, epsilon=1.0, domain=(-100, 100), n_init=2, n_samples=1_000),
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


enter(
    {
        "PrivateClassifier, default": last_gone(
            PrivateClassifier(epsilon=1.0, domain=_PLANE, target="s"),
            (_PLANE_ROWS[["x"]], _PLANE_ROWS["s"]),
            _probabilities,
            1.0,
            n_trials=2_000,
        ),
    }
)


enter(
    {
        "private_score, roc_auc": _score_case("roc_auc", score_range=(-1, 2)),
        "private_score, f1": _score_case("f1"),
        "private_score, log_loss": _score_case("log_loss"),
        "private_score, r2": _score_case("r2", domain=(0, 1)),
        "private_score, mean_squared_error": _score_case(
            "mean_squared_error", 20_000, domain=(0, 1)
        ),
    }
)
