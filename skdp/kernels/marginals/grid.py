"""One grid for a label: few bins of the attributes that tell most of it, counted in each class.

Single attributes in each class say how the label depends on each of them. Taken together as if they
were independent they say too much where attributes tell the same, and nothing of what only several
tell together. The grid corrects both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..._random import NoiseSource
from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...rows import Counts
from ..pairviews.attributes import Attribute, cut_mass, equal_mass_bins
from .population import Population, Target
from .posterior import posterior_mean

__all__ = ["measure_grid"]

Axes = tuple[int, ...]

# Bins before they are merged, and most after it.
_FINE, _MOST = 24, 8
# Noise scales of records in a count of a class in a cell, on average; most cells.
_RECORDS, _MOST_CELLS = 5.0, 1024
# Parts of cells that the model takes for about equally sure of the same class.
_LEVELS = 6
# Least share of a model's count that an estimate keeps.
_LEAST = 0.1
_TINY = 1e-12


class Option(NamedTuple):
    """Bins of an attribute, and how much they tell of the label."""

    n_bins: int
    told: float
    bins: IntArray


def measure_grid(
    table: Counts,
    label: int,
    attributes: Sequence[Attribute],
    ordered: Sequence[bool],
    pairs: Mapping[Axes, FloatArray],
    total: float,
    epsilon: Fraction,
    population: Population,
    source: NoiseSource,
) -> Target | None:
    """What the label should be in each cell of a grid; None if no attribute tells anything of it.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    label : int
    attributes : sequence of Attribute
    ordered : sequence of bool
        Whether neighbouring codes of an attribute are similar.
    pairs : mapping of tuple of int to ndarray
        Shares of the groups of each attribute with the label: released.
    total : float
        The released number of records, positive.
    epsilon : Fraction
    population : Population
        The model so far.
    source : NoiseSource
    """
    # Privacy. Released: noisy counts of the cells of one grid in each class; a record is in one of
    # them: sensitivity 1. Attributes and bins of the grid follow from released tables and the
    # released total alone; so does whether there is a grid.
    shares = {
        axis: pairs[pair] if label < axis else pairs[pair].T
        for axis in range(len(attributes))
        for pair in [(min(axis, label), max(axis, label))]
        if pair in pairs
    }
    limit = min(total * float(epsilon) / _RECORDS / table.shape[label], _MOST_CELLS)
    offered = {
        axis: _coarser(each, attributes[axis], ordered[axis]) for axis, each in shares.items()
    }
    bins = _refined(offered, limit)
    if not bins:
        return None
    bins[label] = np.arange(table.shape[label])
    axes = tuple(sorted(bins))
    inside = tuple(bins[axis] for axis in axes)
    exact = table.regrouped(axes, [attributes[axis].of_codes(bins[axis]) for axis in axes])
    noisy = discrete_laplace(exact, epsilon, random_state=source).astype(np.float64)
    model = np.maximum(population.margin(axes, inside), _TINY) * total
    by_class = np.moveaxis(model, axes.index(label), -1)
    found = _followed(
        np.moveaxis(noisy, axes.index(label), -1).reshape(-1, by_class.shape[-1]),
        discrete_laplace_variance(epsilon),
        by_class.reshape(-1, by_class.shape[-1]),
    )
    mean = np.moveaxis(found.reshape(by_class.shape), -1, axes.index(label))
    return Target(axes, mean / mean.sum(), inside)


def _followed(noisy: FloatArray, variance: float, model: FloatArray) -> FloatArray:
    """Counts of the classes (columns) in cells: first of cells that are alike, then of each."""
    alike = _levels(model)
    n_cells = np.bincount(alike)
    known, told = (_summed(each, alike) for each in (model, noisy))
    # In units of the noise, which is larger where more cells are summed.
    unit = np.sqrt(n_cells * variance)[:, None]
    mean = np.maximum(posterior_mean(told / unit, 1.0, known / unit) * unit, _LEAST * known)
    model = model * (mean / known)[alike]
    return np.maximum(posterior_mean(noisy, variance, model), _LEAST * model)


def _levels(model: FloatArray) -> IntArray:
    """Level of each cell: its most frequent class, and how sure that is."""
    surest = model.argmax(axis=1)
    share = model.max(axis=1) / model.sum(axis=1)
    level = np.zeros(len(model), dtype=np.int64)
    for code in np.unique(surest):
        own = np.flatnonzero(surest == code)
        order = np.argsort(share[own], kind="stable")
        mass = model[own].sum(axis=1)
        level[own] = 1 + code * _LEVELS + equal_mass_bins(mass, order, _LEVELS)
    return np.unique(level, return_inverse=True)[1].reshape(-1)


def _summed(table: FloatArray, groups: IntArray) -> FloatArray:
    found = np.zeros((int(groups.max()) + 1, table.shape[1]))
    np.add.at(found, groups, table)
    return found


def _refined(offered: Mapping[int, Sequence[Option]], limit: float) -> dict[int, IntArray]:
    """Bins of the attributes of a grid: refined where most is told for the cells that it costs."""
    at = dict.fromkeys(offered, 0)
    cells = 1.0
    while True:
        best, chosen = 0.0, None
        for axis, options in offered.items():
            now = options[at[axis]]
            for place in range(at[axis] + 1, len(options)):
                ratio = options[place].n_bins / now.n_bins
                gain = (options[place].told - now.told) / math.log(ratio)
                if cells * ratio <= limit and gain > max(best, _TINY):
                    best, chosen = gain, (axis, place, cells * ratio)
        if chosen is None:
            return {axis: offered[axis][place].bins for axis, place in at.items() if place}
        axis, at[axis], cells = chosen[0], chosen[1], chosen[2]


def _coarser(shares: FloatArray, attribute: Attribute, ordered: bool) -> list[Option]:
    """One and more bins of an attribute, merged while they tell least of the label."""
    order = attribute.group_order if ordered else _by_label(shares)
    mass = attribute.grouped
    bins = equal_mass_bins(cut_mass(mass), order, min(_FINE, len(mass)))
    table = _summed(shares.T, bins).T
    found = []
    while True:
        n_bins = table.shape[1]
        if n_bins <= _MOST:
            found.append(Option(n_bins, float(_told(table).sum()), bins))
        if n_bins == 1:
            return found[::-1]
        both = table[:, :-1] + table[:, 1:]
        at = int((_told(table[:, :-1]) + _told(table[:, 1:]) - _told(both)).argmin())
        table = np.concatenate([table[:, :at], both[:, at : at + 1], table[:, at + 2 :]], axis=1)
        bins = bins - (bins > at)


def _by_label(shares: FloatArray) -> IntArray:
    """Groups in the order of what they tell of the label: the first axis of correspondence."""
    mass = np.maximum(shares.sum(axis=0), _TINY)
    classes = np.maximum(shares.sum(axis=1), _TINY)
    apart = (shares - np.outer(classes, mass)) / np.sqrt(np.outer(classes, mass))
    first = np.linalg.svd(apart, full_matrices=False)[0][:, 0]
    return np.argsort((first / np.sqrt(classes)) @ (shares / mass), kind="stable")


def _told(table: FloatArray) -> FloatArray:
    """What each bin tells of the label: the sum of p log(p / mass of the bin), up to a constant."""
    mass = table.sum(axis=0)
    ratio = np.divide(table, mass, out=np.ones_like(table), where=table > 0)
    return (table * np.log(ratio)).sum(axis=0)
