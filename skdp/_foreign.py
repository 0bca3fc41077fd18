"""What is known of objects that other libraries and users wrote.

It answers two questions. Does a step transform each row independently, whatever its values are,
without learning, raising or warning? And does an object contain information about rows that were
read elsewhere? Both answers come from lists of known objects, never from an object's own claims.
"""

from __future__ import annotations

import dis
import enum
import functools
import logging
import math
import numbers
import os
import pathlib
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

__all__ = ["Range", "Refusal", "call_name", "carries", "library", "replaced", "row_by_row"]


def library(thing: Any) -> str:
    """The top-level package that wrote an object's class, or "" where that cannot be seen.

    A class can name any module as its own. It counts as a library's only where that module holds
    it under its name, so that a subclass, or a class with a borrowed name, is nobody's.
    """
    kind = thing if isinstance(thing, type) else type(thing)
    return kind.__module__.partition(".")[0] if _is_held(kind) else ""


def _is_held(thing: Any) -> bool:
    """Whether a class or function is found in its module under its own name."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in getattr(thing, "__qualname__", "?").split("."):
        found = getattr(found, part, None)
    return found is thing


def replaced(thing: Any) -> str:
    """The first method or property of the class that the instance overrides, or ""."""
    classes = [vars(kind) for kind in type(thing).__mro__]
    for name in getattr(thing, "__dict__", {}):
        held = next((names[name] for names in classes if name in names), None)
        if hasattr(held, "__get__"):
            return name
    return ""


def call_name(func: Any) -> str:
    """How to call a function in a message."""
    return getattr(func, "__name__", None) or type(func).__name__


# --- steps that treat each row by itself


@dataclass(frozen=True)
class Range:
    """What the steps before have made sure of, for every number in the rows."""

    low: float = -math.inf
    high: float = math.inf
    missing: bool = True

    @property
    def bounded(self) -> bool:
        """Whether no number is infinite, nor so large that a few products of it overflow."""
        return max(abs(self.low), abs(self.high)) <= 1e30

    def joined(self, other: Range) -> Range:
        """What holds of columns of both."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Range(low, high, self.missing or other.missing)


class Refusal(NamedTuple):
    """Why a step is not known to transform each row independently, without errors or warnings.

    Attributes
    ----------
    why, remedy : str
    alone : bool
        Whether each row of its output still depends on the same input row only.
    learns : bool
        Whether it is known to learn from the rows.
    """

    why: str
    remedy: str
    alone: bool = True
    learns: bool = False


_ANY = Range()
_LEARNS = Refusal(
    "is fitted to the true rows and keeps what it learned, exactly.",
    "Put it behind the release: inside PrivateClassifier, or on synthetic rows.",
    alone=False,
    learns=True,
)
_CLIP = 'FunctionTransformer(np.clip, kw_args={"a_min": ..., "a_max": ...})'


def _raises(where: str, fill: bool) -> Refusal:
    """A step whose error or warning would reveal such a value without a charge."""
    what = f"{_CLIP} and FunctionTransformer(np.nan_to_num)" if fill else _CLIP
    return Refusal(
        f"raises or warns where {where}, which reveals something about one record.",
        f"Put {what} in front, or put it behind the release.",
    )


_NOT_FINITE = _raises("a number is missing or infinite", True)
_INFINITE = _raises("a number is infinite", False)
_NAN = _NOT_FINITE._replace(remedy="missing_values=np.nan.")


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _finite(given: Range) -> bool:
    return given.bounded and not given.missing


def _encoder(encoder: Any, given: Range) -> Range | Refusal:
    if isinstance(encoder.categories, str):
        return _LEARNS
    if encoder.min_frequency is not None or encoder.max_categories is not None:
        return _LEARNS
    # "warn" and drop= warn of unknown categories; "error" raises.
    one_hot = isinstance(encoder, OneHotEncoder)
    silent = ["ignore", "infrequent_if_exist"] if one_hot else ["use_encoded_value"]
    if encoder.handle_unknown not in silent or getattr(encoder, "drop", None) is not None:
        return Refusal(
            "raises or warns where a category is unknown, which reveals something about one "
            "record.",
            f"handle_unknown={silent[0]!r}, and no drop=.",
        )
    if callable(getattr(encoder, "feature_name_combiner", None)):
        return _calls(encoder.feature_name_combiner)
    text = all(isinstance(value, str) for part in encoder.categories for value in part)
    # Columns of text are not asked for infinities; columns of numbers are.
    if not text and not given.bounded:
        return _INFINITE
    return Range(0, 1, False) if one_hot else _ANY


