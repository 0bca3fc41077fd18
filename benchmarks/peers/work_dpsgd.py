"""Jobs done with DP-SGD: a softmax regression on indicators, with the accountant of dp-accounting.

Nothing is tuned: batches of 512 records on average, 20 epochs, a step of 2, gradients clipped to
norm 1 (rows are scaled to norm 1), and the mean of the second half of all iterates. The number of
records is taken as known, and the noise is in floating point.
"""

from __future__ import annotations

import dp_accounting
import numpy as np
from _worker import indicators, main
from dp_accounting.pld import PLDAccountant

BATCH, EPOCHS, STEP = 512, 20, 2.0


def event(noise, rate, steps):
    """Steps of Gaussian noise on Poisson samples."""
    gaussian = dp_accounting.GaussianDpEvent(noise)
    return dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(rate, gaussian), steps
    )


def softmax(scores):
    """Shares of the classes."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def classify(data, job, clock):
    """Shares of the labels of other rows."""
    shape = data["shape"][:-1]
    codes, labels = data["codes"][:, :-1], data["codes"][:, -1]
    X, asked = (
        np.column_stack([indicators(part, shape), np.ones(len(part))]) / np.sqrt(len(shape) + 1)
        for part in (codes, data["asked"])
    )
    y = np.eye(int(data["shape"][-1]))[labels]
    rate = min(BATCH / len(X), 1.0)
    steps = round(EPOCHS / rate)
    rng = np.random.default_rng()
    with clock:
        noise = dp_accounting.calibrate_dp_mechanism(
            lambda: PLDAccountant(value_discretization_interval=1e-3),
            lambda scale: event(scale, rate, steps),
            job["epsilon"],
            job["delta"],
            dp_accounting.LowerEndpointAndGuess(0.1, 2.0),
            tol=1e-2,
        )
        weights = np.zeros((X.shape[1], y.shape[1]))
        total = np.zeros_like(weights)
        for step in range(steps):
            rows = rng.random(len(X)) < rate
            missed = softmax(X[rows] @ weights) - y[rows]
            # The norm of a gradient is that of the row, 1, times that of what is missed.
            missed /= np.maximum(np.linalg.norm(missed, axis=1, keepdims=True), 1.0)
            gradient = X[rows].T @ missed + rng.normal(0, noise, weights.shape)
            weights -= STEP / (rate * len(X)) * gradient
            total += weights if 2 * step >= steps else 0
        weights = total / (steps - (steps + 1) // 2)
    return {"shares": softmax(asked @ weights)}


if __name__ == "__main__":
    main({"classify/softmax": classify})
