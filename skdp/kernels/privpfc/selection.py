"""PrivPfC: select one grid for classification in a single private step, then count its cells.

Predictors come as *options*: groupings of the codes of one predictor, from coarse to fine. A grid
is one option number for each predictor, 0 standing for "everything in one group".

The quality of a grid is the expected number of records that a classifier gets right which predicts,
in each cell, the class with the largest noisy count. It is defined by an integer table, so that
its range is exact and no float error touches the privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._random import noise_source
from ..._types import IntArray
from ..._validation import split_epsilon
from ...mechanisms import discrete_laplace, exponential, noisy_max
from ...rows import Counts, CountTable
from .candidates import candidate_grids, cell_limit, neighbouring_grids, paper_grids
from .quality import UNIT, Options, Quality
from .scores import grid_scores

__all__ = ["SHARES", "measure_grid_counts", "privpfc_parts", "select_grid"]

# The dissertation divides epsilon so: number of records, choice of the grid, counts.
SHARES = {"total": "0.03", "grid": "0.37", "counts": "0.60"}
# Its bound on the change of the quality, 1.1 in either direction.
_PAPER_RANGE = math.ceil(2.2 * UNIT)
# A second selection near the first pays from this many records times the budget of selection on.
_TWO_STAGES_FROM = 3_000


def privpfc_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon for the number of records, the choice of the grid, and the counts."""
    return split_epsilon(epsilon, {name: Fraction(share) for name, share in SHARES.items()})


def select_grid(
    table: Counts,
    options: Sequence[Options],
    n_records: float,
    parts: dict[str, Fraction],
    *,
    max_grids: int = 10_000,
    selection: str = "auto",
    random_state: Any = None,
) -> NDArray[np.int16]:
    """Select a grid at the cost of ``parts["grid"]``.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    options : sequence of Options
    n_records : float
        Noisy number of records.
    parts : dict
        From :func:`privpfc_parts`.
    max_grids : int, default=10_000
    selection : {"auto", "paper"}, default="auto"
    random_state : None, int or NoiseSource

    Returns
    -------
    grid : ndarray of shape (n_predictors,)
        Option number of each predictor.
    """
    # Privacy. Candidates depend on public facts, the noisy number of records and (in the second
    # stage) the grid released by the first, hence cost nothing. All scores of a stage change
    # within one interval of length `score_range` when a record is added (see there), so each
    # noisy maximum costs its budget, and the two halves of the part "grid" add up to it. The
    # exponential mechanism takes exp(epsilon q / 2.2) for the dissertation's sensitivity of 1.1:
    # 2.2 exceeds the range.
    source = noise_source(random_state)
    first = [each.first for each in options]
    limit = cell_limit(n_records, parts["counts"], table.shape[-1], selection)
    if selection == "paper":
        grids = paper_grids([each.sizes for each in first], limit, max_grids)
        scores = grid_scores(table, first, grids, Quality.of_the_paper(parts["counts"]))
        return grids[exponential(scores, parts["grid"], _PAPER_RANGE, random_state=source)]
    quality = Quality.for_counts(parts["counts"])
    grids = candidate_grids(first, limit, max_grids, random_state=source)
    two_stages = n_records * float(parts["grid"]) >= _TWO_STAGES_FROM
    budget = parts["grid"] / 2 if two_stages else parts["grid"]
    scores = grid_scores(table, first, grids, quality)
    best = grids[noisy_max(scores, budget, quality.score_range, random_state=source)]
    if two_stages:
        grids = neighbouring_grids(best, options, limit, max_grids, random_state=source)
        scores = grid_scores(table, options, grids, quality)
        best = grids[noisy_max(scores, budget, quality.score_range, random_state=source)]
    return best


def measure_grid_counts(
    table: CountTable,
    groups: Sequence[IntArray],
    sizes: Sequence[int],
    epsilon: Fraction,
    *,
    random_state: Any = None,
) -> IntArray:
    """Noisy number of records in each cell and class.

    Parameters
    ----------
    table : CountTable
        The predictors that the grid uses, in order, and the class as the last attribute.
    groups : sequence of ndarray
        Group of each code of each predictor.
    sizes : sequence of int
        Number of groups of each predictor.
    epsilon : Fraction

    Returns
    -------
    counts : ndarray of shape (*sizes, n_classes), int64
    """
    # Privacy. A record is in one cell and one class, so adding it changes one count by one; every
    # count, empty ones included, gets its own noise. Cost: epsilon, once.
    n_classes = table.shape[-1]
    codes = [group[table.codes[:, axis]] for axis, group in enumerate(groups)]
    stacked = np.stack([*codes, table.codes[:, -1].astype(np.int64)], axis=1)
    shape = (*(int(size) for size in sizes), n_classes)
    exact = CountTable.from_codes(stacked, shape, table.counts).dense()
    return discrete_laplace(exact, epsilon, random_state=random_state)
