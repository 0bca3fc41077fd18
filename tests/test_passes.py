"""Many marginals together: the counts of each by itself, on every way to them."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from held import HeldRows
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp import Categorical, Domain, Numeric, forbid
from skdp._random import noise_source
from skdp.tables import (
    Contributions,
    CountTable,
    EngineTables,
    ProjectedCounts,
    as_frame,
    coded,
    count_rows,
    encode,
    passes,
    read_rows,
)
from skdp.tables.passes import marginals_of, plan_blocks, plan_pass, split

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
dd = pytest.importorskip("dask.dataframe")

CONNECTION = duckdb.connect()

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{category}:dask\\..*")
    for category in ("DeprecationWarning", "FutureWarning")
]


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
def questions(draw, most_columns=5):
    """A table, and sets of its attributes with groups that may drop codes."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=most_columns)))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
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
@settings(max_examples=60, deadline=None)
def test_many_sets_are_counted_as_each_by_hand(case, cells, rows):
    shape, codes, weights, sets = case
    table = CountTable.from_codes(codes, shape, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "PASS_CELLS", cells)
        patch.setattr("skdp._validation.BATCH_ROWS", rows)
        found = list(table.regrouped_many(sets))
    assert len(found) == len(sets)
    for counts, (axes, groups) in zip(found, sets, strict=True):
        np.testing.assert_array_equal(counts, by_hand(codes, weights, axes, groups, shape))
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(table.regrouped(axes, groups), counts)


