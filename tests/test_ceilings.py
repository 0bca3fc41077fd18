"""How much there is to own: figures of `benchmarks/house.py`, and ceilings of `layers.toml`."""

import pytest

from benchmarks import house

FOUND = {"code lines of skdp": 100, "files of skdp": 10}


def test_nothing_is_above_its_ceiling_and_ceilings_fall():
    assert not house.faults(house.sizes(), house.ceilings())


@pytest.mark.parametrize(
    ("most", "said"),
    [
        ({"code lines of skdp": 99, "files of skdp": 10}, "100 is above the ceiling of 99"),
        ({"code lines of skdp": 104, "files of skdp": 10}, "over 2% below the ceiling of 104"),
        ({"code lines of skdp": 100}, "files of skdp has no ceiling"),
        ({**FOUND, "pages": 3}, "pages has a ceiling in layers.toml, and nothing measures it"),
    ],
)
def test_ceilings_refuse(most, said):
    (fault,) = house.faults(FOUND, most)
    assert said in fault


def test_ceilings_accept():
    assert not house.faults(FOUND, FOUND)
    assert not house.faults(FOUND, {"code lines of skdp": 102, "files of skdp": 10})


def test_code_lines_are_those_with_code(tmp_path, monkeypatch):
    path = tmp_path / "some.py"
    path.write_text('"""Two\nlines."""\n\n# A comment.\nx = (\n    1,\n)\n', encoding="utf-8")
    monkeypatch.setattr(house, "ROOT", tmp_path)
    assert house.code_lines(house.Module.read(path)) == 3


def test_lowering_never_raises_a_ceiling(tmp_path, monkeypatch):
    path = tmp_path / "layers.toml"
    path.write_text('[ceilings]\n"files of skdp" = 12\n"words" = 5\n', encoding="utf-8")
    monkeypatch.setattr(house, "LAYERS", path)
    monkeypatch.setattr(house, "sizes", lambda: {"files of skdp": 10, "words": 7})
    house.lower()
    assert house.ceilings() == {"files of skdp": 10, "words": 5}
