"""What one ``fit`` of a composed estimator reads, step by step, and what it spends.

Knows scikit-learn's composites by their public classes, skdp's estimators by their base class, and
skdp's meta-estimators by a method, ``_privacy_steps``. Nothing is fitted and no row is read.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, log
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    ParameterGrid,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    check_cv,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ._base import PrivateEstimator
from ._foreign import Range, Refusal, call_name, carries, library, replaced, row_by_row
from ._random import NoiseSource
from ._validation import as_epsilon
from .accounting import PrivacyLedger
from .domain import Attribute, Categorical, Domain

__all__ = [
    "LEAKS",
    "PRIVATE",
    "RELEASE",
    "Rows",
    "Step",
    "child",
    "has_secret_folds",
    "is_inferred",
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
    range : Range
        What the steps before have made sure of, for every number.
    """

    released: bool = False
    mixed_by: str | None = None
    doubtful: str | None = None
    range: Range = field(default_factory=Range)


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
    seeded : bool
        Whether a seed that draws noise is all that is wrong with it.
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
    seeded: bool = False

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
    again: int = 0,
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
    again : int, default=0
        Number of further fits of one of the estimators, not known which: the most expensive is
        assumed, to be safe.
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
        fits = None if times is None else times + again * (i == dearest)
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
    """Number of folds of a splitter, or None where it is not known or depends on the rows."""
    if isinstance(cv, list | tuple):
        return len(cv)
    if not (cv is None or isinstance(cv, numbers.Integral) or hasattr(cv, "get_n_splits")):
        # An iterable may be read once only: counting would leave nothing to fit.
        return None
    try:
        return int(check_cv(cv).get_n_splits())
    except Exception:  # leave-one-out and the like ask for the rows; others may ask for anything
        return None


def has_secret_folds(cv: Any) -> bool:
    """Whether the fold of each record is drawn independently and kept secret."""
    ours = library(cv) == "skdp" and not replaced(cv) and getattr(cv, "_secret_folds", False)
    return ours and cv.random_state is None


def is_inferred(value: Any) -> bool:
    """Whether a declaration was read from records: a domain, an attribute or several of them."""
    if isinstance(value, Domain | Attribute):
        return value.inferred
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, list | tuple) and any(
        isinstance(one, Attribute) and one.inferred for one in value
    )


# --- the walk. Each visitor returns the steps, and what the step behind is given.

_Result = tuple[list[Step], Rows]


def _visit(estimator: Any, name: str, rows: Rows) -> _Result:
    if estimator is None or isinstance(estimator, str):
        why = "passes the rows on" if estimator != "drop" else "drops the columns"
        kind = "passthrough" if estimator is None else estimator
        if kind not in ("passthrough", "drop"):
            return _unknown(estimator, name, rows, f"is {kind!r}, which is not a step")
        return [Step(name, kind, "nothing", PUBLIC, why + ".")], rows
    if replaced(estimator):
        why = f"has a {replaced(estimator)} of its own, on the instance: it may do anything"
        return _unknown(estimator, name, rows, why)
    if library(estimator) not in ("skdp", "sklearn", "imblearn"):
        # Also a subclass of what is known: it may do anything.
        return _foreign(estimator, name, rows)
    if isinstance(estimator, PrivateEstimator):
        return _private(estimator, name, rows), replace(rows, range=Range())
    if library(estimator) == "skdp" and hasattr(estimator, "_privacy_steps"):
        steps = estimator._privacy_steps(name, rows)
        if any(is_inferred(value) for value in estimator.get_params(deep=False).values()):
            steps.append(_of_records(Step(name, _kind(estimator), "nothing", PRIVATE, "")))
        if not _is_listed(getattr(estimator, "param_grid", {})):
            steps += _unknown(estimator, name, rows, "has candidates that cannot be listed")[0]
        return steps, replace(rows, range=Range())
    for kind, visit in _COMPOSITES:
        if isinstance(estimator, kind):
            steps, behind = visit(estimator, name, rows)
            if kind not in (Pipeline, ColumnTransformer, FeatureUnion):
                # What it hands on are predictions.
                behind = replace(behind, range=Range())
            return [*steps, *_brought(estimator, name, rows)], behind
    if _is_halving(estimator):
        return _halving(estimator, name, rows)
    return _foreign(estimator, name, rows)


