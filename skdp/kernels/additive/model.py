"""The released additive model: intercepts, functions of each column, and of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._types import FloatArray, IntArray
from .links import fixed
from .tuning import TUNING

__all__ = ["AdditiveModel", "Axis", "Draft", "PairTerm", "Prior", "mean_size"]


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

    def update(self, sums: FloatArray, curvature: FloatArray, noise: FloatArray) -> _Update:
        """Posterior of a function f given sums = curvature * f + noise.

        It is the mean over scales of the prior, each as likely as what was observed makes it.

        Parameters
        ----------
        sums, curvature, noise : ndarray of shape (n_groups,)
            What was observed, how much it moves with f, and its variance.
        """
        found = [self._at(scale, sums, curvature, noise) for scale in TUNING.all_scales]
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
