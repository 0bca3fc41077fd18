"""Views: coarse tables of pairs, grids of sets that depend most, and answers linear in them.

============  ====================================================================================
`tuning`      the numbers that change a release
`measure`     the whole: `measured_views`, what is measured and how epsilon is divided
`ladders`     groups of codes for tables of several columns, and blocks of single columns
`candidates`  which sets are worth measuring
`joint`       the counts of all columns together, at a large epsilon
`attributes`  what rows need to know of a column
`prior`       public rows, or released ones, that rows start from
`population`  rows that follow released tables, and what a noisy table says beside a model
`rules`       structural zeros: the table without impossible codes, and the model with them
`laws`        structural zeros: rows that keep them
`rows`        the rows as a model
============  ====================================================================================
"""

from .measure import Asked, Division, division_of, measured_views, most_groups
from .prior import Prior
from .rules import Rules

__all__ = [
    "Asked",
    "Division",
    "Prior",
    "Rules",
    "division_of",
    "measured_views",
    "most_groups",
]
