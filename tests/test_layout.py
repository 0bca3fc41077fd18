"""Drawn rows look like the rows that were given: container and order; types are the domain's."""

import datetime
import io
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loops import over
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp import Categorical, Date, Datetime, Domain, Identifier, Numeric, derived
from skdp.audit._released import first_difference
from skdp.tables import Layout, as_frame, build_frame, labels_like

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

OLD = Path(__file__).with_name("old_releases")

WHOLE = Numeric(0, 100, integer=True)
WIDE = Numeric(-5, 300, integer=True)
REAL = Numeric(0, 1, bins=7)
TEXT = Categorical(["lo", "mid", "hi"])
FLAG = Categorical([False, True])
ZERO_ONE = Categorical([0, 1])


def nullable(attribute):
    """The same attribute with a missing cell."""
    if isinstance(attribute, Categorical):
        return Categorical(attribute.categories, ordered=attribute.ordered, nullable=True)
    bins = None if attribute.integer else attribute.bins
    return Numeric(attribute.lower, attribute.upper, bins, integer=attribute.integer, nullable=True)


def arrow(dtype):
    return pd.ArrowDtype(dtype)


def values_for(attribute):
    return list(attribute.categories[:2]) if isinstance(attribute, Categorical) else [0, 1]


def table(library, dtype, attribute):
    values = values_for(attribute)
    if "decimal" in str(dtype):
        values = [Decimal(value) for value in values]
    if library == "pandas":
        return pd.DataFrame({"a": pd.Series(pd.array(values, dtype=dtype))})
    if library == "polars":
        return pl.DataFrame({"a": pl.Series(values, strict=False).cast(dtype)})
    if pa.types.is_dictionary(dtype):
        # Older Arrow cannot make all of these from values.
        return pa.table({"a": pa.array(values, dtype.value_type).dictionary_encode().cast(dtype)})
    return pa.table({"a": pa.array(values, dtype)})


def dtype_of(frame):
    return frame.schema.field("a").type if isinstance(frame, pa.Table) else frame["a"].dtype


def drawn(X, domain, n_rows=40):
    """Rows of a domain in the layout of X, with every code of every column."""
    rows = as_frame(X)
    if rows.n_unnamed:
        rows = rows.with_names(domain.names)
    # A stored layout is the same, and holds no object of a library.
    stored = pickle.dumps(Layout.like(X, rows, domain))
    assert b"polars" not in stored.replace(b'"polars"', b"").replace(b"\x06polars", b"")
    codes = np.stack([np.arange(n_rows) % size for size in domain.shape], axis=1)
    return build_frame(domain.decode(codes.astype(np.int32), 0), like=pickle.loads(stored))


def contents(frame):
    if isinstance(frame, pa.Table):
        return frame["a"].to_pylist()
    return [None if pd.isna(value) else value for value in frame["a"].to_list()]


def check(library, given, attribute, expected):
    X = table(library, given, attribute)
    domain = Domain({"a": attribute})
    out = drawn(X, domain)
    assert type(out) is type(X)
    assert dtype_of(out) == expected
    # The same for every draw, also of one row or none, and whatever rows were given.
    assert dtype_of(drawn(X, domain, 0)) == expected
    assert dtype_of(drawn(X, domain, 1)) == expected
    assert dtype_of(drawn(X[:0], domain, 3)) == expected
    # Values are the decoded ones, except for their precision.
    codes = np.arange(40, dtype=np.int32)[:, None] % attribute.size
    plain = contents(domain.decode(codes, 0))
    for value, decoded in zip(contents(out), plain, strict=True):
        if isinstance(decoded, float):
            assert abs(float(value) - decoded) < 0.01
            assert attribute.lower <= float(value) <= attribute.upper
        else:
            assert value == decoded


DAY = Date("2020-01-01", "2021-12-31", bins=20)
MONTH = Date("2020-01", "2021-12", unit="month")
HOUR = Datetime("2020-01-01", "2021-12-31", unit="hour", bins=20)
ZONED = Datetime("2020-01-01", "2021-12-31", unit="hour", bins=20, tz="UTC")
FAR = Date("1500-01-01", "2021-12-31", unit="year", bins=20)