# Parameters of composites that are visited, each by itself.
_PARTS = {
    "estimator",
    "estimators",
    "param_distributions",
    "param_grid",
    "regressor",
    "remainder",
    "steps",
    "transformer",
    "transformer_list",
    "transformers",
}


def _brought(composite: Any, name: str, rows: Rows) -> list[Step]:
    """A step, where parameters of a composite behind a release bring true rows along."""
    if not rows.released or isinstance(composite, FrozenEstimator):
        return []
    params = composite.get_params(deep=False)
    what = carries([value for key, value in params.items() if key not in _PARTS], _is_paid)
    return _brings(composite, name, what) if what else []


def _brings(estimator: Any, name: str, what: str) -> list[Step]:
    why = f"reads a release, but brings along {what}."
    remedy = (
        "Freeze fitted private estimators only; give functions that name nothing but their "
        "arguments and libraries, and lists of public values in place of tables."
    )
    return [Step(name, _kind(estimator), "a release", UNKNOWN, why, remedy)]


def _unknown(estimator: Any, name: str, rows: Rows, why: str) -> _Result:
    step = Step(
        name,
        _kind(estimator),
        "a release" if rows.released else "raw rows and labels",
        UNKNOWN,
        why + ".",
        "Train it on a release, or make sure that it learns nothing.",
        epsilon=None if isinstance(estimator, PrivateEstimator) else Fraction(0),
    )
    return [step], replace(rows, doubtful=rows.doubtful or name or _kind(estimator), range=Range())


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
    declared = [*estimator.get_params(deep=False).values(), getattr(estimator, "domain_", None)]
    if any(is_inferred(value) for value in declared):
        # Also where it reads a release: what was inferred is exact.
        return [_of_records(step)]
    if rows.released and getattr(estimator, "ledger", None) is None:
        why = "reads a release, which is free."
        return [replace(step, verdict=RELEASE, why=why, epsilon=Fraction(0))]
    if rows.released:
        why = "reads a release, which is free; its ledger is charged all the same."
        return [replace(step, verdict=RELEASE, why=why, remedy="ledger=None.")]
    loss = getattr(estimator, "privacy_loss_", None)
    given = estimator.random_state
    # Anything but the system's source: a source of somebody's may repeat its words.
    if not (given is None or type(given) is NoiseSource) or (loss is not None and loss.seeded):
        return [_seeded(step)]
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


def _seeded(step: Step, by: str = "") -> Step:
    why = "its noise comes from a seed"
    if by:
        why += f" that {by} sets, whatever random_state says"
    return replace(
        step,
        verdict=LEAKS,
        why=f"{why}: anyone who knows or guesses it can subtract the noise.",
        remedy="Turn it inside out: the ensemble inside, on a release."
        if by
        else "random_state=None, the operating system's entropy.",
        seeded=True,
    )


def _of_records(step: Step) -> Step:
    return replace(
        step,
        verdict=LEAKS,
        why="its domain was inferred from the records, exactly and for free.",
        remedy="Declare the domain from public knowledge.",
    )


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
        known = library(thawed) == "skdp" and not replaced(thawed)
        if i < last and isinstance(thawed, PrivateEstimator) and resamples and known:
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
    given, ranges = rows, []
    for part, estimator in parts:
        more, behind = _visit(estimator, child(name, part), given)
        steps += more
        if estimator != "drop":
            ranges.append(behind.range)
        rows = replace(
            rows,
            mixed_by=rows.mixed_by or behind.mixed_by,
            doubtful=rows.doubtful or behind.doubtful,
        )
    known = ranges[0] if ranges else Range()
    for other in ranges:
        known = known.joined(other)
    return steps, replace(rows, range=known)


