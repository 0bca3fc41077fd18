"""Meta-estimators that train ordinary scikit-learn estimators on a private release.

==============  ====================================================================================
``estimators``  `PrivateClassifier`, `PrivateRegressor`, and the classifier where none is given
``base``        what both share: release, train on the release (weighted, or unlabelled), predict
==============  ====================================================================================
"""

from .estimators import PrivateClassifier, PrivateRegressor

__all__ = ["PrivateClassifier", "PrivateRegressor"]
