"""The words of the papers for each figure, and which drawings are one experiment: `claims.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
QUOTES: dict[str, str] = _FILE["quotes"]
EXPERIMENTS: dict[str, list[str]] = _FILE["experiments"]
# Score error rates of tables 5.3 to 5.6, by data set and epsilon, and by c.
RATES: dict[str, dict[str, list[int]]] = _FILE["svt"]


def experiment(figure: str) -> str:
    """The experiment that a figure belongs to; its own name if it is alone."""
    return next((name for name, drawn in EXPERIMENTS.items() if figure in drawn), figure)
