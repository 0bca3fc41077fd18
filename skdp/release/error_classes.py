"""ErrorClasses: what is known about the errors of a release, by kinds of questions.

A question is a sum of weighted counts, with weights of any sign. Its half width is

* of the total: from the known noise of the total;
* on one attribute: from simulated errors of its counts, noise measured again on the release;
* on more: from the published quantile of its class, as wide as the weights spread over the records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from .._types import FloatArray
from .._validation import as_level
from .error_bars import ErrorBars, non_negative
from .files import TupleKeys
from .intervals import Error
from .model import Model, Weights

__all__ = ["ErrorClasses", "typical_ratio"]

Answer = Callable[[Sequence[Weights]], FloatArray]

# Ranges of attributes that hold at most this share of the records are those of the class "tail".
_TAIL = 0.22
# Squares of so many weighted counts are multiplied out.
_MOST_PARTS = 16
# Errors of single attributes are so many times those of the noise of their views: boxes are uneven.
_ALONE_BEYOND = 1.25
# Errors of a cell are so many times what is known of them; a count below this is as uncertain. How
# fast errors fall with the count, where a table was measured cell by cell, and how much larger they
# are where it was not.
_CELL, _HALF, _FALL, _GUESSED = 1.1, 0.5, 1.5, 2.4
# Least share of the pairs that is taken to be not measured.
_FEWEST_GUESSED = 0.1
# Least spread of weights, as that of a range that holds about 1% of the records.
_LEAST = 0.01


@dataclass(frozen=True, eq=False)
class ErrorClasses(TupleKeys):
    """What was published, and what is known without cost, about the errors of a release.

    Attributes
    ----------
    classes : mapping of str to ErrorBars
        Published quantiles: "two" (random ranges of two attributes), "tail" (ranges at the ends of
        two attributes), "wide" (three and four attributes), "slope" (sums of products of weights
        of two attributes, each of range 1; not in files of earlier versions).
    typical : mapping of str to float
        What the half width for weights of the largest spread is, in quantiles of the class, if
        errors follow a normal law as wide as the weights spread: about 1.5.
    misfit : mapping of str to float
        Expected standard deviation of errors for weights of the largest spread, in records.
    lower : mapping of str to mapping of float to float
        Published quantiles of lower levels, in multiples of that of the class; perhaps none.
    total_variance : float
        Of the released number of records.
    noise : mapping of (int, int) to float
        Standard deviation of the noise of a cell, of each pair that was counted by cells.
    alone : sequence of ndarray of float32, shape (n_simulations, size)
        Simulated errors of the counts of each attribute.
    """

    classes: Mapping[str, ErrorBars]
    typical: Mapping[str, float]
    misfit: Mapping[str, float]
    lower: Mapping[str, Mapping[float, float]]
    total_variance: float
    noise: Mapping[tuple[int, int], float]
    alone: Sequence[FloatArray] = field(repr=False)

    # One class stands for the others where only one is asked for.
    level = property(lambda self: self.classes["two"].level)

    def total_half(self, level: float) -> float:
        """Half width of the interval of the number of records.

        An average of noises with discrete Laplace laws lies between one of them and a normal law:
        the wider of the two is taken.
        """
        widest = max(float(ndtri(0.5 + level / 2)), -math.log(1.0 - level) / math.sqrt(2.0))
        return widest * math.sqrt(self.total_variance)

    def column_halves(self, axis: int, weights: FloatArray, level: float) -> FloatArray:
        """Half widths for questions on one attribute, a row of weights for each."""
        errors = np.asarray(self.alone[axis], dtype=np.float64)
        stds = np.sqrt(np.mean((weights @ errors.T) ** 2, axis=-1))
        # A standard deviation of few simulations is itself uncertain: Student's law.
        halves: FloatArray = _ALONE_BEYOND * stds * float(stdtrit(len(errors), 0.5 + level / 2))
        # The whole attribute is the total, whose law is known.
        even = weights.max(axis=-1) == weights.min(axis=-1)
        whole = np.abs(weights[..., 0]) * self.total_half(level)
        return np.where(even, whole, halves)

    def column_errors(
        self, model: Model, axis: int, weights: FloatArray, level: float
    ) -> tuple[FloatArray, str]:
        """Half widths of intervals of weighted counts of one attribute, and what they cover."""
        weights = np.asarray(weights, dtype=np.float64)
        return self.column_halves(axis, weights, level), _ALONE.format(100 * level)

    def error(self, model: Model, parts: Sequence[Weights], level: float) -> Error:
        """Interval of a sum of weighted counts.

        Parameters
        ----------
        model : Model
        parts : sequence of mapping of int to ndarray
            Weights of attributes, multiplied; the counts are summed.
        level : float
        """
        total = model.total
        parts = _joined([_varying(part) for part in parts])
        axes = sorted({axis for part in parts for axis in part if axis >= 0})
        if len(axes) < 2:
            half = self._half_of_few(parts, axes, level)
            outer = self._half_of_few(parts, axes, self.level)
            text = (_ALONE if axes else _TOTAL).format(100 * level)
            return Error(outer / float(ndtri(0.5 + self.level / 2)), half, half, text)
        shape = _Shape.of(parts, model.answer, total)
        kinds = self._kinds(shape, len(axes))
        text = self._words(kinds[0], shape, level)
        if all(_one_code(part, axes) for part in parts) and len(parts) == 1:
            return self._of_cell(model, parts[0], axes, shape, kinds, level)
        half = max(self._half(kind, shape, total, level) for kind in kinds)
        outer = max(self._half(kind, shape, total, self.level) for kind in kinds)
        if not shape.counting:
            half = max(half, self._half_of_slopes(parts, level))
            outer = max(outer, self._half_of_slopes(parts, self.level))
        text += _guessed(model, axes)
        return Error(outer / float(ndtri(0.5 + self.level / 2)), half, half, text)

    def _of_cell(
        self,
        model: Model,
        part: Weights,
        axes: Sequence[int],
        shape: _Shape,
        kinds: Sequence[str],
        level: float,
    ) -> Error:
        """Interval of one cell: the errors of single attributes, and what is known beyond them."""
        whole = max(model.total, 1.0)
        weight = abs(_factor(part)) * math.prod(float(np.abs(part[a]).max()) for a in axes)
        codes = [int(np.flatnonzero(part[axis])[0]) for axis in axes]
        shares = [
            float(model.view([axis])[code]) / whole for axis, code in zip(axes, codes, strict=True)
        ]
        errors = [self.alone[axis][:, code] for axis, code in zip(axes, codes, strict=True)]
        product = np.prod([s + e / whole for s, e in zip(shares, errors, strict=True)], axis=0)
        by_singles = float(np.mean((whole * (product - math.prod(shares))) ** 2))
        count = max(abs(shape.mean) * whole / weight, 0.0) + _HALF
        if tuple(axes) in self.noise:
            # Posterior variance, if cells are as far from the model before as noise and size tell.
            noise = self.noise[axes[0], axes[1]]
            beyond = noise**2 * (count / (count + noise)) ** _FALL
        else:
            misfit = self.misfit["two" if len(axes) == 2 else "wide"]
            if len(axes) == 2 and not _measured(model, axes):
                misfit *= self._beyond_measured(model)
            beyond = (_GUESSED * misfit) ** 2 * count / whole
        # A cell is a range too.
        one = replace(shape, mean=abs(shape.mean) / weight, reach=1.0, counting=True)
        most = max(self._half(kind, one, model.total, self.level) for kind in kinds)
        std = min(_CELL * math.sqrt(by_singles + beyond), most / float(ndtri(0.5 + self.level / 2)))
        half = weight * (std * float(ndtri(0.5 + level / 2)) + 0.5)
        return Error(weight * std, half, half, _CELLS.format(100 * level) + _guessed(model, axes))

    def _beyond_measured(self, model: Model) -> float:
        """Errors of pairs that were not measured, in multiples of those of all pairs: most of them.

        So they are if pairs that were measured have much smaller ones.
        """
        used = sum(each.shape[1] > 1 for each in self.alone)
        share = 1.0 - len({*getattr(model, "pairs", ())}) / max(math.comb(used, 2), 1)
        return 1.0 / math.sqrt(max(share, _FEWEST_GUESSED))

    def _half_of_few(self, parts: Sequence[Weights], axes: Sequence[int], level: float) -> float:
        factor = sum(float(part[_FACTOR][0]) for part in parts if set(part) <= {_FACTOR})
        if not axes:
            return abs(factor) * self.total_half(level)
        axis = axes[0]
        weights = factor + sum(
            _factor(part) * np.asarray(part[axis], dtype=np.float64)
            for part in parts
            if axis in part
        )
        return float(self.column_halves(axis, np.asarray(weights)[None], level)[0])

    def _half_of_slopes(self, parts: Sequence[Weights], level: float) -> float:
        """A dependence that is flatter in the model than in truth moves such sums one way."""
        if "slope" not in self.classes:
            return 0.0
        bars = self.classes["slope"]
        scale = sum(
            abs(_factor(part)) * math.prod(float(np.ptp(each)) for each in _plain(part).values())
            for part in parts
            if len(part) > 2
        )
        return bars.reach * scale * _of_level(level, bars.level)

    def _kinds(self, shape: _Shape, n_axes: int) -> list[str]:
        if n_axes == 2:
            return ["tail"] if shape.tail else ["two"]
        return ["wide", "tail"] if shape.tail else ["wide"]

    def _half(self, kind: str, shape: _Shape, total: float, level: float) -> float:
        bars = self.classes[kind]
        if shape.counting:
            half = float(bars.half_widths(np.array([shape.mean * total]), total, bars.level)[0])
        else:
            # As the errors of ranges with this spread.
            spread = min(2.0 * shape.std, shape.reach)
            if bars.scaled:
                least = 2.0 * math.sqrt(_LEAST) * shape.reach
                half = bars.reach / ErrorBars.UNIT * max(spread, least)
            else:
                least = 2.0 * math.sqrt(_LEAST) * shape.reach
                half = bars.reach * min(self.typical[kind] * max(spread, least), shape.reach)
            half += 0.5 * shape.reach
            half = math.hypot(half, shape.mean * self.total_half(bars.level))
        told = {**self.lower.get(kind, {}), bars.level: 1.0}
        above = min((known for known in told if known >= level), default=bars.level)
        below = max((ratio for known, ratio in told.items() if known <= level), default=0.0)
        return half * max(told[above] * _of_level(level, above), below)

    def _words(self, kind: str, shape: _Shape, level: float) -> str:
        bars = self.classes[kind]
        if level in self.lower.get(kind, {}):
            return replace(bars, level=level).guarantee(level)
        if level < bars.level:
            return (
                f"Made from the published {100 * bars.level:g}% quantile of the errors of "
                f"{bars.text}, narrowed as for a law between a normal and a Laplace law, and meant "
                f"to contain the true answer in {100 * level:g}% on average over that class. For "
                "other questions, and for one question by itself, this is a guide and not a "
                "promise."
            )
        text = bars.guarantee(level)
        return text if shape.counting else text + _WEIGHTED

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts = {
            "classes": {name: dict(vars(bars)) for name, bars in self.classes.items()},
            "typical": dict(self.typical),
            "misfit": dict(self.misfit),
            "lower": {name: list(own.items()) for name, own in self.lower.items()},
            "noise": [[a, b, noise] for (a, b), noise in self.noise.items()],
            "total_variance": self.total_variance,
        }
        return facts, {"errors_alone": np.concatenate(self.alone, axis=1)}

    @classmethod
    def from_arrays(
        cls, shape: Sequence[int], facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> ErrorClasses:
        """The inverse of `to_arrays`; ValueError for what does not fit together."""
        alone = np.asarray(arrays["errors_alone"], dtype=np.float32)
        if alone.ndim != 2 or alone.shape[1] != sum(shape) or not np.isfinite(alone).all():
            raise ValueError("the simulated errors do not fit the domain")
        classes = {name: ErrorBars.from_data(bars) for name, bars in facts["classes"].items()}
        typical, misfit = (
            {name: non_negative(facts[what][name], what) for name in classes}
            for what in ("typical", "misfit")
        )
        if not {"two", "tail", "wide"} <= {*classes}:
            raise ValueError("a class of its errors is missing")
        lower = {
            name: {
                as_level(level, "a lower level"): non_negative(ratio, "a lower quantile")
                for level, ratio in own
            }
            for name, own in facts["lower"].items()
        }
        noise = {
            (a, b): non_negative(value, "the noise of a pair") for a, b, value in facts["noise"]
        }
        return cls(
            classes,
            typical,
            misfit,
            lower,
            non_negative(facts["total_variance"], "the variance of the total"),
            noise,
            np.split(alone, np.cumsum(shape)[:-1], axis=1),
        )


@dataclass(frozen=True)
class _Shape:
    """Weights of a question over the records of the release.

    ``mean`` and ``std`` of the weight of a record, the ``reach`` from the least to the largest
    weight of a cell, whether the question counts records (weights 0 and 1, disjoint parts), and
    whether all attributes have ranges that hold a small share of the records.
    """

    mean: float
    std: float
    reach: float
    counting: bool
    tail: bool

    @classmethod
    def of(cls, parts: Sequence[Weights], answer: Answer, total: float) -> _Shape:
        whole = total if abs(total) >= 1.0 else 1.0
        plain = [_plain(part) for part in parts]
        factors = np.array([_factor(part) for part in parts])
        mean = float(factors @ answer(plain)) / whole
        counting = bool((factors == 1.0).all()) and all(
            bool(((vector == 0) | (vector == 1)).all())
            for part in plain
            for vector in part.values()
        )
        reaches = [abs(f) * _reach(part) for f, part in zip(factors.tolist(), plain, strict=True)]
        reach = max(reaches)
        if counting:
            std = math.sqrt(max(mean * (1.0 - mean), 0.0))
        elif len(parts) <= _MOST_PARTS:
            pairs = [(i, j) for i in range(len(parts)) for j in range(i, len(parts))]
            squares = answer([_product(plain[i], plain[j]) for i, j in pairs]) / whole
            twice = [factors[i] * factors[j] * (1.0 if i == j else 2.0) for i, j in pairs]
            std = math.sqrt(max(float(np.dot(twice, squares)) - mean**2, 0.0))
        else:
            reach = sum(reaches)
            std = reach / 2.0
        tail = all(len(part) >= 2 for part in plain) and all(
            _mass(axis, vector, answer, whole) <= _TAIL
            for part in plain
            for axis, vector in part.items()
        )
        return cls(mean, std, reach, counting, tail)


# Position of the constant factor of a part.
_FACTOR = -1


def _one_code(part: Weights, axes: Sequence[int]) -> bool:
    """Whether weights select one cell of some attributes."""
    return all(axis in part and np.count_nonzero(part[axis]) == 1 for axis in axes)


def _measured(model: Model, axes: Sequence[int]) -> bool:
    """Whether all pairs of some attributes were measured."""
    return {*combinations(axes, 2)} <= {*getattr(model, "pairs", ())}


def _guessed(model: Model, axes: Sequence[int]) -> str:
    """What to add to a guarantee where attributes were not all measured together."""
    return "" if _measured(model, axes) else _UNMEASURED


def _factor(part: Weights) -> float:
    return float(part[_FACTOR][0])


def _plain(part: Weights) -> dict[int, FloatArray]:
    return {axis: vector for axis, vector in part.items() if axis != _FACTOR}


def _varying(part: Weights) -> dict[int, FloatArray]:
    """A part without attributes of equal weights, which become its factor."""
    factor, found = 1.0, {}
    for axis, vector in part.items():
        values = np.asarray(vector, dtype=np.float64)
        if (values == values[0]).all():
            factor *= float(values[0])
        else:
            found[axis] = values
    return {**found, _FACTOR: np.array([factor])}


def _joined(parts: list[dict[int, FloatArray]]) -> list[dict[int, FloatArray]]:
    """Parts that differ in the weights of one attribute become one."""
    if not 1 < len(parts) <= _MOST_PARTS:
        return parts
    for i, first in enumerate(parts):
        for j in range(i + 1, len(parts)):
            both = _sum(first, parts[j])
            if both is not None:
                rest = [part for place, part in enumerate(parts) if place not in (i, j)]
                return _joined([*rest, _varying_again(both)])
    return parts


def _sum(one: dict[int, FloatArray], two: dict[int, FloatArray]) -> dict[int, FloatArray] | None:
    """The sum of two parts as one, if they differ in the weights of one attribute at most."""
    differ = [
        axis
        for axis in sorted({*one, *two} - {_FACTOR})
        if axis not in one or axis not in two or not np.array_equal(one[axis], two[axis])
    ]
    if len(differ) > 1:
        return None
    if not differ:
        return {**one, _FACTOR: one[_FACTOR] + two[_FACTOR]}
    axis = differ[0]
    ones = np.ones(1)
    weights = _factor(one) * one.get(axis, ones) + _factor(two) * two.get(axis, ones)
    return {**one, axis: weights, _FACTOR: ones}


def _varying_again(part: dict[int, FloatArray]) -> dict[int, FloatArray]:
    factor = _factor(part)
    found = _varying(_plain(part))
    return {**found, _FACTOR: found[_FACTOR] * factor}


def _product(one: Weights, two: Weights) -> dict[int, FloatArray]:
    found = dict(one)
    for axis, vector in two.items():
        found[axis] = found[axis] * vector if axis in found else vector
    return found


def _reach(part: Weights) -> float:
    """From the least to the largest product of weights."""
    low = high = 1.0
    for vector in part.values():
        ends = [low * vector.min(), low * vector.max(), high * vector.min(), high * vector.max()]
        low, high = min(ends), max(ends)
    return float(high - low)


def _mass(axis: int, vector: FloatArray, answer: Answer, total: float) -> float:
    """Mean of weights of an attribute that are moved to between 0 and 1."""
    low, high = float(vector.min()), float(vector.max())
    return (float(answer([{axis: vector}])[0]) / total - low) / (high - low)


def _of_level(level: float, published: float) -> float:
    """Half width at a lower level, as a share of that at the published one."""
    laplace = math.log(1 - level) / math.log(1 - published)
    if level >= published:
        return laplace
    # Half way between the two laws, as found on tables of many kinds.
    return (laplace + float(ndtri(0.5 + level / 2) / ndtri(0.5 + published / 2))) / 2


def typical_ratio(answers: FloatArray, total: float, level: float) -> float:
    """Half width for the largest spread, in quantiles of a class of questions with these answers.

    Errors are taken as normal, with standard deviations in proportion to the spread
    ``2 sqrt(p (1 - p))`` of the weights of each question.
    """
    p = np.clip(answers / max(total, 1.0), 0.0, 1.0)
    spread = 2.0 * np.sqrt(np.maximum(p * (1.0 - p), _LEAST))
    z = float(ndtri(0.5 + level / 2))
    low, high = 0.0, z
    for _ in range(50):
        middle = (low + high) / 2
        covered = float(np.mean(2.0 * ndtr(middle / spread) - 1.0))
        low, high = (middle, high) if covered < level else (low, middle)
    return z / high


_TOTAL = (
    "The number of records has noise of a known law: intervals made like this one contain the true "
    "number in {:g}%."
)
_ALONE = (
    "A question on one column: intervals made like this one are meant to contain the true answer "
    "in {:g}%. Their width is the error of counts that were measured again, with new noise, on the "
    "release."
)
_CELLS = (
    "A question on one code of each of several columns: intervals made like this one are meant to "
    "contain the true answer in {:g}% of all such cells. Their width follows from the noise of the "
    "counts and from the published errors of ranges, in proportion to the root of the answer, "
    "and is at most that of a range."
)
_WEIGHTED = (
    " The question has weights: its interval is as wide as those of ranges over which the records "
    "are spread as widely."
)
_UNMEASURED = (
    " Not all of its columns were measured together: how they depend on each other is a guess of "
    "the model, and such questions count in the class like all others."
)
