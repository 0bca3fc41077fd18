"""Sparse vector and top k against the best methods of the literature, on item frequencies.

Repeats tables 5.3 to 5.6 of D. Su's dissertation (Purdue, 2016) on three lists of frequencies:
score error rate (SER, the share of the score of the true top c that is missed) and false negative
rate (FNR), over 100 runs, each in a new random order. As there, the threshold is the mean of the
c-th and the next frequency. The dissertation's methods (SVT-DPBook, SVT-S, SVT-ReTr, EM) are those
of `skdp.mechanisms`.

SER is defined as in the dissertation: one minus the mean score of the selected items divided by
the mean score of the true top c. It favours a method that selects few items. So there is a third
measure, "loss", in which every item short of c counts as a score of zero; for exactly c items the
two are the same.

``python -m benchmarks.reproduce --figure svt_table_5_3`` (to 5_6) shows all of it, ``python -m
benchmarks.numbers --measure selecting`` what the pages quote.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import _data
from skdp._random import NoiseSource, noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.mechanisms import SparseVector, sparse_vector_top_k, top_k
from skdp.mechanisms.sparse_vector import false_negative_rate, score_error_rate

SIZES = (25, 50, 100, 150, 200, 300)

# Limit of retraversals: a raised threshold is passed rarely.
PASSES = 10**6

Ints = NDArray[np.int64]


class Task:
    """One run: the frequencies in a new order, and the number of items to find."""

    def __init__(self, sorted_counts: Ints, c: int, epsilon: float, seed: int) -> None:
        # Largest first; an item is one of the top c if its rank is below c.
        self.rng = np.random.default_rng([seed, c, round(1000 * epsilon)])
        self.ranks = self.rng.permutation(len(sorted_counts))
        self.counts = sorted_counts[self.ranks]
        self.c, self.epsilon = c, epsilon
        self.threshold = float(sorted_counts[c - 1 : c + 1].mean())
        self.best = sorted_counts[:c]

    def errors(self, chosen: Ints) -> tuple[float, float, float]:
        """SER, FNR and loss."""
        ser = score_error_rate(self.counts, chosen, self.c)
        # By rank: of equal frequencies one is among the best.
        missed = false_negative_rate(-self.ranks, chosen, self.c)
        return ser, missed, 1 - self.counts[chosen].sum() / self.best.sum()


Select = Callable[[Task, NoiseSource], Ints]

# The dissertation's methods, as the library has them: with discrete noise, drawn exactly


def sparse(
    variant: str = "standard", ratio: Callable[[int], float] = lambda c: 1, monotonic: bool = True
) -> Select:
    """A stream, with epsilon split 1 : ratio (Algorithm 23, SVT-S, for monotonic queries)."""

    def select(task: Task, source: NoiseSource) -> Ints:
        vector = SparseVector(
            task.epsilon,
            task.threshold,
            task.c,
            monotonic=monotonic,
            ratio=ratio(task.c),
            variant=variant,
            noise="two-sided",
            random_state=source,
        )
        vector.query_many(task.counts)
        return vector.positives

    return select


def retraversal(raised: float) -> Select:
    """SVT with retraversal: Algorithm 23 at 1 : c**(2/3), threshold raised, until c are found.

    1D is "one standard deviation of the added noises" in one place of the dissertation and "the
    scale factor of the Laplace noise injected to each query" in another. Its tables fit the latter.
    """

    def select(task: Task, source: NoiseSource) -> Ints:
        scale = task.c * (1 + task.c ** (-2 / 3)) / task.epsilon
        return sparse_vector_top_k(
            task.counts,
            task.c,
            task.epsilon,
            task.threshold + raised * scale,
            monotonic=True,
            ratio=task.c ** (2 / 3),
            noise="two-sided",
            max_passes=PASSES,
            random_state=source,
        )

    return select


def exponential(task: Task, source: NoiseSource) -> Ints:
    """EM c times in sequence."""
    return top_k(task.counts, task.c, task.epsilon, 1, method="peeling", random_state=source)


PAPER_INTERACTIVE: dict[str, Select] = {
    # Algorithm 18 has no version for monotonic queries.
    "DPBook": sparse("dwork-roth", monotonic=False),
    "S 1:1": sparse(),
    "S 1:3": sparse(ratio=lambda c: 3),
    "S 1:c": sparse(ratio=lambda c: c),
    "S 1:c^2/3": sparse(ratio=lambda c: c ** (2 / 3)),
}
PAPER_OFFLINE: dict[str, Select] = {
    **{f"ReTr {raised}D": retraversal(raised) for raised in (1, 2, 3, 4, 5)},
    "EM": exponential,
}


# Ours


def ours_interactive(task: Task, source: NoiseSource) -> Ints:
    """One-sided noise, and the length of the stream as a public guess.

    The threshold gets a little more of epsilon than by default. Its noise is common to all queries,
    so it makes the number of positives vary, and a stream that stops early misses large items.
    """
    vector = SparseVector(
        task.epsilon,
        task.threshold,
        task.c,
        monotonic=True,
        ratio=0.6 * task.c ** (2 / 3),
        expected_queries=len(task.counts),
        random_state=source,
    )
    vector.query_many(task.counts)
    return vector.positives


def ours_offline(task: Task, source: NoiseSource) -> Ints:
    """One round of geometric noise."""
    return top_k(task.counts, task.c, task.epsilon, 1, random_state=source)


OURS_INTERACTIVE: dict[str, Select] = {"ours": ours_interactive}
OURS_OFFLINE: dict[str, Select] = {"ours": ours_offline}
SETTINGS = {
    "interactive": (PAPER_INTERACTIVE, OURS_INTERACTIVE),
    "non-interactive": (PAPER_OFFLINE, OURS_OFFLINE),
}
MEASURES = ("ser", "fnr", "loss")


def frequencies(name: str) -> Ints:
    """Frequencies of a set, largest first.

    "kosarak" is its head as if it went on like that: as many transactions and items as
    the dissertation has, 990,002 and 41,270.
    """
    if name != "kosarak":
        return np.sort(_data.item_frequencies(name))[::-1]
    head = np.rint(frequencies("kosarak_head") * (990_002 / 36_683)).astype(np.int64)
    return np.pad(head, (0, max(0, 41_270 - len(head))))


def measure(name: str, epsilon: float, c: int, runs: int, first_seed: int = 0) -> dict[str, Any]:
    """Mean and standard deviation of the measures, {setting: {method: {measure: (m, sd)}}}."""
    counts = frequencies(name)
    figures: dict[str, dict[str, list[tuple[float, float, float]]]] = {
        setting: {method: [] for methods in pair for method in methods}
        for setting, pair in SETTINGS.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        source = noise_source(1000 * c + round(1000 * epsilon) + first_seed)
    for seed in range(first_seed, first_seed + runs):
        task = Task(counts, c, epsilon, seed)
        for setting, (paper, ours) in SETTINGS.items():
            for method, select in (paper | ours).items():
                figures[setting][method].append(task.errors(select(task, source)))
    return {
        setting: {
            method: {
                measure: (statistics.fmean(values), statistics.stdev(values))
                for measure, values in zip(MEASURES, zip(*rows, strict=True), strict=True)
            }
            for method, rows in methods.items()
        }
        for setting, methods in figures.items()
    }
