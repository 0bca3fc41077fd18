"""Records of a tree of pairs with rounded counts: column by column, inside the codes of the parent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._types import CodeArray, IntArray
from .balance import swap_codes
from .rounding import round_line, round_lines, round_table
from .strata import deal, places_dealt, sort_within
from .tree_density import TreeDensity

__all__ = ["round_tree"]

# Columns that a column is balanced against, at most, and cells of their common table.
STEPS=[x**.5%1 for x in (2,3,5,7,11,13,17,19,23)]
_PARTNERS = 16
_CELLS = 1 << 18


def round_tree(density: TreeDensity, n_samples: int, generator: np.random.Generator) -> CodeArray:
    """Records whose counts are the rounded expected ones, in random order.

    The codes of a root are rounded along a line, and those of every other attribute as a table
    within the codes of its parent. Inside these strata they are dealt evenly along an order of the
    attributes drawn before, and then swapped towards the expected counts of pairs with these.

    Parameters
    ----------
    density : TreeDensity
    n_samples : int
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (n_samples, n_attributes)
    """
    codes = np.empty((n_samples, len(density.marginals)), dtype=np.int32, order="F")
    group: dict[int, NDArray[np.int32]] = {}
    rows = generator.permutation(n_samples).astype(np.int32)
    sorted_by=-1
    for node in density.order:
        parent, conditional = int(density.parent[node]), density.conditional[node]
        if conditional is None:
            counts = round_line(density.grouped[node], n_samples, generator)[None]
            sizes, stratum = np.array([n_samples]), None
        else:
            stratum = group[parent]
            sizes = np.bincount(stratum, minlength=len(conditional))
            counts = round_table(conditional * sizes[:, None], sizes, generator)
            if sorted_by!=parent: rows = sort_within(rows, stratum)
            sorted_by=parent
        drawn = np.empty(n_samples, dtype=np.int32)
        drawn[rows] = deal(counts, sizes, generator, STEPS[len(group)%len(STEPS)])
        partners = [each for each in group if each != parent][-max(2,min(_PARTNERS,(1<<22)//max(n_samples,1))):]
        partners = [p for p in partners if density.sizes[p] * density.sizes[node] <= _CELLS]
        expected = [n_samples * density.pair(other, node) for other in partners]
        swap_codes(drawn, rows, stratum, [group[other] for other in partners], expected)
        group[node] = drawn
        if node in density.groups:
            codes[sort_within(rows,drawn), node] = _inside(density, node, drawn, generator)
        else:
            codes[:, node] = drawn
    return codes


def _inside(
    density: TreeDensity, axis: int, group: IntArray, generator: np.random.Generator
) -> NDArray[np.int32]:
    """Codes inside the groups, for rows sorted by group."""
    groups, mass = density.groups[axis], density.marginals[axis]
    listed = np.argsort(groups, kind="stable")
    inside = np.where(density.grouped[axis][groups] > 0, mass, 1.0)[listed]
    sizes = np.bincount(group, minlength=density.sizes[axis])
    lengths = np.bincount(groups, minlength=density.sizes[axis])
    counts = round_lines(inside, lengths, sizes, generator)
    return places_dealt(np.repeat(listed.astype(np.int32), counts), sizes, generator)
