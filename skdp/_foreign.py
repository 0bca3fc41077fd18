"""The code of others: who wrote it; run on records so that no run can tell another anything.

Whether a user's code or a library raises, what its error says, and how much it draws from a
generator may depend on a record. So no run can tell another anything, either.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import os
import sys
import sysconfig
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import joblib
import numpy as np
from sklearn import config_context

from ._random import is_generator, shared_generators_kept

# --- who wrote an object


def library(thing: object) -> str:
    """The top-level package that defines an object's class, or "" where that cannot be verified.

    A class can name any module as its own. It counts as a library's only where that module holds
    it under its name. A subclass belongs to whoever wrote it; a class with a borrowed name belongs
    to no library.
    """
    kind = type(thing)
    return kind.__module__.partition(".")[0] if is_held(kind) else ""


def is_held(thing: object) -> bool:
    """Whether a class is found in its module under its own name."""
    found: object = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in getattr(thing, "__qualname__", "?").split("."):
        found = getattr(found, part, None)
    return found is thing


def replaced(thing: object) -> str:
    """The first method or property of the class that the instance overrides, or ""."""
    classes = [vars(kind) for kind in type(thing).__mro__]
    for name in getattr(thing, "__dict__", {}):
        held = next((names[name] for names in classes if name in names), None)
        # A cached property keeps its own value there.
        if hasattr(held, "__get__") and not isinstance(held, functools.cached_property):
            return name
    return ""


def is_installed(module: str | None) -> bool:
    """Whether a module is installed, as opposed to written by whoever runs this."""
    top = (module or "").partition(".")[0]
    if top == "skdp" or top in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return any(file.startswith(sysconfig.get_path(key) + os.sep) for key in ("purelib", "platlib"))


# --- runs kept apart


def shared_generators(thing: object, twin: object) -> list[Any]:
    """Generators that an object and its deep copy have in common.

    They belong to classes, modules, and closures, defaults and global variables of functions.
    """
    own, others = _generators(thing), _generators(twin)
    return [generator for place, generator in own.items() if place in others]


def _generators(thing: object) -> dict[int, Any]:
    """The generators that an object can reach without the code of libraries, by identity."""
    left, found = [thing], {}
    # The objects themselves are kept, so that no identity is used again.
    seen: dict[int, object] = {}
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if is_generator(one):
            found[id(one)] = one
        elif isinstance(one, types.FunctionType):
            if not is_installed(one.__module__):
                names = _names(one.__code__)
                left += [value for name, value in one.__globals__.items() if name in names]
            left += [one.__defaults__, one.__kwdefaults__, one.__closure__, one.__dict__]
        elif isinstance(one, type | types.ModuleType):
            place = one.__module__ if isinstance(one, type) else one.__name__
            left += [] if is_installed(place) else gc.get_referents(one)
        elif isinstance(one, np.ndarray):
            left += one.tolist() if one.dtype.kind == "O" else []
        else:
            left += gc.get_referents(one)
    return found


def _names(code: types.CodeType) -> set[str]:
    """All names in a function, and in the functions within it."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return {*code.co_names}.union(*map(_names, inner))


def copied(value: Any, name: str) -> Any:
    """A deep copy; refuses what has none, before anything is charged.

    Raises
    ------
    TypeError
        If `copy.deepcopy` fails.
    """
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise TypeError(
            f"{name} cannot be copied ({type(error).__name__}: {error}), but every run needs a "
            "copy of its own, so that no run can tell another anything. Leave out what holds open "
            "files, locks or connections."
        ) from error


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    """Put back filters of warnings and settings of NumPy and scikit-learn."""
    with warnings.catch_warnings(), np.errstate(), config_context():
        yield


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings, and errors made from them: both would depend on a value."""
    with settings_kept():
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        yield


@contextlib.contextmanager
def kept_apart(generators: Iterable[Any]) -> Iterator[Callable[[Iterable[int]], None]]:
    """Keep the generators of the process and others; joblib's work stays in this process.

    Worker processes live on after a run, with generators of their own that cannot be seeded from
    here, and what they print cannot be held back: threads take their place.

    Yields
    ------
    callable
        As in `shared_generators_kept`.
    """
    with shared_generators_kept(generators) as seed, joblib.parallel_config(backend="threading"):
        yield seed
