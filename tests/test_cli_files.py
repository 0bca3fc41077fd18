"""Files of the command line: Parquet in and out, persons, and files that are not what they say."""

from __future__ import annotations

import gc
import io
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp
from skdp import Categorical, Date, Datetime, Domain, Numeric
from skdp.__main__ import main
from skdp.app import csv, parquet
from skdp.app.outputs import Progress

pytest.importorskip("pyarrow")

ROWS = people(2_000)


def run(*arguments):
    return main([str(argument) for argument in arguments])


def release(folder, data, *more, domain=DOMAIN):
    (folder / "domain.json").write_text(domain.to_json())
    return run(
        "release", folder / data, "--domain", folder / "domain.json",
        "--epsilon", 1, "--out", folder / "view.skdp", "--force", "--method", "grid", *more,
    )  # fmt: skip


@pytest.fixture(params=["duckdb", "pyarrow"])
def library(request, monkeypatch):
    """Only one of the libraries is installed."""
    pytest.importorskip(request.param)
    monkeypatch.setattr(parquet, "_has", lambda name: name == request.param)
    return request.param


def test_parquet_is_read_by_either_library(tmp_path, capsys, library):
    ROWS.assign(phone="Canary").to_parquet(tmp_path / "rows.parquet")
    assert release(tmp_path, "rows.parquet", "--ledger", tmp_path / "l", "--budget", 1) == 0
    assert skdp.PrivacyLedger(path=tmp_path / "l").spent == 1
    view = skdp.Synopsis.load(tmp_path / "view.skdp")
    true = len(ROWS.query("age >= 30 and sex == 'Female'"))
    assert abs(view.count("age >= 30 and sex == 'Female'") - true) < 300
    # What a file is, its contents say.
    (tmp_path / "rows.parquet").rename(tmp_path / "rows.data")
    assert release(tmp_path, "rows.data") == 0


def test_nested_columns_are_left_alone_and_refused_where_they_are_declared(
    tmp_path, capsys, library
):
    nested = ROWS.assign(
        notes=[["Canary", "77"]] * len(ROWS), pair=[{"a": 1, "b": "x"}] * len(ROWS)
    )
    nested.to_parquet(tmp_path / "rows.parquet")
    assert release(tmp_path, "rows.parquet") == 0
    for name in ("notes", "pair"):
        domain = Domain({**dict(DOMAIN.items()), name: Categorical(["x", "y"])})
        ledger = tmp_path / "ledger"
        capsys.readouterr()
        more = ["--ledger", ledger, "--budget", 1]
        assert release(tmp_path, "rows.parquet", *more, domain=domain) == 2
        shown = capsys.readouterr().err
        assert name in shown and "Canary" not in shown and not ledger.exists()


def test_odd_values_in_parquet_are_no_error(tmp_path, library):
    odd = pd.DataFrame(
        {
            "age": [np.nan, np.inf, -np.inf, 1e308, 30, 40],
            "sex": ["", None, "?", "Female", "Male\n", "Male"],
            "work": ["full", "none", "\0", "part", "part", None],
            "income": ["high", "low", "x" * 10_000, None, "low", "low"],
        }
    )
    odd.to_parquet(tmp_path / "rows.parquet")
    assert release(tmp_path, "rows.parquet") == 0
    odd.iloc[:0].astype({"sex": str, "work": str, "income": str}).to_parquet(
        tmp_path / "rows.parquet", schema=_text_schema()
    )
    assert release(tmp_path, "rows.parquet") == 0


def _text_schema():
    import pyarrow

    texts = [(name, pyarrow.string()) for name in ("sex", "work", "income")]
    return pyarrow.schema([("age", pyarrow.float64()), *texts])


