"""PrivBayes: scores and their ranges, candidates, the released network, the synthesizer."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from densities import asked
from replays import spread
from scipy.optimize import linprog

import skdp
from skdp._random import noise_source
from skdp.algorithms.privbayes import (
    SCORES,
    Candidates,
    Entropy,
    Independence,
    MaximumJoint,
    conditional,
    largest_table,
    learn_network,
    privbayes,
    privbayes_parts,
)
from skdp.exceptions import DomainError
from skdp.release import Conditional, NetworkDensity, NetworkModel, network
from skdp.release.network import _choose, draw_network_given
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
    assert Independence(0)(np.array([[30, 0], [0, 30]])) == 60


def test_score_r_of_counts_whose_products_exceed_64_bits():
    counts = np.array([[3, 1], [1, 3]]) << 40
    assert Independence(0)(counts) == 4 << 40


def test_score_r_changes_by_at_most_four():
    changes = set()
    for counts in tables():
        before, exact = Independence(0)(counts), independence(counts)
        for more in with_one_more(counts):
            assert abs(independence(more) - exact) < 4
            changes.add(Independence(0)(more) - before)
    assert min(changes) >= -4 and max(changes) <= 4
    assert Independence.score_range == 8


def test_the_range_of_score_r_is_not_smaller():
    # Independent columns, or columns whose rare codes never met: these codes now meet.
    changes = []
    for counts in ([[10, 990], [990, 98_010]], [[0, 1000], [1000, 98_000]]):
        before = np.array(counts)
        after = before + np.array([[1, 0], [0, 0]])
        changes.append(float(independence(after) - independence(before)))
    assert changes[0] > 3.9 and changes[1] < -3.9


def parents_decide(counts, half):
    """The least distance if each combination goes to one code as a whole."""
    best = math.inf
    for choice in itertools.product((0, 1), repeat=len(counts)):
        a = sum(int(row[0]) for row, code in zip(counts, choice, strict=True) if code == 0)
        b = sum(int(row[1]) for row, code in zip(counts, choice, strict=True) if code == 1)
        best = min(best, max(half - a, 0) + max(half - b, 0))
    return best


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
            # Whole combinations are never closer, and by one of them at most further.
            whole = parents_decide(counts, total // 2)
            assert -found <= whole <= -found + counts.sum(axis=1).max()


def test_score_f_rises_by_at_most_one():
    changes = set()
    for counts in tables(columns=2):
        for total in (0, int(counts.sum()), int(counts.sum()) + 4):
            score = MaximumJoint(total)
            before = score(counts)
            changes |= {score(more) - before for more in with_one_more(counts)}
    assert changes == {0, 1}
    assert MaximumJoint.score_range == 1


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
        found = Entropy(n)(counts) / 2**20
        assert abs(found - mutual_information(counts)) <= 1e-4 + 3e-6 * n
    # Above the limit it is another function, with the same range.
    assert Entropy(10)(np.array([[500, 0], [0, 500]])) > 0


@pytest.mark.parametrize("total", [-3, 20, 100_000])
def test_score_mutual_information_keeps_its_range(total):
    score = Entropy(total)
    largest = score.score_range // 2
    for counts in tables():
        before = score(counts)
        for more in with_one_more(counts):
            assert -largest <= score(more) - before <= largest
    assert largest / 2**20 <= math.log(max(total, 2)) + 1


def test_the_range_of_mutual_information_is_reached():
    score = Entropy(2000)
    largest = score.score_range // 2
    # New codes of both: the change is the slope at n, the largest of the table.
    counts = np.array([[2000, 0], [0, 0]])
    more = counts + np.array([[0, 0], [0, 1]])
    assert score(more) - score(counts) == largest
    # Two frequent codes that never met: nearly as much the other way.
    counts = np.array([[0, 3000], [3000, 0]])
    more = counts + np.array([[1, 0], [0, 0]])
    assert score(more) - score(counts) == -largest


# -------------------------------------------------------------------------- budget and candidates


def test_parts_sum_to_epsilon_exactly():
    epsilon = Fraction(7, 10)
    parts = privbayes_parts(epsilon, (2, 3, 4), 0.3)
    assert parts["network"] == epsilon * Fraction(3, 10)
    assert sum(parts.values()) == epsilon
    assert list(privbayes_parts(epsilon, (2, 1, 4), 0.3)) == ["total", "tables"]


@pytest.mark.parametrize("beta", [0, 1, 0.98, -1, math.nan])
def test_beta_out_of_range_is_refused(beta):
    with pytest.raises(ValueError, match="beta"):
        privbayes_parts(Fraction(1), (2, 2, 2), beta)


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


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 12, 30, 1000])
def test_candidates_are_all_maximal_sets(limit):
    found = Candidates(SIZES, np.random.default_rng(0)).within(limit, 1000)
    assert len(found) == len(set(found))
    expected = all_maximal(SIZES, limit) if limit else {()}
    assert set(found) == (expected or {()})


@pytest.mark.parametrize("limit", [0, 2, 7, 12, 30, 1000])
def test_drawn_candidates_are_maximal_and_all_can_be_drawn(limit):
    candidates = Candidates(SIZES, np.random.default_rng(0))
    drawn = {candidates.draw(limit) for _ in range(400)}
    assert drawn == (all_maximal(SIZES, limit) if limit else {()})


def test_few_candidates_of_many_are_drawn():
    candidates = Candidates({axis: [2] for axis in range(300)}, np.random.default_rng(0))
    found = candidates.within(1 << 8, 20)
    assert len(set(found)) == 20
    assert all(len(parents) == 8 for parents in found)
    few = candidates.within(2, 20)
    assert len(set(few)) == 20 and all(len(parents) == 1 for parents in few)
    assert Candidates({}, np.random.default_rng(0)).within(5, 3) == [()]


def test_a_strong_dependence_is_found():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 4000)
    codes = np.stack([first, rng.integers(0, 2, 4000), first, rng.integers(0, 2, 4000)], axis=1)
    table = CountTable.from_codes(codes, (2, 2, 2, 2))
    for name in SCORES:
        nodes = learn_network(
            table,
            range(4),
            [[None]] * 4,
            SCORES[name](4000),
            Fraction(100),
            8,
            100,
            np.random.default_rng(1),
            noise_source(0),
        )
        parents = {node.axis: {axis for axis, _ in node.parents} for node in nodes}
        assert 0 in parents[2] or 2 in parents[0], name


@pytest.mark.parametrize("name", SCORES)
def test_selections_have_the_budget_and_range_of_their_scores(name, monkeypatch):
    calls = []

    def spy(scores, epsilon, score_range, *, random_state):
        calls.append((np.asarray(scores).tolist(), epsilon, score_range))
        return int(np.argmax(scores))

    monkeypatch.setattr("skdp.algorithms.privbayes.noisy_max", spy)
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


# ------------------------------------------------------------------------------ conditional tables


def test_conditionals_are_probabilities():
    rng = np.random.default_rng(0)
    for _ in range(50):
        noisy = rng.integers(-20, 40, (4, 3))
        for negatives in ("project", "zero"):
            rows = conditional(noisy, int(rng.integers(-5, 200)), negatives)
            assert (rows >= 0).all()
            np.testing.assert_allclose(rows.sum(axis=1), 1)


def test_negative_counts():
    noisy = np.array([[30, -10], [5, 15], [-3, -4]])
    zero = conditional(noisy, 40, "zero")
    np.testing.assert_allclose(zero, [[1, 0], [0.25, 0.75], [0.7, 0.3]])
    # The nearest table that sums to 40 takes 10 / 3 from each of the three positive counts.
    nearest = conditional(noisy, 40, "project")
    kept = np.array([80 / 3, 5 / 3, 35 / 3])
    np.testing.assert_allclose(nearest[0], [1, 0])
    np.testing.assert_allclose(nearest[1], kept[1:] / kept[1:].sum())
    np.testing.assert_allclose(nearest[2], [(kept[0] + kept[1]) / 40, kept[2] / 40])
    np.testing.assert_allclose(conditional(noisy, -3, "project"), 0.5)
    np.testing.assert_allclose(conditional(-noisy * 0 - 1, 10, "zero"), 0.5)


# ------------------------------------------------------------------------------ the released model


SHAPE = (3, 2, 4, 1, 2, 3)


def random_network(seed, *, zeros=False):
    """A network over SHAPE in a random order, some parents in groups."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(SHAPE)).tolist()
    nodes = []
    for place, axis in enumerate(order):
        parents = [p for p in order[:place] if rng.random() < 0.6]
        groups = [
            np.minimum(np.arange(SHAPE[p]) // 2, 1) if SHAPE[p] > 2 and rng.random() < 0.5 else None
            for p in parents
        ]
        sizes = [
            SHAPE[p] if group is None else int(group.max()) + 1
            for p, group in zip(parents, groups, strict=True)
        ]
        table = rng.dirichlet(np.ones(SHAPE[axis]), size=math.prod(sizes))
        if zeros and SHAPE[axis] > 1:
            table[rng.random(len(table)) < 0.4, 0] = 0.0
            table /= table.sum(axis=1, keepdims=True)
        nodes.append(Conditional(axis, tuple(parents), tuple(groups), table))
    return NetworkDensity(SHAPE, nodes)


def full_table(density):
    """Probability of every cell, by multiplying."""
    cells = np.indices(SHAPE).reshape(len(SHAPE), -1).T
    result = np.ones(len(cells))
    for axis, node in density.nodes.items():
        result *= node.table[density.rows_of(node, cells), cells[:, axis]]
    return result.reshape(SHAPE)


def margin(table, axes):
    others = tuple(axis for axis in range(len(SHAPE)) if axis not in axes)
    kept = sorted(axes)
    return table.sum(axis=others).transpose([kept.index(axis) for axis in axes])


@pytest.mark.parametrize("seed", range(6))
def test_elimination_agrees_with_brute_force(seed):
    density = random_network(seed)
    whole = full_table(density)
    rng = np.random.default_rng(seed)
    for n_axes in range(len(SHAPE) + 1):
        for axes in itertools.permutations(range(len(SHAPE)), n_axes):
            if rng.random() > 60 / math.perm(len(SHAPE), n_axes):
                continue
            np.testing.assert_allclose(density.joint(axes), margin(whole, axes), atol=1e-12)
    weights = {0: rng.normal(size=3), 4: rng.random(2), 5: rng.random(3)}
    product = whole * np.einsum("a,b,c->abc", *weights.values()).reshape(3, 1, 1, 1, 2, 3)
    np.testing.assert_allclose(density.joint((), weights), product.sum(), atol=1e-12)
    np.testing.assert_allclose(density.joint((2, 1), weights), margin(product, (2, 1)), atol=1e-12)


@pytest.mark.parametrize("cells", [network.MOST_CELLS, 100, 0])
def test_answers_exact_and_from_rows(cells, monkeypatch):
    model = NetworkModel(random_network(3), 1000.0)
    whole = full_table(model.density)
    monkeypatch.setattr(network, "MOST_CELLS", cells)
    rng = np.random.default_rng(0)
    queries = [{}]
    for n_axes in (1, 2, 3, 6):
        for axes in itertools.combinations(range(len(SHAPE)), n_axes):
            queries += [{axis: rng.integers(0, 2, SHAPE[axis]) * 1.0 for axis in axes}] * 2
    expected = []
    for query in queries:
        table = whole
        for axis, weights in query.items():
            table = table * weights.reshape([-1 if axis == k else 1 for k in range(len(SHAPE))])
        expected.append(1000 * table.sum())
    answers = model.answer(asked(queries))
    # Rows give shares with a standard deviation of at most 0.0012 of the records.
    tolerance = 1e-9 if cells > 10**6 else 6.0
    np.testing.assert_allclose(answers, expected, atol=tolerance)
    np.testing.assert_allclose(model.view((2, 0)), 1000 * margin(whole, (2, 0)), atol=tolerance)
    assert (model.answer(asked(queries)) == answers).all()


def test_many_queries_in_parts(monkeypatch):
    model = NetworkModel(random_network(1), 10.0)
    rng = np.random.default_rng(0)
    queries = [{axis: rng.random(SHAPE[axis]) for axis in (5, 0, 2)} for _ in range(50)]
    together = model.answer(asked(queries))
    monkeypatch.setattr("skdp.release.network._CHUNK", 20)
    np.testing.assert_allclose(model.answer(asked(queries)), together)
    monkeypatch.setattr("skdp.release.network._SHARED_CELLS", 1)
    np.testing.assert_allclose(model.answer(asked(queries)), together)


def distance(codes, law):
    """Total variation between drawn codes and a table of probabilities."""
    found = np.zeros(law.shape)
    np.add.at(found, tuple(codes.T), 1.0 / len(codes))
    return 0.5 * np.abs(found - law / law.sum()).sum()


def test_rows_follow_the_network():
    density = random_network(0, zeros=True)
    whole = full_table(density)
    codes = density.sample(30_000, np.random.default_rng(0))
    assert codes.dtype == np.int32
    assert distance(codes, whole) < 0.03
    assert (whole[tuple(codes.T)] > 0).all()


@pytest.mark.parametrize("exact", [True, False])
def test_rows_under_a_condition(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr(network, "MOST_CELLS", 0)
    model = NetworkModel(random_network(2, zeros=True), 100.0)
    weights = {2: np.array([0, 1, 0.2, 0]), 5: np.array([0.5, 0, 1])}
    law = full_table(model.density) * weights[2].reshape(-1, 1, 1, 1) * weights[5]
    codes = model.sample_codes(20_000, np.random.default_rng(0), weights)
    assert distance(codes, law) < 0.04
    assert (law[tuple(codes.T)] > 0).all()


@pytest.mark.parametrize("exact", [True, False])
def test_rows_given_some_codes(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr(network, "MOST_CELLS", 0)
    model = NetworkModel(random_network(4), 100.0)
    whole = full_table(model.density)
    known = np.full((24_000, len(SHAPE)), -1)
    known[::2, [0, 5]] = [2, 1]
    known[1::2, 4] = 1
    weights = {0: np.array([1.0, 0.0, 0.5])}
    codes = model.sample_given(known, np.random.default_rng(0), weights)
    assert (codes[known >= 0] == known[known >= 0]).all()
    # Weights of known codes do not count.
    given = np.zeros(SHAPE)
    given[2, ..., 1] = whole[2, ..., 1]
    assert distance(codes[::2], given) < 0.03
    given = np.zeros(SHAPE)
    given[:, :, :, :, 1] = (whole * weights[0].reshape(-1, 1, 1, 1, 1, 1))[:, :, :, :, 1]
    assert distance(codes[1::2], given) < 0.05
    nothing = model.sample_given(np.zeros((0, len(SHAPE)), dtype=int), np.random.default_rng(0))
    assert nothing.shape == (0, len(SHAPE))


@pytest.mark.parametrize("exact", [True, False])
def test_conditions_of_probability_zero(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr(network, "MOST_CELLS", 0)
    first = Conditional(0, (), (), np.array([[1.0, 0.0]]))
    second = Conditional(1, (0,), (None,), np.array([[1.0, 0.0], [0.5, 0.5]]))
    model = NetworkModel(NetworkDensity((2, 2), [first, second]), 5.0)
    with pytest.warns(UserWarning, match="probability zero"):
        codes = model.sample_codes(50, np.random.default_rng(0), {1: np.array([0.0, 1.0])})
    assert (codes[:, 1] == 1).all()
    known = np.array([[-1, 1], [-1, 0], [1, -1], [1, 1]])
    codes = model.sample_given(known, np.random.default_rng(0))
    assert (codes[known >= 0] == known[known >= 0]).all() and (codes >= 0).all()
    lost = draw_network_given(model.density, known, np.random.default_rng(0), {})[1]
    assert lost.tolist() == [True, False, True, True]


def test_many_known_codes_do_not_underflow():
    rng = np.random.default_rng(0)
    nodes = [Conditional(0, (), (), np.array([[0.5, 0.5]]))]
    nodes += [Conditional(i, (0,), (None,), rng.dirichlet(np.ones(2), 2)) for i in range(1, 1201)]
    density = NetworkDensity((2,) * 1201, nodes)
    known = rng.integers(0, 2, (20, 1201))
    logs = np.stack(
        [
            sum(np.log(density.nodes[i].table[k, known[:, i]]) for i in range(1, 1201))
            for k in (0, 1)
        ]
    )
    known[:, 0] = -1
    codes, lost = draw_network_given(density, known, np.random.default_rng(0), {})
    assert not lost.any()
    clear = np.abs(logs[0] - logs[1]) > 20
    assert clear.any()
    assert (codes[clear, 0] == logs.argmax(axis=0)[clear]).all()


def test_parts_of_rows_are_chosen_by_themselves(monkeypatch):
    monkeypatch.setattr("skdp.release.network._BATCH", 256)
    density = random_network(1)
    codes = np.full((50, len(SHAPE)), -1, dtype=np.int32)
    codes[:, 2] = 3
    above = density.ancestors([2])
    lost = _choose(density, codes, above, [2], {}, np.random.default_rng(0))
    assert not lost.any() and (codes[:, above] >= 0).all() and (codes[:, 2] == 3).all()


@pytest.mark.parametrize(
    "nodes",
    [
        [Conditional(0, (), (), np.ones((1, 2)) / 2)],
        [Conditional(0, (), (), np.ones((1, 2)) / 2)] * 2,
        [
            Conditional(0, (1,), (None,), np.ones((3, 2)) / 2),
            Conditional(1, (), (), np.ones((1, 3)) / 3),
        ],
        [
            Conditional(0, (), (), np.ones((1, 2)) / 2),
            Conditional(1, (0,), (None,), np.ones((3, 3)) / 3),
        ],
        [
            Conditional(0, (), (), np.ones((1, 2)) / 2),
            Conditional(1, (0,), (), np.ones((2, 3)) / 3),
        ],
        [
            Conditional(0, (), (), np.ones((1, 2)) / 2),
            Conditional(1, (0,), (np.array([0, 1, 1]),), np.ones((2, 3)) / 3),
        ],
    ],
)
def test_networks_that_do_not_fit_are_refused(nodes):
    with pytest.raises(ValueError):
        NetworkDensity((2, 3), nodes)


# --------------------------------------------------------------------------------- the synthesizer


DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(17, 89, bins=12, nullable=True),
        "work": skdp.Categorical(
            ["none", "part", "full", "own"],
            taxonomy=skdp.Taxonomy.from_tree(
                {"all": {"some": ["part", "full", "own"], "no": ["none"]}}
            ),
        ),
        "sex": skdp.Categorical(["F", "M"]),
        "income": skdp.Categorical(["low", "high"]),
        "country": skdp.Categorical(["here"]),
    }
)


def people(n_rows=3000):
    return spread(DOMAIN, n_rows)


@pytest.fixture(scope="module")
def release():
    synthesizer = skdp.PrivBayesSynthesizer(
        epsilon=8.0, domain=DOMAIN, encoding="hierarchical", theta=30, random_state=0
    )
    return synthesizer.fit(people())


def test_much_budget_gives_the_records():
    rows = people(2000)
    view = skdp.PrivBayesSynthesizer(epsilon=1e6, domain=DOMAIN, random_state=0).fit(rows)
    true = CountTable.from_codes(DOMAIN.encode(rows), DOMAIN.shape).dense()
    model = view.synopsis_.model
    # All columns fit into one table: the network is complete and loses nothing.
    np.testing.assert_allclose(model.view(range(5)), true, atol=0.5)
    assert view.count("age >= 53 and sex == 'F'") == pytest.approx(
        ((rows["age"] >= 53) & (rows["sex"] == "F")).sum(), abs=0.5
    )


def test_parents_at_coarser_levels(release):
    groups = [
        group
        for node in release.synopsis_.model.density.nodes.values()
        for group in node.groups
        if group is not None
    ]
    assert groups
    table = release.synopsis_.to_frame()
    assert list(table.columns) == ["column", "given", "value", "probability"]
    sums = table.groupby(["column", "given"])["probability"].sum()
    np.testing.assert_allclose(sums, 1)
    assert set(table["column"]) == set(DOMAIN.names)
    assert table["given"].str.contains(" ... ", regex=False).any()


def test_facts_of_a_release(release):
    edges = len(release.synopsis_.model.pairs)
    assert f"{edges} links" in repr(release.synopsis_)
    assert dict(release.privacy_loss_.parts) == {
        "skipped": Fraction(2, 25),
        "total": Fraction(99, 625),
        "network": Fraction(297, 125),
        "tables": Fraction(3366, 625),
    }
    with pytest.raises(ValueError, match="no error bars"):
        release.count("sex == 'F'", return_interval=True)
    assert abs(release.synopsis_.total - 3000) < 100
    assert release.synopsis_.total_std == pytest.approx(math.sqrt(2) / 0.1584, rel=0.01)


def test_a_release_is_saved(release, tmp_path):
    path = tmp_path / "network.skdp"
    release.synopsis_.save(path)
    again = skdp.Synopsis.load(path)
    queries = ["age < 40", "work in ['part', 'own'] and income == 'high'", None]
    assert (again.count(queries) == release.synopsis_.count(queries)).all()
    drawn = [each.sample(200, random_state=0) for each in (again, release.synopsis_)]
    pd.testing.assert_frame_equal(*drawn)
    pd.testing.assert_frame_equal(again.to_frame(), release.synopsis_.to_frame())


def change(*path):
    def edit(facts, arrays):
        *way, last, value = path
        for step in way:
            facts = facts[step]
        facts[last] = value

    return edit


def set_array(name, value):
    def edit(facts, arrays):
        arrays[name] = value(arrays[name])

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        change("total", math.inf),
        change("nodes", 1, "axis", 9),
        change("nodes", 1, "axis", -1),
        change("nodes", 2, "parents", [0, 0, 0]),
        change("nodes", 4, "grouped", []),
        change("nodes", []),
        set_array("tables", lambda a: a[:-1]),
        set_array("tables", lambda a: np.append(a, 1.0)),
        set_array("tables", lambda a: -a),
        set_array("tables", lambda a: a * np.nan),
        set_array("tables", lambda a: a * 0.5),
        set_array("groups", lambda a: a + 1),
        set_array("groups", lambda a: a[:-1]),
        set_array("groups", lambda a: np.append(a, 0)),
        set_array("groups", lambda a: a * 1.0),
        set_array("groups", lambda a: a - 1),
    ],
)
def test_damaged_files_are_refused(release, edit):
    facts, arrays = release.synopsis_.model.to_arrays()
    edit(facts, arrays)
    with pytest.raises((ValueError, IndexError, KeyError)):
        NetworkModel.from_arrays(DOMAIN.shape, facts, arrays)


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"score_function": "I"}, ValueError, "score_function"),
        ({"score_function": "F"}, DomainError, "'age' has 13"),
        ({"encoding": "binary"}, ValueError, "encoding"),
        ({"negatives": "keep"}, ValueError, "negatives"),
        ({"theta": 0}, ValueError, "theta"),
        ({"theta": "4"}, TypeError, "theta"),
        ({"theta": math.inf}, ValueError, "theta"),
        ({"beta": 1}, ValueError, "beta"),
        ({"max_candidates": 0}, ValueError, "max_candidates"),
        ({"max_cells": 2.5}, TypeError, "max_cells"),
        ({"epsilon": 1e-300}, ValueError, "'total'.*noise would not fit"),
        (
            {"epsilon": 1e-12, "beta": 0.001, "score_function": "mutual_information"},
            ValueError,
            "'network'.*noise would not fit.*larger beta",
        ),
        ({"epsilon": 2e-13, "beta": 0.979}, ValueError, "'tables'.*noise would not fit"),
        (
            {"epsilon": 1e-8, "score_function": "mutual_information"},
            ValueError,
            "'network'.*noise would not fit.*score_function='R'",
        ),
    ],
)
def test_parameters_are_checked_before_the_charge(parameters, error, text):
    ledger = skdp.PrivacyLedger(1)
    synthesizer = skdp.PrivBayesSynthesizer(domain=DOMAIN, ledger=ledger, **parameters)
    with pytest.raises(error, match=text):
        synthesizer.fit(people(20))
    assert ledger.spent == 0


