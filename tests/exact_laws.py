"""Exact output distributions on tiny domains, for differences that sampling would miss."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from skdp._random import NoiseSource

Law = Mapping[Hashable, Any]


class ExactEpsilon(float):
    """The privacy loss of one pair of inputs: a float that remembers where it is attained.

    Attributes
    ----------
    outcome : hashable
        An outcome with the largest ratio of probabilities.
    probabilities : tuple of two numbers
        Its probabilities on the data set and the neighbour.
    """

    outcome: Hashable
    probabilities: tuple[Any, Any]

    def __new__(
        cls, value: float, outcome: Hashable, probabilities: tuple[Any, Any]
    ) -> ExactEpsilon:
        self = super().__new__(cls, value)
        self.outcome = outcome
        self.probabilities = probabilities
        return self

    def __repr__(self) -> str:
        here, there = map(float, self.probabilities)
        return (
            f"ExactEpsilon({float(self):.6g}, outcome={self.outcome!r}, "
            f"probabilities {here:.6g} and {there:.6g})"
        )


def exact_epsilon(
    law: Callable[[Any], Law], dataset: Any, neighbour: Any, *, tail: float = 0.0
) -> ExactEpsilon:
    """Privacy loss of a known output distribution on one pair of inputs, without sampling.

    Parameters
    ----------
    law : callable
        ``law(data)`` maps each possible outcome to its probability. With fractions the result is
        exact up to the last logarithm.
    dataset, neighbour : object
    tail : float, default=0
        Probability that each distribution may leave out (for example, of an infinite support). The
        outcomes left out are not compared.

    Returns
    -------
    ExactEpsilon
        The largest ``|log(P(o) / P'(o))|`` over outcomes; infinite if one outcome is possible on
        one side only. An epsilon-DP mechanism has at most epsilon for every pair of neighbours.

    Raises
    ------
    ValueError
        If the probabilities are negative or do not sum to one (within ``tail``).
    """
    laws = [_checked(law(data), tail) for data in (dataset, neighbour)]
    worst: tuple[float, Hashable, tuple[Any, Any]] = (0.0, None, (1, 1))
    for outcome in laws[0].keys() | laws[1].keys():
        here, there = (table.get(outcome, 0) for table in laws)
        if here == there:
            continue
        if not here or not there:
            loss = math.inf
        elif isinstance(here, Fraction) and isinstance(there, Fraction):
            # Numerator and denominator may be too large for a float.
            ratio = here / there
            loss = abs(math.log(ratio.numerator) - math.log(ratio.denominator))
        else:
            loss = abs(math.log(here) - math.log(there))
        if loss > worst[0]:
            worst = (loss, outcome, (here, there))
    return ExactEpsilon(*worst)


def _checked(law: Law, tail: float) -> dict[Hashable, Any]:
    total = sum(law.values())
    if any(probability < 0 for probability in law.values()):
        raise ValueError("A probability of the law is negative.")
    slack = 0 if isinstance(total, Fraction | int) and not tail else 1e-9
    if not 1 - tail - slack <= total <= 1 + slack:
        raise ValueError(
            f"The law's probabilities sum to {float(total):.12g}, not to 1; if outcomes of small "
            "probability are left out on purpose, say how much with tail=."
        )
    return {outcome: probability for outcome, probability in law.items() if probability}


def enumerate_law(program: Callable[..., Hashable], *args: Any) -> dict[Hashable, Any]:
    """Output distribution of a randomised program, by running it for every sequence of choices.

    Parameters
    ----------
    program : callable
        ``program(choose, *args)`` returns a hashable. It makes each random choice by
        ``choose(law)``, which returns an outcome of ``law``, a mapping from outcomes to
        probabilities; otherwise it must be deterministic.
    *args
        Passed on.

    Returns
    -------
    dict
        From outcomes of the program to probabilities.
    """
    result: dict[Hashable, Any] = {}
    todo: list[tuple[int, ...]] = [()]
    while todo:
        prefix = todo.pop()
        path: list[int] = []
        weight: Any = 1

        def choose(law: Law, prefix: tuple[int, ...] = prefix, path: list[int] = path) -> Hashable:
            nonlocal weight
            outcomes = [outcome for outcome, probability in law.items() if probability]
            place = len(path)
            if place < len(prefix):
                taken = prefix[place]
            else:
                # A new choice: take its first outcome now and leave the others for later.
                taken = 0
                todo.extend((*path, other) for other in range(1, len(outcomes)))
            path.append(taken)
            weight = weight * law[outcomes[taken]]
            return outcomes[taken]

        outcome = program(choose, *args)
        result[outcome] = result.get(outcome, 0) + weight
    return result


def law_of_permute_and_flip(scores, r):
    pass_ = [r ** (max(scores) - q) for q in scores]
    law = []
    for i in range(len(scores)):
        passed = [1]  # law of the number of others that pass
        for j, p in enumerate(pass_):
            if j != i:
                passed = [
                    (1 - p) * a + p * b for a, b in zip([*passed, 0], [0, *passed], strict=True)
                ]
        law.append(pass_[i] * sum(Fraction(1, m + 1) * a for m, a in enumerate(passed)))
    return dict(enumerate(law))


def fit(seen, law):
    outcomes = sorted(law)
    assert set(seen) <= set(outcomes)
    size = sum(seen.values())
    expected = np.array([float(law[o]) for o in outcomes]) * size
    counts = np.array([seen.get(o, 0) for o in outcomes])
    keep = expected > 20
    counts = np.append(counts[keep], counts[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] < 20:
        counts[-2] += counts[-1]
        expected[-2] += expected[-1]
        counts, expected = counts[:-1], expected[:-1]
    return stats.chisquare(counts, expected * size / expected.sum()).pvalue


class ScriptedSource(NoiseSource):
    """Hands out the given words, and counts those asked for."""

    def __init__(self, words):
        super().__init__()
        self.script = [int(word) for word in words]
        self.taken = 0

    def _take(self, count):
        self.taken += count
        words, self.script = self.script[:count], self.script[count:]
        assert len(words) == count, "the script has run out"
        return np.array(words, dtype=np.uint64)
