"""The attacks: whether a row was in the table, what singles it out, a value that others tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._types import BoolArray, CodeArray, FloatArray, IntArray
from ..audit._events import clopper_pearson
from ..domain import Domain
from ..quality._marginals import grouped
from ._scene import Scene, Target, counted, distances, neighbours_among, rows_as_numbers

__all__ = [
    "Guesses",
    "confident_guesses",
    "epsilon_lower_bound",
    "exact_matches",
    "inferred",
    "likelihood_ratio",
    "nearest_neighbours",
    "singled_out",
]

# Distances of this many pairs of rows are held at once: 20 MB a table.
_BLOCK = 5_000_000


def likelihood_ratio(target: Target, scene: Scene) -> FloatArray:
    """Log of the density of each row under the release over that of other rows.

    Both densities are smoothed with one record, spread as if columns were independent.

    References
    ----------
    B. van Breugel, H. Sun, Z. Qian, M. van der Schaar, "Membership inference attacks against
    synthetic data through overfitting detection", AISTATS 2023.
    """
    known = scene.reference if len(scene.reference) else target.rows
    spread = _independent(known, scene.codes, scene.domain.shape)
    count, total = target.counts(scene.codes)
    ratio = np.log(count + spread) - np.log(total + 1.0)
    if len(scene.reference):
        other = counted(scene.reference, scene.codes)
        ratio -= np.log(other + spread) - np.log(len(scene.reference) + 1.0)
    return ratio


def _independent(rows: CodeArray, codes: CodeArray, shape: tuple[int, ...]) -> FloatArray:
    """Probability of each of ``codes`` if columns were independent, with shares as in ``rows``."""
    log = np.zeros(len(codes))
    for axis, size in enumerate(shape):
        counts = np.bincount(rows[:, axis], minlength=size) + 1.0 / size
        log += np.log(counts[codes[:, axis]] / (len(rows) + 1.0))
    # Never zero, however many columns.
    return np.exp(np.maximum(log, -500.0))


def nearest_neighbours(target: Target, scene: Scene) -> FloatArray:
    """How much nearer the nearest synthetic row is than the nearest of other rows.

    Of each at most 20,000, drawn at random.

    References
    ----------
    D. Chen, N. Yu, Y. Zhang, M. Fritz, "GAN-Leaks: a taxonomy of membership inference attacks
    against generative models", CCS 2020.
    """
    near = nearest(scene.domain, scene.codes, neighbours_among(target.rows, scene.rng))
    if not len(scene.reference):
        return -near
    others = neighbours_among(scene.reference, scene.rng)
    return nearest(scene.domain, scene.codes, others) - near


def nearest(domain: Domain, codes: CodeArray, rows: CodeArray) -> FloatArray:
    """Distance of each row of codes from the nearest of ``rows``, summed over columns."""
    found = np.empty(len(codes))
    step = max(_BLOCK // max(len(rows), 1), 1)
    for start in range(0, len(codes), step):
        block = codes[start : start + step]
        apart = np.zeros((len(block), len(rows)), dtype=np.float32)
        for axis in range(len(domain)):
            apart += distances(domain, block, rows, axis)
        found[start : start + step] = apart.min(axis=1)
    return found


# --- rows that occur in the synthetic table, and predicates from it that single out one row

_SETS = 32


def exact_matches(target: Target, scene: Scene) -> IntArray:
    """Guess "in" for a row that occurs once under attack and among the synthetic rows."""
    here, there = rows_as_numbers(scene.codes, target.rows)
    size = max(here.max(initial=-1), there.max(initial=-1)) + 1
    once = np.bincount(here, minlength=size)[here] == 1
    return (once & (np.bincount(there, minlength=size)[here] > 0)).astype(np.int64)


def singled_out(target: Target, scene: Scene) -> IntArray:
    """Guess "in" for a row that values of synthetic rows single out, in most sets of columns.

    The predicates are the values of a synthetic row in a set of columns, where no other synthetic
    row has the same values: one that is true of a single row under attack singles it out. Drawn are
    32 sets, each of half of the columns or more.

    References
    ----------
    M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnadi, "A unified framework for quantifying privacy
    risk in synthetic data", PoPETs 2023(2).
    """
    n_columns, rng = scene.codes.shape[1], scene.rng
    times = np.zeros(len(scene.codes), dtype=np.int64)
    for _ in range(_SETS):
        size = int(rng.integers((n_columns + 1) // 2, n_columns + 1))
        axes = rng.choice(n_columns, size, replace=False)
        here, there = rows_as_numbers(scene.codes[:, axes], target.rows[:, axes])
        size = max(here.max(initial=-1), there.max(initial=-1)) + 1
        alone = [np.bincount(each, minlength=size)[here] == 1 for each in (here, there)]
        times += alone[0] & alone[1]
    return (2 * times > _SETS).astype(np.int64)


# --- the value of a column, inferred from the other columns with the help of synthetic rows


def inferred(target: Target, scene: Scene, secrets: Sequence[int]) -> dict[int, IntArray]:
    """Guess "in" for a row whose secret the nearest synthetic row tells.

    The attacker knows all other columns of the row. The secret counts as told if the nearest
    synthetic row in these columns has a value of the same group (of 20 for a number). Values that
    follow from the other columns are told for members and others alike.

    Parameters
    ----------
    target : Target
    scene : Scene
    secrets : sequence of int
        Positions of columns.

    Returns
    -------
    dict of int to ndarray of int64
        Guesses by the position of the secret column.
    """
    domain, codes = scene.domain, scene.codes
    rows = neighbours_among(target.rows, scene.rng)
    truth, told = grouped(codes, domain)[0], grouped(rows, domain)[0]
    made = {secret: np.zeros(len(codes), dtype=np.int64) for secret in secrets}
    step = max(_BLOCK // len(rows), 1)
    for start in range(0, len(codes), step):
        part = slice(start, start + step)
        apart = np.zeros((len(codes[part]), len(rows)), dtype=np.float32)
        for axis in range(len(domain)):
            apart += distances(domain, codes[part], rows, axis)
        for secret in secrets:
            known = apart - distances(domain, codes[part], rows, secret)
            # Equal distances may differ in their last bits.
            nearest = np.argmin(np.round(known, 5), axis=1)
            made[secret][part] = truth[part, secret] == told[nearest, secret]
    return made


# --- guesses of membership, and the lower bound on epsilon that follows from how many are right


def epsilon_lower_bound(right: int, made: int, alpha: float) -> float:
    """Lower bound on epsilon from one run; wrong with a probability of at most ``alpha``.

    Each row was in the table or not by a fair coin of its own. Given the release, whatever it is, a
    coin shows either side with a probability of at most ``p = e^epsilon / (1 + e^epsilon)``, also
    given the coins before it. So the number of right guesses, given how many the release lets one
    make, is at most binomial with this p, and a lower confidence bound on p is one on epsilon.
    Abstaining is free.

    Parameters
    ----------
    right, made : int
        Guesses; their choice may depend on the release in any way, and on no coin otherwise.
    alpha : float

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
    theorem 5.2 with delta = 0.
    """
    if made == 0:
        return 0.0
    share = float(clopper_pearson(right, made, alpha)[0])
    return max(math.log(share / (1.0 - share)), 0.0) if share > 0 else 0.0


@dataclass(frozen=True)
class Guesses:
    """Guesses about rows: 1 in the table, -1 not in it, 0 none; and the truth."""

    made: IntArray
    member: BoolArray

    @property
    def n(self) -> int:
        """How many were made."""
        return int(np.count_nonzero(self.made))

    @property
    def right(self) -> int:
        """How many are right."""
        return int(((self.made > 0) & self.member).sum() + ((self.made < 0) & ~self.member).sum())

    def share_of(self, member: bool) -> float:
        """Share of the members, or of the others, that were guessed to be members."""
        some = self.made[self.member == member]
        return float((some > 0).mean()) if len(some) else 0.0


def confident_guesses(scores: FloatArray, share: float, rng: np.random.Generator) -> IntArray:
    """Guess "in" for the highest scores and "out" for the lowest, as many of each.

    Parameters
    ----------
    scores : ndarray of float, shape (n,)
        The higher, the more likely a member. Ties are broken at random.
    share : float
        Share of the rows about which a guess is made.
    rng : numpy.random.Generator
    """
    order = np.lexsort((rng.permutation(len(scores)), scores))
    half = min(max(int(round(share * len(scores) / 2)), 1), len(scores) // 2)
    made = np.zeros(len(scores), dtype=np.int64)
    if half:
        made[order[-half:]], made[order[:half]] = 1, -1
    return made
