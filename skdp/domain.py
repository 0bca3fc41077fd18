"""Domain: what is publicly known of a table, and the map between its rows and integer codes.

A domain is declared, never read from private rows. It says which columns exist, which values
they can have and which code each value gets. Values never raise: a number outside its range is
clipped, an unknown category becomes ``other`` if declared, a missing value the missing cell if
there is one, and a record that cannot be represented otherwise gets the code -1 and is skipped.
Each record is treated by itself, because an exception that depends on a value would answer a
membership question for free. Only the schema (columns and declared types) is checked with errors.
"""

from __future__ import annotations

import copy
import json
import math
import numbers
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skdp._random import sampling_generator
from skdp.engines import LazyColumn, LazyRows
from skdp.exceptions import DomainError, PrivacyLeakWarning
from skdp.frames import Column, Frame, as_frame, is_missing

__all__ = ["Attribute", "Categorical", "Domain", "DomainReport", "Level", "Numeric", "Taxonomy"]

Category: TypeAlias = str | int | bool | float

# Codes are int32, and one more code is needed for the missing cell.
_MAX_BINS = 2**31 - 2
# Integers up to here are exact in float64, which bins are computed in on every engine.
_MAX_INTEGER = 2**53
_DEFAULT_BINS = 32
# Integers in a range up to this get one code each where a domain is inferred.
_INFER_INTEGERS = 256
# From this many bins on, intervals that grow with the distance from 0 are worth offering.
_LOG_BINS = 128
# Up to this many categories without order or taxonomy are not halved, and up to that many each of
# them is offered against the rest.
_FEW_CATEGORIES = 10
_MOST_AGAINST_REST = 16
_FORMAT = "skdp.domain"
_VERSION = 1
_MISSING_LABEL = "missing"


def _plain_category(value: Any, what: str) -> Category:
    """A category as a plain Python value."""
    if isinstance(value, np.bool_ | np.number):
        value = value.item()
    if isinstance(value, str):
        return _plain_text(value, what)
    if isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        raise DomainError(
            f"{what} {value!r} is not finite. Missing values are no category: use nullable=True."
        )
    raise DomainError(
        f"{what} {value!r} has type {type(value).__name__}; categories must be str, int, float or "
        "bool. Convert it to text, in the declaration and in the data. For missing values use "
        "nullable=True."
    )


