"""The audit of the library itself: every entry of `AUDITS`, audited or replayed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from .._validation import replacing
from ._cases import AUDITS, AuditCase
from ._lower_bound import AuditResult, audit
from ._replay import ReplayResult, replay

# Probability that at least one correct estimator is refuted; shared evenly.
_FALSE_ALARM = 0.001


def run_case(case: AuditCase, name: str, confidence: float, *, quick: bool = False) -> AuditResult:
    """Audit one case; the parameters are those of `run_library` and `audit`."""
    return audit(
        case.mechanism,
        case.dataset,
        case.neighbour,
        case.epsilon,
        case.quick_trials if quick else case.n_trials,
        confidence=confidence,
        name=name,
        **case.options,
    )


def run_library(
    out: str | Path | None = "skdp_audit",
    *,
    names: Iterable[str] | None = None,
    quick: bool = False,
    verbose: int = 1,
) -> list[AuditResult]:
    """Audit every estimator of the library and write a report.

    If all are correct, one of them is refuted with a probability of at most 0.001.

    Parameters
    ----------
    out : path or None, default="skdp_audit"
        Folder for ``audit.csv``. None writes nothing.
    names : iterable of str, optional
        Entries of `AUDITS`, the names of classes; default all.
    quick : bool, default=False
        Fewer trials: a minute or two, but only coarse errors are found.
    verbose : int, default=1
        Whether to print progress to standard error.

    Returns
    -------
    list of AuditResult

    Raises
    ------
    ValueError
        If a name has no entry.
    """
    chosen = _chosen(names)
    confidence = 1 - _FALSE_ALARM / len(chosen)
    return _each(
        chosen,
        lambda name, case: run_case(case, name, confidence, quick=quick),
        out,
        "audit.csv",
        verbose,
    )


def replay_library(
    out: str | Path | None = "skdp_audit",
    *,
    names: Iterable[str] | None = None,
    n: int = 12,
    verbose: int = 1,
) -> list[ReplayResult]:
    """Replay every estimator of the library on its pair, and write a report.

    Parameters
    ----------
    out : path or None, default="skdp_audit"
        Folder for ``replay.csv``. None writes nothing.
    names : iterable of str, optional
        Entries of `AUDITS`, the names of classes; default all.
    n : int, default=12
        Number of pairs of runs for each entry.
    verbose : int, default=1
        Whether to print progress to standard error.

    Returns
    -------
    list of ReplayResult

    Raises
    ------
    ValueError
        If a name has no entry.
    """

    def run(name: str, case: AuditCase) -> ReplayResult:
        pair = case.dataset, case.neighbour
        return replay(case.mechanism, *pair, n=n, epsilon=case.epsilon, name=name)

    return _each(_chosen(names), run, out, "replay.csv", verbose)


def _chosen(names: Iterable[str] | None) -> list[str]:
    chosen = list(AUDITS) if names is None else [names] if isinstance(names, str) else list(names)
    unknown = [name for name in chosen if name not in AUDITS]
    if unknown:
        raise ValueError(f"There is no audit of {unknown[0]!r}; there are {', '.join(AUDITS)}.")
    return chosen


def _each(
    names: list[str],
    run: Callable[[str, AuditCase], Any],
    out: str | Path | None,
    report: str,
    verbose: int,
) -> list[Any]:
    """What ``run`` finds of each entry, shown, and written to a file."""
    results = []
    for number, name in enumerate(names, start=1):
        results.append(run(name, AUDITS[name]))
        if verbose:
            print(f"[{number}/{len(names)}] {results[-1]}", file=sys.stderr)
    if out is not None:
        path = Path(out) / report
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            pd.concat([result.to_frame() for result in results]).to_csv(part)
        if verbose:
            print(f"Report in {path.resolve()}", file=sys.stderr)
    return results
