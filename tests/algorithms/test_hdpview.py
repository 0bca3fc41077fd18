"""HDPView: scores by brute force, the loss of its tests, the exact law of its partitions."""

import dataclasses
import itertools
import math
from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from boxed import Recorder, as_table, corners, dense_tables, random_boxes, slices
from exact_laws import law_of_noisy_max, probability_of_split
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp._validation import as_epsilon, dyadic_floor
from skdp.algorithms import hdpview as bisection
from skdp.algorithms.boxes import Blocks, converge_loss
from skdp.algorithms.hdpview import hdpview, hdpview_parameters, hdpview_parts, published
from skdp.tables import CountTable

GRID = 4
CALIBRATIONS = ("tight", "paper")
TIGHT, PAPER = (bisection.CALIBRATIONS[name] for name in CALIBRATIONS)


def exact_error(x):
    """Aggregation error of some cells, a Fraction."""
    values = [int(value) for value in np.asarray(x).ravel()]
    mean = Fraction(sum(values), len(values))
    return sum(abs(value - mean) for value in values)


def to_steps(error):
    return math.floor(error * GRID + Fraction(1, 2))


@st.composite
def blocks_of_tables(draw):
    """A dense table, and some disjoint blocks of at least two cells in it, with their rows."""
    cells = draw(dense_tables())
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    found = random_boxes(cells.shape, min(draw(st.integers(1, 5)), cells.size), generator)
    boxes = zip(found.lower, found.upper, strict=True)
    return cells, as_table(cells), [box for box in boxes if np.prod(box[1] - box[0]) > 1]


def in_kernel_form(table, boxes):
    lower = np.array([box[0] for box in boxes], dtype=np.int64)
    upper = np.array([box[1] for box in boxes], dtype=np.int64)
    inside = ((table.codes[:, None] >= lower) & (table.codes[:, None] < upper)).all(axis=2)
    row, block = np.nonzero(inside)
    total = np.bincount(block, weights=table.counts[row], minlength=len(boxes)).astype(np.int64)
    return Blocks(lower, upper, total, row, block)


def all_cuts(lower, upper):
    for axis in range(len(lower)):
        for code in range(lower[axis] + 1, upper[axis]):
            left, right = list(slices(lower, upper)), list(slices(lower, upper))
            left[axis] = slice(lower[axis], code)
            right[axis] = slice(code, upper[axis])
            yield tuple(left), tuple(right)


def expected_score(score, cells, lower, upper, left, right):
    if score == "error":
        return -to_steps(exact_error(cells[left])) - to_steps(exact_error(cells[right]))
    share = Fraction(cells[left].size, cells[slices(lower, upper)].size)
    wrong = abs(int(cells[left].sum()) - share * int(cells[slices(lower, upper)].sum()))
    return math.floor(wrong * GRID)


# Scores and errors against brute force.


@over("score", ["error", "imbalance"])
@settings(max_examples=100)
@given(drawn=blocks_of_tables())
def test_cut_scores_are_exact(score, drawn):
    cells, table, boxes = drawn
    if not boxes:
        return
    score_of, _ = bisection.SCORES[score]
    found = score_of(in_kernel_form(table, boxes), table.codes.T, table.counts)
    expected = [
        expected_score(score, cells, lower, upper, left, right)
        for lower, upper in boxes
        for left, right in all_cuts(lower, upper)
    ]
    assert found.tolist() == expected


@over("score", ["error", "imbalance"])
@settings(max_examples=40)
@given(cells=dense_tables(largest=20))
def test_one_record_moves_the_scores_of_a_block_within_the_range(score, cells):
    if cells.size < 2:
        return
    box = [(np.zeros(cells.ndim, dtype=int), np.array(cells.shape))]
    score_of, range_of = bisection.SCORES[score]

    def scores(x):
        table = as_table(x)
        return score_of(in_kernel_form(table, box), table.codes.T, table.counts)

    allowed = range_of(np.array([cells.shape]))[0]
    before = scores(cells)
    for cell in np.ndindex(cells.shape):
        after = cells.copy()
        after[cell] += 1
        assert np.ptp(scores(after) - before) <= allowed


