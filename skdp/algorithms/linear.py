"""Linear models: PrivLocal, PrivGene, the functional mechanism and our own, on distinct records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from .._random import sampling_generator
from .._validation import FloatArray, IntArray
from ..mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max, top_k
from .additive import TUNING as ADDITIVE
from .additive import UNIT, Identity, Logit, Prior, Records, fit_additive, located, paying_share

# ------------------------------------------------------------------------------------------------
# The numbers that stand for the groups of each column: public.


@dataclass(frozen=True, eq=False)
class Column:
    """One column as features: of each group of its values one row of numbers.

    Attributes
    ----------
    values : ndarray of shape (n_groups, n_features)
        The absolute values of a row sum to at most 1.
    free : bool
        Whether the features are one indicator for each group.
    chain : list of int or None
        Groups in an order in which neighbours are similar.
    n_bins : int
        The first groups that are bins of a number, in their order.
    """

    values: FloatArray
    free: bool
    chain: Sequence[int] | None
    n_bins: int = 0

    def units(self) -> IntArray:
        """The values in integers, cut toward zero: rows keep their bound."""
        return np.trunc(np.clip(self.values, -1.0, 1.0) * UNIT).astype(np.int64)

    def prior(self) -> Prior:
        """What a function of the column may look like."""
        if self.free:
            return Prior(len(self.values), self.chain)
        constant = np.ones((len(self.values), 1))
        return Prior(len(self.values), None, np.hstack([constant, self.values]))

    def coefficients(self, shape: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients of a function of the groups, and the constant that is left.

        Parameters
        ----------
        shape : ndarray of shape (n_groups, n_outputs)

        Returns
        -------
        coef : ndarray of shape (n_outputs, n_features)
        constant : ndarray of shape (n_outputs,)
        """
        if self.free:
            return shape.T.copy(), np.zeros(shape.shape[1])
        constant = np.ones((len(shape), 1))
        features = np.hstack([constant, self.values])
        found = np.linalg.lstsq(features, shape, rcond=None)[0].astype(np.float64)
        return found[1:].T, found[0]


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of a linear model.

    Attributes
    ----------
    columns : tuple of Column
    """

    columns: tuple[Column, ...]

    @property
    def blocks(self) -> list[slice]:
        """Features of each column."""
        stops = np.cumsum([0, *(column.values.shape[1] for column in self.columns)])
        return [slice(int(a), int(b)) for a, b in zip(stops[:-1], stops[1:], strict=True)]

    @property
    def n_features(self) -> int:
        """Number of features of all columns."""
        return sum(column.values.shape[1] for column in self.columns)

    def merged(self, records: Records, n_bins: int) -> tuple[Records, Design]:
        """The same with at most so many bins of each number, in equal parts, with their means."""
        groups, columns = records.groups.copy(order="F"), []
        for j, column in enumerate(self.columns):
            places = np.arange(len(column.values))
            if column.n_bins > n_bins:
                places[: column.n_bins] = places[: column.n_bins] * n_bins // column.n_bins
                places[column.n_bins :] -= column.n_bins - n_bins
                groups[:, j] = places[groups[:, j]]
            sizes = np.bincount(places)[:, None]
            sums = np.stack([np.bincount(places, each) for each in column.values.T], axis=1)
            columns.append(replace(column, values=sums / sizes))
        n_groups = tuple(len(column.values) for column in columns)
        return replace(records, groups=groups, n_groups=n_groups), Design(tuple(columns))

    def rows(self, groups: IntArray) -> FloatArray:
        """Features of records in units, whole numbers, (n, n_features).

        Parameters
        ----------
        groups : ndarray of shape (n, n_columns)
        """
        parts = [c.units()[groups[:, j]] for j, c in enumerate(self.columns)]
        return np.hstack([np.empty((len(groups), 0)), *parts])

    def scores(self, groups: IntArray, weights: IntArray) -> FloatArray:
        """Sums of weights, that of the constant first, times features, exact below 2**53.

        Parameters
        ----------
        groups : ndarray of shape (n, n_columns)
        weights : ndarray of shape (1 + n_features,) or (1 + n_features, n_candidates)
        """
        result = np.tile(weights[0] * float(UNIT), (len(groups), *(1,) * (weights.ndim - 1)))
        for column, block, group in zip(self.columns, self.blocks, groups.T, strict=True):
            result += (column.units().astype(np.float64) @ weights[1:][block])[group]
        return result


# --- the released linear model: intercepts, and a coefficient of each feature


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores that are linear in the features of a `Design`.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    coef : ndarray of shape (n_outputs, n_features)
    std : ndarray of shape (n_outputs, n_features)
        How far off ``coef`` may be, as standard deviations; NaN where nothing is known of it.
    """

    intercept: FloatArray
    coef: FloatArray
    std: FloatArray


