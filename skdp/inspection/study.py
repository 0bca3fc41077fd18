"""What a whole study spends: releases, models, searches, scores and attacks, beside the ledger."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import pandas as pd

from .._pipelines import total_price
from ..accounting import PrivacyLedger, PrivacyLoss
from ..release import QueryResult
from .card import ModelCard
from .privacy import PrivacyReport, privacy_report

__all__ = ["StudyReport", "study_report"]


class _Part(NamedTuple):
    """One thing of a study; epsilon is None where the thing does not know it."""

    name: str
    kind: str
    verdict: str
    epsilon: Fraction | None
    remark: str


class StudyReport:
    """A table of the parts of a study with verdicts, and the total of the ledger beside.

    Attributes
    ----------
    reports : dict of str to PrivacyReport
        Of the parts that are estimators.
    private : bool
        Whether no estimator breaks the guarantee and nothing is for the data owner alone.
    reasons : list of str
        Why it is not private; empty if ``private``.
    epsilon : Fraction or None
        Sum of what the parts spend; None if one of them does not know it.
    spent : Fraction or None
        Total of the ledger; None without one.
    notes : list of str
        Further remarks.
    """

    def __init__(
        self, parts: list[_Part], reports: dict[str, PrivacyReport], ledger: PrivacyLedger | None
    ) -> None:
        self._parts, self.reports = parts, reports
        self.epsilon = total_price(part.epsilon for part in parts)
        self.spent = None if ledger is None else ledger.spent
        self._charges = pd.DataFrame() if ledger is None else ledger.to_frame()
        self.reasons = [
            f"{part.name}: {part.remark}"
            for part in parts
            if part.verdict in ("NOT private", "data owner only")
        ]
        self.reasons += [
            f"{name}: the ledger says that its noise came from a seed."
            for name in (
                self._charges["name"][self._charges["seeded"]] if len(self._charges) else ()
            )
        ]
        self.private = not self.reasons
        self.notes = list(self._compared())

    def _compared(self) -> Iterator[str]:
        """What the sum of the parts says beside the ledger."""
        silent = [part.name for part in self._parts if part.epsilon is None]
        if silent:
            yield (
                f"{', '.join(silent)} do not know what they cost: "
                + ("no ledger was given." if self.spent is None else "see the ledger.")
            )
        if self.spent is None:
            yield "Give ledger= to see all that was spent on these records."
            return
        known = sum((part.epsilon or Fraction(0) for part in self._parts), Fraction(0))
        if known > self.spent:
            yield (
                "The ledger has less than these parts spend: a part is not fitted yet, was fitted "
                "without this ledger, or is listed twice."
            )
        elif known < self.spent:
            yield (
                f"The ledger has {float(self.spent - known):.6g} more than these parts know of: "
                "repeated fits, folds, scores, or releases that are not listed. All of it counts."
            )

    def to_frame(self) -> pd.DataFrame:
        """All parts.

        Returns
        -------
        DataFrame
            Columns ``part``, ``kind``, ``verdict``, ``epsilon`` (NaN where the part does not know
            it) and ``remark``.
        """
        frame = pd.DataFrame(self._parts, columns=["part", "kind", "verdict", "epsilon", "remark"])
        return frame.astype({"epsilon": float})

    def charges(self) -> pd.DataFrame:
        """All charges of the ledger, also those of parts that are not listed.

        Returns
        -------
        DataFrame
            As of `PrivacyLedger.to_frame`; empty without a ledger.
        """
        return self._charges.copy()

    def _totals(self) -> Iterator[str]:
        known = "unknown in part" if self.epsilon is None else f"{float(self.epsilon):.6g}"
        yield f"its parts spend epsilon = {known}"
        if self.spent is not None:
            yield f"the ledger has {float(self.spent):.6g} in {len(self._charges):,} charges"

    @property
    def _verdict(self) -> str:
        return "private" if self.private else "NOT private"

    def __repr__(self) -> str:
        lines = [f"The study is {self._verdict}; {', '.join(self._totals())}"]
        for part in self._parts:
            spends = "" if part.epsilon is None else f", epsilon {float(part.epsilon):.6g}"
            lines.append(
                f"  [{part.verdict}] {part.name}: {part.kind}{spends}. {part.remark}".rstrip()
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(
            index=False, float_format=lambda one: f"{one:.6g}", na_rep="", border=0
        )
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<div>The study is <b>{self._verdict}</b>; {html.escape(', '.join(self._totals()))}"
            f"{table}<ul>{notes}</ul></div>"
        )


def study_report(parts: Mapping[str, Any], *, ledger: PrivacyLedger | None = None) -> StudyReport:
    """Say of every part of a study what it spends, with the total of the ledger beside.

    Parameters
    ----------
    parts : mapping of str to object
        Estimators, searches and pipelines, before or after their fit; reports of private scores;
        single private scores; reports of attacks and audits with canaries.
    ledger : PrivacyLedger, default=None
        Budget of the records.

    Returns
    -------
    StudyReport
        Prints as text, in notebooks as a table.

    Raises
    ------
    TypeError
        If ``parts`` is no mapping, or a part is something else.

    Notes
    -----
    Nothing is fitted, and no record is read. What was released of the same records adds up, listed
    here or not: the total of the ledger is what counts.

    Examples
    --------
    >>> from skdp import MarginalSynthesizer, Numeric, PrivacyLedger, RangeTreeHistogram
    >>> from skdp.inspection import study_report
    >>> ledger = PrivacyLedger(2)
    >>> table = MarginalSynthesizer(1, domain=Numeric(0, 1, bins=4), ledger=ledger)
    >>> tree = RangeTreeHistogram(0.5, domain=Numeric(0, 1, bins=64), ledger=ledger)
    >>> report = study_report({"table": table, "ranges": tree}, ledger=ledger)
    >>> report.private, float(report.epsilon), float(report.spent)
    (True, 1.5, 0.0)
    """
    if not isinstance(parts, Mapping):
        raise TypeError(
            f"study_report needs a mapping of names to parts, got {type(parts).__name__}: "
            'for example {"table": synthesizer, "model": search}.'
        )
    reports = {
        name: privacy_report(part)
        for name, part in parts.items()
        if hasattr(part, "fit") or isinstance(part, type)
    }
    found = [
        _of_estimator(name, part, reports[name]) if name in reports else _of_result(name, part)
        for name, part in parts.items()
    ]
    return StudyReport(found, reports, ledger)


def _of_estimator(name: str, estimator: Any, report: PrivacyReport) -> _Part:
    verdict = "private" if report.private else "NOT private"
    loss = getattr(estimator, "privacy_loss_", None)
    epsilon = loss.epsilon if isinstance(loss, PrivacyLoss) else report.epsilon
    return _Part(name, type(estimator).__name__, verdict, epsilon, " ".join(report.reasons))


def _of_result(name: str, result: Any) -> _Part:
    kind = type(result).__name__
    loss = getattr(result, "privacy_loss", None)
    if isinstance(loss, PrivacyLoss):
        if loss.seeded:
            return _Part(name, kind, "NOT private", loss.epsilon, "the noise comes from a seed.")
        return _Part(name, kind, "private", loss.epsilon, "")
    if isinstance(result, QueryResult):
        return _Part(name, kind, "released", None, "one score; its charge tells of its seed.")
    if hasattr(result, "publishable") and not isinstance(result, ModelCard):
        if result.publishable:
            return _Part(name, kind, "public", Fraction(0), "read no record.")
        remark = "holds exact facts about the records."
        return _Part(name, kind, "data owner only", Fraction(0), remark)
    raise TypeError(
        f"The part {name!r} is a {kind}: parts are estimators, reports of scores, private scores, "
        "and reports of attacks."
    )
