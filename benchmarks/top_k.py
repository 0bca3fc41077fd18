"""Top-k by one round of noise, by sets and by sequences, and OpenDP's `noisy_top_k`.

Score error rate: one minus the score of the selected items divided by that of the true top k. On
the item frequencies of `benchmarks.select`, and on generated counts of films, whose gaps around the
k-th place are large. OpenDP is measured where it is installed; it adds exponential noise of scale
k / epsilon, and a run on 17,000 items takes about a second.

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

EPSILONS = (0.01, 0.1, 0.5)
SIZES = (25, 50, 100)
Ints = NDArray[np.int64]


def films() -> Ints:
    """Counts of 17,770 films, largest first."""
    ranks = np.arange(1, 17_771)
    jitter = np.exp(np.random.default_rng(5).normal(0, 0.02, ranks.size))
    return np.sort((232_944 * np.exp(-0.13 * ranks**0.43) * jitter).astype(np.int64))[::-1]


def methods(k: int, epsilon: float) -> dict[str, Callable[[Ints], Any]]:
    """What each method selects, by name."""

    def ours(method: str) -> Callable[[Ints], Any]:
        ordered = method in ("one-shot", "joint")
        return lambda counts: top_k(counts, k, epsilon, 1, method=method, ordered=ordered)

    found = {method: ours(method) for method in ("one-shot", "canonical", "joint", "auto")}
    opendp = _opendp(k, epsilon)
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


def measure(counts: Ints, k: int, epsilon: float, runs: int) -> dict[str, dict[str, float]]:
    """Mean score error rate and CPU seconds of each method."""
    best = np.sort(counts)[-k:].sum()
    shuffled = np.random.default_rng(k).permutation(counts)
    found = {}
    for name, select in methods(k, epsilon).items():
        begin = time.process_time()
        missed = [1 - shuffled[np.asarray(select(shuffled))].sum() / best for _ in range(runs)]
        seconds = (time.process_time() - begin) / runs
        found[name] = {"score error": float(np.mean(missed)), "seconds": seconds}
    return found


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    rows = []
    for name in ("films", *SETS):
        counts = films() if name == "films" else _data.item_frequencies(name)
        for epsilon in EPSILONS:
            for k in SIZES:
                found = measure(counts, k, epsilon, arguments.runs)
                rows.append({"set": name, "epsilon": epsilon, "k": k, "methods": found})
                cells = "; ".join(
                    f"{method} {values['score error']:.5f} ({values['seconds']:.2f} s)"
                    for method, values in found.items()
                )
                print(f"{name:<14} epsilon {epsilon:<5g} k {k:<4} {cells}", flush=True)
    _data.write_json(arguments.out, "top_k", rows)


if __name__ == "__main__":
    main()
