"""PrivBayes: scores and their ranges, candidates, conditional tables."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from loops import over
from scipy.optimize import linprog

from skdp.algorithms.privbayes import (
    SCORES,
    Candidates,
    Entropy,
    Independence,
    MaximumJoint,
    conditional,
    largest_table,
    privbayes,
    privbayes_parts,
)
from skdp.tables import CountTable

# ------------------------------------------------------------------------------------------ scores


def small_tables(shape, most):
    """All tables of counts up to ``most``."""
    for cells in itertools.product(range(most + 1), repeat=math.prod(shape)):
        yield np.array(cells, dtype=np.int64).reshape(shape)


def random_tables(shape, number, seed=0):
    """Tables of very different sizes and shapes, many of their cells empty."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        law = rng.dirichlet(np.full(math.prod(shape), rng.choice([0.05, 0.3, 2.0])))
        yield rng.multinomial(int(10 ** rng.uniform(0, 5)), law).reshape(shape)


def tables(columns=3):
    yield from small_tables((2, 2), 3)
    yield from small_tables((3, 2), 2)
    if columns > 2:
        yield from small_tables((2, 3), 1)
        yield from random_tables((4, 5), 30)
    yield from random_tables((8, 2), 30, seed=1)


def with_one_more(counts):
    """The table after each possible record was added."""
    for cell in np.ndindex(counts.shape):
        more = counts.copy()
        more[cell] += 1
        yield more


def independence(counts):
    """2 n R, in exact fractions."""
    n = int(counts.sum())
    rows, columns = counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
    return sum(
        abs(Fraction(int(counts[g, x])) - Fraction(rows[g] * columns[x], max(n, 1)))
        for g, x in np.ndindex(counts.shape)
    )


def test_score_r_is_the_distance_from_independence():
    for counts in tables():
        assert Independence(0)(counts) == math.floor(independence(counts))
    # Products exceed 64 bits.
    assert Independence(0)(np.array([[3, 1], [1, 3]]) << 40) == 4 << 40


def moves(score, columns=3):
    """Changes of a score by one record, in many tables."""
    each = ((counts, score(counts)) for counts in tables(columns))
    return {score(more) - before for counts, before in each for more in with_one_more(counts)}


def test_one_record_moves_scores_within_their_ranges():
    found = moves(Independence(0))
    assert min(found) >= -4 and max(found) <= 4 and Independence.score_range == 8
    assert set().union(*(moves(MaximumJoint(n), 2) for n in (0, 3, 40, 3000))) == {0, 1}
    assert MaximumJoint.score_range == 1
    for total in (-3, 20, 100_000):
        score = Entropy(total)
        largest = score.score_range // 2
        found = moves(score)
        assert -largest <= min(found) <= max(found) <= largest
        assert largest / 2**20 <= math.log(max(total, 2)) + 1


def test_the_range_of_score_r_is_not_smaller():
    # Independent columns, or columns whose rare codes never met: these codes now meet.
    changes = []
    for counts in ([[10, 990], [990, 98_010]], [[0, 1000], [1000, 98_000]]):
        before = np.array(counts)
        after = before + np.array([[1, 0], [0, 0]])
        changes.append(float(independence(after) - independence(before)))
    assert changes[0] > 3.9 and changes[1] < -3.9


def parents_decide_in_shares(counts, half):
    """The same if combinations may be split: a linear program."""
    n = len(counts)
    # Variables: share of code 0 for each combination, and the two shortfalls.
    cost = np.concatenate([np.zeros(n), [1, 1]])
    rows = np.zeros((2, n + 2))
    rows[0, :n], rows[0, n] = -counts[:, 0], -1
    rows[1, :n], rows[1, n + 1] = counts[:, 1], -1
    bounds = [(0, 1)] * n + [(0, None)] * 2
    limit = [-half, counts[:, 1].sum() - half]
    return linprog(cost, A_ub=rows, b_ub=limit, bounds=bounds).fun


