"""The command line: releases without Python, with clear errors and exit codes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings

import pandas as pd
import pytest
from estimators import DOMAIN, people

import skdp
from skdp import Categorical, Domain, Numeric
from skdp.__main__ import main
from skdp.app import csv, outputs
from skdp.app import outputs as methods

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
    assert run("ledger", "show", ledger) == 0
    assert "MarginalSynthesizer" in capsys.readouterr().out
    # Half an epsilon is left.
    again = files / "again.skdp"
    assert release(files, "--ledger", ledger, "--out", again) == 3
    assert "Over budget" in capsys.readouterr().err and not again.exists()
    assert skdp.PrivacyLedger(path=ledger).spent == 1


def test_a_first_release_asks_for_a_budget_and_warns_of_nothing(files, capsys, recwarn):
    ledger = files / "ledger.sqlite"
    assert release(files, "--ledger", ledger) == 2
    assert "--budget" in capsys.readouterr().err and not ledger.exists()
    assert release(files, "--ledger", ledger, "--budget", "2") == 0
    # The trial fit without records warned of its own noisy total.
    assert not recwarn.list


def test_a_release_is_written_where_warnings_are_errors(files, recwarn):
    # No age is a number, so that the fit warns that all are skipped.
    ROWS.assign(age="unknown").to_csv(files / "data.csv", index=False)
    warnings.simplefilter("error")
    assert release(files, "--epsilon", "1000", "--method", "marginals", "--accept-loss") == 0
    assert "skipped about" in str(recwarn.pop(UserWarning).message)
    assert abs(skdp.Synopsis.load(files / "view.skdp").count()) < 1


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
    for name, message in (("empty", "is empty"), ("other", "declared columns 'age'")):
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
    assert run("ledger", "show", files / "nowhere.sqlite") == 2
    assert run("ledger", "show", files / "data.csv") == 2
    assert release(files) == 0
    assert run("query", files / "view.skdp", "height > 3") == 2
    assert "height" in capsys.readouterr().err


def read(files, lines, domain=DOMAIN):
    """The table that `release` makes of a file."""
    seen = []

    class Recorder:
        random_state = None

        def __init__(self, *arguments, **options):
            pass

        def set_params(self, **options):
            pass

        def fit(self, frame):
            seen.append(frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(methods.METHODS, "marginals", Recorder)
        patch.setattr(outputs, "save", lambda *arguments: None)
        (files / "data.csv").write_bytes(lines)
        (files / "domain.json").write_text(domain.to_json())
        # The recorder has no release to print.
        with pytest.raises(AttributeError):
            release(files)
    return seen[-1]


HEADER = b"age,sex,work,income\n"
GOOD = [b"30,Female,full,high", b"41,Male,none,low", b"52,Female,part,high"]
HOSTILE = [
    b'"', b'40,"Male,full,high', b'40,Male,full,"high', b'4"0,Male,full,high', b'"a\rb",,,', b"",
    b'""""', b'"40"x,Male,full,high', b"40,Male", b"1,2,3,4,5,6", b"\r", b"4\r0,Male,full,high",
    b"\0", b"40\0,Male,full,high", b"\xff\xfe,Male,full,high", b"\xef\xbb\xbf40,Male,full,high",
    b"x,y,z,w", b"40,Male,full,high\r", "\u2028,\x85,\x0b,\x0c".encode(), b"9" * 200_000 + b",,,",
    b'"' + b"9" * 200_000 + b'",,,', b"#,#,#,#", b"1e999,,,", b"1_0,Male,full,high", b"\\,\\,\\,\\",
    b"\x1a,,,", b"'40','Male','full','high'",
]  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_no_line_changes_how_another_is_read(files, line, end):
    # At most one record more, and every other as it was: one line is one record.
    header = HEADER.rstrip() + end
    before = read(files, header + end.join(GOOD) + end)
    assert len(before) == len(GOOD)
    for place in range(len(GOOD) + 1):
        lines = [*GOOD[:place], line, *GOOD[place:]]
        for last in (b"", end):
            after = read(files, header + end.join(lines) + last)
            added = len(after) - len(before)
            assert added in (0, 1)
            others = after.drop(index=place) if added else after
            pd.testing.assert_frame_equal(
                others.reset_index(drop=True), before.reset_index(drop=True)
            )


def test_a_line_that_is_too_long_fits_no_domain(files, monkeypatch):
    monkeypatch.setattr(csv, "LONGEST_LINE", 64)
    for length in (60, 63, 64, 65, 128, 129, 1000):
        for line in (b"a" * length, b"0" * (length - 19) + b"30,Female,full,high"):
            frame = read(files, HEADER + GOOD[0] + b"\n" + line + b"\n" + GOOD[1] + b"\n")
            assert frame["age"].iloc[[0, 2]].tolist() == [30, 41] and len(frame) == 3
            fits = (DOMAIN.encode(frame) >= 0).all(axis=1).tolist()
            assert fits == [True, line[:1] == b"0" and length < 64, True]


