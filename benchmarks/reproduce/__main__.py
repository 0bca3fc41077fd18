"""Redraw figures and tables of the five works: ``python -m benchmarks.reproduce --list``.

``--figure NAME`` draws one (repeat it for several), ``--work NAME`` those of a work, ``--all`` all
of them, ``--jobs`` at a time; ``--quick`` uses fewer repetitions. Writes ``NAME.png``, ``NAME.csv``
and ``NAME.json``, the finding, into ``--out``. ``--publish DIR`` puts findings and pictures of
``--out`` among those of the documentation in ``DIR`` and writes its tables and grid of pictures.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import multiprocessing
import re
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import _data
from benchmarks.reproduce import Figure
from benchmarks.reproduce.claims import QUOTES, experiment

WORKS = {
    "dpcube": "DPCube",
    "gblue": "GBLUE",
    "cubes": "Data cubes",
    "hdpview": "HDPView",
    "background": "Dissertation, chapters 2 and 5 (background)",
    "privpfc": "Dissertation, chapter 3 (PrivPfC)",
    "kmeans": "Dissertation, chapter 4 (k-means)",
    "svt": "Dissertation, chapter 5 (sparse vector)",
}
# By time, the longest first.
LONGEST = ("kmeans", "privpfc", "svt", "hdpview", "cubes", "background", "dpcube", "gblue")
VERDICTS = ["agrees", "agrees in part", "disagrees", "tie", "not comparable"]
# Pictures of the documentation: at most so many pixels wide, and so many colours.
WIDTH, COLOURS = 640, 160
COLUMNS = ["figure", "work", "run", "verdict", "claim", "found", "rules", "cpu_s", "seconds"]
COLUMNS += ["commit", "date"]


def figures() -> dict[str, tuple[str, Figure]]:
    """Every figure: from its name, which begins with its module, to its work and its function."""
    found: dict[str, tuple[str, Figure]] = {}
    for module, work in WORKS.items():
        drawings = importlib.import_module(f"benchmarks.reproduce.{module}").FIGURES
        found |= {name: (work, draw) for name, draw in drawings.items()}
    return found


def drawn(out: Path, name: str, quick: bool) -> dict[str, Any] | None:
    """Draw a figure into ``out``; what it shows, as ``NAME.json`` has it, or None without its data.

    Parameters
    ----------
    out : Path
        Gets ``NAME.png``, ``NAME.csv`` and ``NAME.json``.
    name : str
        A name of `figures`.
    quick : bool
        Whether to use fewer repetitions.
    """
    # Seeds make a figure repeatable; the warning about them is for releases.
    warnings.simplefilter("ignore")
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        finding = figures()[name][1](out, quick)
    except SystemExit as missing:
        print(f"{name} is not drawn: {missing}", flush=True)
        return None
    row = {
        "figure": name,
        "work": next(module for module in WORKS if name.startswith(module)),
        "run": "quick" if quick else "full",
        "verdict": finding.verdict,
        "claim": finding.claim,
        "found": finding.found,
        "rules": finding.rules,
        "cpu_s": round(time.process_time() - cpu, 1),
        "seconds": round(time.perf_counter() - wall, 1),
        **_data.stamp(),
    }
    (out / f"{name}.json").write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    print(f"{name}\n  {finding}\n  {row['cpu_s']:.0f} CPU s", flush=True)
    return row


def publish(out: Path, folder: Path) -> None:
    """Put findings and pictures into the folder of the documentation, and write its tables.

    Parameters
    ----------
    out : Path
        Has ``NAME.json`` and ``NAME.png`` of figures; they replace those of the folder.
    folder : Path
        Gets ``findings.csv`` with all figures, ``verdicts.csv``, ``summary.csv``, a text for each
        work, ``pictures.txt``, and the pictures made small.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, order = folder / "findings.csv", list(figures())
    known = pd.read_csv(path).fillna("").to_dict("records") if path.exists() else []
    rows = {row["figure"]: row for row in known}
    for name in order:
        if (out / f"{name}.json").exists():
            rows[name] = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
        if (out / f"{name}.png").exists():
            _shrink(out / f"{name}.png", folder / f"{name}.png")
    found = pd.DataFrame([rows[name] for name in order if name in rows], columns=COLUMNS)
    found.to_csv(path, index=False)
    (folder / "runs.txt").write_text(_runs(found), encoding="utf-8")
    _summary(found).to_csv(folder / "summary.csv")
    _verdicts(found).to_csv(folder / "verdicts.csv", index=False)
    for work, part in found.groupby("work", sort=False):
        text = "\n".join(_entry(row) for row in part.itertuples())
        (folder / f"{work}.txt").write_text(text, encoding="utf-8")
    shown = [row for row in found.itertuples() if (folder / f"{row.figure}.png").exists()]
    grid = "\n".join(_picture(row, folder.name) for row in shown)
    (folder / "pictures.txt").write_text(grid, encoding="utf-8")


