"""DPCube (Xiao, Xiong, Yuan): partitions by a kd-tree, under pure epsilon-DP.

* `two_step`: count every cell of the domain with noise, grow a kd-tree on these noisy cells, and
  count its boxes once more. This is the strategy of DPCube.
* `hierarchical_kd`: grow a kd-tree on the records, one level at a time: the noisy counts of the
  values of one attribute determine where a box is halved. The paper compares with it.
* `usefulness`: error bounds of counts over noisy cells.

In both trees each box is measured more than once. The measurements form a tree of sums, and the
counts returned are estimated from all of them, by the best linear unbiased estimate on that tree.
The boxes depend on the noise of the counts that made them. Only the noise of the last counts is
independent of the boxes, so error bounds must use these.

Privacy (neighbours add or remove one record). A record lies in one cell, in one box of every
level, and there at one value of the attribute that is counted: each of these families of counts
changes by 1 in one place. The families are released one after the other, each with its own part
of the budget; where to cut depends only on earlier releases.

References
----------
Y. Xiao, L. Xiong, C. Yuan. Differentially Private Data Release through Multidimensional
Partitioning. SDM 2010.
"""

from .hierarchical_kd import hierarchical_kdtree, hierarchical_parts
from .two_step import MOST_CELLS, kd_boxes, two_step_kdtree, two_step_parts

__all__ = [
    "MOST_CELLS",
    "hierarchical_kdtree",
    "hierarchical_parts",
    "kd_boxes",
    "two_step_kdtree",
    "two_step_parts",
]
