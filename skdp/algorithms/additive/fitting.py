"""The plan of the budget, the first round, and the steps one after the other.

The first round: a noisy histogram of each column and the label, and each column by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..._validation import FloatArray, IntArray, split_epsilon
from ...mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from .model import (
    TINY,
    TUNING,
    UNIT,
    AdditiveModel,
    Draft,
    Identity,
    Link,
    Logit,
    Prior,
    Records,
    class_shares,
    fixed,
)
from .pairs import PairPlan, add_pairs, calibrate, newton_step, shared_weight

# --- noisy sums over the groups of all columns: what each column may spend, and totals that agree


def column_shares(n_groups: Sequence[int]) -> list[Fraction]:
    """Share of each column of a budget: the cube root of its number of groups.

    Noise of n groups adds up to n / share**2; these shares make the sum over the columns least.
    """
    roots = [round(64 * n ** (1 / 3)) for n in n_groups]
    return [Fraction(root, sum(roots)) for root in roots]


def measure_columns(
    exact: Sequence[IntArray], epsilon: Fraction, sensitivity: int, random_state: Any
) -> tuple[list[FloatArray], list[float]]:
    """Sums of each column with noise, and the variance of the noise.

    Parameters
    ----------
    exact : sequence of ndarray of shape (n_groups, n_sums)
        Of each column.
    epsilon : Fraction
        Of all columns together.
    sensitivity : int
        Largest sum of absolute changes of one column when a record is added or removed.
    random_state : NoiseSource
    """
    # Privacy. Released: the sums of each column, which one record changes by at most `sensitivity`
    # in all, with noise for the column's share of epsilon. The shares follow from public numbers
    # of groups and sum to 1: sequential composition over the columns.
    noisy, variances = [], []
    for table, share in zip(exact, column_shares([len(each) for each in exact]), strict=True):
        part = epsilon * share
        found = discrete_laplace(table, part, sensitivity, random_state=random_state)
        noisy.append(found.astype(np.float64))
        variances.append(discrete_laplace_variance(part, sensitivity))
    return noisy, variances


def _total_of(tables: Sequence[FloatArray], variances: Sequence[float]) -> FloatArray:
    """Sums over all records: what the columns say, weighted by precision, (n_sums,)."""
    weights = [1.0 / (len(t) * v) for t, v in zip(tables, variances, strict=True)]
    return np.average([table.sum(axis=0) for table in tables], axis=0, weights=weights)


def agreed(tables: Sequence[FloatArray], variances: Sequence[float]) -> list[FloatArray]:
    """The same sums, shifted so that those of every column add up to the same totals."""
    total = _total_of(tables, variances)
    return [table + (total - table.sum(axis=0)) / len(table) for table in tables]


# --- the first round


def first_round(
    records: Records,
    link: Link,
    priors: Sequence[Prior],
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> Draft:
    """A model in which each column stands alone, from one histogram of each with the label.

    Parameters
    ----------
    records : Records
    link : Logit or Identity
    priors : sequence of Prior
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    if isinstance(link, Logit):
        return _of_classes(records, link, priors, epsilon, total, random_state)
    return _of_numbers(records, link, priors, epsilon, total, random_state)


