"""Data cubes: errors of eight methods, defaults, means, intervals, time, large cubes.

On Adult's eight categorical columns, if nothing else is said. The error is the variance of a cell
at epsilon 1, the largest or the mean over all cuboids with equal weight. "The seven" are the
methods of Ding et al.: All, Base, BMax, PMost, and the first, third and fourth made consistent by
weighted least squares (AllC, BMaxC, PMostC). PMost uses the threshold that is best for the error
shown. Variances are in closed form, with 2 / epsilon**2 for the noise as in that work. Times are
CPU times of this process.

The default is compared with the default before it, "bmax", on shapes like those of known tables
and on others drawn by a seed; plans depend on shapes alone. "HDMM" is the search of the
High-Dimensional Matrix Mechanism over weights of all cuboids (OPT_M; McKenna et al., 2018), with
L-BFGS from random starts; for the largest variance, of which that work says nothing, the norm of
order 40 is minimised. Means are compared with a cube of sums and a cube of counts at half the
budget each, the way that there was before, on Adult's hours per week. Large cubes have 20 columns,
all cuboids up to three of them, and a million rows.

Run as ``python -m benchmarks.cubes --out cubes.json``; ``--quick`` has fewer releases, and
``--only defaults means`` runs some of the parts.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks import _data
from skdp import Categorical, DataCube, Domain, Numeric
from skdp.datacube.sources import search
from skdp.exceptions import InsecureSeedWarning
from skdp.kernels import cuboids
from skdp.kernels.cuboids import Lattice, Plan

COLUMNS = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "income",
)
SIZES = (9, 16, 7, 15, 6, 5, 2, 2)
SEVEN = ("All", "Base", "BMax", "PMost", "AllC", "BMaxC", "PMostC")
# Largest error of `optimized`, relative to the best of the seven.
BARS = {
    "max": {5: 0.85, 6: 0.80, 7: 0.65, 8: 0.65},
    "mean": {5: 0.8, 6: 0.8, 7: 0.8, 8: 0.8},
}
PLANNING_SECONDS = 20
CONSISTENCY_SECONDS = 5
AGREEMENT = 1e-9


def adult() -> tuple[pd.DataFrame, Domain]:
    """The eight columns, and a domain of the categories that occur."""
    rows = _data.frame("adult")[list(COLUMNS)]
    domain = Domain({name: Categorical(sorted(rows[name].unique())) for name in COLUMNS})
    if domain.shape != SIZES:
        raise SystemExit(f"Adult has the cardinalities {domain.shape}, not {SIZES}.")
    return rows, domain


def variances(cube: Lattice, plan: Plan, consistent: bool) -> NDArray[np.float64]:
    """Cell variance of every cuboid at epsilon 1."""
    noise = np.full(len(cube), np.inf)
    for mask, share in zip(plan.masks, plan.shares, strict=True):
        noise[cube.position[mask]] = 2 / float(share) ** 2
    if consistent:
        return cuboids.blue_variances(cube, noise)
    return cuboids.best_sources(cube, noise)[0]


def pmost_plans(cube: Lattice, n_limits: int = 120) -> list[Plan]:
    """PMost at thresholds from the smallest useful one to one that all cuboids meet."""
    top = variances(cube, cuboids.plan_base(cube), False).max()
    limits = np.geomspace(2, 4 * top, n_limits)
    plans = [cuboids.plan_pmost(cube, limit, lambda s: 2.0 * s**2) for limit in limits]
    return list({plan.masks: plan for plan in plans}.values())


def figure(values: NDArray[np.float64], objective: str) -> float:
    """The largest variance, or the mean."""
    return float(values.max() if objective == "max" else values.mean())


def all_methods(sizes: tuple[int, ...], objective: str) -> dict[str, NDArray[np.float64]]:
    """Cell variances of every cuboid by each of the seven methods and by `optimized`."""
    cube = cuboids.lattice(sizes)
    plans = {
        "All": cuboids.plan_all(cube),
        "Base": cuboids.plan_base(cube),
        "BMax": cuboids.plan_bmax(cube),
    }
    found = {name: variances(cube, plan, False) for name, plan in plans.items()}
    most = pmost_plans(cube)
    for consistent, name in ((False, "PMost"), (True, "PMostC")):
        tried = [variances(cube, plan, consistent) for plan in most]
        found[name] = min(tried, key=lambda values: figure(values, objective))
    for name in ("All", "BMax"):
        found[name + "C"] = variances(cube, plans[name], True)
    weights = np.ones(len(cube)) if objective == "mean" else None
    found["optimized"] = variances(cube, cuboids.plan_optimized(cube, weights), True)
    return found


def hdmm(sizes: tuple[int, ...], objective: str, n_starts: int = 20) -> float:
    """Error after a numerical search over the weights of all cuboids."""
    n = np.array(sizes, dtype=np.float64)
    masks = np.arange(2 ** len(n))
    has = (masks[:, None] >> np.arange(len(n))) % 2 == 1
    summed = np.where(has, 1.0, n).prod(axis=1)
    # Subspaces of the table: of each set of columns, what is constant along the others and sums to
    # 0 along these. A cuboid tells of those of its own columns.
    tells = (masks[:, None] & masks[None, :]) == masks[None, :]
    # Squared length of the part of a cell of each cuboid (row) in each subspace (column).
    rest = np.where(has[:, None] & ~has[None, :], 1 / n, 1.0).prod(axis=2)
    parts = tells * rest * np.where(has, 1 - 1 / n, 1.0).prod(axis=1) * summed[:, None]
    known = tells.T * summed
    order = 1 if objective == "mean" else 40

    def weights(x: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.exp(np.maximum(x - x.max(), -50.0))
        return np.asarray(found / found.sum())

    def error(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        theta = weights(x)
        told = known @ theta**2
        values = parts @ (2 / told)
        relative = (values / values.max()) ** order
        by_value = relative / relative.sum() / values
        slope = -4 * theta * ((by_value @ parts / told**2) @ known)
        norm = np.log(values.max()) + np.log(relative.mean()) / order
        return float(norm), theta * (slope - theta @ slope)

    draws, found = np.random.default_rng(0), []
    for _ in range(n_starts):
        start = draws.normal(0, 2, len(masks))
        options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-13, "gtol": 1e-9}
        best = minimize(error, start, jac=True, method="L-BFGS-B", options=options)
        found.append(figure(parts @ (2 / (known @ weights(best.x) ** 2)), objective))
    return min(found)


def errors() -> list[dict[str, Any]]:
    """Largest and mean variance of each method for the first 4 to 8 columns."""
    rows = []
    for d, objective in itertools.product(range(4, 9), ("max", "mean")):
        found = all_methods(SIZES[:d], objective)
        row: dict[str, Any] = {"dimensions": d, "objective": objective}
        row |= {name: figure(values, objective) for name, values in found.items()}
        row["best of seven"] = min(SEVEN, key=row.__getitem__)
        row["ratio"] = row["optimized"] / row[row["best of seven"]]
        row["HDMM"] = hdmm(SIZES[:d], objective)
        rows.append(row)
        shown = " ".join(f"{row[name]:>9.0f}" for name in (*SEVEN, "HDMM", "optimized"))
        print(f"{d:>4} {objective:<5} {shown}  {row['ratio']:.3f}", flush=True)
    return rows


def planning(domain: Domain) -> dict[str, float]:
    """CPU and wall seconds of planning for eight dimensions, by objective; progress is shown."""
    seconds = {}
    for strategy, objective in itertools.product(("bmax", "optimized"), ("max", "mean")):
        begin, wall = time.process_time(), time.perf_counter()
        DataCube(domain=domain, strategy=strategy, objective=objective, verbose=1).plan()
        seconds[f"{strategy} {objective}"] = time.process_time() - begin
        seconds[f"{strategy} {objective}, wall"] = time.perf_counter() - wall
    return seconds


def consistency(domain: Domain) -> dict[str, float]:
    """CPU seconds of least squares over eight dimensions, by strategy."""
    seconds = {}
    cube = cuboids.lattice(domain.shape)
    rng = np.random.default_rng(0)
    for strategy in ("base", "bmax", "all", "optimized"):
        plan = DataCube(domain=domain, strategy=strategy).plan()
        noise = np.full(len(cube), np.inf)
        tables = {}
        for names, share in plan.sources.items():
            mask = sum(1 << domain.index(name) for name in names)
            noise[cube.position[mask]] = 2 / float(share) ** 2
            tables[mask] = rng.integers(-50, 50, cube.shape(mask))
        begin = time.process_time()
        cuboids.consistent_l2(cube, tables, noise)
        seconds[strategy] = time.process_time() - begin
    return seconds


def disagreement(cube: DataCube) -> float:
    """Largest difference between a cuboid and the sums of the next larger ones."""
    worst = 0.0
    for names, table in cube.tables_.items():
        for axis, name in enumerate(names):
            smaller = cube.tables_[tuple(other for other in names if other != name)]
            worst = max(worst, float(np.abs(table.sum(axis=axis) - smaller).max()))
    return worst


def honesty(
    rows: pd.DataFrame, domain: Domain, runs: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """Mean square error divided by the stated variance, pooled over the cells of each cuboid."""
    names = COLUMNS[:5]
    rows, domain = rows[list(names)], domain.select(names)
    codes = domain.encode(rows)
    table = np.zeros(domain.shape)
    np.add.at(table, tuple(codes.T), 1)
    plan = DataCube(domain=domain, **settings).plan()
    ratios: dict[tuple[str, ...], list[float]] = {}
    for seed in range(runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureSeedWarning)
            release = DataCube(domain=domain, **{**settings, "strategy": plan}, random_state=seed)
            release.fit(rows)
        for key, published in release.tables_.items():
            axes = tuple(axis for axis, name in enumerate(names) if name not in key)
            error = published - table.sum(axis=axes)
            ratios.setdefault(key, []).append(float(np.mean(error**2)) / plan.std_error(key) ** 2)
    mean = np.array([np.mean(each) for each in ratios.values()])
    error = np.array([np.std(each, ddof=1) / runs**0.5 for each in ratios.values()])
    return {
        "settings": " ".join(map(str, settings.values())),
        "cuboids": len(mean),
        "ratio": float(mean.mean()),
        "worst z": float(np.abs((mean - 1) / error).max()),
        "least error": float(error.min()),
    }


# Shapes for plans, like those of known tables with a few bins for each number.
SHAPES = {
    "adult": (9, 16, 7, 15, 6, 5, 2, 2),
    "fertility": (2, 6, 2, 2, 2, 3, 5, 3),
    "diamonds": (5, 7, 8, 10, 10, 10),
    "nltcs": (2,) * 10,
    "electricity": (7, 8, 8, 2),
}
ALMOST = 1 + 1e-9


def shapes(n_drawn: int, seed: int) -> dict[str, tuple[int, ...]]:
    """Shapes like those of known tables, and others drawn by a seed."""
    rng = np.random.default_rng(seed)
    found = dict(SHAPES)
    for number in range(n_drawn):
        d = int(rng.integers(2, 8))
        sizes = np.round(np.exp(rng.uniform(np.log(2), np.log(12), d))).astype(int)
        found[f"drawn {number}"] = tuple(map(int, sizes))
    return found


def defaults(quick: bool, seed: int = 0) -> tuple[Any, list[tuple[str, bool]]]:
    """Errors of the default and of the default before it, and planning with and without a disk."""
    rows = []
    for (name, sizes), objective in itertools.product(
        shapes(4 if quick else 20, seed).items(), ("max", "mean")
    ):
        domain = Domain({f"c{i}": Categorical(range(size)) for i, size in enumerate(sizes)})
        row: dict[str, Any] = {"shape": name, "sizes": sizes, "objective": objective}
        for strategy in ("bmax", "auto"):
            begin = time.process_time()
            plan = DataCube(domain=domain, strategy=strategy, objective=objective).plan()
            row[f"{strategy} seconds"] = time.process_time() - begin
            largest = plan.max_std_error**2
            row[strategy] = largest if objective == "max" else plan.mean_variance
        row["ratio"] = row["auto"] / row["bmax"]
        rows.append(row)
        print(
            f"{name:<12} {objective:<5} bmax {row['bmax']:>9.1f} default {row['auto']:>9.1f} "
            f"ratio {row['ratio']:.3f}, planned in {row['auto seconds']:.1f} s",
            flush=True,
        )
    ratios = [row["ratio"] for row in rows]
    longest = max(row["auto seconds"] for row in rows)
    promised = [
        (
            f"variance of the default over bmax, {len(rows)} plans: geometric mean "
            f"{np.exp(np.mean(np.log(ratios))):.3f}, largest {max(ratios):.3f}, at most 1",
            max(ratios) <= ALMOST,
        ),
        (
            f"longest planning {longest:.1f} s CPU, at most {PLANNING_SECONDS}",
            longest <= PLANNING_SECONDS,
        ),
    ]
    with tempfile.TemporaryDirectory() as place:
        os.environ["SKDP_CACHE_DIR"] = place
        domain = Domain({f"c{i}": Categorical(range(size)) for i, size in enumerate(SIZES)})
        seconds = []
        for _ in range(2):
            search.cache_clear()
            begin = time.process_time()
            DataCube(domain=domain).plan()
            seconds.append(time.process_time() - begin)
        os.environ["SKDP_CACHE_DIR"] = ""
    text = f"eight dimensions planned in {seconds[0]:.1f} s CPU, from disk in {seconds[1]:.2f} s"
    promised.append((f"{text}, at most 0.5", seconds[1] <= 0.5))
    return {"plans": rows, "from disk": seconds}, promised


def means(quick: bool) -> tuple[Any, list[tuple[str, bool]]]:
    """Errors of means of hours per week, and how often their intervals cover."""
    names = ["workclass", "education", "sex", "income"]
    table = _data.frame("adult")[[*names, "hours-per-week"]].astype({"hours-per-week": float})
    domain = Domain(
        {name: Categorical(sorted(table[name].unique())) for name in names}
        | {"hours-per-week": Numeric(0, 100, integer=True)}
    )
    runs, found = 10 if quick else 100, []
    settings = {"domain": domain, "dimensions": names}
    value = {"value": "hours-per-week"}
    for epsilon in (0.1, 1.0):
        # Large cells, of all sizes, and small ones.
        for asked in (["sex"], ["workclass", "sex"], ["education", "income"]):
            truth = table.groupby(asked)["hours-per-week"].mean()
            errors: dict[str, list[Any]] = {"mean": [], "sum over count": []}
            covered, plans = [], {}
            for seed in range(runs):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    cubes = [
                        DataCube(
                            share * epsilon,
                            **settings,
                            measure=measure,
                            **({} if measure == "count" else value),
                            strategy=plans.get(measure, "auto"),
                            random_state=3 * seed + number,
                        ).fit(table)
                        for number, (measure, share) in enumerate(
                            (("mean", 1.0), ("sum", 0.5), ("count", 0.5))
                        )
                    ]
                plans = {cube.measure: cube.plan_ for cube in cubes}
                joint, total, count = (cube.cuboid(asked).set_index(asked) for cube in cubes)
                with np.errstate(divide="ignore", invalid="ignore"):
                    apart = (total["sum"] / count["count"].where(count["count"] > 0)).clip(0, 100)
                errors["mean"].append((joint["mean"].fillna(50) - truth).abs().mean())
                errors["sum over count"].append((apart.fillna(50) - truth).abs().mean())
                cells = truth.sample(3, random_state=seed).index if len(truth) > 3 else truth.index
                for cell in cells:
                    key = cell if isinstance(cell, tuple) else (cell,)
                    query = dict(zip(asked, key, strict=True))
                    result = cubes[0].mean(query=query, return_interval=True)
                    covered.append(result.lower <= truth[cell] <= result.upper)
            row = {"epsilon": epsilon, "asked": asked, "cells": len(truth)}
            row |= {name: float(np.mean(each)) for name, each in errors.items()}
            row |= {"covered": float(np.mean(covered)), "intervals": len(covered)}
            row["ratio"] = row["mean"] / row["sum over count"]
            found.append(row)
            print(
                f"mean hours by {', '.join(asked):<20} epsilon {epsilon:<4g} "
                f"error {row['mean']:.3f}, sum over count {row['sum over count']:.3f}, "
                f"ratio {row['ratio']:.3f}; covered {row['covered']:.3f} of {row['intervals']}",
                flush=True,
            )
    worst = max(row["ratio"] for row in found)
    number = sum(row["intervals"] for row in found)
    share = sum(row["covered"] * row["intervals"] for row in found) / number
    least = 0.95 - 4 * (0.95 * 0.05 / number) ** 0.5
    return found, [
        (f"error of means over that of sums by counts: at most {worst:.3f}, below 1", worst < 1),
        (f"intervals of means cover {share:.4f}, at least {least:.4f}", share >= least),
    ]


def large(quick: bool) -> tuple[Any, list[tuple[str, bool]]]:
    """A million rows of 20 columns, all cuboids up to three of them: seconds and memory."""
    import polars as pl

    n = 100_000 if quick else 1_000_000
    rng = np.random.default_rng(0)
    found, promised = [], []
    for kind, sizes in {"alike": (5,) * 20, "mixed": (2, 3, 4, 6, 10, 2, 8, 5, 4, 3) * 2}.items():
        labels = [[str(code) for code in range(size)] for size in sizes]
        columns = {
            f"c{i}": pd.Categorical.from_codes(
                np.minimum(rng.geometric(0.4, n) - 1, size - 1), categories=labels[i]
            )
            for i, size in enumerate(sizes)
        }
        columns["v"] = rng.uniform(0, 100, n)
        rows = pd.DataFrame(columns)
        lazy = pl.from_pandas(rows).lazy().with_columns(pl.selectors.categorical().cast(pl.String))
        names = {f"c{i}": Categorical(each) for i, each in enumerate(labels)}
        domain = Domain({**names, "v": Numeric(0, 100)})
        for measure, engine in (("count", "memory"), ("mean", "memory"), ("mean", "polars")):
            value = {} if measure == "count" else {"measure": "mean", "value": "v"}
            search.cache_clear()
            cube = DataCube(domain=domain, dimensions=list(names), max_order=3, **value)
            begin, wall = time.process_time(), time.perf_counter()
            plan = cube.plan()
            planned = time.process_time() - begin
            cube.fit(rows if engine == "memory" else lazy)
            row: dict[str, Any] = {"kind": kind, "measure": measure, "engine": engine, "rows": n}
            row |= {"sources": len(plan.sources), "planning": planned}
            row["seconds"] = time.process_time() - begin
            row["wall"] = time.perf_counter() - wall
            row["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            found.append(row)
            text = (
                f"20 columns {kind}, {n:,} rows, cube of {measure}s, {engine}: "
                f"{row['seconds']:.1f} s CPU ({planned:.1f} s planning), {row['gigabytes']:.2f} GB"
            )
            kept = row["seconds"] <= 30 and row["gigabytes"] <= 4
            promised.append((f"{text}, at most 30 and 4", kept))
            print(text, flush=True)
    return found, promised


PARTS: dict[str, Callable[[bool], tuple[Any, list[tuple[str, bool]]]]] = {
    "defaults": defaults,
    "means": means,
    "large": large,
}


def methods(quick: bool) -> tuple[Any, list[tuple[str, bool]]]:
    """Eight methods on Adult: errors, seconds, honesty of standard errors, agreement."""
    rows, domain = adult()

    print("cell variance at epsilon 1, first d columns; ratio of optimized to the best of seven")
    print(
        "   d       " + " ".join(f"{name:>9}" for name in (*SEVEN, "HDMM", "optimized")) + "  ratio"
    )
    table = errors()
    promised = []
    for row in table:
        bar = BARS[row["objective"]].get(row["dimensions"])
        if bar is not None:
            text = (
                f"d={row['dimensions']} {row['objective']}: optimized {row['optimized']:.0f} is "
                f"{row['ratio']:.3f} of {row['best of seven']} {row[row['best of seven']]:.0f}, "
                f"at most {bar:g}"
            )
            promised.append((text, row["ratio"] <= bar))
        text = f"d={row['dimensions']} {row['objective']}: optimized over HDMM's search"
        reached = row["optimized"] / row["HDMM"]
        promised.append((f"{text} {reached:.3f}, at most 1.05", reached <= 1.05))

    plan_seconds = planning(domain)
    for name, seconds in plan_seconds.items():
        if "wall" not in name:
            wall = plan_seconds[name + ", wall"]
            text = f"planning 8 dimensions, {name}: {seconds:.1f} s CPU ({wall:.1f} s wall)"
            promised.append((f"{text}, at most {PLANNING_SECONDS}", seconds <= PLANNING_SECONDS))
    l2_seconds = consistency(domain)
    for name, seconds in l2_seconds.items():
        text = f"L2 consistency of 8 dimensions, sources of {name}: {seconds:.2f} s CPU"
        promised.append((f"{text}, below {CONSISTENCY_SECONDS}", seconds < CONSISTENCY_SECONDS))

    runs = 30 if quick else 200
    honest = []
    for settings in (
        {"strategy": "bmax", "consistency": "l2"},
        {"strategy": "optimized", "consistency": "l2"},
        {"strategy": "bmax", "consistency": None},
    ):
        result = honesty(rows, domain, runs, settings)
        honest.append(result)
        # If all is correct, the largest |z| of the 32 ratios exceeds 4.5 with probability 2e-4.
        text = (
            f"standard errors, {result['settings']}: {runs} releases, mean ratio of squares "
            f"{result['ratio']:.4f}, largest |z| of {result['cuboids']} cuboids "
            f"{result['worst z']:.2f}, at most 4.5"
        )
        promised.append((text, result["worst z"] <= 4.5))

    differences = {}
    for strategy in ("bmax", "optimized"):
        begin = time.process_time()
        release = DataCube(domain=domain, strategy=strategy).fit(rows)
        seconds = time.process_time() - begin
        differences[strategy] = disagreement(release)
        print(f"published all 256 cuboids, {strategy}: {seconds:.1f} s CPU", file=sys.stderr)
        text = f"cuboids of 8 dimensions are consistent, {strategy}: {differences[strategy]:.1e}"
        promised.append((f"{text}, at most {AGREEMENT:g}", differences[strategy] <= AGREEMENT))
    return {
        "errors": table,
        "planning": plan_seconds,
        "consistency": l2_seconds,
        "standard errors": honest,
        "disagreement": differences,
    }, promised


def main() -> None:
    """Print the results and whether they meet the targets, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer releases")
    parser.add_argument("--only", nargs="+", choices=["methods", *PARTS], help="some parts")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    # Every plan is searched for.
    os.environ["SKDP_CACHE_DIR"] = ""
    results, promised = {}, []
    for name, part in {"methods": methods, **PARTS}.items():
        if arguments.only is None or name in arguments.only:
            results[name], more = part(arguments.quick)
            promised += more
    for promise, kept in promised:
        print(f"{'yes' if kept else 'NO':<4} {promise}")
    results["bars"] = promised
    _data.write_json(arguments.out, "cubes", results)


if __name__ == "__main__":
    main()
