"""Data files, scores, the figures of the house, and the programs of other libraries."""

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np

import skdp
from benchmarks import _question_tables, data, fidelity, house
from benchmarks._fidelity_tables import subsample
from benchmarks.peers import _tasks
from benchmarks.peers._environments import PEERS

ROWS = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
    "Male, 2174, 0, 40, United-States, <=50K",
    "52, ?, 209642, HS-grad, 9, Married-civ-spouse, ?, Husband, Black, Male, 0, 3900, 45, ?, >50K",
)


def test_files_are_made_of_their_originals(tmp_path):
    originals = tmp_path / "originals"
    originals.mkdir()
    assert not data.build("adult.csv.gz", tmp_path)
    (originals / "adult.data").write_text(f"{ROWS[0]}\n\n")
    (originals / "adult.test").write_text(f"|1x3 Cross validator\n{ROWS[1]}.\n")
    (originals / "retail.dat").write_text("0 2 2\n2 7\n")
    np.save(originals / "gowalla_256_256.npy", np.diag([0, 2, 1, 0]))
    made = (
        "adult.csv.gz", "kmeans/adult_numeric.npz", "kmeans/checkin.npz", "hdpview/small.npz",
        "items/retail_freq.npy",
    )  # fmt: skip
    assert all(data.build(name, tmp_path) for name in made)
    lines = gzip.decompress((tmp_path / made[0]).read_bytes()).decode().splitlines()
    assert lines == [",".join(data.ADULT), *(row.replace(", ", ",") for row in ROWS)]
    with np.load(tmp_path / made[1]) as file:
        # An end of a bin belongs to the bin below: 3,900 is in the 78th.
        assert np.allclose(file["X"][:, 4], [-1, 2 * 77 / 99 - 1]) and file["n_clusters"] == 5
    with np.load(tmp_path / made[2]) as file:
        assert file["X"].tolist() == [[-0.25, -0.25], [-0.25, -0.25], [0.25, 0.25]]
    with np.load(tmp_path / made[3]) as file:
        assert file["codes"].tolist() == [[22, 1, 1, 2], [35, 0, 0, 0]]
    assert np.load(tmp_path / made[4]).tolist() == [1, 2, 1]
    once = {name: hashlib.sha256((tmp_path / name).read_bytes()).digest() for name in made}
    assert all(data.build(name, tmp_path) for name in made)
    assert once == {n: hashlib.sha256((tmp_path / n).read_bytes()).digest() for n in made}
    files = data.listed()
    assert {*data.SOURCES} <= {*files}
    for name, facts in files.items():
        assert {"content", "source", "licence", "sha256", "use"} <= set(facts), name
        assert facts["use"] in ("tune", "check") and len(facts["sha256"]) == 64


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


def test_the_way_of_a_call_is_counted():
    files, functions = house.entered(skdp.Domain({"age": skdp.Numeric(0, 99)}).to_json)
    assert 1 <= files <= functions < 50
    assert house.entered(dict) == (0, 0)


def test_every_method_of_a_peer_has_a_worker_and_versions_are_exact():
    for method in _tasks.METHODS:
        worker = Path(_tasks.__file__).parent / PEERS[method.peer].worker
        name = method.name.lower() if method.peer == "SmartNoise" else method.name
        name = name.removesuffix(", sampled")
        assert f'"{name}"' in worker.read_text().replace(f"{method.task}/", "")
    others = [peer for name, peer in PEERS.items() if name != "skdp"]
    assert all("==" in each for peer in others for each in peer.requirements)


def test_rows_of_a_release_score(tmp_path, monkeypatch):
    out = tmp_path / "results.json"
    table = subsample(_question_tables.skewed(), 1_500, 0)
    monkeypatch.setattr(fidelity, "load", lambda name: table)
    results = fidelity.main(["--runs", "2", "--epsilon", "100", "--out", str(out)])
    assert len(results) == 2 and min(each.value for each in results) > 800
    written = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert [each["value"] for each in written] == [each.value for each in results]
