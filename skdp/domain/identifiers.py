"""Identifier and Text: columns that are never measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from ..exceptions import DomainError
from .values import plain_text


@dataclass(frozen=True, repr=False)
class Identifier:
    """A column that identifies records: a key, an account number, a name.

    It is never measured. In the data it may be present or absent, and its values are never read
    (an estimator reads them only where the column is its ``unit``). Synthetic rows get fresh ids,
    which have nothing to do with those of the data.

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

    # What a domain asks of every declaration.
    inferred: ClassVar[bool] = False

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

    def _marked(self) -> Identifier:
        """The same: it holds nothing that could have been read from data."""
        return self

    def _to_data(self) -> dict[str, Any]:
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
