"""Speed of discrete Laplace noise: ours, OpenDP's, a rejection sampler, NumPy's float noise.

CPU time of this process in nanoseconds per sample, for each method and epsilon. Ours builds its
tables anew in every run. NumPy's `laplace` is there for comparison: it is not private.

Run as ``python -m benchmarks.noise --out noise.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._random import NoiseSource, noise_source
from skdp._validation import as_epsilon, dyadic_floor
from skdp.mechanisms import _inversion, discrete_laplace

EPSILONS = (1e-5, 1e-3, 0.01, 0.1, 1.0)


def rejection_discrete_laplace(size: int, rate: Fraction, source: NoiseSource) -> NDArray[np.int64]:
    """Sampler of Canonne, Kamath and Steinke, vectorised: exact, without tables.

    Uses only uniform integers. It shares only the source of randomness with the library's sampler,
    so the tests compare the two.

    Parameters
    ----------
    size : int
    rate : Fraction
        P(k) is proportional to exp(-rate * abs(k)).
    source : NoiseSource

    Returns
    -------
    ndarray of int64, shape (size,)
    """
    kept: list[NDArray[np.int64]] = []
    missing = size
    while missing:
        magnitude = _rejection_geometric(2 * missing + 8, rate, source)
        negative = source.half_words(magnitude.size) & 1 == 1
        # Zero has two signs; one of them is rejected.
        good = ~(negative & (magnitude == 0))
        drawn = np.where(negative, -magnitude, magnitude)[good][:missing]
        kept.append(drawn)
        missing -= drawn.size
    return np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)


def _rejection_geometric(size: int, rate: Fraction, source: NoiseSource) -> NDArray[np.int64]:
    parts, whole = rate.denominator, rate.numerator
    # U in [0, parts) with probability proportional to exp(-U / parts).
    low = source.below(parts, size=size)
    again = np.flatnonzero(~_coin(low, parts, source))
    while again.size:
        low[again] = source.below(parts, size=again.size)
        again = again[~_coin(low[again], parts, source)]
    high = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    while active.size:
        active = active[_coin(np.ones(active.size, dtype=np.int64), 1, source)]
        high[active] += 1
    return (low + parts * high) // whole


def _coin(share: NDArray[np.int64], whole: int, source: NoiseSource) -> NDArray[np.bool_]:
    """Draw coins of probability exp(-share / whole), at least exp(-1), by von Neumann's series."""
    rounds = np.ones(share.size, dtype=np.int64)
    active = np.arange(share.size)
    k = 1
    while active.size:
        active = active[source.below(whole * k, size=active.size) < share[active]]
        rounds[active] += 1
        k += 1
    return rounds % 2 == 1


def _ours(zeros: NDArray[np.int64], epsilon: float) -> None:
    for cached in (_inversion._large_sampler, _inversion._small_sampler, _inversion.exp_interval):
        cached.cache_clear()
    discrete_laplace(zeros, epsilon)


def _rejection(zeros: NDArray[np.int64], epsilon: float) -> None:
    rejection_discrete_laplace(zeros.size, dyadic_floor(as_epsilon(epsilon)), noise_source(None))


def _numpy(zeros: NDArray[np.int64], epsilon: float) -> None:
    zeros + np.random.default_rng().laplace(scale=1 / epsilon, size=zeros.size)


def _opendp() -> Callable[[NDArray[np.int64], float], None] | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")

    def run(zeros: NDArray[np.int64], epsilon: float) -> None:
        dp.m.make_laplace(*space, scale=1 / epsilon)(zeros)

    return run


def _nanoseconds(
    run: Callable[[NDArray[np.int64], float], None], size: int, epsilon: float
) -> float:
    zeros = np.zeros(size, dtype=np.int64)
    begin = time.process_time()
    run(zeros, epsilon)
    return (time.process_time() - begin) / size * 1e9


def measure(size: int, slow_size: int, repeats: int) -> dict[str, Any]:
    """Median nanoseconds per sample of each method and epsilon.

    Parameters
    ----------
    size : int
        Samples of a run of our sampler and NumPy's.
    slow_size : int
        Samples of a run of OpenDP and the rejection sampler.
    repeats : int
        Number of runs; the methods take turns.
    """
    methods: dict[str, tuple[Callable[[NDArray[np.int64], float], None], int]] = {
        "skdp": (_ours, size),
        "numpy float (not private)": (_numpy, size),
        "rejection": (_rejection, slow_size),
    }
    opendp = _opendp()
    if opendp is not None:
        methods["opendp"] = (opendp, slow_size)
    rows = []
    for epsilon in EPSILONS:
        runs: dict[str, list[float]] = {name: [] for name in methods}
        for _ in range(repeats):
            for name, (run, count) in methods.items():
                runs[name].append(_nanoseconds(run, count, epsilon))
        row: dict[str, Any] = {"epsilon": epsilon}
        row |= {name: statistics.median(values) for name, values in runs.items()}
        if opendp is not None:
            row["opendp / skdp"] = row["opendp"] / row["skdp"]
        # Algorithms that make many small releases pay this: the first call at a new epsilon.
        row["first call of 1,000, microseconds"] = statistics.median(
            _nanoseconds(_ours, 1000, epsilon) for _ in range(5 * repeats)
        )
        rows.append(row)
    return {
        "unit": "nanoseconds of CPU a sample",
        "samples": size,
        "samples of opendp and rejection": slow_size,
        "repeats": repeats,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "results": rows,
    }


def main() -> None:
    """Print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--slow-size", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    report = measure(arguments.size, arguments.slow_size, arguments.repeats)
    names = list(report["results"][0])
    print("nanoseconds of CPU per sample; tables built anew in every run")
    print(" | ".join(names))
    for row in report["results"]:
        cells = [f"{row['epsilon']:g}"] + [f"{row[name]:,.1f}" for name in names[1:]]
        print(" | ".join(cell.rjust(len(name)) for cell, name in zip(cells, names, strict=True)))
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
