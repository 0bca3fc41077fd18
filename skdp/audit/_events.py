"""Choosing the event whose probability differs most between two data sets.

A *reading* maps an output to an integer code: the bin of a number, the structure of a mixed
output, a tuple of bins. An *event* is a set of codes of one reading. One part of the trials fits
the bins, a second one ranks the codes by likelihood ratio, a third one chooses how many of them to
take and which reading is best. The trials that measure the chosen event are separate, so nothing
done here can make the measured bound too large.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, gammaln, logsumexp, ndtri
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from .._random import sampling_generator
from .._validation import FloatArray, IntArray
from ._readings import (
    LARGEST,
    Atoms,
    Binned,
    Column,
    Given,
    Reading,
    Statistic,
    Structure,
    Tuple,
    anchors,
    recurrences,
    written_readings,
)
from ._trials import SEEDED, ConstantOutputError, Outputs, Trials, Vocabulary, constant

# --- confidence bounds on proportions, and on the ratio of two of them


def clopper_pearson(count: IntArray | int, n: int, tail: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper confidence bounds of a binomial proportion, each missed at rate ``tail``.

    Parameters
    ----------
    count : int or array of int
        Successes.
    n : int
        Trials.
    tail : float
        Largest probability that the lower (and, separately, the upper) bound is wrong.

    Returns
    -------
    lower, upper : float or array, shaped like ``count``
    """
    count = np.asarray(count)
    inner = np.clip(count, 1, n)
    lower = np.where(count > 0, betaincinv(inner, n - inner + 1, tail), 0.0)
    inner = np.clip(count, 0, n - 1)
    upper = np.where(count < n, betaincinv(inner + 1, n - inner, 1 - tail), 1.0)
    return lower[()], upper[()]


def _separate_bound(more: int, less: int, n: int, alpha: float) -> float:
    """Bound each of the two proportions by itself."""
    lower, _ = clopper_pearson(more, n, alpha / 2)
    _, upper = clopper_pearson(less, n, alpha / 2)
    return float(np.log(lower / upper)) if lower > 0 else -np.inf


def _conditional_bound(more: int, less: int, n: int, alpha: float) -> float:
    """Bound the odds ratio given the total, as Fisher's exact test does, then the ratio.

    Given ``more + less``, the distribution of ``more`` depends on the odds ratio ``psi`` alone, and
    ``p / q = psi / (1 + q (psi - 1))`` is increasing in psi and decreasing in q. Nine tenths of
    alpha bound psi, one tenth bounds q. For rare events this is sharper than two separate bounds,
    which assume that both proportions are at their worst end at once.
    """
    total = more + less
    if more == 0 or more <= less or total == 2 * n:
        return -np.inf
    # Beyond this many standard deviations the terms are zero in double precision.
    reach = int(40 * np.sqrt(total)) + 100
    low, high = max(total - n, 0, more - reach), min(n, total, more + reach)
    i = np.arange(low, high + 1)
    terms = -(gammaln(i + 1) + gammaln(n - i + 1) + gammaln(total - i + 1))
    terms -= gammaln(n - total + i + 1)

    def excess(log_psi: float) -> float:
        weights = terms + i * log_psi
        return float(logsumexp(weights[i >= more]) - logsumexp(weights)) - np.log(0.9 * alpha)

    guess = np.log(more / max(less, 1))
    left, right = -1.0, guess + 1.0
    if excess(left) > 0:
        return -np.inf
    while excess(right) < 0:
        right += 1.0
    psi = np.exp(brentq(excess, left, right, xtol=1e-9) - 1e-8)
    _, upper = clopper_pearson(less, n, 0.1 * alpha)
    return float(np.log(psi / (1 + upper * (psi - 1)))) if psi > 1 else -np.inf


BOUNDS = {"separate": _separate_bound, "conditional": _conditional_bound}


def log_ratio_bound(more: int, less: int, n: int, alpha: float, method: str = "separate") -> float:
    """Lower bound on ``log(p / q)``, wrong with probability at most ``alpha``.

    ``more`` of ``n`` trials with success probability p succeeded and ``less`` of ``n`` with q.
    """
    return BOUNDS[method](more, less, n, alpha)


