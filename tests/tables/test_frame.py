import datetime as dt
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from loops import over

from skdp import Categorical, Date
from skdp.tables import as_column, as_frame, identities, row_taker


def values_of(column):
    codes, uniques = column.factorize()
    return [None if code < 0 else uniques[code] for code in codes]


def read(values):
    """A column of its own; arrays of Arrow as in a table."""
    return as_column(pa.chunked_array([values]) if isinstance(values, pa.Array) else values, "x")


def test_arrow_dictionaries_in_pieces():
    parts = [pa.array(["a", None]), pa.array(["c", "a"]), pa.array([], type=pa.string())]
    coded = pa.table({"a": pa.chunked_array([part.dictionary_encode() for part in parts])})
    assert values_of(as_frame(coded).column("a")) == ["a", None, "c", "a"]
    # What is missing may stand among the categories.
    named = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    assert values_of(as_frame(pa.table({"a": named})).column("a")) == ["a", None, None]


def test_one_complex_number_leaves_the_others_real():
    column = as_frame(pd.DataFrame({"z": [0.5, 1j, None, 2]})).column("z")
    assert column.kind == "numeric"
    np.testing.assert_array_equal(column.numbers(), [0.5, np.nan, np.nan, 2.0])
    _, take = row_taker(pd.DataFrame({"a": [1.0, 2 + 1j, np.nan]}))
    assert take(np.array([0, 2]))["a"].astype(float).tolist()[0] == 1.0


@over("others", [[], [None], ["c"]])
def test_text_is_read_beyond_a_nul_whatever_the_other_records_are(others):
    # In pandas 2 one record without text changed which others were equal.
    texts = ["a", "a\0b", "a\0", "b", "\0", ""]
    held = [*texts, *others]
    columns = [held, np.array(held, dtype=object)]
    columns += [pd.Series(held, dtype=kind) for kind in (object, "string[python]", "str")]
    for column in columns:
        codes, uniques = as_column(column, "x").factorize()
        assert len(set(codes[: len(texts)].tolist())) == len(texts)
        assert [uniques[code] for code in codes[: len(texts)]] == texts


