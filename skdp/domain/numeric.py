"""Numeric: a range of numbers, cut into bins."""

from __future__ import annotations

import math
import numbers
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._validation import CodeArray, FloatArray, IntArray, as_number, is_word
from ..exceptions import DomainError
from .bins import (
    MOST_BINS,
    Binned,
    EvenBins,
    Grid,
    Linear,
    Scale,
    check_even_integers,
    check_integer_bins,
    check_real_bins,
    declared_edges,
    declared_grid,
    declared_range,
    declared_special,
    exponent_edges,
    frozen,
    lattice_edges,
    scale_edges,
    scale_of,
)
from .contents import Points, Spread
from .reading import Coding, Column
from .values import MAX_BINS, MAX_INTEGER, as_flag, as_int, digits

# Texts that say that nothing is there.
_ABSENT = {"", "nan", "nat"}

# Where a few bins are wanted and none are declared.
FEW_BINS = 32

# Integers in a range of at most this size get one code each where nobody gives bins, in schemas
# and in domains read from data.
MOST_SINGLE = 256
AUTO = "auto"

# Parameters that do not say where bins lie.
_KEPT = ("integer", "nullable", "scale", "special", "step", "decimals")

# A range that was found does not reach beyond this many steps of whole numbers or decimals.
_MOST_STEPS = 10**14

# The largest whole number that is a float.
_LARGEST = int(sys.float_info.max)
# Rows that are encoded at once, so that they stay in the cache.
_BLOCK = 2**15


