"""Linear regression from releases: test error on ACSIncome, and coverage of intervals.

``accuracy``
    Mean squared error of predicted incomes on 1,000 test rows (income over 19), eight columns as
    indicators, for releases of `RELEASES`. Of 50,000 training rows, drawn anew for each run.
``coverage``
    Share of coefficients of least squares on the same rows inside their 95% intervals. The
    constants of the intervals were chosen on "ACS, first half" and the first generated table.

Run as ``python -m benchmarks.regression --out regression.json``; ``--quick`` uses one run.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import _data
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric
from skdp.exceptions import InsecureSeedWarning
from skdp.inspection import linear_regression, regression_workload

EPSILONS = (0.05, 0.1, 0.5, 1.0)
BINS = {"AGEP": 16, "WKHP": 10, "PINCP": 5}
_ROWS = 50_000

Table = tuple[Domain, pd.DataFrame, str]

RELEASES: dict[str, Callable[..., Any]] = {
    "label": lambda domain, target, **kinds: MarginalSynthesizer(
        domain=domain, target=target, max_order=2, **kinds
    ),
    "workload": lambda domain, target, **kinds: MarginalSynthesizer(
        domain=domain, max_order=2, workload=regression_workload(domain, target), **kinds
    ),
}


def acs(rows: slice = slice(None)) -> tuple[Domain, pd.DataFrame, pd.DataFrame]:
    """Domain with few bins, training rows and test rows of ACSIncome."""
    with np.load(_data.data_path("acs_income_lin.npz"), allow_pickle=True) as data:
        names = [str(name) for name in data["columns"]]
        sizes = [int(size) for size in data["shape"]]
        train, test = (pd.DataFrame(data[part], columns=names) for part in ("train", "test"))
    domain = Domain(
        {
            name: Numeric(-0.5, size - 0.5, bins=BINS[name])
            if name in BINS
            else Categorical(list(range(size)))
            for name, size in zip(names, sizes, strict=True)
        }
    )
    return domain, train.iloc[rows], test


def adult() -> Table:
    """Weekly hours of Adult."""
    table = _data.hdpview_table("adult")
    rows = pd.DataFrame(np.repeat(table.codes, table.counts, axis=0), columns=list(table.columns))
    target = "hours-per-week"
    domain = Domain(
        {
            name: Numeric(-0.5, size - 0.5, bins=min(size, 8 if name == target else 16))
            for name, size in zip(table.columns, table.shape, strict=True)
        }
    )
    return domain, rows, target


def generated(seed: int) -> Table:
    """Seven columns, numbers and categories, that depend on two hidden causes."""
    rng = np.random.default_rng(seed)
    n, n_columns = 60_000, 7
    causes = rng.normal(size=(n, 2))
    scores = causes @ rng.normal(size=(2, n_columns)) + rng.normal(size=(n, n_columns))
    columns: dict[str, Any] = {}
    domain: dict[str, Any] = {}
    for j, score in enumerate(scores.T):
        if j % 2 and j < n_columns - 1:
            size = int(rng.integers(2, 9))
            edges = np.sort(rng.dirichlet(np.ones(size))).cumsum()[:-1]
            columns[f"c{j}"] = np.searchsorted(edges, pd.Series(score).rank(pct=True))
            domain[f"c{j}"] = Categorical(list(range(size)))
        else:
            scaled = (score - score.min()) / (score.max() - score.min())
            columns[f"x{j}"] = scaled ** rng.uniform(0.6, 2)
            domain[f"x{j}"] = Numeric(0, 1, bins=8 if j == n_columns - 1 else 12)
    return Domain(domain), pd.DataFrame(columns), f"x{n_columns - 1}"


def acs_table(rows: slice) -> Table:
    """One half of ACSIncome."""
    domain, train, _ = acs(rows)
    return domain, train, "PINCP"


TABLES: dict[str, Callable[[], Table]] = {
    "ACS, first half": lambda: acs_table(slice(0, 97_000)),
    "generated 1": lambda: generated(1),
    "ACS, second half": lambda: acs_table(slice(97_000, None)),
    "adult, hours": adult,
    "generated 2": lambda: generated(2),
}


def fitted(release: str, table: Table, epsilon: float, seed: int) -> Any:
    """A release; the seed makes the benchmark repeatable."""
    domain, rows, target = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        estimator = RELEASES[release](domain, target, epsilon=epsilon, random_state=seed)
        return estimator.fit(rows)


def accuracy(release: str, epsilon: float, runs: int) -> float:
    """Mean squared test error on ACSIncome."""
    domain, train, test = acs()
    binned = ["AGEP", "WKHP"]
    errors = []
    for seed in range(runs):
        rows = train.sample(min(_ROWS, len(train)), random_state=seed)
        view = fitted(release, (domain, rows, "PINCP"), epsilon, seed)
        fit = linear_regression(view, "PINCP", categorical=binned)
        predicted = np.clip(fit.predict(domain.encode(test)), 0, 19)
        errors.append(np.mean((predicted - test["PINCP"].to_numpy()) ** 2) / 19**2)
    return float(np.mean(errors))


def covered(release: str, table: Table, epsilon: float, seed: int, n_rows: int = _ROWS) -> float:
    """Share of coefficients of least squares on the same rows inside their intervals."""
    domain, rows, target = table
    rows = rows.sample(min(n_rows, len(rows)), random_state=seed)
    fit = linear_regression(fitted(release, (domain, rows, target), epsilon, seed), target)
    codes = domain.encode(rows)
    answers = domain[target].means()[codes[:, domain.index(target)]]
    exact = np.linalg.lstsq(fit.design(codes), answers, rcond=None)[0]
    inside = (fit.table["lower"] <= exact) & (exact <= fit.table["upper"])
    return float(inside[1:].mean())


def main() -> None:
    """Run the benchmark and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", choices=("accuracy", "coverage"))
    options = parser.parse_args()
    runs = 1 if options.quick else 3
    results: dict[str, Any] = {}
    if options.part != "coverage":
        for release in RELEASES:
            for epsilon in EPSILONS:
                error = accuracy(release, epsilon, runs)
                results[f"accuracy, {release}, {epsilon:g}"] = error
                print(f"{release:12s} epsilon {epsilon:<5g} test error {error:.4f}", flush=True)
    if options.part != "accuracy":
        for name, make in TABLES.items():
            table = make()
            for release in ("label", "workload"):
                for epsilon in (0.1, 0.5, 1.0):
                    share = np.mean([covered(release, table, epsilon, s) for s in range(runs)])
                    results[f"coverage, {name}, {release}, {epsilon:g}"] = float(share)
                    print(f"{name:18s} {release:10s} {epsilon:<4g} {share:.3f}", flush=True)
    _data.write_json(options.out, "regression", results)


if __name__ == "__main__":
    main()
