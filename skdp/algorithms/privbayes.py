"""PrivBayes: a Bayesian network of the attributes, chosen and measured with noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._random import NoiseSource, noise_source, sampling_generator
from .._validation import FloatArray, IntArray, as_share, project_to_simplex, used_attributes
from ..mechanisms import discrete_laplace, discrete_laplace_variance, exponential, noisy_max
from ..release.network import Conditional, NetworkModel
from ..tables import Counts

# ------------------------------------------------------------------------------------------------
# The whole measurement of PrivBayes, from a table of counts to a released network.
#
# The parts of the budget, the choice of the network pair by pair, and its conditional
#   probabilities.


# --- scores of attribute-parent pairs as exact integers, and their ranges under one record
#
# A score is computed from the exact counts ``C[g, x]`` of an attribute's codes x and its parents'
# combinations g (of codes, or of public groups of codes). Write C_x and C_g for its margins and n
# for the number of records. A record that is added falls into one cell (g0, x0).
#
# The paper takes these scores per record, for a known n, and bounds what replacing one record
# changes. Here records are added or removed and n is private, so all scores are on the scale of
# counts, where the bounds do not depend on n.

# Products of two counts stay exact in 64 bits below this number of records.
_SAFE = 1 << 30


# Each is called with exact counts, (n_parent_groups, size), and has the length of the interval in
# which one record moves it, `score_range`; the largest of any total, `most_range`; and twice the
# published sensitivity, for the exponential mechanism: `published_range`, not below `score_range`.


class Independence:
    """Score "R": L1 distance between the joint counts and those of independence.

    ``floor(sum |C[g, x] - C_g C_x / n|)``, which is 2 n times the paper's R; 0 without records.

    Parameters
    ----------
    total : int
        Not used: the score has the same range for any number of records.
    """

    # Privacy. Let M = C - C_g C_x / n. With p = C_x / n, q = C_g / n and one record more in
    # (g0, x0), the matrix M changes by exactly n / (n + 1) (e_g0 - q)(e_x0 - p)': expand
    # (n q + e_g0)(n p + e_x0)' / (n + 1). Its L1 norm is n / (n + 1) * 2 (1 - q_g0) * 2 (1 - p_x0),
    # below 4. So the sum changes by less than 4, up or down, its floor by at most 4: the range
    # is 8. (Both signs occur: with rare codes the change comes close to 4 either way.)
    score_range = most_range = 8
    # S(R) = 3 / n + 2 / n^2 of R, here in the limit of many records: 2 n times 2 * 3 / n.
    published_range = 12

    def __init__(self, total: int) -> None:
        pass

    def __call__(self, counts: IntArray) -> int:
        """Score of exact counts; private."""
        n = int(counts.sum())
        if n == 0:
            return 0
        exact = counts if n < _SAFE else counts.astype(object)
        product = exact.sum(axis=1)[:, None] * exact.sum(axis=0)[None, :]
        return int(np.abs(n * exact - product).sum()) // n


class MaximumJoint:
    """Score "F": closeness to a distribution in which the parents determine a binary attribute.

    With H = floor(total / 2), records of parents' combinations are divided among the two codes of
    the attribute: a counts those of code 0 where the combination goes to code 0, b those of code 1
    where it goes to code 1. The score is ``-ceil(min max(H - a, 0) + max(H - b, 0))``, n times the
    paper's F. The paper gives each combination to one code as a whole, by dynamic programming over
    n states; here one may be split in proportion, which needs sorting only. The minimum is never
    larger, and differs by at most one combination's records.

    Parameters
    ----------
    total : int
        The released number of records.
    """

    # Privacy. H is fixed: it comes from a release. For any fixed division of the combinations into
    # shares, a record adds to a or to b its combination's share, a number in [0, 1]: the sum
    # lies lower by a number in [0, 1]. The same divisions are possible before and after, so the
    # minimum over them also falls by a number in [0, 1], and the integer score rises by 0 or 1: the
    # range is 1. (With the true n in place of 2 H it would be 3/2, and 2 if records are replaced.)
    score_range = most_range = 1
    # S(F) = 1 / n.
    published_range = 2

    def __init__(self, total: int) -> None:
        self.half = max(int(total), 0) // 2

    def __call__(self, counts: IntArray) -> int:
        """Score of exact counts; private."""
        # The best pairs (a, b) lie on a chain of segments: combinations go to code 0 in the order
        # of their share of it. The sum is convex along the chain and linear between its corners
        # and the places where a or b passes H.
        half = self.half
        a, b = 0, int(counts[:, 1].sum())
        best = max(half - a, 0) + max(half - b, 0)
        for zero, one in _by_share(counts):
            if a < half < a + zero:
                best = min(best, max(half - b - ((half - a) * -one // zero), 0))
            if b - one < half < b:
                best = min(best, max(half - a - ((b - half) * zero // one), 0))
            a, b = a + zero, b - one
            best = min(best, max(half - a, 0) + max(half - b, 0))
        return -best


def _by_share(counts: IntArray) -> list[tuple[int, int]]:
    """Counts of the two codes, those with the largest share of code 0 first, exactly."""
    found: dict[Fraction, list[int]] = {}
    for zero, one in counts[counts.any(axis=1)].tolist():
        sums = found.setdefault(Fraction(zero, zero + one), [0, 0])
        sums[0] += zero
        sums[1] += one
    return [(found[share][0], found[share][1]) for share in sorted(found, reverse=True)]


class Entropy:
    """Score "mutual_information": n times the mutual information of attribute and parents.

    In units of 2**-20 nats: ``sum f(C[g, x]) - sum f(C_g) - sum f(C_x) + f(n)`` with an integer
    function f close to ``c log c``, see `_entropy_steps`.

    Parameters
    ----------
    total : int
        The released number of records. Counts above it or above 2**36 have the largest slope.
    """

    # Privacy. Let s(c) = f(c + 1) - f(c): a fixed table of integers that never decreases, from 0
    # to a largest G. A record changes the score by [s(n) - s(C_x0)] - [s(C_g0) - s(C[g0, x0])]. No
    # margin is below its cell or above n, so both brackets lie in [0, G] and the range is 2 G. G
    # is about log(total) + 1 nats; without the limit no bound would hold for all n, because the
    # change grows with log n. No logarithm of a private count is computed in floats.

    # Slopes are at most log(2**36) + 1 for any total, which is below 26.
    most_range = 2 * 26 << 20

    def __init__(self, total: int) -> None:
        limit = min(max(int(total), 2), _MOST_COUNTED)
        self._starts, self._values, self._slopes = _entropy_steps(limit)
        self.score_range = 2 * int(self._slopes[-1])
        # S(I) = 2 / n log((n + 1) / 2) + (n - 1) / n log((n + 1) / (n - 1)).
        reach = 2 * math.log((limit + 1) / 2) + (limit - 1) * math.log((limit + 1) / (limit - 1))
        self.published_range = max(math.ceil(2 * reach * 2**_BITS), self.score_range)

    def __call__(self, counts: IntArray) -> int:
        """Score of exact counts; private."""
        n = counts.sum(keepdims=True)
        joint, *margins = (
            int(self._f(part).sum()) for part in (counts, counts.sum(axis=0), counts.sum(axis=1))
        )
        return joint - sum(margins) + int(self._f(n).sum())

    def _f(self, counts: IntArray) -> IntArray:
        step = np.searchsorted(self._starts, counts, side="right") - 1
        return self._values[step] + self._slopes[step] * (counts - self._starts[step])


# Bits behind the point of `Entropy`, and the largest count with a slope of its own: values stay
# within 64 bits.
_BITS, _MOST_COUNTED = 20, 2**36
# Counts up to this have a slope each; above, steps grow by this ratio.
_EXACT, _RATIO = 4096, 1 + 2.0**-10


def _entropy_steps(limit: int) -> tuple[IntArray, IntArray, IntArray]:
    """Starts, values and slopes of the pieces of an integer function close to c log c.

    It is linear between its starts, where its error is that of rounding the slopes down; between
    them it exceeds ``c log c`` by at most c / 2**23.
    """
    starts = list(range(min(limit, _EXACT) + 1))
    while starts[-1] < limit:
        starts.append(min(int(starts[-1] * _RATIO) + 1, limit))
    # math.log, one by one: vectorised logarithms may differ in the last bit by position.
    exact = [c * math.log(c) if c else 0.0 for c in starts]
    slopes = [
        math.floor((above - below) / (end - start) * 2**_BITS)
        for start, end, below, above in zip(
            starts[:-1], starts[1:], exact[:-1], exact[1:], strict=True
        )
    ]
    slope = np.maximum.accumulate(np.array(slopes, dtype=np.int64))
    start = np.array(starts[:-1], dtype=np.int64)
    value = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(slope * np.diff(starts))[:-1]])
    return start, value, slope


Score = Independence | MaximumJoint | Entropy
SCORES: dict[str, type[Score]] = {
    "R": Independence,
    "F": MaximumJoint,
    "mutual_information": Entropy,
}


# --- the budget of PrivBayes, and how large a table may be to be useful (theta-usefulness)

# Share of epsilon for the number of records.
_TOTAL_SHARE = Fraction(2, 100)


def privbayes_parts(
    epsilon: Fraction, shape: Sequence[int], beta: Any, most_range: int = 1
) -> dict[str, Fraction]:
    """Divide epsilon between the number of records, the network and its tables.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    beta : number
        Share of epsilon for the network, from 0.001 to 0.979.
    most_range : int, default=1
        The largest range that the score can have.

    Returns
    -------
    dict of str to Fraction
        "total" (2%), "network" and "tables"; they sum to epsilon. With fewer than three
        attributes that have a choice there is only one network, and it costs nothing.

    Raises
    ------
    TypeError, ValueError
        If ``beta`` is not such a number, or noise would not fit into 64-bit integers.
    """
    told = "it chooses the network. The total takes 0.02 and the tables the rest; 0.3 is usual."
    share = as_share(beta, "beta", Fraction(979, 1000), meaning=told)
    total, used = epsilon * _TOTAL_SHARE, len(used_attributes(shape))
    parts = {"total": total, "network": epsilon * share} if used > 2 else {"total": total}
    parts["tables"] = epsilon - sum(parts.values())
    # Noise that does not fit into 64 bits is refused here, before anything is spent.
    if "network" in parts:
        discrete_laplace_variance(parts["network"] / (used - 1), most_range)
    return parts


def largest_table(
    total: int, tables: Fraction, n_tables: int, theta: Fraction, max_cells: int
) -> int:
    """Largest number of cells of a theta-useful table.

    A table of m cells with noise of scale b is theta-useful if its mean count, n / m, is at least
    theta times b. Here b is ``n_tables / tables``: one record changes one cell of each table by
    one. (In the paper one record is replaced by another, which changes two cells, so that its
    scale is twice as large and its tables are half as large.)

    Parameters
    ----------
    total : int
        The released number of records, never the true one; negative counts as zero.
    tables : Fraction
        Budget of all tables together.
    n_tables : int
    theta : Fraction
    max_cells : int
        Public limit.
    """
    return min(max_cells, int(max(total, 0) * tables / (n_tables * theta)))


# --- the measurement


def privbayes(
    table: Counts,
    parts: dict[str, Fraction],
    *,
    levels: _Levels | None = None,
    score_function: str = "R",
    theta: Fraction = Fraction(4),
    max_candidates: int = 200,
    max_cells: int = 1 << 16,
    max_parents: int | None = None,
    negatives: str = "project",
    calibration: str = "tight",
    random_state: NoiseSource | int | None = None,
) -> NetworkModel:
    """Choose and measure a Bayesian network within the parts of `privbayes_parts`.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    parts : dict of str to Fraction
    levels : Levels, default=None
        For each attribute the groups of its codes at which it can be a parent, the finest first;
        None: its codes only.
    score_function : {"R", "F", "mutual_information"}, default="R"
        "F" needs attributes of two codes.
    theta : Fraction, default=4
        Mean count of a table's cells in units of the scale of their noise, at least.
    max_candidates, max_cells : int
        See `learn_network` and `largest_table`.
    max_parents : int, default=None
        Largest number of parents, the paper's k.
    negatives : {"project", "zero"}, default="project"
        See `conditional`.
    calibration : {"tight", "paper"}, default="tight"
        See `learn_network`.
    random_state : None, int or NoiseSource, default=None
    """
    # Privacy. The total (sensitivity 1), the selections of the network, and the tables compose one
    # after the other; their parts sum to epsilon. The limit on the size of tables is computed from
    # the released total, and only that decides how many parents there may be.
    source = noise_source(random_state)
    total = int(discrete_laplace(table.n, parts["total"], random_state=source))
    axes = used_attributes(table.shape)
    if levels is None:
        levels = [[None] for _ in table.shape]
    nodes = [_Node(axis, ()) for axis in range(len(table.shape)) if axis not in axes]
    laws = [np.ones((1, 1)) for _ in nodes]
    if axes:
        chosen = learn_network(
            table,
            axes,
            levels,
            SCORES[score_function](total),
            parts.get("network", Fraction(0)),
            largest_table(total, parts["tables"], len(axes), theta, max_cells),
            max_candidates,
            len(axes) if max_parents is None else max_parents,
            calibration,
            sampling_generator(source),
            source,
        )
        noisy = measure_tables(table, chosen, levels, parts["tables"], source)
        nodes += chosen
        laws += [conditional(counts, total, negatives) for counts in noisy]
    made = [
        Conditional(
            node.axis,
            tuple(axis for axis, _ in node.parents),
            tuple(levels[axis][level] for axis, level in node.parents),
            law,
        )
        for node, law in zip(nodes, laws, strict=True)
    ]
    return NetworkModel(table.shape, made, float(total))


def measure_tables(
    table: Counts, nodes: Sequence[_Node], levels: _Levels, epsilon: Fraction, source: NoiseSource
) -> list[IntArray]:
    """Noisy joint counts of every attribute and its parents, (n_groups, size) each."""
    # Privacy. Released: the counts of one table for each node. A record is in one cell of each, so
    # the sensitivity of all of them together is their number. Cells that are empty get noise like
    # the others. Which tables there are was selected before.
    exact = list(_exact_counts(table, nodes, levels))
    flat = np.concatenate([each.ravel() for each in exact])
    noisy = discrete_laplace(flat, epsilon, len(nodes), random_state=source)
    ends = np.cumsum([each.size for each in exact])
    parts = np.split(noisy, ends[:-1])
    return [part.reshape(each.shape) for each, part in zip(exact, parts, strict=True)]


# --- from noisy joint counts to conditional probabilities

NEGATIVES = ("project", "zero")


def conditional(noisy: IntArray, total: int, negatives: str) -> FloatArray:
    """Probabilities of an attribute's codes for each combination of its parents.

    Parameters
    ----------
    noisy : ndarray of int64, shape (n_groups, size)
        Released joint counts.
    total : int
        Released number of records.
    negatives : {"project", "zero"}
        How negative counts are removed: by the nearest counts that are not negative and sum to the
        total, or by setting them to zero, as the paper does.

    Returns
    -------
    ndarray of float64, shape (n_groups, size)
        Rows sum to 1. Where no record is left, a row is the mean of the others.

    Examples
    --------
    >>> conditional(np.array([[30, 10], [-4, 0]]), 40, "zero").tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    if negatives == "project":
        counts = project_to_simplex(noisy.ravel(), max(float(total), 0.0)).reshape(noisy.shape)
    else:
        counts = np.maximum(noisy, 0).astype(np.float64)
    overall = counts.sum(axis=0)
    overall = overall if overall.sum() > 0 else np.ones(noisy.shape[1])
    mass = counts.sum(axis=1, keepdims=True)
    rows = np.where(mass > 0, counts, overall)
    result: FloatArray = rows / rows.sum(axis=1, keepdims=True)
    return result


