"""Searches for weights: PrivLocal moves one a round, PrivGene selects among whole populations."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ..._random import sampling_generator
from ..._types import FloatArray, IntArray
from ...mechanisms import noisy_max, top_k
from ..additive import UNIT, Identity, Logit, Records
from .design import Design, LinearModel, Objective, objectives
from .tuning import TUNING

__all__ = ["fit_genetic", "fit_local_search"]

# Records whose losses of all candidates fit into a cache.
_CHUNK = 2**11


# --- PrivLocal: each round moves one weight by a step, chosen with noise (Algorithm 8)


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
    rounds = int(np.clip(max(total, 0.0) * float(each) / TUNING.round, TUNING.least, TUNING.most))
    steps = (
        np.rint(np.geomspace(TUNING.first, TUNING.last, rounds) * UNIT).astype(np.int64).tolist()
    )
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


# --- PrivGene: a population of weights, selected with noise, crossed and mutated (Algorithms 6, 7)


def fit_genetic(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
    loss: str,
    crossover: bool,
) -> LinearModel:
    """Selection, crossover and mutation of whole vectors of weights.

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
    crossover : bool
        Whether two parents swap the ends of their vectors; otherwise children are mutated copies.
    """
    # Privacy. Released: the survivors of each round, given the released number of records. One
    # record changes the scores of all candidates by its losses there. Its scores under any two of
    # them differ by no more than their weights do, which are released, so these changes lie in an
    # interval of the length that `Objective.spread` reads off the public table. Rounds compose.
    goals = objectives(link, loss)
    each = epsilon / len(goals)
    rounds = int(
        np.clip(
            max(total, 0.0) * float(each) / (TUNING.record * TUNING.survivors),
            TUNING.least,
            TUNING.most_genetic,
        )
    )
    # Public coins of the population.
    generator = sampling_generator(random_state)
    found = []
    for goal in goals:
        shape = (TUNING.population, 1 + design.n_features)
        population = _whole(generator.uniform(-1.0, 1.0, shape))
        for number in range(rounds - 1):
            scores, reach = _scores(records, design, goal, population)
            chosen = top_k(
                scores, TUNING.survivors, each / rounds, reach, random_state=random_state
            )
            mutation = TUNING.decay**number
            population = _offspring(population[chosen], crossover, mutation, generator)
        scores, reach = _scores(records, design, goal, population)
        found.append(population[noisy_max(scores, each / rounds, reach, random_state=random_state)])
    weights = np.stack(found) / UNIT
    coef = weights[:, 1:]
    return LinearModel(weights[:, 0], coef, np.full_like(coef, np.nan))


def _whole(weights: Any) -> IntArray:
    return np.rint(weights * UNIT).astype(np.int64)


def _scores(
    records: Records, design: Design, goal: Objective, population: IntArray
) -> tuple[IntArray, int]:
    """Minus the sum of losses of each candidate, and how far one record can spread them."""
    result = np.zeros(len(population))
    weights = population[:, 1:].T.astype(np.float64)
    for block in records.blocks(_CHUNK):
        # Products of matrices of integers are exact in floating point below 2**53, in any order.
        scores = design.sparse_rows(block.groups) @ weights
        scores += population[:, 0].astype(np.float64) * UNIT
        losses = goal.at(scores.astype(np.int64), block.labels)
        result -= block.counts.astype(np.float64) @ losses
    return result.astype(np.int64), goal.spread(_widest(design, population))


def _widest(design: Design, population: IntArray) -> int:
    """Bound of the difference of the scores of any record under any two candidates, in units.

    At most one feature of a column is not zero, and it is at most 1.
    """
    starts = [1 + block.start for block in design.blocks]
    widest = 0
    for one in population:
        apart = np.abs(population - one)
        columns = np.maximum.reduceat(apart, [0, *starts], axis=1)
        widest = max(widest, int(columns.sum(axis=1).max()))
    return widest


def _offspring(
    parents: IntArray, crossover: bool, mutation: float, generator: np.random.Generator
) -> IntArray:
    """A new population: pairs of parents swap their ends, and one weight of each child changes."""
    size = parents.shape[1]
    couples = np.array(
        [generator.permutation(len(parents))[:2] for _ in range(TUNING.population // 2)]
    )
    first, second = parents[couples[:, 0]], parents[couples[:, 1]]
    cut = generator.integers(1, size + 1, size=len(couples)) if crossover else size
    swapped = np.arange(size) >= np.broadcast_to(cut, len(couples))[:, None]
    children = np.concatenate([np.where(swapped, second, first), np.where(swapped, first, second)])
    place = generator.integers(0, size, size=len(children))
    steps = _whole(generator.uniform(-mutation, mutation, size=len(children)))
    children[np.arange(len(children)), place] += steps
    return children