def _imputer(imputer: Any, given: Range) -> Range | Refusal:
    if imputer.strategy != "constant" or imputer.add_indicator:
        return _LEARNS
    if not imputer.keep_empty_features:
        return Refusal(
            "drops, or warns of, a column in which every value is missing.",
            "keep_empty_features=True.",
        )
    if not _is_nan(imputer.missing_values) and given.missing:
        return _NAN
    # In text a missing cell (pandas.NA) raises, in numbers an infinity.
    return replace(_ANY, missing=_is_nan(imputer.fill_value)) if given.bounded else _INFINITE


def _indicator(indicator: Any, given: Range) -> Range | Refusal:
    if indicator.features != "all":
        return _LEARNS
    if not _is_nan(indicator.missing_values) and given.missing:
        return _NAN
    return Range(0, 1, False) if given.bounded else _INFINITE


def _splines(splines: Any, given: Range) -> Range | Refusal:
    if isinstance(splines.knots, str):
        return _LEARNS
    return Refusal("raises where there is one row only.", "Put it behind the release.")


def _polynomial(features: Any, given: Range) -> Range | Refusal:
    degree = features.degree
    degree = int(degree if isinstance(degree, numbers.Integral) else max(degree))
    largest = max(abs(given.low), abs(given.high), 1.0)
    if not _finite(given) or degree * math.log10(largest) > 30:
        return _raises("a number is missing, infinite or large", True)
    return _ANY


def _binarizer(binarizer: Any, given: Range) -> Range | Refusal:
    return Range(0, 1, False) if _finite(given) else _NOT_FINITE


# Functions of one number that neither raise nor warn between two ends, nor where a number is
# missing; narrow enough for 16 bits. A row's result does not depend on how many rows there are,
# which sums and matrix products do not promise in their last digit.
_EVERYWHERE = (-math.inf, math.inf)
_UFUNCS: dict[Any, tuple[float, float]] = {
    **dict.fromkeys(
        (
            np.absolute,
            np.arcsinh,
            np.arctan,
            np.cbrt,
            np.ceil,
            np.fabs,
            np.floor,
            np.isfinite,
            np.isinf,
            np.isnan,
            np.negative,
            np.positive,
            np.radians,
            np.rint,
            np.sign,
            np.signbit,
            np.tanh,
            np.trunc,
        ),
        _EVERYWHERE,
    ),
    np.sqrt: (0, math.inf),
    np.log1p: (-0.999, math.inf),
    np.log: (1e-4, math.inf),
    np.log2: (1e-4, math.inf),
    np.log10: (1e-4, math.inf),
    np.exp: (-math.inf, 10),
    np.expm1: (-math.inf, 10),
    np.square: (-100, 100),
}


def _is_number(value: Any) -> bool:
    plain = type(value) in (int, float) or isinstance(value, np.integer | np.floating)
    return plain and math.isfinite(value)


def _apply(func: Any, options: dict[str, Any], given: Range) -> Range | Refusal:
    """What holds after ``func`` of every number, or why that is not known."""
    if func is None:
        return given
    # By identity: equality of functions can be anything.
    if type(options) is not dict:
        return _calls(func)
    ends = next((ends for known, ends in _UFUNCS.items() if known is func), None)
    if ends is not None and not options:
        if ends[0] <= given.low and given.high <= ends[1]:
            return _ANY
        return _raises(f"a number is not between {ends[0]:g} and {ends[1]:g}", False)
    plain = all(value is None or _is_number(value) for value in options.values())
    if func is np.clip and plain and set(options) <= {"a_min", "a_max", "min", "max"}:
        low, high = (options.get(f"a_{end}", options.get(end)) for end in ("min", "max"))
        low = -math.inf if low is None else float(low)
        high = math.inf if high is None else float(high)
        if low <= high:
            low, high = (min(max(end, low), high) for end in (given.low, given.high))
            return Range(low, high, given.missing)
    if func is np.nan_to_num and plain and set(options) <= {"nan", "posinf", "neginf", "copy"}:
        fill = float(options.get("nan") or 0)
        if given.bounded:
            return Range(min(given.low, fill), max(given.high, fill), False)
        return Range(missing=False)
    if (func is np.round or func is np.around) and plain and set(options) <= {"decimals"}:
        # Digits after the point are rounded by way of a product, which may overflow.
        if not options.get("decimals") or (given.bounded and abs(options["decimals"]) <= 30):
            return _ANY
        return _raises("a number is very large", False)
    return _calls(func)


