"""Domain: the columns of a table, their order, and the codes of their values.

Also declarations as data: pairs and lists, JSON, a frame's columns, code books. No row is ever
read. All of these become entries of JSON, of which attributes are made in one place, by the
parameters of their classes.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import inspect
import io
import json
import math
import numbers
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._random import sampling_generator
from .._validation import CodeArray, plain_text, refuse_placeholder, some
from ..exceptions import DomainError
from .attributes import (
    AUTO,
    MOST_SINGLE,
    Attribute,
    Categorical,
    Identifier,
    Numeric,
    Taxonomy,
    read,
)
from .check import HEAD, NEEDED, DomainReport, drafts_of, examined, json_text
from .constraints import Structure, rules_of
from .dates import Date, Datetime, moment
from .query import Schema


class Domain(Schema):
    """Public schema of a table: its columns, their values, and the code of each value.

    Parameters
    ----------
    attributes : mapping of str to attributes, or iterable of (str, attribute)
        The columns in order: each a `Numeric`, `Date`, `Datetime`, `Categorical` or `Identifier`,
        or in short a pair (smallest, largest) or a list of all values. A pair of two whole numbers
        is a range of whole numbers, one of two ISO dates a `Date`, any other one of real numbers.
        They decide what is released, and the columns, order and types of what a release draws by
        itself. A Domain gives its columns and rules.
    structure : sequence of Rule, default=()
        What is publicly known about how columns depend on each other: rules made by `derived`,
        `at_most` and `forbid`. Bins are divided where they cut them. Synthetic rows satisfy all
        rules. A record that breaks one is skipped, like one with a value that the domain cannot
        represent.

    Attributes
    ----------
    names : tuple of str
        Columns that are measured: all columns but identifiers and those that follow from others.
        Codes, ``len`` and iteration are about these.
    attributes : tuple of Numeric or Categorical
        Of the measured columns, their bins divided where rules cut them.
    columns : tuple of str
        All columns, in declared order: measured, derived and identifiers.
    structure : Structure
        The compiled rules; falsy if there are none.
    shape : tuple of int
        Number of codes of each attribute.
    size : int
        Number of cells, an exact integer of any size.

    Raises
    ------
    DomainError
        If there are no attributes, names are repeated or are not strings, or rules do not fit the
        columns or contradict each other.

    Examples
    --------
    >>> domain = Domain({"age": (17, 90), "sex": ["F", "M"]})
    >>> domain
    Domain({'age': Numeric(17, 90, integer=True), 'sex': Categorical(['F', 'M'])})
    >>> domain.shape
    (74, 2)
    >>> domain.encode(pd.DataFrame({"sex": ["M", "?"], "age": [120, 20]})).tolist()
    [[73, 1], [3, -1]]

    With a structure:

    >>> from skdp import derived
    >>> domain = Domain(
    ...     {
    ...         "id": Identifier(),
    ...         "age": Numeric(0, 99, integer=True),
    ...         "adult": Categorical(["no", "yes"]),
    ...     },
    ...     structure=[derived("adult", from_="age", map={(0, 18): "no", (18, 99): "yes"})],
    ... )
    >>> domain.names, domain.columns
    (('age',), ('id', 'age', 'adult'))
    >>> domain.decode([[17], [18]])
       id  age adult
    0   1   17    no
    1   2   18   yes
    """

    structure: Structure
    # As they were declared, without the bins that rules divide.
    _given: dict[str, Any]

    def __init__(
        self,
        attributes: Domain | Mapping[str, Any] | Iterable[tuple[str, Any]],
        *,
        structure: Iterable[Any] = (),
    ) -> None:
        rules = rules_of(structure)
        if isinstance(attributes, Domain):
            rules = [*attributes.structure.rules, *rules]
            attributes = attributes._given
        try:
            listed: Any = attributes.items() if isinstance(attributes, Mapping) else attributes
            pairs = [(name, own) for name, own in listed]
        except (TypeError, ValueError):
            what = "a dict of column names and their values such as {'age': (0, 120)}"
            raise DomainError(f"A Domain is declared by {what}, got {attributes!r}.") from None
        self._given, wrong = {}, []
        for name, given in pairs:
            if not isinstance(name, str):
                kind = type(name).__name__
                raise DomainError(f"Column names must be strings, got {name!r} of type {kind}.")
            if name in self._given:
                raise DomainError(f"Column names must be unique, but {name!r} is repeated.")
            try:
                self._given[plain_text(name, "Column name")] = short_form(given)
            except DomainError as error:
                # One error says all columns that are wrong.
                wrong.append(f"Column {name!r}: {error}")
        if wrong:
            raise DomainError("\n".join(wrong[:20]))
        self.structure = Structure(rules, self._given)
        self._declared = self.structure._declared
        self.names = self.structure.measured
        if not self.names:
            raise DomainError("The domain has no attributes to measure, beside identifiers.")
        self.columns = tuple(self._declared)
        self.attributes = tuple(self._declared[name] for name in self.names)
        self.shape = tuple(attribute.size for attribute in self.attributes)
        self.size = math.prod(self.shape)
        self._positions = {name: position for position, name in enumerate(self.names)}

    def __getstate__(self) -> dict[str, Any]:
        # Plain values alone, which other formats than pickle can hold.
        rules = [rule.to_data() for rule in self.structure.rules]
        return {"columns": list(self._given.items()), "rules": rules}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Domain.__init__(self, state["columns"], structure=state["rules"])

    # --- which columns there are, and which of them are measured

    def declared(self, name: str) -> Numeric | Categorical | Identifier:
        """Declaration of any column, measured or not, as it was given.

        Raises
        ------
        DomainError
            If it is not declared.
        """
        if isinstance(name, str) and name in self._given:
            return self._given[name]
        raise DomainError(f"Column {name!r} is not in the domain; it has {some(self.columns)}.")

    def items(self) -> list[tuple[str, Numeric | Categorical]]:
        """(name, attribute) pairs of the measured columns, in order."""
        return list(zip(self.names, self.attributes, strict=True))

    def index(self, name: str) -> int:
        """Position of a measured column.

        Raises
        ------
        DomainError
            If it is not declared, or not measured.
        """
        if name not in self:
            raise DomainError(f"Column {name!r} is not in the domain; it has {some(self.names)}.")
        if name not in self._positions:
            raise DomainError(f"Column {name!r} is not measured: it follows from other columns.")
        return self._positions[name]

    def __getitem__(self, name: str) -> Numeric | Categorical:
        if name not in self:
            self.index(name)  # says what there is
        return self._declared[name]  # type: ignore[return-value]

    def __contains__(self, name: object) -> bool:
        """Whether a column is measured or follows from measured ones."""
        return isinstance(name, str) and (name in self._positions or name in self.structure.derived)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def follow_from(self, names: Iterable[str]) -> list[str]:
        """Derived columns that follow from these columns alone."""
        given = known = set(names)
        for name, rule in self.structure.derived.items():
            known = known | {name} if rule.from_ in known else known
        return [name for name in self.columns if name in known - given]

    def names_for(self, n_unnamed: int, taken: Iterable[str] = ()) -> list[str] | None:
        """The columns that columns without names stand for, by position.

        Parameters
        ----------
        n_unnamed : int
            Number of columns without names.
        taken : iterable of str
            Columns that were given by name.

        Returns
        -------
        list of str, or None
            All free columns or the measured ones among them; None if neither are as many.
        """
        named = set(taken)
        for columns in (self.columns, self.names):
            free = [name for name in columns if name not in named]
            if len(free) == n_unnamed:
                return free
        return None

    def with_names(self, frame: Any, taken: Iterable[str] = ()) -> Any:
        """The frame with names for its columns without names, by position.

        Raises
        ------
        DomainError
            If there are more or fewer of them than columns that they can stand for.
        """
        if not frame.n_unnamed:
            return frame
        named = {*frame.named, *taken}
        names = self.names_for(frame.n_unnamed, named)
        if names is None:
            what = f"{frame.n_unnamed} columns without names, but the domain declares"
            raise DomainError(f"The data has {what} {len({*self.names} - named)} for them.")
        return frame.with_names(names)

    def _key(self) -> tuple[Any, ...]:
        return (tuple(self._given.items()), self.structure.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = [f"{name!r}: {part!r}" for name, part in self._given.items()]
        shown = ", ".join(parts[:12]) + f", ... ({len(parts) - 12} more)" * (len(parts) > 12)
        rules = some(self.structure.rules, 6)
        tail = f", structure=[{rules}]" if rules else ""
        return f"Domain({{{shown}}}{tail})"

    # --- other domains

    @classmethod
    def for_array(cls, attributes: Any, n_columns: int) -> Domain:
        """Domain of an array, whose columns are called x0, x1, ...

        Parameters
        ----------
        attributes : Domain, dict, attribute, pair, or list of attributes, pairs and lists
            One attribute or pair stands for every column; a Domain is returned as it is.
        n_columns : int

        Raises
        ------
        DomainError
            If a list or a Domain has another length than ``n_columns``.
        """
        if isinstance(attributes, Mapping):
            attributes = cls(attributes)
        one = isinstance(attributes, Attribute | tuple)
        parts = [attributes] * n_columns if one else attributes
        if not isinstance(parts, list | Domain):
            what = "a Domain, a dict, one attribute or pair (low, high) for all columns, or a list"
            raise DomainError(f"A domain must be {what} of these, got {attributes!r}.")
        if len(parts) != n_columns:
            raise DomainError(
                f"The domain declares {len(parts)} columns, the data has {n_columns}."
            )
        if isinstance(parts, Domain):
            return parts
        return cls([(f"x{position}", part) for position, part in enumerate(parts)])

    def without_structure(self) -> Domain:
        """The same columns without rules: those that were derived are measured then."""
        return Domain(self._given)

    def plain(self, names: Iterable[str]) -> Domain:
        """Measured and derived columns with the same codes, for records that may break rules."""
        return Domain([(name, self[name]) for name in names])

    def select(self, names: Sequence[str]) -> Domain:
        """The domain of some of the columns, in the order given.

        Rules are kept whose columns are all selected. A derived column without the column that it
        comes from is measured.
        """
        rules = self.structure.kept_by(names)
        return Domain([(name, self.declared(name)) for name in names], structure=rules)

    def resolved(self, most: int | None) -> Domain:
        """The domain with at most ``most`` bins in each column whose bins are "auto".

        Estimators that count cells of several columns together, or few groups of a column, release
        ``domain.resolved(32)``; their ``domain_`` says so.

        Parameters
        ----------
        most : int or None
            None changes nothing.

        Examples
        --------
        >>> domain = Domain({"hours": Numeric(0, 1000), "age": Numeric(0, 90, bins=45)})
        >>> domain.shape, domain.resolved(32).shape
        ((800, 45), (32, 45))
        """
        return self._changed(lambda x: x.resolved(most) if isinstance(x, Numeric) else x)

    @property
    def fine(self) -> Domain:
        """The domain with the finest codes that a column by itself is measured on.

        ``bins`` and ``edges`` are then groups of these: labels, and what tables of several columns
        tell apart.
        """
        return self._changed(lambda each: getattr(each, "fine", each))

    @property
    def coarse(self) -> Domain:
        """The domain that this one is the `fine` of, or itself."""
        return self._changed(lambda each: getattr(each, "declared", each))

    def _changed(self, change: Callable[[Any], Any]) -> Domain:
        """The domain with other attributes; itself if none is another."""
        pairs = [(name, change(each)) for name, each in self._given.items()]
        if all(each is self._given[name] for name, each in pairs):
            return self
        return Domain(pairs, structure=self.structure.rules)

    def with_attribute(self, name: str, attribute: Numeric | Categorical) -> Domain:
        """The domain with one more column at the end.

        Raises
        ------
        DomainError
            If the column is declared already.
        """
        return Domain([*self._given.items(), (name, attribute)], structure=self.structure.rules)

    def check_schema(self, data: Any) -> Any:
        """Check columns and declared types, and nothing that depends on a value.

        Estimators call it before they charge the ledger: its errors cost nothing.

        Parameters
        ----------
        data : table or 2-D array
            Needs the measured columns of the domain, in any order. Derived columns and identifiers
            may be there too, and are ignored. Columns without names (of an array) are taken by
            position, for the columns of the domain that no name matches: for all of them, or for
            the measured ones.

        Returns
        -------
        frame : the measured columns, with values not yet looked at
            In the domain's order.

        Raises
        ------
        DomainError
            If columns are missing or not declared, or a column's type cannot hold the declared
            values.
        TypeError, ValueError
            If the container cannot be read.
        """
        frame = self.with_names(read(data))
        present = set(frame.names)
        missing = [name for name in self.names if name not in present]
        extra = [name for name in frame.names if name not in self._declared]
        if missing or extra:
            what = f"Missing: {some(missing) or 'none'}. Not declared: {some(extra) or 'none'}."
            how = "Select columns of the data (data[names]) or of the domain (domain.select)"
            raise DomainError(f"The data has other columns than the domain. {what} {how}.")
        frame = frame.select(self.names)
        # Privacy. Readers of files choose types by looking at the values, so one record decides
        # whether a column holds numbers, text, booleans, dates or times. It must not decide whether
        # there is an error: only types are refused that no reader chooses by itself.
        columns = {name: frame.column(name) for name in self.names}
        odd = [name for name, each in columns.items() if each.kind in ("duration", "other")]
        if odd:
            raise DomainError(
                f"{some(odd)} of type {columns[odd[0]].dtype} cannot be read: a column holds "
                "numbers, text, dates or times. Convert durations to numbers (such as minutes), "
                "bytes to text."
            )
        return frame

    def encode(self, data: Any) -> CodeArray:
        """Codes of all records.

        Parameters
        ----------
        data : table or 2-D array

        Returns
        -------
        codes : ndarray of shape (n_rows, n_attributes), int32, Fortran order
            -1 where a value has no code: such a record is to be skipped.

        Raises
        ------
        DomainError
            For errors of the schema, see :meth:`check_schema`; never for values.
        """
        return self.encode_columns(self.check_schema(read(data)))

    def encode_columns(self, frame: Any, *, broken: int = -1) -> CodeArray:
        """Codes of all records of a frame whose schema was checked; never raises.

        Parameters
        ----------
        frame : Rows
            With the columns of the domain.
        broken : int, default=-1
            Stands in every column of a record that breaks the structure; another negative number
            only where the record has all codes.

        Returns
        -------
        codes : ndarray of shape (n_rows, n_attributes), int32, Fortran order
            -1 where a value has no code.
        """
        # Codes are written column by column here, and read column by column when they are counted.
        codes = np.empty((frame.n_rows, len(self)), dtype=np.int32, order="F")
        for position, (name, attribute) in enumerate(self.items()):
            codes[:, position] = frame.column(name).codes(attribute.coding())
        if frame.unfit is not None:
            # Privacy. A record of a file that could not be read is marked by its own line alone.
            codes[frame.unfit] = -1
        if self.structure.zeros:
            # Privacy. Which cells are empty is declared, never read from data. Whether a record is
            # skipped depends on this record and the declaration alone, so it is a map from records
            # to records or nothing, applied to each by itself: neighbouring tables stay neighbours
            # or become equal, and whatever is released from the rest is as private as before. It
            # never raises, because an error would tell that some record breaks a rule.
            breaks = self.structure.zeros.breaks(codes)
            if broken != -1:
                breaks &= (codes >= 0).all(axis=1)
            codes[breaks] = broken
        return codes

    def decode(
        self,
        codes: ArrayLike,
        random_state: Any = None,
        *,
        within: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> pd.DataFrame:
        """Records for codes: values drawn uniformly within bins, categories as they are.

        Values satisfy the structure as well as codes do: a column of `at_most` is drawn below the
        value drawn for its bound. Derived columns follow, identifiers are 1, 2, ...

        Parameters
        ----------
        codes : array-like of shape (n, n_attributes), integers
            Of the measured columns: every code in 0..size - 1 of its attribute.
        random_state : None, int or numpy.random.Generator
            Source of the draws, which are not noise and protect nothing.
        within : mapping of str to (lower, upper), default=None
            For measured numbers: closed ranges, on the number line, numbers or arrays with one for
            each row, that values must lie in where their cells reach into them.

        Returns
        -------
        frame : pandas.DataFrame
            All columns, in declared order: float64 for numbers, int64 for integers ("Int64" if
            nullable), the categories' type otherwise; NaN, NA or None in the missing cell.

        Raises
        ------
        ValueError
            If the codes do not fit the domain, or break its structure.
        """
        rows = np.asarray(codes)
        whole = not rows.size or np.issubdtype(rows.dtype, np.integer)
        fits = rows.ndim == 2 and rows.shape[1] == len(self)
        if not (whole and fits and (rows >= 0).all() and (rows < self.shape).all()):
            what = f"integers in 0..size - 1, one column for each of the sizes {self.shape}"
            raise ValueError(f"codes must be {what}, got the shape {rows.shape}.")
        rows = rows.astype(np.int64)
        if n_broken := int(self.structure.zeros.breaks(rows).sum()):
            raise ValueError(f"{n_broken} of {len(rows)} rows break a rule of the domain.")
        by_name = {name: rows[:, place] for place, name in enumerate(self.names)}
        rng = sampling_generator(random_state)
        return pd.DataFrame(self.structure.draw(by_name, rng, within or {}))

    @classmethod
    def propose(cls, data: Any) -> DomainReport:
        """Propose a declaration with blanks, by the records. NOT private: for the data owner only.

        It looks at the values, as :meth:`check` does: ``findings`` says what is odd about them,
        ``declaration()`` writes JSON. Ranges and categories stay blank: fill them in from what
        is publicly known.

        Parameters
        ----------
        data : table or 2-D array

        Warns
        -----
        PrivacyLeakWarning
            Always.
        """
        return examined(None, read(data))

    def check(self, data: Any) -> DomainReport:
        """Report what would be clipped, mapped or skipped. NOT private: for the data owner only.

        Columns that are not declared are named, and looked at only for identifiers that repeat. The
        report also says what the declaration misses (gaps, whole numbers, forms of dates, values
        that many records share, repeated identifiers), and writes a corrected one with blanks.

        Warns
        -----
        PrivacyLeakWarning
            Always: the report holds exact counts.

        Raises
        ------
        DomainError
            For errors of the schema, see :meth:`check_schema`.
        """
        rows = self.with_names(read(data))
        self.check_schema(rows.select([name for name in rows.names if name in self._declared]))
        return examined(self, rows)

    def to_json(self) -> str:
        """The domain as JSON text, which :meth:`from_json` reads."""
        return json_text(drafts_of(self), self.structure.rules)

    @property
    def fingerprint(self) -> str:
        """The first 16 digits of the SHA-256 hash of what is declared: equal for equal domains.

        It is that of :meth:`to_json` but for the finer codes that a release may count.
        """
        return hashlib.sha256(self.coarse.to_json().encode()).hexdigest()[:16]

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Domain:
        """Read what :meth:`to_json` wrote, or a person.

        Entries of attributes that are parameters with a default may be left out.

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
        try:
            pairs, rules = parts_from_text(source)
            return cls(pairs, structure=rules)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            what = error if isinstance(error, DomainError) else f"It is damaged: {error!r}."
            raise DomainError(f"This JSON declares no valid domain. {what}") from error

    # --- schemas, comparisons, pictures

    @classmethod
    def from_schema(cls, source: Any, *, ranges: Mapping[str, Any] | None = None) -> Domain:
        """Declare the columns of a frame, or of a code book. No row is read.

        Parameters
        ----------
        source : frame or path
            A frame of any library that ``fit`` takes, also lazy, which says names and order; or the
            path of a code book, a CSV file. The user guide explains them.
        ranges : mapping, optional
            What each column can hold, as in a `Domain`: a tuple ``(smallest, largest)`` of numbers
            or dates, a list of all values, or a whole attribute. In a frame, columns that are
            declared in short get a cell for missing values, and booleans need no range. What is
            said of a column here counts instead of what a code book says.

        Returns
        -------
        domain : Domain

        Raises
        ------
        DomainError
            One for all columns of which nothing is said; for unknown types, repeated names, and
            cells of a code book that cannot be understood.
        OSError
            If a file cannot be read.

        Examples
        --------
        >>> from skdp import Domain
        >>> frame = pd.DataFrame({"age": [31], "smoker": [True]})
        >>> Domain.from_schema(frame, ranges={"age": (0, 99)}).shape
        (101, 3)
        """
        return cls(from_schema(source, {} if ranges is None else ranges))


