"""Searches of scikit-learn: every candidate is fitted to every fold, and scored on true rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from .candidates import are_behind, are_numbers, n_candidates, space_of, variants_of
from .carried import carries
from .fits import has_secret_folds, n_folds, n_halving_fits
from .foreign import foreign
from .origin import call_name, library
from .paid import brought_along, brought_by, is_paid
from .steps import LEAKS, PRIVATE, RELEASE, UNKNOWN, Range, Rows, Step, child, total_price
from .verdicts import step_of, unknown
from .walk import Result, visits, walk, walk_all

__all__: list[str] = []


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
        return replace(
            own,
            verdict=LEAKS,
            why=f"{fits}; its scores are exact, and they choose best_params_.",
            remedy="PrivateGridSearchCV, or search on the synthetic rows of one release.",
        )
    k = n_folds(search.cv)
    if k is not None:
        scores = k * int(n_candidates(search)) * (1 + bool(search.return_train_score))
        price *= scores
    own = replace(own, epsilon=None if k is None else price)
    if not has_secret_folds(search.cv):
        return replace(
            own,
            verdict=LEAKS,
            why=f"{fits}; {_why_folds_leak(search.cv)}.",
            remedy="cv=PrivateKFold(...), without a seed.",
        )
    if not (looked_at or (are_behind(search) and are_numbers(space_of(search)))):
        return replace(
            own,
            verdict=UNKNOWN,
            why=f"{fits}; there are too many candidates to check, or they draw what a fit spends.",
            remedy="Give lists of values, and fewer of them.",
        )
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
    own = step_of(
        search,
        name,
        rows,
        LEAKS,
        "fits to parts of the rows by position, keeps how many rows there are, and its scores "
        "choose best_params_.",
        "PrivateGridSearchCV, or search on the synthetic rows of one release.",
    )
    return [*steps, own], rows
