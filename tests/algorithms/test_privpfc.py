"""Kernels of PrivPfC, DiffGen and projected histograms.

Statistical tests have fixed seeds; the probability that a correct implementation fails one of
them, over the choice of its seed, is below 1e-6.
"""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from boxed import Recorder
from grids import ATTRIBUTES, Chooser, informative, records, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over
from scipy import stats

from skdp._validation import dyadic_floor
from skdp.algorithms import privpfc
from skdp.algorithms.groupings import groupings
from skdp.algorithms.privpfc import (
    UNIT,
    Line,
    Options,
    Quality,
    candidate_grids,
    cell_limit,
    grid_scores,
    merged_groupings,
    neighbouring_grids,
    paper_grids,
    privpfc_parts,
    select_grid,
)
from skdp.tables import CountTable

EPSILONS = [Fraction(1, 1000), Fraction(3, 100), Fraction(6, 10), Fraction(2), Fraction(30)]


def options_of(attribute, limit=64):
    first = [level.groups for family in groupings(attribute, limit) for level in family]
    families = groupings(attribute, limit, against_rest=True)
    return Options(tuple(level.groups for family in families for level in family), len(first))


def halves(depth):
    """Options into 2, 4, ... groups."""
    codes = np.arange(2**depth)
    return Options(tuple(codes >> (depth - level) for level in range(1, depth + 1)))


OPTIONS = [options_of(attribute) for attribute in ATTRIBUTES]
ALL_GRIDS = np.array(list(product(*(range(len(each.sizes)) for each in OPTIONS))), dtype=np.int16)


# ------------------------------------------------------------------------------------- quality


def exact_probability(epsilon, x):
    """P(the noise of the smaller of two counts does not overtake x), discrete Laplace."""
    r = math.exp(-float(dyadic_floor(epsilon)))
    z = np.arange(-1500, 1501)
    law = (1 - r) / (1 + r) * r ** np.abs(z)
    difference = np.convolve(law, law)
    middle = len(difference) // 2
    return difference[: middle + x].sum() + difference[middle + x] / 2


@over("epsilon", [Fraction(3, 100), Fraction(6, 10), Fraction(2)])
def test_table_is_the_expected_number_of_right_predictions(epsilon):
    table = Quality.for_counts(epsilon).table
    for x in (0, 1, 2, 5, 17):
        assert table[x] == pytest.approx(UNIT * x * exact_probability(epsilon, x), abs=0.51)


@over(
    "epsilon, widest",
    [("0.1", 1.17775), ("0.3", 1.17672), ("0.6", 1.17598), ("1", 1.16794), ("2", 1.16078)],
)
def test_range_of_the_papers_quality(epsilon, widest):
    # Rounding to 1/4096 moves the largest and the least step by half a unit each way.
    quality = Quality.of_the_paper(Fraction(epsilon))
    assert quality.score_range == pytest.approx(UNIT * widest, abs=4)
    # Equation 3.3: the largest change, up or down.
    rate, x = float(epsilon), np.arange(1, 2000)
    below = [1 - np.exp(-rate * n) / 2 * (1 + rate * n / 2) for n in (x - 1, x)]
    exact = np.abs((x - 1) * (below[1] - below[0]) + below[1]).max()
    assert quality.sensitivity == pytest.approx(UNIT * exact, abs=1)
    assert quality.score_range <= 2 * quality.sensitivity <= math.ceil(2.2 * UNIT)


def every_change(quality, n_classes, most):
    """Changes of a cell's score for every record added to every vector of counts."""
    counts = np.array(list(product(range(most + 1), repeat=n_classes)))
    before = quality.score(*privpfc.two_largest(counts))
    for label in range(n_classes):
        after = counts.copy()
        after[:, label] += 1
        yield from (quality.score(*privpfc.two_largest(after)) - before).tolist()


