"""A private histogram of one attribute.

================  ==================================================================================
``estimator``     `RangeTreeHistogram`: parameters, ``fit`` and the queries
``design``        tree and budget, from public facts or released counts; simulated errors
``model``         the histogram as a model, for statistics with intervals
================  ==================================================================================
"""

from .estimator import RangeTreeHistogram

__all__ = ["RangeTreeHistogram"]
