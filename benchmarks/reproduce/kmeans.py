"""Figures 4.1 to 4.8 and tables 4.3 to 4.5 of Su's dissertation (Purdue 2016), k-means.

Its names: DPLloyd is "lloyd", DPLloyd-Impr "lloyd-improved", EUGkM "extended-grid", UGkM
"uniform-grid", MkM "m-estimator", PGkM "genetic", GkM "sample-aggregate". NICV is the mean squared
distance of a row to its nearest centroid. Of its six data sets, S1, Adult and the check-ins are
available; three Gaussian clusters in ten dimensions replace Lifesci, and TIGER and Image are left
out. There are fewer repetitions than its 100 to 3,000.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from benchmarks import _data
from benchmarks.kmeans import best_nicv, blobs, nicv, private_fit
from benchmarks.reproduce import MARKERS, TIE, UNTESTED, Finding, named, panels, save
from skdp._random import noise_source, sampling_generator
from skdp.algorithms.kmeans.algorithms import ALGORITHMS, block_centroids, genetic, sample_aggregate
from skdp.algorithms.kmeans.lloyd import Task, ray_turi
from skdp.mechanisms import discrete_laplace

_CODES = 2**20
# The dissertation's name, colour and marker of each algorithm.
_STYLES = {
    "lloyd": ("DPLloyd", "#d6a84f", "o"),
    "lloyd-improved": ("DPLloyd-Impr", "#b5694a", "s"),
    "extended-grid": ("EUGkM", "#35b779", "^"),
    "uniform-grid": ("UGkM", "#b5de2b", "v"),
    "m-estimator": ("MkM", "#8f8f8f", "D"),
    "genetic": ("PGkM", "#a05195", "*"),
    "sample-aggregate": ("GkM", "#c9c9c9", "x"),
    "hybrid": ("Hybrid", "#31688e", "P"),
    "auto": ("auto (ours)", "#1b1b1b", "."),
}
_NAMES = {algorithm: name for algorithm, (name, _, _) in _STYLES.items()}


@cache
def _sets(quick: bool) -> dict[str, tuple[NDArray[np.float64], int]]:
    """Rows in [-1, 1] and number of clusters by name of the dissertation."""
    data = {
        "S1": (np.asarray(_data.kmeans_set("s1_privkmeans")["X"], dtype=np.float64), 15),
        "Check-ins": (np.asarray(_data.kmeans_set("checkin")["X"], dtype=np.float64), 5),
        "Adult-num": (np.asarray(_data.kmeans_set("adult_numeric")["X"], dtype=np.float64), 5),
        "Gauss-10d": (np.asarray(_data.kmeans_set("gauss10d_k3")["X"], dtype=np.float64), 3),
    }
    return {name: data[name] for name in (("S1", "Check-ins") if quick else data)}


def _decode(codes: NDArray[Any]) -> NDArray[np.float64]:
    return (codes + 0.5) * 2 / _CODES - 1


def _task(
    X: NDArray[np.float64], k: int, parts: dict[str, Any], seed: int, **settings: Any
) -> Task:
    """The kernels' view of rows in [-1, 1]; its number of records counts as public."""
    source = noise_source(seed)
    points = np.clip((X + 1) / 2 * _CODES, 0, _CODES - 1).astype(np.int32)
    budget = {name: Fraction(str(epsilon)) for name, epsilon in parts.items()}
    generator = sampling_generator(source)
    shape = (_CODES,) * X.shape[1]
    return Task(points, shape, (k,), budget, len(X), 10, 5, None, source, generator, **settings)


def _panels(n: int) -> tuple[Any, Any]:
    rows = 2 if n > 4 else 1
    return panels(n, (3.6 * n / rows + 1, 3.4 * rows), grid=False, rows=rows)


