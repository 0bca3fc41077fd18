"""CodedRows: rows of codes that stay in an engine, which counts them.

Rows are coded in place: by expressions that the engine evaluates, or in Dask, whose partitions are
frames of pandas, by the code for frames in memory. Distinct coded rows with their counts come back;
where many tables are counted together, DuckDB and Polars return batches of codes instead, which are
added to the tables and forgotten.

An engine can fail, for lack of memory or because the frame's own plan fails. Whether and how it
does may depend on values, so its message is withheld.
"""

from __future__ import annotations

import functools
import importlib.util
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from .._foreign import attempt
from .._validation import BATCH_ROWS, CodeArray, IntArray
from ..exceptions import EngineError
from .expressions import part_between, part_of
from .passes import Codes, Column, Marginal, Packing, Tallies, plan_pass, regroup, split

# --- rows of a plan that an engine returns batch by batch while it computes them


def gives_batches(frame: nw.LazyFrame, engine: str) -> bool:
    """Whether the engine, in its installed version, returns rows batch by batch."""
    if engine == "duckdb":
        return importlib.util.find_spec("pyarrow") is not None
    return engine == "polars" and hasattr(nw.to_native(frame), "collect_batches")


def read_batches(frame: nw.LazyFrame, engine: str) -> Iterator[list[NDArray[np.integer]]]:
    """The columns of each batch, in no order; they hold integers without gaps.

    Parameters
    ----------
    frame : narwhals LazyFrame
        For which `gives_batches` holds.
    engine : {"duckdb", "polars"}
    """
    native: Any = nw.to_native(frame)
    if engine == "duckdb":
        # The first name is that of DuckDB 1.5 and newer.
        read = getattr(native, "to_arrow_reader", None) or native.fetch_arrow_reader
        for batch in read(BATCH_ROWS):
            yield [column.to_numpy() for column in batch.columns]
    else:
        parts = native.collect_batches(
            chunk_size=BATCH_ROWS, maintain_order=False, engine="streaming"
        )
        for part in parts:
            yield [column.to_numpy() for column in part.get_columns()]


# --- the rows

ENGINES = {"polars": "Polars", "duckdb": "DuckDB", "dask": "Dask", "pyspark": "PySpark"}

_FAILED = object()

# Up to this many cells, a table over codes is counted whole by engines that give no batches.
_DENSE_CELLS = 2**22


# The first engine of Polars that keeps no more than it needs of a large frame.
_POLARS_STREAMING = (1, 23)


