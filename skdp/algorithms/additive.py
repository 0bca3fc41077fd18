"""Additive models: one function of each column, learnt from noisy sums over its groups.

A noisy histogram of each column and the label gives each column by itself; rounds of residuals, one
column after the other, keep columns that say the same from counting twice; and a histogram of the
scores says how much all functions count, one number for all. Scores of classes are logits; those
of numbers are about the released mean, in units of `unit` released standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._validation import TINY, FloatArray, IntArray, integer_sums, split_epsilon
from ..mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max


@dataclass(frozen=True)
class Tuning:
    """How epsilon is divided, what is measured, and what functions are expected to be."""

    # ---------------------------------------------------------------- shares of epsilon

    # Share of the number of records, and the least of any part.
    total: Fraction = Fraction(1, 50)
    # Records times epsilon that a calibration and the counts of many classes take, and the mean and
    # the spread of a number; and the most of epsilon that the former, or the latter, take.
    wanted: float = 200.0
    known: float = 0.15
    located: float = 0.75
    # Of the rest, share of the first histograms where rounds of residuals follow.
    first: Fraction = Fraction(1, 2)
    # Of the first histograms of numbers the share that counts records.
    counting: Fraction = Fraction(1, 4)

    # ---------------------------------------------------------------- what is measured

    # Records times epsilon, for each group, that a round of residuals takes; rounds grow with its
    # cube root.
    round_pays: float = 20.0
    # Residuals are cut to so many standard deviations; more, in proportion, from so many records
    # times epsilon.
    cut: float = 1.8
    more: float = 18_750.0
    # Scores are counted by class in intervals of this width, up to this score either way.
    width: float = 0.5
    ends: float = 5.0
    # ---------------------------------------------------------------- what is expected

    # Variance of a function of a column, of which each group of an order has this share by itself,
    # as much as is added to what is left of a function when it is measured again; what neighbours
    # have in common falls by a factor of e over this share of the order.
    function: float = 4.0
    rough: float = 0.06
    length: float = 0.6
    # Each of so many powers of ten, from 1 down, may be the scale of these variances.
    scales: int = 4
    # Standard deviation of shifts and factors about what is expected, of the mean of features, and
    # of that of a number about its median, in units of its own standard deviation.
    expected: float = 0.4
    # Standard deviations of a number in a unit of scores, so that few records have scores that are
    # cut.
    unit: float = 3.0
    # Least share of the expected factor of all functions.
    kept: float = 0.05
    # Newton's steps for what was released.
    steps: int = 10


TUNING = Tuning()

# ------------------------------------------------------------------------------------------------
# What a record tells about the scores of the model, in integers.
#
# A record's residual must not depend on the other rows of a call, not by one bit. Therefore scores
# are whole multiples of 1/1024, exponentials come from a public table, and shares are divisions of
# integers.


# Scores, residuals and shares are in units of 1/1024.
UNIT = 1024


def _tables() -> tuple[IntArray, IntArray]:
    """exp(-i / UNIT) in units of 2**-24, down to exp(-16); and shares of the second of two classes.

    The shares are those for each of its scores from -16 to 16, rounded down.
    """
    falling = np.floor(np.exp(-np.arange(16 * UNIT) / UNIT) * 2**24).astype(np.int64)
    both = np.concatenate([falling[:0:-1], np.full_like(falling, falling[0])])
    return falling, both * UNIT // (both + both[::-1])


_EXPONENTIALS, _OF_TWO = _tables()


def fixed(values: FloatArray) -> IntArray:
    """Released scores as whole multiples of 1/1024."""
    return np.rint(np.clip(values, -(2.0**20), 2.0**20) * UNIT).astype(np.int64)


class Logit:
    """Classes: shares are the normalised exponentials of scores.

    Of two classes only the second has a score; the other's is 0.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    n_outputs : int
        Scores of a record.
    reach : int
        Largest sum of the absolute residuals of a record, in units.
    dispersion : float
        Variance of a residual, as a share of the curvature, and what that of functions is
        multiplied by.
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.n_outputs = 1 if n_classes == 2 else n_classes
        self.reach = UNIT if n_classes == 2 else 2 * UNIT
        self.dispersion = 1.0

    def shares(self, scores: IntArray) -> IntArray:
        """Shares of the classes in units, rounded down, (n, n_classes)."""
        drop = self._all(scores)
        drop = np.minimum(drop.max(axis=1, keepdims=True) - drop, len(_EXPONENTIALS) - 1)
        parts = _EXPONENTIALS[drop]
        return parts * UNIT // parts.sum(axis=1, keepdims=True)

    def residuals(self, scores: IntArray, labels: IntArray) -> IntArray:
        """Outcome minus expectation in units, (n, n_outputs); at most `reach` a row."""
        if self.n_outputs == 1:
            # Of the second of two classes, rounded down.
            end = len(_EXPONENTIALS) - 1
            second = _OF_TWO[np.clip(scores, -end, end) + end]
            return np.asarray(labels[:, None] * UNIT - second)
        result = -self.shares(scores)
        result[np.arange(len(labels)), labels] += UNIT
        return result

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Shares of the classes, (n, n_classes)."""
        full = self._all(scores)
        parts = np.exp(full - full.max(axis=1, keepdims=True))
        return parts / parts.sum(axis=1, keepdims=True)

    def curvature(self, scores: FloatArray) -> FloatArray:
        """Bound of the second derivative of the loss in each score, (n, n_outputs)."""
        shares = self.probabilities(scores)
        # The full matrix diag(p) - p p' is at most diag(p), so that steps in all scores at once
        # cannot overshoot.
        return shares[:, 1:] * shares[:, :1] if self.n_outputs == 1 else shares

    def _all(self, scores: Any) -> Any:
        return np.insert(scores, 0, 0, axis=1) if self.n_outputs == 1 else scores


@dataclass
class Identity:
    """A number: the score is its expectation, both as shares of half a public range.

    What it has in common with `Logit` is described there. Once the mean and the spread are
    released, scores and outcomes are about the mean and in units of the spread.

    Parameters
    ----------
    outcomes : ndarray of shape (n_codes,), int64
        Outcome of each code of the target in units; in -UNIT..UNIT as shares of half the range.
    reach : int, default=UNIT
        Residuals are cut to so many units.
    centre, scale : float
        What a score of 0 means, and by how much a score of 1 is more, in half ranges.
    dispersion : float, default=0.1
        About the variance of outcomes; it only decides how much is shrunk.
    std : float, default=0.4
        Standard error of the centre.
    """

    outcomes: IntArray
    reach: int = UNIT
    centre: float = 0.0
    scale: float = 1.0
    dispersion: float = 0.1
    std: float = TUNING.expected
    n_outputs: ClassVar[int] = 1

    def residuals(self, scores: IntArray, labels: IntArray) -> IntArray:  # noqa: D102
        return np.clip(self.outcomes[labels][:, None] - scores, -self.reach, self.reach)

    def curvature(self, scores: FloatArray) -> FloatArray:  # noqa: D102
        return np.ones_like(scores)


# How scores and outcomes belong together.
Link = Logit | Identity


def class_shares(counts: FloatArray, variance: float) -> FloatArray:
    """Shares of the classes from noisy counts; none is zero.

    Counts are drawn to their mean as far as noise may have set them apart. How far the true ones
    are apart is what was seen of it, less the noise, and for one class more as much as they are
    large. Small ones stay above zero.
    """
    n, mean = len(counts), max(float(np.mean(counts)), 1.0)
    seen = float(np.sum((counts - mean) ** 2)) - (n - 1) * variance
    spread = (mean**2 + max(seen, 0.0)) / n
    known = spread / (spread + variance)
    likely = mean + known * (counts - mean)
    shares = likely + np.sqrt(likely**2 + known * variance + 1.0)
    return np.asarray(shares / shares.sum())


# --- functions from noisy sums: smooth along an order, shrunk where the noise is large


class Prior:
    """A normal prior of a function of groups.

    Parameters
    ----------
    n_groups : int
    chain : sequence of int or None
        The groups in an order in which neighbours are similar; groups that are left out, or all if
        None, have no neighbours.
    values : ndarray of shape (n_groups, n_values), default=None
        The function is linear in these values. None: any function.

    Attributes
    ----------
    covariance : ndarray of shape (n_groups, n_groups) or (n_groups,)
        A vector stands for a diagonal matrix.
    """

    def __init__(
        self, n_groups: int, chain: Sequence[int] | None, values: FloatArray | None = None
    ) -> None:
        self.linear = values is not None
        if values is not None:
            self.covariance = TUNING.function * values @ values.T
        elif chain is None or len(chain) < 3:
            self.covariance = np.full(n_groups, TUNING.function)
        else:
            self.covariance = TUNING.function * _alike(n_groups, chain, TUNING.rough)

    def update(
        self,
        sums: FloatArray,
        curvature: FloatArray,
        noise: FloatArray,
        unit: float = 1.0,
        known: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of a function f given sums = curvature * f + noise.

        They are means over scales of the prior, each as likely as what was observed makes it.

        Parameters
        ----------
        sums, curvature, noise : ndarray of shape (n_groups,)
            What was observed, how much it moves with f, and its variance.
        unit : float, default=1.0
            What the largest variance of the prior is multiplied by.
        known : ndarray like ``covariance``, default=None
            What the prior adds to: what earlier sums left open. None: 0.
        """
        found = []
        for power in range(TUNING.scales):
            spread = unit * 0.1**power * self.covariance + (0.0 if known is None else known)
            of = _given if spread.ndim == 2 else _given_alone
            found.append(of(spread, sums, curvature, noise))
        likely, means, spreads = zip(*found, strict=True)
        shares = np.exp(np.array(likely) - max(likely))
        shares /= shares.sum()
        return shares @ np.stack(means), np.tensordot(shares, np.stack(spreads), 1)

    def within(self, function: FloatArray) -> FloatArray:
        """The function, cut where it is too large; a line stays one."""
        # Two standard deviations.
        most = 2.0 * math.sqrt(TUNING.function)
        if not self.linear:
            return np.clip(function, -most, most)
        return function * min(1.0, most / max(float(np.abs(function).max()), most))


