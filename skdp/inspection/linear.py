"""Covariances, principal components and linear regression from a release.

Everything here is post-processing of a release and costs no privacy. Standard errors include the
noise of the release.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._types import FloatArray
from .._validation import as_level, check_choice
from ..domain import Categorical, Domain
from ..domain.queries.regions import everything
from ..release import BoxModel, Synopsis, ViewsModel
from ..release.models.model import Model

# --- second moments of columns: covariance matrices, and what linear models need


class Column(NamedTuple):
    """One column of the table, as one or more columns of numbers.

    Attributes
    ----------
    name : str
    axis : int
        Position in the domain.
    values : ndarray of shape (n_codes, n_numbers)
        The numbers that stand for each code.
    labels : list of str
        Names of the numbers.
    reference : str or None
        The category that has no number of its own.
    """

    name: str
    axis: int
    values: FloatArray
    labels: list[str]
    reference: str | None = None


class Moments(NamedTuple):
    """Means and covariances of columns of numbers, by the release.

    Attributes
    ----------
    mean : ndarray of shape (n_numbers,)
    covariance : ndarray of shape (n_numbers, n_numbers)
        With the number of records as divisor.
    blocks : list of slice
        Numbers of each column.
    total : float
        Estimated number of records, at least 1.
    """

    mean: FloatArray
    covariance: FloatArray
    blocks: list[slice]
    total: float


def as_synopsis(release: Any) -> Synopsis:
    """The synopsis of a release, or of a fitted estimator that has one."""
    synopsis = getattr(release, "synopsis_", release)
    if not isinstance(synopsis, Synopsis):
        raise TypeError(
            f"A synopsis, or a fitted synthesizer, is needed; got {type(release).__name__}."
        )
    return synopsis


def number_column(domain: Domain, name: str) -> Column:
    """A column of numbers, each code with the mean of its values; missing values as their mean.

    Raises
    ------
    ValueError
        If the column is not in the domain or has no numbers.
    """
    attribute = _attribute(domain, name)
    values = np.array(everything(name, attribute).moment(), dtype=np.float64)
    return Column(name, domain.index(name), values[:, None], [name])


def feature_columns(
    synopsis: Synopsis, features: Sequence[str], categorical: Sequence[str] = ()
) -> list[Column]:
    """Columns as numbers: categories, and gaps of numbers, as indicators."""
    found = []
    for name in features:
        attribute, axis = _attribute(synopsis.domain, name), synopsis.domain.index(name)
        counts = synopsis.model.view([axis])
        if isinstance(attribute, Categorical) or name in categorical:
            # An indicator of each code but the most frequent one.
            left_out, labels = int(np.argmax(counts)), attribute.labels()
            kept = [code for code in range(attribute.size) if code != left_out]
            named = [f"{name} = {labels[code]}" for code in kept]
            values = np.eye(attribute.size)[:, kept]
            found.append(Column(name, axis, values, named, labels[left_out]))
        else:
            found.append(_with_gaps(number_column(synopsis.domain, name), attribute, counts))
    return found


def _with_gaps(column: Column, attribute: Any, counts: FloatArray) -> Column:
    """Missing numbers as the mean of the others, and an indicator of them."""
    if not attribute.nullable:
        return column
    present = np.maximum(counts[:-1], 0.0)
    values = column.values.copy()
    values[-1] = present @ values[:-1, 0] / max(present.sum(), 1e-300)
    missing = np.zeros((len(values), 1))
    missing[-1] = 1.0
    labels = [*column.labels, f"{column.name} is missing"]
    return column._replace(values=np.hstack([values, missing]), labels=labels)


def _attribute(domain: Domain, name: Any) -> Any:
    if name not in domain.names:
        raise ValueError(
            f"{name!r} is not a column that the release measured; it has {list(domain.names)}."
        )
    return domain[name]


def moments_of(model: Model, columns: Sequence[Column]) -> Moments:
    """Means and covariances of columns of numbers, from the rows of a release or from its views.

    Weighted rows are one table, so that their correlations have no negative eigenvalue; separate
    views contradict each other by their noise. A release without rows is asked for the table of
    each pair of columns.
    """
    stops = np.cumsum([0, *(each.values.shape[1] for each in columns)])
    blocks = [slice(int(a), int(b)) for a, b in zip(stops[:-1], stops[1:], strict=True)]
    if isinstance(model, ViewsModel):
        numbers = np.hstack([each.values[model.rows[:, each.axis]] for each in columns])
        mean = model.row_weights @ numbers
        numbers -= mean
        covariance = numbers.T @ (model.row_weights[:, None] * numbers)
    else:
        mean, covariance = _by_views(model, columns, blocks)
    return Moments(mean, covariance, blocks, max(model.total, 1.0))


def _by_views(
    model: Model, columns: Sequence[Column], blocks: Sequence[slice]
) -> tuple[FloatArray, FloatArray]:
    size = blocks[-1].stop
    second = np.zeros((size, size))
    shares = [_shares(model.view([each.axis])) for each in columns]
    mean = np.concatenate([p @ each.values for p, each in zip(shares, columns, strict=True)])
    for a, (first, p, at) in enumerate(zip(columns, shares, blocks, strict=True)):
        second[at, at] = first.values.T @ (p[:, None] * first.values)
        for other, at_other in zip(columns[a + 1 :], blocks[a + 1 :], strict=True):
            table = _shares(model.view([first.axis, other.axis]))
            second[at, at_other] = first.values.T @ table @ other.values
            second[at_other, at] = second[at, at_other].T
    return mean, second - np.outer(mean, mean)


def _shares(counts: FloatArray) -> FloatArray:
    """A table of counts as probabilities; noise below zero is cut off."""
    positive = np.maximum(counts, 0.0)
    whole = positive.sum()
    return positive / whole if whole > 0 else np.full(counts.shape, 1.0 / counts.size)


def covariance(release: Any, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Covariance matrix of columns of numbers, from a release: free post-processing.

    Parameters
    ----------
    release : Synopsis or fitted synthesizer
    columns : sequence of str, default=None
        Columns of numbers. None: every `Numeric` whose values can be added up, and every
        `Categorical` whose categories are numbers.

    Returns
    -------
    DataFrame
        Covariances in the units of the columns, with the number of records as divisor. A bin counts
        with its mean value, so variances lack what varies inside bins; missing values count with
        the mean of the others.

    Raises
    ------
    TypeError, ValueError
        If ``release`` is none, or a column is not in it or has no numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Domain, Numeric, MarginalSynthesizer
    >>> from skdp.inspection import covariance
    >>> ages = np.tile(np.arange(20, 60), 100)
    >>> domain = Domain({name: Numeric(0, 80, bins=16) for name in ["age", "years"]})
    >>> rows = {"age": ages, "years": ages - 15}
    >>> import pandas as pd
    >>> view = MarginalSynthesizer(epsilon=2.0, domain=domain).fit(pd.DataFrame(rows))
    >>> table = covariance(view)
    >>> bool(100 < table.loc["age", "years"] < 170)
    True
    """
    synopsis = as_synopsis(release)
    names = columns_of_numbers(synopsis.domain) if columns is None else list(columns)
    found = [_number(synopsis, name) for name in names]
    if not found:
        raise ValueError("The release has no columns of numbers.")
    matrix = moments_of(synopsis.model, found).covariance
    return pd.DataFrame(matrix, index=names, columns=names)


