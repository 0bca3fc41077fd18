"""Rows that an engine would hold, held in memory."""

from __future__ import annotations

import numpy as np

from skdp.tables import CodedRows


class HeldRows(CodedRows):
    """The rows of a CountTable, as if they were in an engine; it notes what is asked for."""

    def __init__(self, table):
        self.shape = table.shape
        self.asked = []
        self._table = table

    def count(self, axes):
        self.asked.append([tuple(axes)])
        part = self._table.project(axes)
        return part.codes, part.counts

    def _fill(self, tallies):
        self.asked.append([each.axes for each in tallies.marginals])
        codes = dict(enumerate(np.asfortranarray(self._table.codes).T))
        tallies.add(codes, self._table.n_rows, self._table.counts)
