import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp.tables import CountTable, ProjectedCounts, counts, weighted_tables
from skdp.tables.counts import marginals_of, plan_blocks, split

# Sizes whose product fits one key, fills several keys, and whose every column fills a key.
SIZES = st.one_of(st.integers(1, 4), st.integers(2, 10**4), st.integers(2**30, 2**31 - 1))


@st.composite
def tables(draw):
    sizes = draw(st.lists(SIZES, min_size=1, max_size=9))
    # Few values per column, so that rows repeat.
    pools = [[0, size - 1, size // 2, -1 if draw(st.booleans()) else 0] for size in sizes]
    rows = draw(st.lists(st.tuples(*[st.sampled_from(pool) for pool in pools]), max_size=30))
    return tuple(sizes), np.array(rows, dtype=np.int32).reshape(len(rows), len(sizes))


def oracle(rows, weights=None):
    counter = Counter()
    for position, row in enumerate(rows.tolist()):
        if min(row, default=0) >= 0:
            counter[tuple(row)] += 1 if weights is None else weights[position]
    return sorted((row, count) for row, count in counter.items() if count)


def listed(table):
    return list(zip(map(tuple, table.codes.tolist()), table.counts.tolist(), strict=True))


@given(tables(), st.booleans(), st.sampled_from([np.int32, np.int64]), st.data())
@settings(max_examples=200)
def test_group_by_and_projection_equal_a_counter(case, weighted, dtype, data):
    sizes, rows = case
    weight = st.lists(st.integers(0, 2**58), min_size=len(rows), max_size=len(rows))
    weights = data.draw(weight) if weighted else [1] * len(rows)
    table = CountTable.from_codes(np.asfortranarray(rows, dtype), sizes, weights)
    assert listed(table) == oracle(rows, weights)
    assert table.shape == sizes and table.n == sum(count for _, count in listed(table))
    assert (table.codes.dtype, table.counts.dtype) == (np.int32, np.int64)
    axes = data.draw(st.permutations(range(len(sizes))))[: data.draw(st.integers(0, len(sizes)))]
    view = table.project(axes)
    known = (rows >= 0).all(axis=1)
    assert listed(view) == oracle(rows[known][:, axes], np.array(weights, object)[known])
    assert view.shape == tuple(sizes[axis] for axis in axes)


def test_dense():
    table = CountTable.from_codes([[1, 0, 0], [0, 2, 3], [1, 0, 1]], (2, 3, 10**6))
    assert table.dense([1, 0]).tolist() == [[0, 2], [0, 0], [1, 0]]
    large = CountTable.from_codes([[0, 1], [0, 1], [1, 0]], (2, 2), [2**60 + 1, 2**60 + 3, 1])
    assert large.dense().tolist() == [[0, 2**61 + 4], [1, 0]]
    empty = CountTable.from_codes(np.empty((0, 3), dtype=np.int32), (2, 2, 2**31 - 1))
    assert empty.n == len(empty.codes) == 0 and not empty.dense([0, 1]).any()


ONE = CountTable.from_codes([[0, 1]], (2, 2))


@over(
    "make, message",
    [
        (lambda: CountTable.from_codes([[0, 1]], (2,)), "needs codes of"),
        (lambda: CountTable.from_codes([[0], [2]], (2,)), "below its size 2"),
        (lambda: CountTable.from_codes([[0.5]], (2,)), "must be integers"),
        (lambda: CountTable.from_codes([[0]], (2,), [-1]), "negative"),
        (lambda: CountTable.from_codes([[0, 0]], (10**7, 10**7)).dense(), "100000000000000 cells"),
        *((lambda axes=axes: ONE.project(axes), "distinct") for axes in ([2], [-1], [0, 0])),
    ],
)
def test_misuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


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
        patch.setattr(counts, "PASS_CELLS", cells)
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
