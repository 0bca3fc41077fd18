"""Quality reports of synthetic tables that any library made."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from .._base import match_rows
from .._random import caller_level
from ..accounting import PrivacyLedger, charge
from ..domain import Domain
from ..exceptions import DomainError, PrivacyLeakWarning
from ._private import PrivateQualityReport, PrivateScores
from ._report import QualityReport, compare


def quality_report(
    records: Any,
    synthetic: Any,
    *,
    domain: Any = None,
    target: str | None = None,
    epsilon: Any = None,
    level: float = 0.95,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
) -> QualityReport | PrivateQualityReport:
    """Compare synthetic rows, made by any library, with the records.

    Without ``epsilon`` the report is exact and NOT private: for the data owner only. With it, the
    report is differentially private and may be published.

    Parameters
    ----------
    records : frame or array-like of shape (n_rows, n_columns)
        The records.
    synthetic : frame or array-like of shape (n_synthetic, n_columns)
        Synthetic rows with the same columns. For a private report they must be public: released
        under an epsilon of their own, or made without the records.
    domain : Domain, default=None
        Columns and their values. None infers it from the records, which is not private: a report
        with ``epsilon`` needs it declared.
    target : str, default=None
        Column with at most 20 codes that learners predict. None trains nothing.
    epsilon : number or Fraction, default=None
        Privacy parameter of the report.
    level : float, default=0.95
        Confidence of each interval of a private report.
    ledger : PrivacyLedger, default=None
        Privacy budget of the records, charged before one of them is read. For a private report.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of splits, learners and choices of columns. For a private report an int seeds the noise
        too: for experiments only, no guarantee.

    Returns
    -------
    QualityReport or PrivateQualityReport
        The latter with ``epsilon``. It has no propensity score and no correlations: the first
        trains on records, and the noise of the second is larger than the usual differences. The
        k-marginal scores cover both.

    Raises
    ------
    DomainError
        If the columns do not fit the domain, or ``epsilon`` is given without a declared domain.
    ValueError
        If ``target`` has too many codes, ``epsilon`` or ``level`` is out of range, or no synthetic
        row lies in the domain. Nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Warns
    -----
    PrivacyLeakWarning
        Without ``epsilon``.

    Notes
    -----
    Rows with a value outside of the domain are skipped.

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
    if domain is None and epsilon is None:
        domain = Domain.infer(records)
    rows, found = match_rows(records, None, domain, target, structure=True)
    drawn = valid_codes(match_rows(synthetic, None, found, target, structure=True)[0], found)
    if not len(drawn):
        raise ValueError("No synthetic row lies in the domain: there is nothing to compare.")
    return report_on(rows, drawn, found, target, epsilon, float(level), ledger, random_state)


def report_on(
    rows: Any,
    synthetic: NDArray[np.integer],
    domain: Domain,
    target: str | None,
    epsilon: Any,
    level: float,
    ledger: PrivacyLedger | None,
    random_state: Any,
) -> QualityReport | PrivateQualityReport:
    """The report of rows whose schema was checked and of codes of synthetic rows."""
    if epsilon is None:
        warnings.warn(
            "quality_report compares with the exact records: the report is not private and must "
            "stay with the data owner. With epsilon= it is private.",
            PrivacyLeakWarning,
            stacklevel=caller_level(),
        )
        return compare(valid_codes(rows, domain), synthetic, domain, target, random_state)
    if domain.inferred:
        raise DomainError(
            "The domain was inferred from the records: a private report needs one that is declared."
        )
    plan = PrivateScores(synthetic, domain, target, epsilon, level, random_state)
    charge(ledger, "quality_report", plan.loss)
    return plan.release(valid_codes(rows, domain))


def valid_codes(rows: Any, domain: Domain) -> NDArray[np.integer]:
    """Codes of the rows that lie in the domain."""
    codes = domain.encode(rows)
    return codes[(codes >= 0).all(axis=1)]
