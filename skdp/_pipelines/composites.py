"""Composites of scikit-learn, taken apart: pipelines, columns, unions, votes, frozen estimators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._base import PrivateEstimator
from .carried import carries
from .fits import has_secret_folds, inner_of, n_folds, n_halving_fits, wrapper_fits
from .origin import call_name, kind_of, library, replaced
from .rules import AS_THEY_CAME, is_number, row_by_row
from .steps import (
    LEAKS,
    PRIVATE,
    PUBLIC,
    RELEASE,
    TAME,
    UNKNOWN,
    Range,
    Refusal,
    Rows,
    Step,
    child,
    total_price,
)
from .verdicts import of_private, released_by, seeded, step_of, unknown
from .walk import (
    Result,
    are_behind,
    are_numbers,
    n_candidates,
    space_of,
    variants_of,
    visit,
    visits,
    walk,
    walk_all,
)

# --- verdicts on estimators of other libraries and of users
#
# Some treat each row independently (`row_by_row`); some hold private estimators and fit them
# repeatedly; all others are fitted to the true rows and keep what they learned.

# --- whether what a fitted estimator learned was paid for, and what its parameters carry

# Rows on which no step that treats each row independently can raise.
_TAME = Rows(range=Range(0, 1, False, TAME))
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


def is_paid(fitted: Any) -> bool:
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


def brought_along(estimator: Any, name: str, thing: object, rows: Rows) -> list[Step]:
    """A step, if ``thing`` carries true rows into an ``estimator`` that reads a release."""
    what = carries(thing, is_paid, rows.lengths)
    if not what:
        return []
    why = f"reads a release, but carries {what}."
    remedy = (
        "Freeze fitted private estimators only; give functions that refer only to their "
        "arguments and libraries, and lists of public values in place of tables."
    )
    return [Step(name, kind_of(estimator), "a release", UNKNOWN, why, remedy)]


def brought_by(composite: Any, name: str, rows: Rows) -> list[Step]:
    """A step, if parameters of a composite after a release carry true rows."""
    if not rows.released or isinstance(composite, FrozenEstimator):
        return []
    params = composite.get_params(deep=False)
    own = [value for key, value in params.items() if key not in _PARTS]
    return [step for value in own for step in brought_along(composite, name, value, rows)][:1]


def _fitted_parts(estimator: Any) -> list[tuple[Any, Rows]]:
    """What composites fitted, and on what; their parameters may have been changed since."""
    parts: list[tuple[Any, Rows]] = []
    for one in [estimator, *_deep(estimator)]:
        if isinstance(one, FrozenEstimator):
            continue
        held = vars(one)
        if library(one) == "skdp":
            if "estimator_" in held:
                # A clone, because training on the release is not a warm start.
                parts.append((clone(held["estimator_"]), Rows(released=True)))
            names = ("synthesizer_", "best_estimator_")
            parts += [(held[name], _TAME) for name in names if name in held]
            continue
        learned = [value for name, value in held.items() if name.endswith("_")]
        parts += [(value, _TAME) for value in _estimators_in(learned)]
    return parts


def _estimators_in(values: list[Any]) -> list[Any]:
    """Estimators among values, and in lists, mappings and arrays of objects among them."""
    found, left = [], list(values)
    while left:
        value = left.pop()
        if isinstance(value, list | tuple):
            left += value
        elif isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, np.ndarray) and value.dtype == object:
            left += value.tolist()
        elif hasattr(value, "fit") and not isinstance(value, type):
            found.append(value)
    return found


def _deep(estimator: Any) -> list[Any]:
    """Estimators within an estimator, those within skdp's own left out."""
    inner = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
    ours = [key for key, value in inner.items() if library(value) == "skdp"]
    return [
        value
        for key, value in inner.items()
        if hasattr(value, "fit") and not any(key.startswith(f"{other}__") for other in ours)
    ]


# --- the verdicts

# Libraries whose estimators are known to keep what they learn.
_LEARNERS = ("sklearn", "imblearn", "xgboost", "lightgbm", "catboost")
# Meta-estimators that set every random_state inside them, that of the noise too.
_SEEDERS = (BaggingClassifier, BaggingRegressor, AdaBoostClassifier, AdaBoostRegressor)


