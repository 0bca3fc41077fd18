"""The audit of the library itself: one entry for each mechanism and each estimator."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from ..classification import (
    DiffGenTransformer,
    PrivPfCClassifier,
    PrivPfCTransformer,
    ProjectedHistogramTransformer,
)
from ..cluster import DPKMeans
from ..compose import PrivateClassifier
from ..datacube import DataCube
from ..domain import Categorical, Domain, Numeric
from ..histogram import RangeTreeHistogram
from ..mechanisms import (
    SparseVector,
    above_threshold,
    bounded_sum,
    discrete_laplace,
    exponential,
    geometric,
    noisy_max,
    permute_and_flip,
    sparse_vector_top_k,
    top_k,
)
from ..model_selection import (
    PrivateGridSearchCV,
    private_accuracy,
    private_confusion_matrix,
    private_mse,
)
from ..preprocessing import PrivateQuantileClipper, PrivateStandardScaler
from ..release import BoxModel, Synopsis
from ..selection import DPTopKSelector, most_frequent_items
from ..synthesis import (
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    PairViewSynthesizer,
    PrivTreeSynthesizer,
)
from ._audit import AuditResult, audit
from ._replay import ReplayResult, replay

__all__ = [
    "AUDITS",
    "AuditCase",
    "audited",
    "plot_library",
    "replay_library",
    "run_library",
    "synopsis_features",
]


@dataclass(frozen=True)
class AuditCase:
    """What to audit, and how thoroughly.

    Attributes
    ----------
    mechanism : callable or estimator
    dataset, neighbour : object
    epsilon : number, optional
        The claim; None takes the estimator's.
    n_trials, quick_trials : int
        Trials a side in a full and in a quick run.
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
    quick_trials: int = 600
    options: Mapping[str, Any] = field(default_factory=dict)
    replays: bool = True


#: Name of a mechanism or estimator, perhaps followed by a comma and a variant, to a function that
#: makes its case when it is run.
AUDITS: dict[str, Callable[[], AuditCase]] = {}


def audited(name: str) -> Callable[[Callable[[], AuditCase]], Callable[[], AuditCase]]:
    """Enter a function that makes an `AuditCase` into `AUDITS`.

    Parameters
    ----------
    name : str
        The public name of the mechanism or class, and after a comma a variant of it.
    """

    def enter(make: Callable[[], AuditCase]) -> Callable[[], AuditCase]:
        if name in AUDITS:
            raise ValueError(f"There is an audit of {name!r} already.")
        AUDITS[name] = make
        return make

    return enter


def synopsis_features(estimator: Any) -> Any:
    """Everything that a released synopsis of a tiny domain would keep in a file.

    Of blocks that is their geometry as text and the count of each cell, so that releases with
    different blocks can be compared; of other models all facts and numbers.

    Parameters
    ----------
    estimator : fitted estimator with a ``synopsis_``
    """
    synopsis = estimator.synopsis_
    facts, arrays = synopsis.model.to_arrays()
    if not {"lower", "upper"} <= arrays.keys():
        return facts, arrays
    numbers = {"counts", "measured"}
    others = [
        arrays[name].tolist() for name in sorted(arrays.keys() - numbers - {"lower", "upper"})
    ]
    text = f"{arrays['lower'].tolist()} to {arrays['upper'].tolist()} {others}"
    views = [
        Synopsis(
            synopsis.domain, BoxModel(synopsis.model.boxes, arrays[name], synopsis.domain.shape)
        )
        .view(list(synopsis.domain.names))
        .ravel()
        for name in sorted(numbers & arrays.keys())
    ]
    return text.replace(" ", ""), np.concatenate(views)


# Mechanisms on arrays: a million trials at once where the function draws them at once.

_ARRAYS = {"n_trials": 1_000_000, "quick_trials": 100_000}
_SINGLE = {"n_trials": 200_000, "quick_trials": 10_000}
# Far enough behind that the outsider's share changes by nearly the whole factor.
_SCORES, _NEXT_SCORES = [3, 0], [4, 0]
_ANSWERS = {"relation": "answers"}


@audited("discrete_laplace")
def _() -> AuditCase:
    def mechanism(count: int, n: int) -> Any:
        return discrete_laplace(np.full(n, count), 1.0)

    return AuditCase(mechanism, 0, 1, 1.0, **_ARRAYS, options={"vectorised": True})


