"""Functions of pairs, and the calibration of the whole.

Intercept and scale that fit what was seen, from few sums over all records.

The functions of single columns exaggerate where columns say the same, and the intercept has the
noise of all their groups. How much, one number for all, and the intercept show for classes in a
histogram of the model's own score and the class, of which a record changes a single cell by 1, and
for numbers in three sums: far less noise than in a gradient of the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._validation import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from .model import (
    TINY,
    TUNING,
    UNIT,
    Axis,
    Draft,
    Identity,
    Link,
    Logit,
    Prior,
    Records,
    fixed,
    mean_size,
)

# --- how much each of several known functions counts: a step of Newton's method on noisy moments
#
# Columns that say the same would count twice if each kept the function it has by itself. There are
# far fewer columns than groups, so their weights can be learnt where the groups are lost in noise.

# Moments are in units of 1/256, and so is the weight of a record: finer, noise for the smallest
# epsilons would not fit into 64-bit integers.
_GRAIN = UNIT // 4
# Largest L1 norm of a record's gradient.
_REACH = TUNING.reach * _GRAIN


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights of functions, as a step of Newton's method gives them.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
        What is added to the intercepts.
    factors : ndarray of shape (n_functions,)
    variances : ndarray of shape (n_functions,)
        Of ``factors``, from the noise alone.
    curvature : ndarray of shape (n_outputs,)
        Released sum over the records of the second derivative in each intercept.
    """

    intercept: FloatArray
    factors: FloatArray
    variances: FloatArray
    curvature: FloatArray


def newton_step(
    records: Records,
    link: Link,
    functions: Callable[[IntArray], IntArray],
    start: FloatArray,
    centre: float,
    epsilon: Fraction,
    random_state: Any,
) -> _Weights:
    """One step from the scores so far, in the intercepts and the weights of functions.

    Parameters
    ----------
    records : Records
        With the scores so far.
    link : Link
    functions : callable
        Values of the functions by groups, in units, (n_functions, n, n_outputs).
    start : ndarray of shape (n_functions,)
        The weights that the functions have in ``scores``.
    centre : float
        Where the weights are expected.
    epsilon : Fraction
    random_state : NoiseSource
    """
    # Privacy. Released: the gradient and the upper triangle of the curvature, integers. A
    # record's part of the gradient is cut to an L1 norm of _REACH, and the vectors t whose outer
    # products are its part of the curvature to squared L1 norms that sum to `most`**2: the absolute
    # entries of a triangle of t t' sum to at most |t|_1**2. Both are composed sequentially.
    most = _REACH // 2 if link.n_outputs == 1 else _REACH
    gradient, hessian = _moments(records, link, functions, len(start), most)
    rate, other = epsilon * TUNING.gradient, epsilon * (1 - TUNING.gradient)
    g = discrete_laplace(gradient, rate, _REACH, random_state=random_state) / _GRAIN
    noise = discrete_laplace_variance(rate, _REACH) / _GRAIN**2
    upper = np.triu_indices(len(gradient))
    h = np.zeros_like(hessian, dtype=np.float64)
    h[upper] = discrete_laplace(hessian[upper], other, most**2, random_state=random_state)
    h = (h + np.triu(h, 1).T) / _GRAIN**2
    floor = np.sqrt(discrete_laplace_variance(other, most**2)) / _GRAIN**2
    h = _positive(h, 0.5 * floor * np.sqrt(len(g)))
    return _posterior(g, h, noise, link.n_outputs, start, centre)