@visits(object)
def foreign(estimator: Any, name: str, rows: Rows) -> Result:
    """An estimator that no other visitor knows."""
    if rows.released:
        why = "learns from a release only, which is free."
        learns = step_of(estimator, name, rows, RELEASE, why)
        return brought_along(estimator, name, estimator, rows) or [learns], rows
    outcome = row_by_row(estimator, rows.range)
    if (kind_of(estimator), library(estimator)) == ("FunctionSampler", "imblearn"):
        outcome = _sampler(estimator)
    if outcome is not None:
        return judged(outcome, name, kind_of(estimator), rows)
    steps = _wrapper(estimator, name, rows)
    if not steps:
        if library(estimator) not in _LEARNERS:
            why = "is not known: it may keep anything of the true rows"
            return unknown(estimator, name, rows, why)
        why = "is fitted to the true rows and keeps what it learned, exactly."
        steps = [step_of(estimator, name, rows, LEAKS, why, _remedy(estimator))]
    mixed = rows.mixed_by or name or kind_of(estimator)
    return steps, replace(rows, mixed_by=mixed, range=Range())


def judged(outcome: Range | Refusal | None, name: str, kind: str, rows: Rows) -> Result:
    """The step of a transformer whose class is known, and what the next step is given."""
    if isinstance(outcome, Range):
        why = "transforms each row independently and learns nothing from them."
        return [Step(name, kind, "nothing", PUBLIC, why)], replace(rows, range=outcome)
    assert outcome is not None
    behind = replace(rows, range=Range())
    if outcome.learns:
        behind = replace(behind, mixed_by=rows.mixed_by or name or kind)
    elif not outcome.alone:
        behind = replace(behind, doubtful=rows.doubtful or name or kind)
    verdict = LEAKS if outcome.alone or outcome.learns else UNKNOWN
    return [Step(name, kind, "raw rows", verdict, outcome.why, outcome.remedy)], behind


def _sampler(sampler: Any) -> Refusal:
    """imbalanced-learn's sampler that calls a function."""
    why = "raises unless two labels occur in the raw data"
    if sampler.func is not None:
        why += f", and calls {call_name(sampler.func)}, which may let a row depend on the others"
    return Refusal(f"{why}.", "Put it behind the release.", alone=sampler.func is None)


# --- meta-estimators: bagging, stacking, calibration, boosting, elimination of features


def _wrapper(meta: Any, name: str, rows: Rows) -> list[Step]:
    """Steps of a meta-estimator that holds private estimators; none where it holds none.

    It fits them several times, to parts of the rows, and keeps labels, weights or predictions of
    true rows beside them.
    """
    inner = _inner_private(meta)
    if not inner:
        return []
    parts, times = _held(meta)
    steps = []
    if times is not None:
        for part, held in parts:
            steps += walk_all([held], child(name, part), rows, times=times)
    if isinstance(meta, _SEEDERS):
        steps = [
            seeded(step, kind_of(meta))
            if step.sound and hasattr(step.estimator, "random_state")
            else step
            for step in steps
        ]
    count = "an unknown number of" if times is None else f"{times:,}"
    why = f"fits {', '.join(inner)} {count} times to parts of the rows"
    if times is not None and isinstance(
        meta, OneVsRestClassifier | OneVsOneClassifier | OutputCodeClassifier
    ):
        why += ", if y has no label that is not declared"
    why += ", and keeps what it reads of the true rows and labels beside it."
    remedy = f"Turn it inside out: {_private_twin(is_regressor(meta), meta)}"
    verdict = LEAKS if library(meta) == "sklearn" else UNKNOWN
    own = step_of(meta, name, rows, verdict, why, remedy)
    return [*steps, replace(own, epsilon=None if times is None else Fraction(0))]


def _inner_private(estimator: Any) -> list[str]:
    """Names of the private estimators that a meta-estimator holds, and fits."""
    try:
        params = estimator.get_params(deep=True)
    except Exception:  # a user's estimator may raise anything
        return []
    frozen = [key for key, value in params.items() if isinstance(value, FrozenEstimator)]
    return sorted(
        {
            kind_of(value)
            for key, value in params.items()
            if isinstance(value, PrivateEstimator) or hasattr(value, "_privacy_steps")
            if not any(key == other or key.startswith(f"{other}__") for other in frozen)
        }
    )


