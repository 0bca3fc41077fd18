"""Views of five tables: range queries, wide tables, classifiers, error bars, and time.

Each part can be run separately with ``--part``:

``tables``
    Root mean square error over 3,000 random 2-D range queries and over all cells of all two-way
    tables, averaged over ten releases, for each of `METHODS`. The baselines are independence (the
    product of one-way marginals that get all of epsilon), Identity (noise on every cell, in closed
    form), and the authors' code of HDPView and PrivTree.
``ranges``
    Ranges on three and four columns of the two wide tables.
``trees``
    Error on true rows of boosted trees trained on synthetic Adult rows, the label included.
``coverage``
    Coverage of intervals for 1,000 new queries of the class for which they are stated.
``cost``
    CPU time of a fit on Adult; time and memory of a fit on 60 columns and a million rows.

Run as ``python -m benchmarks.views --out views.json``; ``--quick`` uses two releases and one seed.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from benchmarks import _data
from skdp import (
    Categorical,
    Domain,
    HDPViewSynthesizer,
    MarginalSynthesizer,
    Numeric,
)
from skdp.exceptions import InsecureSeedWarning
from skdp.hierarchy import project_to_simplex
from skdp.kernels.views import Asked, measured_views
from skdp.mechanisms import discrete_laplace_variance
from skdp.rows import CountTable

# A method that is added here appears in the parts "tables" and "ranges". It raises a ValueError for
# a table that it does not support.
METHODS: dict[str, Callable[..., Any]] = {
    "marginals": MarginalSynthesizer,
    "HDPView": HDPViewSynthesizer,
}
MAIN = "marginals"
EPSILONS = (1.0, 0.1)

# Targets of marginals: ranges, cells.
BARS = {
    ("small", 1.0): (60, 7),
    ("numerical", 1.0): (130, 8),
    ("adult", 1.0): (260, 28),
    ("mdsalary", 1.0): (14, 0.3),
    ("twitter", 1.0): (70, 1.4),
    ("small", 0.1): (240, 20),
    ("numerical", 0.1): (520, 22),
    ("adult", 0.1): (750, 70),
    ("mdsalary", 0.1): (130, 1.8),
    ("twitter", 0.1): (480, 9),
}
# Errors of the code of the authors of HDPView and PrivTree, on the same tables and queries.
PUBLISHED = {
    ("small", 1.0): {"HDPView's authors": (525, 34.9), "PrivTree's": (828, 69)},
    ("small", 0.1): {"HDPView's authors": (2733, 224), "PrivTree's": (2882, 217)},
    ("numerical", 1.0): {"HDPView's authors": (3740, 196), "PrivTree's": (5627, 249)},
    ("numerical", 0.1): {"HDPView's authors": (5716, 235), "PrivTree's": (7612, 260)},
    ("adult", 1.0): {"HDPView's authors": (6879, 474)},
    ("adult", 0.1): {"HDPView's authors": (7975, 492)},
    ("mdsalary", 1.0): {"HDPView's authors": (40.1, 0.74), "PrivTree's": (38.1, 0.31)},
    ("mdsalary", 0.1): {"HDPView's authors": (335, 4.5), "PrivTree's": (222, 2.0)},
    ("twitter", 1.0): {"HDPView's authors": (406, 4.5), "PrivTree's": (83, 1.55)},
    ("twitter", 0.1): {"HDPView's authors": (2010, 18.5), "PrivTree's": (503, 9.1)},
}
# Ranges on three and four columns of Adult: twice the error of an early floating-point version.
RANGE_BARS = {("adult", 1.0): {3: 2 * 194, 4: 2 * 175}}
TREE_BARS = {1.0: 0.160, 0.3: 0.180, 0.1: 0.200}
_TREE_SEEDS = 5
_FRESH = 1000

Promise = tuple[str, bool]


def problem(name: str) -> tuple[_data.RangeTable, Domain, pd.DataFrame]:
    """Return a table, its domain, and a frame of one row per record."""
    table = _data.hdpview_table(name)
    domain = Domain(
        {
            column: Numeric(0, size - 1, integer=True)
            for column, size in zip(table.columns, table.shape, strict=True)
        }
    )
    rows = pd.DataFrame(np.repeat(table.codes, table.counts, axis=0), columns=list(table.columns))
    return table, domain, rows


def release(method: str, epsilon: float, domain: Domain, seed: int, rows: pd.DataFrame) -> Any:
    """Fit one of `METHODS`; the seed makes the benchmark repeatable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        return METHODS[method](epsilon, domain=domain, random_state=seed).fit(rows)


