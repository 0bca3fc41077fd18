"""Tables completed by drawn columns: the columns that were given stay what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import pandas as pd

from .frames import as_frame
from .tables import build_frame

__all__ = ["complete_table"]


def complete_table(
    given: Any, columns: Mapping[str, pd.Series], order: Sequence[str], like: Any = None
) -> Any:
    """A table of the library of ``given``, some of whose columns are new.

    Parameters
    ----------
    given : table or 2-D array
        Its columns are taken as they are, unless ``columns`` has one of that name. Those of an
        array have the names of ``order``.
    columns : mapping of str to Series
        New columns, one value for each row of ``given``.
    order : sequence of str
        All columns of the result.
    like : optional
        As for :func:`build_frame`: what the new columns look like. Default: the library.
    """
    rows = as_frame(given)
    if rows.library == "numpy":
        rows = rows.with_names(order) if rows.n_unnamed else rows
        own = {name: pd.Series(rows.column(name).objects()) for name in order if name in rows.names}
        kept = {name: values.infer_objects() for name, values in own.items()}
        return build_frame({name: columns.get(name, kept.get(name)) for name in order}, "numpy")
    fresh = build_frame(columns, rows.library if like is None else like) if columns else None
    if rows.library == "pandas":
        found = {}
        for name in order:
            found[name] = given[name] if name not in columns else fresh[name].set_axis(given.index)
        return pd.DataFrame(found, index=given.index)
    table = nw.from_native(given, eager_only=True)
    if fresh is not None:
        drawn = nw.from_native(fresh, eager_only=True)
        table = table.with_columns(*(drawn[name] for name in columns))
    return nw.to_native(table.select(*order))
