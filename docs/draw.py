"""Draw the pictures of results and of the first pages: ``python docs/draw.py [name ...]``.

The gallery draws its own pictures whenever the documentation is built. These few are kept in the
repository, because the README shows one of them. Each is drawn on a transparent background with
dark ink for light pages and with light ink for dark pages, and some also for phones. What they
show of measurements is read from ``docs/numbers.json`` and ``docs/_static/peers/all.csv``.
``python docs/draw.py page`` takes the screenshots of the page that the README's lines write, and of
the wizard, in Chromium.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import ticker
from PIL import Image

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric

STATIC = Path(__file__).resolve().parent / "_static"
# Ink, a fainter ink, and two colours that differ in lightness as well as in hue.
INKS = {
    "light": ("#222222", "#8a8a8a", "#1f6fb4", "#c8500a"),
    "dark": ("#f0f0f0", "#9a9a9a", "#6fb7f2", "#ffa24d"),
}
# Five lines in one panel: colour, mark and stroke.
LINES = {
    "light": ("#1f6fb4", "#c8500a", "#2a8a57", "#8a5aa8", "#6b6b6b"),
    "dark": ("#6fb7f2", "#ffa24d", "#67d39b", "#c9a3e6", "#a8a8a8"),
}
MARKS, STROKES = "osD^v", ("-", "-", "-", "--", ":")


def lines_for(ink):
    """Styles of the lines of one kind of page."""
    kind = "light" if ink == INKS["light"][0] else "dark"
    return [
        {"color": colour, "marker": mark, "linestyle": stroke, "markersize": 5}
        for colour, mark, stroke in zip(LINES[kind], MARKS, STROKES, strict=True)
    ]


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
        view = MarginalSynthesizer(epsilon=1.0, domain=DOMAIN, random_state=1).fit(records)
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
    for place, question in zip(places, QUESTIONS, strict=True):
        truth = len(records.query(question))
        answer = view.count(question, return_interval=True)
        axes[2].plot([0, 0], [place - 0.16, place + 0.16], color=faint, linewidth=1.5)
        axes[2].plot([answer.lower - truth, answer.upper - truth], [place] * 2, color=first, lw=3)
        axes[2].plot(answer.value - truth, place, "o", color=second, markersize=7)
        axes[2].annotate(
            f"{question}  (truth {truth:,})", (0.5, place + 0.28), ha="center", fontsize=9,
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
        rows = MarginalSynthesizer(epsilon=1.0, domain=DOMAIN, random_state=1).fit(records).sample(
            random_state=1
        )  # fmt: skip
    figure, axes = plt.subplots(1, 2, figsize=(5, 2.9), layout="constrained", sharey=True)
    edges = [np.arange(18, 92, 3), np.arange(0, 122, 6)]
    for ax, table, title in ((axes[0], records, "records"), (axes[1], rows, "synthetic rows")):
        ax.hist2d(table["age"], table["pay"] / 1000, edges, cmin=1, vmax=500)
        ax.set(title=title, xlabel="age")
    axes[0].set_ylabel("pay, thousands")
    return figure


def runs_of_peers():
    """The runs of all libraries that came back."""
    runs = pd.read_csv(STATIC / "peers" / "all.csv")
    return runs[(runs["status"] == "ok") & (runs["peer"] != "no privacy")]


# Other libraries and the marks of their errors.
PEER_MARKS = {"OpenDP": "o", "diffprivlib": "s", "SmartNoise": "D"}


def peers(ink, faint, first, second, narrow=False, column="value"):
    """Errors of other libraries as multiples of ours, or CPU time, from the table of all runs."""
    runs = runs_of_peers()
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
        means = part.groupby(["setting", "epsilon", "peer", "method"])[["value", "cpu_s"]].mean()
        for (setting, eps), values in means.groupby(level=[0, 1]):
            best = values.sort_values("value").groupby(level="peer")[column].first()
            if len(best) > 1 and best.get("skdp", 0) > 0:
                rows.append((f"{title}, {setting.split(',')[0]}, {eps:g}", best / best["skdp"]))
    size = (4.2, 1.2 + 0.42 * len(rows)) if narrow else (8.6, 0.9 + 0.27 * len(rows))
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    for peer, mark in PEER_MARKS.items():
        ax.plot([], [], mark, color=faint, label=peer + " (delta)" * (peer == "SmartNoise"))
        for place, (_, ratios) in enumerate(rows):
            if peer in ratios:
                colour = first if ratios[peer] >= 1 else second
                ax.plot(ratios[peer], place, mark, color=colour, markersize=7)
    if not narrow:
        ax.axvline(1, color=faint, linewidth=1)
    ax.set_xscale("log")
    if narrow:
        ax.set_yticks([])
        for place, (label, _) in enumerate(rows):
            ax.plot([1, 1], [place - 0.17, place + 0.2], color=faint, linewidth=1)
            ax.annotate(
                label, (0, place - 0.4), xycoords=("axes fraction", "data"), fontsize=9, va="center"
            )
        ax.spines["left"].set_visible(False)
    else:
        ax.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=9)
    ax.invert_yaxis()
    what = "error" if column == "value" else "CPU time"
    above = f"{what} of its best method / {what} of our best"
    ax.set_xlabel(f"{above}{chr(10) if narrow else ' '}(right of 1: ours is lower)", fontsize=9)
    if narrow:
        figure.legend(loc="outside upper center", ncols=2, fontsize=9)
    else:
        ax.legend(fontsize=9)
    return figure


def epsilon(ink, faint, first, second, narrow=False):
    """The distribution of a noisy count with and without you, and what it can do to a belief."""
    shape, size = ((2, 1), (4.2, 6.4)) if narrow else ((1, 2), (9, 3.3))
    figure, (left, right) = plt.subplots(*shape, figsize=size, layout="constrained")
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
    for value, place, edge in (
        (3, (0.15, 0.94), (0.15, 0.78)),
        (1, (0.35, 0.8), (0.45, 0.69)),
        (0.1, (0.76, 0.4), (0.6, 0.6)),
    ):
        line = {"arrowstyle": "-", "color": ink, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
        right.annotate(
            f"epsilon {value}", edge, place, ha="center", va="center", fontsize=10, color=ink,
            arrowprops=line,
        )  # fmt: skip
    right.plot([0, 1], [0, 1], color=faint, linewidth=0.8, linestyle="--")
    right.set(
        xlabel="belief that you are in the table, before", ylabel="after: somewhere in the band"
    )
    right.set(xlim=(0, 1), ylim=(0, 1), title="what a release can do to a belief")
    return figure


def by_epsilon(panels, ink, faint, narrow, columns=3):
    """Small panels of lines over epsilon: (title, label of the axis, {line: {epsilon: value}})."""
    columns = 1 if narrow else columns
    rows = -(-len(panels) // columns)
    size = (4.2, 2.9 * rows) if narrow else (3.1 * columns, 2.9 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    names = list(dict.fromkeys(name for _, _, lines in panels for name in lines))
    styles = dict(zip(names, lines_for(ink), strict=False))
    for ax, (title, label, lines) in zip(axes.flat, panels, strict=False):
        for name, values in lines.items():
            ax.plot(list(values), list(values.values()), **styles[name])
        ax.set_xscale("log")
        every = sorted({value for values in lines.values() for value in values})
        ax.set_xticks(every, [f"{value:g}" for value in every], fontsize=9)
        ax.minorticks_off()
        ax.set_title(title, fontsize=11)
        ax.set_xlabel("epsilon", fontsize=9)
        ax.set_ylabel(label, fontsize=9)
        ax.tick_params(axis="y", labelsize=9)
        ax.grid(axis="y", color=faint, alpha=0.3, linewidth=0.6)
    for ax in list(axes.flat)[len(panels) :]:
        ax.axis("off")
    handles = [plt.Line2D([], [], label=name, **styles[name]) for name in names]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=2 if narrow else len(names), fontsize=9
    )
    return figure, axes


def in_powers(ax):
    """A logarithmic axis whose numbers are written out."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    steps = (1,) if high / low > 50 else (1, 2, 5)
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=steps))
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.yaxis.set_major_formatter(
        ticker.FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    )


