"""A private histogram of one attribute."""

from .estimator import RangeTreeHistogram

__all__ = ["RangeTreeHistogram"]
