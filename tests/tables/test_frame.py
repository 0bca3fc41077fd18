import datetime as dt
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from loops import over
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from skdp import Categorical, Date, Domain, Numeric
from skdp.exceptions import DomainError
from skdp.tables import (
    as_column,
    as_frame,
    identities,
    row_taker,
    select_columns,
    take_rows,
)


@pytest.fixture(params=[pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def table(request):
    return request.param


def test_names_rows_and_kinds(table):
    frame = as_frame(
        table(
            {
                "größe": [1.5, None],
                "n": [1, 2],
                "b": [True, None],
                "s": ["x", None],
                "t": [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)],
            }
        )
    )
    assert frame.names == ("größe", "n", "b", "s", "t") and as_frame(frame) is frame
    assert (len(frame), frame.n_rows, frame.n_unnamed) == (2, 2, 0)
    kinds = list(frame.kinds.values())
    # Text and truth values with gaps are objects in pandas, text not since pandas 3.
    assert kinds[:2] + kinds[4:] == ["numeric", "numeric", "temporal"]
    assert kinds[2] in ("boolean", "object") and kinds[3] in ("string", "object")
    np.testing.assert_array_equal(frame.column("größe").numbers(), [1.5, np.nan])
    assert values_of(frame.column("s")) == ["x", None]
    assert values_of(frame.column("b")) == [True, None]
    with pytest.raises(KeyError):
        frame.column("grosse")


def values_of(column):
    codes, uniques = column.factorize()
    return [None if code < 0 else uniques[code] for code in codes]


def test_object_kind_does_not_depend_on_values():
    # The schema check decides by kind: it may not differ with the values of an object column.
    for values in (["a", "b"], [1, 2], [None, None], [1, "a"], [dt.date(2020, 1, 1), 1]):
        frame = as_frame(pd.DataFrame({"a": pd.Series(values, dtype=object)}))
        assert frame.kinds == {"a": "object"}
        assert as_frame(np.array([[v] for v in values], dtype=object)).kinds == {"x0": "object"}


@over(
    "column, kind, expected",
    [
        *(
            (pd.Series(values, dtype=dtype), kind, values)
            for dtype, kind, values in [
                ("int64", "numeric", [1, 2]),
                ("Int64", "numeric", [1, None]),
                ("boolean", "boolean", [True, None]),
                ("string", "string", ["a", None]),
                ("object", "object", ["a", 2]),
                ("int64[pyarrow]", "numeric", [2**53 + 1, None]),
                ("string[pyarrow]", "string", ["a", None]),
            ]
        ),
        (pd.Series([1, 2], dtype="timedelta64[ns]"), "duration", None),
        (pd.Series(["2020-01-01"], dtype="period[D]"), "temporal", None),
        # Categories have the kind of their values.
        (pd.Series(pd.Categorical([20, None, 10], [10, 20])), "numeric", [20, None, 10]),
        (pd.Series(pd.Categorical([True], [True, False])), "boolean", [True]),
        (pl.Series([1, None, 3], dtype=pl.UInt8), "numeric", [1, None, 3]),
        (pl.Series([2**53 + 1, None]), "numeric", [2**53 + 1, None]),
        (pl.Series([1.0, None, float("nan")]), "numeric", [1.0, None, None]),
        (pl.Series(["a", None, "a"], dtype=pl.Categorical), "string", ["a", None, "a"]),
        (pl.Series(["b", None], dtype=pl.Enum(["a", "b"])), "string", ["b", None]),
        (pl.Series([None, None]), "null", [None, None]),
        (pl.Series([Decimal("1.5"), None]), "numeric", [1.5, None]),
        (pl.Series([object, None], dtype=pl.Object), "object", [object, None]),
        (pl.Series([[1], [2]]), "other", [[1], [2]]),
        (pl.Series([dt.date(2020, 1, 1)]), "temporal", ["2020-01-01"]),
        (pa.array([2**53 + 1, None]), "numeric", [2**53 + 1, None]),
        (pa.array([1.5, None, float("nan")]), "numeric", [1.5, None, None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), "string", ["a", None, "a"]),
        (pa.array([5, None, 6]).dictionary_encode(), "numeric", [5, None, 6]),
        (pa.array([Decimal("1.5"), None]), "numeric", [1.5, None]),
        (pa.nulls(2), "null", [None, None]),
        (pa.array([], type=pa.string()), "string", []),
        (pa.array([b"x"]), "other", [b"x"]),
    ],
)
def test_types_and_values_of_columns(column, kind, expected):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    found = as_frame(make[type(column).__module__.split(".")[0]]({"a": column})).column("a")
    assert found.kind == kind and len(found.numbers()) == len(column)
    if expected is not None:
        assert [v if v is None or v == v else None for v in values_of(found)] == expected
    if kind in ("numeric", "boolean"):
        wanted = [np.nan if value is None else float(value) for value in expected]
        np.testing.assert_array_equal(found.numbers(), wanted)


def test_arrow_chunks_and_slices():
    parts = [pa.array(["a", "b", None]), pa.array(["c", "a"]), pa.array([], type=pa.string())]
    wanted = ["a", "b", None, "c", "a"]
    plain = pa.table({"a": pa.chunked_array(parts)})
    assert values_of(as_frame(plain).column("a")) == wanted
    coded = pa.table({"a": pa.chunked_array([part.dictionary_encode() for part in parts])})
    assert values_of(as_frame(coded).column("a")) == wanted
    assert values_of(as_frame(coded.slice(1, 3)).column("a")) == wanted[1:4]
    assert values_of(as_frame(plain.slice(1, 3)).column("a")) == wanted[1:4]
    unsigned = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.uint8()), pa.array(["a"]))
    assert values_of(as_frame(pa.table({"a": unsigned})).column("a")) == ["a", None]