@pytest.mark.parametrize("loaded", [0, 1 << 28])
def test_a_column_without_any_value_has_no_type(tmp_path, monkeypatch, loaded):
    monkeypatch.setattr(parquet, "_LOADED", loaded)
    import pyarrow
    from pyarrow.parquet import write_table

    table = pyarrow.Table.from_pandas(ROWS[:50])
    table = table.set_column(1, "sex", pyarrow.nulls(50))
    write_table(table, tmp_path / "rows.parquet")
    assert release(tmp_path, "rows.parquet") == 0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_persons_are_protected_with_unit(tmp_path, capsys, kind):
    rows = ROWS.assign(person=[f"p{i // 10}" for i in range(len(ROWS))])
    rows.loc[:9, "person"] = None
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    more = ["--privacy-id", "person", "--max-rows-per-id", 3]
    assert release(tmp_path, f"rows.{kind}", *more) == 0
    view = skdp.Synopsis.load(tmp_path / "view.skdp")
    assert view.privacy_loss.max_rows_per_id == 3
    # 199 persons, three rows of each.
    assert abs(view.count() - 597) < 400
    capsys.readouterr()
    for wrong, message in (
        (more[:2], "--max-rows-per-id"),
        (more[2:], "--privacy-id COLUMN"),
        (["--privacy-id", "nobody", *more[2:]], "'nobody'"),
        (["--privacy-id", "sex", *more[2:]], "privacy_id='sex'"),
        ([*more[:3], "0"], "max_rows_per_id"),
    ):
        assert release(tmp_path, f"rows.{kind}", *wrong) == 2
        assert message in capsys.readouterr().err