# --- the network: attribute by attribute, each with the parents that tell most about it
#
# GreedyBayes of the PrivBayes paper, with maximal sets of parents (theta-usefulness). The first
# attribute is a public coin; each further one is selected with its parents by a noisy maximum,
# which loses about half as much as the paper's exponential mechanism at the same price.

# --- maximal sets of parents: those to which nothing can be added while tables stay small enough
#
# A parent is an attribute at one of its levels. Which sets are candidates depends on public
# sizes, on what was selected before and on public coins; never on counts.

# Attributes with the number of their level, ascending by attribute.
_Parents = tuple[tuple[int, int], ...]

# Up to this many sets are listed; beyond, sets are drawn.
_LISTED = 1000
# Draws for each set that is wanted, before fewer are accepted.
_TRIES = 4


class Candidates:
    """Maximal sets of parents among some attributes.

    A set is maximal if neither can a further attribute be added nor one be taken at a finer level.

    Parameters
    ----------
    sizes : mapping of int to sequence of int
        For each possible parent the number of groups of its levels, the finest first.
    generator : numpy.random.Generator
        Public coins.
    most : int, default=None
        Largest number of parents in a set; None: any number.

    Examples
    --------
    >>> candidates = Candidates({0: [2], 1: [3], 2: [4, 2]}, np.random.default_rng(0))
    >>> candidates.within(6, most=10)
    [((0, 0), (1, 0)), ((0, 0), (2, 1)), ((1, 0), (2, 1)), ((2, 0),)]
    """

    def __init__(
        self,
        sizes: Mapping[int, Sequence[int]],
        generator: np.random.Generator,
        most: int | None = None,
    ) -> None:
        self._sizes = sizes
        self._generator = generator
        self._most = len(sizes) if most is None else most
        # All sets for a limit; None: too many to list.
        self._listed: dict[int, list[_Parents] | None] = {}

    def within(self, limit: int, most: int) -> list[_Parents]:
        """Sets with at most ``limit`` combinations; if there are more than ``most``, some of them.

        At least one: the empty set, if no attribute fits.
        """
        if limit not in self._listed:
            self._listed[limit] = _all(self._sizes, limit, self._most)
        found = self._listed[limit]
        if found is None:
            return self._drawn(limit, most)
        if len(found) <= most:
            return found
        chosen = self._generator.choice(len(found), size=most, replace=False)
        return [found[place] for place in sorted(chosen)]

    def _drawn(self, limit: int, most: int) -> list[_Parents]:
        """Different sets, drawn at random."""
        found: dict[_Parents, None] = {}
        for _ in range(_TRIES * most):
            found[self.draw(limit)] = None
            if len(found) == most:
                break
        return list(found)

    def draw(self, limit: int) -> _Parents:
        """One set: attributes in random order at random levels, then each as fine as it fits."""
        sizes, generator = self._sizes, self._generator
        levels: dict[int, int] = {}
        cells = 1
        for axis in generator.permutation(sorted(sizes)).tolist():
            fits = [level for level, size in enumerate(sizes[axis]) if cells * size <= limit]
            if fits and len(levels) < self._most:
                levels[axis] = fits[int(generator.integers(len(fits)))]
                cells *= sizes[axis][levels[axis]]
        for axis, level in levels.items():
            others = cells // sizes[axis][level]
            levels[axis] = next(k for k, size in enumerate(sizes[axis]) if others * size <= limit)
            cells = others * sizes[axis][levels[axis]]
        return tuple(sorted(levels.items()))


