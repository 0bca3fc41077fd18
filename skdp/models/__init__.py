"""Models fitted to the records themselves, with noise in every sum.

======================  =========================================================================
``additive``            `PrivateAdditiveClassifier`, `PrivateAdditiveRegressor`: a function of each
                        column
``shapes``              `ShapeFunction`: one of these functions, for reading, editing and drawing
``regression``          `PrivateLinearRegression`, `PrivateRidge`
``linear_classifiers``  `PrivateLogisticRegression`, `PrivateLinearSVC`
``naive_bayes``         `PrivateNaiveBayes`
``components``          `PrivatePCA`
``base``                what models of a label share: match, charge, count, fit
``linear``              what linear models share: features, solvers, coefficients
``features``            the numbers that stand for each column of a linear model
``targets``             a target that is a number
``grouping``            the groups of the values of a column
======================  =========================================================================

The algorithms are in `skdp.kernels`.
"""

from .additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from .components import PrivatePCA
from .linear_classifiers import PrivateLinearSVC, PrivateLogisticRegression
from .naive_bayes import PrivateNaiveBayes
from .regression import PrivateLinearRegression, PrivateRidge
from .shapes import ShapeFunction

__all__ = [
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateLinearRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateNaiveBayes",
    "PrivatePCA",
    "PrivateRidge",
    "ShapeFunction",
]
