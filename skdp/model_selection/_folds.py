"""Folds in which every record's fold is drawn independently and kept secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from .._base import HidesSeed
from .._random import noise_source
from .._types import BoolArray, IntArray
from ..rows import as_frame

__all__ = ["PrivateKFold"]


class PrivateKFold(HidesSeed, BaseCrossValidator):
    """K folds in which every record's fold is drawn independently and kept secret.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    random_state : None or int, default=None
        Seed of the folds. None: the operating system's random source. An int is for experiments
        only: anyone who knows it knows the fold of every record.

    Notes
    -----
    An ordinary splitter divides the rows by position: adding one record moves others from fold to
    fold, and the sum of the folds' epsilon does not bound the loss of all folds together. Here the
    fold of a record does not depend on any other record. Given the folds of all other records, a
    record is in k - 1 of the k training sets, whichever fold it drew: publishing all k models costs
    (k - 1) epsilon. `private_cross_val_score` charges that. A ledger that is charged by the k fits
    one by one, in ``cross_val_score``, is charged for all k: more than is needed, never less.

    Folds differ in size, and in a tiny data set one may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateKFold
    >>> folds = PrivateKFold(3)
    >>> sum(len(test) for _, test in folds.split(np.zeros((10, 2))))
    10
    """

    def __init__(self, n_splits: int = 5, *, random_state: int | None = None) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def _draw(self, n_rows: int) -> IntArray:
        """Fold of each row."""
        return noise_source(self.random_state).record_below(self.get_n_splits(), n_rows)

    def _iter_test_masks(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[BoolArray]:
        folds = self._draw(as_frame(X).n_rows)
        for fold in range(self.get_n_splits()):
            yield folds == fold

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Draw new folds, and give each in turn as the test set.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y, groups : ignored

        Yields
        ------
        train, test : ndarray of int
            Positions of rows. They are as secret as the rows.
        """
        rows = np.arange(as_frame(X).n_rows)
        for test in self._iter_test_masks(X):
            yield rows[~test], rows[test]

    # Read by privacy_report.
    _secret_folds = True

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Give the number of folds."""
        n_splits = self.n_splits
        if not isinstance(n_splits, int | np.integer) or isinstance(n_splits, bool) or n_splits < 2:
            raise ValueError(f"n_splits must be an integer of at least 2, got {n_splits!r}.")
        return int(n_splits)
