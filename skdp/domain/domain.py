"""Domain: the columns of a table, their order, and the codes of their values."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._random import sampling_generator
from .._types import CodeArray
from .._validation import check_choice
from ..exceptions import DomainError, PrivacyLeakWarning
from .attribute import Attribute
from .categorical import Categorical
from .difference import DomainDifference, difference
from .inference import infer_attribute
from .numeric import DEFAULT_BINS, Numeric
from .reading import LazyRows, Rows, read
from .report import DomainReport
from .schemas import from_schema, skeleton
from .shown import columns_table, html_page
from .taxonomy import Taxonomy
from .values import as_flag, plain_text, some
from .yaml_text import write_yaml, yaml_as_json

__all__ = ["Domain"]

_FORMAT = "skdp.domain"


_VERSION = 1


class Domain:
    """Public schema of a table: its columns, their values, and the code of each value.

    Parameters
    ----------
    attributes : mapping of str to Numeric or Categorical, or iterable of such pairs
        The columns in order. They decide columns, order and types of everything released.
    inferred : bool, default=False
        Whether the domain was read from data, as :meth:`infer` does: then nothing released over
        it is private. It marks every attribute; one inferred attribute makes the whole domain
        inferred.

    Attributes
    ----------
    names : tuple of str
    attributes : tuple of Numeric or Categorical
    shape : tuple of int
        Number of codes of each attribute.
    size : int
        Number of cells, an exact integer of any size.

    Raises
    ------
    DomainError
        If there are no attributes, names are repeated or are not strings, or the domain has a
        single cell.

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
        self._init(pairs, as_flag(inferred, "inferred"))
        if self.size == 1:
            raise DomainError(
                "The domain has a single cell: there is nothing to release except the number of "
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
            plain_text(name, "Column name")
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
            raise DomainError(f"Column names must be unique, but {some(repeated)} are repeated.")
        fields = {
            "names": names,
            "attributes": attributes,
            # The mark is stored on the attributes, so every domain built from them keeps it.
            "inferred": any(attribute.inferred for attribute in attributes),
            "_positions": {name: position for position, name in enumerate(names)},
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("A Domain cannot be changed; declare a new one.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of earlier versions have the mark on the domain only.
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
                f"Column {name!r} is not in the domain; it has {some(self.names)}."
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
        data : table or 2-D array
            Needs exactly the columns of the domain, in any order. Columns without names (of an
            array) are taken by position, for the columns of the domain that no name matches.

        Returns
        -------
        frame : the columns, with values not yet looked at
            In the domain's order.

        Raises
        ------
        DomainError
            If columns are missing or not declared, or a column's type cannot hold the declared
            values.
        TypeError, ValueError
            If the container cannot be read.
        """
        frame = read(data)
        if frame.n_unnamed:
            free = [name for name in self.names if name not in frame.named]
            if len(free) != frame.n_unnamed:
                raise DomainError(
                    f"The data has {frame.n_unnamed} columns without names, but the domain "
                    f"declares {len(free)} for them: {some(free)}."
                )
            frame = frame.with_names(free)
        present = set(frame.names)
        missing = [name for name in self.names if name not in present]
        extra = [name for name in frame.names if name not in self]
        if missing or extra:
            raise DomainError(
                "The columns of the data are not those of the domain."
                + (f" Missing: {some(missing)}." if missing else "")
                + (f" Not declared: {some(extra)}." if extra else "")
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

    def encode(self, data: Any, *, on_invalid: str = "skip") -> CodeArray:
        """Codes of all records.

        Parameters
        ----------
        data : table or 2-D array
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
        check_choice(on_invalid, "on_invalid", ("skip", "raise"))
        frame = self.check_schema(data)
        if on_invalid == "raise":
            report = self._report(frame)
            if not report.clean:
                raise DomainError(
                    "Values outside of the domain (this message is not private):\n"
                    f"{report.columns.to_string()}"
                )
        return self.encode_columns(frame)

    def encode_columns(self, frame: Rows) -> CodeArray:
        """Codes of all records of a frame whose schema was checked; never raises.

        Parameters
        ----------
        frame : Rows
            With the columns of the domain.

        Returns
        -------
        codes : ndarray of shape (n_rows, n_attributes), int32, Fortran order
        """
        # Codes are written column by column here, and read column by column when they are counted.
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
            Source of the draws, which are not noise and protect nothing.

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

    def _report(self, frame: Rows) -> DomainReport:
        skipped = np.zeros(frame.n_rows, dtype=bool)
        rows = {}
        for name, attribute in self.items():
            column = frame.column(name)
            rows[name] = attribute._diagnose(column)
            skipped |= attribute.encode(column) < 0
        columns = pd.DataFrame.from_dict(rows, orient="index")
        return DomainReport(columns, frame.n_rows, int(skipped.sum()))

    @classmethod
    def infer(cls, data: Any, *, bins: int = DEFAULT_BINS) -> Domain:
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
        frame = read(data)
        pairs = [(name, infer_attribute(frame.column(name), name, bins)) for name in frame.names]
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
            return cls._trusted(pairs, as_flag(data["inferred"], "inferred"))
        except DomainError as error:
            raise DomainError(f"This JSON declares no valid domain. {error}") from error
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DomainError(f"This domain is damaged: {error!r}.") from error

    def to_yaml(self) -> str:
        """The domain as YAML that a person can edit: the content of :meth:`to_json`.

        Raises
        ------
        ImportError
            Without PyYAML, the extra ``yaml``.

        Examples
        --------
        >>> print(Domain({"sex": Categorical(["F", "M"])}).to_yaml())
        # The public schema of a table. Edit it from what is publicly known, never from records,
        # and read it with Domain.from_yaml.
        format: skdp.domain
        version: 1
        inferred: false
        attributes:
        - name: sex
          type: categorical
          categories: [F, M]
          ordered: false
          taxonomy: null
          other: null
          nullable: false
        <BLANKLINE>
        """
        return write_yaml(self.to_json())

    @classmethod
    def from_yaml(cls, source: str | os.PathLike[str]) -> Domain:
        """Read what :meth:`to_yaml` wrote, with what a person changed. Only plain data are read.

        A bare word is text: ``no`` and ``2020-01-31`` need no quotes. Numbers, ``true``, ``false``
        and ``null`` are what they are in JSON; in quotes they are text.

        Parameters
        ----------
        source : str or path-like
            A str is YAML text; a file is named by a ``pathlib.Path``.

        Raises
        ------
        DomainError
            If the text is not YAML, a key occurs twice, or it declares no valid domain.
        ImportError
            Without PyYAML, the extra ``yaml``.
        OSError
            If the file cannot be read.
        """
        return cls.from_json(yaml_as_json(source))

    @classmethod
    def from_schema(cls, source: Any, **options: Any) -> Domain:
        """Declare a domain by a schema in another format. No row is read.

        Parameters
        ----------
        source : path, mapping, class or object
            One of the formats below; recognised by what it is.
        format : str, optional
            "dtypes" (a frame, its ``dtypes``, a Polars or Arrow schema, a dict of types),
            "codebook" (CSV, Excel, or a frame that holds it), "frictionless" (Table Schema),
            "pandera", "pydantic", "json_schema", "sdv", "sdnist", or "domain" (what
            :meth:`to_json` and :meth:`to_yaml` write). Default: recognised.
        types : mapping, optional
            Type of some columns, over what the schema says: a dtype or its name, such as "integer",
            "number", "category", "date", "datetime", "identifier".
        ranges : mapping, optional
            What the schema does not say: a pair ``(smallest, largest)`` for numbers and dates, a
            list of categories for other columns.
        attributes : mapping, optional
            Whole attributes of some columns, in place of what the schema says.
        drop : str or list of str, optional
            Columns to leave out.
        nullable : bool or list of str, optional
            Columns with a missing cell: all, none, or these. Default: as the schema says; types
            that can hold missing values get one.
        bins : int or mapping, optional
            Bins of numeric columns for which the schema says none.
        structure : sequence of Rule, optional
            Rules between columns, as for `Domain`.
        **options
            Of the format: ``labels``, ``na_values``, ``sheet``, ``encoding``, ``delimiter`` of a
            code book, ``na_values`` of "sdnist", ``resource`` of "frictionless", ``table`` of
            "sdv". The user guide explains them.

        Returns
        -------
        domain : Domain

        Raises
        ------
        DomainError
            One for all columns that lack a range or categories, with code to fill in; for unknown
            types, repeated names, and cells of a code book that cannot be understood.
        ImportError
            If the format needs a library that is not installed.
        OSError
            If a file cannot be read.

        Examples
        --------
        >>> types = {"age": "int64", "smoker": "bool"}
        >>> Domain.from_schema(types, ranges={"age": (0, 99)})
        Domain({'age': Numeric(0, 99, integer=True), 'smoker': Categorical([False, True])})
        """
        return from_schema(source, **options)

    @staticmethod
    def skeleton(source: Any) -> str:
        """Code that declares a domain for a frame, with every range to fill in. No row is read.

        Parameters
        ----------
        source : frame, lazy frame, array, schema or mapping of types
            Of any library; only names and types are looked at.

        Returns
        -------
        code : str
            A notebook shows it with its lines. Run unfilled, it raises a DomainError.

        Raises
        ------
        DomainError
            If names are repeated or are not strings.

        Examples
        --------
        >>> Domain.skeleton({"age": "int64", "smoker": "bool"})
        from skdp import Categorical, Domain, Numeric
        <BLANKLINE>
        # Replace every `...` by what is publicly known: a code book, a questionnaire, the law.
        # Never take it from the records. Then see what it does to them: domain.check(frame)
        domain = Domain({
            'age': Numeric(..., ..., integer=True),  # int64
            'smoker': Categorical([False, True]),  # bool
        })
        <BLANKLINE>
        """
        return skeleton(source)

    def diff(self, other: Domain) -> DomainDifference:
        """What differs in another domain; false if nothing does.

        Examples
        --------
        >>> Domain({"age": Numeric(0, 99)}).diff(Domain({"age": Numeric(0, 120)}))
        ~ age: upper: 99.0 -> 120.0
        """
        if not isinstance(other, Domain):
            raise DomainError(f"diff compares with a Domain, got {type(other).__name__}.")
        return difference(self, other)

    def describe(self) -> pd.DataFrame:
        """One row for each column: its kind, values, cells, whether it may be missing, structure.

        Examples
        --------
        >>> Domain({"sex": Categorical(["F", "M"])}).describe()[["kind", "values", "cells"]]
                    kind values  cells
        sex  Categorical   F, M      2
        """
        return columns_table(self)

    def _repr_html_(self) -> str:
        return html_page(self)

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
    """One attribute of a JSON domain; raises if anything is wrong with it."""
    name, kind = data.pop("name"), data.pop("type")
    if kind == "numeric":
        return name, Numeric(data.pop("lower"), data.pop("upper"), **data)
    if kind == "categorical":
        tree = data.pop("taxonomy")
        taxonomy = None if tree is None else Taxonomy(tree["labels"], tree["parents"])
        return name, Categorical(data.pop("categories"), taxonomy=taxonomy, **data)
    raise DomainError(f"Attribute type {kind!r} is unknown.")
