"""NetworkModel: a released Bayesian network as a model of the records.

Queries are answered exactly as long as eliminating the other attributes needs tables of affordable
size (`network_density`). Beyond that, they are answered from `_ROWS` records drawn from the network
with a fixed public seed: a share p then has a standard deviation of sqrt(p (1 - p) / _ROWS), at
most 0.0012 of the records.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._random import sampling_generator
from .._validation import BoolArray, CodeArray, FloatArray, IntArray
from ..domain import Domain
from ..domain.query import Query
from .files import Cutter
from .model import Covariances, Reach, Weights, added, by_attributes, warn_of_zero
from .result import labels_of_groups
from .rounding import (
    deal,
    patterns,
    product_of_weights,
    round_line,
    round_table,
    share_of,
    sort_within,
)
from .tree_density import inverse_rows

__all__ = [
    "Conditional",
    "Factor",
    "NetworkDensity",
    "NetworkModel",
    "draw_network_given",
    "round_network",
]

# --- networkDensity: attributes joined by a Bayesian network
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


# Records that answer what cannot be answered exactly.
_ROWS = 200_000
# Largest table of all combinations of codes from which several queries are answered at once.
_SHARED_CELLS = 1 << 20
# Numbers held at once while a batch of queries is answered.
_CHUNK = 1 << 21
# Largest number of probabilities that `to_frame` lists.
_MAX_LISTED = 5_000_000


# Why nothing is said of errors.
_WHY = (
    "the noise of its tables is known, but not how far its independence assumptions are from the "
    "records"
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
        shares = np.empty(len(queries))
        for axes, members in by_attributes(queries).items():
            if math.prod(self.shape[axis] for axis in axes) <= _SHARED_CELLS:
                joint = self.density.joint(axes)
                if joint is not None:
                    asked = [[queries[i][axis] for axis in axes] for i in members]
                    shares[members] = _contracted(joint, asked)
                    continue
            for i in members:
                exact = self.density.joint((), queries[i])
                shares[i] = self._share_of_rows(queries[i]) if exact is None else float(exact)
        return self.total * shares

    def _share_of_rows(self, weights: Weights) -> float:
        rows = self._drawn()
        return float(product_of_weights(rows, np.ones(len(rows)), weights).mean())

    def _drawn(self) -> CodeArray:
        """Records drawn with a fixed seed, so that equal questions have equal answers."""
        if self._rows is None:
            self._rows = self.density.sample(_ROWS, sampling_generator(0))
        return self._rows

    @property
    def covers(self) -> str:
        """Refuse: nothing in the release says how far the network is from the records."""
        raise ValueError(
            f"Answers of a Bayesian network are estimated and have no error bars: {_WHY}. Ask for "
            "the plain count, or release with MarginalSynthesizer, which publishes error bars."
        )

    def variance(self, queries: Sequence[Query]) -> FloatArray:
        """Refuse, as `covers`."""
        return np.full(len(queries), math.nan if self.covers else 0.0)

    def covariance(self, queries: Sequence[Query]) -> FloatArray:
        """Refuse, as `covers`."""
        return np.diag(self.variance(queries))

    def reach(self, queries: Sequence[Query], level: float) -> Reach:
        """Refuse, as `covers`."""
        none = self.variance(queries)
        return Reach(none, none, none, "")

    def sample_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Draw independent records from the network.

        Under weights they follow the conditional distribution, exactly where elimination is
        affordable. Where its probability is zero, the draw follows the network with a small share
        of uniform codes in each table, and warns.
        """
        if not weights:
            return self.density.sample(n_samples, generator)
        unknown = np.full((n_samples, len(self.shape)), -1, dtype=np.int32)
        codes, impossible = draw_network_given(self.density, unknown, generator, weights)
        if impossible.any():
            warn_of_zero("their other columns follow the network only roughly")
        return codes

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Records whose counts are the expected ones, rounded; independent ones under weights."""
        if weights:
            return self.sample_codes(n_samples, generator, weights)
        return round_network(self.density, n_samples, generator)

    def sample_given(
        self, known: CodeArray, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Fill rows of codes where they are -1; see `Model` and `sample_codes`."""
        weights = {} if weights is None else weights
        return draw_network_given(self.density, known, generator, weights)[0]

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Expected counts for every combination of the codes of some attributes."""
        joint = self.density.joint(axes)
        if joint is None:
            sizes = [self.shape[axis] for axis in axes]
            cells = np.ravel_multi_index(list(self._drawn()[:, list(axes)].T), sizes)
            joint = np.bincount(cells, minlength=math.prod(sizes)).reshape(sizes) / _ROWS
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
            given = [""]
            for parent, group in zip(node.parents, node.groups, strict=True):
                texts = labels_of_groups(domain.attributes[parent].labels(), group)
                name = domain.names[parent]
                given = [
                    f"{before} and {name}: {text}" if before else f"{name}: {text}"
                    for before in given
                    for text in texts
                ]
            values = domain.attributes[node.axis].labels()
            parts.append(
                pd.DataFrame(
                    {
                        "column": domain.names[node.axis],
                        "given": np.repeat(np.array(given, dtype=object), len(values)),
                        "value": np.tile(np.array(values, dtype=object), len(given)),
                        "probability": node.table.ravel(),
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

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
        if not math.isfinite(total):
            raise ValueError("the total is not finite")
        tables = Cutter(arrays["tables"])
        groups = Cutter(arrays.get("groups", np.zeros(0, dtype=np.int64)))
        nodes = []
        for node in facts["nodes"]:
            axis, parents = int(node["axis"]), tuple(node["parents"])
            if any(not 0 <= each < len(shape) for each in (axis, *parents)):
                raise ValueError(f"there are no attributes {(axis, *parents)}")
            told = tuple(
                groups.take_groups(shape[parent]) if grouped else None
                for parent, grouped in zip(parents, node["grouped"], strict=True)
            )
            rows = math.prod(
                shape[parent] if group is None else int(group.max()) + 1
                for parent, group in zip(parents, told, strict=True)
            )
            table = tables.take_probabilities(rows, shape[axis], each_row=True)
            nodes.append(Conditional(axis, parents, told, table))
        tables.finish()
        groups.finish()
        return cls(NetworkDensity(shape, nodes), total)


def _contracted(joint: FloatArray, asked: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """Sums of a table times the weights of each query, one vector for each of its axes."""
    if not joint.ndim:
        return np.full(len(asked), float(joint))
    result = np.empty(len(asked))
    step = max(1, _CHUNK // (joint.size // joint.shape[-1]))
    for first in range(0, len(asked), step):
        part = asked[first : first + step]
        left = joint.reshape(-1, joint.shape[-1]) @ np.stack([each[-1] for each in part], axis=1)
        for axis in reversed(range(joint.ndim - 1)):
            weights = np.stack([each[axis] for each in part], axis=1)
            left = np.einsum("iaq,aq->iq", left.reshape(-1, joint.shape[axis], len(part)), weights)
        result[first : first + step] = left[0]
    return result


# --- records of a Bayesian network given some of their codes, or a condition
#
# Unknown attributes above the known ones are eliminated one by one, and then drawn in the reverse
# order, each from the table it was eliminated from: the conditional distribution, exactly. Where
# these tables would be too large, each row is chosen among `_TRIALS` draws that have its known
# codes, in proportion to the probability of these.

_TRIALS = 64
# Where a condition has probability zero, every table is mixed with this share of equally likely
# codes.
SOFT = 1e-6
# Rows times trials that are drawn at once.
_BATCH = 1 << 18

CodeWeights = Mapping[int, FloatArray]


def draw_network_given(
    density: NetworkDensity,
    known: CodeArray,
    generator: np.random.Generator,
    weights: CodeWeights,
) -> tuple[CodeArray, BoolArray]:
    """Fill rows of codes where they are -1, given the codes that are known.

    Parameters
    ----------
    density : NetworkDensity
    known : ndarray of int, shape (n_rows, n_attributes)
    generator : numpy.random.Generator
    weights : mapping of int to ndarray
        CodeWeights of unknown codes. Each vector has a positive one.

    Returns
    -------
    codes : ndarray of int32, shape (n_rows, n_attributes)
    impossible : ndarray of bool, shape (n_rows,)
        Rows whose condition has probability zero: they follow the network with a share `SOFT` of
        uniform codes in each table.
    """
    codes = np.array(known, dtype=np.int32)
    impossible = np.zeros(len(codes), dtype=bool)
    soft: NetworkDensity | None = None
    for told, rows in patterns(codes >= 0):
        own = {axis: each for axis, each in weights.items() if not told[axis]}
        axes = np.flatnonzero(told).tolist()
        codes[rows], lost = _draw_alike(density, codes[rows], axes, own, generator)
        impossible[rows] = lost
        if lost.any():
            soft = soft or _softened(density)
            again = rows[lost]
            codes[again], _ = _draw_alike(soft, np.asarray(known)[again], axes, own, generator)
    return codes, impossible


def _softened(density: NetworkDensity) -> NetworkDensity:
    """The density with a small share of uniform codes, so that nothing is impossible."""
    nodes = [
        Conditional(
            node.axis,
            node.parents,
            node.groups,
            (1 - SOFT) * node.table + SOFT / node.table.shape[1],
        )
        for node in density.nodes.values()
    ]
    return NetworkDensity(density.shape, nodes)


def _draw_alike(
    density: NetworkDensity,
    known: CodeArray,
    axes: Sequence[int],
    weights: CodeWeights,
    generator: np.random.Generator,
) -> tuple[CodeArray, BoolArray]:
    """Fill rows that all have the same attributes known; and which of them are impossible."""
    codes = np.array(known, dtype=np.int32, order="F")
    above = density.ancestors([*axes, *weights])
    hidden = [axis for axis in above if axis not in axes]
    scopes = [tuple(sorted((axis, *density.nodes[axis].parents))) for axis in above]
    order = elimination_order(scopes, hidden, dict(enumerate(density.shape)))
    if order is None:
        lost = _choose(density, codes, above, axes, weights, generator)
    else:
        lost = _draw_back(density, codes, above, order, weights, generator)
    below = [axis for axis in density.nodes if axis not in above]
    density.fill(codes, below, generator)
    return codes, lost


def _draw_back(
    density: NetworkDensity,
    codes: CodeArray,
    above: Sequence[int],
    order: Sequence[int],
    weights: CodeWeights,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw the attributes in ``order``, the last first; in place."""
    states = dict.fromkeys(above)
    factors = [density.factor(density.nodes[a], states, weights.get(a)) for a in above]
    known = [axis for axis in above if axis not in order]
    lost = np.zeros(len(codes), dtype=bool)
    for factor in factors:
        if set(factor.axes) <= set(known):
            lost |= factor.values[tuple(codes[:, axis] for axis in factor.axes)] <= 0
    steps = []
    for axis in order:
        whole, factors = gather(factors, axis)
        place = whole.axes.index(axis)
        others = whole.axes[:place] + whole.axes[place + 1 :]
        steps.append((axis, others, np.moveaxis(whole.values, place, -1)))
        # Only proportions matter; without this, small probabilities would vanish.
        sums = whole.values.sum(axis=place)
        factors.append(Factor(others, sums / max(float(sums.max()), np.finfo(float).tiny)))
    for axis, others, values in reversed(steps):
        row = np.zeros(len(codes), dtype=np.int64)
        for other in others:
            row = row * density.shape[other] + codes[:, other]
        codes[:, axis], none = _draw_rows(values.reshape(-1, values.shape[-1]), row, generator)
        lost |= none
    return lost


