"""The released model: rows of the population, and the tables that it was fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..._validation import CodeArray, FloatArray
from ...domain import Zeros
from ...release import PairTable, TreeDensity, TreeModel, group_sums
from .fit import Population, Target
from .groups import TUNING, Attribute
from .joint import JointCounts

__all__ = ["as_model"]

# Rounds of drawing codes inside of groups again that break rules.
_ROUNDS = 20

Tables = dict[tuple[int, int], FloatArray]


def as_model(
    population: Population,
    targets: Sequence[Target],
    attributes: Sequence[Attribute],
    total: float,
    budget: Mapping[str, float],
    generator: np.random.Generator,
    *,
    zeros: Zeros,
    joint: JointCounts | None = None,
) -> TreeModel:
    """A tree of the strongest pairs, the other pairs, and weighted rows.

    Parameters
    ----------
    population : Population
    targets : sequence of Target
        What it was fitted to.
    attributes : sequence of Attribute
    total : float
        Estimated number of records.
    budget : mapping of str to float
    generator : numpy.random.Generator
    zeros : Zeros
    joint : JointCounts, default=None
        Released joint counts, which replace the population but for the records they lack.
    """
    singles = [next(t.table for t in targets if t.axes == (i,)) for i in range(len(attributes))]
    pairs = {(t.axes[0], t.axes[1]): t.table for t in targets if len(t.axes) == 2}
    ruled = [(axes[0], axes[1]) for axes in zeros if len(axes) == 2]
    views = [each.rescaled(view) for each, view in zip(attributes, singles, strict=True)]
    rows, weights = _in_codes(population, views, generator), population.weights
    for _ in range(_ROUNDS if zeros else 0):
        # Codes inside of groups were drawn without a look at the rules.
        broken = zeros.breaks(rows)
        if not broken.any():
            break
        rows[broken] = _in_codes(population, views, generator)[broken]
    found = zeros.mended(rows)
    if found is not rows:
        # Records that replace others move the margins; weights move them back.
        rows = found
        population.columns = [
            column if each.groups is None else each.groups[column].astype(np.int32)
            for column, each in zip(rows.T, attributes, strict=True)
        ]
        population.settle(targets, TUNING.settled)
        weights = population.weights
    if joint is not None:
        rows, weights = _joined(rows, weights, joint, zeros, total)
    if joint is not None or zeros:
        # Rules and joint counts move the margins: the tables follow the rows.
        views = [_of_rows(each, rows[:, i], weights) for i, each in enumerate(attributes)]
        pairs = {pair: _table(rows, weights, pair, views) for pair in {*pairs, *ruled}}
    tree = _strongest(pairs, views, ruled)
    groups = {i: each.groups for i, each in enumerate(views) if each.groups is not None}
    edges = [PairTable(pair, pairs[pair]) for pair in tree]
    return TreeModel(
        TreeDensity([each.mu for each in views], edges, groups),
        total,
        extra=[PairTable(pair, table) for pair, table in pairs.items() if pair not in tree],
        rows=rows,
        row_weights=weights / weights.sum(),
        budget=budget,
    )


def _in_codes(
    population: Population, views: Sequence[Attribute], generator: np.random.Generator
) -> CodeArray:
    """Rows of the population, with codes drawn inside groups."""
    rows = np.empty((population.n_rows, len(views)), dtype=np.int32, order="F")
    groups = {i: each.groups for i, each in enumerate(views) if each.groups is not None}
    inside = TreeDensity([each.mu for each in views], [], groups)
    for axis, column in enumerate(population.columns):
        if axis in groups:
            u = generator.random(len(column))
            rows[:, axis] = inside.codes_in_groups(axis, column.astype(np.int64), u)
        else:
            rows[:, axis] = column
    return rows


def _joined(
    rows: CodeArray, weights: FloatArray, joint: JointCounts, zeros: Zeros, total: float
) -> tuple[CodeArray, FloatArray]:
    """Joint counts, and rows of the population for the records that these lack."""
    lawful = ~zeros.breaks(joint.rows)
    counts = joint.counts[lawful]
    lacking = max(total - counts.sum(), 0.0)
    if not counts.sum() + lacking > 0:
        return rows, weights
    both = np.concatenate([joint.rows[lawful], rows]) if lacking > 0 else joint.rows[lawful]
    mass = np.concatenate([counts, lacking * weights]) if lacking > 0 else counts
    return np.asfortranarray(both), mass / mass.sum()


def _of_rows(attribute: Attribute, codes: CodeArray, weights: FloatArray) -> Attribute:
    """An attribute with the probabilities of weighted rows."""
    mu = np.bincount(codes, weights=weights, minlength=len(attribute.mu))
    mu = mu / mu.sum()
    return attribute._replace(
        mu=mu, grouped=group_sums(mu, attribute.groups, len(attribute.grouped))
    )


def _table(
    rows: CodeArray, weights: FloatArray, pair: tuple[int, int], views: Sequence[Attribute]
) -> FloatArray:
    """Shares of the pairs of groups among weighted rows."""
    a, b = pair
    columns = []
    for axis in pair:
        groups = views[axis].groups
        columns.append(rows[:, axis] if groups is None else groups[rows[:, axis]])
    shape = len(views[a].grouped), len(views[b].grouped)
    cell = columns[0].astype(np.int64) * shape[1] + columns[1]
    found = np.bincount(cell, weights=weights, minlength=shape[0] * shape[1])
    return (found / found.sum()).reshape(shape)


def _strongest(
    pairs: Tables, views: Sequence[Attribute], first: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The pairs of largest mutual information that close no cycle, after those that come first."""
    told = {}
    for (a, b), table in pairs.items():
        apart = np.outer(views[a].grouped, views[b].grouped)
        ratio = np.divide(table, apart, out=np.ones_like(table), where=(table > 0) & (apart > 0))
        told[a, b] = float((table * np.log(ratio)).sum())
    component = np.arange(len(views))
    chosen = []
    for a, b in [*first, *sorted(told, key=lambda pair: (-told[pair], pair))]:
        if component[a] != component[b]:
            chosen.append((a, b))
            component[component == component[b]] = component[a]
    return chosen
