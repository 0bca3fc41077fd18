"""Domains from schemas in the formats that people have; no row is ever read."""

from __future__ import annotations

import enum
import json
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp import (
    Categorical,
    Date,
    Datetime,
    Domain,
    DomainError,
    Identifier,
    Numeric,
    PrivacyLeakWarning,
    Taxonomy,
    at_most,
    derived,
    forbid,
    only_if,
)
from skdp.domain.schemas.cells import as_span, as_values, meaning
from skdp.domain.schemas.codebook import HEADERS
from skdp.domain.values import number_meant

NIST = Path(__file__).resolve().parents[2] / "shared" / "data" / "nist"


def declared(domain):
    """Attributes of all columns, identifiers too."""
    return {name: domain.declared(name) for name in domain.columns}


# Listings of types


def test_types_with_ranges_are_a_domain():
    frame = pd.DataFrame(
        {"age": [1], "city": ["x"], "sex": pd.Categorical(["F"], ["F", "M"]), "ok": [True]}
    )
    domain = Domain.from_schema(frame, ranges={"age": (0, 99), "city": ["x", "y"]})
    assert domain == Domain(
        {
            "age": Numeric(0, 99, integer=True),
            "city": Categorical(["x", "y"], nullable=True),
            "sex": Categorical(["F", "M"], nullable=True),
            "ok": Categorical([False, True]),
        }
    )
    assert Domain.from_schema(frame.dtypes, ranges={"age": (0, 99), "city": ["x", "y"]}) == domain


def test_no_value_is_read():
    def boom(frame):
        raise AssertionError("rows were read")

    frame = pl.DataFrame({"age": [1], "sex": ["F"]}, schema_overrides={"sex": pl.Enum(["F", "M"])})
    lazy = frame.lazy().map_batches(boom, schema=frame.schema)
    with pytest.raises((AssertionError, pl.exceptions.ComputeError), match="rows were read"):
        lazy.collect()
    expected = Domain.from_schema(frame.schema, ranges={"age": (0, 9)})
    assert Domain.from_schema(lazy, ranges={"age": (0, 9)}) == expected
    assert Domain.skeleton(lazy) == Domain.skeleton(frame)
    table = pd.DataFrame({"age": [1, 200], "name": ["x", "secret"]})
    assert Domain.skeleton(table) == Domain.skeleton(table[:0])
    with pytest.raises(DomainError) as caught:
        Domain.from_schema(table)
    assert "secret" not in str(caught.value) and "200" not in str(caught.value)


def test_types_of_dates_become_dates_or_instants_as_their_bounds_say():
    types = {"d": "datetime64[ns]", "t": "datetime64[ns]", "z": "datetime64[ns, Europe/Berlin]"}
    day = ("2020-01-01", "2020-12-31")
    domain = Domain.from_schema(
        types, ranges={"d": day, "t": ("2020-01-01T00:00", "2020-12-31T23:00"), "z": day}
    )
    assert type(domain["d"]) is Date
    assert type(domain["t"]) is Datetime and domain["t"].tz is None
    assert type(domain["z"]) is Datetime and str(domain["z"].tz) == "Europe/Berlin"


def test_one_error_names_every_gap_and_its_code_can_be_filled_in():
    types = {"age": "int64", "pay": "float64", "city": "str", "d": "date", "ok": "bool"}
    with pytest.raises(DomainError, match="4 columns need") as caught:
        Domain.from_schema(types)
    code = re.search(r"ranges=(\{.*?\n\})", str(caught.value), re.S)[1]
    again = eval(code)
    assert set(again) == {"age", "pay", "city", "d"}
    with pytest.raises(DomainError, match="4 columns need"):
        Domain.from_schema(types, ranges=again)
    code = code.replace("(..., ...),  # date", "('2020-01-01', '2020-02-01'),  #")
    code = code.replace("(..., ...)", "(0, 9)").replace("[...]", "['x']")
    assert Domain.from_schema(types, ranges=eval(code)).names == tuple(types)


def test_one_bound_that_is_known_stays_in_the_code_to_fill_in():
    schema = {"properties": {"n": {"type": "integer", "minimum": 3}}}
    with pytest.raises(DomainError, match=re.escape("'n': (3, ...),  # integer: smallest")):
        Domain.from_schema(schema)
    assert Domain.from_schema(schema, ranges={"n": (..., 9)}, nullable=False)["n"] == Numeric(
        3, 9, integer=True
    )


def test_unknown_types_are_named_with_the_known_ones():
    with pytest.raises(DomainError, match=r"'s' has type duration\[ns\]\. Known are: integer, num"):
        Domain.from_schema(pa.schema([("s", pa.duration("ns")), ("b", pa.bool_())]))
    with pytest.raises(DomainError, match="'b' has type geopoint"):
        Domain.from_schema({"a": "bool", "b": "geopoint"})
    domain = Domain.from_schema({"a": "bool", "b": "geopoint"}, drop="b")
    assert domain.names == ("a",)


def test_free_text_is_refused_with_the_remedy():
    with pytest.raises(DomainError, match="'notes': .*free text.*or leave it out with drop="):
        Domain.from_schema({"notes": "free text", "a": "bool"})


