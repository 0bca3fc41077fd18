"""The plan of the budget, the first round, and the steps one after the other.

The first round: a noisy histogram of each column and the label, and each column by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..._validation import FloatArray, IntArray, split_epsilon
from ...mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from .calibration import calibrate, shared_weight
from .model import (
    TINY,
    TUNING,
    UNIT,
    AdditiveModel,
    Identity,
    Link,
    Logit,
    Prior,
    Records,
    class_shares,
    fixed,
)

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
) -> AdditiveModel:
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
) -> AdditiveModel:
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
    tables, variances = tables[: len(priors)], variances[: len(priors)]
    sizes = [np.maximum(table.sum(axis=1), 0.0) for table in tables]
    model = AdditiveModel.constant(intercept, priors, sizes)
    for place, (table, variance) in enumerate(zip(tables, variances, strict=True)):
        term = model.terms[place]
        for _ in range(TUNING.steps):
            expected = link.probabilities(intercept + term.scores)[:, -link.n_outputs :]
            seen = table[:, -link.n_outputs :] - expected * table.sum(axis=1, keepdims=True)
            curvature = term.sizes[:, None] * link.curvature(intercept + term.scores)
            # The records themselves vary as much as the curvature says.
            noise = variance * ((1 - expected) ** 2 + (link.n_classes - 1) * expected**2)
            noise = noise + np.maximum(curvature, TINY)
            found = [
                term.prior.update(sums + h * before, h, spread)
                for sums, h, before, spread in zip(
                    seen.T, curvature.T, term.scores.T, noise.T, strict=True
                )
            ]
            scores = np.stack([term.prior.within(mean) for mean, _ in found], axis=1)
            term = replace(term, scores=scores, spreads=[spread for _, spread in found])
        share = term.sizes / max(float(term.sizes.sum()), TINY)
        model.terms[place] = replace(term, scores=term.scores - share @ term.scores)
    return model


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
) -> AdditiveModel:
    # Privacy. Released: for each column the number of records of each group (a record changes one
    # by 1) with a part of epsilon, and the sums of residuals about the centre, each at most
    # `link.reach`, with the rest.
    counting, summing = epsilon * TUNING.counting, epsilon * (1 - TUNING.counting)
    empty = [np.zeros(n) for n in records.n_groups]
    model = AdditiveModel.constant(np.zeros(1), priors, empty)

    def seen(block: Records) -> IntArray:
        residuals = link.residuals(np.zeros((1, 1), dtype=np.int64), block.labels)
        return np.hstack([np.ones_like(residuals), residuals])

    exact = records.sums(model.terms, 2, seen)
    counts, residuals = ([table[:, [place]] for table in exact] for place in range(2))
    sizes = agreed(*measure_columns(counts, counting, 1, random_state))
    noisy, variances = measure_columns(residuals, summing, link.reach, random_state)
    sums = agreed(noisy, variances)
    for place, (size, found) in enumerate(zip(sizes, sums, strict=True)):
        known = np.maximum(size[:, 0], 0.0)
        model.terms[place] = replace(model.terms[place], sizes=known)
        # The mean belongs to the intercept.
        found = found - known[:, None] / max(known.sum(), TINY) * found.sum()
        model.learn(place, found / UNIT, variances[place] / UNIT**2, link)
    # What is left of their means is noise.
    model.intercept = np.zeros(1)
    return model


# ------------------------------------------------------------------------------------------------
# Fit an additive model: histograms, and rounds of residuals.


def additive_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon: the number of records, and the model."""
    return split_epsilon(epsilon, {"total": TUNING.total, "model": 1 - TUNING.total})


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
    # Privacy. Released, by sequential composition: the location of a number, the histograms of the
    # first round, sums of residuals, and a histogram of scores. What each may spend follows from
    # the released number of records and public facts, and sums to epsilon. Each step uses nothing
    # but what was released before it.
    signal, left = max(total, 1.0) * float(epsilon), epsilon
    calibration = known_share(left, total)
    if isinstance(link, Identity):
        location = located_share(left, total)
        link = located(records, link, location, total, signal, random_state)
        left -= location
    left -= calibration
    paid = signal / sum(records.n_groups) / TUNING.round_pays
    n_rounds = min(int(paid ** (1 / 3)), TUNING.most_rounds)
    first = left * TUNING.first if n_rounds else left
    model = first_round(records, link, priors, first, total, random_state)
    # Columns that say the same would count twice.
    model.scale(shared_weight(len(priors)))
    for _ in range(n_rounds):
        learn_again(records, link, model, (left - first) / n_rounds, random_state)
    shift, factor, variance = calibrate(records, link, model, calibration, total, random_state)
    model.scale(factor, variance)
    model.intercept = model.intercept + shift
    if isinstance(link, Identity):
        return model.finished(link.scale, link.centre)
    return model.finished()


def learn_again(
    records: Records, link: Link, model: AdditiveModel, epsilon: Fraction, random_state: Any
) -> None:
    """One column after the other, learn from the residuals of the model so far."""
    # Privacy. Released: of one column after the other the sums of residuals over its groups. The
    # residuals of a record, whole numbers, sum to at most `link.reach`, whatever was released
    # before. The shares of the columns follow from public numbers and sum to 1: sequential
    # composition.
    records = records.at(model)
    for column, share in enumerate(column_shares(records.n_groups)):
        before, start, part = model.terms[column], fixed(model.intercept), epsilon * share
        (exact,) = records.sums(
            [before], link.n_outputs, lambda block: link.residuals(block.scores, block.labels)
        )
        noisy = discrete_laplace(exact, part, link.reach, random_state=random_state) / UNIT
        variance = discrete_laplace_variance(part, link.reach) / UNIT**2
        model.learn(column, noisy, variance, link)
        moved = model.terms[column].table - before.table + fixed(model.intercept) - start
        records.scores[:] += moved.take(records.groups[:, column], axis=0, mode="clip")
