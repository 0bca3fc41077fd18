"""Which transformers treat each row independently and silently: rules by class and parameters.

A step before a private one is harmless if it transforms each row independently, whatever its values
are, without learning, raising or warning. Only classes and functions with a rule here pass. A rule
also says what is known about the cells afterwards, which the rules of later steps rely on.

Almost every foreign step raises on some value in columns of objects, nullable columns, or those of
Arrow, and the type of a column may itself depend on one record, where a library infers it. So each
rule holds for one type of column only: float64, which `as_numbers` makes of any table, or Python
text, which `as_texts` makes; on columns as they came a step is unknown. The proof has two parts:
these two functions never raise and read every cell by itself, and every other rule is silent on one
type (in an array, or in a frame, which `set_output` may ask for). Rules for the types that a table
may come with would need a proof for each pair of a step and a type, again for each version of a
library, and the report does not see the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
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

from ..rows import as_numbers, as_texts
from .carried import carries
from .origin import call_name
from .steps import FIXED, NUMBERS, TAME, TEXTS, Range, Refusal

_ANY = Range(kind=NUMBERS)
# Zeros and ones of another type than float64.
_BITS = Range(0, 1, False, FIXED)
_LEARNS = Refusal(
    "is fitted to the true rows and keeps what it learned, exactly.",
    "Put it behind the release: inside PrivateClassifier, or on synthetic rows.",
    alone=False,
    learns=True,
)
AS_THEY_CAME = Refusal(
    "may raise on one value, or let it decide the type of a column, where the columns are as they "
    "came: nullable, of objects, of Arrow.",
    "Put FunctionTransformer(as_numbers) in front (for encoders of text as_texts), both of "
    "skdp.preprocessing.",
    alone=False,
)
_BEHIND = "Put it behind the release."
_ONE_ROW = Refusal("raises where there is one row only.", _BEHIND)
_NO_TEXT = Refusal(
    "raises where a text is missing, which reveals something about one record.", _BEHIND
)
_CLIPPED = 'FunctionTransformer(np.clip, kw_args={"a_min": ..., "a_max": ...})'


def _raises(where: str, fill: bool) -> Refusal:
    """A step whose error or warning would reveal such a value without a charge."""
    what = f"{_CLIPPED} and FunctionTransformer(np.nan_to_num)" if fill else _CLIPPED
    return Refusal(
        f"raises or warns where {where}, which reveals something about one record.",
        f"Put {what} in front, or put it behind the release.",
    )


_NOT_FINITE = _raises("a number is missing or infinite", True)
_INFINITE = _raises("a number is infinite", False)
_NAN = _NOT_FINITE._replace(remedy="missing_values=np.nan.")


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_declared(categories: Any, kind: type) -> bool:
    """Whether categories are lists of text, or of numbers: exact types, which compare as usual."""

    def plain(value: Any) -> bool:
        return type(value) in (str, np.str_) if kind is str else is_number(value)

    lists = (list, tuple, np.ndarray)
    return type(categories) in lists and all(
        type(part) in lists and all(map(plain, part)) for part in categories
    )


def _encoder(encoder: OneHotEncoder | OrdinalEncoder, given: Range) -> Range | Refusal:
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
    if one_hot and encoder.sparse_output is not False:
        return Refusal(
            "hands on sparse columns, which are not known to be handled silently.",
            "sparse_output=False.",
        )
    coded = True if one_hot else _is_fill(encoder.unknown_value)
    if not coded or not (encoder.dtype is float or encoder.dtype is np.float64):
        return _odd_parameter("unknown_value= or dtype=")
    if _is_declared(encoder.categories, str):
        kind = TEXTS
    elif _is_declared(encoder.categories, float):
        kind = NUMBERS
    else:
        return _odd_parameter("categories=")
    # Columns of text are not asked for infinities; columns of numbers are.
    if kind == NUMBERS and not given.bounded:
        return _INFINITE
    if given.kind not in (kind, TAME):
        return AS_THEY_CAME
    return Range(0, 1, False, NUMBERS) if one_hot else _ANY


def _imputer(imputer: SimpleImputer, given: Range) -> Range | Refusal:
    if imputer.strategy != "constant" or imputer.add_indicator:
        return _LEARNS
    if not imputer.keep_empty_features:
        return Refusal(
            "drops a column in which every value is missing, or warns about it.",
            "keep_empty_features=True.",
        )
    if not (imputer.fill_value is None or _is_fill(imputer.fill_value)):
        return _odd_parameter("fill_value=")
    refused = _marked(imputer.missing_values, given)
    return replace(_ANY, missing=_is_nan(imputer.fill_value)) if refused is None else refused


def _marked(mark: object, given: Range) -> Refusal | None:
    """Why a search for cells that are marked as missing is refused; None if it is silent."""
    if not _is_fill(mark):
        return _odd_parameter("missing_values=")
    if not _is_nan(mark) and given.missing:
        return _NAN
    return None if given.bounded else _INFINITE


def _indicator(indicator: MissingIndicator, given: Range) -> Range | Refusal:
    if indicator.features != "all":
        return _LEARNS
    if indicator.sparse is True:
        return Refusal("hands on sparse columns.", "sparse=False.")
    refused = _marked(indicator.missing_values, given)
    return _BITS if refused is None else refused


def _splines(splines: SplineTransformer, given: Range) -> Refusal:
    return _LEARNS if isinstance(splines.knots, str) else _ONE_ROW


def _polynomial(features: PolynomialFeatures, given: Range) -> Range | Refusal:
    degree = features.degree
    several = degree if type(degree) is tuple else (degree,)
    if not several or not all(map(is_number, several)):
        return _odd_parameter("degree=")
    highest = int(max(several))
    largest = max(abs(given.low), abs(given.high), 1.0)
    if not given.finite or highest * math.log10(largest) > 30:
        return _raises("a number is missing, infinite or large", True)
    return _ANY


def _binarizer(binarizer: Binarizer, given: Range) -> Range | Refusal:
    if not is_number(binarizer.threshold):
        return _odd_parameter("threshold=")
    return Range(0, 1, False, NUMBERS) if given.finite else _NOT_FINITE


# Functions of one number that neither raise nor warn between two ends, nor where a number is
# missing. The result for a row does not depend on the number of rows.
# Sums and matrix products do not guarantee that in their last digit.
_EVERYWHERE = (-math.inf, math.inf)
UFUNCS: dict[Any, tuple[float, float]] = {
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


# These return bits.
_TESTS = (np.isfinite, np.isinf, np.isnan, np.signbit)
# By their exact types: NumPy hands whole arrays to the methods of a subclass.
_NUMBERS = {int, float, *(t for t in np.sctypeDict.values() if np.dtype(t).kind in "iuf")}


def is_number(value: Any) -> bool:
    """Whether a parameter is a finite number of Python or NumPy."""
    return type(value) in _NUMBERS and bool(-1e308 <= value <= 1e308)


def _is_fill(value: object) -> bool:
    """Whether a parameter is a finite number or NaN."""
    return is_number(value) or (type(value) in _NUMBERS and bool(value != value))


def _odd_parameter(name: str) -> Refusal:
    return Refusal(
        f"has a {name} of a type whose code is not known: it may do anything with the values.",
        "Plain numbers, texts and lists of them.",
        alone=False,
    )


def _apply(func: Any, options: dict[str, Any], given: Range) -> Range | Refusal:
    """What is known about every number after ``func``, or why nothing is known."""
    if func is None:
        return given
    if type(options) is not dict or not all(type(key) is str for key in options):
        return _calls(func)
    if func is as_numbers and not options:
        return _ANY
    if func is as_texts and not options:
        return Range(kind=TEXTS)
    # By identity: equality of functions can be anything.
    ends = next((ends for known, ends in UFUNCS.items() if known is func), None)
    if ends is not None and not options:
        if ends[0] <= given.low and given.high <= ends[1]:
            return _BITS if any(func is test for test in _TESTS) else _ANY
        return _raises(f"a number is not between {ends[0]:g} and {ends[1]:g}", False)
    after = None
    if all(value is None or is_number(value) for value in options.values()):
        rule = next((rule for known, rule in _OPTION_RULES if known is func), None)
        after = None if rule is None else rule(options, given)
    return _calls(func) if after is None else after


def _clip(options: dict[str, Any], given: Range) -> Range | None:
    if not set(options) <= {"a_min", "a_max", "min", "max"}:
        return None
    low, high = (options.get(f"a_{end}", options.get(end)) for end in ("min", "max"))
    low = -math.inf if low is None else float(low)
    high = math.inf if high is None else float(high)
    if low > high:
        return None
    low, high = (min(max(end, low), high) for end in (given.low, given.high))
    return Range(low, high, given.missing, NUMBERS)


def _fill(options: dict[str, Any], given: Range) -> Range | None:
    if not set(options) <= {"nan", "posinf", "neginf", "copy"}:
        return None
    fill = float(options.get("nan") or 0)
    if given.bounded:
        return Range(min(given.low, fill), max(given.high, fill), False, NUMBERS)
    return Range(missing=False, kind=NUMBERS)


def _round(options: dict[str, Any], given: Range) -> Range | Refusal | None:
    if not set(options) <= {"decimals"}:
        return None
    # Digits after the point are rounded by way of a product, which may overflow.
    if not options.get("decimals") or (given.bounded and abs(options["decimals"]) <= 30):
        return _ANY
    return _raises("a number is very large", False)


# Functions whose options matter; None where the options are not known.
_OPTION_RULES: list[tuple[Any, Callable[[dict[str, Any], Range], Range | Refusal | None]]] = [
    (np.clip, _clip),
    (np.nan_to_num, _fill),
    (np.round, _round),
    (np.around, _round),
]


def _calls(func: object) -> Refusal:
    return Refusal(
        f"calls {call_name(func)}, which may let a row depend on the others (their mean, their "
        "order, how many there are), raise on a value, or hold data.",
        "Take a function of NumPy that is known to treat each number independently (np.clip, "
        "np.log1p behind a clip), or apply it before the pipeline.",
        alone=False,
    )


def _never(estimator: object) -> bool:
    return False


def _function(transformer: FunctionTransformer, given: Range) -> Range | Refusal:
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
            "warns where the inverse does not give a row back, which depends on its values.",
            "check_inverse=False.",
        )
    if transformer.validate and not given.finite:
        return _NOT_FINITE._replace(remedy="validate=False.")
    return after


def _sums(transformer: Any, given: Range) -> Range | Refusal:
    if not given.finite:
        return _NOT_FINITE._replace(remedy=_BEHIND)
    return Refusal(
        "sums in an order that may depend on how many rows there are: the last digit of a row may "
        "depend on the others.",
        _BEHIND,
        alone=False,
    )


def _projection(projection: Any, given: Range) -> Range | Refusal:
    return _LEARNS if isinstance(projection.n_components, str) else _sums(projection, given)


def _kernel(sampler: RBFSampler, given: Range) -> Range | Refusal:
    return _LEARNS if sampler.gamma == "scale" else _sums(sampler, given)


# Transformers of scikit-learn that, under some parameters, learn nothing from the rows. All take
# for granted what any estimator does: a dense table with at least one row.
_RULES: dict[type, Refusal | Callable[[Any, Range], Range | Refusal]] = {
    Binarizer: _binarizer,
    FeatureHasher: _NO_TEXT,
    FunctionTransformer: _function,
    GaussianRandomProjection: _projection,
    HashingVectorizer: _NO_TEXT,
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
    """What is known about the numbers after a step that treats each row independently.

    Parameters
    ----------
    estimator : estimator
    given : Range
        What is known about the numbers before it.

    Returns
    -------
    Range, Refusal or None
        A refusal where the class is known, but these parameters are not safe; None where it is
        not known.
    """
    rule = _RULES.get(type(estimator))
    if rule is None:
        return None
    outcome = rule if isinstance(rule, Refusal) else rule(estimator, given)
    if isinstance(outcome, Refusal) or given.kind in (NUMBERS, TAME) or _takes_all(estimator):
        return outcome
    return AS_THEY_CAME


def _takes_all(estimator: Any) -> bool:
    """Whether a step with a rule needs no columns of numbers: it leaves all columns as they are,
    makes them plain itself, or has asked for text.
    """
    if isinstance(estimator, FunctionTransformer):
        # By identity: equality of functions can be anything.
        return any(estimator.func is func for func in (None, as_numbers, as_texts))
    return isinstance(estimator, OneHotEncoder | OrdinalEncoder)
