"""Intervals of scores: the released counts, drawn again with the public law of their noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from .._random import sampling_generator
from .._validation import FloatArray, as_level, check_choice, dyadic_floor
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


@dataclass(frozen=True)
class Covers:
    """What an interval is to cover.

    Attributes
    ----------
    level : float
    population : bool
        Sampling error as well as noise.
    """

    level: float
    population: bool

    @classmethod
    def asked(cls, level: float, interval: str) -> Covers:
        """Read the parameters ``level`` and ``interval``."""
        check_choice(interval, "interval", ("noise", "population"))
        return cls(float(as_level(level)), interval == "population")

    @property
    def words(self) -> str:
        """What the interval covers."""
        if self.population:
            return (
                f"covers the score on the population that these rows were drawn from in about "
                f"{self.level:.0%} of all releases: sampling error and noise, by simulation"
            )
        return (
            f"covers the exact score on these rows in about {self.level:.0%} of all releases, by "
            "simulation of the noise; how far these rows stand for others is not in it"
        )


def with_interval(
    statistic: Statistic,
    parts: Sequence[Noisy],
    covers: Covers,
    *,
    value: float | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    known: bool = True,
    resolution: float = 0.0,
    sampling_std: float | None = None,
) -> QueryResult:
    """A score with its interval.

    Parameters
    ----------
    statistic : callable
    parts : sequence of Noisy
        Its arguments.
    covers : Covers
    value : float, optional
        A better estimate than ``statistic`` of the parts.
    span : (low, high)
        Possible values.
    known : bool, default=True
        False where too few records are left above the noise: the interval is all that is possible.
    resolution : float, default=0.0
        Widens the interval: what bins hide.
    sampling_std : float, optional
        Of the statistic; by default the spread over Poisson counts. Parts may count the same rows,
        so the spreads of all parts are added up.
    """
    low, high = span
    # Computed from the release alone, with public coins, so that a report does not change when
    # it is read again.
    rng = sampling_generator(0)
    values = [part.values for part in parts]
    base = float(statistic(values))
    errors = statistic([part.values + part.noise(_DRAWS, rng) for part in parts]) - base
    sampling = sampling_std or 0.0
    if covers.population and sampling_std is None:
        for place, part in enumerate(parts):
            drawn = [np.broadcast_to(each, (_DRAWS, *each.shape)) for each in values]
            drawn[place] = part.samples(_DRAWS, rng)
            sampling += float(statistic(drawn).std())
    if value is None:
        value = base
    # A quotient of noisy numbers may have no standard deviation: its tails are cut off.
    spread = float(np.hypot(np.clip(errors, *np.quantile(errors, _TAILS)).std(), resolution))
    if covers.population:
        errors = errors + sampling_generator(1).normal(0.0, sampling, errors.shape)
    ends = np.quantile(errors, [(1 - covers.level) / 2, (1 + covers.level) / 2])
    value = float(np.clip(value, low, high))
    lower, upper = value - ends[1] - resolution, value - ends[0] + resolution
    if not known:
        lower, upper = low, high
    return QueryResult(
        value,
        spread,
        float(np.clip(min(lower, value), low, high)),
        float(np.clip(max(upper, value), low, high)),
        covers.words,
        sampling if covers.population else 0.0,
    )
