"""Algorithms on counts, one a module: they know no estimator."""
