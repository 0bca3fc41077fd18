"""Meta-estimators that train ordinary scikit-learn estimators on a private release.

==============  ====================================================================================
``classifier``  `PrivateClassifier`
``regressor``   `PrivateRegressor`
``default``     the classifier where none is given
``base``        what both share: release, train on the release, predict
``training``    training on rows of a release, weighted or without a label
==============  ====================================================================================
"""

from .classifier import PrivateClassifier
from .regressor import PrivateRegressor

__all__ = ["PrivateClassifier", "PrivateRegressor"]
