"""Messy files, as they come: each with the right result, and each record read by itself."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp
from skdp import Categorical, Date, Datetime, Domain, Numeric
from skdp.__main__ import main
from skdp.app import csv
from skdp.app.csv import open_source
from skdp.app.outputs import Progress
from skdp.domain.values import number_written

N = 40
DAYS = [f"2020-11-{day:02d}" for day in range(1, 29)]


def codes_of(path, domain, **options):
    """Codes of the records of a file, as a release reads them."""
    with open_source(str(path), domain, options=SimpleNamespace(**options)) as source:
        return domain.encode(source.rows(Progress(True)))


def codes_in(folder, content, domain, name="data.csv", **options):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return codes_of(folder / name, domain, **options)


def days(form=None):
    return Domain({"day": Date("2020-11-01", "2020-11-30", format=form)})


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (None, "%Y-%m-%d"),
        (None, "%Y-%m-%dT00:00:00Z"),
        (None, "%Y-%m-%d 15:30:00-08:00"),
        (None, "%Y%m%d"),
        ("%m/%d/%Y", "%m/%d/%Y"),
        ("%d.%m.%Y", "%d.%m.%Y"),
        ("%d %b %Y", "%d %b %Y"),
    ],
)
def test_dates_in_iso_and_declared_forms(tmp_path, form, written):
    texts = pd.to_datetime(DAYS).strftime(written)
    domain = days(form)
    codes = codes_in(tmp_path, "day\n" + "\n".join(texts) + "\n", domain)
    assert codes[:, 0].tolist() == list(range(28))
    # And in memory, as pandas reads the file.
    frame = pd.read_csv(tmp_path / "data.csv")
    if frame["day"].dtype != object or form or "%z" not in written:
        assert domain.encode(frame)[:, 0].tolist() == list(range(28))
    # Another record changes nothing.
    codes = codes_in(tmp_path, "day\n??\n" + "\n".join(texts) + "\n", domain)
    assert codes[:, 0].tolist() == [-1, *range(28)]


MONEY = {
    ".": ["$1,234.50", "1234.5", "$ 1234.50", "1'234.50", "1 234.50", "1,234.50 $", "€1234.5"],
    ",": ["1.234,50", "1234,5", "1 234,50 €", "1'234,50", "1234,500", "€1.234,5"],
}  # fmt: skip


@pytest.mark.parametrize("decimal", [".", ","])
def test_money_thousands_and_decimal_comma(tmp_path, decimal):
    domain = Domain({"pay": Numeric(0, 3000, bins=6000), "x": Categorical(["a", "b"])})
    rows = "".join(f"{text};a\n" for text in MONEY[decimal])
    codes = codes_in(tmp_path, "pay;x\n" + rows, domain, sep=";", decimal=decimal)
    assert codes[:, 0].tolist() == [2469] * len(MONEY[decimal])
    if decimal == ".":
        frame = pd.DataFrame({"pay": MONEY["."], "x": "a"})
        assert domain.encode(frame)[:, 0].tolist() == [2469] * len(frame)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("(1,234.50)", -1234.5), ("-$5", -5), ("$-5", -5), ("\u22125", -5), ("5%", 5), ("5 %", 5),
        (".5", 0.5), ("5.", 5), ("1e3", 1000), ("1,234e1", 12340), ("12,345,678", 12345678),
    ],
)  # fmt: skip
def test_numbers_as_they_are_written(text, number):
    assert number_written(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "$", "-", "--5", "(5", "5)", "(-5)", "1,23", "1,2345", "1,234,56", "12 months", "1.2.3"],
)  # fmt: skip
def test_text_that_is_no_number(text):
    assert np.isnan(number_written(text))


@settings(max_examples=200)
@given(st.text(alphabet="0123456789.,'() $€-+%eE \u00a0", max_size=12), st.sampled_from([".", ","]))
def test_no_text_raises(text, decimal):
    number = number_written(text, decimal)
    assert isinstance(number, float)


@given(st.decimals(-(10**9), 10**9, places=2, allow_nan=False))
def test_numbers_are_read_as_they_are_formatted(value):
    comma = f"{value:,.2f}".translate(str.maketrans(",.", ".,"))
    assert number_written(f"{value:,.2f}") == number_written(comma, ",") == float(value)


TOWNS = Domain({"town": Categorical(["Zürich", "Bern"]), "n": Numeric(0, 9, integer=True)})


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "utf-8-sig"])
def test_text_that_is_not_utf8_is_windows_1252(tmp_path, encoding):
    text = "town,n\n" + "Zürich,1\nBern,2\n" * N
    assert (codes_in(tmp_path, text.encode(encoding), TOWNS) == [[0, 1], [1, 2]] * N).all()
    if encoding != "utf-8-sig":
        given_ = codes_in(tmp_path, text.encode(encoding), TOWNS, encoding=encoding)
        assert (given_ == [[0, 1], [1, 2]] * N).all()


def test_each_field_has_its_own_encoding(tmp_path):
    domain = Domain({"a": Categorical(["Zürich", "–"]), "b": Categorical(["Zürich", "\x81"])})
    latin, utf = "Zürich".encode("latin-1"), "Zürich".encode()
    rows = [
        b"a,b",
        latin + b"," + utf,
        utf + b"," + latin,
        b'"\x96","\x81"',
        b'"' + utf + b'",\x81',
    ]
    assert codes_in(tmp_path, b"\n".join(rows), domain).tolist() == [[0, 0], [0, 0], [1, 1], [0, 1]]
    # A declared encoding holds for all fields; what it does not know is no category.
    codes = codes_in(tmp_path, b"\n".join(rows), domain, encoding="utf-8")
    assert codes[:, 0].tolist() == [-1, 0, -1, 0]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("encoding", "utf-16"), ("encoding", "klingon"), ("sep", ""), ("sep", '"'), ("sep", ";;"),
        ("decimal", ","),
    ],
)  # fmt: skip
def test_forms_that_cannot_be_read_are_refused(tmp_path, option, value):
    with pytest.raises(ValueError, match=f"--{option}"):
        codes_in(tmp_path, "town,n\nBern,1\n", TOWNS, **{option: value})


NOTES = "town,note,n\n" + 'Bern,"two\nlines, and ""more""",2\nZürich,one,1\n' * N


