"""What every release answers: the protocol, and what its kinds share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.special import ndtri

from .._validation import CodeArray, FloatArray
from ..domain.query import Query, Weights, is_cut, plain, weights_in, with_bins
from .files import Arrays, Facts


class Reach(NamedTuple):
    """Standard deviations of answers, how far the truth may lie from them, and what that covers."""

    std: FloatArray
    below: FloatArray
    above: FloatArray
    guarantee: str


class Answers(Protocol):
    """What every release of counts answers, and how far its answers are off.

    ``answer`` is linear in each vector of weights; weights outside [0, 1] give weighted sums. All
    errors come from ``variance`` and ``covariances``, intervals of counts and sums from ``reach``.
    These three raise ValueError, with the reason, where nothing is known of the errors. A kind of
    release defines ``answer`` and ``covariances``, and whatever it knows better.
    """

    # Whether errors of two releases of one table are independent, as those of noise are.
    independent: ClassVar[bool] = True

    @property
    def covers(self) -> str:
        """What variances cover, in words; ValueError, with the reason, if nothing is known."""
        return "the noise"

    def answer(self, queries: Sequence[Query]) -> FloatArray:
        """Sum of the expected counts under the weights, one for each query."""

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """`covariance` of many blocks of equally many queries, (n_blocks, k, k)."""

    def variance(self, queries: Sequence[Query]) -> FloatArray:
        """Variance of each of many answers: of the noise, and of what was not measured."""
        found: FloatArray = self.covariances([[query] for query in queries])[:, 0, 0]
        return found

    @property
    def total_variance(self) -> float:
        """Variance of the number of all records."""
        return float(self.variance([Query(({},))])[0])

    def covariance(self, queries: Sequence[Query]) -> FloatArray:
        """Covariance of the errors of a few answers, positive semidefinite."""
        found: FloatArray = self.covariances([queries])[0]
        return found

    def leaning(self, axis: int, widths: FloatArray) -> FloatArray:
        """Standard deviation of numbers that all lie to one side of codes of these widths.

        In half widths. By itself one half makes 95% intervals that have numbers anywhere in codes.
        """
        return np.full(len(widths), 0.5)

    def ends(self, query: Query) -> tuple[Query, Query, float]:
        """The query without and with all that may lie at single numbers: the records of their bins.

        And a variance that the counts of both have at least.
        """
        return query, query.mapped(with_bins), 0.0

    def reach(self, queries: Sequence[Query], level: float) -> Reach:
        """How far answers may be off: normal, with their own variance."""
        std = np.sqrt(self.variance(queries))
        normal = float(ndtri(0.5 + level / 2))
        below = normal * std
        text = (
            f"The interval is made to contain the true answer with a probability of "
            f"{100 * level:g}%. It covers {self.covers}."
        )
        weights = np.concatenate([np.zeros(0), *weights_in(queries)])
        if not is_cut(weights):
            return Reach(std, below, below, text)
        above = below.copy()
        # A single number has next to no share of its bin: all or nothing of this may be there.
        points = [place for place, query in enumerate(queries) if query.at_points]
        if points:
            alone = [queries[place] for place in points]
            least, most, variance = zip(*map(self.ends, alone), strict=True)
            for side, end, sign in ((below, least, -1.0), (above, most, 1.0)):
                side[points] = normal * np.sqrt(np.maximum(self.variance(end), variance))
                side[points] += sign * (self.answer(end) - self.answer(alone))
        text += " Bins covered in part are taken as covered in proportion."
        return Reach(std, below, above, text)


class KnownLaw(Answers, Protocol):
    """What a kind of release inherits whose answers to whole bins have a known law, `_reach`."""

    def _reach(self, queries: Sequence[Query], level: float) -> Reach:
        """How far answers may be off, where a bin that is covered in part counts in proportion."""

    def reach(self, queries: Sequence[Query], level: float) -> Reach:
        """How far answers may be off, covering all that bins covered in part may hold.

        The true count is at least that without such bins, and at most that with all of them. So the
        interval goes from the lower end of the one to the upper end of the other.
        """
        cut = [query.cuts and are_shares(query) for query in queries]
        if not any(cut):
            return self._reach(queries, level)
        asked = [query.mapped(plain) for query in queries]
        least, most = (
            [query.mapped(to) if each else query for query, each in zip(asked, cut, strict=True)]
            for to in (np.floor, np.ceil)
        )
        low, high, value = self._reach(least, level), self._reach(most, level), self.answer(queries)
        return Reach(
            np.sqrt(self.variance(queries)),
            value - self.answer(least) + low.below,
            self.answer(most) - value + high.above,
            f"{high.guarantee} Bins covered in part may hold their records anywhere.",
        )


class Release(Answers, Protocol):
    """What was released over a domain: answers with their errors, rows, and what a file keeps."""

    kind: ClassVar[str]  # in files
    shape: tuple[int, ...]
    total: float  # estimated number of records

    @property
    def about(self) -> str:
        """What was released, in words."""

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Answers for every combination of the codes of one or two attributes."""

    def sample_codes(
        self, number: int, generator: np.random.Generator, weights: Weights, rounded: bool = False
    ) -> CodeArray:
        """Draw records, (number, n_attributes) int32 codes.

        With weights in [0, 1] a record is drawn in proportion to its probability times its weight;
        each vector has a positive weight. Where all of these are zero, the draw follows what the
        release has nearest, and warns; no code of weight zero is drawn. Rounded records are not
        independent: their counts are the expected ones, rounded. They are in random order.
        """

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""

    @classmethod
    def from_arrays(cls, shape: tuple[int, ...], facts: Facts, arrays: Arrays) -> Release:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""

    def __getstate__(self) -> Any:
        return self.shape, *self.to_arrays()

    def __setstate__(self, state: Any) -> None:
        vars(self).update(vars(self.from_arrays(*state)))


