"""Histograms of one column whose buckets follow the data: arrays in, arrays out.

============  ======================================================================================
``adaptive``  a range tree that is divided only where its noisy counts are large; `LineRelease`
``dawa``      DAWA: buckets of similar neighbours, chosen by noisy costs, and a tree over them
``ahp``       AHP: groups of bins with similar noisy counts
============  ======================================================================================
"""

from .adaptive import LineRelease, adaptive_tree
from .ahp import AHP_SHARES, ahp
from .dawa import DAWA_SHARES, dawa

__all__ = ["AHP_SHARES", "DAWA_SHARES", "LineRelease", "adaptive_tree", "ahp", "dawa"]
