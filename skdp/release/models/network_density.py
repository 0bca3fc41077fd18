"""NetworkDensity: attributes joined by a Bayesian network.

The density is the product of the probabilities of each attribute's code given the codes, or groups
of codes, of its parents. The distribution of a few attributes follows exactly by eliminating the
others one by one, each time the one that makes the smallest table. How large these tables become is
known from the network beforehand; where they would be too large there is no exact answer.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._types import CodeArray, FloatArray, IntArray
from .tree_density import inverse_rows

__all__ = ["Conditional", "Factor", "NetworkDensity"]

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


class Factor(NamedTuple):
    """A table over the states of some attributes, ascending."""

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
            rows = math.prod(self.group_sizes(node))
            if node.table.shape != (rows, self.shape[node.axis]):
                raise ValueError(f"The table of attribute {node.axis} has the wrong shape.")

    def group_sizes(self, node: Conditional) -> list[int]:
        """Number of groups of each parent."""
        if len(node.groups) != len(node.parents):
            raise ValueError("Each parent needs its groups.")
        sizes = []
        for parent, group in zip(node.parents, node.groups, strict=True):
            if group is not None and len(group) != self.shape[parent]:
                raise ValueError(f"The groups do not fit attribute {parent}.")
            sizes.append(self.shape[parent] if group is None else int(group.max()) + 1)
        return sizes

    def rows_of(self, node: Conditional, codes: CodeArray) -> IntArray:
        """Row of a node's table for each record, from the codes of its parents."""
        row = np.zeros(len(codes), dtype=np.int64)
        for parent, group, size in zip(
            node.parents, node.groups, self.group_sizes(node), strict=True
        ):
            code = codes[:, parent]
            row = row * size + (code if group is None else group[code])
        return row

    def sample(self, n_samples: int, generator: np.random.Generator) -> CodeArray:
        """Draw records, each attribute given its parents; (n_samples, n_attributes) codes."""
        codes = np.zeros((n_samples, len(self.shape)), dtype=np.int32, order="F")
        self.fill(codes, self.nodes, generator)
        return codes

    def fill(self, codes: CodeArray, axes: Collection[int], generator: np.random.Generator) -> None:
        """Draw some attributes given their parents, which are there or are among them."""
        for axis, node in self.nodes.items():
            if axis in axes:
                u = generator.random(len(codes))
                codes[:, axis] = inverse_rows(node.table, self.rows_of(node, codes), u)

    def ancestors(self, axes: Collection[int]) -> list[int]:
        """The attributes and everything above them, parents first."""
        found = set(axes)
        for axis in reversed(self.nodes):
            if axis in found:
                found.update(self.nodes[axis].parents)
        return [axis for axis in self.nodes if axis in found]

    def joint(
        self, axes: Sequence[int], weights: Mapping[int, FloatArray] | None = None
    ) -> FloatArray | None:
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
        weights = {} if weights is None else weights
        wanted = self.ancestors([*axes, *weights])
        states = self._states(wanted, axes)
        sizes = {
            axis: len(self.nodes[axis].table[0]) if state is None else int(state.max()) + 1
            for axis, state in states.items()
        }
        scopes = [tuple(sorted((axis, *self.nodes[axis].parents))) for axis in wanted]
        hidden = [axis for axis in wanted if axis not in axes]
        order = elimination_order(scopes, hidden, sizes)
        if order is None or math.prod(sizes[axis] for axis in axes) > MOST_CELLS:
            return None
        factors = [self.factor(self.nodes[axis], states, weights.get(axis)) for axis in wanted]
        for axis in order:
            whole, factors = gather(factors, axis)
            place = whole.axes.index(axis)
            rest = whole.axes[:place] + whole.axes[place + 1 :]
            factors.append(Factor(rest, whole.values.sum(axis=place)))
        result = Factor((), np.ones(()))
        for factor in factors:
            result = product(result, factor)
        return result.values.transpose([result.axes.index(axis) for axis in axes])

    def _states(self, wanted: Sequence[int], kept: Collection[int]) -> dict[int, IntArray | None]:
        """State of each code: one for all that no wanted child tells apart; None: all differ."""
        told: dict[int, list[IntArray | None]] = {axis: [] for axis in wanted}
        for axis in wanted:
            node = self.nodes[axis]
            for parent, group in zip(node.parents, node.groups, strict=True):
                told[parent].append(group)
        states: dict[int, IntArray | None] = {}
        for axis, groups in told.items():
            if axis in kept or any(group is None for group in groups):
                states[axis] = None
            elif not groups:
                states[axis] = np.zeros(self.shape[axis], dtype=np.int64)
            else:
                rows = np.stack([group for group in groups if group is not None], axis=1)
                states[axis] = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        return states

    def factor(
        self,
        node: Conditional,
        states: Mapping[int, IntArray | None],
        weights: FloatArray | None,
    ) -> Factor:
        """A node's probabilities, times weights, over the states of it and its parents."""
        table = node.table if weights is None else node.table * weights
        own = states[node.axis]
        if own is not None:
            indicator = np.zeros((len(own), int(own.max()) + 1))
            indicator[np.arange(len(own)), own] = 1.0
            table = table @ indicator
        values = table.reshape(*self.group_sizes(node), -1)
        for place, (parent, group) in enumerate(zip(node.parents, node.groups, strict=True)):
            state = states[parent]
            if state is not None and group is not None:
                group = group[np.unique(state, return_index=True)[1]]
            if group is not None:
                values = np.take(values, group, axis=place)
        axes = (*node.parents, node.axis)
        order = np.argsort(axes)
        return Factor(tuple(axes[place] for place in order), values.transpose(order))


