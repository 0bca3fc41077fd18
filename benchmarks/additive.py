"""Private additive models: area under the curve and error of predictions.

Tables are Adult (rows without "?", 45,222 of them), electricity, phoneme, and the tenure of NIST's
excerpt, the most frequent against the others; 80% of the rows are fitted and 20% predicted, with
other rows in each run. Beside the estimator stand the same without functions of pairs, logistic
regression on one-hot bins without privacy ("true") and, where ``interpret-core`` is installed, its
DP-EBM with delta 1e-6 and the same public bounds, whose binning reads the number of rows and the
categories from the data, and whose noise is in floating point.

Run as ``python -m benchmarks.additive --out additive.json``; ``--tables``, ``--epsilon`` and
``--runs`` choose.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from benchmarks import _data, _fidelity_tables
from skdp import Domain, Numeric, PrivateAdditiveClassifier
from skdp.exceptions import InsecureSeedWarning

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
TABLES = ("adult", "electricity", "phoneme", "nist")


class Found(NamedTuple):
    """What one fit predicts, and the CPU seconds that it took."""

    auc: float
    error: float
    seconds: float


class Task(NamedTuple):
    """Rows, labels as booleans, and the domain of both."""

    X: pd.DataFrame
    y: np.ndarray
    domain: Domain


def load(name: str) -> Task:
    """A table with a label of two classes."""
    table = _fidelity_tables.load(name)
    rows, target = table.rows, table.target
    if name == "adult":
        rows = rows[~(rows == "?").any(axis=1)]
    classes = rows[target].value_counts().index
    # NIST's tenure has three classes: the most frequent against the others.
    y = (rows[target] != classes[0]).to_numpy()
    domain = table.domain.select([column for column in table.domain.names if column != target])
    return Task(rows.drop(columns=target).reset_index(drop=True), y, domain)


def ours(task: Task, epsilon: float, seed: int) -> Any:
    """The estimator with its defaults."""
    return PrivateAdditiveClassifier(
        epsilon, domain=task.domain, classes=[False, True], random_state=seed
    )


def alone(task: Task, epsilon: float, seed: int) -> Any:
    """The estimator without functions of pairs."""
    return ours(task, epsilon, seed).set_params(interactions=0)


def ebm(task: Task, epsilon: float, seed: int) -> Any:
    """Explainable boosting under approximate privacy, told the bounds of numbers."""
    from interpret.privacy import DPExplainableBoostingClassifier

    numbers = {name: isinstance(task.domain[name], Numeric) for name in task.X}
    bounds = [
        (float(task.domain[name].lower), float(task.domain[name].upper)) if number else None
        for name, number in numbers.items()
    ]
    return DPExplainableBoostingClassifier(
        feature_names=list(task.X),
        feature_types=["continuous" if number else "nominal" for number in numbers.values()],
        epsilon=epsilon,
        delta=1e-6,
        privacy_bounds={i: pair for i, pair in enumerate(bounds) if pair is not None},
        random_state=seed,
        n_jobs=1,
    )


def true(task: Task, epsilon: float, seed: int) -> Any:
    """Logistic regression on the rows themselves, in the declared bins."""
    codes = FunctionTransformer(task.domain.encode)
    encoder = OneHotEncoder(handle_unknown="ignore", min_frequency=10)
    return make_pipeline(codes, encoder, LogisticRegression(max_iter=500))


def runs(
    task: Task, make: Callable[[Task, float, int], Any], epsilon: float, n: int
) -> Iterator[Found]:
    """Fits of a method on different rows."""
    splits = ShuffleSplit(n, test_size=0.2, random_state=0).split(task.X)
    for seed, (train, test) in enumerate(splits):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(task, epsilon, seed).fit(task.X.iloc[train], task.y[train])
        seconds = time.process_time() - start
        share = model.predict_proba(task.X.iloc[test])[:, 1]
        error = float(np.mean((share > 0.5) != task.y[test]))
        yield Found(float(roc_auc_score(task.y[test], share)), error, seconds)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    methods: dict[str, Callable[[Task, float, int], Any]] = {
        "additive": ours,
        "additive, no pairs": alone,
    }
    if importlib.util.find_spec("interpret"):
        methods["DP-EBM, delta 1e-6"] = ebm
    results = []
    for name in options.tables:
        task = load(name)
        print(f"{name}: {len(task.X)} rows, majority {1 - task.y.mean():.3f}")
        asked = [(method, e) for e in options.epsilon for method in methods.items()]
        for (label, make), epsilon in [*asked, (("true", true), float("inf"))]:
            found = list(runs(task, make, epsilon, options.runs))
            auc, error, seconds = (statistics.fmean(each) for each in zip(*found, strict=True))
            print(
                f"  epsilon {epsilon:<5g} {label:20} AUC {auc:.3f}  error {error:.3f}  "
                f"{seconds:.2f} CPU s",
                flush=True,
            )
            results.append([name, epsilon, label, auc, error, seconds])
    _data.write_json(options.out, "additive", results)


if __name__ == "__main__":
    main()
