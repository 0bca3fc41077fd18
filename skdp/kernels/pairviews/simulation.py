"""Records drawn from a release of one or two attributes, to simulate its errors."""

from __future__ import annotations

import math

import numpy as np

from ..._random import NoiseSource, sampling_generator
from ...release import TreeModel
from ...rows import CountTable
from .budget import used_attributes

__all__ = ["draw_records"]

# Largest number of records drawn one by one, and of cells for drawing counts: at most 300 MB.
MOST_ROWS_DRAWN = 1 << 22
MOST_CELLS_DRAWN = 1 << 23


def draw_records(model: TreeModel, source: NoiseSource) -> CountTable | None:
    """As many records as a released model of one or two attributes holds, drawn from it.

    Up to `MOST_ROWS_DRAWN` rows are drawn one by one, more as a count for each cell, which has the
    same distribution; None if there are too many cells for that too. So memory is bounded for any
    total. The choice depends on released numbers only.
    """
    generator = sampling_generator(source)
    number = max(round(model.total), 0)
    if number <= MOST_ROWS_DRAWN:
        return CountTable.from_codes(model.sample_codes(number, generator), model.shape)
    axes = used_attributes(model.shape) or [0]
    shape = [model.shape[axis] for axis in axes]
    if math.prod(shape) > MOST_CELLS_DRAWN:
        return None
    weights = np.maximum(model.view(axes).ravel(), 0.0)
    counts = generator.multinomial(number, weights / weights.sum())
    cells = np.flatnonzero(counts)
    codes = np.zeros((len(cells), len(model.shape)), dtype=np.int32)
    codes[:, axes] = np.stack(np.unravel_index(cells, shape), axis=1)
    return CountTable.from_codes(codes, model.shape, counts[cells])
