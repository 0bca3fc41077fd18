"""Tables of two columns: errors of random ranges and of single cells, beside six other methods.

Errors are mean absolute errors over 1,000 random ranges (two uniform codes on each column) and over
all cells, averaged over five releases (25 of small tables). All methods spend the whole of epsilon
on the counts. The others are: noise on every cell; a uniform map; the product of the two columns by
themselves; PrivTree; the two-step kd-tree of DPCube; and the adaptive grid of Qardaji, Yang and Li
(ICDE 2013), which is told the exact number of records. A point fails if one of them is better by
more than 3% and by more than two standard errors of the difference.

The half "tuning" may be used to choose constants; the half "report" is for results only.

Run as ``python -m benchmarks.maps --out maps.json``; ``--quick`` makes two releases.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import _data
from skdp._random import noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.kernels.dpcube import two_step_kdtree, two_step_parts
from skdp.kernels.privtree import privtree, privtree_parts
from skdp.kernels.views import Asked, measured_views
from skdp.mechanisms import discrete_laplace
from skdp.rows import CountTable

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Method = Callable[[Counts, Fraction, int], Floats]

EPSILONS = ("0.05", "0.1", "0.3", "1", "3", "30")
_QUERIES, _SMALL = 1000, 20_000


# --- maps


def _drawn(weights: Floats, n: int, seed: int) -> Counts:
    """Counts of n records drawn from cells with these weights."""
    flat = weights.ravel() / weights.sum()
    return np.random.default_rng(seed).multinomial(n, flat).reshape(weights.shape)


def _hills(side: int, number: int, width: float, seed: int) -> Floats:
    """Gaussian hills of random places, widths (relative to the side) and heights."""
    generator = np.random.default_rng(seed)
    x, y = np.mgrid[0:side, 0:side] / side
    found = np.zeros((side, side))
    for _ in range(number):
        a, b = generator.random(2)
        s, t = width * np.exp(0.5 * generator.standard_normal(2))
        height = generator.random() / (s * t)
        found += height * np.exp(-(((x - a) / s) ** 2) / 2 - ((y - b) / t) ** 2 / 2)
    return found


def _spiky(side: int, seed: int) -> Floats:
    """Hills whose cells differ by log-normal factors, as on a map of streets."""
    noise = np.random.default_rng(seed).standard_normal((side, side))
    return _hills(side, 6, 0.12, seed) * np.exp(1.5 * noise)


def _curve(side: int) -> Floats:
    """A narrow band around a curve."""
    x, y = np.mgrid[0:side, 0:side] / side
    return np.exp(-np.abs(y - 0.5 - 0.3 * np.sin(5 * x)) * 100) * (0.2 + x)


def _incomes(size: int, groups: int, seed: int) -> Floats:
    """Log-normal incomes with round numbers, by the codes of a small column."""
    generator = np.random.default_rng(seed)
    x = (np.arange(size) + 0.5) / size
    found = []
    for _ in range(groups):
        middle = 0.2 + 0.1 * generator.random()
        bell = np.exp(-((np.log(x / middle) / 0.7) ** 2) / 2)
        found.append(bell / x * (0.5 + generator.random()))
    heaps = np.where(np.arange(size) % 10 == 0, 4.0, 1.0)
    return np.array(found) * heaps


def _zeros(side: int, seed: int) -> Floats:
    """Two columns that are mostly zero and otherwise wide, as capital gains and losses."""
    generator = np.random.default_rng(seed)
    views = [np.r_[60.0, generator.pareto(1.0, side - 1)] for _ in range(2)]
    return np.outer(*views) * np.exp(0.5 * generator.standard_normal((side, side)))


def _independent(shape: tuple[int, int]) -> Floats:
    x, y = (np.arange(size) for size in shape)
    return np.outer(0.97**x, 1 / (1 + y))


def generated() -> dict[str, Counts]:
    """Maps of every density and size."""
    return {
        "smooth, 1e6": _drawn(_hills(256, 5, 0.15, 1), 10**6, 1),
        "smooth, 1e7": _drawn(_hills(256, 8, 0.1, 2), 10**7, 2),
        "spiky, 1e6": _drawn(_spiky(256, 3), 10**6, 3),
        "spiky, 1e4": _drawn(_spiky(128, 4), 10**4, 4),
        "clusters, 2e4": _drawn(_hills(256, 60, 0.006, 5), 20_000, 5),
        "clusters, 1e6 cells": _drawn(_hills(1000, 80, 0.01, 6), 300_000, 6),
        "curve, 5e4": _drawn(_curve(256), 50_000, 7),
        "independent, 5e4": _drawn(_independent((100, 60)), 50_000, 8),
        "mostly zero, 4e4": _drawn(_zeros(256, 13), 40_000, 13),
        "few, 1e3": _drawn(_hills(256, 4, 0.05, 9), 1000, 9),
        "binary, incomes, 1e4": _drawn(_incomes(400, 2, 10), 10**4, 10),
        "small table, 3e3": _drawn(_incomes(12, 9, 11), 3000, 11),
        "47 codes, 2e4": _drawn(_hills(47, 6, 0.1, 12), 20_000, 12),
    }


def _binned(points: Floats, side: int) -> Counts:
    """Counts of points in [-1, 1] on a map."""
    edges = np.linspace(-1, 1, side + 1)
    return np.histogram2d(points[:, 0], points[:, 1], [edges, edges])[0].astype(np.int64)


def _census(first: str, second: str) -> Counts:
    stored = np.load(_data.data_path("acs_income_lin.npz"))
    a, b = (list(stored["columns"]).index(name) for name in (first, second))
    counts = np.zeros((stored["shape"][a], stored["shape"][b]), dtype=np.int64)
    np.add.at(counts, (stored["train"][:, a], stored["train"][:, b]), 1)
    return counts


def _numbers(name: str, first: str, second: str, side: int) -> Counts:
    """Two numeric columns of a table of the data folder, in bins of their whole range."""
    rows = _data.frame(name)[[first, second]].dropna().to_numpy(dtype=float)
    return np.histogram2d(rows[:, 0], rows[:, 1], bins=side)[0].astype(np.int64)


def real(half: str) -> dict[str, Counts]:
    """Pairs of columns of real tables."""
    maps = {each.name: each.counts for each in _data.dpbench_2d()}
    places = np.asarray(_data.kmeans_set("checkin")["X"])
    if half == "tuning":
        return {
            "twitter": maps["twitter_256_256"],
            "places, 64 x 64": _binned(places, 64),
            "census, age x hours": _census("AGEP", "WKHP"),
            "adult, hours x sex": _adult("hours-per-week", "sex"),
        }
    return {
        "mdsalary": maps["MDSalary2D_256_256"],
        "adult, gain x loss": maps["Adult_2D_256_256"],
        "places, 1000 x 1000": _binned(places, 1000),
        "places, 256 x 256": _binned(places, 256),
        "census, sex x income": _census("SEX", "PINCP"),
        "census, school x income": _census("SCHL", "PINCP"),
        "adult, age x hours": _adult("age", "hours-per-week"),
        "electricity": _numbers("electricity", "nswprice", "nswdemand", 200),
    }


def _adult(first: str, second: str) -> Counts:
    frame = _data.frame("adult")
    codes = []
    for name in (first, second):
        values = frame[name]
        codes.append(
            values.to_numpy() - values.min()
            if values.dtype.kind in "iu"
            else np.unique(values, return_inverse=True)[1]
        )
    counts = np.zeros([int(each.max()) + 1 for each in codes], dtype=np.int64)
    np.add.at(counts, tuple(codes), 1)
    return counts


# --- methods


def _table(counts: Counts) -> CountTable:
    cells = np.argwhere(counts > 0)
    return CountTable.from_codes(cells.astype(np.int32), counts.shape, counts[counts > 0])


def _scaled(counts: Floats, total: float) -> Floats:
    found = np.maximum(counts, 0.0)
    return found * (max(total, 1.0) / max(found.sum(), 1e-9))


def ours(counts: Counts, epsilon: Fraction, seed: int) -> Floats:
    """Marginals of the two columns."""
    model = _views(counts, epsilon, seed)
    return np.asarray(model.view([0, 1]))


def cells(counts: Counts, epsilon: Fraction, seed: int) -> Floats:
    """Noise on every cell."""
    return discrete_laplace(counts, epsilon, random_state=seed).astype(np.float64)


def uniform(counts: Counts, epsilon: Fraction, seed: int) -> Floats:
    """The total, spread evenly."""
    total = int(discrete_laplace(int(counts.sum()), epsilon, random_state=seed))
    return np.full(counts.shape, total / counts.size)


def independent(counts: Counts, epsilon: Fraction, seed: int) -> Floats:
    """The product of the columns by themselves."""
    model = _views(counts, epsilon, seed, max_order=1)
    shares = [np.maximum(model.view([axis]), 0.0) for axis in range(2)]
    shares = [share / max(share.sum(), 1e-300) for share in shares]
    return max(model.total, 1.0) * np.outer(*shares)


def _views(counts: Counts, epsilon: Fraction, seed: int, **asked: Any) -> Any:
    """The release of marginals."""
    parts = {"total": epsilon / 50, "views": epsilon * 49 / 50}
    orders = [np.arange(size) for size in counts.shape]
    return measured_views(_table(counts), parts, Asked(orders, **asked), random_state=seed)


def _boxes(shape: tuple[int, ...], lower: Any, upper: Any, counts: Any) -> Floats:
    """Boxes spread evenly over their cells."""
    found = np.zeros(shape)
    even = counts / np.prod(upper - lower, axis=1)
    for low, high, value in zip(lower, upper, even, strict=True):
        found[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = value
    return found


def privtree_map(counts: Counts, epsilon: Fraction, seed: int) -> Floats:
    """PrivTree, which halves both columns."""
    parts = privtree_parts(epsilon, counts.shape)
    release = privtree(_table(counts), parts, random_state=seed)
    return _boxes(counts.shape, release.lower, release.upper, release.counts)


def kdtree(counts: Counts, epsilon: Fraction, seed: int) -> Floats:
    """The two-step kd-tree of DPCube."""
    release = two_step_kdtree(_table(counts), two_step_parts(epsilon), random_state=seed)
    return _boxes(counts.shape, release.lower, release.upper, release.counts)


def adaptive_grid(counts: Counts, epsilon: Fraction, seed: int) -> Floats:
    """A coarse grid, each of whose cells is divided by its noisy count."""
    source = noise_source(seed)
    half = epsilon / 2
    side = max(10, int(np.ceil((counts.sum() * float(epsilon) / 10) ** 0.5 / 4)))
    rows, columns = (_edges(size, side) for size in counts.shape)
    found = np.zeros(counts.shape)
    for a, b in zip(rows, rows[1:], strict=False):
        for c, d in zip(columns, columns[1:], strict=False):
            box = counts[a:b, c:d]
            above = float(discrete_laplace(int(box.sum()), half, random_state=source))
            parts = max(1, int(np.ceil((max(above, 0.0) * float(half) / 5) ** 0.5)))
            within = [_edges(size, parts) for size in box.shape]
            sums = np.add.reduceat(box, within[0][:-1], axis=0)
            sums = np.add.reduceat(sums, within[1][:-1], axis=1)
            below = discrete_laplace(sums, half, random_state=source).astype(np.float64)
            # Two measurements of the box, weighted by their precision, as in the paper.
            known = sums.size / (sums.size + 1)
            below += known * (above - below.sum()) / sums.size
            sizes = [np.diff(each) for each in within]
            found[a:b, c:d] = np.repeat(
                np.repeat(below / np.outer(*sizes), sizes[0], axis=0), sizes[1], axis=1
            )
    return found


def _edges(size: int, parts: int) -> NDArray[np.int64]:
    return np.unique(np.arange(parts + 1) * size // parts)


METHODS: dict[str, Method] = {
    "marginals": ours,
    "cells": cells,
    "uniform": uniform,
    "independent": independent,
    "PrivTree": privtree_map,
    "kd-tree": kdtree,
    "adaptive grid": adaptive_grid,
}
MAIN = "marginals"


# --- errors


def range_answers(counts: NDArray[Any], ranges: Counts) -> Floats:
    """Sums over ranges, rows of (first, last, first, last), both ends included."""
    sums = np.zeros([size + 1 for size in counts.shape])
    sums[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    a, b, c, d = ranges.T
    return sums[b + 1, d + 1] - sums[a, d + 1] - sums[b + 1, c] + sums[a, c]


def random_ranges(shape: tuple[int, ...]) -> Counts:
    """The ranges that are asked of a map."""
    generator = np.random.default_rng(20260101)
    codes = [np.sort(generator.integers(0, size, (_QUERIES, 2)), axis=1) for size in shape]
    return np.hstack(codes)


def errors(method: Method, counts: Counts, epsilon: str, seed: int) -> tuple[float, float]:
    """Mean absolute errors of ranges and of cells of one release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        found = method(counts, Fraction(epsilon), seed)
    ranges = random_ranges(counts.shape)
    missed = range_answers(found, ranges) - range_answers(counts, ranges)
    return float(np.abs(missed).mean()), float(np.abs(found - counts).mean())


