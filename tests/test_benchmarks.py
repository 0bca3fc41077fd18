"""What benchmarks share: the list of data files, and scores."""

import hashlib

import numpy as np
import pandas as pd
import pytest

import skdp
from benchmarks import _data, data, house, scores, standins


def test_the_list_of_files_is_complete():
    files = data.listed()
    assert len(files) > 20
    for name, facts in files.items():
        assert {"content", "source", "licence", "sha256", "use"} <= set(facts), name
        assert facts["use"] in ("tune", "check")
        assert len(facts["sha256"]) == 64
    assert {facts["use"] for facts in files.values()} == {"tune", "check"}


def test_a_file_is_present_missing_or_different(tmp_path):
    content = b"a,b\n1,2\n"
    digest = hashlib.sha256(content).hexdigest()
    assert data.state("table.csv", digest, tmp_path) == "missing"
    (tmp_path / "table.csv").write_bytes(content)
    assert data.state("table.csv", digest, tmp_path) == "present"
    assert data.state("table.csv", "0" * 64, tmp_path) == "different"


def test_stand_ins_have_the_format_of_the_data(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "stand-ins"
    names = standins.write(folder)
    assert set(names) == set(data.listed())
    assert standins.write(folder) == []  # all are there
    monkeypatch.setattr(_data, "ROOT", folder)
    _data._warn_of_stand_ins.cache_clear()
    assert not _data.available()
    for name in _data.HDPVIEW_TABLES:
        table = _data.hdpview_table(name)
        assert table.codes.max(axis=0).tolist() < list(table.shape)
        assert table.true_answers().max() <= table.counts.sum()
    assert len(_data.dpbench_1d()) == 5
    assert _data.frame("adult").shape == (2_000, 15)
    assert _data.item_frequencies("retail").min() >= 1
    assert _data.kmeans_set("s1_privkmeans")["X"].shape == (2_000, 2)
    assert _data.nltcs()[0].shape[1] == 16
    assert capsys.readouterr().err.count("the figures below mean nothing") == 1
    _data.write_json(tmp_path / "out.json", "one", {})
    assert '"data": "generated stand-ins"' in (tmp_path / "out.json").read_text()
    assert data.report() == 0 and "generated stand-ins" in capsys.readouterr().out


def test_stand_ins_do_not_mix_with_data(tmp_path):
    (tmp_path / "adult.csv.gz").write_bytes(b"")
    with pytest.raises(FileExistsError, match="Name an empty folder"):
        standins.write(tmp_path)


def test_a_missing_file_is_named_with_its_source(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_data, "ROOT", tmp_path / "nothing")
    with pytest.raises(SystemExit, match=r"needs the data file nltcs.npz.*--stand-ins FOLDER"):
        _data.nltcs()
    assert data.report() == 0
    said = capsys.readouterr().out
    assert said.count("missing    ") == len(data.listed()) and "OpenML 1489" in said


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    size = rng.normal(size=2_000)
    return pd.DataFrame(
        {
            "size": size,
            "price": size + 0.3 * rng.normal(size=2_000),
            "colour": rng.choice(["red", "green", "blue"], 2_000),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, 2_000), "D"),
        }
    )


def test_equal_tables_have_no_distance(table):
    shuffled = table.sample(frac=1.0, random_state=0)
    left, right, shape = scores.joint_codes(table, shuffled)
    assert shape == (17, 17, 3, 17)
    for order in (1, 2, 3):
        assert scores.total_variation(left, right, shape, order) == 0.0
    assert scores.k_marginal(left, right, shape) == 1000.0
    assert scores.spearman_difference(table, shuffled) < 1e-12


def test_disjoint_tables_have_all_of_it():
    left = pd.DataFrame({"a": ["x", "y"], "b": ["u", None]})
    right = pd.DataFrame({"a": ["z", "z"], "b": ["v", "v"]})
    codes = scores.joint_codes(left, right)
    assert scores.total_variation(*codes, order=1) == 1.0
    assert scores.k_marginal(*codes) == 0.0


def test_a_distance_by_hand():
    left = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    right = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    assert scores.total_variation(left, right, (2, 2), order=1) == 0.0
    assert scores.total_variation(left, right, (2, 2), order=2) == 0.5


def test_shuffled_columns_lose_their_rank_correlation_and_are_observed(table):
    rng = np.random.default_rng(1)
    apart = table.apply(lambda column: rng.permutation(column.to_numpy()))
    assert scores.spearman_difference(table, apart) > 0.7
    assert scores.observer_auc(table, apart) > 0.8
    assert 0.4 < scores.observer_auc(table[:1_000], table[1_000:]) < 0.6


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