def _posterior(
    g: FloatArray,
    h: FloatArray,
    noise: float,
    n_outputs: int,
    start: FloatArray,
    centre: float,
) -> _Weights:
    """Weights given noisy moments, and a normal prior about the centre."""
    n = len(g)
    # All weights move together, and each by itself.
    prior = np.eye(n)
    prior[n_outputs:, n_outputs:] += 1.0
    pull = np.linalg.inv(TUNING.spread**2 * prior)
    away = np.concatenate([np.zeros(n_outputs), centre - start])
    # The records vary as much as the curvature says, the released gradient by the noise too.
    gain = h @ np.linalg.inv(h + noise * np.eye(n))
    precision = gain @ h + pull
    step = np.linalg.solve(precision, gain @ g + pull @ away)
    moved = np.linalg.solve(precision, gain)
    variances = noise * (moved**2).sum(axis=1)
    return _Weights(
        step[:n_outputs],
        start + step[n_outputs:],
        variances[n_outputs:],
        np.diag(h)[:n_outputs].copy(),
    )


def _positive(matrix: FloatArray, least: float) -> FloatArray:
    """The symmetric matrix with no eigenvalue below ``least``."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, max(least, TINY))) @ vectors.T)


def _moments(
    records: Records,
    link: Link,
    functions: Callable[[IntArray], IntArray],
    n_functions: int,
    most: int,
) -> tuple[IntArray, IntArray]:
    """Exact sums over the records of bounded integer gradients and curvatures."""
    n_moments = link.n_outputs + n_functions
    gradient, hessian = np.zeros(n_moments), np.zeros((n_moments, n_moments))
    # Whole numbers below 2**53, and their sums, are exact in floating point, in any order.
    for block in records.blocks(4096):
        scored, values = block.scores, functions(block.groups).astype(np.float64)
        counts, weight = block.counts.astype(np.float64), _weights(values)
        g = _gradients(link.residuals(scored, block.labels), values, weight)
        gradient += _within(g, _REACH) @ counts
        parts = [
            _curved(share, direction, values, weight) for share, direction in link.spreads(scored)
        ]
        for part in _all_within(parts, most):
            hessian += (part * counts) @ part.T
    return gradient.astype(np.int64), hessian.astype(np.int64)


def _weights(values: FloatArray) -> FloatArray:
    """Weight of each record in units of 1/256, by the size of its scores alone."""
    if values.shape[2] == 1:
        size = UNIT + np.abs(values[:, :, 0]).sum(axis=0)
    else:
        size = 2 * UNIT + (values.max(axis=2) - values.min(axis=2)).sum(axis=0)
    return np.minimum(_GRAIN, np.floor((TUNING.reach * UNIT) ** 2 * _GRAIN / size**2))


def _gradients(residuals: IntArray, values: FloatArray, weight: FloatArray) -> FloatArray:
    """Gradient of each record in the intercepts and the weights, in units of 1/256."""
    weighted = residuals.T * weight
    of_functions = sum(values[:, :, output] * each for output, each in enumerate(weighted))
    return np.trunc(np.concatenate([weighted * UNIT, of_functions]) / UNIT**2)


def _curved(
    share: IntArray, direction: FloatArray, values: FloatArray, weight: FloatArray
) -> FloatArray:
    """Vectors whose outer products are curvatures, whole multiples of 1/256, (n_moments, n)."""
    root = np.sqrt(weight * share / (_GRAIN * UNIT)) * _GRAIN
    of_functions = sum(values[:, :, output] * each for output, each in enumerate(direction.T))
    return np.trunc(root * np.concatenate([direction.T, of_functions / UNIT]))


def _within(columns: FloatArray, most: int) -> FloatArray:
    """Columns of whole numbers, cut toward zero to an L1 norm of at most ``most``."""
    size = np.abs(columns).sum(axis=0)
    large = size > most
    columns[:, large] = np.trunc(columns[:, large] * most / size[large])
    return columns


def _all_within(parts: list[FloatArray], most: int) -> list[FloatArray]:
    """The same columns of several arrays, cut until their squared norms sum to ``most**2``."""
    squares = np.sum([np.abs(part).sum(axis=0) ** 2 for part in parts], axis=0)
    large = squares > most**2
    # One unit more than the root, so that rounding cannot leave the bound.
    factor = most / (np.floor(np.sqrt(squares[large])) + 1)
    for part in parts:
        part[:, large] = np.trunc(part[:, large] * factor)
    return parts


# --- intercept and scale that fit what was seen

_BORDERS = np.arange(-TUNING.ends, TUNING.ends + TUNING.width, TUNING.width)
_MIDDLES = np.append(_BORDERS, TUNING.ends + TUNING.width) - TUNING.width / 2
_N = len(_MIDDLES)


def shared_weight(n_columns: int) -> float:
    """Weight that is expected of a column: the more there are, the more others said before it."""
    return 1.0 / math.sqrt(1.0 + 0.25 * (n_columns - 1))


def calibrate(
    records: Records,
    link: Link,
    draft: Draft,
    centre: float,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> None:
    """Shift the intercept, except of many classes, and scale all functions.

    Parameters
    ----------
    records : Records
    link : Logit or Identity
    draft : Draft
        Changed in place.
    centre : float
        The factor that is expected.
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    if isinstance(link, Logit) and link.n_outputs > 1:
        factor, variance = shared_factor(records, link, draft, centre, epsilon, random_state)
        found = 0.0, factor, variance
    elif isinstance(link, Logit):
        noise = discrete_laplace_variance(epsilon)
        seen = _seen(records, draft, 1.0, epsilon, random_state)
        found = _line(seen, _MIDDLES, draft.intercept[0], centre, noise)
    else:
        found = _of_numbers(records, link, draft, centre, epsilon, total, random_state)
    shift, factor, variance = found
    draft.scale(factor, variance)
    draft.intercept = draft.intercept + shift


