"""What benchmarks share: the list of data files, and scores."""

import skdp
from benchmarks import data, house


def test_the_list_of_files_is_complete():
    files = data.listed()
    assert len(files) > 20
    for name, facts in files.items():
        assert {"content", "source", "licence", "sha256", "use"} <= set(facts), name
        assert facts["use"] in ("tune", "check")
        assert len(facts["sha256"]) == 64
    assert {facts["use"] for facts in files.values()} == {"tune", "check"}


def test_figures_of_the_house_are_counted(tmp_path, monkeypatch):
    package = tmp_path / "skdp"
    package.mkdir()
    (package / "__init__.py").write_text('"""Names."""\n\nfrom .a import b\n')
    (package / "a.py").write_text(
        '"""A."""\n\n# One.\n_B, C = 1, 2.5\n\ndef f():\n    from . import b\n'
    )
    (package / "b.py").write_text("from .c import d\n\nclass Tuning:\n    share: float = 0.5\n")
    (package / "c.py").write_text("from skdp import a\nd = 3\n")
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "PACKAGE", package)
    _, *found = house.modules()
    assert [house.code_lines(each) for each in found] == [3, 3, 2]
    assert [house.numbers(each) for each in found] == [2, 1, 0]
    graph = house.importers(found)
    assert graph == {"skdp.a": {"skdp.c"}, "skdp.b": {"skdp.a"}, "skdp.c": {"skdp.b"}}
    assert house.circles(graph) == [["skdp.a", "skdp.b", "skdp.c"]]
    assert house.circles({"skdp.a": {"skdp.b"}, "skdp.b": set()}) == []


def test_the_way_of_a_call_is_counted():
    domain = skdp.Domain({"age": skdp.Numeric(0, 99)})
    files, functions = house.entered(domain.to_json)
    assert files >= 1
    assert files <= functions < 50
    assert house.entered(dict) == (0, 0)
