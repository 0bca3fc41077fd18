"""The figures that more than one page of the documentation quotes, in one file.

``docs/numbers.json`` has every figure with the command that measured it. ``python -m
benchmarks.numbers --publish`` writes from it the tables that the pages include
(``docs/_static/numbers``); `tests/test_numbers.py` holds tables and sentences to the file.
``--measure counting`` (or ``selecting``, ``one_column``, ``cubes``, and from the frozen baseline
``useless``, ``with_delta``) measures a section again and puts it into the file, with commit, date
and number of fits; ``--releases`` and ``--epsilon`` restrict the first, ``--runs`` sets its
releases. Other tables were measured by the commands that they name.

A figure of ranges of two columns is a root mean square error over 3,000 random ranges, averaged
over the releases.
"""

from __future__ import annotations

import argparse
import bisect
import functools
import json
import statistics
import warnings
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import skdp
from benchmarks._data import check_stamp, hdpview_table, stamp
from benchmarks._fidelity_tables import range_table
from skdp import hierarchy
from skdp.exceptions import DomainError, InsecureSeedWarning
from skdp.hierarchy import Blue

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
    "marginals": skdp.MarginalSynthesizer,
    "independence": functools.partial(skdp.MarginalSynthesizer, max_order=1),
    "HDPView": skdp.HDPViewSynthesizer,
    "PrivTree": skdp.PrivTreeSynthesizer,
    "kd-tree, two-step": skdp.KDTreeSynthesizer,
    "kd-tree, hierarchical": functools.partial(skdp.KDTreeSynthesizer, strategy="hierarchical"),
    "grid, extended": functools.partial(skdp.GridSynthesizer, rule="extended"),
}
RUNS = 100  # of selecting
# Records times epsilon, and what is between.
_BANDS = (5_000, 20_000, 50_000, 200_000)
_BAND_TITLES = ("below 5,000", "to 20,000", "to 50,000", "to 200,000", "above")
_SOURCES = {"useless": "unseen questions", "with_delta": "peers"}
_LABELS = ("adult: income", "electricity: class", "phoneme: Class")
_CLASSIFIERS = {
    "default": "PrivateClassifier",
    "DP-SGD, delta 1e-6": "DP-SGD, delta 1e-6",
    "DP-EBM, delta 1e-6": "DP-EBM, delta 1e-6",
}
_N_BINS, _LENGTHS = 4_096, (1, 16, 256, 2_048)


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
def _ranges(name: str) -> tuple[list[Any], Any]:
    """Queries of a table and their true answers."""
    table = hdpview_table(name)
    queries = [
        {table.columns[a]: (first, last), table.columns[b]: (start, stop)}
        for a, first, last, b, start, stop in table.queries.tolist()
    ]
    return queries, table.true_answers()


def range_errors(
    make: Callable[..., Any], name: str, epsilon: float, seeds: Iterable[int]
) -> list[float]:
    """Root mean square error over the ranges of a table, of a release with each seed."""
    table = range_table(name)
    queries, truth = _ranges(name)
    errors = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureSeedWarning)
            release = make(epsilon=epsilon, domain=table.domain, random_state=seed).fit(table.rows)
        errors.append(float(np.sqrt(np.mean((release.count(queries) - truth) ** 2))))
    return errors


def one_column() -> dict[str, dict[str, int]]:
    """Mean variance of ranges over 4,096 bins times epsilon squared, by method and length.

    Closed forms at epsilon 0.1; the product hardly depends on epsilon until 1.
    """
    epsilon = 0.1
    given = Fraction(str(epsilon))
    bins = hierarchy.measured_variances(np.array([10**6]), given)[0]
    found = {"plain bins": {length: bins * length for length in _LENGTHS}}
    for title, tree in {
        "a binary tree": hierarchy.perfect_tree(2, 12),
        "a tree of 12 branches": hierarchy.balanced_tree(_N_BINS, 12),
    }.items():
        # Every level has the same share of epsilon.
        shares = hierarchy.exact_shares(tree, np.full(tree.n_nodes, 1.0 / tree.n_levels))
        found[title] = _range_variances(Blue(tree, hierarchy.measured_variances(shares, given)))
    default = skdp.RangeTreeHistogram(
        epsilon=epsilon, domain=skdp.Numeric(0, _N_BINS, _N_BINS), random_state=0
    )
    with warnings.catch_warnings():
        # The table is empty, so that a total near zero is expected.
        warnings.simplefilter("ignore", UserWarning)
        own = _range_variances(default.fit(np.zeros(0)).blue_)
    return {
        title: {str(length): round(float(epsilon**2 * value)) for length, value in of.items()}
        for title, of in {**found, "the default of RangeTreeHistogram": own}.items()
    }


