"""Synthetic rows of a release: all of them, those under a condition, those given some columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._types import BoolArray, CodeArray
from .._validation import as_sample_size
from ..domain import Categorical, Domain, Numeric
from ..domain.reading import read
from ..domain.values import some
from .conditions import Bounds, Condition
from .model import Model

__all__ = ["draw_codes", "draw_frame", "fill_columns", "fill_frame"]


def draw_codes(
    model: Model, domain: Domain, n_samples: Any, generator: np.random.Generator, where: Any
) -> tuple[CodeArray, Condition]:
    """Codes of synthetic rows, and the condition that they satisfy.

    Parameters
    ----------
    model : Model
    domain : Domain
    n_samples : int or None
        None: as many as the release estimates under the condition.
    generator : numpy.random.Generator
    where : dict, str or None
        As in `parse`.
    """
    condition = Condition(where, domain)
    if not condition.weights:
        number = as_sample_size(n_samples, model.total, len(domain))
        return model.sample_codes(number, generator), condition
    total = float(model.answer([condition.weights])[0]) if n_samples is None else 0.0
    number = as_sample_size(n_samples, total, len(domain))
    return model.sample_codes(number, generator, condition.weights), condition


def draw_frame(
    model: Model,
    domain: Domain,
    n_samples: Any,
    generator: np.random.Generator,
    where: Any = None,
    given: Any = None,
) -> pd.DataFrame:
    """Synthetic rows; see `Synopsis.sample`."""
    if given is None:
        codes, condition = draw_codes(model, domain, n_samples, generator, where)
        return decode(domain, codes, generator, condition.bounds(codes, generator))
    known = Known.read(given, domain, "given")
    if n_samples is not None and as_sample_size(n_samples, 0.0, 1) != known.n_rows:
        raise ValueError(
            f"n_samples={n_samples!r}, but given has {known.n_rows} rows, and one row is drawn for "
            "each of them. Leave n_samples out; for several draws repeat the rows of given."
        )
    condition = Condition(where, domain)
    both = [domain.names[axis] for axis in condition.weights if domain.names[axis] in known.names]
    if both:
        raise ValueError(
            f"where has a condition on {some(both)}, which given holds: its values are kept as "
            "they are. Select the rows of given instead, or leave the condition out."
        )
    codes = model.sample_given(known.codes, generator, condition.weights)
    drawn = decode(
        domain, codes, generator, {**known.bounds(), **condition.bounds(codes, generator)}
    )
    drawn.index = known.index
    for name in known.names:
        drawn[name] = known.values(name)
    return drawn


def fill_frame(
    model: Model,
    domain: Domain,
    frame: Any,
    columns: Sequence[str] | str | None,
    generator: np.random.Generator,
) -> pd.DataFrame:
    """A frame with its missing values drawn; see `Synopsis.impute`."""
    known = Known.read(frame, domain, "frame")
    filled = _fill(model, known, columns, generator)
    values = {name: filled[name] if name in filled else known.values(name) for name in known.names}
    return pd.DataFrame(values, index=known.index)


def fill_columns(
    model: Model,
    domain: Domain,
    frame: Any,
    columns: Sequence[str] | str | None,
    generator: np.random.Generator,
) -> tuple[dict[str, pd.Series], list[str]]:
    """The columns of a frame in which values were missing, filled; and the names of all."""
    known = Known.read(frame, domain, "frame")
    return _fill(model, known, columns, generator), known.names


def _fill(
    model: Model, known: Known, columns: Sequence[str] | str | None, generator: np.random.Generator
) -> dict[str, pd.Series]:
    names = known.names if columns is None else _listed_columns(columns, known.names)
    domain, codes, weights = known.domain, known.codes, {}
    gaps = {name: known.missing(name) for name in names}
    for name, gap in gaps.items():
        axis, attribute = domain.index(name), domain[name]
        codes[gap, axis] = -1
        if attribute.nullable:
            # What is filled in is a value.
            weights[axis] = np.append(np.ones(attribute.n_values), 0.0)
    drawn = decode(domain, model.sample_given(codes, generator, weights), generator, known.bounds())
    return {
        name: _filled(known.values(name), gap, drawn[name])
        for name, gap in gaps.items()
        if gap.any()
    }


def _listed_columns(columns: Any, names: Sequence[str]) -> list[str]:
    listed = [columns] if isinstance(columns, str) else list(columns)
    unknown = [name for name in listed if name not in names]
    if unknown:
        raise ValueError(f"columns names {some(unknown)}, but frame has {some(list(names))}.")
    return listed


@dataclass
class Known:
    """Columns that are given, and their codes.

    Attributes
    ----------
    frame : Rows
        The columns given, with the names of the domain.
    domain : Domain
    codes : ndarray of int32, shape (n_rows, n_attributes)
        -1 where a value is unknown: in columns that are not given, and for values without a code.
    native : DataFrame or None
        What the user gave, if that is a frame of pandas.
    """

    frame: Any
    domain: Domain
    codes: CodeArray
    native: pd.DataFrame | None

    @classmethod
    def read(cls, data: Any, domain: Domain, what: str) -> Known:
        """Columns of any container.

        Raises
        ------
        DomainError, TypeError, ValueError
            If the container cannot be read, a column is not declared, or its type cannot hold the
            declared values.
        """
        frame = read(data)
        if frame.n_unnamed:
            if frame.n_unnamed != len(domain) or frame.named:
                raise ValueError(
                    f"{what} has {frame.n_unnamed} columns without names, which are taken by "
                    f"position and so must be all {len(domain)} columns of the domain. Give a "
                    "frame whose columns are named."
                )
            frame = frame.with_names(domain.names)
        extra = [name for name in frame.names if name not in domain]
        if extra:
            raise ValueError(
                f"{what} has columns that the domain does not declare: {some(extra)}. Select the "
                "declared columns first."
            )
        part = domain.select(frame.names)
        frame = part.check_schema(frame)
        codes = np.full((frame.n_rows, len(domain)), -1, dtype=np.int32, order="F")
        codes[:, [domain.index(name) for name in frame.names]] = part.encode_columns(frame)
        return cls(frame, domain, codes, data if isinstance(data, pd.DataFrame) else None)

    @property
    def names(self) -> list[str]:
        """Columns given, in their order."""
        return list(self.frame.names)

    @property
    def n_rows(self) -> int:
        """Number of rows given."""
        return len(self.codes)

    @property
    def index(self) -> pd.Index:
        """Row labels of a frame of pandas, else positions."""
        return pd.RangeIndex(self.n_rows) if self.native is None else self.native.index

    def values(self, name: str) -> pd.Series:
        """A column as it was given."""
        if self.native is not None and name in self.native.columns:
            return self.native[name]
        return pd.Series(self.frame.column(name).objects(), index=self.index)

    def missing(self, name: str) -> BoolArray:
        """Where a column has no value; an undeclared category is a value."""
        codes = self.codes[:, self.domain.index(name)]
        attribute = self.domain[name]
        absent: BoolArray = (codes == attribute.n_values) | (codes < 0)
        if isinstance(attribute, Categorical):
            absent &= self.frame.column(name).factorize()[0] < 0
        return absent

    def bounds(self) -> dict[str, Bounds]:
        """The numbers given, so that those drawn beside them agree with them."""
        found: dict[str, Bounds] = {}
        for name in self.names:
            attribute = self.domain[name]
            if isinstance(attribute, Numeric):
                numbers = np.clip(
                    self.frame.column(name).numbers(), attribute.lower, attribute.upper
                )
                found[name] = (numbers, numbers)
        return found


def _filled(values: pd.Series, gap: BoolArray, drawn: pd.Series) -> pd.Series:
    """A column with drawn values in its gaps; of its own type if that can hold them."""
    fresh = pd.Series(drawn.to_numpy()[gap] if drawn.dtype != object else drawn[gap].to_numpy())
    filled = values.copy()
    if isinstance(values.dtype, pd.CategoricalDtype):
        absent = [each for each in fresh.unique() if each not in values.cat.categories]
        filled = filled.cat.add_categories(absent)
    try:
        filled[gap] = fresh.to_numpy()
    except (TypeError, ValueError):
        filled = values.astype(object)
        filled[gap] = fresh.astype(object).to_numpy()
    return filled


def decode(
    domain: Domain, codes: CodeArray, generator: np.random.Generator, bounds: Mapping[str, Bounds]
) -> pd.DataFrame:
    """Values of codes, within bounds on some columns."""
    frame = domain.decode(codes, random_state=generator)
    for name, (low, high) in bounds.items():
        attribute = domain[name]
        assert isinstance(attribute, Numeric)
        code = codes[:, domain.index(name)].astype(np.int64)
        there = np.flatnonzero(code < attribute.n_values)
        low, high = (np.broadcast_to(end, code.shape)[there] for end in (low, high))
        first, stop = (attribute.edges[code[there] + side] for side in (0, 1))
        first, stop = np.fmax(first, low), np.fmin(stop - attribute.integer, high)
        u = generator.random(len(there))
        if attribute.integer:
            drawn = (first + np.floor(u * (stop - first + 1))).astype(np.int64)
        else:
            drawn = np.clip(first + u * (stop - first), first, stop)
        frame.loc[frame.index[there], name] = drawn
    return frame
