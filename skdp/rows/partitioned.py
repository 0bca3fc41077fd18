"""PartitionedCodes: the partitions of a Dask frame, coded and counted where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from .._types import CodeArray, IntArray
from ..domain import Domain
from .coded import CodedRows, Keys, LabelledSums, first_unfit, guarded
from .frames import as_frame
from .tallies import Tallies

__all__ = ["PartitionedCodes"]


class PartitionedCodes(CodedRows):
    """Coded rows in the partitions of a Dask frame, each a frame of pandas on some worker."""

    _engine = "dask"

    def __init__(self, frame: Any, domain: Domain) -> None:
        self._frame = frame
        self._domain = domain
        self.shape = domain.shape

    def cells_of_all(self) -> IntArray:  # noqa: D102
        zero = np.zeros(0, dtype=np.int64)
        meta = pd.DataFrame({"cell": zero, "count": zero})
        found = self._sum(_cells_of_partition, (), meta, ["cell"]).set_index("cell")["count"]
        cells: IntArray = found.reindex(range(len(self.shape) + 2), fill_value=0).to_numpy()
        return cells

    def _tally(self, keys: Keys) -> list[IntArray]:
        zero = np.zeros(0, dtype=np.int64)
        empty = keys([zero] * len(self.shape), zero)
        names = [f"key{number}" for number in range(len(empty))]
        meta = pd.DataFrame(dict.fromkeys([*names, "count"], zero))
        found = self._sum(_tally_partition, (keys,), meta, names)
        return [found[name].to_numpy() for name in [*names, "count"]]

    def _fill(self, tallies: Tallies) -> None:
        zero = np.zeros(0, dtype=np.int64)
        meta = pd.DataFrame({"cell": zero, "count": zero})
        found = self._sum(_fill_partition, (tallies.empty,), meta, ["cell"])
        tallies.cells[found["cell"].to_numpy()] = found["count"].to_numpy()

    def sums_by_label(  # noqa: D102
        self, terms: LabelledSums
    ) -> tuple[IntArray, IntArray]:
        zero = np.zeros(0, dtype=np.int64)
        names = [f"sum{axis}" for axis in range(len(self.shape))]
        meta = pd.DataFrame(dict.fromkeys(["label", "count", *names], zero))
        found = self._sum(_sums_of_partition, (terms,), meta, ["label"])
        found = found.set_index("label").reindex(range(terms.n_labels), fill_value=0)
        return found["count"].to_numpy(), found[names].to_numpy()

    def _sum(
        self, kernel: Callable[..., Any], arguments: tuple[Any, ...], meta: Any, by: list[str]
    ) -> pd.DataFrame:
        """The result of a kernel on each partition, summed by some of its columns."""
        return guarded(
            self._engine,
            lambda: (
                self._frame.map_partitions(kernel, self._domain, *arguments, meta=meta)
                .groupby(by, sort=False)
                .sum()
                .reset_index()
                .compute()
            ),
        )


def _represented(part: pd.DataFrame, domain: Domain) -> CodeArray:
    codes = domain.encode_columns(as_frame(part))
    return codes[(codes >= 0).all(axis=1)]


def _cells_of_partition(part: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """Cells of the rows of one partition, kept and skipped, and how many rows each has."""
    found = first_unfit(domain.encode_columns(as_frame(part), broken=-2))
    cells, counts = np.unique(found, return_counts=True)
    return pd.DataFrame({"cell": cells, "count": counts})


def _tally_partition(part: pd.DataFrame, domain: Domain, keys: Keys) -> pd.DataFrame:
    """Distinct keys of the rows of one partition, and their counts."""
    codes = _represented(part, domain).astype(np.int64)
    found = keys(list(codes.T), np.zeros(len(codes), dtype=np.int64))
    named = {f"key{number}": key for number, key in enumerate(found)}
    return pd.DataFrame(named).groupby(list(named), sort=False).size().reset_index(name="count")


def _fill_partition(
    part: pd.DataFrame, domain: Domain, empty: Callable[[], Tallies]
) -> pd.DataFrame:
    """Cells of tallies that the rows of one partition add to, and how many rows each gets."""
    codes = _represented(part, domain)
    tallies = empty()
    tallies.add(dict(enumerate(codes.T)), len(codes))
    cells = np.flatnonzero(tallies.cells)
    return pd.DataFrame({"cell": cells, "count": tallies.cells[cells]})


def _sums_of_partition(part: pd.DataFrame, domain: Domain, terms: LabelledSums) -> pd.DataFrame:
    """Counts and sums of the rows of one partition, a row for each label."""
    counts, sums = terms.of_codes(_represented(part, domain))
    named = {f"sum{axis}": sums[:, axis] for axis in range(sums.shape[1])}
    return pd.DataFrame({"label": np.arange(len(counts)), "count": counts, **named})
