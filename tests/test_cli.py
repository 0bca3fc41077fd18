"""Commands that read no records: plan, info, group-by, sample, help."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people

import skdp
from skdp import Categorical, Domain
from skdp.__main__ import main
from skdp.app import outputs
from skdp.app.cli import parser

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """A release of four columns."""
    path = tmp_path_factory.mktemp("view") / "view.skdp"
    fitted = skdp.MarginalSynthesizer(epsilon=1, domain=DOMAIN).fit(people(2_000))
    fitted.synopsis_.save(path)
    return path


@pytest.fixture
def declared(tmp_path):
    (tmp_path / "domain.json").write_text(DOMAIN.to_json())
    return tmp_path / "domain.json"


# Help


def commands():
    """Words of every command, groups included."""

    def inside(parsed, words):
        yield words
        for action in parsed._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, each in action.choices.items():
                    yield from inside(each, [*words, name])

    return list(inside(parser(), []))


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_has_help(words, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*words, "--help")
    shown = capsys.readouterr().out
    assert ended.value.code == 0 and shown.startswith("usage: ")
    assert max(map(len, shown.splitlines())) <= 100


def test_help_explains_the_exit_codes_and_loads_nothing():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "skdp", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "exit codes" in done.stdout
    assert "python -m skdp release" in done.stdout
    assert "pandas" not in done.stderr and "sklearn" not in done.stderr


def test_the_script_is_the_module():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"skdp": "skdp.__main__:main"}
    assert parser().prog == "skdp"


@pytest.mark.parametrize(
    "words", [[], ["domain"], ["release"], ["nonsense"], ["sample", "--rows", "x"]]
)
def test_wrong_usage_ends_with_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2 and "usage:" in capsys.readouterr().err


def test_methods_are_all_synthesizers():
    offered = next(a for a in parser()._actions if a.dest == "command").choices["release"]
    (method,) = (a for a in offered._actions if a.dest == "method")
    assert sorted(outputs.METHODS) == method.choices
    named = {name for name in skdp.__all__ if name.endswith("Synthesizer")}
    assert {each.__name__ for each in outputs.METHODS.values()} == named


# Plan


def parts_of(shown):
    """Epsilon of each part in the table of a plan."""
    lines = shown.split("noise\n")[1].split("\n\n")[0].splitlines()
    return {name: float(epsilon) for name, epsilon, _ in map(str.split, lines)}


@pytest.mark.parametrize("method", sorted(outputs.METHODS))
def test_a_plan_shows_the_parts_of_the_release(declared, capsys, method):
    arguments = ["--domain", declared, "--epsilon", 2, "--method", method]
    assert run("plan", *arguments) == 0
    shown = capsys.readouterr()
    fitted = outputs.METHODS[method](epsilon=2, domain=DOMAIN).fit(people(500))
    parts = {name: float(value) for name, value in fitted.privacy_loss_.parts.items()}
    assert parts_of(shown.out) == pytest.approx(parts, rel=1e-3)
    assert shown.err == "" and "Nothing was read or spent" in shown.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--privacy-id", "id", "--max-rows-per-id", 4], "at most 4 records of each"),
    ],
)
def test_plans_of_other_releases(declared, capsys, more, message):
    assert run("plan", "--domain", declared, "--epsilon", 1, *more) == 0
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--epsilon", "0"], "epsilon must be positive"),
        (["--epsilon", "x"], "--epsilon must be a number"),
        (["--rows", "-1"], "--rows must not be negative"),
        (["--target", "wage"], "wage"),
        (["--privacy-id", "id"], "--max-rows-per-id"),
        (["--privacy-id", "sex", "--max-rows-per-id", "2"], "privacy_id='sex'"),
    ],
)
def test_a_plan_refuses_what_the_release_refuses(declared, capsys, more, message):
    assert run("plan", "--domain", declared, "--epsilon", 1, *more) == 2
    assert message in capsys.readouterr().err


def test_a_plan_refuses_a_domain_that_is_too_large_for_the_method(tmp_path, capsys):
    wide = Domain({f"c{i}": Categorical(range(100)) for i in range(10)})
    (tmp_path / "wide.json").write_text(wide.to_json())
    arguments = ["--domain", tmp_path / "wide.json", "--epsilon", 1]
    assert run("plan", *arguments, "--method", "kdtree") == 2
    assert "MarginalSynthesizer" in capsys.readouterr().err


# Views


def test_info(view, capsys):
    assert run("info", view) == 0
    shown = capsys.readouterr().out
    for text in (
        "marginals",
        "epsilon: 1, of which skipped 0.01, total 0.0198",
        "seeded: no",
        "columns: 4",
    ):
        assert text in shown
    assert "add or remove one record" in shown and "Categorical(['Female', 'Male'])" in shown


def test_info_of_a_seeded_and_of_an_old_release(tmp_path, capsys):
    fitted = skdp.GridSynthesizer(epsilon=1, domain=DOMAIN, random_state=0).fit(people(500))
    fitted.synopsis_.save(tmp_path / "seeded.skdp")
    assert run("info", tmp_path / "seeded.skdp") == 0
    assert "seeded: YES, NO GUARANTEE" in capsys.readouterr().out
    bare = skdp.Synopsis(DOMAIN, fitted.synopsis_.model)
    bare.save(tmp_path / "bare.skdp")
    assert run("info", tmp_path / "bare.skdp") == 0
    assert "epsilon: unknown" in capsys.readouterr().out


def test_group_by_is_aggregate(view, capsys, tmp_path):
    assert run("group-by", view, "sex", "work", "--mean", "age", "--where", "income == 'low'") == 0
    shown = pd.read_csv(io.StringIO(capsys.readouterr().out))
    table = skdp.Synopsis.load(view).aggregate(["sex", "work"], "age", "income == 'low'")
    table["work"] = table["work"].fillna(np.nan)
    pd.testing.assert_frame_equal(shown, table, check_dtype=False)
    assert run("group-by", view, "age", "--out", tmp_path / "ages.csv") == 0
    assert pd.read_csv(tmp_path / "ages.csv")["age"].iloc[0] == "[17.0, 26.125)"
    assert run("group-by", view, "sex", "--intervals", "--level", 0.9) == 0
    shown = pd.read_csv(io.StringIO(capsys.readouterr().out))
    table = skdp.Synopsis.load(view).aggregate("sex", return_interval=True, level=0.9)
    pd.testing.assert_frame_equal(shown, table, check_dtype=False)
    for wrong, message in (
        (["height"], "height"),
        (["sex", "sex"], "different columns"),
        (["sex", "--mean", "work"], "work"),
        (["sex", "--where", "height > 3"], "height"),
        (["sex", "--out", view], "which is the input"),
    ):
        assert run("group-by", view, *wrong) == 2
        assert message in capsys.readouterr().err


def test_a_plan_tells_the_error_bars_of_questions(declared, capsys):
    arguments = ["--domain", declared, "--epsilon", 1]
    asked = ["--ask", "sex == 'Male'", "--ask", "mean(age) where sex == 'Male'"]
    more = ["--rows", 2_000, "--at", "0.5,2"]
    assert run("plan", *arguments, *asked, *more) == 0
    lines = capsys.readouterr().out.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("question"))
    assert lines[place].split() == ["question", "0.5", "2"]
    assert [line.split("  ")[0] for line in lines[place + 1 :]] == [asked[1], asked[3]]
    low, high = (float(each.strip(" ±")) for each in lines[place + 1].split("±")[1:])
    assert low > high > 0
    for wrong, message in (
        (asked, "--ask needs --rows"),
        (["--at", "1"], "needs --ask"),
        ([*asked, "--rows", 100, "--at", "much"], "--at"),
        (["--ask", "height > 3", "--rows", 100], "height"),
    ):
        assert run("plan", *arguments, *wrong) == 2
        assert message in capsys.readouterr().err


def test_queries_of_quantiles_and_correlations(view, capsys):
    release = skdp.Synopsis.load(view)

    def said(*words):
        assert run("query", view, *words) == 0
        return capsys.readouterr().out

    lines = said("--quantile", "age=0.25,0.5").splitlines()
    exact = release.quantile("age", [0.25, 0.5])
    assert [float(line.split()[0]) for line in lines[:2]] == pytest.approx(exact, rel=1e-5)
    assert lines[1].endswith("0.5 quantile of age, all records")
    assert "0.5 quantile of age, sex == 'Male'" in said("sex == 'Male'", "--quantile", "age")
    assert float(said().split()[0]) == pytest.approx(release.total, rel=1e-5)
    for wrong, message in (
        (["--correlation"], "two columns of numbers"),
        (["--quantile", "age=2"], "between 0 and 1"),
        (["--quantile", "height"], "height"),
    ):
        assert run("query", view, *wrong) == 2
        assert message in capsys.readouterr().err


def test_words_may_stand_behind_options_and_columns_with_commas(view, capsys):
    def said(*words):
        assert run(*words) == 0
        return capsys.readouterr().out

    usual = said("query", view, "age > 40", "sex == 'Male'", "--mean", "age")
    assert said("query", view, "--mean", "age", "age > 40", "sex == 'Male'") == usual
    assert said("query", view, "age > 40", "--mean", "age", "sex == 'Male'") == usual
    usual = said("group-by", view, "sex", "work", "--where", "age > 40")
    assert said("group-by", view, "sex,work", "--where", "age > 40") == usual
    assert said("group-by", view, "sex", "--where", "age > 40", "work") == usual
    for wrong in (["query", view, "--mean", "age", "age > 40", "--wrong"], ["info", view, "more"]):
        with pytest.raises(SystemExit):
            run(*wrong)
        assert "unrecognized arguments" in capsys.readouterr().err
    assert run("group-by", view, "sex,height") == 2
    assert "no column 'height'" in capsys.readouterr().err


def test_means_and_bands_in_a_shell(view, capsys):
    release = skdp.Synopsis.load(view)
    assert run("query", view, "sex == 'Male'", "--mean", "age", "--level", 0.8) == 0
    value, low, high = capsys.readouterr().out.split()[:3]
    mean = release.mean("age", "sex == 'Male'", return_interval=True, level=0.8)
    shown = [float(value), float(low.strip("[,")), float(high.strip("]"))]
    assert shown == pytest.approx([mean.value, mean.lower, mean.upper], rel=1e-5)
    bands = ["--bands", "age=-inf,30,60"]
    assert run("group-by", view, "sex", "age", *bands, "--where", "sex == 'Male'") == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    expected = release.aggregate(
        ["sex", "age"], query="sex == 'Male'", bands={"age": [-np.inf, 30, 60]}
    )
    np.testing.assert_allclose(table["count"], expected["count"])
    assert table["age"].iloc[0] == "(-inf, 30.0]"
    assert run("sample", view, "--rows", 5, "--where", "sex == 'Male'") == 0
    assert capsys.readouterr().out.count("Male") == 5
    for wrong, message in (
        (["query", view, "age > @low"], "nothing is given for @low"),
        (["group-by", view, "age", "--bands", "age"], "--bands needs COLUMN=EDGES"),
        (["group-by", view, "age", "--bands", "age=3"], "ascending edges"),
        (["group-by", view, "age", "--bands", "sex=3,4"], "Categorical"),
    ):
        assert run(*wrong) == 2
        assert message in capsys.readouterr().err


def test_a_page_stands_beside_its_release(view, capsys, tmp_path):
    copy = tmp_path / "rows.skdp"
    copy.write_bytes(view.read_bytes())
    assert run("page", copy) == 0
    text = (tmp_path / "rows.html").read_text(encoding="utf-8")
    assert capsys.readouterr().out.split()[-1] in text
    assert "<h1>rows.skdp</h1>" in text and '"source": "rows.skdp"' in text
    assert run("page", copy) == 2
    assert "exists already" in capsys.readouterr().err
    out = tmp_path / "board.html"
    assert run("page", copy, "--out", out, "--title", "For the board") == 0
    assert "<h1>For the board</h1>" in out.read_text(encoding="utf-8")
    assert run("page", copy, "--out", copy, "--force") == 2


def test_equal_seeds_draw_equal_rows(view, capsys):
    drawn = []
    for seed in (1, 1, 2):
        assert run("sample", view, "--rows", 20, "--seed", seed) == 0
        drawn.append(capsys.readouterr().out)
    assert drawn[0] == drawn[1] != drawn[2]
    assert run("sample", view, "--rows", -1) == 2
    assert run("sample", view, "--rows", 3, "--seed", -1) == 2


def test_more_rows_than_memory_holds_are_refused(view, capsys, monkeypatch, tmp_path):
    for rows in (10**12, 10**25):
        for how in ([], ["--method", "independent"], ["--where", "age > 30"]):
            assert run("sample", view, "--rows", rows, *how, "--out", tmp_path / "rows.csv") == 2
            assert "do not fit into memory" in capsys.readouterr().err

    def short(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(skdp.Synopsis, "sample", short)
    assert run("sample", view, "--out", tmp_path / "rows.csv") == 2
    assert "does not fit into memory" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_numbers_beyond_all_floats_are_compared(view, capsys):
    huge = "9" * 400
    for question in (f"age > {huge}", f"age >= 0 and age > {huge}"):
        assert run("query", view, question) == 0
        assert float(capsys.readouterr().out.split()[0]) == 0
    assert run("query", view, f"age < {huge}", "--mean", "age") == 0
    assert run("query", view, "age > 3", "--level", "1e999") == 2
    assert run("sample", view, "--rows", 5, "--where", f"age < {huge}") == 0


def test_rows_of_a_kind(view, capsys):
    arguments = ["sample", view, "--rows", 200, "--where"]
    assert run(*arguments, "sex == 'Male' and income == 'high'") == 0
    drawn = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(drawn) == 200 and set(drawn["sex"]) == {"Male"} and set(drawn["income"]) == {"high"}
    for wrong, message in (("height > 3", "height"), ("sex ==", "sex =="), ("sex == 3", "sex")):
        assert run(*arguments, wrong) == 2
        assert message in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(view):
    done = subprocess.run(
        f"{sys.executable} -m skdp sample {view} --rows 99999 | head -n 1; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["age,sex,work,income", "141"] and done.stderr == ""


def test_tables_are_not_written_as_workbooks(view, tmp_path, capsys):
    for command in (["sample", view], ["group-by", view, "sex"]):
        assert run(*command, "--out", tmp_path / "rows.xlsx") == 2
        assert "Name the file .csv." in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_sample_that_fails_leaves_no_file(view, tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(skdp.Synopsis, "sample", interrupted)
    (tmp_path / "old.csv").write_text("old")
    assert run("sample", view, "--out", tmp_path / "new.csv") == 130
    assert run("sample", view, "--out", tmp_path / "old.csv", "--force") == 130
    assert [each.name for each in tmp_path.iterdir()] == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "old"


@pytest.mark.parametrize("command", [["info"], ["query"], ["group-by"], ["sample"]])
def test_files_that_are_no_release(tmp_path, capsys, command):
    more = ["age"] if command[0] in ("query", "group-by") else []
    (tmp_path / "rows.skdp").write_bytes(np.random.default_rng(0).bytes(1_000))
    (tmp_path / "zip.skdp").write_bytes(b"PK\5\6" + bytes(18))
    for name in ("rows.skdp", "zip.skdp", "nowhere.skdp", "."):
        assert run(*command, tmp_path / name, *more) == 2
        assert capsys.readouterr().err.startswith("Refused:")


def test_ledger_and_audit(tmp_path, capsys, monkeypatch):
    skdp.PrivacyLedger(2, path=tmp_path / "l").charge("by hand", 0.5)
    assert run("ledger", "show", tmp_path / "l") == 0
    assert "by hand" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    assert run("audit", "--only", "discrete_laplace", "--quick", "--quiet") == 0
    assert run("audit", "--only", "no such thing") == 2