@pytest.mark.parametrize("score", ["R", "mutual_information"])
def test_the_least_budget_is_enough(score):
    # Totals are noise of up to 2**50 records, and scores have the range of such a total.
    n, most_range = len(DOMAIN.names), SCORES[score].most_range
    least = Fraction(n * most_range, 2**49) / Fraction("0.3")
    domain = DOMAIN.without_structure()
    for seed in range(5):
        view = skdp.PrivBayesSynthesizer(
            epsilon=max(least, Fraction(51, 2**49)),
            domain=domain,
            score_function=score,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            view.fit(people(20))
        assert np.isfinite(view.count()) and len(view.sample(3, random_state=0)) == 3


def test_no_total_makes_the_range_of_a_score_larger():
    for score in SCORES.values():
        assert score(2**63 - 1).score_range <= score.most_range


def test_rules_are_refused_before_the_charge():
    ledger = skdp.PrivacyLedger(1)
    ruled = skdp.Domain(DOMAIN.items(), structure=[skdp.forbid("sex == 'F' and income == 'low'")])
    with pytest.raises(DomainError, match="PrivBayesSynthesizer"):
        skdp.PrivBayesSynthesizer(domain=ruled, ledger=ledger).fit(people(20))
    assert ledger.spent == 0


ODD = {
    "nobody": {"rows": 0},
    "one row": {"rows": 1},
    "one column": {"columns": ["age"]},
    "two columns": {"columns": ["age", "work"]},
    "constant columns": {"columns": ["country"]},
    "little budget": {"epsilon": 1e-4},
    "much budget": {"epsilon": 1e6},
    "one candidate": {"max_candidates": 1},
    "small tables": {"max_cells": 1},
    "no parents": {"theta": 1e9},
    "all parents": {"theta": 1e-9},
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("encoding", ["vanilla", "hierarchical"])
@pytest.mark.filterwarnings("ignore:.*released a total")
def test_odd_cases(name, encoding):
    odd = dict(ODD[name])
    rows = people(300).head(odd.pop("rows", 300))
    columns = odd.pop("columns", list(DOMAIN.names))
    view = skdp.PrivBayesSynthesizer(
        **{"epsilon": 1.0, **odd}, domain=DOMAIN.select(columns), encoding=encoding, random_state=1
    ).fit(rows[columns])
    assert list(view.sample(7).columns) == columns
    queries = [None, *("age < 30" for name in columns if name == "age")]
    assert np.isfinite(view.count(queries)).all()
    assert sum(view.privacy_loss_.parts.values()) == view.privacy_loss_.epsilon


def test_wide_tables():
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(40)]
    many = skdp.Categorical(list(range(100_000)))
    domain = skdp.Domain({**dict.fromkeys(names, skdp.Categorical([0, 1])), "many": many})
    rows = pd.DataFrame(rng.integers(0, 2, (500, 40)), columns=names).assign(many=5)
    view = skdp.PrivBayesSynthesizer(
        epsilon=1000, domain=domain, max_candidates=30, max_cells=256, random_state=0
    )
    view.fit(rows)
    assert view.count("many == 5") == pytest.approx(500, abs=60)
    assert view.sample(10).shape == (10, 41)
    assert np.isfinite(view.count("x0 == 1 and x20 == 1 and x39 == 0"))


def test_columns_that_are_copies_stay_copies():
    rows = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500, "c": [0, 0, 1, 1] * 250})
    domain = skdp.Domain(dict.fromkeys("abc", skdp.Categorical([0, 1])))
    for score in SCORES:
        view = skdp.PrivBayesSynthesizer(
            epsilon=20, domain=domain, score_function=score, random_state=0
        )
        drawn = view.fit(rows).sample(500, random_state=0)
        assert (drawn["a"] == drawn["b"]).mean() > 0.95


