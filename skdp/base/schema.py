"""Rows that estimators are given, labels among them: matched with the domain by the schema."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .._keys import key_of
from .._random import caller_level
from .._validation import CodeArray, FloatArray, IntArray, free_name, some
from ..domain import Attribute, Categorical, Date, Datetime, Domain, Identifier, Numeric
from ..exceptions import DomainError
from ..release.page import TablePage
from ..release.result import of_records
from ..tables import Frame, LazyRows, as_array, as_frame, read_rows, select_columns
from .estimator import PrivateEstimator


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
            f"Both target={target!r} and classes= declare the label. Give target= where the "
            "domain has a column for it, classes= where it has none."
        )
    domain = full_domain(domain, rows)
    label = free_name("target", domain.columns)
    attribute = classes if isinstance(classes, Attribute) else Categorical(list(classes))
    return domain.with_attribute(label, attribute), label


def full_domain(domain: Any, rows: Frame | LazyRows) -> Domain:
    """The domain of all columns of ``rows``: one attribute may have been given for all."""
    if domain is None:
        raise DomainError(
            "domain is required: the public range or categories of every column, for example "
            "{'age': (0, 120), 'sex': ['F', 'M']}, or one pair (low, high) for "
            "all columns of an array. Reading it from the data would leak them. Give it by name, "
            "domain=...; the first argument is epsilon."
        )
    if isinstance(domain, Domain | Mapping):
        return domain if isinstance(domain, Domain) else Domain(domain)
    attributes = Domain.for_array(domain, len(rows.names)).attributes
    return Domain(dict(zip(rows.names, attributes, strict=True)))


def match_rows(
    X: Any,
    y: Any,
    domain: Any,
    target: str | None,
    *,
    lazy: bool = False,
    privacy_id: str | None = None,
    structure: bool = False,
    spare: bool = False,
    of: Any = None,
) -> tuple[Any, Domain]:
    """Match the columns of the rows, and the labels if there is a target, with the domain.

    Only the schema is checked: container, names, declared types. No value is read.

    Parameters
    ----------
    X, y, domain, target
        As given to the estimator.
    lazy : bool, default=False
        Whether lazy frames are accepted: by estimators that need counts only.
    privacy_id : str, default=None
        A further column, which identifies the person a row belongs to.
    structure : bool, default=False
        Whether the estimator honours structural zeros: combinations of values that rules of the
        domain forbid. If it does not, a domain with such rules is refused.
    spare : bool, default=False
        Whether columns that the domain does not declare are left out instead of refused.
    of : estimator, default=None
        The estimator, for that error and for the bins that it can use where they are "auto".

    Returns
    -------
    rows : Frame, or LazyRows for lazy frames
        With exactly the columns of the domain, and the unit.
    domain : Domain

    Raises
    ------
    DomainError
        If the schema does not fit, or the domain has rules that the estimator cannot honour.
    """
    rows: Any = read_rows(X) if lazy else as_frame(X)
    if privacy_id is not None:
        _check_id(rows, domain, privacy_id)
    domain = full_domain(domain, without_id(rows, privacy_id))
    domain = domain.resolved(getattr(of, "_most_bins", None))
    if not structure:
        _refuse_zeros(domain, of)
    if spare and not rows.n_unnamed:
        known = {*domain.columns, privacy_id}
        rows = rows.select([name for name in rows.names if name in known])
    _check_target(domain, target)
    labelled = target is not None and y is not None
    # Columns of an array are named by position; a label that is given separately is none of them.
    rows = domain.with_names(rows, [target] if labelled else [])
    if target is not None and y is not None:
        rows = rows.with_column(target, y)
        domain = _numbered(domain, target, rows.column(target))
    domain.check_schema(without_id(rows, privacy_id))
    rows = rows.select(rows.names)
    rows.privacy_id = privacy_id
    rows.dated = any(isinstance(each, Date | Datetime) for each in domain.attributes)
    return rows, domain


def _check_target(domain: Domain, target: str | None) -> None:
    """Refuse a label that is not measured."""
    if target is None or target in domain.names:
        return
    if target in domain:
        raise DomainError(
            f"target={target!r} follows from other columns, by "
            f"{domain.structure.derived[target]!r}: it is not measured, and there is nothing to "
            "learn. Name another target, or leave out the rule."
        )
    raise DomainError(
        f"target={target!r} is not a column of the domain, which has {list(domain.names)}."
    )


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


def _refuse_zeros(domain: Domain, of: Any) -> None:
    """Refuse rules that forbid values: a release that ignores them would break them."""
    if not domain.structure.zeros:
        return
    name = "This estimator" if of is None else type(of).__name__
    ruled = sorted({axis for axes in domain.structure.zeros for axis in axes})
    columns = ", ".join(repr(domain.names[axis]) for axis in ruled[:5])
    more = f" and {len(ruled) - 5} more columns" if len(ruled) > 5 else ""
    raise DomainError(
        f"{name} cannot honour the rules of the domain, which forbid some values of "
        f"{columns}{more}: its release would count and draw records that cannot exist. Use "
        "MarginalSynthesizer, which honours them; or a domain without these columns, "
        "domain.select([...]), or without rules, domain.without_structure(). Derived columns and "
        "identifiers are no obstacle."
    )


def _numbered(domain: Domain, target: str, column: Any) -> Domain:
    """The domain, with numbers for labels where ``y`` holds numbers and all labels are text.

    Meta-estimators of scikit-learn encode text labels as 0, 1, ... in their order before they fit
    the estimators inside, and decode what these predict. Only in arrays, as they pass them: other
    libraries choose types by the values. What is read is the type of ``y``.
    """
    attribute = domain[target]
    whole = column.library == "numpy" and column.dtype.startswith(("int", "uint", "bool"))
    words = isinstance(attribute, Categorical) and not any(
        isinstance(key_of(each), float) for each in attribute.categories
    )
    if not (whole and words):
        return domain
    if column.dtype == "bool" or domain.structure.rules or len(domain.columns) < len(domain):
        raise DomainError(
            f"y holds values of type {column.dtype}, but all declared labels are text. Give the "
            "labels as they are declared, or declare those that y has."
        )
    warnings.warn(
        f"y holds whole numbers and all declared labels are text: 0 to {attribute.n_values - 1} "
        "are taken as their positions in alphabetical order, as meta-estimators of scikit-learn "
        "(voting, stacking, bagging, one-vs-rest, "
        "cross_val_predict(method='predict_proba')) encode them; predictions are such numbers too.",
        UserWarning,
        stacklevel=caller_level(),
    )
    numbers = Categorical(range(attribute.n_values))
    return Domain({**dict(domain.items()), target: numbers})


def without_id(rows: Any, privacy_id: str | None) -> Any:
    """Rows without the column that identifies the person a row belongs to."""
    return (
        rows
        if privacy_id is None
        else rows.select([name for name in rows.names if name != privacy_id])
    )


def _check_id(rows: Any, domain: Any, privacy_id: Any) -> None:
    """Refuse a column that cannot identify persons; by the schema alone."""
    if privacy_id not in rows.named:
        raise DomainError(
            f"privacy_id={privacy_id!r} is not a column of the data; it names the column that "
            "identifies the person a row belongs to. Arrays have no names: give a frame."
        )
    identifies = isinstance(domain, Mapping) and isinstance(domain.get(privacy_id), Identifier)
    if isinstance(domain, Domain | Mapping) and privacy_id in domain and not identifies:
        raise DomainError(
            f"privacy_id={privacy_id!r} identifies persons and cannot be released: leave it out of "
            "the domain, or declare it as Identifier()."
        )
    kind = rows.kinds[privacy_id]
    if kind in ("other", "null"):
        raise DomainError(
            f"Column {privacy_id!r} (type {rows.dtypes[privacy_id]}) cannot identify persons; "
            "convert it to text or to integers."
        )


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


# --- `AnswersStatistics`: statistics of a release as methods of the estimator that made it


class AnswersStatistics:
    """Statistics with intervals; ``_asked()`` is the `Synopsis` that answers."""

    def _asked(self) -> Any:
        """The synopsis; NotFittedError without a fit."""
        raise NotImplementedError

    @of_records
    def count(self, query: Any = None, **how: Any) -> Any:
        """Expected number of records that satisfy a query; see :meth:`skdp.Synopsis.count`."""
        return self._asked().count(query, **how)

    def sum(self, column: str, query: Any = None, **how: Any) -> Any:
        """Sum of a numeric column over a query; see :meth:`skdp.Synopsis.sum`."""
        return self._asked().sum(column, query, **how)

    def mean(self, column: str, query: Any = None, **how: Any) -> Any:
        """Mean of a numeric column over a query; see :meth:`skdp.Synopsis.mean`."""
        return self._asked().mean(column, query, **how)

    def std(self, column: str, query: Any = None, **how: Any) -> Any:
        """Standard deviation of a column over a query; see :meth:`skdp.Synopsis.std`."""
        return self._asked().std(column, query, **how)

    def quantile(self, column: str, q: Any = 0.5, query: Any = None, **how: Any) -> Any:
        """Quantiles of a column over a query; see :meth:`skdp.Synopsis.quantile`."""
        return self._asked().quantile(column, q, query, **how)

    def proportion(self, query: Any, among: Any = None, **how: Any) -> Any:
        """Share of a query among another's records; see :meth:`skdp.Synopsis.proportion`."""
        return self._asked().proportion(query, among, **how)

    def covariance(self, first: str, second: str, query: Any = None, **how: Any) -> Any:
        """Covariance of two columns over a query; see :meth:`skdp.Synopsis.covariance`."""
        return self._asked().covariance(first, second, query, **how)

    def correlation(self, first: str, second: str, query: Any = None, **how: Any) -> Any:
        """Correlation of two columns over a query; see :meth:`skdp.Synopsis.correlation`."""
        return self._asked().correlation(first, second, query, **how)

    def aggregate(self, by: Any, column: Any = None, query: Any = None, **how: Any) -> Any:
        """Counts, sums and means of groups; see :meth:`skdp.Synopsis.aggregate`."""
        return self._asked().aggregate(by, column, query, **how)

    def crosstab(self, index: str, columns: str, query: Any = None, **how: Any) -> Any:
        """Counts of all combinations of two columns; see :meth:`skdp.Synopsis.crosstab`."""
        return self._asked().crosstab(index, columns, query, **how)

    def describe(self, *, level: float = 0.95) -> Any:
        """Statistics of every column with intervals; see :meth:`skdp.Synopsis.describe`."""
        return self._asked().describe(level=level)

    def page(self, path: Any = None, *, title: str = "A private release") -> Any:
        """Write a page of all released numbers, whom it protects and how much: one HTML file.

        Parameters
        ----------
        path : str or path-like, default=None
            An existing file is replaced. None returns the page, which a notebook shows.
        title : str, default="A private release"
            Title of the page.

        Returns
        -------
        page or None
            With the file as ``text``; None with a path.
        """
        self._asked()
        own: Any = self
        return TablePage(title, own.privacy_loss_, type(self).__name__, own.to_frame()).written(
            path
        )