INTEGERS = [8, 16, 32, 64]
KEPT = [
    *[("pandas", f"{u}int{bits}", WHOLE) for u in ("", "u") for bits in INTEGERS],
    *[("pandas", f"{u}Int{bits}", WHOLE) for u in ("", "U") for bits in INTEGERS],
    *[("pandas", f"float{bits}", each) for bits in (16, 32, 64) for each in (WHOLE, REAL)],
    *[("pandas", f"Float{bits}", each) for bits in (32, 64) for each in (WHOLE, REAL)],
    *[("pandas", object, each) for each in (WHOLE, REAL, TEXT, FLAG)],
    *[("pandas", each, TEXT) for each in ("string[python]", "string[pyarrow]")],
    ("pandas", "category", TEXT),
    ("pandas", "bool", FLAG),
    ("pandas", "boolean", FLAG),
    *[("pandas", each, ZERO_ONE) for each in ("int8", "Int8", "float32", "bool", "boolean")],
    *[("pandas", arrow(each), WHOLE) for each in (pa.int8(), pa.uint16(), pa.float32())],
    *[("pandas", arrow(each), REAL) for each in (pa.float32(), pa.float64())],
    *[("pandas", arrow(each), TEXT) for each in (pa.string(), pa.large_string())],
    ("pandas", arrow(pa.decimal128(9, 2)), WHOLE),
    ("pandas", arrow(pa.bool_()), FLAG),
    *[("polars", getattr(pl, f"{u}Int{bits}"), WHOLE) for u in ("", "U") for bits in INTEGERS],
    *[("polars", each, kind) for each in (pl.Float32, pl.Float64) for kind in (WHOLE, REAL)],
    *[("polars", pl.Decimal(10, 2), kind) for kind in (WHOLE, REAL)],
    *[("polars", each, TEXT) for each in (pl.String, pl.Categorical())],
    ("polars", pl.Enum(["hi", "mid", "lo"]), TEXT),
    ("polars", pl.Boolean, FLAG),
    ("polars", pl.Int8, ZERO_ONE),
    *[("pyarrow", getattr(pa, f"{u}int{bits}")(), WHOLE) for u in ("", "u") for bits in INTEGERS],
    *[("pyarrow", each, kind) for each in (pa.float32(), pa.float64()) for kind in (WHOLE, REAL)],
    *[("pyarrow", pa.decimal128(10, 2), kind) for kind in (WHOLE, REAL)],
    ("pyarrow", pa.decimal256(50, 2), REAL),
    *[("pyarrow", each, TEXT) for each in (pa.string(), pa.large_string())],
    ("pyarrow", pa.dictionary(pa.int8(), pa.string()), TEXT),
    ("pyarrow", pa.dictionary(pa.int32(), pa.large_string(), ordered=True), TEXT),
    ("pyarrow", pa.bool_(), FLAG),
]


def name_of(case):
    return "-".join(str(part).replace(" ", "")[:60] for part in case)


@over("library, dtype, attribute", KEPT)
def test_types_are_kept(library, dtype, attribute):
    expected = dtype_of(table(library, dtype, attribute))
    if dtype == "category":
        expected = pd.CategoricalDtype(pd.Series(TEXT.categories))
    check(library, dtype, attribute, expected)


NULLABLE = [
    case
    for case in KEPT
    if case[0] != "pandas"
    or (case[1] != "bool" and not str(case[1]).startswith(("int", "uint")))
    or isinstance(case[1], pd.ArrowDtype)
]


@over("library, dtype, attribute", NULLABLE)
def test_types_are_kept_with_gaps(library, dtype, attribute):
    expected = dtype_of(table(library, dtype, attribute))
    if dtype == "category":
        expected = pd.CategoricalDtype(pd.Series(TEXT.categories))
    check(library, dtype, nullable(attribute), expected)
    out = drawn(table(library, dtype, attribute), Domain({"a": nullable(attribute)}), 200)
    assert None in contents(out)


WIDER = [
    # Declared beyond the type.
    ("pandas", "int8", WIDE, "int16"),
    ("pandas", "uint8", WIDE, "int16"),
    ("pandas", "uint8", Numeric(-5, 100, integer=True), "int8"),
    ("pandas", "Int8", WIDE, "Int16"),
    ("pandas", "int8", Numeric(0, 2**40, 9, integer=True), "int64"),
    ("pandas", "float16", Numeric(0, 4000, integer=True), "float32"),
    ("pandas", "float16", Numeric(0, 1e6), "float32"),
    ("pandas", "float32", Numeric(0, 2**30, 9, integer=True), "float64"),
    ("pandas", "float32", Categorical([0.5, 0.1]), "float64"),
    ("pandas", "float32", Categorical([0.5, 0.25]), "float32"),
    ("polars", pl.Int8, WIDE, pl.Int16),
    ("polars", pl.UInt8, WIDE, pl.Int16),
    ("polars", pl.Decimal(3, 2), Numeric(0, 5000), pl.Decimal(6, 2)),
    ("pyarrow", pa.int8(), WIDE, pa.int16()),
    ("pyarrow", pa.decimal128(3, 2), Numeric(0, 5000), pa.decimal128(6, 2)),
    ("pyarrow", pa.decimal128(38, 37), Numeric(0, 5000), pa.decimal256(41, 37)),
    # A missing cell in a type without one.
    ("pandas", "int8", nullable(WHOLE), "Int8"),
    ("pandas", "uint16", nullable(WHOLE), "UInt16"),
    ("pandas", "int8", nullable(WIDE), "Int16"),
    ("pandas", "int64", nullable(WHOLE), "Int64"),
    ("pandas", "bool", nullable(FLAG), "boolean"),
    # Fractions are declared.
    ("pandas", "int8", REAL, "float64"),
    ("pandas", "Int8", REAL, "Float64"),
    ("pandas", "int64", nullable(REAL), "float64"),
    ("polars", pl.Int8, REAL, pl.Float64),
    ("pyarrow", pa.int8(), REAL, pa.float64()),
    # Truth values where others are declared.
    ("pandas", "bool", WHOLE, "int64"),
    ("polars", pl.Boolean, WHOLE, pl.Int64),
    # No type at all: that of the domain.
    ("polars", pl.Null, WHOLE, pl.Int64),
    ("pyarrow", pa.null(), REAL, pa.float64()),
    # A category of numbers, where a range of numbers is declared: the type of its categories.
    ("pandas", pd.CategoricalDtype(pd.Index([0, 1], dtype="int8")), WHOLE, "int8"),
]


@over("library, given, attribute, expected", WIDER)
def test_types_that_cannot_hold_the_domain_are_widened(library, given, attribute, expected):
    if str(given).lower() == "null":
        X = pa.table({"a": pa.nulls(2)})
        X = X if library == "pyarrow" else pl.DataFrame({"a": [None, None]})
    else:
        X = table(library, given, ZERO_ONE if not isinstance(attribute, Categorical) else attribute)
        if given == "bool":
            X = table(library, given, FLAG)
    domain = Domain({"a": attribute})
    for n_rows in (0, 1, 40):
        assert dtype_of(drawn(X, domain, n_rows)) == expected