@audited("discrete_laplace, wide")
def _() -> AuditCase:
    # Wide noise is drawn as a high and a low part: another path through the code.
    def mechanism(total: int, n: int) -> Any:
        return discrete_laplace(np.full(n, total), 1.0, sensitivity=10**6)

    options = {"vectorised": True, "sensitivity": 10**6}
    return AuditCase(mechanism, 0, 10**6, 1.0, **_ARRAYS, options=options)


@audited("above_threshold")
def _() -> AuditCase:
    def mechanism(count: int, n: int) -> Any:
        return above_threshold(np.full(n, count), 1.0, 0)

    return AuditCase(mechanism, 0, 1, 1.0, **_ARRAYS, options={"vectorised": True})


@audited("geometric")
def _() -> AuditCase:
    # One-sided noise protects where the largest of several noisy scores is reported.
    def mechanism(scores: list[int], n: int) -> Any:
        return np.argmax(np.add(scores, geometric((n, len(scores)), 1.0)), axis=1)

    options = {"vectorised": True}
    data = _SCORES, _NEXT_SCORES
    return AuditCase(mechanism, *data, 1.0, **_ARRAYS, options=options, replays=False)


@audited("noisy_max")
def _() -> AuditCase:
    def mechanism(scores: list[int], n: int) -> Any:
        starts = np.arange(n) * len(scores)
        return noisy_max(np.tile(scores, n), 1.0, 1, starts=starts) - starts

    return AuditCase(mechanism, _SCORES, _NEXT_SCORES, 1.0, **_ARRAYS, options={"vectorised": True})


@audited("exponential")
def _() -> AuditCase:
    return AuditCase(
        lambda scores: exponential(scores, 1.0, 1), _SCORES, _NEXT_SCORES, 1.0, **_SINGLE
    )


@audited("permute_and_flip")
def _() -> AuditCase:
    return AuditCase(
        lambda scores: permute_and_flip(scores, 1.0, 1), _SCORES, _NEXT_SCORES, 1.0, **_SINGLE
    )


@audited("top_k")
def _() -> AuditCase:
    # The two favourites move, the outsider stays: it is selected at all with 1/e of the chance.
    return AuditCase(
        lambda scores: top_k(scores, 2, 1.0, 1), [4, 4, 0, 0], [5, 5, 0, 0], 1.0, **_SINGLE
    )


@audited("bounded_sum")
def _() -> AuditCase:
    return AuditCase(
        lambda records: bounded_sum(records, -1, 2, 1.0, resolution=0.5),
        np.array([0.5, 1.0]),
        np.array([0.5, 1.0, 2.0]),
        1.0,
        n_trials=100_000,
        quick_trials=5_000,
        options={"relation": "records"},
    )


# Streams of queries just below the threshold, then one just above it: the negative answers together
# tell the most, and cost the most if the threshold's noise does not pay for them.

_STREAM = {"n_trials": 50_000, "quick_trials": 6_000}


@audited("SparseVector")
def _() -> AuditCase:
    def mechanism(answers: list[int]) -> Any:
        vector = SparseVector(1.0, 3, 1)
        vector.query_many(answers)
        return vector.positives.tolist(), vector.gap

    return AuditCase(mechanism, [0] * 8 + [3], [1] * 8 + [2], 1.0, **_STREAM, options=_ANSWERS)


@audited("SparseVector, monotonic with answers")
def _() -> AuditCase:
    def mechanism(answers: list[int]) -> Any:
        vector = SparseVector(1.0, 2, 2, monotonic=True, answer_share=0.2)
        vector.query_many(answers)
        return vector.positives.tolist(), vector.gaps.tolist(), vector.answers.tolist()

    return AuditCase(
        mechanism, [0] * 6 + [2, 2], [1] * 6 + [2, 2], 1.0, **_STREAM, options=_ANSWERS
    )


@audited("SparseVector, a new threshold each time")
def _() -> AuditCase:
    def mechanism(answers: list[int]) -> Any:
        vector = SparseVector(1.0, 2, 2, variant="dwork-roth", noise="two-sided")
        return vector.query_many(answers).tolist()

    return AuditCase(
        mechanism, [0] * 4 + [2, 2], [1] * 4 + [1, 1], 1.0, **_STREAM, options=_ANSWERS
    )


