"""The figures of the five works: all are listed, judged by rules, published, and one is drawn."""

import json
from pathlib import Path

import pandas as pd
import pytest

reproduce = pytest.importorskip("benchmarks.reproduce")
pytest.importorskip("matplotlib")
command = pytest.importorskip("benchmarks.reproduce.__main__")
claims = pytest.importorskip("benchmarks.reproduce.claims")


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


def test_a_figure_writes_its_picture_and_its_numbers(tmp_path, monkeypatch, capsys):
    given = ["--figure", "privpfc_figure_3_2", "--quick", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["reproduce", *given])
    command.main()
    assert "1 of 1 figures" in capsys.readouterr().out
    assert (tmp_path / "privpfc_figure_3_2.png").stat().st_size > 10_000
    found = json.loads((tmp_path / "privpfc_figure_3_2.json").read_text())
    assert found["verdict"] == "agrees" and "1.0891" in found["found"]
