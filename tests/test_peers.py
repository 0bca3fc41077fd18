"""Comparison with other libraries: jobs, failures and tables, with peers made up for the test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest

command = pytest.importorskip("benchmarks.peers.__main__")
from benchmarks.peers import _calling, _environments, _inference, _table, _tasks  # noqa: E402

PEERS = Path(command.__file__).parent
FAKE = """
import json, sys, time
sys.path.insert(0, {folder!r})
from _worker import answers_from_rows, answers_from_tables, main
import numpy as np

def noise(data, job, clock):
    with clock:
        values = np.ones(int(data["n"]))
    return {{"n": len(values), "released": values * job["epsilon"]}}

def broken(data, job, clock):
    raise ValueError("no such mechanism")

def slow(data, job, clock):
    time.sleep(60)

main({{"noise/fake": noise, "noise/broken": broken, "noise/slow": slow}})
"""


@pytest.fixture
def environment(tmp_path):
    """The environment of the tests in the place of a peer's, and a peer that runs in it."""
    worker = tmp_path / "work_fake.py"
    worker.write_text(FAKE.format(folder=str(PEERS)), encoding="utf-8")
    peer = _environments.Peer("fake", "fake", (), "fake", str(worker))
    return peer, _environments.Environment(Path(sys.executable), {})


def rows_of(environment, names, tmp_path, timeout=600.0):
    peer, place = environment
    methods = [_tasks.Method("fake", "noise", name, note="made up") for name in names]
    task = _tasks.Task(
        "noise",
        "seven",
        0.5,
        {"n": 7},
        lambda result: {"sum": float(result["released"].sum()), "n": result["n"]},
        {"nothing": {"sum": 0.0}},
    )
    runs = {"fake": _calling.runner(peer, place)}
    return command.measure(task, methods, runs, 2, timeout, tmp_path)


def test_a_job_goes_to_the_peer_and_its_result_is_scored(environment, tmp_path):
    rows = pd.DataFrame(rows_of(environment, ["fake"], tmp_path), columns=_table.COLUMNS)
    own = rows[rows["peer"] == "fake"]
    assert len(own) == 4  # two runs of two measures
    assert own.loc[own["measure"] == "sum", "value"].tolist() == [3.5, 3.5]
    assert (own["status"] == "ok").all()
    assert (own["cpu_s"] >= 0).all() and (own["peak_mb"] > 5).all()
    assert rows.loc[rows["peer"] == "no privacy", "value"].tolist() == [0.0]


def test_a_peer_that_fails_gets_a_row_and_stops_nobody(environment, tmp_path):
    rows = rows_of(environment, ["broken", "fake"], tmp_path)
    failed = [row for row in rows if row["status"] != "ok"]
    assert len(failed) == 1 and "no such mechanism" in failed[0]["status"]
    assert sum(row["method"] == "fake" for row in rows) == 4
    frame = pd.DataFrame(rows, columns=_table.COLUMNS)
    text = _table.text(_table.summary(frame))
    assert "FAILED: ValueError: no such mechanism" in text
    assert "sum 3.5" in text


@pytest.mark.parametrize(
    "text, reason",
    [
        ("Traceback:\n  File x\nValueError: no\n", "ValueError: no"),
        ('a.b.OddException: \n  Failed("spent")\n")\n")\n', 'a.b.OddException: Failed("spent")'),
        ("Segmentation fault\n", "Segmentation fault"),
        ("", ""),
    ],
)
def test_the_reason_is_the_line_that_names_the_error(text, reason):
    assert _calling.reason_of(text) == reason


def test_a_peer_that_takes_too_long_is_stopped(environment, tmp_path):
    (row,) = [r for r in rows_of(environment, ["slow"], tmp_path, 3.0) if r["peer"] == "fake"]
    assert row["status"] == "stopped after 3 s"


