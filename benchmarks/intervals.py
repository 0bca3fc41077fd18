"""Coverage and width of the intervals of marginals, by kinds of questions.

For each table, epsilon and release: fresh questions of each kind, the share of them whose interval
holds the true answer, and the median half width in multiples of the quantile of the errors. For
single cells also the half width in multiples of the cell's own root mean square error over the
releases. Results are appended to a file; what is in it is not computed again. The first release of
everything comes first, then the second: a run that is stopped has about as many of each.

Run as ``python -m benchmarks.intervals --runs 2 --out intervals.jsonl``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _fidelity_tables as tables
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric
from skdp.exceptions import InsecureSeedWarning
from skdp.expected import random_weights

EPSILONS = (0.05, 0.3, 1.0, 8.0)
LEVELS = (0.8, 0.9, 0.95)
# Number of columns of each kind of question, sets of columns, and questions on each set.
KINDS = {"one": 1, "cell": 2, "two": 2, "tail": 2, "three": 3, "four": 4}
N_SETS, N_EACH = 30, 5
N_ROWS = 20_000
# Questions are drawn anew for each release, but for cells, whose errors are seen over releases.
FIRST_SEED = 77

# Share of the records in a range at one end of a column.
_TAIL = 0.02, 0.2

Weights = dict[int, NDArray[np.float64]]


def tail_weights(
    mass: NDArray[np.float64], ordered: bool, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Weights 1 on the codes at one end that hold a random small share of the records, else 0.

    The codes of an unordered attribute are shuffled first. There is one code at least.
    """
    order = np.arange(len(mass)) if ordered else generator.permutation(len(mass))
    if generator.random() < 0.5:
        order = order[::-1]
    share = generator.uniform(*_TAIL)
    number = max(int((np.cumsum(mass[order]) <= share).sum()), 1)
    weights = np.zeros(len(mass))
    weights[order[:number]] = 1.0
    return weights


def chain() -> tables.Table:
    """Six columns of 24 codes, each a noisy copy of the one before."""
    rng = np.random.default_rng(1)
    z, columns = rng.normal(size=N_ROWS), {}
    for i in range(6):
        z = 0.7 * z + 0.7 * rng.normal(size=N_ROWS)
        columns[f"x{i}"] = np.clip(np.rint(12 + 4 * z), 0, 23).astype(int)
    domain = Domain({name: Numeric(0, 23, integer=True) for name in columns})
    return tables.Table("chain", pd.DataFrame(columns), domain, generated=True)


def classes() -> tables.Table:
    """Seven columns of 2 to 40 codes that depend on four hidden classes; 6,000 rows."""
    rng = np.random.default_rng(2)
    kind = rng.choice(4, 6_000, p=[0.5, 0.3, 0.15, 0.05])
    columns, attributes = {}, {}
    for i, size in enumerate((3, 5, 8, 12, 2, 20, 40)):
        reach = rng.dirichlet(np.full(size, 0.5), 4).cumsum(axis=1)[kind]
        drawn = (reach < rng.random(len(kind))[:, None]).sum(axis=1)
        columns[f"c{i}"] = np.minimum(drawn, size - 1)
        attributes[f"c{i}"] = (
            Numeric(0, size - 1, integer=True) if i % 2 else Categorical(range(size))
        )
    return tables.Table("classes", pd.DataFrame(columns), Domain(attributes), generated=True)


TABLES = {
    "adult": lambda: tables.subsample(tables.load("adult"), N_ROWS, 0),
    "nist": lambda: tables.load("nist"),
    "nltcs": lambda: tables.load("nltcs"),
    "acs": lambda: tables.subsample(tables.load("acs"), N_ROWS, 0),
    "chain": chain,
    "classes": classes,
}


class Asked(NamedTuple):
    """Questions of one kind and their true answers."""

    questions: list[Weights]
    exact: NDArray[np.float64]


def questions(table: tables.Table, seed: int) -> dict[str, Asked]:
    """Fresh questions of each kind."""
    rng = np.random.default_rng(seed)
    codes, shape = table.codes, table.domain.shape
    ordered = [not isinstance(each, Categorical) for each in table.domain.attributes]
    masses = [
        np.bincount(column, minlength=size) / len(codes)
        for column, size in zip(codes.T, shape, strict=True)
    ]
    used = [axis for axis, size in enumerate(shape) if size > 1]

    def weights(kind: str, axis: int) -> NDArray[np.float64]:
        if kind == "cell":
            return np.eye(shape[axis])[rng.integers(shape[axis])]
        if kind == "tail":
            return tail_weights(masses[axis], ordered[axis], rng)
        return random_weights(shape[axis], ordered[axis], rng)

    found = {}
    for kind, order in KINDS.items():
        asked = []
        for _ in range(N_SETS):
            axes = sorted(rng.choice(used, order, replace=False).tolist())
            asked += [{axis: weights(kind, axis) for axis in axes} for _ in range(N_EACH)]
        exact = [
            np.prod([vector[codes[:, axis]] for axis, vector in one.items()], axis=0).sum()
            for one in asked
        ]
        found[kind] = Asked(asked, np.array(exact))
    return found


