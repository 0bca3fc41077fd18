"""Linear regression from a release, with standard errors that include the noise of the release."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._types import FloatArray
from .._validation import as_level, check_choice
from ..domain import Domain
from .moments import Column, Moments, as_synopsis, feature_columns, moments_of, number_column
from .noise import coefficient_covariance

__all__ = ["LinearFit", "linear_regression", "regression_workload"]

# Least eigenvalue of the correlations of the features: below it they are shrunk towards zero.
_LEAST_EIGENVALUE = 1e-3
# Weight of pairs of features in a workload for regression; pairs with the target have 1.
_AMONG_FEATURES = 0.3


class LinearFit:
    """Coefficients of a linear regression that was computed from a release.

    Attributes
    ----------
    table : DataFrame
        One row for the intercept and for each number of the features: ``coefficient``,
        ``std_error``, ``lower`` and ``upper`` (the interval), ``noise_error`` (standard error from
        the noise and the model of the release) and ``sampling_error`` (as least squares states it
        on exact rows, if the records are a sample). ``std_error`` is ``noise_error`` with
        ``interval="records"``, else the root of the sum of both squares. NaN where the release does
        not say how much noise it has.
    target : str
    references : dict of str to str
        Of each column of categories the one without a coefficient: the most frequent.
    shrinkage : float
        What was added to the diagonal of the correlation matrix of the features; 0 for plain least
        squares.
    r_squared : float
        Share of the variance of the target that is explained, by the release.
    level : float
        Confidence of the intervals.
    interval : {"records", "population"}
    """

    def __init__(
        self,
        table: pd.DataFrame,
        target: str,
        columns: Sequence[Column],
        *,
        shrinkage: float,
        r_squared: float,
        level: float,
        interval: str,
    ) -> None:
        self.table = table
        self.target = target
        self.references = {c.name: c.reference for c in columns if c.reference is not None}
        self.shrinkage = shrinkage
        self.r_squared = r_squared
        self.level = level
        self.interval = interval
        self._columns = list(columns)

    def to_frame(self) -> pd.DataFrame:
        """A copy of ``table``."""
        return self.table.copy()

    def predict(self, codes: Any) -> FloatArray:
        """Predicted values of the target for rows of codes.

        Parameters
        ----------
        codes : array-like of int, shape (n_rows, n_columns)
            All columns of the domain, as from ``Domain.encode``; the target is not looked at.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
        """
        predicted: FloatArray = self.design(codes) @ self.table["coefficient"].to_numpy()
        return predicted

    def design(self, codes: Any) -> FloatArray:
        """The numbers that stand for rows of codes, the intercept first.

        Parameters
        ----------
        codes : array-like of int, shape (n_rows, n_columns)
            As for `predict`.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_coefficients)
        """
        codes = np.asarray(codes)
        numbers = [each.values[codes[:, each.axis]] for each in self._columns]
        return np.hstack([np.ones((len(codes), 1)), *numbers])

    def __repr__(self) -> str:
        shown = self.table[["coefficient", "std_error", "lower", "upper"]]
        text = shown.to_string(float_format=lambda value: f"{value:.3g}")
        if np.isinf(self.table["std_error"]).all():
            text += "\nThe noise is too large for this release to say anything of the coefficients."
        return (
            f"Linear regression of {self.target!r}, R squared {self.r_squared:.3g}; intervals of "
            f"level {self.level:g} for the {self.interval}\n{text}"
        )

    def _repr_html_(self) -> str:
        shown = self.table.to_html(float_format=lambda value: f"{value:.3g}")
        return f"<div>R squared {self.r_squared:.3g}, level {self.level:g}{shown}</div>"


def linear_regression(
    release: Any,
    target: str,
    features: Sequence[str] | None = None,
    *,
    categorical: Sequence[str] = (),
    level: float = 0.95,
    interval: str = "records",
) -> LinearFit:
    """Linear regression of a column on others, from a release: free post-processing.

    Least squares on the means and covariances that the release implies. Make the release for it
    with few bins (about 16 of each number, 5 to 8 of the target) and with the target, as in
    ``MarginalSynthesizer(max_order=2, target=...)``, or with ``workload=regression_workload(...)``.

    Parameters
    ----------
    release : Synopsis or fitted synthesizer
    target : str
        A column of numbers.
    features : sequence of str, default=None
        None: all other columns that the release measured. Categories become indicators of all but
        the most frequent one; a bin of numbers counts with its mean value, missing numbers with the
        mean of the others and an indicator.
    categorical : sequence of str, default=()
        Columns of numbers whose codes become indicators too.
    level : float, default=0.95
        Confidence of the intervals.
    interval : {"records", "population"}, default="records"
        Whether the intervals are for the coefficients of least squares on the records that were
        released, or for those of a population that the records are a random sample of.

    Returns
    -------
    LinearFit

    Raises
    ------
    TypeError, ValueError
        If ``release`` is none, a column is not in it, or the target has no numbers or can be
        missing.

    Notes
    -----
    Where noise makes the covariances of the features nearly singular, their correlation matrix gets
    a small constant on its diagonal (``shrinkage``), as in ridge regression.

    Standard errors follow from the noise of each table of two columns, by linear propagation
    through the normal equations. Two columns whose table was not measured may depend on each other
    although the release does not show it; how much they can, at the noise that decided what was
    measured, counts as an error too. Coefficients of categories without any record in the release
    are 0, with infinite intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import Categorical, Domain, MarginalSynthesizer, Numeric
    >>> from skdp.inspection import linear_regression
    >>> rng = np.random.default_rng(0)
    >>> age, sex = rng.uniform(20, 60, 20_000), rng.choice(["F", "M"], 20_000)
    >>> pay = 100 + 10 * age + 50 * (sex == "M") + rng.normal(0, 50, 20_000)
    >>> domain = Domain({
    ...     "age": Numeric(20, 60, bins=8),
    ...     "sex": Categorical(["F", "M"]),
    ...     "pay": Numeric(100, 1000, bins=18),
    ... })
    >>> rows = pd.DataFrame({"age": age, "sex": sex, "pay": pay})
    >>> view = MarginalSynthesizer(epsilon=2.0, domain=domain, max_order=2).fit(rows)
    >>> fit = linear_regression(view, "pay", ["age", "sex"])
    >>> bool(9 < fit.table.loc["age", "coefficient"] < 11)
    True
    """
    synopsis = as_synopsis(release)
    level = as_level(level)
    check_choice(interval, "interval", ("records", "population"))
    names = list(synopsis.domain.names) if features is None else list(features)
    names = [name for name in names if features is not None or name != target]
    _check_columns(synopsis.domain, target, names, categorical)
    columns = feature_columns(synopsis, names, categorical)
    answer = number_column(synopsis.domain, target)
    moments = moments_of(synopsis.model, [*columns, answer])
    beta, inverse, shrinkage = _solve(moments)
    noise = coefficient_covariance(synopsis, [*columns, answer], beta, inverse, moments)
    explained = float(beta @ moments.covariance[:-1, -1])
    variance = max(float(moments.covariance[-1, -1]), 1e-300)
    table = _table(columns, moments, beta, inverse, noise, level, interval, variance - explained)
    return LinearFit(
        table,
        target,
        columns,
        shrinkage=shrinkage,
        r_squared=float(np.clip(explained / variance, 0.0, 1.0)),
        level=level,
        interval=interval,
    )


def _check_columns(
    domain: Domain, target: str, features: Sequence[str], categorical: Sequence[str]
) -> None:
    if target in features or not features or len({*features}) < len(features):
        raise ValueError(
            "features must be one or more different columns without the target "
            f"{target!r}, got {list(features)}."
        )
    if unknown := [name for name in categorical if name not in features]:
        raise ValueError(f"categorical names {unknown}, which are not among the features.")
    if target in domain.names and domain[target].nullable:
        raise ValueError(
            f"The target {target!r} can be missing, and a release does not say which of the "
            "records without it have which features. Release the records with a target only."
        )


def _solve(moments: Moments) -> tuple[FloatArray, FloatArray, float]:
    """Coefficients, the inverse of the covariances of the features, and the shrinkage."""
    features, cross = moments.covariance[:-1, :-1], moments.covariance[:-1, -1]
    scale = np.sqrt(np.maximum(np.diag(features), 0.0))
    # Categories without any records have no variance, and get the coefficient 0.
    known = scale > 1e-9 * max(scale.max(initial=0.0), 1e-300)
    factor = np.where(known, 1.0 / np.where(known, scale, 1.0), 0.0)
    correlations = features * np.outer(factor, factor)
    correlations[~known, ~known] = 1.0
    values, vectors = np.linalg.eigh((correlations + correlations.T) / 2)
    shrinkage = max(_LEAST_EIGENVALUE - float(values[0]), 0.0)
    inverse = (vectors / (values + shrinkage)) @ vectors.T * np.outer(factor, factor)
    return inverse @ cross, inverse, shrinkage


def _table(
    columns: Sequence[Column],
    moments: Moments,
    beta: FloatArray,
    inverse: FloatArray,
    noise: FloatArray,
    level: float,
    interval: str,
    residual: float,
) -> pd.DataFrame:
    mean, target_mean = moments.mean[:-1], moments.mean[-1]
    sampling = max(residual, 0.0) / moments.total * inverse
    errors = []
    for each, own in ((noise, 0.0), (sampling, max(residual, 0.0) / moments.total)):
        # A category without records has a mean of 0 and an infinite error, which is none of this.
        known = mean @ np.where(np.isinf(each), 0.0, each) @ mean + own
        intercept = np.inf if np.isinf(each).all() else known
        errors.append(np.sqrt(np.maximum(np.r_[intercept, np.diag(each)], 0.0)))
    by_noise, by_sampling = errors
    std = by_noise if interval == "records" else np.hypot(by_noise, by_sampling)
    found = np.r_[target_mean - mean @ beta, beta]
    reach = ndtri((1 + level) / 2) * std
    labels = ["(intercept)", *itertools.chain.from_iterable(each.labels for each in columns)]
    return pd.DataFrame(
        {
            "coefficient": found,
            "std_error": std,
            "lower": found - reach,
            "upper": found + reach,
            "noise_error": by_noise,
            "sampling_error": by_sampling,
        },
        index=labels,
    )


def regression_workload(
    domain: Domain, target: str, features: Sequence[str] | None = None
) -> dict[tuple[str, str], float]:
    """Pairs of columns that a linear regression needs, as ``workload`` of `MarginalSynthesizer`.

    Parameters
    ----------
    domain : Domain
    target : str
    features : sequence of str, default=None
        None: all other columns.

    Returns
    -------
    dict of tuple of str to float
        Pairs with the target have the weight 1, pairs of features 0.3. Give ``max_order=2`` too.

    Raises
    ------
    ValueError
        If a column is not in the domain.
    """
    names = [n for n in domain.names if n != target] if features is None else list(features)
    if unknown := [name for name in [target, *names] if name not in domain.names]:
        raise ValueError(f"{unknown} are not columns of the domain, which has {domain.names}.")
    pairs: dict[tuple[str, str], float] = {(target, name): 1.0 for name in names}
    return pairs | dict.fromkeys(itertools.combinations(names, 2), _AMONG_FEATURES)
