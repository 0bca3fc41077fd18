"""Features and labels of models, matched with the domain by the schema; weights refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .._validation import CodeArray, FloatArray, IntArray, free_name, some
from ..domain import Attribute, Categorical, Domain, Numeric
from ..exceptions import DomainError
from ..tables import Frame, LazyRows, as_array, as_frame, read_rows, select_columns
from .estimator import PrivateEstimator, full_domain, match_rows, without_id


def require_y(estimator: Any, y: Any, hint: str = "") -> None:
    """Raise what scikit-learn expects where labels are needed and not given."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None{hint}."
        )


def feature_ranges(domain: Any, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of the public range of each feature, for models of real numbers.

    Parameters
    ----------
    domain : (low, high), Numeric, list of these, mapping of names to these, or Domain
        One for all features, or one for each. A pair is always a range of real numbers.
    names : sequence of str
        Of the features.

    Raises
    ------
    DomainError
        If ranges are missing, are no ranges of numbers, or are those of other features.
    """
    if domain is None:
        raise DomainError(
            "domain is required: the public range of the features, for example domain=(0, 100), or "
            "a range for each by name, {'age': (0, 80), 'height': (60, 200)}. Reading it from the "
            "data would leak them."
        )
    parts: Any = dict.fromkeys(names, domain)
    if isinstance(domain, list):
        if len(domain) != len(names):
            raise DomainError(
                f"The list domain= has {len(domain)} ranges, but there are {len(names)} features. "
                "Give a pair (low, high) for each, or a tuple (low, high) for all."
            )
        parts = dict(zip(names, domain, strict=True))
    elif isinstance(domain, Domain | Mapping):
        parts = dict(domain.items())
    lacking = [name for name in names if name not in parts]
    unknown = [name for name in parts if name not in set(names)]
    if lacking or unknown:
        raise DomainError(
            "domain must have one range for each column of X: "
            f"missing are {lacking!r}, not in X are {unknown!r}."
        )
    low, high = np.array([range_of(parts[name], name) for name in names]).reshape(-1, 2).T
    return low.copy(), high.copy()


def range_of(given: Any, name: str = "") -> tuple[Any, Any]:
    """Both ends of a public range of real numbers, declared as a pair or as a `Numeric`."""
    of = f" of {name!r}" if name else ""
    if isinstance(given, Numeric):
        if not given.summable or given.special:
            raise DomainError(
                f"The domain{of} must be a range of numbers, got {given!r}. Declare it with "
                "lower and upper and without special values, and make these values missing in the "
                "table; dates become numbers first, such as days since a public day."
            )
        return given.lower, given.upper
    try:
        low, high = given
        ends = float(low), float(high)
    except (TypeError, ValueError, OverflowError):
        raise DomainError(
            f"The domain{of} must be a pair (low, high) of numbers, got {given!r}. Categories are "
            "encoded as numbers with a public range first, or left out."
        ) from None
    if not (all(map(math.isfinite, ends)) and ends[0] < ends[1]):
        raise DomainError(f"The domain{of} must be finite with low < high, got {given!r}.")
    return low, high


def declare_label(
    domain: Any, rows: Frame | LazyRows, target: str | None, classes: Any
) -> tuple[Any, str | None]:
    """Declare the label in the domain where the shorthand ``classes=`` does so.

    Parameters
    ----------
    domain, target
        As given to the estimator.
    rows : Frame or LazyRows
    classes : Attribute, array-like or None
        Declaration of the label.

    Returns
    -------
    domain, target
        ``domain`` with a column for the label, and that column's name; unchanged where
        ``classes`` is None.

    Raises
    ------
    ValueError
        If both ``target`` and ``classes`` are given.
    """
    if classes is None:
        return domain, target
    if target is not None:
        raise ValueError(
            f"The label is declared twice, as target={target!r} and by classes= or target_range=. "
            "Give target= if the domain has a column for it, the other if it has none, and once."
        )
    domain = full_domain(domain, rows)
    label = free_name("target", domain.columns)
    attribute = classes if isinstance(classes, Attribute) else Categorical(list(classes))
    return domain.with_attribute(label, attribute), label


def declared_rows(
    X: Any, domain: Domain, features: Sequence[str], label: str | None
) -> dict[str, Any]:
    """Columns of new rows that a model was trained on, as `fit` reads them."""
    rows = _named_features(as_frame(X), domain, features, label)
    return {name: column.declared(domain[name]) for name, column in rows.columns.items()}


def _named_features(rows: Frame, domain: Domain, features: Sequence[str], label: Any) -> Frame:
    """Columns of new rows that a model was trained on, under the names of the domain."""
    rows = domain.with_names(rows, [label])
    if lacking := [name for name in features if name not in rows.names]:
        raise DomainError(f"The rows lack {some(lacking)}, which the model was trained on.")
    return rows.select(features)


# --- what scikit-learn's models have and private ones have not, each with what to do instead

_WEIGHTS = (
    "the noise hides records of weight 1, and a record of weight w would cost w times epsilon"
)
_REFUSED = {
    "class_weight": f"{_WEIGHTS}. To shift the balance of classes, fit without it and move the "
    "threshold of predict_proba.",
    "sample_weight": f"{_WEIGHTS}. Fit without it; to leave rows out, drop them by a rule that "
    "looks at one row at a time.",
    "warm_start": "every fit pays for what it releases, and none can go on from another. Make one "
    "fit with all of epsilon.",
}


def _refuse(place: str, params: Iterable[str]) -> None:
    """Refuse parameters that a private model cannot have.

    Raises
    ------
    TypeError
        With the reason and the remedy, if one of them is known.
    """
    for name in params:
        if name in _REFUSED:
            raise TypeError(f"{place} refuses {name}: {_REFUSED[name]}")


def refuse_beside_rows(name: str, fit_params: Iterable[str]) -> None:
    """Refuse what `fit` is given besides rows and labels.

    Raises
    ------
    TypeError
        If it is given anything.
    """
    _refuse(f"{name}.fit", fit_params)
    if fit_params:
        raise TypeError(f"{name}.fit takes X and y, got {sorted(fit_params)} too.")


class RefusesWeights:
    """Constructors of subclasses say why there are no weights and no warm start."""

    def __new__(cls, *args: Any, **params: Any) -> Any:
        """Look at the names first."""
        _refuse(cls.__name__, params)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Any:
        """Set parameters, by name.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self
        """
        _refuse(type(self).__name__, params)
        return super().set_params(**params)  # type: ignore[misc]


# ------------------------------------------------------------------------------------------------
# The label of a model: rows matched with it, its declared values, and rows without its column.


def match_labelled(
    estimator: PrivateEstimator,
    X: Any,
    y: Any,
    fit_params: Iterable[str],
    declared: Any,
    kind: str,
    parameter: str,
) -> tuple[Any, Domain, str, Any]:
    """Match rows and labels to the columns of the domain; checks the schema only.

    Parameters
    ----------
    estimator : PrivateEstimator
        With the parameters ``domain`` and ``target``.
    X, y, fit_params
        What ``fit`` was given.
    declared : Attribute, array-like or None
        Declaration of the label by the parameter that may do so.
    kind, parameter : str
        What this parameter holds, and its name, for errors: "the list of", "classes=".

    Returns
    -------
    rows : Frame or LazyRows
    domain : Domain
        With a column for the label, and at least one other.
    target : str
        Its name.
    features : array-like or frame
        ``X`` without the label.

    Raises
    ------
    DomainError, TypeError, ValueError
        If no label is declared, or the schema does not fit.
    """
    refuse_beside_rows(type(estimator).__name__, fit_params)
    read, privacy_id = read_rows(X), estimator._privacy_id()
    domain, target = declare_label(
        estimator.domain, without_id(read, privacy_id), estimator.target, declared
    )
    if target is None:
        raise DomainError(
            "No column is declared as the label: name a column of the domain in target=, or "
            f"give {kind} {parameter}."
        )
    if declared is not None:
        require_y(estimator, y, f": {parameter} declares a label that X has no column for")
    rows, domain = match_rows(
        read, y, domain, target, lazy=True, privacy_id=privacy_id, of=estimator
    )
    if domain.names == (target,):
        raise DomainError(
            f"The domain has no column except the label {target!r}. Declare at least one predictor."
        )
    if y is None and isinstance(read, Frame):
        X = without_label(X, read, domain, target)
    return rows, domain, target, X


def feature_codes(
    estimator: PrivateEstimator, X: Any, names: Sequence[str], ignored: str | None = None
) -> CodeArray:
    """Code of each row to predict in some columns; -1 if the domain has none.

    Parameters
    ----------
    estimator : PrivateEstimator
        Fitted, with ``domain_`` and ``target_``.
    X : array-like or frame
    names : sequence of str
        The columns.
    ignored : str, default=None
        A further column that is left out where it is there.

    Raises
    ------
    DomainError
        If the rows lack a column.
    """
    domain, target = estimator.domain_, estimator.target_
    rows = as_frame(X)
    for name in (target, ignored):
        if name is not None and name in rows.named:
            X = without_label(X, rows, domain, name)
            rows = rows.select([each for each in rows.names if each != name])
    validate_data(estimator, X, reset=False, skip_check_array=True)
    rows = _named_features(rows, domain, names, target)
    return domain.plain(names).encode(rows) if names else np.zeros((len(rows), 0), dtype=np.int32)


def label_classes(domain: Domain, target: str) -> tuple[Any, IntArray]:
    """Declared labels, sorted, and the position among them of each code."""
    attribute = domain[target]
    if isinstance(attribute, Categorical):
        classes, class_of = np.unique(np.array(attribute.categories), return_inverse=True)
        return classes, class_of.astype(np.int64)
    if attribute.summable and attribute.one_each:
        values = np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64)
        values = np.append(values, np.array(attribute.special, dtype=np.int64))
        classes, class_of = np.unique(values, return_inverse=True)
        return classes, class_of.astype(np.int64)
    kind = "Numeric of intervals" if attribute.summable else type(attribute).__name__
    raise DomainError(
        f"The label {target!r} is declared as a {kind}. A classifier needs a "
        "Categorical, or a Numeric with integer=True and one bin for each integer."
    )


def without_label(X: Any, rows: Frame, domain: Domain, target: str) -> Any:
    """The table ``X``, of which ``rows`` was read, without the column of the label."""
    if rows.n_unnamed:
        names = domain.names_for(rows.n_unnamed) or domain.names
        return np.delete(as_array(X), names.index(target), axis=1)
    return select_columns(X, [name for name in rows.names if name != target])
