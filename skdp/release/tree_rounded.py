"""Records of a tree of pairs with rounded counts: column by column, within the parent's codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._types import CodeArray, IntArray
from .balance import swap_codes
from .rounding import round_line, round_lines, round_table
from .strata import GOLDEN, deal, share_of, sort_within
from .tree_density import TreeDensity

__all__ = ["round_tree"]

# Columns that a column is balanced against: as many as their rows allow, within these limits.
_PARTNERS = (2, 16)
_PARTNER_ROWS = 1 << 22
# Swaps looked at in a pass, at most: for a column, and for all columns. Where there are many rows,
# errors are relatively small anyway.
_SWAPS = (1 << 14, 1 << 18)
# Cells of their common table, at most.
_CELLS = 1 << 18


def round_tree(density: TreeDensity, n_samples: int, generator: np.random.Generator) -> CodeArray:
    """Records whose counts are the expected ones, rounded; in random order.

    The codes of a root are rounded along a line, those of every other attribute as a table within
    the codes of its parent. There they are dealt evenly along an order of the attributes drawn
    before, and then swapped so that counts of pairs with some of these come near the expected ones.

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
    rows: IntArray = generator.permutation(n_samples)
    sorted_by, last = -1, -1
    swaps = min(_SWAPS[0], _SWAPS[1] // len(density.order))
    for node in density.order:
        parent = int(density.parent[node])
        if group and parent == sorted_by:
            # Nor may the children of an attribute be dealt along the same order.
            rows = sort_within(rows, group[last])
        stratum = group[parent] if parent >= 0 else None
        if stratum is not None:
            rows, sorted_by = sort_within(rows, stratum), parent
        line, sizes = _rounded(density, node, stratum, n_samples, generator)
        drawn = np.empty(n_samples, dtype=np.int32)
        drawn[rows] = deal(line, sizes, share_of(len(group)), generator)
        partners = _partners(density, node, [*group], n_samples)
        expected = [n_samples * density.pair(other, node) for other in partners]
        swap_codes(drawn, rows, stratum, [group[other] for other in partners], expected, swaps)
        group[node], last = drawn, node
        if node in density.groups:
            codes[sort_within(rows, drawn), node] = _inside(density, node, drawn, generator)
        else:
            codes[:, node] = drawn
    return codes


def _rounded(
    density: TreeDensity,
    node: int,
    stratum: NDArray[np.int32] | None,
    n_samples: int,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int32], IntArray]:
    """Groups of an attribute within each group of its parent, sorted, and the sizes of these."""
    conditional = density.conditional[node]
    if conditional is None or stratum is None:
        counts = round_line(density.grouped[node], n_samples, generator)[None]
        sizes = np.array([n_samples])
    else:
        sizes = np.bincount(stratum, minlength=len(conditional))
        counts = round_table(conditional * sizes[:, None], sizes, generator)
    groups = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
    return np.repeat(groups, counts.ravel()), sizes


def _partners(density: TreeDensity, node: int, drawn: list[int], n_samples: int) -> list[int]:
    """Attributes drawn before, the last ones, without the parent and those of large tables."""
    least, most = _PARTNERS
    number = min(max(_PARTNER_ROWS // max(n_samples, 1), least), most)
    size = density.sizes[node]
    fit = [
        other
        for other in drawn
        if other != density.parent[node] and 1 < density.sizes[other] * size <= _CELLS
    ]
    return fit[-number:] if size > 1 else []


def _inside(
    density: TreeDensity, axis: int, group: NDArray[np.int32], generator: np.random.Generator
) -> NDArray[np.int32]:
    """Codes inside the groups, for rows sorted by group."""
    groups, mass = density.groups[axis], density.marginals[axis]
    listed = np.argsort(groups, kind="stable")
    inside = np.where(density.grouped[axis][groups] > 0, mass, 1.0)[listed]
    sizes = np.bincount(group, minlength=density.sizes[axis])
    lengths = np.bincount(groups, minlength=density.sizes[axis])
    counts = round_lines(inside, lengths, sizes, generator)
    return deal(np.repeat(listed.astype(np.int32), counts), sizes, GOLDEN, generator)
