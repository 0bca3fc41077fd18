"""Rows: tables in memory and in engines, their columns, their codes, and exact counts of them.

From a table to counts a row passes each module once: :mod:`~skdp.tables.frame` or
:mod:`~skdp.tables.lazy` reads the container, the domain codes each column, and
:mod:`~skdp.tables.encode` keeps a few rows of each person and counts the distinct coded rows.
Everything here is private; nothing here is ever an attribute of an estimator.

===============  =================================================================================
``coded``        rows of codes that stay in an engine, in batches or counted
``columns``      one column of NumPy, pandas, Polars or PyArrow; dates and times as numbers
``counts``       `CountTable`: distinct coded rows and their numbers
``encode``       from rows to counts: code each record, keep a few rows of each person, count or
                 add up
``expressions``  codes, dates and quotients as expressions of an engine
``frame``        frame: the columns of a table in memory, read from any container
``lazy``         `LazyRows`: a table in an engine, its empty cells, persons and partitions
``passes``       counts of many tables: which one pass counts, which together, and their sums
``tables``       makes, cuts, completes tables of the user's library; `Layout`: what one looks
                 like
===============  =================================================================================
"""

from typing import Any

from ..domain.reading import provide_reader
from ..domain.values import is_missing
from .coded import CodedRows, LabelledSums
from .columns import Column, object_array
from .counts import CountTable
from .encode import (
    MOST_AT_ONCE,
    Coded,
    Contributions,
    Counts,
    EngineTables,
    ProjectedCounts,
    code_rows,
    count_rows,
    few_of_each,
    weighted_rows,
    weighted_tables,
)
from .expressions import floor_positive, part_of, search_sorted
from .frame import (
    TYPES_DECLARED,
    UNFIT,
    Frame,
    as_array,
    as_column,
    as_frame,
    as_labels,
    list_entries,
)
from .lazy import LazyRows, read_rows
from .passes import ParquetFile, check_library, is_parquet_file, is_parquet_name, write_parquet
from .tables import (
    Layout,
    as_numbers,
    as_texts,
    build_frame,
    column_names,
    complete_table,
    fill_table,
    labels_like,
    row_taker,
    select_columns,
    take_rows,
)

__all__ = [
    "MOST_AT_ONCE",
    "TYPES_DECLARED",
    "UNFIT",
    "Coded",
    "CodedRows",
    "Column",
    "Contributions",
    "CountTable",
    "Counts",
    "EngineTables",
    "Frame",
    "LabelledSums",
    "Layout",
    "LazyRows",
    "ParquetFile",
    "ProjectedCounts",
    "as_array",
    "as_column",
    "as_frame",
    "as_labels",
    "as_numbers",
    "as_texts",
    "build_frame",
    "check_library",
    "code_rows",
    "column_names",
    "complete_table",
    "fill_table",
    "count_rows",
    "few_of_each",
    "floor_positive",
    "is_missing",
    "is_parquet_file",
    "is_parquet_name",
    "labels_like",
    "list_entries",
    "object_array",
    "part_of",
    "read_rows",
    "row_taker",
    "search_sorted",
    "select_columns",
    "take_rows",
    "weighted_rows",
    "weighted_tables",
    "write_parquet",
]


def _as_rows(data: Any) -> Any:
    """Columns of a table in memory; rows that were read before are returned as they are."""
    return data if isinstance(data, LazyRows) else as_frame(data)


# `Domain.encode` and similar methods read tables with it.
provide_reader(_as_rows)
