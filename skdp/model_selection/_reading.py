"""What metrics read: labels by a public list, and scores as columns of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._types import FloatArray
from ..rows import Column, as_column, as_frame, as_labels
from ._guard import Labels

__all__ = ["as_numbers", "label_positions", "read_labels", "score_columns"]


def label_positions(labels: Any) -> dict[Any, int]:
    """Position of each declared label; of two labels the second is the positive one."""
    names = pd.Index(list(labels)).tolist()
    positions = {label: place for place, label in enumerate(names)}
    if len(names) < 2 or len(positions) < len(names):
        raise ValueError(f"labels must be a list of at least two different labels, got {names!r}.")
    return positions


def read_labels(y_true: Any, n_rows: int) -> Labels:
    """True labels or numbers, as many as predictions."""
    truth = as_labels(y_true, "y_true")
    if len(truth) != n_rows:
        raise ValueError(f"y_true has {len(truth)} rows, but {n_rows} were predicted.")
    return truth


def score_columns(scores: Any, n_labels: int, name: str) -> tuple[int, list[Column]]:
    """Number of rows, and columns of scores: one for two labels, one for each of more.

    No value is looked at; `as_numbers` reads them.
    """
    shape: tuple[int, ...] = getattr(scores, "shape", ())
    if not hasattr(scores, "shape") and n_labels > 2:
        raise TypeError(
            f"{name} must be an array or a frame with {n_labels} columns, got "
            f"{type(scores).__name__}: call numpy.asarray on it."
        )
    if len(shape) == 2 and shape[1] > 1:
        frame = as_frame(scores)
        columns = [frame.column(column) for column in frame.names]
        n_rows = frame.n_rows
    else:
        columns = [as_column(scores, name)]
        n_rows = len(columns[0])
    wanted = (1, 2) if n_labels == 2 else (n_labels,)
    if len(columns) not in wanted:
        raise ValueError(
            f"{name} must have one column for each of the {n_labels} labels, in their order, got "
            f"{len(columns)}."
            + (" Of two labels the column of the second is enough." if n_labels == 2 else "")
        )
    return n_rows, columns[-1:] if n_labels == 2 else columns


def as_numbers(columns: list[Column]) -> FloatArray:
    """Columns side by side, NaN where there is no number; never raises."""
    return np.column_stack([column.numbers() for column in columns])
