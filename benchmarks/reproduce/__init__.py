"""Figures of the papers, redrawn with this library.

Each module holds the figures of one paper in ``FIGURES``, a dict from a name to a function
``(out_dir, quick) -> finding``. The function writes ``NAME.png`` and, with every number that is
drawn and one row for each, ``NAME.csv``; the finding says in words what the paper claims and
whether it is borne out. Run one as ``python -m benchmarks.reproduce.gblue --out DIR``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["Figure", "run"]

Figure = Callable[[Path, bool], str]


def run(figures: Mapping[str, Figure]) -> None:
    """Command line of a module: draw its figures and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder to write")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("names", nargs="*", help="figures to draw; all by default")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(figures)
    if unknown:
        parser.error(f"no figure {', '.join(sorted(unknown))}; there are {', '.join(figures)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or figures:
        print(f"{name}: {figures[name](arguments.out, arguments.quick)}")
