"""Plans of measurements: All, Base, BMax, PMost, and one of our own.

All measures every cuboid, Base the base alone; BMax bounds the largest variance, and PMost
publishes most cuboids within a bound on the variance. The optimized plan has unequal budgets.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from threadpoolctl import threadpool_limits

from ..._random import sampling_generator
from ..._validation import FloatArray
from .consistency import MAX_SOURCE_CELLS, Lattice, blue_variances


@dataclass(frozen=True)
class Plan:
    """Which cuboids to measure, and which share of epsilon each gets.

    Attributes
    ----------
    masks : tuple of int
        The sources.
    shares : tuple of Fraction
        Positive; they sum to 1 exactly.
    """

    masks: tuple[int, ...]
    shares: tuple[Fraction, ...]


def equal_shares(cube: Lattice, places: NDArray[np.integer] | list[int]) -> Plan:
    """Plan that measures the cuboids at ``places`` with equal budgets."""
    masks = tuple(int(cube.masks[place]) for place in sorted(places))
    return Plan(masks, (Fraction(1, len(masks)),) * len(masks))


def plan_all(cube: Lattice) -> Plan:
    """All: noise in every published cuboid."""
    return equal_shares(cube, np.flatnonzero(cube.published))


def plan_base(cube: Lattice) -> Plan:
    """Base: noise in the base cuboid alone, the table over all dimensions.

    Raises
    ------
    ValueError
        If that table is too large to be measured.
    """
    base = (1 << len(cube.sizes)) - 1
    if base not in cube.position:
        cells = math.prod(cube.sizes)
        raise ValueError(
            f"strategy='base' measures the table over all dimensions, which has {cells:,} cells; "
            f"at most {MAX_SOURCE_CELLS:,} can be measured. Use another strategy, which measures "
            "smaller tables."
        )
    return Plan((base,), (Fraction(1),))


# --- the greedy cover that BMax and PMost share: few sources that answer all cuboids accurately

# Number of thresholds for which the greedy cover is tried. Cubes of up to 8 dimensions have fewer;
# in larger cubes, neighbouring thresholds give nearly the same cover.
_MAX_THRESHOLDS = 400


@dataclass(frozen=True, eq=False)
class Covers:
    """How much the noise grows from any source to any published cuboid.

    Attributes
    ----------
    growth : ndarray of float64, shape (m, n_published)
        Number of cells of the source that are summed into one cell of the cuboid; inf where the
        cuboid is not below the source.
    """

    growth: FloatArray

    @classmethod
    def of(cls, cube: Lattice) -> Covers:
        """Compare all cuboids of a lattice."""
        growth = np.full((len(cube), len(cube)), np.inf)
        for place in range(len(cube)):
            below = cube.below_of(place)
            growth[place, below] = cube.cells[place] / cube.cells[below]
        return cls(growth[:, cube.published])

    def thresholds(self) -> FloatArray:
        """The distinct values of ``growth``, ascending, or 400 of them."""
        distinct = np.unique(self.growth[np.isfinite(self.growth)])
        if len(distinct) > _MAX_THRESHOLDS:
            chosen = np.geomspace(1, len(distinct), _MAX_THRESHOLDS).round().astype(int) - 1
            distinct = distinct[np.unique(chosen)]
        return distinct

    def greedy(self, threshold: float, worth: FloatArray) -> Iterator[int]:
        """Sources in the order of a greedy cover within the threshold."""
        covers = self.growth <= threshold
        left = np.ones(covers.shape[1], dtype=bool)
        gain = covers @ worth
        while True:
            # Ties go to the first, which has the fewest dimensions.
            chosen = int(np.argmax(gain))
            if gain[chosen] <= 1e-12 * worth.sum():
                return
            yield chosen
            new = covers[chosen] & left
            left &= ~new
            gain -= covers[:, new] @ worth[new]

    def cover(self, threshold: float, limit: float = math.inf) -> list[int] | None:
        """Sources that cover everything within the threshold; None if more than ``limit``."""
        chosen: list[int] = []
        for source in self.greedy(threshold, np.ones(self.growth.shape[1])):
            if len(chosen) >= limit:
                return None
            chosen.append(source)
        return chosen


# ------------------------------------------------------------------------------------------------
# BMax ("bounding the maximum"): few sources with equal budgets that keep all variances small.


# Larger sets of sources are not pruned one by one: dropping one gains too little.
_MAX_PRUNED = 128

# A variance, and a second one that breaks ties.
Score = tuple[float, float]


def plan_bmax(cube: Lattice, weights: FloatArray | None = None, consistent: bool = False) -> Plan:
    """Few sources with equal budgets that keep the largest variance small.

    For every threshold a greedy cover chooses sources such that each cell is the sum of at most
    that many cells of a source. Sources that are not needed are dropped, and the set with the least
    actual variance wins; ties in the largest variance are broken by the mean. Measuring everything,
    and the base alone, are among the candidates.

    Parameters
    ----------
    cube : Lattice
    weights : ndarray of float64, shape (m,), optional
        Keep the mean variance with these weights small instead of the largest one.
    consistent : bool, default=False
        Compare the candidates by their variance after weighted least squares, instead of that
        of cuboids summed from one source.
    """
    covers = Covers.of(cube)
    worth = None if weights is None else weights[cube.published] / weights[cube.published].sum()

    def score(chosen: list[int]) -> Score:
        # The variance with equal budgets, in units of that of a single source.
        return _rank(len(chosen) ** 2 * covers.growth[chosen].min(axis=0), worth)

    def score_consistent(chosen: list[int]) -> Score:
        noise = np.full(len(cube), np.inf)
        noise[chosen] = len(chosen) ** 2
        return _rank(blue_variances(cube, noise)[cube.published], worth)

    candidates = _candidates(covers, np.flatnonzero(cube.published).tolist(), score)
    distinct = {frozenset(chosen): chosen for chosen in candidates}.values()
    return equal_shares(cube, min(distinct, key=score_consistent if consistent else score))


def _candidates(
    covers: Covers, everything: list[int], score: Callable[[list[int]], Score]
) -> list[list[int]]:
    """All published cuboids, and the greedy covers of all thresholds, also pruned."""
    best = score(everything)
    candidates = [everything]
    # Few sources first: their variance bounds how many sources are worth trying.
    for threshold in covers.thresholds()[::-1]:
        # s sources score at least s**2, and pruning drops few, so that many more cannot win.
        chosen = covers.cover(threshold, 2 * math.sqrt(best[0]) + 8)
        if chosen is None:
            continue
        candidates.append(chosen)
        if len(chosen) <= _MAX_PRUNED:
            candidates.append(_prune(chosen, score))
        best = min(best, score(candidates[-1]))
    return candidates


def _prune(chosen: list[int], score: Callable[[list[int]], Score]) -> list[int]:
    """Drop sources as long as that does not make the score worse."""
    reached = score(chosen)
    while len(chosen) > 1:
        best, place = min(
            (score(chosen[:place] + chosen[place + 1 :]), place) for place in range(len(chosen))
        )
        if best > reached:
            break
        reached = best
        chosen = chosen[:place] + chosen[place + 1 :]
    return chosen


def _rank(variances: FloatArray, worth: FloatArray | None) -> Score:
    """Largest and plain mean variance, or weighted mean and largest: the second breaks ties."""
    largest = float(variances.max())
    if math.isinf(largest):
        return math.inf, math.inf
    pair = (largest, variances.mean()) if worth is None else (worth @ variances, largest)
    # Rounded, so that equal variances are equal.
    first, second = (float(f"{value:.12g}") for value in pair)
    return first, second


# ------------------------------------------------------------------------------------------------
# PMost ("publishing most"): bring as many cuboids as possible within a bound on the variance.


def plan_pmost(
    cube: Lattice, limit: float, noise_of: Callable[[int], float], weights: FloatArray | None = None
) -> Plan:
    """Sources with equal budgets that bring most cuboids within a bound on the variance.

    For every number of sources a greedy cover chooses them. The set with the largest total worth
    of cuboids within the bound wins; ties are broken by the smaller variances.

    Parameters
    ----------
    cube : Lattice
    limit : float
        Bound on the cell variance of a cuboid.
    noise_of : callable
        Noise variance in the cells of each of s sources with equal budgets.
    weights : ndarray of float64, shape (m,), optional
        Worth of publishing each cuboid; all the same by default.

    Raises
    ------
    ValueError
        If no cuboid can meet the bound.
    """
    covers = Covers.of(cube)
    worth = np.ones(len(cube)) if weights is None else weights
    worth = worth[cube.published]
    best: tuple[float, float, list[int]] | None = None
    for count in range(1, int(cube.published.sum()) + 1):
        # 1e-9: so that a bound copied from the figures of a plan is met.
        threshold = limit * (1 + 1e-9) / noise_of(count)
        if threshold < 1:
            break
        chosen = list(itertools.islice(covers.greedy(threshold, worth), count))
        growth = covers.growth[chosen].min(axis=0)
        # If the cover needs fewer sources, their budgets are larger and more may meet the bound.
        precise = growth <= limit * (1 + 1e-9) / noise_of(len(chosen))
        gain = float(worth[precise].sum())
        spread = float(worth[precise] @ growth[precise]) * noise_of(len(chosen))
        if best is None or (gain, -spread) > (best[0], -best[1]):
            best = (gain, spread, chosen)
    if best is None or best[0] <= 0:
        raise ValueError(
            f"No cuboid can be published with a cell variance of at most {limit:g}: the whole of "
            f"epsilon in one cuboid gives {noise_of(1):.6g}. Raise max_variance, or epsilon."
        )
    return equal_shares(cube, best[2])


# ------------------------------------------------------------------------------------------------
# The optimized plan: sources and unequal budgets with the least variance after least squares.
#
# The problem is not convex. So L-BFGS runs from many starts, and the best results are improved by
# adding, dropping and exchanging sources, each time with new budgets.


# --- what the optimized plan minimises: the largest or the mean variance after least squares
#
# The variances are smooth in the shares e = softmax(t) of the budget, but not convex: a source that
# has no budget has no gradient either. Only the ratios of budgets matter, so the variance of the
# noise counts as 2 / e**2.

Places = NDArray[np.integer]

# A source with a smaller share of the budget is dropped.
_TINY_SHARE = 1e-5


@dataclass(frozen=True, eq=False)
class _Solution:
    """Sources with their shares of the budget, and the objective there at epsilon 1."""

    value: float
    places: Places
    share: FloatArray


class Objective:
    """The largest or mean variance of the published cuboids, as a function of the budgets.

    Parameters
    ----------
    cube : Lattice
    weights : ndarray of float64, shape (m,), or None
        Weights of the mean; None for the largest variance.

    Attributes
    ----------
    evaluations : int
        Work done so far, in evaluations of the objective.
    """

    def __init__(self, cube: Lattice, weights: FloatArray | None) -> None:
        self.cube = cube
        # Rows: interactions that must be known. Those without freedom are zero.
        needed = np.flatnonzero(cube.published & (cube.freedom > 0))
        # Cuboids that are known have no variance.
        wanted = np.flatnonzero(cube.published & (cube.below @ cube.freedom > 0))
        self.freedom = cube.freedom[needed]
        self.squared = cube.cells[wanted] ** 2
        above = cube.above[needed]
        below = cube.above[needed][:, wanted].T
        dense = len(cube) <= 512
        self.above = above.toarray() if dense else above.tocsc()
        self.below = np.ascontiguousarray(below.toarray()) if dense else below.tocsr()
        self.mean = None if weights is None else weights[wanted] / weights[wanted].sum()
        self.evaluations = 0

    def covers(self, places: Places) -> bool:
        """Whether these sources determine everything that is wanted."""
        return bool((np.asarray(self.above[:, places].sum(axis=1)).ravel() > 0).all())

    def value(self, places: Places, share: FloatArray) -> float:
        """The objective for these sources and shares."""
        precision = self.above[:, places] @ (share**2 / (2 * self.cube.cells[places]))
        variance = (self.below @ (self.freedom / precision)) / self.squared
        return float(variance.max() if self.mean is None else self.mean @ variance)

    def values(self, shares: FloatArray, power: float) -> FloatArray:
        """The objective, with a smoothed maximum, for each column of shares of all cuboids."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            precision = self.above @ (shares**2 / (2 * self.cube.cells[:, None]))
            variance = (self.below @ (self.freedom[:, None] / precision)) / self.squared[:, None]
            if self.mean is not None:
                result = self.mean @ variance
            else:
                top = variance.max(axis=0)
                result = top * ((variance / top) ** power).sum(axis=0) ** (1 / power)
        # One call for many columns costs less than a call for each.
        self.evaluations += shares.shape[1] // 4
        return np.where(np.isfinite(result), result, np.inf)

    def slope(
        self, above: Any, cells: FloatArray, logits: FloatArray, power: float
    ) -> tuple[float, FloatArray]:
        """Logarithm of the smoothed objective and its gradient in the logits.

        Parameters
        ----------
        above : array of shape (n_needed, n_sources)
            The columns of ``self.above`` of the sources.
        cells : ndarray of float64, shape (n_sources,)
            Number of cells of each source.
        logits : ndarray of float64, shape (n_sources,)
            The shares are their softmax.
        power : float
            The maximum is smoothed to a norm of this power.
        """
        self.evaluations += 1
        # The floor keeps precisions positive where a share would underflow.
        share = np.exp(np.maximum(logits - logits.max(), -20.0))
        share /= share.sum()
        precision = above @ (share * share / (2 * cells))
        ratio = self.freedom / precision
        variance = (self.below @ ratio) / self.squared
        if self.mean is not None:
            total = float(self.mean @ variance)
            value, slope = math.log(total), self.mean / total
        else:
            top = variance.max()
            relative = (variance / top) ** power
            total = float(relative.sum())
            value, slope = math.log(top) + math.log(total) / power, relative / variance / total
        # Chain rule: variances <- precisions <- shares <- logits.
        by_precision = -(self.below.T @ (slope / self.squared)) * ratio / precision
        by_share = (above.T @ by_precision) * share / cells
        return value, share * (by_share - share @ by_share)

    def descend(
        self,
        places: Places,
        share: FloatArray,
        powers: tuple[float, ...],
        steps: int,
        tolerance: float = 1e-7,
    ) -> _Solution:
        """Improve the shares of given sources; sources that end without budget are dropped.

        The maximum is smoothed with each of the powers in turn, more and more sharply.
        """
        above, cells = self.above[:, places], self.cube.cells[places]
        logits = np.log(np.maximum(share, 1e-6))
        for power in powers if self.mean is None else powers[-1:]:
            found = optimize.minimize(
                lambda x, power=power: self.slope(above, cells, x, power),
                logits,
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": steps, "maxcor": 15, "ftol": tolerance, "gtol": 1e-9},
            )
            logits = found.x
        share = np.exp(logits - logits.max())
        share /= share.sum()
        kept = share > _TINY_SHARE
        if not kept.all() and self.covers(places[kept]):
            places, share = places[kept], share[kept] / share[kept].sum()
        return _Solution(self.value(places, share), places, share)


