"""A frozen baseline of questions, ranges and models, which later work may not worsen.

``benchmarks/baseline.json`` has the figures, each with its standard error, by section:

``questions``
    Kinds of questions by table and epsilon; `benchmarks.questions` says what their figures are.
``ranges``
    Root mean square error over 3,000 ranges of two columns.
``models``, ``targets``
    Classifiers and regressors by label or target and epsilon: error, what the area under the curve
    lacks to 1, and log loss; squared error in units of that of the mean.
``peers``
    What other libraries reach with some of the labels, under (epsilon, delta).
``quick``
    A few cells of all tables, with few fits.

Each section says which commit was measured (the last that changed ``skdp``), when, and with how
many fits of which seeds. The default classifier and regressor, and other libraries, take no seed.
Tables that were never written are not compared.

Run as ``python -m benchmarks.baseline`` to measure all sections but the peers again and compare;
``--sections`` and ``--tables`` take some. It fails if a figure is missing or worse by more than
`TOLERANCE` standard errors (of the difference) over the tables of an epsilon and kind, or by more
than `OF_A_CELL` in one. ``--quick`` measures the quick section: with equal
seeds it is equal, to `DIGITS` digits, until the engine changes, and fails if any figure differs; so
that a change is seen when it is made. It also compares with the other sections, to their tolerance,
so that small losses that were written do not add up.

``--write`` puts what was measured into the file; tables that are measured later go to the others
of their section if the commit is the same. Finished tables are kept in ``build/baseline``, so
a run that was stopped goes on where it was; ``--again`` forgets them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import ShuffleSplit

from benchmarks import _data, _question_tables, _unseen_tables, models, numbers, questions
from skdp import (
    MarginalSynthesizer,
    PrivateAdditiveRegressor,
    PrivateLinearRegression,
    PrivateRegressor,
)
from skdp.exceptions import InsecureSeedWarning

FILE = Path(__file__).with_name("baseline.json")
KEPT = Path(__file__).parents[1] / "build" / "baseline"
TOLERANCE, OF_A_CELL, DIGITS = 4.0, 8.0, 6
EPSILONS, OF_MODELS = (0.1, 1.0, 8.0), (0.1, 1.0, 4.0, 10.0)
MOST = 20  # questions of a kind
SHARES = ("holds", "useless", "refused")
# Figures of which less is worse, and those whose mean depends on the number of fits.
LESS, BY_FITS = ("holds",), ("over",)
# Of the quick section: epsilons, and kinds of questions.
_FEW: Any = ((1.0,), ("tails", "thresholds", "declared", "equals", "cells", "mixed"))
QUICK: dict[str, Any] = {
    "skewed": (EPSILONS, tuple(questions.KINDS)),
    "delays": (EPSILONS, tuple(questions.KINDS)),
    **dict.fromkeys(("nist", "adult", "acs", "electricity", "phoneme"), _FEW),
}
QUICK_RANGES = ("small", "adult")

Cells = dict[str, dict[str, Any]]  # by "table | epsilon | kind": figures with standard errors


class Section(NamedTuple):
    """What is measured of each table."""

    fits: int
    tables: tuple[str, ...]
    cells: Callable[[str, int], Cells]


def key_of(table: str, epsilon: float, kind: str) -> str:
    """The name of a cell."""
    return f"{table} | {epsilon:g} | {kind}"


def figure(values: Sequence[float]) -> list[float]:
    """A mean and its standard error."""
    of = np.asarray(values, dtype=np.float64)
    return [float(of.mean()), float(of.std(ddof=1) / np.sqrt(len(of))) if len(of) > 1 else 0.0]


def question_cells(
    name: str,
    fits: int,
    epsilons: Sequence[float] = EPSILONS,
    kinds: Sequence[str] = tuple(questions.KINDS),
) -> Cells:
    """Figures of each epsilon and kind of question."""
    table = _question_tables.TABLES[name]()
    chosen = questions.of_each_kind(table, kinds, MOST)
    cells: Cells = {}
    for epsilon in epsilons:
        for row in questions.measured(table, epsilon, chosen, range(fits)):
            found = {each: [row[each], row[f"{each}_se"]] for each in questions.FIGURES}
            cells[key_of(name, epsilon, row["kind"])] = {"n": row["n"], **found}
    return cells


def range_cells(name: str, fits: int, epsilons: Sequence[float] = (0.1, 1.0)) -> Cells:
    """Errors of ranges of two columns."""
    return {
        key_of(name, epsilon, "ranges"): {
            "rms": figure(numbers.range_errors(MarginalSynthesizer, name, epsilon, range(fits)))
        }
        for epsilon in epsilons
    }


def label_cells(name: str, fits: int) -> Cells:
    """Measures of each classifier."""
    task = models.rare(name)
    found: dict[str, list[Any]] = {}
    splits = ShuffleSplit(fits, random_state=0, test_size=0.25).split(task.X)
    for run, (train, test) in enumerate(splits):
        for epsilon in OF_MODELS:
            for kind in (*models.FIVE, "default"):
                model = models.METHODS[kind](task, epsilon, run)
                model.fit(task.X.iloc[train], task.y[train])
                shares = model.predict_proba(task.X.iloc[test])
                measures = models.measured(task.y[test], shares)
                found.setdefault(key_of(name, epsilon, kind), []).append(measures)
    return _over_runs(found)


def _over_runs(found: Mapping[str, Sequence[Sequence[float]]]) -> Cells:
    """Means of measures of classifiers over runs."""
    return {
        key: {
            name: figure(of)
            for name, of in zip(models.MEASURES, zip(*runs, strict=True), strict=True)
        }
        for key, runs in found.items()
    }


def target_cells(name: str, fits: int) -> Cells:
    """Squared error of each regressor in units of that of the mean."""
    table, target = models.target_of(name)
    X, y = table.rows.drop(columns=target), table.rows[target].astype("float64")
    public = {"domain": table.domain, "target": target}
    found: dict[str, list[float]] = {}
    for run, (train, test) in enumerate(ShuffleSplit(fits, random_state=0).split(X)):
        mean = np.mean((y.iloc[test] - y.iloc[train].mean()) ** 2)
        for epsilon in OF_MODELS:
            for kind, model in {
                "linear": PrivateLinearRegression(epsilon=epsilon, **public, random_state=run),
                "additive": PrivateAdditiveRegressor(epsilon=epsilon, **public, random_state=run),
                "default": PrivateRegressor(epsilon=epsilon, **public),
            }.items():
                guess = model.fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
                error = float(np.mean((y.iloc[test] - guess) ** 2) / mean)
                found.setdefault(key_of(name, epsilon, kind), []).append(error)
    return {key: {"squared error": figure(errors)} for key, errors in found.items()}


def peer_cells(name: str, fits: int) -> Cells:
    """Measures of other libraries' classifiers."""
    task = models.rare(name)
    found: dict[str, list[Any]] = {}
    splits = ShuffleSplit(fits, random_state=0, test_size=0.25).split(task.X)
    for train, test in splits:
        data = models.for_peer(task, train, test)
        for epsilon in OF_MODELS[:3]:
            for kind in models.FROZEN_PEERS:
                try:
                    shares = models.peer_shares(kind, data, epsilon)
                except RuntimeError as error:
                    print(f"{kind}, {name}, epsilon {epsilon:g}: {error}", flush=True)
                    continue
                measures = models.measured(task.y[test], shares)
                found.setdefault(key_of(name, epsilon, kind), []).append(measures)
    return _over_runs(found)


