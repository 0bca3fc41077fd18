"""The released forest: views of single attributes and of pairs, joined by conditional independence.

A forest has one node for each attribute and one edge for each pair whose joint view was released.
Attributes are independent given those between them, so that the density is

    ``prod mu_j(x_j)  *  prod T_ab(x_a, x_b) / (mu_a(x_a) mu_b(x_b))``

over nodes and edges. The answer to any conjunction of conditions follows exactly by passing
messages along the edges, in time that grows with the sizes of the views and never with the domain.
Where more pairs were released than a forest can hold, the model carries weighted records too: a
sample of the forest whose weights agree with all released views.

The module reaches neither rows nor exact counts: everything in it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import ndtri

from ._archive import TupleKeys
from .domain import Domain

__all__ = ["Error", "ErrorBars", "Forest", "ForestModel", "MixtureModel", "PairTable", "couple"]

Weights = Mapping[int, np.ndarray]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Numbers held at once while a batch of queries is answered.
_CHUNK = 1 << 21
# A table of two attributes is formed over weighted records up to this many cells.
_DENSE_CELLS = 1 << 20
# Cells of a released view that `to_frame` lists.
_MAX_LISTED = 5_000_000
# Probabilities in a file may miss their sum by rounding.
_ROUNDING = 1e-6


class Error(NamedTuple):
    """Error of one answer: its standard deviation, reach of the interval, and its meaning."""

    std: float
    below: float
    above: float
    guarantee: str


def couple(table: Floats, rows: Floats, columns: Floats, rounds: int = 20) -> Floats:
    """Scale a table until its margins are as given, exactly and without negative cells.

    Iterative proportional fitting comes close; then rows and columns that are too heavy are
    scaled down and what is missing is added as an outer product, which makes both margins exact
    whatever the table was.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        Not negative.
    rows, columns : ndarray of shape (m,), (n,)
        Wanted margins, not negative, with equal sums.
    rounds : int, default=20
        Of the fitting.

    Returns
    -------
    ndarray of float64, shape (m, n)

    References
    ----------
    J. Altschuler, J. Weed, P. Rigollet, "Near-linear time approximation algorithms for optimal
    transport via Sinkhorn iteration", NeurIPS 2017 (the last step).
    """
    fitted = np.array(table, dtype=np.float64)
    for _ in range(rounds):
        fitted *= _ratio(rows, fitted.sum(axis=1))[:, None]
        fitted *= _ratio(columns, fitted.sum(axis=0))[None, :]
    fitted *= np.minimum(_ratio(rows, fitted.sum(axis=1)), 1.0)[:, None]
    fitted *= np.minimum(_ratio(columns, fitted.sum(axis=0)), 1.0)[None, :]
    below = np.maximum(rows - fitted.sum(axis=1), 0.0)
    right = np.maximum(columns - fitted.sum(axis=0), 0.0)
    missing = right.sum()
    if missing > 0:
        fitted += np.outer(below, right / missing)
    return fitted


def _ratio(wanted: Floats, found: Floats) -> Floats:
    return np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)


def group_sums(values: Floats, groups: Ints | None, n_groups: int) -> Floats:
    """Sums of ``values`` over the groups of codes; without groups the values themselves."""
    if groups is None:
        return values
    sums: Floats = np.bincount(groups, weights=values, minlength=n_groups).astype(
        np.float64, copy=False
    )
    return sums


@dataclass(frozen=True)
class PairTable:
    """The joint view of two attributes.

    Attributes
    ----------
    axes : tuple of two int
        Positions of the attributes.
    table : ndarray of float64
        Probabilities of the pairs of groups of codes, one axis for each attribute. They sum to 1.
    """

    axes: tuple[int, int]
    table: Floats


@dataclass(frozen=True)
class ErrorBars:
    """What was published about the errors of a declared class of queries.

    Attributes
    ----------
    level : float
        Which quantile of the absolute errors was published.
    reach : float
        The published quantile with the margin for its own noise: in records if ``scaled`` is
        False, else in multiples of `spread`.
    scaled : bool
        Whether the errors were divided by `spread` first.
    confidence : float
        Probability that the margin was wide enough.
    n_queries : int
        Size of the class.
    text : str
        The class in words.
    simulated : bool, default=False
        Whether ``reach`` is twice the quantile that noise alone causes, on records drawn from the
        release, moved by no more than it takes to agree with the published quantile.
    """

    level: float
    reach: float
    scaled: bool
    confidence: float
    n_queries: int
    text: str
    simulated: bool = False

    # Scaled errors are counted in whole sixteenths, so that they stay integers.
    UNIT: ClassVar[int] = 16
    # Smallest spread is 1/5: the number of units a record can move a scaled error.
    MOST: ClassVar[int] = 5 * UNIT

    @classmethod
    def factors(cls, answers: Floats, total: float) -> Ints:
        """Integer factors that make errors of large and small answers comparable.

        The factor of an answer with the share p of all records is 16 / s rounded down, where
        ``s = 2 sqrt(max(p (1 - p), 0.01))`` is between 1/5 and 1.
        """
        p = np.clip(answers / max(total, 1.0), 0.0, 1.0)
        s = 2.0 * np.sqrt(np.maximum(p * (1.0 - p), 0.01))
        return np.clip(np.floor(cls.UNIT / s + 1e-9).astype(np.int64), cls.UNIT, cls.MOST)

    def half_width(self, answer: float, total: float, level: float) -> float:
        """Half of the interval round an answer."""
        width = self.reach
        if self.scaled:
            width /= float(self.factors(np.array([answer]), total)[0])
        # Errors were measured after rounding the answers to integers.
        width += 0.5
        if level > self.level:
            # The published quantile continued with the tail of a Laplace law.
            width *= math.log(1.0 - level) / math.log(1.0 - self.level)
        return width

    def guarantee(self, level: float) -> str:
        """What an interval covers, in words."""
        if self.simulated:
            text = (
                f"Of {self.text}, intervals made like this one are meant to contain the true "
                f"answer in {100 * self.level:g}% on average over that class. They reach twice as "
                "far as the errors that noise alone causes on records drawn from the release, "
                "within what a published quantile of the true errors leaves possible with "
                f"probability {100 * self.confidence:g}%. A misfit of the model too small to show "
                "in that quantile may exceed them. For other queries, and for one query by "
                "itself, this is a guide and not a promise."
            )
        else:
            text = self._promise()
        if level > self.level:
            text += (
                f" The release publishes the {100 * self.level:g}% quantile only; the interval at "
                f"{100 * level:g}% continues it with the tail of a Laplace law and is not "
                "guaranteed."
            )
        elif level < self.level:
            text += f" {100 * level:g}% was asked for; the interval is that of the higher level."
        return text

    def _promise(self) -> str:
        return (
            f"Of {self.text}, intervals made like this one contain the true answer in at least "
            f"{100 * self.level:g}% on average over that class, with probability "
            f"{100 * self.confidence:g}% over the noise of the published error quantile. They "
            "cover noise and misfit of the model together. For other queries, and for one query "
            "by itself, this is a guide and not a promise."
        )


class Forest:
    """A density over the domain: attributes joined by released pair tables without a cycle.

    Parameters
    ----------
    marginals : sequence of ndarray
        Probability of each code, one vector for each attribute.
    edges : sequence of PairTable
        No cycle among them; their margins are the grouped marginals.
    groups : mapping of int to ndarray of int
        Group of each code, for the attributes whose codes the pair tables do not tell apart.

    Raises
    ------
    ValueError
        If the edges have a cycle or the sizes do not fit.
    """

    def __init__(
        self,
        marginals: Sequence[Floats],
        edges: Sequence[PairTable] = (),
        groups: Mapping[int, Ints] | None = None,
    ) -> None:
        self.marginals = [np.asarray(mu, dtype=np.float64) for mu in marginals]
        self.groups = {} if groups is None else dict(groups)
        self.edges = list(edges)
        self.sizes = [
            int(self.groups[axis].max()) + 1 if axis in self.groups else len(mu)
            for axis, mu in enumerate(self.marginals)
        ]
        self.grouped = [
            group_sums(mu, self.groups.get(axis), size)
            for axis, (mu, size) in enumerate(zip(self.marginals, self.sizes, strict=True))
        ]
        self._means: dict[int, csr_matrix] = {}
        neighbours: list[list[tuple[int, Floats]]] = [[] for _ in self.marginals]
        for edge in self.edges:
            a, b = edge.axes
            if edge.table.shape != (self.sizes[a], self.sizes[b]):
                raise ValueError(f"The table of the attributes {a} and {b} has the wrong shape.")
            neighbours[a].append((b, edge.table))
            neighbours[b].append((a, edge.table.T))
        n = len(self.marginals)
        self.parent = np.full(n, -1, dtype=np.int64)
        self.root = np.arange(n)
        # conditional[j]: probability of each group of j (columns) given the parent's (rows).
        self.conditional: list[Floats | None] = [None] * n
        self.order: list[int] = []
        seen = np.zeros(n, dtype=bool)
        for start in range(n):
            if seen[start]:
                continue
            seen[start] = True
            queue = [start]
            for node in queue:
                for other, table in neighbours[node]:
                    if other == self.parent[node]:
                        continue
                    if seen[other]:
                        raise ValueError("The pair tables of a forest must not form a cycle.")
                    seen[other] = True
                    self.parent[other], self.root[other] = node, start
                    mass = table.sum(axis=1)
                    # Where the parent never is, nothing is known of the child but its own view.
                    self.conditional[other] = np.where(
                        mass[:, None] > 0,
                        table / np.where(mass > 0, mass, 1.0)[:, None],
                        self.grouped[other][None, :],
                    )
                    queue.append(other)
            self.order += queue

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_means": {}}

    def lift(self, axis: int, weights: Floats) -> Floats:
        """Mean weight of the codes in each group, (n_groups, n_queries)."""
        groups = self.groups.get(axis)
        if groups is None:
            return weights
        if axis not in self._means:
            mass = self.grouped[axis]
            inside = np.where(mass[groups] > 0, self.marginals[axis], 1.0)
            inside /= np.bincount(groups, weights=inside)[groups]
            self._means[axis] = csr_matrix((inside, (groups, np.arange(len(groups)))))
        return self._means[axis] @ weights

    def expectation(self, axes: Sequence[int], weights: Mapping[int, Floats]) -> Floats:
        """Expected product of weights of the given attributes.

        Parameters
        ----------
        axes : sequence of int
        weights : mapping of int to ndarray of shape (size, n_queries)

        Returns
        -------
        ndarray of float64, shape (n_queries,)
        """
        n_queries = next(iter(weights.values())).shape[1]
        result = np.ones(n_queries)
        message: dict[int, Floats] = {}
        gathered: dict[int, int] = {}
        wanted: dict[int, int] = {}
        for axis in axes:
            message[axis] = self.lift(axis, weights[axis])
            gathered[axis] = 1
            root = int(self.root[axis])
            wanted[root] = wanted.get(root, 0) + 1
        # From the leaves upward, to the node where the conditions of a component meet.
        for node in reversed(self.order):
            if node not in message:
                continue
            if gathered[node] == wanted[int(self.root[node])]:
                result *= self.grouped[node] @ message[node]
                continue
            conditional = self.conditional[node]
            assert conditional is not None  # a root has gathered everything below it
            above = int(self.parent[node])
            passed = conditional @ message.pop(node)
            message[above] = message[above] * passed if above in message else passed
            gathered[above] = gathered.get(above, 0) + gathered[node]
        return result

    def pair(self, a: int, b: int) -> Floats:
        """Joint probabilities of the groups of two attributes, (n_groups_a, n_groups_b)."""
        if self.root[a] != self.root[b]:
            return np.outer(self.grouped[a], self.grouped[b])
        lines = []
        for axis in (a, b):
            line = [axis]
            while self.parent[line[-1]] >= 0:
                line.append(int(self.parent[line[-1]]))
            lines.append(line)
        common = set(lines[0]) & set(lines[1])
        down = []
        for line in lines:
            path = [node for node in line if node not in common]
            matrix: Floats | None = None
            for node in reversed(path):
                step = self.conditional[node]
                assert step is not None
                matrix = step if matrix is None else matrix @ step
            down.append((matrix, line[len(path)]))
        (left, meeting), (right, _) = down
        joint = np.diag(self.grouped[meeting]) if left is None else left.T * self.grouped[meeting]
        return joint if right is None else joint @ right

    def expand(self, axis: int, table: Floats, position: int) -> Floats:
        """Spread the groups of one axis of a table over their codes."""
        groups = self.groups.get(axis)
        if groups is None:
            return table
        mass = self.grouped[axis]
        size = np.bincount(groups, minlength=self.sizes[axis])
        share = np.where(
            mass[groups] > 0,
            self.marginals[axis] / np.where(mass > 0, mass, 1.0)[groups],
            1.0 / size[groups],
        )
        shape = [1] * table.ndim
        shape[position] = len(share)
        return np.take(table, groups, axis=position) * share.reshape(shape)

    def sample(self, n_samples: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """Draw records, each attribute given its parent; (n_samples, n_attributes) codes."""
        n = len(self.marginals)
        group = np.zeros((n, n_samples), dtype=np.int64)
        codes = np.empty((n_samples, n), dtype=np.int32, order="F")
        for node in self.order:
            u = generator.random(n_samples)
            conditional = self.conditional[node]
            if conditional is None:
                group[node] = _inverse(self.grouped[node], u)
            else:
                group[node] = _inverse_rows(conditional, group[self.parent[node]], u)
            if node in self.groups:
                codes[:, node] = self._inside(node, group[node], generator.random(n_samples))
            else:
                codes[:, node] = group[node]
        return codes

    def _inside(self, axis: int, drawn: Ints, u: Floats) -> Ints:
        """Codes drawn inside the groups, from uniform numbers."""
        groups = self.groups[axis]
        order = np.argsort(groups, kind="stable")
        mass = self.marginals[axis]
        inside = np.where(self.grouped[axis][groups] > 0, mass, 1.0)[order]
        reach = np.concatenate([[0.0], np.cumsum(inside)])
        first = np.searchsorted(groups[order], np.arange(self.sizes[axis] + 1))
        low, high = reach[first[drawn]], reach[first[drawn + 1]]
        position = np.searchsorted(reach, low + u * (high - low), side="right") - 1
        return order[np.clip(position, first[drawn], first[drawn + 1] - 1)]


def _inverse(probabilities: Floats, u: Floats) -> Ints:
    """Positions drawn with the given probabilities, from uniform numbers."""
    reach = np.cumsum(probabilities)
    last = int(np.flatnonzero(probabilities > 0)[-1])
    return np.minimum(np.searchsorted(reach / reach[-1], u, side="right"), last)


def _inverse_rows(table: Floats, rows: Ints, u: Floats) -> Ints:
    """Positions drawn with the probabilities in one row each of a table."""
    reach = np.cumsum(table, axis=1)
    reach /= reach[:, -1:]
    # One sorted line of all rows: row r lies between r and r + 1.
    line = (reach + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(line, rows + u, side="right") - rows * table.shape[1]
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    return np.clip(found, 0, last[rows])


class ForestModel(TupleKeys):
    """The released views as a model of the records; see `skdp.synopsis.Model`.

    Parameters
    ----------
    forest : Forest
    total : float
        Estimated number of records; it may be negative.
    extra : sequence of PairTable, default=()
        Released pairs beyond the forest.
    rows : ndarray of int32, shape (n_rows, n_attributes), default=None
        Weighted records that agree with all released views; needed with ``extra``.
    row_weights : ndarray of float64, shape (n_rows,), default=None
        They sum to 1.
    error_bars : ErrorBars, default=None
        Without them there are no intervals.
    budget : mapping of str to float, default=None
        How epsilon was divided, for the record.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    kind: ClassVar[str] = "forest"

    def __init__(
        self,
        forest: Forest,
        total: float,
        *,
        extra: Sequence[PairTable] = (),
        rows: NDArray[np.int32] | None = None,
        row_weights: Floats | None = None,
        error_bars: ErrorBars | None = None,
        budget: Mapping[str, float] | None = None,
    ) -> None:
        self.forest = forest
        self.extra = list(extra)
        self.rows = rows
        self.row_weights = row_weights
        self.error_bars = error_bars
        self.budget = dict(budget or {})
        self._total = float(total)
        self.shape = tuple(len(mu) for mu in forest.marginals)
        self._tables = {pair.axes: pair.table for pair in [*forest.edges, *self.extra]}
        if self.extra and (rows is None or row_weights is None):
            raise ValueError("Pairs beyond a forest need weighted records.")
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
        """Attributes of the released pairs, those of the forest first."""
        return list(self._tables)

    # -- answers

    def answer(self, queries: Sequence[Weights]) -> Floats:
        """Expected counts under the weights, one for each query."""
        answers = np.empty(len(queries))
        by_axes: dict[tuple[int, ...], list[int]] = {}
        for position, weights in enumerate(queries):
            by_axes.setdefault(tuple(sorted(weights)), []).append(position)
        for axes, members in by_axes.items():
            widest = max([1, *(self.shape[axis] for axis in axes)])
            step = max(1, _CHUNK // widest)
            for first in range(0, len(members), step):
                part = members[first : first + step]
                stacked = {
                    axis: np.stack([queries[i][axis] for i in part], axis=1) for axis in axes
                }
                answers[part] = self._shares(axes, stacked, len(part))
        return self._total * answers

    def _shares(self, axes: tuple[int, ...], weights: dict[int, Floats], n: int) -> Floats:
        """Share of the records under queries on the same attributes."""
        if not axes:
            return np.ones(n)
        if self.rows is None or len(axes) == 1 or axes in self._tables:
            if axes in self._tables:
                a, b = (self.forest.lift(axis, weights[axis]) for axis in axes)
                return np.einsum("iq,iq->q", a, self._tables[axes] @ b)
            return self.forest.expectation(axes, weights)
        if len(axes) == 2 and self.shape[axes[0]] * self.shape[axes[1]] <= _DENSE_CELLS:
            table = self._row_table(axes)
            return np.einsum("iq,iq->q", weights[axes[0]], table @ weights[axes[1]])
        assert self.row_weights is not None
        shares = np.empty(n)
        for query in range(n):
            product = self.row_weights
            for axis in axes:
                product = product * weights[axis][self.rows[:, axis], query]
            shares[query] = product.sum()
        return shares

    def _row_table(self, axes: Sequence[int]) -> Floats:
        assert self.rows is not None
        sizes = [self.shape[axis] for axis in axes]
        cell = np.ravel_multi_index([self.rows[:, axis] for axis in axes], sizes)
        sums = np.bincount(cell, weights=self.row_weights, minlength=math.prod(sizes))
        return sums.reshape(sizes).astype(np.float64, copy=False)

    def error(self, weights: Weights, level: float) -> Error:
        """Interval from the published quantile of the errors."""
        return _interval(self.error_bars, float(self.answer([weights])[0]), self._total, level)

    # -- other uses

    def sample_codes(self, n_samples: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """Draw records from the forest, or from the weighted records where there are some."""
        if self.rows is None:
            return self.forest.sample(n_samples, generator)
        assert self.row_weights is not None
        return self.rows[_inverse(self.row_weights, generator.random(n_samples))]

    def view(self, axes: Sequence[int]) -> Floats:
        """Expected counts for every combination of the codes of one or two attributes."""
        if len(axes) == 1:
            return self._total * self.forest.marginals[axes[0]]
        a, b = axes
        if a > b:
            return self.view([b, a]).T
        if (a, b) not in self._tables and self.rows is not None:
            return self._total * self._row_table(axes)
        groups = self._tables.get((a, b))
        if groups is None:
            groups = self.forest.pair(a, b)
        return self._total * self.forest.expand(b, self.forest.expand(a, groups, 0), 1)

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
        for axis, mu in enumerate(self.forest.marginals):
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
        groups = self.forest.groups.get(axis)
        if groups is None:
            return labels
        order = np.argsort(groups, kind="stable")
        first = np.searchsorted(groups[order], np.arange(self.forest.sizes[axis] + 1))
        texts = []
        for start, stop in zip(first[:-1], first[1:], strict=True):
            ends = labels[order[start]], labels[order[stop - 1]]
            texts.append(ends[0] if stop == start + 1 else f"{ends[0]} ... {ends[1]}")
        return texts

    # -- files

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts: dict[str, Any] = {
            "total": self._total,
            "edges": [list(pair.axes) for pair in self.forest.edges],
            "extra": [list(pair.axes) for pair in self.extra],
            "grouped": sorted(self.forest.groups),
            "budget": self.budget,
        }
        if self.error_bars is not None:
            facts["error_bars"] = dict(vars(self.error_bars))
        arrays: dict[str, NDArray[Any]] = {"marginals": np.concatenate(self.forest.marginals)}
        pairs = [*self.forest.edges, *self.extra]
        if pairs:
            arrays["tables"] = np.concatenate([pair.table.ravel() for pair in pairs])
        if self.forest.groups:
            arrays["groups"] = np.concatenate(
                [self.forest.groups[axis] for axis in sorted(self.forest.groups)]
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
    ) -> ForestModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        stops = np.cumsum(shape)
        if arrays["marginals"].shape != (stops[-1],):
            raise ValueError("the marginals do not fit the domain")
        marginals = [_probabilities(mu) for mu in np.split(arrays["marginals"], stops[:-1])]
        groups: dict[int, Ints] = {}
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
            pairs.append(PairTable((a, b), _probabilities(table.reshape(sizes[a], sizes[b]))))
        n_edges = len(facts["edges"])
        bars = ErrorBars(**facts["error_bars"]) if "error_bars" in facts else None
        total = float(facts["total"])
        if not math.isfinite(total):
            raise ValueError("the total is not finite")
        rows = row_weights = None
        if "rows" in arrays:
            rows = arrays["rows"].astype(np.int32)
            row_weights = _probabilities(arrays["row_weights"])
        return cls(
            Forest(marginals, pairs[:n_edges], groups),
            total,
            extra=pairs[n_edges:],
            rows=rows,
            row_weights=row_weights,
            error_bars=bars,
            budget=facts["budget"],
        )


class MixtureModel:
    """Sum of models of disjoint parts of the records, one for each code of the label.

    Parameters
    ----------
    models : sequence of ForestModel
        Over the same domain.
    error_bars : ErrorBars, default=None
        For the answers of all together.

    Raises
    ------
    ValueError
        If there is no model or the domains differ.
    """

    kind: ClassVar[str] = "mixture"

    def __init__(
        self, models: Sequence[ForestModel], *, error_bars: ErrorBars | None = None
    ) -> None:
        self.models = list(models)
        if not self.models or len({model.shape for model in self.models}) > 1:
            raise ValueError("A mixture needs at least one model, all over the same domain.")
        self.shape = self.models[0].shape
        self.error_bars = error_bars

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return sum(model.total for model in self.models)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Attributes of the pairs that were released for some part."""
        return list(dict.fromkeys(pair for model in self.models for pair in model.pairs))

    @property
    def budget(self) -> dict[str, dict[str, float]]:
        """How epsilon was divided in each part; a record lies in one of them."""
        return {str(part): model.budget for part, model in enumerate(self.models)}

    def answer(self, queries: Sequence[Weights]) -> Floats:
        """Expected counts under the weights, one for each query."""
        answers = np.zeros(len(queries))
        for model in self.models:
            answers += model.answer(queries)
        return answers

    def error(self, weights: Weights, level: float) -> Error:
        """Interval from the published quantile of the errors."""
        return _interval(self.error_bars, float(self.answer([weights])[0]), self.total, level)

    def sample_codes(self, n_samples: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """Draw records: a part in proportion to its positive total, then from its model."""
        weight = np.maximum([model.total for model in self.models], 0.0)
        if not weight.any():
            weight = np.ones(len(weight))
        numbers = generator.multinomial(n_samples, weight / weight.sum())
        codes = np.concatenate(
            [
                model.sample_codes(int(number), generator)
                for model, number in zip(self.models, numbers, strict=True)
            ]
        )
        return codes[generator.permutation(n_samples)]

    def view(self, axes: Sequence[int]) -> Floats:
        """Expected counts for every combination of the codes of one or two attributes."""
        table = self.models[0].view(axes)
        for model in self.models[1:]:
            table = table + model.view(axes)
        return table

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """All released views, as `ForestModel.to_frame`, with the number of the part before."""
        frames = [model.to_frame(domain) for model in self.models]
        return pd.concat(frames, keys=range(len(frames)), names=["part", None]).reset_index(0)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts: dict[str, Any] = {"parts": []}
        arrays: dict[str, NDArray[Any]] = {}
        for part, model in enumerate(self.models):
            own_facts, own_arrays = model.to_arrays()
            facts["parts"].append(own_facts)
            arrays.update({f"{name}_{part}": array for name, array in own_arrays.items()})
        if self.error_bars is not None:
            facts["error_bars"] = dict(vars(self.error_bars))
        return facts, arrays

    @classmethod
    def from_arrays(
        cls,
        shape: tuple[int, ...],
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> MixtureModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        models = []
        for part, own_facts in enumerate(facts["parts"]):
            own = {
                name.removesuffix(f"_{part}"): array
                for name, array in arrays.items()
                if name.endswith(f"_{part}")
            }
            models.append(ForestModel.from_arrays(shape, own_facts, own))
        bars = ErrorBars(**facts["error_bars"]) if "error_bars" in facts else None
        return cls(models, error_bars=bars)


def _interval(bars: ErrorBars | None, answer: float, total: float, level: float) -> Error:
    """Interval round an answer from the published quantile of the errors."""
    if bars is None:
        raise ValueError(
            "This release has no error bars: it was made with error_share=0. Ask for the "
            "plain count, or release with a positive error_share."
        )
    half = bars.half_width(answer, total, level)
    std = bars.half_width(answer, total, bars.level) / float(ndtri(0.5 + bars.level / 2))
    return Error(std, half, half, bars.guarantee(level))


def _probabilities(values: NDArray[Any]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError("a probability is negative or not finite")
    if abs(array.sum() - 1.0) > _ROUNDING:
        raise ValueError("the probabilities of a view do not sum to 1")
    return array


def _listed_view(
    first: str, first_labels: Any, second: str, second_labels: Any, counts: Floats
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
