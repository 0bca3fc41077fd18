"""Publishing data for classification: one private grid, and a noisy count in each of its cells.

==============  ===================================================================================
``grid``        `Grid`: the groups of codes of the predictors that are used
``base``        what all such releases do: ``fit``, ``sample``, ``transform``, ``prepare``
``privpfc``     `PrivPfCTransformer`, `PrivPfCClassifier`: one grid among many candidates
``diffgen``     `DiffGenTransformer` (DiffGen): top-down specialisation of taxonomies
``projection``  `ProjectedHistogramTransformer` (PPH): a histogram over few predictors
==============  ===================================================================================

The private selections are in `skdp.kernels`.
"""

from .diffgen import DiffGenTransformer
from .grid import Grid
from .privpfc import PrivPfCClassifier, PrivPfCTransformer
from .projection import ProjectedHistogramTransformer

__all__ = [
    "DiffGenTransformer",
    "Grid",
    "PrivPfCClassifier",
    "PrivPfCTransformer",
    "ProjectedHistogramTransformer",
]
