"""Tables of a cube: exact sums before the noise, answers and statistics after it.

The column of which a cube has means is an axis of `CubeModel` after the dimensions, with its ends
as codes; so its sums and means are asked for as those of a dimension are, through a synopsis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .. import hierarchy
from .._validation import FloatArray, as_integer, free_name
from ..algorithms import cuboids
from ..domain import Categorical, Date, Datetime, Domain, Numeric
from ..domain.query import parse, with_names
from ..exceptions import DomainError
from ..mechanisms.laplace import BoundedGrid
from ..release.model import Covariances, Reach, added, covariances_from, with_cut_bins
from ..release.statistics import Confidence, linear
from ..tables import code_rows, weighted_tables
from .plan import check_names, titles

# --- sums and means of a bounded column over the cells of cuboids, exact in integers
#
# Every value is rounded to a grid by itself, so that what a record adds depends on its own value
# alone. The value is coded like a dimension, with a code for each number of the grid: so engines
# code it too, and rows of a person that are equal in all that is read are interchangeable.


def value_grid(domain, measure, value, resolution):
    """The grid of integers to which the summed column is rounded, and its origin.

    The grid is None for counts, and the origin for sums; for means the grid is one of distances to
    the origin, the lower end of the range.
    """
    if measure == "count":
        if value is not None or resolution is not None:
            raise ValueError(
                "value and resolution belong to measure='sum' and 'mean'; with measure='count' "
                "leave them out."
            )
        return None, None
    if value not in domain.names:
        raise DomainError(
            f"measure={measure!r} needs value=, a Numeric column of the domain, which has "
            f"{list(domain.names)}; got {value!r}."
        )
    attribute = domain[value]
    if not isinstance(attribute, Numeric):
        raise DomainError(
            f"value={value!r} is declared Categorical; sums and means need a Numeric column, whose "
            "range bounds what a record adds."
        )
    if not attribute.summable:
        raise DomainError(f"value={value!r} holds dates, which have no sum; use measure='count'.")
    # Special values may lie outside of the range.
    reach = [Fraction(end) for end in (attribute.lower, attribute.upper, *attribute.special)]
    low, high = min(reach), max(reach)
    if measure == "sum":
        return BoundedGrid.of(low, high, resolution), None
    if low == high:
        raise DomainError(f"value={value!r} can only be {attribute.lower!r}: its mean is known.")
    return BoundedGrid.of(0, high - low, resolution), low


def _coded_attribute(attribute, grid, origin):
    """The summed column as it is coded: a code for each number of the grid, or each integer.

    Also a function from its codes to the integers that records add.
    """
    origin = origin or Fraction(0)
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
        Sums; of a mean the sums of the distances to the lower end and of those to the upper end,
        one after the other. A record that the dimensions cannot represent, or without a value, adds
        nothing.
    """
    coded, numbers = _coded_attribute(attribute, plan._grid, plan._origin)
    names = plan.domain.names
    again = free_name(value, {*names, *rows.names} if value in names else ())
    if again != value:
        rows = rows.with_again(value, again)
    domain = Domain({**{name: plan.domain[name] for name in names}, again: coded})
    codes = code_rows(rows, domain, contributions)
    dimensions = [cuboids.dimensions_of(mask) for mask in plan._masks]
    if plan._measure == "sum":
        (found,) = weighted_tables(codes, domain.shape, dimensions, lambda each: [numbers(each)])
        return dict(zip(plan._masks, found, strict=True))
    reach = plan._sensitivity

    def both(each):
        to_lower = numbers(each)
        return [to_lower, reach - to_lower]

    pairs = zip(*weighted_tables(codes, domain.shape, dimensions, both), strict=True)
    return {mask: np.stack(pair) for mask, pair in zip(plan._masks, pairs, strict=True)}


def weights_of_one(query, domain):
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


