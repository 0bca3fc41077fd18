"""Tables of any library, their codes, and exact counts of them: everything private.

From a table to counts a row passes each module once: :mod:`~skdp.tables.frame` finds its columns,
:mod:`~skdp.tables.counts` turns them into codes, keeps a few rows of each person and counts the
distinct coded rows. Nothing here is ever an attribute of an estimator.

===============  =================================================================================
``columns``      `Column`: the values of a column of any library, in four forms
``counts``       `Coded`: from rows to counts; `CountTable`: distinct coded rows and their numbers;
                 `ProjectedCounts` where they are too many; many tables counted in one pass; the
                 person that a row belongs to, and which rows of a person are kept
``frame``        `Frame`: the columns of a table in memory; `LazyRows`: those of a lazy frame;
                 `Layout`: tables that are given back, in the library of the user's table
===============  =================================================================================
"""

from typing import Any

from .._keys import is_missing
from .columns import Column, object_array
from .counts import (
    MOST_AT_ONCE,
    Coded,
    Contributions,
    Counts,
    CountTable,
    ProjectedCounts,
    count_rows,
    few_of_each,
    identities,
    weighted_rows,
    weighted_tables,
)
from .frame import (
    TYPES_DECLARED,
    UNFIT,
    Frame,
    Layout,
    LazyRows,
    PublicTable,
    as_array,
    as_column,
    as_frame,
    as_labels,
    as_numbers,
    as_texts,
    assumed,
    build_frame,
    list_entries,
    read_rows,
    row_taker,
    select_columns,
    take_rows,
)
