"""What the pages quote is what the file of figures says, and closed forms are as the file says."""

from __future__ import annotations

import json
import re
import sys

import pytest

numbers = pytest.importorskip("benchmarks.numbers")

DOCS = numbers.FILE.parent
FIGURES = numbers.read()
PEOPLE, MAPS = ("Small", "Numerical", "Adult"), ("MDSalary", "twitter")
BOXES = ("HDPView", "PrivTree", "kd-tree, two-step", "kd-tree, hierarchical", "grid, extended")


def errors(release, epsilon):
    return FIGURES["counting"]["figures"][f"{release}, epsilon {epsilon:g}"]["errors"]


def page(name):
    return " ".join((DOCS / f"{name}.rst").read_text(encoding="utf-8").split())


def test_every_section_says_how_and_when_it_was_measured():
    for name, section in FIGURES.items():
        assert section["command"].startswith("python -m benchmarks."), name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", section["date"]), name
        assert section["figures"], name
        # Older figures do not say which commit was measured, nor with how many fits.
        if "commit" in section or section["date"] > "2026-11-28":
            numbers.check_stamp(section)


def test_a_section_that_is_measured_again_says_which_commit_and_fits(monkeypatch, tmp_path):
    file = tmp_path / "numbers.json"
    file.write_text(json.dumps(FIGURES))
    monkeypatch.setattr(numbers, "FILE", file)
    monkeypatch.setattr(numbers, "cubes", lambda: {"base": 1.0})
    monkeypatch.setattr(sys, "argv", ["numbers", "--measure", "cubes"])
    stamp = {"commit": "f" * 40, "date": "2026-11-29"}
    monkeypatch.setattr(numbers, "stamp", lambda: stamp)
    numbers.main()
    section = json.loads(file.read_text())["cubes"]
    assert stamp.items() <= section.items()
    assert (section["fits"], section["figures"]) == (0, {"base": 1.0})
    monkeypatch.setattr(numbers, "stamp", lambda: stamp | {"commit": "f" * 40 + "+"})
    with pytest.raises(ValueError, match="without changes"):
        numbers.main()


def test_tables_of_the_pages_are_those_of_the_file(tmp_path):
    numbers.publish(FIGURES, tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    shown = {path.name: path.read_text() for path in numbers.FOLDER.iterdir()}
    assert written == shown


def test_every_table_of_figures_is_on_a_page():
    for table in numbers.FOLDER.iterdir():
        assert f"_static/numbers/{table.name}" in page("choose") + page("results"), table.name


def test_noise_of_plain_bins_is_as_the_file_says():
    plain = FIGURES["one_column"]["figures"]["plain bins"]
    # Twice the length times the variance of discrete Laplace noise, nearly one at epsilon 0.1.
    assert plain == {str(n): round(2 * n * 0.9992) for n in (1, 16, 256, 2_048)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:RangeTreeHistogram released a total")
def test_closed_forms_are_as_the_file_says():
    assert numbers.cubes() == FIGURES["cubes"]["figures"]
    assert numbers.one_column() == FIGURES["one_column"]["figures"]


def test_sentences_of_the_page_on_choosing():
    text = page("choose")
    plans = FIGURES["cubes"]["figures"]
    assert f"{plans['base']} if the table" in text and f'{plans["bmax"]} with "bmax"' in text
    assert f"{plans['auto']} with the default" in text


def test_plans_of_cubes_in_the_guide_are_those_of_the_file():
    source = (DOCS / "user_guide" / "cubes.rst").read_text(encoding="utf-8")
    for plan, error in FIGURES["cubes"]["figures"].items():
        assert re.search(rf"^{plan} +max +{error:.1f} ", source, re.MULTILINE), plan


def test_measuring_counts_takes_refusals_as_missing(monkeypatch):
    data = pytest.importorskip("benchmarks._data")
    import numpy as np
    import pandas as pd

    from skdp import Domain, Numeric

    sizes = {"a": 3_000, "b": 3_000}
    rows = pd.DataFrame({"a": np.arange(50), "b": np.arange(50)})
    queries = np.array([[0, 0, 9, 1, 0, 9], [0, 5, 40, 1, 0, 2_999]])
    codes, ones = rows.to_numpy(np.int32), np.ones(50, dtype=np.int64)
    table = data.RangeTable(codes, ones, (3_000, 3_000), ("a", "b"), queries)
    domain = Domain({name: Numeric(0, size - 1, integer=True) for name, size in sizes.items()})
    monkeypatch.setattr(numbers, "TABLES", {"one": "One"})
    monkeypatch.setattr(numbers, "problem", lambda _: (table, domain, rows))
    monkeypatch.setattr(numbers, "hdpview_table", lambda _: table)
    found = numbers.counting(["kd-tree, two-step", "grid, extended"], (50.0,), 1)
    assert found["kd-tree, two-step, epsilon 50"]["errors"] == {"One": None}
    assert 0 <= found["grid, extended, epsilon 50"]["errors"]["One"] < 50