def test_line_breaks_in_quotes_of_a_column_that_is_not_declared(tmp_path):
    codes = codes_in(tmp_path, NOTES, TOWNS, multiline=True)
    assert codes.tolist() == [[1, 2], [0, 1]] * N
    # Without the option such a record is two lines that fit no domain, and they are counted.
    codes = codes_in(tmp_path, NOTES, TOWNS)
    assert codes.tolist() == [[-1, -1], [-1, -1], [0, 1]] * N


def test_the_assumption_of_multiline_stands_in_the_guarantee(tmp_path, capsys):
    (tmp_path / "data.csv").write_text(NOTES)
    (tmp_path / "domain.json").write_text(TOWNS.to_json())
    command = ["release", "data.csv", "--domain", "domain.json", "--epsilon", "1", "--multiline"]
    command = [str(tmp_path / word) if "." in word else word for word in command]
    assert main([*command, "--out", str(tmp_path / "view.skdp"), "--method", "grid"]) == 0
    assert "quotes of every record closed" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "view.skdp")]) == 0
    assert "it assumes that the file was written with the quotes" in capsys.readouterr().out
    loss = skdp.Synopsis.load(tmp_path / "view.skdp").privacy_loss
    assert "closed" in loss.assumes and loss != skdp.accounting.PrivacyLoss(1, loss.parts)
    assert (loss + loss).assumes == (loss * 2).assumes == loss.of_record.assumes == loss.assumes
    assert loss.assumes in repr(loss) and loss.assumes in loss.neighbours


LINES = [b'Bern,"a\nb",1', b"Bern,,1", b'"Z\xc3\xbcrich","""",2', b'Bern,"\n\n",3', b"Bern,x,9"]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(LINES), max_size=6))
def test_records_with_closed_quotes_are_read_as_if_alone(records):
    def read(content):
        lines = csv.lines_of(io.BytesIO(content), multiline=True)
        fields = csv.records_of(lines, csv.Form(multiline=True))
        return TOWNS.encode(csv.read_records(fields, ["town", "note", "n"], dict(TOWNS.items())))

    together = read(b"".join(record + b"\n" for record in records))
    alone = [read(record) for record in records]
    assert together.tolist() == [row for codes in alone for row in codes.tolist()]
    assert len(together) == len(records) and (together >= 0).all()


