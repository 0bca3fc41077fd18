"""What the code of a function refers to: globals, attributes, imports. It is not called."""

from __future__ import annotations

import dis
import re
import types
from collections.abc import Iterator

from .origin import call_name, is_pure

__all__ = ["finds", "is_reader", "named_objects"]

# Names through which a function reads files, or finds objects that it does not name.
_READERS = re.compile(
    r"^(read_|scan_|fetch_|load(s|txt|_.*)?$|open$|open_|fromfile$|genfromtxt$|memmap$"
    r"|ExcelFile$|HDFStore$|DataSource$|sys$|os$|modules$|_getframe$|[fgc][ir]?_(frame|globals)$"
    r"|f_(back|locals|builtins)$|tb_frame$|cell_contents$"
    r"|__(dict|globals|builtins|closure|subclasses|loader|spec)__$)"
)
_FINDERS = {"open", "eval", "exec", "compile", "globals", "locals", "vars", "__import__", "input"}


def is_reader(name: str) -> bool:
    """Whether a function of this name reads files, or finds objects that it is not given."""
    return _READERS.match(name) is not None


def named_objects(func: types.FunctionType) -> list[object]:
    """The objects that a function can reach: defaults, attributes, closure, global variables."""
    reached: list[object] = [func.__defaults__, func.__kwdefaults__, func.__dict__]
    reached += [cell.cell_contents for cell in func.__closure__ or () if _is_filled(cell)]
    known = func.__globals__
    return reached + [known[name] for name in _global_names(func.__code__) if name in known]


def finds(func: types.FunctionType) -> Iterator[str]:
    """In words: how a function may find data that none of its `named_objects` holds."""
    for name in _global_names(func.__code__):
        if name not in func.__globals__ and name in _FINDERS:
            yield f"whatever {name} finds, in {call_name(func)}"
    names = _attribute_names(func.__code__)
    if "getattr" in _global_names(func.__code__):
        names |= {(text, False) for one in _codes(func.__code__) for text in _texts(one)}
    for name, imports in names:
        if is_reader(name) or (imports and not is_pure(name)):
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


def _texts(code: types.CodeType) -> list[str]:
    return [constant for constant in code.co_consts if isinstance(constant, str)]


def _attribute_names(code: types.CodeType) -> set[tuple[str, bool]]:
    """Attributes that a function names, and whether it imports them."""
    kinds = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_NAME", "IMPORT_FROM")
    return {
        (str(step.argval), step.opname == "IMPORT_NAME")
        for one in _codes(code)
        for step in dis.get_instructions(one)
        if step.opname in kinds
    }
