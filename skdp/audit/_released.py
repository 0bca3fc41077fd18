"""What two runs are given, and what they released: whether one record differs, and which bit."""

from __future__ import annotations

import contextlib
import copy
import numbers
import re
import tempfile
import threading
import types
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.arrays import NumpyExtensionArray

from ..tables import as_frame, is_missing

# --- pairs of neighbours, and their records


def check_neighbours(dataset: Any, neighbour: Any, sensitivity: float | None) -> None:
    """Refuse inputs that are not neighbours; None refuses nothing.

    Raises
    ------
    ValueError
        If they differ in more than one record, or by more than `sensitivity` in an answer.
    TypeError
        If their records cannot be identified.
    """
    if sensitivity is None:
        return
    if _are_answers(dataset, neighbour):
        _check_answers(dataset, neighbour, sensitivity)
    else:
        _check_records(dataset, neighbour)


def _are_answers(*sides: Any) -> bool:
    """Whether these are numbers, or vectors of equally many."""
    plain = [data.tolist() if isinstance(data, np.ndarray) else data for data in sides]
    listed = [[each] if isinstance(each, numbers.Real) else each for each in plain]
    if not all(isinstance(each, list | tuple) for each in listed):
        return False
    real = all(isinstance(value, numbers.Real) for each in listed for value in each)
    return real and len(set(map(len, listed))) == 1


def _check_answers(dataset: Any, neighbour: Any, sensitivity: float) -> None:
    here, there = (np.asarray(data, dtype=float) for data in (dataset, neighbour))
    change = float(np.max(np.abs(here - there), initial=0.0))
    if not change <= sensitivity * (1 + 1e-12):
        raise ValueError(
            "The inputs are not neighbours: read as query answers, one of them moves by "
            f"{change:g}, more than sensitivity={sensitivity:g}. Pass the true sensitivity; if "
            "they are records, a neighbour has one record more or one less, not a changed one."
        )
    if change == 0:
        raise ValueError("The two inputs are equal: nothing can be learned from them.")


def _check_records(dataset: Any, neighbour: Any) -> None:
    here, there = (Counter(records(data)) for data in (dataset, neighbour))
    added = sum((there - here).values())
    removed = sum((here - there).values())
    if added + removed == 0:
        raise ValueError("The two data sets hold the same records: nothing can be learned.")
    if added + removed > 1:
        raise ValueError(
            f"The data sets are not neighbours: {removed} records of the dataset are missing in "
            f"the neighbour and {added} are new. Add or remove exactly one record; a changed "
            "record counts as one removed and one added."
        )


def records(data: Any) -> list[Any]:
    """Records of a data set as hashables, in order.

    Raises
    ------
    TypeError
        If it is not a frame, an array, a list, or a pair of X and y.
    """
    if is_labelled(data):
        first, second = (records(part) for part in data)
        if len(first) != len(second):
            raise ValueError(f"X has {len(first)} records and y has {len(second)}.")
        return list(zip(first, second, strict=True))
    if isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.ndim):
        return [_plain(row) for row in data]
    for name in ("to_list", "to_pylist"):  # a column: pandas and Polars, PyArrow
        if hasattr(data, name) and not hasattr(data, "columns"):
            return [_plain(value) for value in getattr(data, name)()]
    try:
        frame = as_frame(data)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"It is not known what the records of a {type(data).__name__} are, or whether the "
            "inputs are neighbours. Pass a frame, an array or a list of records, or "
            "sensitivity=None to vouch for them yourself."
        ) from error
    columns = (map(_plain, frame.column(name).objects()) for name in frame.names)
    return list(zip(*columns, strict=True))


def is_labelled(data: Any) -> bool:
    """Whether this is a pair of X and y rather than two records."""
    return (
        isinstance(data, tuple)
        and len(data) == 2
        and all(hasattr(part, "__len__") and not isinstance(part, str | tuple) for part in data)
    )


def _plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple(sorted((key, _plain(part)) for key, part in value.items()))
    # A missing value may differ from itself; in a record it is one value.
    return None if is_missing(value) else value


# --- what a run has released, and where two runs differ

# Exceptions shown of a chain of causes.
_CHAIN = 8
# Types of class attributes that a run may have set.
_HELD = (int, float, complex, str, bytes, list, tuple, dict, set, frozenset, np.ndarray)
# Number of rows and codes drawn from a release, with public randomness.
_SAMPLE = 40
_ATOMS = (type(None), bool, int, str, bytes, Fraction)
_NAMED = (type, types.ModuleType)
# Arrays that NumPy stores in place; others (objects, text of any length) hold addresses, and bytes
# between fields are undefined.
_PLAIN_KINDS = "biufcSUmM"


# Nothing can be learned from these.
_WITHOUT_VALUE = (type(threading.Lock()), type(threading.RLock()))