def range_weights(table: _data.RangeTable, queries: NDArray[np.int64]) -> list[dict[int, Any]]:
    """Ranges (attribute, first, last, attribute, first, last, ...) as weights of codes."""
    result = []
    for query in queries.tolist():
        weights = {}
        for axis, first, last in zip(query[::3], query[1::3], query[2::3], strict=True):
            weights[axis] = np.zeros(table.shape[axis])
            weights[axis][first : last + 1] = 1.0
        result.append(weights)
    return result


def exact_answers(table: _data.RangeTable, queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """True answers of ranges on any number of columns."""
    answers = np.empty(len(queries), dtype=np.int64)
    for i, query in enumerate(queries.tolist()):
        inside = np.ones(len(table.codes), dtype=bool)
        for axis, first, last in zip(query[::3], query[1::3], query[2::3], strict=True):
            column = table.codes[:, axis]
            inside &= (column >= first) & (column <= last)
        answers[i] = table.counts[inside].sum()
    return answers


def random_ranges(
    table: _data.RangeTable, n_columns: int, n_queries: int, seed: int
) -> NDArray[np.int64]:
    """Ranges between two random codes on random columns, (n_queries, 3 * n_columns)."""
    rng = np.random.default_rng(seed)
    out = np.empty((n_queries, 3 * n_columns), dtype=np.int64)
    for query in out:
        for k, axis in enumerate(rng.choice(len(table.shape), n_columns, replace=False)):
            ends = np.sort(rng.integers(0, table.shape[axis], 2))
            query[3 * k : 3 * k + 3] = axis, *ends
    return out


def rmse(errors: NDArray[np.float64]) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


# --------------------------------------------------------------------------------------------------
# Tables


def independence(
    exact: CountTable, epsilon: float, seed: int, orders: Sequence[Any] | None = None
) -> list[NDArray[np.float64]]:
    """One-way marginals with all of epsilon: counts of codes with one common sum.

    ``orders`` has an order of the codes of every column, None where there is no such order; by
    default the codes are in order in every column.
    """
    whole = Fraction(str(epsilon))
    parts = {"total": whole / 50, "views": whole * 49 / 50}
    known = [np.arange(size) for size in exact.shape] if orders is None else orders
    model = measured_views(exact, parts, Asked(known, max_order=1), random_state=seed)
    total = max(model.total, 1.0)
    return [project_to_simplex(model.view([axis]), total) for axis in range(len(exact.shape))]


def identity(table: _data.RangeTable, epsilon: float) -> tuple[float, float]:
    """Expected error of noise on every cell of the domain, in closed form: ranges and cells."""
    sizes = np.array(table.shape, dtype=np.float64)
    noise = discrete_laplace_variance(epsilon)
    cells = np.full(len(table.queries), sizes.prod())
    for k in (0, 3):
        width = table.queries[:, k + 2] - table.queries[:, k + 1] + 1
        cells *= width / sizes[table.queries[:, k]]
    pairs = [sizes[a] * sizes[b] for a, b in itertools.combinations(range(len(sizes)), 2)]
    # Each cell of a two-way table is a sum over all cells of the other columns.
    squares = sum(pair * (sizes.prod() / pair) for pair in pairs)
    return float(np.sqrt(noise * cells.mean())), float(np.sqrt(noise * squares / sum(pairs)))


def cell_errors(
    exact: CountTable, answer: Callable[[tuple[int, int]], NDArray[np.float64]]
) -> float:
    """Root mean square error over all cells of all two-way tables."""
    squares, n = 0.0, 0
    for axes in itertools.combinations(range(len(exact.shape)), 2):
        difference = answer(axes) - exact.dense(axes)
        squares += float(np.square(difference).sum())
        n += difference.size
    return float(np.sqrt(squares / n))


def measure_table(name: str, epsilon: float, runs: int) -> list[dict[str, Any]]:
    """Error of every method on one table."""
    table, domain, rows = problem(name)
    exact = CountTable.from_codes(table.codes, table.shape, table.counts)
    truth = table.true_answers()
    weights = range_weights(table, table.queries)
    found: dict[str, list[tuple[float, float, float]]] = {}
    refused = set()
    for seed in range(runs):
        for method in METHODS:
            begin = time.process_time()
            try:
                model = release(method, epsilon, domain, seed, rows).synopsis_.model
            except ValueError:
                refused.add(method)
                continue
            seconds = time.process_time() - begin
            ranges = rmse(model.answer(weights) - truth)
            cells = cell_errors(exact, lambda axes, model=model: model.view(list(axes)))
            found.setdefault(method, []).append((ranges, cells, seconds))
        views = independence(exact, epsilon, seed)
        total = views[0].sum()
        answers = np.array(
            [
                np.prod([view @ views[axis] for axis, view in query.items()]) / total
                for query in weights
            ]
        )
        cells = cell_errors(
            exact, lambda axes, v=views, t=total: np.outer(v[axes[0]], v[axes[1]]) / t
        )
        found.setdefault("independence", []).append((rmse(answers - truth), cells, 0.0))
    results = []
    for method, figures in found.items():
        ranges_all, cells_all, times = (list(each) for each in zip(*figures, strict=True))
        results.append(
            {
                "table": name,
                "epsilon": epsilon,
                "method": method,
                "ranges": statistics.fmean(ranges_all),
                "ranges_error": statistics.stdev(ranges_all) / runs**0.5,
                "cells": statistics.fmean(cells_all),
                "cpu": statistics.median(times),
            }
        )
    others = {"Identity": identity(table, epsilon), **PUBLISHED[name, epsilon]}
    for method, (ranges, cells) in others.items():
        results.append(
            {"table": name, "epsilon": epsilon, "method": method, "ranges": ranges, "cells": cells}
        )
    for method in refused - set(found):
        results.append({"table": name, "epsilon": epsilon, "method": method, "refused": True})
    return results


def run_tables(runs: int) -> tuple[list[dict[str, Any]], list[Promise]]:
    """All tables at both epsilons."""
    results = []
    print(f"{'table':<10} {'eps':>4} {'':<18} {'ranges':>16} {'cells':>9} {'CPU s':>7}")
    for epsilon in EPSILONS:
        for name in _data.HDPVIEW_TABLES:
            rows = measure_table(name, epsilon, runs)
            results += rows
            for row in rows:
                label = f"{name:<10} {epsilon:>4g} {row['method']:<18}"
                if "refused" in row:
                    print(f"{label} refused")
                    continue
                error = f" +- {row['ranges_error']:.1f}" if "ranges_error" in row else ""
                cpu = f"{row['cpu']:.2f}" if row.get("cpu") else ""
                print(
                    f"{label} {row['ranges']:>9,.4g}{error:<7} {row['cells']:>9,.4g} {cpu:>7}",
                    flush=True,
                )
    found = {
        (row["table"], row["epsilon"], row["method"]): row
        for row in results
        if "refused" not in row
    }
    promised = []
    for (name, epsilon), (ranges, cells) in BARS.items():
        mine = found[name, epsilon, MAIN]
        for kind, bar in (("ranges", ranges), ("cells", cells)):
            promised.append(
                (f"{name}, {epsilon:g}: {kind} {mine[kind]:.4g} <= {bar}", mine[kind] <= bar)
            )
        for kind in ("ranges", "cells"):
            best = min(found[name, epsilon, each][kind] for each in ("independence", "Identity"))
            promised.append(
                (
                    f"{name}, {epsilon:g}: {kind} {mine[kind]:.4g} <= 110% of the better of "
                    f"independence and Identity, {best:.4g}",
                    mine[kind] <= 1.1 * best,
                )
            )
    return results, promised


# --------------------------------------------------------------------------------------------------
# Ranges on three and four columns


def run_ranges(runs: int) -> tuple[list[dict[str, Any]], list[Promise]]:
    """Ranges on three and four columns of the wide tables."""
    results: list[dict[str, Any]] = []
    promised = []
    for name in ("numerical", "adult"):
        table, domain, rows = problem(name)
        asked = {k: random_ranges(table, k, 1000, seed=k) for k in (3, 4)}
        truth = {k: exact_answers(table, queries) for k, queries in asked.items()}
        weights = {k: range_weights(table, queries) for k, queries in asked.items()}
        for epsilon in EPSILONS:
            errors: dict[tuple[str, int], list[float]] = {}
            for seed in range(runs):
                for method in METHODS:
                    try:
                        model = release(method, epsilon, domain, seed, rows).synopsis_.model
                    except ValueError:
                        continue
                    for k in asked:
                        errors.setdefault((method, k), []).append(
                            rmse(model.answer(weights[k]) - truth[k])
                        )
            for (method, k), values in errors.items():
                mean = statistics.fmean(values)
                results.append(
                    {
                        "table": name,
                        "epsilon": epsilon,
                        "method": method,
                        "columns": k,
                        "ranges": mean,
                    }
                )
                print(f"{name:<10} {epsilon:>4g} {method:<12} {k} columns {mean:>9.1f}", flush=True)
                bar = RANGE_BARS.get((name, epsilon), {}).get(k)
                if bar and method == MAIN:
                    promised.append(
                        (
                            f"{name}, {epsilon:g}: ranges on {k} columns {mean:.0f} <= {bar}",
                            mean <= bar,
                        )
                    )
    return results, promised


# --------------------------------------------------------------------------------------------------
# Boosted trees


def adult_domain(rows: pd.DataFrame) -> Domain:
    """Domain of Adult; the categories are those of its documentation."""
    numeric = {
        "age": Numeric(17, 90, integer=True),
        "fnlwgt": Numeric(0, 1_500_000, bins=100),
        "education-num": Numeric(1, 16, integer=True),
        "capital-gain": Numeric(0, 100_000, bins=100),
        "capital-loss": Numeric(0, 4_400, bins=100),
        "hours-per-week": Numeric(1, 99, integer=True),
    }
    return Domain(
        {
            name: numeric.get(name) or Categorical(sorted(rows[name].unique()))
            for name in rows.columns
        }
    )


def tree_errors(
    epsilon: float, seeds: int, folds: int, method: Callable[..., Any] = MarginalSynthesizer
) -> list[float]:
    """Error on true held-out rows of boosted trees trained on synthetic rows, for each fold."""
    rows = _data.frame("adult")
    domain = adult_domain(rows)
    kinds = {name: isinstance(domain[name], Categorical) for name in rows.columns[:-1]}
    rows = rows.astype({name: float for name, text in kinds.items() if not text})

    def numbers(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            {
                name: pd.Categorical(frame[name], domain[name].categories).codes.astype(float)
                if text
                else frame[name].astype(float)
                for name, text in kinds.items()
            }
        )

    X, y = numbers(rows), rows["income"]
    errors = []
    for seed in range(seeds):
        splitter = StratifiedKFold(5, shuffle=True, random_state=seed)
        for fold, (train, test) in enumerate(splitter.split(X, y)):
            if fold == folds:
                break
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InsecureSeedWarning)
                view = method(
                    epsilon, domain=domain, target="income", random_state=100 * seed + fold
                ).fit(rows.iloc[train])
            synthetic, labels, _ = view.make_training_set(random_state=seed)
            trees = HistGradientBoostingClassifier(
                categorical_features=list(kinds.values()), random_state=seed
            ).fit(numbers(synthetic), labels)
            errors.append(float(np.mean(trees.predict(X.iloc[test]) != y.iloc[test])))
    return errors


