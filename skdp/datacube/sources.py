"""The cuboids to measure, and the share of epsilon of each: searched for, or given by the user.

Everything here is public: it follows from the domain and the parameters.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import numbers
import os
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

from .._files import write_text
from .._validation import as_fraction, as_number
from ..kernels import cuboids
from ..release.files import fraction
from .plan import as_names, mask_of, names_of

# --- plans kept on disk: a search for sources takes seconds, and depends on public facts alone
#
# A file holds the sources of one search and nothing else; its name is a hash of the question (sizes
# of the dimensions, published order, weights, strategy). Whoever can write to the directory can
# make a plan worse, never less private: what is read is a set of sources with shares that sum to 1,
# like one that a user gives as ``strategy=``. A file that is anything else is ignored and written
# again.

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


def _read_plan(question, lattice):
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


def _write_plan(question, plan):
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


# --- what a cube reads

STRATEGIES = ("auto", "bmax", "pmost", "all", "base", "optimized")

# A search over fewer cuboids takes less than a second: its plan is not kept on disk.
_KEPT_CUBOIDS = 16


def find_sources(lattice, strategy, *, weights, limit, noise_of, consistent, progress):
    """Sources by one of the strategies: its name, and `skdp.kernels.cuboids.Plan`.

    Parameters
    ----------
    lattice : Lattice
    strategy : str
        One of `STRATEGIES`.
    weights : ndarray or None
        Weight of each cuboid for the mean objective and for "pmost"; None for the largest variance.
    limit : float or None
        Bound on the cell variance, for "pmost".
    noise_of : callable
        Noise variance in a cell, by the number of sources that share epsilon, or 1 / share.
    consistent : bool
        Whether least squares will combine the sources.
    progress : callable
        Takes text for the user.
    """
    if strategy == "all":
        return strategy, cuboids.plan_all(lattice)
    if strategy == "base":
        return strategy, cuboids.plan_base(lattice)
    if strategy == "pmost":
        return strategy, cuboids.plan_pmost(lattice, limit, noise_of, weights)
    # The optimized plan is one for least squares.
    tried = ("optimized", "bmax") if consistent else ("bmax",)
    found = {
        name: search(SourceSearch(lattice, name, weights, consistent, progress))
        for name in (tried if strategy == "auto" else (strategy,))
    }
    if len(found) == 1:
        return next(iter(found.items()))
    return min(found.items(), key=lambda each: _error_of(each[1], lattice, weights, noise_of))


def _error_of(plan, lattice, weights, noise_of):
    """Largest or mean cell variance of a plan after least squares, as accurate as a plan is."""
    noise = np.full(len(lattice), np.inf)
    for mask, share in zip(plan.masks, plan.shares, strict=True):
        noise[lattice.position[mask]] = noise_of(1 / share)
    variances = cuboids.blue_variances(lattice, noise)[lattice.published]
    if weights is None:
        return float(f"{variances.max():.9g}")
    return float(f"{np.average(variances, weights=weights[lattice.published]):.9g}")


class SourceSearch:
    """A search for sources; cache key: equal when the result would be equal.

    The result does not depend on epsilon or on how progress is shown.
    """

    def __init__(self, lattice, strategy, weights, consistent, progress) -> None:
        self.lattice, self.strategy, self.weights = lattice, strategy, weights
        self.consistent, self.progress = consistent, progress
        listed = None if weights is None else tuple(weights.tolist())
        # "optimized" always plans for least squares.
        matters = consistent and strategy == "bmax"
        self.key = (lattice.sizes, tuple(lattice.published.tolist()), strategy, listed, matters)

    def __eq__(self, other):
        return self.key == other.key

    def __hash__(self):
        return hash(self.key)


@functools.lru_cache(maxsize=32)
def search(task):
    """Run a search once; `plan` and `fit`, and later processes, share the result."""
    worth = len(task.lattice) >= _KEPT_CUBOIDS
    plan = _read_plan(task.key, task.lattice) if worth else None
    if plan is None:
        plan = _search(task)
        if worth:
            _write_plan(task.key, plan)
    return plan


def _search(task):
    if task.strategy == "bmax":
        return cuboids.plan_bmax(task.lattice, task.weights, task.consistent)
    return cuboids.plan_optimized(task.lattice, task.weights, task.progress)


def given_sources(given, domain, lattice):
    """Sources of a plan or mapping, in the order of the lattice, with shares that sum to 1."""
    shares = {}
    for key, share in given.items():
        mask = mask_of(domain, as_names(key))
        if mask in shares:
            raise ValueError(f"strategy names the cuboid {key!r} twice.")
        exact = as_fraction(share, f"The share of {key!r}")
        if exact < 0:
            raise ValueError(f"The share of {key!r} must not be negative, got {share!r}.")
        if mask not in lattice.position:
            raise ValueError(
                f"The cuboid {key!r} cannot be measured in this cube: it is too large, or has "
                "far more dimensions than max_order. Measure smaller cuboids."
            )
        if exact:
            shares[mask] = exact
    total = sum(shares.values())
    if not total:
        raise ValueError("strategy gives no cuboid a share of epsilon.")
    return {names_of(domain, mask): shares[mask] / total for mask in sorted(shares)}


def cuboid_weights(weights, domain, lattice, strategy, objective):
    """Weight of each cuboid; None where all count the same, or only the largest variance counts."""
    if weights is None:
        searched = strategy in ("auto", "bmax", "optimized") and objective == "mean"
        return np.ones(len(lattice)) if searched else None
    if not isinstance(weights, Mapping):
        raise TypeError(
            "weights must be a mapping of tuples of dimensions to numbers, got "
            f"{type(weights).__name__}."
        )
    if strategy != "pmost" and objective == "max":
        raise ValueError(
            "weights have no effect on objective='max'; use objective='mean' or strategy='pmost'."
        )
    vector = np.ones(len(lattice))
    for key, weight in weights.items():
        place = lattice.position.get(mask_of(domain, as_names(key)))
        if place is None or not lattice.published[place]:
            raise ValueError(f"weights names the cuboid {key!r}, which is not published.")
        vector[place] = as_number(weight, f"The weight of {key!r}")
        if not 0 <= vector[place] < math.inf:
            raise ValueError(f"The weight of {key!r} must not be negative, got {weight!r}.")
    if not vector[lattice.published].any():
        raise ValueError("All weights are zero: give at least one cuboid a positive one.")
    return vector


def variance_limit(max_variance, strategy):
    """The bound on the cell variance that "pmost" needs; None for other strategies."""
    if strategy != "pmost":
        if max_variance is not None:
            raise ValueError(
                f"max_variance belongs to strategy='pmost'; leave it out for strategy={strategy!r}."
            )
        return None
    if isinstance(max_variance, bool) or not isinstance(max_variance, numbers.Real):
        raise TypeError(
            "strategy='pmost' needs max_variance: it publishes as many cuboids as possible within "
            f"this cell variance; got {max_variance!r}."
        )
    limit = float(max_variance)
    if not limit > 0:
        raise ValueError(f"max_variance must be positive, got {max_variance!r}.")
    return limit
