"""What a search minimises: sums of integer losses, and how far one record can spread them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from ..._types import FloatArray, IntArray
from ..additive import UNIT, Identity, Logit

__all__ = ["LOSSES", "Objective", "objectives"]

_BITS = UNIT.bit_length() - 1

# Each loss, and where its table ends: beyond, losses are those of the end. Targets and scores lie
# within -1 to 1, so that no residual is larger than 2.
LOSSES: dict[str, tuple[Callable[[FloatArray], FloatArray], int]] = {
    "logistic": (lambda margin: np.logaddexp(0.0, -margin), 8 * UNIT),
    "hinge": (lambda margin: np.maximum(1.0 - margin, 0.0), 8 * UNIT),
    "squares": (lambda residual: residual**2, 2 * UNIT),
}


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
        margins = scores >> _BITS
        margins *= self.signs[labels].reshape(shape)
        margins += (self.offsets[labels] + LOSSES[self.loss][1]).reshape(shape)
        return np.take(_table(self.loss), margins, mode="clip")

    def spread(self, width: int) -> int:
        """Largest difference of two losses of a record whose scores differ by at most ``width``.

        Rounding scores down to whole units keeps whole differences, and so does clipping: the
        losses are two entries of the table at most ``width`` apart.
        """
        return _spread(self.loss, min(width, 2 * LOSSES[self.loss][1]))


@lru_cache(maxsize=8)
def _table(loss: str) -> FloatArray:
    function, most = LOSSES[loss]
    found = np.rint(function(np.arange(-most, most + 1) / UNIT) * UNIT)
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