# --- what a search minimises: sums of integer losses, and how far one record can spread them


LOSSES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "logistic": lambda margin: np.logaddexp(0.0, -margin),
    "hinge": lambda margin: np.maximum(1.0 - margin, 0.0),
    # Targets and scores lie within -1 to 1, so that no residual is larger than 2.
    "squares": lambda residual: np.square(np.clip(residual, -2.0, 2.0)),
}
# Where their tables end, in units: beyond, losses are those of the end.
_END = 8 * UNIT


@dataclass(frozen=True, eq=False)
class Objective:
    """The loss of a record: a table at ``offset + sign * score``.

    Attributes
    ----------
    loss : str
        One of `LOSSES`.
    offsets, signs : ndarray of shape (n_labels,)
        By label. Offsets are in units.
    """

    loss: str
    offsets: IntArray
    signs: IntArray

    def at(self, scores: IntArray, labels: IntArray) -> FloatArray:
        """Losses of records in units: whole numbers, whose sums are exact below 2**53.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, n_candidates)
            In squared units: sums of products of weights and features.
        labels : ndarray of shape (n,)
        """
        shape = (len(labels),) + (1,) * (scores.ndim - 1)
        margins = scores >> (UNIT.bit_length() - 1)
        margins *= self.signs[labels].reshape(shape)
        margins += (self.offsets[labels] + _END).reshape(shape)
        return np.take(_table(self.loss), margins, mode="clip")

    def spread(self, width: int) -> int:
        """Largest difference of two losses of a record whose scores differ by at most ``width``.

        Rounding scores down to whole units keeps whole differences, and so does clipping: the
        losses are two entries of the table at most ``width`` apart.
        """
        return _spread(self.loss, min(width, 2 * _END))


@lru_cache(maxsize=8)
def _table(loss: str) -> FloatArray:
    found = np.rint(LOSSES[loss](np.arange(-_END, _END + 1) / UNIT) * UNIT)
    found.flags.writeable = False
    return np.asarray(found)


@lru_cache(maxsize=1024)
def _spread(loss: str, width: int) -> int:
    table, size = _table(loss), width + 1
    # A window of this size begins at each place; beyond the end there are copies of the end.
    highest = maximum_filter1d(table, size, mode="nearest")
    return max(int((highest - minimum_filter1d(table, size, mode="nearest")).max()), 1)


def objectives(link: Logit | Identity, loss: str) -> list[Objective]:
    """One objective for each score: of a number, of the second of two classes, or of each class."""
    if isinstance(link, Identity):
        return [Objective(loss, link.outcomes, np.full_like(link.outcomes, -1))]
    every = np.eye(link.n_classes, dtype=np.int64) * 2 - 1
    chosen = every[1:] if link.n_outputs == 1 else every
    return [Objective(loss, np.zeros_like(signs), signs) for signs in chosen]


# ------------------------------------------------------------------------------------------------
# Noisy sums of products of features and outcomes, in integers.


