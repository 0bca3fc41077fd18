"""Skeletons of domains: code made from the types of a frame, without a value."""

from __future__ import annotations

import datetime
import enum

import narwhals.stable.v2 as narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdp import Domain, DomainError


def lines(source):
    return [line.strip() for line in Domain.skeleton(source).splitlines() if line[:5] == "    '"]


def test_skeleton_of_pandas_types():
    frame = pd.DataFrame(
        {
            "age": np.array([1], dtype="int8"),
            "pay": [1.5],
            "sex": pd.Categorical(["F"], categories=["F", "M"]),
            "grade": pd.Categorical(["b"], categories=["a", "b"], ordered=True),
            "ok": [True],
            "gap": pd.array([1], dtype="Int64"),
            "any": np.array([1], dtype=object),
        }
    )
    assert lines(frame) == [
        "'age': domains.age(),  # int8",
        "'pay': Numeric(..., ..., nullable=True),  # float64",
        "'sex': Categorical(['F', 'M'], nullable=True),  # category",
        "'grade': Categorical(['a', 'b'], ordered=True, nullable=True),  # category",
        "'ok': Categorical([False, True]),  # bool",
        "'gap': Numeric(..., ..., integer=True, nullable=True),  # Int64",
        "'any': ...,  # object: Numeric(..., ...), Categorical([...]), Date(..., ...) or "
        "Identifier()",
    ]


def test_skeleton_of_dates():
    frame = pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}, dtype="datetime64[ns]")
    frame["z"] = frame["d"].dt.tz_localize("Europe/Berlin")
    frame["m"] = frame["d"].dt.to_period("M")
    found = lines(frame)
    assert found[0].startswith("'d': Date(..., ..., nullable=True),  # datetime64[ns]; Datetime(")
    assert found[1].startswith("'z': Datetime(..., ..., tz='UTC', nullable=True),")
    assert found[2].startswith("'m': Date(..., ..., unit='month', nullable=True),")
    assert "Date, Datetime, Domain" in Domain.skeleton(frame)


@pytest.mark.parametrize("lazy", [False, True])
def test_skeleton_of_polars_types(lazy):
    frame = pl.DataFrame(
        {"a": [1], "b": ["x"], "d": [datetime.date(2020, 1, 1)], "l": [[1]]},
        schema_overrides={"b": pl.Enum(["x", "y"])},
    ).with_columns(t=pl.lit(datetime.datetime(2020, 1, 1), pl.Datetime("ms", "UTC")))
    code = Domain.skeleton(frame.lazy() if lazy else frame)
    assert "'a': Numeric(..., ..., integer=True, nullable=True),  # Int64" in code
    assert "'b': Categorical(['x', 'y'], ordered=True, nullable=True),  # Enum" in code
    assert "'d': Date(..., ..., nullable=True),  # Date" in code
    assert "'t': Datetime(..., ..., tz='UTC', nullable=True)," in code
    assert "# 'l': List(Int64) has no attribute" in code
    assert Domain.skeleton(frame.schema) == code


def test_skeleton_of_arrow_types():
    schema = pa.schema(
        [
            pa.field("a", pa.uint8(), nullable=False),
            pa.field("b", pa.dictionary(pa.int8(), pa.string())),
            pa.field("c", pa.decimal128(10, 2)),
            pa.field("d", pa.date32()),
            pa.field("t", pa.timestamp("us", "UTC")),
            pa.field("x", pa.binary()),
        ]
    )
    code = Domain.skeleton(schema)
    assert "'a': Numeric(..., ..., integer=True),  # uint8" in code
    assert "'b': Categorical([...], nullable=True)," in code
    assert "'c': Numeric(..., ..., decimals=2, nullable=True)," in code
    assert "'d': Date(..., ..., nullable=True),  # date32[day]" in code
    assert "'t': Datetime(..., ..., tz='UTC', nullable=True)," in code
    assert "# 'x': binary has no attribute" in code
    assert Domain.skeleton(schema.empty_table()) == code


def test_skeleton_of_engines():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(
        "select 1::BIGINT a, 'x' b, 1.5::DECIMAL(10, 2) c, 'u'::ENUM('u', 'v') e, "
        "date '2020-01-01' d, timestamp '2020-01-01 00:00:00' t"
    )
    code = Domain.skeleton(relation)
    assert "'a': Numeric(..., ..., integer=True, nullable=True)," in code
    assert "'b': Categorical([...], nullable=True)," in code
    assert "'c': Numeric(..., ..., decimals=2, nullable=True)," in code
    assert "'e': Categorical(['u', 'v'], nullable=True)," in code
    assert "'d': Date(..., ..., nullable=True)," in code
    assert "'t': Datetime(..., ..., nullable=True)," in code


