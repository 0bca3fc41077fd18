"""The cases of an audit of the library, registered by name in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..mechanisms import (
    SparseVector,
    above_threshold,
    bounded_sum,
    choose_buckets,
    discrete_laplace,
    exponential,
    geometric,
    noisy_max,
    permute_and_flip,
    select_on_line,
    sparse_counts,
    sparse_vector_top_k,
    top_k,
)
from ..preprocessing import private_quantiles
from ..release import BoxModel, Synopsis
from ..selection import most_frequent_items


@dataclass(frozen=True)
class AuditCase:
    """What to audit, and how thoroughly.

    Attributes
    ----------
    mechanism : callable or estimator
    dataset, neighbour : object
    epsilon : number, optional
        The claim; None takes the estimator's.
    n_trials : int
        Trials on each data set in a full run.
    options : mapping
        Further arguments of `audit`.
    replays : bool
        Whether it can be replayed; False for bare noise, which a replay cannot follow.
    """

    mechanism: Any
    dataset: Any
    neighbour: Any
    epsilon: Any = None
    n_trials: int = 5_000
    options: Mapping[str, Any] = field(default_factory=dict)
    replays: bool = True

    @property
    def quick_trials(self) -> int:
        """Trials on each data set in a quick run: a tenth, and at least 300."""
        return max(self.n_trials // 10, 300)


#: Name of a mechanism or estimator, perhaps followed by a comma and a variant, to a function that
#: makes its case when it is run.
AUDITS: dict[str, Callable[[], AuditCase]] = {}


def audited(name: str) -> Callable[[Callable[[], AuditCase]], Callable[[], AuditCase]]:
    """Register a function that makes an `AuditCase` in `AUDITS`.

    Parameters
    ----------
    name : str
        The public name of the mechanism or class, optionally followed by a comma and a variant.
    """

    def enter(make: Callable[[], AuditCase]) -> Callable[[], AuditCase]:
        if name in AUDITS:
            raise ValueError(f"There is an audit of {name!r} already.")
        AUDITS[name] = make
        return make

    return enter


def synopsis_features(estimator: Any) -> Any:
    """Everything that a released synopsis of a tiny domain would keep in a file.

    For blocks, their geometry as text and the count of each cell, so that releases with different
    blocks can be compared; for other models, all facts and numbers.

    Parameters
    ----------
    estimator : fitted estimator with a ``synopsis_``
    """
    synopsis = estimator.synopsis_
    facts, arrays = synopsis.model.to_arrays()
    if not {"lower", "upper"} <= arrays.keys():
        return facts, arrays
    numbers = {"counts", "measured"}
    others = [
        arrays[name].tolist() for name in sorted(arrays.keys() - numbers - {"lower", "upper"})
    ]
    text = f"{arrays['lower'].tolist()} to {arrays['upper'].tolist()} {others}"
    views = [
        Synopsis(
            synopsis.domain, BoxModel(synopsis.model.boxes, arrays[name], synopsis.domain.shape)
        )
        .view(list(synopsis.domain.names))
        .ravel()
        for name in sorted(numbers & arrays.keys())
    ]
    return text.replace(" ", ""), np.concatenate(views)


def enter(cases: dict[str, AuditCase]) -> None:
    """Register cases by name; see `audited`."""
    for name, case in cases.items():
        audited(name)(partial(replace, case))


# --- audit cases of the mechanisms: noise, selections, and sparse vectors

# The second score is low enough that its probability changes by nearly the whole factor.
_SCORES, _NEXT_SCORES = [3, 0], [4, 0]
_ANSWERS = {"relation": "answers"}


def _at_once(
    mechanism: Callable[[Any, int], Any], data: Any, neighbour: Any, **options: Any
) -> AuditCase:
    """Case of a mechanism on arrays, which draws a million trials at once."""
    options = {"vectorised": True, **options}
    return AuditCase(mechanism, data, neighbour, 1.0, 1_000_000, options)


def _largest(scores: list[int], n: int) -> Any:
    return np.argmax(np.add(scores, geometric((n, len(scores)), 1.0)), axis=1)


def _noisy_max(scores: list[int], n: int) -> Any:
    starts = np.arange(n) * len(scores)
    return noisy_max(np.tile(scores, n), 1.0, 1, starts=starts) - starts


enter(
    {
        "discrete_laplace": _at_once(
            lambda count, n: discrete_laplace(np.full(n, count), 1.0), 0, 1
        ),
        "above_threshold": _at_once(
            lambda count, n: above_threshold(np.full(n, count), 1.0, 0), 0, 1
        ),
        # One-sided noise protects where the largest of several noisy scores is reported.
        "geometric": replace(_at_once(_largest, _SCORES, _NEXT_SCORES), replays=False),
        "noisy_max": _at_once(_noisy_max, _SCORES, _NEXT_SCORES),
    }
)


@audited("choose_buckets")
def _() -> AuditCase:
    # Costs of counts 1, 1, 0, 0 and of one record more in the first bin: the costs of the buckets
    # that hold it rise by one, and that of [1, 3) does not change.
    def mechanism(costs: list[int]) -> Any:
        return str(choose_buckets(np.split(costs, [4, 7]), 4, 1.0, 1).tolist())

    data = np.array([0, 0, 0, 0, 0, 1, 0, 2]), np.array([0, 0, 0, 0, 1, 1, 0, 3])
    return AuditCase(mechanism, *data, 1.0, 200_000, _ANSWERS)


def _selecting(
    select: Callable[[list[int]], Any],
    scores: Sequence[int] = _SCORES,
    after: Sequence[int] = _NEXT_SCORES,
    n_trials: int = 200_000,
) -> AuditCase:
    return AuditCase(select, list(scores), list(after), 1.0, n_trials)


enter(
    {
        "exponential": _selecting(lambda scores: exponential(scores, 1.0, 1)),
        "permute_and_flip": _selecting(lambda scores: permute_and_flip(scores, 1.0, 1)),
        "select_on_line": _selecting(lambda scores: select_on_line([0, 2], scores, 4, 1.0, 1)),
        "bounded_sum": AuditCase(
            lambda records: bounded_sum(records, -1, 2, 1.0, resolution=0.5),
            np.array([0.5, 1.0]),
            np.array([0.5, 1.0, 2.0]),
            1.0,
            100_000,
            {"relation": "records"},
        ),
        # The two best scores move, the others stay: their chance of selection changes by e.
        "top_k": _selecting(lambda scores: top_k(scores, 2, 1.0, 1), [4, 4, 0, 0], [5, 5, 0, 0]),
    }
)


@audited("sparse_counts")
def _() -> AuditCase:
    # The record more is alone in its cell.
    def mechanism(cells: Any) -> Any:
        found, noisy = sparse_counts(cells, np.ones(len(cells), dtype=int), (2, 2), 1.0, 1)
        return found.tolist(), noisy.tolist()

    return AuditCase(
        mechanism,
        np.array([[0, 1], [0, 1]]),
        np.array([[0, 1], [0, 1], [1, 0]]),
        1.0,
        n_trials=50_000,
        options={"relation": "records"},
    )


# Streams of queries just below the threshold, then one just above it: together the negative answers
# reveal the most, and they cost the most if the noise of the threshold does not cover them.


def _stream(data: Any, neighbour: Any, *given: Any, shown: Any = None, **more: Any) -> AuditCase:
    """Case of a sparse vector: its answers, or what ``shown`` reads of it after them."""

    def mechanism(answers: list[Any]) -> Any:
        vector = SparseVector(1.0, *given, **more)
        said = vector.query_many(answers).tolist()
        return said if shown is None else shown(vector)

    options = {"relation": "answers", "sensitivity": more.get("sensitivity", 1)}
    return AuditCase(mechanism, data, neighbour, 1.0, 50_000, options)


enter(
    {
        "SparseVector": _stream(
            [0] * 8 + [3], [1] * 8 + [2], 3, 1, shown=lambda v: (v.positives.tolist(), v.gap)
        ),
        "sparse_vector_top_k": AuditCase(
            lambda answers: sparse_vector_top_k(
                answers, 1, 1.0, 4, monotonic=True, max_passes=3
            ).tolist(),
            [0] * 4 + [4],
            [1] * 4 + [4],
            1.0,
            50_000,
            _ANSWERS,
        ),
    }
)


def _frequent_items(k: int, bound: int, last: list[str], shown: Callable[[Any], Any]) -> AuditCase:
    """Case in which one person more has the items of ``last``."""

    def mechanism(baskets: list[list[str]]) -> Any:
        return shown(most_frequent_items(baskets, k, ["a", "b", "c"], epsilon=1.0, max_items=bound))

    baskets = [["a"], ["a"], ["a", "b"], ["b"]]
    return AuditCase(mechanism, baskets, [*baskets, last], 1.0, 20_000, {"relation": "records"})


def _quantile_case(
    last: int, quantiles: Any, domain: Any, shown: Callable[[Any], Any]
) -> AuditCase:
    """Case of the only records, on a line of few integers, so that outputs are frequent."""

    def mechanism(values: list[int]) -> Any:
        return shown(private_quantiles(values, quantiles, epsilon=1.0, domain=domain, step=1))

    options = {"relation": "records"}
    return AuditCase(mechanism, [4, 4, 4], [4, 4, 4, last], 1.0, 50_000, options)


enter(
    {
        # One person has the rare item c.
        "most_frequent_items": _frequent_items(
            2, 2, ["b", "c"], lambda found: (tuple(found["item"]), tuple(found["count"]))
        ),
        "private_quantiles": _quantile_case(9, 0.5, (0, 9), lambda found: int(found.values[0])),
    }
)