def measured(
    table: tables.Table, asked: dict[str, Asked], epsilon: float, run: int
) -> dict[str, Any]:
    """Coverage and widths of one release; each table, epsilon and run has a seed of its own."""
    seed = zlib.crc32(f"{table.name} {epsilon:g} {run}".encode())
    estimator = MarginalSynthesizer(epsilon, domain=table.domain, random_state=seed)
    return covered(estimator.fit(table.rows).synopsis_.model, table, asked)


def covered(model: Any, table: tables.Table, asked: dict[str, Asked]) -> dict[str, Any]:
    """Coverage and widths of a release, by kinds of questions."""
    found: dict[str, Any] = {}
    for kind, (some, exact) in {**asked, "total": _total(table)}.items():
        errors = np.abs(model.answer(some) - exact)
        halves = np.array([[model.error(one, level).above for one in some] for level in LEVELS])
        true = [max(float(np.quantile(errors, level)), 0.5) for level in LEVELS]
        found[kind] = {
            "covered": (errors <= halves).mean(axis=1).tolist(),
            "width": (np.median(halves, axis=1) / true).tolist(),
        }
        if kind == "cell":
            found[kind]["squares"] = (errors**2).tolist()
            found[kind]["halves"] = halves[-1].tolist()
    return found


def _total(table: tables.Table) -> Asked:
    return Asked([{}], np.array([float(len(table.rows))]))


def releases(
    names: Sequence[str], epsilons: Sequence[float], runs: int, out: Path
) -> Iterator[dict[str, Any]]:
    """Results of all releases, from the file as far as they are in it."""
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(each["table"], each["epsilon"], each["seed"]): each for each in known}
    loaded: dict[str, tuple[tables.Table, Asked]] = {}
    for run, name, epsilon in itertools.product(range(runs), names, epsilons):
        if (name, epsilon, run) not in done:
            if name not in loaded:
                table = TABLES[name]()
                loaded[name] = table, questions(table, FIRST_SEED)["cell"]
            table, cells = loaded[name]
            asked = {**questions(table, FIRST_SEED + run), "cell": cells}
            own = {"table": name, "epsilon": epsilon, "seed": run}
            own["kinds"] = measured(table, asked, epsilon, run)
            with out.open("a") as file:
                file.write(json.dumps(own) + "\n")
            done[name, epsilon, run] = own
        yield done[name, epsilon, run]


def summary(found: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Number of releases, mean coverage and median widths of each table, epsilon and kind.

    ``cell_rmse`` is the median, over cells whose root mean square error is 1 or more, of the half
    width at 95% in multiples of it.
    """
    rows = []
    keys = dict.fromkeys((each["table"], each["epsilon"]) for each in found)
    for name, epsilon in keys:
        own = [e["kinds"] for e in found if (e["table"], e["epsilon"]) == (name, epsilon)]
        for kind in own[0]:
            covered = np.mean([each[kind]["covered"] for each in own], axis=0)
            widths = np.array([each[kind]["width"] for each in own])
            width = np.median(widths, axis=0)
            if kind == "total":
                # One question: the quantile of its error is that over releases.
                pairs = zip(LEVELS, widths.T, strict=True)
                width = np.array([1 / np.quantile(1 / each, level) for level, each in pairs])
            row = {"table": name, "epsilon": epsilon, "kind": kind, "releases": len(own)}
            for level, one, two in zip(LEVELS, covered, width, strict=True):
                row |= {f"covered {level:g}": one, f"width {level:g}": two}
            if kind == "cell":
                rms = np.sqrt(np.mean([each[kind]["squares"] for each in own], axis=0))
                half = np.mean([each[kind]["halves"] for each in own], axis=0)
                seen = rms >= 1.0
                row["cell_rmse"] = np.median(half[seen] / rms[seen]) if seen.any() else np.nan
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--runs", type=int, default=2, help="releases of each; default: 2")
    parser.add_argument("--out", type=Path, default=Path("intervals.jsonl"))
    given = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    found = list(releases(given.tables, given.epsilons, given.runs, given.out))
    with pd.option_context("display.width", 200, "display.max_rows", None):
        print(summary(found).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
