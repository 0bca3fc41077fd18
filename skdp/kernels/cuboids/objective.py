"""What the optimized plan minimises: the largest or the mean variance after least squares.

The variances are smooth in the shares e = softmax(t) of the budget, but not convex: a source that
has no budget has no gradient either. Only the ratios of budgets matter, so the variance of the
noise counts as 2 / e**2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from ..._types import FloatArray
from .lattices import Lattice

__all__ = ["Objective", "Solution"]

Places = NDArray[np.integer]

# A source with a smaller share of the budget is dropped.
_TINY_SHARE = 1e-5


@dataclass(frozen=True, eq=False)
class Solution:
    """Sources with their shares of the budget, and the objective there at epsilon 1."""

    value: float
    places: Places
    share: FloatArray


class Objective:
    """The largest or mean variance of the published cuboids, as a function of the budgets.

    Parameters
    ----------
    cube : Lattice
    weights : ndarray of float64, shape (m,), or None
        Weights of the mean; None for the largest variance.

    Attributes
    ----------
    evaluations : int
        Work done so far, in evaluations of the objective.
    """

    def __init__(self, cube: Lattice, weights: FloatArray | None) -> None:
        self.cube = cube
        # Rows: interactions that must be known. Those without freedom are zero.
        needed = np.flatnonzero(cube.published & (cube.freedom > 0))
        wanted = np.flatnonzero(cube.published)
        self.freedom = cube.freedom[needed]
        self.squared = cube.cells[wanted] ** 2
        above = cube.above[needed]
        below = cube.above[needed][:, wanted].T
        dense = len(cube) <= 512
        self.above = above.toarray() if dense else above.tocsc()
        self.below = np.ascontiguousarray(below.toarray()) if dense else below.tocsr()
        self.mean = None if weights is None else weights[wanted] / weights[wanted].sum()
        self.evaluations = 0

    def covers(self, places: Places) -> bool:
        """Whether these sources determine everything that is wanted."""
        return bool((np.asarray(self.above[:, places].sum(axis=1)).ravel() > 0).all())

    def value(self, places: Places, share: FloatArray) -> float:
        """The objective for these sources and shares."""
        precision = self.above[:, places] @ (share**2 / (2 * self.cube.cells[places]))
        variance = (self.below @ (self.freedom / precision)) / self.squared
        return float(variance.max() if self.mean is None else self.mean @ variance)

    def values(self, shares: FloatArray, power: float) -> FloatArray:
        """The objective, with a smoothed maximum, for each column of shares of all cuboids."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            precision = self.above @ (shares**2 / (2 * self.cube.cells[:, None]))
            variance = (self.below @ (self.freedom[:, None] / precision)) / self.squared[:, None]
            if self.mean is not None:
                result = self.mean @ variance
            else:
                top = variance.max(axis=0)
                result = top * ((variance / top) ** power).sum(axis=0) ** (1 / power)
        # One call for many columns costs less than a call for each.
        self.evaluations += shares.shape[1] // 4
        return np.where(np.isfinite(result), result, np.inf)

    def slope(
        self, above: Any, cells: FloatArray, logits: FloatArray, power: float
    ) -> tuple[float, FloatArray]:
        """Logarithm of the smoothed objective and its gradient in the logits.

        Parameters
        ----------
        above : array of shape (n_needed, n_sources)
            The columns of ``self.above`` of the sources.
        cells : ndarray of float64, shape (n_sources,)
            Number of cells of each source.
        logits : ndarray of float64, shape (n_sources,)
            The shares are their softmax.
        power : float
            The maximum is smoothed to a norm of this power.
        """
        self.evaluations += 1
        # The floor keeps precisions positive where a share would underflow.
        share = np.exp(np.maximum(logits - logits.max(), -20.0))
        share /= share.sum()
        precision = above @ (share * share / (2 * cells))
        ratio = self.freedom / precision
        variance = (self.below @ ratio) / self.squared
        if self.mean is not None:
            total = float(self.mean @ variance)
            value, slope = math.log(total), self.mean / total
        else:
            top = variance.max()
            relative = (variance / top) ** power
            total = float(relative.sum())
            value, slope = math.log(top) + math.log(total) / power, relative / variance / total
        # Chain rule: variances <- precisions <- shares <- logits.
        by_precision = -(self.below.T @ (slope / self.squared)) * ratio / precision
        by_share = (above.T @ by_precision) * share / cells
        return value, share * (by_share - share @ by_share)

    def descend(
        self,
        places: Places,
        share: FloatArray,
        powers: tuple[float, ...],
        steps: int,
        tolerance: float = 1e-7,
    ) -> Solution:
        """Improve the shares of given sources; sources that end without budget are dropped.

        The maximum is smoothed with each of the powers in turn, more and more sharply.
        """
        above, cells = self.above[:, places], self.cube.cells[places]
        logits = np.log(np.maximum(share, 1e-6))
        for power in powers if self.mean is None else powers[-1:]:
            found = optimize.minimize(
                lambda x, power=power: self.slope(above, cells, x, power),
                logits,
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": steps, "maxcor": 15, "ftol": tolerance, "gtol": 1e-9},
            )
            logits = found.x
        share = np.exp(logits - logits.max())
        share /= share.sum()
        kept = share > _TINY_SHARE
        if not kept.all() and self.covers(places[kept]):
            places, share = places[kept], share[kept] / share[kept].sum()
        return Solution(self.value(places, share), places, share)