def test_overrides():
    types = {"id": "int64", "age": "int64", "zip": "int64", "x": "object", "w": "int64"}
    domain = Domain.from_schema(
        types,
        types={"id": "identifier", "zip": "category"},
        ranges={"zip": [1, 2], "x": (0.0, 1.5), "w": (0, 10**6)},
        attributes={"age": Numeric(0, 9)},
        nullable=["x"],
        bins={"w": 50},
    )
    assert domain.columns == tuple(types) and domain.names == ("age", "zip", "x", "w")
    assert domain["zip"] == Categorical([1, 2]) and domain["x"] == Numeric(0, 1.5, nullable=True)
    assert domain["w"] == Numeric(0, 10**6, 50, integer=True)
    assert Domain.from_schema({"w": "int64"}, ranges={"w": (0, 10**6)})["w"].size == 800


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranges": {"b": (0, 1)}}, "ranges names 'b', which the schema does not have"),
        ({"types": ["a"]}, "types must be a dict"),
        ({"drop": 3}, "drop must be a list"),
        ({"drop": ["a"]}, "drop leaves no column"),
        ({"ranges": {"a": (0, 1, 2)}}, "needs a pair"),
        ({"ranges": {"a": 3}}, "takes a pair"),
        ({"ranges": {"a": Numeric(0, 1)}}, "go into attributes="),
        ({"ranges": {"a": (1, 0)}}, "Column 'a': Numeric needs lower"),
        ({"ranges": {"a": ("x", "y")}}, "Column 'a': lower must be a number"),
        ({"format": "excel"}, "format"),
        ({"sheet": 1}, "has no option 'sheet'; it takes none"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises((DomainError, ValueError), match=message):
        Domain.from_schema({"a": "int64"}, **options)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("NUMERIC(10, 2)", "number", {"decimals": 2}),
        ("decimal(10,2)", "number", {"decimals": 2}),
        ("Whole number", "integer", {}),
        ("VARCHAR(20)", "category", {}),
        ("Ordinal", "category", {"ordered": True}),
        ("datetime64[ns, UTC]", "datetime", {"tz": "UTC"}),
        ("timestamp[us, tz=Europe/Berlin]", "datetime", {"tz": "Europe/Berlin"}),
        ("TIMESTAMP WITH TIME ZONE", "datetime", {"tz": "UTC"}),
        ("Datetime(time_unit='us', time_zone=None)", "datetime", {}),
        (
            "Datetime(time_unit='us', time_zone='America/New_York')",
            "datetime",
            {"tz": "America/New_York"},
        ),
        ("datetime64[ns]", "datetime", {}),
        ("date32[day]", "date", {}),
        ("Free text", "text", {}),
        ("UUID", "identifier", {}),
        ("list<item: int64>", "unknown", {}),
        ("", "unknown", {}),
    ],
)
def test_names_of_types(name, kind, said):
    assert meaning(name) == (kind, said)


# Formats of files and mappings


def test_frictionless(tmp_path):
    schema = {
        "fields": [
            {"name": "id", "type": "integer"},
            {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": "99"}},
            {
                "name": "pay",
                "type": "number",
                "constraints": {"required": True, "minimum": 0, "maximum": 1e5},
            },
            {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M", "NA"]}},
            {"name": "code", "type": "integer", "constraints": {"enum": ["1", "2"]}},
            {"name": "ok", "type": "boolean", "constraints": {"required": True}},
            {
                "name": "day",
                "type": "date",
                "format": "%d/%m/%Y",
                "constraints": {"minimum": "01/02/2020", "maximum": "31/12/2020"},
            },
            {"name": "year", "type": "year", "constraints": {"minimum": 2000, "maximum": 2020}},
            {"name": "grade", "type": "string", "categories": [{"value": "a"}, {"value": "b"}]},
        ],
        "primaryKey": ["id"],
        "missingValues": ["", "NA"],
    }
    domain = Domain.from_schema(schema)
    assert declared(domain) == {
        "id": Identifier(),
        "age": Numeric(0, 99, integer=True, nullable=True),
        "pay": Numeric(0, 1e5),
        "sex": Categorical(["F", "M"], nullable=True),
        "code": Categorical([1, 2], nullable=True),
        "ok": Categorical([False, True]),
        "day": Date("2020-02-01", "2020-12-31", nullable=True, format="%d/%m/%Y"),
        "year": Numeric(2000, 2020, integer=True, nullable=True),
        "grade": Categorical(["a", "b"], nullable=True),
    }
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema))
    assert Domain.from_schema(path) == Domain.from_schema(str(path)) == domain
    package = {"resources": [{"name": "r", "schema": schema}, {"name": "s", "schema": {}}]}
    assert Domain.from_schema(package, resource="r") == domain
    with pytest.raises(DomainError, match="There are 2 tables for resource"):
        Domain.from_schema(package)


