"""Statistics of every column of a release, with margins of error: see `Synopsis.describe`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from .._validation import FloatArray
from ..domain import Categorical, Domain
from ..domain.query import Query
from .grouping import Groups, view_of
from .model import Release
from .quantiles import quantiles
from .result import QueryResult, rounded_to
from .statistics import Confidence, Statistics

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
    guarantee : str
        What the margins cover, or why there are none.
    """

    def __init__(self, release: Release, domain: Domain, name: str, level: float) -> None:
        self.release, self.domain, self.name, self.level = release, domain, name, level
        self.attribute: Any = domain[name]
        self.counts = np.asarray(
            view_of(release, Groups([name], domain, by_code=True)), dtype=np.float64
        )
        self.guarantee = ""

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
        except ValueError as error:
            self.guarantee = str(error)
            return np.full(len(weights), np.nan)
        self.guarantee = found.guarantee
        return np.maximum(found.below, found.above)[: len(asked)]

    def margin_of(self, codes: Any) -> float:
        """Half width of the interval of the count of some codes."""
        weights = np.zeros((1, self.attribute.size))
        weights[0, codes] = 1.0
        return float(self.margins(weights)[0])


def describe(release: Release, domain: Domain, level: float, numbers: bool = False) -> pd.DataFrame:
    """Statistics of all columns; see `Synopsis.describe`."""
    found: dict[str, dict[str, Any]] = {}
    guarantee = ""
    for name in domain.known:
        counted = ColumnCounts(release, domain, name, level)
        margin = counted.margin_of(slice(counted.attribute.n_values))
        of = _of_categories if isinstance(counted.attribute, Categorical) else _of_numbers
        row = {"count": counted.known.sum(), "count_margin": margin}
        found[name] = row | of(counted, not np.isnan(margin))
        guarantee = guarantee or counted.guarantee
    rows = list(found.values())
    has = any(not np.isnan(each["count_margin"]) for each in rows)
    frame = pd.DataFrame(rows, index=list(found))
    kept = [each for each in _STATISTICS if each in frame]
    if numbers:
        names = [name for each in kept for name in (each, f"{each}_margin")]
        frame = frame[[name for name in names if name in frame]]
    else:
        texts = [[as_text(row, each) for each in kept] for row in rows]
        frame = pd.DataFrame(texts, index=list(found), columns=kept)
    frame.attrs = {
        "level": level,
        "guarantee": guarantee + (_FOLLOWS.format(release.covers) if has else ""),
    }
    return frame


def as_text(statistics: Mapping[str, Any], name: str) -> str:
    """A statistic as text, with its margin of error where it has one; "" where there is none."""
    value, margin = statistics.get(name), statistics.get(f"{name}_margin")
    if isinstance(value, pd.Timestamp):
        days = "" if margin is None or pd.isna(margin) else f" \u00b1 {margin.ceil('D').days} days"
        return f"{value:%Y-%m-%d}{days}"
    if not isinstance(value, float | np.floating | np.integer | int):
        return "" if value is None or value is pd.NaT else str(value)
    # What is printed of a number of records is possible; the number itself is linear.
    value = max(float(value), 0.0) if name in ("count", "freq") else float(value)
    if np.isnan(value):
        return ""
    if margin is None or pd.isna(margin):
        return rounded_to(value, np.nan)
    return f"{rounded_to(value, margin)} \u00b1 {rounded_to(margin, margin)}"


_FOLLOWS = (
    " Margins of means and standard deviations are simulated from a covariance that covers {}. "
    "Those of means and quantiles allow numbers anywhere in their bins."
)


def _of_categories(counted: ColumnCounts, _: bool) -> dict[str, Any]:
    top = int(np.argmax(counted.known))
    return {
        "unique": counted.attribute.n_values,
        "top": counted.attribute.categories[top],
        "freq": counted.known[top],
        "freq_margin": counted.margin_of(top),
    }


def _of_numbers(counted: ColumnCounts, has_margins: bool) -> dict[str, Any]:
    """Mean, standard deviation and quantiles."""
    attribute, name = counted.attribute, counted.name
    ends = attribute.shown(np.array([attribute.lower, attribute.upper])).tolist()
    result: dict[str, Any] = dict(zip(("lower", "upper"), ends, strict=True))
    if counted.known.sum() <= 0:
        return result
    confidence = Confidence(counted.level) if has_margins else None
    asked = Statistics(counted.release, counted.domain, confidence)
    values = quantiles(asked, name, list(_QUANTILES.values()), None)
    found = dict(zip(_QUANTILES, values, strict=True))
    for statistic in ("mean", "std") if attribute.summable else ("mean",):
        [found[statistic]] = asked.moments(statistic, [name], [None])
    for row, each in found.items():
        held = isinstance(each, QueryResult)
        # How far the further end of the interval is.
        margin = max(each.upper - each.value, each.value - each.lower) if held else np.nan
        result |= {row: each.value if held else each, f"{row}_margin": margin}
    return result
