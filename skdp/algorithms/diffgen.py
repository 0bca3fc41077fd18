"""DiffGen (Mohammed, Chen, Fung, Yu) and PPH, projected histograms: grids for classification."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._random import noise_source
from .._validation import IntArray, run_starts, split_epsilon
from ..domain import Attribute, Level, Numeric
from ..mechanisms import exponential, noisy_max
from ..tables import Counts, CountTable
from .groupings import groupings

# More counts than this are not released: the grid of DiffGen stops growing there, and predictors
# of projected histograms that would need more are not candidates.
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

    def grouping(self, nodes: Sequence[tuple[int, int]]) -> tuple[IntArray, list[str]]:
        """Group of each code, and the labels of the groups, for nodes that divide the codes."""
        groups = np.zeros(len(self.levels[0].groups), dtype=np.int64)
        labels = []
        for number, (level, group) in enumerate(nodes):
            groups[self.levels[level].groups == group] = number
            labels.append(self.levels[level].labels[group])
        return groups, labels


def _nested(attribute: Attribute) -> list[Level]:
    """Levels of the first family of groupings: the taxonomy, or halves of the range."""
    families = groupings(attribute, max(_MOST_GROUPS, 2))
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
    calibration: str = "tight",
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
    calibration : {"tight", "paper"}, default="tight"
        "paper" selects by the exponential mechanism at the published sensitivity.
    random_state : None, int or NoiseSource

    Returns
    -------
    axes : list of int
        Predictors that were specialised at least once.
    groups : list of ndarray of shape (n_codes,)
    labels : list of list of str
    """
    # Privacy. The score of a node is the number of records below it that carry the most frequent
    # label of their child. A new record raises the scores of the nodes that contain it by 0 or 1
    # and leaves the others unchanged: range 1. Each selection costs its share; which nodes can be
    # selected follows from the earlier selections. The cost is that of all selections together.
    source = noise_source(random_state)
    share = epsilon / n_specializations
    select = _published if calibration == "paper" else noisy_max
    label_axis = len(predictors)
    trees = [_Tree(_nested(attribute), attribute.size) for attribute in predictors]
    pairs = [((axis, label_axis), (None, None)) for axis in range(label_axis)]
    counts = list(table.regrouped_many(pairs))
    cut = [[(0, 0)] for _ in predictors]
    for _ in range(n_specializations):
        candidates = list(_candidates(trees, counts, cut, table.shape[-1]))
        if not candidates:
            break
        scores = np.array([each.score for each in candidates], dtype=np.int64)
        chosen = candidates[select(scores, share, 1, random_state=source)]
        cut[chosen.axis][chosen.place : chosen.place + 1] = [
            (chosen.level, part) for part in chosen.parts.tolist()
        ]
    axes = [axis for axis, nodes in enumerate(cut) if len(nodes) > 1]
    found = [trees[axis].grouping(cut[axis]) for axis in axes]
    return axes, [groups for groups, _ in found], [labels for _, labels in found]


def _published(scores: IntArray, epsilon: Fraction, score_range: int, random_state: Any) -> int:
    """A selection as in both papers, in place of `noisy_max`."""
    # Privacy. One record changes all scores within one interval of length `score_range`, proved
    # where they are computed. The papers take the exponential mechanism for a sensitivity of
    # `score_range`, exp(epsilon q / (2 sensitivity)): that of twice the range, at the same price.
    return exponential(scores, epsilon, 2 * score_range, random_state=random_state)


class _Candidate(NamedTuple):
    """A node that may be specialised."""

    axis: int
    place: int  # among the nodes of its predictor
    level: int  # of its children
    parts: IntArray  # the children
    score: int  # private


def _candidates(
    trees: Sequence[_Tree],
    counts: Sequence[IntArray],
    cut: Sequence[Sequence[tuple[int, int]]],
    n_classes: int,
) -> Iterator[_Candidate]:
    """All nodes that have children, if the grid stays small enough with them."""
    size = n_classes * math.prod(len(nodes) for nodes in cut)
    for axis, tree in enumerate(trees):
        width = len(cut[axis])
        for place, node in enumerate(cut[axis]):
            found = tree.children(*node)
            if found is None:
                continue
            level, parts = found
            if size // width * (width + len(parts) - 1) > _MOST_COUNTS:
                continue
            merged = np.zeros((len(tree.levels[level].labels), n_classes), dtype=np.int64)
            np.add.at(merged, tree.levels[level].groups, counts[axis])
            yield _Candidate(axis, place, level, parts, int(merged[parts].max(axis=1).sum()))