def _draw_rows(
    table: FloatArray, rows: IntArray, generator: np.random.Generator
) -> tuple[IntArray, BoolArray]:
    """Codes in proportion to rows of a table, and which rows have nothing; these get any code."""
    used, place = np.unique(rows, return_inverse=True)
    law = table[used]
    empty = law.sum(axis=1) <= 0
    law = np.where(empty[:, None], 1.0, law)
    place = place.reshape(-1)
    return inverse_rows(law, place, generator.random(len(rows))), empty[place]


def _choose(
    density: NetworkDensity,
    codes: CodeArray,
    above: Sequence[int],
    axes: Sequence[int],
    weights: CodeWeights,
    generator: np.random.Generator,
) -> BoolArray:
    """Choose each row among several draws, by the probability of what is known; in place."""
    lost = np.zeros(len(codes), dtype=bool)
    step = max(1, _BATCH // _TRIALS)
    for first in range(0, len(codes), step):
        part = slice(first, first + step)
        trials = np.repeat(codes[part], _TRIALS, axis=0)
        with np.errstate(divide="ignore"):
            logs = _forward(density, trials, above, axes, weights, generator)
        logs = logs.reshape(-1, _TRIALS)
        highest = logs.max(axis=1, keepdims=True)
        lost[part] = ~np.isfinite(highest[:, 0])
        # Where all draws are impossible, any of them stands until the row is drawn again.
        chance = np.exp(logs - np.where(np.isfinite(highest), highest, 0.0))
        chance[lost[part]] = 1.0
        rows = np.arange(len(chance))
        chosen = rows * _TRIALS + inverse_rows(chance, rows, generator.random(len(rows)))
        codes[part] = trials[chosen]
    return lost


def _forward(
    density: NetworkDensity,
    codes: CodeArray,
    above: Sequence[int],
    axes: Sequence[int],
    weights: CodeWeights,
    generator: np.random.Generator,
) -> FloatArray:
    """Draw unknown attributes, parents first; the logarithm of the weight of each row."""
    logs = np.zeros(len(codes))
    for axis in above:
        node = density.nodes[axis]
        rows = density.rows_of(node, codes)
        if axis in axes:
            logs += np.log(node.table[rows, codes[:, axis]])
            continue
        table = node.table * weights[axis] if axis in weights else node.table
        codes[:, axis], _ = _draw_rows(table, rows, generator)
        if axis in weights:
            logs += np.log(table.sum(axis=1))[rows]
    return logs


# --- records of a Bayesian network with rounded counts: each column within its parents' codes


def round_network(
    density: NetworkDensity, n_samples: int, generator: np.random.Generator
) -> CodeArray:
    """Records whose counts are the expected ones, rounded; in random order.

    The codes of an attribute are rounded as a table within each combination of its parents' groups
    that was drawn, and dealt evenly there along an order of the attributes drawn before.

    Parameters
    ----------
    density : NetworkDensity
    n_samples : int
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (n_samples, n_attributes)
    """
    codes = np.zeros((n_samples, len(density.shape)), dtype=np.int32, order="F")
    rows: IntArray = generator.permutation(n_samples)
    last: Conditional | None = None
    for number, (axis, node) in enumerate(density.nodes.items()):
        if last is not None and last.parents == node.parents:
            # Nor may the children of an attribute be dealt along the same order.
            rows = sort_within(rows, codes[:, last.axis])
        last = node
        if node.parents:
            drawn, stratum = np.unique(density.rows_of(node, codes), return_inverse=True)
            rows = sort_within(rows, stratum)
            sizes = np.bincount(stratum, minlength=len(drawn))
            counts = round_table(node.table[drawn] * sizes[:, None], sizes, generator)
        else:
            sizes = np.array([n_samples])
            counts = round_line(node.table[0], n_samples, generator)[None]
        values = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
        line = np.repeat(values, counts.ravel())
        codes[rows, axis] = deal(line, sizes, share_of(number), generator)
    return codes