def test_an_environment_that_cannot_be_made_says_why(tmp_path, monkeypatch):
    def refuse(command, **given):
        raise subprocess.CalledProcessError(1, command, stderr="\nERROR: no such distribution\n")

    monkeypatch.setattr(_environments.subprocess, "run", refuse)
    peer = _environments.Peer("fake", "fake", ("fake==1",), "fake")
    made = _environments.make(peer, tmp_path)
    assert made.error == "ERROR: no such distribution"
    with pytest.raises(RuntimeError, match="could not be made"):
        _calling.fails(made)({}, 1.0)


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    calls = []

    def run(command, **given):
        calls.append(command)
        folder = next(part for part in command if str(tmp_path) in part)
        python = Path(folder) if folder.endswith("python") else Path(folder) / "bin" / "python"
        site = python.parents[1] / "lib" / "python3.12" / "site-packages" / "fake"
        site.mkdir(parents=True, exist_ok=True)
        (site / "__init__.py").write_bytes(b"x" * 2_000_000)
        (site.parent / "pip").mkdir(exist_ok=True)
        (site.parent / "pip" / "big.py").write_bytes(b"x" * 9_000_000)
        listed = [{"name": "fake", "version": "1.5"}, {"name": "pip", "version": "24"}]
        found = {"imports": True, "import_error": None, "import_cpu": 0.5, "import_mb": 90.0}
        text = json.dumps(listed if "list" in command else found)
        return subprocess.CompletedProcess(command, 0, stdout=text, stderr="")

    monkeypatch.setattr(_environments.subprocess, "run", run)
    peer = _environments.Peer("fake", "fake", ("fake==1.5",), "fake")
    first = _environments.make(peer, tmp_path)
    assert first.error is None
    assert first.facts["version"] == "1.5" and first.facts["packages"] == 1
    assert first.facts["installed_mb"] == 2.0  # pip came with the environment
    number = len(calls)
    assert _environments.make(peer, tmp_path) == first
    assert len(calls) == number
    assert "2 MB" in _table.fact_table([first.facts])


def test_facts_of_peers_that_do_not_install_or_import():
    facts = {"peer": "b", "version": "2", "installed_mb": 10.0, "packages": 3, "imports": False}
    facts |= {"import_error": "ImportError: gone", "scikit_learn": "1.9"}
    text = _table.fact_table([{"peer": "a", "error": "no wheel"}, facts])
    assert "not installed: no wheel" in text
    assert "FAILS" in text and "ImportError: gone" in text


def test_results_and_facts_are_written(tmp_path):
    where = {"task": "t", "setting": "s", "epsilon": 1.0, "peer": "p", "method": "m"}
    where |= {"delta": 1e-9, "note": ""}
    rows = _table.result_rows(where, {"error": 2.0}, {"cpu": 1.5, "peak_mb": 10.0}, 0)
    rows += _table.result_rows(where, {"error": 4.0}, {"cpu": 1.0, "peak_mb": 12.0}, 1)
    frame = pd.DataFrame(rows, columns=_table.COLUMNS)
    (line,) = _table.summary(frame).to_dict("records")
    assert (line["value"], line["runs"], line["cpu_s"], line["peak_mb"]) == (3.0, 2, 1.0, 12.0)
    assert "delta 1e-09" in _table.text(_table.summary(frame))
    _table.write(tmp_path, frame, [{"peer": "p"}])
    assert len(pd.read_csv(tmp_path / "peers.csv")) == 2
    assert len(pd.read_csv(tmp_path / "peers_facts.csv")) == 1


