"""Model cards: what was trained, on which declared columns, for what budget, and how good it is."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .._files import write_text
from .._pipelines import total_price
from ..accounting import PrivacyLedger, PrivacyLoss
from ..domain import Domain
from ..domain.report import html_table
from ..domain.values import is_missing
from ..model_selection import ScoreReport
from ..release import QueryResult
from ..release.page import document, element, listed
from .privacy import PrivacyReport, as_number, privacy_report

_OWNER = "NOT PRIVATE: this card holds exact numbers about the records, for the data owner only."
# Parameters that are shown elsewhere, or that nobody else may know.
_HIDDEN = {"domain", "epsilon", "ledger", "random_state"}
_LONGEST = 80


@dataclass
class _Table:
    """Rows of text below a header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class _Section:
    """A heading with sentences, tables and points; ``warning`` comes first."""

    title: str
    text: list[str] = field(default_factory=list)
    tables: list[_Table] = field(default_factory=list)
    points: list[str] = field(default_factory=list)
    warning: str = ""


@dataclass(eq=False, repr=False)
class ModelCard:
    """A model card; prints as Markdown, shows as HTML.

    Attributes
    ----------
    title : str
    publishable : bool
        False if it holds attacks or other exact numbers about the records. Such a card says so at
        its top.
    """

    title: str
    publishable: bool
    _sections: list[_Section]

    def to_markdown(self) -> str:
        """The card as Markdown.

        Returns
        -------
        str
        """
        parts = [f"# {_plain(self.title)}"]
        if not self.publishable:
            parts.append(f"**{_OWNER}**")
        for section in self._sections:
            parts.append(f"## {section.title}")
            if section.warning:
                parts.append(f"**{_plain(section.warning)}**")
            parts += map(_plain, section.text)
            parts += map(_markdown_table, section.tables)
            if section.points:
                parts.append("\n".join(f"- {_plain(point)}" for point in section.points))
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """The card as a page of HTML that stands by itself and loads nothing.

        Returns
        -------
        str
        """
        return document(self.title, list(self._html()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the card: HTML to a path that ends in ``.html``, Markdown to one in ``.md``.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        ValueError
            For other endings.
        """
        texts = {".html": self.to_html, ".md": self.to_markdown}
        ending = Path(path).suffix
        if ending not in texts:
            raise ValueError(f"path must end in .html or .md, got {os.fspath(path)!r}.")
        write_text(path, texts[ending]())

    def __repr__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        return element("div", *self._html())

    def _html(self) -> Iterator[str]:
        yield element("h1", html.escape(self.title))
        if not self.publishable:
            yield element("p", _OWNER, class_="warn")
        for section in self._sections:
            yield element("h2", html.escape(section.title))
            if section.warning:
                yield element("p", html.escape(section.warning), class_="warn")
            for text in section.text:
                yield element("p", html.escape(text))
            for table in section.tables:
                yield html_table(table.header, table.rows)
            if section.points:
                yield listed(map(html.escape, section.points))


def model_card(
    estimator: Any,
    *,
    title: str | None = None,
    intended_use: str | None = None,
    scores: Mapping[str, Any] | None = None,
    attacks: Iterable[Any] = (),
    ledger: PrivacyLedger | None = None,
    owner_only: bool = False,
) -> ModelCard:
    """Describe a fitted estimator: training, declared columns, budget, scores, limits.

    Parameters
    ----------
    estimator : fitted estimator
        One of this library, or composed of them.
    title : str, default=None
        By default the name of its class.
    intended_use : str, default=None
        What it is for, in your words.
    scores : mapping of str to score, default=None
        Private scores with intervals (`QueryResult`, `ScoreReport`, `PrivateQualityReport`),
        numbers, or triples (value, lower, upper). About a plain number the card says that its
        privacy is not known.
    attacks : iterable of AttackReport or CanaryAudit, default=()
        They are not private, unless an audit read no record: they need ``owner_only=True``.
    ledger : PrivacyLedger, default=None
        Budget of the records. All its charges are listed with their total: what this estimator
        cost, and what other releases, scores and searches of the same records did.
    owner_only : bool, default=False
        Whether the card is for the data owner alone. True accepts what is not private, and marks
        the card.

    Returns
    -------
    ModelCard
        With ``to_html()``, ``to_markdown()`` and ``save(path)``.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If it is not an estimator, or a score is of another type.
    ValueError
        If something that is not private is given without ``owner_only=True``.

    Notes
    -----
    The card reads the estimator and what is given, and no record. The parameters of the estimator
    are on it, so they must be public, as they must be for the guarantee.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import Categorical, Domain, MarginalSynthesizer
    >>> from skdp.inspection import model_card
    >>> domain = Domain({"sex": Categorical(["F", "M"]), "answer": Categorical(["no", "yes"])})
    >>> rows = pd.DataFrame({"sex": ["F", "M"] * 500, "answer": ["no", "yes"] * 500})
    >>> card = model_card(MarginalSynthesizer(epsilon=1, domain=domain).fit(rows))
    >>> print(card.to_markdown().splitlines()[0])
    # MarginalSynthesizer
    """
    attacks = list(attacks)
    exact = [
        type(thing).__name__
        for thing in [*attacks, *(scores or {}).values()]
        if not getattr(thing, "publishable", True)
    ]
    if exact and not owner_only:
        raise ValueError(
            f"{', '.join(sorted(set(exact)))} is not private and refuses to be published. Leave it "
            "out, or make a card for the data owner alone with owner_only=True."
        )
    report = privacy_report(estimator)
    check_is_fitted(estimator)
    if not owner_only and any(domain.inferred for domain in _domains(report.steps)):
        raise ValueError(
            "The domain was read from the records, and the card would show it. Declare it, or make "
            "a card for the data owner alone with owner_only=True."
        )
    sections = [
        _trained(estimator, intended_use),
        _columns(report.steps),
        _budget(estimator, report),
    ]
    if ledger is not None:
        sections.append(_spent(ledger))
    if scores:
        sections.append(_scored(scores))
    if attacks:
        sections.append(_attacked(attacks))
    sections.append(_limits(report.epsilon))
    return ModelCard(title or type(estimator).__name__, not owner_only, sections)


def _trained(estimator: Any, intended_use: str | None) -> _Section:
    name = f"{type(estimator).__module__.split('.')[0]}.{type(estimator).__qualname__}"
    rows = [("Estimator", name)]
    with suppress(PackageNotFoundError):
        rows.append(("Made with", f"skdp {version('skdp')}"))
    for key, value in sorted(estimator.get_params(deep=False).items()):
        if key not in _HIDDEN:
            text = " ".join(repr(value).split())
            rows.append((key, text if len(text) <= _LONGEST else text[:_LONGEST] + "..."))
    use = [] if intended_use is None else [intended_use]
    return _Section("What was trained", use, [_Table(("parameter", "value"), rows)])


def _domains(steps: Sequence[Any]) -> list[Domain]:
    domains: list[Domain] = []
    for step in steps:
        for name in ("domain_", "domain"):
            found = getattr(step.estimator, name, None)
            if isinstance(found, Domain):
                if found not in domains:
                    domains.append(found)
                break
    return domains


def _columns(steps: Sequence[Any]) -> _Section:
    domains = _domains(steps)
    section = _Section("Declared columns")
    if not domains:
        section.text = ["The estimator keeps no domain: see its parameters for bounds."]
        return section
    section.text = ["Values outside of these ranges and categories were clipped or skipped."]
    for domain in domains:
        if domain.inferred:
            section.warning = "The domain was read from the records, which is not private."
        described = domain.describe()
        header = ("column", *map(str, described.columns))
        rows = [
            (str(name), *("" if is_missing(one) else str(one) for one in row))
            for name, *row in described.itertuples()
        ]
        section.tables.append(_Table(header, rows))
    return section


def _budget(estimator: Any, report: Any) -> _Section:
    section = _Section("Privacy")
    if not report.private:
        section.warning = "There is no guarantee: " + " ".join(report.reasons)
    loss = getattr(estimator, "privacy_loss_", None)
    if isinstance(loss, PrivacyLoss):
        epsilon, unit = loss.epsilon, loss.neighbours
        if loss.seeded and report.private:
            section.warning = "There is no guarantee: the noise comes from a seed."
        parts = [(name, f"{float(part):.6g}") for name, part in loss.parts.items()]
        section.tables.append(_Table(("part of epsilon", "value"), parts))
    else:
        epsilon, unit = report.epsilon, "see the steps"
    shown = as_number(epsilon)
    section.text = [f"Pure differential privacy with epsilon = {shown}; neighbours: {unit}."]
    if len(report.steps) > 1:
        rows = [
            (step.name or "(the whole)", step.kind, step.verdict, as_number(step.epsilon))
            for step in report.steps
        ]
        section.tables.append(_Table(("step", "kind", "verdict", "epsilon"), rows))
    section.points = list(report.notes)
    return section


def _spent(ledger: PrivacyLedger) -> _Section:
    entries = ledger.to_frame()
    rows: list[Sequence[str]] = [
        (str(entry["name"]), f"{entry['epsilon']:.6g}" + (" (seeded)" if entry["seeded"] else ""))
        for _, entry in entries.iterrows()
    ]
    rows.append(("total", f"{float(ledger.spent):.6g}"))
    limit = "no limit" if ledger.epsilon is None else f"a limit of {float(ledger.epsilon):g}"
    return _Section(
        "All that was spent on these records",
        [f"The ledger has {limit}. What was released of the same records adds up."],
        [_Table(("release", "epsilon"), rows)],
    )


def _scored(scores: Mapping[str, Any]) -> _Section:
    rows: list[Sequence[str]] = []
    for name, score in scores.items():
        rows += [(name + more, *cells) for more, *cells in _score(score)]
    return _Section("Scores", [], [_Table(("score", "value", "interval", "remark"), rows)])


def _score(score: Any) -> Iterator[tuple[str, str, str, str]]:
    """What to add to the name of a score, its value, its interval, and a remark."""
    if isinstance(score, QueryResult):
        yield "", *_cells(score.value, score.lower, score.upper), score.guarantee
    elif isinstance(score, ScoreReport):
        for name in score.metrics:
            for _, shown, ends, words in _score(score[name]):
                yield f": {name}", shown, ends, words
    elif isinstance(getattr(score, "scores", None), pd.DataFrame):
        # A private quality report.
        remark = f"private, intervals at {100 * score.level:g}%"
        for row in score.scores.itertuples(index=False):
            yield f": {row.score}", *_cells(row.value, row.lower, row.upper), remark
        for row in () if score.learners is None else score.learners.itertuples(index=False):
            cells = _cells(row.accuracy, row.lower, row.upper)
            yield f": {row.learner}", *cells, f"accuracy for {score.target}; {remark}"
    elif isinstance(getattr(score, "scores", None), Mapping):
        for name, value in score.scores.items():
            yield f": {name}", f"{value:.4g}", "", "exact: NOT private"
    elif isinstance(score, Sequence) and not isinstance(score, str) and len(score) == 3:
        yield "", *_cells(*map(float, score)), "as given; its privacy is not known"
    else:
        try:
            value = float(score)
        except (TypeError, ValueError):
            raise TypeError(
                "A score must be a QueryResult, a quality report, a number or a triple (value, "
                f"lower, upper), got {type(score).__name__}."
            ) from None
        yield "", f"{value:.4g}", "", "as given; its privacy is not known"


def _cells(value: float, low: float, high: float) -> tuple[str, str]:
    return f"{value:.4g}", f"{low:.4g} to {high:.4g}"


def _attacked(attacks: Sequence[Any]) -> _Section:
    section = _Section("Attacks")
    for attack in attacks:
        section.points.append(f"{type(attack).__name__}: {attack.verdict}")
        table = getattr(attack, "attacks", None)
        if isinstance(table, pd.DataFrame):
            names = ["attack", "success", "baseline", "allowed", "copy", "epsilon_lower_bound"]
            rows = [
                (str(name), *(f"{one:.3f}" for one in row))
                for name, *row in table[names].itertuples(index=False)
            ]
            section.tables.append(_Table([name.replace("_", " ") for name in names], rows))
    return section


def _limits(epsilon: Any) -> _Section:
    points = [
        "The guarantee is about what the release reveals of the presence of one record (or person, "
        "where it says so). It does not prevent conclusions about people in general.",
        "It holds whatever else a reader knows. Epsilons of releases of the same records add up.",
        "Scores are about the records at hand; how far these stand for others is not in them.",
        "Small groups have large relative errors: noise does not shrink with the group.",
    ]
    if epsilon is not None and epsilon > 5:
        points.append(
            f"Epsilon is large: the probability of an output may change by a factor of "
            f"{math.exp(min(float(epsilon), 700.0)):.3g} with one record."
        )
    return _Section("Limits", points=points)


def _plain(text: str) -> str:
    """Text whose characters Markdown does not interpret."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def _markdown_table(table: _Table) -> str:
    lines = [table.header, ["---"] * len(table.header)]
    body = [[_plain(cell) for cell in row] for row in table.rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [*lines, *body])


# --- what a whole study spends: releases, models, searches, scores and attacks, beside the ledger


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
        if len(self._charges):
            self.reasons += [
                f"{name}: the ledger says that its noise came from a seed."
                for name in self._charges["name"][self._charges["seeded"]]
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
        known = "unknown in part" if self.epsilon is None else as_number(self.epsilon)
        yield f"its parts spend epsilon = {known}"
        if self.spent is not None:
            yield f"the ledger has {as_number(self.spent)} in {len(self._charges):,} charges"

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
        epsilons = ["" if part.epsilon is None else as_number(part.epsilon) for part in self._parts]
        shown = self.to_frame().assign(epsilon=epsilons)
        return element(
            "div",
            f"The study is {element('b', self._verdict)}; ",
            html.escape(", ".join(self._totals())),
            html_table([*map(str, shown)], shown.itertuples(index=False)),
            listed(map(html.escape, self.notes)),
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
