"""Kernels of PrivPfC, DiffGen and projected histograms.

Statistical tests have fixed seeds; the probability that a correct implementation fails one of
them, over the choice of its seed, is below 1e-6.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdp._random import NoiseSource
from skdp._validation import dyadic_floor
from skdp.algorithms import diffgen as diffgen_module
from skdp.algorithms import diffgen as projection_module
from skdp.algorithms import privpfc as scores_module
from skdp.algorithms import privpfc as selection_module
from skdp.algorithms.diffgen import (
    confusion_score,
    diffgen,
    diffgen_parts,
    projected_histogram,
    projection_parts,
)
from skdp.algorithms.privpfc import (
    UNIT,
    Line,
    Options,
    Quality,
    candidate_grids,
    cell_limit,
    grid_scores,
    measure_grid_counts,
    merged_groupings,
    merging_budget,
    neighbouring_grids,
    paper_grids,
    privpfc_parts,
    select_grid,
)
from skdp.domain import Categorical, Numeric, Taxonomy
from skdp.tables import CountTable

EPSILONS = [Fraction(1, 1000), Fraction(3, 100), Fraction(6, 10), Fraction(2), Fraction(30)]


def options_of(attribute, limit=64):
    first = [level.groups for family in attribute.groupings(limit) for level in family]
    families = attribute.groupings(limit, against_rest=True)
    return Options(tuple(level.groups for family in families for level in family), len(first))


def halves(depth):
    """Options into 2, 4, ... groups."""
    codes = np.arange(2**depth)
    return Options(tuple(codes >> (depth - level) for level in range(1, depth + 1)))


ATTRIBUTES = [
    Numeric(0, 8, bins=8),
    Categorical(["a", "b", "c"]),
    Categorical(
        list("pqrs"),
        taxonomy=Taxonomy.from_tree({"any": {"left": ["p", "q"], "right": ["r", "s"]}}),
    ),
]
OPTIONS = [options_of(attribute) for attribute in ATTRIBUTES]
SIZES = [options.sizes for options in OPTIONS]
FIRST = [options.first for options in OPTIONS]
ALL_GRIDS = np.array(list(product(*(range(len(sizes)) for sizes in SIZES))), dtype=np.int16)


def table_of(rows, n_classes):
    shape = (*(attribute.size for attribute in ATTRIBUTES), n_classes)
    return CountTable.from_codes(np.array(rows, dtype=np.int32).reshape(-1, 4), shape)


def records(n_classes):
    codes = [st.integers(0, attribute.size - 1) for attribute in ATTRIBUTES]
    return st.tuples(*codes, st.integers(0, n_classes - 1))


# ------------------------------------------------------------------------------------- quality


def exact_probability(epsilon, x):
    """P(the noise of the smaller of two counts does not overtake x), discrete Laplace."""
    r = math.exp(-float(dyadic_floor(epsilon)))
    z = np.arange(-1500, 1501)
    law = (1 - r) / (1 + r) * r ** np.abs(z)
    difference = np.convolve(law, law)
    middle = len(difference) // 2
    return difference[: middle + x].sum() + difference[middle + x] / 2


@pytest.mark.parametrize("epsilon", [Fraction(3, 100), Fraction(6, 10), Fraction(2)])
def test_table_is_the_expected_number_of_right_predictions(epsilon):
    table = Quality.for_counts(epsilon).table
    for x in (0, 1, 2, 5, 17):
        assert table[x] == pytest.approx(UNIT * x * exact_probability(epsilon, x), abs=0.51)


def test_paper_table_is_the_law_of_two_laplace_noises():
    epsilon = Fraction(3, 10)
    rng = np.random.default_rng(0)
    differences = rng.laplace(0, 1 / 0.3, 400_000) - rng.laplace(0, 1 / 0.3, 400_000)
    table = Quality.of_the_paper(epsilon).table
    for x in (1, 4, 10):
        # Five standard deviations.
        assert table[x] / UNIT / x == pytest.approx(np.mean(differences <= x), abs=0.004)


@pytest.mark.parametrize(
    ("epsilon", "widest"),
    [("0.1", 1.17775), ("0.3", 1.17672), ("0.6", 1.17598), ("1", 1.16794), ("2", 1.16078)],
)
def test_range_of_the_papers_quality(epsilon, widest):
    # Rounding to 1/4096 moves the largest and the least step by half a unit each way.
    found = Quality.of_the_paper(Fraction(epsilon)).score_range
    assert found == pytest.approx(UNIT * widest, abs=4)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_range_stays_below_the_bound_for_all_noise(epsilon):
    assert UNIT <= Quality.for_counts(epsilon).score_range <= UNIT * 1.1778174 + 4
    assert (
        Quality.of_the_paper(epsilon).score_range
        < 2.2 * UNIT
        == selection_module._PAPER_RANGE - 0.8
    )


def every_change(quality, n_classes, most):
    """Changes of a cell's score for every record added to every vector of counts."""
    counts = np.array(list(product(range(most + 1), repeat=n_classes)))
    before = quality.score(*scores_module.two_largest(counts))
    for label in range(n_classes):
        after = counts.copy()
        after[:, label] += 1
        yield from (quality.score(*scores_module.two_largest(after)) - before).tolist()


