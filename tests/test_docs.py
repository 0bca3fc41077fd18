"""The documentation is complete and its examples run."""

import doctest
import importlib.util
import inspect
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from estimators import public_estimators
from loops import over

import skdp

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GUIDE = DOCS / "user_guide"
SHARED = ["Neighbours.", "Unit of privacy."]
OWN = ["What is public.", "What is released.", "What it costs.", "Differences from the paper."]
BUILT = {"_build", "api", "auto_examples"}


def sources():
    pages = sorted(DOCS.rglob("*.rst"))
    return [page for page in pages if not BUILT & set(page.relative_to(DOCS).parts)]


def statements(page):
    """What stands in bold at the beginning of a paragraph."""
    return re.findall(r"^\*\*([^*]+)\*\*", page.read_text(), re.MULTILINE)


def script(name):
    """A module of the docs folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"skdp_docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The API reference


def test_reference_has_a_page_of_every_public_name_and_every_method():
    api = script("_api")
    listed, pages = [name for _, _, names in api.sections() for name in names], api.pages()
    assert sorted(listed) == sorted(api.public_names())
    scores = {f"model_selection.{name}" for name in skdp.model_selection.__all__}
    assert {*skdp.__all__, *scores, "datacube.CubePlan"} <= set(listed)
    for name, thing in api.public_names().items():
        text = pages[f"skdp.{name}.rst"]
        assert (
            f".. auto{'class' if isinstance(thing, type) else 'function'}:: skdp.{name}\n" in text
        )
        assert f":obj:`~skdp.{name}`" in pages["index.rst"]
        assert f"\n   skdp.{name}\n" in pages["index.rst"]
        for method, member in inspect.getmembers(thing, inspect.isfunction):
            ours = member.__module__.startswith("skdp.") and method not in api._INHERITED
            if ours and not method.startswith("_"):
                assert f"skdp.{name}.{method}\n" in text, f"{name}.{method} has no docstring"


@over("estimator", public_estimators())
def test_every_estimator_is_explained_in_the_user_guide(estimator):
    role = re.compile(rf":class:`~?skdp\.(model_selection\.)?{estimator.__name__}`")
    pages = [page for page in GUIDE.glob("*.rst") if role.search(page.read_text())]
    assert pages
    if "epsilon" in inspect.signature(estimator).parameters:
        # It reads records itself: the theory of a page makes four statements, in this order.
        theory = [DOCS / "theory" / page.name for page in pages]
        said = [statements(path) for path in theory if path.exists()]
        assert OWN in [each[-4:] for each in said]


def test_theory_is_apart_from_the_guide_and_linked_from_it():
    # The index makes two statements for all.
    assert statements(DOCS / "theory" / "index.rst") == SHARED
    pages = {page.name for page in (DOCS / "theory").glob("*.rst")} - {"index.rst"}
    assert len(pages) > 10
    for name in pages:
        assert f":doc:`/theory/{name.removesuffix('.rst')}`" in (GUIDE / name).read_text(), name
        assert f"\n   {name.removesuffix('.rst')}\n" in (DOCS / "theory" / "index.rst").read_text()


# What is claimed is pinned


def test_tests_that_the_corrections_name_exist():
    named = re.findall(r"``(tests/[\w/]+\.py)::(\w+)``", (DOCS / "corrections.rst").read_text())
    assert len(named) > 30
    for file, test in named:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE), test


# Pictures


def test_every_picture_of_a_page_has_a_text_for_those_who_cannot_see_it():
    text = "\n".join(page.read_text() for page in sources())
    alts = re.findall(r"^ +:alt: (.*)$", text, re.M)
    assert len(alts) == len(re.findall(r"^ *\.\. (?:image|figure)::", text, re.M))
    # Light and dark, and for phones: a picture of `docs/_gallery.py`.
    alts += re.findall(r"^\.\. picture:: \S+\n\n   (.*)", text, re.M)
    alts += re.findall(r'<img[^>]*alt="([^"]*)"', (ROOT / "README.md").read_text())
    assert len(alts) > 20 and all(len(alt.split()) >= 4 for alt in alts)


def test_pictures_of_the_first_pages_can_be_drawn_again(tmp_path):
    script("draw").main(tmp_path)
    drawn = {picture.name for picture in tmp_path.iterdir()}
    # Screenshots of the page that the first lines of the README write, after a few clicks.
    drawn |= {"page-light.png", "page-dark.png"}
    assert drawn == {picture.name for picture in (DOCS / "_static").glob("*.png")}
    assert max(picture.stat().st_size for picture in (DOCS / "_static").glob("*.png")) < 150_000


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


@pytest.mark.filterwarnings(r"ignore::DeprecationWarning:dask\..*")
@pytest.mark.filterwarnings(r"ignore::FutureWarning:dask\..*")
@pytest.mark.parametrize("page", sources(), ids=lambda page: str(page.relative_to(DOCS)))
def test_examples_of_the_page_run(page):
    for library in ("imblearn", "duckdb", "dask.dataframe"):
        if f"import {library}" in page.read_text() or f"from {library}" in page.read_text():
            pytest.importorskip(library)
    assert run_examples(page.name, page.read_text()).failed == 0


def test_examples_can_fail(capsys):
    assert run_examples("fine", ">>> (1.5, 'a')  # doctest: +NOISY\n(-2e-7, 'a')\n").failed == 0
    assert run_examples("text", ">>> (1.5, 'a')  # doctest: +NOISY\n(1.5, 'b')\n").failed == 1


def test_the_readme_and_the_landing_page_run_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", readme, re.M | re.S)
    exec(compile(code, "README", "exec"), {})
    interval = r"([\d,]+) \[([\d,]+), ([\d,]+)\]"
    assert re.fullmatch(interval, capsys.readouterr().out.strip())
    assert list(pd.read_csv("synthetic.csv"))[1:] == ["age", "sex", "pay"]
    # The people are made with a seed, so that everybody sees this truth.
    people = pd.read_csv("people.csv")
    truth = len(people.query("age < 40 and sex == 'F'"))
    assert f"here {truth:,}" in readme
    _, low, high = (int(each.replace(",", "")) for each in re.search(interval, code).groups())
    assert low < truth < high and skdp.Synopsis.load("people.skdp").epsilon == 1
    people.replace({"F": "Female", "M": "Male"}).to_csv("people.csv", index=False)
    landing_page, names = (DOCS / "index.rst").read_text(), {}
    block = re.search(r"^\.\. code-block:: python\n\n(.*?)^\S", landing_page, re.M | re.S)
    exec(compile(inspect.cleandoc(block[1]), "landing page", "exec"), names)
    assert names["ledger"].spent == 1 and list(names["synthetic"]) == ["age", "sex", "pay"]


@over("name", ["publish", "train", "officer"])
def test_notebooks_are_run_small_and_linked(name):
    file = DOCS / "notebooks" / f"{name}.ipynb"
    code = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs and not [each for each in outputs if each["output_type"] == "error"]
    assert file.stat().st_size < 30_000
    assert f"(docs/notebooks/{name}.ipynb)" in (ROOT / "README.md").read_text()
    assert f"<notebooks/{name}>" in (DOCS / "start.rst").read_text()


def test_links_between_files_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text()):
            assert "://" in target or (ROOT / target).exists(), (name, target)
