"""Attributes: codes, labels and levels; `Categorical`, `Numeric`, `Identifier`, `Text`.

A domain knows the schema only. Releases hold domains, and a release must not be able to reach rows.
So the package for rows imports this one, never the other way round.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import itertools
import json
import numbers
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._keys import Key, key_of, positions_of, shared_key
from .._validation import (
    EDGE,
    Category,
    CodeArray,
    FloatArray,
    IntArray,
    as_end,
    as_list,
    as_number,
    check_flag,
    digits,
    is_word,
    plain_category,
    run_starts,
    some,
)
from ..exceptions import DomainError
from .bins import (
    BLOCK,
    MAX_BINS,
    MOST_BINS,
    Points,
    Spread,
    apart,
    declared_edges,
    declared_grid,
    edges_on,
    lattice_edges,
    number_of_bins,
)
from .taxonomy import Taxonomy

# Integers in a range of at most this size get one code each where nobody gives bins, in schemas
# and in domains read from data.
MOST_SINGLE = 256
AUTO = "auto"


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

    def counted(self, codes: CodeArray, numbers: FloatArray) -> pd.Series:
        """Values of records as they count, in a type that no value decides.

        Parameters
        ----------
        codes : ndarray of int, shape (n,)
            What has none, -1, is missing; integers, whose type has no gap, are the middle then.
        numbers : ndarray of float64, shape (n,)
            Their values on the number line, if there is one.
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
        kind: Any = type(self)
        for name, default in _options(kind).items():
            value = getattr(self, name)
            if name not in found and (default is False or value != default):
                found[name] = [*value] if name == "special" else value
        return found

    def to_data(self) -> dict[str, Any]:
        """What JSON says of it."""
        plain = {name: _plain(value) for name, value in self.declared._entries().items()}
        fine = {} if self.declared is self else {"fine": True}
        return {"type": type(self).__name__.lower(), **plain, **fine}

    def __repr__(self) -> str:
        if self._coarse is not None:
            return f"{self._coarse!r}.fine"
        first = ("categories", "lower", "upper")
        # A flag that is not set is left out; `other` may be the category False.
        said = {k: v for k, v in self._entries().items() if v is not False or k == "other"}
        parts = [_shown(v) if key in first else f"{key}={_shown(v)}" for key, v in said.items()]
        return f"{type(self).__name__}({', '.join(parts)})"

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


def _plain(value: Any) -> Any:
    """A value of a declaration as JSON writes it."""
    if isinstance(value, Taxonomy):
        return {"labels": list(value.labels), "parents": value.parents.tolist()}
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


