"""Read-only copies of arrays that a release holds."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["checked_counts", "frozen", "frozen_int32"]

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
