"""Releases: models of the released numbers, queries, intervals, and the object that holds them.

Everything here is post-processing. The package can reach neither rows nor exact counts.

===================  ===============================================================================
``synopsis``         `Synopsis`: queries, synthetic rows, files
``result``           an answer with its error bar
``confidence``       what an interval is meant to cover: noise, sampling
``answers``          many answers at once
``with_errors``      statistics of queries with intervals, as a synopsis gives them
``group_errors``     intervals of the counts, sums and means of many groups
``statistics``       counts, sums, means and shares with intervals
``moments``          standard deviations, covariances, correlations with intervals
``ranks``            quantiles with intervals
``estimates``        intervals of linear answers and of ratios
``column_values``    the numbers of columns as weights of codes
``linear_errors``    errors of sums of answers under real weights
``sampling``         synthetic rows: all, those under a condition, those given some columns
``rounding``         whole counts near expected ones, for lines and tables
``strata``           values dealt evenly to the rows of strata
``balance``          swaps that bring counts of pairs near the expected ones
``pivotal``          weighted records taken whole numbers of times
``known``            columns that a user gives, and what they say of others
``beside``           numbers that obey rules beside known ones
``lawful``           rows that satisfy a condition and the structure of the domain
``conditions``       what drawn rows must satisfy, and the numbers allowed inside a bin
``model``            what a synopsis asks of a model
``box_given``        boxes that hold the known codes of rows
``boxes``            a partition of the domain
``box_rounded``      codes spread evenly inside boxes
``box_model``        model: noisy counts over boxes
``intervals``        intervals of answers over boxes
``noise``            quantiles of sums of noise
``tree_density``     attributes joined by views of pairs
``tree_given``       records of a tree of pairs given some of their values
``tree_rounded``     records of a tree of pairs with rounded counts
``row_given``        weighted records that agree with known values
``draws``            positions inside ranges, rows that agree
``tree_model``       model: released views of attributes and pairs
``coefficients``     noisy tables of nested groups in one orthonormal basis
``column_estimate``  a column from everything measured, with its covariance
``views_model``      model: coefficients of everything measured, and weighted rows
``network_density``  attributes joined by a Bayesian network
``network_given``    records of a network given some of their values
``network_rounded``  records of a network with rounded counts
``network_model``    model: a released Bayesian network
``coupling``         tables with given margins
``queries``          from a dict or a string to weights of codes
``grouping``         groups by measured and derived columns, and views of them
``bands``            intervals of a column that make groups
``distribution``     distribution function and quantiles of a column
``description``      `Synopsis.describe`: statistics of every column with margins of error
``report``           `Synopsis.report`: what a page about a release says
``associations``     how strongly pairs of columns depend on each other
``page``             pages and pictures as HTML and SVG
``pictures``         what a plot of a release shows
``combined``         `combine`: several releases of one table answer together
``labels``           codes and ranges of codes in words
``skipped``          `SkippedRecords`: noisy counts of the records kept and skipped
``arrays``           read-only copies of arrays
``files``            a zip archive of JSON and plain arrays
===================  ===============================================================================
"""

from .box_model import BoxModel
from .boxes import Boxes
from .coefficients import Coefficients, Ladder, basis_of
from .column_estimate import ColumnEstimate
from .combined import CombinedRelease, combine
from .coupling import couple, group_sums
from .intervals import (
    AnySpread,
    BoundedSpread,
    Error,
    GaussianNoise,
    Intervals,
    KnownNoise,
    LeafErrorBound,
)
from .model import Model
from .network_density import Conditional, NetworkDensity
from .network_model import NetworkModel
from .queries import first_moment, parse, parse_parts
from .ranks import without_negatives
from .result import QueryResult
from .rounding import round_line
from .skipped import SKIPPED, SkippedRecords
from .synopsis import Synopsis
from .tree_density import PairTable, TreeDensity, inverse, inverse_rows
from .tree_model import TreeModel
from .views_model import MeasuredSums, ViewsModel

__all__ = [
    "AnySpread",
    "BoundedSpread",
    "BoxModel",
    "Boxes",
    "Coefficients",
    "ColumnEstimate",
    "CombinedRelease",
    "Conditional",
    "Error",
    "GaussianNoise",
    "Intervals",
    "KnownNoise",
    "Ladder",
    "LeafErrorBound",
    "MeasuredSums",
    "Model",
    "NetworkDensity",
    "NetworkModel",
    "PairTable",
    "SKIPPED",
    "QueryResult",
    "SkippedRecords",
    "Synopsis",
    "TreeDensity",
    "TreeModel",
    "ViewsModel",
    "basis_of",
    "combine",
    "couple",
    "first_moment",
    "group_sums",
    "inverse",
    "inverse_rows",
    "parse",
    "parse_parts",
    "round_line",
    "without_negatives",
]
