"""Values up to which shares of the counts of a column lie, and values as positions in bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import FloatArray, as_level, running_sums, snapped
from ..domain import Categorical, Numeric
from ..domain.bins import Spread


def as_shares(q: Any) -> tuple[list[float], bool]:
    """Shares as a list, and whether there was only one without a list.

    Raises
    ------
    TypeError, ValueError
        If one is no number or lies outside of (0, 1).
    """
    single = np.ndim(q) == 0
    return [as_level(each, "q") for each in ([q] if single else list(q))], single


def categories_below(attribute: Categorical, counts: FloatArray, shares: FloatArray) -> np.ndarray:
    """Categories up to which the shares of the counts lie, in their declared order."""
    running = running_sums(counts)
    bins = np.searchsorted(running[1:], shares * running[-1], side="left")
    return np.array(attribute.categories, dtype=object)[bins.clip(0, len(running) - 2)]


def values_below(attribute: Numeric, counts: FloatArray, shares: FloatArray) -> FloatArray:
    """Values up to which the shares of the counts lie.

    Parameters
    ----------
    attribute : Numeric
    counts : ndarray of float64, shape (n_values,)
        Not negative, with a positive sum.
    shares : ndarray of float64, shape (m,)
        In [0, 1].
    """
    running, special, weights = _split(attribute, counts)
    target = shares * (running[-1] + weights.sum())
    held = attribute.contents
    if not len(special):
        return held.values_at(*_place(running, target))
    # What lies before each special value, and with it.
    target = np.maximum(target, np.nextafter(0.0, 1.0))
    position = position_of(attribute, special, closed=False)
    before = np.interp(position, np.arange(len(running)), running)
    before += running_sums(weights)[:-1]
    passed = np.searchsorted(before, target, side="left")
    last = np.maximum(passed - 1, 0)
    at_special = (passed > 0) & (target <= before[last] + weights[last])
    rest = np.clip(target - running_sums(weights)[passed], 0.0, running[-1])
    return np.where(at_special, special[last], held.values_at(*_place(running, rest)))


def _split(attribute: Numeric, counts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Running sums of the bins; special values in ascending order and their counts."""
    special = np.array(attribute.special, dtype=np.float64)
    order = np.argsort(special)
    weights = counts[attribute.bins : attribute.n_values][order]
    return running_sums(counts[: attribute.bins]), special[order], weights


def _place(running: FloatArray, target: FloatArray) -> tuple[np.ndarray, FloatArray]:
    """The first bin that reaches each target, and how far into it."""
    bins = np.searchsorted(running[1:], target, side="left").clip(0, len(running) - 2)
    height = running[bins + 1] - running[bins]
    inside = np.divide(target - running[bins], height, out=np.zeros_like(target), where=height > 0)
    return bins, np.clip(inside, 0.0, 1.0)


def position_of(attribute: Numeric, values: np.ndarray, *, closed: bool) -> np.ndarray:
    """Values as positions in bins, clipped; ``closed`` counts an integer itself as passed."""
    if np.isnan(values).any():
        raise ValueError("NaN cannot be an end of a range; use an infinity for an open end.")
    if attribute.special or attribute.uneven or attribute.decimals is not None:
        inside = np.clip(values, attribute.lower, attribute.upper)
        inside = np.where(values > attribute.upper, np.inf, inside)
        held = attribute.contents
        if isinstance(held, Spread):
            return held.positions(np.minimum(inside, attribute.upper))
        return held.positions(np.where(values < attribute.lower, -np.inf, inside), closed=closed)
    if attribute.integer:
        values = np.floor(values) + 1 if closed else np.ceil(values)
    return snapped(np.interp(values, attribute.edges, np.arange(attribute.n_values + 1)))
