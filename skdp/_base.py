"""What every private estimator does in the same way: schema, charge, noise source, publication."""

from __future__ import annotations

import copy
import html
import numbers
import warnings
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import validate_data

from ._random import NoiseSource, noise_source
from ._validation import as_epsilon, split_epsilon
from .accounting import PrivacyLedger, PrivacyLoss, charge
from .domain import Attribute, Categorical, Domain
from .exceptions import DomainError
from .rows import MOST_AT_ONCE, Contributions, Frame, LazyRows, as_frame, read_rows, select_columns

__all__ = [
    "HidesSeed",
    "PrivateEstimator",
    "Published",
    "Seed",
    "ShowsPrivacy",
    "as_seed",
    "declare_label",
    "feature_bounds",
    "for_travel",
    "match_rows",
    "warn_of_emptiness",
    "without_unit",
]


class Seed(int):
    """The seed of private noise: an integer whose repr hides its value.

    Estimators are shown within others by code that is not ours (pipelines, searches, diagrams of
    notebooks), which prints parameters as it finds them.
    """

    def __repr__(self):
        return "<seeded: no guarantee>"

    __str__ = __repr__

    def __reduce__(self):
        return Seed, (int(self),)

    # As of an int: clone() compares parameters by identity.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class HidesSeed:
    """Keeps an integer ``random_state``, which draws private noise, as a `Seed`."""

    def __setattr__(self, name, value):
        if name == "random_state":
            value = as_seed(value)
        super().__setattr__(name, value)

    def __setstate__(self, state):
        # Versions before this one stored a plain number.
        if "random_state" in state:
            state = {**state, "random_state": as_seed(state["random_state"])}
        # Not every class above has its own, and object has none.
        getattr(super(), "__setstate__", self.__dict__.update)(state)


def as_seed(value: Any) -> Any:
    """``value``, as a `Seed` if it is an integer."""
    known = isinstance(value, bool | np.bool_ | Seed)
    return Seed(value) if isinstance(value, numbers.Integral) and not known else value


