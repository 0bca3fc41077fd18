"""How a domain is declared, written and shown, other than by its attributes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from .._types import FloatArray
from .._validation import check_choice
from ..exceptions import DomainError, PrivacyLeakWarning
from .categorical import Categorical
from .numeric import FEW_BINS, MOST_SINGLE, Numeric
from .reading import Column, read
from .values import MAX_INTEGER, as_int, is_missing, plain_category

if TYPE_CHECKING:
    from .report import DomainDifference


class Declaring:
    """Methods of `Domain` that read other schemas, write YAML, compare and show.

    Most programs use none of them, so each imports its module when it is called.
    """

    if TYPE_CHECKING:

        def __init__(self, attributes: Any, *, structure: Any = (), inferred: bool = False) -> None:
            """See `Domain`."""

        def to_json(self) -> str:
            """See `Domain`."""

        @classmethod
        def from_json(cls, source: str | os.PathLike[str]) -> Self:
            """See `Domain`."""

    @classmethod
    def infer(cls, data: Any, *, bins: int = FEW_BINS) -> Self:
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

    def to_yaml(self) -> str:
        """The domain as YAML that a person can edit: the content of :meth:`to_json`, shortened.

        Entries that are the default are left out, and so are the bins of integers with a bin each.

        Raises
        ------
        ImportError
            Without PyYAML, the extra ``yaml``.

        Examples
        --------
        >>> from skdp import Categorical, Domain, Numeric
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
        <BLANKLINE>
        """
        from .data import write_yaml

        return write_yaml(self.to_json())

    @classmethod
    def from_yaml(cls, source: str | os.PathLike[str]) -> Self:
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
        from .data import yaml_as_json

        return cls.from_json(yaml_as_json(source))

    @classmethod
    def from_schema(
        cls,
        source: Any,
        *,
        format: str | None = None,
        types: Mapping[str, Any] | None = None,
        ranges: Mapping[str, Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        drop: str | Iterable[str] = (),
        nullable: bool | Iterable[str] | None = None,
        bins: int | str | Mapping[str, int | str] | None = None,
        structure: Any = (),
        **options: Any,
    ) -> Self:
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
            What the schema does not say: a tuple ``(smallest, largest)`` for numbers and dates, a
            list of categories for other columns. A list of numbers is all numbers that there are:
            categories, or a range with a step where more than 32 are equally far apart.
        attributes : mapping, optional
            Whole attributes of some columns, in place of what the schema says.
        drop : str or list of str, optional
            Columns to leave out.
        nullable : bool or list of str, optional
            Columns with a missing cell: all, none, or these. Default: as the schema says; types
            that can hold missing values get one.
        bins : int, "auto" or mapping, optional
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
        >>> from skdp import Categorical, Domain, Numeric
        >>> types = {"age": "int64", "smoker": "bool"}
        >>> Domain.from_schema(types, ranges={"age": (0, 99)})
        Domain({'age': Numeric(0, 99, integer=True), 'smoker': Categorical([False, True])})
        """
        from .schemas import from_schema

        given = {
            "types": types,
            "ranges": ranges,
            "attributes": attributes,
            "drop": drop,
            "nullable": nullable,
            "bins": bins,
        }
        found = from_schema(source, format, given, options)
        return (
            cls.from_json(found)
            if isinstance(found, str)
            else cls(found, structure=structure or ())
        )

    @staticmethod
    def skeleton(source: Any, *, style: str = "python") -> str:
        """Code that declares a domain for a frame, with every range to fill in. No row is read.

        Parameters
        ----------
        source : frame, lazy frame, array, schema or mapping of types
            Of any library; only names and types are looked at.
        style : {"python", "yaml"}, default="python"
            YAML is what :meth:`from_yaml` reads once it is filled in.

        Returns
        -------
        code : str
            Columns whose names everybody knows have a domain of `skdp.domains`. A notebook shows it
            with its lines. Run unfilled, it raises a DomainError.

        Raises
        ------
        DomainError
            If names are repeated or are not strings.

        Examples
        --------
        >>> from skdp import Categorical, Domain, Numeric
        >>> Domain.skeleton({"pay": "int64", "smoker": "bool"})
        from skdp import Categorical, Domain, Numeric
        <BLANKLINE>
        # Replace every `...` by what is publicly known: a code book, a questionnaire, the law.
        # Never take it from the records. Then see what it does to them: domain.check(frame)
        domain = Domain({
            'pay': Numeric(..., ..., integer=True),  # int64
            'smoker': Categorical([False, True]),  # bool
        })
        <BLANKLINE>
        """
        from .schemas import skeleton

        check_choice(style, "style", ("python", "yaml"))
        return skeleton(source, style)

    def diff(self, other: Self) -> DomainDifference:
        """What differs in another domain; false if nothing does.

        Examples
        --------
        >>> from skdp import Categorical, Domain, Numeric
        >>> Domain({"age": Numeric(0, 99)}).diff(Domain({"age": Numeric(0, 120)}))
        ~ age: upper: 99.0 -> 120.0
        """
        if not isinstance(other, Declaring):
            raise DomainError(f"diff compares with a Domain, got {type(other).__name__}.")
        from .report import difference

        return difference(self, other)

    def describe(self) -> pd.DataFrame:
        """One row for each column: its kind, values, cells, whether it may be missing, structure.

        Examples
        --------
        >>> from skdp import Categorical, Domain, Numeric
        >>> Domain({"sex": Categorical(["F", "M"])}).describe()[["kind", "values", "cells"]]
                    kind values  cells
        sex  Categorical   F, M      2
        """
        from .report import columns_table

        return columns_table(self)

    def _repr_html_(self) -> str:
        from .report import html_page

        return html_page(self)


def infer_attribute(column: Column, name: str, bins: int) -> Numeric | Categorical:
    """Smallest attribute that holds a column's values."""
    if column.kind in ("temporal", "zoned"):
        raise DomainError(
            f"Column {name!r} (type {column.dtype}) holds dates or times, which are not inferred; "
            "leave it out, or declare the domain, with Date or Datetime."
        )
    if column.kind in ("duration", "other"):
        raise DomainError(
            f"Column {name!r} (type {column.dtype}) holds neither numbers nor text; convert it."
        )
    if column.kind == "numeric":
        return _infer_numeric(column.numbers(), name, bins)
    codes, uniques = column.factorize()
    occurring = [uniques[code] for code in np.unique(codes[codes >= 0])]
    plain = {
        plain_category(value, f"Column {name!r} cannot be inferred: value")
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


def _infer_numeric(values: FloatArray, name: str, bins: int) -> Numeric:
    present = values[np.isfinite(values)]
    missing = bool(np.isnan(values).any())
    if not len(present):
        raise _nothing_to_infer(name)
    low, high = float(present.min()), float(present.max())
    integers = bool((present == np.floor(present)).all())
    if integers and high - low < MOST_SINGLE:
        return Numeric(low, high, integer=True, nullable=missing)
    n_bins = as_int(bins, "bins")
    if integers and 1 <= n_bins <= high - low and (high - low) * n_bins < MAX_INTEGER:
        return Numeric(low, high, n_bins, integer=True, nullable=missing)
    # A constant column gets a range above its value, because numbers need a range.
    return Numeric(low, high if high > low else low + max(1.0, abs(low)), n_bins, nullable=missing)


def _nothing_to_infer(name: str) -> DomainError:
    return DomainError(f"Column {name!r} has no value to infer a range or categories from.")
