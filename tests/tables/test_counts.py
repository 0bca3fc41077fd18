"""Counts of coded rows against brute force; lazy frames have those of rows in memory."""

import contextlib
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from engines import ENGINE_WARNINGS, arrow, spark_frame, spark_session
from estimators import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp
from skdp import Categorical, Date, Domain, Numeric, forbid, tables
from skdp._random import noise_source
from skdp.exceptions import DomainError, EngineError
from skdp.tables import CountTable, count_rows, counts, read_rows
from skdp.tables import frame as frames

pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
dd = pytest.importorskip("dask.dataframe")

pytestmark = ENGINE_WARNINGS

# Relations live as long as their connection.
CONNECTION = duckdb.connect()

# Sizes whose product fits one key, fills several keys, and whose every column fills a key.
SIZES = st.one_of(st.integers(1, 4), st.integers(2, 10**4), st.integers(2**30, 2**31 - 1))


@st.composite
def coded_rows(draw):
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


@given(coded_rows(), st.booleans(), st.sampled_from([np.int32, np.int64]), st.data())
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


def test_sums_beyond_floats_are_exact():
    large = CountTable.from_codes([[0, 1], [0, 1], [1, 0]], (2, 2), [2**60 + 1, 2**60 + 3, 1])
    assert large.dense().tolist() == [[0, 2**61 + 4], [1, 0]]


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


@given(questions(), st.sampled_from([2**22, 4]), st.data())
@settings(max_examples=40)
def test_rows_too_many_to_hold_have_the_interface_of_a_table(case, limit, data):
    shape, codes, weights, sets = case
    table = CountTable.from_codes(codes, shape, weights)
    asked = tables.ProjectedCounts(np.repeat(codes, weights, axis=0), shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    new = np.array(data.draw(st.permutations([*range(shape[axis]), -1, -1]))[: shape[axis]])
    new[0] = max(new[0], 0)
    once = [held.recode(axis, new) for held in (table, asked)]
    other = data.draw(st.integers(0, len(shape) - 1))
    halves = np.arange(once[0].shape[other]) // 2
    twice = [held.recode(other, halves) for held in once]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "_WHOLE_CELLS", limit)
        for one, two in ((table, asked), once, twice):
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
        found = tables.weighted_tables(codes, shape, sets, number)
        for table, axes in zip(found, sets, strict=True):
            weights, groups = number(kept[:, 2]), [None] * len(axes)
            np.testing.assert_array_equal(table, by_hand(kept, weights, axes, groups, shape))


# --- lazy frames


def polars_lazy(frame):
    return pl.from_arrow(arrow(frame)).lazy()


def duckdb_relation(frame):
    return CONNECTION.from_arrow(arrow(frame))


def dask_frame(frame):
    return dd.from_pandas(frame, npartitions=min(3, max(1, len(frame))))


ENGINES = {"polars": polars_lazy, "duckdb": duckdb_relation, "dask": dask_frame}
engines = pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
engines_and_spark = pytest.mark.parametrize(
    "make",
    [*ENGINES.values(), pytest.param(spark_frame, marks=pytest.mark.slow)],
    ids=[*ENGINES, "pyspark"],
)


def messy(n=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "who": rng.integers(0, 40, n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 20, n)),
            "pay": rng.normal(0, 1, n),
            "town": pd.Series(rng.choice(["a", "b", "c", "elsewhere", ""], n), dtype="str"),
            "start": rng.integers(0, 6, n),
            "stop": rng.integers(0, 6, n),
        }
    )


DOMAIN = Domain(
    {
        "age": Numeric(0, 100, bins=12),
        "pay": Numeric(-2, 2, bins=9, nullable=True),
        "town": Categorical(["a", "b", "c"], nullable=True),
        "start": Numeric(0, 5, integer=True),
        "stop": Numeric(0, 5, integer=True),
    },
    structure=[forbid("start >= 4 and stop < 2"), forbid("town = 'a' and start = 0")],
)


# --- the same codes


