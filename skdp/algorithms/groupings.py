"""Public ways to merge the codes of an attribute into few groups: what grids and trees choose from.

Nothing here looks at records: groups follow from the declaration alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._validation import IntArray
from ..domain import Attribute, Categorical, Level, Numeric

# Without order or taxonomy, lists of at most this many categories are not halved, and lists of at
# most `_MOST_AGAINST_REST` offer each category against the rest.
_FEW_CATEGORIES = 10
_MOST_AGAINST_REST = 16
# From this many bins on, intervals that grow with the distance from 0 are offered.
_LOG_BINS = 128


def groupings(
    attribute: Attribute, max_groups: int, *, against_rest: bool = False
) -> tuple[tuple[Level, ...], ...]:
    """Public ways to merge codes into 2 to ``max_groups`` groups, for grids.

    Each family is a taxonomy read level by level, nested, from coarse to fine. No partition
    occurs twice. Special values and the missing cell are always groups of their own.

    Parameters
    ----------
    attribute : Attribute
    max_groups : int
    against_rest : bool, default=False
        Whether to add, at the end, each category against all others, for 3 to 16 categories
        without order or taxonomy, and for numbers every division in two at an edge of the
        finest groups.

    Returns
    -------
    families : tuple of tuples of Level
        For numbers: halves, quarters, eighths and so on of the range; with 128 bins or more
        over a range that begins near 0 or below, also intervals that grow with the distance
        from 0. For categories: the levels of the declared taxonomy. Without one, each category
        alone, preceded by halves, quarters and so on of the list as declared if the categories
        are ordered or more than ten.
    """
    families: list[tuple[Level, ...]] = []
    seen: set[bytes] = set()
    of: Any = _of_categories if isinstance(attribute, Categorical) else _of_numbers
    for family in of(attribute, max_groups - attribute.n_alone, against_rest):
        levels = []
        for level in family:
            key = level.groups.tobytes()
            if 2 <= len(level.labels) <= max_groups and key not in seen:
                seen.add(key)
                levels.append(level)
        if levels:
            families.append(tuple(levels))
    return tuple(families)


def _of_categories(attribute: Categorical, limit: int, against_rest: bool) -> Iterator[list[Level]]:
    if attribute.taxonomy is not None:
        yield list(attribute.levels()[1:])
        return
    n, codes = attribute.n_values, np.arange(attribute.n_values, dtype=np.int64)
    if n <= _FEW_CATEGORIES and not attribute.ordered:
        # Neighbours in a short list may have nothing in common.
        yield [attribute.level(codes)]
    else:
        yield [attribute.level(groups) for groups in _halvings(codes, limit)]
    if against_rest and 2 < n <= _MOST_AGAINST_REST and not attribute.ordered:
        for code, category in enumerate(attribute.categories):
            groups = (codes != code).astype(np.int64)
            yield [attribute.level(groups, [str(category), "all others"])]


def _of_numbers(attribute: Numeric, limit: int, against_rest: bool) -> Iterator[list[Level]]:
    codes = np.arange(attribute.bins, dtype=np.int64)
    families = [list(_halvings(codes, limit))]
    crowded = attribute.summable and attribute.upper >= 0
    crowded = crowded and attribute.lower <= attribute.upper / 100
    if attribute.even and crowded and attribute.bins >= _LOG_BINS:
        families.append(list(_octaves(attribute, codes, limit)))
    yield from ([attribute.level(groups) for groups in family] for family in families)
    if against_rest and limit > 1:
        for groups in [family[-1] for family in families if family]:
            for cut in range(1, int(groups[-1]) + 1):
                yield [attribute.level((groups >= cut).astype(np.int64))]


def _halvings(codes: IntArray, limit: int) -> Iterator[IntArray]:
    """Halves, quarters, ... of all codes, as equal as possible; finally each code alone."""
    parts, n = 2, len(codes)
    while parts < n and parts <= limit:
        yield codes * parts // n
        parts *= 2
    if n <= limit:
        yield codes


def _octaves(attribute: Numeric, codes: IntArray, limit: int) -> Iterator[IntArray]:
    """Intervals that grow with the distance from 0."""
    # In a finely divided range from about 0 (or below) to a large number, values often crowd
    # near 0: money, durations. Positions are on a scale that is linear within each octave of
    # the distance from 0 in bins: 0, 1, 2, 4, 8, ... bins away are equally far apart.
    zero = np.clip(np.zeros(1), attribute.lower, attribute.upper)
    away = codes - int(attribute.contents.codes(zero)[0])
    octaves = np.append(0.0, np.exp2(np.arange(32)))
    position = np.interp(np.abs(away), octaves, np.arange(33)) * np.where(away < 0, -1, 1)
    # A left edge belongs to the interval on its right, on both sides of 0.
    span = position[-1] + 1 - position[0]
    for depth in range(1, max(limit, 1).bit_length()):
        groups = np.floor((position - position[0]) / span * 2**depth).astype(np.int64)
        yield np.unique(groups, return_inverse=True)[1].astype(np.int64)
