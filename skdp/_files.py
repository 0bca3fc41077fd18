"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path


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


def _sync_folder(folder: Path) -> None:
    """Put the new name on the disk too, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
