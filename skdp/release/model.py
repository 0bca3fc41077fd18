"""Model: the interface of released models that a synopsis uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from ..domain import Domain
from .intervals import Error

__all__ = ["Model", "Weights", "by_attributes"]

Weights = Mapping[int, np.ndarray]


def by_attributes(queries: Sequence[Weights]) -> dict[tuple[int, ...], list[int]]:
    """Positions of the queries that constrain the same attributes, by these attributes."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for position, weights in enumerate(queries):
        groups.setdefault(tuple(sorted(weights)), []).append(position)
    return groups


class Model(Protocol):
    """The interface of a released model over a domain that a `Synopsis` uses.

    ``answer`` is linear in each weight vector: weights outside [0, 1] give weighted sums.
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

    def sample_codes(self, n_samples: int, generator: np.random.Generator) -> np.ndarray:
        """Draw records, (n_samples, n_attributes) int32 codes."""
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
