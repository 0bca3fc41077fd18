"""RangeTreeHistogram: a private histogram of one attribute that is accurate for ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from ..release import QueryResult, parse
from ..release.distribution import categories_below, position_of, share_below, values_below
from ..release.labels import tick_labels
from ..release.rounding import shuffled_line
from ..release.sampling import METHODS
from ..rows import Layout, count_rows
from .design import Plan, budget_parts, cover_variances, level_table, sum_variance
from .inputs import as_list, as_numbers, as_table, declared_attribute, only_attribute

__all__ = ["RangeTreeHistogram"]

# A histogram with more bins is drawn in groups of bins.
_MAX_BARS = 512


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
    bins : int, default=None
        Number of equal bins between ``bounds``; 32 by default.
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
        Much more accurate where many bins are empty; no longer unbiased. "auto" then plans
        "lengths" with more weight on short ranges, because the bound helps long ranges most.
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
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    # -- the release

    def fit(self, X: Any, y: Any = None) -> RangeTreeHistogram:
        """Charge epsilon, then release the noisy counts of the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, 1), or one column of shape (n_rows,)
            One row per person: NumPy array; pandas, Polars or PyArrow table, or series of pandas
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
        design = self._plan().design_of(only_attribute(domain))
        parts = budget_parts(design, self._record_epsilon())
        loss, source = self._spend(parts)

        counts = count_rows(rows, domain, self._contributions(loss, source, rows, domain)).dense()
        noisy = hierarchy.measure(
            design.tree,
            counts[design.codes],
            design.shares,
            loss.of_record.epsilon,
            random_state=source,
        )
        blue = Blue(design.tree, noisy.variances)
        estimates = self._estimate(blue, noisy.values)

        self._remember_columns(as_table(X), rows)
        self._layout = layout
        self.domain_ = domain
        self.tree_ = design.tree
        self.codes_ = design.codes
        self.noisy_counts_ = noisy.values
        self.node_counts_ = estimates
        self.blue_ = blue
        self.privacy_loss_ = loss
        total = self.count(None, return_interval=True)
        warn_of_emptiness(self, total.value, total.std)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def _estimate(self, blue: Blue, values: np.ndarray) -> np.ndarray:
        if self.non_negative:
            return hierarchy.non_negative(blue, values)
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
            Whether to return a `QueryResult` with the exact standard error and an interval.
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

    def standard_error(self, query: Any = None) -> Any:
        """Exact standard error of :meth:`count`, in closed form.

        Parameters
        ----------
        query
            As for :meth:`count`.

        Returns
        -------
        float or ndarray of float64
            Infinite where the measured nodes do not determine the count. With
            ``non_negative=True`` that of the estimate before the projection.
        """
        check_is_fitted(self)
        if self._has_shortcut(query):
            return np.sqrt(self.blue_.range_variances(*self._positions(query)))
        queries, several = as_list(query)
        errors = [self._std(self._leaf_weights(q)) for q in queries]
        return np.array(errors, dtype=np.float64) if several else errors[0]

    def quantile(self, q: Any) -> Any:
        """Values below which given shares of the records lie.

        Parameters
        ----------
        q : float or array-like of float
            In [0, 1].

        Returns
        -------
        float (int for an integer attribute, a Timestamp for dates, a category for ordered ones), \
        or array
            From the non-negative estimates, records spread evenly inside bins, missing values
            left out. Without any positive count, all values count as equally frequent.

        Raises
        ------
        ValueError
            If q is outside [0, 1], or the values have no order.
        """
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
        self, n_samples: Any = None, random_state: Any = None, *, method: str = "rounded"
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

        Returns
        -------
        frame of shape (n_samples, 1)
            Of the library and the type that ``fit`` was given, as far as this type can hold the
            values of the domain.

        Raises
        ------
        ValueError
            If ``method`` is another.
        """
        check_is_fitted(self)
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
        return self._build_table({str(name): drawn[name] for name in drawn})

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
        from ..plotting import PlotAxis, plot_intervals, plot_view

        check_is_fitted(self)
        level = as_level(level)
        attribute = only_attribute(self.domain_)
        numeric = isinstance(attribute, Numeric) and not attribute.special
        n = attribute.n_values
        at = np.arange(0, n, -(-n // _MAX_BARS) if numeric else 1)
        if attribute.nullable:
            at = np.append(at, n)
        edges = np.append(at, attribute.size)
        counts = np.add.reduceat(self._by_code(self._bin_counts()), at)
        half = self._half_widths(edges, level)
        where = np.append(at[at < n], n)
        borders = attribute.edges[where].astype(float) if numeric else where - 0.5
        labels = None if numeric else tick_labels(attribute)
        zone = None
        if numeric and isinstance(attribute, Date | Datetime):
            borders, zone = attribute.days(borders), attribute.axis_zone
        axis = PlotAxis(self.domain_.names[0], borders, labels, attribute.nullable, zone)
        ax = plot_view(counts, [axis], ax=ax)
        low = counts - half
        if self.non_negative:
            low = np.maximum(low, 0.0)
        plot_intervals(ax, axis, low, counts + half)
        return ax

    # -- parts of the answers

    def _leaf_weights(self, query: Any) -> np.ndarray:
        """Share of each leaf that a query covers, from left to right."""
        if not (query is None or isinstance(query, str | Mapping)):
            query = {self.domain_.names[0]: query}
        weights = parse(query, self.domain_).get(0)
        if weights is None:
            weights = np.ones(self.domain_.shape[0])
        return self.tree_.leaf_weights(weights[self.codes_])

    def _node_weights(self, leaf_weights: np.ndarray) -> np.ndarray:
        """Weight of each noisy count in the unbiased answer."""
        if self.consistency is None:
            return hierarchy.cover_weights(self.tree_, self.blue_.measured, leaf_weights)
        return self.blue_.noise_weights(leaf_weights)

    def _value(self, leaf_weights: np.ndarray) -> float:
        if self.consistency is None:
            return float(self._node_weights(leaf_weights) @ self.noisy_counts_)
        return float(self.node_counts_[self.tree_.leaves] @ leaf_weights)

    def _std(self, leaf_weights: np.ndarray) -> float:
        if self.consistency is None:
            return math.sqrt(sum_variance(self._node_weights(leaf_weights), self.blue_))
        return math.sqrt(self.blue_.query_variance(leaf_weights))

    def _answer(self, leaf_weights: np.ndarray, level: float) -> QueryResult:
        value, std = self._value(leaf_weights), self._std(leaf_weights)
        if math.isinf(std):
            guarantee = "the measured nodes do not determine this count."
            return QueryResult(value, std, -math.inf, math.inf, guarantee)
        weights = self._node_weights(leaf_weights)
        half = hierarchy.noise_quantile(weights, self.blue_.noise_variances, level)
        guarantee = (
            f"at least {100 * level:g}% for a query fixed before looking at the release, by the "
            "exact law of the noise"
        )
        low, high = value - half, value + half
        if self.non_negative:
            centre = float(weights @ self.noisy_counts_)
            low, high = min(max(centre - half, 0.0), value), max(centre + half, value)
            guarantee += (
                "; standard error and interval are those of the estimate before the projection, "
                "the interval cut at 0 and widened to hold the value"
            )
        if ((leaf_weights > 0) & (leaf_weights < 1)).any():
            guarantee += "; what is covered in part counts in proportion, which is taken as true"
        return QueryResult(value, std, low, high, guarantee + ".")

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
        if positive and not self.non_negative:
            nodes = hierarchy.non_negative(self.blue_, self.noisy_counts_)
        tree = self.tree_
        return np.repeat(nodes[tree.leaves] / tree.leaf_widths, tree.leaf_widths)

    def _bin_errors(self) -> np.ndarray:
        tree = self.tree_
        if self.consistency is None:
            variances = self.blue_.noise_variances[tree.leaves]
        else:
            variances = self.blue_.variances[tree.leaves]
        each = np.sqrt(variances) / tree.leaf_widths
        return self._by_code(np.repeat(each, tree.leaf_widths))

    def _by_code(self, by_position: np.ndarray) -> np.ndarray:
        out = np.empty(len(by_position))
        out[self.codes_] = by_position
        return out

    def _half_widths(self, edges: np.ndarray, level: float) -> np.ndarray:
        """Half widths of the intervals of consecutive groups of codes."""
        if (np.diff(edges) == 1).all():
            std = self._bin_errors()
        elif self.consistency is None:
            std = np.array(
                [
                    self._std(self.tree_.overlaps(edges[[i]], edges[[i + 1]])[:, 0])
                    for i in range(len(edges) - 1)
                ]
            )
        else:
            std = np.sqrt(self.blue_.range_variances(edges[:-1], edges[1:]))
        # One bar in the middle gives the shape for all: they differ mainly in scale.
        middle = (len(edges) - 1) // 2
        weights = np.zeros(len(self.codes_))
        weights[edges[middle] : edges[middle + 1]] = 1.0
        weights = self.tree_.leaf_weights(weights[self.codes_])
        one = self._node_weights(weights)
        reference = hierarchy.noise_quantile(one, self.blue_.noise_variances, level)
        return std * (reference / self._std(weights))

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