def for_travel(value: Any) -> Any:
    """``value`` of a fitted estimator's state without ledgers and without seeds of noise.

    A release is published: it takes along neither the ledger (in whose place goes its name, which
    refuses charges) nor the seed (which would remove the noise).

    Parameters
    ----------
    value : object
        A parameter, an estimator, or a dict, list or tuple of them.
    """
    if isinstance(value, PrivacyLedger):
        return value.detached()
    if isinstance(value, Seed | NoiseSource):
        return None
    if type(value) is dict:
        return {key: for_travel(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(for_travel(one) for one in value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=True)
        left = {
            key: for_travel(one)
            for key, one in params.items()
            if isinstance(one, PrivacyLedger | Seed | NoiseSource)
        }
        return clone(value).set_params(**left) if left else value
    return value


class _Kept:
    """A parameter in the state of a fitted estimator: whole in memory, `for_travel` elsewhere."""

    def __init__(self, value):
        self.value = value

    def __deepcopy__(self, memo):
        return copy.deepcopy(self.value, memo)

    def __getstate__(self):
        return {"value": for_travel(self.value)}


class Published:
    """Copies keep the ledger of a fitted estimator; its pickles, which may be published, do not.

    A copy in memory, deep or not, may fit again and must pay for it. Before the fit ledger and seed
    travel too: both are needed where the fit will run.
    """

    # Fitted attributes in which parameters are repeated.
    _repeats: tuple[str, ...] = ()

    def __getstate__(self):
        # Deep copies come here too: __deepcopy__ would be found through wrappers that pass
        # attributes on, as FrozenEstimator does, and take the wrapper off.
        state = super().__getstate__()
        if "privacy_loss_" in state:
            names = {*self.get_params(deep=False), *self._repeats}
            state = {k: _Kept(v) if k in names else v for k, v in state.items()}
        return state

    def __setstate__(self, state):
        state = {k: v.value if isinstance(v, _Kept) else v for k, v in state.items()}
        super().__setstate__(state)

    def __copy__(self):
        # Not through __getstate__, which is for travel.
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin


def privacy_html(estimator: Any) -> str:
    """What a notebook shows above an estimator: what was spent, on what, and what is public."""
    loss = getattr(estimator, "privacy_loss_", None)
    if loss is None:
        return f"<div>Not fitted; {html.escape(estimator._price_text())}</div>"
    released = sorted(
        name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")
    )
    ours = [name for name in released if name not in _PUBLIC_FACTS]
    public = [
        name
        for name in ("domain", "bounds", "target", "classes", "n_samples", "target_range")
        if getattr(estimator, name, None) is not None
    ]
    return (
        f"<div>{loss._repr_html_()}<small>public: parameters"
        f"{html.escape(' (' + ', '.join(public) + ')' if public else '')}; "
        f"released: {html.escape(', '.join(ours))}</small></div>"
    )


class ShowsPrivacy:
    """Notebooks show what was spent above scikit-learn's diagram."""

    def _price(self) -> Fraction | None:
        """What a fit will spend; None where it cannot be told beforehand."""
        return as_epsilon(self.epsilon)

    def _price_text(self) -> str:
        try:
            price = self._price()
        except (TypeError, ValueError) as error:
            return f"a fit will refuse: {error}"
        if price is None:
            return "what a fit will spend is not known."
        return f"a fit will spend \u03b5 = {float(price):g}."

    def _repr_html_(self):
        return privacy_html(self) + estimator_html_repr(self)

    def _repr_mimebundle_(self, **kwargs):
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


# Fitted attributes that repeat what was declared.
_PUBLIC_FACTS = {"privacy_loss_", "n_features_in_", "feature_names_in_", "domain_", "classes_"}


class PrivateEstimator(Published, HidesSeed, ShowsPrivacy, BaseEstimator):
    """Base of the estimators that read private rows.

    A subclass stores its parameters in ``__init__`` (among them ``epsilon``, ``ledger`` and
    ``random_state``), and its ``fit``

    1. checks the SCHEMA of what it was given, never the values;
    2. calls :meth:`_spend` with the parts of its budget, which charges the ledger;
    3. reads the values, keeping everything exact in local variables;
    4. assigns the released attributes, ``privacy_loss_`` among them, last.
    """

    def _spend(
        self,
        parts: Mapping[str, Fraction] | None = None,
        *,
        shares: Mapping[str, Any] | None = None,
    ) -> tuple[PrivacyLoss, NoiseSource]:
        """Charge the whole of ``epsilon``, given as exact parts or as shares of it.

        Call it after the schema check and before any value is read: a refused charge has then
        cost nothing and told nothing, and a crash after it leaves the budget spent.

        ``parts`` are those of one row, and sum to :meth:`_record_epsilon`. Noise is drawn at
        ``loss.of_record``.
        """
        epsilon = as_epsilon(self.epsilon)
        most = self._max_contributions()
        if parts is None:
            parts = split_epsilon(self._record_epsilon(), shares or {"release": 1})
        source = noise_source(self.random_state)
        loss = PrivacyLoss(
            epsilon,
            {name: part * (most or 1) for name, part in parts.items()},
            seeded=source.seeded,
            max_contributions=most,
        )
        charge(self.ledger, type(self).__name__, loss)
        return loss, source

    def _max_contributions(self) -> int | None:
        """How many rows of each person count, or None where the unit of privacy is the row.

        Raises
        ------
        TypeError, ValueError
            If it is no positive integer, or only one of ``max_contributions`` and ``unit`` is
            given.
        """
        most, unit = getattr(self, "max_contributions", None), getattr(self, "unit", None)
        if most is None and unit is None:
            return None
        if most is None or unit is None:
            raise ValueError(
                f"max_contributions={most!r} and unit={unit!r} belong together: how many rows of "
                "each person count, and the column that tells whose a row is. Give both or none."
            )
        if isinstance(most, bool) or not isinstance(most, numbers.Integral):
            raise TypeError(f"max_contributions must be an integer, got {most!r}.")
        if most < 1:
            raise ValueError(f"max_contributions must be at least 1, got {most!r}.")
        return int(most)

    def _warn_of_size(self, rows: Frame | LazyRows, domain: Domain) -> None:
        """Say what a table costs that no engine can be asked for in parts; by the domain alone.

        How many distinct rows there are is private: neither a refusal nor this may depend on it.
        """
        if not isinstance(rows, LazyRows) or domain.size <= MOST_AT_ONCE:
            return
        row = 16 + 4 * len(domain)
        warnings.warn(
            f"{type(self).__name__} takes the table of all distinct coded rows into memory, {row} "
            f"bytes each. In a domain of {domain.size:.3g} cells nearly all rows may be distinct: "
            f"a hundred million take {row / 10:.0f} GB. If that may not fit, declare fewer columns "
            "or bins, or take PairViewSynthesizer, which asks the engine for a few columns at a "
            "time.",
            UserWarning,
            stacklevel=3,
        )

    def _unit(self) -> str | None:
        """The column that tells whose a row is; errors as of :meth:`_max_contributions`."""
        return None if self._max_contributions() is None else self.unit

    def _record_epsilon(self) -> Fraction:
        """What one row may cost: epsilon, or its part where several rows of a person count."""
        return as_epsilon(self.epsilon) / (self._max_contributions() or 1)

    def _contributions(
        self, loss: PrivacyLoss, source: NoiseSource, rows: Frame | LazyRows, domain: Domain
    ) -> Contributions | None:
        """The bound on the rows of a person, as counting takes it.

        Of what was charged, and of the rows as :func:`match_rows` gave them: parameters may have
        been set since, while a charge waited for its turn.
        """
        most = loss.max_contributions
        if most is None:
            return None
        [unit] = (name for name in rows.names if name not in domain)
        return Contributions(unit, most, source)

    def _remember_columns(self, X: Any, rows: Frame | LazyRows, label: str | None = None) -> None:
        """Set ``n_features_in_``, and ``feature_names_in_`` where columns have names.

        Parameters
        ----------
        X : as given to ``fit``
        rows : Frame or LazyRows
            What was read of it.
        label : str, default=None
            Column of lazy rows that is no feature.
        """
        if isinstance(rows, LazyRows):
            # scikit-learn knows frames in memory; names are all that it wants of one.
            names = [name for name in rows.names if name not in (label, self._unit())]
            X = pd.DataFrame(columns=names)
        elif self._unit() is not None:
            X = select_columns(X, [name for name in as_frame(X).names if name != self._unit()])
        validate_data(self, X, skip_check_array=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Values never raise: missing ones and text have their documented meaning.
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def warn_of_emptiness(estimator: Any, total: float, std: float) -> None:
    """Warn if the released total is nearly zero. Only RELEASED numbers and public noise are used.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator.
    total : float
        Released number of records.
    std : float
        Standard deviation of its noise.
    """
    if total > 3 * std:
        return
    warnings.warn(
        f"{type(estimator).__name__} released a total of {total:.4g} records, with noise of "
        f"standard deviation {std:.3g}: nearly no records fit the domain, or fewer than the "
        "noise can show. Records are skipped if a value is not a number, an undeclared category or "
        "missing (such as text in a Numeric column, or labels of another type). "
        "Domain.check(rows) counts them, for the data owner only.",
        UserWarning,
        stacklevel=3,
    )


def feature_bounds(bounds: Any, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both ends of public bounds, one number for each feature.

    Raises
    ------
    DomainError
        If there are none, or they are no pair of finite numbers (or arrays) with low < high.
    """
    if bounds is None:
        raise DomainError(
            "bounds is required: the public range of the features, for example bounds=(0, 100), "
            "or two arrays with one number for each feature. Reading it from the data would leak "
            "them."
        )
    try:
        low, high = bounds
        low, high = (np.asarray(end, dtype=np.float64) for end in (low, high))
        low, high = (np.broadcast_to(end, (n_features,)).copy() for end in (low, high))
    except (TypeError, ValueError):
        raise DomainError(
            "bounds must be a pair (low, high) of numbers, or of arrays with one number for each "
            f"of the {n_features} features, got {bounds!r}."
        ) from None
    if not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
        raise DomainError(
            f"bounds must be finite with low < high for every feature, got {bounds!r}."
        )
    return low, high


def declare_label(
    domain: Any, rows: Frame | LazyRows, target: str | None, classes: Any
) -> tuple[Any, str | None]:
    """Turn the shorthand ``classes=`` (or an attribute) into a label column of the domain.

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
    label = "target"
    while label in domain.names:
        label += "_"
    attribute = classes if isinstance(classes, Attribute) else Categorical(list(classes))
    return domain.with_attribute(label, attribute), label


def full_domain(domain: Any, rows: Frame | LazyRows) -> Domain:
    """Spell out ``domain`` for the columns of ``rows``: one attribute may stand for all."""
    if domain is None:
        raise DomainError(
            "domain is required: the public range or categories of every column, for example "
            "Domain({'age': Numeric(0, 120), 'sex': Categorical(['F', 'M'])}), or one Numeric for "
            "all columns of an array. Reading it from the data would leak them."
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
    unit: str | None = None,
) -> tuple[Any, Domain]:
    """Put the rows, and the labels if there is a target, under the columns of the domain.

    Checks the schema only: container, names, declared types. No value is read.

    Parameters
    ----------
    X, y, domain, target
        As given to the estimator.
    lazy : bool, default=False
        Whether lazy frames will do: for estimators that need counts only.
    unit : str, default=None
        A further column, which tells whose a row is.

    Returns
    -------
    rows : Frame, or LazyRows for lazy frames
        With exactly the columns of the domain, and the unit.
    domain : Domain
    """
    rows: Any = read_rows(X) if lazy else as_frame(X)
    if unit is not None:
        _check_unit(rows, domain, unit)
    domain = full_domain(domain, without_unit(rows, unit))
    if target is not None and target not in domain.names:
        raise DomainError(
            f"target={target!r} is not a column of the domain, which has {list(domain.names)}."
        )
    labelled = target is not None and y is not None
    if rows.n_unnamed:
        expected = [name for name in domain.names if not (labelled and name == target)]
        if rows.n_unnamed != len(expected):
            raise DomainError(
                f"The data have {rows.n_unnamed} columns, but the domain declares "
                f"{len(expected)}: {expected}."
            )
        rows = rows.with_names(expected)
    if labelled:
        rows = rows.with_column(target, y)
        _check_label_type(domain[target], rows.kinds[target], rows.dtypes[target])
    domain.check_schema(without_unit(rows, unit))
    return rows, domain


def _check_label_type(attribute: Attribute, kind: str, dtype: str) -> None:
    """Refuse numbers where all labels are text, and say where they may come from."""
    if not isinstance(attribute, Categorical) or kind not in ("numeric", "boolean"):
        return
    if all(isinstance(value, str) for value in attribute.categories):
        numbers_ = list(range(attribute.n_values))
        raise DomainError(
            f"y holds numbers (type {dtype}), but all declared labels are text. If y was text, a "
            "meta-estimator of scikit-learn has encoded it: voting, stacking, bagging, "
            "one-vs-rest and cross_val_predict(method='predict_proba') encode the labels as 0, 1, "
            "... before they fit the inner estimators. Turn it inside out, "
            "PrivateClassifier(VotingClassifier(...), synthesizer), which is private too; or "
            "declare the labels that it passes on, "
            f"classes={numbers_ if len(numbers_) < 5 else f'range({len(numbers_)})'} ([0, 1] "
            "within one-vs-rest)."
        )


def without_unit(rows: Any, unit: str | None) -> Any:
    """Rows without the column that identifies the person a row belongs to."""
    return rows if unit is None else rows.select([name for name in rows.names if name != unit])


def _check_unit(rows: Any, domain: Any, unit: Any) -> None:
    """Refuse a unit that cannot tell persons apart; by the schema alone."""
    if unit not in rows.named:
        raise DomainError(
            f"unit={unit!r} is not a column of the data; it names the one that tells whose a row "
            "is. Arrays have no names: give a frame."
        )
    if isinstance(domain, Domain | Mapping) and unit in domain:
        raise DomainError(
            f"unit={unit!r} tells persons apart and cannot be released: leave it out of the domain."
        )
    kind = rows.kinds[unit]
    if kind in ("other", "null"):
        raise DomainError(
            f"Column {unit!r} (type {rows.dtypes[unit]}) cannot tell persons apart; convert it to "
            "text or to integers."
        )
    if isinstance(rows, LazyRows) and rows.engine == "dask":
        raise TypeError(
            "Contributions cannot be bounded in Dask, where the rows of a person may lie in any "
            "partition. Read the same files with Polars or DuckDB, or collect the frame first."
        )
