"""PrivPfC: the ways to group the codes of a predictor, from coarse to fine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import IntArray

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """The ways to group the codes of one predictor.

    Parameters
    ----------
    groups : tuple of ndarray of shape (n_codes,)
        Group of each code, one array for each option beyond "everything in one group".
    n_first : int, optional
        How many of them, from the front, a first selection may take; a second one may take all.
        Default all.
    """

    groups: tuple[IntArray, ...]
    n_first: int | None = None

    @cached_property
    def sizes(self) -> IntArray:
        """Number of groups of every option, the trivial one first."""
        return np.array([1, *(int(groups.max()) + 1 for groups in self.groups)], dtype=np.int64)

    @cached_property
    def coarser(self) -> tuple[IntArray, ...]:
        """For every option the options whose groups are unions of its groups, itself included."""
        result = [np.zeros(1, dtype=np.int64)]
        for fine in self.groups:
            options = []
            for option, groups in enumerate(self.groups, start=1):
                width = self.sizes[option]
                if len(np.unique(fine * width + groups)) == int(fine.max()) + 1:
                    options.append(option)
            result.append(np.array(options, dtype=np.int64))
        return tuple(result)

    @cached_property
    def first(self) -> Options:
        """The options that a first selection may take."""
        return self if self.n_first is None else Options(self.groups[: self.n_first])
