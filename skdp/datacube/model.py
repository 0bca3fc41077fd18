"""CubeModel: a released cube in the form in which synopses ask for counts, sums and means.

Weights are those of codes, by the number of the dimension. After the dimensions comes one more axis
where values are summed. In a cube of sums it has one code, whose weight is a factor. In a cube of
means it has two, the upper and the lower end of the range: a record with the value v counts at the
upper end with the share that v has of the way there, and at the lower end with the rest.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from .. import hierarchy
from ..kernels import cuboids
from ..release import Error

__all__ = ["CubeModel"]

# With more different weights of noise, an answer has so many terms that its law is near a Gaussian.
_MAX_TERMS = 2**20


class CubeModel:
    """Answers and their errors, from the plan and the released tables of a cube.

    Parameters
    ----------
    plan : CubePlan
    tables : dict of tuple of str to ndarray
        Published cuboids, as ``DataCube.tables_``.
    """

    def __init__(self, plan, tables):
        self._plan = plan
        self._tables = tables
        self._d = len(plan.domain)

    @property
    def total(self):
        """Estimated number of records; nan where the cube does not tell."""
        if () not in self._tables or self._plan._measure == "sum":
            return math.nan
        return float(self._tables[()].ravel()[0])

    def view(self, axes):
        """Estimated numbers of records for every combination of the codes of some dimensions."""
        table = self._tables[self._plan._names(self._mask(dict.fromkeys(axes)))]
        if self._plan._measure == "mean":
            table = table[0]
        return np.transpose(table, np.argsort(np.argsort(axes)))

    def answer(self, queries):
        """Weighted sum of cells, one float for each query."""
        found = []
        for weights in queries:
            table = self._tables[self._plan._names(self._mask(weights))]
            ends = weights.get(self._d)
            if self._plan._measure == "mean":
                counts, sums = self._plan._of_ends(np.ones(2) if ends is None else ends)
                table = counts * table[0] + sums * table[1]
            elif ends is not None:
                table = ends[0] * table
            for axis in sorted(axis for axis in weights if axis < self._d):
                table = np.tensordot(weights[axis], table, axes=(0, 0))
            found.append(float(table))
        return np.array(found)

    def error(self, weights, level):
        """Error of one answer."""
        return self.error_of_parts([weights], level)

    def error_of_parts(self, parts, level):
        """Error of a sum of answers, by the law of the noise."""
        plan = self._plan
        masks = [self._mask(part) for part in parts]
        own = [{axis: each for axis, each in part.items() if axis < self._d} for part in parts]
        ends = [self._ends(part) for part in parts]
        each = [
            cuboids.Functional(plan._lattice, own, [end[place] for end in ends])
            for place in range(len(ends[0]))
        ]
        many = sum(one.cells(plan._masks) for one in each) > _MAX_TERMS
        if plan.consistency is not None and (many or plan.consistency != "l2"):
            return self._gaussian(each, level)
        terms = cuboids.Terms(
            *map(np.concatenate, zip(*(plan._terms(one, masks) for one in each), strict=True))
        )
        # The law is that of whole numbers.
        unit = plan._unit
        half = hierarchy.noise_quantile(
            terms.weight * unit, terms.variance / unit**2, level, terms.times
        )
        return self._told(math.sqrt(terms.total), half, level, "at least", "the exact law of")

    def _gaussian(self, each, level):
        """Error of many terms, or of terms whose law is not known."""
        variance = sum(one.variance(self._plan._interactions) for one in each)
        half = float(ndtri(0.5 + level / 2)) * math.sqrt(variance)
        return self._told(math.sqrt(variance), half, level, "about", "a Gaussian law for")

    @staticmethod
    def _told(std, half, level, sure, law):
        text = f"{sure} {100 * level:g}% for a query fixed before looking at the release, by {law}"
        return Error(std, half, half, f"{text} the noise.")

    def _mask(self, weights):
        """The cuboid that answers; ValueError if it is not published."""
        names = tuple(self._plan.domain.names[axis] for axis in sorted(weights) if axis < self._d)
        return self._plan._published_mask(names)

    def _ends(self, weights):
        """Factors of a part: for each table that was measured together, in its own unit."""
        plan, ends = self._plan, weights.get(self._d)
        if plan._measure == "mean":
            return (np.ones(2) if ends is None else ends) / float(plan._width)
        return np.ones(1) if ends is None else ends
