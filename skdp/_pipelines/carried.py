"""Whether an object carries information about rows that were read elsewhere.

A model that is trained on a release is free, but not if it carries a table of true rows: in a
parameter, in the closure of a function, or in a model that was fitted to them. The search covers
everything that an object can reach, and reports what it does not know.
"""

from __future__ import annotations

import dis
import enum
import functools
import logging
import numbers
import pathlib
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._random import is_generator
from .._validation import is_word
from .origin import TRUSTED, call_name, is_held, is_library, is_pure, kind_of, library, replaced
from .steps import Lengths

# --- what the code of a function refers to: globals, attributes, imports. It is not called

# Names through which a function reads files, or finds objects that it does not name.
_READERS = re.compile(
    r"^(read_|scan_|fetch_|load(s|txt|_.*)?$|open$|open_|fromfile$|genfromtxt$|memmap$"
    r"|ExcelFile$|HDFStore$|DataSource$|sys$|os$|modules$|_getframe$|[fgc][ir]?_(frame|globals)$"
    r"|f_(back|locals|builtins)$|tb_frame$|cell_contents$"
    r"|__(dict|globals|builtins|closure|subclasses|loader|spec)__$)"
)
_FINDERS = {"open", "eval", "exec", "compile", "globals", "locals", "vars", "__import__", "input"}


def _is_reader(name: str) -> bool:
    """Whether a function of this name reads files, or finds objects that it is not given."""
    return _READERS.match(name) is not None


def _named_objects(func: types.FunctionType) -> list[object]:
    """The objects that a function can reach: defaults, attributes, closure, global variables."""
    reached: list[object] = [func.__defaults__, func.__kwdefaults__, func.__dict__]
    reached += [cell.cell_contents for cell in func.__closure__ or () if _is_filled(cell)]
    known = func.__globals__
    return reached + [known[name] for name in _global_names(func.__code__) if name in known]


def _finds(func: types.FunctionType) -> Iterator[str]:
    """In words: how a function may find data that none of its `_named_objects` holds."""
    for name in _global_names(func.__code__):
        if name not in func.__globals__ and name in _FINDERS:
            yield f"whatever {name} finds, in {call_name(func)}"
    names = _attribute_names(func.__code__)
    if "getattr" in _global_names(func.__code__):
        texts = [each for one in _codes(func.__code__) for each in one.co_consts]
        names |= {(text, False) for text in texts if isinstance(text, str)}
    for name, imports in names:
        if _is_reader(name) or (imports and not is_pure(name)):
            yield f"what {call_name(func)} reads by {name}"


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _global_names(code: types.CodeType) -> set[str]:
    return {
        step.argval
        for one in _codes(code)
        for step in dis.get_instructions(one)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }


def _attribute_names(code: types.CodeType) -> set[tuple[str, bool]]:
    """Attributes that a function names, and whether it imports them."""
    kinds = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_NAME", "IMPORT_FROM")
    return {
        (str(step.argval), step.opname == "IMPORT_NAME")
        for one in _codes(code)
        for step in dis.get_instructions(one)
        if step.opname in kinds
    }


# --- what an object carries

_Paid = Callable[[Any], bool]
# Longer texts, and integers of more bytes, hold a table.
_LONGEST_TEXT = 10_000


class _Known(NamedTuple):
    """What does not count as rows: what was paid for, and lists that describe columns."""

    paid: _Paid
    lengths: Lengths


# By identity. The objects themselves are kept, so that no identity is used again.
_Seen = dict[int, object]

_PLAIN = (
    numbers.Number,
    str,
    bytes,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    np.generic,
    np.dtype,
    range,
    re.Pattern,
    pathlib.PurePath,
)
# Objects of skdp that hold only declarations or released numbers.
_PUBLIC_KINDS = {
    "Categorical",
    "CubePlan",
    "Domain",
    "NoiseSource",
    "Numeric",
    "PrivacyLedger",
    "PrivacyLoss",
    "PrivateKFold",
    "QueryResult",
    "Taxonomy",
    "_PrivateScorer",
}
_DESCRIPTORS = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
_NAMES_OF_CLASSES = {
    "__annotations__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__dict__",
    "__weakref__",
    "_abc_impl",
}


def carries(thing: object, paid: _Paid, lengths: Lengths | None = None) -> str:
    """What an object may carry of rows that were read elsewhere, in words; "" if nothing.

    Parameters
    ----------
    thing : object
        An estimator, whose parameters are looked at, or any parameter.
    paid : callable
        Whether what a frozen estimator learned is private.
    lengths : Lengths, optional
        Of lists that could describe columns or categories.
    """
    known = _Known(paid, lengths or Lengths())
    return next(_carried(thing, known, {}, cloned=True), "")


def shared_generators(thing: object, copied: object) -> list[Any]:
    """Generators that an object and its deep copy have in common.

    They belong to classes, modules, and closures and defaults of functions.
    """
    own, others = _generators(thing), _generators(copied)
    return [generator for place, generator in own.items() if place in others]