def test_a_value_is_read_by_what_is_declared_alone(files):
    domain = Domain(
        {
            "n": Numeric(0, 9, nullable=True),
            "flag": Categorical([0, 1], other=0),
            "half": Categorical([0.5, 2.0]),
            "text": Categorical(["1", "2.0", "x", ""]),
            "both": Categorical(["1", 2]),
        }
    )
    lines = [b"1,1,0.5,1,1", b"2.5,1.0,2,1.0,2", b"x,x,x,x,x", b",,,,", b'"",nan,.5,nan,2.0']
    texts = [b"n,flag,half,text,both", *lines]
    frame = read(files, b"\n".join(texts), domain)
    assert frame["n"].tolist()[:2] == [1, 2.5] and frame["n"].isna().tolist()[2:] == [True] * 3
    codes = [[1, 0, 0, 0], [1, 1, 0, 1], [0, -1, 2, -1], [-1, -1, 3, -1], [-1, 0, 3, 1]]
    assert domain.encode(frame)[:, 1:].tolist() == codes
    for place in range(len(lines)):
        alone = read(files, b"\n".join([texts[0], lines[place]]), domain)
        assert repr(alone.iloc[0].tolist()) == repr(frame.iloc[place].tolist())


def test_nothing_of_a_file_of_records_is_shown(files, capsys):
    """A file without a header, of another format, or given for the domain."""
    rows = pd.DataFrame({"name": ["Canary Smith"] * 5, "age": [77.125] * 5, "sex": "Male"})
    rows.to_csv(files / "headerless.csv", index=False, header=False)
    rows.to_csv(files / "semicolons.csv", index=False, sep=";")
    rows.to_json(files / "rows.json", orient="records")
    (files / "open.csv").write_text('name,"age,sex\nCanary Smith,77.125,Male\n')
    (files / "long.csv").write_text("age,sex,work,income,Canary Smith 77.125,age\n")
    (files / "utf16.csv").write_bytes("Canary Smith,age\n77.125,3\n".encode("utf-16"))
    (files / "mac.csv").write_text("name,age\rCanary Smith,77.125\r")
    names = ["headerless.csv", "semicolons.csv", "rows.json", "open.csv", "long.csv", "utf16.csv",
             "mac.csv"]  # fmt: skip
    if importlib.util.find_spec("pyarrow"):
        rows.to_parquet(files / "rows.parquet")
        names.append("rows.parquet")
    for name in names:
        for domain in ("domain.json", name):
            capsys.readouterr()
            arguments = ["--epsilon", 1, "--out", files / "view.skdp", "--ledger", files / "l"]
            given = ["--domain", files / domain, *arguments, "--budget", 1]
            assert run("release", files / name, *given) == 2, name
            shown = "".join(capsys.readouterr()).replace(str(files), "")
            assert "Refused" in shown
            assert not any(word in shown for word in ("Canary", "Smith", "77", "PAR1", "name,"))
            assert not (files / "l").exists() and not (files / "view.skdp").exists()
        assert run("query", files / name, "age > 3") == 2
        assert run("ledger", "show", files / name) == 2
        shown = "".join(capsys.readouterr()).replace(str(files), "")
        assert not any(word in shown for word in ("Canary", "Smith", "77", "PAR1"))


def test_nothing_is_overwritten_unasked(files, capsys):
    ledger = files / "ledger.sqlite"
    (files / "view.skdp").write_text("precious")
    (files / "rows.csv").write_text("precious")
    assert release(files, "--ledger", ledger, "--budget", 9) == 2
    assert "exists already" in capsys.readouterr().err
    assert (files / "view.skdp").read_text() == "precious" and not ledger.exists()
    assert release(files, "--ledger", ledger, "--budget", 9, "--force") == 0
    sample = ["sample", files / "view.skdp", "--rows", 5, "--out", files / "rows.csv"]
    assert run(*sample) == 2 and (files / "rows.csv").read_text() == "precious"
    assert run(*sample, "--force") == 0 and len(pd.read_csv(files / "rows.csv")) == 5
    before = (files / "data.csv").read_bytes()
    for out in ("data.csv", "domain.json", "ledger.sqlite"):
        assert release(files, "--ledger", ledger, "--out", files / out, "--force") == 2
        assert "which is the input" in capsys.readouterr().err
    assert (files / "data.csv").read_bytes() == before
    assert skdp.PrivacyLedger(path=ledger).spent == 1
    assert not list(files.glob(".*"))


@pytest.mark.parametrize(
    ("out", "ledger"),
    [
        ("p", "p"),
        ("p", "folder/../p"),
        ("link", "p"),
        ("p", "link"),
        ("p-journal", "p"),
        ("p-wal", "p"),
    ],
)
def test_a_ledger_that_does_not_exist_yet_is_not_overwritten(
    files, capsys, monkeypatch, out, ledger
):
    monkeypatch.chdir(files)
    (files / "folder").mkdir()
    (files / "link").symlink_to(files / "p")
    before = sorted(files.iterdir())
    more = ["--ledger", ledger, "--budget", 3, "--force"]
    assert release(files, *more, "--out", out) == 2
    assert "which is the input" in capsys.readouterr().err and sorted(files.iterdir()) == before
    assert release(files, *more, "--out", "view") == 0
    assert release(files, *more, "--out", out) == 2
    assert skdp.PrivacyLedger(path=ledger).spent == 1