def test_arrays():
    frame = as_frame(np.array([[1, 2], [3, 4]]))
    assert (frame.library, frame.names, frame.n_unnamed) == ("numpy", ("x0", "x1"), 2)
    assert frame.column("x1").numbers().tolist() == [2, 4]
    assert as_frame(np.array([["a", "b"]])).kinds == {"x0": "string", "x1": "string"}
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_frame(masked).column("x1").numbers(), [np.nan, 4.0])
    assert values_of(as_frame(masked).column("x1")) == [None, 4.0]


def test_lists_of_rows_are_arrays_of_objects():
    # Not of NumPy's common type, under which one text would turn all numbers into text.
    frame = as_frame([[1, "a"], [2.5, None]])
    assert (frame.library, frame.kinds) == ("numpy", {"x0": "object", "x1": "object"})
    assert frame.column("x0").numbers().tolist() == [1, 2.5]
    assert values_of(frame.column("x1")) == ["a", None]


def test_pandas_without_string_names_counts_as_array():
    frame = as_frame(pd.DataFrame(np.zeros((2, 3))))
    assert (frame.names, frame.n_unnamed, frame.library) == (("x0", "x1", "x2"), 3, "pandas")


@over(
    "data, error, message",
    [
        (sparse.csr_matrix(np.eye(2)), TypeError, "(?i)sparse.*dense.*toarray"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), TypeError, "'a' is sparse"),
        (np.zeros(3), ValueError, "Expected 2D array, got 1D array.*Reshape your data"),
        (pd.Series([1]), ValueError, "Expected 2D array.*Reshape your data"),
        (pl.Series([1]), ValueError, "Reshape your data"),
        ([], ValueError, "Reshape your data"),
        (np.zeros((2, 2, 2)), ValueError, "dim 3"),
        ([np.zeros((2, 2))], ValueError, "dim 3"),
        ([[1, 2], [3]], ValueError, "different lengths"),
        ([[1], np.array(5)], ValueError, "different lengths"),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\)"),
        (pl.DataFrame(), ValueError, r"0 feature\(s\)"),
        (np.array([[1j]]), ValueError, "Complex data not supported"),
        ({"a": [1]}, TypeError, "got dict.*pandas.DataFrame"),
        (None, TypeError, "got NoneType"),
        (object(), ValueError, "Expected 2D array"),
        (pl.LazyFrame({"a": [1]}), TypeError, "LazyFrame is lazy.*collect"),
        (pd.DataFrame([[1, 2]], columns=["a", 1]), TypeError, "all of them are strings.*int.*str"),
        (pd.DataFrame([[1, 2]], columns=["é", "é"]), DomainError, "unique.*'é'"),
        (pa.table([[1], [2]], names=["b", "b"]), DomainError, "unique.*'b'"),
    ],
)
def test_what_is_not_a_table(data, error, message):
    with pytest.raises(error, match=message):
        as_frame(data)