def _runs(found: pd.DataFrame) -> str:
    """How many figures were drawn at which commit of the package, and how long that took."""
    said = [
        f"{len(part)} on {date} at {commit[:8]} ({part['cpu_s'].sum() / 60:.1f} CPU minutes)"
        for (date, commit), part in found.groupby(["date", "commit"])
    ]
    return f"The {len(found)} figures were drawn for these commits: {'; '.join(said)}.\n"


def together(verdicts: list[str]) -> str:
    """The verdict of an experiment from those of its drawings.

    What is not comparable says nothing.
    """
    said = {verdict for verdict in verdicts if verdict != "not comparable"}
    if len(said) <= 1:
        return said.pop() if said else "not comparable"
    return "agrees in part" if said & {"agrees", "agrees in part"} else "disagrees"


def _summary(found: pd.DataFrame) -> pd.DataFrame:
    """How many experiments of each work agree; drawings of the same runs are one experiment."""
    each = found.assign(experiment=found["figure"].map(experiment))
    verdicts = each.groupby(["work", "experiment"])["verdict"].agg(
        lambda some: together(list(some))
    )
    works = list(dict.fromkeys(found["work"]))
    totals = pd.crosstab(verdicts.index.get_level_values("work"), verdicts.to_numpy())
    totals = totals.reindex(index=works, columns=VERDICTS, fill_value=0)
    totals.insert(0, "drawings", found["work"].value_counts().reindex(works))
    totals.insert(1, "experiments", totals[VERDICTS].sum(axis=1))
    totals.loc["all"] = totals.sum()
    totals.index = totals.index.map(lambda work: WORKS.get(work, work))
    return totals.rename_axis("work")


def _verdicts(found: pd.DataFrame) -> pd.DataFrame:
    """One line for each figure.

    Figures of one experiment with the same words and outcomes share it.
    """
    lines: list[dict[str, Any]] = []
    for row in found.itertuples():
        outcome = [part.rsplit(": ", 1)[-1] for part in row.rules.split("; ")]
        key = (experiment(row.figure), QUOTES[row.figure], row.verdict, outcome)
        title = _title(row.figure, row.work)
        same = next((line for line in lines if line["key"] == key), None)
        if same is not None:
            same["titles"].append(title)
            continue
        lines.append(
            {"key": key, "titles": [title], "work": _short(row.work), "verdict": row.verdict}
            | {"words": QUOTES[row.figure], "rules": row.rules}
        )
    for line, before in reversed(list(zip(lines[1:], lines, strict=False))):
        if line["words"] and line["words"] == before["words"]:
            line["words"] = ""
            line["said"] = "as above"
    return pd.DataFrame(
        {
            "Work": [line["work"] for line in lines],
            "Figure": [", ".join(_together(line["titles"])) for line in lines],
            "What the work says": [
                f"“{_sentence(line['words'], capital=False)}”"
                if line["words"]
                else line.get("said", "(no words)")
                for line in lines
            ],
            "Its parts here": [_sentence(line["rules"]) for line in lines],
            "Verdict": [f"**{line['verdict']}**" for line in lines],
        }
    )


