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
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    ParameterGrid,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    check_cv,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ._base import PrivateEstimator
from ._validation import as_epsilon
from .accounting import PrivacyLedger
from .domain import Domain

__all__ = [
    "LEAKS",
    "PRIVATE",
    "RELEASE",
    "Rows",
    "Step",
    "child",
    "ledgers",
    "n_folds",
    "price",
    "walk",
    "walk_all",
]

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


def walk_all(
    estimators: list[Any],
    name: str,
    rows: Rows | None = None,
    *,
    times: int | None = 1,
    again: bool = False,
    shared: bool = False,
) -> list[Step]:
    """Steps of estimators that are all fitted to the same rows, as in a search.

    Parameters
    ----------
    estimators : list of estimator
    name : str
        Path of each of them.
    rows : Rows, optional
    times : int or None, default=1
        Number of fits of each; None where it is not known.
    again : bool, default=False
        Whether one of them, nobody knows which, is fitted once more: the dearest, for safety.
    shared : bool, default=False
        Whether all use the release of the first.

    Returns
    -------
    list of Step
        Each name and kind once, with the sum of its prices and the worst of its verdicts.
    """
    walks = [walk(estimator, name, rows) for estimator in estimators]
    totals = [_total(steps) for steps in walks]
    dearest = max(range(len(walks)), key=lambda i: totals[i] or 0, default=0)
    found: dict[tuple[str, str], list[tuple[Step, int | None]]] = {}
    for i, steps in enumerate(walks):
        fits = None if times is None else times + (again and i == dearest)
        for step in steps:
            if shared and i:
                spends = step.epsilon != 0
                step = replace(step, epsilon=Fraction(0), n_fits=0 if spends else step.n_fits)
            found.setdefault((step.name, step.kind), []).append((step, fits))
    return [_together(same) for same in found.values()]


def _together(same: list[tuple[Step, int | None]]) -> Step:
    worst = next((step for step, _ in same if not step.sound), same[0][0])
    n_fits = sum(step.n_fits * (1 if fits is None else fits) for step, fits in same)
    prices = [_times_price(step.epsilon, fits) for step, fits in same]
    known = [price for price in prices if price is not None]
    epsilon = sum(known, Fraction(0)) if len(known) == len(prices) else None
    return replace(worst, epsilon=epsilon, n_fits=n_fits)


def _times_price(epsilon: Fraction | None, fits: int | None) -> Fraction | None:
    if epsilon == 0 or epsilon is None:
        return epsilon
    return None if fits is None else epsilon * fits


def ledgers(estimator: Any) -> dict[str, PrivacyLedger]:
    """The ledgers that a fit of ``estimator`` charges, by the names of their parameters."""
    params = estimator.get_params(deep=True)
    return {key: value for key, value in params.items() if isinstance(value, PrivacyLedger)}


def price(estimator: Any) -> Fraction | None:
    """What one fit of ``estimator`` spends; None if it cannot be told beforehand."""
    return _total(walk(estimator))


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
    if _family(estimator) not in ("skdp", "sklearn", "imblearn"):
        # Also a subclass of what is known: it may do anything.
        return _foreign(estimator, name, rows)
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


def _family(estimator: Any) -> str:
    """The library that an estimator is of."""
    return type(estimator).__module__.partition(".")[0]


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
    if rows.released and getattr(estimator, "ledger", None) is None:
        why = "reads a release, which is free."
        return [replace(step, verdict=RELEASE, why=why, epsilon=Fraction(0))]
    if rows.released:
        why = "reads a release, which is free; its ledger is charged all the same."
        return [replace(step, verdict=RELEASE, why=why, remedy="ledger=None.")]
    given = estimator.random_state
    if (
        isinstance(given, numbers.Integral)
        or getattr(given, "seeded", False)
        or (loss is not None and loss.seeded)
    ):
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
        # Freezing stops fit and fit_transform, but not fit_resample: it releases anew.
        thawed = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
        resamples = hasattr(thawed, "fit_resample")
        if i < last and isinstance(thawed, PrivateEstimator) and resamples:
            steps += _private(thawed, path, rows)
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
    steps, behind = _parallel(parts, name, rows)
    for part, _, columns in estimator.transformers:
        # A selector of scikit-learn reads names and types only.
        if rows.released or not callable(columns) or isinstance(columns, make_column_selector):
            continue
        path = child(name, part)
        why = f"has its columns chosen by {_called(columns)}, which may look at the values."
        remedy = "Name the columns, or take make_column_selector."
        steps.append(Step(path, _kind(estimator), "raw rows", UNKNOWN, why, remedy))
        behind = replace(behind, doubtful=behind.doubtful or path)
    return steps, behind


