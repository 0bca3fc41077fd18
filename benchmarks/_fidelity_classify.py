"""Tasks of the fidelity benchmark that train classifiers on a release in label mode."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks._fidelity_learners import (
    LEARNERS,
    Score,
    folds,
    majority,
    naive_bayes,
    privpfc,
    score,
    trained,
)
from benchmarks._fidelity_releases import Unsupported, release
from benchmarks._fidelity_results import Options, Result, result_of
from benchmarks._fidelity_tables import Table

__all__ = ["adult", "label"]

# Boosted trees, logistic regression.
_ADULT_BARS = {
    0.1: (0.162, 0.170), 0.5: (0.155, 0.158), 1.0: (0.152, 0.156), 2.0: (0.150, 0.155),
    4.0: (0.148, 0.154), 8.0: (0.145, 0.153), 30.0: (0.142, 0.153), 1000.0: (0.139, 0.153),
}  # fmt: skip
_LABELLED = ("electricity", "phoneme", "nist", "adult")

# Scores of every fold, by learner.
Scores = dict[str, list[Score]]


def _of_release(
    method: str, learners: Sequence[str], table: Table, epsilon: float, most: int | None
) -> Scores | None:
    """Scores of learners that are trained on one release of each fold; None if it is refused."""
    found: Scores = {learner: [] for learner in learners}
    for seed, (train, test) in enumerate(folds(table, most)):
        try:
            made = release(method, train, epsilon, seed, target=table.target)
        except Unsupported as refused:
            print(f"{table.name}, {method}, epsilon {epsilon:g}: left out. {refused}")
            return None
        for learner in learners:
            name, _, inside = learner.partition(", ")
            model = trained(name, made, seed, middles=inside == "middles")
            found[learner].append(score(model, test))
    return found


def adult(options: Options) -> Iterator[Result]:
    """Error and AUC of classifiers trained on Adult's release.

    "middles" is trained on synthetic rows with every number in the middle of its bin.
    """
    learners = ("boosted", "logistic", "boosted, middles", "logistic, middles")
    for table in options.of_tables(["adult"]):
        for method in options.methods:
            earlier: tuple[float, Scores] | None = None
            for epsilon in options.of_epsilon(tuple(_ADULT_BARS)):
                found = _of_release(method, learners, table, epsilon, options.folds)
                if found is None:
                    break
                bars = _ADULT_BARS.get(epsilon, (None, None))
                for (learner, scores), bar in zip(found.items(), bars * 2, strict=True):
                    measured = "adult", table, method, epsilon
                    errors = [each.error for each in scores]
                    yield result_of(*measured, f"{learner} error", errors, bar)
                    yield result_of(
                        *measured,
                        f"{learner} AUC",
                        [each.auc for each in scores],
                        higher_is_better=True,
                    )
                if earlier is not None:
                    yield from _rises(table, method, earlier, epsilon, found)
                earlier = epsilon, found


def _rises(
    table: Table, method: str, earlier: tuple[float, Scores], epsilon: float, found: Scores
) -> Iterator[Result]:
    """How much the errors of boosted trees rise from one epsilon to the next."""
    for learner in ("boosted", "boosted, middles"):
        now, then = ([each.error for each in scores[learner]] for scores in (found, earlier[1]))
        measure = f"{learner}, rise from {earlier[0]:g}"
        yield _difference("adult", table, method, epsilon, measure, now, then)


def _difference(
    task: str,
    table: Table,
    method: str,
    epsilon: float,
    measure: str,
    mine: Sequence[float],
    theirs: Sequence[float],
    *,
    higher_is_better: bool = False,
) -> Result:
    """Paired difference over the folds; the target is within two of its standard errors of 0."""
    differences = [a - b for a, b in zip(mine, theirs, strict=True)]
    n = len(differences)
    room = 2 * statistics.stdev(differences) / n**0.5 if n > 1 else 0.0
    bar = -room if higher_is_better else room
    return result_of(
        task, table, method, epsilon, measure, differences, bar, higher_is_better=higher_is_better
    )


def label(options: Options) -> Iterator[Result]:
    """Mean of three learners, beside the majority label, PrivPfC and class histograms."""
    for table in options.of_tables(_LABELLED):
        guess = [each.error for each in _scores(table, options.folds, lambda t, s: majority(t))]
        yield result_of("label", table, "majority", 0.0, "error", guess)
        for epsilon in options.of_epsilon((0.1, 0.3, 1.0, 8.0)):
            references = _references(table, epsilon, options.folds)
            for name, scores in references.items():
                yield from _both("label", table, name, epsilon, scores)
            grid, bayes = references["PrivPfC"], references["naive Bayes"]
            for method in options.methods:
                found = _of_release(method, list(LEARNERS), table, epsilon, options.folds)
                if found is None:
                    continue
                scores = _mean(found)
                yield from _both("label", table, method, epsilon, scores)
                measured = "label", table, method, epsilon
                errors = [each.error for each in scores]
                yield _difference(*measured, "error over majority", errors, guess)
                yield _difference(
                    *measured, "error over PrivPfC", errors, [each.error for each in grid]
                )
                yield _difference(
                    *measured,
                    "boosted AUC over naive Bayes",
                    [each.auc for each in found["boosted"]],
                    [each.auc for each in bayes],
                    higher_is_better=True,
                )


def _references(table: Table, epsilon: float, most: int | None) -> dict[str, list[Score]]:
    """Scores of PrivPfC (mean of the learners) and of the naive Bayes, for every fold."""
    grids: Scores = {}
    for learner in LEARNERS:
        # The learners share the noise, as they share a release.
        grids[learner] = _scores(table, most, lambda t, s, k=learner: privpfc(k, t, epsilon, s))
    return {
        "PrivPfC": _mean(grids),
        "naive Bayes": _scores(table, most, lambda t, s: naive_bayes(t, epsilon, s)),
    }


def _scores(table: Table, most: int | None, fit: Callable[..., object]) -> list[Score]:
    parts = enumerate(folds(table, most))
    return [score(fit(train, seed), test) for seed, (train, test) in parts]


def _mean(found: Scores) -> list[Score]:
    """Mean over the learners, for every fold."""
    stacked = np.mean([list(scores) for scores in found.values()], axis=0)
    return [Score(*each) for each in stacked.tolist()]


def _both(
    task: str, table: Table, method: str, epsilon: float, scores: Sequence[Score]
) -> Iterator[Result]:
    errors, aucs = [each.error for each in scores], [each.auc for each in scores]
    yield result_of(task, table, method, epsilon, "error", errors)
    yield result_of(task, table, method, epsilon, "AUC", aucs, higher_is_better=True)
