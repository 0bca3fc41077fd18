"""Models fitted to the records themselves, with noise in every sum.

======================  =========================================================================
``additive``            `PrivateAdditiveClassifier`, `PrivateAdditiveRegressor`: a function of each
                        column
``shapes``              `ShapeFunction`, `PairFunction`: one of these, for reading and drawing
``naive_bayes``         `PrivateNaiveBayes`
``components``          `PrivatePCA`
``tree``                decision trees and forests; `ReleasedTree`: a tree as text and as a picture
``sample_aggregate``    `SampleAggregate`: bounded outputs of any estimator, from blocks (GUPT)
``base``                what models of a label share: match, charge, count, fit; groups, targets
``linear``              linear and ridge regression, logistic regression, support vector machine
``features``            the numbers that stand for each column of a linear model
======================  =========================================================================

The algorithms are in `skdp.kernels`.
"""

from .additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from .components import PrivatePCA
from .linear import (
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateRidge,
)
from .naive_bayes import PrivateNaiveBayes
from .sample_aggregate import SampleAggregate
from .shapes import PairFunction, ShapeFunction
from .tree import PrivateDecisionTreeClassifier, PrivateRandomForestClassifier, ReleasedTree

__all__ = [
    "PairFunction",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateDecisionTreeClassifier",
    "PrivateRandomForestClassifier",
    "ReleasedTree",
    "SampleAggregate",
    "PrivateLinearRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateNaiveBayes",
    "PrivatePCA",
    "PrivateRidge",
    "ShapeFunction",
]