def _held(meta: Any) -> tuple[list[tuple[str, Any]], int | None]:
    """What a meta-estimator holds, with its name, and how often it fits that."""
    times = wrapper_fits(meta)
    several = getattr(meta, "estimators", None)
    if not isinstance(several, list):
        return [("estimator", inner_of(meta))], times
    # A private estimator on top reads predictions of the others: its price is not known.
    top = getattr(meta, "final_estimator", None)
    known = top is None or not (_inner_private(top) or hasattr(top, "_privacy_steps"))
    parts = [(part, inner) for part, inner in several if not isinstance(inner, str)]
    return parts, times if known else None


# --- what to do instead


def _private_twin(regressor: bool, estimator: Any) -> str:
    twin = "PrivateRegressor" if regressor else "PrivateClassifier"
    return f"{twin}({kind_of(estimator)}(...), synthesizer)."


def _remedy(estimator: Any) -> str:
    if hasattr(estimator, "fit_resample"):
        return "Use a synthesizer of skdp in its place: it draws synthetic rows."
    task = _task(estimator)
    if task in ("classifier", "regressor"):
        return _private_twin(task == "regressor", estimator)
    if task == "clusterer":
        return "DPKMeans, or cluster the synthetic rows of a release."
    if kind_of(estimator) in ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler"):
        return "PrivateStandardScaler, or put it behind the release, inside PrivateClassifier."
    if hasattr(estimator, "get_support"):
        return "DPTopKSelector, or select on synthetic rows."
    return "Put it behind the release: inside PrivateClassifier, or on synthetic rows."


def _task(estimator: Any) -> str | None:
    task = getattr(estimator, "_estimator_type", None)
    if task is not None:
        return task
    try:
        return get_tags(estimator).estimator_type
    except Exception:  # a user's estimator may raise anything
        return None


# --- one step after the other


@visits(Pipeline)
def _pipeline(pipeline: Pipeline, name: str, rows: Rows) -> Result:
    steps, given = [], rows
    if pipeline.memory is not None and not rows.released:
        why = "memory= keeps the transformed true rows in a folder."
        steps.append(step_of(pipeline, name, rows, LEAKS, why, "memory=None."))
    for i, (part, estimator) in enumerate(pipeline.steps):
        path = child(name, part)
        # Freezing stops fit and fit_transform, but not fit_resample: it releases anew.
        thawed = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
        if i < len(pipeline.steps) - 1 and _is_release(thawed):
            steps.append(_release_within(pipeline, thawed, path, given))
            # The rows after it are synthetic; a flaw of the release is reported at its own step.
            given = released_by(thawed)
            continue
        more, given = visit(estimator, path, given)
        steps += more
    return [*steps, *brought_by(pipeline, name, rows)], given


def _is_release(step: Any) -> bool:
    """Whether a step is a synthesizer of ours, which hands on synthetic rows."""
    known = library(step) == "skdp" and not replaced(step)
    return known and isinstance(step, PrivateEstimator) and hasattr(step, "fit_resample")


def _release_within(pipeline: Pipeline, release: Any, path: str, rows: Rows) -> Step:
    step = of_private(release, path, rows)
    if type(pipeline) is not Pipeline:
        return step
    why = "a release is not a transformer: scikit-learn's Pipeline refuses it here."
    return step.judged(UNKNOWN, why, "PrivateClassifier, or the Pipeline of imbalanced-learn.")


# --- side by side


def _parallel(parts: Iterable[tuple[str, Any]], name: str, rows: Rows) -> Result:
    # All parts read the same people, whichever columns: what they spend adds up.
    steps: list[Step] = []
    given, ranges = rows, []
    for part, estimator in parts:
        more, behind = visit(estimator, child(name, part), given)
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


