"""What all releases of a grid do: fit, draw rows, map rows to the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._arrays import exclusive_cumsum
from .._base import (
    PrivateEstimator,
    RefusesWeights,
    feature_rows,
    label_classes,
    match_labelled,
    refuse_beside_rows,
    warn_of_emptiness,
    without_label,
)
from .._random import sampling_generator
from .._types import IntArray
from .._validation import as_sample_size, check_choice
from ..exceptions import DomainError
from ..hierarchy import project_to_simplex
from ..kernels.privpfc import measure_grid_counts
from ..mechanisms import discrete_laplace_variance
from ..release.models.rounding import round_line, round_table, shuffled_line
from ..release.sampling import METHODS
from ..rows import Frame, Layout, count_rows, labels_like, read_rows

__all__ = ["Grid", "GridRelease", "GridTransformer", "one_hot"]

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


class GridRelease(RefusesWeights, PrivateEstimator):
    """A release of a grid and a noisy histogram over it; subclasses define how both are found."""

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
        refuse_beside_rows(type(self).__name__, fit_params)
        self._check_parameters()
        read = read_rows(X)
        rows, domain, target = match_labelled(
            self, read, y, self.classes, "the list of", "classes="
        )
        classes, class_of = label_classes(domain, target)
        names = _predictors(domain, target)
        layout = Layout.of(X, rows, domain)
        parts = self._parts(self._record_epsilon())
        if not self._projects:
            self._warn_of_size(rows, domain)
        loss, source = self._spend(parts, rows)
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
        noisy = measure_grid_counts(
            table.project([*axes, len(names)]),
            groups,
            list(grid.shape),
            noise["counts"],
            random_state=source,
        )
        histogram = self._post_process(noisy, n_records, noise)

        if y is None and isinstance(read, Frame):
            # The label is a column of X; the features are the others.
            X = without_label(X, read, domain, target)
        self._remember_columns(X, rows, target)
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
            Decides library, order and types, as far as its types can hold the values of the
            domain. Take public types, not those of the records.

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

    def fit_resample(self, X, y=None) -> Any:
        """Fit, and return synthetic rows instead of the records.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None

        Returns
        -------
        X_resampled : table of the library of ``X``
        y_resampled : Series of the library of ``y`` if that is one, else ndarray
            Only if ``y`` is given; otherwise the label is a column of ``X_resampled``.
        """
        self.fit(X, y)
        if y is None:
            return self._build_table(self._sample_columns(None, None, most=True))
        columns = self._sample_columns(None, None, most=True)
        drawn = columns.pop(self.target_)
        labels = np.array(drawn.tolist(), dtype=self.classes_.dtype)
        y_resampled = labels_like(drawn, labels, y, self.domain_, self.target_)
        names = [name for name in self._given_names() if name != self.target_]
        return self._build_table({name: columns[name] for name in names}), y_resampled

    def _stand_in(self, domain, layout):
        """Act as if fitted to a public grid, so that a model can be tried before the charge."""
        self._layout = layout
        self.domain_ = domain
        self.target_ = self.target
        self.classes_ = label_classes(domain, self.target)[0]
        used = [name for name in domain.names if name != self.target and domain[name].size > 1][:2]
        groups = [2 * np.arange(domain[name].size) // domain[name].size for name in used]
        self.grid_ = Grid(tuple(used), tuple(groups), (("low", "high"),) * len(used))
        self.histogram_ = np.ones((*self.grid_.shape, len(self.classes_)))
        return self

    def _sample_columns(self, n_samples, random_state, method="rounded", most=False):
        rng = sampling_generator(random_state)
        counts = self.histogram_.ravel()
        total = counts.sum()
        n_rows = as_sample_size(n_samples, total, len(self.domain_), most=most)
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
        rows = feature_rows(self, X)
        used = self.grid_.columns
        absent = [name for name in used if name not in rows.names]
        if absent:
            raise DomainError(
                f"The rows lack the predictors {absent}, which the grid uses. It uses {list(used)}."
            )
        if not used:
            return np.zeros((len(rows), 0), dtype=np.int64)
        codes = self.domain_.without_structure().select(used).encode(rows.select(used))
        coordinates = np.empty(codes.shape, dtype=np.int64)
        for position, groups in enumerate(self.grid_.groups):
            coordinates[:, position] = np.append(groups, -1)[codes[:, position]]
        return coordinates

    def _check_parameters(self):
        """Raise for invalid parameters, before anything is spent."""

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


def _predictors(domain, target):
    """All columns of the domain except the label."""
    names = [name for name in domain.names if name != target]
    if not names:
        raise DomainError(
            f"The domain has no column except the label {target!r}. Declare at least one predictor."
        )
    return names


def _noisy_total(noisy, n_records, parts):
    """Released number of records, and the standard deviation of its noise."""
    if n_records is None:
        variance = noisy.size * discrete_laplace_variance(parts["counts"])
        return float(noisy.sum()), np.sqrt(variance)
    return n_records, np.sqrt(discrete_laplace_variance(parts["total"]))


def _rounded(share, n_rows, rng):
    """Whole counts of cells and labels; those of cells and those of labels are rounded too."""
    of_cell = share.sum(axis=1)
    sizes = round_line(of_cell, n_rows, rng)
    within = share / np.where(of_cell > 0, of_cell, 1.0)[:, None]
    return round_table(within * sizes[:, None], sizes, rng)


def _draw_codes(groups, drawn, rng):
    """One code from each drawn group, all codes of the group equally likely."""
    members = np.argsort(groups, kind="stable")
    size = np.bincount(groups)
    first = exclusive_cumsum(size)
    return members[first[drawn] + rng.integers(0, size[drawn])]


class GridTransformer(TransformerMixin, GridRelease):
    """Adds ``transform`` and the names of its columns."""

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
            With ``encoding="ordinal"`` the number of the row's group in each predictor of the
            grid (int64), -1 if the domain has no code for the value. With "onehot" indicators
            (float64). A grid that uses no predictor gives one constant column.
        """
        coordinates = self._coordinates(X)
        if self.encoding == "onehot":
            return one_hot(coordinates, self.grid_.shape)
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
        check_choice(self.encoding, "encoding", ("ordinal", "onehot"))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        # Groups are numbered, whatever the type of the values.
        tags.transformer_tags.preserves_dtype = []
        return tags