def _generators(thing: object) -> dict[int, Any]:
    seen: _Seen = {}
    for _ in _carried(thing, _Known(lambda model: True, Lengths()), seen):
        pass
    return {place: each for place, each in seen.items() if is_generator(each)}


def _carried(thing: Any, known: _Known, seen: _Seen, *, cloned: bool = False) -> Iterator[str]:
    """As `carries`, one by one; ``cloned`` where a fitted estimator is not used as it is."""
    kind = type(thing)
    if isinstance(thing, _PLAIN) and is_library(kind.__module__):
        if _is_long(thing):
            yield f"a table (in a long {kind.__name__})"
        return
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    # The order matters: containers and estimators first, then functions, and last whatever else
    # there is.
    if _is_container(thing):
        yield from _too_long(thing, known.lengths)
        yield from _in_container(thing, known, seen, cloned)
    elif isinstance(thing, FrozenEstimator):
        if not known.paid(thing.estimator):
            inner = call_name(type(thing.estimator))
            yield f"what a frozen {inner} learned, from rows that are not known here"
    elif hasattr(thing, "get_params") and not isinstance(thing, type):
        if not cloned and _is_fitted(thing) and not known.paid(thing):
            yield f"what a fitted {call_name(kind)} learned, from rows that are not known here"
        yield from _in_estimator(thing, known, seen)
    elif isinstance(thing, _CODE):
        yield from _in_code(thing, known, seen)
    else:
        yield from _in_object(thing, known, seen)


def _each(things: Iterable[Any], known: _Known, seen: _Seen, cloned: bool = False) -> Iterator[str]:
    """As `_carried`, for several things."""
    for thing in things:
        yield from _carried(thing, known, seen, cloned=cloned)


# --- containers


def _is_long(thing: Any) -> bool:
    if isinstance(thing, int):
        return thing.bit_length() > 8 * _LONGEST_TEXT
    return isinstance(thing, str | bytes) and len(thing) > _LONGEST_TEXT


def _too_long(thing: Any, lengths: Lengths) -> Iterator[str]:
    """In words: a list that is longer than what it could describe, and so a table."""
    if not isinstance(thing, list | tuple | set | frozenset | dict | np.ndarray):
        return
    # The method of dict itself: a subclass may hide its items.
    if isinstance(thing, dict):
        length = dict.__len__(thing)
    else:
        length = thing.size if isinstance(thing, np.ndarray) else len(thing)
    if length > lengths.one or _n_values(thing, lengths.all) > lengths.all:
        yield f"a table ({kind_of(thing)} longer than any list of columns or categories)"


def _n_values(thing: Any, most: int) -> int:
    """Number of values in nested lists and mappings; more than ``most`` are not counted."""
    left, count = [thing], 0
    seen: _Seen = {}
    while left and count <= most:
        one = left.pop()
        if id(one) in seen:
            continue
        if isinstance(one, dict | list | tuple | set | frozenset):
            seen[id(one)] = one
        if isinstance(one, dict):
            left += dict.values(one)
        elif isinstance(one, list | tuple | set | frozenset):
            left += one
        elif isinstance(one, np.ndarray):
            count += one.size
            continue
        count += 1
    return count


def _is_container(thing: Any) -> bool:
    kind = type(thing)
    return not isinstance(thing, type) and (
        isinstance(thing, slice | enum.Enum | np.ndarray)
        or kind in (list, tuple, set, frozenset)
        or (isinstance(thing, dict) and is_library(kind.__module__))
    )


def _in_container(thing: Any, known: _Known, seen: _Seen, cloned: bool) -> Iterator[str]:
    if isinstance(thing, slice):
        yield from _each([thing.start, thing.stop, thing.step], known, seen)
    elif isinstance(thing, enum.Enum):
        yield from _carried(thing.value, known, seen)
    elif isinstance(thing, dict):
        # The method of dict itself: a subclass may hide its items.
        for pair in dict.items(thing):
            yield from _carried(pair, known, seen)
        yield from _carried(getattr(thing, "default_factory", None), known, seen)
    elif isinstance(thing, np.ndarray):
        if thing.ndim > 1 or thing.dtype.kind == "V":
            yield "a table (an array)"
        elif thing.dtype.kind == "O":
            yield from _carried(thing.tolist(), known, seen)
    else:
        yield from _each(thing, known, seen, cloned)


# --- estimators and classes