def counting(ink, faint, first, second, narrow=False):
    """Errors of ranges of two columns by epsilon, from the file of figures."""
    del first, second
    found = json.loads((STATIC.parent / "numbers.json").read_text(encoding="utf-8"))
    lines = {}
    for key, entry in found["counting"]["figures"].items():
        name, epsilon = key.split(", epsilon ")
        for table, error in entry["errors"].items():
            if error is not None:
                lines.setdefault(table, {}).setdefault(name, {})[float(epsilon)] = error
    shown = ("marginals", "independence", "HDPView", "PrivTree")
    panels = [
        (
            table,
            "error, records",
            {name: dict(sorted(methods[name].items())) for name in shown if name in methods},
        )
        for table, methods in lines.items()
    ]
    figure, axes = by_epsilon(panels, ink, faint, narrow)
    for ax in axes.flat[: len(panels)]:
        in_powers(ax)
    return figure


def scores(ink, faint, first, second, narrow=False):
    """NIST's score of synthetic rows by epsilon, from the file of figures."""
    del first, second
    found = json.loads((STATIC.parent / "numbers.json").read_text(encoding="utf-8"))
    figures = found["scores"]["figures"]
    panels = []
    for order in ("pairs", "triples"):
        lines = {
            release: {float(epsilon): value for epsilon, value in line.items()}
            for name, line in figures.items()
            for release, kind in [name.split(", ")]
            if kind == order
        }
        panels.append((f"{order} of columns", "score of 1,000", lines))
    return by_epsilon(panels, ink, faint, narrow, columns=2)[0]


