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
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._types import FloatArray, IntArray
from ._bounds import sharper_method
from ._fitting import fit_columns, fit_readings, fit_written
from ._readings import Given, Statistic, Tuple
from ._trials import SEEDED, ConstantOutputError, Outputs, Trials, Vocabulary, constant
from ._written import anchors, recurrences

__all__ = ["Candidate", "Event", "choose"]

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
    """

    description: str
    direction: str
    method: str
    reading: Any
    codes: IntArray

    def __str__(self) -> str:
        return self.description

    def __repr__(self) -> str:
        return f"Event({self.description!r}, {self.direction})"

    def count(self, outputs: Outputs) -> int:
        """Number of outputs that lie in the event."""
        codes = self.reading(outputs)
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return int(np.count_nonzero(self.codes[place] == codes))


@dataclass(frozen=True)
class Candidate:
    """The best event of one reading and its predicted bound."""

    predicted: float
    event: Event


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
) -> list[Candidate]:
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
    tokens = len(trials.vocabulary.tokens)
    if width == 0 and tokens > 0.5 * 2 * first:
        warnings.warn(
            f"{tokens} different outputs in {2 * first} trials, and none of them is numeric: "
            "events of single outputs carry almost no evidence. Give features=, a function from an "
            "output to numbers or to a coarser value.",
            UserWarning,
            stacklevel=3,
        )
    candidates = _search(
        sides[0],
        sides[1],
        trials.vocabulary,
        second,
        alpha,
        events,
        trials.vectorised,
        caution,
        anchors(dataset, neighbour),
        representation,
    )
    if not candidates:
        raise ConstantOutputError(
            "The outputs carry no information: they are all empty, or hardly any two differ."
        )
    return candidates


def _search(
    dataset: Outputs,
    neighbour: Outputs,
    vocabulary: Vocabulary,
    n: int,
    alpha: float,
    events: Sequence[Callable[[Any], Any]],
    vectorised: bool,
    caution: float,
    numbers: Sequence[float],
    representation: bool,
) -> list[Candidate]:
    """Candidates for the event, the most promising first.

    Parameters
    ----------
    dataset, neighbour : Outputs
        The trials set aside for choosing.
    vocabulary : Vocabulary
    n, alpha : int, float
        Trials on each side and error rate of the measurement that follows.
    events : sequence of callables
        The user's events, which are added to the search.
    vectorised : bool
    caution : float
        Least number of standard errors subtracted from each predicted bound.
    numbers : sequence of float
        Numbers of the data sets that may have been used exactly.
    representation : bool
        Whether to include the bits of floating-point numbers.
    """
    middle = len(dataset) // 2
    ranking = (dataset[:middle], neighbour[:middle])
    cutting = (dataset[middle:], neighbour[middle:])
    fitting = tuple(side[:_FIT_ROWS] for side in ranking)
    readings = [Given(event, vectorised) for event in events]
    columns = fit_columns(fitting)
    readings += fit_readings(fitting, vocabulary, columns)
    readings += fit_written(fitting, columns, numbers, representation)
    if representation:
        readings += recurrences(ranking, columns)
    if len(ranking[0]) > _SCREEN_ROWS and len(readings) > _KEEP:
        few_ranking = tuple(side[:_SCREEN_ROWS] for side in ranking)
        few_cutting = tuple(side[:_SCREEN_ROWS] for side in cutting)
        screened = []
        for reading in readings:
            sets = _best_sets(reading, few_ranking, few_cutting, n, alpha, caution)
            screened.append((max((c.predicted for c in sets), default=-np.inf), reading))
        order = sorted(range(len(screened)), key=lambda i: -screened[i][0])
        # Rare tuples show little evidence in the screening but much in a long run.
        readings = [
            screened[i][1]
            for place, i in enumerate(order)
            if place < _KEEP or isinstance(screened[i][1], Tuple)
        ]
    candidates: list[Candidate] = []
    for reading in readings:
        candidates += _best_sets(reading, ranking, cutting, n, alpha, caution)
    # An event that is visible in the output is preferred to a nearly equal one that is not.
    return sorted(
        candidates, key=lambda c: -c.predicted + (0.01 if _is_opaque(c.event.reading) else 0.0)
    )


def _is_opaque(reading: Any) -> bool:
    return isinstance(getattr(reading, "statistic", None), Statistic) or getattr(
        reading, "opaque", False
    )


def _best_sets(
    reading: Any,
    ranking: tuple[Outputs, ...],
    cutting: tuple[Outputs, ...],
    n: int,
    alpha: float,
    caution: float,
) -> list[Candidate]:
    """The best event of one reading for each direction."""
    parts = [reading(outputs) for outputs in (*ranking, *cutting)]
    table = _counts(parts, reading.size if reading.ordered else 0)
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
        orders = [ascending, ascending[::-1]] if reading.ordered else []
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
        method = sharper_method(more_cut[best[1]].sum(), less_cut[best[1]].sum(), size, n, alpha)
        event = Event(reading.describe(codes), direction, method, reading, codes)
        candidates.append(Candidate(best[0], event))
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
    more: FloatArray,
    less: FloatArray,
    size: int,
    n: int,
    alpha: float,
    caution: float,
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
