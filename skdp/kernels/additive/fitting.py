"""Fit an additive model: histograms, weights of the columns, and rounds of residuals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray
from ..._validation import split_epsilon
from ...mechanisms import discrete_laplace_variance
from .calibration import Spread, calibrate, newton_step, shared_weight
from .first import first_round, located, measure_columns
from .links import UNIT, Identity, Link, Logit, fixed
from .model import AdditiveModel, Draft, Prior
from .pairs import PairPlan, add_pairs
from .records import Records

__all__ = ["additive_parts", "calibration_share", "fit_additive", "location_share"]

# Scales of the prior that are tried for functions of residuals.
_SCALES = tuple(np.geomspace(1e-5, 0.3, 12).tolist())
# Below this signal (records times epsilon) one factor of all columns is known better than a weight
# of each.
_WEIGHTS_PAY = 4_000.0
# Signal that a calibration takes.
_CALIBRATION = 250.0
# Signal that the mean and the spread of a number take.
_LOCATION = 100.0
# Below this signal (records times epsilon, for each group) residuals are lost in noise.
_LEAST_SIGNAL = 60.0
_MOST_ROUNDS = 8
# Share of functions of two columns, where they may pay; what they leave goes to one more round.
_PAIRS = Fraction(1, 4)
# Step towards the function that residuals of one column ask for, before the line search.
_STEP = 0.5
# What weights of columns, and steps along residuals, are expected to be.
_OF_COLUMNS, _OF_STEPS = Spread(0.3, 0.3, 0.15), Spread(0.1, 0.3, 0.15)


def additive_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon: the number of records, and the model."""
    return split_epsilon(epsilon, {"total": Fraction(1, 50), "model": Fraction(49, 50)})


@dataclass(frozen=True)
class _Plan:
    """Parts of the model's epsilon, chosen by released and public numbers."""

    first: Fraction
    weights: tuple[Fraction, ...] = ()
    rounds: tuple[tuple[Fraction, Fraction], ...] = ()
    calibration: Fraction = Fraction(0)
    location: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Fraction, total: float, n_groups: int, link: Link) -> _Plan:
        signal = max(total, 1.0) * float(epsilon)
        location = Fraction(0)
        if isinstance(link, Identity):
            location = location_share(epsilon, total)
        calibration = calibration_share(epsilon, link, total)
        epsilon -= calibration + location
        if calibration and signal < _WEIGHTS_PAY:
            return cls(epsilon, calibration=calibration, location=location)
        if signal / n_groups < _LEAST_SIGNAL:
            weights = (epsilon * Fraction(3, 40),) * 2
            return cls(epsilon * Fraction(17, 20), weights, (), calibration, location)
        n_rounds = round(2.0 ** (math.log10(signal / n_groups) - 2.0))
        n_rounds = min(max(n_rounds, 1), _MOST_ROUNDS)
        # The fewer rounds, the more is left to the first one to say.
        first, weight = (20, 3) if n_rounds == 1 else (12, 4)
        each = epsilon * Fraction(40 - first - 2 * weight, 40) / n_rounds
        sums = each * Fraction(9, 10)
        rounds = ((sums, each - sums),) * n_rounds
        weights = (epsilon * Fraction(weight, 40),) * 2
        return cls(epsilon * Fraction(first, 40), weights, rounds, calibration, location)


def _share(epsilon: Fraction, share: float, most: float) -> Fraction:
    return epsilon * Fraction(round(min(max(share, 0.01), most) * 1000), 1000)


def calibration_share(epsilon: Fraction, link: Link, total: float) -> Fraction:
    """What `calibrate` may spend: nothing where there are more than two classes."""
    if link.n_outputs > 1:
        return Fraction(0)
    return _share(epsilon, _CALIBRATION / (max(total, 1.0) * float(epsilon)), 0.15)


def location_share(epsilon: Fraction, total: float) -> Fraction:
    """What `located` may spend."""
    return _share(epsilon, _LOCATION / (max(total, 1.0) * float(epsilon)), 0.2)


