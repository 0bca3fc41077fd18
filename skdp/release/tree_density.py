"""TreeDensity: attributes joined by released pairs, otherwise conditionally independent.

There is one node for each attribute and one edge for each pair whose joint view was released; the
edges form no cycle. Attributes are independent given those between them, so that the density is

    ``prod mu_j(x_j)  *  prod T_ab(x_a, x_b) / (mu_a(x_a) mu_b(x_b))``

over nodes and edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._validation import CodeArray, FloatArray, IntArray, ratio, running_sums

# --- tables with given margins, and sums over groups of codes


def couple(
    table: FloatArray, rows: FloatArray, columns: FloatArray, rounds: int = 20
) -> FloatArray:
    """Scale a table until its margins are exactly the given ones, without negative cells.

    Iterative proportional fitting comes close. Then rows and columns with too large sums are scaled
    down and the remainder is added as an outer product, which makes both margins exact for any
    table.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        Not negative.
    rows, columns : ndarray of shape (m,), (n,)
        The margins to reach, not negative, with equal sums.
    rounds : int, default=20
        Number of rounds of the fitting.

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
        fitted *= ratio(rows, fitted.sum(axis=1))[:, None]
        fitted *= ratio(columns, fitted.sum(axis=0))[None, :]
    fitted *= np.minimum(ratio(rows, fitted.sum(axis=1)), 1.0)[:, None]
    fitted *= np.minimum(ratio(columns, fitted.sum(axis=0)), 1.0)[None, :]
    below = np.maximum(rows - fitted.sum(axis=1), 0.0)
    right = np.maximum(columns - fitted.sum(axis=0), 0.0)
    missing = right.sum()
    if missing > 0:
        fitted += np.outer(below, right / missing)
    return fitted


