"""Publishing data for classification: one private grid, and a noisy count in each of its cells."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import (
    PrivateEstimator,
    declare_label,
    match_rows,
    warn_of_emptiness,
    without_unit,
)
from ._random import sampling_generator
from ._validation import as_sample_size
from .domain import Categorical
from .exceptions import DomainError
from .hierarchy import project_to_simplex
from .kernels.diffgen import diffgen, diffgen_parts
from .kernels.privpfc import (
    Options,
    cell_limit,
    max_useful_groups,
    measure_grid_counts,
    privpfc_parts,
    select_grid,
)
from .kernels.projection import projected_histogram, projection_parts
from .mechanisms import discrete_laplace, discrete_laplace_variance
from .rows import Frame, as_frame, build_frame, count_rows, read_rows, select_columns

__all__ = [
    "DiffGenTransformer",
    "Grid",
    "PrivPfCClassifier",
    "PrivPfCTransformer",
    "ProjectedHistogramTransformer",
]

# Records' worth of the additive model that joins each cell, in standard deviations of a count.
_PRIOR = 4
# Name of the one column of a grid that uses no predictor.
_WHOLE = "all"


@dataclass(frozen=True, eq=False)
class Grid:
    """A partition of the domain: the codes of some predictors merged into groups.

    Attributes
    ----------
    columns : tuple of str
        The predictors that the grid uses, in the order of the domain.
    groups : tuple of ndarray of shape (n_codes,)
        Group of each code of each of these predictors.
    labels : tuple of tuple of str
        What each group stands for.
    """

    columns: tuple[str, ...]
    groups: tuple[np.ndarray, ...]
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


class _GridRelease(PrivateEstimator):
    """A release of a grid and a noisy histogram over it; subclasses say how both are found."""

    # Whether it needs the rows by a few predictors at a time only, and the label.
    _projects = True

    def fit(self, X, y=None):
        """Charge epsilon, then release a grid and the noisy counts of its cells.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            One row per person: NumPy array; pandas, Polars or PyArrow table; or a lazy frame of
            Polars, DuckDB, Dask or PySpark, which is counted in its engine. Columns are matched
            to the domain by name, those of an array by position.
        y : array-like of shape (n_rows,), default=None
            The labels. None where ``X`` has the column ``target``, as a lazy frame must.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter does not fit; nothing is spent. Values never raise: out
            of range is clipped, an unknown category is `other` where declared, and a record that
            the domain cannot represent, or whose label is not declared or missing, is skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        self._check_parameters()
        rows = without_unit(read_rows(X), self._unit())
        domain, target = declare_label(self.domain, rows, self.target, self.classes)
        if target is None:
            raise DomainError(
                "No column is declared as the label: name a column of the domain in target=, or "
                "give the list of classes=."
            )
        if y is None and self.classes is not None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "classes= declares a label that X has no column for."
            )
        rows, domain = match_rows(X, y, domain, target, lazy=True, unit=self._unit())
        classes, class_of = _classes(domain, target)
        names = [name for name in domain.names if name != target]
        if not names:
            raise DomainError(
                f"The domain has no column but the label {target!r}. Declare at least one "
                "predictor."
            )
        parts = self._parts(self._record_epsilon())
        if not self._projects:
            self._warn_of_size(rows, domain)
        loss, source = self._spend(parts)
        noise = loss.of_record.parts

        ordered = [*names, target]
        table = count_rows(
            rows,
            domain.select(ordered),
            self._contributions(loss, source, rows, domain),
            together=(len(names),) if self._projects else None,
        )
        # A missing label is none of the classes.
        table = table.recode(len(names), np.append(class_of, -1)[: domain[target].size])
        predictors = [domain[name] for name in names]
        n_records, axes, groups, labels = self._choose(table, predictors, noise, source)
        sizes = [len(texts) for texts in labels]
        noisy = measure_grid_counts(
            table.project([*axes, len(names)]),
            groups,
            sizes,
            noise["counts"],
            random_state=source,
        )
        histogram = self._post_process(noisy, n_records, noise)

        # With the label inside X, what counts as its features is the rest.
        inside = y is None and isinstance(rows, Frame)
        self._remember_columns(_without(X, domain, target) if inside else X, rows, target)
        self._library = rows.library
        self.classes_ = classes
        self.domain_ = domain
        self.target_ = target
        self.grid_ = Grid(
            tuple(names[axis] for axis in axes), tuple(groups), tuple(map(tuple, labels))
        )
        self.noisy_counts_ = noisy
        self.histogram_ = histogram
        self.privacy_loss_ = loss
        self._finish()
        if n_records is None:
            variance = noisy.size * discrete_laplace_variance(noise["counts"])
            n_records = float(noisy.sum())
        else:
            variance = discrete_laplace_variance(noise["total"])
        warn_of_emptiness(self, n_records, np.sqrt(variance))
        return self

    def sample(self, n_samples=None, random_state=None):
        """Draw synthetic rows: a cell and a label by the histogram, values evenly inside the cell.

        Predictors that the grid does not use are drawn evenly from their whole domain: nothing
        was released of them. To train on the release, prefer :meth:`make_training_set`.

        Parameters
        ----------
        n_samples : int, default=None
            None draws max(0, round(noisy total)) rows; where that makes more than 500 million
            values (rows times columns), it is refused: give a number of rows.
        random_state : int, numpy.random.Generator or None, default=None
            Seeding the draw is harmless: it is post-processing of the release.

        Returns
        -------
        frame : table of the library that ``fit`` was given
            All columns of the domain, in its order and with its types.
        """
        check_is_fitted(self)
        return build_frame(self._sample_columns(n_samples, random_state), like=self._library)

    def make_training_set(self, n_samples=None, random_state=None):
        """The cells of the grid as training rows, weighted by their counts.

        Parameters
        ----------
        n_samples : int, default=None
            Sum of the weights; None is the noisy total.
        random_state : ignored
            Nothing is drawn. It is there because other releases draw rows.

        Returns
        -------
        X : ndarray of shape (n_rows, n_indicators), float64
            For every cell and label with a positive count the groups of the cell, one-hot: what
            :meth:`prepare` makes of test rows.
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
        return _one_hot(coordinates, shape), self.classes_[labels], weight

    def prepare(self, X):
        """Map test rows to the grid, one-hot, as in the training set.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_indicators), float64
            All zero for a predictor whose value the domain cannot represent.
        """
        return _one_hot(self._coordinates(X), self.grid_.shape)

    def fit_resample(self, X, y=None):
        """Fit, and return synthetic rows in place of the true ones.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None

        Returns
        -------
        X_resampled : table of the library of ``X``
        y_resampled : ndarray, or pandas Series where ``y`` is one
            Only where ``y`` is given; otherwise the label is a column of ``X_resampled``.
        """
        self.fit(X, y)
        if y is None:
            return build_frame(self._sample_columns(None, None, most=True), like=self._library)
        columns = self._sample_columns(None, None, most=True)
        labels = np.array(columns.pop(self.target_).tolist(), dtype=self.classes_.dtype)
        if isinstance(y, pd.Series):
            labels = pd.Series(labels, name=y.name)
        return build_frame(columns, like=self._library), labels

    def _stand_in(self, domain, library):
        """Look fitted, to a public grid of one or two predictors: to try out what is trained."""
        self._library = library
        self.domain_ = domain
        self.target_ = self.target
        self.classes_ = _classes(domain, self.target)[0]
        used = [name for name in domain.names if name != self.target and domain[name].size > 1][:2]
        groups = [2 * np.arange(domain[name].size) // domain[name].size for name in used]
        self.grid_ = Grid(tuple(used), tuple(groups), (("low", "high"),) * len(used))
        self.histogram_ = np.ones((*self.grid_.shape, len(self.classes_)))
        return self

    def _sample_columns(self, n_samples, random_state, most=False):
        rng = sampling_generator(random_state)
        counts = self.histogram_.ravel()
        total = counts.sum()
        n_rows = as_sample_size(n_samples, total, len(self.domain_), most=most)
        # Where the noise left nothing, every cell and label is equally likely.
        share = counts / total if total > 0 else np.full(len(counts), 1 / len(counts))
        drawn = np.unravel_index(
            rng.choice(len(counts), size=n_rows, p=share), self.histogram_.shape
        )
        used = dict(zip(self.grid_.columns, range(len(self.grid_.columns)), strict=True))
        codes = np.empty((n_rows, len(self.domain_)), dtype=np.int64)
        for position, (name, attribute) in enumerate(self.domain_.items()):
            if name == self.target_:
                class_of = _classes(self.domain_, name)[1]
                codes[:, position] = np.argsort(class_of)[drawn[-1]]
            elif name in used:
                groups = self.grid_.groups[used[name]]
                members = np.argsort(groups, kind="stable")
                size = np.bincount(groups)
                first = np.cumsum(size) - size
                group = drawn[used[name]]
                codes[:, position] = members[first[group] + rng.integers(0, size[group])]
            else:
                codes[:, position] = rng.integers(0, attribute.n_values, size=n_rows)
        return dict(self.domain_.decode(codes, rng).items())

    def _coordinates(self, X):
        """Group of each row in each predictor of the grid; -1 where the domain has no code."""
        check_is_fitted(self)
        rows = as_frame(X)
        if self.target_ in rows.named:
            X = _without(X, self.domain_, self.target_)
            rows = as_frame(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        names = [name for name in self.domain_.names if name != self.target_]
        if rows.n_unnamed:
            rows = rows.with_names(names)
        used = self.grid_.columns
        absent = [name for name in used if name not in rows.names]
        if absent:
            raise DomainError(
                f"The rows lack the predictors {absent}, which the grid uses. It uses {list(used)}."
            )
        if not used:
            return np.zeros((len(rows), 0), dtype=np.int64)
        codes = self.domain_.select(used).encode(rows.select(used))
        coordinates = np.empty(codes.shape, dtype=np.int64)
        for position, groups in enumerate(self.grid_.groups):
            coordinates[:, position] = np.append(groups, -1)[codes[:, position]]
        return coordinates

    def _check_parameters(self):
        """Refuse impossible parameters before anything is spent."""

    def _finish(self):
        """Compute what else a fitted one has, from the release alone."""

    def _parts(self, epsilon):
        """Divide epsilon, from public facts alone."""
        raise NotImplementedError

    def _choose(self, table, predictors, parts, source):
        """The noisy number of records or None, and the axes, groups and labels of the grid."""
        raise NotImplementedError

    def _post_process(self, noisy, n_records, parts):
        """Non-negative counts that keep the noisy total: free, since it sees the release only."""
        # Two noisy totals, one of them summed over the cells; weighted by their precision.
        total = float(noisy.sum())
        if n_records is not None:
            own = noisy.size * discrete_laplace_variance(parts["counts"])
            other = discrete_laplace_variance(parts["total"])
            total = (total * other + n_records * own) / (own + other)
        return project_to_simplex(noisy, max(total, 0.0))


class _GridTransformer(TransformerMixin, _GridRelease):
    """Adds ``transform`` and the names of its columns."""

    def transform(self, X):
        """Map rows to the grid.

        The rows are mapped as they are: what comes out is as private as what went in. A step
        that is trained on it together with true labels is NOT private; to train privately put
        this transformer into :class:`skdp.PrivateClassifier`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            With ``encoding="ordinal"`` the number of the row's group in each predictor of the
            grid, int64, -1 where the domain has no code for the value; with "onehot" indicators,
            float64. A grid that uses no predictor gives one constant column.
        """
        coordinates = self._coordinates(X)
        if self.encoding == "onehot":
            return _one_hot(coordinates, self.grid_.shape)
        if not coordinates.shape[1]:
            return np.zeros((len(coordinates), 1), dtype=np.int64)
        return coordinates

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that ``transform`` returns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Checked against the names seen in ``fit``, otherwise ignored.

        Returns
        -------
        ndarray of str
            The predictors of the grid, for "onehot" with the label of the group.
        """
        check_is_fitted(self)
        if input_features is not None:
            given = np.asarray(input_features, dtype=object)
            if len(given) != self.n_features_in_:
                raise ValueError(
                    "input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(given)}."
                )
            seen = getattr(self, "feature_names_in_", None)
            if seen is not None and not np.array_equal(given, seen):
                raise ValueError("input_features is not equal to feature_names_in_")
        grid = self.grid_
        if not grid.columns:
            return np.array([_WHOLE], dtype=object)
        if self.encoding != "onehot":
            return np.array(grid.columns, dtype=object)
        names = [
            f"{column}={label}"
            for column, labels in zip(grid.columns, grid.labels, strict=True)
            for label in labels
        ]
        return np.array(names, dtype=object)

    def _check_parameters(self):
        super()._check_parameters()
        _check_choice("encoding", self.encoding, ("ordinal", "onehot"))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        # Groups are numbered, whatever the type of the values.
        tags.transformer_tags.preserves_dtype = []
        return tags


