"""Differentially private estimators that work like scikit-learn's."""

from .accounting import PrivacyLedger, PrivacyLoss
from .classification import (
    DiffGenTransformer,
    PrivPfCClassifier,
    PrivPfCTransformer,
    ProjectedHistogramTransformer,
)
from .cluster import DPKMeans
from .compose import PrivateClassifier
from .domain import Categorical, Domain, Numeric, Taxonomy
from .exceptions import (
    BudgetExceededError,
    DomainError,
    InsecureSeedWarning,
    PrivacyLeakWarning,
)
from .histogram import RangeTreeHistogram
from .synopsis import QueryResult, Synopsis
from .synthesis import HDPViewSynthesizer, PairViewSynthesizer

__all__ = [
    "BudgetExceededError",
    "Categorical",
    "DPKMeans",
    "DiffGenTransformer",
    "Domain",
    "DomainError",
    "HDPViewSynthesizer",
    "InsecureSeedWarning",
    "Numeric",
    "PairViewSynthesizer",
    "PrivPfCClassifier",
    "PrivPfCTransformer",
    "PrivacyLeakWarning",
    "PrivacyLedger",
    "PrivacyLoss",
    "PrivateClassifier",
    "ProjectedHistogramTransformer",
    "QueryResult",
    "RangeTreeHistogram",
    "Synopsis",
    "Taxonomy",
]

__version__ = "0.1.0"
