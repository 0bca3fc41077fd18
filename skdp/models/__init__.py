"""Models fitted to the records themselves, with noise in every sum.

======================  =========================================================================
``additive``            `PrivateAdditiveClassifier`, `PrivateAdditiveRegressor`: a function of each
                        column
``shapes``              `ShapeFunction`, `PairFunction`: one of these, for reading and drawing
``regression``          `PrivateLinearRegression`, `PrivateRidge`
``linear_classifiers``  `PrivateLogisticRegression`, `PrivateLinearSVC`
``naive_bayes``         `PrivateNaiveBayes`
``components``          `PrivatePCA`
``tree``                `PrivateDecisionTreeClassifier`: DiffPID3, DiffPC-4.5, better than both
``forest``              `PrivateRandomForestClassifier`: the mean of several trees
``released_tree``       `ReleasedTree`: one of these trees, as text and as a picture
``sample_aggregate``    `SampleAggregate`: bounded outputs of any estimator, from blocks (GUPT)
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
from .forest import PrivateRandomForestClassifier
from .linear_classifiers import PrivateLinearSVC, PrivateLogisticRegression
from .naive_bayes import PrivateNaiveBayes
from .regression import PrivateLinearRegression, PrivateRidge
from .released_tree import ReleasedTree
from .sample_aggregate import SampleAggregate
from .shapes import PairFunction, ShapeFunction
from .tree import PrivateDecisionTreeClassifier

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
