"""The facts about an attribute that rows need, all released or public."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import FloatArray, IntArray

__all__ = ["Attribute", "equal_mass_bins"]


class Attribute(NamedTuple):
    """Released probabilities of an attribute, and how tables order and group its codes.

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
