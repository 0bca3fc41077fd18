"""The released model, its links and records, and the numbers that were tuned.

The numbers of additive models that change a release, each with unit, meaning and what chose it.

Benchmark: ``benchmarks/models.py``; ``--regression`` for numbers.
Scores of classes are logits; those of numbers are about the released mean, in units of `unit`
released standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

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
    # Share of the weights of columns, in each of two steps.
    weights: Fraction = Fraction(3, 40)
    # Of the rest, share of the first histograms where rounds of residuals follow, and of each round
    # share of its line search.
    first: Fraction = Fraction(1, 2)
    search: Fraction = Fraction(1, 10)
    # Share of functions of two columns, where they may pay; what they leave goes to one more round.
    pairs: Fraction = Fraction(1, 4)
    # Of the budget of a pair the share that chooses it.
    choice: Fraction = Fraction(1, 5)
    # Of the first histograms of numbers the share that counts records.
    counting: Fraction = Fraction(1, 4)
    # Of a Newton step the share of the gradient.
    gradient: Fraction = Fraction(4, 5)

    # ---------------------------------------------------------------- what is measured

    # Records times epsilon from which on each column has a weight, not one factor for all.
    weights_pay: float = 4_000.0
    # Records times epsilon, for each group, that a round of residuals takes; rounds grow with its
    # cube root, up to a number.
    round_pays: float = 60.0
    most_rounds: int = 8
    # Largest sum of a record's absolute scores that counts in full in a Newton step.
    reach: int = 5
    # Differences of a number from its median are cut where about so many records, over the epsilon
    # of this choice, are beyond: one step of a factor of sqrt(2) must take in some more.
    beyond: float = 2.0
    dear: float = 0.4
    # Residuals are cut to so many standard deviations; more, in proportion, from so many records
    # times epsilon.
    cut: float = 1.8
    more: float = 18_750.0
    # Scores are counted by class in intervals of this width, up to this score either way.
    width: float = 1.0
    ends: float = 10.0
    # Most groups of a column in a pair, columns that pairs are chosen among, and pairs.
    groups: int = 8
    columns: int = 12
    most_pairs: int = 6
    # A pair pays if its sums of residuals are in each cell this times the scale of their noise, and
    # one can hope for sums of this share of the records.
    pays: float = 0.5
    hope: float = 0.02

    # ---------------------------------------------------------------- what is expected

    # Variance of a function of a column, of what sets apart each group of an ordered one, and the
    # pull to the mean beside that of neighbours to each other.
    function: float = 4.0
    rough: float = 0.25
    pull: float = 0.01
    # Each of so many powers of ten, from 1 down, may be the scale of these variances.
    scales: int = 4
    # Of a function of a pair: share of the variance that all places of an axis have in common, and
    # of the rest the share that each has by itself.
    pair: float = 0.4
    # Functions stay within this of their mean.
    most: float = 4.0
    # Standard deviation of shifts, factors and weights about what is expected.
    spread: float = 0.2
    # Step along residuals that is expected.
    step: float = 0.5
    # Standard deviation of the mean of features, and of that of a number about its median, in
    # units of its own standard deviation.
    mean: float = 0.4
    # Standard deviations of a number in a unit of scores, so that few records have residuals and
    # scores that are cut in a Newton step; and the variance of a function of a column beside
    # `function` times that of the number.
    unit: float = 3.0
    number: float = 2.0
    # Share of what is expected that is kept whatever noise says: of the factor of all functions, of
    # the records in a cell of a pair, and of the curvature of a record, without which Newton's
    # steps would leave all bounds where scores are far too large.
    kept: float = 0.1
    # Newton's steps for what was released.
    steps: int = 10

    @property
    def all_scales(self) -> list[float]:
        """The scales of the prior that are tried."""
        return [10.0**-power for power in range(self.scales)]


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
    joint : int
        Largest sum of the absolute residuals and the weight of a record, in units.
    dispersion : float
        Variance of a residual, as a share of the curvature.
    prior : float
        What the variance of functions is multiplied by.
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.n_outputs = 1 if n_classes == 2 else n_classes
        self.reach = UNIT if n_classes == 2 else 2 * UNIT
        self.joint = UNIT if n_classes == 2 else 2 * UNIT + UNIT // 2
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

    def weights(self, scores: IntArray) -> IntArray:
        """How much a record's residuals move with its scores, in units, (n,)."""
        if self.n_outputs > 1:
            return np.full(len(scores), UNIT // 2)
        # The curvature costs nothing: of a share p, (1 - p) + p (1 - p) = 1 - p**2 for one class,
        # and p + p (1 - p) = 1 - (1 - p)**2 for the other.
        share = self._second(scores)[:, 0]
        return np.asarray(share * (UNIT - share) // UNIT)

    def per_weight(self, intercept: FloatArray) -> FloatArray:
        """Curvature in each score of records of weight 1, (n_outputs,)."""
        if self.n_outputs == 1:
            return np.ones(1)
        return 2.0 * self.curvature(intercept[None])[0]

    def spreads(self, scores: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Weights p and differences of scores whose squares make the curvature.

        Yields
        ------
        weight : ndarray of shape (n,)
            In units.
        direction : ndarray of shape (n, n_outputs)
            The curvature of the loss of a record in its scores is the sum over what is yielded of
            weight times the outer product of direction.
        """
        if self.n_outputs == 1:
            share = self._second(scores)[:, 0]
            curvature = np.maximum(share * (UNIT - share) // UNIT, int(TUNING.kept * UNIT))
            yield curvature, np.ones((len(scores), 1))
            return
        shares = self.shares(scores)
        for label in range(self.n_classes):
            direction = -shares / UNIT
            direction[:, label] += 1.0
            yield shares[:, label], direction

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

    @property
    def joint(self) -> int:  # noqa: D102
        return self.reach + self.reach // 4

    def weights(self, scores: IntArray) -> IntArray:  # noqa: D102
        return np.full(len(scores), self.reach // 4)

    def per_weight(self, intercept: FloatArray) -> FloatArray:  # noqa: D102
        return np.full(1, UNIT / (self.reach // 4))

    def residuals(self, scores: IntArray, labels: IntArray) -> IntArray:  # noqa: D102
        return np.clip(self.outcomes[labels][:, None] - scores, -self.reach, self.reach)

    def spreads(self, scores: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:  # noqa: D102
        yield np.full(len(scores), UNIT), np.ones((len(scores), 1))

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


# ------------------------------------------------------------------------------------------------
# The released additive model: intercepts, functions of each column, and of pairs.


class Axis(NamedTuple):
    """Few groups of the groups of a column.

    Attributes
    ----------
    groups : ndarray of shape (n_groups_of_column,)
        Place on the axis of each group of the column.
    n_groups : int
        Places on the axis.
    n_ordered : int
        So many of them, the first, are in an order.
    """

    groups: IntArray
    n_groups: int
    n_ordered: int


@dataclass(frozen=True, eq=False)
class PairTerm:
    """A function of two columns, without what belongs to either alone.

    Attributes
    ----------
    columns : (int, int)
        Positions of the columns.
    axes : (Axis, Axis)
    scores, std_errors : ndarray of shape (n_first, n_second, n_outputs)
        Standard errors are those of the scores, from the noise alone.
    sizes : ndarray of shape (n_first, n_second)
        Records of each cell if the columns were independent, from released numbers.
    """

    columns: tuple[int, int]
    axes: tuple[Axis, Axis]
    scores: FloatArray
    std_errors: FloatArray
    sizes: FloatArray

    def exact(self, first: IntArray, second: IntArray) -> IntArray:
        """Scores of groups of the two columns in whole units, (n, n_outputs)."""
        one, other = self.axes
        cells = one.groups.take(first) * other.n_groups + other.groups.take(second)
        return self._table.take(cells, axis=0)

    @cached_property
    def _table(self) -> IntArray:
        return fixed(self.scores).reshape(-1, self.scores.shape[2])

    def scaled(self, factor: float, variance: float) -> PairTerm:
        """Times a factor that has itself a variance."""
        noise = np.sqrt(factor**2 * self.std_errors**2 + variance * self.scores**2)
        return replace(self, scores=factor * self.scores, std_errors=noise)


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Scores as a sum of an intercept, a function of each column, and some of two columns.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    shapes : tuple of ndarray of shape (n_groups, n_outputs)
        Score of each group of each column; the mean over the records is about 0.
    std_errors : tuple of ndarray of shape (n_groups, n_outputs)
        Of ``shapes``, from the noise alone.
    sizes : tuple of ndarray of shape (n_groups,)
        Released number of records of each group, not negative.
    pairs : tuple of PairTerm
    """

    intercept: FloatArray
    shapes: tuple[FloatArray, ...]
    std_errors: tuple[FloatArray, ...]
    sizes: tuple[FloatArray, ...]
    pairs: tuple[PairTerm, ...] = ()

    def exact_scores(self, groups: IntArray) -> IntArray:
        """Scores in whole units: those of a row depend on nothing but the row and the release."""
        result = np.tile(fixed(self.intercept), (len(groups), 1))
        for column, table in enumerate(self._tables):
            # No group is out of range, and the mode saves a copy.
            result += table.take(groups[:, column], axis=0, mode="clip")
        for pair in self.pairs:
            first, second = pair.columns
            result += pair.exact(groups[:, first], groups[:, second])
        return result

    @cached_property
    def _tables(self) -> list[IntArray]:
        return [fixed(shape) for shape in self.shapes]

    def in_units(self, scale: float, shift: float) -> AdditiveModel:
        """The model whose scores are `scale` times these, and `shift`."""
        return AdditiveModel(
            shift + scale * self.intercept,
            tuple(scale * shape for shape in self.shapes),
            tuple(scale * error for error in self.std_errors),
            self.sizes,
            tuple(pair.scaled(scale, 0.0) for pair in self.pairs),
        )


def mean_size(scores: FloatArray, sizes: FloatArray) -> float:
    """Mean absolute score over the records, of groups of these sizes."""
    n, total = len(sizes), sizes.sum()
    weights = sizes / total if total > 0 else np.full(n, 1.0 / n)
    return float(weights @ np.abs(scores).reshape(n, -1).mean(axis=1))


# --- functions of a column from noisy sums: smooth along an order, shrunk where the noise is large


@dataclass(frozen=True, eq=False)
class _Update:
    """What a noisy sum says about a function of a column.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        Posterior mean.
    gain : ndarray of shape (n, n) or (n,)
        The mean is the gain times the observed sums; a vector stands for a diagonal matrix.
    """

    mean: FloatArray
    gain: FloatArray


class Prior:
    """A normal prior of the function of one column.

    Parameters
    ----------
    n_groups : int
    chain : ndarray of int or None
        The groups in an order in which neighbours are similar; groups that are left out, or all if
        None, have no neighbours.
    values : ndarray of shape (n_groups, n_values), default=None
        The function is linear in these values. None: any function.
    """

    def __init__(
        self, n_groups: int, chain: Sequence[int] | None, values: FloatArray | None = None
    ) -> None:
        self.covariance: FloatArray | None = None
        self.linear = values is not None
        self._free = np.full(n_groups, TUNING.function)
        if values is not None:
            self.covariance = TUNING.function * values @ values.T
            return
        if chain is None or len(chain) < 3:
            return
        covariance = np.diag(self._free)
        places = np.ix_(chain, chain)
        smooth = TUNING.function * _walk(len(chain))
        covariance[places] = smooth + TUNING.rough * np.eye(len(chain))
        self.covariance = covariance

    @classmethod
    def of_pair(cls, first: Axis, second: Axis) -> Prior:
        """Of a function of two columns, by cells: also of what either column says alone.

        The functions of single columns come from fewer records times epsilon for each group, and
        the few places of an axis tell what they missed.
        """
        prior = cls(first.n_groups * second.n_groups, None)
        prior.covariance = np.asarray(np.kron(_along(first), _along(second)), dtype=np.float64)
        return prior

    def update(
        self, sums: FloatArray, curvature: FloatArray, noise: FloatArray, unit: float = 1.0
    ) -> _Update:
        """Posterior of a function f given sums = curvature * f + noise.

        It is the mean over scales of the prior, each as likely as what was observed makes it.

        Parameters
        ----------
        sums, curvature, noise : ndarray of shape (n_groups,)
            What was observed, how much it moves with f, and its variance.
        unit : float, default=1.0
            What the largest variance of the prior is multiplied by.
        """
        found = [self._at(unit * scale, sums, curvature, noise) for scale in TUNING.all_scales]
        likely = np.array([pair[0] for pair in found])
        shares = np.exp(likely - likely.max())
        shares /= shares.sum()
        gain = sum((share * each.gain for share, (_, each) in zip(shares, found, strict=True)), 0.0)
        return _Update(gain @ sums if np.ndim(gain) == 2 else gain * sums, np.asarray(gain))

    def within(self, function: FloatArray) -> FloatArray:
        """The function, cut where it is too large; a line stays one."""
        most = TUNING.most
        if not self.linear:
            return np.clip(function, -most, most)
        return function * min(1.0, most / max(float(np.abs(function).max()), most))

    def _at(
        self, scale: float, sums: FloatArray, curvature: FloatArray, noise: FloatArray
    ) -> tuple[float, _Update]:
        """Logarithm of the likelihood, up to a constant, and the update."""
        if self.covariance is None:
            spread = scale * self._free
            total = noise + spread * curvature**2
            gain = spread * curvature / total
            likely = -0.5 * float((sums**2 / total).sum() + np.log(total).sum())
            return likely, _Update(gain * sums, gain)
        spread = scale * self.covariance
        total = curvature[:, None] * spread * curvature + np.diag(noise)
        factor = cho_factor(total, lower=True)
        gain = cho_solve(factor, curvature[:, None] * spread).T
        fit = float(sums @ cho_solve(factor, sums))
        likely = -0.5 * fit - float(np.log(np.diag(factor[0])).sum())
        return likely, _Update(gain @ sums, gain)


def _along(axis: Axis) -> FloatArray:
    """Covariance along one axis of a pair: what all places share, and what sets them apart."""
    n, m = axis.n_groups, axis.n_ordered
    own = np.eye(n)
    if m > 2:
        centred = np.eye(m) - 1 / m
        smooth = centred @ _walk(m) @ centred
        own[:m, :m] = (1 - TUNING.pair) * smooth * m / np.trace(smooth) + TUNING.pair * np.eye(m)
    return np.asarray(TUNING.pair + (1 - TUNING.pair) * own)


@lru_cache(maxsize=64)
def _walk(n: int) -> FloatArray:
    """Covariance of a random walk over n groups with a weak pull to 0, of mean variance 1."""
    steps = np.diff(np.eye(n), axis=0)
    covariance = np.linalg.inv(steps.T @ steps * n / 8 + TUNING.pull * np.eye(n))
    return np.asarray(covariance / np.trace(covariance) * n)


# --- a model while it is being fitted, with the covariance that noise gives its functions

# What is released are multiples of this: further digits depend on the order in which a machine
# adds, and are all that is left of noise that later rounds have corrected.
_TINY = 2.0**-26


@dataclass(eq=False)
class Draft:
    """Intercepts, functions, and noise of the functions; nothing but released numbers.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    shapes : list of ndarray of shape (n_groups, n_outputs)
    noise : list of list of ndarray
        Covariance of each function of each column, (n_groups, n_groups) or its diagonal.
    sizes : list of ndarray of shape (n_groups,)
        Released number of records of each group.
    pairs : list of PairTerm
    """

    intercept: FloatArray
    shapes: list[FloatArray]
    noise: list[list[FloatArray]]
    sizes: list[FloatArray]
    pairs: list[PairTerm] = field(default_factory=list)

    @classmethod
    def empty(cls, intercept: FloatArray, n_groups: Sequence[int]) -> Draft:
        """The constant model."""
        n_outputs = len(intercept)
        return cls(
            intercept,
            [np.zeros((n, n_outputs)) for n in n_groups],
            [[np.zeros(n)] * n_outputs for n in n_groups],
            [np.zeros(n) for n in n_groups],
        )

    def replace(
        self, column: int, output: int, shape: FloatArray, update: _Update, noise: FloatArray
    ) -> None:
        """Take another function, known from sums with noise of this variance."""
        self.shapes[column][:, output] = shape
        self.noise[column][output] = _spread(update.gain, noise)

    def move(
        self,
        column: int,
        output: int,
        update: _Update,
        curvature: FloatArray,
        noise: FloatArray,
        step: float,
    ) -> None:
        """Go a step towards what sums of residuals say; they correct earlier noise as well."""
        self.shapes[column][:, output] += step * update.mean
        before = self.noise[column][output]
        gain = step * update.gain
        if gain.ndim == 1:
            kept = (1.0 - gain * curvature) ** 2 * before
        else:
            keep = np.eye(len(gain)) - gain * curvature
            kept = keep @ (np.diag(before) if before.ndim == 1 else before) @ keep.T
        self.noise[column][output] = kept + _spread(gain, noise)

    def centre(self, column: int) -> None:
        """Make the mean over the records 0."""
        sizes = self.sizes[column]
        share = sizes / sizes.sum() if sizes.sum() > 0 else np.full(len(sizes), 1 / len(sizes))
        self.shapes[column] = self.shapes[column] - share @ self.shapes[column]

    def copy(self) -> Draft:
        """A draft that stays as it is when this one changes."""
        shapes = [shape.copy() for shape in self.shapes]
        noise = [list(each) for each in self.noise]
        return Draft(self.intercept, shapes, noise, self.sizes, list(self.pairs))

    def weigh(self, alone: Draft, factors: FloatArray, variances: FloatArray) -> None:
        """Take the functions of another draft, each times a factor that is itself noisy."""
        for column, (factor, variance) in enumerate(zip(factors, variances, strict=True)):
            shape = alone.shapes[column]
            self.shapes[column] = factor * shape
            for output, noise in enumerate(alone.noise[column]):
                own = shape[:, output]
                extra = own**2 if noise.ndim == 1 else np.outer(own, own)
                self.noise[column][output] = factor**2 * noise + variance * extra

    def size(self) -> float:
        """Root of the mean square of the scores over the records, if columns were independent."""
        parts = [(shape[:, 0], n) for shape, n in zip(self.shapes, self.sizes, strict=True)]
        parts += [(pair.scores[..., 0].ravel(), pair.sizes.ravel()) for pair in self.pairs]
        return float(np.sqrt(sum(n @ s**2 / max(float(n.sum()), 1.0) for s, n in parts)))

    def scale(self, factor: float, variance: float) -> None:
        """Multiply all functions by a factor that is itself noisy."""
        n = len(self.shapes)
        self.weigh(self.copy(), np.full(n, factor), np.full(n, variance))
        self.pairs = [pair.scaled(factor, variance) for pair in self.pairs]

    def cell_shares(self, pair: tuple[int, int], axes: tuple[Axis, Axis]) -> FloatArray:
        """Share of the records of each cell if the columns were independent."""
        return np.outer(*(self._share(*each) for each in zip(pair, axes, strict=True)))

    def _share(self, column: int, axis: Axis) -> FloatArray:
        """Share of the records of each place on an axis; none is empty."""
        found = np.bincount(axis.groups, weights=self.sizes[column], minlength=axis.n_groups)
        found = np.maximum(found, 1e-4 * max(float(found.sum()), 1.0))
        return found / found.sum()

    def add_pair(
        self,
        pair: tuple[int, int],
        axes: tuple[Axis, Axis],
        updates: Sequence[_Update],
        noise: float,
    ) -> None:
        """Add a function of two columns; its means along each axis go to the other column.

        Parameters
        ----------
        pair : (int, int)
        axes : (Axis, Axis)
        updates : sequence of Update
            Of the cells, for each output.
        noise : float
            Variance of what the updates were learnt from.
        """
        first, second = (self._share(*each) for each in zip(pair, axes, strict=True))
        m, n = len(first), len(second)
        # Linear maps of a function of all cells: its parts in either column, and the rest.
        mean = np.kron(first, second)
        parts = np.kron(np.eye(m), second) - mean, np.kron(first, np.eye(n)) - mean
        rest = np.eye(m * n) - mean - np.repeat(parts[0], n, axis=0) - np.tile(parts[1], (m, 1))
        for column, axis, part in zip(pair, axes, parts, strict=True):
            moved = part[axis.groups]
            # A new array: other drafts keep theirs.
            added = np.stack([moved @ update.mean for update in updates], axis=1)
            self.shapes[column] = self.shapes[column] + added
            for output, update in enumerate(updates):
                gain = moved @ update.gain
                before = self.noise[column][output]
                self.noise[column][output] = before + noise * (
                    (gain**2).sum(axis=1) if before.ndim == 1 else gain @ gain.T
                )
        scores = np.stack([rest @ update.mean for update in updates], axis=1)
        gains = [np.square(rest @ update.gain).sum(axis=1) for update in updates]
        variances = noise * np.stack(gains, axis=1)
        total = float(np.mean([sizes.sum() for sizes in self.sizes]))
        self.pairs.append(
            PairTerm(
                pair,
                axes,
                scores.reshape(m, n, -1),
                np.sqrt(variances).reshape(m, n, -1),
                total * np.outer(first, second),
            )
        )

    def finished(self) -> AdditiveModel:
        """The model, with standard errors in place of covariances."""
        variances = [
            np.stack([n if n.ndim == 1 else np.diag(n) for n in outputs], axis=1)
            for outputs in self.noise
        ]
        return AdditiveModel(
            _settled(self.intercept),
            tuple(_settled(shape) for shape in self.shapes),
            tuple(_settled(np.sqrt(np.maximum(each, 0.0))) for each in variances),
            tuple(self.sizes),
            tuple(
                replace(pair, scores=_settled(pair.scores), std_errors=_settled(pair.std_errors))
                for pair in self.pairs
            ),
        )


def _settled(values: FloatArray) -> FloatArray:
    """Without the digits that rounding decides."""
    # Adding 0 makes -0 positive.
    return np.asarray(np.rint(values / _TINY) * _TINY + 0.0)


def _spread(gain: FloatArray, noise: FloatArray) -> FloatArray:
    """Covariance of gain times independent noise."""
    if gain.ndim == 1:
        return gain**2 * noise
    return np.asarray((gain * noise) @ gain.T)


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

    def sums(self, n_values: int, values: Callable[[Records], IntArray]) -> list[IntArray]:
        """Sums of integers (n, n_values) over the records of each group of each column."""
        found = [np.zeros((n_values, n), dtype=np.int64) for n in self.n_groups]
        for block in self.blocks():
            # Sums of integers below 2**53 are exact in floating point.
            seen = (values(block) * block.counts[:, None]).T.astype(np.float64, order="C")
            for column, table in enumerate(found):
                groups = block.groups[:, column]
                for each, sums in zip(seen, table, strict=True):
                    sums += np.bincount(groups, each, len(sums)).astype(np.int64)
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
