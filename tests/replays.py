"""Every estimator and every branch of its parameters, with pairs of data sets that are hard on it.

`audit/test_replay.py` replays all of them. A new estimator, or a parameter that changes what is
measured, is added here (test_replay.py fails until every estimator is).
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from neighbours import (
    BINARY,
    BOX,
    CLASSES,
    CODES,
    LINE,
    MANY_BINS,
    MANY_CODES,
    MAP,
    NUMBERS,
    PLANE,
    RULED,
    RULED_PLANE,
    SPACE,
    THREE,
    WHOLE,
    WIDE,
    Pairs,
    apart,
    arrays_of,
    cells,
    edge,
    ends_of_blocks,
    far_off,
    guesses,
    labels_and_scores,
    many_baskets,
    narrow,
    pairs_of,
    persons_of,
    rare_codes,
    real_numbers,
    spread,
    values_of_persons,
    values_on_a_line,
    with_a_contrary,
    with_broken_rules,
    with_gaps,
    with_losses,
)
from odd_values import CONTAINERS, ODD_VALUES, odd_pair
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skdp
from skdp import inspection, model_selection
from skdp.model_selection import PrivateGridSearchCV
from skdp.release import Boxes, BoxModel, Intervals
from skdp.workloads import Workload

EPSILONS = (0.05, 1.0, 1000.0)
# The paper's noise would cut a domain down to its cells at a large epsilon.
PAPER = (0.05, 1.0, 2.0)


def _first(data: Any) -> Any:
    return data[0] if isinstance(data, tuple) else data


def n_rows(data: Any) -> int:
    """Rows of a table, or of the first part of a pair of X and y."""
    return len(_first(data))


@dataclass(frozen=True)
class Branch:
    """An estimator, or a function of the data, and pairs to replay it on."""

    name: str
    make: Callable[[float], Any]
    pairs: Callable[[], Pairs]
    epsilons: tuple[float, ...] = EPSILONS
    # How often epsilon a function claims; None where the fitted estimator says it.
    times: float | None = None
    # Pairs of runs for each pair of data sets and epsilon; of 2, the default suite takes 1.
    runs: int = 2
    # What it needs besides skdp's own requirements.
    needs: tuple[str, ...] = ()
    # Rows that count of a person, in functions; estimators say it themselves.
    rows_of_person: int = 1

    def claim(self, epsilon: float) -> float | None:
        """What a replay is to claim; None where the fitted estimator says it."""
        return None if self.times is None else self.times * epsilon

    @property
    def usual(self) -> Any:
        """The data set that is nearest to 40 rows."""
        return min(
            (data for data, _ in self.pairs().values()), key=lambda data: abs(n_rows(data) - 40)
        )

    def odd(self, everything: bool = False) -> Iterator[tuple[str, tuple[Any, Any]]]:
        """Pairs in other containers, with an odd value in the record: all, or one by turns."""
        pairs = self.pairs()
        data = min(
            (pair[1] for pair in pairs.values() if n_rows(pair[1])),
            key=lambda data: abs(n_rows(data) - 20),
        )
        frame = _first(data)
        unit = "who" if isinstance(frame, pd.DataFrame) and "who" in frame else None
        for box, value, place in self.turns(unit, everything):
            yield f"{value} in {box}", odd_pair(data, box, value, place, unit=unit)

    def turns(
        self, unit: str | None = None, everything: bool = False
    ) -> Iterator[tuple[str, str, int]]:
        """Containers and odd values, each with the column that holds the value."""
        names = [name for name in CONTAINERS if unit is None or name.startswith("columns")]
        if self.name == "private_score, brier_score":
            names.remove("lists")  # probabilities of three labels are an array or a frame
        turn = zlib.crc32(self.name.encode())
        values = list(ODD_VALUES)
        if everything:
            yield from ((box, value, turn + k) for k, value in enumerate(values) for box in names)
        else:
            yield names[turn % len(names)], values[turn // 7 % len(values)], turn // 11

    @property
    def most(self) -> int:
        """Rows that may count of what differs between two data sets."""
        made = self.make(1.0)
        known = made.get_params(deep=False) if isinstance(made, BaseEstimator) else {}
        return known.get("max_rows_per_id") or self.rows_of_person


def of(
    name: str,
    domain: Any = SPACE,
    pairs: Any = None,
    *,
    epsilons: tuple[float, ...] = EPSILONS,
    runs: int = 2,
    engine: Callable[[Any], Any] | None = None,
    **params: Any,
) -> Branch:
    """A branch of the estimator that its name begins with.

    Parameters
    ----------
    name : str
        A branch "persons" has these as the unit of privacy.
    domain : Domain or pair
    pairs : function of the domain, or names of `pairs_of`
    engine : function of a pair of frames, default=None
        It holds them in its own way, and is named as the library that it needs.
    **params
        With a target, its column is taken out.
    """
    kind, _, about = name.partition(",")
    estimator = getattr(skdp, kind, None) or getattr(model_selection, kind)
    persons = "persons" in about
    target = None if persons else params.get("target")
    if persons:
        params |= {"max_rows_per_id": 3, "privacy_id": "who"}
    find = pairs if callable(pairs) else persons_of if persons else pairs_of

    def data() -> Pairs:
        found = find(domain)
        if isinstance(pairs, tuple):
            found = {key: found[key] for key in pairs}
        if engine is not None:
            found = {key: engine(pair) for key, pair in found.items()}
        return apart(found, target) if target else found

    return Branch(
        name,
        lambda epsilon: estimator(**{"epsilon": epsilon, "domain": domain, **params}),
        data,
        epsilons,
        runs=runs,
        needs=(engine.__name__,) if engine else (),
    )


def call(
    name: str,
    function: Callable[..., Any],
    pairs: Callable[[], Pairs],
    *,
    runs: int = 12,
    times: float = 1.0,
    rows_of_person: int = 1,
) -> Branch:
    """A branch of a function of the data and epsilon."""
    return Branch(
        name,
        lambda epsilon: lambda data: function(data, epsilon=epsilon),
        pairs,
        times=times,
        runs=runs,
        rows_of_person=rows_of_person,
    )


# --- synthesizers

AS_PUBLISHED: dict[str, Any] = {"calibration": "paper", "max_parents": 1}

SYNTHESIZERS = [
    of("HDPViewSynthesizer, one column", LINE),
    of("HDPViewSynthesizer, four columns"),
    of("HDPViewSynthesizer, paper", epsilons=PAPER, calibration="paper"),
    of(
        "HDPViewSynthesizer, paper with other parameters",
        epsilons=PAPER,
        calibration="paper",
        alpha=3,
        beta=0.3,
        gamma=0.5,
        ratio=0.6,
    ),
    of("HDPViewSynthesizer, persons", PLANE),
    of("PrivTreeSynthesizer, one column", LINE),
    of("PrivTreeSynthesizer, four columns"),
    of("PrivTreeSynthesizer, paper", epsilons=PAPER, calibration="paper"),
    of("PrivTreeSynthesizer, split_attributes=1", split_attributes=1),
    of("PrivTreeSynthesizer, persons", PLANE),
    of("KDTreeSynthesizer, one column", LINE, xi0=2, xi1=1),
    of("KDTreeSynthesizer, four columns", xi0=2, xi1=1),
    of("KDTreeSynthesizer, cells", LINE, strategy="cell"),
    of("KDTreeSynthesizer, hierarchical, one column", LINE, strategy="hierarchical"),
    of("KDTreeSynthesizer, hierarchical, height=3", strategy="hierarchical", height=3),
    of("KDTreeSynthesizer, range-tree", strategy="range-tree", height=3),
    of("KDTreeSynthesizer, entropy", unevenness="entropy", xi0=2, xi1=1),
    of("KDTreeSynthesizer, paper", cell_share=0.2, calibration="paper"),
    of(
        "KDTreeSynthesizer, paper, hierarchical",
        strategy="hierarchical",
        calibration="paper",
        height=3,
    ),
    of("KDTreeSynthesizer, persons", PLANE),
    of("GridSynthesizer, one column", LINE, with_gaps, rule="uniform"),
    *(
        of(f"GridSynthesizer, rule={rule}", SPACE, with_gaps, rule=rule)
        for rule in ("identity", "extended", "m-estimator", 2)
    ),
    of("GridSynthesizer, uniform, theta=1", SPACE, with_gaps, rule="uniform", theta=1),
    of("GridSynthesizer, persons", PLANE),
    of("HDMMSynthesizer, four columns", workload=Workload("prefixes", 2)),
    of("HDMMSynthesizer, persons", PLANE),
    of("PrivBayesSynthesizer, one column", LINE),
    of("PrivBayesSynthesizer, four columns"),
    of("PrivBayesSynthesizer, hierarchical", encoding="hierarchical", theta=1),
    of("PrivBayesSynthesizer, mutual information", score_function="mutual_information"),
    of("PrivBayesSynthesizer, few candidates", max_candidates=2, negatives="zero", theta=0.01),
    of("PrivBayesSynthesizer, score F", BINARY, score_function="F"),
    of("PrivBayesSynthesizer, rare codes", THREE, rare_codes, epsilons=(1.0,)),
    *(
        of(f"PrivBayesSynthesizer, paper, {score}", score_function=score, **AS_PUBLISHED)
        for score in ("R", "mutual_information")
    ),
    of("PrivBayesSynthesizer, persons", PLANE),
]


def marginal(
    name: str, domain: Any = SPACE, pairs: Any = ("corners", "from the middle"), **params: Any
) -> Branch:
    """A way through the release of marginals.

    At epsilon 1000 the counts of all columns together are measured; of "crowded", all columns are
    one table at 1 or 2 if sets of three columns are allowed, else pairs are measured.
    """
    if isinstance(pairs, tuple) and len(pairs) > 1:
        pairs = ("two", *pairs, "crowded", "a row of nan")
    return of(f"MarginalSynthesizer, {name}", domain, pairs, **params)


ALL, CROWDED = pairs_of, ("crowded",)
PRIOR = skdp.PublicTable(spread(SPACE, 300, seed=1))
MARGINALS = [
    marginal("prior", prior=PRIOR, max_order=2, runs=1),
    marginal("prior, target", SPACE, CROWDED, epsilons=(1.0,), prior=PRIOR, target="s"),
    marginal("one column", LINE, ALL),
    marginal("two columns", PLANE),
    marginal("two columns of many codes", MAP, runs=1),
    marginal("more than 512 codes", CODES, runs=1),
    marginal("more than 512 codes of two", MANY_CODES, runs=1),
    marginal("four columns", SPACE, ALL),
    *(marginal(f"max_order={order}", max_order=order) for order in (1, 2, 4)),
    *(marginal(f"workload {each}", workload=each) for each in ("ranges", "cells")),
    marginal(
        "workload of sets",
        workload={("x", "s"): 1, ("y", "z"): 0.5, ("x", "y", "s"): 0.25},
    ),
    marginal("pairs", SPACE, CROWDED, epsilons=(1.3,), runs=4, max_order=2),
    marginal("pairs, rules", RULED, CROWDED, epsilons=(3.0,), max_order=2),
    marginal("all columns, or pairs", SPACE, CROWDED, epsilons=(0.7,), runs=4),
    marginal("all columns as one table", SPACE, CROWDED, epsilons=(2.0,), runs=4),
    marginal("all columns as one table, rules", RULED, CROWDED, epsilons=(3.0,)),
    marginal("joint counts", epsilons=(20.0,)),
    marginal("joint counts of many codes", MAP, epsilons=(20.0,), runs=1),
    marginal("joint counts, rules", RULED, epsilons=(20.0,)),
    marginal("target", target="s"),
    marginal("target, pairs", SPACE, CROWDED, epsilons=(2.0,), target="s", max_order=2),
    marginal("more than 20 classes", CLASSES, target="s"),
    marginal(
        "rules", RULED, lambda domain: _some(with_broken_rules(domain)), epsilons=(0.05, 5.0, 1e3)
    ),
    marginal("rules, target", RULED, epsilons=(1.0, 1000.0), target="s"),
    marginal("rules, persons", RULED_PLANE, lambda _: persons_of(PLANE)),
    marginal("persons", SPACE, persons_of, runs=1),
]


def _some(pairs: Pairs) -> Pairs:
    wanted = {"two", "corners", "from the middle", "crowded", "a row of nan", "most break a rule"}
    return {name: pair for name, pair in pairs.items() if name in wanted}


def stopping(estimator: Any) -> Branch:
    """A release that stops where records are lost: what was released then is in the error."""

    def make(epsilon: float) -> Callable[[Any], Any]:
        def fitted(rows: Any) -> Any:
            try:
                return estimator(epsilon=epsilon, domain=SPACE, on_loss="stop").fit(rows)
            except skdp.RecordsLostError as error:
                return error

        return fitted

    name = f"{estimator.__name__}, stop"
    # At 50 it is beyond doubt that a third is lost.
    return Branch(name, make, lambda: with_losses(SPACE), (0.05, 50.0, 1000.0))


# --- counts of one column, clusters, grids

HISTOGRAMS = [
    of("RangeTreeHistogram, defaults", LINE),
    *(
        of(f"RangeTreeHistogram, {key}={value}", LINE, **{key: value})
        for key, value in (
            ("workload", "quantiles"),
            ("consistency", "iterative"),
            ("non_negative", True),
            ("partition", "dawa"),
            ("partition", "ahp"),
            ("partition", "adaptive"),
            ("partition", "auto"),
        )
    ),
    of("RangeTreeHistogram, budget=uniform", LINE, branching=2, budget="uniform"),
    of("RangeTreeHistogram, persons", LINE),
    *(
        of(f"RangeTreeHistogram, {partition}, 600 bins", WIDE, partition=partition)
        for partition in ("dawa", "ahp", "adaptive")
    ),
    of("RangeTreeHistogram, dawa, 9,000 bins", MANY_BINS, partition="dawa"),
]


def kmeans(name: str, n_columns: int = 2, domain: Any = BOX, **params: Any) -> Branch:
    given = {"n_clusters": 2, "n_init": 2, **params}
    return of(f"DPKMeans, {name}", domain, arrays_of(n_columns), **given)


STARTS = [[-0.5, -0.5], [0.5, 0.5]]
NARROW = {"n_clusters": 2, "n_init": 2, "n_samples": 9_000}
CLUSTERINGS = [
    kmeans("auto"),
    kmeans("auto, a grid and a round", n_samples=400),
    kmeans("auto, choice of k", n_clusters=[2, 3]),
    kmeans("lloyd", algorithm="lloyd", init=STARTS, n_rounds=2),
    kmeans("lloyd, random start", algorithm="lloyd", n_rounds=2),
    kmeans("lloyd-improved, given size", algorithm="lloyd-improved", n_samples=100),
    *(
        kmeans(name, algorithm=name)
        for name in (
            "lloyd-improved",
            "uniform-grid",
            "m-estimator",
            "extended-grid",
            "hybrid",
            "sample-aggregate",
            "genetic",
        )
    ),
    kmeans("sample-aggregate, given blocks", algorithm="sample-aggregate", n_blocks=3),
    kmeans("tree in five dimensions, small", 5),
    kmeans("tree in five dimensions, with margins", 5, n_samples=2_000),
    kmeans("tree in five dimensions, large", 5, n_samples=200_000),
    of("DPKMeans, narrow ranges", (-1_000, 1_000), narrow(1), **NARROW),
    of(
        "DPKMeans, narrow ranges of two columns",
        (-1_000, 1_000),
        narrow(2),
        epsilons=(1.0,),
        **NARROW,
    ),
    kmeans("many columns, few rows", 51),
    kmeans("many columns, many rows", 51, n_samples=20_000),
    kmeans("many columns, far from the middle", 51, (-1_000, 50), n_samples=20_000),
    kmeans("many columns, given starts", 51, init=np.eye(2, 51)),
    of("DPKMeans, persons", (0, 8), lambda _: persons_of(LINE), n_clusters=2, n_init=2),
]

GRIDS = [
    *(
        of(name, SPACE, with_a_contrary, target="s", **params)
        for name, params in {
            "PrivPfCTransformer": {"max_grids": 500},
            "PrivPfCTransformer, as in the paper": {"calibration": "paper"},
            "PrivPfCTransformer, other shares": {
                "calibration": "paper",
                "sensitivity": "exact",
                "shares": (3, 10, 87),
            },
            "PrivPfCTransformer, few grids": {"max_grids": 5},
            "PrivPfCClassifier": {"max_grids": 500},
            "DiffGenTransformer": {"n_specializations": 3},
            "ProjectedHistogramTransformer": {"n_attributes": 2},
            "DiffGenTransformer, paper": {"n_specializations": 3, "calibration": "paper"},
            "ProjectedHistogramTransformer, paper": {"n_attributes": 2, "calibration": "paper"},
        }.items()
    ),
    of(
        "PrivPfCTransformer, merged values",
        SPACE,
        CROWDED,
        epsilons=(40.0,),
        runs=3,
        target="s",
        max_grids=500,
    ),
    of("PrivPfCClassifier, more than 20 classes", CLASSES, target="s", max_grids=500),
    of("DPTopKSelector", target="s", k=2),
    of("DPTopKSelector, canonical", target="s", k=2, method="canonical"),
    of("DPTopKSelector, sparse vector", target="s", k=1, method="sparse-vector"),
    of("DPTopKSelector, sparse vector, a number", target="x", k=2, method="sparse-vector"),
]

# --- models

ADDITIVE = [
    # With the largest epsilon sums of residuals pay.
    of("PrivateAdditiveClassifier, two classes", target="s"),
    of("PrivateAdditiveClassifier, many classes", CLASSES, target="s"),
    of("PrivateAdditiveRegressor", target="x"),
]

TREE, FOREST = "PrivateDecisionTreeClassifier", "PrivateRandomForestClassifier"
TREES = [
    of(f"{TREE}, defaults", target="s", runs=1),
    of(f"{TREE}, many classes", CLASSES, target="s", runs=1, quality="gini"),
    of(f"{TREE}, id3", target="s", runs=1, algorithm="id3", max_depth=2),
    of(f"{TREE}, c4.5", target="s", runs=1, algorithm="c4.5", max_depth=2),
    of(f"{TREE}, max", target="s", runs=1, quality="max", max_depth=1),
    of(FOREST, target="s", runs=1),
]

LINEAR = [
    # The solvers of all are the same, but for the loss of searches.
    *(
        of(f"{name}, {solver}", target=target, runs=1, solver=solver)
        for name, target in (("PrivateLogisticRegression", "s"), ("PrivateLinearRegression", "x"))
        for solver in ("auto", "functional", "local-search", "genetic")
    ),
    of("PrivateLinearSVC, local-search", target="s", runs=1, solver="local-search"),
    of(
        "PrivateLinearSVC, local-search, all given",
        target="s",
        runs=1,
        solver="local-search",
        n_rounds=3,
        start=0.5,
        step=1,
        decay=0.5,
    ),
    of(
        "PrivateLogisticRegression, functional, many classes",
        CLASSES,
        target="s",
        runs=1,
        solver="functional",
        one_hot="all",
    ),
    of("PrivateNaiveBayes", target="s"),
    of("PrivatePCA", WHOLE),
    of("PrivatePCA, persons", WHOLE, runs=1),
]

# Of persons there is a branch of each; those of synthesizers are above.
PERSONS = [
    of(f"{name}, persons", PLANE, target=target, runs=1)
    for target, names in {
        "x": (
            "PrivateLinearRegression",
            "PrivateAdditiveRegressor",
            "PrivateRegressor",
        ),
        "s": (
            "PrivateNaiveBayes",
            "PrivateLogisticRegression",
            "PrivateLinearSVC",
            "PrivateAdditiveClassifier",
            TREE,
            FOREST,
            "PrivPfCTransformer",
            "PrivPfCClassifier",
            "DiffGenTransformer",
            "ProjectedHistogramTransformer",
        ),
    }.items()
    for name in names
]


# --- cubes and scalers

SOME = ("nobody", "from the middle")
CUBES = [
    *(
        of(f"DataCube, {name}", **params)
        for name, params in {
            "defaults": {},
            "bmax": {"strategy": "bmax"},
            "pmost": {"strategy": "pmost", "max_variance": 1e6},
            "all cuboids": {"strategy": "all"},
            "base": {"strategy": "base"},
            "optimized": {"strategy": "optimized", "max_order": 2},
            "optimized for the mean": {"strategy": "optimized", "objective": "mean"},
            "given sources": {"strategy": {"x": 1, (): 1}},
            "no consistency": {"strategy": "all", "max_order": 2, "consistency": None},
            "means": {"measure": "mean", "value": "x", "resolution": 0.5, "dimensions": ["z", "s"]},
            "means of signed values": {"measure": "mean", "value": "y", "dimensions": ["s"]},
        }.items()
    ),
    # Linear programs take their time.
    of("DataCube, consistency in l1", PLANE, SOME, runs=1, strategy="all", consistency="l1"),
    of("DataCube, consistency in linf", PLANE, SOME, runs=1, strategy="all", consistency="linf"),
    of("DataCube, known", PLANE, strategy="all", known={("x",): np.full(PLANE["x"].size, 5.0)}),
    of("DataCube, persons", PLANE),
    of("DataCube, means of persons", PLANE, measure="mean", value="x"),
]

SCALERS = [
    of("PrivateStandardScaler", BOX, arrays_of(2)),
    of("PrivateQuantileClipper", BOX, arrays_of(2), quantiles=(0.1, 0.75)),
    *(
        of(f"{name}, persons", (0, 8), lambda _: persons_of(LINE), runs=1)
        for name in ("PrivateStandardScaler", "PrivateQuantileClipper")
    ),
]

# --- around other estimators


class Extreme(BaseEstimator):
    """Answers with one end of the range of its output, and raises on some records."""

    def fit(self, X: Any, y: Any = None) -> Extreme:
        if len(X) % 3 == 2:
            raise ValueError(f"A text with values: {X}")
        end = float(len(X) % 3)
        self.end_ = np.array([end, 1.0 - end])
        return self


class Largest(BaseEstimator):
    """Sees which records are in a block, not only how many."""

    def fit(self, X: Any, y: Any = None) -> Largest:
        self.end_ = np.max(X, axis=0)
        return self


class Drawing(Extreme):
    """Draws from the generators of the process, and the more often the more records there are."""

    def fit(self, X: Any, y: Any = None) -> Drawing:
        coins = np.random.random() < 0.5, random.random() < 0.5  # noqa: NPY002
        draw_from_all(len(X))
        super().fit(X)
        if coins[0] != coins[1]:
            self.end_ = self.end_[::-1]
        return self


def draw_from_all(times: int) -> None:
    """Draw from the generators of the process."""
    np.random.random(times)  # noqa: NPY002
    random.getrandbits(32 * times)


# Classes of a user's may not stand behind a release; those of this module may, as a library's.
_installed = inspection.is_installed
inspection.is_installed = lambda module: module == __name__ or _installed(module)


class DrawingClassifier(ClassifierMixin, BaseEstimator):
    """Its labels are drawn from the generators of the process; predicting draws, too."""

    def fit(self, X: Any, y: Any) -> DrawingClassifier:
        self.classes_ = np.unique(y)
        self.coins_ = np.random.random(), random.random()  # noqa: NPY002
        return self

    def predict(self, X: Any) -> Any:
        draw_from_all(int(X["x"].nunique()))
        return np.repeat(self.classes_[int(2 * self.coins_[0]) : :][:1], len(X))


def blocks(name: str, estimator: Any, pairs: Any = None, **params: Any) -> Branch:
    def make(epsilon: float) -> Any:
        given = {"output_range": ([0, 0], [1, 1]), "output": "end_", **params}
        return skdp.SampleAggregate(estimator, epsilon=epsilon, **given)

    return Branch(f"SampleAggregate, {name}", make, partial(pairs or arrays_of(2), None))


AGGREGATES = [
    blocks("mean", Extreme()),
    blocks("winsorised", Extreme(), aggregate="winsorised", n_blocks=8),
    blocks("median", Extreme(), aggregate="median", n_blocks=9),
    blocks(
        "largest of blocks",
        Largest(),
        ends_of_blocks,
        n_blocks=5,
        output_range=([-1, -1], [1, 1]),
    ),
    blocks("blocks that draw", Drawing(), n_blocks=5),
]


def trees(epsilon: float) -> Any:
    encoded = make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        DecisionTreeClassifier(max_depth=2),
    )
    release = skdp.MarginalSynthesizer(epsilon=epsilon, domain=SPACE, target="s")
    return skdp.PrivateClassifier(encoded, release, n_samples=60)


def regressor(epsilon: float) -> Any:
    domain = SPACE.select(["x", "z"])
    release = skdp.HDPViewSynthesizer(epsilon=epsilon, domain=domain, target="x")
    return skdp.PrivateRegressor(DecisionTreeRegressor(max_depth=2), release, n_samples=60)


def search(epsilon: float, *, model: Any = trees, grid: Any = None, **params: Any) -> Any:
    grid = grid or {"estimator__decisiontreeclassifier__max_depth": [1, 3]}
    return PrivateGridSearchCV(model(epsilon), grid, epsilon=epsilon, **params)


def two_releases(epsilon: float) -> Any:
    return search(epsilon, grid={"synthesizer__epsilon": [epsilon, epsilon / 2]})


def regressor_search(epsilon: float) -> Any:
    grid = {"estimator": [DecisionTreeRegressor(max_depth=1), LinearRegression()]}
    return search(epsilon, model=regressor, grid=grid, metric="mean_squared_error", domain=(0, 4))


def three_folds(data: Any, epsilon: float) -> Any:
    return model_selection.private_cross_val_score(trees(epsilon), *data, epsilon=epsilon, cv=3)


def three_folds_that_draw(data: Any, epsilon: float) -> Any:
    plain = skdp.GridSynthesizer(epsilon=epsilon, domain=PLANE, target="s")
    model = skdp.PrivateClassifier(DrawingClassifier(), plain, n_samples=20)
    return model_selection.private_cross_val_score(model, *data, epsilon=epsilon, cv=3)


def labelled() -> Pairs:
    return apart(pairs_of(SPACE), "s")


def measured() -> Pairs:
    return apart(pairs_of(NUMBERS), "x")


def labelled_plane() -> Pairs:
    pairs = pairs_of(PLANE)
    return apart({name: pairs[name] for name in ("nobody", "two", "from the middle")}, "s")


COMPOSED = [
    Branch("PrivateClassifier", trees, labelled),
    # Which models follows from records times epsilon, and from the most frequent label.
    of("PrivateClassifier, default", epsilons=(0.05, 1.0, 200.0, 10_000.0), runs=1, target="s"),
    of(
        "PrivateClassifier, default of persons",
        PLANE,
        epsilons=(0.05, 1.0, 10_000.0),
        runs=1,
        target="s",
    ),
    Branch("PrivateRegressor", regressor, measured),
    of("PrivateRegressor, default", target="x", runs=1),
    Branch("PrivateGridSearchCV", search, labelled, runs=1),
    Branch("PrivateGridSearchCV, a release each", two_releases, labelled, runs=1),
    Branch(
        "PrivateGridSearchCV, area under the curve",
        partial(search, metric="roc_auc"),
        labelled,
        runs=1,
    ),
    Branch("PrivateGridSearchCV, mean squared error", regressor_search, measured),
    call("private_cross_val_score", three_folds, labelled, runs=1, times=3),
    call(
        "private_cross_val_score, models that draw",
        three_folds_that_draw,
        labelled_plane,
        runs=2,
        times=3,
    ),
]

# --- functions


def score(metric: str, about: str = "", pairs: Any = None, runs: int = 4, **options: Any) -> Branch:
    def release(data: Any, epsilon: float) -> Any:
        return model_selection.private_score(*data, metric=metric, epsilon=epsilon, **options)

    pairs = pairs or labels_and_scores()
    return call(f"private_score, {metric}{about}", release, pairs, runs=runs)


@cache
def clusters() -> Any:
    return skdp.DPKMeans(2, epsilon=1.0, domain=(0, 8), random_state=0).fit(np.eye(9, 2) * 4)


def placed() -> Pairs:
    clusters()  # fitted before a replay begins
    return arrays_of(2)(BOX)


def distances(rows: Any, epsilon: float) -> Any:
    return model_selection.private_score(rows, clusters(), "nicv", epsilon=epsilon)


def quality(rows: Any, epsilon: float) -> Any:
    report = skdp.quality.quality_report(rows, edge(SPACE, 0), domain=SPACE, epsilon=epsilon)
    return [report.scores, report.columns, report.pairs]


of_labels = labels_and_scores(lambda score: np.where(score > 0.4, 1, 0))
of_shares = labels_and_scores(lambda score: np.column_stack([1 - score, score]))
of_three = labels_and_scores(lambda score: np.column_stack([1 - score, score / 2, score / 2]))
SCORES = [
    score("accuracy", pairs=guesses, runs=12),
    score("mean_squared_error", pairs=far_off, runs=12, domain=(0, 1)),
    score("roc_auc"),
    score("f1", pairs=of_labels),
    score("balanced_accuracy", pairs=of_labels),
    score("log_loss", pairs=of_shares),
    score("brier_score", pairs=of_three, labels=[0, 1, 2]),
    score("mean_absolute_error", pairs=real_numbers, domain=(0, 1)),
    call("private_score, nicv", distances, placed, runs=2),
    call("quality_report", quality, lambda: pairs_of(SPACE), runs=2),
]


def baskets() -> Pairs:
    full = [["a"], ["a", "b"], ["b", "b", "martian"], [], ["a", "b", "c"]]
    return {
        "three items": (full, full[:-1]),
        "nothing": (full[:4], full[:3]),
        "nobody": (full[:1], []),
        "the first": (full, full[1:]),
        "no basket": ([*full, ODD_VALUES["a value that raises"]], full),
        "odd items": ([*full, ["a", *ODD_VALUES.values()]], full),
    }


def items(about: str, k: int = 2, pairs: Any = baskets, **options: Any) -> Branch:
    given = {"items": ["a", "b", "c", "d"], "max_items": 2, **options}

    def release(data: Any, epsilon: float) -> Any:
        return skdp.most_frequent_items(data, k, epsilon=epsilon, **given)

    return call(f"most_frequent_items{about}", release, pairs)


def large_counts(rows: Any, epsilon: float, columns: int, threshold: int) -> Any:
    return skdp.mechanisms.sparse_counts(
        np.tile(rows, columns),
        np.ones(len(rows), dtype=int),
        (2, 3, 5) * columns,
        epsilon,
        threshold,
        max_false=10**60,
    )


# One box for the whole plane, as an earlier release might have it.
ONE_BOX = skdp.Synopsis(
    PLANE,
    BoxModel(Boxes([[0, 0]], [list(PLANE.shape)]), [8], PLANE.shape, Intervals(0.2)),
)


def asked(rows: Any, epsilon: float) -> Any:
    """A session in which later questions depend on which answers were paid for."""
    curator = skdp.Curator(rows, ONE_BOX, epsilon=epsilon, threshold=2, max_paid=2)
    told = []
    for query in ("x < 1", None, "x < 1 or x > 3", "x < 1", None):
        if curator.remaining:
            told.append(curator.ask(query if curator.remaining == 2 else None))
    return told, curator.remaining, curator.history.drop(columns="query").to_numpy().tolist()


SELECTIONS = [
    items(""),
    items(", all counts", 3, max_items=1),
    items(", no counts", count_share=0),
    items(", sets", items=["a", ("a", "b"), ("b", "c")], max_items=2),
    items(", canonical", method="canonical"),
    items(
        ", auto",
        10,
        many_baskets,
        items=[f"i{j}" for j in range(12)],
        max_items=12,
        method="auto",
        count_share=0,
    ),
    call("Curator", asked, lambda: pairs_of(PLANE)),
    call("sparse_counts", partial(large_counts, columns=1, threshold=2), cells),
    call("sparse_counts, many cells", partial(large_counts, columns=30, threshold=5), cells),
]


def quantiles(
    about: str, shares: Any, bounds: Any = (0, 100), pairs: Any = values_on_a_line, **options: Any
) -> Branch:
    def release(data: Any, epsilon: float) -> Any:
        given = {"step": 1, **options}
        if isinstance(data, pd.DataFrame):
            data, given["persons"] = data["value"], data["who"]
        return skdp.private_quantiles(data, shares, epsilon=epsilon, domain=bounds, **given)

    most = options.get("max_rows_per_id", 1)
    return call(f"private_quantiles, {about}", release, pairs, rows_of_person=most)


QUARTILES = [0.25, 0.5, 0.75]
QUANTILES = [
    quantiles("median", 0.5),
    quantiles("recursive", QUARTILES),
    quantiles("independent", QUARTILES, method="independent"),
    quantiles("tree", QUARTILES, method="tree"),
    quantiles("real", [0.05, 0.1, 0.9, 0.95], (0.0, 100.0), step=None),
    quantiles("persons", QUARTILES, pairs=values_of_persons, max_rows_per_id=2),
]

# --- the same counts from engines


def polars(pair: Any) -> Any:
    import polars as pl

    return tuple(pl.from_pandas(rows).lazy() for rows in pair)


def duckdb(pair: Any) -> Any:
    import duckdb
    import pyarrow

    # Typed: DuckDB 1.1 takes an empty column of objects for integers.
    typed = [
        rows.astype({name: "string" for name in rows if rows[name].dtype == object})
        for rows in pair
    ]
    return tuple(duckdb.from_arrow(pyarrow.Table.from_pandas(rows)) for rows in typed)


LAZY = [
    of(name, domain, pairs, epsilons=(1.0,), engine=engine)
    for engine in (polars, duckdb)
    for name, domain, pairs in (
        (f"MarginalSynthesizer, {engine.__name__}", SPACE, ("alone in a corner", *SOME)),
        (f"MarginalSynthesizer, persons, {engine.__name__}", PLANE, ("many rows", "the first")),
        (f"RangeTreeHistogram, {engine.__name__}", LINE, ("alone in a corner", *SOME)),
    )
]

BRANCHES = [
    *SYNTHESIZERS,
    *MARGINALS,
    *map(stopping, (skdp.GridSynthesizer, skdp.MarginalSynthesizer)),
    *HISTOGRAMS,
    *CLUSTERINGS,
    *GRIDS,
    *ADDITIVE,
    *TREES,
    *AGGREGATES,
    *LINEAR,
    *PERSONS,
    *CUBES,
    *SCALERS,
    *COMPOSED,
    *SCORES,
    *SELECTIONS,
    *QUANTILES,
    *LAZY,
]

# Those whose records can be held in another container: not in an engine, as baskets or as codes.
CONTAINED = [
    branch
    for branch in BRANCHES
    if not branch.needs
    and not branch.name.startswith(("most_frequent_items", "sparse_counts", "a step of"))
    # Models for frames.
    and not branch.name.endswith("models that draw")
]

# Estimators that charge a ledger of their own.
CHARGED = [
    branch
    for branch in BRANCHES
    if not branch.needs
    and branch.times is None
    and {"ledger", "random_state"} <= {*getattr(branch.make(1.0), "get_params", dict)()}
    and "synthesizer__epsilon" not in branch.make(1.0).get_params()
    and "param_grid" not in branch.make(1.0).get_params()
]

# --- which of them run

# Words of the branches to run: `tests/mutants.py` chooses those that reach a file.
CHOSEN = os.environ.get("SKDP_BRANCHES", "")
_FAMILY = 5
# Branches that cost seconds and whose steps are in other branches too.
SLOW = {
    "MarginalSynthesizer, four columns",
    "MarginalSynthesizer, duckdb",
    "PrivateGridSearchCV, a release each",
    "PrivateClassifier",
}


def chosen(name: str, words: str = CHOSEN) -> bool:
    """Whether a name is one after "=", or holds all words of an alternative; "or" is between."""
    if words.startswith("="):
        return name in words[1:].split(" or ")
    alternatives = (re.findall(r"\w+", each) for each in words.split(" or "))
    return any(all(word in name for word in each) for each in alternatives)


def families() -> Iterator[Any]:
    """Branches of one estimator, a few at a time, of those whose libraries are installed."""
    found: dict[str, list[Branch]] = {}
    for branch in BRANCHES:
        if chosen(branch.name) and all(map(importlib.util.find_spec, branch.needs)):
            found.setdefault(branch.name.partition(",")[0], []).append(branch)
    for name, branches in found.items():
        for start in range(0, len(branches), _FAMILY):
            number = f" {start // _FAMILY + 1}" if len(branches) > _FAMILY else ""
            yield pytest.param(branches[start : start + _FAMILY], id=name + number)


def each_of(check: Callable[[Branch], Any], branches: list[Branch]) -> None:
    """Check branches in turn; an error says which."""
    for branch in branches:
        try:
            check(branch)
        except Exception as error:
            error.add_note(f"The branch is {branch.name!r}.")
            raise
