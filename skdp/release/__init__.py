"""Releases: models of the released numbers, queries, intervals, and the object that holds them.

Everything here is post-processing. The package can reach neither rows nor exact counts.

===============  =================================================================================
``synopsis``     `Synopsis`: queries, synthetic rows, files
``models``       what was released as a model: boxes, trees, networks, views
``statistics``   intervals of counts, sums, moments and quantiles
``result``       an answer with its error bar
``sampling``     synthetic rows: all, those under a condition, those given some columns
``conditions``   what drawn rows must satisfy; columns that a user gives, what they say of others
``queries``      from a dict or a string to weights of codes
``grouping``     groups by measured and derived columns or intervals of them, and views of them
``description``  `Synopsis.describe`: statistics of every column with margins of error
``page``         `Synopsis.page`: the page that answers questions; plain documents
``pictures``     what a plot of a release shows
``combined``     `combine`: several releases of one table answer together
``labels``       codes and ranges of codes in words
``skipped``      `SkippedRecords`: noisy counts of the records kept and skipped
``files``        a zip archive of JSON and plain arrays
===============  =================================================================================
"""

from .combined import CombinedRelease, combine
from .models.box_model import BoxModel
from .models.boxes import Boxes
from .models.coefficients import Coefficients, EffectLaw, Ladder, basis_of
from .models.column_estimate import ColumnEstimate
from .models.intervals import (
    AnySpread,
    BoundedSpread,
    Error,
    Intervals,
    KnownNoise,
    LeafErrorBound,
)
from .models.model import Model
from .models.network_model import Conditional, NetworkDensity, NetworkModel
from .models.rounding import round_line
from .models.tree_density import PairTable, TreeDensity, couple, group_sums, inverse, inverse_rows
from .models.tree_model import TreeModel
from .models.views_model import MeasuredSums, ViewsModel
from .queries import first_moment, parse, parse_parts
from .result import QueryResult
from .skipped import SKIPPED, SkippedRecords
from .synopsis import Synopsis

__all__ = [
    "AnySpread",
    "BoundedSpread",
    "BoxModel",
    "Boxes",
    "Coefficients",
    "EffectLaw",
    "ColumnEstimate",
    "CombinedRelease",
    "Conditional",
    "Error",
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
]
