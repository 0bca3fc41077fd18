"""RangeTreeHistogram: a private histogram of one attribute that is accurate for ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .. import hierarchy
from .._base import PrivateEstimator, match_rows, warn_of_emptiness
from .._random import sampling_generator
from .._validation import as_level, as_sample_size, check_choice
from ..domain import Numeric
from ..exceptions import DomainError
from ..expected import ExpectsErrors
from ..hierarchy import Blue
from ..release import Synopsis
from ..release.labels import plot_axis
from ..release.models.rounding import shuffled_line
from ..release.sampling import METHODS
from ..rows import Layout, count_rows
from .design import (
    Plan,
    as_table,
    budget_parts,
    cover_variances,
    declared_attribute,
    level_table,
    only_attribute,
    partition_parts,
)
from .model import HistogramModel, as_conditions

# A histogram with more bins is drawn in groups of bins.
_MAX_BARS = 128


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
        ``blue_.query_variance``.
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
        loss, source = self._spend(parts, rows)

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
        model = HistogramModel(
            domain,
            codes,
            Blue(tree, variances),
            values,
            self.consistency,
            bool(self.non_negative),
            kind,
        )

        self._remember_columns(as_table(X), rows)
        self._layout = layout
        self._model = model
        self.domain_ = domain
        self.tree_ = tree
        self.codes_ = codes
        self.noisy_counts_ = values
        self.node_counts_ = model.nodes
        self.blue_ = model.blue
        self.privacy_loss_ = loss
        warn_of_emptiness(self, model.total, model.unbiased_std(np.ones(len(tree.leaves))))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

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

    def count(self, query: Any = None, **how: Any) -> Any:
        """Estimate how many records have certain values.

        Parameters
        ----------
        query : tuple, scalar, set, dict, str, list of these, or ndarray of shape (m, 2)
            A tuple ``(a, b)`` is the closed range from a to b, a number one value, a set any of
            its values, None everything; dicts and strings are as for :meth:`skdp.Synopsis.count`
            (a single category that is text goes into a dict or a set: a string is a condition).
            A list holds several queries, an array the ends of m ranges. Ranges are clipped to
            the domain; a bin that a range covers in part counts in proportion.
        **how
            As for :meth:`skdp.Synopsis.count`: ``return_interval``, ``level`` and others. The
            standard error is exact for unbiased estimates. Where negative counts are projected
            away it is found by simulation from the released estimates. A group of bins that a
            query covers in part adds the error of records that fall into its bins at random.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            One for a query, an array or list for several.

        Raises
        ------
        ValueError
            If a range is reversed, or a query does not fit the attribute.
        """
        asked, name = self._asked()
        return asked.count(as_conditions(query, name), **how)

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
        return asked.proportion(as_conditions(query, name), as_conditions(among, name), **how)

    def describe(self, *, level: float = 0.95, numbers: bool = False) -> pd.DataFrame:
        """Statistics of the values with margins; see :meth:`skdp.Synopsis.describe`."""
        return self._asked()[0].describe(level=level, numbers=numbers)

    def _statistic(self, statistic: str, query: Any, how: Mapping[str, Any]) -> Any:
        """A statistic of the attribute, of one query or several."""
        asked, name = self._asked()
        return getattr(asked, statistic)(name, as_conditions(query, name), **how)

    def _asked(self) -> tuple[Synopsis, str]:
        """The histogram as a synopsis, and the name of its column."""
        check_is_fitted(self)
        return Synopsis(self.domain_, self._model), self.domain_.names[0]  # type: ignore[arg-type]

    def quantile(self, q: Any, **how: Any) -> Any:
        """Values below which given shares of the records lie.

        Parameters
        ----------
        q : float or sequence of float
            In (0, 1).
        **how
            As for :meth:`skdp.Synopsis.quantile`.

        Returns
        -------
        float (a Timestamp for dates, a category for ordered ones), array, QueryResult or list
            As from :meth:`skdp.Synopsis.quantile`: from the non-negative estimates, records spread
            evenly inside bins, missing values left out; nan without any positive count.

        Raises
        ------
        ValueError
            If q is not between 0 and 1, or the values have no order.
        """
        check_is_fitted(self)
        asked = Synopsis(self.domain_, self._model.positive)  # type: ignore[arg-type]
        return asked.quantile(self.domain_.names[0], q, **how)

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
        return self._model.table()

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
        weights = self._model.positive.bin_counts()
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
            128) have the exact error of their sum.

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
        attribute = self._model.attribute
        numeric = isinstance(attribute, Numeric) and not attribute.special
        n = attribute.n_values
        at = np.arange(0, n, -(-n // _MAX_BARS) if numeric else 1)
        if attribute.nullable:
            at = np.append(at, n)
        edges = np.append(at, attribute.size)
        counts, low, high = self._model.bars(edges, level)
        where = np.append(at[at < n], n)
        axis = PlotAxis(**plot_axis(self.domain_.names[0], attribute))
        axis = axis._replace(edges=axis.edges[where])
        title = loss_title(f"{100 * level:g}% intervals", self.privacy_loss_)
        return plot_view(counts, [axis], ax=ax, title=title, interval=(low, high))
