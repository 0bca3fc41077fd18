"""Dates and times of a column in memory, as numbers of a clock.

What one value is never depends on another, and no value raises: text that is no date, and a date
that does not exist, are missing.

Columns with a type of dates are read as the integers that they store. As Python objects, some of
their values raise an error that quotes them, and Polars even prints one: the years after 9999.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._types import BoolArray, FloatArray, IntArray
from ..domain.clock import TICKS, Clock, micros_of, rescaled

__all__ = [
    "Moments",
    "arrow_moments",
    "arrow_ticks",
    "as_numbers",
    "numpy_moments",
    "numpy_ticks",
    "pandas_moments",
    "pandas_ticks",
    "polars_moments",
    "polars_ticks",
    "single_moments",
]

Moments = tuple[IntArray, BoolArray]


def single_moments(values: Sequence[Any], clock: Clock) -> Moments:
    """Moments of Python objects and text, each by itself, and which are missing."""
    micros = np.zeros(len(values), dtype=np.int64)
    missing = np.ones(len(values), dtype=bool)
    for place, value in enumerate(values):
        found = clock.moment(value)
        if found is not None:
            micros[place] = found
            missing[place] = False
    return micros, missing


def as_numbers(moments: Moments, clock: Clock) -> FloatArray:
    """Units of a clock as float64, NaN where missing."""
    micros, missing = moments
    numbers = clock.numbers(micros).astype(np.float64)
    numbers[missing] = np.nan
    return numbers


def numpy_moments(data: NDArray[Any]) -> Moments:
    """Moments of an array of datetime64, which may be masked."""
    micros, missing = micros_of(np.asarray(data))
    return micros, missing | np.ma.getmaskarray(data)


def pandas_moments(series: pd.Series) -> Moments | None:
    """Moments of a column of pandas with a type of dates; None for other types."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        found = pandas_moments(pd.Series(dtype.categories))
        if found is None:
            return None
        codes = series.cat.codes.to_numpy()
        return np.append(found[0], 0)[codes], np.append(found[1], True)[codes]
    if isinstance(dtype, pd.PeriodDtype):
        return micros_of(series.dt.start_time.to_numpy())
    if isinstance(dtype, pd.DatetimeTZDtype):
        return micros_of(series.dt.tz_convert(None).to_numpy())
    if isinstance(dtype, pd.ArrowDtype):
        array: Any = series.array
        return arrow_moments(array.__arrow_array__())
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return micros_of(series.to_numpy())
    return None


def polars_moments(series: Any) -> Moments | None:
    """Moments of a column of Polars with a type of dates; None for other types."""
    dtype = nw.from_native(series, series_only=True).dtype
    if dtype == nw.Date:
        length = TICKS["D"]
    elif isinstance(dtype, nw.Datetime):
        length = TICKS[dtype.time_unit]
    else:
        return None
    missing = series.is_null().to_numpy()
    return rescaled(series.to_physical().fill_null(0).to_numpy().astype(np.int64), length), missing


def arrow_moments(data: Any) -> Moments | None:
    """Moments of a column of Arrow with a type of dates; None for other types."""
    data = _without_dictionary(data)
    name = str(data.type)
    if name.startswith("date32"):
        ticks, length = data.cast("int32").cast("int64"), TICKS["D"]
    elif name.startswith("date64"):
        ticks, length = data.cast("int64"), TICKS["ms"]
    elif name.startswith("timestamp"):
        ticks, length = data.cast("int64"), TICKS[data.type.unit]
    else:
        return None
    missing = np.asarray(data.is_null())
    return rescaled(np.asarray(ticks.fill_null(0)), length), missing


def numpy_ticks(data: NDArray[Any]) -> Moments:
    """Integers that are equal for equal values, of an array of dates or durations."""
    array = np.asarray(data)
    return array.astype(np.int64), np.isnat(array) | np.ma.getmaskarray(data)


def pandas_ticks(series: pd.Series) -> Moments:
    """The same of a column of pandas."""
    if isinstance(series.dtype, pd.ArrowDtype):
        array: Any = series.array
        return arrow_ticks(array.__arrow_array__())
    if isinstance(series.dtype, pd.CategoricalDtype):
        ticks = series.cat.codes.to_numpy().astype(np.int64)
        return ticks, ticks < 0
    stored: Any = series.array
    return stored.asi8, series.isna().to_numpy()


def polars_ticks(series: Any) -> Moments:
    """The same of a column of Polars."""
    ticks = series.to_physical().fill_null(0).to_numpy()
    return ticks.astype(np.int64), series.is_null().to_numpy()


def arrow_ticks(data: Any) -> Moments:
    """The same of a column of Arrow."""
    data = _without_dictionary(data)
    ticks = data.cast(f"int{data.type.bit_width}").cast("int64")
    return np.asarray(ticks.fill_null(0)), np.asarray(data.is_null())


def _without_dictionary(data: Any) -> Any:
    """A column of Arrow as one of the values of its dictionary."""
    return data.cast(data.type.value_type) if str(data.type).startswith("dictionary") else data
