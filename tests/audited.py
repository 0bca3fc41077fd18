"""Cases of audits: mechanisms, estimators that `skdp.audit` replays, and scores and searches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from skdp import HDPViewSynthesizer, PrivateClassifier, mechanisms, most_frequent_items
from skdp.audit import REPLAYS, audit
from skdp.audit._replay import PLANE, PLANE_ROWS
from skdp.model_selection import PrivateGridSearchCV, private_score
from skdp.preprocessing import private_quantiles
from skdp.quality import quality_report


@dataclass(frozen=True)
class AuditCase:
    """What to audit, and in how many trials on each data set."""

    mechanism: Any
    dataset: Any
    neighbour: Any
    epsilon: Any = None
    n_trials: int = 5_000
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, name, confidence):
        given = {"confidence": confidence, "name": name, **self.options}
        pair = self.dataset, self.neighbour
        return audit(self.mechanism, *pair, self.epsilon, self.n_trials, **given)


def last_gone(mechanism, data, n_trials):
    less = tuple(part[:-1] for part in data) if isinstance(data, tuple) else data[:-1]
    return AuditCase(mechanism, data, less, 1.0, n_trials)


# --- mechanisms: noise, selections, and sparse vectors


def at_once(mechanism, data, neighbour):
    """Case of a mechanism on arrays, which draws a million trials at once."""
    return AuditCase(mechanism, data, neighbour, 1.0, 1_000_000, {"vectorised": True})


def selecting(select, data=(3, 0), neighbour=(4, 0)):
    """Case of a selection: the second score's probability changes by nearly the whole factor."""
    return AuditCase(select, list(data), list(neighbour), 1.0, 200_000)


def many_noisy_max(scores, n):
    starts = np.arange(n) * len(scores)
    return mechanisms.noisy_max(np.tile(scores, n), 1.0, 1, starts=starts) - starts


def buckets(costs):
    return str(mechanisms.choose_buckets(np.split(costs, [4, 7]), 4, 1.0, 1).tolist())


def counted_cells(cells):
    found, noisy = mechanisms.sparse_counts(cells, np.ones(len(cells), dtype=int), (2, 2), 1.0, 1)
    return found.tolist(), noisy.tolist()


def stream(answers):
    vector = mechanisms.SparseVector(1.0, 3, 1)
    vector.query_many(answers)
    return vector.positives.tolist(), vector.gaps.tolist()


def items(baskets):
    found = most_frequent_items(baskets, 2, ["a", "b", "c"], epsilon=1.0, max_items=2)
    return tuple(found["item"]), tuple(found["count"])


BASKETS = [["a"], ["a"], ["a", "b"], ["b"]]

