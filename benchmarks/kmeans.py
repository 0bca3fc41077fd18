"""Private k-means: excess mean squared distance of each algorithm.

NICV is the mean squared distance of a row to its nearest centroid, on data scaled to [-1, 1]. The
excess is the NICV minus that of scikit-learn's best of 50 starts: means over 20 fits, their
standard errors, and CPU seconds of a fit.

Run as ``python -m benchmarks.kmeans --out kmeans.json``; ``--quick`` uses three fits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from benchmarks import _data
from skdp import DPKMeans
from skdp.exceptions import InsecureSeedWarning

# Data sets and epsilons.
SETTINGS = [
    ("adult_numeric", 0.1),
    ("adult_numeric", 0.5),
    ("adult_numeric", 1.0),
    ("gauss2d_k15", 0.1),
    ("gauss2d_k15", 0.5),
    ("gauss6d_k8", 0.5),
    ("gauss10d_k8", 1.0),
    ("gauss10d_k3", 0.5),
    ("checkin", 0.1),
]
ALGORITHMS = ("auto", "hybrid", "lloyd")


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


def _summary(excess: list[float], seconds: list[float]) -> dict[str, float]:
    values = np.array(excess)
    return {
        "excess": float(values.mean()),
        "error": float(values.std() / len(values) ** 0.5),
        "worst": float(values.max()),
        "cpu": float(np.median(seconds)),
    }


def measure(name: str, epsilon: float, runs: int) -> dict[str, dict[str, float]]:
    """Excess and CPU seconds of every algorithm on a data set, run in turn."""
    data = _data.kmeans_set(name)
    X, k = np.asarray(data["X"], dtype=np.float64), int(data["n_clusters"])
    best = best_nicv(X, k)
    found: dict[str, tuple[list[float], list[float]]] = {a: ([], []) for a in ALGORITHMS}
    for seed in range(runs):
        for algorithm in ALGORITHMS:
            model, seconds = private_fit(X, k, epsilon, algorithm, seed)
            found[algorithm][0].append(nicv(X, model.cluster_centers_) - best)
            found[algorithm][1].append(seconds)
    return {algorithm: _summary(*figures) for algorithm, figures in found.items()}


def blobs(n: int, d: int, k: int, seed: int) -> NDArray[np.float64]:
    """Gaussian clusters of growing size in [-1, 1]^d."""
    generator = np.random.default_rng(seed)
    sizes = np.arange(1, k + 1) / sum(range(1, k + 1))
    labels = generator.choice(k, n, p=sizes)
    middles = generator.uniform(-0.7, 0.7, size=(k, d))
    X: NDArray[np.float64] = middles[labels] + generator.normal(0, 0.1, size=(n, d))
    return np.clip(X, -1, 1)


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--quick", action="store_true", help="three fits")
    arguments = parser.parse_args()
    runs = 3 if arguments.quick else 20
    results: list[dict[str, Any]] = []
    for name, epsilon in SETTINGS:
        print(f"{name}, epsilon {epsilon:g}")
        for algorithm, row in measure(name, epsilon, runs).items():
            print(
                f"  {algorithm:16s} {row['excess']:9.5f} +- {row['error']:.5f}"
                f"  worst {row['worst']:.4f}  {row['cpu']:.3f} s",
                flush=True,
            )
            results.append({"set": name, "epsilon": epsilon, "algorithm": algorithm, **row})
    _data.write_json(arguments.out, "kmeans", results)


if __name__ == "__main__":
    main()
