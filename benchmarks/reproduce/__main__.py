"""Redraw figures and tables of the five works: ``python -m benchmarks.reproduce --list``.

``--figure NAME`` draws one (or several, repeated), ``--all`` every one; ``--quick`` takes fewer
repetitions. Writes ``NAME.png``, ``NAME.csv`` and ``findings.md`` into ``--out``.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from pathlib import Path

from benchmarks.reproduce import Figure

WORKS = {
    "dpcube": "DPCube",
    "gblue": "GBLUE",
    "cubes": "Data cubes",
    "hdpview": "HDPView",
    "privpfc": "Dissertation, chapter 3 (PrivPfC)",
    "kmeans": "Dissertation, chapter 4 (k-means)",
    "svt": "Dissertation, chapter 5 (sparse vector)",
}


def figures() -> dict[str, tuple[str, Figure]]:
    """Every figure: its unique name to the work it is of and the function that draws it."""
    found: dict[str, tuple[str, Figure]] = {}
    for module, work in WORKS.items():
        for name, draw in importlib.import_module(f"benchmarks.reproduce.{module}").FIGURES.items():
            unique = name if name.startswith(module) else f"{module}_{name}"
            found[unique] = (work, draw)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="names of all figures")
    what.add_argument("--figure", action="append", metavar="NAME", help="draw this one")
    what.add_argument("--all", action="store_true", help="draw every figure")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder to write")
    options = parser.parse_args()
    known = figures()
    if options.list:
        for name, (work, _) in known.items():
            print(f"{name:40} {work}")
        return
    names = list(known) if options.all else options.figure
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no figure {unknown[0]!r}; --list names them")
    options.out.mkdir(parents=True, exist_ok=True)
    # Seeds are what makes a figure repeatable; the warning about them is for releases.
    warnings.simplefilter("ignore")
    lines = ["# Findings", ""]
    for i, name in enumerate(names):
        work, draw = known[name]
        started = time.perf_counter()
        print(f"[{i + 1}/{len(names)}] {name} ({work})", flush=True)
        finding = draw(options.out, options.quick)
        print(f"  {finding}\n  {time.perf_counter() - started:.0f} s", flush=True)
        lines += [f"## {name}", "", f"*{work}.* {finding}", ""]
        (options.out / "findings.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
