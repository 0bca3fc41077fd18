"""PrivPfC: select one grid for classification, then count its cells.

The grid is selected in a single private step (two for many records). Predictors come as
*options*: groupings of the codes of one predictor, from coarse to fine. A grid is one option
number for each predictor; 0 stands for "everything in one group".

* `options`: the groupings of a predictor;
* `merging`: groupings made from noisy counts, for many records;
* `quality`: the score of a grid, and how much one record can change it;
* `candidates`: the grids that a selection may take;
* `scores`: the exact scores of many grids at once;
* `selection`: the private choice;
* `counts`: the noisy counts of the cells.

References
----------
D. Su, "Differentially private data publishing for data analysis", Purdue University, 2016.
"""

from .candidates import (
    candidate_grids,
    cell_limit,
    max_useful_groups,
    neighbouring_grids,
    paper_grids,
)
from .counts import measure_grid_counts
from .merging import FINEST, Line, merged_groupings, merging_budget
from .options import Options
from .quality import UNIT, Quality
from .scores import grid_scores
from .selection import privpfc_parts, select_grid

__all__ = [
    "FINEST",
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