# Measure, setting and title of the tasks that libraries did at more than one epsilon.
TASKS = [
    ("RMSE of ranges", None, "ranges of one column"),
    ("RMSE of bins", None, "single bins of one column"),
    ("score error", "kosarak", "most frequent items, Kosarak"),
    ("RMSE of 2-D ranges", "small", "ranges of two columns, small"),
    ("misclassification", None, "a classifier, Adult"),
    ("excess NICV", "adult", "k-means, Adult"),
]


def peers_by_epsilon(ink, faint, first, second, narrow=False):
    """Errors of the best method of each library by epsilon, from the table of all runs."""
    del first, second
    runs, panels = runs_of_peers(), []
    for measure, setting, title in TASKS:
        part = runs[runs["measure"] == measure]
        if setting:
            part = part[part["setting"].str.startswith(setting)]
        means = part.groupby(["peer", "epsilon", "method"])["value"].mean()
        best = means.groupby(level=["peer", "epsilon"]).min()
        lines = {peer: values.droplevel("peer").to_dict() for peer, values in best.groupby("peer")}
        order = [peer for peer in ("skdp", "OpenDP", "diffprivlib", "SmartNoise") if peer in lines]
        panels.append((title, measure, {peer: lines[peer] for peer in order}))
    figure, axes = by_epsilon(panels, ink, faint, narrow)
    for ax, (measure, _, _) in zip(axes.flat, TASKS, strict=False):
        if measure not in ("misclassification", "score error"):
            in_powers(ax)
    return figure


