"""Views of a table: total, columns, coarse tables of pairs, and grids of sets that were chosen.

Everything measured becomes coefficients in one basis (`skdp.release.coefficients`). Rows are fitted
to the tables of the chosen sets, and answers are what the rows say, corrected by the coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..._random import NoiseSource, noise_source, sampling_generator
from ..._types import FloatArray, IntArray
from ...hierarchy import project_to_simplex
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...release import Coefficients, ColumnEstimate, Ladder, ViewsModel
from ...rows import Counts
from ..marginals.candidates import Candidates
from ..marginals.evidence import parts_of_set, with_margins
from ..marginals.lawful import Laws
from ..marginals.model import as_model
from ..marginals.population import Population, Target
from ..marginals.posterior import mean_of_pair, posterior_mean
from ..pairviews.attributes import Attribute
from ..pairviews.budget import used_attributes
from .ladders import FEW, coarse_size, column_plan, ladder_of

__all__ = ["Tuning", "measured_views"]

Axes = tuple[int, ...]
Grids = dict[Axes, tuple[int, ...]]


class Tuning(NamedTuple):
    """Numbers of the plan, chosen by ``benchmarks/questions.py`` and ``benchmarks/fidelity.py``.

    Attributes
    ----------
    column : float
        Budget of a single column, as a part of that of a table of a chosen set.
    coarse : Fraction
        Share of what is left that the coarse tables of all pairs take together, if they pay.
    pays : float
        Records times the epsilon of one coarse table from which on they pay.
    choice : Fraction
        Share of what is left then that the choice of sets takes.
    sets : float
        The square of the number of sets, for each unit of records times epsilon and cell.
    spread : float
        Power of the number of cells by which the error of a table grows.
    cells : float
        Cells of a grid, for each unit of (records times epsilon) to the power 0.8.
    told_apart : float
        Records times epsilon of a mean cell from which on categories are told apart.
    """

    column: float = 0.5
    coarse: Fraction = Fraction(12, 100)
    pays: float = 8.0
    choice: Fraction = Fraction(10, 100)
    sets: float = 1.0
    spread: float = 1.2
    cells: float = 1.0
    told_apart: float = 1.4


TUNING = Tuning()

# Most cells by which the number of sets is decided: larger tables have coarser grids.
_TYPICAL = 60
# Rounds of choices after the first.
_ROUNDS = 3
# Rows while sets are chosen, and in the end: so many a record, within bounds.
_ROWS, _LAST_ROWS, _FEWEST_LAST, _MOST_LAST = 30_000, 4, 20_000, 100_000
# Sweeps of fitting after a round and in the end, and rounds of fitting weights alone.
_SWEEPS, _LAST_SWEEPS, _SETTLED = 3, 5, 6
# Most groups of a column that rows tell apart.
_GROUPS = 128


def measured_views(
    table: Counts,
    parts: Mapping[str, Fraction],
    *,
    orders: Sequence[IntArray | None],
    max_order: int = 3,
    progress: Callable[[str], None] = lambda text: None,
    random_state: NoiseSource | int | None = None,
    tuning: Tuning = TUNING,
) -> ViewsModel:
    """Measure views of a table, and fit rows to them.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    parts : mapping of str to Fraction
        "total" and "views", which are spent entirely.
    orders : sequence of ndarray of int or None
        For each attribute its codes in an order in which neighbours are similar: that of the
        codes; None for attributes without one.
    max_order : int, default=3
        Most columns of a chosen set.
    progress : callable, optional
        Is told, as text, which step begins, in numbers that are public or released.
    random_state : None, int or NoiseSource, default=None
    tuning : Tuning, optional
    """
    # Privacy. Released one after the other, within budgets that add up to the two parts: the total
    # (sensitivity 1), the columns, perhaps the coarse tables of all pairs, and in rounds the choice
    # of sets and their tables. Budgets, groups and grids follow from public facts and releases
    # before them. Everything else is post-processing.
    source = noise_source(random_state)
    work = _Views(table, parts, orders, max_order, tuning, source)
    progress("single columns")
    left = work.measure_columns(parts["views"])
    if len(work.used) > 1:
        left = work.measure_coarse(left, progress)
        work.measure_sets(left, progress)
    progress("synthetic rows")
    return work.model()


class _Views:
    """What has been measured of one table so far."""

    def __init__(
        self,
        table: Counts,
        parts: Mapping[str, Fraction],
        orders: Sequence[IntArray | None],
        max_order: int,
        tuning: Tuning,
        source: NoiseSource,
    ) -> None:
        # Privacy. The number of records: sensitivity 1.
        self.total = float(discrete_laplace(table.n, parts["total"], random_state=source))
        self.total_variance = discrete_laplace_variance(parts["total"])
        self.table, self.orders, self.max_order = table, orders, max_order
        self.tuning, self.source = tuning, source
        self.generator = sampling_generator(source)
        self.used = used_attributes(table.shape)
        self.budget = {"total": parts["total"]}
        self.blocks: dict[int, dict[int, FloatArray]] = {}
        self.columns: dict[int, ColumnEstimate] = {}
        self.known = Coefficients({})
        # Grids of the chosen sets, to which rows are fitted.
        self.grids: Grids = {}

    @property
    def records(self) -> float:
        """The released number of records, positive."""
        return max(self.total, 1.0)

    # ---------------------------------------------------------------- what is measured

    def measure_columns(self, left: Fraction) -> Fraction:
        """Measure every column alone, in blocks of its own tree; what is left."""
        # Privacy. Released: noisy counts of the blocks of each level of each column's tree, the
        # empty ones too. A record lies in one block of a level: sensitivity 1. Levels and columns
        # follow each other, and their shares add up to one. The trees follow from public sizes.
        share = left * self._share_of_columns(left) / max(len(self.used), 1)
        for axis in self.used:
            size, order = self.table.shape[axis], self.orders[axis]
            plan = column_plan(size, order is not None)
            exact = np.zeros(plan.sizes[-1], dtype=np.int64)
            exact[:size] = self.table.regrouped([axis], [None])
            self.blocks[axis] = {
                n: discrete_laplace(
                    exact.reshape(n, -1).sum(axis=1), share * part, random_state=self.source
                ).astype(np.float64)
                for n, part in plan.shares.items()
            }
            variances = {
                n: discrete_laplace_variance(share * part) for n, part in plan.shares.items()
            }
            column = ColumnEstimate(size, plan.sizes, variances, self.total_variance)
            column.fit(self.blocks[axis], self.total)
            self.columns[axis] = column
        ladders = {
            axis: ladder_of(column.counts, self.orders[axis])
            for axis, column in self.columns.items()
        }
        self.known = Coefficients(ladders)
        self.known.average((), np.array(self.total), self.total_variance)
        for axis, column in self.columns.items():
            own = np.array(column.own_total(self.blocks[axis]))
            self.known.average((), own, column.own_total_variance)
        self.budget["columns"] = share * len(self.used)
        return left - self.budget["columns"]

    def measure_coarse(self, left: Fraction, progress: Callable[[str], None]) -> Fraction:
        """Measure a coarse table of every pair, if there is signal enough; what is left."""
        pairs = list(combinations(self.used, 2))
        each = left * self.tuning.coarse / len(pairs)
        if self.records * float(each) < self.tuning.pays:
            return left
        progress("coarse tables of all pairs")
        sizes = {axis: coarse_size(ladder) for axis, ladder in self.known.ladders.items()}
        self._measure({pair: tuple(sizes[axis] for axis in pair) for pair in pairs}, each)
        self.budget["coarse"] = each * len(pairs)
        return left - self.budget["coarse"]

    def measure_sets(self, left: Fraction, progress: Callable[[str], None]) -> None:
        """Choose sets where the rows so far fit worst, and measure them, in rounds."""
        attributes = self._attributes()
        laws = Laws.of(None, attributes)
        population = Population.of(attributes, laws, _ROWS, self.generator)
        n_sets = self._n_sets(self.records * float(left))
        candidates = Candidates(
            self.table,
            attributes,
            self.used,
            self.max_order,
            "all",
            None,
            self.records * float(left) / n_sets,
        )
        # Where all sets are measured, none is chosen.
        n_sets = min(n_sets, candidates.number)
        choice = left * self.tuning.choice if n_sets < candidates.number else left * 0
        each = (left - choice) / n_sets
        self.budget |= {"choice": choice, "sets": left - choice}
        first = min(n_sets, len(self.used) - 1)
        for number in (first, *_even(n_sets - first)):
            sets = candidates.best(
                population,
                self.records,
                list(self.grids),
                number,
                choice * Fraction(number, n_sets),
                each,
                self.source,
            )
            signal = self.records * float(each)
            grids = {axes: self._grid(axes, signal) for axes in sets}
            self._measure(grids, each)
            self.grids |= grids
            progress(f"{len(self.grids)} of {n_sets} sets of columns")
            self._join_columns()
            population.fit(self._targets(attributes, population), _SWEEPS)

    def _measure(self, grids: Grids, epsilon: Fraction) -> None:
        """Noisy counts of all cells of some tables of groups, each for ``epsilon``."""
        # Privacy. Released: the noisy count of every cell of each table, the empty ones too. A
        # record lies in one cell: sensitivity 1. The tables follow each other.
        ladders = self.known.ladders
        asked = [
            (axes, [ladders[axis].groups(size) for axis, size in zip(axes, sizes, strict=True)])
            for axes, sizes in grids.items()
        ]
        counted = self.table.regrouped_many(asked)
        for (axes, sizes), exact in zip(grids.items(), counted, strict=True):
            # Groups without codes hold no record, and get noise like the others.
            full = np.zeros(sizes, dtype=np.int64)
            full[tuple(slice(0, size) for size in exact.shape)] = exact
            noisy = discrete_laplace(full, epsilon, random_state=self.source)
            self.known.add(axes, noisy, discrete_laplace_variance(epsilon))

    # ---------------------------------------------------------------- how it is divided

    def _n_sets(self, signal: float) -> int:
        """How many sets are worth measuring.

        The error of k tables of c cells grows with k c / signal, and what they tell beyond the
        first ones with less than k.
        """
        shape = self.table.shape
        cells = sorted(
            min(shape[a], FEW) * min(shape[b], FEW) for a, b in combinations(self.used, 2)
        )
        typical = min(cells[len(cells) // 2], _TYPICAL)
        return max(round(math.sqrt(self.tuning.sets * signal / typical**self.tuning.spread)), 1)

    def _share_of_columns(self, left: Fraction) -> Fraction:
        """Share of single columns: each is worth a part of a table of a set."""
        if len(self.used) < 2:
            return Fraction(1)
        columns = self.tuning.column * len(self.used)
        # The sets have about this much of what is left.
        n_sets = self._n_sets(0.7 * self.records * float(left))
        return Fraction(round(1000 * columns / (columns + n_sets)), 1000)

    def _grid(self, axes: Axes, signal: float) -> tuple[int, ...]:
        """Numbers of groups with which noise and what cut groups hide are about as large.

        A question that cuts a table of G cells in its middle has the noise of about G / 8 cells,
        and cuts sqrt(G) of them. The sum of G / epsilon^2 and sqrt(G) (n / G)^2 is least where G
        is in proportion to (n epsilon)^0.8. Categories are told apart as long as a mean cell stands
        out from the noise.
        """
        ladders = [self.known.ladders[axis] for axis in axes]
        sizes = [coarse_size(ladder) for ladder in ladders]
        for place, (axis, ladder) in enumerate(zip(axes, ladders, strict=True)):
            whole = math.prod(sizes) // sizes[place] * ladder.n_units
            apart = ladder.n_units <= FEW and whole * self.tuning.told_apart <= signal
            if self.orders[axis] is None and apart:
                sizes[place] = ladder.n_units
        most = self.tuning.cells * signal**0.8
        while finer := list(_finer(ladders, sizes, most)):
            _, place, size = min(finer)
            sizes[place] = size
        return tuple(sizes)

    # ---------------------------------------------------------------- what follows from it

    def _join_columns(self) -> None:
        """Estimate columns from their own blocks, the total, and the margins of tables."""
        look = self.known.looks[()]
        for axis, old in self.columns.items():
            blocks = self.blocks[axis]
            # What everything but the column's own counts tells of the total.
            own = 1.0 / old.own_total_variance
            precision = float(look.precision) - own
            others = (float(look.values * look.precision) - own * old.own_total(blocks)) / precision
            new = ColumnEstimate(old.n_codes, old.sizes, old.variances, 1.0 / precision)
            new.fit(blocks, others)
            margin = self.known.looks.get((axis,))
            if margin is not None:
                new.join(self.known.ladders[axis], margin.values, margin.variances)
            self.columns[axis] = new

    def _attributes(self) -> list[Attribute]:
        """Released columns as rows need them: probabilities of codes, and of units if many."""
        found = []
        for axis, size in enumerate(self.table.shape):
            if size == 1:
                found.append(Attribute.of(np.ones(1), np.arange(1), _GROUPS))
                continue
            counts = self.columns[axis].counts
            mu = project_to_simplex(counts, self.records) / self.records
            order = self.orders[axis]
            order = np.argsort(-mu, kind="stable") if order is None else order
            if size <= _GROUPS:
                found.append(Attribute(mu, order, None, mu, order))
                continue
            ladder = self.known.ladders[axis]
            mass = ladder.sums(mu)
            found.append(Attribute(mu, order, ladder.units, mass, np.arange(len(mass))))
        return found

    def _targets(self, attributes: Sequence[Attribute], population: Population) -> list[Target]:
        """The margins that rows should have: single columns and chosen sets."""
        found: dict[Axes, FloatArray] = {
            (axis,): each.grouped for axis, each in enumerate(attributes)
        }
        for axes in sorted(self.grids, key=lambda each: (len(each), each)):
            model = population.smooth_margin(axes)
            fine = self._refined(axes, model, attributes)
            found[axes] = with_margins(fine, axes, parts_of_set(axes, found))
        return [Target(axes, table) for axes, table in found.items()]

    def _refined(
        self, axes: Axes, model: FloatArray, attributes: Sequence[Attribute]
    ) -> FloatArray:
        """Shares of the cells of a model whose sums over a grid follow what was measured."""
        sizes = self.grids[axes]
        lines = []
        for axis, size in zip(axes, sizes, strict=True):
            groups, units = self.known.ladders[axis].groups(size), attributes[axis].groups
            if units is not None:
                groups = np.arange(int(units.max()) + 1) // (
                    self.known.ladders[axis].n_units // size
                )
            lines.append(groups)
        counts, variance = self._table(axes, sizes)
        cell = np.ravel_multi_index(np.ix_(*lines), sizes).ravel()
        sums = np.bincount(cell, weights=model.ravel(), minlength=counts.size)
        near: FloatArray = (self.records * sums.reshape(sizes)).astype(np.float64, copy=False)
        if len(axes) == 2:
            mean = mean_of_pair(counts, variance, near)
        else:
            mean = posterior_mean(counts, variance, near, empty=True)
        ratio = np.divide(mean, near, out=np.zeros_like(near), where=near > 0).ravel()
        # Blocks that the model leaves empty are spread evenly.
        width = np.maximum(np.bincount(cell, minlength=counts.size), 1)
        new = np.where(near > 0, 0.0, mean).ravel() / width
        fine = np.maximum(model * ratio[cell].reshape(model.shape), 0.0)
        fine += np.maximum(new, 0.0)[cell].reshape(model.shape)
        return fine / max(fine.sum(), 1e-300)

    def _table(self, axes: Axes, sizes: Sequence[int]) -> tuple[FloatArray, float]:
        """Counts of the cells of a set from everything measured, and their mean variance."""
        sums = {
            axis: self.known.ladders[axis].sums(self.columns[axis].counts, size)
            for axis, size in zip(axes, sizes, strict=True)
        }
        counts, variance = self.known.table(axes, sizes, sums)
        return counts, float(variance.mean())

    def model(self) -> ViewsModel:
        """The released model."""
        attributes = self._attributes()
        laws = Laws.of(None, attributes)
        population = Population.of(attributes, laws, _ROWS, self.generator)
        population.fit(self._targets(attributes, population), _LAST_SWEEPS)
        targets = self._targets(attributes, population)
        population.scale(targets)
        n_rows = min(max(_LAST_ROWS * self.total, _FEWEST_LAST), _MOST_LAST)
        population.renew(int(n_rows))
        population.fit(targets, _LAST_SWEEPS)
        population.settle(targets, _SETTLED)
        rows = as_model(
            population,
            targets,
            attributes,
            float(self.known.looks[()].values),
            {name: float(part) for name, part in self.budget.items() if part},
            self.generator,
            laws=laws,
            keep_rows=True,
        )
        return ViewsModel(rows, self.columns, self.known)


def _finer(
    ladders: Sequence[Ladder], sizes: Sequence[int], most: float
) -> list[tuple[int, int, int]]:
    """Steps to a finer grid of at most so many cells: present size, column, next size."""
    found = []
    for place, (ladder, size) in enumerate(zip(ladders, sizes, strict=True)):
        above = [each for each in ladder.sizes if each > size]
        if above and math.prod(sizes) // size * above[0] <= most:
            found.append((size, place, above[0]))
    return found


def _even(number: int) -> list[int]:
    """So many sets in a few rounds; none in no round."""
    n_rounds = min(_ROUNDS, number)
    return [number // n_rounds + (r < number % n_rounds) for r in range(n_rounds)]
