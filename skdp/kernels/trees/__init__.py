"""Decision trees, and forests of them.

=============  ==================================================================================
``fitting``    `fit_tree`: DiffPID3, DiffPC-4.5, and a plan of the budget that is better than both
``forests``    `fit_forest`: trees on records of their own, or on all records
``growing``    level by level, the best split of every node with noise
``splits``     the public ways to divide the values of a column
``qualities``  how good a split is: max operator, Gini index, information gain
``model``      `TreeModel`: what is released
``shrinking``  shares of the classes from noisy counts, and pruning
=============  ==================================================================================
"""

from .fitting import ALGORITHMS, fit_tree, tree_parts
from .forests import fit_forest, forest_parts
from .model import TreeModel
from .qualities import QUALITIES, check_quality
from .splits import Splits, binary_splits, one_split

__all__ = [
    "ALGORITHMS",
    "QUALITIES",
    "Splits",
    "TreeModel",
    "binary_splits",
    "check_quality",
    "fit_forest",
    "fit_tree",
    "forest_parts",
    "one_split",
    "tree_parts",
]
