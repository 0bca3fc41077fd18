"""Lazy frames: the same counts, hence the same releases, as of rows in memory; silent errors."""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest
from estimators import CASES
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from spark import arrow, pa, spark_frame, spark_session

import skdp
from skdp import Categorical, Domain, Numeric
from skdp._random import noise_source
from skdp.algorithms.kmeans.lloyd import residual_sums
from skdp.exceptions import DomainError, EngineError
from skdp.tables import (
    TYPES_DECLARED,
    Contributions,
    as_frame,
    count_rows,
    encode,
    expressions,
    passes,
    read_rows,
)
from skdp.tables import coded as coded_module

pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
dd = pytest.importorskip("dask.dataframe")


# What the engines do inside is their affair.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{category}:{module}")
    for category in ("DeprecationWarning", "FutureWarning")
    for module in (r"dask\..*", r"distributed\..*", r"pyspark\..*")
]

# -- the same rows in every engine


def polars_lazy(frame):
    return pl.from_arrow(arrow(frame)).lazy()


def duckdb_relation(frame):
    return CONNECTION.from_arrow(arrow(frame))


def dask_frame(frame):
    if isinstance(frame, pa.Table):
        frame = frame.to_pandas()
    return dd.from_pandas(frame, npartitions=min(3, max(1, len(frame))))


# Relations live as long as their connection.
CONNECTION = duckdb.connect()
ENGINES = {"polars": polars_lazy, "duckdb": duckdb_relation, "dask": dask_frame}


engines = pytest.mark.parametrize("engine", list(ENGINES))
engines_and_spark = pytest.mark.parametrize(
    "make",
    [*ENGINES.values(), pytest.param(spark_frame, marks=pytest.mark.slow)],
    ids=[*ENGINES, "pyspark"],
)


def assert_same_counts(lazy, eager, domain):
    got, expected = count_rows(read_rows(lazy), domain), count_rows(as_frame(eager), domain)
    np.testing.assert_array_equal(got.codes, expected.codes)
    np.testing.assert_array_equal(got.counts, expected.counts)


# -- equal counts

NAN, INF = float("nan"), float("inf")
FLOATS = [None, NAN, INF, -INF, -0.0, 0.0, 5e-324, 1e308, -1e308, 0.1, 0.3, 2.5, 2.9999999999999996]
INTEGERS = [None, 0, 1, -1, 7, 2**53, 2**53 + 1, -(2**63), 2**63 - 1]
TEXTS = [None, "", "a", "A", "a ", "é", "z\u0301", "1", "nan", "None", "日本", "\U0001f600"]
COLUMNS = {
    "float": (pa.float64(), st.sampled_from(FLOATS) | st.floats()),
    "single": (pa.float32(), st.none() | st.floats(width=32)),
    "integer": (pa.int64(), st.sampled_from(INTEGERS) | st.integers(-9, 9)),
    "small": (pa.int8(), st.none() | st.integers(-128, 127)),
    "unsigned": (pa.uint64(), st.sampled_from([None, 0, 7, 2**63, 2**64 - 1])),
    "flag": (pa.bool_(), st.sampled_from([None, True, False])),
    "text": (pa.string(), st.sampled_from(TEXTS)),
    "nothing": (pa.null(), st.none()),
}
NUMBERS = [name for name in COLUMNS if name != "text"]


@st.composite
def numerics(draw):
    nullable = draw(st.booleans())
    if draw(st.booleans()):
        low = draw(st.integers(-300, 300))
        high = low + draw(st.integers(0, 300))
        bins = draw(st.none() | st.integers(1, high - low + 1))
        return Numeric(low, high, bins, integer=True, nullable=nullable)
    low = draw(st.floats(-1e6, 1e6))
    width = draw(st.floats(1e-3, 1e6))
    return Numeric(low, low + width, draw(st.integers(1, 1000)), nullable=nullable)


@st.composite
def categoricals(draw, text):
    values = (
        ["", "a", "é", "1", "日本", "zz"] if text else [0, 1, -1, 0.3, 7, 2**53 + 1, 2**63, 2.5]
    )
    categories = draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
    other = draw(st.none() | st.sampled_from(categories))
    return Categorical(categories, other=other, nullable=draw(st.booleans()))


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))
    n_rows = draw(st.integers(1, 12))
    columns, attributes = {}, {}
    for place, kind in enumerate(kinds):
        dtype, values = COLUMNS[kind]
        name = f"{kind} {place}"
        data = draw(st.lists(values, min_size=n_rows, max_size=n_rows))
        columns[name] = pa.array(data, type=dtype)
        number = kind in NUMBERS and draw(st.booleans())
        attributes[name] = draw(numerics() if number else categoricals(text=kind == "text"))
    assume(math.prod(attribute.size for attribute in attributes.values()) > 1)
    return pa.table(columns), Domain(attributes)


WHOLE = (
    pa.table(
        {
            f"{kind}": pa.array(
                [np.iinfo(kind).min, np.iinfo(kind).max, None, *range(9)], type=getattr(pa, kind)()
            )
            for kind in ("int8", "uint8", "int16", "uint32", "int64", "uint64")
        }
    ),
    Domain(
        {
            "int8": Numeric(-5, 5, integer=True),
            "uint8": Numeric(2, 6, integer=True, nullable=True),
            "int16": Numeric(3, 7, integer=True, special=[8]),
            "uint32": Numeric(0, 7, integer=True),
            "int64": Numeric(-3, 3, integer=True, nullable=True),
            "uint64": Numeric(1, 2, integer=True),
        }
    ),
)
THIRDS = (
    pa.table({"x": pa.array([k / 3 * 0.1 for k in range(-9, 40)])}),
    Domain({"x": Numeric(-0.3, 0.7, bins=30)}),
)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(tables())
@example(THIRDS)
@example(WHOLE)
def test_engines_count_what_arrow_counts(engine, case):
    table, domain = case
    assert_same_counts(ENGINES[engine](table), table, domain)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(tables())
