"""Publishing data for classification: one private grid, and a noisy count in each of its cells.

The private selections are in `skdp.algorithms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, OneToOneFeatureMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.validation import check_is_fitted

from ._random import sampling_generator
from ._validation import (
    IntArray,
    as_integer,
    as_sample_size,
    check_choice,
    exclusive_cumsum,
    project_to_simplex,
)
from .algorithms.additive import TUNING as ADDITIVE
from .algorithms.additive import class_shares
from .algorithms.diffgen import diffgen, diffgen_parts, projected_histogram, projection_parts
from .algorithms.groupings import groupings
from .algorithms.privpfc import (
    TUNING,
    Line,
    Options,
    cell_limit,
    max_useful_groups,
    measure_grid_counts,
    merged_groupings,
    merging_budget,
    privpfc_parts,
    select_grid,
)
from .base import (
    ExactScore,
    KeepsTrueRows,
    Likelihood,
    PrivateEstimator,
    RefusesWeights,
    feature_codes,
    label_classes,
    match_labelled,
    warn_of_emptiness,
)
from .domain import Level
from .mechanisms import discrete_laplace, discrete_laplace_variance
from .release.rounding import count_records, shuffled_line
from .release.sampling import METHODS
from .tables import Layout, as_frame, count_rows

__all__ = [
    "DiffGenTransformer",
    "Grid",
    "GridRelease",
    "GridTransformer",
    "PrivPfCClassifier",
    "PrivPfCTransformer",
    "ProjectedHistogramTransformer",
    "one_hot",
]

# ------------------------------------------------------------------------------------------------
# What all releases of a grid do: fit, draw rows, map rows to the grid.


# --- grid: a partition of the domain by groups of the codes of a few predictors


@dataclass(frozen=True, eq=False)
class Grid:
    """A partition of the domain: the codes of some predictors merged into groups.

    Attributes
    ----------
    columns : tuple of str
        Predictors that the grid uses, in the order of the domain.
    groups : tuple of ndarray of shape (n_codes,)
        Group of each code of each of these predictors.
    labels : tuple of tuple of str
        Text for each group.
    """

    columns: tuple[str, ...]
    groups: tuple[IntArray, ...]
    labels: tuple[tuple[str, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of groups of each predictor that is used."""
        return tuple(len(labels) for labels in self.labels)

    def to_frame(self) -> pd.DataFrame:
        """One row for each group: the predictor, the group's number and its label.

        Returns
        -------
        pandas.DataFrame
        """
        rows = [
            (column, number, label)
            for column, labels in zip(self.columns, self.labels, strict=True)
            for number, label in enumerate(labels)
        ]
        return pd.DataFrame(rows, columns=["column", "group", "label"])

    def __repr__(self) -> str:
        parts = [f"{name}: {size}" for name, size in zip(self.columns, self.shape, strict=True)]
        return f"Grid({', '.join(parts) or 'one cell'})"


def one_hot(coordinates, shape):
    """Indicators of the groups of each predictor; a constant column if there is no predictor."""
    if not shape:
        return np.ones((len(coordinates), 1))
    result = np.zeros((len(coordinates), sum(shape)))
    begin = 0
    for position, size in enumerate(shape):
        known = np.flatnonzero(coordinates[:, position] >= 0)
        result[known, begin + coordinates[known, position]] = 1.0
        begin += size
    return result


# Name of the one column of a grid that uses no predictor.
_WHOLE = "all"


