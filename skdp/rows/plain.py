"""Plain columns: every cell of a table as a float64 number, or as a text, whatever the table is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .columns import Column, object_array
from .frames import as_frame

__all__ = ["as_numbers", "as_texts"]


def as_numbers(X: Any) -> Any:
    """All cells as float64, each read by itself: NaN where there is no number.

    Foreign steps in front of a private one are known to be silent on such columns only: on
    columns of objects, nullable columns and those of Arrow, a single value can make them raise. So
    start with ``FunctionTransformer(as_numbers)``; `skdp.inspection.assert_private` asks for it.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_columns)
        Text is read as Python's ``float`` reads it.

    Returns
    -------
    ndarray of float64, or pandas DataFrame where columns have names

    Raises
    ------
    TypeError, ValueError
        For what is no dense table. No value is looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> as_numbers(pd.DataFrame({"age": [31, "40", "n/a"]}))["age"].tolist()
    [31.0, 40.0, nan]
    """
    return _plain(X, Column.numbers)


def as_texts(X: Any) -> Any:
    """All cells as Python text, each read by itself: empty where there is no text.

    Encoders of scikit-learn with declared categories of text are known to be silent on such columns
    only: a single list in a cell makes them raise. See `as_numbers`.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_columns)
        Numbers are not text.

    Returns
    -------
    ndarray of objects, or pandas DataFrame where columns have names

    Raises
    ------
    TypeError, ValueError
        For what is no dense table. No value is looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> as_texts(pd.DataFrame({"sex": ["f", None, ["m"], 3]}))["sex"].tolist()
    ['f', '', '', '']
    """
    return _plain(X, _texts)


def _plain(X: Any, read: Callable[[Column], NDArray[Any]]) -> Any:
    # Privacy. These run before anything is charged, so no exception, type or shape may depend on a
    # cell: the types of the result are the same whatever came in, and every cell depends on itself.
    rows = as_frame(X)
    columns = {name: read(rows.column(name)) for name in rows.names}
    if rows.n_unnamed:
        return np.column_stack(list(columns.values()))
    # With its type, because pandas would infer one from the values.
    return pd.DataFrame(
        {key: pd.Series(cells, dtype=cells.dtype) for key, cells in columns.items()}
    )


def _texts(column: Column) -> NDArray[Any]:
    if column.kind == "string":
        codes, uniques = column.factorize()
        return object_array([*map(_text, uniques), ""])[codes]
    if column.kind == "object":
        return object_array([_text(value) for value in column.objects()])
    return object_array([""] * len(column))


def _text(value: Any) -> str:
    # The method of str itself: what a subclass does when it is read would depend on a value.
    return str.__str__(value) if issubclass(type(value), str) else ""