def test_skeleton_of_spark_types():
    types = pytest.importorskip("pyspark.sql.types")
    schema = types.StructType(
        [
            types.StructField("a", types.LongType(), nullable=False),
            types.StructField("c", types.DecimalType(10, 2)),
            types.StructField("d", types.DateType()),
            types.StructField("t", types.TimestampType()),
            types.StructField("l", types.ArrayType(types.LongType())),
        ]
    )
    code = Domain.skeleton(schema)
    assert "'a': Numeric(..., ..., integer=True),  # bigint" in code
    assert "'c': Numeric(..., ..., decimals=2, nullable=True)," in code
    assert "'d': Date(..., ..., nullable=True)," in code
    assert "'t': Datetime(..., ..., tz='UTC', nullable=True)," in code
    assert "# 'l': array<bigint> has no attribute" in code


def test_skeleton_of_narwhals_is_that_of_its_library():
    frame = pl.DataFrame({"a": [1], "b": ["x"]}, schema_overrides={"b": pl.Enum(["x", "y"])})
    assert Domain.skeleton(narwhals.from_native(frame)) == Domain.skeleton(frame)
    assert Domain.skeleton(narwhals.from_native(frame.lazy())) == Domain.skeleton(frame)


def test_skeleton_of_identifiers():
    code = Domain.skeleton({"id": "uuid", "a": "bool"})
    assert (
        "'id': Identifier(),  # uuid" in code and "import Categorical, Domain, Identifier" in code
    )


@pytest.mark.filterwarnings(r"ignore::DeprecationWarning:dask\..*")
@pytest.mark.filterwarnings(r"ignore::FutureWarning:dask\..*")
def test_skeleton_of_dask_reads_no_unknown_categories():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(pd.DataFrame({"a": [1], "b": pd.Categorical(["x"])}), npartitions=1)
    frame = frame.assign(c=frame["b"].cat.as_unknown())
    code = Domain.skeleton(frame)
    assert "'b': Categorical(['x'], nullable=True)," in code
    assert "'c': Categorical([...], nullable=True)," in code


def test_skeleton_of_arrays_and_mappings():
    assert lines(np.zeros((3, 2))) == lines({"x0": "float64", "x1": "float64"})
    assert lines({"a": float}) == ["'a': Numeric(..., ..., nullable=True),  # float"]
    assert lines(np.dtype([("a", "i4"), ("b", "U3")]))[0].startswith("'a': Numeric(")

    class Colour(enum.Enum):
        RED = "red"

    assert "Categorical(['red'], nullable=True)" in lines({"c": Colour})[0]


def test_skeleton_shows_itself_and_runs_only_when_filled():
    code = Domain.skeleton({"age": "int64", "sex": "category", "pay": "float64"})
    assert repr(code) == str(code) and isinstance(code, str)
    with pytest.raises(DomainError, match=r" is still `\.\.\.`, a placeholder"):
        exec(code, {})
    with pytest.raises(DomainError, match=r"lower is still `\.\.\.`, a placeholder"):
        exec(Domain.skeleton({"d": "date"}), {})
    with pytest.raises(DomainError, match=r"Category is still `\.\.\.`, a placeholder"):
        exec(code.replace("Numeric(..., ...", "Numeric(0, 9"), {})
    names: dict = {}
    exec(code.replace("Numeric(..., ...", "Numeric(0, 9").replace("[...]", "['F', 'M']"), names)
    assert names["domain"].names == ("age", "sex", "pay")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' are repeated.*makes them different"),
        (pd.DataFrame([[1, 2]]), "must be strings, got 0 of type int"),
        (pd.DataFrame([[1]], columns=[" "]), "empty name"),
        (pd.DataFrame(), "no columns"),
        (pa.table([[1], [2]], names=["a", "a"]), "'a' are repeated"),
        (np.zeros(3), "two dimensions"),
        (7, "does not list columns"),
    ],
)
def test_skeleton_refuses_names_that_no_domain_can_have(frame, message):
    with pytest.raises(DomainError, match=message):
        Domain.skeleton(frame)


def test_skeleton_of_thousands_of_columns_and_a_million_categories():
    many = Domain.skeleton({f"c{i}": "int64" for i in range(2_000)})
    assert many.count("Numeric(") == 2_000
    dtype = pd.CategoricalDtype([f"v{i}" for i in range(1_000_000)])
    code = Domain.skeleton({"c": dtype})
    assert len(code) < 1_000 and "1,000,000 categories" in code
