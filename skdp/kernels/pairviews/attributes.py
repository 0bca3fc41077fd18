"""The facts about an attribute that pair views need, all released or public."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import FloatArray, IntArray
from ...release import group_sums

__all__ = ["Attribute", "cut_mass", "equal_mass_bins"]

# Weight of the released view in the mass by which boxes are cut; the rest is uniform.
_BY_MASS = 0.6


class Attribute(NamedTuple):
    """Released probabilities of an attribute, and how pair tables order and group its codes.

    Attributes
    ----------
    mu : ndarray of float64
        Probability of each code.
    order : ndarray of int64
        Codes in the order in which they are cut.
    groups : ndarray of int64 or None
        Group of each code, or None for the codes themselves.
    grouped : ndarray of float64
        Probability of each group.
    group_order : ndarray of int64
        Groups in the order in which they are cut.
    """

    mu: FloatArray
    order: IntArray
    groups: IntArray | None
    grouped: FloatArray
    group_order: IntArray

    @classmethod
    def of(cls, view: FloatArray, order: IntArray | None, limit: int) -> Attribute:
        """Describe an attribute by its released view.

        Parameters
        ----------
        view : ndarray of float64
            Counts of the codes, not negative.
        order : ndarray of int64 or None
            Codes in an order in which neighbours are similar, or None if there is no such order.
        limit : int
            Largest number of groups.
        """
        mu = view / view.sum()
        if order is None:
            # Unordered categories are sorted by size, so that rare ones stay together.
            order = np.argsort(-mu, kind="stable")
        if len(mu) <= limit:
            return cls(mu, order, None, mu, order)
        groups = equal_mass_bins(cut_mass(mu), order, limit)
        grouped = group_sums(mu, groups, int(groups.max()) + 1)
        _, first = np.unique(groups[order], return_index=True)
        return cls(mu, order, groups, grouped, groups[order][np.sort(first)])

    def of_codes(self, bins: IntArray | None) -> IntArray | None:
        """Bin of each code from those of the groups; without bins, the groups themselves."""
        if bins is None or self.groups is None:
            return self.groups if bins is None else bins
        return bins[self.groups]


def equal_mass_bins(mass: FloatArray, order: IntArray, n_bins: int) -> IntArray:
    """Bin of each code: consecutive in the order, about equal in mass, without gaps."""
    ordered = mass[order]
    middle = (np.cumsum(ordered) - ordered / 2) / max(ordered.sum(), 1e-300)
    wanted = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    bins = np.empty(len(mass), dtype=np.int64)
    bins[order] = np.unique(wanted, return_inverse=True)[1].reshape(-1)
    return bins


def cut_mass(mu: FloatArray) -> FloatArray:
    """Mass that is divided equally among the parts of a box."""
    return _BY_MASS * mu + (1 - _BY_MASS) / len(mu)
