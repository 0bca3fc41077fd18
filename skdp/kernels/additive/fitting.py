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
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .draft import Draft
from .effects import Prior
from .first import first_round
from .links import UNIT, Identity, Link, Logit, fixed
from .model import AdditiveModel
from .records import Records
from .scaling import Spread, newton_step

__all__ = ["additive_parts", "fit_additive"]

# Scales of the prior that are tried for functions of residuals.
_SCALES = tuple(np.geomspace(1e-5, 0.3, 12).tolist())
# Below this signal (records times epsilon, for each group) residuals are lost in noise.
_LEAST_SIGNAL = 60.0
_MOST_ROUNDS = 8
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
    weights: tuple[Fraction, ...]
    rounds: tuple[tuple[Fraction, Fraction], ...]

    @classmethod
    def of(cls, epsilon: Fraction, total: float, n_groups: int) -> _Plan:
        signal = max(total, 1.0) * float(epsilon) / n_groups
        if signal < _LEAST_SIGNAL:
            return cls(epsilon * Fraction(17, 20), (epsilon * Fraction(3, 40),) * 2, ())
        n_rounds = round(2.0 ** (math.log10(signal) - 2.0))
        n_rounds = min(max(n_rounds, 1), _MOST_ROUNDS)
        first = Fraction(2, 5) if n_rounds == 1 else Fraction(3, 10)
        each = epsilon * (Fraction(4, 5) - first) / n_rounds
        sums = each * Fraction(9, 10)
        return cls(epsilon * first, (epsilon / 10,) * 2, ((sums, each - sums),) * n_rounds)


def fit_additive(
    records: Records,
    link: Logit | Identity,
    priors: Sequence[Prior],
    epsilon: Fraction,
    total: float,
    random_state: Any,
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

    Returns
    -------
    AdditiveModel
    """
    # Privacy. Released, by sequential composition: the histograms of the first round, the moments
    # of two Newton steps, and sums of residuals. How many there are and what each may spend
    # follows from the released number of records and public facts, and sums to epsilon. Each step
    # uses nothing but what was released before it.
    plan = _Plan.of(epsilon, total, sum(records.n_groups))
    draft = first_round(records, link, priors, plan.first, total, random_state)
    curvature = _weigh(records, link, draft, plan.weights, random_state)
    for sums, search in plan.rounds:
        curvature = _round(records, link, draft, priors, curvature, sums, search, random_state)
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
    # The more columns, the more of what one says was said by others.
    centre = 1.0 / math.sqrt(1.0 + 0.25 * (n_columns - 1))
    factors = np.full(n_columns, centre)
    draft.weigh(alone, factors, np.zeros(n_columns))
    tables = [fixed(shape) for shape in alone.shapes]
    curvature = np.zeros(link.n_outputs)
    for epsilon in epsilons:
        found = newton_step(
            records,
            link,
            draft.finished().exact_scores,
            lambda groups: np.stack([t[groups[:, j]] for j, t in enumerate(tables)], axis=1),
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
    # Privacy. Released: for each of d columns the sums of residuals over groups. The residuals of
    # a record, whole numbers, sum to at most `link.reach` units: sensitivity d times that. The
    # step is a `newton_step` of one function, composed sequentially.
    model = draft.finished()
    n_columns, total = len(records.n_groups), max(float(np.mean([s.sum() for s in draft.sizes])), 1)
    noisy = _residual_sums(records, link, model, sums, random_state)
    variance = discrete_laplace_variance(sums, n_columns * link.reach * UNIT) / UNIT**2
    found = []
    for column, prior in enumerate(priors):
        sizes = draft.sizes[column]
        for output in range(link.n_outputs):
            seen = noisy[column][:, output]
            h = np.maximum(sizes * curvature[output] / total, 1e-9)
            # The mean of a column belongs to the intercept.
            seen = seen - h / h.sum() * seen.sum()
            noise = np.full(len(h), variance)
            found.append((column, output, prior.update(seen, h, noise + h, _SCALES), h, noise))
    steps = [np.zeros_like(shape) for shape in draft.shapes]
    for column, output, update, h, _ in found:
        steps[column][:, output] = update.mean - h / h.sum() @ update.mean
    tables = [fixed(step) for step in steps]
    weights = newton_step(
        records,
        link,
        model.exact_scores,
        lambda groups: np.sum([t[groups[:, j]] for j, t in enumerate(tables)], axis=0)[:, None],
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


def _residual_sums(
    records: Records, link: Link, model: AdditiveModel, epsilon: Fraction, random_state: Any
) -> list[FloatArray]:
    """Noisy sums of residuals of each group of each column, in records."""
    exact = [np.zeros((n, link.n_outputs), dtype=np.int64) for n in records.n_groups]
    for block in records.blocks():
        residuals = link.residuals(model.exact_scores(block.groups), block.labels)
        for column, table in enumerate(exact):
            for output in range(link.n_outputs):
                table[:, output] += block.sums(column, residuals[:, output])
    reach = len(exact) * link.reach * UNIT
    noisy = discrete_laplace(np.concatenate(exact), epsilon, reach, random_state=random_state)
    return np.split(noisy / UNIT, np.cumsum(records.n_groups)[:-1])