def _of_classes(
    records: Records,
    link: Logit,
    priors: Sequence[Prior],
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> Draft:
    # Privacy. Released: for each column the counts of groups and classes, and of many classes their
    # counts alone, with a part that follows from the released total. A record is in one cell of
    # each: sensitivity 1. Everything after that is post-processing.
    part = known_share(epsilon, total, 0.5) if link.n_outputs > 1 else Fraction(0)
    exact = records.tables(link.n_classes)
    tables, variances = measure_columns(exact, epsilon - part, 1, random_state)
    if part:
        # One more column, of one group.
        counts = discrete_laplace(exact[0].sum(axis=0), part, random_state=random_state)
        tables.append(counts[None].astype(np.float64))
        variances.append(discrete_laplace_variance(part))
    tables = agreed(tables, variances)
    of_counts = 1.0 / sum(1.0 / (len(t) * v) for t, v in zip(tables, variances, strict=True))
    intercept = np.log(class_shares(tables[-1].sum(axis=0), of_counts))
    intercept = intercept[1:] - intercept[0] if link.n_outputs == 1 else intercept
    draft = Draft.empty(intercept, records.n_groups)
    for column, (table, variance, prior) in enumerate(
        zip(tables[: len(priors)], variances[: len(priors)], priors, strict=True)
    ):
        sizes = np.maximum(table.sum(axis=1), 0.0)
        draft.sizes[column] = sizes
        for _ in range(TUNING.steps):
            scores = intercept + draft.shapes[column]
            expected = link.probabilities(scores)[:, -link.n_outputs :]
            seen = table[:, -link.n_outputs :] - expected * table.sum(axis=1, keepdims=True)
            curvature = sizes[:, None] * link.curvature(scores)
            noise = variance * ((1 - expected) ** 2 + (link.n_classes - 1) * expected**2)
            for output in range(link.n_outputs):
                h = curvature[:, output]
                before = draft.shapes[column][:, output]
                # The records themselves vary as much as the curvature says.
                sums = seen[:, output] + h * before
                update = prior.update(sums, h, noise[:, output] + np.maximum(h, TINY))
                draft.replace(column, output, prior.within(update.mean), update, noise[:, output])
        draft.centre(column)
    return draft


# Parts of the range, of equal width, among which the one of the median is found.
_PLACES = 64


def located(
    records: Records, link: Identity, epsilon: Fraction, total: float, signal: float, source: Any
) -> Identity:
    """The same outcomes about their mean, in units of their spread, and cut to where most are.

    A range is declared honestly wide, and noise of its width would hide a mean: so it is released
    where records are first, and then the mean there.

    Parameters
    ----------
    records : Records
    link : Identity
    epsilon : Fraction
    total : float
        Released number of records.
    signal : float
        Records times the epsilon of all steps.
    source : NoiseSource
    """
    # Privacy. Released, in sequence: the part of the range that holds the median; a distance from
    # it beyond which few records are; and the sums of differences from it, cut to this distance,
    # and of their absolute values, integers of which one record adds at most the distance to each.
    # One record changes twice the number of records on the larger side, less all, by 1, up or down
    # (a range of 2), and the numbers beyond all distances in one direction by at most 1 (a range of
    # 1). What is subtracted from these is public, and everything else follows from what was
    # released.
    each = epsilon * (1 - TUNING.median) / 2
    counts = np.bincount(records.labels, records.counts, len(link.outcomes)).astype(np.int64)
    width = 2 * UNIT // _PLACES
    places = np.minimum((link.outcomes + UNIT) // width, _PLACES - 1)
    inside = np.bincount(places, counts, _PLACES).astype(np.int64)
    below = np.cumsum(inside) - inside
    side = np.maximum(below, inside.sum() - below - inside)
    scores = -np.maximum(2 * side - inside.sum(), 0)
    found = int(noisy_max(scores, epsilon * TUNING.median, 2, random_state=source))
    median = found * width + width // 2 - UNIT

    apart = link.outcomes - median
    steps = np.arange(2 * UNIT.bit_length() - 2)
    distances = np.rint(4 * 2.0 ** (steps / 2)).astype(np.int64)
    beyond = counts @ (np.abs(apart)[:, None] > distances)
    dear = np.rint(steps * (TUNING.dear / float(each))).astype(np.int64)
    lost = np.maximum(beyond - round(TUNING.beyond / float(each)), 0) + dear
    reach = int(distances[noisy_max(-lost, each, 1, random_state=source)])

    apart = np.clip(apart, -reach, reach)
    exact = np.stack([apart, np.abs(apart)]) @ counts
    all_of_them = reach * max(total, 1.0)
    sums = discrete_laplace(exact, each, 2 * reach, random_state=source) / all_of_them
    noise = float(np.sqrt(discrete_laplace_variance(each, 2 * reach))) / all_of_them
    # A normal variable has 1.25 times this mean as standard deviation. In units of the distance.
    spread = 1.25 * float(np.clip(sums[1], max(noise / 2, 1e-3), 1.0))
    # As far as it is no noise.
    known = 1.0 / (1.0 + (noise / (TUNING.mean * spread)) ** 2)
    centre = median + reach * known * float(np.clip(sums[0], -1.0, 1.0))
    scale = TUNING.unit * max(reach * spread, 2.0)
    # Cutting trades a bias for noise, and less of it the more there is to spend.
    cut = min(TUNING.cut * max(1.0, signal / TUNING.more), 32.0) / TUNING.unit
    return Identity(
        np.rint((link.outcomes - centre) * (UNIT / scale)).astype(np.int64),
        round(min(cut, 2 * UNIT / scale) * UNIT),
        centre / UNIT,
        scale / UNIT,
        TUNING.unit**-2,
        noise * known**0.5 * reach / scale,
    )


def _of_numbers(
    records: Records,
    link: Identity,
    priors: Sequence[Prior],
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> Draft:
    # Privacy. Released: for each column the number of records of each group (a record changes one
    # by 1) with a part of epsilon, and the sums of residuals about the centre, each at most
    # `link.reach`, with the rest.
    counting, summing = epsilon * TUNING.counting, epsilon * (1 - TUNING.counting)
    intercept = np.zeros(1)

    def seen(block: Records) -> IntArray:
        residuals = link.residuals(fixed(intercept)[None], block.labels)
        return np.hstack([np.ones_like(residuals), residuals])

    exact = records.sums(2, seen)
    counts, residuals = ([table[:, [place]] for table in exact] for place in range(2))
    sizes = [
        np.maximum(size[:, 0], 0)
        for size in agreed(*measure_columns(counts, counting, 1, random_state))
    ]
    noisy, variances = measure_columns(residuals, summing, link.reach, random_state)
    sums = [part[:, 0] / UNIT for part in agreed(noisy, variances)]
    draft = Draft.empty(intercept, records.n_groups)
    for column, (size, found, prior) in enumerate(zip(sizes, sums, priors, strict=True)):
        variance = variances[column] / UNIT**2
        draft.sizes[column] = size
        spread = np.maximum(size * link.dispersion, TINY)
        found = found - size / max(size.sum(), TINY) * found.sum()
        update = prior.update(found, size, variance + spread, link.prior)
        draft.replace(column, 0, prior.within(update.mean), update, np.full(len(size), variance))
        draft.centre(column)
    return draft


# ------------------------------------------------------------------------------------------------
# Fit an additive model: histograms, weights of the columns, and rounds of residuals.


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
        calibration = known_share(epsilon, total)
        location = located_share(epsilon, total) if isinstance(link, Identity) else Fraction(0)
        epsilon -= calibration + location
        if signal < TUNING.weights_pay * link.n_outputs:
            return cls(epsilon, calibration=calibration, location=location)
        weights = (epsilon * TUNING.weights,) * 2
        epsilon -= sum(weights)
        n_rounds = int((signal / n_groups / TUNING.round_pays) ** (1 / 3))
        n_rounds = min(n_rounds, TUNING.most_rounds)
        first = epsilon * TUNING.first if n_rounds else epsilon
        rounds = ((epsilon - first) / max(n_rounds, 1),) * n_rounds
        return cls(first, weights, rounds, calibration, location)


def known_share(epsilon: Fraction, total: float, most: float | None = None) -> Fraction:
    """What `calibrate` and counts of many classes may spend, each."""
    wanted, least, limit = TUNING.known
    return _share(epsilon, total, wanted, least, limit if most is None else most)


def located_share(epsilon: Fraction, total: float) -> Fraction:
    """What `located` may spend."""
    return _share(epsilon, total, *TUNING.located)


def _share(epsilon: Fraction, total: float, wanted: float, least: float, most: float) -> Fraction:
    """The part of epsilon that has so many records times epsilon, within limits."""
    share = min(max(wanted / (max(total, 1.0) * float(epsilon)), least), most)
    return epsilon * Fraction(round(share * 1000), 1000)


def fit_additive(
    records: Records,
    link: Link,
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
    signal = max(total, 1.0) * float(epsilon)
    if isinstance(link, Identity):
        link = located(records, link, plan.location, total, signal, random_state)
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
    calibrate(records, link, draft, centre, plan.calibration, total, random_state)
    model = draft.finished()
    return model.in_units(link.scale, link.centre) if isinstance(link, Identity) else model


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
            update = prior.update(seen, h, noise + h, link.prior)
            found.append((column, output, update, h, noise))
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
