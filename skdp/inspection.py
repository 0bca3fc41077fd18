"""What a pipeline reads and spends, and expected errors of one column."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd

from ._pipelines import PRIVATE, Step, price, walk
from .accounting import neighbours
from .algorithms.cuboids import consistency_bound
from .algorithms.dpcube import sufficient_epsilon, usefulness

__all__ = [
    "PrivacyReport",
    "assert_private",
    "consistency_bound",
    "privacy_report",
    "sufficient_epsilon",
    "usefulness",
]

# ------------------------------------------------------------------------------------------------
# What a composed estimator reads, spends and reveals, before or after its fit.


def _as_number(epsilon: Fraction | None) -> str:
    """Epsilon as text."""
    return "unknown" if epsilon is None else f"{float(epsilon):.6g}"


def _contributions(estimator: Any) -> int:
    """Bound on the rows of a person that an estimator protects; 0 if it protects records."""
    released = getattr(getattr(estimator, "privacy_loss_", None), "max_rows_per_id", None)
    return getattr(estimator, "max_rows_per_id", released) or released or 0


class PrivacyReport:
    """A table of the steps with verdicts, and the privacy cost of a fit.

    Attributes
    ----------
    steps : list of Step
        In the order in which a ``fit`` runs them, each with ``name``, ``kind``, ``reads``,
        ``verdict``, ``why``, ``remedy`` and ``epsilon`` (Fraction or None where it is not known).
    private : bool
        Whether at least one step is private and no other step breaks the guarantee.
    reasons : list of str
        Why it is not private; empty if ``private``.
    epsilon : Fraction or None
        Epsilon of one ``fit`` of the whole estimator; None if the cost of a step is not known.
    notes : list of str
        Further remarks.
    """

    def __init__(self, name: str, steps: list[Step]) -> None:
        self.name = name
        self.steps = steps
        self.epsilon = price(steps)
        self.reasons = [
            f"{step.name or step.kind} ({step.kind}) {step.why} Remedy: {step.remedy}"
            for step in steps
            if not step.sound
        ]
        private = [step for step in steps if step.verdict == PRIVATE]
        if not private and not self.reasons:
            self.reasons = ["No step is private: nothing that is learned here is protected."]
        self.private = not self.reasons
        units = sorted({_contributions(step.estimator) for step in private})
        self.notes = [f"Neighbours: {neighbours(most or None)}." for most in units]
        if len(units) > 1:
            self.notes.append("Some steps protect other neighbours than others: the sum neither.")
        if any(getattr(step.estimator, "ledger", 0) is None for step in private):
            self.notes.append("A private step has no ledger: what it spends is not recorded.")

    def to_frame(self) -> pd.DataFrame:
        """All steps.

        Returns
        -------
        DataFrame
            Columns ``step``, ``kind``, ``reads``, ``verdict``, ``epsilon`` (NaN where it is not
            known), ``why``, ``remedy``.
        """
        names = ("name", "kind", "reads", "verdict", "epsilon", "why", "remedy")
        rows = [[getattr(step, name) for name in names] for step in self.steps]
        return pd.DataFrame(rows, columns=["step", *names[1:]]).astype({"epsilon": float})

    def __repr__(self) -> str:
        verdict = "private" if self.private else "NOT private"
        lines = [f"{self.name} is {verdict}; one fit spends epsilon = {_as_number(self.epsilon)}"]
        for step in self.steps:
            spends = "" if step.epsilon == 0 else f", epsilon {_as_number(step.epsilon)}"
            lines.append(
                f"  [{step.verdict}] {step.name or '(the whole)'}: {step.kind} reads {step.reads}"
                f"{spends}. It {step.why}" + (f" Remedy: {step.remedy}" if step.remedy else "")
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def privacy_report(estimator: Any) -> PrivacyReport:
    """List the steps of a composed estimator: what each reads, spends and reveals.

    Records may meet estimators of skdp, and in front of them a few stateless steps; what is trained
    on a release, estimators of known libraries with plain parameters. Pipelines, column
    transformers and feature unions are examined step by step. Whatever else there is gets the
    verdict "unknown", never "private".

    Parameters
    ----------
    estimator : estimator
        Before or after its fit. Nothing is fitted and no row is read.

    Returns
    -------
    PrivacyReport
        Prints as text, in notebooks as a table; ``to_frame()`` gives a DataFrame.

    Raises
    ------
    TypeError
        If ``estimator`` is a class, or not an estimator.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import HDPViewSynthesizer, Numeric, PrivateClassifier
    >>> from skdp.inspection import privacy_report
    >>> release = HDPViewSynthesizer(epsilon=0.5, domain=Numeric(0, 1))
    >>> model = PrivateClassifier(LogisticRegression(), release, classes=[0, 1])
    >>> report = privacy_report(model)
    >>> report.private, float(report.epsilon)
    (True, 0.5)
    >>> privacy_report(make_pipeline(StandardScaler(), model)).private
    False
    """
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        given = getattr(estimator, "__name__", type(estimator).__name__)
        raise TypeError(f"privacy_report needs an instance of a class with a fit, got {given}.")
    return PrivacyReport(type(estimator).__name__, walk(estimator))


def assert_private(estimator: Any) -> None:
    """Raise unless every step of ``estimator`` keeps the guarantee.

    Parameters
    ----------
    estimator : estimator

    Raises
    ------
    AssertionError
        With the reasons: a step that leaks or is not known, a seed.

    Examples
    --------
    >>> from skdp import HDPViewSynthesizer, Numeric
    >>> from skdp.inspection import assert_private
    >>> assert_private(HDPViewSynthesizer(epsilon=0.5, domain=Numeric(0, 1)))
    """
    report = privacy_report(estimator)
    if not report.private:
        reasons = "\n".join(f"- {reason}" for reason in report.reasons)
        raise AssertionError(f"{report.name} is not private:\n{reasons}")
