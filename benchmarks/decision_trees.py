"""Private decision trees and forests: area under the curve and error of predictions.

The constants of the trees were chosen on electricity and phoneme; Adult (without "?"), NIST's
excerpt (the most frequent tenure against the others), NLTCS and ACS (personal income, upper half
against lower, 40,000 rows) were only looked at afterwards. 80% of the rows are fitted and 20%
predicted, with other rows in each run. Beside the trees: the published algorithms, forests, the
additive model, PrivPfC, a tree without privacy in the same bins ("true"), and the most frequent
class ("majority").

Run as ``python -m benchmarks.decision_trees --out decision_trees.json``; ``--tables``,
``--epsilon``, ``--runs`` and ``--methods`` choose.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from benchmarks import _data, _fidelity_tables
from benchmarks.additive import Task, runs
from benchmarks.additive import load as load_labelled
from skdp import (
    PrivateAdditiveClassifier,
    PrivateDecisionTreeClassifier,
    PrivateRandomForestClassifier,
    PrivPfCClassifier,
)
from skdp.exceptions import InsecureSeedWarning

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
TUNED, CHECKED = ("electricity", "phoneme"), ("adult", "nist", "nltcs", "acs")
_ACS_ROWS = 40_000


def load(name: str) -> Task:
    """A table with a label of two classes."""
    if name != "acs":
        return load_labelled(name)
    table = _fidelity_tables.load(name)
    rows = table.rows.sample(_ACS_ROWS, random_state=0).reset_index(drop=True)
    high = (rows[table.target] >= table.rows[table.target].median()).to_numpy()
    domain = table.domain.select([each for each in table.domain.names if each != table.target])
    return Task(rows.drop(columns=table.target), high, domain)


def private(estimator: type, **params: Any) -> Callable[[Task, float, int], Any]:
    """A private estimator, told the domain and the classes."""

    def make(task: Task, epsilon: float, seed: int) -> Any:
        public = {"domain": task.domain, "classes": [False, True]}
        return estimator(epsilon, **public, **params, random_state=seed)

    return make


def true(task: Task, epsilon: float, seed: int) -> Any:
    """A tree on the rows themselves, in the declared bins."""
    tree = DecisionTreeClassifier(min_samples_leaf=30, random_state=seed)
    return make_pipeline(FunctionTransformer(task.domain.encode), tree)


def majority(task: Task, epsilon: float, seed: int) -> Any:
    """The most frequent class."""
    return DummyClassifier()


METHODS: dict[str, Callable[[Task, float, int], Any]] = {
    "tree": private(PrivateDecisionTreeClassifier),
    "DiffPID3": private(PrivateDecisionTreeClassifier, algorithm="id3"),
    "DiffPC-4.5": private(PrivateDecisionTreeClassifier, algorithm="c4.5"),
    "DiffPID3, Gini": private(PrivateDecisionTreeClassifier, algorithm="id3", quality="gini"),
    "forest, shared": private(PrivateRandomForestClassifier),
    "forest, apart": private(PrivateRandomForestClassifier, rows="apart"),
    "forest, apart, 10": private(PrivateRandomForestClassifier, rows="apart", n_trees=10),
    "additive": private(PrivateAdditiveClassifier),
    "PrivPfC": private(PrivPfCClassifier),
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = TUNED + CHECKED
    parser.add_argument("--tables", nargs="+", default=tables, choices=tables)
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    results = []
    for name in options.tables:
        task = load(name)
        print(f"{name}: {len(task.X)} rows")
        asked = [(label, METHODS[label], e) for e in options.epsilon for label in options.methods]
        infinite = float("inf")
        asked += [("true", true, infinite), ("majority", majority, infinite)]
        for label, make, epsilon in asked:
            found = list(runs(task, make, epsilon, options.runs))
            auc, error, seconds = (statistics.fmean(each) for each in zip(*found, strict=True))
            spread = float(np.std([each.error for each in found])) / options.runs**0.5
            print(
                f"  epsilon {epsilon:<5g} {label:20} AUC {auc:.3f}  error {error:.3f} "
                f"({spread:.3f})  {seconds:.2f} CPU s",
                flush=True,
            )
            results.append([name, epsilon, label, auc, error, spread, seconds])
    _data.write_json(options.out, "decision_trees", results)


if __name__ == "__main__":
    main()
