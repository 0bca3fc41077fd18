"""Sparse vectors and sparse counts: the exact law, its loss, and known noise."""

import copy
import itertools
import math
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from boxed import Recorder
from exact_laws import ScriptedSource, exact_exp, fit
from loops import over
from scipy import stats

import skdp
from skdp._random import noise_source
from skdp.mechanisms import (
    SparseVector,
    exponential_alpha,
    false_negative_rate,
    least_threshold,
    score_error_rate,
    sparse_counts,
    sparse_vector,
    sparse_vector_alpha,
    sparse_vector_top_k,
)

# Statistical tests have fixed seeds, and this false-alarm rate for another one.
ALARM = 1e-6

# ---------------------------------------------------------------------------------------------
# The law in closed form


def tail(r, level):
    """P(G >= level) of geometric noise."""
    return r ** np.maximum(level, 0)


def law(queries, cutoff, r_threshold, r_query, level, refreshing=False):
    """{outcome: probability}; above means query + nu >= level + rho. Sums over rho."""
    z = np.arange(0, int(45 / -math.log(r_threshold)) + 2)
    weights = (1 - r_threshold) * r_threshold**z
    found = {}
    for answers in itertools.product([False, True], repeat=len(queries)):
        ends = np.flatnonzero(answers)[cutoff - 1 : cutoff] + 1
        outcome = answers[: int(ends[0])] if len(ends) else answers
        probability, given = 1.0, np.ones(len(z))
        for query, positive in zip(queries, outcome, strict=False):
            above = tail(r_query, level + z - query)
            given = given * (above if positive else 1 - above)
            if positive and refreshing:
                probability *= float(given @ weights)
                given = np.ones(len(z))
        found[outcome] = probability * float(given @ weights)
    return found


def ratios_of(epsilon, cutoff, monotonic, variant="standard"):
    """Exact rates of the two noises, from the documented split."""
    width = (1 if monotonic else 2) * cutoff
    share = 1 / 2 if variant == "dwork-roth" else 1 / (1 + width ** (2 / 3))
    scale = cutoff if variant == "dwork-roth" else 1
    return math.exp(-share * epsilon / scale), math.exp(-(1 - share) * epsilon / width)


@over("monotonic, variant", [(False, "standard"), (True, "standard"), (True, "dwork-roth")])
def test_answers_follow_the_exact_law(monotonic, variant):
    queries, params = [3, 0, 5, 4], {"epsilon": 3, "threshold": 3, "cutoff": 2}
    params |= {"monotonic": monotonic, "variant": variant}
    params["random_state"] = noise_source(5)
    counts = Counter(
        tuple(SparseVector(**params).query_many(queries).tolist()) for _ in range(6000)
    )
    offset = SparseVector(**params)._offset

    def exact(by=1.0):
        rates = ratios_of(3 * by, 2, monotonic, variant)
        return law(queries, 2, *rates, 3 + offset, variant == "dwork-roth")

    assert sum(exact().values()) == pytest.approx(1)
    assert fit(counts, exact()) > ALARM > max(fit(counts, exact(by)) for by in (0.8, 1.25))


def worst_ratio(epsilon, cutoff, monotonic, noise_for_monotonic, level):
    """Largest ratio of probabilities over streams that one record can change so much."""
    rates = ratios_of(epsilon, cutoff, noise_for_monotonic)
    worst = 0
    z = np.arange(0, int(60 / -math.log(rates[0])) + 2)
    weights = (1 - rates[0]) * rates[0] ** z

    def probability(low, high, m):
        below = 1 - tail(rates[1], level + z - low)
        above = tail(rates[1], level + z - high)
        return float(weights @ (below**m * above**cutoff))

    pairs = [((0, 0), (1, 1)), ((0, 0), (1, 0)), ((0, 0), (0, 1))]
    if not monotonic:
        pairs.append(((0, 1), (1, 0)))
    for (one, two), m in itertools.product(pairs, (0, 1, 10, 400)):
        p, q = probability(*one, m), probability(*two, m)
        worst = max(worst, p / q, q / p)
    return worst


