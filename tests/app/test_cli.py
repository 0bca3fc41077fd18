"""The command line: releases without Python, with clear errors and exit codes."""

import argparse
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people
from loops import over

import skdp
from skdp import Categorical, Domain, Numeric
from skdp.__main__ import main
from skdp.algorithms.marginals import measure
from skdp.app.cli import METHODS, parser

ROWS = people(2_000)


@pytest.fixture
def files(tmp_path):
    ROWS.assign(phone="secret").to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "domain.json").write_text(DOMAIN.to_json())
    return tmp_path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def release(folder, *more, data="data.csv", domain="domain.json"):
    """Release a table to view.skdp; what is given later counts."""
    files = ["--domain", folder / domain, "--out", folder / "view.skdp"]
    return run("release", folder / data, *files, "--epsilon", 1, *more)


def test_a_release_without_error_bars_answers_without_them(files, capsys):
    assert release(files, "--method", "privbayes") == 0
    capsys.readouterr()
    assert run("query", files / "view.skdp", "income == 'high'", "mean(age)") == 0
    count, mean, why = capsys.readouterr().out.splitlines()
    true = len(ROWS.query("income == 'high'"))
    assert abs(float(count.split()[0].replace(",", "")) - true) < 300
    assert 17 <= float(mean.split()[0]) <= 90
    assert why.startswith("intervals: none. Answers of a Bayesian network")


def test_nothing_of_a_file_of_records_is_shown(files, capsys):
    """A file without a header, of another format, or given for the domain."""
    rows = pd.DataFrame({"name": ["Canary Smith"] * 5, "age": [77.125] * 5, "sex": "Male"})
    rows.to_parquet(files / "rows.parquet")
    whole = (files / "rows.parquet").read_bytes()
    contents = {
        "headerless.csv": rows.to_csv(index=False, header=False).encode(),
        "rows.json": rows.to_json(orient="records").encode(),
        "open.csv": b'name,"age,sex\nCanary Smith,77.125,Male\n',
        "long.csv": b"age,sex,work,income,Canary Smith 77.125,age\n",
        "utf16.csv": "Canary Smith,age\n77.125,3\n".encode("utf-16"),
        "mac.csv": b"name,age\rCanary Smith,77.125\r",
        "rows.parquet": whole,
        "cut.parquet": whole[: len(whole) // 2],
        "tail.parquet": whole[:-40] + b"Canary" * 6 + whole[-4:],
    }
    for name, content in contents.items():
        (files / name).write_bytes(content)
        for domain in ("domain.json", name):
            arguments = ["--epsilon", 1, "--out", files / "view.skdp", "--ledger", files / "l"]
            given = ["--domain", files / domain, *arguments, "--budget", 1]
            assert run("release", files / name, *given) == 2, name
            assert not (files / "l").exists() and not (files / "view.skdp").exists()
        assert run("query", files / name, "age > 3") == 2
        assert run("ledger", "show", files / name) == 2
        shown = "".join(capsys.readouterr()).replace(str(files), "")
        assert "Refused" in shown
        assert not any(word in shown for word in ("Canary", "Smith", "77", "PAR1", "name,"))


def test_nothing_is_overwritten_unasked(files, capsys):
    ledger = files / "ledger.sqlite"
    (files / "view.skdp").write_text("precious")
    (files / "rows.csv").write_text("precious")
    assert release(files, "--ledger", ledger, "--budget", 9) == 2
    assert "exists already" in capsys.readouterr().err
    assert (files / "view.skdp").read_text() == "precious" and not ledger.exists()
    (files / "view.skdp").unlink()
    assert release(files, "--ledger", ledger, "--budget", 9, "--target", "income") == 0
    sample = ["sample", files / "view.skdp", "--rows", 5, "--out", files / "rows.csv"]
    assert run(*sample) == 2 and (files / "rows.csv").read_text() == "precious"
    before = (files / "data.csv").read_bytes()
    for out in ("data.csv", "domain.json", "ledger.sqlite"):
        assert release(files, "--ledger", ledger, "--out", files / out) == 2
        assert "another" in capsys.readouterr().err
    assert (files / "data.csv").read_bytes() == before
    assert skdp.PrivacyLedger(path=ledger).spent == 1
    assert not list(files.glob(".*"))


@over(
    "fails, code, message",
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (ValueError("Canary Smith is 77"), 4, "Failed (ValueError)"),
        (RuntimeError("Canary Smith is 77"), 4, "withheld"),
    ],
)
@over("step", ["measure_columns", "_model"])
def test_what_fails_after_reading_tells_no_value_and_stays_spent(
    files, capsys, fails, code, message, step
):
    whole = getattr(measure._Views, step)

    def failing(views, *given):
        # In the real fit, not in the trial before it.
        if views.total > 1000:
            raise fails
        return whole(views, *given)

    ledger = files / f"{step} {code} {message}"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(measure._Views, step, failing)
        assert release(files, "--ledger", ledger, "--budget", 3) == code
    shown = "".join(capsys.readouterr())
    assert message in shown and "Canary" not in shown
    assert "What it spent stays spent, and the release is lost" in shown
    assert skdp.PrivacyLedger(path=ledger).spent == 1
    assert not (files / "view.skdp").exists() and not list(files.glob(".*"))