_Posterior = tuple[float, FloatArray, FloatArray]


def _given(
    spread: FloatArray, sums: FloatArray, curvature: FloatArray, noise: FloatArray
) -> _Posterior:
    """Logarithm of the likelihood up to a constant, mean and covariance of f as in `update`."""
    moved = curvature[:, None] * spread
    factor = cho_factor(moved * curvature + np.diag(noise), lower=True)
    gain = cho_solve(factor, moved).T
    fit = float(sums @ cho_solve(factor, sums))
    likely = -0.5 * fit - float(np.log(np.diag(factor[0])).sum())
    return likely, gain @ sums, spread - gain @ moved


def _given_alone(
    spread: FloatArray, sums: FloatArray, curvature: FloatArray, noise: FloatArray
) -> _Posterior:
    """The same for a diagonal covariance."""
    total = noise + spread * curvature**2
    gain = spread * curvature / total
    likely = -0.5 * float((sums**2 / total).sum() + np.log(total).sum())
    return likely, gain * sums, spread * noise / total


def _alike(n_groups: int, chain: Sequence[int], own: float) -> FloatArray:
    """Correlations of groups: neighbours in the order are alike, the others are by themselves."""
    found, place = np.eye(n_groups), np.arange(len(chain))
    apart = np.abs(place[:, None] - place) / max(TUNING.length * len(chain), 1.0)
    found[np.ix_(chain, chain)] = (1 - own) * np.exp(-apart) + own * np.eye(len(chain))
    return found


