"""Scores of synthetic rows with noise, which may be published."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._random import NoiseSource, noise_source, sampling_generator
from .._types import IntArray
from .._validation import as_epsilon, split_epsilon
from ..accounting import PrivacyLoss
from ..domain import Domain
from ..mechanisms import discrete_laplace, discrete_laplace_quantile
from ._marginals import chosen_axes, displacement, grouped, imbalance, is_ordered
from ._report import Contest, some_rows

# Shares of epsilon. Sums over all pairs need little; columns and learners divide theirs.
_SHARES = {"rows": 1, "pairs": 1, "triples": 1, "columns": 4, "wasserstein": 4, "learners": 3}
# More synthetic rows than this say nothing new.
_MOST_SYNTHETIC = 100_000


@dataclass(eq=False, repr=False)
class PrivateQualityReport:
    """Scores of synthetic rows, released with noise: differentially private, may be published.

    Attributes
    ----------
    columns : pandas.DataFrame
        One row for each column: ``column``, ``distance`` and ``wasserstein`` as in
        `QualityReport`, and the ends of their intervals: ``distance_lower``, ``distance_upper``,
        ``wasserstein_lower``, ``wasserstein_upper``.
    scores : pandas.DataFrame
        ``score``, ``value``, ``lower`` and ``upper`` of the 2-way and the 3-way k-marginal score.
    learners : pandas.DataFrame or None
        ``learner``, ``accuracy``, ``lower`` and ``upper`` of five learners and the most frequent
        label, trained on synthetic rows and tested on the records. None without a target.
    target : str or None
        Column that was predicted.
    level : float
        Confidence of each interval; how far these records stand for others is not in it.
    privacy_loss : PrivacyLoss
        What the report cost.
    """

    columns: pd.DataFrame
    scores: pd.DataFrame
    learners: pd.DataFrame | None
    target: str | None
    level: float
    privacy_loss: PrivacyLoss

    @property
    def _facts(self) -> str:
        text = (
            f"quality of synthetic rows, epsilon = {float(self.privacy_loss.epsilon):g}, intervals "
            f"at {100 * self.level:g}%"
        )
        return f"{text}; SEEDED noise: no guarantee" if self.privacy_loss.seeded else text

    @property
    def _tables(self) -> list[pd.DataFrame]:
        return [t for t in (self.scores, self.columns, self.learners) if t is not None and len(t)]

    def __repr__(self) -> str:
        shown = [t.to_string(index=False, float_format="{:.4g}".format) for t in self._tables]
        return "\n".join([self._facts, *shown])

    def _repr_html_(self) -> str:
        shown = [t.to_html(index=False, float_format="{:.4g}".format) for t in self._tables]
        return "".join([f"<p>{html.escape(self._facts)}</p>", *shown])


class _Release(NamedTuple):
    """A noisy number, and how far the exact one may be from it."""

    value: int
    reach: int


class PrivateScores:
    """What is going to be measured, from public facts: made before the charge.

    Parameters
    ----------
    synthetic : ndarray of int, shape (n_synthetic, d)
        Codes of public synthetic rows, at least one.
    domain : Domain
        Declared.
    target : str or None
        Column that learners predict.
    epsilon : number or Fraction
        Privacy parameter of the whole report.
    level : float
        Confidence of each interval.
    random_state : None or int
        Seed of the noise and of the choices; None for a release.

    Raises
    ------
    ValueError
        If the target has too many codes, or epsilon is out of range.
    """

    def __init__(
        self,
        synthetic: NDArray[np.integer],
        domain: Domain,
        target: str | None,
        epsilon: Any,
        level: float,
        random_state: Any = None,
    ) -> None:
        rng = sampling_generator(random_state)
        self._source: NoiseSource = noise_source(random_state)
        exact = as_epsilon(epsilon)
        self._synthetic = synthetic = some_rows(synthetic, rng, _MOST_SYNTHETIC)
        self._domain, self._level = domain, level
        self._side = (1 + level) / 2
        self._target = target
        self._contest = None
        if target is not None:
            self._contest = Contest(domain, target, int(rng.integers(2**31)))
            self._train = some_rows(synthetic, rng)
        self._pairs = chosen_axes(len(domain), 2, rng)
        self._triples = chosen_axes(len(domain), 3, rng)
        self._ordered = [axis for axis in range(len(domain)) if is_ordered(domain, axis)]
        wanted = {
            "pairs": self._pairs,
            "triples": self._triples,
            "wasserstein": self._ordered,
            "learners": self._contest,
        }
        shares = {name: s for name, s in _SHARES.items() if wanted.get(name, True)}
        self.loss = PrivacyLoss(exact, split_epsilon(exact, shares), seeded=self._source.seeded)
        # An epsilon for which noise does not fit into an integer is refused here, for nothing.
        most = max(2 * len(self._pairs), 2 * len(self._triples), *domain.shape, 2)
        for part in self.loss.parts.values():
            discrete_laplace_quantile(self._side, part / len(domain), len(synthetic) * most)

    def release(self, records: NDArray[np.integer]) -> PrivateQualityReport:
        """Measure the records with noise.

        Parameters
        ----------
        records : ndarray of int, shape (n_rows, d)
            Codes, all of them inside the domain.
        """
        # Privacy. Neighbours differ by one record, so n changes by 1 and, of each marginal, one
        # count c by 1. The synthetic rows, their number m and all that was learned from them are
        # public. Released, each with noise for its sensitivity and in sequence: n (1); of all
        # pairs, of all triples and of each column the sums over cells of |m c - n s| (2 m a
        # marginal: m - s in the cell of the record, s in each other); the same over cumulated
        # counts (m a code); and how many records each learner predicts correctly (1 a learner).
        # Each prediction depends on its record alone. The rest is post-processing.
        rows = self._noisy([len(records)], "rows", 1)[0]
        return PrivateQualityReport(
            self._columns(records, rows),
            self._scores(records, rows),
            self._learners(records, rows),
            self._target,
            self._level,
            self.loss,
        )

    def _noisy(
        self, values: Sequence[int] | IntArray, part: str, sensitivity: int, of: int = 1
    ) -> list[_Release]:
        """Numbers with the noise of one of ``of`` equal shares of a part."""
        epsilon: Fraction = self.loss.parts[part] / of
        noisy = discrete_laplace(
            np.asarray(values, dtype=np.int64), epsilon, sensitivity, random_state=self._source
        )
        reach = discrete_laplace_quantile(self._side, epsilon, sensitivity)
        return [_Release(value, reach) for value in noisy.tolist()]

    def _scores(self, records: NDArray[np.integer], rows: _Release) -> pd.DataFrame:
        left, shape = grouped(records, self._domain)
        right, _ = grouped(self._synthetic, self._domain)
        found = []
        for part, order, sets in (("pairs", 2, self._pairs), ("triples", 3, self._triples)):
            if not sets:
                continue
            unit = 2 * len(self._synthetic) * len(sets)
            total = sum(imbalance(left, right, shape, axes) for axes in sets)
            value, low, high = _share(self._noisy([total], part, unit)[0], rows, unit)
            found.append(
                (f"{order}-way k-marginal", *(1000 * (1 - one) for one in (value, high, low)))
            )
        return pd.DataFrame(found, columns=["score", "value", "lower", "upper"])

    def _columns(self, records: NDArray[np.integer], rows: _Release) -> pd.DataFrame:
        shape, names, m = self._domain.shape, self._domain.names, len(self._synthetic)
        sums = [imbalance(records, self._synthetic, shape, [axis]) for axis in range(len(shape))]
        noisy = self._noisy(sums, "columns", 2 * m * len(shape))
        table = pd.DataFrame(
            [(name, *_share(one, rows, 2 * m)) for name, one in zip(names, noisy, strict=True)],
            columns=["column", "distance", "distance_lower", "distance_upper"],
        )
        moved = np.full((len(shape), 3), np.nan)
        for axis in self._ordered:
            n_values = self._domain.attributes[axis].n_values
            unit = m * (n_values - 1)
            total = displacement(records[:, axis], self._synthetic[:, axis], n_values)
            noisy = self._noisy([total], "wasserstein", unit, len(self._ordered))
            moved[axis] = _share(noisy[0], rows, unit)
        names = ("wasserstein", "wasserstein_lower", "wasserstein_upper")
        return table.assign(**dict(zip(names, moved.T, strict=True)))

    def _learners(self, records: NDArray[np.integer], rows: _Release) -> pd.DataFrame | None:
        if self._contest is None:
            return None
        right = self._contest.right(self._train, records)
        noisy = self._noisy(right, "learners", len(right))
        return pd.DataFrame(
            [
                (name, *_share(one, rows, 1))
                for name, one in zip(self._contest.names, noisy, strict=True)
            ],
            columns=["learner", "accuracy", "lower", "upper"],
        )


def _share(part: _Release, rows: _Release, unit: int) -> tuple[float, float, float]:
    """A sum over ``unit`` times the number of rows, between 0 and 1, and its interval."""
    value = part.value / (unit * max(rows.value, 1))
    low = (part.value - part.reach) / (unit * max(rows.value + rows.reach, 1))
    fewest = rows.value - rows.reach
    high = (part.value + part.reach) / (unit * fewest) if fewest > 0 else 1.0
    value, low, high = (min(max(one, 0.0), 1.0) for one in (value, low, high))
    return value, low, high