@over("n_classes, most", [(1, 60), (2, 40), (3, 14), (4, 8)])
@over("epsilon", [Fraction(3, 10), Fraction(2), Fraction(600)])
@over("penalty", [0.0, 0.35, 0.7])
def test_every_change_of_a_cell_lies_in_the_range(epsilon, penalty, n_classes, most):
    quality = Quality.for_counts(epsilon, penalty)
    changes = list(every_change(quality, n_classes, most))
    assert max(changes + [0]) - min(changes + [0]) <= quality.score_range
    if n_classes == 2 and epsilon == 2 and not penalty:
        # Attained: a smaller number would be wrong.
        assert max(changes) - min(changes) == quality.score_range


@over("penalty", [0.35, 0.7])
@over("epsilon", EPSILONS)
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


@over("share", [0.35, 0.7])
def test_penalty_takes_off_its_share_of_what_coin_flips_gain(share):
    first = np.arange(50, 101)
    law = stats.binom.pmf(first, 100, 0.5) * np.where(first == 50, 1, 2)
    plain, less = (Quality.for_counts(Fraction(600), penalty) for penalty in (0.0, share))
    scores = [each.score(first, 100 - first) / UNIT @ law for each in (plain, less)]
    assert (scores[0] - scores[1]) / (scores[0] - 50) == pytest.approx(share, rel=0.1)


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
    cells = defaultdict(lambda: [0] * max(n_classes, 2))
    for *codes, label in rows:
        key = tuple(
            int(OPTIONS[axis].groups[option - 1][codes[axis]])
            for axis, option in enumerate(grid)
            if option
        )
        cells[key][label] += 1
    ordered = np.sort(list(cells.values()) or [[0, 0]], axis=1)
    return int(quality.score(ordered[:, -1], ordered[:, -2]).sum())


@settings(max_examples=60)
@given(
    data=st.data(),
    n_classes=st.sampled_from([1, 2, 3, 5]),
    cells=st.sampled_from([2**18, 40, 0]),
    chunk=st.sampled_from([2**20, 1]),
    size=st.sampled_from([1, 7, len(ALL_GRIDS)]),
)
def test_scores_are_exact_however_they_are_counted(data, n_classes, cells, chunk, size):
    rows = data.draw(st.lists(records(n_classes), max_size=40))
    quality = Quality.for_counts(Fraction(1, 2))
    families = np.split(ALL_GRIDS, range(size, len(ALL_GRIDS), size))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(privpfc, "_TABLE_CELLS", cells)
        patched.setattr(privpfc, "_CHUNK", chunk)
        found = grid_scores(table_of(rows, n_classes), OPTIONS, families, quality)
    expected = [brute_force(rows, grid, n_classes, quality) for grid in ALL_GRIDS.tolist()]
    assert found.tolist() == expected


# ---------------------------------------------------------------------------------- candidates


def pooled(pool, *arguments, **keywords):
    """The grids of all families."""
    return np.concatenate(pool(*arguments, **keywords))


def test_pool_holds_every_grid_where_there_is_room():
    for options in (OPTIONS, [each.first for each in OPTIONS]):
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
    drawn = pooled(candidate_grids, options, limit, most, random_state=seed)
    near = pooled(neighbouring_grids, drawn[-1], options, limit, most, random_state=seed)
    top = np.zeros(len(sizes), dtype=np.int16)
    for pool, held in (
        (drawn, top), (pooled(paper_grids, sizes, limit, most), top), (near, drawn[-1])
    ):  # fmt: skip
        assert 1 <= len(pool) <= most
        assert len(np.unique(pool, axis=0)) == len(pool)
        cells = np.prod([s[pool[:, axis]] for axis, s in enumerate(sizes)], axis=0)
        assert (cells <= limit).all() and (pool == held).all(axis=1).any()
    assert (near != drawn[-1]).sum(axis=1).max() <= 3


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


@over("merged", [False, True])
@over("n_records, stages", [(3_000, 1), (30_000, 2), (300_000, 7)])
def test_selection_spends_its_part(monkeypatch, n_records, stages, merged):
    parts = privpfc_parts(Fraction(1, 2))
    quality = Quality.for_counts(parts["counts"], 0.7 if merged else 0.35 * (stages > 1))
    # The number of stages depends on the noisy number of records alone.
    for table in (informative(n_records), informative(0)):
        record = Chooser.installed(monkeypatch)
        grid = select_grid(table, OPTIONS, n_records, parts, merged=merged, random_state=0)
        spent = [(epsilon, widest) for _, epsilon, widest in record.calls]
        assert spent == [(parts["grid"] / stages, quality.score_range)] * stages
        if table.n:
            assert OPTIONS[0].sizes[grid[0]] == 2
            assert OPTIONS[1].sizes[grid[1]] == 3
            assert grid[2] == 0