# ------------------------------------------------------------------------------------------------
# The additive model: intercepts, and a function of each column.


@dataclass(frozen=True, eq=False)
class Term:
    """A function of one column by its groups; nothing but released numbers.

    Attributes
    ----------
    column : int
    prior : Prior
    sizes : ndarray of shape (n_groups,)
        Released number of records of each group, not negative.
    scores : ndarray of shape (n_groups, n_outputs)
        The mean over the records is about 0.
    spreads : list of ndarray or None
        Of each output the covariance of ``scores`` given what was released, or its diagonal. None:
        nothing was.
    """

    column: int
    prior: Prior
    sizes: FloatArray
    scores: FloatArray
    spreads: list[FloatArray] | None = None

    @property
    def std_errors(self) -> FloatArray:
        """Standard deviations of ``scores`` given what was released."""
        if self.spreads is None:
            return np.zeros_like(self.scores)
        parts = [each if each.ndim == 1 else np.diag(each) for each in self.spreads]
        return np.sqrt(np.maximum(np.stack(parts, axis=1), 0.0))

    @cached_property
    def table(self) -> IntArray:
        """Scores in whole units."""
        return fixed(self.scores)

    def scaled(self, factor: float, variance: float = 0.0) -> Term:
        """Times a factor that has itself a variance."""
        spreads = []
        for own, spread in zip(self.scores.T, self.spreads or (), strict=False):
            extra = own**2 if spread.ndim == 1 else np.outer(own, own)
            spreads.append(factor**2 * spread + variance * extra)
        return replace(self, scores=factor * self.scores, spreads=spreads or None)