def test_one_complex_number_leaves_the_others_real():
    column = as_frame(pd.DataFrame({"z": [0.5, 1j, None, 2]})).column("z")
    assert column.kind == "numeric"
    np.testing.assert_array_equal(column.numbers(), [0.5, np.nan, np.nan, 2.0])
    n_rows, take = row_taker(pd.DataFrame({"a": [1.0, 2 + 1j, np.nan], "b": ["x", "y", "z"]}))
    taken = take(np.array([0, 2]))
    assert n_rows == 3 and list(taken.columns) == ["a", "b"]
    assert taken["a"].astype(float).tolist()[0] == 1.0 and taken["a"].isna().tolist()[1]
    assert take(np.array([1]))["a"].tolist() == [2 + 1j]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrix():
    with pytest.raises(TypeError, match="np.matrix is not supported"):
        as_frame(np.matrix([[1]]))


def test_select_and_names():
    frame = as_frame(np.array([[1, 2], [3, 4]])).with_names(["b", "a"])
    assert frame.named == ("b", "a")
    assert frame.select(["a"]).column("a").numbers().tolist() == [2, 4]
    with pytest.raises(ValueError, match="0 columns have no name"):
        frame.with_names(["c"])
    with pytest.raises(DomainError, match="unique"):
        as_frame(np.zeros((1, 2))).with_names(["a", "a"])


def test_appended_column():
    columns = [[1, 0, 1], (1, 0, 1), np.array([1, 0, 1]), pd.Series([1, 0, 1], index=[5, 6, 7])]
    columns += [pl.Series([1, 0, 1]), pa.chunked_array([[1, 0], [1]]), pa.array([1, 0, 1])]
    for y in columns:
        frame = as_frame(np.zeros((3, 2))).with_column("étiquette", y)
        assert frame.names == ("x0", "x1", "étiquette")
        assert (frame.n_unnamed, frame.named) == (2, ("étiquette",))
        assert frame.column("étiquette").numbers().tolist() == [1, 0, 1]
    mixed = as_frame(np.zeros((2, 1))).with_column("y", ["a", 1])
    assert values_of(mixed.column("y")) == ["a", 1]
    with pytest.warns(DataConversionWarning, match="column-vector y was passed when a 1d array"):
        frame = as_frame(np.zeros((3, 1))).with_column("y", np.zeros((3, 1)))
    assert frame.column("y").numbers().tolist() == [0, 0, 0]


@over(
    "y, error, message",
    [
        ([1, 2], ValueError, "inconsistent numbers of samples"),
        (np.zeros((3, 2)), ValueError, "should be a 1d array"),
        (5, ValueError, "should be a 1d array"),
        ("abc", TypeError, "must be a Series"),
        (sparse.csr_matrix(np.zeros((3, 1))), TypeError, "sparse"),
        (np.zeros(3, dtype=complex), ValueError, "Complex data not supported"),
    ],
)
def test_bad_labels(y, error, message):
    with pytest.raises(error, match=message):
        as_frame(np.zeros((3, 1))).with_column("y", y)
    with pytest.raises(ValueError, match="'y' is in the frame already"):
        as_frame(pd.DataFrame({"y": [1] * 3})).with_column("y", y)


