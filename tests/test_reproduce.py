"""The list of figures of the five works, how their findings are judged, and their tables."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

reproduce = pytest.importorskip("benchmarks.reproduce")
pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")
command = pytest.importorskip("benchmarks.reproduce.__main__")


def numbers(name):
    """The numbers of the figures or tables that a name covers: "figures_9_and_10", "3_to_5"."""
    kind, text = re.fullmatch(r"[a-z]+_(figure|table)s?_(.+)", name).groups()
    if "_to_" in text:
        first, last = text.split("_to_")
        return kind, [str(n) for n in range(int(first), int(last) + 1)]
    if "_and_" in text:
        return kind, text.split("_and_")
    return kind, [text.replace("_", ".")]


def drawn(work, kind):
    return [
        number
        for name in command.figures()
        if name.startswith(work + "_") and numbers(name)[0] == kind
        for number in numbers(name)[1]
    ]


def span(first, last, chapter=None):
    return [f"{chapter}.{n}" if chapter else str(n) for n in range(first, last + 1)]


@pytest.mark.parametrize(
    "work, kind, expected",
    [
        ("dpcube", "figure", span(3, 16)),
        ("gblue", "figure", span(4, 5)),
        ("hdpview", "figure", span(3, 13)),
        ("hdpview", "table", span(2, 4)),
        ("privpfc", "figure", span(2, 12, 3)),
        ("kmeans", "figure", span(1, 8, 4)),
        ("kmeans", "table", span(3, 5, 4)),
        ("svt", "figure", span(9, 16, 5)),
        ("svt", "table", span(3, 6, 5)),
    ],
)
def test_every_figure_and_table_of_the_works_is_listed_once(work, kind, expected):
    found = drawn(work, kind)
    assert sorted(found) == sorted(expected)


def test_names_begin_with_the_module_so_that_no_two_works_share_a_file():
    for module, work in command.WORKS.items():
        mine = [name for name, (of, _) in command.figures().items() if of == work]
        assert mine and all(name.startswith(f"{module}_") for name in mine)


def test_the_slides_on_cubes_are_all_there():
    names = {name for name in command.figures() if name.startswith("cubes_")}
    parts = {"dimensions", "cuboids", "cardinalities", "time", "time_parts"}
    assert names == {f"cubes_{part}" for part in parts}


def test_names_are_those_of_their_works():
    for name, (work, draw) in command.figures().items():
        module = name.split("_")[0]
        assert command.WORKS[module] == work
        assert callable(draw)


@pytest.mark.parametrize(
    "held, verdict",
    [
        ([True, True], "agrees"),
        ([True, False], "agrees in part"),
        ([False, False], "disagrees"),
    ],
)
def test_the_rules_decide_the_verdict(held, verdict):
    finding = reproduce.Finding("it is so.", "3 and 4.", dict(zip("ab", held, strict=True)))
    assert finding.verdict == verdict
    assert f"a: {'yes' if held[0] else 'no'}" in finding.rules
    assert verdict in str(finding)


def test_a_finding_without_a_rule_is_refused():
    with pytest.raises(ValueError, match="without a check"):
        reproduce.Finding("it is so.", "it is.", {})


def test_findings_are_replaced_by_later_ones_and_published_by_work(tmp_path):
    path = tmp_path / "findings.csv"
    first = reproduce.Finding("sweeps take longer.", "9 and 3.", {"9 > 3": True})
    other = reproduce.Finding("sweeps take longer.", "2 * 3 | 3.", {"2 > 3": False})
    command.add(path, "gblue_figure_4", True, first, 1.0, 2.0)
    command.add(path, "gblue_figure_4", True, other, 1.0, 2.0)
    command.add(path, "gblue_figure_5", True, first, 1.0, 2.0)
    command.add(path, "gblue_figure_5", False, first, 61.0, 70.0)
    command.add(path, "dpcube_figures_9_and_10", False, first, 5.0, 5.0)
    command.add(path, "svt_figure_5_9", True, first, 5.0, 5.0)
    table = pd.read_csv(path)
    assert list(table.columns) == command.COLUMNS
    assert len(table) == 5
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8))
    noise.save(tmp_path / "gblue_figure_5.png")
    command.publish(path, tmp_path / "docs")
    (picture,) = (tmp_path / "docs").glob("*.png")
    assert picture.stat().st_size < (tmp_path / "gblue_figure_5.png").stat().st_size
    gblue = (tmp_path / "docs" / "gblue.txt").read_text()
    assert "Figure 4: **disagrees** (quick run, 1 CPU s)" in gblue
    # The full run takes the place of the quick one.
    assert "Figure 5: **agrees** (full run, 61 CPU s)" in gblue
    assert "*Here.* 2 \\* 3 \\| 3." in gblue and "*Rules.* 2 > 3: no." in gblue
    totals = pd.read_csv(tmp_path / "docs" / "summary.csv", index_col="work")
    assert totals.loc["GBLUE"].tolist() == [2, 1, 0, 1, 1]
    assert totals.loc["all"].tolist() == [4, 3, 0, 1, 2]
    assert "Figure 5.9: " in (tmp_path / "docs" / "svt.txt").read_text()
    assert "Figures 9 and 10: " in (tmp_path / "docs" / "dpcube.txt").read_text()


def test_a_figure_writes_its_picture_and_its_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv",
        ["reproduce", "--figure", "privpfc_figure_3_2", "--quick", "--out", str(tmp_path)],
    )
    command.main()
    assert "1.0891" in capsys.readouterr().out
    assert (tmp_path / "privpfc_figure_3_2.png").stat().st_size > 10_000
    findings = pd.read_csv(tmp_path / "findings.csv")
    assert findings["verdict"].tolist() == ["agrees"]
