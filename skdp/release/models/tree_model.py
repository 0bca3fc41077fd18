"""TreeModel: the released views of single attributes and of pairs, as a model of the records.

Its core is a :class:`TreeDensity`. Where more pairs were released than a tree can hold, the model
carries weighted records too: a sample of the density whose weights agree with all released views.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._arrays import running_sums
from ..._types import CodeArray, FloatArray, IntArray
from ...domain import Domain
from .model import Weights, by_attributes, warn_of_zero
from .rounding import (
    GOLDEN,
    count_records,
    deal,
    draw_in_ranges,
    patterns,
    product_of_weights,
    round_line,
    round_lines,
    round_table,
    share_of,
    shared_keys,
    similar_first,
    sort_within,
)
from .tree_density import GivenTree, PairTable, TreeDensity, draw_given, inverse

__all__ = ["ENOUGH", "GivenRows", "TreeModel", "effective_number", "round_tree", "swap_codes"]

# Numbers held at once while a batch of queries is answered.
_CHUNK = 1 << 21


# Rounded rows keep at most this many views of attributes and as many of pairs.
_ROUNDED = 64


# Two attributes are tabulated over weighted records if they have at most this many cells.
_DENSE_CELLS = 1 << 20
# From so many queries on the same attributes on, weighted records that agree on these are merged.
_MANY = 8


# Largest number of cells of released views that `to_frame` lists.
_MAX_LISTED = 5_000_000


# Probabilities in a file may differ from a sum of 1 by rounding. A swap takes away at least so
# much: equal seeds give equal rows on every machine.
_ROUNDING = 1e-6


class TreeModel:
    """The released views as a model of the records; see `Model`.

    Parameters
    ----------
    density : TreeDensity
    total : float
        Estimated number of records; it may be negative.
    extra : sequence of PairTable, default=()
        Released pairs beyond those of the density.
    rows : ndarray of int32, shape (n_rows, n_attributes), default=None
        Weighted records that agree with all released views; needed with ``extra``.
    row_weights : ndarray of float64, shape (n_rows,), default=None
        They sum to 1.
    budget : mapping of str to float, default=None
        How epsilon was divided, for the record.
    fine_rows : bool, default=False
        Whether the weighted records know how the codes inside a group are spread: they answer
        where a table of a pair has groups of codes.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    # The name in files.
    kind: ClassVar[str] = "forest"

    def __init__(
        self,
        density: TreeDensity,
        total: float,
        *,
        extra: Sequence[PairTable] = (),
        rows: CodeArray | None = None,
        row_weights: FloatArray | None = None,
        budget: Mapping[str, float] | None = None,
        fine_rows: bool = False,
    ) -> None:
        self.density = density
        self.extra = list(extra)
        self.rows = rows
        self.row_weights = row_weights
        self.budget = dict(budget or {})
        self.fine_rows = fine_rows
        self._total = float(total)
        self.shape = tuple(len(mu) for mu in density.marginals)
        self._tables = {pair.axes: pair.table for pair in [*density.edges, *self.extra]}
        if self.extra and (rows is None or row_weights is None):
            raise ValueError("Pairs beyond those of the density need weighted records.")
        if rows is not None:
            if row_weights is None or rows.shape != (len(row_weights), len(self.shape)):
                raise ValueError("rows and row_weights do not fit together.")
            if rows.size and ((rows < 0).any() or (rows >= np.array(self.shape)).any()):
                raise ValueError("rows hold codes outside of the domain.")

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return self._total

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Attributes of the released pairs, those of the density first."""
        return list(self._tables)

    def answer(self, queries: Sequence[Weights]) -> FloatArray:
        """Expected counts under the weights, one for each query."""
        answers = np.empty(len(queries))
        for axes, members in by_attributes(queries).items():
            widest = max([1, *(self.shape[axis] for axis in axes)])
            step = max(1, _CHUNK // widest)
            for first in range(0, len(members), step):
                part = members[first : first + step]
                stacked = {
                    axis: np.stack([queries[i][axis] for i in part], axis=1) for axis in axes
                }
                answers[part] = self._shares(axes, stacked, len(part))
        return self._total * answers

    def _shares(self, axes: tuple[int, ...], weights: dict[int, FloatArray], n: int) -> FloatArray:
        """Share of the records under queries on the same attributes."""
        if not axes:
            return np.ones(n)
        if self.rows is None or len(axes) == 1 or self._by_table(axes):
            if axes in self._tables:
                a, b = (self.density.lift(axis, weights[axis]) for axis in axes)
                return np.einsum("iq,iq->q", a, self._tables[axes] @ b)
            return self.density.expectation(axes, weights)
        if len(axes) == 2 and self.shape[axes[0]] * self.shape[axes[1]] <= _DENSE_CELLS:
            table = self._row_table(axes)
            return np.einsum("iq,iq->q", weights[axes[0]], table @ weights[axes[1]])
        codes, masses = self._row_cells(axes, merged=n >= _MANY)
        shares = np.empty(n)
        for query in range(n):
            product = masses
            for axis, column in zip(axes, codes, strict=True):
                product = product * weights[axis][column, query]
            shares[query] = product.sum()
        return shares

    def _by_table(self, axes: tuple[int, ...]) -> bool:
        """Whether the table of a pair answers, rather than the weighted records."""
        grouped = any(axis in self.density.groups for axis in axes)
        return axes in self._tables and not (grouped and self.fine_rows)

    def _row_cells(
        self, axes: Sequence[int], *, merged: bool
    ) -> tuple[list[CodeArray], FloatArray]:
        """Codes and weights of rows; as one if ``merged``, where they agree on all of these."""
        assert self.rows is not None and self.row_weights is not None
        codes = [self.rows[:, axis] for axis in axes]
        sizes = [self.shape[axis] for axis in axes]
        if not merged or math.prod(sizes) > np.iinfo(np.int64).max:
            return codes, self.row_weights
        _, first, place = np.unique(
            np.ravel_multi_index(codes, sizes), return_index=True, return_inverse=True
        )
        masses = np.bincount(place.ravel(), weights=self.row_weights, minlength=len(first))
        return [column[first] for column in codes], masses.astype(np.float64, copy=False)

    def _row_table(self, axes: Sequence[int]) -> FloatArray:
        assert self.rows is not None
        sizes = [self.shape[axis] for axis in axes]
        cell = np.ravel_multi_index([self.rows[:, axis] for axis in axes], sizes)
        sums = np.bincount(cell, weights=self.row_weights, minlength=math.prod(sizes))
        return sums.reshape(sizes).astype(np.float64, copy=False)

    def sample_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Draw records from the density, or from the weighted records where there are some.

        Under weights the weighted records serve if at least `ENOUGH` of them agree, by their
        effective number; else the density, exactly. Where its probability is zero, the draw
        follows the tree with a share `SOFT` of independent columns, and warns.
        """
        if weights:
            return self._sample_under(n_samples, generator, weights)
        if self.rows is None:
            return self.density.sample(n_samples, generator)
        assert self.row_weights is not None
        return self.rows[inverse(self.row_weights, generator.random(n_samples))]

    @property
    def _enough(self) -> float:
        """How many weighted records must agree with a condition."""
        return ENOUGH

    def _sample_under(
        self, n_samples: int, generator: np.random.Generator, weights: Weights
    ) -> CodeArray:
        if self.rows is not None and self.row_weights is not None:
            agree = product_of_weights(self.rows, self.row_weights, weights)
            if effective_number(agree.sum(), agree @ agree) >= self._enough:
                return self.rows[inverse(agree, generator.random(n_samples))]
        unknown = np.full((n_samples, len(self.shape)), -1, dtype=np.int32)
        codes, impossible = draw_given(self.density, unknown, generator, weights)
        if impossible.any():
            warn_of_zero("their other columns follow what the tree of pairs has nearest to it")
        return codes

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Records whose counts are the expected ones, rounded; see `Model` and `sample_codes`."""
        if self.rows is not None and self.row_weights is not None:
            agree = product_of_weights(self.rows, self.row_weights, weights or {})
            if not weights or effective_number(agree.sum(), agree @ agree) >= self._enough:
                return self._round_rows(agree, n_samples, generator)
        density = GivenTree(self.density, weights).posterior() if weights else self.density
        if density is None:
            return self._sample_under(n_samples, generator, weights or {})
        return round_tree(density, n_samples, generator)

    def _round_rows(
        self, weights: FloatArray, n_samples: int, generator: np.random.Generator
    ) -> CodeArray:
        """Weighted records, so that views of single attributes and pairs are kept."""
        possible = np.flatnonzero(weights > 0)
        assert self.rows is not None
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
        order = similar_first(rows, self.shape)
        features = [*single[:_ROUNDED], *pairs]
        counts = count_records(
            weights[possible], n_samples, order, features, len(single[:_ROUNDED]), generator
        )
        chosen = np.repeat(np.arange(len(rows)), counts)
        return rows[generator.permutation(chosen)]

    def sample_given(
        self, known: CodeArray, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Fill rows of codes where they are -1; see `Model` and `sample_codes`."""
        weights = {} if weights is None else weights
        codes = np.array(known, dtype=np.int32)
        left = np.arange(len(codes))
        if self.rows is not None and self.row_weights is not None:
            among = GivenRows(self.rows, self.row_weights, weights, self._enough)
            at, _ = among.draw(codes, generator)
            codes[at >= 0] = np.where(codes[at >= 0] < 0, self.rows[at[at >= 0]], codes[at >= 0])
            left = np.flatnonzero(at < 0)
        codes[left] = draw_given(self.density, codes[left], generator, weights)[0]
        return codes

    def log_likelihood(
        self, known: CodeArray, weights: Weights | None = None, *, soft: bool = False
    ) -> FloatArray:
        """Logarithm of the probability of known codes and a condition, for each row.

        Parameters
        ----------
        known : ndarray of int, shape (n_rows, n_attributes)
            Codes, -1 where they are unknown.
        weights : mapping of int to ndarray, default=None
            Weights of unknown codes.
        soft : bool, default=False
            With a share `SOFT` of independent columns, so that it is finite.
        """
        weights = {} if weights is None else weights
        result = GivenTree(self.density, weights, soft=soft).log_likelihood(known)
        if not soft and self.rows is not None and self.row_weights is not None:
            chance = GivenRows(self.rows, self.row_weights, weights, self._enough).chance(known)
            enough = chance > 0
            result[enough] = np.log(chance[enough])
        return result

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Expected counts for every combination of the codes of one or two attributes."""
        if len(axes) == 1:
            return self._total * self.density.marginals[axes[0]]
        a, b = axes
        if a > b:
            return self.view([b, a]).T
        if not self._by_table((a, b)) and self.rows is not None:
            return self._total * self._row_table(axes)
        groups = self._tables.get((a, b))
        if groups is None:
            groups = self.density.pair(a, b)
        return self._total * self.density.expand(b, self.density.expand(a, groups, 0), 1)

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
        names = domain.names
        parts = []
        for axis, mu in enumerate(self.density.marginals):
            labels = np.array(domain.attributes[axis].labels(), dtype=object)
            parts.append(_listed_view(names[axis], labels, "", [""], self._total * mu))
        for (a, b), table in self._tables.items():
            parts.append(
                _listed_view(
                    names[a],
                    self._group_labels(domain, a),
                    names[b],
                    self._group_labels(domain, b),
                    self._total * table,
                )
            )
        return pd.concat(parts, ignore_index=True)

    def _group_labels(self, domain: Domain, axis: int) -> list[str]:
        labels = domain.attributes[axis].labels()
        groups = self.density.groups.get(axis)
        if groups is None:
            return labels
        order = np.argsort(groups, kind="stable")
        first = np.searchsorted(groups[order], np.arange(self.density.sizes[axis] + 1))
        texts = []
        for start, stop in zip(first[:-1], first[1:], strict=True):
            ends = labels[order[start]], labels[order[stop - 1]]
            texts.append(ends[0] if stop == start + 1 else f"{ends[0]} ... {ends[1]}")
        return texts

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts: dict[str, Any] = {
            "total": self._total,
            "edges": [list(pair.axes) for pair in self.density.edges],
            "extra": [list(pair.axes) for pair in self.extra],
            "grouped": sorted(self.density.groups),
            "budget": self.budget,
        }
        if self.fine_rows:
            facts["fine_rows"] = True
        arrays: dict[str, NDArray[Any]] = {"marginals": np.concatenate(self.density.marginals)}
        pairs = [*self.density.edges, *self.extra]
        if pairs:
            arrays["tables"] = np.concatenate([pair.table.ravel() for pair in pairs])
        if self.density.groups:
            arrays["groups"] = np.concatenate(
                [self.density.groups[axis] for axis in sorted(self.density.groups)]
            )
        if self.rows is not None and self.row_weights is not None:
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
        stops = np.cumsum(shape)
        if arrays["marginals"].shape != (stops[-1],):
            raise ValueError("the marginals do not fit the domain")
        marginals = [as_probabilities(mu) for mu in np.split(arrays["marginals"], stops[:-1])]
        groups: dict[int, IntArray] = {}
        position = 0
        for axis in facts["grouped"]:
            group = arrays["groups"][position : position + shape[axis]]
            position += shape[axis]
            if len(group) != shape[axis] or group.dtype.kind not in "iu":
                raise ValueError("the groups do not fit the domain")
            if not np.array_equal(np.unique(group), np.arange(int(group.max()) + 1)):
                raise ValueError("the groups have gaps")
            groups[int(axis)] = group.astype(np.int64)
        sizes = [
            int(groups[axis].max()) + 1 if axis in groups else size
            for axis, size in enumerate(shape)
        ]
        pairs: list[PairTable] = []
        position = 0
        listed = [*facts["edges"], *facts["extra"]]
        for a, b in listed:
            if not 0 <= a < b < len(shape):
                raise ValueError(f"there is no pair {a}, {b}")
            length = sizes[a] * sizes[b]
            table = arrays["tables"][position : position + length]
            position += length
            pairs.append(PairTable((a, b), as_probabilities(table.reshape(sizes[a], sizes[b]))))
        n_edges = len(facts["edges"])
        total = float(facts["total"])
        if not math.isfinite(total):
            raise ValueError("the total is not finite")
        rows = row_weights = None
        if "rows" in arrays:
            rows = arrays["rows"].astype(np.int32)
            row_weights = as_probabilities(arrays["row_weights"])
        return cls(
            TreeDensity(marginals, pairs[:n_edges], groups),
            total,
            extra=pairs[n_edges:],
            rows=rows,
            row_weights=row_weights,
            budget=facts["budget"],
            fine_rows=bool(facts.get("fine_rows", False)),
        )


def as_probabilities(values: NDArray[Any]) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError("a probability is negative or not finite")
    if abs(array.sum() - 1.0) > _ROUNDING:
        raise ValueError("the probabilities of a view do not sum to 1")
    return array


def _listed_view(
    first: str, first_labels: Any, second: str, second_labels: Any, counts: FloatArray
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "first": first,
            "second": second,
            "first_value": np.repeat(np.asarray(first_labels, dtype=object), len(second_labels)),
            "second_value": np.tile(np.asarray(second_labels, dtype=object), len(first_labels)),
            "count": counts.ravel(),
        }
    )


# --- records of a tree of pairs with rounded counts: column by column, within the parent's codes

# --- swaps inside strata that bring counts of pairs of columns near what is expected

# How far apart in the order of the rows those are that may swap; one pass for each.
_DISTANCES = (27, 9, 3, 1)
# Swaps that are decided at once, by counts that none of them has changed yet.
_AT_ONCE = 64


def swap_codes(
    codes: NDArray[np.int32],
    rows: IntArray,
    stratum: NDArray[np.int32] | None,
    others: Sequence[NDArray[np.int32]],
    expected: Sequence[FloatArray],
    most: int,
) -> None:
    """Swap codes of a column between rows of a stratum where that lowers the squared errors.

    The errors are those of the counts of the column's codes together with each of the others.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_rows,)
        Of the column; changed in place.
    rows : ndarray of int, shape (n_rows,)
        An order of the rows in which strata are contiguous. Neighbours swap.
    stratum : ndarray of int32, shape (n_rows,), or None
        None: all rows are one stratum.
    others : sequence of ndarray of int32, shape (n_rows,)
        Codes of other columns.
    expected : sequence of ndarray, shape (size of the other column, size of the column)
    most : int
        Pairs of rows that are looked at in each of a few passes, about.
    """
    if not others or len(rows) < 2:
        return
    width = expected[0].shape[1]
    starts = np.cumsum([0, *(table.size for table in expected)])
    error = np.concatenate(
        [
            np.bincount(other * np.int32(width) + codes, minlength=table.size) - table.ravel()
            for other, table in zip(others, expected, strict=True)
        ]
    )
    tables = list(zip(others, starts[:-1], strict=True))
    for distance in _DISTANCES:
        one, two = _neighbours(rows, distance, most)
        differ = codes[one] != codes[two]
        if stratum is not None:
            differ &= stratum[one] == stratum[two]
        one, two = one[differ], two[differ]
        # Line of the counts that a row is part of, in the table of each other column.
        lines = [
            np.stack([other[side] * width + start for other, start in tables])
            for side in (one, two)
        ]
        n_batches = -(-len(one) // _AT_ONCE)
        for batch in range(n_batches):
            some = slice(batch, None, n_batches)
            _swap(codes, error, one[some], two[some], lines[0][:, some], lines[1][:, some])


def _neighbours(rows: IntArray, distance: int, most: int) -> tuple[IntArray, IntArray]:
    """Disjoint pairs of rows at a distance in their order."""
    n_blocks = len(rows) // (2 * distance)
    stride = max(1, n_blocks * distance // most)
    starts = 2 * distance * np.arange(0, n_blocks, stride)
    place = (starts[:, None] + np.arange(distance)).ravel()
    return rows[place], rows[place + distance]


def _swap(
    codes: NDArray[np.int32],
    error: FloatArray,
    one: IntArray,
    two: IntArray,
    first: IntArray,
    second: IntArray,
) -> None:
    """Swap the codes of those pairs of rows for which the errors then are smaller."""
    own, other = codes[one], codes[two]
    change = error[first + other] - error[first + own] + 2.0
    change += error[second + own] - error[second + other]
    better = np.flatnonzero((change * (first != second)).sum(axis=0) < -_ROUNDING)
    if not len(better):
        return
    first, second, own, other = first[:, better], second[:, better], own[better], other[better]
    np.add.at(error, np.concatenate([first + other, second + own]), 1.0)
    np.subtract.at(error, np.concatenate([first + own, second + other]), 1.0)
    codes[one[better]], codes[two[better]] = other, own


# Columns that a column is balanced against: as many as their rows allow, within these limits.
_PARTNERS = (2, 16)
_PARTNER_ROWS = 1 << 22
# Swaps looked at in a pass, at most: for a column, and for all columns. Where there are many rows,
# errors are relatively small anyway.
_SWAPS = (1 << 14, 1 << 18)
# Cells of their common table, at most.
_CELLS = 1 << 18


def round_tree(density: TreeDensity, n_samples: int, generator: np.random.Generator) -> CodeArray:
    """Records whose counts are the expected ones, rounded; in random order.

    The codes of a root are rounded along a line, those of every other attribute as a table within
    the codes of its parent. There they are dealt evenly along an order of the attributes drawn
    before, and then swapped so that counts of pairs with some of these come near the expected ones.

    Parameters
    ----------
    density : TreeDensity
    n_samples : int
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (n_samples, n_attributes)
    """
    codes = np.empty((n_samples, len(density.marginals)), dtype=np.int32, order="F")
    group: dict[int, NDArray[np.int32]] = {}
    rows: IntArray = generator.permutation(n_samples)
    sorted_by, last = -1, -1
    swaps = min(_SWAPS[0], _SWAPS[1] // len(density.order))
    for node in density.order:
        parent = int(density.parent[node])
        if group and parent == sorted_by:
            # Nor may the children of an attribute be dealt along the same order.
            rows = sort_within(rows, group[last])
        stratum = group[parent] if parent >= 0 else None
        if stratum is not None:
            rows, sorted_by = sort_within(rows, stratum), parent
        line, sizes = _rounded(density, node, stratum, n_samples, generator)
        drawn = np.empty(n_samples, dtype=np.int32)
        drawn[rows] = deal(line, sizes, share_of(len(group)), generator)
        partners = _partners(density, node, [*group], n_samples)
        expected = [n_samples * density.pair(other, node) for other in partners]
        swap_codes(drawn, rows, stratum, [group[other] for other in partners], expected, swaps)
        group[node], last = drawn, node
        if node in density.groups:
            codes[sort_within(rows, drawn), node] = _inside(density, node, drawn, generator)
        else:
            codes[:, node] = drawn
    return codes


def _rounded(
    density: TreeDensity,
    node: int,
    stratum: NDArray[np.int32] | None,
    n_samples: int,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int32], IntArray]:
    """Groups of an attribute within each group of its parent, sorted, and the sizes of these."""
    conditional = density.conditional[node]
    if conditional is None or stratum is None:
        counts = round_line(density.grouped[node], n_samples, generator)[None]
        sizes = np.array([n_samples])
    else:
        sizes = np.bincount(stratum, minlength=len(conditional))
        counts = round_table(conditional * sizes[:, None], sizes, generator)
    groups = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
    return np.repeat(groups, counts.ravel()), sizes


def _partners(density: TreeDensity, node: int, drawn: list[int], n_samples: int) -> list[int]:
    """Attributes drawn before, the last ones, without the parent and those of large tables."""
    least, most = _PARTNERS
    number = min(max(_PARTNER_ROWS // max(n_samples, 1), least), most)
    size = density.sizes[node]
    fit = [
        other
        for other in drawn
        if other != density.parent[node] and 1 < density.sizes[other] * size <= _CELLS
    ]
    return fit[-number:] if size > 1 else []


def _inside(
    density: TreeDensity, axis: int, group: NDArray[np.int32], generator: np.random.Generator
) -> NDArray[np.int32]:
    """Codes inside the groups, for rows sorted by group."""
    groups, mass = density.groups[axis], density.marginals[axis]
    listed = np.argsort(groups, kind="stable")
    inside = np.where(density.grouped[axis][groups] > 0, mass, 1.0)[listed]
    sizes = np.bincount(group, minlength=density.sizes[axis])
    lengths = np.bincount(groups, minlength=density.sizes[axis])
    counts = round_lines(inside, lengths, sizes, generator)
    return deal(np.repeat(listed.astype(np.int32), counts), sizes, GOLDEN, generator)


# --- weighted records that agree with known values or a condition

# Fewer weighted records than this that agree with a condition, by their effective number, say too
# little about the other columns: the density answers instead.
ENOUGH = 50


def effective_number(total: FloatArray, squares: FloatArray) -> FloatArray:
    """How many equal weights would say as much, from the sums of weights and of their squares."""
    return np.divide(total**2, squares, out=np.zeros_like(squares), where=squares > 0)


class GivenRows:
    """Weighted records under a condition.

    Parameters
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
    row_weights : ndarray of shape (n_rows,)
        They sum to 1.
    weights : mapping of int to ndarray
        Weight of each code, for the attributes with a condition.
    enough : float, default=`ENOUGH`
        How many records must agree.
    """

    def __init__(
        self,
        rows: CodeArray,
        row_weights: FloatArray,
        weights: Mapping[int, FloatArray],
        enough: float = ENOUGH,
    ) -> None:
        self.rows = rows
        self.enough = enough
        self.row_weights = row_weights
        self.weights = weights
        self._sorted: dict[int, tuple[IntArray, IntArray]] = {}

    def draw(self, known: CodeArray, generator: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Positions of records that agree with each row of known codes, drawn by weight.

        Parameters
        ----------
        known : ndarray of int, shape (n_wanted, n_attributes)
            Codes, -1 where they are unknown.
        generator : numpy.random.Generator

        Returns
        -------
        position : ndarray of int, shape (n_wanted,)
            -1 where fewer records than enough agree, by their effective number.
        chance : ndarray of float, shape (n_wanted,)
            Total weight of those that agree; 0 where the position is -1.
        """
        position = np.full(len(known), -1, dtype=np.int64)
        chance = np.zeros(len(known))
        u = generator.random(len(known))
        for wanted, order, mass, first, stop, total in self._agreeing(known):
            drawn = draw_in_ranges(mass, first, stop, u[wanted])
            position[wanted], chance[wanted] = order[drawn], total
        return position, chance

    def chance(self, known: CodeArray) -> FloatArray:
        """Total weight of the records that agree with each row; 0 where they are too few."""
        chance = np.zeros(len(known))
        for wanted, *_, total in self._agreeing(known):
            chance[wanted] = total
        return chance

    def _agreeing(
        self, known: CodeArray
    ) -> Iterator[tuple[IntArray, IntArray, FloatArray, IntArray, IntArray, FloatArray]]:
        """For each pattern of known attributes: rows wanted, and the records that serve them.

        The records are ordered so that those of a row are neighbours, ``first`` to ``stop``.
        """
        for told, wanted in patterns(known >= 0):
            axes = np.flatnonzero(told)
            weights = {axis: each for axis, each in self.weights.items() if not told[axis]}
            live = self._candidates(known[wanted], axes)
            if len(live) < self.enough:
                continue
            mass = product_of_weights(self.rows[live], self.row_weights[live], weights)
            sizes = [int(self.rows[:, axis].max()) + 2 for axis in axes]
            mine, others = shared_keys(
                self.rows[np.ix_(live, axes)],
                np.minimum(known[np.ix_(wanted, axes)], np.array(sizes, dtype=np.int64) - 1),
                sizes,
            )
            order = np.argsort(mine, kind="stable")
            first = np.searchsorted(mine[order], others, side="left")
            stop = np.searchsorted(mine[order], others, side="right")
            mass = mass[order]
            total, squares = running_sums(mass), running_sums(mass**2)
            total, squares = total[stop] - total[first], squares[stop] - squares[first]
            serves = (stop - first >= self.enough) & (
                effective_number(total, squares) >= self.enough
            )
            if serves.any():
                yield (
                    wanted[serves],
                    live[order],
                    mass,
                    first[serves],
                    stop[serves],
                    total[serves],
                )

    def _candidates(self, known: CodeArray, axes: IntArray) -> IntArray:
        """Records that agree in each attribute by itself with some row, the few that remain."""
        wanted = {int(axis): np.unique(known[:, axis].astype(np.int64)) for axis in axes}
        for axis in wanted:
            if axis not in self._sorted:
                order = np.argsort(self.rows[:, axis], kind="stable")
                self._sorted[axis] = order, running_sums(np.bincount(self.rows[:, axis]))
        runs = {axis: self._runs(axis, codes) for axis, codes in wanted.items()}
        live = np.arange(len(self.rows))
        # The rarest first, from its sorted records: what remains is small at once.
        for axis in sorted(runs, key=lambda each: (runs[each][1] - runs[each][0]).sum()):
            if len(live) == len(self.rows):
                order = self._sorted[axis][0]
                parts = [order[a:b] for a, b in zip(*runs[axis], strict=True)]
                live = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
            else:
                codes = wanted[axis]
                present = np.zeros(int(max(codes[-1], self.rows[live, axis].max())) + 1, bool)
                present[codes] = True
                live = live[present[self.rows[live, axis]]]
            if len(live) < self.enough:
                break
        return live

    def _runs(self, axis: int, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Where the records of some codes begin and end among those sorted by an attribute."""
        reach = self._sorted[axis][1]
        last = len(reach) - 1
        return reach[np.minimum(codes, last)], reach[np.minimum(codes + 1, last)]
