"""PrivBayes and marginals: total variation distance of two- and three-way marginals.

For each table and epsilon, synthetic rows (as many as there are records, drawn independently) are
compared with the records: mean total variation distance over all pairs and all triples of columns.
Columns of more than 16 ordered codes are compared in 16 groups of equal width. Tables are Adult (15
columns), NLTCS (16 binary columns) and ten columns of NIST's excerpt of the American Community
Survey, ages in years. "resampled" is a bootstrap of the records themselves: no release does better.
Times are CPU times of a whole ``fit``.

Run as ``python -m benchmarks.privbayes --out privbayes.json``; ``--tables``, ``--epsilon`` and
``--methods`` choose, ``--runs`` says how many fits (default 3).
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import _data, scores
from skdp import (
    Categorical,
    Domain,
    MarginalSynthesizer,
    Numeric,
    PrivBayesSynthesizer,
)
from skdp.exceptions import InsecureSeedWarning

METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "R": (PrivBayesSynthesizer, {}),
    "mutual information": (PrivBayesSynthesizer, {"score_function": "mutual_information"}),
    "F": (PrivBayesSynthesizer, {"score_function": "F"}),
    "R, hierarchical": (PrivBayesSynthesizer, {"encoding": "hierarchical"}),
    "R, negatives zero": (PrivBayesSynthesizer, {"negatives": "zero"}),
    "marginals": (MarginalSynthesizer, {}),
}
EPSILONS = (0.1, 1.0)
_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_SURVEY = "AGEP DEYE DVET EDU HOUSING_TYPE MSP OWN_RENT PINCP_DECILE RAC1P SEX".split()
# Groups in which columns of many ordered codes are compared.
_GROUPS = 16


class Table(NamedTuple):
    """Records and their domain."""

    rows: pd.DataFrame
    domain: Domain


def adult() -> Table:
    """All 15 columns, recoded."""
    table = _data.hdpview_table("adult")
    domain = Domain(
        {
            name: Numeric(0, size - 1, integer=True)
            if name in _NUMBERS
            else Categorical(list(range(size)))
            for name, size in zip(table.columns, table.shape, strict=True)
        }
    )
    codes = np.repeat(table.codes, table.counts, axis=0)
    return Table(pd.DataFrame(codes, columns=list(table.columns)), domain)


def nltcs() -> Table:
    """16 binary columns."""
    patterns, counts = _data.nltcs()
    names = [f"x{place}" for place in range(patterns.shape[1])]
    rows = pd.DataFrame(np.repeat(patterns, counts, axis=0), columns=names)
    return Table(rows, Domain(dict.fromkeys(names, Categorical([0, 1]))))


def nist() -> Table:
    """Ten columns; "N", not applicable, is a category."""
    path = _data.data_path("nist", "national2019.csv.gz")
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)[_SURVEY]
    attributes: dict[str, Any] = {
        name: Categorical(sorted(rows[name].unique(), key=lambda text: (len(text), text)))
        for name in _SURVEY
    }
    rows["AGEP"] = rows["AGEP"].astype(int)
    return Table(rows, Domain(attributes | {"AGEP": Numeric(0, 99, integer=True)}))


TABLES: dict[str, Callable[[], Table]] = {"adult": adult, "nltcs": nltcs, "nist": nist}


def compared(codes: Any, domain: Domain) -> tuple[Any, tuple[int, ...]]:
    """Codes in the groups in which they are compared, and the number of these."""
    codes = np.array(codes)
    sizes = list(domain.shape)
    for axis, attribute in enumerate(domain.attributes):
        if isinstance(attribute, Numeric) and sizes[axis] > _GROUPS:
            codes[:, axis] = codes[:, axis] * _GROUPS // sizes[axis]
            sizes[axis] = _GROUPS
    return codes, tuple(sizes)


def distances(true: Any, synthetic: Any, domain: Domain) -> tuple[float, float]:
    """Mean total variation distance over all pairs and over all triples."""
    left, shape = compared(true, domain)
    right, _ = compared(synthetic, domain)
    two, three = (scores.total_variation(left, right, shape, order=order) for order in (2, 3))
    return float(two), float(three)


def measure(name: str, epsilon: float, method: str, runs: int) -> dict[str, Any]:
    """Fit ``runs`` times; the mean distances, their standard errors, and the CPU time of a fit."""
    rows, domain = TABLES[name]()
    estimator, parameters = METHODS[method]
    true = domain.encode(rows)
    found, seconds = [], []
    for seed in range(runs):
        release = estimator(epsilon=epsilon, domain=domain, random_state=seed, **parameters)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureSeedWarning)
            release.fit(rows)
        seconds.append(time.process_time() - begin)
        drawn = release.synopsis_.sample_codes(len(true), np.random.default_rng(seed))
        found.append(distances(true, drawn, domain))
    two, three = zip(*found, strict=True)
    error = runs**0.5
    return {
        "table": name,
        "epsilon": epsilon,
        "method": method,
        "runs": runs,
        "two-way": statistics.fmean(two),
        "two-way error": statistics.stdev(two) / error if runs > 1 else None,
        "three-way": statistics.fmean(three),
        "three-way error": statistics.stdev(three) / error if runs > 1 else None,
        "cpu": statistics.median(seconds),
    }


def floor(name: str) -> tuple[float, float]:
    """Distances of a bootstrap of the records."""
    rows, domain = TABLES[name]()
    true = domain.encode(rows)
    again = true[np.random.default_rng(0).integers(len(true), size=len(true))]
    return distances(true, again, domain)


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--epsilon", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    results = []
    for name in arguments.tables:
        two, three = floor(name)
        print(f"{name:<6}      {'resampled':<20} {two:.4f}           {three:.4f}", flush=True)
        results.append({"table": name, "method": "resampled", "two-way": two, "three-way": three})
        for epsilon in arguments.epsilon:
            for method in arguments.methods:
                if method == "F" and name != "nltcs":
                    continue  # its columns must have two codes
                row = measure(name, epsilon, method, arguments.runs)
                results.append(row)
                errors = [row["two-way error"] or 0.0, row["three-way error"] or 0.0]
                print(
                    f"{name:<6} {epsilon:>4g} {method:<20} {row['two-way']:.4f} +- {errors[0]:.4f} "
                    f"{row['three-way']:.4f} +- {errors[1]:.4f} {row['cpu']:>6.2f} s",
                    flush=True,
                )
    _data.write_json(arguments.out, "privbayes", results)


if __name__ == "__main__":
    main()
