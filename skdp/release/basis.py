"""What was measured: coefficients of noisy tables in one orthonormal basis, and counts of columns.

Tables of several columns are measured over groups of codes. The groups of a column are nested, and
each level has groups of equally many *units*, its finest groups. In the tensor product of
orthonormal bases that follow these levels, every measured table is a set of coefficients with one
known variance, for each subset of its columns. Looks at the same coefficient are averaged by their
precision; that is the best linear unbiased estimate from everything measured, and its errors are
uncorrelated (`docs/theory/marginals`).

A column by itself is measured at the levels of its own tree of codes: nested blocks of equally many
codes. Noise of equal variance in each level makes the covariance a sum of projections onto the
levels. Margins of tables of several columns, over groups of codes of any size, are further looks,
and add a term of low rank. Post-processing of released numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from sklearn.isotonic import isotonic_regression

from .._validation import TINY, FloatArray, IntArray, ratio

Axes = tuple[int, ...]


class Ladder(NamedTuple):
    """Nested groups of the codes of a column.

    Attributes
    ----------
    units : ndarray of int64, shape (n_codes,)
        Unit of each code; consecutive units belong together. Some units may hold no code.
    sizes : tuple of int
        Number of groups of each level, from 1 to the number of units. Each divides the next.
    n_ordered : int, default=0
        How many codes, from the first, stand in an order: neighbours are alike. None of a category.
    """

    units: IntArray
    sizes: tuple[int, ...]
    n_ordered: int = 0

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.sizes[-1]

    def groups(self, size: int) -> IntArray:
        """Group of each code at the level that has so many groups."""
        return self.units // (self.n_units // size)

    def sums(self, values: FloatArray, size: int) -> FloatArray:
        """Sums of values of codes over the groups of a level."""
        found = np.bincount(self.groups(size), weights=values, minlength=size)
        return found.astype(np.float64, copy=False)

    def functions(self, size: int) -> FloatArray:
        """Orthonormal functions of the groups of a level."""
        return basis_of(self.sizes[: self.sizes.index(size) + 1])


@functools.cache
def basis_of(sizes: tuple[int, ...]) -> FloatArray:
    """Orthonormal functions of units, one a column: those of coarser levels first.

    The first ``sizes[level]`` functions are constant on the groups of that level.
    """
    n_units = sizes[-1]
    found = [np.full((n_units, 1), n_units**-0.5)]
    for coarse, fine in zip(sizes[:-1], sizes[1:], strict=True):
        # Contrasts of the parts of one group.
        block = np.kron(np.eye(coarse), helmert(fine // coarse).T)
        found.append(np.repeat(block, n_units // fine, axis=0) / math.sqrt(n_units // fine))
    matrix = np.concatenate(found, axis=1)
    matrix.flags.writeable = False
    return matrix


class Look(NamedTuple):
    """Averaged coefficients of one subset of columns, without those of its subsets.

    Attributes
    ----------
    values, precision : ndarray of float64
        One axis a column, over all functions but the constant one. Precision 0: not measured.
    """

    values: FloatArray
    precision: FloatArray

    @property
    def variances(self) -> FloatArray:
        """Variance of each coefficient; 0 where it was not measured."""
        return ratio(np.ones_like(self.precision), self.precision)

    def less(self, expected: FloatArray) -> FloatArray:
        """The values less those that are expected; 0 where they were not measured."""
        return np.where(self.precision > 0, self.values - expected, 0.0)


class Coefficients:
    """What noisy tables tell of each subset of columns.

    Parameters
    ----------
    ladders : mapping of int to Ladder
        Of every column that tables hold.
    """

    def __init__(self, ladders: Mapping[int, Ladder]) -> None:
        self.ladders = dict(ladders)
        self.looks: dict[Axes, Look] = {}

    def add(self, axes: Axes, counts: NDArray[Any], variance: float) -> None:
        """Add a noisy table, one axis a column over the groups of some level.

        Parameters
        ----------
        axes : tuple of int
            Ascending.
        counts : ndarray
        variance : float
            Of the noise of a cell.
        """
        hat = self._forward(axes, np.asarray(counts, dtype=np.float64))
        for part, at, scale in self._parts(axes, counts.shape):
            self.average(part, hat[at] * math.sqrt(scale), variance * scale)

    def _parts(
        self, axes: Axes, sizes: Sequence[int]
    ) -> Iterator[tuple[Axes, tuple[Any, ...], float]]:
        """Each subset of the columns, where a table has its coefficients, and their variance.

        For a variance of 1 of each cell.
        """
        places = range(len(axes))
        for inner in chain.from_iterable(combinations(places, n) for n in range(len(axes) + 1)):
            at = [slice(1, None) if place in inner else 0 for place in places]
            factors = [
                1.0 / self.ladders[axis].n_units if place in inner else 1.0
                for place, axis in enumerate(axes)
            ]
            part = tuple(axes[place] for place in inner)
            yield part, (*at, ...), math.prod(sizes) * math.prod(factors)

    def average(self, axes: Axes, values: FloatArray, variance: float) -> None:
        """Average equally precise values of the coarser coefficients with those known."""
        known = self.looks.get(axes, Look(*np.zeros((2,) + (0,) * len(axes))))
        values = np.asarray(values)
        wide = tuple(map(max, values.shape, known.values.shape))
        found = self.looks[axes] = Look(np.zeros(wide), np.zeros(wide))
        place = tuple(slice(0, size) for size in known.values.shape)
        found.values[place], found.precision[place] = known
        place = tuple(slice(0, size) for size in values.shape)
        before = found.precision[place].copy()
        after = before + 1.0 / variance
        mean = (found.values[place] * before + values / variance) / after
        found.values[place] = np.where(before > 0, mean, values)
        found.precision[place] = after

    def _forward(self, axes: Axes, table: FloatArray) -> FloatArray:
        """Coefficients of a table of groups, in the basis of these groups."""
        for place, axis in enumerate(axes):
            table = along(self.ladders[axis].functions(table.shape[place]).T, table, place)
        return table

    def of_table(self, axes: Axes, counts: FloatArray) -> FloatArray:
        """Coefficients of a table over the groups of some level of each column."""
        inside = math.prod(
            size / self.ladders[axis].n_units for axis, size in zip(axes, counts.shape, strict=True)
        )
        hat = self._forward(axes, counts) * math.sqrt(inside)
        return hat[tuple(slice(1, None) for _ in axes)]

    def table(
        self, axes: Axes, sizes: Sequence[int], columns: Mapping[int, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Counts of groups from everything measured, and their variances from the looks.

        Parameters
        ----------
        axes : tuple of int
            Ascending.
        sizes : sequence of int
            Groups of each column.
        columns : mapping of int to ndarray
            Counts of the groups of each column alone, which replace the looks at it.

        Returns
        -------
        counts, variances : ndarray of float64
            Coefficients that were not measured are zero in both.
        """
        hat, spread = np.zeros(tuple(sizes)), np.zeros(tuple(sizes))
        for part, at, scale in self._parts(axes, sizes):
            look = self.looks.get(part)
            if look is not None and len(part) != 1:
                both = zip(look.values.shape, hat[at].shape, strict=True)
                cut = tuple(slice(0, min(two)) for two in both)
                hat[at][cut] = look.values[cut] / math.sqrt(scale)
                spread[at][cut] = look.variances[cut] / scale
        for place, axis in enumerate(axes):
            functions = self.ladders[axis].functions(sizes[place])
            hat = along(functions, hat, place)
            spread = along(functions**2, spread, place)
        for place, axis in enumerate(axes):
            pure = (columns[axis] - columns[axis].mean()) * sizes[place] / math.prod(sizes)
            shape = [1] * len(axes)
            shape[place] = -1
            hat = hat + pure.reshape(shape)
        return hat, spread


