"""Private quantiles: scores, exact laws, bounds on rank errors, and what is read."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from exact_laws import fit, law_of_permute_and_flip
from hypothesis import given
from hypothesis import strategies as st
from loops import over

import skdp
from skdp import private_quantiles
from skdp._random import noise_source
from skdp.algorithms.quantiles import UNIT, LinePieces, TreePlan, _reach, plan_quantiles
from skdp.preprocessing import _as_line


def distance(data, z, fraction):
    """How far the rank that is wanted is from those of z, in t-ths of a record."""
    p, t = fraction.numerator, fraction.denominator
    under, until = sum(x < z for x in data), sum(x <= z for x in data)
    return max(0, t * under - p * len(data), p * len(data) - t * until)


def rank_errors(data, shares, values):
    """Distance in records of the wanted rank from those of each value."""
    ordered = np.sort(data)
    wanted = np.asarray(shares) * len(ordered)
    under, until = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return np.maximum(0, np.maximum(under - wanted, wanted - until))


def evenly(count):
    return [round(UNIT * (i + 1) / (count + 1)) for i in range(count)]


# --- the score, and the law of one quantile


@given(
    data=st.lists(st.integers(0, 11), max_size=9),
    size=st.integers(12, 15),
    fraction=st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20),
    low=st.integers(-3, 3),
    gap=st.integers(0, 60),
    batch=st.integers(1, 12),
)
def test_pieces_are_those_of_the_score(data, size, fraction, low, gap, batch):
    places = np.sort(np.array(data, dtype=np.int64)) + low
    with mock.patch("skdp._validation.BATCH_ROWS", batch):
        pieces = LinePieces(places, low, low + size, fraction)
    starts, scores, widths = pieces.within(None)
    assert np.repeat(scores, widths).tolist() == [-distance(data, z, fraction) for z in range(size)]
    assert starts[0] == 0 and (np.diff(starts, append=size) == widths).all() and widths.min() > 0
    # On any data some integer has the wanted rank: the error bounds count on it.
    assert scores.max() == 0
    assert (pieces.n_pieces, pieces.widest) == (len(starts), widths.max())
    # Those near the best are found without the others.
    near = [each[scores >= -gap].tolist() for each in (starts, scores, widths)]
    some = pieces.within(gap)
    assert [each[some[1] >= -gap].tolist() for each in some] == near
    if data:
        assert len(some[0]) <= 2 * len(set(data)) + 1


@over("fraction", [Fraction(1, 2), Fraction(1, 4), Fraction(2, 3)])
def test_the_loss_is_at_most_epsilon_exactly(fraction):
    # All data sets of up to three records on five integers, and one record more anywhere. With
    # ratio r = exp(-epsilon / R) rational, every probability is an exact fraction.
    size, r = 5, Fraction(1, 2)
    score_range = 2 * max(fraction.numerator, fraction.denominator - fraction.numerator)
    law = {}
    for count in range(5):
        for data in itertools.combinations_with_replacement(range(size), count):
            scores = [-distance(data, z, fraction) for z in range(size)]
            law[data] = law_of_permute_and_flip(scores, r)
    worst = 0
    for data in law:
        for record in range(size):
            more = law.get(tuple(sorted((*data, record))))
            if more is not None:
                ratios = [law[data][z] / more[z] for z in range(size)]
                worst = max(worst, *ratios, *(1 / ratio for ratio in ratios))
    assert r ** (-score_range * Fraction(2, 5)) < worst <= r**-score_range


# --- several


@over("method", ["independent", "recursive", "tree"])
def test_much_epsilon_gives_the_quantiles(method):
    rng = np.random.default_rng(0)
    for data in (rng.integers(0, 1000, 501), np.repeat([3, 500, 997], [200, 5, 96]), [7] * 99):
        shares = [0.1, 0.25, 0.5, 0.75, 0.8, 0.9]
        found = private_quantiles(
            data, shares, epsilon=1e6, domain=(0, 1000), step=1, method=method
        )
        # Equal values are divided at random, so that ranks of parts may be off by a record.
        assert rank_errors(data, shares, found.values).max() <= 2
        assert found.method == method


def test_equal_values_are_divided():
    # Two fifths are 0. Were they all on one side of 0, the next quantile would be far off.
    data = np.concatenate([np.zeros(40_000, dtype=int), np.arange(60_000)])
    shares = [0.2, 0.3, 0.6, 0.7]
    found = private_quantiles(
        data, shares, epsilon=1.0, domain=(0, 10**6), step=1, method="recursive", random_state=1
    )
    assert rank_errors(data, shares, found.values).max() < 300


@over("count, bits, first", [(1, 12, "independent"), (99, 40, "recursive"), (99, 12, "tree")])
def test_the_method_follows_from_public_facts(count, bits, first):
    assert next(iter(plan_quantiles(evenly(count), Fraction(1), 2**bits))) == first


@over("method", ["independent", "recursive", "tree"])
@over("epsilon", [0.02, 1.0])
def test_rank_errors_hold(method, epsilon):
    rng = np.random.default_rng(4)
    shares = [0.05, 0.3, 0.5, 0.9]
    # The worst case of the bound: few values far apart, the rest of the line empty.
    high = 2**10 if method == "tree" else 2**40
    usual = {"epsilon": epsilon, "domain": (0, high), "step": 1, "method": method, "level": 0.8}
    usual["random_state"] = noise_source(5)
    sparse = np.repeat(rng.integers(0, high, 20), 60)
    for data in (rng.integers(0, min(high, 10**6), 1000), sparse, np.full(500, high), np.zeros(0)):
        found = [private_quantiles(data, shares, **usual) for _ in range(25)]
        missed = [rank_errors(data, shares, each.values) > each.rank_errors for each in found]
        # The chance that 16 of 25 fail at 0.8 is below 1e-6.
        assert np.any(missed, axis=1).sum() < 16


def test_rank_errors_are_those_of_the_bound():
    # 1.0 for the median: log(size / alpha) * R / (epsilon t), R / t = 1.
    usual = {"values": [], "epsilon": 1.0, "domain": (0, 99), "step": 1}
    alone = private_quantiles(quantiles=0.5, method="independent", **usual)
    assert alone.rank_errors[0] == pytest.approx(math.log(100 / 0.05))
    several = private_quantiles(quantiles=[0.2, 0.5], **usual)
    assert (several.rank_intervals(1000).mean(axis=1) == [200, 500]).all()


def test_the_reach_of_a_tree_is_that_of_laplace_noise():
    # P(|X| > x) = exp(-sqrt(2) x) at variance 1, and Chernoff's bound lies above it.
    for alpha in (0.1, 1e-3, 1e-9):
        exact = math.log(1 / alpha) / math.sqrt(2)
        assert exact < _reach(alpha) < 1.1 * exact + 3
    # Where noise is rarely anything but zero, Laplace noise of the same epsilon is much wider.
    plans = [TreePlan([Fraction(1, 2)], Fraction(e), 64) for e in ("0.01", "1000")]
    assert 1 <= plans[0]._widening() < 1.01 and plans[1]._widening() > 100


# --- what is read


def position_of(value, line):
    return int(line.read(skdp.tables.as_column(np.array([value]), "values"))[0])


@given(
    # Some builds of NumPy and SciPy flush subnormal numbers to zero.
    low=st.floats(-1e300, 1e300, allow_subnormal=False),
    width=st.floats(1e-3, 1e300),
    step=st.none() | st.floats(1e-3, 1e3),
    value=st.floats(allow_nan=True),
)
def test_released_values_lie_within_the_bounds(low, width, step, value):
    high = low + width
    try:
        line = _as_line((low, high), step)
    except ValueError:
        return
    found = line.values(np.array([0, line.last]))
    assert low <= found.min() and found.max() <= high
    position = position_of(value, line)
    assert position == -(2**62) if math.isnan(value) else 0 <= position <= line.last


@given(value=st.integers(-(2**63), 2**64 - 1), step=st.integers(1, 2**60))
def test_integers_are_rounded_to_the_nearest_step(value, step):
    line = _as_line((-(2**60), 2**60), step)
    position = position_of(value, line)
    inside = min(max(value, -(2**60)), 2**60)
    nearest = abs(inside - (line.origin + step * position))
    assert 2 * nearest <= step or position == line.last


@over("share", [0.5, 0.2])
def test_one_quantile_has_the_exact_law(share):
    data, source = [1, 2, 2, 2, 7], noise_source(3)
    fraction = Fraction(share).limit_denominator(10)
    score_range = 2 * max(fraction.numerator, fraction.denominator - fraction.numerator)
    usual = {"domain": (0, 9), "step": 1, "method": "independent", "random_state": source}
    drawn = Counter(
        int(private_quantiles(data, share, epsilon=1.0, **usual).values[0]) for _ in range(2000)
    )
    scores = [-distance(data, z, fraction) for z in range(10)]
    for factor in (1, 0.4, 2.5):
        law = law_of_permute_and_flip(scores, math.exp(-factor / score_range))
        assert (fit(drawn, law) > 1e-6) == (factor == 1)