def test_json_schema():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "sex": {"enum": ["F", "M"]},
            "base": {"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
        },
        "allOf": [{"$ref": "#/$defs/base"}],
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 100},
            "pay": {"type": ["number", "null"], "minimum": 0, "maximum": 9, "multipleOf": 0.01},
            "sex": {"$ref": "#/$defs/sex"},
            "day": {
                "type": "string",
                "format": "date",
                "formatMinimum": "2020-01-01",
                "formatMaximum": "2020-12-31",
            },
            "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
            "grade": {"oneOf": [{"const": 1, "title": "good"}, {"const": 2}]},
        },
        "required": ["id", "age", "pay", "sex", "day", "at", "grade"],
    }
    domain = Domain.from_schema(schema, ranges={"at": ("2020-01-01T00:00", "2020-01-02T00:00")})
    assert declared(domain) == {
        "ok": Categorical([False, True]),
        "id": Identifier(),
        "age": Numeric(0, 99, integer=True),
        "pay": Numeric(0, 9, decimals=2, nullable=True),
        "sex": Categorical(["F", "M"]),
        "day": Date("2020-01-01", "2020-12-31"),
        "at": Datetime("2020-01-01T00:00", "2020-01-02T00:00", nullable=True),
        "grade": Categorical([1, 2]),
    }
    rows = {"type": "array", "items": {**schema, "$defs": {}}, "$defs": schema["$defs"]}
    assert Domain.from_schema(rows, drop="at").names == tuple(n for n in domain.names if n != "at")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {}}, "describes no table"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "leads out of the file"),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}}, "leads nowhere"),
        (
            {"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"a": {"$ref": "#/$defs/a"}}},
            "in a circle",
        ),
        ({"properties": {"a": {"type": "object"}}}, "'a' has type object"),
        ({"properties": {"a": {"type": ["string", "integer"]}}}, "has type"),
        ({"properties": {"a": 3}}, "must be an object"),
        ({"properties": {1: {"type": "boolean"}}}, "must be strings, got 1"),
        ({"properties": {"a": {"type": "integer", "minimum": "x"}}}, "'x' is not a number"),
    ],
)
def test_json_schemas_that_are_refused(schema, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_schema(schema, format="json_schema")


def one(schema):
    """The attribute of the one column of a JSON Schema."""
    return Domain.from_schema({"properties": {"a": schema}, "required": ["a"]})["a"]


def test_alternatives_of_json_schemas():
    number = {"type": "number", "minimum": 0, "maximum": 9}
    assert one({"oneOf": [{"anyOf": [number, {"type": "null"}]}]}) == Numeric(0, 9, nullable=True)
    assert one({"anyOf": [{"enum": ["x", None]}, {"const": "y"}]}) == Categorical(
        ["x", "y"], nullable=True
    )
    assert one({"anyOf": [{"type": "boolean", "nullable": True}]}).nullable
    assert one({"type": "number", "minimum": 0, "maximum": 9, "multipleOf": 1}).integer
    day = {"type": "string", "format": "date", "minimum": "2020-01-01"}
    assert one({**day, "formatMaximum": "2020-12-31"}) == Date("2020-01-01", "2020-12-31")
    with pytest.raises(DomainError, match="has type integer or string"):
        one({"anyOf": [{"type": "integer"}, {"type": "string"}]})


def test_all_columns_that_are_wrong_are_named_at_once_and_may_be_left_out():
    rules = {"minimum": "x", "maximum": 9}
    names = {"a": "integer", "b": "number", "c": "date"}
    schema = {"fields": [{"name": n, "type": t, "constraints": rules} for n, t in names.items()]}
    with pytest.raises(
        DomainError, match=r"(?s)'a': .*'x' is not a num.*'b': .*'c': .*9 is not a d"
    ):
        Domain.from_schema(schema)
    pair = {"name": "d", "type": "boolean"}
    assert Domain.from_schema({"fields": [*schema["fields"], pair]}, drop=list(names)).names == (
        "d",
    )


def test_bounds_of_dates_may_be_written_as_iso_beside_a_format():
    rules = {"minimum": "01.02.2020", "maximum": "2020-12-31", "required": True}
    field = {"name": "a", "type": "date", "format": "%d.%m.%Y", "constraints": rules}
    domain = Domain.from_schema({"fields": [field]})
    assert domain["a"] == Date("2020-02-01", "2020-12-31", format="%d.%m.%Y")
    rules["minimum"] = "1/2/2020"
    with pytest.raises(DomainError, match=r"'1/2/2020' is not a date in the format '%d.%m.%Y'"):
        Domain.from_schema({"fields": [field]})


def test_sdv_needs_ranges_and_says_so_once():
    metadata = {
        "METADATA_SPEC_VERSION": "V1",
        "tables": {
            "people": {
                "primary_key": "id",
                "columns": {
                    "id": {"sdtype": "id"},
                    "age": {"sdtype": "numerical", "computer_representation": "Int64"},
                    "pay": {"sdtype": "numerical"},
                    "sex": {"sdtype": "categorical"},
                    "size": {"sdtype": "categorical", "order": ["S", "M", "L"]},
                    "ok": {"sdtype": "boolean"},
                    "day": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
                    "mail": {"sdtype": "email", "pii": True},
                },
            }
        },
    }
    with pytest.raises(DomainError, match="5 columns need") as caught:
        Domain.from_schema(metadata)
    for name in ("age", "pay", "sex", "day", "mail"):
        assert f"    {name!r}: " in str(caught.value)
    domain = Domain.from_schema(
        metadata,
        ranges={
            "age": (0, 99),
            "pay": (0, 9),
            "sex": ["F", "M"],
            "day": ("2020-01-01", "2020-12-31"),
        },
        drop="mail",
        nullable=False,
    )
    assert declared(domain)["id"] == Identifier()
    assert domain["age"] == Numeric(0, 99, integer=True)
    assert domain["size"] == Categorical(["S", "M", "L"], ordered=True)
    assert type(domain["day"]) is Date
    alone = {"columns": {"ok": {"sdtype": "boolean"}}}
    assert Domain.from_schema(alone).names == ("ok",)
    with pytest.raises(DomainError, match="name one of .*with table="):
        Domain.from_schema(metadata, table="gone")


def test_sdnist_schema_and_dictionary():
    schema = {
        "schema": {
            "PUMA": {"dtype": "object", "values": ["01-1", "02-2"]},
            "AGEP": {"dtype": "int64", "min": 0, "max": 99},
            "MSP": {"dtype": "object", "has_null": True, "null_value": "N", "values": ["N", "1"]},
            "PINCP": {"dtype": "object", "has_null": True, "null_value": "N", "min": 0, "max": 9.5},
        }
    }
    assert Domain.from_schema(schema) == Domain(
        {
            "PUMA": Categorical(["01-1", "02-2"]),
            "AGEP": Numeric(0, 99, integer=True),
            "MSP": Categorical(["N", "1"]),
            "PINCP": Numeric(0, 9.5, nullable=True),
        }
    )
    assert Domain.from_schema(schema, na_values="N")["MSP"] == Categorical([1], nullable=True)
    book = {
        "SEX": {"description": "x", "values": {"1": "Male", "2": "Female"}},
        "POV": {"values": {"N": "N/A", "min": 0, "max": 500, "501": "above"}},
        "INDP": {"description": "codes", "details": "many"},
    }
    with pytest.raises(DomainError, match=r"(?s)1 column needs .*'INDP': \[\.\.\.\]"):
        Domain.from_schema(book)
    domain = Domain.from_schema(book, ranges={"INDP": ["a", "b"]})
    assert domain["SEX"] == Categorical([1, 2])
    assert domain["POV"] == Numeric(0, 500, "auto", integer=True, special=[501], nullable=True)


def test_sdnist_files_of_nist():
    if not NIST.exists():
        pytest.skip(f"{NIST} is not here")
    domain = Domain.from_schema(NIST / "national2019.schema.json")
    table = pd.read_csv(NIST / "national2019.csv.gz", na_values={"PINCP": "N", "POVPIP": "N"},
                        keep_default_na=False, dtype={"PUMA": str})  # fmt: skip
    with pytest.warns(match="not private"):
        report = domain.check(table[list(domain.names)])
    # The schema of NIST rounds the largest density down.
    assert (
        report.columns.drop(index="DENSITY")[["below", "above", "to_other", "skipped"]].sum().sum()
        == 0
    )
    assert report.n_rows == 27_253 and report.n_skipped == 0
    schema = json.loads((NIST / "national2019.schema.json").read_text())["schema"]
    book = Domain.from_schema(
        NIST / "data_dictionary.json", ranges={"INDP": schema["INDP"]["values"]}
    )
    assert set(book.names) == set(domain.names)


# Models


def test_pandera():
    pandera = pytest.importorskip("pandera.pandas")
    check, column = pandera.Check, pandera.Column
    schema = pandera.DataFrameSchema(
        {
            "age": column(int, check.in_range(0, 100, include_max=False)),
            "pay": column(float, [check.ge(0), check.le(9.5)], nullable=True, coerce=True),
            "sex": column(str, check.isin(["F", "M"])),
            "size": column(pd.CategoricalDtype(["S", "M"], ordered=True)),
            "day": column("datetime64[ns]", [check.ge(pd.Timestamp("2020-01-01")),
                                             check.le(pd.Timestamp("2020-12-31"))]),
            "ok": column(bool, check(lambda values: values)),
        }
    )  # fmt: skip
    expected = {
        "age": Numeric(0, 99, integer=True),
        "pay": Numeric(0, 9.5, nullable=True),
        "sex": Categorical(["F", "M"]),
        "size": Categorical(["S", "M"], ordered=True),
        "day": Date("2020-01-01", "2020-12-31"),
        "ok": Categorical([False, True]),
    }
    assert declared(Domain.from_schema(schema)) == expected

    class Model(pandera.DataFrameModel):
        age: int = pandera.Field(in_range={"min_value": 0, "max_value": 9})
        sex: str = pandera.Field(isin=["F", "M"], nullable=True)

    assert Domain.from_schema(Model) == Domain(
        {"age": Numeric(0, 9, integer=True), "sex": Categorical(["F", "M"], nullable=True)}
    )
    with pytest.raises(DomainError, match="is a pattern"):
        Domain.from_schema(pandera.DataFrameSchema({"a.*": column(int, regex=True)}))
    with pytest.raises(DomainError, match=r"'a': \(0, \.\.\.\)"):
        Domain.from_schema(pandera.DataFrameSchema({"a": column(int, check.gt(-1))}))
    with pytest.raises(DomainError, match="must be strings"):
        Domain.from_schema(pandera.DataFrameSchema({0: column(int)}))


def test_pandera_for_polars():
    pandera = pytest.importorskip("pandera.polars")
    schema = pandera.DataFrameSchema(
        {
            "a": pandera.Column(pl.Int64, pandera.Check.in_range(0, 9)),
            "b": pandera.Column(pl.Enum(["x", "y"])),
        }
    )
    assert Domain.from_schema(schema) == Domain(
        {"a": Numeric(0, 9, integer=True), "b": Categorical(["x", "y"], ordered=True)}
    )


class Grade(enum.Enum):
    GOOD = "good"
    BAD = "bad"


def test_pydantic():
    pydantic = pytest.importorskip("pydantic")
    field = pydantic.Field

    class Person(pydantic.BaseModel):
        id: UUID
        age: int = field(ge=0, lt=100)
        pay: Optional[Annotated[Decimal, field(ge=0, le=Decimal("9.5"), decimal_places=2)]]  # noqa: UP045
        sex: Literal["F", "M"] | None = None
        grade: Grade
        ok: bool = True
        day: date = field(ge=date(2020, 1, 1), le=date(2020, 12, 31))
        at: datetime = field(ge=datetime(2020, 1, 1), le=datetime(2020, 1, 2))
        city: str = field(alias="City")

    domain = Domain.from_schema(Person, ranges={"City": ["x", "y"]})
    assert declared(domain) == {
        "id": Identifier(),
        "age": Numeric(0, 99, integer=True),
        "pay": Numeric(0, 9.5, decimals=2, nullable=True),
        "sex": Categorical(["F", "M"], nullable=True),
        "grade": Categorical(["good", "bad"]),
        "ok": Categorical([False, True]),
        "day": Date("2020-01-01", "2020-12-31"),
        "at": Datetime("2020-01-01T00:00", "2020-01-02T00:00"),
        "City": Categorical(["x", "y"]),
    }

    class Other(pydantic.BaseModel):
        day: date | None = field(default=None, gt=date(2020, 1, 1), lt=date(2021, 1, 1))
        part: float = field(ge=0, le=1, multiple_of=0.01)
        raw: bytes = b""
        kind: pd.DataFrame = None
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    assert Domain.from_schema(Other, drop=["raw", "kind"]) == Domain(
        {"day": Date("2020-01-01", "2021-01-01", nullable=True), "part": Numeric(0, 1, decimals=2)}
    )
    with pytest.raises(DomainError, match="'raw' has type string, format binary, 'kind' has type"):
        Domain.from_schema(Other)

    class Odd(pydantic.BaseModel):
        a: list[int]
        b: int | str
        c: Any

    with pytest.raises(
        DomainError, match=r"'a' has type array.*'b' has type integer or s"
    ) as caught:
        Domain.from_schema(Odd)
    assert "'c': [...]" in str(caught.value)


# Code books

BOOK = """\
Code book of the loans,,,,,,,,,,
Variable,Data type,Valid range,Values,Special values,Missing,Decimals,Scale,Bins,Unit,Label
loan_id,id,,,,,,,,,Number of the loan
amount,money,"0-40,000",,0,no,2,log,40,USD,Amount
grade,category,,A|B|C,,,,ordinal,,,Grade
status,integer,,1=Current; 2=Late; 9=Unknown,,yes,,,,,Status
score,integer,300..850,999=none,,,,,,,Score
term,integer,,"36, 60",,,,,,,Months
sex,string,,1=Male;2=Female,,,,,,,Sex
rate,number,[0; 0.3],,,,,,20,,Rate
issued,date,2015-01-01 to 2020-12-31,,,,,,,month,Month of issue
joint,yes/no,,0=no;1=yes,,,,,,,Two applicants
"""


def write(tmp_path, text, name="book.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_code_book(tmp_path):
    domain = Domain.from_schema(write(tmp_path, BOOK))
    assert declared(domain) == {
        "loan_id": Identifier(),
        "amount": Numeric(0, 40_000, 40, scale="log", special=[0], decimals=2),
        "grade": Categorical(["A", "B", "C"], ordered=True),
        "status": Categorical([1, 2, 9], nullable=True),
        "score": Numeric(300, 850, "auto", integer=True, special=[999]),
        "term": Categorical([36, 60]),
        "sex": Categorical(["1", "2"]),
        "rate": Numeric(0, 0.3, 20),
        "issued": Date("2015-01-01", "2020-12-31", unit="month"),
        "joint": Categorical([0, 1]),
    }
    labelled = Domain.from_schema(write(tmp_path, BOOK), labels=True)
    assert labelled["sex"] == Categorical(["Male", "Female"])
    absent = Domain.from_schema(write(tmp_path, BOOK), na_values=[9, 999])
    assert absent["status"] == Categorical([1, 2], nullable=True)
    assert absent["score"] == Numeric(300, 850, "auto", integer=True, nullable=True)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_code_book_with_other_separators(tmp_path, separator):
    rows = [["Name", "Type", "Min", "Max"], ["age", "int", "0", "99"], ["pay", "float", "0", "1,5"]]
    text = "\n".join(separator.join(row) for row in rows[:2])
    domain = Domain.from_schema(write(tmp_path, text, "book.txt"))
    assert domain == Domain({"age": Numeric(0, 99, integer=True)})


def test_code_book_that_was_read_already(tmp_path):
    path = write(tmp_path, BOOK.partition("\n")[2])
    expected = Domain.from_schema(path)
    frame = pd.read_csv(path)
    for book in (
        frame,
        pl.read_csv(path),
        pa.Table.from_pandas(frame),
        frame.astype(object).to_dict("records"),
    ):
        assert Domain.from_schema(book, format="codebook") == expected
    with pytest.raises(DomainError, match="a frame, or a list of dicts, got int"):
        Domain.from_schema(3, format="codebook")


@pytest.mark.parametrize("form", ["frictionless", "json_schema", "sdv", "sdnist", "domain"])
@pytest.mark.parametrize("source", [pd.DataFrame({"a": ["secret"]}), ["secret"], None, 3])
def test_another_thing_than_a_schema_is_refused_without_its_values(form, source):
    with pytest.raises(DomainError) as caught:
        Domain.from_schema(source, format=form)
    assert "secret" not in str(caught.value)


def test_code_book_in_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["About this study"])
    page = book.create_sheet("Variables")
    page.append(["VARIABLE NAME", "Type", "Minimum", "Maximum", "Codes"])
    page.append(["age", "integer", 0, 99.0, None])
    page.append([2019, "boolean", None, None, None])
    page.append(["day", "date", datetime(2020, 1, 1), datetime(2020, 12, 31), None])
    page.append(["sex", None, None, None, "1=Male\n2=Female"])
    path = tmp_path / "book.xlsx"
    book.save(path)
    expected = {
        "age": Numeric(0, 99, integer=True),
        "2019": Categorical([False, True]),
        "day": Date("2020-01-01", "2020-12-31"),
        "sex": Categorical([1, 2]),
    }
    assert declared(Domain.from_schema(path)) == expected
    assert declared(Domain.from_schema(str(path), sheet="Variables")) == expected
    with pytest.raises(DomainError, match="no sheet 'x'; it has 'Sheet', 'Variables'"):
        Domain.from_schema(path, sheet="x")
    (tmp_path / "broken.xlsx").write_text("no workbook")
    with pytest.raises(DomainError, match="no workbook"):
        Domain.from_schema(tmp_path / "broken.xlsx")
    with pytest.raises(DomainError, match="Save a workbook of another format"):
        Domain.from_schema("book.ods")


def test_code_book_with_several_rows_for_each_variable():
    frame = pd.DataFrame(
        [
            ["sex", "category", "1", "Male"],
            ["", "", "2", "Female"],
            ["edu", "ordinal", "1", "None; or little"],
            ["edu", "", "2-4", "School"],
            ["age", "integer", "0-99", ""],
            ["age", "", "999", "unknown"],
        ],
        columns=["Variable", "Type", "Value", "Value label"],
    )
    domain = Domain.from_schema(frame, format="codebook")
    assert domain == Domain(
        {
            "sex": Categorical([1, 2]),
            "edu": Categorical([1, 2, 3, 4], ordered=True),
            "age": Numeric(0, 99, integer=True, special=[999]),
        }
    )
    labelled = Domain.from_schema(frame[:2], format="codebook", labels=True)
    assert labelled["sex"] == Categorical(["Male", "Female"])


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("category", "1-5", Categorical([1, 2, 3, 4, 5])),
        ("category", "1-3; 9=none", Categorical([1, 2, 3, 9])),
        ("category", "18-24|25-34", Categorical(["18-24", "25-34"])),
        ("category", "0-17|18+", Categorical(["0-17", "18+"])),
        ("", "18-24|25-34", Categorical(["18-24", "25-34"])),
        ("", "18-24", Numeric(18, 24, integer=True)),
        (
            "integer",
            "0-17=child; 18-99=adult; 999=none",
            Numeric(0, 99, integer=True, special=[999]),
        ),
        ("", "0-1.5", Numeric(0, 1.5)),
        ("", "a, b", Categorical(["a", "b"])),
        ("", "01, 02", Categorical(["01", "02"])),
        ("", "1, 2.5", Categorical([1, 2.5])),
        ("", "1, b", Categorical(["1", "b"])),
        ("boolean", "true|false", Categorical([True, False])),
        ("string", "true|false", Categorical(["true", "false"])),
        ("decimal(5,2)", "0..10", Numeric(0, 10, decimals=2)),
    ],
)
def test_values_of_code_books(kind, values, expected):
    frame = pd.DataFrame({"name": ["a"], "type": [kind], "values": [values]})
    domain = Domain.from_schema(frame, format="codebook")
    assert domain["a"] == expected


