"""Boxes: a partition of the domain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._random import sampling_generator
from .._validation import FloatArray, IntArray, as_epsilon, dyadic_floor
from ..mechanisms import discrete_laplace_quantile, discrete_laplace_variance
from ..mechanisms.laplace import noise_bound
from .files import fraction

__all__ = [
    "AnySpread",
    "BoundedSpread",
    "Boxes",
    "Cut",
    "Intervals",
    "KnownNoise",
    "LeafErrorBound",
    "checked_counts",
    "frozen",
    "frozen_int32",
    "intervals_from_arrays",
]

# --- read-only copies of arrays that a release holds

_MAX_COUNT = 2.0**53


def frozen_int32(values: Any, name: str) -> np.ndarray:
    """A read-only copy of codes."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got the dtype {array.dtype}.")
    if array.size and not 0 <= array.min() <= array.max() <= np.iinfo(np.int32).max:
        raise ValueError(f"{name} must be non-negative and fit into 32 bits.")
    return frozen(array, np.int32)


def frozen(values: Any, dtype: type) -> np.ndarray:
    """A read-only copy."""
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def checked_counts(counts: Any, n_boxes: int) -> np.ndarray:
    """A read-only copy of released counts, one for each box."""
    counts = np.asarray(counts)
    if counts.dtype.kind not in "iuf" or counts.shape != (n_boxes,):
        raise ValueError(
            f"counts must hold one number for each of the {n_boxes} boxes, got the shape "
            f"{counts.shape} and the dtype {counts.dtype}."
        )
    if not (np.abs(counts.astype(np.float64)) <= _MAX_COUNT).all():
        raise ValueError("counts must be finite and at most 2**53 in size.")
    return frozen(counts, np.float64 if counts.dtype.kind == "f" else np.int64)