@pytest.mark.parametrize(("n_classes", "most"), [(1, 60), (2, 40), (3, 14), (4, 8)])
@pytest.mark.parametrize("epsilon", [Fraction(3, 10), Fraction(2), Fraction(600)])
@pytest.mark.parametrize("penalty", [0.0, 0.35, 0.7])
def test_every_change_of_a_cell_lies_in_the_range(epsilon, penalty, n_classes, most):
    quality = Quality.for_counts(epsilon, penalty)
    changes = list(every_change(quality, n_classes, most))
    assert max(changes + [0]) - min(changes + [0]) <= quality.score_range
    if n_classes == 2 and epsilon == 2 and not penalty:
        # Attained: a smaller number would be wrong.
        assert max(changes) - min(changes) == quality.score_range


@pytest.mark.parametrize(
    ("n_classes", "change"), [(2, 1.089), (3, 1.134), (10, 1.283), (30, 1.455), (100, 1.676)]
)
def test_exact_quality_of_many_classes_would_leave_the_range(n_classes, change):
    # Why the two largest counts are scored, here and in the dissertation, and not its equation
    # 3.1, for which it claims no sensitivity. Its bound for two classes is 1.1.
    rate = 0.2
    x = np.arange(-400, 401)
    law = np.tanh(rate / 2) * np.exp(-rate * np.abs(x))
    below = np.cumsum(law) - law / 2

    def exact(counts):
        # n records of one class and none of the others: the first class wins.
        shift = np.clip(x + counts[0] + 400, 0, 800)
        return counts[0] * np.sum(law * below[shift] ** (len(counts) - 1))

    rest = [0] * (n_classes - 1)
    most = max(exact([k + 1, *rest]) - exact([k, *rest]) for k in range(5, 40))
    assert most == pytest.approx(change, abs=0.01)
    assert (most > 1.1) == (n_classes > 2)


