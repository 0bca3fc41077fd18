"""What the pages ask, in order, and what is done.

Privacy. Three kinds of facts are kept apart. (1) What the owner types and confirms as publicly
known: `Wizard.typed`, of which the domain, the questions and the number of records are made. It is
all that the files of a release are made of, and the number of records goes into none of them.
(2) Findings on the records, which are exact: `Wizard.findings` and `Wizard.report` are shown on the
page of the columns and read nowhere else. (3) What is released: made by ``skdp release`` in a
process of its own, from the command line and the JSON file, which charges the ledger before a value
is looked at. Nothing is charged before `Wizard.take_confirm` gets the mark of the plan that was
shown last, and each mark is taken once, so that neither a reload nor a second tab charges again;
a change of any step before it discards the mark. What waits for work sees lines that do not depend
on the records.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..._random import token
from ..._validation import as_epsilon, write_text
from ...accounting import PrivacyLedger
from ...domain import Domain
from ...domain.schemas import drafts_of, editable
from ...exceptions import LedgerError
from ..csv import header_of, no_records, try_out
from ..domains import checked, kept, proposed, read_domain
from ..outputs import SQLITE, Progress, Withheld, estimator_of, refuse_inputs
from . import forms
from .forms import Files

STEPS = {
    "table": "Table",
    "columns": "Columns",
    "questions": "Questions",
    "epsilon": "Epsilon",
    "ledger": "Ledger",
    "confirm": "Confirm",
    "result": "Release",
}
_ORDER = list(STEPS)
_AT = "0.25, 0.5, 1, 2, 4"
_QUIET = Progress(True)
# Fields of the first step that do not say how the file is written.
_UNIT = ("protects", "unit", "most", "do")
# What messages call an option that is a field here.
_FIELDS = {
    "--sep": "“Between fields”",
    "--skip-lines": "“Lines above the names”",
    "--privacy-id": "“Column that identifies the person”",
    "--multiline": "“Fields in quotes hold line breaks”",
    "--decimal": "“Decimal mark”",
    "--missing": "“Texts that stand for no value”:",
    "--max-rows-per-id K": "on the page “Table”",
    "--accept-loss": "“Go on if more than a tenth of the records is skipped”",
    "--out": "the name",
    "nullable=True": "“May be missing”",
    "nullable": "“May be missing”",
    "one for all others, which other= names too": "a “Category for all others”",
    ": special, if": ": “Special values”, if",
    "scale='log'": "scale: log in “More settings”",
}
_CODES = {
    0: "The release is made.",
    2: "Refused: nothing was released.",
    3: "Over budget: nothing was spent.",
    4: "Failed while the records were read or measured.",
    5: "Stopped after the first part of epsilon: too many records would be skipped.",
}


# --- work that takes longer than an answer to the browser


class Job:
    """Work in a thread of its own, which ends with the process: a release that is paid for is kept.

    Parameters
    ----------
    title : str
        What is done, for the page that waits.
    work : callable (say) -> object
        Its argument is a function that shows a line; no line may depend on the records.
    then : callable (result) -> str
        What becomes of the result; gives the step to show. It is called by who waits.
    """

    def __init__(self, title: str, work: Callable[[Any], Any], then: Callable[[Any], str]) -> None:
        self.title, self.then = title, then
        self.lines: list[str] = []
        self.result: Any = None
        # A message of the library; of other errors the type alone, as they may quote values.
        self.error: str | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work(self.lines.append)
        except (ValueError, TypeError, LedgerError, ImportError, OSError, Withheld) as error:
            self.error = str(error)
        except Exception as error:
            self.error = str(Withheld(error, "Nothing was charged."))

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether the work has ended, within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


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


# --- the wizard


class Wizard:
    """One release in the making: what was typed, what is known, what is being done.

    Parameters
    ----------
    options : Namespace
        Of the command: ``data``, ``domain``, ``ledger``, ``folder``; ``read`` reads a command line.
    """

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self._parsed: Callable[[Sequence[str]], Namespace] = options.read
        self.folder = Path(options.folder)
        stem = re.sub(r"\W+", "_", Path(options.data).name.split(".")[0]) or "release"
        ledger = options.ledger or f"{stem}.ledger"
        self.typed: dict[str, dict[str, str]] = {
            # Nothing is chosen of whom epsilon protects, which decides what is counted.
            **{step: {} for step in _ORDER},
            "epsilon": {"at": _AT, "epsilon": "1"},
            "ledger": {"name": f"{stem}_release", "ledger": ledger},
        }
        self.wrong: dict[str, str] = {}
        # The step that the messages are about, and the one that work has led to.
        self.wrong_at = self.landed = ""
        self.reached = 0
        self.names: list[str] = []
        self.findings: list[str] = []
        # Which share of the rows bounds on those of a person keep: exact, as the findings.
        self.kept = ""
        self.report: Any = None
        # The declaration that was counted last.
        self.checked: Domain | None = None
        self.domain: Domain | None = None
        self.bars: dict[str, Any] | None = None
        self.plan: dict[str, Any] = {}
        self.mark: str | None = None
        self.job: Job | None = None
        self.made: dict[str, Any] | None = None
        self._written: set[Path] = set()
        self._read: Any = None
        # One answer at a time: whatever two tabs send, one comes second.
        self.turn = threading.Lock()

    # -- what every step does

    def take(self, step: str, form: Mapping[str, str]) -> str | None:
        """Take what a page sent; gives the step to show, None to show the same with messages."""
        if self.job is not None or _ORDER.index(step) > self.reached:
            return self.step
        self.typed[step] = dict(form)
        self.wrong, self.wrong_at = {}, step
        if step != "confirm":
            self.mark = None
            self.reached = _ORDER.index(step)
        try:
            taken: str | None = getattr(self, f"take_{step}")(form)
            return taken
        except (ValueError, TypeError, LedgerError, ImportError, OSError) as error:
            self._refused("", str(error))
            return None

    @property
    def step(self) -> str:
        """The furthest step that can be shown."""
        return _ORDER[self.reached]

    def _go(self, step: str) -> str:
        self.reached = max(self.reached, _ORDER.index(step))
        return step

    def _refused(self, field: str, message: str) -> Any:
        self.wrong[field] = _on_a_page(message)
        return None

    def _start(self, title: str, work: Callable[[Any], Any], then: Callable[[Any], str]) -> str:
        self.job = Job(title, work, then)
        return self.step

    def settle(self, seconds: float) -> bool:
        """Wait for the work in hand, if there is any; whether there is none now.

        ``landed`` is the step that it leads to, for the first who asks.
        """
        job = self.job
        if job is None:
            return True
        if not job.ended(seconds):
            return False
        with self.turn:
            if self.job is job:
                self.job = None
                if job.error is not None:
                    self._refused("", job.error)
                    self.landed = self.wrong_at = self.step
                else:
                    self.landed = job.then(job.result)
        return True

    # -- the table, and whom epsilon protects

    @property
    def source(self) -> Namespace:
        """The table and how it is written, as commands take it."""
        table = self.typed["table"]
        path, options = forms.as_path(self.options.data), forms.source_options(table)
        return self._parsed(["domain", "check", path, "--quiet", *options])

    @property
    def header(self) -> list[str]:
        """Names of the columns; none where the first line cannot be read."""
        try:
            return [str(name) for name in header_of(self.options.data, self.source).columns]
        except (ValueError, OSError, ImportError) as error:
            self.wrong_at = "table"
            self._refused("file", str(error))
            return []

    @property
    def unit(self) -> str | None:
        """The column that identifies persons."""
        table = self.typed["table"]
        return table.get("unit") or None if table.get("protects") == "person" else None

    def take_table(self, form: Mapping[str, str]) -> str | None:
        """Take the first step, and look at the records for the owner."""
        if form.get("decimal", "") not in ("", ".", ","):
            self._refused("decimal", "The decimal mark is a point or a comma.")
        if not (form.get("skip-lines", "").strip() or "0").isdecimal():
            self._refused("skip-lines", "A whole number of lines is needed.")
        header = [] if self.wrong else self.header
        if self.wrong:
            return None
        if form.get("do") == "header":
            return "table"
        if form.get("protects") not in ("record", "person"):
            self._refused("protects", "Choose whom epsilon protects.")
        if form.get("protects") == "person":
            if self.unit not in header:
                self._refused("unit", "Choose the column that identifies the person.")
            most = form.get("most", "").strip()
            if not most.isdecimal() or not int(most):
                self._refused("most", f"A whole number of records is needed, got {most!r}.")
        if self.wrong:
            return None
        read = {name: form.get(name) for name in form if name not in _UNIT}
        if self._read == (read, self.unit):
            return self._go("columns")
        start = self.options.domain and read_domain(self.options.domain, data=self.options.data)
        options, unit = self.source, self.unit

        def work(say: Callable[[str], None]) -> Any:
            say("Reading the records, to say what they hold.")
            report = checked(options, start, _QUIET) if start else proposed(options, _QUIET)
            return report, kept(options, unit) if unit else ""

        def then(found: Any) -> str:
            report, self.kept = found
            if start:
                # Without what follows from the rest, so that the rest can be changed.
                drafts = drafts_of(start)
            else:
                drafts = report.drafts
            known = {draft.name: forms.form_of_column(draft) for draft in drafts}
            self.names = [name for name in header if name != unit]
            self.typed["columns"] = {
                f"{number}.{key}": text
                for number, name in enumerate(self.names)
                for key, text in known.get(name, {"kind": ""}).items()
            }
            if start:
                self.typed["columns"]["rules"] = forms.form_of_rules(start)
            self.findings = [*map(_on_a_page, report.findings)]
            self.report, self.checked, self._read = None, None, (read, unit)
            return self._go("columns")

        return self._start("Looking at the table", work, then)

    # -- the columns

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Each column as its page shows it; ``found`` are exact findings, for the owner."""
        form, shown = self.typed["columns"], []
        for number, name in enumerate(self.names):
            start, kind = f"{number}.", form.get(f"{number}.kind", "")
            needed = "categories" if kind == "categorical" else "lower"
            blank = kind not in ("", "identifier") and not form.get(start + needed, "").strip()
            wrong = any(field.startswith(start) for field in self.wrong)
            said = f"{name}: "
            found = [each.removeprefix(said) for each in self.findings if each.startswith(said)]
            shown.append(
                {"number": start, "name": name, "kind": kind, "blank": blank, "wrong": wrong}
                | {"found": found, "open": blank or wrong or len(self.names) <= 4}
            )
        return shown

    @property
    def said_of_all(self) -> list[str]:
        """Findings on the table as a whole: exact, for the owner."""
        starts = tuple(f"{name}: " for name in [*self.names, self.unit])
        others = [each for each in self.findings if not each.startswith(starts)]
        return [self.kept, *others] if self.unit else others

    def take_columns(self, form: Mapping[str, str]) -> str | None:
        """Take the declaration; count what it does to the records, if that is asked."""
        self.domain, self.wrong = forms.domain_of(self.names, form)
        domain = self.domain
        if domain is None:
            return None
        check = form.get("do") == "check"
        if not check and not form.get("public"):
            return self._refused("public", "Confirm that all of this is publicly known.")
        if check or self.checked != domain:
            options = self.source

            def then(report: Any) -> str:
                self.report, self.findings = report, [*map(_on_a_page, report.findings)]
                self.checked = domain
                if not check:
                    self.wrong = forms.unreadable(report, self.names, form)
                return "columns" if check or self.wrong else self._declared(domain)

            return self._start(
                "Checking the declaration", lambda say: checked(options, domain, _QUIET), then
            )
        return self._declared(domain)

    def _declared(self, domain: Domain) -> str:
        if not self.typed["questions"]:
            first = forms.suggested(domain)[:3]
            self.typed["questions"] = {f"ask.{question}": "on" for question in first}
        return self._go("questions")

    # -- the questions

    @property
    def suggested(self) -> list[str]:
        """Questions to be chosen with a click."""
        return [] if self.domain is None else forms.suggested(self.domain)

    @property
    def asked(self) -> list[str]:
        """The questions chosen and written."""
        form = self.typed["questions"]
        own = (line.strip() for line in form.get("own", "").replace("\r\n", "\n").split("\n"))
        chosen = [each for each in self.suggested if form.get(f"ask.{each}")]
        return list(dict.fromkeys([*chosen, *filter(None, own)]))

    def take_questions(self, form: Mapping[str, str]) -> str | None:
        """Take the questions, and ask them of a release of no records."""
        assert self.domain is not None
        domain, unit, asked = self.domain, self.unit, self.asked
        estimator = self._estimator("1")

        def then(unread: list[str]) -> str:
            if unread:
                self._refused("own", "\n".join(unread))
                return "questions"
            self.bars = None
            return self._go("epsilon")

        return self._start(
            "Reading the questions",
            lambda say: forms.unread(try_out(estimator, no_records(domain, unit)).synopsis_, asked),
            then,
        )

    def _estimator(self, epsilon: str) -> Any:
        # The names of files play no part.
        command = self._command(Files.named(self.folder, "any"), {"epsilon": epsilon})
        return estimator_of(self._parsed(command), self.domain)

    # -- the number of records as it is stated, and epsilon

    def take_epsilon(self, form: Mapping[str, str]) -> str | None:
        """Take epsilon; show the bars to expect, from what was stated alone."""
        n = re.sub(r"[ ,_]", "", form.get("n", ""))
        if not n.isdecimal() or not int(n):
            self._refused("n", "State a whole number of records, such as 5000.")
        at = [each.strip() for each in form.get("at", "").split(",")]
        try:
            for each in at:
                as_epsilon(float(each))
        except (ValueError, TypeError) as error:
            self._refused("at", f"Numbers with commas between them, such as {_AT}. {error}")
        if self.wrong:
            return None
        if form.get("do") == "bars":
            estimator, asked = self._estimator("1"), self.asked or self.suggested[:3]

            def then(found: dict[str, dict[str, float]]) -> str:
                self.bars = {"n": int(n), "rows": found}
                return "epsilon"

            return self._start(
                "Working out the margins of error",
                lambda say: forms.bars(estimator, int(n), at, asked),
                then,
            )
        try:
            as_epsilon(float(form.get("epsilon", "")))
        except (ValueError, TypeError) as error:
            return self._refused("epsilon", f"Choose an epsilon. {error}")
        return self._go("ledger")

    # -- the ledger, the name, the purpose

    def _ledger(self, typed: str) -> Path:
        return Path(self.options.ledger or self.folder / typed)

    @property
    def balance(self) -> str:
        """The ledger in words, if there is one."""
        path = self._ledger(self.typed["ledger"].get("ledger", ""))
        try:
            return str(PrivacyLedger(path=path)) if path.is_file() else ""
        except (LedgerError, ValueError, OSError) as error:
            return str(error)

    def _command(self, files: Files, more: Mapping[str, Any]) -> list[str]:
        table = self.typed["table"]
        person = (
            {"privacy-id": self.unit, "max-rows-per-id": table.get("most")} if self.unit else {}
        )
        form = {**person, "source": forms.source_options(table), **more}
        return forms.release_command(self.options.data, files, form)

    def take_ledger(self, form: Mapping[str, str]) -> str | None:
        """Take names and purpose; write the declaration and the commands; charge nothing."""
        assert self.domain is not None
        name, ledger = form.get("name", "").strip(), form.get("ledger", "").strip()
        for field, text in (("name", name), ("ledger", ledger)):
            if field in form and not re.fullmatch(r"\w[\w .-]{0,80}", text):
                self._refused(field, "Letters, digits, blanks, points, _ and - make a name.")
        purpose = re.sub(r"\s+", " ", form.get("purpose", "").replace("\0", "")).strip()
        if not purpose:
            self._refused("purpose", "Say what the release is for: the officer asks.")
        if self.wrong:
            return None
        path, epsilon = self._ledger(ledger), self.typed["epsilon"]["epsilon"]
        files = Files.named(self.folder, name)
        budget = "" if path.exists() else form.get("budget", "").strip()
        try:
            kept = PrivacyLedger(path=path) if path.exists() else None
            left = as_epsilon(float(budget)) if kept is None else kept.remaining
            if left is not None and left < as_epsilon(float(epsilon)):
                said = f"Epsilon {epsilon} is more than the {float(left):g} that the ledger has."
                return self._refused("ledger" if path.exists() else "budget", said)
        except (ValueError, TypeError, LedgerError) as error:
            return self._refused("ledger" if path.exists() else "budget", str(error))
        for each in files:
            refuse_inputs(each, [self.options.data, *(f"{path}{end}" for end in SQLITE)])
        more: dict[str, Any] = {"epsilon": epsilon, "ledger": path, "budget": budget}
        more |= {"purpose": purpose, "accept-loss": form.get("accept")}
        command = self._command(files, more)
        title = form.get("title", "").strip() or name
        after = [forms.page_command(files, title), forms.sample_command(files)]
        texts = {
            files.declaration: editable(self.domain),
            files.commands: forms.script([command, *after]),
        }
        for file in files:
            ours = file in self._written or file == files.log
            if not ours and file.exists() and file.stat().st_size:
                return self._refused("name", f"{file} exists already: give another name.")
        for file, text in texts.items():
            write_text(file, text)
            self._written.add(file)
        self.plan = {
            "files": files, "commands": [command, *after], "epsilon": epsilon, "ledger": path,
            "budget": budget, "purpose": purpose, "name": name,
        }  # fmt: skip
        self.mark = token()
        return self._go("confirm")

    # -- the last confirmation

    def take_confirm(self, form: Mapping[str, str]) -> str | None:
        """Release, once for each mark."""
        mark, sent = self.mark, form.get("mark", "")
        if mark is None or sent != mark:
            return self._refused(
                "",
                "This confirmation has been used, or belongs to a plan that was changed since: it "
                "charged nothing. What stands here now is the present state.",
            )
        if not form.get("sure"):
            return self._refused("sure", "Confirm that epsilon may be spent.")
        self.mark = None
        plan = self.plan
        made: dict[str, Any] = {**plan, "code": None, "said": "", "lines": []}
        self.made = made
        self.reached = _ORDER.index("result")

        def work(say: Callable[[str], None]) -> Any:
            def keep(line: str) -> None:
                made["lines"].append(line)
                say(line)

            first, *after = plan["commands"]
            code = run_command(first, plan["files"].log, keep)
            if code == 0:
                say("The release is written. Making its page and synthetic rows.")
                for command in after:
                    run_command(command, plan["files"].log, keep)
            return code

        def then(code: int) -> str:
            made["code"] = code
            made["said"] = _CODES.get(code, "Interrupted.")
            return "result"

        return self._start("Releasing", work, then)

    def take_result(self, form: Mapping[str, str]) -> str | None:
        """Go back to the ledger, for another release."""
        self.reached = _ORDER.index("ledger")
        return "ledger"


def _on_a_page(message: str) -> str:
    """A message about a field, not about an option or code."""
    message = re.sub(r",? \(?in Python ([^()]|\([^)]*\))*?(\)| (?=\()|$)", " ", message)
    for option, name in _FIELDS.items():
        message = message.replace(option, name)
    return message.strip()
