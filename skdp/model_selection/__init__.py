"""Private splitting, scoring, model choice and calibration: no exact number is released.

==============  ====================================================================================
``_folds``      `PrivateKFold`: folds that are drawn and kept secret
``_scores``     `private_accuracy`, `private_confusion_matrix`, `private_mse`
``_scorer``     `make_private_scorer`, for searches of scikit-learn
``_cross_val``  `private_cross_val_score`
``_search``     `PrivateGridSearchCV`
``_stopping``   a secret number of runs, of which the best is released
``_halving``    rounds at a growing epsilon
``_conformal``  `PrivateConformalClassifier`, `PrivateConformalRegressor`
``_budget``     what searches and cross-validation cost; one ledger for all fits
``_guard``      predicts and compares true rows one by one, without errors
==============  ====================================================================================
"""

from ._conformal import PrivateConformalClassifier, PrivateConformalRegressor
from ._cross_val import private_cross_val_score
from ._folds import PrivateKFold
from ._scorer import _PrivateScorer, make_private_scorer  # noqa: F401 (pickles name the class)
from ._scores import private_accuracy, private_confusion_matrix, private_mse
from ._search import PrivateGridSearchCV

__all__ = [
    "PrivateConformalClassifier",
    "PrivateConformalRegressor",
    "PrivateGridSearchCV",
    "PrivateKFold",
    "make_private_scorer",
    "private_accuracy",
    "private_confusion_matrix",
    "private_cross_val_score",
    "private_mse",
]
