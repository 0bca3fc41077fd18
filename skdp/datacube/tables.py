"""Tables of a cube: exact sums before the noise, answers and statistics after it.

The column of which a cube has means is an axis of `CubeModel` after the dimensions, with its ends
as codes; so its sums and means are asked for as those of a dimension are, through a synopsis.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .. import hierarchy
from .._validation import FloatArray, as_integer, free_name
from ..algorithms import cuboids
from ..domain import Categorical, Domain, Numeric
from ..domain.query import parse
from ..exceptions import DomainError
from ..mechanisms.laplace import BoundedGrid
from ..release.model import KnownLaw, Reach, added, covariances_from
from ..release.result import group_labels
from ..tables import Coded, weighted_tables
from .plan import check_names, titles

# --- sums of a bounded column over the cells of cuboids, exact in integers
#
# Every value is rounded to a grid by itself, so that what a record adds depends on its own value
# alone. The value is coded like a dimension, with a code for each number of the grid: so engines
# code it too, and rows of a person that are equal in all that is read are interchangeable.


def value_grid(domain, measure, value, resolution):
    """The grid of integers to which values are rounded, as distances to the origin; and the origin.

    The origin is the lower end of the range. Both are None for counts.
    """
    if measure == "count":
        if value is not None or resolution is not None:
            raise ValueError(
                "value and resolution belong to measure='mean'; with measure='count' leave them "
                "out."
            )
        return None, None
    if value not in domain.names:
        raise DomainError(
            f"measure='mean' needs value=, a Numeric column of the domain, which has "
            f"{list(domain.names)}; got {value!r}."
        )
    attribute = domain[value]
    if not isinstance(attribute, Numeric):
        raise DomainError(
            f"value={value!r} is declared Categorical; means need a Numeric column, whose range "
            "bounds what a record adds."
        )
    if not attribute.summable:
        raise DomainError(f"value={value!r} holds dates, which have no sum; use measure='count'.")
    # Special values may lie outside of the range.
    reach = [Fraction(end) for end in (attribute.lower, attribute.upper, *attribute.special)]
    low, high = min(reach), max(reach)
    if low == high:
        raise DomainError(f"value={value!r} can only be {attribute.lower!r}: its mean is known.")
    return BoundedGrid.of(0, high - low, resolution), low


def _coded_attribute(attribute, grid, origin):
    """The summed column as it is coded: a code for each number of the grid, or each integer.

    Also a function from its codes to the integers that records add.
    """
    special = [float(value) for value in attribute.special]
    if attribute.integer:
        coded = Numeric(attribute.lower, attribute.upper, integer=True, special=attribute.special)

        def numbers(codes):
            return grid.encode(codes + float(attribute.lower - origin))

    else:
        low, high = (
            round((Fraction(end) - origin) / grid.step)
            for end in (attribute.lower, attribute.upper)
        )
        # Bin j holds what is rounded to the number low + j of the grid.
        ends = [float(origin + (place - Fraction(1, 2)) * grid.step) for place in (low, high + 1)]
        coded = Numeric(ends[0], ends[1], bins=high - low + 1, special=attribute.special)

        def numbers(codes):
            return codes.astype(np.int64) + low

    if not special:
        return coded, numbers
    added = grid.encode(np.array(special) - float(origin))

    def with_special(codes):
        place = codes.astype(np.int64) - coded.bins
        return np.where(place < 0, numbers(codes), added[np.maximum(place, 0)])

    return coded, with_special


def check_value(plan, attribute):
    """Refuse a summed column that cannot be coded, before anything is spent."""
    _coded_attribute(attribute, plan._grid, plan._origin)


def exact_sums(rows, plan, value, attribute, contributions):
    """Exact integers of each source of the plan, by its mask: private.

    Parameters
    ----------
    rows : Frame or LazyRows
    plan : CubePlan
    value : str
        Name of the summed column, which may be a dimension too.
    attribute : Numeric
        The column as declared.
    contributions : Contributions or None

    Returns
    -------
    dict of int to ndarray of int64
        Sums of the distances to the lower end and of those to the upper end, one after the other. A
        record that the dimensions cannot represent, or without a value, adds nothing.
    """
    coded, numbers = _coded_attribute(attribute, plan._grid, plan._origin)
    names = plan.domain.names
    again = free_name(value, {*names, *rows.names} if value in names else ())
    if again != value:
        rows = rows.with_again(value, again)
    domain = Domain({**{name: plan.domain[name] for name in names}, again: coded})
    codes = Coded(rows, domain, contributions).codes
    dimensions = [cuboids.dimensions_of(mask) for mask in plan._masks]

    def to_upper(each):
        return plan._sensitivity - numbers(each)

    sums = [weighted_tables(codes, domain.shape, dimensions, to) for to in (numbers, to_upper)]
    pairs = zip(*sums, strict=True)
    return {mask: np.stack(pair) for mask, pair in zip(plan._masks, pairs, strict=True)}


def with_value(plan, value):
    """The domain of a cube of means with the summed column, and the name of that.

    Its codes are the ends of the range. Queries cannot mean it: it has a name of its own.
    """
    low, high = map(float, plan._range)
    name = free_name(f"value of {value}", plan.domain.columns)
    return plan.domain.with_attribute(name, Categorical([high, low])), name


# ------------------------------------------------------------------------------------------------
# Answers from released tables: post-processing of a plan and its published cuboids.
#
# Each function takes the `CubePlan` and ``tables``, the published cuboids by the names of their
# dimensions, as `DataCube` has them in ``plan_`` and ``tables_``. Conditions on dimensions come as
# ``weights``: for some axes of the domain the weight of each code, from `skdp.release.parse`.


# --- CubeModel: a released cube in the form in which synopses ask for counts, sums and means
#
# Weights are those of codes, by the number of the dimension. In a cube of means one more axis comes
# after the dimensions. It has two codes, the upper and the lower end of the range: a record with
# the value v counts at the upper end with the share that v has of the way there, and at the lower
# end with the rest.

# With more different weights of noise, an answer has so many terms that its law is near a Gaussian.
_MAX_TERMS = 2**20


class CubeModel(KnownLaw):
    """Answers and their errors, from the plan and the released tables of a cube.

    Parameters
    ----------
    plan : CubePlan
    tables : dict of tuple of str to ndarray
        Published cuboids, as ``DataCube.tables_``.
    """

    def __init__(self, plan, tables) -> None:
        self._plan = plan
        self._tables = tables
        self._d = len(plan.domain)

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return float(self._tables[()].ravel()[0])

    def view(self, axes) -> np.ndarray:
        """Estimated numbers of records for every combination of the codes of some dimensions."""
        table = self._tables[self._plan._names(self._mask(dict.fromkeys(axes)))]
        if self._plan._grid is not None:
            table = table[0]
        return np.transpose(table, np.argsort(np.argsort(axes)))

    @property
    def about(self) -> str:
        """What was released, in words."""
        what = "counts" if self._plan._grid is None else "counts and means"
        return f"noisy {what} over {len(self._tables):,} sets of dimensions"

    def answer(self, queries) -> np.ndarray:
        """Weighted sum of cells, one float for each query."""
        return added(queries, self._answer)

    def _answer(self, products) -> np.ndarray:
        found = []
        for weights in products:
            table = self._tables[self._plan._names(self._mask(weights))]
            if self._plan._grid is not None:
                counts, sums = self._plan._of_ends(weights.get(self._d, np.ones(2)))
                table = counts * table[0] + sums * table[1]
            for axis in sorted(axis for axis in weights if axis < self._d):
                table = np.tensordot(weights[axis], table, axes=(0, 0))
            found.append(float(table))
        return np.array(found)

    def variance(self, queries) -> np.ndarray:
        """Variance of the noise in each answer."""
        plan = self._plan
        if plan.consistency is None:
            return np.array([self._terms(each).total for each in queries])
        return np.array(
            [
                sum(one.variance(plan._interactions) for one in self._functionals(each))
                for each in queries
            ]
        )

    def covariances(self, blocks) -> np.ndarray:
        """Covariances of the noise in the answers of each block."""
        return covariances_from(self.variance, blocks)

    def _reach(self, queries, level) -> Reach:
        plan, half, exact = self._plan, np.empty(len(queries)), True
        std = np.sqrt(self.variance(queries))
        for place, query in enumerate(queries):
            many = sum(one.cells(plan._masks) for one in self._functionals(query)) > _MAX_TERMS
            if plan.consistency is not None and (many or plan.consistency != "l2"):
                # Many terms, or terms whose law is not known.
                half[place], exact = float(ndtri(0.5 + level / 2)) * std[place], False
                continue
            terms, unit = self._terms(query), plan._unit
            # The law is that of whole numbers.
            half[place] = hierarchy.noise_quantile(
                terms.weight * unit, terms.variance / unit**2, level, terms.times
            )
        sure, law = ("at least", "the exact law of") if exact else ("about", "a Gaussian law for")
        text = f"{sure} {100 * level:g}% for a query fixed before looking at the release, by {law}"
        return Reach(std, half, half, f"{text} the noise.")

    def _functionals(self, query) -> list[Any]:
        """A weighted sum of cells for each table that was measured together."""
        parts = query.products
        own = [{axis: each for axis, each in part.items() if axis < self._d} for part in parts]
        ends = [self._ends(part) for part in parts]
        return [
            cuboids.Functional(self._plan._lattice, own, [end[place] for end in ends])
            for place in range(len(ends[0]))
        ]

    def _terms(self, query) -> Any:
        """Independent noises in an answer."""
        masks = [self._mask(part) for part in query.products]
        each = (self._plan._terms(one, masks) for one in self._functionals(query))
        return cuboids.Terms(*map(np.concatenate, zip(*each, strict=True)))

    def _mask(self, weights):
        """The cuboid that answers; ValueError if it is not published."""
        names = tuple(self._plan.domain.names[axis] for axis in sorted(weights) if axis < self._d)
        return self._plan._published_mask(names)

    def _ends(self, weights):
        """Factors of a part: for each table that was measured together, in its own unit."""
        if self._plan._grid is None:
            return np.ones(1)
        return weights.get(self._d, np.ones(2)) / float(self._plan._width)


# --- tables of a cuboid


def tidy_table(plan, tables, names, query=None, levels=None):
    """One cuboid, sliced or grouped, with a row for each cell.

    Parameters
    ----------
    plan : CubePlan
    tables : dict of tuple of str to ndarray
    names : tuple of str
        Dimensions of the result, in this order.
    query : dict or str, default=None
        Conditions.
    levels : dict of str to int, default=None
        Level of the hierarchy to which a dimension of the result is grouped.
    """
    domain, levels = plan.domain, levels or {}
    check_names(domain, names)
    absent = [name for name in levels if name not in names]
    if absent:
        raise ValueError(f"levels names {absent}, which are not among {list(names)}.")
    weights = _weights_of_one(query, domain)
    key = tuple(name for axis, name in enumerate(domain.names) if name in names or axis in weights)
    mask = plan._published_mask(key)
    axes = [
        _axis_of(name, domain[name], name in names, weights.get(domain.index(name)), levels)
        for name in key
    ]
    # All cells have the same error where codes stay as they are: that of one of them is enough.
    vectors = [
        np.eye(1, domain[name].size) if axis.matrix is None else axis.matrix
        for name, axis in zip(key, axes, strict=True)
    ]
    std = np.sqrt(plan._box_variances(mask, vectors))
    if plan._grid is None:
        cells = {"count": _weighted_sums(tables[key], axes), "std_error": std}
    else:
        counts, sums = (_weighted_sums(table, axes) for table in tables[key])
        cells = _means(plan, counts, sums, std)
    # What is summed over has one value and comes last.
    order = [key.index(name) for name in sorted(key, key=[*names, *key].index)]
    shape = cells["count"].transpose(order).shape
    places = np.indices(shape).reshape(len(shape), cells["count"].size)
    columns: dict[str, Any] = {}
    for name, place in zip(names, places, strict=False):
        labels = axes[key.index(name)].labels
        columns[name] = pd.Series(labels, dtype=object if None in labels else None).array[place]
    for name, table in cells.items():
        everywhere = np.broadcast_to(table.transpose(order), shape)
        columns[free_name(name, domain.names)] = everywhere.ravel()
    return pd.DataFrame(columns)


def all_cuboids(plan, tables, margin):
    """All cuboids in one table, one below the other; ``margin`` where one lacks a dimension."""
    domain = plan.domain
    for name, attribute in domain.items():
        if margin in group_labels(attribute):
            raise ValueError(f"margin={margin!r} is a value of {name!r}; choose a different text.")
    first = [free_name("cuboid", domain.names), *domain.names]
    parts = []
    for text, names in zip(titles(tables), tables, strict=True):
        absent = {name: margin for name in domain.names if name not in names}
        part = tidy_table(plan, tables, names)
        parts.append(part.assign(**{first[0]: text}, **absent))
    frame = pd.concat(parts, ignore_index=True)
    return frame[[*first, *(name for name in frame if name not in first)]]


class _Axis(NamedTuple):
    """How a query uses one dimension of the cuboid that answers it.

    Attributes
    ----------
    labels : list
        Values along this axis of the answer; one where the query sums over it.
    matrix : ndarray of shape (n_values, size) or None
        Weight of each code in each value of the answer; None if the codes stay as they are.
    """

    labels: list[Any]
    matrix: FloatArray | None


def _axis_of(name, attribute, wanted, weight, levels):
    """One dimension: summed over, grouped, restricted to what the query asks for, or whole."""
    if not wanted:
        return _Axis([None], weight[None, :])
    labels = group_labels(attribute)
    if name in levels:
        level = _level_of(attribute, name, levels[name])
        matrix = np.arange(len(level.labels))[:, None] == level.groups
        return _Axis(level.labels, matrix * (1.0 if weight is None else weight))
    if weight is None:
        return _Axis(labels, None)
    chosen = np.flatnonzero(weight)
    return _Axis([labels[code] for code in chosen.tolist()], np.eye(len(labels))[chosen] * weight)


def _level_of(attribute, name, level):
    """Labels of the groups of one level, and the group of each code."""
    levels = attribute.levels()
    place = as_integer(level, f"The level of {name!r}")
    if not -len(levels) <= place < len(levels):
        raise ValueError(
            f"{name!r} has the levels 0 to {len(levels) - 1}, or -{len(levels)} to -1, got {level}."
        )
    return levels[place]


def _weights_of_one(query, domain):
    """Weights of a query that is one conjunction.

    Raises
    ------
    ValueError
        If it is a union over several columns.
    """
    [weights, *others] = parse(query, domain).products
    if others:
        raise ValueError(
            f"The query {query!r} joins conditions on several columns by 'or'. Here a query must "
            "be a conjunction: conditions joined by 'and', with 'or' and 'not' only between "
            "conditions on one column."
        )
    return weights


def _weighted_sums(table, axes):
    """Sum a table over the codes of each axis, with the weights of its matrix."""
    for place, axis in enumerate(axes):
        if axis.matrix is not None:
            table = np.moveaxis(np.tensordot(table, axis.matrix, ([place], [1])), -1, place)
    return table


def _means(plan, counts, sums, std):
    """Counts and means, and the errors of the means, from sums of cells.

    A mean m of n records errs by 1 / n times the error of sum - m * count, which is that of the
    measured distances to the ends of the range; ``std`` is the standard error of such a distance.
    """
    low, high = plan._range
    records = np.where(counts > 0, counts, np.nan)
    mean = np.clip(sums / records, low, high)
    error = std * np.hypot(high - mean, mean - low) / (high - low) / records
    # Of a number within the range no standard error is larger.
    most = (high - low) / 2
    return {"count": counts, "mean": mean, "std_error": np.fmin(error, most)}