@pytest.mark.parametrize("penalty", [0.35, 0.7])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_changes_of_large_cells_lie_in_the_range(epsilon, penalty):
    quality = Quality.for_counts(epsilon, penalty)
    spread = math.sqrt(1 + quality.noise)
    extremes = []
    for n in np.unique(np.geomspace(1, 1e9, 60).astype(np.int64)):
        # Differences up to six standard deviations of the penalty, of the parity of n.
        x = np.linspace(1, 6 * math.sqrt(spread**2 + n), 2000).astype(np.int64)
        second = np.maximum((n - x) // 2, 0)
        first = second + x
        before = quality.score(first, second)
        for changed in ((first + 1, second), (first, second + 1)):
            change = quality.score(*changed) - before
            extremes += [change.min(), change.max()]
    found = max(extremes) - min(extremes)
    # And the interval is not much too long.
    assert (0.85 if penalty < 0.5 else 0.8) * quality.score_range < found <= quality.score_range


@pytest.mark.parametrize("share", [0.35, 0.7])
@pytest.mark.parametrize("n", [10, 100, 1000])
def test_penalty_takes_off_its_share_of_what_coin_flips_gain(n, share):
    first = np.arange(n // 2, n + 1)
    law = stats.binom.pmf(first, n, 0.5) * np.where(2 * first == n, 1, 2)
    plain, less = (Quality.for_counts(Fraction(600), penalty) for penalty in (0.0, share))
    scores = [each.score(first, n - first) / UNIT @ law for each in (plain, less)]
    gain = scores[0] - n / 2
    assert (scores[0] - scores[1]) / gain == pytest.approx(share, rel=0.1)


def test_scores_beyond_the_table_go_on_in_whole_steps():
    quality = Quality.for_counts(Fraction(2))
    length = len(quality.table)
    far = np.array([length, length + 1, 10**12])
    second = np.array([0, 0, 5])
    scores = quality.score(far, second)
    assert scores[1] - scores[0] == UNIT
    assert scores[2] - scores[1] == UNIT * (10**12 - length - 1)


@settings(max_examples=60)
@given(
    data=st.data(),
    n_classes=st.sampled_from([1, 2, 3]),
    epsilon=st.sampled_from([Fraction(3, 10), Fraction(2)]),
)
def test_one_record_moves_all_grids_within_the_range(data, n_classes, epsilon):
    rows = data.draw(st.lists(records(n_classes), max_size=25))
    added = data.draw(records(n_classes))
    # Several of a kind, so that the steep part of the table is reached.
    rows = rows * data.draw(st.integers(1, 4))
    for quality in (
        Quality.for_counts(epsilon),
        Quality.for_counts(epsilon, penalty=0.7),
        Quality.of_the_paper(epsilon),
    ):
        before = grid_scores(table_of(rows, n_classes), OPTIONS, [ALL_GRIDS], quality)
        after = grid_scores(table_of([*rows, added], n_classes), OPTIONS, [ALL_GRIDS], quality)
        change = after - before
        assert change.max() - change.min() <= quality.score_range


def brute_force(rows, grid, n_classes, quality):
    cells = {}
    for *codes, label in rows:
        key = tuple(
            int(OPTIONS[axis].groups[option - 1][codes[axis]])
            for axis, option in enumerate(grid)
            if option
        )
        cells.setdefault(key, [0] * n_classes)[label] += 1
    score = 0
    for counts in cells.values():
        largest, second, *_ = [*sorted(counts, reverse=True), 0, 0]
        score += int(quality.score(np.array([largest]), np.array([second]))[0])
    return score


@settings(max_examples=40)
@given(data=st.data(), n_classes=st.sampled_from([1, 2, 3, 5]))
def test_scores_are_exact(data, n_classes):
    rows = data.draw(st.lists(records(n_classes), max_size=40))
    quality = Quality.for_counts(Fraction(1, 2))
    found = grid_scores(table_of(rows, n_classes), OPTIONS, [ALL_GRIDS], quality)
    expected = [brute_force(rows, grid, n_classes, quality) for grid in ALL_GRIDS.tolist()]
    assert found.tolist() == expected


def test_scores_do_not_depend_on_how_they_are_counted(monkeypatch):
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, a.size, 3000) for a in ATTRIBUTES], axis=1)
    table = table_of(np.column_stack([rows, rng.integers(0, 2, 3000)]), 2)
    quality = Quality.for_counts(Fraction(1, 2))
    expected = grid_scores(table, OPTIONS, [ALL_GRIDS], quality)
    for cells, chunk in ((2**18, 1), (40, 2**20), (40, 1), (0, 2**20)):
        monkeypatch.setattr(scores_module, "_TABLE_CELLS", cells)
        monkeypatch.setattr(scores_module, "_CHUNK", chunk)
        for size in (1, 7, len(ALL_GRIDS)):
            families = np.split(ALL_GRIDS, range(size, len(ALL_GRIDS), size))
            assert np.array_equal(grid_scores(table, OPTIONS, families, quality), expected)


def test_coarser_options_are_those_whose_groups_are_unions():
    assert [each.tolist() for each in halves(3).coarser] == [[0], [1], [1, 2], [1, 2, 3]]
    # All three categories, then each against the others: these do not refine each other.
    assert [each.tolist() for each in OPTIONS[1].coarser] == [[0], [1, 2, 3, 4], [2], [3], [4]]
    assert OPTIONS[1].first.sizes.tolist() == [1, 3]


