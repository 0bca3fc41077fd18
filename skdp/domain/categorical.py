"""Categorical: a list of categories."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._keys import Key, key_of, positions_of, shared_key
from .._validation import IntArray
from ..exceptions import DomainError
from .attributes import MISSING_LABEL, Attribute, Groups, halvings
from .reading import Coding, Column
from .taxonomy import Taxonomy
from .values import (
    MAX_BINS,
    Category,
    as_flag,
    is_exact_float,
    is_missing,
    number_meant,
    plain_category,
    some,
)

# Without order or taxonomy, lists of at most this many categories are not halved, and lists of at
# most `_MOST_AGAINST_REST` offer each category against the rest.
_FEW_CATEGORIES = 10


_MOST_AGAINST_REST = 16


class Categorical(Attribute):
    """A list of categories.

    Values are compared by their meaning: 1, 1.0, "1" and "01" are the same category, and so are
    True and "true", or a date and the text that writes it. A reader of files may make text of
    numbers, or numbers of text, because of one other record; so two categories must not mean the
    same, as "1" and "1.0", "01" and "1", or 2**53 and 2**53 + 1 do. A gap is one value, however it
    is written (missing, "", "NA" and such); a category "" or "NA" names it.

    Parameters
    ----------
    categories : sequence of str, int, float or bool, or a type
        Publicly known values, in the order of their codes. A type that lists them may be given
        instead: a pandas CategoricalDtype, an Enum of Polars, a class of Python's Enum (its values;
        members in the data stand for them).
    ordered : bool, default=None
        Whether the order is meaningful, so that queries may ask for ranges of categories. None: as
        the type says, else False; an Enum of Polars is ordered, one of Python is not.
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

    categories: tuple[Category, ...]
    ordered: bool
    taxonomy: Taxonomy | None
    other: Category | None

    def __init__(
        self,
        categories: Any,
        *,
        ordered: bool | None = None,
        taxonomy: Taxonomy | None = None,
        other: Category | None = None,
        nullable: bool = False,
    ) -> None:
        categories, in_order = declared_categories(categories)
        if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
            raise DomainError(
                f"categories must be a list of values, got {categories!r} of type "
                f"{type(categories).__name__}."
            )
        values = tuple(plain_category(value, "Category") for value in categories)
        if not values:
            raise DomainError("Categorical needs at least one category.")
        if len(values) > MAX_BINS:
            raise DomainError(f"Categorical takes at most {MAX_BINS} categories.")
        index = {value: code for code, value in enumerate(values)}
        if len(index) != len(values):
            seen: set[Category] = set()
            repeated = [value for value in values if value in seen or seen.add(value)]  # type: ignore[func-returns-value]
            raise DomainError(
                f"Categories must differ, but {some(repeated)} occur more than once (values that "
                "are equal in Python, such as True and 1, are the same category)."
            )
        shared = shared_key(values)
        if shared is not None:
            first, second = shared
            raise DomainError(
                f"Categories {first!r} and {second!r} mean one number, date or gap. Readers of "
                "files tell them apart only where some other record holds text, so one record "
                "would decide the codes of all. Declare one of them; or, to keep them apart, write "
                f"them with a letter, in the declaration and in the data: 'c{first}' and "
                f"'c{second}'."
            )
        gap = next((value for value in values if key_of(value) is None), None)
        if gap is not None and nullable is True:
            raise DomainError(
                f"The category {gap!r} is how files write a gap, for which nullable=True declares "
                "a cell too: leave out one of them."
            )
        if other is not None:
            other = plain_category(other, "other")
            if other not in index:
                raise DomainError(
                    f"other={other!r} is not one of the categories; add it to the list."
                )
            other = values[index[other]]
        if taxonomy is not None:
            if not isinstance(taxonomy, Taxonomy):
                raise DomainError(
                    f"taxonomy must be a Taxonomy, got {type(taxonomy).__name__}. Make it with "
                    "Taxonomy.from_tree."
                )
            if set(taxonomy.leaves) != set(values):
                unknown = [leaf for leaf in taxonomy.leaves if leaf not in index]
                absent = [value for value in values if value not in set(taxonomy.leaves)]
                raise DomainError(
                    "The leaves of the taxonomy must be the categories"
                    + (f"; {some(unknown)} are leaves only" if unknown else "")
                    + (f"; {some(absent)} are categories only" if absent else "")
                    + "."
                )
        self._set(
            categories=values,
            ordered=in_order if ordered is None else as_flag(ordered, "ordered"),
            taxonomy=taxonomy,
            other=other,
            nullable=as_flag(nullable, "nullable"),
            _index=index,
            _keys=positions_of(values),
        )

    _index: dict[Category, int]
    # Codes by the keys of the categories.
    _keys: Mapping[Key, int]

    @property
    def n_values(self) -> int:
        """Number of categories."""
        return len(self.categories)

    @property
    def only_words(self) -> bool:
        """Whether no category is a number, or text that writes one."""
        return not any(number_meant(each) is not None for each in self.categories)

    def index_of(self, value: Any) -> int:
        """Code of a category.

        Raises
        ------
        KeyError
            If it is not declared.
        """
        code = None
        if not is_missing(value):
            code = self._keys.get(key_of(value))
        if code is None:
            raise KeyError(value)
        return code

    def coding(self) -> Coding:  # noqa: D102
        missing = self.n_values if self.nullable else -1
        unknown = -1 if self.other is None else self._index[self.other]
        # A declared "" or "NA" names the gap.
        return Coding(self._keys, unknown, self._keys.get(None, missing))

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
        if (
            types <= {int, float}
            and float in types
            and all(is_exact_float(v) for v in self.categories)
        ):
            return "float64"
        if types == {str}:
            # What pandas makes of a list of text: object before pandas 3, "str" since.
            return pd.Series(["text"]).dtype
        return object

    def labels(self) -> list[str]:  # noqa: D102
        return [str(value) for value in self.categories] + [MISSING_LABEL] * self.nullable

    def hierarchy(self) -> tuple[Taxonomy, IntArray]:  # noqa: D102
        if self.taxonomy is not None:
            leaf_codes = [self._index[leaf] for leaf in self.taxonomy.leaves]
            return self.taxonomy, np.array(leaf_codes, dtype=np.int64)
        codes = np.arange(self.n_values)
        if self.ordered:
            return Taxonomy.dyadic(self.n_values), codes
        labels = ["Any", *self.categories]
        return Taxonomy(labels, [-1] + [0] * self.n_values), codes

    def order(self) -> IntArray | None:  # noqa: D102
        if self.taxonomy is None and not self.ordered:
            return None
        _, codes = self.hierarchy()
        return np.concatenate([codes, np.arange(self.n_values, self.size)])

    def _families(self, limit: int, against_rest: bool) -> Iterator[list[Groups]]:
        n, codes = self.n_values, np.arange(self.n_values, dtype=np.int64)
        if self.taxonomy is not None:
            levels = self.levels()[1:]
            yield [(groups[:n], texts[: len(texts) - self.nullable]) for groups, texts in levels]
            return
        if n <= _FEW_CATEGORIES and not self.ordered:
            # Neighbours in a short list may have nothing in common.
            yield [self._spans(codes)]
        else:
            yield [self._spans(groups) for groups in halvings(codes, n, limit)]
        if against_rest and 2 < n <= _MOST_AGAINST_REST and not self.ordered:
            for code, category in enumerate(self.categories):
                yield [((codes != code).astype(np.int64), [str(category), "all others"])]

    def _joined(self, start: int, stop: int) -> str:
        first, last = self.categories[start], self.categories[stop - 1]
        return str(first) if stop - start == 1 else f"{first} .. {last}"

    def _diagnose(self, column: Column) -> dict[str, int]:
        coding = replace(self.coding(), unknown=-2)
        kinds = column.codes(coding)
        unknown, missing = int((kinds == -2).sum()), int((kinds == coding.missing).sum())
        unnamed = missing if coding.missing < 0 else 0
        skipped = unnamed + (unknown if self.other is None else 0)
        return {
            "below": 0,
            "above": 0,
            "to_other": 0 if self.other is None else unknown,
            "to_missing": missing if self.nullable else 0,
            "skipped": skipped,
            "not_understood": 0,
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

    def __repr__(self) -> str:
        parts = [f"[{some(self.categories)}]"]
        parts += ["ordered=True"] * self.ordered
        parts += [] if self.taxonomy is None else [f"taxonomy={self.taxonomy!r}"]
        parts += [] if self.other is None else [f"other={self.other!r}"]
        parts += ["nullable=True"] * self.nullable
        return f"Categorical({', '.join(parts)})"


def declared_categories(declared: Any) -> tuple[Any, bool]:
    """The categories of a type, and whether it orders them; other things as they are.

    Parameters
    ----------
    declared : CategoricalDtype, Enum of Polars or narwhals, class of enum.Enum, or anything else
        No import is needed to recognise them.

    Raises
    ------
    DomainError
        If it is a type of categories that does not say which they are.
    """
    if isinstance(declared, pd.CategoricalDtype):
        if declared.categories is None:
            raise _without_categories("CategoricalDtype")
        return declared.categories.tolist(), bool(declared.ordered)
    if isinstance(declared, type) and issubclass(declared, enum.Enum):
        return [member.value for member in declared], False
    home = (declared if isinstance(declared, type) else type(declared)).__module__
    name = declared.__name__ if isinstance(declared, type) else type(declared).__name__
    library = home.partition(".")[0]
    if library in ("polars", "narwhals") and name in ("Enum", "Categorical"):
        known = None if isinstance(declared, type) else getattr(declared, "categories", None)
        if name == "Categorical" or known is None:
            raise _without_categories(f"{library}.{name}")
        # Polars compares the values of an Enum by their place.
        return list(known), True
    if library == "pyarrow" and name == "DictionaryType":
        raise _without_categories(str(declared))
    return declared, False


def _without_categories(name: str) -> DomainError:
    return DomainError(
        f"The type {name} does not say which categories there are. List them, as in "
        "Categorical(['F', 'M']); reading them from the data would leak them."
    )
