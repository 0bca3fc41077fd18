"""Pickles and files of version 0.1.0 still load, and answer what they did.

`old_releases` holds a fitted estimator of each kind as a pickle, the file of its release where it
has one, what both answered then, and every name that pickles of that version mention.
"""

import importlib
import json
import pickle
from pathlib import Path

import pytest

import skdp

OLD = Path(__file__).with_name("old_releases")
EXPECTED = json.loads((OLD / "expected.json").read_text())


def answers(synopsis):
    try:
        result = synopsis.count(None, return_interval=True)
    except ValueError as error:
        return str(error)
    return [result.value, result.std, result.lower, result.upper, result.guarantee]


def approximately(found):
    # The last bit of a logarithm may differ between versions of NumPy.
    return [pytest.approx(part) if isinstance(part, float) else part for part in found]


@pytest.mark.parametrize("name", json.loads((OLD / "names.json").read_text()))
def test_names_in_pickles_are_found(name):
    module, _, attribute = name.partition(":")
    assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", EXPECTED)
def test_pickles_load(name):
    fitted = pickle.loads((OLD / f"{name}.pkl").read_bytes())
    assert type(fitted).__name__ == name.partition("-")[0]
    assert repr(fitted) and float(fitted.privacy_loss_.epsilon) in (1, 50)
    if "synopsis" in EXPECTED[name]:
        assert repr(fitted.synopsis_) == EXPECTED[name]["synopsis"]
        found, expected = answers(fitted.synopsis_), EXPECTED[name]["interval"]
        assert found == (expected if isinstance(expected, str) else approximately(expected))
        assert len(fitted.synopsis_.sample(20, random_state=0)) == 20
    # What was loaded can be written again.
    assert type(pickle.loads(pickle.dumps(fitted))) is type(fitted)


@pytest.mark.parametrize("path", sorted(OLD.glob("*.release")), ids=lambda path: path.stem)
def test_files_load(path, tmp_path):
    if path.stem == "DataCube":
        cube = skdp.DataCube.load(path)
        cube.save(tmp_path / "again")
        assert cube.to_frame().shape[0] > 1
    else:
        synopsis = skdp.Synopsis.load(path)
        found, expected = answers(synopsis), EXPECTED[path.stem]["interval"]
        assert found == (expected if isinstance(expected, str) else approximately(expected))
        synopsis.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
