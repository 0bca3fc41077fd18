"""How the budget is divided: from public facts and the released total alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..pairviews.budget import used_attributes

__all__ = ["Plan", "Workload", "plan_views", "used_sets"]

# "all", "ranges", "cells", or sets of attributes with weights in (0, 1].
Workload = str | Mapping[tuple[int, ...], float]

# Share of the views for choosing them.
_CHOICE = Fraction(8, 100)
# The error of k views of c cells grows with c * k / signal, what they tell more slowly than k:
# k is the square root of this times signal / c.
_VIEWS = 0.5
# A table of more cells has boxes, and is about as noisy as one of this many cells.
_CELLS = 60
# With a label: shares of single attributes of all records, and of the grid; single attributes in
# classes have this much of what `_class_share` says. Less than the last is not left for views.
_ALONE, _GRID = Fraction(1, 10), Fraction(1, 5)
_IN_CLASSES = Fraction(7, 8)
_LEFT = Fraction(1, 10)
# Rounds in which views are chosen after the first.
_ROUNDS = 3
# Rows of a population per unit of signal, and their bounds; those of the last one, per record.
_ROWS, _FEWEST, _MOST = 3.0, 10_000, 60_000
_LAST_ROWS, _FEWEST_LAST, _MOST_LAST = 4.0, 20_000, 100_000
# Numbers that a population of very many columns may hold.
_HELD = 20_000_000


class Plan(NamedTuple):
    """What is measured with which budget.

    Attributes
    ----------
    single, choice, views : Fraction
        Budgets of single attributes, of the choice of views, and of the views; they add up to the
        part "views", with those of a label.
    n_first : int
        Pairs that are chosen for a tree before there is a model.
    rounds : list of int
        How many views each later round adds.
    n_rows, n_last : int
        Rows of the population while views are chosen, and in the end.
    classes, grid : Fraction
        Budgets of single attributes in each class of a label, and of the grid for it.
    """

    single: Fraction
    choice: Fraction
    views: Fraction
    n_first: int
    rounds: list[int]
    n_rows: int
    n_last: int
    classes: Fraction = Fraction(0)
    grid: Fraction = Fraction(0)

    @property
    def n_views(self) -> int:
        """All views of two or more attributes."""
        return self.n_first + sum(self.rounds)

    def view(self, n: int = 1) -> Fraction:
        """Budget of so many views."""
        return self.views * Fraction(n, max(self.n_views, 1))

    def pick(self, n: int = 1) -> Fraction:
        """Budget of choosing so many views."""
        return self.choice * Fraction(n, max(self.n_views, 1))

    def budget(self) -> dict[str, Fraction]:
        """Budgets by their names."""
        return {
            "single": self.single,
            "classes": self.classes,
            "grid": self.grid,
            "choice": self.choice,
            "views": self.views,
        }


def used_sets(workload: Workload, shape: Sequence[int], label: int | None = None) -> Workload:
    """Sets of a workload that are left to be chosen; words as they are.

    Parameters
    ----------
    workload : str or mapping
    shape : sequence of int
        Attributes with one code are left out of the sets; the largest weight of equal sets counts.
    label : int, default=None
        Pairs with this attribute are known already.
    """
    if isinstance(workload, str):
        return workload
    found: dict[tuple[int, ...], float] = {}
    for axes, weight in workload.items():
        used = tuple(axis for axis in axes if shape[axis] > 1)
        if len(used) > 1 and not (len(used) == 2 and label in used):
            found[used] = max(weight, found.get(used, 0.0))
    return found


def plan_views(
    views: Fraction,
    total: float,
    shape: Sequence[int],
    *,
    max_order: int = 3,
    workload: Workload = "all",
    labelled: bool = False,
) -> Plan:
    """Divide the part "views".

    Parameters
    ----------
    views : Fraction
    total : float
        The released number of records.
    shape : sequence of int
    max_order : int, default=3
    workload : str or mapping, default="all"
        From `used_sets`.
    labelled : bool, default=False
        Whether single attributes are measured in each class of a label too: its pairs, in effect.
    """
    used = used_attributes(shape)
    signal = max(total, 1.0) * float(views)
    n_sets = [math.comb(len(used), order) for order in range(2, max_order + 1)]
    if isinstance(workload, Mapping):
        n_sets = [sum(len(axes) <= max_order for axes in workload)]
    none = Fraction(0)
    if len(used) < 2 or not sum(n_sets):
        single = views * _ALONE if labelled and len(used) > 1 else views
        rest = views - single
        return Plan(single, none, none, 0, [], _FEWEST, _FEWEST_LAST, rest)
    n_rows, n_last = _populated(signal, total, len(shape))
    classes = grid = none
    if labelled:
        single = views * _ALONE
        grid = none if isinstance(workload, Mapping) else views * _GRID
        classes = views * _IN_CLASSES * _class_share(signal)
        if views - single - grid - classes < views * _LEFT:
            classes = views - single - grid
            return Plan(single, none, none, 0, [], n_rows, n_last, classes, grid)
    else:
        single = views * _single_share(signal, [shape[axis] for axis in used], workload)
    choice = views * _CHOICE
    left = views - single - classes - grid - choice
    cells = _typical_cells([shape[axis] for axis in used])
    wanted = math.sqrt(_VIEWS * max(total, 1.0) * float(left) / cells)
    if wanted < 1 and not labelled:
        return Plan(views, none, none, 0, [], _FEWEST, _FEWEST_LAST)
    n_views = int(min(max(round(wanted), 1), sum(n_sets)))
    tree = not (labelled or isinstance(workload, Mapping))
    n_first = min(n_views, len(used) - 1) if tree else 0
    more = n_views - n_first
    n_rounds = min(_ROUNDS, more)
    rounds = [more // n_rounds + (r < more % n_rounds) for r in range(n_rounds)]
    return Plan(single, choice, left, n_first, rounds, n_rows, n_last, classes, grid)


def _populated(signal: float, total: float, n_attributes: int) -> tuple[int, int]:
    """Rows of the population while views are chosen, and in the end."""
    most = max(_HELD // n_attributes, 10_000)
    n_rows = int(min(max(_ROWS * signal, _FEWEST), _MOST, most))
    n_last = int(min(max(_LAST_ROWS * total, _FEWEST_LAST), _MOST_LAST, most))
    return n_rows, n_last


def _class_share(signal: float) -> Fraction:
    """Share of single attributes in classes, which are most of what little signal can tell."""
    share = min(max(0.7 - 0.3 * math.log10(max(signal, 1.0) / 4000), 0.15), 0.8)
    return Fraction(round(1000 * share), 1000)


def _single_share(signal: float, sizes: Sequence[int], workload: Workload) -> Fraction:
    """Share of single attributes: larger where there is little signal, or attributes are large."""
    narrow = max(0.42 - 0.16 * math.log10(max(signal, 1.0) / 2700), 0.1)
    wide = max(0.82 - 0.39 * math.log10(max(signal, 1.0) / 4200), 0.3)
    large = min(max(math.log10(sum(sizes) / len(sizes) / 10), 0.0), 1.0)
    if workload == "ranges":
        large = 1.0
    elif workload == "cells":
        large = 0.0
    share = min((1 - large) * narrow + large * wide, 0.8)
    return Fraction(round(1000 * share), 1000)


def _typical_cells(sizes: Sequence[int]) -> float:
    """Median number of cells of a pair, no more than boxes are worth."""
    pairs = sorted(min(sizes[a] * sizes[b], _CELLS) for a in range(len(sizes)) for b in range(a))
    return float(pairs[len(pairs) // 2])
