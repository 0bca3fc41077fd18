"""Many marginals together: the counts of each by itself, on every way to them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.tables import CountTable, ProjectedCounts, counts, passes, weighted_tables
from skdp.tables.passes import marginals_of, plan_blocks, split


def by_hand(codes, weights, axes, groups, shape):
    """The counts of one set, record by record."""
    sizes = [
        shape[axis] if group is None else int(group.max()) + 1
        for axis, group in zip(axes, groups, strict=True)
    ]
    table = np.zeros(sizes, dtype=np.int64)
    for row, weight in zip(codes, weights, strict=True):
        cell = [
            row[axis] if group is None else group[row[axis]]
            for axis, group in zip(axes, groups, strict=True)
        ]
        if min(cell, default=0) >= 0:
            table[tuple(cell)] += weight
    return table


@st.composite
def questions(draw):
    """A table, and sets of its attributes with groups that may drop codes."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([0, 1, 40]))
    codes = np.stack([rng.integers(0, size, n) for size in shape], axis=1).astype(np.int32)
    weights = rng.integers(1, draw(st.sampled_from([2, 9])), n)
    pools = []
    for size in shape:
        groups = [None]
        for low in (0, -1):
            group = rng.integers(low, max(size // 2, 1), size)
            group[rng.integers(size)] = 0
            groups.append(group)
        pools.append(groups)
    sets = []
    for _ in range(draw(st.integers(1, 12))):
        axes = rng.permutation(len(shape))[: rng.integers(0, len(shape) + 1)].tolist()
        sets.append((axes, [pools[axis][rng.integers(3)] for axis in axes]))
    return shape, codes, weights, sets


@given(questions(), st.sampled_from([2**24, 60]), st.sampled_from([7, 2**17]))
@settings(max_examples=40)
def test_many_sets_are_counted_as_each_by_hand(case, cells, rows):
    shape, codes, weights, sets = case
    table = CountTable.from_codes(codes, shape, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "PASS_CELLS", cells)
        patch.setattr("skdp._validation.BATCH_ROWS", rows)
        found = list(table.regrouped_many(sets))
    assert len(found) == len(sets)
    for counted, (axes, groups) in zip(found, sets, strict=True):
        np.testing.assert_array_equal(counted, by_hand(codes, weights, axes, groups, shape))
        assert counted.dtype == np.int64


@given(questions(), st.sampled_from([(2**24, 2**22), (50, 2**22), (0, 4)]), st.data())
@settings(max_examples=40)
def test_rows_too_many_to_hold_have_the_interface_of_a_table(case, limits, data):
    shape, codes, weights, sets = case
    table = CountTable.from_codes(codes, shape, weights)
    asked = ProjectedCounts(np.repeat(codes, weights, axis=0), shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    new = np.array(data.draw(st.permutations([*range(shape[axis]), -1, -1]))[: shape[axis]])
    new[0] = max(new[0], 0)
    once = [held.recode(axis, new) for held in (table, asked)]
    other = data.draw(st.integers(0, len(shape) - 1))
    halves = np.arange(once[0].shape[other]) // 2
    twice = [held.recode(other, halves) for held in once]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "_KEPT_CELLS", limits[0])
        patch.setattr(counts, "_WHOLE_CELLS", limits[1])
        for one, two in ((table, asked), once, twice):
            two.remember([axes for axes, _ in sets[::2]])
            assert one.shape == two.shape and one.n == two.n
            whole = [(axes, [None] * len(axes)) for axes, _ in sets]
            for mine, its in zip(one.regrouped_many(whole), two.regrouped_many(whole), strict=True):
                np.testing.assert_array_equal(mine, its)
            for axes, _ in sets:
                mine, its = one.project(axes), two.project(axes)
                np.testing.assert_array_equal(mine.codes, its.codes)
                np.testing.assert_array_equal(mine.counts, its.counts)
        for mine, its in zip(table.regrouped_many(sets), asked.regrouped_many(sets), strict=True):
            np.testing.assert_array_equal(mine, its)


@given(questions())
@settings(max_examples=30)
def test_parts_are_merged_to_the_table_of_all(case):
    shape, codes, weights, _ = case
    rows = np.repeat(codes, weights, axis=0)
    rows[::5, 0] = -1
    whole = CountTable.from_codes(rows, shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "MERGED_ROWS", 3)
        merged = CountTable.merged(np.array_split(rows, 7), shape)
    np.testing.assert_array_equal(merged.codes, whole.codes)
    np.testing.assert_array_equal(merged.counts, whole.counts)


def test_sums_over_the_cells_are_those_by_hand(monkeypatch):
    monkeypatch.setattr("skdp._validation.BATCH_ROWS", 64)
    rng = np.random.default_rng(1)
    shape, sets = (3, 4, 9), [(0,), (1, 0), ()]
    codes = np.stack([rng.integers(-1, size, 300) for size in shape], axis=1).astype(np.int16)
    kept = codes[(codes >= 0).all(axis=1)].astype(np.int64)
    for number in (lambda last: last * 10**9, lambda last: 8 - last):
        found = weighted_tables(codes, shape, sets, number)
        for table, axes in zip(found, sets, strict=True):
            weights, groups = number(kept[:, 2]), [None] * len(axes)
            np.testing.assert_array_equal(table, by_hand(kept, weights, axes, groups, shape))


def test_weights_beyond_floats_are_added_exactly():
    table = CountTable([[0, 0], [0, 1], [1, 1]], [2**53, 1, 2**60 + 1], (2, 2))
    (both, first) = table.regrouped_many([((0, 1), (None, None)), ((0,), (None,))])
    assert both.tolist() == [[2**53, 1], [0, 2**60 + 1]]
    assert first.tolist() == [2**53 + 1, 2**60 + 1]


def test_blocks_of_pairs_are_few_and_small():
    sets = [(pair, (None, None)) for pair in itertools.combinations(range(46), 2)]
    pairs = marginals_of([16] * 46, sets)
    blocks = plan_blocks(pairs, 2**16)
    assert sorted(number for block in blocks for number in block.members) == list(range(1035))
    assert max(block.cells for block in blocks) <= 2**16
    # 23 groups of two columns, and all pairs of these groups.
    assert len(blocks) == math.comb(23, 2)
    for pieces in (pairs, blocks):
        parts = list(split(pieces, 2**17))
        assert [each for part in parts for each in part] == pieces
        assert all(sum(each.cells for each in part) <= 2**17 for part in parts)


def test_wrong_sets_are_refused():
    table = CountTable([[0, 0]], [1], (2**14, 2**14))
    with pytest.raises(ValueError, match="distinct"):
        list(table.regrouped_many([((0, 0), (None, None))]))
    with pytest.raises(ValueError, match="more than 134217728"):
        list(table.regrouped_many([((0, 1), (None, None))]))
