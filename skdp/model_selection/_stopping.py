"""A secret number of private runs, of which the best is released: its law, and what it costs.

Random stopping of Liu and Talwar [1]_ (a geometric number of runs), and the truncated negative
binomial laws of Papernot and Steinke [2]_, of which the geometric and the logarithmic are two.

References
----------
.. [1] J. Liu, K. Talwar, "Private selection from private candidates", STOC 2019.
.. [2] N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import numbers
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

from .._foreign import attempt, kept_apart
from .._random import NoiseSource, Tape
from .._validation import as_between
from ..exceptions import InsecureSeedWarning

__all__ = ["as_shape", "draw_runs", "mean_runs", "price_of_runs", "spread_of", "unseen"]

# Shapes below this have so heavy a tail that few runs are nearly always all there are.
_LEAST_SHAPE = Fraction(-1, 2)
_MOST_RUNS = 1_000


def as_shape(eta: Any) -> Fraction:
    """The shape of the law of the number of runs, exactly."""
    told = "0 is the logarithmic law, 1 the geometric one."
    return as_between(eta, "eta", _LEAST_SHAPE, 1, meaning=told)


def price_of_runs(epsilon: Fraction, eta: Fraction) -> Fraction:
    """What the best of a secret number of runs costs, each of which costs ``epsilon`` alone."""
    # Privacy. Let Q be the law of one run's outcome and f the generating function of the number of
    # runs K. Outcomes are ordered by their noisy scores; with u uniform between Q(better) and
    # Q(better or equal), P(y is released) = Q(y) E f'(1 - u). On a neighbour Q(y) changes by a
    # factor of at most e^epsilon, and so does u. For this law f'(x) is proportional to
    # (g + (1 - g)(1 - x))^-(eta + 1), which changes by at most e^((eta + 1) epsilon). Together:
    # (2 + eta) epsilon, whatever the expected number of runs. K itself must stay secret.
    return (2 + eta) * epsilon


def mean_runs(spread: int, eta: Fraction) -> float:
    """Expected number of runs, where a run is the last with probability 1 / ``spread``."""
    if spread == 1:
        return 1.0
    if eta == 0:
        return (spread - 1) / math.log(spread)
    shape = float(eta)
    return shape * (spread - 1) / (1 - spread**-shape)


def spread_of(runs: Any, eta: Fraction) -> int:
    """The least ``spread`` at which so many runs are expected."""
    known = isinstance(runs, numbers.Real) and not isinstance(runs, bool)
    if not known or not 1 <= float(runs) <= _MOST_RUNS:
        raise ValueError(
            f"runs must be a number between 1 and {_MOST_RUNS:,}, the expected number of runs, "
            f"got {runs!r}."
        )
    high = 1
    while mean_runs(high, eta) < float(runs):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if mean_runs(middle, eta) >= float(runs) else (middle, high)
    return high


def draw_runs(spread: int, eta: Fraction, source: NoiseSource) -> int:
    """Draw the secret number of runs, exactly: from uniform integers only.

    P(K = k) is proportional to (1 - 1/spread)^k times (1 + eta)(2 + eta)...(k - 1 + eta) / k!.

    Parameters
    ----------
    spread : int
        A run is the last with probability 1 / ``spread``, before the correction for ``eta``.
    eta : Fraction
        From -1/2 to 1.
    source : NoiseSource
    """
    if isinstance(source, Tape):
        # A tape adds up the losses of all runs that it sees: as many as the price would pay for,
        # if each were released. The mixture over secret numbers of runs costs less than most of
        # its parts, and is tested by its exact law.
        return 1 + source.below(math.floor(2 + eta))
    top, bottom = eta.numerator, eta.denominator
    while True:
        runs = 1
        while source.below(spread):
            # Going on with probability (runs + eta) / (runs + 1), else all over again, turns the
            # geometric law into that of eta.
            if source.below(bottom * (runs + 1)) >= bottom * runs + top:
                break
            runs += 1
        else:
            return runs


@contextlib.contextmanager
def unseen(generators: Iterable[Any] = ()) -> Iterator[Callable[[Iterable[int]], None]]:
    """Nothing that a run prints, logs, warns of or draws gets out: it would tell of the runs.

    Parameters
    ----------
    generators : iterable
        Those that runs share, besides the ones of the process.

    Yields
    ------
    callable
        Seeds all of them.
    """
    before = logging.root.manager.disable
    try:
        logging.disable(logging.CRITICAL)
        with (
            kept_apart(generators) as seed,
            _closed_descriptors(),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            # Where noise is seeded there is no secret.
            warnings.simplefilter("default", InsecureSeedWarning)
            yield seed
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _closed_descriptors() -> Iterator[None]:
    """Nothing is written to standard output and error: compiled code prints past Python's."""
    kept: list[tuple[int, int]] = []
    for stream in (sys.stdout, sys.stderr):
        # Its buffer holds what was printed before. Windows without a console has no streams.
        if stream is not None:
            attempt(stream.flush, None)
    try:
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            for descriptor in (1, 2):
                kept.append((descriptor, os.dup(descriptor)))
                os.dup2(nowhere.fileno(), descriptor)
        yield
    finally:
        for descriptor, own in kept:
            os.dup2(own, descriptor)
            os.close(own)