@dataclass(eq=False)
class AdditiveModel:
    """Scores as a sum of an intercept and a function of each column.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    terms : list of Term
        One for each column.
    """

    intercept: FloatArray
    terms: list[Term]

    @classmethod
    def constant(
        cls, intercept: FloatArray, priors: Sequence[Prior], sizes: Sequence[FloatArray]
    ) -> AdditiveModel:
        """A model whose functions are 0."""
        terms = [
            Term(column, prior, size, np.zeros((len(size), len(intercept))))
            for column, (prior, size) in enumerate(zip(priors, sizes, strict=True))
        ]
        return cls(intercept, terms)

    def exact_scores(self, groups: IntArray) -> IntArray:
        """Scores in whole units: those of a row depend on nothing but the row and the release."""
        result = np.tile(fixed(self.intercept), (len(groups), 1))
        for term in self.terms:
            # No group is out of range, and the mode saves a copy.
            result += term.table.take(groups[:, term.column], axis=0, mode="clip")
        return result

    def size(self) -> float:
        """Root of the mean square of the scores over the records, if columns were independent."""
        squares = [
            term.sizes @ term.scores[:, 0] ** 2 / max(float(term.sizes.sum()), 1.0)
            for term in self.terms
        ]
        return float(np.sqrt(sum(squares)))

    def learn(self, place: int, sums: FloatArray, variance: float, link: Link) -> None:
        """Move a function to what sums of residuals of the model so far say about it.

        Parameters
        ----------
        place : int
            Of the function.
        sums : ndarray of shape (n_cells, n_outputs)
            By cells of the function, with noise.
        variance : float
            Of the noise.
        link : Link
        """
        term = self.terms[place]
        # Records are at such scores rather than at the mean one.
        apart = self.intercept + self.size() * np.array([[-1.0], [1.0]])
        curvature = link.curvature(apart).mean(axis=0)
        scores, spreads = term.scores.copy(), []
        for output, seen in enumerate(sums.T):
            h = np.maximum(term.sizes * curvature[output], TINY)
            known, unit = None, link.dispersion
            if term.spreads is not None:
                known, unit = term.spreads[output], link.dispersion * TUNING.rough
            noise = variance + link.dispersion * h
            step, spread = term.prior.update(seen, h, noise, unit, known)
            scores[:, output] = term.prior.within(scores[:, output] + step)
            spreads.append(spread)
        mean = _share(term.sizes) @ scores
        self.intercept = self.intercept + mean
        self.terms[place] = replace(term, scores=scores - mean, spreads=spreads)

    def scale(self, factor: float, variance: float = 0.0) -> None:
        """Multiply all functions by a factor that is itself noisy."""
        self.terms = [term.scaled(factor, variance) for term in self.terms]

    def finished(self, scale: float = 1.0, shift: float = 0.0) -> AdditiveModel:
        """The model whose scores are ``scale`` times these, and ``shift``; with settled digits."""
        terms = [term.scaled(scale) for term in self.terms]
        terms = [replace(term, scores=_settled(term.scores)) for term in terms]
        return AdditiveModel(_settled(shift + scale * self.intercept), terms)


def _share(sizes: FloatArray) -> FloatArray:
    """Share of the records of each group; all alike where there are none."""
    total = sizes.sum()
    return sizes / total if total > 0 else np.full(len(sizes), 1.0 / len(sizes))


def mean_size(scores: FloatArray, sizes: FloatArray) -> float:
    """Mean absolute score over the records, of groups of these sizes."""
    return float(_share(sizes) @ np.abs(scores).reshape(len(sizes), -1).mean(axis=1))


# What is released are multiples of this: further digits depend on the order in which a machine
# adds.
_DIGITS = 2.0**-26


def _settled(values: FloatArray) -> FloatArray:
    """Without the digits that rounding decides."""
    # Adding 0 makes -0 positive.
    return np.asarray(np.rint(values / _DIGITS) * _DIGITS + 0.0)


# ------------------------------------------------------------------------------------------------
# The distinct records of a fit: their groups and labels, read block by block.


_CHUNK = 2**15