# Volumes are compared modulo this prime, because a domain may have 1e88 cells.
_PRIME = 2_147_483_647


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
        self.lower = frozen_int32(lower, "lower")
        self.upper = frozen_int32(upper, "upper")
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

    def sides(self, axis: int, chosen: IntArray) -> tuple[IntArray, IntArray]:
        """First codes of some boxes on an axis, and codes after the last."""
        return self.lower[chosen, axis].astype(np.int64), self.upper[chosen, axis].astype(np.int64)

    def check_volume(self, shape: Sequence[int]) -> None:
        """Check that the boxes lie in the domain and that their sizes add up to it.

        If they are also disjoint, which is not checked, they form a partition. The
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


# ------------------------------------------------------------------------------------------------
# Intervals for answers over boxes: one class for each kind of knowledge about the errors.
#
# An answer over boxes has two errors: the noise in the counts, whose distribution is public, and
#   the
# uneven spread of the records inside boxes that the query cuts. Each class here says which of them
# its intervals cover and why.


# --- quantiles of sums of noise with a known distribution

_MAX_DRAWS = 2_000_000


def range_extreme(
    vector: np.ndarray, starts: np.ndarray, stops: np.ndarray, extreme: np.ufunc
) -> np.ndarray:
    """Minimum or maximum of ``vector[start:stop]`` for many ranges."""
    # One more entry: a range may stop at the end.
    ranges = np.stack([starts, stops], axis=1).ravel()
    found: np.ndarray = extreme.reduceat(np.append(vector, vector[-1:]), ranges)[::2]
    return found


def noise_quantile(
    low: np.ndarray,
    high: np.ndarray,
    epsilons: Sequence[Fraction],
    index: np.ndarray,
    alpha: float,
) -> tuple[float, str]:
    """Bound that a sum of asymmetric noises exceeds with probability at most ``alpha``, and why.

    The sum is ``sum max(low_i z_i, high_i z_i)`` with z_i discrete Laplace of the epsilon that
    ``index`` says, low_i <= high_i of any sign; equal slopes give a weighted sum. The smaller of
    two bounds is taken. Chernoff: ``min_t (sum K_i(t) + log(1 / alpha)) / t`` with the exact
    cumulant functions K_i. Monte Carlo: an order statistic of B draws of the public noise,
    ``4.8 sqrt(B alpha)`` ranks above the plain quantile, so that it is too small with probability
    1e-6 at most; its seed is fixed, so that equal queries get equal intervals.
    """
    if not len(high):
        return 0.0, "none in this answer"
    # The noise is symmetric: a straight slope and its negative are the same.
    straight = low == high
    low, high = (np.where(straight, np.abs(each), each) for each in (low, high))
    if len(high) == 1 and straight[0]:
        steps = discrete_laplace_quantile(1 - 2 * alpha, epsilons[int(index[0])])
        return float(high[0]) * steps, "its exact law"
    # Boxes with the same slopes, as those covered entirely, are treated together. Slopes are
    # compared after scaling and rounding at the twelfth digit, the steeper one up and the
    # other down: that can only widen the interval. Equal slopes stay equal.
    scale = float(np.maximum(np.abs(low), np.abs(high)).max())
    steep = np.ceil(high / scale * 1e12 - 1e-3) / 1e12
    flat = np.where(straight, steep, np.floor(low / scale * 1e12) / 1e12)
    alike = np.stack([flat, steep, index])[:, np.lexsort([index, steep, flat])]
    first = np.flatnonzero(np.append(True, (np.diff(alike) != 0).any(axis=0)))
    (a, b, kind), number = alike[:, first], np.diff(np.append(first, len(flat)))
    e = np.array([float(dyadic_floor(epsilon)) for epsilon in epsilons])[kind.astype(int)]
    felt = (a != 0) | (b != 0)
    a, b, e, number = (part[felt] for part in (a, b, e, number))
    bound = scale * noise_bound(a, b, e, number, alpha)
    simulated = scale * _simulated_quantile(a, b, e, number, alpha)
    if simulated < bound:
        return simulated, "its exact law simulated, too narrow with probability 1e-6"
    return bound, "a bound on its exact law"


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
    # The generator of sums overflows if the scale of the noise is astronomical.
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
    for place in np.repeat(single, number[single]).tolist():
        # A noise is at least k from zero with probability 2 r**k / (1 + r), r = exp(-epsilon).
        scale, low, high = e[place], a[place], b[place]
        drawn = generator.random(draws) - 0.5
        size = np.log(np.abs(drawn) * (1.0 + math.exp(-scale))) / -scale
        size = np.maximum(np.floor(size, out=size), 0.0, out=size)
        total += (high - low) / 2.0 * size
        total += (low + high) / 2.0 * np.copysign(size, drawn)
    if symmetric:
        total = np.abs(total)
    rank = math.ceil(draws * (1 - alpha) + 4.8 * math.sqrt(draws * alpha))
    return float(np.partition(total, rank - 1)[rank - 1])


class Cut(NamedTuple):
    """How a query cuts the boxes.

    Attributes
    ----------
    mean, low, high : ndarray of float64, shape (n_boxes,)
        Mean, smallest and largest weight of the cells of each box.
    counts : ndarray of shape (n_boxes,)
        The released counts.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    counts: np.ndarray


