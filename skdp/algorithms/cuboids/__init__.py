"""Data cubes: which cuboids to measure, with what budget, and how to make them consistent.

A cuboid is the table of counts over some of the dimensions; the 2**d cuboids of d dimensions form
a lattice. Noise is added to a few of them, the sources; every cuboid below a source can be computed
from it by summation. A cuboid is named by a bit mask: bit i stands for dimension i.

Nothing in this package reads records. It either plans, from the public sizes of the dimensions, or
post-processes noisy tables.

The algorithms are those of B. Ding, M. Winslett, J. Han, Z. Li, "Differentially Private Data Cubes:
Optimizing Noise Sources and Consistency", SIGMOD 2011, and one of our own, by file:

===============  =================================================================================
``consistency``  L2 consistency: the tables that agree with each other and are closest in weighted
                 squares
``lattice``      the lattice of cuboids: their sizes, and which of them contain which
``optimize``     the optimized plan: sources and unequal budgets with the least variance after
                 least squares
``plans``        all and Base: measure every cuboid, or the base alone; greedy covers
``variances``    variances after least squares, from one best source, and of weighted sums of
                 cells
===============  =================================================================================
"""

from __future__ import annotations

from .consistency import (
    ConsistencyBound,
    check_lp_size,
    consistency_bound,
    consistent_l2,
    consistent_lp,
    simulated_interactions,
)
from .lattice import MAX_SOURCE_CELLS, Lattice, check_extent, dimensions_of, lattice
from .optimize import plan_optimized
from .plans import Plan, equal_shares, plan_all, plan_base, plan_bmax, plan_pmost
from .variances import (
    Functional,
    Terms,
    best_sources,
    blue_variances,
    box_variances,
    cell_variances,
    derive,
    interaction_variances,
)

__all__ = [
    "MAX_SOURCE_CELLS",
    "ConsistencyBound",
    "Functional",
    "Lattice",
    "Plan",
    "Terms",
    "best_sources",
    "blue_variances",
    "box_variances",
    "cell_variances",
    "check_extent",
    "check_lp_size",
    "consistency_bound",
    "consistent_l2",
    "consistent_lp",
    "derive",
    "dimensions_of",
    "equal_shares",
    "interaction_variances",
    "lattice",
    "plan_all",
    "plan_base",
    "plan_bmax",
    "plan_optimized",
    "plan_pmost",
    "simulated_interactions",
]
