"""Draw the pictures of the first pages: ``python docs/draw.py``.

The gallery draws its own pictures whenever the documentation is built. These few are kept in the
repository, because the README shows one of them. Each is drawn twice on a transparent background:
with dark ink for light pages and with light ink for dark pages.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric

STATIC = Path(__file__).resolve().parent / "_static"
# Ink, a fainter ink, and two colours that differ in lightness as well as in hue.
INKS = {
    "light": ("#222222", "#8a8a8a", "#1f6fb4", "#c8500a"),
    "dark": ("#f0f0f0", "#9a9a9a", "#6fb7f2", "#ffa24d"),
}


def style(ink, faint):
    """Settings of matplotlib for one kind of page."""
    return {
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": faint,
        "axes.titlesize": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": ink,
        "ytick.color": ink,
        "font.size": 11,
        "svg.fonttype": "none",
        "savefig.transparent": True,
        "legend.frameon": False,
    }


def people(n=20_000):
    """Simulated records: age, sex and yearly pay."""
    rng = np.random.default_rng(5)
    age = np.clip(rng.gamma(8, 3.2, n) + 18, 18, 90).astype(int)
    career = 12_000 + 1_150 * np.minimum(age - 18, 32) - 900 * np.maximum(age - 62, 0)
    pay = np.clip(career * rng.lognormal(0, 0.28, n), 0, 120_000)
    return pd.DataFrame({"age": age, "sex": rng.choice(["Female", "Male"], n), "pay": pay})


DOMAIN = Domain(
    {
        "age": Numeric(18, 90, integer=True),
        "sex": Categorical(["Female", "Male"]),
        "pay": Numeric(0, 120_000, bins=60),
    }
)
QUESTIONS = [
    "age < 30",
    "age < 30 and pay < 20000",
    "30 <= age <= 40 and sex == 'Female'",
    "pay >= 60000",
    "age >= 50 and pay >= 50000",
    "sex == 'Male' and pay < 16000",
]


def release(ink, faint, first, second):
    """Records, synthetic rows, and the errors of six answers."""
    del ink
    records = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seeded, so that every run draws the same picture
        view = MarginalSynthesizer(1.0, domain=DOMAIN, random_state=1).fit(records)
        rows = view.sample(random_state=1)
    figure, axes = plt.subplots(
        1, 3, figsize=(11.6, 3.6), layout="constrained", width_ratios=[1, 1, 1.1]
    )
    edges = [np.arange(18, 92, 2), np.arange(0, 122_000, 4_000)]
    for ax, table, title in (
        (axes[0], records, "the records: private"),
        (axes[1], rows, "rows drawn from the release: public"),
    ):
        ax.hist2d(table["age"], table["pay"] / 1000, [edges[0], edges[1] / 1000], cmin=1, vmax=260)
        ax.set(title=title, xlabel="age", ylabel="pay, thousands")
    places = np.arange(len(QUESTIONS))[::-1]
    axes[2].axvline(0, color=faint, linewidth=1, linestyle="--")
    for place, question in zip(places, QUESTIONS, strict=True):
        truth = len(records.query(question))
        answer = view.count(question, return_interval=True)
        axes[2].plot([answer.lower - truth, answer.upper - truth], [place] * 2, color=first, lw=3)
        axes[2].plot(answer.value - truth, place, "o", color=second, markersize=7)
        axes[2].annotate(
            f"{question}  (truth {truth:,})", (0.5, place + 0.24), ha="center", fontsize=9,
            xycoords=("axes fraction", "data"),
        )  # fmt: skip
    axes[2].set(
        ylim=(-0.5, len(places) - 0.3), yticks=[], xlabel="released answer minus truth, people"
    )
    axes[2].set_title("six answers with their error bars")
    axes[2].spines["left"].set_visible(False)
    return figure


def phone(ink, faint, first, second):
    """Records and synthetic rows alone, for narrow screens."""
    del ink, faint, first, second
    records = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = MarginalSynthesizer(1.0, domain=DOMAIN, random_state=1).fit(records).sample(
            random_state=1
        )  # fmt: skip
    figure, axes = plt.subplots(1, 2, figsize=(5, 2.9), layout="constrained", sharey=True)
    edges = [np.arange(18, 92, 3), np.arange(0, 122, 6)]
    for ax, table, title in ((axes[0], records, "records"), (axes[1], rows, "synthetic rows")):
        ax.hist2d(table["age"], table["pay"] / 1000, edges, cmin=1, vmax=500)
        ax.set(title=title, xlabel="age")
    axes[0].set_ylabel("pay, thousands")
    return figure


def peers(ink, faint, first, second):
    """Errors of other libraries as multiples of ours, from the table of all runs."""
    runs = pd.read_csv(STATIC / "peers" / "all.csv")
    runs = runs[(runs["status"] == "ok") & (runs["peer"] != "no privacy")]
    chosen = {
        "RMSE of ranges": "ranges of one column",
        "RMSE of bins": "single bins of one column",
        "score error": "most frequent items",
        "RMSE of 2-D ranges": "ranges of two columns",
        "misclassification": "a classifier",
        "excess NICV": "k-means",
    }
    rows = []
    for measure, title in chosen.items():
        part = runs[runs["measure"] == measure]
        means = part.groupby(["setting", "epsilon", "peer", "method"])["value"].mean()
        for (setting, eps), values in means.groupby(level=[0, 1]):
            best = values.groupby(level="peer").min()
            if len(best) > 1 and best.get("skdp", 0) > 0:
                rows.append((f"{title}, {setting.split(',')[0]}, {eps:g}", best / best["skdp"]))
    figure, ax = plt.subplots(figsize=(8.6, 0.9 + 0.27 * len(rows)), layout="constrained")
    marks = {"OpenDP": "o", "diffprivlib": "s", "SmartNoise": "D"}
    for peer, mark in marks.items():
        ax.plot([], [], mark, color=faint, label=peer + " (delta)" * (peer == "SmartNoise"))
        for place, (_, ratios) in enumerate(rows):
            if peer in ratios:
                colour = first if ratios[peer] >= 1 else second
                ax.plot(ratios[peer], place, mark, color=colour, markersize=7)
    ax.axvline(1, color=faint, linewidth=1)
    ax.set_xscale("log")
    ax.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=9)
    ax.invert_yaxis()
    ax.set_xlabel(
        "error of its best method / error of our best (right of 1: ours is lower)", fontsize=9
    )
    ax.legend(fontsize=9)
    return figure


def epsilon(ink, faint, first, second):
    """The distribution of a noisy count with and without you, and what it can do to a belief."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
    ratio = np.exp(-1.0)
    values = np.arange(94, 109)
    for centre, shift, colour, label in (
        (100, -0.2, first, "without you"),
        (101, 0.2, second, "with you"),
    ):
        law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values - centre)
        left.bar(values + shift, law, width=0.4, color=colour, label=label)
    left.set(xlabel="published count", ylabel="probability", title="a count at epsilon 1")
    left.set_xticks([95, 100, 105])
    left.legend(loc="upper right", fontsize=10)
    before = np.linspace(0, 1, 201)
    odds = before / np.maximum(1 - before, 1e-12)
    for value, shade in ((3, 0.18), (1, 0.35), (0.1, 0.9)):
        low, high = (odds * np.exp(sign * value) for sign in (-1, 1))
        band = low / (1 + low), high / (1 + high)
        right.fill_between(before, *band, color=first, alpha=shade, linewidth=0)
    for text, place, colour in (
        ("epsilon 3", (0.13, 0.9), ink),
        ("1", (0.4, 0.74), ink),
        ("0.1", (0.53, 0.53), "white" if ink == "#222222" else "black"),
    ):
        right.annotate(text, place, ha="center", va="center", fontsize=10, color=colour)
    right.plot([0, 1], [0, 1], color=faint, linewidth=0.8, linestyle="--")
    right.set(
        xlabel="belief that you are in the table, before", ylabel="after: somewhere in the band"
    )
    right.set(xlim=(0, 1), ylim=(0, 1), title="what a release can do to a belief")
    return figure


PICTURES = {"release": release, "phone": phone, "epsilon": epsilon, "peers": peers}


def main(folder=STATIC):
    """Draw all pictures for both kinds of pages into a folder."""
    for page, inks in INKS.items():
        with mpl.rc_context(style(*inks[:2])):
            for name, draw in PICTURES.items():
                figure = draw(*inks)
                figure.savefig(Path(folder) / f"{name}-{page}.png", dpi=110)
                plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