def _column_transformer(estimator: ColumnTransformer, name: str, rows: Rows) -> _Result:
    kind = _kind(estimator)
    parts = [(part, inner) for part, inner, _ in estimator.transformers]
    if not isinstance(estimator.remainder, str):
        parts.append(("remainder", estimator.remainder))
    steps, behind = _parallel(parts, name, rows)
    if estimator.remainder == "passthrough":
        behind = replace(behind, range=behind.range.joined(rows.range) if parts else rows.range)
    if estimator.transformer_weights is not None:
        behind = replace(behind, range=Range())
    for part, _, columns in estimator.transformers:
        # A selector of scikit-learn reads names and types only.
        if not callable(columns) or (type(columns) is make_column_selector):
            continue
        path = child(name, part)
        if rows.released:
            what = carries(columns, _is_paid)
            steps += _brings(estimator, path, what) if what else []
            continue
        why = f"has its columns chosen by {call_name(columns)}, which may look at the values."
        remedy = "Name the columns, or take make_column_selector."
        steps.append(Step(path, kind, "raw rows", UNKNOWN, why, remedy))
        behind = replace(behind, doubtful=behind.doubtful or path)
    names = estimator.verbose_feature_names_out
    if not rows.released and callable(names) and carries(names, _is_paid):
        steps += _unknown(estimator, name, rows, f"names its columns by {call_name(names)}")[0]
    if not rows.released and estimator.sparse_threshold and any(_sparse(e) for _, e in parts):
        why = "decides by the exact share of zeros whether its output is sparse."
        remedy = "sparse_threshold=0, or sparse_output=False in the encoder."
        steps.append(Step(name, kind, "raw rows", LEAKS, why, remedy))
    steps += _weighted(estimator, name, rows)
    return steps, behind


def _sparse(estimator: Any) -> bool:
    """Whether a step of a column transformer may hand on sparse columns."""
    if estimator is None or isinstance(estimator, str):
        return False
    if isinstance(estimator, Pipeline):
        return any(_sparse(step) for _, step in estimator.steps)
    if isinstance(estimator, FeatureUnion | ColumnTransformer):
        several = getattr(estimator, "transformer_list", None) or estimator.transformers
        return any(_sparse(part[1]) for part in several)
    # Of all that is known to be public.
    return any(getattr(estimator, option, 0) is True for option in ("sparse_output", "sparse"))


def _weighted(estimator: Any, name: str, rows: Rows) -> list[Step]:
    weights = estimator.transformer_weights
    small = type(weights) is dict and all(
        isinstance(weight, int | float) and abs(weight) <= 1 for weight in weights.values()
    )
    if rows.released or weights is None or small:
        return []
    why = "warns where a number times its weight is too large."
    remedy = "Weights of at most 1, or none."
    return [Step(name, _kind(estimator), "raw rows", UNKNOWN, why, remedy)]


def _feature_union(estimator: FeatureUnion, name: str, rows: Rows) -> _Result:
    steps, behind = _parallel(estimator.transformer_list, name, rows)
    return [*steps, *_weighted(estimator, name, rows)], replace(behind, range=Range())


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
    if rows.released:
        return [step], rows
    doubtful = rows.doubtful or (None if paid else name or _kind(inner))
    return [step], replace(rows, doubtful=doubtful, range=Range())


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
        and all(step.sound for one, on in _fitted_parts(fitted) for step in walk(one, rows=on))
    )


# Rows on which no step that treats each row by itself can raise.
_TAME = Rows(range=Range(0, 1, False))


