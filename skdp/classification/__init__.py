"""Publishing data for classification: one private grid, and a noisy count in each of its cells.

==============  ===================================================================================
``base``        `Grid`: groups of codes; what such releases do: ``fit``, ``sample``, ``transform``
``privpfc``     `PrivPfCTransformer`, `PrivPfCClassifier`: one grid among many candidates
``diffgen``     `DiffGenTransformer` (DiffGen): top-down specialisation of taxonomies
``projection``  `ProjectedHistogramTransformer` (PPH): a histogram over few predictors
==============  ===================================================================================

The private selections are in `skdp.kernels`.
"""

from .base import Grid
from .diffgen import DiffGenTransformer
from .privpfc import PrivPfCClassifier, PrivPfCTransformer
from .projection import ProjectedHistogramTransformer

__all__ = [
    "DiffGenTransformer",
    "Grid",
    "PrivPfCClassifier",
    "PrivPfCTransformer",
    "ProjectedHistogramTransformer",
]
