"""Marginals: columns, tables of the pairs that depend most, and answers linear in them.

===============  =================================================================================
``fit``          A population of rows that follows released views: proportional fitting and Gibbs
                 steps; public or released rows that they start from; what was tuned
``measure``      the whole: `measured_views`, what is measured and how epsilon is divided
``plans``        what is worth measuring: blocks of columns and groups of their codes, sets of
                 columns, or the joint counts of all
===============  =================================================================================
"""

from .fit import TUNING, Prior
from .measure import Asked, measured_views, most_groups

__all__ = ["TUNING", "Asked", "Prior", "measured_views", "most_groups"]
