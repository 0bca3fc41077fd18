"""Private splitting, scoring and model choice: no exact number is released.

==============  ====================================================================================
``_cross_val``  `private_cross_val_score`, `PrivateKFold`: secret folds; one ledger for all fits
``_search``     `PrivateGridSearchCV`: chooses the winner of a grid with noise
``_metrics``    `private_score`; metrics by name: what each reads, and what is released for it;
                predicts and compares true rows one by one, without errors; intervals by
                simulation of the noise
==============  ====================================================================================
"""

from ._cross_val import PrivateKFold, private_cross_val_score
from ._metrics import private_score
from ._search import PrivateGridSearchCV

__all__ = ["PrivateGridSearchCV", "PrivateKFold", "private_cross_val_score", "private_score"]