def test_files_that_are_no_parquet(tmp_path, capsys, library):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    whole = (tmp_path / "rows.parquet").read_bytes()
    garbage = np.random.default_rng(0).bytes(5_000)
    damaged = {
        "empty": b"",
        "short": b"PAR1PAR1",
        "text": b"age,sex,work,income\n77,Canary,x,y\n",
        "garbage": garbage,
        "wrapped": b"PAR1" + garbage + b"PAR1",
        "cut": whole[: len(whole) // 2],
        "tail": whole[:-40] + b"Canary" * 6 + whole[-4:],
    }
    for name, content in damaged.items():
        (tmp_path / "rows.parquet").write_bytes(content)
        assert release(tmp_path, "rows.parquet", "--ledger", tmp_path / "l", "--budget", 1) == 2
        shown = capsys.readouterr().err
        assert "not a Parquet file" in shown and "Canary" not in shown, name
        assert not (tmp_path / "l").exists()
    (tmp_path / "folder.parquet").mkdir()
    assert release(tmp_path, "folder.parquet") == 2
    assert release(tmp_path, "nowhere.parquet") == 2
    assert "nowhere.parquet: No such file" in capsys.readouterr().err


def test_a_name_that_is_no_text_is_refused(tmp_path, capsys, library):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    whole = (tmp_path / "rows.parquet").read_bytes()
    assert whole.count(b"income")
    (tmp_path / "rows.parquet").write_bytes(whole.replace(b"income", b"\xff\xfecome"))
    assert release(tmp_path, "rows.parquet") == 2
    shown = capsys.readouterr().err
    assert "not a Parquet file, or it is damaged" in shown and "xff" not in shown


def test_what_duckdb_spills_is_private_and_removed(tmp_path):
    pytest.importorskip("duckdb")
    ROWS.to_parquet(tmp_path / "rows.parquet")
    file = parquet.ParquetFile(tmp_path / "rows.parquet")
    setting = file._connection.sql("SELECT current_setting('temp_directory')")
    spill = Path(setting.fetchall()[0][0])
    assert spill.is_absolute() and Path.cwd() not in spill.parents
    assert stat.S_IMODE(spill.stat().st_mode) == 0o700
    (spill / "rows.tmp").write_text("Canary")
    del file
    gc.collect()
    assert not spill.exists()


def test_pages_that_cannot_be_read_are_withheld(tmp_path, capsys, library):
    ROWS.to_parquet(tmp_path / "rows.parquet", compression="none")
    whole = bytearray((tmp_path / "rows.parquet").read_bytes())
    whole[4:2_000] = b"\xff" * 1_996
    (tmp_path / "rows.parquet").write_bytes(bytes(whole))
    assert release(tmp_path, "rows.parquet") == 4
    assert "withheld" in capsys.readouterr().err
    assert not (tmp_path / "view.skdp").exists() and not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("loaded", [0, 1 << 28])
def test_names_that_differ_in_case_and_names_with_patterns(tmp_path, monkeypatch, loaded):
    monkeypatch.setattr(parquet, "_LOADED", loaded)
    folder = tmp_path / "a=1"
    folder.mkdir()
    rows = pd.DataFrame({"Age": [70.0] * 900, "age": [20.0] * 900, 'q"x': ["F", "M", "M"] * 300})
    rows.to_parquet(folder / "x[1]*?.parquet")
    rows.assign(age=70.0).to_parquet(folder / "x1.parquet")
    domain = Domain({"age": Numeric(0, 100, 2), 'q"x': Categorical(["F", "M"])})
    assert release(folder, "x[1]*?.parquet", domain=domain) == 0
    view = skdp.Synopsis.load(folder / "view.skdp")
    assert abs(view.count("age < 50") - 900) < 60
    assert abs(view.count({'q"x': "F"}) - 300) < 60


def test_a_column_that_occurs_twice_is_refused(tmp_path, capsys):
    import pyarrow
    from pyarrow.parquet import write_table

    columns = [pyarrow.array(["x"]), pyarrow.array(["y"])]
    write_table(pyarrow.Table.from_arrays(columns, ["sex", "sex"]), tmp_path / "rows.parquet")
    domain = Domain({"sex": Categorical(["x", "y"])})
    assert release(tmp_path, "rows.parquet", domain=domain) == 2
    assert "sex" in capsys.readouterr().err


def test_large_files_are_counted_where_they_are(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    ROWS.to_parquet(tmp_path / "rows.parquet")
    file = parquet.ParquetFile(tmp_path / "rows.parquet")
    assert type(file.rows(["age"])).__module__.startswith("pyarrow")
    monkeypatch.setattr(parquet, "_LOADED", 0)
    assert "duckdb" in type(file.rows(["age"])).__module__
    assert release(tmp_path, "rows.parquet") == 0


def test_parquet_without_a_library(tmp_path, capsys, monkeypatch):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    assert release(tmp_path, "rows.csv") == 0
    monkeypatch.setattr(parquet, "_has", lambda name: False)
    assert release(tmp_path, "rows.parquet") == 2
    assert "pip install" in capsys.readouterr().err
    out = tmp_path / "out.parquet"
    assert run("sample", tmp_path / "view.skdp", "--out", out) == 2
    assert "pip install" in capsys.readouterr().err and not out.exists()


def test_parquet_is_written_by_either_library(tmp_path, library):
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    assert release(tmp_path, "rows.csv") == 0
    view = tmp_path / "view.skdp"
    assert run("sample", view, "--rows", 50, "--seed", 3, "--out", tmp_path / "a.parquet") == 0
    assert run("sample", view, "--rows", 50, "--seed", 3, "--out", tmp_path / "a.csv") == 0
    drawn = pd.read_parquet(tmp_path / "a.parquet")
    assert drawn.shape == (50, 4) and not (drawn.dtypes == "str").all()
    drawn = drawn.astype({"sex": object, "work": object, "income": object}).fillna({"work": "gap"})
    again = pd.read_csv(tmp_path / "a.csv").fillna({"work": "gap"})
    pd.testing.assert_frame_equal(drawn, again, check_dtype=False)
    groups = tmp_path / "groups.PARQUET"
    assert run("group-by", view, "age", "sex", "--mean", "age", "--out", groups) == 0
    table = pd.read_parquet(groups)
    assert list(table) == ["age", "sex", "count", "sum", "mean"]
    assert table["age"].iloc[0].startswith("[17")


def test_mixed_labels_are_written_to_parquet_as_text(tmp_path, library):
    mixed = pd.DataFrame({"a": [1, "1", None], "b": [0.5, 2.0, None], "c": [True, None, False]})
    mixed = mixed.astype(object)
    parquet.write_parquet(mixed, tmp_path / "mixed.parquet")
    read = pd.read_parquet(tmp_path / "mixed.parquet")
    assert read["a"].tolist()[:2] == ["1", "1"] and read["a"].isna().tolist() == [0, 0, 1]
    assert read["b"].tolist()[:2] == [0.5, 2.0]
    assert list(mixed["a"])[0] == 1


def test_progress_tells_no_number_of_the_data(tmp_path, capsys, monkeypatch):
    said = set()
    for n in (3, 1_999):
        ROWS[:n].to_csv(tmp_path / "rows.csv", index=False)
        assert release(tmp_path, "rows.csv") == 0
        said.add(capsys.readouterr().err)
        assert release(tmp_path, "rows.csv", "--quiet") == 0
        assert capsys.readouterr().err.startswith("Warning: no --ledger")
    assert len(said) == 1 and "Measuring." in said.pop()
    # On a terminal, tenths of the file: all of them, however many lines there are.
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for n in (1, 200_000):
        file = io.BytesIO(b"1\n" * n)
        assert sum(1 for _ in Progress(False).reading(file, 2 * n, iter(file.readline, b""))) == n
        said.add(capsys.readouterr().err)
    assert len(said) == 1 and said.pop().count("%") == 10


def test_dates_and_special_values_in_either_format(tmp_path, capsys, library):
    rng = np.random.default_rng(0)
    n = 3_000
    day = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    hour = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 8_000, n), unit="h")
    money = np.where(rng.random(n) < 0.3, 999, rng.random(n).round(2))
    rows = pd.DataFrame({"day": day, "at": hour.tz_localize("UTC"), "money": money})
    rows.loc[:99, "day"] = None
    domain = Domain(
        {
            "day": Date("2021-01-01", "2021-12-31", unit="month", nullable=True),
            "at": Datetime("2021-01-01", "2021-12-31", unit="hour", tz="UTC"),
            "money": Numeric(0, 1, decimals=2, special=[999]),
        }
    )
    rows.to_parquet(tmp_path / "rows.parquet")
    text = rows.to_csv(index=False) + "2021-02-30,never,ten\n,,\n"
    (tmp_path / "rows.csv").write_text(text)
    for kind in ("csv", "parquet"):
        assert release(tmp_path, f"rows.{kind}", "--method", "marginals", domain=domain) == 0
        view = skdp.Synopsis.load(tmp_path / "view.skdp")
        assert abs(view.count("money == 999") - (money == 999).sum()) < 200
        spring = (rows["day"] >= "2021-03-01") & (rows["day"] < "2021-06-01")
        assert abs(view.count("'2021-03-01' <= day < '2021-06-01'") - spring.sum()) < 200
    capsys.readouterr()
    rows.assign(at=hour).to_parquet(tmp_path / "rows.parquet")
    # Without a zone they are moments in UTC too.
    assert release(tmp_path, "rows.parquet", "--method", "marginals", domain=domain) == 0
    assert abs(skdp.Synopsis.load(tmp_path / "view.skdp").total - len(rows)) < 200


