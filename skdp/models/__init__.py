"""Models fitted to the records themselves, with noise in every sum.

============  ===================================================================================
``additive``  `PrivateAdditiveClassifier`, `PrivateAdditiveRegressor`: a function of each column
``shapes``    `ShapeFunction`: one of these functions, for reading, editing and drawing
``grouping``  the groups of the values of a column
============  ===================================================================================

The algorithms are in `skdp.kernels`.
"""

from .additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from .shapes import ShapeFunction

__all__ = ["PrivateAdditiveClassifier", "PrivateAdditiveRegressor", "ShapeFunction"]
