"""Which records a statistic is about: groups of them, views of columns, and their numbers."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._validation import FloatArray, IntArray, free_name, some
from ..domain import Categorical, Domain, Numeric
from ..domain.query import (
    Query,
    Region,
    Weights,
    attribute_of,
    both,
    everything,
    parts_of,
    region_of_range,
    weights_of,
)
from .model import Release
from .result import group_labels

# --- bands of a column: intervals that make groups, as ``pandas.cut`` makes them from edges


class Bands:
    """Intervals of a numeric column.

    Parameters
    ----------
    column : str
    edges : array-like
        Ascending edges of adjacent intervals.
    domain : Domain
    right : bool
        Whether intervals between edges contain their right edge, else the left.

    Attributes
    ----------
    labels : pandas.IntervalIndex
    regions : list of Region
        What each interval covers.

    Raises
    ------
    ValueError
        If the column has no numbers, or the edges do not ascend.
    """

    def __init__(self, column: str, edges: Any, domain: Domain, right: bool) -> None:
        attribute = attribute_of(column, domain)
        found: Any = ()
        with contextlib.suppress(TypeError, ValueError):
            listed = [pd.Timestamp(each) if isinstance(each, str) else each for each in edges]
            found = pd.IntervalIndex.from_breaks(listed, closed="right" if right else "left")
        if not len(found) or not (found.left < found.right).all():
            raise ValueError(
                f"bands of {column!r} must be two or more ascending edges, such as [18, 40, 65], "
                f"got {edges!r}."
            )
        self.labels: pd.IntervalIndex = found
        strict = "<" if right else ">"
        self.regions: list[Region] = [
            region_of_range(column, attribute, one.left, one.right, strict) for one in found
        ]


class Groups:
    """All combinations of the codes of some columns, or of bands of them.

    Parameters
    ----------
    names : str or sequence of str
        Measured or derived columns.
    domain : Domain
    bands : mapping of str to edges, default=None
        Columns that have groups other than their codes; see `Bands`.
    right : bool, default=True
        Whether a band contains its right edge.
    by_code : bool, default=False
        Whether groups are the codes, where those that were declared hold several of them.

    Raises
    ------
    TypeError
        If ``bands`` is not a mapping.
    ValueError
        As `Bands`, or if a column is unknown or a total, none is given, one is given twice, or
        there are too many combinations.
    """

    def __init__(
        self,
        names: str | Sequence[str],
        domain: Domain,
        bands: Mapping[str, Any] | None = None,
        right: bool = True,
        *,
        by_code: bool = False,
    ) -> None:
        self.names = [names] if isinstance(names, str) else list(names)
        bands = {} if bands is None else bands
        if not isinstance(bands, Mapping):
            raise TypeError(f"bands must be a mapping of columns to edges, got {bands!r}.")
        self.bands = {name: Bands(name, edges, domain, right) for name, edges in bands.items()}
        self.domain = domain
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"by must name one or more different columns, got {names!r}.")
        for name in self.names:
            attribute_of(name, domain)  # explains an unknown name
        others = [name for name in self.bands if name not in self.names]
        if others:
            raise ValueError(f"bands names {some(others)}, but groups are by {some(self.names)}.")
        structure = domain.structure
        self.coded = [name for name in self.names if name not in self.bands]
        self.axes = [domain.index(structure.base_of(name)) for name in self.coded]
        self._attributes = {
            name: domain[name] if by_code else domain[name].declared for name in self.names
        }
        # Code of each column for each code of the measured column that decides it.
        self.codes: list[IntArray] = []
        for name in self.coded:
            own = np.arange(domain[name].size) if by_code else domain[name].labels_of
            self.codes.append(structure.lifted(name, own))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of groups of each column."""
        sizes = {name: len(each.regions) for name, each in self.bands.items()}
        return tuple(sizes.get(name, each.size) for name, each in self._attributes.items())

    @property
    def number(self) -> int:
        """Number of combinations."""
        return math.prod(self.shape)

    def labels(self) -> list[Any]:
        """What stands for each group of each column in a table."""
        return [
            self.bands[name].labels if name in self.bands else group_labels(each)
            for name, each in self._attributes.items()
        ]

    def within(self, query: Any, columns: Sequence[str]) -> Iterator[Case]:
        """The records of a query in each group, lexicographic; groups share arrays that are equal.

        Parameters
        ----------
        query : dict, str or None
        columns : sequence of str
            Whose numbers matter.
        """
        parts = parts_of(query, self.domain)
        banded: dict[tuple[int, ...], list[Any]] = {}
        seen: dict[tuple[str, int, int], FloatArray] = {}
        for group in np.ndindex(*self.shape):
            place = dict(zip(self.names, group, strict=True))
            chosen = tuple(place[name] for name in self.bands)
            if chosen not in banded:
                band = {name: each.regions[place[name]] for name, each in self.bands.items()}
                banded[chosen] = [
                    Selected.of(both(part, band), self.domain, columns) for part in parts
                ]
            case = []
            for one in banded[chosen]:
                weights = dict(one.weights)
                for name, axis, codes in zip(self.coded, self.axes, self.codes, strict=True):
                    before = weights.get(axis)
                    key = name, place[name], id(before)
                    if key not in seen:
                        only = (codes == place[name]).astype(np.float64)
                        seen[key] = only if before is None else before * only
                    weights[axis] = seen[key]
                case.append(one._replace(weights=weights))
            yield case


