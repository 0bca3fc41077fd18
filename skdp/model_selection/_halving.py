"""Successive halving with epsilon as the resource: many cheap fits first, one good fit last."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sklearn.base import clone

from .._pipelines import price, walk
from .._validation import as_epsilon

__all__ = ["halving_price", "scaled", "sizes_of_rounds"]


def sizes_of_rounds(n_candidates: int) -> list[int]:
    """How many candidates each round fits: half as many each time, and one in the last."""
    sizes = [n_candidates]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    return sizes


def halving_price(prices: list[Fraction]) -> Fraction:
    """What the fits of all rounds cost at most, if a fit at full epsilon costs ``prices``.

    Each round spends twice the epsilon per candidate of the round before. Which candidates are
    left is not known beforehand, so the most expensive ones are assumed.
    """
    dearest = sorted(prices, reverse=True)
    sizes = sizes_of_rounds(len(prices))
    return sum(
        (
            sum(dearest[:size], Fraction(0)) / 2 ** (len(sizes) - 1 - turn)
            for turn, size in enumerate(sizes)
        ),
        Fraction(0),
    )


def scaled(estimator: Any, share: Fraction) -> Any:
    """A clone whose fit spends ``share`` times as much.

    Raises
    ------
    ValueError
        If its price is not proportional to the epsilons of its steps.
    """
    twin = clone(estimator)
    for step in walk(twin):
        if step.epsilon and "epsilon" in getattr(step.estimator, "get_params", dict)():
            step.estimator.set_params(epsilon=as_epsilon(step.estimator.epsilon) * share)
    before, after = price(estimator), price(twin)
    if before is None or after != before * share:
        raise ValueError(
            f"What {type(estimator).__name__} spends cannot be scaled by its steps' epsilon, "
            'which strategy="halving" needs: take another strategy.'
        )
    return twin
