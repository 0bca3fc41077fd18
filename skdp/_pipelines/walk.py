"""The walk over the steps of a composed estimator, in the order in which a ``fit`` runs them.

Every step gets its verdict from a visitor, chosen by class. The visitor of a composite takes it
apart and walks on. Visitors of composites, searches and estimators of other libraries are in
modules of their own, and register with `visits`. Estimators of skdp are recognised by their base
class, its meta-estimators by a method, ``_privacy_steps``. Nothing is fitted and no row is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from .._base import PrivateEstimator
from ..accounting import PrivacyLedger
from .origin import kind_of, library, replaced
from .steps import FIXED, PRIVATE, PUBLIC, Range, Rows, Step, total_price
from .verdicts import is_inferred, of_private, of_records, of_strangers, unknown

# --- the candidates of scikit-learn's searches: how many there are, and what they change

# Up to this many candidates of a search are priced, one by one.
_MAX_CANDIDATES = 10_000


def space_of(search: Any) -> Any:
    """The grid, or the distributions, of a search."""
    return search.param_grid if hasattr(search, "param_grid") else search.param_distributions


def _parts_of(space: Any) -> list[Any]:
    return list(space) if isinstance(space, list | tuple) else [space]


def _is_listed(space: Any) -> bool:
    """Whether all candidates of a search can be listed, today and at the fit."""
    return all(
        type(part) is dict
        and all(type(values) in (list, tuple, range, np.ndarray) for values in part.values())
        for part in _parts_of(space)
    )


def n_candidates(search: Any) -> int | str:
    """How many candidates a search tries; "exhaust" in halving means as many as the rows allow."""
    space = space_of(search)
    drawn = getattr(search, "n_iter", None)
    if drawn is None:
        drawn = getattr(search, "n_candidates", None)
    if drawn is None:
        return len(ParameterGrid(space))
    if isinstance(drawn, str) or not _is_listed(space):
        return drawn
    return min(drawn, len(ParameterGrid(space)))


def variants_of(search: Any) -> list[Any] | None:
    """All that a search may fit; None where they are too many, or cannot be listed or cloned."""
    if not _is_listed(space_of(search)):
        return None
    grid = ParameterGrid(space_of(search))
    if len(grid) > _MAX_CANDIDATES:
        return None
    try:
        return [clone(search.estimator).set_params(**each) for each in grid]
    except TypeError:  # it may hold a generator: the fit will refuse, too
        return None


def are_behind(search: Any) -> bool:
    """Whether candidates that are not listed change only what is trained on a release.

    Then they change neither the price of a fit nor what it reads.
    """
    return all(
        is_behind(search.estimator, key) for part in _parts_of(space_of(search)) for key in part
    )


def is_behind(estimator: Any, key: str) -> bool:
    """Whether a parameter belongs to what is trained on a release."""
    first, _, rest = key.partition("__")
    if library(estimator) == "skdp" and hasattr(estimator, "_train_on"):
        return first == "estimator" and bool(rest)
    inner = estimator.get_params(deep=True).get(first)
    return bool(rest) and hasattr(inner, "get_params") and is_behind(inner, rest)


def are_numbers(space: Any) -> bool:
    """Whether the values that a search draws are numbers, or can be listed."""
    return all(
        library(values) == "scipy" or _is_listed({"": values})
        for part in _parts_of(space)
        for values in part.values()
    )


# --- the walk

# The steps of an estimator, and what the next step is given.
Result = tuple[list[Step], Rows]
_Visitor = Callable[[Any, str, Rows], Result]
# By class; by name for the classes that scikit-learn has only after an experimental import.
_VISITORS: dict[type | str, _Visitor] = {}


def visits(*kinds: type | str) -> Callable[[_Visitor], _Visitor]:
    """Register a visitor for these classes of scikit-learn; ``object`` is for all others."""

    def enter(visitor: _Visitor) -> _Visitor:
        _VISITORS.update(dict.fromkeys(kinds, visitor))
        return visitor

    return enter


def visit(estimator: Any, name: str, rows: Rows) -> Result:
    """All steps of ``estimator``, and what the next step is given."""
    if estimator is None or isinstance(estimator, str):
        return _visit_word(estimator, name, rows)
    if _odd_parts(estimator):
        why = f"has {_odd_parts(estimator)}= in a list of a class of its own: it may change"
        return unknown(estimator, name, rows, why)
    if replaced(estimator):
        why = f"has a {replaced(estimator)} of its own, on the instance: it may do anything"
        return unknown(estimator, name, rows, why)
    if library(estimator) not in ("skdp", "sklearn", "imblearn"):
        # This includes a subclass of a known class: it may do anything.
        return _VISITORS[object](estimator, name, rows)
    if isinstance(estimator, PrivateEstimator):
        # A selector hands on columns as they came; what others compute has types of its own.
        kind = "" if hasattr(estimator, "get_support") else FIXED
        return [of_private(estimator, name, rows)], replace(rows, range=Range(kind=kind))
    if library(estimator) == "skdp" and hasattr(estimator, "_privacy_steps"):
        return _visit_meta(estimator, name, rows), replace(rows, range=Range())
    visitor = _VISITORS.get(kind_of(estimator)) if library(estimator) == "sklearn" else None
    if visitor is None:
        visitor = next(_VISITORS[kind] for kind in type(estimator).__mro__ if kind in _VISITORS)
    return visitor(estimator, name, rows)


def _odd_parts(estimator: Any) -> str:
    """The first parameter with parts of a composite that is no plain list of tuples, or ""."""
    for name in ("steps", "transformers", "transformer_list", "estimators"):
        parts = getattr(estimator, name, [])
        if type(parts) not in (list, tuple) or not {*map(type, parts)} <= {list, tuple}:
            return name
    return ""


def _visit_word(word: str | None, name: str, rows: Rows) -> Result:
    kind = "passthrough" if word is None else word
    # By its exact type: a subclass may equal something else the second time.
    if type(kind) is not str or kind not in ("passthrough", "drop"):
        return unknown(word, name, rows, f"is {kind!r}, which is not a step")
    why = "drops the columns." if kind == "drop" else "passes the rows on."
    return [Step(name, kind, "nothing", PUBLIC, why)], rows


def _visit_meta(estimator: Any, name: str, rows: Rows) -> list[Step]:
    """A meta-estimator of skdp, which knows its own steps."""
    steps: list[Step] = estimator._privacy_steps(name, rows)
    own = estimator.get_params(deep=False)
    if any(is_inferred(value) for value in own.values()):
        steps.append(of_records(Step(name, kind_of(estimator), "nothing", PRIVATE, "")))
    if of_strangers(own):
        steps += unknown(estimator, name, rows, of_strangers(own))[0]
    if not _is_listed(getattr(estimator, "param_grid", {})):
        steps += unknown(estimator, name, rows, "has candidates that cannot be listed")[0]
    return steps


# --- used by other modules


def walk(estimator: Any, name: str = "", rows: Rows | None = None) -> list[Step]:
    """All steps of ``estimator``, in the order in which a ``fit`` runs them.

    Parameters
    ----------
    estimator : estimator
        Before or after its fit.
    name : str, default=""
        Path of ``estimator`` itself.
    rows : Rows, optional
        What it is given; by default people's rows.
    """
    return visit(estimator, name, rows or Rows())[0]


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
    totals = [total_price(step.epsilon for step in steps) for steps in walks]
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
    epsilon = total_price(_times_price(step.epsilon, fits) for step, fits in same)
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
    """What one fit of ``estimator`` spends; None if it is not known beforehand."""
    return total_price(step.epsilon for step in walk(estimator))
