"""Weighted records that agree with known values or a condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .._arrays import running_sums
from .._types import CodeArray, FloatArray, IntArray
from .draws import draw_in_ranges, patterns, product_of_weights, shared_keys

__all__ = ["ENOUGH", "GivenRows", "effective_number"]

# Fewer weighted records than this that agree with a condition, by their effective number, say too
# little about the other columns: the density answers instead.
ENOUGH = 50


def effective_number(total: FloatArray, squares: FloatArray) -> FloatArray:
    """How many equal weights would say as much, from the sums of weights and of their squares."""
    return np.divide(total**2, squares, out=np.zeros_like(squares), where=squares > 0)


class GivenRows:
    """Weighted records under a condition.

    Parameters
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
    row_weights : ndarray of shape (n_rows,)
        They sum to 1.
    weights : mapping of int to ndarray
        Weight of each code, for the attributes with a condition.
    """

    def __init__(
        self, rows: CodeArray, row_weights: FloatArray, weights: Mapping[int, FloatArray]
    ) -> None:
        self.rows = rows
        self.row_weights = row_weights
        self.weights = weights
        self._sorted: dict[int, tuple[IntArray, IntArray]] = {}

    def draw(self, known: CodeArray, generator: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Positions of records that agree with each row of known codes, drawn by weight.

        Parameters
        ----------
        known : ndarray of int, shape (n_wanted, n_attributes)
            Codes, -1 where they are unknown.
        generator : numpy.random.Generator

        Returns
        -------
        position : ndarray of int, shape (n_wanted,)
            -1 where fewer than `ENOUGH` records agree, by their effective number.
        chance : ndarray of float, shape (n_wanted,)
            Total weight of those that agree; 0 where the position is -1.
        """
        position = np.full(len(known), -1, dtype=np.int64)
        chance = np.zeros(len(known))
        u = generator.random(len(known))
        for wanted, order, mass, first, stop, total in self._agreeing(known):
            drawn = draw_in_ranges(mass, first, stop, u[wanted])
            position[wanted], chance[wanted] = order[drawn], total
        return position, chance

    def chance(self, known: CodeArray) -> FloatArray:
        """Total weight of the records that agree with each row; 0 where they are too few."""
        chance = np.zeros(len(known))
        for wanted, *_, total in self._agreeing(known):
            chance[wanted] = total
        return chance

    def _agreeing(
        self, known: CodeArray
    ) -> Iterator[tuple[IntArray, IntArray, FloatArray, IntArray, IntArray, FloatArray]]:
        """For each pattern of known attributes: rows wanted, and the records that serve them.

        The records are ordered so that those of a row are neighbours, ``first`` to ``stop``.
        """
        for told, wanted in patterns(known >= 0):
            axes = np.flatnonzero(told)
            weights = {axis: each for axis, each in self.weights.items() if not told[axis]}
            live = self._candidates(known[wanted], axes)
            if len(live) < ENOUGH:
                continue
            mass = product_of_weights(self.rows[live], self.row_weights[live], weights)
            sizes = [int(self.rows[:, axis].max()) + 2 for axis in axes]
            mine, others = shared_keys(
                self.rows[np.ix_(live, axes)],
                np.minimum(known[np.ix_(wanted, axes)], np.array(sizes, dtype=np.int64) - 1),
                sizes,
            )
            order = np.argsort(mine, kind="stable")
            first = np.searchsorted(mine[order], others, side="left")
            stop = np.searchsorted(mine[order], others, side="right")
            mass = mass[order]
            total, squares = running_sums(mass), running_sums(mass**2)
            total, squares = total[stop] - total[first], squares[stop] - squares[first]
            serves = (stop - first >= ENOUGH) & (effective_number(total, squares) >= ENOUGH)
            if serves.any():
                yield (
                    wanted[serves],
                    live[order],
                    mass,
                    first[serves],
                    stop[serves],
                    total[serves],
                )

    def _candidates(self, known: CodeArray, axes: IntArray) -> IntArray:
        """Records that agree in each attribute by itself with some row, the few that remain."""
        wanted = {int(axis): np.unique(known[:, axis].astype(np.int64)) for axis in axes}
        for axis in wanted:
            if axis not in self._sorted:
                order = np.argsort(self.rows[:, axis], kind="stable")
                self._sorted[axis] = order, running_sums(np.bincount(self.rows[:, axis]))
        runs = {axis: self._runs(axis, codes) for axis, codes in wanted.items()}
        live = np.arange(len(self.rows))
        # The rarest first, from its sorted records: what remains is small at once.
        for axis in sorted(runs, key=lambda each: (runs[each][1] - runs[each][0]).sum()):
            if len(live) == len(self.rows):
                order = self._sorted[axis][0]
                parts = [order[a:b] for a, b in zip(*runs[axis], strict=True)]
                live = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
            else:
                codes = wanted[axis]
                present = np.zeros(int(max(codes[-1], self.rows[live, axis].max())) + 1, bool)
                present[codes] = True
                live = live[present[self.rows[live, axis]]]
            if len(live) < ENOUGH:
                break
        return live

    def _runs(self, axis: int, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Where the records of some codes begin and end among those sorted by an attribute."""
        reach = self._sorted[axis][1]
        last = len(reach) - 1
        return reach[np.minimum(codes, last)], reach[np.minimum(codes + 1, last)]
