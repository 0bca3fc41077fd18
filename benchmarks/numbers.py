"""The figures that more than one page of the documentation quotes, in one file.

``docs/numbers.json`` has every figure with the command that measured it. ``python -m
benchmarks.numbers --publish`` writes from it the tables that the pages include
(``docs/_static/numbers``); `tests/test_numbers.py` holds tables and sentences to the file.
``--measure counting`` (or ``selecting``, ``one_column``, ``cubes``) measures a section again and
puts it into the file, with commit, date and number of fits; ``--releases`` and ``--epsilon``
restrict the first, ``--runs`` sets its releases.

A figure of ranges of two columns is a root mean square error over 3,000 random ranges, averaged
over the releases.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import trees
from benchmarks._data import check_stamp, hdpview_table, stamp
from benchmarks.views import problem
from skdp import (
    DataCube,
    Domain,
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    Numeric,
    PrivTreeSynthesizer,
)
from skdp.exceptions import DomainError, InsecureSeedWarning

__all__ = [
    "FILE",
    "FOLDER",
    "counting",
    "cubes",
    "one_column",
    "publish",
    "range_errors",
    "read",
    "selecting",
]

FILE = Path(__file__).parents[1] / "docs" / "numbers.json"
FOLDER = FILE.parent / "_static" / "numbers"
TABLES = {
    "small": "Small",
    "numerical": "Numerical",
    "adult": "Adult",
    "mdsalary": "MDSalary",
    "twitter": "twitter",
}
# A release that keeps no dependence at all: single columns with all of epsilon.
RELEASES: dict[str, Callable[..., Any]] = {
    "marginals": MarginalSynthesizer,
    "independence": lambda epsilon, **given: MarginalSynthesizer(
        epsilon=epsilon, max_order=1, **given
    ),
    "HDPView": HDPViewSynthesizer,
    "PrivTree": PrivTreeSynthesizer,
    "kd-tree, two-step": KDTreeSynthesizer,
    "kd-tree, hierarchical": lambda epsilon, **given: KDTreeSynthesizer(
        epsilon=epsilon, strategy="hierarchical", **given
    ),
    "grid, extended": lambda epsilon, **given: GridSynthesizer(
        epsilon=epsilon, rule="extended", **given
    ),
}
_METHODS = {
    "Identity": "plain bins",
    "Boost-2": "a binary tree",
    "GBLUE-12": "a tree of 12 branches",
    "default": "the default of RangeTreeHistogram",
}
RUNS = 100  # of selecting
_LENGTHS = (1, 16, 256, 2_048)


def counting(
    releases: list[str] | None = None, epsilons: tuple[float, ...] = (1.0, 0.1), runs: int = 2
) -> dict[str, dict[str, Any]]:
    """Errors of ranges of two columns: by release and epsilon, with a number for each table.

    The number is None where the release refuses the domain.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, title in TABLES.items():
        for release in releases or RELEASES:
            for epsilon in epsilons:
                entry = found.setdefault(
                    f"{release}, epsilon {epsilon:g}", {"releases": runs, "errors": {}}
                )
                try:
                    errors = range_errors(RELEASES[release], name, epsilon, range(runs))
                    error = float(f"{statistics.fmean(errors):.3g}")
                except DomainError:
                    error = None
                entry["errors"][title] = error
                print(f"{release}, epsilon {epsilon:g}, {title}: {error}", flush=True)
    return found


@functools.cache
def _ranges(name: str) -> tuple[Domain, pd.DataFrame, list[Any], Any]:
    """Domain, rows, queries and true answers of a table."""
    table, domain, rows = problem(name)
    queries = [
        {table.columns[a]: (first, last), table.columns[b]: (start, stop)}
        for a, first, last, b, start, stop in table.queries.tolist()
    ]
    return domain, rows, queries, hdpview_table(name).true_answers()


def range_errors(
    make: Callable[..., Any], name: str, epsilon: float, seeds: Iterable[int]
) -> list[float]:
    """Root mean square error over the ranges of a table, of a release with each seed."""
    domain, rows, queries, truth = _ranges(name)
    errors = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureSeedWarning)
            release = make(epsilon=epsilon, domain=domain, random_state=seed).fit(rows)
        errors.append(float(np.sqrt(np.mean((release.count(queries) - truth) ** 2))))
    return errors


