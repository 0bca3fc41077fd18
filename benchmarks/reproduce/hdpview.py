"""Figures 3 to 14 and tables 2 to 4 of the HDPView paper (PVLDB 2022).

All methods are as published (``calibration="paper"``), PrivTree halving all attributes of a table
at once; "HDPView, ours" is the library's default, and takes no part in the rules. Of the paper's
tables Small-adult, Numerical-adult, Adult, Electricity and Phoneme are available; Jm1, Traffic,
Bitcoin and Gowalla are not. Figure 3 has two DPBench histograms (MDSalary, twitter) in addition;
check-ins drawn from another DPBench histogram replace Gowalla in figure 4, and Adult replaces Jm1
in figure 6. Of the paper's competitors, PrivTree, PrivBayes, Identity and DAWA are those of this
library; HDMM is that of `benchmarks.reproduce.hdmm`. Marginals are drawn in addition. DAWA is its
partition alone, as in the paper, of the flattened table; a square is flattened along a Hilbert
curve.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _data
from benchmarks.reproduce import TIE, Finding, compare, hdmm, named, panels, save
from benchmarks.reproduce.classification import BAYES
from skdp import Domain, MarginalSynthesizer, Numeric
from skdp.algorithms.dawa import DAWA_SHARES, bucket_costs
from skdp.algorithms.hdpview import hdpview, hdpview_parameters, hdpview_parts, published
from skdp.algorithms.privtree import privtree, privtree_parts
from skdp.mechanisms import choose_buckets, discrete_laplace
from skdp.release import BoxModel, Query
from skdp.tables import CountTable
from skdp.workloads import Workload

TABLES = ("adult", "electricity", "numerical", "small", "phoneme", "mdsalary", "twitter")
# A release of more than a million boxes.
LARGE = ("PrivTree", "adult")
# Those that the paper does not have.
OTHERS = ("mdsalary", "twitter")
# Bins of each numeric column of the tables that are used unchanged.
BINS = {"phoneme": 10, "electricity": 100}
COLOURS = {
    "HDPView": "#31688e",
    "PrivTree": "#b5694a",
    "Identity": "#777777",
    "PrivBayes": "#8c5fa8",
    "HDMM": "#c44e8a",
    "DAWA": "#d6a84f",
    "marginals": "#35b779",
    "HDPView, ours": "#7fb6d6",
}
RIVALS = ("PrivTree", "PrivBayes", "HDMM", "DAWA", "Identity")
# Tables of so few cells that DAWA partitions them: the paper's two and those of two attributes.
FLAT = ("small", "phoneme", "mdsalary", "twitter")
# The kinds of queries of all sets of attributes, exact from the views of pairs.
KINDS = {"2-way marginals": "marginals", "2-way all ranges": "ranges", "2-way prefixes": "prefixes"}


@cache
def table_of(name: str) -> CountTable:
    """One of `TABLES`."""
    if name in BINS:
        # The paper has eight columns of Electricity: the date is that of the row.
        raw = _data.frame(name).drop(columns="date", errors="ignore")
        codes = [
            column.astype("category").cat.codes
            if column.nunique() <= 7
            else pd.cut(column, BINS[name], labels=False)
            for _, column in raw.items()
        ]
        table = np.column_stack(codes)
        return CountTable.from_codes(table, tuple(int(size) + 1 for size in table.max(axis=0)))
    data = _data.hdpview_table(name)
    return CountTable.from_codes(data.codes, data.shape, data.counts)


Queries = list[dict[int, NDArray[np.float64]]]


@cache
def workload(name: str, order: int, n: int, kept: int | None = None) -> tuple[Queries, Any]:
    """Random ranges on ``order`` attributes of (the first ``kept`` of) a table, and the truth."""
    table = table_of(name)
    if kept is not None:
        table = table.project(range(kept))
    rng = np.random.default_rng(order)
    queries, truth = [], []
    for _ in range(n):
        axes = rng.permutation(len(table.shape))[:order]
        inside = np.ones(len(table.counts), dtype=bool)
        query = {}
        for axis in sorted(axes.tolist()):
            low, high = np.sort(rng.integers(0, table.shape[axis], size=2))
            weights = np.zeros(table.shape[axis])
            weights[low : high + 1] = 1.0
            query[axis] = weights
            inside &= (table.codes[:, axis] >= low) & (table.codes[:, axis] <= high)
        queries.append(query)
        truth.append(table.counts[inside].sum())
    return queries, np.array(truth, dtype=float)


def view_of(
    table: CountTable, epsilon: Fraction, seed: int, rule: Any = None, **hyperparameters: Any
) -> BoxModel:
    """HDPView release as published, by default with the hyperparameters of its experiments."""
    rule = rule or published(**hyperparameters)
    parts = hdpview_parts(epsilon, table.shape, calibration=rule)
    return hdpview(table, parts, calibration=rule, random_state=seed)


# HDPView release with the library's default calibration.
our_view = partial(view_of, rule="tight")


def tree_of(
    table: CountTable, epsilon: Fraction, seed: int, n_split: int | None = None
) -> BoxModel:
    """PrivTree release with the published noise."""
    settings: dict[str, Any] = {"n_split": n_split, "calibration": "paper"}
    parts = privtree_parts(epsilon, table.shape, **settings)
    return privtree(table, parts, random_state=seed, **settings)


class Dense:
    """Cells of a small table, with the interface of a released model."""

    def __init__(self, cells: NDArray[np.float64]) -> None:
        self.cells = cells

    def view(self, axes: Sequence[int]) -> NDArray[np.float64]:
        """Counts of all combinations of these attributes, in ascending order."""
        others = tuple(axis for axis in range(self.cells.ndim) if axis not in axes)
        return np.asarray(self.cells.sum(axis=others))

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        """Weighted counts of queries that are one product."""
        found = []
        for (query,) in (each.products for each in queries):
            part = self.view(sorted(query))
            for axis in sorted(query):
                part = np.tensordot(query[axis], part, axes=1)
            found.append(float(part))
        return np.array(found)


def hilbert(side: int) -> NDArray[np.int64]:
    """Cells of a square, whose side is a power of two, along a Hilbert curve: flat indices."""
    curve = np.zeros((1, 2), dtype=np.int64)
    size = 1
    while size < side:
        turned, back = curve[:, ::-1], size - 1 - curve[:, ::-1]
        curve = np.concatenate([turned, curve + (0, size), curve + (size, size), back + (size, 0)])
        size *= 2
    return np.asarray(curve[:, 0] * side + curve[:, 1])


def dawa_of(table: CountTable, epsilon: Fraction, seed: int) -> Dense:
    """DAWA's partition of the flattened table, and noisy counts of its buckets."""
    shape = table.shape
    square = len(shape) == 2 and shape[0] == shape[1] and shape[0].bit_count() == 1
    order = hilbert(shape[0]) if square else np.arange(math.prod(shape))
    counts = table.dense().ravel()[order]
    parts = {name: share * epsilon for name, share in DAWA_SHARES.items()}
    costs, penalty = bucket_costs(counts, aligned=True), math.ceil(1 / parts["counts"])
    edges = choose_buckets(
        costs, len(counts), parts["partition"], 2, penalty=penalty, random_state=seed
    )
    sums = np.add.reduceat(counts, edges[:-1])
    noisy = discrete_laplace(sums, parts["counts"], random_state=seed + 1)
    widths = np.diff(edges)
    cells = np.empty(len(counts))
    cells[order] = np.repeat(noisy / widths, widths)
    return Dense(cells.reshape(shape))