# ---------------------------------------------------------------------------------- candidates


def pooled(pool, *arguments, **keywords):
    """The grids of all families."""
    return np.concatenate(pool(*arguments, **keywords))


def test_pool_holds_every_grid_where_there_is_room():
    for options in (OPTIONS, FIRST):
        grids = pooled(candidate_grids, options, 10**6, 10_000, random_state=0)
        found = set(map(tuple, grids.tolist()))
        assert len(found) == len(grids)
        assert found == set(product(*(range(len(each.sizes)) for each in options)))


@settings(max_examples=40)
@given(
    widths=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    limit=st.integers(1, 300),
    most=st.integers(1, 400),
    seed=st.integers(0, 5),
)
def test_pools_are_distinct_small_enough_and_hold_the_top(widths, limit, most, seed):
    options = [halves(width - 1) for width in widths]
    sizes = [each.sizes for each in options]
    top = np.zeros(len(sizes), dtype=np.int16)
    pools = [
        pooled(candidate_grids, options, limit, most, random_state=seed),
        pooled(paper_grids, sizes, limit, most),
    ]
    start = pools[0][-1]
    pools.append(pooled(neighbouring_grids, start, options, limit, most, random_state=seed))
    for pool in pools:
        assert 1 <= len(pool) <= most
        assert len(np.unique(pool, axis=0)) == len(pool)
        cells = np.prod([s[pool[:, axis]] for axis, s in enumerate(sizes)], axis=0)
        assert (cells <= limit).all()
    for pool in pools[:2]:
        assert (pool == top).all(axis=1).any()
    changed = (pools[2] != pools[0][-1]).sum(axis=1)
    assert changed.max() <= 3
    assert (changed == 0).any()


def test_wide_tables_keep_every_column_and_every_pair():
    grids = pooled(candidate_grids, [halves(6)] * 46, 2000, 10_000, random_state=0)
    members = {tuple(np.flatnonzero(grid).tolist()) for grid in grids}
    assert {(i,) for i in range(46)} <= members
    assert {(i, j) for i in range(46) for j in range(i)} <= {m[::-1] for m in members}
    assert 9_500 <= len(grids) <= 10_000
    assert sum(len(each) == 3 for each in members) > 100


def test_pool_prefers_no_column():
    options = [halves(3)] * 12
    used = np.zeros(12)
    for seed in range(20):
        used += (pooled(candidate_grids, options, 500, 1000, random_state=seed) > 0).sum(axis=0)
    # Each has a twelfth of about 57,000 uses, up to 16 of them drawn together: a standard
    # deviation of at most 2.3%.
    assert used.max() / used.min() < 1.35
    first = (pooled(paper_grids, [halves(3).sizes] * 36, 500, 1000) > 0).sum(axis=0)
    assert first[0] > 3 * first[-1]


def test_two_hundred_columns():
    grids = pooled(candidate_grids, [halves(4)] * 200, 1000, 10_000, random_state=0)
    assert len(grids) == 10_000
    assert (grids > 0).any(axis=0).all()


def test_paper_order_is_level_by_level():
    grids = pooled(paper_grids, [np.array([1, 2, 4]), np.array([1, 3])], 8, 100)
    # <4, 3> has twelve cells.
    assert grids.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1]]


def test_cell_limit():
    assert cell_limit(36_000, Fraction(6, 10)) == 4320
    assert cell_limit(36_000, Fraction(6, 10), 2, "auto") == 21_600
    # The counts of all cells and labels are bounded.
    assert cell_limit(10**9, Fraction(1), 100, "auto") * 100 <= 2**17
    for selection in ("paper", "auto"):
        assert cell_limit(0, Fraction(1), 2, selection) == 1
        assert cell_limit(-50, Fraction(1), 2, selection) == 1


# ----------------------------------------------------------------------------------- selection


class Recorder:
    """Stands for a selection: notes what it was asked and takes the best."""

    def __init__(self):
        self.calls = []

    def __call__(self, scores, epsilon, score_range, *, random_state=None):
        self.calls.append((np.array(scores), epsilon, score_range))
        assert isinstance(random_state, NoiseSource)
        return int(np.argmax(scores))