def test_long_tables_are_joined_to_the_same_effect(engine, monkeypatch, case):
    monkeypatch.setitem(expressions._MOST_CONDITIONS, engine, 0)
    table, domain = case
    assert_same_counts(ENGINES[engine](table), table, domain)


@settings(max_examples=15)
@given(tables())
@example(THIRDS)
@example(WHOLE)
def test_dask_counts_what_pandas_counts(case):
    table, domain = case
    frame = table.to_pandas()
    assert_same_counts(dask_frame(frame), frame, domain)


@pytest.mark.slow
@settings(max_examples=10)
@given(tables())
@example(THIRDS)
def test_spark_counts_what_arrow_counts(case):
    table, domain = case
    kept = [
        field.name
        for field in table.schema
        if not any(word in str(field.type) for word in ("uint", "null", "int8"))
    ]
    if kept:
        table = table.select(kept)
        assert_same_counts(spark_frame(table), table, domain.select(kept))


# -- equal codes at the edges of bins, where one rounding more would show


def edge_domain(rng):
    """An attribute of one of the kinds whose divisions round differently."""
    low, width = int(rng.integers(-1000, 1000)), int(rng.integers(1, 2000))
    bins = int(rng.integers(1, min(width, 1000) + 1))
    scale = 10.0 ** rng.integers(-8, 9)
    kinds = [
        lambda: Numeric(low, low + width, bins, integer=True),
        lambda: Numeric(low / 10, (low + width) / 10, bins),
        lambda: Numeric(0, width, bins),
        lambda: Numeric(low * 10**9, (low + width) * 10**9 + 1, bins % 1000 + 1, integer=True),
        lambda: Numeric(low, low + 2**40 + width, bins),
        lambda: Numeric(low / 7, low / 7 + abs(rng.normal()) * scale, bins),
        lambda: Numeric(edges=np.unique(rng.normal(0, scale, bins % 70 + 2)).tolist()),
        lambda: Numeric(0, width, min(bins, 64), scale="log", integer=True, special=[-1, -7]),
        lambda: Numeric(low, low + width, bins % 90 + 1, scale="sqrt", special=[0, low + 0.5]),
        lambda: Numeric(low / 10, (low + width) / 10, bins, special=[0, 0.1, 1e300]),
        lambda: Numeric(low, low + width + 1, bins=1, integer=True, special=[0, low, 2**53]),
    ]
    try:
        return kinds[rng.integers(len(kinds))]()
    except DomainError:
        # Bins narrower than float64 can tell apart.
        return edge_domain(rng)


def edge_values(attribute, rng):
    """Edges, exact and as rounded, the numbers next to them, and everything that is odd."""
    low, high, bins = attribute.lower, attribute.upper, attribute.bins
    some = rng.integers(0, bins + 1, 20)
    exact = [float(Fraction(low) + Fraction(high - low) * int(k) / bins) for k in some]
    edges = np.concatenate([attribute.edges[some].astype(float), exact, [low, high]])
    odd = [NAN, INF, -INF, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308]
    edges = np.concatenate([edges, np.array(attribute.special, dtype=float)])[-46:]
    edges = np.resize(edges, 46)
    near = [edges, np.nextafter(edges, INF), np.nextafter(edges, -INF)]
    return np.concatenate([*near, odd, rng.uniform(low, high, 20)])


