"""The joint counts of all attributes, where they stand out from the noise of a large epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from sklearn.isotonic import IsotonicRegression

from ..._random import NoiseSource, sampling_generator
from ..._validation import CodeArray, FloatArray, IntArray
from ...domain import Zeros
from ...mechanisms import (
    discrete_laplace_variance,
    least_threshold,
    sparse_counts,
)
from ...tables import Counts, CountTable
from .candidates import Workload
from .groups import ROWS_ONCE, TINY, TUNING, Attribute

__all__ = ["JointCounts", "joint_share", "measure_joint"]

# Bins by density in which cells are counted that are tried, to see where empty ones pass.
_DENSITIES = 100
# Released rows: a bound on memory.
_JOINT_COUNTS = 5_000_000


class JointCounts(NamedTuple):
    """Rows of codes and their released counts.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
    counts : ndarray of float64, shape (n_rows,)
    noise : float
        Variance of the noise of a count.
    elsewhere : float
        Variance of the sum over all other cells.
    """

    rows: CodeArray
    counts: FloatArray
    noise: float
    elsewhere: float

    def completed(
        self, rows: CodeArray, weights: FloatArray, zeros: Zeros, total: float
    ) -> tuple[CodeArray, FloatArray]:
        """These rows and masses, and weighted ones for the records that they lack."""
        lawful = ~zeros.breaks(self.rows)
        counts = self.counts[lawful]
        lacking = max(total - counts.sum(), 0.0)
        if not counts.sum() + lacking > 0:
            return rows, weights
        if not lacking > 0:
            return np.asfortranarray(self.rows[lawful]), counts
        both = np.concatenate([self.rows[lawful], rows])
        return np.asfortranarray(both), np.concatenate([counts, lacking * weights])


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
    share = views * (1 - TUNING.beside)
    if not 1 <= total <= _JOINT_COUNTS:
        return Fraction(0)
    # Of the empty cells too no larger part may pass.
    if float(share) < -math.log(TUNING.false):
        return Fraction(0)
    few = max(round(TUNING.false * total), 1)
    return share if least_threshold(math.prod(shape), share, few) <= 1 else Fraction(0)


def measure_joint(
    table: Counts,
    epsilon: Fraction,
    attributes: Sequence[Attribute],
    source: NoiseSource,
) -> JointCounts:
    """Noisy counts of all cells where they are at least 1.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    epsilon : Fraction
        Their cost.
    attributes : sequence of Attribute
        Released: where records are likely.
    source : NoiseSource
    """
    # Privacy. Released: the cells of the whole domain whose noisy count is at least 1, with these
    # counts. Every cell gets noise, the empty ones too, and a record adds one to one cell:
    # sensitivity 1.
    whole = table if isinstance(table, CountTable) else table.project(range(len(table.shape)))
    rows, noisy = sparse_counts(
        whole.codes, whole.counts, table.shape, epsilon, 1, random_state=source
    )
    counts = noisy * _real(rows, noisy, table.shape, attributes, epsilon, source)
    # How many empty cells pass is as uncertain as a Poisson number.
    passing = math.exp(math.log(math.prod(table.shape)) - float(epsilon))
    return JointCounts(rows.astype(np.int32), counts, discrete_laplace_variance(epsilon), passing)


def _real(
    rows: CodeArray | IntArray,
    noisy: IntArray,
    shape: Sequence[int],
    attributes: Sequence[Attribute],
    epsilon: Fraction,
    source: NoiseSource,
) -> FloatArray:
    """Probability that a cell that passed is not empty.

    Empty cells pass everywhere alike, records lie where single attributes have them: cells with a
    count of 1 are compared with as many as must be empty among those of equal density by
    independent attributes. Above it hardly any is empty, as epsilon is large.
    """
    at = noisy == 1
    if not at.any():
        return np.ones(len(rows))
    logs = [np.log(np.maximum(each.mu, TINY)) for each in attributes]
    generator = sampling_generator(source)
    anywhere = sum(
        log[generator.integers(0, size, ROWS_ONCE)] for log, size in zip(logs, shape, strict=True)
    )
    dense = sum(log[codes] for log, codes in zip(logs, rows[at].T, strict=True))
    inner = np.linspace(0, 1, _DENSITIES + 1)[1:-1]
    edges = np.unique(np.concatenate([np.quantile(each, inner) for each in (dense, anywhere)]))
    bin_of = np.searchsorted(edges, dense)
    share = np.bincount(np.searchsorted(edges, anywhere), minlength=len(edges) + 1) / ROWS_ONCE
    # Noise is t with probability q**t (1 - q) / (1 + q), where q = exp(-epsilon).
    q = math.exp(-float(epsilon))
    passing = math.exp(math.log(math.prod(shape)) - float(epsilon))
    false = share * passing * (1 - q) / (1 + q)
    # The share of real cells grows with density. Bins without cells count too: noise averages out.
    cells = np.maximum(np.bincount(bin_of, minlength=len(share)), TINY)
    growing = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    real = growing.fit_transform(np.arange(len(cells)), 1 - false / cells, sample_weight=cells)
    kept = np.ones(len(rows))
    kept[at] = real[bin_of]
    return kept
