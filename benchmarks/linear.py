"""Linear models with privacy: errors on real tables, and the time that each solver takes.

``regression``
    Mean squared test error on ACSIncome (income over 19) of 50,000 training rows, drawn anew for
    each run, eight columns as indicators in the bins of `BINS`. Beside the solvers
    stand AdaSSP [1]_ with a delta of 1e-6, which is told norms that are tight for indicators, and
    least squares on the true rows ("true").
``logistic``
    Misclassification of Adult (48,842 rows, "?" a category, fnlwgt dropped), the first folds of
    five, all columns as indicators of at most 32 groups. "lines" takes numbers as they are.
``svm``
    The same as ``logistic`` for `PrivateLinearSVC`; ``naive bayes`` for `PrivateNaiveBayes`.
.. [1] Y.-X. Wang, "Revisiting differentially private linear regression", UAI 2018.

Run as ``python -m benchmarks.linear --out linear.json``; ``--parts``, ``--epsilon`` and ``--runs``
choose.
"""

from __future__ import annotations

import argparse
import math
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from benchmarks import _data, _fidelity_tables
from benchmarks.peers._adassp import ada_ssp
from benchmarks.peers._worker import indicators
from skdp import (
    Categorical,
    Domain,
    Numeric,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateNaiveBayes,
)
from skdp.exceptions import InsecureSeedWarning

PARTS = ("regression", "logistic", "svm", "naive bayes")
EPSILONS = (0.1, 0.5, 1.0, 4.0)
SOLVERS = ("auto", "functional", "local-search", "genetic")
# Bins of numbers in ACSIncome.
BINS = {"AGEP": 16, "WKHP": 10, "PINCP": 5}
_ROWS = 50_000
_DELTA = 1e-6


def acs() -> tuple[Domain, pd.DataFrame, pd.DataFrame]:
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
    return domain, train, test


def regress(method: str, epsilon: float, seed: int) -> float:
    """Test error of one run on ACSIncome."""
    domain, train, test = acs()
    rows = train.sample(min(_ROWS, len(train)), random_state=seed)
    answers, truth = rows["PINCP"].to_numpy(), test["PINCP"].to_numpy()
    columns = domain.select([name for name in domain.names if name != "PINCP"])
    if method in ("AdaSSP, delta 1e-6", "true"):
        coded = [columns.encode(each[list(columns.names)]) for each in (rows, test)]
        shape = np.array(columns.shape)
        features, asked = (indicators(codes, shape) for codes in coded)
        if method == "true":
            coef = np.linalg.lstsq(features, answers, rcond=None)[0]
            predicted = asked @ coef
        else:
            # Every row has a norm of the root of the number of columns; targets lie in -1 to 1.
            norm = math.sqrt(len(shape))
            coef = ada_ssp(features / norm, answers / 9.5 - 1, epsilon, _DELTA, seed) / norm
            predicted = (asked @ coef + 1) * 9.5
    else:
        model = PrivateLinearRegression(
            epsilon=epsilon,
            domain=columns,
            target_range=(-0.5, 19.5),
            solver=method,
            one_hot="all",
            random_state=seed,
        ).fit(rows.drop(columns="PINCP"), answers)
        predicted = model.predict(test.drop(columns="PINCP"))
    return float(np.mean((np.clip(predicted, 0, 19) - truth) ** 2) / 19**2)


def classify(make: Callable[..., Any], epsilon: float, seed: int) -> float:
    """Share of wrong predictions in one fold of Adult."""
    table = _fidelity_tables.load("adult")
    X, y = table.rows.drop(columns=table.target), table.rows[table.target].to_numpy()
    domain = table.domain.select([name for name in table.domain.names if name != table.target])
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    train, test = list(folds)[seed % 5]
    model = make(epsilon=epsilon, domain=domain, classes=sorted(set(y)), random_state=seed)
    model.fit(X.iloc[train], y[train])
    return float(np.mean(model.predict(X.iloc[test]) != y[test]))


def logistic(method: str, epsilon: float, seed: int) -> float:
    """Logistic regression by a solver; "lines" is "auto" with numbers as they are."""

    def make(epsilon: float, **others: Any) -> Any:
        lines = method == "lines"
        return PrivateLogisticRegression(
            epsilon=epsilon,
            solver="auto" if lines else method,
            one_hot="categories" if lines else "all",
            **others,
        )

    return classify(make, epsilon, seed)


def margins(method: str, epsilon: float, seed: int) -> float:
    """The linear support vector machine by a solver."""

    def make(epsilon: float, **others: Any) -> Any:
        return PrivateLinearSVC(epsilon=epsilon, solver=method, one_hot="all", **others)

    return classify(make, epsilon, seed)


TASKS: dict[str, tuple[Callable[[str, float, int], float], tuple[str, ...]]] = {
    "regression": (regress, (*SOLVERS, "AdaSSP, delta 1e-6", "true")),
    "logistic": (logistic, ("auto", "lines", *SOLVERS[1:])),
    "svm": (margins, ("auto", *SOLVERS[2:])),
    "naive bayes": (lambda _, e, s: classify(PrivateNaiveBayes, e, s), ("naive bayes",)),
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--methods", nargs="+", default=None)
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    results = []
    for part in options.parts:
        run, methods = TASKS[part]
        for method in methods:
            if options.methods and method not in options.methods:
                continue
            for epsilon in options.epsilon:
                found = statistics.fmean(run(method, epsilon, s) for s in range(options.runs))
                print(f"{part:11} {method:20} epsilon {epsilon:<4g} {found:.4f}", flush=True)
                results.append([part, method, epsilon, found])
    _data.write_json(options.out, "linear", results)


if __name__ == "__main__":
    main()