def quick_cells(name: str, fits: int) -> Cells:
    """The quick section of one table, or of the ranges of one."""
    if name.startswith("ranges: "):
        return range_cells(name.removeprefix("ranges: "), fits, (0.1,))
    return question_cells(name, fits, *QUICK[name])


_SHARED = tuple(each for each in _question_tables.TABLES if each not in _unseen_tables.TABLES)
_UNSEEN = tuple(_unseen_tables.TABLES)
SECTIONS = {
    "quick": Section(2, (*QUICK, *(f"ranges: {name}" for name in QUICK_RANGES)), quick_cells),
    "questions": Section(4, _SHARED, question_cells),
    "unseen questions": Section(3, _UNSEEN, question_cells),
    "ranges": Section(8, _data.HDPVIEW_TABLES, range_cells),
    "models": Section(3, models.LABELS, label_cells),
    "unseen models": Section(
        3, tuple(f"unseen: {each}" for each in _unseen_tables.LABELS), label_cells
    ),
    "targets": Section(3, tuple(map(": ".join, models.TARGETS)), target_cells),
    "peers": Section(2, ("electricity: class", "phoneme: Class", "adult: income"), peer_cells),
}


# --------------------------------------------------------------------------------------------------
# Measuring and the file


def measured(title: str, tables: Iterable[str], kept: Path | None = None) -> dict[str, Any]:
    """A section with the cells of these tables; those whose data are missing are left out."""
    section, cells = SECTIONS[title], {}
    for name in tables:
        place = kept / f"{title} {name}.json".replace("/", "-") if kept else None
        if place and place.exists():
            found = json.loads(place.read_text(encoding="utf-8"))
        else:
            try:
                found = section.cells(name, section.fits)
            except SystemExit:
                print(f"{title}, {name}: its data are not there, so it is not measured", flush=True)
                continue
            print(f"{title}, {name}: measured", flush=True)
            if place:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(json.dumps(found), encoding="utf-8")
        cells.update(found)
    seeds = list(range(section.fits))
    return {**_data.stamp(), "fits": section.fits, "seeds": seeds, "cells": cells}