def test_tables_of_the_documentation_have_a_column_for_each_setting(tmp_path):
    rows = []
    for epsilon in (0.1, 1.0):
        here = {"task": "k-means", "setting": "s", "epsilon": epsilon, "peer": "p", "method": "m"}
        here |= {"delta": 0.0, "note": "as it comes"}
        for run, value in enumerate((1.0, 3.0)):
            rows += _table.result_rows(here, {"e": value}, {"cpu": epsilon, "peak_mb": 9.0}, run)
    rows.append(_table.failed({**here, "method": "n", "delta": 1e-9}, "out of memory", 0))
    where = {**here, "task": "conduct", "setting": "one fit"}
    rows += _table.result_rows(where, {"folds that ran": 5.0}, {}, 0)
    facts = {"peer": "p", "version": "1", "installed_mb": 1234.4, "packages": 3, "imports": False}
    facts |= {"import_error": "ImportError: gone (from there)", "scikit_learn": "", "note": ""}
    facts |= {"import_cpu": 1.0, "import_mb": 10.0}
    _table.write(tmp_path, pd.DataFrame(rows, columns=_table.COLUMNS), [facts])
    _table.publish(tmp_path, tmp_path / "docs")
    table = pd.read_csv(tmp_path / "docs" / "kmeans.csv", dtype=str).set_index("Method")
    assert table.loc["m", ["epsilon 0.1", "epsilon 1"]].tolist() == ["2 ± 1", "2 ± 1"]
    assert table.loc["m", "CPU s, most"] == "1.00"
    assert table.loc["n", ["epsilon 0.1", "epsilon 1"]].tolist() == ["not run", "out of memory"]
    assert table["Privacy"].tolist() == ["pure", "delta 1e-09"]
    conduct = pd.read_csv(tmp_path / "docs" / "conduct.csv", index_col=0)
    assert conduct.loc["folds that ran", "p"] == 5
    (fact,) = pd.read_csv(tmp_path / "docs" / "facts.csv", dtype=str).to_dict("records")
    assert fact["Installed MB"] == "1,234" and fact["scikit-learn"] == "not used"
    assert fact["Import"] == "fails: ImportError: gone"


def test_inference_is_published_side_by_side(tmp_path):
    rows = []
    for peer, value in (("skdp", 0.25), ("mbi", 0.125)):
        here = {"task": "inference", "setting": "a tree", "epsilon": 1.0, "peer": peer}
        here |= {"method": "m", "delta": 0.0, "note": ""}
        rows += _table.result_rows(here, {"measured": value}, {"cpu": 1.0, "peak_mb": 9.0}, 0)
    rows.append(_table.failed({**here, "setting": "loops"}, "stopped after 3 s", 0))
    facts = {"peer": "p", "version": "1", "installed_mb": 1.0, "packages": 3, "imports": True}
    facts |= {"import_error": "", "scikit_learn": "", "note": "", "import_cpu": 1, "import_mb": 1}
    _table.write(tmp_path, pd.DataFrame(rows, columns=_table.COLUMNS), [facts])
    _table.publish(tmp_path, tmp_path / "docs")
    table = pd.read_csv(tmp_path / "docs" / "inference.csv").set_index("Tables")
    assert table.loc["a tree", "skdp: measured"] == "0.25"
    assert table.loc["a tree", "mbi: MB"] == "9"
    assert table.loc["loops", "mbi: failed"] == "stopped after 3 s"


def test_noisy_tables_of_a_problem_are_as_far_off_as_their_noise(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    from _worker import noisy_tables, sets_of

    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 4000)
    codes = np.stack([first, first % 2, rng.integers(0, 2, 4000), first], axis=1)
    shape = (3, 2, 2, 3)
    for kind in _inference.KINDS:
        problem = _inference._problem("made up", codes, shape, kind, 1000.0)
        sets, tables = sets_of(problem.data["sets"]), noisy_tables(problem.data)
        for axes, table in zip(sets, tables, strict=True):
            exact = np.zeros([shape[axis] for axis in axes])
            np.add.at(exact, tuple(codes[:, axis] for axis in axes), 1)
            np.testing.assert_allclose(table, exact, atol=3)
        assert sets[:4] == [(0,), (1,), (2,), (3,)] and (0, 3) in sets or kind == "triples"
        asked = sets_of(problem.data["asked"])
        true = [
            np.bincount(
                np.ravel_multi_index(codes[:, axes].T, [shape[a] for a in axes]),
                minlength=np.prod([shape[a] for a in axes]),
            )
            for axes in map(list, asked)
        ]
        found = problem.score({"tables": np.concatenate(true), "cpu": 1.0, "answering": 2.0})
        assert found["measured"] == 0 and found["CPU s of the answers"] == 2.0