def _number(synopsis: Synopsis, name: str) -> Column:
    """A column of numbers, missing values as the mean of the others."""
    column = number_column(synopsis.domain, name)
    attribute = synopsis.domain[name]
    counts = synopsis.model.view([column.axis])
    filled = _with_gaps(column, attribute, counts)
    return filled._replace(values=filled.values[:, :1], labels=column.labels)


def columns_of_numbers(domain: Domain) -> list[str]:
    """Names of the columns whose values can be averaged."""
    return [name for name in domain.names if _has_numbers(domain[name])]


def _has_numbers(attribute: Any) -> bool:
    if isinstance(attribute, Categorical):
        numbers = (int, float, np.number)
        return all(
            isinstance(each, numbers) and not isinstance(each, bool)
            for each in attribute.categories
        )
    return bool(attribute.summable)


# --- principal components from a release


@dataclass(eq=False, repr=False)
class PrincipalComponents:
    """Principal components of the columns of numbers of a release.

    Attributes
    ----------
    components : DataFrame
        One row for each component, largest first, one column for each column of the release: the
        direction, of length 1, whose largest entry is positive.
    variance : Series
        Variance along each component.
    share : Series
        The same as share of the sum.
    scaled : bool
        Whether columns were divided by their standard deviations.
    """

    components: pd.DataFrame
    variance: pd.Series
    scaled: bool

    @property
    def share(self) -> pd.Series:
        """Share of each component in the variance of all."""
        return self.variance / max(float(self.variance.sum()), 1e-300)

    def to_frame(self) -> pd.DataFrame:
        """Components with the columns ``variance`` and ``share`` in front."""
        table = self.components.copy()
        table.insert(0, "variance", self.variance)
        table.insert(1, "share", self.share)
        return table

    def __repr__(self) -> str:
        return self.to_frame().to_string(float_format=lambda value: f"{value:.3g}")


