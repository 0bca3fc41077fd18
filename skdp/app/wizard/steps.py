"""What the pages ask, in order, and what is done.

Each step has a page, and a method ``take_<step>`` that takes its form: it writes what is wrong into
`Wizard.wrong`, by field, does what the step is for, and returns the step to show.

Privacy. Three kinds of facts are kept apart. (1) What the owner types and confirms as publicly
known: `Wizard.typed`, of which the domain, the questions and the number of records are made. It is
all that the files of a release are made of, and the number of records goes into none of them.
(2) Findings on the records, which are exact: `Wizard.report` and `Wizard.kept` are shown on the
page of the columns and read nowhere else. (3) What is released: made by ``skdp release`` in a
process of its own, from the command line and the JSON file, which charges the ledger before a value
is looked at. Nothing is charged before `Wizard.take_confirm` gets the mark of the plan that was
shown last, and each mark is taken once, so that neither a reload nor a second tab charges again;
a change of any step before it discards the mark. Who waits for work sees lines that do not depend
on the records.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..._random import token
from ..._validation import as_epsilon, write_text
from ...accounting import PrivacyLedger
from ...domain import Categorical, Date, Datetime, Domain, DomainReport
from ...domain.check import HEAD, Draft, drafts_of
from ...domain.domain import value_of, values_of
from ...domain.query import quoted
from ...exceptions import DomainError, LedgerError
from ...expected import bar_of, bar_texts
from .. import csv
from ..release import (
    Withheld,
    checked,
    estimator_of,
    kept,
    ledger_files,
    read_domain,
    refuse_inputs,
)

STEPS = ("table", "columns", "questions", "epsilon", "ledger", "confirm", "release")
# Ends of the files of a release, which have one name.
_ENDS = ("json", "sh", "skdp", "html", "csv", "log")
# Errors whose messages say nothing of values; of others the type alone is shown.
_SAID = (ValueError, TypeError, LedgerError, ImportError, OSError, Withheld)

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

# Fields of a column are named by its number, never by its name, which may be anything. What they
# say goes through `Domain.from_json`, so it is checked as in a file. Labels and hints stand in the
# templates.

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
            data[part] = values_of(lines_of(text))
        elif part == "special":
            data[part] = [value_of(each) for each in text.split(",")]
        elif part == "more":
            pairs = (line.partition(":") for line in lines_of(text))
            data |= {key.strip(): value_of(value) for key, _, value in pairs}
        else:
            data[part] = value_of(text)
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
        return _domain(measured, [value_of(line) for line in lines_of(form.get("rules", ""))]), {}
    except (DomainError, TypeError) as error:
        return None, {"rules": str(error)}


def _about(message: str, form: Form) -> str:
    """The field of a column that a message names first."""
    names = "|".join(FIELDS.get(form["kind"], ("kind", "more"))[:-1])
    found = re.search(rf"\b({names})\b", message[:90], re.IGNORECASE)
    return found[1].lower() if found else "more" if form["more"].strip() else "kind"


def _domain(attributes: Sequence[Mapping[str, Any]], rules: Sequence[Any] = ()) -> Domain:
    return Domain.from_json(json.dumps({**HEAD, "attributes": attributes, "structure": rules}))


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
    "^the list ": "The list ",
    "whole numbers: integer$": "whole numbers: “Whole numbers only”",
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


# --- the steps


def run_command(arguments: Sequence[str], log: Path, say: Callable[[str], None]) -> int:
    """Run a command of skdp in a process of its own, show what it says, and return its exit code.

    The process is the one that the command line would be, so that a release is charged, measured,
    interrupted, kept and written exactly as there. It writes to a file, which a killed wizard
    leaves, and goes on without it.
    """
    with open(log, "ab") as written, open(log, encoding="utf-8", errors="replace") as shown:
        shown.seek(0, os.SEEK_END)
        child = subprocess.Popen(
            # Not the folder of the records: a file there could be named as a library.
            [sys.executable, "-P", "-m", "skdp", *arguments],
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
        begun = ""
        while True:
            ended = child.poll() is not None
            *lines, begun = (begun + shown.read()).split("\n")
            for line in lines:
                say(line)
            if ended:
                return child.returncode
            time.sleep(0.1)


class Wizard:
    """One release in the making: what was typed, what is known, what is being done.

    Parameters
    ----------
    options : Namespace
        Of the command: ``data``, ``domain``, ``ledger``, ``folder``; ``read`` reads a command line.
    """

    def __init__(self, options: Namespace) -> None:
        self.options = options
        # A path that is no option, however it begins.
        self._data = f"./{options.data}" if options.data.startswith("-") else options.data
        self.folder = Path(options.folder)
        stem = re.sub(r"\W+", "_", Path(options.data).name.split(".")[0]) or "release"
        self.typed: dict[str, dict[str, str]] = {
            # Nothing is chosen of whom epsilon protects, which decides what is counted.
            **{step: {} for step in STEPS},
            "epsilon": {"at": "0.25, 0.5, 1, 2, 4", "epsilon": "1"},
            "ledger": {"name": f"{stem}_release", "ledger": f"{stem}.ledger"},
        }
        # The step whose form was taken last, what is wrong with it, and the step that it led to.
        self.taken = self.landed = "table"
        self.wrong: dict[str, str] = {}
        # Lines on the work in hand.
        self.lines: list[str] = []
        self.reached = 0
        self.names: list[str] = []
        # What was found in the records, and which share of the rows bounds on those of a person
        # keep: exact.
        self.report: Any = None
        self.kept = ""
        # The declaration, and the one that was counted last.
        self.domain: Any = None
        self.checked: Domain | None = None
        self.bars: dict[str, Any] | None = None
        # What the page of the confirmation shows and releases, and what was released.
        self.plan: dict[str, Any] = {}
        self.made: dict[str, Any] | None = None
        self._written: set[Path] = set()
        self._read: Any = None
        # One form at a time: whatever two tabs send, one comes second.
        self._turn = threading.Lock()
        self._work: threading.Thread | None = None

    # -- what every step does

    @property
    def shown(self) -> list[str]:
        """The steps that can be shown."""
        return [*STEPS[: self.reached + 1], *(["release"] if self.made else [])]

    def idle(self, seconds: float = 0.0) -> bool:
        """Whether no form is being taken, after waiting for so many seconds at most."""
        if self._work is not None:
            self._work.join(seconds)
        return self._work is None or not self._work.is_alive()

    def take(self, step: str, form: Form) -> bool:
        """Begin to take what a page sent; False if its turn has not come.

        The thread ends with the process: a release that is paid for is kept.
        """
        with self._turn:
            if not self.idle() or STEPS.index(step) > self.reached:
                return False
            self.typed[step] = dict(form)
            self.taken = self.landed = step
            self.wrong, self.lines = {}, []
            if step != "confirm":
                self.plan = {}
                self.reached = STEPS.index(step)
            work = threading.Thread(target=self._take, args=(step, form))
            work.start()
            self._work = work
            return True

    def _take(self, step: str, form: Form) -> None:
        try:
            following = getattr(self, f"take_{step}")(form)
            self.landed = step if self.wrong else following
        except _SAID as error:
            self.wrong[""] = str(error)
        except Exception as error:
            self.wrong[""] = str(Withheld(error, "The ledger says what was charged."))
        self.reached = max(self.reached, STEPS.index(self.landed))

    # -- the table, and whom epsilon protects

    @property
    def source(self) -> Any:
        """The table and how it is written, as commands take it."""
        options = source_options(self.typed["table"])
        return self.options.read(["domain", "check", self._data, *options])

    @property
    def header(self) -> tuple[list[str], str]:
        """Names of the columns, and why the first line cannot be read where there are none."""
        try:
            with csv.open_source(self.options.data, form=csv.Form.of(self.source)) as source:
                return list(source.columns), ""
        except (ValueError, OSError, ImportError) as error:
            return [], str(error)

    @property
    def unit(self) -> str | None:
        """The column that identifies persons."""
        table = self.typed["table"]
        return table.get("unit") or None if table.get("protects") == "person" else None

    @property
    def _persons(self) -> list[str]:
        most = self.typed["table"].get("most")
        return [f"--privacy-id={self.unit}", f"--max-rows-per-id={most}"] if self.unit else []

    def take_table(self, form: Form) -> str:
        """Take the first step, and look at the records for the owner."""
        if not (form.get("skip-lines", "").strip() or "0").isdecimal():
            self.wrong["skip-lines"] = "A whole number of lines is needed."
        if self.wrong or form.get("do") == "header":
            return "table"
        header, unread = self.header
        person, most = form.get("protects") == "person", form.get("most", "").strip()
        if unread:
            self.wrong["file"] = unread
        elif not person and form.get("protects") != "record":
            self.wrong["protects"] = "Choose whom epsilon protects."
        elif person and self.unit not in header:
            self.wrong["unit"] = "Choose the column that identifies the person."
        if person and not (most.isdecimal() and int(most)):
            self.wrong["most"] = f"A whole number of records is needed, got {most!r}."
        unit, read = self.unit, (source_options(form), self.unit)
        if self.wrong or self._read == read:
            return "columns"
        self.lines.append("Reading the records, to say what they hold.")
        start = self.options.domain and read_domain(self.options.domain)
        self.report = checked(self.source, start or None)
        self.kept = kept(self.source, unit) if unit else ""
        # Without what follows from the rest, so that the rest can be changed.
        drafts = drafts_of(start) if start else self.report.drafts
        known = {draft.name: form_of_column(draft) for draft in drafts}
        self.names = [name for name in header if name != unit]
        self.typed["columns"] = {
            f"{number}.{key}": text
            for number, name in enumerate(self.names)
            for key, text in known.get(name, {"kind": ""}).items()
        }
        rules = [rule.to_data() for rule in start.structure.rules] if start else []
        self.typed["columns"]["rules"] = "\n".join(map(text_of, rules))
        self.checked, self._read = None, read
        return "columns"

    # -- the columns

    @property
    def findings(self) -> dict[str, list[str]]:
        """What was found in the records of each column, and, under "", of the table: exact."""
        found: dict[str, list[str]] = {name: [] for name in ["", *self.names, str(self.unit)]}
        found[""] += [self.kept] * bool(self.unit)
        for said in map(worded, self.report.findings):
            owner = max((n for n in found if said.startswith(f"{n}: ")), key=len, default="")
            found[owner].append(said.removeprefix(f"{owner}: "))
        return found

    @property
    def columns(self) -> list[tuple[str, str, str, bool, bool]]:
        """Each column: how its fields begin, name, kind, whether it is blank, and wrong."""
        form, shown = self.typed["columns"], []
        for place, name in enumerate(self.names):
            start, kind = f"{place}.", form.get(f"{place}.kind", "")
            needed = FIELDS.get(kind, ("kind",))[0]
            blank = kind == "?" or (kind != "" and not form.get(start + needed, "").strip())
            wrong = any(field.startswith(start) for field in self.wrong)
            shown.append((start, name, kind, blank, wrong))
        return shown

    def take_columns(self, form: Form) -> str:
        """Take the declaration; count what it does to the records."""
        if preset := form.get("preset"):
            misfits = unreadable(self.report, self.names, form) if self.checked else {}
            for start, _, kind, blank, _ in self.columns:
                if kind == "categorical" and (blank or f"{start}categories" in misfits):
                    self.typed["columns"][start + "categories"] = preset.replace(", ", "\n")
            return "columns"
        check = form.get("do") == "check"
        domain, self.wrong = domain_of(self.names, form)
        if domain is not None and not check and not form.get("public"):
            self.wrong["public"] = "Confirm that all of this is publicly known."
        self.domain = domain
        if domain is None or self.wrong:
            return "columns"
        if check or domain != self.checked:
            self.report, self.checked = checked(self.source, domain), domain
            self.wrong = unreadable(self.report, self.names, form)
        if not self.typed["questions"]:
            self.typed["questions"] = {f"ask.{each}": "on" for each in suggested(domain)[:3]}
        return "columns" if check else "questions"

    # -- the questions

    @property
    def asked(self) -> list[str]:
        """The questions chosen and written."""
        form = self.typed["questions"]
        chosen = [field.removeprefix("ask.") for field in form if field.startswith("ask.")]
        own = [line.strip() for line in lines_of(form.get("own", ""))]
        return list(dict.fromkeys([*chosen, *own]))

    def take_questions(self, form: Form) -> str:
        """Take the questions, and ask them of a release of no records."""
        empty = csv.try_out(self._estimator).synopsis_
        for question in self.asked:
            try:
                bar_of(empty, question, 0.95)
            except (ValueError, TypeError) as error:
                self.wrong["own"] = f"{self.wrong.get('own', '')}\n{error}".strip()
        self.bars = None
        return "epsilon"

    @property
    def _estimator(self) -> Any:
        command = ["plan", "--epsilon=1", "--domain=of the pages", *self._persons]
        return estimator_of(self.options.read(command), self.domain)

    # -- the number of records as it is stated, and epsilon

    def take_epsilon(self, form: Form) -> str:
        """Take epsilon; show the bars to expect, from what was stated alone."""
        bars = form.get("do") == "bars"
        n = re.sub(r"[ ,_]", "", form.get("n", ""))
        if not n.isdecimal() or not int(n):
            self.wrong["n"] = "State a whole number of records, such as 5000."
        at = [each.strip() for each in form.get("at", "").split(",")]
        wanted = [self._epsilon("at", each) for each in at]
        if not bars:
            self._epsilon("epsilon", form.get("epsilon", ""))
        if bars and not self.wrong:
            asked = self.asked or suggested(self.domain)[:3]
            errors = self._estimator.expected_error(int(n), wanted, questions=asked, n_tables=1)
            texts = bar_texts(errors[[*map(float, wanted)]], self.domain)
            rows = {each: dict(zip(at, bars, strict=True)) for each, bars in texts.items()}
            self.bars = {"n": int(n), "rows": rows}
        return "epsilon" if bars else "ledger"

    def _epsilon(self, field: str, text: str) -> Any:
        """An epsilon that was typed; None, and a message, where it is none."""
        try:
            return as_epsilon(float(text))
        except ValueError:
            self.wrong[field] = f"A positive number is needed, got {text!r}."
            return None

    # -- the ledger, the name, the purpose

    @property
    def ledger(self) -> Path:
        """The file of the ledger."""
        return Path(self.options.ledger or self.folder / self.typed["ledger"].get("ledger", ""))

    @property
    def balance(self) -> str:
        """The ledger in words, if there is one."""
        try:
            return str(PrivacyLedger(path=self.ledger)) if self.ledger.is_file() else ""
        except (LedgerError, ValueError, OSError) as error:
            return str(error)

    def take_ledger(self, form: Form) -> str:
        """Take names and purpose; write the declaration and the commands; charge nothing."""
        name, epsilon = form.get("name", "").strip(), self.typed["epsilon"]["epsilon"]
        for field in ("name", "ledger"):
            if field in form and not re.fullmatch(r"\w[\w .-]{0,80}", form[field].strip()):
                self.wrong[field] = "Letters, digits, blanks, points, _ and - make a name."
        if self.wrong:
            return "ledger"
        purpose = re.sub(r"\s+", " ", form.get("purpose", "").replace("\0", "")).strip()
        if not purpose:
            self.wrong["purpose"] = "Say what the release is for: the officer asks."
        old = self.ledger.exists()
        budget, field = ("", "ledger") if old else (form.get("budget", "").strip(), "budget")
        left = PrivacyLedger(path=self.ledger).remaining if old else self._epsilon(field, budget)
        if left is not None and left < as_epsilon(float(epsilon)):
            self.wrong[field] = f"Epsilon {epsilon} is more than the {float(left):g} left."
        files = {end: self.folder / f"{name}.{end}" for end in _ENDS}
        for end, file in files.items():
            refuse_inputs(file, [self.options.data, *ledger_files(self.ledger)])
            ours = file in self._written or end == "log"
            if not ours and file.exists() and file.stat().st_size:
                self.wrong["name"] = f"{file} exists already: give another name."
        if self.wrong:
            return "ledger"
        plan = {
            "mark": token(), "files": files, "name": name, "epsilon": epsilon,
            "ledger": self.ledger, "budget": budget, "purpose": purpose,
        }  # fmt: skip
        commands = self._commands(plan, form)
        script = "\n".join(shlex.join(["skdp", *command]) for command in commands)
        write_text(files["json"], self.domain.to_json())
        write_text(files["sh"], f"#!/bin/sh\nset -e\n{script}\n")
        self._written |= {files["json"], files["sh"]}
        self.plan = {**plan, "commands": commands, "script": script}
        return "confirm"

    def _commands(self, plan: Mapping[str, Any], form: Form) -> list[list[str]]:
        """The commands of the shell that do what the pages say: shown, written and run."""
        files, given = plan["files"], ("epsilon", "ledger", "budget", "purpose")
        options = [f"--{name}={plan[name]}" for name in given if plan[name]]
        options += [f"--domain={files['json']}", f"--out={files['skdp']}", *self._persons]
        options += ["--accept-loss"] * bool(form.get("accept"))
        title = form.get("title", "").strip() or plan["name"]
        return [
            ["release", self._data, *options, *source_options(self.typed["table"])],
            ["page", str(files["skdp"]), f"--out={files['html']}", f"--title={title}"],
            ["sample", str(files["skdp"]), f"--out={files['csv']}"],
        ]

    # -- the last confirmation

    def take_confirm(self, form: Form) -> str:
        """Release, once for each mark."""
        if form.get("mark", "") != self.plan.get("mark"):
            self.wrong[""] = (
                "This confirmation has been used, or belongs to a plan that was changed since: it "
                "charged nothing. What stands here now is the present state."
            )
        elif not form.get("sure"):
            self.wrong["sure"] = "Confirm that epsilon may be spent."
        if self.wrong:
            return "confirm"
        plan, self.plan = self.plan, {}
        self.made = {**plan, "code": None, "lines": self.lines}
        release, *after = plan["commands"]
        log, say = plan["files"]["log"], self.lines.append
        code = run_command(release, log, say)
        if code == 0:
            say("The release is written. Making its page and synthetic rows.")
            for command in after:
                run_command(command, log, say)
        self.made["code"] = code
        return "release"
