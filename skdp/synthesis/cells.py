"""Synopses over a grid of cells: what a grid and the cells of a domain share."""

from __future__ import annotations

import math

from ..exceptions import DomainError
from ..kernels.dpcube import MOST_CELLS
from ..kernels.grid import grid_boxes, measure_grid
from ..release import AnySpread, Boxes, BoxModel, Synopsis

__all__ = ["cells_synopsis", "check_n_cells"]


def cells_synopsis(table, domain, sides, part, loss, source, mechanism):
    """Count the boxes of a grid with the budget of one part, and wrap the counts into a synopsis.

    Parameters
    ----------
    table : Counts
    domain : Domain
    sides : tuple of int
        Number of parts of each column.
    part : str
        Part of ``loss`` that pays for the counts.
    loss : PrivacyLoss
    source : NoiseSource
    mechanism : str
        Text for the synopsis.
    """
    epsilon = loss.parts[part]
    counts = measure_grid(table, sides, epsilon, random_state=source)
    boxes = Boxes(*grid_boxes(domain.shape, sides))
    model = BoxModel(boxes, counts, domain.shape, AnySpread(epsilon))
    return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)


def check_n_cells(sides, what, remedy):
    """Raise DomainError if there are more boxes than can be counted; from public facts alone."""
    cells = math.prod(sides)
    if cells > MOST_CELLS:
        raise DomainError(
            f"{what}, and there are {' x '.join(map(str, sides))} = {cells:.4g} of them, more than "
            f"{MOST_CELLS:,}. Nothing was read or spent. {remedy}"
        )