def released(result: Any) -> dict[str, Any]:
    """Everything that can be observed in the result of a run.

    Parameters
    ----------
    result : object
        A fitted estimator, or the return value of a function.

    Returns
    -------
    dict
        The object itself with all its attributes, its text, the file of its release, and rows drawn
        from it with a fixed seed.
    """
    seen: dict[str, Any] = {"result": result}
    if not hasattr(result, "fit"):
        return seen
    seen["repr"] = _shown(result)
    seen["classes"] = {
        f"{kind.__qualname__}.{name}": value
        for kind in type(result).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, _HELD) and not name.startswith("__")
    }
    # An estimator saves and samples its synopsis, if it has one.
    holders = (result, getattr(result, "synopsis_", None))
    if (saves := next((each for each in holders if hasattr(each, "save")), None)) is not None:
        with tempfile.TemporaryDirectory() as folder:
            saves.save(Path(folder) / "release")
            seen["file"] = (Path(folder) / "release").read_bytes()
    if (draws := next((each for each in holders if hasattr(each, "sample")), None)) is not None:
        seen["sample"] = draws.sample(_SAMPLE, random_state=0)
    return seen


def raised(error: BaseException) -> list[Any]:
    """The text of an exception, and of the exceptions that caused it."""
    parts: list[Any] = []
    each: BaseException | None = error
    while each is not None and len(parts) < _CHAIN:
        parts.append((type(each), str(each), each.args, vars(each)))
        each = each.__cause__ or each.__context__
    return parts


def independent(value: Any) -> Any:
    """A copy that later runs do not change; what cannot be copied stays as it is."""
    with contextlib.suppress(Exception):
        return copy.deepcopy(value)
    if type(value) is dict:
        return {name: independent(part) for name, part in value.items()}
    return type(value)(map(independent, value)) if type(value) in (list, tuple) else value


def _shown(result: Any) -> str:
    """The text that stands for an object, without addresses in memory."""
    return re.sub(r"0x[0-9a-f]+", "0x", repr(result))


def first_difference(here: Any, there: Any, path: str = "", memo: dict | None = None) -> str | None:
    """Name the first place in which two objects differ, or None if they are equal in every bit.

    Objects are compared by type and by all that they hold, through attributes, containers and the
    pickle protocol. Locks have no value; what cannot be compared counts as different.
    """
    memo = {} if memo is None else memo
    if here is there:
        return None
    if type(here) is not type(there):
        return f"{path}: {type(here).__name__} and {type(there).__name__}"
    if type(here) in _ATOMS or isinstance(here, _NAMED):
        return None if here == there else _differ(path, here, there)
    key = (id(here), id(there))
    if key in memo:
        return None
    # The objects are kept with their ids: another object may get the id of one that is gone.
    memo[key] = (here, there)
    found = _contents(here, there, path, memo)
    if found is not None or not isinstance(here, _CONTAINERS) or type(here) in _CONTAINERS:
        return found
    # Classes made from a built-in one may hold more than it does.
    return _dotted(_attributes(here), _attributes(there), path, memo)


_CONTAINERS = (*_ATOMS, float, complex, np.ndarray, list, tuple, set, frozenset, Mapping)


def _contents(here: Any, there: Any, path: str, memo: dict) -> str | None:
    """As `first_difference`, for objects of the same type, without attributes of containers."""
    if isinstance(here, _ATOMS):
        return None if here == there else _differ(path, here, there)
    if isinstance(here, np.ndarray | np.generic | float | complex):
        return _arrays(np.asarray(here), np.asarray(there), path, memo)
    if isinstance(here, Mapping):
        found = _pairs(list(here.items()), list(there.items()), path, memo)
        makers = [getattr(each, "default_factory", None) for each in (here, there)]
        return found or first_difference(makers[0], makers[1], f"{path} (default)", memo)
    if isinstance(here, list | tuple | set | frozenset):
        # The order of a set is visible too, and may reveal the order in which it was filled.
        return _sequences(list(here), list(there), path, memo)
    if isinstance(here, types.FunctionType):
        return _sequences(_function(here), _function(there), f"{path} (function)", memo)
    if isinstance(here, pd.DataFrame | pd.Series):
        return _sequences(_pandas(here), _pandas(there), path, memo)
    if hasattr(here, "to_list") and hasattr(here, "dtype"):
        return _sequences(_column(here), _column(there), path, memo)
    if hasattr(type(here), "collect") and hasattr(type(here), "columns"):
        return f"{path}: {type(here).__name__} cannot be compared before it is collected"
    if hasattr(here, "columns") and hasattr(here, "dtypes"):
        return _sequences(_frame(here), _frame(there), path, memo)
    return _objects(here, there, path, memo)


def _differ(path: str, here: Any, there: Any) -> str:
    return f"{path}: {_short(here)} and {_short(there)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _arrays(here: np.ndarray, there: np.ndarray, path: str, memo: dict) -> str | None:
    # Pickles hold the order in memory too, and notes that a type has.
    kinds = [
        {"dtype": each.dtype, "shape": each.shape, "order": "CF"[each.flags.fnc]}
        for each in (here, there)
    ]
    if (found := first_difference(kinds[0], kinds[1], path, memo)) is not None:
        return found
    if here.dtype.kind not in _PLAIN_KINDS:
        return _sequences(here.ravel().tolist(), there.ravel().tolist(), path, memo)
    if here.tobytes() == there.tobytes():
        return None
    raw = f"V{here.dtype.itemsize}"
    flat, other = np.ascontiguousarray(here).ravel(), np.ascontiguousarray(there).ravel()
    at = int(np.flatnonzero(flat.view(raw) != other.view(raw))[0]) if here.dtype.itemsize else 0
    place = ", ".join(str(int(i)) for i in np.unravel_index(at, here.shape)) if here.ndim else ""
    return _differ(f"{path}[{place}]" if place else path, flat[at].item(), other[at].item())


