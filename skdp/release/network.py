"""NetworkModel: a released Bayesian network as a model of the records.

Queries are answered exactly as long as eliminating the other attributes needs tables of affordable
size (`NetworkDensity.joint`). Beyond that, they are answered from `_ROWS` records drawn from the
network with a fixed public seed: a share p then has a standard deviation of sqrt(p (1 - p) /
_ROWS), at most 0.0012 of the records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._random import sampling_generator
from .._validation import BoolArray, CodeArray, FloatArray, IntArray
from ..domain import Domain
from ..domain.query import Query
from .basis import under
from .files import Cutter, demand
from .model import (
    Covariances,
    Weights,
    added,
    by_attributes,
    product_of_weights,
    warn_of_zero,
)
from .result import labels_of_groups
from .rounding import (
    deal,
    inverse_rows,
    patterns,
    round_table,
    share_of,
)

__all__ = ["Conditional", "NetworkDensity", "NetworkModel"]

# --- NetworkDensity: attributes joined by a Bayesian network
#
# The density is the product of the probabilities of each attribute's code given the codes, or
# groups of codes, of its parents. The distribution of a few attributes follows exactly by
# eliminating the others one by one, each time the one that makes the smallest table. How large
# these tables become is known from the network beforehand; where they would be too large there is
# no exact answer.

# Largest number of cells of all tables together while attributes are eliminated: 32 MB.
MOST_CELLS = 1 << 22
# Where these tables would be too large, each row is chosen among so many draws that have its known
# codes, in proportion to the probability of these.
_TRIALS = 64
# So many rows are chosen at once.
_BATCH = 1 << 12
# Rows are drawn as if no code had less than this probability: then no condition is impossible, and
# codes of probability zero are drawn only where a condition leaves no others.
_LEAST = 1e-30


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
        weights = {} if weights is None else weights
        wanted = self.ancestors([*axes, *weights])
        eliminated = self._eliminated(wanted, axes, weights)
        if eliminated is None or math.prod(self.shape[axis] for axis in axes) > MOST_CELLS:
            return None
        result = _product(eliminated[1])
        return result.values.transpose([result.axes.index(axis) for axis in axes])

    def _eliminated(
        self, wanted: Sequence[int], kept: Collection[int], weights: Weights
    ) -> tuple[list[Factor], list[Factor]] | None:
        """Sum over the attributes that are not kept, one by one.

        Returns
        -------
        steps, left : list of Factor
            The tables that were summed over their last attribute, in this order, and those over the
            attributes that are kept. None where they would be too large.
        """
        scopes = [{axis, *self.nodes[axis].parents} for axis in wanted]
        order = _elimination_order(scopes, [a for a in wanted if a not in kept], self.shape)
        if order is None:
            return None
        left = [self._factor(self.nodes[axis], weights.get(axis)) for axis in wanted]
        steps = []
        for axis in order:
            whole = _product([each for each in left if axis in each.axes])
            left = [each for each in left if axis not in each.axes]
            others = tuple(other for other in whole.axes if other != axis)
            values = np.moveaxis(whole.values, whole.axes.index(axis), -1)
            steps.append(Factor((*others, axis), values))
            # Proportions and their scale apart: small probabilities would vanish.
            sums = values.sum(axis=-1)
            scale = np.maximum(np.abs(sums).max(), np.finfo(float).tiny)
            left += [Factor(others, sums / scale), Factor((), scale)]
        return steps, left

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

    def sample_given(
        self, known: CodeArray, generator: np.random.Generator, weights: Weights
    ) -> tuple[CodeArray, BoolArray]:
        """Fill rows of codes where they are -1, given the codes that are known.

        Parameters
        ----------
        known : ndarray of int, shape (n_rows, n_attributes)
        generator : numpy.random.Generator
        weights : mapping of int to ndarray
            Weights of unknown codes. Each vector has a positive one.

        Returns
        -------
        codes : ndarray of int32, shape (n_rows, n_attributes)
        impossible : ndarray of bool, shape (n_rows,)
            Rows whose condition has probability zero; they have as few codes of probability zero as
            it allows.
        """
        tables = [replace(n, table=np.maximum(n.table, _LEAST)) for n in self.nodes.values()]
        likely = NetworkDensity(self.shape, tables)
        codes = np.array(known, dtype=np.int32, order="F")
        for told, rows in patterns(codes >= 0):
            own = {axis: each for axis, each in weights.items() if not told[axis]}
            axes = np.flatnonzero(told).tolist()
            codes[rows] = likely._draw_alike(codes[rows], axes, own, generator)
        impossible = np.zeros(len(codes), dtype=bool)
        for axis, node in self.nodes.items():
            impossible |= node.table[self.rows_of(node, codes), codes[:, axis]] <= 0
        return codes, impossible

    def _draw_alike(
        self,
        known: CodeArray,
        axes: Sequence[int],
        weights: Weights,
        generator: np.random.Generator,
    ) -> CodeArray:
        """Fill rows that all have the same attributes known.

        Unknown attributes above the known ones are eliminated one by one, and then drawn in the
        reverse order, each from the table it was eliminated from: the conditional distribution,
        exactly.
        """
        codes = np.array(known, dtype=np.int32, order="F")
        above = self.ancestors([*axes, *weights])
        eliminated = self._eliminated(above, axes, weights)
        if eliminated is None:
            self._choose(codes, above, axes, weights, generator)
        else:
            for (*others, axis), values in reversed(eliminated[0]):
                row = np.zeros(len(codes), dtype=np.int64)
                for other in others:
                    row = row * self.shape[other] + codes[:, other]
                used, row = np.unique(row, return_inverse=True)
                table = values.reshape(-1, values.shape[-1])[used]
                # Where products of small probabilities vanish, any code with a weight.
                nothing = table.sum(axis=1, keepdims=True) <= 0
                table = np.where(nothing, weights.get(axis, 1.0), table)
                codes[:, axis] = inverse_rows(table, row.ravel(), generator.random(len(codes)))
        self.fill(codes, [axis for axis in self.nodes if axis not in above], generator)
        return codes

    def _choose(
        self,
        codes: CodeArray,
        above: Sequence[int],
        axes: Sequence[int],
        weights: Weights,
        generator: np.random.Generator,
    ) -> None:
        """Choose each row among several draws, by the probability of what is known; in place."""
        for first in range(0, len(codes), _BATCH):
            part = slice(first, first + _BATCH)
            trials = np.repeat(codes[part], _TRIALS, axis=0)
            logs = self.fill(trials, above, generator, axes, weights).reshape(-1, _TRIALS)
            chance = np.exp(logs - logs.max(axis=1, keepdims=True))
            rows = np.arange(len(chance))
            chosen = inverse_rows(chance, rows, generator.random(len(rows)))
            codes[part] = trials[rows * _TRIALS + chosen]

    def fill(
        self,
        codes: CodeArray,
        axes: Sequence[int],
        generator: np.random.Generator,
        known: Collection[int] = (),
        weights: Weights | None = None,
    ) -> FloatArray:
        """Draw attributes that are not known, parents first; in place.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Logarithm of the probability of what is known, times the expected weights of the others.
        """
        logs = np.zeros(len(codes))
        for axis in axes:
            node = self.nodes[axis]
            rows = self.rows_of(node, codes)
            if axis in known:
                logs += np.log(node.table[rows, codes[:, axis]])
                continue
            table = node.table * weights[axis] if weights and axis in weights else node.table
            codes[:, axis] = inverse_rows(table, rows, generator.random(len(codes)))
            logs += np.log(table.sum(axis=1))[rows]
        return logs

    def rounded(self, n_samples: int, generator: np.random.Generator) -> CodeArray:
        """Records whose counts are the expected ones, rounded; in random order.

        The codes of an attribute are rounded as a table within each combination of its parents'
        groups that was drawn, and dealt evenly there along an order of the attributes drawn before.
        """
        codes = np.zeros((n_samples, len(self.shape)), dtype=np.int32, order="F")
        rows: IntArray = generator.permutation(n_samples)
        last: Conditional | None = None
        for number, (axis, node) in enumerate(self.nodes.items()):
            if last is not None and last.parents == node.parents:
                # Nor may the children of an attribute be dealt along the same order.
                rows = rows[np.argsort(codes[rows, last.axis], kind="stable")]
            last = node
            drawn, stratum = np.unique(self.rows_of(node, codes), return_inverse=True)
            rows = rows[np.argsort(stratum[rows], kind="stable")]
            sizes = np.bincount(stratum, minlength=len(drawn))
            counts = round_table(node.table[drawn] * sizes[:, None], sizes, generator)
            values = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
            line = np.repeat(values, counts.ravel())
            codes[rows, axis] = deal(line, sizes, share_of(number), generator)
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


# --- NetworkModel

# Records that answer what cannot be answered exactly.
_ROWS = 200_000
# Numbers held at once while a batch of queries is answered.
_CHUNK = 1 << 21
# Largest number of probabilities that `to_frame` lists.
_MAX_LISTED = 5_000_000


# Why nothing is said of errors.
_WHY = (
    "the noise of its tables is known, but not how far its independence assumptions are from the "
    "records"
)
_NO_ERRORS = (
    f"Answers of a Bayesian network are estimated and have no error bars: {_WHY}. Ask for the "
    "plain count, or release with MarginalSynthesizer, which publishes error bars."
)


class NetworkModel(Covariances):
    """A released Bayesian network as a model of the records; see `Model`.

    Parameters
    ----------
    density : NetworkDensity
    total : float
        Estimated number of records; it may be negative.
    """

    # The name in files.
    kind: ClassVar[str] = "network"
    independent: ClassVar[bool] = False

    def __init__(self, density: NetworkDensity, total: float) -> None:
        self.density = density
        self.shape = density.shape
        self.total = float(total)
        self._rows: CodeArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": None}

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Attributes of every edge: (parent, child)."""
        nodes = self.density.nodes.values()
        return [(parent, node.axis) for node in nodes for parent in node.parents]

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
            joint = self.density.joint(axes) if axes and len(members) > 1 else None
            if joint is None:
                shares[members] = [self._share(queries[place]) for place in members]
                continue
            step = max(1, _CHUNK * len(joint) // joint.size)
            for part in (members[at : at + step] for at in range(0, len(members), step)):
                asked = [np.stack([queries[i][axis] for i in part], axis=1) for axis in axes]
                shares[part] = under(joint, asked)
        return self.total * shares

    def _share(self, weights: Weights) -> float:
        exact = self.density.joint((), weights)
        if exact is not None:
            return float(exact)
        rows = self._drawn()
        return float(product_of_weights(rows, np.ones(len(rows)), weights).mean())

    def _drawn(self) -> CodeArray:
        """Records drawn with a fixed seed, so that equal questions have equal answers."""
        if self._rows is None:
            self._rows = self.sample_codes(_ROWS, sampling_generator(0))
        return self._rows

    @property
    def covers(self) -> str:
        """Refuse: nothing in the release says how far the network is from the records."""
        raise ValueError(_NO_ERRORS)

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Refuse, as `covers`."""
        raise ValueError(_NO_ERRORS)

    def sample_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Draw independent records from the network.

        Under weights they follow the conditional distribution, exactly where elimination is
        affordable. Where its probability is zero, rows have as few codes of probability zero as it
        allows, and a warning says so.
        """
        unknown = np.full((n_samples, len(self.shape)), -1, dtype=np.int32)
        codes, impossible = self.density.sample_given(unknown, generator, weights or {})
        if impossible.any():
            warn_of_zero("their other columns follow the network only roughly")
        return codes

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Records whose counts are the expected ones, rounded; independent ones under weights."""
        if weights:
            return self.sample_codes(n_samples, generator, weights)
        return self.density.rounded(n_samples, generator)

    def sample_given(
        self, known: CodeArray, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Fill rows of codes where they are -1; see `Model` and `sample_codes`."""
        return self.density.sample_given(known, generator, weights or {})[0]

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Expected counts for every combination of the codes of some attributes."""
        joint = self.density.joint(axes)
        if joint is None:
            joint = np.zeros([self.shape[axis] for axis in axes])
            np.add.at(joint, tuple(self._drawn()[:, axis] for axis in axes), 1.0 / _ROWS)
        return self.total * joint

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """The network: one row for each probability.

        Returns
        -------
        DataFrame
            Columns ``column``, ``given`` (the values of its parents, or ranges of them, in words),
            ``value``, ``probability``.

        Raises
        ------
        ValueError
            If there are too many probabilities to list.
        """
        cells = sum(node.table.size for node in self.density.nodes.values())
        if cells > _MAX_LISTED:
            raise ValueError(
                f"The network has {cells:,} probabilities, more than {_MAX_LISTED:,}: too many for "
                "a readable table. Ask for a view of some columns instead."
            )
        parts = []
        for node in self.density.nodes.values():
            texts = [
                [
                    f"{domain.names[parent]}: {text}"
                    for text in labels_of_groups(domain.attributes[parent].labels(), group)
                ]
                for parent, group in zip(node.parents, node.groups, strict=True)
            ]
            given = [" and ".join(each) for each in itertools.product(*texts)]
            values = domain.attributes[node.axis].labels()
            listed = [[domain.names[node.axis]], given, values]
            index = pd.MultiIndex.from_product(listed, names=["column", "given", "value"])
            parts.append(pd.Series(node.table.ravel(), index, name="probability"))
        return pd.concat(parts).reset_index()

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        nodes = list(self.density.nodes.values())
        groups = [group for node in nodes for group in node.groups if group is not None]
        facts = {
            "total": self.total,
            "nodes": [
                {
                    "axis": node.axis,
                    "parents": list(node.parents),
                    "grouped": [group is not None for group in node.groups],
                }
                for node in nodes
            ],
        }
        arrays: dict[str, NDArray[Any]] = {
            "tables": np.concatenate([node.table.ravel() for node in nodes])
        }
        if groups:
            arrays["groups"] = np.concatenate(groups)
        return facts, arrays

    @classmethod
    def from_arrays(
        cls,
        shape: tuple[int, ...],
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> NetworkModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        total = float(facts["total"])
        demand(math.isfinite(total), "the total is not finite")
        tables = Cutter(arrays["tables"])
        groups = Cutter(arrays.get("groups", np.zeros(0, dtype=np.int64)))
        nodes = []
        for node in facts["nodes"]:
            axis, parents = int(node["axis"]), tuple(node["parents"])
            known = all(0 <= each < len(shape) for each in (axis, *parents))
            demand(known, f"there are no attributes {(axis, *parents)}")
            told = tuple(
                groups.take_groups(shape[parent]) if grouped else None
                for parent, grouped in zip(parents, node["grouped"], strict=True)
            )
            empty = Conditional(axis, parents, told, np.zeros((0, 0)))
            rows = math.prod(empty.sizes(shape))
            table = tables.take_probabilities(rows, shape[axis], each_row=True)
            nodes.append(replace(empty, table=table))
        tables.finish()
        groups.finish()
        return cls(NetworkDensity(shape, nodes), total)