MOMENTS = [datetime.datetime(2020, 1, 1, 5), datetime.datetime(2021, 2, 3, 4)]
DAYS = [moment.date() for moment in MOMENTS]
LOCAL = [moment.replace(tzinfo=datetime.UTC) for moment in MOMENTS]
UNITS = ("s", "ms", "us", "ns")
DATED = [
    *[(pd.Series(MOMENTS).astype(f"M8[{unit}]"), each) for unit in UNITS for each in (DAY, HOUR)],
    *[(pd.Series(LOCAL).astype(f"datetime64[{unit}, Asia/Tokyo]"), ZONED) for unit in UNITS],
    (pd.Series(LOCAL).dt.tz_convert("UTC"), ZONED),
    *[(pd.Series(DAYS, dtype=object), each) for each in (DAY, MONTH)],
    *[(pd.Series(MOMENTS, dtype=object), each) for each in (HOUR, ZONED)],
    *[(pd.Series(["2020-01-01"], dtype=kind), DAY) for kind in ("str", "string", object)],
    *[(pd.Series(["2020-01-01"], dtype="str"), each) for each in (MONTH, HOUR, ZONED)],
    (pd.Series(pd.array(DAYS, arrow(pa.date32()))), MONTH),
    (pd.Series(pd.array(MOMENTS, arrow(pa.timestamp("ms")))), HOUR),
    *[(pd.Series(MOMENTS).dt.to_period(unit), DAY) for unit in ("D", "h")],
    (pd.Series(MOMENTS).dt.to_period("M"), MONTH),
    *[(pl.Series(DAYS), each) for each in (DAY, MONTH, FAR)],
    *[(pl.Series(MOMENTS, dtype=pl.Datetime(unit)), HOUR) for unit in UNITS[1:]],
    (pl.Series(LOCAL, dtype=pl.Datetime("ms", "UTC")), ZONED),
    (pl.Series(LOCAL).dt.convert_time_zone("America/New_York"), ZONED),
    (pl.Series(["2020-01-01"]), DAY),
    (pa.array(DAYS, pa.date32()), DAY),
    *[(pa.array(MOMENTS, pa.timestamp(unit)), HOUR) for unit in UNITS],
    (pa.array(LOCAL, pa.timestamp("us", "Europe/Paris")), ZONED),
    (pa.array(["2020-01-01"], pa.large_string()), MONTH),
]


@over("column, attribute", DATED)
@over("gaps", [False, True])
def test_types_of_dates_are_kept(column, attribute, gaps):
    tables = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}
    X = tables.get(type(column), pa.table)({"a": column})
    if gaps:
        data = {key: getattr(attribute, key) for key in ("unit", "bins")}
        data |= {"tz": attribute.tz} if isinstance(attribute, Datetime) else {}
        ends = attribute.shown([attribute.lower, attribute.upper])
        if attribute.tz is None:
            ends = ends.strftime("%Y-%m-%d")
        attribute = type(attribute)(ends[0], ends[1], nullable=True, **data)
    domain = Domain({"a": attribute})
    domain.check_schema(X)
    out = drawn(X, domain)
    for found in (out, drawn(X, domain, 0), drawn(X, domain, 1)):
        assert type(found) is type(X) and dtype_of(found) == dtype_of(X)
    # Each is still in the bin that it was drawn from.
    assert domain.encode(out)[:, 0].tolist() == [code % attribute.size for code in range(40)]
    assert (None in contents(out)) == gaps


def test_dates_that_a_type_cannot_hold():
    X = pd.DataFrame({"a": pd.Series(MOMENTS).astype("M8[ns]")})
    assert dtype_of(drawn(X, Domain({"a": FAR}))) == "M8[us]"
    X = pl.DataFrame({"a": pl.Series(DAYS)})
    assert dtype_of(drawn(X, Domain({"a": HOUR}))) == pl.Datetime("us")


@over("unit", ["D", "s", "ns"])
def test_arrays_of_dates(unit):
    X = np.zeros((1, 2), dtype=f"M8[{unit}]")
    assert drawn(X, Domain({"a": DAY, "b": MONTH})).dtype == X.dtype
    found = drawn(X, Domain({"a": DAY, "b": FAR}))
    assert found.dtype == (X.dtype if unit != "ns" else "M8[us]")
    assert np.array_equal(Domain({"a": DAY, "b": FAR}).encode(found)[:3], [[0, 0], [1, 1], [2, 2]])


def test_categories_of_a_pandas_category_are_those_of_the_domain():
    # They may have been read from the data, so neither their list nor their order is used.
    for values in (["lo"], ["mid", "lo"], ["hi", "lo", "mid"]):
        X = pd.DataFrame({"a": pd.Series(values, dtype="category")})
        out = drawn(X, Domain({"a": TEXT}))["a"].dtype
        assert list(out.categories) == ["lo", "mid", "hi"]
        assert not out.ordered
        assert out.categories.dtype == X["a"].dtype.categories.dtype