class Numeric(Binned):
    """A range of numbers, cut into bins.

    With a number of bins, these are of equal width: the code of x is ``floor((x - lower) * bins /
    (upper - lower))`` in float64. With ``"auto"``, ``edges`` or ``scale`` they are not: bin j is
    ``[edges[j], edges[j + 1])``. The last bin is closed. Numbers outside the range, infinities
    included, are clipped to its ends. After the bins come the cells of the ``special`` values, then
    the missing cell.

    Parameters
    ----------
    lower, upper : float, optional
        Publicly known range, both ends included. ``lower < upper``, except that an integer
        attribute may have a single value. With ``edges`` they are left out. Leave out both where
        nobody knows the range: a synthesizer spends a tenth of its epsilon, "ranges", to find the
        ranges of all such columns, and ``domain_`` says them; other estimators refuse the column.
        Its bins are then "auto".
    bins : int or "auto", optional
        Number of bins. "auto" gives at most 1,024, which follow from the range alone: narrow near 0
        and growing to a fiftieth of a value, with edges at multiples of 1, 2 and 5 times powers of
        ten; equally wide on a ``scale``. They are for columns by themselves: releases that count
        cells of several columns, and models with a parameter for each bin, use `resolved` instead,
        with 32 bins (the user guide says which). Default: "auto"; one bin per integer if
        ``integer`` (32 with a ``scale``). With ``integer``, ``step`` or ``decimals`` there are at
        most as many bins as possible values.
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
    bins : int
        Number of bins, also with "auto".
    auto : bool
        Whether the bins are those of "auto".
    open : bool
        Whether the range is not known: until it is found, bins are numbers of about equal size.
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
    >>> hours = Numeric(0, 1000)
    >>> hours.size, hours.labels()[0], hours.labels()[275], hours.labels()[-1]
    (800, '[0, 0.002)', '[2, 2.02)', '[995, 1000]')
    >>> balance = Numeric(0, 50_000, bins=4, scale="log", special=[0], decimals=2)
    >>> balance.labels()
    ['[0, 231.241)', '[231.241, 1531.93)', '[1531.93, 8848.06)', '[8848.06, 50000]', '0']
    """

    step: float | None = None
    decimals: int | None = None
    _by_edges: bool = False
    auto: bool = False
    open: bool = False
    # Whether an open column holds whole numbers.
    _whole: bool = False

    def __init__(
        self,
        lower: float | None = None,
        upper: float | None = None,
        bins: int | str | None = None,
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
        if lower is None and upper is None and edges is None:
            if scale != "linear" or step is not None or not (bins is None or is_word(bins, AUTO)):
                raise DomainError(
                    "A Numeric without lower and upper takes neither bins, scale nor step: they "
                    "depend on the range, which a release has to find. Declare the range that is "
                    "publicly known, or leave them out."
                )
            places = declared_grid(0, 0, integer=integer, step=None, decimals=decimals)[2]
            if places is not None and not -8 <= places <= 8:
                raise DomainError(
                    f"decimals must be in -8..8 without lower and upper, got {decimals!r}."
                )
            cuts = exponent_edges()
            self._set(lower=-1e100, upper=1e100, bins=len(cuts) - 1, _edges=cuts, integer=False)
            self._set_where_used(decimals=places, open=True, _whole=integer)
            self._set_where_used(special=declared_special(special, integer))
            return
        if edges is not None:
            if scale != "linear":
                raise DomainError(
                    f"edges and scale={scale!r} both say where to cut: give one of them."
                )
            cuts = declared_edges(edges, lower, upper, bins, integer=integer)
            low, high = cuts[0].item(), cuts[-1].item() - integer
            self._set(_edges=frozen(cuts), _by_edges=True)
        else:
            low, high = declared_range(lower, upper, integer)
        grid, plain_step, places = declared_grid(
            low, high, integer=integer, step=step, decimals=decimals
        )
        self._set(lower=low, upper=high)
        self._set_bins(bins, scale, grid, step is not None or decimals is not None)
        self._set_where_used(step=plain_step, decimals=places)
        self._set_where_used(special=declared_special(special, integer))
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
        if isinstance(bins, str) and bins != AUTO:
            raise DomainError(f"bins must be a number or {AUTO!r}, got {bins!r}.")
        law = scale_of(scale, low, high)
        points = None if grid is None else grid.last - grid.first + 1
        if is_word(bins, AUTO) or (bins is None and not self.integer):
            self._set_auto(law, scale, grid, points)
            return
        n_bins = None if bins is None else as_int(bins, "bins")
        if n_bins is not None and not 1 <= n_bins <= MAX_BINS:
            raise DomainError(f"bins must be in 1..{MAX_BINS}, got {bins!r}.")
        if self.integer:
            assert points is not None
            if n_bins is None and (sparse or scale != "linear"):
                few = scale != "linear" or points > MAX_BINS
                n_bins = min(FEW_BINS, points) if few else points
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
            self._set(scale=str(scale), _edges=frozen(cuts))

    def _set_auto(self, law: Scale, scale: str, grid: Grid | None, points: int | None) -> None:
        """The bins of "auto"; each holds a possible value."""
        low, high = self.lower, self.upper
        if not self.integer:
            check_real_bins(low, high, FEW_BINS)
        elif max(abs(low), abs(high)) > MAX_INTEGER:
            check_integer_bins(int(low), int(high), None)
        end = high + self.integer
        if not isinstance(law, Linear):
            most = MOST_BINS if points is None else min(MOST_BINS, points)
            cuts = scale_edges(law, low, high, most, self.integer)
        elif grid is not None and points is not None and points <= MOST_BINS:
            inner = grid.value(np.arange(grid.first + 1, grid.last + 1))
            cuts = np.array([low, *inner, end], dtype=np.int64 if self.integer else np.float64)
        else:
            least = Fraction(0) if grid is None else Fraction(grid.numerator, grid.denominator)
            cuts = lattice_edges(float(low), float(high), least)
            if self.integer:
                cuts = np.array([*cuts[:-1], end], dtype=np.int64)
        self._set(auto=True, scale=str(scale), _edges=frozen(cuts), bins=len(cuts) - 1)

    def _check_contents(self) -> None:
        """Refuse bins that no value can fall into."""
        held = self.contents
        stepped = self.step is not None or self.decimals is not None
        if not isinstance(held, Points) or not (stepped or len(held.special)):
            return
        grid = held.grid
        if self.auto:
            held = self._merge_empty(held)
        elif self.bins > grid.last - grid.first + 1:
            raise DomainError(
                f"bins={self.bins} exceeds the number of possible values from "
                f"{digits(self.lower)} to {digits(self.upper)} ({grid.last - grid.first + 1})."
            )
        empty = held.empty(None if stepped else held.special)
        if len(empty) and stepped and isinstance(held.bins, EvenBins) and not self.integer:
            # The formula of even bins rounds: values of the grid that are edges may fall into the
            # bin before. The nearest floats to the edges do not.
            low, width = Fraction(repr(self.lower)), Fraction(repr(self.upper))
            width = (width - low) / self.bins
            cuts = np.array([float(low + width * place) for place in range(self.bins + 1)])
            self._set(_edges=frozen(cuts))
            held = replace(held, bins=self._bins)
            empty = held.empty(None)
        if len(empty):
            texts = [self.span_label(int(code), int(code) + 1) for code in empty[:8]]
            raise DomainError(
                f"No value but special ones can fall into {', '.join(texts)}: declare fewer bins, "
                "or other edges, or a range without the special values (they may lie outside of "
                "it)"
                + (
                    ". With one code for each integer every value has a cell without being special."
                    if self.one_each
                    else "."
                )
            )

    def _merge_empty(self, held: Points) -> Points:
        """Join bins of "auto" that no value can fall into to the bin before, or after the first."""
        while self.bins > 1 and len(empty := held.empty(None)):
            cuts = np.delete(self.edges, np.maximum(empty, 1))
            self._set(_edges=frozen(cuts), bins=len(cuts) - 1)
            held = replace(held, bins=self._bins)
        return held

    def resolved(self, most: int | None) -> Numeric:
        """The same column with at most ``most`` bins of equal width, if its bins are "auto".

        Parameters
        ----------
        most : int or None
            None leaves it as it is, and so does a declared number of bins.

        Returns
        -------
        Numeric
            With the same range, special values and steps; bins of equal width on the ``scale``.
        """
        if not self.auto or most is None:
            return self
        grid, _, _ = declared_grid(
            self.lower, self.upper, integer=self.integer, step=self.step, decimals=self.decimals
        )
        points = most if grid is None else grid.last - grid.first + 1
        kept = {name: getattr(self, name) for name in _KEPT}
        plain = Numeric(self.lower, self.upper, min(most, points), **kept)
        return plain._marked() if self.inferred else plain

    def closed(self, lower: float, upper: float) -> Numeric:
        """The same column with a range, if it has none; never an error, whatever the range is.

        Parameters
        ----------
        lower, upper : float
            Widened to whole numbers or decimals, and until the special values leave some.
        """
        if not self.open:
            return self
        kept: dict[str, Any] = {"nullable": self.nullable, "special": self.special}
        if self._whole or self.decimals is not None:
            unit = Fraction(10) ** -(self.decimals or 0)
            last = int(_MOST_STEPS / max(Fraction(1), unit))
            low = min(max(math.floor(Fraction(lower) / unit), -last), last // 2)
            # Wide enough for bins that floats tell apart, and not of special values alone.
            room = (FEW_BINS if self._whole else MOST_BINS) * (len(self.special) + 1)
            least = low + max(room, abs(low) // 10**6)
            high = max(min(math.ceil(Fraction(upper) / unit), last), least)
            lower, upper = float(low * unit), float(high * unit)
            if self._whole:
                return Numeric(low, high, AUTO, integer=True, **kept)
        return Numeric(lower, upper, decimals=self.decimals, **kept)

    @property
    def contents(self) -> Spread | Points:
        """What the bins hold: `Points` of a grid (of integers, cents, ...), or all numbers."""
        scale: Scale = scale_of(self.scale, self.lower, self.upper)
        grid, _, _ = declared_grid(
            self.lower,
            self.upper,
            integer=self.integer,
            step=self.step,
            decimals=None if self.open else self.decimals,
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

    def coding(self) -> Coding:  # noqa: D102
        return Coding(place=self._place)

    def _place(self, numbers: FloatArray) -> CodeArray:
        """Code of each number, NaN where missing."""
        codes = np.empty(len(numbers), dtype=np.int32)
        for start in range(0, len(numbers), _BLOCK):
            codes[start : start + _BLOCK] = self._encode(numbers[start : start + _BLOCK])
        return codes

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
        self, codes: ArrayLike, rng: np.random.Generator, *, lower: Any = None, upper: Any = None
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
        # No column reaches beyond what floats hold.
        if isinstance(value, numbers.Integral):
            return min(max(int(value), -_LARGEST), _LARGEST)
        number = as_number(value, column)
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
        unread = np.isnan(values)
        missing = int(unread.sum())
        if missing:
            # What is there, and is no number or date of this column.
            codes, uniques = column.factorize()
            absent = [isinstance(u, str) and u.strip().lower() in _ABSENT for u in uniques]
            unread &= ~np.array([*absent, True])[codes]
        if self.special:
            values = values[~np.isin(values, self.special)]
        return {
            "below": int((values < self.lower).sum()),
            "above": int((values > self.upper).sum()),
            "to_other": 0,
            "to_missing": missing if self.nullable else 0,
            "skipped": 0 if self.nullable else missing,
            "not_understood": int(unread.sum()),
        }

    @property
    def _said_bins(self) -> int | str:
        """The bins as they were declared."""
        return AUTO if self.auto or self.open else self.bins

    def _to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "type": "numeric",
            "lower": None if self.open else self.lower,
            "upper": None if self.open else self.upper,
            "bins": self._said_bins,
            "integer": self.integer or self._whole,
            "nullable": self.nullable,
        }
        return data | self._extras()

    def _extras(self) -> dict[str, Any]:
        """The parameters beyond range, bins, integer and nullable that are not the default."""
        extras: dict[str, Any] = {}
        if self._by_edges:
            extras["edges"] = [*self.edges[:-1].tolist(), self.upper]
        if self.scale != "linear":
            extras["scale"] = self.scale
        if self.special:
            extras["special"] = list(self.special)
        if self.step is not None:
            extras["step"] = self.step
        if self.decimals is not None:
            extras["decimals"] = self.decimals
        return extras

    def _key(self) -> tuple[Any, ...]:
        own = (self.lower, self.upper, self._said_bins, self.integer, self._whole, self.nullable)
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
        elif self.open:
            parts = ["integer=True"] * self._whole
        else:
            parts = [digits(self.lower), digits(self.upper)]
            if self.auto or not self.one_each:
                parts.append(f"bins={self._said_bins!r}")
        parts += [f"{name}=True" for name in ("integer", "nullable") if getattr(self, name)]
        if "scale" in extras:
            extras["scale"] = repr(self.scale)
        if "special" in extras:
            extras["special"] = f"[{', '.join(self._special_labels())}]"
        parts += [f"{name}={value}" for name, value in extras.items()]
        return f"Numeric({', '.join(parts)})"


def _bounds(given: Any, codes: IntArray, free: float) -> FloatArray | None:
    """One bound for each code."""
    if given is None:
        return None
    bounds = np.broadcast_to(np.asarray(given, dtype=np.float64), codes.shape)
    return np.where(np.isnan(bounds), free, bounds)
