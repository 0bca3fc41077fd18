"""The options of marginals on the command line: --max-order and --workload."""

from __future__ import annotations

import pytest
from estimators import DOMAIN, people

import skdp
from skdp.__main__ import main
from skdp.app.outputs import read_workload

SETS = {("age", "sex"): 0.5, ("age", "work"): 1}


@pytest.fixture
def files(tmp_path):
    people(2_000).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "domain.json").write_text(DOMAIN.to_json())
    return tmp_path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def plan(files, *more):
    return run("plan", "--domain", files / "domain.json", "--epsilon", 1, *more)


@pytest.mark.parametrize("word", ["all", "ranges", "cells"])
def test_words(word):
    assert read_workload(word) == word


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("age,sex=0.5;age,work", SETS),
        (" age , sex = 0.5 ; age,work=1; ", SETS),
        ("age=0.25", {("age",): 0.25}),
        ("a=b,c=1", {("a=b", "c"): 1}),
        ("=1", {(): 1}),
    ],
)
def test_sets_in_one_line(text, sets):
    assert read_workload(text) == sets


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("points", "must be 'all', 'ranges', 'cells' or sets of columns"),
        ("age,sex=much", "the weight 'much'"),
        ("age,sex;age,sex=1", "twice"),
    ],
)
def test_what_is_no_workload(text, message):
    with pytest.raises(ValueError, match=message):
        read_workload(text)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--max-order", "0"], "max_order must be at least 1"),
        (["--max-order", "5"], "max_order must be at most 4"),
        (["--workload", "age,wage"], "'wage' is not in the domain"),
        (["--workload", "age,age"], "named twice"),
        (["--workload", "age,sex;sex,age"], "twice"),
        (["--workload", "age,sex=2"], "(0, 1]"),
        (["--workload", "age,sex=nan"], "must be finite"),
        (["--workload", "=1"], "an empty set"),
        (["--workload", "age,sex,work", "--max-order", "2"], "max_order=2"),
        (["--workload", ";"], "no set of columns"),
        (["--workload", "nowhere.json"], "--workload must be"),
        (["--workload", "cells", "--method", "privbayes"], "--workload belongs to --method"),
        (
            ["--workload", "cells", "--max-order", "2", "--method", "privtree"],
            "--max-order and --workload belong to --method marginals, not to privtree",
        ),
    ],
)
def test_what_the_class_refuses_is_refused_before_anything_is_spent(files, capsys, more, message):
    assert plan(files, *more) == 2
    assert message in capsys.readouterr().err
    out, ledger = files / "view.skdp", files / "ledger"
    spend = ["--epsilon", 1, "--out", out, "--ledger", ledger, "--budget", 1]
    assert run("release", files / "data.csv", "--domain", files / "domain.json", *spend, *more) == 2
    assert message in capsys.readouterr().err
    assert not ledger.exists() and not out.exists()


def test_a_release_measures_the_sets(files):
    arguments = ["--domain", files / "domain.json", "--epsilon", 5, "--out", files / "view.skdp"]
    more = ["--max-order", 2, "--workload", "age,sex=0.5;age,work"]
    assert run("release", files / "data.csv", *arguments, *more) == 0
    names = skdp.Synopsis.load(files / "view.skdp").domain.names
    looks = skdp.Synopsis.load(files / "view.skdp").model.coefficients.looks
    sets = {tuple(names[axis] for axis in axes) for axes in looks if len(axes) > 1}
    assert sets == set(SETS)