def check_counted(plan):
    """Raise ValueError for a cube that has no counts."""
    if plan._measure == "sum":
        raise ValueError(
            "A cube of sums does not know how many records there are. Fit one with measure='mean', "
            "which gives counts, sums and means."
        )


def with_value(plan, value):
    """The domain of a cube of means with the summed column, and the name of that.

    Its codes are the ends of the range. Queries cannot mean it: it has a name of its own.
    """
    low, high = map(float, plan._range)
    name = free_name(f"value of {value}", plan.domain.names)
    return Domain({**dict(plan.domain.items()), name: Categorical([high, low])}), name


def is_summed(plan, value, column):
    """Whether a sum is one of the summed column, and not of a dimension in a cube of counts."""
    if plan._measure == "count":
        if column is None:
            raise ValueError(
                "A cube of counts needs column=, the numeric dimension to be summed. For sums of "
                "another column fit one with measure='sum' or 'mean'."
            )
        return False
    if column not in (None, value):
        raise ValueError(f"This cube knows sums of {value!r} only, got column={column!r}.")
    return True


def plain_sums(model, plan, query, names=None, **how):
    """Sums of a cube of sums, where only the signs of their terms are known."""
    query = with_names(query, names)
    single = not isinstance(query, list | tuple)
    confidence = Confidence.asked(**{"return_interval": False, **how})
    if confidence is not None and confidence.population:
        raise ValueError(
            "A cube of sums does not know how much values vary, so it has no intervals for a "
            "population. Fit one with measure='mean'."
        )
    asked = [parse(each, plan.domain) for each in ([query] if single else query)]
    found = model.answer(asked)
    if confidence is None:
        return found.tolist()[0] if single else found
    bounds = -np.inf if plan._grid.lower < 0 else 0.0, np.inf if plan._grid.upper > 0 else 0.0
    results = linear(model, asked, found, confidence, bounds=bounds).results()
    return results[0] if single else results


# ------------------------------------------------------------------------------------------------
# Answers from released tables: post-processing of a plan and its published cuboids.
#
# Each function takes the `CubePlan` and ``tables``, the published cuboids by the names of their
# dimensions, as `DataCube` has them in ``plan_`` and ``tables_``. Conditions on dimensions come as
# ``weights``: for some axes of the domain the weight of each code, from `skdp.release.parse`.


# --- CubeModel: a released cube in the form in which synopses ask for counts, sums and means
#
# Weights are those of codes, by the number of the dimension. After the dimensions comes one more
# axis where values are summed. In a cube of sums it has one code, whose weight is a factor. In a
# cube of means it has two, the upper and the lower end of the range: a record with the value v
# counts at the upper end with the share that v has of the way there, and at the lower end with the
# rest.

# With more different weights of noise, an answer has so many terms that its law is near a Gaussian.
_MAX_TERMS = 2**20


class CubeModel(Covariances):
    """Answers and their errors, from the plan and the released tables of a cube.

    Parameters
    ----------
    plan : CubePlan
    tables : dict of tuple of str to ndarray
        Published cuboids, as ``DataCube.tables_``.
    """

    independent = True

    def __init__(self, plan, tables) -> None:
        self._plan = plan
        self._tables = tables
        self._d = len(plan.domain)

    @property
    def total(self) -> float:
        """Estimated number of records; nan where the cube does not tell."""
        if () not in self._tables or self._plan._measure == "sum":
            return math.nan
        return float(self._tables[()].ravel()[0])

    def view(self, axes) -> np.ndarray:
        """Estimated numbers of records for every combination of the codes of some dimensions."""
        table = self._tables[self._plan._names(self._mask(dict.fromkeys(axes)))]
        if self._plan._measure == "mean":
            table = table[0]
        return np.transpose(table, np.argsort(np.argsort(axes)))

    @property
    def covers(self) -> str:
        """What variances cover."""
        return "the noise"

    def answer(self, queries) -> np.ndarray:
        """Weighted sum of cells, one float for each query."""
        return added(queries, self._answer)

    def _answer(self, products) -> np.ndarray:
        found = []
        for weights in products:
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

    def reach(self, queries, level) -> Reach:
        """How far answers may be off, by the law of the noise."""
        return with_cut_bins(self.answer, self._reach, queries, level)

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
        plan, ends = self._plan, weights.get(self._d)
        if plan._measure == "mean":
            return (np.ones(2) if ends is None else ends) / float(plan._width)
        return np.ones(1) if ends is None else ends


