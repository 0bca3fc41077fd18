"""TreeDensity: attributes joined by released pairs, otherwise conditionally independent.

There is one node for each attribute and one edge for each pair whose joint view was released; the
edges form no cycle. Attributes are independent given those between them, so that the density is

    ``prod mu_j(x_j)  *  prod T_ab(x_a, x_b) / (mu_a(x_a) mu_b(x_b))``

over nodes and edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from .._validation import BoolArray, CodeArray, FloatArray, IntArray, ratio
from .model import Weights
from .network import Conditional, NetworkDensity
from .rounding import codes_under, draw_in_ranges

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
        n = len(self.marginals)
        neighbours: list[list[tuple[int, FloatArray]]] = [[] for _ in range(n)]
        for edge in self.edges:
            a, b = edge.axes
            if edge.table.shape != (self.sizes[a], self.sizes[b]):
                raise ValueError(f"The table of the attributes {a} and {b} has the wrong shape.")
            neighbours[a].append((b, edge.table))
            neighbours[b].append((a, edge.table.T))
        self.parent = np.full(n, -1, dtype=np.int64)
        self.root = np.arange(n)
        nodes: list[Conditional] = []
        seen = np.zeros(n, dtype=bool)
        for start in range(n):
            if seen[start]:
                continue
            seen[start] = True
            queue = [start]
            nodes.append(Conditional(start, (), (), self.grouped[start][None]))
            for node in queue:
                for other, table in neighbours[node]:
                    if other == self.parent[node]:
                        continue
                    if seen[other]:
                        raise ValueError("The pair tables of a density must not form a cycle.")
                    seen[other] = True
                    self.parent[other], self.root[other] = node, start
                    mass = table.sum(axis=1, keepdims=True)
                    # For parent groups of probability 0, the child follows its own view.
                    told = np.where(
                        mass > 0, table / np.where(mass > 0, mass, 1.0), self.grouped[other]
                    )
                    nodes.append(Conditional(other, (node,), (None,), told))
                    queue.append(other)
        # Of the groups: a network in which each attribute has at most one parent.
        self.network = NetworkDensity(self.sizes, nodes)

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
            steps = [self.network.nodes[node].table for node in reversed(path)]
            matrix = reduce(np.matmul, steps) if steps else None
            down.append((matrix, line[len(path)]))
        (left, meeting), (right, _) = down
        joint = np.diag(self.grouped[meeting]) if left is None else left.T * self.grouped[meeting]
        return joint if right is None else joint @ right

    def sample(self, n_samples: int, generator: np.random.Generator) -> CodeArray:
        """Draw records, each attribute given its parent; (n_samples, n_attributes) codes."""
        codes = np.empty((n_samples, len(self.marginals)), dtype=np.int32, order="F")
        grouped = np.empty_like(codes)
        for axis in self.network.nodes:
            self.network.fill(grouped, [axis], generator)
            codes[:, axis] = grouped[:, axis]
            if axis in self.groups:
                u = generator.random(n_samples)
                codes[:, axis] = self.codes_in_groups(axis, grouped[:, axis], u)
        return codes

    def sample_given(
        self, known: CodeArray, generator: np.random.Generator, weights: Weights
    ) -> tuple[CodeArray, BoolArray]:
        """Fill the unknown codes of rows; see `NetworkDensity.sample_given`.

        Groups are drawn by the network, and codes inside them.
        """
        grouped, own, mass = np.array(known, dtype=np.int32), dict(weights), {}
        for axis, groups in self.groups.items():
            grouped[:, axis] = np.where(known[:, axis] < 0, -1, groups[known[:, axis]])
            vector = weights.get(axis, np.ones(len(groups)))
            mass[axis] = self.inside(axis) * vector
            if not mass[axis].any():
                mass[axis] = vector / np.bincount(groups)[groups]
            if axis in weights:
                own[axis] = group_sums(mass[axis], groups, self.sizes[axis])
        codes, impossible = self.network.sample_given(grouped, generator, own)
        for axis in self.groups:
            u = generator.random(len(codes))
            codes[:, axis] = self.codes_in_groups(axis, codes[:, axis], u, mass[axis])
        codes = np.where(known < 0, codes, known).astype(np.int32)
        for axis, vector in weights.items():
            # Where all that is possible has probability zero, any group was drawn.
            lost = np.flatnonzero((known[:, axis] < 0) & (vector[codes[:, axis]] <= 0))
            codes[lost, axis] = codes_under(self.marginals[axis], vector, len(lost), generator)
        return codes, impossible

    def codes_in_groups(
        self, axis: int, drawn: NDArray[np.integer], u: FloatArray, mass: FloatArray | None = None
    ) -> IntArray:
        """Codes of an attribute drawn inside the given groups, from uniform numbers.

        In proportion to ``mass``, or to their probabilities.
        """
        groups, mass = self.groups[axis], self.marginals[axis] if mass is None else mass
        order = np.argsort(groups, kind="stable")
        first = np.searchsorted(groups[order], np.arange(self.sizes[axis] + 1))
        codes: IntArray = order[draw_in_ranges(mass[order], first[drawn], first[drawn + 1], u)]
        return codes
