"""Priors of the rows, and public rules over them.

Public rules over rows: no row of a population breaks one at any time.

Post-processing of released numbers and public rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..._validation import BoolArray, CodeArray, FloatArray, IntArray, ratio
from ...domain import Zeros
from ...domain.constraints import breaks
from ...hierarchy import project_to_simplex
from ...release import (
    ColumnEstimate,
    PairTable,
    TreeDensity,
    couple,
    group_sums,
    inverse,
    inverse_rows,
)
from .constraints import Rules, first_row, group_mask
from .groups import TINY, TUNING, Attribute

__all__ = [
    "Laws",
    "Prior",
    "fit_tree",
    "nearer_to",
    "rescaled",
]

# Rounds of fitting, of drawing, and of redrawing, before what breaks rules is dropped.
_ROUNDS = 40
# Logarithm of the factor of a combination that rules forbid: below what any view can outweigh.
_NEVER = -1e4

Masks = Mapping[tuple[int, int], BoolArray]


class Laws(NamedTuple):
    """Public rules over the groups of attributes; none if ``rules`` is None.

    Attributes
    ----------
    rules : Rules or None
    masks : dict
        Pairs of groups that records can have.
    rest : list of Zeros
        Rules over codes that a tree of these pairs does not hold.
    """

    rules: Rules | None
    masks: dict[tuple[int, int], BoolArray]
    rest: list[Zeros]

    @classmethod
    def of(cls, rules: Rules | None, attributes: Sequence[Attribute]) -> Laws:
        """Prepare rules over the codes that records can have."""
        if rules is None:
            return cls(None, {}, [])
        masks, rest = masks_of(rules, attributes)
        return cls(rules, masks, rest)

    @property
    def forest(self) -> list[tuple[int, int]]:
        """Pairs under rules that form a tree."""
        return [] if self.rules is None else self.rules.forest()

    def independent(self, attributes: Sequence[Attribute]) -> TreeDensity:
        """Attributes that depend on each other through the rules only."""
        if self.rules is not None:
            tables = unmeasured(self.forest, attributes, self.masks)
            return fit_tree(attributes, tables, self.masks)
        groups = {i: each.groups for i, each in enumerate(attributes) if each.groups is not None}
        return TreeDensity([each.mu for each in attributes], [], groups)

    def rows(self, density: TreeDensity, n_rows: int, generator: np.random.Generator) -> CodeArray:
        """Rows of a density that satisfy all rules, at least one."""
        if self.rules is None or not self.rest:
            return density.sample(n_rows, generator)
        return possible_rows(density, self.rules, self.rest, n_rows, generator)

    def barriers(self, attributes: Sequence[Attribute]) -> list[tuple[tuple[int, ...], FloatArray]]:
        """Factors, as logarithms, that keep rows from what is forbidden."""
        if self.rules is None:
            return []
        found: list[tuple[tuple[int, ...], BoolArray]] = [*self.masks.items()]
        for each in self.rules.wide:
            allowed = each.allowed
            for place, axis in enumerate(each.axes):
                allowed = _grouped(allowed, place, attributes[axis])
            found.append((tuple(each.axes), allowed))
        return [(axes, np.where(allowed, 0.0, _NEVER)) for axes, allowed in found]

    def kept(self, rows: CodeArray) -> BoolArray:
        """Which rows satisfy all rules."""
        if self.rules is None:
            return np.ones(len(rows), dtype=bool)
        return ~breaks(rows, self.rules.zeros)

    def mended(
        self,
        rows: CodeArray,
        weights: FloatArray,
        density: TreeDensity,
        generator: np.random.Generator,
    ) -> tuple[CodeArray, FloatArray]:
        """Rows whose codes were drawn inside groups, without those that break a rule."""
        good = self.kept(rows)
        if good.all() or self.rules is None:
            return rows, weights
        again = redrawn(rows[~good], density, self.rules.zeros, generator)
        rows = np.concatenate([rows[good], again])
        if not len(rows):
            rows = possible_rows(density, self.rules, self.rest, len(weights), generator)
            return rows, np.full(len(rows), 1.0 / len(rows))
        # Those drawn again share the weight of all that broke a rule.
        share = np.full(len(again), weights[~good].sum() / max(len(again), 1))
        found = np.concatenate([weights[good], share])
        return rows, found / found.sum()


def masks_of(
    rules: Rules, attributes: Sequence[Attribute]
) -> tuple[dict[tuple[int, int], BoolArray], list[Zeros]]:
    """Rules of two attributes over the groups of pair tables, and what these do not hold."""
    masks, rest = {}, list(rules.wide)
    exact = {}
    for (a, b), allowed in rules.pairs.items():
        groups = attributes[a].groups, attributes[b].groups
        masks[a, b], exact[a, b] = group_mask(allowed, groups)
    tree = rules.forest()
    possible = _possible([len(each.grouped) for each in attributes], tree, masks)
    for pair, allowed in rules.pairs.items():
        held = pair in tree or not ((possible.pair(*pair) > 0) & ~masks[pair]).any()
        if not (held and exact[pair]):
            rest.append(Zeros(pair, allowed))
    return masks, rest


def _possible(sizes: Sequence[int], pairs: Sequence[tuple[int, int]], masks: Masks) -> TreeDensity:
    """A tree in which exactly that has a positive probability that its rules leave possible."""
    flat = [np.full(size, 1.0 / size) for size in sizes]
    return TreeDensity(flat, [PairTable(pair, masks[pair] / masks[pair].sum()) for pair in pairs])


def fitted(
    table: FloatArray, allowed: BoolArray, rows: FloatArray, columns: FloatArray
) -> FloatArray:
    """A table without forbidden cells, its margins as near to the given ones as these allow.

    Proportional fitting. Where no such table has both margins, the fitting ends between the two:
    the mean of a table with the rows and one with the columns asked for.
    """
    rows, columns = _floored(rows), _floored(columns)
    free = np.outer(rows, columns) * allowed
    found = table * allowed
    if found.sum() <= 0:
        found = free
    found = found / found.sum() + TINY * free / free.sum()
    for _ in range(_ROUNDS):
        found = found * ratio(rows, found.sum(axis=1))[:, None]
        by_rows = found
        found = found * ratio(columns, found.sum(axis=0))[None, :]
        if np.abs(found.sum(axis=1) - rows).sum() < TINY:
            break
    return (by_rows + found) / 2


def unmeasured(
    pairs: Sequence[tuple[int, int]], attributes: Sequence[Attribute], masks: Masks
) -> list[PairTable]:
    """Tables of pairs that follow from single views and rules alone."""
    found = []
    for a, b in pairs:
        views = attributes[a].grouped, attributes[b].grouped
        found.append(PairTable((a, b), fitted(np.outer(*views), masks[a, b], *views)))
    return found


def fit_tree(
    attributes: Sequence[Attribute], edges: Sequence[PairTable], masks: Masks
) -> TreeDensity:
    """Join views into a tree without forbidden cells.

    Single views that contradict a rule meet half way, over a few sweeps. Then, from the root of
    each component outward, tables keep the view of the parent, and that of the child follows.
    """
    groups = {axis: each.groups for axis, each in enumerate(attributes) if each.groups is not None}
    ruled = [edge for edge in edges if edge.axes in masks]
    views = [each.grouped for each in attributes]
    joined = _component_of(len(views), ruled, edges)
    for axis in joined:
        views[axis] = _floored(views[axis])
    for _ in range(TUNING.sweeps if len(ruled) > 1 else 1):
        for edge in ruled:
            a, b = edge.axes
            both = fitted(edge.table, masks[a, b], views[a], views[b])
            views[a], views[b] = both.sum(axis=1), both.sum(axis=0)
    tables = _outward(views, edges, masks, joined)
    marginals = [
        rescaled(each, view) if axis in joined else each.mu
        for axis, (each, view) in enumerate(zip(attributes, views, strict=True))
    ]
    return TreeDensity(marginals, tables, groups)


def _component_of(n: int, ruled: Sequence[PairTable], edges: Sequence[PairTable]) -> set[int]:
    """Attributes that edges connect with one under a rule."""
    found = {axis for edge in ruled for axis in edge.axes}
    for _ in range(n):
        more = {axis for edge in edges if found & set(edge.axes) for axis in edge.axes}
        if more <= found:
            break
        found |= more
    return found


def _outward(
    views: list[FloatArray], edges: Sequence[PairTable], masks: Masks, joined: set[int]
) -> list[PairTable]:
    """Tables with the views of the parents; the views of the children follow, in place."""
    done: dict[tuple[int, int], FloatArray] = {}
    seen: set[int] = set()
    for start in sorted(joined):
        queue = [] if start in seen else [start]
        seen.add(start)
        for node in queue:
            for edge in edges:
                a, b = edge.axes
                if node not in edge.axes or edge.axes in done:
                    continue
                other = b if node == a else a
                table = edge.table if node == a else edge.table.T
                if edge.axes in masks:
                    allowed = masks[edge.axes] if node == a else masks[edge.axes].T
                    table = fitted(table, allowed, views[node], views[other])
                    table = table * ratio(views[node], table.sum(axis=1))[:, None]
                    views[other] = table.sum(axis=0)
                else:
                    table = couple(table, views[node], views[other])
                done[edge.axes] = table if node == a else table.T
                seen.add(other)
                queue.append(other)
    return [PairTable(edge.axes, done.get(edge.axes, edge.table)) for edge in edges]


def rescaled(attribute: Attribute, view: FloatArray) -> FloatArray:
    """Probabilities of codes with the given probabilities of groups."""
    groups = attribute.groups
    if groups is None:
        return view / view.sum()
    inside = np.where(attribute.grouped[groups] > 0, attribute.mu, 1.0)
    inside = inside / group_sums(inside, groups, len(view))[groups]
    return inside * (view / view.sum())[groups]


def possible_rows(
    tree: TreeDensity,
    rules: Rules,
    rest: Sequence[Zeros],
    n_rows: int,
    generator: np.random.Generator,
) -> CodeArray:
    """Rows of a tree that satisfy all rules.

    Drawn from the tree and kept if they satisfy them. If few do, the columns of broken rules are
    redrawn from what the rules allow.

    Parameters
    ----------
    tree : TreeDensity
    rules : Rules
    rest : sequence of Zeros
        The rules that rows of the tree can break.
    n_rows : int
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (at most n_rows, n_attributes)
        At least one row.
    """
    kept: list[CodeArray] = []
    found = 0
    for _ in range(_ROUNDS):
        rows = tree.sample(n_rows, generator)
        broken = breaks(rows, rest)
        kept.append(rows[~broken])
        found += len(kept[-1])
        if found >= n_rows:
            return np.concatenate(kept)[:n_rows]
    kept.append(redrawn(rows[broken], tree, rules.zeros, generator))
    together = np.concatenate(kept)[:n_rows]
    if len(together):
        return together
    # The rules leave so little that it must be searched for; one row was found before.
    row = first_row(rules)
    assert row is not None  # else there would be no rules
    for axis in {axis for each in rules.zeros for axis in each.axes}:
        rows[:, axis] = row[axis]
    return rows


def redrawn(
    rows: CodeArray, tree: TreeDensity, zeros: Sequence[Zeros], generator: np.random.Generator
) -> CodeArray:
    """Rows whose columns of broken rules are drawn again; those that still break one are left out.

    One column of a rule is drawn given its others, which keeps what other rules ask of those.
    """
    rows = rows.copy()
    at = np.arange(len(rows))
    for _ in range(_ROUNDS):
        for each in zeros:
            axes, allowed = each.axes, each.allowed
            broken = at[breaks(rows[at], [each])]
            if not len(broken):
                continue
            position = int(generator.integers(len(axes)))
            weights = np.moveaxis(allowed, position, -1) * tree.marginals[axes[position]]
            flat = weights.reshape(-1, weights.shape[-1])
            others = [axis for axis in axes if axis != axes[position]]
            line = np.ravel_multi_index([rows[broken, axis] for axis in others], weights.shape[:-1])
            possible = flat.sum(axis=1) > 0
            flat = np.where(possible[:, None], flat, 1.0)
            some = possible[line]
            u = generator.random(len(broken))
            rows[broken[some], axes[position]] = inverse_rows(flat, line[some], u[some])
            _draw_whole(rows, broken[~some], axes, allowed, tree, generator)
        at = at[breaks(rows[at], zeros)]
        if not len(at):
            break
    return rows[~breaks(rows, zeros)]


def _draw_whole(
    rows: CodeArray,
    which: IntArray,
    axes: tuple[int, ...],
    allowed: BoolArray,
    tree: TreeDensity,
    generator: np.random.Generator,
) -> None:
    """Draw all columns of a rule from what it allows, in place."""
    weights = allowed.astype(np.float64)
    for position, axis in enumerate(axes):
        shape = [1] * len(axes)
        shape[position] = -1
        weights = weights * np.maximum(tree.marginals[axis], TINY).reshape(shape)
    drawn = inverse(weights.ravel(), generator.random(len(which)))
    for axis, codes in zip(axes, np.unravel_index(drawn, allowed.shape), strict=True):
        rows[which, axis] = codes


def _floored(view: FloatArray) -> FloatArray:
    return (1 - TINY) * view + TINY / len(view)


def _grouped(allowed: BoolArray, place: int, attribute: Attribute) -> BoolArray:
    """Allowed groups of one attribute: those with an allowed code."""
    if attribute.groups is None:
        return allowed
    order = np.argsort(attribute.groups, kind="stable")
    starts = np.searchsorted(attribute.groups[order], np.arange(len(attribute.grouped)))
    return np.logical_or.reduceat(np.take(allowed, order, axis=place), starts, axis=place)


# ------------------------------------------------------------------------------------------------
# A prior: public rows, or those of an earlier release, that synthetic rows start from.
#
# Privacy. Nothing here costs anything: the prior is public or was charged when it was released, and
# it is compared with released numbers alone. Tables and their noise are those of a release without
#   a
# prior; only which sets are chosen, and which rows agree with the tables, follow from it.


class Prior(NamedTuple):
    """Weighted rows.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
        Codes.
    weights : ndarray of float64, shape (n_rows,)
        Shares of the records; they add up to 1.
    worth : float
        Number of independent records that tell as much.
    name : str
        What the release says of it: kind and fingerprint.
    """

    rows: CodeArray
    weights: FloatArray
    worth: float
    name: str

    @classmethod
    def of(cls, codes: CodeArray, name: str) -> Prior:
        """Rows that are all different, from codes of at least one record."""
        rows, counts = np.unique(codes, axis=0, return_counts=True)
        return cls(rows.astype(np.int32), counts / len(codes), float(len(codes)), name)

    def within(self, rules: Rules) -> Prior:
        """The rows that no rule forbids, over the codes that records can have."""
        kept = np.ones(len(self.rows), dtype=bool)
        places = np.empty_like(self.rows)
        for axis, (codes, size) in enumerate(zip(rules.codes, rules.shape, strict=True)):
            to = np.full(size, -1, dtype=np.int32)
            to[codes] = np.arange(len(codes))
            places[:, axis] = to[self.rows[:, axis]]
            kept &= places[:, axis] >= 0
        weights = self.weights[kept]
        return self._replace(rows=places[kept], weights=weights / max(weights.sum(), 1e-300))

    def column(self, axis: int, each: Attribute, estimate: ColumnEstimate) -> Attribute:
        """A released column, moved to the prior as far as noise explains the distance.

        The estimator of James and Stein for the groups of a column, with one factor. A distance is
        not believed before it is clearly above the noise: the prior is used only where tables of
        several columns are nearer to it.
        """
        n_groups = len(each.grouped)
        groups = np.arange(n_groups) if each.groups is None else each.groups
        held = np.zeros((len(groups), n_groups))
        held[np.arange(len(groups)), groups] = 1.0
        counts = estimate.counts @ held
        whole = max(float(counts.sum()), 1.0)
        own = group_sums(self.weights, groups[self.rows[:, axis]], n_groups)
        away = counts - counts.sum() * own
        # The total is the same in both: its variance is no distance.
        of_total = float(estimate.variance(np.ones((len(groups), 1)))[0])
        noise = float(estimate.variance(held).sum()) - of_total / n_groups
        doubted = noise * (1 + TUNING.clear * math.sqrt(2 / n_groups))
        trust = max(1 - doubted / max(float(away @ away), 1e-300), 0.0)
        grouped = project_to_simplex(counts - (1 - trust) * away, whole) / whole
        return each._replace(mu=rescaled(each, grouped), grouped=grouped)


def nearer_to(
    second: Sequence[FloatArray],
    first: Sequence[FloatArray],
    noisy: Sequence[FloatArray],
    variances: Sequence[float],
) -> bool | None:
    """Whether released tables are clearly nearer to the second of two models; None if unclear.

    The squared distances of each cell are compared, in units of the variance of its noise and of a
    sample: twice the log likelihood ratio, whose standard deviation is known.

    Parameters
    ----------
    second, first : sequence of ndarray of float64
        Expected counts.
    noisy : sequence of ndarray of float64
    variances : sequence of float
        Of the noise of a cell of each table.
    """
    nearer = doubt = 0.0
    for two, one, told, variance in zip(second, first, noisy, variances, strict=True):
        spread = variance + (one + two) / 2
        nearer += float((((told - one) ** 2 - (told - two) ** 2) / spread).sum())
        doubt += float((4 * (two - one) ** 2 / spread).sum())
    return nearer > 0 if abs(nearer) > TUNING.clear * math.sqrt(doubt) else None
