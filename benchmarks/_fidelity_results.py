"""What the tasks of the fidelity benchmark share: options, results, and how they are shown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import _data
from benchmarks._fidelity_tables import Table, load

__all__ = ["Options", "Result", "append", "ratio_of", "result_of", "show"]


@dataclass(frozen=True)
class Options:
    """What the command line chooses; None: what the task measures by default."""

    methods: tuple[str, ...] = ("MarginalSynthesizer",)
    epsilons: tuple[float, ...] | None = None
    tables: tuple[str, ...] | None = None
    runs: int = 10
    folds: int | None = None
    small: bool = False
    pictures: Path | None = None

    def of_epsilon(self, usual: Sequence[float]) -> tuple[float, ...]:
        """The chosen epsilons, or the usual ones."""
        return tuple(usual) if self.epsilons is None else self.epsilons

    def names(self, usual: Sequence[str]) -> list[str]:
        """Names of the chosen tables among the usual ones, or all of these."""
        return [each for each in usual if self.tables is None or each in self.tables]

    def of_tables(self, usual: Sequence[str]) -> Iterator[Table]:
        """The chosen tables among the usual ones, or all of these."""
        for name in self.names(usual):
            yield load(name, self.small)


@dataclass(frozen=True)
class Result:
    """A mean over runs, its standard error, and the target."""

    task: str
    table: str
    method: str
    epsilon: float
    measure: str
    value: float
    standard_error: float | None
    runs: int
    bar: float | None = None
    higher_is_better: bool = False
    generated: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.higher_is_better else self.value <= self.bar


def result_of(
    task: str,
    table: Table,
    method: str,
    epsilon: float,
    measure: str,
    values: Sequence[float],
    bar: float | None = None,
    *,
    higher_is_better: bool = False,
) -> Result:
    """Mean and standard error of the values of all runs; a generated table has no target."""
    return Result(
        task,
        table.name,
        method,
        epsilon,
        measure,
        statistics.fmean(values),
        statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None,
        len(values),
        None if table.generated else bar,
        higher_is_better,
        table.generated,
    )


def ratio_of(
    task: str,
    table: Table,
    method: str,
    epsilon: float,
    measure: str,
    mine: Sequence[float],
    theirs: Sequence[float],
    bar: float | None = None,
    *,
    allowed_errors: float = 0.0,
) -> Result:
    """Ratio of two mean errors; the target has ``allowed_errors`` standard errors of it on top."""
    means = [statistics.fmean(each) for each in (mine, theirs)]
    if not means[1]:
        # Without any error on the other side: 1 if there is none on this side either.
        value, error = (1.0 if not means[0] else float("inf")), None
    else:
        value, error = means[0] / means[1], None
        if min(len(mine), len(theirs)) > 1:
            spread = [statistics.variance(each) / len(each) for each in (mine, theirs)]
            error = (spread[0] + value**2 * spread[1]) ** 0.5 / means[1]
    if bar is not None:
        bar = None if table.generated else bar + allowed_errors * (error or 0.0)
    return Result(
        task, table.name, method, epsilon, measure, value, error, len(mine), bar,
        generated=table.generated,
    )  # fmt: skip


HEADER = (
    f"{'task':<11} {'table':<18} {'method':<22} {'epsilon':>7} {'measure':<30} "
    f"{'value':>10} {'s.e.':>9} {'target':>8} met"
)


def show(result: Result) -> None:
    """Print one line."""
    name = result.table + " (small)" * result.generated
    error = "" if result.standard_error is None else f"{result.standard_error:.3g}"
    bar = "" if result.bar is None else f"{result.bar:.4g}"
    met = {None: "", True: "yes", False: "NO"}[result.met]
    print(
        f"{result.task:<11} {name:<18} {result.method:<22} {result.epsilon:>7g} "
        f"{result.measure:<30} {result.value:>10.4g} {error:>9} {bar:>8} {met}",
        flush=True,
    )


def append(path: Path | None, results: Sequence[Result]) -> None:
    """Add results to those that a file holds already; nothing if ``path`` is None."""
    if path is None:
        return
    earlier: list[dict[str, Any]] = []
    if path.exists():
        earlier = json.loads(path.read_text(encoding="utf-8"))["results"]
    _data.write_json(
        path, "fidelity", [*earlier, *({**asdict(each), "met": each.met} for each in results)]
    )
