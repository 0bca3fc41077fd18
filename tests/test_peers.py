"""Comparison with other libraries: one job that runs, one that fails, and the tables of both."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

command = pytest.importorskip("benchmarks.peers.__main__")
from benchmarks.peers import _calling, _environments, _table, _tasks  # noqa: E402

PEERS = Path(command.__file__).parent
FAKE = """
import sys, time
sys.path.insert(0, {folder!r})
from _worker import main
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


def rows_of(name, tmp_path, timeout=600.0):
    """What is measured of a peer that is made up, in the environment of the tests."""
    worker = tmp_path / "work_fake.py"
    worker.write_text(FAKE.format(folder=str(PEERS)), encoding="utf-8")
    peer = _environments.Peer("fake", "fake", (), "fake", str(worker))
    place = _environments.Environment(Path(sys.executable), {})
    task = _tasks.Task(
        "noise",
        "seven",
        0.5,
        {"n": 7},
        lambda result: {"sum": float(result["released"].sum()), "n": result["n"]},
        {"nothing": {"sum": 0.0}},
    )
    methods = [_tasks.Method("fake", "noise", name, note="made up")]
    runs = {"fake": _calling.runner(peer, place)}
    found = command.measure(task, methods, runs, 2, timeout, tmp_path)
    return pd.DataFrame(found, columns=_table.COLUMNS)


def test_a_job_is_scored_and_a_peer_that_fails_or_hangs_gets_a_row(tmp_path):
    rows = rows_of("fake", tmp_path)
    own = rows[rows["peer"] == "fake"]
    assert own.loc[own["measure"] == "sum", "value"].tolist() == [3.5, 3.5]
    assert (own["status"] == "ok").all() and (own["peak_mb"] > 5).all()
    rows = rows_of("broken", tmp_path)
    assert "FAILED: ValueError: no such mechanism" in _table.text(_table.summary(rows))
    rows = rows_of("slow", tmp_path, 3.0)
    assert rows.loc[rows["peer"] == "fake", "status"].tolist() == ["stopped after 3 s"]


def test_tables_of_the_documentation_have_a_column_for_each_setting(tmp_path):
    rows = []
    for epsilon in (0.1, 1.0):
        here = {"task": "k-means", "setting": "s", "epsilon": epsilon, "peer": "p", "method": "m"}
        here |= {"delta": 0.0, "note": "as it comes"}
        for run, value in enumerate((1.0, 3.0)):
            rows += _table.result_rows(here, {"e": value}, {"cpu": epsilon, "peak_mb": 9.0}, run)
    rows.append(_table.failed({**here, "method": "n", "delta": 1e-9}, "out of memory", 0))
    facts = {"peer": "p", "version": "1", "installed_mb": 1234.4, "packages": 3, "imports": False}
    facts |= {"import_error": "ImportError: gone (from there)", "scikit_learn": "", "note": ""}
    facts |= {"import_cpu": 1.0, "import_mb": 10.0}
    _table.write(tmp_path, pd.DataFrame(rows, columns=_table.COLUMNS), [facts])
    _table.publish(tmp_path, tmp_path / "docs")
    table = pd.read_csv(tmp_path / "docs" / "kmeans.csv", dtype=str).set_index("Method")
    assert table.loc["m", ["epsilon 0.1", "epsilon 1"]].tolist() == ["2 ± 1", "2 ± 1"]
    assert table.loc["n", ["epsilon 0.1", "epsilon 1"]].tolist() == ["not run", "out of memory"]
    (fact,) = pd.read_csv(tmp_path / "docs" / "facts.csv", dtype=str).to_dict("records")
    assert fact["Import"] == "fails: ImportError: gone"


def test_every_method_has_a_peer_and_a_worker_and_versions_are_exact():
    for method in _tasks.METHODS:
        worker = PEERS / str(_environments.PEERS[method.peer].worker)
        name = method.name.lower() if method.peer == "SmartNoise" else method.name
        name = name.removesuffix(", sampled")
        assert f'"{name}"' in worker.read_text().replace(f"{method.task}/", "")
    for peer in _environments.PEERS.values():
        if peer.package not in ("", "skdp"):
            assert all("==" in each for each in peer.requirements)
