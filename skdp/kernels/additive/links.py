"""What a record tells about the scores of the model, in integers.

A record's residual must not depend on the other rows of a call, not by one bit. Therefore scores
are whole multiples of 1/1024, exponentials come from a public table, and shares are divisions of
integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from ..._types import FloatArray, IntArray
from .tuning import TUNING

__all__ = ["UNIT", "Identity", "Link", "Logit", "fixed"]

# Scores, residuals and shares are in units of 1/1024.
UNIT = 1024


def _tables() -> tuple[IntArray, IntArray]:
    """exp(-i / UNIT) in units of 2**-24, down to exp(-16); and shares of the second of two classes.

    The shares are those for each of its scores from -16 to 16, rounded down.
    """
    falling = np.floor(np.exp(-np.arange(16 * UNIT) / UNIT) * 2**24).astype(np.int64)
    both = np.concatenate([falling[:0:-1], np.full_like(falling, falling[0])])
    return falling, both * UNIT // (both + both[::-1])


_EXPONENTIALS, _OF_TWO = _tables()


def fixed(values: FloatArray) -> IntArray:
    """Released scores as whole multiples of 1/1024."""
    return np.rint(np.clip(values, -(2.0**20), 2.0**20) * UNIT).astype(np.int64)


class Link(Protocol):
    """How scores and outcomes belong together.

    Attributes
    ----------
    n_outputs : int
        Scores of a record.
    reach : int
        Largest sum of the absolute residuals of a record, in units.
    joint : int
        Largest sum of the absolute residuals and the weight of a record, in units.
    dispersion : float
        Variance of a residual, as a share of the curvature.
    """

    n_outputs: int
    reach: int
    joint: int
    dispersion: float

    def residuals(self, scores: IntArray, labels: IntArray) -> IntArray:
        """Outcome minus expectation in units, (n, n_outputs); at most `reach` a row."""
        ...

    def weights(self, scores: IntArray) -> IntArray:
        """How much a record's residuals move with its scores, in units, (n,)."""
        ...

    def per_weight(self, intercept: FloatArray) -> FloatArray:
        """Curvature in each score of records of weight 1, (n_outputs,)."""
        ...

    def spreads(self, scores: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Weights p and differences of scores whose squares make the curvature.

        Yields
        ------
        weight : ndarray of shape (n,)
            In units.
        direction : ndarray of shape (n, n_outputs)
            The curvature of the loss of a record in its scores is the sum over what is yielded of
            weight times the outer product of direction.
        """
        ...

    def curvature(self, scores: FloatArray) -> FloatArray:
        """Bound of the second derivative of the loss in each score, (n, n_outputs)."""
        ...


class Logit:
    """Classes: shares are the normalised exponentials of scores.

    Of two classes only the second has a score; the other's is 0.

    Parameters
    ----------
    n_classes : int
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.n_outputs = 1 if n_classes == 2 else n_classes
        self.reach = UNIT if n_classes == 2 else 2 * UNIT
        self.joint = UNIT if n_classes == 2 else 2 * UNIT + UNIT // 2
        self.dispersion = 1.0

    def shares(self, scores: IntArray) -> IntArray:
        """Shares of the classes in units, rounded down, (n, n_classes)."""
        drop = self._all(scores)
        drop = np.minimum(drop.max(axis=1, keepdims=True) - drop, len(_EXPONENTIALS) - 1)
        parts = _EXPONENTIALS[drop]
        return parts * UNIT // parts.sum(axis=1, keepdims=True)

    def residuals(self, scores: IntArray, labels: IntArray) -> IntArray:  # noqa: D102
        if self.n_outputs == 1:
            return np.asarray(labels[:, None] * UNIT - self._second(scores))
        result = -self.shares(scores)
        result[np.arange(len(labels)), labels] += UNIT
        return result

    def weights(self, scores: IntArray) -> IntArray:  # noqa: D102
        if self.n_outputs > 1:
            return np.full(len(scores), UNIT // 2)
        # The curvature costs nothing: of a share p, (1 - p) + p (1 - p) = 1 - p**2 for one class,
        # and p + p (1 - p) = 1 - (1 - p)**2 for the other.
        share = self._second(scores)[:, 0]
        return np.asarray(share * (UNIT - share) // UNIT)

    def per_weight(self, intercept: FloatArray) -> FloatArray:  # noqa: D102
        if self.n_outputs == 1:
            return np.ones(1)
        return 2.0 * self.curvature(intercept[None])[0]

    def spreads(self, scores: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:  # noqa: D102
        if self.n_outputs == 1:
            share = self._second(scores)[:, 0]
            curvature = np.maximum(share * (UNIT - share) // UNIT, int(TUNING.kept * UNIT))
            yield curvature, np.ones((len(scores), 1))
            return
        shares = self.shares(scores)
        for label in range(self.n_classes):
            direction = -shares / UNIT
            direction[:, label] += 1.0
            yield shares[:, label], direction

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Shares of the classes, (n, n_classes)."""
        full = self._all(scores)
        parts = np.exp(full - full.max(axis=1, keepdims=True))
        return parts / parts.sum(axis=1, keepdims=True)

    def curvature(self, scores: FloatArray) -> FloatArray:  # noqa: D102
        shares = self.probabilities(scores)
        # The full matrix diag(p) - p p' is at most diag(p), so that steps in all scores at once
        # cannot overshoot.
        return shares[:, 1:] * shares[:, :1] if self.n_outputs == 1 else shares

    def _second(self, scores: IntArray) -> IntArray:
        """Share of the second of two classes in units, rounded down, (n, 1)."""
        end = len(_EXPONENTIALS) - 1
        return _OF_TWO[np.clip(scores, -end, end) + end]

    def _all(self, scores: Any) -> Any:
        return np.insert(scores, 0, 0, axis=1) if self.n_outputs == 1 else scores


class Identity:
    """A number: the score is its expectation, both as shares of a public range.

    Parameters
    ----------
    outcomes : ndarray of shape (n_codes,), int64
        Outcome of each code of the target in units, in -UNIT..UNIT.
    centre, std : float
        About the mean outcome, and its standard error.
    reach : int, default=UNIT
        Residuals are cut to so many units.
    dispersion : float, default=0.1
        About the variance of outcomes; it only decides how much is shrunk.
    """

    def __init__(
        self,
        outcomes: IntArray,
        centre: float = 0.0,
        reach: int = UNIT,
        dispersion: float = 0.1,
        std: float = 0.4,
    ) -> None:
        self.outcomes = outcomes
        self.centre = centre
        self.std = std
        self.n_outputs = 1
        self.reach = reach
        self.joint = reach + reach // 4
        self.dispersion = dispersion

    def weights(self, scores: IntArray) -> IntArray:  # noqa: D102
        return np.full(len(scores), self.reach // 4)

    def per_weight(self, intercept: FloatArray) -> FloatArray:  # noqa: D102
        return np.full(1, UNIT / (self.reach // 4))

    def residuals(self, scores: IntArray, labels: IntArray) -> IntArray:  # noqa: D102
        return np.clip(self.outcomes[labels][:, None] - scores, -self.reach, self.reach)

    def spreads(self, scores: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:  # noqa: D102
        yield np.full(len(scores), UNIT), np.ones((len(scores), 1))

    def curvature(self, scores: FloatArray) -> FloatArray:  # noqa: D102
        return np.ones_like(scores)
