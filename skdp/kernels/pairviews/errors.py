"""Error bars: a published quantile of the errors of a public class of queries."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..._random import NoiseSource, noise_source, sampling_generator
from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_quantile
from ...release import ErrorBars, MixtureModel, TreeModel, typical_ratio
from ...rows import Counts, CountTable
from .budget import used_attributes
from .pooling import NoisyQuantile, likely_reach

__all__ = [
    "error_class",
    "exact_answers",
    "publish_classes",
    "publish_errors",
    "random_weights",
    "slope_weights",
    "tail_weights",
]

Query = dict[int, FloatArray]
# Weights of an attribute, by its number and a generator of public coins.
Draw = Callable[[int, Any], FloatArray]
# Simulated errors of questions: their attributes, the questions, and how many came before.
Simulated = Callable[[tuple[int, ...], list[Query], int], list[FloatArray]]


class ClassErrors(NamedTuple):
    """What is known about the errors of a class of questions.

    Attributes
    ----------
    bars : ErrorBars
        The published quantile.
    typical : float
        Half width for the largest spread of weights, in multiples of it.
    misfit : float
        Expected standard deviation of the error of a question with the largest spread, in records.
    lower : dict of float to float
        Quantiles of lower levels, in multiples of the published one; perhaps none.
    """

    bars: ErrorBars
    typical: float
    misfit: float
    lower: dict[float, float]


_ERROR_LEVEL = 0.95
_ERROR_CONFIDENCE = 0.95
# Of each of several quantiles: they share what one would cost.
_CLASS_CONFIDENCE = 0.8
# Errors of the largest spread of weights in multiples of those of random ranges of two attributes,
# and the standard deviation of the logarithm of this.
_USUAL = {"two": (1.0, 0.25), "tail": (1.6, 0.6), "wide": (1.5, 0.25)}
# Further quantiles that are published where the number of records times epsilon is this large.
_LOWER_LEVELS, _LOWER_FROM = (0.8, 0.9), 10_000.0
# Weights of the class "slope" are whole multiples of this share of their range.
_SLOPE_UNIT = 8
_SLOPES = (0.5, 1.0, 1.0, 2.0)
# Ranges at the ends of two attributes hold at least and at most these shares of the records.
_TAIL = 0.02, 0.2
# A class on two attributes, and on any other number of them: number of queries, and number of sets
# of attributes. The seed is public.
_ERROR_QUERIES, _ERROR_SETS = 2000, 200
_OTHER_QUERIES, _OTHER_SETS = 500, 12
_ERROR_SEED = 20260101
# Largest number of weights, of all queries together and of a batch.
_ERROR_WEIGHTS, _BATCH_WEIGHTS = 1 << 29, 1 << 22
# Queries on tables of more cells are answered record by record.
_ERROR_CELLS = 1 << 17
# If the number of records times epsilon is at least this, errors are scaled by the size of the
# answers.
_SCALED_FROM = 2000.0


def publish_errors(
    table: Counts,
    model: TreeModel | MixtureModel,
    epsilon: Fraction,
    ordered: Sequence[bool],
    *,
    orders: Sequence[int] = (2,),
    simulated: tuple[CountTable, Sequence[TreeModel]] | None = None,
    random_state: Any = None,
) -> ErrorBars:
    """Publish a quantile of the errors of a released model over public classes of queries.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    model : TreeModel
        Released.
    epsilon : Fraction
        Cost of the quantile.
    ordered : sequence of bool
        Whether the codes of each attribute have an order, so that ranges make sense.
    orders : sequence of int, default=(2,)
        Numbers of attributes of the queries, a class for each; numbers above that of the attributes
        with more than one code stand for all of these. The largest of the quantiles of the classes
        is published.
    simulated : tuple of CountTable and sequence of TreeModel, default=None
        Records drawn from ``model``, and several releases measured from them, where there are
        two attributes or fewer: the errors of these releases come from noise alone.
    random_state : None, int or NoiseSource, default=None
    """
    # Privacy. Released: the largest of the order statistics of a few classes, with noise. The model
    # is released already and its answers are rounded to integers, so that one record changes the
    # error |answer - truth| of each query by at most 1 and, where errors are multiplied by released
    # integers of at most MOST, by at most MOST. Then every order statistic changes by at most that
    # much (as many errors as before lie below a bound moved by it), and so does the largest.
    # Discrete Laplace noise of that sensitivity costs epsilon. Which of the two scales is used
    # follows from the domain and the released total. The simulation uses only the released model.
    again = None if simulated is None else functools.partial(_simulated_errors, *simulated)
    n_used = len(used_attributes(table.shape))
    scaled = n_used > 2 and _affords(model, epsilon, _SCALED_FROM)
    orders = sorted({min(order, max(n_used, 1)) for order in orders})
    sensitivity = ErrorBars.MOST if scaled else 1
    quantile, n_queries = 0, 0
    for order in orders:
        asked = _ask(table, model, ordered, order, again)
        errors = _integer_errors(asked, model, scaled)
        quantile = max(quantile, _ranked(errors))
        n_queries += len(errors)
    noisy = int(discrete_laplace(quantile, epsilon, sensitivity, random_state=random_state))
    margin = discrete_laplace_quantile(2 * _ERROR_CONFIDENCE - 1, epsilon, sensitivity)
    reach = max(noisy + margin, 0.0)
    if asked.by_noise is not None:
        # The errors are small and mostly noise. The published quantile, with its own noise, often
        # cannot resolve them: then use twice the errors of noise alone, within the range that the
        # quantile allows.
        noise = float(_ranked(asked.by_noise))
        reach = max(min(max(2 * noise, noisy - margin), reach), noise)
    return ErrorBars(
        level=_ERROR_LEVEL,
        reach=float(reach),
        scaled=bool(scaled),
        confidence=_ERROR_CONFIDENCE,
        simulated=simulated is not None,
        n_queries=n_queries,
        text=f"all random ranges (any subset of unordered categories) on {_in_words(orders)}",
    )


def publish_classes(
    table: Counts,
    model: TreeModel,
    epsilon: Fraction,
    ordered: Sequence[bool],
    alone: Sequence[FloatArray],
    *,
    random_state: Any = None,
) -> dict[str, ClassErrors]:
    """Publish a quantile of the errors of a model of three or more attributes for each class.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    model : TreeModel
        Released.
    epsilon : Fraction
        Cost of all quantiles together.
    ordered : sequence of bool
        Whether the codes of each attribute have an order, so that ranges make sense.
    alone : sequence of ndarray of float, shape (n_simulations, size)
        Simulated errors of the counts of each attribute. No quantile is taken to be much below what
        these alone cause.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    dict of str to ClassErrors
        "two": random ranges of two attributes; "tail": ranges at the ends of two attributes;
        "wide": random ranges of three and four; "slope": products of centred weights of two.
    """
    # Privacy. Released: order statistics of the errors of four classes, each with noise, one after
    # the other, for a quarter of epsilon each, which three levels of a class share. For each the
    # argument is that of `publish_errors`: the questions come from public coins and the released
    # model, before a record is read, and one record moves each error, times a released integer of
    # at most MOST or 1, by at most that integer; products of whole weights, of at most _SLOPE_UNIT
    # each, change by at most _SLOPE_UNIT**2. How many levels there are follows from the
    # released total. What errors of single attributes cause is computed from the release.
    source = noise_source(random_state)
    each = epsilon / 4
    scaled = _affords(model, each, _SCALED_FROM)
    lower = _LOWER_LEVELS if _affords(model, each, _LOWER_FROM) else ()
    masses = [np.maximum(mu, 0.0) / max(mu.sum(), 1e-300) for mu in model.density.marginals]

    def tail(axis: int, generator: np.random.Generator) -> FloatArray:
        return tail_weights(masses[axis], ordered[axis], generator)

    def by_noise(axes: tuple[int, ...], queries: list[Query], n_before: int) -> list[FloatArray]:
        return [_errors_of_singles(alone, masses, axes, queries, n_before)]

    def published(kind: str, orders: Sequence[int], text: str, draw: Draw | None = None) -> _Class:
        asked = [_ask(table, model, ordered, order, by_noise, draw) for order in orders]
        ends = draw is not None
        levels = lower if ends else ()
        return _publish_class(kind, asked, model, each, scaled and not ends, levels, text, source)

    wide = [3, 4][: len(used_attributes(table.shape)) - 2]
    ranges = "all random ranges (any subset of unordered categories)"
    ends = (
        "random ranges at the ends of two attributes (some of the unordered categories) that hold "
        f"up to {_TAIL[1]:g} of the records each"
    )
    kinds = {
        "two": published("two", [2], f"{ranges} on two attributes"),
        "tail": published("tail", [2], ends, tail),
        "wide": published("wide", wide, f"{ranges} on {_in_words(wide)}"),
    }
    slope = _publish_slopes(table, model, each, ordered, masses, source)
    together = likely_reach(
        [found.quantile for found in kinds.values()], max(model.total, 1.0), _ERROR_LEVEL
    )
    known = {
        kind: found.errors(*likely)
        for (kind, found), likely in zip(kinds.items(), together, strict=True)
    }
    return {**known, "slope": slope}


def _publish_slopes(
    table: Counts,
    model: TreeModel,
    epsilon: Fraction,
    ordered: Sequence[bool],
    masses: Sequence[FloatArray],
    source: NoiseSource,
) -> ClassErrors:
    """The quantile of errors of sums of products of centred weights, such as a covariance.

    Errors of ranges have any sign; a dependence that the model flattens moves all of them, and such
    a sum, one way.
    """

    def slope(axis: int, generator: np.random.Generator) -> FloatArray:
        return slope_weights(masses[axis], ordered[axis], generator)

    asked = _ask(table, model, ordered, 2, None, slope)
    unit = _SLOPE_UNIT**2
    quantile = _ranked(_integer_errors(asked, model, False))
    noisy = int(discrete_laplace(quantile, epsilon, unit, random_state=source))
    margin = discrete_laplace_quantile(2 * _CLASS_CONFIDENCE - 1, epsilon, unit)
    bars = ErrorBars(
        level=_ERROR_LEVEL,
        reach=max(noisy + margin, 1) / unit,
        scaled=False,
        confidence=_CLASS_CONFIDENCE,
        n_queries=len(asked.answers),
        text="sums of products of centred weights of two attributes",
    )
    misfit = max(noisy, 1) / unit / float(ndtri(0.5 + _ERROR_LEVEL / 2))
    return ClassErrors(bars, 1.0, misfit, {})


class _Class(NamedTuple):
    """Published quantiles of a class, before they are seen beside those of others.

    Attributes
    ----------
    quantile : NoisyQuantile
    bars : ErrorBars
        Without their reach.
    lower : dict of float to float
        Noisy quantiles of lower levels, with the margin for their noise.
    """

    quantile: NoisyQuantile
    bars: ErrorBars
    lower: dict[float, float]

    def errors(self, reach: float, expected: float) -> ClassErrors:
        """What is known about the class, given the half width and the expected quantile."""
        reach = max(reach, 1.0)
        unit = self.quantile.unit
        return ClassErrors(
            replace(self.bars, reach=reach),
            1.0 if self.bars.scaled else unit,
            expected * unit / float(ndtri(0.5 + _ERROR_LEVEL / 2)),
            {level: min(max(each, 0.0) / reach, 1.0) for level, each in self.lower.items()},
        )


def _publish_class(
    kind: str,
    asked: Sequence[_Asked],
    model: TreeModel,
    epsilon: Fraction,
    scaled: bool,
    lower: Sequence[float],
    text: str,
    source: NoiseSource,
) -> _Class:
    """The largest quantile of a few orders, with noise; ``lower`` levels share epsilon with it."""
    share = epsilon / (1 + len(lower))
    sensitivity = ErrorBars.MOST if scaled else 1
    margin = discrete_laplace_quantile(2 * _CLASS_CONFIDENCE - 1, share, sensitivity)
    errors = [_integer_errors(each, model, scaled) for each in asked]
    noisy = {}
    for level in (_ERROR_LEVEL, *lower):
        quantile = max(_ranked(each, level) for each in errors)
        noisy[level] = int(discrete_laplace(quantile, share, sensitivity, random_state=source))
    told = np.concatenate([each.answers for each in asked])
    bars = ErrorBars(
        level=_ERROR_LEVEL,
        reach=math.nan,
        scaled=scaled,
        confidence=None,
        n_queries=len(told),
        text=text,
    )
    typical = typical_ratio(told, model.total, _ERROR_LEVEL)
    usual, spread = _USUAL[kind]
    known = NoisyQuantile(
        noisy[_ERROR_LEVEL],
        sensitivity / float(share),
        1.0 / ErrorBars.UNIT if scaled else typical,
        max(_noise_alone(each, model, scaled) for each in asked),
        usual,
        spread,
    )
    return _Class(known, bars, {level: noisy[level] + margin for level in lower})


def _noise_alone(asked: _Asked, model: TreeModel, scaled: bool) -> float:
    """The quantile of simulated errors of a class."""
    assert asked.by_noise is not None
    factors = ErrorBars.factors(asked.answers, model.total) if scaled else 1
    return float(_ranked(asked.by_noise * factors))


def _errors_of_singles(
    alone: Sequence[FloatArray],
    masses: Sequence[FloatArray],
    axes: tuple[int, ...],
    queries: Sequence[Query],
    n_before: int,
) -> FloatArray:
    """Errors of questions if attributes are independent and their counts have these errors.

    The simulations take turns. To first order the error of a product is the sum of the errors of
    its factors times the others.
    """
    weights = [np.stack([query[axis] for query in queries]) for axis in axes]
    turn = (n_before + np.arange(len(queries))) % len(alone[axes[0]])
    shares = [each @ masses[axis] for each, axis in zip(weights, axes, strict=True)]
    found = np.zeros(len(queries))
    for place, axis in enumerate(axes):
        others = math.prod(
            (share for other, share in enumerate(shares) if other != place),
            start=np.ones(len(queries)),
        )
        found += others * (weights[place] * alone[axis][turn]).sum(axis=1)
    whole = math.prod(shares, start=np.ones(len(queries)))
    return found - (len(axes) - 1) * whole * alone[axes[0]].sum(axis=1)[turn]


def _affords(model: TreeModel | MixtureModel, epsilon: Fraction, least: float) -> bool:
    """Whether more is worth its price: scaled errors, whose noise is larger, or more quantiles."""
    return bool(max(model.total, 1.0) * float(epsilon) >= least)


def _integer_errors(asked: _Asked, model: TreeModel | MixtureModel, scaled: bool) -> IntArray:
    """Absolute errors of answers rounded to integers, perhaps times released integers."""
    errors: IntArray = np.abs(np.rint(asked.answers).astype(np.int64) - asked.exact)
    return errors * ErrorBars.factors(asked.answers, model.total) if scaled else errors


def _ranked(errors: NDArray[Any], level: float = _ERROR_LEVEL) -> Any:
    """The error of a rank that covers this share of a class, of which these are a random part."""
    n_queries = len(errors)
    # A few ranks higher, so that the whole class is covered and not only these queries.
    slack = 2.0 * math.sqrt(level * (1 - level) / n_queries)
    rank = min(math.ceil((level + slack) * n_queries), n_queries)
    return np.partition(errors, rank - 1)[rank - 1].item()


def _in_words(orders: Sequence[int]) -> str:
    """The classes, such as "one, two or three attributes"."""
    words = [("one", "two", "three", "four")[order - 1] for order in orders]
    last = words[-1] + (" attribute" if orders[-1] == 1 else " attributes")
    if len(words) == 1:
        return last
    return f"{', '.join(words[:-1])} or {last} (in each of these cases)"


class _Asked(NamedTuple):
    """Answers to all queries of the class, and absolute errors of the simulated releases."""

    answers: FloatArray
    exact: IntArray
    by_noise: FloatArray | None


def _ask(
    table: Counts,
    model: TreeModel | MixtureModel,
    ordered: Sequence[bool],
    order: int,
    simulated: Simulated | None,
    draw: Draw | None = None,
) -> _Asked:
    answers, exact, by_noise = [], [], []
    n_queries = 0
    tables = _exact_tables(table, _error_axes(table.shape, sampling_generator(_ERROR_SEED), order))
    batches = itertools.groupby(
        error_class(table.shape, ordered, order, draw), key=operator.itemgetter(0)
    )
    for (axes, same), counts in zip(batches, tables, strict=True):
        for _, queries in same:
            answers.append(model.answer(queries))
            exact.append(_answers(counts, axes, queries))
            if simulated is not None:
                by_noise += simulated(axes, queries, n_queries)
            n_queries += len(queries)
    return _Asked(
        np.concatenate(answers),
        np.concatenate(exact),
        None if simulated is None else np.abs(np.concatenate(by_noise)),
    )


def _simulated_errors(
    drawn: CountTable,
    models: Sequence[TreeModel],
    axes: tuple[int, ...],
    queries: list[Query],
    n_before: int,
) -> list[FloatArray]:
    """Errors of releases of simulated records, which come from noise alone."""
    exact = exact_answers(drawn, axes, queries)
    # The simulated releases take turns, so that many cost no more answers than one.
    turns = (n_before + np.arange(len(queries))) % len(models)
    errors = []
    for turn, model in enumerate(models):
        mine = np.flatnonzero(turns == turn)
        if len(mine):
            errors.append(model.answer([queries[i] for i in mine]) - exact[mine])
    return errors


# --- the class of queries


def error_class(
    shape: Sequence[int], ordered: Sequence[bool], order: int = 2, draw: Draw | None = None
) -> Iterator[tuple[tuple[int, ...], list[Query]]]:
    """A public class of queries whose errors are published, a batch on the same axes at a time.

    Each query has as many random attributes as ``order`` says (or all that have more than one
    code), and on each of them a range between two uniform codes. On an unordered attribute it draws
    a random subset of the categories, whose size is uniform from 1 to the number of categories. The
    seed is fixed and public, and so is the class. ``draw`` makes other weights of an attribute,
    from its number and the public coins.
    """

    def ranges(axis: int, generator: np.random.Generator) -> FloatArray:
        return random_weights(shape[axis], ordered[axis], generator)

    draw = ranges if draw is None else draw
    generator = sampling_generator(_ERROR_SEED)
    chosen = _error_axes(shape, generator, order)
    # Long vectors of weights take time, so fewer queries are run, which makes the quantile less
    # sharp.
    longest = max(sum(shape[axis] for axis in axes) for axes in chosen)
    most = _ERROR_QUERIES if order == 2 else _OTHER_QUERIES
    n_queries = min(max(_ERROR_WEIGHTS // longest, _ERROR_QUERIES // 4), most)
    for i, axes in enumerate(chosen):
        left = n_queries // len(chosen) + (i < n_queries % len(chosen))
        batch = max(1, _BATCH_WEIGHTS // max(shape[axis] for axis in axes))
        while left > 0:
            number = min(batch, left)
            left -= number
            yield (
                axes,
                [{axis: draw(axis, generator) for axis in axes} for _ in range(number)],
            )


def _error_axes(
    shape: Sequence[int], generator: np.random.Generator, order: int
) -> list[tuple[int, ...]]:
    """Attributes of the queries of a class."""
    used = used_attributes(shape)
    if len(used) < min(order, 2):
        # Without any, the only query counts all records.
        return [(axis,) for axis in used] or [(0,)]
    if order == 2:
        first, second = np.triu_indices(len(used), 1)
        some = generator.permutation(len(first))[:_ERROR_SETS]
        return [(used[first[i]], used[second[i]]) for i in some]
    if math.comb(len(used), order) <= _OTHER_SETS:
        return list(itertools.combinations(used, order))
    found: dict[tuple[int, ...], None] = {}
    while len(found) < _OTHER_SETS:
        found[tuple(sorted(generator.choice(used, order, replace=False).tolist()))] = None
    return list(found)


def random_weights(size: int, ordered: bool, generator: np.random.Generator) -> FloatArray:
    """Weights 1 on a random range of codes, or on a random subset of unordered ones, else 0."""
    weights = np.zeros(size)
    if ordered:
        low, high = sorted(generator.integers(0, size, size=2).tolist())
        weights[low : high + 1] = 1.0
    else:
        most = int(generator.integers(1, size + 1))
        weights[generator.permutation(size)[:most]] = 1.0
    return weights


def tail_weights(mass: FloatArray, ordered: bool, generator: np.random.Generator) -> FloatArray:
    """Weights 1 on the codes at one end that hold a random small share of the records, else 0.

    The codes of an unordered attribute are shuffled first. There is one code at least.
    """
    order = np.arange(len(mass)) if ordered else generator.permutation(len(mass))
    if generator.random() < 0.5:
        order = order[::-1]
    share = generator.uniform(*_TAIL)
    number = max(int((np.cumsum(mass[order]) <= share).sum()), 1)
    weights = np.zeros(len(mass))
    weights[order[:number]] = 1.0
    return weights


def slope_weights(mass: FloatArray, ordered: bool, generator: np.random.Generator) -> FloatArray:
    """Weights that rise along the codes, or of a random range, about their mean.

    They are whole, and the largest is at most `_SLOPE_UNIT` above the smallest.
    """
    size = len(mass)
    if ordered and generator.random() < 0.5:
        weights = np.linspace(0.0, 1.0, size) ** generator.choice(_SLOPES)
    else:
        weights = random_weights(size, ordered, generator)
    centred: FloatArray = np.rint(_SLOPE_UNIT * weights) - np.rint(_SLOPE_UNIT * (mass @ weights))
    return centred


def exact_answers(table: Counts, axes: tuple[int, ...], queries: Sequence[Query]) -> IntArray:
    """Exact sums over the records of products of whole weights."""
    return _answers(next(_exact_tables(table, [axes])), axes, queries)


def _exact_tables(
    table: Counts, chosen: Sequence[tuple[int, ...]]
) -> Iterator[IntArray | CountTable]:
    """Exact counts by some attributes: of all cells, or of the occupied ones where there are many.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
    chosen : sequence of tuple of int
    """
    small = [math.prod(table.shape[axis] for axis in axes) <= _ERROR_CELLS for axes in chosen]
    dense = table.regrouped_many(
        [(axes, [None] * len(axes)) for axes, fits in zip(chosen, small, strict=True) if fits]
    )
    sparse = table.project_many(
        [axes for axes, fits in zip(chosen, small, strict=True) if not fits]
    )
    return (next(dense) if fits else next(sparse) for fits in small)


def _answers(
    counts: IntArray | CountTable, axes: tuple[int, ...], queries: Sequence[Query]
) -> IntArray:
    """Numbers of records from the counts by the attributes of the queries."""
    if not isinstance(counts, CountTable):
        stacked = [np.stack([query[axis] for query in queries]) for axis in axes]
        found = np.tensordot(stacked[0], counts.astype(np.float64), axes=1)
        for weights in stacked[1:]:
            found = np.einsum("qi...,qi->q...", found, weights)
        return np.rint(found).astype(np.int64)
    answers = np.empty(len(queries), dtype=np.int64)
    for i, query in enumerate(queries):
        weights = counts.counts.astype(np.float64)
        for place, axis in enumerate(axes):
            weights *= query[axis][counts.codes[:, place]]
        # Sums of integers below 2**53 are exact.
        answers[i] = int(weights.sum())
    return answers
