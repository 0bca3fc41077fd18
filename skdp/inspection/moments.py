"""Second moments of columns of a release: covariance matrices, and what linear models need.

Everything here is post-processing of a release and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._types import FloatArray
from ..domain import Categorical, Domain
from ..domain.queries.regions import everything
from ..release import Synopsis, TreeModel
from ..release.models.model import Model


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


def category_column(domain: Domain, name: str, counts: FloatArray) -> Column:
    """A column with an indicator of each code but the most frequent one."""
    attribute = _attribute(domain, name)
    labels = attribute.labels()
    left_out = int(np.argmax(counts))
    kept = [code for code in range(attribute.size) if code != left_out]
    values = np.eye(attribute.size)[:, kept]
    named = [f"{name} = {labels[code]}" for code in kept]
    return Column(name, domain.index(name), values, named, labels[left_out])


def feature_columns(
    synopsis: Synopsis, features: Sequence[str], categorical: Sequence[str] = ()
) -> list[Column]:
    """Columns as numbers: categories, and gaps of numbers, as indicators."""
    found = []
    for name in features:
        attribute = _attribute(synopsis.domain, name)
        counts = synopsis.model.view([synopsis.domain.index(name)])
        if isinstance(attribute, Categorical) or name in categorical:
            found.append(category_column(synopsis.domain, name, counts))
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
    if isinstance(model, TreeModel) and model.rows is not None and model.row_weights is not None:
        mean, covariance = _by_rows(model.rows, model.row_weights, columns)
    else:
        mean, covariance = _by_views(model, columns, blocks)
    return Moments(mean, covariance, blocks, max(model.total, 1.0))


def _by_rows(
    rows: Any, weights: FloatArray, columns: Sequence[Column]
) -> tuple[FloatArray, FloatArray]:
    numbers = np.hstack([each.values[rows[:, each.axis]] for each in columns])
    mean = weights @ numbers
    numbers -= mean
    return mean, numbers.T @ (weights[:, None] * numbers)


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

    def __init__(self, components: pd.DataFrame, variance: pd.Series, scaled: bool) -> None:
        self.components = components
        self.variance = variance
        self.scaled = scaled

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
    synopsis = as_synopsis(release)
    names = columns_of_numbers(synopsis.domain) if columns is None else list(columns)
    matrix = covariance(synopsis, names).to_numpy()
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
