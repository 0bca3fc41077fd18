"""Tables 5.3 to 5.6 and figures 5.8 to 5.16 of D. Su's dissertation (Purdue, 2016), drawn again.

Score error rate and false negative rate of private selections of the top c items, over c; and the
score missed, in which items short of c count as zero (the error rate averages over the selected
items, and so favours a method that selects few; for lists the two are the same). The data sets are
retail in place of BMS-POS, the head of Kosarak scaled to its length, and the dissertation's Zipf
frequencies. AOL is not available, so the tables and figures of AOL and Zipf show only Zipf. The
tables have the dissertation's numbers beside ours. "ours" is this library. Each run has the items
in a new order; the threshold is the mean of the c-th and the next frequency. The methods
(SVT-DPBook, SVT-S, SVT-ReTr, EM) are those of `skdp.mechanisms`.

Every entry of `FIGURES` writes a PNG and a tidy CSV and returns a finding;
``--quick`` uses 20 runs and 3 values of c.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks import _data
from benchmarks.reproduce import MARKERS, PALETTE, TIE, Finding, save
from benchmarks.reproduce import Figure as Entry
from benchmarks.reproduce.claims import RATES
from skdp._random import NoiseSource, noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.mechanisms import SparseVector, sparse_vector_top_k, top_k
from skdp.mechanisms.sparse_vector import false_negative_rate, score_error_rate

SIZES = (25, 50, 100, 150, 200, 300)

# Limit of retraversals: a raised threshold is passed rarely.
PASSES = 10**6

Ints = NDArray[np.int64]


class Task:
    """One run: the frequencies in a new order, and the number of items to find."""

    def __init__(self, sorted_counts: Ints, c: int, epsilon: float, seed: int) -> None:
        # Largest first; an item is one of the top c if its rank is below c.
        self.rng = np.random.default_rng([seed, c, round(1000 * epsilon)])
        self.ranks = self.rng.permutation(len(sorted_counts))
        self.counts = sorted_counts[self.ranks]
        self.c, self.epsilon = c, epsilon
        self.threshold = float(sorted_counts[c - 1 : c + 1].mean())
        self.best = sorted_counts[:c]

    def errors(self, chosen: Ints) -> tuple[float, float, float]:
        """SER, FNR and loss."""
        ser = score_error_rate(self.counts, chosen, self.c)
        # By rank: of equal frequencies one is among the best.
        missed = false_negative_rate(-self.ranks, chosen, self.c)
        return ser, missed, 1 - self.counts[chosen].sum() / self.best.sum()


Select = Callable[[Task, NoiseSource], Ints]

# The dissertation's methods, as the library has them: with discrete noise, drawn exactly


def sparse(
    variant: str = "standard", ratio: Callable[[int], float] = lambda c: 1, monotonic: bool = True
) -> Select:
    """A stream, with epsilon split 1 : ratio (Algorithm 23, SVT-S, for monotonic queries)."""

    def select(task: Task, source: NoiseSource) -> Ints:
        vector = SparseVector(
            task.epsilon,
            task.threshold,
            task.c,
            monotonic=monotonic,
            ratio=ratio(task.c),
            variant=variant,
            noise="two-sided",
            random_state=source,
        )
        vector.query_many(task.counts)
        return vector.positives

    return select


def retraversal(raised: float) -> Select:
    """SVT with retraversal: Algorithm 23 at 1 : c**(2/3), threshold raised, until c are found.

    1D is "one standard deviation of the added noises" in one place of the dissertation and "the
    scale factor of the Laplace noise injected to each query" in another. Its tables fit the latter.
    """

    def select(task: Task, source: NoiseSource) -> Ints:
        scale = task.c * (1 + task.c ** (-2 / 3)) / task.epsilon
        return sparse_vector_top_k(
            task.counts,
            task.c,
            task.epsilon,
            task.threshold + raised * scale,
            monotonic=True,
            ratio=task.c ** (2 / 3),
            noise="two-sided",
            max_passes=PASSES,
            random_state=source,
        )

    return select


def exponential(task: Task, source: NoiseSource) -> Ints:
    """EM c times in sequence."""
    return top_k(task.counts, task.c, task.epsilon, 1, method="peeling", random_state=source)


PAPER_INTERACTIVE: dict[str, Select] = {
    # Algorithm 18 has no version for monotonic queries.
    "DPBook": sparse("dwork-roth", monotonic=False),
    "S 1:1": sparse(),
    "S 1:3": sparse(ratio=lambda c: 3),
    "S 1:c": sparse(ratio=lambda c: c),
    "S 1:c^2/3": sparse(ratio=lambda c: c ** (2 / 3)),
}
PAPER_OFFLINE: dict[str, Select] = {
    **{f"ReTr {raised}D": retraversal(raised) for raised in (1, 2, 3, 4, 5)},
    "EM": exponential,
}


# Ours


def ours_interactive(task: Task, source: NoiseSource) -> Ints:
    """One-sided noise, and the length of the stream as a public guess.

    The threshold gets a little more of epsilon than by default. Its noise is common to all queries,
    so it makes the number of positives vary, and a stream that stops early misses large items.
    """
    vector = SparseVector(
        task.epsilon,
        task.threshold,
        task.c,
        monotonic=True,
        ratio=0.6 * task.c ** (2 / 3),
        expected_queries=len(task.counts),
        random_state=source,
    )
    vector.query_many(task.counts)
    return vector.positives


def ours_offline(task: Task, source: NoiseSource) -> Ints:
    """One round of geometric noise."""
    return top_k(task.counts, task.c, task.epsilon, 1, random_state=source)


OURS_INTERACTIVE: dict[str, Select] = {"ours": ours_interactive}
OURS_OFFLINE: dict[str, Select] = {"ours": ours_offline}
SETTINGS = {
    "interactive": (PAPER_INTERACTIVE, OURS_INTERACTIVE),
    "non-interactive": (PAPER_OFFLINE, OURS_OFFLINE),
}
MEASURES = ("ser", "fnr", "loss")


def frequencies(name: str) -> Ints:
    """Frequencies of a set, largest first.

    "kosarak" is its head as if it went on like that: as many transactions and items as
    the dissertation has, 990,002 and 41,270.
    """
    if name != "kosarak":
        return np.sort(_data.item_frequencies(name))[::-1]
    head = np.rint(frequencies("kosarak_head") * (990_002 / 36_683)).astype(np.int64)
    return np.pad(head, (0, max(0, 41_270 - len(head))))


def measure(name: str, epsilon: float, c: int, runs: int, first_seed: int = 0) -> dict[str, Any]:
    """Mean and standard deviation of the measures, {setting: {method: {measure: (m, sd)}}}."""
    counts = frequencies(name)
    figures: dict[str, dict[str, list[tuple[float, float, float]]]] = {
        setting: {method: [] for methods in pair for method in methods}
        for setting, pair in SETTINGS.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        source = noise_source(1000 * c + round(1000 * epsilon) + first_seed)
    for seed in range(first_seed, first_seed + runs):
        task = Task(counts, c, epsilon, seed)
        for setting, (paper, ours) in SETTINGS.items():
            for method, select in (paper | ours).items():
                figures[setting][method].append(task.errors(select(task, source)))
    return {
        setting: {
            method: {
                measure: (statistics.fmean(values), statistics.stdev(values))
                for measure, values in zip(MEASURES, zip(*rows, strict=True), strict=True)
            }
            for method, rows in methods.items()
        }
        for setting, methods in figures.items()
    }


_PAIRS = {"BMS-POS and Kosarak": ("retail", "kosarak"), "AOL and Zipf": ("zipf",)}
_TITLES = {"retail": "retail", "kosarak": "Kosarak, scaled", "zipf": "Zipf"}
_NAMES = {"ser": "score error rate", "fnr": "false negative rate", "loss": "score missed"}
_SHOWN = {
    "interactive": ["DPBook", "S 1:1", "S 1:3", "S 1:c", "S 1:c^2/3", "ours"],
    "non-interactive": ["ReTr 1D", "ReTr 2D", "ReTr 3D", "ReTr 4D", "ReTr 5D", "EM", "ours"],
}
# Figure 5.13 shows more retraversals than table 5.3.
_IN_TABLES = [
    name for names in _SHOWN.values() for name in names if name not in ("ReTr 4D", "ReTr 5D")
]


def _paper(name: str, epsilon: float, c: int, method: str) -> float:
    """The dissertation's score error rate, NaN where it has none."""
    cells = RATES.get(f"{name}, {epsilon:g}", {}).get(str(c))
    published = [each for each in _IN_TABLES if each != "ours"]
    if cells is None or method not in published:
        return math.nan
    value = cells[published.index(method)]
    return math.nan if value < 0 else value / 1000


