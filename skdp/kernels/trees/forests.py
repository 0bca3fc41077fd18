"""Forests: trees on records of their own, or all trees on all records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._random import sampling_generator
from ..._types import FloatArray, IntArray
from ..._validation import split_epsilon
from ..additive import Records
from .fitting import auto_depth, class_totals, grow_tree
from .growing import Growth
from .model import Splits, TreeModel

__all__ = ["fit_forest", "forest_parts"]


def forest_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon: the numbers of records of the classes, and the trees."""
    return split_epsilon(epsilon, {"total": Fraction(1, 50), "model": Fraction(49, 50)})


def fit_forest(
    records: Records,
    menu: Sequence[Splits],
    n_classes: int,
    parts: Mapping[str, Fraction],
    random_state: Any,
    *,
    n_trees: int,
    rows: str,
    quality: str = "clipped",
    max_depth: int | None = None,
    max_features: float = 1.0,
) -> tuple[list[TreeModel], FloatArray]:
    """Fit a forest to records.

    Parameters
    ----------
    records : Records
    menu : sequence of Splits
        The splits of each column.
    n_classes : int
    parts : mapping of str to Fraction
        See `forest_parts`.
    random_state : NoiseSource
    n_trees : int
    rows : {"apart", "shared"}
        Each record in one tree, which its own coin draws; or all records in all trees.
    quality : {"max", "gini", "clipped", "information"}
    max_depth : int or None
        None: as many levels as pay.
    max_features : float
        Share of the columns that each tree may split, drawn for each.

    Returns
    -------
    models : list of TreeModel
    total : ndarray of shape (n_classes,)
        Released numbers of records of the classes.
    """
    # Privacy. Released: the classes of all records, then the trees with the rest. "apart":
    # a record is in the tree that its own coin draws, whatever other records there are, so all
    # trees together cost the epsilon of one. "shared": they share it in equal parts. Columns of a
    # tree are drawn by public coins.
    total = class_totals(records, n_classes, parts["total"], random_state)
    epsilon = parts["model"] if rows == "apart" else parts["model"] / n_trees
    mine = total / n_trees if rows == "apart" else total
    depth = auto_depth(float(mine.sum()) * float(epsilon), menu, max_depth)
    coins = sampling_generator(random_state)
    n_columns = max(1, math.ceil(max_features * len(menu)))
    models = []
    for part in _shared_out(records, n_trees, rows, random_state):
        drawn = np.sort(coins.permutation(len(menu))[:n_columns])
        growth = Growth(part, menu, n_classes)
        models.append(
            grow_tree(growth, quality, epsilon, mine, depth, True, random_state, drawn, n_trees)
        )
    return models, total


def _shared_out(records: Records, n_trees: int, rows: str, source: Any) -> Iterator[Records]:
    """The records of each tree: private."""
    if rows == "shared":
        for _ in range(n_trees):
            yield records
        return
    number = np.repeat(np.arange(len(records.counts)), records.counts)
    content = np.column_stack([records.groups, records.labels])[number]
    tree = source.record_below(n_trees, len(number), content)
    for each in range(n_trees):
        counts: IntArray = np.bincount(number[tree == each], minlength=len(records.counts))
        here = counts > 0
        yield Records(records.groups[here], records.labels[here], counts[here], records.n_groups)