@contextlib.contextmanager
def small(**limits):
    """Batches far smaller than the table, codes in a file, and what `limits` says of `counts`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "BATCH_ROWS", 64)
        patch.setattr(counts, "_HELD_BYTES", 100)
        patch.setattr(counts, "MERGED_ROWS", 50)
        for name, value in limits.items():
            patch.setattr(counts, name, value)
        yield patch


def assert_same(lazy, frame, domain=DOMAIN):
    mine, its = (tables.Coded(read_rows(each), domain) for each in (frame, lazy))
    np.testing.assert_array_equal(mine.cells, its.cells)
    mine, its = mine.counts(), its.counts()
    np.testing.assert_array_equal(mine.codes, its.codes)
    np.testing.assert_array_equal(mine.counts, its.counts)
    return its


@engines_and_spark
def test_lazy_rows_have_the_codes_and_cells_of_rows_in_memory(make):
    frame = messy()
    with small():
        assert 0 < assert_same(make(frame), frame).n < len(frame)
        assert assert_same(make(frame.iloc[:0]), frame.iloc[:0]).n == 0
        codes = tables.Coded(read_rows(make(frame)), DOMAIN).codes
        assert isinstance(codes, np.memmap) and codes.min() >= 0


def test_types_of_engines_have_the_keys_of_text():
    # The same fields, by the types that DuckDB finds and as text.
    types = "DATE TIMESTAMP TIMESTAMPTZ TIME DECIMAL(18,3) HUGEINT BOOLEAN ENUM('2020-01-01')"
    texts = ["2020-01-01", "2020-01-01 10:30:00", "10:30:00", "1.500", "7", "true"]
    domain = Domain({"x": Categorical([*texts, "z"], nullable=True)})
    for kind in types.split():
        values = ", ".join(f"('{text}')" for text in [*texts, "9" * 30])
        relation = CONNECTION.sql(
            f"SELECT TRY_CAST(v AS {kind}) AS x, v FROM (VALUES {values}) AS t(v)"
        )
        rows = relation.filter("x IS NOT NULL")
        typed = count_rows(read_rows(rows.select("x")), domain)
        told = count_rows(read_rows(rows.select("CAST(x AS VARCHAR) AS x")), domain)
        assert typed.codes.tolist() == told.codes.tolist() != [], kind


@pytest.mark.parametrize("where", ["connection", "column"])
def test_collations_join_no_categories_and_no_persons(where):
    texts = ["a", "A", "á", "Á", "ss", "ß", "", "b"]
    frame = pd.DataFrame({"x": pd.Series(texts * 3), "who": pd.Series(texts * 3)})
    with duckdb.connect() as connection:
        connection.register("given", arrow(frame))
        kind = "VARCHAR" + " COLLATE NOCASE.NOACCENT" * (where == "column")
        if where == "connection":
            connection.execute("PRAGMA default_collation='NOCASE.NOACCENT'")
        connection.execute(f"CREATE TABLE rows (x {kind}, who {kind})")
        connection.execute("INSERT INTO rows SELECT x, who FROM given")
        relation = connection.table("rows")
        assert_same(relation, frame, Domain({"x": Categorical(["a", "á", "ss"], nullable=True)}))
        anyone = Domain({"x": Categorical(["a", "b"], other="a", nullable=True)})
        kept = tables.Contributions("who", 1, noise_source(1))
        assert count_rows(read_rows(relation), anyone, kept).n == len(set(texts) - {""})


@pytest.mark.slow
def test_timestamps_and_collations_of_spark():
    session = spark_session()
    rows = session.sql("SELECT TIMESTAMP'2020-01-01 23:30:00-05:00' AS t, 'A' AS x")
    domain = Domain({"t": Date("2020-01-01", "2020-01-31"), "x": Categorical(["a", "A"])})
    assert count_rows(read_rows(rows), domain).codes.tolist() == [[1, 1]]


# --- the same releases


def case_of(name):
    return next(case for case in CASES if case.name == name)


WIDE = Domain({f"c{j}": Numeric(-3, 3, bins=64) for j in range(5)})


def test_a_table_that_may_not_fit_is_announced_before_the_charge():
    frame = pd.DataFrame(np.zeros((3, 5)), columns=WIDE.names)
    ledger = skdp.PrivacyLedger(9)
    view = skdp.PrivTreeSynthesizer(epsilon=1.0, domain=WIDE, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(UserWarning, match=r"36 bytes each.*MarginalSynthesizer"):
            view.fit(polars_lazy(frame))
    assert ledger.spent == 0


# --- persons


def bounded(most):
    return tables.Contributions("who", most, noise_source(7))


@engines
def test_persons_of_lazy_rows_are_bounded_as_in_memory(make):
    frame = messy()
    kept = {}
    for most in (1, 3, 50):
        with small():
            lazy = tables.Coded(read_rows(make(frame)), DOMAIN, bounded(most))
        memory = tables.Coded(read_rows(frame), DOMAIN, bounded(most))
        np.testing.assert_array_equal(lazy.cells, memory.cells)
        assert lazy.counts().n == memory.counts().n == lazy.cells[0]
        kept[most] = lazy.counts().n
    assert kept[1] <= 40 and kept[1] < kept[3] < kept[50]


# --- refusals and failures


def view(**changes):
    domain = Domain({"age": Numeric(0, 99), "sex": Categorical(["F", "M"])})
    return skdp.GridSynthesizer(**{"epsilon": 1.0, "domain": domain, **changes})


def two_columns():
    return pd.DataFrame({"age": [1.0, 2.0, 3.0], "sex": pd.Series(["F", "M", "F"], dtype="str")})


@engines
def test_what_does_not_fit_is_refused_before_the_charge(make):
    ledger = skdp.PrivacyLedger(1)
    frame = two_columns()
    for message, rows in (
        ("Missing: 'sex'", frame[["age"]]),
        ("cannot be read.*durations to numbers", frame.assign(age=pd.Timedelta(1, "s"))),
    ):
        with pytest.raises(DomainError, match=message):
            view(ledger=ledger).fit(make(rows))
    with pytest.raises(TypeError, match="no order that 'sex'.*name it in target="):
        view(target="sex", ledger=ledger).fit(make(frame[["age"]]), np.array(["F", "M", "F"]))
    with pytest.raises(TypeError, match="lazy, and only tables in memory.*Collect it first"):
        case_of("PrivateStandardScaler").make(ledger=ledger).fit(make(frame[["age"]]))
    assert ledger.spent == 0


def test_plans_whose_columns_are_not_known_are_refused(monkeypatch):
    with pytest.raises(DomainError, match="must be unique, but 'sex'"):
        view().fit(duckdb_relation(two_columns()).select("age, sex, sex"))
    with pytest.raises(DomainError, match=r"cannot tell the columns.*Nothing was") as caught:
        view().fit(pl.scan_parquet("no such file of Alice.parquet"))
    assert "Alice" not in str(caught.value) and caught.value.__context__ is None
    # DuckDB gives times without their offset, so that two of one moment would differ.
    for odd in ("['F']", "TIMETZ '10:30:00+02'"):
        with pytest.raises(DomainError, match="cannot be read: a column holds"):
            view().fit(CONNECTION.sql(f"SELECT 1.0 AS age, {odd} AS sex"))


def failing(engine):
    frame = two_columns()
    if engine == "polars":

        def fail(batch):
            raise ValueError(f"cannot stand {batch}")

        return polars_lazy(frame).with_columns(pl.col("age").map_batches(fail, pl.Float64))
    if engine == "duckdb":
        relation = duckdb_relation(frame)
        return relation.select("error('Alice: ' || sex)::DOUBLE AS age, sex")

    def fail_part(part):
        raise ValueError(f"cannot stand {part}")

    return dask_frame(frame).map_partitions(fail_part, meta=frame.iloc[:0])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failing_plan_is_charged_once_and_its_words_are_withheld(engine):
    ledger = skdp.PrivacyLedger(1)
    estimator = view(ledger=ledger, epsilon=0.25)
    with pytest.raises(EngineError, match=r"failed to give the rows.*stays spent") as caught:
        estimator.fit(failing(engine))
    error = caught.value
    assert not any(word in str(error) for word in ("Alice", "cannot stand", "F"))
    assert error.__context__ is None and error.__cause__ is None
    assert float(ledger.spent) == 0.25 and len(ledger.to_frame()) == 1
    assert not hasattr(estimator, "synopsis_")
    # A lazy column is not read at all: its plan would fail before the charge.
    with pytest.raises(TypeError, match="is lazy"):
        tables.as_column(failing("dask")["age"] if engine == "dask" else failing(engine), "y")
