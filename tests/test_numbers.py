"""What the pages quote is what the file of figures says, and closed forms are as the file says."""

import re

import pytest

numbers = pytest.importorskip("benchmarks.numbers")

DOCS = numbers.FILE.parent
FIGURES = numbers.read()


def test_every_section_says_how_and_when_it_was_measured():
    for name, section in FIGURES.items():
        assert section["command"].startswith("python -m benchmarks."), name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", section["date"]), name
        assert section["figures"], name
        # Older figures do not say which commit was measured, nor with how many fits.
        if "commit" in section or section["date"] > "2026-11-28":
            numbers.check_stamp(section)


def test_tables_of_the_pages_are_those_of_the_file(tmp_path):
    numbers.publish(FIGURES, tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in numbers.FOLDER.iterdir()}


def test_every_table_of_figures_is_on_a_page():
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.rst"))
    for table in numbers.FOLDER.iterdir():
        assert f"_static/numbers/{table.name}" in pages, table.name


def test_figures_in_sentences_are_those_of_the_file():
    for section in (each for each in FIGURES.values() if "quoted" in each):
        for name, figures in section["figures"].items():
            text = " ".join((DOCS / f"{name}.rst").read_text(encoding="utf-8").split())
            assert all(figure in text for figure in figures), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:RangeTreeHistogram released a total")
def test_closed_forms_are_as_the_file_says():
    assert numbers.cubes() == FIGURES["cubes"]["figures"]
    assert numbers.one_column() == FIGURES["one_column"]["figures"]
