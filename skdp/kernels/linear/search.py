"""PrivLocal: each round moves one weight by a step, chosen with noise (Algorithm 8)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray, IntArray
from ...mechanisms import noisy_max
from ..additive import UNIT, Identity, Logit, Records
from .design import Design, LinearModel, Objective, objectives

__all__ = ["fit_local_search"]

# Records times epsilon for each round, and how many rounds there are at least and at most.
_SIGNAL, _LEAST, _MOST = 400.0, 8, 120
# The first step and the last. Both lines were chosen on generated tables.
_FIRST, _LAST = 0.4, 0.05


def fit_local_search(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
    loss: str,
) -> LinearModel:
    """Start at weights of 0, and move one weight a round by a step that shrinks.

    Parameters
    ----------
    records : Records
    design : Design
    link : Logit or Identity
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    loss : str
        One of `LOSSES`. With more than two classes, each is told from the others at an equal share.
    """
    # Privacy. Released: one winner each round, given the released number of records. One
    # record changes the scores of all candidates of a round by its losses there. Its candidates
    # move its score by at most one step up or down, so these changes lie in an interval of the
    # length that `Objective.spread` reads off the public table of losses. Rounds compose.
    goals = objectives(link, loss)
    each = epsilon / len(goals)
    rounds = int(np.clip(max(total, 0.0) * float(each) / _SIGNAL, _LEAST, _MOST))
    steps = np.rint(np.geomspace(_FIRST, _LAST, rounds) * UNIT).astype(np.int64).tolist()
    weights = np.zeros((len(goals), 1 + design.n_features), dtype=np.int64)
    for goal, row in zip(goals, weights, strict=True):
        scores = np.zeros(len(records.counts), dtype=np.int64)
        for step in steps:
            gains = _gains(records, design, goal, scores, step)
            reach = goal.spread(2 * step)
            winner = int(noisy_max(gains, each / rounds, reach, random_state=random_state))
            place, move = winner // 2, (1 - 2 * (winner % 2)) * step
            row[place] += move
            scores += move * _feature(records, design, place)
    coef = weights[:, 1:] / UNIT
    return LinearModel(weights[:, 0] / UNIT, coef, np.full_like(coef, np.nan))


def _gains(
    records: Records, design: Design, goal: Objective, scores: IntArray, step: int
) -> IntArray:
    """By how much each candidate lowers the sum of losses: each weight one step up, one down."""
    before = goal.at(scores, records.labels)

    def lowered(moves: Any) -> FloatArray:
        """By how much moves of the scores lower the losses of all records of each kind."""
        return (before - goal.at(scores + moves, records.labels)) * records.counts

    moved = [lowered(move * UNIT) for move in (step, -step)]
    found = [np.array([[each.sum() for each in moved]])]
    for axis, column in enumerate(design.columns):
        groups = records.groups[:, axis]
        if column.free:
            sums = [np.bincount(groups, each, minlength=len(column.values)) for each in moved]
            found.append(np.stack(sums, axis=1))
            continue
        for values in column.units().T:
            features = values[groups]
            both = [lowered(move * features).sum() for move in (step, -step)]
            found.append(np.array([both]))
    return np.concatenate(found).ravel().astype(np.int64)


def _feature(records: Records, design: Design, place: int) -> Any:
    """The feature at a place among the constant and all features, in units."""
    if place == 0:
        return UNIT
    for axis, values in _features(design):
        place -= 1
        if place == 0:
            return values[records.groups[:, axis]]
    raise IndexError(place)


def _features(design: Design) -> Iterator[tuple[int, IntArray]]:
    for axis, column in enumerate(design.columns):
        for values in column.units().T:
            yield axis, values
