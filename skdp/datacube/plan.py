"""`CubePlan`: which cuboids are measured, how, and how accurate every cuboid will be."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from .._validation import FloatArray, as_between, as_fraction, as_integer
from ..algorithms import cuboids
from ..domain import Domain
from ..mechanisms import discrete_laplace_variance

# --- names of dimensions, and the bit masks that stand for sets of them


def as_names(dimensions):
    """A name, or a list of names, as a tuple."""
    if isinstance(dimensions, str):
        return (dimensions,)
    if not isinstance(dimensions, Iterable) or isinstance(dimensions, Mapping | bytes):
        raise TypeError(f"Dimensions are a name or a list of names, got {dimensions!r}.")
    return tuple(dimensions)


def check_names(domain, names):
    """Raise ValueError if a name is not in the domain, or is there twice."""
    unknown = [name for name in names if name not in domain]
    if unknown:
        raise ValueError(
            f"There is no dimension {', '.join(map(repr, unknown))}; there are "
            f"{list(domain.names)}."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"A dimension is named twice in {list(names)}.")


def mask_of(domain, names):
    """Bit mask of a set of dimensions."""
    check_names(domain, names)
    return sum(1 << domain.index(name) for name in names)


def names_of(domain, mask):
    """Names of a set of dimensions, in the order of the domain."""
    return tuple(domain.names[i] for i in cuboids.dimensions_of(mask))


def titles(cuboids_named):
    """Different texts for different cuboids, even where names contain commas."""
    texts = [", ".join(names) or "(total)" for names in cuboids_named]
    if len(set(texts)) < len(texts):
        texts = [repr(names) for names in cuboids_named]
    return texts


# --- the plan

CONSISTENCIES = ("l2", "l1", "linf", None)
# More sources than this are listed by their number of dimensions in the privacy loss.
_MAX_PARTS = 20
# Linear programs are simulated to learn their errors: about this many cells in all.
_SIMULATED_CELLS = 20_000
_MAX_SIMULATIONS = 100


# Marks dictionaries in stored states.
_PAIRS = "pairs of key and value"


class TupleKeys:
    """Dictionaries whose keys are tuples go into the state of an object as lists of pairs.

    skops, which reads files without running code, writes JSON, and that has no such keys.
    """

    def __getstate__(self):
        state: Any = super().__getstate__() or {}
        return {name: _as_pairs(value) for name, value in state.items()}

    def __setstate__(self, state):
        state = {name: _from_pairs(value) for name, value in state.items()}
        getattr(super(), "__setstate__", self.__dict__.update)(state)


def _as_pairs(value):
    if isinstance(value, dict) and any(isinstance(key, tuple) for key in value):
        return {_PAIRS: list(value.items())}
    return value


def _from_pairs(value):
    return dict(value[_PAIRS]) if isinstance(value, dict) and list(value) == [_PAIRS] else value


@dataclass(eq=False, repr=False)
class CubePlan(TupleKeys):
    """What a `DataCube` measures and how accurate each cuboid will be: public, free, reusable.

    Made by :meth:`DataCube.plan`. Pass it as ``strategy=`` to another cube over the same dimensions
    to use it unchanged, at any epsilon.

    Attributes
    ----------
    domain : Domain
        The dimensions.
    epsilon : Fraction
        Privacy loss of all measured cuboids together.
    sources : dict of tuple of str to Fraction
        Share of epsilon of each measured cuboid, by its dimensions. The shares sum to 1.
    strategy : str
        How the sources were chosen.
    max_order : int or None
        Cuboids of at most this many dimensions are published; None for all.
    consistency : {"l2", "l1", "linf"} or None
        How the sources are combined into consistent cuboids.
    known : dict of tuple of str to ndarray
        Counts of cuboids that were public already.

    Examples
    --------
    >>> from skdp import Categorical, DataCube, Domain
    >>> domain = Domain({"sex": Categorical(["F", "M"]), "smoker": Categorical(["no", "yes"])})
    >>> plan = DataCube(epsilon=1.0, domain=domain).plan()
    >>> plan.sources
    {('sex', 'smoker'): Fraction(1, 1)}
    >>> round(plan.std_error(["sex"]), 2)
    1.92
    """

    domain: Domain
    epsilon: Fraction
    sources: dict[tuple[str, ...], Fraction]
    strategy: str
    max_order: int | None
    consistency: Any
    # Of distances to the origin, the lower end of the range of a mean; None for counts.
    _grid: Any
    _origin: Fraction | None
    # Tables of cuboids that are public already, by their dimensions.
    known: dict[tuple[str, ...], FloatArray] = field(default_factory=dict)
    # Variances of interactions where there is no closed form.
    _simulated: FloatArray | None = field(default=None, init=False)

    def __getstate__(self):
        # What can be computed again is left out.
        cached = ("_lattice", "_masks", "_noise", "_interactions", "_variances")
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in cached}

    # -- facts

    def std_error(self, dimensions) -> float:
        """Standard error of every cell of one cuboid.

        Parameters
        ----------
        dimensions : str or sequence of str
            Dimensions of the cuboid; an empty list for the total.

        Returns
        -------
        float
            In the unit of the measure. For means: divide it by the number of records of a cell. It
            is the largest possible one, that of a mean at an end of the range; in the middle of the
            range it is 0.71 times as large.

        Raises
        ------
        ValueError
            If the cuboid is not published.
        """
        return math.sqrt(self._variances[self._lattice.position[self._published_mask(dimensions)]])

    @property
    def max_std_error(self) -> float:
        """Largest standard error of a published cuboid."""
        return math.sqrt(max(self._variances[place] for place in self._available))

    @property
    def mean_variance(self) -> float:
        """Cell variance, averaged over the published cuboids."""
        return float(np.mean([self._variances[place] for place in self._available]))

    def to_frame(self) -> pd.DataFrame:
        """The plan as a table, one row for each cuboid that is published or measured.

        Returns
        -------
        DataFrame
            ``cuboid`` (names of the dimensions, "(total)" for none), ``order`` (how many),
            ``cells``, ``published``, ``epsilon`` (0 where not measured), ``noise_std`` (NaN where
            not measured), ``std_error`` (NaN where not published).
        """
        named = [self._names(mask) for mask in self._lattice.position]
        published = np.isin(np.arange(len(named)), self._available)
        measured = np.isfinite(self._noise)
        table = pd.DataFrame(
            {
                "cuboid": titles(named),
                "order": [len(names) for names in named],
                "cells": self._lattice.cells.astype(np.int64),
                "published": published,
                "epsilon": [float(self.sources.get(names, 0) * self.epsilon) for names in named],
                "noise_std": np.sqrt(np.where(measured, self._noise, np.nan)),
                "std_error": np.sqrt(np.where(published, self._variances, np.nan)),
            }
        )
        return table[measured | published].reset_index(drop=True)

    def __repr__(self):
        return (
            f"<CubePlan {self.strategy!r}: {len(self.sources)} of {len(self._lattice)} cuboids "
            f"measured, {len(self._available)} published, std error at most "
            f"{self.max_std_error:.4g} at epsilon={float(self.epsilon):g}>"
        )

    # -- parts

    @functools.cached_property
    def _lattice(self):
        known = tuple(mask_of(self.domain, names) for names in self.known)
        return cuboids.lattice(self.domain.shape, self.max_order, known)

    @functools.cached_property
    def _masks(self):
        """Share of epsilon of each source, by its mask."""
        return {mask_of(self.domain, names): share for names, share in self.sources.items()}

    @property
    def _sensitivity(self):
        """Largest change by one record of a cell of a measured table, in integers."""
        return 1 if self._grid is None else self._grid.sensitivity

    @property
    def _unit(self):
        """Value of the integer 1 in the measured tables."""
        return 1.0 if self._grid is None else float(self._grid.step)

    @property
    def _width(self):
        """Width of the range of a mean, in whole steps."""
        return self._grid.sensitivity * self._grid.step

    @property
    def _range(self):
        """Lower and upper end of a mean."""
        assert self._origin is not None
        return float(self._origin), float(self._origin + self._width)

    def _of_ends(self, ends):
        """Weights of count and sum that give a weighted sum of the two ends, see `CubeModel`."""
        lower, upper = self._range
        slope = (float(ends[0]) - float(ends[1])) / (upper - lower)
        return float(ends[1]) - slope * lower, slope

    @functools.cached_property
    def _noise(self):
        """Noise variance in a cell of each measured cuboid, infinite for the others."""
        noise = np.full(len(self._lattice), np.inf)
        # Most plans give many cuboids the same share.
        variance = functools.cache(
            lambda share: discrete_laplace_variance(share * self.epsilon, self._sensitivity)
        )
        for mask, share in self._masks.items():
            noise[self._lattice.position[mask]] = variance(share) * self._unit**2
        return noise

    @functools.cached_property
    def _interactions(self):
        """Variance of the interaction of each set of dimensions."""
        if self._simulated is not None:
            return self._simulated
        return cuboids.interaction_variances(self._lattice, self._noise)

    @functools.cached_property
    def _variances(self):
        """Cell variance of every cuboid, infinite where the sources do not determine it."""
        if self.consistency is None:
            return cuboids.best_sources(self._lattice, self._noise)[0]
        return cuboids.cell_variances(self._lattice, self._interactions)

    @property
    def _available(self):
        """Positions of the published cuboids in the lattice."""
        return np.flatnonzero(self._lattice.published & np.isfinite(self._variances)).tolist()

    def _names(self, mask):
        return names_of(self.domain, mask)

    def _published_mask(self, dimensions):
        """Mask of a cuboid; ValueError if it is not published."""
        names = as_names(dimensions)
        mask = mask_of(self.domain, names)
        if self.max_order is not None and len(names) > self.max_order:
            raise ValueError(
                f"The cuboid of {list(names)} has {len(names)} dimensions, and max_order="
                f"{self.max_order} limits what is published. Ask for fewer dimensions, or raise "
                "max_order and fit again."
            )
        if not math.isfinite(self._variances[self._lattice.position[mask]]):
            raise ValueError(
                f"The cuboid of {list(names)} is not published: none of the measured cuboids "
                f"determines it (strategy={self.strategy!r}). `plan().to_frame()` lists what is "
                "published; raise max_variance, or use another strategy, and fit again."
            )
        return mask

    def _parts(self):
        """Epsilon of each measured cuboid; of each number of dimensions if there are many."""
        if len(self.sources) > _MAX_PARTS:
            parts: dict[str, Fraction] = {}
            for names, share in self.sources.items():
                label = f"cuboids of {len(names)} dimension{'' if len(names) == 1 else 's'}"
                parts[label] = parts.get(label, 0) + share * self.epsilon
            return parts
        shares = self.sources.values()
        labels = titles(self.sources)
        return {label: share * self.epsilon for label, share in zip(labels, shares, strict=True)}

    # -- from noisy tables to published ones

    def _published_tables(self, noisy):
        """Published tables from the released integers, by mask."""
        if self._grid is None:
            return self._reconstruct(noisy)
        width = float(self._width)
        upper, lower = (
            self._reconstruct({mask: table[end] * self._unit for mask, table in noisy.items()})
            for end in range(2)
        )
        low, high = self._range
        return {
            mask: np.stack(
                [(table + lower[mask]) / width, (high * table + low * lower[mask]) / width]
            )
            for mask, table in upper.items()
        }

    def _terms(self, functional, masks):
        """Independent noises in a weighted sum of cells, whose parts are in cuboids ``masks``."""
        if self.consistency is not None:
            return functional.terms(self._noise, self._interactions)
        _, source = cuboids.best_sources(self._lattice, self._noise)
        places = [int(source[self._lattice.position[mask]]) for mask in masks]
        return functional.terms_of_sources(self._noise, places)

    def _reconstruct(self, noisy):
        """Consistent tables from noisy ones, by mask."""
        if self.consistency is None:
            return cuboids.derive(self._lattice, noisy, self._noise)
        if self.consistency == "l2":
            known = {mask_of(self.domain, names): table for names, table in self.known.items()}
            return cuboids.consistent_l2(self._lattice, noisy, self._noise, known)
        return cuboids.consistent_lp(self._lattice, noisy, self._scales(), self.consistency)

    def _box_variances(self, mask, weights):
        """Variance of weighted sums of cells of one cuboid, for each combination of vectors."""
        if self.consistency is not None:
            return cuboids.box_variances(self._lattice, mask, self._interactions, weights)
        # A cuboid is summed from one source, so its cells are independent.
        squares = [(vectors**2).sum(axis=1) for vectors in weights]
        cell = self._variances[self._lattice.position[mask]]
        return cell * functools.reduce(np.multiply.outer, squares, np.ones(()))

    def _scales(self):
        """Scale of the noise in each source, by its mask."""
        position = self._lattice.position
        return {mask: math.sqrt(self._noise[position[mask]] / 2) for mask in self._masks}

    def _simulate(self):
        """Estimate the errors of the linear programs from noise on an empty cube."""
        lattice = self._lattice
        cuboids.check_lp_size(lattice, tuple(self._masks))
        cells = sum(math.prod(lattice.shape(mask)) for mask in self._masks)
        runs = int(np.clip(_SIMULATED_CELLS // cells, 4, _MAX_SIMULATIONS))
        rate = self.epsilon / self._sensitivity
        rates = {mask: float(share * rate) for mask, share in self._masks.items()}
        scales = {mask: scale / self._unit for mask, scale in self._scales().items()}
        found = cuboids.simulated_interactions(lattice, rates, scales, self.consistency, runs)
        self._simulated = found * self._unit**2
        for known in ("_interactions", "_variances"):
            vars(self).pop(known, None)


def as_order(max_order, domain):
    """Largest number of dimensions of a published cuboid; None where all are published."""
    if max_order is None:
        return None
    order = as_integer(max_order, "max_order", 0)
    # All values that publish every cuboid are treated alike.
    return None if order >= len(domain) else order


# ------------------------------------------------------------------------------------------------
# The cuboids to measure, and the share of epsilon of each: searched for, or given by the user.
#
# Everything here is public: it follows from the domain and the parameters.


# --- what a cube reads

STRATEGIES = ("auto", "bmax", "pmost", "all", "base", "optimized")


def find_sources(lattice, strategy, *, weights, limit, noise_of, consistent):
    """Sources by one of the strategies: its name, and `skdp.algorithms.cuboids.Plan`.

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
    """
    if strategy == "all":
        return strategy, cuboids.plan_all(lattice)
    if strategy == "base":
        return strategy, cuboids.plan_base(lattice)
    if strategy == "pmost":
        return strategy, cuboids.plan_pmost(lattice, limit, noise_of, weights)
    listed = None if weights is None else tuple(weights.tolist())
    # The optimized plan is one for least squares.
    tried = ("optimized", "bmax") if consistent else ("bmax",)
    found = {
        name: _search(lattice, name, listed, consistent)
        for name in (tried if strategy == "auto" else (strategy,))
    }
    return min(found.items(), key=lambda each: _error_of(each[1], lattice, weights, noise_of))


def _error_of(plan, lattice, weights, noise_of):
    """Largest or mean cell variance of a plan after least squares, as accurate as a plan is."""
    noise = np.full(len(lattice), np.inf)
    # Most plans give many cuboids the same share.
    each = {share: noise_of(1 / share) for share in {*plan.shares}}
    for mask, share in zip(plan.masks, plan.shares, strict=True):
        noise[lattice.position[mask]] = each[share]
    variances = cuboids.blue_variances(lattice, noise)[lattice.published]
    if weights is None:
        return float(f"{variances.max():.9g}")
    return float(f"{np.average(variances, weights=weights[lattice.published]):.9g}")


@functools.lru_cache(maxsize=32)
def _search(lattice, strategy, weights, consistent):
    """Run a search once; `plan` and `fit` share the result."""
    array = None if weights is None else np.array(weights)
    if strategy == "bmax":
        return cuboids.plan_bmax(lattice, array, consistent)
    return cuboids.plan_optimized(lattice, array)


def _by_mask(given, what, domain):
    """Numbers of cuboids that a user gave, exactly, by mask."""
    found = {}
    for key, number in given.items():
        mask = mask_of(domain, as_names(key))
        if mask in found:
            raise ValueError(f"{what} names the cuboid {key!r} twice.")
        found[mask] = as_fraction(number, f"The number of {key!r} in {what}")
        if found[mask] < 0:
            raise ValueError(f"The number of {key!r} in {what} must not be negative: {number!r}.")
    return found


def given_sources(given, domain, lattice):
    """Sources of a plan or mapping, in the order of the lattice, with shares that sum to 1."""
    shares = {mask: share for mask, share in _by_mask(given, "strategy", domain).items() if share}
    for mask in shares.keys() - lattice.position.keys():
        raise ValueError(
            f"The cuboid {names_of(domain, mask)} cannot be measured in this cube: it is too "
            "large, or has far more dimensions than max_order. Measure smaller cuboids."
        )
    total = sum(shares.values())
    if not total:
        raise ValueError("strategy gives no cuboid a share of epsilon.")
    return {names_of(domain, mask): shares[mask] / total for mask in sorted(shares)}


def known_tables(known, domain, consistency, measure):
    """Public tables by their dimensions, in the order of the domain; checked to agree."""
    if known is None:
        return {}
    if not isinstance(known, Mapping):
        raise TypeError(f"known must be a mapping of tuples of dimensions to counts: {known!r}.")
    if consistency != "l2" or measure != "count":
        raise ValueError("known= needs consistency='l2' and measure='count'.")
    found: dict[tuple[str, ...], FloatArray] = {}
    for key, given in known.items():
        names = as_names(key)
        mask, table = mask_of(domain, names), np.asarray(given, dtype=np.float64)
        shape = tuple(domain[name].size for name in names)
        if table.shape != shape or not np.isfinite(np.abs(table).sum()):
            raise ValueError(
                f"known[{key!r}] must hold {shape} finite counts, one axis for each dimension in "
                f"the order of the names, got {table.shape}."
            )
        table = np.transpose(table, np.argsort([domain.index(name) for name in names]))
        for other, before in found.items():
            shared = set(names) & set(other)
            mine, theirs = (
                each.sum(axis=tuple(i for i, name in enumerate(of) if name not in shared))
                for each, of in ((table, names_of(domain, mask)), (before, other))
            )
            if not np.allclose(mine, theirs, rtol=1e-9, atol=1e-6):
                raise ValueError(
                    f"known[{key!r}] and known[{other!r}] have different sums over what they share."
                )
        found[names_of(domain, mask)] = table
    return found


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
    for mask, weight in _by_mask(weights, "weights", domain).items():
        place = lattice.position.get(mask)
        if place is None or not lattice.published[place]:
            raise ValueError(
                f"weights names the cuboid {names_of(domain, mask)}, which is not published."
            )
        vector[place] = weight
    if not vector[lattice.published].any():
        raise ValueError("All weights are zero: give at least one cuboid a positive one.")
    return vector


def variance_limit(max_variance, strategy):
    """The bound on the cell variance that "pmost" needs; None for other strategies."""
    if (strategy == "pmost") != (max_variance is not None):
        raise ValueError(
            "max_variance belongs to strategy='pmost', which needs it: as many cuboids as possible "
            f"are published within this cell variance. Got strategy={strategy!r} and "
            f"max_variance={max_variance!r}."
        )
    if max_variance is None:
        return None
    return float(as_between(max_variance, "max_variance", 1e-300, 1e300))