def test_ragged_rows(tmp_path):
    domain = Domain(
        {"a": Numeric(0, 9, integer=True), "b": Numeric(0, 9, integer=True, nullable=True)}
    )
    rows = ["a,b", "1,2", "1", "1,2,", "1,2,,,", "1,2,3", ",2", "", "1,2"]
    codes = codes_in(tmp_path, "\n".join(rows), domain)
    assert codes.tolist() == [[1, 2], [1, 10], [1, 2], [1, 2], [-1, -1], [-1, 2], [1, 2]]
    assert codes_in(tmp_path, "a,b\r\n1,2\r\n", domain).tolist() == [[1, 2]]


def test_byte_order_marks(tmp_path):
    assert codes_in(tmp_path, b"\xef\xbb\xbftown,n\nBern,1", TOWNS).tolist() == [[1, 1]]
    with pytest.raises(ValueError, match="UTF-16"):
        codes_in(tmp_path, "town,n\nBern,1".encode("utf-16"), TOWNS)


def test_names_of_columns_have_no_blanks_at_the_ends(tmp_path):
    assert codes_in(tmp_path, " town, n \nBern,1", TOWNS).tolist() == [[1, 1]]


def test_headers_only_empty_files_and_two_header_lines(tmp_path):
    assert codes_in(tmp_path, "town,n\n", TOWNS).shape == (0, 2)
    assert codes_in(tmp_path, "town,n", TOWNS).shape == (0, 2)
    for content in ("", "\n", "\n\n"):
        with pytest.raises(ValueError, match="is empty"):
            codes_in(tmp_path, content, TOWNS)
    codes = codes_in(tmp_path, "town,n\nName of the town,count\n" + "Bern,2\n" * N, TOWNS)
    assert codes.tolist() == [[-1, -1], *[[1, 2]] * N]


def test_ten_thousand_columns(tmp_path):
    names = [f"c{place}" for place in range(10_000)]
    wide = "\n".join([",".join(names), *[",".join(["1"] * 10_000)] * 3])
    domain = Domain({name: Numeric(0, 1, integer=True) for name in names[5_000:]})
    assert (codes_in(tmp_path, wide, domain) == 1).all()


def zipped(content, n=1):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for place in range(n):
            archive.writestr(f"data{place}.csv", content)
    return stream.getvalue()


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zip"])
def test_compressed_files(tmp_path, ending):
    content = ("town,n\n" + "Zürich,1\nBern,2\n" * N).encode()
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped}
    codes = codes_in(tmp_path, packed[ending](content), TOWNS, f"data.csv.{ending}")
    assert codes.tolist() == [[0, 1], [1, 2]] * N
    for wrong in (content, b"", b"PK\3\4", zipped(content, 2), zipped(content, 0)):
        if (ending, wrong) != ("bz2", b""):
            with pytest.raises(ValueError, match=r"data.csv|is empty"):
                codes_in(tmp_path, wrong, TOWNS, f"data.csv.{ending}")
    # A file that breaks off within its records is an error of the file, whose text is withheld.
    (tmp_path / "domain.json").write_text(TOWNS.to_json())
    if ending == "gz":
        long = gzip.compress(b"town,n\n" + np.random.default_rng(0).bytes(200_000))
        (tmp_path / "cut.gz").write_bytes(long[:100_000])
        out = ["--out", str(tmp_path / "v"), "--epsilon", "1", "--domain"]
        assert main(["release", str(tmp_path / "cut.gz"), *out, str(tmp_path / "domain.json")]) == 4


def test_workbooks_are_refused(tmp_path):
    (tmp_path / "data.xlsx").write_bytes(b"a workbook")
    with pytest.raises(ValueError, match="save the sheet of the records as CSV"):
        codes_of(tmp_path / "data.xlsx", TOWNS)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"town": ["Zürich", "Bern"] * N, "n": [1, 2] * N})
    frame.to_parquet(tmp_path / "data.parquet")
    assert codes_of(tmp_path / "data.parquet", TOWNS).tolist() == [[0, 1], [1, 2]] * N


