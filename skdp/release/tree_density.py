"""Records of a tree density given some of their values, or a condition: exact, without rejection.

Messages go up the tree with the weight of everything known below a node; then each attribute is
drawn given its parent and its message. Rows with the same known values below a node share one
message: a table holds the distinct messages of a node, and each row has a position in it. A known
child sends a column of its conditional table, so that nothing dense is multiplied for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._validation import BoolArray, CodeArray, FloatArray, IntArray, ratio, running_sums
from .rounding import codes_under, draw_in_ranges

__all__ = [
    "SOFT",
    "GivenTree",
    "PairTable",
    "TreeDensity",
    "couple",
    "draw_given",
    "inverse",
    "inverse_rows",
]

# --- treeDensity: attributes joined by released pairs, otherwise conditionally independent
#
# There is one node for each attribute and one edge for each pair whose joint view was released; the
# edges form no cycle. Attributes are independent given those between them, so that the density is
#
#     ``prod mu_j(x_j)  *  prod T_ab(x_a, x_b) / (mu_a(x_a) mu_b(x_b))``
#
# over nodes and edges. The answer to any conjunction of conditions follows exactly by passing
# messages along the edges, in time that grows with the sizes of the views and never with the
# domain.

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

    def codes_in_groups(self, axis: int, drawn: IntArray, u: FloatArray) -> IntArray:
        """Codes of an attribute drawn inside the given groups, from uniform numbers."""
        groups = self.groups[axis]
        order = np.argsort(groups, kind="stable")
        mass = self.marginals[axis]
        inside = np.where(self.grouped[axis][groups] > 0, mass, 1.0)[order]
        reach = running_sums(inside)
        first = np.searchsorted(groups[order], np.arange(self.sizes[axis] + 1))
        low, high = reach[first[drawn]], reach[first[drawn + 1]]
        position = np.searchsorted(reach, low + u * (high - low), side="right") - 1
        return order[np.clip(position, first[drawn], first[drawn + 1] - 1)]


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


# Where a condition has probability zero, every table is mixed with this share of independent
# columns, and every view of one column with this share of equally likely codes.
SOFT = 1e-6
# Numbers in the messages that are held at once.
_HELD = 1 << 23


@dataclass
class _Messages:
    """What is known at and below one node: distinct messages, and which of them each row has.

    Attributes
    ----------
    table : ndarray of shape (n_messages, n_groups)
        Likelihood of what is known below for each group of the node; the largest is 1.
    log : ndarray of shape (n_messages,)
        Logarithm of the factor that was taken out.
    row : ndarray of int, shape (n_rows,)
        Message of each row.
    """

    table: FloatArray
    log: FloatArray
    row: IntArray

    @property
    def says_nothing(self) -> bool:
        """Whether nothing is known below the node."""
        return len(self.table) == 1 and not self.log.any() and bool((self.table == 1).all())

    def times(self, other: _Messages) -> _Messages:
        """The product, for each row."""
        if len(self.table) == 1 and len(other.table) == 1:
            return _scaled(self.table * other.table, self.log + other.log, self.row)
        pairs = self.row * len(other.table) + other.row
        distinct, row = np.unique(pairs, return_inverse=True)
        mine, others = np.divmod(distinct, len(other.table))
        return _scaled(
            self.table[mine] * other.table[others],
            self.log[mine] + other.log[others],
            row.reshape(-1),
        )


def _scaled(table: FloatArray, log: FloatArray, row: IntArray) -> _Messages:
    largest = table.max(axis=1)
    divisor = np.where(largest > 0, largest, 1.0)
    return _Messages(table / divisor[:, None], log + np.log(divisor), row)


class GivenTree:
    """Draws from a tree density under weights on the codes of some attributes.

    Parameters
    ----------
    density : TreeDensity
    weights : mapping of int to ndarray, optional
        Weight of each code, for the attributes with a condition.
    soft : bool, default=False
        Mix a share `SOFT` of independent columns into the tables, so that every condition that
        covers a code has a positive probability.
    """

    def __init__(
        self,
        density: TreeDensity,
        weights: Mapping[int, FloatArray] | None = None,
        *,
        soft: bool = False,
    ) -> None:
        self.density = density
        self.weights = {} if weights is None else dict(weights)
        self.top = density.grouped
        self.conditional = density.conditional
        if soft:
            self.top = [(1 - SOFT) * mu + SOFT / len(mu) for mu in density.grouped]
            self.conditional = [
                None if table is None else (1 - SOFT) * table + SOFT * self.top[node][None, :]
                for node, table in enumerate(density.conditional)
            ]
        self._shares: dict[int, FloatArray] = {
            axis: self._code_shares(axis, soft) for axis in density.groups
        }

    def _code_shares(self, axis: int, soft: bool) -> FloatArray:
        """Probability of each code given its group."""
        inside = self.density.inside(axis)
        if soft:
            groups = self.density.groups[axis]
            inside = (1 - SOFT) * inside + SOFT / np.bincount(groups)[groups]
        return inside

    def _group_weights(self, axis: int) -> FloatArray:
        """Mean weight of the codes in each group."""
        if axis not in self.weights:
            return np.ones(self.density.sizes[axis])
        if axis not in self._shares:
            return self.weights[axis]
        sums = np.bincount(
            self.density.groups[axis],
            weights=self._shares[axis] * self.weights[axis],
            minlength=self.density.sizes[axis],
        )
        return sums.astype(np.float64, copy=False)

    def _groups_of(self, known: CodeArray) -> IntArray:
        """Group of each known code, -1 where unknown; one row for each attribute."""
        groups = known.T.astype(np.int64)
        for axis, of_code in self.density.groups.items():
            groups[axis] = np.where(groups[axis] < 0, -1, of_code[groups[axis]])
        return groups

    def _upward(self, group: IntArray) -> list[_Messages]:
        """Messages of all nodes: of a row with a known value there, the message means nothing."""
        n_rows = group.shape[1]
        held = []
        for axis in range(len(group)):
            start = _scaled(
                self._group_weights(axis)[None], np.zeros(1), np.zeros(n_rows, dtype=np.int64)
            )
            held.append(start)
        for node in reversed(self.density.order):
            table = self.conditional[node]
            if table is None:
                continue
            parent = int(self.density.parent[node])
            asking = group[parent] < 0
            if not asking.any():
                continue
            told = asking & (group[node] >= 0)
            if not told.any() and held[node].says_nothing:
                continue
            held[parent] = held[parent].times(self._to_parent(held[node], table, group[node], told))
        return held

    @staticmethod
    def _to_parent(
        own: _Messages, table: FloatArray, group: IntArray, told: BoolArray
    ) -> _Messages:
        """What a node tells its parent, in rows where its value is known and where it is not."""
        passed = own.table @ table.T
        if not told.any():
            return _scaled(passed, own.log, own.row)
        seen = np.unique(group[told])
        place = np.zeros(table.shape[1], dtype=np.int64)
        place[seen] = np.arange(len(seen))
        row = np.where(told, place[np.maximum(group, 0)], own.row + len(seen))
        return _scaled(
            np.concatenate([table.T[seen], passed]),
            np.concatenate([np.zeros(len(seen)), own.log]),
            row,
        )

    def draw(self, known: CodeArray, generator: np.random.Generator) -> tuple[CodeArray, BoolArray]:
        """Fill the unknown values of rows.

        Parameters
        ----------
        known : ndarray of int, shape (n_rows, n_attributes)
            Codes, -1 where they are unknown. Weights of a known attribute are not looked at.
        generator : numpy.random.Generator

        Returns
        -------
        codes : ndarray of int32, shape (n_rows, n_attributes)
        impossible : ndarray of bool, shape (n_rows,)
            Rows whose condition has probability zero; their codes mean nothing.
        """
        n_rows = len(known)
        if not (known >= 0).any():
            return self._draw_part(known, generator)
        step = max(1, _HELD // sum(self.density.sizes))
        parts = [
            self._draw_part(known[start : start + step], generator)
            for start in range(0, max(n_rows, 1), step)
        ]
        return np.concatenate([codes for codes, _ in parts]), np.concatenate(
            [impossible for _, impossible in parts]
        )

    def _draw_part(
        self, known: CodeArray, generator: np.random.Generator
    ) -> tuple[CodeArray, BoolArray]:
        codes = np.array(known, dtype=np.int32, order="F")
        impossible = np.zeros(len(known), dtype=bool)
        group = self._groups_of(known)
        if not len(known):
            return codes, impossible
        held = self._upward(group)
        for node in self.density.order:
            rows = np.flatnonzero(known[:, node] < 0)
            if not len(rows):
                continue
            table, at = self._law(node, held[node], group, rows)
            empty = ~(table.max(axis=1) > 0)
            if empty.any():
                impossible[rows] |= empty[at]
                table = np.where(empty[:, None], 1.0, table)
            drawn = inverse_rows(table, at, generator.random(len(rows)))
            group[node, rows] = drawn
            if node in self._shares:
                drawn = self._code_in_group(node, drawn, generator.random(len(rows)))
            codes[rows, node] = drawn
        return codes, impossible

    def _law(
        self, node: int, own: _Messages, group: IntArray, rows: IntArray
    ) -> tuple[FloatArray, IntArray]:
        """Distinct laws of a node given its parent and all below, and which of them rows have."""
        conditional, message = self.conditional[node], own.row[rows]
        if conditional is None:
            return self.top[node][None] * own.table, message
        above = group[self.density.parent[node], rows]
        if len(own.table) == 1:
            return conditional * own.table, above
        distinct, at = np.unique(above * len(own.table) + message, return_inverse=True)
        of_parent, of_message = np.divmod(distinct, len(own.table))
        return conditional[of_parent] * own.table[of_message], at.reshape(-1)

    def _code_in_group(self, axis: int, group: IntArray, u: FloatArray) -> IntArray:
        """Codes drawn inside groups, in proportion to share and weight."""
        groups = self.density.groups[axis]
        mass = self._shares[axis] * self.weights.get(axis, np.ones(len(groups)))
        order = np.argsort(groups, kind="stable")
        first = np.searchsorted(groups[order], np.arange(self.density.sizes[axis] + 1))
        return order[draw_in_ranges(mass[order], first[group], first[group + 1], u)]

    def posterior(self) -> TreeDensity | None:
        """The density under the weights; None where their probability is zero."""
        density = self.density
        held = self._upward(np.full((len(density.sizes), 1), -1, dtype=np.int64))
        grouped = list(self.top)
        joint: dict[tuple[int, int], FloatArray] = {}
        for node in density.order:
            law, conditional = held[node].table[0], self.conditional[node]
            parent = int(density.parent[node])
            if conditional is None:
                mass = self.top[node] * law
                if not 0 < mass.sum() < np.inf:
                    return None
                grouped[node] = mass / mass.sum()
                continue
            table = conditional * law
            mass = table.sum(axis=1, keepdims=True)
            table = grouped[parent][:, None] * table / np.where(mass > 0, mass, 1.0)
            if not table.sum() > 0:
                return None
            joint[parent, node] = table / table.sum()
            grouped[node] = joint[parent, node].sum(axis=0)
        edges = [
            PairTable((a, b), joint[a, b] if (a, b) in joint else joint[b, a].T)
            for a, b in (edge.axes for edge in density.edges)
        ]
        marginals = [
            mass if axis not in self._shares else mass[density.groups[axis]] * self._inside(axis)
            for axis, mass in enumerate(grouped)
        ]
        return TreeDensity(marginals, edges, density.groups)

    def _inside(self, axis: int) -> FloatArray:
        """Probability of each code given its group and the weights."""
        groups = self.density.groups[axis]
        mass = self._shares[axis] * self.weights.get(axis, 1.0)
        found = np.bincount(groups, weights=mass)
        share: FloatArray = mass / np.where(found > 0, found, 1.0)[groups]
        return share


def draw_given(
    density: TreeDensity,
    known: CodeArray,
    generator: np.random.Generator,
    weights: Mapping[int, FloatArray],
) -> tuple[CodeArray, BoolArray]:
    """Fill the unknown values of rows, also where their condition has probability zero.

    Parameters
    ----------
    density : TreeDensity
    known : ndarray of int, shape (n_rows, n_attributes)
        Codes, -1 where they are unknown.
    generator : numpy.random.Generator
    weights : mapping of int to ndarray

    Returns
    -------
    codes : ndarray of int32, shape (n_rows, n_attributes)
    impossible : ndarray of bool, shape (n_rows,)
        Rows whose condition has probability zero: they follow the tree with a share `SOFT` of
        independent columns.
    """
    codes, impossible = GivenTree(density, weights).draw(known, generator)
    if not impossible.any():
        return codes, impossible
    rows = np.flatnonzero(impossible)
    codes[rows], lost = GivenTree(density, weights, soft=True).draw(known[rows], generator)
    # Hundreds of improbable conditions at once leave the range of floats: independent columns.
    rows = rows[lost]
    for axis, mass in enumerate(density.marginals if len(rows) else ()):
        unknown = rows[known[rows, axis] < 0]
        codes[unknown, axis] = codes_under(mass, weights.get(axis), len(unknown), generator)
    return codes, impossible