def pca(
    release: Any,
    columns: Sequence[str] | None = None,
    *,
    n_components: int | None = None,
    scaled: bool = True,
) -> PrincipalComponents:
    """Principal components of columns of numbers, from a release: free post-processing.

    Parameters
    ----------
    release : Synopsis or fitted synthesizer
    columns : sequence of str, default=None
        Columns of numbers; None: all.
    n_components : int, default=None
        How many to return; None: as many as columns.
    scaled : bool, default=True
        Whether to divide each column by its standard deviation (correlations), or not
        (covariances).

    Returns
    -------
    PrincipalComponents

    Raises
    ------
    TypeError, ValueError
        As `covariance`, or if ``n_components`` is not between 1 and the number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import Domain, Numeric, MarginalSynthesizer
    >>> from skdp.inspection import pca
    >>> x = np.linspace(0, 1, 5_000)
    >>> rows = pd.DataFrame({"length": x, "width": 1 - x})
    >>> domain = Domain({"length": Numeric(0, 1, bins=8), "width": Numeric(0, 1, bins=8)})
    >>> view = MarginalSynthesizer(epsilon=2.0, domain=domain).fit(rows)
    >>> bool(pca(view).share.iloc[0] > 0.9)
    True
    """
    covariances = covariance(release, columns)
    names, matrix = list(covariances), covariances.to_numpy()
    wanted = len(names) if n_components is None else n_components
    if not isinstance(wanted, int) or not 1 <= wanted <= len(names):
        raise ValueError(
            f"n_components must be an integer from 1 to {len(names)}, the number of columns, got "
            f"{n_components!r}."
        )
    if scaled:
        std = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        matrix = matrix / np.outer(std, std)
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(values)[::-1][:wanted]
    directions = vectors[:, order].T
    largest = np.argmax(np.abs(directions), axis=1)
    directions *= np.sign(directions[np.arange(wanted), largest])[:, None]
    labels = [f"component {number + 1}" for number in range(wanted)]
    return PrincipalComponents(
        pd.DataFrame(directions, index=labels, columns=names),
        pd.Series(np.maximum(values[order], 0.0), index=labels, name="variance"),
        scaled,
    )


# --- how the noise and the model of a release move the coefficients of a linear model

# Correlation between any function of one column and any of another that is not measured, in noise
# scales of a measured cell: pairs are measured where they depend on each other by more than that.
_UNMEASURED = 15.0
_MOST = 0.12
# Fewer records than this many standard deviations of the noise in their number say nothing.
_SURELY = 2.0
# Dependence in a model is smaller by about such a share than in the records, even where the table
# was measured: in rows that agree with all tables, and by boxes.
_MISFIT, _MISFIT_BOXES = 0.06, 0.1


class _Noise(NamedTuple):
    """What is known of the tables of pairs.

    Attributes
    ----------
    measured : dict of tuple of int to float
        Standard deviation of the noise in a cell, by the positions of both columns.
    scale : float
        That of a cell of another pair, if it were measured.
    misfit : float
        Share of the dependence that is lost.
    """

    measured: Mapping[tuple[int, ...], float]
    scale: float
    misfit: float = _MISFIT