def _calls(func: Any) -> Refusal:
    return Refusal(
        f"calls {call_name(func)}, which may let a row depend on the others (their mean, their "
        "order, how many there are), raise on a value, or hold data.",
        "Take a function of NumPy that is known to treat each number independently (np.clip, "
        "np.log1p behind a clip), or apply it before the pipeline.",
        alone=False,
    )


def _function(transformer: Any, given: Range) -> Range | Refusal:
    func, inverse = transformer.func, transformer.inverse_func
    after = _apply(func, transformer.kw_args or {}, given)
    if isinstance(after, Refusal):
        return after
    names = transformer.feature_names_out
    for other in (inverse, None if names == "one-to-one" else names):
        if other is not None and (callable(other) and carries(other, _never)):
            return _calls(other)
    if callable(names) or carries(transformer.inv_kw_args, _never):
        return _calls(names)
    if transformer.check_inverse and func is not None and inverse is not None:
        return Refusal(
            "warns where the inverse does not give some row back: it looks at values.",
            "check_inverse=False.",
        )
    if transformer.validate and not _finite(given):
        return _NOT_FINITE._replace(remedy="validate=False.")
    return after


_Rule = Callable[[Any, Range], Range | Refusal]


def _hashing(hasher: Any, given: Range) -> Range | Refusal:
    return Refusal(
        "raises where a text is missing, which reveals something about one record.",
        "Put it behind the release.",
    )


def _sums(transformer: Any, given: Range) -> Range | Refusal:
    if not _finite(given):
        return _NOT_FINITE._replace(remedy="Put it behind the release.")
    return Refusal(
        "sums in an order that may depend on how many rows there are: the last digit of a row may "
        "depend on the others.",
        "Put it behind the release.",
        alone=False,
    )


def _projection(projection: Any, given: Range) -> Range | Refusal:
    return _LEARNS if isinstance(projection.n_components, str) else _sums(projection, given)


def _kernel(sampler: Any, given: Range) -> Range | Refusal:
    return _LEARNS if sampler.gamma == "scale" else _sums(sampler, given)


# Transformers of scikit-learn that, under some parameters, learn nothing from the rows. All take
# for granted what any estimator does: a table with at least a row, dense, whose columns of numbers
# are of a numeric type.
_RULES: dict[type, _Rule] = {
    Binarizer: _binarizer,
    FeatureHasher: _hashing,
    FunctionTransformer: _function,
    GaussianRandomProjection: _projection,
    HashingVectorizer: _hashing,
    MissingIndicator: _indicator,
    Normalizer: _sums,
    OneHotEncoder: _encoder,
    OrdinalEncoder: _encoder,
    PolynomialFeatures: _polynomial,
    RBFSampler: _kernel,
    SimpleImputer: _imputer,
    SparseRandomProjection: _projection,
    SplineTransformer: _splines,
}


def row_by_row(estimator: Any, given: Range) -> Range | Refusal | None:
    """What holds of the numbers behind a step that treats each row by itself, silently.

    Returns
    -------
    Range, Refusal or None
        A refusal where the class is known, but these parameters are not safe; None where it is
        not known.
    """
    rule = _RULES.get(type(estimator))
    return None if rule is None else rule(estimator, given)


# --- what an object brings along

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
# Names by which a function reads files, or finds what it does not name.
_READERS = re.compile(
    r"^(read_|scan_|fetch_|load(s|txt|_.*)?$|open$|open_|fromfile$|genfromtxt$|memmap$"
    r"|ExcelFile$|HDFStore$|DataSource$|sys$|os$|modules$|_getframe$|[fgc][ir]?_(frame|globals)$"
    r"|f_(back|locals|builtins)$|tb_frame$|cell_contents$"
    r"|__(dict|globals|builtins|closure|subclasses|loader|spec)__$)"
)
_FINDERS = {"open", "eval", "exec", "compile", "globals", "locals", "vars", "__import__", "input"}
_TRUSTED = {
    "catboost",
    "imblearn",
    "lightgbm",
    "numpy",
    "pandas",
    "polars",
    "scipy",
    "skdp",
    "sklearn",
    "xgboost",
}
# Modules of the standard library that reach nothing but their arguments.
_PURE = {
    "_collections",
    "_functools",
    "_operator",
    "_random",
    "_statistics",
    "_thread",
    "abc",
    "builtins",
    "cmath",
    "collections",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "itertools",
    "logging",
    "math",
    "numbers",
    "operator",
    "random",
    "re",
    "reprlib",
    "statistics",
    "string",
    "time",
    "typing",
    "unicodedata",
    "warnings",
}


