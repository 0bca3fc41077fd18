"""Sparse counts have the law of noise on every cell."""

import decimal
import itertools
import math
from collections import Counter
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from exact_laws import ScriptedSource
from loops import over
from scipy import stats

from skdp._random import noise_source
from skdp.mechanisms import least_threshold, sparse_counts

# The package has a function of this name.
_sparse_counts = import_module("skdp.mechanisms.sparse_counts")

# Every statistical test below has a fixed seed and this false-alarm rate for another one.
ALARM = 1e-6
SQUARE = (2, 2)
HUGE = (10**6,) * 5
NOTHING = np.zeros((0, 5), dtype=int), np.zeros(0, dtype=int)


def reach(rate, k, digits=80):
    """P(noise >= k) for k >= 1, as a fraction that is right to about ``digits`` digits."""
    with decimal.localcontext(decimal.Context(prec=digits)):
        exponent = decimal.Decimal(-rate.numerator) / rate.denominator
        return Fraction((exponent * k).exp() / (1 + exponent.exp()))


def binomial_cdf(n, p):
    terms = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    return list(itertools.accumulate(terms))


def outcomes(count, rate, threshold, levels=3):
    """P(a cell is not released), P(with each of the first few counts), and P(with more)."""
    r = math.exp(-rate)
    probability = [(1 - r) / (1 + r) * r ** abs(k - count) for k in range(-400, 400)]
    split = 400 + threshold
    return [
        sum(probability[:split]),
        *probability[split : split + levels],
        sum(probability[split + levels :]),
    ]


# --- the number of false cells


@over(
    "n, rate, threshold",
    [
        (1, Fraction(1), 1),
        (4, Fraction(1), 1),
        (4, Fraction(1, 10**6), 1),
        (30, Fraction(1, 3), 2),
        (60, Fraction(3), 1),
        (60, Fraction(1, 7), 9),
        (25, Fraction(2), 60),
    ],
)
@over("bits", [64, 128])
def test_bounds_of_the_binomial_distribution_are_right_and_tight(n, rate, threshold, bits):
    exact = binomial_cdf(n, reach(rate, threshold))
    first, begins, ends = _sparse_counts._distribution(n, rate, threshold, bits)
    begins.append(2**bits)
    for place, (low, high) in enumerate(zip(ends, begins[1:], strict=True)):
        assert low <= exact[first + place] * 2**bits <= high <= low + 2
    assert first == 0 or exact[first - 1] * 2**bits <= begins[0] <= 1
    assert ends[-1] >= 2**bits - 2


def test_an_undecided_word_draws_another():
    rate = Fraction(1)
    first, begins, ends = _sparse_counts._distribution(40, rate, 1, 64)
    place = next(i for i in range(20) if begins[i + 1] > ends[i])
    for word, more, number in [
        (ends[place] - 1, [], first + place),
        (begins[place + 1], [], first + place + 1),
        (ends[place], [0], first + place),
        (ends[place], [2**64 - 1], first + place + 1),
    ]:
        source = ScriptedSource([word, *more])
        assert _sparse_counts.draw_false_count(40, rate, 1, source) == number
        assert source.taken == 1 + len(more)


# --- which cells


@over("count", [0, 1, 3, 5, 6])
def test_cells_are_drawn_without_replacement_and_uniformly(count):
    source = noise_source(11)
    every = list(itertools.combinations(itertools.product(range(2), range(3)), count))
    runs = 60 * len(every)
    seen = Counter(
        tuple(map(tuple, _sparse_counts.draw_cells((2, 3), count, source).tolist()))
        for _ in range(runs)
    )
    assert set(seen) <= set(every)
    if count:
        assert stats.chisquare([seen[each] for each in every]).pvalue > ALARM or len(every) == 1


# --- the law of the whole release

TABLES = {
    "empty": ([], []),
    "one cell": ([[0, 1]], [2]),
    "three cells": ([[0, 0], [0, 1], [1, 1]], [1, 2, 4]),
    "zeros": ([[0, 0], [1, 0]], [0, 3]),
    "full": ([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 2, 3]),
}


