import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdp import Categorical, Date, Datetime, Domain, Identifier, Numeric
from skdp.tables import Layout, as_frame, build_frame, row_taker, take_rows

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
        built = build_frame({name: some[name] for name in some}, layout)
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
    built = build_frame(rows[["n", "pay"]], Layout(array, read, plain))
    assert built.dtype == np.float64 and np.isnan(built[0, 0])
    given = rows[["n"]].rename_axis("row").rename_axis("column", axis=1)
    made = build_frame(rows[["n", "pay"]], Layout(given, as_frame(given), plain))
    assert made.index.name == "row" and made.columns.name == "column"


def test_rows_are_taken_beside_dictionaries_with_gaps():
    # Arrow joins no dictionaries of which one holds a gap: no model predicted anything.
    values = [1, 0, None, 1]
    parts = [pa.DictionaryArray.from_arrays([0], pa.array([n], "int64")) for n in values]
    table = pa.table({"c": pa.chunked_array(parts)})
    for data in (table, table.to_pandas(types_mapper=pd.ArrowDtype)):
        for taken in (take_rows(data, np.array([3, 2])), row_taker(data)[1](np.array([3, 2]))):
            assert as_frame(taken).column("c").objects() == values[:1:-1]
