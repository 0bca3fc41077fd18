"""Views of a table: total, columns, and grids of pairs that were chosen.

Everything measured becomes coefficients in one basis (`skdp.release.basis`). Rows are
fitted to the tables of the chosen sets, and answers are what the rows say, corrected by the
coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..._random import NoiseSource, noise_source, sampling_generator
from ..._validation import TINY, FloatArray, IntArray, project_to_simplex, ratio, used_attributes
from ...domain import Zeros
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...release import ViewsModel
from ...release.basis import Coefficients, ColumnEstimate, along
from ...release.marginals import WeightedRows
from ...tables import Counts
from .fit import (
    MOST_CELLS,
    ROWS_ONCE,
    TUNING,
    Attribute,
    Population,
    Prior,
    Targets,
    alone_of,
    between_groups,
    nearer_to,
    posterior_mean,
    with_margins,
)
from .plans import (
    Candidates,
    ColumnPlan,
    JointCounts,
    Workload,
    column_plan,
    joint_share,
    ladder_of,
    measure_joint,
)

Axes = tuple[int, ...]
Grids = dict[Axes, tuple[int, ...]]

# Most columns of one table of all: a table has coefficients for each of their subsets.
_WHOLE_COLUMN_COUNTS = 10


class Asked(NamedTuple):
    """What views are for; public.

    Attributes
    ----------
    orders : sequence of ndarray of int or None
        For each attribute its codes in an order in which neighbours are similar; None for
        attributes without one.
    n_alone : sequence of int, optional
        For each attribute how many of its last codes say nothing of their neighbours: special
        values and the missing one; none by default.
    groups : sequence of ndarray of int64, optional
        For each attribute the public group of each code, ascending: tables of several columns tell
        no more apart. By default the codes themselves.
    label : int, default=None
        The attribute to be predicted from the others: all pairs with it are measured first.
    zeros : Zeros, default={}
        What public rules allow. Records that break one must not be in the table.
    max_order : int, default=3
        Most columns of a chosen set.
    workload : str or mapping of tuple of int to float, default="all"
        "all", "ranges" (more for single columns), "cells" (less), or the only sets that may be
        chosen with weights in (0, 1].
    prior : Prior, default=None
        Rows that are public or released already.
    trial : bool, default=False
        Whether only the sizes of errors matter, as of a table that is public: a few rows are
        weighted by the tables, and never drawn again.
    progress : callable, optional
        Is told, as text, which step begins, in numbers that are public or released.
    """

    orders: Sequence[IntArray | None]
    n_alone: Sequence[int] = ()
    groups: Sequence[IntArray] = ()
    label: int | None = None
    zeros: Zeros = Zeros()
    max_order: int = 3
    workload: Workload = "all"
    prior: Prior | None = None
    trial: bool = False
    progress: Callable[[str], None] = lambda text: None


def measured_views(
    table: Counts,
    parts: Mapping[str, Fraction],
    asked: Asked,
    *,
    random_state: NoiseSource | int | None = None,
) -> ViewsModel:
    """Measure views of a table, and fit rows to them.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    parts : mapping of str to Fraction
        "total" and "views", which are spent entirely.
    asked : Asked
    random_state : None, int or NoiseSource, default=None
    """
    return _Views(table, parts, asked, noise_source(random_state)).measured()


def most_groups(shape: Sequence[int], max_order: int) -> int:
    """Most codes, or groups of them, of an attribute in tables of more than one column."""
    if max_order == 1:
        return max(shape)
    return math.isqrt(MOST_CELLS) if len(used_attributes(shape)) <= 2 else TUNING.groups


class _Views:
    """What has been measured of one table so far."""

    def __init__(
        self, table: Counts, parts: Mapping[str, Fraction], asked: Asked, source: NoiseSource
    ) -> None:
        # Codes that records can have.
        self.codes = [
            np.flatnonzero(asked.zeros.get((axis,), np.ones(size)))
            for axis, size in enumerate(table.shape)
        ]
        self.used = used_attributes([len(codes) for codes in self.codes])
        # Privacy. The number of records: sensitivity 1. If no column has two codes, which is
        # public, nothing else is open.
        epsilon = parts["total"] if self.used else parts["total"] + parts["views"]
        self.total = float(discrete_laplace(table.n, epsilon, random_state=source))
        self.total_variance = discrete_laplace_variance(epsilon)
        self.table, self.parts, self.source = table, parts, source
        self.orders, self.zeros = asked.orders, asked.zeros
        self.generator = sampling_generator(source)
        self.rows, self.sweeps = TUNING.rows, TUNING.sweeps
        if asked.trial:
            self.rows, self.sweeps = TUNING.rows_of_trial, 0
        # Public groups of codes that tables of several columns tell apart at most.
        self.told = [*asked.groups] or [np.arange(size) for size in table.shape]
        self.sizes = tuple(int(each.max()) + 1 for each in self.told)
        self.groups = most_groups(self.sizes, asked.max_order)
        self.several = [axis for axis in self.used if self.sizes[axis] > 1]
        self.asked = asked
        # Sets of columns that may be measured, and how much their scores count.
        self.weights = self._weights()
        self.budget = {"total": epsilon}
        self.blocks: dict[int, dict[int, FloatArray]] = {}
        self.columns: dict[int, ColumnEstimate] = {}
        self.known = Coefficients({})
        # Grids of the chosen sets, to which rows are fitted.
        self.grids: Grids = {}
        self.joint: JointCounts | None = None
        # Whether all columns are one table.
        self.whole = False
        # How far from the rows pairs are that were not measured, by how many columns are ordered.
        self.misfits: dict[int, float] = {}
        # Released tables, and the variance of their noise.
        self.tables: list[tuple[Axes, FloatArray, float]] = []

    @property
    def records(self) -> float:
        """The released number of records, positive."""
        look = self.known.looks.get(())
        return max(self.total if look is None else float(look.values), 1.0)

    def measured(self) -> ViewsModel:
        """Measure everything; the released model."""
        # Privacy. Released one after the other, within budgets that add up to the two parts: the
        # total (sensitivity 1), the columns, and then either the joint counts, or one table of all
        # columns, or the choice of sets, their tables, and how far the other pairs are from rows
        # that follow these tables. Which of these, budgets, groups and grids follow from public
        # facts and releases before them, as do the rows. Everything else is post-processing.
        left, asked = self.parts["views"], self.asked
        joint, share = Fraction(0), Fraction(1)
        if self.weights and isinstance(asked.workload, str):
            joint = joint_share(left, self.total, self.table.shape)
            self.whole = not joint and self._has_whole(left)
        if joint:
            share, self.weights = TUNING.beside, {}
        elif self.whole:
            self.weights = {tuple(self.several): 1}
            # Of codes inside of groups the table says nothing.
            share = TUNING.beside if self.table.shape == self.sizes else Fraction(1, 2)
        elif self.weights:
            share = self.share_of_columns(self.records * float(left))
        asked.progress("single columns")
        left = self.measure_columns(left, share)
        candidates, rest = None, Fraction(0)
        if joint:
            asked.progress("all columns together")
            self.joint = measure_joint(self.table, left, self._attributes(), self.source)
            self.budget["joint"] = left
            variance = len(self.joint.rows) * self.joint.noise + self.joint.elsewhere
            self.known.average((), np.array(float(self.joint.counts.sum())), variance)
        elif self.weights:
            candidates, rest = self.measure_sets(left)
        asked.progress("synthetic rows")
        attributes = self._attributes()
        population, prior = self._start(attributes)
        targets = self._targets(attributes, population, prior)
        population = self._fitted(population, targets, prior)
        if candidates and rest:
            # Of a kind are pairs with as many ordered columns.
            kinds: dict[int, list[Axes]] = {}
            for axes in (each for each in self.weights if each not in self.grids):
                kind = sum(self.known.ladders[axis].n_ordered > 0 for axis in axes)
                kinds.setdefault(kind, []).append(axes)
            self.misfits = candidates.misfits(population, self.columns, kinds, rest, self.source)
        return self._model(attributes, population, targets, prior)

    # ---------------------------------------------------------------- what is measured

    def measure_columns(self, left: Fraction, share: Fraction) -> Fraction:
        """Measure every column alone, in blocks of its own tree; what is left."""
        # Privacy. Released: noisy counts of the blocks of each level of each column's tree, the
        # empty ones too. A record lies in one block of a level: sensitivity 1. Levels and columns
        # follow each other, and their shares add up to one. Trees and shares follow from public
        # sizes and the released total.
        whole = left * share if self.used else left * 0
        shares = _divided(whole, self._needs_of_columns(self.records * float(whole)))
        for axis, each in shares.items():
            codes, plan = self.codes[axis], self._plan(axis, self.records * float(each))
            exact = np.zeros(plan.sizes[-1], dtype=np.int64)
            exact[: len(codes)] = self.table.regrouped([axis], [None])[codes]
            self.blocks[axis] = {}
            variances = {}
            for n, part in plan.shares.items():
                blocks = exact.reshape(n, -1).sum(axis=1)
                noisy = discrete_laplace(blocks, each * part, random_state=self.source)
                self.blocks[axis][n] = noisy.astype(np.float64)
                variances[n] = discrete_laplace_variance(each * part)
            self._estimate(axis, plan.sizes, variances, self.total, self.total_variance)
        most, finest = most_groups(self.sizes, 2), math.inf
        if self.weights and not self.whole:
            signal = self.records * float(left * (1 - share))
            finest = math.sqrt(self._most_cells(signal / self._n_sets(signal)))
        ladders = {}
        for axis, column in self.columns.items():
            order, n_ordered = self.orders[axis], column.n_codes - column.n_alone
            found = ladder_of(column.counts, order, most, finest, self.told[axis])
            ladders[axis] = found._replace(n_ordered=0 if order is None else n_ordered)
        self.known = Coefficients(ladders)
        self.known.average((), np.array(self.total), self.total_variance)
        for axis, column in self.columns.items():
            own, variance = column.own_total(self.blocks[axis])
            self.known.average((), np.array(own), variance)
        # Their totals agree, whatever is measured after them: a mean is a ratio of both.
        self._join_columns()
        self.budget["columns"] = whole
        return left - whole

    def _weights(self) -> dict[Axes, float | Fraction]:
        """All pairs, or the sets of a workload; the largest weight of equal sets counts."""
        workload, found = self.asked.workload, dict[Axes, float | Fraction]()
        if self.asked.max_order == 1:
            return {}
        if isinstance(workload, str):
            return dict.fromkeys(combinations(self.several, 2), 1)
        for axes, weight in workload.items():
            used = tuple(axis for axis in axes if axis in self.several)
            if len(used) > 1:
                found[used] = max(weight, found.get(used, weight))
        return dict(sorted(found.items()))

    @property
    def pairs_with_label(self) -> list[Axes]:
        """Pairs that are measured whatever the others tell; none for a workload of sets."""
        asked = isinstance(self.asked.workload, str)
        return [axes for axes in self.weights if asked and self.asked.label in axes]

    def measure_sets(self, left: Fraction) -> tuple[Candidates | None, Fraction]:
        """Measure tables of all sets, or choose those where independent columns fit worst.

        Pairs with a label are among them whatever the others tell.

        Returns
        -------
        Candidates
            With the exact counts of all sets, if some are chosen.
        Fraction
            What is left for the distances of the others.
        """
        # Privacy. Released one after the other: the choice of sets, and a table of each. "choice"
        # has equal parts for the sets that are chosen, and a part that is left for the distances of
        # the others. "sets" is divided among the tables, so that their parts add up to it: all
        # follow from public facts and releases before them. Pairs with a label are public, and if
        # all sets are measured, none is chosen.
        own, weights = self.pairs_with_label, self.weights
        number = self._n_sets(self.records * float(left))
        sets = [*own, *(axes for axes in weights if axes not in own)][:number]
        choice, rest, candidates = left * 0, left * 0, None
        each = left / number
        if number < len(weights):
            choice = left * TUNING.choice
            each = (left - choice) / number
            if not isinstance(self.asked.workload, Mapping):
                rest = choice * TUNING.rest
            attributes = self._attributes()
            candidates = Candidates(self.table, attributes, weights, self.records)
            rows = Population.of(attributes, self.zeros, self.rows, self.generator)
            part = choice - rest
            sets = own + candidates.best(rows, own, number - len(own), part, each, self.source)
        self.budget |= {"choice": choice, "sets": left - choice}
        shares = _divided(each * len(sets), self._needs_of_sets(sets, self.records * float(each)))
        self.grids = {
            axes: self._grid(axes, self.records * float(epsilon))
            for axes, epsilon in shares.items()
        }
        self._measure(self.grids, shares)
        self.asked.progress(f"{len(self.grids)} sets of columns")
        self._join_columns()
        return candidates, rest

    def _measure(self, grids: Grids, shares: Mapping[Axes, Fraction]) -> None:
        """Noisy counts of all cells of some tables of groups, each for its share of epsilon."""
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
            noisy = discrete_laplace(full, shares[axes], random_state=self.source)
            variance = discrete_laplace_variance(shares[axes])
            self.known.add(axes, noisy, variance)
            self.tables.append((axes, noisy.astype(np.float64), variance))

    # ---------------------------------------------------------------- how it is divided

    def _n_sets(self, signal: float) -> int:
        """How many sets are worth measuring.

        The error of k tables of c cells grows with k c / signal, and what they tell beyond the
        first ones with less than k. There are no more than may be measured.
        """
        sizes = [min(self.sizes[axis], TUNING.few) for axis in self.several]
        cells = sorted(a * b for a, b in combinations(sizes, 2))
        typical = min(cells[len(cells) // 2], TUNING.bins**2)
        number = max(round(math.sqrt(TUNING.sets * signal / typical)), 1)
        if own := self.pairs_with_label:
            number = len(own) + max(number // 2, 1)
        return min(number, len(self.weights))

    def _has_whole(self, left: Fraction) -> bool:
        """Whether all columns are measured as one table: few cells for the number of records."""
        sizes = [self.sizes[axis] for axis in self.several]
        cells = math.prod(sizes)
        small = max(sizes) <= self.groups and len(sizes) <= _WHOLE_COLUMN_COUNTS
        small &= cells <= MOST_CELLS and self.asked.max_order >= min(len(sizes), 3)
        return small and self.records * float(left) / cells >= TUNING.whole

    def share_of_columns(self, signal: float) -> Fraction:
        """Share of single columns, in proportion to what they and the sets need."""
        word = self.asked.workload if isinstance(self.asked.workload, str) else "all"
        factor = {"ranges": TUNING.word, "cells": 1 / TUNING.word}.get(word, 1.0)
        # What the choice leaves is for sets.
        n_sets = self._n_sets(signal * float(1 - TUNING.choice))
        each = signal / (len(self.used) + n_sets)
        columns = factor * sum(self._needs_of_columns(each * len(self.used)).values())
        sets = n_sets * np.mean([*self._needs_of_sets(self.weights, each).values()])
        return Fraction(min(max(round(1000 * columns / (columns + sets)), 1), 999), 1000)

    def _needs_of_columns(self, signal: float) -> dict[int, float]:
        """`_need` of each column, in the blocks in which it is measured; all have this signal."""
        each = signal / max(len(self.used), 1)
        return {axis: _need([min(self._plan(axis, each).shares)]) for axis in self.used}

    def _plan(self, axis: int, signal: float) -> ColumnPlan:
        """In which blocks a column is measured."""
        return column_plan(len(self.codes[axis]), self.orders[axis] is not None, signal)

    def _needs_of_sets(self, sets: Iterable[Axes], signal: float) -> dict[Axes, float]:
        """`_need` of each set, for a table with this signal."""
        most = self._most_cells(signal)
        return {
            axes: _need([min(self.sizes[axis], most ** (1 / len(axes))) for axis in axes])
            for axes in sets
        }

    def _grid(self, axes: Axes, signal: float) -> tuple[int, ...]:
        """Numbers of groups with which noise and what cut groups hide are about as large.

        A question that cuts a table of G cells in its middle has the noise of about G / 8 cells,
        and cuts sqrt(G) of them. The sum of G / epsilon^2 and sqrt(G) (n / G)^2 is least where G
        is in proportion to (n epsilon)^0.8. Few codes are always told apart.
        """
        ladders = [self.known.ladders[axis] for axis in axes]
        if self.whole:
            return tuple(ladder.n_units for ladder in ladders)
        sizes = [ladder.sizes[min(1, len(ladder.sizes) - 1)] for ladder in ladders]
        steps = [(n, place) for place, ladder in enumerate(ladders) for n in ladder.sizes[2:]]
        for size, place in sorted(steps):
            if math.prod(sizes) // sizes[place] * size <= self._most_cells(signal):
                sizes[place] = size
        return tuple(sizes)

    def _most_cells(self, signal: float) -> float:
        """Cells of a grid of ordered columns, for records times the epsilon of its table."""
        return float(signal**0.8)

    # ---------------------------------------------------------------- what follows from it

    def _join_columns(self) -> None:
        """Estimate columns from their own blocks, the total, and the margins of tables."""
        look = self.known.looks[()]
        for axis, old in self.columns.items():
            blocks = self.blocks[axis]
            # What everything but the column's own counts tells of the total.
            told, variance = old.own_total(blocks)
            own = 1.0 / variance
            precision = float(look.precision) - own
            others = (float(look.values * look.precision) - own * told) / precision
            new = self._estimate(axis, old.sizes, old.variances, others, 1.0 / precision)
            margin = self.known.looks.get((axis,))
            if margin is not None:
                new.join(self.known.ladders[axis], margin.values, margin.variances)
            if self.orders[axis] is not None:
                new.counts = new.rising()

    def _estimate(
        self,
        axis: int,
        sizes: Sequence[int],
        variances: Mapping[int, float],
        total: float,
        total_variance: float,
    ) -> ColumnEstimate:
        """Estimate a column from its blocks, and from what else is known of the total."""
        alone = self.asked.n_alone[axis] if self.asked.n_alone else 0
        found = ColumnEstimate(
            self.table.shape[axis], sizes, variances, total_variance, alone, codes=self.codes[axis]
        )
        found.fit(self.blocks[axis], total)
        self.columns[axis] = found
        return found

    def _start(self, attributes: Sequence[Attribute]) -> tuple[Population, Prior | None]:
        """Rows of independent columns, or of a prior if it is clearly nearer to the tables."""
        alone = Population.of(attributes, self.zeros, self.rows, self.generator)
        prior = self.asked.prior
        if prior is None or not self.tables:
            return alone, None
        beside = alone.with_prior(prior, attributes, self.zeros)
        beside.settle(alone_of(attributes))
        tables = [
            (axes, self._groups_of_rows(axes, told.shape, attributes), told, variance)
            for axes, told, variance in self.tables
        ]
        return (beside, prior) if nearer_to(beside, alone, tables, self.records) else (alone, None)

    def _attributes(self) -> list[Attribute]:
        """Released columns as rows need them: probabilities of codes, and of units if many."""
        found = []
        for axis, size in enumerate(self.table.shape):
            codes = self.codes[axis]
            if axis not in self.columns:
                only = np.isin(np.arange(size), codes).astype(np.float64)
                found.append(Attribute(only, np.zeros(size, dtype=np.int64), np.arange(1)))
                continue
            mu, order = np.zeros(size), self.orders[axis]
            counts = self.columns[axis].counts[codes]
            mu[codes] = project_to_simplex(counts, self.records) / self.records
            groups = self.told[axis]
            if self.sizes[axis] > self.groups:
                _, groups = np.unique(self.known.ladders[axis].units, return_inverse=True)
            n_groups = int(groups.max()) + 1
            if n_groups < size:
                order = np.arange(n_groups)
            elif order is None:
                order = np.argsort(-mu, kind="stable")
            found.append(Attribute(mu, groups, order))
        return found

    def _targets(
        self, attributes: Sequence[Attribute], population: Population, prior: Prior | None
    ) -> Targets:
        """The margins that rows should have: single columns and chosen sets.

        Where a table leaves cells open, independent columns are expected, or rows of a prior. The
        tables keep to what is known of their margins.
        """
        found = alone_of(attributes)
        for axes, sizes in sorted(self.grids.items(), key=lambda each: (len(each[0]), each[0])):
            model = reduce(np.multiply.outer, (found[axis,] for axis in axes))
            model = population.possible(axes) * model
            if prior is not None:
                # What it leaves empty has few records, and not none.
                model = population.margin(axes) + TINY * model
            refined = self._refined(axes, sizes, model / max(model.sum(), TINY), attributes)
            found[axes] = with_margins(refined, [found[axis,] for axis in axes])
        return found

    def _groups_of_rows(
        self, axes: Axes, sizes: Sequence[int], attributes: Sequence[Attribute]
    ) -> list[IntArray]:
        """Group of each code that rows tell apart, of some columns."""
        return [
            self.known.ladders[axis].groups(size)[
                np.unique(attributes[axis].groups, return_index=True)[1]
            ]
            for axis, size in zip(axes, sizes, strict=True)
        ]

    def _refined(
        self, axes: Axes, sizes: tuple[int, ...], model: FloatArray, attributes: Sequence[Attribute]
    ) -> FloatArray:
        """Shares of the cells of a model whose sums over a grid follow what was measured.

        Inside of groups they depart from the model as they do between groups: what is high in two
        columns is often highest in both.
        """
        lines = self._groups_of_rows(axes, sizes, attributes)
        alone = {
            axis: self.known.ladders[axis].sums(self.columns[axis].counts, size)
            for axis, size in zip(axes, sizes, strict=True)
        }
        counts, variances = self.known.table(axes, sizes, alone)
        cell = np.ravel_multi_index(np.ix_(*lines), sizes)

        def sums(shares: FloatArray) -> FloatArray:
            found = np.bincount(cell.ravel(), weights=shares.ravel(), minlength=counts.size)
            return self.records * found.astype(np.float64, copy=False).reshape(sizes)

        near, noise = sums(model), float(variances.mean())
        mean = posterior_mean(counts, noise, near)
        bent = np.log((mean + math.sqrt(noise)) / (near + math.sqrt(noise)))
        for place, (axis, line) in enumerate(zip(axes, lines, strict=True)):
            each = attributes[axis]
            ordered = np.unique(each.groups[: self.known.ladders[axis].n_ordered])
            bent = along(between_groups(each.grouped, line, sizes[place], ordered), bent, place)
        fine: FloatArray = model * np.exp(bent - bent.max())
        fine *= ratio(mean, sums(fine)).take(cell)
        return fine / max(fine.sum(), TINY)

    def _fitted(self, population: Population, targets: Targets, prior: Prior | None) -> Population:
        """Rows that follow the targets."""
        if prior is not None:
            # Rows drawn again would forget what the prior knows.
            population.settle(targets, 4 * TUNING.sweeps)
        else:
            population.fit(targets, self.sweeps)
            # As many as records, and as the signal asks for.
            signal = self.records * float(self.parts["views"])
            wanted = int(min(max(self.total, signal, self.rows), ROWS_ONCE))
            population.resample(self.rows if self.asked.trial else wanted)
            population.fit(targets, self.sweeps)
            population.settle(targets)
        return population

    def _model(
        self,
        attributes: Sequence[Attribute],
        population: Population,
        targets: Targets,
        prior: Prior | None,
    ) -> ViewsModel:
        """The released model."""
        codes, weights = population.in_codes(attributes, targets, self.zeros)
        if self.joint is not None:
            total = float(self.known.looks[()].values)
            codes, weights = self.joint.completed(codes, weights, self.zeros, total)
        rows = WeightedRows(codes, weights / weights.sum(), self.table.shape)
        cells = None if self.joint is None else (self.joint.noise, self.joint.elsewhere)
        return ViewsModel(
            rows,
            self.columns,
            self.known,
            self.zeros,
            cells,
            prior="" if prior is None else prior.name,
            followed=[axes for axes in targets if len(axes) > 1],
            misfits=self.misfits,
            budget={name: float(part) for name, part in self.budget.items() if part},
        )


def _need(sizes: Sequence[float]) -> float:
    """Share of epsilon that a table of so many groups of each column needs beside others.

    A question adds up about a quarter of the groups of a column. The standard deviation of k counts
    is in proportion to sqrt(k) / epsilon, and its sum over all tables, as that of the widths of
    intervals, is least if shares are in proportion to the fourth root of k.
    """
    return math.prod(max(size / 4, 1.0) for size in sizes) ** (1 / 4)


def _divided(whole: Fraction, needs: Mapping[Any, float]) -> dict[Any, Fraction]:
    """Shares in proportion to needs, of at least 1, which add up to the whole exactly."""
    units = {key: round(1000 * need) for key, need in needs.items()}
    return {key: whole * Fraction(each, sum(units.values())) for key, each in units.items()}
