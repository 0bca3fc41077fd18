"""The figures of the five works: all are listed, judged by rules, published, and one is drawn."""

from pathlib import Path

import pandas as pd
import pytest
from loops import over

reproduce = pytest.importorskip("benchmarks.reproduce")
pytest.importorskip("matplotlib")
command = pytest.importorskip("benchmarks.reproduce.__main__")
claims = pytest.importorskip("benchmarks.reproduce.claims")
TIE, UNTESTED = reproduce.TIE, reproduce.UNTESTED


def test_every_figure_has_its_work_its_words_and_its_finding():
    names = set(command.figures())
    assert len(names) > 50
    for name, (work, draw) in command.figures().items():
        assert command.WORKS[name.split("_")[0]] == work and callable(draw)
    assert set(claims.QUOTES) == names
    silent = {name for name, words in claims.QUOTES.items() if not words}
    assert silent == {"cubes_time_parts", "hdpview_table_3"}
    folder = Path(__file__).parent.parent / "docs" / "_static" / "reproduction"
    found = pd.read_csv(folder / "findings.csv")
    assert sorted(found["figure"]) == sorted(names)
    assert set(found["verdict"]) <= set(command.VERDICTS)


@over(
    "held, verdict",
    [
        ([True, True], "agrees"),
        ([True, False], "agrees in part"),
        ([True, UNTESTED], "agrees in part"),
        ([False, TIE], "disagrees"),
        ([TIE, UNTESTED], "tie"),
        ([UNTESTED], "not comparable"),
    ],
)
def test_the_rules_decide_the_verdict(held, verdict):
    finding = reproduce.Finding("it is so.", "3 and 4.", dict(zip("ab", held, strict=False)))
    assert finding.verdict == verdict and verdict in str(finding)
    with pytest.raises(ValueError, match="Without a check"):
        reproduce.Finding("it is so.", "it is.", {})


def test_findings_are_replaced_by_later_ones_and_published(tmp_path):
    path = tmp_path / "findings.csv"
    right = reproduce.Finding("sweeps take longer.", "9 and 3.", {"9 > 3": True})
    wrong = reproduce.Finding("sweeps take longer.", "2 * 3 | 3.", {"2 > 3": False})
    for name, quick, finding in (
        ("gblue_figure_4", True, right),
        ("gblue_figure_4", True, wrong),
        ("gblue_figure_5", True, wrong),
        ("gblue_figure_5", False, right),
    ):
        command.add(path, name, quick, finding, 1.0, 2.0)
    command.publish(tmp_path, tmp_path / "docs")
    text = (tmp_path / "docs" / "gblue.txt").read_text()
    assert "Figure 4: **disagrees** (quick run, 1 CPU s)" in text
    # The full run takes the place of the quick one.
    assert "Figure 5: **agrees** (full run, 1 CPU s)" in text


def test_a_figure_writes_its_picture_and_its_numbers(tmp_path, monkeypatch, capsys):
    given = ["--figure", "privpfc_figure_3_2", "--quick", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["reproduce", *given])
    command.main()
    assert "1.0891" in capsys.readouterr().out
    assert (tmp_path / "privpfc_figure_3_2.png").stat().st_size > 10_000
    assert pd.read_csv(tmp_path / "findings.csv")["verdict"].tolist() == ["agrees"]
