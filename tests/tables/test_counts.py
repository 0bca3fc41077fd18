import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.tables import CountTable

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


@given(tables())
@settings(max_examples=200)
def test_group_by_equals_a_counter(case):
    sizes, rows = case
    table = CountTable.from_codes(rows, sizes)
    assert listed(table) == oracle(rows)
    assert table.shape == sizes
    assert table.n == sum(count for _, count in oracle(rows))
    assert table.codes.dtype == np.int32
    assert table.counts.dtype == np.int64


@given(tables(), st.data())
@settings(max_examples=100)
def test_projection_equals_a_counter(case, data):
    sizes, rows = case
    table = CountTable.from_codes(rows, sizes)
    axes = data.draw(st.permutations(range(len(sizes))))[: data.draw(st.integers(0, len(sizes)))]
    kept = rows[(rows >= 0).all(axis=1)]
    view = table.project(axes)
    assert listed(view) == oracle(kept[:, axes])
    assert view.shape == tuple(sizes[axis] for axis in axes)


@given(tables(), st.data())
@settings(max_examples=100)
def test_weighted_rows(case, data):
    sizes, rows = case
    weights = data.draw(st.lists(st.integers(0, 2**50), min_size=len(rows), max_size=len(rows)))
    table = CountTable.from_codes(rows, sizes, weights)
    assert listed(table) == oracle(rows, weights)


def test_sums_beyond_float64_are_exact():
    counts = [2**60 + 1, 2**60 + 3, 1]
    table = CountTable.from_codes([[0, 1], [0, 1], [1, 0]], (2, 2), counts)
    assert table.counts.tolist() == [2**61 + 4, 1]
    assert table.dense().tolist() == [[0, 2**61 + 4], [1, 0]]
    wide = CountTable.from_codes([[0, 1], [0, 1], [1, 0]], (2, 2**31 - 1), counts)
    assert wide.counts.tolist() == [2**61 + 4, 1]


def test_many_wide_columns_never_overflow():
    # 40 columns of 31 bits: 1e373 cells.
    rng = np.random.default_rng(0)
    distinct = rng.integers(0, 2**31 - 1, (50, 40)).astype(np.int32)
    distinct[1:, :39] = distinct[0, :39]
    rows = distinct[rng.integers(0, 50, 1000)]
    table = CountTable.from_codes(rows, (2**31 - 1,) * 40)
    assert listed(table) == oracle(rows)


def test_columns_after_those_that_tell_all_rows_apart():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.permutation(40) for _ in range(9)])
    counts = rng.integers(1, 9, 40)
    table = CountTable.from_codes(rows, (2**30,) * 9, counts)
    order = np.lexsort(rows.T[::-1])
    assert (table.codes == rows[order]).all() and (table.counts == counts[order]).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16])
def test_any_integer_array(order, dtype):
    rows = np.array([[1, 0], [0, 2], [1, 0]], dtype=dtype, order=order)
    assert listed(CountTable.from_codes(rows, (2, 3))) == [((0, 2), 1), ((1, 0), 2)]


def test_dense():
    table = CountTable.from_codes([[1, 0, 0], [0, 2, 3], [1, 0, 1]], (2, 3, 10**6))
    assert table.dense([1, 0]).tolist() == [[0, 2], [0, 0], [1, 0]]
    assert table.dense([]).tolist() == 3
    assert table.dense([0]).dtype == np.int64
    with pytest.raises(ValueError, match="100000000000000 cells"):
        CountTable.from_codes([[0, 0]], (10**7, 10**7)).dense()


def test_no_rows_and_no_attributes():
    empty = CountTable.from_codes(np.empty((0, 3), dtype=np.int32), (2, 2, 2**31 - 1))
    assert (empty.n, empty.codes.shape, empty.n_rows) == (0, (0, 3), 0)
    assert empty.project([1, 2]).codes.shape == (0, 2)
    assert empty.dense([0, 1]).tolist() == [[0, 0], [0, 0]]
    wide = CountTable.from_codes(np.empty((0, 5), dtype=np.int32), (2**31 - 1,) * 5)
    assert listed(wide) == []
    all_skipped = CountTable.from_codes([[0, -1], [-1, 1]], (2, 2))
    assert all_skipped.n == 0
    total = CountTable.from_codes([[0, 1], [1, 1]], (2, 2)).project([])
    assert (total.codes.shape, total.counts.tolist()) == ((1, 0), [2])


@pytest.mark.parametrize(
    ("codes", "shape", "counts", "message"),
    [
        ([[0, 1]], (2,), None, "one column for each of the 1"),
        ([0, 1], (2,), None, "one column for each"),
        ([[0], [2]], (2,), None, "below its size 2"),
        ([[0.5]], (2,), None, "must be integers"),
        ([[0]], (2,), [1, 2], "one entry per row"),
        ([[0]], (2,), [-1], "negative"),
    ],
)
def test_misuse(codes, shape, counts, message):
    with pytest.raises(ValueError, match=message):
        CountTable.from_codes(codes, shape, counts)


def test_misuse_of_axes_and_constructor():
    table = CountTable.from_codes([[0, 1]], (2, 2))
    for axes in ([2], [-1], [0, 0]):
        with pytest.raises(ValueError, match="distinct numbers in 0..1"):
            table.project(axes)
    with pytest.raises(ValueError, match="needs codes of shape"):
        CountTable(np.zeros((2, 2), np.int32), np.ones(3, np.int64), (2, 2))


def test_repr_tells_nothing_of_the_rows():
    one = CountTable.from_codes([[0, 1]], (2, 2))
    many = CountTable.from_codes([[0, 1], [1, 1], [1, 1]], (2, 2))
    assert repr(one) == repr(many) == "CountTable(shape=(2, 2))"


def test_a_large_domain_is_only_its_rows():
    sizes = (2000,) * 27
    assert math.prod(sizes) > 1e88
    rows = np.random.default_rng(1).integers(0, 2000, (200, 27)).astype(np.int32)
    assert CountTable.from_codes(np.repeat(rows, 3, axis=0), sizes).counts.tolist() == [3] * 200