def test_code_book_of_a_survey_tool(tmp_path):
    text = (
        "Variable / Field Name,Form Name,Field Type,Field Label,"
        '"Choices, Calculations, OR Slider Labels",'
        "Text Validation Type OR Show Slider Number,Text Validation Min,Text Validation Max,"
        "Identifier?,Required Field?\n"
        "record_id,f,text,ID,,,,,y,\n"
        "age,f,text,Age,,integer,0,120,,y\n"
        'sex,f,radio,Sex,"1, Male | 2, Female",,,,,y\n'
        "smoker,f,yesno,Smokes,,,,,,\n"
    )
    domain = Domain.from_schema(write(tmp_path, text))
    assert declared(domain) == {
        "record_id": Identifier(),
        "age": Numeric(0, 120, integer=True),
        "sex": Categorical([1, 2]),
        "smoker": Categorical([0, 1]),
    }


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b\n1,2", "has no column for the names"),
        ("", "has no column for the names"),
        ("name,type\n", "no rows below"),
        ("name,variable\na,b", "two columns for the name"),
        ("name,type\na,bool\nb,bool\na,bool", "'a' are repeated"),
        ("name,type\na,bool\na,bool", "'a' are repeated"),
        ("name,type\n,bool", "no name in row 2"),
        ("name,type\na,geopoint", "'a' has type geopoint"),
        ("name,type,range\na,int,zero to nine", "'a' .row 2.: the range 'zero to nine' is not"),
        ("name,type,range\na,int,9-0", "lower < upper|lower"),
        ("name,type,min,max\na,int,x,9", "'x' is not a number"),
        ("name,type,range,bins\na,int,0-9,many", "bins must be a whole number"),
        (
            "name,type,range,scale\na,float,0-9,cubic",
            "scale must be 'linear', 'log' or 'sqrt', got 'cubic'",
        ),
        ("name,type,range,ordered\na,int,0-9,perhaps", "ordered must be yes or no"),
        ("name,type,range,values\na,int,0-9,x=none", "'x' is not a number"),
        ("name,type\na,int", "1 column needs"),
        ("name,type\na,text", "free text"),
        ("name,type,values\na,date,2020-01-01", "is date, so it needs a range"),
    ],
)
def test_code_books_that_are_refused(tmp_path, rows, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_schema(write(tmp_path, rows))


def test_all_cells_that_are_wrong_are_named_at_once(tmp_path):
    rows = "name,type,range\n" + "".join(f"c{i},int,none {i}\n" for i in range(30))
    with pytest.raises(DomainError) as caught:
        Domain.from_schema(write(tmp_path, rows))
    assert str(caught.value).count("is not understood") == 20
    assert "(10 more)" in str(caught.value)


def test_headers_have_one_meaning_each():
    words = [word for words in HEADERS.values() for word in words.split()]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("0-99", ("0", "99")),
        ("0..99", ("0", "99")),
        ("0–99", ("0", "99")),
        ("[0, 99]", ("0", "99")),
        ("[0,999]", ("0", "999")),
        ("0 to 99", ("0", "99")),
        ("-9--1", ("-9", "-1")),
        ("-5 - 5", ("-5", "5")),
        ("1.5:2.5", ("1.5", "2.5")),
        ("$1,000 - $2,000", ("$1,000", "$2,000")),
        ("0-100%", ("0", "100%")),
        (">= 18", ("18", None)),
        ("< 5", (None, "5")),
        ("18+", ("18", None)),
        ("2020-01-01/2020-12-31", ("2020-01-01", "2020-12-31")),
        ("2020-01-01T00:00..2020-01-01T12:00", ("2020-01-01T00:00", "2020-01-01T12:00")),
        ("5", None),
        ("a-b", None),
        ("1|2|3", None),
        ("", None),
    ],
)
def test_ranges_in_cells(text, ends):
    span = as_span(text)
    if span is not None:
        low, high = (
            next((span[k] for k in span if end in k.lower()), None) for end in ("min", "max")
        )
    assert (None if span is None else (low, high)) == ends


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1=Male; 2=Female", [("1", "Male"), ("2", "Female")]),
        ("1: Male, 2: Female", [("1", "Male"), ("2", "Female")]),
        ("1 - Male; 2 - Female", [("1", "Male"), ("2", "Female")]),
        ("1, Yes | 2, No", [("1", "Yes"), ("2", "No")]),
        ("1=Yes, or so|2=No", [("1", "Yes, or so"), ("2", "No")]),
        ("1|2|3", [("1", None), ("2", None), ("3", None)]),
        ('"a;b"; c', [("a;b", None), ("c", None)]),
        ("a, b", [("a", None), ("b", None)]),
        ("a:b; c", [("a:b", None), ("c", None)]),
        ("1=a\n2=b", [("1", "a"), ("2", "b")]),
        ("", []),
    ],
)
def test_lists_in_cells(text, values):
    assert as_values(text) == values