def along(matrix: FloatArray, table: FloatArray, place: int) -> FloatArray:
    """Multiply along one axis of a table."""
    return np.moveaxis(np.tensordot(matrix, table, axes=(1, place)), 0, place)


# --- the counts of one column from everything measured, and their exact covariance

# Columns of more codes than this are estimated from their own tree alone.
_MOST_JOINED = 1 << 16
# Variances of effects that are told apart: how many, and the least as a part of that of the noise.
_EFFECTS, _LEAST_EFFECT = 60, 1e-3
# Steps until their law hardly changes, and most groups that it is found from.
_STEPS, _MOST_GROUPS = 50, 4000
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class EffectLaw(NamedTuple):
    """The law of the variances of groups of effects that were seen with noise, all groups together.

    Attributes
    ----------
    variances, shares : ndarray of float64, shape (n_variances,)
        Variances that the effects of a group may have, and how many groups have them.
    """

    variances: FloatArray
    shares: FloatArray

    @classmethod
    def fitted(
        cls, energies: FloatArray, numbers: IntArray, noises: FloatArray, most: float = math.inf
    ) -> EffectLaw:
        """The likeliest law, where one more group would be of any order of size.

        Maximum likelihood of a mixture, by expectation and maximization [1]_.

        Parameters
        ----------
        energies : ndarray of float64, shape (n_groups,)
            Sums of squares of noisy effects; at least one group.
        numbers : ndarray of int, shape (n_groups,)
            How many effects.
        noises : ndarray of float64, shape (n_groups,)
            Variance of the noise of an effect.
        most : float, default=inf
            Largest variance that effects can have.

        References
        ----------
        .. [1] N. Laird. Nonparametric maximum likelihood estimation of a mixing distribution.
           Journal of the American Statistical Association 73(364), 1978.
        """
        most = min(float(np.maximum(energies / np.maximum(numbers, 1), noises).max()), most)
        least = _LEAST_EFFECT * min(float(noises.min()), most)
        tried = np.append(0.0, np.geomspace(least, most, _EFFECTS))
        shares = even = np.full(len(tried), 1.0 / len(tried))
        # Places of a low-discrepancy sequence: no pattern of a table has its period.
        places = (np.arange(min(len(energies), _MOST_GROUPS)) * _GOLDEN % 1.0) * len(energies)
        some = np.unique(places.astype(np.int64)) if len(energies) > _MOST_GROUPS else slice(None)
        likely = cls(tried, even)._likelihoods(energies[some], numbers[some], noises[some])
        for _ in range(_STEPS):
            expected = shares * (likely.T @ (1.0 / (likely @ shares)))
            shares = (expected + even) / (len(likely) + 1)
        return cls(tried, shares)

    def told(
        self, energies: FloatArray, numbers: IntArray, noises: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What is expected of groups, of any shape.

        Returns
        -------
        shares, variances, deviations : ndarray of float64
            Of a noisy effect what is true; of the true effects the variance, and the standard
            deviation of that.
        """
        found = self._likelihoods(energies, numbers, noises) * self.shares
        found /= found.sum(axis=-1, keepdims=True)
        mean = found @ self.variances
        spread = np.sqrt(np.maximum(found @ self.variances**2 - mean**2, 0.0))
        true = self.variances / (self.variances + noises[..., None])
        return (found * true).sum(axis=-1), mean, spread

    def _likelihoods(
        self, energies: FloatArray, numbers: IntArray, noises: FloatArray
    ) -> FloatArray:
        """Of each variance, up to a factor."""
        whole = self.variances + noises[..., None]
        logs = -0.5 * (numbers[..., None] * np.log(whole) + energies[..., None] / whole)
        found: FloatArray = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return found


@dataclass(eq=False, repr=False)
class ColumnEstimate:
    """Counts of the codes of a column, with covariance.

    Parameters
    ----------
    n_codes : int
    sizes : sequence of int
        Blocks of each level of the column's tree, from 1 to its lattice of at least ``n_codes``
        codes; each divides the next. Blocks beyond the last code hold nothing.
    variances : mapping of int to float
        Variance of the noise of a block, for the sizes that were measured.
    total_variance : float
        Variance of what else is known of the total; infinite if nothing is.
    n_alone : int, default=0
        Last codes that say nothing of their neighbours: special values, the missing one.
    codes : ndarray of int
        Codes that records can have, in the order of the lattice.
    """

    n_codes: int
    sizes: Sequence[int]
    variances: Mapping[int, float]
    total_variance: float = math.inf
    n_alone: int = 0
    codes: IntArray = field(kw_only=True)

    def __post_init__(self) -> None:
        self.sizes = tuple(self.sizes)
        self.scales = self._scale_variances()
        self.counts = np.zeros(self.n_codes)
        # The covariance is that of the levels less ``lowered @ lowered.T``.
        self._lowered: FloatArray | None = None
        # And with it, the covariance is larger by ``outer(restored, restored)``.
        self.restored = np.zeros(len(self.codes))
        self.looks: tuple[Ladder, FloatArray] | None = None

    @property
    def lattice(self) -> int:
        """Number of codes with those that fill the last blocks."""
        return self.sizes[-1]

    def _scale_variances(self) -> list[FloatArray]:
        """Variance of a coefficient of each scale, orthonormal over the lattice.

        One for each block of the level above; they differ after `fit`.
        """
        return [
            np.full(n_blocks, 1.0 / sum(self._precisions(size).values()))
            for n_blocks, size in zip((1, *self.sizes), self.sizes, strict=False)
        ]

    def _precisions(self, size: int) -> dict[int, float]:
        """Of a coefficient of a level: as the counts of each level that was measured tell it."""
        known = self.variances.items()
        found = {finer: self.lattice / (finer * each) for finer, each in known if finer >= size}
        # What else is known of the total is one more table.
        return found | ({0: self.lattice / self.total_variance} if size == 1 else {})

    def own_total(self, tables: Mapping[int, FloatArray]) -> tuple[float, float]:
        """The total as the column's own counts tell it, and its variance."""
        precision = {size: 1.0 / (size * each) for size, each in self.variances.items()}
        told = sum(precision[size] * float(tables[size].sum()) for size in precision)
        return told / sum(precision.values()), 1.0 / sum(precision.values())

    def fit(self, tables: Mapping[int, FloatArray], total: float) -> None:
        """Estimate from noisy blocks of each level and from what else is known of the total.

        Halves of blocks are believed to differ as far as noise does not explain it: fine codes cost
        little where counts are even.
        """
        counts, unsure = np.zeros(1), np.zeros(1)
        before, tables = np.zeros(1), {**tables, 0: np.array([total])}
        for place, size in enumerate(self.sizes):
            precisions = self._precisions(size)
            precision, told = sum(precisions.values()), np.zeros(size)
            for finer, part in precisions.items():
                told += part * tables[finer].reshape(size, -1).sum(axis=1)
            told /= precision
            detail = told
            if place:
                detail = told - np.repeat(_means(told, len(before)), size // len(before))
            if place > 1 and size == 2 * len(before):
                detail = self._believed(place, detail, counts, unsure)
            ratio, width = size // len(counts), self.lattice // size
            counts = np.repeat(counts, ratio) + detail / width
            # Of the mean of the codes of a block, its square adds up to this over the details.
            part = (1.0 - 1.0 / ratio if place else 1.0) / width
            unsure = np.repeat(unsure + part * self.scales[place], ratio)
            before = told
        n_inside = len(self.codes)
        inside = counts[:n_inside]
        if self.lattice > n_inside:
            inside = inside + self._shares * counts[n_inside:].sum()
        self.counts[self.codes] = inside

    def _believed(
        self, place: int, detail: FloatArray, counts: FloatArray, unsure: FloatArray
    ) -> FloatArray:
        """Details of a level as far as they are believed; the variances have what is not.

        A block is expected to rise or fall as its neighbours do, by the share that the whole level
        shows. From this its halves differ by a share of what the block holds, whose variance, at
        most 1, has one law over the blocks of the level (`EffectLaw`). Blocks with codes that stand
        alone or beyond the last code say nothing of the others: their details are believed as they
        are.

        Parameters
        ----------
        place : int
            Which level.
        detail : ndarray of float64
            Counts of the halves, less half of those of their blocks.
        counts, unsure : ndarray of float64
            Estimated mean count of a code of each block, and its variance.
        """
        noise = float(self._scale_variances()[place][0])
        width = self.lattice // len(counts)
        n_alike = int((self.codes < self.n_codes - self.n_alone).sum()) // width
        if not n_alike:
            return detail
        square = width * (np.maximum(counts[:n_alike], 0.0) ** 2 + unsure[:n_alike])
        halves = detail[: 2 * n_alike : 2]
        slopes = _slopes(np.maximum(counts[:n_alike], 0.0)) * (width / 8.0)
        # The share is 1, give or take 1, before a half with this variance is looked at.
        doubted = noise * width / 4.0
        share = (float(slopes @ halves) + doubted) / (float(slopes @ slopes) + doubted)
        share = min(max(share, 0.0), 1.0)
        expected = share * slopes
        # Orthonormal coefficients: one for each block that is halved.
        energy = 4.0 * (halves - expected) ** 2 / width
        seen = energy / square, np.ones(n_alike, dtype=np.int64), noise / square
        trust, mean, spread = EffectLaw.fitted(*seen, 1.0).told(*seen)
        # The noise that is left, and what is not believed: no more than all of the noise.
        lacking = (1.0 - trust) ** 2 * (mean + spread) * square
        self.scales[place] = np.full(len(counts), noise)
        self.scales[place][:n_alike] = np.minimum(trust**2 * noise + lacking, noise)
        found = detail.copy()
        found[: 2 * n_alike : 2] = expected + trust * (halves - expected)
        found[1 : 2 * n_alike : 2] = -found[: 2 * n_alike : 2]
        return found

    def join(self, ladder: Ladder, values: FloatArray | None, variances: FloatArray) -> None:
        """Add looks at sums over groups of codes, as coefficients of the basis of a ladder.

        Parameters
        ----------
        ladder : Ladder
        values : ndarray of float64, or None
            Of the functions of the ladder but the constant one, the first so many. None: only the
            covariance is wanted.
        variances : ndarray of float64
        """
        if self.n_codes > _MOST_JOINED or not len(variances):
            return
        functions = basis_of(ladder.sizes)[:, 1 : len(variances) + 1]
        asked = functions[ladder.units[self.codes]]
        spread = self.covered(asked)
        inner = asked.T @ spread + np.diag(variances)
        root = np.linalg.cholesky(inner)
        lowered = np.linalg.solve(root, spread.T).T
        # The looks move counts among codes; the sum stays the total, which others tell too. The
        # best way back costs the variance of what is taken back.
        back = self.covered(np.ones(len(asked)))
        back /= back.sum()
        if values is not None:
            inside = self.counts[self.codes]
            moved = lowered @ np.linalg.solve(root, values - asked.T @ inside)
            self.counts[self.codes] = inside + moved - back * moved.sum()
        self._lowered = lowered
        self.restored = back * math.sqrt(float((lowered.sum(axis=0) ** 2).sum()))
        self.looks = (ladder, np.asarray(variances, dtype=np.float64))

    def rising(self) -> FloatArray:
        """The counts, those of ordered codes moved so that their running sums never fall.

        Negative ones are noise: ranges are nearer without them. What is known well moves least: a
        value that tables of several columns tell apart lies beside codes that noise hides.
        """
        found = self.counts.copy()
        ordered = self.codes[self.codes < self.n_codes - self.n_alone]
        if found[ordered].sum() > 0:
            n = len(ordered)
            precision = 1.0 / np.maximum(self._variances_of_sums()[:n], TINY)
            found[ordered] = without_negatives(found[ordered], np.arange(n), precision)
        return found

    def _variances_of_sums(self) -> FloatArray:
        """Variances of the running sums of the counts, but for what blocks hold beyond the last.

        Such a sum cuts one block of each level; the squares of its weights there, less those of
        their mean in the block, count its coefficients.
        """
        ends = np.arange(1.0, len(self.codes) + 1.0)
        found = self.scales[0][0] * ends**2 / self.lattice
        for size, variance in zip(self.sizes[1:], self.scales[1:], strict=True):
            wide, narrow = self.lattice // len(variance), self.lattice // size
            inside, cut = ends % wide, ends % narrow
            squares = inside - cut + cut**2 / narrow - inside**2 / wide
            found += np.append(variance, 0.0)[(ends // wide).astype(np.int64)] * squares
        if self._lowered is not None:
            found -= (np.cumsum(self._lowered, axis=0) ** 2).sum(axis=1)
        return found + np.cumsum(self.restored) ** 2

    def around(self, code: int) -> tuple[FloatArray, float]:
        """Weight 1 for a block whose records may all lie at one number of a code; its variance.

        Inside of a block counts are believed to be even as far as noise hides how they lie, but
        numbers of few decimals, and favourite ones, lie at a few codes. A finer block counts only
        if half of the records of the coarsest would be four standard deviations of its noise. Of
        these it is the one that says best how many records there are at most.
        """
        place, held = int(np.searchsorted(self.codes, code)), dict[int, FloatArray]()
        for size, variance in self.variances.items():
            whole = next(iter(held.values()), None)
            if whole is None or self.counts @ whole >= 8.0 * math.sqrt(variance):
                block = np.arange(len(self.codes)) // (self.lattice // size)
                held[size] = np.zeros(self.n_codes)
                held[size][self.codes[block == block[place]]] = 1.0
        most = {n: self.counts @ held[n] + 2.0 * math.sqrt(self.variances[n]) for n in held}
        size = min(most, key=most.__getitem__)
        return held[size], self.variances[size]

    @cached_property
    def _shares(self) -> FloatArray:
        """How what blocks hold beyond the last code is shared out over the codes; it adds up to 1.

        Nobody is there: the noise of these cells tells what the others have too little, and with it
        the counts add up to the total.
        """
        n_inside = len(self.codes)
        outside = np.zeros(self.lattice)
        outside[n_inside:] = 1.0
        spread = self._spread(outside, [np.zeros(1), *self.scales[1:]])
        found: FloatArray = -spread[:n_inside] / float(outside @ spread)
        return found

    def covered(self, weights: FloatArray) -> FloatArray:
        """Covariance of the column's own levels times weights, (n_codes,) or (n_codes, n)."""
        padded = np.zeros((self.lattice, *weights.shape[1:]))
        n_inside = len(weights)
        padded[:n_inside] = weights
        if n_inside == self.lattice:
            return self._spread(padded, self.scales)
        shares = self._shares
        padded[n_inside:] = shares @ weights
        found = self._spread(padded, self.scales)
        return found[:n_inside] + np.multiply.outer(shares, found[n_inside:].sum(axis=0))

    def _spread(self, weights: FloatArray, scales: Sequence[FloatArray]) -> FloatArray:
        """Covariance with these variances of the scales, times weights over the lattice."""
        means = [weights]
        for size in self.sizes[-2::-1]:
            means.append(_means(means[-1], size))
        found = coarse = np.zeros((1, *weights.shape[1:]))
        for mean, variance in zip(reversed(means), scales, strict=True):
            # One for each block of the level above.
            each = variance.reshape(-1, *[1] * weights.ndim)
            detail = mean.reshape(len(coarse), -1, *weights.shape[1:]) - coarse[:, None]
            found = (found[:, None] + each * detail).reshape(mean.shape)
            coarse = mean
        return found

    def covariance(self, weights: FloatArray) -> FloatArray:
        """Covariance of the counts with weighted sums of them, (n_codes, n) like the weights."""
        inside = weights[self.codes]
        found = self.covered(inside)
        if self._lowered is not None:
            found = found - self._lowered @ (self._lowered.T @ inside)
            found = found + np.multiply.outer(self.restored, self.restored @ inside)
        whole = np.zeros(weights.shape)
        whole[self.codes] = found
        return whole

    def variance(self, weights: FloatArray) -> FloatArray:
        """Variance of weighted sums of the counts, weights (n_codes,) or (n_codes, n)."""
        return np.maximum(np.einsum("k...,k...->...", weights, self.covariance(weights)), 0.0)


def _slopes(counts: FloatArray) -> FloatArray:
    """By how much counts fall from block to block, and at most twice the smaller step beside it.

    A peak, and a block beside one that stands out, has no slope.
    """
    if len(counts) < 3:
        return np.zeros(len(counts))
    steps = -np.diff(counts)
    # The first and the last block fall as the next ones do.
    before, after = np.append(steps[0], steps), np.append(steps, steps[-1])
    before[0], after[-1] = steps[1], steps[-2]
    middle = (before + after) / 2.0
    middle[0], middle[-1] = steps[0], steps[-1]
    least = np.minimum(abs(middle), 2.0 * np.minimum(abs(before), abs(after)))
    return np.where(before * after > 0.0, np.sign(before) * least, 0.0)


def _means(values: FloatArray, size: int) -> FloatArray:
    """Means of so many blocks of equally many values."""
    sums: FloatArray = values.reshape(size, -1, *values.shape[1:]).sum(axis=1)
    return sums / (len(values) // size)


def without_negatives(
    counts: FloatArray, order: IntArray, precision: FloatArray | None = None
) -> FloatArray:
    """Counts whose running sums are the nearest to those of noisy ones that never fall.

    With the precision of each running sum, in this order, in units of its standard deviation.

    Cutting negative counts off instead would add a record's worth of noise to every empty bin, and
    move quantiles towards the middle of the range; taking the same from all would take most of a
    value where it is spread over many bins.
    """
    sums = np.cumsum(counts[order])
    if sums[-1] <= 0:
        return np.maximum(counts, 0.0)
    # The last sum is the total, which is known best: no other one is larger.
    top = float(sums[-1])
    running = isotonic_regression(sums, sample_weight=precision, y_min=0.0, y_max=top)
    return np.diff(running, prepend=0.0)[np.argsort(order)]
