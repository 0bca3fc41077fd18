"""Meta-estimators that train ordinary scikit-learn estimators on a private release."""

from .classifier import PrivateClassifier
from .regressor import PrivateRegressor

__all__ = ["PrivateClassifier", "PrivateRegressor"]
