"""Means, spreads and quantiles learned with noise, and plain columns."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._random import noise_source
from ._validation import (
    FloatArray,
    IntArray,
    as_between,
    as_epsilon,
    as_fraction,
    as_integer,
    as_level,
    as_number,
    batches,
    check_choice,
)
from .accounting import PrivacyLoss, charge
from .algorithms.quantiles import UNIT, AnyPlan, plan_quantiles
from .base import (
    NoScore,
    PrivateEstimator,
    feature_ranges,
    match_rows,
    range_of,
    warn_of_emptiness,
    without_id,
)
from .domain import Domain, Numeric
from .domain.bins import N_CODES
from .exceptions import DomainError
from .mechanisms import discrete_laplace, discrete_laplace_variance
from .tables import (
    TYPES_DECLARED,
    Column,
    as_column,
    as_frame,
    as_numbers,
    as_texts,
    assumed,
    few_of_each,
    identities,
    object_array,
)

__all__ = [
    "PrivateQuantileClipper",
    "PrivateStandardScaler",
    "QuantileResult",
    "as_numbers",
    "as_texts",
    "private_quantiles",
]

# Of error bounds that are not used.
_LEVEL = 0.95


class _ColumnTransformerBase(NoScore, OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """What both transformers of numeric columns share: checking and reading the columns."""

    _belongs = (
        "Put it in front of a private model: make_pipeline(PrivateStandardScaler(...), "
        "PrivateLogisticRegression(...)) goes into cross_validate and searches."
    )

    def _start(self, X):
        """Check the schema only; return the rows, a domain of fine codes, and the ranges."""
        rows, privacy_id = as_frame(X), self._privacy_id()
        names = without_id(rows, privacy_id).names
        low, high = feature_ranges(self.domain, names)
        ranges = {
            name: Numeric(float(a), float(b), bins=N_CODES)
            for name, a, b in zip(names, low, high, strict=True)
        }
        rows, domain = match_rows(rows, None, Domain(ranges), None, privacy_id=privacy_id)
        return rows, domain, low, high

    def _kept(self, values, rows, loss, source, domain):
        """The values of the rows that count: at most so many of each person, where there are any.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_features)
        """
        # Privacy. Which rows of a person are kept is decided by that person's rows and coins, see
        # `some_of_each`: a person more adds at most `most` rows, each at epsilon / most.
        bound = self._contributions(loss, source, rows, domain)
        if bound is None:
            return values
        owners = identities(rows.column(bound.privacy_id))
        known = np.flatnonzero(owners >= 0)
        records = np.nan_to_num(values[known])
        coins = source.record_words(len(known), records, owners[known])
        return values[np.sort(known[few_of_each(owners[known], coins, bound.most)])]

    def _new_values(self, X):
        """New rows as numbers; the person, if given, is no feature."""
        return self._rows_as_fitted(self._without_person(X)).numbers()


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateStandardScaler(_ColumnTransformerBase):
    """Standardize columns by means and standard deviations that are released with noise.

    Use it in place of scikit-learn's ``StandardScaler`` before a release, or to publish the means.
    On synthetic rows from a release, the ordinary scaler is free.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``; every column gets the same share of it.
    domain : (low, high), list, dict, Domain or Numeric, default=None
        Public range of the columns, always of real numbers: one for all, or one for each. Required.
        Values outside are clipped while the means are learned.
    clip : float, default=4.0
        `transform` clips every value to -clip and clip, of new rows too: a public range, which the
        next step takes as ``domain=(-4.0, 4.0)``.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped; `transform` leaves it out.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Within the ranges.
    scale_ : ndarray of shape (n_features,)
        Positive standard deviations: where the noisy estimate is not positive, that of the uniform
        distribution over the range.
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
    >>> scaler = PrivateStandardScaler(epsilon=1.0, domain=(0, 10)).fit(X)
    >>> np.abs(scaler.transform([[2.0], [3.0], [900.0]])).round(1).tolist()
    [[0.0], [1.0], [4.0]]

    What it gives has a public range:

    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPKMeans
    >>> kmeans = DPKMeans(3, epsilon=0.5, domain=(-4.0, 4.0))
    >>> model = make_pipeline(PrivateStandardScaler(epsilon=0.5, domain=(0, 10)), kmeans)
    """

    domain: Any = None
    clip: Any = 4.0
    max_rows_per_id: Any = None
    privacy_id: Any = None

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
            If there is no domain, or a column is not numeric; nothing is spent.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        as_between(self.clip, "clip", Fraction(1, 1000), 10**6)
        rows, domain, low, high = self._start(X)
        loss, source = self._spend(rows, shares={"counts": 1, "sums": 6, "squares": 3})

        # Privacy. Each value becomes, by itself, an odd integer in (-N_CODES, N_CODES) around the
        # middle of its range. Released are three integers per column: how many values there are
        # (sensitivity 1), their sum (N_CODES), and the sum of their squares in units of N_CODES
        # (N_CODES). One record is in every column: d columns in sequence, each at a d-th of a part.
        codes = domain.encode(rows.select(domain.names)).astype(np.int64)
        codes = self._kept(codes, rows, loss, source, domain)
        present = codes >= 0
        steps = np.where(present, 2 * codes + 1 - N_CODES, 0)
        share = {name: part / len(low) for name, part in loss.of_record.parts.items()}
        counts = discrete_laplace(present.sum(axis=0), share["counts"], random_state=source)
        first = discrete_laplace(steps.sum(axis=0), share["sums"], N_CODES, random_state=source)
        second = discrete_laplace(
            (steps**2 // N_CODES).sum(axis=0), share["squares"], N_CODES, random_state=source
        )
        n = np.maximum(counts, 1)
        mean = np.clip(first / (n * N_CODES), -1, 1)
        variance = second / (n * N_CODES) - mean**2
        # A spread below the noise of the squares is noise. The distribution of the noise is public.
        least = 2 / (float(share["squares"]) * n)
        variance = np.where(variance > least, np.minimum(variance, 1.0), 1 / 3)

        middle, half = (low + high) / 2, (high - low) / 2
        self._remember_columns(X, rows)
        self.mean_ = middle + half * mean
        self.counts_ = counts
        self.scale_ = half * np.sqrt(variance)
        self.privacy_loss_ = loss
        std = np.sqrt(discrete_laplace_variance(share["counts"]))
        warn_of_emptiness(self, float(counts.min()), std)
        return self

    def transform(self, X) -> np.ndarray:
        """Subtract the means, divide by the standard deviations, and clip.

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
            scaled = (self._new_values(X) - self.mean_) / self.scale_
        return np.clip(scaled, -self.clip, self.clip)

    def inverse_transform(self, X) -> np.ndarray:
        """Undo `transform`, except for the clipping.

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


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateQuantileClipper(_ColumnTransformerBase):
    """Clip columns to quantiles that are released with noise.

    Narrow ranges mean less noise in later steps. If only a wide range is known publicly (an income
    between 0 and ten million), this finds a narrow one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``; every column gets the same share of it.
    domain : (low, high), list, dict, Domain or Numeric, default=None
        Public range of the columns, always of real numbers: one for all, or one for each. Required.
        The quantiles are searched among 2**32 equal parts of it; wide ranges cost little.
    quantiles : (lower, upper), default=(0.01, 0.99)
        The two quantiles, rounded to three decimals; 0 and 1 are the ends of the range.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped; `transform` leaves it out.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    lower_ : ndarray of shape (n_features,)
    upper_ : ndarray of shape (n_features,)
        The released quantiles, within the ranges, ``lower_ < upper_``.
    privacy_loss_ : PrivacyLoss
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateQuantileClipper
    >>> X = np.linspace(40, 60, 10_000)[:, None]
    >>> clipper = PrivateQuantileClipper(epsilon=1.0, domain=(0, 1_000)).fit(X)
    >>> bool(30 < clipper.lower_[0] < 45 and 55 < clipper.upper_[0] < 70)
    True
    """

    domain: Any = None
    quantiles: Any = (0.01, 0.99)
    max_rows_per_id: Any = None
    privacy_id: Any = None

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
            If there is no domain, or a column is not numeric; nothing is spent.
        ValueError
            If ``quantiles`` is not an increasing pair.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        try:
            lower, upper = (Fraction(str(q)).limit_denominator(1000) for q in self.quantiles)
        except (TypeError, ValueError):
            lower = upper = Fraction(0)
        if not 0 <= lower < upper <= 1:
            raise ValueError(
                "quantiles must be (lower, upper) with 0 <= lower < upper <= 1, got "
                f"{self.quantiles!r}."
            )
        wanted = [round(UNIT * q) for q in (lower, upper)]
        inside = [part for part in wanted if 0 < part < UNIT]
        rows, domain, low, high = self._start(X)
        # Before the charge: ranges that cannot be divided, and noise that is too wide, are refused.
        lines = [_as_line(ends, None) for ends in zip(low, high, strict=True)]
        each = self._record_epsilon() / len(low)
        plan = next(iter(plan_quantiles(inside, each, _STEPS).values())) if inside else None
        loss, source = self._spend(rows, shares={"quantiles": 1})

        # Privacy. Each value becomes, by itself, a position on a public line, or is skipped.
        # Released are quantiles of each column, in sequence, each at a d-th of epsilon
        # (`select_quantiles`).
        values = rows.select(domain.names).numbers()
        values = self._kept(values, rows, loss, source, domain)
        ends = np.array([low, high])
        if plan is not None:
            for place, line in enumerate(lines):
                positions = line.positions(values[:, place])
                found, _ = plan.release(positions[positions >= 0], line.size, _LEVEL, source)
                # A step further either way, so that the two differ.
                near = np.clip([found.min() - 1, found.max() + 1], 0, line.last)
                ends[:, place] = np.where(
                    [wanted[0], UNIT - wanted[1]], line.values(near), ends[:, place]
                )

        self._remember_columns(X, rows)
        # Where floating-point numbers are no closer, the two ends still differ.
        self.lower_, self.upper_ = np.where(ends[0] < ends[1], ends, [low, high])
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
        return np.clip(self._new_values(X), self.lower_, self.upper_)


# ------------------------------------------------------------------------------------------------
# Private quantiles of one column.


# Values are integers of at most this size, so that differences fit into 64 bits.
_FARTHEST = 2**62
# Equal steps from one real bound to the other.
_STEPS = 2**32
# Kinds of columns whose values can be read as numbers, one by one.
_READABLE = ("numeric", "boolean", "object", "string")


@dataclass(frozen=True)
class QuantileResult:
    """Quantiles released by `private_quantiles`.

    Attributes
    ----------
    quantiles : ndarray of float64, shape (n_quantiles,)
        The shares that were asked for, increasing.
    values : ndarray of int64 or float64, shape (n_quantiles,)
        The released values, not decreasing.
    rank_errors : ndarray of float64, shape (n_quantiles,)
        With probability ``level`` the rank of every value is at most this number of records from
        that of the quantile, on any data; it is usually much nearer. A value that occurs several
        times has several ranks, the nearest of which counts.
    level : float
    range : tuple
        Range of the released values, as given.
    method : {"independent", "recursive", "tree"}
    plan : dict of str to float
        Predicted mean error of each method in records, if values are dense within the range.
    privacy_loss : PrivacyLoss
        One part, "quantiles".
    """

    quantiles: FloatArray
    values: NDArray[Any]
    rank_errors: FloatArray
    level: float
    range: tuple[Any, Any]
    method: str
    plan: Mapping[str, float] = field(repr=False)
    privacy_loss: PrivacyLoss

    def rank_intervals(self, n_records: float) -> FloatArray:
        """Intervals of ranks, if the number of records is public or was released.

        Parameters
        ----------
        n_records : number
            How many values are not missing.

        Returns
        -------
        ndarray of float64, shape (n_quantiles, 2)
            Lowest and highest rank of each value, between 0 and ``n_records``.
        """
        number = as_number(n_records, "n_records")
        wanted = self.quantiles * number
        ends = np.stack([wanted - self.rank_errors, wanted + self.rank_errors], axis=1)
        return np.clip(ends, 0.0, number)

    def to_frame(self) -> pd.DataFrame:
        """The quantiles as a table.

        Returns
        -------
        DataFrame
            Columns ``quantile``, ``value`` and ``rank_error``.
        """
        return pd.DataFrame(
            {"quantile": self.quantiles, "value": self.values, "rank_error": self.rank_errors}
        )


def private_quantiles(
    values: Any,
    quantiles: Any,
    *,
    epsilon: Any = 1.0,
    domain: Any = None,
    step: Any = None,
    method: str = "auto",
    level: float = 0.95,
    persons: Any = None,
    max_rows_per_id: int | None = None,
    ledger: Any = None,
    random_state: Any = None,
) -> QuantileResult:
    """Release quantiles of a column, with bounds of their rank errors.

    Use it if all that you need of a column is quantiles. A `RangeTreeHistogram` answers any range
    and quantile later.

    Parameters
    ----------
    values : Series, 1-D array, list or frame of one column
        Numbers. Missing values and those that are no numbers are skipped, infinite ones and others
        beyond the range count as its nearest end. They are read as float64, in which integers
        are exact up to 2**53.
    quantiles : float or array-like of shape (n_quantiles,)
        Different shares, at least 0.000001 and at most 0.999999, rounded to six decimals: 0.5 is
        the median.
    epsilon : number or Fraction, default=1.0
        Privacy parameter of everything that is returned.
    domain : (low, high) or Numeric, default=None
        Public range of the values; a pair is always one of real numbers. Narrow ranges help only a
        little: the error grows with the logarithm of their width. Required.
    step : number, default=None
        Spacing of the values that may be released; others are rounded to it. None: 1 if the
        domain is a Numeric of integers, else a 2**-32 part of its width.
    method : {"auto", "independent", "recursive", "tree"}, default="auto"
        How several quantiles share epsilon. "independent" divides it equally among them;
        "recursive" selects the middle quantile first and then those on either side from the
        records there, and divides epsilon among the levels; "tree" reads all from noisy counts of
        ranges, which needs a domain of at most 2**16 - 1 steps. "auto" takes the one with the
        smallest predicted error, from public facts alone.
    level : float, default=0.95
        Probability with which all ``rank_errors`` hold together.
    persons : array-like of shape (n_rows,), default=None
        Numbers, text or dates that identify the person a row belongs to; ``epsilon`` then protects
        the person. Rows without one are skipped, and so are those whose person a reader of files
        may have changed (:ref:`persons`).
    max_rows_per_id : int, default=None
        Keep at most this many values of each person, chosen secretly. Required with ``persons``.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    QuantileResult
        With ``values``, ``rank_errors``, ``method``, ``privacy_loss`` and more.

    Raises
    ------
    DomainError
        If the column cannot hold numbers; nothing is spent.
    TypeError, ValueError
        If a parameter is of the wrong type or out of range; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay; no value has been read.

    Notes
    -----
    Where many records have equal values, "recursive" divides them at random between both sides of
    a quantile. Where the domain has more than 2**42 steps, this division is less fine, and
    ``rank_errors`` of "recursive" do not cover records that have one value in common.

    Without any record the values are random within the domain.

    References
    ----------
    A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.
    R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for differentially private
    selection", NeurIPS 2020.
    H. Kaplan, S. Schnapp, U. Stemmer, "Differentially private approximate quantiles", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import private_quantiles
    >>> pay = np.repeat(np.arange(1_000, 9_000), 5)
    >>> found = private_quantiles(pay, [0.25, 0.5, 0.75], epsilon=1.0, domain=(0, 1_000_000))
    >>> bool((abs(found.values - [3_000, 5_000, 7_000]) < 100).all())
    True
    >>> found.method
    'recursive'
    """
    column = as_column(values, "values")
    if column.kind not in _READABLE:
        raise DomainError(
            f"Quantiles are of numbers, and the column is of type {column.dtype}. Convert it: "
            "dates, for example, to days since a public day."
        )
    wanted = _as_parts(quantiles)
    line = _as_line(domain, step)
    check_choice(method, "method", ("auto", "independent", "recursive", "tree"))
    share = as_level(level)
    people, most = _as_persons(persons, max_rows_per_id, len(column))
    exact = as_epsilon(epsilon)
    # Before the charge: noise that is too wide is refused.
    plans = _plans(wanted, exact / (most or 1), line.size, method)
    source = noise_source(random_state)
    loss = PrivacyLoss(
        exact,
        {"quantiles": exact},
        seeded=source.seeded,
        max_rows_per_id=most,
        assumes=assumed([column.kind]) if people is None else TYPES_DECLARED,
    )
    charge(ledger, "private_quantiles", loss)

    # Privacy. Each value becomes, by itself, an integer of the line or is skipped, and whether it
    # is among those kept of a person depends on that person and secret coins only. Released:
    # quantiles. Everything else follows from these and public parameters.
    positions = line.read(column)
    if people is not None and most is not None:
        owners = identities(people).astype(np.int64)
        known = np.flatnonzero((owners >= 0) & (positions >= 0))
        coins = source.record_words(len(known), positions[known], owners[known])
        positions = positions[known[few_of_each(owners[known], coins, most)]]
    positions = positions[positions >= 0]
    plan = next(iter(plans.values()))
    found, errors = plan.release(positions, line.size, share, source)
    return QuantileResult(
        quantiles=np.array(wanted) / UNIT,
        values=line.values(np.sort(found)),
        rank_errors=errors,
        level=share,
        range=tuple(line.values(np.array([0, line.last])).tolist()),
        method=plan.method,
        plan={name: float(p.expected_errors().mean()) for name, p in plans.items()},
        privacy_loss=loss,
    )


# --- parameters


def _as_parts(quantiles: Any) -> list[int]:
    """Quantiles as increasing numbers of parts."""
    given = list(quantiles) if isinstance(quantiles, Iterable) else [quantiles]
    if isinstance(quantiles, str | bytes | Mapping) or not given:
        raise TypeError(f"quantiles must be shares such as [0.25, 0.5, 0.75], got {quantiles!r}.")
    parts = [round(as_fraction(q, "each of quantiles") * UNIT) for q in given]
    if not all(0 < part < UNIT for part in parts):
        raise ValueError(
            "quantiles must be between 0 and 1, at least 0.000001 from both, got "
            f"{quantiles!r}. The smallest and the largest value cannot be released."
        )
    if len(set(parts)) < len(parts):
        raise ValueError(
            f"quantiles must differ from each other in six decimals, got {quantiles!r}."
        )
    return sorted(parts)


def _as_persons(persons: Any, most: Any, n_rows: int) -> tuple[Column | None, int | None]:
    """The column of persons, and how many of the values of each are kept."""
    if persons is None and most is None:
        return None, None
    if persons is None or most is None:
        raise ValueError(
            f"persons and max_rows_per_id={most!r} belong together: who each row belongs to, and "
            "how many values of each person to keep. Give both or none."
        )
    bound = as_integer(most, "max_rows_per_id", 1)
    column = as_column(persons, "persons")
    if len(column) != n_rows:
        raise ValueError(
            "values and persons have different numbers of rows: give one person for each row."
        )
    return column, bound


def _plans(wanted: list[int], epsilon: Fraction, size: int, method: str) -> dict[str, AnyPlan]:
    """All plans, the one to follow first."""
    plans = plan_quantiles(wanted, epsilon, size)
    if method == "tree" and "tree" not in plans:
        raise ValueError(
            'method="tree" counts each step of the line, so it needs a domain of at most 65,535 '
            "steps. Declare a narrower domain or a larger step (of whole numbers step=1), or take "
            'method="auto".'
        )
    if method in plans:
        return {method: plans.pop(method), **plans}
    # One quantile has nothing to be split off from.
    return {"independent": plans["independent"], **plans} if method == "recursive" else plans


class _Line(NamedTuple):
    """Equally spaced public values: origin + step * k for k from 0 to ``last``.

    With integers for ``origin`` and ``step`` all values are integers; else ``highest`` cuts off
    what rounding adds.
    """

    origin: Any
    step: Any
    last: int
    highest: float = math.inf

    @property
    def size(self) -> int:
        return self.last + 1

    @property
    def whole(self) -> bool:
        return isinstance(self.step, int) and isinstance(self.origin, int)

    def values(self, positions: IntArray) -> NDArray[Any]:
        """Values at positions."""
        if self.whole:
            exact = [self.origin + self.step * k for k in positions.tolist()]
            return np.array(exact, dtype=np.int64)
        # Half of everything, because the distance of two ends may be infinite.
        halves: FloatArray = self.origin / 2 + positions * (self.step / 2)
        return np.minimum(halves * 2, self.highest)

    def read(self, column: Column) -> IntArray:
        """The nearest position of each value, the end of the line beyond it; -2**62 if missing."""
        # As floats, also in columns of integers, of which one missing value makes floats in pandas.
        numbers_ = column.numbers()
        positions = np.empty(len(numbers_), dtype=np.int64)
        for part in batches(len(numbers_)):
            positions[part] = self.positions(numbers_[part])
        return positions

    def positions(self, numbers_: FloatArray) -> IntArray:
        """As `read`, of numbers."""
        missing = np.isnan(numbers_)
        numbers_ = np.where(missing, 0.0, numbers_)
        if self.whole:
            positions = self._nearest(numbers_)
        else:
            with np.errstate(all="ignore"):
                steps = np.rint((numbers_ / 2 - self.origin / 2) / (self.step / 2))
            steps = np.clip(steps, -float(_FARTHEST), float(_FARTHEST))
            positions = steps.astype(np.int64)
        return np.where(missing, -_FARTHEST, np.clip(positions, 0, self.last))

    def _nearest(self, numbers_: FloatArray) -> IntArray:
        """The nearest positions in exact arithmetic, the upper one in the middle of a step."""
        ends = [self.origin, self.origin + self.step * self.last]
        halves = np.floor(2 * np.clip(numbers_, float(ends[0]), float(ends[1])))
        # Beyond this, differences do not fit into 64 bits.
        small = max(map(abs, ends)) <= 2**60
        exact = halves.astype(np.int64) if small else object_array([int(x) for x in halves])
        positions = (exact - 2 * self.origin + self.step) // (2 * self.step)
        return np.clip(positions, 0, self.last).astype(np.int64)


def _as_line(domain: Any, step: Any) -> _Line:
    """The values that can be released."""
    spacing = None if step is None else _as_step(step)
    if spacing is None and isinstance(domain, Numeric) and domain.integer:
        spacing = 1
    low, high = _as_ends(domain)
    if isinstance(low, int) and isinstance(high, int) and isinstance(spacing, int):
        return _Line(low, spacing, _as_count((high - low) // spacing, domain))
    low, high = float(low), float(high)
    # Half of the distance, which may be infinite.
    half = high / 2 - low / 2
    if spacing is None:
        if half / _STEPS == 0:
            raise ValueError(f"The ends of domain={domain!r} are too close together.")
        return _Line(low, half / _STEPS * 2, _STEPS, high)
    # A whole number of steps, where rounding has made it a little less.
    count = half / (spacing / 2) * (1 + 2.0**-50)
    return _Line(low, float(spacing), _as_count(count, domain), high)


def _as_count(count: float, domain: Any) -> int:
    """The number of steps of a range."""
    if not 1 <= count < _FARTHEST:
        raise ValueError(
            f"domain={domain!r} has {count:.3g} steps; between 1 and 2**62 are possible. "
            "Declare another step."
        )
    return int(count)


def _as_step(step: Any) -> int | float:
    """The step as a Python int or float."""
    number = as_number(step, "step")
    if not 1e-280 <= number <= 1e280:
        raise ValueError(f"step must be between 1e-280 and 1e280, got {step!r}.")
    if not isinstance(step, numbers.Integral):
        return number
    if step > 2**60:
        raise ValueError(f"step must be at most 2**60 as an integer, got {step!r}.")
    return int(step)


def _as_ends(domain: Any) -> tuple[Any, Any]:
    """Both ends of a range as Python numbers; integers stay integers."""
    low, high = range_of(domain)
    if not all(isinstance(end, numbers.Integral) for end in (low, high)):
        return float(low), float(high)
    if max(abs(int(low)), abs(int(high))) > _FARTHEST:
        raise ValueError(
            f"Integer ends of a domain must be at most 2**62 from zero, got {domain!r}. Give them "
            "as floats."
        )
    return int(low), int(high)