# --- tables of a cuboid


def tidy_table(plan, tables, names, weights=None, levels=None):
    """One cuboid, sliced or grouped, with a row for each cell.

    Parameters
    ----------
    plan : CubePlan
    tables : dict of tuple of str to ndarray
    names : tuple of str
        Dimensions of the result, in this order.
    weights : dict of int to ndarray, default=None
        Conditions.
    levels : dict of str to int, default=None
        Level of the hierarchy to which a dimension of the result is grouped.
    """
    listed, shape, cells = _answer(plan, tables, names, weights or {}, levels or {})
    columns = {}
    for place, (name, values) in enumerate(zip(names, listed, strict=True)):
        columns[name] = values.take(_spread(np.arange(len(values)), shape, place))
    for name, table in cells.items():
        columns[free_name(name, columns)] = table.ravel()
    return pd.DataFrame(columns)


def all_cuboids(plan, tables, margin):
    """All cuboids in one table, one below the other."""
    found = [_answer(plan, tables, names, {}, {}) for names in tables]
    shapes = {names: shape for names, (_, shape, _) in zip(tables, found, strict=True)}
    sizes = [math.prod(shape) for shape in shapes.values()]
    columns = {
        name: _column_with_margin(name, attribute, shapes, margin)
        for name, attribute in plan.domain.items()
    }
    which = np.repeat(np.arange(len(sizes)), sizes)
    frame: dict[str, Any] = {
        free_name("cuboid", columns): pd.Categorical.from_codes(which, categories=titles(tables))
    }
    frame |= columns
    for name in (*_measured_columns(plan), "std_error"):
        frame[free_name(name, columns)] = np.concatenate(
            [cells[name].ravel() for _, _, cells in found]
        )
    return pd.DataFrame(frame)


def _column_with_margin(name, attribute, shapes, margin):
    """One dimension over several cuboids; ``margin`` where a cuboid does not have it."""
    values = list(values_of(attribute, np.arange(attribute.n_values)))
    if margin in values:
        raise ValueError(f"margin={margin!r} is a value of {name!r}; choose a different text.")
    # Categories are the margin, then the values; -1 is a missing value.
    codes = np.arange(1, attribute.size + 1, dtype=np.int32)
    if attribute.nullable:
        codes[-1] = -1
    parts = [
        _spread(codes, shape, names.index(name))
        if name in names
        else np.zeros(math.prod(shape), dtype=codes.dtype)
        for names, shape in shapes.items()
    ]
    categories: Any = [margin, *values]
    return pd.Categorical.from_codes(np.concatenate(parts), categories=categories)


