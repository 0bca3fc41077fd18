"""Releases: models of the released numbers, queries, intervals, and the object that holds them.

Everything here is post-processing. The package can reach neither rows nor exact counts.
"""

from .box_model import BoxModel
from .boxes import Boxes
from .coupling import couple, group_sums
from .error_bars import ErrorBars
from .intervals import (
    AnySpread,
    BoundedSpread,
    Error,
    GaussianNoise,
    Intervals,
    KnownNoise,
    LeafErrorBound,
    intervals_from_keywords,
)
from .mixture import MixtureModel
from .model import Model
from .queries import first_moment, parse
from .synopsis import QueryResult, Synopsis
from .tree_density import PairTable, TreeDensity
from .tree_model import TreeModel

__all__ = [
    "AnySpread",
    "BoundedSpread",
    "BoxModel",
    "Boxes",
    "Error",
    "ErrorBars",
    "GaussianNoise",
    "Intervals",
    "KnownNoise",
    "LeafErrorBound",
    "MixtureModel",
    "Model",
    "PairTable",
    "QueryResult",
    "Synopsis",
    "TreeDensity",
    "TreeModel",
    "couple",
    "first_moment",
    "group_sums",
    "intervals_from_keywords",
    "parse",
]