# ------------------------------------------------------------------------------------------------
# Projected histograms (Vinterbo): predictors that separate labels, selected one by one.


# Scores are in units of 1/4096.
UNIT = 4096


def projection_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon for the number of records, the selections, and the counts."""
    shares = {"total": Fraction(3, 100), "grid": Fraction(47, 100), "counts": Fraction(1, 2)}
    return split_epsilon(epsilon, shares)


def confusion_score(table: CountTable) -> int:
    """Negative number of record pairs with different labels in one cell, relative to its size.

    The score is -sum of floor(UNIT * (pairs of the cell) / (records of the cell)).

    Parameters
    ----------
    table : CountTable
        Cells, and the class as the last attribute.
    """
    # Privacy. With n records in a cell, n_i of them of label i, the summand is
    # (n - sum n_i**2 / n) / 2. One more record changes it by something between 0 (all records
    # share its label) and n / (n + 1) (none does), hence the floor by 0 to UNIT: range UNIT.
    if not len(table.counts):
        return 0
    cells = table.codes[:, :-1]
    starts = run_starts(cells)
    sizes = np.add.reduceat(table.counts, starts)
    # Python integers: squares of counts times UNIT may leave 64 bits, and floors must be exact.
    counts = table.counts.astype(object)
    squares = np.add.reduceat(counts * counts, starts)
    total = 0
    for size, square in zip(sizes.tolist(), squares.tolist(), strict=True):
        total += UNIT * (size * size - square) // (2 * size)
    return -total


def _level(attribute: Attribute, n_bins: int) -> Level:
    """Categories as they are; numbers in ``n_bins`` equal bins."""
    if not isinstance(attribute, Numeric) or attribute.bins <= n_bins:
        return attribute.levels()[-1]
    return attribute.level(np.arange(attribute.bins) * n_bins // attribute.bins)


def projected_histogram(
    table: CountTable,
    predictors: Sequence[Attribute],
    n_records: float,
    epsilon: Fraction,
    *,
    n_attributes: int = 3,
    calibration: str = "tight",
    random_state: Any = None,
) -> tuple[list[int], list[IntArray], list[list[str]]]:
    """Select ``n_attributes`` predictors, each with an equal share of ``epsilon``.

    Parameters
    ----------
    table : CountTable
        The predictors in order, and the class as the last attribute.
    predictors : sequence of Attribute
    n_records : float
        Noisy number of records: it decides the number of bins.
    epsilon : Fraction
    n_attributes : int, default=3
    calibration : {"tight", "paper"}, default="tight"
        "paper" selects by the exponential mechanism at the published sensitivity.
    random_state : None, int or NoiseSource

    Returns
    -------
    axes : list of int
        Selected predictors, in the order of the domain.
    groups : list of ndarray of shape (n_codes,)
    labels : list of list of str
    """
    # Privacy. Every selection is by scores of range UNIT, at an equal share; the candidates depend
    # on the earlier selections and on the noisy number of records.
    source = noise_source(random_state)
    rounds = min(n_attributes, len(predictors))
    share = epsilon / rounds
    select = _published if calibration == "paper" else noisy_max
    n = max(float(n_records), 3.0)
    n_bins = max(2, round((n / math.sqrt(math.log(n))) ** (2 / (2 + rounds))))
    levels = [_level(attribute, n_bins) for attribute in predictors]
    n_classes = table.shape[-1]
    label_axis = len(predictors)
    columns = [level.groups[table.codes[:, axis]] for axis, level in enumerate(levels)]
    columns.append(table.codes[:, label_axis].astype(np.int64))
    sizes = [*(len(level.labels) for level in levels), n_classes]
    chosen: list[int] = []
    for _ in range(rounds):
        cells = n_classes * math.prod(sizes[axis] for axis in chosen)
        candidates = [
            axis
            for axis in range(len(predictors))
            if axis not in chosen and 1 < sizes[axis] <= _MOST_COUNTS // cells
        ]
        if not candidates:
            break
        scores = []
        for axis in candidates:
            axes = [*chosen, axis, label_axis]
            codes = np.stack([columns[each] for each in axes], axis=1)
            shape = [sizes[each] for each in axes]
            scores.append(confusion_score(CountTable.from_codes(codes, shape, table.counts)))
        best = select(np.array(scores, dtype=np.int64), share, UNIT, random_state=source)
        chosen.append(candidates[best])
    axes = sorted(chosen)
    return axes, [levels[axis].groups for axis in axes], [levels[axis].labels for axis in axes]
