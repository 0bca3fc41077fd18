"""What a guarantee of epsilon allows an attack to achieve, on average over its noise."""

from __future__ import annotations

import math

__all__ = ["allowed_hits", "allowed_right"]


def allowed_right(epsilon: float) -> float:
    """Largest expected share of right guesses of membership, where the odds are even before.

    Parameters
    ----------
    epsilon : float
    """
    return 1.0 / (1.0 + math.exp(-min(epsilon, 700.0)))


def allowed_hits(epsilon: float, others: float) -> float:
    """Largest expected share of members that an attack hits, given the share of others it hits.

    A record that is in the table is hit with at most e^epsilon times the probability that it would
    have outside of it; and it is missed with at least e^-epsilon times that probability.

    Parameters
    ----------
    epsilon : float
    others : float
        Share of rows hit among those that are not in the table.
    """
    factor = math.exp(min(epsilon, 700.0))
    return min(factor * others, 1.0 - (1.0 - others) / factor)
