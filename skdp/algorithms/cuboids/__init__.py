"""Data cubes: which cuboids to measure, with what budget, and how to make them consistent.

A cuboid is the table of counts over some of the dimensions; the 2**d cuboids of d dimensions form
a lattice. Noise is added to a few of them, the sources; every cuboid below a source can be computed
from it by summation. A cuboid is named by a bit mask: bit i stands for dimension i.

Nothing in this package reads records. It either plans, from the public sizes of the dimensions, or
post-processes noisy tables.

The algorithms are those of B. Ding, M. Winslett, J. Han, Z. Li, "Differentially Private Data Cubes:
Optimizing Noise Sources and Consistency", SIGMOD 2011, and one of our own, by file:

===============  =================================================================================
``consistency``  the lattice of cuboids; tables that agree with each other (L2, L1, Linf), their
                 variances, also from one best source, and those of weighted sums of cells
``plans``        which cuboids to measure: All, Base, BMax, PMost, and the optimized plan, with
                 unequal budgets
===============  =================================================================================
"""

from .consistency import (
    MAX_SOURCE_CELLS,
    ConsistencyBound,
    Functional,
    Lattice,
    Terms,
    best_sources,
    blue_variances,
    box_variances,
    cell_variances,
    check_lp_size,
    consistency_bound,
    consistent_l2,
    consistent_lp,
    derive,
    dimensions_of,
    interaction_variances,
    lattice,
    simulated_interactions,
)
from .plans import Plan, equal_shares, plan_all, plan_base, plan_bmax, plan_optimized, plan_pmost
