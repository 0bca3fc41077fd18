"""A private histogram of one attribute.

================  ==================================================================================
``estimator``     `RangeTreeHistogram`: parameters, ``fit`` and the queries
``design``        tree and budget, from public facts alone
``inputs``        reading the column, the domain and the queries
================  ==================================================================================
"""

from .estimator import RangeTreeHistogram

__all__ = ["RangeTreeHistogram"]