def run_trees(seeds: int, folds: int) -> tuple[list[dict[str, Any]], list[Promise]]:
    """Boosted trees at three epsilons."""
    results, promised = [], []
    for epsilon, bar in TREE_BARS.items():
        errors = tree_errors(epsilon, seeds, folds)
        mean = statistics.fmean(errors)
        spread = statistics.stdev(errors) / len(errors) ** 0.5
        results.append({"epsilon": epsilon, "error": mean, "standard_error": spread})
        print(f"boosted trees, {epsilon:g}: error {mean:.4f} +- {spread:.4f}", flush=True)
        promised.append((f"trees, {epsilon:g}: error {mean:.4f} <= {bar}", mean <= bar))
    return results, promised


# --------------------------------------------------------------------------------------------------
# Intervals


def run_coverage(runs: int) -> tuple[list[dict[str, Any]], list[Promise]]:
    """How many of 1,000 new queries of the declared class lie in their intervals."""
    results, promised = [], []
    for name in _data.HDPVIEW_TABLES:
        table, domain, rows = problem(name)
        queries = random_ranges(table, 2, _FRESH, seed=99)
        truth = exact_answers(table, queries)
        weights = range_weights(table, queries)
        for epsilon in EPSILONS:
            for level in (0.9, 0.95):
                covered, widths = [], []
                for seed in range(runs):
                    model = release(MAIN, epsilon, domain, seed, rows).synopsis_.model
                    answers = model.answer(weights)
                    errors = np.abs(answers - truth)
                    half = np.array([model.error(query, level).above for query in weights])
                    covered.append(float((errors <= half).mean()))
                    widths.append(2 * float(np.median(half)) / float(np.quantile(errors, 0.95)))
                mean, width = statistics.fmean(covered), statistics.fmean(widths)
                least = level - 3 * (level * (1 - level) / _FRESH) ** 0.5
                results.append(
                    {
                        "table": name,
                        "epsilon": epsilon,
                        "level": level,
                        "coverage": mean,
                        "least": min(covered),
                        "width": width,
                    }
                )
                print(
                    f"{name:<10} {epsilon:>4g} {level:.0%}: coverage {mean:.3f} (least "
                    f"{min(covered):.3f}), median width {width:.2f} of the true 95% quantile",
                    flush=True,
                )
                promised.append(
                    (
                        f"{name}, {epsilon:g}: {level:.0%} intervals cover {mean:.3f} >= "
                        f"{least:.3f}, width {width:.2f} <= 4",
                        mean >= least and width <= 4,
                    )
                )
    return results, promised