# A dense half, one half-full cell, an empty half: a record in the middle raises the remaining error
# of some cuts and lowers that of others by almost 2 each. And a record at the left of all cuts, at
# some of which the left part holds too much and at others too little.
EDGE = np.r_[np.full(400, 10), 5, np.zeros(400, dtype=int)]
SHELF = np.r_[20, np.zeros(9, dtype=int), np.full(791, 10)]


@over("score, cells, record, widest", [("error", EDGE, 400, 16), ("imbalance", SHELF, 0, 8)])
def test_score_ranges_are_attained(score, cells, record, widest):
    score_of, range_of = bisection.SCORES[score]
    box = [(np.array([0]), np.array([801]))]
    changes = []
    for x in (cells, cells + (np.arange(801) == record)):
        table = as_table(x)
        changes.append(score_of(in_kernel_form(table, box), table.codes.T, table.counts))
    assert range_of(np.array([[801]])).tolist() == [widest]
    assert np.ptp(changes[1] - changes[0]) >= widest - 1
    # Small blocks have less.
    assert range_of(np.array([[3]]))[0] < widest


def test_imbalance_of_many_records_and_codes_is_exact():
    counts = np.array([2**51 - 3, 2**51 + 5])
    table = CountTable(np.array([[7], [2**20]]), counts, (2**20 + 1,))
    blocks = in_kernel_form(table, [(np.array([0]), np.array([2**20 + 1]))])
    found = bisection._imbalance(blocks, table.codes.T, counts)
    for left in (1, 7, 8, 2**19, 2**20):
        in_left = int(counts[0]) if left > 7 else 0
        wrong = abs(in_left - Fraction(int(counts.sum()) * left, 2**20 + 1))
        assert found[left - 1] == math.floor(GRID * wrong)


# The loss of the converge tests.


def probability_of_stop(b, r):
    return probability_of_split(1 - b, r)


def largest_loss(rate, s, delta, floor, top):
    """Worst case over all pairs of error sequences below ``top``, by dynamic programming."""
    r = math.exp(-rate)

    def split(b):
        return probability_of_split(max(b, floor), r)

    def stop(b):
        return probability_of_stop(max(b, floor), r)

    stop_gain = {}
    split_gain = {}
    values = range(floor - s - delta, top + 1)
    for a in values:
        for b in range(a - s, a + s + 1):
            stop_gain[a, b] = math.log(stop(a) / stop(b))
            split_gain[a, b] = math.log(split(a) / split(b))

    # best[a, b]: the most that tests can lose from a block on whose errors are at most a and b.
    @cache
    def best(a, b):
        if a <= floor and b <= floor:
            return 0.0
        a, b = min(a, b + s), min(b, a + s)
        below = max(best(a - 1, b), best(a, b - 1))
        here = split_gain[a, b] + best(a - delta, b - delta)
        return max(below, here, stop_gain[a, b])

    for a in values:
        best(a, a)
    return best(top, top)


@over(
    "rate, s, delta, floor",
    [
        (0.5, 3, 3, -1),
        (0.4, 2, 5, -3),
        (0.9, 4, 4, 0),
        (0.3, 1, 6, -2),
        # The bias below the sensitivity and the floor above the threshold, as in the paper's
        # constants at a large epsilon.
        (0.8, 4, 1, 3),
        (0.6, 5, 2, -1),
        (1.2, 8, 3, 5),
    ],
)
def test_converge_loss_is_the_worst_case(rate, s, delta, floor):
    top = floor + s + math.ceil(30 / rate)
    worst = largest_loss(rate, s, delta, floor, top)
    bound = converge_loss(rate, s, delta, floor)
    assert worst <= bound
    # With the bias below the sensitivity the bound on the splits above a stop may be loose.
    assert bound <= worst * (1 + 1e-6 if delta >= s else 1.3)


