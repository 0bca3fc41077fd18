"""Principal components of columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._models import design_of, feature_columns, grouped_records
from ._validation import as_integer
from .algorithms.additive import UNIT
from .algorithms.linear import check_products, noisy_moments
from .base import NoScore, PrivateEstimator, match_rows, warn_of_emptiness
from .domain import Numeric
from .exceptions import DomainError
from .tables import as_frame, weighted_rows

__all__ = ["PrivatePCA"]


@dataclass(eq=False, repr=False, kw_only=True)
class PrivatePCA(NoScore, ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Principal component analysis under pure epsilon-differential privacy, with exact noise.

    Parameters
    ----------
    n_components : int, default=None
        How many components are kept. None: as many as columns.
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range of every column, required: each a `Numeric` whose values can be averaged and
        are not missing. One attribute or pair is for all columns of an array. A number is measured
        as the mean of its bin.
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
    components_ : ndarray of shape (n_components, n_columns)
        Axes of largest variance; the largest entry of each is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each, in squared units of the columns, with the number of records as divisor.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Shares of the variance of all columns.
    mean_ : ndarray of shape (n_columns,)
    n_components_ : int
    n_samples_ : float
        Released number of records; noise may make it negative.
    covariance_ : ndarray of shape (n_columns, n_columns)
        The released covariances; no eigenvalue is negative.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its part "moments".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: the number of
    records, sums of the d columns, and of their products, of which a record changes the absolute
    values, scaled to -1 to 1, by 1 + d + d(d + 1)/2 at most. *Cost*: all of epsilon at once.
    Components and projections are post-processing.

    With dozens of columns most of these sums are lost in noise; scikit-learn's ``PCA`` of rows of a
    `MarginalSynthesizer`, which measures the pairs that matter, is then better.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivatePCA
    >>> x = np.linspace(0, 1, 10_000)
    >>> X = np.column_stack([x, 1 - x])
    >>> pca = PrivatePCA(1, domain=Numeric(0, 1)).fit(X)
    >>> bool(pca.explained_variance_ratio_[0] > 0.9)
    True
    >>> pca.transform(X[:2]).shape
    (2, 1)
    """

    n_components: Any = field(default=None, kw_only=False)
    domain: Any = None
    max_rows_per_id: Any = None
    privacy_id: Any = None

    _belongs = (
        "Put a private model behind it: make_pipeline(PrivatePCA(...), "
        "PrivateLogisticRegression(...)) goes into cross_validate and searches."
    )

    def fit(self, X, y=None) -> Self:
        """Charge epsilon, then release means, covariances and their axes.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            One row per record: NumPy array; pandas, Polars or PyArrow table; or a lazy frame of
            Polars, DuckDB, Dask or PySpark, whose distinct coded rows are counted in its engine.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter is invalid; nothing is spent. Values never raise: numbers
            out of range are clipped, and a record with a missing value is skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        rows, domain = match_rows(
            X, None, self.domain, None, lazy=True, privacy_id=self._privacy_id(), of=self
        )
        _check_numbers(domain)
        n_components = self._wanted(len(domain.names))
        columns = feature_columns(domain, "categories", 2, {})
        design = design_of(columns)
        check_products(design, 1, self._record_epsilon())
        self._warn_of_size(rows, domain)
        loss, source = self._spend(rows, shares={"moments": 1})

        coded = weighted_rows(rows, domain, self._contributions(loss, source, rows, domain))
        groupings = [(each.groups, len(each.column.values)) for each in columns]
        records = grouped_records(*coded, groupings)
        # Privacy. Released: `noisy_moments` with the constant outcome 1, in one call. The rest is
        # computed from it.
        outcomes, ones = np.array([[UNIT]]), np.ones(1)
        epsilon = loss.of_record.parts["moments"]
        moments = noisy_moments(records, design, outcomes, 1, ones, epsilon, source)
        self._remember_columns(X, rows)
        self.domain_ = domain
        self.privacy_loss_ = loss
        self._publish(moments, columns, n_components)
        warn_of_emptiness(self, self.n_samples_, moments.std)
        return self

    def _wanted(self, n_columns):
        if self.n_components is None:
            return n_columns
        wanted = as_integer(self.n_components, "n_components", 1)
        if wanted > n_columns:
            raise ValueError(
                f"n_components must be at most {n_columns}, the number of columns, got {wanted}."
            )
        return wanted

    def _publish(self, moments, columns, n_components):
        """Set the released attributes, in the units of the columns."""
        self.n_samples_ = float(moments.products[0, 0])
        total = max(self.n_samples_, 1.0)
        mean = np.clip(moments.products[0, 1:] / total, -1.0, 1.0)
        values, vectors = np.linalg.eigh(moments.products[1:, 1:] / total - np.outer(mean, mean))
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        scale = np.concatenate([each.scale for each in columns])
        self.mean_ = np.concatenate([each.shift for each in columns]) + scale * mean
        self.covariance_ = positive * np.outer(scale, scale)
        values, vectors = np.linalg.eigh(self.covariance_)
        values, axes = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
        largest = np.argmax(np.abs(axes), axis=1)
        axes = axes * np.where(axes[np.arange(len(axes)), largest] < 0, -1.0, 1.0)[:, None]
        self.components_ = axes[:n_components]
        self.explained_variance_ = values[:n_components]
        whole = values.sum()
        self.explained_variance_ratio_ = values[:n_components] / (whole if whole > 0 else 1.0)
        self.n_components_ = n_components

    @property
    def _n_features_out(self):
        return self.n_components_

    def transform(self, X) -> np.ndarray:
        """Coordinates of rows along the components.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Numbers are clipped to the domain; missing ones count as the mean.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        rows = self._rows_as_fitted(X)
        if not rows.n_unnamed:
            rows = rows.select(list(self.domain_.names))
        columns: Any = self.domain_.attributes
        low, high = np.array([(each.lower, each.upper) for each in columns], dtype=np.float64).T
        numbers = np.clip(rows.numbers(), low, high) - self.mean_
        numbers = np.where(np.isnan(numbers), 0.0, numbers)
        # Column by column: the last digit of a matrix product depends on how many rows there are,
        # and one record more would change all rows that a private step reads after this one.
        coordinates = np.zeros((len(numbers), len(self.components_)))
        for column, weights in zip(numbers.T, self.components_.T, strict=True):
            coordinates += np.multiply.outer(column, weights)
        return coordinates

    def inverse_transform(self, X) -> np.ndarray:
        """Rows at coordinates along the components.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_components)

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        check_is_fitted(self)
        return as_frame(X).numbers() @ self.components_ + self.mean_


def _check_numbers(domain):
    for name, attribute in domain.items():
        if not isinstance(attribute, Numeric) or not attribute.summable:
            raise DomainError(
                f"Column {name!r} is declared as a {type(attribute).__name__} without numbers to "
                "average. Principal components need a Numeric for every column."
            )
        if attribute.size > attribute.bins:
            raise DomainError(
                f"Column {name!r} has missing or special values, which lie on no axis. Declare it "
                "without them: records that have one are then skipped."
            )
        largest = np.finfo(np.float64).max ** 0.25
        if max(abs(float(attribute.lower)), abs(float(attribute.upper))) > largest:
            raise DomainError(
                f"The range of column {name!r} is too wide for squares in float64: at most "
                f"{largest:.0e} either way. Take other units."
            )