class _PrivPfC(_GridRelease):
    """The selection of the grid, shared by transformer and classifier."""

    def _check_parameters(self):
        super()._check_parameters()
        _check_choice("selection", self.selection, ("auto", "paper"))
        _check_positive("max_grids", self.max_grids)

    def _parts(self, epsilon):
        return privpfc_parts(epsilon)

    def _choose(self, table, predictors, parts, source):
        # Privacy. Released: the number of records with noise of sensitivity 1 (part "total"), a
        # grid (part "grid", see `select_grid`), and its counts (part "counts", see
        # `measure_grid_counts`). The three are composed sequentially; which groupings are offered
        # depends on the domain and on the noisy number alone.
        exact = np.array([table.n], dtype=np.int64)
        n_records = int(discrete_laplace(exact, parts["total"], random_state=source)[0])
        limit = cell_limit(n_records, parts["counts"], table.shape[-1], self.selection)
        most = max_useful_groups(limit, self.selection)
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
            selection=self.selection,
            random_state=source,
        )
        axes = np.flatnonzero(grid).tolist()
        levels = [offered[axis][0][grid[axis] - 1] for axis in axes]
        return n_records, axes, [level.groups for level in levels], [lv.labels for lv in levels]

    def _post_process(self, noisy, n_records, parts):
        if self.selection == "paper":
            return np.maximum(noisy, 0).astype(np.float64)
        return super()._post_process(noisy, n_records, parts)


