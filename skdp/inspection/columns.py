"""Expected errors of the functions for one column: quantiles, and the most frequent items."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._random import sampling_generator
from .._types import FloatArray
from .._validation import as_integer
from ..exceptions import InsecureSeedWarning
from ..expected import ExpectedError
from ..quantiles import private_quantiles
from ..selection import most_frequent_items

# Spread of generated values (lognormal), and the exponent of Zipf's law of generated items.
_SPREAD = 0.7
_EXPONENT = 1.0
_RUNS = 20


def expected_quantile_error(
    quantiles: Any,
    n: int,
    epsilon: Any,
    bounds: Any = None,
    *,
    like: Any = None,
    random_state: int = 0,
    **parameters: Any,
) -> ExpectedError:
    """Expected rank errors of `private_quantiles`, before anything is spent.

    No ledger is touched: the quantiles of public values are released many times.

    Parameters
    ----------
    quantiles, bounds
        As for `private_quantiles`.
    n : int
        Number of records to expect: a public guess.
    epsilon : number or sequence of numbers
    like : array-like of shape (n_values,), default=None
        PUBLIC values that resemble the private ones; ``n`` of them are drawn. None: values with a
        lognormal density, of which hardly any are equal, within the bounds.
    random_state : int, default=0
    **parameters
        Others of `private_quantiles`, such as ``method`` and ``step``.

    Returns
    -------
    ExpectedError
        Root mean square of the number of records between the released value and the quantile.

    Examples
    --------
    >>> from skdp.inspection import expected_quantile_error
    >>> expected = expected_quantile_error(0.5, n=5_000, epsilon=[0.1, 1], bounds=(0, 100_000))
    >>> bool(expected.errors.loc["quantile 0.5", 1] < 20)
    True
    """
    wanted = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    records = as_integer(n, "n", 1)

    def ranks(each: Any, seed: int) -> dict[str, float]:
        generator = sampling_generator(seed)
        values = np.sort(_values(records, bounds, like, generator))
        found = private_quantiles(
            values, wanted, each, bounds, random_state=seed, **{**parameters, "ledger": None}
        ).values
        errors = [_rank_error(values, value, q) for value, q in zip(found, wanted, strict=True)]
        return {f"quantile {q:g}": error for q, error in zip(wanted, errors, strict=True)}

    return _tried(ranks, epsilon, records, "records", like, "private_quantiles", random_state)


def _values(n: int, bounds: Any, like: Any, generator: np.random.Generator) -> Any:
    if like is not None:
        return generator.choice(np.asarray(like), n, replace=len(like) < n)
    values = generator.lognormal(0.0, _SPREAD, n)
    low, high = (0.0, 1000.0) if bounds is None else map(float, bounds)
    return low + (high - low) * np.minimum(values / 10, 1.0)


def _rank_error(values: FloatArray, value: float, quantile: float) -> float:
    """Records between a value and a quantile of sorted values; 0 within equal ones."""
    below, up_to = np.searchsorted(values, value, "left"), np.searchsorted(values, value, "right")
    rank = quantile * len(values)
    return float(max(below - rank, rank - up_to, 0.0))


def expected_item_error(
    k: int,
    items: Any,
    n: int,
    epsilon: Any,
    *,
    max_items: int,
    like: Any = None,
    random_state: int = 0,
    **parameters: Any,
) -> ExpectedError:
    """Expected share of wrong items of `most_frequent_items`, before anything is spent.

    No ledger is touched: items are found many times among public persons.

    Parameters
    ----------
    k, items, max_items
        As for `most_frequent_items`.
    n : int
        Number of persons to expect: a public guess.
    epsilon : number or sequence of numbers
    like : array-like of shape (n_items,), default=None
        PUBLIC share of the persons who have each item. None: Zipf's law, with ``max_items`` items
        for each person on average.
    random_state : int, default=0
    **parameters
        Others of `most_frequent_items`.

    Returns
    -------
    ExpectedError
        "wrong items" is the share of the k items found that are not among the k most frequent,
        "lost persons" the share of the k largest counts that the items found lack.
    """
    persons = as_integer(n, "n", 1)
    names = list(items)
    ranks = np.arange(1.0, len(names) + 1) ** -_EXPONENT
    shares = ranks * (max_items / ranks.sum()) if like is None else np.asarray(like, dtype=float)

    def missed(each: Any, seed: int) -> dict[str, float]:
        generator = sampling_generator(seed)
        held = generator.random((persons, len(names))) < np.minimum(shares, 1.0)
        counts = held.sum(axis=0)
        baskets = [[names[place] for place in np.flatnonzero(row)] for row in held]
        found = most_frequent_items(
            baskets, k, names, each, max_items=max_items, random_state=seed,
            **{**parameters, "ledger": None},
        )["item"]  # fmt: skip
        place = {name: number for number, name in enumerate(names)}
        taken = counts[[place[name] for name in found]]
        best = np.sort(counts)[::-1][:k]
        wrong = float(np.mean(taken < best[-1]))
        return {"wrong items": wrong, "lost persons": 1 - taken.sum() / max(best.sum(), 1)}

    return _tried(missed, epsilon, persons, "shares", like, "most_frequent_items", random_state)


def _tried(
    errors: Callable[[Any, int], dict[str, float]],
    epsilon: Any,
    n: int,
    unit: str,
    like: Any,
    name: str,
    seed: int,
) -> ExpectedError:
    """Errors of many releases of public values at each epsilon."""
    with warnings.catch_warnings():
        # The values are public: a seed makes the trial repeatable.
        warnings.simplefilter("ignore", InsecureSeedWarning)
        runs = {
            float(each): [errors(each, seed + run) for run in range(_RUNS)]
            for each in np.atleast_1d(epsilon)
        }
    how = "simulated on " + ("generated values" if like is None else "the values of like")
    return ExpectedError(runs, n=n, unit=unit, how=how, estimator=name)