def test_an_ordered_category_keeps_its_order():
    X = pd.DataFrame({"a": pd.Categorical(["lo"], ["hi", "mid", "lo"], ordered=True)})
    out = drawn(X, Domain({"a": TEXT}))
    assert out["a"].dtype == X["a"].dtype
    assert list(out["a"].dtype.categories) == ["hi", "mid", "lo"]
    # Of other categories it says nothing.
    for ordered in (False, True):
        declared = Categorical(["lo", "mid", "hi", "top"], ordered=ordered)
        dtype = drawn(X, Domain({"a": declared}))["a"].dtype
        assert dtype == pd.CategoricalDtype(declared.categories, ordered=ordered)


def test_categories_keep_the_type_of_their_values():
    for dtype, categories in (("int8", [1, 2, 3]), ("float32", [0.5, 1.5]), ("object", ["a", "b"])):
        given = pd.Categorical(pd.Series(categories[:1], dtype=dtype))
        assert given.categories.dtype == dtype
        X = pd.DataFrame({"a": given})
        out = drawn(X, Domain({"a": Categorical(categories, nullable=True)}))["a"]
        assert out.dtype.categories.dtype == dtype
        assert out.dtype.categories.to_list() == categories
        assert out.isna().any()


def test_an_enum_of_other_categories_takes_those_of_the_domain():
    X = pl.DataFrame({"a": pl.Series(["lo"], dtype=pl.Enum(["lo", "mid"]))})
    assert drawn(X, Domain({"a": TEXT}))["a"].dtype == pl.Enum(["lo", "mid", "hi"])


def test_a_dictionary_has_indices_for_all_categories():
    many = Categorical([f"c{place}" for place in range(300)])
    X = pa.table({"a": pa.array(["c0"], pa.dictionary(pa.int8(), pa.string()))})
    out = drawn(X, Domain({"a": many}))
    assert dtype_of(out) == pa.dictionary(pa.int16(), pa.string())
    assert out["a"].to_pylist()[:3] == ["c0", "c1", "c2"]


def test_rounding_leaves_neither_the_range_nor_the_bin():
    # Bounds and edges that neither float32 nor two digits have.
    attribute = Numeric(0.1, 0.7, bins=9)
    codes = np.repeat(np.arange(9, dtype=np.int32), 4000)[:, None]
    domain = Domain({"a": attribute})
    rows = domain.decode(codes, 0)
    # The uppermost and lowest value of each bin.
    edges = attribute.edges
    rows.loc[::4000, "a"] = edges[:-1] + 1e-12
    rows.loc[3999::4000, "a"] = edges[1:] - 1e-12
    for given in (
        pd.DataFrame({"a": np.zeros(1, dtype="float32")}),
        pl.DataFrame({"a": pl.Series([0]).cast(pl.Decimal(10, 3))}),
    ):
        out = build_frame({"a": rows["a"]}, like=Layout.like(given, as_frame(given), domain))
        assert np.array_equal(domain.encode(out), codes)
        found = np.array(out["a"].to_list(), dtype=float)
        assert found.min() >= 0.1 and found.max() <= 0.7


@over("dtype", ["i1", "u1", "i4", "i8", "f4", "f8", ">i4", ">f4", "O"])
def test_arrays_keep_their_type(dtype):
    X = np.zeros((3, 2), dtype=dtype)
    for n_rows in (0, 30):
        out = drawn(X, Domain({"a": WHOLE, "b": WHOLE}), n_rows)
        assert out.dtype == np.dtype(dtype) and out.shape == (n_rows, 2)


@over(
    "dtype, attributes, expected",
    [
        ("i1", (WHOLE, WIDE), "i2"),
        ("i1", (WHOLE, nullable(WHOLE)), "f8"),
        ("i1", (WHOLE, REAL), "f8"),
        ("f4", (REAL, nullable(WHOLE)), "f4"),
        ("f4", (REAL, TEXT), "O"),
        ("?", (FLAG, FLAG), "?"),
        ("?", (FLAG, WHOLE), "i8"),
        ("U1", (TEXT, TEXT), "U3"),
        # NumPy makes a type as wide as the longest text, which may be that of one record.
        ("U9", (TEXT, TEXT), "U3"),
        ("U9", (TEXT, nullable(TEXT)), "O"),
        ("O", (TEXT, REAL), "O"),
        # Lists have no type: the domain decides.
        (None, (WHOLE, WHOLE), "i8"),
        (None, (WHOLE, nullable(WHOLE)), "f8"),
        (None, (FLAG, FLAG), "?"),
        (None, (REAL, TEXT), "O"),
    ],
)
def test_arrays_get_a_type_that_holds_the_domain(dtype, attributes, expected):
    X = [[0, 0]] if dtype is None else np.zeros((1, 2), dtype=dtype)
    domain = Domain(dict(zip("ab", attributes, strict=True)))
    for n_rows in (0, 1, 30):
        assert drawn(X, domain, n_rows).dtype == np.dtype(expected)


def test_structured_arrays_are_refused_with_the_remedy():
    X = np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])
    with pytest.raises(TypeError, match=r"pandas.DataFrame\(X\)"):
        as_frame(X)


def test_columns_of_the_domain_that_the_rows_lack():
    domain = Domain(dict.fromkeys("abcd", WHOLE))
    X = pd.DataFrame({"d": [1], "a": [1], "z": [1], "b": [1]}, dtype="int8")
    layout = Layout.like(X, as_frame(X), domain)
    assert layout.names == ("d", "a", "c", "b")
    out = layout.build(domain.decode(np.zeros((2, 4), dtype=np.int32), 0))
    assert out.dtypes.astype(str).to_dict() == {"d": "int8", "a": "int8", "c": "int64", "b": "int8"}


