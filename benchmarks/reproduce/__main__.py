"""Redraw figures and tables of the five works: ``python -m benchmarks.reproduce --list``.

``--figure NAME`` draws one (repeat it for several), ``--work NAME`` those of a work, ``--all`` all
of them; ``--quick`` uses fewer repetitions. Writes ``NAME.png`` and ``NAME.csv`` into ``--out``,
and adds to ``findings.csv`` there. ``--publish DIR`` turns that file into tables for the
documentation.
"""

from __future__ import annotations

import argparse
import importlib
import re
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.reproduce import Figure, Finding

__all__ = ["COLUMNS", "WORKS", "add", "figures", "publish"]

WORKS = {
    "dpcube": "DPCube",
    "gblue": "GBLUE",
    "cubes": "Data cubes",
    "hdpview": "HDPView",
    "privpfc": "Dissertation, chapter 3 (PrivPfC)",
    "kmeans": "Dissertation, chapter 4 (k-means)",
    "svt": "Dissertation, chapter 5 (sparse vector)",
}
VERDICTS = ["agrees", "agrees in part", "disagrees"]
# Pictures of the documentation.
PICTURES = (
    "dpcube_figures_15_and_16",
    "gblue_figure_5",
    "cubes_dimensions",
    "hdpview_figure_3",
    "privpfc_figure_3_10",
    "kmeans_figure_4_1",
    "svt_figure_5_9",
)
COLUMNS = ["figure", "work", "run", "verdict", "claim", "found", "rules", "cpu_s", "seconds"]


def figures() -> dict[str, tuple[str, Figure]]:
    """Every figure: from its name, which begins with its module, to its work and its function."""
    found: dict[str, tuple[str, Figure]] = {}
    for module, work in WORKS.items():
        drawings = importlib.import_module(f"benchmarks.reproduce.{module}").FIGURES
        found |= {name: (work, draw) for name, draw in drawings.items()}
    return found


def add(path: Path, name: str, quick: bool, finding: Finding, cpu: float, seconds: float) -> None:
    """Add a finding to the file of findings; it replaces an older one of the same kind of run."""
    row = {
        "figure": name,
        "work": next(module for module in WORKS if name.startswith(module)),
        "run": "quick" if quick else "full",
        "verdict": finding.verdict,
        "claim": finding.claim,
        "found": finding.found,
        "rules": finding.rules,
        "cpu_s": round(cpu, 1),
        "seconds": round(seconds, 1),
    }
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=COLUMNS)
    other = table[(table["figure"] != name) | (table["run"] != row["run"])]
    rows = [*other.to_dict("records"), row]
    pd.DataFrame(rows, columns=COLUMNS).to_csv(path, index=False)


def publish(path: Path, folder: Path) -> None:
    """Write a list for each work, a table of how many agree, and some of the pictures, made small.

    A figure has the finding of its full run, or of the quick run if there is no full one.
    """
    found = pd.read_csv(path)
    # "full" is before "quick".
    found = found.sort_values("run", kind="stable").drop_duplicates("figure")
    order = {name: place for place, name in enumerate(figures())}
    found = found.sort_values("figure", key=lambda names: names.map(order))
    folder.mkdir(parents=True, exist_ok=True)
    totals = pd.crosstab(found["work"], found["verdict"]).reindex(
        index=list(dict.fromkeys(found["work"])), columns=VERDICTS, fill_value=0
    )
    totals.insert(0, "drawings", totals.sum(axis=1))
    full = (found["run"] == "full").groupby(found["work"]).sum()
    totals["from a full run"] = full.reindex(totals.index)
    totals.loc["all"] = totals.sum()
    totals.index = totals.index.map(lambda work: WORKS.get(work, work))
    totals.rename_axis("work").to_csv(folder / "summary.csv")
    for work, part in found.groupby("work", sort=False):
        text = "\n".join(_entry(row) for row in part.itertuples())
        (folder / f"{work}.txt").write_text(text, encoding="utf-8")
    for name in PICTURES:
        if (path.parent / f"{name}.png").exists():
            _shrink(path.parent / f"{name}.png", folder / f"{name}.png")


def _shrink(source: Path, target: Path) -> None:
    """Write a picture with 64 colours."""
    from PIL import Image

    with Image.open(source) as picture:
        picture.convert("RGB").quantize(64).save(target, optimize=True)


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
        f"    *The work.* {_sentence(row.claim)}\n\n"
        f"    *Here.* {_sentence(row.found)}\n\n"
        f"    *Rules.* {_sentence(row.rules)}.\n"
    )


def _sentence(text: str) -> str:
    """Text with a capital, safe in reStructuredText."""
    safe = re.sub(r"([\\\\*`|])|_(?!\w)", lambda found: "\\" + found.group(0), text)
    return safe[:1].upper() + safe[1:]


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
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder to write")
    options = parser.parse_args()
    if options.publish:
        publish(options.out / "findings.csv", options.publish)
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
    # Seeds make a figure repeatable; the warning about them is for releases.
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    for i, name in enumerate(names):
        work, draw = known[name]
        wall, cpu = time.perf_counter(), time.process_time()
        print(f"[{i + 1}/{len(names)}] {name} ({work})", flush=True)
        finding = draw(options.out, options.quick)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        passed = time.perf_counter() - begin
        print(f"  {finding}\n  {wall:.0f} s; {passed:.0f} s since the start", flush=True)
        add(options.out / "findings.csv", name, options.quick, finding, cpu, wall)


if __name__ == "__main__":
    main()