CELLS = st.text('019-.,;|=[] ab\n"Ny/:>$%é\x00', max_size=12) | st.sampled_from(
    ["int", "date", "category", "0-9", "1=a;2=b", "yes", "2020-01-01", "log", "text", "1e999", "id"]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*HEADERS, "Notes", ""]), min_size=1, max_size=6),
    st.lists(st.lists(CELLS, max_size=6), max_size=4),
    st.booleans(),
)
def test_code_books_raise_nothing_but_domain_errors(header, rows, labels):
    width = len(header)
    cells = [(row + [""] * width)[:width] for row in rows]
    frame = pd.DataFrame(cells, columns=header, dtype=object)
    try:
        Domain.from_schema(frame, format="codebook", labels=labels, na_values="0")
    except DomainError:
        pass


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_files_raise_nothing_but_domain_errors(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("books")
    for ending in (".csv", ".json", ".yaml", ".xlsx"):
        path = folder / f"schema{ending}"
        path.write_bytes(content)
        with pytest.raises(DomainError):
            Domain.from_schema(path)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 99)
    | st.text("ab09-", max_size=4)
    | st.sampled_from(["integer", "string", "number", "date", "numerical", "int64", "#/$defs/a"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["name", "type", "fields", "properties", "constraints", "minimum", "maximum", "enum",
             "columns", "sdtype", "schema", "dtype", "values", "min", "max", "$ref", "$defs", "a",
             "format", "required", "anyOf", "items", "primaryKey", "missingValues", "tables"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["frictionless", "json_schema", "sdv", "sdnist", "domain", "dtypes", None]),
    st.dictionaries(
        st.sampled_from(["fields", "properties", "columns", "schema", "a", "tables"]), JSON
    ),
)
def test_mappings_raise_nothing_but_domain_errors(form, source):
    try:
        Domain.from_schema(source, format=form)
    except DomainError:
        pass


# Files


def test_formats_are_recognised_or_the_known_ones_named(tmp_path):
    with pytest.raises(DomainError, match="one of dtypes, codebook, frictionless"):
        Domain.from_schema({})
    with pytest.raises(DomainError, match="has none of the formats"):
        Domain.from_schema(3)
    with pytest.raises(DomainError, match="taken for the path"):
        Domain.from_schema('{"a": 1}')
    with pytest.raises(FileNotFoundError):
        Domain.from_schema(tmp_path / "gone.json")
    with pytest.raises(DomainError, match="'a' occurs twice"):
        Domain.from_schema(write(tmp_path, '{"a": 1, "a": 2}', "twice.json"))
    with pytest.raises(DomainError, match="no CSV file in utf-8-sig .encoding='latin-1'"):
        (tmp_path / "latin.csv").write_bytes("name,values\na,é|b".encode("latin-1"))
        Domain.from_schema(tmp_path / "latin.csv")
    domain = Domain.from_schema(tmp_path / "latin.csv", encoding="latin-1")
    assert domain["a"] == Categorical(["é", "b"])


def test_own_files_are_a_format_too(tmp_path):
    pytest.importorskip("yaml")
    domain = Domain({"a": Numeric(0, 9)})
    for text, name in ((domain.to_json(), "d.json"), (domain.to_yaml(), "d.yaml")):
        assert Domain.from_schema(write(tmp_path, text, name)) == domain


# YAML


def test_yaml_is_what_a_person_means():
    pytest.importorskip("yaml")
    text = """\
    format: skdp.domain
    version: 1
    inferred: false
    attributes:
    - {name: answer, type: categorical, categories: [yes, no, on, 12:30, 2020-01-31, 1_000, 0o7]}
    - {name: code, type: categorical, categories: [0, 2.5, "3", true]}
    - {name: pay, type: numeric, lower: 0, upper: 1e3, bins: 4}
    """
    rest = ", ordered: false, taxonomy: null, other: null, nullable: false}"
    text = text.replace("]}", "]" + rest).replace(
        "bins: 4}", "bins: 4, integer: false, nullable: false}"
    )
    domain = Domain.from_yaml(text)
    assert domain["answer"].categories == ("yes", "no", "on", "12:30", "2020-01-31", "1_000", "0o7")
    assert domain["code"].categories == (0, 2.5, "3", True)
    assert domain["pay"] == Numeric(0, 1000, 4)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.text(max_size=6).filter(lambda t: t.isprintable() or "\n" in t)
        | st.sampled_from(
            ["yes", "no", "1e3", "0x1", "~", "null", "12:30", "2020-01-01", " a", "#"]
        )
        | st.integers(2, 99)
        | st.floats(2, 99).filter(lambda x: not x.is_integer()),
        min_size=2,
        max_size=8,
        # Two categories must not mean one number.
        unique_by=lambda value: value if (n := number_meant(value)) is None else n,
    )
)
def test_yaml_holds_what_json_holds(categories):
    pytest.importorskip("yaml")
    domain = Domain({"a": Categorical(categories), "n": Numeric(-1e300, 1e-5, 3)})
    assert Domain.from_yaml(domain.to_yaml()) == domain