def fitted(
    table: CountTable, epsilon: Fraction, seed: int, synthesizer: Any = MarginalSynthesizer
) -> Any:
    """Model of a release of marginals, or of another synthesizer."""
    names = [f"c{axis}" for axis in range(len(table.shape))]
    domain = Domain(
        {
            name: Numeric(0, size - 1, integer=True) if size > 1 else Numeric(0, 1, bins=1)
            for name, size in zip(names, table.shape, strict=True)
        }
    )
    rows = pd.DataFrame(np.repeat(table.codes, table.counts, axis=0), columns=names)
    return synthesizer(epsilon=epsilon, domain=domain, random_state=seed).fit(rows).synopsis_.model


def bayes_of(table: CountTable, epsilon: Fraction, seed: int) -> Any:
    """Model of a release of PrivBayes, as published."""
    return fitted(table, epsilon, seed, BAYES)


def rmse(model: Any, asked: tuple[Queries, Any]) -> float:
    """Root mean square error of a release over a workload."""
    queries, truth = asked
    answers = model.answer([Query((each,)) for each in queries])
    return float(np.sqrt(np.mean((answers - truth) ** 2)))


def view_errors(model: Any, table: CountTable, kinds: Sequence[str]) -> dict[str, float]:
    """Root mean square errors of all queries of some kinds on all pairs of attributes.

    A query of two ranges is a bilinear form of the errors of cells; the mean of its square over
    all queries needs the grams of the workload alone.
    """
    pairs = list(itertools.combinations(range(len(table.shape)), 2))
    squares = dict.fromkeys(kinds, 0.0)
    for pair in pairs:
        error = np.asarray(model.view(pair)) - table.project(pair).dense()
        for kind in kinds:
            left, right = (_gram(kind, table.shape[axis]) for axis in pair)
            squares[kind] += float(((left @ error @ right) * error).sum())
    return {kind: math.sqrt(max(square, 0.0) / len(pairs)) for kind, square in squares.items()}


@cache
def _gram(kind: str, size: int) -> NDArray[np.float64]:
    return Workload(kind).gram(size)


def identity_rmse(table: CountTable, epsilon: float, queries: Queries) -> float:
    """Expected error of counting every cell: the noise of all cells that a query adds up."""
    cells = math.prod(table.shape)
    volumes = [cells * math.prod(weights.mean() for weights in query.values()) for query in queries]
    return math.sqrt(2 * float(np.mean(volumes))) / epsilon