@over("cutoff", [1, 3])
@over("monotonic", [False, True])
def test_the_privacy_bound_holds_and_is_tight(cutoff, monotonic):
    found = [worst_ratio(1, cutoff, monotonic, monotonic, level) for level in (1, 5, 20, 60)]
    assert max(found) <= math.e * (1 + 1e-9)
    assert max(found) > math.exp(0.85)
    if not monotonic:
        # The narrower noise of monotonic queries is not enough for general ones.
        wrong = [worst_ratio(1, cutoff, False, True, level) for level in (1, 5, 20, 60)]
        assert max(wrong) > math.exp(1.2)


# ---------------------------------------------------------------------------------------------
# With noise that is known


@pytest.fixture
def script(monkeypatch):
    """Noise of a sparse vector from two lists, with a record of what was asked."""

    def install(threshold, queries):
        asked, pools = [], (iter(queries), iter(threshold))

        def draw(vector, size, noise):
            asked.append((size, *noise))
            pool = pools[noise is vector._threshold_noise]
            return np.array([next(pool) for _ in range(size)], dtype=np.int64)

        monkeypatch.setattr(SparseVector, "_draw", draw)
        return asked

    return install


@over("cutoff", [1, 2, 25, 300])
@over("monotonic", [False, True])
def test_split_and_scales(script, cutoff, monotonic):
    asked = script([0], [0])
    vector = SparseVector(0.3, 5, cutoff, sensitivity=2, monotonic=monotonic)
    vector.query(0)
    width = cutoff if monotonic else 2 * cutoff
    parts = vector.privacy_loss.parts
    assert sum(parts.values()) == Fraction(3, 10)
    assert list(parts) == ["threshold", "comparisons"]
    assert float(parts["comparisons"] / parts["threshold"]) == pytest.approx(width ** (2 / 3))
    assert asked == [(1, parts["threshold"], 2), (1, parts["comparisons"], 2 * width)]
    assert vector.query_scale == pytest.approx(2 * width / float(parts["comparisons"]), rel=1e-4)


def test_comparisons_gaps_and_cutoff(script):
    script([7], [10, 2, 0, 30, 0])
    asked = SparseVector(1, 100, 2, monotonic=True)
    at = 100 + 7 + asked._offset
    assert [asked.query(at + above) for above in (-10, -3, -1, 12)] == [True, False, False, True]
    assert asked.positives.tolist() == [0, 3] and asked.gaps.tolist() == [0, 42]
    assert asked.remaining == asked.answers.size == 0
    with pytest.raises(RuntimeError, match="All 2 positive answers"):
        asked.query(0)
    assert asked.n_queries == 4


def test_refreshing_draws_a_threshold_for_each_positive(script):
    asked = script([7, 50, 0, 3], [0] * 5)
    vector = SparseVector(1, 100, 3, variant="dwork-roth")
    at = 100 + vector._offset
    answers = vector.query_many([at + 7, at + 49, at + 50, at - 1, at])
    assert answers.tolist() == [True, False, True, False, True]
    assert vector.gaps.tolist() == [0, 0, 0]
    assert [size for size, *_ in asked] == [1, 5, 1, 1, 1]
    assert asked[0][1:] == (Fraction(1, 2), 3)
    assert asked[1][1:] == (Fraction(1, 2), 6)


@pytest.mark.parametrize("variant", ["standard", "dwork-roth"])
@pytest.mark.parametrize("pieces", [[200], [1] * 200, [3, 90, 107]])
def test_many_is_one_after_the_other(script, variant, pieces, monkeypatch):
    monkeypatch.setattr(sparse_vector, "_CHUNK", 64)
    rng = np.random.default_rng(3)
    values = rng.integers(0, 100, 200)
    thresholds = rng.integers(60, 120, 200)

    def run(lengths):
        script(range(0, 60, 3), np.random.default_rng(4).integers(0, 30, 400))
        vector = SparseVector(2, thresholds, 12, variant=variant)
        answers, begin = [], 0
        for length in lengths:
            if vector.remaining:
                answers += vector.query_many(values[begin : begin + length]).tolist()
            begin += length
        return answers, vector.positives.tolist(), vector.gaps.tolist(), vector.remaining

    # A chunk draws its noise at once, so only runs that stop at its end would differ.
    assert run(pieces) == run([1] * 200)
    assert 0 < sum(run(pieces)[0]) <= 12