@audited("SparseVector, on a lattice")
def _() -> AuditCase:
    def mechanism(answers: list[float]) -> Any:
        vector = SparseVector(1.0, 1.5, 1, sensitivity=0.5, lattice=0.25)
        return vector.query_many(answers).tolist()

    options = {"relation": "answers", "sensitivity": 0.5}
    # From 0.1 to 0.6 is two steps of the lattice.
    data = [0.1] * 6 + [1.6], [0.6] * 6 + [1.1]
    return AuditCase(mechanism, *data, 1.0, **_STREAM, options=options)


@audited("sparse_vector_top_k")
def _() -> AuditCase:
    def mechanism(answers: list[int]) -> Any:
        chosen = sparse_vector_top_k(answers, 1, 1.0, 4, monotonic=True, max_passes=3)
        return chosen.tolist()

    return AuditCase(mechanism, [0] * 4 + [4], [1] * 4 + [4], 1.0, **_STREAM, options=_ANSWERS)


@audited("most_frequent_items")
def _() -> AuditCase:
    # One person has the outsider: bounded to one item of two, it is counted or not.
    def mechanism(baskets: list[list[str]]) -> Any:
        found = most_frequent_items(baskets, 2, ["a", "b", "c"], 1.0, max_items=2)
        return tuple(found["item"]), tuple(found["count"])

    baskets = [["a"], ["a"], ["a", "b"], ["b"]]
    trials = {"n_trials": 20_000, "quick_trials": 2_000}
    options = {"relation": "records"}
    return AuditCase(mechanism, baskets, [*baskets, ["b", "c"]], 1.0, **trials, options=options)


@audited("most_frequent_items, all counts")
def _() -> AuditCase:
    def mechanism(baskets: list[list[str]]) -> Any:
        found = most_frequent_items(baskets, 3, ["a", "b", "c"], 1.0, max_items=1)
        return tuple(found.sort_values("item")["count"])

    baskets = [["a"], ["a"], ["a", "b"], ["b"]]
    trials = {"n_trials": 20_000, "quick_trials": 2_000}
    options = {"relation": "records"}
    return AuditCase(mechanism, baskets, [*baskets, ["b"]], 1.0, **trials, options=options)


# Estimators on data sets of a few records: a record among few changes most.

_LINE = Domain({"x": Numeric(0, 4, bins=4)})
_PLANE = Domain({"x": Numeric(0, 3, bins=3), "s": Categorical(["a", "b"])})
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


# One person with many more rows than count, of two kinds.
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


@audited("PairViewSynthesizer, persons")
def _() -> AuditCase:
    estimator = PairViewSynthesizer(1.0, domain=_LINE, error_share=0)
    return _person_case(estimator, n_trials=20_000)


def _node_features(histogram: Any) -> Any:
    """All noisy counts of a histogram, the measured nodes apart from what is made of them."""
    return "", histogram.noisy_counts_


def _histogram_case(**parameters: Any) -> AuditCase:
    histogram = RangeTreeHistogram(1.0, domain=_LINE, **parameters)
    options = {"features": _node_features}
    return AuditCase(histogram, _LINE_ROWS, _LINE_ROWS.iloc[:-1], options=options)


@audited("RangeTreeHistogram")
def _() -> AuditCase:
    return _histogram_case()


@audited("RangeTreeHistogram, every level")
def _() -> AuditCase:
    # A record is in several nodes: only their counts together show what it costs.
    return _histogram_case(branching=2, budget="uniform")


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
    # Enough records for grids of several cells to be candidates; the last one is removed, an
    # outsider of its cell.
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
    cube = DataCube(1.0, domain=_PLANE, strategy="base", measure="sum", value="x", resolution=1)
    # A record that contributes as much as any may.
    rows = pd.DataFrame({"x": [1.0, 3.0], "s": ["a", "b"]})
    options = {"features": _cube_features}
    return AuditCase(cube, rows, rows.iloc[:-1], options=options)


@audited("PairViewSynthesizer")
def _() -> AuditCase:
    # The published error is that of 2,000 random queries, which take their time.
    return line_case(PairViewSynthesizer(1.0, domain=_LINE), n_trials=2_000, quick_trials=300)


@audited("PairViewSynthesizer, one column")
def _() -> AuditCase:
    return line_case(PairViewSynthesizer(1.0, domain=_LINE, error_share=0), n_trials=30_000)


@audited("PairViewSynthesizer, two columns")
def _() -> AuditCase:
    return plane_case(PairViewSynthesizer(1.0, domain=_PLANE, error_share=0), n_trials=10_000)


