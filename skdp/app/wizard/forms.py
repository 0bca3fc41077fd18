"""Forms of the wizard, and the commands of the shell that do what the pages say.

These commands are shown, written to a file, and run.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...domain import Categorical, Date, Datetime, Domain, DomainReport
from ...domain.query import quoted
from ...domain.schemas import Draft
from ...exceptions import DomainError
from ...expected import bar_of


class Files(NamedTuple):
    """The files of one release: the same name with different ends."""

    declaration: Path
    commands: Path
    release: Path
    page: Path
    rows: Path
    log: Path

    @classmethod
    def named(cls, folder: Path, name: str) -> Files:
        """Paths in a folder."""
        ends = (".json", ".sh", ".skdp", ".html", ".csv", ".log")
        return cls(*(folder / f"{name}{end}" for end in ends))


def as_path(data: str) -> str:
    """A path that is no option, however it begins."""
    return f"./{data}" if data.startswith("-") else data


def source_options(table: dict[str, str]) -> list[str]:
    """How the file is written, and whom epsilon protects, by the form of the first step."""
    options = [
        f"--{name}={table[name]}" for name in ("sep", "encoding") if table.get(name, "").strip()
    ]
    options += ["--decimal=,"] * (table.get("decimal") == ",")
    missing = [each.strip() for each in table.get("missing", "").split(",") if each.strip()]
    options += [f"--missing={each}" for each in missing]
    lines = table.get("skip-lines", "").strip()
    options += [f"--skip-lines={lines}"] * lines.isdecimal()
    options += ["--multiline"] * bool(table.get("multiline"))
    return options


def release_command(data: str, files: Files, form: dict[str, Any]) -> list[str]:
    """``skdp release``."""
    given = [f"--{name}={form[name]}" for name in _RELEASE if form.get(name)]
    flags = ["--accept-loss"] * bool(form.get("accept-loss"))
    paths = [f"--domain={files.declaration}", f"--out={files.release}"]
    return ["release", as_path(data), *paths, *given, *flags, *form.get("source", [])]


_RELEASE = ("epsilon", "privacy-id", "max-rows-per-id", "ledger", "budget", "purpose")


def page_command(files: Files, title: str) -> list[str]:
    """What makes the page of a release."""
    return ["page", str(files.release), f"--out={files.page}", f"--title={title}"]


def sample_command(files: Files) -> list[str]:
    """What draws synthetic rows."""
    return ["sample", str(files.release), f"--out={files.rows}"]


def script(commands: Sequence[Sequence[str]]) -> str:
    """Commands as a file for a shell."""
    lines = [shlex.join(["skdp", *command]) for command in commands]
    return "\n".join(["#!/bin/sh", "set -e", *lines]) + "\n"


# ------------------------------------------------------------------------------------------------
# Columns, rules and questions as the fields of a form, and the bars to expect.
#
# A field is a text that was typed; a form is a mapping of their names. Fields of a column are named
# by its number, never by its name, which may be anything. What they say goes through
# `Domain.from_json`, so it is checked, and refused in the same words, as in a file. The bars are
# computed from public facts alone.


# --- columns and rules

KINDS = {
    "?": "choose ...",
    "numeric": "numbers",
    "categorical": "categories",
    "date": "dates",
    "datetime": "dates with a time of day",
    "identifier": "an identifier (not measured)",
    "": "leave this column out",
}
_DATES = ("date", "datetime")
_LINED = ("numeric", *_DATES)


class Part(NamedTuple):
    """A field of a column: the name is that of the parameter of `Numeric` and others."""

    name: str
    label: str
    kinds: tuple[str, ...]
    hint: str = ""
    form: str = "line"
    rare: bool = False


PARTS = (
    Part("lower", "Smallest value", _LINED, "From a code book, a questionnaire, the law."),
    Part("upper", "Largest value", _LINED, "Numbers outside count as the nearest end."),
    Part("integer", "Whole numbers only", ("numeric",), form="flag"),
    Part(
        "categories",
        "Categories",
        ("categorical",),
        "One a line: all that are publicly known, also those that may not occur.",
        "lines",
    ),
    Part("other", "Category for all others", ("categorical",), "One of the list, or empty."),
    Part("ordered", "The list is in order, as small, medium, large", ("categorical",), form="flag"),
    Part("nullable", "May be missing", ("categorical", *_LINED), form="flag"),
    Part("special", "Special values", ("numeric",), "Such as 0, 999; a comma between.", rare=True),
    Part("format", "How dates are written", _DATES, "As %d.%m.%Y, or excel.", rare=True),
    Part(
        "more",
        "More settings",
        ("categorical", *_LINED),
        "One a line: bins: 20, scale: log, decimals: 2, unit: month.",
        "lines",
        True,
    ),
)


def form_of_column(draft: Draft) -> dict[str, str]:
    """What is known of a column, perhaps with blanks, as the texts of its fields."""
    inside = draft.entries
    kind = inside.pop("type")
    form = {"kind": "" if draft.data["type"] is None else "?" if kind is ... else kind}
    for part in PARTS:
        if part.name in inside and form["kind"] in part.kinds:
            value = inside.pop(part.name)
            joined = ", " if part.name == "special" else "\n"
            values = value if isinstance(value, list) else [value]
            form[part.name] = joined.join("" if each is ... else _text(each) for each in values)
    more = [f"{key}: {_text(value)}" for key, value in inside.items() if value is not ...]
    return {**form, "more": "\n".join(more)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(text: str) -> Any:
    """A number or another value of JSON, if the text is one; else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def _values(lines: Sequence[str]) -> list[Any]:
    """Categories: numbers, or true and false, only where all are."""
    found = [_value(line) for line in lines]
    for kinds in ((int, float), (bool,)):
        if all(type(each) in kinds for each in found):
            return found
    return [line.strip() for line in lines]


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def _data_of(name: str, form: Mapping[str, str]) -> dict[str, Any]:
    """What the fields of a column say, as JSON holds it; blanks as a proposal has them."""
    kind = form.get("kind", "?")
    data: dict[str, Any] = {"name": name, "type": "..." if kind == "?" else kind}
    for part in PARTS:
        text = form.get(part.name, "")
        if kind not in part.kinds or not (text.strip() or part.name == "categories"):
            continue
        if part.form == "flag":
            data[part.name] = True
        elif part.name == "categories":
            data[part.name] = _values(_lines(text)) or "..."
        elif part.name == "other":
            known = data["categories"]
            data[part.name] = next((c for c in known if _text(c) == text.strip()), text.strip())
        elif part.name == "special":
            data[part.name] = [_value(each.strip()) for each in text.split(",")]
        elif part.name == "more":
            pairs = (line.partition(":") for line in _lines(text))
            data |= {key.strip(): _value(value.strip()) for key, _, value in pairs}
        else:
            data[part.name] = _value(text) if part.name != "format" else text.strip()
    if kind in _LINED and "edges" not in data:
        data = {"lower": "...", "upper": "...", **data}
    return data


