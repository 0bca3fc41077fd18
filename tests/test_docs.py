"""The documentation is complete and its examples run."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from docutils.core import publish_doctree
from sklearn.base import BaseEstimator

import skdp

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GUIDE = DOCS / "user_guide"
STATEMENTS = [
    "Neighbours.",
    "Unit of privacy.",
    "What is public.",
    "What is released.",
    "What it costs.",
    "What the paper did differently, and why we do not.",
]
BUILT = {"_build", "api", "auto_examples"}


def sources():
    pages = sorted(DOCS.rglob("*.rst"))
    return [page for page in pages if not BUILT & set(page.relative_to(DOCS).parts)]


def theory_of(page):
    """The text of the theory of a page of the guide, in a list; empty if it has none."""
    path = DOCS / "theory" / page.name
    return [path.read_text()] if page.parent == GUIDE and path.exists() else []


def script(name):
    """A module of the docs folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"skdp_docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def api():
    return script("_api")


# The API reference


def test_reference_lists_exactly_the_public_names(api):
    listed = [name for _, _, names in api.sections() for name in names]
    assert sorted(listed) == sorted(api.public_names())
    scores = {f"model_selection.{name}" for name in skdp.model_selection.__all__}
    assert {*skdp.__all__, *scores, "datacube.CubePlan"} <= set(listed)


def test_every_public_name_has_a_page_that_the_index_links(api):
    pages = api.pages()
    for name, thing in api.public_names().items():
        kind = "autoclass" if isinstance(thing, type) else "autofunction"
        assert f".. {kind}:: skdp.{name}\n" in pages[f"skdp.{name}.rst"]
        assert f":obj:`~skdp.{name}`" in pages["index.rst"]
        assert f"\n   skdp.{name}\n" in pages["index.rst"]


def test_reference_of_a_class_lists_every_public_method(api):
    pages = api.pages()
    for name, thing in api.public_names().items():
        for method, member in inspect.getmembers(thing, inspect.isfunction):
            ours = member.__module__.startswith("skdp.") and method not in api._INHERITED
            if ours and not method.startswith("_"):
                text = pages[f"skdp.{name}.rst"]
                assert f"skdp.{name}.{method}\n" in text, f"{name}.{method} has no docstring"


def test_a_name_without_a_section_is_an_error(api, monkeypatch):
    monkeypatch.delitem(api.SECTIONS, "The public domain")
    with pytest.raises(LookupError, match="has no section"):
        api.sections()


def test_writing_the_reference_removes_what_an_earlier_build_left(api, tmp_path):
    stale = tmp_path / "api" / "skdp.Gone.rst"
    stale.parent.mkdir()
    stale.write_text("old")
    api.write(tmp_path / "api")
    assert {page.name for page in stale.parent.iterdir()} == set(api.pages())


# Every estimator is explained


def estimators():
    homes = (skdp, skdp.model_selection)
    things = [getattr(home, name) for home in homes for name in home.__all__]
    return [t for t in things if inspect.isclass(t) and issubclass(t, BaseEstimator)]


@pytest.mark.parametrize("estimator", estimators(), ids=lambda cls: cls.__name__)
def test_every_estimator_is_explained_in_the_user_guide(estimator):
    role = re.compile(rf":class:`~?skdp\.(model_selection\.)?{estimator.__name__}`")
    pages = [page.read_text() for page in GUIDE.glob("*.rst") if role.search(page.read_text())]
    assert pages
    if "epsilon" in inspect.signature(estimator).parameters:
        # It reads records itself: the theory of its page makes the six statements, in this order.
        theory = [
            each
            for path in GUIDE.glob("*.rst")
            if role.search(path.read_text())
            for each in theory_of(path)
        ]
        found = [re.findall(r"^\*\*([^*]+)\*\*", page, re.MULTILINE) for page in theory]
        assert STATEMENTS in found


# What is claimed is pinned


def test_tests_that_the_corrections_name_exist():
    named = re.findall(r"``(tests/[\w/]+\.py)::(\w+)``", (DOCS / "corrections.rst").read_text())
    assert len(named) > 30
    for file, test in named:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE), test