# --- what is found once, and sums of products

_Found = TypeVar("_Found")


def kept(find: Callable[..., _Found]) -> Callable[..., _Found]:
    """A method that finds once what it is asked for, and keeps it in ``_kept`` of its object."""

    @functools.wraps(find)
    def found(self: Any, *of: Any) -> _Found:
        known, key = vars(self).setdefault("_kept", {}), (find.__name__, *of)
        if key not in known:
            known[key] = find(self, *of)
        result: _Found = known[key]
        return result

    return found


def added(
    queries: Sequence[Query], of_products: Callable[[Sequence[Weights]], FloatArray]
) -> FloatArray:
    """What is known of products of weights, added up over those of each query (first axis)."""
    products = [each for query in queries for each in query.products]
    found = of_products(products)
    lengths = np.array([len(query.products) for query in queries], dtype=np.int64)
    return np.add.reduceat(found, np.cumsum(lengths) - lengths)


def product_of_weights(
    rows: CodeArray, start: FloatArray, weights: Mapping[int, FloatArray]
) -> FloatArray:
    """Weight of each row of codes under a condition."""
    product = start
    for axis, vector in weights.items():
        product = product * vector[rows[:, axis]]
    return product


def under(values: FloatArray, vectors: Sequence[FloatArray]) -> FloatArray:
    """Sums of an array times the outer products of vectors, (n_a, n) of each axis."""
    others = values.shape[1:]
    found = vectors[0].T @ values.reshape(len(values), math.prod(others))
    found = found.reshape(len(found), *others)
    for vector in vectors[1:]:
        found = np.einsum("nk...,kn->n...", found, vector)
    return found


def by_attributes(products: Sequence[Collection[int]]) -> dict[tuple[int, ...], list[int]]:
    """Positions of the products that constrain the same attributes, by these attributes."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for position, weights in enumerate(products):
        groups.setdefault(tuple(sorted(weights)), []).append(position)
    return groups


# --- covariances

# A pivot of less than this share of its variance is what rounding left of zero.
_NO_PIVOT = 1e-12


def roots(covariance: FloatArray) -> FloatArray:
    """Lower triangular roots of covariances, (..., k, k).

    Of a matrix that is not quite positive semidefinite, the root of one that is: no variance of
    what is left is allowed below zero, so that all variances stay as they are.
    """
    left, found = covariance.copy(), np.zeros_like(covariance)
    least = _NO_PIVOT * np.diagonal(covariance, axis1=-2, axis2=-1)
    for place in range(covariance.shape[-1]):
        pivot = left[..., place, place]
        known = pivot > least[..., place]
        scale = np.where(known, np.sqrt(np.where(known, pivot, 1.0)), np.inf)
        most = np.sqrt(np.maximum(np.diagonal(left, axis1=-2, axis2=-1), 0.0))
        column = np.clip(left[..., place] / scale[..., None], -most, most)
        column[..., :place] = 0.0
        found[..., place] = column
        left -= column[..., :, None] * column[..., None, :]
    return found


def covariances_from(
    variance: Callable[[Sequence[Query]], FloatArray], blocks: Sequence[Sequence[Query]]
) -> FloatArray:
    """Covariances of answers from the variances of answers and of sums of two of them."""
    n, k = len(blocks), len(blocks[0])
    first, second = np.tril_indices(k, -1)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    alone = [query for block in blocks for query in block]
    sums = [block[i].plus(block[j]) for block in blocks for i, j in pairs]
    found = variance([*alone, *sums])
    own, both = found[: n * k].reshape(n, k), found[n * k :].reshape(n, len(pairs))
    covariances = own[:, :, None] * np.eye(k)
    covariances[:, first, second] = (both - own[:, first] - own[:, second]) / 2.0
    covariances[:, second, first] = covariances[:, first, second]
    return semidefinite(covariances)


def semidefinite(covariances: FloatArray) -> FloatArray:
    """The same where they are positive semidefinite, else the nearest by `roots`."""
    root = roots(covariances)
    return root @ root.swapaxes(-1, -2)


def are_shares(query: Query) -> bool:
    """Whether all weights lie in [0, 1], as those of counts do."""
    return all(bool(((each >= 0) & (each <= 1)).all()) for each in weights_in([query]))
