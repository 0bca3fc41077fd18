"""Checked parameters, arrays and their types, errors withheld, whole files, escaped HTML."""

from __future__ import annotations

import contextlib
import enum
import errno
import html
import math
import numbers
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .exceptions import DomainError


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place once it is complete and on the disk.

    If anything fails, whatever was at ``path`` stays as it was. Behind a symbolic link the file
    that it names is replaced. Other hard links to that file keep the old contents. What is no file,
    such as a pipe, is written itself.

    Raises
    ------
    OSError
        If ``path`` or its folder cannot be written; it names ``path``.
    """
    name = os.fspath(path)
    target = Path(os.path.realpath(path))
    existing = os.path.exists(path)
    if existing and not os.path.isfile(path):
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        yield Path(path)
        return
    # Only the folder decides whether a file can be replaced, but one that was made read-only was
    # protected on purpose.
    if existing and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    part = target.with_name(f".skdp-{uuid.uuid4().hex}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if existing:
            shutil.copymode(target, part)
        yield part
        with open(part, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, part, str(part)):
            raise
        raise OSError(error.errno, error.strerror, name) from error
    finally:
        # A folder that has vanished must not hide the first error.
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    _sync_folder(target.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text in UTF-8; an existing file is replaced, and kept if that fails."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


class Markup(str):
    """HTML, which is put into other HTML as it is."""


def markup(template: str, **values: object) -> Markup:
    """HTML of a template. Values are put into it escaped, unless they are `Markup`."""
    as_html = {
        name: value if isinstance(value, Markup) else html.escape(str(value))
        for name, value in values.items()
    }
    return Markup(template.format_map(as_html))


def table_html(table: pd.DataFrame, **how: Any) -> Markup:
    """HTML of a table, whose texts are escaped and never cut."""
    with pd.option_context("display.max_colwidth", None):
        return Markup(table.to_html(border=0, na_rep="", **how))


def _sync_folder(folder: Path) -> None:
    """Put the new name on the disk too, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ------------------------------------------------------------------------------------------------
# Errors withheld: whether code that runs on records raises, and what its error says, may depend on
# a record.

T = TypeVar("T")
D = TypeVar("D")


def attempt(ask: Callable[[], T], otherwise: D) -> T | D:
    """What ``ask`` returns, or ``otherwise`` if it raises, whatever it raises.

    Only what the user ends the process with gets out; see `reraise_interrupts`.
    """
    try:
        return ask()
    except BaseException as error:  # panics of Rust, which quote values, are not an Exception
        reraise_interrupts(error)
    return otherwise


def reraise_interrupts(error: BaseException) -> None:
    """Raise ``error`` again if the user ends the work with it, by Ctrl-C; return otherwise.

    A SystemExit of the code that ran is like any other error: its text may quote a value.
    """
    if isinstance(error, KeyboardInterrupt):
        raise error


# ------------------------------------------------------------------------------------------------
# Type aliases for the arrays in signatures.


# Measurements, probabilities, weights.
FloatArray: TypeAlias = NDArray[np.float64]
# Counts, cell numbers, positions.
IntArray: TypeAlias = NDArray[np.int64]
# Codes of records: the smallest type that holds every domain.
CodeArray: TypeAlias = NDArray[np.int32]
BoolArray: TypeAlias = NDArray[np.bool_]

# ------------------------------------------------------------------------------------------------
# Small helpers for arrays that several packages use: sums of pieces, sums of groups, runs.


Number = TypeVar("Number", bound=np.number)

# Positions closer than this (in bins) to an edge are on the edge: 0.3 is meant as the edge that
# float arithmetic puts at 0.30000000000000004. A bin is not divided where less would be left.
EDGE = 1e-9

# Rows of a batch: enough to outweigh the calls for it, few enough for a processor's cache.
BATCH_ROWS = 2**17


def batches(n: int, n_rows: int | None = None) -> list[slice]:
    """Where the batches of n rows are; of ``n_rows`` each, if that is not None.

    Examples
    --------
    >>> batches(200_000)
    [slice(0, 131072, None), slice(131072, 200000, None)]
    """
    step = BATCH_ROWS if n_rows is None else n_rows
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]


def exclusive_cumsum(values: NDArray[Number], axis: int | None = None) -> NDArray[Number]:
    """Sum of the elements before each one: where each of consecutive pieces begins.

    Parameters
    ----------
    values : ndarray
        Lengths of the pieces.
    axis : int, default=None
        Axis to sum along; None needs one dimension.

    Returns
    -------
    ndarray of the shape of ``values``

    Examples
    --------
    >>> exclusive_cumsum(np.array([3, 2, 5]))
    array([0, 3, 5])
    """
    return np.cumsum(values, axis=axis) - values


