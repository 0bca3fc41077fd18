"""Messy files, as they come: each with the right result, and each record read by itself."""

import io
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp
from skdp import Categorical, Date, Domain, Numeric
from skdp.__main__ import main
from skdp._keys import number_written
from skdp.app import csv
from skdp.app.csv import Form, columns_of, open_source

N = 40


def codes_in(folder, content, domain, **options):
    """Codes of the records of a file, as a release reads them."""
    path = folder / "data.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with open_source(str(path), columns_of(domain), Form(**options)) as source:
        return domain.encode(source.rows())


@given(st.decimals(-(10**9), 10**9, places=2, allow_nan=False))
def test_numbers_are_read_as_they_are_formatted(value):
    comma = f"{value:,.2f}".translate(str.maketrans(",.", ".,"))
    assert number_written(f"{value:,.2f}") == number_written(comma, ",") == float(value)


TOWNS = Domain({"town": Categorical(["Zürich", "Bern"]), "n": Numeric(0, 9, integer=True)})


NOTES = "town,note,n\n" + 'Bern,"two\nlines, and ""more""",2\nZürich,one,1\n' * N


def test_the_assumption_of_multiline_stands_in_the_guarantee(tmp_path, capsys):
    (tmp_path / "data.csv").write_text(NOTES)
    (tmp_path / "domain.json").write_text(TOWNS.to_json())
    command = ["release", "data.csv", "--domain", "domain.json", "--epsilon", "1", "--multiline"]
    command = [str(tmp_path / word) if "." in word else word for word in command]
    assert main([*command, "--out", str(tmp_path / "view.skdp"), "--method", "grid"]) == 0
    assert "quotes of every record closed" in capsys.readouterr().out
    loss = skdp.Synopsis.load(tmp_path / "view.skdp").privacy_loss
    assert "closed" in loss.assumes and loss != skdp.accounting.PrivacyLoss(1, loss.parts)
    assert (loss + loss).assumes == loss.of_record.assumes == loss.assumes
    assert loss.assumes in repr(loss) and loss.assumes in loss.neighbours


LINES = [b'Bern,"a\nb",1', b"Bern,,1", b'"Z\xc3\xbcrich","""",2', b'Bern,"\n\n",3', b"Bern,x,9"]


FIELDS = {
    "age": Numeric(0, 100, decimals=1, special=[999], nullable=True),
    "day": Date("2021-01-01", "2021-12-31"),
    "sex": Categorical(["F", "M", 1], nullable=True),
    "person": None,
}
HOSTILE = [
    b'"', b'40,"Male,full,high', b'40,Male,full,"high', b'4"0,Male,full,high', b'"a\rb",,,', b"",
    b'""""', b'"40"x,Male,full,high', b"40,Male", b"1,2,3,4,5,6", b"\r", b"4\r0,Male,full,high",
    b"\0", b"40\0,Male,full,high", b"\xff\xfe,Male,full,high", b"\xef\xbb\xbf40,Male,full,high",
    b"x,y,z,w", b"40,Male,full,high\r", "\u2028,\x85,\x0b,\x0c".encode(), b"9" * 200_000 + b",,,",
    b'"' + b"9" * 200_000 + b'",,,', b"#,#,#,#", b"1e999,,,", b"1_0,Male,full,high", b"\\,\\,\\,\\",
    b"\x1a,,,", b"'40','Male','full','high'",
]  # fmt: skip
TOKENS = [b",", b'"', b"1", b"999", b"F", b"2021-02-03", b"2021-02-30", b"\xff", b"\r", b"\0"]
FIELD = st.lists(st.sampled_from(TOKENS), max_size=2).map(b"".join)
ANY = [
    st.lists(FIELD, min_size=3, max_size=5).map(b",".join),
    st.sampled_from(HOSTILE),
    st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")),
]


@settings(max_examples=60)
@given(records=st.lists(st.one_of(ANY), max_size=8) | st.lists(st.sampled_from(LINES), max_size=6))
def test_every_record_is_read_and_coded_as_if_it_were_alone(records):
    """Every line; or, where quotes of every record are said to be closed, every such record."""
    multiline = bool(records) and all(record in LINES for record in records)
    header, fields = (["town", "note", "n"], dict(TOWNS.items())) if multiline else (FIELDS, FIELDS)
    domain = Domain({name: attribute for name, attribute in fields.items() if attribute})

    def read(content):
        lines = csv.lines_of(io.BytesIO(content), multiline=multiline)
        rows = csv.records_of(lines, csv.Form(multiline=multiline))
        return csv.read_records(rows, list(header), fields)

    def coded(frame):
        return domain.encode(frame[list(domain.names)])

    together = read(b"\n".join(records) + b"\n" * multiline)
    alone = [read(record + b"\n" * multiline) for record in records]
    assert len(together) == sum(map(len, alone)) and all(len(frame) <= 1 for frame in alone)
    each = [repr(row) for frame in alone for row in frame.itertuples(index=False)]
    assert each == [repr(row) for row in together.itertuples(index=False)]
    # No value raises.
    codes = [np.zeros((0, len(domain.names))), *map(coded, alone)]
    assert np.array_equal(coded(together), np.concatenate(codes))
    assert not multiline or (coded(together) >= 0).all()


