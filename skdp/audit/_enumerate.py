"""Exact output distributions on tiny domains, for differences that sampling would miss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .._types import FloatArray

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

    Examples
    --------
    >>> from fractions import Fraction
    >>> from skdp.audit import exact_epsilon
    >>> def randomised_response(answer):
    ...     return {answer: Fraction(3, 4), not answer: Fraction(1, 4)}
    >>> round(exact_epsilon(randomised_response, True, False), 6)  # log(3)
    1.098612
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

    Examples
    --------
    Two coins:

    >>> from fractions import Fraction
    >>> from skdp.audit import enumerate_law
    >>> coin = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    >>> enumerate_law(lambda choose: choose(coin) + choose(coin))[1]
    Fraction(1, 2)
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


def geometric_law(ratio: Any, size: int, *, two_sided: bool = False) -> dict[int, Any]:
    """Geometric noise clamped at ``size``: the remaining mass is put on the last values.

    A program that only compares noise with numbers below ``size`` cannot distinguish it from
    clamped noise, so that the distribution of its output is exact.

    Parameters
    ----------
    ratio : Fraction or float
        ``exp(-epsilon / sensitivity)``: each value is that much less likely than the one before.
    size : int
        Largest value listed separately.
    two_sided : bool, default=False
        The discrete Laplace distribution instead of the one-sided one.
    """
    if not two_sided:
        law = {k: (1 - ratio) * ratio**k for k in range(size)}
        law[size] = ratio**size
        return law
    law = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-size + 1, size)}
    law[size] = law[-size] = ratio**size / (1 + ratio)
    return law


def sparse_vector_probability(
    pattern: Sequence[bool],
    answers: Sequence[float],
    threshold_scale: float,
    query_scale: float,
    *,
    threshold: float = 0.0,
    released_below: float | None = None,
) -> float:
    """Probability that a sparse vector mechanism with Laplace noise answers with ``pattern``.

    Every answer plus noise of scale ``query_scale`` is compared with the threshold plus one noise
    of scale ``threshold_scale``.

    Parameters
    ----------
    pattern : sequence of bool
        True for above. Later answers are ignored.
    answers : sequence of float
    threshold_scale, query_scale : float
        Scales of the Laplace noise; a query scale of 0 is no noise.
    threshold : float, default=0
    released_below : float, optional
        Also require that the last answer, which is above in the pattern, is released with its noise
        and is at most this.

    Returns
    -------
    float
        By Gauss-Legendre integration over the threshold's noise, between the kinks of the
        integrand; the error is about 1e-13 relative.
    """
    answers = [float(answer) - threshold for answer in answers[: len(pattern)]]
    kinks = {0.0, *answers}
    if released_below is not None:
        kinks.add(released_below - threshold)
    nodes, weights = _pieces(sorted(kinks), threshold_scale, query_scale)
    value = np.exp(-np.abs(nodes) / threshold_scale) / (2 * threshold_scale)
    groups: dict[tuple[bool, float], int] = {}
    last = len(pattern) - 1 if released_below is not None else len(pattern)
    for above, answer in itertools.islice(zip(pattern, answers, strict=True), last):
        groups[bool(above), answer] = groups.get((bool(above), answer), 0) + 1
    for (above, answer), times in groups.items():
        value = value * _exceeds(nodes - answer, query_scale, above) ** times
    if released_below is not None:
        top = released_below - threshold - answers[-1]
        value = value * np.maximum(
            _exceeds(nodes - answers[-1], query_scale, True)
            - _exceeds(np.array([top]), query_scale, True),
            0,
        )
    return float(weights @ value)


def _exceeds(level: FloatArray, scale: float, above: bool) -> FloatArray:
    """P(noise >= level), or of the complement."""
    if not scale:
        return ((level <= 0) == above).astype(float)
    level = level if above else -level
    small = np.exp(-np.abs(level) / scale) / 2
    return np.where(level > 0, small, 1 - small)


def _pieces(kinks: Sequence[float], *scales: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre quadrature between the kinks and far beyond them."""
    widest, finest = max(scales), min(scale for scale in scales if scale)
    edges = [kinks[0] - 60 * widest, *kinks, kinks[-1] + 60 * widest]
    x, w = np.polynomial.legendre.leggauss(40)
    nodes, weights = [], []
    for low, high in itertools.pairwise(edges):
        cells = max(1, math.ceil((high - low) / (2 * finest)))
        bounds = np.linspace(low, high, cells + 1)
        for left, right in itertools.pairwise(bounds):
            half = (right - left) / 2
            nodes.append(left + half * (x + 1))
            weights.append(half * w)
    return np.concatenate(nodes), np.concatenate(weights)


def sparse_vector_law(
    answers: Sequence[float],
    threshold_scale: float,
    query_scale: float,
    *,
    cutoff: int | None = None,
    threshold: float = 0.0,
) -> dict[tuple[bool, ...], float]:
    """Distribution of all answer patterns of a sparse vector mechanism with Laplace noise.

    Parameters
    ----------
    answers, threshold_scale, query_scale, threshold
        As in `sparse_vector_probability`.
    cutoff : int, optional
        The pattern ends at this many answers above; None never stops.

    Returns
    -------
    dict from tuples of bool to float
    """
    return {
        pattern: sparse_vector_probability(
            pattern, answers, threshold_scale, query_scale, threshold=threshold
        )
        for pattern in _patterns(len(answers), cutoff)
    }


def _patterns(n: int, cutoff: int | None) -> Iterator[tuple[bool, ...]]:
    todo: list[tuple[bool, ...]] = [()]
    while todo:
        pattern = todo.pop()
        if len(pattern) == n or (cutoff is not None and sum(pattern) >= cutoff):
            yield pattern
        else:
            todo += [(*pattern, True), (*pattern, False)]
