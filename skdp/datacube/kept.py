"""Plans kept on disk: a search for sources takes seconds, and depends on public facts alone.

A file holds the sources of one search and nothing else; its name is a hash of the question (sizes
of the dimensions, published order, weights, strategy). Whoever can write to the directory can make
a plan worse, never less private: what is read is a set of sources with shares that sum to 1, like
one that a user gives as ``strategy=``. A file that is anything else is ignored and written again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from fractions import Fraction
from pathlib import Path

from .._files import write_text
from ..kernels import cuboids
from ..release.files import fraction

__all__ = ["directory", "read_plan", "write_plan"]

# Raise it when a search finds other plans than before.
_SEARCH = 1
# A plan of 4,096 sources takes a tenth of this.
_MAX_BYTES = 1 << 20


def directory():
    """Where plans are kept, or None for nowhere.

    ``SKDP_CACHE_DIR``, where it is set (empty: nothing is kept); else the directory that the
    platform has for such files.
    """
    named = os.environ.get("SKDP_CACHE_DIR")
    if named is not None:
        return Path(named) if named.strip() else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "skdp"


def read_plan(question, lattice):
    """The plan kept for a question, or None.

    Parameters
    ----------
    question : tuple
        Public facts that decide the plan; its repr names the file.
    lattice : Lattice
        Whose cuboids the sources must be, and determine all that are published.
    """
    with contextlib.suppress(
        OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError
    ):
        with _file_of(question).open("rb") as file:
            text = file.read(_MAX_BYTES)
        listed = json.loads(text)["sources"]
        masks = [mask for mask, _ in listed]
        shares = [fraction(share) for _, share in listed]
        if _is_plan(masks, shares, lattice):
            return cuboids.Plan(tuple(masks), tuple(shares))
    return None


def write_plan(question, plan):
    """Keep a plan; where nothing can be written, nothing happens."""
    listed = [[mask, str(share)] for mask, share in zip(plan.masks, plan.shares, strict=True)]
    text = json.dumps({"format": "skdp plan", "sources": listed})
    with contextlib.suppress(OSError, ValueError, TypeError):
        place = _file_of(question)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, text)


def _file_of(question):
    """Path of the file; TypeError where nothing is kept."""
    name = hashlib.sha256(repr((_SEARCH, question)).encode()).hexdigest()
    return directory() / "plans" / f"{name}.json"


def _is_plan(masks, shares, lattice):
    """Whether sources with shares could be the result of a search."""
    if not all(type(mask) is int and mask in lattice.position for mask in masks):
        return False
    if masks != sorted(set(masks)) or not all(share > 0 for share in shares):
        return False
    places = [lattice.position[mask] for mask in masks]
    known = lattice.above[:, places].sum(axis=1) > 0
    return sum(shares) == Fraction(1) and bool(known[lattice.published].all())