class _NoiseLaw:
    """Discrete Laplace noise, independent in each box.

    Parameters
    ----------
    epsilon : number or array-like
        The noise is drawn at the dyadic floor of this epsilon (sensitivity 1); one number for all
        boxes or one for each.

    Attributes
    ----------
    epsilons : tuple of Fraction
        One for all boxes or one for each.
    distinct : list of Fraction
    index : ndarray of int64
        Which of them each of ``epsilons`` is.
    """

    def __init__(self, epsilon: Any) -> None:
        listed = [epsilon] if np.ndim(epsilon) == 0 else list(epsilon)
        known = {value: as_epsilon(value, "noise_epsilon") for value in dict.fromkeys(listed)}
        self.epsilons = tuple(known[value] for value in listed)
        self.distinct = list(dict.fromkeys(self.epsilons))
        # Refuses what cannot be drawn.
        self._variances = np.array([discrete_laplace_variance(each) for each in self.distinct])
        position = {each: place for place, each in enumerate(self.distinct)}
        self.index = np.array([position[each] for each in self.epsilons], dtype=np.int64)

    def of_boxes(self, n_boxes: int) -> IntArray:
        """Which of the distinct epsilons each box has."""
        return np.broadcast_to(self.index, n_boxes)

    def variances(self, n_boxes: int) -> FloatArray:
        return self._variances[self.of_boxes(n_boxes)]

    def quantile(
        self, low: FloatArray, high: FloatArray, alpha: float, exact: bool
    ) -> tuple[float, str]:
        """Bound that ``sum max(low_i z_i, high_i z_i)`` exceeds with probability <= ``alpha``.

        If it need not be exact the sum is taken as Gaussian: quick, for many answers. Where one box
        dominates, the quantile of its Laplace noise is larger, and is taken. A bound on
        ``max(low z, high z)`` is the mean of the two weights times z and half their difference
        times the absolute value of z, which is uncorrelated. Of a Laplace z with variance v that
        has the mean ``sqrt(v / 2)`` and the variance ``v / 2``.
        """
        if exact:
            used = np.flatnonzero((low != 0) | (high != 0))
            index = self.of_boxes(len(high))[used]
            return noise_quantile(low[used], high[used], self.distinct, index, alpha)
        middle, half, v = (low + high) / 2, (high - low) / 2, self.variances(len(high))
        variance = float(middle**2 @ v + half**2 @ v / 2)
        scale = np.sqrt(v / 2)
        gaussian = float(half @ scale) - float(ndtri(alpha)) * math.sqrt(variance)
        one = float((np.maximum(np.abs(low), np.abs(high)) * scale).max(initial=0.0))
        return max(gaussian, -one * math.log(2 * alpha)), "its sum taken as Gaussian"


class Intervals:
    """How far the truth may lie from an answer.

    Parameters
    ----------
    epsilon : number or array-like, default=None
        Epsilon of the discrete Laplace noise in the counts, one for all boxes or one for each.
        Without it the model has no intervals.
    """

    # How reliable the stated confidence is, and what is covered where a query cuts boxes.
    sure: ClassVar[str] = "at least"
    covers: ClassVar[str] = (
        ". It does not cover the uneven spread of records in boxes that the query cuts."
    )

    def __init__(self, epsilon: Any = None) -> None:
        self.law = None if epsilon is None else _NoiseLaw(epsilon)

    @property
    def noise(self) -> _NoiseLaw:
        """The distribution of the noise.

        Raises
        ------
        ValueError
            If it is not known.
        """
        if self.law is None:
            raise ValueError(
                "This release does not say how its noise is distributed, so it has no intervals. "
                "Ask for the plain count."
            )
        return self.law

    def check(self, n_boxes: int) -> None:
        """Raise ValueError if this does not fit the number of boxes."""
        if self.law is not None and len(self.law.epsilons) not in (1, n_boxes):
            raise ValueError(
                f"noise_epsilon must be one number or one for each of the {n_boxes} boxes, "
                f"got {len(self.law.epsilons)}."
            )

    def variances(self, n_boxes: int) -> FloatArray:
        """Variance of the noise in each box."""
        return self.noise.variances(n_boxes)

    def reach(self, cut: Cut, alpha: float, exact: bool = True) -> tuple[float, float, str]:
        """Reach of an interval below and above the answer, and how the noise was bounded."""
        width, law = self.noise.quantile(cut.mean, cut.mean, alpha / 2, exact)
        return width, width, law

    def scatter(self, counts: np.ndarray) -> FloatArray:
        """By how many records of each box its cells may differ, where a variance covers that.

        The number of records of a box that meet a query then has, beside the noise, the variance
        of so many records that all lie in one cell, anywhere in the box.
        """
        return np.zeros(len(counts))

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        if self.law is None:
            return {}, {}
        facts = {"noise_epsilon": [str(epsilon) for epsilon in self.law.distinct]}
        return facts, {"noise_epsilon": self.law.index} if len(self.law.epsilons) > 1 else {}


