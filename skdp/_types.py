"""Type aliases for the arrays in signatures."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoolArray", "CodeArray", "FloatArray", "IntArray"]

# Measurements, probabilities, weights.
FloatArray: TypeAlias = NDArray[np.float64]
# Counts, cell numbers, positions.
IntArray: TypeAlias = NDArray[np.int64]
# Codes of records: the smallest type that holds every domain.
CodeArray: TypeAlias = NDArray[np.int32]
BoolArray: TypeAlias = NDArray[np.bool_]
