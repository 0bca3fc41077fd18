"""Filling: a column of pandas with drawn values in its gaps."""

from __future__ import annotations

import datetime

import pandas as pd

from .._types import BoolArray

__all__ = ["fill_series"]


def fill_series(values: pd.Series, drawn: pd.Series, gap: BoolArray) -> pd.Series:
    """A column with drawn values in its gaps; of its own type if that can hold them.

    Parameters
    ----------
    values, drawn : Series of equal length
        Rows are matched by position.
    gap : ndarray of bool
    """
    fresh = drawn[gap]
    if pd.api.types.is_datetime64_any_dtype(drawn.dtype):
        fresh = _like_dates(values, fresh)
    if isinstance(drawn.dtype, pd.CategoricalDtype):
        fresh = fresh.astype(object)
    if isinstance(values.dtype, pd.CategoricalDtype):
        absent = [each for each in fresh.unique() if each not in values.cat.categories]
        values = values.cat.add_categories(absent)
    filled = values.copy()
    try:
        filled[gap] = fresh.array if fresh.dtype == values.dtype else fresh.to_numpy()
    except (TypeError, ValueError):
        filled = values.astype(object)
        filled[gap] = fresh.astype(object).to_numpy()
    return filled


def _like_dates(values: pd.Series, drawn: pd.Series) -> pd.Series:
    """Drawn times as text where a column holds them as text, and as dates where it holds dates."""
    if not (pd.api.types.is_string_dtype(values.dtype) or values.dtype == object):
        return drawn
    kinds = {type(value) for value in values.dropna()}
    if kinds == {datetime.date}:
        return drawn.dt.date.astype(object)
    # As text it is a day where all of them are.
    return drawn.astype(str) if str in kinds or values.dtype != object else drawn