FIELDS = {
    "age": Numeric(0, 100, decimals=1, special=[999], nullable=True),
    "day": Date("2021-01-01", "2021-12-31"),
    "sex": Categorical(["F", "M", 1], nullable=True),
    "person": None,
}


TOKENS = [
    b",",
    b'"',
    b"1",
    b"1.0",
    b"999",
    b"F",
    b"2021-02-03",
    b"2021-02-30",
    b"\xff",
    b"\r",
    b"\0",
]
FIELD = st.lists(st.sampled_from(TOKENS), max_size=2).map(b"".join)
LINE = st.lists(FIELD, min_size=3, max_size=5).map(b",".join)


@settings(max_examples=60)
@given(
    st.lists(LINE | st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=8)
)
def test_every_line_is_read_as_if_it_were_alone(lines):
    def read(content):
        lines = csv.lines_of(io.BytesIO(content))
        records = csv.records_of(lines, csv.Form())
        return csv.read_records(records, FIELDS, FIELDS)

    together = read(b"\n".join(lines))
    alone = [read(line) for line in lines]
    assert len(together) == sum(map(len, alone)) and all(len(frame) <= 1 for frame in alone)
    each = [repr(row) for frame in alone for row in frame.itertuples(index=False)]
    assert each == [repr(row) for row in together.itertuples(index=False)]
    # And coded: no value raises.
    domain = Domain({name: attribute for name, attribute in FIELDS.items() if attribute})
    codes = domain.encode(together.drop(columns="person"))
    assert codes.shape == (len(together), 3)
    each = [domain.encode(frame.drop(columns="person")) for frame in alone]
    assert np.array_equal(codes, np.concatenate([np.zeros((0, 3)), *each]))