@over("sensitivity", ["2.2", "exact"])
def test_the_papers_selection_spends_its_part_with_the_papers_bound(monkeypatch, sensitivity):
    parts, record = privpfc_parts(Fraction(1, 2)), Chooser.installed(monkeypatch)
    more = {"calibration": "paper", "random_state": 0}
    if sensitivity == "exact":
        more["sensitivity"] = sensitivity
        bound = 2 * Quality.of_the_paper(parts["counts"]).sensitivity
    else:
        bound = math.ceil(2.2 * UNIT)
    select_grid(informative(3_000), OPTIONS, 3_000, parts, **more)
    ((_, epsilon, widest),) = record.calls
    assert (epsilon, widest) == (parts["grid"], bound)


# ------------------------------------------------------------------------------------- merging

# Eight numbers, the missing cell, and twelve categories.
LINES = [Line(np.arange(9), 8, True), Line(np.arange(2), 2, True), Line(np.arange(12), 12, False)]


def with_shares(n_rows, seed=0):
    """The label is likely from the fifth number on, and for every third category."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n_rows) for size in (9, 2, 12)], axis=1)
    chance = 0.1 + 0.4 * ((codes[:, 0] > 4) & (codes[:, 0] < 8)) + 0.4 * (codes[:, 2] % 3 == 0)
    label = rng.random(n_rows) < chance
    return CountTable.from_codes(np.column_stack([codes, label]), (9, 2, 12, 2))


@over("epsilon", [Fraction(1, 7), Fraction(30)])
def test_merging_counts_each_predictor_by_label_and_spends_its_part(monkeypatch, epsilon):
    recorder, table = Recorder(), with_shares(2_000)
    monkeypatch.setattr(privpfc, "discrete_laplace", recorder)
    merged_groupings(table, LINES, 64, epsilon, random_state=0)
    # Nothing is to be merged in the second.
    for (values, _, sensitivity), axis in zip(recorder.calls, (0, 2), strict=True):
        assert values.tolist() == table.dense([axis, 3]).tolist() and sensitivity == 1
    parts = [part for _, part, _ in recorder.calls]
    assert sum(parts) == epsilon
    assert parts[1] / parts[0] == pytest.approx((12 / 8) ** (1 / 3), rel=0.01)


def test_merging_finds_the_values_that_belong_together():
    numbers, nothing, categories = merged_groupings(
        with_shares(60_000), LINES, 64, Fraction(1), random_state=0
    )
    assert nothing == []
    # The missing cell stays alone.
    assert numbers[0].tolist() == [0] * 5 + [1] * 3 + [2]
    assert categories[0].tolist() == [0, 1, 1] * 4
    assert [int(groups.max()) + 1 for groups in categories] == [2, 3, 4, 6, 8, 11]
    for coarse, fine in pairwise(categories):
        assert len(set(zip(coarse, fine, strict=True))) == len(set(fine))
    # More than two labels.
    codes = np.repeat(np.arange(12), 900)
    table = CountTable.from_codes(np.column_stack([codes, codes % 3]), (12, 3))
    (found,) = merged_groupings(table, [LINES[2]], 64, Fraction(3), random_state=0)
    assert found[1].tolist() == [0, 1, 2] * 4


# -------------------------------------------------------------------------------------- counts


def test_shares_are_proportions():
    wanted = {"total": Fraction(3, 100), "grid": Fraction(1, 10), "counts": Fraction(87, 100)}
    assert privpfc_parts(Fraction(1), (3, 10, 87)) == wanted
    assert privpfc_parts(Fraction(1), [0.03, 0.1, 0.87]) == wanted
    assert privpfc_parts(Fraction(1)) == privpfc_parts(Fraction(1), (3, 37, 60))