@audited("PairViewSynthesizer, choice of pairs")
def _() -> AuditCase:
    # Pairs are chosen where there is something to tell apart.
    domain = _PLANE.with_attribute("z", Numeric(0, 1, integer=True))
    rows = pd.concat([_PLANE_ROWS.assign(z=[0, 0, 1, 1])] * 600, ignore_index=True)
    estimator = PairViewSynthesizer(1.0, domain=domain, error_share=0)
    return AuditCase(estimator, rows, rows.iloc[:-1], options={"features": synopsis_features})


@audited("PairViewSynthesizer, target")
def _() -> AuditCase:
    estimator = PairViewSynthesizer(1.0, domain=_PLANE, target="s", error_share=0)
    return AuditCase(
        estimator,
        (_PLANE_ROWS[["x"]], _PLANE_ROWS["s"]),
        (_PLANE_ROWS[["x"]].iloc[:-1], _PLANE_ROWS["s"].iloc[:-1]),
        options={"features": synopsis_features},
    )


def _centroid_features(estimator: Any) -> Any:
    """Centroids, their noisy counts, and the noisy grid, as far as there are any."""
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
    # A round follows where many records are expected; the number declared need not be true.
    return _k_means_case("auto", n_init=2, n_samples=200)


@audited("DPKMeans, a tree and a round")
def _() -> AuditCase:
    # The boxes themselves are new in nearly every release; what is computed from them is compared.
    def released(estimator: Any) -> Any:
        return np.append(estimator.cluster_centers_.ravel(), estimator.cluster_counts_)

    case = _k_means_case("auto", n_init=2, n_samples=2_000)
    return replace(case, options={"features": released})


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


@audited("PrivateClassifier")
def _() -> AuditCase:
    def probabilities(estimator: Any) -> Any:
        return estimator.predict_proba(pd.DataFrame({"x": [0.5, 1.5, 2.5]})).ravel()

    release = HDPViewSynthesizer(1.0, domain=_PLANE, target="s")
    return AuditCase(
        PrivateClassifier(DecisionTreeClassifier(max_depth=2), release),
        (_PLANE_ROWS[["x"]], _PLANE_ROWS["s"]),
        (_PLANE_ROWS[["x"]].iloc[:-1], _PLANE_ROWS["s"].iloc[:-1]),
        1.0,
        n_trials=4_000,
        options={"features": probabilities},
    )


@audited("PrivateGridSearchCV")
def _() -> AuditCase:
    # The candidates predict one label each, as soon as the release knows both: what remains is
    # the choice between them.
    search = PrivateGridSearchCV(
        PrivateClassifier(
            DecisionTreeClassifier(max_depth=1),
            HDPViewSynthesizer(0.2, domain=_PLANE, target="s"),
        ),
        {"estimator__class_weight": [{"a": 1e9, "b": 1}, {"a": 1, "b": 1e9}]},
        epsilon=1.0,
    )
    rows = pd.DataFrame({"x": [1.5] * 78})
    labels = pd.Series(["a"] * 37 + ["b"] * 41)
    return AuditCase(
        search,
        (rows, labels),
        (rows[:-1], labels[:-1]),
        1.2,
        n_trials=1_500,
        quick_trials=300,
        options={"features": lambda search: search.best_index_},
    )


def _score_case(score: Callable[..., Any]) -> AuditCase:
    # The record that is removed was predicted wrongly, by the whole range.
    truth, guess = np.array([0, 1, 0, 1, 0]), np.array([0, 1, 0, 1, 1])
    return AuditCase(
        lambda data: score(*data),
        (truth, guess),
        (truth[:-1], guess[:-1]),
        1.0,
        n_trials=20_000,
        quick_trials=2_000,
    )


@audited("private_accuracy")
def _() -> AuditCase:
    def score(truth: Any, guess: Any) -> Any:
        result = private_accuracy(truth, guess, epsilon=1.0)
        return np.array([result.value, result.lower, result.upper])

    return _score_case(score)


@audited("private_confusion_matrix")
def _() -> AuditCase:
    def score(truth: Any, guess: Any) -> Any:
        table = private_confusion_matrix(truth, guess, labels=[0, 1], epsilon=1.0)
        return table.to_numpy().ravel()

    return _score_case(score)