def p_value(seen, runs, counts, rate, threshold):
    """Chi-square test of the joint distribution over all four cells; rare outcomes together."""
    each = [outcomes(count, rate, threshold) for count in counts]
    law = {
        key: runs * math.prod(p[k] for p, k in zip(each, key, strict=True))
        for key in itertools.product(range(5), repeat=4)
    }
    common = [key for key, mean in law.items() if mean >= 10]
    observed = [seen[key] for key in common]
    expected = [law[key] for key in common]
    observed.append(runs - sum(observed))
    expected.append(runs - sum(expected))
    return stats.chisquare(observed, expected).pvalue


@over(
    "name, threshold",
    [
        ("empty", 1),
        ("one cell", 3),
        ("three cells", 1),
        ("three cells", 3),
        ("zeros", 2),
        ("full", 1),
    ],
)
def test_the_release_has_the_law_of_noise_on_every_cell(name, threshold):
    codes, counts = TABLES[name]
    source = noise_source(5)
    runs = 2500
    seen = Counter()
    for _ in range(runs):
        cells, noisy = sparse_counts(codes, counts, SQUARE, 0.5, threshold, random_state=source)
        states = [0] * 4
        for (a, b), value in zip(cells.tolist(), noisy.tolist(), strict=True):
            states[2 * a + b] = min(value - threshold, 3) + 1
        seen[tuple(states)] += 1
    table = np.zeros(SQUARE, dtype=int)
    for cell, count in zip(codes, counts, strict=True):
        table[tuple(cell)] = count
    assert p_value(seen, runs, table.ravel(), 0.5, threshold) > ALARM
    for factor in (0.8, 1.25):
        assert p_value(seen, runs, table.ravel(), 0.5 * factor, threshold) < ALARM


def test_false_cells_do_not_depend_on_the_records():
    rows = np.argwhere(np.ones((3, 40), dtype=bool))
    shape, threshold = (40, 40), 3
    empty, lifted = sparse_counts(rows[:0], [], shape, 1.0, threshold, random_state=8)
    cells, noisy = sparse_counts(rows, [500] * 120, shape, 1.0, threshold, random_state=8)
    outside = empty[:, 0] >= 3
    np.testing.assert_array_equal(cells[120:], empty[outside])
    np.testing.assert_array_equal(noisy[120:], lifted[outside])
    assert 0 < outside.sum() < len(empty)


# --- huge domains


def test_a_huge_domain_gets_as_many_false_cells_as_expected():
    threshold = least_threshold(10**30, 1.0, 20_000)
    cells, noisy = sparse_counts(*NOTHING, HUGE, 1.0, threshold, random_state=2)
    mean = float(10**30 * reach(Fraction(1), threshold))
    assert 7000 < mean <= 20_000
    assert ALARM < stats.poisson.cdf(len(cells), mean) < 1 - ALARM
    assert noisy.min() == threshold and (cells >= 0).all() and (cells < 10**6).all()
    # Codes are uniform, and noise beyond the threshold is geometric.
    assert all(stats.kstest(column / 10**6, "uniform").pvalue > ALARM for column in cells.T)
    above = (noisy > threshold).sum()
    for rate, fits in ((1.0, True), (0.8, False), (1.25, False)):
        assert (stats.binomtest(above, len(noisy), math.exp(-rate)).pvalue > ALARM) == fits


def test_rows_outside_the_domain_are_left_out_and_any_integers_are_read():
    rows = [[0, 0], [-1, 0], [0, 2], [10**12, 1]]
    cells, _ = sparse_counts(rows, [500, 600, 700, 800], SQUARE, 1.0, 60, random_state=0)
    assert cells.tolist() == [[0, 0]]
    every = list(itertools.product(range(2), repeat=2))
    cells, noisy = sparse_counts(every, [100, 200, 300, 400], SQUARE, 1.0, 1, random_state=0)
    assert cells.tolist() == [list(row) for row in every]
    assert abs(noisy - [100, 200, 300, 400]).max() < 50