# ------------------------------------------------------------------------------------------------
# Declarations as data.

# What JSON calls each kind of column. Its entries are the parameters of the class.
_KINDS: Any = (Numeric, Date, Datetime, Categorical, Identifier)
_CLASSES = {each.__name__.lower(): each for each in _KINDS}


# --- attributes


def _attribute(said: dict[str, Any]) -> Any:
    """The attribute that entries of JSON declare; raises if anything is wrong with them."""
    kind = said.pop("type")
    refuse_placeholder(kind, "the type (numeric, categorical, date, ...)")
    if kind not in _CLASSES:
        raise DomainError(f"the type {kind!r} is unknown: give {some([*_CLASSES])}.")
    if said.pop("fine", False):
        return _attribute({"type": kind, **said}).fine
    refuse_placeholder(said.get("categories"), "the list of categories")
    if said.get("taxonomy") is not None:
        said["taxonomy"] = Taxonomy(**said["taxonomy"])
    try:
        return _CLASSES[kind](**dict.fromkeys(NEEDED.get(kind, ())) | said)
    except TypeError as error:
        raise DomainError(f"it declares no column: {error}") from error


def short_form(given: Any) -> Any:
    """The attribute that a pair, a list of all values, or the entries of JSON declare, or itself.

    Raises
    ------
    DomainError
        If it declares no column.
    """
    refuse_placeholder(given, "the declaration")
    if isinstance(given, Attribute | Identifier):
        return given
    if not isinstance(given, dict | tuple | list):
        what = "a pair (smallest, largest), a list of all values, or an attribute such as Numeric"
        raise DomainError(f"it must be declared by {what}. Leave out free text.")
    # A proposal has notes, too.
    data = {key: value for key, value in _entries(given).items() if key not in ("name", "note")}
    ends: Any = [data.get("lower"), data.get("upper")]
    if data.get("integer") and all(isinstance(end, int | float) for end in ends):
        # One code each for a million integers is rarely meant.
        data = {"bins": AUTO, **data} if ends[1] - ends[0] >= MOST_SINGLE else data
    return _attribute(data)