def test_noisy_answers(monkeypatch):
    vector = SparseVector(3, 1000, 2, sensitivity=4, monotonic=True, answer_share=0.25)
    parts = vector.privacy_loss.parts
    assert parts["answers"] == Fraction(3, 4) and sum(parts.values()) == 3
    vector.query(-9000)
    assert vector.answers.size == 0
    vector.query(90_000)
    assert vector.answers.size == 1 and abs(vector.answers[0] - 90_000) < 400
    # Its noise, beside that of the comparisons.
    drawn = Recorder()
    monkeypatch.setattr(sparse_vector, "discrete_laplace", drawn)
    vector.query(9000)
    assert vector.answers[-1] == 9000 and drawn.calls[-1][1:] == (Fraction(3, 4), 8)


# ---------------------------------------------------------------------------------------------
# Answers and thresholds


def test_thresholds_in_order():
    for threshold in (2.5, Fraction(5, 2), [2.5], 3, np.int64(3), [3]):
        assert SparseVector(1, threshold, 1)._thresholds.ravel().tolist() == [3]
    vector = SparseVector(20, [10, 10_000, 10, -10_000], 4)
    assert vector.query_many([5_000, 5_000]).tolist() == [True, False]
    assert vector.query_many([-5_000, -5_000]).tolist() == [False, True]
    with pytest.raises(ValueError, match="4 thresholds were given"):
        vector.query(0)


@over("value", [10**30, 2**63, np.uint64(2**64 - 1), 2**62])
def test_huge_answers_are_clamped(value):
    assert SparseVector(1, 0, 1).query(value) is True
    if not isinstance(value, np.uint64):
        assert SparseVector(1, 0, 1).query(-value) is False
    # One value decides nothing about the type of a list.
    assert SparseVector(1, 0, 1).query_many([-(10**9), value]).tolist() == [False, True]
    assert SparseVector(1, 10**30, 1).query(0) is False
    assert SparseVector(1, -(10**30), 1).query(0) is True
    # Nor does a narrow type raise.
    assert SparseVector(1000, 0, 1).query(np.uint8(200)) is True


def test_expecting_many_queries_raises_low_thresholds_only():
    values = np.zeros(10_000, dtype=int)
    values[5_000] = 10**6

    def positives(threshold=20, **more):
        asked = SparseVector(0.5, threshold, 10, monotonic=True, random_state=1, **more)
        return np.flatnonzero(asked.query_many(values))

    assert 5_000 not in positives()
    guarded = positives(expected_queries=10_000)
    assert 5_000 in guarded and len(guarded) < 10
    assert positives(10**6 - 100, expected_queries=10_000).tolist() == [5_000]


# ---------------------------------------------------------------------------------------------
# Parameters, ledger, copies


@over("value", [1.0, np.nan, "1", None, True, Fraction(1, 2)])
def test_answers_of_the_wrong_type_are_refused_by_type(value):
    asked = SparseVector(1, 5, 2)
    with pytest.raises(TypeError, match="answers must be integers"):
        asked.query(value)
    assert asked.n_queries == 0 and asked.remaining == 2


def test_the_ledger_pays_when_it_is_made():
    ledger = skdp.PrivacyLedger(1)
    vector = SparseVector(0.75, 5, 2, ledger=ledger)
    assert ledger.spent == Fraction(3, 4)
    vector.query_many(np.zeros(50, dtype=int))
    assert ledger.spent == Fraction(3, 4)
    with pytest.raises(skdp.BudgetExceededError):
        SparseVector(0.5, 5, 2, ledger=ledger)


def test_copies_and_another_process_are_refused(monkeypatch):
    vector = SparseVector(1, 5, 2)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied or pickled"):
            attempt(vector)
    monkeypatch.setattr(sparse_vector, "process_mark", lambda: (1, 1))
    with pytest.raises(RuntimeError, match="process"):
        vector.query(0)


