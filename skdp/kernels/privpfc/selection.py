"""PrivPfC: the private selection of one grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._random import noise_source
from ..._validation import as_share, split_epsilon
from ...mechanisms import exponential, noisy_max
from ...rows import Counts
from .candidates import candidate_grids, cell_limit, neighbouring_grids, paper_grids
from .options import Options
from .quality import UNIT, Quality
from .scores import grid_scores

__all__ = ["privpfc_parts", "select_grid"]

# Its bound on the change of the quality, 1.1 in either direction.
_PAPER_RANGE = math.ceil(2.2 * UNIT)
# A second selection, near the first choice, is made if the number of records times the budget of
# selection is at least this; then one in all for each of the next number, up to the third number.
_FURTHER_FROM = 3_000
_EACH_FURTHER = 10_000
_MOST_FURTHER = 6
# Their pools are smaller by this factor.
_NEAR = 8
# With further selections there are enough records for grids that are too fine: this share of what
# a grid gains by fitting its own records is taken off, and twice as much where the groupings fit
# the records too.
_PENALTY = 0.35


def privpfc_parts(epsilon: Fraction, shares: Any = (0.03, 0.37, 0.60)) -> dict[str, Fraction]:
    """Parts of epsilon for the number of records, the choice of the grid, and the counts.

    Parameters
    ----------
    epsilon : Fraction
    shares : sequence of three numbers
        In proportion; by default those of the dissertation.

    Raises
    ------
    TypeError, ValueError
        If they are not three positive numbers, or one is less than a thousandth of their sum.
    """
    names = ("total", "grid", "counts")
    if not isinstance(shares, tuple | list) or len(shares) != len(names):
        raise ValueError(
            "shares must be three numbers, for the number of records, the choice of the grid and "
            f"the counts, got {shares!r}."
        )
    parts = split_epsilon(epsilon, dict(zip(names, shares, strict=True)))
    for name in names:
        as_share(parts.get(name, 0) / epsilon, f"the part {name!r} of shares={shares!r}")
    return parts


def select_grid(
    table: Counts,
    options: Sequence[Options],
    n_records: float,
    parts: dict[str, Fraction],
    *,
    max_grids: int = 10_000,
    selection: str = "auto",
    merged: bool = False,
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
    merged : bool, default=False
        Whether the options hold groupings that follow the labels of these records.
    random_state : None, int or NoiseSource

    Returns
    -------
    grid : ndarray of shape (n_predictors,)
        Option number of each predictor.
    """
    # Privacy. Candidates, the number of selections and the kind of quality depend on public facts,
    # the noisy number of records and what was released before, hence cost nothing. All scores of
    # a selection change within one interval of length `score_range` when a record is added (proof
    # there), so each noisy maximum costs its budget; equal budgets add up to the part "grid". The
    # exponential mechanism takes exp(epsilon q / 2.2) for the dissertation's sensitivity of 1.1:
    # 2.2 exceeds the range.
    source = noise_source(random_state)
    first = [each.first for each in options]
    limit = cell_limit(n_records, parts["counts"], table.shape[-1], selection)
    if selection == "paper":
        grids = paper_grids([each.sizes for each in first], limit, max_grids)
        scores = grid_scores(table, first, grids, Quality.of_the_paper(parts["counts"]))
        return grids[exponential(scores, parts["grid"], _PAPER_RANGE, random_state=source)]
    further = _further_selections(n_records * float(parts["grid"]))
    penalty = 2 * _PENALTY if merged else _PENALTY if further else 0.0
    quality = Quality.for_counts(parts["counts"], penalty)
    budget = parts["grid"] / (1 + further)
    grids = candidate_grids(first, limit, max_grids, random_state=source)
    scores = grid_scores(table, first, grids, quality)
    best = grids[noisy_max(scores, budget, quality.score_range, random_state=source)]
    most = max(1, max_grids // _NEAR)
    for _ in range(further):
        grids = neighbouring_grids(best, options, limit, most, random_state=source)
        scores = grid_scores(table, options, grids, quality)
        best = grids[noisy_max(scores, budget, quality.score_range, random_state=source)]
    return best


def _further_selections(records_times_epsilon: float) -> int:
    """How many selections follow the first, for a noisy number of records times their budget."""
    if records_times_epsilon < _FURTHER_FROM:
        return 0
    return min(max(int(records_times_epsilon / _EACH_FURTHER), 1), _MOST_FURTHER)