class CodedRows:
    """Coded rows that stay in an engine: private, and used for counts and sums only.

    Rows with a negative code, on any attribute, do not count. Every method raises EngineError if
    the engine fails.
    """

    shape: tuple[int, ...]
    _engine: str

    def cells_of_all(self) -> IntArray:
        """How many rows are kept, and skipped for each attribute and for rules: see `Coded.cells`.

        Returns
        -------
        ndarray of int64, shape (d + 2,)
        """
        raise NotImplementedError

    def rows(self) -> CodeArray:
        """All rows, in no order and in memory: ndarray of int32, shape (n, d)."""

        def repeated() -> CodeArray:
            codes, counts = self.count(range(len(self.shape)))
            return np.repeat(codes, counts, axis=0)

        # The message of a MemoryError would tell how many rows there are.
        found: CodeArray = guarded(self._engine, repeated)
        return found

    def count(self, axes: Sequence[int]) -> tuple[CodeArray, IntArray]:
        """Distinct rows of the attributes ``axes``, and how many rows each stands for.

        Parameters
        ----------
        axes : sequence of distinct int

        Returns
        -------
        codes : ndarray of int32, shape (m, len(axes))
            In no order.
        counts : ndarray of int64, shape (m,)
        """
        packing = Packing([self.shape[axis] for axis in axes])
        *keys, counts = self._tally(
            lambda codes, zero: packing.keys([codes[a] for a in axes], zero)
        )
        return packing.codes(keys), counts

    def tables(self, marginals: Sequence[Marginal]) -> list[IntArray]:
        """Counts of all cells of many tables, from one pass over the rows.

        Parameters
        ----------
        marginals : sequence of Marginal
            Together of few cells: they are held at once.
        """
        tallies = Tallies(marginals, plan_pass(marginals))
        self._fill(tallies)
        found = tallies.tables()
        return [found[number] for number in range(len(marginals))]

    def _fill(self, tallies: Tallies) -> None:
        """Add all rows to the tallies."""
        raise NotImplementedError

    def each_batch(self, axes: Sequence[int], add: Callable[[Codes, int], None]) -> None:
        """Read some columns batch by batch; only where the engine gives batches.

        Parameters
        ----------
        axes : sequence of int
            At least one.
        add : callable
            Takes the codes of each batch by attribute, none negative, and its number of rows.
        """
        raise NotImplementedError

    def cells(self, sides: Sequence[int | IntArray]) -> tuple[IntArray, IntArray]:
        """Occupied cells of a grid, and how many rows are in each.

        Parameters
        ----------
        sides : sequence of (int or ndarray of int64)
            Number of parts of each attribute, of equal width: part p of s begins at the code ``p *
            size // s``. Or the first codes of its parts, and the end.

        Returns
        -------
        cells : ndarray of int64, shape (m,)
            Their numbers in lexicographic order, ascending.
        counts : ndarray of int64, shape (m,)
        """
        _, (cells,), counts = self._tally_parts(sides)
        order = np.argsort(cells, kind="stable")
        return cells[order], counts[order]

    def parts(self, sides: Sequence[int | IntArray]) -> tuple[CodeArray, IntArray]:
        """Distinct rows of parts of the attributes, and how many rows each stands for.

        Parameters
        ----------
        sides : sequence of (int or ndarray of int64)
            Parts of each attribute, as for `cells`.

        Returns
        -------
        parts : ndarray of int32, shape (m, d)
            In no order.
        counts : ndarray of int64, shape (m,)
        """
        packing, keys, counts = self._tally_parts(sides)
        return packing.codes(keys), counts

    def _tally_parts(
        self, sides: Sequence[int | IntArray]
    ) -> tuple[Packing, list[IntArray], IntArray]:
        """Distinct rows of parts, packed, and their counts."""
        packing = Packing([each if isinstance(each, int) else len(each) - 1 for each in sides])
        *keys, counts = self._tally(functools.partial(_keys_of_parts, packing, self.shape, sides))
        return packing, keys, counts

    def sums_by_label(self, terms: LabelledSums) -> tuple[IntArray, IntArray]:
        """Rows of each label, and sums of their terms: exact integers.

        Parameters
        ----------
        terms : LabelledSums

        Returns
        -------
        counts : ndarray of int64, shape (k,)
        sums : ndarray of int64, shape (k, d)
        """
        raise NotImplementedError

    def _tally(self, keys: Keys) -> list[IntArray]:
        """Distinct keys of the rows, one column each, and their counts as the last column.

        ``keys`` gets the columns of codes, arrays or expressions, and a zero of the same kind.
        """
        raise NotImplementedError


Keys = Callable[[Sequence[Any], Any], list[Any]]


class LabelledSums(Protocol):
    """Integers of each row, one for each attribute, to be added up by a label of the row.

    The two methods must agree. Dask sends the object to workers.
    """

    @property
    def n_labels(self) -> int:
        """Labels are 0, 1, ..., below this."""

    def of_codes(self, codes: CodeArray) -> tuple[IntArray, IntArray]:
        """Rows of each label, (k,), and sums of their terms, (k, d), for rows in memory."""

    def of_frame(self, frame: Any, names: Sequence[str], skipped: Any, engine: str) -> Any:
        """A lazy frame with a column "label", and the terms in place of the codes.

        Parameters
        ----------
        frame : narwhals LazyFrame
        names : sequence of str
            Its columns of codes, in the order of the attributes.
        skipped : narwhals Expr
            Whether a row does not count: its label must be negative.
        engine : {"polars", "duckdb", "pyspark"}
        """


