"""PrivPfC: select one grid for classification, then count its cells."""

from .candidates import (
    candidate_grids,
    cell_limit,
    max_useful_groups,
    neighbouring_grids,
    paper_grids,
)
from .quality import UNIT, Options, Quality
from .scores import grid_scores
from .selection import SHARES, measure_grid_counts, privpfc_parts, select_grid

__all__ = [
    "SHARES",
    "UNIT",
    "Options",
    "Quality",
    "candidate_grids",
    "cell_limit",
    "grid_scores",
    "max_useful_groups",
    "measure_grid_counts",
    "neighbouring_grids",
    "paper_grids",
    "privpfc_parts",
    "select_grid",
]