def measure(
    name: str, counts: Counts, epsilon: str, runs: int, methods: dict[str, Method]
) -> list[dict[str, Any]]:
    """Make ``runs`` releases with each method; one result for each method."""
    rows = []
    for method, release in methods.items():
        begin = time.process_time()
        found = np.array([errors(release, counts, epsilon, seed) for seed in range(runs)])
        spread = found.std(axis=0, ddof=1) / runs**0.5 if runs > 1 else np.zeros(2)
        rows.append(
            {
                "map": name,
                "epsilon": epsilon,
                "method": method,
                "ranges": float(found[:, 0].mean()),
                "cells": float(found[:, 1].mean()),
                "ranges_error": float(spread[0]),
                "cells_error": float(spread[1]),
                "seconds": (time.process_time() - begin) / runs,
            }
        )
    return rows


def lost(rows: list[dict[str, Any]]) -> list[str]:
    """Where another method is better by more than 3% and two standard errors."""
    found = []
    for mine in (row for row in rows if row["method"] == MAIN):
        for row in rows:
            if (row["map"], row["epsilon"]) != (mine["map"], mine["epsilon"]) or row is mine:
                continue
            for kind in ("ranges", "cells"):
                # Where nothing but rounding is left, nobody is better.
                slack = 2 * (mine[f"{kind}_error"] ** 2 + row[f"{kind}_error"] ** 2) ** 0.5 + 1e-6
                if mine[kind] > 1.03 * row[kind] and mine[kind] > row[kind] + slack:
                    found.append(
                        f"{mine['map']}, {mine['epsilon']}, {kind}: {mine[kind]:.4g}, "
                        f"{row['method']} {row[kind]:.4g} ({mine[kind] / max(row[kind], 1e-6):.2f})"
                    )
    return found


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two releases")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--half", choices=("tuning", "report"), help="default both")
    parser.add_argument("--maps", nargs="*", help="names begin with one of these; default all")
    parser.add_argument("--epsilons", nargs="*", default=EPSILONS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    arguments = parser.parse_args()
    maps: dict[str, Counts] = {}
    if arguments.half != "report":
        maps |= generated() | real("tuning")
    if arguments.half != "tuning":
        maps |= real("report")
    methods = {name: METHODS[name] for name in arguments.methods}
    results = []
    print(f"{'map':<24} {'eps':>5} {'method':<14} {'ranges':>18} {'cells':>18} {'CPU s':>6}")
    for name, counts in maps.items():
        if arguments.maps and not name.startswith(tuple(arguments.maps)):
            continue
        for epsilon in arguments.epsilons:
            # Small tables take no time, and few noisy counts decide their errors.
            runs = 2 if arguments.quick else 5 if counts.size > _SMALL else 25
            found = measure(name, counts, epsilon, runs, methods)
            results += found
            for row in found:
                ranges = f"{row['ranges']:.4g} +- {row['ranges_error']:.2g}"
                within = f"{row['cells']:.4g} +- {row['cells_error']:.2g}"
                print(
                    f"{name:<24} {epsilon:>5} {row['method']:<14} {ranges:>18} {within:>18} "
                    f"{row['seconds']:>6.2f}",
                    flush=True,
                )
    worse = lost(results)
    print(*worse, f"{len(worse)} lost", sep="\n")
    _data.write_json(arguments.out, "maps", {"maps": results, "lost": worse})


if __name__ == "__main__":
    main()