@pytest.fixture
def recorder(monkeypatch):
    record = Recorder()
    monkeypatch.setattr(selection_module, "noisy_max", record)
    monkeypatch.setattr(selection_module, "exponential", record)
    monkeypatch.setattr(diffgen_module, "noisy_max", record)
    monkeypatch.setattr(projection_module, "noisy_max", record)
    return record


def informative(n_rows, seed=0):
    """The label is the first half of the numbers, and whether the category is "b"."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, a.size, n_rows) for a in ATTRIBUTES], axis=1)
    label = (codes[:, 0] < 4) ^ (codes[:, 1] == 1)
    return table_of(np.column_stack([codes, label]), 2)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize(("n_records", "stages"), [(3_000, 1), (30_000, 2), (300_000, 7)])
def test_selection_spends_its_part(recorder, n_records, stages, merged):
    parts = privpfc_parts(Fraction(1, 2))
    table = informative(n_records)
    grid = select_grid(table, OPTIONS, n_records, parts, merged=merged, random_state=0)
    assert sum(epsilon for _, epsilon, _ in recorder.calls) == parts["grid"]
    assert len(recorder.calls) == stages
    assert len({epsilon for _, epsilon, _ in recorder.calls}) == 1
    penalty = 0.7 if merged else 0.35 * (stages > 1)
    quality = Quality.for_counts(parts["counts"], penalty)
    assert {widest for *_, widest in recorder.calls} == {quality.score_range}
    assert OPTIONS[0].sizes[grid[0]] == 2
    assert OPTIONS[1].sizes[grid[1]] == 3
    assert grid[2] == 0


def test_paper_selection_spends_its_part_with_its_bound(recorder):
    parts = privpfc_parts(Fraction(1, 2))
    select_grid(informative(300_000), OPTIONS, 300_000, parts, selection="paper", random_state=0)
    ((_, epsilon, widest),) = recorder.calls
    assert epsilon == parts["grid"]
    assert widest == math.ceil(2.2 * UNIT)


def test_number_of_stages_depends_on_the_noisy_number_alone(recorder):
    parts = privpfc_parts(Fraction(1, 2))
    for table in (informative(0), informative(50_000)):
        recorder.calls.clear()
        select_grid(table, OPTIONS, 300_000, parts, random_state=0)
        assert len(recorder.calls) == 7


@pytest.mark.parametrize("n_records", [0, -70, 0.4])
def test_without_records_the_grid_of_one_cell_is_left(n_records):
    parts = privpfc_parts(Fraction(1))
    for selection in ("auto", "paper"):
        grid = select_grid(informative(0), OPTIONS, n_records, parts, selection=selection)
        assert not grid.any()


def test_selection_law_is_that_of_its_range():
    # Two candidates: the ratio of their odds reveals the scale, and a wrong one is rejected.
    table = table_of([[0, 0, 0, 0], [7, 0, 0, 1]] * 3, 2)
    options = [Options((np.array([0, 0, 0, 0, 1, 1, 1, 1]),))] + [Options(())] * 2
    parts = {"total": Fraction(1, 10), "grid": Fraction(2), "counts": Fraction(1)}
    quality = Quality.for_counts(parts["counts"])
    grids = np.array([[0, 0, 0], [1, 0, 0]])
    low, high = sorted(grid_scores(table, options, [grids], quality).tolist())
    finer_wins = grid_scores(table, options, [grids], quality)[1] == high
    n = 2500
    wins = sum(
        bool(select_grid(table, options, 20, parts, random_state=seed)[0]) for seed in range(n)
    )

    def chance(scale):
        # One-sided geometric noise on both, a = budget / range; the law of Lemma 0.
        behind = 1 - math.exp(-2 * scale / quality.score_range * (high - low)) / 2
        return behind if finer_wins else 1 - behind

    def p_value(scale):
        return stats.binomtest(wins, n, chance(scale)).pvalue

    assert p_value(1.0) > 1e-6
    assert p_value(0.7) < 1e-6
    assert p_value(1.4) < 1e-6


# ------------------------------------------------------------------------------------- merging

# Eight numbers, the missing cell, and twelve categories.
LINES = [
    Line(np.arange(9), 8, True),
    Line(np.arange(2), 2, True),
    Line(np.arange(12), 12, False),
]


def with_shares(n_rows, seed=0):
    """The label is likely from the fifth number on, and for every third category."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n_rows) for size in (9, 2, 12)], axis=1)
    chance = 0.1 + 0.4 * ((codes[:, 0] > 4) & (codes[:, 0] < 8)) + 0.4 * (codes[:, 2] % 3 == 0)
    label = rng.random(n_rows) < chance
    return CountTable.from_codes(np.column_stack([codes, label]), (9, 2, 12, 2))


