"""Principal components from a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .moments import as_synopsis, columns_of_numbers, covariance

__all__ = ["PrincipalComponents", "pca"]


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
