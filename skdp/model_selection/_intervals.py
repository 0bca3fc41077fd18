"""Intervals of scores: the released counts, drawn again with the public law of their noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from .._random import sampling_generator
from .._validation import FloatArray, dyadic_floor
from ..mechanisms import discrete_laplace_variance
from ..release import QueryResult

# Draws behind each interval.
_DRAWS = 1000
_TAILS = (0.005, 0.995)


@dataclass(frozen=True)
class Noisy:
    """Released numbers and the law of the noise in them.

    Attributes
    ----------
    values : ndarray of float
        In records.
    epsilon : Fraction
        Each number has discrete Laplace noise of this rate for a record.
    steps : int, default=1
        Integers for a record on the grid of the noise.
    """

    values: FloatArray
    epsilon: Fraction
    steps: int = 1

    @property
    def variance(self) -> float:
        """Variance of the noise of each number."""
        return discrete_laplace_variance(self.epsilon / self.steps) / self.steps**2

    def noise(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Noise as it was drawn, shape (draws, *values.shape)."""
        rate = float(dyadic_floor(self.epsilon / self.steps))
        shape = (draws, *self.values.shape)
        # Whole parts of exponential variables are geometric.
        more, less = (np.floor(rng.standard_exponential(shape) / rate) for _ in range(2))
        return (more - less) / self.steps

    def samples(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Counts of other samples of rows of the same population."""
        return rng.poisson(np.maximum(self.values, 0.0), (draws, *self.values.shape)).astype(float)


# From arrays, with one more axis in front or without, to one number for each.
Statistic: TypeAlias = Callable[[Sequence[FloatArray]], FloatArray]


def with_interval(
    statistic: Statistic,
    parts: Sequence[Noisy],
    level: float,
    *,
    value: float | None = None,
    known: bool = True,
    resolution: float = 0.0,
    sampling_std: float | None = None,
) -> QueryResult:
    """A score from 0 to 1 with its interval, for the population that the rows were drawn from.

    Parameters
    ----------
    statistic : callable
    parts : sequence of Noisy
        Its arguments.
    level : float
    value : float, optional
        A better estimate than ``statistic`` of the parts.
    known : bool, default=True
        False where too few records are left above the noise: the interval is all that is possible.
    resolution : float, default=0.0
        Widens the interval: what bins hide.
    sampling_std : float, optional
        Of the statistic; by default the spread over Poisson counts. Parts may count the same rows,
        so the spreads of all parts are added up.
    """
    # Computed from the release alone, with public coins, so that a report does not change when
    # it is read again.
    rng = sampling_generator(0)
    values = [part.values for part in parts]
    base = float(statistic(values))
    errors = statistic([part.values + part.noise(_DRAWS, rng) for part in parts]) - base
    sampling = sampling_std or 0.0
    if sampling_std is None:
        for place, part in enumerate(parts):
            drawn = [np.broadcast_to(each, (_DRAWS, *each.shape)) for each in values]
            drawn[place] = part.samples(_DRAWS, rng)
            sampling += float(statistic(drawn).std())
    if value is None:
        value = base
    # A quotient of noisy numbers may have no standard deviation: its tails are cut off.
    spread = float(np.hypot(np.clip(errors, *np.quantile(errors, _TAILS)).std(), resolution))
    errors = errors + sampling_generator(1).normal(0.0, sampling, errors.shape)
    ends = np.quantile(errors, [(1 - level) / 2, (1 + level) / 2])
    value = float(np.clip(value, 0.0, 1.0))
    lower, upper = value - ends[1] - resolution, value - ends[0] + resolution
    if not known:
        lower, upper = 0.0, 1.0
    return QueryResult(
        value,
        spread,
        float(np.clip(min(lower, value), 0.0, 1.0)),
        float(np.clip(max(upper, value), 0.0, 1.0)),
        f"covers the score on the population that these rows were drawn from in about {level:.0%} "
        "of all releases: sampling error and noise, by simulation",
        sampling,
    )
