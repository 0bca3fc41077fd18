"""Confidence: what an interval is meant to cover."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._types import FloatArray
from ..._validation import as_level, as_number, check_choice

__all__ = ["Confidence"]


@dataclass(frozen=True)
class Confidence:
    """What an interval is meant to cover.

    Attributes
    ----------
    level : float
    population : bool, default=False
        Whether it covers sampling too: the records are a random sample of a population.
    size : float, default=inf
        Number of records of the population.
    quick : bool, default=False
        Whether the law of a sum of noise is approximated even for one question.
    """

    level: float
    population: bool = False
    size: float = math.inf
    quick: bool = False

    @classmethod
    def asked(
        cls,
        return_interval: Any,
        level: Any = 0.95,
        interval: Any = "noise",
        population_size: Any = None,
    ) -> Confidence | None:
        """What a user asks for; None where no interval is asked for.

        Raises
        ------
        TypeError, ValueError
            If ``level`` is not between 0 and 1, ``interval`` is another word, or
            ``population_size`` is not a positive number or stands without a population.
        """
        level = as_level(level)
        check_choice(interval, "interval", ("noise", "population"))
        if not return_interval:
            if interval != "noise" or population_size is not None:
                raise ValueError(
                    "interval and population_size say what intervals cover: they need "
                    "return_interval=True."
                )
            return None
        if population_size is None:
            return cls(level, interval == "population")
        if interval != "population":
            raise ValueError(
                "population_size says how large the population is that the records are a sample "
                'of: it needs interval="population".'
            )
        size = as_number(population_size, "population_size")
        if not size > 0:
            raise ValueError(f"population_size must be positive, got {population_size!r}.")
        return cls(level, True, size)

    @property
    def quantile(self) -> float:
        """How many standard deviations a normal law stays within at this level."""
        return float(ndtri(0.5 + self.level / 2))

    def sampling_std(self, variance: Any, total: float) -> FloatArray:
        """Standard deviation over samples of a population; zeros if these are not asked for.

        Parameters
        ----------
        variance : array-like
            Variance of the statistic over samples with replacement.
        total : float
            Number of records in the sample.
        """
        variance = np.asarray(variance, dtype=np.float64)
        if not self.population:
            return np.zeros(variance.shape)
        left = 1.0 - min(max(total, 0.0) / self.size, 1.0)
        return np.sqrt(np.maximum(variance, 0.0) * left)

    def with_sampling(self, reach: FloatArray, sampling_std: FloatArray) -> FloatArray:
        """Reach of an interval for an error of the noise and an independent one of sampling."""
        return np.hypot(reach, self.quantile * sampling_std)

    @property
    def text(self) -> str:
        """What is said of sampling beside what is said of the noise."""
        if not self.population:
            return ""
        most = "" if math.isinf(self.size) else f" of {self.size:,.0f}"
        return (
            f" The interval also covers sampling, taken as normal: the records are a simple random "
            f"sample of a population{most}."
        )