@over(
    "calibration",
    [
        *CALIBRATIONS,
        dataclasses.replace(PAPER, alpha=Fraction(3), beta=Fraction(1, 5)),
        dataclasses.replace(TIGHT, converge=Fraction(1, 10), most_cuts=3),
    ],
)
@over("epsilon", [1e-6, 0.01, 0.1, 1, 3, 100])
def test_certified_loss_never_exceeds_its_part(calibration, epsilon):
    parts = hdpview_parts(as_epsilon(epsilon), (8, 8), calibration=calibration)
    public = hdpview_parameters(parts, (8, 8), calibration=calibration)
    assert sum(parts.values()) == as_epsilon(epsilon)
    assert Fraction(public.loss) <= parts["converge"]
    recomputed = converge_loss(
        float(public.rate), 8, public.delta_steps, public.floor_steps - public.theta_steps
    )
    assert public.loss == recomputed
    # What is drawn is the rate that was certified, not its dyadic floor.
    assert dyadic_floor(public.rate) == public.rate
    if calibration == "tight":
        assert public.delta >= 2
        assert bisection.split_at_floor(bisection.converge_test(parts["converge"], TIGHT)) <= 0.25
        assert public.loss >= 0.95 * float(parts["converge"])


# The whole law of the partition, by walking through all outcomes of the real code.


class Walk:
    """Stand-ins for the mechanisms that follow a script, and then take what comes first."""

    def __init__(self, script):
        self.script, self.taken, self.probability = script, [], 1.0

    def decide(self, probabilities):
        place = len(self.taken)
        choice = self.script[place] if place < len(self.script) else 0
        self.taken.append((choice, len(probabilities) - 1))
        self.probability *= probabilities[choice]
        return choice

    def above_threshold(self, values, epsilon, threshold, *, random_state):
        r = math.exp(-float(dyadic_floor(epsilon)))
        chances = [probability_of_split(int(value) - threshold, r) for value in values]
        stops = [probability_of_split(1 - int(value) + threshold, r) for value in values]
        return np.array(
            [self.decide(each) for each in zip(stops, chances, strict=True)], dtype=bool
        )

    def noisy_max(self, scores, epsilon, score_range, *, starts, random_state):
        r = math.exp(-float(dyadic_floor(epsilon)) / score_range)
        parts = np.split(scores, starts[1:])
        # Below zero, so that powers of r stay small.
        laws = [winner_law(tuple((part - part.max()).tolist()), r) for part in parts]
        return starts + [self.decide(list(law.values())) for law in laws]

    def below(self, bound):
        return np.array([self.decide([1 / n] * n) for n in bound.tolist()], dtype=np.int64)

    def following(self):
        """The script of the next branch; None after the last."""
        taken = list(self.taken)
        while taken and taken[-1][0] == taken[-1][1]:
            taken.pop()
        return [*(choice for choice, _ in taken[:-1]), taken[-1][0] + 1] if taken else None


winner_law = cache(law_of_noisy_max)


def partition_law(cells, epsilon_cut, public):
    """Probability of every released tree (boxes and cuts are the same thing in one run)."""
    table, law, script = as_table(cells), defaultdict(float), []
    with pytest.MonkeyPatch.context() as monkeypatch:
        while script is not None:
            walk = Walk(script)
            monkeypatch.setattr(bisection, "above_threshold", walk.above_threshold)
            monkeypatch.setattr(bisection, "noisy_max", walk.noisy_max)
            lower, upper, *_ = bisection.bisect(table, public, epsilon_cut, walk)
            law[tuple(map(tuple, lower)), tuple(map(tuple, upper))] += walk.probability
            script = walk.following()
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    return law