@audited("private_mse")
def _() -> AuditCase:
    def score(truth: Any, guess: Any) -> Any:
        result = private_mse(truth, guess, bounds=(0, 1), epsilon=1.0)
        return np.array([result.value, result.lower, result.upper])

    return _score_case(score)


def run_entry(
    name: str, confidence: float, *, quick: bool = False, n_jobs: int = 1, verbose: int = 0
) -> AuditResult:
    """Run one entry of `AUDITS`; the parameters are those of `run_library` and `audit`."""
    case = AUDITS[name]()
    return audit(
        case.mechanism,
        case.dataset,
        case.neighbour,
        case.epsilon,
        case.quick_trials if quick else case.n_trials,
        confidence=confidence,
        n_jobs=n_jobs,
        verbose=verbose,
        name=name,
        **case.options,
    )


def run_library(
    out: str | Path | None = "skdp_audit",
    *,
    names: Iterable[str] | None = None,
    quick: bool = False,
    false_alarm: float = 0.001,
    n_jobs: int = 2,
    verbose: int = 1,
) -> list[AuditResult]:
    """Audit every mechanism and estimator of the library and write a report.

    Parameters
    ----------
    out : path or None, default="skdp_audit"
        Folder for ``audit.csv``, ``audit.md``, ``audit.html`` and, with matplotlib, ``audit.png``.
        None writes nothing.
    names : iterable of str, optional
        Entries of `AUDITS`, or names of mechanisms and classes; default all.
    quick : bool, default=False
        Fewer trials: a minute or two, but only coarse errors are found.
    false_alarm : float, default=0.001
        Probability that at least one correct mechanism is convicted; shared evenly.
    n_jobs : int, default=2
        Processes for what is not vectorised.
    verbose : int, default=1
        Progress to standard error.

    Returns
    -------
    list of AuditResult
        In the order of `AUDITS`.

    Raises
    ------
    ValueError
        If a name has no entry.
    """
    chosen = list(_chosen(names))
    confidence = 1 - false_alarm / len(chosen)
    results = []
    for i, name in enumerate(chosen):
        if verbose:
            print(f"[{i + 1}/{len(chosen)}] {name}", file=sys.stderr)
        result = run_entry(name, confidence, quick=quick, n_jobs=n_jobs, verbose=verbose)
        if verbose:
            print(
                f"  {result.verdict}: epsilon >= {result.epsilon_lower_bound:.4g}, "
                f"{result.epsilon:g} claimed ({result.n_trials:,} trials a side, "
                f"{result.seconds:.0f} s)",
                file=sys.stderr,
            )
        results.append(result)
    if out is not None:
        _write(Path(out), results, false_alarm)
        if verbose:
            print(f"Report in {Path(out).resolve()}", file=sys.stderr)
    return results


def replay_library(
    out: str | Path | None = "skdp_audit",
    *,
    names: Iterable[str] | None = None,
    n: int = 12,
    verbose: int = 1,
) -> list[ReplayResult]:
    """Replay every mechanism and estimator of the library on its pair, and write a report.

    Parameters
    ----------
    out : path or None, default="skdp_audit"
        Folder for ``replay.csv`` and ``replay.md``. None writes nothing.
    names : iterable of str, optional
        Entries of `AUDITS`, or names of mechanisms and classes; default all. Bare `geometric` noise
        cannot be replayed and is left out.
    n : int, default=12
        Number of pairs of runs for each entry.
    verbose : int, default=1
        0 for silence; 1 prints progress to standard error.

    Returns
    -------
    list of ReplayResult
        In the order of `AUDITS`.

    Raises
    ------
    ValueError
        If a name has no entry, or none that can be replayed.
    """
    cases = {name: AUDITS[name]() for name in _chosen(names)}
    cases = {name: case for name, case in cases.items() if case.replays}
    if not cases:
        raise ValueError("Bare noise cannot be replayed. Name a mechanism that uses it.")
    results = []
    for i, (name, case) in enumerate(cases.items()):
        mechanism = case.mechanism
        if case.options.get("vectorised"):
            mechanism = partial(_once, case.mechanism)
        result = replay(
            mechanism, case.dataset, case.neighbour, n=n, epsilon=case.epsilon, name=name
        )
        if verbose:
            head, *reasons = str(result).split("\n")[: 1 + len(result.reasons)]
            print(f"[{i + 1}/{len(cases)}] {head}", *reasons, sep="\n", file=sys.stderr)
        results.append(result)
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        table = pd.concat([result.to_frame() for result in results])
        table.to_csv(folder / "replay.csv")
        (folder / "replay.md").write_text(_replay_report(results), encoding="utf-8")
        if verbose:
            print(f"Report in {folder.resolve()}", file=sys.stderr)
    return results


