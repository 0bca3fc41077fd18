"""Private splitting, scoring, model choice and calibration: no exact number is released.

==============  ====================================================================================
``_folds``      `PrivateKFold`: folds that are drawn and kept secret
``_scores``     `private_accuracy`, `private_confusion_matrix`, `private_mse`
``_metrics``    `private_roc_auc` and the other metrics of scikit-learn
``_report``     `private_score_report`: all of them from one release
``_named``      metrics by name, for the next three
``_scorer``     `make_private_scorer`, for searches of scikit-learn
``_cross_val``  `private_cross_val_score`
``_search``     `PrivateGridSearchCV`
``_compare``   chooses among candidates with noise
``_stopping``   a secret number of runs, of which the best is released
``_halving``    rounds at a growing epsilon
``_conformal``  `PrivateConformalClassifier`, `PrivateConformalRegressor`
``_budget``     what searches and cross-validation cost; one ledger for all fits
``_guard``      predicts and compares true rows one by one, without errors
``_reading``    labels and scores that metrics read
``_score_table``  what follows from noisy scores by class
``_row_losses``   what follows from sums over rows
``_formulas``   metrics as formulas of counts
``_judge``      intervals by simulation of the noise
==============  ====================================================================================
"""

from ._conformal import PrivateConformalClassifier, PrivateConformalRegressor
from ._cross_val import private_cross_val_score
from ._folds import PrivateKFold
from ._metrics import (
    private_average_precision,
    private_balanced_accuracy,
    private_brier,
    private_calibration_curve,
    private_f1,
    private_log_loss,
    private_mae,
    private_r2,
    private_roc_auc,
    private_roc_curve,
)
from ._report import ScoreReport, private_score_report
from ._scorer import _PrivateScorer, make_private_scorer  # noqa: F401 (pickles name the class)
from ._scores import private_accuracy, private_confusion_matrix, private_mse
from ._search import PrivateGridSearchCV

__all__ = [
    "PrivateConformalClassifier",
    "PrivateConformalRegressor",
    "PrivateGridSearchCV",
    "PrivateKFold",
    "ScoreReport",
    "make_private_scorer",
    "private_accuracy",
    "private_average_precision",
    "private_balanced_accuracy",
    "private_brier",
    "private_calibration_curve",
    "private_confusion_matrix",
    "private_cross_val_score",
    "private_f1",
    "private_log_loss",
    "private_mae",
    "private_mse",
    "private_r2",
    "private_roc_auc",
    "private_roc_curve",
    "private_score_report",
]
