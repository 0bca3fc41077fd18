"""The released object: noisy counts over boxes, or another released model, behind one interface.

Everything here is post-processing of a release. The module can reach neither rows nor exact
counts (it imports no module that holds them), so whatever a `Synopsis` holds, answers, draws or
saves costs no privacy.

A model is what a `Synopsis` asks for numbers; `Model` says what it must offer, and `BoxModel` is
the model of the partitioning releases.
"""

from __future__ import annotations

import html
import json
import math
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from ._archive import fraction, loss_from_data, loss_to_data, read_archive, write_archive
from ._random import sampling_generator
from ._validation import as_epsilon, as_sample_size, dyadic_floor
from .accounting import PrivacyLoss
from .domain import Categorical, Domain, Numeric
from .forest import Error, ForestModel, MixtureModel
from .mechanisms import discrete_laplace_quantile, discrete_laplace_variance
from .queries import first_moment, parse

__all__ = [
    "BoxModel",
    "Boxes",
    "LeafErrorBound",
    "Model",
    "QueryResult",
    "Synopsis",
]

Weights = Mapping[int, np.ndarray]

# Numbers held at once while a batch of queries is answered: they fit into a core's cache.
_CHUNK = 1 << 18
# Volumes are compared modulo this prime, because a domain may have 1e88 cells.
_PRIME = 2_147_483_647
_MAX_DRAWS = 2_000_000
_MAX_COUNT = 2.0**53
_HELD_WEIGHTS = 1 << 23
_MAX_VIEW_CELLS = 50_000_000
_MAX_GROUPS = 100_000


@dataclass(frozen=True)
class QueryResult:
    """An answer with its error bar; ``float(result)`` is the value.

    Attributes
    ----------
    value : float
        The answer; never clamped, so a count may be negative.
    std : float
        Standard deviation of the noise in it; an upper bound where several measurements were
        combined.
    lower, upper : float
        Ends of the interval.
    guarantee : str
        What the interval covers, in words.
    """

    value: float
    std: float
    lower: float
    upper: float
    guarantee: str

    def __float__(self) -> float:
        return self.value