def _once(mechanism: Callable[[Any, int], Any], data: Any) -> Any:
    """One output of a mechanism that draws many at once."""
    return mechanism(data, 1)


def _replay_report(results: list[ReplayResult]) -> str:
    convicted = [result.name for result in results if not result.passed]
    verdict = f"Convicted: {', '.join(convicted)}." if convicted else "Everything was certified."
    lines = [
        "# Replay of skdp",
        "",
        f"{verdict} Each line shows the largest privacy loss over the outputs that were tried, on "
        "one pair of neighbouring inputs. It is computed, not estimated, and trusts that the "
        "mechanisms draw from the distribution that they state; the audit does not.",
        "",
        "| mechanism | claimed | loss | pairs of runs | verdict |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {each.name} | {each.epsilon:g} | {each.loss:.6f} | {each.n_runs} | "
        f"{'; '.join([each.verdict, *each.reasons]).replace('|', '/')} |"
        for each in results
    ]
    return "\n".join(lines) + "\n"


def _chosen(names: Iterable[str] | None) -> Iterator[str]:
    if names is None:
        yield from AUDITS
        return
    for name in [names] if isinstance(names, str) else names:
        found = [entry for entry in AUDITS if name in (entry, entry.split(",")[0])]
        if not found:
            raise ValueError(f"There is no audit of {name!r}; there are {', '.join(AUDITS)}.")
        yield from found


def plot_library(results: list[AuditResult], path: Path) -> bool:
    """Save the picture of all audits; False if there is no matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    from ._plots import plot_audits

    # A figure of its own, so that a caller's pyplot state and backend stay as they are.
    figure = Figure(figsize=(8.0, 1.2 + 0.32 * len(results)), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    plot_audits(results, figure.add_subplot())
    figure.savefig(path)
    return True


def _write(folder: Path, results: list[AuditResult], false_alarm: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = pd.concat([result.to_frame() for result in results])
    table.to_csv(folder / "audit.csv")
    picture = plot_library(results, folder / "audit.png")
    convicted = [result.name for result in results if not result.passed]
    verdict = f"Convicted: {', '.join(convicted)}." if convicted else "Nothing was convicted."
    lines = [
        f"{verdict} Each line is a lower bound on the privacy loss of one mechanism on one pair of "
        "neighbouring inputs, from two independent halves of trials: one chose the event, the "
        "other measured it.",
        f"If all are correct, the probability that this report convicts any is at most "
        f"{false_alarm:g}. A bound below the claim does not prove privacy: another pair of inputs, "
        "a rarer event or more trials may show more.",
    ]
    columns = {
        "mechanism": [result.name for result in results],
        "claimed": [f"{result.epsilon:g}" for result in results],
        "lower bound": [f"{result.epsilon_lower_bound:.4f}" for result in results],
        "reachable": [f"{result.reachable:.2f}" for result in results],
        "trials a side": [f"{result.n_trials:,}" for result in results],
        "verdict": [result.verdict for result in results],
        "event": [str(result.event) for result in results],
    }
    rows = list(zip(*columns.values(), strict=True))
    markdown = ["# Audit of skdp", "", *lines, ""]
    if picture:
        markdown += ["![lower bounds](audit.png)", ""]
    markdown.append(f"| {' | '.join(columns)} |")
    markdown.append(f"|{' --- |' * len(columns)}")
    markdown += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    (folder / "audit.md").write_text("\n".join(markdown) + "\n", encoding="utf-8")
    body = ["<h1>Audit of skdp</h1>", *(f"<p>{html.escape(line)}</p>" for line in lines)]
    if picture:
        body.append('<img src="audit.png" alt="lower bounds on epsilon" style="max-width:100%">')
    body.append(pd.DataFrame(columns).to_html(index=False))
    (folder / "audit.html").write_text(
        "<!doctype html><html><head><meta charset='utf-8'><title>Audit of skdp</title>"
        "<style>body{font-family:sans-serif;margin:2em}td,th{padding:.3em .6em;text-align:left}"
        f"</style></head><body>{''.join(body)}</body></html>\n",
        encoding="utf-8",
    )
