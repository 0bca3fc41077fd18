"""Fitting a decision tree: DiffPID3 and DiffPC-4.5 (Friedman and Schuster), and "auto"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._arrays import integer_sums
from ..._types import FloatArray, IntArray
from ..._validation import split_epsilon
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ..additive import Records
from .growing import Growth
from .model import TreeModel
from .qualities import make_quality
from .shrinking import plain_shares, prune_errors, prune_noise, shrunk_shares, summed
from .splits import Splits

__all__ = ["ALGORITHMS", "auto_depth", "class_totals", "fit_tree", "grow_tree", "tree_parts"]

ALGORITHMS = ("auto", "id3", "c4.5")
# Of the budget of "auto": the classes of all records, and of the rest the choice of splits. Each
# level gets `_GROWTH` times what the level above got, since its nodes hold fewer records, and the
# part `_FLOOR` is divided equally. Chosen on electricity and phoneme.
_TOTAL_SHARE, _SPLIT_SHARE = Fraction(1, 50), Fraction(4, 5)
_GROWTH, _FLOOR = Fraction(8, 5), Fraction(1, 4)
_MOST_DEPTH = 12
# Scores of a level that are held at once.
_MOST_SCORES = 2**23


def tree_parts(epsilon: Fraction, algorithm: str, max_depth: int | None) -> dict[str, Fraction]:
    """Parts of epsilon: the numbers of records of the classes, and the tree.

    In the published algorithms such a count costs 1 of 2 (max_depth + 1) equal parts.
    """
    if algorithm == "auto" or max_depth is None:
        total = _TOTAL_SHARE
    else:
        total = Fraction(1, 2 * (max_depth + 1))
    return split_epsilon(epsilon, {"total": total, "model": 1 - total})


def auto_depth(signal: float, menu: Sequence[Splits], asked: int | None = None) -> int:
    """Levels of splits, from released and public numbers: those that pay, or that were asked for.

    Parameters
    ----------
    signal : float
        Records times epsilon.
    menu : sequence of Splits
        With very many splits the scores of fewer levels fit into memory.
    asked : int or None
    """
    n_scores = max(sum(len(splits) for splits in menu), 1)
    fits = int(math.log2(max(_MOST_SCORES / n_scores, 2.0)))
    if asked is not None:
        return min(asked, fits)
    # About 64 / epsilon records in a leaf. Chosen on electricity and phoneme, as the shares are.
    depth = round(math.log2(max(signal, 2.0)) - 6.0)
    return min(max(depth, 1), fits, _MOST_DEPTH)


def fit_tree(
    records: Records,
    menu: Sequence[Splits],
    n_classes: int,
    parts: Mapping[str, Fraction],
    random_state: Any,
    *,
    algorithm: str = "auto",
    quality: str = "clipped",
    max_depth: int | None = None,
    prune: bool = True,
) -> tuple[TreeModel, FloatArray]:
    """Fit a tree to records.

    Parameters
    ----------
    records : Records
    menu : sequence of Splits
        The splits of each column.
    n_classes : int
    parts : mapping of str to Fraction
        See `tree_parts`.
    random_state : NoiseSource
    algorithm : {"auto", "id3", "c4.5"}
        The last two grow alike; only "c4.5" prunes.
    quality : {"max", "gini", "clipped", "information"}
    max_depth : int or None
        None, for "auto" only: as many levels as pay.
    prune : bool

    Returns
    -------
    model : TreeModel
    total : ndarray of shape (n_classes,)
        Released numbers of records of the classes.
    """
    # Privacy. Released: the classes of all records, then the tree, one after the other.
    total = class_totals(records, n_classes, parts["total"], random_state)
    epsilon = parts["model"]
    growth = Growth(records, menu, n_classes)
    if algorithm == "auto":
        max_depth = auto_depth(float(total.sum()) * float(epsilon), menu, max_depth)
        model = grow_tree(growth, quality, epsilon, total, max_depth, prune, random_state)
        return model, total
    assert max_depth is not None
    model = _published(growth, quality, epsilon, total, max_depth, random_state)
    return (prune_errors(model) if algorithm == "c4.5" and prune else model), total


def class_totals(
    records: Records, n_classes: int, epsilon: Fraction, random_state: Any
) -> FloatArray:
    """Noisy number of records of each class."""
    # Privacy. A record is in one class: sensitivity 1.
    exact = integer_sums(records.labels, n_classes, records.counts)
    return discrete_laplace(exact, epsilon, random_state=random_state).astype(np.float64)


def grow_tree(
    growth: Growth,
    quality: str,
    epsilon: Fraction,
    total: FloatArray,
    depth: int,
    prune: bool,
    random_state: Any,
    columns: IntArray | None = None,
    n_trees: int = 1,
) -> TreeModel:
    """Splits level by level, then one count of each class in each leaf, with the rest of epsilon.

    Parameters
    ----------
    growth : Growth
        Of the root only.
    quality, epsilon, total, depth, prune, random_state
        As for `fit_tree`; ``total`` are released numbers.
    columns : ndarray of int, default=None
        Columns that may be split; None: all.
    n_trees : int
        Of the forest that it belongs to.
    """
    # Privacy. Released: a split of each node, level by level, at parts of epsilon that sum to
    # `_SPLIT_SHARE` of it; then the counts of the classes in the leaves with what is left. A record
    # is in one node of each level and in one cell of one leaf: sensitivity 1. Depth and parts
    # follow from released and public numbers.
    score = make_quality(quality, total)
    weights = level_weights(depth)
    if columns is None:
        columns = np.arange(len(growth.menu))
    splitting = epsilon * _SPLIT_SHARE if depth else Fraction(0)
    for part in split_epsilon(splitting, weights).values() if depth else ():
        growth.divide(columns, score, part, random_state)
    leaves = growth.leaves()
    rest = epsilon - splitting
    noisy = discrete_laplace(growth.class_counts(leaves), rest, random_state=random_state)
    variance = discrete_laplace_variance(rest)
    nodes = tuple(growth.nodes)
    counts = summed(nodes, leaves, noisy.astype(np.float64))
    variances = summed(nodes, leaves, np.full(len(leaves), variance))
    model = TreeModel(nodes, counts, shrunk_shares(nodes, counts, variances, n_trees))
    return prune_noise(model, variance) if prune else model


def level_weights(depth: int) -> dict[str, Fraction]:
    """Weights of the levels of splits: some for each, the more the deeper."""
    geometric = [_GROWTH**level for level in range(depth)]
    return {
        str(level): weight / sum(geometric) + _FLOOR / depth
        for level, weight in enumerate(geometric)
    }


def _published(
    growth: Growth,
    quality: str,
    epsilon: Fraction,
    total: FloatArray,
    depth: int,
    random_state: Any,
) -> TreeModel:
    """Algorithm 4: a count in each node says whether it is divided."""
    # Privacy. With epsilon' = epsilon / (2 depth + 1): a record's path has a count in each node but
    # the root, whose count is the total, and a split in each but the last, `depth` of either at
    # most; then the counts of the classes of its leaf. All nodes of a level hold different records:
    # sensitivity 1. Whether a node is divided follows from its noisy count.
    score = make_quality(quality, total)
    each = epsilon / (2 * depth + 1)
    sizes = np.array([total.sum()])
    for _ in range(depth):
        needed = growth.widths() * growth.n_classes * math.sqrt(2.0) / float(each)
        growth.keep(sizes >= needed)
        if not len(growth.active):
            break
        growth.divide(np.arange(len(growth.menu)), score, each, random_state)
        if not len(growth.active):
            break
        exact = growth.class_counts(growth.active).sum(axis=1)
        sizes = discrete_laplace(exact, each, random_state=random_state).astype(np.float64)
    leaves = growth.leaves()
    noisy = discrete_laplace(growth.class_counts(leaves), each, random_state=random_state)
    counts = summed(growth.nodes, leaves, noisy.astype(np.float64))
    nodes = tuple(growth.nodes)
    return TreeModel(nodes, counts, plain_shares(nodes, counts))