def _all(sizes: Mapping[int, Sequence[int]], limit: int, most: int) -> list[_Parents] | None:
    fitting = list(itertools.islice(_fitting(sorted(sizes), sizes, limit, most), _LISTED + 1))
    if len(fitting) > _LISTED:
        return None
    return [parents for parents in fitting if _is_maximal(parents, sizes, limit, most)]


def _fitting(
    axes: Sequence[int], sizes: Mapping[int, Sequence[int]], limit: int, most: int
) -> Iterator[_Parents]:
    """All sets of at most so many that fit."""
    yield ()
    if not most:
        return
    for place, axis in enumerate(axes):
        for level, size in enumerate(sizes[axis]):
            if size <= limit:
                for parents in _fitting(axes[place + 1 :], sizes, limit // size, most - 1):
                    yield ((axis, level), *parents)


def _is_maximal(
    parents: _Parents, sizes: Mapping[int, Sequence[int]], limit: int, most: int
) -> bool:
    cells = 1
    for axis, level in parents:
        cells *= sizes[axis][level]
    levels = dict(parents)
    for axis, each in sizes.items():
        if axis not in levels:
            if len(parents) < most and cells * each[-1] <= limit:
                return False
        elif levels[axis] and cells // each[levels[axis]] * each[levels[axis] - 1] <= limit:
            return False
    return True


# --- attribute by attribute

# For each attribute the group of each code at its levels, the finest first; None for the codes.
_Levels = Sequence[Sequence[IntArray | None]]


class _Node(NamedTuple):
    """An attribute and its parents."""

    axis: int
    parents: _Parents


def learn_network(
    table: Counts,
    axes: Sequence[int],
    levels: _Levels,
    score: Score,
    epsilon: Fraction,
    limit: int,
    max_candidates: int,
    max_parents: int,
    calibration: str,
    generator: np.random.Generator,
    source: NoiseSource,
) -> list[_Node]:
    """Select the nodes of a network, parents before their children.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    axes : sequence of int
        Attributes of the network.
    levels : Levels
    score : Score
    epsilon : Fraction
        Budget of all selections together.
    limit : int
        Largest number of cells of a table of an attribute and its parents.
    max_candidates : int
        At most so many candidates are scored for each node; if there are more attributes, one for
        each of so many.
    max_parents : int
        Largest number of parents of an attribute.
    calibration : {"tight", "paper"}
        "paper" selects by the exponential mechanism at the published sensitivity.
    generator : numpy.random.Generator
        Public coins.
    source : NoiseSource
    """
    # Privacy. Released: one attribute and its parents in each of len(axes) - 1 rounds, at an equal
    # share of epsilon each, so that all rounds together cost epsilon. Candidates come from public
    # sizes, a limit that was computed from the released total, public coins, and earlier rounds.
    # The range of each score is proved beside it, and twice the published sensitivity is no less. A
    # round with one candidate selects nothing.
    sizes = [
        [table.shape[axis] if each is None else int(each.max()) + 1 for each in level]
        for axis, level in enumerate(levels)
    ]
    share = epsilon / max(len(axes) - 1, 1)
    paper = calibration == "paper"
    select: Any = exponential if paper else noisy_max
    reach = score.published_range if paper else score.score_range
    left = list(axes)
    nodes = [_Node(left.pop(int(generator.integers(len(left)))), ())]
    scores: dict[_Node, int] = {}
    while left:
        known = {node.axis: sizes[node.axis] for node in nodes}
        possible = Candidates(known, generator, max_parents)
        asked = left
        if len(left) > max_candidates:
            asked = sorted(generator.choice(left, size=max_candidates, replace=False).tolist())
        candidates = [
            _Node(axis, parents)
            for axis in asked
            for parents in possible.within(limit // table.shape[axis], max_candidates // len(asked))
        ]
        winner = 0
        if len(candidates) > 1:
            new = [node for node in candidates if node not in scores]
            scores |= zip(new, map(score, _exact_counts(table, new, levels)), strict=True)
            exact = np.array([scores[node] for node in candidates])
            winner = select(exact, share, reach, random_state=source)
        nodes.append(candidates[winner])
        left.remove(nodes[-1].axis)
    return nodes


def _exact_counts(table: Counts, nodes: Sequence[_Node], levels: _Levels) -> Iterator[IntArray]:
    """Exact and private counts of attributes under their parents' groups, (n_groups, size)."""
    asked = [
        (
            (*(axis for axis, _ in node.parents), node.axis),
            (*(levels[axis][level] for axis, level in node.parents), None),
        )
        for node in nodes
    ]
    for node, counts in zip(nodes, table.regrouped_many(asked), strict=True):
        yield counts.reshape(-1, table.shape[node.axis])