@cache
def errors_of_all(quick: bool) -> pd.DataFrame:
    """Error of every method on all tables and workloads, and relative to that of HDPView."""
    epsilon, runs, n = Fraction(1), 1 if quick else 3, 100 if quick else 500
    rows = []
    for name in TABLES:
        table = table_of(name)
        makers: dict[str, Callable[..., Any]] = {
            "HDPView": view_of,
            "PrivTree": tree_of,
            "PrivBayes": bayes_of,
            "marginals": fitted,
            "HDPView, ours": our_view,
        } | ({"DAWA": dawa_of} if name in FLAT else {})
        models = {
            method: [make(table, epsilon, seed) for seed in range(runs)]
            for method, make in makers.items()
            if (method, name) != LARGE
        }
        # One large release, which answers the first queries of each workload.
        models.setdefault("PrivTree", [tree_of(table, epsilon, 0)])
        errors_by_kind: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
        for method, releases in models.items():
            each = [view_errors(model, table, list(KINDS.values())) for model in releases]
            for title, kind in KINDS.items():
                errors_by_kind[title][method] = float(np.mean([found[kind] for found in each]))
        for title, kind in KINDS.items():
            traces = [float(np.trace(_gram(kind, size))) for size in table.shape]
            volumes = [
                math.prod(table.shape) * math.prod(traces[i] / table.shape[i] for i in pair)
                for pair in itertools.combinations(range(len(traces)), 2)
            ]
            errors_by_kind[title] |= {
                "Identity": math.sqrt(2 * float(np.mean(volumes))),
                "HDMM": hdmm.rmse(table.shape, kind, 2),
            }
        for order in range(2, min(len(table.shape), 4) + 1):
            asked = workload(name, order, n)
            few = (asked[0][:100], asked[1][:100])
            errors_by_kind[f"{order}-way ranges"] = {
                method: float(
                    np.mean([rmse(m, few if (method, name) == LARGE else asked) for m in releases])
                )
                for method, releases in models.items()
            } | {
                "Identity": identity_rmse(table, 1.0, asked[0]),
                "HDMM": hdmm.rmse(table.shape, "random ranges", order),
            }
        for kind, errors in errors_by_kind.items():
            blocks = {
                method: float(np.mean([len(model.boxes) for model in models[method]]))
                for method in ("HDPView", "PrivTree")
            } | {"Identity": float(math.prod(table.shape))}
            rows += [
                (name, kind, method, error, error / errors["HDPView"])
                + (blocks.get(method, math.nan) / blocks["HDPView"],)
                for method, error in errors.items()
            ]
    columns = ["table", "workload", "method", "rmse", "relative", "relative_size"]
    return pd.DataFrame(rows, columns=columns)


def _bars(ax: Any, shown: pd.DataFrame, labels: Sequence[str], colours: Sequence[str]) -> None:
    """Groups of bars: one group for each row, one bar for each column."""
    width = 0.8 / len(labels)
    for i, (column, label, colour) in enumerate(zip(shown, labels, colours, strict=True)):
        place = np.arange(len(shown)) + width * (i - (len(labels) - 1) / 2)
        ax.bar(place, shown[column], width=width, color=colour, label=label)
    ax.set_xticks(np.arange(len(shown)), shown.index)


def _lines(ax: Any, part: pd.DataFrame) -> None:
    """Error by number of attributes, a line for each method."""
    for method, each in part.groupby("method"):
        ax.plot(each["attributes"], each["rmse"], "o-", color=COLOURS[str(method)], label=method)


def figure_3(out_dir: Path, quick: bool) -> Finding:
    """Errors relative to HDPView's on all tables and workloads."""
    found = errors_of_all(quick).drop(columns="relative_size")
    figure, axes = panels(6, (20.0, 4.0))
    for ax, (kind, part) in zip(axes, found.groupby("workload"), strict=True):
        wide = part.pivot(index="table", columns="method", values="relative")
        wide = wide.reindex([name for name in TABLES if name in wide.index])
        for i, (method, colour) in enumerate(COLOURS.items()):
            ax.plot(
                np.arange(len(wide)) + 0.08 * i,
                wide[method],
                "os^DvPX<"[i],
                color=colour,
                label=method,
            )
        ax.axhline(1, color="black", lw=0.8)
        ax.set(yscale="log", title=kind)
        ax.set_xticks(range(len(wide)), wide.index, rotation=60)
    axes[0].set_ylabel("error / error of HDPView")
    axes[0].legend(frameon=False, fontsize=8)
    save(out_dir, "hdpview_figure_3", figure, found)
    wide = found.pivot(index=["table", "workload"], columns="method", values="relative")
    others = wide.loc[list(OTHERS)]
    wide = wide.drop(index=list(OTHERS), level="table")
    means, apart = (np.exp(np.log(part).mean()) for part in (wide, others))
    return Finding(
        "HDPView has smaller errors than PrivTree, PrivBayes, HDMM, DAWA and Identity on average.",
        f"of {len(wide)} settings on the paper's tables "
        + ", ".join(
            f"{method} is worse in {(wide[method] > 1).sum()} of {wide[method].notna().sum()} "
            f"(geometric mean {means[method]:.2f} times HDPView's error)"
            for method in RIVALS
        )
        + f". Marginals, not in the paper, are better in {(wide['marginals'] < 1).sum()}, "
        f"{means['marginals']:.2f} times HDPView's error in the mean. On two tables of two dense "
        "columns, which the paper does not have, "
        + ", ".join(f"{method} has {apart[method]:.2f} times HDPView's error" for method in RIVALS)
        + ".",
        {
            f"geometric mean of the errors of {method} is above HDPView's by a tenth": _above(
                means[method]
            )
            for method in RIVALS
        },
    )


