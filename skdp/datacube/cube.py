"""`DataCube`: counts or means over every set of dimensions, consistent with each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .._validation import FloatArray, check_choice, is_word
from ..algorithms import cuboids
from ..base import (
    AnswersStatistics,
    Likelihood,
    PrivateEstimator,
    full_domain,
    match_rows,
    warn_of_emptiness,
)
from ..exceptions import DomainError
from ..expected import ExpectsErrors, require_columns
from ..mechanisms import discrete_laplace, discrete_laplace_variance
from ..release import Synopsis
from ..tables import count_rows
from . import tables
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
    variance_limit,
)
from .tables import CubeModel, check_value, exact_sums, value_grid


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
        domain, name = tables.with_value(self.plan_, self.value)
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
        return tables.tidy_table(self.plan_, self.tables_, as_names(dimensions), query, levels)

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
        return tables.all_cuboids(self.plan_, self.tables_, margin)

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
        top = len(domain) if order is None else order
        cuboids.check_extent(domain.shape, top, domain.names)
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
        given = self.strategy
        if isinstance(given, CubePlan) and given._key() == plan._key():
            # Not the plan itself, whose attributes may have been changed since it was made.
            plan._simulated = given._simulated
        if self.consistency in ("l1", "linf") and plan._simulated is None:
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