def _fitted_parts(estimator: Any) -> list[tuple[Any, Rows]]:
    """What composites fitted, and on what: their parameters may have been set anew since."""
    parts: list[tuple[Any, Rows]] = []
    for one in [estimator, *_deep(estimator)]:
        if isinstance(one, FrozenEstimator):
            continue
        if library(one) == "skdp":
            held = vars(one)
            # A clone: that it was trained on the release is no warm start.
            parts += [
                (clone(held[name]), Rows(released=True)) for name in ("estimator_",) if name in held
            ]
            names = ("synthesizer_", "best_estimator_")
            parts += [(held[name], _TAME) for name in names if name in held]
            continue
        held = [value for name, value in vars(one).items() if name.endswith("_")]
        while held:
            value = held.pop()
            if isinstance(value, list | tuple):
                held += value
            elif isinstance(value, Mapping):
                held += value.values()
            elif isinstance(value, np.ndarray) and value.dtype == object:
                held += value.tolist()
            elif hasattr(value, "fit") and not isinstance(value, type):
                parts.append((value, _TAME))
    return parts


def _deep(estimator: Any) -> list[Any]:
    """Estimators within an estimator, those within skdp's own left out."""
    params = _params(estimator)
    inner = estimator.get_params(deep=True) if params else {}
    ours = [key for key, value in inner.items() if library(value) == "skdp"]
    return [
        value
        for key, value in inner.items()
        if hasattr(value, "fit") and not any(key.startswith(f"{other}__") for other in ours)
    ]


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
        outcome = row_by_row(_as_transformer(estimator), rows.range)
        path = child(name, "func")
        steps, behind = _judged(outcome, path, _kind(estimator), rows, path)
    own = Step(
        name,
        _kind(estimator),
        "raw labels",
        LEAKS,
        "raises where a target is missing or infinite, and warns where the inverse does not give "
        "one back, which reveals something about one record.",
        "Turn it inside out: PrivateRegressor(TransformedTargetRegressor(...), synthesizer).",
    )
    # What holds of targets says nothing of the rows.
    behind = replace(behind, range=rows.range)
    inner = _visit(estimator.regressor, child(name, "regressor"), behind)[0]
    return [*steps, *inner, own], rows


def _as_transformer(estimator: TransformedTargetRegressor) -> FunctionTransformer:
    return FunctionTransformer(
        estimator.func, inverse_func=estimator.inverse_func, check_inverse=False
    )


def _threshold(estimator: FixedThresholdClassifier, name: str, rows: Rows) -> _Result:
    steps = _visit(estimator.estimator, child(name, "estimator"), rows)[0]
    if rows.released:
        why = "compares with a threshold that was declared."
        return [*steps, Step(name, _kind(estimator), "nothing", PUBLIC, why)], rows
    own = Step(
        name,
        _kind(estimator),
        "raw labels",
        LEAKS,
        "raises unless exactly two labels occur in the raw data.",
        f"PrivateClassifier({_kind(estimator)}(...), synthesizer).",
    )
    return [*steps, own], rows


def _search(search: Any, name: str, rows: Rows) -> _Result:
    """Grid and random search: every candidate is fitted to every fold, and scored on true rows."""
    path, kind = child(name, "estimator"), _kind(search)
    k, variants = n_folds(search.cv), _variants(search)
    n_candidates = _n_candidates(search)
    n_fits = None if k is None else k * n_candidates + bool(search.refit)
    if variants is None:
        # Too many, or drawn from distributions: looked at as it is, its price perhaps not known.
        fixed = _are_behind(search)
        steps = walk_all([search.estimator], path, rows, times=n_fits if fixed else None)
    else:
        fixed = True
        if isinstance(search, GridSearchCV):
            steps = walk_all(variants, path, rows, times=k, again=int(bool(search.refit)))
        else:
            steps = _drawn(variants, path, rows, n_fits)
    # Candidates that were not listed have not been checked.
    what = carries(_space(search), _is_paid) if variants is None else ""
    steps += _brings(search, name, what) if what else []
    if callable(search.refit) and carries(search.refit, _is_paid):
        steps += _unknown(search, name, rows, f"lets {call_name(search.refit)} choose")[0]
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
    if not has_secret_folds(search.cv):
        seed = getattr(search.cv, "_secret_folds", False)
        why = "anyone who knows the seed of its folds knows the fold of every record"
        if not seed:
            why = (
                "its folds divide the rows by position: adding one record moves others from fold "
                "to fold, and the noise covers a change of one row only"
            )
        own = replace(
            own,
            verdict=LEAKS,
            why=f"{fits}; {why}.",
            remedy="cv=PrivateKFold(...), without a seed.",
        )
    elif not fixed or not (variants or _are_numbers(_space(search))):
        own = replace(
            own,
            verdict=UNKNOWN,
            why=f"{fits}; its candidates are too many to look at, or draw what a fit spends.",
            remedy="Give lists of values, and fewer of them.",
        )
    return [*steps, own], rows