@visits(ColumnTransformer)
def _column_transformer(columns: ColumnTransformer, name: str, rows: Rows) -> Result:
    parts = [(part, inner) for part, inner, _ in columns.transformers]
    if type(columns.remainder) is not str:
        parts.append(("remainder", columns.remainder))
    steps, behind = _parallel(parts, name, rows)
    if columns.remainder == "passthrough":
        behind = replace(behind, range=behind.range.joined(rows.range) if parts else rows.range)
    if columns.transformer_weights is not None:
        behind = replace(behind, range=Range(kind=behind.range.kind))
    chosen, doubtful = _chosen_columns(columns, name, rows)
    steps += chosen
    if doubtful:
        behind = replace(behind, doubtful=behind.doubtful or doubtful)
    names = columns.verbose_feature_names_out
    if not rows.released and callable(names) and carries(names, is_paid):
        steps += unknown(columns, name, rows, f"names its columns by {call_name(names)}")[0]
    steps += [*_weighted(columns, name, rows), *brought_by(columns, name, rows)]
    return _joined(columns, name, rows, steps, behind)


def _joined(composite: Any, name: str, rows: Rows, steps: list[Step], behind: Rows) -> Result:
    """The steps, and one more if they hand on columns that are as they came.

    Joined, the columns get a common type: one text turns all numbers into objects, and one missing
    integer turns others into floats, which are not exact.
    """
    if rows.released or behind.range.kind or not all(step.sound for step in steps):
        return steps, behind
    more, behind = judged(AS_THEY_CAME, name, kind_of(composite), behind)
    return [*steps, *more], behind


def _chosen_columns(columns: ColumnTransformer, name: str, rows: Rows) -> tuple[list[Step], str]:
    """Steps of functions that choose columns, and the first that is unknown, or ""."""
    steps, doubtful = [], ""
    for part, _, chosen in columns.transformers:
        if not callable(chosen) or _reads_names(chosen):
            continue
        path = child(name, part)
        if rows.released:
            steps += brought_along(columns, path, chosen, rows)
            continue
        why = (
            f"has its columns chosen by {call_name(chosen)}, which may look at the values, or at "
            "types that one value decides."
        )
        remedy = "Name the columns, or take make_column_selector(pattern=...)."
        steps.append(Step(path, kind_of(columns), "raw rows", UNKNOWN, why, remedy))
        doubtful = doubtful or path
    return steps, doubtful


def _reads_names(chosen: Any) -> bool:
    """Whether a function that chooses columns is scikit-learn's selector, and asks for no type."""
    return (
        type(chosen) is make_column_selector
        and chosen.dtype_include is None
        and chosen.dtype_exclude is None
    )


def _weighted(estimator: Any, name: str, rows: Rows) -> list[Step]:
    weights = estimator.transformer_weights
    small = type(weights) is dict and all(
        is_number(weight) and abs(weight) <= 1 for weight in weights.values()
    )
    if rows.released or weights is None or small:
        return []
    why = "warns where a number times its weight is too large."
    remedy = "Weights of at most 1, or none."
    return [Step(name, kind_of(estimator), "raw rows", UNKNOWN, why, remedy)]


@visits(FeatureUnion)
def _feature_union(union: FeatureUnion, name: str, rows: Rows) -> Result:
    steps, behind = _parallel(union.transformer_list, name, rows)
    steps = [*steps, *_weighted(union, name, rows), *brought_by(union, name, rows)]
    behind = replace(behind, range=Range(kind=behind.range.kind))
    return _joined(union, name, rows, steps, behind)


# --- composites that pass on predictions, whose range is not known


@visits(FrozenEstimator)
def _frozen(frozen: FrozenEstimator, name: str, rows: Rows) -> Result:
    inner, paid = frozen.estimator, is_paid(frozen.estimator)
    if paid:
        why, remedy = f"is not fitted again; {kind_of(inner)} was paid for when it was.", ""
    else:
        why = (
            f"is not fitted again, but carries what {kind_of(inner)} learned from rows that "
            "are not known here."
        )
        remedy = "Freeze a fitted private estimator, or see its own report."
    verdict = PRIVATE if paid else UNKNOWN
    step = Step(name, kind_of(frozen), "nothing", verdict, why, remedy, estimator=inner)
    if rows.released or paid:
        return [step], replace(rows, range=Range())
    return [step], replace(rows, doubtful=rows.doubtful or name or kind_of(inner), range=Range())


