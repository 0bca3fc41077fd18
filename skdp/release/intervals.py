"""Boxes, a partition of the domain, and how far answers over them may be off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._validation import FloatArray, as_epsilon
from ..mechanisms import discrete_laplace_variance
from .files import demand, fraction

__all__ = ["Boxes", "Cut", "Intervals", "LeafErrorBound", "checked_counts"]

# --- read-only copies of arrays that a release holds

_MAX_COUNT = 2.0**53


def _whole(values: Any, name: str, dtype: type) -> np.ndarray:
    """A read-only copy of codes, depths or places."""
    array = np.asarray(values)
    demand(array.dtype.kind in "iu", f"{name} must be integers, got the dtype {array.dtype}.")
    fits = 0 <= array.min(initial=0) <= array.max(initial=0) <= np.iinfo(np.int32).max
    demand(fits, f"{name} must be non-negative and fit into 32 bits.")
    return _frozen(array, dtype)


def _frozen(values: Any, dtype: type) -> np.ndarray:
    """A read-only copy."""
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def checked_counts(counts: Any, n_boxes: int) -> np.ndarray:
    """A read-only copy of released counts, one for each box."""
    counts = np.asarray(counts)
    demand(
        counts.dtype.kind in "iuf" and counts.shape == (n_boxes,),
        f"counts must hold one number for each of the {n_boxes} boxes, got the shape "
        f"{counts.shape} and the dtype {counts.dtype}.",
    )
    small = (np.abs(counts.astype(np.float64)) <= _MAX_COUNT).all()
    demand(small, "counts must be finite and at most 2**53 in size.")
    return _frozen(counts, np.float64 if counts.dtype.kind == "f" else np.int64)


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

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower = _whole(lower, "lower", np.int32)
        self.upper = _whole(upper, "upper", np.int32)
        demand(
            self.lower.shape == self.upper.shape and self.lower.ndim == 2 and self.lower.size,
            "lower and upper must both have the shape (n_boxes, n_attributes) with at least one "
            f"of each, got {self.lower.shape} and {self.upper.shape}.",
        )
        some = (self.lower < self.upper).all()
        demand(some, "Every box needs lower < upper in every attribute.")

    def __len__(self) -> int:
        return len(self.lower)

    def check_volume(self, shape: Sequence[int]) -> None:
        """Check that the boxes lie in the domain and that their sizes add up to it.

        If they are also disjoint, which is not checked, they form a partition.

        Parameters
        ----------
        shape : sequence of int
            Sizes of the attributes.

        Raises
        ------
        ValueError
            If they do not.
        """
        n = self.lower.shape[1]
        demand(n == len(shape), f"The boxes have {n} attributes and the domain {len(shape)}.")
        inside = (self.upper <= np.array(shape, dtype=np.int64)).all()
        demand(inside, "A box reaches beyond the domain.")
        cells = math.prod(shape)
        # A domain may have 1e88 cells.
        kind = np.int64 if len(self) * cells < 1 << 63 else object
        covered = int((self.upper - self.lower).astype(kind).prod(axis=1).sum())
        demand(
            covered == cells,
            f"The boxes do not add up to the domain: they cover {covered / cells:.9g} of it.",
        )


# --- the law of a sum of noises


def noise_reach(low: FloatArray, high: FloatArray, variances: FloatArray, tail: float) -> float:
    """What a sum of noises exceeds with a probability of about ``tail``.

    The sum is ``sum max(low_i z_i, high_i z_i)``, with independent discrete Laplace noises z_i and
    low_i <= high_i of any sign; equal slopes give a weighted sum. Its law lies between the normal
    one and that of a single noise, as far as its excess kurtosis does, whose 0.75th power is within
    2% for sums of n equal noises; unequal slopes add the skewness, as Cornish and Fisher do.

    Parameters
    ----------
    low, high : ndarray of float64, shape (n,)
    variances : ndarray of float64, shape (n,)
        Of the noises.
    tail : float
        At most 0.5.
    """
    used = (low != 0) | (high != 0)
    low, high, variances = low[used], high[used], variances[used]
    # A mean slope, and half the difference of the slopes times the size of the noise.
    middle, half, scale = (low + high) / 2, (high - low) / 2, np.sqrt(variances / 2)
    square, other = middle**2, half**2
    variance = float((square + other / 2) @ variances)
    if variance <= 0:
        return 0.0
    kurtosis = float(square**2 @ (variances + 3 * variances**2)) / variance**2
    skewness = float(((12 * square + 2 * other) * half) @ (scale * variances / 2)) / variance**1.5
    normal, single = -float(ndtri(tail)), -math.log(2 * tail) / math.sqrt(2)
    standard = normal + (single - normal) * min(kurtosis / 3, 1.0) ** 0.75
    standard += skewness * (normal**2 - 1) / 6
    reach = float(half @ scale) + math.sqrt(variance) * standard
    # Noise is whole: the sum of equally steep ones is a multiple of their slope.
    steep = np.maximum(np.abs(low), np.abs(high))
    largest = float(steep.max())
    whole = largest * math.ceil(reach / largest - 0.5)
    return whole if (steep == largest).all() else max(reach, whole)


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


# --- what is known about the errors of answers over boxes


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
            object.__setattr__(self, name, _whole(getattr(self, name), name, np.int64))
        alike = self.depth.ndim == 1 and self.depth.shape == self.test_number.shape
        demand(alike, "depth and test_number must have the same length.")
        for name in ("theta", "delta", "lam", "step"):
            number = float(getattr(self, name))
            held = 0 <= number < math.inf
            demand(held, f"{name} must be finite and non-negative, got {number!r}.")
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


_Spread = LeafErrorBound | Literal["any"] | None


class Intervals:
    r"""How far the truth may lie from an answer over boxes.

    An answer has two errors: the noise in the counts, which is discrete Laplace, independent in
    each box, and the uneven spread of the records inside boxes that the query cuts.

    Box i holds S_i records, released as c_i = S_i + z_i with known noise z_i, and X_i of them
    meet the query (a weighted number, if bins are covered in part). With w_i the mean weight
    of its cells, a_i the smallest and b_i the largest, X_i lies between a_i S_i and b_i S_i. Where
    aggregation errors are bounded, it also differs from w_i S_i by at most half the bound times
    b_i - a_i, together h_i. So X_i lies between ``g(S_i) = max(a_i S_i, w_i S_i - h_i)``, convex
    with slopes in [a_i, w_i], and ``f(S_i) = min(b_i S_i, w_i S_i + h_i)``, concave with slopes in
    [w_i, b_i], and

        ``f(S_i) <= f(c_i) + max(-w_i z_i, -b_i z_i)``,
        ``g(S_i) >= g(c_i) - max(a_i z_i, w_i z_i)``.

    Summed over all boxes, the released counts give the ends and the last terms a noise of known
    distribution. The bounds on the aggregation errors, which hold for all boxes together, get half
    of ``1 - level`` and each side a quarter. Where nothing bounds them, h_i is infinite, the slopes
    are a_i and b_i, and each side gets half. The minimum with b_i S_i matters: most boxes of a wide
    table are empty.

    Parameters
    ----------
    epsilon : number or array-like, default=None
        Epsilon of the discrete Laplace noise in the counts (sensitivity 1), which is drawn at its
        dyadic floor: one for all boxes or one for each. Without it there are no intervals.
    spread : LeafErrorBound or "any", default=None
        Released bounds on the aggregation errors, or "any": nothing is known about boxes except
        that no cell holds fewer than 0 records. None: intervals cover the noise alone.
    measured : array-like of int, shape (n_boxes,), default=None
        Where the counts are estimates from these and other measurements: the counts with the
        noise of ``epsilon``, which is independent of what the boxes are. Intervals are built on
        them, and extended to the answer where need be. Needs ``spread="any"``.

    Attributes
    ----------
    epsilons : list of Fraction
        The different ones; empty where the noise is not known.
    """

    def __init__(self, epsilon: Any = None, spread: _Spread = None, measured: Any = None) -> None:
        demand(measured is None or spread == "any", "measured needs any spread")
        self.spread = spread
        self.measured = None if measured is None else np.asarray(measured)
        listed = [epsilon] if np.ndim(epsilon) == 0 else list(epsilon)
        known = [] if epsilon is None else [*dict.fromkeys(listed)]
        self.epsilons = [as_epsilon(each, "noise_epsilon") for each in known]
        place = {each: number for number, each in enumerate(known)}
        self._index = np.array([place.get(each, 0) for each in listed], dtype=np.int64)
        # Refuses what cannot be drawn.
        variances = [discrete_laplace_variance(each) for each in self.epsilons]
        self._variances = np.array(variances or [0.0])

    def check(self, n_boxes: int) -> None:
        """Raise ValueError if this does not fit the number of boxes."""
        n = len(self._index)
        demand(
            not self.epsilons or n in (1, n_boxes),
            f"noise_epsilon must be one number or one for each of the {n_boxes} boxes, got {n}.",
        )
        if isinstance(self.spread, LeafErrorBound):
            n = len(self.spread.depth)
            demand(n == n_boxes, f"leaf_errors bounds {n} boxes, but there are {n_boxes}.")
        if self.measured is not None:
            self.measured = checked_counts(self.measured, n_boxes)

    @property
    def covers(self) -> str:
        """What is covered where a query cuts boxes."""
        uneven = "the uneven spread of records"
        if self.spread is None:
            return f". It does not cover {uneven} in boxes that the query cuts."
        spread = "any spread of the records" if self.spread == "any" else uneven
        return f" and {spread} in boxes that the query cuts."

    def variances(self, n_boxes: int) -> FloatArray:
        """Variance of the noise in each box.

        Raises
        ------
        ValueError
            If it is not known.
        """
        demand(
            self.epsilons,
            "This release does not say how its noise is distributed, so it has no intervals. Ask "
            "for the plain count.",
        )
        return self._variances[np.broadcast_to(self._index, n_boxes)]

    def scatter(self, counts: np.ndarray) -> FloatArray:
        """By how many records of each box its cells may differ, where a variance covers that.

        The number of records of a box that meet a query then has, beside the noise, the variance
        of so many records that all lie in one cell, anywhere in the box.
        """
        if self.spread is None:
            return np.zeros(len(counts))
        most = np.maximum(counts, 0.0)
        if isinstance(self.spread, LeafErrorBound):
            most = np.minimum(most, self.spread.bounds(0.05) / 2)
        return most

    def reach(self, cut: Cut, alpha: float) -> tuple[float, float]:
        """Reach of an interval below and above the answer, which it leaves with ``alpha``."""
        mean, low, high = cut.mean, cut.low, cut.high
        if self.spread is None:
            low = high = mean
        inner, uneven = (low, high), np.full(len(mean), math.inf)
        if isinstance(self.spread, LeafErrorBound) and (high > low).any():
            alpha /= 2
            inner, uneven = (mean, mean), (high - low) * self.spread.bounds(alpha) / 2
        counts = cut.counts if self.measured is None else self.measured
        value, variances = float(mean @ cut.counts), self.variances(len(mean))
        least = np.maximum(low * counts, mean * counts - uneven).sum()
        most = np.minimum(high * counts, mean * counts + uneven).sum()
        below = value - float(least) + noise_reach(low, inner[0], variances, alpha / 2)
        above = float(most) - value + noise_reach(inner[1], high, variances, alpha / 2)
        # With unlucky noise the answer itself could fall outside; the interval then reaches to it.
        return max(0.0, below), max(0.0, above)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts: dict[str, Any] = {}
        arrays: dict[str, np.ndarray] = {}
        if self.epsilons:
            facts["noise_epsilon"] = [str(epsilon) for epsilon in self.epsilons]
            if len(self._index) > 1:
                arrays["noise_epsilon"] = self._index
        if isinstance(self.spread, LeafErrorBound):
            bound = self.spread
            names = ("theta", "delta", "lam", "step")
            facts["leaf_errors"] = {name: getattr(bound, name) for name in names}
            arrays |= {"depth": bound.depth, "test_number": bound.test_number}
        elif self.spread is not None:
            facts["uneven"] = True
        if self.measured is not None:
            arrays["measured"] = self.measured
        return facts, arrays

    @classmethod
    def from_arrays(cls, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Intervals:
        """The inverse of `to_arrays`; ValueError for what does not fit together."""
        epsilon: Any = None
        if "noise_epsilon" in facts:
            epsilon = [fraction(text) for text in facts["noise_epsilon"]]
            if "noise_epsilon" in arrays:
                index = _whole(arrays["noise_epsilon"], "noise_epsilon", np.int64)
                epsilon = [epsilon[i] for i in index.tolist()]
        spread: _Spread = "any" if facts.get("uneven") is True else None
        if "leaf_errors" in facts:
            demand(spread is None, "leaf_errors and uneven exclude each other")
            spread = LeafErrorBound(
                **facts["leaf_errors"], depth=arrays["depth"], test_number=arrays["test_number"]
            )
        return cls(epsilon, spread, arrays.get("measured"))