def _score_price(scoring: Any) -> Fraction | None:
    """What one scoring of one model spends; None where a score is exact."""
    # Nor a dict of somebody's, which may list others than those that are used.
    scorers = list(scoring.values()) if type(scoring) is dict else [scoring]
    ours = [library(scorer) == "skdp" and hasattr(scorer, "_score_epsilon") for scorer in scorers]
    if not ours or not all(ours):
        return None
    return sum((scorer._score_epsilon for scorer in scorers), Fraction(0))


def _space(search: Any) -> Any:
    return search.param_grid if hasattr(search, "param_grid") else search.param_distributions


def _is_listed(space: Any) -> bool:
    """Whether all candidates of a search can be listed, today and at the fit."""
    return all(
        type(part) is dict
        and all(type(values) in (list, tuple, range, np.ndarray) for values in part.values())
        for part in _parts_of(space)
    )


def _n_candidates(search: Any) -> int:
    drawn = getattr(search, "n_iter", None)
    if drawn is None:
        drawn = getattr(search, "n_candidates", None)
    listed = len(ParameterGrid(_space(search))) if _is_listed(_space(search)) else None
    if drawn is None:
        return len(ParameterGrid(_space(search)))
    return drawn if listed is None else min(drawn, listed)


def _variants(search: Any) -> list[Any] | None:
    """All that a search may fit; None where they are too many, or cannot be listed or cloned."""
    if not _is_listed(_space(search)):
        return None
    grid = ParameterGrid(_space(search))
    if len(grid) > _MAX_CANDIDATES:
        return None
    try:
        return [clone(search.estimator).set_params(**each) for each in grid]
    except TypeError:  # it holds a generator, say: the fit will refuse, too
        return None


def _parts_of(space: Any) -> list[Any]:
    return list(space) if isinstance(space, list | tuple) else [space]


def _are_behind(search: Any) -> bool:
    """Whether candidates that are not listed change only what is trained on a release.

    Then they change neither the price of a fit nor what it reads.
    """
    return all(
        _is_behind(search.estimator, key) for part in _parts_of(_space(search)) for key in part
    )


def _are_numbers(space: Any) -> bool:
    """Whether what a search draws holds numbers, or can be listed."""
    return all(
        library(values) == "scipy" or _is_listed({"": values})
        for part in _parts_of(space)
        for values in part.values()
    )


def _is_behind(estimator: Any, key: str) -> bool:
    """Whether a parameter belongs to what is trained on a release."""
    first, _, rest = key.partition("__")
    if library(estimator) == "skdp" and hasattr(estimator, "_train_on"):
        return first == "estimator" and bool(rest)
    inner = estimator.get_params(deep=True).get(first)
    return bool(rest) and hasattr(inner, "get_params") and _is_behind(inner, rest)


def _is_halving(estimator: Any) -> bool:
    # Known by name: the classes are there only for whoever enabled them.
    kinds = ("HalvingGridSearchCV", "HalvingRandomSearchCV")
    return library(estimator) == "sklearn" and _kind(estimator) in kinds


