"""Targets of the auditor: what it convicts, what it does not, and how tight its bounds are.

Two tables. *Broken* mechanisms (``tests/broken.py``) must get a lower bound above their claim of
1 at 99.9% confidence, and their repaired versions must not. Beside the bound is the log ratio of
one event, where it is known from integration (the auditor may find an event with a larger ratio).
*Power*: the bound on correct mechanisms as a share of their epsilon, with a million trials on each
side; half of the trials choose the event. All draws are seeded, except for skdp's own noise. Times
are CPU times of this process.

Each repaired version is convicted by chance with probability at most 0.001, any of them with at
most 0.017. With the seeds used here none is.

Run as ``python -m benchmarks.audit --out audit.json``; ``--quick`` takes a tenth of the trials.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _data
from skdp import mechanisms
from skdp.audit import audit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from broken import BROKEN, algorithm_17, exponential_mechanism, laplace

# The shares of epsilon that must be reached.
POWER = {
    "Laplace": 0.95,
    "discrete Laplace of skdp": 0.95,
    "exponential mechanism": 0.85,
    "Algorithm 17, c=1": 0.8,
    "Algorithm 17, c=2": 0.6,
}


def measured(mechanism: Any, *data: Any, n_trials: int, **options: Any) -> dict[str, Any]:
    """Audit once and keep the columns of the tables."""
    begin = time.process_time()
    result = audit(mechanism, *data, epsilon=1.0, n_trials=n_trials, vectorised=True, **options)
    return {
        "bound": result.epsilon_lower_bound,
        "trials": n_trials,
        "event": str(result.event),
        "cpu": time.process_time() - begin,
    }


def broken(scale: float) -> list[dict[str, Any]]:
    """Every broken mechanism and its repaired version."""
    rows = []
    for name, variant in BROKEN.items():
        n_trials = max(round(variant.n_trials * scale), 2_000)
        row: dict[str, Any] = {"name": name}
        for kind, make in (("broken", variant.make), ("repaired", variant.repaired)):
            row[kind] = measured(
                make(np.random.default_rng(11)),
                variant.dataset,
                variant.neighbour,
                n_trials=n_trials,
                **variant.options,
            )
        row["known_event"] = None if variant.ratio is None else math.log(variant.ratio)
        known = "" if row["known_event"] is None else f"{row['known_event']:.2f}"
        print(
            f"{name:<36} {n_trials:>9,} {row['broken']['bound']:>7.3f} {known:>6} "
            f"{row['repaired']['bound']:>8.3f} {row['broken']['cpu']:>6.1f}",
            flush=True,
        )
        rows.append(row)
    return rows


def power(scale: float) -> dict[str, dict[str, Any]]:
    """How close the bound comes to the epsilon of correct mechanisms."""
    n = round(1_000_000 * scale)
    rng = np.random.default_rng(0)

    def discrete(value: int, n: int) -> Any:
        return mechanisms.discrete_laplace(np.full(n, value), 1.0)

    runs = {
        "Laplace": (laplace(rng, 1.0), 0, 1),
        "discrete Laplace of skdp": (discrete, 0, 1),
        "exponential mechanism": (exponential_mechanism(rng), [4, 0], [5, 0]),
        "Algorithm 17, c=1": (algorithm_17(rng, 1), [0] * 8 + [1], [1] * 8 + [0]),
        "Algorithm 17, c=2": (algorithm_17(rng, 2), [-1] * 8 + [2] * 2, [0] * 8 + [1] * 2),
    }
    rows = {}
    for name, arguments in runs.items():
        rows[name] = measured(*arguments, n_trials=n)
        print(
            f"{name:<40} {n:>10,} {rows[name]['bound']:>7.3f} {rows[name]['cpu']:>6.1f}",
            flush=True,
        )
    return rows


def bars(
    convicted: list[dict[str, Any]], reached: dict[str, dict[str, Any]]
) -> list[tuple[str, bool]]:
    """Every target, and whether the results meet it."""
    promised = [
        (f"convicts: {row['name']} ({row['broken']['bound']:.2f} > 1)", row["broken"]["bound"] > 1)
        for row in convicted
    ]
    promised += [
        (f"does not convict: repaired {row['name']}", row["repaired"]["bound"] <= 1)
        for row in convicted
    ]
    promised += [
        (f"reaches {share:.0%}: {name} ({reached[name]['bound']:.1%})", bound_ok)
        for name, share in POWER.items()
        for bound_ok in [share <= reached[name]["bound"] <= 1]
    ]
    return promised


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    scale = 0.1 if arguments.quick else 1.0

    print(f"{'broken':<36} {'trials':>9} {'bound':>7} {'event':>6} {'repaired':>8} {'CPU s':>6}")
    convicted = broken(scale)
    print(f"\n{'power':<40} {'trials':>10} {'bound':>7} {'CPU s':>6}")
    reached = power(scale)
    promised = bars(convicted, reached)
    for promise, kept in promised:
        print(f"{'yes' if kept else 'NO':<4} {promise}")
    _data.write_json(
        arguments.out,
        "audit",
        {"broken": convicted, "power": reached, "bars": promised},
    )


if __name__ == "__main__":
    main()
