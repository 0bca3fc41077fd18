"""The network: attribute by attribute, each with the parents that tell most about it.

GreedyBayes of the PrivBayes paper, with maximal sets of parents (theta-usefulness). The first
attribute is a public coin; each further one is selected with its parents by a noisy maximum, which
loses about half as much as the paper's exponential mechanism at the same price.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..._random import NoiseSource
from ..._types import IntArray
from ...mechanisms import noisy_max
from ...rows import Counts, ProjectedCounts
from .scores import Score

__all__ = ["Candidates", "Levels", "Node", "exact_counts", "learn_network"]

# --- maximal sets of parents: those to which nothing can be added while tables stay small enough
#
# A parent is an attribute at one of its levels. Which sets are candidates depends on public
# sizes, on what was selected before and on public coins; never on counts.

# Attributes with the number of their level, ascending by attribute.
_Parents = tuple[tuple[int, int], ...]

# Up to this many sets are listed; beyond, sets are drawn.
_LISTED = 1000
# Draws for each set that is wanted, before fewer are accepted.
_TRIES = 4


class Candidates:
    """Maximal sets of parents among some attributes.

    A set is maximal if neither can a further attribute be added nor one be taken at a finer level.

    Parameters
    ----------
    sizes : mapping of int to sequence of int
        For each possible parent the number of groups of its levels, the finest first.
    generator : numpy.random.Generator
        Public coins.

    Examples
    --------
    >>> candidates = Candidates({0: [2], 1: [3], 2: [4, 2]}, np.random.default_rng(0))
    >>> candidates.within(6, most=10)
    [((0, 0), (1, 0)), ((0, 0), (2, 1)), ((1, 0), (2, 1)), ((2, 0),)]
    """

    def __init__(self, sizes: Mapping[int, Sequence[int]], generator: np.random.Generator) -> None:
        self._sizes = sizes
        self._generator = generator
        # All sets for a limit; None: too many to list.
        self._listed: dict[int, list[_Parents] | None] = {}

    def within(self, limit: int, most: int) -> list[_Parents]:
        """Sets with at most ``limit`` combinations; if there are more than ``most``, some of them.

        At least one: the empty set, if no attribute fits.
        """
        if limit not in self._listed:
            self._listed[limit] = _all(self._sizes, limit)
        found = self._listed[limit]
        if found is None:
            return self._drawn(limit, most)
        if len(found) <= most:
            return found
        chosen = self._generator.choice(len(found), size=most, replace=False)
        return [found[place] for place in sorted(chosen)]

    def _drawn(self, limit: int, most: int) -> list[_Parents]:
        """Different sets, drawn at random."""
        found: dict[_Parents, None] = {}
        for _ in range(_TRIES * most):
            found[self.draw(limit)] = None
            if len(found) == most:
                break
        return list(found)

    def draw(self, limit: int) -> _Parents:
        """One set: attributes in random order at random levels, then each as fine as it fits."""
        sizes, generator = self._sizes, self._generator
        levels: dict[int, int] = {}
        cells = 1
        for axis in generator.permutation(sorted(sizes)).tolist():
            fits = [level for level, size in enumerate(sizes[axis]) if cells * size <= limit]
            if fits:
                levels[axis] = fits[int(generator.integers(len(fits)))]
                cells *= sizes[axis][levels[axis]]
        for axis, level in levels.items():
            others = cells // sizes[axis][level]
            levels[axis] = next(k for k, size in enumerate(sizes[axis]) if others * size <= limit)
            cells = others * sizes[axis][levels[axis]]
        return tuple(sorted(levels.items()))


def _every_maximal(
    sizes: Sequence[Sequence[int]], axes: Sequence[int], child: int, limit: int
) -> list[list[int]] | None:
    """A child and its maximal sets of parents, all of them at their coarsest; None: too many.

    The attributes of any set that fits, whatever its levels, are among those of one of these.
    """
    found = _all({axis: sizes[axis][-1:] for axis in axes if axis != child}, limit)
    return None if found is None else [[child, *dict(parents)] for parents in found]


def _all(sizes: Mapping[int, Sequence[int]], limit: int) -> list[_Parents] | None:
    fitting = list(itertools.islice(_fitting(sorted(sizes), sizes, limit), _LISTED + 1))
    if len(fitting) > _LISTED:
        return None
    return [parents for parents in fitting if _is_maximal(parents, sizes, limit)]


def _fitting(
    axes: Sequence[int], sizes: Mapping[int, Sequence[int]], limit: int
) -> Iterator[_Parents]:
    """All sets that fit."""
    yield ()
    for place, axis in enumerate(axes):
        for level, size in enumerate(sizes[axis]):
            if size <= limit:
                for parents in _fitting(axes[place + 1 :], sizes, limit // size):
                    yield ((axis, level), *parents)


def _is_maximal(parents: _Parents, sizes: Mapping[int, Sequence[int]], limit: int) -> bool:
    cells = 1
    for axis, level in parents:
        cells *= sizes[axis][level]
    levels = dict(parents)
    for axis, each in sizes.items():
        if axis not in levels:
            if cells * each[-1] <= limit:
                return False
        elif levels[axis] and cells // each[levels[axis]] * each[levels[axis] - 1] <= limit:
            return False
    return True


# --- attribute by attribute

# For each attribute the group of each code at its levels, the finest first; None for the codes.
Levels = Sequence[Sequence[IntArray | None]]


class Node(NamedTuple):
    """An attribute and its parents."""

    axis: int
    parents: _Parents


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
        sets = [_every_maximal(sizes, axes, axis, limit // table.shape[axis]) for axis in axes]
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
