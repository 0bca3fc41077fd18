"""What a run has released, and where two runs differ, bit for bit."""

from __future__ import annotations

import re
import struct
import tempfile
import threading
import types
from collections.abc import Mapping
from contextvars import ContextVar
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..frames import as_frame

__all__ = ["first_difference", "released"]

# Rows and codes drawn from a release, by a public coin.
_SAMPLE = 40
_ATOMS = (
    type(None),
    bool,
    int,
    str,
    bytes,
    complex,
    Fraction,
    type,
    types.ModuleType,
    range,
    slice,
)
_BY_IDENTITY = (types.BuiltinFunctionType, types.MethodDescriptorType, np.ufunc)


# Nothing can be read from these.
_WITHOUT_VALUE = (type(threading.Lock()), type(threading.RLock()), threading.local, ContextVar)


def released(result: Any) -> dict[str, Any]:
    """Everything that can be seen of the result of a run.

    Parameters
    ----------
    result : object
        A fitted estimator, or what a function returned.

    Returns
    -------
    dict
        The object itself with all its attributes, what it shows, the file that its release is saved
        in, and rows drawn from it with a fixed seed.
    """
    seen: dict[str, Any] = {"result": result}
    if not hasattr(result, "fit"):
        return seen
    seen["repr"] = _shown(result)
    for name, holder in (("estimator", result), ("synopsis_", getattr(result, "synopsis_", None))):
        if hasattr(holder, "save"):
            with tempfile.TemporaryDirectory() as folder:
                holder.save(Path(folder) / "release")
                seen[f"file of {name}"] = (Path(folder) / "release").read_bytes()
        if hasattr(holder, "sample"):
            seen[f"sample of {name}"] = holder.sample(_SAMPLE, random_state=0)
    return seen


def _shown(result: Any) -> str:
    """The text that stands for an object, without addresses in memory."""
    return re.sub(r"0x[0-9a-f]+", "0x", repr(result))


def first_difference(here: Any, there: Any, path: str = "", memo: set | None = None) -> str | None:
    """Name the first place in which two objects differ, or None if they are alike in every bit.

    Objects are compared by type and by all that they hold, through attributes, containers and the
    pickle protocol. Locks have no value; what cannot be compared counts as different.
    """
    memo = set() if memo is None else memo
    if here is there:
        return None
    if type(here) is not type(there):
        return f"{path}: {type(here).__name__} and {type(there).__name__}"
    if isinstance(here, _ATOMS):
        return None if here == there else _differ(path, here, there)
    if isinstance(here, float):
        same = struct.pack("d", here) == struct.pack("d", there)
        return None if same else _differ(path, here, there)
    if isinstance(here, np.ndarray) or isinstance(here, np.generic):
        return _arrays(np.asarray(here), np.asarray(there), path, memo)
    key = (id(here), id(there))
    if key in memo:
        return None
    memo.add(key)
    if isinstance(here, Mapping):
        return _pairs(list(here.items()), list(there.items()), path, memo)
    if isinstance(here, list | tuple):
        return _sequences(here, there, path, memo)
    if isinstance(here, set | frozenset):
        return None if here == there else _differ(path, here, there)
    if isinstance(here, types.FunctionType | types.MethodType):
        return _functions(here, there, path, memo)
    if isinstance(here, _BY_IDENTITY):
        return None if here == there else _differ(path, here, there)
    if hasattr(here, "columns") and hasattr(here, "dtypes"):
        return _frames(here, there, path, memo)
    return _objects(here, there, path, memo)


def _differ(path: str, here: Any, there: Any) -> str:
    return f"{path}: {_short(here)} and {_short(there)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _arrays(here: np.ndarray, there: np.ndarray, path: str, memo: set) -> str | None:
    if here.dtype != there.dtype or here.shape != there.shape:
        return f"{path}: {here.dtype}{list(here.shape)} and {there.dtype}{list(there.shape)}"
    if here.dtype.kind == "O":
        return _sequences(here.ravel().tolist(), there.ravel().tolist(), path, memo)
    if here.tobytes() == there.tobytes():
        return None
    raw = f"V{here.dtype.itemsize}"
    flat, other = np.ascontiguousarray(here).ravel(), np.ascontiguousarray(there).ravel()
    at = int(np.flatnonzero(flat.view(raw) != other.view(raw))[0]) if here.dtype.itemsize else 0
    place = ", ".join(str(int(i)) for i in np.unravel_index(at, here.shape)) if here.ndim else ""
    return _differ(f"{path}[{place}]" if place else path, flat[at].item(), other[at].item())


def _pairs(here: list, there: list, path: str, memo: set) -> str | None:
    if len(here) != len(there):
        return f"{path}: {len(here)} and {len(there)} entries"
    for (key, value), (other_key, other) in zip(here, there, strict=True):
        if key is not other_key and key != other_key:
            return f"{path}: the keys {_short(key)} and {_short(other_key)}"
        found = first_difference(value, other, f"{path}[{_short(key)}]" if path else str(key), memo)
        if found is not None:
            return found
    return None


def _sequences(here: Any, there: Any, path: str, memo: set) -> str | None:
    if len(here) != len(there):
        return f"{path}: {len(here)} and {len(there)} items"
    for i, (value, other) in enumerate(zip(here, there, strict=True)):
        found = first_difference(value, other, f"{path}[{i}]", memo)
        if found is not None:
            return found
    return None


def _functions(here: Any, there: Any, path: str, memo: set) -> str | None:
    if isinstance(here, types.MethodType):
        same = here.__func__ is there.__func__
        return (
            first_difference(here.__self__, there.__self__, path, memo)
            if same
            else f"{path}: two methods"
        )
    if here.__code__ is not there.__code__:
        return f"{path}: two functions"
    cells = [[cell.cell_contents for cell in f.__closure__ or ()] for f in (here, there)]
    return _sequences(cells[0], cells[1], f"{path} (closure)", memo)


def _frames(here: Any, there: Any, path: str, memo: set) -> str | None:
    first, second = as_frame(here), as_frame(there)
    if first.names != second.names or first.dtypes != second.dtypes:
        return f"{path}: columns {first.dtypes} and {second.dtypes}"
    for name in first.names:
        one, other = first.column(name).values(), second.column(name).values()
        found = _sequences(one, other, f"{path}[{name!r}]", memo)
        if found is not None:
            return found
    return first_difference(
        getattr(here, "attrs", None), getattr(there, "attrs", None), f"{path}.attrs", memo
    )


def _objects(here: Any, there: Any, path: str, memo: set) -> str | None:
    if isinstance(here, _WITHOUT_VALUE):
        return None
    attributes = [_attributes(each) for each in (here, there)]
    found = _dotted(*attributes, path, memo)
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
    names = [
        name
        for kind in type(item).__mro__
        for name in _slots(kind)
        if name not in ("__dict__", "__weakref__") and hasattr(item, name)
    ]
    return {**{name: getattr(item, name) for name in names}, **getattr(item, "__dict__", {})}


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _dotted(here: dict, there: dict, path: str, memo: set) -> str | None:
    if list(here) != list(there):
        odd = sorted(set(here) ^ set(there))
        return f"{path}: attributes {odd}" if odd else f"{path}: attributes in another order"
    for name in here:
        found = first_difference(here[name], there[name], f"{path}.{name}".lstrip("."), memo)
        if found is not None:
            return found
    return None