def _together(titles: list[str]) -> list[str]:
    """Titles with the word of the first of each kind only: "figure 5.9", "5.11"."""
    shown, before = [], ""
    for title in titles:
        kind, _, number = title.partition(" ")
        shown.append(number if number and kind == before else title)
        before = kind
    return shown


def _picture(row: Any, folder: str) -> str:
    """A small picture that opens the file, with its verdict below."""
    title = f"{WORKS[row.work]}, {_title(row.figure, row.work)}"
    path = f"_static/{folder}/{row.figure}.png"
    claim = " ".join(row.claim.rstrip(".").split())
    return (
        f".. figure:: {path}\n"
        f"   :target: {path}\n"
        f"   :alt: {title}. Drawn to see whether {claim}\n\n"
        f"   {_short(row.work)} {_title(row.figure, row.work)}: {row.verdict}\n"
    )


def _short(work: str) -> str:
    """A name of a work for captions."""
    name = WORKS[work]
    return name[name.index("(") + 1 : -1] if "(" in name else name


def _shrink(source: Path, target: Path) -> None:
    """Write a picture with few colours, small enough for a page."""
    from PIL import Image

    with Image.open(source) as picture:
        picture.thumbnail((WIDTH, 4 * WIDTH), Image.Resampling.LANCZOS)
        picture.convert("RGB").quantize(COLOURS).save(target, optimize=True)


def _title(name: str, work: str) -> str:
    """A figure's name as it is read: "figure 3.2", "figures 9 and 10"."""
    words = name.removeprefix(f"{work}_").split("_")
    text = " ".join(words)
    for place in range(1, len(words) - 1):
        if words[place].isdigit() and words[place + 1].isdigit():
            text = f"{' '.join(words[:place])} {words[place]}.{words[place + 1]}"
    return text


def _entry(row: Any) -> str:
    """A figure's entry in a definition list."""
    title = _title(row.figure, row.work)
    return (
        f"{title.capitalize()}: **{row.verdict}** ({row.run} run, {row.cpu_s:.0f} CPU s)\n"
        f"    *The work, in our words.* {_sentence(row.claim)}\n\n"
        f"    *Here.* {_sentence(row.found)}\n"
    )


def _sentence(text: str, capital: bool = True) -> str:
    """Text with a capital, safe in reStructuredText."""
    safe = re.sub(r"([\\\\*`|])|_(?!\w)", lambda found: "\\" + found.group(0), text)
    return safe[:1].upper() + safe[1:] if capital else safe


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="names of all figures")
    what.add_argument("--figure", action="append", metavar="NAME", help="draw this one")
    what.add_argument("--work", action="append", choices=list(WORKS), help="draw those of a work")
    what.add_argument("--all", action="store_true", help="draw every figure")
    what.add_argument("--publish", type=Path, metavar="DIR", help="write tables of the findings")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder to write")
    options = parser.parse_args()
    if options.publish:
        publish(options.out, options.publish)
        return
    known = figures()
    if options.list:
        for name, (work, _) in known.items():
            print(f"{name:40} {work}")
        return
    works = {WORKS[module] for module in options.work or WORKS}
    names = options.figure or [name for name, (work, _) in known.items() if work in works]
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no figure {unknown[0]!r}; --list names them")
    options.out.mkdir(parents=True, exist_ok=True)
    # Figures of an experiment share runs, so an experiment is one job; the longest works begin.
    jobs: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: LONGEST.index(name.split("_")[0])):
        jobs.setdefault(experiment(name), []).append(name)
    draw = functools.partial(_drawn_together, options.out, options.quick)
    with multiprocessing.Pool(options.jobs) as pool:
        rows = [row for some in pool.imap_unordered(draw, jobs.values()) for row in some]
    seconds = sum(row["cpu_s"] for row in rows)
    print(f"{len(rows)} of {len(names)} figures, {seconds / 60:.1f} CPU minutes.")


def _drawn_together(out: Path, quick: bool, names: list[str]) -> list[dict[str, Any]]:
    """What `drawn` says of several figures, without those that lack data."""
    return [row for name in names for row in [drawn(out, name, quick)] if row is not None]


if __name__ == "__main__":
    main()
