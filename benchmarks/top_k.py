"""Top-k by one round of noise, by sets and by sequences, and OpenDP's `noisy_top_k`.

Score error rate: one minus the score of the selected items divided by that of the true top k. On
the item frequencies of `benchmarks.select`, on generated counts of films, whose gaps around the
k-th place are large, and on generated lists of many shapes and sizes. Printed at the end: how the
mean error of "auto" compares with that of the better of its two methods in each setting. OpenDP is
measured with ``--peers``; it adds exponential noise of scale k / epsilon, and a run on 17,000 items
takes about a second.

Run as ``python -m benchmarks.top_k --out top_k.json``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import _data
from benchmarks.select import SETS
from skdp.mechanisms import top_k

EPSILONS = (0.001, 0.01, 0.1, 0.5)
SIZES = (2, 5, 10, 25, 50, 100, 200)
Ints = NDArray[np.int64]


def films() -> Ints:
    """Counts of 17,770 films, largest first."""
    ranks = np.arange(1, 17_771)
    jitter = np.exp(np.random.default_rng(5).normal(0, 0.02, ranks.size))
    return np.sort((232_944 * np.exp(-0.13 * ranks**0.43) * jitter).astype(np.int64))[::-1]


def generated() -> dict[str, Ints]:
    """Lists of eight shapes in three sizes, with the largest score at about 100,000."""
    rng = np.random.default_rng(6)
    found = {}
    for n in (500, 4_000, 40_000):
        ranks = np.arange(1, n + 1)
        shapes = {
            "power law": 1e5 / ranks,
            "exponential": 1e5 * np.exp(-ranks / (n / 50)),
            "linear": 1e5 * (1 - ranks / n),
            "lognormal": 1e3 * np.exp(rng.normal(0, 1.2, n)),
            "uniform": rng.uniform(0, 1e5, n),
            "stepped": np.repeat(np.sort(rng.uniform(0, 1e5, 10)), n // 10),
            "few large": np.where(ranks <= 30, 1e5, 1e4) * rng.uniform(0.5, 1, n),
            "ties": np.round(20 / np.sqrt(ranks)) * 5e3,
        }
        for name, shape in shapes.items():
            found[f"{name}, {n}"] = np.sort(np.rint(shape).astype(np.int64))[::-1]
    return found


def methods(k: int, epsilon: float, peers: bool) -> dict[str, Callable[[Ints], Any]]:
    """What each method selects, by name."""

    def ours(method: str) -> Callable[[Ints], Any]:
        return lambda counts: top_k(counts, k, epsilon, 1, method=method, ordered=False)

    found = {method: ours(method) for method in ("one-shot", "canonical", "auto")}
    opendp = _opendp(k, epsilon) if peers else None
    return found if opendp is None else {**found, "OpenDP": opendp}


def _opendp(k: int, epsilon: float) -> Callable[[Ints], Any] | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64", monotonic=True)
    run: Callable[[Ints], Any] = dp.m.make_noisy_top_k(
        *space, dp.max_divergence(), k=k, scale=k / epsilon
    )
    return run


def measure(
    counts: Ints, k: int, epsilon: float, runs: int, peers: bool = False
) -> dict[str, dict[str, float]]:
    """Mean score error rate and CPU seconds of each method."""
    best = np.sort(counts)[-k:].sum()
    shuffled = np.random.default_rng(k).permutation(counts)
    found = {}
    for name, select in methods(k, epsilon, peers).items():
        begin = time.process_time()
        missed = [1 - shuffled[np.asarray(select(shuffled))].sum() / best for _ in range(runs)]
        seconds = (time.process_time() - begin) / runs
        found[name] = {"score error": float(np.mean(missed)), "seconds": seconds}
    return found


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--peers", action="store_true", help="measure OpenDP too")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    rows = []
    lists = {name: _data.item_frequencies(name) for name in SETS}
    for name, counts in {"films": films(), **lists, **generated()}.items():
        for epsilon in EPSILONS:
            for k in SIZES:
                found = measure(counts, k, epsilon, arguments.runs, arguments.peers)
                rows.append({"set": name, "epsilon": epsilon, "k": k, "methods": found})
                cells = "; ".join(
                    f"{method} {values['score error']:.5f} ({values['seconds']:.2f} s)"
                    for method, values in found.items()
                )
                print(f"{name:<14} epsilon {epsilon:<5g} k {k:<4} {cells}", flush=True)
        mine = [row["methods"] for row in rows if row["set"] == name]
        errors = {each: [row[each]["score error"] for row in mine] for each in mine[0]}
        best = np.minimum(errors["one-shot"], errors["canonical"]).mean()
        print(f"{name:<14} auto {np.mean(errors['auto']):.4f} best of each {best:.4f}", flush=True)
    _data.write_json(arguments.out, "top_k", rows)


if __name__ == "__main__":
    main()