def test_truth_values_as_files_write_them(tmp_path):
    domain = Domain({"b": Categorical([False, True])})
    rows = ["b", "True", "true", "TRUE", "1", "False", "false", "0", "yes"]
    assert codes_in(tmp_path, "\n".join(rows), domain)[:, 0].tolist() == [1, 1, 1, 1, 0, 0, 0, -1]


@pytest.mark.parametrize("nullable", [False, True])
def test_a_record_that_cannot_be_read_fits_no_domain(tmp_path, nullable):
    domain = Domain(
        {
            "n": Numeric(0, 9, nullable=nullable),
            "c": Categorical(["a", "b"], other="b", nullable=nullable),
            "t": Datetime("2020-01-01", "2020-12-31", unit="day", nullable=nullable),
        }
    )
    codes = codes_in(tmp_path, 'n,c,t\n1,a,2020-01-01\n1,"a,2020-01-01\n1,a,2020-01-01,x\n', domain)
    assert (codes >= 0).all(axis=1).tolist() == [True, False, False]


def test_a_person_of_a_record_that_cannot_be_read(tmp_path):
    (tmp_path / "data.csv").write_text("town,n,who\n" + 'Bern,1,a\nBern,"1,a\n' * N)
    (tmp_path / "domain.json").write_text(TOWNS.to_json())
    command = [
        "release", str(tmp_path / "data.csv"), "--domain", str(tmp_path / "domain.json"),
        "--epsilon", "1", "--privacy-id", "who", "--max-rows-per-id", "2",
        "--out", str(tmp_path / "v.skdp"), "--method", "grid", "--quiet",
    ]  # fmt: skip
    assert main(command) == 0


def test_marks_of_unreadable_lines_stay_with_their_rows():
    domain = Domain({"a": Numeric(0, 9, bins=3, nullable=True)})
    rows = csv.read_records([["1"], None, ["9"]], ["a"], dict(domain.items()))
    assert domain.encode(rows)[:, 0].tolist() == [0, -1, 2]
    assert domain.encode(rows.iloc[[2, 1, 1]])[:, 0].tolist() == [2, -1, -1]
    assert domain.encode(rows[rows["a"] == 9])[:, 0].tolist() == [2]
    for other in (rows[::-1].reset_index(drop=True), rows.set_index(rows["a"])):
        with pytest.raises(ValueError, match="the frame has another one than it was read with"):
            domain.encode(other)


def test_cells_of_hundreds_of_digits_do_not_stop_the_reader():
    columns = {"a": Numeric(0, 9, bins=3), "b": Categorical([1, 2])}
    records = [["1" + "0" * 400, "1" + "0" * 5000], ["-1" + "0" * 400, "2"]]
    rows = csv.read_records(records, ["a", "b"], columns)
    assert rows["a"].tolist() == [np.inf, -np.inf]
    assert Domain(columns).encode(rows).tolist() == [[2, -1], [0, 1]]


# What was measured before: each file gives right counts, or a stop with 99% of epsilon unspent.