def _sharper_method(more: float, less: float, size: int, n: int, alpha: float) -> str:
    """Method with the larger expected bound for ``n`` new trials, from counts among ``size``."""
    here, there = (min(round(count * n / size), n) for count in (more, less))
    return max(BOUNDS, key=lambda method: BOUNDS[method](here, there, n, alpha))


# --- fitting readings to a first part of the trials: bins, projections, a classifier

_ATOMS = 4096  # single values that one reading distinguishes
_COLUMNS = 64  # columns examined one by one


def fit_columns(fitting: tuple[Outputs, ...]) -> list[Column]:
    """The numbers to examine one by one: all, or those that differ most."""
    d = max(part.numbers.shape[1] for part in fitting)
    columns = [Column(j, "output" if d == 1 else f"output[{j}]") for j in range(d)]
    if d > _COLUMNS:
        both = Outputs.concatenate(list(fitting))
        side = np.repeat([0, 1], [len(part) for part in fitting])
        apart = _separation(both.numbers.astype(float), side)
        columns = [columns[j] for j in np.sort(np.argsort(-apart)[:_COLUMNS])]
    return columns


def fit_written(
    fitting: tuple[Outputs, ...],
    columns: list[Column],
    numbers: Sequence[float],
    representation: bool,
) -> list[Any]:
    """Readings of the representation of numbers, alone and together with their size."""
    readings = written_readings(fitting, columns, numbers, representation)
    if not readings:
        return []
    both = Outputs.concatenate(list(fitting))
    bins = {
        column: _coarsened(Binned(column, _cuts(column(both))), both, 16)
        for column in {reading.column for reading in readings}
    }
    return readings + [
        Tuple([bins[reading.column], reading], f"({reading.name}, how it is written)", opaque=True)
        for reading in readings
    ]


def fit_readings(
    fitting: tuple[Outputs, ...], vocabulary: Vocabulary, columns: list[Column]
) -> list[Any]:
    """Readings of size and structure, fitted on a first part of the trials."""
    both = Outputs.concatenate(list(fitting))
    side = np.repeat([0, 1], [len(part) for part in fitting])
    readings: list[Any] = []
    structured = len(vocabulary) > 1
    if structured:
        readings += [Structure(vocabulary, coarse=False), Structure(vocabulary, coarse=True)]
    d = both.numbers.shape[1]
    if d == 0:
        return readings
    fine = [Binned(column, _cuts(column(both))) for column in columns]
    readings += fine
    readings += [reading for column in columns if (reading := _atoms(column, both)) is not None]
    extra = [Structure(vocabulary, coarse=False)] if structured else []
    if d > 1:
        readings += _joint(fine, extra, both, side)
    elif structured:
        readings.append(Tuple([*fine, *extra], "(structure, output)"))
    return readings


def _joint(fine: list[Binned], extra: list[Any], both: Outputs, side: IntArray) -> list[Any]:
    """Readings of several numbers together."""
    d = both.numbers.shape[1]
    rows = both.numbers.astype(float)
    statistics = [
        Statistic("sum of the outputs", lambda x: np.nansum(x, axis=1), d),
        Statistic("largest output", lambda x: _filled(x, -np.inf).max(axis=1), d),
        Statistic("smallest output", lambda x: _filled(x, np.inf).min(axis=1), d),
        Statistic("place of the largest output", lambda x: _filled(x, -np.inf).argmax(axis=1), d),
    ]
    finite = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    statistics += [
        Statistic(f"projection on the {name}", partial(_project, weights=w), d)
        for name, w in _directions(finite, side)
    ]
    statistics.append(_additive(fine, extra, both, side))
    joint: list[Any] = [Binned(statistic, _cuts(statistic(both))) for statistic in statistics]
    # Constant numbers, such as parameters of the release, add nothing to a tuple.
    parts = [reading for reading in fine if np.ptp(reading(both)) > 0] or fine[:1]
    if len(parts) > 12:
        # Many numbers: tuples of the most informative ones, so that tuples repeat.
        apart = _separation(rows[:, [reading.statistic.index for reading in parts]], side)
        parts = [parts[j] for j in np.sort(np.argsort(-apart)[:6])]
    for level in (2, 4, 8, 16):
        coarse = [_coarsened(reading, both, level) for reading in parts]
        if level == 2 or any(
            a.size != b.size for a, b in zip(coarse, joint[-1].parts[: len(coarse)], strict=True)
        ):
            joint.append(Tuple([*coarse, *extra], f"tuple of outputs in {level} bins"))
    joint.append(Tuple([*parts, *extra], "tuple of outputs"))
    distinct = len(np.unique(joint[-1](both)))
    if distinct > len(both) / 20:
        joint += _boosted(both, side, d)
    return joint


