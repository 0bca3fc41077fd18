"""Pairs of neighbouring inputs: their records, and the check that one differs."""

from __future__ import annotations

import numbers
from collections import Counter
from typing import Any

import numpy as np

from ..tables import as_frame, is_missing


def check_neighbours(dataset: Any, neighbour: Any, sensitivity: float | None) -> None:
    """Refuse inputs that are not neighbours; None refuses nothing.

    Raises
    ------
    ValueError
        If they differ in more than one record, or by more than `sensitivity` in an answer.
    TypeError
        If their records cannot be identified.
    """
    if sensitivity is None:
        return
    if _are_answers(dataset, neighbour):
        _check_answers(dataset, neighbour, sensitivity)
    else:
        _check_records(dataset, neighbour)


def _are_answers(*sides: Any) -> bool:
    """Whether these are numbers, or vectors of equally many."""
    sizes = set()
    for data in sides:
        values = [data] if isinstance(data, numbers.Real) else data
        values = values.tolist() if isinstance(values, np.ndarray) and values.ndim else values
        if not isinstance(values, list | tuple):
            return False
        if not all(isinstance(value, numbers.Real) for value in values):
            return False
        sizes.add(len(values))
    return len(sizes) == 1


def _check_answers(dataset: Any, neighbour: Any, sensitivity: float) -> None:
    here, there = (np.asarray(data, dtype=float) for data in (dataset, neighbour))
    change = float(np.max(np.abs(here - there), initial=0.0))
    if not change <= sensitivity * (1 + 1e-12):
        raise ValueError(
            "The inputs are not neighbours: read as query answers, one of them moves by "
            f"{change:g}, more than sensitivity={sensitivity:g}. Pass the true sensitivity; if "
            "they are records, a neighbour has one record more or one less, not a changed one."
        )
    if change == 0:
        raise ValueError("The two inputs are equal: nothing can be learned from them.")


def _check_records(dataset: Any, neighbour: Any) -> None:
    here, there = (Counter(records(data)) for data in (dataset, neighbour))
    added = sum((there - here).values())
    removed = sum((here - there).values())
    if added + removed == 0:
        raise ValueError("The two data sets hold the same records: nothing can be learned.")
    if added + removed > 1:
        raise ValueError(
            f"The data sets are not neighbours: {removed} records of the dataset are missing in "
            f"the neighbour and {added} are new. Add or remove exactly one record; a changed "
            "record counts as one removed and one added."
        )


def records(data: Any) -> list[Any]:
    """Records of a data set as hashables, in order.

    Raises
    ------
    TypeError
        If it is not a frame, an array, a list, or a pair of X and y.
    """
    if is_labelled(data):
        first, second = (records(part) for part in data)
        if len(first) != len(second):
            raise ValueError(f"X has {len(first)} records and y has {len(second)}.")
        return list(zip(first, second, strict=True))
    if isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.ndim):
        return [_plain(row) for row in data]
    for name in ("to_list", "to_pylist"):  # a column: pandas and Polars, PyArrow
        if hasattr(data, name) and not hasattr(data, "columns"):
            return [_plain(value) for value in getattr(data, name)()]
    try:
        frame = as_frame(data)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"It is not known what the records of a {type(data).__name__} are, or whether the "
            "inputs are neighbours. Pass a frame, an array or a list of records, or "
            "sensitivity=None to vouch for them yourself."
        ) from error
    columns = []
    for name in frame.names:
        columns.append([_plain(value) for value in frame.column(name).objects()])
    return list(zip(*columns, strict=True))


def is_labelled(data: Any) -> bool:
    """Whether this is a pair of X and y rather than two records."""
    return (
        isinstance(data, tuple)
        and len(data) == 2
        and all(hasattr(part, "__len__") and not isinstance(part, str | tuple) for part in data)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tuple(_plain(part) for part in value.tolist())
    if isinstance(value, list | tuple):
        return tuple(_plain(part) for part in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _plain(part)) for key, part in value.items()))
    # A missing value may differ from itself; in a record it is one value.
    return None if is_missing(value) else value