def test_money_keeps_its_cents():
    attribute = Numeric(0, 9999.99, bins=8, special=[-1, 0], decimals=2, nullable=True)
    domain = Domain({"a": attribute})
    for X in (
        pd.DataFrame({"a": np.zeros(1, dtype="float32")}),
        pd.DataFrame({"a": np.zeros(1)}),
        pl.DataFrame({"a": pl.Series([0]).cast(pl.Decimal(10, 2))}),
        pl.DataFrame({"a": pl.Series([0]).cast(pl.Float32)}),
    ):
        out = drawn(X, domain, 200)
        assert dtype_of(out) == dtype_of(X)
        plain = domain.decode(np.arange(200)[:, None] % 11, 0)["a"]
        for value, cents in zip(contents(out), plain, strict=True):
            assert value is None or f"{value:.2f}" == f"{cents:.2f}"


def test_steps_of_whole_numbers_are_integers():
    X = pd.DataFrame({"a": np.zeros(1, dtype="int16")})
    for attribute in (Numeric(0, 100, bins=5, step=5), Numeric(0, 9.0, bins=3, decimals=0)):
        assert dtype_of(drawn(X, Domain({"a": attribute}))) == "int16"
    assert dtype_of(drawn(X, Domain({"a": Numeric(0, 100, bins=5, step=2.5)}))) == "float64"
    assert (
        dtype_of(drawn(X, Domain({"a": Numeric(0, 9, integer=True, special=[70_000])}))) == "int32"
    )


def test_identifiers_and_derived_columns():
    domain = Domain(
        {"id": Identifier(), "band": Categorical(["A", "B"]), "sub": Categorical(["A1", "B1"])},
        structure=[derived("band", from_="sub", map={"A1": "A", "B1": "B"})],
    )
    sub = pd.Series(["A1", "B1"] * 50)
    grade = sub.str[0].astype("category")
    release = skdp.HDPViewSynthesizer(epsilon=50, domain=domain, target="sub", random_state=0)
    out = release.fit(pd.DataFrame({"sub": sub, "band": grade})).sample(9)
    text = str(sub.dtype)
    assert out.dtypes.astype(str).to_dict() == {"id": "int64", "sub": text, "band": text}
    # Fresh ids in a public type, where it can count all rows.
    for dtype, expected in (("int64", "int64"), ("int8", "int32"), ("str", text), (object, "O")):
        ids = pd.Series(range(100)).astype(dtype)
        X = pd.DataFrame({"band": grade, "sub": sub, "id": ids})
        release.fit(X)
        assert list(release.sample(9)) == list(X) and release.sample(9)["id"].dtype == "int64"
        out = release.sample(9, like=X[:0])
        assert out["id"].dtype == expected and list(out) == list(X)
        assert out["id"].astype(int).tolist() == list(range(1, 10))
    # Models are trained on the columns that new rows have too, and never on identifiers.
    assert list(release.make_training_set(9)[0]) == ["band"]
    assert list(release.fit_resample(X.drop(columns="sub"), sub)[0]) == ["band", "id"]
    assert list(release.fit_resample(X[["band"]], sub)[0]) == ["band"]


def test_models_of_arrays_with_identifiers():
    domain = Domain({"id": Identifier(), "x": WHOLE, "y": ZERO_ONE})
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = 90 * y[:, None]
    release = skdp.HDPViewSynthesizer(epsilon=50, domain=domain, target="y", random_state=0)
    model = skdp.PrivateClassifier(DecisionTreeClassifier(), release, random_state=0)
    assert model.fit(X, y).score(X, y) == 1.0
    assert model.synthesizer_.sample(2)[:, 0].tolist() == [1, 2]


def people(n_rows=200):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "pay": rng.uniform(0, 1, n_rows).astype("float32"),
            "sex": pd.Categorical(rng.choice(["F", "M"], n_rows)),
            "age": rng.integers(0, 90, n_rows).astype("uint8"),
            "owner": rng.choice([True, False], n_rows),
            "kind": rng.choice(["lo", "mid", "hi"], n_rows),
        },
        index=pd.RangeIndex(5, 5 + n_rows, name="person"),
    ).astype({"kind": object})
    frame.columns.name = "field"
    return frame


DOMAIN = Domain(
    {
        "age": Numeric(0, 90, 9, integer=True),
        "sex": Categorical(["M", "F"]),
        "kind": TEXT,
        "pay": Numeric(0, 1, 4),
        "owner": FLAG,
    }
)


@pytest.fixture(scope="module")
def fitted():
    return skdp.MarginalSynthesizer(epsilon=50, domain=DOMAIN, random_state=0).fit(people())


TEXT_TYPE = str(pd.Series(["text"]).dtype)
OWN_TYPES = {
    "pay": "float64",
    "sex": TEXT_TYPE,
    "age": "int64",
    "owner": "bool",
    "kind": TEXT_TYPE,
}


def types_of(frame):
    return frame.dtypes.astype(str).to_dict()


def test_sample_looks_like_the_rows(fitted):
    X = people()
    for n_rows in (0, 20):
        out = fitted.sample(n_rows, random_state=0)
        pd.testing.assert_index_equal(out.columns, X.columns)
        assert out.index.name == "person" and list(out.index) == list(range(n_rows))
        assert types_of(out) == OWN_TYPES


