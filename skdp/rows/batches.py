"""Rows of a plan that an engine returns batch by batch while it computes them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from .._arrays import BATCH_ROWS

__all__ = ["gives_batches", "read_batches"]


def gives_batches(frame: nw.LazyFrame, engine: str) -> bool:
    """Whether the engine, in its installed version, returns rows batch by batch."""
    if engine == "duckdb":
        return importlib.util.find_spec("pyarrow") is not None
    return engine == "polars" and hasattr(nw.to_native(frame), "collect_batches")


def read_batches(frame: nw.LazyFrame, engine: str) -> Iterator[list[NDArray[np.integer]]]:
    """The columns of each batch, in no order; they hold integers without gaps.

    Parameters
    ----------
    frame : narwhals LazyFrame
        For which `gives_batches` holds.
    engine : {"duckdb", "polars"}
    """
    native: Any = nw.to_native(frame)
    if engine == "duckdb":
        # The first name is that of DuckDB 1.5 and newer.
        read = getattr(native, "to_arrow_reader", None) or native.fetch_arrow_reader
        for batch in read(BATCH_ROWS):
            yield [column.to_numpy() for column in batch.columns]
    else:
        parts = native.collect_batches(
            chunk_size=BATCH_ROWS, maintain_order=False, engine="streaming"
        )
        for part in parts:
            yield [column.to_numpy() for column in part.get_columns()]
