"""PrivBayes: a Bayesian network of the attributes, chosen and measured with noise.

================  ==================================================================================
``scores``        the scores R, F and mutual information, and how much one record changes them
``measure``       all of it: parts of epsilon, theta-usefulness, the network, its probabilities
================  ==================================================================================
"""

from .measure import (
    NEGATIVES,
    check_parts,
    largest_table,
    privbayes,
    privbayes_parts,
)
from .scores import SCORES

__all__ = [
    "NEGATIVES",
    "SCORES",
    "check_parts",
    "largest_table",
    "privbayes",
    "privbayes_parts",
]
