"""Simulated errors of single attributes: what the noise of their views does to a released model.

Post-processing: the released counts stand for the records, and are measured again with new noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, cast

import numpy as np

from ..._random import NoiseSource, sampling_generator
from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...release import round_line
from ...rows import Counts
from ..pairviews.budget import used_attributes
from ..pairviews.single import DIRECT, single_shares, single_views

__all__ = ["Alone", "simulated_errors", "variance_of_total"]

# Numbers of simulations, and of simulated counts that decide between them.
_FEWEST, _MOST, _COUNTS = 4, 24, 1 << 17


class Alone(NamedTuple):
    """How single attributes were measured.

    Attributes
    ----------
    shape : tuple of int
        The label has one code if its classes were counted.
    epsilon, total_epsilon : Fraction
        Costs of all single attributes, and of the total or the counts of classes.
    orders : sequence of ndarray of int or None
    widths : mapping of int to ndarray of float64
    label : int or None
        The attribute whose classes were counted.
    n_classes : int
        Their number; 1 without such an attribute.
    label_variance : float
        Of the count of a class in the end.
    """

    shape: tuple[int, ...]
    epsilon: Fraction
    total_epsilon: Fraction
    orders: Sequence[IntArray | None]
    widths: Mapping[int, FloatArray]
    label: int | None = None
    n_classes: int = 1
    label_variance: float = 0.0


class _Margins:
    """Counts of single attributes that stand for a table."""

    def __init__(self, counts: Sequence[IntArray]) -> None:
        self._counts = counts
        self.shape = tuple(len(each) for each in counts)

    def regrouped_many(self, sets: Sequence[tuple[Sequence[int], object]]) -> Iterator[IntArray]:
        return (self._counts[axis] for (axis,), _ in sets)


def simulated_errors(
    marginals: Sequence[FloatArray], total: float, alone: Alone, source: NoiseSource
) -> list[FloatArray]:
    """Errors of the counts of each attribute, if the released ones were the true ones.

    Parameters
    ----------
    marginals : sequence of ndarray of float64
        Released shares of the codes.
    total : float
        Released number of records.
    alone : Alone
    source : NoiseSource

    Returns
    -------
    list of ndarray of float32, shape (n_simulations, size)
    """
    generator = sampling_generator(source)
    number = max(round(total), 1)
    exact = [round_line(mu, number, generator) for mu in marginals]
    counts = list(exact)
    if alone.label is not None:
        counts[alone.label] = np.array([number])
    table = cast(Counts, _Margins(counts))
    n_codes = sum(len(mu) for mu in marginals)
    errors: list[list[FloatArray]] = [[] for _ in marginals]
    for _ in range(min(max(_COUNTS // n_codes, _FEWEST), _MOST)):
        zeros = np.zeros(alone.n_classes, dtype=np.int64)
        noise = discrete_laplace(zeros, alone.total_epsilon, random_state=source)
        first = number + int(noise.sum())
        views, _ = single_views(
            table,
            alone.epsilon,
            first,
            alone.total_epsilon,
            alone.orders,
            widths=alone.widths,
            random_state=source,
        )
        if alone.label is not None:
            errors_of_classes = generator.normal(size=alone.n_classes)
            errors_of_classes *= np.sqrt(alone.label_variance)
            views[alone.label] = exact[alone.label] + errors_of_classes
        for found, view, truth in zip(errors, views, exact, strict=True):
            found.append((view - truth).astype(np.float32))
    return [np.stack(each) for each in errors]


def variance_of_total(alone: Alone) -> float:
    """Variance of the released number of records, an average of several by `single_views`."""
    precision = 1 / discrete_laplace_variance(alone.total_epsilon)
    # The sum of the counts of the classes has the noise of them all.
    n_counts = alone.n_classes
    told = precision * n_counts
    used = used_attributes(alone.shape)
    for axis, share in enumerate(single_shares(alone.shape)):
        if axis in used and (alone.shape[axis] < DIRECT or alone.orders[axis] is None):
            variance = discrete_laplace_variance(alone.epsilon * share)
            precision += 1 / (alone.shape[axis] * variance)
            told += 1 / (alone.shape[axis] * variance)
    return told / precision**2
