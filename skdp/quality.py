"""How close synthetic rows of any library are to the records: exactly, or with noise.

Marginals are compared by total variation, which gives NIST's k-marginal score.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from ._random import NoiseSource, caller_level, noise_source, sampling_generator
from ._validation import FloatArray, IntArray, as_epsilon, split_epsilon
from .accounting import PrivacyLedger, PrivacyLoss, charge
from .base import match_rows
from .domain import Categorical, Domain
from .exceptions import PrivacyLeakWarning
from .mechanisms import discrete_laplace, discrete_laplace_quantile

__all__ = ["QualityReport", "k_marginal", "quality_report"]

# Shares of epsilon. Sums over all pairs need little; columns divide theirs.
_SHARES = {"rows": 1, "pairs": 1, "triples": 1, "columns": 4}
# Numbers are compared in at most this many groups of codes, as NIST's excerpts are, and
# categories in at most this many.
_GROUPS, _CATEGORIES = 20, 100
# If there are more sets of columns than this, a random subset of this size is compared.
_MOST_SETS = {2: 1000, 3: 300}


# --- the report


@dataclass(eq=False, repr=False)
class QualityReport:
    """Distances between records and synthetic rows.

    Attributes
    ----------
    columns : pandas.DataFrame
        One row for each column: ``column``, ``distance``, and the ends of its interval,
        ``distance_lower`` and ``distance_upper``.
    scores : pandas.DataFrame
        ``score``, ``value``, ``lower`` and ``upper`` of the 2-way and the 3-way k-marginal score of
        NIST: 1,000 for equal tables, over at most 20 groups of codes of a number and 100 of a
        category, and at most 1,000 random pairs and 300 random triples.
    pairs : pandas.DataFrame or None
        Of an exact report one row for each of these pairs: ``first``, ``second`` and ``distance``.
    level : float
        Confidence of each interval; how far these records stand for others is not in it. Intervals
        of an exact report are points.
    privacy_loss : PrivacyLoss or None
        What the report cost. None: it is exact, NOT private, and for the data owner only.

    Notes
    -----
    A distance is the total variation distance, half of the sum of absolute differences between two
    tables of shares: 0 if they are equal, 1 if they have no cell in common. Two finite samples of
    the same distribution differ too; the fewer records, the more.
    """

    columns: pd.DataFrame
    scores: pd.DataFrame
    pairs: pd.DataFrame | None
    level: float
    privacy_loss: PrivacyLoss | None

    @property
    def _facts(self) -> str:
        if self.privacy_loss is None:
            return "NOT PRIVATE: computed from the exact records, for the data owner only"
        text = (
            f"quality of synthetic rows, epsilon = {float(self.privacy_loss.epsilon):g}, intervals "
            f"at {100 * self.level:g}%"
        )
        return f"{text}; SEEDED noise: no guarantee" if self.privacy_loss.seeded else text

    def __repr__(self) -> str:
        tables = [self.scores, self.columns]
        if self.pairs is not None:
            # The furthest.
            tables.append(self.pairs.nlargest(5, "distance"))
        shown = [t.to_string(index=False, float_format="{:.4g}".format) for t in tables if len(t)]
        return "\n".join([self._facts, *shown])


def quality_report(
    records: Any,
    synthetic: Any,
    *,
    domain: Any,
    epsilon: Any = None,
    level: float = 0.95,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
) -> QualityReport:
    """Compare synthetic rows, made by any library, with the records.

    Without ``epsilon`` the report is exact and NOT private: for the data owner only. With it, the
    report is differentially private and may be published.

    Parameters
    ----------
    records : frame or array-like of shape (n_rows, n_columns)
        The records. Columns that are not declared, such as that of persons, are not read.
    synthetic : frame or array-like of shape (n_synthetic, n_columns)
        Synthetic rows with the same columns. For a private report they must be public: released
        under an epsilon of their own, or made without the records.
    domain : Domain or dict
        Columns and their values.
    epsilon : number or Fraction, default=None
        Privacy parameter of the report.
    level : float, default=0.95
        Confidence of each interval of a private report.
    ledger : PrivacyLedger, default=None
        Privacy budget of the records, charged before one of them is read. For a private report.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of choices of columns. For a private report an int seeds the noise too: for
        experiments only, no guarantee.

    Returns
    -------
    QualityReport

    Raises
    ------
    DomainError
        If the columns do not fit the domain, or ``epsilon`` is given without a declared domain.
    ValueError
        If ``epsilon`` or ``level`` is out of range, or no synthetic row lies in the domain. Nothing
        is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Warns
    -----
    PrivacyLeakWarning
        Without ``epsilon``.

    Notes
    -----
    Rows with a value outside of the domain are skipped. One record is protected, not all those of
    a person.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skdp import Categorical, Domain, Numeric
    >>> from skdp.quality import quality_report
    >>> rng = np.random.default_rng(0)
    >>> people = {"age": rng.integers(0, 90, 20_000), "sex": rng.choice(["F", "M"], 20_000)}
    >>> table = pd.DataFrame(people)
    >>> domain = Domain({"age": Numeric(0, 89, integer=True), "sex": Categorical(["F", "M"])})
    >>> report = quality_report(table, table.sample(5_000), domain=domain, epsilon=1)
    >>> bool(report.scores["value"][0] > 950)
    True
    """
    check_scalar(level, "level", Real, min_val=0, max_val=1, include_boundaries="neither")
    rows, found = match_rows(records, None, domain, None, structure=True, spare=True)
    drawn = _valid_codes(match_rows(synthetic, None, found, None, structure=True)[0], found)
    if not len(drawn):
        raise ValueError("No synthetic row lies in the domain: there is nothing to compare.")
    measured = _Measured(drawn, found, epsilon, float(level), random_state)
    if measured.loss is not None:
        charge(ledger, "quality_report", measured.loss)
    else:
        warnings.warn(
            "quality_report compares with the exact records: the report is not private and must "
            "stay with the data owner. With epsilon= it is private.",
            PrivacyLeakWarning,
            stacklevel=caller_level(),
        )
    return measured.report(_valid_codes(rows, found))


def _valid_codes(rows: Any, domain: Domain) -> NDArray[np.integer]:
    """Codes of the rows that lie in the domain."""
    codes = domain.encode(rows)
    return codes[(codes >= 0).all(axis=1)]


# --- what is measured


class _Measured:
    """What is going to be measured, from public facts: made before the charge.

    Parameters
    ----------
    synthetic : ndarray of int, shape (n_synthetic, d)
        Codes of public synthetic rows, at least one.
    domain : Domain
    epsilon : number, Fraction or None
        Privacy parameter of the whole report; None measures exactly.
    level : float
        Confidence of each interval.
    random_state : None, int or Generator
        Seed of the noise and of the choices; None for a release.

    Raises
    ------
    ValueError
        If epsilon is out of range.
    """

    def __init__(
        self,
        synthetic: NDArray[np.integer],
        domain: Domain,
        epsilon: Any,
        level: float,
        random_state: Any,
    ) -> None:
        rng = sampling_generator(random_state)
        self._synthetic, self._domain, self._level = synthetic, domain, level
        self._side = (1 + level) / 2
        self._sets = {order: _chosen_axes(len(domain), order, rng) for order in (2, 3)}
        self.loss: PrivacyLoss | None = None
        if epsilon is None:
            return
        self._source: NoiseSource = noise_source(random_state)
        exact = as_epsilon(epsilon)
        wanted = {"pairs": self._sets[2], "triples": self._sets[3]}
        shares = {name: share for name, share in _SHARES.items() if wanted.get(name, True)}
        self.loss = PrivacyLoss(exact, split_epsilon(exact, shares), seeded=self._source.seeded)
        # An epsilon for which noise does not fit into an integer is refused here, for nothing.
        most = max(2 * len(self._sets[2]), 2 * len(self._sets[3]), *domain.shape, 2)
        for part in self.loss.parts.values():
            discrete_laplace_quantile(self._side, part / len(domain), len(synthetic) * most)

    def report(self, records: NDArray[np.integer]) -> QualityReport:
        """Measure the records.

        Parameters
        ----------
        records : ndarray of int, shape (n_rows, d)
            Codes, all of them inside the domain.
        """
        # Privacy. Neighbours differ by one record, so n changes by 1 and, of each marginal, one
        # count c by 1. The synthetic rows and their number m are public. Released, each with noise
        # for its sensitivity and in sequence: n (1); of all pairs, of all triples and of each
        # column the sums over cells of |m c - n s| (2 m a marginal: m - s in the cell of the
        # record, s in each other). The rest is post-processing. Single pairs are given by exact
        # reports only.
        rows = self._numbers([len(records)], "rows", 1)
        columns = self._columns(records, rows)
        left, shape = _grouped(records, self._domain)
        right, _ = _grouped(self._synthetic, self._domain)
        names, pairs, found = self._domain.names, None, []
        for part, order in (("pairs", 2), ("triples", 3)):
            sets = self._sets[order]
            if not sets:
                continue
            unit = 2 * len(self._synthetic) * len(sets)
            sums = [imbalance(left, right, shape, axes) for axes in sets]
            shares = _shares(self._numbers([sum(sums)], part, unit), rows, unit)
            found.append((f"{order}-way k-marginal", *(1000 * (1 - shares[0, [0, 2, 1]]))))
            if self.loss is None and order == 2:
                whole = 2 * len(self._synthetic) * max(len(records), 1)
                pairs = pd.DataFrame(
                    [[names[axis] for axis in axes] for axes in sets], columns=["first", "second"]
                ).assign(distance=np.array(sums) / whole)
        scores = pd.DataFrame(found, columns=["score", "value", "lower", "upper"])
        return QualityReport(columns, scores, pairs, self._level, self.loss)

    def _numbers(self, values: Sequence[int], part: str, sensitivity: int) -> _Numbers:
        """Numbers, exactly or with the noise of a part, and how far the exact ones may be."""
        exact = np.asarray(values, dtype=np.int64)
        if self.loss is None:
            return exact, 0
        epsilon = self.loss.parts[part]
        reach = discrete_laplace_quantile(self._side, epsilon, sensitivity)
        return discrete_laplace(exact, epsilon, sensitivity, random_state=self._source), reach

    def _columns(self, records: NDArray[np.integer], rows: _Numbers) -> pd.DataFrame:
        shape, m = self._domain.shape, len(self._synthetic)
        sums = [imbalance(records, self._synthetic, shape, [axis]) for axis in range(len(shape))]
        shares = _shares(self._numbers(sums, "columns", 2 * m * len(shape)), rows, 2 * m)
        table = pd.DataFrame(shares, columns=["distance", "distance_lower", "distance_upper"])
        table.insert(0, "column", list(self._domain.names))
        return table


_Numbers = tuple[IntArray, int]


def _shares(parts: _Numbers, rows: _Numbers, unit: int) -> FloatArray:
    """Sums over ``unit`` times the number of rows, in [0, 1], and their intervals, (n, 3)."""
    (values, reach), ([n], off) = parts, rows
    high = (values + reach) / (unit * (n - off)) if n > off else np.ones(len(values))
    ends = [values / (unit * max(n, 1)), (values - reach) / (unit * max(n + off, 1)), high]
    found: FloatArray = np.clip(np.column_stack(ends), 0.0, 1.0)
    return found


# --- distances of marginals


def _grouped(
    codes: NDArray[np.integer], domain: Domain
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Codes in groups, numbers of at most 20 and categories of at most 100, and their numbers.

    A missing value keeps a group of its own.
    """
    columns, shape = [], []
    for axis, attribute in enumerate(domain.attributes):
        whole = isinstance(attribute, Categorical) and not attribute.ordered
        n = attribute.n_values
        parts = min(n, _CATEGORIES if whole else _GROUPS)
        column = codes[:, axis].astype(np.int64)
        columns.append(np.where(column < n, column * parts // max(n, 1), parts))
        shape.append(parts + attribute.size - n)
    return np.column_stack(columns), tuple(shape)


def _chosen_axes(n_columns: int, order: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All sets of ``order`` columns, or a random subset if there are too many."""
    most = _MOST_SETS[order]
    if math.comb(n_columns, order) <= most:
        return list(itertools.combinations(range(n_columns), order))
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.choice(n_columns, order, replace=False).tolist())))
    return sorted(chosen)


def imbalance(
    left: NDArray[np.integer], right: NDArray[np.integer], shape: Sequence[int], axes: Sequence[int]
) -> int:
    """The sum over the cells of ``abs(m c - n s)``, an integer.

    c and s are the counts of the ``n`` left and ``m`` right rows: over 2 n m it is the total
    variation distance.
    """
    cells = []
    for codes in (left, right):
        cell = np.zeros(len(codes), dtype=np.int64)
        for axis in axes:
            cell = cell * shape[axis] + codes[:, axis]
        cells.append(cell)
    # Cells empty in both tables are left out.
    _, cell = np.unique(np.concatenate(cells), return_inverse=True)
    each = np.repeat([len(right), -len(left)], [len(left), len(right)])
    sums = np.zeros(int(cell.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(sums, cell, each)
    return int(np.abs(sums).sum())


def k_marginal(
    records: NDArray[np.integer],
    synthetic: NDArray[np.integer],
    shape: Sequence[int],
    order: int = 2,
) -> float:
    """NIST's k-marginal score: (2 - L1 distance) * 500, mean of all marginals.

    Parameters
    ----------
    records, synthetic : ndarray of int, shape (n, d)
        Codes.
    shape : sequence of int
        Number of codes of each column.
    order : int, default=2
        Number of columns of a marginal.

    Returns
    -------
    float
        0 (disjoint) to 1,000 (equal); 0 if one of the tables is empty, 1,000 if both are.

    References
    ----------
    NIST, "Collaborative Research Cycle: SDNist deidentified data report tool", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.quality import k_marginal
    >>> k_marginal(np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 1]]), (2, 2))
    500.0
    """
    n, m = len(records), len(synthetic)
    if not n or not m:
        return 1000.0 * (n == m)
    sets = itertools.combinations(range(len(shape)), order)
    distances = [imbalance(records, synthetic, shape, axes) / (2 * n * m) for axes in sets]
    return 1000.0 * (1.0 - float(np.mean(distances)))
