"""Guesses of membership, and the lower bound on epsilon that follows from how many are right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._types import BoolArray, FloatArray, IntArray
from ..audit._bounds import clopper_pearson

__all__ = ["Guesses", "confident_guesses", "epsilon_lower_bound"]


def epsilon_lower_bound(right: int, made: int, alpha: float) -> float:
    """Lower bound on epsilon from one run; wrong with a probability of at most ``alpha``.

    Each row was in the table or not by a fair coin of its own. Given the release, whatever it is, a
    coin shows either side with a probability of at most ``p = e^epsilon / (1 + e^epsilon)``, also
    given the coins before it. So the number of right guesses, given how many the release lets one
    make, is at most binomial with this p, and a lower confidence bound on p is one on epsilon.
    Abstaining is free.

    Parameters
    ----------
    right, made : int
        Guesses; their choice may depend on the release in any way, and on no coin otherwise.
    alpha : float

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
    theorem 5.2 with delta = 0.
    """
    if made == 0:
        return 0.0
    share = float(clopper_pearson(right, made, alpha)[0])
    return max(math.log(share / (1.0 - share)), 0.0) if share > 0 else 0.0


@dataclass(frozen=True)
class Guesses:
    """Guesses about rows: 1 in the table, -1 not in it, 0 none; and the truth."""

    made: IntArray
    member: BoolArray

    @property
    def n(self) -> int:
        """How many were made."""
        return int(np.count_nonzero(self.made))

    @property
    def right(self) -> int:
        """How many are right."""
        return int(((self.made > 0) & self.member).sum() + ((self.made < 0) & ~self.member).sum())

    def share_of(self, member: bool) -> float:
        """Share of the members, or of the others, that were guessed to be members."""
        some = self.made[self.member == member]
        return float((some > 0).mean()) if len(some) else 0.0


def confident_guesses(scores: FloatArray, share: float, rng: np.random.Generator) -> IntArray:
    """Guess "in" for the highest scores and "out" for the lowest, as many of each.

    Parameters
    ----------
    scores : ndarray of float, shape (n,)
        The higher, the more likely a member. Ties are broken at random.
    share : float
        Share of the rows about which a guess is made.
    rng : numpy.random.Generator
    """
    order = np.lexsort((rng.permutation(len(scores)), scores))
    half = min(max(int(round(share * len(scores) / 2)), 1), len(scores) // 2)
    made = np.zeros(len(scores), dtype=np.int64)
    if half:
        made[order[-half:]], made[order[:half]] = 1, -1
    return made