class Moments(NamedTuple):
    """Sums over the records, with noise; a feature 1 comes first.

    Attributes
    ----------
    products : ndarray of shape (1 + n_features, 1 + n_features)
        Of features with features: symmetric, perhaps with negative eigenvalues.
    cross : ndarray of shape (1 + n_features, n_outcomes)
        Of features with outcomes.
    std : float
        Standard deviation of the noise of each sum.
    """

    products: FloatArray
    cross: FloatArray
    std: float


def noisy_moments(
    records: Records,
    design: Design,
    outcomes: IntArray,
    reach: int,
    ones: FloatArray,
    epsilon: Fraction,
    random_state: Any,
) -> Moments:
    """Release the second moments of features and outcomes.

    Parameters
    ----------
    records : Records
    design : Design
    outcomes : ndarray of shape (n_labels, n_outcomes)
        Outcomes of each label, in units.
    reach : int
        Largest sum of the absolute outcomes of a record; outcomes are in units.
    ones : ndarray of shape (n_outcomes,)
        Weights with which the outcomes of any record sum to 1: sums of features follow from sums
        of products with outcomes.
    epsilon : Fraction
    random_state : NoiseSource
    """
    # Privacy. Released: sums of products of a feature and an outcome, and of features of two
    # columns, integers. The features of a column are at most 1 together, so one record adds at most
    # `reach` for each column and for the constant, 1 for each pair of columns, and 1 for the square
    # of each number; squares of indicators follow from their sums. All noise has this sensitivity.
    cross, products = _sums(records, design, outcomes)
    asked = _asked(design)
    most = most_products(design, reach) * UNIT**2
    exact = np.concatenate([cross.ravel(), products[asked]])
    noisy = discrete_laplace(exact, epsilon, most, random_state=random_state) / UNIT**2
    crossed, rest = noisy[: cross.size].reshape(cross.shape), noisy[cross.size :]
    firsts = crossed @ ones
    full = np.zeros((len(firsts), len(firsts)))
    full[1:, 1:][asked] = rest
    full += np.triu(full, 1).T
    full[0], full[:, 0] = firsts, firsts
    free = np.flatnonzero(_free(design)) + 1
    full[free, free] = firsts[free]
    return Moments(
        full, crossed, float(np.sqrt(discrete_laplace_variance(epsilon, most))) / UNIT**2
    )


def check_products(design: Design, reach: int, epsilon: Fraction) -> None:
    """Refuse an epsilon whose noise does not fit into the integers of `noisy_moments`.

    Raises
    ------
    ValueError
        If it is too small for so many columns.
    """
    discrete_laplace_variance(epsilon, most_products(design, reach) * UNIT**2)


def most_products(design: Design, reach: int) -> int:
    """Largest sum of the absolute products that one record adds, see `noisy_moments`."""
    m = len(design.columns)
    numbers = sum(not column.free for column in design.columns)
    return (1 + m) * reach + m * (m - 1) // 2 + numbers


def _sums(records: Records, design: Design, outcomes: IntArray) -> tuple[IntArray, IntArray]:
    """Exact sums of products with outcomes, and of features."""
    p = design.n_features
    cross, products = np.zeros((1 + p, outcomes.shape[1])), np.zeros((p, p))
    for block in records.blocks():
        features = np.hstack([np.full((len(block.counts), 1), UNIT), design.rows(block.groups)])
        # Products of matrices of integers are exact in floating point below 2**53, in any order.
        weighted = (features * block.counts[:, None]).T
        cross += weighted @ outcomes[block.labels].astype(np.float64)
        products += weighted[1:] @ features[:, 1:]
    return cross.astype(np.int64), products.astype(np.int64)


def _asked(design: Design) -> tuple[IntArray, IntArray]:
    """Products that are measured: above the diagonal, and squares of numbers."""
    p, free = design.n_features, _free(design)
    wanted = np.triu(np.ones((p, p), dtype=bool), 1)
    for column, block in zip(design.columns, design.blocks, strict=True):
        if column.free:
            # Indicators of one column exclude each other.
            wanted[block, block] = False
    wanted[~free, ~free] = True
    first, second = np.nonzero(wanted)
    return first, second