def places_by_group(groups: IntArray, n_groups: int) -> list[IntArray]:
    """Where the members of each group stand, ascending.

    Parameters
    ----------
    groups : ndarray of int, shape (n,), in 0..n_groups - 1
    n_groups : int

    Examples
    --------
    >>> [places.tolist() for places in places_by_group(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    ends = np.cumsum(np.bincount(groups, minlength=n_groups))
    return np.split(np.argsort(groups, kind="stable"), ends[:-1])


def project_to_simplex(values: ArrayLike, total: float) -> FloatArray:
    """Nearest point of {x >= 0, sum = total} by least squares; zeros if there is no such point.

    Parameters
    ----------
    values : array-like
    total : float

    Returns
    -------
    ndarray of float64, of the shape of ``values``
    """
    v = np.asarray(values, dtype=np.float64)
    if total <= 0:
        return np.zeros(v.shape)
    ordered = np.sort(v, axis=None)[::-1]
    shift = (np.cumsum(ordered) - total) / np.arange(1, v.size + 1)
    last = int(np.flatnonzero(ordered > shift)[-1])
    return np.maximum(v - shift[last], 0.0)


def running_sums(values: NDArray[Number]) -> NDArray[Number]:
    """Zero, then the sum up to and including each element: one more than there are elements.

    The sum of ``values[i:j]`` is the difference of elements ``j`` and ``i``.

    Parameters
    ----------
    values : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n + 1,)

    Examples
    --------
    >>> running_sums(np.array([3, 2, 5]))
    array([ 0,  3,  5, 10])
    """
    sums = np.cumsum(values)
    return np.concatenate([np.zeros(1, dtype=sums.dtype), sums])


def integer_sums(group: NDArray[Any], size: int, weights: NDArray[Any] | None = None) -> IntArray:
    """Sum of the whole numbers of each group, exactly.

    Parameters
    ----------
    group : ndarray of int, shape (n,)
        Group of each number, from 0 to ``size - 1``.
    size : int
        Number of groups.
    weights : ndarray of int, shape (n,), default=None
        The numbers; None counts.

    Returns
    -------
    ndarray of int64, shape (size,)

    Examples
    --------
    >>> integer_sums(np.array([0, 2, 2]), 3, np.array([5, 1, -4])).tolist()
    [5, 0, -3]
    """
    if weights is None or int(np.abs(weights).sum()) < 2**53:
        # No partial sum is larger, so all are exact in the floats of bincount.
        sums = np.bincount(group, weights=weights, minlength=size)
        return sums.astype(np.int64, copy=False)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, group, weights)
    return total


def run_starts(values: NDArray[Any]) -> IntArray:
    """Where runs of equal numbers, or of equal rows, begin; there is at least one.

    Examples
    --------
    >>> run_starts(np.array([4, 4, 7, 7, 7, 4]))
    array([0, 2, 5])
    """
    changes = values[1:] != values[:-1]
    if changes.ndim > 1:
        changes = changes.any(axis=1)
    return np.flatnonzero(np.concatenate([[True], changes]))


def snapped(positions: ArrayLike) -> FloatArray:
    """Positions in bins, those that are all but at an edge moved onto it.

    Examples
    --------
    >>> snapped([0.1 + 0.2, 2.9999999999, 3.5]).tolist()
    [0.30000000000000004, 3.0, 3.5]
    """
    values = np.asarray(positions, dtype=np.float64)
    nearest = np.round(values)
    return np.where(np.abs(values - nearest) < EDGE, nearest, values)


# Keeps ratios and logarithms finite.
TINY = 1e-9


def ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    """By what sums are multiplied to be those that are wanted; 0 where nothing was found."""
    return np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)


def used_attributes(shape: Sequence[int]) -> list[int]:
    """Attributes with more than one code; the others carry no information."""
    return [axis for axis, size in enumerate(shape) if size > 1]


# ------------------------------------------------------------------------------------------------
# Checks of parameters, shared by all layers, and the wording of their errors.


# Largest number of values (rows times columns) drawn by default: 2 to 10 GB.
MOST_VALUES_DRAWN = 500_000_000
# Largest number that can be asked for: 4 TB of codes.
_MOST_VALUES_HELD = 10**12


def as_number(value: Any, name: str) -> float:
    """Read a real number; it may be infinite.

    Raises
    ------
    TypeError
        If ``value`` is not a real number (strings and booleans are not).
    """
    _check_number(value, name)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _check_number(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")


def as_fraction(value: Any, name: str, digits: int | None = None) -> Fraction:
    """Read a finite real number as the decimal that the user wrote.

    ``0.1`` becomes 1/10 and not the double next to it, so three charges of 0.1 fit into
    a budget of 0.3.

    Raises
    ------
    TypeError
        If ``value`` is not a real number (strings and booleans are not).
    ValueError
        If it is not finite, or a fraction of more ``digits`` than allowed.
    """
    _check_number(value, name)
    if isinstance(value, numbers.Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
        if digits is not None and max(abs(exact.numerator), exact.denominator) >= 10**digits:
            raise ValueError(
                f"{name} must be a fraction whose numerator and denominator have at most "
                f"{digits:,} digits. Give a shorter one: Fraction(...).limit_denominator(10**12)."
            )
        return exact
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}.")
    return Fraction(repr(number))


def as_between(value: Any, name: str, least: Any, most: Any, *, meaning: str = "") -> Fraction:
    """Read a number from ``least`` to ``most``, as `as_fraction`; ``meaning`` is why, in an error.

    Raises
    ------
    TypeError, ValueError
        As `as_fraction`, or if it lies elsewhere.
    """
    number = as_fraction(value, name)
    if not as_fraction(least, name) <= number <= as_fraction(most, name):
        raise ValueError(
            f"{name} must lie between {float(least):g} and {float(most):g}, got {value!r}"
            + (f": {meaning}" if meaning else ".")
        )
    return number


def as_share(
    value: Any, name: str, most: Any = Fraction(999, 1000), *, meaning: str = ""
) -> Fraction:
    """Read a share of a budget, of which something is left: at least 0.001, at most ``most``."""
    return as_between(value, name, Fraction(1, 1000), most, meaning=meaning)


def as_epsilon(value: Any, name: str = "epsilon", *, digits: int = 1_000) -> Fraction:
    """Read a privacy parameter as an exact fraction.

    Its parts have some more digits than epsilon, and Python writes 4,300 at most.

    Raises
    ------
    TypeError
        If ``value`` is not a number.
    ValueError
        If it is not positive and finite, or a fraction of more ``digits`` than allowed.
    """
    epsilon = as_fraction(value, name, digits)
    if epsilon > sys.float_info.max:
        raise ValueError(f"{name} must be finite, and less than 1e308.")
    if epsilon <= 0:
        raise ValueError(
            f"{name} must be positive, got {value!r}: without privacy loss nothing can be "
            "released. Typical values lie between 0.01 and 10."
        )
    return epsilon


def as_integer(
    value: Any, name: str, least: int | None = None, *, meaning: str | None = None
) -> int:
    """Read an integer, by default of any sign.

    Parameters
    ----------
    value : int
    name : str
        Name of the parameter in messages.
    least : int, default=None
        Smallest value that is allowed.
    meaning : str, default=None
        What the parameter is, added to messages after a colon; it ends with a full stop.

    Raises
    ------
    TypeError
        If ``value`` is not an integer (floats and booleans are not).
    ValueError
        If it is less than ``least``.
    """
    end = "." if meaning is None else f": {meaning}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        kind = type(value).__name__
        raise TypeError(f"{name} must be an integer, got {value!r} of type {kind}{end}")
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}{end}")
    return int(value)


def is_word(value: Any, word: str) -> bool:
    """Whether a parameter is the given string; safe for arrays and trees, unlike ``==``."""
    return isinstance(value, str) and value == word


def check_choice(value: Any, name: str, allowed: Iterable[str | None]) -> None:
    """Check that a parameter is one of a few strings (or None, if that is allowed).

    Raises
    ------
    ValueError
        If it is anything else.
    """
    choices = list(allowed)
    if not (isinstance(value, str) or value is None) or value not in choices:
        *most, last = (repr(choice) for choice in choices)
        listed = f"{', '.join(most)} or {last}" if most else last
        raise ValueError(f"{name} must be {listed}, got {value!r}.")


def check_flag(value: Any, name: str) -> bool:
    """Read a parameter that is True or False.

    Raises
    ------
    TypeError
        If it is anything else; numbers are not.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def as_level(level: Any, name: str = "level") -> float:
    """Read a confidence level.

    Raises
    ------
    TypeError
        If ``level`` is not a number (strings and booleans are not).
    ValueError
        If it does not lie strictly between 0 and 1.
    """
    number = as_number(level, name)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be between 0 and 1, for example 0.95, got {level!r}.")
    return number