# --- the search for sources and budgets

# Sources with their shares of the budget.
Trial = tuple[Places, FloatArray]

# Length of the search, in evaluations of the objective, for a cube of 5 to 8 dimensions, and its
# minimum. Larger cubes get fewer evaluations, since each costs more; smaller ones have fewer
# optima to be found.
EVALUATIONS = 30_000
MIN_EVALUATIONS = 3_000
# The maximum is smoothed to a norm of this power when changes of sources are compared.
_POWER = 32


def plan_optimized(cube: Lattice, weights: FloatArray | None = None) -> Plan:
    """Sources and unequal budgets with the least variance after weighted least squares.

    Parameters
    ----------
    cube : Lattice
    weights : ndarray of float64, shape (m,), optional
        Minimise the mean variance with these weights instead of the largest one.

    Returns
    -------
    Plan
        A local optimum: the same for the same arguments.
    """
    if not (cube.published & (cube.freedom > 0) & (cube.masks > 0)).any():
        # Every cuboid has one cell, the total.
        return equal_shares(cube, [0])
    # Products with matrices of a few hundred rows: threads would wait for each other.
    with threadpool_limits(1, user_api="blas"):
        found = _Search(cube, weights).run()
    # Shares are multiples of 2**-20, so that nothing is lost if epsilon is a dyadic number; the
    # largest share gets the rounding remainder.
    units = [math.floor(share * 2**20) for share in found.share]
    units[int(np.argmax(found.share))] += 2**20 - sum(units)
    pairs = sorted(
        (int(cube.masks[place]), Fraction(unit, 2**20))
        for place, unit in zip(found.places, units, strict=True)
        if unit
    )
    return Plan(tuple(mask for mask, _ in pairs), tuple(share for _, share in pairs))


