"""Single attributes in each class of a label: what a naive Bayes classifier knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace
from ...release import group_sums
from ...rows import Counts
from ..pairviews.attributes import Attribute
from ..pairviews.single import single_views

__all__ = ["Classes"]


class Classes:
    """Released views of single attributes, class by class.

    Parameters
    ----------
    label : int
    counts : ndarray of int64
        Released number of records of each class.
    epsilon : Fraction
        What they cost.
    """

    def __init__(self, label: int, counts: IntArray, epsilon: Fraction) -> None:
        self._label = label
        self._counts = counts
        self._epsilon = epsilon
        self._views: list[list[FloatArray]] = []

    @classmethod
    def of(cls, table: Counts, label: int, epsilon: Fraction, source: NoiseSource) -> Classes:
        """Measure the number of records of each class."""
        # Privacy. A record adds one to the count of one class: sensitivity 1.
        counts = discrete_laplace(table.dense((label,)), epsilon, random_state=source)
        return cls(label, np.asarray(counts, dtype=np.int64), epsilon)

    @property
    def total(self) -> int:
        """Released number of all records."""
        return int(self._counts.sum())

    def measure(
        self,
        table: Counts,
        epsilon: Fraction,
        orders: Sequence[IntArray | None],
        widths: Mapping[int, FloatArray],
        source: NoiseSource,
    ) -> tuple[list[FloatArray], float]:
        """Measure all attributes in each class; views and total of all records are returned."""
        # Privacy. The single views of the records of each class, with the same epsilon; a record
        # lies in one class, so the classes compose in parallel.
        label = self._label
        alone = [np.zeros(1, dtype=np.int64) if i == label else o for i, o in enumerate(orders)]
        others = {axis: each for axis, each in widths.items() if axis != label}
        masses = np.empty(len(self._counts))
        for code, count in enumerate(self._counts):
            views, total = single_views(
                table.where(label, code),
                epsilon,
                int(count),
                self._epsilon,
                alone,
                widths=others,
                random_state=source,
            )
            masses[code] = max(total, 0.0)
            share = masses[code] / max(total, 1.0)
            self._views.append([share * view for view in views])
        if not masses.sum() > 0:
            masses[:] = 1.0 / len(masses)
            self._views = [
                [np.full(len(view), masses[0] / len(view)) for view in views]
                for views in self._views
            ]
        together = [np.sum(each, axis=0) for each in zip(*self._views, strict=True)]
        together[label] = masses
        return together, float(masses.sum())

    def pairs(self, attributes: Sequence[Attribute]) -> dict[tuple[int, int], FloatArray]:
        """Shares of the groups of each attribute with the label."""
        found = {}
        for axis, each in enumerate(attributes):
            if axis == self._label or len(each.grouped) < 2:
                continue
            table = np.stack(
                [group_sums(views[axis], each.groups, len(each.grouped)) for views in self._views]
            )
            table = table / table.sum()
            found[min(axis, self._label), max(axis, self._label)] = (
                table if self._label < axis else table.T
            )
        return found