def _halving(search: Any, name: str, rows: Rows) -> _Result:
    """Successive halving: of each round's candidates one in ``factor`` comes to the next.

    How many rounds there are depends on the number of rows, which is private. There are never more
    than are needed to leave fewer than ``factor`` candidates: fits of all those rounds are an
    upper bound that is public, and exact where the rows suffice. Which candidates come further
    depends on scores: each further fit is priced as the most expensive one.
    """
    if rows.released:
        return _foreign(search, name, rows)
    path, k, variants = child(name, "estimator"), n_folds(search.cv), _variants(search)
    known = search.resource == "n_samples" or _is_behind(search.estimator, search.resource)
    n_candidates = _n_candidates(search)
    fits = None
    if k is not None and known and isinstance(n_candidates, numbers.Integral) and n_candidates:
        rounds = [int(n_candidates)]
        for _ in range(floor(log(n_candidates, search.factor))):
            rounds.append(ceil(rounds[-1] / search.factor))
        fits = k * sum(rounds) + bool(search.refit)
    if variants is None:
        steps = walk_all(
            [search.estimator], path, rows, times=fits if _are_behind(search) else None
        )
    elif fits is None or k is None:
        steps = walk_all(variants, path, rows, times=None)
    elif hasattr(search, "param_grid"):
        again = fits - k * len(variants)
        steps = walk_all(variants, path, rows, times=k, again=again)
    else:
        steps = _drawn(variants, path, rows, fits)
    own = Step(
        name,
        _kind(search),
        "raw rows and labels",
        LEAKS,
        "fits to parts of the rows by position, keeps how many rows there are, and its scores "
        "choose best_params_.",
        "PrivateGridSearchCV, or search on the synthetic rows of one release.",
    )
    return [*steps, own], rows


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


def _private_inside(estimator: Any) -> Any:
    """The private model that a pipeline, a search or the like ends in, and its release."""
    while True:
        if isinstance(estimator, Pipeline) and estimator.steps:
            estimator = estimator.steps[-1][1]
        elif isinstance(getattr(estimator, "synthesizer", None), PrivateEstimator):
            return estimator, estimator.synthesizer
        elif isinstance(estimator, PrivateEstimator):
            return estimator, estimator
        elif hasattr(estimator, "estimator"):
            estimator = estimator.estimator
        else:
            return None, None


def _n_labels(meta: Any) -> int | None:
    """How many labels ``y`` may have, as declared inside; None where that is not declared.

    Labels that occur in ``y`` without being declared are not counted, because ``y`` is private.
    """
    model, release = _private_inside(_inner(meta))
    declared = getattr(model, "classes", None)
    declared = getattr(release, "classes", None) if declared is None else declared
    target: Any = getattr(release, "target", None)
    domain = getattr(release, "domain", None)
    if declared is None and isinstance(domain, Domain | Mapping) and target in domain:
        declared = domain[target]
    if isinstance(declared, Categorical):
        declared = declared.categories
    if isinstance(declared, Attribute):
        return declared.n_values if getattr(declared, "integer", False) else None
    labels = None if declared is None else set(np.asarray(declared).ravel().tolist())
    # 0 and 1 are what each inner model is given, and tell nothing of the labels outside.
    return None if labels is None or labels <= {0, 1} else len(labels)


def _n_features(meta: Any) -> int | None:
    """How many columns ``X`` has: as seen by a fit, which is part of the schema, or declared."""
    seen = getattr(meta, "n_features_in_", None)
    if isinstance(seen, numbers.Integral):
        return int(seen)
    release = _private_inside(_inner(meta))[1]
    domain = getattr(release, "domain", None)
    if isinstance(domain, Domain | Mapping):
        return len(domain) - (getattr(release, "target", None) in domain)
    return len(domain) if isinstance(domain, list | tuple) else None


def _n_outputs(meta: Any) -> int | None:
    """How many columns ``y`` has: as seen by a fit, which is part of the schema, or declared."""
    order = getattr(meta, "order", None)
    if order is not None and not isinstance(order, str):
        return len(order)
    seen = getattr(meta, "estimators_", None)
    return None if seen is None else len(seen)


def _inner(meta: Any) -> Any:
    inner = getattr(meta, "estimator", None)
    # Chains called it so before scikit-learn 1.7.
    return inner if hasattr(inner, "fit") else getattr(meta, "base_estimator", None)


