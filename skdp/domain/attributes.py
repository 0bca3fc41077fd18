"""What all attributes share: codes, labels and levels; `Text` and `Identifier`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._validation import FloatArray, IntArray, run_starts
from ..exceptions import DomainError
from .reading import Coding, Column
from .taxonomy import Taxonomy
from .values import plain_text

MISSING_LABEL = "missing"

# Groups of codes, and a text for each.
Groups = tuple[IntArray, list[str]]


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
    # Whether sums of values mean anything.
    summable: bool = True
    # The attribute of which this one is the `fine`.
    _coarse: Any = None

    @property
    def n_alone(self) -> int:
        """How many of the last codes say nothing of their neighbours: special values, missing."""
        return int(self.nullable)

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
        other columns and as labels, see `groups`.
        """
        return self

    @property
    def groups(self) -> IntArray:
        """Code of this attribute for each code of `fine`: array of shape (fine.size,)."""
        return np.arange(self.size)

    @property
    def declared(self) -> Any:
        """The attribute whose codes are labels and groups: of a `fine` one, what it was made of."""
        return self if self._coarse is None else self._coarse

    @property
    def labels_of(self) -> IntArray:
        """Code of `declared` for each code."""
        groups: IntArray = np.arange(self.size) if self._coarse is None else self._coarse.groups
        return groups

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

    def hierarchy(self) -> tuple[Taxonomy, IntArray]:
        """Tree over the values, and the code of each of its leaves, in the order of the leaves.

        Without a declared taxonomy: the dyadic tree for numbers and ordered categories, a root
        with all categories below it otherwise. Special values of numbers and the missing cell are
        not in the tree.
        """
        raise NotImplementedError

    def levels(self) -> tuple[Level, ...]:
        """Generalisations from coarsest (everything in one group) to finest (each code alone).

        Below the top level, special values are groups of their own, then the missing cell.
        """
        tree, leaf_codes = self.hierarchy()
        own, alone = self.labels(), self.size - len(leaf_codes)
        result = []
        for level in range(max(tree.height, int(alone > 0)) + 1):
            at = min(level, tree.height)
            groups = np.zeros(self.size, dtype=np.int64)
            groups[leaf_codes] = tree.groups(at)
            texts = [str(tree.labels[node]) for node in tree.cut(at)]
            if level >= tree.height:
                texts = [own[code] for code in leaf_codes]
            if alone and level:
                groups[-alone:] = len(texts) + np.arange(alone)
                texts += own[-alone:]
            result.append(Level(groups, texts))
        return tuple(result)

    def groupings(
        self, max_groups: int, *, against_rest: bool = False
    ) -> tuple[tuple[Level, ...], ...]:
        """Public ways to merge codes into 2 to ``max_groups`` groups, for grids.

        Each family is a taxonomy read level by level, nested, from coarse to fine. No partition
        occurs twice. Special values and the missing cell are always groups of their own.

        Parameters
        ----------
        max_groups : int
        against_rest : bool, default=False
            Whether to add, at the end, each category against all others, for 3 to 16 categories
            without order or taxonomy, and for numbers every division in two at an edge of the
            finest groups.

        Returns
        -------
        families : tuple of tuples of Level
            For numbers: halves, quarters, eighths and so on of the range; with 128 bins or more
            over a range that begins near 0 or below, also intervals that grow with the distance
            from 0. For categories: the levels of the declared taxonomy. Without one, each category
            alone, preceded by halves, quarters and so on of the list as declared if the categories
            are ordered or more than ten.
        """
        families: list[tuple[Level, ...]] = []
        seen: set[bytes] = set()
        for family in self._families(max_groups - self.n_alone, against_rest):
            levels = []
            for level in (self._with_alone(*merged) for merged in family):
                key = level.groups.tobytes()
                if 2 <= len(level.labels) <= max_groups and key not in seen:
                    seen.add(key)
                    levels.append(level)
            if levels:
                families.append(tuple(levels))
        return tuple(families)

    def _families(self, limit: int, against_rest: bool) -> Iterator[list[Groups]]:
        """Groups of all codes but the last, which stand alone, family by family."""
        raise NotImplementedError

    def _with_alone(self, groups: IntArray, texts: list[str]) -> Level:
        """A grouping of all codes: those that stand alone are groups of their own."""
        if not self.n_alone:
            return Level(groups, texts)
        own = len(texts) + np.arange(self.n_alone)
        return Level(np.concatenate([groups, own]), [*texts, *self.labels()[-self.n_alone :]])

    def _spans(self, groups: IntArray) -> Groups:
        """Groups of consecutive codes with their labels."""
        starts = run_starts(groups).tolist()
        stops = [*starts[1:], len(groups)]
        return groups, [self._joined(*pair) for pair in zip(starts, stops, strict=True)]

    def _joined(self, start: int, stop: int) -> str:
        """Text for the codes from ``start`` up to ``stop``, exclusive."""
        raise NotImplementedError

    def _refusal(self, column: Column) -> str | None:
        """Why a column of this type cannot hold the attribute, with the remedy.

        Privacy. Readers of files choose types by looking at the values, so one record decides
        whether a column holds numbers, text, booleans, dates or times. It must not decide
        whether there is an error: only types are refused that no reader chooses by itself.
        """
        if column.kind == "duration":
            return "holds durations; convert them to numbers, such as minutes"
        if column.kind == "other":
            return (
                "holds neither numbers, text nor dates; convert it to numbers, text or a type of "
                "dates"
            )
        return None

    def _diagnose(self, column: Column) -> dict[str, int]:
        """Exact counts for ``Domain.check``: private."""
        raise NotImplementedError

    def to_data(self) -> dict[str, Any]:
        """What JSON says of it."""
        fine = {} if self._coarse is None else {"fine": True}
        return {**self.declared._to_data(), **fine}

    def _to_data(self) -> dict[str, Any]:
        raise NotImplementedError

    def _key(self) -> str:
        # True, 1 and 1.0 are equal in Python, but are written differently.
        return json.dumps(self.to_data())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; declare a new one.")

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def halvings(codes: IntArray, n: int, limit: int) -> Iterator[IntArray]:
    """Halves, quarters, ... of ``n`` codes, as equal as possible; finally each code alone."""
    parts = 2
    while parts < n and parts <= limit:
        yield codes * parts // n
        parts *= 2
    if n <= limit:
        yield codes


