"""From rows to counts: code each record, keep a few rows of each person, count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._random import NoiseSource
from .._types import CodeArray
from ..domain import Domain
from .coded import CodedRows
from .counts import Counts, CountTable, ProjectedCounts
from .frames import Frame
from .lazy import LazyRows

__all__ = ["Contributions", "MOST_AT_ONCE", "code_rows", "count_rows"]

# An engine returns the whole table for domains of at most this many cells, all of which may be
# occupied: one gigabyte.
MOST_AT_ONCE = 2**24


# Cells requested at a time from larger domains.
_BLOCK_CELLS = 2**20


class _Cover:
    """Answers requests for two attributes from a few requests for many, and remembers answers.

    The attributes are put into groups of few cells; each request covers all attributes of two
    groups, so that all pairs take few passes over the rows. The groups follow from the shape.

    Parameters
    ----------
    rows : CodedRows
    together : sequence of int
        Attributes that are part of every request.
    """

    def __init__(self, rows: CodedRows, together: Sequence[int] = ()) -> None:
        self._rows = rows
        self._together = tuple(together)
        self._known: dict[tuple[int, ...], CountTable] = {}
        room = _BLOCK_CELLS // math.prod(rows.shape[axis] for axis in self._together)
        most = math.isqrt(max(room, 1))
        self._groups: list[list[int]] = []
        cells: list[int] = []
        others = [axis for axis in range(len(rows.shape)) if axis not in self._together]
        for axis in sorted(others, key=lambda axis: -rows.shape[axis]):
            size = rows.shape[axis]
            fits = (place for place, held in enumerate(cells) if held * size <= most)
            place = next(fits, len(cells))
            if place == len(cells):
                self._groups.append([])
                cells.append(1)
            self._groups[place].append(axis)
            cells[place] *= size

    def __call__(self, axes: tuple[int, ...]) -> CountTable:
        """Counts by some attributes."""
        asked = tuple(sorted({*axes, *self._together}))
        if asked not in self._known:
            if len(asked) - len(self._together) <= 2:
                self._ask_block(asked)
            else:
                self._known[asked] = self._count(asked)
        return self._known[asked].project([asked.index(axis) for axis in axes])

    def _ask_block(self, asked: tuple[int, ...]) -> None:
        places = [
            place for place, group in enumerate(self._groups) if not set(group).isdisjoint(asked)
        ]
        if len(places) < 2:
            # One group is requested together with another, whose pairs with it will be needed too.
            first = places[0] if places else 0
            places = [first, (first + 1) % len(self._groups)]
        members = sorted({axis for place in places for axis in self._groups[place]})
        whole = tuple(sorted({*members, *self._together}))
        table = self._count(whole)
        for size in range(3):
            for chosen in itertools.combinations(members, size):
                known = tuple(sorted({*chosen, *self._together}))
                if known not in self._known:
                    self._known[known] = table.project([whole.index(axis) for axis in known])

    def _count(self, axes: tuple[int, ...]) -> CountTable:
        codes, counts = self._rows.count(axes)
        return CountTable.from_codes(codes, [self._rows.shape[axis] for axis in axes], counts)


@dataclass(frozen=True)
class Contributions:
    """A bound on what one person contributes.

    Attributes
    ----------
    unit : str
        Column that identifies the person a row belongs to.
    most : int
        How many rows of a person are kept.
    source : NoiseSource
        Randomness that decides which rows are kept: fresh random words, or a fresh hash key where
        an engine holds the rows.
    """

    unit: str
    most: int
    source: NoiseSource


def code_rows(
    rows: Frame | LazyRows, domain: Domain, contributions: Contributions | None = None
) -> CodeArray | CodedRows:
    """Code the rows that the domain can represent, and keep a few of each person.

    Parameters
    ----------
    rows : Frame or LazyRows
        Whose schema was checked: with the columns of the domain, and the unit of
        ``contributions``.
    domain : Domain
    contributions : Contributions, default=None
        None keeps all rows.

    Returns
    -------
    codes : ndarray of int32, shape (n, d), or CodedRows
        In memory rows with a negative code are dropped where contributions are bounded, else
        they are left for the reader to drop; in an engine they never count.
    """
    # Privacy. Which rows of a person are kept is decided by that person's own rows and by coins
    # or a key that are drawn without looking at any row. So, whatever the coins, a person more
    # with any number of rows adds at most `most` rows to what is counted and takes none away:
    # `most` steps between neighbours in records. What loses epsilon / most for each record loses
    # epsilon for the person.
    bound = contributions
    if isinstance(rows, LazyRows):
        if bound is None:
            return rows.select(domain.names).coded(domain)
        key = int(bound.source.words(1)[0])
        used = rows.select([*domain.names, bound.unit])
        return used.coded(domain, unit=bound.unit, most=bound.most, key=key)
    codes = domain.encode_columns(rows.select(domain.names))
    if bound is None:
        return codes
    owners = rows.column(bound.unit).identities()
    known = np.flatnonzero((codes >= 0).all(axis=1) & (owners >= 0))
    coins = bound.source.record_words(len(known), codes[known], owners[known])
    order = known[np.lexsort((coins, owners[known]))]
    ordered = owners[order]
    place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return codes[np.sort(order[place < bound.most])]


def count_rows(
    rows: Frame | LazyRows,
    domain: Domain,
    contributions: Contributions | None = None,
    *,
    together: Sequence[int] | None = None,
) -> Counts:
    """Count the distinct coded rows, in memory or in the engine that holds the rows.

    Parameters
    ----------
    rows : Frame or LazyRows
        Whose schema was checked: with the columns of the domain, and the unit of
        ``contributions``.
    domain : Domain
    contributions : Contributions, default=None
        A bound on the rows of each person.
    together : sequence of int, default=None
        For algorithms that need projections only: attributes that most of the projections contain,
        or an empty list. Where an engine holds the rows and the domain has more than 2**24 cells,
        projections are then requested one by one, so that memory is bounded whatever the rows are.
        The choice depends on the domain alone. None: the whole table is returned.

    Raises
    ------
    EngineError
        If an engine fails; the text does not depend on values.
    """
    coded = code_rows(rows, domain, contributions)
    if isinstance(coded, CodedRows):
        if together is not None and domain.size > MOST_AT_ONCE:
            return ProjectedCounts(_Cover(coded, together), domain.shape)
        codes, counts = coded.count(range(len(domain)))
        return CountTable.from_codes(codes, domain.shape, counts)
    return CountTable.from_codes(coded, domain.shape)