def _offers(attribute, most):
    """Public groupings into at most ``most`` groups, and how many a first selection may take.

    Each category against the others is for the second: there are many of these, most of them
    useless, and a first choice among few good candidates is the sharper one.
    """
    if most < 2:
        return [], 0
    n_first = sum(map(len, attribute.groupings(most)))
    families = attribute.groupings(most, against_rest=True)
    return [level for family in families for level in family], n_first


class PrivPfCTransformer(_PrivPfC, _GridTransformer):
    """Publish data for classification: one privately selected grid with noisy counts (PrivPfC).

    A grid groups the values of a few predictors (halves, quarters, levels of a taxonomy) and
    ignores the others. Among up to ``max_grids`` candidates a single private selection finds one
    whose histogram classifies well *under the noise that its counts will get*; then the counts of
    all cells and labels are released. Classifiers trained on them are post-processing.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label. Giving both this
        and ``target`` is an error.
    max_grids : int, default=10_000
        Largest number of candidates of one selection. The grid of one cell is always among them.
    selection : {"auto", "paper"}, default="auto"
        "auto" draws candidates without regard to the order of columns, selects by a noisy
        maximum with the exact range of an integer quality, and with enough data selects a second
        time among the neighbours of the first choice. "paper" is the dissertation: candidates
        level by level in the order of columns with a fifth of the cells, the exponential
        mechanism with its bound of 1.1, and negative counts set to zero.
    encoding : {"ordinal", "onehot"}, default="ordinal"
        What ``transform`` returns. The training set is always one-hot.
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
    parameters, list of labels. *Released*: grid and noisy counts. *Cost*: the parts "total",
    "grid" and "counts" are composed one after the other. The dissertation bounds the change of
    the quality by 1.1 in either direction; in truth all candidates' qualities change inside one
    interval of length at most 1.178, so that the same epsilon selects 1.87 times as sharply.

    A step of an ordinary ``Pipeline`` behind ``transform`` sees the true labels and is not
    private: use :class:`skdp.PrivateClassifier`, or :class:`skdp.PrivPfCClassifier`.

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
    >>> release = PrivPfCTransformer(1.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(LogisticRegression(), release, classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        max_grids=10_000,
        selection="auto",
        encoding="ordinal",
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.max_grids = max_grids
        self.selection = selection
        self.encoding = encoding
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state


class PrivPfCClassifier(ClassifierMixin, _PrivPfC):
    """Histogram classifier on a privately selected grid (PrivPfC).

    Predicts, in each cell of the grid of :class:`PrivPfCTransformer`, the label with the largest
    noisy count. So that cells full of noise do not decide by it, the counts are joined with a few
    records that follow an additive (logistic) model trained on the same release, as many as a
    noisy count is uncertain by; with ``selection="paper"`` the counts decide alone.

    Parameters
    ----------
    epsilon, domain, target, classes, max_grids, selection, max_contributions, unit, ledger, \
    random_state
        As for :class:`PrivPfCTransformer`.

    Attributes
    ----------
    grid_ : Grid
        The predictors that the grid uses, and how their values are grouped.
    histogram_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        Non-negative counts that keep the noisy total.
    smoothed_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        ``histogram_`` joined with the additive model: what predictions are read from.
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
    Privacy is that of :class:`PrivPfCTransformer`; prediction is post-processing. A score
    computed on true held-out rows is exact and not private.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivPfCClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> model = PrivPfCClassifier(1.0, domain=Numeric(0, 1, bins=4), classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        max_grids=10_000,
        selection="auto",
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.max_grids = max_grids
        self.selection = selection
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def predict(self, X):
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

    def predict_proba(self, X):
        """Share of each label in the row's cell.

        Where the domain has no code for a value, the cells along that predictor are added up.

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
        return result

    def _finish(self):
        # Post-processing: it sees the release alone.
        noise = np.sqrt(discrete_laplace_variance(self.privacy_loss_.of_record.parts["counts"]))
        if self.selection == "paper":
            # The largest count decides; the overall shares where all counts are zero.
            weight, shares = 1e-9, _overall(self.histogram_)
        else:
            weight, shares = _PRIOR * noise, _additive(*self.make_training_set(), self)
        self.smoothed_ = self.histogram_ + weight * shares

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # On the few rows of a small table noise wins.
        tags.classifier_tags.poor_score = True
        return tags


class DiffGenTransformer(_GridTransformer):
    """Publish data for classification by private top-down specialisation (DiffGen).

    Starting from one cell, ``n_specializations`` times a node of some predictor's taxonomy is
    selected privately and replaced by its children, wherever it occurs. The counts of the
    resulting grid are released.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label.
    n_specializations : int, default=10
        How many nodes are specialised; each selection gets an equal share of half of epsilon.
    encoding : {"ordinal", "onehot"}, default="ordinal"
        What ``transform`` returns. The training set is always one-hot.
    max_contributions : int, default=None
        How many rows of each person count at most, drawn in secret; epsilon is then that of the
        person. Needs ``unit``. None: epsilon is that of one row.
    unit : str, default=None
        Column of the data, not of the domain, that tells whose a row is. Rows without a value in
        it are skipped.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only.

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
    of a node, the number of its records in the majority label of their child, rises by 0 or 1
    when a record is added; the paper takes twice that range. The paper splits numbers at points
    that it selects privately; here they have a dyadic taxonomy.

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
    ...     1.0, domain=Numeric(0, 1, bins=4), classes=[0, 1], n_specializations=2
    ... )
    >>> release.fit(X, y).histogram_.shape[-1]
    2
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        n_specializations=10,
        encoding="ordinal",
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.n_specializations = n_specializations
        self.encoding = encoding
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        _check_positive("n_specializations", self.n_specializations)

    def _parts(self, epsilon):
        return diffgen_parts(epsilon)

    def _choose(self, table, predictors, parts, source):
        axes, groups, labels = diffgen(
            table,
            predictors,
            parts["grid"],
            n_specializations=int(self.n_specializations),
            random_state=source,
        )
        return None, axes, groups, labels


