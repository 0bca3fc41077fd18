"""Tuning on a release: the loss of accuracy compared with tuning on the true labels.

Nine boosted trees (depth, learning rate) are trained on the synthetic rows of one release that took
eight tenths of the total epsilon. One of them is selected by

- a noisy maximum over the numbers of correct training rows at a tenth of the total, as
  `PrivateGridSearchCV` does; also at a fiftieth, to see how little epsilon it needs;
- three methods that are free because they read only the release: cross-validation on the synthetic
  rows; a second release, made from the synthetic rows at the same epsilon, whose rows train the
  candidates, which are then scored on the rows of the first; and scores on synthetic rows whose
  columns are shuffled within each class.

The last tenth pays for one private score of the held-out rows. The loss is the exact accuracy on
the held-out rows of the best candidate (a choice that is not private) minus that of the selected
one. Adult at a total epsilon of 1 has a target, 0.005; Adult at 0.3 and electricity at 1 show
whether a method is good in general.

Run as ``python -m benchmarks.pipelines --out pipelines.json``; ``--seeds`` names the seeds and
``--quick`` uses one. About 20 CPU s per seed and table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import ParameterGrid, cross_val_score, train_test_split

from benchmarks import _data
from benchmarks.privpfc import Problem, adult, electricity
from skdp import Categorical, MarginalSynthesizer
from skdp.exceptions import InsecureSeedWarning
from skdp.mechanisms import noisy_max
from skdp.model_selection import private_score

RELEASE, CHOICE, SMALL_CHOICE, SCORE = 0.8, 0.1, 0.02, 0.1
MOST_LOST = 0.005
GRID = {"max_depth": [2, 4, 8], "learning_rate": [0.03, 0.1, 0.3]}
# Number of draws of the noise of a selection; their losses are averaged.
DRAWS = 50
CASES = {"adult, 1": (adult, 1.0), "adult, 0.3": (adult, 0.3), "electricity, 1": (electricity, 1.0)}
WITH_BAR = "adult, 1"
WAYS = (
    "noisy maximum",
    "noisy maximum at a fiftieth",
    "cross-validation",
    "second release",
    "shuffled within classes",
)


def boosting(**parameters: Any) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        max_iter=60, categorical_features="from_dtype", random_state=0, **parameters
    )


def one_seed(problem: Problem, total: float, seed: int) -> dict[str, float]:
    label, candidates = problem.target, list(ParameterGrid(GRID))
    train, test = train_test_split(problem.rows, test_size=0.2, random_state=seed)
    kinds = {
        name: pd.CategoricalDtype(list(problem.domain[name].categories))
        for name in problem.predictors
        if isinstance(problem.domain[name], Categorical)
    }

    def released(rows: pd.DataFrame, number: int) -> pd.DataFrame:
        synthesizer = MarginalSynthesizer(
            epsilon=RELEASE * total, domain=problem.domain, target=label, random_state=number
        )
        return synthesizer.fit(rows).sample(random_state=number)

    def trained(rows: pd.DataFrame) -> list[Any]:
        X, y = rows.drop(columns=label).astype(kinds), np.array(rows[label].tolist())
        return [boosting(**each).fit(X, y) for each in candidates]

    def right(models: list[Any], rows: pd.DataFrame) -> list[int]:
        X, y = rows.drop(columns=label).astype(kinds), np.array(rows[label].tolist())
        return [int((model.predict(X) == y).sum()) for model in models]

    synthetic = released(train, seed)
    models = trained(synthetic)
    accuracy = np.array(right(models, test)) / len(test)
    counts = right(models, train)
    X, y = synthetic.drop(columns=label).astype(kinds), np.array(synthetic[label].tolist())
    folds = [cross_val_score(boosting(**each), X, y, cv=3).mean() for each in candidates]
    free = {
        "cross-validation": folds,
        "second release": right(trained(released(synthetic, 100 + seed)), synthetic),
        "shuffled within classes": right(models, _shuffled(synthetic, label, seed)),
    }
    noisy = {"noisy maximum": CHOICE * total, "noisy maximum at a fiftieth": SMALL_CHOICE * total}
    picks = {way: [int(np.argmax(scores))] for way, scores in free.items()}
    for way, epsilon in noisy.items():
        picks[way] = [
            int(noisy_max(counts, epsilon, 1, random_state=1000 * seed + draw))
            for draw in range(DRAWS)
        ]
    chosen = picks["noisy maximum"][0]
    guess = models[chosen].predict(test.drop(columns=label).astype(kinds))
    score = private_score(
        test[label].to_numpy(), guess, "accuracy", epsilon=SCORE * total, random_state=seed
    )
    return {
        "seed": seed,
        **{way: float((accuracy.max() - accuracy[picks[way]]).mean()) for way in WAYS},
        "best": accuracy.max(),
        "worst": accuracy.min(),
        "private score": float(score),
        "its error": abs(float(score) - accuracy[chosen]),
        "half width of its interval": (score.upper - score.lower) / 2,
    }


def _shuffled(rows: pd.DataFrame, label: str, seed: int) -> pd.DataFrame:
    """Rows in which the columns depend on each other only through the label."""
    rng = np.random.default_rng(seed)
    groups = list(rows.groupby(label, observed=True).indices.values())
    shuffled = {label: rows[label]}
    for name in rows.columns.drop(label):
        order = np.arange(len(rows))
        for group in groups:
            order[group] = rng.permutation(group)
        shuffled[name] = rows[name].iloc[order].set_axis(rows.index)
    return pd.DataFrame(shuffled)[list(rows.columns)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    started = time.process_time()
    results: dict[str, list[dict[str, float]]] = {}
    for case in options.only:
        make, total = CASES[case]
        results[case] = []
        for seed in [0] if options.quick else options.seeds:
            results[case].append(one_seed(make(), total, seed))
            found = results[case][-1]
            print(case, *(f"{name} {value:.4f}" for name, value in found.items()), flush=True)
    print(f"\n{'lost on average':<28}" + "".join(f"{case:>16}" for case in results))
    for way in WAYS:
        lost = [float(np.mean([each[way] for each in found])) for found in results.values()]
        print(f"{way:<28}" + "".join(f"{value:>16.4f}" for value in lost))
    for way in WAYS if WITH_BAR in results else ():
        there = float(np.mean([each[way] for each in results[WITH_BAR]]))
        verdict = "yes" if there <= MOST_LOST else "NO"
        print(f"{verdict:<4} {WITH_BAR}: the choice by {way} loses {there:.4f} <= {MOST_LOST}")
    print(f"{time.process_time() - started:.0f} CPU s")
    _data.write_json(options.out, "pipelines", results)


if __name__ == "__main__":
    main()