def group_sums(values: FloatArray, groups: IntArray | None, n_groups: int) -> FloatArray:
    """Sums of ``values`` over the groups of codes; without groups the values themselves."""
    if groups is None:
        return values
    sums: FloatArray = np.bincount(groups, weights=values, minlength=n_groups).astype(
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
    table: FloatArray


class TreeDensity:
    """A density over the domain: attributes joined by released pair tables without a cycle.

    Parameters
    ----------
    marginals : sequence of ndarray
        Probability of each code, one vector for each attribute.
    edges : sequence of PairTable
        No cycle among them; their margins are the grouped marginals.
    groups : mapping of int to ndarray of int
        Group of each code, for the attributes whose codes the pair tables merge.

    Raises
    ------
    ValueError
        If the edges have a cycle or the sizes do not fit.
    """

    def __init__(
        self,
        marginals: Sequence[FloatArray],
        edges: Sequence[PairTable] = (),
        groups: Mapping[int, IntArray] | None = None,
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
        neighbours: list[list[tuple[int, FloatArray]]] = [[] for _ in self.marginals]
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
        self.conditional: list[FloatArray | None] = [None] * n
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
                        raise ValueError("The pair tables of a density must not form a cycle.")
                    seen[other] = True
                    self.parent[other], self.root[other] = node, start
                    mass = table.sum(axis=1)
                    # For parent groups of probability 0, the child follows its own view.
                    self.conditional[other] = np.where(
                        mass[:, None] > 0,
                        table / np.where(mass > 0, mass, 1.0)[:, None],
                        self.grouped[other][None, :],
                    )
                    queue.append(other)
            self.order += queue

    def inside(self, axis: int) -> FloatArray:
        """Probability of each code given its group."""
        groups = self.groups[axis]
        share: FloatArray = np.where(self.grouped[axis][groups] > 0, self.marginals[axis], 1.0)
        return share / np.bincount(groups, weights=share)[groups]

    def pair(self, a: int, b: int) -> FloatArray:
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
            matrix: FloatArray | None = None
            for node in reversed(path):
                step = self.conditional[node]
                assert step is not None
                matrix = step if matrix is None else matrix @ step
            down.append((matrix, line[len(path)]))
        (left, meeting), (right, _) = down
        joint = np.diag(self.grouped[meeting]) if left is None else left.T * self.grouped[meeting]
        return joint if right is None else joint @ right

    def sample(self, n_samples: int, generator: np.random.Generator) -> CodeArray:
        """Draw records, each attribute given its parent; (n_samples, n_attributes) codes."""
        n = len(self.marginals)
        group = np.zeros((n, n_samples), dtype=np.int64)
        codes = np.empty((n_samples, n), dtype=np.int32, order="F")
        for node in self.order:
            u = generator.random(n_samples)
            conditional = self.conditional[node]
            if conditional is None:
                group[node] = inverse(self.grouped[node], u)
            else:
                group[node] = inverse_rows(conditional, group[self.parent[node]], u)
            if node in self.groups:
                codes[:, node] = self.codes_in_groups(
                    node, group[node], generator.random(n_samples)
                )
            else:
                codes[:, node] = group[node]
        return codes

    def codes_in_groups(
        self, axis: int, drawn: IntArray, u: FloatArray, mass: FloatArray | None = None
    ) -> IntArray:
        """Codes of an attribute drawn inside the given groups, from uniform numbers.

        In proportion to ``mass``, or to their probabilities.
        """
        groups, mass = self.groups[axis], self.marginals[axis] if mass is None else mass
        order = np.argsort(groups, kind="stable")
        first = np.searchsorted(groups[order], np.arange(self.sizes[axis] + 1))
        codes: IntArray = order[draw_in_ranges(mass[order], first[drawn], first[drawn + 1], u)]
        return codes


def draw_in_ranges(mass: FloatArray, first: IntArray, stop: IntArray, u: FloatArray) -> IntArray:
    """Positions drawn in proportion to ``mass`` between ``first`` and ``stop``, one for each row.

    A position without mass is never drawn where its range has any; where it has none, all
    positions of the range are equally likely.

    Parameters
    ----------
    mass : ndarray of shape (n_positions,)
        Not negative.
    first, stop : ndarray of int, shape (n_rows,)
        ``first < stop``.
    u : ndarray of shape (n_rows,)
        Uniform in [0, 1).

    Examples
    --------
    >>> mass = np.array([0.0, 0.5, 1.0, 0.0])
    >>> draw_in_ranges(mass, np.array([0, 0, 3]), np.array([2, 4, 4]), np.array([0.9, 0.4, 0.5]))
    array([1, 2, 3])
    """
    reach = running_sums(mass)
    low, high = reach[first], reach[stop]
    found = np.searchsorted(reach, low + u * (high - low), side="right") - 1
    found = np.clip(found, first, stop - 1)
    # Rounding may lead to a neighbour without mass: take the nearest position that has some.
    positions = np.arange(len(mass))
    before = np.maximum.accumulate(np.where(mass > 0, positions, -1))
    after = np.minimum.accumulate(np.where(mass > 0, positions, len(mass))[::-1])[::-1]
    nearest = np.where(before[found] >= first, before[found], after[found])
    evenly = first + np.floor(u * (stop - first)).astype(np.int64)
    chosen: IntArray = np.where(nearest < stop, nearest, np.minimum(evenly, stop - 1))
    return chosen


def inverse(probabilities: FloatArray, u: FloatArray) -> IntArray:
    """Positions drawn with the given probabilities, from uniform numbers."""
    reach = np.cumsum(probabilities)
    last = int(np.flatnonzero(probabilities > 0)[-1])
    return np.minimum(np.searchsorted(reach / reach[-1], u, side="right"), last)


def inverse_rows(table: FloatArray, rows: IntArray, u: FloatArray) -> IntArray:
    """Positions drawn with the probabilities in one row each of a table."""
    reach = np.cumsum(table, axis=1)
    reach /= reach[:, -1:]
    # All rows as one sorted array: row r lies between r and r + 1.
    line = (reach + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(line, rows + u, side="right") - rows * table.shape[1]
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    return np.clip(found, 0, last[rows])
