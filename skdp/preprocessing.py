"""Preprocessing: means, spreads and quantiles learned with noise, and plain columns."""

from __future__ import annotations

from fractions import Fraction
from typing import Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import PrivateEstimator, feature_bounds, match_rows, named_bounds, warn_of_emptiness
from .domain import Domain, Numeric
from .kernels.quantiles import TreePlan
from .mechanisms import discrete_laplace, discrete_laplace_variance
from .rows import as_frame, as_numbers, as_texts

__all__ = ["PrivateQuantileClipper", "PrivateStandardScaler", "as_numbers", "as_texts"]

# Values are read as one of this many codes within the bounds: finer than any noise.
_CODES = 2**20
# Quantiles are searched among this many equal parts of the bounds, and then of the range found.
_PARTS = 2**14
# Parts of epsilon for the two.
_SHARES = {"coarse": Fraction(1, 4), "fine": Fraction(3, 4)}
# Of bounds that are not used.
_LEVEL = 0.95


class _ColumnTransformerBase(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """What both transformers of numeric columns share: checking and reading the columns."""

    def _start(self, X):
        """Check the schema only; return the rows, a domain of fine codes, and the bounds."""
        rows = as_frame(X)
        low, high = feature_bounds(named_bounds(self.bounds, rows.names), len(rows.names))
        ranges = {
            name: Numeric(float(a), float(b), bins=_CODES)
            for name, a, b in zip(rows.names, low, high, strict=True)
        }
        rows, domain = match_rows(rows, None, Domain(ranges), None)
        return rows, domain, low, high


class PrivateStandardScaler(_ColumnTransformerBase):
    """Standardize columns by means and standard deviations that are released with noise.

    Use it in place of scikit-learn's ``StandardScaler`` before a release, or to publish the means.
    On synthetic rows from a release, the ordinary scaler is free.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``; every column gets the same share of it.
    bounds : (low, high), default=None
        Public range of the columns, numbers or arrays with one number for each. Required. Values
        outside are clipped while the means are learned.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Within the bounds.
    scale_ : ndarray of shape (n_features,)
        Positive standard deviations: where the noisy estimate is not positive, that of the uniform
        distribution over the bounds.
    counts_ : ndarray of int, shape (n_features,)
        Noisy numbers of values that are not missing; they may be negative.
    privacy_loss_ : PrivacyLoss
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Notes
    -----
    Missing values are skipped column by column, and stay missing.

    It is a transformer: in a plain ``Pipeline`` it passes on the true rows, scaled. The next steps
    must be private too; see the user guide, "The pipeline trap".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateStandardScaler
    >>> X = np.repeat([[1.0], [3.0]], 5_000, axis=0)
    >>> scaler = PrivateStandardScaler(epsilon=1.0, bounds=(0, 10)).fit(X)
    >>> np.abs(scaler.transform([[2.0], [3.0]])).round(1).tolist()
    [[0.0], [1.0]]
    """

    def __init__(self, epsilon=1.0, *, bounds=None, ledger=None, random_state=None) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X, y=None) -> Self:
        """Charge, and release a mean and a standard deviation of each column.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Numbers.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        DomainError
            If there are no bounds, or a column is not numeric; nothing is spent.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        rows, domain, low, high = self._start(X)
        loss, source = self._spend(shares={"counts": 1, "sums": 6, "squares": 3})

        # Privacy. Each value becomes, by itself, an odd integer in (-_CODES, _CODES) around the
        # middle of its bounds. Released are three integers per column: how many values there are
        # (sensitivity 1), their sum (_CODES), and the sum of their squares in units of _CODES
        # (_CODES). One record is in every column: d columns in sequence, each at a d-th of a part.
        codes = domain.encode(rows).astype(np.int64)
        present = codes >= 0
        steps = np.where(present, 2 * codes + 1 - _CODES, 0)
        share = {name: part / len(low) for name, part in loss.parts.items()}
        counts = discrete_laplace(present.sum(axis=0), share["counts"], random_state=source)
        first = discrete_laplace(steps.sum(axis=0), share["sums"], _CODES, random_state=source)
        second = discrete_laplace(
            (steps**2 // _CODES).sum(axis=0), share["squares"], _CODES, random_state=source
        )
        n = np.maximum(counts, 1)
        mean = np.clip(first / (n * _CODES), -1, 1)
        variance = second / (n * _CODES) - mean**2
        # A spread below the noise of the squares is noise. The distribution of the noise is public.
        least = 2 / (float(share["squares"]) * n)
        variance = np.where(variance > least, np.minimum(variance, 1.0), 1 / 3)

        middle, half = (low + high) / 2, (high - low) / 2
        validate_data(self, X, skip_check_array=True)
        self.mean_ = middle + half * mean
        self.counts_ = counts
        self.scale_ = half * np.sqrt(variance)
        self.privacy_loss_ = loss
        std = np.sqrt(discrete_laplace_variance(share["counts"]))
        warn_of_emptiness(self, float(counts.min()), std)
        return self

    def transform(self, X) -> np.ndarray:
        """Subtract the means and divide by the standard deviations.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Missing values stay missing.
        """
        # A huge value becomes infinite, without a warning that would reveal it.
        with np.errstate(over="ignore"):
            return (self._rows_as_fitted(X).numbers() - self.mean_) / self.scale_

    def inverse_transform(self, X) -> np.ndarray:
        """Undo `transform`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        with np.errstate(over="ignore"):
            return as_frame(X).numbers() * self.scale_ + self.mean_