@lru_cache(maxsize=64)
def _cell(name: str, epsilon: float, c: int, runs: int) -> dict[str, Any]:
    return measure(name, epsilon, c, runs)


def results(names: tuple[str, ...], epsilon: float, quick: bool) -> pd.DataFrame:
    """Tidy table: one row for each set, c, setting, method and measure."""
    sizes, runs = ((25, 100, 300), 20) if quick else (SIZES, 40)
    return pd.DataFrame(
        [
            {
                "set": name,
                "epsilon": epsilon,
                "c": c,
                "setting": setting,
                "method": method,
                "measure": figure,
                "mean": mean,
                "std": std,
                "runs": runs,
            }
            for name in names
            for c in sizes
            for setting, methods in _cell(name, epsilon, c, runs).items()
            for method in _SHOWN[setting]
            for figure, (mean, std) in methods[method].items()
        ]
    )


def _finding(table: pd.DataFrame, setting: str, figures: list[str]) -> Finding:
    """The parts of the claim on a setting, and how this library compares."""
    claim, rules = _CLAIMS[setting]
    checks: dict[str, bool | str] = {}
    texts = []
    for figure in figures:
        part = table[(table["measure"] == figure) & (table["setting"] == setting)]
        wide, std = (
            part.pivot_table(index=["set", "c"], columns="method", values=value)
            for value in ("mean", "std")
        )
        theirs = wide.drop(columns="ours")
        # Where every method finds all or nothing, any order of them would do.
        apart = theirs.max(axis=1) - theirs.min(axis=1) > 0.1
        error = std[apart] / np.sqrt(part["runs"].iloc[0])
        for rule, (good, bad, least) in rules.items():
            shown = [name for name in bad if name in theirs]
            # A few cells are no evidence on all.
            enough = apart.sum() >= max(3, len(apart) / 4)
            checks[f"{figure.upper()}: {rule}"] = (
                _ordered(theirs[apart], error, good, shown, least) if enough else TIE
            )
        behind = wide["ours"] - theirs.min(axis=1)
        texts.append(
            f"{figure.upper()}: the published methods differ by more than 0.1 in "
            f"{int(apart.sum())} of {len(wide)} cells; ours is the smallest in "
            f"{int((behind <= 0).sum())}; ours minus the paper's best: "
            f"{behind.min():+.3f} to {behind.max():+.3f}"
        )
    return Finding(claim, "; ".join(texts) + ".", checks)