def _entries(given: Any) -> dict[str, Any]:
    """Entries of a list of all values, or of a range; those of JSON as they are.

    A pair of whole numbers is a range of whole numbers, a pair of ISO dates a `Date`, with times a
    `Datetime`, and any other pair of numbers a range of all numbers.
    """
    if isinstance(given, list):
        return {"type": "categorical", "categories": given}
    if not isinstance(given, tuple):
        return given  # type: ignore[no-any-return]
    if len(given) == 2:
        data = {"lower": given[0], "upper": given[1]}
        if all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in given):
            whole = all(isinstance(end, int) for end in given)
            return {"type": "numeric", **data, "integer": whole}
        found = [moment(end, "month") for end in given if isinstance(end, str | datetime.date)]
        if len(found) == 2 and None not in found:
            # Midnight is no time of the day.
            timed = any(":" in str(end).removesuffix(" 00:00:00") for end in given)
            return {"type": "datetime" if timed else "date", **data}
    what = f"A tuple is a range, (smallest, largest) in numbers or in ISO dates, got {given!r}"
    raise DomainError(f"{what}. All values of a column of categories are given as a list.")


# --- JSON


def parts_from_text(source: str | os.PathLike[str]) -> tuple[list[tuple[str, Any]], list[Any]]:
    """Entries of the columns of a domain in JSON, and its rules; raises any error if damaged."""
    try:
        data = json.loads(source if isinstance(source, str) else Path(source).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DomainError(f"It is not JSON in UTF-8 (or no pathlib.Path): {error}.") from error
    found = {key: data.get(key, False) for key in HEAD} if isinstance(data, dict) else data
    if found != HEAD:
        what = f"It says {found!r:.90}, and only {HEAD} can be read"
        raise DomainError(f"{what}. Declare it from public knowledge, or with an older skdp.")
    return [(item["name"], item) for item in data["attributes"]], list(data.get("structure", ()))


# --- the columns of a frame, and code books


def from_schema(source: Any, ranges: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Pairs of `Domain.from_schema`."""
    book = isinstance(source, str | os.PathLike)
    if book:
        known = _of_codebook(Path(source))
    else:
        types = nw.from_native(source).collect_schema()
        known = [(name, [False, True] if of == nw.Boolean else ...) for name, of in types.items()]
    names = [name for name, _ in known]
    if unknown := [name for name in ranges if name not in names]:
        raise DomainError(f"ranges names {some(unknown)}, but the columns are {some(names)}.")
    pairs = [(name, ranges.get(name, given)) for name, given in known]
    if gaps := [name for name, given in pairs if given is ...]:
        raise DomainError(
            f"Types do not say what {len(gaps)} columns can hold: {some(gaps, 20)}. Give each, by "
            "public knowledge, a range, a list of all values or an attribute in ranges={...}."
        )
    # Only records show which columns of a frame have gaps, so all may have some.
    gap = {} if book else {"nullable": True}
    return [(name, _entries(x) | gap if isinstance(x, list | tuple) else x) for name, x in pairs]


# A code book is a CSV file with one row for each column of the table. A header is what JSON calls
# an entry, or one of four words; other columns are ignored. A cell is a value of JSON, or else
# text. Lists have | or ; or commas between values, each perhaps with a label, as in 1=Male; 2=F.

_CALLED = {"min": "lower", "max": "upper", "values": "categories", "missing": "nullable"}
_ENTRIES = set[str]().union(*(inspect.signature(each).parameters for each in _KINDS))
_TYPES = {"integer": "numeric", "number": "numeric", "category": "categorical"}
_FLAGS = {"yes": True, "true": True, "no": False, "false": False}


def _of_codebook(path: Path) -> list[tuple[str, Any]]:
    """Columns of a code book, and their entries; what does not fit together is refused later.

    Raises
    ------
    DomainError
        If it is no CSV file with a name in each row.
    OSError
        If it cannot be read.
    """
    try:
        text = path.read_text("utf-8-sig")
        mark = max(",;\t|", key=text.partition("\n")[0].count)
        header, *lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        means = [_CALLED.get(each, each) for each in (cell.strip().casefold() for cell in header)]
        pairs = [zip(means, map(str.strip, cells), strict=False) for cells in lines]
        rows = [{each: cell for each, cell in row if cell} for row in pairs]
        return [(row.pop("name"), _of_row(row)) for row in rows if row]
    except (KeyError, ValueError, csv.Error) as error:
        what = "a CSV file in UTF-8 that names each variable in a column 'name'"
        raise DomainError(f"{path.name} is no code book, {what}: {error}.") from error


def _of_row(row: dict[str, str]) -> dict[str, Any]:
    """What the row of a variable says."""
    kind = "category" if "categories" in row else row.pop("type", "category").casefold()
    said = {key: _cell(key, text) for key, text in row.items() if key in _ENTRIES}
    whole = {"integer": True} if kind == "integer" else {}
    return {"type": _TYPES.get(kind, kind), **whole, **said}


def _cell(entry: str, text: str) -> Any:
    """What a cell says of an entry; lists hold numbers or booleans where all are, else text."""
    if entry not in ("categories", "special", "edges"):
        return text if entry in ("other", "format") else _FLAGS.get(text.casefold(), value_of(text))
    mark = next((mark for mark in "|;," if mark in text), ";")
    parts = [part.strip() for part in text.split(mark)]
    return values_of([part.partition("=")[0].strip() or part for part in parts if part])


def values_of(texts: Sequence[str]) -> list[Any]:
    """Values that texts write: numbers, or true and false, only where all are."""
    values = [value_of(each) for each in texts]
    kinds = {type(each) for each in values}
    return values if kinds <= {int, float} or kinds == {bool} else [each.strip() for each in texts]


def value_of(text: str) -> Any:
    """A number or another value of JSON, if the text is one; else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