# --- columns that are never measured


@dataclass(frozen=True, repr=False)
class Identifier:
    """A column that identifies records: a key, an account number, a name.

    It is never measured. In the data it may be present or absent, and its values are never read
    (an estimator reads them only where the column is its ``privacy_id``). Synthetic rows get fresh
    ids, which have nothing to do with those of the data.

    Parameters
    ----------
    format : str, default=None
        How ids are written, for :meth:`str.format` with the number of the row, from 1:
        ``"C{:05d}"`` gives C00001, C00002, and so on. None: the integers 1, 2, ...

    Raises
    ------
    DomainError
        If the format cannot write a number, or writes the same text for different numbers.

    Examples
    --------
    >>> from skdp import Domain, Numeric
    >>> domain = Domain({"id": Identifier("C{:03d}"), "age": Numeric(0, 99, integer=True)})
    >>> domain.names, domain.columns
    (('age',), ('id', 'age'))
    >>> domain.decode([[30], [40]])
         id  age
    0  C001   30
    1  C002   40
    """

    format: str | None = None

    def __post_init__(self) -> None:
        format = self.format
        if format is not None:
            if not isinstance(format, str):
                raise DomainError(
                    f"format must be a string such as 'C{{:05d}}', got {format!r} of type "
                    f"{type(format).__name__}."
                )
            plain_text(format, "format")
            try:
                texts = {format.format(number) for number in (1, 2, 10, 999_983)}
            except (ValueError, LookupError, AttributeError, TypeError) as error:
                raise DomainError(
                    f"format={format!r} cannot write a number ({error}). Use one field, as in "
                    "'C{:05d}'."
                ) from None
            if len(texts) < 4:
                raise DomainError(
                    f"format={format!r} gives several rows the same id. Give it a field for the "
                    "number, as in 'C{:05d}'."
                )

    def fresh(self, n: int) -> pd.Series:
        """Ids of n synthetic rows.

        Parameters
        ----------
        n : int

        Returns
        -------
        Series of int64, or of text where there is a format
        """
        if self.format is None:
            return pd.Series(range(1, n + 1), dtype="int64")
        texts = [self.format.format(number) for number in range(1, n + 1)]
        return pd.Series(texts, dtype=pd.Series(["text"]).dtype)

    def to_data(self) -> dict[str, Any]:
        return {"type": "identifier", "format": self.format}

    def __repr__(self) -> str:
        return f"Identifier({'' if self.format is None else repr(self.format)})"


class Text:
    """Free text, which no release can hold: a `Domain` refuses it and says what to do.

    A code book may have such columns; this name for them gives a clear error instead of a domain
    that silently lacks them.

    Parameters
    ----------
    description : str, default=""
        What the column holds.
    **facts
        What else is known of it, such as ``max_length=200``; not used.
    """

    def __init__(self, description: str = "", **facts: Any) -> None:
        self.description = description
        self.facts = facts

    def __repr__(self) -> str:
        return f"Text({self.description!r})" if self.description else "Text()"
