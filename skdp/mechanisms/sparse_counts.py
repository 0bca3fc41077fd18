"""`sparse_counts`: noisy counts of all cells of a huge domain; the large ones are released.

Noise on every cell, a threshold, and no list of the cells: the empty cells that pass are drawn
directly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import Call, NoiseSource, Tape, noise_source
from .._validation import CodeArray, IntArray, as_fraction, as_integer, run_starts
from .laplace import (
    REACH,
    as_integers,
    clamped,
    discrete_laplace,
    draw_noise,
    exp_interval,
    least_reach,
    noise_rate,
)

# --- the false cells of a huge table: how many, and which, reach a threshold by noise alone
#
# How many is a binomial number, drawn exactly like all noise (see `_inversion`): a uniform number
# is compared with the distribution function, which is known as intervals of integers, and both get
# more bits until the comparison is certain. No floating-point number is used.

# Weights are multiples of 2**-(bits + 96), and followed outward until they are below this many: a
# weight that is always rounded up does not fall to zero.
_GUARD = 96
_NEGLIGIBLE = 2**32


# Bounds of the ratio of two neighbouring weights, as quotients of integers.
_Step = tuple[tuple[int, int], tuple[int, int]]


class _Distribution(NamedTuple):
    """Bounds of a distribution function, scaled to integers.

    Attributes
    ----------
    first : int
        The smallest number that has bounds.
    begins, ends : list of int
        Upper bounds of P(number < first + i), and lower bounds of P(number <= first + i).
    """

    first: int
    begins: list[int]
    ends: list[int]


def draw_false_count(n_cells: int, rate: Fraction, threshold: int, source: NoiseSource) -> int:
    """How many of ``n_cells`` independent noises reach the threshold: an exact binomial number.

    Parameters
    ----------
    n_cells : int
        Any positive number, also beyond 64 bits.
    rate : Fraction
        Rate of the discrete Laplace noise.
    threshold : int
        At least 1.
    source : NoiseSource
    """
    drawn = bits = 0
    while True:
        drawn = drawn << 64 | int(source.words(1)[0])
        bits += 64
        # The uniform number lies between drawn and drawn + 1, in units of 2**-bits.
        known = _distribution(n_cells, rate, threshold, bits)
        place = bisect_right(known.ends, drawn)
        if place < len(known.ends) and known.begins[place] <= drawn:
            return known.first + place


def draw_cells(shape: Sequence[int], count: int, source: NoiseSource) -> CodeArray:
    """``count`` different cells, uniform among all sets of that many, in lexicographic order.

    Cells are drawn independently, code by code, until enough of them are different.
    """
    cells = np.empty((0, len(shape)), dtype=np.int32)
    while len(cells) < count:
        fresh = np.empty((count - len(cells), len(shape)), dtype=np.int32)
        for axis, size in enumerate(shape):
            fresh[:, axis] = source.below(size, len(fresh))
        cells = np.concatenate([cells, fresh])
        order, starts = _distinct_rows(cells)
        cells = cells[order[starts]]
    return cells


def _distinct_rows(rows: NDArray[np.integer]) -> tuple[IntArray, IntArray]:
    """Lexicographic order of rows, equal ones in their present order, and where each run begins."""
    order = np.lexsort(rows.T[::-1])
    if not len(rows):
        return order, np.zeros(0, dtype=np.int64)
    return order, run_starts(rows[order])


@lru_cache(maxsize=8)
def _distribution(n_cells: int, rate: Fraction, threshold: int, bits: int) -> _Distribution:
    """Bounds of the binomial distribution function, scaled by 2**bits, where its mass lies.

    Weights are multiples of the probabilities: 1 near the mean, and from there outward by
    P(k + 1) / P(k) = (n - k) / (k + 1) * odds. Divided by their sum they are the probabilities.
    """
    # Rounding errors add up to at most the square of the number of steps, and the weights left out
    # to about 2**32 times that number: far less than 2**96 units.
    unit = bits + _GUARD
    # Bounds of p / (1 - p), p = r**threshold / (1 + r), scaled by 2**precision; the precision.
    # Relative to 1 / n_cells the bounds are as close as ``unit`` bits allow: odds far below that do
    # not matter, however small they are.
    precision = unit + n_cells.bit_length()
    one = 1 << precision
    r_low, r_high = exp_interval(rate.numerator, rate.denominator, precision)
    x_low, x_high = exp_interval(rate.numerator * threshold, rate.denominator, precision)
    low = (x_low << precision) // (one + r_high - x_low)
    high = -((-x_high << precision) // (one + r_low - x_high))
    start = (n_cells + 1) * low // (low + (1 << precision))
    down, below = _weights(_downward(start, n_cells, low, high, precision), unit)
    up, above = _weights(_upward(start, n_cells, low, high, precision), unit)
    middle = [(1 << unit, 1 << unit)]
    lows, highs = zip(*(down[::-1] + middle + up), strict=True)
    sums, tops = list(accumulate(lows)), list(accumulate(highs, initial=below))
    total_low, total_high = sums[-1], tops[-1] + above
    ends = [(each << bits) // total_high for each in sums]
    if not above:
        ends[-1] = 1 << bits
    begins = [-(-(each << bits) // total_low) for each in tops[:-1]]
    return _Distribution(start - len(down), begins, ends)


def _upward(start: int, n_cells: int, low: int, high: int, precision: int) -> Iterator[_Step]:
    for k in range(start, n_cells):
        part = (k + 1) << precision
        yield ((n_cells - k) * low, part), ((n_cells - k) * high, part)


def _downward(start: int, n_cells: int, low: int, high: int, precision: int) -> Iterator[_Step]:
    for k in range(start, 0, -1):
        part, left = k << precision, n_cells - k + 1
        yield (part, left * high), (part, left * low)


def _weights(steps: Iterator[_Step], unit: int) -> tuple[list[tuple[int, int]], int]:
    """Bounds of the weights on one side of the middle, and of the sum of those that are left out.

    Ratios fall from the middle outward, so what is left out is less than a geometric series.
    """
    low = high = 1 << unit
    found: list[tuple[int, int]] = []
    for (a, b), (c, d) in steps:
        if high < _NEGLIGIBLE and c < d:
            return found, high * c // (d - c) + 1
        low, high = low * a // b, -(-high * c // d)
        found.append((low, high))
    return found, 0


# --- the mechanism


def sparse_counts(
    codes: ArrayLike,
    counts: ArrayLike,
    shape: Sequence[int],
    epsilon: Any,
    threshold: int,
    *,
    max_false: Any = 200_000,
    random_state: Any = None,
) -> tuple[CodeArray, IntArray]:
    """Release the noisy counts of a huge table that reach a public threshold.

    The result has exactly the distribution of this: add discrete Laplace noise to the count of
    every cell of the domain, the empty ones included, and keep the cells whose noisy count is at
    least ``threshold``. Time and memory depend on the rows and on the number of released cells,
    not on the size of the domain, which may have 1e30 cells.

    Parameters
    ----------
    codes : array-like of int, shape (n_rows, n_columns)
        Cells that hold records. Rows with a code outside ``shape`` are left out; counts of equal
        rows are added up.
    counts : array-like of int, shape (n_rows,)
        How many records each row stands for. Counts are clamped to 0 and 2**60.
    shape : sequence of int
        Public number of codes of each column, up to 2**31.
    epsilon : number or Fraction
        Privacy parameter of the whole table. The noise is drawn at its dyadic floor.
    threshold : int
        Public threshold, from 1 to 2**60: cells with a noisy count of at least this are released.
        `least_threshold` finds one that keeps false cells rare.
    max_false : number, default=200_000
        Largest expected number of empty cells that noise alone lifts to the threshold, as if all
        cells of the domain were empty. Raise it only if that many rows fit into memory.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    codes : ndarray of int32, shape (n_released, n_columns)
        Released cells in lexicographic order.
    noisy : ndarray of int64, shape (n_released,)
        Their noisy counts, each between ``threshold`` and 2**60.

    Raises
    ------
    TypeError
        If codes or counts are not integers, or a parameter has the wrong type.
    ValueError
        If ``codes``, ``counts`` and ``shape`` do not fit together, if a parameter is out of range,
        or if more than ``max_false`` false cells are expected. The message then gives the least
        threshold that is accepted. All this depends on public sizes only.

    Notes
    -----
    With r = exp(-epsilon), an empty cell reaches the threshold t with probability
    p = r**t / (1 + r), and then has the noisy count t + G, where G is geometric. Among all n cells
    of the domain, Binomial(n, p) noises reach the threshold, in a uniformly random set of cells.
    Such a set is drawn without looking at the records; its members that hold records are
    dropped, since those cells get noise of their own.

    A cell that is missing from the release has an unknown, not a zero count. Its noisy count was
    below the threshold.

    References
    ----------
    G. Cormode, C. Procopiuc, D. Srivastava, T. T. L. Tran, "Differentially private summaries for
    sparse data", ICDT 2012.

    Examples
    --------
    >>> from skdp.mechanisms import least_threshold, sparse_counts
    >>> shape = (100,) * 15
    >>> threshold = least_threshold(100**15, epsilon=1.0, expected_false=1e-9)
    >>> threshold
    90
    >>> cells, noisy = sparse_counts([[7] * 15, [8] * 15], [500, 1], shape, 1.0, threshold)
    >>> cells[:, 0].tolist()
    [7]
    """
    # Privacy. Released: the cells with count + noise >= threshold, and these noisy counts, in an
    # order that the cells determine: a function of the noisy counts of all cells of the domain.
    # One record changes the count of one cell by 1, so sensitivity is 1 and the cost eps_d =
    # dyadic_floor(epsilon). False cells are drawn for the whole domain and dropped where records
    # are, which leaves independent noise on the empty cells however many those are. Clamping the
    # counts moves no two of them further apart; no error depends on a row.
    rate = noise_rate(epsilon, 1)
    level = as_integer(threshold, "threshold", 1, meaning="cells below it are not released.")
    if level > REACH:
        raise ValueError(f"threshold must be at most 2**60, the largest count, got {threshold!r}.")
    sizes = tuple(
        as_integer(size, "shape", 1, meaning="every column has a code.") for size in shape
    )
    if not sizes or max(sizes) > 2**31:
        raise ValueError(
            f"shape must give at least one column and at most 2**31 codes for each, got {shape!r}."
        )
    n_cells = math.prod(sizes)
    least = least_threshold(n_cells, epsilon, max_false)
    if level < least:
        raise ValueError(
            f"More than max_false={max_false} empty cells are expected to reach threshold="
            f"{threshold} by noise alone, because the domain is large for epsilon="
            f"{float(epsilon):g}. Use a threshold of at least {least}, a larger epsilon, or raise "
            "max_false if that many rows fit into memory."
        )
    # Codes and counts as integer arrays that fit together.
    n_columns = len(sizes)
    rows = as_integers(codes, "codes", "Encode values as positions in their column's domain.")
    weights = as_integers(counts, "counts", "Count whole records.")
    if rows.size == 0 and weights.size == 0:
        rows = rows.reshape(0, n_columns)
    if rows.ndim != 2 or rows.shape[1] != n_columns or weights.shape != rows.shape[:1]:
        raise ValueError(
            f"codes must have shape (n_rows, {n_columns}), as many columns as shape, and counts "
            f"shape (n_rows,); got {rows.shape} and {weights.shape}."
        )
    source = noise_source(random_state)
    occupied, exact = _joined(rows, weights, sizes)
    if isinstance(source, Tape):
        table = np.column_stack([occupied, exact])
        released: tuple[CodeArray, IntArray] = source.answer(
            Call("sparse_counts", table, rate, (sizes, level))
        )
        return released
    false = draw_cells(sizes, draw_false_count(n_cells, rate, level, source), source)
    excess = draw_noise(epsilon, 1, False, source, len(false))
    noisy = discrete_laplace(exact, epsilon, random_state=source)
    return _released(
        np.concatenate([occupied, false]),
        np.concatenate([noisy, np.minimum(excess, REACH - level) + level]),
        level,
    )


def least_threshold(n_cells: int, epsilon: Any, expected_false: Any) -> int:
    """Smallest threshold at which `sparse_counts` expects few false cells.

    Parameters
    ----------
    n_cells : int
        Public number of cells of the domain, of any size.
    epsilon : number or Fraction
        Privacy parameter of `sparse_counts`; its dyadic floor is used.
    expected_false : number
        Largest expected number of cells that noise alone lifts to the threshold, if all cells are
        empty. Below 1 it is about the probability that there is any such cell.

    Returns
    -------
    int
        Smallest t >= 1 with ``n_cells`` P(noise >= t) <= ``expected_false``, exactly; about
        ln(n_cells / expected_false) / epsilon.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is not positive, or the noise does not fit into 64 bits.

    Examples
    --------
    >>> from skdp.mechanisms import least_threshold
    >>> least_threshold(10**20, epsilon=1.0, expected_false=10)
    44
    """
    number = as_integer(n_cells, "n_cells", 1)
    expected = as_fraction(expected_false, "expected_false (max_false)")
    if expected <= 0:
        raise ValueError(
            f"expected_false (max_false) must be positive, got {expected_false!r}: no threshold "
            "makes it zero."
        )
    return least_reach(expected / number, noise_rate(epsilon, 1))


def _joined(
    rows: NDArray[np.integer], weights: NDArray[np.integer], shape: tuple[int, ...]
) -> tuple[CodeArray, IntArray]:
    """Distinct rows within the domain in lexicographic order, and their counts."""
    # A cell gets noise once, however its records were divided among the rows.
    inside = ((rows >= 0) & (rows < np.array(shape))).all(axis=1)
    cells = rows[inside].astype(np.int32)
    order, starts = _distinct_rows(cells)
    if not starts.size:
        return cells, np.zeros(0, dtype=np.int64)
    each = np.maximum(clamped(weights[inside][order]).astype(np.int64), 0)
    sums = np.add.reduceat(each, starts)
    # Sums beyond 64 bits have wrapped around.
    huge = np.add.reduceat(each.astype(np.float64), starts) > 2.0**61
    return cells[order[starts]], np.where(huge, REACH, np.minimum(sums, REACH))


def _released(cells: CodeArray, noisy: IntArray, threshold: int) -> tuple[CodeArray, IntArray]:
    """The first of equal cells, hence not the false one, if it reaches the threshold; sorted."""
    order, starts = _distinct_rows(cells)
    first = order[starts]
    first = first[noisy[first] >= threshold]
    return cells[first], noisy[first]