def page(folder):
    """Screenshots of the page that the README's lines write, after a few clicks."""
    from playwright.sync_api import sync_playwright

    readme = (STATIC.parents[1] / "README.md").read_text(encoding="utf-8")
    names = {}
    with tempfile.TemporaryDirectory() as made, contextlib.chdir(made), sync_playwright() as driver:
        exec(re.search(r"^```python\n(.*?)^```", readme, re.M | re.S)[1], names)
        file = Path(made, "page.html")
        names["release"].page(file, title="Made-up people")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        for scheme in INKS:
            size = {"width": 1000, "height": 900}
            shown = browser.new_context(viewport=size, color_scheme=scheme).new_page()
            shown.goto(file.as_uri())
            shown.wait_for_selector("html[data-ready]")
            card = shown.locator(".card", has=shown.locator("h3", has_text=re.compile("^sex$")))
            card.get_by_role("button", name=re.compile("^F: ")).click()
            shown.get_by_role("combobox", name="Only records where").select_option(label="age")
            for name, value in (("From", "30"), ("To", "40")):
                shown.get_by_role("combobox", name=name, exact=True).select_option(label=value)
            shown.evaluate("window.scrollTo(0, 0)")
            cards = shown.locator(".card").last.bounding_box()
            clip = {"x": 0, "y": 0, "width": 1000, "height": cards["y"] + cards["height"] + 20}
            path = Path(folder) / f"page-{scheme}.png"
            shown.screenshot(path=path, full_page=True, clip=clip)
            in_few_colours(path)
        browser.close()


def wizard(path):
    """Screenshot of the wizard's page of epsilon, for the table of the guide's session."""
    from playwright.sync_api import sync_playwright

    guide = STATIC.parent / "user_guide" / "command_line.rst"
    text = guide.read_text(encoding="utf-8")
    table = re.search(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.M)[1]
    declared = re.search(r"^   \$ cat codebook.csv\n((?:   .*\n)+)", text, re.M)[1]
    with tempfile.TemporaryDirectory() as made, contextlib.chdir(made):
        exec(textwrap.dedent(table), {})
        Path("codebook.csv").write_text(textwrap.dedent(declared), encoding="utf-8")
        command = [sys.executable, "-m", "skdp", "wizard", "visits.csv", "--no-browser"]
        command += ["--domain", "codebook.csv"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().split()[-1]
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
                shown = browser.new_page(viewport={"width": 1120, "height": 840})
                shown.goto(address)

                def click(name):
                    with shown.expect_navigation(timeout=600_000):
                        shown.get_by_role("button", name=name).click()

                shown.get_by_label("Each record").check()
                click("Look at the table")
                shown.get_by_label("All of this is publicly known").check()
                click("Go on to the questions")
                asked = (
                    "age >= 65", "proportion(city == 'Ems')", "mean(age) where city == 'Ems'",
                    "median(cost)", "median(day)",
                )  # fmt: skip
                shown.get_by_label("Questions").fill("\n".join(asked))
                click("Go on to epsilon")
                shown.get_by_label("Number of records").fill("20000")
                shown.get_by_label("Epsilons to compare").fill("0.25, 0.5, 1, 2, 4")
                click("Show the margins")
                shown.get_by_label("ε = 2").check()
                shown.screenshot(path=path, full_page=True)
                browser.close()
        finally:
            server.terminate()
            server.wait()
    in_few_colours(path)


def in_few_colours(path):
    """Make the file of a screenshot small."""
    with Image.open(path) as drawn:
        drawn.convert("RGB").quantize(64).save(path, optimize=True)


PICTURES = {
    "release": release,
    "release-phone": phone,
    **{
        f"{name}{'-phone' * narrow}": functools.partial(draw, narrow=narrow)
        for name, draw in {
            "epsilon": epsilon,
            "peers": peers,
            "speed": functools.partial(peers, column="cpu_s"),
            "peers-by-epsilon": peers_by_epsilon,
            "counting": counting,
            "scores": scores,
        }.items()
        for narrow in (False, True)
    },
}


def main(folder=STATIC, names=()):
    """Draw the pictures of these names, or all, for both kinds of pages into a folder."""
    for page, inks in INKS.items():
        with mpl.rc_context(style(*inks[:2])):
            for name in names or PICTURES:
                figure = PICTURES[name](*inks)
                sharper = 130 if name.endswith("-phone") else 110
                figure.savefig(Path(folder) / f"{name}-{page}.png", dpi=sharper)
                plt.close(figure)


if __name__ == "__main__":
    if sys.argv[1:] == ["page"]:
        page(STATIC)
        wizard(STATIC.parent / "user_guide" / "wizard.png")
    else:
        main(names=sys.argv[1:])