def test_select_columns_and_take_rows(table):
    data = table({"a": [1, 2, 3], "ü": ["x", "y", "z"]})
    part = take_rows(select_columns(data, ["ü", "a"]), np.array([2, 0, 0]))
    assert type(part) is type(data)
    frame = as_frame(part)
    assert frame.names == ("ü", "a")
    assert values_of(frame.column("ü")) == ["z", "x", "x"]
    array = np.array([[1, 2], [3, 4]])
    assert select_columns(array, ["a"]) is array
    assert take_rows(array, np.array([1])).tolist() == [[3, 4]]


@over(
    "make, others",
    itertools.product(
        [
            lambda values: pd.DataFrame({"x": pd.Series(values, dtype=object)}),
            lambda values: pd.DataFrame({"x": pd.Series(values, dtype="string[python]")}),
            lambda values: pd.DataFrame({"x": pd.Series(values, dtype="str")}),
            lambda values: np.array(values, dtype=object)[:, None],
            lambda values: [[value] for value in values],
        ],
        ([], [None], ["c"]),
    ),
)
def test_text_is_read_beyond_a_nul_whatever_the_other_records_are(make, others):
    # In pandas 2 one record without text changed which others were equal.
    texts = ["a", "a\0b", "a\0", "b", "\0", ""]
    frame = as_frame(make([*texts, *others]))
    codes, uniques = frame.column(frame.names[0]).factorize()
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


@pytest.mark.parametrize(
    "library",
    [
        lambda text: pa.table({"x": text}),
        lambda text: pa.table({"x": text.dictionary_encode()}),
        lambda text: pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(text))}),
    ],
)
def test_text_that_is_not_utf_8_is_one_more_text(library):
    column = as_frame(library(arrow_text([b"a", b"\xff", b"b", b"\xff", b"\xfe"]))).column("x")
    codes, uniques = column.factorize()
    assert uniques[codes[0]] == "a" and codes[1] == codes[3] != codes[4]
    owners = identities(column)
    assert owners[1] == owners[3] != owners[4]
    found = column.objects()
    assert found[:3:2] == ["a", "b"] and found[1] == found[3] != found[4]
    assert np.isnan(column.numbers()).all()


@pytest.mark.parametrize(
    ("kind", "far"),
    [
        (pa.timestamp("s"), 2**52),
        (pa.timestamp("ms", tz="Asia/Tokyo"), 253_402_300_799_000),
        (pa.date32(), 2**31 - 1),
        (pa.duration("s"), 2**62),
    ],
)
def test_values_beyond_those_of_python_raise_nowhere(kind, far):
    width = pa.int32() if kind == pa.date32() else pa.int64()
    data = pa.chunked_array([pa.array([5, far, 5, None], width).cast(kind)])
    frames = [pa.table({"x": data})]
    frames.append(pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(data))}))
    frames.append(pl.from_arrow(frames[0]))
    # A last moment that is far away is clipped; a duration has no key.
    day = Date("1970-01-01", "1970-01-31")
    wanted = [-1] * 4 if kind == pa.duration("s") else [0 if kind != pa.date32() else 5, 30]
    for frame in frames:
        column = as_frame(frame).column("x")
        codes = column.codes(day.coding()).tolist()
        assert codes == (wanted if len(wanted) == 4 else [wanted[0], wanted[1], wanted[0], -1])
        assert len(column.objects()) == 4 and column.objects()[3] is None
        owners = identities(column)
        assert owners[0] == owners[2] and owners[3] == -1


def test_values_that_a_library_cannot_give_are_left_out_one_by_one():
    inner = arrow_text([b"a", b"\xff", b"b"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), inner)
    found = as_frame(pa.table({"x": lists})).column("x").objects()
    assert found[::2] == [["a"], ["b"]]
    assert as_frame(pa.table({"x": lists})).column("x").codes(TEXT.coding()).tolist() == [-1] * 3


TEXT = Categorical(["a", "b"])
KEYED = Categorical([1, "a", "2020-01-01", "2020-01-01 10:30", "10:30"], nullable=True)