def fit_additive(
    records: Records,
    link: Logit | Identity,
    priors: Sequence[Prior],
    epsilon: Fraction,
    total: float,
    random_state: Any,
    pairs: PairPlan | None = None,
) -> AdditiveModel:
    """Fit an additive model to records.

    Parameters
    ----------
    records : Records
    link : Logit or Identity
    priors : sequence of Prior
        What the function of each column may look like.
    epsilon : Fraction
        The part "model".
    total : float
        Released number of records.
    random_state : NoiseSource
    pairs : PairPlan, default=None
        Which functions of two columns are wanted. None: none.

    Returns
    -------
    AdditiveModel
    """
    # Privacy. Released, by sequential composition: the histograms of the first round, the moments
    # of two Newton steps, sums of residuals, the choice and sums of pairs, and a histogram of
    # scores. Which of them there are and what each may spend follows from the released number of
    # records, public facts, and released choices, and sums to epsilon. Each step uses nothing but
    # what was released before it.
    for_pairs = epsilon * _PAIRS
    if pairs is None or not pairs.most(max(total, 1.0) * float(for_pairs)):
        for_pairs = Fraction(0)
    plan = _Plan.of(epsilon - for_pairs, total, sum(records.n_groups), link)
    if isinstance(link, Identity):
        link = located(records, link, plan.location, total, random_state)
        # The released number that the sum was divided by has noise too.
        parts = additive_parts(Fraction(1))
        noise = discrete_laplace_variance(epsilon * parts["total"] / parts["model"]) ** 0.5
        link.std = math.hypot(link.std, link.centre * min(noise / max(total, 1.0), 1.0))
    draft = first_round(records, link, priors, plan.first, total, random_state)
    centre = 1.0
    if plan.weights:
        curvature = _weigh(records, link, draft, plan.weights, random_state)
    else:
        centre = shared_weight(len(priors))
        curvature = max(total, 1.0) * link.curvature(draft.intercept[None])[0]
    for sums, search in plan.rounds:
        curvature = _round(records, link, draft, priors, curvature, sums, search, random_state)
    if pairs is not None and for_pairs:
        left = add_pairs(records, link, draft, curvature, pairs, for_pairs, total, random_state)
        if left:
            sums = left * Fraction(9, 10)
            _round(records, link, draft, priors, curvature, sums, left - sums, random_state)
    if plan.calibration:
        calibrate(records, link, draft, centre, plan.calibration, total, random_state)
    return draft.finished()


def _weigh(
    records: Records,
    link: Link,
    draft: Draft,
    epsilons: Sequence[Fraction],
    random_state: Any,
) -> FloatArray:
    """Give the columns weights; returns the mean curvature in each output."""
    alone = draft.copy()
    n_columns = len(records.n_groups)
    centre = shared_weight(n_columns)
    factors = np.full(n_columns, centre)
    draft.weigh(alone, factors, np.zeros(n_columns))
    tables = [fixed(shape) for shape in alone.shapes]
    curvature = np.zeros(link.n_outputs)
    for epsilon in epsilons:
        found = newton_step(
            records.at(draft.finished()),
            link,
            lambda groups: np.stack([t.take(groups[:, j], axis=0) for j, t in enumerate(tables)]),
            factors,
            centre,
            _OF_COLUMNS,
            epsilon,
            random_state,
        )
        factors, curvature = found.factors, found.curvature
        draft.weigh(alone, factors, found.variances)
        draft.intercept = draft.intercept + found.intercept
    return curvature


def _round(
    records: Records,
    link: Link,
    draft: Draft,
    priors: Sequence[Prior],
    curvature: FloatArray,
    sums: Fraction,
    search: Fraction,
    random_state: Any,
) -> FloatArray:
    """Learn from the residuals of the model so far; returns the curvature in each output."""
    # Privacy. Released: for each column the sums of residuals over groups. The residuals of a
    # record, whole numbers, sum to at most `link.reach`: the sensitivity of one column for
    # `measure_columns`. The step is a `newton_step` of one function, composed sequentially.
    records = records.at(draft.finished())
    n_columns, total = len(records.n_groups), max(float(np.mean([s.sum() for s in draft.sizes])), 1)
    exact = records.sums(link.n_outputs, lambda block: link.residuals(block.scores, block.labels))
    noisy, variances = measure_columns(exact, sums, link.reach, random_state)
    found = []
    for column, prior in enumerate(priors):
        sizes = draft.sizes[column]
        for output in range(link.n_outputs):
            seen = noisy[column][:, output] / UNIT
            h = np.maximum(sizes * curvature[output] / total, 1e-9)
            # The mean of a column belongs to the intercept.
            seen = seen - h / h.sum() * seen.sum()
            noise = np.full(len(h), variances[column] / UNIT**2)
            found.append((column, output, prior.update(seen, h, noise + h, _SCALES), h, noise))
    steps = [np.zeros_like(shape) for shape in draft.shapes]
    for column, output, update, h, _ in found:
        steps[column][:, output] = update.mean - h / h.sum() @ update.mean
    tables = [fixed(step) for step in steps]
    weights = newton_step(
        records,
        link,
        lambda groups: sum(
            (t.take(groups[:, j], axis=0)[None] for j, t in enumerate(tables)), np.zeros(1, int)
        ),
        np.zeros(1),
        _STEP,
        _OF_STEPS,
        search,
        random_state,
    )
    for column, output, update, h, noise in found:
        draft.move(column, output, update, h, noise, float(weights.factors[0]))
    for column in range(n_columns):
        draft.centre(column)
    draft.intercept = draft.intercept + weights.intercept
    return weights.curvature
