"""Single attributes in each class of a label: what a naive Bayes classifier knows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._types import FloatArray, IntArray
from ...hierarchy import project_to_simplex
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...rows import Counts
from ..pairviews.attributes import Attribute, cut_mass, equal_mass_bins
from ..pairviews.single import single_shares
from .shrinkage import shrunk

__all__ = ["Classes"]

Axes = tuple[int, ...]

_TINY = 1e-6
# Noise scales of records in a bin, on average over the bins of an attribute, and fewest bins of
# ordered and of other attributes.
_RECORDS = 10.0
_FEWEST, _FEWEST_KINDS = 3, 16
# Attributes of many codes need more records in each bin to tell as much: their shares of epsilon
# grow with the number of groups, up to so many.
_MOST_GROUPS = 64


class Classes:
    """Released numbers of records of each class, and bins of single attributes in each.

    Parameters
    ----------
    label : int
    counts : ndarray of int64
        Released number of records of each class.
    epsilon : Fraction
        What they cost.
    """

    def __init__(self, label: int, counts: IntArray, epsilon: Fraction) -> None:
        self.label = label
        self.total = int(counts.sum())
        self._counts = counts.astype(np.float64)
        self.variance = discrete_laplace_variance(epsilon)

    @classmethod
    def of(cls, table: Counts, label: int, epsilon: Fraction, source: NoiseSource) -> Classes:
        """Measure the number of records of each class."""
        # Privacy. A record adds one to the count of one class: sensitivity 1.
        counts = discrete_laplace(table.dense((label,)), epsilon, random_state=source)
        return cls(label, np.asarray(counts, dtype=np.int64), epsilon)

    def measure(
        self,
        table: Counts,
        epsilon: Fraction,
        attributes: Sequence[Attribute],
        ordered: Sequence[bool],
        variances: Sequence[float],
        total: float,
        source: NoiseSource,
    ) -> tuple[list[FloatArray], dict[Axes, FloatArray]]:
        """Shares of the groups of each attribute, and of those with the label.

        Parameters
        ----------
        table : CountTable or ProjectedCounts
            Exact and private.
        epsilon : Fraction
            Cost of all attributes together.
        attributes : sequence of Attribute
            As released, without classes.
        ordered : sequence of bool
            Whether neighbouring codes of an attribute are similar.
        variances : sequence of float
            Of the count of a group of each attribute.
        total : float
            Estimated number of records, positive.
        source : NoiseSource
        """
        # Privacy. Released: noisy counts of the bins of each attribute in each class. A record is
        # in one of them: sensitivity 1. The attributes compose one after the other, with shares of
        # epsilon that add up to it. Shares and bins follow from the released attributes and the
        # released total.
        label = self.label
        axes = [i for i, each in enumerate(attributes) if i != label and len(each.grouped) > 1]
        masses = [each.grouped for each in attributes]
        if not axes:
            return masses, {}
        parts = [epsilon * part for part in _parts([len(masses[i]) for i in axes])]
        bins = {
            i: _bins(attributes[i], ordered[i], total * float(part))
            for i, part in zip(axes, parts, strict=True)
        }
        asked = [((label, i), (None, attributes[i].of_codes(bins[i]))) for i in axes]
        noisy = [
            discrete_laplace(exact, part, random_state=source).astype(np.float64)
            for exact, part in zip(table.regrouped_many(asked), parts, strict=True)
        ]
        noises = [discrete_laplace_variance(part) for part in parts]
        self._improve(noisy, noises)
        shares = self.shares
        masses[label] = shares
        found: dict[Axes, FloatArray] = {}
        for axis, counts, variance in zip(axes, noisy, noises, strict=True):
            inside, mass = bins[axis], masses[axis]
            counts = np.stack(
                [
                    project_to_simplex(row, total * part)
                    for row, part in zip(counts, shares, strict=True)
                ]
            )
            n_inside = np.bincount(inside)
            # Bins by all records and by the classes: the more precise tells more.
            known = total * np.bincount(inside, weights=mass)
            trust = 1 / (variances[axis] * n_inside)
            more = 1 / (variance * len(counts))
            pooled = (trust * known + more * counts.sum(axis=0)) / (trust + more)
            pooled = project_to_simplex(pooled, total) / total
            mass = mass + _TINY / len(mass)
            mass = mass * (pooled / np.bincount(inside, weights=mass))[inside]
            masses[axis] = mass
            expected = total * np.outer(shares, pooled)
            told = shrunk(counts, variance, expected, ordered[axis])
            ratio = told / np.maximum(expected, 1e-300)
            both = np.outer(shares, mass) * ratio[:, inside]
            both /= both.sum()
            found[min(axis, label), max(axis, label)] = both if label < axis else both.T
        return masses, found

    def _improve(self, tables: Sequence[FloatArray], variances: Sequence[float]) -> None:
        """Improve the numbers of records of the classes by sums of tables, by precision."""
        for each, variance in zip(tables, variances, strict=True):
            n_bins = each.shape[1]
            trust, more = 1 / self.variance, 1 / (n_bins * variance)
            self._counts = (trust * self._counts + more * each.sum(axis=1)) / (trust + more)
            self.variance = 1 / (trust + more)

    @property
    def shares(self) -> FloatArray:
        """Estimated shares of the classes; none is 0."""
        counts = np.maximum(self._counts, 0.25 * math.sqrt(self.variance))
        return counts / counts.sum()


def _parts(sizes: Sequence[int]) -> list[Fraction]:
    """Shares of attributes of so many groups, at least two; they add up to 1."""
    return single_shares([min(size, _MOST_GROUPS) for size in sizes])


def _bins(attribute: Attribute, ordered: bool, signal: float) -> IntArray:
    """Bins of the groups of an attribute, so many that the counts of one tell something.

    Rare neighbours share a bin even where there could be a bin for each code: noise that puts a
    few records of the wrong class into a long tail leads a linear model far astray.
    """
    mass, order = attribute.grouped, attribute.group_order
    if ordered:
        n_bins = max(int(signal / _RECORDS), _FEWEST)
        return equal_mass_bins(np.maximum(mass, _TINY / len(mass)), order, n_bins)
    n_bins = max(int(signal / _RECORDS), _FEWEST_KINDS)
    if n_bins >= len(mass):
        return np.arange(len(mass))
    return equal_mass_bins(cut_mass(mass), order, n_bins)