def test_every_work_is_cited_and_every_citation_is_a_work():
    works = re.findall(r"^@\w+\{(\w+),", (DOCS / "references.bib").read_text(), re.MULTILINE)
    cited = [
        key
        for page in sources()
        for keys in re.findall(r":cite:[pt]:`([^`]+)`", page.read_text())
        for key in keys.split(",")
    ]
    assert len(works) == len(set(works))
    assert set(works) == set(cited)


# Pictures


def test_every_picture_of_a_page_has_a_text_for_those_who_cannot_see_it():
    directive = re.compile(r"^\.\. (?:image|figure):: (\S+)\n((?:   .*\n)*)", re.MULTILINE)
    seen = 0
    for page in sources():
        for name, options in directive.findall(page.read_text()):
            alt = re.search(r"^   :alt: (.*)$", options, re.MULTILINE)
            assert alt and len(alt[1].split()) >= 4, f"{page.name}: {name}"
            seen += 1
        # Light and dark, and for phones: a picture of `docs/_gallery.py`.
        for name, alt in re.findall(r"^\.\. picture:: (\S+)\n\n   (.*)", page.read_text(), re.M):
            assert len(alt.split()) >= 4, f"{page.name}: {name}"
            for ink in ("light", "dark"):
                assert (DOCS / "_static" / f"{name}-{ink}.png").is_file(), name
            seen += 1
    assert seen >= 20
    readme = re.findall(r'<img[^>]*alt="([^"]*)"', (ROOT / "README.md").read_text())
    assert readme and all(len(alt.split()) >= 4 for alt in readme)


@pytest.mark.parametrize(
    "name",
    "start user_guide/declaring user_guide/marginals user_guide/queries user_guide/pipeline_trap "
    "user_guide/kmeans user_guide/cubes user_guide/range_trees user_guide/sparse_vector "
    "user_guide/quality user_guide/private_pipelines user_guide/choosing_epsilon "
    "user_guide/error_bars user_guide/expected_error".split(),
)
def test_the_page_of_a_task_begins_with_code_and_a_picture(name):
    text = (DOCS / f"{name}.rst").read_text()
    picture = re.search(r"^\.\. (image|figure|picture)::", text, re.M)
    assert 0 < text.index("\n>>> ") < 1_500
    assert picture and picture.start() < 4_000


def test_pictures_of_the_first_pages_can_be_drawn_again(tmp_path):
    script("draw").main(tmp_path)
    drawn = {picture.name for picture in tmp_path.iterdir()}
    # Screenshots of the page that the first lines of the README write, after a few clicks.
    drawn |= {"page-light.png", "page-dark.png"}
    assert drawn == {picture.name for picture in (DOCS / "_static").glob("*.png")}
    assert max(picture.stat().st_size for picture in (DOCS / "_static").glob("*.png")) < 150_000


def test_every_example_is_in_a_section_of_the_gallery():
    gallery = script("_gallery")
    listed = [name for section in gallery.SECTIONS.values() for name in section]
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    assert set(gallery.PANELS) <= set(listed)
    assert min(listed, key=gallery.in_order) == "quickstart"


# Tables


def parsed(text):
    """The document of a text in reStructuredText, with its tables as the site shows them."""
    document = publish_doctree(text)
    script("_tables").arrange(None, document)
    return document


def test_cells_of_numbers_are_told_from_words():
    is_number = script("_tables").is_number
    for text in ("3,404", "202.3 ± 11", "0.11, 0.5", "11.6 / 9.4", "< 0.01", "delta 1e-10", "5 s"):
        assert is_number(text), text
    for text in ("", "refused", "1 in 1,000", "Adult (15), 3", "a", "two-step"):
        assert not is_number(text), text


def test_remarks_of_wide_tables_are_below_them():
    head = ".. csv-table::\n   :header-rows: 1\n\n   A,B,C,D,E,F,G,Note\n"
    shown = parsed(head + f"   x,y,z,1,{'long ' * 9},3,4,first\n   x,y,z,1,2,3,4,\n").astext()
    assert "Note" not in shown and "failed b" in shown
    assert shown.split("a first")[1].split() == ["b", *["long"] * 9]
    narrow = ".. csv-table::\n   :header-rows: 1\n\n   A,B,Note\n   x,1,first\n"
    assert "Note" in parsed(narrow).astext()


