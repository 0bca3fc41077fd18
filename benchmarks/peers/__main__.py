"""Run this library and others at the same tasks: same data, public bounds and epsilon.

Makes an environment for each peer (outside the repository, kept for the next time), runs every
method of `_tasks.METHODS` in a process of its own, and prints accuracy, CPU seconds of the release
(first call, all threads), peak memory of the process, installed size and what imports. A peer that
fails or takes too long gets a row that says so. ``--quick`` takes one run of fewer settings;
``--peer`` and ``--task`` take some of them.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.peers import _environments, _table, _tasks
from benchmarks.peers._calling import Run, fails, runner


def measure(
    task: _tasks.Task,
    methods: list[_tasks.Method],
    runs: dict[str, Run],
    n_runs: int,
    timeout: float,
    folder: Path,
) -> list[dict[str, Any]]:
    """Rows of all runs of all methods at a task; what fails once is not tried again."""
    data = folder / "data.npz"
    np.savez(data, **task.data)
    rows: list[dict[str, Any]] = []
    here = {"task": task.name, "setting": task.setting, "epsilon": task.epsilon}
    for name, scores in task.baselines.items():
        where = {**here, "peer": "no privacy", "method": name, "delta": 0.0, "note": ""}
        rows += _table.result_rows(where, scores, {}, 0)
    for method in methods:
        where = {**here, "peer": method.peer, "method": method.name}
        where |= {"delta": method.delta, "note": method.note}
        out = folder / "out.npz"
        job = {"task": task.name, "method": method.name, "epsilon": task.epsilon}
        job |= {"delta": method.delta, "data": str(data), "out": str(out)}
        for run in range(n_runs):
            try:
                answer = runs[method.peer](job, timeout)
                with np.load(out) as file:
                    arrays = {key: file[key] for key in file.files}
                rows += _table.result_rows(where, task.score({**answer, **arrays}), answer, run)
            except subprocess.TimeoutExpired:
                rows.append(_table.failed(where, f"stopped after {timeout:.0f} s", run))
                break
            except RuntimeError as error:
                rows.append(_table.failed(where, str(error), run))
                break
            except Exception as error:
                rows.append(_table.failed(where, f"{type(error).__name__}: {error}"[:200], run))
                break
    return rows


def main() -> None:
    """Make the environments, run everything, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one run, fewer settings")
    parser.add_argument("--out", type=Path, help="folder for peers.csv and peers_facts.csv")
    parser.add_argument("--cache", type=Path, default=_environments.default_cache())
    parser.add_argument("--timeout", type=float, default=300, help="seconds of a run")
    parser.add_argument("--peer", action="append", choices=list(_environments.PEERS))
    parser.add_argument("--task", action="append", choices=["none", *_TASK_NAMES])
    parser.add_argument("--publish", type=Path, help="write the documentation's tables of --out")
    options = parser.parse_args()
    if options.publish:
        if options.out is None:
            parser.error("--publish needs --out, the folder that was written")
        _table.publish(options.out, options.publish)
        return
    facts, runs = [], {}
    for peer in (*_environments.PEERS.values(), _environments.CURRENT):
        if options.peer and peer.name not in options.peer:
            continue
        print(f"environment of {peer.name}", flush=True)
        environment = _environments.make(peer, options.cache)
        if peer.requirements:
            facts.append(environment.facts or {"peer": peer.name, "error": environment.error})
        if peer.worker:
            runs[peer.name] = fails(environment) if environment.error else runner(peer, environment)
    print(pd.DataFrame(facts).to_string(index=False), flush=True)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for task in _tasks.tasks(options.quick, options.task or _TASK_NAMES):
            methods = [m for m in _tasks.METHODS if m.task == task.name and m.peer in runs]
            n_runs = 1 if options.quick else 3
            found = measure(task, methods, runs, n_runs, options.timeout, Path(folder))
            rows += found
            print(_table.summary(_frame(found)).to_string(index=False), flush=True)
            if options.out is not None:
                _table.write(options.out, _frame(rows), facts)
    if options.out is not None:
        _table.write(options.out, _frame(rows), facts)


_TASK_NAMES = list(dict.fromkeys(method.task for method in _tasks.METHODS))


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=_table.COLUMNS)


if __name__ == "__main__":
    main()
