"""What commands write: releases, tables and texts; the synthesizers by name.

Names of the synthesizers on the command line.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from .._validation import replacing
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

# --- names and estimators

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


# ------------------------------------------------------------------------------------------------
# What commands write: releases, tables and texts, to files that are claimed before any work.


# The file of a ledger, and those that SQLite keeps beside it.
SQLITE = ("", "-journal", "-wal", "-shm")


@contextmanager
def output(path: Path, force: bool, inputs: Sequence[str | os.PathLike] = ()) -> Iterator[Path]:
    """Claim a path that is written, whole, within the block.

    The file is created first, empty, so that a path that cannot be written, or that another run is
    writing, is refused before anything is spent. If nothing is written, it is removed.

    Raises
    ------
    ValueError
        If the path is a folder or a device, lies in no folder, is an input, or exists and ``force``
        is not set.
    OSError
        If it cannot be written.
    """
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} into.")
    if path.is_dir():
        raise ValueError(f"--out names the folder {path}: give a file in it.")
    if path.exists() and not path.is_file():
        raise ValueError(f"--out names {path}, which is no file: give a file.")
    refuse_inputs(path, inputs)
    # Behind a symbolic link, which may name a file that does not exist yet.
    target = Path(os.path.realpath(path))
    made = not target.exists()
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | (0 if force else os.O_EXCL), 0o666))
    except FileExistsError:
        raise ValueError(
            f"{path} exists already, or another run is writing it: give another --out, or --force "
            "to replace it."
        ) from None
    try:
        # Once more, now that it exists: on some file systems p and P are one file.
        refuse_inputs(path, inputs)
        if not os.access(target.parent, os.W_OK):
            raise ValueError(
                f"The folder {target.parent} is read-only, so {path} cannot be replaced."
            )
        yield path
    finally:
        with contextlib.suppress(OSError):
            if made and not target.stat().st_size:
                target.unlink()


def refuse_inputs(path: Path, inputs: Sequence[str | os.PathLike]) -> None:
    """Refuse to write over an input, however its path is spelled and whether or not it exists."""
    for each in inputs:
        same = os.path.realpath(path) == os.path.realpath(each)
        if same or (path.exists() and Path(each).exists() and path.samefile(each)):
            raise ValueError(f"--out names {path}, which is the input: give another file.")


def save(synopsis: Synopsis, path: Path) -> None:
    """Write a release; if that fails, write it somewhere else, because it has been paid for."""
    try:
        synopsis.save(path)
    except OSError as error:
        failed = error
    else:
        return
    # None is the folder for temporary files.
    for folder in (None, os.path.expanduser("~"), os.curdir):
        other = None
        try:
            handle, other = tempfile.mkstemp(suffix=".skdp", dir=folder)
            os.close(handle)
            synopsis.save(other)
        except OSError:
            if other is not None:
                Path(other).unlink(missing_ok=True)
            continue
        raise ValueError(
            f"the release could not be written: {failed.strerror}. It has been charged and is kept "
            f"in {other}: move it from there."
        ) from failed
    raise ValueError(
        f"the release could not be written: {failed.strerror}. It is lost, because it could be "
        "kept nowhere else either. What was charged for it stays spent."
    ) from failed


def write_table(
    make: Callable[[], pd.DataFrame],
    out: str | None,
    force: bool,
    inputs: Sequence[str | os.PathLike],
    *,
    digits: int | None = None,
) -> None:
    """Write a table: as CSV to standard output or a file.

    Parameters
    ----------
    make : callable () -> DataFrame
        Called once it is known that the file can be written.
    out : str or None
        None writes to standard output.
    force : bool
        Whether an existing file is replaced.
    inputs : sequence of paths
        Files that ``out`` must not be.
    digits : int, default=None
        Digits of fractions in CSV; None: as many as they have.
    """
    others = (".xlsx", ".xls", ".xlsm", ".json", ".parquet", ".pq")
    if out is not None and Path(out).suffix.lower() in others:
        raise ValueError(f"{out}: tables are written as CSV. Name the file .csv.")
    form = None if digits is None else f"%.{digits}g"
    if out is None:
        make().to_csv(sys.stdout, index=False, float_format=form)
        return
    with output(Path(out), force, inputs) as path, replacing(path) as part:
        make().to_csv(part, index=False, float_format=form)


def write_text(
    text: str, out: str | None, force: bool, inputs: Sequence[str | os.PathLike] = ()
) -> None:
    """Write a text to standard output or a file."""
    if out is None:
        print(text)
        return
    with output(Path(out), force, inputs) as path:
        write_file(path, text + "\n")


# --- what a command says of the records: its progress, and errors. No word of it depends on data

Read = TypeVar("Read")


class Progress:
    """Lines on standard error that say what a command does; silent with ``--quiet``.

    Parameters
    ----------
    quiet : bool
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def say(self, text: str) -> None:
        """Show one line, if there is something in it."""
        if text and not self._quiet:
            print(text, file=sys.stderr, flush=True)


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
