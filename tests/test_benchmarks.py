"""Data files, scores, the figures of the house, and the programs of other libraries."""

import skdp
from benchmarks import data, house


def test_every_file_says_what_it_is_and_where_it_is_from():
    files = data.listed()
    assert {*data.SOURCES} <= {*files}
    for name, facts in files.items():
        assert {"content", "source", "licence", "sha256", "use"} <= set(facts), name
        assert facts["use"] in ("tune", "check") and len(facts["sha256"]) == 64


def test_figures_of_the_house_are_counted(tmp_path, monkeypatch):
    package = tmp_path / "skdp"
    package.mkdir()
    for name, text in {
        "__init__": '"""Names."""\n\nfrom .a import b\n',
        "a": '"""A."""\n\n# One.\n_B, C = 1, 2.5\n\ndef f():\n    from . import b\n',
        "b": "from .c import d\n\nclass Tuning:\n    share: float = 0.5\n",
        "c": "from skdp import a\nd = 3\n",
    }.items():
        (package / f"{name}.py").write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr(house, "ROOT", tmp_path)
        patch.setattr(house, "PACKAGE", package)
        _, *found = house.modules()
        assert [house.code_lines(each) for each in found] == [3, 3, 2]
    assert [house.numbers(each) for each in found] == [2, 1, 0]
    graph = house.importers(found)
    assert graph == {"skdp.a": {"skdp.c"}, "skdp.b": {"skdp.a"}, "skdp.c": {"skdp.b"}}
    # The way of a call.
    files, functions = house.entered(skdp.Domain({"age": skdp.Numeric(0, 99)}).to_json)
    assert 1 <= files <= functions < 50
    assert house.entered(dict) == (0, 0)