class Boxes:
    """Disjoint boxes of integer codes that cover a domain.

    Parameters
    ----------
    lower, upper : array-like of int, shape (n_boxes, n_attributes)
        Box i holds the codes ``lower[i, j] <= code < upper[i, j]`` of attribute j.

    Attributes
    ----------
    lower, upper : ndarray of int32, read-only

    Raises
    ------
    ValueError
        If the shapes differ or a box is empty.
    """

    __slots__ = ("lower", "upper")

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower = _frozen_int32(lower, "lower")
        self.upper = _frozen_int32(upper, "upper")
        if self.lower.shape != self.upper.shape or self.lower.ndim != 2 or not self.lower.size:
            raise ValueError(
                "lower and upper must both have the shape (n_boxes, n_attributes) with at least "
                f"one of each, got {self.lower.shape} and {self.upper.shape}."
            )
        if (self.lower >= self.upper).any():
            raise ValueError("Every box needs lower < upper in every attribute.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Boxes, (self.lower, self.upper)

    def __len__(self) -> int:
        return len(self.lower)

    def __repr__(self) -> str:
        return f"Boxes({len(self)} boxes of {self.lower.shape[1]} attributes)"

    def check_volume(self, shape: Sequence[int]) -> None:
        """Check that the boxes lie in the domain and that their sizes add up to it.

        Together with being disjoint, which is not checked, that makes them a partition. The
        sizes are added modulo a prime and, as shares of the domain, in floats.

        Parameters
        ----------
        shape : sequence of int
            Sizes of the attributes.

        Raises
        ------
        ValueError
            If they do not.
        """
        if self.lower.shape[1] != len(shape):
            raise ValueError(
                f"The boxes have {self.lower.shape[1]} attributes and the domain {len(shape)}."
            )
        sizes = np.array(shape, dtype=np.int64)
        if (self.upper > sizes).any():
            raise ValueError("A box reaches beyond the domain.")
        residue = np.ones(len(self), dtype=np.int64)
        share = np.ones(len(self))
        whole = 1
        for axis, size in enumerate(shape):
            width = self.upper[:, axis].astype(np.int64) - self.lower[:, axis]
            residue = residue * (width % _PRIME) % _PRIME
            share *= width / size
            whole = whole * int(size) % _PRIME
        if int(residue.sum()) % _PRIME != whole or abs(share.sum() - 1.0) > 1e-6:
            raise ValueError(
                f"The boxes do not add up to the domain: they cover {share.sum():.9g} of it."
            )


def _frozen_int32(values: Any, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got the dtype {array.dtype}.")
    if array.size and not 0 <= array.min() <= array.max() <= np.iinfo(np.int32).max:
        raise ValueError(f"{name} must be non-negative and fit into 32 bits.")
    return _frozen(array, np.int32)


def _frozen(values: Any, dtype: type) -> np.ndarray:
    """A read-only copy."""
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def _checked_counts(counts: Any, n_boxes: int) -> np.ndarray:
    counts = np.asarray(counts)
    if counts.dtype.kind not in "iuf" or counts.shape != (n_boxes,):
        raise ValueError(
            f"counts must hold one number for each of the {n_boxes} boxes, got the shape "
            f"{counts.shape} and the dtype {counts.dtype}."
        )
    if not (np.abs(counts.astype(np.float64)) <= _MAX_COUNT).all():
        raise ValueError("counts must be finite and at most 2**53 in size.")
    return _frozen(counts, np.float64 if counts.dtype.kind == "f" else np.int64)


@dataclass(frozen=True)
class LeafErrorBound:
    r"""Upper bounds on the aggregation errors of all boxes at once, free with a noisy stop test.

    A box that stopped at its test number n (counted over the whole run, 1, 2, ...) has, with
    probability at least 1 - mu for all boxes together, an aggregation error of at most
    ``theta + depth * delta + lam * log(n (n + 1) / (2 mu))``: the tests use fresh noise, and the
    failure probabilities mu / (n (n + 1)) sum to mu. Nothing private goes into the bound but the
    released shape of the tree.

    Parameters
    ----------
    theta, delta, lam : float
        Threshold, bias per level and noise scale of the stop test, in records. Errors that the
        test rounds away belong into ``theta``.
    depth : ndarray of int, shape (n_boxes,)
        Level of each box; the root has 0.
    test_number : ndarray of int, shape (n_boxes,)
        Number of the test that stopped each box; 0 for a box of one cell, which has no
        aggregation error and needs no test.
    step : float, default=0.0
        Lattice step of a discrete test noise; 0 for a continuous one. Its tail
        ``P(noise >= t) <= r**(t / step) / (1 + r)`` with ``r = exp(-step / lam)`` replaces
        ``exp(-t / lam) / 2``.
    """

    theta: float
    delta: float
    lam: float
    depth: np.ndarray
    test_number: np.ndarray
    step: float = 0.0

    def __post_init__(self) -> None:
        for name in ("depth", "test_number"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any():
                raise ValueError(f"{name} must hold one non-negative integer for each box.")
            object.__setattr__(self, name, _frozen(array, np.int64))
        if len(self.depth) != len(self.test_number):
            raise ValueError("depth and test_number must have the same length.")
        for name in ("theta", "delta", "lam", "step"):
            number = float(getattr(self, name))
            if not (math.isfinite(number) and number >= 0):
                raise ValueError(f"{name} must be finite and non-negative, got {number!r}.")
            object.__setattr__(self, name, number)

    def bounds(self, mu: float) -> np.ndarray:
        """Bounds that hold for all boxes together with probability at least 1 - mu.

        Parameters
        ----------
        mu : float
            In (0, 1).

        Returns
        -------
        ndarray of float64, shape (n_boxes,)
        """
        ratio = math.exp(-self.step / self.lam) if self.lam > 0 else 1.0
        number = np.maximum(self.test_number, 1).astype(np.float64)
        tail = np.log(number * (number + 1) / ((1 + ratio) * mu))
        bound = self.theta + self.depth * self.delta + self.lam * np.maximum(tail, 0.0)
        return np.where(self.test_number > 0, bound, 0.0)


class Model(Protocol):
    """What a `Synopsis` asks of a released model over a domain.

    ``answer`` is linear in each weight vector: weights outside [0, 1] give weighted sums.
    """

    kind: ClassVar[str]

    @property
    def total(self) -> float:
        """Estimated number of records."""
        ...

    def answer(self, queries: Sequence[Weights]) -> np.ndarray:
        """Sum of the expected counts under the weights, one float for each query."""
        ...

    def error(self, weights: Weights, level: float) -> Error:
        """Error of one answer at a confidence level."""
        ...

    def sample_codes(self, n_samples: int, generator: np.random.Generator) -> np.ndarray:
        """Draw records, (n_samples, n_attributes) int32 codes."""
        ...

    def view(self, axes: Sequence[int]) -> np.ndarray:
        """Expected counts for every combination of the codes of these attributes."""
        ...

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """Everything released, readable."""
        ...

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        ...

    @classmethod
    def from_arrays(
        cls, shape: tuple[int, ...], facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Model:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        ...


class BoxModel:
    """Noisy counts over boxes, records spread evenly inside each box.

    Parameters
    ----------
    boxes : Boxes
        A partition of the domain.
    counts : array-like of int or float, shape (n_boxes,)
        The released counts.
    shape : sequence of int
        Sizes of the attributes.
    noise_epsilon : number or array-like, default=None
        The noise is discrete Laplace with this epsilon (sensitivity 1, drawn at its dyadic
        floor), independent in each box; one number for all boxes or one for each.
    noise_variance : array-like, shape (n_boxes,), default=None
        Where the noise has no simple law (counts combined from several measurements): its
        variances. Intervals then treat the boxes as independent and the sum as Gaussian, and say
        so. At most one of the two is given; with neither there are no intervals.
    leaf_errors : LeafErrorBound, default=None
        Released bounds on the aggregation errors.
    uneven : bool, default=False
        Whether intervals also cover any spread of the records inside boxes that a query cuts. At
        most one of this, ``leaf_errors`` and ``noise_variance`` is given.
    measured : array-like of int, shape (n_boxes,), default=None
        Where ``counts`` are estimates from these and other measurements: the counts with the
        noise of ``noise_epsilon``, which is independent of what the boxes are. Intervals are built
        on them. Needs ``uneven``.
    """

    kind: ClassVar[str] = "boxes"

    def __init__(
        self,
        boxes: Boxes,
        counts: Any,
        shape: Sequence[int],
        *,
        noise_epsilon: Any = None,
        noise_variance: Any = None,
        leaf_errors: LeafErrorBound | None = None,
        uneven: bool = False,
        measured: Any = None,
    ) -> None:
        boxes.check_volume(shape)
        self.boxes = boxes
        self.shape = tuple(int(size) for size in shape)
        self.counts = _checked_counts(counts, len(boxes))
        self.measured = self.counts if measured is None else _checked_counts(measured, len(boxes))
        if measured is not None and not uneven:
            raise ValueError("measured needs uneven=True: other intervals are built on counts.")
        if noise_epsilon is not None and noise_variance is not None:
            raise ValueError("Give noise_epsilon or noise_variance, not both.")
        # One entry stands for all boxes.
        self.noise_epsilon: tuple[Fraction, ...] | None = None
        self.noise_variance: np.ndarray | None = None
        if noise_epsilon is not None:
            listed = [noise_epsilon] if np.ndim(noise_epsilon) == 0 else list(noise_epsilon)
            known: dict[Any, Fraction] = {}
            for value in listed:
                if value not in known:
                    known[value] = as_epsilon(value, "noise_epsilon")
                    discrete_laplace_variance(known[value])  # refuses what cannot be drawn
            self.noise_epsilon = tuple(known[value] for value in listed)
            if len(self.noise_epsilon) not in (1, len(boxes)):
                raise ValueError(
                    f"noise_epsilon must be one number or one for each of the {len(boxes)} boxes, "
                    f"got {len(self.noise_epsilon)}."
                )
        if noise_variance is not None:
            variance = np.asarray(noise_variance, dtype=np.float64)
            if (
                variance.shape != (len(boxes),)
                or not (np.isfinite(variance) & (variance >= 0)).all()
            ):
                raise ValueError(
                    f"noise_variance must hold a finite non-negative number for each of the "
                    f"{len(boxes)} boxes."
                )
            self.noise_variance = _frozen(variance, np.float64)
        if leaf_errors is not None and len(leaf_errors.depth) != len(boxes):
            raise ValueError(
                f"leaf_errors bounds {len(leaf_errors.depth)} boxes, but there are {len(boxes)}."
            )
        self.leaf_errors = leaf_errors
        if uneven and (leaf_errors is not None or noise_variance is not None):
            raise ValueError("Give one of uneven, leaf_errors and noise_variance, not more.")
        self.uneven = bool(uneven)
        self._intervals: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_intervals": {}}

    @property
    def total(self) -> float:
        """Estimated number of records, the sum of the counts."""
        return float(self.counts.sum(dtype=np.float64))

    # -- answers

    def _axis_intervals(self, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct intervals of the boxes on one axis: starts, stops, index per box.

        Trees cut few places per axis, so that there are far fewer of them than boxes.
        """
        if axis not in self._intervals:
            starts, start_at = np.unique(self.boxes.lower[:, axis], return_inverse=True)
            stops, stop_at = np.unique(self.boxes.upper[:, axis], return_inverse=True)
            pairs, inverse = np.unique(
                start_at.astype(np.int64) * len(stops) + stop_at, return_inverse=True
            )
            self._intervals[axis] = (
                starts[pairs // len(stops)].astype(np.int64),
                stops[pairs % len(stops)].astype(np.int64),
                inverse.reshape(-1),
            )
        return self._intervals[axis]

    def _covered_intervals(self, queries: Sequence[Weights], axis: int) -> np.ndarray:
        """Share of every distinct interval of an axis, shape (n_intervals, n_queries)."""
        starts, stops, _ = self._axis_intervals(axis)
        sums = np.zeros((self.shape[axis] + 1, len(queries)))
        np.cumsum(np.stack([query[axis] for query in queries], axis=1), axis=0, out=sums[1:])
        covered: np.ndarray = (sums[stops] - sums[starts]) / (stops - starts)[:, None]
        return covered

    def _covered(self, queries: Sequence[Weights], axes: Sequence[int]) -> np.ndarray:
        """Share of every box under queries on the same axes, shape (n_boxes, n_queries)."""
        share: np.ndarray | None = None
        for axis in axes:
            factor = self._covered_intervals(queries, axis)[self._axis_intervals(axis)[2]]
            share = factor if share is None else np.multiply(share, factor, out=share)
        return np.ones((len(self.boxes), len(queries))) if share is None else share

    def answer(self, queries: Sequence[Weights]) -> np.ndarray:
        """Sum of the expected counts under the weights, one float for each query."""
        counts = self.counts.astype(np.float64)
        answers = np.empty(len(queries))
        by_axes: dict[tuple[int, ...], list[int]] = {}
        for position, weights in enumerate(queries):
            by_axes.setdefault(tuple(sorted(weights)), []).append(position)
        for axes, members in by_axes.items():
            sides = [len(self._axis_intervals(axis)[0]) for axis in axes]
            # Boxes that are alike on these axes are added up first where that leaves fewer: of a
            # grid, only its projection.
            table = None
            if math.prod(sides) < len(self.boxes):
                places = [self._axis_intervals(axis)[2] for axis in axes]
                table = counts.sum(keepdims=True)
                if axes:
                    flat = np.ravel_multi_index(tuple(places), sides)
                    table = np.bincount(flat, weights=counts, minlength=math.prod(sides))
            rows = max([len(self.boxes), *(self.shape[axis] for axis in axes)])
            if table is not None:
                rows = max(len(table), *(self.shape[axis] for axis in axes), 1)
            step = max(1, _CHUNK // rows)
            for first in range(0, len(members), step):
                part = members[first : first + step]
                batch = [queries[i] for i in part]
                if table is None:
                    answers[part] = counts @ self._covered(batch, axes)
                    continue
                left = table[None]
                for axis, side in zip(axes, sides, strict=True):
                    covered = self._covered_intervals(batch, axis)
                    left = left.reshape(len(left), side, -1)
                    if len(left) == 1:
                        left = covered.T @ left[0]
                    else:
                        left = np.einsum("sq,qsr->qr", covered, left)
                answers[part] = left.reshape(-1)
        return answers

    def error(self, weights: Weights, level: float) -> Error:
        r"""Interval that covers the noise, and uneven boxes where bounds on them exist.

        Box i holds S_i records, released as c_i = S_i + z_i with known noise z_i, and X_i of them
        meet the query (a weighted number, if bins are covered in part). With w_i the mean weight
        of its cells, X_i differs from w_i S_i by at most half the aggregation error times the
        spread of the weights in the box, together h_i. So X_i lies between the convex
        ``g(S_i) = max(0, w_i S_i - h_i)`` with slopes in [0, w_i] and the concave
        ``f(S_i) = min(S_i, w_i S_i + h_i)`` with slopes in [w_i, 1], and

            ``f(S_i) <= f(c_i) + max(-w_i z_i, -z_i)``,  ``g(S_i) >= g(c_i) - max(0, w_i z_i)``.

        Summed over the boxes that the query cuts (a box covered entirely has X_i = S_i), the
        released counts give the ends and the last terms a noise of known law. The bounds on the
        aggregation errors, which hold for all boxes together, get half of ``1 - level`` and each
        side a quarter. The minimum with S_i matters: most boxes of a wide table are empty.

        Where the model is marked ``uneven``, nothing is known of the boxes but that their cells
        hold at least nothing: with the smallest weight a_i and the largest b_i of a cell, X lies
        between ``sum(a_i S_i)`` and ``sum(b_i S_i)``, and each of the two sums is known up to the
        noise in it, which gets half of ``1 - level``. If the answer comes from better counts than
        those whose noise is known, the interval is extended to it where need be.

        Else the interval is ``sum(w_i c_i)`` and a quantile of ``sum(w_i z_i)``.
        """
        axes = sorted(weights)
        alpha = 1.0 - level
        share = self._covered([weights], axes)[:, 0]
        low, high = self._weight_range(weights)
        cut = high > low
        touched = bool(cut.any())
        std = math.sqrt(float(share**2 @ self._variances()))
        sure, law = "at least", ""
        if self.noise_variance is not None:
            sure = "about"
            law = "known variances, taken as independent between boxes, their sum as Gaussian"
            below = above = -float(ndtri(alpha / 2)) * std
        elif touched and self.leaf_errors is not None:
            misfit = (high - low) * self.leaf_errors.bounds(alpha / 2) / 2
            counts = np.where(cut, self.counts, 0.0)
            expected = share * counts
            noise_above, law = self._noise(share, np.where(cut, 1.0, share), alpha / 4)
            noise_below, _ = self._noise(np.where(cut, 0.0, share), share, alpha / 4)
            least = np.maximum(0.0, expected - misfit)
            most = np.minimum(counts, expected + misfit)
            # With unlucky noise the answer itself could fall outside: never report that.
            below = max(0.0, noise_below + float((expected - least)[cut].sum()))
            above = max(0.0, noise_above + float((most - expected)[cut].sum()))
        elif self.uneven:
            value = float(share @ self.counts)
            noise_above, law = self._noise(high, high, alpha / 2)
            noise_below, _ = self._noise(low, low, alpha / 2)
            below = max(0.0, value - float(low @ self.measured) + noise_below)
            above = max(0.0, float(high @ self.measured) + noise_above - value)
        else:
            below, law = self._noise(share, share, alpha / 2)
            above = below
        text = (
            f"For a query fixed before looking at the release, with probability {sure} "
            f"{100 * level:g}%: the interval covers the noise ({law})"
        )
        if not touched:
            text += ", the only error: the query cuts through no box."
        elif self.uneven:
            text += " and any spread of the records in boxes that the query cuts."
        elif self.leaf_errors is None:
            text += ". It does not cover the uneven spread of records in boxes that the query cuts."
        else:
            text += " and the uneven spread of records in boxes that the query cuts."
        if any(((vector > 0) & (vector < 1)).any() for vector in weights.values()):
            text += " Bins covered in part are taken as covered in proportion."
        return Error(std, below, above, text)

    def _weight_range(self, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest weight of a cell in every box (weights must not be negative)."""
        low, high = np.ones(len(self.boxes)), np.ones(len(self.boxes))
        for axis, vector in weights.items():
            starts, stops, inverse = self._axis_intervals(axis)
            low *= _range_extreme(vector, starts, stops, np.minimum)[inverse]
            high *= _range_extreme(vector, starts, stops, np.maximum)[inverse]
        return low, high

    def _epsilons(self) -> tuple[list[Fraction], np.ndarray]:
        """Distinct epsilons of the noise, and which of them each box has."""
        if self.noise_epsilon is None:
            raise ValueError(
                "This release does not say how its noise is distributed, so it has no intervals. "
                "Ask for the plain count."
            )
        distinct = list(dict.fromkeys(self.noise_epsilon))
        if len(self.noise_epsilon) == 1:
            return distinct, np.zeros(len(self.boxes), dtype=np.int64)
        position = {epsilon: i for i, epsilon in enumerate(distinct)}
        return distinct, np.array([position[epsilon] for epsilon in self.noise_epsilon])

    def _variances(self) -> np.ndarray:
        if self.noise_variance is not None:
            return self.noise_variance
        distinct, index = self._epsilons()
        return np.array([discrete_laplace_variance(epsilon) for epsilon in distinct])[index]

    def _noise(self, low: np.ndarray, high: np.ndarray, alpha: float) -> tuple[float, str]:
        """What ``sum max(low_i z_i, high_i z_i)`` exceeds with probability ``alpha`` at most."""
        distinct, index = self._epsilons()
        used = np.flatnonzero(high)
        return _noise_quantile(low[used], high[used], distinct, index[used], alpha)

    # -- other uses

    def sample_codes(self, n_samples: int, generator: np.random.Generator) -> np.ndarray:
        """Draw records: a box in proportion to its positive count, a cell evenly in the box.

        If no count is positive, the cells of the whole domain are equally likely.
        """
        positive = np.maximum(self.counts, 0).astype(np.float64)
        if not positive.any():
            shape = np.array(self.shape, dtype=np.int32)
            return generator.integers(0, shape, size=(n_samples, len(shape)), dtype=np.int32)
        chosen = generator.choice(len(positive), size=n_samples, p=positive / positive.sum())
        return generator.integers(
            self.boxes.lower[chosen], self.boxes.upper[chosen], dtype=np.int32
        )

    def view(self, axes: Sequence[int]) -> np.ndarray:
        """Expected counts for every combination of the codes of one or two attributes."""
        lower = self.boxes.lower[:, axes].astype(np.int64)
        upper = self.boxes.upper[:, axes].astype(np.int64)
        density = self.counts / (upper - lower).prod(axis=1, dtype=np.float64)
        # Every box adds its density at its corners with alternating signs; running sums along
        # the axes spread it over the box.
        padded = tuple(self.shape[axis] + 1 for axis in axes)
        table = np.zeros(math.prod(padded))
        for corner in np.ndindex(*(2,) * len(axes)):
            at = np.where(np.array(corner, dtype=bool), upper, lower)
            flat = np.ravel_multi_index(tuple(at.T), padded)
            sign = (-1.0) ** sum(corner)
            table += np.bincount(flat, weights=sign * density, minlength=len(table))
        table = table.reshape(padded)
        for axis in range(len(axes)):
            table = np.cumsum(table, axis=axis)
        return table[tuple(slice(-1) for _ in axes)]

    def rectangles(self, axes: Sequence[int]) -> np.ndarray:
        """Distinct boxes on a few axes, int32 of shape (n, n_axes, 2): first code, stop code."""
        sides = np.stack([self.boxes.lower[:, axes], self.boxes.upper[:, axes]], axis=2)
        return np.unique(sides, axis=0)

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """One row for each box: its range in every attribute, and its count."""
        columns: dict[str, Any] = {}
        for axis, name in enumerate(domain.names):
            starts, stops, inverse = self._axis_intervals(axis)
            labels = np.array(
                [
                    _label(domain.attributes[axis], int(start), int(stop))
                    for start, stop in zip(starts, stops, strict=True)
                ],
                dtype=object,
            )
            columns[name] = labels[inverse]
        title = "count"
        while title in columns:
            title += "_"
        columns[title] = self.counts
        return pd.DataFrame(columns)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts: dict[str, Any] = {}
        arrays = {"lower": self.boxes.lower, "upper": self.boxes.upper, "counts": self.counts}
        if self.noise_epsilon is not None:
            distinct = list(dict.fromkeys(self.noise_epsilon))
            facts["noise_epsilon"] = [str(epsilon) for epsilon in distinct]
            if len(self.noise_epsilon) > 1:
                position = {epsilon: i for i, epsilon in enumerate(distinct)}
                arrays["noise_epsilon"] = np.array(
                    [position[epsilon] for epsilon in self.noise_epsilon], dtype=np.int64
                )
        if self.noise_variance is not None:
            arrays["noise_variance"] = self.noise_variance
        if self.leaf_errors is not None:
            facts["leaf_errors"] = {
                name: getattr(self.leaf_errors, name) for name in ("theta", "delta", "lam", "step")
            }
            arrays["depth"] = self.leaf_errors.depth
            arrays["test_number"] = self.leaf_errors.test_number
        if self.uneven:
            facts["uneven"] = True
            if self.measured is not self.counts:
                arrays["measured"] = self.measured
        return facts, arrays

    @classmethod
    def from_arrays(
        cls, shape: tuple[int, ...], facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> BoxModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        epsilon: Any = None
        if "noise_epsilon" in facts:
            distinct = [fraction(text) for text in facts["noise_epsilon"]]
            if "noise_epsilon" in arrays:
                index = arrays["noise_epsilon"]
                if index.dtype.kind not in "iu" or (index < 0).any():
                    raise ValueError("noise_epsilon must hold positions")
                epsilon = [distinct[i] for i in index.tolist()]
            else:
                (epsilon,) = distinct
        leaf_errors = None
        if "leaf_errors" in facts:
            leaf_errors = LeafErrorBound(
                **facts["leaf_errors"], depth=arrays["depth"], test_number=arrays["test_number"]
            )
        return cls(
            Boxes(arrays["lower"], arrays["upper"]),
            arrays["counts"],
            shape,
            noise_epsilon=epsilon,
            noise_variance=arrays.get("noise_variance"),
            leaf_errors=leaf_errors,
            uneven=facts.get("uneven") is True,
            measured=arrays.get("measured"),
        )


# --------------------------------------------------------------------------------------------------
# Kernels


def _range_extreme(
    vector: np.ndarray, starts: np.ndarray, stops: np.ndarray, extreme: np.ufunc
) -> np.ndarray:
    """Minimum or maximum of ``vector[start:stop]`` for many ranges, by doubling windows."""
    result = np.empty(len(starts))
    levels = np.frexp((stops - starts).astype(np.float64))[1] - 1
    window, width = vector, 1
    for level in range(int(levels.max()) + 1):
        here = levels == level
        result[here] = extreme(window[starts[here]], window[stops[here] - width])
        if 2 * width <= len(vector):
            window = extreme(window[:-width], window[width:])
            width *= 2
    return result


def _noise_quantile(
    low: np.ndarray,
    high: np.ndarray,
    epsilons: Sequence[Fraction],
    index: np.ndarray,
    alpha: float,
) -> tuple[float, str]:
    """What a sum of slanted noises exceeds with probability ``alpha`` at most, and why.

    The sum is ``sum max(low_i z_i, high_i z_i)`` with z_i discrete Laplace of the epsilon that
    ``index`` says, 0 <= low_i <= high_i; equal slopes give a weighted sum. The smaller of two
    bounds is taken. Chernoff: ``min_t (sum K_i(t) + log(1 / alpha)) / t`` with the exact cumulant
    functions K_i. Monte Carlo: an order statistic of B draws of the public noise law,
    ``4.8 sqrt(B alpha)`` ranks above the plain quantile, so that it is too small with probability
    1e-6 at most; its seed is fixed, so that equal queries get equal intervals.
    """
    if not len(high):
        return 0.0, "none in this answer"
    if len(high) == 1 and low[0] == high[0]:
        steps = discrete_laplace_quantile(1 - 2 * alpha, epsilons[int(index[0])])
        return float(high[0]) * steps, "its exact law"
    # Boxes with the same slopes, as those covered entirely, are treated together. Slopes are
    # compared after scaling and rounding at the twelfth digit, the steeper one up and the
    # other down: that can only widen the interval. Equal slopes stay equal.
    scale = float(high.max())
    steep = np.ceil(high / scale * 1e12 - 1e-3) / 1e12
    flat = np.where(low == high, steep, np.floor(low / scale * 1e12) / 1e12)
    kinds, number = np.unique(np.stack([flat, steep, index], axis=1), axis=0, return_counts=True)
    a, b = kinds[:, 0], kinds[:, 1]
    e = np.array([float(dyadic_floor(epsilon)) for epsilon in epsilons])[kinds[:, 2].astype(int)]
    a, b, e, number = (part[b > 0] for part in (a, b, e, number))
    bound = scale * _chernoff(a, b, e, number, alpha)
    simulated = scale * _simulated_quantile(a, b, e, number, alpha)
    if simulated < bound:
        return simulated, "its exact law simulated, too narrow with probability 1e-6"
    return bound, "a bound on its exact law"


def _chernoff(
    a: np.ndarray, b: np.ndarray, e: np.ndarray, number: np.ndarray, alpha: float
) -> float:
    """Chernoff bound on the upper quantile; ``number`` of each kind, any t gives a valid one."""
    largest = float((e / b).min())
    base = float(number @ np.log(np.tanh(e / 2)))

    def bound(u: float) -> float:
        t = u * largest
        # E exp(t max(a z, b z)) = tanh(e/2) (sum_{k>=0} exp((tb - e)k) + sum_{k>0} exp(-(ta + e)k))
        moment = np.log(-1 / np.expm1(t * b - e) + 1 / np.expm1(e + t * a))
        return (base + float(number @ moment) + math.log(1 / alpha)) / t

    with np.errstate(over="ignore"):
        found = minimize_scalar(
            bound, bounds=(1e-6, 1 - 1e-9), method="bounded", options={"xatol": 1e-4}
        )
    return float(found.fun)


def _simulated_quantile(
    a: np.ndarray, b: np.ndarray, e: np.ndarray, number: np.ndarray, alpha: float
) -> float:
    """Order statistic of the simulated sum; infinity if that would take too many draws."""
    straight = a == b
    symmetric = bool(straight.all())
    if symmetric:  # both tails serve
        alpha = 2 * alpha
    terms = int(np.where(straight, 1, number).sum())
    draws = int(max(20_000, 200 / alpha))
    if draws * terms > _MAX_DRAWS:
        draws = int(max(4_000, 100 / alpha))
    # The generator of sums overflows on noise of astronomic scale.
    if draws * terms > _MAX_DRAWS or float((number / e).max()) > 1e15:
        return math.inf
    generator = sampling_generator(20220901)
    success = -np.expm1(-e)
    total = np.zeros(draws)
    for i in np.flatnonzero(straight & (number > 1)):
        # A sum of n geometric variables is negative binomial, their difference discrete Laplace.
        noise = generator.negative_binomial(number[i], success[i], draws)
        total += (noise - generator.negative_binomial(number[i], success[i], draws)) * b[i]
    single = np.flatnonzero(~straight | (number == 1))
    single = np.repeat(single, number[single])
    step = max(1, 1_000_000 // draws)
    for first in range(0, len(single), step):
        part = single[first : first + step]
        size = (draws, len(part))
        noise = generator.geometric(success[part], size) - generator.geometric(success[part], size)
        total += np.maximum(noise, 0) @ b[part] + np.minimum(noise, 0) @ a[part]
    if symmetric:
        total = np.abs(total)
    rank = math.ceil(draws * (1 - alpha) + 4.8 * math.sqrt(draws * alpha))
    return float(np.partition(total, rank - 1)[rank - 1])


# --------------------------------------------------------------------------------------------------
# Labels


def _label(attribute: Numeric | Categorical, start: int, stop: int) -> str:
    """The codes from start to stop (exclusive) in words."""
    if stop - start == attribute.size:
        return "any"
    if start == attribute.n_values:
        return "missing"
    tail = " or missing" if stop > attribute.n_values else ""
    stop = min(stop, attribute.n_values)
    if isinstance(attribute, Categorical):
        shown = attribute.labels()[start:stop]
        if attribute.ordered and len(shown) > 1:
            return f"{shown[0]} to {shown[-1]}{tail}"
        if len(shown) > 5:
            shown = [*shown[:3], f"... ({len(shown)} in all)"]
        return ", ".join(shown) + tail
    low, high = attribute.edges[[start, stop]].tolist()
    if attribute.integer:
        return (f"{low}" if high == low + 1 else f"{low} to {high - 1}") + tail
    return f"[{low:.6g}, {high:.6g}{']' if stop == attribute.bins else ')'}{tail}"


def _group_labels(attribute: Numeric | Categorical) -> list[Any]:
    """What stands for each code in a table of groups; None for the missing cell."""
    labels: list[Any]
    if isinstance(attribute, Categorical):
        labels = list(attribute.categories)
    else:
        edges = attribute.edges.tolist()
        if attribute.integer and attribute.bins == edges[-1] - edges[0]:
            labels = [int(edge) for edge in edges[:-1]]
        else:
            labels = list(pd.IntervalIndex.from_breaks(edges, closed="left"))
    return labels + [None] * (attribute.size - attribute.n_values)


def _plot_axis(name: str, attribute: Numeric | Categorical) -> dict[str, Any]:
    """What `skdp.plotting.PlotAxis` needs to know of a column."""
    if isinstance(attribute, Categorical):
        edges = np.arange(attribute.n_values + 1) - 0.5
        labels: list[str] | None = attribute.labels()[: attribute.n_values]
    else:
        # A bar stands over its integers, the first one included.
        edges = attribute.edges - 0.5 * attribute.integer
        labels = None
    return {"name": name, "edges": edges, "labels": labels, "missing": attribute.nullable}


# --------------------------------------------------------------------------------------------------
# The released object

_FORMAT = "skdp synopsis"
_VERSION = 1
_MODELS: dict[str, type[Model]] = {
    model.kind: model for model in (BoxModel, ForestModel, MixtureModel)
}


class Synopsis:
    """A private release of a table: counts, sums, means and synthetic rows at no further cost.

    Parameters
    ----------
    domain : Domain
        The public schema.
    boxes : Boxes
        A partition of the domain.
    counts : array-like of int or float, shape (n_boxes,)
        The released counts. Records are taken as evenly spread inside each box.
    noise_epsilon : number or array-like, default=None
        Epsilon of the discrete Laplace noise in the counts, one for all boxes or one for each.
    noise_variance : array-like, shape (n_boxes,), default=None
        Instead of ``noise_epsilon``: variances of the noise, where its law is not simple.
    leaf_errors : LeafErrorBound, default=None
        Bounds on the unevenness inside the boxes, for intervals that cover it.
    uneven : bool, default=False
        Whether intervals cover any unevenness inside boxes, without bounds on it.
    measured : array-like of int, shape (n_boxes,), default=None
        The counts with the noise of ``noise_epsilon``, where ``counts`` are better estimates.
    privacy_loss : PrivacyLoss, default=None
        What the release cost, with its parts, and whether a seed drew its noise.
    mechanism : str, default=""
        How the release was made, in words.

    Attributes
    ----------
    domain : Domain
    model : Model
        Where the numbers come from; a `BoxModel` for releases over boxes.
    privacy_loss : PrivacyLoss or None
    mechanism : str

    Notes
    -----
    Nothing is clamped: noise may make a count negative, and adding up many counts is unbiased
    only because of that.

    Examples
    --------
    >>> from skdp import Categorical, Domain, Numeric
    >>> domain = Domain({"age": Numeric(20, 59, integer=True), "sex": Categorical(["F", "M"])})
    >>> boxes = Boxes(lower=[[0, 0], [20, 0]], upper=[[20, 2], [40, 2]])
    >>> release = Synopsis(domain, boxes, [800, 400], noise_epsilon=0.1)
    >>> release.count("30 <= age < 50 and sex == 'F'")
    300.0
    >>> release.count({"age": (20, 39)}, return_interval=True, level=0.9).lower
    777.0
    >>> release.to_frame()
            age  sex  count
    0  20 to 39  any    800
    1  40 to 59  any    400
    """

    def __init__(
        self,
        domain: Domain,
        boxes: Boxes,
        counts: Any,
        *,
        noise_epsilon: Any = None,
        noise_variance: Any = None,
        leaf_errors: LeafErrorBound | None = None,
        uneven: bool = False,
        measured: Any = None,
        privacy_loss: PrivacyLoss | None = None,
        mechanism: str = "",
    ) -> None:
        model = BoxModel(
            boxes,
            counts,
            domain.shape,
            noise_epsilon=noise_epsilon,
            noise_variance=noise_variance,
            leaf_errors=leaf_errors,
            uneven=uneven,
            measured=measured,
        )
        self._set(domain, model, privacy_loss, mechanism)

    @classmethod
    def from_model(
        cls,
        domain: Domain,
        model: Model,
        *,
        privacy_loss: PrivacyLoss | None = None,
        mechanism: str = "",
    ) -> Synopsis:
        """Make a synopsis of another released model over the domain.

        Parameters
        ----------
        domain : Domain
        model : Model
        privacy_loss : PrivacyLoss, default=None
        mechanism : str, default=""

        Returns
        -------
        Synopsis
        """
        synopsis = cls.__new__(cls)
        synopsis._set(domain, model, privacy_loss, mechanism)
        return synopsis

    def _set(
        self, domain: Domain, model: Model, privacy_loss: PrivacyLoss | None, mechanism: str
    ) -> None:
        self.domain = domain
        self.model = model
        self.privacy_loss = privacy_loss
        self.mechanism = mechanism

    # -- facts

    @property
    def total(self) -> float:
        """Estimated number of records; it may be negative."""
        return self.model.total

    @property
    def total_std(self) -> float:
        """Standard deviation of the noise in ``total``, in records.

        For pair views it is that of the separate count of all records, before it is combined with
        the views.

        Raises
        ------
        ValueError
            If the release does not say how its total was measured.
        """
        if isinstance(self.model, BoxModel):
            return math.sqrt(float(self.model._variances().sum()))
        if self.privacy_loss is None or "total" not in self.privacy_loss.parts:
            raise ValueError("The noise of the total is not known: this release does not say it.")
        n_counts = len(self.model.models) if isinstance(self.model, MixtureModel) else 1
        budget = self.privacy_loss.of_record.parts["total"]
        return math.sqrt(n_counts * discrete_laplace_variance(budget))

    @property
    def epsilon(self) -> Fraction | None:
        """What the release cost, if it is known."""
        return None if self.privacy_loss is None else self.privacy_loss.epsilon

    @property
    def seeded(self) -> bool:
        """Whether a seed drew the noise: then there is no guarantee."""
        return self.privacy_loss is not None and self.privacy_loss.seeded

    def _facts(self) -> dict[str, str]:
        """What `repr` and the notebook show."""
        facts = {"made by": self.mechanism or "unknown"}
        if self.privacy_loss is None:
            facts["privacy"] = "unknown loss"
        elif self.seeded:
            facts["privacy"] = "seeded: no guarantee"
        else:
            facts["privacy"] = f"epsilon={float(self.privacy_loss.epsilon):g}"
        if self.domain.inferred:
            facts["domain"] = "inferred from the data: not private"
        facts["columns"] = ", ".join(map(str, self.domain.names))
        if isinstance(self.model, BoxModel):
            facts["boxes"] = f"{len(self.model.boxes):,}"
        if isinstance(self.model, ForestModel | MixtureModel):
            facts["pairs"] = f"{len(self.model.pairs):,}"
        facts["estimated records"] = f"{self.total:,.6g}"
        return facts

    def __repr__(self) -> str:
        facts = self._facts()
        shown = [f"{name} {value}" for name, value in facts.items() if name != "columns"]
        return f"<Synopsis of {len(self.domain.names)} columns: {'; '.join(shown)}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table><caption>Synopsis</caption><tbody>{rows}</tbody></table>"

    # -- questions

    def count(
        self, query: Any = None, *, return_interval: bool = False, level: float = 0.95
    ) -> Any:
        """Estimate how many records meet a query.

        Parameters
        ----------
        query : dict, str, None, or a list of these, default=None
            See :func:`skdp.queries.parse`. None asks for all records.
        return_interval : bool, default=False
            Give a `QueryResult` with the noise's standard deviation and an interval.
        level : float, default=0.95
            Confidence of the interval, for a query fixed before looking at the release. If you
            pick m queries after looking, ask for ``1 - (1 - level) / m``.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            One for a query, an array or list for a list of queries. Nothing is clamped: a count
            may be negative.

        Raises
        ------
        ValueError
            If a query cannot be understood, or the release says nothing about its noise and an
            interval is asked for.

        Notes
        -----
        An interval covers the noise, by its exact law, and, if the release has bounds on it, the
        uneven spread of the records inside boxes that the query cuts; ``guarantee`` says which.
        It takes from a millisecond up to half a second, growing with the number of boxes cut.
        """
        if not return_interval:
            queries, single = _listed(query)
            answers = _answer(self.model, (parse(one, self.domain) for one in queries))
            return float(answers[0]) if single else answers
        level = _check_level(level)
        queries, single = _listed(query)
        results = []
        for one in queries:
            weights = parse(one, self.domain)
            value = float(self.model.answer([weights])[0])
            error = self.model.error(weights, level)
            results.append(
                QueryResult(
                    value,
                    error.std,
                    value - error.below,
                    value + error.above,
                    error.guarantee,
                )
            )
        return results[0] if single else results

    def sum(self, column: str, query: Any = None) -> Any:
        """Estimate the sum of a numeric column over the records that meet a query.

        Parameters
        ----------
        column : str
            A `Numeric`, or a `Categorical` whose categories are numbers.
        query : dict, str, None, or a list of these, default=None

        Returns
        -------
        float, or ndarray of float64 for a list
            Every record counts with the middle of its bin (of the part that the query covers, if
            it constrains ``column``), or the mean of the bin's integers. Missing values add
            nothing.

        Raises
        ------
        ValueError
            If the column has no numbers or a query cannot be understood.
        """
        queries, single = _listed(query)
        sums, _ = self._moments(column, queries)
        return float(sums[0]) if single else sums

    def mean(self, column: str, query: Any = None) -> Any:
        """Estimate the mean of a numeric column over the records that meet a query.

        Parameters
        ----------
        column : str
            As in `sum`.
        query : dict, str, None, or a list of these, default=None

        Returns
        -------
        float, or ndarray of float64 for a list
            `sum` divided by the number of records whose value is not missing, brought into the
            range that the column can have; nan where that number is not positive.

        Raises
        ------
        ValueError
            As in `sum`.
        """
        queries, single = _listed(query)
        sums, counts = self._moments(column, queries)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(counts > 0, sums / counts, np.nan)
        means = np.clip(means, *self._reach(column))
        return float(means[0]) if single else means

    def aggregate(
        self, by: str | Sequence[str], column: str | None = None, query: Any = None
    ) -> pd.DataFrame:
        """Estimate counts, and sums and means of a column, of every group of records.

        Parameters
        ----------
        by : str or sequence of str
            Columns whose codes make the groups; at most 100,000 groups.
        column : str, default=None
            A `Numeric`, or a `Categorical` whose categories are numbers.
        query : dict, str or None, default=None
            Which records are meant.

        Returns
        -------
        DataFrame
            One row for each combination of codes, with the columns ``by``, ``count`` and, if
            ``column`` is given, ``sum`` and ``mean``: as
            ``frame.groupby(by)[column].agg(["count", "sum", "mean"])``, groups without records
            included. Bins that are wider than one integer are intervals, missing values None.
            As in `sum`, records without a value in ``column`` do not count there.

        Raises
        ------
        ValueError
            As in `count` and `mean`, or if ``by`` names no column, one twice, or too many groups.

        Examples
        --------
        >>> from skdp import Categorical, Domain, Numeric
        >>> domain = Domain({"age": Numeric(20, 59, integer=True), "sex": Categorical(["F", "M"])})
        >>> boxes = Boxes(lower=[[0, 0], [0, 1]], upper=[[40, 1], [40, 2]])
        >>> Synopsis(domain, boxes, [800, 400]).aggregate("sex", "age", "age < 30")
          sex  count     sum  mean
        0   F  200.0  4900.0  24.5
        1   M  100.0  2450.0  24.5
        """
        names = [by] if isinstance(by, str) else list(by)
        if not names or len(set(names)) < len(names):
            raise ValueError(f"by must name one or more different columns, got {by!r}.")
        weights = parse(query, self.domain)
        for name in names:
            parse({name: []}, self.domain)  # explains an unknown name
        axes = [self.domain.index(name) for name in names]
        sizes = [self.domain.shape[axis] for axis in axes]
        if math.prod(sizes) > _MAX_GROUPS:
            raise ValueError(
                f"Grouping by {' and '.join(names)} makes {math.prod(sizes):,} groups, more than "
                f"{_MAX_GROUPS:,}. Group by fewer columns."
            )

        def groups(base: Weights) -> Iterator[Weights]:
            for codes in np.ndindex(*sizes):
                group = dict(base)
                for axis, code in zip(axes, codes, strict=True):
                    only = np.zeros(self.domain.shape[axis])
                    only[code] = base[axis][code] if axis in base else 1.0
                    group[axis] = only
                yield group

        labels = [_group_labels(self.domain[name]) for name in names]
        codes = np.indices(sizes).reshape(len(sizes), -1)
        columns: dict[str, Any] = {
            name: pd.Series(
                [label[i] for i in code.tolist()], dtype=object if None in label else None
            )
            for name, label, code in zip(names, labels, codes, strict=True)
        }
        taken = set(names)
        results: dict[str, np.ndarray] = {}
        if column is None:
            results["count"] = _answer(self.model, groups(weights))
        else:
            present, moment = first_moment(query, self.domain, column)
            axis = self.domain.index(column)
            results["count"] = counts = _answer(self.model, groups(present))
            results["sum"] = sums = _answer(self.model, groups({**present, axis: moment}))
            with np.errstate(divide="ignore", invalid="ignore"):
                means = np.where(counts > 0, sums / counts, np.nan)
            results["mean"] = np.clip(means, *self._reach(column))
        for title, values in results.items():
            while title in taken:
                title += "_"
            columns[title] = values
        return pd.DataFrame(columns)

    def _reach(self, column: str) -> tuple[float, float]:
        """Smallest and largest value that a mean of the column can have."""
        _, values = first_moment(None, self.domain, column)
        seen = values[: self.domain[column].n_values]
        return float(seen.min()), float(seen.max())

    def _moments(self, column: str, queries: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Sums of the column, and numbers of records with a value in it."""
        axis = self.domain.index(column) if column in self.domain else -1

        def both() -> Iterator[Weights]:
            for one in queries:
                weights, moment = first_moment(one, self.domain, column)
                yield {**weights, axis: moment}
                yield weights

        answers = _answer(self.model, both())
        return answers[::2], answers[1::2]

    # -- synthetic records

    def sample_codes(self, n_samples: int | None = None, random_state: Any = None) -> np.ndarray:
        """Draw synthetic records as integer codes.

        Parameters
        ----------
        n_samples : int, default=None
            None stands for the estimated number of records, at least 0.
        random_state : None, int or numpy.random.Generator, default=None
            Sampling from a release is free: an int here is harmless.

        Raises
        ------
        ValueError
            If it is negative, or None would draw more than 500 million values (rows times
            columns): give a number of rows.

        Returns
        -------
        ndarray of int32, shape (n_samples, n_attributes)
            Boxes are drawn in proportion to their positive counts, cells evenly inside; if no
            count is positive, all cells of the domain are equally likely.
        """
        number = as_sample_size(n_samples, self.total, len(self.domain))
        return self.model.sample_codes(number, sampling_generator(random_state))

    def sample(self, n_samples: int | None = None, random_state: Any = None) -> pd.DataFrame:
        """Draw synthetic records.

        Parameters
        ----------
        n_samples : int, default=None
            None stands for the estimated number of records, at least 0; it is refused where
            that makes more than 500 million values (rows times columns).
        random_state : None, int or numpy.random.Generator, default=None

        Returns
        -------
        DataFrame
            With the columns, order and dtypes of the domain; see `sample_codes`.
        """
        generator = sampling_generator(random_state)
        codes = self.sample_codes(n_samples, generator)
        return self.domain.decode(codes, random_state=generator)

    # -- views

    def view(self, columns: Sequence[str]) -> np.ndarray:
        """Estimated counts for every combination of the codes of one or two columns.

        Parameters
        ----------
        columns : sequence of str
            One or two names.

        Returns
        -------
        ndarray of float64
            One axis for each column, in their order.

        Raises
        ------
        ValueError
            For another number of columns, unknown or equal names, or more than 5e7 cells.
        """
        columns = [columns] if isinstance(columns, str) else list(columns)
        if not 1 <= len(columns) <= 2 or len(set(columns)) < len(columns):
            raise ValueError(f"A view has one or two different columns, got {columns!r}.")
        for column in columns:
            parse({column: []}, self.domain)  # explains an unknown name
        axes = [self.domain.index(column) for column in columns]
        cells = math.prod(self.domain.shape[axis] for axis in axes)
        if cells > _MAX_VIEW_CELLS:
            raise ValueError(
                f"The view of {' and '.join(columns)} has {cells:,} cells, more than "
                f"{_MAX_VIEW_CELLS:,}. Take one column, or ask for counts of ranges."
            )
        return self.model.view(axes)

    def plot(
        self,
        columns: Sequence[str] | str | None = None,
        ax: Any = None,
        *,
        blocks: bool = False,
        norm: Any = None,
    ) -> Any:
        """Draw the expected number of records over one or two columns.

        Parameters
        ----------
        columns : str or sequence of str, default=None
            One column gives bars, two a heat map, the first from left to right. None takes the
            first two (or the only one).
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        blocks : bool, default=False
            Outline the boxes, as far as they differ in the two columns.
        norm : matplotlib Normalize, default=None
            Colour scale of a heat map, such as ``matplotlib.colors.PowerNorm(0.5)`` for skewed
            counts; linear from zero by default, negative cells then have the colour of zero.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing; it comes with the extra ``skdp[plot]``.
        ValueError
            As in `view`, or if there are no boxes to outline or too many.
        """
        from .plotting import PlotAxis, plot_view

        if columns is None:
            columns = self.domain.names[:2]
        columns = [columns] if isinstance(columns, str) else list(columns)
        table = self.view(columns)
        rectangles = None
        if blocks:
            if not isinstance(self.model, BoxModel) or len(columns) != 2:
                raise ValueError(
                    "blocks=True outlines boxes over two columns; this release or view has none."
                )
            rectangles = self.model.rectangles([self.domain.index(name) for name in columns])
        axes = [PlotAxis(**_plot_axis(name, self.domain[name])) for name in columns]
        return plot_view(table, axes, ax=ax, blocks=rectangles, norm=norm)

    def to_frame(self) -> pd.DataFrame:
        """Everything released, in a readable table.

        Returns
        -------
        DataFrame
            For boxes: one row each, its range in every column in words, and ``count``.
        """
        return self.model.to_frame(self.domain)

    # -- files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the release to one file; it holds what `Synopsis` holds and is safe to publish.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced.

        Notes
        -----
        The file is a zip archive of ``metadata.json`` (UTF-8: ``format`` "skdp synopsis",
        ``version`` 1, ``domain``, ``privacy`` with epsilon and parts as exact fractions and
        ``seeded``, ``mechanism``, ``model`` with its kind and facts) and of one ``NAME.npy``
        array for each array of the model (NumPy's format, numbers only; for boxes ``lower``,
        ``upper``, ``counts``, perhaps ``measured``; for a forest ``marginals``, ``tables``, and
        where they are needed ``groups``, ``rows``, ``row_weights``, with the number of the part
        behind where there are several). It never holds a seed. Equal releases give equal
        bytes.
        """
        facts, arrays = self.model.to_arrays()
        loss = self.privacy_loss
        metadata = {
            "format": _FORMAT,
            "version": _VERSION,
            "domain": json.loads(self.domain.to_json()),
            "privacy": loss and loss_to_data(loss),
            "mechanism": self.mechanism,
            "model": {"kind": self.model.kind, **facts},
        }
        write_archive(path, metadata, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str], *, max_bytes: int = 1 << 31) -> Synopsis:
        """Read a file written by `save`; nothing in it is executed.

        Parameters
        ----------
        path : str or path-like
        max_bytes : int, default=2**31
            Refuse files that would unpack to more.

        Returns
        -------
        Synopsis

        Raises
        ------
        ValueError
            If the file is not a synopsis, is damaged or too large, or comes from a later version.
        OSError
            If it cannot be opened.
        """
        return read_archive(path, _FORMAT, _VERSION, cls._from_parts, max_bytes)

    @classmethod
    def _from_parts(cls, metadata: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Synopsis:
        domain = Domain.from_json(json.dumps(metadata["domain"]))
        facts = dict(metadata["model"])
        kind = facts.pop("kind")
        if kind not in _MODELS:
            raise ValueError(f"its model {kind!r} is unknown to this version of skdp")
        mechanism = metadata["mechanism"]
        if not isinstance(mechanism, str):
            raise ValueError("its mechanism is not a text")
        privacy = metadata["privacy"]
        loss = None if privacy is None else loss_from_data(privacy)
        model = _MODELS[kind].from_arrays(domain.shape, facts, arrays)
        return cls.from_model(domain, model, privacy_loss=loss, mechanism=mechanism)


def _listed(query: Any) -> tuple[list[Any], bool]:
    """The queries as a list, and whether there was only one without a list."""
    if isinstance(query, list | tuple):
        return list(query), False
    return [query], True


def _answer(model: Model, queries: Iterable[Weights]) -> np.ndarray:
    """Answers to many queries; only so many weights are held at a time."""
    answers: list[np.ndarray] = []
    waiting: list[Weights] = []
    held = 0
    for weights in queries:
        waiting.append(weights)
        held += sum(len(vector) for vector in weights.values())
        if held > _HELD_WEIGHTS:
            answers.append(model.answer(waiting))
            waiting, held = [], 0
    answers.append(model.answer(waiting))
    return np.concatenate(answers)


def _check_level(level: Any) -> float:
    if isinstance(level, bool) or not isinstance(level, numbers.Real):
        raise TypeError(f"level must be a number, got {level!r}.")
    number = float(level)
    if not 0 < number < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
    return number
