"""What all attributes share: codes, labels and levels; `Categorical`, `Identifier`, `Text`.

A domain knows the schema only. Releases hold domains, and a release must not be able to reach rows.
So the package for rows imports this one, never the other way round.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._keys import Key, key_of, positions_of, shared_key
from .._validation import CodeArray, FloatArray, IntArray, run_starts
from ..exceptions import DomainError
from .taxonomy import Taxonomy
from .values import MAX_BINS, Category, as_flag, as_list, digits, plain_category, some


@dataclass(frozen=True)
class Coding:
    """How the values of a column become codes: a public description that `skdp.tables` applies.

    Privacy. The code of a value depends on its key and the declaration alone, never on another
    value or on the type that a reader gave to the column.

    Attributes
    ----------
    table : mapping of Key to int
        Code of each declared category, by its key.
    unknown, missing : int
        Code of values that are not in the table, and of missing ones; -1: there is none.
    place : callable, or None
        Of numbers and dates: codes of float64 numbers, NaN where missing.
    clock : Clock or None
        Of dates: the line of numbers on which they are read.
    """

    table: Mapping[Key, int] = field(default_factory=dict)
    unknown: int = -1
    missing: int = -1
    place: Callable[[FloatArray], CodeArray] | None = None
    clock: Any = None

    def code_of(self, value: Any) -> int:
        """Code of one value. Never raises."""
        key = key_of(value)
        return self.missing if key is None else self.table.get(key, self.unknown)


def read(data: Any) -> Any:
    """The columns of a container; only names and types have been looked at."""
    # The top level loads the package for rows when it is asked for it.
    return sys.modules[__name__.partition(".")[0]].tables.as_frame(data)


MISSING_LABEL = "missing"


class Level(NamedTuple):
    """One generalisation of an attribute: codes merged into groups.

    Attributes
    ----------
    groups : ndarray of shape (size,)
        Group of each code; groups are numbered from 0.
    labels : list of str
        One label per group.
    """

    groups: IntArray
    labels: list[str]


class Attribute:
    """What :class:`Numeric` and :class:`Categorical` share: codes, labels, levels.

    Attributes
    ----------
    size : int
        Number of codes, the missing cell included.
    nullable : bool
        Whether the last code is the missing cell.
    """

    nullable: bool
    special: tuple[float, ...] = ()
    # Whether sums of values mean anything.
    summable: bool = True
    # The attribute of which this one is the `fine`.
    _coarse: Attribute | None = None

    @property
    def n_alone(self) -> int:
        """How many of the last codes say nothing of their neighbours: special values, missing."""
        return len(self.special) + self.nullable

    @property
    def n_values(self) -> int:
        """Number of codes without the missing cell."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of codes; the missing cell, if ``nullable``, is the last."""
        return self.n_values + self.nullable

    @property
    def fine(self) -> Any:
        """The attribute whose codes are the finest that a column by itself is measured on.

        It does not depend on ``bins`` or ``edges``: these say which codes are used together with
        other columns and as labels, see `labels_of`.
        """
        return self

    @property
    def declared(self) -> Any:
        """The attribute whose codes are labels and groups: of a `fine` one, what it was made of."""
        return self if self._coarse is None else self._coarse

    @property
    def labels_of(self) -> IntArray:
        """Code of `declared` for each code."""
        return np.arange(self.size)

    def coding(self) -> Coding:
        """How values become codes, as a public description that tables of any library apply.

        A description rather than expressions of an engine: what it says of one value is the same
        for every reader, and it is applied to columns in memory and to batches of lazy frames.
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

    def shown(self, numbers: FloatArray) -> Any:
        """Numbers that were computed from values, such as means, as users see them."""
        return numbers

    def labels(self) -> list[str]:
        """Text for each code, for printing."""
        raise NotImplementedError

    def order(self) -> IntArray | None:
        """Codes in an order in which neighbours are similar; None if there is no such order.

        Returns
        -------
        ndarray of int64, shape (size,), or None
            The missing cell is the last.
        """
        raise NotImplementedError

    @property
    def leaf_codes(self) -> IntArray:
        """Codes that do not stand alone, in the order of the leaves of a taxonomy if there is one.

        Special values of numbers and the missing cell stand alone.
        """
        return np.arange(self.size - self.n_alone, dtype=np.int64)

    def levels(self) -> tuple[Level, ...]:
        """Generalisations from coarsest (everything in one group) to finest (each code alone).

        Those of the declared taxonomy; else groups of 1, 2, 4, ... codes of numbers and ordered
        categories. Below the top level, special values are groups of their own, then the missing
        cell.
        """
        top, *below = nested = self._nested()
        if not below and self.n_alone:
            below = nested
        return Level(np.zeros(self.size, dtype=np.int64), top.labels[:1]), *below

    def _nested(self) -> list[Level]:
        """Levels of all codes, in which some stand alone, the coarsest first."""
        codes = self.leaf_codes
        height = (len(codes) - 1).bit_length()
        return [self.level(codes >> (height - level)) for level in range(height + 1)]

    def level(self, groups: IntArray, labels: list[str] | None = None) -> Level:
        """A level of groups of the codes that do not stand alone; the others are groups as well.

        Parameters
        ----------
        groups : ndarray of int
            Group of each code that does not stand alone.
        labels : list of str, default=None
            One for each group; None: the groups are runs of codes.
        """
        if labels is None:
            labels = self._texts(np.append(run_starts(groups), len(groups)))
        own = len(labels) + np.arange(self.n_alone)
        texts = self.labels()[self.size - self.n_alone :]
        return Level(np.concatenate([groups, own]), [*labels, *texts])

    def _texts(self, cuts: IntArray) -> list[str]:
        """Text for the codes from each cut up to the next, exclusive."""
        raise NotImplementedError

    def _said(self) -> dict[str, Any]:
        """The arguments but for the options, without those that follow from the others."""
        raise NotImplementedError

    def _entries(self) -> dict[str, Any]:
        """The arguments that say something; flags are always there."""
        found = self._said()
        for name, default in _options(type(self)).items():
            value = getattr(self, name)
            if name not in found and (default is False or value != default):
                found[name] = value
        return found

    def to_data(self) -> dict[str, Any]:
        """What JSON says of it."""
        plain = {name: _plain(value) for name, value in self.declared._entries().items()}
        fine = {} if self.declared is self else {"fine": True}
        return {"type": type(self).__name__.lower(), **plain, **fine}

    def __repr__(self) -> str:
        if self._coarse is not None:
            return f"{self._coarse!r}.fine"
        said = self._entries()
        # A flag that is not set is left out; `other` may be the category False.
        said = {k: v for k, v in said.items() if v is not False or k == "other"}
        return call(type(self).__name__, said, _shown)

    def _key(self) -> str:
        # True, 1 and 1.0 are equal in Python, but are written differently.
        return json.dumps(self.to_data())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            raise AttributeError(f"{type(self).__name__} cannot be changed; declare a new one.")
        super().__setattr__(name, value)


@functools.cache
def _options(kind: type) -> dict[str, Any]:
    """Arguments of a class that may be left out, and what they are then; `edges` are no option."""
    given = inspect.signature(kind).parameters.values()
    found = {each.name: each.default for each in given if each.kind is each.KEYWORD_ONLY}
    return {name: default for name, default in found.items() if name != "edges"}


def call(name: str, said: Mapping[str, Any], shown: Callable[[Any], str]) -> str:
    """A declaration as code: range and categories stand first, without their names."""
    first = ("categories",) if name == "Categorical" else ("lower", "upper")
    parts = [shown(v) if key in first else f"{key}={shown(v)}" for key, v in said.items()]
    return f"{name}({', '.join(parts)})"


def _plain(value: Any) -> Any:
    """A value of a declaration as JSON writes it."""
    if isinstance(value, Taxonomy):
        return value._to_data()
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    """A value of a declaration as Python writes it; many categories are cut short."""
    if isinstance(value, tuple):
        return f"[{some(value)}]"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return digits(value) if isinstance(value, float) else repr(value)


# --- columns that are never measured


@dataclass(frozen=True)
class Identifier:
    """A column that identifies records: a key, an account number, a name.

    It is never measured. In the data it may be present or absent, and its values are never read
    (an estimator reads them only where the column is its ``privacy_id``). Synthetic rows are
    numbered, which has nothing to do with the data.

    Examples
    --------
    >>> from skdp import Domain, Numeric
    >>> domain = Domain({"id": Identifier(), "age": Numeric(0, 99, integer=True)})
    >>> domain.names, domain.columns
    (('age',), ('id', 'age'))
    >>> domain.decode([[30], [40]])
       id  age
    0   1   30
    1   2   40
    """

    def fresh(self, n: int) -> pd.Series:
        """Numbers of n synthetic rows, from 1."""
        return pd.Series(range(1, n + 1), dtype="int64")

    def to_data(self) -> dict[str, Any]:
        """What JSON says of it."""
        return {"type": "identifier"}


@dataclass(frozen=True)
class Text:
    """Free text, which no release can hold: a `Domain` refuses it and says what to do.

    Parameters
    ----------
    description : str, default=""
        What the column holds.
    """

    description: str = ""


class Categorical(Attribute):
    """A list of categories.

    Values are compared by their meaning: 1, 1.0, "1" and "01" are the same category, and so are
    True and "true", or a date and the text that writes it. A reader of files may make text of
    numbers, or numbers of text, because of one other record; so two categories must not mean the
    same, as "1" and "1.0", "01" and "1", or 2**53 and 2**53 + 1 do. A gap is one value, however it
    is written (missing, "", "NA" and such); a category "" or "NA" names it.

    Parameters
    ----------
    categories : sequence of str, int, float or bool
        Publicly known values, in the order of their codes; members of an Enum stand for their
        values.
    ordered : bool, default=False
        Whether the order is meaningful, so that queries may ask for ranges of categories.
    taxonomy : Taxonomy or what :meth:`Taxonomy.from_tree` takes, optional
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

    Raises
    ------
    DomainError
        If categories are missing, repeated or of another type, two of them mean one number or truth
        value, ``other`` is not one of them, or the taxonomy does not fit.

    Examples
    --------
    >>> Categorical(["Female", "Male"]).index_of("Male")
    1
    """

    def __init__(
        self,
        categories: Any,
        *,
        ordered: bool = False,
        taxonomy: Any = None,
        other: Category | None = None,
        nullable: bool = False,
    ) -> None:
        listed = as_list(categories, "categories")
        values = tuple(plain_category(value, "Category") for value in listed)
        if not 1 <= len(values) <= MAX_BINS:
            raise DomainError(f"Categorical needs at least one category, and {MAX_BINS} at most.")
        if (shared := shared_key(values)) is not None:
            raise DomainError(
                "Categories {!r} and {!r} mean one text, number, date or gap, which readers of "
                "files may merge. Declare one of them; or write them with a letter, here and in "
                "the data: 'c{}' and 'c{}'.".format(*shared, *shared)
            )
        keys = positions_of(values)
        if None in keys and nullable is True:
            gap = f"The category {values[keys[None]]!r} is a gap, and so is what nullable=True adds"
            raise DomainError(f"{gap}: leave out one of them.")
        if other is not None:
            if (key := key_of(plain_category(other, "other"))) not in keys:
                raise DomainError(f"other={other!r} is not one of the categories; add it there.")
            other = values[keys[key]]
        if not isinstance(taxonomy, Taxonomy | None):
            taxonomy = Taxonomy.from_tree(taxonomy)
        odd = set() if taxonomy is None else set(taxonomy.leaves) ^ set(values)
        if odd:
            one = f"but {some(sorted(odd, key=str))} are in one of the two only"
            raise DomainError(f"The leaves of the taxonomy must be the categories, {one}.")
        self.categories, self._keys = values, keys
        self.ordered = as_flag(ordered, "ordered")
        self.taxonomy: Taxonomy | None = taxonomy
        self.other = other
        self.nullable = as_flag(nullable, "nullable")

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
        return self._keys[key_of(value)]

    def coding(self) -> Coding:  # noqa: D102
        missing = self.n_values if self.nullable else -1
        unknown = -1 if self.other is None else self.index_of(self.other)
        # A declared "" or "NA" names the gap.
        return Coding(self._keys, unknown, self._keys.get(None, missing))

    def decode(self, codes: ArrayLike, rng: np.random.Generator) -> pd.Series:  # noqa: D102
        cells = self._cells()
        return pd.Series(cells.array[np.asarray(codes, dtype=np.int64)], dtype=cells.dtype)

    def _cells(self) -> pd.Series:
        """The categories, and the missing cell; decoded values have its type, whatever they are."""
        listed = list(self.categories)
        held = pd.Series(listed)
        # No type of numbers holds some integers exactly.
        exact = held.dtype != np.uint64 and held.tolist() == listed
        kind: Any = str(held.dtype) if exact else "object"
        if self.nullable:
            kind = {"bool": "boolean", "int64": "Int64"}.get(kind, kind)
        return pd.Series([*listed, None][: self.size], dtype=kind)

    def labels(self) -> list[str]:  # noqa: D102
        return [str(value) for value in self.categories] + [MISSING_LABEL] * self.nullable

    @property
    def leaf_codes(self) -> IntArray:  # noqa: D102
        leaves = self.categories if self.taxonomy is None else self.taxonomy.leaves
        return np.array([self.index_of(leaf) for leaf in leaves], dtype=np.int64)

    def _nested(self) -> list[Level]:
        if self.taxonomy is None and self.ordered:
            return super()._nested()
        tree = self.taxonomy or Taxonomy.from_tree({"Any": self.categories})
        back = np.argsort(self.leaf_codes)
        return [
            self.level(
                tree.groups(level)[back], [str(tree.labels[node]) for node in tree.cut(level)]
            )
            for level in range(tree.height + 1)
        ]

    def order(self) -> IntArray | None:  # noqa: D102
        if self.taxonomy is None and not self.ordered:
            return None
        return np.append(self.leaf_codes, np.arange(self.n_values, self.size))

    def _texts(self, cuts: IntArray) -> list[str]:
        held = [self.categories[start:stop] for start, stop in itertools.pairwise(cuts.tolist())]
        return [str(run[0]) if len(run) == 1 else f"{run[0]} .. {run[-1]}" for run in held]

    def _said(self) -> dict[str, Any]:
        return {"categories": self.categories}
