"""Records of a Bayesian network given some of their codes, or a condition.

Unknown attributes above the known ones are eliminated one by one, and then drawn in the reverse
order, each from the table it was eliminated from: the conditional distribution, exactly. Where
these tables would be too large, each row is chosen among `_TRIALS` draws that have its known codes,
in proportion to the probability of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .._types import BoolArray, CodeArray, FloatArray, IntArray
from .draws import patterns
from .network_density import Conditional, Factor, NetworkDensity, elimination_order, gather
from .tree_density import inverse_rows
from .tree_given import SOFT

__all__ = ["draw_network_given"]

_TRIALS = 64
# Rows times trials that are drawn at once.
_BATCH = 1 << 18

Weights = Mapping[int, FloatArray]


def draw_network_given(
    density: NetworkDensity,
    known: CodeArray,
    generator: np.random.Generator,
    weights: Weights,
) -> tuple[CodeArray, BoolArray]:
    """Fill rows of codes where they are -1, given the codes that are known.

    Parameters
    ----------
    density : NetworkDensity
    known : ndarray of int, shape (n_rows, n_attributes)
    generator : numpy.random.Generator
    weights : mapping of int to ndarray
        Weights of unknown codes. Each vector has a positive one.

    Returns
    -------
    codes : ndarray of int32, shape (n_rows, n_attributes)
    impossible : ndarray of bool, shape (n_rows,)
        Rows whose condition has probability zero: they follow the network with a share `SOFT` of
        uniform codes in each table.
    """
    codes = np.array(known, dtype=np.int32)
    impossible = np.zeros(len(codes), dtype=bool)
    soft: NetworkDensity | None = None
    for told, rows in patterns(codes >= 0):
        own = {axis: each for axis, each in weights.items() if not told[axis]}
        axes = np.flatnonzero(told).tolist()
        codes[rows], lost = _draw_alike(density, codes[rows], axes, own, generator)
        impossible[rows] = lost
        if lost.any():
            soft = soft or _softened(density)
            again = rows[lost]
            codes[again], _ = _draw_alike(soft, np.asarray(known)[again], axes, own, generator)
    return codes, impossible


def _softened(density: NetworkDensity) -> NetworkDensity:
    """The density with a small share of uniform codes, so that nothing is impossible."""
    nodes = [
        Conditional(
            node.axis,
            node.parents,
            node.groups,
            (1 - SOFT) * node.table + SOFT / node.table.shape[1],
        )
        for node in density.nodes.values()
    ]
    return NetworkDensity(density.shape, nodes)


def _draw_alike(
    density: NetworkDensity,
    known: CodeArray,
    axes: Sequence[int],
    weights: Weights,
    generator: np.random.Generator,
) -> tuple[CodeArray, BoolArray]:
    """Fill rows that all have the same attributes known; and which of them are impossible."""
    codes = np.array(known, dtype=np.int32, order="F")
    above = density.ancestors([*axes, *weights])
    hidden = [axis for axis in above if axis not in axes]
    scopes = [tuple(sorted((axis, *density.nodes[axis].parents))) for axis in above]
    order = elimination_order(scopes, hidden, dict(enumerate(density.shape)))
    if order is None:
        lost = _choose(density, codes, above, axes, weights, generator)
    else:
        lost = _draw_back(density, codes, above, order, weights, generator)
    below = [axis for axis in density.nodes if axis not in above]
    density.fill(codes, below, generator)
    return codes, lost


def _draw_back(
    density: NetworkDensity,
    codes: CodeArray,
    above: Sequence[int],
    order: Sequence[int],
    weights: Weights,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw the attributes in ``order``, the last first; in place."""
    states = dict.fromkeys(above)
    factors = [density.factor(density.nodes[a], states, weights.get(a)) for a in above]
    known = [axis for axis in above if axis not in order]
    lost = np.zeros(len(codes), dtype=bool)
    for factor in factors:
        if set(factor.axes) <= set(known):
            lost |= factor.values[tuple(codes[:, axis] for axis in factor.axes)] <= 0
    steps = []
    for axis in order:
        whole, factors = gather(factors, axis)
        place = whole.axes.index(axis)
        others = whole.axes[:place] + whole.axes[place + 1 :]
        steps.append((axis, others, np.moveaxis(whole.values, place, -1)))
        # Only proportions matter; without this, small probabilities would vanish.
        sums = whole.values.sum(axis=place)
        factors.append(Factor(others, sums / max(float(sums.max()), np.finfo(float).tiny)))
    for axis, others, values in reversed(steps):
        row = np.zeros(len(codes), dtype=np.int64)
        for other in others:
            row = row * density.shape[other] + codes[:, other]
        codes[:, axis], none = _draw_rows(values.reshape(-1, values.shape[-1]), row, generator)
        lost |= none
    return lost


def _draw_rows(
    table: FloatArray, rows: IntArray, generator: np.random.Generator
) -> tuple[IntArray, BoolArray]:
    """Codes in proportion to rows of a table, and which rows have nothing; these get any code."""
    used, place = np.unique(rows, return_inverse=True)
    law = table[used]
    empty = law.sum(axis=1) <= 0
    law = np.where(empty[:, None], 1.0, law)
    place = place.reshape(-1)
    return inverse_rows(law, place, generator.random(len(rows))), empty[place]


def _choose(
    density: NetworkDensity,
    codes: CodeArray,
    above: Sequence[int],
    axes: Sequence[int],
    weights: Weights,
    generator: np.random.Generator,
) -> BoolArray:
    """Choose each row among several draws, by the probability of what is known; in place."""
    lost = np.zeros(len(codes), dtype=bool)
    step = max(1, _BATCH // _TRIALS)
    for first in range(0, len(codes), step):
        part = slice(first, first + step)
        trials = np.repeat(codes[part], _TRIALS, axis=0)
        with np.errstate(divide="ignore"):
            logs = _forward(density, trials, above, axes, weights, generator)
        logs = logs.reshape(-1, _TRIALS)
        highest = logs.max(axis=1, keepdims=True)
        lost[part] = ~np.isfinite(highest[:, 0])
        # Where all draws are impossible, any of them stands until the row is drawn again.
        chance = np.exp(logs - np.where(np.isfinite(highest), highest, 0.0))
        chance[lost[part]] = 1.0
        rows = np.arange(len(chance))
        chosen = rows * _TRIALS + inverse_rows(chance, rows, generator.random(len(rows)))
        codes[part] = trials[chosen]
    return lost


def _forward(
    density: NetworkDensity,
    codes: CodeArray,
    above: Sequence[int],
    axes: Sequence[int],
    weights: Weights,
    generator: np.random.Generator,
) -> FloatArray:
    """Draw unknown attributes, parents first; the logarithm of the weight of each row."""
    logs = np.zeros(len(codes))
    for axis in above:
        node = density.nodes[axis]
        rows = density.rows_of(node, codes)
        if axis in axes:
            logs += np.log(node.table[rows, codes[:, axis]])
            continue
        table = node.table * weights[axis] if axis in weights else node.table
        codes[:, axis], _ = _draw_rows(table, rows, generator)
        if axis in weights:
            logs += np.log(table.sum(axis=1))[rows]
    return logs
