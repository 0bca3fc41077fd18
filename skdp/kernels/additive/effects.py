"""Functions of a column from noisy sums: smooth along an order, shrunk where the noise is large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._types import FloatArray
from .model import Axis

__all__ = ["Prior", "Update"]

# Prior variance of a smooth function of an ordered column, of each of its groups by itself, and of
# a group without an order. They fit scores of logits, of which most lie within 3 of the mean.
_SMOOTH, _ROUGH, _FREE = 4.0, 0.25, 1.5
# Strength of the pull to the mean beside that of neighbours to each other.
_PULL = 1e-2
# Of a pair along one of its axes: variance that all places share, and of the rest the share that
# neighbours do not.
_SHARED, _OWN = 0.5, 0.2


@dataclass(frozen=True, eq=False)
class Update:
    """What a noisy sum says about a function of a column.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        Posterior mean.
    gain : ndarray of shape (n, n) or (n,)
        The mean is the gain times the observed sums; a vector stands for a diagonal matrix.
    """

    mean: FloatArray
    gain: FloatArray


class Prior:
    """A normal prior of the function of one column.

    Parameters
    ----------
    n_groups : int
    chain : ndarray of int or None
        The groups in an order in which neighbours are similar; groups that are left out, or all if
        None, have no neighbours.
    values : ndarray of shape (n_groups, n_values), default=None
        The function is linear in these values. None: any function.
    """

    def __init__(
        self, n_groups: int, chain: Sequence[int] | None, values: FloatArray | None = None
    ) -> None:
        self.covariance: FloatArray | None = None
        self.linear = values is not None
        self._free = np.full(n_groups, _FREE)
        if values is not None:
            self.covariance = _SMOOTH * values @ values.T
            return
        if chain is None or len(chain) < 3:
            return
        covariance = np.diag(self._free)
        places = np.ix_(chain, chain)
        covariance[places] = _SMOOTH * _walk(len(chain)) + _ROUGH * np.eye(len(chain))
        self.covariance = covariance

    @classmethod
    def of_pair(cls, first: Axis, second: Axis) -> Prior:
        """Of a function of two columns, by cells: also of what either column says alone.

        The functions of single columns come from fewer records times epsilon for each group, and
        the few places of an axis tell what they missed.
        """
        prior = cls(first.n_groups * second.n_groups, None)
        prior.covariance = np.asarray(np.kron(_along(first), _along(second)), dtype=np.float64)
        return prior

    def update(
        self,
        sums: FloatArray,
        curvature: FloatArray,
        noise: FloatArray,
        scales: Sequence[float] = (1.0,),
    ) -> Update:
        """Posterior of a function f given sums = curvature * f + noise.

        Parameters
        ----------
        sums, curvature, noise : ndarray of shape (n_groups,)
            What was observed, how much it moves with f, and its variance.
        scales : sequence of float
            Factors of the prior: the mean over all, each as likely as what was observed makes it.
        """
        found = [self._at(scale, sums, curvature, noise) for scale in scales]
        likely = np.array([pair[0] for pair in found])
        shares = np.exp(likely - likely.max())
        shares /= shares.sum()
        gain = sum((share * each.gain for share, (_, each) in zip(shares, found, strict=True)), 0.0)
        return Update(gain @ sums if np.ndim(gain) == 2 else gain * sums, np.asarray(gain))

    def within(self, function: FloatArray, most: float) -> FloatArray:
        """The function, cut to absolute values of at most ``most``; a line stays one."""
        if not self.linear:
            return np.clip(function, -most, most)
        return function * min(1.0, most / max(float(np.abs(function).max()), most))

    def _at(
        self, scale: float, sums: FloatArray, curvature: FloatArray, noise: FloatArray
    ) -> tuple[float, Update]:
        """Logarithm of the likelihood, up to a constant, and the update."""
        if self.covariance is None:
            spread = scale * self._free
            total = noise + spread * curvature**2
            gain = spread * curvature / total
            likely = -0.5 * float((sums**2 / total).sum() + np.log(total).sum())
            return likely, Update(gain * sums, gain)
        spread = scale * self.covariance
        total = curvature[:, None] * spread * curvature + np.diag(noise)
        factor = cho_factor(total, lower=True)
        gain = cho_solve(factor, curvature[:, None] * spread).T
        fit = float(sums @ cho_solve(factor, sums))
        likely = -0.5 * fit - float(np.log(np.diag(factor[0])).sum())
        return likely, Update(gain @ sums, gain)


def _along(axis: Axis) -> FloatArray:
    """Covariance along one axis of a pair: what all places share, and what sets them apart."""
    n, m = axis.n_groups, axis.n_ordered
    own = np.eye(n)
    if m > 2:
        centred = np.eye(m) - 1 / m
        smooth = centred @ _walk(m) @ centred
        own[:m, :m] = (1 - _OWN) * smooth * m / np.trace(smooth) + _OWN * np.eye(m)
    return np.asarray(_SHARED + (1 - _SHARED) * own)


@lru_cache(maxsize=64)
def _walk(n: int) -> FloatArray:
    """Covariance of a random walk over n groups with a weak pull to 0, of mean variance 1."""
    steps = np.diff(np.eye(n), axis=0)
    covariance = np.linalg.inv(steps.T @ steps * n / 8 + _PULL * np.eye(n))
    return np.asarray(covariance / np.trace(covariance) * n)
