"""Data sets of the benchmarks, read from the folder ``$SKDP_DATA``, else ``data`` in the checkout.

``benchmarks/data.toml`` lists the files with their sources and licences. If one is missing, the
function that needs it ends the program with a message. Tests that need the data call `available`
and are skipped instead.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ROOT = Path(os.environ.get("SKDP_DATA") or Path(__file__).resolve().parents[1] / "data")
HDPVIEW_TABLES = ("small", "numerical", "adult", "mdsalary", "twitter")


def available() -> bool:
    """Whether the data are present."""
    return ROOT.is_dir()


def data_path(*parts: str) -> Path:
    """Path of a data file.

    Raises
    ------
    SystemExit
        If it is missing.
    """
    path = ROOT.joinpath(*parts)
    if not path.exists():
        raise SystemExit(
            f"This benchmark needs the data file {'/'.join(parts)}, which is not in {ROOT}. "
            "benchmarks/data.toml says where it comes from; SKDP_DATA names the folder."
        )
    return path


def sums_of(table: NDArray[Any], ends: NDArray[np.int64]) -> NDArray[Any]:
    """Sums of a table over closed rectangles, (n, 4): first and last row, first and last column."""
    sums = np.pad(table.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    a, b, c, d = ends.T
    return sums[b + 1, d + 1] - sums[a, d + 1] - sums[b + 1, c] + sums[a, c]


class RangeTable(NamedTuple):
    """A table of counts and a set of 2-D range queries on it."""

    codes: NDArray[np.int32]  # (m, d) distinct rows
    counts: NDArray[np.int64]  # (m,)
    shape: tuple[int, ...]  # codes of each attribute
    columns: tuple[str, ...]
    queries: NDArray[np.int64]  # (n, 6): attribute, first, last, attribute, first, last; closed

    def true_answers(self) -> NDArray[np.int64]:
        """Exact answer of every query, (n,)."""
        answers = np.zeros(len(self.queries), dtype=np.int64)
        pairs = self.queries[:, [0, 3]]
        for a, b in np.unique(pairs, axis=0):
            table = np.zeros((self.shape[a], self.shape[b]), dtype=np.int64)
            np.add.at(table, (self.codes[:, a], self.codes[:, b]), self.counts)
            mine = (pairs == (a, b)).all(axis=1)
            answers[mine] = sums_of(table, self.queries[mine][:, [1, 2, 4, 5]])
        return answers


def hdpview_table(name: str) -> RangeTable:
    """One of `HDPVIEW_TABLES`, with its 3,000 random 2-D range queries."""
    with np.load(data_path("hdpview", f"{name}.npz")) as data:
        return RangeTable(
            data["codes"].astype(np.int32),
            data["counts"].astype(np.int64),
            tuple(int(size) for size in data["shape"]),
            tuple(str(column) for column in data["columns"]),
            data["queries"].astype(np.int64),
        )


def frame(name: str) -> pd.DataFrame:
    """Raw table "adult" (values as strings, "?" for missing), "electricity" or "phoneme"."""
    kinds = {"dtype": str, "keep_default_na": False} if name == "adult" else {}
    return pd.read_csv(data_path(f"{name}.csv.gz"), **kinds)


class Histogram(NamedTuple):
    """A named histogram of exact counts."""

    name: str
    counts: NDArray[np.int64]


def dpbench_1d() -> list[Histogram]:
    """Five histograms of 4,096 bins."""
    return _histograms("dpbench_1d.npz")


def _histograms(file: str) -> list[Histogram]:
    with np.load(data_path(file)) as data:
        return [Histogram(name, data[name]) for name in data.files]


def nltcs() -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Distinct rows of 16 binary attributes, (3152, 16), and their counts."""
    with np.load(data_path("nltcs.npz")) as data:
        return data["patterns"].astype(np.int32), data["counts"].astype(np.int64)


def kmeans_set(name: str) -> dict[str, Any]:
    """Arrays of a clustering set: ``X`` scaled to [-1, 1], and ``n_clusters`` or more."""
    with np.load(data_path("kmeans", f"{name}.npz")) as data:
        return {key: data[key] if data[key].ndim else data[key].item() for key in data.files}


def item_frequencies(name: str) -> NDArray[np.int64]:
    """How often each item occurs: "retail", "kosarak_head" or "zipf"."""
    if name == "zipf":
        # The dissertation's 10,000 items of 1,000,000 records, in proportion to 1/i.
        shares = 1 / np.arange(1, 10_001)
        exact = 1_000_000 * shares / shares.sum()
        counts = np.floor(exact).astype(np.int64)
        counts[np.argsort(counts - exact, kind="stable")[: 1_000_000 - counts.sum()]] += 1
        return counts
    return np.rint(np.load(data_path("items", f"{name}_freq.npy"))).astype(np.int64)


def stamp() -> dict[str, str]:
    """The last commit that changed the package, with "+" if it has changes since, and the date."""
    here = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments, "--", "skdp"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("log", "-1", "--format=%H") or "unknown"
    changes = "+" if git("status", "--porcelain") else ""
    return {"commit": commit + changes, "date": datetime.date.today().isoformat()}


def check_stamp(section: Mapping[str, Any]) -> None:
    """Refuse figures that do not say which commit was measured, when, and with how many fits."""
    given = {name: str(section.get(name, "")) for name in ("commit", "date", "fits")}
    for name, form in (("commit", r"[0-9a-f]{40}"), ("date", r"\d{4}-\d\d-\d\d"), ("fits", r"\d+")):
        if not re.fullmatch(form, given[name]):
            raise ValueError(
                f"Figures need the commit that was measured (without changes), the date and the "
                f"number of fits; {name} is {given[name]!r}."
            )


def write_json(path: Path | None, benchmark: str, results: Any) -> None:
    """Write results with what they were measured with, and when; nothing if ``path`` is None."""
    if path is None:
        return
    document = {
        "benchmark": benchmark,
        **stamp(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "results": results,
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