def one_column() -> dict[str, dict[str, int]]:
    """Mean variance of ranges over 4,096 bins times epsilon squared, by method and length.

    Closed forms at epsilon 0.1; the product hardly depends on epsilon until 1.
    """
    epsilon = 0.1
    found = trees.peers(epsilon)
    found["default"] = trees.range_variances(trees.noise(epsilon, 0).blue_)
    places = [trees.LENGTHS.index(length) for length in _LENGTHS]
    return {
        title: {
            str(length): round(float(epsilon**2 * found[name][place]))
            for length, place in zip(_LENGTHS, places, strict=True)
        }
        for name, title in _METHODS.items()
    }


def cubes() -> dict[str, float]:
    """Largest standard error of a cell of a cube of 2, 8, 4 and 2 values at epsilon 1, by plan."""
    sizes = zip("abcd", (2, 8, 4, 2), strict=True)
    domain = Domain({name: Numeric(0, size - 1, integer=True) for name, size in sizes})
    return {
        plan: round(DataCube(epsilon=1.0, domain=domain, strategy=plan).plan().max_std_error, 1)
        for plan in ("base", "bmax", "auto")
    }


def selecting(runs: int = RUNS) -> dict[str, dict[str, float]]:
    """Share of the score of the top c missed on retail baskets at epsilon 0.5."""
    from benchmarks.select import measure

    found = {}
    for c in (50, 150):
        kinds = measure("retail", 0.5, c, runs)
        line = {}
        for setting, title in (("interactive", "stream"), ("non-interactive", "list")):
            missed = {name: scores["loss"][0] for name, scores in kinds[setting].items()}
            published = [value for name, value in missed.items() if not name.startswith("ours")]
            line[f"{title}, best published"] = round(min(published), 3)
            line[f"{title}, ours"] = round(missed["ours"], 3)
        found[str(c)] = line
    return found


def read() -> dict[str, Any]:
    """The file."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def publish(numbers: dict[str, Any], folder: Path) -> None:
    """Write the tables that the pages include."""
    folder.mkdir(parents=True, exist_ok=True)
    errors = numbers["counting"]["figures"]
    for epsilon, name in ((1.0, "counting_1"), (0.1, "counting_01")):
        lines = {
            release: {title: _shown(value) for title, value in line["errors"].items()}
            for release in RELEASES
            if (line := errors.get(f"{release}, epsilon {epsilon:g}"))
        }
        _write(lines, "release", folder / f"{name}.csv")
    lines = {
        method: {length: f"{value:,}" for length, value in line.items()}
        for method, line in numbers["one_column"]["figures"].items()
    }
    _write(lines, "method", folder / "one_column.csv")
    for section, title in (("classifying", "release and learner"), ("selecting", "c")):
        lines = {
            name: {column: f"{value:.3f}" for column, value in line.items()}
            for name, line in numbers[section]["figures"].items()
        }
        _write(lines, title, folder / f"{section}.csv")
    lines = {
        name: {epsilon: str(value) for epsilon, value in line.items()}
        for name, line in numbers["scores"]["figures"].items()
    }
    _write(lines, "release", folder / "scores.csv")


def _shown(value: float | None) -> str:
    return "refused" if value is None else f"{value:,.0f}"


def _write(lines: dict[str, dict[str, str]], title: str, path: Path) -> None:
    table = pd.DataFrame.from_dict(lines, orient="index").rename_axis(title)
    table.to_csv(path, na_rep="")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sections = ("counting", "one_column", "cubes", "selecting")
    parser.add_argument("--measure", choices=sections, help="measure a section again")
    parser.add_argument("--releases", nargs="+", choices=list(RELEASES), help="default all")
    parser.add_argument("--epsilon", nargs="+", type=float, default=(1.0, 0.1))
    parser.add_argument("--runs", type=int, default=2, help="releases of each kind (counting)")
    parser.add_argument("--publish", action="store_true", help="write the tables of the pages")
    options = parser.parse_args()
    numbers = read()
    if options.measure:
        if options.measure == "counting":
            given = options.releases, tuple(options.epsilon), options.runs
            figures = numbers["counting"]["figures"] | counting(*given)
        else:
            measure: dict[str, Callable[[], Any]] = {
                "one_column": one_column,
                "cubes": cubes,
                "selecting": selecting,
            }
            figures = measure[options.measure]()
        numbers[options.measure]["figures"] = figures
        # Closed forms need no fits.
        fits = {"counting": options.runs, "selecting": RUNS}.get(options.measure, 0)
        numbers[options.measure] |= stamp() | {"fits": fits}
        check_stamp(numbers[options.measure])
        FILE.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    if options.publish:
        publish(numbers, FOLDER)


if __name__ == "__main__":
    main()
