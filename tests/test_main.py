"""The command line: releases without Python, with clear errors and exit codes."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest
from estimators import DOMAIN, people

import skdp
from skdp.__main__ import main

ROWS = people(2_000)


@pytest.fixture
def files(tmp_path):
    ROWS.assign(phone="secret").to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "domain.json").write_text(DOMAIN.to_json())
    return tmp_path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def release(files, *more):
    return run(
        "release", files / "data.csv", "--domain", files / "domain.json",
        "--epsilon", "1", "--out", files / "view.skdp", *more,
    )  # fmt: skip


def test_release_query_sample_ledger(files, capsys):
    ledger = files / "ledger.sqlite"
    assert release(files, "--ledger", ledger, "--budget", "1.5", "--target", "income") == 0
    assert "epsilon=1" in capsys.readouterr().out
    assert (
        run("query", files / "view.skdp", "age >= 30 and sex == 'Female'", "income == 'high'") == 0
    )
    lines = capsys.readouterr().out.splitlines()
    true = len(ROWS.query("age >= 30 and sex == 'Female'"))
    assert abs(float(lines[0].split()[0]) - true) < 300 and len(lines) == 3
    assert run("sample", files / "view.skdp", "--rows", 50, "--out", files / "rows.csv") == 0
    drawn = pd.read_csv(files / "rows.csv")
    assert list(drawn) == list(DOMAIN.names) and len(drawn) == 50
    assert run("sample", files / "view.skdp", "--rows", 3) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert run("ledger", ledger) == 0
    assert "PairViewSynthesizer" in capsys.readouterr().out
    # Half an epsilon is left.
    assert release(files, "--ledger", ledger) == 3
    assert "Over budget" in capsys.readouterr().err
    assert skdp.PrivacyLedger(path=ledger).spent == 1


def test_methods(files):
    assert release(files, "--method", "hdpview") == 0
    assert skdp.Synopsis.load(files / "view.skdp").model.kind == "boxes"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--epsilon": "0"}, "epsilon"),
        ({"--epsilon": "much"}, "--epsilon must be a number"),
        ({"--domain": "nowhere.json"}, "nowhere.json"),
        ({"--out": "no/such/folder/view.skdp"}, "no folder"),
        ({"--out": "."}, "names the folder"),
        ({"--target": "wage"}, "wage"),
        ({"--budget": "3"}, "--ledger"),
    ],
)
def test_refusals(files, capsys, change, message):
    arguments = {
        "--domain": files / "domain.json", "--epsilon": "1", "--out": files / "view.skdp"
    } | change  # fmt: skip
    flat = [part for pair in arguments.items() for part in pair]
    assert run("release", files / "data.csv", *flat) == 2
    assert message in capsys.readouterr().err
    assert not (files / "view.skdp").exists()


def test_files_that_are_not_what_they_should_be(files, capsys):
    (files / "empty.csv").write_text("")
    (files / "other.csv").write_text("a,b\n1,2\n")
    arguments = ["--domain", files / "domain.json", "--epsilon", 1, "--out", files / "view.skdp"]
    for name, message in (("empty", "is empty"), ("other", "no column 'age'")):
        assert run("release", files / f"{name}.csv", *arguments) == 2
        assert message in capsys.readouterr().err
    assert run("release", files / "nowhere.csv", *arguments) == 2
    assert "nowhere.csv: No such file" in capsys.readouterr().err
    for text in ("{bad", "[1, 2]", '{"age": 3}'):
        (files / "bad.json").write_text(text)
        arguments[1] = files / "bad.json"
        assert run("release", files / "data.csv", *arguments) == 2
        assert "domain" in capsys.readouterr().err
    assert run("query", files / "data.csv", "age > 3") == 2
    assert run("ledger", files / "nowhere.sqlite") == 2
    assert run("ledger", files / "data.csv") == 2
    assert release(files) == 0
    assert run("query", files / "view.skdp", "height > 3") == 2
    assert "height" in capsys.readouterr().err


def test_odd_values_in_a_file_are_no_error(files):
    text = 'age,sex,work,income\n,,,\nx,Female,part,high\n1e400,Male,none,low\n"a\nb",?,?,?\n'
    (files / "data.csv").write_text(text + "1,2,3,4,5,6\n30,Male,full,high\n")
    assert release(files) == 0


def test_declared_numbers_as_categories(files):
    pd.DataFrame({"ill": [0, 1, 1] * 300}).to_csv(files / "data.csv", index=False)
    ill = skdp.Domain({"ill": skdp.Categorical([0, 1])})
    (files / "domain.json").write_text(ill.to_json())
    assert release(files) == 0
    assert abs(skdp.Synopsis.load(files / "view.skdp").count("ill == 1") - 600) < 60


def test_as_a_program(files):
    done = subprocess.run(
        [sys.executable, "-m", "skdp", "query", str(files / "nowhere.skdp"), "age > 3"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.startswith("Refused:")
    assert subprocess.run([sys.executable, "-m", "skdp"], capture_output=True).returncode == 2


def test_a_refused_file_name_costs_nothing(files):
    ledger = files / "ledger.sqlite"
    assert release(files, "--ledger", ledger, "--budget", "3", "--out", files) == 2
    assert not ledger.exists()


def test_bytes_that_are_no_text_are_no_error(files):
    # In a record they would tell of it; a byte order mark is not part of the first name.
    text = ROWS.to_csv(index=False, lineterminator="\n").encode()
    (files / "data.csv").write_bytes(b"\xef\xbb\xbf" + text + b"40,\xff\xfe,full,high\n")
    assert release(files) == 0
    assert abs(skdp.Synopsis.load(files / "view.skdp").count() - len(ROWS)) < 60


def test_a_damaged_release_is_refused(files, capsys):
    assert release(files) == 0
    whole = (files / "view.skdp").read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    for damaged in (b"", whole[:300], flipped):
        (files / "view.skdp").write_bytes(damaged)
        assert run("query", files / "view.skdp", "age > 3") == 2
        assert "not a usable synopsis file" in capsys.readouterr().err
