"""PrivPfC: select one grid for classification, then count its cells.

The grid is selected in a single private step (two for many records). Predictors come as
*options*: groupings of the codes of one predictor, from coarse to fine. A grid is one option
number for each predictor; 0 stands for "everything in one group".

* `candidates`: the numbers that change a release, the groupings of a predictor, and the grids that
  a selection may take;
* `scores`: the score of a grid, how much one record can change it, and scores of many at once;
* `selection`: the private choice, the noisy counts of the cells, and groupings made from noisy
  counts, for many records.

References
----------
D. Su, "Differentially private data publishing for data analysis", Purdue University, 2016.
"""

from .candidates import (
    TUNING,
    Options,
    candidate_grids,
    cell_limit,
    max_useful_groups,
    neighbouring_grids,
    paper_grids,
)
from .scores import UNIT, Quality, grid_scores
from .selection import (
    Line,
    measure_grid_counts,
    merged_groupings,
    merging_budget,
    privpfc_parts,
    select_grid,
)

__all__ = [
    "TUNING",
    "UNIT",
    "Line",
    "Options",
    "Quality",
    "candidate_grids",
    "cell_limit",
    "grid_scores",
    "max_useful_groups",
    "measure_grid_counts",
    "merged_groupings",
    "merging_budget",
    "neighbouring_grids",
    "paper_grids",
    "privpfc_parts",
    "select_grid",
]