def test_threads_share_the_cutoff():
    vector = SparseVector(1, 0, 50)

    def ask(_):
        with pytest.raises(RuntimeError, match="All 50 positive"):
            while True:
                vector.query(10**6)

    with ThreadPoolExecutor(4) as threads:
        assert len(list(threads.map(ask, range(4)))) == 4
    assert vector.n_queries == 50 and vector.remaining == 0


# ---------------------------------------------------------------------------------------------
# Selection by passes


def test_passes_go_on_until_k_are_found():
    values = np.zeros(500, dtype=int)
    values[[3, 77, 400]] = 50_000
    high = sparse_vector_top_k(values, 3, 1.0, 20_000, monotonic=True, raise_by=3)
    assert sorted(high.tolist()) == [3, 77, 400]
    # In units of the scale of a query's noise.
    lift = SparseVector(1.0, 0, 3).query_scale
    raised = [
        sparse_vector_top_k(
            values, 3, 1.0, level, raise_by=by, max_passes=1, random_state=1
        ).tolist()
        for level, by in ((20_000, 5), (20_000 + 5 * lift, 0))
    ]
    assert raised[0] == raised[1]
    # Far below the threshold: only many passes get there.
    chosen = sparse_vector_top_k(np.zeros(50, dtype=int), 8, 1.0, 60, random_state=4)
    assert len(set(chosen.tolist())) == len(chosen) == 8
    assert not sparse_vector_top_k(np.zeros(50, dtype=int), 8, 1.0, 10**6, max_passes=2).size
    assert sorted(sparse_vector_top_k(np.full(5, 10**6), 8, 1.0, 0).tolist()) == [0, 1, 2, 3, 4]


# ------------------------------------------------------------------------------------------------
# How accurate selections are.


def test_published_bounds_hold():
    n, epsilon, beta, runs = 50, 1.0, 0.2, 400
    source = noise_source(0)
    alpha = sparse_vector_alpha(n, epsilon, beta)
    assert alpha == pytest.approx(8 * np.log(50 * 2 / 0.2))
    stream = np.array([0] * (n - 1) + [2 * int(alpha) + 2])
    wrong = 0
    for _ in range(runs):
        vector = SparseVector(epsilon, int(alpha) + 1, 1, random_state=source)
        wrong += vector.query_many(stream).tolist() != [False] * (n - 1) + [True]
    assert wrong <= beta * runs
    assert exponential_alpha(n, epsilon, beta) == pytest.approx(np.log(49 * 0.8 / 0.2))


def test_errors_by_hand():
    values = np.array([9, 1, 7, 7, 3, 5])
    assert false_negative_rate(values, [0, 3, 2], 3) == 0 == score_error_rate(values, [0, 3, 2], 3)
    assert false_negative_rate(values, [0, 3], 2) == 0
    assert false_negative_rate(values, [1, 4], 3) == 1 == false_negative_rate(values, [], 2)
    assert false_negative_rate(values, [0, 5, 1], 3) == pytest.approx(2 / 3)
    assert score_error_rate(values, [0, 5, 1], 3) == pytest.approx(1 - 15 / 23)
    # The mean of those that were selected, as in the dissertation, however few.
    assert score_error_rate(values, [3], 3) == pytest.approx(1 - 7 * 3 / 23)
    assert score_error_rate(values, [], 3) == 1


# ------------------------------------------------------------------------------------------------
# Sparse counts have the law of noise on every cell.


SQUARE = (2, 2)
HUGE = (10**6,) * 5
NOTHING = np.zeros((0, 5), dtype=int), np.zeros(0, dtype=int)


def reach(rate, k):
    """P(noise >= k) for k >= 1, as a fraction that is right to 2**-400."""
    return exact_exp(rate * k) / (1 + exact_exp(rate))


def binomial_cdf(n, p):
    terms = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    return list(itertools.accumulate(terms))