def domain_of(
    names: Sequence[str], form: Mapping[str, str]
) -> tuple[Domain | None, dict[str, str]]:
    """The domain that a form declares, or messages by the field that they are about."""
    measured, wrong = [], {}
    for number, name in enumerate(names):
        own = {key: form.get(f"{number}.{key}", "") for key in ("kind", *(p.name for p in PARTS))}
        if not own["kind"]:
            continue
        data = _data_of(name, own)
        measured.append(data)
        if own["kind"] == "identifier":
            continue
        try:
            _domain([data])
        except (DomainError, TypeError) as error:
            said = str(error).rpartition(f"Column {name!r}: ")[2]
            wrong[f"{number}.{_about(said, own)}"] = _plain(said)
    if wrong:
        return None, wrong
    try:
        return _domain(measured, [_value(line) for line in _lines(form.get("rules", ""))]), {}
    except (DomainError, TypeError) as error:
        return None, {"rules": _plain(str(error))}


def unreadable(report: DomainReport, names: Sequence[str], form: Mapping[str, str]) -> Any:
    """Messages on columns of which more than a tenth of the records do not fit, for the owner."""
    wrong, about = {}, "More than a tenth of the records do not fit, as the lines below say."
    again = "Correct it, or go on once more to leave it as it is."
    for name, lost in report.columns[["skipped", "not_understood"]].max(axis=1).items():
        field = f"{names.index(str(name))}."
        listed = form.get(f"{field}kind") == "categorical"
        said = " Categories stand one a line: a comma is a part of them." * listed
        if 10 * lost > report.n_rows:
            wrong[field + ("categories" if listed else "kind")] = f"{about}{said} {again}"
    if not wrong and 10 * report.n_skipped > report.n_rows:
        wrong["rules"] = f"{about} {again}"
    return wrong


def _plain(message: str) -> str:
    """A message about a form, not about JSON or code."""
    said = message.removeprefix("This JSON declares no valid domain. ")
    said = re.sub("^lower ", "The smallest value ", re.sub("^upper ", "The largest value ", said))
    return said.replace(
        "is still `...`, a placeholder. Replace it by what is publicly known, never by",
        "is empty. Fill in what is publicly known, never",
    )


def _about(message: str, form: Mapping[str, str]) -> str:
    """The field of a column that a message names first."""
    names = [part.name for part in PARTS if form["kind"] in part.kinds and part.name != "more"]
    places = {name: re.search(rf"\b{name}\b", message[:90], re.IGNORECASE) for name in names}
    found = [(place.start(), name) for name, place in places.items() if place]
    return min(found)[1] if found else "more" if form["more"].strip() else "kind"


def _domain(attributes: Sequence[Mapping[str, Any]], rules: Sequence[Any] = ()) -> Domain:
    data = {"format": "skdp.domain", "version": 1}
    return Domain.from_json(json.dumps({**data, "attributes": attributes, "structure": rules}))


def form_of_rules(domain: Domain) -> str:
    """The rules of a domain, a line of JSON each."""
    return "\n".join(map(_text, domain.structure.to_data()))


# --- questions, and the bars to expect


def suggested(domain: Domain) -> list[str]:
    """A question on each column, by what is declared."""
    found = []
    for name, attribute in domain.items():
        if isinstance(attribute, Categorical) and not attribute.nullable:
            first = attribute.categories[0]
            found.append(f"proportion({quoted(name)} == {first!r})")
        elif isinstance(attribute, Categorical):
            found.append(f"{quoted(name)} == {attribute.categories[0]!r}")
        elif not isinstance(attribute, Date | Datetime) and {*name}.isdisjoint(",`"):
            found.append(f"mean({quoted(name)})")
    return [each for each in found if len(each) < 200]


def unread(release: Any, questions: Sequence[str]) -> list[str]:
    """What is wrong with questions that cannot be asked."""
    found = []
    for question in questions:
        try:
            bar_of(release, question, 0.95)
        except (ValueError, TypeError) as error:
            found.append(str(error))
    return found


def bars(
    estimator: Any, n: int, at: Sequence[str], questions: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Half the 95% interval to expect of each question, at each epsilon."""
    wanted = [float(text) for text in at]
    errors = estimator.expected_error(n, wanted, questions=questions, n_tables=1)
    return {
        str(question): dict(zip(at, found[wanted].tolist(), strict=True))
        for question, found in errors.iterrows()
    }