def test_a_public_table_without_rows_decides_the_types(fitted):
    X = people()
    for n_rows in (0, 20):
        out = fitted.sample(n_rows, random_state=0, like=X[:0])
        pd.testing.assert_index_equal(out.columns, X.columns)
        assert out.index.name == "person"
        assert out.drop(columns="sex").dtypes.equals(X.drop(columns="sex").dtypes)
        assert out["sex"].dtype == pd.CategoricalDtype(["M", "F"])
    # It also decides library and order; columns that it lacks have the types of the domain.
    out = fitted.sample(5, random_state=0, like=pl.DataFrame(schema={"pay": pl.Decimal(4, 2)}))
    assert out.schema == {
        "age": pl.Int64,
        "sex": pl.String,
        "kind": pl.String,
        "pay": pl.Decimal(4, 2),
        "owner": pl.Boolean,
    }
    plain = fitted.sample(5, random_state=0)
    assert out["age"].to_list() == plain["age"].tolist()
    assert fitted.sample(5, like=np.empty((0, 5), dtype=object)).dtype == object


def test_what_is_no_public_table_without_rows(fitted):
    X = people()
    with pytest.raises(ValueError, match="like must have no rows"):
        fitted.sample(5, like=X)
    with pytest.raises(ValueError, match=r"does not declare: \['wage'\]"):
        fitted.sample(5, like=pd.DataFrame({"wage": pd.Series(dtype="int8")}))
    with pytest.raises(TypeError, match="Expected a pandas, Polars"):
        fitted.sample(5, like="int8")
    with pytest.raises(ValueError, match="like and given were both given"):
        fitted.sample(given=X[["age"]], like=X[:0])


def test_the_values_are_those_of_the_release(fitted):
    plain = fitted.synopsis_.sample(30, random_state=3)
    out = fitted.sample(30, random_state=3)
    for name in ("age", "sex", "kind", "owner"):
        assert out[name].tolist() == plain[name].tolist()
    assert np.allclose(out["pay"], plain["pay"])
    # A release by itself knows no rows, and has the order and the types of the domain.
    assert list(plain) == list(DOMAIN)


def test_other_containers():
    frame = people().drop(columns="sex")
    domain = DOMAIN.select([name for name in DOMAIN if name != "sex"])
    release = skdp.MarginalSynthesizer(epsilon=50, domain=domain, random_state=0)
    given = pl.from_pandas(frame)
    own = {"pay": pl.Float64, "age": pl.Int64, "owner": pl.Boolean, "kind": pl.String}
    for rows in (given, given.lazy()):
        assert release.fit(rows).sample(9).schema == own
    out = release.fit(given.to_arrow()).sample(9)
    assert out.schema.names == list(own)
    assert [str(kind) for kind in out.schema.types[:3]] == ["double", "int64", "bool"]
    assert release.fit(frame.to_numpy()[:, [2, 3, 0, 1]]).sample(9).dtype == object
    assert release.sample(9, like=given[:0]).schema == given.schema
    assert release.sample(9, like=given[:0].to_arrow()).schema == given.to_arrow().schema


@over("engine", ["duckdb", "dask.dataframe"])
def test_engines_give_pandas(engine):
    module = pytest.importorskip(engine)
    frame = people().reset_index(drop=True).drop(columns="sex")
    domain = DOMAIN.select([name for name in DOMAIN if name != "sex"])
    release = skdp.MarginalSynthesizer(epsilon=50, domain=domain, random_state=0)
    if engine == "duckdb":
        rows = module.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    else:
        rows = module.from_pandas(frame, npartitions=2)
    out = release.fit(rows).sample(5)
    assert list(out) == list(frame)
    assert types_of(out) == {name: OWN_TYPES[name] for name in frame}


def test_training_sets_and_labels():
    frame = people()
    X, y = frame.drop(columns="owner"), frame["owner"]
    release = skdp.MarginalSynthesizer(epsilon=50, domain=DOMAIN, target="owner", random_state=0)
    X_new, y_new, _ = release.fit(X, y).make_training_set()
    assert list(X_new) == list(X)
    assert types_of(X_new) == {name: OWN_TYPES[name] for name in X}
    assert release.sample(3).columns.tolist() == [*X, "owner"]
    X_new, y_new = release.fit_resample(X, y)
    assert isinstance(y_new, pd.Series) and (y_new.name, y_new.dtype) == ("owner", bool)
    assert y_new.index.name == "person"


@over(
    "labels",
    [
        pd.Series([0, 1], dtype="int8", name="who"),
        pd.Series([0, 1], dtype="Int8"),
        pd.Series([0, 1], dtype="category"),
        np.array([0, 1], dtype=np.int8),
        np.array([0, 1], dtype=np.float32),
        np.array([0, 1], dtype=object),
        pl.Series("who", [0, 1], dtype=pl.UInt8),
    ],
)
def test_labels_are_like_those_that_were_given(labels):
    drawn = pd.Series([1, 0, 1])
    out = labels_like(drawn, drawn.to_numpy(), labels, Domain({"who": ZERO_ONE}), "who")
    assert type(out) is type(labels) and str(out.dtype).lower() == "int64"
    assert out.tolist() == [1, 0, 1] if hasattr(out, "tolist") else out.to_list() == [1, 0, 1]
    assert getattr(out, "name", None) == getattr(labels, "name", None)