def test_every_type_that_holds_a_value_gives_its_key():
    moment = dt.datetime(2020, 1, 1, 10, 30)
    columns = {
        0: [
            *(pa.array([1], kind) for kind in (pa.int8(), pa.uint64(), pa.float32())),
            *(pa.array([1]).cast(kind) for kind in (pa.float16(), pa.bool_(), pa.string())),
            pa.array([Decimal("1.00")]),
            pa.array(["01"]).dictionary_encode(),
            *(np.array([1], kind) for kind in ("i1", "u8", "f2", "g", "?", "O")),
            np.array(["1.0"]),
            np.ma.array([1]),
            *(pd.Series([1], dtype=kind) for kind in ("Int8", "Float64", "category", "complex128")),
            pd.Series([True], dtype="boolean"),
            pl.Series([Decimal("1.0")]),
            pl.Series([1], dtype=pl.Int128),
        ],
        1: [
            *(pa.array(["a"], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
            *(pd.Series(["a"], dtype=kind) for kind in ("string", "object", "category")),
            pl.Series(["a"], dtype=pl.Enum(["b", "a"])),
            pl.Series(["a"], dtype=pl.Categorical),
            pl.Series(["a"], dtype=pl.Object),
        ],
        2: [
            pa.array([dt.date(2020, 1, 1)]),
            pa.array([dt.date(2020, 1, 1)], pa.date64()),
            pa.array([dt.datetime(2020, 1, 1)]),
            np.array(["2020-01-01"], "M8[D]"),
            np.array(["2020"], "M8[Y]"),
            pd.Series(pd.PeriodIndex(["2020-01"], freq="M")),
            pd.Series(pd.to_datetime(["2020-01-01"])).astype("category"),
            pl.Series([dt.date(2020, 1, 1)]),
        ],
        3: [
            *(pa.array([moment], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
            pa.array([moment], pa.timestamp("us", tz="Asia/Tokyo")),
            pd.Series([pd.Timestamp(moment, tz="UTC")]).dt.tz_convert("Asia/Tokyo"),
            pl.Series([moment], dtype=pl.Datetime("ms")),
            np.array([moment], dtype=object),
        ],
        4: [
            pa.array([dt.time(10, 30)]),
            pa.array([dt.time(10, 30)], pa.time32("s")),
            pl.Series([dt.time(10, 30)]),
            np.array([dt.time(10, 30)]),
        ],
        5: [
            pa.nulls(1),
            *(
                pa.nulls(1, kind)
                for kind in (pa.int64(), pa.string(), pa.date32(), pa.time64("us"))
            ),
            pa.array([""]),
            pl.Series([None]),
            pl.Series([None], dtype=pl.Enum(["a"])),
            pl.Series([float("nan")]),
            np.array([np.nan]),
            np.array(["NaT"], "M8[ns]"),
            np.ma.array([1], mask=[True]),
            pd.Series([None], dtype="Int64"),
            pd.Series([pd.NaT]),
            pd.Series([None], dtype=pd.CategoricalDtype(["a"])),
        ],
    }
    for code, held in columns.items():
        for each in held:
            name = getattr(each, "type", None) or each.dtype
            each = pa.chunked_array([each]) if isinstance(each, pa.Array) else each
            found = as_column(each, "x").codes(KEYED.coding())
            assert found.tolist() == [code], (name, type(each))


@pytest.mark.parametrize("odd", [None, float("nan"), 5, "ab", {}])
def test_what_is_no_row_in_a_list_of_rows_is_a_row_without_values(odd):
    domain = Domain({"a": Categorical(["x", "y"]), "b": Numeric(0, 9, integer=True)})
    for rows in ([["x", 1], odd, ("y", 2)], [odd, ["x", 1], np.array(["y", 2], dtype=object)]):
        codes = domain.encode(rows).tolist()
        assert codes.pop(1 if rows[1] is odd else 0) == [-1, -1] and codes == [[0, 1], [1, 2]]
