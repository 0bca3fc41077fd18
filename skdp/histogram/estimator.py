"""RangeTreeHistogram: a private histogram of one attribute that is accurate for ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .. import hierarchy
from .._arrays import running_sums
from .._base import PrivateEstimator, match_rows, warn_of_emptiness
from .._random import sampling_generator
from .._validation import as_level, as_sample_size, check_choice
from ..domain import Categorical, Date, Datetime, Numeric
from ..exceptions import DomainError
from ..expected import ExpectsErrors
from ..hierarchy import Blue
from ..release import QueryResult, Synopsis, parse
from ..release.labels import plot_axis
from ..release.models.rounding import shuffled_line
from ..release.sampling import METHODS
from ..release.statistics.distribution import (
    categories_below,
    position_of,
    share_below,
    values_below,
)
from ..rows import Layout, count_rows
from .design import (
    Plan,
    as_condition,
    as_list,
    as_numbers,
    as_table,
    budget_parts,
    cover_variances,
    declared_attribute,
    level_table,
    only_attribute,
    partition_parts,
    placement_variance,
    range_errors,
    simulated_errors,
    sum_variance,
)
from .model import HistogramModel

__all__ = ["RangeTreeHistogram"]

# A histogram with more bins is drawn in groups of bins.
_MAX_BARS = 512

_LAW = (
    "at least {:g}% for a query fixed before looking at the release, by the exact law of the noise"
)
_UNDETERMINED = "the measured nodes do not determine this count."


def _around(value: Any, found: QueryResult) -> QueryResult:
    """A result for another estimate of the same; its interval is widened to hold it."""
    if not isinstance(found.lower, str) and found.value == found.value:
        return replace(
            found, value=value, lower=min(found.lower, value), upper=max(found.upper, value)
        )
    return replace(found, value=value)


class RangeTreeHistogram(ExpectsErrors, PrivateEstimator):
    """Private histogram of one attribute, accurate for ranges of all lengths.

    Besides the bins, groups of consecutive bins, which form a tree, are counted with noise. The
    counts are then made consistent by weighted least squares. A long range is the sum of a few
    large nodes instead of many small ones, and consistency makes every node more accurate. The
    levels to count and their shares of epsilon minimise the closed-form variance, before any data
    is read.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, Numeric or Categorical, default=None
        Public values of the one attribute. One of ``domain`` and ``bounds`` is required.
    bounds : (float, float), default=None
        Shorthand for ``Numeric(low, high, bins)``.
    bins : int or "auto", default=None
        Number of equal bins between ``bounds``. None is "auto": up to 1,024 bins, narrow near 0.
    tree : Tree, Taxonomy or iterable of (lower, upper), default=None
        A tree of your own: nested half-open intervals of codes, `skdp.hierarchy.Tree`, or a
        taxonomy of the categories. A missing cell is added to it. By default a categorical
        attribute uses its taxonomy, if it has one, and anything else a tree made by
        ``branching``.
    branching : "auto" or int, default="auto"
        Children of a node. "auto" measures only the levels that reduce the error (for 4,096 bins:
        16, 256 and 4,096 nodes); an integer makes the near-balanced tree of the GBLUE paper.
    budget : {"auto", "uniform", "geometric", "cube-root"} or array-like, default="auto"
        How epsilon is divided among the nodes of a path. "auto" minimises the variance of the
        consistent answers to ``workload`` (a level may get nothing); "uniform" treats all levels
        alike, as in the paper; "geometric" grows by a constant factor toward the leaves;
        "cube-root" is optimal for random ranges without consistency. An array holds one share
        for each level (scaled to sum 1) or for each node of the tree.
    workload : {"lengths", "all", "quantiles"}, int or sequence of int, default="lengths"
        Ranges that "auto" plans for. "lengths": 1, 2, 4, 8, ... bins, all of equal importance;
        "all": all ranges, equally likely; "quantiles": ranges from the first bin on; an integer:
        ranges of at most that many bins; a sequence: ranges of these lengths.
    consistency : {"blue", "iterative"} or None, default="blue"
        "blue" is exact weighted least squares in two passes, "iterative" the algorithm of the
        GBLUE paper (the same up to its tolerance of 1e-6 records, and slower), None answers
        from the fewest noisy nodes.
    non_negative : bool, default=False
        Project each node's children onto non-negative counts that sum to it, from the top down.
        More accurate where many bins are empty, and the same where none is near 0; no longer
        unbiased. It does not change what is measured.
    partition : {None, "dawa", "ahp", "adaptive", "auto"}, default=None
        Whether groups of bins that the data suggest are counted instead of all bins; the counts
        inside a group are taken as equal. None: all bins. "adaptive": nodes of the planned tree
        are divided only where their noisy counts are large, and the estimates are those of
        ``non_negative=True`` with siblings pulled together as far as they differ by noise; the
        most accurate unless unbiased estimates are needed. "auto": "adaptive" where it is
        possible (an order, and a tree and budget that are not given), else None. "dawa" and
        "ahp" are the published algorithms, for comparison.
    max_contributions : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``unit``. None: epsilon protects one row.
    unit : str, default=None
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
        The attribute under its column name.
    tree_ : skdp.hierarchy.Tree
        Its bins are positions; ``codes_`` says which code of the domain each one is.
    codes_ : ndarray of int64, shape (n_codes,)
        0, 1, 2, ... unless a taxonomy orders the categories otherwise.
    noisy_counts_ : ndarray of int64, shape (n_nodes,)
        The release itself, in the order of ``tree_``; 0 where nothing was measured.
    node_counts_ : ndarray of float64, shape (n_nodes,)
        Estimates for all nodes, made consistent as ``consistency`` says.
    blue_ : skdp.hierarchy.Blue
        Noise variances, and from them the exact error of every estimate: ``blue_.variances``,
        ``blue_.query_covariance``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts, one for each measured level where levels have one budget.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (1,)
        Only where the column had a name.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    tree, budget. *Released*: one noisy count for each measured node. *Cost*: a record is counted
    by the nodes of one path from the root to a leaf, whose shares sum to epsilon at most. The
    paper spends the same epsilon on every level, including the root, needs many sweeps, and its
    proof of convergence is incomplete; the limit is the same.

    References
    ----------
    "An Iterative Algorithm for Differentially Private Histogram Publication", CLOUDCOM-ASIA 2013.
    M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the accuracy of differentially private
    histograms through consistency", PVLDB 3, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import RangeTreeHistogram
    >>> minutes = np.arange(50_000) % 1440
    >>> day = RangeTreeHistogram(epsilon=1.0, bounds=(0, 1440), bins=1440).fit(minutes)
    >>> morning = day.count((360, 720), return_interval=True)
    >>> morning.lower < morning.value < morning.upper
    True
    """

    # Of releases that were stored before these existed.
    partition: Any = None
    _kind: str | None = None
    _simulated: np.ndarray | None = None

    def __init__(
        self,
        epsilon: Any = 1.0,
        *,
        domain: Any = None,
        bounds: Any = None,
        bins: Any = None,
        tree: Any = None,
        branching: Any = "auto",
        budget: Any = "auto",
        workload: Any = "lengths",
        consistency: Any = "blue",
        non_negative: Any = False,
        partition: Any = None,
        max_contributions: int | None = None,
        unit: str | None = None,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.domain = domain
        self.bounds = bounds
        self.bins = bins
        self.tree = tree
        self.branching = branching
        self.budget = budget
        self.workload = workload
        self.consistency = consistency
        self.non_negative = non_negative
        self.partition = partition
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    @property
    def _most_bins(self) -> int | None:
        return None

    # -- the release

    def fit(self, X: Any, y: Any = None) -> RangeTreeHistogram:
        """Charge epsilon, then release the noisy counts of the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, 1), or one column of shape (n_rows,)
            One row per record: NumPy array; pandas, Polars or PyArrow table, or series of pandas
            or Polars; or a lazy frame of Polars, DuckDB, Dask or PySpark, which is counted in its
            engine.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter does not fit; nothing is spent. Values never raise: out
            of range is clipped, and a record that the domain cannot represent is skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        rows, domain = match_rows(
            as_table(X), None, self._declared(), None, lazy=True, unit=self._unit(), of=self
        )
        layout = Layout.of(as_table(X), rows, domain)
        plan, attribute = self._plan(), only_attribute(domain)
        kind = plan.partition_of(attribute)
        design = plan.design_of(attribute)
        epsilon = self._record_epsilon()
        parts = partition_parts(kind, epsilon) if kind else budget_parts(design, epsilon)
        loss, source = self._spend(parts)

        counts = count_rows(rows, domain, self._contributions(loss, source, rows, domain)).dense()
        spent = loss.of_record
        if kind is None:
            exact = counts[design.codes]
            noisy = hierarchy.measure(
                design.tree, exact, design.shares, spent.epsilon, random_state=source
            )
            tree, codes, values, variances = design.tree, design.codes, *noisy
        else:
            tree, codes, shares, values = plan.release(kind, attribute, counts, spent, source)
            variances = hierarchy.measured_variances(shares, spent.epsilon)
        blue = Blue(tree, variances)

        self._remember_columns(as_table(X), rows)
        self._layout = layout
        self._kind = kind
        self._simulated = None
        self.domain_ = domain
        self.tree_ = tree
        self.codes_ = codes
        self.noisy_counts_ = values
        self.node_counts_ = self._estimate(blue, values)
        self.blue_ = blue
        self.privacy_loss_ = loss
        everything = np.ones(len(tree.leaves))
        warn_of_emptiness(self, self._value(everything), self._unbiased_std(everything))
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Computed again where it is needed.
        return {**super().__getstate__(), "_simulated": None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def _estimate(self, blue: Blue, values: np.ndarray) -> np.ndarray:
        if self._is_projected():
            return hierarchy.non_negative(blue, values, even=self._kind == "adaptive")
        if self.consistency == "blue":
            return blue.estimate(values)
        if self.consistency == "iterative":
            return hierarchy.gblue(blue.tree, values, blue.noise_variances)[0]
        unmeasured = ~blue.measured
        return blue.tree.sum_up(values.astype(np.float64), gain=unmeasured.astype(np.float64))

    # -- what is public before the fit

    def _declared(self) -> Any:
        """The domain as given, or from its shorthand."""
        if self.bounds is None:
            if self.bins is not None:
                raise ValueError(
                    f"bins={self.bins!r} needs bounds=(low, high); with domain= declare the bins "
                    "there."
                )
            if self.domain is None:
                raise DomainError(
                    "domain or bounds is required: the public range of the attribute, for "
                    "example bounds=(0, 100), bins=50. Reading it from the data would leak it."
                )
            return self.domain
        if self.domain is not None:
            raise ValueError("Both domain and bounds are given; bounds is shorthand for a domain.")
        try:
            low, high = self.bounds
        except (TypeError, ValueError):
            raise ValueError(f"bounds must be a pair (low, high), got {self.bounds!r}.") from None
        return Numeric(low, high, self.bins)

    def _plan(self) -> Plan:
        return Plan(
            self.tree,
            self.branching,
            self.budget,
            self.workload,
            self.consistency,
            self.non_negative,
            self.partition,
        )

    def plan(self, by: str = "length") -> pd.DataFrame:
        """Expected error, or the division of epsilon, before anything is spent or read.

        Parameters
        ----------
        by : {"length", "level"}, default="length"

        Returns
        -------
        DataFrame
            For "length" one row for each length of the workload: ``length`` in bins,
            ``std_error`` of a count of such a range (root mean square over all positions), and
            ``plain_std_error``, the same if all of epsilon were spent on the bins. Errors are
            those of the unbiased estimate; ``non_negative`` usually makes them smaller.

            For "level" one row for each level of the tree: ``level``, ``nodes``, ``epsilon`` of
            each node and ``noise_std`` (of the largest budget on the level where they differ).

        Raises
        ------
        DomainError, ValueError
            As ``fit``.
        """
        attribute = declared_attribute(self._declared())
        epsilon = self._record_epsilon()
        design = self._plan().design_of(attribute)
        check_choice(by, "by", ("length", "level"))
        if by == "level":
            return level_table(design, epsilon)
        n = attribute.n_values
        workload = self._plan().workload_of(n)
        variances = hierarchy.measured_variances(design.shares, epsilon)
        blue = Blue(design.tree, variances)
        if self.consistency is None:
            means = cover_variances(blue, workload, n)
        else:
            means = hierarchy.workload_variances(blue, workload, n_bins=n)
        lengths = np.minimum(workload.lengths, n)
        plain = hierarchy.measured_variances(np.array([10**6]), epsilon)[0]
        return pd.DataFrame(
            {
                "length": lengths,
                "std_error": np.sqrt(means),
                "plain_std_error": np.sqrt(lengths * plain),
            }
        )

    def _formula_errors(self, n: int) -> dict[str, float]:
        """Errors of a bin and of ranges between two uniform bins, from `plan`."""
        planned = self.plan().drop_duplicates("length")
        size = declared_attribute(self._declared()).n_values
        lengths = np.arange(1, size + 1)
        variance = np.interp(lengths, planned["length"], planned["std_error"] ** 2)
        often = np.where(lengths == 1, size, 2 * (size + 1 - lengths))
        mean = float(often @ variance / often.sum())
        return {"cell": math.sqrt(variance[0]), "one-column range": math.sqrt(mean)}

    # -- queries

    def count(
        self, query: Any = None, *, return_interval: bool = False, level: float = 0.95
    ) -> Any:
        """Estimate how many records have certain values.

        Parameters
        ----------
        query : tuple, scalar, set, dict, str, list of these, or ndarray of shape (m, 2)
            A tuple ``(a, b)`` is the closed range from a to b, a number one value, a set any of
            its values, None everything; dicts and strings are as for :meth:`skdp.Synopsis.count`
            (a single category that is text goes into a dict or a set: a string is a condition).
            A list holds several queries, an array the ends of m ranges. Ranges are clipped to
            the domain; a bin that a range covers in part counts in proportion.
        return_interval : bool, default=False
            Whether to return a `QueryResult` with the standard error and an interval.
        level : float, default=0.95
            Confidence of the interval, for a query fixed before looking at the release.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            One for a query, an array or list for several.

        Raises
        ------
        ValueError
            If a range is reversed, or a query does not fit the attribute.
        """
        check_is_fitted(self)
        level = as_level(level)
        if not return_interval and self._has_shortcut(query):
            start, stop = self._positions(query)
            running = running_sums(self._bin_counts())
            at = np.arange(len(running))
            return np.interp(stop, at, running) - np.interp(start, at, running)
        queries, several = as_list(query)
        if return_interval:
            results = [self._answer(self._leaf_weights(q), level) for q in queries]
            return results if several else results[0]
        values = [self._value(self._leaf_weights(q)) for q in queries]
        return np.array(values, dtype=np.float64) if several else values[0]

    def sum(self, query: Any = None, **how: Any) -> Any:
        """Sum of the values of the records of a query; see :meth:`skdp.Synopsis.sum`.

        Parameters
        ----------
        query
            As for :meth:`count`.
        **how
            ``return_interval``, ``level``, ``interval`` and ``population_size``.
        """
        return self._statistic("sum", query, how)

    def mean(self, query: Any = None, **how: Any) -> Any:
        """Mean of the values of the records of a query; see :meth:`skdp.Synopsis.mean`.

        Parameters
        ----------
        query
            As for :meth:`count`.
        **how
            ``return_interval``, ``level``, ``interval`` and ``population_size``.
        """
        return self._statistic("mean", query, how)

    def std(self, query: Any = None, **how: Any) -> Any:
        """Standard deviation of the values of the records; see :meth:`skdp.Synopsis.std`.

        Parameters
        ----------
        query
            As for :meth:`count`.
        **how
            ``return_interval``, ``level``, ``interval`` and ``population_size``.
        """
        return self._statistic("std", query, how)

    def proportion(self, query: Any, among: Any = None, **how: Any) -> Any:
        """Share of a query among another's records; see :meth:`skdp.Synopsis.proportion`.

        Parameters
        ----------
        query, among
            As for :meth:`count`, one each.
        **how
            ``return_interval``, ``level``, ``interval`` and ``population_size``.
        """
        asked, name = self._asked()
        return asked.proportion(as_condition(query, name), as_condition(among, name), **how)

    def describe(self, *, level: float = 0.95, numbers: bool = False) -> pd.DataFrame:
        """Statistics of the values with margins; see :meth:`skdp.Synopsis.describe`."""
        return self._asked()[0].describe(level=level, numbers=numbers)

    def _statistic(self, statistic: str, query: Any, how: Mapping[str, Any]) -> Any:
        """A statistic of the attribute, of one query or several."""
        asked, name = self._asked()
        queries, several = as_list(query)
        conditions = [as_condition(each, name) for each in queries]
        return getattr(asked, statistic)(name, conditions if several else conditions[0], **how)

    def _asked(self) -> tuple[Synopsis, str]:
        """The histogram as a synopsis, and the name of its column."""
        check_is_fitted(self)
        return Synopsis(self.domain_, HistogramModel(self)), self.domain_.names[0]  # type: ignore[arg-type]

    def standard_error(self, query: Any = None) -> Any:
        """Standard error of :meth:`count`: the root mean square error of the returned estimate.

        Exact and in closed form for unbiased estimates. Where negative counts are projected away
        it is found by simulation: noise is added to the released estimates as if they were the
        truth, and they are estimated again. A group of bins that a query covers in part adds the
        error of records that fall into the bins of the group at random.

        Parameters
        ----------
        query
            As for :meth:`count`.

        Returns
        -------
        float or ndarray of float64
            Infinite where the measured nodes do not determine the count.
        """
        check_is_fitted(self)
        if self._has_shortcut(query) and self._kind is None:
            start, stop = self._positions(query)
            if self._is_projected():
                return range_errors(self._simulation(), self.tree_, start, stop)
            return np.sqrt(self.blue_.range_variances(start, stop))
        queries, several = as_list(query)
        errors = [self._std(self._leaf_weights(q)) for q in queries]
        return np.array(errors, dtype=np.float64) if several else errors[0]

    def quantile(self, q: Any, *, return_interval: bool = False, **how: Any) -> Any:
        """Values below which given shares of the records lie.

        Parameters
        ----------
        q : float or array-like of float
            In [0, 1]; with intervals in (0, 1).
        return_interval : bool, default=False
            Whether to return a `QueryResult`, or a list of them.
        **how
            ``level``, ``interval`` and ``population_size``, as for :meth:`skdp.Synopsis.quantile`.

        Returns
        -------
        float (int for an integer attribute, a Timestamp for dates, a category for ordered ones), \
        array, QueryResult or list of QueryResult
            From the non-negative estimates, records spread evenly inside bins, missing values
            left out. Without any positive count, all values count as equally frequent.

        Raises
        ------
        ValueError
            If q is outside [0, 1], or the values have no order.
        """
        if return_interval:
            asked, name = self._asked()
            found = asked.quantile(name, q, return_interval=True, **how)
            own = self.quantile(q)
            if isinstance(found, list):
                return [_around(value, each) for value, each in zip(own, found, strict=True)]
            return _around(own, found)
        check_is_fitted(self)
        shares = np.asarray(q, dtype=np.float64)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError(f"Quantiles are shares in [0, 1], got {q!r}.")
        attribute, counts = self._ordered("quantiles"), self._value_counts()
        values: Any
        if isinstance(attribute, Categorical):
            values = categories_below(attribute, counts, np.atleast_1d(shares))
        else:
            values = values_below(attribute, counts, np.atleast_1d(shares))
            if attribute.integer:
                values = values.astype(np.int64)
            if not attribute.summable:
                values = attribute.shown(values).array
        return values.reshape(shares.shape) if shares.ndim else values[0]

    def cdf(self, x: Any) -> Any:
        """Share of the records with values up to x.

        Parameters
        ----------
        x : value or array-like
            Numbers; dates or ISO text for dates; categories for an ordered categorical
            attribute.

        Returns
        -------
        float or ndarray of float64
            Between 0 and 1 and non-decreasing, from the non-negative estimates; missing values are
            left out.

        Raises
        ------
        ValueError
            If a value is not a number (or not a category), or the values have no order.
        """
        check_is_fitted(self)
        attribute, counts = self._ordered("a distribution function"), self._value_counts()
        if isinstance(attribute, Categorical):
            given = np.asarray(x, dtype=object)
            codes = [attribute.index_of(value) + 1 for value in given.ravel().tolist()]
            share = (running_sums(counts) / counts.sum())[codes].reshape(given.shape)
        else:
            share = share_below(attribute, counts, as_numbers(attribute, x))
        return share if np.ndim(x) else float(share)

    def to_frame(self) -> pd.DataFrame:
        """The histogram as a table, one row for each bin.

        Returns
        -------
        DataFrame
            ``lower`` and ``upper`` end of the bin (numeric attributes; upper is exclusive, the
            last one inclusive; both are the value where it is special) or the column itself
            (categories), ``count``, ``std_error``. The missing cell, if any, is the last row.
        """
        check_is_fitted(self)
        attribute = only_attribute(self.domain_)
        missing = [None] * attribute.nullable
        columns: dict[str, Any]
        if isinstance(attribute, Numeric):
            edges = attribute.edges
            special = np.array(attribute.special, dtype=edges.dtype)
            low: Any
            high: Any
            low, high = (np.append(ends, special) for ends in (edges[:-1], edges[1:]))
            if attribute.nullable:
                low, high = (np.append(ends.astype(float), np.nan) for ends in (low, high))
            if isinstance(attribute, Date | Datetime):
                low, high = attribute.shown(low), attribute.shown(high)
            columns = {"lower": low, "upper": high}
        else:
            columns = {self.domain_.names[0]: list(attribute.categories) + missing}
        title = "count" if "count" not in columns else "count_"
        return pd.DataFrame(
            {**columns, title: self._by_code(self._bin_counts()), "std_error": self._bin_errors()}
        )

    def sample(
        self,
        n_samples: Any = None,
        random_state: Any = None,
        *,
        method: str = "rounded",
        like: Any = None,
    ) -> Any:
        """Draw synthetic records from the non-negative estimates.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows. None draws max(0, round(estimated total)) records; more than 500 million
            are drawn only if the number is given.
        random_state : int, numpy.random.Generator or None, default=None
            Seed of the draw. It is safe to set: drawing is post-processing of the release.
        method : {"rounded", "independent"}, default="rounded"
            "rounded": the count of each bin, and that of all bins up to one, is off by less than
            one from what is expected. "independent": each row is drawn by itself, as in a random
            sample.
        like : table, Series or array without rows, default=None
            Decides library and type, as far as its type can hold the values of the domain. Take a
            public type, not that of the records.

        Returns
        -------
        frame of shape (n_samples, 1)
            Of the library that ``fit`` was given, or that of ``like``, with the type of the domain.

        Raises
        ------
        ValueError
            If ``method`` is another, or ``like`` has rows or another column.
        """
        check_is_fitted(self)
        layout = self._layout_like(as_table(like))
        check_choice(method, "method", METHODS)
        n_rows = as_sample_size(n_samples, float(self.node_counts_[0]), 1)
        generator = sampling_generator(random_state)
        weights = self._bin_counts(positive=True)
        if not weights.sum() > 0:
            weights = np.ones(len(weights))
        if method == "rounded":
            positions = shuffled_line(weights, n_rows, generator)
        else:
            positions = generator.choice(len(weights), size=n_rows, p=weights / weights.sum())
        codes = self.codes_[positions].astype(np.int32)[:, None]
        drawn = self.domain_.decode(codes, generator)
        return self._build_table({str(name): drawn[name] for name in drawn}, layout)

    def plot(self, *, ax: Any = None, level: float = 0.95) -> Any:
        """Draw the histogram with a band of pointwise confidence intervals.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        level : float, default=0.95
            Confidence of the band, for each bar separately. Bars of many bins (there are at most
            512) have the exact error of their sum.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        from ..plotting import PlotAxis, loss_title, plot_view

        check_is_fitted(self)
        level = as_level(level)
        attribute = only_attribute(self.domain_)
        numeric = isinstance(attribute, Numeric) and not attribute.special
        n = attribute.n_values
        at = np.arange(0, n, -(-n // _MAX_BARS) if numeric else 1)
        if attribute.nullable:
            at = np.append(at, n)
        edges = np.append(at, attribute.size)
        counts, low, high = self._bars(edges, level)
        where = np.append(at[at < n], n)
        axis = PlotAxis(**plot_axis(self.domain_.names[0], attribute))
        axis = axis._replace(edges=axis.edges[where])
        title = loss_title(f"{100 * level:g}% intervals", self.privacy_loss_)
        return plot_view(counts, [axis], ax=ax, title=title, interval=(low, high))

    # -- parts of the answers

    def _code_weights(self, query: Any) -> np.ndarray:
        """Share of each code that a query covers."""
        weights = parse(as_condition(query, self.domain_.names[0]), self.domain_).get(0)
        return np.ones(self.domain_.shape[0]) if weights is None else weights

    def _leaf_weights(self, query: Any) -> np.ndarray:
        """Share of each leaf that a query covers, from left to right."""
        return self._weights_of_leaves(self._code_weights(query))

    def _weights_of_leaves(self, code_weights: np.ndarray) -> np.ndarray:
        """Mean weight of the codes of each leaf."""
        return self.tree_.leaf_weights(code_weights[self.codes_])

    def _node_weights(self, leaf_weights: np.ndarray) -> np.ndarray:
        """Weight of each noisy count in the unbiased answer."""
        if self.consistency is None:
            return hierarchy.cover_weights(self.tree_, self.blue_.measured, leaf_weights)
        return self.blue_.noise_weights(leaf_weights)

    def _value(self, leaf_weights: np.ndarray) -> float:
        if self.consistency is None:
            return float(self._node_weights(leaf_weights) @ self.noisy_counts_)
        return float(self.node_counts_[self.tree_.leaves] @ leaf_weights)

    def _is_projected(self) -> bool:
        """Whether the estimates are not those of the unbiased least squares."""
        return bool(self.non_negative) or self._kind == "adaptive"

    def _unbiased_std(self, leaf_weights: np.ndarray) -> float:
        if self.consistency is None:
            return math.sqrt(sum_variance(self._node_weights(leaf_weights), self.blue_))
        return math.sqrt(self.blue_.query_variance(leaf_weights))

    def _std(self, leaf_weights: np.ndarray, of_record: np.ndarray | None = None) -> float:
        """Standard error of an answer; ``of_record`` as for `placement_variance`."""
        std = self._unbiased_std(leaf_weights)
        if self._is_projected() and math.isfinite(std):
            std = math.sqrt(np.mean((self._simulation() @ leaf_weights) ** 2))
        if self._kind is None:
            return std
        if of_record is None:
            of_record = leaf_weights * (1.0 - leaf_weights)
        placement = placement_variance(self.tree_, self.node_counts_, of_record)
        return math.hypot(std, math.sqrt(placement))

    def _simulation(self) -> np.ndarray:
        """Errors of the leaves in repetitions of the release, shape (n_repetitions, n_leaves)."""
        if self._simulated is None:
            self._simulated = simulated_errors(self.blue_, self.node_counts_, self._estimate)
        return self._simulated

    def _unbiased_bounds(self, leaf_weights: np.ndarray, level: float) -> tuple[float, float]:
        """An interval by the exact law of the noise."""
        weights = self._node_weights(leaf_weights)
        half = hierarchy.noise_quantile(weights, self.blue_.noise_variances, level)
        centre = float(weights @ self.noisy_counts_)
        return centre - half, centre + half

    def _answer(self, leaf_weights: np.ndarray, level: float) -> QueryResult:
        value, std = self._value(leaf_weights), self._std(leaf_weights)
        if math.isinf(std):
            return QueryResult(value, std, -math.inf, math.inf, _UNDETERMINED)
        inner, outer = self._certain_weights(leaf_weights)
        guarantee = _LAW.format(100 * level)
        low, high = self._unbiased_bounds(inner, level)
        if outer is not inner:
            high = self._unbiased_bounds(outer, level)[1]
            guarantee += (
                "; of a group of bins that the query covers in part, none to all records count"
            )
        if self._is_projected() or self._kind is not None:
            low, high = min(max(low, 0.0), value), max(high, value)
            guarantee += "; cut at 0 and widened to hold the value"
        if self._is_projected():
            guarantee += "; the standard error is that of the value, by simulation"
        if ((inner > 0) & (inner < 1)).any():
            guarantee += "; what is covered in part counts in proportion, which is taken as true"
        return QueryResult(value, std, low, high, guarantee + ".")

    def _error(self, code_weights: np.ndarray, level: float) -> QueryResult:
        """As `_answer`, for weights of any sign."""
        weights = code_weights[self.codes_]
        mean = self.tree_.leaf_weights(weights)
        varying = np.maximum(self.tree_.leaf_weights(weights**2) - mean**2, 0.0)
        value, std = self._value(mean), self._std(mean, varying)
        if math.isinf(std):
            return QueryResult(value, std, -math.inf, math.inf, _UNDETERMINED)
        least, most, guarantee = mean, mean, _LAW.format(100 * level)
        if len(mean) < len(weights):
            starts = self.tree_.lower[self.tree_.leaves]
            least, most = (each.reduceat(weights, starts) for each in (np.minimum, np.maximum))
            guarantee += "; records may lie anywhere in the groups of bins that were measured"
        low = self._unbiased_bounds(least, level)[0]
        high = self._unbiased_bounds(most, level)[1]
        if self._is_projected() or self._kind is not None:
            low, high = min(low, value), max(high, value)
            guarantee += "; widened to hold the value"
        return QueryResult(value, std, low, high, guarantee + ".")

    def _certain_weights(self, leaf_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights without, and with all of, the groups of bins that a query covers in part."""
        partly = (leaf_weights > 0) & (leaf_weights < 1) & (self.tree_.leaf_widths > 1)
        if self._kind is None or not partly.any():
            return leaf_weights, leaf_weights
        return np.where(partly, 0.0, leaf_weights), np.where(partly, 1.0, leaf_weights)

    def _has_shortcut(self, query: Any) -> bool:
        """Whether many ranges can be answered together: consistent counts have running sums."""
        if not isinstance(query, np.ndarray):
            return False
        if query.ndim != 2 or query.shape[1] != 2:
            raise ValueError(
                f"An array of ranges has the shape (m, 2), the ends of each, got {query.shape}. "
                "Give other queries as a list."
            )
        plain = not getattr(only_attribute(self.domain_), "special", ())
        plain = plain and self._kind != "ahp"
        return query.dtype.kind in "iuf" and self.consistency is not None and plain

    def _positions(self, ranges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends of closed ranges of values as positions in bins."""
        attribute = self._ordered("ranges of numbers")
        if isinstance(attribute, Categorical):
            raise ValueError("Ranges of categories are given as a list of tuples.")
        ends = np.asarray(ranges, dtype=np.float64)
        if (ends[:, 0] > ends[:, 1]).any():
            low, high = ends[np.argmax(ends[:, 0] > ends[:, 1])]
            raise ValueError(
                f"The range from {low:g} to {high:g} is reversed. Write the lower end first."
            )
        start = position_of(attribute, ends[:, 0], closed=False)
        stop = position_of(attribute, ends[:, 1], closed=True)
        return start, np.maximum(stop, start)

    def _bin_counts(self, *, positive: bool = False) -> np.ndarray:
        """Estimate for each position; a leaf of several bins is spread evenly."""
        nodes = self.node_counts_
        if positive and not self._is_projected():
            nodes = hierarchy.non_negative(self.blue_, self.noisy_counts_)
        tree = self.tree_
        return np.repeat(nodes[tree.leaves] / tree.leaf_widths, tree.leaf_widths)

    def _bin_errors(self, *, unbiased: bool = False) -> np.ndarray:
        """Standard error of each code."""
        tree = self.tree_
        width = tree.leaf_widths
        if self._is_projected() and not unbiased:
            variances = (self._simulation() ** 2).mean(axis=0)
        elif self.consistency is None:
            variances = self.blue_.noise_variances[tree.leaves]
        else:
            variances = self.blue_.variances[tree.leaves]
        each = variances / width**2
        if self._kind is not None:
            each += np.maximum(self.node_counts_[tree.leaves], 0.0) / width * (1.0 - 1.0 / width)
        return self._by_code(np.repeat(np.sqrt(each), width))

    def _by_code(self, by_position: np.ndarray) -> np.ndarray:
        out = np.empty(len(by_position))
        out[self.codes_] = by_position
        return out

    def _bars(self, edges: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimates of consecutive groups of codes, and the ends of their intervals."""
        counts = np.add.reduceat(self._by_code(self._bin_counts()), edges[:-1])
        start, stop = edges[:-1], edges[1:]
        if self._kind is None:
            low, high = self._unbiased_bars(start, stop, level)
        elif self._kind == "ahp":
            # Bins of a group are not neighbours: one bar at a time.
            bounds = [
                self._answer(self._codes_weights(*ends), level)
                for ends in zip(start, stop, strict=True)
            ]
            low, high = np.array([[each.lower, each.upper] for each in bounds]).T
        else:
            # Whole groups of bins inside each bar, and all that it touches.
            cuts = np.append(0, np.cumsum(self.tree_.leaf_widths))
            inner = (
                cuts[np.searchsorted(cuts, start)],
                cuts[np.searchsorted(cuts, stop, "right") - 1],
            )
            outer = (
                cuts[np.searchsorted(cuts, start, "right") - 1],
                cuts[np.searchsorted(cuts, stop)],
            )
            low = self._unbiased_bars(inner[0], np.maximum(*inner), level)[0]
            high = self._unbiased_bars(*outer, level)[1]
        if self._is_projected() or self._kind is not None:
            low, high = np.minimum(np.maximum(low, 0.0), counts), np.maximum(high, counts)
        return counts, low, high

    def _codes_weights(self, start: int, stop: int) -> np.ndarray:
        weights = np.zeros(len(self.codes_))
        weights[start:stop] = 1.0
        return self.tree_.leaf_weights(weights[self.codes_])

    def _unbiased_bars(
        self, start: np.ndarray, stop: np.ndarray, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals of the unbiased counts of ranges of codes."""
        if (stop - start == 1).all() and self._kind is None:
            std = self._bin_errors(unbiased=True)
        elif self.consistency is None:
            bars = [self._codes_weights(*ends) for ends in zip(start, stop, strict=True)]
            std = np.array([self._unbiased_std(bar) for bar in bars])
        else:
            std = np.sqrt(self.blue_.range_variances(start, stop))
        # One bar in the middle gives the shape for all: they differ mainly in scale.
        middle = (len(start) - 1) // 2
        weights = self._codes_weights(start[middle], stop[middle])
        if weights.any():
            one = self._node_weights(weights)
            reference = hierarchy.noise_quantile(one, self.blue_.noise_variances, level)
            half = std * (reference / self._unbiased_std(weights))
        else:
            half = std * hierarchy.noise_quantile([1.0], [1e6], level) / 1e3
        nodes = self.node_counts_
        if self._is_projected():
            nodes = self.blue_.estimate(self.noisy_counts_)
        tree = self.tree_
        each = np.repeat(nodes[tree.leaves] / tree.leaf_widths, tree.leaf_widths)
        running = running_sums(self._by_code(each))
        centre = running[stop] - running[start]
        return centre - half, centre + half

    def _ordered(self, what: str) -> Any:
        attribute = only_attribute(self.domain_)
        if isinstance(attribute, Categorical) and not attribute.ordered:
            raise ValueError(
                f"The categories of {self.domain_.names[0]!r} have no order, so there are no "
                f"{what}. Declare them with ordered=True if they have one."
            )
        return attribute

    def _value_counts(self) -> np.ndarray:
        """Non-negative estimates by code, the missing cell left out."""
        attribute = only_attribute(self.domain_)
        counts = self._by_code(self._bin_counts(positive=True))[: attribute.n_values]
        if not counts.sum() > 0:
            counts = np.ones(len(counts))
        return counts
