"""Reports of the audit and the replay of the library, as files."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from .._files import replacing, write_text
from ._audit import AuditResult
from ._replay import ReplayResult
from ._result import Result


def write_audits(folder: Path, results: list[AuditResult], false_alarm: float) -> None:
    """Write ``audit.csv``, ``audit.md``, ``audit.html`` and, with matplotlib, ``audit.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_table(folder / "audit.csv", results)
    picture = plot_library(results, folder / "audit.png")
    lines = [
        f"{_verdict(results, 'Nothing was convicted.')} Each line is a lower bound on the privacy "
        "loss of one mechanism on one pair of neighbouring inputs, from two independent halves of "
        "trials: one chose the event, the other measured it.",
        f"If all are correct, the probability that this report convicts any is at most "
        f"{false_alarm:g}. A bound below the claim does not prove privacy: another pair of inputs, "
        "a rarer event or more trials may show more.",
    ]
    columns = {
        "mechanism": [result.name for result in results],
        "claimed": [f"{result.epsilon:g}" for result in results],
        "lower bound": [f"{result.epsilon_lower_bound:.4f}" for result in results],
        "reachable": [f"{result.reachable:.2f}" for result in results],
        "trials per side": [f"{result.n_trials:,}" for result in results],
        "verdict": [result.verdict for result in results],
        "event": [str(result.event) for result in results],
    }
    shown = ["![lower bounds](audit.png)", ""] if picture else []
    markdown = ["# Audit of skdp", "", *lines, "", *shown, *_markdown_table(columns)]
    write_text(folder / "audit.md", "\n".join(markdown) + "\n")
    write_text(folder / "audit.html", _page(lines, picture, columns))


def write_replays(folder: Path, results: list[ReplayResult]) -> None:
    """Write ``replay.csv`` and ``replay.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_table(folder / "replay.csv", results)
    columns = {
        "mechanism": [each.name for each in results],
        "claimed": [f"{each.epsilon:g}" for each in results],
        "loss": [f"{each.loss:.6f}" for each in results],
        "pairs of runs": [str(each.n_runs) for each in results],
        "verdict": ["; ".join([each.verdict, *each.reasons]) for each in results],
    }
    markdown = [
        "# Replay of skdp",
        "",
        f"{_verdict(results, 'Everything was certified.')} Each line shows the largest privacy "
        "loss over the outputs that were tried, on one pair of neighbouring inputs. It is "
        "computed, not estimated, and trusts that the mechanisms draw from the distribution that "
        "they state; the audit does not.",
        "",
        *_markdown_table(columns),
    ]
    write_text(folder / "replay.md", "\n".join(markdown) + "\n")


def _write_table(path: Path, results: Sequence[Result]) -> None:
    with replacing(path) as part:
        pd.concat([result.to_frame() for result in results]).to_csv(part)


def _verdict(results: Sequence[Result], good: str) -> str:
    convicted = [result.name for result in results if not result.passed]
    return f"Convicted: {', '.join(convicted)}." if convicted else good


def _markdown_table(columns: dict[str, list[str]]) -> list[str]:
    rows = zip(*columns.values(), strict=True)
    return [
        f"| {' | '.join(columns)} |",
        f"|{' --- |' * len(columns)}",
        *(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows),
    ]


def _page(lines: list[str], picture: bool, columns: dict[str, list[str]]) -> str:
    body = ["<h1>Audit of skdp</h1>", *(f"<p>{html.escape(line)}</p>" for line in lines)]
    if picture:
        body.append('<img src="audit.png" alt="lower bounds on epsilon" style="max-width:100%">')
    body.append(pd.DataFrame(columns).to_html(index=False))
    return (
        "<!doctype html><html><head><meta charset='utf-8'><title>Audit of skdp</title>"
        "<style>body{font-family:sans-serif;margin:2em}td,th{padding:.3em .6em;text-align:left}"
        f"</style></head><body>{''.join(body)}</body></html>\n"
    )


def plot_library(results: list[AuditResult], path: Path) -> bool:
    """Save the picture of all audits; False if there is no matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    from ._plots import plot_audits

    # A figure of its own, so that a caller's pyplot state and backend stay as they are.
    figure = Figure(figsize=(8.0, 1.2 + 0.32 * len(results)), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    plot_audits(results, figure.add_subplot())
    with replacing(path) as part:
        figure.savefig(part, format="png")
    return True