# --------------------------------------------------------------------------------------------------
# Time and memory


def wide_rows(n_rows: int = 1_000_000, n_columns: int = 60, size: int = 30) -> pd.DataFrame:
    """Integers from 0 to 29; each column depends on an earlier one."""
    rng = np.random.default_rng(0)
    columns = np.empty((n_columns, n_rows), dtype=np.int64)
    for k in range(n_columns):
        own = np.minimum(rng.gamma(2, 4, n_rows).astype(np.int64), size - 1)
        kept = rng.random(n_rows) < 0.6
        before = columns[rng.integers(0, k)] if k else own
        columns[k] = np.where(kept, (before + k) % size, own)
    return pd.DataFrame(columns.T, columns=[f"x{k}" for k in range(n_columns)])


def _wide() -> None:
    """Fit one wide table and print seconds (wall, CPU) and the peak memory in GB."""
    rows = wide_rows()
    domain = Domain({name: Numeric(0, 29, integer=True) for name in rows.columns})
    start, begin = time.perf_counter(), time.process_time()
    MarginalSynthesizer(1.0, domain=domain).fit(rows)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        time.perf_counter() - start,
        time.process_time() - begin,
        memory / (1e9 if sys.platform == "darwin" else 1e6),
    )


def run_cost(runs: int) -> tuple[list[dict[str, Any]], list[Promise]]:
    """Time of a fit on Adult; time and memory of a fit on a wide table."""
    results, promised = [], []
    _, domain, rows = problem("adult")
    for epsilon, raked, bar in ((0.1, "without", 0.5), (1.0, "with", 3.0)):
        times = []
        for seed in range(runs + 1):
            begin = time.process_time()
            model = release(MAIN, epsilon, domain, seed, rows).synopsis_.model
            times.append(time.process_time() - begin)
            if bool(model.extra) != (raked == "with"):
                raise SystemExit(f"A fit of Adult at {epsilon:g} should be {raked} raking.")
        seconds = statistics.median(times[1:])
        results.append({"fit": "adult", "epsilon": epsilon, "cpu": seconds, "first": times[0]})
        print(f"Adult {raked} raking: {seconds:.2f} CPU s, the first {times[0]:.2f}", flush=True)
        promised.append(
            (f"fit of Adult {raked} raking in {seconds:.2f} CPU s <= {bar}", seconds <= bar)
        )
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks.views import _wide; _wide()"],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    wall, cpu, memory = map(float, done.stdout.split())
    results.append({"fit": "60 columns, 1e6 rows", "wall": wall, "cpu": cpu, "memory": memory})
    print(f"60 columns, 1e6 rows: {wall:.1f} s, {cpu:.1f} CPU s, {memory:.2f} GB", flush=True)
    promised.append(
        (
            f"60 columns, 1e6 rows in {cpu:.1f} CPU s < 30, {memory:.2f} GB < 4",
            cpu < 30 and memory < 4,
        )
    )
    return results, promised


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two releases, one seed")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--part", action="append", help="one of the parts; by default all")
    arguments = parser.parse_args()
    runs = 2 if arguments.quick else 10
    parts: dict[str, Callable[[], tuple[list[dict[str, Any]], list[Promise]]]] = {
        "tables": lambda: run_tables(runs),
        "ranges": lambda: run_ranges(max(2, runs // 2)),
        "trees": lambda: run_trees(*((1, 2) if arguments.quick else (_TREE_SEEDS, 5))),
        "coverage": lambda: run_coverage(runs),
        "cost": lambda: run_cost(3),
    }
    chosen = arguments.part or list(parts)
    unknown = set(chosen) - set(parts)
    if unknown:
        parser.error(f"there is no part {sorted(unknown)}; the parts are {list(parts)}")
    written: dict[str, Any] = {}
    promised = []
    for part in chosen:
        print(f"--- {part}")
        written[part], kept = parts[part]()
        promised += kept
    print()
    for promise, kept_it in promised:
        print(f"{'yes' if kept_it else 'NO':<4} {promise}")
    _data.write_json(arguments.out, "views", {**written, "bars": promised})


if __name__ == "__main__":
    main()