@dataclass(eq=False, repr=False, kw_only=True)
class GridRelease(RefusesWeights, PrivateEstimator):
    """A release of a grid and a noisy histogram over it; subclasses define how both are found."""

    domain: Any = None
    target: Any = None
    classes: Any = None
    calibration: Any = "tight"
    max_rows_per_id: int | None = None
    privacy_id: str | None = None

    # Whether it counts by a few predictors and the label at a time, never by all predictors.
    _projects = True

    def fit(self, X, y=None, **fit_params) -> Self:
        """Charge epsilon, then release a grid and the noisy counts of its cells.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            One row per record: NumPy array; pandas, Polars or PyArrow table; or a lazy frame of
            Polars, DuckDB, Dask or PySpark, which is counted in its engine. Columns are matched
            to the domain by name, those of an array by position.
        y : array-like of shape (n_rows,), default=None
            The labels. None if ``X`` has the column ``target``; a lazy frame must have it.
        **fit_params
            Refused. A record of ``sample_weight`` w would cost w times its epsilon.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter is invalid; nothing is spent. Values never raise: numbers
            out of range are clipped, an unknown category becomes `other` where declared, and a
            record that the domain cannot represent, or whose label is missing or not declared, is
            skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        self._check_parameters()
        rows, domain, target, features = match_labelled(
            self, X, y, fit_params, self.classes, "the list of", "classes="
        )
        classes, class_of = label_classes(domain, target)
        names = [name for name in domain.names if name != target]
        layout = Layout(X, rows, domain)
        parts = self._parts(self._record_epsilon())
        if not self._projects:
            self._warn_of_size(rows, domain)
        loss, source = self._spend(rows, parts)
        noise = loss.of_record.parts

        table = count_rows(
            rows,
            domain.select([*(name for name in domain.columns if name != target), target]),
            self._contributions(loss, source, rows, domain),
            together=(len(names),) if self._projects else None,
        )
        # A missing label belongs to no class.
        table = table.recode(len(names), np.append(class_of, -1)[: domain[target].size])
        predictors = [domain[name] for name in names]
        n_records, axes, groups, labels = self._choose(table, predictors, noise, source)
        grid = Grid(tuple(names[axis] for axis in axes), tuple(groups), tuple(map(tuple, labels)))
        noisy = measure_grid_counts(table, axes, groups, noise["counts"], source)
        histogram = self._post_process(noisy, n_records, noise)

        self._remember_columns(features, rows, target)
        self._layout = layout
        self.classes_ = classes
        self.domain_ = domain
        self.target_ = target
        self.grid_ = grid
        self.noisy_counts_ = noisy
        self.histogram_ = histogram
        self.privacy_loss_ = loss
        self._finish()
        warn_of_emptiness(self, *_noisy_total(noisy, n_records, noise))
        return self

    def sample(self, n_samples=None, random_state=None, *, method="rounded", like=None) -> Any:
        """Draw synthetic rows: cell and label from the histogram, values uniformly in the cell.

        Predictors that the grid does not use are drawn uniformly from their whole domain, because
        nothing about them was released. To train a model, prefer :meth:`make_training_set`.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows. None draws max(0, round(noisy total)) rows, and raises ValueError if
            that makes more than 500 million values (rows times columns).
        random_state : int, numpy.random.Generator or None, default=None
            Seed of the draw. It is safe to set: drawing is post-processing of the release.
        method : {"rounded", "independent"}, default="rounded"
            "rounded" rounds the expected counts of cells, labels and predictors that the grid does
            not use; "independent" draws each row by itself, as a random sample; see
            :meth:`skdp.Synopsis.sample`.
        like : table without rows, default=None
            Decides library and order of the columns, but not their types.

        Returns
        -------
        frame : table of the library that ``fit`` was given, or that of ``like``
            All columns of the domain, in the order that ``fit`` was given, with the types of the
            domain. See the user guide, "What comes out".

        Raises
        ------
        ValueError
            If ``method`` is another, or ``like`` has rows or columns that are not declared.
        """
        check_is_fitted(self)
        check_choice(method, "method", METHODS)
        layout = self._layout_like(like)
        return self._build_table(self._sample_columns(n_samples, random_state, method), layout)

    def make_training_set(self, n_samples=None, random_state=None) -> tuple[Any, ...]:
        """The cells of the grid as training rows, weighted by their counts.

        Parameters
        ----------
        n_samples : int, default=None
            Sum of the weights. None: the noisy total.
        random_state : ignored
            Nothing is drawn. The parameter exists because other releases draw rows.

        Returns
        -------
        X : ndarray of shape (n_rows, n_indicators), float64
            For every cell and label with a positive count the groups of the cell, one-hot; the
            format that :meth:`prepare` returns.
        y : ndarray of shape (n_rows,)
        sample_weight : ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        shape = self.grid_.shape
        counts = self.histogram_.reshape(-1, len(self.classes_))
        cells, labels = np.nonzero(counts > 0)
        weight = counts[cells, labels]
        if n_samples is not None:
            weight = weight * (as_sample_size(n_samples, 0.0, 1) / max(weight.sum(), 1.0))
        coordinates = np.zeros((len(cells), len(shape)), dtype=np.int64)
        if shape:
            coordinates = np.stack(np.unravel_index(cells, shape), axis=1)
        return one_hot(coordinates, shape), self.classes_[labels], weight

    def prepare(self, X) -> np.ndarray:
        """Map test rows to the grid, one-hot, as in the training set.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_indicators), float64
            All zeros for a predictor whose value the domain cannot represent.
        """
        return one_hot(self._coordinates(X), self.grid_.shape)

    def _sample_columns(self, n_samples, random_state, method="rounded"):
        rng = sampling_generator(random_state)
        counts = self.histogram_.ravel()
        total = counts.sum()
        n_rows = as_sample_size(n_samples, total, len(self.domain_))
        # If the noise left no count positive, every cell and label is equally likely.
        share = counts / total if total > 0 else np.full(len(counts), 1 / len(counts))
        if method == "rounded":
            table = share.reshape(-1, self.histogram_.shape[-1])
            drawn = np.repeat(np.arange(len(counts)), _rounded(table, n_rows, rng).ravel())
            drawn = rng.permutation(drawn)
        else:
            drawn = rng.choice(len(counts), size=n_rows, p=share)
        *cells, labels = np.unravel_index(drawn, self.histogram_.shape)
        grid = self.grid_
        used = dict(zip(grid.columns, zip(grid.groups, cells, strict=True), strict=True))
        codes = np.empty((n_rows, len(self.domain_)), dtype=np.int64)
        for position, (name, attribute) in enumerate(self.domain_.items()):
            if name == self.target_:
                class_of = label_classes(self.domain_, name)[1]
                codes[:, position] = np.argsort(class_of)[labels]
            elif name in used:
                codes[:, position] = _draw_codes(*used[name], rng)
            elif method == "rounded":
                codes[:, position] = shuffled_line(np.ones(attribute.n_values), n_rows, rng)
            else:
                codes[:, position] = rng.integers(0, attribute.n_values, size=n_rows)
        return dict(self.domain_.decode(codes, rng).items())

    def _coordinates(self, X):
        """Group of each row in each predictor of the grid; -1 if the domain has no code."""
        check_is_fitted(self)
        codes = feature_codes(self, X, self.grid_.columns)
        coordinates = np.empty(codes.shape, dtype=np.int64)
        for position, groups in enumerate(self.grid_.groups):
            coordinates[:, position] = np.append(groups, -1)[codes[:, position]]
        return coordinates

    def _check_parameters(self):
        """Raise for invalid parameters, before anything is spent."""
        check_choice(self.calibration, "calibration", ("tight", "paper"))

    def _finish(self):
        """Compute further fitted attributes from the release alone."""

    def _parts(self, epsilon):
        """Divide epsilon, from public facts alone."""
        raise NotImplementedError

    def _choose(self, table, predictors, parts, source):
        """The noisy number of records or None, and the axes, groups and labels of the grid."""
        raise NotImplementedError

    def _post_process(self, noisy, n_records, parts):
        """Non-negative counts that keep the noisy total; post-processing of the release."""
        # Two noisy totals, one of them the sum of the cells, are weighted by their precision.
        total = float(noisy.sum())
        if n_records is not None:
            own = noisy.size * discrete_laplace_variance(parts["counts"])
            other = discrete_laplace_variance(parts["total"])
            total = (total * other + n_records * own) / (own + other)
        return project_to_simplex(noisy, max(total, 0.0))


