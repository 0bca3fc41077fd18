"""Binned: labels and groups of the bins and special values of an attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays import run_starts
from ..._types import IntArray
from ..attribute import MISSING_LABEL, Attribute, Level, halvings
from ..taxonomy import Taxonomy
from ..values import digits
from .bins import EvenBins, UnevenBins

__all__ = ["Binned"]

# From this many bins on, intervals that grow with the distance from 0 are offered.
_LOG_BINS = 128


class Binned(Attribute):
    """Labels and groups of bins, special values and the missing cell: a part of `Numeric`."""

    lower: float
    upper: float
    bins: int
    integer: bool
    scale: str = "linear"
    special: tuple[float, ...] = ()
    _edges: NDArray[Any] | None = None

    @property
    def n_values(self) -> int:
        """Number of bins and special values."""
        return self.bins + len(self.special)

    @property
    def n_alone(self) -> int:  # noqa: D102
        return len(self.special) + self.nullable

    @property
    def one_each(self) -> bool:
        """Whether there is a bin for each integer."""
        return self.integer and self.bins == self.upper - self.lower + 1

    @property
    def uneven(self) -> bool:
        """Whether the bins follow from ``edges`` or a ``scale``."""
        return self._edges is not None

    @property
    def _bins(self) -> EvenBins | UnevenBins:
        if self._edges is not None:
            return UnevenBins(self._edges)
        return EvenBins(self.lower, self.upper, self.bins, self.integer)

    @property
    def edges(self) -> NDArray:
        """Bin j is ``[edges[j], edges[j + 1])``: array of shape (bins + 1,).

        float64, the last edge being ``upper``, which belongs to the last bin; for an integer
        attribute int64, the last edge being ``upper + 1``.
        """
        return self._bins.edges_at(np.arange(self.bins + 1))

    def labels(self) -> list[str]:  # noqa: D102
        if self.one_each:
            texts = [str(value) for value in self.edges[:-1]]
        else:
            edges = self._edge_texts(np.arange(self.bins + 1))
            texts = [f"[{low}, {high})" for low, high in zip(edges[:-1], edges[1:], strict=True)]
            if not self.integer:
                texts[-1] = texts[-1][:-1] + "]"
        return texts + self._special_labels() + [MISSING_LABEL] * self.nullable

    def _edge_texts(self, positions: IntArray) -> list[str]:
        edges = self._bins.edges_at(positions).tolist()
        if self.scale != "linear" and not self.integer:
            # Edges of a scale are not round: six digits, if these tell them apart.
            all_edges = self.edges
            if (np.diff(all_edges) > 2e-6 * np.abs(all_edges[1:])).all():
                edges = [float(f"{edge:.6g}") for edge in edges]
        return [digits(edge) for edge in edges]

    def _special_labels(self) -> list[str]:
        return [digits(value) for value in self.special]

    def span_label(self, start: int, stop: int) -> str:
        """Text for the values of the bins from ``start`` up to ``stop``, exclusive."""
        closed = stop == self.bins and not self.integer
        low, high = self._edge_texts(np.array([start, stop]))
        return f"[{low}, {high}{']' if closed else ')'}"

    def hierarchy(self) -> tuple[Taxonomy, IntArray]:  # noqa: D102
        return Taxonomy.dyadic(self), np.arange(self.bins)

    def _families(
        self, limit: int, against_rest: bool
    ) -> Iterator[list[tuple[IntArray, list[str]]]]:
        limit -= len(self.special)
        finest = []
        for family in self._bin_families(limit):
            yield [self._with_special(groups, texts) for groups, texts in family]
            finest += [groups for groups, _ in family[-1:]]
        if against_rest and limit > 1:
            for groups in finest:
                for cut in range(1, int(groups[-1]) + 1):
                    yield [self._with_special(*self._spans((groups >= cut).astype(np.int64)))]

    def _bin_families(self, limit: int) -> Iterator[list[tuple[IntArray, list[str]]]]:
        codes = np.arange(self.bins, dtype=np.int64)
        yield [self._spans(groups) for groups in halvings(codes, self.bins, limit)]
        crowded = self.upper >= 0 and self.lower <= self.upper / 100
        if self._edges is not None or self.bins < _LOG_BINS or not crowded:
            return
        # In a finely divided range from about 0 (or below) to a large number, values often crowd
        # near 0: money, durations. Positions are on a scale that is linear within each octave of
        # the distance from 0 in bins: 0, 1, 2, 4, 8, ... bins away are equally far apart.
        zero = int(self._bins.encode(np.clip(np.zeros(1), self.lower, self.upper))[0])
        away = np.abs(codes - zero)
        octave = np.frexp(away.astype(np.float64))[1]
        start = np.where(away > 0, np.exp2(octave - 1.0), 0.0)
        position = octave + np.where(away > 0, (away - start) / np.maximum(start, 1.0), 0.0)
        position *= np.where(codes < zero, -1, 1)
        # A left edge belongs to the interval on its right, on both sides of 0.
        span = position[-1] + 1 - position[0]
        levels = []
        for depth in range(1, (limit if limit > 1 else 1).bit_length()):
            groups = np.floor((position - position[0]) / span * 2**depth).astype(np.int64)
            groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
            levels.append(self._spans(groups))
        yield levels

    def equal_parts(self, n_parts: int) -> Level:
        """Merge the bins into ``n_parts`` groups, as equal as possible.

        Parameters
        ----------
        n_parts : int
            At most the number of bins. Special values and the missing cell are further groups.
        """
        codes = np.arange(self.bins, dtype=np.int64)
        groups, texts = self._with_special(*self._spans(codes * n_parts // self.bins))
        if self.nullable:
            return Level(np.append(groups, len(texts)), [*texts, MISSING_LABEL])
        return Level(groups, texts)

    def _with_special(self, groups: IntArray, texts: list[str]) -> tuple[IntArray, list[str]]:
        """Groups of bins, and each special value as a group of its own."""
        if not self.special:
            return groups, texts
        own = len(texts) + np.arange(len(self.special))
        return np.concatenate([groups, own]), texts + self._special_labels()

    def _spans(self, groups: IntArray) -> tuple[IntArray, list[str]]:
        """Groups of consecutive bins with their labels."""
        starts = run_starts(groups)
        stops = np.append(starts[1:], self.bins)
        if self.one_each:
            values = (int(self.lower) + starts, int(self.lower) + stops - 1)
            texts = [
                str(low) if low == high else f"{low} to {high}"
                for low, high in zip(*(part.tolist() for part in values), strict=True)
            ]
        else:
            texts = [
                self.span_label(low, high)
                for low, high in zip(starts.tolist(), stops.tolist(), strict=True)
            ]
        return groups, texts
