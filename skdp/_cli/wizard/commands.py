"""The commands of the shell that do what the pages say: shown, written to a file, and run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Files(NamedTuple):
    """The files of one release: the same name with different ends."""

    declaration: Path
    commands: Path
    release: Path
    page: Path
    rows: Path
    log: Path

    @classmethod
    def named(cls, folder: Path, name: str) -> Files:
        """Paths in a folder."""
        ends = (".json", ".sh", ".skdp", ".html", ".csv", ".log")
        return cls(*(folder / f"{name}{end}" for end in ends))


def as_path(data: str) -> str:
    """A path that is no option, however it begins."""
    return f"./{data}" if data.startswith("-") else data


def source_options(table: dict[str, str]) -> list[str]:
    """How the file is written, and whom epsilon protects, by the form of the first step."""
    options = [
        f"--{name}={table[name]}" for name in ("sep", "encoding") if table.get(name, "").strip()
    ]
    options += ["--decimal=,"] * (table.get("decimal") == ",")
    missing = [each.strip() for each in table.get("missing", "").split(",") if each.strip()]
    options += [f"--missing={each}" for each in missing]
    options += ["--multiline"] * bool(table.get("multiline"))
    return options


def release_command(data: str, files: Files, form: dict[str, Any]) -> list[str]:
    """``skdp release``."""
    given = [f"--{name}={form[name]}" for name in _RELEASE if form.get(name)]
    flags = ["--accept-loss"] * bool(form.get("accept-loss"))
    paths = [f"--domain={files.declaration}", f"--out={files.release}"]
    return ["release", as_path(data), *paths, *given, *flags, *form.get("source", [])]


_RELEASE = ("epsilon", "unit", "max-contributions", "ledger", "budget", "purpose")


def page_command(files: Files, title: str) -> list[str]:
    """What makes the page of a release."""
    return ["page", str(files.release), f"--out={files.page}", f"--title={title}"]


def sample_command(files: Files) -> list[str]:
    """What draws synthetic rows."""
    return ["sample", str(files.release), f"--out={files.rows}"]


def script(commands: Sequence[Sequence[str]]) -> str:
    """Commands as a file for a shell."""
    lines = [shlex.join(["skdp", *command]) for command in commands]
    return "\n".join(["#!/bin/sh", "set -e", *lines]) + "\n"