@pytest.mark.parametrize(
    "text",
    ["", "a: [", "3", "a: 1\na: 2", "? [1]\n: 2", "!!python/object:os.system {}", "a: .nan", "\x00",
     "format: skdp.domain\nversion: 9"],
)  # fmt: skip
def test_yaml_that_is_no_domain_is_refused(text, tmp_path):
    pytest.importorskip("yaml")
    with pytest.raises(DomainError):
        Domain.from_yaml(text)
    with pytest.raises(DomainError):
        Domain.from_yaml(write(tmp_path, text, "d.yaml"))
    with pytest.raises(DomainError, match="takes YAML text or a path"):
        Domain.from_yaml(3)


def test_yaml_of_every_kind_of_column():
    pytest.importorskip("yaml")
    tree = Taxonomy.from_tree({"any": {"x": ["a", "b"], "y": ["c", "d"]}})
    domain = Domain(
        {
            "id": Identifier("C{:03d}"),
            "n": Numeric(0, 9, integer=True, nullable=True),
            "wide": Numeric(0, 10**6, 50, integer=True, special=[-1]),
            "log": Numeric(0, 9, 10, integer=True, scale="log"),
            "edges": Numeric(edges=[0, 1, 10, 100]),
            "whole": Numeric(edges=[0, 1, 3], integer=True),
            "cents": Numeric(0, 9, 4, decimals=2, special=[0]),
            "steps": Numeric(0, 9, step=3),
            "tree": Categorical(tree.leaves, taxonomy=tree, other="d", ordered=True),
            "zero": Categorical([0, 1], other=0),
            "day": Date("2020-01-01", "2020-12-31", "month", nullable=True),
            "at": Datetime("2020-01-01", "2020-01-02", "hour", tz="Europe/Berlin"),
        },
        structure=[only_if("n", "log > 3")],
    )
    text = domain.to_yaml()
    assert Domain.from_yaml(text) == domain and "null:" not in text
    wider = text.replace(
        "  upper: 9\n  integer: true\n  nullable", "  upper: 19\n  integer: true\n  nullable"
    )
    assert Domain.from_yaml(wider)["n"] == Numeric(0, 19, integer=True, nullable=True)