def _pairs(here: list, there: list, path: str, memo: dict) -> str | None:
    if len(here) != len(there):
        return f"{path}: {len(here)} and {len(there)} entries"
    for (key, value), (other_key, other) in zip(here, there, strict=True):
        if first_difference(key, other_key, path, memo) is not None:
            return f"{path}: the keys {_short(key)} and {_short(other_key)}"
        found = first_difference(value, other, f"{path}[{_short(key)}]" if path else str(key), memo)
        if found is not None:
            return found
    return None


def _sequences(here: Any, there: Any, path: str, memo: dict) -> str | None:
    if len(here) != len(there):
        return f"{path}: {len(here)} and {len(there)} items"
    both = enumerate(zip(here, there, strict=True))
    return _first(((f"{path}[{i}]", *each) for i, each in both), memo)


def _first(parts: Iterable[tuple[str, Any, Any]], memo: dict) -> str | None:
    """The first difference of parts that have paths of their own."""
    found = (first_difference(here, there, path, memo) for path, here, there in parts)
    return next((each for each in found if each is not None), None)


def _function(function: types.FunctionType) -> list[Any]:
    """The contents of a function, whose code is compared by identity."""
    # A variable of an outer function may have no value yet.
    cells, none = function.__closure__ or (), types.CellType()
    return [
        function.__code__,
        ["empty" if each == none else each.cell_contents for each in cells],
        function.__defaults__,
        function.__kwdefaults__,
        vars(function),
    ]


def _column(data: Any) -> list[Any]:
    """The contents of an index, or of a column of another library than pandas."""
    # pandas 2.2 deprecates one name, and Polars has no other.
    values = data.tolist() if hasattr(data, "tolist") else data.to_list()
    return [data.dtype, getattr(data, "name", ""), list(getattr(data, "names", ())), values]


def _frame(data: Any) -> list[Any]:
    """The contents of a frame of another library than pandas."""
    frame = as_frame(data)
    return [frame.dtypes, {name: frame.column(name).objects() for name in frame.names}]


def _pandas(data: Any) -> list[Any]:
    """The contents of a pandas frame or series, without its caches."""
    if isinstance(data, pd.Series):
        values = data.array
        plain = isinstance(values, NumpyExtensionArray)
        held = np.ascontiguousarray(values.to_numpy()) if plain else values.tolist()
        return [held, data.dtype, data.name, data.index, data.attrs]
    columns = [_pandas(data.iloc[:, i])[0] for i in range(data.shape[1])]
    return [columns, list(data.dtypes), data.columns, data.index, data.attrs]


def _objects(here: Any, there: Any, path: str, memo: dict) -> str | None:
    if isinstance(here, _WITHOUT_VALUE):
        return None
    attributes = [_attributes(each) for each in (here, there)]
    found = _dotted(attributes[0], attributes[1], path, memo)
    if found is not None or (attributes[0] and not _pickles_itself(type(here))):
        return found
    # Classes written in C keep their values out of reach of attributes.
    try:
        reduced = [each.__reduce_ex__(4) for each in (here, there)]
    except TypeError:
        return None if attributes[0] else f"{path}: {type(here).__name__} cannot be compared"
    if isinstance(reduced[0], str):
        return None if reduced[0] == reduced[1] else _differ(path, *reduced)
    parts = [[list(part) if hasattr(part, "__next__") else part for part in r] for r in reduced]
    return _sequences(parts[0], parts[1], path, memo)


def _pickles_itself(kind: type) -> bool:
    return any(
        name in each.__dict__
        for each in kind.__mro__[:-1]
        for name in ("__reduce__", "__reduce_ex__", "__getstate__")
    )


def _attributes(item: Any) -> dict[str, Any]:
    slots: dict[str, Any] = {}
    for kind in type(item).__mro__:
        # The descriptors have the names that the compiler gave, also to private slots.
        for name, slot in vars(kind).items() if "__slots__" in vars(kind) else ():
            if isinstance(slot, types.MemberDescriptorType):
                own = f"{kind.__name__}.{name}" if name in slots else name
                with contextlib.suppress(AttributeError):  # nothing in it
                    slots[own] = slot.__get__(item, kind)
    return {**slots, **getattr(item, "__dict__", {})}


def _dotted(here: dict, there: dict, path: str, memo: dict) -> str | None:
    if list(here) != list(there):
        odd = sorted(set(here) ^ set(there))
        return f"{path}: attributes {odd}" if odd else f"{path}: attributes in another order"
    parts = ((f"{path}.{name}".lstrip("."), here[name], there[name]) for name in here)
    return _first(parts, memo)