class ProjectedHistogramTransformer(_GridTransformer):
    """Publish data for classification by projecting on few predictors (PPH).

    Predictors are selected privately one after the other, each time the one that best tells
    records of different labels apart together with those chosen before. The histogram over the
    chosen ones is released: categories as they are, numbers in equal bins.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label.
    n_attributes : int, default=3
        How many predictors are selected, if the domain has as many.
    encoding : {"ordinal", "onehot"}, default="ordinal"
        What ``transform`` returns. The training set is always one-hot.
    max_contributions : int, default=None
        How many rows of each person count at most, drawn in secret; epsilon is then that of the
        person. Needs ``unit``. None: epsilon is that of one row.
    unit : str, default=None
        Column of the data, not of the domain, that tells whose a row is. Rows without a value in
        it are skipped.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only.

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
    "total" and "counts" are composed with it. The number of record pairs that a projection fails
    to tell apart changes by up to the number of records, which is private itself; here the pairs
    of a cell are counted relative to its size, a score that changes by less than 1.

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
    ...     1.0, domain=Numeric(0, 1, bins=4), classes=[0, 1], n_attributes=1
    ... )
    >>> release.fit(X, y).histogram_.shape
    (4, 2)
    """

    # Every predictor takes part in every score.
    _projects = False

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        n_attributes=3,
        encoding="ordinal",
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.n_attributes = n_attributes
        self.encoding = encoding
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        _check_positive("n_attributes", self.n_attributes)

    def _parts(self, epsilon):
        return projection_parts(epsilon)

    def _choose(self, table, predictors, parts, source):
        exact = np.array([table.n], dtype=np.int64)
        n_records = int(discrete_laplace(exact, parts["total"], random_state=source)[0])
        axes, groups, labels = projected_histogram(
            table,
            predictors,
            n_records,
            parts["grid"],
            n_attributes=int(self.n_attributes),
            random_state=source,
        )
        return n_records, axes, groups, labels


