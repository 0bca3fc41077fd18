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
from .calibration import calibrate, newton_step, shared_weight
from .first import first_round, located, measure_columns
from .links import UNIT, Identity, Link, Logit, fixed
from .model import AdditiveModel, Draft, Prior
from .pairs import PairPlan, add_pairs
from .records import Records
from .tuning import TINY, TUNING

__all__ = ["additive_parts", "fit_additive", "known_share"]


def additive_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon: the number of records, and the model."""
    return split_epsilon(epsilon, {"total": TUNING.total, "model": 1 - TUNING.total})


@dataclass(frozen=True)
class _Plan:
    """Parts of the model's epsilon, chosen by released and public numbers."""

    first: Fraction
    weights: tuple[Fraction, ...] = ()
    rounds: tuple[Fraction, ...] = ()
    calibration: Fraction = Fraction(0)
    location: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Fraction, total: float, n_groups: int, link: Link) -> _Plan:
        signal = max(total, 1.0) * float(epsilon)
        calibration = known_share(epsilon, link, total)
        location = calibration if isinstance(link, Identity) else Fraction(0)
        epsilon -= calibration + location
        if calibration and signal < TUNING.weights_pay:
            return cls(epsilon, calibration=calibration, location=location)
        weights = (epsilon * TUNING.weights,) * 2
        epsilon -= sum(weights)
        n_rounds = int((signal / n_groups / TUNING.round_pays) ** (1 / 3))
        n_rounds = min(n_rounds, TUNING.most_rounds)
        first = epsilon * TUNING.first if n_rounds else epsilon
        rounds = ((epsilon - first) / max(n_rounds, 1),) * n_rounds
        return cls(first, weights, rounds, calibration, location)


def known_share(epsilon: Fraction, link: Link, total: float) -> Fraction:
    """What `located` and `calibrate` may spend, each: nothing with more than two classes."""
    if link.n_outputs > 1:
        return Fraction(0)
    share = TUNING.known / (max(total, 1.0) * float(epsilon))
    share = min(max(share, TUNING.least_known), TUNING.most_known)
    return epsilon * Fraction(round(share * 1000), 1000)


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
    for_pairs = epsilon * TUNING.pairs
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
    for part in plan.rounds:
        curvature = _round(records, link, draft, priors, curvature, part, random_state)
    if pairs is not None and for_pairs:
        left = add_pairs(records, link, draft, curvature, pairs, for_pairs, total, random_state)
        if left:
            _round(records, link, draft, priors, curvature, left, random_state)
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
    epsilon: Fraction,
    random_state: Any,
) -> FloatArray:
    """Learn from the residuals of the model so far; returns the curvature in each output."""
    # Privacy. Released: for each column the sums of residuals over groups. The residuals of a
    # record, whole numbers, sum to at most `link.reach`: the sensitivity of one column for
    # `measure_columns`. The step is a `newton_step` of one function, composed sequentially.
    records = records.at(draft.finished())
    n_columns, total = len(records.n_groups), max(float(np.mean([s.sum() for s in draft.sizes])), 1)
    exact = records.sums(link.n_outputs, lambda block: link.residuals(block.scores, block.labels))
    search = epsilon * TUNING.search
    noisy, variances = measure_columns(exact, epsilon - search, link.reach, random_state)
    found = []
    for column, prior in enumerate(priors):
        sizes = draft.sizes[column]
        for output in range(link.n_outputs):
            seen = noisy[column][:, output] / UNIT
            h = np.maximum(sizes * curvature[output] / total, TINY)
            # The mean of a column belongs to the intercept.
            seen = seen - h / h.sum() * seen.sum()
            noise = np.full(len(h), variances[column] / UNIT**2)
            found.append((column, output, prior.update(seen, h, noise + h), h, noise))
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
        TUNING.step,
        search,
        random_state,
    )
    for column, output, update, h, noise in found:
        draft.move(column, output, update, h, noise, float(weights.factors[0]))
    for column in range(n_columns):
        draft.centre(column)
    draft.intercept = draft.intercept + weights.intercept
    return weights.curvature
