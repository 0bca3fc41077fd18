"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from ..release import Synopsis
from ..rows import check_library, is_parquet_name, write_parquet

__all__ = ["output", "save", "write_table", "write_text"]


@contextmanager
def output(path: Path, force: bool, inputs: Sequence[str | os.PathLike] = ()) -> Iterator[Path]:
    """A temporary file that replaces ``path`` once the work is done.

    Both files are created first, so that a path that cannot be written, or that another run is
    writing, is refused before anything is spent. Only a complete file replaces an existing one.

    Raises
    ------
    ValueError
        If the path is a folder, lies in none, is an input, or exists and ``force`` is not set.
    OSError
        If it cannot be written.
    """
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} into.")
    if path.is_dir():
        raise ValueError(f"--out names the folder {path}: give a file in it.")
    if any(Path(each).exists() and path.exists() and path.samefile(each) for each in inputs):
        raise ValueError(f"--out names {path}, which is the input: give another file.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists already: give another --out, or --force to replace it.")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    made: list[Path] = []
    try:
        for each in (part, path):
            if not each.exists():
                open(each, "xb").close()
                made.append(each)
        yield part
        part.replace(path)
        made.clear()
    finally:
        for each in made:
            each.unlink(missing_ok=True)


def save(synopsis: Synopsis, part: Path) -> None:
    """Write a release; if that fails, write it somewhere else, because it has been paid for."""
    try:
        synopsis.save(part)
    except OSError as error:
        with tempfile.NamedTemporaryFile(suffix=".skdp", delete=False) as other:
            synopsis.save(other.name)
        raise ValueError(
            f"the release could not be written: {error.strerror}. It has been charged and is kept "
            f"in {other.name}: move it from there."
        ) from error


def write_table(
    make: Callable[[], pd.DataFrame],
    out: str | None,
    force: bool,
    inputs: Sequence[str | os.PathLike],
    *,
    digits: int | None = None,
) -> None:
    """Write a table: as CSV to standard output or a file, or as Parquet where ``out`` says so.

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
    if out is not None and Path(out).suffix.lower() in (".xlsx", ".xls", ".xlsm", ".json"):
        raise ValueError(
            f"{out}: tables are written as CSV or Parquet. Name the file .csv or .parquet."
        )
    form = None if digits is None else f"%.{digits}g"
    if out is None:
        make().to_csv(sys.stdout, index=False, float_format=form)
        return
    if is_parquet_name(out):
        check_library()
    with output(Path(out), force, inputs) as part:
        if is_parquet_name(out):
            write_parquet(make(), part)
        else:
            make().to_csv(part, index=False, float_format=form)


def write_text(
    text: str, out: str | None, force: bool, inputs: Sequence[str | os.PathLike] = ()
) -> None:
    """Write a text to standard output or a file."""
    if out is None:
        print(text)
        return
    with output(Path(out), force, inputs) as part:
        part.write_text(text + "\n", encoding="utf-8")