ROWS = 2_000
NOVEMBER = {form: [*pd.to_datetime(DAYS * 90).strftime(form)][:ROWS] for form in (
    "%Y-%m-%dT%H:%M:%SZ", "%m/%d/%Y", "%d.%m.%Y", "%Y%m%d", "%d %b %Y",
)}  # fmt: skip
PAY = Numeric(0, 3000, bins=30)
WAIT = Numeric(0, 9, integer=True)
MONTH = ("2020-11-01", "2020-11-30")
FEW = [f"{i % 9}," if i % 10 > 2 else ",z" for i in range(9 * ROWS)]
CASES = {
    **{f"dates {form}": (lines, Date(*MONTH), "[TZ]|%Y%m%d") for form, lines in NOVEMBER.items()},
    **{f"told {form}": (lines, Date(*MONTH, format=form), ".") for form, lines in NOVEMBER.items()
       if "T" not in form},
    "money": (['"$1,234.50"'] * ROWS, PAY, "."),
    "comma": (['"1234,50"'] * ROWS, PAY, "-"),
    "comma told": (["1234,50"] * ROWS, PAY, ".", "--sep", ";", "--decimal", ","),
    "quoted comma told": (['"1234,50"'] * ROWS, PAY, ".", "--sep", ",", "--decimal", ","),
    "Latin-1": (["Zürich", "Bern"] * (ROWS // 2), TOWNS["town"], "."),
    "gaps": (FEW, WAIT, "-"),
    "gaps told": (FEW, Numeric(0, 9, integer=True, nullable=True), "."),
    "NA": (["a", "NA"] * (ROWS // 2), Categorical(["a", "b"], nullable=True), "."),
    "none": (["a", "none"] * (ROWS // 2), Categorical(["a", "b"], nullable=True), "-"),
    "none told": (["a", "none"] * (ROWS // 2), Categorical(["a", "b"], nullable=True), ".",
                  "--missing", "none"),
    "blanks": (["Bern ", " Bern", "Zürich  "] * (ROWS // 3 + 1), TOWNS["town"], "."),
    "case": (["BERN", "Bern"] * (ROWS // 2), TOWNS["town"], "-"),
    "line breaks": (['3,"two\nlines"'] * ROWS, WAIT, "-"),
    "line breaks told": (['3,"two\nlines"'] * ROWS, WAIT, ".", "--multiline"),
    "ragged, longer": (["3,,4"] * ROWS, WAIT, "-"),
    "ragged, shorter": (["3"] * ROWS, WAIT, "."),
    "second header": (["days", *["3"] * ROWS], WAIT, "."),
    "ten thousand columns": (["3" + "," * 10_000] * 200, WAIT, "."),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_messy_files_give_right_counts_or_a_stop(tmp_path, case, capsys):
    lines, attribute, right, *options = CASES[case]
    sep = options[1] if "--sep" in options else ","
    width = 10_001 if "thousand" in case else 2
    names = sep.join(["x", *(f"c{place}" for place in range(1, width))])
    content = "\n".join([names, *lines]) + "\n"
    (tmp_path / "data.csv").write_bytes(content.encode("latin-1"))
    domain = Domain({"x": attribute})
    (tmp_path / "domain.json").write_text(domain.to_json())
    ledger = str(tmp_path / "l")
    command = ["release", tmp_path / "data.csv", "--domain", tmp_path / "domain.json", "--quiet"]
    command += ["--epsilon", 1, "--ledger", ledger, "--budget", 1, "--out", tmp_path / "v"]
    done = main([*map(str, command), "--method", "grid", *options])
    told = capsys.readouterr().err
    spent = float(skdp.PrivacyLedger(path=ledger).spent)
    if right == "." or (right != "-" and re.search(right, case)):
        assert done == 0 and spent == 1
        view = skdp.Synopsis.load(tmp_path / "v")
        assert abs(view.skipped.kept - len(lines)) < 1_500 and abs(view.total - len(lines)) < 60
    else:
        assert done == 5 and spent == 0.01 and "--accept-loss" in told
        assert "'x'" in told or "not well formed" in told


def test_lines_above_the_names(tmp_path, capsys):
    """What spreadsheets write there is named with its remedy, before anything is spent."""
    domain = Domain({"x": Numeric(0, 9, integer=True)})
    codes = codes_in(tmp_path, "A title, with a comma\n\nx,y\n3,1\n9,2\n", domain, skip_lines=2)
    assert codes.tolist() == [[3], [9]]
    refused = {
        "sep=;\nx;y\n3;1\n": "give --sep ';' and --skip-lines 1",
        '"sep=\t"\nx\ty\n': "give --sep 'tab' and --skip-lines 1",
        "Persons,,\nx,y\n3,1\n": "does not name the declared column 'x'.*--skip-lines",
    }
    for content, remedy in refused.items():
        with pytest.raises(ValueError, match=remedy):
            codes_in(tmp_path, content, domain)
    with pytest.raises(ValueError, match="must not be negative"):
        codes_in(tmp_path, "x\n3\n", domain, skip_lines=-1)
