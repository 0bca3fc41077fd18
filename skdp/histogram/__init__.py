"""A private histogram of one attribute.

================  ==================================================================================
``estimator``     `RangeTreeHistogram`: parameters, ``fit``, and the questions that it hands on
``model``         the released tree: counts, intervals, quantiles, and what synopses ask of a model
``design``        tree and budget, from public facts or released counts; simulated errors
================  ==================================================================================
"""

from .estimator import RangeTreeHistogram

__all__ = ["RangeTreeHistogram"]