def _free(design: Design) -> Any:
    """Which features are indicators of the groups of a column."""
    return np.repeat(
        [column.free for column in design.columns],
        [column.values.shape[1] for column in design.columns],
    ).astype(bool)


# ------------------------------------------------------------------------------------------------
# The numbers of linear models that change a release, each with unit, meaning and what chose it.
#
# Benchmark: ``benchmarks/models.py``, and the targets of ``benchmarks/baseline.py`` for `fit_auto`.
# Shares of epsilon, and what else is expected, are those of additive models.


@dataclass(frozen=True)
class Tuning:
    """Which solver, in which bins, and how searches move."""

    # Least ratio of signal to noise at which second moments are better: they are worse up to ratios
    # of 20 to 40, and with many categories to 100.
    clear: float = 40.0
    # Bins of a number in histograms at least, because the noise of a slope grows with their number;
    # and records times epsilon of each column for one more.
    bins: int = 16
    signal: float = 1_000.0
    # Rounds of PrivLocal, and selections of PrivGene, at most; records times epsilon of a round of
    # the former, and its first step in weights; chosen on generated tables.
    most: int = 120
    round: float = 400.0
    first: float = 0.4


TUNING = Tuning()

# ------------------------------------------------------------------------------------------------
# The most accurate way to a linear model for the signal at hand, and the functional mechanism.


# Features whose table of all products is too large for memory and time are more than this.
_FEATURES_ONCE = 1024


