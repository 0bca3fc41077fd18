"""Which data files are there, and whether they are the ones that were measured.

Run as ``python -m benchmarks.data``. The exit code is 1 if a file differs from its checksum; a file
that is missing is listed with its source.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from pathlib import Path
from typing import Any

from benchmarks._data import ROOT

__all__ = ["listed", "state"]

_LIST = Path(__file__).with_name("data.toml")


def listed() -> dict[str, dict[str, Any]]:
    """What ``data.toml`` says of each file, by its name within the folder."""
    return tomllib.loads(_LIST.read_text(encoding="utf-8"))


def state(name: str, sha256: str, root: Path = ROOT) -> str:
    """Whether one file is "present", "missing" or "different" from what was measured."""
    path = root / name
    if not path.is_file():
        return "missing"
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    return "present" if found == sha256 else "different"


def main() -> int:
    """List all files; returns the exit code."""
    print(f"Data in {ROOT}")
    wrong = 0
    for name, facts in listed().items():
        found = state(name, facts["sha256"])
        wrong += found == "different"
        whence = "" if found == "present" else f"  from {facts['source']}"
        identifier = facts.get("identifier")
        print(f"{found:10} {name}{whence}{f' ({identifier})' if whence and identifier else ''}")
    if wrong:
        print(
            f"{wrong} of the files differ from those that were measured: figures will differ too."
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