def _feature_union(estimator: FeatureUnion, name: str, rows: Rows) -> _Result:
    return _parallel(estimator.transformer_list, name, rows)


def _frozen(estimator: FrozenEstimator, name: str, rows: Rows) -> _Result:
    inner = estimator.estimator
    paid = _is_paid(inner)
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


def _is_paid(fitted: Any) -> bool:
    """Whether an estimator is fitted, and what it learned is private."""
    try:
        check_is_fitted(fitted)
    except (NotFittedError, TypeError):
        return False
    loss = getattr(fitted, "privacy_loss_", None)
    steps = walk(fitted)
    return (
        all(step.sound for step in steps)
        and any(step.verdict == PRIVATE for step in steps)
        and not (loss is not None and loss.seeded)
    )


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


def _transformed_target(estimator: TransformedTargetRegressor, name: str, rows: Rows) -> _Result:
    if estimator.regressor is None or rows.released:
        return _foreign(estimator, name, rows)
    if estimator.transformer is not None:
        steps, behind = _visit(estimator.transformer, child(name, "transformer"), rows)
    else:
        steps, behind = _function(estimator, child(name, "func"), rows)
    return [*steps, *_visit(estimator.regressor, child(name, "regressor"), behind)[0]], rows


def _threshold(estimator: FixedThresholdClassifier, name: str, rows: Rows) -> _Result:
    steps = _visit(estimator.estimator, child(name, "estimator"), rows)[0]
    why = "compares with a threshold that was declared."
    return [*steps, Step(name, _kind(estimator), "nothing", PUBLIC, why)], rows


def _search(search: Any, name: str, rows: Rows) -> _Result:
    """Grid and random search: every candidate is fitted to every fold, and scored on true rows."""
    path, kind = child(name, "estimator"), _kind(search)
    k, candidates = n_folds(search.cv), _candidates(search)
    n_candidates = _n_candidates(search)
    n_fits = None if k is None else k * n_candidates + bool(search.refit)
    if candidates is None:
        # Too many, or drawn from distributions: looked at as it is, its price perhaps not known.
        fixed = not _touches_price(search)
        steps = walk_all([search.estimator], path, rows, times=n_fits if fixed else None)
    else:
        fixed = True
        variants = [clone(search.estimator).set_params(**each) for each in candidates]
        if isinstance(search, GridSearchCV):
            steps = walk_all(variants, path, rows, times=k, again=bool(search.refit))
        else:
            steps = _drawn(variants, path, rows, n_fits)
    if rows.released:
        why = "searches on a release, which is free however long it takes."
        return [*steps, Step(name, kind, "a release", RELEASE, why)], rows
    fits = f"fits {'an unknown number of' if n_fits is None else f'{n_fits:,}'} times"
    own = Step(name, kind, "raw rows and labels", PRIVATE, f"{fits}; every score has noise.")
    price = _score_price(search.scoring)
    if price is None:
        own = replace(
            own,
            verdict=LEAKS,
            why=f"{fits}; its scores are exact, and they choose best_params_.",
            remedy="PrivateGridSearchCV, or search on the synthetic rows of one release.",
        )
        return [*steps, own], rows
    n_scores = None if k is None else k * n_candidates * (1 + bool(search.return_train_score))
    own = replace(own, epsilon=None if n_scores is None else n_scores * price)
    if not getattr(search.cv, "_secret_folds", False):
        own = replace(
            own,
            verdict=LEAKS,
            why=f"{fits}; its folds divide the rows by position: one record more moves others "
            "from fold to fold, and the noise is made for one.",
            remedy="cv=PrivateKFold(...).",
        )
    elif not fixed:
        own = replace(
            own,
            verdict=UNKNOWN,
            why=f"{fits}; its candidates are too many to look at, or draw what a fit spends.",
            remedy="Give lists of values, and fewer of them.",
        )
    return [*steps, own], rows