@visits(VotingClassifier, VotingRegressor)
def _voting(vote: Any, name: str, rows: Rows) -> Result:
    steps = []
    for part, inner in vote.estimators:
        if inner != "drop":
            steps += visit(inner, child(name, part), rows)[0]
    if not rows.released:
        why, twin = "keeps the list of labels that occur in the raw data.", "PrivateClassifier"
        if isinstance(vote, VotingRegressor):
            why = "reads all targets as one array, which raises where a target is a list."
            twin = "PrivateRegressor"
        steps.append(_reads_labels(vote, name, why, twin))
    return [*steps, *brought_by(vote, name, rows)], replace(rows, range=Range())


def _reads_labels(estimator: Any, name: str, why: str, twin: str = "PrivateClassifier") -> Step:
    kind = kind_of(estimator)
    return Step(name, kind, "raw labels", LEAKS, why, f"{twin}({kind}(...), synthesizer).")


@visits(FixedThresholdClassifier)
def _threshold(threshold: FixedThresholdClassifier, name: str, rows: Rows) -> Result:
    steps = visit(threshold.estimator, child(name, "estimator"), rows)[0]
    if rows.released:
        why = "compares with a threshold that was declared."
        steps.append(Step(name, kind_of(threshold), "nothing", PUBLIC, why))
    else:
        why = "raises unless exactly two labels occur in the raw data."
        steps.append(_reads_labels(threshold, name, why))
    return [*steps, *brought_by(threshold, name, rows)], replace(rows, range=Range())


@visits(TransformedTargetRegressor)
def _transformed_target(composite: TransformedTargetRegressor, name: str, rows: Rows) -> Result:
    if composite.regressor is None or rows.released:
        steps, behind = foreign(composite, name, rows)
        steps = [*steps, *brought_by(composite, name, rows)]
        return steps, replace(behind, range=Range())
    if composite.transformer is not None:
        steps, behind = visit(composite.transformer, child(name, "transformer"), rows)
    else:
        func, inverse = composite.func, composite.inverse_func
        alone = FunctionTransformer(func, inverse_func=inverse, check_inverse=False)
        outcome = row_by_row(alone, rows.range)
        steps, behind = judged(outcome, child(name, "func"), kind_of(composite), rows)
    # What is known about targets says nothing about the rows.
    behind = replace(behind, range=rows.range)
    inner = visit(composite.regressor, child(name, "regressor"), behind)[0]
    why = (
        "raises where a target is missing or infinite, and warns where the inverse does not give "
        "one back, which reveals something about one record."
    )
    remedy = "Turn it inside out: PrivateRegressor(TransformedTargetRegressor(...), synthesizer)."
    own = Step(name, kind_of(composite), "raw labels", LEAKS, why, remedy)
    return [*steps, *inner, own], replace(rows, range=Range())


# --- searches of scikit-learn: every candidate is fitted to every fold, and scored on true rows


_SEARCH = "PrivateGridSearchCV, or search on the synthetic rows of one release."


@visits(GridSearchCV, RandomizedSearchCV)
def _search(search: Any, name: str, rows: Rows) -> Result:
    variants, k = variants_of(search), n_folds(search.cv)
    n_fits = None if k is None else k * int(n_candidates(search)) + bool(search.refit)
    steps = _candidates(search, name, rows, variants, n_fits)
    if variants is None or rows.released:
        # Candidates that were not listed have not been checked. All are kept, however many.
        kept = replace(rows, lengths=rows.lengths._replace(one=rows.lengths.all))
        steps += brought_along(search, name, space_of(search), kept)
    if callable(search.refit) and carries(search.refit, is_paid):
        steps += unknown(search, name, rows, f"lets {call_name(search.refit)} choose")[0]
    if rows.released:
        why = "searches on a release, which is free however long it takes."
        own = step_of(search, name, rows, RELEASE, why)
    else:
        own = _choice(search, name, rows, n_fits, looked_at=variants is not None)
    return [*steps, own, *brought_by(search, name, rows)], replace(rows, range=Range())


