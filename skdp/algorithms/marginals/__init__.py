"""Marginals: columns, tables of the pairs that depend most, and answers linear in them.

===============  =================================================================================
``candidates``   which tables are worth measuring: sets of columns, or the joint counts of all
``fit``          A population of rows that follows released views: proportional fitting and Gibbs
                 steps; public or released rows that they start from
``groups``       the facts about an attribute that rows need, all released or public
``measure``      the whole: `measured_views`, what is measured and how epsilon is divided
===============  =================================================================================
"""

from .fit import Prior
from .groups import TUNING
from .measure import Asked, measured_views, most_groups

__all__ = ["TUNING", "Asked", "Prior", "measured_views", "most_groups"]
