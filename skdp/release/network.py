"""NetworkModel: a released Bayesian network as a model of the records.

Queries are answered exactly as long as eliminating the other attributes needs tables of affordable
size (`NetworkModel.joint`). Beyond that, they are answered from 131,072 records drawn from the
network (`DrawsRecords`): a share p then has a standard deviation of at most 0.0014 of the records.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import CodeArray, FloatArray, IntArray
from ..domain.query import Query, Weights
from .files import Arrays, Facts, as_probabilities, demand, packed, unpacked
from .marginals import inverse_rows
from .model import Release, added, by_attributes, product_of_weights, under
from .sampling import DrawsRecords

# Numbers held at once while a batch of queries is answered.
_CHUNK = 1 << 21
# Largest number of cells of all tables together while attributes are eliminated: 32 MB.
MOST_CELLS = 1 << 22

# Why nothing is said of errors.
_WHY = (
    "the noise of its tables is known, but not how far its independence assumptions are from the "
    "records"
)
_NO_ERRORS = (
    f"Answers of a Bayesian network are estimated and have no error bars: {_WHY}. Ask for the "
    "plain count, or release with MarginalSynthesizer, which publishes error bars."
)


@dataclass(frozen=True)
class Conditional:
    """Probabilities of the codes of an attribute, given groups of the codes of its parents.

    Attributes
    ----------
    axis : int
        Position of the attribute.
    parents : tuple of int
        Positions of its parents.
    groups : tuple of (ndarray of int64, or None)
        Group of each code of each parent, numbered from 0 without gaps; None: its codes.
    table : ndarray of float64, shape (n_groups, size)
        One row for each combination of the parents' groups, in lexicographic order. Rows sum to 1.
    """

    axis: int
    parents: tuple[int, ...]
    groups: tuple[IntArray | None, ...]
    table: FloatArray

    def sizes(self, shape: Sequence[int]) -> list[int]:
        """Number of groups of each parent."""
        return [
            shape[parent] if group is None else int(group.max()) + 1
            for parent, group in zip(self.parents, self.groups, strict=True)
        ]


class Factor(NamedTuple):
    """A table over the codes of some attributes, ascending."""

    axes: tuple[int, ...]
    values: FloatArray


class NetworkModel(DrawsRecords, Release):
    """A released Bayesian network as a model of the records; see `Release`.

    A record's probability is the product of those of each attribute's code given the codes, or
    groups of codes, of its parents.

    Parameters
    ----------
    shape : sequence of int
        Number of codes of each attribute.
    nodes : sequence of Conditional
        One for each attribute, after those of its parents.
    total : float
        Estimated number of records; it may be negative.

    Raises
    ------
    ValueError
        If an attribute has no node or several, a parent comes later, or a table does not fit.
    """

    kind: ClassVar[str] = "network"

    def __init__(self, shape: Sequence[int], nodes: Sequence[Conditional], total: float) -> None:
        self.total = float(total)
        self.shape = tuple(int(size) for size in shape)
        self.nodes = {node.axis: node for node in nodes}
        if sorted(node.axis for node in nodes) != list(range(len(self.shape))):
            raise ValueError("A network needs one node for each attribute.")
        known: set[int] = set()
        for node in nodes:
            if not known.issuperset(node.parents) or len(set(node.parents)) < len(node.parents):
                raise ValueError("The parents of a node must come before it, each once.")
            known.add(node.axis)
            rows = math.prod(node.sizes(self.shape))
            if node.table.shape != (rows, self.shape[node.axis]):
                raise ValueError(f"The table of attribute {node.axis} has the wrong shape.")

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Attributes of every edge: (parent, child)."""
        return [(parent, node.axis) for node in self.nodes.values() for parent in node.parents]

    @property
    def about(self) -> str:
        """What was released, in words."""
        return (
            f"noisy tables of a network with {len(self.pairs):,} links between columns; answers "
            f"are estimated and have no error bars: {_WHY}"
        )

    def answer(self, queries: Sequence[Query]) -> FloatArray:
        """Expected counts under the weights, one for each query."""
        return added(queries, self._answer)

    def _answer(self, queries: Sequence[Weights]) -> FloatArray:
        shares = np.ones(len(queries))
        for axes, members in by_attributes(queries).items():
            joint = self.joint(axes) if axes and len(members) > 1 else None
            if joint is None:
                shares[members] = [self._share(queries[place]) for place in members]
                continue
            step = max(1, _CHUNK * len(joint) // joint.size)
            for part in (members[at : at + step] for at in range(0, len(members), step)):
                asked = [np.stack([queries[i][axis] for i in part], axis=1) for axis in axes]
                shares[part] = under(joint, asked)
        return self.total * shares

    def _share(self, weights: Weights) -> float:
        exact = self.joint((), weights)
        if exact is not None:
            return float(exact)
        rows = self.drawn[0]
        return float(product_of_weights(rows.codes, rows.weights, weights).sum())

    @property
    def covers(self) -> str:
        """Refuse: nothing in the release says how far the network is from the records."""
        raise ValueError(_NO_ERRORS)

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Refuse, as `covers`."""
        raise ValueError(_NO_ERRORS)

    def from_uniform(self, u: FloatArray) -> tuple[CodeArray, list[IntArray]]:
        """Records, parents first, and the cell of each in the tables of attributes with parents."""
        codes, cells = np.zeros((len(u), len(self.shape)), dtype=np.int32, order="F"), []
        for axis, node in self.nodes.items():
            rows = self.rows_of(node, codes)
            codes[:, axis] = inverse_rows(node.table, rows, u[:, axis])
            if node.parents:
                cells.append(rows * self.shape[axis] + codes[:, axis])
        return codes, cells

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Expected counts for every combination of the codes of some attributes."""
        joint = self.joint(axes)
        return self.total * (self.drawn[0].table(axes) if joint is None else joint)

    def ancestors(self, axes: Collection[int]) -> list[int]:
        """The attributes and everything above them, parents first."""
        found = set(axes)
        for axis in reversed(self.nodes):
            if axis in found:
                found.update(self.nodes[axis].parents)
        return [axis for axis in self.nodes if axis in found]

    # ---------------------------------------------------------------- distributions

    def joint(self, axes: Sequence[int], weights: Weights | None = None) -> FloatArray | None:
        """Expected product of weights, for every combination of the codes of some attributes.

        Parameters
        ----------
        axes : sequence of int
            Attributes of the result, distinct; without any the result is a single number.
        weights : mapping of int to ndarray of shape (size,), default=None
            Weights of the codes of attributes; without any the result is their distribution.

        Returns
        -------
        ndarray of float64, one axis for each of ``axes``; None
            None where the tables would have more than `MOST_CELLS` cells.
        """
        weights = weights or {}
        wanted = self.ancestors([*axes, *weights])
        scopes = [{axis, *self.nodes[axis].parents} for axis in wanted]
        order = _elimination_order(scopes, [a for a in wanted if a not in axes], self.shape)
        if order is None or math.prod(self.shape[axis] for axis in axes) > MOST_CELLS:
            return None
        left = [self._factor(self.nodes[axis], weights.get(axis)) for axis in wanted]
        for axis in order:
            whole = _product([each for each in left if axis in each.axes])
            left = [each for each in left if axis not in each.axes]
            others = tuple(other for other in whole.axes if other != axis)
            left.append(Factor(others, whole.values.sum(axis=whole.axes.index(axis))))
        result = _product(left)
        return result.values.transpose([result.axes.index(axis) for axis in axes])

    def _factor(self, node: Conditional, weights: FloatArray | None) -> Factor:
        """A node's probabilities, times weights, over the codes of it and its parents."""
        table = node.table if weights is None else node.table * weights
        values = table.reshape(*node.sizes(self.shape), -1)
        for place, group in enumerate(node.groups):
            if group is not None:
                values = np.take(values, group, axis=place)
        axes = (*node.parents, node.axis)
        order = np.argsort(axes)
        return Factor(tuple(axes[place] for place in order), values.transpose(order))

    # ---------------------------------------------------------------- records

    def rows_of(self, node: Conditional, codes: CodeArray) -> IntArray:
        """Row of a node's table for each record, from the codes of its parents."""
        row = np.zeros(len(codes), dtype=np.int64)
        sizes = node.sizes(self.shape)
        for parent, group, size in zip(node.parents, node.groups, sizes, strict=True):
            code = codes[:, parent]
            row = row * size + (code if group is None else group[code])
        return row

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        nodes = [vars(node) for node in self.nodes.values()]
        return packed({"total": self.total, "nodes": nodes})

    @classmethod
    def from_arrays(cls, shape: tuple[int, ...], facts: Facts, arrays: Arrays) -> NetworkModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        total, nodes = float(facts["total"]), []
        demand(math.isfinite(total), "the total is not finite")
        for node in unpacked(facts["nodes"], arrays):
            axis, parents = operator.index(node["axis"]), tuple(node["parents"])
            for parent, group in zip(parents, node["groups"], strict=True):
                if group is not None:
                    every = np.arange(int(group.max(initial=-1)) + 1)
                    fits = group.shape == (shape[parent],) and set(every) == set(group.tolist())
                    demand(fits, "groups do not fit")
            table = as_probabilities(node["table"])
            nodes.append(Conditional(axis, parents, tuple(node["groups"]), table))
        return cls(shape, nodes, total)


def _elimination_order(
    scopes: Sequence[set[int]], hidden: Sequence[int], sizes: Sequence[int]
) -> list[int] | None:
    """Order in which attributes are eliminated, the smallest table first.

    Parameters
    ----------
    scopes : sequence of set of int
        Attributes of each table.
    hidden : sequence of int
        Attributes to be eliminated.
    sizes : sequence of int
        Number of codes of each attribute.

    Returns
    -------
    list of int, or None
        None where the tables would have more than `MOST_CELLS` cells.
    """

    def size(scope: set[int]) -> int:
        return math.prod(sizes[axis] for axis in scope)

    cells = sum(map(size, scopes))
    near = {axis: set().union(*(scope for scope in scopes if axis in scope)) for axis in hidden}
    order: list[int] = []
    while near and cells <= MOST_CELLS:
        costs = {axis: size(scope) for axis, scope in near.items()}
        axis = min(costs, key=lambda each: (costs[each], each))
        cells += costs[axis]
        order.append(axis)
        others = near.pop(axis) - {axis}
        for other in others & near.keys():
            near[other] = (near[other] | others) - {axis}
    return order if cells <= MOST_CELLS else None


def _product(factors: Sequence[Factor]) -> Factor:
    """Product of tables, over the attributes of all."""
    axes = sorted({axis for each in factors for axis in each.axes})
    aligned = (
        np.expand_dims(each.values, [i for i, axis in enumerate(axes) if axis not in each.axes])
        for each in factors
    )
    return Factor(tuple(axes), reduce(np.multiply, aligned, np.ones(())))