def outcomes(count, rate, threshold, levels=3):
    """P(a cell is not released), P(with each of the first few counts), and P(with more)."""
    r = math.exp(-rate)
    chance = [(1 - r) / (1 + r) * r ** abs(k - count) for k in range(-400, 400)]
    least, many = 400 + threshold, 400 + threshold + levels
    return [sum(chance[:least]), *chance[least:many], sum(chance[many:])]


# --- the number of false cells


@over(
    "n, rate, threshold",
    [
        (1, Fraction(1), 1),
        (4, Fraction(1, 10**6), 1),
        (30, Fraction(1, 3), 2),
        (60, Fraction(1, 7), 9),
        (25, Fraction(2), 60),
    ],
)
@over("bits", [64, 128])
def test_bounds_of_the_binomial_distribution_are_right_and_tight(n, rate, threshold, bits):
    exact = binomial_cdf(n, reach(rate, threshold))
    first, begins, ends = sparse_vector._distribution(n, rate, threshold, bits)
    begins.append(2**bits)
    for place, (low, high) in enumerate(zip(ends, begins[1:], strict=True)):
        assert low <= exact[first + place] * 2**bits <= high <= low + 2
    assert first == 0 or exact[first - 1] * 2**bits <= begins[0] <= 1
    assert ends[-1] >= 2**bits - 2


def test_an_undecided_word_draws_another():
    rate = Fraction(1)
    first, begins, ends = sparse_vector._distribution(40, rate, 1, 64)
    place = next(i for i in range(20) if begins[i + 1] > ends[i])
    for word, more, number in [
        (ends[place] - 1, [], first + place),
        (begins[place + 1], [], first + place + 1),
        (ends[place], [0], first + place),
        (ends[place], [2**64 - 1], first + place + 1),
    ]:
        source = ScriptedSource([word, *more])
        assert sparse_vector.draw_false_count(40, rate, 1, source) == number
        assert source.taken == 1 + len(more)


# --- which cells


@over("count", [0, 1, 3, 6])
def test_cells_are_drawn_without_replacement_and_uniformly(count):
    source = noise_source(11)
    every = list(itertools.combinations(itertools.product(range(2), range(3)), count))
    runs = 60 * len(every)
    drawn = (sparse_vector.draw_cells((2, 3), count, source).tolist() for _ in range(runs))
    seen = Counter(tuple(map(tuple, cells)) for cells in drawn)
    assert set(seen) <= set(every)
    assert len(every) == 1 or stats.chisquare([seen[each] for each in every]).pvalue > ALARM


# --- the law of the whole release


# Counts of the four cells, of which those of None are not given.
@over(
    "counts, threshold",
    [([None] * 4, 1), ([1, 2, None, 4], 3), ([0, None, 3, None], 2), ([0, 1, 2, 3], 1)],
)
def test_the_release_has_the_law_of_noise_on_every_cell(counts, threshold):
    given = [place for place in range(4) if counts[place] is not None]
    codes, known = np.array([divmod(place, 2) for place in given]), [counts[i] for i in given]
    source, seen = noise_source(5), Counter()
    for _ in range(5000):
        cells, noisy = sparse_counts(
            codes.reshape(-1, 2), known, SQUARE, 0.5, threshold, random_state=source
        )
        states = [0] * 4
        for (a, b), value in zip(cells.tolist(), noisy.tolist(), strict=True):
            states[2 * a + b] = min(value - threshold, 3) + 1
        seen[tuple(states)] += 1

    def exact(rate):
        each = [outcomes(count or 0, rate, threshold) for count in counts]
        states = itertools.product(range(5), repeat=4)
        return {key: math.prod(p[k] for p, k in zip(each, key, strict=True)) for key in states}

    assert fit(seen, exact(0.5)) > ALARM > max(fit(seen, exact(0.5 * by)) for by in (0.8, 1.25))


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
    cells, noisy = sparse_counts(rows, [500, 600, 700, 800], SQUARE, 1.0, 60, random_state=0)
    assert cells.tolist() == [[0, 0]] and abs(noisy - 500) < 50


# --- rows, counts and order


def test_extreme_counts_are_clamped():
    rows, counts = [[0, 0], [0, 1], [1, 1]], np.array([2**62, 2**63 - 1, -(2**63)])
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
