"""A prior: public rows, or those of an earlier release, that synthetic rows start from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._validation import CodeArray, FloatArray
from .groups import TUNING

__all__ = ["Prior", "nearer_to"]

# Privacy. Nothing here costs anything: the prior is public or was charged when it was released, and
# it is compared with released numbers alone. Tables and their noise are those of a release without
# a prior; only which sets are chosen, and which rows agree with the tables, follow from it.


class Prior(NamedTuple):
    """Weighted rows.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
        Codes.
    weights : ndarray of float64, shape (n_rows,)
        Shares of the records; they add up to 1.
    worth : float
        Number of independent records that tell as much.
    name : str
        What the release says of it: kind and fingerprint.
    """

    rows: CodeArray
    weights: FloatArray
    worth: float
    name: str

    @classmethod
    def of(cls, codes: CodeArray, kind: str) -> Prior:
        """Rows that are all different, from codes of at least one record."""
        rows, counts = np.unique(codes, axis=0, return_counts=True)
        coded = np.column_stack([rows, counts]).astype("<i8")
        name = f"{kind}, SHA-256 {hashlib.sha256(coded.tobytes()).hexdigest()}"
        return cls(rows.astype(np.int32), counts / len(codes), float(len(codes)), name)


def nearer_to(
    second: Sequence[FloatArray],
    first: Sequence[FloatArray],
    noisy: Sequence[FloatArray],
    variances: Sequence[float],
) -> bool:
    """Whether released tables are clearly nearer to the second of two models.

    The squared distances of each cell are compared, in units of the variance of its noise and of a
    sample: twice the log likelihood ratio, whose standard deviation is known.

    Parameters
    ----------
    second, first : sequence of ndarray of float64
        Expected counts.
    noisy : sequence of ndarray of float64
    variances : sequence of float
        Of the noise of a cell of each table.
    """
    nearer = doubt = 0.0
    for two, one, told, variance in zip(second, first, noisy, variances, strict=True):
        spread = variance + (one + two) / 2
        nearer += float((((told - one) ** 2 - (told - two) ** 2) / spread).sum())
        doubt += float((4 * (two - one) ** 2 / spread).sum())
    return nearer > TUNING.clear * math.sqrt(doubt)