def _plain_text(value: str, what: str) -> str:
    """A str that every library can store."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise DomainError(
            f"{what} {value!r} is not valid Unicode text (it has half of a surrogate pair)."
        ) from None
    return str(value)


def _as_int(value: Any, name: str) -> int:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    number = _as_float(value, name)
    if number != math.floor(number):
        raise DomainError(f"{name} must be an integer, got {value!r}.")
    return int(number)


def _as_float(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise DomainError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise DomainError(
            f"{name} must be finite, got {value!r}. Declare the range that is publicly known; "
            "values beyond it are clipped."
        )
    return number


def _as_flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise DomainError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


class Taxonomy:
    """A tree of nested groups over an ordered list of leaves.

    Made by :meth:`from_edges`, :meth:`from_tree` or :meth:`dyadic`. Nodes are numbered level by
    level, the root is node 0; leaves are ordered depth first, so that the leaves below any node
    are consecutive.

    Attributes
    ----------
    labels : tuple
        Label of each node. Leaves are labelled by category (or code, for ``dyadic``).
    parents : ndarray of shape (n_nodes,)
        Parent of each node, -1 for the root.
    depths : ndarray of shape (n_nodes,)
        Number of edges from the root.
    first, last : ndarray of shape (n_nodes,)
        The leaves below node i are ``leaves[first[i]:last[i]]``.
    leaf_nodes : ndarray of shape (n_leaves,)
        Node of each leaf, in the order of ``leaves``.
    leaves : tuple
        Labels of the leaves.
    """

    def __init__(self, labels: Sequence[Category], parents: ArrayLike) -> None:
        """Build from node labels and parent numbers; a parent comes before its children."""
        parent_list = [_as_int(parent, "Taxonomy parent") for parent in np.asarray(parents)]
        if not labels or len(labels) != len(parent_list):
            raise DomainError("A taxonomy needs at least one node, and one parent per node.")
        if parent_list[0] != -1 or any(
            not 0 <= parent < node for node, parent in enumerate(parent_list) if node
        ):
            raise DomainError(
                "A taxonomy needs one root, which is the first node, and every other node after "
                "its parent."
            )
        children: list[list[int]] = [[] for _ in parent_list]
        for node, parent in enumerate(parent_list[1:], start=1):
            children[parent].append(node)

        # Renumber level by level, so that equal trees have equal arrays.
        order = [0]
        for node in order:
            order.extend(children[node])
        number = {node: position for position, node in enumerate(order)}
        self.labels = tuple(_plain_category(labels[node], "Taxonomy label") for node in order)
        self.parents = np.array([-1] + [number[parent_list[node]] for node in order[1:]])
        n_nodes = len(order)
        self.depths = np.zeros(n_nodes, dtype=np.int64)
        for position in range(1, n_nodes):
            self.depths[position] = self.depths[self.parents[position]] + 1

        # Leaves below each node, bottom up; then the place of its first leaf, top down.
        width = np.zeros(n_nodes, dtype=np.int64)
        is_leaf = np.ones(n_nodes, dtype=bool)
        is_leaf[self.parents[1:]] = False
        width[is_leaf] = 1
        for position in range(n_nodes - 1, 0, -1):
            width[self.parents[position]] += width[position]
        self.first = np.zeros(n_nodes, dtype=np.int64)
        taken = np.zeros(n_nodes, dtype=np.int64)
        for position in range(1, n_nodes):
            parent = self.parents[position]
            self.first[position] = self.first[parent] + taken[parent]
            taken[parent] += width[position]
        self.last = self.first + width
        nodes = np.flatnonzero(is_leaf)
        self.leaf_nodes = nodes[np.argsort(self.first[nodes])]
        self.leaves = tuple(self.labels[node] for node in self.leaf_nodes)
        if len(set(self.leaves)) != len(self.leaves):
            repeated = sorted({repr(x) for x in self.leaves if self.leaves.count(x) > 1})
            raise DomainError(
                f"Taxonomy leaves must differ, but {', '.join(repeated)} occur more than once: "
                "groups must be nested or disjoint."
            )
        for array in (self.parents, self.depths, self.first, self.last, self.leaf_nodes):
            array.flags.writeable = False

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[Category, Category]]) -> Taxonomy:
        """Build from (parent, child) pairs; children keep the order of the pairs.

        Parameters
        ----------
        edges : iterable of pairs
            A label names one node. For trees in which a group is called like one of its leaves
            see :meth:`from_tree`.

        Raises
        ------
        DomainError
            If a node has two parents, or there is not exactly one root, or a cycle.
        """
        children: dict[Category, list[Category]] = {}
        parents: dict[Category, Category] = {}
        for edge in edges:
            if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
                raise DomainError(f"An edge must be a (parent, child) pair, got {edge!r}.")
            parent, child = (_plain_category(label, "Taxonomy label") for label in edge)
            if child in parents:
                raise DomainError(
                    f"Taxonomy node {child!r} has more than one parent: groups must be nested."
                )
            parents[child] = parent
            children.setdefault(parent, []).append(child)
        roots = [label for label in children if label not in parents]
        if len(roots) != 1:
            raise DomainError(
                f"A taxonomy needs exactly one root, found {roots!r}. Join the parts under one "
                "common parent, and remove cycles."
            )
        labels: list[Category] = [roots[0]]
        numbers_ = [-1]
        for node, label in enumerate(labels):
            for child in children.get(label, ()):
                labels.append(child)
                numbers_.append(node)
        if len(labels) != len(parents) + 1:
            unreached = sorted({repr(label) for label in parents} - {repr(x) for x in labels})
            raise DomainError(f"Taxonomy nodes {', '.join(unreached)} form a cycle.")
        return cls(labels, numbers_)

    @classmethod
    def from_tree(cls, tree: Mapping[Category, Any] | Sequence[Any]) -> Taxonomy:
        """Build from nested mappings and lists, for example ``{"Any": {"EU": ["FR", "DE"]}}``.

        Parameters
        ----------
        tree : mapping or sequence
            Keys of a mapping are groups, values what is below them: a mapping, a list (of leaves
            or again of mappings), a single leaf, or None for a key that is itself a leaf. A
            mapping with one key has it as root; otherwise a root labelled "Any" is put on top.

        Raises
        ------
        DomainError
            If a group is empty or a leaf occurs twice.
        """
        if isinstance(tree, Mapping) and len(tree) == 1:
            ((root, below),) = tree.items()
        else:
            root, below = "Any", tree
        labels: list[Category] = [root]
        numbers_ = [-1]
        waiting: list[tuple[int, Any]] = [(0, below)]
        for node, part in waiting:
            if isinstance(part, Mapping):
                branches: list[tuple[Any, Any]] = list(part.items())
            else:
                branches = []
                single = isinstance(part, str) or not isinstance(part, Iterable)
                for item in [part] if single else part:
                    if isinstance(item, Mapping):
                        branches.extend(item.items())
                    else:
                        branches.append((item, None))
            if not branches:
                raise DomainError(f"Taxonomy group {labels[node]!r} is empty.")
            for label, inner in branches:
                labels.append(label)
                numbers_.append(node)
                if inner is not None:
                    waiting.append((len(labels) - 1, inner))
        return cls(labels, numbers_)

    @classmethod
    def dyadic(cls, codes: int | Numeric) -> Taxonomy:
        """Binary tree over consecutive codes: groups of 1, 2, 4, ... codes.

        All leaves have the same depth; where the number of codes is no power of two, the last
        group of a level is smaller.

        Parameters
        ----------
        codes : int or Numeric
            Number of codes, or the attribute whose value bins they are. Leaves are labelled by
            code; groups by their range, of codes or of values.
        """
        n = codes.bins if isinstance(codes, Numeric) else _as_int(codes, "The number of codes")
        if n < 1:
            raise DomainError(f"A taxonomy needs at least one code, got {n}.")
        height = (n - 1).bit_length()
        labels: list[Category] = []
        parents: list[int] = []
        offset = 0
        for level in range(height + 1):
            step = 1 << (height - level)
            groups = -(-n // step)
            for group in range(groups):
                parents.append(offset - -(-n // (2 * step)) + group // 2 if level else -1)
                low, high = group * step, min(n, (group + 1) * step)
                if step == 1:
                    labels.append(group)
                elif isinstance(codes, Numeric):
                    labels.append(codes._span_label(low, high))
                else:
                    labels.append(f"[{low}, {high})")
            offset += groups
        return cls(labels, parents)

    @property
    def height(self) -> int:
        """Number of edges from the root to the deepest leaf."""
        return int(self.depths.max())

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaves)

    def cut(self, level: int) -> NDArray[np.int64]:
        """Nodes of one level, from left to right: a partition of the leaves.

        Parameters
        ----------
        level : int
            From 0 (the root) to ``height`` (the leaves). Leaves above the level belong to it.
        """
        if not 0 <= level <= self.height:
            raise ValueError(f"level must be in 0..{self.height}, got {level}.")
        is_leaf = np.zeros(len(self.labels), dtype=bool)
        is_leaf[self.leaf_nodes] = True
        nodes = np.flatnonzero((self.depths == level) | (is_leaf & (self.depths < level)))
        return nodes[np.argsort(self.first[nodes])]

    def groups(self, level: int) -> NDArray[np.int64]:
        """Position in ``cut(level)`` of the node above each leaf, in the order of ``leaves``."""
        nodes = self.cut(level)
        return np.repeat(np.arange(len(nodes)), self.last[nodes] - self.first[nodes])

    def _to_data(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "parents": self.parents.tolist()}

    def _key(self) -> tuple[Any, ...]:
        return (_typed(self.labels), tuple(self.parents.tolist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Taxonomy) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Taxonomy({self.n_leaves} leaves, height {self.height}, root {self.labels[0]!r})"


def _typed(values: Iterable[Any]) -> tuple[tuple[str, Any], ...]:
    """Values with their types: True, 1 and 1.0 are equal in Python but not the same declaration."""
    return tuple((type(value).__name__, value) for value in values)


class Level(NamedTuple):
    """One generalisation of an attribute: codes merged into groups.

    Attributes
    ----------
    groups : ndarray of shape (size,)
        Group of each code; groups are numbered from 0.
    labels : list of str
        One label per group.
    """

    groups: NDArray[np.int64]
    labels: list[str]


class Attribute:
    """What :class:`Numeric` and :class:`Categorical` share: codes, labels, levels.

    Attributes
    ----------
    size : int
        Number of codes, the missing cell included.
    nullable : bool
        Whether the last code is the missing cell.
    inferred : bool
        Whether it was read from data, as by `Domain.infer`; False if it was declared. Domains built
        from it are inferred too. Equality ignores it.
    """

    nullable: bool
    # Of the class, so that attributes that were pickled before there was a mark have one.
    inferred: bool = False

    def _marked(self) -> Any:
        """The same attribute, inferred."""
        if self.inferred:
            return self
        twin = copy.copy(self)
        twin._set(inferred=True)
        return twin

    @property
    def n_values(self) -> int:
        """Number of codes without the missing cell."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of codes; the missing cell, if ``nullable``, is the last."""
        return self.n_values + self.nullable

    def encode(self, column: Column) -> NDArray[np.int32]:
        """Code of each value; -1 where there is none. Never raises.

        Parameters
        ----------
        column : Column
            From :func:`skdp.frames.as_frame`.
        """
        raise NotImplementedError

    def expression(self, column: LazyColumn) -> Any:
        """Code of each value as an expression that an engine evaluates; -1 where there is none.

        Parameters
        ----------
        column : LazyColumn
            From :func:`skdp.engines.read_rows`.
        """
        raise NotImplementedError

    def decode(self, codes: ArrayLike, rng: np.random.Generator) -> pd.Series:
        """Values for codes, drawn uniformly where a code stands for many.

        Parameters
        ----------
        codes : array-like of shape (n,), in 0..size - 1
        rng : numpy.random.Generator
        """
        raise NotImplementedError

    def labels(self) -> list[str]:
        """Text for each code, for printing."""
        raise NotImplementedError

    def hierarchy(self) -> tuple[Taxonomy, NDArray[np.int64]]:
        """Tree over the values, and the code of each of its leaves, in the order of the leaves.

        Without a declared taxonomy: the dyadic tree for numbers and ordered categories, a root
        with all categories below it otherwise. The missing cell is not in the tree.
        """
        raise NotImplementedError

    def levels(self) -> tuple[Level, ...]:
        """Generalisations from coarsest (everything in one group) to finest (each code alone).

        Below the top the missing cell is a group of its own, the last.
        """
        tree, leaf_codes = self.hierarchy()
        own = self.labels()
        result = []
        for level in range(max(tree.height, int(self.nullable)) + 1):
            cut = tree.cut(min(level, tree.height))
            groups = np.zeros(self.size, dtype=np.int64)
            groups[leaf_codes] = tree.groups(min(level, tree.height))
            texts = [str(tree.labels[node]) for node in cut]
            if level == tree.height:
                texts = [own[code] for code in leaf_codes]
            if self.nullable and level:
                groups[-1] = len(texts)
                texts.append(_MISSING_LABEL)
            result.append(Level(groups, texts))
        return tuple(result)

    def groupings(
        self, max_groups: int, *, against_rest: bool = False
    ) -> tuple[tuple[Level, ...], ...]:
        """Public ways to merge codes into 2 to ``max_groups`` groups, for grids.

        Each family is a taxonomy read level by level, nested, from coarse to fine. No partition
        occurs twice. The missing cell is always a group of its own, the last.

        Parameters
        ----------
        max_groups : int
        against_rest : bool, default=False
            For 3 to 16 categories without order or taxonomy also each category against all
            others, at the end.

        Returns
        -------
        families : tuple of tuples of Level
            For numbers halves, quarters, eighths and so on of the range; for 128 bins or more over
            a range from about 0, or from below, also intervals that grow with the distance from 0.
            For categories the levels of the declared taxonomy. Without one, every category
            alone, and before it, where they are ordered or more than ten, halves, quarters and so
            on of the list as declared.
        """
        families: list[tuple[Level, ...]] = []
        seen: set[bytes] = set()
        for family in self._families(max_groups - self.nullable, against_rest):
            levels = []
            for groups, texts in family:
                if self.nullable:
                    groups = np.append(groups, len(texts))
                    texts = [*texts, _MISSING_LABEL]
                key = groups.tobytes()
                if 2 <= len(texts) <= max_groups and key not in seen:
                    seen.add(key)
                    levels.append(Level(groups, texts))
            if levels:
                families.append(tuple(levels))
        return tuple(families)

    def _families(
        self, limit: int, against_rest: bool
    ) -> Iterator[list[tuple[NDArray[np.int64], list[str]]]]:
        """Groups of the values, without the missing cell, and their labels, family by family."""
        raise NotImplementedError

    def _refusal(self, kind: str) -> str | None:
        """Why a column of this kind cannot hold the attribute, with the remedy."""
        raise NotImplementedError

    def _diagnose(self, column: Column) -> dict[str, int]:
        """Exact counts for ``Domain.check``: private."""
        raise NotImplementedError

    def _to_data(self) -> dict[str, Any]:
        raise NotImplementedError

    def _key(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; declare a new one.")

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _halvings(codes: NDArray[np.int64], n: int, limit: int) -> Iterator[NDArray[np.int64]]:
    """Halves, quarters, ... of a range of ``n`` codes: nested, as even as can be, codes last."""
    parts = 2
    while parts < n and parts <= limit:
        yield codes * parts // n
        parts *= 2
    if n <= limit:
        yield codes


class Numeric(Attribute):
    """A range of numbers, cut into bins of equal width.

    The code of x is ``floor((x - lower) * bins / (upper - lower))`` in float64; the last bin is
    closed. Numbers outside the range, infinities included, are clipped to its ends.

    Parameters
    ----------
    lower, upper : float
        Publicly known range, both ends included. ``lower < upper``, except that an integer
        attribute may have a single value.
    bins : int, optional
        Number of bins. Default: one per integer if ``integer``, else 32.
    integer : bool, default=False
        Values are integers: fractions are first rounded down, and a bin holds those whole
        integers whose code by the formula above it is, at least one and about equally many
        each. ``lower`` and ``upper`` must be integers; sampled values are.
    nullable : bool, default=False
        Whether a missing value has a cell of its own, the last code. Otherwise records without
        this value are skipped.

    Attributes
    ----------
    size : int
        Number of codes, the missing cell included.
    inferred : bool
        Whether it was read from data, by `Domain.infer`; False if it was declared.

    Raises
    ------
    DomainError
        If the parameters declare no usable range.

    Examples
    --------
    >>> Numeric(17, 90, integer=True).size
    74
    >>> Numeric(0, 200_000, bins=50).labels()[:2]
    ['[0, 4000)', '[4000, 8000)']
    """

    lower: float
    upper: float
    bins: int
    integer: bool

    def __init__(
        self,
        lower: float,
        upper: float,
        bins: int | None = None,
        *,
        integer: bool = False,
        nullable: bool = False,
    ) -> None:
        integer = _as_flag(integer, "integer")
        nullable = _as_flag(nullable, "nullable")
        low, high = _as_float(lower, "lower"), _as_float(upper, "upper")
        if low > high or (low == high and not integer):
            raise DomainError(
                f"Numeric needs lower < upper, got lower={lower!r} and upper={upper!r}."
            )
        n_bins = None if bins is None else _as_int(bins, "bins")
        if n_bins is not None and not 1 <= n_bins <= _MAX_BINS:
            raise DomainError(f"bins must be in 1..{_MAX_BINS}, got {bins!r}.")
        if integer:
            low, high = _as_int(lower, "lower"), _as_int(upper, "upper")
            n_bins = _check_integer_bins(low, high, n_bins)
        else:
            n_bins = _DEFAULT_BINS if n_bins is None else n_bins
            _check_real_bins(low, high, n_bins)
        self._set(lower=low, upper=high, bins=n_bins, integer=integer, nullable=nullable)

    @property
    def n_values(self) -> int:
        """Number of bins."""
        return self.bins

    @property
    def _one_each(self) -> bool:
        return self.integer and self.bins == self.upper - self.lower + 1

    @property
    def edges(self) -> NDArray:
        """Bin j is ``[edges[j], edges[j + 1])``: array of shape (bins + 1,).

        float64, the last edge being ``upper``, which belongs to the last bin; for an integer
        attribute int64, the last edge being ``upper + 1``.
        """
        positions = np.arange(self.bins + 1)
        if self.integer:
            return self._first_integer(positions)
        edges = self.lower + positions * ((self.upper - self.lower) / self.bins)
        edges[-1] = self.upper
        return edges

    @property
    def centers(self) -> NDArray[np.float64]:
        """Middle of each bin; for an integer attribute the mean of its integers."""
        edges = self.edges.astype(np.float64)
        return edges[:-1] + (np.diff(edges) - self.integer) / 2

    def _first_integer(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Smallest integer in each bin: the formula solved for x, in exact arithmetic."""
        if self._one_each:
            return int(self.lower) + positions
        span = int(self.upper - self.lower)
        first = int(self.lower) - (-positions * span) // self.bins
        # The last bin is closed: it ends after `upper`.
        return np.where(positions == self.bins, int(self.upper) + 1, first)

    def encode(self, column: Column) -> NDArray[np.int32]:  # noqa: D102
        return self._encode(column.numbers())

    def expression(self, column: LazyColumn) -> Any:  # noqa: D102
        missing = self.bins if self.nullable else -1
        return column.binned(
            float(self.lower), float(self.upper), self.bins, integer=self.integer, missing=missing
        )

    def _encode(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        # Clipping first changes no code and keeps infinities out of the arithmetic.
        x = np.clip(values, self.lower, self.upper)
        missing = np.isnan(x)
        some_missing = bool(missing.any())
        if some_missing:
            x[missing] = self.lower
        if self.integer:
            np.floor(x, out=x)
        x -= self.lower
        if not self._one_each:
            x *= self.bins
            x /= self.upper - self.lower
        codes = x.astype(np.int32)
        np.minimum(codes, self.bins - 1, out=codes)
        if some_missing:
            codes[missing] = self.bins if self.nullable else -1
        return codes

    def decode(self, codes: ArrayLike, rng: np.random.Generator) -> pd.Series:  # noqa: D102
        positions = np.asarray(codes, dtype=np.int64)
        missing = positions >= self.bins
        positions = np.where(missing, 0, positions)
        if self.integer:
            first = self._first_integer(positions)
            width = self._first_integer(positions + 1) - first
            drawn: Any = first + rng.integers(0, width)
            if self.nullable:
                drawn = pd.array(drawn, dtype="Int64")
                drawn[missing] = pd.NA
            return pd.Series(drawn)
        step = (self.upper - self.lower) / self.bins
        values = self.lower + (positions + rng.random(len(positions))) * step
        # Rounding can carry a draw at an edge into the next bin; its bin's middle is safe.
        astray = self._encode(values) != positions
        values[astray] = self.lower + (positions[astray] + 0.5) * step
        values[missing] = np.nan
        return pd.Series(values)

    def labels(self) -> list[str]:  # noqa: D102
        if self._one_each:
            texts = [str(value) for value in self.edges[:-1]]
        else:
            edges = [_digits(edge) for edge in self.edges.tolist()]
            texts = [f"[{low}, {high})" for low, high in zip(edges[:-1], edges[1:], strict=True)]
            if not self.integer:
                texts[-1] = texts[-1][:-1] + "]"
        return texts + [_MISSING_LABEL] * self.nullable

    def _span_label(self, start: int, stop: int) -> str:
        """Text for the values of the bins from ``start`` up to ``stop``, exclusive."""
        if self.integer:
            low, high = self._first_integer(np.array([start, stop])).tolist()
        else:
            step = (self.upper - self.lower) / self.bins
            low = self.lower + start * step
            high = self.upper if stop == self.bins else self.lower + stop * step
        closed = stop == self.bins and not self.integer
        return f"[{_digits(low)}, {_digits(high)}{']' if closed else ')'}"

    def hierarchy(self) -> tuple[Taxonomy, NDArray[np.int64]]:  # noqa: D102
        return Taxonomy.dyadic(self), np.arange(self.bins)

    def _families(
        self, limit: int, against_rest: bool
    ) -> Iterator[list[tuple[NDArray[np.int64], list[str]]]]:
        codes = np.arange(self.bins, dtype=np.int64)
        yield [self._spans(groups) for groups in _halvings(codes, self.bins, limit)]
        if self.bins < _LOG_BINS or not (self.upper >= 0 and self.lower <= self.upper / 100):
            return
        # In a finely cut range that reaches from about 0 (or below) far up, values often crowd
        # near 0: money, durations. Positions are on a scale that is linear within each octave of
        # the distance from 0 in bins: 0, 1, 2, 4, 8, ... bins away are equally far apart.
        zero = int(self._encode(np.zeros(1))[0])
        away = np.abs(codes - zero)
        octave = np.frexp(away.astype(np.float64))[1]
        start = np.where(away > 0, np.exp2(octave - 1.0), 0.0)
        position = octave + np.where(away > 0, (away - start) / np.maximum(start, 1.0), 0.0)
        position *= np.where(codes < zero, -1, 1)
        # A left edge belongs to the interval on its right, on both sides of 0.
        span = position[-1] + 1 - position[0]
        levels = []
        for depth in range(1, (limit if limit > 1 else 1).bit_length()):
            groups = np.floor((position - position[0]) / span * 2**depth).astype(np.int64)
            groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
            levels.append(self._spans(groups))
        yield levels

    def equal_parts(self, n_parts: int) -> Level:
        """Merge the bins into ``n_parts`` groups, as even as can be.

        Parameters
        ----------
        n_parts : int
            At most the number of bins. The missing cell, if there is one, is a further group.
        """
        codes = np.arange(self.bins, dtype=np.int64)
        groups, texts = self._spans(codes * n_parts // self.bins)
        if self.nullable:
            return Level(np.append(groups, n_parts), [*texts, _MISSING_LABEL])
        return Level(groups, texts)

    def _spans(self, groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
        """Groups of consecutive bins with their labels."""
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        stops = np.append(starts[1:], self.bins)
        if self._one_each:
            values = (int(self.lower) + starts, int(self.lower) + stops - 1)
            texts = [
                str(low) if low == high else f"{low} to {high}"
                for low, high in zip(*(part.tolist() for part in values), strict=True)
            ]
        else:
            texts = [
                self._span_label(low, high)
                for low, high in zip(starts.tolist(), stops.tolist(), strict=True)
            ]
        return groups, texts

    def _refusal(self, kind: str) -> str | None:
        if kind in ("numeric", "boolean", "object", "null", "decimal"):
            return None
        if kind == "string":
            return (
                "is declared Numeric but holds text; convert it to numbers, or declare it "
                "Categorical"
            )
        if kind == "temporal":
            return (
                "is declared Numeric but holds dates or times; convert it to a number, such as "
                "days since a fixed date"
            )
        return "is declared Numeric but does not hold numbers; convert it to numbers"

    def _diagnose(self, column: Column) -> dict[str, int]:
        values = column.numbers()
        missing = int(np.isnan(values).sum())
        return {
            "below": int((values < self.lower).sum()),
            "above": int((values > self.upper).sum()),
            "to_other": 0,
            "to_missing": missing if self.nullable else 0,
            "skipped": 0 if self.nullable else missing,
        }

    def _to_data(self) -> dict[str, Any]:
        return {
            "type": "numeric",
            "lower": self.lower,
            "upper": self.upper,
            "bins": self.bins,
            "integer": self.integer,
            "nullable": self.nullable,
        }

    def _key(self) -> tuple[Any, ...]:
        return (self.lower, self.upper, self.bins, self.integer, self.nullable)

    def __repr__(self) -> str:
        parts = [_digits(self.lower), _digits(self.upper)]
        if not self._one_each:
            parts.append(f"bins={self.bins}")
        parts += [f"{name}=True" for name in ("integer", "nullable") if getattr(self, name)]
        return f"Numeric({', '.join(parts)})"


def _digits(value: float) -> str:
    """Shortest text of a number, integers without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


def _check_integer_bins(low: int, high: int, bins: int | None) -> int:
    span = high - low
    if max(abs(low), abs(high)) > _MAX_INTEGER or span > _MAX_BINS - 1 and bins is None:
        raise DomainError(
            f"The integers {low} to {high} are too many for one code each; bounds up to 2**53 "
            "with fewer bins are possible: give bins=."
        )
    if bins is None:
        return span + 1
    if bins > span + 1:
        raise DomainError(
            f"bins={bins} exceeds the number of integers from {low} to {high} ({span + 1}): some "
            "bins would be empty. Use bins=None for one per integer."
        )
    if bins != span + 1 and bins * span >= _MAX_INTEGER:
        raise DomainError(
            f"bins={bins} over the integers {low} to {high} cannot be computed exactly in "
            "float64; use fewer bins, or integer=False."
        )
    return bins


def _check_real_bins(low: float, high: float, bins: int) -> None:
    span = high - low
    if not math.isfinite(span * bins):
        raise DomainError(f"The range from {low!r} to {high!r} is too wide for float64.")
    if span / bins < 8 * float(np.spacing(max(abs(low), abs(high)))):
        raise DomainError(
            f"{bins} bins between {low!r} and {high!r} are narrower than float64 can tell apart; "
            "use fewer bins."
        )


class Categorical(Attribute):
    """A list of categories.

    Values are compared as Python compares them: 1, 1.0 and ``numpy.int64(1)`` are the same
    category, "1" is another.

    Parameters
    ----------
    categories : sequence of str, int, float or bool
        Publicly known values, in the order of their codes.
    ordered : bool, default=False
        Whether the order means something, so that ranges of categories can be asked for.
    taxonomy : Taxonomy, optional
        Nested groups whose leaves are the categories, in any order.
    other : category, optional
        One of ``categories``, which stands for all unknown values. Without it records with an
        unknown value are skipped.
    nullable : bool, default=False
        Whether a missing value has a cell of its own, the last code. Otherwise records without
        this value are skipped.

    Attributes
    ----------
    size : int
        Number of codes, the missing cell included.
    inferred : bool
        Whether it was read from data, by `Domain.infer`; False if it was declared.

    Raises
    ------
    DomainError
        If categories are missing, repeated or of another type, ``other`` is none of them, or the
        taxonomy does not fit.

    Examples
    --------
    >>> Categorical(["Female", "Male"]).index_of("Male")
    1
    """

    categories: tuple[Category, ...]
    ordered: bool
    taxonomy: Taxonomy | None
    other: Category | None

    def __init__(
        self,
        categories: Iterable[Category],
        *,
        ordered: bool = False,
        taxonomy: Taxonomy | None = None,
        other: Category | None = None,
        nullable: bool = False,
    ) -> None:
        if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
            raise DomainError(
                f"categories must be a list of values, got {categories!r} of type "
                f"{type(categories).__name__}."
            )
        values = tuple(_plain_category(value, "Category") for value in categories)
        if not values:
            raise DomainError("Categorical needs at least one category.")
        if len(values) > _MAX_BINS:
            raise DomainError(f"Categorical takes at most {_MAX_BINS} categories.")
        index = {value: code for code, value in enumerate(values)}
        if len(index) != len(values):
            seen: set[Category] = set()
            repeated = [value for value in values if value in seen or seen.add(value)]  # type: ignore[func-returns-value]
            raise DomainError(
                f"Categories must differ, but {_some(repeated)} occur more than once (values that "
                "are equal in Python, such as True and 1, are the same category)."
            )
        if other is not None:
            other = _plain_category(other, "other")
            if other not in index:
                raise DomainError(
                    f"other={other!r} is not one of the categories; add it to the list."
                )
            other = values[index[other]]
        if taxonomy is not None:
            if not isinstance(taxonomy, Taxonomy):
                raise DomainError(
                    f"taxonomy must be a Taxonomy, got {type(taxonomy).__name__}. Make it with "
                    "Taxonomy.from_tree or Taxonomy.from_edges."
                )
            if set(taxonomy.leaves) != set(values):
                unknown = [leaf for leaf in taxonomy.leaves if leaf not in index]
                absent = [value for value in values if value not in set(taxonomy.leaves)]
                raise DomainError(
                    "The leaves of the taxonomy must be the categories"
                    + (f"; {_some(unknown)} are leaves only" if unknown else "")
                    + (f"; {_some(absent)} are categories only" if absent else "")
                    + "."
                )
        self._set(
            categories=values,
            ordered=_as_flag(ordered, "ordered"),
            taxonomy=taxonomy,
            other=other,
            nullable=_as_flag(nullable, "nullable"),
            _index=index,
        )

    _index: dict[Category, int]

    @property
    def n_values(self) -> int:
        """Number of categories."""
        return len(self.categories)

    def index_of(self, value: Any) -> int:
        """Code of a category.

        Raises
        ------
        KeyError
            If it is not declared.
        """
        code = self._find(value)
        if code is None:
            raise KeyError(value)
        return code

    def _find(self, value: Any) -> int | None:
        try:
            return self._index.get(value)
        except Exception:
            # Unhashable values equal no category.
            return None

    def _table(self, uniques: Sequence[Any], unknown: int) -> NDArray[np.int32]:
        """Code of each distinct value, and of a missing one at the end."""
        missing = self.n_values if self.nullable else -1
        table = np.full(len(uniques) + 1, missing, dtype=np.int32)
        for position, value in enumerate(uniques):
            code = self._find(value)
            if code is not None:
                table[position] = code
            elif not is_missing(value):
                table[position] = unknown
        return table

    @property
    def _unknown(self) -> int:
        """Code of a value that is not declared."""
        return -1 if self.other is None else self._index[self.other]

    def encode(self, column: Column) -> NDArray[np.int32]:  # noqa: D102
        codes, uniques = column.factorize()
        return self._table(uniques, self._unknown)[codes]

    def expression(self, column: LazyColumn) -> Any:  # noqa: D102
        missing = self.n_values if self.nullable else -1
        return column.looked_up(self._index, unknown=self._unknown, missing=missing)

    def decode(self, codes: ArrayLike, rng: np.random.Generator) -> pd.Series:  # noqa: D102
        positions = np.asarray(codes, dtype=np.int64)
        # The missing cell is the last code, and the last entry here.
        dtype = self._dtype()
        if dtype is object:
            objects = np.array([*self.categories, None], dtype=object)
            return pd.Series(objects[positions], dtype=object)
        values = pd.array(list(self.categories), dtype=dtype)
        if not self.nullable:
            return pd.Series(values.take(positions))
        positions = np.where(positions < self.n_values, positions, -1)
        return pd.Series(values.take(positions, allow_fill=True))

    def _dtype(self) -> Any:
        """Pandas type of decoded values: never dependent on the codes."""
        types = {type(value) for value in self.categories}
        if types == {bool}:
            return "boolean" if self.nullable else "bool"
        if types == {int} and all(-(2**63) <= value < 2**63 for value in self.categories):  # type: ignore[operator]
            return "Int64" if self.nullable else "int64"
        if types <= {int, float} and float in types and all(_is_float(v) for v in self.categories):
            return "float64"
        if types == {str}:
            # What pandas makes of a list of text: object before pandas 3, "str" since.
            return pd.Series(["text"]).dtype
        return object

    def labels(self) -> list[str]:  # noqa: D102
        return [str(value) for value in self.categories] + [_MISSING_LABEL] * self.nullable

    def hierarchy(self) -> tuple[Taxonomy, NDArray[np.int64]]:  # noqa: D102
        if self.taxonomy is not None:
            leaf_codes = [self._index[leaf] for leaf in self.taxonomy.leaves]
            return self.taxonomy, np.array(leaf_codes, dtype=np.int64)
        codes = np.arange(self.n_values)
        if self.ordered:
            return Taxonomy.dyadic(self.n_values), codes
        labels = ["Any", *self.categories]
        return Taxonomy(labels, [-1] + [0] * self.n_values), codes

    def _families(
        self, limit: int, against_rest: bool
    ) -> Iterator[list[tuple[NDArray[np.int64], list[str]]]]:
        if self.taxonomy is not None:
            levels = self.levels()[1:]
            if self.nullable:
                levels = tuple(Level(groups[:-1], texts[:-1]) for groups, texts in levels)
            yield [(groups, texts) for groups, texts in levels]
            return
        codes = np.arange(self.n_values, dtype=np.int64)
        if self.n_values <= _FEW_CATEGORIES and not self.ordered:
            # Neighbours in a short list need have nothing in common.
            yield [(codes, self._joined(codes))]
        else:
            yield [
                (groups, self._joined(groups)) for groups in _halvings(codes, self.n_values, limit)
            ]
        if against_rest and 2 < self.n_values <= _MOST_AGAINST_REST and not self.ordered:
            for code, category in enumerate(self.categories):
                yield [((codes != code).astype(np.int64), [str(category), "all others"])]

    def _joined(self, groups: NDArray[np.int64]) -> list[str]:
        """Label of each group of consecutive categories."""
        starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
        texts = []
        for start, stop in zip(starts, [*starts[1:], self.n_values], strict=True):
            first, last = self.categories[start], self.categories[stop - 1]
            texts.append(str(first) if stop - start == 1 else f"{first} .. {last}")
        return texts

    def _refusal(self, kind: str) -> str | None:
        if kind in ("object", "null"):
            return None
        has_text = any(isinstance(value, str) for value in self.categories)
        has_numbers = not all(isinstance(value, str) for value in self.categories)
        if kind in ("numeric", "boolean"):
            if has_numbers:
                return None
            return (
                "has only text categories but holds numbers; convert the column to text, or "
                "declare numbers as categories"
            )
        if kind == "string":
            if has_text:
                return None
            return (
                "has no text category but holds text; convert the column to numbers, or declare "
                "text as categories"
            )
        if kind == "decimal":
            return (
                "is declared Categorical but holds decimals, which engines compare in different "
                "ways; cast it to text or to a float"
            )
        return "is declared Categorical but holds neither text nor numbers; convert it to text"

    def _diagnose(self, column: Column) -> dict[str, int]:
        codes, uniques = column.factorize()
        kinds = self._table(uniques, -2)[codes]
        unknown = int((kinds == -2).sum())
        missing = int((kinds == (self.n_values if self.nullable else -1)).sum())
        skipped = (0 if self.nullable else missing) + (unknown if self.other is None else 0)
        return {
            "below": 0,
            "above": 0,
            "to_other": 0 if self.other is None else unknown,
            "to_missing": missing if self.nullable else 0,
            "skipped": skipped,
        }

    def _to_data(self) -> dict[str, Any]:
        return {
            "type": "categorical",
            "categories": list(self.categories),
            "ordered": self.ordered,
            "taxonomy": None if self.taxonomy is None else self.taxonomy._to_data(),
            "other": self.other,
            "nullable": self.nullable,
        }

    def _key(self) -> tuple[Any, ...]:
        return (_typed(self.categories), self.ordered, self.taxonomy, self.other, self.nullable)

    def __repr__(self) -> str:
        parts = [f"[{_some(self.categories)}]"]
        parts += ["ordered=True"] * self.ordered
        parts += [] if self.taxonomy is None else [f"taxonomy={self.taxonomy!r}"]
        parts += [] if self.other is None else [f"other={self.other!r}"]
        parts += ["nullable=True"] * self.nullable
        return f"Categorical({', '.join(parts)})"


def _is_float(value: Any) -> bool:
    """Whether a number is a float64 without loss."""
    try:
        return float(value) == value
    except OverflowError:
        return False


def _some(values: Sequence[Any], limit: int = 8) -> str:
    """A few values, for messages and reprs."""
    more = len(values) - limit
    return ", ".join(repr(v) for v in values[:limit]) + (f", ... ({more} more)" if more > 0 else "")


@dataclass(frozen=True)
class DomainReport:
    """What a domain would do to the records of a frame. Exact counts: NOT private.

    Attributes
    ----------
    columns : pandas.DataFrame
        One row per attribute: numbers of values clipped from ``below`` and ``above``, mapped
        ``to_other`` and ``to_missing``, and ``skipped`` with their record.
    n_rows : int
        Number of records.
    n_skipped : int
        Number of records that have no code in at least one attribute.
    """

    columns: pd.DataFrame
    n_rows: int
    n_skipped: int

    @property
    def clean(self) -> bool:
        """Whether every value is represented as it is: nothing clipped, mapped or skipped."""
        changed = self.columns[["below", "above", "to_other", "skipped"]]
        return not changed.to_numpy().any()

    def __repr__(self) -> str:
        return (
            f"NOT PRIVATE: exact counts of {self.n_rows} records, for the data owner only\n"
            f"{self.columns.to_string()}\n"
            f"records skipped: {self.n_skipped} of {self.n_rows}"
        )


class Domain:
    """Public schema of a table: its columns, their values, and the code of each value.

    Parameters
    ----------
    attributes : mapping of str to Numeric or Categorical, or iterable of such pairs
        The columns in order. They decide columns, order and types of everything released.
    inferred : bool, default=False
        Whether the domain was read from data, as :meth:`infer` does: then nothing released over
        it is private. It marks every attribute; an attribute that has the mark brings it along.

    Attributes
    ----------
    names : tuple of str
    attributes : tuple of Numeric or Categorical
    shape : tuple of int
        Number of codes of each attribute.
    size : int
        Number of cells, exact however large.

    Raises
    ------
    DomainError
        If there are no attributes, names are repeated or no strings, or there is one cell in all.

    Examples
    --------
    >>> domain = Domain({"age": Numeric(17, 90, integer=True), "sex": Categorical(["F", "M"])})
    >>> domain.shape
    (74, 2)
    >>> domain.encode(pd.DataFrame({"sex": ["M", "?"], "age": [120, 20]})).tolist()
    [[73, 1], [3, -1]]
    """

    names: tuple[str, ...]
    attributes: tuple[Numeric | Categorical, ...]
    inferred: bool
    _positions: dict[str, int]

    def __init__(
        self,
        attributes: Mapping[str, Numeric | Categorical]
        | Iterable[tuple[str, Numeric | Categorical]],
        *,
        inferred: bool = False,
    ) -> None:
        if isinstance(attributes, Domain | Mapping):
            pairs: list[Any] = list(attributes.items())
        elif isinstance(attributes, Attribute | str) or not isinstance(attributes, Iterable):
            raise DomainError(
                "A Domain is declared by a mapping of column names to Numeric or Categorical, got "
                f"{attributes!r}. For arrays see Domain.for_array."
            )
        else:
            pairs = list(attributes)
        self._init(pairs, _as_flag(inferred, "inferred"))
        if self.size == 1:
            raise DomainError(
                "The domain has one cell in all: there is nothing to release but the number of "
                "records. Declare more than one value."
            )

    def _init(self, pairs: Sequence[Any], inferred: bool) -> None:
        if not pairs:
            raise DomainError("The domain has no attributes. Declare at least one column.")
        for pair in pairs:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise DomainError(f"Expected (name, attribute) pairs, got {pair!r}.")
            name, attribute = pair
            if not isinstance(name, str):
                raise DomainError(
                    f"Column names must be strings, got {name!r} of type {type(name).__name__}."
                )
            _plain_text(name, "Column name")
            if not isinstance(attribute, Numeric | Categorical):
                raise DomainError(
                    f"Column {name!r} must be declared by Numeric or Categorical, got "
                    f"{type(attribute).__name__}."
                )
        attributes = tuple(attribute for _, attribute in pairs)
        if inferred:
            attributes = tuple(attribute._marked() for attribute in attributes)
        names = tuple(str(name) for name, _ in pairs)
        if len(set(names)) != len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise DomainError(f"Column names must be unique, but {_some(repeated)} are repeated.")
        fields = {
            "names": names,
            "attributes": attributes,
            # The mark lives on the attributes: whatever is built of them keeps it.
            "inferred": any(attribute.inferred for attribute in attributes),
            "_positions": {name: position for position, name in enumerate(names)},
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("A Domain cannot be changed; declare a new one.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A pickle from before attributes were marked has the mark on the whole only.
        marked = any(attribute.inferred for attribute in state["attributes"])
        pairs = list(zip(state["names"], state["attributes"], strict=True))
        self._init(pairs, state["inferred"] and not marked)

    @classmethod
    def _trusted(cls, pairs: Sequence[Any], inferred: bool) -> Domain:
        """A part of a domain, which may have a single cell."""
        domain = cls.__new__(cls)
        domain._init(pairs, inferred)
        return domain

    @classmethod
    def for_array(
        cls,
        attributes: Domain | Numeric | Categorical | Sequence[Numeric | Categorical],
        n_columns: int,
    ) -> Domain:
        """Domain of an array, whose columns are called x0, x1, ...

        Parameters
        ----------
        attributes : Domain, attribute or sequence of attributes
            One attribute stands for every column; a Domain is returned as it is.
        n_columns : int

        Raises
        ------
        DomainError
            If a sequence or a Domain has another length than ``n_columns``.
        """
        if isinstance(attributes, Attribute):
            parts: list[Any] = [attributes] * n_columns
        elif isinstance(attributes, Domain | Mapping):
            domain = cls(attributes) if isinstance(attributes, Mapping) else attributes
            parts = list(domain.attributes)
        elif isinstance(attributes, Sequence) and not isinstance(attributes, str):
            parts = list(attributes)
        else:
            raise DomainError(
                "A domain must be a Domain, one Numeric or Categorical for all columns, or a list "
                f"of them, got {attributes!r}."
            )
        if len(parts) != n_columns:
            raise DomainError(
                f"The domain declares {len(parts)} columns, but the data has {n_columns}."
            )
        if isinstance(attributes, Domain | Mapping):
            return domain
        return cls([(f"x{position}", part) for position, part in enumerate(parts)])

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of codes of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def size(self) -> int:
        """Number of cells, a Python integer of any size."""
        return math.prod(self.shape)

    def items(self) -> list[tuple[str, Numeric | Categorical]]:
        """(name, attribute) pairs in order."""
        return list(zip(self.names, self.attributes, strict=True))

    def index(self, name: str) -> int:
        """Position of a column.

        Raises
        ------
        DomainError
            If it is not declared.
        """
        try:
            return self._positions[name]
        except (KeyError, TypeError):
            raise DomainError(
                f"Column {name!r} is not in the domain; it has {_some(self.names)}."
            ) from None

    def __getitem__(self, name: str) -> Numeric | Categorical:
        return self.attributes[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def select(self, names: Sequence[str]) -> Domain:
        """The domain of some of the columns, in the order given."""
        return self._trusted([(name, self[name]) for name in names], False)

    def with_attribute(self, name: str, attribute: Numeric | Categorical) -> Domain:
        """The domain with one more column at the end.

        Raises
        ------
        DomainError
            If the column is declared already.
        """
        if name in self:
            raise DomainError(
                f"Column {name!r} is declared twice: in the domain and separately. Declare it once."
            )
        return Domain([*self.items(), (name, attribute)])

    def check_schema(self, data: Any) -> Any:
        """Check columns and declared types, and nothing that depends on a value.

        Estimators call it before they charge the ledger: its errors cost nothing.

        Parameters
        ----------
        data : table, 2-D array, Frame or LazyRows
            Needs exactly the columns of the domain, in any order. Columns without names (of an
            array) are taken by position, for the domain's columns that have no namesake.

        Returns
        -------
        frame : Frame, or LazyRows where given
            The columns in the domain's order.

        Raises
        ------
        DomainError
            If columns are missing or not declared, or a column's type cannot hold the declared
            values.
        TypeError, ValueError
            If the container cannot be read, see :func:`skdp.frames.as_frame`.
        """
        frame = data if isinstance(data, LazyRows) else as_frame(data)
        if isinstance(frame, Frame) and frame.n_unnamed:
            free = [name for name in self.names if name not in frame.named]
            if len(free) != frame.n_unnamed:
                raise DomainError(
                    f"The data has {frame.n_unnamed} columns without names, but the domain "
                    f"declares {len(free)} for them: {_some(free)}."
                )
            frame = frame.with_names(free)
        present = set(frame.names)
        missing = [name for name in self.names if name not in present]
        extra = [name for name in frame.names if name not in self]
        if missing or extra:
            raise DomainError(
                "The columns of the data are not those of the domain."
                + (f" Missing: {_some(missing)}." if missing else "")
                + (f" Not declared: {_some(extra)}." if extra else "")
                + (
                    " Select the declared columns first, or declare the others."
                    if extra
                    else " Add them, or leave them out of the domain (`domain.select`)."
                )
            )
        frame = frame.select(self.names)
        kinds, dtypes = frame.kinds, frame.dtypes
        refused = []
        for name, attribute in self.items():
            reason = attribute._refusal(kinds[name])
            if reason is not None:
                refused.append(f"{name!r} (type {dtypes[name]}) {reason}")
        if refused:
            more = f"; and {len(refused) - 5} more columns" if len(refused) > 5 else ""
            raise DomainError(
                "Column types do not match the domain: " + "; ".join(refused[:5]) + more + "."
            )
        return frame

    def encode(self, data: Any, *, on_invalid: str = "skip") -> NDArray[np.int32]:
        """Codes of all records.

        Parameters
        ----------
        data : table, 2-D array or Frame
        on_invalid : {"skip", "raise"}, default="skip"
            What to do about values that are clipped, mapped to ``other`` or not representable.
            "raise" is outside of the privacy guarantee: its error depends on values.

        Returns
        -------
        codes : ndarray of shape (n_rows, n_attributes), int32, Fortran order
            -1 where a value has no code: such a record is to be skipped.

        Raises
        ------
        DomainError
            For errors of the schema, see :meth:`check_schema`; for values only with
            ``on_invalid="raise"``.
        """
        if on_invalid not in ("skip", "raise"):
            raise ValueError(f"on_invalid must be 'skip' or 'raise', got {on_invalid!r}.")
        frame = self.check_schema(data)
        if on_invalid == "raise":
            report = self._report(frame)
            if not report.clean:
                raise DomainError(
                    "Values outside of the domain (this message is not private):\n"
                    f"{report.columns.to_string()}"
                )
        return self.encode_columns(frame)

    def encode_columns(self, frame: Frame) -> NDArray[np.int32]:
        """Codes of all records of a frame whose schema was checked; never raises.

        Parameters
        ----------
        frame : Frame
            With the columns of the domain.

        Returns
        -------
        codes : ndarray of shape (n_rows, n_attributes), int32, Fortran order
        """
        # Column by column is how codes are written here and read when they are counted.
        codes = np.empty((frame.n_rows, len(self)), dtype=np.int32, order="F")
        for position, (name, attribute) in enumerate(self.items()):
            codes[:, position] = attribute.encode(frame.column(name))
        return codes

    def expressions(self, rows: LazyRows) -> list[Any]:
        """Codes of all records of a lazy frame whose schema was checked, as expressions.

        Parameters
        ----------
        rows : LazyRows
            With the columns of the domain.

        Returns
        -------
        list of expressions
            One for each attribute: -1 where a value has no code.
        """
        return [attribute.expression(rows.column(name)) for name, attribute in self.items()]

    def decode(self, codes: ArrayLike, random_state: Any = None) -> pd.DataFrame:
        """Records for codes: values drawn uniformly within bins, categories as they are.

        Parameters
        ----------
        codes : array-like of shape (n, n_attributes), integers
            Every code in 0..size - 1 of its attribute.
        random_state : None, int or numpy.random.Generator
            Source of the draws; they are no noise and protect nothing.

        Returns
        -------
        frame : pandas.DataFrame
            float64 for numbers, int64 for integers ("Int64" if nullable), the categories' type
            otherwise; NaN, NA or None in the missing cell.

        Raises
        ------
        ValueError
            If the codes do not fit the domain.
        """
        rows = np.asarray(codes)
        if rows.ndim != 2 or rows.shape[1] != len(self):
            raise ValueError(
                f"codes must have shape (n, {len(self)}), one column per attribute, got "
                f"{rows.shape}."
            )
        if rows.size and not np.issubdtype(rows.dtype, np.integer):
            raise ValueError(f"codes must be integers, got {rows.dtype}.")
        if rows.size and ((rows < 0).any() or (rows >= np.array(self.shape)).any()):
            raise ValueError(f"codes must lie in 0..size - 1 for the sizes {self.shape}.")
        rng = sampling_generator(random_state)
        return pd.DataFrame(
            {
                name: attribute.decode(rows[:, position], rng)
                for position, (name, attribute) in enumerate(self.items())
            }
        )

    def check(self, data: Any) -> DomainReport:
        """Report what would be clipped, mapped or skipped. NOT private: for the data owner only.

        Warns
        -----
        PrivacyLeakWarning
            Always: the report holds exact counts.

        Raises
        ------
        DomainError
            For errors of the schema, see :meth:`check_schema`.
        """
        frame = self.check_schema(data)
        warnings.warn(
            "Domain.check counts private values exactly: its answer is not private and must not "
            "leave the data owner.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
        return self._report(frame)

    def _report(self, frame: Frame) -> DomainReport:
        skipped = np.zeros(frame.n_rows, dtype=bool)
        rows = {}
        for name, attribute in self.items():
            column = frame.column(name)
            rows[name] = attribute._diagnose(column)
            skipped |= attribute.encode(column) < 0
        columns = pd.DataFrame.from_dict(rows, orient="index")
        return DomainReport(columns, frame.n_rows, int(skipped.sum()))

    @classmethod
    def infer(cls, data: Any, *, bins: int = _DEFAULT_BINS) -> Domain:
        """Read a domain from data. NOT private: for experiments with data that are public.

        Integers with at most 256 values between the smallest and the largest get one code each;
        other numbers ``bins`` bins between the smallest and the largest value; everything else
        its distinct values, sorted by text. Columns with missing values are nullable.

        Parameters
        ----------
        data : table or 2-D array
        bins : int, default=32

        Warns
        -----
        PrivacyLeakWarning
            Always. The domain is marked ``inferred=True``, also in JSON.

        Raises
        ------
        DomainError
            If a column has no value at all, or all records are equal.
        """
        warnings.warn(
            "Domain.infer reads private values: ranges and categories of the data become public, "
            "and nothing released over this domain is private. Declare what is publicly known "
            "instead.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
        frame = as_frame(data)
        pairs = [(name, _infer(frame.column(name), name, bins)) for name in frame.names]
        return cls(pairs, inferred=True)

    def to_json(self) -> str:
        """The domain as JSON text, which :meth:`from_json` reads."""
        return json.dumps(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "inferred": self.inferred,
                "attributes": [{"name": n, **a._to_data()} for n, a in self.items()],
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Domain:
        """Read what :meth:`to_json` wrote.

        Parameters
        ----------
        source : str or path-like
            A str is JSON text; a file is named by a ``pathlib.Path``.

        Raises
        ------
        DomainError
            If the text is not JSON, not a domain, of a later version, or declares no valid domain.
        OSError
            If the file cannot be read.
        """
        if not isinstance(source, str | os.PathLike):
            raise DomainError(f"from_json takes JSON text or a path, got {type(source).__name__}.")
        try:
            text = source if isinstance(source, str) else Path(source).read_text("utf-8")
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DomainError(
                f"This is not a domain in JSON: {error}. A file is read with "
                "`Domain.from_json(pathlib.Path(...))`."
            ) from error
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise DomainError("This JSON is not a domain: it lacks the format 'skdp.domain'.")
        if data.get("version") != _VERSION:
            raise DomainError(
                f"This domain has version {data.get('version')!r}, but only version {_VERSION} can "
                "be read. Use the skdp that wrote it, or a newer one."
            )
        try:
            pairs = [_attribute_from_data(dict(item)) for item in data["attributes"]]
            return cls._trusted(pairs, _as_flag(data["inferred"], "inferred"))
        except DomainError as error:
            raise DomainError(f"This JSON declares no valid domain. {error}") from error
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DomainError(f"This domain is damaged: {error!r}.") from error

    def _key(self) -> tuple[Any, ...]:
        return (self.names, self.attributes, self.inferred)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = [f"{name!r}: {attribute!r}" for name, attribute in self.items()[:12]]
        if len(self) > len(shown):
            shown.append(f"... ({len(self) - len(shown)} more)")
        return f"Domain({{{', '.join(shown)}}}{', inferred=True' if self.inferred else ''})"


def _attribute_from_data(data: dict[str, Any]) -> tuple[str, Numeric | Categorical]:
    """One attribute of a JSON domain; whatever is wrong with it raises."""
    name, kind = data.pop("name"), data.pop("type")
    if kind == "numeric":
        return name, Numeric(data.pop("lower"), data.pop("upper"), **data)
    if kind == "categorical":
        tree = data.pop("taxonomy")
        taxonomy = None if tree is None else Taxonomy(tree["labels"], tree["parents"])
        return name, Categorical(data.pop("categories"), taxonomy=taxonomy, **data)
    raise DomainError(f"Attribute type {kind!r} is unknown.")


def _infer(column: Column, name: str, bins: int) -> Numeric | Categorical:
    """Smallest attribute that holds a column's values."""
    if column.kind in ("temporal", "other"):
        raise DomainError(
            f"Column {name!r} (type {column.dtype}) holds neither numbers nor text; convert it."
        )
    if column.kind == "numeric":
        return _infer_numeric(column.numbers(), name, bins)
    codes, uniques = column.factorize()
    occurring = [uniques[code] for code in np.unique(codes[codes >= 0])]
    plain = {
        _plain_category(value, f"Column {name!r} cannot be inferred: value")
        for value in occurring
        if not is_missing(value)
    }
    if not plain:
        raise _nothing_to_infer(name)
    missing = bool((codes < 0).any()) or any(is_missing(value) for value in occurring)
    categories = sorted(plain, key=lambda value: (isinstance(value, str), str(value)))
    if not any(isinstance(value, str) for value in plain):
        categories = sorted(plain)  # type: ignore[type-var]
    return Categorical(categories, nullable=missing)


def _infer_numeric(values: NDArray[np.float64], name: str, bins: int) -> Numeric:
    present = values[np.isfinite(values)]
    missing = bool(np.isnan(values).any())
    if not len(present):
        raise _nothing_to_infer(name)
    low, high = float(present.min()), float(present.max())
    integers = bool((present == np.floor(present)).all())
    if integers and high - low < _INFER_INTEGERS:
        return Numeric(low, high, integer=True, nullable=missing)
    n_bins = _as_int(bins, "bins")
    if integers and 1 <= n_bins <= high - low and (high - low) * n_bins < _MAX_INTEGER:
        return Numeric(low, high, n_bins, integer=True, nullable=missing)
    # A constant gets a range above it: numbers need one.
    return Numeric(low, high if high > low else low + max(1.0, abs(low)), n_bins, nullable=missing)


def _nothing_to_infer(name: str) -> DomainError:
    return DomainError(f"Column {name!r} has no value to infer a range or categories from.")
