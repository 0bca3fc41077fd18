"""The list of figures of the five works, how their findings are judged, and their tables."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

reproduce = pytest.importorskip("benchmarks.reproduce")
pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")
command = pytest.importorskip("benchmarks.reproduce.__main__")
claims = pytest.importorskip("benchmarks.reproduce.claims")
TIE, UNTESTED = reproduce.TIE, reproduce.UNTESTED


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
        ([True, TIE], "agrees in part"),
        ([True, UNTESTED], "agrees in part"),
        ([False, False], "disagrees"),
        ([False, TIE], "disagrees"),
        ([TIE, TIE], "tie"),
        ([TIE, UNTESTED], "tie"),
        ([UNTESTED], "not comparable"),
        ([np.True_, np.bool_(False)], "agrees in part"),
    ],
)
def test_the_rules_decide_the_verdict(held, verdict):
    finding = reproduce.Finding("it is so.", "3 and 4.", dict(zip("ab", held, strict=False)))
    assert finding.verdict == verdict
    said = held[0] if isinstance(held[0], str) else "yes" if held[0] else "no"
    assert f"a: {said}" in finding.rules
    assert verdict in str(finding)


def test_a_finding_without_a_rule_says_why():
    with pytest.raises(ValueError, match="Without a check"):
        reproduce.Finding("it is so.", "it is.", {})
    with pytest.raises(ValueError, match="Without a check"):
        reproduce.Finding("it is so.", "it is.", {"a": True}, "there are no data")
    with pytest.raises(ValueError, match="must be a bool, TIE or UNTESTED"):
        reproduce.Finding("it is so.", "it is.", {"a": "perhaps"})
    finding = reproduce.Finding("it is so.", "it is.", {}, "there are no data")
    assert finding.verdict == "not comparable" and finding.rules == "there are no data"


def test_a_difference_within_two_standard_errors_is_a_tie():
    assert reproduce.compare(0.3, 0.1) is True
    assert reproduce.compare(-0.3, 0.1) is False
    assert reproduce.compare(0.19, 0.1) == reproduce.compare(-0.19, 0.1) == TIE


def test_verdicts_of_one_experiment():
    assert command.together(["agrees", "agrees", "not comparable"]) == "agrees"
    assert command.together(["agrees", "tie"]) == "agrees in part"
    assert command.together(["disagrees", "tie"]) == "disagrees"
    assert command.together(["tie", "tie"]) == "tie"
    assert command.together(["not comparable"]) == "not comparable"


def test_every_figure_has_words_of_its_work_or_none_on_purpose():
    names = set(command.figures())
    assert set(claims.QUOTES) == names
    assert {name for name, words in claims.QUOTES.items() if not words} == {
        "cubes_time_parts",
        "hdpview_table_3",
    }
    grouped = [name for drawn in claims.EXPERIMENTS.values() for name in drawn]
    assert len(grouped) == len(set(grouped)) and set(grouped) <= names
    assert claims.experiment("svt_figure_5_9") == claims.experiment("svt_table_5_6")
    assert claims.experiment("privpfc_figure_3_2") == "privpfc_figure_3_2"


def test_selections_that_all_fail_say_nothing_on_their_order():
    """Figure 5.9 of the dissertation: an order of methods needs cells in which they differ."""
    svt = pytest.importorskip("benchmarks.reproduce.svt")

    def table(errors):
        rows = [
            {"set": "a", "c": c, "setting": "interactive", "method": method, "measure": "ser"}
            | {"mean": error, "std": 0.01, "runs": 100}
            for c in (25, 50, 100)
            for method, error in errors.items()
        ]
        return pd.DataFrame(rows)

    names = ("DPBook", "S 1:1", "S 1:3", "S 1:c", "S 1:c^2/3", "ours")
    for errors, verdict in (
        ((0.99, 0.985, 0.98, 0.96, 0.95, 0.5), "tie"),
        ((0.9, 0.7, 0.5, 0.3, 0.2, 0.1), "agrees"),
        ((0.9, 0.7, 0.2, 0.3, 0.5, 0.1), "agrees in part"),
        ((0.1, 0.2, 0.3, 0.7, 0.8, 0.1), "disagrees"),
    ):
        found = svt._finding(table(dict(zip(names, errors, strict=True))), "interactive", ["ser"])
        assert found.verdict == verdict, errors


def test_findings_are_replaced_by_later_ones_and_published_by_work(tmp_path):
    path = tmp_path / "out" / "findings.csv"
    path.parent.mkdir()
    first = reproduce.Finding("sweeps take longer.", "9 and 3.", {"9 > 3": True})
    other = reproduce.Finding("sweeps take longer.", "2 * 3 | 3.", {"2 > 3": False})
    command.add(path, "gblue_figure_4", True, first, 1.0, 2.0)
    command.add(path, "gblue_figure_4", True, other, 1.0, 2.0)
    command.add(path, "gblue_figure_5", True, first, 1.0, 2.0)
    command.add(path, "gblue_figure_5", False, first, 61.0, 70.0)
    command.add(path, "dpcube_figures_9_and_10", False, first, 5.0, 5.0)
    for name in ("svt_figure_5_9", "svt_figure_5_10"):
        command.add(path, name, True, first, 5.0, 5.0)
    table = pd.read_csv(path)
    assert list(table.columns) == command.COLUMNS
    assert len(table) == 6
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 255, (900, 900, 3), dtype=np.uint8))
    noise.save(path.parent / "gblue_figure_5.png")
    docs = tmp_path / "docs"
    command.publish(path.parent, docs)
    (picture,) = docs.glob("*.png")
    assert max(Image.open(picture).size) == 640
    shown = (docs / "pictures.txt").read_text()
    assert shown.count(".. figure::") == 1 and "GBLUE figure 5: agrees" in shown
    gblue = (docs / "gblue.txt").read_text()
    assert "Figure 4: **disagrees** (quick run, 1 CPU s)" in gblue
    # The full run takes the place of the quick one.
    assert "Figure 5: **agrees** (full run, 61 CPU s)" in gblue
    assert "*Here.* 2 \\* 3 \\| 3." in gblue
    totals = pd.read_csv(docs / "summary.csv", index_col="work")
    assert totals.loc["GBLUE"].tolist() == [2, 2, 1, 0, 1, 0, 0]
    # Two drawings, one experiment.
    assert totals.loc["all"].tolist() == [5, 4, 3, 0, 1, 0, 0]
    verdicts = pd.read_csv(docs / "verdicts.csv").set_index("Figure")
    assert verdicts.loc["figure 5.9, 5.10", "Verdict"] == "**agrees**"
    assert "2 > 3: no" in verdicts.loc["figure 4", "Its parts here"]
    assert "Figure 5.9: " in (docs / "svt.txt").read_text()
    assert "Figures 9 and 10: " in (docs / "dpcube.txt").read_text()
    # Later findings take the place of those that are published; the others stay.
    later = tmp_path / "later"
    later.mkdir()
    command.add(later / "findings.csv", "gblue_figure_4", False, first, 1.0, 2.0)
    command.publish(later, docs)
    assert "Figure 4: **agrees** (full run" in (docs / "gblue.txt").read_text()
    assert pd.read_csv(docs / "summary.csv", index_col="work").loc["GBLUE"].tolist()[2] == 2
    assert picture.exists()


def test_findings_of_the_documentation_are_those_of_the_figures():
    folder = Path(__file__).parent.parent / "docs" / "_static" / "reproduction"
    found = pd.read_csv(folder / "findings.csv")
    assert sorted(found["figure"]) == sorted(command.figures())
    assert set(found["verdict"]) <= set(command.VERDICTS)
    for picture in folder.glob("*.png"):
        assert picture.stat().st_size < 60_000, picture.name


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