def _never(estimator: Any) -> bool:
    return False


def carries(thing: Any, paid: Callable[[Any], bool]) -> str:
    """What an object may bring along of rows that were read elsewhere, in words; "" if nothing.

    Parameters
    ----------
    thing : object
        An estimator, whose parameters are looked at, or any parameter.
    paid : callable
        Whether what a frozen estimator learned is private.
    """
    return next(_carried(thing, paid, {}, cloned=True), "")


# Objects of skdp that hold declarations, or what was paid for.
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
_Paid = Callable[[Any], bool]
# By identity; the objects themselves, so that none goes and another gets its number.
_Seen = dict[int, Any]
_DESCRIPTORS = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def _carried(thing: Any, paid: _Paid, seen: _Seen, *, cloned: bool = False) -> Iterator[str]:
    """As `carries`, one by one; ``cloned`` where a fitted estimator is not used as it is."""
    kind = type(thing)
    if isinstance(thing, _PLAIN) and _is_library(kind.__module__):
        return
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, type):
        known = _is_library(kind.__module__) and _is_library(thing.__module__) and _is_held(thing)
        if known and (not _is_pure(thing.__module__) or _READERS.match(thing.__name__)):
            yield f"what {call_name(thing)} finds"
        yield from _class_carries(thing, paid, seen)
    elif isinstance(thing, slice):
        yield from _carried([thing.start, thing.stop, thing.step], paid, seen)
    elif isinstance(thing, enum.Enum):
        yield from _carried(thing.value, paid, seen)
    elif kind in (list, tuple, set, frozenset):
        for value in thing:
            yield from _carried(value, paid, seen, cloned=cloned)
    elif isinstance(thing, dict) and _is_library(kind.__module__):
        for pair in dict.items(thing):
            yield from _carried(pair, paid, seen)
        yield from _carried(getattr(thing, "default_factory", None), paid, seen)
    elif isinstance(thing, np.ndarray):
        if thing.ndim > 1 or thing.dtype.kind == "V":
            yield "a table (an array)"
        elif thing.dtype.kind == "O":
            yield from _carried(thing.tolist(), paid, seen)
    elif isinstance(thing, FrozenEstimator):
        if not paid(thing.estimator):
            inner = call_name(type(thing.estimator))
            yield f"what a frozen {inner} learned, from rows that are not known here"
    elif hasattr(thing, "get_params"):
        if not cloned and _is_fitted(thing) and not paid(thing):
            yield f"what a fitted {call_name(kind)} learned, from rows that are not known here"
        yield from _estimator_carries(thing, paid, seen)
    elif isinstance(thing, functools.partial):
        yield from _carried([thing.func, thing.args, thing.keywords], paid, seen)
    elif isinstance(thing, types.MethodType):
        yield from _carried([thing.__self__, thing.__func__], paid, seen)
    elif isinstance(thing, types.FunctionType):
        yield from _function_carries(thing, paid, seen)
    elif isinstance(thing, _DESCRIPTORS):
        return
    elif isinstance(thing, types.BuiltinFunctionType):
        if not isinstance(thing.__self__, types.ModuleType | type | None):
            yield from _carried(thing.__self__, paid, seen)
        elif not _is_pure(thing.__module__ or "builtins"):
            yield f"what {call_name(thing)} finds"
    elif isinstance(thing, types.ModuleType):
        if _is_library(thing.__name__) and not _is_pure(thing.__name__):
            yield f"the module {thing.__name__}, which may hold anything"
        elif not _is_pure(thing.__name__):
            held = {name: value for name, value in vars(thing).items() if name[:2] != "__"}
            yield from _carried(held, paid, seen)
    elif isinstance(thing, np.ufunc):
        places = [sys.modules.get(place) for place in ("numpy", "scipy.special")]
        if not any(getattr(place, thing.__name__, None) is thing for place in places):
            yield f"the function {thing.__name__}, which may hold anything"
    elif library(thing) == "skdp" and getattr(thing, "inferred", False):
        yield "a domain that was inferred from records"
    elif library(thing) == "skdp" and call_name(kind) in _PUBLIC_KINDS:
        return
    elif isinstance(thing, logging.Logger) and library(thing) == "logging":
        usual = vars(logging.Logger(""))
        more = [value for name, value in vars(thing).items() if name not in (*usual, "manager")]
        yield from _carried(more, paid, seen)
    elif (library(thing), call_name(kind)) == ("joblib", "Memory") or kind.__module__.startswith(
        "numpy.random"
    ):
        return
    elif hasattr(thing, "shape"):
        yield f"a table ({call_name(kind)})"
    elif library(thing) in (_TRUSTED | {"joblib"}) - {"skdp"} and hasattr(thing, "__dict__"):
        # Kernels, splitters, scorers, distributions, cached functions.
        yield from _carried(list(vars(thing).values()), paid, seen)
    elif not (_is_pure(getattr(thing, "__module__", None)) and _is_held(thing)):
        yield f"an object of {call_name(kind)}, which may hold anything"


