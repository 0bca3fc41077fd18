"""DataCube: all cuboids of a table, agreeing with each other, each with its standard error."""

from __future__ import annotations

import functools
import html
import json
import math
import numbers
import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from . import cuboids
from ._base import PrivateEstimator, full_domain, match_rows, warn_of_emptiness
from ._validation import as_fraction
from .domain import Domain, Numeric
from .exceptions import DomainError
from .mechanisms import discrete_laplace, discrete_laplace_variance
from .mechanisms._noise import BoundedGrid
from .release import parse
from .release.files import (
    TupleKeys,
    fraction,
    loss_from_data,
    loss_to_data,
    read_archive,
    write_archive,
)
from .rows import count_rows

__all__ = ["CubePlan", "DataCube"]

_STRATEGIES = ("bmax", "pmost", "all", "base", "optimized")
_OBJECTIVES = ("max", "mean")
_CONSISTENCIES = ("l2", "l1", "linf", None)
_MEASURES = ("count", "sum")
_FORMAT = "skdp cube"
_VERSION = 1
# More sources than this are listed by their number of dimensions in the privacy loss.
_MAX_PARTS = 20
# Linear programs are simulated to learn their errors: about this many cells in all.
_SIMULATED_CELLS = 20_000
_MAX_SIMULATIONS = 100
# Sums of integers below this are exact in float64.
_EXACT = 2**53


