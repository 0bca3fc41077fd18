"""ColumnEstimate: the counts of one column from everything measured, and their exact covariance.

A column is measured at the levels of its own tree of codes: nested blocks of equally many codes.
Noise of equal variance in each level makes the covariance a sum of projections onto the levels.
Margins of tables of several columns, over groups of codes of any size, are further looks, and add
a term of low rank. Post-processing of released numbers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence

import numpy as np

from .._validation import FloatArray, IntArray
from .coefficients import EffectLaw, Ladder, basis_of

__all__ = ["ColumnEstimate"]

# Columns of more codes than this are estimated from their own tree alone.
_MOST_JOINED = 1 << 16


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
    """

    def __init__(
        self,
        n_codes: int,
        sizes: Sequence[int],
        variances: Mapping[int, float],
        total_variance: float = math.inf,
        n_alone: int = 0,
    ) -> None:
        self.n_codes, self.n_alone = n_codes, n_alone
        self.sizes = tuple(sizes)
        self.variances = dict(variances)
        self.total_variance = total_variance
        self._scales = self._scale_variances()
        # The part of these variances that is estimated: of details that `fit` did not believe.
        self._lacking = [np.zeros_like(each) for each in self._scales]
        self.counts = np.zeros(n_codes)
        # Codes that records can have, in the order of the lattice; None: all.
        self.codes: IntArray | None = None
        # The covariance is that of the levels less ``lowered @ lowered.T``.
        self._lowered: FloatArray | None = None
        # And with it, the covariance is larger by ``outer(restored, restored)``.
        self._restored = np.zeros(n_codes)
        self._shares: FloatArray | None = None
        self.looks: tuple[Ladder, FloatArray] | None = None

    @property
    def lattice(self) -> int:
        """Number of codes with those that fill the last blocks."""
        return self.sizes[-1]

    @property
    def own_total_variance(self) -> float:
        """Variance of the total as the column's own counts tell it."""
        return 1.0 / sum(1.0 / (size * each) for size, each in self.variances.items())

    def _scale_variances(self) -> list[FloatArray]:
        """Variance of a coefficient of each scale, orthonormal over the lattice.

        One for each block of the level above; they differ after `fit`.
        """
        found: list[FloatArray] = []
        for size in self.sizes:
            precision = sum(
                self.lattice / (finer * each)
                for finer, each in self.variances.items()
                if finer >= size
            )
            if size == 1:
                precision += self.lattice / self.total_variance
            n_blocks = self.sizes[max(len(found) - 1, 0)]
            found.append(np.full(n_blocks, 1.0 / precision))
        return found

    def own_total(self, tables: Mapping[int, FloatArray]) -> float:
        """The total as the column's own counts tell it."""
        precision = {size: 1.0 / (size * each) for size, each in self.variances.items()}
        told = sum(precision[size] * float(tables[size].sum()) for size in precision)
        return told / sum(precision.values())

    @property
    def finer(self) -> tuple[FloatArray, FloatArray]:
        """Variances of the scales below the first, block by block, and their estimated part."""
        none = [np.zeros(0)]
        return np.concatenate(none + self._scales[2:]), np.concatenate(none + self._lacking[2:])

    @finer.setter
    def finer(self, both: tuple[FloatArray, FloatArray]) -> None:
        at = 0
        for place in range(2, len(self.sizes)):
            part = slice(at, at + len(self._scales[place]))
            self._scales[place], self._lacking[place] = both[0][part], both[1][part]
            at = part.stop
        self._shares = None

    def fit(self, tables: Mapping[int, FloatArray], total: float) -> None:
        """Estimate from noisy blocks of each level and from what else is known of the total.

        Halves of blocks are believed to differ as far as noise does not explain it: fine codes cost
        little where counts are even.
        """
        counts, unsure = np.zeros(1), np.zeros(1)
        before = np.zeros(1)
        for place, size in enumerate(self.sizes):
            precision, told = 0.0, np.zeros(size)
            for finer, each in self.variances.items():
                if finer >= size:
                    part = self.lattice / (finer * each)
                    precision += part
                    told += part * tables[finer].reshape(size, -1).sum(axis=1)
            if size == 1 and math.isfinite(self.total_variance):
                part = self.lattice / self.total_variance
                precision += part
                told += part * total
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
            unsure = np.repeat(unsure + part * self._scales[place], ratio)
            before = told
        self.counts = counts[: self.n_codes]
        if self.lattice > self.n_codes:
            self.counts = self.counts + self._beyond() * counts[self.n_codes :].sum()

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
        n_alike = (self.n_codes - self.n_alone) // width
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
        lacking = (1.0 - trust) ** 2 * (mean + spread) * square
        self._scales[place] = np.full(len(counts), noise)
        self._scales[place][:n_alike] = trust**2 * noise + lacking
        self._lacking[place] = np.zeros(len(counts))
        self._lacking[place][:n_alike] = lacking
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
        asked = functions[ladder.units if self.codes is None else ladder.units[self.codes]]
        spread = self.covered(asked)
        inner = asked.T @ spread + np.diag(variances)
        root = np.linalg.cholesky(inner)
        lowered = np.linalg.solve(root, spread.T).T
        # The looks move counts among codes; the sum stays the total, which others tell too. The
        # best way back costs the variance of what is taken back.
        back = self.covered(np.ones(len(asked)))
        back /= back.sum()
        if values is not None:
            moved = lowered @ np.linalg.solve(root, values - asked.T @ self.counts)
            self.counts = self.counts + moved - back * moved.sum()
        self._lowered = lowered
        self._restored = back * math.sqrt(float((lowered.sum(axis=0) ** 2).sum()))
        self.looks = (ladder, np.asarray(variances, dtype=np.float64))

    def expanded(self, codes: IntArray, n_codes: int, ladder: Ladder) -> ColumnEstimate:
        """The same column with codes that records cannot have, whose counts are 0."""
        found = copy.copy(self)
        found._shares = None
        found.n_codes, found.codes = n_codes, codes
        found.counts = np.zeros(n_codes)
        found.counts[codes] = self.counts
        if self._lowered is not None and self.looks is not None:
            found.looks = (ladder, self.looks[1])
        return found

    def _beyond(self) -> FloatArray:
        """How what blocks hold beyond the last code is shared out over the codes; it adds up to 1.

        Nobody is there: the noise of these cells tells what the others have too little, and with it
        the counts add up to the total.
        """
        if self._shares is None:
            n_inside = self.n_codes if self.codes is None else len(self.codes)
            outside = np.zeros(self.lattice)
            outside[n_inside:] = 1.0
            spread = self._spread(outside, [np.zeros(1), *self._scales[1:]])
            self._shares = -spread[:n_inside] / float(outside @ spread)
        return self._shares

    def covered(self, weights: FloatArray) -> FloatArray:
        """Covariance of the column's own levels times weights, (n_codes,) or (n_codes, n)."""
        padded = np.zeros((self.lattice, *weights.shape[1:]))
        n_inside = len(weights)
        padded[:n_inside] = weights
        if n_inside == self.lattice:
            return self._spread(padded, self._scales)
        shares = self._beyond()
        padded[n_inside:] = shares @ weights
        found = self._spread(padded, self._scales)
        return found[:n_inside] + np.multiply.outer(shares, found[n_inside:].sum(axis=0))

    def _spread(self, weights: FloatArray, scales: Sequence[FloatArray]) -> FloatArray:
        """Covariance with these variances of the scales, times weights over the lattice."""
        means = [weights]
        for size in self.sizes[-2::-1]:
            means.append(_means(means[-1], size))
        found = coarse = np.zeros((1, *weights.shape[1:]))
        for mean, variance in zip(reversed(means), scales, strict=True):
            ratio = len(mean) // len(coarse)
            detail = mean - np.repeat(coarse, ratio, axis=0) if mean is not means[-1] else mean
            each = np.repeat(variance, len(mean) // len(variance))
            found = np.repeat(found, ratio, axis=0) + (detail.T * each).T
            coarse = mean
        return found

    def variance(self, weights: FloatArray) -> FloatArray:
        """Variance of weighted sums of the counts, weights (n_codes,) or (n_codes, n)."""
        if self.codes is not None:
            weights = weights[self.codes]
        found = np.einsum("k...,k...->...", weights, self.covered(weights))
        if self._lowered is not None:
            found = found - ((self._lowered.T @ weights) ** 2).sum(axis=0)
            found = found + (self._restored @ weights) ** 2
        return np.maximum(found, 0.0)

    def parts_of_variance(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`variance` in two parts: of noise, and of details that were not believed."""
        whole = self.variance(weights)
        if self.codes is not None:
            weights = weights[self.codes]
        padded = np.zeros((self.lattice, *weights.shape[1:]))
        padded[: len(weights)] = weights
        found = np.einsum("k...,k...->...", padded, self._spread(padded, self._lacking))
        hidden = np.minimum(np.maximum(found, 0.0), whole)
        return whole - hidden, hidden


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
    means: FloatArray = values.reshape(size, -1, *values.shape[1:]).mean(axis=1)
    return means
