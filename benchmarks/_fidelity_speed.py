"""Task of the fidelity benchmark on cost: CPU time and memory, each in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks._fidelity_releases import Unsupported, release
from benchmarks._fidelity_results import Options, Result, result_of
from benchmarks._fidelity_tables import load, stand_in

__all__ = ["speed"]

# CPU seconds of a fit and of 1e6 sampled rows, and megabytes at the peak.
_FIT = {("adult", 0.1): 1.5, ("adult", 8.0): 10.0, ("wide", 1.0): 60.0}
_EPSILONS = {"adult": (0.1, 8.0), "wide": (1.0,)}
_SAMPLE = {"adult": 2.0}
_MEMORY = {"wide": 4_000.0}
_SAMPLED = 1_000_000


def cost(method: str, name: str, epsilon: float, seed: int, small: bool) -> dict[str, float]:
    """CPU seconds of a fit and of a million synthetic rows, and the peak memory in MB."""
    table = load(name, small)
    begin = time.process_time()
    made = release(method, table, epsilon, seed)
    fit = time.process_time() - begin
    peak = _peak()
    found = {"fit, CPU s": fit, "peak of the fit, MB": peak, "generated": table.generated}
    # A sample of the widest table would only repeat the memory of its rows.
    if name in _SAMPLE:
        begin = time.process_time()
        made.frame(0, 10_000 if small else _SAMPLED)
        found["1e6 rows, CPU s"] = time.process_time() - begin
    return found


def _peak() -> float:
    """Largest resident memory of this process so far, in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1e6 if sys.platform == "darwin" else 1e3)


def speed(options: Options) -> Iterator[Result]:
    """CPU seconds and peak memory of fits, the imports aside."""
    for name in options.names(list(_EPSILONS)):
        for method in options.methods:
            for epsilon in options.of_epsilon(_EPSILONS[name]):
                runs = [
                    _in_a_process(method, name, epsilon, seed, options.small)
                    for seed in range(1 if name == "wide" else options.runs)
                ]
                if None not in runs:
                    yield from _results(method, name, epsilon, runs)


def _results(
    method: str, name: str, epsilon: float, runs: list[dict[str, float]]
) -> Iterator[Result]:
    # The table itself is loaded by the other processes only.
    table = stand_in(name)._replace(generated=bool(runs[0]["generated"]))
    bars = {
        "fit, CPU s": _FIT.get((name, epsilon)),
        "peak of the fit, MB": _MEMORY.get(name),
        "1e6 rows, CPU s": _SAMPLE.get(name),
    }
    for measure, bar in bars.items():
        if measure in runs[0]:
            values = [each[measure] for each in runs]
            yield result_of("speed", table, method, epsilon, measure, values, bar)


def _in_a_process(
    method: str, name: str, epsilon: float, seed: int, small: bool
) -> dict[str, float] | None:
    command = [sys.executable, "-m", "benchmarks._fidelity_speed", method, name, str(epsilon)]
    command += [str(seed), *(["--small"] if small else [])]
    root = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    if done.returncode:
        raise SystemExit(f"The fit of {method} on {name} failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    if found is None:
        print(f"{name}, {method}, epsilon {epsilon:g}: left out, as it does not fit the table.")
    return found


def main() -> None:
    """Measure once and print the result as JSON; null if the method does not fit the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method")
    parser.add_argument("table")
    parser.add_argument("epsilon", type=float)
    parser.add_argument("seed", type=int)
    parser.add_argument("--small", action="store_true")
    chosen = parser.parse_args()
    try:
        found = cost(chosen.method, chosen.table, chosen.epsilon, chosen.seed, chosen.small)
    except Unsupported:
        found = None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