def _is_pure(module: str | None) -> bool:
    """Whether functions of a module reach nothing but their arguments, files apart."""
    return (module or "").partition(".")[0] in _TRUSTED | _PURE


def _is_library(module: str | None) -> bool:
    """Whether a module is installed, as opposed to written by whoever runs this."""
    top = (module or "").partition(".")[0]
    if top in _TRUSTED or top in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return any(file.startswith(sysconfig.get_path(key) + os.sep) for key in ("purelib", "platlib"))


def _class_carries(kind: type, paid: _Paid, seen: _Seen) -> Iterator[str]:
    """Methods and attributes of a class of the user's, and of its bases."""
    for base in kind.__mro__:
        if _is_library(base.__module__) and _is_held(base):
            continue
        seen[id(base)] = base
        for name, value in vars(base).items():
            if isinstance(value, property):
                value = [value.fget, value.fset]
            if isinstance(value, staticmethod | classmethod):
                value = value.__func__
            if isinstance(value, functools.cached_property):
                value = value.func
            if name not in _NAMES_OF_CLASSES:
                yield from _carried(value, paid, seen)


_NAMES_OF_CLASSES = {
    "__annotations__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__dict__",
    "__weakref__",
    "_abc_impl",
}


def _estimator_carries(estimator: Any, paid: _Paid, seen: _Seen) -> Iterator[str]:
    kind = type(estimator)
    ours = _is_library(kind.__module__) and _is_held(kind)
    if replaced(estimator):
        yield f"a {replaced(estimator)} of its own, on the instance"
    if not ours and kind.__sklearn_clone__ is not BaseEstimator.__sklearn_clone__:
        yield f"what a {call_name(kind)} keeps when it is cloned"
    yield from _class_carries(kind, paid, seen)
    try:
        params = estimator.get_params(deep=False)
    except Exception:  # an estimator of somebody's
        yield f"parameters of {call_name(kind)} that cannot be listed"
        return
    if params.get("warm_start") and _is_fitted(estimator):
        yield f"what {call_name(kind)} learned before, since warm_start goes on from it"
    # Libraries fit clones of what they hold, unless they are told that it was fitted.
    cloned = ours and not params.get("prefit") and not _is_text(params.get("cv"), "prefit")
    yield from _carried(list(params.values()), paid, seen, cloned=cloned)
    if not ours:
        more = [value for name, value in vars(estimator).items() if not name.endswith("_")]
        yield from _carried(more, paid, seen)


def _is_text(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
        return bool(get_tags(estimator).requires_fit)
    except Exception:  # not fitted, or an estimator of somebody's
        return False


def _function_carries(func: types.FunctionType, paid: _Paid, seen: _Seen) -> Iterator[str]:
    """Defaults, closure and global variables of a function of the user's."""
    if _is_library(func.__module__) and _is_held(func):
        if not _is_pure(func.__module__) or _READERS.match(func.__name__):
            yield f"what {call_name(func)} finds"
        return
    reached = [func.__defaults__, func.__kwdefaults__, func.__dict__]
    reached += [cell.cell_contents for cell in func.__closure__ or () if _is_filled(cell)]
    for name in _global_names(func.__code__):
        if name in func.__globals__:
            reached.append(func.__globals__[name])
        elif name in _FINDERS:
            yield f"whatever {name} finds, in {call_name(func)}"
    names = _attribute_names(func.__code__)
    if "getattr" in _global_names(func.__code__):
        names |= {(text, False) for one in _codes(func.__code__) for text in _texts(one)}
    for name, imports in names:
        if _READERS.match(name) or (imports and not _is_pure(name)):
            yield f"what {call_name(func)} reads by {name}"
    for value in reached:
        for what in _carried(value, paid, seen):
            yield f"{what}, in {call_name(func)}" if ", in " not in what else what


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
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
