"""Maximal sets of parents: those to which nothing can be added while tables stay small enough.

A parent is an attribute at one of its levels. Which sets are candidates depends on public sizes, on
what was selected before and on public coins; never on counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

__all__ = ["Candidates", "Parents", "every_maximal"]

# Attributes with the number of their level, ascending by attribute.
Parents = tuple[tuple[int, int], ...]

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
        self._listed: dict[int, list[Parents] | None] = {}

    def within(self, limit: int, most: int) -> list[Parents]:
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

    def _drawn(self, limit: int, most: int) -> list[Parents]:
        """Different sets, drawn at random."""
        found: dict[Parents, None] = {}
        for _ in range(_TRIES * most):
            found[self.draw(limit)] = None
            if len(found) == most:
                break
        return list(found)

    def draw(self, limit: int) -> Parents:
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


def every_maximal(
    sizes: Sequence[Sequence[int]], axes: Sequence[int], child: int, limit: int
) -> list[list[int]] | None:
    """A child and its maximal sets of parents, all of them at their coarsest; None: too many.

    The attributes of any set that fits, whatever its levels, are among those of one of these.
    """
    found = _all({axis: sizes[axis][-1:] for axis in axes if axis != child}, limit)
    return None if found is None else [[child, *dict(parents)] for parents in found]


def _all(sizes: Mapping[int, Sequence[int]], limit: int) -> list[Parents] | None:
    fitting = list(itertools.islice(_fitting(sorted(sizes), sizes, limit), _LISTED + 1))
    if len(fitting) > _LISTED:
        return None
    return [parents for parents in fitting if _is_maximal(parents, sizes, limit)]


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
