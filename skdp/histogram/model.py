"""HistogramModel: a released histogram in the form in which synopses ask for statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import FloatArray
from ..release import Error

if TYPE_CHECKING:
    from .estimator import RangeTreeHistogram

__all__ = ["HistogramModel"]


class HistogramModel:
    """Answers and their errors; weights are those of the codes of the one attribute.

    Parameters
    ----------
    histogram : RangeTreeHistogram
        Fitted.
    """

    def __init__(self, histogram: RangeTreeHistogram) -> None:
        self._histogram = histogram

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return self._histogram._value(np.ones(len(self._histogram.tree_.leaves)))

    def answer(self, queries: Sequence[Any]) -> FloatArray:
        """Weighted sum of bins, one float for each query."""
        told = self._histogram
        found = [told._value(told._weights_of_leaves(self._codes([each]))) for each in queries]
        return np.array(found, dtype=np.float64)

    def error(self, weights: Any, level: float) -> Error:
        """Error of one answer."""
        return self.error_of_parts([weights], level)

    def error_of_parts(self, parts: Sequence[Any], level: float) -> Error:
        """Error of a sum of answers."""
        found = self._histogram._error(self._codes(parts), level)
        return Error(
            found.std, found.value - found.lower, found.upper - found.value, found.guarantee
        )

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Estimated counts of all codes."""
        return self._histogram._by_code(self._histogram._bin_counts())

    def _codes(self, parts: Sequence[Any]) -> FloatArray:
        """Weights of the codes in a sum of answers."""
        ones = np.ones(self._histogram.domain_.shape[0])
        return np.sum([part.get(0, ones) for part in parts], axis=0)