def _keys_of_parts(
    packing: Packing,
    shape: Sequence[int],
    sides: Sequence[int | IntArray],
    codes: Sequence[Any],
    zero: Any,
) -> list[Any]:
    """Keys of rows of parts. Not a method: Dask sends it to workers without the frame."""
    parts = []
    for column, size, side in zip(codes, shape, sides, strict=True):
        if not isinstance(side, int):
            parts.append(part_between(column, side[1:-1].tolist()))
        else:
            parts.append(zero if side == 1 else part_of(column, size, side))
    return packing.keys(parts, zero)


class EngineCodes(CodedRows):
    """Coded rows as a lazy frame with a column of integers for each attribute."""

    def __init__(
        self,
        frame: nw.LazyFrame,
        cells: nw.LazyFrame,
        names: Sequence[str],
        shape: Sequence[int],
        engine: str,
    ) -> None:
        self._frame = frame
        # A column "cell" and a column "rows": how many rows of it.
        self._cells = cells
        self._names = list(names)
        self._engine = engine
        self.shape = tuple(shape)

    def cells_of_all(self) -> IntArray:  # noqa: D102
        by_cell = self._cells.group_by("cell").agg(nw.col("rows").sum())
        found = guarded(self._engine, lambda: _collect(by_cell, self._engine))
        cells = np.zeros(len(self.shape) + 2, dtype=np.int64)
        cells[found["cell"].astype(np.int64)] = found["rows"]
        return cells

    @property
    def _skipped(self) -> Any:
        return functools.reduce(operator.or_, (nw.col(name) < 0 for name in self._names))

    def tables(self, marginals: Sequence[Marginal]) -> list[IntArray]:  # noqa: D102
        if gives_batches(self._frame, self._engine):
            return super().tables(marginals)
        # The engine itself counts, by codes: groups of any kind would be slow conditions.
        columns = [Column(axis, size) for axis, size in enumerate(self.shape)]
        by_code = {
            each.axes: Marginal(tuple(columns[axis] for axis in each.axes)) for each in marginals
        }
        held = [each for each in by_code.values() if each.cells <= _DENSE_CELLS]
        found: dict[tuple[int, ...], IntArray] = {}
        for some in split(held):
            found.update(zip([each.axes for each in some], super().tables(some), strict=True))
        return [
            regroup(found[each.axes], each.columns) if each.axes in found else self._counted(each)
            for each in marginals
        ]

    def _counted(self, marginal: Marginal) -> IntArray:
        """One table of groups from the distinct rows of codes."""
        codes, counts = self.count(marginal.axes)
        tallies = Tallies([marginal], plan_pass([marginal]))
        tallies.add(dict(zip(marginal.axes, codes.T, strict=True)), len(counts), counts)
        return tallies.tables()[0]

    def _fill(self, tallies: Tallies) -> None:
        if not gives_batches(self._frame, self._engine):
            self._fill_grouped(tallies)
            return
        self.each_batch(tallies.axes or [0], tallies.add)

    def each_batch(  # noqa: D102
        self, axes: Sequence[int], add: Callable[[Codes, int], None]
    ) -> None:
        frame = self._frame
        # The first column says which rows are skipped.
        kept = {
            self._names[axis]: nw.col(self._names[axis]).cast(_small(self.shape[axis]))
            for axis in axes
        }
        first = self._names[axes[0]]
        kept[first] = nw.when(self._skipped).then(nw.lit(-1)).otherwise(nw.col(first))
        kept[first] = kept[first].cast(_small(self.shape[axes[0]]))

        def fill() -> None:
            for columns in read_batches(frame.select(**kept), self._engine):
                known = columns[0] >= 0
                if not known.all():
                    columns = [column[known] for column in columns]
                add(dict(zip(axes, columns, strict=True)), len(columns[0]))

        guarded(self._engine, fill)

    def _fill_grouped(self, tallies: Tallies) -> None:
        """Add rows that the engine has counted: every row becomes one row for each block."""
        keys = tallies.keys([nw.col(name) for name in self._names], nw.lit(0, nw.Int64))
        named = {
            f"key{number}": nw.when(self._skipped).then(nw.lit(-1)).otherwise(key).cast(nw.Int64)
            for number, key in enumerate(keys)
        }
        found = self._group(
            lambda cell: _stacked(self._frame.select(**named), self._engine),
            {"cell": nw.col("cell")},
            {"count": nw.len()},
        )
        known = found["cell"] >= 0
        tallies.cells[found["cell"][known].astype(np.int64)] = found["count"][known]

    def _tally(self, keys: Keys) -> list[IntArray]:
        # The rows to be skipped become one more group, which saves a filter.
        named = {
            f"key{number}": nw.when(self._skipped).then(nw.lit(-1)).otherwise(key)
            for number, key in enumerate(
                keys([nw.col(name) for name in self._names], nw.lit(0, nw.Int64))
            )
        }
        found = self._group(self._frame.with_columns, named, {"count": nw.len()})
        known = found["key0"] >= 0
        return [found[name][known].astype(np.int64, copy=False) for name in [*named, "count"]]

    def sums_by_label(  # noqa: D102
        self, terms: LabelledSums
    ) -> tuple[IntArray, IntArray]:
        k, names = terms.n_labels, self._names
        found = self._group(
            lambda **key: terms.of_frame(self._frame, names, self._skipped, self._engine),
            {"label": nw.col("label")},
            {"count": nw.len(), **{name: nw.col(name).sum() for name in names}},
        )
        known = found["label"] >= 0
        place = found["label"][known].astype(np.int64)
        counts = np.zeros(k, dtype=np.int64)
        sums = np.zeros((k, len(names)), dtype=np.int64)
        counts[place] = found["count"][known]
        for axis, name in enumerate(names):
            sums[place, axis] = found[name][known]
        return counts, sums

    def _group(
        self, prepare: Callable[..., Any], keys: Mapping[str, Any], sums: Mapping[str, Any]
    ) -> dict[str, NDArray[Any]]:
        wanted = [*keys, *(name for name in sums if name != "count")]
        return guarded(
            self._engine,
            lambda: _collect(
                prepare(**keys)
                .select(*wanted)
                .group_by(*keys)
                .agg(*(total.alias(name) for name, total in sums.items())),
                self._engine,
            ),
        )