# --- categories


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
            if repr(shared[0]) == repr(shared[1]):
                raise DomainError(f"Category {shared[0]!r} is listed more than once: list it once.")
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
        self.ordered = check_flag(ordered, "ordered")
        self.taxonomy: Taxonomy | None = taxonomy
        self.other = other
        self.nullable = check_flag(nullable, "nullable")

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

    def counted(self, codes: CodeArray, numbers: Any) -> pd.Series:  # noqa: D102
        cells = self._cells(gaps=True)
        return pd.Series(cells.array[codes], dtype=cells.dtype)

    def _cells(self, gaps: bool = False) -> pd.Series:
        """The categories, and the missing cell; decoded values have its type, whatever they are."""
        listed = list(self.categories)
        held = pd.Series(listed)
        # No type of numbers holds some integers exactly.
        exact = held.dtype != np.uint64 and held.tolist() == listed
        kind: Any = str(held.dtype) if exact else "object"
        if self.nullable:
            kind = {"bool": "boolean", "int64": "Int64"}.get(kind, kind)
        elif gaps:
            # Steps of scikit-learn refuse gaps in Int64.
            kind = {"bool": "boolean", "int64": "float64"}.get(kind, kind)
        return pd.Series([*listed, None][: self.size + gaps], dtype=kind)

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
        cuts = [(tree.groups(level)[back], tree.cut(level)) for level in range(tree.height + 1)]
        return [
            self.level(each, [str(tree.labels[node]) for node in nodes]) for each, nodes in cuts
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


# --- numbers


class Numeric(Attribute):
    """A range of numbers, cut into bins.

    Bin j is ``[edges[j], edges[j + 1])``, and the last bin is closed. With a number of bins, these
    are of equal width: edge j is ``j * (upper - lower) / bins + lower`` in float64. Numbers outside
    the range, infinities included, are clipped to its ends. After the bins come the cells of the
    ``special`` values, then the missing cell.

    Parameters
    ----------
    lower, upper : float, optional
        Publicly known range, both ends included. ``lower < upper``, except that an integer
        attribute may have a single value. With ``edges`` they are left out.
    bins : int or "auto", optional
        Number of bins. "auto" gives at most 1,024, which follow from the range alone: narrow near 0
        and growing to a fiftieth of a value, with edges at multiples of 1, 2 and 5 times powers of
        ten; equally wide on a ``scale``. They are for columns by themselves: releases that count
        cells of several columns, and models with a parameter for each bin, use `resolved` instead,
        with 32 bins (the user guide says which). Default: "auto"; one bin per integer if
        ``integer`` (32 with a ``scale``). With ``integer`` or ``decimals`` there are at most as
        many bins as possible values.
    integer : bool, default=False
        Values are integers: fractions go to the nearest first, halves up, and each bin holds the
        integers that the formula maps to it, about equally many, at least one. ``lower``,
        ``upper``, ``edges`` and ``special`` must be integers. Sampled values are integers too.
        One code for each integer is too many for wide ranges (and one-way tables are then
        inaccurate): give ``bins``.
    nullable : bool, default=False
        Whether a missing value has a cell of its own, the last code. Otherwise records without
        this value are skipped.
    edges : list of float, optional
        Public edges of uneven bins, increasing: ``Numeric(edges=[0, 1, 10, 100])`` has the range 0
        to 100 and three bins.
    scale : {"linear", "log", "sqrt"}, default="linear"
        Where bins are narrow: evenly wide, or narrow near ``lower`` as suits money and durations.
        "log" cuts at equal ratios (from ``lower=0`` on, equally on ``log(1 + x / u)`` with u =
        ``upper / 1000``), "sqrt" at equal differences of the root of ``x - lower``.
    special : list of float, optional
        Values that many records share, such as 0 or the code 999 for "not asked", inside or outside
        of the range. Each has a cell of its own. They are numbers: ranges contain them, and sums
        and means use their value. They are compared as float64, before anything is clipped.
    decimals : int, optional
        Sampled values have at most this many decimal digits: 2 for cents. Records are not rounded.
        A query for a single value is answered by its share of the bin.

    Attributes
    ----------
    size : int
        Number of codes: bins, special values, and the missing cell.
    bins : int
        Number of bins, also with "auto".
    edges : ndarray of shape (bins + 1,)
        Bin j is ``[edges[j], edges[j + 1])``. float64, the last edge being ``upper``, which belongs
        to the last bin; for an integer attribute int64, the last edge being ``upper + 1``.
    auto : bool
        Whether the bins are those of "auto".

    Raises
    ------
    DomainError
        If the parameters declare no usable range, or a bin that no value can fall into.
    TypeError
        If one is of another type.

    Examples
    --------
    >>> Numeric(17, 90, integer=True).size
    74
    >>> Numeric(0, 200_000, bins=50).labels()[:2]
    ['[0, 4000)', '[4000, 8000)']
    >>> hours = Numeric(0, 1000)
    >>> hours.size, hours.labels()[0], hours.labels()[275], hours.labels()[-1]
    (800, '[0, 0.002)', '[2, 2.02)', '[995, 1000]')
    >>> balance = Numeric(0, 50_000, bins=4, scale="log", special=[0], decimals=2)
    >>> balance.labels()
    ['[0, 231.241)', '[231.241, 1531.93)', '[1531.93, 8848.06)', '[8848.06, 50000]', '0']
    """

    bins: int
    edges: NDArray[Any]
    # Whether bins are those of a number of bins alone, or those of "auto".
    even: bool
    auto: bool = False

    def __init__(
        self,
        lower: float | None = None,
        upper: float | None = None,
        bins: int | str | None = None,
        *,
        integer: bool = False,
        nullable: bool = False,
        edges: Any = None,
        scale: str = "linear",
        special: Any = (),
        decimals: int | None = None,
    ) -> None:
        self.integer = check_flag(integer, "integer")
        self.nullable = check_flag(nullable, "nullable")
        self._by_edges = edges is not None
        if edges is None:
            low, high = self._read(lower, "lower"), self._read(upper, "upper")
            if low > high or (low == high and not self.integer):
                what = f"{type(self).__name__} needs lower {'<=' if self.integer else '<'} upper"
                raise DomainError(f"{what}, got lower={lower!r} and upper={upper!r}.")
        else:
            if scale != "linear" or (lower, upper, bins) != (None, None, None):
                raise DomainError(
                    "edges say where to cut: leave out lower, upper, bins and scale beside them."
                )
            cuts = declared_edges(edges, self._read, self.integer)
            low, high = cuts[0].item(), cuts[-1].item() - self.integer
            self._recut(cuts)
        self.lower, self.upper, self.scale = low, high, str(scale)
        # The numbers that it can hold, where these are integers or decimals.
        self._grid, self.decimals = declared_grid(low, high, self.integer, decimals)
        if edges is None:
            self._cut(bins)
        given = as_list(special, "special")
        self.special = tuple(self._read(value, "A special value") for value in given)
        if len({*self.special}) < len(self.special):
            raise DomainError(f"special values must differ, got {some(self.special)}.")
        self._check_contents()

    def _read(self, value: Any, name: str) -> float:
        """A declared value as a number."""
        return as_end(value, name, self.integer)

    def __getstate__(self) -> dict[str, Any]:
        # What it is, and not what was computed from that.
        return {name: value for name, value in self.__dict__.items() if name != "contents"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Now, so that no copy shows whether it has met a record.
        _ = self.contents

    def _cut(self, bins: Any) -> None:
        """Set the number of bins, and their edges where the formula of even bins is not used."""
        low, high, scale = self.lower, self.upper, self.scale
        if is_word(bins, AUTO) or (bins is None and not self.integer):
            self._recut(self._auto_edges(), auto=True)
            return
        n = number_of_bins(bins, self._grid, scale)
        self._recut(edges_on(scale, low, high, n, self.integer), even=scale == "linear")

    def _auto_edges(self) -> NDArray[Any]:
        """Edges of the bins of "auto", which follow from range, grid and scale alone."""
        low, high, grid = self.lower, self.upper, self._grid
        most = MOST_BINS if grid is None else min(MOST_BINS, len(grid))
        if self.scale != "linear":
            return edges_on(self.scale, low, high, most, self.integer)
        if grid is not None and len(grid) == most:
            inner = (*grid.value(np.arange(grid.first + 1, grid.last + 1)),)
        else:
            least = Fraction(0) if grid is None else Fraction(1, grid.denominator)
            inner = lattice_edges(float(low), float(high), least)
        ends = low, *inner, high + self.integer
        edges: NDArray[Any] = np.array(ends, dtype=np.int64 if self.integer else np.float64)
        return apart(edges) if grid is None else edges

    def _check_contents(self) -> None:
        """Refuse bins that no value can fall into, but join those of "auto" with others."""
        if self.auto:
            self._join_empty()
        empty = self.contents.empty()
        if len(empty) and self.decimals is not None and self.even:
            # Even edges are rounded: values of the grid that are edges may fall into the bin
            # before. The nearest floats to the edges do not.
            low, high = Fraction(repr(self.lower)), Fraction(repr(self.upper))
            ends = [low + (high - low) * place / self.bins for place in range(self.bins + 1)]
            self._recut(np.array(ends, dtype=np.float64))
            empty = self.contents.empty()
        if len(empty):
            texts = [self.span_label(int(code), int(code) + 1) for code in empty[:8]]
            raise DomainError(
                f"No value but special ones can fall into {', '.join(texts)}: declare fewer bins, "
                "other edges, or no special values where every integer has a code."
            )

    def _join_empty(self, kept: Any = ()) -> None:
        """Join bins that no value can fall into to a neighbour; edges that are kept stay."""
        while self.bins > 1 and len(empty := self.contents.empty()):
            # To the bin before, or after the first.
            later = (empty == 0) | np.isin(self.edges[empty], kept)
            self._recut(np.delete(self.edges, empty + later))

    def _recut(self, edges: NDArray[Any], *, even: bool = False, **more: Any) -> None:
        """Set the edges; ``even`` says that they are those of a number of bins alone."""
        vars(self).pop("contents", None)
        edges.setflags(write=False)
        vars(self).update(edges=edges, bins=len(edges) - 1, even=even, **more)

    @property
    def fine(self) -> Any:  # noqa: D102
        if self.auto or self.one_each or self._coarse is not None:
            return self
        own, twin = self.edges[1:-1], copy.copy(self)
        twin._recut(self._auto_edges(), _coarse=self)
        twin._join_empty()
        # Of the automatic edges those that are not near a declared one, all of which stay.
        auto, widths = twin.edges, np.diff(twin.edges)
        inner, place = auto[1:-1], np.searchsorted(own, auto[1:-1])
        below, above = np.append(-np.inf, own)[place], np.append(own, np.inf)[place]
        far = np.minimum(inner - below, above - inner) >= np.minimum(widths[:-1], widths[1:]) / 2
        twin._recut(np.concatenate([auto[:1], np.union1d(inner[far], own), auto[-1:]]))
        twin._join_empty(own)
        return twin

    def _cut_at(self, cuts: FloatArray) -> Any:
        """The attribute with bins that are divided at some numbers as well."""
        if self._coarse is not None:
            return self._coarse._cut_at(cuts).fine  # type: ignore[attr-defined]
        # The upper end of a grid may be a bin by itself.
        inner = cuts[(cuts > self.edges[0]) & (cuts <= self.upper)]
        inner = np.unique(np.minimum(inner, np.nextafter(self.edges[-1], -np.inf)))
        if self._grid is None:
            # No bin that rounding leaves, such as that between < 5 and <= 5.
            place = self.contents.positions(inner)
            inner = inner[(place % 1 > 0) & (np.diff(place, prepend=-1) > EDGE)]
        divided = copy.copy(self)
        divided._recut(np.union1d(self.edges, inner).astype(self.edges.dtype))
        divided._join_empty(self.edges)
        return divided if divided.bins > self.bins else self

    @property
    def labels_of(self) -> IntArray:  # noqa: D102
        return self.codes_in(self.declared)

    def codes_in(self, coarser: Numeric) -> IntArray:
        """Code of a coarser attribute of the same column for each code.

        Parameters
        ----------
        coarser : Numeric
            Its edges are some of these, and it has the same special values and missing cell.

        Returns
        -------
        ndarray of int64, shape (size,)
        """
        bins = np.searchsorted(coarser.edges[1:-1], self.edges[:-1], side="right")
        return np.append(bins, np.arange(coarser.bins, coarser.size))

    @property
    def n_values(self) -> int:
        """Number of bins and special values."""
        return self.bins + len(self.special)

    @property
    def one_each(self) -> bool:
        """Whether there is a bin for each integer."""
        return self.integer and self.bins == self.upper - self.lower + 1

    @functools.cached_property
    def contents(self) -> Spread:
        """What the bins hold: `Points` of a grid (of integers, cents), or all numbers."""
        grid, special = self._grid, np.array(sorted(self.special), dtype=np.float64)
        if grid is None:
            return Spread(self.edges, special)
        places = grid.at_least(special)
        own = (places <= grid.last) & (grid.value(places) == special)
        return Points(self.edges, places[own], grid)

    def labels(self) -> list[str]:  # noqa: D102
        texts = [*self._texts(np.arange(self.bins + 1)), *map(self._written, self.special)]
        return texts + [MISSING_LABEL] * self.nullable

    def _written(self, value: float) -> str:
        """Text for a number of the column."""
        return digits(value)

    def _texts(self, cuts: IntArray) -> list[str]:
        edges = self.edges[cuts].tolist()
        if self.one_each:
            return runs(edges, self._written)
        near = 2e-6 * np.abs(self.edges[1:])
        if self.scale != "linear" and not self.integer and (np.diff(self.edges) > near).all():
            # Edges of a scale are not round: six digits, if these tell them apart.
            edges = [float(f"{edge:.6g}") for edge in edges]
        ends = itertools.pairwise(map(self._written, edges))
        texts = [f"[{low}, {high})" for low, high in ends]
        if cuts[-1] == self.bins and not self.integer:
            texts[-1] = texts[-1][:-1] + "]"
        return texts

    def span_label(self, start: int, stop: int) -> str:
        """Text for the values of the bins from ``start`` up to ``stop``, exclusive."""
        return self._texts(np.array([start, stop]))[0]

    def resolved(self, most: int | None) -> Numeric:
        """The same column with at most ``most`` bins of equal width, if its bins are "auto".

        Parameters
        ----------
        most : int or None
            None leaves it as it is, and so does a declared number of bins; of a `fine` column the
            declared one comes back.

        Returns
        -------
        Numeric
            With the same range, special values and steps; bins of equal width on the ``scale``.
        """
        if self._coarse is not None and most is not None:
            return self._coarse  # type: ignore[return-value]
        bins = 0 if most is None or not self.auto else most
        for n in range(bins if self._grid is None else min(bins, len(self._grid)), 0, -1):
            # Fewer, where only special values fall into a bin.
            with contextlib.suppress(DomainError):
                return Numeric(**{**self._entries(), "bins": n})
        return self

    def means(self) -> FloatArray:
        """Mean of the values that `decode` draws for each code but the missing cell.

        Returns
        -------
        ndarray of float64, shape (n_values,)
        """
        amount, total = self.contents.whole
        return np.concatenate([total / amount, self.special])

    def span(self, codes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value that `decode` can give for each code; nan if missing.

        Parameters
        ----------
        codes : array-like of int, shape (n,), in 0..size - 1

        Returns
        -------
        low, high : ndarray of float64, shape (n,)
            Both ends included.
        """
        given = np.asarray(codes, dtype=np.int64)
        low, high = self.contents.span(np.where(given < self.bins, given, 0))
        return self._with_cells(given, low), self._with_cells(given, high)

    def order(self) -> IntArray:
        """Codes in an order in which neighbours are similar: special values among the bins.

        Returns
        -------
        ndarray of int64, shape (size,)
            The missing cell is the last.
        """
        # Bins by their right ends, so a special value stands before the bin that would hold it.
        ends = np.append(self.edges[1:-1], np.nextafter(self.upper, np.inf))
        keys = np.concatenate([ends, self.special, [np.inf] * self.nullable])
        return np.argsort(keys, kind="stable")

    def coding(self) -> Coding:  # noqa: D102
        return Coding(place=self._place)

    def _place(self, numbers: FloatArray) -> CodeArray:
        """Code of each number, NaN where missing."""
        codes = np.empty(len(numbers), dtype=np.int32)
        for start in range(0, len(numbers), BLOCK):
            codes[start : start + BLOCK] = self._encode(numbers[start : start + BLOCK])
        return codes

    def _encode(self, values: FloatArray) -> CodeArray:
        # Clipping first changes no code and keeps infinities out of the arithmetic.
        x = np.clip(values, self.lower, self.upper)
        missing = np.isnan(x)
        x[missing] = self.lower
        codes = self.contents.codes(self.nearest(x))
        for place, value in enumerate(self.special):
            codes[values == value] = self.bins + place
        codes[missing] = self.n_values if self.nullable else -1
        return codes

    def nearest(self, numbers: FloatArray) -> FloatArray:
        """The integers that fractions count as, where the column holds integers: halves go up."""
        if not self.integer:
            return numbers
        # Exactly, also where floats are a whole apart.
        whole = np.floor(numbers)
        return whole + (numbers - whole >= 0.5)

    def draw(
        self, codes: ArrayLike, rng: np.random.Generator, lower: Any = None, upper: Any = None
    ) -> FloatArray:
        """Numbers for codes, as float64; nan for the missing cell.

        Parameters
        ----------
        codes : array-like of shape (n,), in 0..size - 1
        rng : numpy.random.Generator
        lower, upper : float or array-like of shape (n,), default=None
            Closed bounds of each number. Where a code has no number between them, the nearest
            that it has is taken. NaN is no bound.

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        given = np.asarray(codes, dtype=np.int64)
        positions = np.where(given < self.bins, given, 0)
        low = np.fmax(np.asarray(lower, dtype=np.float64), -np.inf)
        high = np.fmin(np.asarray(upper, dtype=np.float64), np.inf)
        drawn = self.contents.draw(positions, rng, low, high)
        return self._with_cells(given, drawn)

    def _with_cells(self, codes: NDArray[np.integer], numbers: FloatArray) -> FloatArray:
        """Numbers of bins, and those of the other cells."""
        cells = np.array([*self.special, np.nan])
        return np.where(codes < self.bins, numbers, cells[np.maximum(codes - self.bins, 0)])

    def decode(self, codes: ArrayLike, rng: np.random.Generator) -> pd.Series:  # noqa: D102
        return self._finish(self.draw(codes, rng))

    def counted(self, codes: CodeArray, numbers: FloatArray) -> pd.Series:  # noqa: D102
        near = self.nearest(np.clip(numbers, self.lower, self.upper))
        return self._finish(self._with_cells(codes, near))

    def _finish(self, numbers: FloatArray) -> pd.Series:
        """Numbers, nan where missing, as values of the column."""
        values = pd.Series(numbers)
        if not self.integer or self.nullable:
            return values.astype("Int64") if self.integer else values
        # Drawn numbers have no gaps; of rows to predict no gap may decide the type of the others.
        return values.fillna((self.lower + self.upper) // 2).astype("int64")

    def number(self, value: Any, column: str) -> float | int:
        """A value of a query as a number.

        Parameters
        ----------
        value : int or float
        column : str
            For messages.

        Raises
        ------
        ValueError
            If it cannot be compared with the column.
        """
        flag = isinstance(value, bool | np.bool_)
        if flag or not isinstance(value, numbers.Real) or value != value:
            raise ValueError(
                f"Column {column!r} is numeric and cannot be compared with {value!r} of type "
                f"{type(value).__name__}. For missing values ask for None, if it is nullable."
            )
        return as_number(value, column)

    def _said(self) -> dict[str, Any]:
        if self._by_edges:
            return {"edges": [*self.edges[:-1].tolist(), self.upper]}
        # Where nobody gives bins, schemas have a code for each of few integers alone.
        plain = self.one_each and self.bins <= MOST_SINGLE
        bins = {"bins": AUTO} if self.auto else {} if plain else {"bins": self.bins}
        return {"lower": self.lower, "upper": self.upper, **bins}


def runs(edges: list[int], written: Callable[[int], str]) -> list[str]:
    """Text for the whole numbers from each edge to before the next."""
    ends = [(written(low), written(stop - 1)) for low, stop in itertools.pairwise(edges)]
    return [low if low == high else f"{low} to {high}" for low, high in ends]
