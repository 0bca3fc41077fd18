"""Models fitted to the records themselves, with noise in every sum.

====================  ==========================================================================
``additive``          `PrivateAdditiveClassifier`, `PrivateAdditiveRegressor`
``shapes``            `ShapeFunction`: a function of one column, for reading, editing and drawing
``tree``              `PrivateDecisionTreeClassifier`: DiffPID3, DiffPC-4.5, and better than both
``forest``            `PrivateRandomForestClassifier`: the mean of several trees
``released_tree``     `ReleasedTree`: one of these trees, as text and as a picture
``sample_aggregate``  `SampleAggregate`: bounded outputs of any estimator, from blocks (GUPT)
``grouping``          the groups of the values of a column
====================  ==========================================================================

The algorithms are in `skdp.kernels`.
"""

from .additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from .forest import PrivateRandomForestClassifier
from .released_tree import ReleasedTree
from .sample_aggregate import SampleAggregate
from .shapes import ShapeFunction
from .tree import PrivateDecisionTreeClassifier

__all__ = [
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateDecisionTreeClassifier",
    "PrivateRandomForestClassifier",
    "ReleasedTree",
    "SampleAggregate",
    "ShapeFunction",
]