@given(questions(), st.sampled_from([(2**24, 2**22), (50, 2**22), (0, 4)]), st.data())
@settings(max_examples=60, deadline=None)
def test_rows_in_an_engine_have_the_interface_of_a_table(case, limits, data):
    shape, codes, weights, sets = case
    table = CountTable.from_codes(codes, shape, weights)
    asked = ProjectedCounts(EngineTables(HeldRows(table)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    new = np.array(data.draw(st.permutations([*range(shape[axis]), -1, -1]))[: shape[axis]])
    new[0] = max(new[0], 0)
    other = data.draw(st.integers(0, len(shape) - 1))
    changes = [
        lambda held: held,
        lambda held: held.where(axis, shape[axis] - 1),
        lambda held: held.recode(axis, new),
        lambda held: held.recode(axis, new).where(other, 0),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "_KEPT_CELLS", limits[0])
        patch.setattr(encode, "_DENSE_CELLS", limits[1])
        for change in changes:
            one, two = change(table), change(asked)
            assert one.shape == two.shape and one.n == two.n
            whole = [(axes, [None] * len(axes)) for axes, _ in sets]
            for mine, its in zip(one.regrouped_many(whole), two.regrouped_many(whole), strict=True):
                np.testing.assert_array_equal(mine, its)
            for axes, _ in sets:
                mine, its = one.project(axes), two.project(axes)
                np.testing.assert_array_equal(mine.codes, its.codes)
                np.testing.assert_array_equal(mine.counts, its.counts)
                np.testing.assert_array_equal(one.dense(axes), two.dense(axes))
        for mine, its in zip(table.regrouped_many(sets), asked.regrouped_many(sets), strict=True):
            np.testing.assert_array_equal(mine, its)


def test_columns_of_many_codes():
    rng = np.random.default_rng(0)
    shape = (200_000, 300, 3)
    codes = np.stack([rng.integers(0, size, 500) for size in shape], axis=1)
    groups = [rng.integers(-1, 70_000, shape[0]), np.arange(300) // 2, None]
    table = CountTable.from_codes(codes, shape)
    asked = ProjectedCounts(EngineTables(HeldRows(table)))
    sets = [((0,), (groups[0],)), ((0, 2), (groups[0], None)), ((2, 1), (None, groups[1]))]
    for mine, its, (axes, some) in zip(
        table.regrouped_many(sets), asked.regrouped_many(sets), sets, strict=True
    ):
        np.testing.assert_array_equal(mine, by_hand(codes, np.ones(500, int), axes, some, shape))
        np.testing.assert_array_equal(mine, its)


def test_tallies_on_a_worker_have_the_same_cells():
    table = CountTable.from_codes(np.random.default_rng(0).integers(0, 5, (100, 4)), (5,) * 4)
    sets = [(pair, (None, None)) for pair in itertools.combinations(range(4), 2)]
    marginals = marginals_of(table.shape, sets)
    here = passes.Tallies(marginals, plan_pass(marginals))
    there = pickle.loads(pickle.dumps(here.empty))()
    for each in (here, there):
        each.add(dict(enumerate(table.codes.T)), table.n_rows, table.counts)
    np.testing.assert_array_equal(here.cells, there.cells)


def test_weights_beyond_floats_are_added_exactly():
    table = CountTable([[0, 0], [0, 1], [1, 1]], [2**53, 1, 2**60 + 1], (2, 2))
    (both, first) = table.regrouped_many([((0, 1), (None, None)), ((0,), (None,))])
    assert both.tolist() == [[2**53, 1], [0, 2**60 + 1]]
    assert first.tolist() == [2**53 + 1, 2**60 + 1]


# -- plans


def pairs_of(n, size):
    sets = [(pair, (None, None)) for pair in itertools.combinations(range(n), 2)]
    return marginals_of([size] * n, sets)


def test_pairs_that_share_columns_share_blocks():
    blocks = plan_blocks(pairs_of(46, 16), 2**16)
    assert sorted(number for block in blocks for number in block.members) == list(range(1035))
    assert max(math.prod(block.shape) for block in blocks) <= 2**16
    # 23 groups of two columns, and all pairs of these groups.
    assert len(blocks) == math.comb(23, 2)


def test_blocks_are_smaller_where_all_would_not_fit(monkeypatch):
    monkeypatch.setattr(passes, "PASS_CELLS", 2**19)
    marginals = pairs_of(46, 16)
    blocks = plan_pass(marginals)
    assert sum(each.cells for each in marginals) <= 2**19
    assert sum(math.prod(block.shape) for block in blocks) <= 2**19


def test_passes_are_bounded_and_in_order():
    marginals = marginals_of([3000] * 4, [((a,), (None,)) for a in range(4)] * 3000)
    parts = list(split(marginals))
    assert [each for part in parts for each in part] == marginals
    assert all(sum(each.cells for each in part) <= 2**24 for part in parts)
    assert len(parts) == math.ceil(12_000 / (2**24 // 3000))


def test_wrong_sets_are_refused():
    table = CountTable([[0, 0]], [1], (2**14, 2**14))
    with pytest.raises(ValueError, match="distinct"):
        list(table.regrouped_many([((0, 0), (None, None))]))
    with pytest.raises(ValueError, match="more than 134217728"):
        list(table.regrouped_many([((0, 1), (None, None))]))


def test_what_is_counted_follows_from_the_shape_alone():
    shape, asked = (30, 20, 10, 8), []
    sets = [((a, b), (None, None)) for a, b in itertools.combinations(range(4), 2)]
    for rows in (np.zeros((0, 4), np.int32), np.array([[1, 2, 3, 4], [29, 19, 9, 7]], np.int32)):
        held = HeldRows(CountTable.from_codes(rows, shape))
        table = ProjectedCounts(EngineTables(held))
        assert table.n == len(rows)
        list(table.regrouped_many(sets))
        list(table.project_many([(0, 1, 2)]))
        asked.append(held.asked)
    # All pairs ahead of the total, then the only set that was not counted.
    assert asked[0] == asked[1] == [[axes for axes, _ in sets], [(0, 1, 2)]]


# -- engines


def people(n=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "who": rng.integers(0, 40, n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 20, n)),
            "pay": rng.normal(0, 1, n),
            "town": pd.Series(rng.choice(["a", "b", "c", "elsewhere"], n), dtype="str"),
            "start": rng.integers(0, 6, n),
            "stop": rng.integers(0, 6, n),
        }
    )


DOMAIN = Domain(
    {
        "age": Numeric(0, 100, bins=12),
        "pay": Numeric(-2, 2, bins=9, nullable=True),
        "town": Categorical(["a", "b", "c"]),
        "start": Numeric(0, 5, integer=True),
        "stop": Numeric(0, 5, integer=True),
    },
    structure=[forbid("start >= 4 and stop < 2"), forbid("town = 'a' and start = 0")],
)
RNG = np.random.default_rng(3)
GROUPS = [RNG.integers(0, 3, size) for size in DOMAIN.shape]
SETS = [
    ((), ()),
    *(
        (axes, [None] * len(axes))
        for n in (1, 2, 3)
        for axes in itertools.combinations(range(5), n)
    ),
    *((axes, [GROUPS[a] for a in axes]) for axes in itertools.permutations(range(5), 2)),
]
LAZY = {
    "polars": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": lambda frame: CONNECTION.from_arrow(pa.Table.from_pandas(frame)),
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3),
}


@pytest.mark.parametrize("batches", [True, False])
@pytest.mark.parametrize("engine", list(LAZY))
def test_engines_count_many_sets_as_memory_does(engine, batches, monkeypatch):
    frame = people().drop(columns="who")
    monkeypatch.setattr(encode, "MOST_AT_ONCE", 1)
    # Batches far smaller than the table.
    monkeypatch.setattr("skdp.tables.coded.BATCH_ROWS", 64)
    if not batches:
        if engine == "dask":
            pytest.skip("Dask counts in its workers.")
        monkeypatch.setattr(coded, "gives_batches", lambda frame, engine: False)
        monkeypatch.setattr(coded, "_DENSE_CELLS", 200)
    monkeypatch.setattr(encode, "_KEPT_CELLS", 0)
    exact = count_rows(as_frame(frame), DOMAIN)
    lazy = count_rows(read_rows(LAZY[engine](frame)), DOMAIN, together=())
    assert isinstance(lazy, ProjectedCounts) and 0 < exact.n < len(frame)
    for mine, its in zip(exact.regrouped_many(SETS), lazy.regrouped_many(SETS), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_persons_are_bounded_alike_in_every_set(engine, monkeypatch):
    # With one key each pass keeps the same rows.
    monkeypatch.setattr(encode, "MOST_AT_ONCE", 1)
    rows = read_rows(LAZY[engine](people()))
    tables = []
    for kept in (2**24, 0):
        monkeypatch.setattr(encode, "_KEPT_CELLS", kept)
        bound = Contributions("who", 2, noise_source(7))
        table = count_rows(rows, DOMAIN, bound, together=())
        assert 0 < table.n <= 80
        tables.append(list(table.regrouped_many(SETS)))
    whole = count_rows(rows, DOMAIN, Contributions("who", 2, noise_source(7)))
    for one, other, mine in zip(*tables, whole.regrouped_many(SETS), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, mine)


def test_batches_of_a_table_are_added_like_the_whole():
    table = CountTable.from_codes(RNG.integers(0, 5, (1000, 3)), (5, 5, 5))
    marginals = marginals_of(table.shape, [((0, 2), (None, GROUPS[2][:1].repeat(5)))])
    whole, parts = (passes.Tallies(marginals, plan_pass(marginals)) for _ in range(2))
    columns = dict(enumerate(table.codes.T))
    whole.add(columns, table.n_rows, table.counts)
    for first in range(0, table.n_rows, 9):
        part = {axis: column[first : first + 9] for axis, column in columns.items()}
        parts.add(part, len(part[0]), table.counts[first : first + 9])
    np.testing.assert_array_equal(whole.tables()[0], parts.tables()[0])
