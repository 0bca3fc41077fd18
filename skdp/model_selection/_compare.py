"""Compares fitted candidates with true labels, with noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from .._random import NoiseSource
from ..mechanisms import discrete_laplace, noisy_max, top_k
from ._guard import Labels, Take, draw_places
from ._judge import Covers
from ._named import Metric
from ._scores import Bounds

__all__ = ["Judge"]


class Judge:
    """Chooses among fitted candidates by a metric on true rows.

    Parameters
    ----------
    take : callable
        Gives the rows at some positions.
    labels : ndarray
        True labels of all rows.
    metric : Metric
    bounds : (low, high) or None
    source : NoiseSource
    """

    # Privacy. Of a metric that is a sum over rows, one record adds to every candidate's total a
    # number of [0, R]: all totals move in the same direction by at most R, and one noisy maximum or
    # one choice of a set at epsilon costs epsilon, whatever the number of candidates. Any other
    # metric is released for each candidate at an equal part of epsilon, in sequence, and the best
    # are taken of what was released. Predictions are made row by row in a guard.

    def __init__(
        self, take: Take, labels: Labels, metric: Metric, bounds: Bounds | None, source: NoiseSource
    ) -> None:
        self._take, self._labels = take, labels
        self._metric, self._bounds, self._source = metric, bounds, source
        self._everyone = np.arange(len(labels))
        self._places = draw_places(len(labels))

    def best(self, models: list[Any], epsilon: Fraction) -> int:
        """Position of the winner, at epsilon."""
        if not self._metric.is_sum:
            return int(np.argmax(self._released(models, epsilon)))
        totals, spread = self._totals(models)
        return int(noisy_max(totals, epsilon, spread, random_state=self._source))

    def better(self, models: list[Any], keep: int, epsilon: Fraction) -> list[int]:
        """Positions of the best few, at epsilon."""
        if not self._metric.is_sum:
            order = np.argsort(self._released(models, epsilon), kind="stable")[::-1]
            return sorted(order[:keep].tolist())
        totals, spread = self._totals(models)
        chosen = top_k(totals, keep, epsilon, spread, ordered=False, random_state=self._source)
        found: list[int] = chosen.tolist()
        return found

    def noisy_score(self, model: Any, epsilon: Fraction) -> float:
        """A noisy score of one candidate, the higher the better, at epsilon."""
        if not self._metric.is_sum:
            return self._released([model], epsilon)[0]
        totals, spread = self._totals([model])
        noisy = discrete_laplace(np.array(totals), epsilon, spread, random_state=self._source)
        return int(noisy[0])

    def _totals(self, models: list[Any]) -> tuple[list[int], int]:
        """Exact sums, and by how much one record may change them."""
        totals = []
        for model in models:
            classes, guesses = self._guesses(model)
            scores, spread = self._metric.row_scores(self._labels, guesses, classes, self._bounds)
            totals.append(int(scores.sum()))
        return totals, spread

    def _released(self, models: list[Any], epsilon: Fraction) -> list[float]:
        found, part = [], epsilon / len(models)
        for model in models:
            classes, guesses = self._guesses(model)
            score = self._metric.release(
                self._labels,
                guesses,
                classes,
                part,
                self._source,
                Covers(0.95, False),
                self._bounds,
            )
            found.append(float(score))
        return found

    def _guesses(self, model: Any) -> tuple[Any, Labels]:
        classes = getattr(model, "classes_", ())
        guesses = self._metric.guesses(model, self._take, self._everyone, self._places, classes)
        return classes, guesses