def test_every_method_has_a_peer_and_a_worker_that_knows_it():
    for method in _tasks.METHODS:
        worker = PEERS / str(_environments.PEERS[method.peer].worker)
        name = method.name.lower() if method.peer == "SmartNoise" else method.name
        name = name.removesuffix(", sampled")
        assert f'"{name}"' in worker.read_text().replace(f"{method.task}/", "")


def test_versions_of_other_libraries_are_exact_and_found_by_the_name_of_the_package():
    others = [peer for peer in _environments.PEERS.values() if peer.package not in ("", "skdp")]
    for peer in others:
        assert all("==" in each for each in peer.requirements)
        # pip's list of what is installed is read with names in lower case
        assert peer.requirements[0].split("==")[0].split("[")[0].lower() == peer.package


def test_datasynthesizer_is_given_the_declared_values_and_fresh_seeds(monkeypatch):
    """Its default seed is 0: with it, all noise would be known in advance."""
    calls = []

    class Describer:
        def describe_dataset_in_correlated_attribute_mode(self, records, **given):
            domain = json.loads(Path(given["categorical_attribute_domain_file"]).read_text())
            calls.append({**given, "domain": domain, "records": pd.read_csv(records)})

        def save_dataset_description_to_file(self, model):
            print("not on the standard output, which is for the answer")

    class Generator:
        def generate_dataset_in_correlated_attribute_mode(self, n, model, seed):
            calls.append({"seed": seed})
            self.synthetic_dataset = calls[-2]["records"][["c1", "c0"]]

    package = ModuleType("DataSynthesizer")
    package.DataDescriber = SimpleNamespace(DataDescriber=Describer)
    inner = {"DataGenerator": {"DataGenerator": Generator}, "lib": {"PrivBayes": SimpleNamespace()}}
    monkeypatch.setitem(sys.modules, "DataSynthesizer", package)
    for name, contents in inner.items():
        module = ModuleType(f"DataSynthesizer.{name}")
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.syspath_prepend(str(PEERS))
    import _worker
    import work_datasynthesizer as worker

    codes = np.array([[0, 2], [1, 0], [1, 2]])
    for _ in range(2):
        found = worker.rows_of(codes, np.array([2, 4]), 0.5, 1, _worker.Clock())
        assert found.tolist() == codes.tolist()  # columns in their own order
    assert len({call["seed"] for call in calls}) == 4
    assert calls[0]["domain"] == {"c0": [0, 1], "c1": [0, 1, 2, 3]}
    assert calls[0]["epsilon"] == 0.5 and calls[0]["k"] == 1
    assert calls[0]["attribute_to_is_categorical"] == {"c0": True, "c1": True}


def test_ranges_are_counted_on_rows_and_on_tables_alike(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    import _worker

    rng = np.random.default_rng(0)
    shape = np.array([4, 3, 5])
    codes = np.column_stack([rng.integers(0, size, 200) for size in shape])
    queries = np.array([[0, 1, 2, 2, 0, 3], [1, 0, 0, 2, 4, 4], [0, 0, 3, 1, 0, 2]])
    answers = _worker.answers_from_rows(codes, shape, queries)
    for (a, first, last, b, start, stop), answer in zip(queries.tolist(), answers, strict=True):
        inside = (codes[:, a] >= first) & (codes[:, a] <= last)
        inside &= (codes[:, b] >= start) & (codes[:, b] <= stop)
        assert answer == inside.sum()
    assert answers[-1] == 200
