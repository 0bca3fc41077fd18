"""Tables that are given back: drawn, filled and completed rows, in the library of the user."""

import numpy as np
import pandas as pd
import pytest
from loops import over

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


TYPES = {
    "pandas": ["float64", "int64", "Int64", "boolean"],
    "polars": ["Float64", "Int64", "Int64", "Boolean"],
    "pyarrow": ["double", "int64", "int64", "bool"],
}


@over("library", TYPES)
def test_columns_have_the_types_of_each_library_with_and_without_rows(library):
    built = as_frame(build_frame(COLUMNS, like=library))
    assert list(built.dtypes.values())[:4] == TYPES[library]
    assert (built.kinds["s"], built.n_rows) in ((kind, 3) for kind in ("string", "object"))
    assert [built.column(name).objects() for name in built.names][2:] == [
        *([1, None, 3], [True, None, False], ["x", None, "z"])
    ]
    empty = {name: pd.Series(values)[:0] for name, values in COLUMNS.items()}
    none = as_frame(build_frame(empty, like=library))
    assert (none.n_rows, none.dtypes) == (0, built.dtypes)


def test_rows_are_joined_by_position():
    odd = {"a": pd.Series([1, 2], index=[7, 8]), "b": pd.Series([3, 4])}
    assert build_frame(odd, like="pandas").to_numpy().tolist() == [[1, 3], [2, 4]]


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
        "id": Identifier(),
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
    "polars": [pl.Int64, pl.Date, pl.Datetime("us", "UTC"), pl.Int64, pl.Float64, pl.String]
    + [pl.Boolean],
    "pyarrow": [pa.int64(), pa.date32(), pa.timestamp("us", "UTC"), pa.int64(), pa.float64()]
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
