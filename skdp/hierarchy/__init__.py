"""Trees of counts: structure, budgets, and the best linear unbiased estimate on any of them.

A tree measures overlapping counts of the same records: each node counts what all its leaves hold.
The noisy counts contradict each other, and resolving the contradictions by weighted least squares
improves accuracy at no cost. Two passes over the tree do it exactly, in linear time, for any shape
and any variances; the same passes give the variance of every estimate and of every sum of leaves.

Everything here works on arrays in *level order*: the root is node 0, each level is a consecutive
block, and the children of a node are consecutive. Trees are processed a level at a time; nothing is
recursive.

===========  =====================================================================================
``blue``    best linear unbiased estimates on a tree: exact, non-negative, by GBLUE, by Boost
``budget``  workloads, the share of epsilon that each node of a tree gets, measuring within
            epsilon, and the distribution of the noise in estimates
``tree``    rooted trees over bins, as arrays, and the two sweeps that all algorithms on trees use
===========  =====================================================================================

References
----------
M. Hay, V. Rastogi, G. Miklau, D. Suciu: Boosting the accuracy of differentially private histograms
through consistency, PVLDB 3 (2010). The iterative algorithm is from "An iterative algorithm for
differentially private histogram publication" (CLOUDCOM-ASIA 2013).
"""

from .blue import Blue, boost, gblue, non_negative
from .budget import (
    LevelPlan,
    Workload,
    as_workload,
    cube_root_shares,
    exact_shares,
    level_shares,
    measure,
    measured_variances,
    noise_quantile,
    optimal_shares,
    plan_levels,
    range_usage,
    share_variances,
    uniform_shares,
    workload_variances,
)
from .tree import Tree, balanced_tree, level_tree, perfect_tree, with_extra_bin

__all__ = [
    "Blue",
    "LevelPlan",
    "Tree",
    "Workload",
    "as_workload",
    "balanced_tree",
    "boost",
    "cube_root_shares",
    "exact_shares",
    "gblue",
    "level_shares",
    "level_tree",
    "measure",
    "measured_variances",
    "noise_quantile",
    "non_negative",
    "optimal_shares",
    "perfect_tree",
    "plan_levels",
    "range_usage",
    "share_variances",
    "uniform_shares",
    "with_extra_bin",
    "workload_variances",
]