def _coefficient_covariance(
    synopsis: Synopsis,
    columns: Sequence[Column],
    beta: FloatArray,
    inverse: FloatArray,
    moments: Moments,
) -> FloatArray:
    """Covariance matrix of the errors of coefficients that noise and model of a release make.

    Coefficients solve the normal equations ``sum over records of feature * residual = 0``. The sum
    errs by the errors of the tables of each pair of columns, features and target, weighted with
    what the two columns contribute to feature and residual. The inverse of the covariances of the
    features turns the sum into coefficients. This is exact to first order in the errors of tables.

    Parameters
    ----------
    synopsis : Synopsis
    columns : sequence of Column
        Features, and the target last.
    beta, inverse : ndarray
        Coefficients, and the inverse of the covariances of the features.
    moments : Moments
        Of ``columns``.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        NaN where the release does not say how much noise it has, infinite where the noise in the
        number of records is as large as this number, or the target has collapsed to one value.
    """
    noise = _noise_scales(synopsis, [each.axis for each in columns])
    n = len(beta)
    if noise is None:
        return np.full((n, n), np.nan)
    if _says_nothing(synopsis) or not moments.covariance[-1, -1] > 0:
        return np.full((n, n), np.inf)
    shares = np.append(-beta, 1.0)
    centred = [
        each.values - moments.mean[block]
        for each, block in zip(columns, moments.blocks, strict=True)
    ]
    residuals = [
        numbers @ shares[block] for numbers, block in zip(centred, moments.blocks, strict=True)
    ]
    masses = [_shares(synopsis.model.view([each.axis])) for each in columns]
    sums = np.zeros((n + 1, n + 1))
    for a, b in itertools.combinations(range(len(columns)), 2):
        at_a, at_b = moments.blocks[a], moments.blocks[b]
        std = noise.measured.get(tuple(sorted((columns[a].axis, columns[b].axis))))
        if std is not None:
            errors = np.full((len(masses[a]), len(masses[b])), std**2)
            table = noise.misfit * moments.total * moments.covariance[at_a, at_b]
            lost = np.zeros(n + 1)
            lost[at_a], lost[at_b] = table @ shares[at_b], shares[at_a] @ table
            sums += np.outer(lost, lost)
        else:
            most = min(_UNMEASURED * noise.scale, _MOST * moments.total)
            errors = most**2 * np.outer(masses[a], masses[b])
        # What independent errors of the cells do to the normal equations.
        both = centred[a].T @ (errors * np.outer(residuals[a], residuals[b])) @ centred[b]
        sums[at_a, at_a] += centred[a].T @ ((errors @ residuals[b] ** 2)[:, None] * centred[a])
        sums[at_b, at_b] += centred[b].T @ ((errors.T @ residuals[a] ** 2)[:, None] * centred[b])
        sums[at_a, at_b] += both
        sums[at_b, at_a] += both.T
    covariance: FloatArray = inverse @ sums[:n, :n] @ inverse / moments.total**2
    unknown = np.diag(inverse) == 0.0
    # Categories without any record in the release: it says nothing of them.
    covariance[unknown, unknown] = np.inf
    return covariance


def _says_nothing(synopsis: Synopsis) -> bool:
    """Whether the number of records cannot be told from zero."""
    try:
        return synopsis.total <= _SURELY * synopsis.total_std
    except ValueError:  # the noise of the total was not recorded
        return synopsis.total <= 0


def _noise_scales(synopsis: Synopsis, axes: Sequence[int]) -> _Noise | None:
    """What a release says of the noise in its tables; None if it does not."""
    model: Any = synopsis.model
    if isinstance(model, BoxModel):
        return _noise_of_boxes(model, axes)
    if not isinstance(model, ViewsModel):
        return None
    found: dict[tuple[int, ...], float] = {}
    for a, b in itertools.combinations(sorted(axes), 2):
        cells = model.shape[a] * model.shape[b]
        if model.cells is not None:
            found[a, b] = math.sqrt(model.cells[0] * len(model.rows) / cells)
        elif (a, b) in model.coefficients.looks:
            # Coefficients of an orthonormal basis: together they have the noise of all cells.
            look = model.coefficients.looks[a, b]
            told = look.precision > 0
            found[a, b] = math.sqrt(float(look.variances[told].sum()) / cells)
    own = [model.columns[axis].variance(np.ones(model.shape[axis])) for axis in model.columns]
    return _Noise(found, max(found.values(), default=math.sqrt(max(own, default=1.0))))


def _noise_of_boxes(model: BoxModel, axes: Sequence[int]) -> _Noise:
    """Tables of pairs are sums over boxes, all of them measured; each box is taken to be even."""
    whole = math.sqrt(float(model.noise_variances().sum()))
    found = {
        tuple(sorted((a, b))): whole / math.sqrt(model.shape[a] * model.shape[b])
        for a, b in itertools.combinations(axes, 2)
    }
    every_cell = len(model.boxes) == math.prod(model.shape)
    return _Noise(found, whole, 0.0 if every_cell else _MISFIT_BOXES)


# --- the regression

# Least eigenvalue of the correlations of the features: below it they are shrunk towards zero.
_LEAST_EIGENVALUE = 1e-3
# Weight of pairs of features in a workload for regression; pairs with the target have 1.
_AMONG_FEATURES = 0.3


@dataclass(eq=False, repr=False)
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

    table: pd.DataFrame
    target: str
    references: dict[str, str]
    shrinkage: float
    r_squared: float
    level: float
    interval: str
    _columns: Sequence[Column]

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
    noise = _coefficient_covariance(synopsis, [*columns, answer], beta, inverse, moments)
    explained = float(beta @ moments.covariance[:-1, -1])
    variance = max(float(moments.covariance[-1, -1]), 1e-300)
    table = _table(columns, moments, beta, inverse, noise, level, interval, variance - explained)
    left_out = {each.name: each.reference for each in columns if each.reference is not None}
    r_squared = float(np.clip(explained / variance, 0.0, 1.0))
    return LinearFit(table, target, left_out, shrinkage, r_squared, level, interval, columns)


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
