"""A network of attributes as a density over the domain, and draws by probabilities."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from .._validation import (
    CodeArray,
    FloatArray,
    IntArray,
)
from .model import Weights

# --- draws by probabilities


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


# --- NetworkDensity: attributes joined by a Bayesian network
#
# The density is the product of the probabilities of each attribute's code given the codes, or
# groups of codes, of its parents. The distribution of a few attributes follows exactly by
# eliminating the others one by one, each time the one that makes the smallest table. How large
# these tables become is known from the network beforehand; where they would be too large there is
# no exact answer.

# Largest number of cells of all tables together while attributes are eliminated: 32 MB.
MOST_CELLS = 1 << 22


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


class NetworkDensity:
    """A density over the domain: a Bayesian network of the attributes.

    Parameters
    ----------
    shape : sequence of int
        Number of codes of each attribute.
    nodes : sequence of Conditional
        One for each attribute, after those of its parents.

    Raises
    ------
    ValueError
        If an attribute has no node or several, a parent comes later, or a table does not fit.
    """

    def __init__(self, shape: Sequence[int], nodes: Sequence[Conditional]) -> None:
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

    def from_uniform(self, u: FloatArray) -> CodeArray:
        """Records from uniform numbers, (n_samples, at least n_attributes), parents first."""
        codes = np.zeros((len(u), len(self.shape)), dtype=np.int32, order="F")
        for axis, node in self.nodes.items():
            codes[:, axis] = inverse_rows(node.table, self.rows_of(node, codes), u[:, axis])
        return codes


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
