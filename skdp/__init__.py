"""Differentially private estimators that work like scikit-learn's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .accounting import PrivacyLedger, PrivacyLoss
    from .additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
    from .classification import (
        DiffGenTransformer,
        PrivPfCClassifier,
        PrivPfCTransformer,
        ProjectedHistogramTransformer,
    )
    from .cluster import DPKMeans
    from .compose import PrivateClassifier, PrivateRegressor
    from .datacube import DataCube
    from .decomposition import PrivatePCA
    from .domain import (
        Categorical,
        Date,
        Datetime,
        Domain,
        Identifier,
        Numeric,
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
    from .interactive import Curator
    from .linear_model import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
    from .naive_bayes import PrivateNaiveBayes
    from .preprocessing import PrivateQuantileClipper, PrivateStandardScaler, private_quantiles
    from .release import QueryResult, Synopsis
    from .sample_aggregate import SampleAggregate
    from .selection import DPTopKSelector, most_frequent_items
    from .synthesis import (
        GridSynthesizer,
        HDMMSynthesizer,
        HDPViewSynthesizer,
        KDTreeSynthesizer,
        MarginalSynthesizer,
        PrivBayesSynthesizer,
        PrivTreeSynthesizer,
    )
    from .tables import PublicTable
    from .tree import PrivateDecisionTreeClassifier, PrivateRandomForestClassifier

__all__ = [
    "BudgetExceededError", "Categorical", "Curator", "DPKMeans", "DiffGenTransformer",
    "DPTopKSelector", "DataCube", "Date", "Datetime", "Domain", "DomainError", "GridSynthesizer",
    "HDMMSynthesizer", "HDPViewSynthesizer", "Identifier", "InsecureSeedWarning",
    "KDTreeSynthesizer", "MarginalSynthesizer", "Numeric", "PrivBayesSynthesizer",
    "PrivPfCClassifier", "PrivPfCTransformer", "PrivacyLeakWarning", "RecordsLostError",
    "PrivacyLedger", "PrivacyLoss",
    "PrivTreeSynthesizer", "PrivateAdditiveClassifier", "PrivateAdditiveRegressor",
    "PrivateClassifier", "PrivateDecisionTreeClassifier", "PrivateRandomForestClassifier",
    "SampleAggregate", "ProjectedHistogramTransformer", "PrivateLinearRegression",
    "PrivateLinearSVC", "PrivateLogisticRegression", "PrivateNaiveBayes", "PrivatePCA",
    "PrivateQuantileClipper", "PrivateRegressor", "PrivateStandardScaler",
    "PublicTable", "QueryResult", "RangeTreeHistogram", "Synopsis", "Taxonomy", "Text", "at_most",
    "derived", "forbid", "private_quantiles", "most_frequent_items",
]  # fmt: skip

__version__ = "1.0.0rc2"

# A name is imported when it is first asked for, so that `import skdp` is quick and a script waits
# only for what it uses. Type checkers read the imports above; `tests/test_layers.py` compares both.
_HOMES = {
    "accounting": ("PrivacyLedger", "PrivacyLoss"),
    "additive": ("PrivateAdditiveClassifier", "PrivateAdditiveRegressor"),
    "classification": (
        "DiffGenTransformer", "PrivPfCClassifier", "PrivPfCTransformer",
        "ProjectedHistogramTransformer",
    ),
    "cluster": ("DPKMeans",),
    "compose": ("PrivateClassifier", "PrivateRegressor"),
    "datacube": ("DataCube",),
    "decomposition": ("PrivatePCA",),
    "domain": (
        "Categorical", "Date", "Datetime", "Domain", "Identifier", "Numeric", "Taxonomy",
        "Text", "at_most", "derived", "forbid",
    ),
    "exceptions": (
        "BudgetExceededError", "DomainError", "InsecureSeedWarning", "PrivacyLeakWarning",
        "RecordsLostError",
    ),
    "histogram": ("RangeTreeHistogram",),
    "interactive": ("Curator",),
    "linear_model": (
        "PrivateLinearRegression", "PrivateLinearSVC", "PrivateLogisticRegression",
    ),
    "naive_bayes": ("PrivateNaiveBayes",),
    "preprocessing": (
        "PrivateQuantileClipper", "PrivateStandardScaler", "private_quantiles",
    ),
    "release": ("QueryResult", "Synopsis"),
    "sample_aggregate": ("SampleAggregate",),
    "selection": ("DPTopKSelector", "most_frequent_items"),
    "synthesis": (
        "GridSynthesizer", "HDMMSynthesizer", "HDPViewSynthesizer", "KDTreeSynthesizer",
        "MarginalSynthesizer", "PrivBayesSynthesizer", "PrivTreeSynthesizer",
    ),
    "tables": ("PublicTable",),
    "tree": ("PrivateDecisionTreeClassifier", "PrivateRandomForestClassifier"),
}  # fmt: skip
_PACKAGES = (
    "accounting", "additive", "algorithms", "audit", "classification", "cluster", "compose",
    "datacube", "decomposition", "domain", "exceptions", "hierarchy", "histogram", "inspection",
    "interactive", "linear_model", "mechanisms", "model_selection", "naive_bayes", "plotting",
    "preprocessing", "quality", "release", "sample_aggregate", "selection", "synthesis", "tables",
    "tree", "workloads",
)  # fmt: skip
# What the papers call their algorithms, and what they are here; the glossary has all of them.
_BY_PAPER = {
    "AHP": 'RangeTreeHistogram(partition="ahp")',
    "BLUE": 'RangeTreeHistogram(consistency="blue")',
    "BMax": 'DataCube(strategy="bmax", consistency=None)',
    "Boost": 'RangeTreeHistogram(consistency="blue", budget="uniform", branching=2)',
    "DAWA": 'RangeTreeHistogram(partition="dawa")',
    "DPCube": 'KDTreeSynthesizer(strategy="two-step")',
    "DPLloyd": 'DPKMeans(algorithm="lloyd")',
    "DiffGen": "DiffGenTransformer",
    "DiffPC45": 'PrivateDecisionTreeClassifier(algorithm="c4.5")',
    "DiffPID3": 'PrivateDecisionTreeClassifier(algorithm="id3")',
    "EUG": 'GridSynthesizer(rule="extended")',
    "EUGkM": 'DPKMeans(algorithm="extended-grid")',
    "GBLUE": 'RangeTreeHistogram(consistency="iterative", budget="uniform", branching=12)',
    "GUPT": "SampleAggregate",
    "HDMM": "HDMMSynthesizer",
    "HDPView": "HDPViewSynthesizer",
    "Hybrid": 'DPKMeans(algorithm="hybrid")',
    "MkM": 'DPKMeans(algorithm="m-estimator")',
    "PGkM": 'DPKMeans(algorithm="genetic")',
    "PMost": 'DataCube(strategy="pmost", consistency=None)',
    "PPH": "ProjectedHistogramTransformer",
    "PrivBayes": "PrivBayesSynthesizer",
    "PrivGene": 'PrivateLogisticRegression(solver="genetic")',
    "PrivLocal": 'PrivateLogisticRegression(solver="local-search")',
    "PrivPfC": "PrivPfCTransformer or PrivPfCClassifier",
    "PrivTree": "PrivTreeSynthesizer",
    "SVT": "mechanisms.SparseVector",
    "UG": 'GridSynthesizer(rule="uniform")',
    "UGkM": 'DPKMeans(algorithm="uniform-grid")',
}
_MODULES = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    elif name in _PACKAGES:
        value = import_module(f".{name}", __name__)
    else:
        here = f": here it is skdp.{_BY_PAPER[name]}" if name in _BY_PAPER else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{here}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
