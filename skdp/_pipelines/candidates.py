"""The candidates of scikit-learn's searches: how many there are, and what they change."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from .origin import library

__all__ = [
    "are_behind",
    "are_numbers",
    "is_behind",
    "is_listed",
    "n_candidates",
    "space_of",
    "variants_of",
]

# Up to this many candidates of a search are priced, one by one.
_MAX_CANDIDATES = 10_000


def space_of(search: Any) -> Any:
    """The grid, or the distributions, of a search."""
    return search.param_grid if hasattr(search, "param_grid") else search.param_distributions


def _parts_of(space: Any) -> list[Any]:
    return list(space) if isinstance(space, list | tuple) else [space]


def is_listed(space: Any) -> bool:
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
    if isinstance(drawn, str) or not is_listed(space):
        return drawn
    return min(drawn, len(ParameterGrid(space)))


def variants_of(search: Any) -> list[Any] | None:
    """All that a search may fit; None where they are too many, or cannot be listed or cloned."""
    if not is_listed(space_of(search)):
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
        library(values) == "scipy" or is_listed({"": values})
        for part in _parts_of(space)
        for values in part.values()
    )
