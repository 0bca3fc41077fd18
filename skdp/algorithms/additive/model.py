"""The released model, its links and records, and the numbers that were tuned.

The numbers of additive models that change a release, each with unit, meaning and what chose it.

Benchmark: ``benchmarks/models.py``; for numbers the targets of ``benchmarks/baseline.py``.
Scores of classes are logits; those of numbers are about the released mean, in units of `unit`
released standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ..._validation import FloatArray, IntArray, integer_sums
from ...mechanisms import discrete_laplace, discrete_laplace_variance


@dataclass(frozen=True)
class Tuning:
    """How epsilon is divided, what is measured, and what functions are expected to be."""

    # ---------------------------------------------------------------- shares of epsilon

    # Share of the number of records.
    total: Fraction = Fraction(1, 50)
    # Records times epsilon that a calibration takes, and the least and the most that it takes of
    # epsilon; and the same of the mean and the spread of a number.
    known: tuple[float, float, float] = (250.0, 0.01, 0.15)
    located: tuple[float, float, float] = (200.0, 0.02, 0.75)
    # Of the latter the share of the median.
    median: Fraction = Fraction(2, 5)
    # Of the rest, share of the first histograms where rounds of residuals follow.
    first: Fraction = Fraction(1, 2)
    # Of the first histograms of numbers the share that counts records.
    counting: Fraction = Fraction(1, 4)

    # ---------------------------------------------------------------- what is measured

    # Records times epsilon, for each group, that a round of residuals takes; rounds grow with its
    # cube root, up to a number.
    round_pays: float = 20.0
    most_rounds: int = 8
    # Differences of a number from its median are cut where about so many records, over the epsilon
    # of this choice, are beyond: one step of a factor of sqrt(2) must take in some more.
    beyond: float = 2.0
    dear: float = 0.4
    # Residuals are cut to so many standard deviations; more, in proportion, from so many records
    # times epsilon.
    cut: float = 1.8
    more: float = 18_750.0
    # Scores are counted by class in intervals of this width, up to this score either way.
    width: float = 0.5
    ends: float = 5.0
    # ---------------------------------------------------------------- what is expected

    # Variance of a function of a column, of which each group of an order has this share by itself,
    # and what neighbours have in common falls by a factor of e over this share of the order.
    function: float = 4.0
    rough: float = 0.06
    length: float = 0.6
    # Each of so many powers of ten, from 1 down, may be the scale of these variances, and so much
    # of them is added to what is left of a function when it is measured again.
    scales: int = 4
    again: float = 0.03
    # Functions stay within this of their mean.
    most: float = 4.0
    # Standard deviation of shifts and factors about what is expected.
    spread: float = 0.4
    # Standard deviation of the mean of features, and of that of a number about its median, in
    # units of its own standard deviation.
    mean: float = 0.4
    # Standard deviations of a number in a unit of scores, so that few records have scores that are
    # cut; and the variance of a function of a column beside `function` times that of the number.
    unit: float = 3.0
    number: float = 2.0
    # Least share of the expected factor of all functions.
    kept: float = 0.1
    # Newton's steps for what was released.
    steps: int = 10


TUNING = Tuning()

# Keeps ratios and logarithms finite.
TINY = 1e-9

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
        Variance of a residual, as a share of the curvature.
    prior : float
        What the variance of functions is multiplied by.
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.n_outputs = 1 if n_classes == 2 else n_classes
        self.reach = UNIT if n_classes == 2 else 2 * UNIT
        self.dispersion = self.prior = 1.0

    def shares(self, scores: IntArray) -> IntArray:
        """Shares of the classes in units, rounded down, (n, n_classes)."""
        drop = self._all(scores)
        drop = np.minimum(drop.max(axis=1, keepdims=True) - drop, len(_EXPONENTIALS) - 1)
        parts = _EXPONENTIALS[drop]
        return parts * UNIT // parts.sum(axis=1, keepdims=True)

    def residuals(self, scores: IntArray, labels: IntArray) -> IntArray:
        """Outcome minus expectation in units, (n, n_outputs); at most `reach` a row."""
        if self.n_outputs == 1:
            return np.asarray(labels[:, None] * UNIT - self._second(scores))
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

    def _second(self, scores: IntArray) -> IntArray:
        """Share of the second of two classes in units, rounded down, (n, 1)."""
        end = len(_EXPONENTIALS) - 1
        return _OF_TWO[np.clip(scores, -end, end) + end]

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
    std: float = 0.4
    n_outputs: ClassVar[int] = 1

    @property
    def prior(self) -> float:  # noqa: D102
        return TUNING.number * self.dispersion

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
        most = TUNING.most
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
            known, unit = None, link.prior
            if term.spreads is not None:
                known, unit = term.spreads[output], link.prior * TUNING.again
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
        """The records, some at a time."""
        for start in range(0, len(self.counts), size):
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

    def sums(
        self, terms: Sequence[Term], n_values: int, values: Callable[[Records], IntArray]
    ) -> list[IntArray]:
        """Sums of integers (n, n_values) over the records of each group of functions."""
        found = [np.zeros((n_values, len(term.sizes)), dtype=np.int64) for term in terms]
        for block in self.blocks():
            # Sums of integers below 2**53 are exact in floating point.
            seen = (values(block) * block.counts[:, None]).T.astype(np.float64, order="C")
            for term, table in zip(terms, found, strict=True):
                cells = block.groups[:, term.column]
                for each, sums in zip(seen, table, strict=True):
                    sums += np.bincount(cells, each, len(sums)).astype(np.int64)
        return [table.T for table in found]

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
