"""Projected histograms (Vinterbo): predictors that separate labels, selected one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .._arrays import run_starts
from .._random import noise_source
from .._types import IntArray
from .._validation import split_epsilon
from ..domain import Attribute, Level, Numeric
from ..mechanisms import noisy_max
from ..rows import CountTable

# Scores are in units of 1/4096.
UNIT = 4096
# More counts than this are not released: predictors that would need more are not candidates.
_MOST_COUNTS = 2**20


def projection_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon for the number of records, the selections, and the counts."""
    shares = {"total": Fraction(3, 100), "grid": Fraction(47, 100), "counts": Fraction(1, 2)}
    return split_epsilon(epsilon, shares)


def confusion_score(table: CountTable) -> int:
    """Negative number of record pairs with different labels in one cell, relative to its size.

    The score is -sum of floor(UNIT * (pairs of the cell) / (records of the cell)).

    Parameters
    ----------
    table : CountTable
        Cells, and the class as the last attribute.
    """
    # Privacy. With n records in a cell, n_i of them of label i, the summand is
    # (n - sum n_i**2 / n) / 2. One more record changes it by something between 0 (all records
    # share its label) and n / (n + 1) (none does), hence the floor by 0 to UNIT: range UNIT.
    if not table.n_rows:
        return 0
    cells = table.codes[:, :-1]
    starts = run_starts(cells)
    sizes = np.add.reduceat(table.counts, starts)
    # Python integers: squares of counts times UNIT may leave 64 bits, and floors must be exact.
    counts = table.counts.astype(object)
    squares = np.add.reduceat(counts * counts, starts)
    total = 0
    for size, square in zip(sizes.tolist(), squares.tolist(), strict=True):
        total += UNIT * (size * size - square) // (2 * size)
    return -total


def _level(attribute: Attribute, n_bins: int) -> Level:
    """Categories as they are; numbers in ``n_bins`` equal bins."""
    if not isinstance(attribute, Numeric) or attribute.bins <= n_bins:
        return attribute.levels()[-1]
    return attribute.equal_parts(n_bins)


def projected_histogram(
    table: CountTable,
    predictors: Sequence[Attribute],
    n_records: float,
    epsilon: Fraction,
    *,
    n_attributes: int = 3,
    random_state: Any = None,
) -> tuple[list[int], list[IntArray], list[list[str]]]:
    """Select ``n_attributes`` predictors, each with an equal share of ``epsilon``.

    Parameters
    ----------
    table : CountTable
        The predictors in order, and the class as the last attribute.
    predictors : sequence of Attribute
    n_records : float
        Noisy number of records: it decides the number of bins.
    epsilon : Fraction
    n_attributes : int, default=3
    random_state : None, int or NoiseSource

    Returns
    -------
    axes : list of int
        Selected predictors, in the order of the domain.
    groups : list of ndarray of shape (n_codes,)
    labels : list of list of str
    """
    # Privacy. Every selection is a noisy maximum of scores of range UNIT, at an equal share; the
    # candidates depend on the earlier selections and on the noisy number of records.
    source = noise_source(random_state)
    rounds = min(n_attributes, len(predictors))
    share = epsilon / rounds
    n = max(float(n_records), 3.0)
    n_bins = max(2, round((n / math.sqrt(math.log(n))) ** (2 / (2 + rounds))))
    levels = [_level(attribute, n_bins) for attribute in predictors]
    n_classes = table.shape[-1]
    label_axis = len(predictors)
    columns = [level.groups[table.codes[:, axis]] for axis, level in enumerate(levels)]
    columns.append(table.codes[:, label_axis].astype(np.int64))
    sizes = [*(len(level.labels) for level in levels), n_classes]
    chosen: list[int] = []
    for _ in range(rounds):
        cells = n_classes * math.prod(sizes[axis] for axis in chosen)
        candidates = [
            axis
            for axis in range(len(predictors))
            if axis not in chosen and 1 < sizes[axis] <= _MOST_COUNTS // cells
        ]
        if not candidates:
            break
        scores = []
        for axis in candidates:
            axes = [*chosen, axis, label_axis]
            codes = np.stack([columns[each] for each in axes], axis=1)
            shape = [sizes[each] for each in axes]
            scores.append(confusion_score(CountTable.from_codes(codes, shape, table.counts)))
        best = noisy_max(np.array(scores, dtype=np.int64), share, UNIT, random_state=source)
        chosen.append(candidates[best])
    axes = sorted(chosen)
    return axes, [levels[axis].groups for axis in axes], [levels[axis].labels for axis in axes]
