"""PrivateERM: regularised classifiers with a random linear term in the objective.

A comparison for the figures, not for releases. The noise is continuous, and the released minimiser
is that of the exact mathematics only up to the floats and the tolerance of a search, so it cannot
be replayed and has no guarantee.

K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
minimization", JMLR 12, 2011 (Algorithm 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

Floats = NDArray[np.float64]

# Half the width of the part of the Huber loss that is curved, as in the paper's experiments.
_HALF_WIDTH = 0.5
_SHARE = 0.1
_TOLERANCE = 1e-6


class Loss(NamedTuple):
    """A convex loss of margins, whose slope lies in [-1, 0].

    Parameters
    ----------
    at : callable
        Losses and slopes of an array of margins.
    curvature : float
        Bound of the second derivative.
    """

    at: Callable[[Floats], tuple[Floats, Floats]]
    curvature: float


def _logistic(margins: Floats) -> tuple[Floats, Floats]:
    return np.logaddexp(0, -margins), -expit(-margins)


def _huber(margins: Floats) -> tuple[Floats, Floats]:
    """The hinge, with a parabola from 1 - h to 1 + h instead of its corner."""
    above = 1 + _HALF_WIDTH - margins
    curved = np.clip(above, 0, 2 * _HALF_WIDTH)
    line = np.maximum(above - 2 * _HALF_WIDTH, 0)
    return curved**2 / (4 * _HALF_WIDTH) + line, -curved / (2 * _HALF_WIDTH)


LOSSES = {"logistic": Loss(_logistic, 1 / 4), "huber": Loss(_huber, 1 / (2 * _HALF_WIDTH))}


def scales(epsilon: float, curvature: float, penalty: float) -> tuple[float, float]:
    """Rate of the norm of the noise, and the penalty, for one record more or less.

    A released vector belongs to the noise that makes it the minimum. One record with features in
    the unit ball moves this noise by at most 1, because the slope of the loss is at most 1; its
    density changes by at most exp(rate). The determinant of the objective's curvature gains one
    term of rank one, and changes by at most 1 + curvature / penalty. Where this alone takes half
    of epsilon or more, the penalty is raised until it takes half.

    The paper replaces a record, that is, removes one and adds one: its algorithm at epsilon is this
    one at half of epsilon.

    Parameters
    ----------
    epsilon : float
    curvature : float
        Bound of the second derivative of the loss.
    penalty : float
        Weight of half the squared norm beside the sum of losses.

    Returns
    -------
    rate, penalty : float
    """
    rate = epsilon - math.log1p(curvature / penalty)
    if rate < epsilon / 2:
        return epsilon / 2, curvature / math.expm1(epsilon / 2)
    return rate, penalty


def noise(size: int, rate: float, rng: np.random.Generator) -> Floats:
    """A vector whose density falls with exp(-rate * norm): gamma norm, uniform direction."""
    direction = rng.normal(size=size)
    return direction / np.linalg.norm(direction) * rng.gamma(size, 1 / rate)


def unit_rows(rows: Any) -> Floats:
    """Rows with a constant 1 in front, those longer than 1 shrunk to norm 1."""
    rows = np.column_stack([np.ones(len(rows)), np.asarray(rows, dtype=np.float64)])
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)


class PrivateERM(ClassifierMixin, BaseEstimator):
    """A linear classifier by objective perturbation.

    Parameters
    ----------
    epsilon : float
        For one record more or less. With more than two classes each is told from the others at an
        equal share, since a record takes part in all of these.
    classes : sequence
        The public list of labels.
    loss : {"logistic", "huber"}, default="logistic"
        "huber" makes a support vector machine.
    penalty : float, default=None
        Weight of half the squared norm beside the sum of losses; public. The paper has the mean
        loss, and its weight is this one divided by the number of records. None: a tenth of the
        number of features over the epsilon of each class. (Chosen on electricity, phoneme and
        generated rows of 104 features; the paper tunes it.)
    random_state : int, default=0
    """

    def __init__(
        self,
        epsilon: float,
        classes: Any,
        loss: str = "logistic",
        penalty: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.classes = classes
        self.loss = loss
        self.penalty = penalty
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PrivateERM:
        """Minimise the perturbed objective of each class against the others."""
        loss = LOSSES[self.loss]
        rows, rng = unit_rows(X), np.random.default_rng(self.random_state)
        self.classes_ = np.asarray(sorted(self.classes))
        told = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        each = self.epsilon / len(told)
        penalty = _SHARE * rows.shape[1] / each if self.penalty is None else self.penalty
        rate, penalty = scales(each, loss.curvature, penalty)
        self.coef_ = np.stack(
            [
                _minimum(
                    rows * np.where(y == label, 1.0, -1.0)[:, None],
                    loss,
                    penalty,
                    noise(rows.shape[1], rate, rng),
                )
                for label in told
            ]
        )
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Most likely class of each row."""
        scores = unit_rows(X) @ self.coef_.T
        if len(self.coef_) == 1:
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(int)])
        return np.asarray(self.classes_[scores.argmax(axis=1)])


def _minimum(signed: Floats, loss: Loss, penalty: float, linear: Floats) -> Floats:
    """Weights with the least sum of losses, penalty and linear term."""

    def objective(weights: Floats) -> tuple[float, Floats]:
        losses, slopes = loss.at(signed @ weights)
        value = losses.sum() + penalty / 2 * weights @ weights + linear @ weights
        return float(value), slopes @ signed + penalty * weights + linear

    # The tolerance is one of the gradient of the mean loss.
    scale = 1 / max(len(signed), 1)

    def scaled(weights: Floats) -> tuple[float, Floats]:
        value, slope = objective(weights)
        return value * scale, slope * scale

    found = minimize(
        scaled,
        np.zeros(signed.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"gtol": _TOLERANCE, "maxiter": 1_000, "ftol": 0},
    )
    return np.asarray(found.x)
