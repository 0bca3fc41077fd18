"""Releases: models of the released numbers, queries, intervals, and the object that holds them.

Everything here is post-processing. The package can reach neither rows nor exact counts.

================  ================================================================================
``boxes``         BoxModel: noisy counts over boxes, a partition of the domain, and their errors
``basis``         what was measured: coefficients of noisy tables in one orthonormal basis; the
                  counts of one column, and their exact covariance
``combined``      `combine`: several releases of one table answer together
``files``         a zip archive of JSON and plain arrays
``grouping``      which records a statistic is about: groups, views of columns, and their numbers
``marginals``     ViewsModel: linear answers from coefficients with known variances, and rows that
                  agree with them; WeightedRows: these records, and draws among them
``model``         `Release`: what every release answers, and what its kinds share
``network``       NetworkModel: a released Bayesian network as a model of the records
``page``          `Synopsis.page`: the page that answers questions; plain documents
``prior``         what is believed of coefficients that were measured with noise, or not at all
``products``      what marginals answer to products of weights, and covariances of the errors
``quantiles``     quantiles of a column with intervals
``result``        an answer with its error bar
``rounding``      whole counts near expected ones
``sampling``      synthetic rows: all, or those under a condition
``statistics``    every statistic with its interval, from answers and covariances alone
``synopsis``      `Synopsis`: queries, synthetic rows, files; `SkippedRecords`: noisy counts of the
                  records kept and skipped
================  ================================================================================
"""

from ..domain.query import Query, parse
from .boxes import Boxes, BoxModel, Intervals, LeafErrorBound, StrategyModel
from .combined import CombinedRelease, combine
from .marginals import ViewsModel
from .model import Release
from .network import NetworkModel
from .result import QueryResult
from .synopsis import SKIPPED, SkippedRecords, Synopsis

__all__ = [
    "BoxModel",
    "Boxes",
    "CombinedRelease",
    "Intervals",
    "LeafErrorBound",
    "NetworkModel",
    "SKIPPED",
    "Query",
    "QueryResult",
    "Release",
    "SkippedRecords",
    "StrategyModel",
    "Synopsis",
    "ViewsModel",
    "combine",
    "parse",
]