def _times(cv: Any, refit: bool) -> int | None:
    if isinstance(cv, str) and cv == "prefit":
        return 0
    k = 1 if isinstance(cv, float) else n_folds(cv)
    return None if k is None else k + refit


def _chain_times(chain: Any) -> int | None:
    """One fit for each output, and cross-validation for all but the last where cv is given."""
    n, k = _n_outputs(chain), 0 if chain.cv is None else n_folds(chain.cv)
    return None if n is None or k is None else n + (n - 1) * k


def _pair_times(meta: Any) -> int | None:
    """One fit for each pair of labels."""
    n = _n_labels(meta)
    return None if n is None else n * (n - 1) // 2


def _rest_times(meta: Any) -> int | None:
    """One fit for each label, but one in all for two labels."""
    n = _n_labels(meta)
    return None if n is None else (n if n > 2 else 1)


def _code_times(meta: Any) -> int | None:
    n = _n_labels(meta)
    return None if n is None else int(n * meta.code_size)


def _elimination_times(n: int, keep: Any, step: Any) -> int:
    """Fits of an elimination from ``n`` columns to ``keep``: one before each step, and a last."""
    if keep is None:
        keep = n // 2
    elif not isinstance(keep, numbers.Integral):
        keep = int(n * keep)
    size = int(max(1, step * n)) if 0 < step < 1 else int(step)
    return ceil(max(n - keep, 0) / size) + 1


def _rfe_times(rfe: Any) -> int | None:
    n = _n_features(rfe)
    return None if n is None else _elimination_times(n, rfe.n_features_to_select, rfe.step)


def _rfecv_times(rfe: Any) -> int | None:
    """An elimination in each fold, one on all rows, and a last fit.

    Where the elimination on all rows stops depends on scores: at the latest at the fewest.
    """
    n, k = _n_features(rfe), n_folds(rfe.cv)
    if n is None or k is None:
        return None
    return (k + 1) * _elimination_times(n, rfe.min_features_to_select, rfe.step) + 1


def _sequential_times(selector: Any) -> int | None:
    """Cross-validation of each column that is left, in each round.

    With a tolerance the rounds end by scores: at the latest with one column left.
    """
    n, k, keep = _n_features(selector), n_folds(selector.cv), selector.n_features_to_select
    if n is None or k is None:
        return None
    if isinstance(keep, str):
        rounds = n // 2 if selector.tol is None else n - 1
    else:
        keep = int(keep if isinstance(keep, numbers.Integral) else n * keep)
        rounds = keep if selector.direction == "forward" else n - keep
    return k * sum(n - i for i in range(max(min(rounds, n), 0)))


# How often meta-estimators of scikit-learn that keep exact numbers fit what they hold: from
# parameters, the schema and declarations. All fits read the same people, or parts of them: by
# sequential composition their prices add up. Where scores or rows decide how many there are, the
# largest number that they can decide for.
_WRAPPERS: list[tuple[Any, Callable[[Any], int | None]]] = [
    ((BaggingClassifier, BaggingRegressor), lambda e: e.n_estimators),
    ((StackingClassifier, StackingRegressor), lambda e: _times(e.cv, True)),
    (CalibratedClassifierCV, lambda e: _times(e.cv, e.ensemble is False)),
    (TunedThresholdClassifierCV, lambda e: _times(e.cv, True)),
    (OneVsRestClassifier, _rest_times),
    (OneVsOneClassifier, _pair_times),
    (OutputCodeClassifier, _code_times),
    ((MultiOutputClassifier, MultiOutputRegressor), _n_outputs),
    ((ClassifierChain, RegressorChain), _chain_times),
    (RFECV, _rfecv_times),
    (RFE, _rfe_times),
    (SequentialFeatureSelector, _sequential_times),
    (SelectFromModel, lambda e: 0 if e.prefit else 1),
]
# Those that set every random_state inside what they hold, that of the noise too.
_SEEDERS = (BaggingClassifier, BaggingRegressor, AdaBoostClassifier, AdaBoostRegressor)


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
    return [("estimator", _inner(estimator))], times


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


