"""The lattice of cuboids: their sizes, and which of them contain which."""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._validation import BoolArray, FloatArray, IntArray

# --- how large a cube can be planned and held in memory

# A cube of 12 dimensions has 4,096 cuboids; planning compares them pairwise.
MAX_CUBOIDS = 4096
# Largest table that may be measured, and all tables together: 2**26 cells are 512 MiB.
MAX_SOURCE_CELLS = 2**25
MAX_CELLS = 2**26
# A bit mask of dimensions is an int64.
MAX_DIMENSIONS = 62


def _check_extent(sizes: tuple[int, ...], top: int) -> None:
    """Raise ValueError, with the remedies, for a cube that cannot be planned or held.

    ``top``: cuboids with at most this many dimensions are published.
    """
    d = len(sizes)
    # Numbers of cuboids of 0, 1, ... dimensions, and of their cells: the coefficients of the
    # polynomial prod (1 + size x).
    cells = np.ones(1, dtype=object)
    for size in sizes:
        cells = np.convolve(cells, np.array([1, size], dtype=object))
    n_cells = list(itertools.accumulate(cells.tolist()))
    n_cuboids = list(itertools.accumulate(math.comb(d, order) for order in range(d + 1)))

    def possible(order: int) -> bool:
        few = n_cuboids[order] <= MAX_CUBOIDS and n_cells[order] <= MAX_CELLS
        return few and d <= MAX_DIMENSIONS

    if possible(top):
        return
    largest = max(filter(possible, range(1, top)), default=None)
    fewer = "" if largest is None else f"max_order={largest} publishes fewer cuboids; or "
    raise ValueError(
        f"The cube has {n_cuboids[top]:,} cuboids with {n_cells[top]:,} cells; at most "
        f"{MAX_CUBOIDS:,} cuboids, {MAX_CELLS:,} cells and {MAX_DIMENSIONS} dimensions can be "
        f"handled. Remedies: {fewer}choose fewer dimensions; or coarser bins or fewer categories."
    )


# --- the cuboids, and which of them contain which


def dimensions_of(mask: int) -> tuple[int, ...]:
    """Numbers of the dimensions of a cuboid, ascending."""
    found, rest = [], int(mask)
    while rest:
        found.append((rest & -rest).bit_length() - 1)
        rest &= rest - 1
    return tuple(found)


def with_dimension(masks: Iterable[int]) -> dict[int, list[int]]:
    """The cuboids that have each dimension, in their order."""
    found: dict[int, list[int]] = defaultdict(list)
    for mask in masks:
        for i in dimensions_of(mask):
            found[i].append(mask)
    return found


def axis_of(mask: int, dimension: int) -> int:
    """Axis of a dimension in the table of a cuboid."""
    return (mask & ((1 << dimension) - 1)).bit_count()


@dataclass(frozen=True, eq=False)
class Lattice:
    """The cuboids that may be measured or published, with each one all those below it.

    Use :func:`lattice` to build one.

    Attributes
    ----------
    sizes : tuple of int
        Number of values of each dimension.
    masks : ndarray of int64, shape (m,)
        The cuboids, those of fewer dimensions first.
    published : ndarray of bool, shape (m,)
        Which of them are wanted; the others may serve as sources.
    cells : ndarray of float64, shape (m,)
        Number of cells of each.
    freedom : ndarray of float64, shape (m,)
        Product of (size - 1): the dimension of the space of interactions of exactly these
        dimensions. 0 where they are known.
    above : sparse array of shape (m, m)
        1 in row S and column C where S is contained in C. ``above @ x`` sums over the cuboids
        above, ``above.T @ x`` over those below, each including the cuboid itself.
    """

    sizes: tuple[int, ...]
    masks: IntArray
    published: BoolArray
    cells: FloatArray
    freedom: FloatArray
    above: sparse.csr_array

    def __len__(self) -> int:
        return len(self.masks)

    @functools.cached_property
    def position(self) -> dict[int, int]:
        """Position of each mask."""
        return {int(mask): place for place, mask in enumerate(self.masks)}

    @functools.cached_property
    def below(self) -> sparse.csr_array:
        """The transpose of ``above``, by rows."""
        return self.above.T.tocsr()

    def shape(self, mask: int) -> tuple[int, ...]:
        """Shape of the table of a cuboid."""
        return tuple(self.sizes[i] for i in dimensions_of(mask))

    def below_of(self, place: int) -> NDArray[np.intp]:
        """Positions of the cuboids contained in the one at ``place``."""
        rows = self.below
        return rows.indices[rows.indptr[place] : rows.indptr[place + 1]]


@functools.lru_cache(maxsize=8)
def lattice(
    sizes: tuple[int, ...], max_order: int | None = None, known: tuple[int, ...] = ()
) -> Lattice:
    """Build the lattice of the cuboids with at most ``max_order`` dimensions.

    Cuboids of more dimensions are added as possible sources, as long as their tables are small
    enough to be measured and there are at most 4,096 cuboids in all.

    Parameters
    ----------
    sizes : tuple of int
        Number of values of each dimension.
    max_order : int, optional
        Publish cuboids with at most this number of dimensions; all by default.
    known : tuple of int, default=()
        Masks of cuboids that are known without error, and with them all below.

    Raises
    ------
    ValueError
        If there are too many cuboids, or their tables are too large; the message says how large
        and what to do.
    """
    d = len(sizes)
    top = d if max_order is None else min(max_order, d)
    _check_extent(sizes, top)
    masks = _choose_masks(sizes, top)
    array = np.array(masks, dtype=np.int64)
    bits = array[:, None] >> np.arange(d) & 1 if d else np.zeros((1, 0), dtype=np.int64)
    size_row = np.array(sizes, dtype=np.float64)
    cells = np.where(bits, size_row, 1.0).prod(axis=1)
    freedom = np.where(bits, size_row - 1.0, 1.0).prod(axis=1)
    for mask in known:
        freedom[array & ~mask == 0] = 0.0
    return Lattice(sizes, array, bits.sum(axis=1) <= top, cells, freedom, _containment(masks))


def _choose_masks(sizes: tuple[int, ...], top: int) -> list[int]:
    """The cuboids that are published, and larger ones that may be sources."""
    d = len(sizes)
    masks: list[int] = []
    for order in range(d + 1):
        level = (
            [
                sum(1 << i for i in chosen)
                for chosen in itertools.combinations(range(d), order)
                if order <= top or math.prod(sizes[i] for i in chosen) <= MAX_SOURCE_CELLS
            ]
            if math.comb(d, order) <= MAX_CUBOIDS
            else []
        )
        if order > top and (not level or len(masks) + len(level) > MAX_CUBOIDS):
            break
        masks.extend(sorted(level))
    return masks


def _containment(masks: list[int]) -> sparse.csr_array:
    """1 in row S and column C where cuboid S is contained in cuboid C."""
    array = np.array(masks, dtype=np.int64)
    by_value = np.argsort(array)
    ordered = array[by_value]
    rows, columns = [], []
    for place, mask in enumerate(masks):
        below = np.zeros(1, dtype=np.int64)
        for i in dimensions_of(mask):
            below = np.concatenate([below, below | 1 << i])
        rows.append(by_value[np.searchsorted(ordered, below)])
        columns.append(np.full(len(below), place))
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(masks),) * 2)
