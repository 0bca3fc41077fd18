"""Tidy results of the peers: collected row by row, summarised and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._data import stamp
from benchmarks.peers._environments import PEERS

COLUMNS = [
    "task", "setting", "epsilon", "peer", "method", "delta", "measure", "run", "value",
    "cpu_s", "peak_mb", "status", "note",
]  # fmt: skip
_TEXTS: Any = {"note": str, "measure": str, "status": str}


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


def summary(results: pd.DataFrame | list[dict[str, Any]]) -> pd.DataFrame:
    """Means over the runs, least of the CPU seconds, most of the memory; failures as they are."""
    keys = ["task", "setting", "epsilon", "peer", "method", "delta", "measure", "status", "note"]
    found = pd.DataFrame(results, columns=COLUMNS).groupby(keys, sort=False, dropna=False)
    table = found.agg(
        value=("value", "mean"),
        spread=("value", "std"),
        runs=("run", "count"),
        cpu_s=("cpu_s", "min"),
        peak_mb=("peak_mb", "max"),
    )
    return table.reset_index()


def write(folder: Path, rows: list[dict[str, Any]], facts: list[dict[str, Any]]) -> None:
    """Put runs into ``all.csv``, one row for each measure of each run, and write the tables.

    They replace those of the same library at the same task, setting and epsilon. There is a table
    for each task, with a line for each method, a column for each setting, and how a run failed; and
    one of facts, where a library that was measured replaces its line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, at = folder / "all.csv", ["task", "setting", "epsilon", "peer"]
    results = pd.DataFrame(rows, columns=COLUMNS).assign(date=stamp()["date"])
    if path.exists():
        old = pd.read_csv(path, dtype=_TEXTS)
        kept = ~pd.MultiIndex.from_frame(old[at]).isin(pd.MultiIndex.from_frame(results[at]))
        results = pd.concat([old[kept], results]) if len(results) else old
    peers = ["no privacy", *PEERS]
    results = results.sort_values("peer", key=lambda of: of.map(peers.index), kind="stable")
    results = results.sort_values(["task", "setting", "epsilon"], kind="stable")
    results.to_csv(path, index=False)
    for task, part in summary(results.fillna({"note": "", "measure": ""})).groupby("task"):
        _of_task(str(task), part).to_csv(folder / f"{str(task).replace('-', '')}.csv", index=False)
    lines = pd.DataFrame([_fact(each) for each in facts])
    if (folder / "facts.csv").exists():
        old = pd.read_csv(folder / "facts.csv", dtype=str, keep_default_na=False)
        lines = pd.concat([lines, old[~old["Library"].isin({each["peer"] for each in facts})]])
    lines.to_csv(folder / "facts.csv", index=False)


def _of_task(task: str, part: pd.DataFrame) -> pd.DataFrame:
    """The table of a task."""
    if task == "conduct":
        ok = part[part["status"] == "ok"]
        wide = ok.pivot(index="measure", columns="peer", values="value")
        wide = wide.reindex(index=ok["measure"].unique(), columns=ok["peer"].unique())
        return wide.map(_number).rename_axis("").reset_index()
    one_setting = part["setting"].nunique() == 1
    table = pd.DataFrame([_line(method, rows, one_setting) for method, rows in _by_method(part)])
    last = ["CPU s, most", "Peak MB", "Note"]
    first = [name for name in table if name not in last]
    table[first] = table[first].astype(object).where(table[first].notna(), "not run")
    return table[first + last].fillna("")


def _by_method(part: pd.DataFrame) -> Any:
    return part.groupby(["peer", "method", "delta", "note"], sort=False, dropna=False)


def _line(
    method: tuple[str, str, float, str], rows: pd.DataFrame, one_setting: bool
) -> dict[str, str]:
    """A line of a published table."""
    peer, name, delta, note = method
    line = {"Library": peer, "Method": name, "Privacy": f"delta {delta:g}" if delta else "pure"}
    if peer == "no privacy":
        line["Privacy"] = "none"
    one_measure = rows.loc[rows["measure"] != "", "measure"].nunique() <= 1
    for row in rows.itertuples():
        setting = f"epsilon {row.epsilon:g}"
        if not one_setting:
            setting = f"{row.setting}, {setting}"
        if row.status != "ok":
            line[setting] = str(row.status)
            continue
        value = _number(row.value)
        if row.runs > 1 and row.spread > 0:
            value += f" ± {_number(float(f'{row.spread / row.runs**0.5:.2g}'))}"
        line[setting if one_measure else f"{row.measure}, {setting}"] = value
    if rows["cpu_s"].notna().any():
        line["CPU s, most"] = f"{rows['cpu_s'].max():.2f}"
        line["Peak MB"] = f"{rows['peak_mb'].max():.0f}"
    line["Note"] = note
    return line


def _fact(row: dict[str, Any]) -> dict[str, str]:
    """A line of the published table of facts."""
    imports = f"{row['import_cpu']:.1f} s, {row['import_mb']:.0f} MB"
    return {
        "Library": row["peer"],
        "Version": row["version"],
        "Installed MB": f"{row['installed_mb']:,.0f}",
        "Packages": str(row["packages"]),
        "scikit-learn": str(row["scikit_learn"]) or "not used",
        "Import": imports if row["imports"] else f"fails: {row['import_error'].split(' (')[0]}",
        "Note": row["note"],
    }


def _number(value: float) -> str:
    """Four figures, without an exponent where it can be read without; nothing for NaN."""
    if np.isnan(value):
        return ""
    text = f"{value:.4g}"
    return f"{value:,.0f}" if "e+" in text else text
