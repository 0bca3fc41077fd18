"""The quantile of conformal prediction from a noisy histogram of scores, with its noise accounted.

Scores are counted twice, in bins and in blocks of bins, so that the number of scores beyond any
edge is a sum of few noisy counts. Edges are then tested from the largest down, as the risk
thresholds of "Learn then Test" [1]_; the margin of the tests is chosen here for the mean coverage.
The theory pages have the proof.

References
----------
.. [1] A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan, L. Lei, "Learn then Test:
   Calibrating predictive algorithms to achieve risk control", Annals of Applied Statistics 19(2),
   2025. Private prediction sets, by another route: A. N. Angelopoulos, S. Bates, T. Zrnic, M. I.
   Jordan, Harvard Data Science Review 4(2), 2022.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource
from .._types import FloatArray, IntArray
from ..mechanisms import discrete_laplace
from ..mechanisms._inversion import noise_rate

# Blocks, and bins of each block.
_SIDE = 16
BINS = _SIDE**2
# A score is counted in one block and in one bin.
_SENSITIVITY = 2
# Points at which a law of noise is computed, and standard deviations that they span on each side;
# what lies beyond has a probability below 1e-7 of the last digit shown.
_POINTS = 2**14
_REACH = 16


class ScoreCounts(NamedTuple):
    """Noisy numbers of scores.

    Attributes
    ----------
    blocks : ndarray of int, shape (16,)
    bins : ndarray of int, shape (16, 16)
        The bins of each block.
    epsilon : Fraction
        What both cost together.
    """

    blocks: IntArray
    bins: IntArray
    epsilon: Fraction


class Margin(NamedTuple):
    """What the tests of a level add for the noise.

    Attributes
    ----------
    records : float
        The least excess of scores below an edge over those that are needed, in records.
    rows : float
        The least noisy number of rows with which any edge is tested.
    """

    records: float
    rows: float


def measure_scores(bins: IntArray, epsilon: Fraction, source: NoiseSource) -> ScoreCounts:
    """Count scores, given by their bins from 0 to 255, with noise."""
    # Privacy. Released are the noisy numbers of scores in 16 public blocks and in the 16 bins of
    # each, empty ones included. One record has one score, which is in one block and in one bin:
    # L1 sensitivity 2 for all 272 numbers together, one vector of noise at epsilon. Thresholds and
    # everything else are computed from these numbers.
    fine = np.bincount(bins, minlength=BINS)
    exact = np.concatenate([fine.reshape(_SIDE, _SIDE).sum(axis=1), fine])
    noisy = discrete_laplace(exact, epsilon, _SENSITIVITY, random_state=source)
    return ScoreCounts(noisy[:_SIDE], noisy[_SIDE:].reshape(_SIDE, _SIDE), epsilon)


def covered_bins(counts: ScoreCounts, miscoverage: Fraction) -> int:
    """How many bins from the lowest are to be covered, so that a new score is with 1 - miscoverage.

    Parameters
    ----------
    counts : ScoreCounts
    miscoverage : Fraction
        Between 0 and 1.

    Returns
    -------
    int
        From 1 to 256; 256 where the noise or the number of rows does not allow less.
    """
    margin = margin_of(counts.epsilon, miscoverage)
    if counts.blocks.sum() < margin.rows:
        return BINS
    below, above = _sides(counts)
    a = float(miscoverage)
    excess = a * below - (1 - a) * above
    failed = np.flatnonzero(excess < margin.records)
    # Edges 1 to 255 are tested from the largest down, until one fails.
    return int(failed[-1]) + 2 if failed.size else 1


def _sides(counts: ScoreCounts) -> tuple[IntArray, IntArray]:
    """Noisy numbers of scores below and above each inner edge, 1 to 255.

    Blocks as far as they go, then bins of the block that the edge divides.
    """
    return _before(counts.blocks, counts.bins), _before(
        counts.blocks[::-1], counts.bins[::-1, ::-1]
    )[::-1]


def _before(blocks: IntArray, bins: IntArray) -> IntArray:
    """Sums of whole blocks and single bins before each inner edge."""
    whole = np.concatenate([[0], np.cumsum(blocks)[:-1]])
    parts = np.concatenate(
        [np.zeros((_SIDE, 1), dtype=np.int64), np.cumsum(bins, axis=1)[:, :-1]], axis=1
    )
    return (whole[:, None] + parts).ravel()[1:]


# --- the noise


@functools.lru_cache(maxsize=64)
def margin_of(epsilon: Fraction, miscoverage: Fraction) -> Margin:
    """What the tests of a level add for the noise; nothing here depends on data."""
    # Let N = n + 1 count the new score too, a = miscoverage, and Z the noise of the excess at an
    # edge. Tested from above, the edge that is kept is at most k only if the test of k passes.
    # With S(u) = max over edges of P(Z >= u), u > 0, the mean excess among N scores at the edge
    # that is kept is then at least records - (1 - a) - (integral of S). So `records` makes it 0,
    # which means coverage 1 - a, where a N is at least the integral. With fewer rows, `rows` lets
    # a test happen with probability a at most, and else all bins are covered.
    rate, a = float(noise_rate(epsilon, _SENSITIVITY)), float(miscoverage)
    most = _SIDE * 2 - 1
    grid = _Grid(rate, most * max(a, 1 - a) ** 2, miscoverage.denominator)
    below, above = grid.transform(a), grid.transform(1 - a)
    worst = np.zeros(_POINTS // 2)
    for left, right in _terms():
        worst = np.maximum(worst, _tail(below**left * above**right))
    integral = grid.step * float(worst[1:].sum()) + grid.slack(most)
    rows = _Grid(rate, _SIDE, 1)
    # The least number that the noise of the number of rows exceeds with probability a at most.
    far = int(np.argmax(_tail(rows.transform(1.0) ** _SIDE)[1:] <= a))
    return Margin(integral + 1 - a, integral / a + far * rows.step + rows.slack(_SIDE))


def _terms() -> set[tuple[int, int]]:
    """How many noisy counts are added below and above an edge, for all inner edges."""
    places = [divmod(edge, _SIDE) for edge in range(1, BINS)]
    return {
        (block + part, _SIDE - block + (_SIDE - 1 - part if part else 0)) for block, part in places
    }


class _Grid:
    """Multiples of a step, on which laws of weighted sums of noise are computed.

    Parameters
    ----------
    rate : float
        Of the discrete Laplace noise.
    squares : float
        The largest sum of squared weights.
    denominator : int
        Common denominator of the weights. Where its multiples reach far enough the laws are
        exact; otherwise each term is rounded to the grid, by half a step at most.
    """

    def __init__(self, rate: float, squares: float, denominator: int) -> None:
        self._rate = rate
        width = 2 * _REACH * np.sqrt(squares * 2 * np.exp(-rate)) / -np.expm1(-rate) / _POINTS
        self._exact = bool(width * denominator <= 1)
        self.step = 1 / denominator if self._exact else float(width)

    def slack(self, n_terms: int) -> float:
        """By how much rounding can lower a sum."""
        return 0.0 if self._exact else n_terms * self.step / 2

    def transform(self, weight: float) -> NDArray[np.complex128]:
        """Fourier transform of the law of one draw times ``weight``."""
        half = _POINTS // 2
        ends = np.floor((np.arange(-half, half) + 0.5) * (self.step / weight))
        # P(noise <= end), without a difference of large numbers on either side.
        tail = np.exp(-self._rate * np.where(ends < 0, -ends, ends + 1)) / (1 + np.exp(-self._rate))
        reached = np.where(ends < 0, tail, 1 - tail)
        reached[-1] = 1.0
        return np.fft.rfft(np.fft.ifftshift(np.diff(reached, prepend=0.0)))


def _tail(transform: NDArray[np.complex128]) -> FloatArray:
    """P(sum >= t) for t = 0, 1, ... steps."""
    law = np.fft.irfft(transform, _POINTS)[: _POINTS // 2]
    return np.cumsum(law[::-1])[::-1]
