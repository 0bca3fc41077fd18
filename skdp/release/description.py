"""Statistics of every column of a release, with margins of error: see `Synopsis.describe`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._types import FloatArray
from ..domain import Categorical, Domain, Numeric
from ..domain.contents import Points
from ..domain.regions import everything
from .distribution import values_below
from .grouping import Groups, view_of
from .model import Model

__all__ = ["ColumnCounts", "describe"]

_QUANTILES = {"25%": 0.25, "50%": 0.5, "75%": 0.75}
_ROWS = ["count", "unique", "top", "freq", "mean", "std", "min", *_QUANTILES, "max"]
# Cumulative counts of a column whose margins are computed; between them they are interpolated.
_CUTS = 32


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

    def _errors(self, axis: int, weights: FloatArray) -> tuple[FloatArray, str]:
        if hasattr(self.model, "column_errors"):
            return self.model.column_errors(axis, weights, self.level)
        # A model of somebody else.
        each = [self.model.error({axis: row}, self.level) for row in weights]
        return np.array([max(one.below, one.above) for one in each]), each[0].guarantee


def describe(model: Model, domain: Domain, level: float) -> pd.DataFrame:
    """Statistics of all columns; see `Synopsis.describe`."""
    columns: dict[str, dict[str, Any]] = {}
    guarantee = ""
    for name in domain.known:
        counted = ColumnCounts(model, domain, name, level)
        of = _of_categories if isinstance(counted.attribute, Categorical) else _of_numbers
        columns[name] = _counted(counted) | of(counted)
        guarantee = guarantee or counted.guarantee
    rows = [row for each in _ROWS for row in (each, f"{each}_margin")]
    held = [row for row in rows if any(row in column for column in columns.values())]
    frame = pd.DataFrame(
        {name: [column.get(row, np.nan) for row in held] for name, column in columns.items()},
        index=held,
    )
    has = frame.loc["count_margin"].notna().any() if len(frame) else False
    frame.attrs = {"level": level, "guarantee": guarantee + _FOLLOWS * bool(has)}
    return frame


_FOLLOWS = (
    " Margins of means, standard deviations and quantiles follow from those of cumulative counts, "
    "as if all of these were off by their margin at once, and cover any spread of the records "
    "inside bins."
)


def _counted(counted: ColumnCounts) -> dict[str, Any]:
    weights = np.zeros((1, counted.attribute.size))
    weights[:, : counted.attribute.n_values] = 1.0
    return {"count": counted.known.sum(), "count_margin": counted.margins(weights)[0]}


def _of_categories(counted: ColumnCounts) -> dict[str, Any]:
    top = int(np.argmax(counted.known))
    margin = counted.margins(np.eye(counted.attribute.size)[[top]])[0]
    return {
        "unique": counted.attribute.n_values,
        "top": counted.attribute.categories[top],
        "freq": counted.known[top],
        "freq_margin": margin,
    }


def _of_numbers(counted: ColumnCounts) -> dict[str, Any]:
    """Mean, standard deviation and quantiles of the positive counts.

    A sum of f(x) over the records is made of counts of tails: each step of f from one value to the
    next, times the records beyond it. An error of these counts moves the sum by no more than the
    sum of steps times margins. Where a record lies in its bin moves it too.
    """
    attribute: Numeric = counted.attribute
    shown = _shown(attribute)
    result: dict[str, Any] = {"min": shown(attribute.lower), "max": shown(attribute.upper)}
    positive = np.maximum(counted.known, 0.0)
    total = positive.sum()
    if total <= 0:
        return result
    values, spread, half = _values(counted.name, attribute)
    mean = float(values @ positive / total)
    variance = float(((values - mean) ** 2 + spread) @ positive / total)
    order = np.argsort(values, kind="stable")
    steps, tails = _tail_margins(counted, order, values, mean)
    off = tails / total
    # No statistic is off by more than the declared range.
    most = float(attribute.upper) - float(attribute.lower)
    margin = min(float(steps @ off + half @ positive / total), most)
    result |= {"mean": shown(mean), "mean_margin": _width(shown, mean, margin)}
    if attribute.summable:
        moved = np.abs(np.diff((values[order] - mean) ** 2)) @ off + variance * off.max(initial=0.0)
        moved += half * (2.0 * np.abs(values - mean) + half) @ positive / total
        std = float(np.sqrt(variance))
        result |= {"std": std, "std_margin": min(moved / (2.0 * std), most) if std > 0 else moved}
    running = np.cumsum(positive[order])[:-1] / total
    for row, q in _QUANTILES.items():
        reach = float(np.interp(q, running, off)) if len(off) else 0.0
        # Without margins the reach is NaN, and so is the margin.
        shares = np.clip([q - np.nan_to_num(reach), q, q + np.nan_to_num(reach)], 0.0, 1.0)
        low, middle, high = values_below(attribute, positive, shares).tolist()
        margin = max(middle - _ends(attribute, low)[0], _ends(attribute, high)[1] - middle)
        margin += 0.0 * reach
        result |= {row: shown(middle), f"{row}_margin": _width(shown, middle, margin)}
    return result


def _tail_margins(
    counted: ColumnCounts, order: Any, values: FloatArray, mean: float
) -> tuple[FloatArray, FloatArray]:
    """Steps between the values, and the margin of the number of records beyond each.

    Beyond means below for steps below the mean, else above.
    """
    steps = np.diff(values[order])
    if not len(steps):
        return steps, steps
    places = np.unique(np.linspace(0, len(steps) - 1, min(_CUTS, len(steps))).astype(int))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    below = rank[None, :] <= places[:, None]
    below[values[order][places] >= mean] ^= True
    weights = np.zeros((len(places), counted.attribute.size))
    weights[:, : len(values)] = below
    return steps, np.interp(np.arange(len(steps)), places, counted.margins(weights))


def _values(name: str, attribute: Numeric) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of the numbers of each code, their variance inside the bin, and its reach."""
    values = everything(name, attribute).without_missing().moment()[: attribute.n_values]
    spread = np.zeros(len(values))
    width = np.diff(np.asarray(attribute.edges, dtype=np.float64))
    held = attribute.contents
    step = held.grid.step() if isinstance(held, Points) else 0.0
    bins = attribute.bins
    spread[:bins] = np.maximum(width**2 - step**2, 0.0) / 12.0
    low, high = held.span(np.arange(bins))
    half = np.zeros(len(values))
    half[:bins] = np.maximum(high - values[:bins], values[:bins] - low)
    return values, spread, half


def _ends(attribute: Numeric, number: float) -> tuple[float, float]:
    """Smallest and largest number of the bin of a number; a special value is alone."""
    if number in attribute.special:
        return number, number
    held = attribute.contents
    code = held.bins.encode(np.array([number], dtype=np.float64)).astype(np.int64)
    low, high = held.span(code)
    return float(low[0]), float(high[0])


def _shown(attribute: Numeric) -> Any:
    """From a number of an attribute to what stands in a table."""
    if attribute.summable:
        return float
    return lambda number: attribute.shown(np.array([number]))[0]


def _width(shown: Any, middle: float, margin: float) -> Any:
    """A margin in the units of the column."""
    if np.isnan(margin):
        return np.nan
    return shown(middle + margin) - shown(middle)