def _above(ratio: float) -> bool | str:
    """Whether a ratio of errors is above one; TIE within a tenth, which other seeds may turn."""
    return TIE if 1 / 1.1 <= ratio <= 1.1 else bool(ratio > 1)


def table_2(out_dir: Path, quick: bool) -> Finding:
    """Error and size of a release relative to HDPView's, averaged over tables and workloads."""
    found = errors_of_all(quick)
    found = found[~found["table"].isin(OTHERS)]
    means = found.groupby("method")[["relative", "relative_size"]].mean()
    logs = np.exp(found.assign(log=np.log(found["relative"])).groupby("method")["log"].mean())
    means["geometric"] = logs
    published = {
        "Identity": (1.94e7, 4.59e17),
        "PrivTree": (7.05, 5578.27),
        "HDPView": (1.0, 1.0),
        "HDMM": (35.34, math.nan),
        "PrivBayes": (3.79, math.nan),
    }
    for i, column in enumerate(("published_error", "published_size")):
        means[column] = {method: values[i] for method, values in published.items()}
    means = means.reindex(["HDPView", *RIVALS, "marginals"]).reset_index()
    figure, axes = panels(2, (9.0, 4.0))
    for ax, kind, theirs, title in (
        (axes[0], "relative", "published_error", "error / error of HDPView"),
        (axes[1], "relative_size", "published_size", "blocks / blocks of HDPView"),
    ):
        shown = means.dropna(subset=[kind]).set_index("method")
        _bars(ax, shown[[kind, theirs]], ("here", "paper"), ("#31688e", "#d6a84f"))
        ax.set(yscale="log", title=title)
    axes[0].legend(frameon=False)
    save(out_dir, "hdpview_table_2", figure, means)
    here = means.set_index("method")
    return Finding(
        "averaged over tables and workloads PrivTree has 7 times, HDMM 35 times, PrivBayes 3.79 "
        "times and Identity 2e7 times the error of HDPView; PrivTree has 5,578 and Identity 5e17 "
        "times the blocks.",
        f"error {here.loc['PrivTree', 'relative']:.2f} (PrivTree; geometric mean "
        f"{here.loc['PrivTree', 'geometric']:.2f}), {here.loc['HDMM', 'relative']:.2f} (HDMM), "
        f"{here.loc['PrivBayes', 'relative']:.2f} (PrivBayes; geometric mean "
        f"{here.loc['PrivBayes', 'geometric']:.2f}) and {here.loc['Identity', 'relative']:.2g} "
        f"(Identity) times, blocks {here.loc['PrivTree', 'relative_size']:.3g} and "
        f"{here.loc['Identity', 'relative_size']:.2g} times; marginals "
        f"{here.loc['marginals', 'relative']:.2f} times the error. Jm1, where PrivTree does worst "
        "in the paper, is not available.",
        {
            "PrivTree's mean relative error is above 1 by a tenth": _above(
                here.loc["PrivTree", "relative"]
            ),
            "it is at least a third of the paper's 7.05": bool(
                here.loc["PrivTree", "relative"] >= 7.05 / 3
            ),
            "PrivBayes's is above 1 by a tenth": _above(here.loc["PrivBayes", "relative"]),
            "HDMM's is above 1 by a tenth": _above(here.loc["HDMM", "relative"]),
            "Identity's is above 1,000": bool(here.loc["Identity", "relative"] > 1000),
            "PrivTree's mean relative size is above 1": bool(
                here.loc["PrivTree", "relative_size"] > 1
            ),
        },
    )