def test_stacked_tables_repeat_their_headings():
    rows = "   * - what\n     - use\n   * - a\n     - b\n   * - c\n     -\n"
    table = ".. list-table::\n   :class: stack\n{}\n" + rows
    assert parsed(table.format("   :header-rows: 1\n")).astext().count("use: ") == 1
    assert "use: " not in parsed(table.format("")).astext()


def test_neighbouring_headings_that_begin_alike_are_grouped():
    rows = ".. csv-table::\n   :header-rows: 1\n\n   "
    document = parsed(rows + "name,error: eps 0.1,error: eps 1,time\n   x,1 ± 0.2,2 ± 0.1,3\n")
    heads = next(iter(document.findall(lambda node: node.tagname == "thead")))
    assert [[entry.astext() for entry in row] for row in heads] == [
        ["name", "error", "time"],
        ["eps 0.1", "eps 1"],
    ]
    assert [entry.get("morecols") for entry in heads[0]] == [None, 1, None]
    assert [entry.get("morerows") for entry in heads[0]] == [1, None, 1]

    def of_whole(node):
        return "whole" in getattr(node, "attributes", {}).get("classes", [])

    # A number may be divided before its error, and nowhere else.
    whole = [node.astext() for node in document.findall(of_whole)]
    assert whole == ["1", "± 0.2", "2", "± 0.1"]
    apart = parsed(rows + "name,error: eps 0.1,time: eps 1\n   x,1,2\n")
    assert "error: eps 0.1" in apart.astext()


# The check of the built site


def test_site_check_finds_what_is_broken(tmp_path, capsys):
    check = script("check_site")
    assert check.main([str(tmp_path)]) == 1  # nothing was built
    good = '<h1 id="top">A</h1><a href="b.html#here">b</a><a href="https://example.org">c</a>'
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "b.html").write_text('<p id="here"><a href="./#top">a</a>')
    (tmp_path / "index.html").write_text(good + '<img src="b.html" alt="two squares">')
    assert check.main([str(tmp_path)]) == 0
    pictures = '<img src="sphx_glr_plot_cube_001.png" alt="plot cube"><img src="b.html">'
    (tmp_path / "a.html").write_text(
        '<a href="gone.html">x</a><a href="b.html#up">y</a>' + pictures
    )
    capsys.readouterr()
    assert check.main([str(tmp_path)]) == 1
    found = capsys.readouterr().out
    for problem in ("at gone.html", "as b.html#up", "'plot cube'", "cube_001.png\n", "is None"):
        assert problem in found
    assert found.endswith("5 problems\n")


# Examples

# In the docs, `# doctest: +NOISY` (which the built pages do not show) marks output that is drawn:
# everything but the numbers must be as printed.
NOISY = doctest.register_optionflag("NOISY")
NUMBER = re.compile(r"-?\d+(\.\d*)?(e[+-]?\d+)?")


