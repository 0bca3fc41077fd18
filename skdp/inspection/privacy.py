"""What a composed estimator reads, spends and reveals, before or after its fit."""

from __future__ import annotations

import html
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pandas as pd
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from .._pipelines import Step, has_secret_folds, n_folds, total_price, walk
from ..accounting import neighbours
from ..domain.report import html_table
from ..model_selection import PrivateKFold
from ..release.page import element, listed


def _as_number(epsilon: Fraction | None) -> str:
    """Epsilon as text."""
    return "unknown" if epsilon is None else f"{float(epsilon):.6g}"


def _contributions(estimator: Any) -> int | None:
    """Bound on the rows of a person that an estimator protects; None if it protects records."""
    loss = getattr(estimator, "privacy_loss_", None)
    released = getattr(loss, "max_contributions", None)
    if getattr(estimator, "synthesizer", None) is not None:
        # That has the bound, and the estimator around it none.
        return released
    return getattr(estimator, "max_contributions", released)


class PrivacyReport:
    """A table of the steps with verdicts, and the privacy cost of a fit.

    Attributes
    ----------
    steps : list of Step
        In the order in which a ``fit`` runs them, each with ``name``, ``kind``, ``reads``,
        ``verdict``, ``why``, ``remedy``, ``epsilon`` (Fraction or None where it is not known)
        and ``n_fits``.
    private : bool
        Whether at least one step is private and no other step breaks the guarantee.
    reasons : list of str
        Why it is not private; empty if ``private``.
    epsilon : Fraction or None
        Epsilon of one ``fit`` of the whole estimator; None if the cost of a step is not known.
    cv_epsilon : Fraction or None
        Epsilon of cross-validation with the given ``cv``; None without ``cv``, or if it is not
        known.
    notes : list of str
        Further remarks.
    """

    def __init__(self, name: str, steps: list[Step], cv: Any) -> None:
        self.name = name
        self.steps = steps
        self.epsilon = total_price(step.epsilon for step in steps)
        self.reasons = [
            f"{step.name or step.kind} ({step.kind}) {step.why}"
            + (f" Remedy: {step.remedy}" if step.remedy else "")
            for step in steps
            if not step.sound
        ]
        if not any(step.verdict == "private" for step in steps) and not self.reasons:
            self.reasons = ["No step is private: nothing that is learned here is protected."]
        self.private = not self.reasons
        self.notes: list[str] = []
        self.cv_epsilon: Fraction | None = None
        if cv is not None:
            self._price_folds(cv)
        units = {_contributions(step.estimator) for step in steps if step.verdict == "private"}
        self.notes += [
            f"Neighbours: {neighbours(most)}. Steps on different columns read the same people: "
            "what they spend adds up."
            for most in sorted(units, key=lambda most: most or 0)
        ]
        if None in units and len(units) > 1:
            self.notes.append(
                "Some steps protect a record and some a person: their sum protects neither."
            )
        if any(
            step.estimator is not None and getattr(step.estimator, "ledger", 0) is None
            for step in steps
            if step.verdict == "private"
        ):
            self.notes.append("A private step has no ledger: what it spends is not recorded.")

    def _price_folds(self, cv: Any) -> None:
        k = n_folds(cv)
        if k is None:
            self.notes.append(
                "The number of folds is not known or depends on the rows, and so does the price of "
                "cross-validation: give a number of folds."
            )
            return
        persons = any(getattr(step.estimator, "unit", None) is not None for step in self.steps)
        secret = has_secret_folds(cv)
        fits = k - 1 if secret and not persons else k
        self.cv_epsilon = None if self.epsilon is None else fits * self.epsilon
        if secret and persons:
            note = f"The rows of a person lie in any of the {k} folds: all {k} fits use them."
        elif secret:
            note = (
                f"{k} secret folds cost ({k} - 1) times a fit in total: private_cross_val_score "
                "charges that, and its score's own epsilon. A plain cross_val_score charges "
                f"{k} times."
            )
        else:
            why = (
                "the folds come from a seed, and anyone who knows it knows the fold of every "
                "record. PrivateKFold without random_state"
                if isinstance(cv, PrivateKFold)
                else "adding one record moves others between folds. PrivateKFold"
            )
            note = (
                f"{k} folds cost {k} fits. The sum does not bound the loss of all folds together: "
                f"{why} costs one fit less and bounds all folds together."
            )
        self.notes.append(note)
        self.notes.append(
            "Scores on true held-out rows (cross_val_score, score) are exact and not private: for "
            "the data owner only. error_score=nan turns a refused charge into a nan: give "
            "error_score='raise'."
        )

    def to_frame(self) -> pd.DataFrame:
        """All steps.

        Returns
        -------
        DataFrame
            Columns ``step``, ``kind``, ``reads``, ``verdict``, ``epsilon`` (NaN where it is not
            known), ``fits``, ``why``, ``remedy``.
        """
        return pd.DataFrame(
            [
                {
                    "step": step.name or "(the whole)",
                    "kind": step.kind,
                    "reads": step.reads,
                    "verdict": step.verdict,
                    "epsilon": float("nan") if step.epsilon is None else float(step.epsilon),
                    "fits": step.n_fits,
                    "why": step.why,
                    "remedy": step.remedy,
                }
                for step in self.steps
            ],
            columns=["step", "kind", "reads", "verdict", "epsilon", "fits", "why", "remedy"],
        )

    @property
    def _verdict(self) -> str:
        return "private" if self.private else "NOT private"

    def _totals(self) -> Iterator[str]:
        yield f"one fit spends epsilon = {_as_number(self.epsilon)}"
        if self.cv_epsilon is not None:
            yield f"cross-validation spends epsilon = {_as_number(self.cv_epsilon)}"

    def __repr__(self) -> str:
        lines = [f"{self.name} is {self._verdict}; {', '.join(self._totals())}"]
        for step in self.steps:
            times = f" in {step.n_fits:,} fits" if step.n_fits != 1 else ""
            spends = "" if step.epsilon == 0 else f", epsilon {_as_number(step.epsilon)}{times}"
            lines.append(
                f"  [{step.verdict}] {step.name or '(the whole)'}: {step.kind} reads {step.reads}"
                f"{spends}. It {step.why}"
            )
            if step.remedy:
                lines.append(f"      remedy: {step.remedy}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = self.to_frame().assign(epsilon=[_as_number(step.epsilon) for step in self.steps])
        return element(
            "div",
            f"{element('b', html.escape(self.name))} is {element('b', self._verdict)}; ",
            html.escape(", ".join(self._totals())),
            html_table([*map(str, shown)], shown.itertuples(index=False)),
            listed(map(html.escape, self.notes)),
        )


def privacy_report(estimator: Any, cv: Any = None) -> PrivacyReport:
    """List the steps of a composed estimator: what each reads, spends and reveals.

    Pipelines (also imbalanced-learn's), column transformers, feature unions, grid and random
    searches with all their candidates, voting, declared thresholds, transformed targets, frozen
    estimators, and skdp's own meta-estimators are examined step by step. A step that is not known
    gets the verdict "unknown", never "private".

    Parameters
    ----------
    estimator : estimator
        Before or after its fit. Nothing is fitted and no row is read.
    cv : int, splitter or None, default=None
        Cross-validation to compute the privacy cost of.

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
    >>> report = privacy_report(model, cv=5)
    >>> report.private, float(report.epsilon), float(report.cv_epsilon)
    (True, 0.5, 2.5)
    >>> privacy_report(make_pipeline(StandardScaler(), model)).private
    False
    """
    if isinstance(estimator, type):
        raise TypeError(
            f"privacy_report needs an estimator, got the class {estimator.__name__}: make an "
            f"instance, {estimator.__name__}(...)."
        )
    if not hasattr(estimator, "fit"):
        raise TypeError(
            f"privacy_report needs an estimator, got {type(estimator).__name__}, which has no fit."
        )
    report = PrivacyReport(type(estimator).__name__, walk(estimator), cv)
    if (
        isinstance(estimator, GridSearchCV | RandomizedSearchCV)
        and estimator.error_score != "raise"
    ):
        report.notes.append(
            "error_score=nan turns a charge that the ledger refuses into a score of nan: give "
            "error_score='raise'."
        )
    return report


def assert_private(estimator: Any, cv: Any = None) -> None:
    """Raise unless every step of ``estimator`` keeps the guarantee.

    Parameters
    ----------
    estimator : estimator
    cv : int, splitter or None, default=None
        As in `privacy_report`.

    Raises
    ------
    AssertionError
        With the reasons: a step that leaks or is not known, a seed, an inferred domain.

    Examples
    --------
    >>> from skdp import HDPViewSynthesizer, Numeric
    >>> from skdp.inspection import assert_private
    >>> assert_private(HDPViewSynthesizer(epsilon=0.5, domain=Numeric(0, 1)))
    """
    report = privacy_report(estimator, cv)
    if not report.private:
        reasons = "\n".join(f"- {reason}" for reason in report.reasons)
        raise AssertionError(f"{report.name} is not private:\n{reasons}")