def group_table(groups: Groups, results: Mapping[str, Any]) -> pd.DataFrame:
    """One row for each group: its label in each column, and results in the order of groups."""
    places = np.indices(groups.shape).reshape(len(groups.names), -1)
    columns: dict[str, Any] = {}
    for name, label, place in zip(groups.names, groups.labels(), places, strict=True):
        values = [label[i] for i in place.tolist()]
        columns[name] = pd.Series(values, dtype=object if None in values else None)
    for title, values in results.items():
        columns[free_name(title, groups.names)] = values
    return pd.DataFrame(columns)


def view_of(release: Release, groups: Groups) -> FloatArray:
    """Expected counts for every combination of the codes of one or two columns.

    Parameters
    ----------
    release : Release
    groups : Groups
    """
    axes = list(dict.fromkeys(groups.axes))
    table = release.view(axes)
    places = [
        codes.reshape([-1 if axes[place] == axis else 1 for place in range(len(axes))])
        for axis, codes in zip(groups.axes, groups.codes, strict=True)
    ]
    cells = np.ravel_multi_index(np.broadcast_arrays(*places), groups.shape)
    counts = np.bincount(cells.ravel(), weights=table.ravel(), minlength=groups.number)
    return counts.reshape(groups.shape).astype(np.float64, copy=False)


# --- the numbers of columns among the records of a conjunction, as weights of codes


class Numbers(NamedTuple):
    """The numbers of a column, for each code of the measured column that decides it.

    Attributes
    ----------
    axis : int
    mean : ndarray of float64
        Of the numbers that the code stands for, or of those covered by a condition.
    variance : ndarray of float64
        Of numbers that are spread evenly.
    low, high : ndarray of float64
        Smallest and largest number, within the ends of a condition; infinite of codes without one.
    width : ndarray of float64
        Distance of the smallest and the largest number, whatever a condition covers.
    """

    axis: int
    mean: FloatArray
    variance: FloatArray
    low: FloatArray
    high: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, column: str, region: Region, domain: Domain) -> Numbers:
        """Of the part of a column that a condition covers."""
        attribute = domain[column]
        share, moment = region.weights, region.moment
        mean = np.divide(moment, share, out=np.zeros(len(share)), where=share > 0)
        variance, width = np.zeros((2, len(mean)))
        low, high = mean + np.inf, mean - np.inf
        if isinstance(attribute, Numeric):
            bins, held = attribute.bins, attribute.contents
            covered = np.diff(np.asarray(attribute.edges, dtype=np.float64)) * share[:bins]
            variance[:bins] = np.maximum(covered**2 - held.step**2, 0.0) / 12.0
            ends = region.extent()
            low[: attribute.n_values], high[: attribute.n_values] = spans_of(attribute)
            width = np.maximum(high - low, 0.0)
            low, high = (np.where(share > 0, np.clip(each, *ends), each) for each in (low, high))
        else:
            low[: attribute.n_values] = high[: attribute.n_values] = attribute.categories
        structure = domain.structure
        axis = domain.index(structure.base_of(column))
        each = (mean, variance, low, high, width)
        return cls(axis, *(structure.lifted(column, of_codes) for of_codes in each))

    @property
    def reach(self) -> FloatArray:
        """Largest distance of a number from ``mean``, for each code."""
        return np.maximum(np.maximum(self.high - self.mean, self.mean - self.low), 0.0)

    def times(self, weights: FloatArray, power: int, centre: float, scale: float) -> FloatArray:
        """Weights times the mean power of (number - centre) / scale of each code; of -1 `reach`."""
        mean = (self.mean - centre) / scale
        if power == 2:
            mean = mean**2 + self.variance / scale**2
        return weights * (mean if power > 0 else self.reach)

    def ends(self, weights: FloatArray) -> tuple[float, float]:
        """Smallest and largest number of records with a weight; of any, where none has one."""
        held = weights > 0
        held |= not held.any()
        return float(self.low[held].min()), float(self.high[held].max())