def _candidates(
    search: Any, name: str, rows: Rows, variants: list[Any] | None, n_fits: int | None
) -> list[Step]:
    """Steps of everything that a search fits.

    Parameters
    ----------
    variants : list of estimator or None
        The candidates; None where they are too many, or drawn from distributions. The estimator is
        then examined as it is, and its price may be unknown.
    n_fits : int or None
        Total number of fits.
    """
    path, k = child(name, "estimator"), n_folds(search.cv)
    if variants is None:
        times = n_fits if are_behind(search) else None
        return walk_all([search.estimator], path, rows, times=times)
    if not hasattr(search, "param_grid"):
        return _drawn(variants, path, rows, n_fits)
    if n_fits is None or k is None:
        return walk_all(variants, path, rows, times=None)
    return walk_all(variants, path, rows, times=k, again=n_fits - k * len(variants))


def _drawn(variants: list[Any], path: str, rows: Rows, n_fits: int | None) -> list[Step]:
    """Steps of a random search, which tries some of ``variants``: priced if all cost the same."""
    prices = {total_price(step.epsilon for step in walk(one, path, rows)) for one in variants}
    each = len(variants)
    result = []
    for step in walk_all(variants, path, rows):
        spent = step.epsilon
        if spent:
            spent = None if n_fits is None or len(prices) > 1 else spent * n_fits / each
        result.append(replace(step, epsilon=spent, n_fits=step.n_fits * (n_fits or 1) // each))
    return result


def _choice(search: Any, name: str, rows: Rows, n_fits: int | None, looked_at: bool) -> Step:
    """The step of the search itself, which scores and chooses."""
    fits = f"fits {'an unknown number of' if n_fits is None else f'{n_fits:,}'} times"
    own = step_of(search, name, rows, PRIVATE, f"{fits}; every score has noise.")
    price = _score_price(search.scoring)
    if price is None:
        why = f"{fits}; its scores are exact, and they choose best_params_."
        return own.judged(LEAKS, why, _SEARCH)
    k = n_folds(search.cv)
    if k is not None:
        scores = k * int(n_candidates(search)) * (1 + bool(search.return_train_score))
        price *= scores
    own = replace(own, epsilon=None if k is None else price)
    if not has_secret_folds(search.cv):
        why = f"{fits}; {_why_folds_leak(search.cv)}."
        return own.judged(LEAKS, why, "cv=PrivateKFold(...), without a seed.")
    if not (looked_at or (are_behind(search) and are_numbers(space_of(search)))):
        why = f"{fits}; there are too many candidates to check, or they draw what a fit spends."
        return own.judged(UNKNOWN, why, "Give lists of values, and fewer of them.")
    return own


def _why_folds_leak(cv: Any) -> str:
    if getattr(cv, "_secret_folds", False):
        return "anyone who knows the seed of its folds knows the fold of every record"
    return (
        "its folds divide the rows by position: adding one record moves others from fold to fold, "
        "and the noise covers a change of one row only"
    )


def _score_price(scoring: Any) -> Fraction | None:
    """What one scoring of one model spends; None where a score is exact."""
    # A dict of a user's own class may list other scorers than those that are used.
    scorers = list(scoring.values()) if type(scoring) is dict else [scoring]
    ours = [library(scorer) == "skdp" and hasattr(scorer, "_score_epsilon") for scorer in scorers]
    if not ours or not all(ours):
        return None
    return sum((scorer._score_epsilon for scorer in scorers), Fraction(0))


# scikit-learn has these classes only for those who import an experimental module.
@visits("HalvingGridSearchCV", "HalvingRandomSearchCV")
def _halving(search: Any, name: str, rows: Rows) -> Result:
    """Successive halving. Which candidates survive depends on scores.

    So each further fit is priced as the most expensive one.
    """
    if rows.released:
        return foreign(search, name, rows)
    steps = _candidates(search, name, rows, variants_of(search), n_halving_fits(search))
    why = (
        "fits to parts of the rows by position, keeps how many rows there are, and its scores "
        "choose best_params_."
    )
    return [*steps, step_of(search, name, rows, LEAKS, why, _SEARCH)], rows