@pytest.mark.parametrize("epsilon", [Fraction(1, 7), Fraction(30)])
def test_merging_counts_each_predictor_by_label_and_spends_its_part(monkeypatch, epsilon):
    seen = []

    def record(values, epsilon, *, random_state):
        assert isinstance(random_state, NoiseSource)
        seen.append((values.copy(), epsilon))
        return values

    monkeypatch.setattr(selection_module, "discrete_laplace", record)
    table = with_shares(2_000)
    merged_groupings(table, LINES, 64, epsilon, random_state=0)
    # Nothing is to be merged in the second.
    assert [values.tolist() for values, _ in seen] == [
        table.dense([axis, 3]).tolist() for axis in (0, 2)
    ]
    parts = [part for _, part in seen]
    assert sum(parts) == epsilon
    assert parts[1] / parts[0] == pytest.approx((12 / 8) ** (1 / 3), rel=0.01)


@pytest.mark.parametrize(("factor", "right"), [(1, True), (0.8, False), (1.25, False)])
def test_every_cell_that_is_merged_has_noise_of_its_scale(monkeypatch, factor, right):
    seen = []
    groupings = selection_module._groupings

    def record(noisy, *given):
        seen.append(noisy.ravel())
        return groupings(noisy, *given)

    monkeypatch.setattr(selection_module, "_groupings", record)
    empty = CountTable.from_codes(np.zeros((0, 2), dtype=np.int64), (64, 2))
    line = Line(np.arange(64), 64, True)
    for seed in range(60):
        merged_groupings(empty, [line], 64, Fraction(1, 4), random_state=seed)
    draws = np.concatenate(seen)
    # How often the noise of this rate is 7 or more away, and how often it is 0.
    rate = factor / 4
    far = math.exp(-7 * rate) * 2 / (1 + math.exp(-rate))
    p_value = stats.binomtest(int(np.sum(abs(draws) >= 7)), len(draws), far).pvalue
    none = math.tanh(rate / 2)
    p_zero = stats.binomtest(int(np.sum(draws == 0)), len(draws), none).pvalue
    assert (min(p_value, p_zero) > 1e-7) == right


def test_merging_finds_the_values_that_belong_together():
    numbers, nothing, categories = merged_groupings(
        with_shares(60_000), LINES, 64, Fraction(1), random_state=0
    )
    assert nothing == []
    # The missing cell stays alone.
    assert numbers[0].tolist() == [0] * 5 + [1] * 3 + [2]
    assert categories[0].tolist() == [0, 1, 1] * 4
    assert [int(groups.max()) for groups in numbers] == [2, 3, 4, 6]
    assert [int(groups.max()) + 1 for groups in categories] == [2, 3, 4, 6, 8, 11]
    for groupings in (numbers, categories):
        for coarse, fine in zip(groupings, groupings[1:], strict=False):
            assert len(set(zip(coarse, fine, strict=True))) == len(set(fine))


def test_merging_takes_more_than_two_labels():
    codes = np.repeat(np.arange(12), 900)
    table = CountTable.from_codes(np.column_stack([codes, codes % 3]), (12, 3))
    (groupings,) = merged_groupings(table, [LINES[2]], 64, Fraction(3), random_state=0)
    assert groupings[1].tolist() == [0, 1, 2] * 4


def test_merging_offers_no_more_groups_than_wanted():
    found = merged_groupings(with_shares(100), LINES, 4, Fraction(1), random_state=0)
    assert [max(int(groups.max()) + 1 for groups in each) for each in found if each] == [4, 4]