def worst_ratio(shape, tables, epsilon, calibration, speed_up=1, kappa=None):
    """Largest log ratio over neighbours of some tables, and the budget of the partition."""
    parts = hdpview_parts(as_epsilon(epsilon), shape, calibration=calibration)
    public = hdpview_parameters(parts, shape, calibration=calibration)
    public = dataclasses.replace(public, kappa=kappa or public.kappa, rate=public.rate * speed_up)

    @cache
    def law_of(cells):
        return partition_law(np.reshape(cells, shape), parts["cut"] / public.kappa, public)

    worst = 0.0
    for cells in (table.ravel().tolist() for table in tables):
        before = law_of(tuple(cells))
        for place in range(len(cells)):
            after = law_of((*cells[:place], cells[place] + 1, *cells[place + 1 :]))
            worst = max(worst, *(abs(math.log(after[tree] / before[tree])) for tree in after))
    return worst, public.loss + float(parts["cut"])


def small_tables(shape, most):
    for counts in itertools.product(range(most + 1), repeat=math.prod(shape)):
        if sum(counts) <= most:
            yield np.array(counts, dtype=np.int64).reshape(shape)


def test_the_papers_hyperparameters_are_those_of_its_formulas():
    shape = (64, 64)
    rule = published(alpha=2, beta=0.5, gamma=0.6, ratio=0.7)
    parts = hdpview_parts(Fraction(1), shape, calibration=rule)
    assert parts == {
        "converge": Fraction(42, 100),
        "cut": Fraction(28, 100),
        "counts": Fraction(3, 10),
    }
    public = hdpview_parameters(parts, shape, calibration=rule)
    # lambda = (3 alpha - 2) / (alpha - 1) * 2 / (gamma epsilon_r), delta = lambda ln(alpha), theta
    # = 1 / epsilon_p, kappa = beta log2(cells).
    assert public.lam == pytest.approx(4 * 2 / 0.42, rel=1e-3)
    assert public.delta == pytest.approx(public.lam * math.log(2), abs=1 / GRID)
    assert public.theta_steps / GRID == pytest.approx(1 / 0.3, abs=1 / GRID)
    assert public.kappa == 6
    assert published() == PAPER
    # At least one cut is private; 1.2 log2(2^35) is 42 and no less.
    assert hdpview_parameters(parts, (2,), calibration=rule).kappa == 1
    assert hdpview_parameters(parts, (2**35,), calibration=PAPER).kappa == 42


HYPER = [{"alpha": 1.1}, {"alpha": 50, "gamma": 0.3}, {"beta": 0.5, "ratio": 0.2}, {"gamma": 0.01}]


@over("calibration", [*CALIBRATIONS, *(published(**hyper) for hyper in HYPER)])
@over("epsilon", [0.5, 3, 10])
def test_partition_is_private_by_its_exact_law(calibration, epsilon):
    shapes = [((4,), 2), ((2, 2), 2), ((3,), 3)] if calibration in CALIBRATIONS else [((4,), 2)]
    for shape, most in shapes:
        worst, budget = worst_ratio(shape, small_tables(shape, most), epsilon, calibration)
        assert worst <= budget * (1 + 1e-9)


@over("calibration", CALIBRATIONS)
def test_law_test_is_not_vacuous(calibration):
    # Blocks far above the threshold, where one record matters most, reach much of the budget...
    tables = [np.array(x) for x in ([0, 3, 0], [0, 9, 0], [1, 12, 0], [0, 0, 30], [5, 5, 40])]
    worst, budget = worst_ratio((3,), tables, 1, calibration)
    assert 0.25 * budget < worst <= budget
    # ... and noise that is four times too small is caught.
    worst, budget = worst_ratio((3,), tables, 1, calibration, speed_up=4)
    assert worst > budget
    # The whole part is spent on the first kappa cuts; public ones beyond them lose nothing.
    worst, budget = worst_ratio((3,), tables, 2, calibration, kappa=1)
    assert worst <= budget


# Structure of the release.


class Quiet(Recorder):
    """The mechanisms without noise, and the first cut in place of a random one."""

    def above_threshold(self, values, epsilon, threshold, *, random_state):
        return values > threshold

    def noisy_max(self, scores, epsilon, score_range, *, starts, random_state):
        parts = np.split(scores, starts[1:])
        return np.add(starts, [np.argmax(part) for part in parts])

    def below(self, bound):
        return np.zeros_like(bound)


