"""Meta-estimators that train ordinary scikit-learn estimators on a private release.

==============  ====================================================================================
``classifier``  `PrivateClassifier`, and the classifier where none is given
``regressor``   `PrivateRegressor`
``base``        what both share: release, train on the release (weighted, or unlabelled), predict
==============  ====================================================================================
"""

from .classifier import PrivateClassifier
from .regressor import PrivateRegressor

__all__ = ["PrivateClassifier", "PrivateRegressor"]
