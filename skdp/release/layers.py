"""Layers: real weights as sums of sets of records, for errors that are known of counts only.

A function f of one column is the sum of its level sets: of f > t for each t above zero, less those
of f < -t. So the error of a sum of f over records is at most the sum of the errors of these counts,
each times its step, and together the steps are the range of f (with zero in it).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from .._types import FloatArray

__all__ = ["are_shares", "layers_of", "layers_of_vector"]

# Level sets of either sign of one column, and of each of several columns.
_LAYERS, _CROSSED = 8, 4


def are_shares(parts: Sequence[Mapping[int, FloatArray]]) -> bool:
    """Whether all weights lie in [0, 1], as those of queries do."""
    return all(_is_share(vector) for weights in parts for vector in weights.values())


def layers_of(
    parts: Sequence[Mapping[int, FloatArray]],
) -> tuple[FloatArray, list[dict[int, FloatArray]]]:
    """Steps, all positive, and the weights in [0, 1] of the set that each of them belongs to.

    An error of the sum of the answers is at most the sum of steps times errors of the sets.
    """
    steps: list[float] = []
    sets: list[dict[int, FloatArray]] = []
    for weights in parts:
        real = [axis for axis, vector in weights.items() if not _is_share(vector)]
        number = _LAYERS if len(real) < 2 else _CROSSED
        found = [layers_of_vector(weights[axis], number) for axis in real]
        for chosen in itertools.product(*(range(len(each)) for each, _ in found)):
            own = {
                axis: found[i][1][place]
                for i, (axis, place) in enumerate(zip(real, chosen, strict=True))
            }
            sets.append({**weights, **own})
            steps.append(math.prod(float(found[i][0][place]) for i, place in enumerate(chosen)))
    return np.array(steps), sets


def layers_of_vector(vector: FloatArray, number: int = _LAYERS) -> tuple[FloatArray, FloatArray]:
    """Steps and level sets of a vector, (n,) and (n, len(vector)); of shares it is the only one.

    Level sets between two thresholds are taken as that of the middle.
    """
    if _is_share(vector):
        return np.ones(1), vector[None]
    steps, sets = [], []
    for values in (vector, -vector):
        most = float(values.max(initial=0.0))
        if most > 0:
            step = most / number
            steps += [step] * number
            sets += [values > (place + 0.5) * step for place in range(number)]
    return np.array(steps), np.array(sets, dtype=np.float64)


def _is_share(vector: FloatArray) -> bool:
    return bool(((vector >= 0) & (vector <= 1)).all())