def recursion(cells, public):
    """The paper's recursion without noise: its boxes, counts, private cuts, and whether tested."""
    leaves = []

    def divide(lower, upper, depth):
        inside = cells[slices(lower, upper)]
        bias = (public.rule.root_level + depth) * public.delta_steps
        error = max(to_steps(exact_error(inside)) - bias, public.floor_steps)
        if inside.size == 1 or error <= public.theta_steps:
            cuts = min(depth, public.kappa)
            leaves.append((lower, upper, int(inside.sum()), cuts, inside.size > 1))
            return
        cuts = list(all_cuts(lower, upper))
        scores = [expected_score(public.rule.score, cells, lower, upper, *cut) for cut in cuts]
        left, right = cuts[np.argmax(scores) if depth < public.kappa else 0]
        divide(lower, tuple(each.stop for each in left), depth + 1)
        divide(tuple(each.start for each in right), upper, depth + 1)

    divide((0,) * cells.ndim, cells.shape, 0)
    return sorted(leaves)


@settings(max_examples=60)
@given(
    cells=dense_tables(),
    calibration=st.sampled_from([TIGHT, PAPER, dataclasses.replace(TIGHT, most_cuts=2)]),
    epsilon=st.sampled_from([Fraction(2), Fraction(30)]),
    at_once=st.sampled_from([3, 2**16]),
)
def test_without_noise_it_is_the_recursion(cells, calibration, epsilon, at_once):
    parts = hdpview_parts(epsilon, cells.shape, calibration=calibration)
    quiet = Quiet()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(bisection, "discrete_laplace", quiet)
        for name in ("above_threshold", "noisy_max"):
            monkeypatch.setattr(bisection, name, getattr(quiet, name))
        monkeypatch.setattr(bisection, "noise_source", lambda _: quiet)
        monkeypatch.setattr(bisection, "_CUTS_AT_ONCE", at_once)
        release = hdpview(as_table(cells), parts, calibration=calibration)
    public = hdpview_parameters(parts, cells.shape, calibration=calibration)
    expected, law = recursion(cells, public), release.intervals
    spent = [law.epsilons[place] for place in np.broadcast_to(law._index, len(release.counts))]
    found = zip(corners(release.boxes), release.counts, spent, law.spread.test_number, strict=True)
    for (ends, *box, number), (*leaf, cuts, tested) in zip(sorted(found), expected, strict=True):
        # Counts get what the cuts of their path left.
        each = parts["cut"] / public.kappa if public.rule.reuse and public.kappa else 0
        assert [*ends, *box] == [*leaf, parts["counts"] + (public.kappa - cuts) * each]
        assert (number > 0) == tested
    budgets = [epsilon for values, epsilon, _ in quiet.calls for _ in values]
    assert sorted(budgets) == sorted(spent)
    assert len({*law.spread.test_number} - {0}) == sum(tested for *_, tested in expected)


@over("calibration", CALIBRATIONS)
def test_leaf_error_bounds_hold(calibration):
    # Fails with probability at most .1 a run if exact; 20 runs with more than 8 failures have
    # probability below 1e-4 then. The bounds are far from loose enough to hide a missing delta.
    cells = np.random.default_rng(0).poisson(np.outer(np.arange(24), np.arange(24)) / 20)
    parts = hdpview_parts(Fraction(1), cells.shape, calibration=calibration)
    failures, closest = 0, []
    for seed in range(20):
        release = hdpview(as_table(cells), parts, calibration=calibration, random_state=seed)
        bounds = release.intervals.spread.bounds(0.1)
        errors = [float(exact_error(cells[slices(*ends)])) for ends in corners(release.boxes)]
        failures += bool((errors > bounds).any())
        closest.append(np.max(errors / np.maximum(bounds, 1)))
    assert failures <= 8
    assert np.mean(closest) > 0.3
