"""What a command says of the records: its progress, and errors. No word of it depends on data."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import IO, TypeVar

__all__ = ["Progress", "Withheld", "read"]

Read = TypeVar("Read")


class Progress:
    """Lines on standard error that say what a command does; silent with ``--quiet``.

    Parameters
    ----------
    quiet : bool
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        # Percentages are for people who wait, not for log files.
        self._live = not quiet and sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Show one line."""
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)

    def reading(
        self, file: IO[bytes], size: int, lines: Iterator[bytes | None]
    ) -> Iterator[bytes | None]:
        """Pass on the lines of a file; on a terminal, show the share of the file in tens."""
        if not self._live or size <= 0:
            yield from lines
            return
        # All tens in turn, however many lines there are: which of them are shown would tell that.
        shown = 0
        for number, line in enumerate(lines):
            # Asking for the place in the file is slow.
            if number % 65536 == 0:
                shown = self._show(shown, min(10 * file.tell() // size, 9))
            yield line
        self._show(shown, 10)
        print(file=sys.stderr, flush=True)

    def _show(self, shown: int, reached: int) -> int:
        for tens in range(shown + 1, reached + 1):
            print(f"\r  {10 * tens}%", end="", file=sys.stderr, flush=True)
        return max(shown, reached)


class Withheld(Exception):
    """An error of which only the type is shown, because its message may quote values.

    Parameters
    ----------
    error : Exception
    left : str
        What became of the charge.
    """

    def __init__(self, error: Exception, left: str) -> None:
        super().__init__(
            f"Failed ({type(error).__name__}). The message is withheld, because it may quote "
            f"values of the data. {left}"
        )


def read(rows: Callable[[Progress], Read], progress: Progress) -> Read:
    """Read the records of a file, before anything is charged.

    Raises
    ------
    OSError
        What the system says of the file.
    Withheld
        For everything else, such as the errors of the libraries for Parquet.
    """
    try:
        # Warnings of libraries may quote a value.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return rows(progress)
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
            raise
        raise Withheld(error, "Nothing was charged.") from None