def assert_codes_at_edges(make, n_domains, seed, together=50):
    rng = np.random.default_rng(seed)
    for _ in range(n_domains // together):
        domain = Domain({f"x{place}": edge_domain(rng) for place in range(together)})
        names = list(domain.names)
        frame = pd.DataFrame({name: edge_values(domain[name], rng) for name in names})
        expected = domain.encode_columns(as_frame(frame))
        if make is dask_frame:
            part = make(frame).map_partitions(encoded, domain, meta=frame.iloc[:0].astype("int32"))
            got = part.compute().to_numpy()
        else:
            frame["row"] = np.arange(len(frame))
            numbered = Numeric(0, len(frame) - 1, integer=True)
            rows = Domain({**{name: domain[name] for name in names}, "row": numbered})
            coded = read_rows(make(frame)).coded(rows)
            found = coded_module._collect(coded._frame, coded._engine)
            got = np.stack(list(found.values()), axis=1)
            got = got[np.argsort(got[:, -1])][:, :-1]
        wrong = np.flatnonzero((got != expected).any(axis=0))
        assert not len(wrong), [domain.attributes[place] for place in wrong[:5]]


def encoded(part, domain):
    return pd.DataFrame(domain.encode_columns(as_frame(part)), columns=domain.names)


@engines_and_spark
def test_codes_at_edges_are_those_of_numpy(make):
    assert_codes_at_edges(make, n_domains=50, seed=3)


@pytest.mark.slow
@engines
def test_codes_at_the_edges_of_5000_domains(engine):
    # Spark takes a second for each, so the 50 above have to do there.
    assert_codes_at_edges(ENGINES[engine], n_domains=5000, seed=4)


def test_codes_at_edges_are_those_of_numpy_in_every_table():
    rng = np.random.default_rng(5)
    domain = Domain({f"x{place}": edge_domain(rng) for place in range(100)})
    frame = pd.DataFrame({name: edge_values(domain[name], rng) for name in domain.names})
    expected = domain.encode_columns(as_frame(frame.to_numpy()).with_names(domain.names))
    for table in (frame, arrow(frame), pl.from_arrow(arrow(frame)), frame.astype("Float64")):
        np.testing.assert_array_equal(domain.encode_columns(as_frame(table)), expected)


@engines
def test_a_release_at_an_edge_is_that_of_pandas(engine):
    # 21 * 7 * (1 / 49) is below 3.
    frame = pd.DataFrame({"x": [21.0] * 300})
    release = functools.partial(
        skdp.MarginalSynthesizer,
        epsilon=1.0,
        domain=Domain({"x": Numeric(0, 49, bins=7)}),
        random_state=1,
    )
    expected = release().fit(frame).synopsis_.view(["x"])
    assert expected.argmax() == 3
    np.testing.assert_array_equal(
        release().fit(ENGINES[engine](frame)).synopsis_.view(["x"]), expected
    )


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_parts_of_codes_begin_where_they_should_at_any_size(engine):
    # Every multiple of a divisor, and its neighbours: quotients that are integers.
    sizes = [*range(1, 200, 10), 49, 98, 103, 107, 161, 187, 197, 2**20 - 1]
    for size in sizes:
        codes = np.unique(np.clip(np.arange(-1, 2)[:, None] + np.arange(40) * size // 40, 0, None))
        codes = codes[codes < size]
        frame = nw.from_native(ENGINES[engine](pd.DataFrame({"code": codes})))
        sides = sorted({1, 2, 3, min(7, size), (size + 1) // 2, size})
        parts = {f"p{side}": expressions.part_of(nw.col("code"), size, side) for side in sides}
        found = coded_module._collect(frame.with_columns(**parts), engine)
        for side in sides:
            expected = expressions.part_of(found["code"], size, side)
            np.testing.assert_array_equal(found[f"p{side}"], expected, err_msg=f"{size, side}")


@pytest.mark.parametrize("kind", ["polars", "duckdb", "arrow", "pandas", "polars in memory"])
def test_decimals_are_the_nearest_floats(kind):
    rng = np.random.default_rng(6)
    digits = rng.integers(10**8, 10**9, 3000)
    numbers = [Decimal(int(a)).scaleb(-6) for a in digits]
    numbers += [
        Decimal(int(a) * 10**9 + int(b)).scaleb(-6)
        for a, b in zip(digits, digits[::-1], strict=True)
    ]
    table = pa.table({"x": pa.array(numbers, pa.decimal128(38, 6))})
    expected = np.array([float(number) for number in numbers])
    if kind in ENGINES:
        rows = read_rows(ENGINES[kind](table))
        lazy = rows._frame.with_columns(x=rows.column("x").number())
        got = coded_module._collect(lazy, kind)["x"]
    else:
        make = {
            "arrow": lambda: table,
            "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
            "polars in memory": lambda: pl.from_arrow(table),
        }[kind]
        got = as_frame(make()).column("x").numbers()
    np.testing.assert_array_equal(np.sort(got), np.sort(expected))


# -- equal categories, byte by byte

SPELLINGS = ["a", "A", "a ", " a", "á", "a\u0301", "ß", "ss", "SS", "", "1", "01", "1.0", "İ", "i",
             "a\0", "a\0b", "\0", "é", "e\u0301", None]  # fmt: skip
# Categories must not mean one number.
DECLARED = [each for each in SPELLINGS if each not in ("01", "1.0", None)]


@engines
@pytest.mark.parametrize("joined", [False, True])
def test_categories_are_told_apart_by_every_letter(engine, joined, monkeypatch):
    if joined:
        monkeypatch.setitem(expressions._MOST_CONDITIONS, engine, 0)
    frame = pd.DataFrame({"x": pd.Series(SPELLINGS, dtype=object)})
    for chosen in (DECLARED, ["a", "é", "ss", "i", "1", ""], ["A", "e\u0301", "SS", "\0"]):
        domain = Domain({"x": Categorical(chosen, nullable=True)})
        same = frame if engine == "dask" else arrow(frame)
        assert_same_counts(ENGINES[engine](frame), same, domain)


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NFC", "NOCASE.NOACCENT"])
@pytest.mark.parametrize("where", ["connection", "column"])
def test_collations_of_duckdb_join_no_categories(collation, where):
    frame = pd.DataFrame(
        {
            "x": pd.Series(SPELLINGS * 3, dtype="str"),
            "who": pd.Series([f"{name}{i % 3}" for i, name in enumerate(SPELLINGS * 3)]),
        }
    )
    with duckdb.connect() as connection:
        connection.register("given", arrow(frame))
        kind = "VARCHAR"
        if where == "connection":
            connection.execute(f"PRAGMA default_collation='{collation}'")
        else:
            kind += f" COLLATE {collation}"
        connection.execute(f"CREATE TABLE rows (x {kind}, who {kind})")
        connection.execute("INSERT INTO rows SELECT x, who FROM given")
        relation = connection.table("rows")
        few = Categorical(["a", "é", "ss", "i", "1", ""], other="i", nullable=True)
        many = Categorical([*DECLARED, *(f"c{i}" for i in range(90))], nullable=True)
        for attribute in (few, many):
            assert_same_counts(relation, arrow(frame), Domain({"x": attribute}))
        # Persons whose names differ by no more than case or accent are different persons.
        alone = Domain({"x": Categorical(["a"], other="a", nullable=True)})
        kept = Contributions("who", 1, noise_source(1))
        assert count_rows(read_rows(relation), alone, kept).n == len(set(frame["who"]))


@pytest.mark.slow
@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI", "UTF8_BINARY_RTRIM"])
def test_collations_of_spark_join_no_categories_and_no_persons(collation):
    texts = ["a", "A", "a ", "á", "", None, "b"] * 2
    frame = pd.DataFrame({"x": pd.Series(texts, dtype=object), "who": texts})
    session = spark_session()
    if int(session.version.split(".")[0]) < 4:
        pytest.skip("without collations")
    plain = session.createDataFrame(list(zip(texts, texts, strict=True)), "x string, who string")
    rows = plain.selectExpr(*(f"{name} collate {collation} AS {name}" for name in ("x", "who")))
    for more in (0, 90):
        many = Categorical(["a", "b", "", *(f"c{i}" for i in range(more))], nullable=True)
        assert_same_counts(rows, frame, Domain({"x": many}))
    alone = Domain({"x": Categorical(["a"], other="a", nullable=True)})
    assert count_rows(read_rows(rows), alone, Contributions("who", 1, noise_source(1))).n == 6


def mixed(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(45, 20, n_rows),
            "city": pd.Series(rng.choice([f"city {i}" for i in range(40)], n_rows), dtype="str"),
            "Age": rng.integers(0, 9, n_rows),
        }
    )


@pytest.mark.slow
def test_the_farthest_timestamps_of_spark_are_counted():
    session = spark_session()
    micros = [2**63 - 1, -(2**63), -(2**63) + 1, 0]
    rows = session.createDataFrame([(each,) for each in micros], "m bigint")
    domain = Domain({"x": skdp.Datetime("1960-01-01", "1980-01-01", bins=2, unit="hour")})
    for zoned in ("timestamp_micros(m)", "CAST(timestamp_micros(m) AS TIMESTAMP_NTZ)"):
        table = count_rows(read_rows(rows.selectExpr(f"{zoned} AS x")), domain)
        assert (table.codes.tolist(), table.counts.tolist()) == ([[0], [1]], [2, 2])


@engines_and_spark
def test_one_column_is_counted(make):
    frame = mixed()[["age"]]
    assert_same_counts(make(frame), frame, Domain({"age": Numeric(0, 100, bins=8, nullable=True)}))


@engines_and_spark
def test_many_categories_and_many_cells(make):
    frame = mixed().rename(columns={"Age": "years"})
    cities = [*(f"city {i}" for i in range(0, 160, 2)), "it's", '"', "\\", "\n", "%", ""]
    domain = Domain(
        {
            "age": Numeric(0, 100, bins=2**30, nullable=True),
            "city": Categorical(cities, other="city 0"),
            "years": Numeric(0, 2**31, bins=2**30),
        }
    )
    assert domain.size > 2**62
    assert_same_counts(make(frame), frame, domain)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_category_that_no_sql_text_can_hold(engine):
    frame = pd.DataFrame({"text": pd.Series(["a\0b", "a", "c 3", "b"], dtype="str")})
    domain = Domain({"text": Categorical(["a\0b", *(f"c {i}" for i in range(90))])})
    table = count_rows(read_rows(ENGINES[engine](frame)), domain)
    assert table.codes.tolist() == [[0], [4]] and table.counts.tolist() == [1, 1]


def test_columns_that_differ_by_case_and_take_our_names():
    frame = mixed().rename(columns={"city": "skdp_0"})
    cities = Categorical([f"city {i}" for i in range(9)])
    domain = Domain({"Age": Numeric(0, 9), "age": Numeric(0, 90), "skdp_0": cities})
    assert_same_counts(polars_lazy(frame), frame, domain)


@engines
def test_text_in_dictionaries(engine):
    frame = mixed()[["city"]]
    frame["city"] = frame["city"].astype("category")
    domain = Domain({"city": Categorical(["city 1", "city 7"], other="city 1")})
    assert_same_counts(ENGINES[engine](frame), frame, domain)


@engines
def test_an_unknown_category_in_partition_seven_only(engine, tmp_path):
    frame = pd.DataFrame({"sex": pd.Series(["F", "M"] * 50, dtype="str")})
    for number in range(8):
        part = frame.copy()
        if number == 7:
            part.loc[3, "sex"] = "unheard of"
        arrow_table = pa.table({"sex": pa.array(part["sex"].tolist(), type=pa.string())})
        pa.parquet.write_table(arrow_table, tmp_path / f"part{number}.parquet")
    files = f"{tmp_path}/*.parquet"
    lazy = {
        "polars": lambda: pl.scan_parquet(files),
        "duckdb": lambda: CONNECTION.read_parquet(files),
        "dask": lambda: dd.read_parquet(files),
    }[engine]()
    skipped = count_rows(read_rows(lazy), Domain({"sex": Categorical(["F", "M"])}))
    assert skipped.counts.tolist() == [400, 399]
    other = count_rows(read_rows(lazy), Domain({"sex": Categorical(["F", "M", "x"], other="x")}))
    assert other.counts.tolist() == [400, 399, 1]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_decimals_are_numbers_but_no_categories(engine):
    table = pa.table(
        {"pay": pa.array([Decimal("1.25"), Decimal("7.50"), None], pa.decimal128(9, 2))}
    )
    assert_same_counts(ENGINES[engine](table), table, Domain({"pay": Numeric(0, 8, bins=32)}))
    with pytest.raises(DomainError, match="decimals.*cast it to text or to a float"):
        Domain({"pay": Categorical([1.25, 2.5])}).check_schema(read_rows(ENGINES[engine](table)))


@engines
def test_empty_frames_are_legal(engine):
    frame = mixed()[["age"]].iloc[:0]
    assert count_rows(read_rows(ENGINES[engine](frame)), Domain({"age": Numeric(0, 9)})).n == 0


def test_dask_reads_objects_one_by_one():
    values = pd.Series([1, "2", 2.5, None, "x", b"y", [3], Decimal("4"), 1j] * 4, dtype=object)
    frame = pd.DataFrame({"v": values})
    import dask

    with dask.config.set({"dataframe.convert-string": False}):
        lazy = dd.from_map(lambda start: frame.iloc[start : start + 9], range(0, 36, 9))
        assert str(lazy.dtypes["v"]) == "object"
        assert_same_counts(lazy, frame, Domain({"v": Numeric(0, 5, bins=5, nullable=True)}))
        assert_same_counts(lazy, frame, Domain({"v": Categorical([1, "2", "x"], nullable=True)}))


# -- equal releases

COUNTED = [
    "HDPViewSynthesizer",
    "PrivTreeSynthesizer",
    "KDTreeSynthesizer",
    "GridSynthesizer",
    "MarginalSynthesizer",
    "MarginalSynthesizer",
    "PrivBayesSynthesizer",
    "RangeTreeHistogram",
    "PrivPfCTransformer",
    "PrivPfCClassifier",
    "DiffGenTransformer",
    "ProjectedHistogramTransformer",
    "DataCube",
]


def people(n_rows=400):
    from estimators import people as generated

    frame = generated(n_rows)
    return frame.astype(dict.fromkeys(("sex", "work", "income"), "str"))


def released(estimator):
    """Everything that a fit assigned, in a form that compares."""
    state = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    if state.get("synopsis_") is not None:
        state["synopsis_"] = state["synopsis_"].to_frame().to_dict("list")
    # Only the loss of an engine assumes that types were declared.
    told = repr(sorted(state.items())).replace(f", assumes that {TYPES_DECLARED}", "")
    return re.sub(" at 0x[0-9a-f]*", "", told)


@pytest.mark.parametrize("name", COUNTED)
def test_releases_are_those_of_pandas(name):
    case = next(case for case in CASES if case.name == name)
    frame = case.rows(people())
    expected = released(case.make(random_state=3).fit(frame))
    for make in ENGINES.values():
        got = case.make(random_state=3).fit(make(frame))
        assert released(got) == expected
        assert list(got.feature_names_in_) == list(
            case.make(random_state=3).fit(frame).feature_names_in_
        )


@pytest.mark.slow
def test_release_through_spark():
    frame = people()
    case = next(case for case in CASES if case.name == "MarginalSynthesizer")
    expected = released(case.make(random_state=3).fit(frame))
    assert released(case.make(random_state=3).fit(spark_frame(frame))) == expected


def test_rows_sampled_are_of_a_library_in_memory():
    case = next(case for case in CASES if case.name == "GridSynthesizer")
    libraries = {"polars": pl.DataFrame, "duckdb": pd.DataFrame, "dask": pd.DataFrame}
    for engine, kind in libraries.items():
        view = case.make().fit(ENGINES[engine](people()))
        assert isinstance(view.sample(5), kind)


# -- projections of large domains

PROJECTED = [
    "MarginalSynthesizer",
    "MarginalSynthesizer",
    "PrivPfCTransformer",
    "PrivPfCClassifier",
    "DiffGenTransformer",
    "DataCube",
]


def wide(n_rows=500):
    rng = np.random.default_rng(5)
    level = rng.normal(size=n_rows)
    columns = {f"c{j}": level * (j % 3) + rng.normal(size=n_rows) for j in range(7)}
    return pd.DataFrame(
        {**columns, "side": pd.Series(np.where(level > 0, "up", "down"), dtype="str")}
    )


WIDE = Domain(
    {
        **{f"c{j}": Numeric(-3, 3, bins=16, nullable=j == 2) for j in range(7)},
        "side": Categorical(["up", "down"], nullable=True),
    }
)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("target", [None, "side", "c1"])
def test_pair_views_of_a_large_domain_are_those_of_pandas(engine, target, monkeypatch):
    assert WIDE.size > 2**24
    cells = []
    view = functools.partial(
        skdp.MarginalSynthesizer, epsilon=2.0, domain=WIDE, target=target, random_state=1
    )
    expected = view().fit(wide())
    fill = coded_module.EngineCodes._fill

    def watched(self, tallies):
        cells.append(len(tallies.cells))
        return fill(self, tallies)

    monkeypatch.setattr(coded_module.EngineCodes, "_fill", watched)
    got = view().fit(ENGINES[engine](wide()))
    assert released(got) == released(expected)
    # All pairs fit, with or without the class, and are counted ahead; not a grid of the class.
    assert len(cells) <= 2 and cells[0] <= 2**24


@pytest.mark.parametrize(
    "limits",
    [{}, {"kept": 40}, {"kept": 0, "held": 30}, {"batches": False}, {"batches": False, "kept": 9}],
)
@pytest.mark.parametrize("name", PROJECTED)
def test_projections_release_what_the_whole_table_does(name, limits, monkeypatch):
    case = next(case for case in CASES if case.name == name)
    frame = case.rows(people())
    expected = released(case.make(random_state=3).fit(frame))
    monkeypatch.setattr(encode, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(encode, "_KEPT_CELLS", limits.get("kept", 2**24))
    monkeypatch.setattr(encode, "_DENSE_CELLS", limits.get("held", 2**22))
    monkeypatch.setattr(passes, "PASS_CELLS", limits.get("held", 2**24))
    if not limits.get("batches", True):
        monkeypatch.setattr(coded_module, "gives_batches", lambda frame, engine: False)
    assert released(case.make(random_state=3).fit(polars_lazy(frame))) == expected


@pytest.mark.parametrize(("encoding", "theta"), [("vanilla", 0.01), ("hierarchical", 0.4)])
def test_privbayes_reads_a_frame_three_times_at_most(encoding, theta, monkeypatch):
    monkeypatch.setattr(encode, "MOST_AT_ONCE", 1)
    asked = []
    for name in ("tables", "count"):
        first = getattr(coded_module.CodedRows, name)

        def counted(rows, *arguments, first=first):
            asked.append(arguments)
            return first(rows, *arguments)

        monkeypatch.setattr(coded_module.CodedRows, name, counted)
    frame, keywords = wide(), {"domain": WIDE, "encoding": encoding, "theta": theta}
    make = functools.partial(skdp.PrivBayesSynthesizer, epsilon=1.0, **keywords, random_state=1)
    view = make().fit(polars_lazy(frame))
    assert len(view.synopsis_.model.pairs) > 4
    assert 1 <= len(asked) <= 3
    assert released(view) == released(make().fit(frame))


@engines_and_spark
def test_projections_count_what_the_whole_table_does(make, monkeypatch):
    frame = wide()
    whole = count_rows(as_frame(frame), WIDE)
    monkeypatch.setattr(encode, "MOST_AT_ONCE", 1)
    lazy = count_rows(read_rows(make(frame)), WIDE, together=())
    halves = [np.arange(size) // 2 for size in WIDE.shape]
    sets = [(axes, [None] * 2) for axes in itertools.combinations(range(len(WIDE)), 2)]
    sets += [(axes, [halves[axis] for axis in axes]) for axes in ((0, 3, 5), (7, 1, 2), ())]
    for mine, its in zip(whole.regrouped_many(sets), lazy.regrouped_many(sets), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_a_table_that_may_not_fit_is_announced_before_the_charge():
    ledger = skdp.PrivacyLedger(9)
    view = skdp.PrivTreeSynthesizer(domain=WIDE, ledger=ledger)
    with pytest.warns(
        UserWarning, match=r"48 bytes each.*hundred million take 5 GB.*MarginalSynthesizer"
    ):
        view.fit(polars_lazy(wide()))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        view.fit(wide())
        with pytest.raises(UserWarning):
            skdp.PrivTreeSynthesizer(domain=WIDE, ledger=ledger).fit(polars_lazy(wide()))
    assert len(ledger.to_frame()) == 2


@pytest.mark.filterwarnings("ignore:.*loads the table of all:UserWarning")
def test_who_needs_the_whole_table_gets_it(monkeypatch):
    monkeypatch.setattr(encode, "MOST_AT_ONCE", 1)
    for name in ("HDPViewSynthesizer", "ProjectedHistogramTransformer", "GridSynthesizer"):
        case = next(case for case in CASES if case.name == name)
        frame = case.rows(people())
        expected = released(case.make(random_state=3).fit(frame))
        assert released(case.make(random_state=3).fit(polars_lazy(frame))) == expected


def test_a_frame_that_changes_between_two_passes():
    # Every pass is a release of the rows it finds; none may stumble over the difference.
    CONNECTION.execute("CREATE OR REPLACE TABLE growing AS SELECT * FROM (VALUES (0.5)) AS t(x)")
    for name in list(WIDE.names)[1:]:
        kind = "VARCHAR" if name == "side" else "DOUBLE"
        CONNECTION.execute(f"ALTER TABLE growing ADD COLUMN {name} {kind}")
    CONNECTION.execute("ALTER TABLE growing RENAME COLUMN x TO c0")
    relation = CONNECTION.table("growing")
    ledger = skdp.PrivacyLedger(1)
    view = skdp.MarginalSynthesizer(epsilon=1.0, domain=WIDE, ledger=ledger)
    read = coded_module.read_batches
    times = []

    def growing(frame, engine):
        yield from read(frame, engine)
        times.append(1)
        values = ", ".join(["random() * 6 - 3"] * 7)
        for _ in range(len(times)):
            CONNECTION.execute(f"INSERT INTO growing SELECT {values}, 'up' FROM range(300)")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded_module, "read_batches", growing)
        patch.setattr(encode, "_KEPT_CELLS", 100)
        view.fit(relation)
    assert len(times) > 2
    assert ledger.spent == 1 and len(ledger.to_frame()) == 1
    assert view.sample(5).shape == (5, 8)


# -- refusals and failures


def view(**changes):
    domain = Domain({"age": Numeric(0, 99), "sex": Categorical(["F", "M"])})
    return skdp.GridSynthesizer(**{"domain": domain, **changes})


def two_columns():
    return pd.DataFrame({"age": [1.0, 2.0, 3.0], "sex": pd.Series(["F", "M", "F"], dtype="str")})


@engines
def test_labels_apart_from_a_lazy_frame_are_refused(engine):
    ledger = skdp.PrivacyLedger(1)
    lazy = ENGINES[engine](two_columns()[["age"]])
    with pytest.raises(TypeError, match="no order that 'sex'.*name it in target="):
        view(target="sex", ledger=ledger).fit(lazy, np.array(["F", "M", "F"]))
    assert ledger.spent == 0


@engines
def test_schema_errors_cost_nothing(engine):
    ledger = skdp.PrivacyLedger(1)
    frame = two_columns()
    wrong = {
        "Missing: 'sex'": frame[["age"]],
        "Not declared: 'more'": frame.assign(more=1),
        "holds text; convert it to numbers": frame.assign(age=pd.Series(["x"] * 3, dtype="str")),
        "holds dates or times": frame.assign(age=pd.Timestamp("2020-01-01")),
        "declare it Date or Datetime": frame.assign(sex=pd.Timestamp("2020-01-01")),
    }
    if engine == "dask":
        # Like pandas it takes numbers beside one text for text.
        del wrong["holds text; convert it to numbers"]
    for message, rows in wrong.items():
        with pytest.raises(DomainError, match=message):
            view(ledger=ledger).fit(ENGINES[engine](rows))
    assert ledger.spent == 0


def test_columns_of_one_name_are_refused():
    relation = duckdb_relation(two_columns()).select("age, sex, sex")
    with pytest.raises(DomainError, match="must be unique, but 'sex'"):
        view().fit(relation)


def test_dates_in_duckdb_are_refused_by_type():
    table = pa.table({"age": pa.array([datetime.date(2020, 1, 1)]), "sex": ["F"]})
    with pytest.raises(DomainError, match="dates or times; declare it Date or Datetime"):
        view().fit(duckdb_relation(table))


def test_objects_inside_polars_are_refused():
    frame = pl.DataFrame({"age": [1.0], "sex": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(DomainError, match="neither text nor numbers; convert it to text"):
        view().fit(frame.lazy())


@pytest.mark.parametrize("name", ["DPTopKSelector", "PrivateStandardScaler"])
@engines
def test_what_reads_rows_one_by_one_refuses_before_the_charge(name, engine):
    case = next((case for case in CASES if case.name == name), None)
    ledger = skdp.PrivacyLedger(1)
    estimator = case.make(ledger=ledger)
    with pytest.raises(TypeError, match="lazy, and only frames in memory.*Collect it first"):
        estimator.fit(ENGINES[engine](case.rows(people())))
    assert ledger.spent == 0


@engines
def test_transforms_refuse_lazy_frames(engine):
    lazy = ENGINES[engine](two_columns())
    domain = Domain({"age": Numeric(0, 99), "sex": Categorical(["F", "M"])})
    with pytest.raises(TypeError, match="Collect it first"):
        domain.check(lazy)


def test_paths_are_refused_with_a_way_to_read_them():
    with pytest.raises(TypeError, match="Make it a frame first.*skdp\\[duckdb\\]"):
        view().fit("people.parquet")


def test_a_file_that_is_not_there_is_an_error_of_the_schema():
    ledger = skdp.PrivacyLedger(1)
    lazy = pl.scan_parquet("no such file of Alice.parquet")
    with pytest.raises(DomainError, match="cannot tell the columns.*Nothing was") as caught:
        view(ledger=ledger).fit(lazy)
    assert "Alice" not in str(caught.value) and caught.value.__context__ is None
    assert ledger.spent == 0


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


@engines
def test_a_failing_plan_is_charged_once_and_its_words_are_withheld(engine):
    ledger = skdp.PrivacyLedger(1)
    estimator = view(ledger=ledger, epsilon=0.25)
    with pytest.raises(EngineError, match="failed to count the rows.*stays spent") as caught:
        estimator.fit(failing(engine))
    error = caught.value
    assert not any(word in str(error) for word in ("Alice", "cannot stand", "F"))
    assert error.__context__ is None and error.__cause__ is None
    assert float(ledger.spent) == 0.25
    assert len(ledger.to_frame()) == 1
    assert not hasattr(estimator, "synopsis_")


# -- k-means: rounds over the rows


def clusters(n_rows=900, gaps=True):
    rng = np.random.default_rng(0)
    parts = [rng.normal(mean, 0.7, size=(n_rows // 3, 3)) for mean in (-4, 0, 5)]
    frame = pd.DataFrame(np.concatenate(parts), columns=["a", "b", "c"])
    if gaps:
        frame.loc[::40, "b"] = NAN
        frame.loc[1::40, "c"] = INF
    return frame


@pytest.mark.parametrize("algorithm", ["auto", "lloyd", "hybrid"])
@engines_and_spark
def test_kmeans_is_that_of_pandas(make, algorithm):
    frame = clusters()
    kmeans = functools.partial(
        skdp.DPKMeans,
        3,
        epsilon=4.0,
        bounds=(-10, 10),
        algorithm=algorithm,
        n_init=4,
        random_state=1,
    )
    expected, got = kmeans().fit(frame), kmeans().fit(make(frame))
    assert released(got) == released(expected)
    np.testing.assert_array_equal(got.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(got.cluster_counts_, expected.cluster_counts_)


def test_kmeans_with_wide_bounds_is_that_of_pandas():
    frame = clusters(1_200)
    kmeans = functools.partial(
        skdp.DPKMeans, 3, epsilon=8.0, bounds=(-999, 999), n_init=2, random_state=1
    )
    expected = kmeans().fit(frame)
    assert expected.synopsis_.domain["a"].bins > 64
    for make in (polars_lazy, duckdb_relation):
        got = kmeans().fit(make(frame))
        np.testing.assert_array_equal(got.cluster_centers_, expected.cluster_centers_)
        assert released(got) == released(expected)


def test_uneven_parts_in_an_engine_are_those_of_the_edges():
    codes = np.arange(1000)
    edges = np.array([0, 3, 4, 500, 501, 999, 1000])
    domain = Domain({"a": Numeric(0, 999, integer=True)})
    expected = np.repeat(np.arange(6), np.diff(edges))
    for make in (polars_lazy, duckdb_relation):
        coded = read_rows(make(pd.DataFrame({"a": codes}))).coded(domain)
        parts, counts = coded.parts([edges])
        found = dict(zip(parts[:, 0].tolist(), counts.tolist(), strict=True))
        assert found == dict(enumerate(np.bincount(expected).tolist()))
        cells, counts = coded.cells([edges])
        assert cells.tolist() == list(range(6)) and counts.sum() == 1000


@settings(max_examples=5)
@given(
    st.lists(st.tuples(*[st.integers(0, 2**20 - 1)] * 3), min_size=1, max_size=20),
    st.lists(st.tuples(*[st.integers(0, 2**20 - 1)] * 3), min_size=1, max_size=4),
    st.integers(1, 2**21),
)
def test_clipped_sums_in_an_engine_are_the_same_integers(points, centroids, reach):
    points, centroids = np.array(points, dtype=np.int32), np.array(centroids)
    domain = Domain({name: Numeric(0, 2**20 - 1, integer=True) for name in "abc"})
    frame = pd.DataFrame(points, columns=list("abc"))
    limits = np.full(len(centroids), reach)
    for clip in (limits, None):
        expected = residual_sums(points, centroids, clip)
        for engine in ("polars", "duckdb"):
            got = residual_sums(read_rows(ENGINES[engine](frame)).coded(domain), centroids, clip)
            np.testing.assert_array_equal(got[0], expected[0])
            np.testing.assert_array_equal(got[1], expected[1])


def test_grid_cells_in_an_engine_are_those_of_the_edges():
    codes = np.arange(1000)
    frame = pd.DataFrame({"a": codes, "b": codes[::-1]})
    domain = Domain({name: Numeric(0, 999, integer=True) for name in "ab"})
    coded = read_rows(polars_lazy(frame)).coded(domain)
    for sides in ((1, 7), (13, 999), (1000, 3)):
        places = [
            np.searchsorted(np.arange(1, side) * 1000 // side, values, side="right")
            for side, values in zip(sides, (codes, codes[::-1]), strict=True)
        ]
        expected = np.unique(np.ravel_multi_index(places, sides), return_counts=True)
        got = coded.cells(sides)
        np.testing.assert_array_equal(got[0], expected[0])
        np.testing.assert_array_equal(got[1], expected[1])


@pytest.mark.parametrize("algorithm", ["genetic", "sample-aggregate"])
def test_kmeans_that_reads_rows_one_by_one_refuses_before_the_charge(algorithm):
    ledger = skdp.PrivacyLedger(1)
    model = skdp.DPKMeans(2, bounds=(0, 9), algorithm=algorithm, ledger=ledger)
    with pytest.raises(TypeError, match="Collect it first"):
        model.fit(polars_lazy(clusters()))
    assert ledger.spent == 0


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_messages_do_not_list_the_categories_of_an_enum(engine):
    # A type that was made from the values is no schema that may be shown.
    frame = pl.DataFrame({"x": pl.Series(["Canary", "b"], dtype=pl.Enum(["Canary", "b"]))})
    make = {
        "polars": frame.lazy,
        "duckdb": lambda: CONNECTION.sql("SELECT 'Canary'::ENUM('Canary', 'b') AS x"),
    }
    with pytest.raises(DomainError, match="declared Numeric but holds text") as caught:
        Domain({"x": Numeric(0, 1)}).check_schema(read_rows(make[engine]()))
    assert "Canary" not in str(caught.value)


# -- a cluster


def slow_encode(part, folder):
    """Tell which worker holds a partition, and take a while."""
    import os
    import time
    from pathlib import Path

    Path(folder, f"{os.getpid()}").touch()
    time.sleep(0.2)
    return part


@pytest.mark.slow
def test_a_dask_worker_killed_in_the_middle_of_a_fit(tmp_path):
    import os
    import signal
    import threading
    import time

    distributed = pytest.importorskip("distributed")
    frame = people(2_000)
    case = next(case for case in CASES if case.name == "MarginalSynthesizer")
    ledger = skdp.PrivacyLedger(2)
    expected = case.make(random_state=3).fit(frame)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        lazy = dd.from_pandas(frame, npartitions=40)
        lazy = lazy.map_partitions(slow_encode, str(tmp_path), meta=frame.iloc[:0])
        killed = []

        def kill():
            while not list(tmp_path.iterdir()):
                time.sleep(0.05)
            time.sleep(0.5)
            killed.append(int(next(tmp_path.iterdir()).name))
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            view = case.make(ledger=ledger, random_state=3).fit(lazy)
        except EngineError:
            view = None
        killer.join()
    assert killed and killed[0] != os.getpid()
    assert ledger.spent == 1 and len(ledger.to_frame()) == 1
    # It finishes with every row counted once, or releases nothing at all.
    assert view is None or released(view) == released(expected)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_grids_of_more_cells_than_32_bits_hold_are_counted(engine):
    """Re-cut ranges of many columns have keys above 2**31."""
    backend = pytest.importorskip(engine)
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(50, 1, (5_000, 5)), columns=list("abcde"))
    lazy = backend.from_pandas(rows).lazy() if engine == "polars" else backend.sql("from rows")

    def centres(table):
        model = skdp.DPKMeans(3, epsilon=20.0, bounds=(0, 100), random_state=0).fit(table)
        return model.cluster_centers_

    np.testing.assert_allclose(centres(lazy), centres(rows))


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_rows_that_do_not_fit_into_memory_are_not_counted_aloud(engine, monkeypatch):
    lazy = {"polars": polars_lazy, "duckdb": duckdb_relation, "dask": dask_frame}[engine]
    names = [f"x{axis}" for axis in range(51)]
    rows = lazy(pd.DataFrame(np.zeros((37, 51)), columns=names))

    def exhausted(codes, counts, axis):
        raise MemoryError(f"Unable to allocate an array with shape ({counts.sum()}, 51)")

    monkeypatch.setattr(np, "repeat", exhausted)
    with pytest.raises(EngineError, match="withheld") as caught:
        skdp.DPKMeans(2, bounds=(-1, 1)).fit(rows)
    assert "37" not in str(caught.value) and caught.value.__context__ is None
