"""Figures of the slides on data cubes (SIGMOD 2011): error by dimensions, cuboid, size, and time.

Methods: All, Base, BMax, PMost, and All, BMax, PMost made consistent (a C at the end), each as in
the slides, and `DataCube`'s "optimized". Errors are variances of a cell at epsilon 1, in closed
form; they depend only on the sizes of the dimensions. PMost has the threshold that is best for the
figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _data
from benchmarks.reproduce import Finding, panels, save
from skdp import Categorical, Domain
from skdp.algorithms import cuboids
from skdp.algorithms.cuboids import Lattice, Plan
from skdp.mechanisms import discrete_laplace
from skdp.tables import CountTable

COLUMNS = (
    "workclass", "education", "marital-status", "occupation",
    "relationship", "race", "sex", "income",
)  # fmt: skip
SIZES = (9, 16, 7, 15, 6, 5, 2, 2)
SEVEN = ("All", "Base", "BMax", "PMost", "AllC", "BMaxC", "PMostC")
METHODS = (*SEVEN, "optimized")
# Two of a pair have the same colour; the consistent one is solid.
COLOURS = {
    "All": "#7a7a7a",
    "Base": "#b5694a",
    "BMax": "#31688e",
    "PMost": "#5a9e6f",
    "optimized": "#1b1b1b",
}
TITLES = {"max": "largest", "mean": "mean over the cuboids"}


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


def pmost_plans(cube: Lattice, n_limits: int = 60) -> list[Plan]:
    """PMost at thresholds from the smallest useful one to one that all cuboids meet."""
    top = variances(cube, cuboids.plan_base(cube), False).max()
    limits = np.geomspace(2, 4 * top, n_limits)
    plans = [cuboids.plan_pmost(cube, limit, lambda s: 2.0 * s**2) for limit in limits]
    return list({plan.masks: plan for plan in plans}.values())


@cache
def _candidates(sizes: tuple[int, ...]) -> dict[str, list[NDArray[np.float64]]]:
    """Cell variances of every cuboid by each plan of the seven methods, which figures share."""
    cube = cuboids.lattice(sizes)
    plans = {
        "All": [cuboids.plan_all(cube)],
        "Base": [cuboids.plan_base(cube)],
        "BMax": [cuboids.plan_bmax(cube)],
        "PMost": pmost_plans(cube),
    }
    found = {name: [variances(cube, plan, False) for plan in some] for name, some in plans.items()}
    del plans["Base"]
    return found | {
        f"{name}C": [variances(cube, plan, True) for plan in some] for name, some in plans.items()
    }


def figure(values: NDArray[np.float64], objective: str) -> float:
    """The largest variance, or the mean."""
    return float(values.max() if objective == "max" else values.mean())


def all_methods(sizes: tuple[int, ...], objective: str) -> dict[str, NDArray[np.float64]]:
    """Cell variances of every cuboid by each of the seven methods and by `optimized`."""
    cube = cuboids.lattice(sizes)
    found = {
        name: min(tried, key=lambda values: figure(values, objective))
        for name, tried in _candidates(sizes).items()
    }
    weights = np.ones(len(cube)) if objective == "mean" else None
    found["optimized"] = variances(cube, cuboids.plan_optimized(cube, weights), True)
    return found


def dimensions(out_dir: Path, quick: bool) -> Finding:
    """Largest and mean error for the first 4 to 8 columns of Adult."""
    rows = [
        (objective, d, method, figure(values, objective))
        for objective in TITLES
        for d in (range(4, 7) if quick else range(4, 9))
        for method, values in all_methods(SIZES[:d], objective).items()
    ]
    table = pd.DataFrame(rows, columns=["error", "dimensions", "method", "variance"])
    drawn = _panels(table, "dimensions", "dimensions, Adult's first")
    save(out_dir, "cubes_dimensions", drawn, table)
    return _ranking(table, "dimensions", "numbers of dimensions")


def cuboid_orders(out_dir: Path, quick: bool) -> Finding:
    """Largest error of the cuboids of each number of dimensions, for all columns of Adult."""
    sizes = SIZES[:6] if quick else SIZES
    orders = np.array([int(mask).bit_count() for mask in cuboids.lattice(sizes).masks])
    rows = []
    for objective in TITLES:
        for method, values in all_methods(sizes, objective).items():
            for order in range(len(sizes) + 1):
                rows.append((objective, order, method, float(values[orders == order].max())))
    columns = ["chosen_for", "order", "method", "largest_variance"]
    table = pd.DataFrame(rows, columns=columns)
    shown = table.rename(columns={"chosen_for": "error", "largest_variance": "variance"})
    titles = {"max": "chosen for the largest error", "mean": "chosen for the mean error"}
    drawn = _panels(shown, "order", "dimensions of the cuboid", titles)
    save(out_dir, "cubes_cuboids", drawn, table)
    worst = table[table["chosen_for"] == "max"].pivot(
        index="order", columns="method", values="largest_variance"
    )
    base = worst["Base"]
    rises = bool((base.diff().dropna() <= 0).all())
    return Finding(
        "with Base, noise adds up in small cuboids; with All, it is the same in every cuboid; BMax "
        "lies between.",
        f"the error of Base falls from {base.iloc[0]:.3g} in the total to {base.iloc[-1]:.3g} in "
        f"the base, that of All is {worst['All'].max():.3g} everywhere, and BMaxC stays between "
        f"{worst['BMaxC'].min():.3g} and {worst['BMaxC'].max():.3g}; optimized reaches "
        f"{worst['optimized'].max():.3g} at most.",
        {
            "the error of Base never rises with the dimensions of the cuboid": rises,
            "that of All is the same everywhere": bool(np.ptp(worst["All"]) <= 1e-9 * base.max()),
            "the largest of BMax is at most that of All and of Base": bool(
                worst["BMax"].max() <= min(worst["All"].max(), base.max()) * (1 + 1e-9)
            ),
        },
    )


def cardinalities(out_dir: Path, quick: bool) -> Finding:
    """Largest and mean error of seven dimensions of equal size, against the size."""
    rows = [
        (objective, size, method, figure(values, objective))
        for objective in TITLES
        for size in ((2, 4) if quick else (2, 3, 4, 6, 8, 10))
        for method, values in all_methods((size,) * 7, objective).items()
    ]
    table = pd.DataFrame(rows, columns=["error", "cardinality", "method", "variance"])
    drawn = _panels(table, "cardinality", "values of each of 7 dimensions")
    save(out_dir, "cubes_cardinalities", drawn, table)
    return _ranking(table, "cardinality", "cardinalities")


def seconds(out_dir: Path, quick: bool) -> Finding:
    """CPU for publishing all cuboids of Adult, against the number of dimensions."""
    table = _times(quick)
    total = table.groupby(["method", "dimensions"], sort=False)["cpu_s"].sum().reset_index()
    drawn, ax = panels(size=(7.1, 4.2), dpi=150)
    for method, each in total.groupby("method", sort=False):
        _line(ax, each["dimensions"], each["cpu_s"], method)
    ax.set(yscale="log", xlabel="dimensions, Adult's first", ylabel="CPU seconds")
    ax.set_title("Publishing all cuboids", loc="left", fontsize=11)
    ax.set_xticks(sorted(total["dimensions"].unique()))
    drawn.legend(loc="outside right center", frameon=False)
    save(out_dir, "cubes_time", drawn, total)
    most = total.loc[total["cpu_s"].idxmax()]
    last = total[total["dimensions"] == total["dimensions"].max()].set_index("method")["cpu_s"]
    extra = last["AllC"] / last["All"]
    steps = table[(table["method"] == "AllC") & (table["part"] == "computing cuboids")]
    steps = steps.set_index("dimensions")["cpu_s"]
    cells = {d: int(np.prod([size + 1 for size in SIZES[:d]])) for d in steps.index}
    first, final = steps.index[-3], steps.index[-1]
    longer, more = steps[final] / steps[first], cells[final] / cells[first]
    return Finding(
        "consistency by least squares takes time linear in the number of cells.",
        f"from {first} to {final} dimensions the cells of all cuboids grow {more:.1f} times and "
        f"the time of least squares {longer:.1f} times. All cuboids are published in at most "
        f"{most['cpu_s']:.1f} CPU seconds ({most['method']}, {most['dimensions']} dimensions), "
        f"and AllC takes {extra:.1f} times as long as All.",
        {
            "the time of least squares grows at most 1.25 times as fast as the cells": bool(
                longer <= 1.25 * more
            )
        },
    )


def seconds_of_parts(out_dir: Path, quick: bool) -> Finding:
    """CPU of planning, measuring and making consistent, for the largest cube."""
    table = _times(quick)
    table = table[table["dimensions"] == table["dimensions"].max()]
    wide = table.pivot(index="method", columns="part", values="cpu_s").loc[list(METHODS)]
    drawn, ax = panels(size=(7.1, 4.2), dpi=150)
    parts = {"planning": "#31688e", "measuring": "#d6a84f", "computing cuboids": "#5a9e6f"}
    for number, (part, colour) in enumerate(parts.items()):
        places = np.arange(len(wide)) + 0.27 * (number - 1)
        # A logarithmic axis cannot show times near zero.
        shown = np.maximum(wide[part].to_numpy(), 1e-3)
        ax.barh(places, shown, height=0.25, color=colour, label=part)
    ax.set_yticks(np.arange(len(wide)), wide.index)
    ax.set_xscale("log")
    ax.set_xlim(left=1e-3)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("CPU seconds, from a millisecond")
    most = table["dimensions"].iloc[0]
    ax.set_title(f"Subroutines, {most} dimensions of Adult", loc="left", fontsize=11)
    drawn.legend(loc="outside right center", frameon=False)
    save(out_dir, "cubes_time_parts", drawn, table)
    search = wide.loc["optimized", "planning"]
    least_squares = wide.loc[["AllC", "BMaxC", "PMostC", "optimized"], "computing cuboids"].max()
    return Finding(
        "the slides plot the time of each subroutine.",
        f"planning takes {wide.loc['BMax', 'planning']:.2f} s for BMax and {search:.1f} s for "
        f"optimized, which the slides do not have; measuring at most "
        f"{wide['measuring'].max():.2f} s, and weighted least squares at most "
        f"{least_squares:.2f} s.",
        {},
        "our text of the slides has no drawing, no value and no sentence about these times",
    )


_measured_times: dict[bool, pd.DataFrame] = {}


def _times(quick: bool) -> pd.DataFrame:
    """CPU of each part of publishing, measured once for both figures."""
    if quick in _measured_times:
        return _measured_times[quick]
    rows, domain = adult()
    codes = domain.encode(rows)
    results = []
    for d in range(4, 7) if quick else range(4, 9):
        cube = cuboids.lattice(SIZES[:d])
        base = 2 * float(cube.cells.max())
        planners: dict[str, tuple[Any, ...]] = {
            "All": (cuboids.plan_all, cube),
            "Base": (cuboids.plan_base, cube),
            "BMax": (cuboids.plan_bmax, cube),
            "PMost": (cuboids.plan_pmost, cube, base**0.5, lambda s: 2.0 * s**2),
            "optimized": (cuboids.plan_optimized, cube),
        }
        table = CountTable.from_codes(codes[:, :d], cube.sizes)
        for name, planner in planners.items():
            plan, planning = _timed(*planner)
            noise = np.full(len(cube), np.inf)
            for mask, share in zip(plan.masks, plan.shares, strict=True):
                noise[cube.position[mask]] = 2 / float(share) ** 2
            noisy, measuring = _timed(_measure, table, plan)
            ways = {name: cuboids.derive, name + "C": cuboids.consistent_l2}
            if name == "Base":
                del ways["BaseC"]
            if name == "optimized":
                ways = {name: cuboids.consistent_l2}
            for method, way in ways.items():
                # The fastest of three, because other programs take part of the machine.
                computing = min(_timed(way, cube, noisy, noise)[1] for _ in range(3))
                parts = {
                    "planning": planning,
                    "measuring": measuring,
                    "computing cuboids": computing,
                }
                results += [(method, d, part, cpu) for part, cpu in parts.items()]
    columns = ["method", "dimensions", "part", "cpu_s"]
    _measured_times[quick] = pd.DataFrame(results, columns=columns)
    return _measured_times[quick]


def _measure(table: CountTable, plan: cuboids.Plan) -> dict[int, Any]:
    """Noisy tables of the sources at epsilon 1."""
    return {
        mask: discrete_laplace(table.dense(cuboids.dimensions_of(mask)), share)
        for mask, share in zip(plan.masks, plan.shares, strict=True)
    }


def _timed(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    begin = time.process_time()
    result = work(*arguments)
    return result, time.process_time() - begin


def _ranking(table: pd.DataFrame, by: str, what: str) -> Finding:
    """What the slides show, and whether it holds here."""
    texts, checks = [], {}
    for objective, title in TITLES.items():
        wide = table[table["error"] == objective].pivot(
            index=by, columns="method", values="variance"
        )
        beats = (wide["BMax"] <= wide[["All", "Base"]].min(axis=1) * (1 + 1e-9)).sum()
        gains = {
            name: int((wide[f"{name}C"] <= wide[name] * (1 + 1e-9)).sum())
            for name in ("All", "BMax", "PMost")
        }
        best = wide[list(SEVEN)].idxmin(axis=1)
        ratio = wide["optimized"] / wide[list(SEVEN)].min(axis=1)
        if objective == "max":
            rule = "the largest error of BMax is at most that of All and of Base, everywhere"
            checks[rule] = bool(beats == len(wide))
        checks[f"least squares never raises the variance of All, BMax and PMost, {title}"] = all(
            gained == len(wide) for gained in gains.values()
        )
        texts.append(
            f"{title}: BMax is at most the better of All and Base at {beats} of {len(wide)} "
            f"{what}, and least squares does not hurt All, BMax and PMost at "
            f"{', '.join(map(str, gains.values()))}; the best of the seven is "
            f"{', '.join(best.tolist())}; the variance of optimized is {ratio.min():.2f} to "
            f"{ratio.max():.2f} times as large"
        )
    return Finding(
        "the largest variance is smaller than with All or Base if the cuboids are chosen by BMax, "
        "and least squares gives the smallest variance of all linear unbiased estimates.",
        ". ".join(texts) + ".",
        checks,
    )


def _panels(table: pd.DataFrame, by: str, label: str, titles: dict[str, str] | None = None) -> Any:
    titles = titles or {
        "max": "largest cell variance",
        "mean": "cell variance, mean over the cuboids",
    }
    drawn, axes = panels(2, (11.0, 4.2), dpi=150)
    for ax, (objective, title) in zip(axes, titles.items(), strict=True):
        shown = table[table["error"] == objective]
        for method in METHODS:
            each = shown[shown["method"] == method]
            _line(ax, each[by], each["variance"], method)
        ax.set(yscale="log", xlabel=label)
        ax.set_xticks(sorted(table[by].unique()))
        ax.set_title(title, loc="left", fontsize=11)
    axes[0].set_ylabel("variance at epsilon 1")
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return drawn


def _line(ax: Any, x: Any, y: Any, method: str) -> None:
    own = method in ("Base", "optimized")
    ax.plot(
        x,
        y,
        "-" if own or method.endswith("C") else "--",
        marker="s" if method == "optimized" else "o",
        ms=4,
        lw=2.0 if method == "optimized" else 1.2,
        color=COLOURS[method if own else method.removesuffix("C")],
        label=method,
    )


FIGURES = {
    "cubes_dimensions": dimensions,
    "cubes_cuboids": cuboid_orders,
    "cubes_cardinalities": cardinalities,
    "cubes_time": seconds,
    "cubes_time_parts": seconds_of_parts,
}
