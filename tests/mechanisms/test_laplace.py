"""Discrete Laplace noise: thresholds to their last bit, the exact law, sums of real numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from boxed import Recorder
from exact_laws import ScriptedSource, exact_exp
from loops import over
from scipy import stats

from skdp._random import NoiseSource, noise_source
from skdp._validation import as_epsilon, dyadic_floor
from skdp.mechanisms import (
    bounded_sum,
    discrete_laplace,
    discrete_laplace_quantile,
    discrete_laplace_variance,
    geometric,
    geometric_variance,
    laplace,
    randomised_response,
    response_counts,
)
from skdp.mechanisms.laplace import max_norm_noise, max_norm_variance

# Every statistical test below has a fixed seed and this false-alarm rate for another one.
ALARM = 1e-6


def geometric_cdf(k, rate):
    return -np.expm1(-rate * (np.asarray(k, dtype=float) + 1))


def cells(cdf, rate, size):
    """Cut points of about 200 cells (lower, upper], single values if possible."""
    bound = math.ceil(20 / rate)
    grid = np.unique(np.linspace(-bound, bound, 20_001).astype(np.int64))
    mass = cdf(grid, rate)
    cuts = np.unique(np.searchsorted(mass, np.linspace(0.0005, 0.9995, 200)))
    # At least 100 draws are expected above the last.
    return grid[cuts[(1 - mass[cuts]) * size >= 100]]


def fit(drawn, cdf, rate):
    """p-value of a chi-square test of all cells of the exact law."""
    cuts = cells(cdf, rate, drawn.size)
    expected = np.diff(cdf(cuts, rate), prepend=0, append=1) * drawn.size
    seen = np.bincount(np.searchsorted(cuts, drawn), minlength=cuts.size + 1)
    return stats.chisquare(seen, expected * drawn.size / expected.sum()).pvalue


# ---------------------------------------------------------------------------------------------
# The tables are right to the last bit.


SIGNED_RATES = [Fraction(1, 2**50), Fraction(3, 10**9), *map(Fraction, (1, 100, 10**4))]
SIGNED_RATES += [Fraction(n, 2**20) for n in (10, 1048, 10485)] + [Fraction(1, 4), Fraction(22, 7)]


@over("rate", SIGNED_RATES)
@over("signed", [True, False])
@over("many", [True, False])
def test_every_threshold_is_right_to_its_64_bits(rate, signed, many):
    # Thresholds are sums of probabilities of the groups, from their definitions and another exp.
    sampler = laplace._Sampler(rate, signed, many)
    step = 2 ** sum(sampler.widths)
    tables = [(sampler.top, step)]
    for width, table in zip(sampler.widths, sampler.digits, strict=True):
        step //= 2**width
        tables.append((table, step))
    assert step == 1
    for table, step in tables:
        first = table.thresholds.first_words
        count = first.size if first.size < 60 else 20
        places = np.unique(np.linspace(0, first.size - 1, count).astype(int))
        for place in places:
            below, above = table.codes[place], table.codes[place + 1]
            mirrored = False
            if table.tails is None:
                # Draws fall: the cells below the threshold are the digits >= `below`.
                assert above == below - 1
                end = exact_exp(rate * step * len(table.codes))
                expected = (exact_exp(rate * step * int(below)) - end) / (1 - end)
            elif signed:
                assert above == below + 1
                r = exact_exp(rate)
                mirrored = below >= 0
                if mirrored:
                    expected = exact_exp(rate * step * int(above)) / (1 + r)
                else:
                    expected = exact_exp(rate * (1 + step * (-1 - int(below)))) / (1 + r)
            else:
                assert above == below - 1
                expected = exact_exp(rate * step * int(below))
            for bits, floor in (
                (64, int(first[place])),
                (200, table.thresholds.floor(int(place), 200)),
            ):
                # One minus an irrational number has the inverted bits.
                plain = math.floor(expected * 2**bits)
                assert floor == (2**bits - 1 - plain if mirrored else plain)
        if table.tails is not None:
            # The sentinel and the tails need these.
            assert np.abs(table.codes).max() < 2**15 - 1
            assert table.tails.sum() == (2 if signed else 1)
            assert not many or int(first[0]) >> 48 == 0
            assert not (many and signed) or int(first[-1]) >> 48 == 2**16 - 1


@over("rate", [Fraction(1), Fraction(10485, 2**20), Fraction(1048, 2**20)])
@over("signed", [True, False])
def test_buckets_decide_only_what_is_certain(rate, signed):
    sampler = laplace._Sampler(rate, signed, True)
    for table in (sampler.top, *sampler.digits):
        left = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
        right = left + np.uint64(2**48 - 1)
        decided = table.buckets != laplace._UNDECIDED
        # 0.03 to 3 percent ask for more bits: that is what makes it fast.
        assert 0.965 < decided.mean() < 1
        first = table.thresholds.first_words
        inside = np.searchsorted(first, right, side="right") - np.searchsorted(first, left)
        assert ((inside == 0) == decided).all()
        for words in (left[decided], right[decided]):
            assert (table.decide(ScriptedSource([]), words) == table.buckets[decided]).all()
        # Undecided buckets know their only threshold; at it, just above it, and at both ends.
        open_buckets = np.flatnonzero(~decided)
        near = np.concatenate(
            [first, first + np.uint64(1), left[open_buckets], right[open_buckets]]
        )
        buckets = (near >> np.uint64(48)).astype(np.uint16)
        assert (table._cells_in(buckets, near) == np.searchsorted(first, near)).all()


# ---------------------------------------------------------------------------------------------
# More bits, without end.


def test_refinement_of_a_batch_and_through_the_buckets():
    table = laplace._Sampler(Fraction(1), True, True).top
    index = table.codes.tolist().index(0)  # thresholds[index] is the upper end of code 0
    bits = table.thresholds.floor(index, 192)
    parts = [bits >> 64 * k & (2**64 - 1) for k in (2, 1, 0)]
    half, rest = parts[0] >> 48, parts[0] & (2**48 - 1)
    for change, code in ((-1, 0), (1, 1)):
        # Four half words: two of them hit the bucket of the threshold. The next 48 bits equal it
        # for one of the two, and so do 64 more.
        certain = 2**15
        first = half | certain << 16 | half << 32 | certain << 48
        script = [first, rest << 16, (2**48 - 1) << 16, parts[1], parts[2] + change]
        source = ScriptedSource(script)
        out = np.empty(4, dtype=np.int64)
        table.fill(source, out)
        middle = int(table.buckets[certain])
        assert out.tolist() == [code, middle, 1, middle]
        assert not source.script


def test_tail_starts_again():
    for signed in (True, False):
        table = laplace._Sampler(Fraction(1, 100), signed, True).top
        count = int(np.abs(table.codes).max()) - signed
        # Zeros are the lower tail of the signed law, the tail of the other. The second draw is
        # code 5 or -6: five more either way.
        for code in (5, -6) if signed else (5,):
            place = table.codes.tolist().index(code)
            word = int(table.thresholds.first_words[place]) - 1
            source = ScriptedSource([0, word])
            drawn = table.decide(source, source.words(1)).tolist()
            assert drawn == [-1 - (count + 5)] if signed else [count + 5]
            ones = 2**64 - 1
            source = ScriptedSource([ones, word] if signed else [0, word])
            assert table.decide(source, source.words(1)).tolist() == [count + 5]


def test_noise_stays_within_64_bits():
    # A source that always answers with the tail drives the noise to its limit.
    class Extreme(NoiseSource):
        word, calls = 0, 0

        def _take(self, count):
            self.calls += 1
            # After 900 rounds of tails, a draw that ends them.
            word = self.word if self.calls < 900 else 2**63
            return np.full(count, word, dtype=np.uint64)

    for word in (0, 2**64 - 1):
        table = laplace._top_table(Fraction(1, 100), 1, True, 12, 10**5)
        source = Extreme()
        source.word = word
        drawn = table.decide(source, source.words(2))
        assert np.abs(drawn).max() <= 10**5 + 1
        assert (drawn < 0).all() == (word == 0)
    largest = 2**63 - 1
    for value in (largest, -largest - 1):
        noisy = discrete_laplace(np.array([value, 0]), 1e-9, 10**5)
        assert abs(int(noisy[0])) <= 2**60
        assert (noisy[0] > 0) == (value > 0)
    assert int(discrete_laplace(np.array([2**64 - 1], dtype=np.uint64), 1.0)[0]) <= 2**60


# ---------------------------------------------------------------------------------------------
# The law, cell by cell; every test also rejects scales off by a fifth.


@over("epsilon", [1e-9, 1e-5, 1e-3, 0.01, 0.1, 1.0, 3.0])
@over("batch", [200_000, laplace._MANY - 1])  # large requests and small ones: tables, and searches
@over("signed", [True, False])
def test_noise_has_the_exact_law(epsilon, batch, signed):
    source, size = noise_source(20), 200_000

    def sample(eps):
        counts = [min(batch, size - k) for k in range(0, size, batch)]
        if signed:
            parts = [discrete_laplace(np.zeros(n, int), eps, random_state=source) for n in counts]
        else:
            parts = [geometric(n, eps, random_state=source) for n in counts]
        return np.concatenate(parts)

    cdf, rate = (
        stats.dlaplace.cdf if signed else geometric_cdf,
        float(dyadic_floor(as_epsilon(epsilon))),
    )
    drawn = sample(epsilon)
    assert signed or drawn.min() >= 0
    assert fit(drawn, cdf, rate) > ALARM
    for wrong in (epsilon * 0.8, epsilon / 0.8):
        assert fit(sample(wrong), cdf, rate) < ALARM


@over("signed", [True, False])
@over("size", [300_000, laplace._MANY - 1])
def test_digits_are_independent_of_each_other_and_of_the_sign(signed, size):
    # At this scale a wrong joint law of high part, low part and sign hides from wide cells.
    rate = Fraction(1, 3000)
    source = noise_source(22)
    sampler = laplace._Sampler(rate, signed, size >= laplace._MANY)
    drawn = np.concatenate([sampler.draw(source, size) for _ in range(max(1, 300_000 // size))])
    step = 2 ** sum(sampler.widths)
    sign, magnitude = drawn >> 63, drawn ^ (drawn >> 63)
    low, high = magnitude % step, magnitude // step
    table = np.zeros((2, 3, 8), dtype=int)
    high_cell = np.searchsorted([1, 3000 // step], high, side="right")
    np.add.at(table, (-sign, high_cell, low * 8 // step), 1)
    if not signed:
        table = table[:1]
    r = math.exp(-rate)
    of_sign = np.array([1 / (1 + r), r / (1 + r)]) if signed else np.ones(1)
    of_high = np.diff([0, 1 - r**step, 1 - r ** (step * (3000 // step)), 1])
    edges = r ** (np.arange(9) * step / 8)
    of_low = -np.diff(edges) / (1 - edges[-1])
    expected = of_sign[:, None, None] * of_high[:, None] * of_low * drawn.size
    assert stats.chisquare(table.ravel(), expected.ravel()).pvalue > ALARM


# ---------------------------------------------------------------------------------------------
# Which scale is drawn.


def test_noise_is_drawn_at_the_dyadic_floor():
    assert laplace.noise_rate(0.1, 1) == dyadic_floor(Fraction(1, 10)) < Fraction(1, 10)
    exact = dyadic_floor(Fraction(1, 3)) * 2 / 5
    assert laplace.noise_rate(Fraction(1, 3), Fraction(5, 2)) == exact
    assert laplace.noise_rate(np.float64(0.5), np.int64(2)) == Fraction(1, 4)


@over("epsilon", [100, 1e4, 10**6])
def test_large_epsilon_gives_no_noise(epsilon):
    for size in (10, 10_000):
        assert not discrete_laplace(np.zeros(size, int), epsilon).any()
        assert not geometric(size, epsilon).any()
    assert discrete_laplace_quantile(0.999999, epsilon) == 0
    # Weights by precision need a variance: it has a floor.
    assert geometric_variance(epsilon) == 1e-12
    assert discrete_laplace_variance(epsilon) == 2e-12
    assert discrete_laplace_quantile(1 - 1e-15, epsilon) == 0


def test_shapes_and_types():
    for values in ([], [[1, 2], [3, 4]], 5, np.arange(6, dtype=np.uint64), np.arange(10)[::-2]):
        given = np.array(values)
        noisy = discrete_laplace(values, 50.0)
        assert noisy.dtype == np.int64 and noisy.shape == np.shape(values)
        assert (noisy == given).all() and (given == values).all()
    assert geometric((2, 3), 1.0).shape == (2, 3) and geometric(np.int64(3), 1.0).dtype == np.int64


def test_equal_keys_of_two_types_share_no_sampler():
    # The float prints as a decimal just below itself, so its dyadic floor is one step lower.
    epsilon = 1027 / 2**30
    assert Fraction(epsilon) == epsilon and hash(Fraction(epsilon)) == hash(epsilon)
    assert dyadic_floor(as_epsilon(epsilon)) < dyadic_floor(as_epsilon(Fraction(epsilon)))

    def draw(value, size):
        return discrete_laplace(np.zeros(size, int), value, random_state=4).tolist()

    for size in (50, laplace._MANY):
        assert draw(epsilon, size) != draw(Fraction(epsilon), size)


# ---------------------------------------------------------------------------------------------
# Variance and quantile.


@over("epsilon", [1e-3, 0.01, 1.0, 7.5])
@over("sensitivity", [1, 3, Fraction(1, 2)])
def test_variance_is_that_of_the_law(epsilon, sensitivity):
    rate = float(dyadic_floor(as_epsilon(epsilon)) / sensitivity)
    found = discrete_laplace_variance(epsilon, sensitivity)
    assert found == pytest.approx(stats.dlaplace.var(rate), rel=1e-6)
    assert geometric_variance(epsilon, sensitivity) == found / 2


@over("epsilon", [1e-9, 1e-5, 0.01, 1.0, 7.5])
@over("p", [0, 0.1, 0.46, 0.5, 0.95, 0.999999, 1 - 2**-53, Fraction(10**30 - 1, 10**30)])
def test_quantile_is_exact(epsilon, p):
    k = discrete_laplace_quantile(p, epsilon)
    rate = dyadic_floor(as_epsilon(epsilon))
    r = exact_exp(rate)

    def within(k):
        return 1 - 2 * exact_exp(rate * (k + 1)) / (1 + r)

    level = p if isinstance(p, Fraction) else Fraction(repr(p))
    assert k >= 0 and within(k) >= level
    assert k == 0 or within(k - 1) < level


# ---------------------------------------------------------------------------------------------
# Sums of real numbers.


def test_bounded_sum_without_noise_is_the_clipped_sum():
    values = np.array([1.25, -3.5, 80.0, -80.0, np.inf, -np.inf, np.nan])
    assert bounded_sum(values, -10, 50, 1e9) == pytest.approx(
        1.25 - 3.5 + 50 - 10 + 50 - 10, abs=1e-3
    )
    # NaN counts as the allowed number nearest to zero.
    assert bounded_sum([np.nan, np.nan], 2, 5, 1e9) == 4.0
    assert bounded_sum([np.nan], -5, -2, 1e9) == -2.0
    assert bounded_sum([], 0, 1, 1e9) == 0.0
    assert bounded_sum([0.1, 0.2], 0, 1, 1e9, resolution=0.1) == 0.3


def test_bounded_sum_quantises_record_by_record(monkeypatch):
    # What reaches the noise is an exact integer sum, whatever the order of the records and however
    # far apart their magnitudes; the sensitivity is the largest code.
    monkeypatch.setattr(laplace, "discrete_laplace", recorder := Recorder())
    rng = np.random.default_rng(0)
    values = rng.normal(size=1000) * 10.0 ** rng.integers(-12, 4, size=1000)
    codes = np.rint(np.clip(values, -1000, 300) / 2**-11)
    exact = sum(int(code) for code in codes)
    for order in (slice(None), np.argsort(values), np.argsort(-np.abs(values))):
        bounded_sum(values[order], -1000, 300, 0.5)
        assert recorder.calls.pop() == (exact, 0.5, 1000 * 2**11)
    # Each record alone, added: no code exceeds the sensitivity, at any value or grid.
    extreme = [np.inf, -np.inf, np.nan, 1e308, -1e308, 0.0, 5e-324, 7.25, -3.1, 6.999999, 7.0]
    for low, high, grid in ((-3.1, 7.25, 0.7), (0, 1e-9, None), (-1e200, 1e200, None), (-7, -1, 2)):
        for value in extreme:
            bounded_sum([value], low, high, 1.0, resolution=grid)
            total, _, sensitivity = recorder.calls.pop()
            assert abs(total) <= sensitivity
            # Rounding the bounds to the grid adds half a unit at most.
            most = 2**21 if grid is None else max(abs(low), abs(high)) / grid + 0.5
            assert sensitivity <= most and (grid or sensitivity >= 2**20)


# --- randomised response


@over("n_codes, epsilon", [(2, 1), (5, 0.3), (3, 20)])
def test_reports_have_the_published_probabilities(n_codes, epsilon, monkeypatch):
    truth, other = laplace._response_weights(n_codes, epsilon)
    # Never more private than claimed, and hardly less accurate.
    assert math.log(truth / other) <= float(epsilon) <= math.log(truth / other) + 2e-3
    total = truth + (n_codes - 1) * other
    # The ends of what is drawn for each report.
    ends = [0, truth - 1, *(truth + i * other for i in range(n_codes - 1)), total - 1]
    source = type("Source", (), {"below": lambda self, bound, size: np.array(ends)})()
    monkeypatch.setattr(laplace, "noise_source", lambda _: source)
    reports = randomised_response(np.full(len(ends), n_codes - 1), n_codes, epsilon)
    assert reports.tolist() == [n_codes - 1] * 2 + [*range(n_codes - 1), n_codes - 2]
    monkeypatch.undo()
    codes = np.repeat(np.arange(n_codes), 4000)
    reports = randomised_response(codes, n_codes, epsilon, random_state=0)
    counts = response_counts(reports, n_codes, epsilon)
    share = truth / total
    std = math.sqrt(len(codes)) / (share - (1 - share) / (n_codes - 1))
    assert counts.sum() == pytest.approx(len(codes)) and np.abs(counts - 4000).max() < 3 * std


def test_noise_of_the_largest_change_has_its_law():
    # P(max |z| = m) is proportional to how many points have that norm, times r**m.
    def chi_square(epsilon):
        drawn = [max_norm_noise([0, 0], epsilon, 2, random_state=seed) for seed in range(2_000)]
        found = np.bincount(np.abs(drawn).max(axis=1), minlength=60)[:60]
        norm = np.arange(60)
        law = ((2 * norm + 1.0) ** 2 - np.maximum(2 * norm - 1.0, 0) ** 2) * np.exp(-norm / 2)
        expected = len(drawn) * law / law.sum()
        common = expected > 5
        return ((found - expected)[common] ** 2 / expected[common]).sum() / common.sum()

    assert chi_square(1) < 2.5 < min(chi_square(0.8), chi_square(1.25))
    many = np.array(
        [max_norm_noise(np.zeros(20, dtype=int), 1, 90, random_state=s) for s in range(200)]
    )
    assert np.mean(many**2.0) == pytest.approx(max_norm_variance(20, 1, 90), rel=0.1)
    # Where epsilon is large for so many values, some of it is not spent.
    assert max_norm_variance(20, 100, 1) == max_norm_variance(20, 50, 1)
