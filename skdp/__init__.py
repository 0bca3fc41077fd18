"""Differentially private estimators that work like scikit-learn's."""

__version__ = "0.1.0"