def split_epsilon(epsilon: Fraction, shares: Mapping[str, Any]) -> dict[str, Fraction]:
    """Divide ``epsilon`` into named parts in proportion to ``shares``; the parts sum to it exactly.

    Parameters
    ----------
    epsilon : Fraction
    shares : mapping of str to number
        Non-negative weights; zero shares get no part.
    """
    weights = {name: as_fraction(share, f"share {name!r}") for name, share in shares.items()}
    total = sum(weights.values())
    if total <= 0 or any(weight < 0 for weight in weights.values()):
        raise ValueError(f"Shares must be non-negative and not all zero, got {dict(shares)!r}.")
    return {name: epsilon * weight / total for name, weight in weights.items() if weight}


def dyadic_floor(epsilon: Fraction, bits: int = 20) -> Fraction:
    """Largest multiple of 2**-bits that is at most ``epsilon``; it scales the noise.

    Never rounds up. More bits are taken for small values, so that at most one part in 2**10
    of the budget is left unused.
    """
    while epsilon * 2**bits < 2**10:
        bits += 10
    return Fraction(math.floor(epsilon * 2**bits), 2**bits)


def as_sample_size(n_samples: Any, total: float, n_columns: int, *, most: bool = False) -> int:
    """Number of synthetic rows to draw; by default the noisy number of records.

    Parameters
    ----------
    n_samples : int or None
    total : float
        Released number of records.
    n_columns : int
    most : bool, default=False
        Whether None means at most as many rows as fit into `MOST_VALUES_DRAWN`, for training data,
        where fewer rows are enough.

    Raises
    ------
    TypeError, ValueError
        If it is not a number of rows, more than any memory holds, or None would draw more than
        `MOST_VALUES_DRAWN` values.
    """
    if n_samples is None:
        number, limit = max(0, round(total)), MOST_VALUES_DRAWN // max(n_columns, 1)
        if number <= limit or most:
            return min(number, limit)
        raise ValueError(
            f"The release holds about {number:,} records of {n_columns} columns, and drawing as "
            f"many synthetic rows would take about {number * n_columns * 12 / 1e9:,.0f} GB of "
            "memory. Give the number of rows: n_samples=1_000_000 is enough for most uses, and the "
            "release itself answers counts. Drawing again spends no budget."
        )
    number = as_integer(
        n_samples, "n_samples", 0, meaning="None draws as many rows as the noisy row count says."
    )
    if number * n_columns > _MOST_VALUES_HELD:
        raise ValueError(
            f"n_samples={number:,} rows of {n_columns} columns do not fit into memory: the largest "
            f"number is {_MOST_VALUES_HELD // n_columns:,}. Draw fewer rows at a time, each time "
            "with another random_state. Drawing again spends no budget."
        )
    return number


