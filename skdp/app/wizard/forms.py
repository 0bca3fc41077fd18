"""Forms of columns, rules and questions, and what they say in the words of the library.

Fields of a column are named by
its number, never by its name, which may be anything. What they say goes through `Domain.from_json`,
so it is checked as in a file. Labels, hints and kinds stand in the templates.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...domain import Categorical, Date, Datetime, Domain, DomainReport
from ...domain.check import Draft
from ...domain.query import quoted
from ...exceptions import DomainError

# Texts that were typed, by the names of their fields.
Form = Mapping[str, str]

# --- how the file is written, as options of the command line


def source_options(table: Form) -> list[str]:
    """Options that say how the file is written, by the form of the first step."""
    given = [("sep", table.get("sep", "")), ("encoding", table.get("encoding", ""))]
    given += [("missing", each) for each in table.get("missing", "").split(",")]
    options = [f"--{name}={text.strip()}" for name, text in given if text.strip()]
    lines = table.get("skip-lines", "").strip()
    options += [f"--skip-lines={lines}"] * lines.isdecimal()
    options += ["--decimal=,"] * (table.get("decimal") == ",")
    return options + ["--multiline"] * bool(table.get("multiline"))


# --- columns and rules

_LINE = ("lower", "upper", "nullable", "format", "more")
# Fields of each kind of column, named as the parameters of `Numeric` and others; the first is
# needed, and "more" holds what has no field.
FIELDS = {
    "numeric": ("lower", "upper", "integer", "nullable", "special", "more"),
    "categorical": ("categories", "other", "ordered", "nullable", "more"),
    "date": _LINE,
    "datetime": _LINE,
}


def form_of_column(draft: Draft) -> dict[str, str]:
    """What is known of a column, perhaps with blanks, as the texts of its fields."""
    inside = draft.entries
    kind = inside.pop("type")
    kind = "" if draft.data["type"] is None else "?" if kind is ... else kind
    form = {"kind": kind}
    for name in (each for each in FIELDS.get(kind, ()) if each in inside):
        value = inside.pop(name)
        values = value if isinstance(value, list) else [value]
        texts = ["" if each is ... else text_of(each) for each in values]
        form[name] = (", " if name == "special" else "\n").join(texts)
    more = [f"{key}: {text_of(value)}" for key, value in inside.items() if value is not ...]
    return {**form, "more": "\n".join(more)}


def text_of(value: Any) -> str:
    """A value as a field shows it."""
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
    kinds = {type(each) for each in found}
    return found if kinds <= {int, float} or kinds == {bool} else [line.strip() for line in lines]


def lines_of(text: str) -> list[str]:
    """Lines that hold something."""
    return [line for line in re.split("\r?\n", text) if line.strip()]


def _data_of(name: str, form: Form) -> dict[str, Any]:
    """What the fields of a column say, as JSON holds it; blanks as a proposal has them."""
    kind = form["kind"]
    data: dict[str, Any] = {"name": name, "type": "..." if kind == "?" else kind}
    fields = FIELDS.get(kind, ())
    for part in (each for each in fields if form[each].strip()):
        text = form[part]
        if part == "categories":
            data[part] = _values(lines_of(text))
        elif part == "special":
            data[part] = [_value(each) for each in text.split(",")]
        elif part == "more":
            pairs = (line.partition(":") for line in lines_of(text))
            data |= {key.strip(): _value(value) for key, _, value in pairs}
        else:
            data[part] = _value(text)
    if kind == "categorical":
        known = data.setdefault("categories", "...")
        # Of the type that the category has.
        same = [each for each in known if text_of(each) == form["other"].strip()]
        data |= {"other": same[0]} if same else {}
    if "lower" in fields and "edges" not in data:
        data = {"lower": "...", "upper": "...", **data}
    return data


def domain_of(names: Sequence[str], form: Form) -> tuple[Domain | None, dict[str, str]]:
    """The domain that a form declares, or messages by the field that they are about."""
    measured, wrong = [], {}
    for number, name in enumerate(names):
        place = f"{number}."
        own = {key.removeprefix(place): form[key] for key in form if key.startswith(place)}
        own = defaultdict(str, own)
        if not own["kind"]:
            continue
        measured.append(_data_of(name, own))
        try:
            if own["kind"] != "identifier":
                _domain(measured[-1:])
        except (DomainError, TypeError) as error:
            said = str(error).rpartition(f"Column {name!r}: ")[2]
            wrong[place + _about(said, own)] = said
    if wrong:
        return None, wrong
    try:
        return _domain(measured, [_value(line) for line in lines_of(form.get("rules", ""))]), {}
    except (DomainError, TypeError) as error:
        return None, {"rules": str(error)}


def _about(message: str, form: Form) -> str:
    """The field of a column that a message names first."""
    names = "|".join(FIELDS.get(form["kind"], ("kind", "more"))[:-1])
    found = re.search(rf"\b({names})\b", message[:90], re.IGNORECASE)
    return found[1].lower() if found else "more" if form["more"].strip() else "kind"


def _domain(attributes: Sequence[Mapping[str, Any]], rules: Sequence[Any] = ()) -> Domain:
    data = {"format": "skdp.domain", "version": 1}
    return Domain.from_json(json.dumps({**data, "attributes": attributes, "structure": rules}))


def unreadable(report: DomainReport, names: Sequence[str], form: Form) -> dict[str, str]:
    """Messages on columns of which more than a tenth of the records do not fit, for the owner."""
    wrong, again = {}, "Correct it, or go on to leave it as it is."
    about = "More than a tenth of the records do not fit, as the lines below say."
    for name, lost in report.columns[["skipped", "not_understood"]].max(axis=1).items():
        field = f"{names.index(str(name))}."
        field += "categories" if form.get(f"{field}kind") == "categorical" else "kind"
        comma = " Categories stand one a line: a comma is a part of them."
        if 10 * lost > report.n_rows:
            wrong[field] = f"{about}{comma * (',' in form.get(field, ''))} {again}"
    if not wrong and 10 * report.n_skipped > report.n_rows:
        wrong["rules"] = f"{about} {again}"
    return wrong


# What messages call options and parameters that are fields here.
_WORDS = {
    "^This JSON declares no valid domain. ": "",
    "^lower ": "The smallest value ",
    "^upper ": "The largest value ",
    "is still `...`, a placeholder. Replace it by what is publicly known, never by": (
        "is empty. Fill in what is publicly known, never"
    ),
    r",? \(?in Python ([^()]|\([^)]*\))*?(\)| (?=\()|$)": " ",
    r"give --sep ('[^']*')": r"write \1 into “Between fields”",
    "--sep": "“Between fields”",
    "--skip-lines": "“Lines above the names”",
    "--privacy-id": "“Column that identifies the person”",
    "--multiline": "“Fields in quotes hold line breaks”",
    "--decimal": "“Decimal mark”",
    "--missing": "“Texts that stand for no value”:",
    "--max-rows-per-id K": "on the page “Table”",
    "--accept-loss": "“Go on if more than a tenth of the records is skipped”",
    "--out": "the name",
    "be a number, got (.*) of type str": r"be a number with a decimal point, got \1",
    "nullable(=True)?": "“May be missing”",
    "one for all others, which other= names too": "a “Category for all others”",
    ": special, if": ": “Special values”, if",
    r"(scale|decimals)='?(\w+)'?": r"\1: \2 in “More settings”",
}


def worded(message: str) -> str:
    """A message about fields, not about options or code."""
    for found, words in _WORDS.items():
        message = re.sub(found, words, message)
    return message.strip()


# --- questions


def suggested(domain: Domain) -> list[str]:
    """A question on each column, by what is declared."""
    found = []
    for name, attribute in domain.items():
        if isinstance(attribute, Categorical):
            question = f"{quoted(name)} == {attribute.categories[0]!r}"
            found.append(question if attribute.nullable else f"proportion({question})")
        elif not isinstance(attribute, Date | Datetime) and {*name}.isdisjoint(",`"):
            found.append(f"mean({quoted(name)})")
    return [each for each in found if len(each) < 200]
