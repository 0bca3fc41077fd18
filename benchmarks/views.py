"""Tables of ranges: a frame of one row per record, random ranges, and a wide generated table."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _data
from skdp import Domain, Numeric

__all__ = ["problem", "random_ranges", "wide_rows"]


def problem(name: str) -> tuple[_data.RangeTable, Domain, pd.DataFrame]:
    """Return a table, its domain, and a frame of one row per record."""
    table = _data.hdpview_table(name)
    domain = Domain(
        {
            column: Numeric(0, size - 1, integer=True)
            for column, size in zip(table.columns, table.shape, strict=True)
        }
    )
    rows = pd.DataFrame(np.repeat(table.codes, table.counts, axis=0), columns=list(table.columns))
    return table, domain, rows


def random_ranges(
    table: _data.RangeTable, n_columns: int, n_queries: int, seed: int
) -> NDArray[np.int64]:
    """Ranges between two random codes on random columns, (n_queries, 3 * n_columns)."""
    rng = np.random.default_rng(seed)
    out = np.empty((n_queries, 3 * n_columns), dtype=np.int64)
    for query in out:
        for k, axis in enumerate(rng.choice(len(table.shape), n_columns, replace=False)):
            ends = np.sort(rng.integers(0, table.shape[axis], 2))
            query[3 * k : 3 * k + 3] = axis, *ends
    return out


def wide_rows(n_rows: int = 1_000_000, n_columns: int = 60, size: int = 30) -> pd.DataFrame:
    """Integers from 0 to 29; each column depends on an earlier one."""
    rng = np.random.default_rng(0)
    columns = np.empty((n_columns, n_rows), dtype=np.int64)
    for k in range(n_columns):
        own = np.minimum(rng.gamma(2, 4, n_rows).astype(np.int64), size - 1)
        kept = rng.random(n_rows) < 0.6
        before = columns[rng.integers(0, k)] if k else own
        columns[k] = np.where(kept, (before + k) % size, own)
    return pd.DataFrame(columns.T, columns=[f"x{k}" for k in range(n_columns)])
