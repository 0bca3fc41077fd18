"""TreeModel: the rows of a release, and the views of attributes and pairs that they agree with.

Rows are drawn among the weighted ones. Where few of these agree with a condition, they are drawn
from a `TreeDensity` of the strongest pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._validation import (
    CodeArray,
    FloatArray,
)
from ..domain import Domain
from .density import PairTable, TreeDensity, inverse
from .files import Cutter, demand
from .model import Covariances, Weights, product_of_weights, warn_of_zero
from .result import labels_of_groups
from .rounding import count_records

__all__ = ["ENOUGH", "TreeModel", "effective_number"]

# Rounded rows keep at most this many views of attributes and as many of pairs.
_ROUNDED = 64
# From so many questions on, rows that agree are put together first. So many questions are computed
# together, and what they look at is kept for so many sets of columns.
_MANY = 8
Axes = tuple[int, ...]


# Largest number of cells of released views that `to_frame` lists.
_MAX_LISTED = 5_000_000


class TreeModel(Covariances):
    """Weighted rows and the views they agree with; `ViewsModel` answers from them, see `Model`.

    Parameters
    ----------
    density : TreeDensity
    total : float
        Estimated number of records; it may be negative.
    rows : ndarray of int32, shape (n_rows, n_attributes)
        Weighted records that agree with all released views.
    row_weights : ndarray of float64, shape (n_rows,)
        They sum to 1.
    extra : sequence of PairTable, default=()
        Released pairs beyond those of the density.
    budget : mapping of str to float, default=None
        How epsilon was divided, for the record.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    def __init__(
        self,
        density: TreeDensity,
        total: float,
        *,
        rows: CodeArray,
        row_weights: FloatArray,
        extra: Sequence[PairTable] = (),
        budget: Mapping[str, float] | None = None,
    ) -> None:
        self.density = density
        self.extra = list(extra)
        self.rows = rows
        self.row_weights = row_weights
        self.budget = dict(budget or {})
        self.total = float(total)
        # Of columns that were asked for together.
        self._cells: dict[Axes, tuple[list[CodeArray], FloatArray]] = {}
        self.shape = tuple(len(mu) for mu in density.marginals)
        self._tables = {pair.axes: pair.table for pair in [*density.edges, *self.extra]}
        if rows.shape != (len(row_weights), len(self.shape)):
            raise ValueError("rows and row_weights do not fit together.")
        if rows.size and ((rows < 0).any() or (rows >= np.array(self.shape)).any()):
            raise ValueError("rows hold codes outside of the domain.")

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Attributes of the released pairs, those of the density first."""
        return list(self._tables)

    def _share_under(self, axes: Axes, weights: Mapping[int, FloatArray]) -> FloatArray:
        """Share of the rows under each of n products of weights, (n_codes, n) for each column."""
        n = weights[axes[0]].shape[1]
        spans: dict[tuple[int, int], list[int]] = {(0, len(self.rows)): list(range(n))}
        if n < _MANY or math.prod(self.shape[axis] for axis in axes) > np.iinfo(np.int64).max:
            codes, masses = [self.rows[:, axis] for axis in axes], self.row_weights
        else:
            # Only rows with the codes between the first and the last that one column may have.
            axes = tuple(
                sorted(axes, key=lambda axis: np.count_nonzero(weights[axis]) / self.shape[axis])
            )
            codes, masses = self._row_cells(axes)
            used = weights[axes[0]] != 0
            ends = used.argmax(axis=0), len(used) - used[::-1].argmax(axis=0)
            spans = {}
            for place, span in enumerate(np.searchsorted(codes[0], ends).T.tolist()):
                spans.setdefault(tuple(span), []).append(place)
        shares = np.empty(n)
        for (start, stop), members in spans.items():
            for part in (members[at : at + _MANY] for at in range(0, len(members), _MANY)):
                product = masses[start:stop, None]
                for axis, column in zip(axes, codes, strict=True):
                    product = product * weights[axis][:, part][column[start:stop]]
                shares[part] = product.sum(axis=0)
        return shares

    def _row_cells(self, axes: Axes) -> tuple[list[CodeArray], FloatArray]:
        """Codes and weights of rows, as one where they agree on all of these; ascending."""
        if axes not in self._cells:
            if len(self._cells) >= _MANY:
                self._cells.clear()
            codes = [self.rows[:, axis] for axis in axes]
            cell = np.ravel_multi_index(codes, [self.shape[axis] for axis in axes])
            _, first, place = np.unique(cell, return_index=True, return_inverse=True)
            sums = np.bincount(place.ravel(), weights=self.row_weights, minlength=len(first))
            masses: FloatArray = sums.astype(np.float64, copy=False)
            self._cells[axes] = [column[first] for column in codes], masses
        return self._cells[axes]

    def _row_table(self, axes: Sequence[int]) -> FloatArray:
        columns = [self.rows[:, axis] for axis in axes]
        return self._share_in(columns, [self.shape[axis] for axis in axes])

    def _share_in(self, columns: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> FloatArray:
        """Shares of the rows in the cells of a table, from the place of each row on each axis."""
        cell = np.ravel_multi_index(tuple(columns), tuple(sizes))
        sums = np.bincount(cell, weights=self.row_weights, minlength=math.prod(sizes))
        return sums.reshape(sizes).astype(np.float64, copy=False)

    def sample_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Draw records from the weighted ones.

        Under weights these serve if at least `ENOUGH` of them agree, by their effective number;
        else the density, exactly. Where its probability is zero, the draw has as few codes of
        probability zero as the condition allows, and warns.
        """
        agree = self._agree(weights or {})
        if agree is not None:
            return self.rows[inverse(agree, generator.random(n_samples))]
        codes, impossible = self.density.sample_under(n_samples, generator, weights or {})
        if impossible.any():
            warn_of_zero("their other columns follow what the tree of pairs has nearest to it")
        return codes

    @property
    def _enough(self) -> float:
        """How many weighted records must agree with a condition."""
        return ENOUGH

    def _agree(self, weights: Weights) -> FloatArray | None:
        """Weights of the records that agree with a condition; None where these are too few."""
        agree = product_of_weights(self.rows, self.row_weights, weights)
        few = weights and effective_number(agree.sum(), agree @ agree) < self._enough
        return None if few else agree

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Records whose counts are the expected ones, rounded; see `Model` and `sample_codes`.

        Independent ones where the density answers.
        """
        agree = self._agree(weights or {})
        if agree is None:
            return self.sample_codes(n_samples, generator, weights)
        return self._round_rows(agree, n_samples, generator)

    def _round_rows(
        self, weights: FloatArray, n_samples: int, generator: np.random.Generator
    ) -> CodeArray:
        """Weighted records, so that views of single attributes and pairs are kept."""
        possible = np.flatnonzero(weights > 0)
        rows = self.rows[possible]
        groups = self.density.groups
        sizes = self.density.sizes
        grouped = [
            groups[axis][rows[:, axis]] if axis in groups else rows[:, axis]
            for axis in range(len(sizes))
        ]
        single = [rows[:, axis] for axis, size in enumerate(self.shape) if size > 1]
        pairs = [
            grouped[a].astype(np.int64) * sizes[b] + grouped[b] for a, b in self.pairs[:_ROUNDED]
        ]
        # Neighbours agree in many columns, those of few codes first.
        by_size = np.argsort(self.shape, kind="stable")[::-1]
        order = np.lexsort([rows[:, axis] for axis in by_size.tolist()])
        features = [*single[:_ROUNDED], *pairs]
        counts = count_records(weights[possible], n_samples, order, features, generator)
        chosen = np.repeat(np.arange(len(rows)), counts)
        return rows[generator.permutation(chosen)]

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """All released views: one row for each code of an attribute and each cell of a pair.

        Returns
        -------
        DataFrame
            Columns ``first`` and ``second`` (names of the attributes of a view; ``second`` is
            empty for a view of one), ``first_value``, ``second_value``, ``count``.

        Raises
        ------
        ValueError
            If there are too many cells to list.
        """
        cells = sum(self.shape) + sum(table.size for table in self._tables.values())
        if cells > _MAX_LISTED:
            raise ValueError(
                f"The released views have {cells:,} cells, more than {_MAX_LISTED:,}: too many "
                "for a readable table. Ask for a view of some columns instead."
            )
        names, groups = domain.names, self.density.groups
        labels = [each.labels() for each in domain.attributes]
        parts = []

        def list_view(listed: list[list[str]], shares: Any) -> None:
            titles = ["first", "second", "first_value", "second_value"]
            index = pd.MultiIndex.from_product(listed, names=titles)
            parts.append(pd.Series(self.total * shares.ravel(), index, name="count"))

        for name, texts, mu in zip(names, labels, self.density.marginals, strict=True):
            list_view([[name], [""], texts, [""]], mu)
        for axes, table in self._tables.items():
            one, two = (labels_of_groups(labels[axis], groups.get(axis)) for axis in axes)
            list_view([[names[axes[0]]], [names[axes[1]]], one, two], table)
        return pd.concat(parts).reset_index()

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts: dict[str, Any] = {
            "total": self.total,
            "edges": [list(pair.axes) for pair in self.density.edges],
            "extra": [list(pair.axes) for pair in self.extra],
            "grouped": sorted(self.density.groups),
            "budget": self.budget,
        }
        arrays: dict[str, NDArray[Any]] = {"marginals": np.concatenate(self.density.marginals)}
        pairs = [*self.density.edges, *self.extra]
        if pairs:
            arrays["tables"] = np.concatenate([pair.table.ravel() for pair in pairs])
        if self.density.groups:
            arrays["groups"] = np.concatenate(
                [self.density.groups[axis] for axis in sorted(self.density.groups)]
            )
        arrays["rows"], arrays["row_weights"] = self.rows, self.row_weights
        return facts, arrays

    @classmethod
    def from_arrays(
        cls,
        shape: tuple[int, ...],
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> TreeModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        marginals = Cutter(arrays["marginals"])
        masses = [marginals.take_probabilities(size) for size in shape]
        of_codes = Cutter(arrays.get("groups", np.zeros(0, dtype=np.int64)))
        groups = {int(axis): of_codes.take_groups(shape[axis]) for axis in facts["grouped"]}
        sizes = [
            int(groups[axis].max()) + 1 if axis in groups else size
            for axis, size in enumerate(shape)
        ]
        tables, pairs = Cutter(arrays.get("tables", np.zeros(0))), []
        for a, b in [*facts["edges"], *facts["extra"]]:
            demand(0 <= a < b < len(shape), f"there is no pair {a}, {b}")
            pairs.append(PairTable((a, b), tables.take_probabilities(sizes[a], sizes[b])))
        for each in (marginals, of_codes, tables):
            each.finish()
        n_edges, total = len(facts["edges"]), float(facts["total"])
        demand(math.isfinite(total), "the total is not finite")
        weights = Cutter(arrays["row_weights"])
        return cls(
            TreeDensity(masses, pairs[:n_edges], groups),
            total,
            extra=pairs[n_edges:],
            rows=arrays["rows"].astype(np.int32),
            row_weights=weights.take_probabilities(*arrays["row_weights"].shape),
            budget=facts["budget"],
        )


# Fewer weighted records than this that agree with a condition, by their effective number, say too
# little about the other columns: the density answers instead.
ENOUGH = 50


def effective_number(total: FloatArray, squares: FloatArray) -> FloatArray:
    """How many equal weights would say as much, from the sums of weights and of their squares."""
    return np.divide(total**2, squares, out=np.zeros_like(squares), where=squares > 0)
