"""Rows of a table as if they were those of a lazy frame, and what is asked of them."""

from __future__ import annotations

import numpy as np

from skdp.tables import RowTables


class HeldRows(RowTables):
    """The rows of a CountTable, one for each record; it notes what is counted."""

    def __init__(self, table, together=()):
        super().__init__(np.repeat(table.codes, table.counts, axis=0), table.shape, together)
        self.asked = []

    def count(self, axes):
        self.asked.append([tuple(axes)])
        return super().count(axes)

    def tables(self, marginals):
        self.asked.append([each.axes for each in marginals])
        return super().tables(marginals)
