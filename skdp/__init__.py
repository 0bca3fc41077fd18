"""Differentially private estimators that work like scikit-learn's."""

from .accounting import PrivacyLedger, PrivacyLoss
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
    "Domain",
    "DomainError",
    "HDPViewSynthesizer",
    "InsecureSeedWarning",
    "Numeric",
    "PairViewSynthesizer",
    "PrivacyLeakWarning",
    "PrivacyLedger",
    "PrivacyLoss",
    "PrivateClassifier",
    "QueryResult",
    "RangeTreeHistogram",
    "Synopsis",
    "Taxonomy",
]

__version__ = "0.1.0"