def _beside(table: pd.DataFrame) -> tuple[str, dict[str, bool | str]]:
    """How far the cells are from the dissertation's; a rule only for the very same data.

    Its cells are means of 100 runs, and rounded.
    """
    known = table[table["paper"].notna()]
    noise = 3 * known["std"] * np.sqrt(1 / known["runs"] + 1 / 100) + 0.0005
    known = known.assign(
        gap=(known["mean"] - known["paper"]).abs(), near=lambda t: t["gap"] <= noise
    )
    told, rules = "", {}
    for name, part in known.groupby("set", sort=False):
        near, cells, gap = int(part["near"].sum()), len(part), part["gap"].median()
        told += (
            f" {_TITLES[name]}: {near} of {cells} cells are within three standard errors of the "
            f"dissertation's; median difference {gap:.3f}, largest {part['gap'].max():.3f}."
        )
        if name == "zipf":
            rules["nine in ten of its cells on Zipf are found again"] = near >= 0.9 * cells
    return told, rules


def _ordered(
    mean: pd.DataFrame, error: pd.DataFrame, good: list[str], bad: list[str], least: float
) -> bool | str:
    """Whether the best of ``good`` has smaller errors than the best of ``bad``.

    A difference counts if it is above 0.01 and two standard errors. If it is the other way round in
    more than a tenth of the cells, the answer is False; if it is the right way in a smaller share
    than ``least``, TIE.
    """
    left, right = mean[good].min(axis=1), mean[bad].min(axis=1)
    noise = np.maximum(2 * np.hypot(error[good].max(axis=1), error[bad].max(axis=1)), 0.01)
    if (left - right > noise).mean() > 0.1:
        return False
    return True if (right - left > noise).mean() >= least else TIE