def _additive(fine: list[Binned], extra: list[Any], both: Outputs, side: IntArray) -> Statistic:
    """Sum of the log likelihood ratios of the single numbers.

    For independent noise on each number this is the log likelihood ratio itself, the best possible
    statistic.
    """
    tables = []
    for reading in fine:
        codes = reading(both)
        here = [np.bincount(codes[side == s], minlength=reading.size) + 0.5 for s in (0, 1)]
        # Bins seen a few times carry little evidence: shrink toward a ratio of one.
        weight = (here[0] + here[1]) / (here[0] + here[1] + 20)
        tables.append(weight * np.log((here[0] / here[0].sum()) / (here[1] / here[1].sum())))

    def score(rows: NDArray[Any]) -> FloatArray:
        outputs = Outputs(np.zeros(len(rows), dtype=np.int64), rows, rows)
        return np.sum(
            [table[reading(outputs)] for table, reading in zip(tables, fine, strict=True)], axis=0
        )

    return Statistic("additive likelihood score", score, both.numbers.shape[1])


def _boosted(both: Outputs, side: IntArray, d: int) -> list[Binned]:
    """The score of a classifier that separates the two sides, if one can be fitted."""
    half = len(both) // 2
    train = sampling_generator(0).permutation(len(both))[: min(half, 40_000)]
    model = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, min_samples_leaf=50, early_stopping=False, random_state=0
    )
    rows = _without_infinities(both.numbers)
    # The classifier rejects columns with fewer than two values, which carry no information.
    known = np.array(
        [j for j, x in enumerate(rows[train].T) if len(np.unique(x[np.isfinite(x)])) > 1], dtype=int
    )
    if not len(known):
        return []
    # One thread: in many short steps, threads would mostly wait for each other, especially if other
    # processes run.
    with threadpool_limits(1, user_api="openmp"):
        model.fit(rows[np.ix_(train, known)], side[train])

    def score(x: NDArray[Any]) -> FloatArray:
        x = _without_infinities(x)[:, known]
        with threadpool_limits(1, user_api="openmp"):
            return model.decision_function(x)

    statistic = Statistic("score of a boosted classifier", score, d)
    return [Binned(statistic, _cuts(statistic(both)))]


def _without_infinities(rows: NDArray[Any]) -> FloatArray:
    rows = np.asarray(rows, dtype=float)
    return np.where(np.isinf(rows), np.sign(rows) * 1e300, rows)


def _directions(finite: FloatArray, side: IntArray) -> list[tuple[str, FloatArray]]:
    """Directions along which the two clouds of outputs may differ."""
    d = finite.shape[1]
    scale = finite.std(axis=0) + 1e-12
    means = finite[side == 0].mean(axis=0) - finite[side == 1].mean(axis=0)
    directions = [("difference of the means", means / scale**2)]
    if d <= 200:
        covariance = np.cov(finite / scale, rowvar=False) + 1e-3 * np.eye(d)
        directions.append(("discriminant", np.linalg.solve(covariance, means / scale) / scale))
    signs = sampling_generator(0).integers(0, 2, size=(3, d)) * 2 - 1
    directions += [(f"random direction {i}", row / scale) for i, row in enumerate(signs)]
    return directions