def _foreign(estimator: Any, name: str, rows: Rows) -> _Result:
    kind, family, label = _kind(estimator), library(estimator), name or _kind(estimator)
    if rows.released:
        what = carries(estimator, _is_paid)
        if what:
            return _brings(estimator, name, what), rows
        why = "learns from a release only, which is free."
        return [Step(name, kind, "a release", RELEASE, why)], rows
    outcome = row_by_row(estimator, rows.range)
    if (kind, family) == ("FunctionSampler", "imblearn"):
        why = "raises unless two labels occur in the raw data"
        func = estimator.func
        if func is not None:
            why += f", and calls {call_name(func)}, which may let a row depend on the others"
        outcome = Refusal(f"{why}.", "Put it behind the release.", alone=func is None)
    if outcome is not None:
        return _judged(outcome, name, kind, rows, label)
    inner = _inner_private(estimator)
    if inner:
        # Bagging, stacking, calibration, boosting: several fits to parts of the rows, and labels,
        # weights or predictions of true rows kept beside them.
        parts, times = _held(estimator)
        steps = []
        if times is not None:
            for part, held in parts:
                steps += walk_all([held], child(name, part), rows, times=times)
        if isinstance(estimator, _SEEDERS):
            steps = [
                _seeded(step, kind)
                if step.sound and "random_state" in _params(step.estimator)
                else step
                for step in steps
            ]
        done = f"fits {', '.join(inner)} an unknown number of times to parts of the rows"
        if times is not None:
            done = done.replace("an unknown number of", f"{times:,}")
            if isinstance(
                estimator, OneVsRestClassifier | OneVsOneClassifier | OutputCodeClassifier
            ):
                done += ", if y has no label that is not declared"
        twin = "PrivateRegressor" if is_regressor(estimator) else "PrivateClassifier"
        step = Step(
            name,
            kind,
            "raw rows and labels",
            LEAKS if family == "sklearn" else UNKNOWN,
            f"{done}, and keeps what it reads of the true rows and labels beside it.",
            f"Turn it inside out: {twin}({kind}(...), synthesizer).",
            epsilon=None if times is None else Fraction(0),
        )
        return [*steps, step], replace(rows, mixed_by=rows.mixed_by or label, range=Range())
    if family in ("sklearn", "imblearn", "xgboost", "lightgbm", "catboost"):
        step = Step(
            name,
            kind,
            "raw rows and labels",
            LEAKS,
            "is fitted to the true rows and keeps what it learned, exactly.",
            _remedy(estimator),
        )
        return [step], replace(rows, mixed_by=rows.mixed_by or label, range=Range())
    return _unknown(estimator, name, rows, "is not known: it may keep anything of the true rows")


def _judged(
    outcome: Range | Refusal | None, name: str, kind: str, rows: Rows, label: str
) -> _Result:
    """The step of a transformer whose class is known, and what the step behind is given."""
    if isinstance(outcome, Range):
        why = "transforms each row independently and learns nothing from them."
        return [Step(name, kind, "nothing", PUBLIC, why)], replace(rows, range=outcome)
    assert outcome is not None
    behind = replace(rows, range=Range())
    if outcome.learns:
        behind = replace(behind, mixed_by=rows.mixed_by or label)
    elif not outcome.alone:
        behind = replace(behind, doubtful=rows.doubtful or label)
    verdict = LEAKS if outcome.alone or outcome.learns else UNKNOWN
    return [Step(name, kind, "raw rows", verdict, outcome.why, outcome.remedy)], behind


def _params(estimator: Any) -> dict[str, Any]:
    return estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}


def _inner_private(estimator: Any) -> list[str]:
    """Names of the private estimators that a meta-estimator holds, and fits."""
    try:
        params = estimator.get_params(deep=True)
    except Exception:  # an estimator of somebody's, or none
        return []
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
