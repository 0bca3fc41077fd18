"""How the budget is divided: from public facts and the released total alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, combinations
from typing import NamedTuple

from ..pairviews.budget import used_attributes
from .worth import least_distance

__all__ = ["BOXES", "GROUPS", "Plan", "Workload", "plan_views", "used_sets"]

# "all", "ranges", "cells", or sets of attributes with weights in (0, 1].
Workload = str | Mapping[tuple[int, ...], float | Fraction]

# Share of the views for choosing them, where attributes have few codes and where they have many.
_CHOICE, _CHOICE_LARGE = Fraction(10, 100), Fraction(4, 100)
# The error of k views of c cells grows with c * k / signal, what they tell more slowly than k:
# k is the square root of this times signal over a power of c.
_VIEWS, _POWER = 2.0, 1.2
# With a label, whose pairs are known already, of this times signal / c.
_VIEWS_LABEL = 2.0
# Single attributes of few codes are sharpened by the views, and get this much less.
_NARROW = 0.65
# A pair of more cells has boxes, and is about as noisy as a table of this many cells.
BOXES = 60
# Signal for each pair of a tree of large attributes; beyond the tree there is one more pair for so
# much signal above that of the tree.
_FOR_PAIR, _FOR_TREE, _FOR_MORE = 200.0, 300.0, 1250.0
# How large attributes are grows with the logarithm of their mean number of codes, above 10: by so
# much for a factor of ten. From 1 on all is done as for ranges.
_LARGE = 1.5
# Largest number of codes of an attribute that views tell apart; more codes are grouped.
GROUPS = 128
# With more codes of all attributes than this for each unit of signal there are no views, where
# attributes have few codes and where they have many.
_NOISE, _NOISE_LARGE = 0.045, 0.16
# Cells of wider sets hold so many noise scales of records on average, where attributes are large.
_FINE = 10.0
# Wider sets are counted one by one if there are at most so many of an order.
_MOST_COUNTED = 20_000
# With a label: shares of single attributes of all records, and of the grid; single attributes in
# classes have this much of what `_class_share` says. Less than the last is not left for views.
_ALONE, _GRID = Fraction(1, 10), Fraction(1, 5)
_IN_CLASSES = Fraction(7, 8)
_LEFT = Fraction(1, 10)
# Where fewer views than this are wanted, sets are chosen one at a time. The first rounds are as
# costly as if so many of these views were measured. The share of a round that its choice takes is
# this over the root of the number of cells: their noise is what the choice is weighed against.
# Where attributes are large, views differ less in what they tell.
_MOST_STEPS, _STEPS, _CHOICE_STEP, _MOST_LARGE = 40.0, 0.6, 0.55, 0.5
# Most of the share of the test whether there are views at all, the distance from independence that
# it should notice at least, as a share of records, and what is near enough to notice.
_TEST, _NOTICED, _SEEN = 0.04, 0.6, 0.1
# Rounds in which views are chosen after the first.
_ROUNDS = 3
# Rows of a population per unit of signal, and their bounds; those of the last one, per record.
_ROWS, _FEWEST, _MOST = 3.0, 10_000, 60_000
_LAST_ROWS, _FEWEST_LAST, _MOST_LAST = 4.0, 20_000, 100_000
# Numbers that a population of very many columns may hold.
_HELD = 20_000_000
# Cells that the views of a workload may have together: each takes 50 to 90 bytes while they are
# joined.
_MOST_HELD = 1 << 25


class Plan(NamedTuple):
    """What is measured with which budget.

    Attributes
    ----------
    single, choice, views : Fraction
        Budgets of single attributes, of the choice of views, and of the views; they add up to the
        part "views", with those of a label. All sets are measured if nothing is spent on the
        choice.
    n_first : int
        Pairs that are chosen for a tree before there is a model.
    rounds : list of int
        How many views each later round adds.
    n_rows, n_last : int
        Rows of the population while views are chosen, and in the end.
    most_cells : float
        Most cells of a set of three and more attributes: more would be lost in the noise.
    by_cells : bool
        Whether views have equal budgets and every cell is measured by itself.
    first_round : Fraction
        Cost of the first of rounds whose costs depend on those before; 0 for none of these.
    classes, grid : Fraction
        Budgets of single attributes in each class of a label, and of the grid for it.
    test : Fraction
        Of the question whether views are worth anything at all; 0 if it is not asked.
    again : Fraction
        Of single attributes, measured once more: what was worth no view.
    """

    single: Fraction
    choice: Fraction
    views: Fraction
    n_first: int
    rounds: list[int]
    n_rows: int
    n_last: int
    most_cells: float
    by_cells: bool = False
    first_round: Fraction = Fraction(0)
    classes: Fraction = Fraction(0)
    grid: Fraction = Fraction(0)
    test: Fraction = Fraction(0)
    again: Fraction = Fraction(0)

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

    def without_views(self) -> Plan:
        """The plan if views are worth nothing: single attributes get the whole budget."""
        single = self.single + self.choice + self.views
        none = Fraction(0)
        return Plan(single, none, none, 0, [], _FEWEST, _FEWEST_LAST, 0.0, test=self.test)

    def budget(self) -> dict[str, Fraction]:
        """Budgets by their names."""
        return {
            "test": self.test,
            "single": self.single,
            "classes": self.classes,
            "grid": self.grid,
            "choice": self.choice,
            "views": self.views,
            "again": self.again,
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
    found: dict[tuple[int, ...], float | Fraction] = {}
    for axes, weight in workload.items():
        used = tuple(axis for axis in axes if shape[axis] > 1)
        if len(used) > 1 and not (len(used) == 2 and label in used):
            found[used] = max(weight, found.get(used, 0))
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
    sizes = [shape[axis] for axis in used]
    records = max(total, 1.0)
    signal = max(records * float(views), 1e-9)
    none = Fraction(0)
    if len(used) < 2 or not _n_sets(sizes, max_order, workload):
        single = views * _ALONE if labelled and len(used) > 1 else views
        rest = views - single
        return Plan(single, none, none, 0, [], _FEWEST, _FEWEST_LAST, 0.0, classes=rest)
    large = 0.0 if labelled else _largeness(sizes, workload)
    n_rows, n_last = _populated(signal, total, len(shape))
    classes = grid = none
    if labelled:
        single = views * _ALONE
        grid = none if isinstance(workload, Mapping) else views * _GRID
        classes = views * _IN_CLASSES * _class_share(signal)
        if views - single - grid - classes < views * _LEFT:
            classes = views - single - grid
            return Plan(single, none, none, 0, [], n_rows, n_last, 0.0, classes=classes, grid=grid)
    else:
        single = views * _single_share(signal, sizes, large)
    choice = views * (_CHOICE + (_CHOICE_LARGE - _CHOICE) * Fraction(round(1000 * large), 1000))
    left = views - single - classes - grid - choice
    power = records * float(left)
    cells = _typical_cells(sizes)
    wanted = math.sqrt(power * (_VIEWS_LABEL / cells if labelled else _VIEWS / cells**_POWER))
    if not labelled and (wanted < 1 or _noise(sizes, signal) > _most_noise(large)):
        return Plan(views, none, none, 0, [], _FEWEST, _FEWEST_LAST, 0.0)
    wanted = (1 - large) * wanted + large * _boxed_views(power, len(used))
    n_views = min(
        max(round(wanted), 1), _n_sets(sizes, max_order, workload), _n_held(shape, workload)
    )
    most_cells = math.inf if labelled else power / (_FINE**large * n_views)
    n_sets = _n_sets(sizes, max_order, workload, most_cells)
    n_all = _n_sets(sizes, max_order, workload)
    stepwise = not labelled and not isinstance(workload, Mapping) and large < _MOST_LARGE
    if stepwise and wanted < min(_MOST_STEPS, n_all):
        steps = min(max(round(_STEPS * wanted), 1), n_all)
        test = views * _test_share(signal, math.comb(len(used), 2))
        rest = choice + left - test
        choice = rest * Fraction(round(1000 * _CHOICE_STEP / math.sqrt(cells)), 1000)
        return Plan(
            single, choice, rest - choice, 0, [1] * steps, n_rows, n_last, most_cells,
            first_round=rest / steps, test=test,
        )  # fmt: skip
    all_sets = n_views >= n_sets and not labelled
    n_views = min(n_views, n_sets)
    if all_sets:
        choice, left = Fraction(0), left + choice
    n_pairs = min(n_views, _n_sets(sizes, min(max_order, 2), workload))
    tree = not (labelled or all_sets or isinstance(workload, Mapping))
    n_first = min(n_views, len(used) - 1) if tree else 0
    rounds = [n_pairs, n_views - n_pairs] if all_sets else _even_rounds(n_views - n_first)
    rounds = [number for number in rounds if number]
    return Plan(
        single, choice, left, n_first, rounds, n_rows, n_last, most_cells,
        classes=classes, grid=grid,
    )  # fmt: skip


def _test_share(signal: float, n_pairs: int) -> Fraction:
    """Share of the test whether views are worth anything; 0 if it would not notice much."""
    distance = least_distance(n_pairs, signal)
    if distance > _NOTICED * _TEST:
        return Fraction(0)
    return Fraction(round(10_000 * min(_TEST, distance / _SEEN)), 10_000)


def _populated(signal: float, total: float, n_attributes: int) -> tuple[int, int]:
    """Rows of the population while views are chosen, and in the end."""
    most = max(_HELD // n_attributes, 10_000)
    n_rows = int(min(max(_ROWS * signal, _FEWEST), _MOST, most))
    n_last = int(min(max(_LAST_ROWS * total, _FEWEST_LAST), _MOST_LAST, most))
    return n_rows, n_last


def _n_sets(
    sizes: Sequence[int], max_order: int, workload: Workload, most_cells: float = math.inf
) -> int:
    """Number of sets that can be measured; wider ones than pairs have at most so many cells.

    Where there are too many wider sets to be counted, the number of all.
    """
    if isinstance(workload, Mapping):
        return sum(len(axes) <= max_order for axes in workload)
    n_sets = 0
    for order in range(2, max_order + 1):
        number = math.comb(len(sizes), order)
        if order > 2 and number <= _MOST_COUNTED:
            grouped = (min(size, GROUPS) for size in sizes)
            number = sum(math.prod(each) <= most_cells for each in combinations(grouped, order))
        n_sets += number
    return n_sets


def _n_held(shape: Sequence[int], workload: Workload) -> int:
    """How many sets of a workload fit into memory together, whichever are chosen."""
    if not isinstance(workload, Mapping):
        return _MOST_HELD
    tables = (math.prod(min(shape[axis], GROUPS) for axis in axes) for axes in workload)
    held = accumulate(sorted(tables, reverse=True))
    return max(sum(cells <= _MOST_HELD for cells in held), 1)


def _boxed_views(power: float, n_columns: int) -> float:
    """How many pairs of large attributes: boxes are larger where there is more noise.

    So the error of a view grows slowly with the number of views.
    """
    tree = min(power / _FOR_PAIR, n_columns - 1)
    return tree + max((power - _FOR_TREE * (n_columns - 1)) / _FOR_MORE, 0.0)


def _even_rounds(n_views: int) -> list[int]:
    """Views of each round."""
    n_rounds = min(_ROUNDS, n_views)
    return [n_views // n_rounds + (r < n_views % n_rounds) for r in range(n_rounds)]


def _class_share(signal: float) -> Fraction:
    """Share of single attributes in classes, which are most of what little signal can tell."""
    share = min(max(0.7 - 0.3 * math.log10(max(signal, 1.0) / 4000), 0.15), 0.8)
    return Fraction(round(1000 * share), 1000)


def _noise(sizes: Sequence[int], signal: float) -> float:
    """Codes of all attributes for each unit of signal; many codes are measured by boxes."""
    return sum(min(size, GROUPS) for size in sizes) / signal


def _most_noise(large: float) -> float:
    """Codes of all attributes for each unit of signal, above which single attributes get it all."""
    return _NOISE ** (1 - large) * _NOISE_LARGE**large


def _single_share(signal: float, sizes: Sequence[int], large: float) -> Fraction:
    """Share of single attributes: larger where there is little signal, or attributes are large."""
    noise = _noise(sizes, signal)
    narrow = 0.26 + 0.16 * math.log10(noise / 0.003) + 0.15 * max(math.log10(noise / 0.01), 0.0)
    narrow = max(_NARROW * narrow, 0.07)
    wide = max(0.82 - 0.39 * math.log10(signal / 4200), 0.3)
    share = min((1 - large) * narrow + large * wide, 0.8)
    return Fraction(round(1000 * share), 1000)


def _largeness(sizes: Sequence[int], workload: Workload) -> float:
    """From 0 (few codes: cells count) to 1 (many codes: ranges do)."""
    if workload == "ranges":
        return 1.0
    if workload == "cells":
        return 0.0
    return min(max(_LARGE * math.log10(sum(sizes) / len(sizes) / 10), 0.0), 1.0)


def _typical_cells(sizes: Sequence[int]) -> float:
    """Median number of cells of a pair, no more than boxes are worth."""
    pairs = sorted(min(sizes[a] * sizes[b], BOXES) for a in range(len(sizes)) for b in range(a))
    return float(pairs[len(pairs) // 2])
