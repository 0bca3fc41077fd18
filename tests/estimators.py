"""One instance of every estimator with data that suit it: the list the common checks go over.

A new estimator is added here (test_common.py fails until it is).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import skdp

SEX = ["Female", "Male"]
DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(17, 90, bins=8),
        "sex": skdp.Categorical(SEX),
        "work": skdp.Categorical(["none", "part", "full", "other"], other="other", nullable=True),
        "income": skdp.Categorical(["low", "high"]),
    }
)


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
    # Parameters that suit scikit-learn's checks: arrays of any width.
    array_params: dict[str, Any] = field(default_factory=dict)
    # Columns of the people that it reads; none: all of them.
    columns: tuple[str, ...] = ()
    # Checks of scikit-learn that fail, and why that is right.
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

CASES = [
    Case(
        skdp.HDPViewSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None},
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivTreeSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None},
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
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.GridSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None, "rule": "uniform"},
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PairViewSynthesizer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income"},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "target": None},
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.RangeTreeHistogram,
        params={"epsilon": 1.0, "domain": skdp.Domain({"age": skdp.Numeric(17, 90, bins=8)})},
        columns=("age",),
    ),
    Case(
        skdp.DPKMeans,
        params={"n_clusters": 3, "epsilon": 1.0, "bounds": (17, 90), "n_init": 6},
        array_params={"bounds": (-10, 10)},
        columns=("age",),
        expected_failures={
            **EMPTY_IS_LEGAL,
            "check_clustering": "asks for labels_, one exact value for each row",
        },
    ),
    Case(
        skdp.PrivPfCTransformer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income", "max_grids": 500},
        array_params=GRID_ARRAYS,
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivPfCClassifier,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income", "max_grids": 500},
        array_params=GRID_ARRAYS,
        expected_failures=EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    Case(
        skdp.DiffGenTransformer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income", "n_specializations": 3},
        array_params=GRID_ARRAYS,
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.ProjectedHistogramTransformer,
        params={"epsilon": 1.0, "domain": DOMAIN, "target": "income", "n_attributes": 2},
        array_params=GRID_ARRAYS,
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
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.DataCube,
        params={"epsilon": 1.0, "domain": DOMAIN},
        array_params={"domain": skdp.Numeric(-10, 10, bins=4), "max_order": 2},
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivateStandardScaler,
        params={"epsilon": 1.0, "bounds": (17, 90)},
        array_params={"bounds": (-10, 10)},
        columns=("age",),
        expected_failures=EMPTY_IS_LEGAL,
    ),
    Case(
        skdp.PrivateQuantileClipper,
        params={"epsilon": 1.0, "bounds": (17, 90)},
        array_params={"bounds": (-10, 10)},
        columns=("age",),
        expected_failures=EMPTY_IS_LEGAL,
    ),
]