def table_3(out_dir: Path, quick: bool) -> Finding:
    """Records, columns, cells and scatter of the tables."""
    published = {
        "adult": (48_842, 15, 9e19, 0.0360),
        "small": (48_842, 4, 3e5, 0.0237),
        "numerical": (48_842, 7, 2e11, 0.0200),
        "electricity": (45_312, 8, 1e14, 0.0407),
        "phoneme": (5_404, 6, 2e6, 0.0304),
    }
    rows = []
    for name, (records, columns, cells, variance) in published.items():
        table = table_of(name)
        spread = []
        for axis, size in enumerate(table.shape):
            share = table.project([axis]).dense() / table.n
            place = np.arange(size) / max(size - 1, 1)
            spread.append(float(share @ place**2 - (share @ place) ** 2))
        rows.append(
            (name, table.n, records, len(table.shape), columns, float(math.prod(table.shape)))
            + (cells, float(np.mean(spread)), variance)
        )
    names = ["table", "records", "published_records", "columns", "published_columns"]
    names += ["cells", "published_cells", "variance", "published_variance"]
    found = pd.DataFrame(rows, columns=names)
    figure, axes = panels(2, (9.0, 4.0))
    for ax, kind in zip(axes, ("cells", "variance"), strict=True):
        shown = found.set_index("table")[[kind, f"published_{kind}"]]
        _bars(ax, shown, ("here", "paper"), ("#31688e", "#d6a84f"))
        ax.tick_params(axis="x", rotation=30)
        ax.set_title(kind)
    axes[0].set_yscale("log")
    axes[0].legend(frameon=False)
    save(out_dir, "hdpview_table_3", figure, found)
    power = np.abs(np.log10(found["cells"] / found["published_cells"]))
    off = np.abs(np.log2(found["variance"] / found["published_variance"]))
    return Finding(
        "five of the tables have 5,404 to 48,842 records, 4 to 15 columns and 3e5 to 9e19 cells.",
        f"cells differ by a factor of at most {10 ** power.max():.1f} "
        f"({found.loc[power.idxmax(), 'table']}), the variance of the scaled columns by "
        f"{2 ** off.max():.1f} ({found.loc[off.idxmax(), 'table']}); columns are counted with the "
        f"label here: {', '.join(f'{r.table} {r.columns}' for r in found.itertuples())}. The "
        "sizes of Adult's columns multiply to 9e18, and the paper's 30.99 EB in table 4 are that "
        "many of four bytes: 9e19 is a misprint.",
        {
            "the same records": bool((found["records"] == found["published_records"]).all()),
            "cells within a factor of 3": bool((power <= math.log10(3)).all()),
            "variances within a factor of 2": bool((off <= 1).all()),
        },
    )


def table_4(out_dir: Path, quick: bool) -> Finding:
    """Space of a release and of noisy counts of all cells."""
    published = {
        "adult": (30.99e18, 3.61e6),
        "electricity": (1.11e12, 2.19e6),
        "phoneme": (781.34e3, 273.59e3),
    }
    rows = []
    for name, (identity, view) in published.items():
        table = table_of(name)
        model = view_of(table, Fraction(1), 0)
        # Two bounds for each attribute and a count, as plain numbers of four and eight bytes.
        size = len(model.boxes) * (8 * len(table.shape) + 8)
        rows.append((name, 4.0 * math.prod(table.shape), identity, float(size), view))
    columns = ["table", "identity_bytes", "published_identity", "view_bytes", "published_view"]
    found = pd.DataFrame(rows, columns=columns)
    figure, ax = panels()
    _bars(
        ax,
        found.set_index("table"),
        ("all cells, here", "all cells, paper", "HDPView, here", "HDPView, paper"),
        ("#777777", "#c9c9c9", "#31688e", "#d6a84f"),
    )
    ax.set(yscale="log", ylabel="bytes")
    ax.legend(frameon=False, fontsize=8)
    save(out_dir, "hdpview_table_4", figure, found)
    saving = found["identity_bytes"] / found["view_bytes"]
    pairs = ", ".join(
        f"{row.table} {row.view_bytes / 1e6:.2f} MB (paper {row.published_view / 1e6:.2f})"
        for row in found.itertuples()
    )
    return Finding(
        "a release takes up to 1e13 times less space than noisy counts of all cells.",
        f"{pairs}; the largest saving is on {found.loc[saving.idxmax(), 'table']}, a factor of "
        f"{saving.max():.1e}. The paper does not give its format; here a block takes two numbers "
        "of four bytes for each attribute and one of eight.",
        {
            "a saving of 1e11 or more on Adult": bool(saving[0] >= 1e11),
            "sizes within a factor of 5 of the paper's": bool(
                (np.abs(np.log(found["view_bytes"] / found["published_view"])) < math.log(5)).all()
            ),
        },
    )


def figure_4(out_dir: Path, quick: bool) -> Finding:
    """Blocks of HDPView and PrivTree on check-ins."""
    points = _data.kmeans_set("checkin")["X"]
    side = 256
    codes = np.clip(((points + 1) / 2 * side).astype(int), 0, side - 1)
    table = CountTable.from_codes(codes, (side, side))
    models = {"HDPView": view_of(table, Fraction(1), 0), "PrivTree": tree_of(table, Fraction(1), 0)}
    rng = np.random.default_rng(0)
    errors = {}
    ends = np.sort(rng.integers(0, side, size=(500 if quick else 3000, 2, 2)), axis=2)
    truth = _data.sums_of(table.dense(), ends.reshape(-1, 4))
    line = np.arange(side)
    queries = [
        {axis: ((line >= low) & (line <= high)).astype(float) for axis, (low, high) in enumerate(q)}
        for q in ends.tolist()
    ]
    figure, axes = panels(2, (9.0, 4.6))
    rows = []
    for ax, (method, model) in zip(axes, models.items(), strict=True):
        errors[method] = rmse(model, (queries, truth))
        rows += [(method, *box.ravel().tolist()) for box in model.rectangles([0, 1])]
        ax.imshow(np.log1p(np.maximum(model.view([0, 1]), 0)).T, origin="lower", cmap="Blues")
        for (left, right), (bottom, top) in model.rectangles([0, 1]).tolist():
            ax.plot(
                np.array([left, right, right, left, left]) - 0.5,
                np.array([bottom, bottom, top, top, bottom]) - 0.5,
                color="black",
                lw=0.2,
            )
        ax.set_title(f"{method}: {len(model.boxes)} blocks, RMSE {errors[method]:.0f}")
        ax.grid(visible=False)
    columns = ["method", "x_first", "x_stop", "y_first", "y_stop"]
    save(out_dir, "hdpview_figure_4", figure, pd.DataFrame(rows, columns=columns))
    view, tree = models["HDPView"], models["PrivTree"]
    return Finding(
        "in two dense dimensions HDPView makes fewer blocks, of flexible shape (15,669 against "
        "19,475), and PrivTree is more accurate (RMSE 316 against 657).",
        f"{len(view.boxes):,} blocks and RMSE {errors['HDPView']:.0f} for HDPView against "
        f"{len(tree.boxes):,} and {errors['PrivTree']:.0f}.",
        {
            "HDPView makes fewer blocks": len(view.boxes) < len(tree.boxes),
            "PrivTree has the smaller error": errors["PrivTree"] < errors["HDPView"],
        },
    )


