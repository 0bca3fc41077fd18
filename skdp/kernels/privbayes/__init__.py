"""PrivBayes: a Bayesian network of the attributes, chosen and measured with noise.

================  ==================================================================================
``budget``        parts of epsilon, theta-usefulness
``scores``        the scores R, F and mutual information, and how much one record changes them
``candidates``    maximal sets of parents
``network``       attribute-parent pairs, selected one after the other
``conditionals``  from noisy joint counts to conditional probabilities
``measure``       the whole measurement
================  ==================================================================================
"""

from .budget import check_parts, largest_table, privbayes_parts, used_attributes
from .measure import NEGATIVES, privbayes
from .scores import SCORES

__all__ = [
    "NEGATIVES",
    "SCORES",
    "check_parts",
    "largest_table",
    "privbayes",
    "privbayes_parts",
    "used_attributes",
]
