"""Predicting and comparing true rows one by one, with every error and warning caught.

Neither may get out, because either would depend on a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._foreign import quietly
from .._keys import NO_KEY, Key
from .._keys import positions_of as places_of
from .._random import noise_source, shared_generators_kept
from .._validation import BoolArray, IntArray, attempt
from ..domain.attributes import Coding
from ..tables import as_column, as_labels, object_array, row_taker

# Labels or predictions, one for each row.
Labels: TypeAlias = NDArray[Any]
# Takes rows of a container by position.
Take: TypeAlias = Callable[[NDArray[np.integer]], Any]

# Rows of every table that a model is given to predict.
TABLE = 1024


def true_rows(X: Any, y: Any) -> tuple[Labels, Take]:
    """The labels, and a function that takes rows of ``X`` by position; lengths are compared.

    Without labels, for a metric that reads none, all are 0.
    """
    n_rows, take = row_taker(X)
    labels = np.zeros(n_rows) if y is None else as_labels(y)
    if n_rows != len(labels):
        raise ValueError("X and y have different numbers of rows; how many is private.")
    return labels, take


# --- predictions


def draw_places(n_rows: int) -> IntArray:
    """A position in a table of predictions for each row, drawn independently."""
    return noise_source().record_below(TABLE, n_rows)


def no_answers(method: str, n_rows: int, n_classes: int = 0) -> Labels:
    """Answers of a method for rows that have none: NaN."""
    shape = (n_rows, n_classes) if method == "predict_proba" else (n_rows,)
    return np.full(shape, np.nan, dtype=object if method == "predict" else np.float64)


def answers_of(
    model: Any, method: str, take: Take, rows: IntArray, places: IntArray, n_classes: int = 0
) -> Labels:
    """What a method of ``model`` gives for each row, NaN for a row that it gives nothing for.

    Parameters
    ----------
    model : fitted estimator
    method : {"predict", "predict_proba", "score_samples"}
    take : callable (positions) -> table
        Rows by position, as `row_taker` gives it.
    rows : ndarray of int
        Positions of the rows to predict.
    places : ndarray of int
        From `draw_places`, for these rows.
    n_classes : int, default=0
        Columns that ``predict_proba`` must give.

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_classes), of objects if they are predictions
    """
    # Privacy. The prediction for a row may not depend on the other rows, not even by one ulp of a
    # sum: otherwise one record would change the scores of several. So every table that is
    # predicted has the same number of rows, and the place of each row in it is drawn for this row
    # alone: the arithmetic on it is the same whichever rows stand in the other places. A table that
    # fails is divided, and free places are filled by rows of the same part, until each row that
    # fails stands alone, with copies of itself; the other rows are predicted again in their old
    # places. No exception and no warning leaves. Assumption: the model treats the rows of a table
    # of this fixed size independently of each other, and equal tables equally. For that, every
    # table finds the generators of the process in the same state; how far they went is undone.
    guesses = no_answers(method, len(rows), n_classes)

    def answers(table: IntArray) -> Labels | None:
        found = getattr(model, method)(take(table))
        if method == "predict":
            found = object_array(as_labels(found).tolist())
        else:
            found = np.asarray(found, dtype=np.float64)
        return found if found.shape == (len(table), *guesses.shape[1:]) else None

    words = noise_source().words(4)
    order = np.argsort(places, kind="stable")
    # One row of each place in a table.
    turn = np.arange(len(rows)) - np.searchsorted(places[order], places[order])
    parts = [order[turn == number] for number in range(turn.max(initial=-1) + 1)]
    with shared_generators_kept() as seed:
        while parts:
            part = parts.pop()
            table = np.full(TABLE, rows[part[0]])
            table[places[part]] = rows[part]
            seed(words)
            with quietly():
                found = attempt(partial(answers, table), None)
            if found is not None:
                guesses[part] = found[places[part]]
            elif len(part) > 1:
                parts += [part[: len(part) // 2], part[len(part) // 2 :]]
    return guesses


# --- comparisons


def equal(truth: Labels, guess: Labels) -> BoolArray:
    """Whether labels are the same, row by row; what is missing, or no label, differs."""
    if truth.dtype == guess.dtype and truth.dtype.kind in "biuf":
        # As by keys: a label is the nearest double, whatever type its column has.
        return np.asarray(truth.astype(np.float64) == guess.astype(np.float64))
    known = places_of(as_column(truth, "y").factorize()[1])
    known.pop(None, None)
    one, other = (positions_of(values, known) for values in (truth, guess))
    return np.asarray((one == other) & (one >= 0))


def positions_of(values: Labels, places: Mapping[Key, int]) -> IntArray:
    """Place of the canonical key of each value; -1 for one that has none.

    A number and text that writes it are the same: one record with text makes text of numbers in a
    file.
    """
    known = {key: place for key, place in places.items() if key != NO_KEY}
    coding = Coding(known, missing=known.get(None, -1))
    return as_column(values, "y").codes(coding).astype(np.int64)
