"""Views: coarse tables of all pairs, grids of what depends most, and answers linear in them."""

from .measure import measured_views

__all__ = ["measured_views"]