def aggregation_errors(table: CountTable, model: BoxModel, most: int = 400) -> tuple[Any, float]:
    """Aggregation errors of some of the blocks, and how many blocks each stands for."""
    n = len(model.boxes)
    chosen = np.random.default_rng(0).permutation(n)[:most]
    errors = []
    for lower, upper in zip(model.boxes.lower[chosen], model.boxes.upper[chosen], strict=True):
        inside = ((table.codes >= lower) & (table.codes < upper)).all(axis=1)
        x = table.counts[inside].astype(float)
        cells = math.prod((upper - lower).tolist())
        mean = x.sum() / cells
        errors.append(np.abs(x - mean).sum() + (cells - len(x)) * mean)
    return np.array(errors), n / len(chosen)


def figure_5(out_dir: Path, quick: bool) -> Finding:
    """How many blocks have which aggregation error, on Adult."""
    table = table_of("adult")
    edges = np.array([0, 1, 10, 100, 1000, 1e4, 1e5])
    models = {"HDPView": view_of(table, Fraction(1), 0), "PrivTree": tree_of(table, Fraction(1), 0)}
    rows, means = [], {}
    for method, model in models.items():
        errors, each = aggregation_errors(table, model, 100 if quick else 400)
        means[method] = errors.mean()
        number, _ = np.histogram(errors, bins=edges)
        rows += [(method, low, count * each) for low, count in zip(edges[:-1], number, strict=True)]
    found = pd.DataFrame(rows, columns=["method", "error_from", "blocks"])
    figure, ax = panels()
    wide = found.pivot(index="error_from", columns="method", values="blocks")
    wide.index = [f"from {low:g}" for low in wide.index]
    _bars(ax, wide, list(wide), [COLOURS[method] for method in wide])
    ax.set(yscale="symlog", xlabel="aggregation error of a block", ylabel="blocks (estimated)")
    ax.legend(frameon=False)
    save(out_dir, "hdpview_figure_5", figure, found)
    sizes = {method: len(model.boxes) for method, model in models.items()}
    return Finding(
        "PrivTree makes far more blocks, of smaller aggregation errors.",
        f"{sizes['PrivTree']:,} blocks of {means['PrivTree']:.1f} on average against "
        f"{sizes['HDPView']:,} of {means['HDPView']:.1f} for HDPView.",
        {
            "PrivTree makes at least twice as many blocks": (
                sizes["PrivTree"] >= 2 * sizes["HDPView"]
            ),
            "of a smaller mean aggregation error": bool(means["PrivTree"] < means["HDPView"]),
        },
    )


def figure_6(out_dir: Path, quick: bool) -> Finding:
    """PrivTree with fewer attributes a level against HDPView."""
    rows = []
    runs, n = (1, 100) if quick else (3, 500)
    findings, checks = [], {}
    for name, most in (("numerical", 7), ("adult", 8)):
        table, asked = table_of(name), workload(name, 2, n)
        view = np.mean([rmse(view_of(table, Fraction(1), seed), asked) for seed in range(runs)])
        trees = {}
        for n_split in range(1, most + 1, 2 if quick else 1):
            models = [tree_of(table, Fraction(1), seed, n_split) for seed in range(runs)]
            trees[n_split] = np.mean([rmse(model, asked) for model in models])
            rows.append((name, "PrivTree", n_split, trees[n_split]))
            rows.append((name, "HDPView", n_split, view))
        best = min(trees, key=trees.__getitem__)
        checks[f"HDPView below PrivTree with any number on {name}"] = bool(view < trees[best])
        findings.append(
            f"on {name} PrivTree's smallest error is {trees[best]:.0f}, with {best} attributes, "
            f"and HDPView's error is {view:.0f}"
        )
    found = pd.DataFrame(rows, columns=["table", "method", "attributes", "rmse"])
    figure, axes = panels(2, (9.0, 4.0))
    for ax, (name, part) in zip(axes, found.groupby("table", sort=False), strict=True):
        _lines(ax, part)
        ax.set(title=name, xlabel="attributes halved a level", ylabel="RMSE of 2-way ranges")
        ax.legend(frameon=False)
    save(out_dir, "hdpview_figure_6", figure, found)
    return Finding(
        "HDPView is better than PrivTree with any number of attributes cut at a time, on "
        "Numerical-adult and Jm1.",
        f"{'; '.join(findings)}.",
        checks,
    )


