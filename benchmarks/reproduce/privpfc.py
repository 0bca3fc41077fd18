"""Figures 3.2 to 3.12 of the dissertation (PrivPfC), redrawn.

The comparisons with all competitors, figures 3.4 to 3.7, are in
`benchmarks.reproduce.classification`. The others are about PrivPfC as published and as in this
library, DiffGen, projected histograms and PrivBayes, with decision trees on Adult; the
dissertation's tables US and BR are not available. Numbers are means over folds and seeds; the
finding of a figure says which of its claims hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score

from benchmarks import privpfc as tables
from benchmarks._fidelity_tables import Table
from benchmarks.reproduce import (
    MARKERS,
    PALETTE,
    UNTESTED,
    Figure,
    Finding,
    classification,
    compare,
    named,
    panels,
    save,
)
from benchmarks.reproduce.classification import EPSILONS, RELEASES, draw, train
from skdp import PrivPfCTransformer
from skdp.algorithms import diffgen, privbayes, privpfc
from skdp.algorithms import privpfc as kernel
from skdp.algorithms.privpfc import Quality, grid_scores, paper_grids
from skdp.tables import CountTable


def _error(
    problem: Table, method: Callable[..., Any], epsilon: float, fold: int, **given: Any
) -> tuple[float, float]:
    """Misclassification and CPU seconds of one release and one tree trained on it."""
    fitted, tested = tables.folds(problem)[fold]
    X, y = problem.predictors, problem.labels
    release = method(
        epsilon=epsilon, domain=problem.domain, target=problem.target, random_state=fold, **given
    )
    begin = time.process_time()
    model = train(problem, release, "tree", fold).fit(X.iloc[fitted], y[fitted])
    seconds = time.process_time() - begin
    return 1 - accuracy_score(y[tested], model.predict(X.iloc[tested])), seconds


def _lines_of(means: pd.DataFrame) -> str:
    """Errors by method, one after the other along the axis of the figure."""
    return "; ".join(
        f"{name}: " + ", ".join(f"{value:.4f} at {at:g}" for at, value in row.dropna().items())
        for name, row in means.iterrows()
    )


def figure_3_2(out_dir: Path, quick: bool) -> Finding:
    rows = []
    for epsilon in np.geomspace(1e-3, 100, 30 if quick else 120):
        quality = Quality.of_the_paper(Fraction(float(epsilon)))
        steps = np.append(np.diff(quality.table), kernel.UNIT) / kernel.UNIT
        rows.append((epsilon, "largest change", steps.max()))
        rows.append((epsilon, "length of the interval", quality.score_range / kernel.UNIT))
        rows.append((epsilon, "the paper's bound, both ways", 2.2))
    frame = pd.DataFrame(rows, columns=["epsilon", "what", "records"])
    draw(out_dir, "privpfc_figure_3_2", frame, "epsilon", "records", label="what", log_x=True)
    largest = frame.loc[frame["what"] == "largest change", "records"].max()
    interval = frame.loc[frame["what"] == "length of the interval", "records"].max()
    return Finding(
        "a record changes the quality by at most 1.1.",
        f"by at most {largest:.4f}, and all changes lie in an interval of length {interval:.4f}; "
        "selection may use that.",
        {"the largest change is at most 1.1": bool(largest <= 1.1)},
    )


def figure_3_3(out_dir: Path, quick: bool) -> Finding:
    """Quality of the two largest counts against the exact one of all classes."""
    problem = tables.adult(multiclass=True)
    codes = problem.domain.encode(problem.rows)
    table = CountTable.from_codes(codes, problem.domain.shape)
    rng = np.random.default_rng(0)
    rows, found = [], []
    attributes = [problem.domain[name] for name in problem.predictors]
    options = [tables.options_of(attribute, 8) for attribute in attributes]
    for epsilon in (0.05, 0.5) if quick else EPSILONS:
        share = Fraction(str(epsilon)) * Fraction(6, 10)
        grids = np.concatenate(paper_grids([each.sizes for each in options], 300, 3000))
        grids = grids[rng.choice(len(grids), 40 if quick else 150, replace=False)]
        two = grid_scores(table, options, [grids], Quality.of_the_paper(share)) / kernel.UNIT
        exact = [_exact_quality(table, options, grid, float(share), rng) for grid in grids]
        found.append(np.corrcoef(two, exact)[0, 1])
        rows += [(epsilon, a, b) for a, b in zip(two, exact, strict=True)]
    frame = pd.DataFrame(rows, columns=["epsilon", "two largest", "exact"])
    _draw_points(out_dir, "privpfc_figure_3_3", frame)
    return Finding(
        "the quality of the two largest counts and the exact one have a correlation of 0.936 "
        "(standard deviation 0.026).",
        f"on Adult's marital status {np.mean(found):.4f} (standard deviation {np.std(found):.4f}).",
        {
            "a correlation of at least 0.9": bool(np.mean(found) >= 0.9),
            "its mean is within two of the dissertation's standard deviations of 0.936": bool(
                abs(np.mean(found) - 0.936) <= 2 * 0.026
            ),
            "the same over four tables": UNTESTED,
        },
    )


def _exact_quality(
    table: CountTable, options: Any, grid: np.ndarray, epsilon: float, rng: np.random.Generator
) -> float:
    """Expected number of right predictions, by 200 draws of the noise."""
    n_classes = table.shape[-1]
    key = np.zeros(len(table.codes), dtype=np.int64)
    for axis, option in enumerate(grid.tolist()):
        if option:
            key = key * int(options[axis].sizes[option])
            key += options[axis].groups[option - 1][table.codes[:, axis]]
    cells, place = np.unique(key, return_inverse=True)
    counts = np.zeros((len(cells), n_classes))
    np.add.at(counts, (place.ravel(), table.codes[:, -1]), table.counts)
    noisy = counts[:, None, :] + rng.laplace(0, 1 / epsilon, (len(cells), 200, n_classes))
    winners = noisy.argmax(axis=2)
    return float(np.take_along_axis(counts, winners, axis=1).mean(axis=1).sum())


def _draw_points(out_dir: Path, name: str, frame: pd.DataFrame) -> None:
    figure, axes = panels(size=(4.5, 4), grid=False)
    for place, (epsilon, part) in enumerate(frame.groupby("epsilon")):
        axes.plot(
            part["two largest"],
            part["exact"],
            MARKERS[place],
            color=PALETTE[place],
            markersize=3,
            label=f"epsilon {epsilon:g}",
        )
    axes.set_xlabel("quality of the two largest counts")
    axes.set_ylabel("exact quality")
    axes.legend(fontsize=7, frameon=False)
    save(out_dir, name, figure, frame)


def _variants(
    out_dir: Path, name: str, cells: list[tuple[str, float, float]], x: str
) -> pd.DataFrame:
    frame = pd.DataFrame(cells, columns=["method", x, "misclassification"])
    draw(out_dir, name, frame, x, "misclassification", label="method", log_x=True)
    return frame.groupby(["method", x])["misclassification"].mean().unstack()


def figure_3_8(out_dir: Path, quick: bool) -> Finding:
    problem = tables.adult()
    pools = (100, 1000) if quick else (100, 1000, 10_000, 200_000)
    cells = [
        (
            f"{name}, epsilon {epsilon:g}",
            float(pool),
            _error(problem, RELEASES[name], epsilon, fold, max_grids=pool)[0],
        )
        for name in ("PrivPfC", "PrivPfC, as published")
        for epsilon in (0.05, 0.5)
        for pool in pools
        for fold in range(1 if quick or pool > 10_000 else 3)
    ]
    means = _variants(out_dir, "privpfc_figure_3_8", cells, "pool")
    checks: dict[str, bool | str] = {}
    for epsilon in (0.05, 0.5):
        line = means.loc[f"PrivPfC, as published, epsilon {epsilon:g}"]
        many = min(10_000, line.index.max())
        gain = line[100] - line[many]
        checks[f"epsilon {epsilon:g}: {many:,.0f} candidates are better than 100 by 0.002"] = bool(
            gain >= 0.002
        )
        rule = f"epsilon {epsilon:g}: 200,000 gain a third of that or less"
        later = line[many] - line.get(200_000, np.nan)
        checks[rule] = UNTESTED if np.isnan(later) else bool(0 <= later <= gain / 3)
    return Finding(
        "from 100 to 10,000 candidates much is gained, to 200,000 little more.",
        f"{_lines_of(means)}.",
        checks,
    )


def figure_3_9(out_dir: Path, quick: bool) -> Finding:
    problem = tables.adult()
    splits = {"3/37/60": (3, 37, 60), "3/10/87": (3, 10, 87)}
    forms = {"as published": RELEASES["PrivPfC, as published"], "ours": PrivPfCTransformer}
    cells = [
        (f"{split}, {form}", epsilon, _error(problem, method, epsilon, fold, shares=shares)[0])
        for split, shares in splits.items()
        for form, method in forms.items()
        for epsilon in ((0.1, 1.0) if quick else EPSILONS)
        for fold in range(1 if quick else 3)
    ]
    means = _variants(out_dir, "privpfc_figure_3_9", cells, "epsilon")
    gain = means.loc["3/37/60, as published"] - means.loc["3/10/87, as published"]
    return Finding(
        "the split 3/10/87 is as good as 3/37/60, and a little better from epsilon 0.2 on.",
        f"{_lines_of(means)}.",
        {
            "as published, it costs at most 0.005 anywhere": bool((gain >= -0.005).all()),
            "as published, it is better on average from epsilon 0.2": bool(
                gain[gain.index >= 0.2].mean() > 0
            ),
        },
    )


def figure_3_10(out_dir: Path, quick: bool) -> Finding:
    """What the noise of the selection costs: a selection without noise is not private."""
    problem = tables.adult()
    cells = []
    epsilons = (0.1, 1.0) if quick else EPSILONS
    for name in ("PrivPfC", "PrivPfC, as published", "DiffGen", "PrivBayes"):
        for epsilon in epsilons:
            for fold in range(1 if quick else 3):
                error, _ = _error(problem, RELEASES[name], epsilon, fold)
                cells.append((name, epsilon, error))
                error, _ = _noise_free_choice(problem, name, epsilon, fold)
                cells.append((f"{name}, choice without noise", epsilon, error))
    means = _variants(out_dir, "privpfc_figure_3_10", cells, "epsilon")
    ours, free = means.loc["PrivPfC, as published"], "choice without noise"
    gain = ours - means.loc[f"PrivPfC, as published, {free}"]
    behind = means.loc["DiffGen"] - ours
    return Finding(
        "a selection without noise helps PrivPfC, by less than it is better than DiffGen; DiffGen "
        "and PrivBayes are worse even with one.",
        f"{_lines_of(means)}.",
        {
            "PrivPfC gains on average": compare(gain.mean(), gain.std() / len(gain) ** 0.5),
            "by less than it is better than DiffGen": bool(gain.mean() < behind.mean()),
            "DiffGen without noise is worse than PrivPfC with noise": bool(
                means.loc[f"DiffGen, {free}"].mean() > ours.mean()
            ),
            "so is PrivBayes": bool(means.loc[f"PrivBayes, {free}"].mean() > ours.mean()),
        },
    )


def _noise_free_choice(problem: Table, name: str, epsilon: float, fold: int) -> tuple[float, float]:
    """The error if the best grid, attribute or set of parents is always chosen."""
    module: Any = {"DiffGen": diffgen, "PrivBayes": privbayes}.get(name, privpfc)
    private = {way: getattr(module, way, None) for way in ("noisy_max", "exponential")}
    for way in private:
        setattr(module, way, lambda scores, *_, **__: int(np.argmax(scores)))
    try:
        return _error(problem, RELEASES[name], epsilon, fold)
    finally:
        for way, function in private.items():
            setattr(module, way, function)


def figure_3_11(out_dir: Path, quick: bool) -> Finding:
    """Adult with more and more predictors, the most informative on the label first."""
    problem = tables.adult()
    codes = problem.domain.encode(problem.rows)
    names = list(problem.predictors)
    strength = []
    for axis, name in enumerate(names):
        table = np.zeros((problem.domain[name].size, 2))
        np.add.at(table, (codes[:, axis], codes[:, -1]), 1)
        table = table[table.sum(axis=1) > 0]
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
        strength.append(float(((table - expected) ** 2 / expected).sum()))
    ranked = [names[axis] for axis in np.argsort(strength)[::-1]]
    cells = []
    for dimensions in (4, 14) if quick else (4, 6, 8, 10, 12, 14):
        chosen = [*ranked[: dimensions - 1], problem.target]
        rows, domain = problem.rows[chosen], problem.domain.select(chosen)
        part = Table("adult", rows, domain, problem.target)
        for name, method in RELEASES.items():
            for fold in range(1 if quick else 3):
                error, _ = _error(part, method, 0.5, fold)
                cells.append((name, float(dimensions), error))
    means = _variants(out_dir, "privpfc_figure_3_11", cells, "dimensions")
    spread = means.max(axis=1) - means.min(axis=1)
    stable = ("PrivPfC, as published", "DiffGen", "PPH")
    return Finding(
        "at epsilon 0.5 the errors of PrivPfC, DiffGen and PPH hardly depend on the number of "
        "dimensions, and PrivPfC's is the smallest, that of PrivBayes the largest.",
        f"{_lines_of(means)}.",
        {
            "none of these three errors changes by more than 0.03": bool(
                spread[list(stable)].max() <= 0.03
            ),
            "PrivPfC, as published, has the smallest mean": bool(
                means.loc["PrivPfC, as published"].mean()
                <= means.loc[["DiffGen", "PPH"]].mean(axis=1).min()
            ),
            "PrivBayes has the largest at every number of dimensions": bool(
                (means.loc["PrivBayes"] >= means.loc[list(stable)].max()).all()
            ),
        },
    )


def figure_3_12(out_dir: Path, quick: bool) -> Finding:
    problem = tables.adult()
    rows = []
    for name, method in RELEASES.items():
        for epsilon in (0.05, 0.5):
            for fold in range(1 if quick else 3):
                rows.append((name, epsilon, _error(problem, method, epsilon, fold)[1]))
    frame = pd.DataFrame(rows, columns=["method", "epsilon", "seconds"])
    draw(
        out_dir,
        "privpfc_figure_3_12",
        frame,
        "epsilon",
        "seconds",
        label="method",
        log_x=True,
        log_y=True,
    )
    means = frame.groupby("method")["seconds"].mean()
    slow = frame[frame["method"] == "DiffGen"].groupby("epsilon")["seconds"].mean()
    shown = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
    return Finding(
        "PrivBayes takes longest, then PrivPfC, PPH and DiffGen; DiffGen takes longer at a "
        "larger budget.",
        f"CPU seconds of release and training: {shown}; DiffGen {slow[0.05]:.3f} at epsilon 0.05 "
        f"and {slow[0.5]:.3f} at 0.5.",
        {
            "PrivPfC, as published, takes longer than PPH": bool(
                means["PrivPfC, as published"] > means["PPH"]
            ),
            "PPH takes longer than DiffGen": bool(means["PPH"] > means["DiffGen"]),
            "DiffGen takes a tenth longer at epsilon 0.5 than at 0.05": bool(
                slow[0.5] > 1.1 * slow[0.05]
            ),
            "PrivBayes takes longer than PrivPfC, as published": bool(
                means["PrivBayes"] > means["PrivPfC, as published"]
            ),
        },
    )


_OTHERS = (figure_3_8, figure_3_9, figure_3_10, figure_3_11, figure_3_12)
FIGURES: dict[str, Figure] = {
    **named("privpfc", figure_3_2, figure_3_3),
    **classification.FIGURES,
    **named("privpfc", *_OTHERS),
}