def _project(rows: FloatArray, weights: FloatArray) -> FloatArray:
    return np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0) @ weights


def _filled(rows: FloatArray, value: float) -> FloatArray:
    return np.where(np.isnan(rows), value, rows)


def _separation(rows: FloatArray, side: IntArray) -> FloatArray:
    """How far apart each column lies on the two sides, in standard errors."""
    rows = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    here, there = rows[side == 0], rows[side == 1]
    spread = here.std(axis=0) + there.std(axis=0) + 1e-12
    return np.abs(here.mean(axis=0) - there.mean(axis=0)) / spread


def _cuts(values: NDArray[Any]) -> FloatArray:
    """Bin edges: single values if they are few, else quantiles, dense in both tails."""
    values = np.asarray(values, dtype=float)
    # Infinite values have bins of their own: from infinity on, and below the smallest number.
    ends = [end for end in (-LARGEST, np.inf) if np.any(values == (end if end > 0 else -np.inf))]
    values = values[np.isfinite(values)]
    if not len(values):
        return np.array(ends or [0.0])
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 512:
        # Values beyond all of these, which later trials may have, get a separate bin.
        last = distinct[-1]
        beyond = last + 1 if last == np.rint(last) else np.nextafter(last, np.inf)
        return np.union1d(distinct, [beyond, *ends])
    tails = np.geomspace(1 / len(values), 1 / 256, 24)
    levels = np.concatenate([tails, np.linspace(1 / 256, 255 / 256, 255), 1 - tails])
    edges = np.quantile(values, np.unique(levels))
    atoms = distinct[counts > max(len(values) / 500, 5)]
    return np.unique(np.concatenate([edges, atoms, np.nextafter(atoms, np.inf), ends]))


def _coarsened(fine: Binned, both: Outputs, level: int) -> Binned:
    """The same number in about ``level`` bins of equal mass."""
    if len(fine.cuts) <= level:
        return fine
    values = np.asarray(fine.statistic(both), dtype=float)
    values = values[np.isfinite(values)]
    cuts = np.unique(np.quantile(values, np.arange(1, level) / level, method="higher"))
    return Binned(fine.statistic, cuts)


def _atoms(column: Column, both: Outputs) -> Atoms | None:
    """The frequent single values of a column, unless its bins are single values already."""
    values = np.asarray(column(both), dtype=float)
    values = values[np.isfinite(values)]
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 512:
        return None
    frequent = np.argsort(-counts)[:_ATOMS]
    frequent = frequent[counts[frequent] >= 3]
    return Atoms(column, np.sort(distinct[frequent])) if len(frequent) else None


# --- the choice of an event

_FIT_ROWS = 50_000  # trials on each side that fit bins, projections and the classifier
_SCREEN_ROWS = 100_000  # trials on each side that screen the readings in long audits
_KEEP = 12  # readings that are kept after the screening


@dataclass(frozen=True)
class Event:
    """A set of outputs, and the side on which it should be more likely.

    Attributes
    ----------
    description : str
    direction : {"dataset / neighbour", "neighbour / dataset"}
        Which probability is divided by which.
    method : {"separate", "conditional"}
        How the ratio is bounded.
    predicted : float
        The bound that the trials which chose it predict.
    """

    description: str
    direction: str
    method: str
    reading: Reading
    codes: IntArray
    predicted: float

    def __str__(self) -> str:
        return self.description

    def __repr__(self) -> str:
        return f"Event({self.description!r}, {self.direction})"

    def count(self, outputs: Outputs) -> int:
        """Number of outputs that lie in the event."""
        codes = self.reading(outputs)
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return int(np.count_nonzero(self.codes[place] == codes))


DIRECTIONS = ("dataset / neighbour", "neighbour / dataset")


