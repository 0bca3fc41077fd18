"""Marginals: columns, tables of the pairs that depend most, and answers linear in them.

===============  =================================================================================
``candidates``   which sets are worth measuring
``fit``          A population of rows that follows released views: proportional fitting and Gibbs
                 steps
``groups``       the facts about an attribute that rows need, all released or public
``joint``        the counts of all columns together, at a large epsilon
``measure``      the whole: `measured_views`, what is measured and how epsilon is divided
``prior``        public rows, or released ones, that rows start from
===============  =================================================================================
"""

from .groups import TUNING
from .measure import Asked, measured_views, most_groups, used_sets
from .prior import Prior

__all__ = [
    "TUNING",
    "Asked",
    "Prior",
    "measured_views",
    "most_groups",
    "used_sets",
]