def test_an_empty_file_counts_as_absent_unless_another_run_holds_it(files, capsys):
    fcntl = pytest.importorskip("fcntl")
    path = files / "view.skdp"
    with open(path, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        ledger = files / "ledger"
        assert release(files, "--ledger", ledger, "--budget", 1) == 2
        assert "Another run is writing" in capsys.readouterr().err
        assert path.exists() and not ledger.exists()
    # What a run left that was killed.
    assert release(files) == 0 and skdp.Synopsis.load(path).epsilon == 1
    assert release(files) == 2


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_end_a_run_as_ctrl_c_does(files, capsys, monkeypatch, name):
    number = getattr(signal, name)
    before = sorted(files.iterdir())
    (files / "old.skdp").write_text("old")

    def stopped(self, frame):
        if len(frame):
            assert callable(signal.getsignal(number)), "the signal would kill the process"
            os.kill(os.getpid(), number)
            time.sleep(5)
        return self

    monkeypatch.setattr(skdp.MarginalSynthesizer, "fit", stopped)
    assert release(files) == 128 + number
    assert "Interrupted" in capsys.readouterr().err and sorted(files.iterdir())[:-1] == before
    assert release(files, "--out", files / "old.skdp", "--force") == 128 + number
    assert (files / "old.skdp").read_text() == "old" and not list(files.glob(".*"))
    assert signal.getsignal(number) is signal.SIG_DFL
    # What was ignored stays ignored, as under nohup.
    signal.signal(number, signal.SIG_IGN)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(skdp.MarginalSynthesizer, "fit", lambda self, frame: 1 / 0)
            assert run("plan", "--domain", files / "domain.json", "--epsilon", "x") == 2
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, signal.SIG_DFL)


def test_a_release_whose_folder_vanishes_is_kept_elsewhere(files, capsys, monkeypatch):
    (files / "folder").mkdir()
    fit = skdp.GridSynthesizer.fit

    def vanishing(self, frame):
        if len(frame):
            shutil.rmtree(files / "folder")
        return fit(self, frame)

    monkeypatch.setattr(skdp.GridSynthesizer, "fit", vanishing)
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    more = ["--method", "grid", "--out", files / "folder" / "view"]
    assert release(files, *more) == 2
    kept = re.search(r"kept in (\S+\.skdp):", capsys.readouterr().err)
    assert skdp.Synopsis.load(kept.group(1)).epsilon == 1


def test_only_files_are_written_over(files, capsys):
    # A pipe stands for devices: a test that fails must not replace one of the system.
    os.mkfifo(files / "pipe")
    assert release(files, "--out", files / "pipe", "--force") == 2
    assert "which is no file" in capsys.readouterr().err
    assert stat.S_ISFIFO((files / "pipe").stat().st_mode)


def test_a_path_that_cannot_be_written_costs_nothing(files, capsys):
    ledger = files / "ledger.sqlite"
    assert release(files, "--ledger", ledger, "--budget", 9, "--out", files / ("x" * 300)) == 2
    assert "too long" in capsys.readouterr().err and not ledger.exists()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (ValueError("Canary Smith is 77"), 4, "Failed (ValueError)"),
        (RuntimeError("Canary Smith is 77"), 4, "withheld"),
    ],
)
def test_what_fails_after_reading_tells_no_value(files, capsys, monkeypatch, error, code, message):
    once = []

    def fails(self, frame):
        if len(frame):
            once.append(frame)
            raise error
        return self

    monkeypatch.setattr(skdp.MarginalSynthesizer, "fit", fails)
    assert release(files) == code and once
    shown = "".join(capsys.readouterr())
    assert message in shown and "Canary" not in shown
    assert not (files / "view.skdp").exists() and not list(files.glob(".*"))


def test_a_release_that_cannot_be_written_is_kept_elsewhere(files, capsys, monkeypatch):
    save, tried = skdp.Synopsis.save, []

    def full(self, path):
        tried.append(path)
        if len(tried) == 1:
            raise OSError(28, "No space left on device", str(path))
        save(self, path)

    monkeypatch.setattr(skdp.Synopsis, "save", full)
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    assert release(files) == 2
    shown = capsys.readouterr().err
    kept = re.search(r"kept in (\S+\.skdp):", shown)
    assert "No space left" in shown and skdp.Synopsis.load(kept.group(1)).epsilon == 1
    assert not (files / "view.skdp").exists()


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
    # Within the metadata: some bytes between the parts of an archive are never read.
    flipped = whole[:300] + bytes([whole[300] ^ 255]) + whole[301:]
    for damaged in (b"", whole[:300], flipped):
        (files / "view.skdp").write_bytes(damaged)
        assert run("query", files / "view.skdp", "age > 3") == 2
        assert "not a usable synopsis file" in capsys.readouterr().err