def choose(
    trials: Trials,
    dataset: Any,
    neighbour: Any,
    first: int,
    second: int,
    alpha: float,
    events: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] = (),
    caution: float = 0.5,
    representation: bool = False,
) -> list[Event]:
    """Run the first half of an audit: candidates for the event, the most promising first.

    ``caution`` is the least number of standard errors subtracted from each predicted bound; it is
    large if many pairs of inputs compete in short runs. ``representation`` includes the bits of
    floats.
    """
    sides = [
        Outputs.concatenate(list(trials.draw(data, first, side)))
        for side, data in enumerate((dataset, neighbour))
    ]
    if all(constant(side) for side in sides):
        shown = " and ".join(repr(side.raw[0]) for side in sides)
        raise ConstantOutputError(
            SEEDED.format(
                what=f"All of {first} trials gave one output on the dataset and one on the "
                f"neighbour ({shown}): the mechanism is seeded or has no noise."
            )
            + " If it is deterministic on purpose, compare the two outputs: unless they are equal "
            "for all neighbours, it is not private at any epsilon."
        )
    events = (events,) if callable(events) else tuple(events)
    width = max(side.numbers.shape[1] for side in sides)
    tokens = len(trials.vocabulary)
    if width == 0 and tokens > 0.5 * 2 * first:
        warnings.warn(
            f"{tokens} different outputs in {2 * first} trials, and none of them is numeric: "
            "events of single outputs carry almost no evidence. Give features=, a function from an "
            "output to numbers or to a coarser value.",
            UserWarning,
            stacklevel=3,
        )
    middle = len(sides[0]) // 2
    ranking = tuple(side[:middle] for side in sides)
    cutting = tuple(side[middle:] for side in sides)
    fitting = tuple(side[:_FIT_ROWS] for side in ranking)
    readings: list[Any] = [Given(event, trials.vectorised) for event in events]
    columns = fit_columns(fitting)
    readings += fit_readings(fitting, trials.vocabulary, columns)
    readings += fit_written(fitting, columns, anchors(dataset, neighbour), representation)
    if representation:
        readings += recurrences(ranking, columns)
    if len(ranking[0]) > _SCREEN_ROWS and len(readings) > _KEEP:
        few = [tuple(side[:_SCREEN_ROWS] for side in part) for part in (ranking, cutting)]

        def promise(reading: Any) -> float:
            sets = _best_sets(reading, few[0], few[1], second, alpha, caution)
            return max((each.predicted for each in sets), default=-np.inf)

        # Rare tuples show little evidence in the screening but much in a long run.
        readings.sort(key=promise, reverse=True)
        readings = readings[:_KEEP] + [each for each in readings[_KEEP:] if isinstance(each, Tuple)]
    candidates = [
        candidate
        for reading in readings
        for candidate in _best_sets(reading, ranking, cutting, second, alpha, caution)
    ]
    if not candidates:
        raise ConstantOutputError(
            "The outputs carry no information: they are all empty, or hardly any two differ."
        )
    # An event that is visible in the output is preferred to a nearly equal one that is not.
    return sorted(candidates, key=lambda event: 0.01 * event.reading.opaque - event.predicted)


def _best_sets(
    reading: Reading,
    ranking: tuple[Outputs, ...],
    cutting: tuple[Outputs, ...],
    n: int,
    alpha: float,
    caution: float,
) -> list[Event]:
    """The best event of one reading for each direction."""
    parts = [reading(outputs) for outputs in (*ranking, *cutting)]
    table = _counts(parts, reading.size if isinstance(reading, Binned) else 0)
    if table is None:
        return []
    distinct, counts = table
    size = len(cutting[0])
    # With more codes, the best of them is more likely to be luck.
    caution += min(0.5 * np.log10(len(distinct)), 2.0)
    candidates = []
    for flip, direction in enumerate(DIRECTIONS):
        more_rank, less_rank, more_cut, less_cut = (
            counts[[1, 0, 3, 2]] if flip else counts
        ).astype(float)
        log_ratio = np.log((more_rank + 0.5) / (less_rank + 0.5))
        error = np.sqrt(1 / (more_rank + 0.5) + 1 / (less_rank + 0.5))
        ascending = np.arange(len(distinct))
        orders = [ascending, ascending[::-1]] if isinstance(reading, Binned) else []
        plain = len(orders)
        orders += [np.argsort(z * error - log_ratio, kind="stable") for z in (0.0, 1.0, 2.0, 3.0)]
        best = (-np.inf, ascending[:1])
        for i, order in enumerate(orders):
            # The last set of each order holds every output, which is no evidence.
            bounds = _predicted(
                np.cumsum(more_cut[order[:-1]]),
                np.cumsum(less_cut[order[:-1]]),
                size,
                n,
                alpha,
                caution,
            )
            last = int(np.argmax(bounds))
            # A threshold that is nearly as good as a set of scattered intervals is preferred.
            if bounds[last] > best[0] + (0.003 if plain <= i else 0.0):
                best = (float(bounds[last]), order[: last + 1])
        codes = np.sort(distinct[best[1]])
        method = _sharper_method(more_cut[best[1]].sum(), less_cut[best[1]].sum(), size, n, alpha)
        said = reading.describe(codes)
        candidates.append(Event(said, direction, method, reading, codes, best[0]))
    return candidates


