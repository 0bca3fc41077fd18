"""How CPU seconds and memory of one fit grow with rows, columns and codes of a column.

Each fit has a process of its own, so that the peak is its own; imports, and what a first fit on few
rows prepares, count in the memory and not in the seconds. Tables are generated: columns that share
one normal variable, in codes of equal width. An exponent is the slope of the logarithm of seconds:
1 is in proportion. Polars' count of all pairs of columns stands beside.

Run as ``python -m benchmarks.growth --out growth.csv``; ``--only NAME`` chooses, and ``--large``
adds ten times the rows and a hundred times the codes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import skdp
from skdp import Domain, Numeric

Fit = Callable[[pd.DataFrame, Domain], Any]

# Rows, columns, codes: what grows, from the least to the most.
SERIES = {
    "rows": [(100_000, 10, 32), (1_000_000, 10, 32)],
    "columns": [(100_000, 10, 32), (100_000, 40, 32)],
    "codes": [(100_000, 10, 32), (100_000, 10, 1_000)],
}
LARGE = {"rows": (10_000_000, 10, 32), "columns": (100_000, 300, 32), "codes": (100_000, 10, 10**5)}
# Those that are for few columns get so many.
NARROW = {"PrivTreeSynthesizer": 3, "private_quantiles": 1, "RangeTreeHistogram": 1}


def _synthesizer(name: str) -> Fit:
    return lambda rows, domain: getattr(skdp, name)(1.0, domain=domain).fit(rows)


def _polars(rows: pd.DataFrame, domain: Domain) -> Any:
    import polars as pl

    frame = pl.from_pandas(rows).lazy()
    pairs = itertools.combinations(rows.columns, 2)
    return pl.collect_all([frame.group_by(pair).len() for pair in pairs])


FITS: dict[str, Fit] = {
    **{
        name: _synthesizer(name)
        for name in (
            "MarginalSynthesizer",
            "PrivBayesSynthesizer",
            "HDPViewSynthesizer",
            "PrivTreeSynthesizer",
        )
    },
    "RangeTreeHistogram": lambda rows, domain: skdp.RangeTreeHistogram(
        1.0, domain=domain[domain.names[0]]
    ).fit(rows),
    "private_quantiles": lambda rows, domain: skdp.private_quantiles(
        rows.iloc[:, 0], [0.25, 0.5, 0.75], bounds=(0, domain.shape[0] - 1)
    ),
    "DPKMeans": lambda rows, domain: skdp.DPKMeans(8, bounds=(0, domain.shape[0] - 1)).fit(rows),
    "PrivateNaiveBayes": lambda rows, domain: skdp.PrivateNaiveBayes(
        domain=domain, classes=[0, 1]
    ).fit(rows, (rows.iloc[:, 0] > domain.shape[0] // 2).astype(int)),
    "Polars, all pairs": _polars,
}


def table(n: int, d: int, codes: int) -> pd.DataFrame:
    """Generated rows."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=n)
    columns = {}
    for j in range(d):
        value = rng.normal(size=n) + shared * (j % 3)
        columns[f"c{j}"] = np.clip((value / 10 + 0.5) * codes, 0, codes - 1).astype(np.int64)
    return pd.DataFrame(columns)


def one(name: str, n: int, d: int, codes: int) -> None:
    """Fit once, and print seconds and the peak in megabytes."""
    rows = table(n, min(d, NARROW.get(name, d)), codes)
    domain = Domain({column: Numeric(0, codes - 1, integer=True) for column in rows})
    # Imports are not counted.
    FITS[name](rows[:100], domain)
    begin = time.process_time()
    FITS[name](rows, domain)
    seconds = time.process_time() - begin
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def measure(name: str, size: tuple[int, int, int], limit: float) -> tuple[float, float]:
    """Seconds and megabytes of a process of its own; infinite beyond the limit of its time."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.growth", "--one", name]
    try:
        run = subprocess.run(
            [*command, *map(str, size)], capture_output=True, text=True, timeout=limit, check=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return math.inf, math.inf
    seconds, megabytes = map(float, run.stdout.split()[-2:])
    return seconds, megabytes


def main() -> None:
    """Print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(FITS), default=list(FITS))
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of one process")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="CSV file to write")
    arguments = parser.parse_args()
    if arguments.one:
        name, *size = arguments.one
        one(name, *map(int, size))
        return
    known: dict[tuple[str, tuple[int, int, int]], tuple[float, float]] = {}
    lines = []
    for name in arguments.only:
        for grows, sizes in SERIES.items():
            if grows == "columns" and name in NARROW:
                continue
            ladder = [*sizes, LARGE[grows]] if arguments.large else sizes
            for size in ladder:
                if (name, size) not in known:
                    known[name, size] = measure(name, size, arguments.limit)
            first, last = known[name, ladder[0]], known[name, ladder[-1]]
            place = list(SERIES).index(grows)
            steps = math.log(ladder[-1][place] / ladder[0][place])
            lines.append(
                {
                    "fit": name,
                    "grows": grows,
                    "from, to": f"{ladder[0][place]:,} to {ladder[-1][place]:,}",
                    "CPU s": f"{first[0]:.2f} to {last[0]:.2f}",
                    "exponent": round(math.log(last[0] / first[0]) / steps, 2),
                    "peak MB": f"{first[1]:.0f} to {last[1]:.0f}",
                }
            )
            print(*lines[-1].values(), sep="; ", flush=True)
    if arguments.out is not None:
        pd.DataFrame(lines).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
