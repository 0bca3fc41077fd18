"""Tables of any library, their codes, and exact counts of them: everything private.

From a table to counts a row passes each module once: :mod:`~skdp.tables.frame` finds its columns,
:mod:`~skdp.tables.counts` turns them into codes, of which :mod:`~skdp.tables.persons` keeps a few
rows of each person, and counts the distinct coded rows. Nothing here is ever an attribute of an
estimator.

===============  =================================================================================
``columns``      `Column`: the values of a column of any library, in four forms
``counts``       `Coded`: from rows to counts; `CountTable`: distinct coded rows and their numbers;
                 `ProjectedCounts` where they are too many; many tables counted in one pass
``frame``        `Frame`: the columns of a table in memory; `LazyRows`: those of a lazy frame;
                 `Layout`: what drawn rows have in common with them
``output``       tables that are given back, in the library of the user's table
``persons``      the person that a row belongs to, and which rows of a person are kept
===============  =================================================================================
"""

from typing import Any

from .._keys import is_missing
from .columns import Column, object_array
from .counts import (
    MOST_AT_ONCE,
    Coded,
    Counts,
    CountTable,
    ProjectedCounts,
    count_rows,
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
    assumed,
    list_entries,
    read_rows,
)
from .output import as_numbers, as_texts, build_frame, row_taker, select_columns, take_rows
from .persons import Contributions, few_of_each, identities
