"""How close the auditor's bounds come to the epsilon of correct mechanisms.

The bound as a share of epsilon, with a million trials on each side; half of the trials choose the
event. All draws are seeded, except for skdp's own noise. That broken mechanisms are convicted is
tested (``tests/audit/test_lower_bound.py``).

Run as ``python -m benchmarks.audit --out audit.json``; ``--quick`` takes a tenth of the trials.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _data
from skdp import mechanisms
from skdp.audit import audit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from broken import algorithm_17, exponential_mechanism, laplace


def power(n: int) -> dict[str, dict[str, Any]]:
    """The bound, its event, and the CPU seconds, by mechanism."""
    rng = np.random.default_rng(0)

    def discrete(value: int, n: int) -> Any:
        return mechanisms.discrete_laplace(np.full(n, value), 1.0)

    runs: dict[str, Any] = {
        "Laplace": (laplace(rng, 1.0), 0, 1),
        "discrete Laplace of skdp": (discrete, 0, 1),
        "exponential mechanism": (exponential_mechanism(rng), [4, 0], [5, 0]),
        "Algorithm 17, c=1": (algorithm_17(rng, 1), [0] * 8 + [1], [1] * 8 + [0]),
        "Algorithm 17, c=2": (algorithm_17(rng, 2), [-1] * 8 + [2] * 2, [0] * 8 + [1] * 2),
    }
    rows = {}
    for name, arguments in runs.items():
        begin = time.process_time()
        result = audit(*arguments, epsilon=1.0, n_trials=n, vectorised=True)
        bound, cpu = result.epsilon_lower_bound, time.process_time() - begin
        rows[name] = {"bound": bound, "trials": n, "event": str(result.event), "cpu": cpu}
        print(f"{name:<40} {n:>10,} {bound:>7.3f} {cpu:>6.1f}", flush=True)
    return rows


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    print(f"{'mechanism':<40} {'trials':>10} {'bound':>7} {'CPU s':>6}")
    _data.write_json(arguments.out, "audit", power(100_000 if arguments.quick else 1_000_000))


if __name__ == "__main__":
    main()
