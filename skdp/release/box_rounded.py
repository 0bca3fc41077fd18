"""Codes spread evenly inside boxes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._types import CodeArray, FloatArray, IntArray
from .draws import draw_in_ranges
from .strata import places

__all__ = ["spread_evenly"]


def spread_evenly(
    lower: CodeArray,
    upper: CodeArray,
    counts: IntArray,
    weights: Mapping[int, FloatArray],
    generator: np.random.Generator,
) -> CodeArray:
    """Codes inside boxes, those of each axis spread evenly; box after box.

    The records of a box divide each of its sides into as many equal parts as there are records, and
    each part has one of them. Which ones come together differs from box to box, at random.

    Parameters
    ----------
    lower, upper : ndarray of int32, shape (n_boxes, n_attributes)
        First codes, and codes after the last.
    counts : ndarray of int, shape (n_boxes,)
        Number of records in each box, at least 1.
    weights : mapping of int to ndarray
        Codes of these attributes are spread in proportion to the weights.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (sum of counts, n_attributes)
    """
    number = int(counts.sum())
    codes = np.empty((number, lower.shape[1]), dtype=np.int32, order="F")
    of_box = np.repeat(np.arange(len(counts)), counts)
    for axis in range(codes.shape[1]):
        first, stop = lower[:, axis].astype(np.int64), upper[:, axis].astype(np.int64)
        if (stop == first + 1).all():
            codes[:, axis] = first[of_box]
            continue
        place = places(counts, generator.random(len(counts)), generator)
        u = (place + generator.random(number)) / counts[of_box]
        if axis in weights:
            codes[:, axis] = draw_in_ranges(weights[axis], first[of_box], stop[of_box], u)
        else:
            drawn = first[of_box] + np.floor(u * (stop - first)[of_box]).astype(np.int64)
            codes[:, axis] = np.minimum(drawn, (stop - 1)[of_box])
    return codes