@dataclass(frozen=True, eq=False)
class Records:
    """Distinct records with their exact numbers: private.

    Attributes
    ----------
    groups : ndarray of shape (m, n_columns), int32
        Group of each column; quickest in Fortran order.
    labels : ndarray of shape (m,)
        Code of the label.
    counts : ndarray of shape (m,), int64
    n_groups : tuple of int
        Number of groups of each column: public.
    scores : ndarray of shape (m, n_outputs), int64
        What a released model says of each record, see `at`.
    """

    groups: NDArray[Any]
    labels: IntArray
    counts: IntArray
    n_groups: tuple[int, ...]
    scores: IntArray = field(default_factory=lambda: np.zeros((0, 1), dtype=np.int64))

    def at(self, model: AdditiveModel) -> Records:
        """The records with their scores, which several steps read."""
        scores = np.empty((len(self.counts), len(model.intercept)), dtype=np.int64)
        for start, block in enumerate(self.blocks()):
            part = slice(start * _CHUNK, (start + 1) * _CHUNK)
            scores[part] = model.exact_scores(block.groups)
        return replace(self, scores=scores)

    def blocks(self, size: int = _CHUNK) -> Iterator[Records]:
        """The records, some at a time; one block where there are none."""
        for start in range(0, max(len(self.counts), 1), size):
            part = slice(start, start + size)
            groups, labels, counts = self.groups[part], self.labels[part], self.counts[part]
            yield Records(groups, labels, counts, self.n_groups, self.scores[part])

    @classmethod
    def grouped(
        cls,
        codes: NDArray[np.integer],
        labels: IntArray,
        counts: IntArray,
        groups: Sequence[IntArray],
        n_groups: Sequence[int],
    ) -> Records:
        """Records by the group of the code of each column."""
        found = codes[:, : len(groups)]
        if any((group != np.arange(len(group))).any() for group in groups):
            found = np.empty(found.shape, dtype=np.int32, order="F")
            maps = [group.astype(np.int32) for group in groups]
            # Some rows at a time stay in the cache.
            for start in range(0, len(codes), _CHUNK):
                part = slice(start, start + _CHUNK)
                for column, group in enumerate(maps):
                    # Without a mode, NumPy copies; no code is out of range.
                    group.take(codes[part, column], out=found[part, column], mode="clip")
        return cls(found, labels, counts, tuple(n_groups))

    def sums(self, column: int, values: Callable[[Records], IntArray]) -> IntArray:
        """Sums of integers (n, n_values) over the records of each group of a column."""
        found: Any = 0
        for block in self.blocks():
            # Sums of integers below 2**53 are exact in floating point.
            seen = (values(block) * block.counts[:, None]).T.astype(np.float64, order="C")
            cells, n = block.groups[:, column], self.n_groups[column]
            found = found + np.stack([np.bincount(cells, each, n) for each in seen], axis=1)
        return np.asarray(found, dtype=np.int64)

    def tables(self, n_labels: int) -> list[IntArray]:
        """Number of records of each group of a column and each label, (n_groups, n_labels)."""
        found = [np.zeros(n * n_labels, dtype=np.int64) for n in self.n_groups]
        alone = bool((self.counts == 1).all())
        for block in self.blocks():
            for column, table in enumerate(found):
                keys = block.groups[:, column] * np.int64(n_labels) + block.labels
                table += integer_sums(keys, len(table), None if alone else block.counts)
        return [table.reshape(-1, n_labels) for table in found]


def released_total(records: Records, epsilon: Fraction, random_state: Any) -> tuple[float, float]:
    """Noisy number of records, and the standard deviation of its noise."""
    # Privacy. Released: the number of records, which one record changes by 1.
    total = discrete_laplace(int(records.counts.sum()), epsilon, random_state=random_state)
    return float(total), float(np.sqrt(discrete_laplace_variance(epsilon)))


# ------------------------------------------------------------------------------------------------
# Fitting: the first round, from a noisy histogram of each column and the label.

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


def agreed(tables: Sequence[FloatArray], variances: Sequence[float]) -> list[FloatArray]:
    """The same sums, shifted so that every column adds up to the same totals, by precision."""
    weights = [1.0 / (len(t) * v) for t, v in zip(tables, variances, strict=True)]
    total = np.average([table.sum(axis=0) for table in tables], axis=0, weights=weights)
    return [table + (total - table.sum(axis=0)) / len(table) for table in tables]


# --- the first round