# --- names of columns that a result adds to columns with names of the user's choice


def free_name(wanted: str, taken: Container[str]) -> str:
    """``wanted``, followed by underscores until it differs from every name in ``taken``.

    Examples
    --------
    >>> free_name("count", {"age", "count"})
    'count_'
    """
    while wanted in taken:
        wanted += "_"
    return wanted


# --- what is declared of columns: what is wrong is a DomainError


def plain_text(value: str, what: str) -> str:
    """A str that every library can store."""
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise DomainError(f"{what} {value!r} is not valid Unicode text: half of a surrogate pair.")
    return str(value)


Category: TypeAlias = str | int | bool | float


def refuse_placeholder(value: Any, what: str) -> None:
    """Refuse the dots that `Domain.propose` leaves to be filled in, in code or in JSON."""
    if value is ... or (isinstance(value, str) and value == "..."):
        how = "Replace it by what is publicly known, never by what the records hold."
        raise DomainError(f"{what} is still `...`, a placeholder. {how}")


def plain_category(value: Any, what: str) -> Category:
    """A category as a plain Python value; members of an Enum stand for their values."""
    if value is ...:
        refuse_placeholder(value, what)
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.bool_ | np.number):
        value = value.item()
    if isinstance(value, str):
        return plain_text(value, what)
    if isinstance(value, numbers.Integral):
        return value if isinstance(value, bool) else int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    how = "Convert it to text, here and in the data; for gaps use nullable=True."
    kinds = "categories must be str, int, bool or finite float"
    raise DomainError(f"{what} {value!r} has type {type(value).__name__}; {kinds}. {how}")


def as_end(value: Any, name: str, whole: bool) -> float:
    """A declared number: finite, and an integer where ``whole``."""
    refuse_placeholder(value, name)
    number = as_number(value, name)
    if not math.isfinite(number):
        how = "Declare the range that is publicly known; values beyond it are clipped."
        raise DomainError(f"{name} must be finite, got {value!r}. {how}")
    if whole and number != math.floor(number):
        raise DomainError(f"{name} must be an integer, got {value!r}.")
    return int(value) if whole else number + 0.0  # no negative zero


def as_list(value: Any, name: str) -> list[Any]:
    """A declared list of values."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise DomainError(f"{name} must be a list of values, got {value!r}.")
    return list(value)


def digits(value: float) -> str:
    """Shortest text of a number, integers without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


def some(values: Sequence[Any], limit: int = 8) -> str:
    """A few values, for messages and reprs."""
    more = len(values) - limit
    return ", ".join(repr(v) for v in values[:limit]) + (f", ... ({more} more)" if more > 0 else "")
