"""Views: coarse tables of all pairs, grids of what depends most, and answers linear in them.

============  ====================================================================================
`measure`     the whole: `measured_views`, what is measured and how epsilon is divided
`ladders`     groups of codes for tables of several columns, and blocks of single columns
============  ====================================================================================
"""

from .measure import measured_views

__all__ = ["measured_views"]
