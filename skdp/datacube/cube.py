"""`DataCube`: counts or means over every set of dimensions, consistent with each other.

The column of which a cube has means is an axis of `CubeModel` after the dimensions, with its ends
as codes; so its sums and means are asked for as those of a dimension are, through a synopsis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from .. import hierarchy
from .._validation import FloatArray, as_integer, check_choice, free_name, is_word
from ..algorithms import cuboids
from ..base import (
    AnswersStatistics,
    Likelihood,
    PrivateEstimator,
    full_domain,
    match_rows,
    warn_of_emptiness,
)
from ..domain import Categorical, Domain, Numeric
from ..domain.query import parse
from ..exceptions import DomainError
from ..expected import ExpectsErrors, require_columns
from ..mechanisms import discrete_laplace, discrete_laplace_variance
from ..mechanisms.laplace import BoundedGrid
from ..release import Synopsis
from ..release.model import KnownLaw, Reach, added, covariances_from
from ..release.result import group_labels
from ..tables import Coded, count_rows, weighted_tables
from .plan import (
    CONSISTENCIES,
    STRATEGIES,
    CubePlan,
    TupleKeys,
    as_names,
    as_order,
    check_names,
    cuboid_weights,
    find_sources,
    given_sources,
    known_tables,
    mask_of,
    names_of,
    titles,
    variance_limit,
)

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
    attribute = domain[value] if value in domain.names else None
    if not isinstance(attribute, Numeric) or not attribute.summable:
        raise DomainError(
            "measure='mean' needs value=, a Numeric column of the domain that holds no dates: its "
            f"range bounds what a record adds. The domain has {list(domain.names)}; got {value!r}."
        )
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


# ------------------------------------------------------------------------------------------------
# DataCube: parameters, fit and questions.


@dataclass(eq=False, repr=False, kw_only=True)
class DataCube(ExpectsErrors, AnswersStatistics, Likelihood, PrivateEstimator, TupleKeys):
    """All cuboids of a table: counts or means over every set of dimensions, with errors.

    A few cuboids, the sources, are measured with noise; all others are computed from them. The
    sources, and the division of epsilon among them, are planned from the public domain alone. The
    noisy tables are then made consistent by weighted least squares: cuboids agree wherever they
    overlap, and each one uses all sources above it.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    dimensions : sequence of str, default=None
        Columns of the domain that span the cube, at most 12 unless ``max_order`` is small. By
        default all except ``value``. Other columns are not read, but the table still has all
        columns of the domain: to leave some out, give ``domain.select([...])``.
    max_order : int, default=None
        Publish cuboids of at most this many dimensions; by default all. A small value allows cubes
        whose table over all dimensions does not fit into memory.
    strategy : {"auto", "optimized", "bmax", "pmost", "all", "base"}, CubePlan or mapping, \
            default="auto"
        How the sources are chosen. "optimized" finds sources and unequal budgets with the least
        variance after least squares; it plans for some seconds. "bmax" finds a few sources with
        equal budgets that keep the largest (or mean) variance small. "auto" takes the better of
        these two ("bmax" unless ``consistency="l2"``). "pmost" finds sources that bring as many
        cuboids as possible within ``max_variance``. "all" measures every published cuboid, "base"
        the table over all dimensions. A `CubePlan`, or a mapping of tuples of names to shares of
        epsilon, is used as it is.
    objective : {"max", "mean"}, default="max"
        What "auto", "optimized" and "bmax" minimise: the largest cell variance of a cuboid, or the
        mean over all cuboids, weighted by ``weights``.
    consistency : {"l2", "l1", "linf"} or None, default="l2"
        How the sources are combined. "l2" is weighted least squares: fast, unbiased, and with the
        least variance of all linear estimates. "l1" and "linf" minimise the sum and the maximum
        of the residuals, each divided by the scale of its noise, by a linear program of at most
        100,000 measured cells; their standard errors are simulated. None sums each cuboid from
        its best source alone.
    measure : {"count", "mean"}, default="count"
        What a cell holds: the number of records, or the mean of the column ``value``, with counts
        and sums of the records that have a value. The error of a mean is that of its distance to
        the ends of the range.
    value : str, default=None
        The summed column, a `Numeric` of the domain. Its range bounds what each record adds; a
        missing value adds nothing.
    resolution : float, default=None
        Width of the grid to which each value is rounded before it is summed; see
        :func:`skdp.mechanisms.bounded_sum`.
    max_variance : float, default=None
        Bound on the cell variance, for ``strategy="pmost"`` only.
    weights : mapping of tuple of str to float, default=None
        Weight of each cuboid for ``objective="mean"`` and for "pmost"; 1 for those not named. The
        weights change the plan only; every cuboid is still published.
    known : mapping of tuple of str to array-like, default=None
        Cuboids that are public already, such as totals that another office published: their counts,
        with one axis for each dimension in the order of the names. They have no error, nothing that
        follows from them is measured, and all cuboids agree with them. Needs ``consistency="l2"``
        and ``measure="count"``. Counts of the records themselves are not public.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".

    Attributes
    ----------
    domain_ : Domain
        The dimensions.
    plan_ : CubePlan
        Sources, budgets, and the standard error of each cuboid; all of it is public.
    sources_ : dict of tuple of str to ndarray of int64
        The release itself: a noisy table for each measured cuboid, with one axis for each
        dimension. Of means a first axis of length two: sums of the distances from the lower end of
        the range, and of those to the upper end, in units of ``resolution``.
    tables_ : dict of tuple of str to ndarray of float64
        The published cuboids, computed from ``sources_``. Of means a first axis of length two:
        counts, and sums.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: one for each source, or, with more than 20 sources, one for each
        number of dimensions.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters, and the plan that follows from them. *Released*: the noisy sources; all other
    cuboids are computed from these. *Cost*: a record is in one cell of each source, so a source
    costs its own budget, and the budgets add up to epsilon. The authors' slides compute each
    cuboid from one source with equal budgets and make cuboids consistent afterwards; here least
    squares weights all sources by their noise, in closed form, and "optimized" plans for that.

    Counts are not rounded and may be negative, so that they stay unbiased and add up.

    *Means*: a record whose value is the share p of the way from the lower to the upper end of the
    range adds p to one table and 1 - p to another, 1 in all whatever its value is. So both are
    measured with noise at the whole budget of a source; their sum is the count.

    References
    ----------
    B. Ding, M. Winslett, J. Han, Z. Li, "Differentially Private Data Cubes: Optimizing Noise
    Sources and Consistency", SIGMOD 2011.
    B. Barak et al., "Privacy, accuracy, and consistency too: a holistic solution to contingency
    table release", PODS 2007.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import Categorical, DataCube, Domain
    >>> smokers = ["no", "no", "yes", "no"] * 250
    >>> patients = pd.DataFrame({"sex": ["F", "M"] * 500, "smoker": smokers})
    >>> domain = Domain({"sex": Categorical(["F", "M"]), "smoker": Categorical(["no", "yes"])})
    >>> cube = DataCube(epsilon=1.0, domain=domain).fit(patients)
    >>> cube.cuboid(["sex", "smoker"]).columns.to_list()
    ['sex', 'smoker', 'count', 'std_error']
    """

    domain: Any = None
    dimensions: Any = None
    max_order: Any = None
    strategy: Any = "auto"
    objective: Any = "max"
    consistency: Any = "l2"
    measure: Any = "count"
    value: Any = None
    resolution: Any = None
    max_variance: Any = None
    weights: Any = None
    known: Any = None
    max_rows_per_id: int | None = None
    privacy_id: str | None = None

    # -- the plan and the release

    def plan(self) -> CubePlan:
        """Plan what ``fit`` would measure and how accurate it would be; reads no data.

        Returns
        -------
        CubePlan
            The search for sources is kept for the next ``fit`` of any cube with the same
            parameters in this process; give the plan as ``strategy=`` to be sure that it is used.

        Raises
        ------
        DomainError, TypeError, ValueError
            If a parameter is invalid, or the cube is too large for planning or for memory.
        """
        return self._plan(require_columns(self.domain))

    def _unit_of_errors(self):
        return "records" if self.value is None else f"units of {self.value}"

    def _formula_errors(self, n):
        """Errors of cells by the number of their dimensions, from `plan`."""
        plan = self.plan()
        planned = plan.to_frame()
        planned = planned[planned["published"]]
        variances = planned["std_error"] ** 2
        if self.measure == "mean":
            # Of a cell that holds its share of the records; no mean is off by more than the range.
            low, high = plan._range
            variances *= (planned["cells"] / n) ** 2
            variances = variances.clip(upper=((high - low) / 2) ** 2)
        means = variances.groupby(planned["order"]).mean()
        words: dict[Any, str] = {0: "total", 1: "cell, one column"}
        return {
            words.get(order, f"cell, {order} columns"): math.sqrt(variance)
            for order, variance in means.items()
        }

    def fit(self, X, y=None) -> Self:
        """Charge epsilon, then release the noisy sources and compute all cuboids.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            One row per record: NumPy array; pandas, Polars or PyArrow table; or a lazy frame of
            Polars, DuckDB, Dask or PySpark, which is counted in its engine. Columns are matched
            to the domain by name, those of an array by position. Columns of a frame that the
            domain does not declare are not read.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter is invalid, or the cube is too large; nothing is spent.
            Values never raise: numbers out of range are clipped, an unknown category becomes
            `other` where declared, and a record that the dimensions cannot represent is skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        rows, domain = match_rows(
            X,
            None,
            self.domain,
            None,
            lazy=True,
            privacy_id=self._privacy_id(),
            spare=True,
            of=self,
        )
        plan = self._plan(domain)
        if self.value is not None:
            check_value(plan, domain[self.value])
        loss, source = self._spend(rows, plan._parts())
        contributions = self._contributions(loss, source, rows, domain)
        exact = self._exact_tables(plan, rows, domain, contributions)
        # Privacy. A record adds 1 to one cell of each source of counts. Of a mean there are two
        # tables, and a record adds k to a cell of the one and K - k to that cell of the other,
        # K = `_sensitivity` in all, whatever the record is. So source C with discrete Laplace noise
        # for K at eps_C costs eps_C, and the sources, asked one after the other about the same
        # records, cost the sum of the eps_C: the parts of `loss`. Everything below is computed from
        # the noisy tables and the public plan.
        epsilon = loss.of_record.epsilon
        noisy = {
            mask: discrete_laplace(
                table, plan._masks[mask] * epsilon, plan._sensitivity, random_state=source
            )
            for mask, table in exact.items()
        }
        published = plan._published_tables(noisy)
        self._remember_columns(X, rows)
        self.domain_ = plan.domain
        self.plan_ = plan
        self.sources_ = {plan._names(mask): table for mask, table in noisy.items()}
        self.tables_ = {plan._names(mask): table for mask, table in published.items()}
        self.privacy_loss_ = loss
        total = self.count(return_interval=True)
        warn_of_emptiness(self, total.value, total.std)
        return self

    def _exact_tables(self, plan, rows, domain, contributions):
        """Exact integers in the cells of each source, by its mask: private."""
        if self.value is None:
            table = count_rows(rows, plan.domain, contributions, together=())
            dimensions = [cuboids.dimensions_of(mask) for mask in plan._masks]
            tables = table.regrouped_many([(axes, [None] * len(axes)) for axes in dimensions])
            return dict(zip(plan._masks, tables, strict=True))
        return exact_sums(rows, plan, self.value, domain[self.value], contributions)

    # -- questions

    def sum(self, column=None, query=None, **how) -> Any:
        """Estimate the sum of a column over the records that satisfy a query.

        Parameters
        ----------
        column : str, default=None
            ``value``, the default, or a numeric dimension.
        query
            As for :meth:`count`. The dimensions of a query, or with ``or`` those of each of its
            parts, must be those of a published cuboid.
        **how
            As for :meth:`skdp.Synopsis.sum`.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            Of ``value`` without error but the noise. Of a dimension as for
            :meth:`skdp.Synopsis.sum`, where numbers may lie anywhere in their bins. An interval
            covers all of the noise, by its exact law; with ``consistency`` "l1" or "linf" about,
            by a Gaussian law with simulated errors.

        Raises
        ------
        ValueError
            If a query cannot be understood, its cuboid is not published, or ``column`` is missing.
        """
        asked, name = self._asked_of(column)
        return asked.sum(name, query, **how)

    def mean(self, column=None, query=None, **how) -> Any:
        """Estimate the mean of a column over the records that satisfy a query.

        Parameters
        ----------
        column, query
            As for :meth:`sum`.
        **how
            As for :meth:`skdp.Synopsis.mean`.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            Within the range of the column; nan where the number of records is not positive.

        Raises
        ------
        ValueError
            As for `sum`.
        """
        asked, name = self._asked_of(column)
        return asked.mean(name, query, **how)

    def aggregate(self, by, column=None, query=None, **how) -> pd.DataFrame:
        """Counts, sums and means of groups; see :meth:`skdp.Synopsis.aggregate`.

        Parameters
        ----------
        by, query, **how
            As there. The cuboid of all dimensions that are named must be published.
        column : str, default=None
            A numeric dimension or ``value``; None counts.

        Returns
        -------
        DataFrame
        """
        asked, name = (self._asked(), None) if column is None else self._asked_of(column)
        return asked.aggregate(by, name, query, **how)

    def _asked(self):
        """Counts of the dimensions as a synopsis."""
        check_is_fitted(self)
        model: Any = CubeModel(self.plan_, self.tables_)
        return Synopsis(self.plan_.domain, model, privacy_loss=self.privacy_loss_)

    def _asked_of(self, column):
        """What answers questions on a column, and its name there: `value` has one of its own."""
        asked = self._asked()
        if column is None and self.value is None:
            raise ValueError(
                "A cube of counts needs column=, the numeric dimension to be summed. For sums of "
                "another column fit one with measure='mean'."
            )
        if column not in (None, self.value):
            return asked, column
        domain, name = with_value(self.plan_, self.value)
        return Synopsis(domain, asked.model, privacy_loss=self.privacy_loss_), name

    # -- likelihoods

    def score_samples(self, X, y=None) -> FloatArray:
        """Logarithm of the probability of each row in the release, in nats.

        By the cuboid of all dimensions. Where ``max_order`` leaves that out, groups of so many
        dimensions, in their order, are taken as independent. A result for private records is not
        private.

        Parameters
        ----------
        X : as for ``fit``
        y : Ignored

        Returns
        -------
        ndarray of shape (n_rows,)
            Never below that of one record spread over all cells of the dimensions.
        """
        return super().score_samples(X)

    def _scored_domain(self):
        return self.domain_, self._asked().total

    def _scored_codes(self, rows, y, domain):
        if not rows.named:
            rows = full_domain(self.domain, rows).with_names(rows, [])
        rows, domain = match_rows(rows, None, domain, None, structure=True, spare=True)
        return domain.encode_columns(rows)

    def _expected_counts(self, codes):
        model, domain = self._asked().model, self.domain_
        order = len(domain) if self.plan_.max_order is None else self.plan_.max_order
        total = max(model.total, 1.0)
        if not order:
            return np.full(len(codes), total / domain.size)
        counts = np.full(len(codes), total)
        for first in range(0, len(domain), order):
            axes = [*range(first, min(first + order, len(domain)))]
            cells = np.maximum(model.view(axes), 0.0)
            counts *= cells[(*codes[:, axes].T,)] / max(cells.sum(), 1.0)
        return counts

    # -- tables

    def cuboid(self, dimensions=(), query=None, *, levels=None) -> pd.DataFrame:
        """One cuboid as a tidy table: whole, of some records, or coarser.

        Parameters
        ----------
        dimensions : str or sequence of str, default=()
            Dimensions in the order wanted; the total by default.
        query : dict or str, default=None
            A slice: conditions on dimensions, as for :meth:`skdp.Synopsis.count`, without ``or``
            between columns. Of a dimension that is also in the result only the values asked for are
            listed.
        levels : mapping of str to int, default=None
            A roll-up: the level of a dimension in the attribute's hierarchy
            (:meth:`skdp.Categorical.levels`). 1 is the coarsest grouping, -1 the finest, -2 the one
            above.

        Returns
        -------
        DataFrame
            One row for each cell: a column for each dimension, with values as in
            :meth:`aggregate` or the labels of its groups; ``count`` (or ``count`` and ``mean``);
            and ``std_error``, in a cube of means that of the mean. Errors are those of the sums
            shown. The cuboid of all dimensions of result and query together must be published.

        Raises
        ------
        ValueError
            If a name, level or the query is invalid, or the cuboid is not published.
        """
        check_is_fitted(self)
        return tidy_table(self.plan_, self.tables_, as_names(dimensions), query, levels)

    def to_frame(self, *, margin="*") -> pd.DataFrame:
        """All cuboids in one tidy table, ready for a CSV file.

        Parameters
        ----------
        margin : str, default="*"
            Entry in the column of a dimension that the cuboid does not have.

        Returns
        -------
        DataFrame
            ``cuboid``, a column for each dimension, ``count`` (or ``count`` and ``mean``), and
            ``std_error``.

        Raises
        ------
        ValueError
            If ``margin`` is a value of a dimension.
        """
        check_is_fitted(self)
        return all_cuboids(self.plan_, self.tables_, margin)

    # -- the plan

    def _plan(self, domain):
        """The plan over a domain that names every column; from public facts alone."""
        epsilon = self._record_epsilon()
        check_choice(self.objective, "objective", ("max", "mean"))
        check_choice(self.consistency, "consistency", CONSISTENCIES)
        check_choice(self.measure, "measure", ("count", "mean"))
        domain = domain.resolved(self._most_bins)
        grid, origin = value_grid(domain, self.measure, self.value, self.resolution)
        domain = self._select(domain)
        order = as_order(self.max_order, domain)
        known = known_tables(self.known, domain, self.consistency, self.measure)
        masks = tuple(mask_of(domain, names) for names in known)
        lattice = cuboids.lattice(domain.shape, order, masks)
        for names, mask in zip(known, masks, strict=True):
            if mask not in lattice.position:
                raise ValueError(f"known[{names!r}] has more dimensions than this cube can use.")
        if known and not (lattice.published & (lattice.freedom > 0)).any():
            raise ValueError("All cuboids follow from known=: there is nothing to measure.")
        label, sources = self._choose_sources(domain, lattice, epsilon, grid)
        plan = CubePlan(
            domain, epsilon, sources, label, order, self.consistency, grid, origin, known
        )
        # Noise that does not fit into 64 bits is refused here, before anything is spent.
        _ = plan._noise
        if self.consistency in ("l1", "linf"):
            plan._simulate()
        return plan

    def _select(self, domain):
        """The domain of the dimensions."""
        if self.dimensions is None:
            names = [name for name in domain.names if name != self.value]
            if not names:
                raise DomainError(f"The domain has no column except value={self.value!r}.")
            return domain.select([*names, *domain.follow_from(names)])
        names = as_names(self.dimensions)
        if not names:
            raise ValueError("dimensions is empty: name at least one column of the domain.")
        check_names(domain, names)
        return domain.select([*names, *domain.follow_from(names)])

    def _choose_sources(self, domain, lattice, epsilon, grid):
        """How the sources were chosen, and the share of epsilon of each."""
        given = self.strategy
        if isinstance(given, CubePlan):
            if given.domain != domain:
                raise ValueError(
                    f"The plan given as strategy is for the dimensions {list(given.domain.names)} "
                    f"of another domain; this cube has {list(domain.names)}. Make a plan for it."
                )
            return given.strategy, given_sources(given.sources, domain, lattice)
        if isinstance(given, Mapping):
            return "given", given_sources(given, domain, lattice)
        if not any(is_word(given, strategy) for strategy in STRATEGIES):
            listed = ", ".join(map(repr, STRATEGIES))
            raise ValueError(f"strategy must be {listed}, a CubePlan or a mapping, got {given!r}.")
        weights = cuboid_weights(self.weights, domain, lattice, given, self.objective)
        limit = variance_limit(self.max_variance, given)
        sensitivity, step = (1, 1.0) if grid is None else (grid.sensitivity, float(grid.step))

        def noise_of(count):
            return step**2 * discrete_laplace_variance(epsilon / count, sensitivity)

        label, found = find_sources(
            lattice,
            given,
            weights=weights,
            limit=limit,
            noise_of=noise_of,
            consistent=self.consistency == "l2",
        )
        shares = zip(found.masks, found.shares, strict=True)
        return label, {names_of(domain, mask): share for mask, share in shares}
