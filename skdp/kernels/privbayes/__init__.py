"""PrivBayes: a Bayesian network of the attributes, chosen and measured with noise.

================  ==================================================================================
``measure``       all of it: parts of epsilon, theta-usefulness, the network, its probabilities
================  ==================================================================================
"""

from .measure import NEGATIVES, SCORES, check_parts, largest_table, privbayes, privbayes_parts

__all__ = ["NEGATIVES", "SCORES", "check_parts", "largest_table", "privbayes", "privbayes_parts"]
