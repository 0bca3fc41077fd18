"""The network: attribute by attribute, each with the parents that tell most about it.

GreedyBayes of the PrivBayes paper, with maximal sets of parents (theta-usefulness). The first
attribute is a public coin; each further one is selected with its parents by a noisy maximum, which
loses about half as much as the paper's exponential mechanism at the same price.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..._random import NoiseSource
from ..._types import IntArray
from ...mechanisms import noisy_max
from ...rows import Counts, ProjectedCounts
from .candidates import Candidates, Parents, every_maximal
from .scores import Score

__all__ = ["Levels", "Node", "exact_counts", "learn_network"]

# For each attribute the group of each code at its levels, the finest first; None for the codes.
Levels = Sequence[Sequence[IntArray | None]]


class Node(NamedTuple):
    """An attribute and its parents."""

    axis: int
    parents: Parents


def learn_network(
    table: Counts,
    axes: Sequence[int],
    levels: Levels,
    score: Score,
    epsilon: Fraction,
    limit: int,
    max_candidates: int,
    generator: np.random.Generator,
    source: NoiseSource,
) -> list[Node]:
    """Select the nodes of a network, parents before their children.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    axes : sequence of int
        Attributes of the network.
    levels : Levels
    score : Score
    epsilon : Fraction
        Budget of all selections together.
    limit : int
        Largest number of cells of a table of an attribute and its parents.
    max_candidates : int
        At most so many candidates are scored for each node; if there are more attributes, one for
        each of so many.
    generator : numpy.random.Generator
        Public coins.
    source : NoiseSource
    """
    # Privacy. Released: one attribute and its parents in each of len(axes) - 1 rounds, at an equal
    # share of epsilon each, so that all rounds together cost epsilon. Candidates come from public
    # sizes, a limit that was computed from the released total, public coins, and earlier rounds.
    # The range of each score is proved beside it. A round with one candidate selects nothing.
    sizes = [
        [table.shape[axis] if each is None else int(each.max()) + 1 for each in level]
        for axis, level in enumerate(levels)
    ]
    share = epsilon / max(len(axes) - 1, 1)
    left = list(axes)
    nodes = [Node(left.pop(int(generator.integers(len(left)))), ())]
    scores: dict[Node, int] = {}
    if isinstance(table, ProjectedCounts):
        # All candidates of all rounds are margins of these tables.
        sets = [every_maximal(sizes, axes, axis, limit // table.shape[axis]) for axis in axes]
        if None not in sets:
            table.remember([axes for found in sets for axes in found or ()])
    while left:
        possible = Candidates({node.axis: sizes[node.axis] for node in nodes}, generator)
        asked = left
        if len(left) > max_candidates:
            asked = sorted(generator.choice(left, size=max_candidates, replace=False).tolist())
        candidates = [
            Node(axis, parents)
            for axis in asked
            for parents in possible.within(limit // table.shape[axis], max_candidates // len(asked))
        ]
        winner = 0
        if len(candidates) > 1:
            new = [node for node in candidates if node not in scores]
            scores |= zip(new, map(score, exact_counts(table, new, levels)), strict=True)
            exact = np.array([scores[node] for node in candidates])
            winner = noisy_max(exact, share, score.score_range, random_state=source)
        nodes.append(candidates[winner])
        left.remove(nodes[-1].axis)
    return nodes


def exact_counts(table: Counts, nodes: Sequence[Node], levels: Levels) -> Iterator[IntArray]:
    """Exact and private counts of attributes under their parents' groups, (n_groups, size)."""
    asked = [
        (
            (*(axis for axis, _ in node.parents), node.axis),
            (*(levels[axis][level] for axis, level in node.parents), None),
        )
        for node in nodes
    ]
    for node, counts in zip(nodes, table.regrouped_many(asked), strict=True):
        yield counts.reshape(-1, table.shape[node.axis])