class PrivateQuantileClipper(_ColumnTransformerBase):
    """Clip columns to quantiles that are released with noise.

    Narrow bounds mean less noise in later steps. If only a wide range is known publicly (an income
    between 0 and ten million), this finds a narrow one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``; every column gets the same share of it.
    bounds : (low, high), default=None
        Public range of the columns, numbers or arrays with one number for each. Required. The
        quantiles are searched among 2**14 equal parts of it first, and then among as many of the
        range found, so that wide bounds cost little.
    quantiles : (lower, upper), default=(0.01, 0.99)
        The two quantiles, rounded to three decimals.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    lower_ : ndarray of shape (n_features,)
    upper_ : ndarray of shape (n_features,)
        The released quantiles, within the bounds, ``lower_ < upper_``.
    privacy_loss_ : PrivacyLoss
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateQuantileClipper
    >>> X = np.linspace(40, 60, 10_000)[:, None]
    >>> clipper = PrivateQuantileClipper(epsilon=1.0, bounds=(0, 1_000)).fit(X)
    >>> bool(30 < clipper.lower_[0] < 45 and 55 < clipper.upper_[0] < 70)
    True
    """

    def __init__(
        self, epsilon=1.0, *, bounds=None, quantiles=(0.01, 0.99), ledger=None, random_state=None
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.quantiles = quantiles
        self.ledger = ledger
        self.random_state = random_state

    def _fractions(self):
        try:
            lower, upper = (Fraction(str(q)).limit_denominator(1000) for q in self.quantiles)
        except (TypeError, ValueError):
            lower = upper = Fraction(0)
        if not 0 <= lower < upper <= 1:
            raise ValueError(
                "quantiles must be (lower, upper) with 0 <= lower < upper <= 1, got "
                f"{self.quantiles!r}."
            )
        return lower, upper

    def fit(self, X, y=None) -> Self:
        """Charge, and release two quantiles of each column.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Numbers. Missing values are skipped.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        DomainError
            If there are no bounds, or a column is not numeric; nothing is spent.
        ValueError
            If ``quantiles`` is not an increasing pair.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        fractions = self._fractions()
        rows, domain, low, high = self._start(X)
        loss, source = self._spend(shares=_SHARES)

        values = rows.numbers()
        ends = []
        for column, a, b in zip(values.T, low, high, strict=True):
            for part in loss.parts.values():
                a, b = _narrowed(column, a, b, fractions, part / len(low), source)
            ends.append((a, b))

        validate_data(self, X, skip_check_array=True)
        self.lower_, self.upper_ = np.array(ends).T.copy()
        self.privacy_loss_ = loss
        return self

    def transform(self, X) -> np.ndarray:
        """Clip to the released quantiles.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Missing values stay missing.
        """
        return np.clip(self._rows_as_fitted(X).numbers(), self.lower_, self.upper_)


def _narrowed(values, low, high, fractions, epsilon, source):
    """A narrower range: the ends of the parts of a public one in which two noisy quantiles lie."""
    # Privacy. Each value becomes, by itself, the number of a part, or is skipped; released are
    # noisy counts of a tree of parts at epsilon (see `TreePlan.release`). The parts are public:
    # they follow from the bounds, or from what was released before. Rounds and columns compose one
    # after the other.
    # Halves, because the distance of two bounds may be infinite.
    width = (high / 2 - low / 2) / _PARTS
    if not width > 0:
        # Public as well: the parts of a range of subnormal numbers.
        return low, high
    # Quotients of subnormal numbers may warn, and a warning would tell that there are values.
    with np.errstate(all="ignore"):
        parts = np.floor((np.clip(values, low, high) / 2 - low / 2) / width)
    codes = np.minimum(parts[~np.isnan(parts)], _PARTS - 1).astype(np.int64)
    plan = TreePlan(fractions, epsilon, _PARTS)
    first, last = plan.release(codes, _PARTS, _LEVEL, source)[0]
    # Where floating-point numbers are no closer, the two ends still differ.
    found = 2 * (low / 2 + first * width), 2 * (low / 2 + (last + 1) * width)
    return (found[0], min(found[1], high)) if found[0] < found[1] else (low, high)