# Of each setting: the claim; and each part of it, with the better methods, the worse ones, and in
# which share of the cells the difference must be clear.
_CLAIMS: dict[str, tuple[str, dict[str, tuple[list[str], list[str], float]]]] = {
    "interactive": (
        "with a threshold known in advance, SVT-DPBook is the worst, then SVT-S at 1:1, then at "
        "1:3; 1:c and 1:c^(2/3) are clearly better.",
        {
            "DPBook is worse than 1:1 in most cells that differ": (["S 1:1"], ["DPBook"], 0.5),
            "1:1 is worse than 1:3": (["S 1:3"], ["S 1:1"], 0.5),
            "1:3 is worse than the better of 1:c and 1:c^(2/3)": (
                ["S 1:c", "S 1:c^2/3"], ["S 1:3"], 0.5,
            ),
        },
    ),
    "non-interactive": (
        "over a known list, the exponential mechanism is clearly better than SVT with retraversal, "
        "and at least as good with the best increment of the threshold.",
        {
            "EM is better than an increment of 1D in most cells that differ": (
                ["EM"], ["ReTr 1D"], 0.5,
            ),
            "no increment is better than EM in more than a tenth": (
                ["EM"], [f"ReTr {raised}D" for raised in (1, 2, 3, 4, 5)], 0.0,
            ),
        },
    ),
}  # fmt: skip


def draw_lines(name: str, pair: str, epsilon: float, setting: str) -> Entry:
    """Return the function that draws one of figures 5.9 to 5.16."""

    def draw(out_dir: Path, quick: bool = False) -> Finding:
        table = results(_PAIRS[pair], epsilon, quick)
        table = table[(table["setting"] == setting) & table["measure"].isin(list(_NAMES))]
        sets = _PAIRS[pair]
        kinds = list(_NAMES) if setting == "interactive" else ["ser", "fnr"]
        figure = Figure(
            figsize=(4.5 * len(kinds) + 1, 3.6 * len(sets)), layout="constrained", dpi=150
        )
        axes = figure.subplots(len(sets), len(kinds), squeeze=False)
        for row, each in zip(axes, sets, strict=True):
            for ax, kind in zip(row, kinds, strict=True):
                part = table[(table["set"] == each) & (table["measure"] == kind)]
                for place, method in enumerate(_SHOWN[setting]):
                    line = part[part["method"] == method]
                    ours = method == "ours"
                    ax.errorbar(
                        line["c"],
                        line["mean"],
                        yerr=line["std"] / np.sqrt(line["runs"]),
                        label=method,
                        color="black" if ours else PALETTE[place],
                        linewidth=2.5 if ours else 1.2,
                        marker=MARKERS[place],
                        markersize=4,
                    )
                ax.set(xlabel="c", ylabel=_NAMES[kind], title=_TITLES[each])
                # Below 0 where fewer than c items were selected, all of them large.
                ax.set_ylim(min(part["mean"].min() - 0.05, -0.02), 1.02)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper")
        figure.suptitle(f"{setting.capitalize()}, epsilon {epsilon:g}")
        save(out_dir, name, figure, table)
        return _finding(table, setting, [kind for kind in kinds if kind != "loss"])

    return draw


