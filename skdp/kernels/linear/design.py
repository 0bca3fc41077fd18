"""The numbers that stand for the groups of each column: public."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d
from scipy.sparse import csr_array

from ..._types import FloatArray, IntArray
from ..additive import UNIT, Identity, Logit, Prior, Records

__all__ = ["LOSSES", "Column", "Design", "LinearModel", "Objective", "objectives"]


@dataclass(frozen=True, eq=False)
class Column:
    """One column as features: of each group of its values one row of numbers.

    Attributes
    ----------
    values : ndarray of shape (n_groups, n_features)
        The absolute values of a row sum to at most 1.
    free : bool
        Whether the features are one indicator for each group.
    chain : list of int or None
        Groups in an order in which neighbours are similar.
    n_bins : int
        The first groups that are bins of a number, in their order.
    """

    values: FloatArray
    free: bool
    chain: Sequence[int] | None
    n_bins: int = 0

    def units(self) -> IntArray:
        """The values in integers, cut toward zero: rows keep their bound."""
        return np.trunc(np.clip(self.values, -1.0, 1.0) * UNIT).astype(np.int64)

    def prior(self) -> Prior:
        """What a function of the column may look like."""
        if self.free:
            return Prior(len(self.values), self.chain)
        constant = np.ones((len(self.values), 1))
        return Prior(len(self.values), None, np.hstack([constant, self.values]))

    def coefficients(self, shape: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients of a function of the groups, and the constant that is left.

        Parameters
        ----------
        shape : ndarray of shape (n_groups, n_outputs)

        Returns
        -------
        coef : ndarray of shape (n_outputs, n_features)
        constant : ndarray of shape (n_outputs,)
        """
        if self.free:
            return shape.T.copy(), np.zeros(shape.shape[1])
        constant = np.ones((len(shape), 1))
        features = np.hstack([constant, self.values])
        found = np.linalg.lstsq(features, shape, rcond=None)[0].astype(np.float64)
        return found[1:].T, found[0]


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of a linear model.

    Attributes
    ----------
    columns : tuple of Column
    """

    columns: tuple[Column, ...]

    @property
    def blocks(self) -> list[slice]:
        """Features of each column."""
        stops = np.cumsum([0, *(column.values.shape[1] for column in self.columns)])
        return [slice(int(a), int(b)) for a, b in zip(stops[:-1], stops[1:], strict=True)]

    @property
    def n_features(self) -> int:
        """Number of features of all columns."""
        return sum(column.values.shape[1] for column in self.columns)

    def merged(self, records: Records, n_bins: int) -> tuple[Records, Design]:
        """The same with at most so many bins of each number, in equal parts, with their means."""
        groups, columns = records.groups.copy(order="F"), []
        for j, column in enumerate(self.columns):
            places = np.arange(len(column.values))
            if column.n_bins > n_bins:
                places[: column.n_bins] = places[: column.n_bins] * n_bins // column.n_bins
                places[column.n_bins :] -= column.n_bins - n_bins
                groups[:, j] = places[groups[:, j]]
            sizes = np.bincount(places)[:, None]
            sums = np.stack([np.bincount(places, each) for each in column.values.T], axis=1)
            columns.append(replace(column, values=sums / sizes))
        n_groups = tuple(len(column.values) for column in columns)
        return replace(records, groups=groups, n_groups=n_groups), Design(tuple(columns))

    def rows(self, groups: IntArray) -> FloatArray:
        """Features of records in units, whole numbers, (n, n_features).

        Parameters
        ----------
        groups : ndarray of shape (n, n_columns)
        """
        parts = [c.units()[groups[:, j]] for j, c in enumerate(self.columns)]
        return np.hstack([np.empty((len(groups), 0)), *parts])

    def sparse_rows(self, groups: IntArray) -> csr_array:
        """The same rows without most zeros: a group has one feature that is not 0 at most."""
        starts = [block.start for block in self.blocks]
        places, values = [], []
        for start, column, group in zip(starts, self.columns, groups.T, strict=True):
            units = column.units()
            place = np.argmax(units != 0, axis=1)
            places.append((start + place)[group])
            values.append(units[np.arange(len(units)), place][group].astype(np.float64))
        ends = np.arange(0, groups.size + 1, groups.shape[1])
        return csr_array(
            (np.stack(values, axis=1).ravel(), np.stack(places, axis=1).ravel(), ends),
            shape=(len(groups), self.n_features),
        )


# --- the released linear model: intercepts, and a coefficient of each feature


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores that are linear in the features of a `Design`.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    coef : ndarray of shape (n_outputs, n_features)
    std : ndarray of shape (n_outputs, n_features)
        Standard errors of ``coef`` from the noise alone; NaN where nothing is known of them.
    """

    intercept: FloatArray
    coef: FloatArray
    std: FloatArray


