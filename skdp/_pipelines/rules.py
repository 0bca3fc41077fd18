"""Which transformers treat each row independently and silently: rules by class and parameters.

A step before a private one is harmless if it transforms each row independently, whatever its values
are, without learning, raising or warning. Only classes and functions with a rule here pass. A rule
also says what is known about the numbers afterwards, which the rules of later steps rely on.
"""

from __future__ import annotations

import math
import numbers
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

from .carried import carries
from .origin import call_name
from .steps import Range, Refusal

__all__ = ["row_by_row"]

_ANY = Range()
_LEARNS = Refusal(
    "is fitted to the true rows and keeps what it learned, exactly.",
    "Put it behind the release: inside PrivateClassifier, or on synthetic rows.",
    alone=False,
    learns=True,
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
    text = all(isinstance(value, str) for part in encoder.categories for value in part)
    # Columns of text are not asked for infinities; columns of numbers are.
    if not text and not given.bounded:
        return _INFINITE
    return Range(0, 1, False) if one_hot else _ANY


def _imputer(imputer: SimpleImputer, given: Range) -> Range | Refusal:
    if imputer.strategy != "constant" or imputer.add_indicator:
        return _LEARNS
    if not imputer.keep_empty_features:
        return Refusal(
            "drops a column in which every value is missing, or warns about it.",
            "keep_empty_features=True.",
        )
    if not _is_nan(imputer.missing_values) and given.missing:
        return _NAN
    # A missing cell (pandas.NA) raises in text, an infinity in numbers.
    return replace(_ANY, missing=_is_nan(imputer.fill_value)) if given.bounded else _INFINITE


def _indicator(indicator: MissingIndicator, given: Range) -> Range | Refusal:
    if indicator.features != "all":
        return _LEARNS
    if not _is_nan(indicator.missing_values) and given.missing:
        return _NAN
    return Range(0, 1, False) if given.bounded else _INFINITE


def _splines(splines: SplineTransformer, given: Range) -> Range | Refusal:
    if isinstance(splines.knots, str):
        return _LEARNS
    return Refusal("raises where there is one row only.", "Put it behind the release.")


def _polynomial(features: PolynomialFeatures, given: Range) -> Range | Refusal:
    degree = features.degree
    degree = int(degree if isinstance(degree, numbers.Integral) else max(degree))
    largest = max(abs(given.low), abs(given.high), 1.0)
    if not given.finite or degree * math.log10(largest) > 30:
        return _raises("a number is missing, infinite or large", True)
    return _ANY


def _binarizer(binarizer: Binarizer, given: Range) -> Range | Refusal:
    return Range(0, 1, False) if given.finite else _NOT_FINITE


# Functions of one number that neither raise nor warn between two ends, nor where a number is
# missing; narrow enough for 16 bits. The result for a row does not depend on the number of rows.
# Sums and matrix products do not guarantee that in their last digit.
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
    """What is known about every number after ``func``, or why nothing is known."""
    if func is None:
        return given
    if type(options) is not dict:
        return _calls(func)
    # By identity: equality of functions can be anything.
    ends = next((ends for known, ends in _UFUNCS.items() if known is func), None)
    if ends is not None and not options:
        if ends[0] <= given.low and given.high <= ends[1]:
            return _ANY
        return _raises(f"a number is not between {ends[0]:g} and {ends[1]:g}", False)
    after = None
    if all(value is None or _is_number(value) for value in options.values()):
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
    return Range(low, high, given.missing)


def _fill(options: dict[str, Any], given: Range) -> Range | None:
    if not set(options) <= {"nan", "posinf", "neginf", "copy"}:
        return None
    fill = float(options.get("nan") or 0)
    if given.bounded:
        return Range(min(given.low, fill), max(given.high, fill), False)
    return Range(missing=False)


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


def _hashing(hasher: FeatureHasher | HashingVectorizer, given: Range) -> Range | Refusal:
    return Refusal(
        "raises where a text is missing, which reveals something about one record.",
        "Put it behind the release.",
    )


def _sums(transformer: Any, given: Range) -> Range | Refusal:
    if not given.finite:
        return _NOT_FINITE._replace(remedy="Put it behind the release.")
    return Refusal(
        "sums in an order that may depend on how many rows there are: the last digit of a row may "
        "depend on the others.",
        "Put it behind the release.",
        alone=False,
    )


def _projection(projection: Any, given: Range) -> Range | Refusal:
    return _LEARNS if isinstance(projection.n_components, str) else _sums(projection, given)


def _kernel(sampler: RBFSampler, given: Range) -> Range | Refusal:
    return _LEARNS if sampler.gamma == "scale" else _sums(sampler, given)


# Transformers of scikit-learn that, under some parameters, learn nothing from the rows. All take
# for granted what any estimator does: a table with at least one row, dense, whose columns of
# numbers are of a numeric type.
_RULES: dict[type, Callable[[Any, Range], Range | Refusal]] = {
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
    return None if rule is None else rule(estimator, given)