def _tables(section: Mapping[str, Any]) -> set[str]:
    return {key.split(" | ")[0] for key in section["cells"]}


def read() -> dict[str, Any]:
    """The file."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


def write(baseline: Mapping[str, Any], path: Path | None = None) -> None:
    """Write the file: a line for each cell, numbers with few digits; None where there is none."""
    lines = []
    for title in (each for each in SECTIONS if each in baseline):
        try:
            _data.check_stamp(baseline[title])
        except ValueError as error:
            raise ValueError(f"Section {title}: {error}") from None
        head = {name: value for name, value in baseline[title].items() if name != "cells"}
        cells = baseline[title]["cells"]
        rows = [f"   {json.dumps(key)}: {json.dumps(_rounded(of))}" for key, of in cells.items()]
        begin = json.dumps(head)[:-1]
        lines.append(f' {json.dumps(title)}: {begin}, "cells": {{\n' + ",\n".join(rows) + "\n }}")
    (path or FILE).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(of) for name, of in value.items()}
    if isinstance(value, list):  # a figure and its standard error
        return [_rounded(value[0]), _digits(value[1], 2)]
    return _digits(value, DIGITS)


def _digits(value: float | None, digits: int) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


# --------------------------------------------------------------------------------------------------
# Comparing


def figures_of(cells: Cells) -> dict[tuple[str, str], tuple[float, float]]:
    """Value and standard error of each figure, by cell and name; what there is none of is NaN."""
    return {
        (key, name): (
            math.nan if value[0] is None else value[0],
            0.0 if value[1] is None or not math.isfinite(value[1]) else value[1],
        )
        for key, of in cells.items()
        for name, value in of.items()
        if isinstance(value, list)
    }


def changed(old: Cells, new: Cells) -> list[str]:
    """Which figures are not there, or not the same to so many digits."""
    before, after = figures_of(old), figures_of(new)
    said = []
    for at in before | after:
        if at not in after or at not in before:
            said.append(f"{' | '.join(at)}: {'missing' if at in before else 'new'}")
            continue
        was, now = before[at][0], after[at][0]
        # A figure that was rounded lies within half a unit of its last digit.
        same = (
            math.isnan(was)
            and math.isnan(now)
            or math.isclose(was, now, rel_tol=10 ** (1 - DIGITS))
        )
        if not same and not was == now:
            said.append(f"{' | '.join(at)}: {was:.6g}, now {now:.6g}")
    return said


class Line(NamedTuple):
    """A figure over the cells of an epsilon and kind: before, now, and the difference in s.e."""

    at: str
    cells: int
    before: float
    now: float
    errors: float  # by how many standard errors it is worse; negative if it is better


def _worse(name: str, pairs: Sequence[tuple[tuple[float, float], ...]]) -> tuple[float, ...]:
    """Means before and now, and by how many standard errors the latter is worse."""
    table = np.array(pairs, dtype=np.float64)  # (n, before and now, value and error)
    values, errors = table[..., 0], table[..., 1]
    before, now = values.mean(axis=0)
    if name not in SHARES:
        # Of errors, ratios are compared; what is exact says nothing.
        some = (values > 0).all(axis=1)
        errors, values = errors[some] / values[some], np.log(values[some])
        if not some.any():
            return before, now, 0.0
        before, now = np.exp(values.mean(axis=0))
    worse = (values[:, 1] - values[:, 0]).mean() * (-1 if name in LESS else 1)
    error = np.sqrt((errors**2).sum()) / len(values)
    return before, now, 0.0 if worse == 0 else worse / max(error, 1e-12)


def compared(
    old: Cells, new: Cells, skip: Sequence[str] = (), partly: bool = False
) -> tuple[list[Line], list[str]]:
    """A line for each epsilon, kind and figure, and what is missing or worse beyond tolerance.

    With ``partly``, what was not measured again is not missing.
    """
    before, after = figures_of(old), figures_of(new)
    missing = [] if partly else [f"{' | '.join(at)}: missing" for at in before if at not in after]
    groups: dict[tuple[str, ...], list[Any]] = {}
    bad = []
    for (key, name), was in before.items():
        now = after.get((key, name), (math.nan, 0.0))
        if name in skip or math.isnan(was[0]) or (key, name) not in after:
            continue
        if math.isnan(now[0]):
            bad.append(f"{key} | {name}: {was[0]:.4g}, now none")
            continue
        _, epsilon, kind = key.split(" | ")
        groups.setdefault((epsilon, kind, name), []).append((was, now))
        _, _, errors = _worse(name, [(was, now)])
        if errors > OF_A_CELL:
            bad.append(
                f"{key} | {name}: {was[0]:.4g}, now {now[0]:.4g}, worse by {errors:.1f} "
                f"standard errors (at most {OF_A_CELL:g})"
            )
    lines = []
    for at, pairs in groups.items():
        line = Line(" | ".join(at), len(pairs), *_worse(at[-1], pairs))
        lines.append(line)
        if line.errors > TOLERANCE:
            bad.append(
                f"all tables | {line.at}: {line.before:.4g}, now {line.now:.4g}, worse by "
                f"{line.errors:.1f} standard errors (at most {TOLERANCE:g})"
            )
    return lines, missing + bad


def _title(section: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    said = [f"commit {of['commit'][:8]}, {of['date']}, {of['fits']} fits" for of in (old, new)]
    return f"{section}: {said[0]}; now {said[1]}"


def _print(lines: Sequence[Line]) -> None:
    for line in lines:
        ratio = line.now / line.before if line.before else math.nan
        print(
            f"  {line.at:42} {line.cells:3} tables {line.before:9.4g} {line.now:9.4g} "
            f"ratio {ratio:6.3f}  {line.errors:+6.1f} s.e."
        )


def _quick(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What the quick section finds."""
    here = _tables(new)
    cells = {key: of for key, of in old["quick"]["cells"].items() if key.split(" | ")[0] in here}
    said = changed(cells, new["cells"])
    if said:
        said.append(
            "These figures are not those of the file. If they should change, see that nothing is "
            "worse: python -m benchmarks.baseline; then write them: python -m benchmarks.baseline "
            "--quick --write"
        )
    frozen = {
        key: of for title in old if title != "quick" for key, of in old[title]["cells"].items()
    }
    lines, bad = compared(frozen, new["cells"], skip=BY_FITS, partly=True)
    _print([line for line in lines if line.errors > TOLERANCE / 2])
    return said + bad


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; the exit code is 1 if anything is missing or worse."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), help="all but peers")
    parser.add_argument("--tables", nargs="+", help="some tables, labels or targets")
    parser.add_argument("--quick", action="store_true", help="the quick section alone")
    parser.add_argument("--write", action="store_true", help="write what was measured")
    parser.add_argument("--again", action="store_true", help="also what was measured already")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", InsecureSeedWarning)
    titles = given.sections or [each for each in SECTIONS if each not in ("quick", "peers")]
    if given.quick:
        titles = ["quick"]
    commit = _data.stamp()["commit"]
    # What was measured with changes that are not committed is not kept.
    kept = None if given.quick or commit.endswith("+") else KEPT / commit[:12]
    if given.again and kept and kept.exists():
        for path in kept.iterdir():
            path.unlink()
    old, said = read(), []
    for title in titles:
        tables = [each for each in SECTIONS[title].tables if each in (given.tables or [each])]
        new = measured(title, tables, kept)
        if given.write:
            before = old.get(title, {})
            if given.tables and all(before.get(each) == new[each] for each in ("commit", "fits")):
                new["cells"] = before["cells"] | new["cells"]
            elif _tables(new) < {each.removeprefix("ranges: ") for each in SECTIONS[title].tables}:
                said.append(f"{title}: not written, as some of its tables were not measured")
                continue
            old[title] = new
            write(old)
            continue
        if title not in old:
            said.append(f"{title}: missing in {FILE.name}")
            continue
        print(_title(title, old[title], new))
        if title == "quick":
            said += _quick(old, new)
            continue
        lines, bad = compared(old[title]["cells"], new["cells"], partly=bool(given.tables))
        _print(lines)
        said += bad
    for line in said:
        print(f"FAILED {line}")
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