def _range_variances(blue: Blue) -> dict[int, float]:
    """Mean variance of all ranges of each length."""
    return {
        length: float(blue.range_variances(start, start + length).mean())
        for length in _LENGTHS
        for start in [np.arange(_N_BINS - length + 1)]
    }


def cubes() -> dict[str, float]:
    """Largest standard error of a cell of a cube of 2, 8, 4 and 2 values at epsilon 1, by plan."""
    sizes = zip("abcd", (2, 8, 4, 2), strict=True)
    domain = skdp.Domain({name: skdp.Numeric(0, size - 1, integer=True) for name, size in sizes})
    return {
        plan: round(
            skdp.DataCube(epsilon=1.0, domain=domain, strategy=plan).plan().max_std_error, 1
        )
        for plan in ("base", "bmax", "auto")
    }


def selecting(runs: int = RUNS) -> dict[str, dict[str, float]]:
    """Share of the score of the top c missed on retail baskets at epsilon 0.5."""
    from benchmarks.reproduce.svt import measure

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


def useless() -> dict[str, dict[str, str]]:
    """Share of useless intervals of two conditions, by records times epsilon (frozen baseline)."""
    from benchmarks._question_tables import TABLES as QUESTIONED

    kinds = {"cells": "two categories", "mixed": "category and number", "tails": "two numbers"}
    found: dict[str, dict[str, list[float]]] = {title: {} for title in kinds.values()}
    cells = _frozen("unseen questions")
    sizes = {name: len(QUESTIONED[name]().rows) for name, _, _ in cells}
    for (name, epsilon, kind), cell in cells.items():
        if kind in kinds and cell["useless"][0] is not None:
            place = bisect.bisect(_BANDS, sizes[name] * float(epsilon))
            found[kinds[kind]].setdefault(_BAND_TITLES[place], []).append(cell["useless"][0])
    return {
        title: {band: f"{statistics.median(line[band]):.0%}" for band in _BAND_TITLES}
        for title, line in found.items()
    }


def with_delta() -> dict[str, dict[str, str]]:
    """Misclassification of the default classifier and of others with a delta (frozen baseline)."""
    found: dict[str, dict[str, str]] = {}
    for (label, epsilon, model), cell in {**_frozen("peers"), **_frozen("models")}.items():
        if model in _CLASSIFIERS and label in _LABELS and epsilon != "10":
            value, error = cell["error"]
            line = found.setdefault(_CLASSIFIERS[model], {})
            line[f"{label.split(':')[0]}: {epsilon}"] = f"{value:.3f} ± {error:.3f}"
    return found


def _baseline() -> Any:
    return json.loads((Path(__file__).parent / "baseline.json").read_text(encoding="utf-8"))


def _frozen(section: str) -> dict[tuple[str, ...], Any]:
    """Cells of the frozen baseline by the parts of their names."""
    return {tuple(name.split(" | ")): cell for name, cell in _baseline()[section]["cells"].items()}


def read() -> dict[str, Any]:
    """The file."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def publish(numbers: dict[str, Any], folder: Path) -> None:
    """Write the tables that the pages include: of sections that say what their lines are."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: part["figures"] for name, part in numbers.items() if "lines" in part}
    errors = numbers["counting"]["figures"]
    for epsilon, name in ((1.0, "counting_1"), (0.1, "counting_01")):
        found = {release: errors.get(f"{release}, epsilon {epsilon:g}") for release in RELEASES}
        tables[name] = {release: line["errors"] for release, line in found.items() if line}
    for name, lines in tables.items():
        shown = {
            line: {column: _shown(value) for column, value in figures.items()}
            for line, figures in lines.items()
        }
        table = pd.DataFrame.from_dict(shown, orient="index")
        table = table.rename_axis(numbers.get(name, {}).get("lines", "release"))
        table.to_csv(folder / f"{name}.csv", na_rep="")


def _shown(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or "refused"
    return f"{value:,.0f}" if value >= 10 else f"{value:.3f}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    measure: dict[str, Callable[..., Any]] = {
        each.__name__: each
        for each in (counting, one_column, cubes, selecting, useless, with_delta)
    }
    parser.add_argument("--measure", choices=list(measure), help="measure a section again")
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
            figures = measure[options.measure]()
        # Closed forms need no fits; what is read off the frozen baseline was measured with it.
        fits = {"counting": options.runs, "selecting": RUNS}.get(options.measure, 0)
        measured = stamp() | {"fits": fits}
        if source := _SOURCES.get(options.measure):
            measured = {name: _baseline()[source][name] for name in measured}
        numbers[options.measure] |= {"figures": figures, **measured}
        check_stamp(numbers[options.measure])
        FILE.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    if options.publish:
        publish(numbers, FOLDER)


if __name__ == "__main__":
    main()