class KnownNoise(Intervals):
    """The noise alone, exactly: ``sum(w_i c_i)`` and a quantile of ``sum(w_i z_i)``."""


@dataclass(frozen=True)
class LeafErrorBound:
    r"""Upper bounds on the aggregation errors of all boxes at once, free with a noisy stop test.

    A box that stopped at its test number n (counted over the whole run, 1, 2, ...) has, with
    probability at least 1 - mu for all boxes together, an aggregation error of at most
    ``theta + depth * delta + lam * log(n (n + 1) / (2 mu))``: the tests use fresh noise, and the
    failure probabilities mu / (n (n + 1)) sum to mu. The bound uses nothing private, only the
    released shape of the tree.

    Parameters
    ----------
    theta, delta, lam : float
        Threshold, bias per level and noise scale of the stop test, in records. Include in ``theta``
        any error that the test rounds away.
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
            object.__setattr__(self, name, frozen(array, np.int64))
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


class BoundedSpread(Intervals):
    r"""The noise, and the uneven spread inside boxes as far as released bounds allow.

    Box i holds S_i records, released as c_i = S_i + z_i with known noise z_i, and X_i of them
    meet the query (a weighted number, if bins are covered in part). With w_i the mean weight
    of its cells, a_i the smallest and b_i the largest, X_i differs from w_i S_i by at most half the
    aggregation error times b_i - a_i, together h_i. So X_i lies between the convex
    ``g(S_i) = max(a_i S_i, w_i S_i - h_i)`` with slopes in [a_i, w_i] and the concave
    ``f(S_i) = min(b_i S_i, w_i S_i + h_i)`` with slopes in [w_i, b_i], and

        ``f(S_i) <= f(c_i) + max(-w_i z_i, -b_i z_i)``,
        ``g(S_i) >= g(c_i) - max(a_i z_i, w_i z_i)``.

    Summed over the boxes that the query cuts (a box covered entirely has X_i = S_i), the
    released counts give the ends and the last terms a noise of known distribution. The bounds on
    the aggregation errors, which hold for all boxes together, get half of ``1 - level`` and each
    side a quarter. The minimum with b_i S_i matters: most boxes of a wide table are empty.

    Parameters
    ----------
    epsilon : number or array-like, or None
        As for :class:`Intervals`.
    leaf_errors : LeafErrorBound
        Released bounds on the aggregation errors.
    """

    covers = " and the uneven spread of records in boxes that the query cuts."

    def __init__(self, epsilon: Any, leaf_errors: LeafErrorBound) -> None:
        super().__init__(epsilon)
        self.leaf_errors = leaf_errors

    def check(self, n_boxes: int) -> None:
        """Raise ValueError if this does not fit the number of boxes."""
        super().check(n_boxes)
        if len(self.leaf_errors.depth) != n_boxes:
            raise ValueError(
                f"leaf_errors bounds {len(self.leaf_errors.depth)} boxes, but there are {n_boxes}."
            )

    def scatter(self, counts: np.ndarray) -> FloatArray:  # noqa: D102
        bounds = self.leaf_errors.bounds(0.05) / 2
        return np.minimum(np.maximum(counts, 0.0), bounds)

    def reach(self, cut: Cut, alpha: float, exact: bool = True) -> tuple[float, float, str]:
        """Reach of an interval below and above the answer, and how the noise was bounded."""
        inside = cut.high > cut.low
        if not inside.any():
            return super().reach(cut, alpha, exact)
        misfit = (cut.high - cut.low) * self.leaf_errors.bounds(alpha / 2) / 2
        counts = np.where(inside, cut.counts, 0.0)
        expected = cut.mean * counts
        noise_above, law = self.noise.quantile(cut.mean, cut.high, alpha / 4, exact)
        noise_below, _ = self.noise.quantile(cut.low, cut.mean, alpha / 4, exact)
        least = np.maximum(cut.low * counts, expected - misfit)
        most = np.minimum(cut.high * counts, expected + misfit)
        # With unlucky noise the answer itself could fall outside; the interval is then extended to
        # it.
        below = max(0.0, noise_below + float((expected - least)[inside].sum()))
        above = max(0.0, noise_above + float((most - expected)[inside].sum()))
        return below, above, law

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts, arrays = super().to_arrays()
        bound = self.leaf_errors
        facts["leaf_errors"] = {
            name: getattr(bound, name) for name in ("theta", "delta", "lam", "step")
        }
        return facts, {**arrays, "depth": bound.depth, "test_number": bound.test_number}


class AnySpread(Intervals):
    """The noise, and any spread of the records inside boxes.

    Nothing is known about the boxes except that no cell holds fewer than 0 records: with the
    smallest weight a_i and the largest b_i of a cell, X lies between ``sum(a_i S_i)`` and ``sum(b_i
    S_i)``, and each of the two sums is known up to the noise in it, which gets half of ``1 -
    level``. If the answer comes from better counts than those whose noise is known, the interval is
    extended to it where need be.

    Parameters
    ----------
    epsilon : number or array-like, or None
        As for :class:`Intervals`.
    measured : array-like of int, shape (n_boxes,), default=None
        Where the counts are estimates from these and other measurements: the counts with the
        noise of ``epsilon``, which is independent of what the boxes are. Intervals are built on
        them.
    """

    covers = " and any spread of the records in boxes that the query cuts."

    def __init__(self, epsilon: Any = None, measured: Any = None) -> None:
        super().__init__(epsilon)
        self.measured = None if measured is None else np.asarray(measured)

    def check(self, n_boxes: int) -> None:
        """Raise ValueError if this does not fit the number of boxes."""
        super().check(n_boxes)
        if self.measured is not None:
            self.measured = checked_counts(self.measured, n_boxes)

    def scatter(self, counts: np.ndarray) -> FloatArray:  # noqa: D102
        return np.maximum(counts, 0.0).astype(np.float64)

    def reach(self, cut: Cut, alpha: float, exact: bool = True) -> tuple[float, float, str]:
        """Reach of an interval below and above the answer, and how the noise was bounded."""
        measured = cut.counts if self.measured is None else self.measured
        value = float(cut.mean @ cut.counts)
        noise_above, law = self.noise.quantile(cut.high, cut.high, alpha / 2, exact)
        noise_below, _ = self.noise.quantile(cut.low, cut.low, alpha / 2, exact)
        below = max(0.0, value - float(cut.low @ measured) + noise_below)
        above = max(0.0, float(cut.high @ measured) + noise_above - value)
        return below, above, law

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts, arrays = super().to_arrays()
        kept = {} if self.measured is None else {"measured": self.measured}
        return {**facts, "uneven": True}, {**arrays, **kept}


def intervals_from_arrays(facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Intervals:
    """The inverse of `Intervals.to_arrays`; ValueError for what does not fit together."""
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
    measured = arrays.get("measured")
    if facts.get("uneven") is True:
        if "leaf_errors" in facts:
            raise ValueError("leaf_errors and uneven exclude each other")
        return AnySpread(epsilon, measured)
    if measured is not None:
        raise ValueError("measured needs uneven")
    if "leaf_errors" not in facts:
        return KnownNoise(epsilon)
    bound = LeafErrorBound(
        **facts["leaf_errors"], depth=arrays["depth"], test_number=arrays["test_number"]
    )
    return BoundedSpread(epsilon, bound)
