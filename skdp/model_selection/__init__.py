"""Private splitting, scoring and model choice: no exact number about a record is released."""

from ._cross_val import private_cross_val_score
from ._folds import PrivateKFold
from ._scorer import _PrivateScorer, make_private_scorer  # noqa: F401 (pickles name the class)
from ._scores import private_accuracy, private_confusion_matrix, private_mse
from ._search import PrivateGridSearchCV

__all__ = [
    "PrivateGridSearchCV",
    "PrivateKFold",
    "make_private_scorer",
    "private_accuracy",
    "private_confusion_matrix",
    "private_cross_val_score",
    "private_mse",
]
