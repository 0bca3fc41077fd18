"""CPU seconds and peak memory of one fit, by release, table and number of rows.

Each fit has a process of its own, so that the peak is its own; imports count in the memory and not
in the seconds. Rows are drawn from *Adult* (15 columns) or its four columns *small*, with
replacement, as integer codes.

Run as ``python -m benchmarks.timing``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
import pandas as pd

import skdp
from benchmarks import _data
from skdp import Domain, Numeric

RELEASES = ("MarginalSynthesizer", "MarginalSynthesizer", "PrivBayesSynthesizer")
TABLES = ("small", "adult")
SIZES = (10_000, 100_000, 1_000_000)


def one(release: str, name: str, n: int) -> None:
    """Fit once at epsilon 1, draw 10,000 rows, and print what both took."""
    table = _data.hdpview_table(name)
    rng = np.random.default_rng(0)
    which = rng.choice(len(table.counts), n, p=table.counts / table.counts.sum())
    rows = pd.DataFrame(table.codes[which], columns=list(table.columns))
    domain = Domain(
        {
            column: Numeric(0, size - 1, integer=True)
            for column, size in zip(table.columns, table.shape, strict=True)
        }
    )
    start = time.process_time()
    model = getattr(skdp, release)(1.0, domain=domain).fit(rows)
    fitted = time.process_time()
    model.sample(10_000)
    drawn = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{release}, {name}, {n:,} rows: fit {fitted - start:.2f} s, "
        f"10,000 rows {drawn - fitted:.2f} s, peak {peak:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Run every release, table and number of rows in a process of its own."""
    if len(sys.argv) == 4:
        one(sys.argv[1], sys.argv[2], int(sys.argv[3]))
        return
    # Says what is missing before another process would.
    for name in TABLES:
        _data.hdpview_table(name)
    for release in RELEASES:
        for name in TABLES:
            for n in SIZES:
                task = [release, name, str(n)]
                subprocess.run([sys.executable, "-m", "benchmarks.timing", *task], check=True)


if __name__ == "__main__":
    main()
