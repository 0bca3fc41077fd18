"""Boxes: a partition of the domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Boxes", "checked_counts", "frozen", "frozen_int32"]

# --- read-only copies of arrays that a release holds

_MAX_COUNT = 2.0**53


def frozen_int32(values: Any, name: str) -> np.ndarray:
    """A read-only copy of codes."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got the dtype {array.dtype}.")
    if array.size and not 0 <= array.min() <= array.max() <= np.iinfo(np.int32).max:
        raise ValueError(f"{name} must be non-negative and fit into 32 bits.")
    return frozen(array, np.int32)


def frozen(values: Any, dtype: type) -> np.ndarray:
    """A read-only copy."""
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def checked_counts(counts: Any, n_boxes: int) -> np.ndarray:
    """A read-only copy of released counts, one for each box."""
    counts = np.asarray(counts)
    if counts.dtype.kind not in "iuf" or counts.shape != (n_boxes,):
        raise ValueError(
            f"counts must hold one number for each of the {n_boxes} boxes, got the shape "
            f"{counts.shape} and the dtype {counts.dtype}."
        )
    if not (np.abs(counts.astype(np.float64)) <= _MAX_COUNT).all():
        raise ValueError("counts must be finite and at most 2**53 in size.")
    return frozen(counts, np.float64 if counts.dtype.kind == "f" else np.int64)


# Volumes are compared modulo this prime, because a domain may have 1e88 cells.
_PRIME = 2_147_483_647


class Boxes:
    """Disjoint boxes of integer codes that cover a domain.

    Parameters
    ----------
    lower, upper : array-like of int, shape (n_boxes, n_attributes)
        Box i holds the codes ``lower[i, j] <= code < upper[i, j]`` of attribute j.

    Attributes
    ----------
    lower, upper : ndarray of int32, read-only

    Raises
    ------
    ValueError
        If the shapes differ or a box is empty.
    """

    __slots__ = ("lower", "upper")

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower = frozen_int32(lower, "lower")
        self.upper = frozen_int32(upper, "upper")
        if self.lower.shape != self.upper.shape or self.lower.ndim != 2 or not self.lower.size:
            raise ValueError(
                "lower and upper must both have the shape (n_boxes, n_attributes) with at least "
                f"one of each, got {self.lower.shape} and {self.upper.shape}."
            )
        if (self.lower >= self.upper).any():
            raise ValueError("Every box needs lower < upper in every attribute.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Boxes, (self.lower, self.upper)

    def __len__(self) -> int:
        return len(self.lower)

    def __repr__(self) -> str:
        return f"Boxes({len(self)} boxes of {self.lower.shape[1]} attributes)"

    def check_volume(self, shape: Sequence[int]) -> None:
        """Check that the boxes lie in the domain and that their sizes add up to it.

        If they are also disjoint, which is not checked, they form a partition. The
        sizes are added modulo a prime and, as shares of the domain, in floats.

        Parameters
        ----------
        shape : sequence of int
            Sizes of the attributes.

        Raises
        ------
        ValueError
            If they do not.
        """
        if self.lower.shape[1] != len(shape):
            raise ValueError(
                f"The boxes have {self.lower.shape[1]} attributes and the domain {len(shape)}."
            )
        sizes = np.array(shape, dtype=np.int64)
        if (self.upper > sizes).any():
            raise ValueError("A box reaches beyond the domain.")
        residue = np.ones(len(self), dtype=np.int64)
        share = np.ones(len(self))
        whole = 1
        for axis, size in enumerate(shape):
            width = self.upper[:, axis].astype(np.int64) - self.lower[:, axis]
            residue = residue * (width % _PRIME) % _PRIME
            share *= width / size
            whole = whole * int(size) % _PRIME
        if int(residue.sum()) % _PRIME != whole or abs(share.sum() - 1.0) > 1e-6:
            raise ValueError(
                f"The boxes do not add up to the domain: they cover {share.sum():.9g} of it."
            )
