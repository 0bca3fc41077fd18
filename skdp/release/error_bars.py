"""Error bars of tree models: what was published about the errors of a class of queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import ndtri

from .._types import FloatArray, IntArray
from .._validation import as_level, as_number
from .intervals import Error
from .layers import are_shares, layers_of, layers_of_vector
from .model import Model, Weights

__all__ = ["ErrorBars", "KnownErrors", "WithErrorBars", "non_negative"]


@dataclass(frozen=True)
class ErrorBars:
    """What was published about the errors of a declared class of queries.

    Attributes
    ----------
    level : float
        Which quantile of the absolute errors was published.
    reach : float
        The published quantile with the margin for its own noise: in records if ``scaled`` is
        False, else in multiples of `spread`.
    scaled : bool
        Whether the errors were divided by `spread` first.
    confidence : float or None
        Probability that the margin was wide enough; None if there is no margin, and the interval
        covers on average over what the quantile may be, given its noise and those of other classes.
    n_queries : int
        Size of the class.
    text : str
        The class in words.
    simulated : bool, default=False
        Whether ``reach`` is twice the quantile that noise alone causes, on records drawn from the
        release, moved by no more than it takes to agree with the published quantile.
    """

    level: float
    reach: float
    scaled: bool
    confidence: float | None
    n_queries: int
    text: str
    simulated: bool = False

    # Scaled errors are counted in whole sixteenths, so that they stay integers.
    UNIT: ClassVar[int] = 16
    # Smallest spread is 1/5: the number of units a record can move a scaled error.
    MOST: ClassVar[int] = 5 * UNIT

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ErrorBars:
        """What a file holds of ``vars`` of error bars; ValueError for anything else."""
        bars = cls(**data)
        sizes_known = type(bars.n_queries) is int and bars.n_queries >= 0
        flags_known = type(bars.scaled) is type(bars.simulated) is bool
        if not (sizes_known and flags_known and isinstance(bars.text, str)):
            raise ValueError("its error bars are not those of a release")
        as_level(bars.level, "the level of its error bars")
        reach = non_negative(bars.reach, "the reach of its error bars")
        if bars.confidence is not None:
            as_level(bars.confidence, "the confidence of its error bars")
        return replace(bars, reach=reach)

    @classmethod
    def factors(cls, answers: FloatArray, total: float) -> IntArray:
        """Integer factors that make errors of large and small answers comparable.

        The factor of an answer with the share p of all records is 16 / s rounded down, where
        ``s = 2 sqrt(max(p (1 - p), 0.01))`` is between 1/5 and 1.
        """
        p = np.clip(answers / max(total, 1.0), 0.0, 1.0)
        s = 2.0 * np.sqrt(np.maximum(p * (1.0 - p), 0.01))
        return np.clip(np.floor(cls.UNIT / s + 1e-9).astype(np.int64), cls.UNIT, cls.MOST)

    def half_width(self, answer: float, total: float, level: float) -> float:
        """Half width of the interval around an answer."""
        return float(self.half_widths(np.array([answer]), total, level)[0])

    def half_widths(self, answers: FloatArray, total: float, level: float) -> FloatArray:
        """Half widths of the intervals around several answers."""
        factors = self.factors(answers, total) if self.scaled else np.ones(len(answers))
        # Errors were measured after rounding the answers to integers.
        widths: FloatArray = self.reach / factors + 0.5
        if level > self.level:
            # The published quantile, extended with the tail of a Laplace distribution.
            widths = widths * (math.log(1.0 - level) / math.log(1.0 - self.level))
        return widths

    def error(self, model: Model, parts: Sequence[Weights], level: float) -> Error:
        """Interval for a sum of the answers of a model; real weights are taken by layers."""
        if are_shares(parts):
            steps, answers = np.ones(1), model.answer(parts).sum(keepdims=True)
        else:
            steps, layers = layers_of(parts)
            answers = model.answer(layers)
        half, known = (
            float(steps @ self.half_widths(answers, model.total, each))
            for each in (level, self.level)
        )
        std = known / float(ndtri(0.5 + self.level / 2))
        return Error(std, half, half, self.guarantee(level))

    def column_errors(
        self, model: Model, axis: int, weights: FloatArray, level: float
    ) -> tuple[FloatArray, str]:
        """Half widths of intervals of weighted counts of one attribute, and what they cover."""
        view = model.view([axis])
        half = [
            steps @ self.half_widths(sets @ view, model.total, level)
            for steps, sets in map(layers_of_vector, weights)
        ]
        return np.array(half), self.guarantee(level)

    def guarantee(self, level: float) -> str:
        """What an interval covers, in words."""
        if self.simulated:
            text = (
                f"Of {self.text}, intervals made like this one are meant to contain the true "
                f"answer in {100 * self.level:g}% on average over that class. They reach twice as "
                "far as the errors that noise alone causes on records drawn from the release, "
                "within what a published quantile of the true errors leaves possible with "
                f"probability {100 * (self.confidence or 0):g}%. A misfit of the model too small "
                "to show in that quantile may exceed them. For other queries, and for one query by "
                "itself, this is a guide and not a promise."
            )
        else:
            text = self._promise()
        if level > self.level:
            text += (
                f" The release publishes the {100 * self.level:g}% quantile only; the interval at "
                f"{100 * level:g}% continues it with the tail of a Laplace law and is not "
                "guaranteed."
            )
        elif level < self.level:
            text += f" {100 * level:g}% was asked for; the interval is that of the higher level."
        return text

    def _promise(self) -> str:
        if self.confidence is None:
            return (
                f"Of {self.text}, intervals made like this one are meant to contain the true "
                f"answer in {100 * self.level:g}% on average over that class and over the noise of "
                "its published error quantile, which is judged beside those of other classes. They "
                "cover noise and misfit of the model together. For other queries, and for one "
                "query by itself, this is a guide and not a promise."
            )
        return (
            f"Of {self.text}, intervals made like this one contain the true answer in at least "
            f"{100 * self.level:g}% on average over that class, with probability "
            f"{100 * self.confidence:g}% over the noise of the published error quantile. They "
            "cover noise and misfit of the model together. For other queries, and for one query "
            "by itself, this is a guide and not a promise."
        )


def non_negative(value: Any, name: str) -> float:
    """A number from a file; ValueError if it is none, negative or infinite."""
    number = as_number(value, name)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} is {number}")
    return number


class KnownErrors(Protocol):
    """What makes intervals for the answers of a model: `ErrorBars` or `ErrorClasses`."""

    def error(self, model: Model, parts: Sequence[Weights], level: float) -> Error:
        """Interval for a sum of answers."""
        ...

    def column_errors(
        self, model: Model, axis: int, weights: FloatArray, level: float
    ) -> tuple[FloatArray, str]:
        """Half widths of intervals of weighted counts of one attribute, and what they cover."""
        ...


class _Released(Model, Protocol):
    """A model beside which errors were published, if any."""

    error_bars: KnownErrors | None


class WithErrorBars:
    """Intervals of a model from what is known about its errors."""

    def error(self: _Released, weights: Weights, level: float) -> Error:
        """Interval of one answer."""
        return _needed(self.error_bars).error(self, [weights], level)

    def error_of_parts(self: _Released, parts: Sequence[Weights], level: float) -> Error:
        """Interval for a sum of answers."""
        return _needed(self.error_bars).error(self, parts, level)

    def column_errors(
        self: _Released, axis: int, weights: FloatArray, level: float
    ) -> tuple[FloatArray, str]:
        """Half widths of intervals of weighted counts of one attribute; see `Model`."""
        return _needed(self.error_bars).column_errors(self, axis, weights, level)


def _needed(bars: KnownErrors | None) -> KnownErrors:
    """The error bars, or ValueError where a release has none."""
    if bars is None:
        raise ValueError(
            "This release has no error bars: it was made with error_share=0. Ask for the "
            "plain count, or release with a positive error_share."
        )
    return bars