def test_what_noise_explains_is_merged():
    # Pure noise in 250 of 256 groups: the cut that matters is found nevertheless.
    codes = np.repeat([0, 1, 2, 200, 201, 202], 2_000)
    label = np.random.default_rng(0).random(len(codes)) < np.where(codes < 100, 0.2, 0.6)
    table = CountTable.from_codes(np.column_stack([codes, label]), (256, 2))
    line = Line(np.arange(256), 256, True)
    for seed in range(20):
        ((halves, *_),) = merged_groupings(table, [line], 64, Fraction(1, 4), random_state=seed)
        assert halves[2] == 0
        assert halves[200] == 1


def test_merging_is_paid_for_where_there_are_many_records():
    epsilon = Fraction(37, 100)
    assert merging_budget(LINES, 5_000 / 0.37 - 1, epsilon) == 0
    assert merging_budget(LINES, 5_000 / 0.37 + 1, epsilon) == epsilon * Fraction(2, 5)
    # Twelve predictors with something to merge.
    assert merging_budget(LINES * 6, 7_200 / 0.37 - 1, epsilon) == 0
    assert merging_budget(LINES * 6, 7_200 / 0.37 + 1, epsilon) == epsilon * Fraction(2, 5)
    assert merging_budget(LINES[1:2], 10**9, epsilon) == 0
    assert merging_budget(LINES, -(10**9), epsilon) == 0


# -------------------------------------------------------------------------------------- counts


def test_counts_are_exact_plus_noise_of_every_cell(monkeypatch):
    seen = []

    def record(values, epsilon, *, random_state):
        seen.append((values.copy(), epsilon))
        return values + 7

    monkeypatch.setattr(selection_module, "discrete_laplace", record)
    table = informative(500).project([0, 1, 3])
    groups = [OPTIONS[0].groups[0], OPTIONS[1].groups[-1]]
    counts = measure_grid_counts(table, groups, [2, 3], Fraction(1, 3))
    (exact, epsilon), *_ = seen
    assert epsilon == Fraction(1, 3)
    assert exact.shape == (2, 3, 2)
    expected = np.zeros((2, 3, 2), dtype=np.int64)
    for codes, count in zip(table.codes, table.counts, strict=True):
        expected[groups[0][codes[0]], groups[1][codes[1]], codes[2]] += count
    assert np.array_equal(exact, expected)
    assert np.array_equal(counts, expected + 7)


@pytest.mark.parametrize(("claimed", "right"), [(0.5, True), (0.4, False), (0.625, False)])
def test_counts_have_noise_of_the_right_scale(claimed, right):
    table = informative(0).project([0, 3])
    groups = [np.arange(8)]
    draws = np.concatenate(
        [
            measure_grid_counts(table, groups, [8], Fraction(1, 2), random_state=seed).ravel()
            for seed in range(1500)
        ]
    )
    r = math.exp(-claimed)
    share = np.array([(1 - r) / (1 + r) * r ** abs(k) for k in range(-8, 9)])
    observed = np.array([np.sum(draws == k) for k in range(-8, 9)])
    rest = len(draws) - observed.sum()
    p_value = stats.chisquare(
        [*observed, rest], len(draws) * np.append(share, 1 - share.sum())
    ).pvalue
    assert (p_value > 1e-6) == right


def test_empty_cells_are_counted():
    counts = measure_grid_counts(
        informative(0).project([0, 3]), [np.arange(8)], [8], Fraction(1, 10), random_state=1
    )
    assert counts.shape == (8, 2)
    assert np.count_nonzero(counts) > 8


# ------------------------------------------------------------------- DiffGen and PPH


