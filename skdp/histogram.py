"""A private histogram of one attribute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from . import hierarchy
from ._random import sampling_generator
from ._validation import (
    CodeArray,
    FloatArray,
    as_level,
    as_sample_size,
    check_choice,
    check_flag,
    free_name,
    is_word,
)
from .algorithms import dawa
from .base import AnswersStatistics, Likelihood, PrivateEstimator, match_rows, warn_of_emptiness
from .domain import Categorical, Domain, Numeric, Taxonomy
from .domain.query import Query
from .exceptions import DomainError
from .expected import ExpectsErrors
from .hierarchy import Blue, Tree
from .mechanisms import discrete_laplace_variance
from .release import Synopsis
from .release.model import KnownLaw, Reach, covariances_from
from .release.result import group_labels
from .release.rounding import shuffled_line
from .release.sampling import METHODS
from .tables import Layout, count_rows, list_entries

__all__ = ["RangeTreeHistogram"]

# ------------------------------------------------------------------------------------------------
# What a histogram will measure: tree and budget, from public facts or from released counts.


# --- reading the column and the domain of a histogram


def as_table(X: Any) -> Any:
    """One column as a table; everything else as it is."""
    if hasattr(X, "to_frame") and not hasattr(X, "columns"):
        return X.to_frame()
    if isinstance(X, np.ndarray) and X.ndim == 1:
        return X[:, None]
    if isinstance(X, list | tuple):
        # Entry by entry: a list in the place of a number is an odd value, and no other table.
        return list_entries(X)[:, None]
    return X


# --- tree and budget

# Default branching when a budget but no tree is given: near the best of all uniform trees.
_DEFAULT_BRANCHING = 16
PARTITIONS = (None, "dawa", "ahp", "adaptive", "auto")


def parts_of(
    kind: str | None, tree: Tree, shares: np.ndarray, epsilon: Fraction
) -> dict[str, Fraction]:
    """Parts of the budget.

    Those for choosing buckets and for counting them; or those of the levels of a tree, where their
    largest shares sum to 1; or epsilon in one piece.
    """
    if kind in ("dawa", "ahp"):
        published = dawa.DAWA_SHARES if kind == "dawa" else dawa.AHP_SHARES
        return {name: epsilon * share for name, share in published.items()}
    parts = {}
    # Leaves above the last level may have more.
    early = tree.is_leaf & (tree.depth < tree.n_levels - 1)
    for level, size in enumerate(np.diff(tree.level_starts)):
        share = shares[(tree.depth == level) & ~early].max(initial=0)
        if share:
            name = f"level {level} ({size} node{'s' if size > 1 else ''})"
            parts[name] = epsilon * Fraction(int(share), 10**6)
    in_levels = kind is None and sum(parts.values()) == epsilon
    return parts if in_levels else {"tree": epsilon}


# Repetitions of a simulation: as many as fit into this many numbers, within these limits.
_NUMBERS = 4_000_000
_FEWEST, _MOST = 12, 200


# ------------------------------------------------------------------------------------------------
# HistogramModel: a released range tree, and all that is answered from it.


_LAW = "for a query fixed before looking at the release, by the exact law of the noise"


def as_conditions(query: Any, name: str) -> Any:
    """A query about the one column, or a list of them, as synopses understand it."""
    if isinstance(query, np.ndarray):
        if query.ndim != 2 or query.shape[1] != 2:
            raise ValueError(f"An array of ranges has the shape (m, 2), got {query.shape}.")
        query = [tuple(ends) for ends in query.tolist()]
    if isinstance(query, list):
        return [as_conditions(each, name) for each in query]
    return query if query is None or isinstance(query, str | Mapping) else {name: query}


@dataclass
class HistogramModel(KnownLaw):
    """Noisy counts of the nodes of a tree; weights are those of the codes of the one attribute.

    Parameters
    ----------
    domain : Domain
        Of one attribute.
    codes : ndarray of int64, shape (n_codes,)
        Code of the domain at each position of the tree.
    blue : Blue
        The tree and the variances of its noise.
    noisy : ndarray of int64, shape (n_nodes,)
        The release itself; 0 where nothing was measured.
    consistency : {"blue", "iterative"}, default="blue"
        "blue" is exact weighted least squares in two passes, "iterative" the algorithm of the
        GBLUE paper (the same up to its tolerance of 1e-6 records, and slower).
    non_negative : bool
    kind : {"adaptive", "dawa", "ahp"} or None
        How released counts divided the bins.
    """

    domain: Domain
    codes: np.ndarray
    blue: Blue
    noisy: np.ndarray
    consistency: str
    non_negative: bool
    kind: str | None

    def __getstate__(self) -> dict[str, Any]:
        # Computed again where it is needed.
        derived = ("simulation", "positive")
        return {name: value for name, value in vars(self).items() if name not in derived}

    @property
    def tree(self) -> Tree:
        """Its bins are positions."""
        return self.blue.tree

    @property
    def projected(self) -> bool:
        """Whether the estimates are not those of the unbiased least squares."""
        return self.non_negative or self.kind == "adaptive"

    @cached_property
    def nodes(self) -> np.ndarray:
        """Estimates of all nodes."""
        return self._estimate(self.noisy)

    @cached_property
    def positive(self) -> HistogramModel:
        """The same release with estimates that are not negative, for quantiles and rows."""
        return self if self.projected else replace(self, non_negative=True)

    @cached_property
    def simulation(self) -> np.ndarray:
        """Errors of the leaves if the released estimates were the truth, (n_repetitions, n_leaves).

        Estimates that are not linear in the noisy counts have no closed form. It reads released
        numbers only, and is the same at each call.
        """
        generator = sampling_generator(0)
        leaves, measured = self.tree.leaves, self.blue.measured
        # The variance of discrete Laplace noise determines its rate.
        rates = 2.0 * np.arcsinh(np.sqrt(0.5 / self.blue.noise_variances[measured]))
        success = -np.expm1(-rates)
        repetitions = int(np.clip(_NUMBERS // len(self.nodes), _FEWEST, _MOST))
        errors = np.empty((repetitions, len(leaves)))
        values = np.zeros(len(self.nodes))
        for errors_once in errors:
            noise = generator.geometric(success) - generator.geometric(success)
            values[measured] = self.nodes[measured] + noise
            errors_once[:] = (self._estimate(values) - self.nodes)[leaves]
        return errors

    def _estimate(self, values: np.ndarray) -> np.ndarray:
        if self.projected:
            return hierarchy.non_negative(self.blue, values, even=self.kind == "adaptive")
        if self.consistency == "blue":
            return self.blue.estimate(values)
        return hierarchy.gblue(self.tree, values, self.blue.noise_variances)[0]

    # -- what a synopsis asks of a model

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return float(self.nodes[self.tree.leaves].sum())

    @property
    def about(self) -> str:
        """What was released, in words."""
        return f"noisy counts of {int(self.blue.measured.sum()):,} ranges of one column"

    @property
    def covers(self) -> str:
        """What variances cover."""
        groups = ", and where records lie in the groups of bins that were measured"
        return "the noise" + (groups if self.kind else "")

    def answer(self, queries: Sequence[Query]) -> FloatArray:
        """Weighted sum of bins, one float for each query."""
        leaves = self.nodes[self.tree.leaves]
        found = [leaves @ self.tree.leaf_weights(self._codes(each)) for each in queries]
        return np.array(found, dtype=np.float64)

    def variance(self, queries: Sequence[Query]) -> FloatArray:
        """Variance of each answer."""
        return np.array([self._std(self._codes(query)) ** 2 for query in queries])

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Covariance of the errors of a few answers."""
        return covariances_from(self.variance, blocks)

    def _reach(self, queries: Sequence[Query], level: float) -> Reach:
        each = [self._reach_of(self._codes(query), level) for query in queries]
        below, above, texts = zip(*each, strict=True)
        std = np.sqrt(self.variance(queries))
        return Reach(std, np.array(below), np.array(above), texts[0])

    def _reach_of(self, weights: FloatArray, level: float) -> tuple[float, float, str]:
        mean = self.tree.leaf_weights(weights)
        value = float(self.nodes[self.tree.leaves] @ mean)
        if math.isinf(self.blue.query_variance(mean)):
            return math.inf, math.inf, "the measured nodes do not determine this count."
        least, most, guarantee = mean, mean, f"at least {100 * level:g}% {_LAW}"
        if len(mean) < len(weights):
            starts = self.tree.lower[self.tree.leaves]
            least, most = (each.reduceat(weights, starts) for each in (np.minimum, np.maximum))
            guarantee += "; records may lie anywhere in the groups of bins that were measured"
        low, high = self._unbiased_end(least, level, -1), self._unbiased_end(most, level, 1)
        if self.projected or self.kind is not None:
            low, high = min(low, value), max(high, value)
            guarantee += "; widened to hold the value"
        if self.projected:
            guarantee += "; the standard error is that of the value, by simulation"
        return value - low, high - value, guarantee + "."

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Estimated counts of all codes."""
        return self.bin_counts()[np.argsort(self.codes)]

    def _codes(self, query: Query) -> FloatArray:
        """Weight of each position in a sum of answers."""
        ones = np.ones(self.domain.shape[0])
        weights: FloatArray = np.sum([part.get(0, ones) for part in query.products], axis=0)
        return weights[self.codes]

    # -- counts of bins and of weighted leaves

    def _std(self, weights: FloatArray) -> float:
        """Standard error of a weighted sum of positions."""
        mean = self.tree.leaf_weights(weights)
        std = math.sqrt(self.blue.query_variance(mean))
        if self.projected and math.isfinite(std):
            std = math.sqrt(np.mean((self.simulation @ mean) ** 2))
        if self.kind is None:
            return std
        # The weight of a record that falls into a bin of its leaf at random varies.
        varying = np.maximum(self.tree.leaf_weights(weights**2) - mean**2, 0.0)
        inside = np.maximum(self.nodes[self.tree.leaves], 0.0) * (self.tree.leaf_widths > 1)
        return math.hypot(std, math.sqrt(inside @ varying))

    def _unbiased_end(self, leaf_weights: FloatArray, level: float, sign: int) -> float:
        """Lower or upper end of an interval by the exact law of the noise."""
        weights = self.blue.noise_weights(leaf_weights)
        half = hierarchy.noise_quantile(weights, self.blue.noise_variances, level)
        return float(weights @ self.noisy) + sign * half

    def bin_counts(self) -> np.ndarray:
        """Estimate for each position; a leaf of several bins is spread evenly."""
        widths = self.tree.leaf_widths
        return np.repeat(self.nodes[self.tree.leaves] / widths, widths)

    def bin_errors(self) -> np.ndarray:
        """Standard error of each code."""
        tree = self.tree
        width = tree.leaf_widths
        if self.projected:
            variances = (self.simulation**2).mean(axis=0)
        else:
            variances = self.blue.variances[tree.leaves]
        each = variances / width**2
        if self.kind is not None:
            each += np.maximum(self.nodes[tree.leaves], 0.0) / width * (1.0 - 1.0 / width)
        return np.repeat(np.sqrt(each), width)[np.argsort(self.codes)]


# ------------------------------------------------------------------------------------------------
# RangeTreeHistogram: a private histogram of one attribute that is accurate for ranges.


# A histogram with more bins is drawn in groups of bins.
_MAX_BARS = 128


@dataclass(eq=False, repr=False, kw_only=True)
class RangeTreeHistogram(ExpectsErrors, AnswersStatistics, Likelihood, PrivateEstimator):
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
    domain : Domain, Numeric, Categorical or (low, high), default=None
        Public values of the one attribute, required. A pair of whole numbers is a range of whole
        numbers, any other pair one of real numbers.
    tree : Tree, Taxonomy or iterable of (lower, upper), default=None
        A tree of your own: nested half-open intervals of codes, `skdp.hierarchy.Tree`, or a
        taxonomy of the categories. A missing cell is added to it. By default a categorical
        attribute uses its taxonomy, if it has one, and anything else a tree made by
        ``branching``.
    branching : "auto" or int, default="auto"
        Children of a node. "auto" measures only the levels that reduce the error (for 4,096 bins:
        16, 256 and 4,096 nodes); an integer makes the near-balanced tree of the GBLUE paper.
    budget : {"auto", "uniform"} or array-like, default="auto"
        How epsilon is divided among the nodes of a path. "auto" minimises the variance of the
        answers to ``workload`` (a level may get nothing), or takes the best of four budgets on an
        irregular tree; "uniform" treats all levels alike, as in the paper. An array holds one share
        for each level (scaled to sum 1) or for each node of the tree.
    workload : {"lengths", "all", "quantiles"}, int or sequence of int, default="lengths"
        Ranges that "auto" plans for. "lengths": 1, 2, 4, 8, ... bins, all of equal importance;
        "all": all ranges, equally likely; "quantiles": ranges from the first bin on; an integer:
        ranges of at most that many bins; a sequence: ranges of these lengths.
    consistency : {"blue", "iterative"}, default="blue"
        "blue" is exact weighted least squares in two passes, "iterative" the algorithm of the
        GBLUE paper (the same up to its tolerance of 1e-6 records, and slower).
    non_negative : bool, default=False
        Project each node's children onto non-negative counts that sum to it, from the top down.
        More accurate where many bins are empty, and the same where none is near 0; no longer
        unbiased. It does not change what is measured.
    partition : {None, "dawa", "ahp", "adaptive", "auto"}, default=None
        Whether groups of bins that the data suggest are counted instead of all bins; the counts
        inside a group are taken as equal. None: all bins. "adaptive": nodes of the planned tree
        are divided only where their noisy counts are large, and the estimates are those of
        ``non_negative=True`` with siblings pulled together as far as they differ by noise: more
        accurate where noise is large, and not unbiased. "auto": "adaptive" where it is
        possible (an order, and a tree and budget that are not given), else None. "dawa" and
        "ahp" are the published algorithms, for comparison.
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
    >>> from skdp import Numeric, RangeTreeHistogram
    >>> minutes = np.arange(50_000) % 1440
    >>> day = RangeTreeHistogram(epsilon=1.0, domain=Numeric(0, 1440, bins=1440)).fit(minutes)
    >>> morning = day.count((360, 720), return_interval=True)
    >>> morning.lower < morning.value < morning.upper
    True
    """

    domain: Any = None
    tree: Any = None
    branching: Any = "auto"
    budget: Any = "auto"
    workload: Any = "lengths"
    consistency: Any = "blue"
    non_negative: Any = False
    partition: Any = None
    max_rows_per_id: int | None = None
    privacy_id: str | None = None

    _most_bins = None

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
        table = as_table(X)
        rows, domain = match_rows(
            table, None, self.domain, None, lazy=True, privacy_id=self._privacy_id(), of=self
        )
        layout = Layout(table, rows, domain)
        attribute, *others = domain.attributes
        if others:
            some = list(domain.names)[:8]
            raise DomainError(f"A RangeTreeHistogram has one attribute: select one of {some}.")
        kind, (tree, codes, shares) = self._partition_of(attribute), self._design_of(attribute)
        loss, source = self._spend(rows, parts_of(kind, tree, shares, self._record_epsilon()))

        counts = count_rows(rows, domain, self._contributions(loss, source, rows, domain)).dense()
        exact, spent = counts[codes], loss.of_record
        if kind is None:
            values = hierarchy.measure(tree, exact, shares, spent.epsilon, random_state=source)
        else:
            found = self._grouped(kind, attribute.n_values, exact, spent, source)
            tree, codes, shares, values = found._replace(order=codes[found.order])
        blue = Blue(tree, hierarchy.measured_variances(shares, spent.epsilon))
        model = HistogramModel(
            domain, codes, blue, values, self.consistency, bool(self.non_negative), kind
        )

        self._remember_columns(table, rows)
        self._layout = layout
        self._model = model
        self.domain_ = domain
        self.tree_ = tree
        self.codes_ = codes
        self.noisy_counts_ = values
        self.node_counts_ = model.nodes
        self.blue_ = blue
        self.privacy_loss_ = loss
        variance = blue.query_variance(np.ones(len(tree.leaves)))
        warn_of_emptiness(self, model.total, math.sqrt(variance))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    # -- what is public before the fit

    def _design_of(self, attribute: Any) -> tuple[Tree, np.ndarray, np.ndarray]:
        """Tree, code at each of its positions, and share of each node in millionths of epsilon.

        From public facts alone; those of a full tree if data divide it.
        """
        check_choice(self.consistency, "consistency", ("blue", "iterative"))
        check_flag(self.non_negative, "non_negative")
        tree, codes = self._tree_of(attribute)
        shares = self._shares_of(tree)
        if attribute.nullable:
            tree, shares = hierarchy.with_extra_bin(tree, shares)
            codes = np.append(codes, attribute.n_values)
        return tree, codes, hierarchy.exact_shares(tree, shares)

    def _given_tree(self, attribute: Any) -> Any:
        """A tree of the user's own, or the taxonomy of the categories."""
        taxonomy = attribute.taxonomy if isinstance(attribute, Categorical) else None
        return taxonomy if self.tree is None else self.tree

    def _tree_of(self, attribute: Any) -> tuple[Tree, np.ndarray]:
        """Tree over the values of the attribute, and the code at each of its positions."""
        n = attribute.n_values
        # Special values of numbers stand among the bins, where ranges need them.
        codes = attribute.order()[:n] if isinstance(attribute, Numeric) else np.arange(n)
        given, auto = self._given_tree(attribute), is_word(self.branching, "auto")
        if given is not None and not auto:
            raise ValueError(
                f"branching={self.branching!r} makes a tree, and one is given already."
            )
        if isinstance(given, Taxonomy):
            if isinstance(attribute, Categorical):
                # Its leaves are the categories, in the order of the taxonomy.
                codes = Categorical(attribute.categories, taxonomy=given).leaf_codes
            tree = Tree.from_parents(given.parents)
        elif isinstance(given, Tree):
            # A checked copy, without cached results, which the caller cannot change.
            tree = Tree(given.parent, given.lower, given.upper, given.order)
        elif given is not None:
            tree = Tree.from_intervals(given)
        elif isinstance(attribute, Categorical) and not attribute.ordered:
            tree = hierarchy.level_tree(n, [n])
        elif auto and is_word(self.budget, "auto"):
            tree = hierarchy.level_tree(n, hierarchy.plan_levels(n, self._workload_of(n)).counts)
        else:
            tree = hierarchy.balanced_tree(n, _DEFAULT_BRANCHING if auto else self.branching)
        if tree.n_bins != n:
            raise ValueError(
                f"The tree has {tree.n_bins} bins for {n} values, the missing cell aside."
            )
        return tree, codes

    def _shares_of(self, tree: Tree) -> np.ndarray:
        """Share of epsilon of each node, from ``budget``."""
        if isinstance(self.budget, str):
            check_choice(self.budget, "budget", ("auto", "uniform"))
            if self.budget == "uniform":
                return hierarchy.uniform_shares(tree)
            return hierarchy.optimal_shares(tree, self._workload_of(tree.n_bins))
        shares = np.asarray(self.budget, dtype=np.float64)
        if shares.shape == (tree.n_nodes,) and tree.n_nodes > tree.n_levels:
            return shares
        return hierarchy.level_shares(tree, shares)

    def _workload_of(self, n_bins: int) -> hierarchy.Workload:
        """The ranges that "auto" plans for."""
        return hierarchy.as_workload(self.workload, n_bins)

    def _partition_of(self, attribute: Any) -> str | None:
        """How the bins are grouped by the data: from the parameters and the attribute alone."""
        check_choice(self.partition, "partition", PARTITIONS)
        ordered = not isinstance(attribute, Categorical) or attribute.ordered
        defaults = {"branching": "auto", "budget": "auto", "consistency": "blue"}
        planned = self._given_tree(attribute) is None and all(
            is_word(getattr(self, name), value) for name, value in defaults.items()
        )
        if self.partition == "auto":
            return "adaptive" if ordered and planned else None
        if self.partition is None or (planned and (ordered or self.partition == "ahp")):
            return self.partition
        raise ValueError(
            f"partition={self.partition!r} makes the tree and its budget from released counts: "
            "leave tree, branching, budget, consistency and a taxonomy out, and take 'ahp' for "
            "categories that have no order."
        )

    def _grouped(
        self, kind: str, n: int, exact: np.ndarray, spent: Any, source: Any
    ) -> dawa.LineRelease:
        """Buckets and noisy counts that follow the data; ``exact`` is private, by position."""
        if kind == "adaptive":
            plan = hierarchy.plan_levels(n, self._workload_of(n))
            return dawa.adaptive_tree(exact, n, spent.epsilon, plan, random_state=source)
        if kind == "dawa":
            return dawa.dawa(exact, n, spent.parts, self._workload_of, random_state=source)
        return dawa.ahp(exact, n, spent.parts, random_state=source)

    def plan(self) -> pd.DataFrame:
        """Expected error, before anything is spent or read.

        Returns
        -------
        DataFrame
            One row for each length of the workload: ``length`` in bins, ``std_error`` of a count of
            such a range (root mean square over all positions), and ``plain_std_error``, the same if
            all of epsilon were spent on the bins. Errors are those of the unbiased estimate;
            ``non_negative`` usually makes them smaller.

        Raises
        ------
        DomainError, ValueError
            As ``fit``; if ``partition`` is not None, as errors then depend on the records.
        """
        attribute = Domain.for_array(self.domain, 1).attributes[0]
        if self._partition_of(attribute):
            raise ValueError(
                f"With partition={self.partition!r} errors depend on the records, and are "
                "unknown. Take partition=None, or fit public rows."
            )
        (tree, _, shares), epsilon = self._design_of(attribute), self._record_epsilon()
        n, blue = attribute.n_values, Blue(tree, hierarchy.measured_variances(shares, epsilon))
        workload = self._workload_of(n)
        lengths = np.minimum(workload.lengths, n)
        means = hierarchy.workload_variances(blue, workload, n_bins=n)
        plain = lengths * discrete_laplace_variance(epsilon)
        columns = {"length": lengths, "std_error": np.sqrt(means), "plain_std_error": plain**0.5}
        return pd.DataFrame(columns)

    def _formula_errors(self, n: int) -> dict[str, float]:
        """Errors of a bin and of ranges between two uniform bins, from `plan`."""
        planned = self.plan().drop_duplicates("length")
        size = Domain.for_array(self.domain, 1).attributes[0].n_values
        lengths = np.arange(1, size + 1)
        variance = np.interp(lengths, planned["length"], planned["std_error"] ** 2)
        often = np.where(lengths == 1, size, 2 * (size + 1 - lengths))
        mean = float(often @ variance / often.sum())
        return {"cell": math.sqrt(variance[0]), "one-column range": math.sqrt(mean)}

    # -- queries

    def _asked(self, positive: bool = False) -> Synopsis:
        check_is_fitted(self)
        model: Any = self._model.positive if positive else self._model
        return Synopsis(self.domain_, model, privacy_loss=self.privacy_loss_)

    def count(  # type: ignore[override]
        self, query: Any = None, upper: Any = None, **how: Any
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
        upper : number or date, default=None
            The range from ``query`` to here: ``count(30, 40)`` is ``count((30, 40))``.
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
        asked, given = self._asked(), query if upper is None else (query, upper)
        return asked.count(as_conditions(given, self.domain_.names[0]), **how)

    def quantile(self, q: Any, **how: Any) -> Any:  # type: ignore[override]
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
        return self._asked(positive=True).quantile(self.domain_.names[0], q, **how)

    def score_samples(self, X: Any, y: Any = None) -> FloatArray:
        """Logarithm of the probability of each row in the release, in nats.

        From the estimates that are not negative. A result for private records is not private.

        Parameters
        ----------
        X : as for ``fit``
        y : Ignored

        Returns
        -------
        ndarray of shape (n_rows,)
            Never below that of one record spread over all bins.
        """
        return super().score_samples(as_table(X))

    def _scored_domain(self) -> tuple[Domain, float]:
        return self.domain_, self._model.positive.total

    def _expected_counts(self, codes: CodeArray) -> FloatArray:
        counts: FloatArray = self._model.positive.view([0])[codes[:, 0]]
        return counts

    def to_frame(self) -> pd.DataFrame:
        """The histogram as a table, one row for each bin.

        Returns
        -------
        DataFrame
            The column as in :meth:`skdp.Synopsis.aggregate` (bins wider than one integer are
            intervals), ``count``, ``std_error``. The missing cell, if any, is the last row.
        """
        check_is_fitted(self)
        name, labels = self.domain_.names[0], group_labels(self.domain_.attributes[0])
        columns = {
            name: pd.Series(labels, dtype=object if None in labels else None),
            free_name("count", [name]): self._model.view([0]),
            free_name("std_error", [name]): self._model.bin_errors(),
        }
        return pd.DataFrame(columns)

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
        from .plotting import loss_title, plot_axis, plot_view

        check_is_fitted(self)
        level = as_level(level)
        attribute, codes = self.domain_.attributes[0], np.arange(len(self.codes_))
        numeric, n = isinstance(attribute, Numeric) and not attribute.special, attribute.n_values
        # The missing cell has a bar of its own.
        edges = np.append(np.arange(0, n, -(-n // _MAX_BARS) if numeric else 1), n)
        bars = [*pairwise(edges), *[(n, n + 1)] * attribute.nullable]
        queries = [Query(({0: ((a <= codes) & (codes < b)).astype(float)},)) for a, b in bars]
        counts, reach = self._model.answer(queries), self._model.reach(queries, level)
        axis = plot_axis(self.domain_.names[0], attribute)
        axis = axis._replace(edges=axis.edges[edges])
        title = loss_title(f"{100 * level:g}% intervals", self.privacy_loss_)
        ends = counts - reach.below, counts + reach.above
        return plot_view(counts, [axis], ax=ax, title=title, interval=ends)
