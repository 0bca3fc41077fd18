"""Tables that are given back: drawn, filled and completed rows, in the library of the user."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from loops import over

import skdp
from skdp import Categorical, Date, Datetime, Domain, Identifier, Numeric
from skdp.tables import Layout, as_frame, build_frame

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

COLUMNS = {
    "zahl": pd.Series([1.5, np.nan, 2.5]),
    "n": pd.Series([1, 2, 3]),
    "m": pd.array([1, None, 3], dtype="Int64"),
    "b": pd.array([True, None, False], dtype="boolean"),
    "s": np.array(["x", None, "z"], dtype=object),
}


def test_columns_have_the_types_of_each_library():
    built = build_frame(COLUMNS, like=pd.DataFrame({"a": [1]}))
    assert [str(dtype) for dtype in built.dtypes][:4] == ["float64", "int64", "Int64", "boolean"]
    built = build_frame(COLUMNS, like=pl.DataFrame({"a": [1]}))
    assert built.dtypes == [pl.Float64, pl.Int64, pl.Int64, pl.Boolean, pl.String]
    rows = [(1.5, 1, 1, True, "x"), (None, 2, None, None, None), (2.5, 3, 3, False, "z")]
    assert built.rows() == rows
    arrow = build_frame(COLUMNS, like="pyarrow")
    assert [str(kind) for kind in arrow.schema.types[:4]] == ["double", "int64", "int64", "bool"]
    assert [tuple(row.values()) for row in arrow.to_pylist()] == rows
    odd = {"a": pd.Series([1, 2], index=[7, 8]), "b": pd.Series([3, 4])}
    assert build_frame(odd, like="pandas").to_numpy().tolist() == [[1, 3], [2, 4]]


@over("library", ["pandas", "polars", "pyarrow"])
def test_build_without_rows_keeps_types(library):
    empty = {name: pd.Series(values)[:0] for name, values in COLUMNS.items()}
    built, full = (as_frame(build_frame(each, like=library)) for each in (empty, COLUMNS))
    assert (built.n_rows, built.dtypes) == (0, full.dtypes)


def test_build_mixed_columns_as_text_where_there_is_no_such_type():
    mixed = {"a": pd.Series(["x", 1, None], dtype=object)}
    assert build_frame(mixed, like="polars")["a"].to_list() == ["x", "1", None]
    assert build_frame(mixed, like="pandas")["a"].tolist() == ["x", 1, None]
    assert build_frame(mixed, like="numpy").tolist() == [["x"], [1], [None]]


def test_build_arrays():
    for names, dtype in ((["n"], int), (["n", "m"], float), (["n", "s"], object)):
        built = build_frame({name: COLUMNS[name] for name in names}, like=np.zeros((1, 1)))
        assert (built.shape, built.dtype) == ((3, len(names)), dtype)
    assert build_frame({"b": np.array([True, False])}, like="numpy").dtype == bool


DOMAIN = Domain(
    {
        "id": Identifier("C{:03d}"),
        "day": Date("2020-01-01", "2020-12-31", nullable=True),
        "at": Datetime("2020-01-01", "2020-12-31", unit="hour", tz="UTC", nullable=True),
        "n": Numeric(0, 9, integer=True, nullable=True),
        "pay": Numeric(0, 1, decimals=2),
        "sex": Categorical(["F", "M"], nullable=True),
        "flag": Categorical([True, False]),
    }
)
LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
SCHEMAS = {
    "polars": [pl.String, pl.Date, pl.Datetime("us", "UTC"), pl.Int64, pl.Float64, pl.String]
    + [pl.Boolean],
    "pyarrow": [pa.string(), pa.date32(), pa.timestamp("us", "UTC"), pa.int64(), pa.float64()]
    + [pa.string(), pa.bool_()],
}


def records(n=12):
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, n) for size in DOMAIN.shape], axis=1)
    codes[:3] = [[size - 1 for size in DOMAIN.shape]] * 3
    return DOMAIN.decode(codes, 0), codes


@pytest.mark.parametrize("library", LIBRARIES)
def test_drawn_rows_have_the_types_of_the_domain_in_every_library(library):
    rows, codes = records()
    given = LIBRARIES[library](rows[["n", "day", "sex"]])
    layout = Layout(given, as_frame(given), DOMAIN)
    assert layout.given == ("n", "day", "sex") and set(layout.names) == set(DOMAIN.columns)
    for some in (rows, rows[:0], rows[rows["n"].notna()]):
        built = layout.build({name: some[name] for name in some})
        assert tuple(as_frame(built).names) == layout.names
        if library != "pandas":
            types = dict(zip(DOMAIN.columns, SCHEMAS[library], strict=True))
            schema = built.schema
            found = [
                schema[n] if library == "polars" else schema.field(n).type for n in layout.names
            ]
            known = [str(each).replace("large_", "") for each in found]
            assert known == [str(types[name]) for name in layout.names]
        assert DOMAIN.encode(built).tolist() == DOMAIN.encode(some).tolist()
    assert DOMAIN.encode(rows).tolist() == codes.tolist()


def test_arrays_and_the_names_of_pandas():
    rows, codes = records()
    plain = DOMAIN.select(["n", "pay"])
    array = np.zeros((3, 2))
    read = plain.with_names(as_frame(array))
    built = Layout(array, read, plain).build(rows[["n", "pay"]])
    assert built.dtype == np.float64 and np.isnan(built[0, 0])
    days = DOMAIN.select(["day"])
    assert Layout(array, read, days).build(rows[["day"]]).dtype == np.dtype("M8[us]")
    given = rows[["n"]].rename_axis("row").rename_axis("column", axis=1)
    made = Layout(given, as_frame(given), plain).build(rows[["n", "pay"]])
    assert made.index.name == "row" and made.columns.name == "column"


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_are_filled_and_completed_and_otherwise_as_they_are(library):
    rng = np.random.default_rng(1)
    domain = Domain({"n": Numeric(0, 9, integer=True), "day": Date("2020-01-01", "2020-01-31")})
    days = [dt.date(2020, 1, 1 + int(k)) for k in rng.integers(0, 31, 300)]
    frame = pd.DataFrame({"n": rng.integers(0, 10, 300), "day": days})
    frame["day"] = frame["day"].astype("M8[us]")
    table = LIBRARIES[library](frame)
    model = skdp.GridSynthesizer(epsilon=5.0, domain=domain, random_state=0).fit(table)
    holes = frame.astype({"n": "Int64"})
    holes.loc[::3, "n"] = pd.NA
    holes.loc[::5, "day"] = pd.NaT
    given = LIBRARIES[library](holes)
    filled = model.impute(given, random_state=0)
    assert type(filled) is type(given)
    assert as_frame(filled).dtypes == as_frame(given).dtypes
    codes, known = domain.encode(filled), domain.encode(given)
    assert (codes >= 0).all() and (codes[known >= 0] == known[known >= 0]).all()
    some = LIBRARIES[library](frame[["n"]])
    whole = model.sample(given=some, random_state=0)
    assert type(whole) is type(some) and as_frame(whole).names == ("n", "day")
    assert domain.encode(whole)[:, 0].tolist() == frame["n"].tolist()
    assert (domain.encode(whole) >= 0).all()
