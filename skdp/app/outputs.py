"""Files that are written whole or not at all; errors that tell no value; synthesizers by name."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from .._validation import write_text as write_file
from ..release import Synopsis
from ..synthesis import (
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
)

# The description of a release begins with the name of its method.
METHODS: dict[str, type[Any]] = {
    "grid": GridSynthesizer,
    "hdpview": HDPViewSynthesizer,
    "kdtree": KDTreeSynthesizer,
    "marginals": MarginalSynthesizer,
    "privbayes": PrivBayesSynthesizer,
    "privtree": PrivTreeSynthesizer,
}


def class_of(mechanism: str) -> str | None:
    """Name of the synthesizer that made a release; None if it is not known."""
    method = METHODS.get(re.split("[,;]", mechanism)[0].replace("-", "").lower())
    return None if method is None else method.__name__


def estimator_of(options: Namespace, domain: Any) -> Any:
    """The synthesizer that the options describe, without a ledger.

    Raises
    ------
    ValueError
        If an option is missing.
    """
    if (options.privacy_id is None) != (options.max_rows_per_id is None):
        raise ValueError(
            "--privacy-id COLUMN and --max-rows-per-id K belong together: the column that "
            "identifies the person a row belongs to, and how many rows of each person to keep."
        )
    return METHODS[options.method](
        epsilon=options.epsilon,
        domain=domain,
        target=options.target,
        privacy_id=options.privacy_id,
        max_rows_per_id=options.max_rows_per_id,
    )


# --- files


def ledger_files(path: str | os.PathLike[str] | None) -> list[str]:
    """The file of a ledger, and those that SQLite keeps beside it."""
    ends = ("", "-journal", "-wal", "-shm")
    return [] if path is None else [os.path.expanduser(path) + end for end in ends]


def refuse_inputs(path: str | os.PathLike[str], inputs: Iterable[str]) -> None:
    """Refuse to write over an input or a ledger, whether or not it exists yet."""
    if os.path.realpath(path) in map(os.path.realpath, inputs):
        raise ValueError(f"{path} is an input, or the ledger: give another file.")


@contextmanager
def output(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Claim a new file, which is written within the block.

    It is created first, empty, so that a path that cannot be written, or that another run is
    writing, is refused before anything is spent. If nothing is written, it is removed.

    Raises
    ------
    ValueError
        If there is anything at the path.
    OSError
        If it cannot be written.
    """
    target = Path(path)
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        raise ValueError(
            f"{path} exists already, or another run is writing it: nothing is replaced. Remove it, "
            "or give another --out."
        ) from None
    try:
        yield target
    finally:
        with contextlib.suppress(OSError):
            if not target.stat().st_size:
                target.unlink()


def save(synopsis: Synopsis, path: Path) -> None:
    """Write a release; if that fails, write it somewhere else, because it has been paid for."""
    try:
        synopsis.save(path)
    except OSError as failed:
        other = Path(tempfile.mkdtemp(prefix="skdp-"), path.name)
        synopsis.save(other)
        raise ValueError(
            f"the release could not be written: {failed.strerror}. It has been charged and is kept "
            f"in {other}: move it from there."
        ) from failed


def write_text(text: str, out: str | None) -> None:
    """Write a text to standard output or a new file."""
    if out is None:
        print(text)
        return
    with output(out) as path:
        write_file(path, text + "\n")


# --- errors, of which no word depends on data

Read = TypeVar("Read")


class Withheld(Exception):
    """An error of which only the type is shown, because its message may quote values.

    Parameters
    ----------
    error : Exception
    left : str
        What became of the charge.
    """

    def __init__(self, error: BaseException, left: str) -> None:
        super().__init__(
            f"Failed ({type(error).__name__}). The message is withheld, because it may quote "
            f"values of the data. {left}"
        )


def read(rows: Callable[[], Read]) -> Read:
    """Read the records of a file, before anything is charged.

    Raises
    ------
    OSError
        What the system says of the file.
    Withheld
        For everything else.
    """
    try:
        # Warnings of libraries may quote a value.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return rows()
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
            raise
        raise Withheld(error, "Nothing was charged.") from None
