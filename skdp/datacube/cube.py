"""`DataCube`: a private data cube, and its files: metadata as JSON, an array for each source.

A cube is computed again from its sources when it is read. With "l1" or "linf" the file holds all
published tables too, because another solver might find another solution.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .._validation import check_choice, is_word
from ..algorithms import cuboids
from ..base import AnswersStatistics, PrivateEstimator, full_domain, match_rows, warn_of_emptiness
from ..domain import Domain
from ..exceptions import DomainError
from ..expected import ExpectsErrors
from ..mechanisms import discrete_laplace, discrete_laplace_variance
from ..mechanisms.laplace import BoundedGrid
from ..release import Synopsis
from ..release.files import (
    MOST_JSON,
    TupleKeys,
    fraction,
    loss_from_data,
    loss_to_data,
    read_archive,
    write_archive,
)
from ..release.result import of_a_column
from ..tables import count_rows
from . import tables
from .plan import (
    CONSISTENCIES,
    STRATEGIES,
    CubePlan,
    as_names,
    as_order,
    check_names,
    cuboid_weights,
    find_sources,
    given_sources,
    mask_of,
    names_of,
    variance_limit,
)
from .tables import CubeModel, check_value, exact_sums, value_grid

_FORMAT = "skdp cube"
_VERSION = 1


def write(path, cube):
    """Write a fitted cube."""
    plan, grid = cube.plan_, cube.plan_._grid
    value = None
    if grid is not None:
        origin = plan._origin or 0
        ends = {"lower": origin + grid.lower, "upper": origin + grid.upper, "step": grid.step}
        value = {"name": cube.value, **{name: _exact_text(end) for name, end in ends.items()}}
        if plan._origin is not None:
            value["measure"] = "mean"
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        "domain": json.loads(plan.domain.to_json()),
        "privacy": loss_to_data(cube.privacy_loss_),
        "max_order": plan.max_order,
        "strategy": plan.strategy,
        "consistency": plan.consistency,
        "value": value,
        "sources": [
            {"dimensions": list(names), "share": str(share)}
            for names, share in plan.sources.items()
        ],
    }
    arrays = {f"source{i}": cube.sources_[names] for i, names in enumerate(plan.sources)}
    if plan._simulated is not None:
        metadata["cuboids"] = [list(names) for names in cube.tables_]
        arrays["interactions"] = plan._simulated
        arrays |= {f"cuboid{i}": table for i, table in enumerate(cube.tables_.values())}
    write_archive(path, metadata, arrays)


def read(path, make, max_bytes, max_json):
    """Read a fitted cube; ``make`` is the class."""

    def build(metadata, arrays):
        return _cube(make, metadata, arrays)

    return read_archive(path, _FORMAT, _VERSION, build, max_bytes, max_json)


def _cube(make, metadata, arrays):
    """The fitted cube; any error raised here means that the file is damaged."""
    loss = loss_from_data(metadata["privacy"])
    plan = _plan(metadata, loss)
    noisy = {
        mask: _checked(arrays, f"source{i}", _shape(plan, mask), "iu").astype(np.int64)
        for i, mask in enumerate(plan._masks)
    }
    cube = make(
        epsilon=_as_written(loss.epsilon),
        domain=plan.domain,
        max_order=plan.max_order,
        strategy=plan,
        consistency=plan.consistency,
        measure=plan._measure,
        value=None if plan._grid is None else str(metadata["value"]["name"]),
    )
    tables = None
    if plan.consistency in ("l1", "linf"):
        plan._simulated = _checked(arrays, "interactions", (len(plan._lattice),), "f")
        if not (np.isfinite(plan._simulated).all() and (plan._simulated >= 0).all()):
            raise ValueError("a variance is negative or not finite")
        tables = _stored_tables(plan, metadata, arrays)
    cube._publish(plan, noisy, tables)
    cube.privacy_loss_ = loss
    cube.n_features_in_ = len(plan.domain)
    return cube


def _plan(metadata, loss):
    """The plan that the metadata describe, without what was simulated."""
    domain = Domain.from_json(json.dumps(metadata["domain"]))
    value = metadata["value"]
    grid = origin = None
    if value is not None:
        lower, upper, step = (_signed_fraction(value[name]) for name in ("lower", "upper", "step"))
        if "measure" in value:
            check_choice(value["measure"], "measure", ("mean",))
            origin, lower, upper = lower, Fraction(0), upper - lower
        grid = BoundedGrid.of(lower, upper, step)
    sources = {
        tuple(source["dimensions"]): fraction(source["share"]) for source in metadata["sources"]
    }
    if sum(sources.values()) != 1 or not all(share > 0 for share in sources.values()):
        raise ValueError("the shares of its sources do not sum to 1")
    check_choice(metadata["consistency"], "consistency", CONSISTENCIES)
    plan = CubePlan(
        domain,
        loss.of_record.epsilon,
        sources,
        str(metadata["strategy"]),
        as_order(metadata["max_order"], domain),
        metadata["consistency"],
        grid,
        origin=origin,
    )
    if dict(plan._parts()) != dict(loss.of_record.parts):
        raise ValueError("its privacy loss is not that of its sources")
    return plan


def _stored_tables(plan, metadata, arrays):
    """Published tables, by mask, where they cannot be computed again."""
    masks = [mask_of(plan.domain, tuple(names)) for names in metadata["cuboids"]]
    expected = {int(plan._lattice.masks[place]) for place in plan._available}
    if set(masks) != expected or len(masks) != len(expected):
        raise ValueError("it does not hold the cuboids that its sources determine")
    return {
        mask: _checked(arrays, f"cuboid{i}", _shape(plan, mask), "f")
        for i, mask in enumerate(masks)
    }


def _shape(plan, mask):
    """Shape of a table; of means there are two."""
    shape = plan._lattice.shape(mask)
    return (2, *shape) if plan._measure == "mean" else shape


def _checked(arrays, name, shape, kinds):
    """An array of the shape and type that the plan expects."""
    array = arrays[name]
    if array.shape != tuple(shape) or array.dtype.kind not in kinds:
        raise ValueError(f"its array {name} has the shape {array.shape} and type {array.dtype}")
    return array


def _exact_text(number):
    """An exact number as text; `fraction` reads it without its sign."""
    return ("-" if number < 0 else "") + str(abs(number))


def _signed_fraction(text):
    if isinstance(text, str) and text.startswith("-"):
        return -fraction(text[1:])
    return fraction(text)


def _as_written(epsilon):
    """An exact epsilon as the number that a user would write, where there is one."""
    written = float(epsilon)
    return written if Fraction(repr(written)) == epsilon else epsilon


# ------------------------------------------------------------------------------------------------
# DataCube: counts, sums or means over every set of dimensions, consistent with each other.


@dataclass(eq=False, repr=False, kw_only=True)
class DataCube(ExpectsErrors, AnswersStatistics, PrivateEstimator, TupleKeys):
    """All cuboids of a table: counts, sums or means over every set of dimensions, with errors.

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
        default all except ``value``. Other columns are not read.
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
    measure : {"count", "sum", "mean"}, default="count"
        What a cell holds: the number of records, or the sum or the mean of the column ``value``.
        "mean" gives counts and sums too, of the records with a value. Its error is that of the
        distance from the mean to the ends of the range: smaller than that of a sum, divided by a
        count, where numbers are far from zero.
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
    verbose : int, default=0
        Print the progress of planning to standard error.

    Attributes
    ----------
    domain_ : Domain
        The dimensions.
    plan_ : CubePlan
        Sources, budgets, and the standard error of each cuboid; all of it is public.
    sources_ : dict of tuple of str to ndarray of int64
        The release itself: a noisy table for each measured cuboid, with one axis for each
        dimension. Sums are in units of their resolution. Of means a first axis of length two:
        sums of the distances from the lower end of the range, and of those to the upper end.
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
    max_rows_per_id: int | None = None
    privacy_id: str | None = None
    verbose: Any = 0

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
        if isinstance(self.domain, list):
            domain = Domain.for_array(self.domain, len(self.domain))
        elif self.domain is None or isinstance(self.domain, Domain | Mapping):
            # Such a domain names its columns, so no rows are needed.
            domain = full_domain(self.domain, None)  # type: ignore[arg-type]
        else:
            raise DomainError(
                "One attribute for all columns of an array does not say how many columns there "
                "are. For a plan without data give a list of attributes, or a Domain."
            )
        return self._plan(domain)

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
            to the domain by name, those of an array by position.
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
            X, None, self.domain, None, lazy=True, privacy_id=self._privacy_id(), of=self
        )
        plan = self._plan(domain)
        if plan._measure != "count":
            check_value(plan, domain[self.value])
        loss, source = self._spend(rows, plan._parts())
        contributions = self._contributions(loss, source, rows, domain)
        exact = self._exact_tables(plan, rows, domain, contributions)
        # Privacy. A record adds to one cell of each source: 1 to a count, an integer of at most
        # K = `_sensitivity` to a sum, whatever the record is. Of a mean there are two tables, and
        # a record adds k to a cell of the one and K - k to that cell of the other, K in all. So
        # source C with discrete Laplace noise for K at eps_C costs eps_C, and the sources, asked
        # one after the other about the same records, cost the sum of the eps_C: the parts of
        # `loss`. Everything below is computed from the noisy tables and the public plan.
        epsilon = loss.of_record.epsilon
        noisy = {
            mask: discrete_laplace(
                table, plan._masks[mask] * epsilon, plan._sensitivity, random_state=source
            )
            for mask, table in exact.items()
        }
        self._publish(plan, noisy)
        self._remember_columns(X, rows)
        self.privacy_loss_ = loss
        if plan._measure != "sum" and () in self.tables_:
            total = self.count(return_interval=True)
            warn_of_emptiness(self, total.value, total.std)
        return self

    def _exact_tables(self, plan, rows, domain, contributions):
        """Exact integers in the cells of each source, by its mask: private."""
        if plan._measure == "count":
            table = count_rows(rows, plan.domain, contributions, together=())
            dimensions = [cuboids.dimensions_of(mask) for mask in plan._masks]
            tables = table.regrouped_many([(axes, [None] * len(axes)) for axes in dimensions])
            return dict(zip(plan._masks, tables, strict=True))
        return exact_sums(rows, plan, self.value, domain[self.value], contributions)

    def _publish(self, plan, noisy, published=None):
        """Set the released attributes from noisy tables; ``published`` where they are known."""
        if published is None:
            published = plan._published_tables(noisy)
        self.domain_ = plan.domain
        self.plan_ = plan
        self.sources_ = {plan._names(mask): table for mask, table in noisy.items()}
        self.tables_ = {plan._names(mask): table for mask, table in published.items()}

    # -- questions

    @of_a_column
    def sum(self, column=None, query=None, **how) -> Any:
        """Estimate the sum of a column over the records that satisfy a query.

        Parameters
        ----------
        column : str, default=None
            ``value``, the default; in a cube of counts a numeric dimension.
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
            If a query cannot be understood or its cuboid is not published, or if the cube does not
            know the sums of the column.
        """
        check_is_fitted(self)
        plan = self.plan_
        if not tables.is_summed(plan, self.value, column):
            return self._asked().sum(column, query, **how)
        if plan._measure == "sum":
            return tables.plain_sums(CubeModel(plan, self.tables_), plan, query, **how)
        asked, name = self._asked_of_value()
        return asked.sum(name, query, **how)

    @of_a_column
    def mean(self, column=None, query=None, *, by=None, **how) -> Any:
        """Estimate the mean of a column over the records that satisfy a query.

        Parameters
        ----------
        column, query, **how
            As for :meth:`sum`.
        by : str or sequence of str, default=None
            Dimensions that make groups; the result is then that of :meth:`aggregate`.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            Within the range of the column; nan where the number of records is not positive. With
            ``interval="population"`` the values of ``value`` are taken to vary as much as their
            range and their mean allow.

        Raises
        ------
        ValueError
            As for `sum`; a cube of sums knows no means.
        """
        if by is not None:
            return self.aggregate(by, column, query, **how)
        check_is_fitted(self)
        if not tables.is_summed(self.plan_, self.value, column):
            return self._asked().mean(column, query, **how)
        asked, name = self._asked_of_value()
        return asked.mean(name, query, **how)

    def aggregate(self, by, column=None, query=None, **how) -> pd.DataFrame:
        """Counts, sums and means of groups, with intervals.

        Parameters
        ----------
        by : str or sequence of str
            Dimensions whose codes, or ``bands``, make the groups.
        column : str, default=None
            A numeric dimension, or in a cube of means ``value``.
        query : dict, str or None, default=None
        **how
            As for :meth:`skdp.Synopsis.aggregate`: ``bands``, ``return_interval`` and others.

        Returns
        -------
        DataFrame
            As from :meth:`skdp.Synopsis.aggregate`.

        Raises
        ------
        ValueError
            As there, if the cuboid of all dimensions that are named is not published, or for a cube
            of sums.
        """
        if column is None or column != self.value:
            return self._asked().aggregate(by, column, query, **how)
        asked, name = self._asked_of_value()
        return asked.aggregate(by, name, query, **how)

    def _asked(self):
        """Counts of the dimensions as a synopsis."""
        check_is_fitted(self)
        tables.check_counted(self.plan_)
        return Synopsis(self.plan_.domain, CubeModel(self.plan_, self.tables_))  # type: ignore[arg-type]

    def _asked_of_value(self):
        """A cube of means as a synopsis with the summed column, and the name of that."""
        model = self._asked().model
        domain, name = tables.with_value(self.plan_, self.value)
        return Synopsis(domain, model), name

    # -- tables

    def cuboid(self, dimensions=()) -> pd.DataFrame:
        """One cuboid as a tidy table.

        Parameters
        ----------
        dimensions : str or sequence of str, default=()
            Dimensions in the order wanted; the total by default.

        Returns
        -------
        DataFrame
            One row for each cell: a column for each dimension, ``count`` (or ``sum``, or ``count``
            and ``mean``), and ``std_error``, in a cube of means that of the mean.
            Categories are as declared; numbers are integers where each has a bin of
            its own, otherwise the text of the bin, ordered. The cell of missing values is missing.

        Raises
        ------
        ValueError
            If a name is unknown or the cuboid is not published.
        """
        check_is_fitted(self)
        return tables.tidy_table(self.plan_, self.tables_, as_names(dimensions))

    def slice(self, query, dimensions=None) -> pd.DataFrame:
        """A cuboid of the records that satisfy a query.

        Parameters
        ----------
        query : dict or str
            Conditions on dimensions of the cube, as for :meth:`skdp.Synopsis.count`.
        dimensions : str or sequence of str, default=None
            Dimensions of the result; by default those that the query does not mention. For a
            dimension that is also in the query, only the values asked for are listed.

        Returns
        -------
        DataFrame
            As :meth:`cuboid`, with standard errors of the sums shown. The cuboid over all
            dimensions of query and result together must be published.

        Raises
        ------
        ValueError
            If a name or the query is invalid, or the cuboid is not published.
        """
        check_is_fitted(self)
        weights = tables.weights_of_one(query, self.domain_)
        if dimensions is None:
            dimensions = [
                name for axis, name in enumerate(self.domain_.names) if axis not in weights
            ]
        return tables.tidy_table(self.plan_, self.tables_, as_names(dimensions), weights)

    def rollup(self, dimensions, levels) -> pd.DataFrame:
        """A cuboid with some dimensions left out, or coarser.

        Parameters
        ----------
        dimensions : str or sequence of str
            Dimensions of the cuboid to start from.
        levels : str, sequence of str, or mapping of str to int
            Dimensions to sum over; or for each dimension its level in the attribute's hierarchy
            (:meth:`skdp.Categorical.levels`): 0 sums over it, 1 is the coarsest grouping, -1 the
            finest, -2 the one above.

        Returns
        -------
        DataFrame
            As :meth:`cuboid`, with the labels of the groups and their standard errors.

        Raises
        ------
        ValueError
            If a name or level does not exist or the cuboid is not published.
        """
        check_is_fitted(self)
        names = as_names(dimensions)
        if not isinstance(levels, Mapping):
            levels = dict.fromkeys(as_names(levels), 0)
        absent = [name for name in levels if name not in names]
        if absent:
            raise ValueError(f"levels names {absent}, which are not among {list(names)}.")
        check_names(self.domain_, names)
        kept = tuple(name for name in names if levels.get(name) != 0)
        finer = {name: level for name, level in levels.items() if level != 0}
        return tables.tidy_table(self.plan_, self.tables_, kept, levels=finer)

    def to_frame(self, *, margin="*") -> pd.DataFrame:
        """All cuboids in one tidy table, ready for a CSV file.

        Parameters
        ----------
        margin : str, default="*"
            Entry in the column of a dimension that the cuboid does not have.

        Returns
        -------
        DataFrame
            ``cuboid``, a column for each dimension, ``count`` (or ``sum``), ``std_error``. All
            except the last two are pandas categories, to save memory.

        Raises
        ------
        ValueError
            If ``margin`` is a value of a dimension.
        """
        check_is_fitted(self)
        return tables.all_cuboids(self.plan_, self.tables_, margin)

    # -- files

    def save(self, path) -> None:
        """Write the release to one file; it is safe to publish.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced once the new one is complete.

        Notes
        -----
        The file is a zip archive of ``metadata.json`` (UTF-8: ``format`` "skdp cube", ``version``
        1, ``domain`` of the dimensions, ``privacy`` with epsilon and parts as exact fractions and
        ``seeded``, ``max_order``, ``strategy``, ``consistency``, ``value`` with name, bounds and
        step of a sum or null, for means also ``measure`` "mean", ``sources`` as a list of
        dimensions and exact shares) and of one array in NumPy's format, numbers only, for each
        source, ``source0.npy`` and so on. With
        "l1" or "linf" also ``interactions.npy``, their simulated variances, and
        ``cuboid0.npy`` and so on, the tables of ``cuboids``, because another solver might find
        another solution. It never holds a seed. Equal releases give equal bytes.
        """
        check_is_fitted(self)
        write(path, self)

    @classmethod
    def load(cls, path, *, max_bytes=1 << 31, max_json=MOST_JSON) -> DataCube:
        """Read a file written by :meth:`save`; nothing in it is executed.

        Parameters
        ----------
        path : str or path-like
        max_bytes : int, default=2**31
            Larger files, when unpacked, are refused.
        max_json : int, default=2**23
            Files with more bytes of metadata are refused, which take up to 25 times as much memory.

        Returns
        -------
        DataCube
            The fitted cube, with the plan as its ``strategy``.

        Raises
        ------
        ValueError
            If the file is not a cube, is damaged or too large, or comes from a later version.
        OSError
            If it cannot be opened.
        """
        return read(path, cls, max_bytes, max_json)

    # -- the plan

    def _plan(self, domain):
        """The plan over a domain that names every column; from public facts alone."""
        epsilon = self._record_epsilon()
        check_choice(self.objective, "objective", ("max", "mean"))
        check_choice(self.consistency, "consistency", CONSISTENCIES)
        check_choice(self.measure, "measure", ("count", "sum", "mean"))
        domain = domain.resolved(self._most_bins)
        grid, origin = value_grid(domain, self.measure, self.value, self.resolution)
        domain = self._select(domain)
        order = as_order(self.max_order, domain)
        top = len(domain) if order is None else order
        cuboids.check_extent(domain.shape, top, domain.names)
        lattice = cuboids.lattice(domain.shape, order)
        label, sources = self._choose_sources(domain, lattice, epsilon, grid)
        plan = CubePlan(
            domain, epsilon, sources, label, order, self.consistency, grid, origin=origin
        )
        given = self.strategy
        if isinstance(given, CubePlan) and given._key() == plan._key():
            return given
        # Noise that does not fit into 64 bits is refused here, before anything is spent.
        plan._check()
        if self.consistency in ("l1", "linf"):
            self._progress(f"planning: simulating the errors of consistency={self.consistency!r}")
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
            progress=self._progress,
        )
        shares = zip(found.masks, found.shares, strict=True)
        return label, {names_of(domain, mask): share for mask, share in shares}