def elimination_order(
    scopes: Sequence[tuple[int, ...]], hidden: Sequence[int], sizes: Mapping[int, int]
) -> list[int] | None:
    """Order in which attributes are eliminated, the smallest table first.

    Parameters
    ----------
    scopes : sequence of tuple of int
        Attributes of each table.
    hidden : sequence of int
        Attributes to be eliminated.
    sizes : mapping of int to int
        Number of states of each attribute.

    Returns
    -------
    list of int, or None
        None where the tables would have more than `MOST_CELLS` cells.
    """
    cells = sum(math.prod(sizes[axis] for axis in scope) for scope in scopes)
    near: dict[int, set[int]] = {axis: set() for scope in scopes for axis in scope}
    for scope in scopes:
        for axis in scope:
            near[axis].update(scope)
    order: list[int] = []
    left = set(hidden)
    costs = {axis: math.prod(sizes[each] for each in near[axis]) for axis in left}
    while left:
        axis = min(left, key=lambda each: (costs[each], each))
        cells += costs[axis]
        if cells > MOST_CELLS:
            return None
        order.append(axis)
        left.remove(axis)
        others = near.pop(axis) - {axis}
        for other in others:
            near[other] = (near[other] | others) - {axis}
            if other in left:
                costs[other] = math.prod(sizes[each] for each in near[other])
    return order if cells <= MOST_CELLS else None


def gather(factors: Sequence[Factor], axis: int) -> tuple[Factor, list[Factor]]:
    """The product of the factors with an attribute, and the other factors."""
    whole = Factor((axis,), np.ones(1))
    rest = []
    for factor in factors:
        if axis in factor.axes:
            whole = product(whole, factor)
        else:
            rest.append(factor)
    return whole, rest


def product(first: Factor, second: Factor) -> Factor:
    """Product over the attributes of both."""
    axes = tuple(sorted({*first.axes, *second.axes}))
    return Factor(axes, _aligned(first, axes) * _aligned(second, axes))


def _aligned(factor: Factor, axes: Sequence[int]) -> FloatArray:
    sizes: Iterator[int] = iter(factor.values.shape)
    return factor.values.reshape([next(sizes) if axis in factor.axes else 1 for axis in axes])
