"""Fidelity: how near a release comes to the truth, from little signal to a lot of it.

``nist``
    NIST's k-marginal score of sampled rows of ten columns, pairs and triples; beside it that of a
    bootstrap of the records, which no release exceeds by more than chance.
``adult``
    Error on true rows of boosted trees and of logistic regression that are trained on a release in
    label mode: three times five folds.

Every line has the mean and its standard error. Run as ``python -m benchmarks.fidelity nist --method
MarginalSynthesizer HDPViewSynthesizer``. A table whose file is missing is replaced by a small
generated one; ``--small`` does so always.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks import _data
from benchmarks._fidelity_releases import release
from benchmarks._fidelity_tables import Table, load
from skdp import Categorical, PrivateClassifier
from skdp.quality import k_marginal

__all__ = ["LEARNERS", "TASKS", "Result", "main"]

EPSILONS = {"nist": (0.1, 0.5, 1.0, 2.0, 8.0, 30.0), "adult": (0.1, 0.5, 1.0, 8.0)}


class Result(NamedTuple):
    """A mean over runs or folds, and its standard error."""

    task: str
    method: str
    epsilon: float
    measure: str
    value: float
    standard_error: float
    runs: int

    @classmethod
    def of(
        cls, task: str, method: str, epsilon: float, measure: str, values: Sequence[float]
    ) -> Result:
        """Mean and standard error of these values."""
        n = len(values)
        error = statistics.stdev(values) / n**0.5 if n > 1 else float("nan")
        return cls(task, method, epsilon, measure, statistics.fmean(values), error, n)


def nist(table: Table, method: str, epsilon: float, runs: int) -> Iterator[Result]:
    """Scores of the rows of releases, one for each run."""
    truth, shape = table.codes, table.domain.shape
    drawn = []
    for seed in range(runs):
        if method == "bootstrap":
            draws = np.random.default_rng(seed).integers(0, len(truth), len(truth))
            drawn.append(truth[draws])
        else:
            sample = release(method, table, epsilon, seed).sample(random_state=seed)
            drawn.append(table.domain.encode(sample))
    for order in (2, 3):
        values = [k_marginal(truth, codes, shape, order) for codes in drawn]
        yield Result.of("nist", method, epsilon, f"{order}-way score", values)


def boosted(texts: list[str], numbers: list[str], table: Table) -> Any:
    """Boosted trees with scikit-learn's defaults behind an ordinal encoder."""
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encoded = make_column_transformer((ordinal, texts), ("passthrough", numbers))
    return make_pipeline(encoded, HistGradientBoostingClassifier(random_state=0))


def logistic(texts: list[str], numbers: list[str], table: Table) -> Any:
    """Logistic regression, categories one-hot and numbers scaled."""
    listed = [list(table.domain[name].categories) for name in texts]
    encoded = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(categories=listed), texts)
    )
    return make_pipeline(encoded, LogisticRegression(max_iter=500))


LEARNERS: dict[str, Callable[[list[str], list[str], Table], Any]] = {
    "boosted": boosted,
    "logistic": logistic,
}


def adult(table: Table, method: str, epsilon: float, runs: int) -> Iterator[Result]:
    """Errors of learners of one release for each fold, of which there are as many as runs."""
    target = str(table.target)
    names = [name for name in table.domain.names if name != target]
    texts = [name for name in names if isinstance(table.domain[name], Categorical)]
    numbers = [name for name in names if name not in texts]
    X, y = table.rows[names], table.rows[target]
    found: dict[str, list[float]] = {learner: [] for learner in LEARNERS}
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0).split(X, y)
    for seed, (train, test) in enumerate(islice(folds, runs)):
        made = release(method, table.part(train), epsilon, seed, target=target)
        for learner, make in LEARNERS.items():
            model = PrivateClassifier(
                make(texts, numbers, table), FrozenEstimator(made), random_state=seed
            ).fit(X.iloc[train], y.iloc[train])
            found[learner].append(float(np.mean(model.predict(X.iloc[test]) != y.iloc[test])))
    for learner, errors in found.items():
        yield Result.of("adult", method, epsilon, f"{learner} error", errors)


TASKS: dict[str, Callable[[Table, str, float, int], Iterator[Result]]] = {
    "nist": nist,
    "adult": adult,
}


def main(arguments: Sequence[str] | None = None) -> list[Result]:
    """Run tasks, print their results, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="*", help=f"of {', '.join(TASKS)}; by default all")
    parser.add_argument("--method", nargs="+", default=["MarginalSynthesizer"])
    parser.add_argument("--epsilon", nargs="+", type=float)
    parser.add_argument("--runs", type=int, help="by default 10, and all 15 folds")
    parser.add_argument("--small", action="store_true", help="small generated tables")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.task) - set(TASKS):
        parser.error(f"there is no task {sorted(unknown)}; the tasks are {list(TASKS)}")
    results = []
    for task in chosen.task or TASKS:
        table = load(task, chosen.small)
        runs = chosen.runs or {"nist": 10, "adult": 15}[task]
        for method in chosen.method:
            for epsilon in chosen.epsilon or EPSILONS[task]:
                for result in TASKS[task](table, method, epsilon, runs):
                    print(
                        f"{task:<6} {method:<22} epsilon {epsilon:<5g} {result.measure:<15} "
                        f"{result.value:>8.4g} +- {result.standard_error:.2g}",
                        flush=True,
                    )
                    results.append(result)
    _data.write_json(chosen.out, "fidelity", [each._asdict() for each in results])
    return results


if __name__ == "__main__":
    main()
