"""How large a cube can be planned and held in memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

__all__ = ["MAX_CELLS", "MAX_CUBOIDS", "MAX_SOURCE_CELLS", "check_extent", "format_bytes"]

# A cube of 12 dimensions has 4,096 cuboids; planning compares them pairwise.
MAX_CUBOIDS = 4096
# Largest table that may be measured, and all tables together: 2**26 cells are 512 MiB.
MAX_SOURCE_CELLS = 2**25
MAX_CELLS = 2**26
# A bit mask of dimensions is an int64.
MAX_DIMENSIONS = 62


def check_extent(
    sizes: tuple[int, ...], max_order: int, names: Sequence[str] | None = None
) -> None:
    """Raise ValueError, with the remedies, for a cube that cannot be planned or held.

    Parameters
    ----------
    sizes : tuple of int
        Number of values of each dimension.
    max_order : int
        Cuboids with at most this many dimensions are published.
    names : sequence of str, default=None
        Names of the dimensions, to say which of them to leave out.
    """
    n_cuboids, n_cells = _extents(sizes)
    if _possible(sizes, max_order):
        return
    remedies = []
    largest = max((order for order in range(1, max_order) if _possible(sizes, order)), default=None)
    if largest is not None:
        remedies.append(
            f"publish only cuboids of at most {largest} dimensions, max_order={largest} "
            f"({n_cuboids[largest]:,} cuboids, {n_cells[largest]:,} cells)"
        )
    remedies.append(_fewer(sizes, max_order, names) if names else "choose fewer dimensions")
    remedies.append("use coarser bins or fewer categories")
    raise ValueError(
        f"The cube has {n_cuboids[max_order]:,} cuboids with {n_cells[max_order]:,} cells, which "
        f"take {format_bytes(8 * n_cells[max_order])}; at most {MAX_CUBOIDS:,} cuboids, "
        f"{MAX_CELLS:,} cells ({format_bytes(8 * MAX_CELLS)}) and {MAX_DIMENSIONS} dimensions can "
        f"be handled. Remedies: {'; or '.join(remedies)}."
    )


def _extents(sizes: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Numbers of cuboids and of their cells with at most 0, 1, ... dimensions."""
    d = len(sizes)
    n_cuboids = itertools.accumulate(math.comb(d, order) for order in range(d + 1))
    return list(n_cuboids), list(itertools.accumulate(_cells_by_order(sizes)))


def _possible(sizes: tuple[int, ...], max_order: int) -> bool:
    """Whether the cuboids of at most ``max_order`` dimensions can be planned and held."""
    n_cuboids, n_cells = _extents(sizes)
    top = min(max_order, len(sizes))
    few = n_cuboids[top] <= MAX_CUBOIDS and n_cells[top] <= MAX_CELLS
    return few and len(sizes) <= MAX_DIMENSIONS


def _fewer(sizes: tuple[int, ...], max_order: int, names: Sequence[str]) -> str:
    """Which dimensions to leave out: as few as possible, those with the most values."""
    by_size = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    number = next(
        number
        for number in range(1, len(sizes) + 1)
        if _possible(tuple(sizes[i] for i in sorted(by_size[number:])), max_order)
    )
    listed = [f"{names[i]!r} ({sizes[i]:,} values)" for i in sorted(by_size[:number])]
    if number > 6:
        return f"leave out {number} dimensions, such as {', '.join(listed[:3])}"
    return f"leave out {', '.join(listed)}"


def _cells_by_order(sizes: tuple[int, ...]) -> list[int]:
    """Number of cells of all cuboids with 0, 1, ... dimensions."""
    # The coefficients of the polynomial prod (1 + size x).
    cells = [1] + [0] * len(sizes)
    for done, size in enumerate(sizes):
        for order in range(done + 1, 0, -1):
            cells[order] += size * cells[order - 1]
    return cells


def format_bytes(number: int) -> str:
    """Write a number of bytes with its unit, for messages."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    power = min(len(units) - 1, max(0, (number.bit_length() - 1) // 10))
    value = number / 1024**power
    digits = 0 if value >= 10 or not power else 1
    return f"{value:,.{digits}f} {units[power]}"