def test_score_f_is_the_distance_from_a_maximum_joint_distribution():
    some = [*small_tables((2, 2), 2), *random_tables((4, 2), 25), *random_tables((8, 2), 8, 1)]
    for counts in some:
        for total in {int(counts.sum()), int(counts.sum()) + 3, 1}:
            found = MaximumJoint(total)(counts)
            exact = parents_decide_in_shares(counts, total // 2)
            assert found == -math.ceil(round(exact, 6))


def mutual_information(counts):
    """n times the mutual information in nats."""
    n, result = counts.sum(), 0.0
    for g, x in zip(*np.nonzero(counts), strict=True):
        c = counts[g, x]
        result += c * math.log(c * n / (counts[g].sum() * counts[:, x].sum()))
    return result


def test_score_mutual_information_is_close_to_it():
    for counts in random_tables((4, 5), 200):
        n = int(counts.sum())
        assert abs(Entropy(n)(counts) / 2**20 - mutual_information(counts)) <= 1e-4 + 3e-6 * n
    # Above the limit it is another function, with the same range.
    assert Entropy(10)(np.array([[500, 0], [0, 500]])) > 0


# -------------------------------------------------------------------------- budget and candidates


def test_a_network_of_two_columns_costs_nothing():
    parts = privbayes_parts(Fraction(7, 10), (2, 3, 4), 0.3)
    assert parts["network"] == Fraction(21, 100) and sum(parts.values()) == Fraction(7, 10)
    assert list(privbayes_parts(Fraction(1), (2, 1, 4), 0.3)) == ["total", "tables"]


def test_tables_are_theta_useful():
    # A mean count of theta times the scale n_tables / epsilon.
    limit = largest_table(48_000, Fraction(68, 100), 15, Fraction(4), 10**6)
    assert limit == 544
    assert Fraction(48_000, limit) >= 4 * Fraction(15) / Fraction(68, 100)
    assert Fraction(48_000, limit + 1) < 4 * Fraction(15) / Fraction(68, 100)
    assert largest_table(48_000, Fraction(1), 15, Fraction(4), 100) == 100
    assert largest_table(-7, Fraction(1), 15, Fraction(4), 100) == 0


def all_maximal(sizes, limit):
    """Maximal sets by brute force over all sets."""
    choices = [[None, *range(len(each))] for each in sizes.values()]

    def cells(levels):
        return math.prod(
            each[level]
            for each, level in zip(sizes.values(), levels, strict=True)
            if level is not None
        )

    def above(levels):
        for place, level in enumerate(levels):
            finer = range(len(choices[place]) - 1) if level is None else range(level)
            for other in finer:
                yield (*levels[:place], other, *levels[place + 1 :])

    fits = [each for each in itertools.product(*choices) if cells(each) <= limit]
    best = [each for each in fits if all(cells(other) > limit for other in above(each))]
    return {
        tuple((axis, level) for axis, level in zip(sizes, each, strict=True) if level is not None)
        for each in best
    }


SIZES = {0: [2], 2: [6, 3, 2], 3: [5], 7: [4, 2]}


@over("limit", [0, 1, 2, 7, 12, 30, 1000])
def test_candidates_are_all_maximal_sets(limit):
    found = Candidates(SIZES, np.random.default_rng(0)).within(limit, 1000)
    assert len(found) == len(set(found))
    # With at most two parents, a set is maximal that has two, or to which none can be added.
    few = Candidates(SIZES, np.random.default_rng(0), 2)
    pairs = {each for each in all_maximal(SIZES, limit) if len(each) <= 2} if limit else {()}
    assert pairs <= set(few.within(limit, 1000)) and len(few.draw(limit)) <= 2
    assert all(len(each) <= 2 for each in few.within(limit, 1000))
    expected = all_maximal(SIZES, limit) if limit else {()}
    assert set(found) == (expected or {()})


@over("limit", [0, 2, 7, 12, 30, 1000])
def test_drawn_candidates_are_maximal_and_all_can_be_drawn(limit):
    candidates = Candidates(SIZES, np.random.default_rng(0))
    drawn = {candidates.draw(limit) for _ in range(400)}
    assert drawn == (all_maximal(SIZES, limit) if limit else {()})


@over("name", SCORES)
def test_selections_have_the_budget_and_range_of_their_scores(name, monkeypatch):
    calls = []

    def spy(scores, epsilon, score_range, *, random_state):
        calls.append((np.asarray(scores).tolist(), epsilon, score_range))
        return int(np.argmax(scores))

    for way in ("noisy_max", "exponential"):
        monkeypatch.setattr(f"skdp.algorithms.privbayes.{way}", spy)
    rng = np.random.default_rng(0)
    table = CountTable.from_codes(rng.integers(0, 2, (500, 4)) ** 2, (2, 2, 2, 2))
    parts = privbayes_parts(Fraction(100), table.shape, 0.3)
    privbayes(table, parts, score_function=name, max_cells=4, random_state=0)
    # Three rounds: which of three, two and one columns, with which of one, two and three parents.
    assert [len(scores) for scores, _, _ in calls] == [3, 4, 3]
    assert sum(epsilon for _, epsilon, _ in calls) == parts["network"]
    ranges = {"R": 8, "F": 1, "mutual_information": Entropy(500).score_range}
    for scores, epsilon, score_range in calls:
        assert epsilon == 10
        assert score_range == pytest.approx(ranges[name], rel=0.02)
        assert all(isinstance(score, int) for score in scores)
    # The published sensitivities: 3 / n of R, 1 / n of F, and about log(n / 2) + 1 over n / 2 of I.
    calls.clear()
    privbayes(table, parts, score_function=name, calibration="paper", max_parents=1, random_state=0)
    published = {"R": 12, "F": 2, "mutual_information": 4 * (math.log(250) + 1) * 2**20}
    assert {round(reach / published[name], 2) for *_, reach in calls} == {1}
    assert all(reach >= ranges[name] for *_, reach in calls)


# ------------------------------------------------------------------------------ conditional tables


def test_negative_counts():
    noisy = np.array([[30, -10], [5, 15], [-3, -4]])
    np.testing.assert_allclose(conditional(noisy, 40, "zero"), [[1, 0], [0.25, 0.75], [0.7, 0.3]])
    # The nearest table that sums to 40 takes 10 / 3 from each of the three positive counts.
    nearest = conditional(noisy, 40, "project")
    kept = np.array([80 / 3, 5 / 3, 35 / 3])
    np.testing.assert_allclose(nearest[0], [1, 0])
    np.testing.assert_allclose(nearest[1], kept[1:] / kept[1:].sum())
    np.testing.assert_allclose(nearest[2], [(kept[0] + kept[1]) / 40, kept[2] / 40])
    np.testing.assert_allclose(conditional(noisy, -3, "project"), 0.5)
    np.testing.assert_allclose(conditional(-noisy * 0 - 1, 10, "zero"), 0.5)
