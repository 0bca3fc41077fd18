"""HDPView: how the budget is divided, and the public parameters that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ..._validation import as_between, as_share, check_choice, split_epsilon
from ..stop_test import GRID, InRecords, StopTest, certified_test, quiet_floor, split_gain

# One record moves an aggregation error by less than 2, hence its rounding by at most this.
SENSITIVITY = 2 * GRID
# Largest domain that may be divided down to single cells.
_MOST_SINGLE_CELLS = 2**22


@dataclass(frozen=True)
class Calibration:
    """Public choices that turn a budget and a domain into `HDPViewParameters`; all keep privacy."""

    # Shares of the budget.
    converge: Fraction
    cut: Fraction
    counts: Fraction
    # delta = ln(alpha) * noise scale.
    alpha: Fraction
    # Most private cuts on a path.
    most_cuts: int | None
    # Level of the root: how many deltas are subtracted from its error. If it is negative, the first
    # cuts are made even in sparse tables, and delta matters less further down.
    root_level: int
    # Score by which a cut is chosen, a key of SCORES.
    score: str
    # Noise, bias and floor by the published formulas, not from the exact worst case.
    published: bool = False
    # Whether counts get what the cuts of a shallow path did not use.
    reuse: bool = False
    # Private cuts on a path, in multiples of log2(number of cells).
    beta: Fraction = Fraction(6, 5)


def published(alpha: Any = 1.6, beta: Any = 1.2, gamma: Any = 0.9, ratio: Any = 0.9) -> Calibration:
    """The paper's calibration with its four hyperparameters, by default as in its experiments.

    Parameters
    ----------
    alpha : number from 1.01 to 1000
    beta : number from 0.01 to 100
    gamma : number from 0.001 to 0.999
        The tests' share of what the blocks cost; the cuts have the rest.
    ratio : number from 0.001 to 0.999
        The blocks' share of epsilon; the counts have the rest.

    Raises
    ------
    TypeError, ValueError
        If one is no number, or out of range.
    """
    tests, blocks = as_share(gamma, "gamma"), as_share(ratio, "ratio")
    # The noise scale grows as 1 / (alpha - 1).
    rise = as_between(alpha, "alpha", Fraction(101, 100), 1000)
    depth = as_between(beta, "beta", Fraction(1, 100), 100)
    shares = (blocks * tests, blocks * (1 - tests), 1 - blocks)
    return Calibration(*shares, rise, None, 1, "error", published=True, beta=depth)


CALIBRATIONS = {
    # The constants are tuned on real tables at epsilon 0.1 and 1. None of them affects privacy,
    # which `converge_test` ensures for any constants.
    "tight": Calibration(
        Fraction(2, 5),
        Fraction(7, 20),
        Fraction(1, 4),
        Fraction(4),
        15,
        -2,
        "imbalance",
        reuse=True,
    ),
    "paper": published(),
}


@dataclass(frozen=True)
class HDPViewParameters(InRecords):
    """Parameters of `hdpview` from the budget and the domain; all of them are public.

    Attributes
    ----------
    kappa : int
        Private cuts on a path; deeper blocks are cut at random.
    score : {"imbalance", "error"}
        Score by which a cut is chosen; see `hdpview`.
    rate : Fraction
        The noise of a converge test is discrete Laplace, with this epsilon for a grid step.
    delta_steps, theta_steps, floor_steps : int
        Bias for each level, threshold, and smallest biased error, in grid steps.
    root_level : int
        Level of the root: a block ``depth`` levels below it is biased by
        ``(root_level + depth) * delta``.
    loss : float
        Certified bound of the privacy loss of all converge tests on one path.
    """

    kappa: int
    score: str
    rate: Fraction
    delta_steps: int
    theta_steps: int
    floor_steps: int
    root_level: int
    loss: float
    reuse: bool = False

    @property
    def step(self) -> float:
        """Grid step of errors and noise, in records."""
        return 1 / GRID

    @property
    def theta(self) -> float:
        """Threshold of the biased error, in records."""
        return self.theta_steps / GRID


def hdpview_parts(
    epsilon: Fraction, shape: Sequence[int], *, calibration: str | Calibration = "tight"
) -> dict[str, Fraction]:
    """Divide a budget among the converge tests, the cuts and the counts.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    calibration : {"tight", "paper"}, default="tight"

    Returns
    -------
    dict of str to Fraction
        Parts "converge", "cut" and "counts" that sum to ``epsilon``; "counts" alone for a domain
        of one cell.

    Raises
    ------
    ValueError
        If the calibration is unknown, or it is "paper" and epsilon so large that every block of
        a large domain would be cut down to its single cells.
    """
    rule = _rule(calibration)
    shares = {"counts": rule.counts}
    if math.prod(int(size) for size in shape) > 1:
        shares = {"converge": rule.converge, "cut": rule.cut, "counts": rule.counts}
    parts = split_epsilon(epsilon, shares)
    hdpview_parameters(parts, shape, calibration=calibration)
    return parts


def hdpview_parameters(
    parts: Mapping[str, Fraction], shape: Sequence[int], *, calibration: str | Calibration = "tight"
) -> HDPViewParameters:
    """Parameters of `hdpview`, computed from the budget and the domain alone.

    Parameters
    ----------
    parts : mapping of str to Fraction
        Budget for "converge", "cut" and "counts".
    shape : sequence of int
        Number of codes of each attribute.
    calibration : {"tight", "paper"}, default="tight"

    Returns
    -------
    HDPViewParameters

    Raises
    ------
    ValueError
        As `hdpview_parts`.
    """
    rule = _rule(calibration)
    cells = math.prod(int(size) for size in shape)
    # The threshold is the mean absolute noise of a count.
    theta = math.floor(GRID / parts["counts"] + Fraction(1, 2))
    if cells == 1:
        # Nothing is tested and nothing cut.
        return HDPViewParameters(
            0, rule.score, Fraction(1), SENSITIVITY, theta, theta, rule.root_level, 0.0, rule.reuse
        )
    test = converge_test(parts["converge"], rule)
    if (chance := split_at_floor(test)) > 0.5 and cells > _MOST_SINGLE_CELLS:
        most = math.log(rule.alpha) * (3 + 1 / (rule.alpha - 1)) / rule.converge
        raise ValueError(
            f"With calibration='paper' and {float(sum(parts.values())):g} of epsilon, even "
            f"an empty block is cut with probability {chance:.2f}: the {cells:.3g} "
            "cells of this domain would all become blocks of their own. Nothing was read or spent. "
            f"Use calibration='tight', or an epsilon below {float(most):.2g}."
        )
    # The logarithm of a power of two is exact; no other gives a whole number.
    kappa = max(math.floor(rule.beta * Fraction(math.log2(cells))), 1)
    return HDPViewParameters(
        kappa if rule.most_cuts is None else min(kappa, rule.most_cuts),
        rule.score,
        test.rate,
        test.delta,
        theta,
        theta + test.floor,
        rule.root_level,
        test.loss,
        rule.reuse,
    )


def _rule(calibration: str | Calibration) -> Calibration:
    if isinstance(calibration, Calibration):
        return calibration
    check_choice(calibration, "calibration", CALIBRATIONS)
    return CALIBRATIONS[calibration]


def _tight_test(rate: float, alpha: Fraction) -> tuple[int, int]:
    """Bias and floor, in grid steps relative to the threshold, for noise of this rate."""
    delta = math.ceil(math.log(alpha) / rate)
    return max(delta, SENSITIVITY), quiet_floor(rate, 2)


def _paper_test(rate: float, alpha: Fraction) -> tuple[int, int]:
    delta = math.ceil(math.log(alpha) / rate)
    return delta, SENSITIVITY - delta


@lru_cache(maxsize=256)
def converge_test(epsilon: Fraction, rule: Calibration) -> StopTest:
    """Converge test with the least noise of a calibration whose certified loss is within epsilon.

    The paper gives its noise by a formula, which is taken as the least. Beyond a total epsilon of
    2.7 its bias falls below the sensitivity and its floor, 2 - delta, rises above the threshold:
    still private, but then every block splits with probability above a half, empty ones too.
    """
    alpha = rule.alpha
    # The stop alone can cost the sensitivity times the rate.
    most = epsilon / SENSITIVITY
    if rule.published:
        most *= (alpha - 1) / (3 * alpha - 2)

    def test(rate: float) -> tuple[int, int]:
        return (_paper_test if rule.published else _tight_test)(rate, alpha)

    return certified_test(epsilon, most, test, SENSITIVITY)


def split_at_floor(test: StopTest) -> float:
    """Probability that an empty block is divided."""
    rate = float(test.rate)
    gain = split_gain(np.array([min(test.floor, 0)]), np.array([max(test.floor, 0)]), rate)[0]
    at_zero = 1 / (1 + math.exp(rate))
    return at_zero * math.exp(math.copysign(gain, test.floor))