def draw_table(name: str, pair: str, epsilon: float) -> Entry:
    """Return the function that draws one of tables 5.3 to 5.6."""

    def draw(out_dir: Path, quick: bool = False) -> Finding:
        table = results(_PAIRS[pair], epsilon, quick)
        table = table[(table["measure"] == "ser") & table["method"].isin(_IN_TABLES)]
        cells = zip(table["set"], table["c"], table["method"], strict=True)
        table = table.assign(paper=[_paper(each, epsilon, c, method) for each, c, method in cells])
        columns = [
            (setting, method)
            for setting, methods in _SHOWN.items()
            for method in methods
            if method in _IN_TABLES
        ]
        wide = table.pivot_table(
            index=["set", "c"], columns=["setting", "method"], values=["mean", "std"], sort=False
        )
        mean, std = wide["mean"][columns], wide["std"][columns]
        published = {
            (row.set, row.c, row.setting, row.method): row.paper for row in table.itertuples()
        }
        figure = Figure(figsize=(12, 1.2 + 0.55 * len(mean)), layout="constrained", dpi=150)
        ax = figure.subplots()
        ax.imshow(mean.to_numpy(), cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
        for i in range(len(mean)):
            best = {setting: mean.iloc[i][setting].min() for setting in _SHOWN}
            for j, (setting, method) in enumerate(columns):
                value = mean.iat[i, j]
                theirs = published[(*mean.index[i], setting, method)]
                ax.text(
                    j,
                    i,
                    f"{value:.3f} ± {std.iat[i, j]:.3f}"
                    + ("" if math.isnan(theirs) else f"\npaper {theirs:.3f}"),
                    ha="center",
                    va="center",
                    fontsize=7,
                    fontweight="bold" if value == best[setting] else "normal",
                )
        ax.set_xticks(range(len(columns)), [method for _, method in columns])
        ax.set_yticks(range(len(mean)), [f"{_TITLES[each]}, c={c}" for each, c in mean.index])
        ax.axvline(len(_SHOWN["interactive"]) - 0.5, color="black")
        ax.xaxis.tick_top()
        ax.set_title(f"SER, epsilon {epsilon:g}: interactive | non-interactive (mean ± std)")
        save(out_dir, name, figure, table)
        both = [_finding(table, setting, ["ser"]) for setting in _SHOWN]
        told, same = _beside(table)
        return Finding(
            " ".join(each.claim[0].upper() + each.claim[1:] for each in both),
            " ".join(
                f"{setting.capitalize()}, {each.found}"
                for setting, each in zip(_SHOWN, both, strict=True)
            )
            + told,
            {**both[0].checks, **both[1].checks, **same},
        )

    return draw


def draw_scores(out_dir: Path, quick: bool = False) -> Finding:
    """Figure 5.8: the 300 highest scores of each set; table 5.1 in the finding."""
    counts = {name: frequencies(name) for names in _PAIRS.values() for name in names}
    table = pd.DataFrame(
        [
            {"set": name, "rank": rank, "score": score}
            for name, scores in counts.items()
            for rank, score in enumerate(scores[:300].tolist(), start=1)
        ]
    )
    figure = Figure(figsize=(6, 4), layout="constrained", dpi=150)
    ax = figure.subplots()
    for colour, (name, part) in zip(PALETTE, table.groupby("set", sort=False), strict=False):
        ax.plot(part["rank"], part["score"], color=colour, label=_TITLES[str(name)])
    ax.set(xlabel="rank", ylabel="score", yscale="log")
    ax.legend(frameon=False)
    save(out_dir, "svt_figure_5_8", figure, table)
    zipf = counts["zipf"]
    ranks = np.arange(1, 301)
    return Finding(
        "the i-th score of Zipf is in proportion to 1/i; it has 10,000 items and 1,000,000 "
        "records, BMS-POS 1,657 and 515,597, Kosarak 41,270 and 990,002.",
        "; ".join(
            f"{_TITLES[name]}: {len(scores):,} items, scores {scores[0]:,} (first), "
            f"{scores[49]:,} (50th) and {scores[299]:,} (300th)"
            for name, scores in counts.items()
        )
        + f". The scores of Zipf add up to {zipf.sum():,}.",
        {
            "Zipf: rank times score is the same for the first 300, within 1%": bool(
                np.ptp(ranks * zipf[:300]) <= 0.01 * zipf[0]
            ),
            "Zipf has 10,000 items and 1,000,000 records, within 0.1%": bool(
                len(zipf) == 10_000 and abs(zipf.sum() - 10**6) <= 1000
            ),
        },
    )


FIGURES: dict[str, Entry] = {
    "svt_figure_5_8": draw_scores,
    "svt_table_5_3": draw_table("svt_table_5_3", "BMS-POS and Kosarak", 0.1),
    "svt_table_5_4": draw_table("svt_table_5_4", "AOL and Zipf", 0.1),
    "svt_table_5_5": draw_table("svt_table_5_5", "BMS-POS and Kosarak", 0.5),
    "svt_table_5_6": draw_table("svt_table_5_6", "AOL and Zipf", 0.5),
    **{
        f"svt_figure_5_{number}": draw_lines(f"svt_figure_5_{number}", pair, epsilon, setting)
        for number, (setting, epsilon, pair) in enumerate(
            (
                (setting, epsilon, pair)
                for setting in SETTINGS
                for epsilon in (0.1, 0.5)
                for pair in _PAIRS
            ),
            start=9,
        )
    },
}
