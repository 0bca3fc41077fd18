"""Publishing without consistency: every cuboid is summed from its one best source."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..._types import FloatArray
from .lattices import Lattice, dimensions_of
from .variances import best_sources

__all__ = ["derive"]


def derive(
    cube: Lattice, tables: Mapping[int, NDArray], noise: FloatArray
) -> dict[int, FloatArray]:
    """Sum every published cuboid from its one best source; cuboids need not agree.

    Parameters
    ----------
    cube : Lattice
    tables : mapping of int to ndarray
        Noisy table of each measured cuboid.
    noise : ndarray of float64, shape (m,)
        Variance of the noise in each cell of a measured cuboid, inf for those not measured.

    Returns
    -------
    dict of int to ndarray of float64
        The published cuboids that lie below a measured one.
    """
    _, source = best_sources(cube, noise)
    return {
        mask: _sum_to(tables[int(cube.masks[source[place]])], int(cube.masks[source[place]]), mask)
        for mask, place in cube.position.items()
        if cube.published[place] and source[place] >= 0
    }


def _sum_to(table: NDArray, mask: int, target: int) -> FloatArray:
    """Sum a table over the dimensions of ``mask`` that ``target`` lacks."""
    axes = tuple(
        axis for axis, dimension in enumerate(dimensions_of(mask)) if not target >> dimension & 1
    )
    return np.asarray(table.sum(axis=axes), dtype=np.float64)
