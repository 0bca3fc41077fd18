"""Metrics by name, for cross-validation, searches and scorers.

Names are those of scikit-learn's scorers; a name with ``neg_`` is the negated score. Without it
the score has its own sign.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._random import NoiseSource
from .._types import FloatArray, IntArray
from ..kernels.clipped_moments import STEPS, on_grid
from ..release import QueryResult
from ._guard import (
    Labels,
    Take,
    equal,
    log_likelihoods,
    positions_of,
    predictions,
    probabilities,
)
from ._judge import Covers, Noisy
from ._metrics import matrix_score, predicted_counts, probability_loss, table_scores
from ._row_losses import (
    mean_loss,
    number_moments,
    number_score,
    numbers_between,
    probability_losses,
)
from ._scores import Bounds, range_of, release_accuracy, release_mse, squared_scores

__all__ = ["Metric", "check_metric", "find_metric"]

_LABELS, _PROBABILITIES, _NUMBERS, _ROWS = "labels", "probabilities", "numbers", "rows"
# What each metric reads of a model.
_READS = {
    "accuracy": _LABELS,
    "balanced_accuracy": _LABELS,
    "f1": _LABELS,
    "f1_macro": _LABELS,
    "roc_auc": _PROBABILITIES,
    "average_precision": _PROBABILITIES,
    "log_loss": _PROBABILITIES,
    "brier": _PROBABILITIES,
    "log_likelihood": _ROWS,
    "mae": _NUMBERS,
    "mse": _NUMBERS,
    "r2": _NUMBERS,
}
_LOSSES = ("log_loss", "brier", "mae", "mse")
# Names of scikit-learn's scorers.
_SCORERS = {
    "neg_log_loss": "log_loss",
    "neg_brier_score": "brier",
    "neg_mean_absolute_error": "mae",
    "neg_mean_squared_error": "mse",
    "roc_auc_ovr": "roc_auc",
}


@dataclass(frozen=True)
class Metric:
    """A metric that was asked for by name.

    Attributes
    ----------
    name : str
        As in the function ``private_<name>``.
    negated : bool
        Whether the name began with ``neg_``.
    """

    name: str
    negated: bool

    @property
    def is_loss(self) -> bool:
        """Whether less is better."""
        return self.name in _LOSSES

    @property
    def needs_bounds(self) -> bool:
        """Whether the metric is of numbers in a public range."""
        return _READS[self.name] in (_NUMBERS, _ROWS)

    @property
    def reads_labels(self) -> bool:
        """Whether it compares with labels; otherwise it scores the rows themselves."""
        return _READS[self.name] != _ROWS

    @property
    def method(self) -> str:
        """The method of a model that every metric of this kind needs."""
        return "predict" if self.reads_labels else "score_samples"

    @property
    def reads_probabilities(self) -> bool:
        """Whether the metric needs ``predict_proba``."""
        return _READS[self.name] == _PROBABILITIES

    @property
    def needs_classes(self) -> bool:
        """Whether the metric needs the list of labels."""
        return not self.needs_bounds and self.name != "accuracy"

    @property
    def is_sum(self) -> bool:
        """Whether the candidates of a search are compared by sums over rows."""
        return self.name in ("accuracy", "r2", "log_likelihood", *_LOSSES)

    def check_model(self, model: Any) -> None:
        """Refuse a model that cannot give what the metric reads."""
        if not self.reads_labels and not hasattr(model, self.method):
            raise TypeError(
                f"The metric {self.name!r} needs {self.method}, which synthesizers and "
                f"scikit-learn's density estimators have; {type(model).__name__} has none."
            )
        if self.reads_probabilities and not hasattr(model, "predict_proba"):
            raise TypeError(
                f"The metric {self.name!r} needs predict_proba; {type(model).__name__} has none."
            )
        if self.needs_classes and not (hasattr(model, "classes_") or is_classifier(model)):
            raise TypeError(
                f"The metric {self.name!r} is of labels; {type(model).__name__} is no classifier."
            )

    def guesses(
        self, model: Any, take: Take, rows: IntArray, places: IntArray, classes: Any
    ) -> Labels:
        """What the model says of each row, from the guard."""
        if not self.reads_labels:
            return log_likelihoods(model, take, rows, places)
        if self.reads_probabilities:
            return probabilities(model, take, rows, places, len(classes))
        return predictions(model, take, rows, places)

    def no_guesses(self, n_rows: int, classes: Any) -> Labels:
        """For rows that no model could predict."""
        shape = (n_rows, len(classes)) if self.reads_probabilities else (n_rows,)
        return np.full(shape, np.nan, dtype=float if self.reads_probabilities else object)

    def release(
        self,
        truth: Labels,
        guess: Labels,
        classes: Any,
        epsilon: Fraction,
        source: NoiseSource,
        covers: Covers,
        bounds: Bounds | None,
    ) -> QueryResult:
        """Release the metric; it was charged before."""
        result = self._release(truth, guess, classes, epsilon, source, covers, bounds)
        if not self.negated:
            return result
        ends = {"lower": -result.upper, "upper": -result.lower}
        return replace(result, value=-result.value, **ends)

    def _release(
        self,
        truth: Labels,
        guess: Labels,
        classes: Any,
        epsilon: Fraction,
        source: NoiseSource,
        covers: Covers,
        bounds: Bounds | None,
    ) -> QueryResult:
        if self.name == "accuracy":
            return release_accuracy(truth, guess, epsilon, source, covers)
        if self.name == "mse":
            return release_mse(truth, guess, epsilon, source, covers, bounds)
        if bounds is not None:
            low, high = (float(end) for end in bounds)
            if not self.reads_labels:
                lost = mean_loss(_below(guess, low, high), high - low, epsilon, source, covers)
                ends = {"lower": high - lost.upper, "upper": high - lost.lower}
                return replace(lost, value=high - lost.value, **ends)
            true, guessed = (numbers_between(each, low, high) for each in (truth, guess))
            if self.name == "mae":
                return mean_loss(np.abs(true - guessed), high - low, epsilon, source, covers)
            moments = number_moments(true, guessed, epsilon, source)
            return number_score(self.name, moments, high - low, covers)
        positions = _positions(classes)
        found = positions_of(truth, positions)
        if not self.reads_probabilities:
            answers = positions_of(guess, positions)
            counts = predicted_counts(found, answers, len(positions), epsilon, source)[0]
            return matrix_score(self.name, Noisy(counts.astype(float), epsilon), covers)
        scores = guess[:, 1:] if len(positions) == 2 else guess
        release = probability_loss if self.is_loss else table_scores
        return release(self.name, found, scores, epsilon, source, covers)

    def row_scores(
        self, truth: Labels, guess: Labels, classes: Any, bounds: Bounds | None
    ) -> tuple[IntArray, int]:
        """An integer for each row, the higher the better, for a comparison of candidates.

        Returns
        -------
        scores : ndarray of int
        spread : int
            The range of these integers: the largest change of their sum by one row.
        """
        if self.name == "accuracy":
            return equal(truth, guess).astype(np.int64), 1
        if self.name in ("mse", "r2"):
            # The target's variance is the same for all candidates.
            assert bounds is not None
            return squared_scores(truth, guess, bounds)
        if bounds is not None:
            low, high = (float(end) for end in bounds)
            if not self.reads_labels:
                return -on_grid(_below(guess, low, high)), STEPS
            true, guessed = (numbers_between(each, low, high) for each in (truth, guess))
            return -on_grid(np.abs(true - guessed)), STEPS
        found = positions_of(truth, _positions(classes))
        scores = guess[:, 1:] if len(classes) == 2 else guess
        losses = on_grid(probability_losses(self.name, np.maximum(found, 0), scores))
        return -np.where(found < 0, STEPS, losses), STEPS


def _below(logs: Labels, low: float, high: float) -> FloatArray:
    """How far log-likelihoods are below the largest, as shares of the range; missing is 1."""
    lost = (high - np.clip(logs.astype(np.float64), low, high)) / (high - low)
    return np.asarray(np.where(np.isnan(lost), 1.0, lost))


def _positions(classes: Any) -> dict[Any, int]:
    """Position of each label of a model."""
    return {label: place for place, label in enumerate(np.asarray(classes).tolist())}


def find_metric(name: Any) -> Metric:
    """The metric of this name.

    Raises
    ------
    ValueError
        If there is none.
    """
    try:
        base = _SCORERS.get(name, name)
        known = base in _READS
    except TypeError:
        known = False
    if not known:
        raise ValueError(f"The metric must be one of {sorted([*_READS, *_SCORERS])}, got {name!r}.")
    return Metric(base, name.startswith("neg_"))


def check_metric(name: Any, bounds: Any) -> Metric:
    """The metric, if it is known and the bounds fit it."""
    metric = find_metric(name)
    if metric.needs_bounds != (bounds is not None):
        raise ValueError(
            f"The metric {name!r} needs bounds=(low, high), the public range of "
            + ("the target." if metric.reads_labels else "the log-likelihood of a row.")
            if metric.needs_bounds
            else f"bounds= belongs to metrics of numbers, such as 'mse', not to {name!r}."
        )
    range_of(bounds)
    return metric