def _save(out: Path, name: str, figure: Any, rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    save(out, name, figure, table)
    return table


def _verdict(holds: bool, claim: str, rule: str, seen: str) -> Finding:
    return Finding(claim, seen, {rule: bool(holds)})


def _better(ratio: float) -> bool | str:
    """Whether an error is smaller than another by a tenth; TIE if they differ by less."""
    return TIE if 1 / 1.1 <= ratio <= 1.1 else bool(ratio < 1)


def _curves(
    out: Path, name: str, algorithms: tuple[str, ...], quick: bool, epsilons: tuple[float, ...]
) -> pd.DataFrame:
    """NICV against epsilon, one panel for each data set."""
    sets = _sets(quick)
    figure, axes = _panels(len(sets))
    rows = []
    for ax, (data, (X, k)) in zip(axes, sets.items(), strict=True):
        best = best_nicv(X, k)
        for algorithm in algorithms:
            means = []
            for epsilon in epsilons:
                means.append(_mean_error(data, quick, algorithm, epsilon))
                rows.append(
                    {"data": data, "method": _NAMES[algorithm], "epsilon": epsilon}
                    | {"nicv": means[-1], "best": best}
                )
            label, colour, marker = _STYLES[algorithm]
            ax.plot(epsilons, means, marker=marker, markersize=4, color=colour, label=label)
        ax.axhline(best, color="0.5", linestyle="--", linewidth=0.8)
        ax.set(xscale="log", yscale="log", title=data, xlabel="epsilon")
    axes[0].set_ylabel("NICV (dashed: without privacy)")
    axes[-1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return _save(out, name, figure, rows)


@cache
def _mean_error(data: str, quick: bool, algorithm: str, epsilon: float) -> float:
    """Mean NICV of some runs, which figures share."""
    X, k = _sets(quick)[data]
    # These take seconds a fit: the genetic algorithm on many rows, grids in many dimensions.
    slow = X.size > 2 * 10**4 and algorithm in ("genetic", "m-estimator", "extended-grid")
    fits = [
        private_fit(X, k, epsilon, algorithm, seed)[0]
        for seed in range(1 if slow else 2 if quick else 3)
    ]
    return float(np.mean([nicv(X, fit.cluster_centers_) for fit in fits]))


def _epsilons(quick: bool) -> tuple[float, ...]:
    return (0.1, 1.0) if quick else (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


def _mean_log(table: pd.DataFrame, method: str) -> float:
    chosen = table[table["method"] == method]
    return float(np.exp(np.log(chosen["nicv"] / chosen["best"]).mean()))


def figure_4_1(out: Path, quick: bool) -> Finding:
    """All methods: NICV against epsilon."""
    algorithms = tuple(a for a in _NAMES if a not in ("lloyd", "hybrid"))
    table = _curves(out, "kmeans_figure_4_1", algorithms, quick, _epsilons(quick))
    ratio = {m: _mean_log(table, m) for m in table["method"].unique()}
    ours = ratio.pop("auto (ours)")
    others = max(error for method, error in ratio.items() if method != "GkM")
    return Finding(
        "GkM is much worse than all others, and the two grids are better than MkM.",
        "mean ratio to the best NICV: "
        + ", ".join(f"{m} {r:.2f}" for m, r in sorted(ratio.items(), key=lambda item: item[1]))
        + f"; auto, which the dissertation does not have: {ours:.2f}.",
        {"the ratio of GkM is at least twice that of any other": ratio["GkM"] >= 2 * others}
        | {
            f"{grid} is better than MkM by a tenth": _better(ratio[grid] / ratio["MkM"])
            for grid in ("EUGkM", "UGkM")
        },
    )


def figure_4_2(out: Path, quick: bool) -> Finding:
    """Close-up of the four best."""
    algorithms = ("lloyd-improved", "lloyd", "extended-grid", "uniform-grid")
    table = _curves(out, "kmeans_figure_4_2", algorithms, quick, _epsilons(quick))
    checks: dict[str, bool | str] = {}
    texts = []
    for title, small, chosen, better, worse in (
        ("two dimensions, epsilon up to 0.2", True, _PLANE, "EUGkM", "DPLloyd-Impr"),
        ("more dimensions", False, _DEEP, "DPLloyd-Impr", "EUGkM"),
    ):
        part = table[table["data"].isin(chosen) & ((table["epsilon"] <= 0.2) | (not small))]
        left, right = _mean_log(part, better), _mean_log(part, worse)
        rule = f"{title}: {better} has the smaller mean ratio to the best NICV by a tenth"
        checks[rule] = _better(left / right) if len(part) else UNTESTED
        texts.append(f"{title}: {left:.2f} ({better}), {right:.2f} ({worse})")
    return Finding(
        "in two dimensions EUGkM is better than the improved Lloyd algorithm at small epsilon; in "
        "more dimensions the improved Lloyd algorithm is better.",
        f"mean ratio to the best NICV, {'; '.join(texts)}.",
        checks,
    )


_PLANE, _DEEP = ["S1", "Check-ins"], ["Adult-num", "Gauss-10d"]


def _heat_maps(
    out: Path, name: str, ways: dict[Any, Any], ks: list[int], ds: list[int], first: int
) -> NDArray[np.float64]:
    """Excess NICV of each way by number of clusters and of dimensions, (ways, ks, ds), drawn."""
    from matplotlib.colors import LogNorm

    rows, found = [], np.empty((len(ways), len(ks), len(ds)))
    for (i, k), (j, d) in itertools.product(enumerate(ks), enumerate(ds)):
        X = blobs(10_000, d, k, seed=first + 100 * k + d)
        best = best_nicv(X, k)
        for a, (way, error) in enumerate(ways.items()):
            excess = error(X, k) - best
            found[a, i, j] = max(excess, 1e-5)
            rows.append({"way": way, "k": k, "d": d, "excess": excess})
    figure, axes = _panels(len(ways))
    for ax, way, table in zip(axes, ways, found, strict=True):
        norm = LogNorm(1e-4, 1)
        image = ax.imshow(table, origin="lower", cmap="viridis_r", norm=norm, aspect="auto")
        ax.set_xticks(range(len(ds)), labels=ds)
        ax.set_yticks(range(len(ks)), labels=ks)
        ax.set(title=way, xlabel="dimensions")
    axes[0].set_ylabel("clusters")
    figure.colorbar(image, ax=axes, label="excess NICV")
    _save(out, name, figure, rows)
    return found


def figure_4_3(out: Path, quick: bool) -> Finding:
    """Excess NICV by number of clusters and of dimensions at epsilon 1."""
    algorithms = ("extended-grid", "lloyd-improved", "hybrid", "auto")
    ks, ds = ([3, 8], [2, 5]) if quick else ([2, 4, 6, 8, 10], [2, 3, 4, 6, 8, 10])

    def error(algorithm: str, X: NDArray[np.float64], k: int) -> float:
        fits = [private_fit(X, k, 1.0, algorithm, s)[0] for s in range(1 if quick else 2)]
        return float(np.mean([nicv(X, fit.cluster_centers_) for fit in fits]))

    ways = {_NAMES[algorithm]: partial(error, algorithm) for algorithm in algorithms}
    found = _heat_maps(out, "kmeans_figure_4_3", ways, ks, ds, 0)
    growth = found[:, :, -1].mean(axis=1) / found[:, :, 0].mean(axis=1)
    wider = found[:, -1].mean(axis=1) / found[:, 0].mean(axis=1)
    means = ", ".join(
        f"{_NAMES[a]} {m:.4f}" for a, m in zip(algorithms, found.mean(axis=(1, 2)), strict=True)
    )
    return Finding(
        "the error of EUGkM grows faster with the dimensions than that of the improved Lloyd "
        "algorithm, and Hybrid scales better than EUGkM with dimensions and clusters.",
        f"from the fewest to the most dimensions the excess of EUGkM grows {growth[0]:.0f} times, "
        f"that of DPLloyd-Impr {growth[1]:.0f} times, that of Hybrid {growth[2]:.0f} times; from "
        f"the fewest to the most clusters {wider[0]:.1f}, {wider[1]:.1f} and {wider[2]:.1f} times; "
        f"mean excess {means}.",
        {
            "the excess of EUGkM grows more than DPLloyd-Impr's": bool(growth[0] > growth[1]),
            "Hybrid's grows less than EUGkM's with the dimensions": bool(growth[2] < growth[0]),
            "Hybrid's grows less than EUGkM's with the clusters": bool(wider[2] < wider[0]),
        },
    )


def figure_4_4(out: Path, quick: bool) -> Finding:
    """The constant theta of the extended grid at epsilon 1."""
    thetas = (2.0, 10.0, 50.0) if quick else (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
    ks, ds = ([3, 6], [2, 4]) if quick else ([2, 4, 6, 8], [2, 3, 4, 6])

    def error(theta: float, X: NDArray[np.float64], k: int) -> float:
        task = _task(X, k, {"grid": 1}, seed=k, theta=theta)
        return nicv(X, _decode(ALGORITHMS["extended-grid"][0](task).centroids))

    ways = {f"theta {theta:g}": partial(error, theta) for theta in thetas}
    found = _heat_maps(out, "kmeans_figure_4_4", ways, ks, ds, 1_000)
    means = dict(zip(thetas, np.exp(np.log(found).mean(axis=(1, 2))), strict=True))
    return _verdict(
        bool(means[10.0] <= 3 * min(means.values())),
        "theta = 10 works well in most cases.",
        "theta 10 has at most three times the geometric mean excess of the best theta",
        "geometric mean excess "
        + ", ".join(f"{m:.5f} (theta {t:g})" for t, m in means.items())
        + ".",
    )


def figure_4_5(out: Path, quick: bool) -> Finding:
    """Hybrid against its two parts."""
    algorithms = ("hybrid", "extended-grid", "lloyd-improved")
    table = _curves(out, "kmeans_figure_4_5", algorithms, quick, _epsilons(quick))
    ratio = {m: _mean_log(table, m) for m in table["method"].unique()}
    plane = table[table["data"].isin(_PLANE) & (table["epsilon"] <= 0.2)]
    same = _mean_log(plane, "Hybrid") / _mean_log(plane, "EUGkM")
    deep = table[table["data"].isin(_DEEP)].pivot_table(
        index=["data", "epsilon"], columns="method", values="nicv"
    )
    won = [] if deep.empty else deep["Hybrid"] <= deep[["EUGkM", "DPLloyd-Impr"]].min(axis=1)
    return Finding(
        "in the plane Hybrid is EUGkM at small epsilon; in more dimensions it is better than both "
        "of its parts in most cases.",
        "mean ratio to the best NICV: "
        + ", ".join(f"{m} {r:.3f}" for m, r in ratio.items())
        + f". In the plane up to epsilon 0.2 Hybrid has {same:.2f} times the error of EUGkM; in "
        f"more dimensions it is the best in {int(np.sum(won))} of {len(won)} settings.",
        {
            "in the plane, up to epsilon 0.2, within a tenth of EUGkM": abs(same - 1) <= 0.1,
            "in more dimensions the best in most settings": (
                bool(np.mean(won) > 0.5) if len(won) else UNTESTED
            ),
        },
    )


def figure_4_6(out: Path, quick: bool) -> Finding:
    """Sample and aggregate: its two errors, by size of a block, at epsilon 1."""
    sets = _sets(quick)
    figure, axes = _panels(len(sets))
    rows, smaller_is_better = [], []
    for ax, (data, (X, k)) in zip(axes, sets.items(), strict=True):
        sample = X[np.random.default_rng(0).permutation(len(X))[:5_000]]
        n, d = sample.shape
        model = KMeans(k, n_init=10, random_state=0).fit(sample)
        best = np.rint((model.cluster_centers_ + 1) / 2 * _CODES - 0.5).astype(np.int64)
        series: dict[str, list[float]] = {"GkM": [], "aggregation alone": [], "noise alone": []}
        exponents = (0.4, 0.6, 0.8) if quick else (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
        for exponent in exponents:
            n_blocks = max(1, round(n ** (1 - exponent)))
            halves = {"range": "1/2", "centroids": "1/2"}
            task = _task(sample, k, halves, seed=1, n_blocks=n_blocks)
            blocks = block_centroids(
                task.points, task.shape, k, n_blocks, task.source, task.generator
            )
            share = Fraction(1, 2 * k * d)
            noise = discrete_laplace(
                np.zeros((k, d), dtype=np.int64), share, _CODES - 1, random_state=task.source
            )
            for kind, centers in (
                ("GkM", sample_aggregate(task).centroids),
                ("aggregation alone", blocks.mean(axis=0)),
                ("noise alone", best + noise / n_blocks),
            ):
                value = nicv(sample, np.clip(_decode(centers), -1, 1))
                series[kind].append(value)
                rows.append({"data": data, "kind": kind, "exponent": exponent, "nicv": value})
        for marker, (kind, values) in zip(MARKERS, series.items(), strict=False):
            ax.plot(exponents, values, marker=marker, markersize=4, label=kind)
        at = exponents.index(0.6)
        smaller_is_better.append(min(series["GkM"][:at]) < series["GkM"][at])
        ax.set(yscale="log", title=data, xlabel="exponent of the block size")
    axes[0].set_ylabel("NICV")
    axes[-1].legend(frameon=False, fontsize=7)
    _save(out, "kmeans_figure_4_6", figure, rows)
    at_rule = (
        pd.DataFrame(rows)
        .query("exponent == 0.6")
        .pivot(index="data", columns="kind", values="nicv")
    )
    noisy = at_rule["noise alone"] > at_rule["aggregation alone"]
    return Finding(
        "blocks of N^0.6 rows are far from the best size, and noise is most of their error.",
        f"a smaller block is better on {sum(smaller_is_better)} of {len(sets)} sets; with blocks "
        f"of N^0.6 noise alone costs more than the aggregation alone on {noisy.sum()}.",
        {
            "a smaller block than N^0.6 has the smaller error on every set": all(smaller_is_better),
            "noise alone costs more than the aggregation alone on every set": bool(noisy.all()),
        },
    )


def figure_4_7(out: Path, quick: bool) -> Finding:
    """Convergence of the genetic algorithm and of Lloyd's, without privacy."""
    sets = _sets(quick)
    figure, axes = _panels(len(sets))
    rounds = (1, 3, 10) if quick else (1, 2, 3, 5, 10, 20, 50)
    rows, faster = [], []
    for ax, (data, (X, k)) in zip(axes, sets.items(), strict=True):
        sample = X[np.random.default_rng(1).permutation(len(X))[:3_000]]
        generator = np.random.default_rng(2)
        starts = generator.uniform(-1, 1, size=(4 if quick else 15, k, X.shape[1]))
        curves: dict[str, list[float]] = {"Lloyd": [], "genetic": []}
        for n in rounds:
            fits = [KMeans(k, init=s, n_init=1, max_iter=n).fit(sample) for s in starts]
            curves["Lloyd"].append(float(np.mean([fit.inertia_ / len(sample) for fit in fits])))
            # The budget is so large that the best are always selected.
            task = _task(sample, k, {"rounds": 10**7}, seed=3)
            centers = genetic(replace(task, n_rounds=n)).centroids
            curves["genetic"].append(nicv(sample, _decode(centers)))
        for marker, (name, values) in zip(MARKERS, curves.items(), strict=False):
            ax.plot(rounds, values, marker=marker, markersize=4, label=name)
            rows += [
                {"data": data, "method": name, "rounds": n, "nicv": v}
                for n, v in zip(rounds, values, strict=True)
            ]
        at = rounds.index(3)
        faster.append(curves["Lloyd"][at] < curves["genetic"][at])
        ax.set(xscale="log", yscale="log", title=data, xlabel="iterations")
    axes[0].set_ylabel("NICV")
    axes[-1].legend(frameon=False, fontsize=7)
    _save(out, "kmeans_figure_4_7", figure, rows)
    return _verdict(
        sum(faster) > len(faster) / 2,
        "in the first iterations Lloyd's algorithm improves much faster than the genetic one.",
        "after three iterations Lloyd's is ahead on most sets",
        f"after three iterations Lloyd's is ahead on {sum(faster)} of {len(faster)} sets.",
    )


def figure_4_8(out: Path, quick: bool) -> Finding:
    """CPU seconds of a fit at epsilon 0.1."""
    algorithms = ("lloyd", "extended-grid", "auto")
    sets = _sets(quick)
    figure, ax = _panels(1)
    rows = []
    for i, algorithm in enumerate(algorithms):
        seconds = []
        for data, (X, k) in sets.items():
            best = min(private_fit(X, k, 0.1, algorithm, s)[1] for s in range(3))
            seconds.append(max(best, 1e-4))
            rows.append({"data": data, "method": _NAMES[algorithm], "cpu_seconds": best})
        name, colour, _ = _STYLES[algorithm]
        ax.bar(np.arange(len(sets)) + 0.27 * i, seconds, 0.25, color=colour, label=name)
    ax.set_xticks(np.arange(len(sets)) + 0.27, labels=list(sets))
    ax.set(yscale="log", ylabel="CPU seconds")
    ax.legend(frameon=False, fontsize=7)
    table = _save(out, "kmeans_figure_4_8", figure, rows)
    mean = table.groupby("method")["cpu_seconds"].mean()
    return _verdict(
        bool(mean["DPLloyd"] <= mean["EUGkM"] / 2),
        "DPLloyd is much faster than EUGkM with its 30 starts.",
        "DPLloyd takes at most half of the CPU on average",
        f"{mean['DPLloyd']:.3f} and {mean['EUGkM']:.3f} CPU s; auto {mean[_NAMES['auto']]:.3f}.",
    )


def _validity_table(
    out: Path, name: str, data: str, candidates: range, expected: int, quick: bool, missing: str
) -> Finding:
    """How often each number of clusters is chosen on the synopsis of EUGkM."""
    X, _ = _sets(False)[data]
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.3, 0.5, 1.0, 2.0)
    if quick:
        epsilons = (0.1, 0.3) if X.shape[1] > 3 else (0.5, 2.0)
    runs = 5 if quick or X.shape[1] > 2 else 8
    # The choice on the true rows.
    exact = {k: KMeans(k, n_init=30, random_state=0).fit(X).cluster_centers_ for k in candidates}
    validity = {k: ray_turi(X, np.ones(len(X)), centers) for k, centers in exact.items()}
    true = min(validity, key=lambda k: validity[k])
    rows = [
        {"data": data, "epsilon": np.inf, "k": k, "likelihood": float(k == true), "validity": found}
        for k, found in sorted(validity.items(), key=lambda item: item[1])[:4]
    ]
    right = 0
    for epsilon in epsilons:
        if X.shape[1] > 3 and epsilon >= 0.5:
            runs = 1  # the grid has a hundred thousand cells
        fits = [private_fit(X, candidates, epsilon, "extended-grid", s)[0] for s in range(runs)]
        chosen = [fit.n_clusters_ for fit in fits]
        right += chosen.count(true) > runs / 2
        for k in sorted(set(chosen), key=chosen.count, reverse=True)[:4]:
            mean = np.mean([fit.validity_[k] for fit in fits])
            rows.append(
                {"data": data, "epsilon": epsilon, "k": k}
                | {"likelihood": chosen.count(k) / runs, "validity": float(mean)}
            )
    figure, ax = _panels(1)
    table = pd.DataFrame(rows)
    shown = table[table["epsilon"] < np.inf].groupby("k")
    for place, (k, part) in enumerate(shown):
        marker = MARKERS[place % len(MARKERS)]
        # No lines: of each epsilon only the four most frequent are known.
        ax.plot(part["epsilon"], part["likelihood"], marker, markersize=7, label=f"k = {k}")
    ax.set(xscale="log", ylim=(0, 1.05), xlabel="epsilon", ylabel="likelihood", title=data)
    figure.legend(frameon=False, fontsize=7, loc="outside right center")
    _save(out, name, figure, rows)
    tried = ", ".join(f"{k} {validity[k]:.2f}" for k in sorted(validity))
    return Finding(
        f"on the true rows of {data} the index chooses k = {expected}, and on the synopsis at most "
        "values of epsilon it mostly does.",
        f"on the true rows the index chooses {true} (validity {tried}); on the synopsis it mostly "
        f"does at {right} of {len(epsilons)} values of epsilon, at epsilon {max(epsilons):g} in "
        f"{chosen.count(true)} of {runs} runs, and chooses {expected} in {chosen.count(expected)}.",
        {
            f"{expected} is chosen on the true rows": true == expected,
            "at most values of epsilon mostly the same is chosen on the synopsis": (
                right > len(epsilons) / 2
            ),
            f"the same on {missing}": UNTESTED,
        },
    )


def table_4_3(out: Path, quick: bool) -> Finding:
    """Choice of k on S1."""
    return _validity_table(out, "kmeans_table_4_3", "S1", range(2, 17), 15, quick, "Gowalla")


def table_4_4(out: Path, quick: bool) -> Finding:
    """Choice of k in the plane: the check-ins, in place of TIGER and Image."""
    found = _validity_table(out, "kmeans_table_4_4", "Check-ins", range(2, 7), 5, quick, "Gowalla")
    return Finding(
        "on the synopses of TIGER and Image the index mostly chooses the right number of clusters.",
        f"on check-ins: {found.found}",
        {},
        "TIGER and Image are not available; what is drawn are check-ins, which stand for Gowalla "
        "of table 4.3, where the index chooses 5",
    )


def table_4_5(out: Path, quick: bool) -> Finding:
    """Choice of k on Adult."""
    return _validity_table(out, "kmeans_table_4_5", "Adult-num", range(2, 7), 2, quick, "Lifesci")


_CURVES = (figure_4_1, figure_4_2, figure_4_3, figure_4_4, figure_4_5, figure_4_6)
FIGURES = named("kmeans", *_CURVES, figure_4_7, figure_4_8, table_4_3, table_4_4, table_4_5)
