"""Was this row in the table? By likelihood ratio and by nearest neighbours: scores of rows."""

from __future__ import annotations

import numpy as np

from .._types import CodeArray, FloatArray
from ..domain import Domain
from ._scene import Scene, distances, neighbours_among
from ._target import Target, counted

__all__ = ["likelihood_ratio", "nearest_neighbours"]

# Distances of this many pairs of rows are held at once: 20 MB a table.
_BLOCK = 5_000_000


def likelihood_ratio(target: Target, scene: Scene) -> FloatArray:
    """Log of the density of each row under the release over that of other rows.

    Both densities are smoothed with one record, spread as if columns were independent.

    References
    ----------
    B. van Breugel, H. Sun, Z. Qian, M. van der Schaar, "Membership inference attacks against
    synthetic data through overfitting detection", AISTATS 2023.
    """
    known = scene.reference if len(scene.reference) else target.rows
    spread = _independent(known, scene.codes, scene.domain.shape)
    count, total = target.counts(scene.codes)
    ratio = np.log(count + spread) - np.log(total + 1.0)
    if len(scene.reference):
        other = counted(scene.reference, scene.codes)
        ratio -= np.log(other + spread) - np.log(len(scene.reference) + 1.0)
    return ratio


def _independent(rows: CodeArray, codes: CodeArray, shape: tuple[int, ...]) -> FloatArray:
    """Probability of each of ``codes`` if columns were independent, with shares as in ``rows``."""
    log = np.zeros(len(codes))
    for axis, size in enumerate(shape):
        counts = np.bincount(rows[:, axis], minlength=size) + 1.0 / size
        log += np.log(counts[codes[:, axis]] / (len(rows) + 1.0))
    # Never zero, however many columns.
    return np.exp(np.maximum(log, -500.0))


def nearest_neighbours(target: Target, scene: Scene) -> FloatArray:
    """How much nearer the nearest synthetic row is than the nearest of other rows.

    Of each at most 20,000, drawn at random.

    References
    ----------
    D. Chen, N. Yu, Y. Zhang, M. Fritz, "GAN-Leaks: a taxonomy of membership inference attacks
    against generative models", CCS 2020.
    """
    near = nearest(scene.domain, scene.codes, neighbours_among(target.rows, scene.rng))
    if not len(scene.reference):
        return -near
    others = neighbours_among(scene.reference, scene.rng)
    return nearest(scene.domain, scene.codes, others) - near


def nearest(domain: Domain, codes: CodeArray, rows: CodeArray) -> FloatArray:
    """Distance of each row of codes from the nearest of ``rows``, summed over columns."""
    found = np.empty(len(codes))
    step = max(_BLOCK // max(len(rows), 1), 1)
    for start in range(0, len(codes), step):
        block = codes[start : start + step]
        apart = np.zeros((len(block), len(rows)), dtype=np.float32)
        for axis in range(len(domain)):
            apart += distances(domain, block, rows, axis)
        found[start : start + step] = apart.min(axis=1)
    return found