class CubePlan(TupleKeys):
    """What a `DataCube` measures and how accurate each cuboid will be: public, free, reusable.

    Made by :meth:`DataCube.plan`. Given as ``strategy=`` to another cube over the same
    dimensions, it is used as it is, whatever the epsilon there.

    Attributes
    ----------
    domain : Domain
        The dimensions.
    epsilon : Fraction
        What the measured cuboids cost together.
    sources : dict of tuple of str to Fraction
        Share of epsilon of each cuboid that is measured, by its dimensions. The shares sum to 1.
    strategy : str
        How the sources were chosen.
    max_order : int or None
        Cuboids of at most so many dimensions are published.
    consistency : {"l2", "l1", "linf"} or None

    Examples
    --------
    >>> from skdp import Categorical, DataCube, Domain
    >>> domain = Domain({"sex": Categorical(["F", "M"]), "smoker": Categorical(["no", "yes"])})
    >>> plan = DataCube(epsilon=1.0, domain=domain).plan()
    >>> plan.sources
    {('sex', 'smoker'): Fraction(1, 1)}
    >>> round(plan.std_error(["sex"]), 2)
    1.92
    """

    def __init__(
        self, domain, epsilon, sources, strategy, max_order, consistency, grid, simulated=None
    ):
        self.domain = domain
        self.epsilon = epsilon
        self.sources = sources
        self.strategy = strategy
        self.max_order = max_order
        self.consistency = consistency
        # Of a bounded sum; None for counts.
        self._grid = grid
        # Variances of interactions where there is no closed form.
        self._simulated = simulated

    def __getstate__(self):
        # Without what can be computed again.
        cached = ("_cube", "_masks", "_noise", "_interactions", "_variances")
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in cached}

    # -- facts

    def std_error(self, dimensions):
        """Standard error of every cell of one cuboid.

        Parameters
        ----------
        dimensions : str or sequence of str
            Dimensions of the cuboid; none at all for the total.

        Returns
        -------
        float
            In units of the measure.

        Raises
        ------
        ValueError
            If the cuboid is not published.
        """
        return math.sqrt(self._variances[self._cube.position[self._published_mask(dimensions)]])

    @property
    def max_std_error(self):
        """Largest standard error of a published cuboid."""
        return math.sqrt(max(self._variances[place] for place in self._available))

    @property
    def mean_variance(self):
        """Mean over the published cuboids of their cell variance."""
        return float(np.mean([self._variances[place] for place in self._available]))

    def to_frame(self):
        """The plan as a table, one row for each cuboid that is published or measured.

        Returns
        -------
        DataFrame
            ``cuboid`` (names of the dimensions, "(total)" for none), ``order`` (how many),
            ``cells``, ``published``, ``epsilon`` (0 where not measured), ``noise_std`` (of what is
            measured, else NaN), ``std_error`` (of what is published, else NaN).
        """
        cube = self._cube
        available = set(self._available)
        rows = []
        for mask, place in cube.position.items():
            measured = math.isfinite(self._noise[place])
            published = place in available
            if not (measured or published):
                continue
            names = self._names(mask)
            rows.append(
                {
                    "cuboid": _title(names),
                    "order": len(names),
                    "cells": math.prod(cube.shape(mask)),
                    "published": published,
                    "epsilon": float(self.sources.get(names, 0) * self.epsilon),
                    "noise_std": math.sqrt(self._noise[place]) if measured else math.nan,
                    "std_error": math.sqrt(self._variances[place]) if published else math.nan,
                }
            )
        return pd.DataFrame(rows)

    def plot(self, *, ax=None):
        """Draw the lattice of cuboids coloured by standard error; measured ones have a ring.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        from .plotting import plot_lattice

        available = set(self._available)
        nodes = {
            self._names(mask): math.sqrt(self._variances[place])
            for mask, place in self._cube.position.items()
            if place in available
        }
        shares = {names: float(share) for names, share in self.sources.items()}
        return plot_lattice(self.domain.names, nodes, shares, ax=ax)

    def __repr__(self):
        return (
            f"<CubePlan {self.strategy!r}: {len(self.sources)} of {len(self._cube)} cuboids "
            f"measured, {len(self._available)} published, std error at most "
            f"{self.max_std_error:.4g} at epsilon={float(self.epsilon):g}>"
        )

    def _repr_html_(self):
        table = self.to_frame()
        shown = table.sort_values("std_error", ascending=False, kind="stable").head(12)
        caption = html.escape(repr(self).strip("<>"))
        more = f"<p>... and {len(table) - len(shown)} more</p>" if len(shown) < len(table) else ""
        return f"<div><b>{caption}</b>{shown.to_html(index=False)}{more}</div>"

    # -- parts

    def _key(self):
        """Everything that the errors depend on."""
        sources = tuple(self.sources.items())
        return (self.domain, self.epsilon, sources, self.max_order, self.consistency, self._grid)

    @functools.cached_property
    def _cube(self):
        return cuboids.lattice(self.domain.shape, self.max_order)

    @functools.cached_property
    def _masks(self):
        """Share of epsilon of each source, by mask."""
        return {_mask(self.domain, names): share for names, share in self.sources.items()}

    @property
    def _sensitivity(self):
        return 1 if self._grid is None else self._grid.sensitivity

    @property
    def _unit(self):
        """What one integer of the measured tables stands for."""
        return 1.0 if self._grid is None else float(self._grid.step)

    @functools.cached_property
    def _noise(self):
        """Noise variance in a cell of each measured cuboid, inf for the others."""
        noise = np.full(len(self._cube), np.inf)
        for mask, share in self._masks.items():
            variance = discrete_laplace_variance(share * self.epsilon, self._sensitivity)
            noise[self._cube.position[mask]] = variance * self._unit**2
        return noise

    @functools.cached_property
    def _interactions(self):
        if self._simulated is not None:
            return self._simulated
        return cuboids.interaction_variances(self._cube, self._noise)

    @functools.cached_property
    def _variances(self):
        """Cell variance of every cuboid, inf where it is not determined."""
        if self.consistency is None:
            return cuboids.best_sources(self._cube, self._noise)[0]
        return cuboids.cell_variances(self._cube, self._interactions)

    @property
    def _available(self):
        """Positions of the cuboids that are published."""
        return np.flatnonzero(self._cube.published & np.isfinite(self._variances)).tolist()

    def _names(self, mask):
        return tuple(self.domain.names[i] for i in cuboids.dimensions_of(mask))

    def _published_mask(self, dimensions):
        names = _as_names(dimensions)
        mask = _mask(self.domain, names)
        if self.max_order is not None and len(names) > self.max_order:
            raise ValueError(
                f"The cuboid of {list(names)} has {len(names)} dimensions, and max_order="
                f"{self.max_order} limits what is published. Ask for fewer dimensions, or raise "
                "max_order and fit again."
            )
        if not math.isfinite(self._variances[self._cube.position[mask]]):
            raise ValueError(
                f"The cuboid of {list(names)} is not published: none of the measured cuboids "
                f"determines it (strategy={self.strategy!r}). `plan().to_frame()` lists what is "
                "published; raise max_variance, or use another strategy, and fit again."
            )
        return mask

    def _box_variances(self, mask, weights):
        """Variance of weighted sums of cells of one cuboid, for each combination of vectors."""
        if self.consistency is not None:
            return cuboids.box_variances(self._cube, mask, self._interactions, weights)
        # A cuboid is summed from one source, so its cells are independent.
        squares = [(vectors**2).sum(axis=1) for vectors in weights]
        cell = self._variances[self._cube.position[mask]]
        return cell * functools.reduce(np.multiply.outer, squares, np.ones(()))

    def _parts(self):
        """Epsilon of each measured cuboid; of each number of dimensions if there are many."""
        if len(self.sources) > _MAX_PARTS:
            parts = {}
            for names, share in self.sources.items():
                label = f"cuboids of {len(names)} dimension{'' if len(names) == 1 else 's'}"
                parts[label] = parts.get(label, 0) + share * self.epsilon
            return parts
        labels = [_title(names) for names in self.sources]
        if len(set(labels)) < len(labels):
            labels = [repr(names) for names in self.sources]
        shares = self.sources.values()
        return {label: share * self.epsilon for label, share in zip(labels, shares, strict=True)}

    def _reconstruct(self, noisy):
        """Published tables from noisy ones, by mask."""
        cube = self._cube
        if self.consistency is None:
            return cuboids.derive(cube, noisy, self._noise)
        if self.consistency == "l2":
            return cuboids.consistent_l2(cube, noisy, self._noise)
        return cuboids.consistent_lp(cube, noisy, self._scales(), self.consistency)

    def _scales(self):
        return {mask: math.sqrt(self._noise[self._cube.position[mask]] / 2) for mask in self._masks}

    def _simulate(self):
        """Learn the errors of the linear programs from noise on an empty cube."""
        cube = self._cube
        cuboids.check_lp_size(cube, tuple(self._masks))
        cells = sum(math.prod(cube.shape(mask)) for mask in self._masks)
        runs = int(np.clip(_SIMULATED_CELLS // cells, 4, _MAX_SIMULATIONS))
        rates = {
            mask: float(share * self.epsilon / self._sensitivity)
            for mask, share in self._masks.items()
        }
        scales = self._scales()
        in_integers = {mask: scale / self._unit for mask, scale in scales.items()}
        found = cuboids.simulated_interactions(
            cube,
            rates,
            lambda noisy: cuboids.consistent_lp(cube, noisy, in_integers, self.consistency),
            runs,
        )
        self._simulated = found * self._unit**2
        for known in ("_interactions", "_variances"):
            vars(self).pop(known, None)


class DataCube(PrivateEstimator, TupleKeys):
    """All cuboids of a table: counts (or sums) over every set of dimensions, with standard errors.

    Noise goes into a few cuboids, the sources; everything else is computed from them. Which
    sources, and how epsilon is divided among them, is planned from the public domain alone. The
    noisy tables are then made consistent by weighted least squares: cuboids agree wherever they
    overlap, and each one gains from all sources above it.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    dimensions : sequence of str, default=None
        Columns of the domain that span the cube, at most 12 unless ``max_order`` is small; all
        (but ``value``) by default. Other columns are not read.
    max_order : int, default=None
        Publish cuboids of at most so many dimensions. Cubes whose table over all dimensions
        fits no memory work when this is small.
    strategy : {"bmax", "pmost", "all", "base", "optimized"}, CubePlan or mapping, default="bmax"
        "all" measures every published cuboid, "base" the table over all dimensions; "bmax" finds
        a few sources, with equal budgets, that keep the largest (or mean) variance small;
        "pmost" those that bring most cuboids within ``max_variance``; "optimized" finds sources
        and unequal budgets with the least variance after least squares: the most accurate, after
        some seconds of planning. A `CubePlan` is used as it is, and so is a mapping of tuples of
        names to shares of epsilon.
    objective : {"max", "mean"}, default="max"
        Whether "bmax" and "optimized" look at the largest cell variance of a cuboid, or at the
        mean over all cuboids (each with equal weight, or with ``weights``).
    consistency : {"l2", "l1", "linf"} or None, default="l2"
        "l2" is weighted least squares: unbiased, with the least variance of all linear
        estimates, and fast. "l1" and "linf" minimise the sum and the maximum of the residuals,
        each divided by the scale of its noise, by a linear program of at most 100,000 measured
        cells; their standard errors are simulated. None sums each cuboid from the one best source.
    measure : {"count", "sum"}, default="count"
        Number of records in a cell, or the sum of the column ``value``.
    value : str, default=None
        A `Numeric` column of the domain, whose range bounds each record's contribution. A
        missing value contributes nothing.
    resolution : float, default=None
        Grid to which each value is rounded before it is summed; see
        :func:`skdp.mechanisms.bounded_sum`.
    max_variance : float, default=None
        Bound on the cell variance for ``strategy="pmost"``.
    weights : mapping of tuple of str to float, default=None
        Weight of cuboids for the mean objective, and their worth for "pmost"; 1 where nothing
        is said. They change the plan; every cuboid is published all the same.
    max_contributions : int, default=None
        How many rows of each person count at most, drawn in secret; epsilon is then that of the
        person. Needs ``unit``. None: epsilon is that of one row.
    unit : str, default=None
        Column of the data, not of the domain, that tells whose a row is. Rows without a value in
        it are skipped.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only: the release is
        then marked "seeded: no guarantee".
    verbose : int, default=0
        Print the progress of planning to standard error.

    Attributes
    ----------
    domain_ : Domain
        The dimensions.
    plan_ : CubePlan
        Sources, budgets, and the standard error of each cuboid: public.
    sources_ : dict of tuple of str to ndarray of int64
        The release itself: a noisy table for each measured cuboid, with one axis for each
        dimension. For a sum in units of its resolution.
    tables_ : dict of tuple of str to ndarray of float64
        The published cuboids, computed from ``sources_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: one for each source, or for each number of dimensions where there
        are more than 20.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters, and with them the plan. *Released*: the noisy sources; all other cuboids
    are computed from these. *Cost*: a record is in one cell of each source, so a source costs its
    own budget, and the budgets add up to epsilon. The slides compute each cuboid from one
    source with equal budgets and make cuboids consistent afterwards; here least squares weights
    all sources by their noise, in closed form, and "optimized" plans for that.

    Counts are not rounded and may be negative: that keeps them unbiased and adding up.

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

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        dimensions=None,
        max_order=None,
        strategy="bmax",
        objective="max",
        consistency="l2",
        measure="count",
        value=None,
        resolution=None,
        max_variance=None,
        weights=None,
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
        verbose=0,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.dimensions = dimensions
        self.max_order = max_order
        self.strategy = strategy
        self.objective = objective
        self.consistency = consistency
        self.measure = measure
        self.value = value
        self.resolution = resolution
        self.max_variance = max_variance
        self.weights = weights
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    # -- the plan and the release

    def plan(self):
        """Say what a ``fit`` would measure and how accurate it would be; reads no data.

        Returns
        -------
        CubePlan
            Kept for the next ``fit`` of any cube with the same parameters in this process; give
            it as ``strategy=`` to be sure that it is used.

        Raises
        ------
        DomainError, TypeError, ValueError
            If a parameter does not fit, or the cube is too large to be planned or held.
        """
        if isinstance(self.domain, list | tuple):
            domain = Domain.for_array(self.domain, len(self.domain))
        elif self.domain is None or isinstance(self.domain, Domain | Mapping):
            domain = full_domain(self.domain, None)
        else:
            raise DomainError(
                "One attribute for all columns of an array does not say how many columns there "
                "are. For a plan without data give a list of attributes, or a Domain."
            )
        return self._plan(domain)

    def fit(self, X, y=None):
        """Charge epsilon, then release the noisy sources and compute all cuboids.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            One row per person: NumPy array; pandas, Polars or PyArrow table; or a lazy frame of
            Polars, DuckDB, Dask or PySpark, which is counted in its engine. Columns are matched
            to the domain by name, those of an array by position.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter does not fit, or the cube is too large; nothing is
            spent. Values never raise: out of range is clipped, an unknown category is `other`
            where declared, and a record that the dimensions cannot represent is skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        # Sums round the value of each record by itself, which takes rows in memory.
        rows, domain = match_rows(
            X, None, self.domain, None, lazy=self.value is None, unit=self._unit()
        )
        plan = self._plan(domain)
        loss, source = self._spend(plan._parts())
        noise = loss.of_record.epsilon
        dimensions = plan.domain
        if plan._grid is None:
            table = count_rows(
                rows, dimensions, self._contributions(loss, source, rows, domain), together=()
            )
            measured = _count_cells(table, plan)
        else:
            attribute = domain[self.value]
            codes = dimensions.encode(rows.select(dimensions.names))
            measured = _sum_cells(codes, _numbers(rows.column(self.value), attribute, plan), plan)
        # Privacy. A record adds to one cell of each source: 1 to a count, an integer of at most
        # `_sensitivity` to a sum, whatever the record is. So the table C with discrete Laplace
        # noise at eps_C costs eps_C, and the tables, asked one after the other about the same
        # records, cost the sum of the eps_C: the parts of `loss`. Everything below is computed
        # from the noisy tables and the public plan.
        noisy = {
            mask: discrete_laplace(
                table, plan._masks[mask] * noise, plan._sensitivity, random_state=source
            )
            for mask, table in measured.items()
        }
        self._publish(plan, noisy)
        self._remember_columns(X, rows)
        self.privacy_loss_ = loss
        if plan._grid is None:
            total = self.cuboid().iloc[0]
            warn_of_emptiness(self, total["count"], total["std_error"])
        return self

    def _publish(self, plan, noisy):
        scaled = {mask: table * plan._unit for mask, table in noisy.items()}
        tables = plan._reconstruct(scaled)
        self.domain_ = plan.domain
        self.plan_ = plan
        self.sources_ = {plan._names(mask): table for mask, table in noisy.items()}
        self.tables_ = {plan._names(mask): table for mask, table in tables.items()}

    # -- questions

    def cuboid(self, dimensions=()):
        """One cuboid as a tidy table.

        Parameters
        ----------
        dimensions : str or sequence of str, default=()
            In the order wanted; none gives the total.

        Returns
        -------
        DataFrame
            A row for each cell: a column for each dimension (categories as declared, integers
            where each has a bin of its own, else the text of the bin, ordered; a missing cell
            is missing), ``count`` (or ``sum``), ``std_error``.

        Raises
        ------
        ValueError
            If a name is unknown or the cuboid is not published.
        """
        check_is_fitted(self)
        names = _as_names(dimensions)
        return self._table(names, {}, {})

    def slice(self, query, dimensions=None):
        """A cuboid of the records that satisfy a query.

        Parameters
        ----------
        query : dict or str
            Conditions on dimensions of the cube, as for :meth:`skdp.Synopsis.count`.
        dimensions : str or sequence of str, default=None
            Of the result; those that the query does not mention by default. A dimension of the
            query may be among them: then only the values asked for are listed.

        Returns
        -------
        DataFrame
            As :meth:`cuboid`. The cuboid over all dimensions of query and result together must
            be published. Standard errors are those of the sums that are shown.

        Raises
        ------
        ValueError
            If a name or query is not understood, or the cuboid is not published.
        """
        check_is_fitted(self)
        weights = parse(query, self.domain_)
        if dimensions is None:
            names = tuple(
                name for axis, name in enumerate(self.domain_.names) if axis not in weights
            )
        else:
            names = _as_names(dimensions)
        return self._table(names, weights, {})

    def rollup(self, dimensions, levels):
        """A cuboid with some dimensions left out, or coarser.

        Parameters
        ----------
        dimensions : str or sequence of str
            Of the cuboid to start from.
        levels : str, sequence of str, or mapping of str to int
            Dimensions to sum over; or for each dimension its level in the attribute's hierarchy
            (:meth:`skdp.Categorical.levels`): 0 sums over it, 1 is the coarsest grouping, -1 the
            finest, -2 the one above.

        Returns
        -------
        DataFrame
            As :meth:`cuboid`; groups are named by text. Standard errors are those of the groups.

        Raises
        ------
        ValueError
            If a name or level does not exist or the cuboid is not published.
        """
        check_is_fitted(self)
        names = _as_names(dimensions)
        if not isinstance(levels, Mapping):
            levels = dict.fromkeys(_as_names(levels), 0)
        absent = [name for name in levels if name not in names]
        if absent:
            raise ValueError(f"levels names {absent}, which are not among {list(names)}.")
        kept = tuple(name for name in names if levels.get(name) != 0)
        _mask(self.domain_, names)
        return self._table(kept, {}, {k: v for k, v in levels.items() if v != 0})

    def drilldown(self, query, into):
        """Split cells into those of further dimensions.

        Parameters
        ----------
        query : dict or str
            The cell or cells to look into, such as ``{"sex": "F"}``.
        into : str, sequence of str, or mapping of str to int
            Further dimensions; or for each its level, as for :meth:`rollup`.

        Returns
        -------
        DataFrame
            As :meth:`cuboid`: the dimensions of the query, restricted to what it asks for, then
            the further ones.

        Raises
        ------
        ValueError
            If a name or level does not exist or the cuboid is not published.
        """
        check_is_fitted(self)
        weights = parse(query, self.domain_)
        levels = dict(into) if isinstance(into, Mapping) else {}
        further = tuple(levels) if levels else _as_names(into)
        fixed = tuple(self.domain_.names[axis] for axis in sorted(weights))
        twice = [name for name in further if name in fixed]
        if twice:
            raise ValueError(f"{twice} are in the query already. Drill into other dimensions.")
        kept = tuple(name for name in further if levels.get(name) != 0)
        return self._table(fixed + kept, weights, {k: v for k, v in levels.items() if v != 0})

    def pivot(self, index, columns, query=None, values=None):
        """A cuboid as a cross table.

        Parameters
        ----------
        index, columns : str or sequence of str
            Dimensions down and across.
        query : dict or str, default=None
            Restrict to the records that satisfy it.
        values : {"count", "sum", "std_error"}, default=None
            What the cells hold; the measure by default.

        Returns
        -------
        DataFrame

        Raises
        ------
        ValueError
            If a name or query is not understood, or the cuboid is not published.
        """
        check_is_fitted(self)
        if values not in (None, self._measured, "std_error"):
            raise ValueError(f"values must be {self._measured!r} or 'std_error', got {values!r}.")
        down, across = _as_names(index), _as_names(columns)
        both = [name for name in down if name in across]
        if both:
            raise ValueError(f"{both} are in index and in columns. Name each dimension once.")
        weights = {} if query is None else parse(query, self.domain_)
        listed, estimate, std = self._answer(down + across, weights, {})
        table = std if values == "std_error" else estimate
        table = np.broadcast_to(table, estimate.shape)
        shape = [math.prod(estimate.shape[: len(down)]), math.prod(estimate.shape[len(down) :])]
        return pd.DataFrame(
            table.reshape(shape),
            index=_index(down, listed[: len(down)]),
            columns=_index(across, listed[len(down) :]),
        )

    def to_frame(self, order=None, *, margin="*"):
        """All cuboids in one tidy table, ready for a CSV file.

        Parameters
        ----------
        order : int, default=None
            Cuboids of this number of dimensions only.
        margin : str, default="*"
            Stands in a column for a dimension that the cuboid does not have.

        Returns
        -------
        DataFrame
            ``cuboid``, a column for each dimension, ``count`` (or ``sum``), ``std_error``. All
            but the last two are pandas categories, which keep large cubes small.

        Raises
        ------
        ValueError
            If ``margin`` is a value of a dimension.
        """
        check_is_fitted(self)
        domain, plan = self.domain_, self.plan_
        wanted = [names for names in self.tables_ if order in (None, len(names))]
        if not wanted:
            raise ValueError(
                f"No cuboid of {order!r} dimensions is published; there are those of "
                f"{sorted({len(names) for names in self.tables_})}."
            )
        n_rows = [self.tables_[names].size for names in wanted]
        columns = {}
        for axis, name in enumerate(domain.names):
            # Missing values first, so that the codes are -1 for missing, then the margin.
            values, codes = _listed(domain.attributes[axis])
            if margin in values:
                raise ValueError(
                    f"margin={margin!r} is a value of {name!r}; choose a text that is none."
                )
            parts = []
            for names, rows in zip(wanted, n_rows, strict=True):
                if name in names:
                    shape = self.tables_[names].shape
                    parts.append(_spread(codes + (codes >= 0), shape, names.index(name)))
                else:
                    parts.append(np.zeros(rows, dtype=codes.dtype))
            columns[name] = pd.Categorical.from_codes(
                np.concatenate(parts), categories=[margin, *values]
            )
        titles = [_title(names) for names in wanted]
        if len(set(titles)) < len(titles):
            titles = [repr(names) for names in wanted]
        which = np.repeat(np.arange(len(wanted)), n_rows)
        frame = {_free("cuboid", columns): pd.Categorical.from_codes(which, categories=titles)}
        frame |= columns
        frame[_free(self._measured, columns)] = np.concatenate(
            [self.tables_[names].ravel() for names in wanted]
        )
        std = np.array([plan.std_error(names) for names in wanted])
        frame[_free("std_error", columns)] = np.repeat(std, n_rows)
        return pd.DataFrame(frame)

    def plot(self, *, ax=None):
        """Draw the lattice of cuboids coloured by standard error; see :meth:`CubePlan.plot`."""
        check_is_fitted(self)
        return self.plan_.plot(ax=ax)

    # -- files

    def save(self, path):
        """Write the release to one file; it is safe to publish.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced.

        Notes
        -----
        The file is a zip archive of ``metadata.json`` (UTF-8: ``format`` "skdp cube", ``version``
        1, ``domain`` of the dimensions, ``privacy`` with epsilon and parts as exact fractions and
        ``seeded``, ``max_order``, ``strategy``, ``consistency``, ``value`` with name, bounds and
        step of a sum or null, ``sources`` as a list of dimensions and exact shares) and of one
        array in NumPy's format, numbers only, for each source, ``source0.npy`` and so on. With
        "l1" or "linf" also ``interactions.npy``, their simulated variances, and
        ``cuboid0.npy`` and so on, the tables of ``cuboids``, because another solver might find
        another solution. It never holds a seed. Equal releases give equal bytes.
        """
        check_is_fitted(self)
        plan = self.plan_
        grid = plan._grid
        metadata = {
            "format": _FORMAT,
            "version": _VERSION,
            "domain": json.loads(plan.domain.to_json()),
            "privacy": loss_to_data(self.privacy_loss_),
            "max_order": plan.max_order,
            "strategy": plan.strategy,
            "consistency": plan.consistency,
            "value": grid
            and {
                "name": self.value,
                "lower": _exact(grid.lower),
                "upper": _exact(grid.upper),
                "step": _exact(grid.step),
            },
            "sources": [
                {"dimensions": list(names), "share": str(share)}
                for names, share in plan.sources.items()
            ],
        }
        arrays = {f"source{i}": self.sources_[names] for i, names in enumerate(plan.sources)}
        if plan._simulated is not None:
            metadata["cuboids"] = [list(names) for names in self.tables_]
            arrays["interactions"] = plan._simulated
            arrays |= {f"cuboid{i}": table for i, table in enumerate(self.tables_.values())}
        write_archive(path, metadata, arrays)

    @classmethod
    def load(cls, path, *, max_bytes=1 << 31):
        """Read a file written by :meth:`save`; nothing in it is executed.

        Parameters
        ----------
        path : str or path-like
        max_bytes : int, default=2**31
            Refuse files that would unpack to more.

        Returns
        -------
        DataCube
            Fitted, with the plan as its ``strategy``.

        Raises
        ------
        ValueError
            If the file is not a cube, is damaged or too large, or comes from a later version.
        OSError
            If it cannot be opened.
        """
        return read_archive(path, _FORMAT, _VERSION, cls._from_parts, max_bytes)

    @classmethod
    def _from_parts(cls, metadata, arrays):
        domain = Domain.from_json(json.dumps(metadata["domain"]))
        loss = loss_from_data(metadata["privacy"])
        value = metadata["value"]
        grid = None
        if value is not None:
            bounds = [_signed_fraction(value[key]) for key in ("lower", "upper", "step")]
            grid = BoundedGrid.of(*bounds)
        sources = {
            tuple(source["dimensions"]): fraction(source["share"]) for source in metadata["sources"]
        }
        if sum(sources.values()) != 1 or not all(share > 0 for share in sources.values()):
            raise ValueError("the shares of its sources do not sum to 1")
        consistency = _one_of(metadata["consistency"], _CONSISTENCIES, "consistency")
        plan = CubePlan(
            domain,
            loss.of_record.epsilon,
            sources,
            str(metadata["strategy"]),
            _order(metadata["max_order"], domain),
            consistency,
            grid,
        )
        if dict(plan._parts()) != dict(loss.of_record.parts):
            raise ValueError("its privacy loss is not that of its sources")
        cube = plan._cube
        noisy = {}
        for i, mask in enumerate(plan._masks):
            noisy[mask] = _checked(arrays, f"source{i}", cube.shape(mask), "iu").astype(np.int64)
        release = cls(
            _plain(loss.epsilon),
            domain=domain,
            max_order=plan.max_order,
            strategy=plan,
            consistency=consistency,
            measure="count" if grid is None else "sum",
            value=None if grid is None else str(value["name"]),
        )
        if consistency in ("l1", "linf"):
            plan._simulated = _checked(arrays, "interactions", (len(cube),), "f")
            names = [tuple(each) for each in metadata["cuboids"]]
            expected = {plan._names(int(cube.masks[place])) for place in plan._available}
            if set(names) != expected or len(names) != len(expected):
                raise ValueError("it does not hold the cuboids that its sources determine")
            release.domain_, release.plan_ = domain, plan
            release.sources_ = {plan._names(mask): table for mask, table in noisy.items()}
            release.tables_ = {
                each: _checked(arrays, f"cuboid{i}", domain.select(each).shape if each else (), "f")
                for i, each in enumerate(names)
            }
        else:
            release._publish(plan, noisy)
        release.privacy_loss_ = loss
        release.n_features_in_ = len(domain)
        return release

    # -- parts of the plan

    @property
    def _measured(self):
        return "count" if self.plan_._grid is None else "sum"

    def _plan(self, domain):
        """The plan over a spelled-out domain."""
        epsilon = self._record_epsilon()
        if self.value is not None and self.unit is not None:
            raise ValueError(
                "Contributions are bounded for counts, but value= asks for sums. Leave out unit= "
                "and max_contributions=, or make one row of each person first."
            )
        objective = _one_of(self.objective, _OBJECTIVES, "objective")
        consistency = _one_of(self.consistency, _CONSISTENCIES, "consistency")
        grid = self._make_grid(domain)
        domain = self._select(domain)
        order = _order(self.max_order, domain)
        cube = cuboids.lattice(domain.shape, order)
        strategy = self.strategy
        if isinstance(strategy, CubePlan) and strategy.domain != domain:
            raise ValueError(
                f"The plan given as strategy is for the dimensions {list(strategy.domain.names)} "
                f"of another domain; this cube has {list(domain.names)}. Make a plan for it."
            )
        given = strategy.sources if isinstance(strategy, CubePlan) else strategy
        if isinstance(given, Mapping):
            sources = _given_sources(given, domain, cube)
            label = strategy.strategy if isinstance(strategy, CubePlan) else "given"
        else:
            label = _one_of(strategy, _STRATEGIES, "strategy", "a CubePlan, or a mapping")
            weights = self._weight_vector(domain, cube, objective)
            sensitivity = 1 if grid is None else grid.sensitivity
            unit = 1.0 if grid is None else float(grid.step)
            limit = self._limit()

            def noise_of(count):
                return unit**2 * discrete_laplace_variance(epsilon / count, sensitivity)

            found = _find_sources(
                cube,
                label,
                objective,
                consistency,
                weights,
                limit,
                noise_of,
                self._progress,
            )
            names = domain.names
            sources = {
                tuple(names[i] for i in cuboids.dimensions_of(mask)): share
                for mask, share in zip(found.masks, found.shares, strict=True)
            }
        plan = CubePlan(domain, epsilon, sources, label, order, consistency, grid)
        if isinstance(strategy, CubePlan) and strategy._key() == plan._key():
            return strategy
        # Noise that does not fit into 64 bits is refused here, before anything is spent.
        if not np.isfinite(plan._variances[cube.position[0]]) and not plan._available:
            raise ValueError("The sources given determine none of the published cuboids.")
        if consistency in ("l1", "linf"):
            self._progress(f"planning: simulating the errors of consistency={consistency!r}")
            plan._simulate()
        return plan

    def _progress(self, text):
        if self.verbose:
            print(f"DataCube: {text}", file=sys.stderr)

    def _select(self, domain):
        """The domain of the dimensions."""
        if self.dimensions is None:
            names = [name for name in domain.names if name != self.value]
            if not names:
                raise DomainError(f"The domain has no column but value={self.value!r}.")
            return domain.select(names)
        names = _as_names(self.dimensions)
        if not names:
            raise ValueError("dimensions is empty: name at least one column of the domain.")
        _mask(domain, names)
        return domain.select(names)

    def _make_grid(self, domain):
        if _one_of(self.measure, _MEASURES, "measure") == "count":
            if self.value is not None or self.resolution is not None:
                raise ValueError(
                    "value and resolution belong to measure='sum'; with measure='count' leave "
                    "them out."
                )
            return None
        if self.value not in domain.names:
            raise DomainError(
                "measure='sum' needs value=, a Numeric column of the domain, which has "
                f"{list(domain.names)}; got {self.value!r}."
            )
        attribute = domain[self.value]
        if not isinstance(attribute, Numeric):
            raise DomainError(
                f"value={self.value!r} is declared Categorical; sums need a Numeric column, whose "
                "range bounds what a record adds."
            )
        return BoundedGrid.of(attribute.lower, attribute.upper, self.resolution)

    def _limit(self):
        if self.strategy != "pmost":
            if self.max_variance is not None:
                raise ValueError(
                    "max_variance belongs to strategy='pmost'; leave it out for "
                    f"strategy={self.strategy!r}."
                )
            return None
        limit = self.max_variance
        if limit is None or isinstance(limit, bool) or not isinstance(limit, numbers.Real):
            raise TypeError(
                "strategy='pmost' needs max_variance, the cell variance within which as many "
                f"cuboids as possible are to be published; got {limit!r}."
            )
        if not limit > 0:
            raise ValueError(f"max_variance must be positive, got {limit!r}.")
        return float(limit)

    def _weight_vector(self, domain, cube, objective):
        if self.weights is None:
            return None
        if not isinstance(self.weights, Mapping):
            raise TypeError(
                "weights must be a mapping of tuples of dimensions to numbers, got "
                f"{type(self.weights).__name__}."
            )
        if self.strategy != "pmost" and objective == "max":
            raise ValueError(
                "weights have no effect on objective='max'; use objective='mean' or "
                "strategy='pmost'."
            )
        vector = np.ones(len(cube))
        for key, weight in self.weights.items():
            mask = _mask(domain, _as_names(key))
            place = cube.position.get(mask)
            if place is None or not cube.published[place]:
                raise ValueError(f"weights names the cuboid {key!r}, which is not published.")
            if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
                raise TypeError(f"The weight of {key!r} must be a number, got {weight!r}.")
            if not 0 <= weight < math.inf:
                raise ValueError(f"The weight of {key!r} must not be negative, got {weight!r}.")
            vector[place] = weight
        if not vector[cube.published].any():
            raise ValueError("All weights are zero: give at least one cuboid a positive one.")
        return vector

    # -- parts of the answers

    def _answer(self, names, weights, levels):
        """Values along each axis, estimates, and standard errors that broadcast to them."""
        domain, plan = self.domain_, self.plan_
        wanted = {domain.index(name): name for name in names} if _known(domain, names) else {}
        axes = sorted({*wanted, *weights})
        key = tuple(domain.names[axis] for axis in axes)
        mask = plan._published_mask(key)
        estimate = self.tables_[key]
        listed, vectors, error_vectors = {}, [], []
        for axis in axes:
            name, attribute = domain.names[axis], domain.attributes[axis]
            weight = weights.get(axis)
            identity = np.eye(attribute.size) if weight is not None or name in levels else None
            if axis not in wanted:
                matrix = weight[None, :]
            elif name in levels:
                values, groups = _level(attribute, name, levels[name])
                matrix = np.zeros((len(values), attribute.size))
                matrix[groups, np.arange(attribute.size)] = 1.0
                listed[name] = values
            else:
                chosen = np.arange(attribute.size)
                matrix = None
                if weight is not None:
                    chosen = np.flatnonzero(weight)
                    matrix = identity[chosen] * weight
                listed[name] = _take(attribute, chosen)
            vectors.append(matrix)
            # All single cells have the same error: one stands for all.
            single = np.zeros((1, attribute.size))
            single[0, 0] = 1.0
            error_vectors.append(single if matrix is None else matrix)
        for place, matrix in enumerate(vectors):
            if matrix is not None:
                estimate = np.moveaxis(np.tensordot(estimate, matrix, ([place], [1])), -1, place)
        std = np.sqrt(plan._box_variances(mask, error_vectors))
        summed = tuple(place for place, axis in enumerate(axes) if axis not in wanted)
        kept = [domain.names[axis] for axis in axes if axis in wanted]
        order = [kept.index(name) for name in names]
        estimate = estimate.reshape(
            [size for place, size in enumerate(estimate.shape) if place not in summed]
        ).transpose(order)
        std = std.reshape(
            [size for place, size in enumerate(std.shape) if place not in summed]
        ).transpose(order)
        return [listed[name] for name in names], estimate, std

    def _table(self, names, weights, levels):
        listed, estimate, std = self._answer(names, weights, levels)
        columns = {}
        for place, (name, values) in enumerate(zip(names, listed, strict=True)):
            positions = _spread(np.arange(len(values)), estimate.shape, place)
            columns[name] = values.take(positions)
        columns[_free(self._measured, columns)] = estimate.ravel()
        columns[_free("std_error", columns)] = np.broadcast_to(std, estimate.shape).ravel()
        return pd.DataFrame(columns)


# --- planning, kept between plan() and fit() ------------------------------------------------------


def _find_sources(cube, strategy, objective, consistency, weights, limit, noise_of, progress):
    """Sources by one of the strategies."""
    if strategy == "all":
        return cuboids.plan_all(cube)
    if strategy == "base":
        return cuboids.plan_base(cube)
    if strategy == "pmost":
        return cuboids.plan_pmost(cube, limit, noise_of, weights)
    if objective == "max":
        weights = None
    elif weights is None:
        weights = np.ones(len(cube))
    return _search(_Task(cube, strategy, weights, consistency == "l2", progress))


class _Task:
    """A search for sources, equal to others that find the same.

    What is found does not depend on epsilon or on how progress is shown.
    """

    def __init__(self, cube, strategy, weights, consistent, progress):
        self.cube, self.strategy, self.weights = cube, strategy, weights
        self.consistent, self.progress = consistent, progress
        listed = None if weights is None else tuple(weights)
        # "optimized" always plans for least squares.
        matters = consistent and strategy == "bmax"
        self._key = (cube.sizes, tuple(cube.published), strategy, listed, matters)

    def __eq__(self, other):
        return self._key == other._key

    def __hash__(self):
        return hash(self._key)


@functools.lru_cache(maxsize=32)
def _search(task):
    if task.strategy == "bmax":
        return cuboids.plan_bmax(task.cube, task.weights, task.consistent)
    return cuboids.plan_optimized(task.cube, task.weights, task.progress)


def _given_sources(given, domain, cube):
    """Sources of a plan or mapping, in the order of the lattice, with shares that sum to 1."""
    shares = {}
    for key, share in given.items():
        mask = _mask(domain, _as_names(key))
        if mask in shares:
            raise ValueError(f"strategy names the cuboid {key!r} twice.")
        exact = as_fraction(share, f"The share of {key!r}")
        if exact < 0:
            raise ValueError(f"The share of {key!r} must not be negative, got {share!r}.")
        if mask not in cube.position:
            raise ValueError(
                f"The cuboid {key!r} cannot be measured in this cube: it is too large, or has "
                "far more dimensions than max_order. Measure smaller cuboids."
            )
        if exact:
            shares[mask] = exact
    total = sum(shares.values())
    if not total:
        raise ValueError("strategy gives no cuboid a share of epsilon.")
    return {
        tuple(domain.names[i] for i in cuboids.dimensions_of(mask)): shares[mask] / total
        for mask in sorted(shares)
    }


# --- exact tables: private, local to `fit` --------------------------------------------------------


def _count_cells(table, plan):
    """Exact counts of each source."""
    return {mask: table.dense(cuboids.dimensions_of(mask)) for mask in plan._masks}


def _numbers(column, attribute, plan):
    """Integer contribution of each record to a sum, by itself: 0 for a missing value."""
    values = column.numbers()
    missing = np.isnan(values)
    if attribute.integer:
        values = np.floor(values)
    contributions = plan._grid.encode(values)
    contributions[missing] = 0
    return contributions


def _sum_cells(codes, contributions, plan):
    """Exact integer sums of each source."""
    represented = (codes >= 0).all(axis=1)
    codes, contributions = codes[represented], contributions[represented]
    small = int(np.abs(contributions).sum()) < _EXACT
    tables = {}
    for mask in plan._masks:
        axes = cuboids.dimensions_of(mask)
        shape = plan._cube.shape(mask)
        key = np.zeros(len(codes), dtype=np.int64)
        for axis, size in zip(axes, shape, strict=True):
            key = key * size + codes[:, axis]
        cells = math.prod(shape)
        if small:
            table = np.bincount(key, weights=contributions, minlength=cells).astype(np.int64)
        else:
            table = np.zeros(cells, dtype=np.int64)
            np.add.at(table, key, contributions)
        tables[mask] = table.reshape(shape)
    return tables


# --- names and values -----------------------------------------------------------------------------


def _as_names(dimensions):
    if isinstance(dimensions, str):
        return (dimensions,)
    if not isinstance(dimensions, Iterable) or isinstance(dimensions, Mapping | bytes):
        raise TypeError(f"Dimensions are a name or a list of names, got {dimensions!r}.")
    return tuple(dimensions)


def _known(domain, names):
    unknown = [name for name in names if name not in domain]
    if unknown:
        raise ValueError(
            f"There is no dimension {', '.join(map(repr, unknown))}; there are "
            f"{list(domain.names)}."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"A dimension is named twice in {list(names)}.")
    return True


def _mask(domain, names):
    """Bit mask of a set of dimensions."""
    _known(domain, names)
    return sum(1 << domain.index(name) for name in names)


def _title(names):
    return ", ".join(names) if names else "(total)"


def _free(title, columns):
    """Name of a column that no dimension has."""
    while title in columns:
        title += "_"
    return title


def _one_of(value, allowed, name, more=None):
    if not any(value is each or (isinstance(value, str) and value == each) for each in allowed):
        words = [repr(each) for each in allowed] + ([more] if more else [])
        raise ValueError(f"{name} must be {', '.join(words[:-1])} or {words[-1]}, got {value!r}.")
    return value


def _order(max_order, domain):
    if max_order is None:
        return None
    if isinstance(max_order, bool) or not isinstance(max_order, numbers.Integral):
        raise TypeError(f"max_order must be an integer or None, got {max_order!r}.")
    if max_order < 0:
        raise ValueError(f"max_order must not be negative, got {max_order}.")
    # All cuboids are one case, however it is written.
    return None if max_order >= len(domain) else int(max_order)


def _listed(attribute):
    """Plain values of an attribute, and for each of its codes the position there or -1."""
    values = _take(attribute, np.arange(attribute.n_values))
    codes = np.arange(attribute.size, dtype=np.int32)
    if attribute.nullable:
        codes[-1] = -1
    return list(values), codes


def _take(attribute, codes):
    """Values of codes as a pandas array; a missing cell is missing."""
    if isinstance(attribute, Numeric):
        positions = np.where(codes < attribute.n_values, codes, -1)
        if attribute.integer and attribute.bins == attribute.upper - attribute.lower + 1:
            integers = pd.array(attribute.edges[:-1], dtype="Int64")
            if attribute.nullable:
                return integers.take(positions, allow_fill=True)
            return integers.take(positions).astype("int64")
        labels = attribute.labels()[: attribute.n_values]
        return pd.Categorical.from_codes(positions, categories=labels, ordered=True)
    return attribute.decode(codes, None).array


def _level(attribute, name, level):
    """Labels of the groups of one level as a pandas array, and the group of each code."""
    levels = attribute.levels()
    if isinstance(level, bool) or not isinstance(level, numbers.Integral):
        raise TypeError(f"The level of {name!r} must be an integer, got {level!r}.")
    if not -len(levels) <= level < len(levels):
        raise ValueError(
            f"{name!r} has the levels 0 to {len(levels) - 1}, or -{len(levels)} to -1, got {level}."
        )
    chosen = levels[level]
    return pd.array(chosen.labels, dtype=object), chosen.groups


def _spread(values, shape, axis):
    """Entries along one axis, repeated for all cells in their order."""
    inner = math.prod(shape[axis + 1 :])
    return np.tile(np.repeat(values, inner), math.prod(shape[:axis]))


def _index(names, listed):
    if not names:
        return pd.Index(["(total)"])
    if len(names) == 1:
        return pd.Index(listed[0], name=names[0])
    return pd.MultiIndex.from_product(listed, names=names)


# --- files ----------------------------------------------------------------------------------------


def _exact(number):
    """An exact number as text, the sign apart."""
    return ("-" if number < 0 else "") + str(abs(number))


def _signed_fraction(text):
    if isinstance(text, str) and text.startswith("-"):
        return -fraction(text[1:])
    return fraction(text)


def _plain(epsilon):
    """An exact epsilon as the number that a user would write, where there is one."""
    written = float(epsilon)
    if Fraction(repr(written)) != epsilon:
        return epsilon
    return written


def _checked(arrays, name, shape, kinds):
    array = arrays[name]
    if array.shape != tuple(shape) or array.dtype.kind not in kinds:
        raise ValueError(f"its array {name} has the shape {array.shape} and type {array.dtype}")
    return array
