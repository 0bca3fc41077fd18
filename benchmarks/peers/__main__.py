"""Run this library and others at the same tasks: same data, public bounds and epsilon.

Makes an environment for each peer (outside the repository, kept for the next time), runs every
method of `_tasks.METHODS` in a process of its own, and prints accuracy, CPU seconds of the release
(first call, all threads), peak memory of the process, installed size and what imports. A peer that
fails or takes too long gets a row that says so. ``--quick`` takes one run of fewer settings;
``--peer`` and ``--task`` take some of them. ``--out docs/_static/peers`` puts what was measured
among what is there, and writes the tables of the documentation.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.peers import _environments, _table, _tasks


def measure(
    task: _tasks.Task, methods: list[_tasks.Method], n_runs: int, timeout: float
) -> list[dict[str, Any]]:
    """Rows of all runs of all methods at a task; what fails once is not tried again."""
    rows: list[dict[str, Any]] = []
    here = {"task": task.name, "setting": task.setting, "epsilon": task.epsilon}
    for name, scores in task.baselines.items():
        where = {**here, "peer": "no privacy", "method": name, "delta": 0.0, "note": ""}
        rows += _table.result_rows(where, scores, {}, 0)
    for method in methods:
        where = {**here, "peer": method.peer, "method": method.name}
        where |= {"delta": method.delta, "note": method.note}
        job = {"task": task.name, "method": method.name, "epsilon": task.epsilon}
        job["delta"] = method.delta
        for run in range(n_runs):
            try:
                answer = _environments.ask(
                    _environments.PEERS[method.peer], job, task.data, timeout
                )
                rows += _table.result_rows(where, task.score(answer), answer, run)
            except subprocess.TimeoutExpired:
                rows.append(_table.failed(where, f"stopped after {timeout:.0f} s", run))
                break
            except Exception as error:
                rows.append(_table.failed(where, f"{type(error).__name__}: {error}"[:200], run))
                break
    return rows


def main() -> None:
    """Make the environments, run everything, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one run, fewer settings")
    parser.add_argument("--out", type=Path, help="folder of all.csv and the tables of the pages")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of a run")
    parser.add_argument("--peer", action="append", choices=list(_environments.PEERS))
    parser.add_argument("--task", action="append", choices=["none", *_TASK_NAMES])
    options = parser.parse_args()
    facts = []
    for peer in (*_environments.PEERS.values(), _environments.CURRENT):
        if not options.peer or peer.name in options.peer:
            print(f"environment of {peer.name}", flush=True)
            environment = _environments.make(peer)
            if environment.error:
                print(f"could not be made: {environment.error}", flush=True)
            else:
                facts.append(environment.facts)
    print(pd.DataFrame(facts).to_string(index=False), flush=True)
    here = [each["peer"] for each in facts]
    rows: list[dict[str, Any]] = []
    for task in _tasks.tasks(options.quick, options.task or _TASK_NAMES):
        methods = [m for m in _tasks.METHODS if m.task == task.name and m.peer in here]
        found = measure(task, methods, 1 if options.quick else 3, options.timeout)
        rows += found
        print(_table.summary(found).to_string(index=False), flush=True)
    if options.out is not None:
        _table.write(options.out, rows, facts)


_TASK_NAMES = list(dict.fromkeys(method.task for method in _tasks.METHODS))


if __name__ == "__main__":
    main()
