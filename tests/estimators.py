"""One instance of every estimator with data that suit it: the list the common checks go over.

A new estimator is added here (test_common.py fails until it is).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

import skdp
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
    "an error would tell that nobody is in it"
}
TARGET_IS_SKIPPED = {
    "check_supervised_y_no_nan": "a missing label or target skips its record: an error would "
    "depend on a private value"
}
# A classifier that learns no label from the data.
DECLARED = "the classes are declared in public and never learned from y"
CLASSES_ARE_DECLARED = TARGET_IS_SKIPPED | {
    "check_classifiers_classes": DECLARED,
    "check_classifiers_train": DECLARED,
    "check_classifiers_regression_target": DECLARED + ", so a continuous y is unknown labels",
}
LABELLED = {"epsilon": 1.0, "domain": DOMAIN, "target": "income"}
BINS = skdp.Numeric(-10, 10, bins=4)
# Labels of scikit-learn's checks are -1 to 3, and targets lie within -500 to 500.
GRID_ARRAYS = {"epsilon": 50, "domain": BINS, "target": None, "classes": [-1, 0, 1, 2, 3]}
NUMBER_ARRAYS = {"epsilon": 50, "domain": BINS, "target": None, "target_range": (-500, 500)}


def synthesizer(kind: type, **arrays: Any) -> Case:
    return Case(kind, LABELLED, {"domain": BINS, "target": None, **arrays}, (), EMPTY_IS_LEGAL)


def of_labels(kind: type, failures: dict[str, str] = CLASSES_ARE_DECLARED, **params: Any) -> Case:
    return Case(kind, LABELLED | params, GRID_ARRAYS, (), EMPTY_IS_LEGAL | failures)


def of_numbers(kind: type) -> Case:
    failures = EMPTY_IS_LEGAL | TARGET_IS_SKIPPED
    return Case(kind, LABELLED | {"target": "age"}, NUMBER_ARRAYS, (), failures)


def of_ages(kind: type, params: dict[str, Any], arrays: dict[str, Any], **failures: str) -> Case:
    """An estimator of one column."""
    return Case(kind, {"epsilon": 1.0, **params}, arrays, ("age",), EMPTY_IS_LEGAL | failures)


AGES = {"domain": (17, 90)}
CASES = [
    synthesizer(skdp.HDPViewSynthesizer),
    synthesizer(skdp.PrivTreeSynthesizer),
    synthesizer(skdp.KDTreeSynthesizer, strategy="hierarchical"),
    synthesizer(skdp.GridSynthesizer, rule="uniform"),
    synthesizer(skdp.HDMMSynthesizer),
    synthesizer(skdp.MarginalSynthesizer),
    synthesizer(skdp.PrivBayesSynthesizer),
    Case(
        skdp.RangeTreeHistogram,
        params={"epsilon": 1.0, "domain": skdp.Domain({"age": skdp.Numeric(17, 90, bins=8)})},
        columns=("age",),
    ),
    of_ages(
        skdp.DPKMeans,
        {"n_clusters": 3, "n_init": 6, **AGES},
        {"domain": (-10, 10)},
        check_clustering="asks for labels_, one exact value for each row",
    ),
    of_labels(skdp.PrivPfCTransformer, {}, max_grids=500),
    of_labels(skdp.PrivPfCClassifier, max_grids=500),
    of_labels(skdp.PrivateAdditiveClassifier),
    of_numbers(skdp.PrivateAdditiveRegressor),
    of_numbers(skdp.PrivateLinearRegression),
    of_labels(skdp.PrivateLogisticRegression),
    of_labels(skdp.PrivateLinearSVC),
    of_labels(skdp.PrivateNaiveBayes),
    of_ages(
        skdp.PrivatePCA,
        {"domain": skdp.Domain({"age": DOMAIN["age"]})},
        {"epsilon": 50, "domain": BINS},
    ),
    of_labels(skdp.PrivateDecisionTreeClassifier),
    of_labels(skdp.PrivateRandomForestClassifier),
    of_ages(
        skdp.SampleAggregate,
        {
            "estimator": StandardScaler(),
            "output_range": ([0], [100]),
            "n_blocks": 20,
            "output": "mean_",
        },
        {
            "estimator": LinearRegression(),
            "output_range": (-10, 10),
            "output": "intercept_",
            "n_blocks": 4,
        },
    ),
    of_labels(skdp.DiffGenTransformer, {}, n_specializations=3),
    of_labels(skdp.ProjectedHistogramTransformer, {}, n_attributes=2),
    Case(
        skdp.DPTopKSelector,
        params=LABELLED | {"k": 2},
        array_params={"k": 1, "domain": BINS, "target": None, "classes": [0, 1, 2]},
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.DataCube,
        # The search for the default is long for the many arrays of the checks.
        params={"epsilon": 1.0, "domain": DOMAIN, "strategy": "bmax"},
        array_params={"domain": BINS, "max_order": 2},
        expected_failures=EMPTY_IS_LEGAL,
    ),
    of_ages(skdp.PrivateStandardScaler, AGES, {"domain": (-10, 10)}),
    of_ages(skdp.PrivateQuantileClipper, AGES, {"domain": (-10, 10)}),
]


def public_estimators() -> list[type]:
    """All estimators and meta-estimators that users import."""
    homes = (skdp, skdp.model_selection)
    found = [getattr(home, name) for home in homes for name in home.__all__]
    return [each for each in found if isinstance(each, type) and issubclass(each, BaseEstimator)]


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