def first_of_classes(
    records: Records,
    link: Logit,
    priors: Sequence[Prior],
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> AdditiveModel:
    """A model in which each column stands alone, from one histogram of each with the label.

    Parameters
    ----------
    records : Records
    link : Logit
    priors : sequence of Prior
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    # Privacy. Released: for each column the counts of groups and classes, and of many classes their
    # counts alone, with a part that follows from the released total. A record is in one cell of
    # each: sensitivity 1. Everything after that is post-processing.
    many = link.n_outputs > 1
    part = paying_share(epsilon, total, TUNING.known) if many else Fraction(0)
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
    # Privacy. Released, in sequence: the outcome that is the median; a distance from it beyond
    # which few records are; and the sums of differences from it, cut to this distance, and of their
    # absolute values, integers of which one record adds at most the distance to each.
    # One record changes twice the number of records on the larger side, less all, by 1, up or down
    # (a range of 2), and the numbers beyond all distances in one direction by at most 1 (a range of
    # 1). What is subtracted from these is public, and everything else follows from what was
    # released.
    each = epsilon / 3
    counts = np.bincount(records.labels, records.counts, len(link.outcomes)).astype(np.int64)
    order = np.argsort(link.outcomes, kind="stable")
    below = np.cumsum(counts[order]) - counts[order]
    side = np.maximum(below, counts.sum() - below - counts[order])
    scores = -np.maximum(2 * side - counts.sum(), 0)
    median = int(link.outcomes[order[noisy_max(scores, each, 2, random_state=source)]])

    apart = link.outcomes - median
    steps = np.arange(2 * UNIT.bit_length() - 2)
    distances = np.rint(4 * 2.0 ** (steps / 2)).astype(np.int64)
    beyond = counts @ (np.abs(apart)[:, None] > distances)
    # A step takes in more records than the noise of this choice hides.
    scores = -beyond - np.rint(steps / float(each)).astype(np.int64)
    reach = int(distances[noisy_max(scores, each, 1, random_state=source)])

    apart = np.clip(apart, -reach, reach)
    exact = np.stack([apart, np.abs(apart)]) @ counts
    all_of_them = reach * max(total, 1.0)
    sums = discrete_laplace(exact, each, 2 * reach, random_state=source) / all_of_them
    noise = float(np.sqrt(discrete_laplace_variance(each, 2 * reach))) / all_of_them
    # A normal variable has 1.25 times this mean as standard deviation. In units of the distance.
    spread = 1.25 * float(np.clip(sums[1], max(noise / 2, 1e-3), 1.0))
    # As far as it is no noise.
    known = 1.0 / (1.0 + (noise / (TUNING.expected * spread)) ** 2)
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


def first_of_numbers(
    records: Records, link: Identity, priors: Sequence[Prior], epsilon: Fraction, random_state: Any
) -> AdditiveModel:
    """The same of a number, from counts and sums of residuals about the centre."""
    # Privacy. Released: for each column the number of records of each group (a record changes one
    # by 1) with a part of epsilon, and the sums of residuals about the centre, each at most
    # `link.reach`, with the rest.
    counting, summing = epsilon * TUNING.counting, epsilon * (1 - TUNING.counting)
    residuals = np.clip(link.outcomes, -link.reach, link.reach)
    of_label = np.stack([np.ones_like(residuals), residuals], axis=1)
    exact = [records.sums(j, lambda block: of_label[block.labels]) for j in range(len(priors))]
    counts, sums = ([table[:, [place]] for table in exact] for place in range(2))
    sizes = agreed(*measure_columns(counts, counting, 1, random_state))
    noisy, variances = measure_columns(sums, summing, link.reach, random_state)
    known = [np.maximum(size[:, 0], 0.0) for size in sizes]
    model = AdditiveModel.constant(np.zeros(1), priors, known)
    for place, found in enumerate(agreed(noisy, variances)):
        # The mean belongs to the intercept.
        found = found - known[place][:, None] / max(known[place].sum(), TINY) * found.sum()
        model.learn(place, found / UNIT, variances[place] / UNIT**2, link)
    # What is left of their means is noise.
    model.intercept = np.zeros(1)
    return model


# ------------------------------------------------------------------------------------------------
# Calibration: intercept and scale that fit what was seen.
#
# The functions of single columns exaggerate where columns say the same, and the intercept has the
# noise of all their groups. How much, one number for all, and the intercept show for classes in a
# histogram of the model's own score and the class, of which a record changes a single cell by 1,
# and for numbers in two sums: far less noise than in a gradient of the loss.


def shared_weight(n_columns: int) -> float:
    """Weight that is expected of a column: the more there are, the more others said before it."""
    return 1.0 / math.sqrt(1.0 + 0.25 * (n_columns - 1))


def calibrate(
    records: Records,
    link: Link,
    model: AdditiveModel,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> tuple[float, float, float]:
    """Shift of the intercept, of many classes 0, and factor of all functions with its variance.

    Parameters
    ----------
    records : Records
    link : Logit or Identity
    model : AdditiveModel
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    if isinstance(link, Identity):
        return _scaled_number(records, link, model, epsilon, total, random_state)
    if link.n_outputs > 1:
        return 0.0, *_of_many(records, link, model, epsilon, random_state)
    # Privacy. Released: the number of records of each class in each of public intervals of the
    # score of the released model, an integer that depends on nothing but the record and the
    # release. A record is in one cell: sensitivity 1. Shift and factor follow from that.
    ends = np.arange(-TUNING.ends, TUNING.ends + TUNING.width, TUNING.width)
    middles = np.append(ends, TUNING.ends + TUNING.width) - TUNING.width / 2
    n = len(middles)
    exact, borders = np.zeros(2 * n), np.rint(ends * UNIT).astype(np.int64)
    for block in records.blocks():
        scores = model.exact_scores(block.groups)[:, 0]
        cells = np.searchsorted(borders, scores) + n * block.labels
        exact += np.bincount(cells, weights=block.counts, minlength=len(exact))
    table = exact.reshape(2, n).astype(np.int64)
    seen = discrete_laplace(table, epsilon, random_state=random_state)
    # The score of an interval without what belongs to the intercept.
    features = np.stack([np.ones(n), middles - model.intercept], axis=1)
    expected = np.array([0.0, 1.0])
    noise = discrete_laplace_variance(epsilon)
    (shift, factor), variance = _fitted(seen, features, model.intercept[0], expected, noise)
    return float(shift), max(float(factor), TUNING.kept), variance


def _of_many(
    records: Records, link: Logit, model: AdditiveModel, epsilon: Fraction, random_state: Any
) -> tuple[float, float]:
    """Factor of all functions of a model of many classes, and the variance that noise gives it.

    A record of class y stands for pairs of y with each other class j, weighted by the share of j
    that the model gives it. If the right factor is f, such pairs occur exp((f - 1) d) times as
    often as those of j with y, where d is what the functions say for y less what they say for j. A
    histogram of d shows f, whatever the number of classes and whatever the intercepts.
    """
    # Privacy. Released: sums of weights by intervals of d, where d and the weights, whole numbers,
    # depend on nothing but the record and the release. The weights of a record sum to at most
    # UNIT, as the shares of the other classes sum to at most UNIT less that of its own.
    # Intervals double.
    ends = TUNING.width * 2.0 ** np.arange(-1, 5)
    middles = np.append(ends[0] / 2, 1.5 * ends)
    exact = np.zeros(2 * len(middles), dtype=np.int64)
    borders = np.rint(ends * UNIT).astype(np.int64)
    for block in records.blocks(4096):
        scores = model.exact_scores(block.groups)
        shares, apart = link.shares(scores), scores - fixed(model.intercept)
        rows = np.arange(len(shares))
        apart = apart[rows, block.labels][:, None] - apart
        # The same for either class of a pair.
        most = UNIT - np.minimum(shares, shares[rows, block.labels][:, None])
        weights = np.where(apart, shares * UNIT // np.maximum(most, 1), 0) * block.counts[:, None]
        cells = np.searchsorted(borders, np.abs(apart)) + len(middles) * (apart > 0)
        exact += np.bincount(cells.ravel(), weights.ravel(), len(exact)).astype(np.int64)
    seen = discrete_laplace(exact.reshape(2, -1), epsilon, UNIT, random_state=random_state) / UNIT
    noise = discrete_laplace_variance(epsilon, UNIT) / UNIT**2
    found, variance = _fitted(seen, middles[:, None], -middles, np.ones(1), noise)
    return max(float(found[0]), TUNING.kept), variance


def _scaled_number(
    records: Records,
    link: Identity,
    model: AdditiveModel,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> tuple[float, float, float]:
    # Privacy. Released: sums of residuals, and of their products with the scores, in integers.
    # Scores are without the intercept, cut to `reach`, which follows from the release, and divided
    # by it: one record adds at most `link.reach` to each. The rest is computed from these sums.
    reach = max(2 * UNIT * model.size(), 1.0)
    exact = np.zeros(2, dtype=np.int64)
    for block in records.blocks():
        at = model.exact_scores(block.groups)
        residuals = link.residuals(at, block.labels)[:, 0]
        scores = np.clip((at[:, 0] - fixed(model.intercept)[0]) / reach, -1.0, 1.0)
        products = np.trunc(residuals * scores).astype(np.int64)
        exact += block.counts @ np.stack([residuals, products], axis=1)
    total = max(total, 1.0)
    noisy = discrete_laplace(exact, epsilon, 2 * link.reach, random_state=random_state) / total
    noise = discrete_laplace_variance(epsilon, 2 * link.reach) / total**2
    # What the intercept and the functions move, in units: scores that are not cut have the mean
    # square 1 / 4. The intercept is as far off as the noise of the released centre makes it, the
    # factor by about 1.
    moved, off = np.array([UNIT, reach / 4]), np.array([link.std, 1.0])
    gain = moved / (moved**2 + noise / off**2)
    shift, more = gain * noisy
    return float(shift), max(1.0 + float(more), 0.0), float(gain[1] ** 2 * noise)


def _fitted(
    seen: Any, features: FloatArray, start: Any, expected: FloatArray, noise: float
) -> tuple[FloatArray, float]:
    """Weights of features in the logits of intervals, and the variance of the last by the noise."""
    pull, found = 1.0 / TUNING.expected**2, expected.copy()
    total = np.maximum(seen.sum(axis=0), 0.0)
    # Number of records of each interval, as far as it is no noise.
    size = total**3 / (total**2 + 2.0 * noise + TINY)
    for step in range(TUNING.steps):
        share = Logit(2).probabilities((start + features @ found)[:, None])[:, 1]
        curvature = size * share * (1.0 - share)
        own = noise * (share**2 + (1.0 - share) ** 2)
        # The records vary as much as the curvature says.
        weight = curvature / (curvature + own)
        precision = features.T @ (features * (weight * curvature)[:, None])
        precision += pull * np.eye(len(expected))
        gradient = features.T @ (weight * (seen[1] - share * seen.sum(axis=0)))
        gradient += pull * (expected - found)
        # Shorter and shorter steps: where scores are far too large, whole ones overshoot for ever.
        most = 1.0 / (1.0 + step)
        found = found + np.clip(np.linalg.solve(precision, gradient), -most, most)
    moved = np.linalg.solve(precision, features.T * weight)
    return found, float((moved[-1] ** 2 * own).sum())


# ------------------------------------------------------------------------------------------------
# Fit an additive model: histograms, and rounds of residuals.


def additive_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon: the number of records, and the model."""
    return split_epsilon(epsilon, {"total": TUNING.total, "model": 1 - TUNING.total})


def paying_share(epsilon: Fraction, total: float, most: float) -> Fraction:
    """The part of epsilon that has the wanted records times epsilon, within limits."""
    share = TUNING.wanted / (max(total, 1.0) * float(epsilon))
    share = min(max(share, float(TUNING.total)), most)
    return epsilon * Fraction(round(share * 1000), 1000)


# Rounds that time is taken for at most.
_ROUNDS_ONCE = 8


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
    calibration = paying_share(left, total, TUNING.known)
    if isinstance(link, Identity):
        location = paying_share(left, total, TUNING.located)
        link = located(records, link, location, total, signal, random_state)
        left -= location
    left -= calibration
    paid = signal / sum(records.n_groups) / TUNING.round_pays
    n_rounds = min(int(paid ** (1 / 3)), _ROUNDS_ONCE)
    first = left * TUNING.first if n_rounds else left
    if isinstance(link, Identity):
        model = first_of_numbers(records, link, priors, first, random_state)
    else:
        model = first_of_classes(records, link, priors, first, total, random_state)
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
        exact = records.sums(column, lambda block: link.residuals(block.scores, block.labels))
        noisy = discrete_laplace(exact, part, link.reach, random_state=random_state) / UNIT
        variance = discrete_laplace_variance(part, link.reach) / UNIT**2
        model.learn(column, noisy, variance, link)
        moved = model.terms[column].table - before.table + fixed(model.intercept) - start
        records.scores[:] += moved.take(records.groups[:, column], axis=0, mode="clip")