class _Search:
    """Starts, a local search from the best of them, and a last descent."""

    def __init__(self, cube: Lattice, weights: FloatArray | None) -> None:
        self.cube = cube
        self.objective = Objective(cube, weights)
        cost = max(cube.above.nnz / 3**8, len(cube) / 2**8)
        ease = min(1.0, len(cube) / 32) ** 2
        self.evaluations = max(MIN_EVALUATIONS, int(EVALUATIONS * ease / max(1.0, cost)))

    def run(self) -> _Solution:
        """The whole search."""
        descend = self.objective.descend
        pool: list[_Solution] = []
        for places, share in self._starts():
            pool.append(descend(places, share, (8, 64), 40))
            if self._spent() > 0.25 or len(pool) >= 320:
                break
        pool.sort(key=_value_of)
        best = [
            self._improve(descend(start.places, start.share, (64, 512), 40))
            for start in pool[:6]
            if start is pool[0] or self._spent() < 1
        ]
        found = min(best, key=_value_of)
        last = descend(found.places, found.share, (512, 4096), 200, 1e-11)
        return min(found, last, key=_value_of)

    def _spent(self) -> float:
        """Fraction of the search that is done."""
        return self.objective.evaluations / self.evaluations

    # --- starts

    def _starts(self) -> Iterator[Trial]:
        """Greedy covers with their best budgets, and budgets of random product form."""
        covers = Covers.of(self.cube)
        seen = set()
        for threshold in covers.thresholds():
            chosen = covers.cover(threshold)
            key = tuple(sorted(chosen or ()))
            if key and key not in seen:
                seen.add(key)
                places = np.array(key)
                yield places, self._closed_form(covers.growth[places])
        d = len(self.cube.sizes)
        bits = (self.cube.masks[:, None] >> np.arange(d) & 1).astype(float)
        rng = sampling_generator(0)
        while True:
            logits = bits @ rng.normal(0, rng.choice([0.5, 1.0, 1.5]), d)
            logits += rng.normal(0, 0.5, len(bits))
            share = np.exp(logits - logits.max())
            yield np.arange(len(bits)), share / share.sum()

    def _closed_form(self, growth: FloatArray) -> FloatArray:
        """Best budgets if each cuboid were summed from the source that is nearest to it."""
        owner, best = growth.argmin(axis=0), growth.min(axis=0)
        mean = self.objective.mean
        share = np.zeros(len(growth))
        for place in range(len(growth)):
            mine = owner == place
            if not mine.any():
                continue
            if mean is None:
                share[place] = math.sqrt(best[mine].max())
            else:
                share[place] = (mean[mine] @ best[mine]) ** (1 / 3)
        share = np.maximum(share, 1e-4 * share.max())
        return share / share.sum()

    # --- local search

    def _improve(self, found: _Solution) -> _Solution:
        """Add, drop or exchange the source that helps most, until no change helps."""
        while self._spent() < 1:
            full = np.zeros(len(self.cube))
            full[found.places] = found.share
            trials = self._additions(found, full)
            trials += self._trials(self._removals(found, full), 6)
            trials += self._trials(self._exchanges(found, full), 6)
            best = min(
                (self.objective.descend(*trial, (8, 64, 512), 15) for trial in trials),
                default=found,
                key=_value_of,
            )
            if best.value >= found.value * (1 - 2e-4):
                break
            found = best
        return found

    def _additions(self, found: _Solution, full: FloatArray) -> list[Trial]:
        """The ten sources whose addition helps most, before the budgets are improved."""
        others = np.setdiff1d(np.arange(len(self.cube)), found.places)
        ranked = []
        for size in (0.03, 0.1, 0.25):
            columns = np.repeat((full * (1 - size))[:, None], len(others), axis=1)
            columns[others, np.arange(len(others))] = size
            values = self.objective.values(columns, _POWER)
            ranked += [(value, other, size) for value, other in zip(values, others, strict=True)]
        trials: list[Trial] = []
        added: set[int] = set()
        for value, other, size in sorted(ranked):
            if len(added) == 10:
                break
            if other not in added and math.isfinite(value):
                added.add(other)
                share = np.append(found.share * (1 - size), size)
                trials.append((np.append(found.places, other), share))
        return trials

    def _exchanges(self, found: _Solution, full: FloatArray) -> list[FloatArray]:
        """Shares of all cuboids, a source exchanged for one of a dimension more or less."""
        moved = []
        for source, dimension in np.ndindex(len(found.places), len(self.cube.sizes)):
            mask = int(self.cube.masks[found.places[source]]) ^ (1 << dimension)
            other = self.cube.position.get(mask)
            if other is not None and not full[other]:
                moved.append(full.copy())
                moved[-1][other], moved[-1][found.places[source]] = found.share[source], 0
        return moved

    def _removals(self, found: _Solution, full: FloatArray) -> list[FloatArray]:
        """Shares of all cuboids without one of several sources."""
        if len(found.places) < 2:
            return []
        columns = [np.where(np.arange(len(full)) == place, 0.0, full) for place in found.places]
        return [each / each.sum() for each in columns]

    def _trials(self, columns: list[FloatArray], number: int) -> list[Trial]:
        """Those that cost least, before the budgets are improved."""
        if not columns:
            return []
        values = self.objective.values(np.array(columns).T, _POWER)
        best = [columns[i] for i in np.argsort(values)[:number] if math.isfinite(values[i])]
        return [(np.flatnonzero(each), each[each > 0]) for each in best]


def _value_of(solution: _Solution) -> float:
    return solution.value