@over("kind, end", itertools.product(["i1", "u1", "i4", "i8", "u8"], ["least", "zero", "most"]))
def test_close_integers_are_their_own_positions(kind, end):
    limits = np.iinfo(kind)
    first = {"least": limits.min, "zero": 0, "most": limits.max - 19}[end]
    steps = np.random.default_rng(0).integers(0, 20, 5000)
    values = (np.uint64(first % 2**64) + steps.astype(np.uint64)).astype(kind)
    codes, uniques = as_column(values, "a").factorize()
    assert uniques == list(range(first, first + 20)) and codes.tolist() == steps.tolist()
    # Few rows, or values far apart, are looked up one by one.
    for other in (values[:50], np.append(values, np.array([limits.max // 2], kind))):
        codes, uniques = as_column(other, "a").factorize()
        assert np.array(uniques, dtype=kind)[codes].tolist() == other.tolist()


# -- what Python cannot hold


def arrow_text(values):
    """A column of Arrow of text with any bytes, as files may hold it."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    buffers = [pa.py_buffer(part) for part in (offsets.tobytes(), b"".join(values))]
    return pa.StringArray.from_buffers(len(values), *buffers)


def test_text_that_is_not_utf_8_is_one_more_text():
    text = arrow_text([b"a", b"\xff", b"b", b"\xff", b"\xfe"])
    for each in (text, text.dictionary_encode(), pd.Series(pd.arrays.ArrowExtensionArray(text))):
        column = read(each)
        codes, uniques = column.factorize()
        assert uniques[codes[0]] == "a" and codes[1] == codes[3] != codes[4]
        owners = identities(column)
        assert owners[1] == owners[3] != owners[4]
        found = column.objects()
        assert found[:3:2] == ["a", "b"] and found[1] == found[3] != found[4]
        assert np.isnan(column.numbers()).all()


@pytest.mark.parametrize(
    ("kind", "far", "near", "person"),
    [
        (pa.timestamp("s"), 2**52, 0, False),
        # What DuckDB gives for infinity.
        (pa.timestamp("us"), 2**63 - 1, 0, False),
        (pa.timestamp("ms", tz="Asia/Tokyo"), 253_402_300_799_000, 0, True),
        (pa.date32(), 2**31 - 1, 5, False),
        (pa.duration("s"), 2**62, None, False),
    ],
)
def test_values_beyond_those_of_python_raise_nowhere(kind, far, near, person, capfd):
    width = pa.int32() if kind == pa.date32() else pa.int64()
    data = pa.array([5, far, 5, None], width).cast(kind)
    columns = [data, pd.Series(pd.arrays.ArrowExtensionArray(data)), pl.from_arrow(data)]
    if near is not None:
        columns.append(data.dictionary_encode())
    if kind == pa.timestamp("s"):
        columns.append(pd.Series(np.array([5, 2**62, 5, "NaT"], "M8[s]")).astype("category"))
    # A last moment that is far away is clipped; a duration has no key.
    day = Date("1970-01-01", "1970-01-31")
    for each in columns:
        column = read(each)
        wanted = [-1] * 4 if near is None else [near, 30, near, -1]
        assert column.codes(day.coding()).tolist() == wanted
        assert len(column.objects()) == 4 and column.objects()[3] is None
        first, furthest, again, gap = identities(column).tolist()
        assert first == again and gap == -1 and (first >= 0) == (near is not None)
        # What was moved nearer is nobody: two would be one person.
        assert (furthest >= 0) == person
    # Polars prints what it could not convert.
    assert capfd.readouterr() == ("", "")


KEYED = Categorical([1, "a", "2020-01-01", "2020-01-01 10:30", "10:30"], nullable=True)


MOMENT, DAY, TIME = dt.datetime(2020, 1, 1, 10, 30), dt.date(2020, 1, 1), dt.time(10, 30)
IN_UTC = pd.Series([pd.Timestamp(MOMENT, tz="UTC")])
NAMES = pd.Index(["a"], dtype="string")


@over(
    "kind, code, column",
    [
        *(("numeric", 0, pa.array([1], kind)) for kind in (pa.int8(), pa.uint64(), pa.float32())),
        *(("numeric", 0, np.array([1], kind)) for kind in ("i1", "u8", "f2", "g")),
        *(("numeric", 0, pd.Series([1], dtype=kind)) for kind in ("Int8", "category", "complex")),
        ("numeric", 0, pa.array([Decimal("1.00")])),
        ("numeric", 0, np.ma.array([1])),
        *(("numeric", 0, pl.Series([1], dtype=kind)) for kind in (pl.Int128, pl.Decimal(5, 1))),
        *(("boolean", 0, make([True])) for make in (pa.array, np.array, pl.Series)),
        *(("boolean", 0, pd.Series([True], dtype=kind)) for kind in ("boolean", "category")),
        *(("string", 0, column) for column in (pa.array(["1"]), np.array(["1.0"]))),
        ("string", 0, pa.array(["01"]).dictionary_encode()),
        ("object", 0, np.array([1], "O")),
        *(("string", 1, pa.array(["a"], kind)) for kind in (pa.large_string(), pa.string_view())),
        *(("string", 1, pd.Series(["a"], dtype=kind)) for kind in ("string", "string[pyarrow]")),
        *(("string", 1, pl.Series(["a"], dtype=kind)) for kind in (pl.Enum("ba"), pl.Categorical)),
        *(("object", 1, column) for column in (["a"], pl.Series(["a"], dtype=pl.Object))),
        *(("temporal", 2, pa.array([DAY], kind)) for kind in (pa.date32(), pa.date64())),
        *(("temporal", 2, np.array(["2020-01-01"], kind)) for kind in ("M8[D]", "M8[Y]")),
        ("temporal", 2, pl.Series([DAY])),
        ("temporal", 2, pd.Series(pd.PeriodIndex(["2020-01"], freq="M"))),
        ("temporal", 2, pd.Series(pd.to_datetime(["2020-01-01"])).astype("category")),
        *(("temporal", 3, pa.array([MOMENT], pa.timestamp(tick))) for tick in ("s", "ms", "ns")),
        ("temporal", 3, pl.Series([MOMENT], dtype=pl.Datetime("ms"))),
        ("zoned", 3, pa.array([MOMENT], pa.timestamp("us", tz="Asia/Tokyo"))),
        ("zoned", 3, IN_UTC.dt.tz_convert("Asia/Tokyo")),
        ("zoned", 3, pl.Series(IN_UTC).dt.convert_time_zone("Asia/Tokyo")),
        ("object", 3, [MOMENT]),
        *(("time", 4, pa.array([TIME], kind)) for kind in (pa.time32("s"), pa.time64("us"))),
        ("time", 4, pl.Series([TIME])),
        ("object", 4, [TIME]),
        *(("null", 5, column) for column in (pa.nulls(1), pl.Series([None]))),
        *(("string", 5, column) for column in (pa.nulls(1, pa.string()), pa.array([""]))),
        ("string", 5, pl.Series([None], dtype=pl.Enum(["a"]))),
        ("string", 5, pd.Series([None], dtype=pd.CategoricalDtype(NAMES))),
        *(("numeric", 5, column) for column in (pa.nulls(1, pa.int64()), np.array([np.nan]))),
        ("numeric", 5, np.ma.array([1], mask=[True])),
        ("numeric", 5, pd.Series([None], dtype="Int64")),
        ("temporal", 5, pa.nulls(1, pa.date32())),
        ("temporal", 5, np.array(["NaT"], "M8[ns]")),
        ("time", 5, pa.nulls(1, pa.time64("us"))),
        # What is no value of any kind: other than one that is missing.
        ("duration", -1, pd.Series([1], dtype="timedelta64[ns]")),
        ("duration", -1, pa.array([dt.timedelta(1)])),
        *(("other", -1, column) for column in (pl.Series([[1]]), pa.array([b"x"]))),
    ],
)
def test_every_type_that_holds_a_value_has_its_kind_and_gives_its_key(kind, code, column):
    found = read(column).codes(KEYED.coding()).tolist()
    assert (read(column).kind, found) == (kind, [code]), (read(column).dtype, type(column))


@pytest.mark.parametrize(("before", "own"), [(-0.0, 0.0), (np.str_("a"), "a"), (1, True)])
def test_a_value_is_read_alike_whichever_of_its_equals_stands_before_it(before, own):
    def said(values):
        column = read(values)
        return repr(column.objects()[-1]), str(column.numbers()[-1])

    assert said([before, own]) == said([own])
    assert said([own, before]) == said([before])