def test_no_field_decides_how_another_is_read():
    # Else a person whose name is not plain would be two, where one line has a damaged byte.
    for other in (b"x", b"caf\xe9", b"\xff\x81", b"\xc3"):
        for line in (b"Jos\xc3\xa9," + other, other + b",Jos\xc3\xa9"):
            assert "Jos\u00e9" in csv.fields_of(line, Form())


def test_files_of_many_forms(tmp_path):
    """Records, the declared columns, the options, and the codes that are read."""
    two = Domain(
        {"a": Numeric(0, 9, integer=True), "b": Numeric(0, 9, integer=True, nullable=True)}
    )
    day = Domain({"d": Date("2020-11-01", "2020-11-30")})
    american = Domain({"d": Date("2020-11-01", "2020-11-30", format="%m/%d/%Y")})
    pay = Domain({"p": Numeric(0, 3000, bins=6000)})
    truth = Domain({"b": Categorical([False, True])})
    kinds = Domain({"c": Categorical(["a", "b"], nullable=True)})
    ragged = "a,b\n1,2\n1\n1,2,\n1,2,,,\n1,2,3\n,2\n\n1,2"
    for content, domain, options, expected in (
        (ragged, two, {}, [[1, 2], [1, 10], [1, 2], [1, 2], [-1, -1], [-1, 2], [1, 2]]),
        ("a,b\r\n1,2\r\n", two, {}, [[1, 2]]),
        ("c\na\nnone\n", kinds, {}, [[0], [-1]]),
        ("c\na\nnone\n", kinds, {"missing": ["none"]}, [[0], [2]]),
        (" town, n \nBern,1", TOWNS, {}, [[1, 1]]),
        (b"\xef\xbb\xbftown,n\nBern,1", TOWNS, {}, [[1, 1]]),
        ("town,n\nZ\u00fcrich,1\n".encode("cp1252"), TOWNS, {}, [[0, 1]]),
        ("town,n\nZ\u00fcrich,1\n".encode("cp1252"), TOWNS, {"encoding": "latin-1"}, [[0, 1]]),
        ("town,n\nName,count\nBern,2", TOWNS, {}, [[-1, -1], [1, 2]]),
        ("A title, too\n\ntown,n\nBern,2", TOWNS, {"skip_lines": 2}, [[1, 2]]),
        (NOTES, TOWNS, {"multiline": True}, [[1, 2], [0, 1]] * N),
        (NOTES, TOWNS, {}, [[-1, -1], [-1, -1], [0, 1]] * N),
        ("d\n2020-11-02\n??\n20201103\n", day, {}, [[1], [-1], [2]]),
        ("d\n11/02/2020\n2020-11-02\n", american, {}, [[1], [1]]),
        ("p;x\n$1,234.50;\n1'234.50;\n\u20ac1234.5;\n1 234.50;", pay, {"sep": ";"}, [[2469]] * 4),
        ("p;x\n1.234,50;\n1 234,50 \u20ac;", pay, {"sep": ";", "decimal": ","}, [[2469]] * 2),
        ("b\nTrue\ntrue\n1\nfalse\n0\nyes", truth, {}, [[1], [1], [1], [0], [0], [-1]]),
    ):
        assert codes_in(tmp_path, content, domain, **options).tolist() == expected, content


def test_numbers_as_they_are_written():
    for text, number in (
        ("(1,234.50)", -1234.5), ("-$5", -5), ("$-5", -5), ("\u22125", -5), ("5 %", 5), (".5", 0.5),
        ("1,234e1", 12340), ("12,345,678", 12345678), ("1" + "0" * 400, math.inf),
    ):  # fmt: skip
        assert number_written(text) == number
    for text in ("", "$", "--5", "(5", "(-5)", "1,23", "1,2345", "1,234,56", "12 months", "1.2.3"):
        assert np.isnan(number_written(text))


def test_odd_lines_of_names_are_said_to_the_owner(tmp_path, capsys):
    """Reports of `tests/reports.md`: commas at the end of lines, and no line of names at all."""
    rows = "1,2,,,\n2,3,,,\n" * 20
    for names, said in (("a,b,,,", ""), ("1,2,,,", "'1', '2': numbers as names. Does the first")):
        (tmp_path / "data.csv").write_text(f"{names}\n{rows}")
        assert main(["domain", "check", str(tmp_path / "data.csv")]) == 1
        shown = capsys.readouterr()
        assert said in shown.err and "'' more than once" not in shown.err
        assert ("numbers as names" in shown.err) == bool(said)
        assert shown.out.count('"name"') == 2