def _score_price(scoring: Any) -> Fraction | None:
    """What one scoring of one model spends; None where a score is exact."""
    scorers = list(scoring.values()) if isinstance(scoring, dict) else [scoring]
    if not scorers or not all(hasattr(scorer, "_score_epsilon") for scorer in scorers):
        return None
    return sum((scorer._score_epsilon for scorer in scorers), Fraction(0))


def _spaces(search: Any) -> list[dict[str, Any]]:
    space = search.param_distributions
    return space if isinstance(space, list) else [space]


def _lists_only(search: Any) -> bool:
    return all(hasattr(values, "__len__") for part in _spaces(search) for values in part.values())


def _n_candidates(search: Any) -> int:
    if isinstance(search, GridSearchCV):
        return len(ParameterGrid(search.param_grid))
    if not _lists_only(search):
        return search.n_iter
    return min(search.n_iter, len(ParameterGrid(search.param_distributions)))


def _candidates(search: Any) -> list[dict[str, Any]] | None:
    """All that a search may try; None where they are too many, or cannot be listed."""
    if isinstance(search, GridSearchCV):
        grid = ParameterGrid(search.param_grid)
    elif _lists_only(search):
        grid = ParameterGrid(search.param_distributions)
    else:
        return None
    return list(grid) if len(grid) <= _MAX_CANDIDATES else None


