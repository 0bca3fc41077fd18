"""Differentially private estimators that work like scikit-learn's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .accounting import PrivacyLedger, PrivacyLoss
    from .classification import (
        DiffGenTransformer,
        PrivPfCClassifier,
        PrivPfCTransformer,
        ProjectedHistogramTransformer,
    )
    from .cluster import DPKMeans
    from .compose import PrivateClassifier, PrivateRegressor
    from .datacube import DataCube
    from .domain import (
        Categorical,
        Date,
        Datetime,
        Domain,
        Identifier,
        Numeric,
        PublicTable,
        Taxonomy,
        Text,
        at_most,
        derived,
        forbid,
    )
    from .exceptions import (
        BudgetExceededError,
        DomainError,
        InsecureSeedWarning,
        PrivacyLeakWarning,
        RecordsLostError,
    )
    from .histogram import RangeTreeHistogram
    from .models import (
        PrivateAdditiveClassifier,
        PrivateAdditiveRegressor,
        PrivateDecisionTreeClassifier,
        PrivateLinearRegression,
        PrivateLinearSVC,
        PrivateLogisticRegression,
        PrivateNaiveBayes,
        PrivatePCA,
        PrivateRandomForestClassifier,
        PrivateRidge,
        SampleAggregate,
    )
    from .preprocessing import PrivateQuantileClipper, PrivateStandardScaler
    from .quantiles import private_quantiles
    from .release import QueryResult, Synopsis
    from .selection import DPTopKSelector, most_frequent_items
    from .synthesis import (
        GridSynthesizer,
        HDPViewSynthesizer,
        KDTreeSynthesizer,
        MarginalSynthesizer,
        PrivBayesSynthesizer,
        PrivTreeSynthesizer,
    )

__all__ = [
    "BudgetExceededError", "Categorical", "DPKMeans", "DiffGenTransformer", "DPTopKSelector",
    "DataCube", "Date", "Datetime", "Domain", "DomainError", "GridSynthesizer",
    "HDPViewSynthesizer", "Identifier", "InsecureSeedWarning", "KDTreeSynthesizer",
    "MarginalSynthesizer", "Numeric", "PrivBayesSynthesizer", "PrivPfCClassifier",
    "PrivPfCTransformer", "PrivacyLeakWarning", "RecordsLostError", "PrivacyLedger", "PrivacyLoss",
    "PrivTreeSynthesizer", "PrivateAdditiveClassifier", "PrivateAdditiveRegressor",
    "PrivateClassifier", "PrivateDecisionTreeClassifier", "PrivateRandomForestClassifier",
    "SampleAggregate", "ProjectedHistogramTransformer", "PrivateLinearRegression",
    "PrivateLinearSVC", "PrivateLogisticRegression", "PrivateNaiveBayes", "PrivatePCA",
    "PrivateQuantileClipper", "PrivateRegressor", "PrivateRidge", "PrivateStandardScaler",
    "PublicTable", "QueryResult", "RangeTreeHistogram", "Synopsis", "Taxonomy", "Text", "at_most",
    "derived", "forbid", "private_quantiles", "most_frequent_items",
]  # fmt: skip

__version__ = "1.0.0rc1"

# A name is imported when it is first asked for, so that `import skdp` is quick and a script waits
# only for what it uses. Type checkers read the imports above; `tests/test_layers.py` compares both.
_HOMES = {
    "accounting": ("PrivacyLedger", "PrivacyLoss"),
    "classification": (
        "DiffGenTransformer", "PrivPfCClassifier", "PrivPfCTransformer",
        "ProjectedHistogramTransformer",
    ),
    "cluster": ("DPKMeans",),
    "compose": ("PrivateClassifier", "PrivateRegressor"),
    "datacube": ("DataCube",),
    "domain": (
        "Categorical", "Date", "Datetime", "Domain", "Identifier", "Numeric", "PublicTable",
        "Taxonomy", "Text", "at_most", "derived", "forbid",
    ),
    "exceptions": (
        "BudgetExceededError", "DomainError", "InsecureSeedWarning", "PrivacyLeakWarning",
        "RecordsLostError",
    ),
    "histogram": ("RangeTreeHistogram",),
    "models": (
        "PrivateAdditiveClassifier", "PrivateAdditiveRegressor", "PrivateDecisionTreeClassifier",
        "PrivateLinearRegression", "PrivateLinearSVC", "PrivateLogisticRegression",
        "PrivateNaiveBayes", "PrivatePCA", "PrivateRandomForestClassifier", "PrivateRidge",
        "SampleAggregate",
    ),
    "preprocessing": ("PrivateQuantileClipper", "PrivateStandardScaler"),
    "quantiles": ("private_quantiles",),
    "release": ("QueryResult", "Synopsis"),
    "selection": ("DPTopKSelector", "most_frequent_items"),
    "synthesis": (
        "GridSynthesizer", "HDPViewSynthesizer", "KDTreeSynthesizer", "MarginalSynthesizer",
        "PrivBayesSynthesizer", "PrivTreeSynthesizer",
    ),
}  # fmt: skip
_PACKAGES = (
    "accounting", "audit", "classification", "cluster", "compose", "datacube", "domain",
    "exceptions", "hierarchy", "histogram", "inspection", "kernels", "mechanisms",
    "model_selection", "plotting", "preprocessing", "quality", "quantiles", "release", "rows",
    "selection", "synthesis",
)  # fmt: skip
_MODULES = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if _MODULES.get(name, name) in ("domain", "domains"):
        # A domain reads tables through what this package registers with it.
        import_module(".rows", __name__)
    if name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    elif name == "domains":
        value = import_module(".domain.domains", __name__)
    elif name in _PACKAGES:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES, "domains"})