def _in_estimator(estimator: Any, known: _Known, seen: _Seen) -> Iterator[str]:
    kind = type(estimator)
    ours = is_library(kind.__module__) and is_held(kind)
    if replaced(estimator):
        yield f"a {replaced(estimator)} of its own, on the instance"
    if not ours and kind.__sklearn_clone__ is not BaseEstimator.__sklearn_clone__:
        yield f"what a {call_name(kind)} keeps when it is cloned"
    yield from _in_class(kind, known, seen)
    try:
        params = estimator.get_params(deep=False)
    except Exception:  # a user's estimator may raise anything
        yield f"parameters of {call_name(kind)} that cannot be listed"
        return
    if params.get("warm_start") and _is_fitted(estimator):
        yield f"what {call_name(kind)} learned before, since warm_start goes on from it"
    # Libraries fit clones of what they hold, unless they are told that it was fitted.
    cloned = ours and not params.get("prefit") and not is_word(params.get("cv"), "prefit")
    yield from _each(params.values(), known, seen, cloned)
    if not ours:
        more = [value for name, value in vars(estimator).items() if not name.endswith("_")]
        yield from _each(more, known, seen)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
        return bool(get_tags(estimator).requires_fit)
    except Exception:  # not fitted; or a user's estimator, which may raise anything
        return False


def _in_class(kind: type, known: _Known, seen: _Seen) -> Iterator[str]:
    """Methods and attributes of a class of the user's, and of its bases."""
    for base in kind.__mro__:
        if is_library(base.__module__) and is_held(base):
            continue
        seen[id(base)] = base
        for name, value in vars(base).items():
            if isinstance(value, property):
                value = (value.fget, value.fset)
            if isinstance(value, staticmethod | classmethod):
                value = value.__func__
            if isinstance(value, functools.cached_property):
                value = value.func
            if name not in _NAMES_OF_CLASSES:
                yield from _carried(value, known, seen)


# --- functions, classes and modules

_CODE = (
    type,
    functools.partial,
    types.MethodType,
    types.FunctionType,
    *_DESCRIPTORS,
    types.BuiltinFunctionType,
    types.ModuleType,
    np.ufunc,
)


def _in_code(thing: Any, known: _Known, seen: _Seen) -> Iterator[str]:
    if isinstance(thing, type):
        ours = is_library(type(thing).__module__) and is_library(thing.__module__)
        if (
            ours
            and is_held(thing)
            and (not is_pure(thing.__module__) or _is_reader(thing.__name__))
        ):
            yield f"what {call_name(thing)} finds"
        yield from _in_class(thing, known, seen)
    elif isinstance(thing, functools.partial):
        yield from _each([thing.func, thing.args, thing.keywords], known, seen)
    elif isinstance(thing, types.MethodType):
        yield from _each([thing.__self__, thing.__func__], known, seen)
    elif isinstance(thing, types.FunctionType):
        yield from _in_function(thing, known, seen)
    elif isinstance(thing, types.BuiltinFunctionType):
        if not isinstance(thing.__self__, types.ModuleType | type | None):
            yield from _carried(thing.__self__, known, seen)
        elif not is_pure(thing.__module__ or "builtins"):
            yield f"what {call_name(thing)} finds"
    elif isinstance(thing, types.ModuleType):
        if is_library(thing.__name__) and not is_pure(thing.__name__):
            yield f"the module {thing.__name__}, which may hold anything"
        elif not is_pure(thing.__name__):
            held = [value for name, value in vars(thing).items() if name[:2] != "__"]
            yield from _each(held, known, seen)
    elif isinstance(thing, np.ufunc):
        places = [sys.modules.get(place) for place in ("numpy", "scipy.special")]
        if not any(getattr(place, thing.__name__, None) is thing for place in places):
            yield f"the function {thing.__name__}, which may hold anything"


def _in_function(func: types.FunctionType, known: _Known, seen: _Seen) -> Iterator[str]:
    """Defaults, closure and global variables of a function of the user's."""
    if is_library(func.__module__) and is_held(func):
        if not is_pure(func.__module__) or _is_reader(func.__name__):
            yield f"what {call_name(func)} finds"
        return
    yield from _finds(func)
    for value in _named_objects(func):
        for what in _carried(value, known, seen):
            yield f"{what}, in {call_name(func)}" if ", in " not in what else what


# --- all other objects


def _in_object(thing: Any, known: _Known, seen: _Seen) -> Iterator[str]:
    kind, top = type(thing), library(thing)
    if top == "skdp" and getattr(thing, "inferred", False):
        yield "a domain that was inferred from records"
    elif top == "skdp" and call_name(kind) in _PUBLIC_KINDS:
        return
    elif isinstance(thing, logging.Logger) and top == "logging":
        usual = vars(logging.Logger(""))
        more = [value for name, value in vars(thing).items() if name not in (*usual, "manager")]
        yield from _each(more, known, seen)
    elif (top, call_name(kind)) == ("joblib", "Memory"):
        return
    elif kind.__module__.startswith("numpy.random"):
        return
    elif hasattr(thing, "shape"):
        yield f"a table ({call_name(kind)})"
    elif top in (TRUSTED | {"joblib"}) - {"skdp"} and hasattr(thing, "__dict__"):
        # Kernels, splitters, scorers, distributions, cached functions.
        yield from _each(vars(thing).values(), known, seen)
    elif not (is_pure(getattr(thing, "__module__", None)) and is_held(thing)):
        yield f"an object of {call_name(kind)}, which may hold anything"
