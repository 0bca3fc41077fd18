"""The value of a column, inferred from the other columns with the help of synthetic rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._types import IntArray
from ..quality._marginals import grouped
from ._membership import _BLOCK
from ._scene import Scene, distances, neighbours_among
from ._target import Target

__all__ = ["inferred"]


def inferred(target: Target, scene: Scene, secrets: Sequence[int]) -> dict[int, IntArray]:
    """Guess "in" for a row whose secret the nearest synthetic row tells.

    The attacker knows all other columns of the row. The secret counts as told if the nearest
    synthetic row in these columns has a value of the same group (of 20 for a number). Values that
    follow from the other columns are told for members and others alike.

    Parameters
    ----------
    target : Target
    scene : Scene
    secrets : sequence of int
        Positions of columns.

    Returns
    -------
    dict of int to ndarray of int64
        Guesses by the position of the secret column.
    """
    domain, codes = scene.domain, scene.codes
    rows = neighbours_among(target.rows, scene.rng)
    truth, told = grouped(codes, domain)[0], grouped(rows, domain)[0]
    made = {secret: np.zeros(len(codes), dtype=np.int64) for secret in secrets}
    step = max(_BLOCK // len(rows), 1)
    for start in range(0, len(codes), step):
        part = slice(start, start + step)
        apart = np.zeros((len(codes[part]), len(rows)), dtype=np.float32)
        for axis in range(len(domain)):
            apart += distances(domain, codes[part], rows, axis)
        for secret in secrets:
            known = apart - distances(domain, codes[part], rows, secret)
            # Equal distances may differ in their last bits.
            nearest = np.argmin(np.round(known, 5), axis=1)
            made[secret][part] = truth[part, secret] == told[nearest, secret]
    return made