class Checker(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        if optionflags & NOISY:
            want, got = ("".join(NUMBER.sub("#", text).split()) for text in (want, got))
        return super().check_output(want, got, optionflags)


def run_examples(name, text):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(checker=Checker(), optionflags=flags)
    return runner.run(doctest.DocTestParser().get_doctest(text, {}, name, name, 0))


# Pages of the theory whose examples need those of the guide are run behind them.
CONTINUED = "The examples go on where those of that page end."


@pytest.mark.filterwarnings(r"ignore::DeprecationWarning:dask\..*")
@pytest.mark.filterwarnings(r"ignore::FutureWarning:dask\..*")
@pytest.mark.parametrize(
    "page",
    [page for page in sources() if CONTINUED not in page.read_text()],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_examples_of_the_page_run(page):
    for library in ("imblearn", "duckdb", "dask.dataframe"):
        if f"import {library}" in page.read_text() or f"from {library}" in page.read_text():
            pytest.importorskip(library)
    text = "\n\n".join(
        [page.read_text(), *(theory for theory in theory_of(page) if CONTINUED in theory)]
    )
    assert run_examples(page.name, text).failed == 0


@pytest.mark.slow
def test_spark_example_runs(capsys):
    sql = pytest.importorskip("pyspark.sql")
    sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    page = (GUIDE / "engines.rst").read_text()
    block = re.search(r"^\.\. code-block:: python\n\n(.*?)^\S", page, re.M | re.S)
    names = {}
    for example in doctest.DocTestParser().get_examples(page.split("One engine after")[0]):
        exec(example.source, names)
    exec(inspect.cleandoc(block[1]), names)
    # 20,000 rows, of which about a third; the noise is far smaller than 500.
    assert abs(float(capsys.readouterr().out) - 3_200) < 500


def test_examples_can_fail(capsys):
    assert run_examples("fine", ">>> (1.5, 'a')  # doctest: +NOISY\n(-2e-7, 'a')\n").failed == 0
    assert run_examples("text", ">>> (1.5, 'a')  # doctest: +NOISY\n(1.5, 'b')\n").failed == 1
    assert run_examples("size", ">>> [1, 2]  # doctest: +NOISY\n[1]\n").failed == 1
    assert run_examples("number", ">>> 1 + 1\n3\n").failed == 1


def test_theory_is_apart_from_the_guide_and_linked_from_it():
    pages = {page.name for page in (DOCS / "theory").glob("*.rst")} - {"index.rst"}
    assert len(pages) > 14
    for name in pages:
        assert f":doc:`/theory/{name.removesuffix('.rst')}`" in (GUIDE / name).read_text(), name
        assert f"\n   {name.removesuffix('.rst')}\n" in (DOCS / "theory" / "index.rst").read_text()
    for page in GUIDE.glob("*.rst"):
        assert not re.search(
            r"^(The six statements|Differences from .*)\n-+$", page.read_text(), re.M
        ), page


def test_pages_that_teach_have_examples():
    parser = doctest.DocTestParser()
    for page in (DOCS / "start.rst", GUIDE / "boxes.rst", GUIDE / "pipeline_trap.rst"):
        assert len(parser.get_examples(page.read_text())) >= 5, page.name


def python_of_readme():
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)


def python_of_landing_page():
    block = re.search(
        r"^\.\. code-block:: python\n\n(.*?)^\S", (DOCS / "index.rst").read_text(), re.M | re.S
    )
    return [inspect.cleandoc(block[1])]


@pytest.mark.parametrize("find", [python_of_readme, python_of_landing_page])
def test_first_lines_of_code_run(find, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 91, 2_000),
            "sex": rng.choice(["Female", "Male"], 2_000),
            "pay": rng.gamma(3, 15_000, 2_000),
        }
    )
    (code,) = find()
    names = {"people": people, "frame": people}
    exec(compile(code, find.__name__, "exec"), names)
    assert list(names["synthetic"].columns) == ["age", "sex", "pay"]
    assert names["ledger"].spent == 1
    saved = next(tmp_path.glob("*.skdp"))
    assert skdp.Synopsis.load(saved).domain == names["domain"]


def test_the_readme_shows_the_truth_and_a_bar_that_holds_it(tmp_path, monkeypatch):
    (code,) = python_of_readme()
    shown = re.search(r"^```text\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    low, high, truth = re.search(r"interval ([\d,.]+) to ([\d,.]+)\)\n(\d+)", shown).groups()
    assert float(low.replace(",", "")) < int(truth) < float(high.replace(",", ""))
    # The people are made with a seed, so that everybody sees this truth.
    names = {}
    exec(code[: code.index("# What is public")], names)
    question = re.search(r'^question = "(.*)"$', code, re.M)[1]
    assert len(names["people"].query(question)) == int(truth)


@pytest.mark.parametrize("name", ["publish", "train", "officer"])
def test_notebooks_are_run_small_and_linked(name):
    file = DOCS / "notebooks" / f"{name}.ipynb"
    cells = json.loads(file.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs and not [each for each in outputs if each["output_type"] == "error"]
    assert file.stat().st_size < 30_000
    assert f"(docs/notebooks/{name}.ipynb)" in (ROOT / "README.md").read_text()
    assert f"<notebooks/{name}.ipynb>" in (DOCS / "index.rst").read_text()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_between_files_lead_somewhere(name):
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text())
    for target in targets:
        if "://" not in target:
            assert (ROOT / target).exists(), target
