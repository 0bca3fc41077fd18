"""Figures 4 and 5 of the GBLUE paper (CLOUDCOM-ASIA 2013): running time, and error of ranges.

The paper counts accesses to a web shop on 2,010 days (716,064 in all) and compares its iterative
estimate on a near-balanced tree of branching 12 with the closed form of Hay et al. on perfect
trees of branching 2 and 12, padded with empty days. That data set is not available; simulated
daily counts with a trend, a weekly and a yearly cycle replace it. The results do not depend on
them: all these estimates are unbiased and linear, so their errors come from the noise alone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.reproduce import Finding, panels, save
from skdp import Numeric, RangeTreeHistogram, hierarchy
from skdp.hierarchy import Blue, Tree

N_DAYS = 2010
N_RECORDS = 716_064
TOLERANCES = (1e-3, 1e-6)
EPSILONS = (0.01, 0.1, 1.0)
COLOURS = {
    "Boost-2": "#b5694a",
    "Boost-12": "#d6a84f",
    "GBLUE-12": "#31688e",
    "RangeTreeHistogram": "#1b1b1b",
}


class Method(NamedTuple):
    """A tree over the days, its noise, and how it is made consistent."""

    tree: Tree
    variances: NDArray[np.float64]
    estimate: Callable[[NDArray[Any]], NDArray[np.float64]]


def daily_counts() -> NDArray[np.int64]:
    """Records of each day."""
    day = np.arange(N_DAYS)
    rate = (1 + day / 700) * (1 + 0.25 * np.sin(2 * np.pi * day / 365.25))
    rate *= np.where(day % 7 < 5, 1.1, 0.75)
    return np.random.default_rng(2013).multinomial(N_RECORDS, rate / rate.sum()).astype(np.int64)


def methods(epsilon: float, tolerance: float = 1e-6) -> dict[str, Method]:
    """The three methods of the paper, every level with the same share of epsilon."""
    trees = {
        "Boost-2": hierarchy.perfect_tree(2, 11),
        "Boost-12": hierarchy.perfect_tree(12, 4),
        "GBLUE-12": hierarchy.balanced_tree(N_DAYS, 12),
    }
    found = {}
    for name, tree in trees.items():
        share = np.full(tree.n_nodes, 10**6 // tree.n_levels)
        variances = hierarchy.measured_variances(share, Fraction(str(epsilon)))
        estimate = (
            partial(_sweeps, tree, tolerance)
            if name == "GBLUE-12"
            else partial(hierarchy.boost, branching=int(name.split("-")[1]))
        )
        found[name] = Method(tree, variances, estimate)
    return found


def _sweeps(tree: Tree, tolerance: float, values: NDArray[Any]) -> NDArray[np.float64]:
    return hierarchy.gblue(tree, values, tol=tolerance)[0]


def release(
    method: Method, counts: NDArray[np.int64], epsilon: float, seed: int
) -> NDArray[np.int64]:
    """Noisy counts of all nodes."""
    bins = np.zeros(method.tree.n_bins, dtype=np.int64)
    bins[: len(counts)] = counts
    share = np.full(method.tree.n_nodes, 10**6 // method.tree.n_levels)
    budget = Fraction(str(epsilon))
    return hierarchy.measure(method.tree, bins, share, budget, random_state=seed)


def figure_4(out_dir: Path, quick: bool) -> Finding:
    """Time of making one release consistent, against epsilon."""
    counts = daily_counts()
    rows = []
    for epsilon in EPSILONS:
        for name, method in methods(epsilon).items():
            noisy = [release(method, counts, epsilon, seed) for seed in range(5 if quick else 50)]
            ways = {"": method.estimate}
            if name == "GBLUE-12":
                blue = Blue(method.tree, method.variances)
                ways = {
                    f", tolerance {tolerance:g}": methods(epsilon, tolerance)[name].estimate
                    for tolerance in TOLERANCES
                } | {", two passes": blue.estimate}
            for way, estimate in ways.items():
                estimate(noisy[0])
                seconds = []
                for values in noisy:
                    begin = time.process_time()
                    estimate(values)
                    seconds.append(time.process_time() - begin)
                sweeps = 1.0
                if "tolerance" in way:
                    tolerance = float(way.split()[-1])
                    sweeps = statistics.fmean(
                        hierarchy.gblue(method.tree, values, tol=tolerance)[1] for values in noisy
                    )
                # What other programs on the machine do shows in the median.
                fastest = 1e3 * float(np.quantile(seconds, 0.1))
                rows.append((name + way, name, epsilon, fastest, sweeps))
    table = pd.DataFrame(rows, columns=["method", "tree", "epsilon", "cpu_ms", "sweeps"])

    figure, ax = panels(size=(7.0, 4.2), dpi=150)
    marks = {"tolerance 0.001": ":", "tolerance 1e-06": "--", "two passes": "-"}
    for label, each in table.groupby("method", sort=False):
        style = next((mark for text, mark in marks.items() if text in label), "-")
        colour = COLOURS["RangeTreeHistogram" if "passes" in label else each["tree"].iloc[0]]
        ax.plot(each["epsilon"], each["cpu_ms"], style, marker="o", ms=4, color=colour, label=label)
    ax.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="CPU for one estimate, ms")
    ax.set_title("Making the noisy tree consistent: 2,010 days", loc="left", fontsize=11)
    ax.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
    ax.set_ylim(table["cpu_ms"].min() / 1.5, table["cpu_ms"].max() * 1.5)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    save(out_dir, "gblue_figure_4", figure, table)

    mean = table.groupby("method")["cpu_ms"].mean()
    loose, tight = (mean[f"GBLUE-12, tolerance {tolerance:g}"] for tolerance in TOLERANCES)
    passes = mean["GBLUE-12, two passes"]
    sweeps = table.groupby("method")["sweeps"].mean()
    few, many = (sweeps[f"GBLUE-12, tolerance {tolerance:g}"] for tolerance in TOLERANCES)
    closed = table[table["tree"] != "GBLUE-12"].pivot(
        index="method", columns="epsilon", values="cpu_ms"
    )
    steady = bool((closed.max(axis=1) < 2 * closed.min(axis=1)).all())
    return Finding(
        "the sweeps of GBLUE take longer at a smaller tolerance, and the time of the closed forms "
        "does not depend on epsilon.",
        f"{few:.1f} sweeps ({loose:.2f} ms) at 1e-3 and {many:.1f} ({tight:.2f} ms) at 1e-6; "
        f"closed forms {mean['Boost-2']:.2f} and {mean['Boost-12']:.2f} ms. Two passes on the same "
        f"tree give the limit of the sweeps without a tolerance in {passes:.2f} ms, "
        f"{tight / passes:.0f} times as fast.",
        {
            "more sweeps at 1e-6 than at 1e-3": many > few,
            "they take longer by a quarter or more": tight >= 1.25 * loose,
            "time of the closed forms within a factor of two over epsilon": steady,
        },
    )


def figure_5(out_dir: Path, quick: bool) -> Finding:
    """Mean squared error of random ranges, against their length."""
    counts, epsilon = daily_counts(), 1.0
    rng = np.random.default_rng(5)
    lengths = [2**i for i in range(11)]
    starts = {n: rng.integers(0, N_DAYS - n + 1, 500) for n in lengths}
    runs = 5 if quick else 50
    rows = []
    for name, method in methods(epsilon).items():
        errors = []
        for seed in range(runs):
            x = method.estimate(release(method, counts, epsilon, seed))
            errors.append(x[method.tree.leaves[:N_DAYS]] - counts)
        blue = Blue(method.tree, method.variances)
        rows += _errors(name, errors, starts, blue)
    days = np.repeat(np.arange(N_DAYS), counts)
    public = {"epsilon": epsilon, "domain": Numeric(0, N_DAYS, N_DAYS)}
    ours = [RangeTreeHistogram(**public, random_state=seed).fit(days) for seed in range(runs)]
    errors = [each.to_frame()["count"].to_numpy() - counts for each in ours]
    rows += _errors("RangeTreeHistogram", errors, starts, ours[0].blue_)
    table = pd.DataFrame(rows, columns=["method", "length", "mse", "closed_form"])

    figure, ax = panels(size=(7.0, 4.2), dpi=150)
    for name, each in table.groupby("method", sort=False):
        ax.plot(each["length"], each["closed_form"], color=COLOURS[name], lw=1.2)
        ax.plot(each["length"], each["mse"], "o", ms=5, color=COLOURS[name])
        last = each.iloc[-1]
        ax.annotate(
            name,
            (last["length"], last["closed_form"]),
            xytext=(8, {"Boost-12": 5, "GBLUE-12": -5}.get(name, 0)),
            textcoords="offset points",
            va="center",
            color=COLOURS[name],
        )
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", xlabel="length of the range, days", ylabel="mean squared error")
    ax.set_title(
        "Random ranges at epsilon 1: measured (dots) and closed form (lines)",
        loc="left",
        fontsize=11,
    )
    save(out_dir, "gblue_figure_5", figure, table)

    wide = table.pivot(index="length", columns="method", values="closed_form")
    mean = table.groupby("method")["mse"].mean()
    best = (wide["GBLUE-12"] <= wide[["Boost-2", "Boost-12"]].min(axis=1)).sum()
    worst = (wide["Boost-2"] >= wide[["GBLUE-12", "Boost-12"]].max(axis=1)).sum()
    return Finding(
        "GBLUE-12 is the most accurate and Boost-2 the least accurate.",
        f"GBLUE-12 is the best of the three at {best} of {len(wide)} lengths and Boost-2 the worst "
        f"at {worst}; mean squared errors over the lengths {mean['Boost-2']:.0f} (Boost-2), "
        f"{mean['Boost-12']:.0f} (Boost-12), {mean['GBLUE-12']:.0f} (GBLUE-12). The default of "
        "RangeTreeHistogram, which does not measure every level: "
        f"{mean['RangeTreeHistogram']:.0f}.",
        {
            "GBLUE-12 is the best in closed form at every length": bool(best == len(wide)),
            "Boost-2 is the worst in closed form at every length": bool(worst == len(wide)),
        },
    )


def _errors(
    name: str, errors: list[NDArray[np.float64]], starts: dict[int, NDArray[Any]], blue: Blue
) -> list[tuple[str, int, float, float]]:
    """Mean squared errors of random ranges of each length, and their closed form."""
    before = np.concatenate([np.zeros((len(errors), 1)), np.cumsum(errors, axis=1)], axis=1)
    return [
        (
            name,
            length,
            float(np.mean((before[:, start + length] - before[:, start]) ** 2)),
            float(blue.range_variances(start, start + length).mean()),
        )
        for length, start in starts.items()
    ]


FIGURES = {"gblue_figure_4": figure_4, "gblue_figure_5": figure_5}