def guarded(engine: str, ask: Callable[[], Any]) -> Any:
    """The engine's answer; if it fails, its message is withheld, because it may quote values."""
    answer = attempt(ask, _FAILED)
    if answer is not _FAILED:
        return answer
    raise EngineError(
        f"{ENGINES[engine]} failed to count the rows. Its message is withheld, because it may "
        "quote values of the data: run the plan of the frame by itself to read it. What was "
        "charged for this fit stays spent, and nothing was released. If memory was short, declare "
        "fewer columns or bins: every distinct coded row takes 16 bytes and 4 more for each column."
    )


def _stacked(frame: nw.LazyFrame, engine: str) -> nw.LazyFrame:
    """All columns below each other, as one: "cell"."""
    if engine == "duckdb":
        # The unpivot of narwhals works on DuckDB's default connection only.
        relation: Any = nw.to_native(frame)
        return nw.from_native(relation.select(f"unnest([{', '.join(relation.columns)}]) AS cell"))
    return frame.unpivot(variable_name="block", value_name="cell")


def _small(size: int) -> Any:
    """A small type of integers for codes below ``size`` and -1."""
    return nw.Int8 if size <= 2**7 else nw.Int16 if size <= 2**15 else nw.Int32


def _collect(frame: nw.LazyFrame, engine: str) -> dict[str, NDArray[Any]]:
    """Run a plan: its columns, which hold integers or numbers without gaps."""
    if engine == "polars":
        version = tuple(map(int, nw.get_native_namespace(frame).__version__.split(".")[:2]))
        options: dict[str, Any] = {"engine": "streaming"} if version >= _POLARS_STREAMING else {}
        table = frame.collect(**options)
    else:
        # PySpark converts to pandas in a way that newer pandas warns about.
        table = frame.collect(backend="pyarrow" if engine == "pyspark" else "pandas")
    return {name: table[name].to_numpy() for name in table.columns}
