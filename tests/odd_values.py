"""Odd values of one record, the tables that can hold them, and pairs of neighbours with one."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from skdp.audit._released import is_labelled
from skdp.tables import object_array


class Unruly:
    """Raises whatever is asked of it, with a text that tells of it."""

    def refuse(self, *_: Any) -> Any:
        raise RuntimeError("a value that raises was read")

    __eq__ = __lt__ = __float__ = __int__ = __str__ = __repr__ = __len__ = __iter__ = refuse
    __hash__ = __bool__ = __array__ = __index__ = refuse


#: Values of one record that libraries may take as a reason to read the others in another way.
ODD_VALUES: Mapping[str, Any] = {
    "None": None,
    "a fraction": 0.5,
    "text": "martian",
    "a complex number": 1 + 2j,
    "a list": [1, 2],
    "a huge integer": 10**400,
    "2**63": 2**63,
    "an array": np.array([0.5, 1.5]),
    "NaN": float("nan"),
    "bytes": b"a",
    "a decimal": Decimal("0.5"),
    "a signalling NaN": Decimal("sNaN"),
    "a Fraction": Fraction(1, 3),
    "a truth value": True,
    "an integer": 1,
    "a number as text": "1.0",
    "NaT": pd.NaT,
    "a NumPy integer": np.int8(1),
    "a NumPy truth value": np.bool_(False),
    "a NumPy float": np.float32(0.5),
    "NA": pd.NA,
    "a date": pd.Timestamp("2020-01-01"),
    "a list of one": [1],
    "a dictionary": {"a": 1},
    "an empty list": [],
    "text with NUL": "a\0b",
    "a duration": np.timedelta64(1, "s"),
    "a value that raises": Unruly(),
}

SECRET = "the secret of one record"


def _tell(*_: Any) -> Any:
    raise RuntimeError(SECRET)


def _overflow(*_: Any) -> Any:
    raise OverflowError(SECRET)


class Panic(BaseException):
    """As those of Polars: not an Exception."""


def _panic(*_: Any) -> Any:
    raise Panic(SECRET)


def _odd(base: type, refuse: Callable[..., Any], *names: str) -> type:
    """A class whose methods of these names refuse."""
    return type("Odd", (base,), dict.fromkeys(names, refuse))


Equal = _odd(object, _tell, "__eq__")
Panics = _odd(
    float, _panic, *(f"__{name}__" for name in ("float", "hash", "eq", "ne", "gt", "lt", "bool"))
)
Text, Number = _odd(str, _tell, "__hash__", "__eq__"), _odd(float, _tell, "__float__", "__hash__")


class Huge(int):
    """Too large for a float, and of no known sign."""

    __float__, __gt__ = _overflow, _tell


class Class:
    __class__ = property(_tell)


class Meta(type):
    """A class that refuses to be held in a set."""

    __hash__ = None  # type: ignore[assignment]


class EqualMeta(type):
    """A class that says it is text."""

    def __hash__(self):
        return hash(str)

    def __eq__(self, other):
        return True


class Same(Decimal, metaclass=EqualMeta):
    """Says that it equals whatever has its hash."""

    def __hash__(self):
        return hash(1)

    def __eq__(self, other):
        return True


def hostile() -> list[Any]:
    """New objects that raise or deceive when they are read."""
    own = [Equal(), _odd(object, _tell, "__hash__")(), Meta("OfMeta", (), {})(), Text("Male")]
    own += [Number(1), Huge(5), Class(), _odd(list, _tell, "__len__", "__iter__")(), Panics(1)]
    own += [Same(3)]
    nested = [[1, 2], [[]], {"a": 1}, {1}, np.array([1, 2]), np.array(5), np.array([[1]]), (1,)]
    numbers = [10**400, -(10**400), Decimal("sNaN"), Decimal("1e999999"), 1 + 2j, Fraction(1, 3)]
    times = [pd.NaT, np.datetime64("NaT", "s"), np.timedelta64(5, "D")]
    others = [b"x", "\ud800", pd.NA, None, pd.Interval(0, 1), iter([1]), object(), range(3)]
    return [*own, *nested, *numbers, *times, *others]


# A table, or one column of values, of a list for each column.
_Columns = Mapping[Any, list[Any]]


def _objects_of(columns: _Columns) -> Any:
    array = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for place, values in enumerate(columns.values()):
        array[:, place] = object_array(values)
    return array


def _object_series(values: list[Any]) -> pd.Series:
    return pd.Series(object_array(values), dtype=object)


def _inferred(values: Any) -> pd.Series:
    """A column of the type that pandas chooses; older ones fail at huge or unruly values."""
    try:
        return pd.Series(values)
    except (OverflowError, RuntimeError):
        return _object_series(values)


#: Ways to hold a table, and a single column of labels or values.
CONTAINERS: Mapping[str, tuple[Callable[[_Columns], Any], Callable[[list[Any]], Any]]] = {
    "lists": (lambda columns: [list(row) for row in zip(*columns.values(), strict=True)], list),
    "arrays of objects": (_objects_of, object_array),
    "columns of objects": (
        lambda columns: pd.DataFrame({str(n): _object_series(v) for n, v in columns.items()}),
        _object_series,
    ),
    "columns of a type that pandas chose": (
        lambda columns: pd.DataFrame({str(n): _inferred(v) for n, v in columns.items()}),
        _inferred,
    ),
}


def odd_pair(
    data: Any, container: str, value: str, place: int = 0, *, unit: str | None = None
) -> tuple[Any, Any]:
    """A data set with one record more, which holds an odd value, and the data set itself.

    Parameters
    ----------
    data : frame, array, or pair of X and y
        With at least one record.
    container : str
        What holds the records, of `CONTAINERS`.
    value : str
        The value, of `ODD_VALUES`.
    place : int, default=0
        The column of the value, modulo their number; `y` is the last.
    privacy_id : str, default=None
        A column that identifies persons: the record is that of a new one.

    Returns
    -------
    dataset, neighbour
    """
    table, column = CONTAINERS[container]
    parts = data if is_labelled(data) else (data,)
    held: list[dict[Any, list[Any]]] = []
    for part in parts:
        frame = part if isinstance(part, pd.DataFrame) else pd.DataFrame(np.asarray(part))
        held.append({name: frame[name].astype(object).tolist() for name in frame})
    cells = [(number, name) for number, each in enumerate(held) for name in each if name != unit]
    odd = cells[place % len(cells)]

    def made(extra: bool) -> Any:
        found = []
        for number, (part, columns) in enumerate(zip(parts, held, strict=True)):
            more = {name: list(values) for name, values in columns.items()}
            for name, values in more.items():
                new = "a new person" if name == unit else values[0]
                values += [ODD_VALUES[value] if (number, name) == odd else new] * extra
            flat = np.ndim(part) == 1
            found.append(column(next(iter(more.values()))) if flat else table(more))
        return tuple(found) if len(found) > 1 else found[0]

    return made(True), made(False)