# Differences of scores of two classes are counted in intervals that double.
_APART = 2.0 ** np.arange(-2, 4)
_APARTS = np.append(_APART, 2 * _APART[-1]) * 0.75
_APARTS[0] = _APART[0] / 2


def shared_factor(
    records: Records,
    link: Logit,
    draft: Draft,
    centre: float,
    epsilon: Fraction,
    random_state: Any,
) -> tuple[float, float]:
    """Factor of all functions of a model of many classes, and the variance that noise gives it.

    A record of class y stands for pairs of y with each other class j, weighted by the share of j
    that the model gives it when all functions have the expected factor. If the right factor is f,
    such pairs occur exp((f - centre) d) times as often as those of j with y, where d is what the
    functions say for y less what they say for j. A histogram of d shows f, whatever the number of
    classes and whatever the intercepts.
    """
    # Privacy. Released: sums of weights by intervals of d, where d and the weights, whole numbers,
    # depend on nothing but the record and the release. The weights of a record sum to at most
    # UNIT, as the shares of the other classes sum to at most UNIT less that of its own.
    scaled, exact = draft.copy(), np.zeros(2 * len(_APARTS), dtype=np.int64)
    scaled.scale(centre, 0.0)
    model, plain = scaled.finished(), draft.finished()
    borders = np.rint(_APART * UNIT).astype(np.int64)
    for block in records.blocks(4096):
        shares = link.shares(model.exact_scores(block.groups))
        apart = plain.exact_scores(block.groups) - fixed(plain.intercept)
        rows = np.arange(len(shares))
        apart = apart[rows, block.labels][:, None] - apart
        # The same for either class of a pair.
        most = UNIT - np.minimum(shares, shares[rows, block.labels][:, None])
        weights = np.where(apart, shares * UNIT // np.maximum(most, 1), 0) * block.counts[:, None]
        cells = np.searchsorted(borders, np.abs(apart)) + len(_APARTS) * (apart > 0)
        exact += np.bincount(cells.ravel(), weights.ravel(), len(exact)).astype(np.int64)
    seen = discrete_laplace(exact.reshape(2, -1), epsilon, UNIT, random_state=random_state) / UNIT
    noise = discrete_laplace_variance(epsilon, UNIT) / UNIT**2
    found, variance = _fitted(seen, _APARTS[:, None], -centre * _APARTS, np.array([centre]), noise)
    return max(float(found[0]), TUNING.kept * centre), variance


def _of_numbers(
    records: Records,
    link: Identity,
    draft: Draft,
    centre: float,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> tuple[float, float, float]:
    # Privacy. Released: sums of residuals, of their products with the scores, of the scores and of
    # their squares, in integers. Scores are without the intercept, cut to `reach`, which follows
    # from the release, and divided by it. One record adds at most `link.reach` to the first two,
    # and half and a quarter of that to the others. The rest is computed from these sums.
    draft.scale(centre, 0.0)
    model, most = draft.finished(), link.reach
    reach = max(2 * UNIT * draft.size(), 1.0)
    exact = np.zeros(4, dtype=np.int64)
    for block in records.blocks():
        at = model.exact_scores(block.groups)
        residuals = link.residuals(at, block.labels)[:, 0]
        scores = np.clip((at[:, 0] - fixed(model.intercept)[0]) / reach, -1.0, 1.0)
        products = np.trunc(residuals * scores)
        every = np.stack([residuals, products, most * scores // 2, most * scores**2 // 4], axis=1)
        exact += block.counts @ every.astype(np.int64)
    sensitivity = 11 * most // 4 + 1
    total = max(total, 1.0)
    noisy = discrete_laplace(exact, epsilon, sensitivity, random_state=random_state) / total
    noise = discrete_laplace_variance(epsilon, sensitivity) / total**2
    score, square = 2 * noisy[2] / most, 4 * noisy[3] / most
    # Scores that were not cut have the mean square 1 / 4.
    trust = 1.0 / (1.0 + 256 * noise / most**2)
    square = max(0.25 + trust * (square - 0.25), TINY + score**2)
    # By how much the intercept and the functions change residuals, and what is expected of both:
    # the intercept is as far off as the noise of the released centre makes it, the factor by 1.
    moved = np.array([[1.0, score], [score, square]]) @ np.diag([UNIT, reach])
    pull = noise * np.diag([1 / link.std**2, 1.0])
    gain = np.linalg.solve(moved.T @ moved + pull, moved.T)
    shift, more = gain @ noisy[:2]
    return shift, max(1.0 + more, 0.0), float((gain[1] ** 2).sum() * noise)


def monotone(
    records: Records, draft: Draft, epsilon: Fraction, random_state: Any
) -> tuple[FloatArray, FloatArray]:
    """What scores of a model of two classes mean: points of a rising line, scores and logits.

    Scores of columns that depend on each other are too large, and not everywhere by one factor. The
    logit is a straight line in the score and a smooth function, as far as the records show one.

    Parameters
    ----------
    records : Records
    draft : Draft
        With functions of columns alone.
    epsilon : Fraction
    random_state : NoiseSource
    """
    centre, noise = shared_weight(len(draft.shapes)), discrete_laplace_variance(epsilon)
    scores, start = _MIDDLES / centre, draft.intercept[0]
    seen = _seen(records, draft, centre, epsilon, random_state)
    shift, factor, _ = _line(seen, scores, start, centre, noise)
    line = start + shift + factor * (scores - start)
    total, bend, prior = seen.sum(axis=0), np.zeros(_N), Prior(_N, range(_N))
    size = _sizes(seen, noise)
    for _ in range(TUNING.steps):
        share = Logit(2).probabilities((line + bend)[:, None])[:, 1]
        curvature = np.maximum(size * share * (1.0 - share), TINY)
        own = noise * (share**2 + (1.0 - share) ** 2) + curvature
        sums = seen[1] - share * total + curvature * bend
        bend = prior.within(prior.update(sums, curvature, own).mean)
    # Pooled where it would fall, but never quite flat: what was ordered stays so.
    least = TUNING.kept * centre * factor * scores
    bend = isotonic_regression(line + bend - least, sample_weight=curvature) + least - line
    # No score is farther from the first one.
    far = abs(start) + 2 * TUNING.most * len(draft.shapes) + scores[-1]
    points = np.array([-far, *scores, far])
    return points, start + shift + factor * (points - start) + np.interp(points, scores, bend)


def _seen(
    records: Records, draft: Draft, scale: float, epsilon: Fraction, random_state: Any
) -> IntArray:
    """Noisy number of records of each class by intervals of the score, borders over ``scale``."""
    # Privacy. Released: the number of records of each class in each of public intervals of the
    # score of the released model, an integer that depends on nothing but the record and the
    # release. A record is in one cell: sensitivity 1. Shifts, factors and lines follow from that.
    model, exact = draft.finished(), np.zeros(2 * _N)
    borders = np.rint(_BORDERS / scale * UNIT).astype(np.int64)
    for block in records.blocks():
        scores = model.exact_scores(block.groups)[:, 0]
        cells = np.searchsorted(borders, scores) + _N * block.labels
        exact += np.bincount(cells, weights=block.counts, minlength=len(exact))
    table = exact.reshape(2, _N).astype(np.int64)
    return discrete_laplace(table, epsilon, random_state=random_state)


def _sizes(seen: IntArray, noise: float) -> FloatArray:
    """Number of records of each interval, as far as it is no noise."""
    total = np.maximum(seen.sum(axis=0), 0.0)
    return np.asarray(total**3 / (total**2 + 2.0 * noise + TINY))


def _line(
    seen: IntArray, scores: FloatArray, intercept: float, centre: float, noise: float
) -> tuple[float, float, float]:
    """Shift, factor, and the variance that the noise gives the factor."""
    # The score of an interval without what belongs to the intercept.
    features = np.stack([np.ones(_N), scores - intercept], axis=1)
    found, variance = _fitted(seen, features, intercept, np.array([0.0, centre]), noise)
    return float(found[0]), max(float(found[1]), TUNING.kept * centre), variance


def _fitted(
    seen: Any, features: FloatArray, start: Any, expected: FloatArray, noise: float
) -> tuple[FloatArray, float]:
    """Weights of features in the logits of intervals, and the variance of the last by the noise."""
    pull, found = 1.0 / TUNING.spread**2, expected.copy()
    total, size = seen.sum(axis=0), _sizes(seen, noise)
    for step in range(TUNING.steps):
        share = Logit(2).probabilities((start + features @ found)[:, None])[:, 1]
        curvature = size * share * (1.0 - share)
        own = noise * (share**2 + (1.0 - share) ** 2)
        # The records vary as much as the curvature says.
        weight = curvature / (curvature + own)
        precision = features.T @ (features * (weight * curvature)[:, None])
        precision += pull * np.eye(len(expected))
        gradient = features.T @ (weight * (seen[1] - share * total)) + pull * (expected - found)
        # Shorter and shorter steps: where scores are far too large, whole ones overshoot for ever.
        most = 1.0 / (1.0 + step)
        found = found + np.clip(np.linalg.solve(precision, gradient), -most, most)
    moved = np.linalg.solve(precision, features.T * weight)
    return found, float((moved[-1] ** 2 * own).sum())


# ------------------------------------------------------------------------------------------------
# Functions of two columns together: which pairs, and what residuals say about them.


@dataclass(frozen=True)
class PairPlan:
    """Which functions of two columns are asked for: public.

    Attributes
    ----------
    chains : sequence of (sequence of int or None)
        Of each column the groups in their order.
    pairs : tuple of (int, int) or None
        Positions of columns. None: they are chosen.
    n_pairs : int or None
        How many are chosen. None: as many as pay.
    """

    chains: Sequence[Sequence[int] | None]
    pairs: tuple[tuple[int, int], ...] | None = None
    n_pairs: int | None = None

    def most(self, signal: float) -> int:
        """Pairs that the budget is divided by; ``signal`` is records times the epsilon of pairs."""
        if self.pairs is not None:
            return len(self.pairs)
        n_columns = min(len(self.chains), TUNING.columns)
        possible = n_columns * (n_columns - 1) // 2
        if self.n_pairs is not None:
            return min(self.n_pairs, possible)
        paid = TUNING.hope * signal * float(1 - TUNING.choice) / (TUNING.pays * TUNING.groups**2)
        return min(int(paid), possible, TUNING.most_pairs)


def coarse_axis(sizes: FloatArray, chain: Sequence[int] | None) -> Axis:
    """Few groups of the groups of a column, with about equal released numbers of records.

    Neighbours in the order are merged; of the groups outside it, all but the largest ones.
    """
    ordered = [] if chain is None else list(chain)
    places, n_ordered = np.zeros(len(sizes), dtype=np.int64), 0
    if ordered:
        # Empty groups belong somewhere too.
        within = sizes[ordered] + max(float(sizes.sum()), 1.0) * 1e-3 / len(sizes)
        middles = np.cumsum(within) - within / 2
        parts = np.floor(middles / within.sum() * TUNING.groups)
        places[ordered] = np.unique(parts, return_inverse=True)[1]
        n_ordered = int(places[ordered].max()) + 1
    inside = set(ordered)
    others = [group for group in range(len(sizes)) if group not in inside]
    last = max(TUNING.groups - n_ordered, 1) - 1
    for rank, group in enumerate(sorted(others, key=lambda group: -sizes[group])):
        places[group] = n_ordered + min(rank, last)
    return Axis(places, int(places.max()) + 1, n_ordered)


def add_pairs(
    records: Records,
    link: Link,
    draft: Draft,
    curvature: FloatArray,
    plan: PairPlan,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> Fraction:
    """Add functions of pairs to a draft, one after the other.

    Parameters
    ----------
    records : Records
    link : Link
    draft : Draft
        Changed in place.
    curvature : ndarray of shape (n_outputs,)
        Sum over the records of the second derivative in each score, released.
    plan : PairPlan
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource

    Returns
    -------
    Fraction
        What is left of epsilon, because no other pair pays.
    """
    # Privacy. By sequential composition each pair spends `each`: its choice, where there is one,
    # and its sums. That no more pairs follow is the outcome of a paid choice.
    axes = [coarse_axis(*column) for column in zip(draft.sizes, plan.chains, strict=True)]
    most = plan.most(max(total, 1.0) * float(epsilon))
    each, left = epsilon / most, epsilon
    pairs = list(plan.pairs or ())
    candidates = _candidates(draft)
    places, n_places = [axis.groups for axis in axes], [axis.n_groups for axis in axes]
    coarse = Records.grouped(records.groups, records.labels, records.counts, places, n_places)
    for number in range(most):
        coarse = replace(coarse, scores=records.at(draft.finished()).scores)
        paid = each
        if plan.pairs is None:
            choice = each * TUNING.choice
            paid, left = each - choice, left - choice
            # The expected absolute noise of a sum is about its scale.
            least = None if plan.n_pairs is not None else TUNING.pays / float(paid) * _largest(link)
            scale = curvature * link.dispersion
            found = _choose(
                coarse, link, draft, axes, candidates, scale, least, choice, random_state
            )
            if found is None:
                break
            pairs.append(candidates.pop(found))
        _measure(coarse, link, draft, axes, pairs[number], paid, random_state)
        left -= paid
    return left


def _largest(link: Link) -> float:
    """Largest absolute residual of a record, one output alone."""
    return link.reach / UNIT if isinstance(link, Identity) else 1.0


def _candidates(draft: Draft) -> list[tuple[int, int]]:
    """Pairs of the columns whose released functions matter most."""
    sizes = [mean_size(*column) for column in zip(draft.shapes, draft.sizes, strict=True)]
    kept = np.argsort(-np.array(sizes), kind="stable")[: TUNING.columns]
    return list(combinations(sorted(kept.tolist()), 2))


def _choose(
    records: Records,
    link: Link,
    draft: Draft,
    axes: Sequence[Axis],
    pairs: Sequence[tuple[int, int]],
    variance: FloatArray,
    least: float | None,
    epsilon: Fraction,
    random_state: Any,
) -> int | None:
    """Position of the pair with the most to say, or None if that is less than pays."""
    # Privacy. Released: the pair with the largest noisy score, the sum over its cells of absolute
    # sums of residuals. The residuals of a record, whole numbers, sum to at most `link.reach` units
    # and are in one cell of each pair: they move each score by at most as much, up or down: the
    # range is twice that. What is subtracted, and the score 0 of "none", follow from released
    # numbers.
    exact = _sums(
        records, pairs, link.n_outputs, lambda each: link.residuals(each.scores, each.labels)
    )
    scores = []
    for pair, table in zip(pairs, exact, strict=True):
        expected = draft.cell_shares(pair, _of(axes, pair)).reshape(-1, 1) * np.maximum(variance, 0)
        # Mean absolute sum of as many residuals that depend on nothing, and what pays.
        by_chance = np.sqrt(2 / np.pi * expected).sum() + len(table) * (least or 0.0)
        scores.append(int(np.abs(table).sum()) - round(UNIT * by_chance))
    if least is not None:
        scores.append(0)
    best = int(
        noisy_max(
            np.array(scores, dtype=np.int64),
            epsilon,
            2 * link.reach,
            random_state=random_state,
        )
    )
    return best if best < len(pairs) else None


def _measure(
    records: Records,
    link: Link,
    draft: Draft,
    axes: Sequence[Axis],
    pair: tuple[int, int],
    epsilon: Fraction,
    random_state: Any,
) -> None:
    """Add the function of a pair to the draft."""

    # Privacy. Released: the sums of residuals and of weights of the cells of a pair. A record is
    # in one cell, where its residuals and its weight, whole numbers, sum to at most `link.joint`.
    def values(block: Records) -> IntArray:
        residuals = link.residuals(block.scores, block.labels)
        return np.column_stack([residuals, link.weights(block.scores)])

    (exact,) = _sums(records, [pair], link.n_outputs + 1, values)
    noisy = discrete_laplace(exact, epsilon, link.joint, random_state=random_state) / UNIT
    variance = discrete_laplace_variance(epsilon, link.joint) / UNIT**2
    both = _of(axes, pair)
    # Weights are about what they would be if the columns were independent.
    expected = max(noisy[:, -1].sum(), 1.0) * draft.cell_shares(pair, both).ravel()
    trust = expected**2 / (expected**2 + variance)
    weights = np.maximum(expected + trust * (noisy[:, -1] - expected), TUNING.kept * expected)
    prior, updates = Prior.of_pair(*both), []
    for output, factor in enumerate(link.per_weight(draft.intercept)):
        h = np.maximum(weights * factor, TINY)
        # The mean belongs to the intercept.
        seen = noisy[:, output] - h / h.sum() * noisy[:, output].sum()
        spread = variance + link.dispersion * h
        updates.append(prior.update(seen, h, spread, link.prior))
    draft.add_pair(pair, both, updates, variance)


def _sums(
    records: Records,
    pairs: Sequence[tuple[int, int]],
    n_values: int,
    values: Callable[[Records], IntArray],
) -> list[IntArray]:
    """Exact sums of integers over the cells of each pair, (n_cells, n_values)."""
    shapes = [(records.n_groups[first], records.n_groups[second]) for first, second in pairs]
    found = [np.zeros((n_values, math.prod(shape))) for shape in shapes]
    for block in records.blocks():
        # Sums of integers below 2**53 are exact in floating point.
        seen = (values(block) * block.counts[:, None]).T.astype(np.float64, order="C")
        for (first, second), (_, width), table in zip(pairs, shapes, found, strict=True):
            cells = block.groups[:, first] * np.int64(width) + block.groups[:, second]
            for each, sums in zip(seen, table, strict=True):
                sums += np.bincount(cells, each, len(sums))
    return [table.T.astype(np.int64) for table in found]


def _of(axes: Sequence[Axis], pair: tuple[int, int]) -> tuple[Axis, Axis]:
    return axes[pair[0]], axes[pair[1]]
