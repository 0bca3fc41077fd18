"""The prior: what is believed of coefficients that were measured with noise, or not at all.

A set of columns has a variance u that its coefficients share, and all sets of an order one law,
which is found from everything that was measured (`docs/theory/marginals`). Post-processing of
released numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .._validation import TINY, FloatArray, IntArray
from ..domain import Domain
from ..domain.bins import multiples_in
from ..domain.query import Query, at_roundest, with_bins
from .basis import Axes, ColumnEstimate, Ladder, Look, along
from .model import kept

# Values of u that a set may have, and scales of the law of their roots.
_VARIANCES = np.append(0.0, np.geomspace(1e-6, 300.0, 32))
SCALES = np.geomspace(0.002, 5.0, 40)
# The u of a set of three columns that was not measured, as a part of the least of its pairs.
_THIRD = 0.1
# Groups by which the distance of a set from what is expected is counted.
_BINS = 8
# A condition cuts two codes. What rounding may leave of zero: of weights, and of their variance.
_MOST_CUT, ROUNDING = 2, 1e-9
# Times as densely as beside it records may lie without a sign of a single number, and at most.
_DENSER = 2.0, 5.0
# Sets from which a law is found, and numbers that are computed together.
_MOST_SETS, _AT_ONCE = 200, 1 << 20


def _exponential_laws() -> FloatArray:
    """Shares of `_VARIANCES` if their roots have an exponential law, one row for each scale."""
    between = np.sqrt(_VARIANCES[1:-1] * _VARIANCES[2:])
    edges = np.sqrt(np.concatenate([[0.0, _VARIANCES[1] / 10], between, [np.inf]]))
    laws: FloatArray = np.diff(-np.exp(-edges / SCALES[:, None]), axis=1)
    return laws


def cut_shares(weights: FloatArray) -> FloatArray:
    """Products w (1 - w) at the codes that ranges cover in part, of weights (n_codes, n); else 0.

    A range cuts two codes. Weights of more codes are no shares of them, but values.
    """
    inside = np.where(
        (weights > ROUNDING) & (weights < 1.0 - ROUNDING), weights * (1.0 - weights), 0.0
    )
    ranges = (inside > 0).sum(axis=0) <= _MOST_CUT
    ranges &= (weights.min(axis=0) >= 0) & (weights.max(axis=0) <= 1)
    return inside * ranges


def _walked(shares: FloatArray) -> FloatArray:
    """How much a walk varies over each code, of shares of records: 1/8 of 1 / below**2, in sum.

    Of the first code a quarter is left out, which makes the variance of its weight exact.
    """
    below = np.cumsum(shares)
    before = np.maximum(np.append(0.0, below[:-1]), below / 4.0)
    walked: FloatArray = (1.0 / before - 1.0 / below) / 8.0
    return walked


class ColumnBasis:
    """Weights of the codes of a column: their means in groups, and features of them.

    Inner products of features are covariances of sums under weights. Ordered codes deviate from
    what is expected as a random walk does, the faster the nearer to an end: of records that are
    extreme in one column many may be extreme in another. Categories deviate by themselves.

    Parameters
    ----------
    mass : ndarray of float64, shape (n_codes,)
        Counts of the codes; negative ones count as 0.
    ladder : Ladder
    """

    def __init__(self, mass: FloatArray, ladder: Ladder) -> None:
        mass = np.maximum(mass, 0.0) + 1e-9 / len(mass)
        self.mass: FloatArray = mass / mass.sum()
        self.ladder = ladder
        self._ordered = self.mass[: ladder.n_ordered]
        shares = self._ordered / max(self._ordered.sum(), 1e-300)
        self.steps = np.sqrt(_walked(shares) + _walked(shares[::-1])[::-1])[:, None]

    def features(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Features of the field of a column, and of what independent records do by chance.

        Of weights (n_codes, n).
        """
        mean = self.mass @ weights
        apart = np.sqrt(self.mass)[:, None] * (weights - mean)
        return (self._walk(weights, mean) if len(self._ordered) else apart), apart

    def ends(self, cut: FloatArray) -> tuple[FloatArray, FloatArray]:
        """More features, of codes that ranges cover in part; of the `cut_shares` of weights."""
        apart, n = np.sqrt(self.mass[:, None] * cut), len(self._ordered)
        return (2.0 * self.steps * self._ordered[:, None] * cut[:n] if n else apart), apart

    def _walk(self, weights: FloatArray, mean: FloatArray) -> FloatArray:
        """Features of a random walk over ordered codes."""
        n = len(self._ordered)
        share = self._ordered.sum()
        middle = self._ordered @ weights[:n] / share
        inside = self._ordered[:, None] * (weights[:n] - middle)
        walk = np.cumsum(inside, axis=0)
        walk -= inside / 2.0
        walk *= math.sqrt(12.0) * self.steps
        inside *= self.steps
        found = [walk, inside]
        if n < len(self.mass):
            # All ordered codes together are one category among the others.
            found += [
                np.sqrt(self.mass[n:])[:, None] * (weights[n:] - mean),
                math.sqrt(share) * (middle - mean)[None],
            ]
        return np.concatenate(found)

    @kept
    def groups(self, size: int) -> IntArray:
        """Group of each code, of so many."""
        return self.ladder.groups(size)

    @kept
    def _averages(self, size: int) -> tuple[csr_array, IntArray]:
        """What makes means of groups of weights, (size, n_codes); number of codes of each group.

        Nothing is in groups without codes: they have the weight of the groups around them.
        """
        group = self.groups(size)
        whole = self.ladder.sums(self.mass, size)
        at = group, np.arange(len(group))
        averages = csr_array((self.mass / whole[group], at), shape=(size, len(group)))
        filled = np.diag((whole > 0).astype(np.float64))
        for level in reversed([each for each in self.ladder.sizes if each < size]):
            wide = size // level
            empty = np.flatnonzero(filled.sum(axis=1) == 0)
            around = np.repeat(whole.reshape(level, wide).sum(axis=1), wide)
            for place in empty[around[empty] > 0].tolist():
                near = slice(place // wide * wide, (place // wide + 1) * wide)
                filled[place, near] = whole[near] / whole[near].sum()
        return csr_array(filled) @ averages, np.bincount(group, minlength=size)

    def is_whole(self, size: int) -> bool:
        """Whether each code has a group to itself."""
        return bool(self._averages(size)[1].max() <= 1)

    def means(self, weights: FloatArray, size: int) -> FloatArray:
        """Means of the weights of codes in groups, (size, n)."""
        found: FloatArray = self._averages(size)[0] @ weights
        return found

    def within(self, weights: FloatArray, means: FloatArray) -> FloatArray:
        """Variances of the weights of codes in groups of these means; 0 where there is no code."""
        averages, n_codes = self._averages(len(means))
        found: FloatArray = (n_codes > 0)[:, None] * (averages @ weights**2 - means**2)
        return found

    def coefficients(self, means: FloatArray) -> FloatArray:
        """Coefficients of the mean weights of groups in the functions of `turn`, (size - 1, n)."""
        size = means.shape[0]
        found: FloatArray = self._turned(size).T @ means * math.sqrt(self.ladder.sizes[-1] / size)
        return found

    @kept
    def _turned(self, size: int) -> FloatArray:
        """The functions of `turn`, (size, size - 1)."""
        found: FloatArray = self.ladder.functions(size)[:, 1:] @ self.turn(size)[0]
        return found

    def of_codes(self, size: int) -> FloatArray:
        """`coefficients` of a weight of 1 for each code, (size - 1, n_codes)."""
        return self.coefficients(self._averages(size)[0])

    @functools.cached_property
    def even(self) -> FloatArray:
        """Shares of the codes if all units count alike: a mean over them is that of weights."""
        size = self.ladder.n_units
        shares: FloatArray = self._averages(size)[0].sum(axis=0) / size
        return shares

    @kept
    def turn(self, size: int) -> tuple[FloatArray, FloatArray]:
        """Functions of groups but the constant one that vary by themselves.

        Returns
        -------
        turn : ndarray of float64, shape (size - 1, size - 1)
            One a column: by how much the functions of the ladder count.
        variances : ndarray of float64, shape (2, size - 1)
            Prior variances of their coefficients, by the field and by chance.
        """
        ladder, n = self.ladder, self.ladder.n_ordered
        n_ordered = int(ladder.groups(size)[n - 1]) + 1 if n else 0
        alone = Ladder(np.arange(size), (size,), n_ordered)
        groups = ColumnBasis(ladder.sums(self.mass, size), alone)
        scale = math.sqrt(size / ladder.n_units)
        field, chance = groups.features(ladder.functions(size)[:, 1:] * scale)
        spread, turn = np.linalg.eigh(field.T @ field)
        apart = ((chance @ turn) ** 2).sum(axis=0)
        return turn, np.stack([np.maximum(spread, 0.0), apart])

    @functools.cached_property
    def reach(self) -> float:
        """How far groups deviate together: the part of a column in the distance of a set.

        Groups of about equally many records, not those of tables: these may lie where noise is.
        """
        middle = np.cumsum(self.mass) - self.mass / 2.0
        few = len(self.mass) <= _BINS
        group = np.arange(len(middle)) if few else (_BINS * middle).astype(np.int64)
        ones = np.eye(_BINS)[np.minimum(group, _BINS - 1)]
        return float(np.sqrt((self.features(ones)[0] ** 2).sum(axis=0)).sum())


@kept
def at_numbers(column: ColumnEstimate, numbers: bytes, quantile: float) -> FloatArray:
    """How much of each code lies at its roundest number: likely, and at least.

    Of numbers of few decimals codes without any are empty, or hold what is spread evenly, by which
    codes with one number exceed it. How much codes without differ counts as doubt, and so does how
    densely records lie in those beside it: near 0 or an end densities rise.

    Parameters
    ----------
    column : ColumnEstimate
    numbers : bytes
        Edges of the codes that are bins, as float64; they come first.
    quantile : float
        How many standard deviations what is certain is below what is likely.

    Returns
    -------
    ndarray of float64, shape (2, n_codes)
        0 of codes without a roundest number, and where nothing is known.
    """
    edges = np.frombuffer(numbers)
    n, found = len(edges) - 1, np.zeros((2, column.n_codes))
    counts, widths, middles = column.counts[:n], np.diff(edges), (edges[1:] + edges[:-1]) / 2.0
    below = np.append(0.0, np.cumsum(counts))
    step = 10.0 ** math.ceil(math.log10(np.abs(edges).max()))
    while not (held := multiples_in(edges, step)).all():
        ends = np.clip(np.add.outer([-2.0 * step, 2.0 * step], middles), edges[0], edges[-1])
        first, last = np.interp(ends, edges, below)
        even = np.maximum(last - first, 0.0) / (ends[1] - ends[0]) * widths
        without, expected = held == 0, even[held == 0]
        if expected.sum() > 0:
            weights = np.zeros(column.n_codes)
            weights[:n] = without / expected.sum()
            share = min(max(float(counts @ weights[:n]), 0.0), 1.0)
            doubt = ((counts[without] - share * expected) ** 2).sum() / (expected**2).sum()
            most = share + quantile * math.sqrt(float(column.variance(weights)) + doubt)
            places = np.flatnonzero(without)
            after = np.searchsorted(places, np.arange(n))
            sides = places[np.clip([after - 1, after], 0, len(places) - 1)]
            beside = (counts / widths)[sides].max(axis=0) * widths
            spread = np.maximum(
                np.multiply.outer([share, most], even), np.multiply.outer(_DENSER, beside)
            )
            alone = np.where(held == 1, 1.0 - spread / np.maximum(counts, TINY), 0.0)
            found[:, :n] = np.maximum(found[:, :n], alone)
        step /= 10.0
    return found


def standing_out(counts: FloatArray) -> FloatArray:
    """What counts exceed those of their neighbours by, or these them: none to all of each."""
    counts = np.maximum(counts, 0.0)
    steps = np.abs(np.diff(counts)) / np.maximum(counts[1:] + counts[:-1], 1e-300)
    return np.asarray(counts * np.maximum(np.append(steps, 0.0), np.append(0.0, steps)))


def to_one_side(column: ColumnEstimate, widths: FloatArray) -> FloatArray:
    """Standard deviation of numbers that all lie to one side of codes, in half widths.

    Numbers of few decimals lie at one end of each code, and exceed others where codes are narrower
    than their distances. Those that do are off by half of the width, those that noise may hide by
    half of that, and the others by no more than in narrower codes.

    Parameters
    ----------
    column : ColumnEstimate
    widths : ndarray of float64, shape (n_codes,)
        Distance of the smallest and largest number of a code; codes of about one width, and no
        others, tell of each other.
    """
    # Beyond what stands out: as a part of the width, and in narrower codes that were seen.
    found, part, narrower = np.full(len(widths), 0.5), 0.5, 0.0
    apart, counts = standing_out(column.counts), np.maximum(column.counts, TINY)
    noise = np.zeros(len(widths))
    noise[column.codes] = np.resize(np.repeat(column.scales[-1] / 2.0, 2), len(column.codes))
    levels = np.floor(np.log2(np.maximum(widths, TINY)))
    for level in np.unique(levels[widths > 0]).tolist():
        own = levels == level
        shares = counts[own] / float(counts[own] @ counts[own])
        seen, most = shares @ apart[own], min(shares @ np.sqrt(apart**2 + noise)[own], 1.0)
        beyond = np.minimum(part + narrower / widths[own], 0.5)
        found[own] = (seen + most) / 2.0 + (1.0 - most) * beyond
        part *= most
        narrower = most * narrower + (1.0 - most) * float((found * widths)[own].max())
    return found


class Roundest:
    """What lies at the roundest numbers of bins.

    Parameters
    ----------
    release : Release
        Nothing is known where it has no ``columns``.
    domain : Domain
    quantile : float, default=2.0
        As in `at_numbers`.
    """

    def __init__(self, release: Any, domain: Domain, quantile: float = 2.0) -> None:
        self._columns: Mapping[int, ColumnEstimate] = getattr(release, "columns", {})
        self._domain, self._quantile = domain, quantile
        # Arrays of weights that were asked for, and what they mean: a value and its interval have
        # the same ones.
        self._seen: dict[int, tuple[FloatArray, list[Any]]] = {}

    def _shares(self, axis: int) -> FloatArray:
        if axis not in self._columns:
            return np.zeros((2, 1))
        attribute: Any = self._domain[self._domain.names[axis]]
        edges = np.asarray(attribute.edges, dtype=np.float64).tobytes()
        return at_numbers(self._columns[axis], edges, self._quantile)

    def _known(self, axis: int, weights: FloatArray) -> list[Any]:
        if id(weights) in self._seen:
            return self._seen[id(weights)][1]
        likely, least = self._shares(axis)
        shares = (likely, 1 - likely), (least, 0.0), (1.0, 1 - least), (1.0, 0.0)
        expected, *found = (at_roundest(weights, *share) for share in shares)
        certain = least > 0
        low, high, rounded = (np.where(certain, of, weights) for of in found)
        variance = 0.0
        for code in np.flatnonzero(certain & (rounded != weights)).tolist():
            # What is believed to lie beside a number may lie at it.
            block, noise = self._columns[axis].around(code)
            variance += noise
            if rounded[code]:
                high = np.where(block, 1.0, high)
            else:
                low = np.where(block, 0.0, low)
        self._seen[id(weights)] = weights, [expected, low, high, rounded, variance]
        return self._seen[id(weights)][1]

    def settled(self, asked: Sequence[Query]) -> tuple[list[list[Query]], FloatArray] | None:
        """Queries with what lies at the roundest numbers of bins in place of next to nothing.

        Returns
        -------
        list of four lists of Query
            With what is expected there, at least and at most; and with all or nothing of the bin.
            Where nothing is certain all but the first are as asked.
        ndarray of float64
            Variances of the counts of these bins as they were measured: spikes follow no law. Both
            are None if no query asks for roundest numbers.
        """
        products = [part for query in asked for part in query.products]
        arrays = {id(each): (axis, each) for part in products for axis, each in part.items()}
        known = {
            name: self._known(axis, each)
            for name, (axis, each) in arrays.items()
            if at_roundest(each, 0, 0) is not each
        }
        if not known:
            return None
        *others, noise = ({name: each[k] for name, each in known.items()} for k in range(5))

        def having(found: Mapping[int, FloatArray]) -> list[Query]:
            return [query.replaced(lambda w, _: found.get(id(w), w)) for query in asked]

        variances = [
            sum(noise.get(id(each), 0.0) for part in query.products for each in part.values())
            for query in asked
        ]
        return [*map(having, others)], np.array(variances)

    def rounded(self, weights: FloatArray, axis: int) -> FloatArray:
        """Weights with all or nothing of a bin for its roundest number, whichever is likelier.

        Of single numbers without others with their bins.
        """
        most = at_roundest(weights, 1.0, 0.0)
        if most is not weights:
            found = np.where(self._shares(axis)[0] >= 0.5, most, weights)
            weights = found if found.any() else weights
        return with_bins(weights)


class Belief(NamedTuple):
    """Of the coefficients of a set how far they are believed, and their variances; and its u.

    What is not believed is taken to be noise, whose variance is ``removed``.
    """

    gain: FloatArray
    variance: FloatArray
    removed: FloatArray
    u: float


class Prior:
    """One law of how tables of several columns deviate from what is expected of them.

    Parameters
    ----------
    total : float
    columns : mapping of int to ColumnBasis
    tables : mapping of tuple of int to Look
    expected : callable
        Coefficients that are expected of a set.
    distances : mapping of int to float
        What is believed of the mean distance from the rows of pairs that were not measured, as a
        share of the records, for each number of ordered columns; empty if none was released.
    """

    def __init__(
        self,
        total: float,
        columns: Mapping[int, ColumnBasis],
        tables: Mapping[Axes, Look],
        expected: Callable[[Axes], FloatArray],
        distances: Mapping[int, float],
    ) -> None:
        self.total, self._columns, self._tables = max(total, 1.0), columns, tables
        self._expected, self._distances = expected, distances

    def reach(self, axes: Axes) -> float:
        """How much larger the variance u of a set is than that of its field, before features."""
        return math.prod(self._columns[axis].reach for axis in axes) ** 2

    def _parts(self, axes: Axes) -> tuple[FloatArray, ...]:
        """Of a set the prior variances for u = 1 and by chance, noise, and what was seen."""
        look = self._tables[axes]
        turns = [
            self._columns[axis].turn(length + 1)
            for axis, length in zip(axes, look.values.shape, strict=True)
        ]
        field, chance = (
            functools.reduce(np.multiply.outer, each)
            for each in zip(*(variances for _, variances in turns), strict=True)
        )
        away = look.less(self._expected(axes))
        noise = np.where(look.precision > 0, look.variances, self.total**2)
        for place, (turn, _) in enumerate(turns):
            away, noise = along(turn.T, away, place), along(turn.T**2, noise, place)
        return self.total**2 / self.reach(axes) * field, self.total * chance, noise, away

    @kept
    def _likelihoods(self, axes: Axes) -> FloatArray:
        """Of each value of u, up to a factor."""
        field, chance, noise, away = (each.ravel() for each in self._parts(axes))
        whole = np.multiply.outer(_VARIANCES, field) + (chance + noise)
        logs = -0.5 * (np.log(whole) + away**2 / whole).sum(axis=1)
        found: FloatArray = np.exp(logs - logs.max())
        return found

    @kept
    def _law(self, order: int) -> FloatArray:
        """Shares of the values of u among sets of so many columns."""
        sets = [axes for axes in self._tables if len(axes) == order]
        some = sets[:: -(-len(sets) // _MOST_SETS)]
        laws = _exponential_laws()
        logs = sum(np.log(np.maximum(laws @ self._likelihoods(axes), 1e-300)) for axes in some)
        scales = np.exp(logs - np.max(logs))
        found: FloatArray = scales / scales.sum() @ laws
        return found

    @kept
    def belief(self, axes: Axes) -> Belief:
        """What is believed of a measured set."""
        shares = self._likelihoods(axes) * self._law(len(axes))
        shares /= shares.sum()
        field, chance, noise, away = self._parts(axes)
        gain, square = np.zeros(field.shape), np.zeros(field.shape)
        for place in np.flatnonzero(shares > 1e-4 * shares.max()).tolist():
            prior = _VARIANCES[place] * field + chance
            trust = prior / (prior + noise)
            gain += shares[place] * trust
            square += shares[place] * trust**2
        variance = gain * noise + np.maximum(square - gain**2, 0.0) * away**2
        return Belief(gain, variance, (1.0 - gain) * noise, float(shares @ _VARIANCES))

    @kept
    def unmeasured(self, kind: int) -> float:
        """The variance u of pairs without a table, so many of whose columns are ordered.

        Without a distance the mean of pairs with a table; 1 without any.
        """
        if kind in self._distances:
            return math.pi * self._distances[kind] ** 2
        pairs = any(len(axes) == 2 for axes in self._tables)
        return float(self._law(2) @ _VARIANCES) if pairs else 1.0

    @functools.cached_property
    def _alone(self) -> set[Axes]:
        """Pairs of numbers without a table, of which a distance was released."""
        numbers = sorted(axis for axis, each in self._columns.items() if each.ladder.n_ordered)
        pairs: set[Axes] = {*combinations(numbers, 2)} if 2 in self._distances else set()
        return pairs - {*self._tables}

    def any_pair(self, axes: Axes) -> float:
        """How far a pair deviates, as a part of what is believed of those that people count in.

        Counts are asked of numbers that go together: as if drawn by their distance among n pairs,
        which has 3 n / (n + 2) times the mean square. Means and correlations are asked of any.
        """
        return math.sqrt((1 + 2 / len(self._alone)) / 3) if axes in self._alone else 1.0

    def distance(self, axes: Axes) -> float:
        """The variance u of a set."""
        if axes in self._tables:
            return self.belief(axes).u
        if len(axes) > 2:
            return _THIRD * min(map(self.distance, combinations(axes, 2)))
        # Pairs of numbers depend more than pairs of categories.
        return self.unmeasured(sum(self._columns[axis].ladder.n_ordered > 0 for axis in axes))
