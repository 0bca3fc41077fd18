"""The released model: rows of the population, and the tables that it was fitted to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._validation import CodeArray, FloatArray
from ...domain import Zeros
from ...release import WeightedRows
from .fit import Population, Target
from .groups import Attribute
from .joint import JointCounts

__all__ = ["as_model"]

# Rounds of drawing codes inside of groups again that break rules.
_ROUNDS = 20


def as_model(
    population: Population,
    targets: Sequence[Target],
    attributes: Sequence[Attribute],
    total: float,
    generator: np.random.Generator,
    *,
    zeros: Zeros,
    joint: JointCounts | None = None,
) -> WeightedRows:
    """The weighted rows of a release.

    Parameters
    ----------
    population : Population
    targets : sequence of Target
        What it was fitted to.
    attributes : sequence of Attribute
    total : float
        Estimated number of records.
    generator : numpy.random.Generator
    zeros : Zeros
    joint : JointCounts, default=None
        Released joint counts, which replace the population but for the records they lack.
    """
    singles = [next(t.table for t in targets if t.axes == (i,)) for i in range(len(attributes))]
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
            each.groups[column].astype(np.int32)
            for column, each in zip(rows.T, attributes, strict=True)
        ]
        population.settle(targets)
        weights = population.weights
    if joint is not None:
        rows, weights = _joined(rows, weights, joint, zeros, total)
    return WeightedRows(rows, weights / weights.sum(), [len(each.mu) for each in views])


def _in_codes(
    population: Population, views: Sequence[Attribute], generator: np.random.Generator
) -> CodeArray:
    """Rows of the population, with codes drawn inside groups."""
    drawn = zip(views, population.columns, strict=True)
    return np.stack(
        [each.codes(column, generator) for each, column in drawn],
        axis=1,
        dtype=np.int32,
        casting="same_kind",
    )


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
