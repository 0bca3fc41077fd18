"""Strategies of a private search: the loss of accuracy compared with tuning on the true labels.

Eight searches in which every candidate needs a fit of its own: on at most 10,000 rows of Adult,
electricity, phoneme and the tenure of NIST's excerpt (as in `benchmarks.additive`), over kinds of
models (additive, PrivPfC, trees on two releases) and over the number of groups of an additive
model. A tenth of the total epsilon chooses; the rest is divided among the fits as the strategy
asks.

The loss is the mean accuracy on held-out rows of the best candidate at all of the total, chosen
with the true held-out labels of all runs, minus that of the selected model. It has two parts: the
epsilon that the search takes from the fits, and wrong choices. "at random" takes one candidate at
all of the total, without a search.

Run as ``python -m benchmarks.search --out search.json``; ``--tables``, ``--grids``, ``--epsilon``
and ``--runs`` choose.
"""

from __future__ import annotations

import argparse
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from benchmarks import _data
from benchmarks.additive import TABLES, Task, load
from skdp import (
    HDPViewSynthesizer,
    MarginalSynthesizer,
    PrivateAdditiveClassifier,
    PrivateClassifier,
    PrivPfCClassifier,
)
from skdp.exceptions import InsecureSeedWarning
from skdp.model_selection import PrivateGridSearchCV

CHOICE = Fraction(1, 10)
MOST_ROWS = 10_000
LABELS = [False, True]
GROUPS = (2, 4, 8, 16, 32, 64)
STRATEGIES: dict[str, dict[str, Any]] = {
    "noisy-max": {"strategy": "noisy-max"},
    "halving": {"strategy": "halving"},
    "random-stopping, eta 0": {"strategy": "random-stopping", "eta": 0},
    "random-stopping, eta 1": {"strategy": "random-stopping", "eta": 1},
}


def kinds(task: Task, epsilon: Fraction) -> list[Any]:
    """Four models that learn in different ways."""
    tree = make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        DecisionTreeClassifier(max_depth=5),
    )
    declared = {"domain": task.domain, "classes": LABELS}
    return [
        PrivateAdditiveClassifier(epsilon, **declared),
        PrivPfCClassifier(epsilon, max_grids=2_000, **declared),
        *(
            PrivateClassifier(tree, release(epsilon, domain=task.domain), classes=LABELS)
            for release in (HDPViewSynthesizer, MarginalSynthesizer)
        ),
    ]


def groups(task: Task, epsilon: Fraction) -> list[Any]:
    """One model, finer and finer."""
    return [
        PrivateAdditiveClassifier(epsilon, domain=task.domain, classes=LABELS, max_groups=each)
        for each in GROUPS
    ]


GRIDS = {"kinds": kinds, "groups": groups}


def search_of(candidates: list[Any], epsilon: Fraction, options: dict[str, Any]) -> Any:
    """A search among candidates; its fits cost what the candidates and the strategy say."""
    return PrivateGridSearchCV(
        Pipeline([("model", candidates[0])]), {"model": candidates}, epsilon=epsilon, **options
    )


def share_of_fits(n_candidates: int, options: dict[str, Any]) -> Fraction:
    """Epsilon of one fit, if all of them cost 1."""
    one = [PrivateAdditiveClassifier(1)] * n_candidates
    return 1 / search_of(one, Fraction(1), options)._price_of_fits([Fraction(1)] * n_candidates)


def one_run(
    task: Task, make: Any, total: Fraction, train: np.ndarray, test: np.ndarray
) -> tuple[list[float], dict[str, float]]:
    """Accuracy of each candidate at all of the total, and of what each strategy selects."""
    X, y = task.X.iloc[train], task.y[train]
    new, truth = task.X.iloc[test], task.y[test]
    whole = [float(one.fit(X, y).score(new, truth)) for one in make(task, total)]
    found = {}
    for name, options in STRATEGIES.items():
        share = share_of_fits(len(whole), options)
        candidates = make(task, (1 - CHOICE) * total * share)
        search = search_of(candidates, CHOICE * total, options).fit(X, y)
        assert search.privacy_loss_.epsilon == total
        found[name] = float(search.score(new, truth))
    return whole, found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--grids", nargs="+", default=tuple(GRIDS), choices=tuple(GRIDS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=(1.0,))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    warnings.simplefilter("ignore", UserWarning)
    results = []
    for name in options.tables:
        task = load(name)
        for grid in options.grids:
            make = GRIDS[grid]
            for epsilon in options.epsilon:
                total = Fraction(repr(epsilon))
                size = min(len(task.X), MOST_ROWS)
                splits = ShuffleSplit(
                    options.runs, test_size=size // 5, train_size=size * 4 // 5, random_state=0
                ).split(task.X)
                runs = [one_run(task, make, total, *split) for split in splits]
                whole = np.mean([each for each, _ in runs], axis=0)
                best = int(whole.argmax())
                found = {"at random": [float(np.mean(each)) for each, _ in runs]}
                found |= {key: [each[key] for _, each in runs] for key in STRATEGIES}
                print(f"{name}, {grid}, epsilon {epsilon:g}: best {whole.max():.4f}", flush=True)
                for way, scores in found.items():
                    losses = [each[best] - one for (each, _), one in zip(runs, scores, strict=True)]
                    loss, error = float(np.mean(losses)), float(np.std(losses) / len(runs) ** 0.5)
                    print(f"  {way:24} loses {loss:.4f} +- {error:.4f}", flush=True)
                    results.append([name, grid, epsilon, way, loss, error])
    _data.write_json(options.out, "search", results)


if __name__ == "__main__":
    main()
