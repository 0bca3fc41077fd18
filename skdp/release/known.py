"""Known: columns that a user gives, their codes, and what they say about measured columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._arrays import places_by_group
from .._types import BoolArray, CodeArray, FloatArray, IntArray
from ..domain import Domain, Numeric
from ..domain.reading import read
from ..domain.values import some
from .conditions import Bounds

__all__ = ["Known"]


@dataclass
class Known:
    """Columns that are given, and their codes.

    Attributes
    ----------
    frame : Rows
        The columns given, with the names of the domain.
    domain : Domain
    names : list of str
        The columns given, in their order.
    codes : ndarray of int32, shape (n_rows, n_attributes)
        Of measured columns. -1 where a value is unknown: in columns that are not given, for values
        without a code, and for values that break a rule together.
    derived : dict of str to ndarray
        Codes of the derived columns that are given; they count where the column that they follow
        from is unknown.
    native : DataFrame or None
        What the user gave, if that is a frame of pandas.
    """

    frame: Any
    domain: Domain
    names: list[str]
    codes: CodeArray
    derived: dict[str, IntArray]
    native: pd.DataFrame | None

    @classmethod
    def read(cls, data: Any, domain: Domain, what: str) -> Known:
        """Columns of any container.

        Raises
        ------
        DomainError, TypeError, ValueError
            If the container cannot be read, a column is not declared or cannot be conditioned on,
            or its type cannot hold the declared values.
        """
        frame = read(data)
        if frame.n_unnamed:
            names = domain.names_for(frame.n_unnamed, frame.named)
            if names is None:
                raise ValueError(
                    f"{what} has {frame.n_unnamed} columns without names, which are taken by "
                    f"position and so must be all {len(domain)} columns of the domain. Give a "
                    "frame whose columns are named."
                )
            frame = frame.with_names(names)
        names = list(frame.names)
        extra = [name for name in names if name not in domain.columns]
        if extra:
            raise ValueError(
                f"{what} has columns that the domain does not declare: {some(extra)}. Select the "
                "declared columns first."
            )
        structure = domain.structure
        told = [name for name in names if domain.find(name) is not None]
        totals = [name for name in names if name in structure.derived and name not in told]
        if totals:
            raise ValueError(
                f"{what} has {totals[0]!r}, which is a total and not measured: rows cannot be "
                "drawn given a total. Leave the column out, and give its parts instead."
            )
        # Without the structure, derived columns have codes too, and rows that break it.
        found = np.zeros((frame.n_rows, 0), dtype=np.int32)
        if told:
            plain = Domain._trusted([(name, domain[name]) for name in told], False)
            found = plain.encode_columns(plain.check_schema(frame.select(told)))
        codes = np.full((frame.n_rows, len(domain)), -1, dtype=np.int32, order="F")
        derived = {}
        for column, name in enumerate(told):
            if name in domain.names:
                codes[:, domain.index(name)] = found[:, column]
            else:
                derived[name] = found[:, column].astype(np.int64)
        native = data if isinstance(data, pd.DataFrame) else None
        return cls(frame, domain, names, codes, derived, native)

    @property
    def n_rows(self) -> int:
        """Number of rows given."""
        return len(self.codes)

    @property
    def index(self) -> pd.Index:
        """Row labels of a frame of pandas, else positions."""
        return pd.RangeIndex(self.n_rows) if self.native is None else self.native.index

    def at(self, rows: IntArray) -> Known:
        """What is known of some rows, for draws of their codes."""
        derived = {name: codes[rows] for name, codes in self.derived.items()}
        return replace(self, codes=self.codes[rows], derived=derived, native=None)

    def forget_contradictions(self) -> None:
        """Count values that break a rule together as unknown, in the columns of the rule."""
        told = self.codes.copy()
        for zeros in self.domain.structure.zeros:
            rows = np.flatnonzero(zeros.broken_by(told))
            self.codes[rows[:, None], list(zeros.axes)] = -1

    def values(self, name: str) -> pd.Series:
        """A column as it was given."""
        if self.native is not None and name in self.native.columns:
            return self.native[name]
        return pd.Series(self.frame.column(name).objects(), index=self.index)

    def missing(self, name: str) -> BoolArray:
        """Where a column has no value; an undeclared category is a value."""
        column, attribute = self.frame.column(name), self.domain.find(name)
        absent: BoolArray = column.factorize()[0] < 0
        if isinstance(attribute, Numeric):
            # A value that is no number is missing.
            codes = attribute.encode(column)
            absent = (codes < 0) | (codes == attribute.n_values)
        return absent

    def bounds(self) -> dict[str, Bounds]:
        """The numbers given, so that those drawn beside them agree with them."""
        found: dict[str, Bounds] = {}
        for name in self.names:
            if name in self.domain.names and isinstance(self.domain[name], Numeric):
                attribute = self.domain[name]
                assert isinstance(attribute, Numeric)
                numbers = attribute._numbers(self.frame.column(name))
                numbers = np.clip(numbers, attribute.lower, attribute.upper)
                numbers = np.floor(numbers) if attribute.integer else numbers
                found[name] = (numbers, numbers)
        return found

    def groups(self) -> list[tuple[IntArray, dict[int, FloatArray]]]:
        """Rows with equal derived values, and the weights that these give to measured columns."""
        rows = np.arange(self.n_rows)
        if not self.derived:
            return [(rows, {})]
        table = np.stack(list(self.derived.values()), axis=1)
        base = [self.domain.index(self.domain.structure.base_of(name)) for name in self.derived]
        table = np.where(self.codes[:, base] >= 0, -1, table)
        distinct, at = np.unique(table, axis=0, return_inverse=True)
        parts = places_by_group(at.reshape(-1), len(distinct))
        return [(part, self._weights(codes)) for codes, part in zip(distinct, parts, strict=True)]

    def _weights(self, codes: IntArray) -> dict[int, FloatArray]:
        """Weights of the codes of measured columns from which these derived codes follow."""
        structure = self.domain.structure
        weights: dict[int, FloatArray] = {}
        for name, code in zip(self.derived, codes.tolist(), strict=True):
            axis = self.domain.index(structure.base_of(name))
            own = (structure.codes_of(name) == code).astype(np.float64)
            both = own * weights.get(axis, 1.0)
            # A value that is unknown or contradicts another says nothing.
            if both.any():
                weights[axis] = both
        return weights
