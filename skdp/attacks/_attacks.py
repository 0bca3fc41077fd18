"""The attacks: whether a row was in the table, what singles it out, a value that others tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import BoolArray, CodeArray, FloatArray, IntArray
from ..audit._events import clopper_pearson
from ..domain import Domain
from ..quality._frames import valid_codes
from ..quality._marginals import grouped, is_ordered
from ..quality._report import some_rows
from ..release import Synopsis

# --- the rows that are attacked, which of them are members, and what an attacker knows besides


@dataclass(frozen=True)
class Scene:
    """Codes of rows under attack.

    Attributes
    ----------
    domain : Domain
    codes : ndarray of int32, shape (n_rows, n_columns)
    member : ndarray of bool, shape (n_rows,)
        Whether each row was in the table that was released. The attacks do not look at it.
    reference : ndarray of int32, shape (n_reference, n_columns)
        Other rows of the same population, none of them a member; may be empty.
    rng : numpy.random.Generator
    """

    domain: Domain
    codes: CodeArray
    member: BoolArray
    reference: CodeArray
    rng: np.random.Generator


def rows_as_numbers(*tables: CodeArray) -> list[np.ndarray]:
    """The same number for equal rows, over all tables."""
    whole = np.concatenate(tables)
    found = np.zeros(len(whole), dtype=np.int64)
    for axis in range(whole.shape[1]):
        column = whole[:, axis].astype(np.int64)
        # Renumbered after each column, so that no number overflows.
        both = found * (int(column.max(initial=0)) + 1) + column
        found = np.unique(both, return_inverse=True)[1].ravel()
    return np.split(found, np.cumsum([len(table) for table in tables])[:-1])


def occurrences(codes: CodeArray, others: CodeArray) -> list[IntArray]:
    """How many of the codes are equal to each of them, and how many of the others."""
    both = rows_as_numbers(codes, others)
    size = max(each.max(initial=-1) for each in both) + 1
    return [np.bincount(each, minlength=size)[both[0]] for each in both]


def distances(domain: Domain, left: CodeArray, right: CodeArray, axis: int) -> FloatArray:
    """Distance in one column of every left from every right row: 0 to 1.

    Ordered codes: the share of the range between them. Others, and missing values: 0 or 1.
    """
    a, b = left[:, axis][:, None], right[:, axis][None, :]
    unequal = a != b
    if not is_ordered(domain, axis):
        return unequal.astype(np.float32)
    n = domain.attributes[axis].n_values
    near = np.abs(a - b).astype(np.float32) / np.float32(n - 1)
    return np.where((a < n) & (b < n), near, unequal).astype(np.float32)


# --- what is attacked: a release, or synthetic rows of any library


def synopsis_of(release: Any) -> Synopsis | None:
    """The synopsis of a fitted estimator, or a synopsis itself; None for rows."""
    found = getattr(release, "synopsis_", release)
    return found if isinstance(found, Synopsis) else None


def claim_of(release: Any, epsilon: Any) -> float | None:
    """The epsilon that was claimed: as given, or as recorded in the release."""
    if epsilon is not None:
        return float(epsilon)
    found = synopsis_of(release)
    recorded: Fraction | None = None if found is None else found.epsilon
    return None if recorded is None else float(recorded)


class Target:
    """Draws and expected counts of a release, over codes.

    Parameters
    ----------
    release : fitted synthesizer, Synopsis, table, or codes of shape (n, n_columns)
    domain : Domain
    n_rows : int
        Rows to draw from a release.
    rng : numpy.random.Generator

    Attributes
    ----------
    rows : ndarray of int32, shape (n, n_columns)
        Codes of the synthetic rows: drawn, or as given.
    """

    def __init__(self, release: Any, domain: Domain, n_rows: int, rng: np.random.Generator) -> None:
        self._synopsis = synopsis_of(release)
        self._domain = domain
        if self._synopsis is not None:
            self.rows = self._synopsis.sample_codes(n_rows, rng)
        else:
            self.rows = as_codes(release, domain)
            if not len(self.rows):
                raise ValueError("No synthetic row lies in the domain: there is nothing to attack.")

    def counts(self, codes: CodeArray) -> tuple[FloatArray, float]:
        """Expected number of records equal to each row, and of all records.

        By the model of a release; rows without a model are counted themselves.
        """
        if self._synopsis is None:
            return occurrences(codes, self.rows)[1].astype(float), float(len(self.rows))
        model, shape = self._synopsis.model, self._domain.shape
        unit = [np.eye(size) for size in shape]
        questions = [
            {axis: unit[axis][code] for axis, code in enumerate(row)} for row in codes.tolist()
        ]
        found = np.asarray(model.answer(questions)) if questions else np.zeros(0)
        return np.maximum(found, 0.0), max(float(self._synopsis.total), 1.0)


def as_codes(rows: Any, domain: Domain) -> CodeArray:
    """Codes of a table, without rows outside of the domain; codes are taken as they are."""
    if isinstance(rows, np.ndarray) and rows.dtype == np.int32 and rows.ndim == 2:
        return rows
    return valid_codes(domain.check_schema(rows), domain).astype(np.int32)


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
        other = occurrences(scene.codes, scene.reference)[1]
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
    near = nearest(scene.domain, scene.codes, some_rows(target.rows, scene.rng))
    if not len(scene.reference):
        return -near
    others = some_rows(scene.reference, scene.rng)
    return nearest(scene.domain, scene.codes, others) - near


def nearest(domain: Domain, codes: CodeArray, rows: CodeArray) -> FloatArray:
    """Distance of each row of codes from the nearest of ``rows``, summed over columns."""
    apart = (apart.min(axis=1) for _, apart in _distances_of_rows(domain, codes, rows))
    return np.concatenate([np.zeros(0), *apart])


def _distances_of_rows(
    domain: Domain, codes: CodeArray, rows: CodeArray
) -> Iterator[tuple[slice, NDArray[np.floating]]]:
    """Blocks of codes, and their distances from all rows, summed over columns."""
    step = max(_BLOCK // max(len(rows), 1), 1)
    for start in range(0, len(codes), step):
        part = slice(start, start + step)
        apart = np.zeros((len(codes[part]), len(rows)), dtype=np.float32)
        for axis in range(len(domain)):
            apart += distances(domain, codes[part], rows, axis)
        yield part, apart


# --- rows that occur in the synthetic table, and predicates from it that single out one row

_SETS = 32


def exact_matches(target: Target, scene: Scene) -> IntArray:
    """Guess "in" for a row that occurs once under attack and among the synthetic rows."""
    here, there = occurrences(scene.codes, target.rows)
    return ((here == 1) & (there > 0)).astype(np.int64)


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
        here, there = occurrences(scene.codes[:, axes], target.rows[:, axes])
        times += (here == 1) & (there == 1)
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
    rows = some_rows(target.rows, scene.rng)
    truth, told = grouped(codes, domain)[0], grouped(rows, domain)[0]
    made = {secret: np.zeros(len(codes), dtype=np.int64) for secret in secrets}
    for part, apart in _distances_of_rows(domain, codes, rows):
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
