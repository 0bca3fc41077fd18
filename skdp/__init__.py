"""Differentially private estimators that work like scikit-learn's."""

from .accounting import PrivacyLedger, PrivacyLoss
from .classification import (
    DiffGenTransformer,
    PrivPfCClassifier,
    PrivPfCTransformer,
    ProjectedHistogramTransformer,
)
from .cluster import DPKMeans
from .compose import PrivateClassifier, PrivateRegressor
from .datacube import CubePlan, DataCube
from .domain import Categorical, Domain, Numeric, Taxonomy
from .exceptions import (
    BudgetExceededError,
    DomainError,
    InsecureSeedWarning,
    PrivacyLeakWarning,
)
from .histogram import RangeTreeHistogram
from .kernels.dpcube.usefulness import usefulness
from .model_selection import (
    PrivateGridSearchCV,
    PrivateKFold,
    make_private_scorer,
    private_accuracy,
    private_confusion_matrix,
    private_cross_val_score,
    private_mse,
)
from .preprocessing import PrivateQuantileClipper, PrivateStandardScaler
from .release import QueryResult, Synopsis
from .selection import DPTopKSelector, most_frequent_items
from .synthesis import (
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    PairViewSynthesizer,
    PrivTreeSynthesizer,
)

__all__ = [
    "BudgetExceededError",
    "Categorical",
    "DPKMeans",
    "DiffGenTransformer",
    "DPTopKSelector",
    "CubePlan",
    "DataCube",
    "Domain",
    "DomainError",
    "GridSynthesizer",
    "HDPViewSynthesizer",
    "InsecureSeedWarning",
    "KDTreeSynthesizer",
    "Numeric",
    "PairViewSynthesizer",
    "PrivPfCClassifier",
    "PrivPfCTransformer",
    "PrivacyLeakWarning",
    "PrivacyLedger",
    "PrivacyLoss",
    "PrivTreeSynthesizer",
    "PrivateClassifier",
    "ProjectedHistogramTransformer",
    "PrivateGridSearchCV",
    "PrivateKFold",
    "PrivateQuantileClipper",
    "PrivateRegressor",
    "PrivateStandardScaler",
    "QueryResult",
    "RangeTreeHistogram",
    "Synopsis",
    "Taxonomy",
    "make_private_scorer",
    "private_accuracy",
    "private_confusion_matrix",
    "private_cross_val_score",
    "private_mse",
    "most_frequent_items",
    "usefulness",
]

__version__ = "0.1.0"
