"""How accurate selections are: bounds before they are made, and errors where the truth is known.

With the names of Su's dissertation, section 5.4: alpha_SVT is `sparse_vector_alpha`, alpha_EM
`exponential_alpha`, FNR `false_negative_rate` and SER `score_error_rate`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import FloatArray, IntArray, as_between, as_epsilon, as_integer


def sparse_vector_alpha(n_queries: int, epsilon: Any, beta: float = 0.05) -> float:
    """Distance from the threshold that a sparse vector decides rightly, by its published bound.

    Parameters
    ----------
    n_queries : int
        Length of the stream, of counts of which only the last is near or above the threshold.
    epsilon : number or Fraction
        For one positive answer.
    beta : float, default=0.05
        Probability of an error.

    Returns
    -------
    float
        8 (log n + log(2 / beta)) / epsilon: all answers below the threshold less this are negative,
        and those above it and this are positive, with probability 1 - beta.

    Examples
    --------
    >>> from skdp.mechanisms import exponential_alpha, sparse_vector_alpha
    >>> round(sparse_vector_alpha(1000, 1.0)), round(exponential_alpha(1000, 1.0))
    (85, 10)
    """
    n, share = as_integer(n_queries, "n_queries", 1), _as_beta(beta)
    return 8 * (math.log(n) + math.log(2 / share)) / float(as_epsilon(epsilon))


def exponential_alpha(n_queries: int, epsilon: Any, beta: float = 0.05) -> float:
    """Half the lead at which the exponential mechanism selects the right one of many counts.

    Parameters
    ----------
    n_queries : int
        At least 2.
    epsilon : number or Fraction
    beta : float, default=0.05
        Probability of an error.

    Returns
    -------
    float
        (log(n - 1) + log((1 - beta) / beta)) / epsilon, for counts that move either way: the one
        that is larger than all others by twice this is selected with probability 1 - beta.
    """
    n, share = as_integer(n_queries, "n_queries", 2), _as_beta(beta)
    return (math.log(n - 1) + math.log((1 - share) / share)) / float(as_epsilon(epsilon))


def false_negative_rate(values: ArrayLike, selected: ArrayLike, k: int) -> float:
    """Share of the k largest values that a selection misses: exact, for public values only.

    Parameters
    ----------
    values : array-like of shape (n,)
        True values. Among equal ones it does not matter which are selected.
    selected : array-like of int, shape (at most k,)
        Positions that were selected, as of `top_k` or `sparse_vector_top_k`.
    k : int

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.mechanisms import false_negative_rate, score_error_rate
    >>> values = [50, 40, 30, 20]
    >>> false_negative_rate(values, [0, 2], k=2), round(score_error_rate(values, [0, 2], k=2), 2)
    (0.5, 0.11)
    """
    found, best = _selected(values, selected, k)
    return 1 - min(int((found >= best.min()).sum()), len(best)) / len(best)


def score_error_rate(values: ArrayLike, selected: ArrayLike, k: int) -> float:
    """By how much less selected values are on average than the k largest: for public values only.

    Parameters
    ----------
    values, selected, k
        As for `false_negative_rate`.

    Returns
    -------
    float
        1 less the mean of the selected values divided by that of the k largest; 1 where none is
        selected.
    """
    found, best = _selected(values, selected, k)
    return 1 - float(found.mean() / best.mean()) if found.size else 1.0


def _selected(values: ArrayLike, selected: ArrayLike, k: int) -> tuple[FloatArray, FloatArray]:
    """The selected values, and the k largest."""
    given, places = np.asarray(values, dtype=np.float64), np.asarray(selected)
    n = as_integer(k, "k", 1)
    if given.ndim != 1 or n > given.size or len(np.unique(places)) != places.size:
        raise ValueError(
            f"k={k} of {given.size} values were to be selected, each once: got {places.size} "
            "positions. Give one-dimensional values, and each position once."
        )
    chosen: IntArray = places.astype(np.int64).ravel()
    return given[chosen], np.sort(given)[-n:]


def _as_beta(beta: Any) -> float:
    return float(as_between(beta, "beta", 1e-300, 1 - 1e-9, meaning="it is a probability."))