def spans_of(attribute: Numeric | Categorical) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest number of each code; of categories their places."""
    if isinstance(attribute, Categorical):
        places = np.arange(attribute.n_values, dtype=np.float64)
        return places, places
    low, high = attribute.contents.span(np.arange(attribute.bins))
    special = np.array(attribute.special, dtype=np.float64)
    return np.append(low, special).astype(np.float64), np.append(high, special).astype(np.float64)


class Selected(NamedTuple):
    """Records of a conjunction that have a number in each of some columns."""

    weights: Weights
    numbers: Sequence[Numbers]

    @classmethod
    def of(cls, regions: Mapping[str, Region], domain: Domain, columns: Sequence[str]) -> Selected:
        """Records of a conjunction; columns are `Numeric`, or have categories that are numbers."""
        told = dict(regions)
        for column in columns:
            attribute = attribute_of(column, domain)
            told[column] = told.get(column, everything(column, attribute)).without_missing
        numbers = [Numbers.of(column, told[column], domain) for column in columns]
        return cls(weights_of(told, domain), numbers)


Case = Sequence[Selected]  # records of disjoint conjunctions
Powers = Sequence[int]  # of the numbers of each column


def case_of(query: Any, domain: Domain, columns: Sequence[str]) -> Case:
    """The records of a query with numbers in some columns."""
    return [Selected.of(regions, domain, columns) for regions in parts_of(query, domain)]


class Cases:
    """Records of many queries; what follows from an array is found once for all that share it."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        self._seen: dict[Any, Any] = {}

    def _once(self, of: Callable[..., Any], weights: FloatArray, *how: float) -> Any:
        key = of, id(weights), *how
        if key not in self._seen:
            self._seen[key] = of(weights, *how)
        return self._seen[key]

    def mapped(self, of: Callable[[FloatArray, int], FloatArray]) -> Cases:
        """The same with other weights, a function of these and their column."""

        def selected(one: Selected) -> Selected:
            each = {axis: self._once(of, w, axis) for axis, w in one.weights.items()}
            return one._replace(weights=each)

        return Cases([[*map(selected, case)] for case in self.cases])

    def moments(
        self, terms: Sequence[Powers], centre: FloatArray, scale: FloatArray
    ) -> list[list[Query]]:
        """Of each case the queries for sums over records of products of powers of their numbers.

        Of the numbers less ``centre``, in units of ``scale``, (n_cases, n_columns).
        """
        return [
            [Query(tuple(self._product(one, each, *units) for one in case)) for each in terms]
            for case, *units in zip(self.cases, centre.tolist(), scale.tolist(), strict=True)
        ]

    def plain(self, terms: Sequence[Powers]) -> list[Query]:
        """`moments` of the numbers as they are, in one list."""
        none = np.zeros((len(self.cases), len(terms[0])))
        return list(itertools.chain.from_iterable(self.moments(terms, none, none + 1.0)))

    def _product(
        self, one: Selected, powers: Powers, centre: Sequence[float], scale: Sequence[float]
    ) -> Weights:
        product = dict(one.weights)
        for of, *power in zip(one.numbers, powers, centre, scale, strict=True):
            if power[0]:
                product[of.axis] = self._once(of.times, product[of.axis], *power)
        return product

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest number of each column among the records, (n_cases, n_columns)."""

        def of(one: Selected) -> list[tuple[float, float]]:
            return [self._once(of.ends, one.weights[of.axis]) for of in one.numbers]

        each = [np.array(list(map(of, case))) for case in self.cases]
        low = np.array([ends[..., 0].min(axis=0) for ends in each])
        return low, np.array([ends[..., 1].max(axis=0) for ends in each])
