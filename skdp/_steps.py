"""What one ``fit`` of a composed estimator reads, step by step, and what it spends.

Knows scikit-learn's composites by their public classes, skdp's estimators by their base class, and
skdp's meta-estimators by a method, ``_privacy_steps``. Nothing is fitted and no row is read.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    RandomizedSearchCV,
    check_cv,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from ._base import PrivateEstimator
from ._validation import as_epsilon
from .accounting import PrivacyLedger
from .domain import Domain

__all__ = ["Rows", "Step", "child", "ledgers", "n_folds", "walk", "without_ledgers"]

PRIVATE, PUBLIC, RELEASE, LEAKS, UNKNOWN = (
    "private",
    "public",
    "post-processing",
    "leaks",
    "unknown",
)
# Up to this many candidates of a search are priced, one by one.
_MAX_CANDIDATES = 10_000


@dataclass(frozen=True)
class Rows:
    """What a step is given.

    Attributes
    ----------
    released : bool
        Synthetic rows of a release instead of people's.
    mixed_by : str or None
        The step before that let every row depend on the others.
    doubtful : str or None
        The step before of which that is not known.
    """

    released: bool = False
    mixed_by: str | None = None
    doubtful: str | None = None


@dataclass(frozen=True)
class Step:
    """One step of a composed estimator.

    Attributes
    ----------
    name : str
        Path of the step, such as ``"classify__synthesizer"``; empty for the whole.
    kind : str
        Its class.
    reads : str
        "raw rows", "raw rows and labels", "a release" or "nothing".
    verdict : str
        "private", "public" (learns nothing from the rows), "post-processing" (of a release),
        "leaks" or "unknown".
    why, remedy : str
        In words; the remedy is empty where none is needed.
    epsilon : Fraction or None
        What the step spends in one fit of the whole; None if that cannot be told.
    n_fits : int
        How often the step is fitted in one fit of the whole.
    estimator : object
        The step itself.
    """

    name: str
    kind: str
    reads: str
    verdict: str
    why: str
    remedy: str = ""
    epsilon: Fraction | None = Fraction(0)
    n_fits: int = 1
    estimator: Any = None

    @property
    def sound(self) -> bool:
        """Whether the step keeps the guarantee."""
        return self.verdict in (PRIVATE, PUBLIC, RELEASE)


def walk(estimator: Any, name: str = "", rows: Rows | None = None) -> list[Step]:
    """All steps of ``estimator``, in the order in which a ``fit`` runs them.

    Parameters
    ----------
    estimator : estimator
        Before or after its fit.
    name : str, default=""
        Path of ``estimator`` itself.
    rows : Rows, optional
        What it is given; default people's rows.
    """
    return _visit(estimator, name, rows or Rows())[0]


def ledgers(estimator: Any) -> list[PrivacyLedger]:
    """The ledgers that a fit of ``estimator`` charges, each once."""
    found: list[PrivacyLedger] = []
    for value in estimator.get_params(deep=True).values():
        if isinstance(value, PrivacyLedger) and all(value is not other for other in found):
            found.append(value)
    return found


def without_ledgers(estimator: Any) -> Any:
    """Clone ``estimator`` with all ledgers taken out, for whoever has charged them already."""
    twin = clone(estimator)
    params = twin.get_params(deep=True)
    without = {key: None for key, value in params.items() if isinstance(value, PrivacyLedger)}
    return twin.set_params(**without)


def n_folds(cv: Any) -> int | None:
    """Number of folds of a splitter, or None where it depends on the rows."""
    try:
        return int(check_cv(cv).get_n_splits())
    except (TypeError, ValueError):
        # Leave-one-out and the like ask for the rows.
        return None


# --- the walk. Each visitor returns the steps, and what the step behind is given.

_Result = tuple[list[Step], Rows]


def _visit(estimator: Any, name: str, rows: Rows) -> _Result:
    if estimator is None or isinstance(estimator, str):
        why = "passes the rows on" if estimator != "drop" else "drops the columns"
        kind = "passthrough" if estimator is None else estimator
        return [Step(name, kind, "nothing", PUBLIC, why + ".")], rows
    if isinstance(estimator, PrivateEstimator):
        return _private(estimator, name, rows), rows
    for kind, visit in _COMPOSITES:
        if isinstance(estimator, kind):
            return visit(estimator, name, rows)
    if hasattr(estimator, "_privacy_steps"):
        return estimator._privacy_steps(name, rows), rows
    return _foreign(estimator, name, rows)


def child(name: str, part: str) -> str:
    """Path of a part, as in ``set_params``."""
    return f"{name}__{part}" if name else part


def _kind(estimator: Any) -> str:
    return type(estimator).__name__


def _private(estimator: PrivateEstimator, name: str, rows: Rows) -> list[Step]:
    epsilon: Fraction | None
    try:
        epsilon = as_epsilon(estimator.epsilon)
    except (TypeError, ValueError) as error:
        text = f"Its fit will refuse: {error}"
        return [
            Step(name, _kind(estimator), "nothing", UNKNOWN, text, "Give a positive epsilon.", None)
        ]
    step = Step(
        name,
        _kind(estimator),
        "a release" if rows.released else "raw rows and labels",
        PRIVATE,
        f"releases what it learns with noise, at epsilon {float(epsilon):g}.",
        epsilon=epsilon,
        estimator=estimator,
    )
    loss = getattr(estimator, "privacy_loss_", None)
    if rows.released:
        why = "reads a release, which would have been free; it charges all the same."
        return [replace(step, verdict=RELEASE, why=why)]
    if isinstance(estimator.random_state, numbers.Integral) or (loss is not None and loss.seeded):
        return [
            replace(
                step,
                verdict=LEAKS,
                why="its noise comes from a seed: who knows or guesses it takes the noise off.",
                remedy="random_state=None, the operating system's entropy.",
            )
        ]
    if _inferred(estimator):
        return [
            replace(
                step,
                verdict=LEAKS,
                why="its domain was inferred from the records, exactly and for free.",
                remedy="Declare the domain from public knowledge.",
            )
        ]
    if rows.mixed_by is not None:
        return [
            replace(
                step,
                verdict=LEAKS,
                why=f"its rows come from {rows.mixed_by!r}, which was fitted to all of them: one "
                "record may change every row, and the noise is made for one.",
                remedy=f"Take {rows.mixed_by!r} away, declare what it learns, or learn that "
                "privately.",
            )
        ]
    if rows.doubtful is not None:
        return [
            replace(
                step,
                verdict=UNKNOWN,
                why=f"its rows come from {rows.doubtful!r}: the noise is enough only if that "
                "treats each row by itself.",
                remedy=f"Make sure of it, and say so: apply {rows.doubtful!r} before the pipeline.",
            )
        ]
    return [step]


def _inferred(estimator: Any) -> bool:
    domains = [getattr(estimator, "domain", None), getattr(estimator, "domain_", None)]
    return any(isinstance(domain, Domain) and domain.inferred for domain in domains)


def _pipeline(pipeline: Pipeline, name: str, rows: Rows) -> _Result:
    steps = []
    if pipeline.memory is not None and not rows.released:
        steps.append(
            Step(
                name,
                _kind(pipeline),
                "raw rows and labels",
                LEAKS,
                "memory= keeps the transformed true rows in a folder.",
                "memory=None.",
            )
        )
    last = len(pipeline.steps) - 1
    for i, (part, estimator) in enumerate(pipeline.steps):
        path = child(name, part)
        resamples = hasattr(estimator, "fit_resample")
        if i < last and isinstance(estimator, PrivateEstimator) and resamples:
            steps += _private(estimator, path, rows)
            if type(pipeline) is Pipeline:
                steps[-1] = replace(
                    steps[-1],
                    verdict=UNKNOWN,
                    why="a release is no transformer: scikit-learn's Pipeline refuses it here.",
                    remedy="PrivateClassifier, or the Pipeline of imbalanced-learn.",
                )
            # The rows behind are of nobody; a flaw of the release is reported where it is.
            rows = Rows(released=True)
            continue
        more, rows = _visit(estimator, path, rows)
        steps += more
    return steps, rows


def _parallel(parts: Iterable[tuple[str, Any]], name: str, rows: Rows) -> _Result:
    # All parts read the same people, whichever columns: what they spend adds up.
    steps: list[Step] = []
    given = rows
    for part, estimator in parts:
        more, behind = _visit(estimator, child(name, part), given)
        steps += more
        rows = replace(
            rows,
            mixed_by=rows.mixed_by or behind.mixed_by,
            doubtful=rows.doubtful or behind.doubtful,
        )
    return steps, rows


def _column_transformer(estimator: ColumnTransformer, name: str, rows: Rows) -> _Result:
    parts = [(part, inner) for part, inner, _ in estimator.transformers]
    if not isinstance(estimator.remainder, str):
        parts.append(("remainder", estimator.remainder))
    return _parallel(parts, name, rows)


def _feature_union(estimator: FeatureUnion, name: str, rows: Rows) -> _Result:
    return _parallel(estimator.transformer_list, name, rows)


def _frozen(estimator: FrozenEstimator, name: str, rows: Rows) -> _Result:
    inner = estimator.estimator
    loss = getattr(inner, "privacy_loss_", None)
    paid = loss is not None and not loss.seeded and not _inferred(inner)
    step = Step(
        name,
        _kind(estimator),
        "nothing",
        PRIVATE if paid else UNKNOWN,
        f"is not fitted again; {_kind(inner)} was paid for when it was."
        if paid
        else f"is not fitted again, but brings along what {_kind(inner)} learned from rows that "
        "nobody here knows.",
        "" if paid else "Freeze a fitted private estimator, or look at its own report.",
        estimator=inner,
    )
    mixed = replace(rows, doubtful=rows.doubtful or (None if paid else name or _kind(inner)))
    return [step], mixed if not rows.released else rows


def _voting(estimator: Any, name: str, rows: Rows) -> _Result:
    steps = []
    for part, inner in estimator.estimators:
        if inner != "drop":
            steps += _visit(inner, child(name, part), rows)[0]
    if rows.released:
        return steps, rows
    if isinstance(estimator, VotingClassifier):
        own = Step(
            name,
            _kind(estimator),
            "raw labels",
            LEAKS,
            "keeps the list of labels that occur in the raw data.",
            f"PrivateClassifier({_kind(estimator)}(...), synthesizer).",
        )
        return [*steps, own], rows
    return steps, rows


def _search(search: Any, name: str, rows: Rows) -> _Result:
    """Grid and random search: every candidate is fitted to every fold, and scored on true rows."""
    base = _visit(search.estimator, child(name, "estimator"), rows)[0]
    kind = _kind(search)
    if rows.released:
        why = "searches on a release, which is free however long it takes."
        return [*base, Step(name, kind, "a release", RELEASE, why)], rows
    k, n_candidates = n_folds(search.cv), _n_candidates(search)
    n_fits = None if k is None else k * n_candidates + bool(search.refit)
    total = _search_price(search, base, k, n_fits)
    one = _total(base)
    steps = []
    for step in base:
        # Each step's part of the price of the search is its part of the price of one fit.
        spent = step.epsilon
        if spent:
            spent = None if total is None or not one else total * spent / one
        steps.append(replace(step, n_fits=step.n_fits * (n_fits or 1), epsilon=spent))
    fits = "an unknown number of" if n_fits is None else f"{n_fits:,}"
    if not hasattr(search.scoring, "_score_epsilon"):
        own = Step(
            name,
            kind,
            "raw rows and labels",
            LEAKS,
            f"fits {fits} times; its scores are exact, and they choose best_params_.",
            "PrivateGridSearchCV, or search on the synthetic rows of one release.",
        )
        return [*steps, own], rows
    n_scores = None if k is None else k * n_candidates * (1 + bool(search.return_train_score))
    own = Step(
        name,
        kind,
        "raw rows and labels",
        PRIVATE,
        f"fits {fits} times; every score is released with noise.",
        epsilon=None if n_scores is None else n_scores * search.scoring._score_epsilon,
    )
    return [*steps, own], rows


def _n_candidates(search: Any) -> int:
    if isinstance(search, GridSearchCV):
        return len(ParameterGrid(search.param_grid))
    space = search.param_distributions
    parts = space if isinstance(space, list) else [space]
    lists = all(hasattr(values, "__len__") for part in parts for values in part.values())
    return min(search.n_iter, len(ParameterGrid(space))) if lists else search.n_iter


def _total(steps: Iterable[Step]) -> Fraction | None:
    """What steps spend in all; None if one is not known."""
    prices = [step.epsilon for step in steps]
    known = [price for price in prices if price is not None]
    return sum(known, Fraction(0)) if len(known) == len(prices) else None


def _search_price(
    search: Any, base: list[Step], k: int | None, n_fits: int | None
) -> Fraction | None:
    """What the fits of a search spend, or the most that they may where candidates differ."""
    one = _total(base)
    if one is None or k is None or n_fits is None or not one:
        return one if not one else None
    if not isinstance(search, GridSearchCV):
        return None if _touches_price(search) else n_fits * one
    candidates = ParameterGrid(search.param_grid)
    if len(candidates) > _MAX_CANDIDATES:
        return None
    prices = [_total(walk(clone(search.estimator).set_params(**each))) for each in candidates]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    # Which candidate is fitted again is known afterwards only: the dearest, for safety.
    return k * sum(known, Fraction(0)) + (max(known) if search.refit else 0)


def _touches_price(search: Any) -> bool:
    """Whether a random search may change what a fit spends."""
    space = getattr(search, "param_distributions", {})
    names = [key for part in (space if isinstance(space, list) else [space]) for key in part]
    inner = search.estimator.get_params(deep=True)
    return any(
        key.rpartition("__")[2] == "epsilon" or isinstance(inner.get(key), BaseEstimator)
        for key in names
    )


_COMPOSITES: list[tuple[Any, Callable[[Any, str, Rows], _Result]]] = [
    (Pipeline, _pipeline),
    (ColumnTransformer, _column_transformer),
    (FeatureUnion, _feature_union),
    (FrozenEstimator, _frozen),
    ((VotingClassifier, VotingRegressor), _voting),
    ((GridSearchCV, RandomizedSearchCV), _search),
]


# --- estimators of others


def _declared(value: Any) -> bool:
    return not isinstance(value, str) and value is not None


# Transformers of scikit-learn that learn nothing from the rows under these parameters.
_FIXED: dict[str, Callable[[Any], bool]] = {
    "OneHotEncoder": lambda e: (
        _declared(e.categories)
        and e.handle_unknown != "error"
        and e.min_frequency is None
        and e.max_categories is None
    ),
    "OrdinalEncoder": lambda e: (
        _declared(e.categories)
        and e.handle_unknown != "error"
        and e.min_frequency is None
        and e.max_categories is None
    ),
    "SimpleImputer": lambda e: e.strategy == "constant" and not e.add_indicator,
    "PolynomialFeatures": lambda e: True,
    "SplineTransformer": lambda e: _declared(e.knots),
    "HashingVectorizer": lambda e: True,
    "FeatureHasher": lambda e: True,
    "MissingIndicator": lambda e: e.features == "all",
    "AdditiveChi2Sampler": lambda e: True,
    # Learn the number of columns, and random directions.
    "GaussianRandomProjection": lambda e: isinstance(e.n_components, numbers.Integral),
    "SparseRandomProjection": lambda e: isinstance(e.n_components, numbers.Integral),
    "RBFSampler": lambda e: e.gamma != "scale",
}


def _foreign(estimator: Any, name: str, rows: Rows) -> _Result:
    kind = _kind(estimator)
    reads = "raw rows and labels"
    family = type(estimator).__module__.partition(".")[0]
    if rows.released:
        why = "learns from a release only, which is free."
        return [Step(name, kind, "a release", RELEASE, why)], rows
    if kind == "FunctionTransformer" and family == "sklearn":
        return _function(estimator, name, rows)
    if family == "sklearn" and _learns_nothing(estimator):
        why = "treats each row by itself and learns nothing from them."
        return [Step(name, kind, "nothing", PUBLIC, why)], rows
    label = name or kind
    inner = _inner_private(estimator)
    if inner:
        # Bagging, stacking, calibration, boosting: several fits to parts of the rows, and labels,
        # weights or predictions of true rows kept beside them.
        step = Step(
            name,
            kind,
            reads,
            LEAKS if family == "sklearn" else UNKNOWN,
            f"wraps {', '.join(inner)} in a way whose price is not known, and reads the true rows "
            "and labels beside it.",
            f"Turn it inside out: PrivateClassifier({kind}(...), synthesizer).",
            epsilon=None,
        )
        return [step], replace(rows, mixed_by=rows.mixed_by or label)
    if family in ("sklearn", "imblearn", "xgboost", "lightgbm", "catboost"):
        step = Step(
            name,
            kind,
            reads,
            LEAKS,
            "is fitted to the true rows and keeps what it learned, exactly.",
            _remedy(estimator),
        )
        return [step], replace(rows, mixed_by=rows.mixed_by or label)
    step = Step(
        name,
        kind,
        reads,
        UNKNOWN,
        "is not known: it may keep anything of the true rows.",
        "Train it on a release, or make sure that it learns nothing.",
    )
    return [step], replace(rows, doubtful=rows.doubtful or label)


def _function(estimator: Any, name: str, rows: Rows) -> _Result:
    func = estimator.func
    if func is None or isinstance(func, np.ufunc):
        why = "passes the rows on." if func is None else "changes each number by itself."
        return [Step(name, _kind(estimator), "nothing", PUBLIC, why)], rows
    called = getattr(func, "__name__", repr(func))
    step = Step(
        name,
        _kind(estimator),
        "raw rows",
        UNKNOWN,
        f"calls {called}, which may let a row depend on the others (their mean, their order, how "
        "many there are).",
        "Make sure that it treats each row by itself; apply it before the pipeline.",
    )
    return [step], replace(rows, doubtful=rows.doubtful or name or called)


def _learns_nothing(estimator: Any) -> bool:
    rule = _FIXED.get(_kind(estimator))
    if rule is not None:
        return rule(estimator)
    try:
        return not get_tags(estimator).requires_fit
    except Exception:  # an estimator of somebody's, with tags of somebody's
        return False


def _inner_private(estimator: Any) -> list[str]:
    """Names of the private estimators that a meta-estimator holds."""
    if not hasattr(estimator, "get_params"):
        return []
    return sorted(
        {
            _kind(value)
            for value in estimator.get_params(deep=True).values()
            if isinstance(value, PrivateEstimator) or hasattr(value, "_privacy_steps")
        }
    )


def _remedy(estimator: Any) -> str:
    kind = _kind(estimator)
    task = getattr(estimator, "_estimator_type", None)
    if task is None:
        try:
            task = get_tags(estimator).estimator_type
        except Exception:  # as above
            task = None
    if hasattr(estimator, "fit_resample"):
        return "A synthesizer of skdp in its place draws rows of nobody."
    if task == "classifier":
        return f"PrivateClassifier({kind}(...), synthesizer)."
    if task == "regressor":
        return f"PrivateRegressor({kind}(...), synthesizer)."
    if task == "clusterer":
        return "DPKMeans, or cluster the synthetic rows of a release."
    if kind in ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler"):
        return "PrivateStandardScaler, or put it behind the release, inside PrivateClassifier."
    if hasattr(estimator, "get_support"):
        return "DPTopKSelector, or select on synthetic rows."
    return "Put it behind the release: inside PrivateClassifier, or on synthetic rows."
