"""Tables completed by drawn values: what was given stays what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._foreign import reraise_interrupts
from ..domain import Domain
from ..domain.filling import fill_series
from .casts import plain_objects
from .frames import as_array, as_frame
from .layout import Layout
from .tables import build_frame

__all__ = ["complete_table", "fill_table"]


def complete_table(
    given: Any, columns: Mapping[str, pd.Series], order: Sequence[str], like: Any = None
) -> Any:
    """A table of the library of ``given`` with more columns.

    Parameters
    ----------
    given : table
        Its columns are taken as they are, if they have names.
    columns : mapping of str to Series
        New columns, one value for each row of ``given``.
    order : sequence of str
        All columns of the result.
    like : Layout, optional
        What the new columns look like, if it is of the same library.
    """
    rows = as_frame(given)
    if rows.library == "numpy":
        own = {name: pd.Series(rows.column(name).objects()) for name in order if name in rows.names}
        kept = {name: values.infer_objects() for name, values in own.items()}
        return build_frame({name: columns.get(name, kept.get(name)) for name in order}, "numpy")
    same = isinstance(like, Layout) and like.library == rows.library
    fresh = build_frame(columns, like if same else rows.library)
    if rows.library == "pandas":
        parts = [given, fresh.set_axis(given.index)]
        return pd.concat(parts, axis=1)[list(order)]
    table = nw.from_native(given, eager_only=True)
    drawn = nw.from_native(fresh, eager_only=True)
    table = table.with_columns(*(drawn[name] for name in columns))
    return nw.to_native(table.select(*order))


def fill_table(
    given: Any,
    drawn: Mapping[str, pd.Series],
    gaps: Mapping[str, NDArray[np.bool_]],
    domain: Domain,
) -> Any:
    """A table with drawn values in its gaps, and otherwise as it is.

    Parameters
    ----------
    given : table or 2-D array
    drawn : mapping of str to Series
        A value for each row of the columns with gaps.
    gaps : mapping of str to ndarray of bool
        Which rows lack a value.
    domain : Domain
    """
    rows = as_frame(given)
    if rows.library == "numpy" and not rows.named:
        array = np.array(as_array(given))
        places = {name: place for place, name in enumerate(domain.names_for(rows.n_unnamed) or ())}
        for name, gap in gaps.items():
            array[gap, places[name]] = plain_objects(drawn[name][gap])
        return array
    if not gaps:
        return given
    fresh = Layout.like(given, rows, domain).build(drawn)
    if rows.library == "pandas":
        table = given.copy()
        for name, gap in gaps.items():
            table[name] = fill_series(given[name], fresh[name], gap)
        return table
    table, new = (nw.from_native(each, eager_only=True) for each in (given, fresh))
    columns = (_filled(table[name], new[name], gap) for name, gap in gaps.items())
    return nw.to_native(table.with_columns(*columns))


def _filled(own: Any, drawn: Any, gap: NDArray[np.bool_]) -> Any:
    """A column of Polars or PyArrow with other values where it has gaps."""
    mask = nw.new_series("", ~gap, nw.Boolean, backend=own.implementation)
    try:
        return own.zip_with(mask, drawn).alias(own.name)
    except BaseException as error:
        reraise_interrupts(error)
        # Of two types: one value by one.
        pairs = zip(gap.tolist(), own.to_list(), drawn.to_list(), strict=True)
        values = [new if missing else old for missing, old, new in pairs]
        return nw.new_series(own.name, values, backend=own.implementation)