def _overall(histogram):
    """Share of each label in all cells together, none of them zero."""
    totals = histogram.reshape(-1, histogram.shape[-1]).sum(axis=0) + 1e-9
    return totals / totals.sum()


def _additive(rows, labels, weight, release):
    """Share of each label in every cell by logistic regression on the groups of the cells."""
    histogram, classes = release.histogram_, release.classes_
    present = np.isin(classes, labels)
    shape = histogram.shape[:-1]
    if not shape or present.sum() < 2:
        return _overall(histogram)
    cells = np.indices(shape).reshape(len(shape), -1).T
    model = LogisticRegression(max_iter=300).fit(rows, labels, sample_weight=weight)
    shares = np.full((len(cells), len(classes)), 1e-9)
    shares[:, present] += model.predict_proba(_one_hot(cells, shape))
    return shares.reshape(histogram.shape)


def _classes(domain, target):
    """Declared labels, sorted, and the place among them of each code."""
    attribute = domain[target]
    if isinstance(attribute, Categorical):
        classes, class_of = np.unique(np.array(attribute.categories), return_inverse=True)
        return classes, class_of.astype(np.int64)
    if attribute.integer and attribute.bins == attribute.upper - attribute.lower + 1:
        classes = np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64)
        return classes, np.arange(len(classes))
    raise DomainError(
        f"The label {target!r} is declared as a Numeric of intervals. A classifier needs a "
        "Categorical, or a Numeric with integer=True and one bin for each integer."
    )


def _without(X, domain, target):
    """The table without the label's column."""
    names = list(domain.names)
    rows = as_frame(X)
    if rows.n_unnamed:
        return np.delete(np.asarray(X), names.index(target), axis=1)
    return select_columns(X, [name for name in rows.names if name != target])


def _one_hot(coordinates, shape):
    """Indicators of the groups, predictor by predictor; of no predictor, a constant column."""
    if not shape:
        return np.ones((len(coordinates), 1))
    result = np.zeros((len(coordinates), sum(shape)))
    begin = 0
    for position, size in enumerate(shape):
        known = np.flatnonzero(coordinates[:, position] >= 0)
        result[known, begin + coordinates[known, position]] = 1.0
        begin += size
    return result


def _check_choice(name, value, allowed):
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def _check_positive(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}.")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}.")
