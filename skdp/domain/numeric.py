"""Numeric: a range of numbers, cut into bins."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._arrays import run_starts
from .._types import CodeArray, FloatArray, IntArray
from ..exceptions import DomainError
from .attribute import MISSING_LABEL, Attribute, Level, halvings
from .bins import (
    EvenBins,
    UnevenBins,
    check_even_integers,
    check_integer_bins,
    check_real_bins,
    declared_edges,
    scale_edges,
)
from .contents import Points, Spread
from .grids import Grid, declared_grid
from .reading import Column, LazyColumn
from .scales import Linear, Scale, scale_of
from .taxonomy import Taxonomy
from .values import MAX_BINS, as_flag, as_float, as_int, digits, some

__all__ = ["Numeric"]

DEFAULT_BINS = 32


# From this many bins on, intervals that grow with the distance from 0 are offered.
_LOG_BINS = 128

# Each is compared with every value.
_MOST_SPECIAL = 256


class Numeric(Attribute):
    """A range of numbers, cut into bins.

    The bins are of equal width by default: the code of x is ``floor((x - lower) * bins / (upper -
    lower))`` in float64. With ``edges`` or ``scale`` they are not: bin j is ``[edges[j],
    edges[j + 1])``. The last bin is closed. Numbers outside the range, infinities included, are
    clipped to its ends. After the bins come the cells of the ``special`` values, then the missing
    cell.

    Parameters
    ----------
    lower, upper : float
        Publicly known range, both ends included. ``lower < upper``, except that an integer
        attribute may have a single value. With ``edges`` they are left out.
    bins : int, optional
        Number of bins. Default: one per integer if ``integer``, else 32; with ``step``,
        ``decimals`` or, for integers, a ``scale``, at most one for each possible value.
    integer : bool, default=False
        Values are integers: fractions are rounded down first, and each bin holds the integers
        that the formula maps to it, about equally many, at least one. ``lower``, ``upper``,
        ``edges`` and ``special`` must be integers. Sampled values are integers too. One code for
        each integer is too many for wide ranges (and one-way tables are then inaccurate): give
        ``bins``.
    nullable : bool, default=False
        Whether a missing value has a cell of its own, the last code. Otherwise records without
        this value are skipped.
    edges : list of float, optional
        Public edges of uneven bins, increasing: ``Numeric(edges=[0, 1, 10, 100])`` has the range 0
        to 100 and three bins.
    scale : {"linear", "log", "sqrt"}, default="linear"
        Where bins are narrow: evenly wide, or narrow near ``lower`` as suits money and durations.
        "log" cuts at equal ratios (from ``lower=0`` on, equally on ``log(1 + x / u)`` with u =
        ``upper / 1000``), "sqrt" at equal differences of the root of ``x - lower``. Values within a
        bin are taken to be uniform on the scale, by samples, sums and shares alike.
    special : list of float, optional
        Values that many records share, such as 0 or the code 999 for "not asked", inside or outside
        of the range. Each has a cell of its own. They are numbers: ranges contain them, and sums
        and means use their value. They are compared as float64, before anything is clipped.
    step : float, optional
        Sampled values are ``lower``, ``lower + step`` and so on; of ``special`` values, these.
        Records are not rounded. A query for a single value is answered by its share of the bin.
    decimals : int, optional
        Sampled values have at most this many decimal digits: 2 for cents, -3 for thousands. Not
        together with ``step``.

    Attributes
    ----------
    size : int
        Number of codes: bins, special values, and the missing cell.
    inferred : bool
        Whether it was read from data, by `Domain.infer`; False if it was declared.

    Raises
    ------
    DomainError
        If the parameters declare no usable range, or a bin that no value can fall into.

    Examples
    --------
    >>> Numeric(17, 90, integer=True).size
    74
    >>> Numeric(0, 200_000, bins=50).labels()[:2]
    ['[0, 4000)', '[4000, 8000)']
    >>> balance = Numeric(0, 50_000, bins=4, scale="log", special=[0], decimals=2)
    >>> balance.labels()
    ['[0, 231.242)', '[231.242, 1531.92)', '[1531.92, 8848.01)', '[8848.01, 50000]', '0']
    """

    lower: float
    upper: float
    bins: int
    integer: bool
    # Class attributes, so that attributes pickled by earlier versions have them too.
    scale: str = "linear"
    special: tuple[float, ...] = ()
    step: float | None = None
    decimals: int | None = None
    _edges: NDArray[Any] | None = None
    _by_edges: bool = False

    def __init__(
        self,
        lower: float | None = None,
        upper: float | None = None,
        bins: int | None = None,
        *,
        integer: bool = False,
        nullable: bool = False,
        edges: Any = None,
        scale: str = "linear",
        special: Any = (),
        step: float | None = None,
        decimals: int | None = None,
    ) -> None:
        integer = as_flag(integer, "integer")
        self._set(integer=integer, nullable=as_flag(nullable, "nullable"))
        if edges is not None:
            if scale != "linear":
                raise DomainError(
                    f"edges and scale={scale!r} both say where to cut: give one of them."
                )
            cuts = declared_edges(edges, lower, upper, bins, integer=integer)
            low, high = cuts[0].item(), cuts[-1].item() - integer
            self._set(_edges=_frozen(cuts), _by_edges=True)
        else:
            low, high = _declared_range(lower, upper, integer)
        grid, plain_step, places = declared_grid(
            low, high, integer=integer, step=step, decimals=decimals
        )
        self._set(lower=low, upper=high)
        self._set_bins(bins, scale, grid, step is not None or decimals is not None)
        self._set_where_used(step=plain_step, decimals=places)
        self._set_where_used(special=_declared_special(special, integer))
        self._check_contents()

    def _set_where_used(self, **values: Any) -> None:
        """Set what is not the default of the class."""
        self._set(**{k: v for k, v in values.items() if v != getattr(type(self), k)})

    def _set_bins(self, bins: Any, scale: str, grid: Grid | None, sparse: bool) -> None:
        """Number of bins, and their edges where they follow from a scale."""
        low, high = self.lower, self.upper
        if self._edges is not None:
            self._set(bins=len(self._edges) - 1)
            return
        law = scale_of(scale, low, high)
        n_bins = None if bins is None else as_int(bins, "bins")
        if n_bins is not None and not 1 <= n_bins <= MAX_BINS:
            raise DomainError(f"bins must be in 1..{MAX_BINS}, got {bins!r}.")
        if n_bins is None and (sparse or not self.integer or scale != "linear"):
            most = DEFAULT_BINS if grid is None else grid.last - grid.first + 1
            few = not self.integer or scale != "linear"
            n_bins = min(DEFAULT_BINS, most) if few or most > MAX_BINS else most
        if self.integer:
            n_bins = check_integer_bins(int(low), int(high), n_bins)
        assert n_bins is not None
        self._set(bins=n_bins)
        if isinstance(law, Linear):
            if self.integer:
                check_even_integers(int(low), int(high), n_bins)
            else:
                check_real_bins(low, high, n_bins)
        else:
            cuts = scale_edges(law, low, high, n_bins, self.integer)
            self._set(scale=str(scale), _edges=_frozen(cuts))

    def _check_contents(self) -> None:
        """Refuse bins that no value can fall into."""
        held = self.contents
        stepped = self.step is not None or self.decimals is not None
        if not isinstance(held, Points) or not (stepped or len(held.special)):
            return
        grid = held.grid
        if self.bins > grid.last - grid.first + 1:
            raise DomainError(
                f"bins={self.bins} exceeds the number of possible values from "
                f"{digits(self.lower)} to {digits(self.upper)} ({grid.last - grid.first + 1})."
            )
        if stepped:
            among = np.arange(self.bins)
        else:
            # Only special values can empty a bin.
            among = np.unique(self._bins.encode(held.special.astype(np.float64)))
        first, stop = held.first(among), held.first(among + 1)
        taken = np.searchsorted(held.special, stop) - np.searchsorted(held.special, first)
        empty = among[stop - first - taken < 1]
        if len(empty):
            texts = [self.span_label(int(code), int(code) + 1) for code in empty[:8]]
            raise DomainError(
                f"No value but special ones can fall into {', '.join(texts)}: declare fewer bins, "
                "or other edges, or a range without the special values (they may lie outside of "
                "it)"
                + (
                    ". With one code for each integer every value has a cell without being special."
                    if self._one_each
                    else "."
                )
            )

    @property
    def n_values(self) -> int:
        """Number of bins and special values."""
        return self.bins + len(self.special)

    @property
    def _one_each(self) -> bool:
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
    def contents(self) -> Spread | Points:
        """What the bins hold: `Points` of a grid (of integers, cents, ...), or all numbers."""
        scale: Scale = scale_of(self.scale, self.lower, self.upper)
        grid, _, _ = declared_grid(
            self.lower, self.upper, integer=self.integer, step=self.step, decimals=self.decimals
        )
        if grid is None:
            special = np.array(sorted(self.special), dtype=np.float64)
            return Spread(self._bins, self.lower, self.upper, scale, special)
        places = []
        for value in sorted(self.special):
            place = int(grid.at_least(value))
            if self.lower <= value <= self.upper and grid.value(place) == value:
                places.append(place)
        plain = self.integer and self.step is None
        return Points(self._bins, grid, plain, scale, np.array(places, dtype=np.int64))

    @property
    def edges(self) -> NDArray:
        """Bin j is ``[edges[j], edges[j + 1])``: array of shape (bins + 1,).

        float64, the last edge being ``upper``, which belongs to the last bin; for an integer
        attribute int64, the last edge being ``upper + 1``.
        """
        return self._bins.edges_at(np.arange(self.bins + 1))

    @property
    def centers(self) -> FloatArray:
        """Mean of the values that `decode` draws in each bin: shape (bins,)."""
        return self.contents.means()

    def means(self) -> FloatArray:
        """Mean value of each code but the missing cell: `centers`, then the special values.

        Returns
        -------
        ndarray of float64, shape (n_values,)
        """
        return np.concatenate([self.centers, np.array(self.special, dtype=np.float64)])

    def span(self, codes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value that `decode` can give for each code; nan if missing.

        Parameters
        ----------
        codes : array-like of int, shape (n,), in 0..size - 1

        Returns
        -------
        low, high : ndarray of float64, shape (n,)
            Both ends included.
        """
        given = np.asarray(codes, dtype=np.int64)
        inside = given < self.bins
        low, high = (
            self._with_cells(given, end) for end in self.contents.span(np.where(inside, given, 0))
        )
        return low, high

    def order(self) -> IntArray:
        """Codes in an order in which neighbours are similar: special values among the bins.

        Returns
        -------
        ndarray of int64, shape (size,)
            The missing cell is the last.
        """
        codes = np.arange(self.size)
        if not self.special:
            return codes
        # A special value stands before the bin that would hold it.
        edges = self.edges.astype(np.float64)
        place = np.searchsorted(edges[1:-1], self.special, side="right")
        place = np.where(np.array(self.special) > self.upper, self.bins, place)
        keys = np.concatenate([np.arange(self.bins) + 0.5, place, [np.inf] * self.nullable])
        ties = np.concatenate([np.zeros(self.bins), self.special, [0.0] * self.nullable])
        return np.lexsort((ties, keys))

    def encode(self, column: Column) -> CodeArray:  # noqa: D102
        return self._encode(self._numbers(column))

    def expression(self, column: LazyColumn) -> Any:  # noqa: D102
        missing = self.n_values if self.nullable else -1
        edges = None if self._edges is None else self._edges[1:-1].astype(np.float64).tolist()
        return column.binned(
            float(self.lower),
            float(self.upper),
            self.bins,
            integer=self.integer,
            missing=missing,
            edges=edges,
            special=[float(value) for value in self.special],
        )

    def _encode(self, values: FloatArray) -> CodeArray:
        # Clipping first changes no code and keeps infinities out of the arithmetic.
        x = np.clip(values, self.lower, self.upper)
        missing = np.isnan(x)
        some_missing = bool(missing.any())
        if some_missing:
            x[missing] = self.lower
        if self.integer:
            np.floor(x, out=x)
        codes = self._bins.encode(x)
        for place, value in enumerate(self.special):
            codes[values == value] = self.bins + place
        if some_missing:
            codes[missing] = self.n_values if self.nullable else -1
        return codes

    def draw(
        self, codes: ArrayLike, rng: np.random.Generator, lower: Any = None, upper: Any = None
    ) -> FloatArray:
        """Numbers for codes, as float64; nan for the missing cell.

        Parameters
        ----------
        codes : array-like of shape (n,), in 0..size - 1
        rng : numpy.random.Generator
        lower, upper : float or array-like of shape (n,), default=None
            Closed bounds of each number. Where a code has no number between them, the nearest
            that it has is taken. NaN is no bound.

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        given = np.asarray(codes, dtype=np.int64)
        positions = np.where(given < self.bins, given, 0)
        drawn = self.contents.draw(
            positions, rng, _bounds(lower, given, -np.inf), _bounds(upper, given, np.inf)
        )
        return self._with_cells(given, np.asarray(drawn, dtype=np.float64))

    def _with_cells(self, codes: IntArray, numbers: FloatArray) -> FloatArray:
        """Numbers of bins, and those of the other cells."""
        if self.special:
            special = np.array(self.special, dtype=np.float64)
            place = codes - self.bins
            held = (place >= 0) & (place < len(special))
            numbers = np.where(held, special[np.where(held, place, 0)], numbers)
        if self.nullable:
            numbers = np.where(codes == self.n_values, np.nan, numbers)
        return numbers

    def decode(
        self,
        codes: ArrayLike,
        rng: np.random.Generator,
        *,
        lower: Any = None,
        upper: Any = None,
    ) -> pd.Series:
        """Values for codes, drawn from what each code stands for.

        Parameters
        ----------
        codes : array-like of shape (n,), in 0..size - 1
        rng : numpy.random.Generator
        lower, upper : float or array-like of shape (n,), default=None
            Closed bounds, see `draw`.
        """
        return self._finish(self.draw(codes, rng, lower, upper))

    def _finish(self, numbers: FloatArray) -> pd.Series:
        """Numbers, nan where missing, as values of the column."""
        if not self.integer:
            return pd.Series(numbers)
        if not self.nullable:
            return pd.Series(numbers.astype(np.int64))
        missing = np.isnan(numbers)
        values = pd.array(np.where(missing, 0, numbers).astype(np.int64), dtype="Int64")
        values[missing] = pd.NA
        return pd.Series(values)

    def labels(self) -> list[str]:  # noqa: D102
        if self._one_each:
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
        for family in self._bin_families(limit):
            yield [self._with_special(groups, texts) for groups, texts in family]

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
        if self._one_each:
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

    def _refusal(self, kind: str) -> str | None:
        if kind in ("numeric", "boolean", "object", "null", "decimal"):
            return None
        if kind == "string":
            return (
                "is declared Numeric but holds text; convert it to numbers, or declare it "
                "Categorical"
            )
        if kind in ("temporal", "zoned"):
            return "is declared Numeric but holds dates or times; declare it Date or Datetime"
        if kind == "duration":
            return (
                "is declared Numeric but holds durations or times of the day; convert it to a "
                "number, such as minutes"
            )
        return "is declared Numeric but does not hold numbers; convert it to numbers"

    def number(self, value: Any, column: str) -> float | int:
        """A value of a query as a number; integers stay exact.

        Parameters
        ----------
        value : int or float
        column : str
            For messages.

        Raises
        ------
        ValueError
            If it cannot be compared with the column.
        """
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise ValueError(
                f"Column {column!r} is numeric and cannot be compared with {value!r} of type "
                f"{type(value).__name__}."
            )
        if isinstance(value, numbers.Integral):
            return int(value)
        number = float(value)
        if math.isnan(number):
            raise ValueError(
                f"Column {column!r} cannot be compared with nan. For missing values ask for None, "
                "if the column is nullable."
            )
        return number

    def _numbers(self, column: Column) -> FloatArray:
        """Values on the number line, NaN where there is none."""
        return column.numbers()

    def _diagnose(self, column: Column) -> dict[str, int]:
        values = self._numbers(column)
        missing = int(np.isnan(values).sum())
        if self.special:
            values = values[~np.isin(values, self.special)]
        return {
            "below": int((values < self.lower).sum()),
            "above": int((values > self.upper).sum()),
            "to_other": 0,
            "to_missing": missing if self.nullable else 0,
            "skipped": 0 if self.nullable else missing,
        }

    def _to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "type": "numeric",
            "lower": self.lower,
            "upper": self.upper,
            "bins": self.bins,
            "integer": self.integer,
            "nullable": self.nullable,
        }
        return data | self._extras()

    def _extras(self) -> dict[str, Any]:
        """The parameters beyond range, bins, integer and nullable that are not the default."""
        extras: dict[str, Any] = {}
        if self._by_edges:
            extras["edges"] = self._declared_edges()
        if self.scale != "linear":
            extras["scale"] = self.scale
        if self.special:
            extras["special"] = list(self.special)
        if self.step is not None:
            extras["step"] = self.step
        if self.decimals is not None:
            extras["decimals"] = self.decimals
        return extras

    def _declared_edges(self) -> list[float]:
        return [*self.edges[:-1].tolist(), self.upper]

    def _key(self) -> tuple[Any, ...]:
        own = (self.lower, self.upper, self.bins, self.integer, self.nullable)
        extras = tuple(
            (name, tuple(value) if isinstance(value, list) else value)
            for name, value in self._extras().items()
        )
        return (*own, extras)

    def __repr__(self) -> str:
        extras = self._extras()
        if self._by_edges:
            edges = [digits(edge) for edge in extras.pop("edges")]
            parts = [f"edges=[{', '.join(edges)}]"]
        else:
            parts = [digits(self.lower), digits(self.upper)]
            if not self._one_each:
                parts.append(f"bins={self.bins}")
        parts += [f"{name}=True" for name in ("integer", "nullable") if getattr(self, name)]
        if "scale" in extras:
            extras["scale"] = repr(self.scale)
        if "special" in extras:
            extras["special"] = f"[{', '.join(self._special_labels())}]"
        parts += [f"{name}={value}" for name, value in extras.items()]
        return f"Numeric({', '.join(parts)})"


def _frozen(cuts: NDArray[Any]) -> NDArray[Any]:
    cuts.setflags(write=False)
    return cuts


def _declared_range(lower: Any, upper: Any, integer: bool) -> tuple[float, float]:
    for name, value in (("lower", lower), ("upper", upper)):
        if value is None:
            raise DomainError(
                f"{name} must be a number, got None: Numeric needs lower and upper, or edges. "
                "Declare the range that is publicly known; values beyond it are clipped."
            )
    low, high = as_float(lower, "lower"), as_float(upper, "upper")
    if low > high or (low == high and not integer):
        raise DomainError(f"Numeric needs lower < upper, got lower={lower!r} and upper={upper!r}.")
    if integer:
        return as_int(lower, "lower"), as_int(upper, "upper")
    return low, high


def _declared_special(given: Any, integer: bool) -> tuple[float, ...]:
    """The special values as plain numbers, in the declared order."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise DomainError(f"special must be a list of numbers, such as [0, 999], got {given!r}.")
    values = tuple(
        as_int(value, "A special value of integer=True")
        if integer
        else as_float(value, "A special value") + 0.0
        for value in given
    )
    repeated = [value for value in set(values) if values.count(value) > 1]
    if repeated:
        raise DomainError(f"special values must differ, but {some(repeated)} is repeated.")
    if len(values) > _MOST_SPECIAL:
        raise DomainError(
            f"special takes at most {_MOST_SPECIAL} values, got {len(values)}. Use a Categorical "
            "for columns with a list of values."
        )
    return values


def _bounds(given: Any, codes: IntArray, free: float) -> FloatArray | None:
    """One bound for each code."""
    if given is None:
        return None
    bounds = np.broadcast_to(np.asarray(given, dtype=np.float64), codes.shape)
    return np.where(np.isnan(bounds), free, bounds)
