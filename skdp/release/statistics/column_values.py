"""The numbers of columns among the records of a conjunction, as weights of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._types import FloatArray
from ...domain import Domain, Numeric
from ...domain.binning.contents import Points
from ...domain.queries.regions import Region, RegionUnion, attribute_of, everything
from ...domain.queries.text import parts_of
from ..models.model import Weights
from ..queries import reach_of, weights_of


class Numbers(NamedTuple):
    """The numbers of a column, for each code of the measured column that decides it.

    Attributes
    ----------
    axis : int
    mean : ndarray of float64
        Of the numbers that the code stands for, or of those covered by a condition.
    variance : ndarray of float64
        Of numbers that are spread evenly.
    reach : ndarray of float64
        Largest distance of a number from ``mean``.
    span : tuple of float
        Smallest and largest number of the column.
    """

    axis: int
    mean: FloatArray
    variance: FloatArray
    reach: FloatArray
    span: tuple[float, float]


class Selected(NamedTuple):
    """Records of a conjunction that have a number in each of some columns.

    Attributes
    ----------
    weights : dict of int to ndarray
        Of the records.
    numbers : list of Numbers
        Of each column.
    """

    weights: Weights
    numbers: Sequence[Numbers]

    @classmethod
    def of(cls, regions: Mapping[str, Region], domain: Domain, columns: Sequence[str]) -> Selected:
        """Records of a conjunction; columns are `Numeric`, or have categories that are numbers."""
        told = dict(regions)
        for column in columns:
            attribute = attribute_of(column, domain)
            told[column] = (told.get(column) or everything(column, attribute)).without_missing()
        numbers = [_numbers(column, told[column], domain) for column in columns]
        return cls(weights_of(told, domain), numbers)

    def times(self, *factors: tuple[int, FloatArray]) -> dict[int, FloatArray]:
        """Weights of the records times functions of single columns."""
        result = dict(self.weights)
        for axis, vector in factors:
            result[axis] = result[axis] * vector
        return result

    def ends(self, place: int = 0) -> tuple[float, float]:
        """Smallest and largest number of a column that a record can have."""
        axis, mean, _, reach, (least, most) = self.numbers[place]
        held = self.weights[axis] > 0
        if not held.any():
            return least, most
        low, high = (mean - reach)[held].min(), (mean + reach)[held].max()
        return max(float(low), least), min(float(high), most)


def selected(query: Any, domain: Domain, columns: Sequence[str]) -> list[Selected]:
    """Disjoint conjunctions of the records of a query with numbers in some columns."""
    return [Selected.of(regions, domain, columns) for regions in parts_of(query, domain)]


def scaled(weights: Weights, factor: float, domain: Domain) -> dict[int, FloatArray]:
    """Weights of records, times a number."""
    axis = min(weights, default=0)
    vector = weights.get(axis, np.ones(domain.shape[axis]))
    return {**weights, axis: vector * factor}


def joined_parts(
    first: Sequence[Mapping[str, Region]], second: Sequence[Mapping[str, Region]]
) -> list[dict[str, Region]]:
    """Conjunctions of two unions of disjoint conjunctions."""
    return [_both(one, two) for one in first for two in second]


def _both(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Region]:
    result = dict(one)
    for name, region in two.items():
        if name not in result:
            result[name] = region
        elif isinstance(region, RegionUnion) and isinstance(result[name], RegionUnion):
            pieces = [result[name].intersect(part).parts for part in region.parts]
            result[name] = RegionUnion(region.attribute, sum(pieces, ()))
        elif isinstance(region, RegionUnion):
            result[name] = region.intersect(result[name])
        else:
            result[name] = result[name].intersect(region)
    return result


def _numbers(column: str, region: Region, domain: Domain) -> Numbers:
    attribute = domain[column]
    share, moment = region.weights(), region.moment()
    mean = np.divide(moment, share, out=np.zeros(len(share)), where=share > 0)
    variance, reach = np.zeros(len(mean)), np.zeros(len(mean))
    if isinstance(attribute, Numeric):
        bins, held = attribute.bins, attribute.contents
        width = np.diff(np.asarray(attribute.edges, dtype=np.float64)) * share[:bins]
        step = held.grid.step() if isinstance(held, Points) else 0.0
        variance[:bins] = np.maximum(width**2 - step**2, 0.0) / 12.0
        low, high = held.span(np.arange(bins))
        reach[:bins] = np.maximum(high - mean[:bins], mean[:bins] - low) * (share[:bins] > 0)
    structure = domain.structure
    mean, variance, reach = (structure.lifted(column, each) for each in (mean, variance, reach))
    axis = domain.index(structure.base_of(column))
    return Numbers(axis, mean, variance, reach, reach_of(column, domain))
