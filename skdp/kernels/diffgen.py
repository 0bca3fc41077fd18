"""DiffGen: private top-down specialisation of taxonomies into one grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .._random import noise_source
from .._types import IntArray
from .._validation import split_epsilon
from ..domain import Attribute, Level
from ..mechanisms import noisy_max
from ..rows import Counts, CountTable

__all__ = ["diffgen", "diffgen_parts"]

# More counts than this are not released: the grid stops growing there.
_MOST_COUNTS = 2**20
# Finest groups that a number is specialised to.
_MOST_GROUPS = 64


def diffgen_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Halves of epsilon: one for the grid, one for the counts."""
    return split_epsilon(epsilon, {"grid": 1, "counts": 1})


class _Tree:
    """The nested groupings of one predictor, as nodes with children."""

    def __init__(self, levels: Sequence[Level], n_codes: int) -> None:
        everything = Level(np.zeros(n_codes, dtype=np.int64), ["any"])
        self.levels = [everything, *levels]

    def children(self, level: int, group: int) -> tuple[int, IntArray] | None:
        """Level and groups of the next finer partition of a node; None below the finest."""
        inside = self.levels[level].groups == group
        for finer in range(level + 1, len(self.levels)):
            parts = np.unique(self.levels[finer].groups[inside])
            if len(parts) > 1:
                return finer, parts
        return None


def _nested(attribute: Attribute) -> list[Level]:
    """Levels of the first family of groupings: the taxonomy, or halves of the range."""
    families = attribute.groupings(max(_MOST_GROUPS, 2))
    levels = list(families[0]) if families else []
    finest = attribute.levels()[-1] if attribute.size <= _MOST_GROUPS else None
    if finest is not None and (not levels or len(levels[-1].labels) < len(finest.labels)):
        levels.append(finest)
    return levels


def diffgen(
    table: Counts,
    predictors: Sequence[Attribute],
    epsilon: Fraction,
    *,
    n_specializations: int = 10,
    random_state: Any = None,
) -> tuple[list[int], list[IntArray], list[list[str]]]:
    """Specialise ``n_specializations`` nodes, each chosen with an equal share of ``epsilon``.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    predictors : sequence of Attribute
    epsilon : Fraction
    n_specializations : int, default=10
    random_state : None, int or NoiseSource

    Returns
    -------
    axes : list of int
        Predictors that were specialised at least once.
    groups : list of ndarray of shape (n_codes,)
    labels : list of list of str
    """
    # Privacy. The score of a node is the number of records below it that carry the most frequent
    # label of their child. A new record raises the score of the nodes that it lies in by 0 or 1
    # and leaves the others: range 1. Each selection costs its share; which nodes can be selected
    # follows from the earlier selections. The cost is that of all selections together.
    source = noise_source(random_state)
    share = epsilon / n_specializations
    n_classes = table.shape[-1]
    label_axis = len(predictors)
    trees = [_Tree(_nested(attribute), attribute.size) for attribute in predictors]
    counts = [
        _by_code(table.project([axis, label_axis]), attribute.size)
        for axis, attribute in enumerate(predictors)
    ]
    cut: list[list[tuple[int, int]]] = [[(0, 0)] for _ in predictors]
    for _ in range(n_specializations):
        size = n_classes * math.prod(len(nodes) for nodes in cut)
        candidates: list[tuple[int, int, int, IntArray]] = []
        scores: list[int] = []
        for axis, tree in enumerate(trees):
            for node in cut[axis]:
                found = tree.children(*node)
                if found is None:
                    continue
                finer, parts = found
                width = len(cut[axis])
                if size // width * (width + len(parts) - 1) > _MOST_COUNTS:
                    continue
                merged = np.zeros((len(tree.levels[finer].labels), n_classes), dtype=np.int64)
                np.add.at(merged, tree.levels[finer].groups, counts[axis])
                candidates.append((axis, cut[axis].index(node), finer, parts))
                scores.append(int(merged[parts].max(axis=1).sum()))
        if not candidates:
            break
        chosen = noisy_max(np.array(scores, dtype=np.int64), share, 1, random_state=source)
        axis, place, finer, parts = candidates[chosen]
        cut[axis][place : place + 1] = [(finer, part) for part in parts.tolist()]
    axes = [axis for axis, nodes in enumerate(cut) if len(nodes) > 1]
    groups: list[IntArray] = []
    labels: list[list[str]] = []
    for axis in axes:
        of_code = np.zeros(predictors[axis].size, dtype=np.int64)
        texts = []
        for number, (level, group) in enumerate(cut[axis]):
            of_code[trees[axis].levels[level].groups == group] = number
            texts.append(trees[axis].levels[level].labels[group])
        groups.append(of_code)
        labels.append(texts)
    return axes, groups, labels


def _by_code(table: CountTable, n_codes: int) -> IntArray:
    """Counts by code and class; codes without records have zeros."""
    result = np.zeros((n_codes, table.shape[-1]), dtype=np.int64)
    result[table.codes[:, 0], table.codes[:, 1]] = table.counts
    return result