def test_a_release_that_cannot_be_written_says_that_it_was_charged(files, capsys, monkeypatch):
    def full(self, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(skdp.Synopsis, "save", full)
    assert release(files) == 2
    assert "No space left on device. It has been charged and is lost" in capsys.readouterr().err
    assert not (files / "view.skdp").exists()


@pytest.fixture
def inputs(files, monkeypatch):
    """Files that are not what they should be, beside those that are."""
    monkeypatch.chdir(files)
    (files / "book.csv").write_text("name,type\nage,wizard\n")
    (files / "bad.json").write_text('{"age": 3}')
    (files / "rules.json").write_text('[{"rule": "almost", "column": "a"}]')
    (files / "view.skdp").write_text("precious")
    (files / "noise.skdp").write_bytes(np.random.default_rng(0).bytes(1_000))
    os.mkfifo(files / "pipe")
    (files / "link").symlink_to(files / "p")
    return files


REFUSED = [
    (["--epsilon", "0"], "epsilon"),
    (["--target", "wage"], "wage"),
    (["--privacy-id", "sex", "--max-rows-per-id", "2"], "--privacy-id='sex'"),
    (["--max-rows-per-id", "3"], "--max-rows-per-id=3 and --privacy-id=None belong together"),
]
REFUSED_BY_RELEASE = [
    (["--domain", "bad.json"], "domain"),
    (["--domain", "book.csv"], "declares no valid domain. `skdp domain check DATA"),
    (["--domain", "data.csv"], "declares no valid domain. `skdp domain check DATA"),
    (["--privacy-id", "nobody", "--max-rows-per-id", "2"], "'nobody'"),
    (["--out", "no/such/folder/view.skdp"], "No such file"),
    (["--out", "."], "exists already"),
    (["--out", "pipe"], "exists already"),
    (["--out", "ledger"], "is an input, or the ledger"),
    (["--out", "ledger-wal"], "is an input, or the ledger"),
    (["--out", "link", "--ledger", "p"], "is an input, or the ledger"),
]


def test_what_is_refused_costs_nothing(inputs, capsys):
    before = sorted(inputs.iterdir())
    usual = ["release", "data.csv", "--domain", "domain.json", "--epsilon", "1", "--out", "new"]
    usual += ["--ledger", "ledger", "--budget", "3"]
    for more, message in [*REFUSED, *REFUSED_BY_RELEASE]:
        if (more, message) in REFUSED:
            assert run("plan", "--domain", "domain.json", "--epsilon", "1", *more) == 2
            assert message in capsys.readouterr().err
        assert run(*usual, *more) == 2, more
        shown = capsys.readouterr().err
        assert message in shown and "Canary" not in shown and "wizard" not in shown
        assert sorted(inputs.iterdir()) == before
    for command in (["info"], ["sample"], ["ledger", "show"]):
        for name in ("noise.skdp", "data.csv", "nowhere.skdp", "."):
            assert run(*command, name) == 2
            assert capsys.readouterr().err.startswith("Refused:")
    assert sorted(inputs.iterdir()) == before


# --- commands that read no records


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """A release of four columns."""
    path = tmp_path_factory.mktemp("view") / "view.skdp"
    fitted = skdp.MarginalSynthesizer(epsilon=1, domain=DOMAIN).fit(people(2_000))
    fitted.synopsis_.save(path)
    return path


# Help


def test_every_command_has_help(capsys):
    todo = [([], parser())]
    for words, parsed in todo:
        for action in parsed._actions:
            if isinstance(action, argparse._SubParsersAction):
                todo += [([*words, name], each) for name, each in action.choices.items()]
        with pytest.raises(SystemExit) as ended:
            run(*words, "--help")
        shown = capsys.readouterr().out
        assert ended.value.code == 0 and shown.startswith("usage: ")
        assert max(map(len, shown.splitlines())) <= 100


# Plan


@over("method", sorted(METHODS))
def test_a_plan_shows_the_parts_of_the_release(files, capsys, method):
    assert run("plan", "--domain", files / "domain.json", "--epsilon", 2, "--method", method) == 0
    shown = capsys.readouterr()
    fitted = getattr(skdp, METHODS[method])(epsilon=2, domain=DOMAIN).fit(people(500))
    cells = (part.rsplit(" ", 1) for part in re.search("of which (.*)", shown.out)[1].split(", "))
    planned = {name: float(epsilon) for name, epsilon in cells}
    for name, value in fitted.privacy_loss_.parts.items():
        assert planned[name] == pytest.approx(float(value), rel=1e-3)
    assert sum(planned.values()) == pytest.approx(2, rel=1e-3)
    assert shown.err == "" and "Nothing was spent" in shown.out and "Epsilon" not in shown.out
    assert run("plan", "--domain", files / "domain.json", "--epsilon", 1, "--ask", "age > 3") == 2
    assert "--ask needs --rows" in capsys.readouterr().err


def test_unusual_epsilons_are_explained(files, capsys):
    for epsilon, words in ((0.001, "deviation of 1,414 records"), (25, "protects hardly anybody")):
        assert run("plan", "--domain", files / "domain.json", "--epsilon", epsilon) == 0
        assert words in capsys.readouterr().out
        assert release(files, *GRID, "--epsilon", epsilon, "--out", files / str(epsilon)) == 0
        assert words in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(view):
    done = subprocess.run(
        f"{sys.executable} -m skdp sample {view} --rows 99999 | head -n 1; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["age,sex,work,income", "141"] and done.stderr == ""


def test_a_shell_prints_what_python_answers(view, capsys, tmp_path):
    made = skdp.Synopsis.load(view)

    def said(*words):
        assert run(*words) == 0
        return capsys.readouterr().out

    asked = ["mean(age) where sex == 'Male'", "age > 30"]
    mean = made.mean("age", "sex == 'Male'", return_interval=True, level=0.8)
    count = made.count("age > 30", return_interval=True, level=0.8)
    lines = [f"{answer}  {text}" for text, answer in zip(asked, (mean, count), strict=True)]
    both = zip(asked, (mean, count), strict=True)
    lines += [f"intervals of {text}: {answer.guarantee}" for text, answer in both]
    assert said("query", view, "--level", 0.8, *asked).splitlines() == lines
    drawn = said("sample", view, "--rows", 20, "--seed", 1, "--where", "sex == 'Male'")
    assert drawn.count("Male") == 20
    for (command, *wrong), message in (
        (["query", "age > @low"], "values stand in the text itself"),
        (["query", "mean(height)"], "no column 'height'"),
        (["query", "age > 3", "--level", "1e999"], "level"),
        (["sample", "--where", "sex =="], "sex =="),
        (["sample", "--rows", 10**12, "--out", tmp_path / "rows.csv"], "do not fit into memory"),
        (["page", "--out", view], "exists already"),
    ):
        assert run(command, view, *wrong) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# --- persons, and lines


GRID = ["--method", "grid"]


def test_persons_are_protected_with_unit(files, capsys):
    rows = ROWS.assign(person=[f"p{i // 10}" for i in range(len(ROWS))])
    rows.loc[:9, "person"] = None
    rows.to_csv(files / "rows.csv", index=False)
    persons = ["--privacy-id=person", "--max-rows-per-id=3", "--epsilon=1"]
    assert run("plan", files / "rows.csv", *persons, "--domain", files / "domain.json") == 0
    assert "1: 9.95%, 2: 19.9%, 5: 49.8%, 10: 99.5%. This is" in capsys.readouterr().out
    assert release(files, *GRID, *persons, data="rows.csv") == 0
    view = skdp.Synopsis.load(files / "view.skdp")
    run("info", files / "view.skdp")
    assert "of at most 3 rows of each person" in capsys.readouterr().out
    ledger = skdp.PrivacyLedger(3, files / "l")
    ledger.charge("records", 1)
    again = ["--ledger", ledger.path, "--out", files / "again.skdp"]
    assert release(files, *GRID, *persons, *again, data="rows.csv") == 2
    shown = capsys.readouterr().err
    assert "--max-rows-per-id= and --privacy-id=" in shown and "charge(" not in shown
    # 199 persons, three rows of each.
    assert abs(view.count() - 597) < 400


def test_progress_tells_no_number_of_the_data(files, capsys):
    said = set()
    for n in (3, 1_999):
        ROWS[:n].to_csv(files / "rows.csv", index=False)
        assert release(files, *GRID, data="rows.csv") == 0
        said.add(capsys.readouterr().err)
        (files / "view.skdp").unlink()
    assert len(said) == 1 and "Reading." in said.pop()


# --- domains, code books and rules

LENT = Domain({"city": Categorical(["a", "b"]), "owed": Numeric(0, 9), "paid": Numeric(0, 9)})
RULES = [{"rule": "at_most", "column": "paid", "bound": "owed"}]
BOOK = "name,type,min,max,values\ncity,category,,,a; b\nowed,number,0,9,\npaid,number,0,9,\n"


@pytest.fixture
def lent(tmp_path):
    owed = np.random.default_rng(0).uniform(0, 9, 1_500)
    rows = pd.DataFrame({"city": ["a", "b", "a"] * 500, "owed": owed, "paid": owed / 2})
    rows.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "domain.json").write_text(LENT.to_json())
    ruled = json.dumps({**json.loads(LENT.to_json()), "structure": RULES})
    (tmp_path / "ruled.json").write_text(ruled)
    (tmp_path / "book.csv").write_text(BOOK)
    return tmp_path


def test_a_code_book_becomes_a_domain_and_its_rules_hold(lent, capsys):
    # Where a domain is expected, a code book is one.
    assert run("plan", "--domain", lent / "book.csv", "--epsilon", 1) == 0
    assert "on 3 columns" in capsys.readouterr().out
    # What is wrong with one is quoted to the owner alone.
    (lent / "bad.csv").write_text(BOOK.replace("number,0,9", "number,Canary,9"))
    assert release(lent, domain="bad.csv") == 2 and "Canary" not in capsys.readouterr().err
    assert run("domain", "check", lent / "data.csv", "--domain", lent / "bad.csv") == 2
    assert "Canary" in capsys.readouterr().err
    assert release(lent, domain="ruled.json") == 0
    assert run("sample", lent / "view.skdp", "--out", lent / "rows.csv") == 0
    rows = pd.read_csv(lent / "rows.csv")
    assert list(rows) == list(LENT.columns) and (rows["paid"] <= rows["owed"]).all()
    assert run("info", lent / "view.skdp") == 0
    assert "at_most('paid', 'owed')" in capsys.readouterr().out


def test_check_counts_exactly_and_says_so(lent, capsys):
    assert run("domain", "check", lent / "data.csv", "--domain", lent / "domain.json") == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("NOT PRIVATE") and "1500 records" in shown.err
    # A category and a sum that cannot be, a line without its other fields, and one that breaks off.
    (lent / "data.csv").write_text('city,owed,paid\na,3,2\n?,3,2\nb,3,4\nx\n"\n\n')
    arguments = [lent / "data.csv"]
    assert run("domain", "check", *arguments, "--domain", lent / "ruled.json") == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("NOT PRIVATE") and "Reading" not in shown.err
    assert "at_most('paid', 'owed')" in shown.err and "records skipped: 4 of 5" in shown.err
    # A proposal says so too, in the file that keeps it.
    assert run("domain", "check", *arguments) == 1
    assert '"about": "NOT PRIVATE' in capsys.readouterr().out