# --- the answer to one query ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """How a query uses one dimension of the cuboid that answers it.

    Attributes
    ----------
    name : str
    size : int
        Number of codes.
    values : pandas array or None
        Values along this axis of the answer; None where the query sums over it.
    matrix : ndarray of shape (n_values, size) or None
        Weight of each code in each value of the answer; None if the codes stay as they are.
    """

    name: str
    size: int
    values: pd.api.extensions.ExtensionArray | None
    matrix: FloatArray | None

    def for_errors(self) -> FloatArray:
        """The matrix; where codes stay as they are, one cell, because all have the same error."""
        return np.eye(1, self.size) if self.matrix is None else self.matrix


def _answer(plan, tables, names, weights, levels):
    """Values along each axis, the shape of the answer, and what its cells hold, by name."""
    domain = plan.domain
    check_names(domain, names)
    involved = sorted({*map(domain.index, names), *weights})
    key = tuple(domain.names[axis] for axis in involved)
    mask = plan._published_mask(key)
    axes = [
        _axis_of(name, domain[name], name in names, weights.get(axis), levels)
        for axis, name in zip(involved, key, strict=True)
    ]
    std = np.sqrt(plan._box_variances(mask, [axis.for_errors() for axis in axes]))
    if plan._measure == "mean":
        counts, sums = (_weighted_sums(table, axes) for table in tables[key])
        cells = _means(plan, counts, sums, std)
    else:
        cells = {plan._measure: _weighted_sums(tables[key], axes), "std_error": std}
    kept = [axis for axis in axes if axis.values is not None]
    summed = tuple(place for place, axis in enumerate(axes) if axis.values is None)
    order = [[axis.name for axis in kept].index(name) for name in names]
    listed = [kept[place].values for place in order]
    shape = tuple(len(values) for values in listed)
    cells = {
        name: np.broadcast_to(np.squeeze(table, summed).transpose(order), shape)
        for name, table in cells.items()
    }
    return listed, shape, cells


def _measured_columns(plan):
    """Names of the estimates that tables of a cube hold."""
    return ("count", "mean") if plan._measure == "mean" else (plan._measure,)


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


def _axis_of(name, attribute, wanted, weight, levels):
    """One dimension: summed over, grouped, restricted to what the query asks for, or whole."""
    size = attribute.size
    if not wanted:
        return _Axis(name, size, None, weight[None, :])
    if name in levels:
        labels, groups = _groups_of(attribute, name, levels[name])
        matrix = np.zeros((len(labels), size))
        matrix[groups, np.arange(size)] = 1.0
        return _Axis(name, size, labels, matrix)
    if weight is not None:
        chosen = np.flatnonzero(weight)
        return _Axis(name, size, values_of(attribute, chosen), np.eye(size)[chosen] * weight)
    return _Axis(name, size, values_of(attribute, np.arange(size)), None)


def _weighted_sums(table, axes):
    """Sum a table over the codes of each axis, with the weights of its matrix."""
    for place, axis in enumerate(axes):
        if axis.matrix is not None:
            table = np.moveaxis(np.tensordot(table, axis.matrix, ([place], [1])), -1, place)
    return table


def _groups_of(attribute, name, level):
    """Labels of the groups of one level as a pandas array, and the group of each code."""
    levels = attribute.levels()
    place = as_integer(level, f"The level of {name!r}")
    if not -len(levels) <= place < len(levels):
        raise ValueError(
            f"{name!r} has the levels 0 to {len(levels) - 1}, or -{len(levels)} to -1, got {level}."
        )
    chosen = levels[place]
    return pd.array(chosen.labels, dtype=object), chosen.groups


def values_of(attribute, codes):
    """Values of codes as a pandas array; the missing cell is missing."""
    if not isinstance(attribute, Numeric):
        return attribute.decode(codes, None).array
    positions = np.where(codes < attribute.n_values, codes, -1)
    if attribute.integer and attribute.bins == attribute.upper - attribute.lower + 1:
        known = [*attribute.edges[:-1].tolist(), *attribute.special]
        if isinstance(attribute, Date | Datetime):
            return attribute.shown([*known, np.nan])[positions].array
        integers = pd.array(known, dtype="Int64")
        if attribute.nullable:
            return integers.take(positions, allow_fill=True)
        return integers.take(positions).astype("int64")
    labels: Any = attribute.labels()[: attribute.n_values]
    return pd.Categorical.from_codes(positions, categories=labels, ordered=True)


def _spread(values, shape, axis):
    """Entries along one axis, repeated for all cells in their order."""
    inner = math.prod(shape[axis + 1 :])
    return np.tile(np.repeat(values, inner), math.prod(shape[:axis]))
