"""Maximal sets of parents: those to which nothing can be added while tables stay small enough.

A parent is an attribute at one of its levels. Which sets are candidates depends on public sizes, on
what was selected before and on public coins; never on counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

__all__ = ["Parents", "maximal_parents"]

# Attributes with the number of their level, ascending by attribute.
Parents = tuple[tuple[int, int], ...]

# Up to this many sets are listed; beyond, sets are drawn.
_LISTED = 1000
# Draws for each set that is wanted, before fewer are accepted.
_TRIES = 4


def maximal_parents(
    sizes: Mapping[int, Sequence[int]], limit: int, most: int, generator: np.random.Generator
) -> list[Parents]:
    """Sets of parents whose number of combinations is at most ``limit``, and that are maximal.

    A set is maximal if neither can a further attribute be added nor one be taken at a finer level.

    Parameters
    ----------
    sizes : mapping of int to sequence of int
        For each possible parent the number of groups of its levels, the finest first.
    limit : int
    most : int
        If there are more sets, so many are drawn.
    generator : numpy.random.Generator
        Public coins.

    Returns
    -------
    list of Parents
        At least one: the empty set, if no attribute fits.

    Examples
    --------
    >>> sizes = {0: [2], 1: [3], 2: [4, 2]}
    >>> maximal_parents(sizes, 6, 10, np.random.default_rng(0))
    [((0, 0), (1, 0)), ((0, 0), (2, 1)), ((1, 0), (2, 1)), ((2, 0),)]
    """
    listed = []
    for parents in _fitting(sorted(sizes), sizes, limit):
        listed.append(parents)
        if len(listed) > _LISTED:
            return _drawn(sizes, limit, most, generator)
    found = [parents for parents in listed if _is_maximal(parents, sizes, limit)]
    if len(found) > most:
        chosen = generator.choice(len(found), size=most, replace=False)
        found = [found[place] for place in sorted(chosen)]
    return found


def _fitting(
    axes: Sequence[int], sizes: Mapping[int, Sequence[int]], limit: int
) -> Iterator[Parents]:
    """All sets that fit."""
    yield ()
    for place, axis in enumerate(axes):
        for level, size in enumerate(sizes[axis]):
            if size <= limit:
                for parents in _fitting(axes[place + 1 :], sizes, limit // size):
                    yield ((axis, level), *parents)


def _is_maximal(parents: Parents, sizes: Mapping[int, Sequence[int]], limit: int) -> bool:
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


def _drawn(
    sizes: Mapping[int, Sequence[int]], limit: int, most: int, generator: np.random.Generator
) -> list[Parents]:
    """Different maximal sets, drawn at random."""
    found: dict[Parents, None] = {}
    for _ in range(_TRIES * most):
        found[_draw(sizes, limit, generator)] = None
        if len(found) == most:
            break
    return list(found)


def _draw(
    sizes: Mapping[int, Sequence[int]], limit: int, generator: np.random.Generator
) -> Parents:
    """One maximal set: attributes in random order at random levels, then as fine as they fit."""
    order = generator.permutation(sorted(sizes)).tolist()
    levels: dict[int, int] = {}
    cells = 1
    for axis in order:
        fits = [level for level, size in enumerate(sizes[axis]) if cells * size <= limit]
        if fits:
            levels[axis] = fits[int(generator.integers(len(fits)))]
            cells *= sizes[axis][levels[axis]]
    for axis, level in levels.items():
        others = cells // sizes[axis][level]
        levels[axis] = next(k for k, size in enumerate(sizes[axis]) if others * size <= limit)
        cells = others * sizes[axis][levels[axis]]
    return tuple(sorted(levels.items()))