def test_models_are_trained_on_the_order_of_the_rows_and_the_types_of_the_domain():
    seen = []

    class Model(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            seen.append(X)
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            seen.append(X)
            return np.repeat(self.classes_[:1], len(X))

    frame = people()
    X, y = frame.drop(columns="owner"), frame["owner"]
    release = skdp.MarginalSynthesizer(epsilon=50, domain=DOMAIN, target="owner", random_state=0)
    skdp.PrivateClassifier(Model(), release).fit(X, y).predict(X)
    # Trials before the charge, training, and prediction.
    for each in seen:
        assert list(each) == list(X)
    for each in seen[:-1]:
        assert types_of(each) == {name: OWN_TYPES[name] for name in X}


def test_rows_of_a_histogram():
    X = pd.DataFrame({"age": people()["age"]})
    histogram = skdp.RangeTreeHistogram(epsilon=50, domain=Domain({"age": DOMAIN["age"]}))
    assert histogram.fit(X).sample(5)["age"].dtype == "int64"
    assert histogram.sample(5, like=X[:0])["age"].dtype == "uint8"
    assert histogram.sample(5, like=X["age"][:0])["age"].dtype == "uint8"
    assert histogram.fit(X["age"].to_numpy()).sample(5).dtype == np.int64


def test_rows_of_a_grid():
    frame = people()
    release = skdp.PrivPfCTransformer(epsilon=50, domain=DOMAIN, target="kind", random_state=0).fit(
        frame
    )
    out = release.sample(5)
    assert list(out) == list(frame) and types_of(out) == OWN_TYPES
    out = release.sample(5, like=frame[:0])
    assert out["pay"].dtype == "float32" and out["kind"].dtype == object


def test_releases_of_earlier_versions_draw_rows():
    for path in OLD.glob("*.pkl"):
        old = pickle.loads(path.read_bytes())
        if hasattr(old, "sample") and hasattr(old, "_library"):
            assert old._layout is None
            assert len(old.sample(4, random_state=0)) == 4


def test_no_value_is_read():
    frame = people()
    for rows in (frame, frame.iloc[:0], frame.iloc[:1]):
        rows = rows.assign(sex=rows["sex"].cat.remove_unused_categories())
        layout = Layout.like(rows, as_frame(rows), DOMAIN)
        whole = Layout.like(frame, as_frame(frame), DOMAIN)
        assert repr(layout) == repr(whole)
        for name in DOMAIN:
            assert layout._plans[name].categories == whole._plans[name].categories


# --- the types of the records leave no trace


WHOLE_NULLABLE = nullable(WHOLE)
NUMBERS = [3, 20, 20, 41, 90, 90, 90, 7]
TEXTS = ["lo", "hi", "hi", "mid", "lo", "lo", "hi", "mid"]
FLAGS = [True, False, False, True, True, True, False, True]
YEAR = Date("2000", "2009", unit="year")
INTEGER_TYPES = [f"{kind}{bits}" for kind in ("int", "uint", "Int", "UInt") for bits in INTEGERS]
CENTS = [Decimal(value) / 100 for value in (300, 2025, 2025, 4150, 9000, 9000, 9000, 725)]


def series(values, *dtypes):
    """A column of values in several types, and as objects."""
    plain = pd.Series(values, dtype=object)
    if pd.__version__ < "3" and plain.isna().any():
        # There "str" writes gaps as text.
        dtypes = [dtype for dtype in dtypes if dtype != "str"]
    return [plain, *(plain.astype(dtype) for dtype in dtypes)]


def decimals(values, *digits):
    kinds = [arrow(pa.decimal128(*each)) for each in digits]
    return [pd.Series(pd.array(values, dtype=kind)) for kind in kinds]


def gaps(values):
    return [values[0], None, *values[2:]]


SAME = {
    "whole numbers": (
        WHOLE,
        [
            *series(NUMBERS, *INTEGER_TYPES, "float32", "float64", "Float64", "str", "category"),
            *series(NUMBERS, *(arrow(each) for each in (pa.int8(), pa.uint64(), pa.float64()))),
            *decimals([Decimal(each) for each in NUMBERS], (2, 0), (9, 2), (38, 10)),
        ],
    ),
    "whole numbers with gaps": (
        WHOLE_NULLABLE,
        [
            *series(gaps(NUMBERS), "float64", "Int8", "UInt64", "Float32", "str"),
            *series(gaps(NUMBERS), arrow(pa.int8()), arrow(pa.float64())),
        ],
    ),
    "numbers": (
        Numeric(0, 100, bins=10),
        [
            *series([float(each) for each in CENTS], "float64", "Float64", "str"),
            *decimals(CENTS, (4, 2), (9, 2), (38, 10)),
            pd.Series(CENTS, dtype=object),
        ],
    ),
    "money": (
        Numeric(0, 100, bins=10, decimals=2, nullable=True),
        [*series(gaps(CENTS), "float64"), *decimals(gaps(CENTS), (4, 2), (9, 2), (38, 10))],
    ),
    "truth values": (
        FLAG,
        series(FLAGS, "bool", "boolean", "int8", "float64", "str", "category", arrow(pa.bool_())),
    ),
    "truth values with gaps": (
        nullable(FLAG),
        series(gaps(FLAGS), "boolean", "float64", "str", arrow(pa.bool_())),
    ),
    "text": (
        TEXT,
        series(TEXTS, "str", "string", "string[pyarrow]", "category", arrow(pa.large_string())),
    ),
    "text with gaps": (
        nullable(TEXT),
        series(gaps(TEXTS), "str", "string", "category", arrow(pa.string())),
    ),
    "text without a value": (nullable(TEXT), series([None] * 8, "float64", "str")),
    "no value that fits": (
        Categorical(["lo", "hi"], other="hi"),
        series([0, 1] * 4, "int8", "bool", "float64", "str"),
    ),
    "codes": (ZERO_ONE, series([0, 1, 1, 0, 0, 0, 1, 0], "int8", "bool", "float32", "str")),
    "codes as text": (Categorical(["0", "1"]), series([0, 1, 1, 0] * 2, "int64", "float64", "str")),
    "days": (
        DAY,
        [
            *series(["2020-01-05", "2021-03-01"] * 4, "str", "M8[s]", "M8[ns]", "category"),
            *series([datetime.date(2020, 1, 5), datetime.date(2021, 3, 1)] * 4, arrow(pa.date32())),
        ],
    ),
    "days without a value": (
        Date("2020-01-01", "2021-12-31", bins=20, nullable=True),
        series([None] * 8, "float64", "str", "M8[ns]"),
    ),
    "times": (HOUR, series(["2020-01-05T04:00", "2021-03-01"] * 4, "str", "M8[ms]", "M8[us]")),
    "years": (YEAR, series([2001, 2002, 2002, 2009] * 2, "int64", "float64", "str")),
}


def released(X, attribute):
    """Everything that has a type, of equal seeds."""
    domain = Domain({"b": Numeric(0, 1, bins=2), "a": attribute})
    release = skdp.GridSynthesizer(epsilon=50, domain=domain, rule="identity", random_state=1).fit(
        X
    )
    return release.sample(30, random_state=0), release.make_training_set(9, random_state=0)[0]


@over("attribute, columns", SAME.values())
def test_the_type_of_the_records_leaves_no_trace(attribute, columns):
    found = []
    for column in columns:
        X = pd.DataFrame({"a": column, "b": np.linspace(0, 1, 8)})
        found.append(released(X, attribute))
    for each in found:
        assert first_difference(found[0], each) is None
        pd.testing.assert_frame_equal(found[0][0], each[0], check_exact=True)


@over("attribute", [WHOLE, WHOLE_NULLABLE, FLAG, REAL, TEXT, DAY, HOUR, ZONED])
def test_the_type_of_the_records_leaves_no_trace_in_other_libraries(attribute):
    cells = {"b": np.linspace(0, 1, 8)}
    columns = {
        "polars": [pl.Series([None] * 8, dtype=kind) for kind in (pl.String, pl.Null, pl.Object)],
        "pyarrow": [pa.nulls(8), pa.nulls(8, pa.string()), pa.nulls(8, pa.large_string())],
        "numpy": [np.full(8, np.nan), np.full(8, None), np.full(8, "nan")],
    }
    if not isinstance(attribute, Date):
        columns["polars"] += [pl.Series([None] * 8, dtype=kind) for kind in (pl.Float32,)]
        columns["pyarrow"] += [pa.nulls(8, kind) for kind in (pa.float32(), pa.float64())]
    make = {
        "polars": pl.DataFrame,
        "pyarrow": pa.table,
        "numpy": lambda data: np.column_stack([data["b"].astype(data["a"].dtype), data["a"]]),
    }
    for library, several in columns.items():
        found = [released(make[library]({"a": each, **cells}), attribute) for each in several]
        for each in found:
            assert first_difference(found[0], each) is None
            if library != "numpy":
                assert found[0][0].equals(each[0]) and found[0][0].schema == each[0].schema


@over("odd", ["", "0.5", "9223372036854775808", "none", "1e400", "-"])
@over("column", ["age", "member", "zip", "born", "city"])
def test_one_odd_value_of_a_file_costs_one_record(odd, column):
    # pandas takes numbers for text, floats for integers and so on by all values of a column.
    domain = Domain(
        {
            "age": Numeric(0, 99, bins=10, integer=True),
            "member": FLAG,
            "zip": Categorical(["01067", "10115", "20095"]),
            "born": Date("1950", "2009", unit="year", bins=6),
            "city": Categorical(["Bonn", "Ulm"]),
        }
    )
    record = {"age": "41", "member": "True", "zip": "01067", "born": "1960", "city": "Ulm"}
    usual = [record, {**record, "zip": "20095", "born": "2001", "member": "False"}] * 20

    def read(records):
        lines = [",".join(domain), *(",".join(each.values()) for each in records)]
        return pd.read_csv(io.StringIO("\n".join(lines)))

    here, there = read(usual), read([*usual, {**record, column: odd}])
    release = skdp.GridSynthesizer(epsilon=1, domain=domain, rule=2)
    result = skdp.audit.replay(release, here, there, n=2)
    assert result.passed and not result.n_errors, str(result)

    def types(X):
        return release.fit(X).sample(3).dtypes.tolist()

    assert types(here) == types(there)


@over("classes", [[0, 1], [False, True], ["0", "1"]])
def test_declared_classes_decide_the_type_of_predictions(classes):
    domain = Domain({"x": Numeric(0, 1, bins=2)})
    X = np.array([[0.2], [0.8]] * 20)
    models = [
        skdp.PrivateNaiveBayes(epsilon=50, domain=domain, classes=classes, random_state=0),
        skdp.PrivPfCClassifier(epsilon=50, domain=domain, classes=classes, random_state=0),
        skdp.PrivateClassifier(
            DecisionTreeClassifier(random_state=0),
            skdp.GridSynthesizer(epsilon=50, domain=domain, rule="identity", random_state=0),
            classes=classes,
            random_state=0,
        ),
    ]
    for model in models:
        for y in series([0, 1] * 20, "int8", "float64", "bool", "str", "category"):
            model.fit(X, y)
            assert first_difference(model.classes_, np.array(classes)) is None
            assert first_difference(model.predict(X[:2]), np.array(classes)) is None