@settings(max_examples=80)
@given(data=st.data(), n_classes=st.sampled_from([2, 3]))
def test_one_record_moves_the_diffgen_scores_by_0_or_1(data, n_classes):
    rows = data.draw(st.lists(records(n_classes), max_size=20))
    added = data.draw(records(n_classes))
    found = []
    for each in (rows, [*rows, added]):
        record = Recorder()
        with pytest.MonkeyPatch.context() as monkeypatch:
            # The same specialisations for both, so that the scores can be compared.
            def first(scores, epsilon, score_range, *, random_state=None, record=record):
                record(scores, epsilon, score_range, random_state=random_state)
                return len(record.calls) % len(scores)

            monkeypatch.setattr(diffgen_module, "noisy_max", first)
            diffgen(table_of(each, n_classes), ATTRIBUTES, Fraction(1), n_specializations=4)
        found.append(record.calls)
    for before, after in zip(*found, strict=True):
        change = after[0] - before[0]
        assert change.min() >= 0
        assert change.max() <= 1
        assert before[1:] == (Fraction(1, 4), 1)


@pytest.mark.parametrize("n_specializations", [1, 3, 50])
def test_diffgen_partitions_the_codes(n_specializations, recorder):
    table = informative(2000)
    axes, groups, labels = diffgen(
        table, ATTRIBUTES, Fraction(1), n_specializations=n_specializations, random_state=0
    )
    assert sum(epsilon for _, epsilon, _ in recorder.calls) <= 1
    for axis, of_code, texts in zip(axes, groups, labels, strict=True):
        assert len(of_code) == ATTRIBUTES[axis].size
        assert sorted(set(of_code.tolist())) == list(range(len(texts)))
        assert len(texts) > 1


def test_diffgen_finds_what_tells_labels_apart(recorder):
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, a.size, 2000) for a in ATTRIBUTES], axis=1)
    table = table_of(np.column_stack([codes, codes[:, 0] < 4]), 2)
    axes, (groups, *_), _ = diffgen(table, ATTRIBUTES, Fraction(1), n_specializations=1)
    assert axes == [0]
    assert groups.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@settings(max_examples=150)
@given(data=st.data(), n_classes=st.sampled_from([2, 3]))
def test_one_record_moves_the_confusion_score_within_one_unit(data, n_classes):
    rows = data.draw(st.lists(records(n_classes), max_size=20)) * data.draw(st.integers(1, 3))
    added = data.draw(records(n_classes))
    for axes in ([0, 3], [1, 3], [0, 1, 2, 3]):
        before = confusion_score(table_of(rows, n_classes).project(axes))
        after = confusion_score(table_of([*rows, added], n_classes).project(axes))
        assert -projection_module.UNIT <= after - before <= 0


def test_confusion_score_counts_pairs():
    codes = np.array([[0, 0], [0, 1], [1, 0]])
    table = CountTable.from_codes(codes, (2, 2), np.array([3, 1, 5]))
    # Three pairs of different labels among the four records of the first cell.
    assert confusion_score(table) == -math.floor(projection_module.UNIT * 3 / 4)
    assert confusion_score(CountTable.from_codes(np.zeros((0, 2), int), (2, 2))) == 0


def test_projection_selects_what_tells_labels_apart(recorder):
    table = informative(5000)
    axes, groups, _ = projected_histogram(table, ATTRIBUTES, 5000, Fraction(1), n_attributes=2)
    assert axes == [0, 1]
    assert [len(g) for g in groups] == [8, 3]
    assert [epsilon for _, epsilon, _ in recorder.calls] == [Fraction(1, 2)] * 2
    assert {widest for *_, widest in recorder.calls} == {projection_module.UNIT}


def test_shares_are_proportions():
    wanted = {name: Fraction(share, 100) for name, share in zip(ALL, (3, 10, 87), strict=True)}
    assert privpfc_parts(Fraction(1), (3, 10, 87)) == wanted
    assert privpfc_parts(Fraction(1), [0.03, 0.1, 0.87]) == wanted
    assert privpfc_parts(Fraction(1)) == privpfc_parts(Fraction(1), (3, 37, 60))


ALL = ("total", "grid", "counts")


@pytest.mark.parametrize(
    "parts",
    [
        privpfc_parts,
        lambda epsilon: privpfc_parts(epsilon, (3, 10, 87)),
        diffgen_parts,
        projection_parts,
    ],
)
def test_parts_sum_to_epsilon(parts):
    for epsilon in (Fraction(1, 10), Fraction(7, 3)):
        assert sum(parts(epsilon).values()) == epsilon
