"""The first round: a noisy histogram of each column and the label, and each column by itself."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .links import UNIT, Identity, Logit, fixed
from .model import Draft, Prior
from .records import Records
from .tuning import TINY, TUNING

__all__ = ["agreed", "column_shares", "first_round", "located", "measure_columns"]

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
    link: Logit | Identity,
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
    # Privacy. Released: for each column the counts of groups and classes. A record is in one cell
    # of each: sensitivity 1 for `measure_columns`. Everything after that is post-processing.
    noisy, variances = measure_columns(records.tables(link.n_classes), epsilon, 1, random_state)
    tables = agreed(noisy, variances)
    # No class is nearly empty.
    shares = np.maximum(_total_of(tables, variances), max(1.0, 1e-4 * total))
    shares /= shares.sum()
    intercept = np.log(shares)
    intercept = intercept[1:] - intercept[0] if link.n_outputs == 1 else intercept
    draft = Draft.empty(intercept, records.n_groups)
    for column, (table, variance, prior) in enumerate(zip(tables, variances, priors, strict=True)):
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


def located(
    records: Records, link: Identity, epsilon: Fraction, total: float, random_state: Any
) -> Identity:
    """The same outcomes, about their mean and cut to where most of them are.

    Parameters
    ----------
    records : Records
    link : Identity
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    # Privacy. Released: the sum of outcomes, and that of their absolute distances from a
    # released centre, cut to the range: a record adds at most UNIT to each. Half of epsilon each.
    total, each = max(total, 1.0), epsilon / 2
    outcomes, counts = link.outcomes[records.labels], records.counts
    noise = float(np.sqrt(discrete_laplace_variance(each, UNIT))) / UNIT / total
    found = discrete_laplace(int(outcomes @ counts), each, UNIT, random_state=random_state)
    # As far as it is no noise.
    known = TUNING.mean**2 / (TUNING.mean**2 + noise**2)
    centre = known * np.clip(float(found) / UNIT / total, -1.0, 1.0)
    apart = np.minimum(np.abs(outcomes - round(centre * UNIT)), UNIT)
    found = discrete_laplace(int(apart @ counts), each, UNIT, random_state=random_state)
    spread = np.clip(float(found) / UNIT / total, 1 / UNIT, 1.0)
    # Cutting trades a bias for noise, and less of it the more there is to spend.
    more = max(1.0, total * float(epsilon) / TUNING.known)
    cut = min(1.0, TUNING.cut * spread * more + noise)
    dispersion = max(1.5 * spread**2, 1e-4)
    return Identity(link.outcomes, centre, round(cut * UNIT), dispersion, noise * known**0.5)


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
    intercept = np.array([link.centre])

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
        update = prior.update(found, size, variance + spread)
        draft.replace(column, 0, prior.within(update.mean), update, np.full(len(size), variance))
        draft.centre(column)
    return draft
