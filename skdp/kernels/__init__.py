"""Algorithms on counts, one per module, independent of the estimators."""
