"""The integer grid on which `bounded_sum` adds real numbers exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import IntArray
from .._validation import as_fraction


class BoundedGrid(NamedTuple):
    """A grid that maps bounded real numbers to integers, so that sums are exact.

    Attributes
    ----------
    lower, upper : Fraction
        Values are clipped to these.
    step : Fraction
        Width of the grid: the integer k means k * step.
    """

    lower: Fraction
    upper: Fraction
    step: Fraction

    @classmethod
    def of(cls, lower: Any, upper: Any, resolution: Any = None) -> BoundedGrid:
        """Check the public parameters of `bounded_sum`, and choose the grid."""
        low, high = as_fraction(lower, "lower"), as_fraction(upper, "upper")
        if low >= high:
            raise ValueError(f"lower must be below upper, got lower={lower!r}, upper={upper!r}.")
        reach = max(abs(low), abs(high))
        # Within this range no step of the computation underflows or overflows to NaN.
        if not Fraction(1, 10**280) <= reach <= 10**280:
            raise ValueError(
                f"The bounds {lower!r} and {upper!r} are too small or too large for floating-point "
                "numbers. Measure in other units."
            )
        if resolution is None:
            finest = reach / 2**20
            step = Fraction(2) ** (finest.numerator.bit_length() - finest.denominator.bit_length())
            if step > finest:
                step /= 2
        else:
            step = as_fraction(resolution, "resolution")
            if not 0 < step <= 2 * reach:
                raise ValueError(
                    "resolution must be positive and not coarser than the bounds, got "
                    f"{resolution!r} for bounds {float(low)!r} and {float(high)!r}."
                )
            # Keeps the sum of up to 2**32 records within 64 bits.
            if reach / step > 2**30:
                raise ValueError(
                    f"resolution={resolution!r} is finer than 2**-30 of the bounds {float(low)!r} "
                    f"and {float(high)!r}. Use a coarser one: the noise hides larger differences."
                )
        return cls(low, high, step)

    @property
    def sensitivity(self) -> int:
        """Largest absolute integer."""
        return max(abs(round(self.lower / self.step)), abs(round(self.upper / self.step)))

    def encode(self, values: NDArray[Any]) -> IntArray:
        """Integer of each number; NaN counts as the number nearest to zero. Never raises."""
        clean = values.astype(np.float64)
        clean[np.isnan(clean)] = 0.0
        np.clip(clean, float(self.lower), float(self.upper), out=clean)
        low, high = round(self.lower / self.step), round(self.upper / self.step)
        return np.clip(np.rint(clean / float(self.step)), low, high).astype(np.int64)