# --- rows, counts and order


def test_neither_the_order_of_rows_nor_their_division_changes_the_release():
    rows, counts = np.array([[0, 1], [1, 0], [2, 2]]), np.array([5, 7, 3])
    expected = sparse_counts(rows, counts, (3, 3), 1.0, 2, random_state=4)
    split = np.repeat(rows, counts, axis=0)[::-1]
    for other, weights in [(rows[::-1], counts[::-1]), (split, np.ones(15, dtype=int))]:
        found = sparse_counts(other, weights, (3, 3), 1.0, 2, random_state=4)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


@over(
    "counts",
    [
        np.array([2**63, 2**64 - 1, 3], dtype=np.uint64),
        np.array([2**62, 2**63 - 1, 3]),
        np.array([2**60, 2**60, -(2**63)]),
    ],
)
def test_extreme_counts_are_clamped(counts):
    rows = [[0, 0], [0, 1], [1, 1]]
    cells, noisy = sparse_counts(rows, counts, SQUARE, 1.0, 50, random_state=0)
    assert cells.tolist() == [[0, 0], [0, 1]] and (noisy > 2**60 - 50).all()
    # Sums of equal rows must not wrap around.
    many = np.zeros((20, 2), dtype=int)
    _, noisy = sparse_counts(many, np.full(20, 2**60), SQUARE, 1.0, 50, random_state=0)
    assert noisy.tolist() == [2**60] or noisy[0] > 2**60 - 50


# --- thresholds


@over("rate", [Fraction(1, 1024), Fraction(1, 2), Fraction(3)])
@over("n_cells", [1, 7, 10**6, 10**30, 27**14])
@over("expected", [Fraction(1, 1000), 1, 200_000])
def test_the_least_threshold_is_the_least(rate, n_cells, expected):
    found = least_threshold(n_cells, rate, expected)
    assert n_cells * reach(rate, found) <= expected
    assert found == 1 or n_cells * reach(rate, found - 1) > expected


def test_epsilon_is_rounded_down():
    # 0.1 is not a multiple of a power of two: the noise is wider, and so the threshold higher.
    assert least_threshold(10**400, 0.1, 1) >= math.log(10) * 400 / 0.1 - 10


class Untouchable:
    def __array__(self, *args, **kwargs):
        raise AssertionError("The records were read.")


@over(
    "changed, error, message",
    [
        ({"threshold": 0}, ValueError, "threshold must be at least 1"),
        ({"threshold": 2**60 + 1}, ValueError, "at most 2\\*\\*60"),
        ({"shape": ()}, ValueError, "at least one column"),
        ({"shape": (5, 0)}, ValueError, "shape"),
        ({"shape": (2**31 + 1,)}, ValueError, "at most 2\\*\\*31 codes"),
        ({"max_false": 0}, ValueError, "max_false"),
        ({"shape": HUGE}, ValueError, "a threshold of at least 57, a larger epsilon, or raise"),
    ],
)
def test_parameters_are_refused_before_anything_is_read(changed, error, message):
    arguments = {"shape": (2, 2), "epsilon": 1.0, "threshold": 5} | changed
    with pytest.raises(error, match=message):
        sparse_counts(Untouchable(), Untouchable(), **arguments)


def test_arrays_that_do_not_fit_are_refused():
    for codes, counts in [([[0.5, 1.0]], [1]), ([[0, 1, 1]], [1]), ([[0, 1]], [1, 1])]:
        with pytest.raises((TypeError, ValueError), match="codes"):
            sparse_counts(codes, counts, SQUARE, 1.0, 3)
    for wrong in ({"n_cells": 0}, {"expected_false": math.inf}, {"epsilon": -1}):
        with pytest.raises(ValueError):
            least_threshold(**({"n_cells": 10, "epsilon": 1.0, "expected_false": 1} | wrong))
