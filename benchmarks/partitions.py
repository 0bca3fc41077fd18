"""HDPView, PrivTree, kd-tree and grid on five tables: errors of ranges and cells, intervals.

Errors are root mean squares over 3,000 random 2-D range queries and over all cells of all two-way
tables, averaged over the releases. Beside them are the reference errors for PrivTree and for
counting every cell, where there are any. "covered" is the share of nominal 90% intervals that
contain the true answer, over 100 queries of each release; "width" is the median width of these
intervals divided by the true 95% quantile of the errors. Times are CPU times of this process for a
whole ``fit``.

Run as ``python -m benchmarks.partitions --out partitions.json``; ``--quick`` uses two releases and
500 queries.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _data
from benchmarks.hdpview import problem
from skdp import (
    Domain,
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    PrivTreeSynthesizer,
)
from skdp.exceptions import DomainError, InsecureSeedWarning

METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "HDPView": (HDPViewSynthesizer, {}),
    "PrivTree": (PrivTreeSynthesizer, {}),
    "PrivTree, paper": (PrivTreeSynthesizer, {"calibration": "paper"}),
    "kd two-step": (KDTreeSynthesizer, {}),
    "kd hierarchical": (KDTreeSynthesizer, {"strategy": "hierarchical"}),
    "grid extended": (GridSynthesizer, {"rule": "extended"}),
    "grid uniform": (GridSynthesizer, {"rule": "uniform"}),
    "cells": (KDTreeSynthesizer, {"strategy": "cell"}),
}
# Errors of ranges and of two-way tables of other implementations, same tables and queries.
REFERENCE = {
    ("small", 1.0, "PrivTree"): (828, 69),
    ("small", 0.1, "PrivTree"): (2882, 217),
    ("numerical", 1.0, "PrivTree"): (5627, 249),
    ("numerical", 0.1, "PrivTree"): (7612, 260),
    ("mdsalary", 1.0, "PrivTree"): (38.1, 0.31),
    ("mdsalary", 0.1, "PrivTree"): (222, 2.0),
    ("twitter", 1.0, "PrivTree"): (83, 1.55),
    ("twitter", 0.1, "PrivTree"): (503, 9.1),
    ("small", 1.0, "cells"): (428, 19.8),
    ("small", 0.1, "cells"): (4281, 198),
    ("mdsalary", 1.0, "cells"): (157, 1.42),
    ("mdsalary", 0.1, "cells"): (1565, 14),
    ("twitter", 1.0, "cells"): (157, 1.42),
    ("twitter", 0.1, "cells"): (1565, 14),
}
_INTERVALS = 100
# Fewer intervals are computed for a release of more boxes than this.
_MANY_BOXES = 20_000


def cell_error(release: Any, table: _data.RangeTable, domain: Domain) -> float:
    """Root mean square error over all cells of all two-way tables."""
    total, cells = 0.0, 0
    for a, b in itertools.combinations(range(len(table.shape)), 2):
        true = np.zeros((table.shape[a], table.shape[b]))
        np.add.at(true, (table.codes[:, a], table.codes[:, b]), table.counts)
        view = release.synopsis_.view([domain.names[a], domain.names[b]])
        total += float(((view - true) ** 2).sum())
        cells += true.size
    return float(np.sqrt(total / cells))


def measure(name: str, epsilon: float, runs: int, n_queries: int) -> list[dict[str, Any]]:
    """Make ``runs`` releases with each method; one result for each."""
    table, domain, rows = problem(name)
    truth = table.true_answers()[:n_queries]
    queries = [
        {table.columns[a]: (first, last), table.columns[b]: (start, stop)}
        for a, first, last, b, start, stop in table.queries[:n_queries].tolist()
    ]
    results = []
    for method, (estimator, parameters) in METHODS.items():
        row: dict[str, Any] = {
            "table": name,
            "epsilon": epsilon,
            "method": method,
            "runs": runs,
        }
        ranges, cells, boxes, seconds, errors, widths, covered = ([] for _ in range(7))
        for seed in range(runs):
            release = estimator(epsilon, domain=domain, random_state=seed, **parameters)
            begin = time.process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", InsecureSeedWarning)
                    release.fit(rows)
            except DomainError as refusal:
                row["refused"] = str(refusal)
                break
            seconds.append(time.process_time() - begin)
            boxes.append(len(release.synopsis_.model.boxes))
            error = release.count(queries) - truth
            errors.append(np.abs(error))
            ranges.append(float(np.sqrt(np.mean(error**2))))
            cells.append(cell_error(release, table, domain))
            number = _INTERVALS if boxes[-1] <= _MANY_BOXES else _INTERVALS // 10
            asked = range(seed, n_queries, n_queries // number)
            bars = release.count([queries[i] for i in asked], return_interval=True, level=0.9)
            covered += [
                bar.lower <= truth[i] <= bar.upper for bar, i in zip(bars, asked, strict=True)
            ]
            widths += [bar.upper - bar.lower for bar in bars]
        if "refused" not in row:
            row["ranges"] = statistics.fmean(ranges)
            row["ranges_error"] = statistics.stdev(ranges) / runs**0.5
            row["cells"] = statistics.fmean(cells)
            row["boxes"] = statistics.fmean(boxes)
            row["cpu"] = statistics.median(seconds)
            row["covered"] = float(np.mean(covered))
            row["width"] = float(np.median(widths) / np.quantile(np.concatenate(errors), 0.95))
            if (name, epsilon, method) in REFERENCE:
                row["reference"] = REFERENCE[name, epsilon, method]
        results.append(row)
    return results


def bars(results: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Every target, and whether the results meet it."""
    promised = []
    for row in results:
        label = f"{row['table']}, {row['epsilon']:g}, {row['method']}"
        if "refused" in row:
            continue
        # The answers of one release share its noise, so they count as ten independent ones.
        least = 0.9 - 3 * (0.09 / (10 * row["runs"])) ** 0.5
        promised.append(
            (f"{label}: nominal 90% intervals cover {least:.0%}", row["covered"] >= least)
        )
        if "reference" in row:
            most = 1.1 * row["reference"][0]
            promised.append((f"{label}: ranges at most {most:.0f}", row["ranges"] <= most))
    return promised


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two runs, 500 queries")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--tables", nargs="*", default=_data.HDPVIEW_TABLES, help="default all")
    arguments = parser.parse_args()
    runs, n_queries = (2, 500) if arguments.quick else (5, 3000)

    print(
        f"{'table':<10} {'eps':>4} {'method':<16} {'ranges':>16} {'cells':>7} {'reference':>14} "
        f"{'boxes':>9} {'covered':>8} {'width':>6} {'CPU s':>6}"
    )
    results = []
    for name in arguments.tables:
        for epsilon in (0.1, 1.0):
            for row in measure(name, epsilon, runs, n_queries):
                results.append(row)
                label = f"{name:<10} {epsilon:>4g} {row['method']:<16}"
                if "refused" in row:
                    print(f"{label} refused: too many cells", flush=True)
                    continue
                ranges = f"{row['ranges']:.1f} +- {row['ranges_error']:.1f}"
                reference = "{:g} / {:g}".format(*row["reference"]) if "reference" in row else ""
                print(
                    f"{label} {ranges:>16} {row['cells']:>7.2f} {reference:>14} "
                    f"{row['boxes']:>9.0f} {row['covered']:>8.3f} {row['width']:>6.2f} "
                    f"{row['cpu']:>6.2f}",
                    flush=True,
                )
    promised = bars(results)
    for promise, kept in promised:
        print(f"{'yes' if kept else 'NO':<4} {promise}")
    _data.write_json(arguments.out, "partitions", {"tables": results, "bars": promised})


if __name__ == "__main__":
    main()