MECHANISMS = {
    "discrete_laplace": at_once(
        lambda count, n: mechanisms.discrete_laplace(np.full(n, count), 1.0), 0, 1
    ),
    "randomised_response": at_once(
        lambda code, n: mechanisms.randomised_response(np.full(n, code), 2, 1.0), 0, 1
    ),
    "above_threshold": at_once(
        lambda count, n: mechanisms.above_threshold(np.full(n, count), 1.0, 0), 0, 1
    ),
    # One-sided noise protects where the largest of several noisy scores is reported.
    "geometric": AuditCase(
        lambda scores, n: np.argmax(np.add(scores, mechanisms.geometric((n, 2), 1.0)), axis=1),
        [3, 0], [4, 0], 1.0, 1_000_000, {"vectorised": True},
    ),
    "noisy_max": at_once(many_noisy_max, [3, 0], [4, 0]),
    # Costs of counts 1, 1, 0, 0 and of one record more in the first bin: the costs of the buckets
    # that hold it rise by one, and that of [1, 3) does not change.
    "choose_buckets": AuditCase(
        buckets, np.array([0, 0, 0, 0, 0, 1, 0, 2]), np.array([0, 0, 0, 0, 1, 1, 0, 3]), 1.0,
        200_000,
    ),
    "exponential": selecting(lambda scores: mechanisms.exponential(scores, 1.0, 1)),
    "permute_and_flip": selecting(lambda scores: mechanisms.permute_and_flip(scores, 1.0, 1)),
    "select_on_line": selecting(
        lambda scores: mechanisms.select_on_line([0, 2], scores, 4, 1.0, 1)
    ),
    "bounded_sum": AuditCase(
        lambda records: mechanisms.bounded_sum(records, -1, 2, 1.0, resolution=0.5),
        np.array([0.5, 1.0]), np.array([0.5, 1.0, 2.0]), 1.0, 100_000,
    ),
    # The two best scores move, the others stay: their chance of selection changes by e.
    "top_k": selecting(
        lambda scores: mechanisms.top_k(scores, 2, 1.0, 1), (4, 4, 0, 0), (5, 5, 0, 0)
    ),
    # The record more is alone in its cell.
    "sparse_counts": AuditCase(
        counted_cells, np.array([[0, 1], [0, 1]]), np.array([[0, 1], [0, 1], [1, 0]]), 1.0, 50_000,
    ),
    # Answers just below the threshold, then one just above it: together the negative ones reveal
    # the most, and they cost the most if the noise of the threshold does not cover them.
    "SparseVector": AuditCase(
        stream, [0] * 8 + [3], [1] * 8 + [2], 1.0, 50_000
    ),
    "sparse_vector_top_k": AuditCase(
        lambda answers: mechanisms.sparse_vector_top_k(
            answers, 1, 1.0, 4, monotonic=True, max_passes=3
        ).tolist(),
        [0] * 4 + [4], [1] * 4 + [4], 1.0, 50_000,
    ),
    # One person has the rare item c.
    "most_frequent_items": AuditCase(
        items, BASKETS, [*BASKETS, ["b", "c"]], 1.0, 20_000
    ),
    "private_quantiles": AuditCase(
        lambda values: int(
            private_quantiles(values, 0.5, epsilon=1.0, domain=(0, 9), step=1).values[0]
        ),
        [4, 4, 4], [4, 4, 4, 9], 1.0, 50_000,
    ),
}  # fmt: skip


# --- scores and searches


def searched():
    # The candidates predict one label each if the release has both labels, so only the choice
    # between them varies.
    search = PrivateGridSearchCV(
        PrivateClassifier(
            DecisionTreeClassifier(max_depth=1),
            HDPViewSynthesizer(epsilon=0.2, domain=PLANE, target="s"),
        ),
        {"estimator__class_weight": [{"a": 1e9, "b": 1}, {"a": 1, "b": 1e9}]},
        epsilon=1.0,
    )
    data = pd.DataFrame({"x": [1.5] * 78}), pd.Series(["a"] * 37 + ["b"] * 41)
    less = tuple(part[:-1] for part in data)
    options = {"features": lambda fitted: fitted.best_index_}
    return AuditCase(search, data, less, 1.2, 1_500, options)


def accuracy(data):
    truth, guess = data
    result = private_score(truth, guess, "accuracy", epsilon=1.0)
    return result.value, result.lower, result.upper


def quality(records):
    found = quality_report(records, PLANE_ROWS[:1], domain=PLANE, epsilon=1.0)
    return [table.iloc[:, 1:].to_numpy(float) for table in (found.scores, found.columns)]


# The record that is removed was predicted wrongly, by the whole range.
GUESSED = np.array([0, 1, 0, 1, 0]), np.array([0, 1, 0, 1, 1])
SCORES = {
    "PrivateGridSearchCV": searched(),
    "private_score, accuracy": last_gone(accuracy, GUESSED, 20_000),
    # Most records lie far from the synthetic rows, as does the one that is removed.
    "quality_report": last_gone(
        quality, PLANE_ROWS.iloc[[0, *[3] * 7]].reset_index(drop=True), 3_000
    ),
}

# Name of a mechanism or estimator, perhaps followed by a comma and a variant.
FEWER = {"MarginalSynthesizer": 2_000, "PrivateClassifier": 4_000, "PrivateRegressor": 2_000}
ESTIMATORS = {name: AuditCase(*case, 1.0, FEWER.get(name, 5_000)) for name, case in REPLAYS.items()}
ALL_AUDITS = {**ESTIMATORS, **MECHANISMS, **SCORES}
