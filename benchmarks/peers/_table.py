"""Tidy results of the peers: collected row by row, summarised, printed and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["COLUMNS", "failed", "fact_table", "result_rows", "summary", "text", "write"]

COLUMNS = [
    "task", "setting", "epsilon", "peer", "method", "delta", "measure", "run", "value",
    "cpu_s", "peak_mb", "status", "note",
]  # fmt: skip


def result_rows(
    where: dict[str, Any], scores: dict[str, float], answer: dict[str, Any], run: int
) -> list[dict[str, Any]]:
    """One row for each measure of a run that came back."""
    common = {"cpu_s": answer.get("cpu"), "peak_mb": answer.get("peak_mb"), "status": "ok"}
    return [
        {**where, "run": run, "measure": measure, "value": value, **common}
        for measure, value in scores.items()
    ]


def failed(where: dict[str, Any], reason: str, run: int) -> dict[str, Any]:
    """Row of a run that did not come back: the status says why."""
    return {**where, "run": run, "measure": "", "value": np.nan, "status": reason}


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Means over the runs, least of the CPU seconds, most of the memory; failures as they are."""
    keys = ["task", "setting", "epsilon", "peer", "method", "delta", "measure", "status", "note"]
    found = results.groupby(keys, sort=False, dropna=False)
    table = found.agg(
        value=("value", "mean"),
        spread=("value", "std"),
        runs=("run", "count"),
        cpu_s=("cpu_s", "min"),
        peak_mb=("peak_mb", "max"),
    )
    return table.reset_index()


def text(table: pd.DataFrame) -> str:
    """Results of each task and setting under a heading, in columns."""
    parts = []
    for (task, setting, epsilon), part in table.groupby(["task", "setting", "epsilon"], sort=False):
        parts.append(f"\n{task}: {setting}, epsilon {epsilon:g}")
        for row in part.itertuples():
            name = f"  {row.peer:<12} {row.method:<24}"
            delta = f"delta {row.delta:g}" if row.delta else "pure"
            if row.status != "ok":
                parts.append(f"{name} {delta:<12} FAILED: {row.status}")
                continue
            cost = "" if pd.isna(row.cpu_s) else f"{row.cpu_s:9.2f} s {row.peak_mb:7.0f} MB"
            value = f"{row.measure} {row.value:.4g}"
            if row.runs > 1:
                value += f" +- {row.spread / row.runs**0.5:.2g}"
            parts.append(f"{name} {delta:<12} {value:<36} {cost}")
    return "\n".join(parts)


def fact_table(facts: list[dict[str, Any]]) -> str:
    """Installed size, import and versions of every peer, in columns."""
    lines = [f"{'peer':<36} {'version':<9} {'installed':>10} {'packages':>8} {'import':>16}  uses"]
    for row in facts:
        if row.get("error"):
            lines.append(f"{row['peer']:<36} not installed: {row['error']}")
            continue
        imported = (
            f"{row['import_cpu']:.1f} s, {row['import_mb']:.0f} MB" if row["imports"] else "FAILS"
        )
        uses = f"scikit-learn {row['scikit_learn']}" if row["scikit_learn"] else "no scikit-learn"
        lines.append(
            f"{row['peer']:<36} {row['version']:<9} {row['installed_mb']:>7,.0f} MB "
            f"{row['packages']:>8} {imported:>16}  {uses}"
        )
        if row["import_error"]:
            lines.append(f"  {row['import_error']}")
    return "\n".join(lines)


def write(out: Path, results: pd.DataFrame, facts: list[dict[str, Any]]) -> None:
    """Write ``peers.csv``, one row for each measure of each run, and ``peers_facts.csv``."""
    out.mkdir(parents=True, exist_ok=True)
    results.to_csv(out / "peers.csv", index=False)
    pd.DataFrame(facts).to_csv(out / "peers_facts.csv", index=False)