def _noisy_total(noisy, n_records, parts):
    """Released number of records, and the standard deviation of its noise."""
    if n_records is None:
        variance = noisy.size * discrete_laplace_variance(parts["counts"])
        return float(noisy.sum()), np.sqrt(variance)
    return n_records, np.sqrt(discrete_laplace_variance(parts["total"]))


def _rounded(share, n_rows, rng):
    """Whole counts of cells and labels; those of cells and those of labels are rounded too."""
    order, places = np.arange(share.size), [*np.indices(share.shape).reshape(2, -1)]
    return count_records(share.ravel(), n_rows, order, places, rng).reshape(share.shape)


def _draw_codes(groups, drawn, rng):
    """One code from each drawn group, all codes of the group equally likely."""
    members, size = np.argsort(groups, kind="stable"), np.bincount(groups)
    return members[exclusive_cumsum(size)[drawn] + rng.integers(0, size[drawn])]


@dataclass(eq=False, repr=False, kw_only=True)
class GridTransformer(KeepsTrueRows, Likelihood, GridRelease):
    """Adds ``transform``, the names of its columns, and likelihoods."""

    @property
    def _belongs(self):
        return (
            "Train on the release instead: PrivateClassifier(LogisticRegression(), "
            f"synthesizer={type(self).__name__}(...)), which also goes into cross_validate and "
            "searches."
        )

    def score_samples(self, X, y=None) -> np.ndarray:
        """Logarithm of the probability of each row in the release, in nats.

        Codes of one cell are alike, and so are the values of predictors that the grid does not use.
        A result for private records is not private.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            The labels. None if ``X`` holds them, else for the probability of a row with any label.

        Returns
        -------
        ndarray of shape (n_rows,)
            Never below that of one record spread over all cells of the domain.
        """
        check_is_fitted(self)
        rows = as_frame(X)
        if y is not None or self._holds_label(rows):
            return super().score_samples(X, y)
        labels = [np.full(len(rows), label) for label in self.classes_]
        return np.logaddexp.reduce(
            [super(GridTransformer, self).score_samples(X, each) for each in labels]
        )

    def _holds_label(self, rows):
        return self.target_ in rows.named or rows.n_unnamed == self.n_features_in_ + 1

    def _scored_domain(self):
        return self.domain_, float(self.histogram_.sum())

    def _expected_counts(self, codes):
        domain, target = self.domain_, self.target_
        groups = dict(zip(self.grid_.columns, self.grid_.groups, strict=True))
        classes = np.append(label_classes(domain, target)[1], -1)[: domain[target].size]
        label = classes[codes[:, domain.index(target)]]
        cells, codes_alike = [], np.ones(len(codes))
        for name, column in zip(domain.names, codes.T, strict=True):
            if name in groups:
                cells.append(groups[name][column])
                codes_alike *= np.bincount(groups[name])[cells[-1]]
            elif name != target:
                # As they are drawn: each value alike, and none missing.
                n_values = domain[name].n_values
                codes_alike *= np.where(column < n_values, n_values, np.inf)
        return np.where(label < 0, 0.0, self.histogram_[(*cells, label)]) / codes_alike

    def transform(self, X) -> np.ndarray:
        """Map rows to the grid.

        The rows are mapped without noise: the result is as private as ``X``. A step that is
        trained on it together with true labels is NOT private; to train privately, put this
        transformer into :class:`skdp.PrivateClassifier`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The number of the row's group in each predictor of the grid, -1 if the domain has no
            code for the value. A grid that uses no predictor gives one constant column.
        """
        coordinates = self._coordinates(X)
        if not coordinates.shape[1]:
            return np.zeros((len(coordinates), 1), dtype=np.int64)
        return coordinates

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Names of the columns that ``transform`` returns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Checked against the names seen in ``fit``, and otherwise ignored.

        Returns
        -------
        ndarray of str
            The predictors of the grid.
        """
        check_is_fitted(self)
        # Checks the names.
        OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return np.array(self.grid_.columns or [_WHOLE], dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        # Groups are numbered, whatever the type of the values.
        tags.transformer_tags.preserves_dtype = []
        return tags


# ------------------------------------------------------------------------------------------------
# DiffGen: private top-down specialisation of the taxonomies of the predictors.


@dataclass(eq=False, repr=False, kw_only=True)
class DiffGenTransformer(GridTransformer):
    """Publish data for classification by private top-down specialisation (DiffGen).

    Starting from one cell, a node of a predictor's taxonomy is selected privately and replaced by
    its children, ``n_specializations`` times. The counts of the resulting grid are released.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label.
    n_specializations : int, default=10
        Number of nodes that are specialised; the selections share half of epsilon equally.
    calibration : {"tight", "paper"}, default="tight"
        How nodes are selected: "tight" by a noisy maximum, "paper" by the exponential mechanism at
        the published sensitivity, which is half as accurate. Both are epsilon-DP.
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
        only: no guarantee.

    Attributes
    ----------
    grid_ : Grid
        The predictors that the grid uses, and how their values are grouped.
    histogram_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        Non-negative counts that keep the noisy total.
    noisy_counts_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        The counts as released, unbiased integers.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "grid", "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: grid and
    noisy counts. *Cost*: the selections share "grid" evenly, the counts cost "counts". The score
    of a node is the number of its records that have the majority label of their child. It rises by
    0 or 1 when a record is added; the paper assumes twice that range. The paper splits numbers at
    points that it selects privately; here numbers have a dyadic taxonomy.

    References
    ----------
    N. Mohammed, R. Chen, B. Fung, P. Yu, "Differentially private data release for data mining",
    KDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DiffGenTransformer, Numeric
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat([0, 1], 5_000)
    >>> release = DiffGenTransformer(
    ...     epsilon=1.0, domain=Numeric(0, 1, bins=4), classes=[0, 1], n_specializations=2
    ... )
    >>> release.fit(X, y).histogram_.shape[-1]
    2
    """

    n_specializations: Any = 10

    def _check_parameters(self):
        super()._check_parameters()
        as_integer(self.n_specializations, "n_specializations", 1)

    def _parts(self, epsilon):
        return diffgen_parts(epsilon)

    def _choose(self, table, predictors, parts, source):
        axes, groups, labels = diffgen(
            table,
            predictors,
            parts["grid"],
            n_specializations=int(self.n_specializations),
            calibration=self.calibration,
            random_state=source,
        )
        return None, axes, groups, labels


# ------------------------------------------------------------------------------------------------
# PrivPfC: one grid, selected among many for how well it classifies under noise.


# Least pseudo-count of the additive model in each cell, in standard deviations of a noisy count.
_PRIOR = 4


@dataclass(eq=False, repr=False, kw_only=True)
class _PrivPfC(GridRelease):
    """Selection of the grid, for the transformer and the classifier."""

    max_grids: Any = 10_000
    sensitivity: Any = "bound"
    shares: Any = (0.03, 0.37, 0.60)

    def _check_parameters(self):
        super()._check_parameters()
        check_choice(self.sensitivity, "sensitivity", ("bound", "exact"))
        as_integer(self.max_grids, "max_grids", 1)

    def _parts(self, epsilon):
        return privpfc_parts(epsilon, self.shares)

    def _choose(self, table, predictors, parts, source):
        # Privacy. Released: the number of records with noise of sensitivity 1 (part "total"); with
        # many records counts of each predictor by label (two fifths of the part "grid", see
        # `merged_groupings`); a grid (the rest of it, see `select_grid`); and its counts (part
        # "counts", see `measure_grid_counts`). All are composed sequentially; which groupings are
        # offered depends on the domain and on what was released before.
        n_records = int(discrete_laplace(table.n, parts["total"], random_state=source))
        limit = cell_limit(n_records, parts["counts"], table.shape[-1], self.calibration)
        most = max_useful_groups(limit, self.calibration)
        lines = [_line(attribute) for attribute in predictors]
        merging = Fraction(0)
        if self.calibration == "tight":
            merging = merging_budget(lines, n_records, parts["grid"])
        if merging:
            merged = merged_groupings(table, lines, most, merging, random_state=source)
            offered = [
                _offers_merged(attribute, most, groupings)
                for attribute, groupings in zip(predictors, merged, strict=True)
            ]
            parts = {**parts, "grid": parts["grid"] - merging}
        else:
            offered = [_offers(attribute, most) for attribute in predictors]
        options = [
            Options(tuple(level.groups for level in levels), n_first) for levels, n_first in offered
        ]
        grid = select_grid(
            table,
            options,
            n_records,
            parts,
            max_grids=int(self.max_grids),
            calibration=self.calibration,
            sensitivity=self.sensitivity,
            merged=bool(merging),
            random_state=source,
        )
        axes = np.flatnonzero(grid).tolist()
        levels = [offered[axis][0][grid[axis] - 1] for axis in axes]
        labels = [
            level.labels or _texts(predictors[axis], level.groups, lines[axis].ordered)
            for axis, level in zip(axes, levels, strict=True)
        ]
        return n_records, axes, [level.groups for level in levels], labels

    def _post_process(self, noisy, n_records, parts):
        if self.calibration == "paper":
            return np.maximum(noisy, 0).astype(np.float64)
        return super()._post_process(noisy, n_records, parts)


def _offers(attribute, most):
    """Public groupings into at most ``most`` groups, and how many of them a first selection gets.

    Each category against the others is left to the second selection: there are many of these
    groupings and most are useless, and a selection among few good candidates is more accurate.
    """
    if most < 2:
        return [], 0
    n_first = sum(map(len, groupings(attribute, most)))
    families = groupings(attribute, most, against_rest=True)
    return [level for family in families for level in family], n_first


def _line(attribute):
    """The finest public groups of a predictor, which may be merged."""
    families = groupings(attribute, TUNING.finest)
    if not families:
        return Line(np.zeros(attribute.size, dtype=np.int64), 1, True)
    # Each value alone, if there are not too many; otherwise intervals that grow, where offered.
    groups = families[0 if attribute.size <= TUNING.finest else -1][-1].groups
    # Special values and the missing cell stay alone.
    n_merged = int(groups.max()) + 1 - attribute.n_alone
    return Line(groups, n_merged, attribute.order() is not None)


def _offers_merged(attribute, most, merged):
    """As `_offers`, with merged groupings, yet without texts, instead of those in two."""
    levels = [Level(groups, []) for groups in merged]
    seen = {level.groups.tobytes() for level in levels}
    families = groupings(attribute, most) if most >= 2 else ()
    for family in families:
        levels += [level for level in family if level.groups.tobytes() not in seen]
    return levels, len(levels)


def _texts(attribute, groups, ordered):
    """A text for each group of a merged grouping."""
    own = attribute.labels()
    places = attribute.leaf_codes
    texts = []
    for group in range(int(groups.max()) + 1):
        codes = places[groups[places] == group]
        if not len(codes):
            # A special value or the missing cell.
            codes = np.flatnonzero(groups == group)
        first, last = int(codes[0]), int(codes[-1])
        if len(codes) == 1:
            texts.append(own[first])
        elif not ordered:
            texts.append(", ".join(own[code] for code in codes.tolist()))
        elif hasattr(attribute, "span_label") and not attribute.one_each:
            texts.append(attribute.span_label(first, last + 1))
        else:
            texts.append(f"{own[first]} to {own[last]}")
    return texts


@dataclass(eq=False, repr=False, kw_only=True)
class PrivPfCTransformer(_PrivPfC, GridTransformer):
    """Publish data for classification: one privately selected grid with noisy counts (PrivPfC).

    A grid groups the values of a few predictors (halves, quarters, levels of a taxonomy) and
    ignores the others. A single private selection among up to ``max_grids`` candidates takes one
    whose histogram classifies well *with the noise that its counts will have*. Then the counts of
    all cells and labels are released. Classifiers trained on them are post-processing.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label. Giving both this
        and ``target`` is an error.
    max_grids : int, default=10_000
        Largest number of candidates of one selection. The grid with a single cell is always a
        candidate.
    calibration : {"tight", "paper"}, default="tight"
        "tight" draws candidates regardless of the order of columns, and selects by a noisy maximum
        with the exact range of an integer quality. With enough data it merges values with similar
        noisy shares of the labels first, selects again, once to six times, among the neighbours of
        the choice before, and the quality takes off a part of what a grid gains by fitting its own
        records. "paper" follows the dissertation: candidates level by level in the order of columns
        with a fifth of the cells, the exponential mechanism, and negative counts set to zero.
    sensitivity : {"bound", "exact"}, default="bound"
        For "paper", what the exponential mechanism divides by: the bound of 1.1, or the largest
        change of the quality at the epsilon of the counts (equation 3.3).
    shares : tuple of three numbers, default=(0.03, 0.37, 0.60)
        How epsilon is divided among the number of records, the choice of the grid and the counts,
        in proportion. The dissertation also tries (0.03, 0.10, 0.87).
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
    grid_ : Grid
        The predictors that the grid uses, and how their values are grouped.
    histogram_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        Counts of all cells and labels: ``noisy_counts_`` made non-negative by the smallest
        change that keeps the noisy total.
    noisy_counts_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        The counts as released, unbiased integers.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (number of records), "grid", "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    parameters, list of labels. *Released*: grid and noisy counts, and with many records the merged
    groups. *Cost*: the parts "total", "grid" and "counts" are composed one after the other; merging
    spends two fifths of "grid". The dissertation bounds the change of
    the quality by 1.1 in either direction; in fact the qualities of all candidates change within
    one interval of length at most 1.178, so the same epsilon selects 1.87 times as accurately. The
    quality that takes off the gain by fitting has an interval of length 1.93 at most.

    In an ordinary ``Pipeline``, a step after ``transform`` sees the true labels and is not
    private: use :class:`skdp.PrivateClassifier` or :class:`skdp.PrivPfCClassifier`.

    References
    ----------
    D. Su, "Differentially Private Data Publishing for Data Analysis", dissertation, Purdue
    University, 2016, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import Numeric, PrivateClassifier, PrivPfCTransformer
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = PrivPfCTransformer(epsilon=1.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(LogisticRegression(), release, classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """


@dataclass(eq=False, repr=False, kw_only=True)
class PrivPfCClassifier(ExactScore, ClassifierMixin, _PrivPfC):
    """Histogram classifier on a privately selected grid (PrivPfC).

    In each cell of the grid of :class:`PrivPfCTransformer` it predicts the label with the largest
    noisy count. In cells with few records noise would decide; therefore pseudo-counts are added
    that follow an additive (logistic) model trained on the same release. There are four standard
    deviations of the noise of them in each cell, and up to 64 more if records that are left out of
    their cells are predicted better with them. Then the shares are pulled to those of all records,
    as far as their differences may be chance, so that they are about as sure as they should be.
    With ``calibration="paper"`` the counts alone decide.

    The bins of numbers are those of the domain, as in the paper. Where most records lie in a small
    part of a range, declare ``scale="log"`` or bins there, or take :class:`PrivateClassifier`,
    which cuts ranges where the records are.

    Parameters
    ----------
    epsilon, domain, target, classes, max_grids, calibration, sensitivity, shares, \
    max_rows_per_id, privacy_id, ledger, random_state
        As for :class:`PrivPfCTransformer`.

    Attributes
    ----------
    grid_ : Grid
        The predictors that the grid uses, and how their values are grouped.
    histogram_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        Non-negative counts that keep the noisy total.
    smoothed_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        ``histogram_`` plus the pseudo-counts of the additive model; predictions use it.
    shares_ : ndarray of shape (n_classes,)
        Of all records, estimated from the noisy counts; none is zero.
    evidence_ : float
        Estimated part of the differences between cells that is not chance, from 0.05 to 1, by which
        predictions multiply the logarithms of the ratios to the overall shares.
    noisy_counts_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        The counts as released, unbiased integers.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (number of records), "grid", "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    Privacy is as for :class:`PrivPfCTransformer`; prediction is post-processing. A score computed
    on true held-out rows is exact and not private.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivPfCClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> space = Numeric(0, 1, bins=4)
    >>> model = PrivPfCClassifier(epsilon=1.0, domain=space, classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    def predict(self, X) -> np.ndarray:
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]

    def predict_proba(self, X) -> np.ndarray:
        """Share of each label in the row's cell.

        If the domain has no code for a value, the cells along that predictor are summed.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``.
        """
        coordinates = self._coordinates(X)
        result = np.empty((len(coordinates), len(self.classes_)))
        known = coordinates >= 0
        for pattern in np.unique(known, axis=0):
            mine = np.flatnonzero((known == pattern).all(axis=1))
            unknown = tuple(np.flatnonzero(~pattern).tolist())
            view = self.smoothed_.sum(axis=unknown) if unknown else self.smoothed_
            cells = view[tuple(coordinates[np.ix_(mine, np.flatnonzero(pattern))].T)]
            result[mine] = cells / cells.sum(axis=-1, keepdims=True)
        # Pulled to the overall shares, on the scale of logarithms.
        result = result**self.evidence_ * self.shares_ ** (1 - self.evidence_)
        return result / result.sum(axis=1, keepdims=True)

    def _finish(self):
        # Post-processing of the release.
        variance = discrete_laplace_variance(self.privacy_loss_.of_record.parts["counts"])
        counts = self.noisy_counts_.reshape(-1, len(self.classes_))
        # Without noise the shares of the counts as they are, none zero.
        paper = self.calibration == "paper"
        self.shares_ = class_shares(counts.sum(axis=0), 0.0 if paper else len(counts) * variance)
        if paper:
            # The largest count decides; the overall shares decide if all counts are zero.
            weight, shares = 1e-9, self.shares_
        else:
            shares = _additive(self)
            weight = _best_weight(self.histogram_, shares, _PRIOR * np.sqrt(variance))
        self.smoothed_ = self.histogram_ + weight * shares
        self.evidence_ = 1.0 if paper else _evidence(self, variance)


def _best_weight(histogram, shares, least):
    """Pseudo-count of at least ``least`` with which the cells predict their records best.

    Each record is left out of its cell while it is predicted (logarithmic score).
    """
    present = histogram > 0
    counts, prior = histogram[present], np.broadcast_to(shares, histogram.shape)[present]
    totals = np.broadcast_to(histogram.sum(axis=-1, keepdims=True), histogram.shape)[present]
    # Part of a record is left out of a cell with less than one.
    one = np.minimum(counts, 1.0)
    # Above zero even if the noise is practically nothing.
    weights = np.maximum(least + np.append(0.0, 2.0 ** np.arange(1, 7)), 1e-9)
    scores = [
        np.sum(counts * np.log((counts - one + weight * prior) / (totals - one + weight)))
        for weight in weights
    ]
    return weights[int(np.argmax(scores))]


def columns_add_up(release: Any) -> bool:
    """Whether what its columns add explains most of the classes of a fitted `PrivPfCClassifier`."""
    counts, shape = release.smoothed_.reshape(-1, len(release.shares_)), release.grid_.shape
    if len(counts) == 1:
        return True
    columns = one_hot(np.stack(np.unravel_index(np.arange(len(counts)), shape), axis=1), shape)
    sizes = counts.sum(axis=1)
    logs = np.log(counts / sizes[:, None])
    return bool(LinearRegression().fit(columns, logs, sizes).score(columns, logs, sizes) > 0.5)


def _evidence(release, variance):
    """Part of the differences between cells that neither chance nor noise made, above 0.

    Predicted differences from the overall shares are regressed on the released ones, whose variance
    is known. They were learnt from the same counts: that adds to the sum of their products, in
    units of the variance, how many numbers were fitted (as in Stein's estimate of risk): one for a
    cell as far as its own counts decide, and for the rest those of the additive model.
    """
    *shape, n_classes = release.histogram_.shape
    overall = release.shares_
    noisy, counts, smoothed = (
        each.reshape(-1, n_classes)
        for each in (release.noisy_counts_, release.histogram_, release.smoothed_)
    )
    n, total = (each.sum(axis=1, keepdims=True) for each in (counts, smoothed))
    released = noisy - overall * noisy.sum(axis=1, keepdims=True)
    predicted = n * (smoothed / total - overall)
    noise = variance * ((1 - overall) ** 2 + (n_classes - 1) * overall**2)
    spread = n * overall * (1 - overall) + noise
    if len(n) == 1:
        return ADDITIVE.kept
    own = n / total
    fitted = own.sum() + (1 - own).mean() * sum(size - 1 for size in shape)
    gain = (released * predicted / spread).sum() - n_classes * min(fitted, len(n) - 1)
    return float(np.clip(gain / max((predicted**2 / spread).sum(), 1e-9), ADDITIVE.kept, 1))


def _additive(release):
    """Share of each label in every cell by logistic regression on the groups of the cells."""
    rows, labels, weight = release.make_training_set()
    histogram, classes = release.histogram_, release.classes_
    present = np.isin(classes, labels)
    shape, overall = histogram.shape[:-1], release.shares_
    if not shape or present.sum() < 2:
        return overall
    cells = np.indices(shape).reshape(len(shape), -1).T
    model = LogisticRegression(max_iter=300).fit(rows, labels, sample_weight=weight)
    shares = np.tile(overall, (len(cells), 1))
    shares[:, present] = model.predict_proba(one_hot(cells, shape)) * overall[present].sum()
    return shares.reshape(histogram.shape)


# ------------------------------------------------------------------------------------------------
# PPH: the histogram over a few privately selected predictors.


@dataclass(eq=False, repr=False, kw_only=True)
class ProjectedHistogramTransformer(GridTransformer):
    """Publish data for classification by projecting on few predictors (PPH).

    Predictors are selected privately, one after the other: each time the one that best separates
    records of different labels when combined with those already selected. The histogram over the
    selected predictors is released, with categories as they are and numbers in equal bins.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label.
    n_attributes : int, default=3
        Number of predictors that are selected; all, if the domain has fewer.
    calibration : {"tight", "paper"}, default="tight"
        How predictors are selected; see :class:`DiffGenTransformer`.
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
        only: no guarantee.

    Attributes
    ----------
    grid_ : Grid
        The predictors that the grid uses, and how their values are grouped.
    histogram_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        Non-negative counts that keep the noisy total.
    noisy_counts_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        The counts as released, unbiased integers.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (number of records), "grid", "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: the noisy
    number of records, the predictors, noisy counts. *Cost*: the selections share "grid" evenly;
    "total" and "counts" are composed with it. The paper's score is the number of pairs of records
    that a projection does not separate. One record changes it by up to the number of records, which
    is itself private. Here the pairs of a cell are counted relative to its size; that score changes
    by less than 1.

    References
    ----------
    S. Vinterbo, "Differentially private projected histograms: construction and use for
    prediction", ECML PKDD 2012; J. Lei, "Differentially private M-estimators", NeurIPS 2011 (the
    number of bins).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, ProjectedHistogramTransformer
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat([0, 1], 5_000)
    >>> release = ProjectedHistogramTransformer(
    ...     epsilon=1.0, domain=Numeric(0, 1, bins=4), classes=[0, 1], n_attributes=1
    ... )
    >>> release.fit(X, y).histogram_.shape
    (4, 2)
    """

    # Every score uses all predictors.
    _projects = False

    n_attributes: Any = 3

    def _check_parameters(self):
        super()._check_parameters()
        as_integer(self.n_attributes, "n_attributes", 1)

    def _parts(self, epsilon):
        return projection_parts(epsilon)

    def _choose(self, table, predictors, parts, source):
        n_records = int(discrete_laplace(table.n, parts["total"], random_state=source))
        axes, groups, labels = projected_histogram(
            table,
            predictors,
            n_records,
            parts["grid"],
            n_attributes=int(self.n_attributes),
            calibration=self.calibration,
            random_state=source,
        )
        return n_records, axes, groups, labels