def fit_auto(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> LinearModel:
    """Second moments of a number and few features; otherwise functions of single columns.

    Parameters are those of `fit_functional`; ``total`` is the released number of records.
    """
    # Privacy. Which of the two is fitted, and in which bins, follows from the released number and
    # public facts. What `located` and `fit_functional` release is composed sequentially.
    signal = float(epsilon) * max(total, 0.0)
    if isinstance(link, Identity) and _clear(design, signal):
        part = paying_share(epsilon, total, ADDITIVE.located)
        link = located(records, link, part, total, signal, random_state)
        return fit_functional(records, design, link, epsilon - part, total, random_state)
    n_bins = max(int(signal / (TUNING.signal * len(design.columns))), TUNING.bins)
    records, design = design.merged(records, n_bins)
    return fit_smooth(records, design, link, epsilon, total, random_state)


def _clear(design: Design, signal: float) -> bool:
    """Whether second moments, whose noise grows with the pairs of columns, stand out from it."""
    m, p = len(design.columns), design.n_features
    if p > _FEATURES_ONCE:
        return False
    # Records of a feature of average size, against the largest eigenvalue of noise alone.
    return signal * m / p > TUNING.clear * most_products(design, 2) * p**0.5


# --- coefficients through the additive model of the same columns


def fit_smooth(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> LinearModel:
    """Fit an additive model whose functions are linear in the features; see `fit_additive`.

    An indicator of each group of a column is a function of the column. A number is a function with
    a prior that holds straight lines only.

    Parameters
    ----------
    records : Records
    design : Design
    link : Logit or Identity
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    priors = [column.prior() for column in design.columns]
    model = fit_additive(records, link, priors, epsilon, total, random_state)
    coef = np.zeros((link.n_outputs, design.n_features))
    std = np.zeros_like(coef)
    intercept = model.intercept.copy()
    for column, block, term in zip(design.columns, design.blocks, model.terms, strict=True):
        found, constant = column.coefficients(term.scores)
        error = _slopes(column.values, column.free, term.std_errors)
        coef[:, block], std[:, block] = found, error
        intercept += constant
    return LinearModel(intercept, coef, std)


def _slopes(values: Any, free: bool, std: Any) -> Any:
    """Standard errors of coefficients from those of the groups, (n_outputs, n_features)."""
    if free:
        return std.T
    # The groups of a line err together: the one that lies furthest from the middle tells the slope.
    furthest = np.argmax(np.abs(values), axis=0)
    reach = np.abs(values[furthest, np.arange(values.shape[1])])[:, None]
    # A feature that is always 0 has no slope.
    return np.divide(std[furthest], reach, out=np.zeros_like(std[furthest]), where=reach > 0).T


# --- the functional mechanism: a quadratic objective with noise in its coefficients


def moment_reach(link: Logit | Identity) -> int:
    """Largest sum of the absolute outcomes of a record: 1 and the number, or its class."""
    return 2 if isinstance(link, Identity) else 1


def fit_functional(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> LinearModel:
    """Minimise a quadratic objective that was released: least squares, or a Taylor polynomial.

    The logistic loss becomes its Taylor polynomial of degree 2 at scores of 0. Its minimum is that
    of least squares on indicators of the classes, times the number of classes.

    Parameters
    ----------
    records : Records
    design : Design
    link : Logit or Identity
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    # Privacy. Released: the moments of `noisy_moments`. The objective is made of them alone.
    if isinstance(link, Identity):
        # About the centre, as shares of the largest residual.
        every = np.arange(len(link.outcomes))
        at = np.zeros((len(every), 1), dtype=np.int64)
        apart = np.trunc(link.residuals(at, every) * (UNIT / link.reach)).astype(np.int64)
        outcomes = np.hstack([np.full_like(apart, UNIT), apart])
        ones = np.array([1.0, 0.0])
    else:
        outcomes = np.eye(link.n_classes, dtype=np.int64) * UNIT
        ones = np.ones(link.n_classes)
    moments = noisy_moments(
        records, design, outcomes, moment_reach(link), ones, epsilon, random_state
    )
    if isinstance(link, Identity):
        scale = link.scale * link.reach / UNIT
        found = _minimum(moments, moments.cross[:, 1:], total)
        intercept, coef, std = (scale * each for each in found)
        intercept = intercept + link.centre
    else:
        k = link.n_classes
        intercept, coef, std = _minimum(moments, moments.cross, total)
        intercept, coef, std = k * intercept - 1.0, k * coef, k * std
        if link.n_outputs == 1:
            intercept, coef = intercept[1:] - intercept[:1], coef[1:] - coef[:1]
            std = np.hypot(std[1:], std[:1])
    return LinearModel(intercept, coef, std)


def _minimum(
    moments: Moments, cross: FloatArray, total: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Intercepts, coefficients and their errors of least squares by noisy moments."""
    total = max(total, 1.0)
    # Means that are lost in noise are taken to be 0.
    kept = ADDITIVE.expected**2 / (ADDITIVE.expected**2 + (moments.std / total) ** 2)
    mean = np.clip(kept * moments.products[0, 1:] / total, -1.0, 1.0)
    outcome = np.clip(kept * cross[0] / total, -1.0, 1.0)
    products = moments.products[1:, 1:] - total * np.outer(mean, mean)
    values, vectors = np.linalg.eigh(products)
    # Eigenvalues of noise alone reach about this; directions below it say nothing, and those above
    # it are shrunk.
    noise = 2.0 * moments.std * np.sqrt(len(values))
    kept = np.maximum(values, 0.0)
    gain = kept / (kept**2 + noise**2 + 1e-300)
    inverse = (vectors * gain) @ vectors.T
    coef = (inverse @ (cross[1:] - total * np.outer(mean, outcome))).T
    # To first order, noise in the products counts as much as the coefficients are large.
    each = moments.std * np.sqrt(1.0 + (coef**2).sum(axis=1))
    std = each[:, None] * np.sqrt((inverse**2).sum(axis=1))
    return outcome - coef @ mean, coef, std


# ------------------------------------------------------------------------------------------------
# Searches for weights: PrivLocal moves one a round, PrivGene selects among whole populations.


# Records whose losses of all candidates fit into a cache.
_CHUNK = 2**11


# --- PrivLocal: each round moves one weight by a step, chosen with noise (Algorithm 8)


def fit_local_search(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
    loss: str,
    *,
    n_rounds: int | None = None,
    start: Any = 0.0,
    step: float = TUNING.first,
    decay: float | None = None,
) -> LinearModel:
    """Start at given weights, and move one weight a round by a step that shrinks.

    Parameters
    ----------
    records : Records
    design : Design
    link : Logit or Identity
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    loss : str
        One of `LOSSES`. With more than two classes, each is told from the others at an equal share.
    n_rounds : int, default=None
        Public. None: by the released number of records.
    start : float or ndarray of shape (1 + n_features,), default=0.0
        Public weights at first, that of the constant before the others.
    step : float
        Of the first round, in weights.
    decay : float, default=None
        By how much it shrinks each round. None: to an eighth over all rounds.
    """
    # Privacy. Released: one winner each round, given the released number of records. One
    # record changes the scores of all candidates of a round by its losses there. Its candidates
    # move its score by at most one step up or down, so these changes lie in an interval of the
    # length that `Objective.spread` reads off the public table of losses. Rounds compose.
    goals = objectives(link, loss)
    each = epsilon / len(goals)
    rounds = n_rounds
    if rounds is None:
        usual = max(total, 0.0) * float(each) / TUNING.round
        rounds = int(np.clip(usual, 8, TUNING.most))
    if decay is None:
        decay = 8 ** (-1 / max(rounds - 1, 1))
    moves = _whole(np.maximum(step * decay ** np.arange(rounds), 1 / UNIT)).tolist()
    first = _whole(np.broadcast_to(start, 1 + design.n_features))
    weights = np.tile(first, (len(goals), 1))
    for goal, row in zip(goals, weights, strict=True):
        scores = design.scores(records.groups, first).astype(np.int64)
        for size in moves:
            gains = _gains(records, design, goal, scores, size)
            reach = goal.spread(2 * size)
            winner = int(noisy_max(gains, each / rounds, reach, random_state=random_state))
            place, move = winner // 2, (1 - 2 * (winner % 2)) * size
            moved = np.where(np.arange(len(row)) == place, move, 0)
            row += moved
            scores += design.scores(records.groups, moved).astype(np.int64)
    coef = weights[:, 1:] / UNIT
    return LinearModel(weights[:, 0] / UNIT, coef, np.full_like(coef, np.nan))


def _gains(
    records: Records, design: Design, goal: Objective, scores: IntArray, step: int
) -> IntArray:
    """By how much each candidate lowers the sum of losses: each weight one step up, one down."""
    before = goal.at(scores, records.labels)

    def lowered(moves: Any) -> FloatArray:
        """By how much moves of the scores lower the losses of all records of each kind."""
        return (before - goal.at(scores + moves, records.labels)) * records.counts

    moved = [lowered(move * UNIT) for move in (step, -step)]
    found = [np.array([[each.sum() for each in moved]])]
    for axis, column in enumerate(design.columns):
        groups = records.groups[:, axis]
        if column.free:
            sums = [np.bincount(groups, each, minlength=len(column.values)) for each in moved]
            found.append(np.stack(sums, axis=1))
        else:
            features = [values[groups] for values in column.units().T]
            gains = [[lowered(m * each).sum() for m in (step, -step)] for each in features]
            found.append(np.array(gains))
    return np.concatenate(found).ravel().astype(np.int64)


# --- PrivGene: a population of weights, selected with noise, crossed and mutated (Algorithms 6, 7)


def fit_genetic(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
    loss: str,
    crossover: bool,
    *,
    n_rounds: int | None = None,
    population: int = 200,
    survivors: int = 10,
    decay: float = 0.9,
) -> LinearModel:
    """Selection, crossover and mutation of whole vectors of weights.

    Parameters
    ----------
    records : Records
    design : Design
    link : Logit or Identity
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    loss : str
        One of `LOSSES`. With more than two classes, each is told from the others at an equal share.
    crossover : bool
        Whether two parents swap the ends of their vectors; otherwise children are mutated copies.
    n_rounds : int, default=None
        Public. None: at least 8, and one for 800 records times epsilon of each survivor.
    population, survivors : int
        Candidates, and those that survive a round, as published.
    decay : float
        Of the largest mutation of a weight, each round.
    """
    # Privacy. Released: the survivors of each round, given the released number of records. One
    # record changes the scores of all candidates by its losses there. Its scores under any two of
    # them differ by no more than their weights do, which are released, so these changes lie in an
    # interval of the length that `Objective.spread` reads off the public table. Rounds compose.
    goals = objectives(link, loss)
    each = epsilon / len(goals)
    rounds = n_rounds
    if rounds is None:
        usual = max(total, 0.0) * float(each) / (800 * survivors)
        rounds = int(np.clip(usual, 8, TUNING.most // survivors))
    # Public coins of the population.
    generator = sampling_generator(random_state)
    found = []
    for goal in goals:
        shape = (population, 1 + design.n_features)
        candidates = _whole(generator.uniform(-1.0, 1.0, shape))
        for number in range(rounds - 1):
            scores, reach = _scores(records, design, goal, candidates)
            chosen = top_k(scores, survivors, each / rounds, reach, random_state=random_state)
            mutation = decay**number
            candidates = _offspring(
                candidates[chosen], len(candidates), crossover, mutation, generator
            )
        scores, reach = _scores(records, design, goal, candidates)
        found.append(candidates[noisy_max(scores, each / rounds, reach, random_state=random_state)])
    weights = np.stack(found) / UNIT
    coef = weights[:, 1:]
    return LinearModel(weights[:, 0], coef, np.full_like(coef, np.nan))


def _whole(weights: Any) -> IntArray:
    return np.rint(weights * UNIT).astype(np.int64)


def _scores(
    records: Records, design: Design, goal: Objective, population: IntArray
) -> tuple[IntArray, int]:
    """Minus the sum of losses of each candidate, and how far one record can spread them."""
    result = np.zeros(len(population))
    for block in records.blocks(_CHUNK):
        scores = design.scores(block.groups, population.T)
        losses = goal.at(scores.astype(np.int64), block.labels)
        result -= block.counts.astype(np.float64) @ losses
    return result.astype(np.int64), goal.spread(_widest(design, population))


def _widest(design: Design, population: IntArray) -> int:
    """Bound of the difference of the scores of any record under any two candidates, in units.

    At most one feature of a column is not zero, and it is at most 1.
    """
    starts = [1 + block.start for block in design.blocks]
    widest = 0
    for one in population:
        apart = np.abs(population - one)
        columns = np.maximum.reduceat(apart, [0, *starts], axis=1)
        widest = max(widest, int(columns.sum(axis=1).max()))
    return widest


def _offspring(
    parents: IntArray, n: int, crossover: bool, mutation: float, generator: np.random.Generator
) -> IntArray:
    """A new population: pairs of parents swap their ends, and one weight of each child changes."""
    size = parents.shape[1]
    couples = np.array([generator.permutation(len(parents))[:2] for _ in range(n // 2)])
    first, second = parents[couples[:, 0]], parents[couples[:, 1]]
    cut = generator.integers(1, size + 1, size=len(couples)) if crossover else size
    swapped = np.arange(size) >= np.broadcast_to(cut, len(couples))[:, None]
    children = np.concatenate([np.where(swapped, second, first), np.where(swapped, first, second)])
    place = generator.integers(0, size, size=len(children))
    steps = _whole(generator.uniform(-mutation, mutation, size=len(children)))
    children[np.arange(len(children)), place] += steps
    return children