def figure_7(out_dir: Path, quick: bool) -> Finding:
    """Adding the attributes of Adult one by one."""
    makers = {
        "HDPView": view_of,
        "HDPView, ours": our_view,
        "PrivBayes": bayes_of,
        "marginals": fitted,
    }
    rows = []
    runs, n = (1, 100) if quick else (2, 500)
    for kept in (3, 5, 10, 15) if quick else (2, 3, 4, 5, 6, 8, 10, 12, 15):
        table = table_of("adult").project(range(kept))
        models = {
            method: [make(table, Fraction(1), seed) for seed in range(runs)]
            for method, make in makers.items()
        }
        for order in (2, 3):
            if order > kept:
                continue
            asked = workload("adult", order, n, kept)
            rows += [
                (order, method, kept, float(np.mean([rmse(model, asked) for model in releases])))
                for method, releases in models.items()
            ]
            error = hdmm.rmse(table.shape, "random ranges", order)
            rows.append((order, "HDMM", kept, error))
    found = pd.DataFrame(rows, columns=["order", "method", "attributes", "rmse"])
    figure, axes = panels(2, (9.0, 4.0))
    for ax, (order, part) in zip(axes, found.groupby("order"), strict=True):
        _lines(ax, part)
        ax.set(yscale="log", xlabel="attributes of Adult", ylabel=f"RMSE of {order}-way ranges")
    axes[0].legend(frameon=False)
    save(out_dir, "hdpview_figure_7", figure, found)
    wide = found[found["order"] == 2].pivot(index="attributes", columns="method", values="rmse")
    wide = wide.loc[3:]
    growth = wide.iloc[-1] / wide.iloc[0]
    return Finding(
        "HDPView's error grows only slightly with the number of attributes; that of PrivBayes "
        "is larger at first and falls a little; that of HDMM grows with them.",
        f"from {wide.index[0]} attributes to {wide.index[-1]} "
        + ", ".join(
            f"{method}'s error goes from {each.iloc[0]:.0f} to {each.iloc[-1]:.0f}"
            for method, each in wide.items()
        )
        + ".",
        {
            "HDPView's error at most doubles": bool(growth["HDPView"] <= 2),
            "HDPView's is below PrivBayes's with three attributes": bool(
                wide["HDPView"].iloc[0] < wide["PrivBayes"].iloc[0]
            ),
            "PrivBayes's falls": bool(growth["PrivBayes"] < 1),
            "HDMM's grows": bool(growth["HDMM"] > 1),
        },
    )


def figure_8(out_dir: Path, quick: bool) -> Finding:
    """Number of blocks."""
    rows = []
    for name in TABLES:
        table = table_of(name)
        rows.append((name, "HDPView", len(view_of(table, Fraction(1), 0).boxes)))
        rows.append((name, "PrivTree", len(tree_of(table, Fraction(1), 0).boxes)))
    found = pd.DataFrame(rows, columns=["table", "method", "blocks"])
    wide = found.pivot(index="table", columns="method", values="blocks").loc[list(TABLES)]
    figure, ax = panels()
    _bars(ax, wide, list(wide), [COLOURS[method] for method in wide])
    ax.set(yscale="log", ylabel="blocks")
    ax.legend(frameon=False)
    save(out_dir, "hdpview_figure_8", figure, found)
    fewer = int((wide["HDPView"] < wide["PrivTree"]).sum())
    ratio = wide["PrivTree"] / wide["HDPView"]
    return Finding(
        "HDPView makes far fewer blocks than PrivTree.",
        f"fewer on {fewer} of {len(wide)} tables; PrivTree makes {ratio.min():.2f} to "
        f"{ratio.max():.1f} times as many.",
        {
            "fewer on every table": fewer == len(wide),
            "at most half as many on most tables": bool((ratio >= 2).mean() > 0.5),
        },
    )


