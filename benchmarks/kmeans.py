"""Private k-means: fits, and the mean squared distance of a row to its nearest centroid (NICV)."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from skdp import DPKMeans
from skdp.exceptions import InsecureSeedWarning


def nicv(X: NDArray[np.float64], centers: NDArray[np.float64]) -> float:
    """Mean squared distance of the rows to their nearest centroids."""
    total = 0.0
    for first in range(0, len(X), 50_000):
        block = X[first : first + 50_000]
        table = (block**2).sum(axis=1)[:, None] - 2 * block @ centers.T + (centers**2).sum(axis=1)
        total += float(table.min(axis=1).sum())
    return total / len(X)


def best_nicv(X: NDArray[np.float64], k: int) -> float:
    """NICV of scikit-learn's best of 50 starts."""
    return nicv(X, KMeans(k, n_init=50, random_state=0).fit(X).cluster_centers_)


def private_fit(
    X: NDArray[np.float64], k: Any, epsilon: float, algorithm: str, seed: int, **changes: Any
) -> tuple[DPKMeans, float]:
    """A fit from a seed, and its CPU seconds."""
    changes = {"domain": (-1, 1), "algorithm": algorithm, "random_state": seed, **changes}
    model = DPKMeans(k, epsilon=epsilon, **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        begin = time.process_time()
        model.fit(X)
        return model, time.process_time() - begin


def blobs(n: int, d: int, k: int, seed: int) -> NDArray[np.float64]:
    """Gaussian clusters of growing size in [-1, 1]^d."""
    generator = np.random.default_rng(seed)
    sizes = np.arange(1, k + 1) / sum(range(1, k + 1))
    labels = generator.choice(k, n, p=sizes)
    middles = generator.uniform(-0.7, 0.7, size=(k, d))
    X: NDArray[np.float64] = middles[labels] + generator.normal(0, 0.1, size=(n, d))
    return np.clip(X, -1, 1)
