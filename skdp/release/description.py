"""Statistics of every column of a release, with their intervals: see `Synopsis.describe`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._validation import FloatArray
from ..domain import Categorical, Domain
from ..domain.query import Query
from .grouping import Groups, view_of
from .model import Release
from .quantiles import quantiles
from .statistics import Statistics

_QUANTILES = {"25%": 0.25, "50%": 0.5, "75%": 0.75}
_STATISTICS = ["count", "unique", "top", "freq", "mean", "std", *_QUANTILES, "lower", "upper"]


class ColumnCounts:
    """Expected counts of the codes of one column, and margins of error of sums of them.

    Parameters
    ----------
    release : Release
    domain : Domain
    name : str
        A measured or derived column.
    level : float
        Confidence of the margins.

    Attributes
    ----------
    attribute : Numeric or Categorical
    counts : ndarray of float64, shape (size,)
    """

    def __init__(self, release: Release, domain: Domain, name: str, level: float) -> None:
        self.release, self.domain, self.name, self.level = release, domain, name, level
        self.attribute: Any = domain[name]
        self.counts = np.asarray(
            view_of(release, Groups([name], domain, by_code=True)), dtype=np.float64
        )

    @property
    def known(self) -> FloatArray:
        """Counts of the codes that are values."""
        return self.counts[: self.attribute.n_values]

    def margins(self, weights: FloatArray) -> FloatArray:
        """Half widths of the intervals of weighted counts, one for each row of weights.

        NaN where the release has no intervals.
        """
        structure = self.domain.structure
        axis = self.domain.index(structure.base_of(self.name))
        asked = [Query(({axis: structure.lifted(self.name, row)},)) for row in weights]
        try:
            # With that of all records: the law of several is found quickly.
            found = self.release.reach([*asked, Query(({},))], self.level)
        except ValueError:
            return np.full(len(weights), np.nan)
        return np.maximum(found.below, found.above)[: len(asked)]

    def margin_of(self, codes: Any) -> float:
        """Half width of the interval of the count of some codes."""
        weights = np.zeros((1, self.attribute.size))
        weights[0, codes] = 1.0
        return float(self.margins(weights)[0])


def describe(asked: Statistics) -> pd.DataFrame:
    """Statistics of all columns; see `Synopsis.describe`."""
    domain = asked.domain
    rows = {name: _of_column(asked, name) for name in domain.known}
    frame = pd.DataFrame.from_dict(rows, orient="index", dtype=object)
    return frame[[each for each in _STATISTICS if each in frame]]


def _of_column(asked: Statistics, name: str) -> dict[str, Any]:
    """What `describe` says of a column."""
    attribute, domain = asked.domain[name], asked.domain
    structure = domain.structure
    axis, n = domain.index(structure.base_of(name)), attribute.n_values

    def number(codes: Any) -> Any:
        weights = np.zeros(attribute.size)
        weights[codes] = 1.0
        return asked.counted([Query(({axis: structure.lifted(name, weights)},))])[0]

    row = {"count": number(slice(n))}
    if isinstance(attribute, Categorical):
        counts = view_of(asked.release, Groups([name], domain, by_code=True))
        top = int(np.argmax(counts[:n]))
        return row | {"unique": n, "top": attribute.categories[top], "freq": number(top)}
    ends = attribute.shown(np.array([attribute.lower, attribute.upper])).tolist()
    row |= dict(zip(("lower", "upper"), ends, strict=True))
    if float(row["count"]) > 0:
        for statistic in ("mean", "std") if attribute.summable else ("mean",):
            [row[statistic]] = asked.moments(statistic, [name], [None])
        values = quantiles(asked, name, list(_QUANTILES.values()), None)
        row |= dict(zip(_QUANTILES, values, strict=True))
    return row
