"""Models of what was released: what answers and rows follow from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from .._random import caller_level
from ..domain import Domain
from .intervals import Error

__all__ = [
    "Model",
    "Weights",
    "by_attributes",
    "warn_of_zero",
]

# ------------------------------------------------------------------------------------------------
# Model: the interface of released models that a synopsis uses.


Weights = Mapping[int, np.ndarray]


def warn_of_zero(how: str) -> None:
    """Warn that a public condition has probability zero in the release."""
    warnings.warn(
        f"The release gives this condition probability zero. The rows drawn satisfy it, but {how}.",
        UserWarning,
        stacklevel=caller_level(),
    )


def by_attributes(queries: Sequence[Weights]) -> dict[tuple[int, ...], list[int]]:
    """Positions of the queries that constrain the same attributes, by these attributes."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for position, weights in enumerate(queries):
        groups.setdefault(tuple(sorted(weights)), []).append(position)
    return groups


class Model(Protocol):
    """The interface of a released model over a domain that a `Synopsis` uses.

    ``answer`` is linear in the values of each weight vector, where these are not 0: weights outside
    [0, 1] give weighted sums.
    """

    kind: ClassVar[str]

    @property
    def total(self) -> float:
        """Estimated number of records."""
        ...

    def answer(self, queries: Sequence[Weights]) -> np.ndarray:
        """Sum of the expected counts under the weights, one float for each query."""
        ...

    def error(self, weights: Weights, level: float) -> Error:
        """Error of one answer at a confidence level."""
        ...

    def error_of_parts(self, parts: Sequence[Weights], level: float) -> Error:
        """Error of a sum of answers: to disjoint conjunctions, or under any real weights."""
        ...

    def column_errors(self, axis: int, weights: np.ndarray, level: float) -> tuple[np.ndarray, str]:
        """Half widths of the intervals of many counts of one attribute, and what they cover.

        ``weights`` has a row of real weights for each count. ValueError where there are no
        intervals. It may be left out: then each count is asked for by itself.
        """
        ...

    def sample_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> np.ndarray:
        """Draw records, (n_samples, n_attributes) int32 codes.

        With weights in [0, 1], as from `parse`, a record is drawn in proportion to its probability
        times its weight; each vector has a positive weight. Where all of these are zero, the
        draw follows what the model has nearest, and warns; no code of weight zero is drawn.
        """
        ...

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> np.ndarray:
        """Records as `sample_codes`, but not independent: counts are the expected ones, rounded.

        In random order. Where the weights have probability zero, as `sample_codes`.
        """
        ...

    def sample_given(
        self, known: np.ndarray, generator: np.random.Generator, weights: Weights | None = None
    ) -> np.ndarray:
        """Fill rows of codes, (n_rows, n_attributes), where they are -1.

        Each row is drawn by itself, given its known codes, and given the weights of the unknown
        ones. Weights of a known code are not looked at.
        """
        ...

    def view(self, axes: Sequence[int]) -> np.ndarray:
        """Expected counts for every combination of the codes of these attributes."""
        ...

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """Everything released, as a readable table."""
        ...

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        ...

    @classmethod
    def from_arrays(
        cls, shape: tuple[int, ...], facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Model:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        ...