# What a person sees


def test_differences_are_readable():
    old = Domain(
        {
            "a": Numeric(0, 9, integer=True),
            "b": Categorical(["x", "y"]),
            "c": Categorical(["u", "v"]),
            "gone": Numeric(0, 1),
        }
    )
    new = Domain(
        {
            "b": Categorical(["y", "z"], nullable=True),
            "a": Numeric(0, 19, integer=True),
            "c": Numeric(0, 1),
            "new": Categorical(["n"]),
        }
    )
    found = old.diff(new)
    assert found and found.added == ("new",) and found.removed == ("gone",) and found.reordered
    text = repr(found)
    for line in (
        "+ new: Categorical, n",
        "- gone: Numeric, 0 to 1",
        "~ b: 1 more categories: 'z'; 1 fewer categories: 'x'; nullable: False -> True",
        "~ c: Categorical, u, v -> Numeric, 0 to 1",
        "~ order of the columns",
    ):
        assert line in text.splitlines()
    assert "~ a: upper: 9 -> 19" in text
    assert not old.diff(old) and repr(old.diff(old)) == "The domains are equal."
    marked = Domain(dict(old.items()), inferred=True)
    assert "inferred: False -> True" in repr(old.diff(marked))
    with pytest.raises(DomainError, match="diff compares with a Domain"):
        old.diff({})