# --- what a search minimises: sums of integer losses, and how far one record can spread them


def _logistic(margin: FloatArray) -> FloatArray:
    return np.logaddexp(0.0, -margin)


def _hinge(margin: FloatArray) -> FloatArray:
    return np.maximum(1.0 - margin, 0.0)


def _squares(residual: FloatArray) -> FloatArray:
    # Targets and scores lie within -1 to 1, so that no residual is larger than 2.
    return np.square(np.clip(residual, -2.0, 2.0))


LOSSES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "logistic": _logistic,
    "hinge": _hinge,
    "squares": _squares,
}
# Where their tables end, in units: beyond, losses are those of the end.
_END = 8 * UNIT


@dataclass(frozen=True, eq=False)
class Objective:
    """The loss of a record: a table at ``offset + sign * score``.

    Attributes
    ----------
    loss : str
        One of `LOSSES`.
    offsets, signs : ndarray of shape (n_labels,)
        By label. Offsets are in units.
    """

    loss: str
    offsets: IntArray
    signs: IntArray

    def at(self, scores: IntArray, labels: IntArray) -> FloatArray:
        """Losses of records in units: whole numbers, whose sums are exact below 2**53.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, n_candidates)
            In squared units: sums of products of weights and features.
        labels : ndarray of shape (n,)
        """
        shape = (len(labels),) + (1,) * (scores.ndim - 1)
        margins = scores >> (UNIT.bit_length() - 1)
        margins *= self.signs[labels].reshape(shape)
        margins += (self.offsets[labels] + _END).reshape(shape)
        return np.take(_table(self.loss), margins, mode="clip")

    def spread(self, width: int) -> int:
        """Largest difference of two losses of a record whose scores differ by at most ``width``.

        Rounding scores down to whole units keeps whole differences, and so does clipping: the
        losses are two entries of the table at most ``width`` apart.
        """
        return _spread(self.loss, min(width, 2 * _END))


@lru_cache(maxsize=8)
def _table(loss: str) -> FloatArray:
    found = np.rint(LOSSES[loss](np.arange(-_END, _END + 1) / UNIT) * UNIT)
    found.flags.writeable = False
    return np.asarray(found)


@lru_cache(maxsize=1024)
def _spread(loss: str, width: int) -> int:
    table, size = _table(loss), width + 1
    # A window of this size begins at each place; beyond the end there are copies of the end.
    highest = maximum_filter1d(table, size, mode="nearest")
    return max(int((highest - minimum_filter1d(table, size, mode="nearest")).max()), 1)


def objectives(link: Logit | Identity, loss: str) -> list[Objective]:
    """One objective for each score: of a number, of the second of two classes, or of each class."""
    if isinstance(link, Identity):
        return [Objective(loss, link.outcomes, np.full_like(link.outcomes, -1))]
    every = np.eye(link.n_classes, dtype=np.int64) * 2 - 1
    chosen = every[1:] if link.n_outputs == 1 else every
    return [Objective(loss, np.zeros_like(signs), signs) for signs in chosen]
