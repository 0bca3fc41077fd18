"""Tidy results of the peers: collected row by row, summarised and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["COLUMNS", "failed", "publish", "result_rows", "summary", "write"]

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


def write(out: Path, results: pd.DataFrame, facts: list[dict[str, Any]]) -> None:
    """Write ``peers.csv``, one row for each measure of each run, and ``peers_facts.csv``."""
    out.mkdir(parents=True, exist_ok=True)
    results.to_csv(out / "peers.csv", index=False)
    pd.DataFrame(facts).to_csv(out / "peers_facts.csv", index=False)


def publish(out: Path, folder: Path) -> None:
    """Write the tables of the documentation from what `write` wrote: one for each task, and facts.

    A line is a method, a column a setting; a run that failed says how in its cell.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = pd.read_csv(out / "peers.csv", dtype={"note": str, "measure": str})
    table = summary(table.fillna({"note": "", "measure": ""}))
    for task, part in table.groupby("task", sort=False):
        if task == "conduct":
            ok = part[part["status"] == "ok"]
            wide = ok.pivot(index="measure", columns="peer", values="value")
            wide = wide.reindex(index=ok["measure"].unique(), columns=ok["peer"].unique())
            lines = [{"": name, **row.map(_number).to_dict()} for name, row in wide.iterrows()]
        elif task == "inference":
            lines = _side_by_side(part)
        else:
            one_setting = part["setting"].nunique() == 1
            lines = [_line(method, rows, one_setting) for method, rows in _by_method(part)]
        name = str(task).replace("-", "")
        frame = pd.DataFrame(lines)
        last = [name for name in ("CPU s, most", "Peak MB", "Note") if name in frame]
        first = [name for name in frame if name not in last]
        frame = frame[first + last]
        frame[first] = frame[first].astype(object).where(frame[first].notna(), "not run")
        frame.fillna("").to_csv(folder / f"{name}.csv", index=False)
    texts = dict.fromkeys(("version", "scikit_learn", "import_error", "note"), str)
    facts = pd.read_csv(out / "peers_facts.csv", dtype=texts)
    facts[list(texts)] = facts[list(texts)].fillna("")
    facts.apply(_fact, axis=1, result_type="expand").to_csv(folder / "facts.csv", index=False)


def _side_by_side(part: pd.DataFrame) -> list[dict[str, str]]:
    """A line for each setting, with the measures of every library."""
    lines = []
    for (setting, epsilon), rows in part.groupby(["setting", "epsilon"], sort=False):
        line = {"Tables": str(setting), "Epsilon": f"{epsilon:g}"}
        for peer, own in rows.groupby("peer", sort=False):
            for row in own.itertuples():
                if row.status != "ok":
                    line[f"{peer}: failed"] = str(row.status)
                    continue
                line[f"{peer}: {row.measure}"] = _number(float(f"{row.value:.3g}"))
            if own["peak_mb"].notna().any():
                line[f"{peer}: MB"] = f"{own['peak_mb'].max():.0f}"
        lines.append(line)
    return lines


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


def _fact(row: pd.Series) -> dict[str, str]:
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