def test_report_names_what_changes_with_shares():
    domain = Domain(
        {
            "a": Numeric(0, 9, integer=True),
            "b": Numeric(0, 9, integer=True),
            "c": Categorical(["x", "y"], nullable=True),
        },
        structure=[at_most("a", "b")],
    )
    frame = pd.DataFrame({"a": [1, 5, 3, 20], "b": [2, 3, 4, 30], "c": ["x", None, "z", "y"]})
    with pytest.warns(PrivacyLeakWarning):
        report = domain.check(frame)
    text = repr(report)
    assert "records skipped: 2 of 4 (50%)" in text
    assert "all represented as they are: 0 of 3" in text
    assert "rules that hold in all records: 0 of 1" in text
    assert re.search(r"at_most\('a', 'b'\) +1 \(25%\)", text)
    assert re.search(r"^a +1 \(25%\)", text, re.M) and "missing, kept" in text
    assert report.shares.loc["a", "above"] == 0.25 and not report.clean
    page = report._repr_html_()
    assert "<td" in page and "1 (25%)" in page and "at_most(&#x27;a&#x27;" in page
    with pytest.warns(PrivacyLeakWarning):
        clean = domain.check(frame[:1])
    assert clean.clean and "all represented as they are: 3 of 3" in repr(clean)
    with pytest.warns(PrivacyLeakWarning):
        assert "records skipped: 0 of 0 (0%)" in repr(domain.check(frame[:0]))


def test_structure_is_shown_and_compared():
    columns = {
        "a": Numeric(0, 9, integer=True),
        "b": Numeric(0, 9, integer=True),
        "g": Categorical(["u", "v"]),
        "s": Categorical(["u1", "v1"]),
        "id": Identifier(),
    }
    rules = [at_most("a", "b"), derived("g", from_="s", map={"u1": "u", "v1": "v"}),
             forbid("a > 3 and s == 'u1'")]  # fmt: skip
    domain = Domain(columns, structure=rules)
    table = domain.describe()
    assert list(table.index) == list(columns)
    assert table.loc["a", "structure"].startswith("at_most('a', 'b'); forbid(")
    assert table.loc["s", "structure"].startswith("forbid(") and table.loc["b", "structure"] == ""
    assert table["cells"].tolist() == [10, 10, 0, 2, 0]
    assert "structure</th>" in domain._repr_html_()
    assert "- rule at_most('a', 'b')" in repr(domain.diff(Domain(columns, structure=rules[1:])))
    pytest.importorskip("yaml")
    assert Domain.from_yaml(domain.to_yaml()) == domain


def test_notebook_shows_a_table():
    page = Domain(
        {"<b>": Categorical(["<i>", "M"], nullable=True), "n": Numeric(0, 9)}
    )._repr_html_()
    assert "&lt;b&gt;" in page and "<i>" not in page and "may be missing" in page
    many = Domain({f"c{i}": Categorical([0, 1]) for i in range(2_000)})
    assert many._repr_html_().count("<tr>") == 101
    assert "and 1,900 more columns" in many._repr_html_()
    assert "about 10^602 cells" in many._repr_html_()


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_categories_stay_short(n):
    values = [f"v{i}" for i in range(n)]
    domain = Domain({"a": Categorical(values)})
    assert len(repr(domain)) < 500 and len(domain._repr_html_()) < 2_000
    assert f"{n:,} fewer categories" in repr(domain.diff(Domain({"a": Categorical(["n", "m"])})))
    assert Domain.from_schema(pl.Schema({"a": pl.Enum(values)}))["a"].n_values == n
    assert Domain.from_schema({"a": pd.CategoricalDtype(values)}, nullable=False) == domain
    book = pd.DataFrame({"variable": "a", "value": values})
    assert Domain.from_schema(book, format="codebook") == domain


def test_thousands_of_columns(tmp_path):
    text = "name,type,range\n" + "".join(f"c{i},int,0-9\n" for i in range(2_000))
    assert len(Domain.from_schema(write(tmp_path, text))) == 2_000
    with pytest.raises(DomainError, match="2000 columns need") as caught:
        Domain.from_schema({f"c{i}": "int" for i in range(2_000)})
    assert "'c1999': (..., ...)" in str(caught.value)


def test_a_listing_without_columns_is_refused():
    with pytest.raises(DomainError, match="no columns"):
        Domain.from_schema(np.dtype([]), format="dtypes")


def test_lists_of_numbers_are_categories_or_a_step():
    types = {"term": "int64", "rate": "float64", "pay": "int64", "age": "int64"}
    ranges = {"term": [36, 60], "rate": [0.5, 1.5], "pay": list(range(0, 1000, 10)), "age": (0, 99)}
    domain = Domain.from_schema(types, ranges=ranges, nullable=False)
    assert domain["term"] == Categorical([36, 60], ordered=True)
    assert domain["rate"] == Categorical([0.5, 1.5], ordered=True)
    assert domain["pay"] == Numeric(0, 990, "auto", integer=True, step=10)
    assert domain["age"] == Numeric(0, 99, integer=True)
    book = [{"name": "term", "type": "integer", "values": "36; 60"}]
    assert Domain.from_schema(book, format="codebook")["term"].categories == (36, 60)


def test_domains_that_everybody_knows():
    from skdp import domains

    for name in domains.__all__:
        plain, gaps = getattr(domains, name)(), getattr(domains, name)(nullable=True)
        assert gaps.size == plain.size + 1
        assert Domain.from_json(Domain({"a": plain}).to_json())["a"] == plain
    assert (len(domains.us_states().categories), len(domains.countries().categories)) == (51, 249)
    assert domains.weekdays().ordered and domains.weekdays().categories[0] == "Monday"
    assert domains.months().size == 12 and len(domains.icd_chapters().categories) == 22
    with pytest.raises(DomainError, match=r"domains\.age\(\)"):
        Domain.from_schema({"Age": "int64"})
    with pytest.raises(DomainError) as error:
        Domain.from_schema({"age": "str", "ages": "int64"})
    assert "domains." not in str(error.value)
