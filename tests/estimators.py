"""One instance of every estimator with data that suit it: the list the common checks go over.

A new estimator is added here (test_common.py fails until it is).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from joblib.externals.loky.backend.reduction import dumps, loads
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

import skdp
from skdp.algorithms.kmeans.algorithms import ALGORITHMS
from skdp.datacube import CubePlan
from skdp.domain import Categorical, Numeric
from skdp.hierarchy import Tree

SEX = ["Female", "Male"]
DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(17, 90, bins=8),
        "sex": skdp.Categorical(SEX),
        "work": skdp.Categorical(["none", "part", "full", "other"], other="other", nullable=True),
        "income": skdp.Categorical(["low", "high"]),
    }
)

# Enough codes that they are measured by trees.
WIDE = skdp.Domain({"age": skdp.Numeric(17, 90, bins=64), "work": DOMAIN["work"]})
# Parts of fitted estimators that were public before the fit.
PUBLIC = (skdp.Domain, skdp.PrivacyLoss, CubePlan, Tree, Numeric, Categorical, Fraction)


def people(n_rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(17, 90, n_rows)
    income = np.where(age + rng.normal(0, 15, n_rows) > 50, "high", "low")
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(SEX, n_rows),
            "work": rng.choice(["none", "part", "full", "astronaut"], n_rows),
            "income": income,
        }
    )


@dataclass(frozen=True)
class Case:
    """How to make an estimator, its rows, and a domain for scikit-learn's checks."""

    estimator: type
    params: dict[str, Any] = field(default_factory=dict)
    # Parameters for scikit-learn's checks: arrays of any width.
    array_params: dict[str, Any] = field(default_factory=dict)
    # Columns of the people that it reads; empty: all of them.
    columns: tuple[str, ...] = ()
    # Named changes of the parameters that lead through another branch of the code.
    branches: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Checks of scikit-learn that are expected to fail, with the reason.
    expected_failures: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.estimator.__name__

    def rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns that it reads."""
        return frame[list(self.columns)] if self.columns else frame

    def make(self, **changes: Any) -> Any:
        return self.estimator(**{**self.params, **changes})

    def make_for_arrays(self) -> Any:
        return self.estimator(**{**self.params, **self.array_params})

    def fit(self, estimator: Any, frame: pd.DataFrame) -> Any:
        """Fit with the labels where the estimator wants them by themselves."""
        rows = self.rows(frame)
        params = estimator.get_params(deep=False)
        domain, target = params.get("domain"), params.get("target")
        if isinstance(domain, skdp.Domain):
            rows = rows[[name for name in domain.names if name in rows]]
        if target:
            return estimator.fit(rows.drop(columns=target), rows[target])
        return estimator.fit(rows)


EMPTY_IS_LEGAL = {
    "check_estimators_empty_data_messages": "an empty table is legal: its release is noise, and "
    "an error would tell that nobody is in it",
}

# A classifier that learns no label from the data.
DECLARED = "the classes are declared in public and never learned from y"
CLASSES_ARE_DECLARED = {
    "check_supervised_y_no_nan": "a missing label skips its record: an error would depend on a "
    "private value",
    "check_classifiers_classes": DECLARED,
    "check_classifiers_train": DECLARED,
    "check_classifiers_regression_target": DECLARED + ", so a continuous y is unknown labels",
}

# Labels of scikit-learn's checks are -1 to 3.
GRID_ARRAYS = {
    "epsilon": 50,
    "domain": skdp.Numeric(-10, 10, bins=4),
    "target": None,
    "classes": [-1, 0, 1, 2, 3],
}

# Targets of scikit-learn's checks lie within -500 to 500.
NUMBER_ARRAYS = {
    "epsilon": 50,
    "domain": skdp.Numeric(-10, 10, bins=4),
    "target": None,
    "target_range": (-500, 500),
}
TARGET_IS_SKIPPED = {
    "check_supervised_y_no_nan": "a missing target skips its record: an error would depend on a "
    "private value",
}
CASES = [
    Case(
        skdp.HDPViewSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None},
        branches={
            "paper": {"calibration": "paper"},
            "no target": {"target": None},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivTreeSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None},
        branches={
            "paper": {"calibration": "paper"},
            "no target": {"target": None},
            "two attributes at a time": {"split_attributes": 2},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.KDTreeSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={
            "domain": skdp.Numeric(-10, 10, bins=4),
            "target": None,
            "strategy": "hierarchical",
        },
        branches={
            "cells": {"strategy": "cell"},
            "hierarchical": {"strategy": "hierarchical"},
            "no correction": {"noise_correction": False},
            "no target": {"target": None},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.GridSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None, "rule": "uniform"},
        branches={
            **{rule: {"rule": rule} for rule in ("identity", "uniform", "m-estimator")},
            "sides": {"rule": 3},
            "no target": {"target": None},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.MarginalSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None},
        branches={
            "no target": {"target": None},
            "one column": {"target": None, "domain": DOMAIN.select(["age"])},
            "two columns": {"target": None, "domain": DOMAIN.select(["age", "work"])},
            "wide columns": {"target": None, "domain": WIDE},
            "single columns": {"target": None, "max_order": 1},
            "cells of pairs": {"target": None, "max_order": 2, "workload": "cells"},
            "some sets": {
                "target": None,
                "workload": {("age", "income"): 1, ("sex", "work", "income"): 0.5},
            },
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivBayesSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None},
        branches={
            "hierarchical": {"encoding": "hierarchical"},
            "mutual information": {"score_function": "mutual_information"},
            "F": {
                "score_function": "F",
                "domain": DOMAIN.select(["sex", "income"]).with_attribute(
                    "age", skdp.Numeric(17, 90, bins=2)
                ),
            },
            "negatives zero": {"negatives": "zero"},
            "few candidates": {"max_candidates": 1},
            "no target": {"target": None},
            "one column": {"target": None, "domain": DOMAIN.select(["age"])},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.RangeTreeHistogram,
        params={"epsilon": 1.0, "domain": skdp.Domain({"age": skdp.Numeric(17, 90, bins=8)})},
        columns=("age",),
        branches={
            "iterative": {"consistency": "iterative"},
            "no consistency": {"consistency": None},
            "not negative": {"non_negative": True},
            "levels alike": {"budget": "uniform", "branching": 2},
            "geometric": {"budget": "geometric", "branching": 2},
            "cube root": {"budget": "cube-root", "branching": 2},
            "all ranges": {"workload": "all"},
            "quantiles": {"workload": "quantiles"},
            "dawa": {"partition": "dawa"},
            "ahp": {"partition": "ahp"},
            "adaptive": {"partition": "adaptive"},
            "partition by itself": {"partition": "auto"},
        },
    ),
    Case(
        skdp.DPKMeans,
        params={"n_clusters": 3, "epsilon": 1.0, "domain": (17, 90), "n_init": 6},
        array_params={"domain": (-10, 10)},
        columns=("age",),
        branches={
            **{name: {"algorithm": name} for name in ALGORITHMS if name != "auto"},
            "known size": {"n_samples": 300},
            "given start": {"algorithm": "lloyd", "init": [[20], [50], [80]]},
            "given start, improved": {"algorithm": "lloyd-improved", "init": [[20], [50], [80]]},
            "choose k": {"n_clusters": (2, 3, 4)},
        },
        expected_failures={
            **EMPTY_IS_LEGAL,
            "check_clustering": "asks for labels_, one exact value for each row",
        },
    ),
    Case(
        skdp.PrivPfCTransformer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income", "max_grids": 500},
        array_params=GRID_ARRAYS,
        branches={
            "paper": {"selection": "paper"},
            "one hot": {"encoding": "onehot"},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivPfCClassifier,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income", "max_grids": 500},
        array_params=GRID_ARRAYS,
        branches={
            "paper": {"selection": "paper"},
        },
        expected_failures=EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    Case(
        skdp.PrivateAdditiveClassifier,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params=GRID_ARRAYS,
        branches={
            "several classes": {"target": "work"},
            "few groups": {"max_groups": 2},
            "pairs": {"interactions": 2},
        },
        expected_failures=EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    Case(
        skdp.PrivateAdditiveRegressor,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "age"},
        array_params=NUMBER_ARRAYS,
        expected_failures=EMPTY_IS_LEGAL | TARGET_IS_SKIPPED,
    ),
    Case(
        skdp.PrivateLinearRegression,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "age"},
        array_params=NUMBER_ARRAYS,
        branches={"functional": {"solver": "functional"}},
        expected_failures=EMPTY_IS_LEGAL | TARGET_IS_SKIPPED,
    ),
    Case(
        skdp.PrivateRidge,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "age"},
        array_params=NUMBER_ARRAYS,
        branches={"functional": {"solver": "functional", "alpha": 10}},
        expected_failures=EMPTY_IS_LEGAL | TARGET_IS_SKIPPED,
    ),
    Case(
        skdp.PrivateLogisticRegression,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params=GRID_ARRAYS,
        branches={
            "several classes": {"target": "work"},
            "functional": {"solver": "functional", "one_hot": "all"},
            "genetic": {"solver": "genetic", "crossover": False},
        },
        expected_failures=EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    Case(
        skdp.PrivateLinearSVC,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params=GRID_ARRAYS,
        branches={"local search": {"solver": "local-search"}},
        expected_failures=EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    Case(
        skdp.PrivateNaiveBayes,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params=GRID_ARRAYS,
        branches={"several classes": {"target": "work"}},
        expected_failures=EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    Case(
        skdp.PrivatePCA,
        params={"epsilon": 1.0, "domain": skdp.Domain({"age": DOMAIN["age"]})},
        array_params={"epsilon": 50, "domain": skdp.Numeric(-10, 10, bins=4)},
        columns=("age",),
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivateDecisionTreeClassifier,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params=GRID_ARRAYS,
        branches={
            "id3": {"algorithm": "id3"},
            "c4.5": {"algorithm": "c4.5", "quality": "information"},
            "several classes": {"target": "work", "quality": "gini"},
        },
        expected_failures=EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    Case(
        skdp.PrivateRandomForestClassifier,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params=GRID_ARRAYS,
        branches={"apart": {"rows": "apart", "n_trees": 3, "max_features": 0.5}},
        expected_failures=EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    Case(
        skdp.SampleAggregate,
        params={
            "estimator": StandardScaler(),
            "epsilon": 1.0,
            "output_range": ([0], [100]),
            "n_blocks": 20,
            "output": "mean_",
        },
        array_params={
            "estimator": LinearRegression(),
            "output_range": (-10, 10),
            "output": "intercept_",
            "n_blocks": 4,
        },
        columns=("age",),
        branches={
            "counted": {"n_blocks": None},
            "winsorised": {"aggregate": "winsorised"},
            "median": {"aggregate": "median"},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.DiffGenTransformer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income", "n_specializations": 3},
        array_params=GRID_ARRAYS,
        branches={
            "one hot": {"encoding": "onehot"},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.ProjectedHistogramTransformer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income", "n_attributes": 2},
        array_params=GRID_ARRAYS,
        branches={
            "one hot": {"encoding": "onehot"},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.DPTopKSelector,
        params={"k": 2, "epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={
            "k": 1,
            "domain": skdp.Numeric(-10, 10, bins=4),
            "target": None,
            "classes": [0, 1, 2],
        },
        branches={
            "numbers": {"target": "age"},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.DataCube,
        # The search for the default is long for the many arrays of the checks.
        params={"epsilon": 1.0, "domain": DOMAIN, "strategy": "bmax"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "max_order": 2},
        branches={
            **{name: {"strategy": name} for name in ("auto", "all", "base")},
            "pmost": {"strategy": "pmost", "max_variance": 1e13},
            "mean": {"objective": "mean"},
            "l1": {"consistency": "l1", "strategy": "all"},
            "linf": {"consistency": "linf", "strategy": "all"},
            "no consistency": {"consistency": None, "strategy": "all"},
            "sums": {"measure": "sum", "value": "age", "dimensions": ["sex", "work"]},
            "means": {"measure": "mean", "value": "age", "dimensions": ["sex", "work"]},
            "low order": {"max_order": 1},
        },
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivateStandardScaler,
        params={"epsilon": 1.0, "domain": (17, 90)},
        array_params={"domain": (-10, 10)},
        columns=("age",),
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivateQuantileClipper,
        params={"epsilon": 1.0, "domain": (17, 90)},
        array_params={"domain": (-10, 10)},
        columns=("age",),
        expected_failures=EMPTY_IS_LEGAL,
    ),
]


def ways() -> list[tuple[Case, dict[str, Any], str]]:
    """Every estimator in each of its branches, and a name for it."""
    return [
        (case, changes, f"{case.name}, {branch}" if branch else case.name)
        for case in CASES
        for branch, changes in {"": {}, **case.branches}.items()
    ]


def released_arrays(estimator: Any) -> dict[str, np.ndarray]:
    """All numbers that a fit has released, by their path.

    Public parts (the domain, the plan of a cube, the tree of a histogram, the privacy loss) and
    parts without numbers are left out.
    """
    found: dict[str, np.ndarray] = {}
    seen: set[int] = set()

    def visit(value: Any, path: str) -> None:
        if isinstance(value, bool | str | bytes | type(None)) or id(value) in seen:
            return
        if isinstance(value, int | float | np.number | np.ndarray):
            array = np.asarray(value)
            if array.dtype.kind in "iuf" and array.size:
                found[path] = array
            return
        if isinstance(value, pd.DataFrame | pd.Series):
            visit(value.select_dtypes("number").to_numpy(), path)
            return
        if isinstance(value, PUBLIC):
            return
        seen.add(id(value))
        if isinstance(value, Mapping):
            items = [(f"{path}[{key}]", part) for key, part in value.items()]
        elif isinstance(value, list | tuple):
            items = [(f"{path}[{i}]", part) for i, part in enumerate(value)]
        elif type(value).__module__.startswith("skdp"):
            slots = [
                name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())
            ]
            names = [*getattr(value, "__dict__", {}), *slots]
            items = [(f"{path}.{name}", getattr(value, name)) for name in dict.fromkeys(names)]
        else:
            return
        for name, part in items:
            visit(part, name)

    for name, value in vars(estimator).items():
        if name.endswith("_"):
            visit(value, name)
    return found


def other_processes(monkeypatch: Any, module: Any) -> list[int]:
    """What goes to workers through `Parallel` of a module goes as bytes, the last part first.

    Returns the list of their numbers, as they are asked for.
    """
    used: list[int] = []

    def parallel(n_jobs: int, *, max_nbytes: None) -> Any:
        def run(tasks: Any) -> list[Any]:
            sent = [dumps(task) for task in tasks]
            answers = []
            for made, args, named in map(loads, reversed(sent)):
                answers.append(made(*args, **named))
            return answers[::-1]

        used.append(n_jobs)
        return run

    monkeypatch.setattr(module, "Parallel", parallel)
    return used