def sweep(figure: int, settings: tuple[Any, ...], out_dir: Path, quick: bool) -> Finding:
    """Error of 2-way ranges against one hyperparameter of HDPView, the others as published."""
    name, label, tenths, said, good = settings
    table, asked = table_of(name), workload(name, 2, 200 if quick else 1000)
    rows = []
    for epsilon in (Fraction(1), Fraction(1, 10)):
        for value in _tenths(*tenths[:: 2 if quick else 1]):
            errors = [
                rmse(view_of(table, epsilon, seed, **{label: value}), asked)
                for seed in range(2 if quick else 6)
            ]
            rows.append(
                (float(epsilon), float(value), float(np.mean(errors)), float(np.std(errors)))
            )
    found = pd.DataFrame(rows, columns=["epsilon", label, "rmse", "spread"])
    drawing, ax = panels()
    findings, checks = [], {}
    for (epsilon, each), colour in zip(
        found.groupby("epsilon", sort=False), ("#31688e", "#d6a84f"), strict=True
    ):
        ax.errorbar(
            each[label],
            each["rmse"],
            each["spread"],
            marker="o",
            color=colour,
            capsize=2,
            label=f"epsilon {epsilon:g}",
        )
        best = each.loc[each["rmse"].idxmin()]
        within = each[label].between(*good)
        inside, outside = (
            part.loc[part["rmse"].idxmin()] for part in (each[within], each[~within])
        )
        # Standard error of the difference of the two means.
        runs = 2 if quick else 6
        error = float(np.hypot(inside["spread"], outside["spread"])) / runs**0.5
        checks[f"epsilon {epsilon:g}: {label} {good[0]:g} to {good[1]:g} is better than others"] = (
            compare(float(outside["rmse"] - inside["rmse"]), error)
        )
        findings.append(
            f"at epsilon {epsilon:g} the smallest error is {best['rmse']:.0f}, at "
            f"{best[label]:g}, and the largest {each['rmse'].max():.0f}"
        )
    ax.set(yscale="log", xlabel=label, ylabel="RMSE of 2-way ranges", title=name)
    ax.legend(frameon=False)
    save(out_dir, f"hdpview_figure_{figure}", drawing, found)
    return Finding(said, f"{'; '.join(findings)}.", checks)


def _tenths(*values: int) -> list[Fraction]:
    return [Fraction(value, 10) for value in values]


_BETAS = (2, 4, 6, 8, 10, 12, 16)
# Figures 9 to 13: one hyperparameter on one table, its tenths, what is said, and the best range.
_SWEEPS: dict[int, tuple[Any, ...]] = {
    9: ("small", "ratio", (1, 3, 5, 7, 8, 9), "a ratio of 0.7 to 0.9 is best.", (0.7, 0.9)),
    10: (
        "small", "gamma", (1, 3, 5, 7, 9),
        "most of the budget should go to the tests (gamma 0.9).", (0.7, 0.9),
    ),
    11: (
        "small", "beta", _BETAS,
        "on Small-adult the default beta 1.2 is larger than needed.", (0.2, 1.0),
    ),
    12: (
        "numerical", "beta", _BETAS,
        "the best beta depends on the table, and the default 1.2 is larger than needed.",
        (0.2, 1.0),
    ),
    13: (
        "small", "alpha", (11, 12, 14, 16, 18, 20, 30),
        "alpha between 1.4 and 1.8 is best.", (1.4, 1.8),
    ),
}  # fmt: skip


def figure_14(out_dir: Path, quick: bool) -> Finding:
    """Scale of the noise and bias of the converge tests, over alpha."""
    parts = {"converge": Fraction(1), "cut": Fraction(1), "counts": Fraction(1)}
    rows = []
    for alpha in _tenths(11, 12, 13, 14, 15, 16, 18, 20, 25, 30, 40, 50):
        rule = published(alpha=alpha)
        public = hdpview_parameters(parts, table_of("small").shape, calibration=rule)
        rows.append((float(alpha), public.lam, public.delta))
    found = pd.DataFrame(rows, columns=["alpha", "lambda", "delta"])
    figure, ax = panels()
    for kind, colour in (("lambda", "#31688e"), ("delta", "#d6a84f")):
        ax.plot(found["alpha"], found[kind], "o-", color=colour, label=kind)
    ax.set(xlabel="alpha", ylabel="records, at epsilon 1 of the tests")
    ax.legend(frameon=False)
    save(out_dir, "hdpview_figure_14", figure, found)
    at = found.set_index("alpha")
    before = at.loc[1.1, "lambda"] - at.loc[1.4, "lambda"]
    after = at.loc[1.4, "lambda"] - at.loc[5.0, "lambda"]
    return Finding(
        "as alpha grows, delta grows, and lambda falls, but little from 1.4 on; it tends to 3.",
        f"lambda falls by {before:.1f} from alpha 1.1 to 1.4, and by {after:.1f} from there to 5, "
        f"where it is {at.loc[5.0, 'lambda']:.1f}; delta grows from {at.loc[1.1, 'delta']:.1f} to "
        f"{at.loc[5.0, 'delta']:.1f}. By the paper's formula lambda tends to 6: "
        "(3 alpha - 2) / (alpha - 1) tends to 3, and is doubled.",
        {
            "delta grows": bool(found["delta"].is_monotonic_increasing),
            "lambda falls": bool(found["lambda"].is_monotonic_decreasing),
            "by less after 1.4 than from 1.1 to 1.4": bool(after < before),
            "it tends to 3": bool(at.loc[5.0, "lambda"] < 4),
        },
    )


FIGURES = {
    **named("hdpview", table_2, table_3, table_4, figure_3, figure_4, figure_5, figure_6),
    **named("hdpview", figure_7, figure_8),
    **{
        f"hdpview_figure_{figure}": partial(sweep, figure, settings)
        for figure, settings in _SWEEPS.items()
    },
    **named("hdpview", figure_14),
}