def _drawn(variants: list[Any], path: str, rows: Rows, n_fits: int | None) -> list[Step]:
    """Steps of a random search, which tries some of ``variants``: priced if all cost the same."""
    steps = walk_all(variants, path, rows)
    prices = {_total(walk(one, path, rows)) for one in variants}
    each = len(variants)
    result = []
    for step in steps:
        spent = step.epsilon
        if spent:
            spent = None if n_fits is None or len(prices) > 1 else spent * n_fits / each
        result.append(replace(step, epsilon=spent, n_fits=step.n_fits * (n_fits or 1) // each))
    return result


def _total(steps: Iterable[Step]) -> Fraction | None:
    """What steps spend in all; None if one is not known."""
    prices = [step.epsilon for step in steps]
    known = [price for price in prices if price is not None]
    return sum(known, Fraction(0)) if len(known) == len(prices) else None


def _touches_price(search: Any) -> bool:
    """Whether candidates that are not listed may change what a fit spends, or its noise."""
    if isinstance(search, GridSearchCV):
        return True
    inner = search.estimator.get_params(deep=True)
    return any(
        key.rpartition("__")[2] in ("epsilon", "random_state")
        or isinstance(inner.get(key), BaseEstimator)
        for part in _spaces(search)
        for key in part
    )


def _times(cv: Any, refit: bool) -> int | None:
    if isinstance(cv, str) and cv == "prefit":
        return 0
    k = 1 if isinstance(cv, float) else n_folds(cv)
    return None if k is None else k + refit


# How often meta-estimators of scikit-learn that keep exact numbers fit what they hold, where the
# rows do not decide it.
_WRAPPERS: list[tuple[Any, Callable[[Any], int | None]]] = [
    ((BaggingClassifier, BaggingRegressor), lambda e: e.n_estimators),
    ((StackingClassifier, StackingRegressor), lambda e: _times(e.cv, True)),
    (CalibratedClassifierCV, lambda e: _times(e.cv, e.ensemble is False)),
    (TunedThresholdClassifierCV, lambda e: _times(e.cv, True)),
]


def _held(estimator: Any) -> tuple[list[tuple[str, Any]], int | None]:
    """What a meta-estimator holds, with its name, and how often it fits that."""
    times = next(
        (count(estimator) for kind, count in _WRAPPERS if isinstance(estimator, kind)), None
    )
    several = getattr(estimator, "estimators", None)
    if isinstance(several, list):
        # A private estimator on top reads predictions of the others: its price is not known.
        top = getattr(estimator, "final_estimator", None)
        known = top is None or not (_inner_private(top) or hasattr(top, "_privacy_steps"))
        parts = [(part, inner) for part, inner in several if not isinstance(inner, str)]
        return parts, times if known else None
    return [("estimator", getattr(estimator, "estimator", None))], times


_COMPOSITES: list[tuple[Any, Callable[[Any, str, Rows], _Result]]] = [
    (Pipeline, _pipeline),
    (ColumnTransformer, _column_transformer),
    (FeatureUnion, _feature_union),
    (FrozenEstimator, _frozen),
    ((VotingClassifier, VotingRegressor), _voting),
    (TransformedTargetRegressor, _transformed_target),
    (FixedThresholdClassifier, _threshold),
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
    "SplineTransformer": lambda e: _declared(e.knots) and e.extrapolation != "error",
    "HashingVectorizer": lambda e: True,
    "FeatureHasher": lambda e: True,
    "MissingIndicator": lambda e: e.features == "all",
    "AdditiveChi2Sampler": lambda e: True,
    # Learn the number of columns, and random directions.
    "GaussianRandomProjection": lambda e: isinstance(e.n_components, numbers.Integral),
    "SparseRandomProjection": lambda e: isinstance(e.n_components, numbers.Integral),
    "RBFSampler": lambda e: e.gamma != "scale",
    # Makes many rows of one.
    "PatchExtractor": lambda e: False,
}
# Functions of NumPy that change each number by itself, besides its ufuncs.
_ELEMENTWISE = (np.clip, np.nan_to_num, np.round, np.around)


def _foreign(estimator: Any, name: str, rows: Rows) -> _Result:
    kind = _kind(estimator)
    reads = "raw rows and labels"
    family = _family(estimator)
    if rows.released:
        why = "learns from a release only, which is free."
        return [Step(name, kind, "a release", RELEASE, why)], rows
    if (kind, family) in (("FunctionTransformer", "sklearn"), ("FunctionSampler", "imblearn")):
        return _function(estimator, name, rows)
    if family == "sklearn" and _learns_nothing(estimator):
        why = "treats each row by itself and learns nothing from them."
        return [Step(name, kind, "nothing", PUBLIC, why)], rows
    label = name or kind
    inner = _inner_private(estimator)
    if inner:
        # Bagging, stacking, calibration, boosting: several fits to parts of the rows, and labels,
        # weights or predictions of true rows kept beside them.
        parts, times = _held(estimator)
        steps = []
        if times is not None:
            for part, held in parts:
                steps += walk_all([held], child(name, part), rows, times=times)
        done = f"fits {', '.join(inner)} an unknown number of times to parts of the rows"
        if times is not None:
            done = done.replace("an unknown number of", f"{times:,}")
        twin = "PrivateRegressor" if is_regressor(estimator) else "PrivateClassifier"
        step = Step(
            name,
            kind,
            reads,
            LEAKS if family == "sklearn" else UNKNOWN,
            f"{done}, and keeps what it reads of the true rows and labels beside it.",
            f"Turn it inside out: {twin}({kind}(...), synthesizer).",
            epsilon=None if times is None else Fraction(0),
        )
        return [*steps, step], replace(rows, mixed_by=rows.mixed_by or label)
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
        epsilon=None if isinstance(estimator, PrivateEstimator) else Fraction(0),
    )
    return [step], replace(rows, doubtful=rows.doubtful or label)


def _function(estimator: Any, name: str, rows: Rows) -> _Result:
    func = estimator.func
    if func is None or isinstance(func, np.ufunc) or any(func is one for one in _ELEMENTWISE):
        why = "passes the rows on." if func is None else "changes each number by itself."
        return [Step(name, _kind(estimator), "nothing", PUBLIC, why)], rows
    called = _called(func)
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


def _called(func: Any) -> str:
    return getattr(func, "__name__", repr(func))


def _learns_nothing(estimator: Any) -> bool:
    # Some predictors need no fit either (a Gaussian process has its prior), but do learn.
    if not hasattr(estimator, "transform") and not hasattr(estimator, "fit_resample"):
        return False
    rule = _FIXED.get(_kind(estimator))
    if rule is not None:
        return rule(estimator)
    try:
        return not get_tags(estimator).requires_fit
    except Exception:  # an estimator of somebody's, with tags of somebody's
        return False


def _inner_private(estimator: Any) -> list[str]:
    """Names of the private estimators that a meta-estimator holds, and fits."""
    if not hasattr(estimator, "get_params"):
        return []
    params = estimator.get_params(deep=True)
    frozen = [key for key, value in params.items() if isinstance(value, FrozenEstimator)]
    return sorted(
        {
            _kind(value)
            for key, value in params.items()
            if isinstance(value, PrivateEstimator) or hasattr(value, "_privacy_steps")
            if not any(key == other or key.startswith(f"{other}__") for other in frozen)
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
