"""Decision trees, and forests of them.

=============  ==================================================================================
``fitting``    `fit_tree`: DiffPID3, DiffPC-4.5, and a better plan; `fit_forest`; shares and pruning
``growing``    level by level, the best split of every node with noise, by any quality
``model``      `Splits`, the public ways to divide a column; `TreeModel`: what is released
=============  ==================================================================================
"""

from .fitting import ALGORITHMS, fit_forest, fit_tree, tree_parts
from .growing import check_quality
from .model import TreeModel, binary_splits, one_split

__all__ = [
    "ALGORITHMS",
    "TreeModel",
    "binary_splits",
    "check_quality",
    "fit_forest",
    "fit_tree",
    "one_split",
    "tree_parts",
]