def _counts(parts: list[IntArray], ordered: int) -> tuple[IntArray, IntArray] | None:
    """IntArray and how often each part has them; None if all outputs share one code.

    ``ordered`` is the number of bins of an ordered reading, and 0 for others.
    """
    low = min(int(part.min()) for part in parts)
    high = max(int(part.max()) for part in parts)
    if low == high:
        return None
    if high - low < 2**20:
        counts = np.stack([np.bincount(part - low, minlength=high - low + 1) for part in parts])
        if not ordered:
            seen = np.flatnonzero(counts.sum(axis=0))
            return seen + low, counts[:, seen]
        # Bins without an output are kept, so that thresholds leave no gaps, even outside of all
        # outputs seen.
        first = 0 if low == 0 else 1
        before, after = low - first, ordered - 1 - high
        return np.arange(first, ordered), np.pad(counts, ((0, 0), (before, after)))
    distinct, inverse = np.unique(np.concatenate(parts), return_inverse=True)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    counts = np.stack(
        [np.bincount(part, minlength=len(distinct)) for part in np.split(inverse.ravel(), ends)]
    )
    return distinct, counts


def _predicted(
    more: FloatArray, less: FloatArray, size: int, n: int, alpha: float, caution: float
) -> FloatArray:
    """Approximate bounds that ``n`` new trials will give, from counts among ``size``.

    The counts are moved by ``caution`` standard errors first, so that an event that was seen a few
    times by chance does not win. The Clopper-Pearson bounds are approximated as Wilson and Hilferty
    do, the conditional one by a normal distribution.
    """
    z = -ndtri(alpha / 2)
    k = np.maximum(more - caution * np.sqrt(more * (1 - more / size)), 1e-9) * n / size
    j = (less + caution * np.sqrt((less + 1) * (1 - np.minimum(less / size, 1)))) * n / size
    lower_width = np.sqrt((1 - np.minimum(k / n, 1)) / k)
    upper_width = np.sqrt((1 - np.minimum(j / n, 1)) / (j + 1))
    lower = k * np.maximum(1 - 1 / (9 * k) - z / 3 * lower_width, 1e-9) ** 3
    upper = np.minimum((j + 1) * (1 - 1 / (9 * (j + 1)) + z / 3 * upper_width) ** 3, n)
    separate = np.log(lower / upper)
    p, q = np.minimum(k / n, 1 - 1 / n), np.minimum((j + 1) / n, 1 - 1 / n)
    error = np.sqrt(1 / (k * (1 - p)) + 1 / ((j + 1) * (1 - q)))
    psi = p / q * (1 - q) / (1 - p) * np.exp(ndtri(0.9 * alpha) * error)
    psi = np.maximum(psi, 1e-9)
    q = np.minimum(q - ndtri(0.1 * alpha) * np.sqrt(q / n), 1)
    conditional = np.where(psi > 1, np.log(psi) - np.log1p(q * (psi - 1)), -np.inf)
    return np.maximum(separate, conditional)
