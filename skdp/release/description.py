"""Statistics of every column of a release, with margins of error: see `Synopsis.describe`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._validation import FloatArray
from ..domain import Categorical, Domain, Numeric
from .estimates import Confidence, Estimates, means_of, selected, sums_and_counts
from .grouping import Groups, view_of
from .model import Model
from .ranks import quantiles
from .result import QueryResult, rounded_to
from .statistics import mean_results, standard_deviation

_QUANTILES = {"25%": 0.25, "50%": 0.5, "75%": 0.75}
_STATISTICS = ["count", "unique", "top", "freq", "mean", "std", *_QUANTILES, "lower", "upper"]


class ColumnCounts:
    """Expected counts of the codes of one column, and margins of error of sums of them.

    Parameters
    ----------
    model : Model
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

    def __init__(self, model: Model, domain: Domain, name: str, level: float) -> None:
        self.model, self.domain, self.name, self.level = model, domain, name, level
        self.attribute: Any = domain[name]
        self.counts = np.asarray(view_of(model, Groups([name], domain)), dtype=np.float64)
        self.guarantee = ""

    @property
    def has_margins(self) -> bool:
        """Whether the release has intervals."""
        return not np.isnan(self.margins(np.ones((1, self.attribute.size)))).any()

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
        lifted = np.stack([structure.lifted(self.name, row) for row in weights])
        try:
            half, self.guarantee = self._errors(axis, lifted)
        except ValueError as error:
            self.guarantee = str(error)
            return np.full(len(weights), np.nan)
        return half

    def margin_of(self, code: int) -> float:
        """Half width of the interval of the count of one code."""
        weights = np.zeros((1, self.attribute.size))
        weights[0, code] = 1.0
        return float(self.margins(weights)[0])

    def _errors(self, axis: int, weights: FloatArray) -> tuple[FloatArray, str]:
        if hasattr(self.model, "column_errors"):
            return self.model.column_errors(axis, weights, self.level)
        # Models that answer few counts at once: cubes and range trees.
        each = [self.model.error({axis: row}, self.level) for row in weights]
        return np.array([max(one.below, one.above) for one in each]), each[0].guarantee


def describe(model: Model, domain: Domain, level: float, numbers: bool = False) -> pd.DataFrame:
    """Statistics of all columns; see `Synopsis.describe`."""
    found: dict[str, dict[str, Any]] = {}
    guarantee = ""
    for name in domain.known:
        counted = ColumnCounts(model, domain, name, level)
        of = _of_categories if isinstance(counted.attribute, Categorical) else _of_numbers
        found[name] = _counted(counted) | of(counted)
        guarantee = guarantee or counted.guarantee
    has = any(not np.isnan(each["count_margin"]) for each in found.values())
    kept = [each for each in _STATISTICS if any(each in row for row in found.values())]
    if numbers:
        known = [name for each in kept for name in (each, f"{each}_margin")]
        known = [name for name in known if any(name in row for row in found.values())]
        cells = {name: [row.get(name, np.nan) for row in found.values()] for name in known}
    else:
        cells = {
            each: [told(row.get(each), row.get(f"{each}_margin")) for row in found.values()]
            for each in kept
        }
    frame = pd.DataFrame(cells, index=list(found))
    frame.attrs = {"level": level, "guarantee": guarantee + _FOLLOWS * bool(has)}
    return frame


def told(value: Any, margin: Any = None) -> str:
    """A statistic as text, with its margin of error where it has one; "" where there is none."""
    if isinstance(value, pd.Timestamp):
        days = "" if margin is None or pd.isna(margin) else f" \u00b1 {margin.ceil('D').days} days"
        return f"{value:%Y-%m-%d}{days}"
    if not isinstance(value, float | np.floating | np.integer | int):
        return "" if value is None or value is pd.NaT else str(value)
    value = float(value)
    if np.isnan(value):
        return ""
    if margin is None or pd.isna(margin):
        return rounded_to(value, np.nan)
    return f"{rounded_to(value, margin)} \u00b1 {rounded_to(margin, margin)}"


_FOLLOWS = (
    " Margins of means and quantiles cover any spread of the records inside bins, those of "
    "standard deviations any spread about the means of the bins."
)


def _counted(counted: ColumnCounts) -> dict[str, Any]:
    weights = np.zeros((1, counted.attribute.size))
    weights[:, : counted.attribute.n_values] = 1.0
    return {"count": counted.known.sum(), "count_margin": counted.margins(weights)[0]}


def _of_categories(counted: ColumnCounts) -> dict[str, Any]:
    top = int(np.argmax(counted.known))
    margin = counted.margin_of(top)
    return {
        "unique": counted.attribute.n_values,
        "top": counted.attribute.categories[top],
        "freq": counted.known[top],
        "freq_margin": margin,
    }


def _of_numbers(counted: ColumnCounts) -> dict[str, Any]:
    """Mean, standard deviation and quantiles."""
    attribute: Numeric = counted.attribute
    shown = _shown(attribute)
    result: dict[str, Any] = {"lower": shown(attribute.lower), "upper": shown(attribute.upper)}
    if counted.known.sum() <= 0:
        return result
    confidence = Confidence(counted.level, quick=True) if counted.has_margins else None
    model, domain, name = counted.model, counted.domain, counted.name
    ranked = quantiles(model, domain, name, None, list(_QUANTILES.values()), confidence)
    for row, found in zip(_QUANTILES, ranked, strict=True):
        result |= _with_margin(row, found)
    result |= _with_margin("mean", _mean(counted, confidence))
    if attribute.summable:
        case = selected(None, domain, [name])
        std = standard_deviation(model, domain, case, confidence)
        result |= _with_margin("std", std.results()[0] if isinstance(std, Estimates) else std)
    return result


def _mean(counted: ColumnCounts, confidence: Confidence | None) -> Any:
    model, domain, name = counted.model, counted.domain, counted.name
    if confidence is not None:
        return mean_results(model, domain, name, [None], confidence)[0]
    means = means_of(domain, name, *sums_and_counts(model, domain, name, [None]))
    return _shown(counted.attribute)(means[0])


def _with_margin(row: str, found: Any) -> dict[str, Any]:
    """A statistic and its margin: how far the further end of the interval is."""
    if not isinstance(found, QueryResult):
        return {row: found, f"{row}_margin": np.nan}
    margin = max(found.upper - found.value, found.value - found.lower)
    return {row: found.value, f"{row}_margin": margin}


def _shown(attribute: Numeric) -> Any:
    """From a number of an attribute to what stands in a table."""
    if attribute.summable:
        return float
    return lambda number: attribute.shown(np.array([number]))[0]