def test_labels_and_training_sets():
    rows = people(500)
    view = skdp.PrivBayesSynthesizer(epsilon=5, domain=DOMAIN, target="income", random_state=0)
    X, y, weight = view.fit(rows.drop(columns="income"), rows["income"]).make_training_set(50)
    assert "income" not in X and len(y) == 50 and weight is None
    assert set(y) <= {"low", "high"}


def test_queries_and_conditional_rows_of_a_release(release):
    old = release.sample(100, random_state=0, where="age >= 60 and sex == 'F'")
    assert (old["age"] >= 60).all() and (old["sex"] == "F").all()
    given = pd.DataFrame({"sex": ["F", "M"], "income": ["high", "low"]})
    beside = release.sample(given=given, random_state=0)
    assert beside["sex"].tolist() == ["F", "M"]
    groups = release.aggregate(["sex", "income"])
    assert groups["count"].sum() == pytest.approx(release.synopsis_.total)
    gaps = people(20).assign(sex=None)
    assert release.impute(gaps, random_state=0)["sex"].isin(["F", "M"]).all()


WIDE = skdp.Domain({f"x{i}": skdp.Numeric(0, 1, bins=16) for i in range(7)})


@pytest.mark.parametrize("domain", [DOMAIN, WIDE], ids=["all rows", "projections"])
def test_engines_release_the_same(domain):
    pl = pytest.importorskip("polars")
    rows = spread(domain, 400)
    synthesizer = skdp.PrivBayesSynthesizer(
        epsilon=20, domain=domain, encoding="hierarchical", max_candidates=8, random_state=0
    )
    whole = synthesizer.fit(rows).synopsis_.to_frame()
    lazy = synthesizer.fit(pl.from_pandas(rows).lazy()).synopsis_.to_frame()
    pd.testing.assert_frame_equal(whole, lazy)


def test_the_kernel_without_levels():
    table = CountTable.from_codes(np.zeros((50, 3), dtype=int), (2, 3, 2))
    parts = privbayes_parts(Fraction(100), table.shape, 0.3)
    model = privbayes(table, parts, random_state=0)
    assert model.answer(asked([{0: np.array([1.0, 0]), 2: np.array([1.0, 0])}]))[0] > 45


def test_rounded_rows_have_the_expected_counts():
    first = np.array([[0.5, 0.3, 0.2]])
    second = np.array([[0.25, 0.75], [0.5, 0.5], [0.9, 0.1]])
    density = NetworkDensity(
        (3, 2), [Conditional(0, (), (), first), Conditional(1, (0,), (None,), second)]
    )
    model = NetworkModel(density, 1000.0)
    for n in (0, 1, 7, 1000):
        codes = model.round_codes(n, np.random.default_rng(3))
        table = np.bincount(codes[:, 0] * 2 + codes[:, 1], minlength=6).reshape(3, 2)
        assert codes.shape == (n, 2)
        assert np.abs(table - n * first.T * second).max() < 2
