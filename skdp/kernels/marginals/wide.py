"""The joint counts of all attributes, where they stand out from the noise.

So they do at a very large epsilon, and where there are few cells for the number of records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..._random import NoiseSource
from ..._types import CodeArray, FloatArray
from ...mechanisms import least_threshold, sparse_counts
from ...rows import Counts, CountTable
from .plan import Workload

__all__ = ["JointCounts", "joint_share", "measure_joint"]

# Share of the views that the joint counts take where they are measured.
_SHARE = Fraction(1, 2)
# Empty cells that are expected to pass the threshold, per record.
_FALSE = 0.001
# Released rows: a bound on memory.
_MOST_RECORDS = 5_000_000
# Joint counts that hold less than this share of the records are not used.
_ENOUGH = 0.8


class JointCounts(NamedTuple):
    """Rows of codes and their released counts."""

    rows: CodeArray
    counts: FloatArray


def joint_share(
    views: Fraction,
    total: float,
    shape: tuple[int, ...],
    *,
    max_order: int = 3,
    workload: Workload = "all",
) -> Fraction:
    """Budget of the joint counts: 0 if more than a few empty cells would pass for records.

    Parameters
    ----------
    views : Fraction
    total : float
        The released number of records.
    shape : tuple of int
    max_order : int, default=3
        With 1 there are no joint counts.
    workload : str or mapping, default="all"
        Joint counts say more than sets that are asked for: with a mapping there are none.
    """
    if max_order == 1 or isinstance(workload, Mapping):
        return Fraction(0)
    share = views * _SHARE
    if not 1 <= total <= _MOST_RECORDS:
        return Fraction(0)
    # With less, the threshold is above 1 in any domain of more than one cell.
    if float(share) < math.log(math.prod(shape)) - math.log(max(_FALSE * total, 1.0)):
        return Fraction(0)
    return share if _threshold(share, total, shape) <= 1 else Fraction(0)


def _threshold(epsilon: Fraction, total: float, shape: tuple[int, ...]) -> int:
    return least_threshold(math.prod(shape), epsilon, max(round(_FALSE * total), 1))


def measure_joint(
    table: Counts, epsilon: Fraction, total: float, source: NoiseSource
) -> JointCounts | None:
    """Noisy counts of all cells that reach the threshold; None if they hold too few records.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    epsilon : Fraction
        Their cost.
    total : float
        The released number of records.
    source : NoiseSource
    """
    # Privacy. Released: the cells of the whole domain whose noisy count reaches a threshold that
    # follows from the domain and the released total, with these counts. Every cell gets noise, the
    # empty ones too, and a record adds one to one cell: sensitivity 1.
    whole = table if isinstance(table, CountTable) else table.project(range(len(table.shape)))
    threshold = _threshold(epsilon, total, table.shape)
    rows, noisy = sparse_counts(
        whole.codes, whole.counts, table.shape, epsilon, threshold, random_state=source
    )
    counts = noisy.astype(np.float64)
    if counts.sum() < _ENOUGH * total:
        return None
    return JointCounts(rows.astype(np.int32), counts)
