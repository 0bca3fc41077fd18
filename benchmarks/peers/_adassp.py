"""AdaSSP, linear regression under approximate privacy: a published algorithm, in NumPy alone.

Y.-X. Wang, "Revisiting differentially private linear regression", UAI 2018, Algorithm 2. Its normal
noise is in floating point.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["ada_ssp"]

# Probability that the released sums are further off than the penalty assumes.
_FAILURE = 0.05


def ada_ssp(
    features: np.ndarray, target: np.ndarray, epsilon: float, delta: float, seed: int
) -> np.ndarray:
    """Coefficients from noisy sums of products, and a penalty chosen by a noisy eigenvalue.

    Parameters
    ----------
    features : ndarray of shape (n, p)
        The square root of the sum of squares of a row is at most 1.
    target : ndarray of shape (n,)
        Within -1 and 1.
    epsilon, delta : float
    seed : int
    """
    rng = np.random.default_rng(seed)
    size, each, log = features.shape[1], epsilon / 3, math.log(6 / delta)
    products = features.T @ features
    noise = math.sqrt(log) / each
    least = np.linalg.eigvalsh(products)[0] + noise * rng.normal() - log / each
    reach = math.sqrt(size * log * math.log(2 * size**2 / _FAILURE))
    penalty = max(0.0, reach / each - max(least, 0.0))
    spread = np.triu(rng.normal(size=(size, size)))
    products += noise * (spread + np.triu(spread, 1).T)
    cross = features.T @ target + noise * rng.normal(size=size)
    return np.asarray(np.linalg.solve(products + penalty * np.eye(size), cross))
