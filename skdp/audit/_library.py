"""The audit of the library itself: every entry of `AUDITS`, audited or replayed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from .._validation import replacing
from ._cases import AUDITS, AuditCase
from ._lower_bound import AuditResult, audit
from ._replay import ReplayResult, Result, replay


def run_case(
    case: AuditCase,
    name: str,
    confidence: float,
    *,
    quick: bool = False,
    n_jobs: int = 1,
) -> AuditResult:
    """Run one case; the parameters are those of `run_library` and `audit`."""
    return audit(
        case.mechanism,
        case.dataset,
        case.neighbour,
        case.epsilon,
        case.quick_trials if quick else case.n_trials,
        confidence=confidence,
        n_jobs=n_jobs,
        name=name,
        **case.options,
    )


def run_library(
    out: str | Path | None = "skdp_audit",
    *,
    names: Iterable[str] | None = None,
    quick: bool = False,
    false_alarm: float = 0.001,
    n_jobs: int = 2,
    verbose: int = 1,
) -> list[AuditResult]:
    """Audit every mechanism and estimator of the library and write a report.

    Parameters
    ----------
    out : path or None, default="skdp_audit"
        Folder for ``audit.csv``. None writes nothing.
    names : iterable of str, optional
        Entries of `AUDITS`, or names of mechanisms and classes; default all.
    quick : bool, default=False
        Fewer trials: a minute or two, but only coarse errors are found.
    false_alarm : float, default=0.001
        Probability that at least one correct mechanism is convicted; shared evenly.
    n_jobs : int, default=2
        Number of processes, for mechanisms that are not vectorised.
    verbose : int, default=1
        Whether to print progress to standard error.

    Returns
    -------
    list of AuditResult
        In the order of `AUDITS`.

    Raises
    ------
    ValueError
        If a name has no entry.
    """
    chosen = list(_chosen(names))
    confidence = 1 - false_alarm / len(chosen)
    results = []
    for i, name in enumerate(chosen):
        if verbose:
            print(f"[{i + 1}/{len(chosen)}] {name}", file=sys.stderr)
        case = AUDITS[name]()
        result = run_case(case, name, confidence, quick=quick, n_jobs=n_jobs)
        if verbose:
            print(
                f"  {result.verdict}: epsilon >= {result.epsilon_lower_bound:.4g}, "
                f"{result.epsilon:g} claimed ({result.n_trials:,} trials per side, "
                f"{result.seconds:.0f} s)",
                file=sys.stderr,
            )
        results.append(result)
    if out is not None:
        _write(Path(out) / "audit.csv", results, verbose)
    return results


def replay_library(
    out: str | Path | None = "skdp_audit",
    *,
    names: Iterable[str] | None = None,
    n: int = 12,
    verbose: int = 1,
) -> list[ReplayResult]:
    """Replay every mechanism and estimator of the library on its pair, and write a report.

    Parameters
    ----------
    out : path or None, default="skdp_audit"
        Folder for ``replay.csv``. None writes nothing.
    names : iterable of str, optional
        Entries of `AUDITS`, or names of mechanisms and classes; default all. Bare `geometric` noise
        cannot be replayed and is left out.
    n : int, default=12
        Number of pairs of runs for each entry.
    verbose : int, default=1
        0 for silence; 1 prints progress to standard error.

    Returns
    -------
    list of ReplayResult
        In the order of `AUDITS`.

    Raises
    ------
    ValueError
        If a name has no entry, or none that can be replayed.
    """
    cases = {name: AUDITS[name]() for name in _chosen(names)}
    cases = {name: case for name, case in cases.items() if case.replays}
    if not cases:
        raise ValueError("Bare noise cannot be replayed. Name a mechanism that uses it.")
    results = []
    for i, (name, case) in enumerate(cases.items()):
        mechanism = case.mechanism
        if case.options.get("vectorised"):
            mechanism = partial(_once, case.mechanism)
        result = replay(
            mechanism,
            case.dataset,
            case.neighbour,
            n=n,
            epsilon=case.epsilon,
            name=name,
        )
        if verbose:
            head, *reasons = str(result).split("\n")[: 1 + len(result.reasons)]
            print(f"[{i + 1}/{len(cases)}] {head}", *reasons, sep="\n", file=sys.stderr)
        results.append(result)
    if out is not None:
        _write(Path(out) / "replay.csv", results, verbose)
    return results


def _once(mechanism: Callable[[Any, int], Any], data: Any) -> Any:
    """One output of a mechanism that draws many at once."""
    return mechanism(data, 1)


def _chosen(names: Iterable[str] | None) -> Iterator[str]:
    if names is None:
        yield from AUDITS
        return
    for name in [names] if isinstance(names, str) else names:
        found = [entry for entry in AUDITS if name in (entry, entry.split(",")[0])]
        if not found:
            raise ValueError(f"There is no audit of {name!r}; there are {', '.join(AUDITS)}.")
        yield from found


def _write(path: Path, results: Sequence[Result], verbose: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        pd.concat([result.to_frame() for result in results]).to_csv(part)
    if verbose:
        print(f"Report in {path.resolve()}", file=sys.stderr)
