"""Which data files are there, and whether they are the ones that were measured.

Run as ``python -m benchmarks.data``. The exit code is 1 if a file differs from its checksum; a file
that is missing is listed with its source and its licence.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from pathlib import Path
from typing import Any

from benchmarks import _data

__all__ = ["listed", "state"]

_LIST = Path(__file__).with_name("data.toml")


def listed() -> dict[str, dict[str, Any]]:
    """What ``data.toml`` says of each file, by its name within the folder."""
    return tomllib.loads(_LIST.read_text(encoding="utf-8"))


def state(name: str, sha256: str, root: Path) -> str:
    """Whether one file is "present", "missing" or "different" from what was measured."""
    path = root / name
    if not path.is_file():
        return "missing"
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    return "present" if found == sha256 else "different"


def report() -> int:
    """List all files; returns the exit code."""
    files = listed()
    found = {name: state(name, facts["sha256"], _data.ROOT) for name, facts in files.items()}
    print(f"Data in {_data.ROOT}")
    for name, facts in files.items():
        print(f"{found[name]:10} {name}")
        if found[name] != "present":
            source = facts["identifier"] if "identifier" in facts else "no identifier"
            print(f"{'':10}   {facts['content']}")
            print(f"{'':10}   from {facts['source']} ({source}); licence: {facts['licence']}")
    counts = {kind: list(found.values()).count(kind) for kind in ("missing", "different")}
    if counts["different"]:
        print(f"{counts['different']} files differ from those that were measured; so will figures.")
    if counts["missing"]:
        print(
            f"{counts['missing']} of {len(files)} files are missing. None is part of the project, "
            "and none is fetched: prepare them from their sources as the content says, and name "
            "the folder in SKDP_DATA. A script that needs a file says which one."
        )
    return int(counts["different"] > 0)


if __name__ == "__main__":
    sys.exit(report())
