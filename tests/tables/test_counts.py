from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

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


@given(tables(), st.booleans(), st.sampled_from([np.int32, np.int64]), st.data())
@settings(max_examples=200)
def test_group_by_and_projection_equal_a_counter(case, weighted, dtype, data):
    sizes, rows = case
    weight = st.lists(st.integers(0, 2**50), min_size=len(rows), max_size=len(rows))
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


def test_columns_after_those_that_tell_all_rows_apart():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.permutation(40) for _ in range(9)])
    counts = rng.integers(1, 9, 40)
    order = np.lexsort(rows.T[::-1])
    # Products of NumPy's integers would overflow.
    for sizes in ((2**30,) * 9, np.full(9, 2**30)):
        table = CountTable.from_codes(rows, sizes, counts)
        assert (table.codes == rows[order]).all() and (table.counts == counts[order]).all()


def test_dense():
    table = CountTable.from_codes([[1, 0, 0], [0, 2, 3], [1, 0, 1]], (2, 3, 10**6))
    assert table.dense([1, 0]).tolist() == [[0, 2], [0, 0], [1, 0]]
    assert table.dense([]).tolist() == 3
    assert table.dense([0]).dtype == np.int64
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
        (lambda: CountTable.from_codes([[0]], (2,), [1, 2]), "needs codes of"),
        (lambda: CountTable.from_codes([[0]], (2,), [-1]), "negative"),
        (lambda: CountTable.from_codes([[0, 0]], (10**7, 10**7)).dense(), "100000000000000 cells"),
        *((lambda axes=axes: ONE.project(axes), "distinct") for axes in ([2], [-1], [0, 0])),
    ],
)
def test_misuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()
