"""The wizard: nothing is charged before the last page, once; strangers get no answer."""

import html
import os
import re
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest
from loops import over

import skdp
from skdp import Categorical, Domain, Numeric
from skdp.__main__ import main

pytest.importorskip("jinja2")

from skdp.app.cli import parser
from skdp.app.wizard import server, steps
from skdp.app.wizard.server import Pages, application
from skdp.app.wizard.steps import domain_of, form_of_column
from skdp.domain.check import Draft

PORT = 8000
HOST = f"127.0.0.1:{PORT}"
OURS = {"host": HOST, "origin": f"http://{HOST}"}
LINES = ["age,sex,visit,person"]
LINES += [f"{20 + i % 50},{'FM'[i % 2]},2024-0{1 + i % 9}-11,{i // 2}" for i in range(60)]


class Browser:
    """Sends requests as a browser would, and follows redirects."""

    def __init__(self, folder, lines=LINES, **more):
        (folder / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        options = {
            "data": str(folder / "table.csv"),
            "folder": str(folder),
            "read": parser().parse_args,
        }
        self.wizard = steps.Wizard(Namespace(**{"domain": None, "ledger": None, **options, **more}))
        self.pages = Pages(self.wizard, PORT)
        self.status, self.text, self.headers, self.step = 0, "", {}, ""

    def get(self, path="", **headers):
        return self._send("GET", path, headers)

    def post(self, step, **form):
        return self._send("POST", step, OURS, urlencode(form).encode())

    def _send(self, method, path, headers, body=b""):
        root = f"/{self.pages.token}/"
        found = self.pages.answer(method, root + path, {"host": HOST, **headers}, body)
        while found.status_code == 303 or "Refresh" in found.headers:
            # A page that waits is asked for again.
            path = found.headers.get("Location", root + path).removeprefix(root)
            found = self.pages.answer("GET", root + path, {"host": HOST})
        self.status, self.text, self.headers = found.status_code, found.body.decode(), found.headers
        self.step = path.strip("/")
        return self

    def until(self, step, **changed):
        """Up to a page, by the usual forms or those that are given for a page."""
        while self.step != step:
            page = self.step or self.get().step
            self.post(page, **changed.get(page, USUAL[page]))
            assert self.step != page, self.text
        return self

    def confirmed(self):
        return self.post("confirm", mark=self.wizard.plan["mark"], sure="on")


FORM = {
    "0.kind": "numeric", "0.lower": "0", "0.upper": "99", "0.integer": "true",
    "1.kind": "categorical", "1.categories": "F\r\nM",
    "2.kind": "date", "2.lower": "2024-01-01", "2.upper": "2024-12-31",
    "3.kind": "", "public": "on",
}  # fmt: skip
USUAL = {
    "table": {"protects": "record"},
    "columns": FORM,
    "questions": {"own": "age >= 40"},
    "epsilon": {"n": "50", "at": "1", "epsilon": "1"},
    "ledger": {"name": "view", "ledger": "l", "budget": "2", "purpose": "a test", "title": "Ages"},
}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Answers that wait for the work they begin, however busy the machine is."""
    monkeypatch.setattr(server, "_PATIENCE", 600.0)


@pytest.fixture
def browser(tmp_path):
    return Browser(tmp_path)


@pytest.fixture
def commands(monkeypatch):
    """The commands that the wizard runs, without running them."""
    found = []
    monkeypatch.setattr(steps, "run_command", lambda each, log, say: found.append(each) or 0)
    return found


# Strangers


HOSTS = ["", "evil.example:8000", "127.0.0.1", "[::1]:8000"]
ORIGINS = ["null", "http://evil.example", "https://127.0.0.1:8000"]


@over(
    "path, headers, status",
    [
        *(("{token}/table", {**OURS, "host": host}, 403) for host in HOSTS),
        *(("{token}/table", {**OURS, "origin": origin}, 403) for origin in ORIGINS),
        ("{token}/table", {"host": HOST}, 403),
        *((path, OURS, 404) for path in ("", "/", "table", "wrong/table", "wrong/file/skdp")),
    ],
)
def test_strangers_get_no_answer(browser, path, headers, status):
    path = "/" + path.format(token=browser.pages.token)
    found = browser.pages.answer("POST", path, headers, b"protects=record")
    assert found.status_code == status and browser.wizard.reached == 0
    assert b"table" not in found.body and browser.pages.token.encode() not in found.body
    if status == 404 or headers["host"] != HOST:
        assert browser.pages.answer("GET", path, headers).status_code == status


def test_every_answer_forbids_scripts_and_other_sites(browser):
    for page in ("", "table", "style.css", "nothing", "file/skdp"):
        headers = browser.get(page).headers
        assert headers["Referrer-Policy"] == "same-origin"
        policy = headers.get("Content-Security-Policy", "")
        assert "default-src 'none'" in policy or page == "style.css"
        assert "script" not in policy and "unsafe" not in policy
    assert "<script" not in browser.get("table").text


def test_a_server_passes_requests_on(browser):
    pytest.importorskip("httpx")
    client = pytest.importorskip("starlette.testclient").TestClient(
        application(browser.pages), base_url=f"http://{HOST}"
    )
    root = f"/{browser.pages.token}/"
    assert client.get(root, follow_redirects=False).headers["location"] == f"{root}table"
    assert "whom epsilon protects" in client.get(root).text
    sent = {"protects": "person"}
    assert client.post(f"{root}table", data=sent).status_code == 403
    answer = client.post(f"{root}table", data=sent, headers=OURS)
    assert answer.status_code == 422 and "Choose the column" in answer.text
    assert client.post(f"{root}table", content=b"a=" + b"x" * (1 << 25)).status_code == 413


# Steps


def test_blanks_and_wrong_values_are_said_beside_their_field_and_nothing_is_lost(browser):
    assert browser.get("confirm").step == browser.post("confirm", sure="on").step == "table"
    browser.post("table", protects="record")
    assert browser.step == "columns" and "for you alone" in browser.text.casefold()
    typed = {**FORM, "0.lower": "abc", "1.categories": "", "2.upper": ""}
    browser.post("columns", **typed, rules="")
    assert browser.status == 422
    for field in ("0.lower", "1.categories", "2.upper"):
        assert f'id="{field}-error"' in browser.text
    assert 'value="abc"' in browser.text and 'value="2024-01-01"' in browser.text
    assert "abc" in browser.get("columns").text
    browser.post("columns", **{**FORM, "public": ""})
    assert "Confirm that all of this is publicly known" in browser.text


def test_a_page_waits_for_work_that_takes_longer(browser, monkeypatch):
    monkeypatch.setattr(server, "_PATIENCE", 0.01)
    hold = threading.Event()
    monkeypatch.setattr(steps, "checked", lambda *given: hold.wait() and 1 / 0)
    root = f"/{browser.pages.token}/"
    browser.pages.answer("POST", f"{root}table", OURS, b"protects=record")
    found = browser.pages.answer("GET", f"{root}working", OURS)
    assert found.headers["Refresh"] == "1" and "Looking at the table" in found.body.decode()
    # Nothing else is taken meanwhile, and what failed is said without a value.
    assert browser.pages.answer("POST", f"{root}table", OURS).headers["Location"] == root
    hold.set()
    assert "Failed (ZeroDivisionError). The message is withheld" in browser.get("working").text


def test_rules_are_refused_in_the_words_of_the_library(browser):
    browser.post("table", protects="record")
    browser.post("columns", **FORM, rules='{"rule": "nothing"}')
    assert 'id="rules-error"' in browser.text
    rules = '{"rule": "forbid", "condition": "age != None and sex not in [\'F\']"}'
    browser.post("columns", **{**FORM, "0.nullable": "true"}, rules=rules)
    [kept] = browser.wizard.domain.structure.rules
    assert repr(kept) == "forbid(\"age != None and sex not in ['F']\")"


@over(
    "attribute",
    [
        Numeric(0, 9, integer=True, nullable=True, special=[99]),
        Numeric(1, 1e6, scale="log", bins="auto"),
        Categorical(["a", "b, c", " d"[1:]], other="a", ordered=True),
        Categorical(["01", "02"]),
        skdp.Date("2020-01-01", "2021-12-31", format="%d.%m.%Y"),
        skdp.Datetime("2020-01-01", "2021-12-31", tz="UTC"),
        skdp.Categorical(["x", "y"], taxonomy=skdp.Taxonomy.from_tree({"all": ["x", "y"]})),
    ],
)
def test_a_form_of_a_column_says_the_same_as_the_column(attribute):
    drafted = form_of_column(Draft("c", attribute.to_data()))
    form = {f"0.{key}": text for key, text in drafted.items()}
    found, wrong = domain_of(["c"], form)
    assert not wrong and found == Domain({"c": attribute})


def test_exact_findings_are_on_the_page_of_the_columns_alone(browser, commands, tmp_path):
    # A number of records and a text that nothing else has.
    browser = Browser(tmp_path, [*LINES, *["Canary77,F,2024-01-11,9"] * 13])
    browser.post("table", protects="record")
    browser.post("columns", **FORM, do="check")
    # Whoever checks sees at the column that too much does not fit, and may go on.
    assert all(each in browser.text for each in ('id="0.kind-error"', "Canary77", "73"))
    browser.until("confirm")
    for page in ("table", "questions", "epsilon", "ledger", "confirm"):
        assert "Canary77" not in browser.get(page).text
        assert not re.search(r"\b(73|13)\b", browser.text)
    written = [each for each in tmp_path.iterdir() if each.name != "table.csv"]
    assert {each.suffix for each in written} == {".json", ".sh"}
    assert not any(re.search(r"Canary77|\b50\b", each.read_text()) for each in written)


def test_questions_are_chosen_and_checked(browser):
    browser.until("questions")
    assert 'name="ask.mean(age)"' in browser.text
    browser.post("questions", do="next", own="nothing > 3")
    assert browser.step == "questions" and "has no column" in browser.text
    browser.post("questions", **{"do": "next", "own": "age >= 3", "ask.mean(age)": "on"})
    assert browser.step == "epsilon" and browser.wizard.asked == ["mean(age)", "age >= 3"]


def test_the_ledger_and_the_names_are_checked_before_anything_is_written(browser, tmp_path):
    browser.until("confirm")
    wrongs = (("name", "../view"), ("budget", "0.5"), ("budget", "much"), ("purpose", " "))
    for field, wrong in wrongs:
        browser.post("ledger", **{**USUAL["ledger"], field: wrong})
        assert browser.status == 422 and f'id="{field}-error"' in browser.text, wrong
        assert browser.get("confirm").step != "confirm"
    (tmp_path / "v.csv").write_text("mine")
    browser.post("ledger", **{**USUAL["ledger"], "name": "v"})
    assert "exists already" in browser.text and not (tmp_path / "v.json").exists()
    browser.post("ledger", **{**USUAL["ledger"], "name": "table"})
    assert browser.status == 422 and not (tmp_path / "table.json").exists()


def test_persons_are_protected_where_a_column_identifies_them(browser, commands):
    # Nobody is chosen beforehand, neither each record nor each person.
    assert " checked" not in browser.get("table").text
    assert "Choose whom" in browser.post("table").text and browser.wizard.reached == 0
    browser.post("table", protects="person", unit="person", most="0")
    assert 'id="most-error"' in browser.text
    form = {key: text for key, text in FORM.items() if not key.startswith("3.")}
    who = {"protects": "person", "unit": "person", "most": "2"}
    browser.until("confirm", table=who, columns=form, questions={})
    assert "each person, by the column" in browser.text and "1: 50%" not in browser.text
    assert "1: 50%, 2: 100%. This is for the data owner only" in browser.get("columns").text
    browser.confirmed()
    assert {"--privacy-id=person", "--max-rows-per-id=2"} <= set(commands[0])
    assert "--title=Ages" in commands[1]


def test_the_check_in_a_browser_looks_for_what_the_pages_say():
    check = (Path(__file__).parents[1] / "wizard_in_browser.py").read_text()
    said = "".join(each.read_text() for each in Path(steps.__file__).parent.rglob("*.[hp]*"))
    names = re.findall(r'(?:by_label|click|name=)\(?"([^"\\]+)"', check)
    assert len(names) > 20 and not [name for name in names if name not in said]


def test_what_cannot_be_read_is_said_of_all_columns_before_anything_is_spent(browser, tmp_path):
    browser.post("table", protects="record")
    wrong = {**FORM, "1.categories": "F,M", "3.kind": "categorical", "3.categories": "no\nyes"}
    browser.post("columns", **wrong)
    assert browser.step == "columns" and browser.text.count("</b> More than a tenth") == 2
    assert "a comma is a part of them" in browser.text
    assert {each.name for each in tmp_path.iterdir()} == {"table.csv"}
    # Who knows better goes on.
    assert browser.post("columns", **wrong).step == "questions"


# One charge


def test_a_confirmation_is_taken_once_whatever_tabs_send(browser, commands):
    mark = browser.until("confirm").wizard.plan["mark"]
    browser.post("confirm", mark=mark)
    assert 'id="sure-error"' in browser.text and not commands
    form = urlencode({"mark": mark, "sure": "on"}).encode()
    path = f"/{browser.pages.token}/confirm"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: browser.pages.answer("POST", path, OURS, form), range(16)))
    assert browser.get("release").step == "release"
    # A reload.
    browser.post("confirm", mark=mark, sure="on")
    assert browser.status == 422 and "charged nothing" in browser.text
    assert [each[0] for each in commands] == ["release", "page", "sample"]


def test_a_change_discards_the_confirmation_that_was_shown(browser, commands):
    browser.until("confirm")
    mark = browser.wizard.plan["mark"]
    browser.post("epsilon", n="50", at="1,2", epsilon="2")
    browser.post("confirm", mark=mark, sure="on")
    assert browser.step == "ledger" and not commands
    browser.post("ledger", **USUAL["ledger"])
    browser.post("confirm", mark=mark, sure="on")
    assert browser.status == 422 and not commands
    assert "--epsilon=2" in browser.wizard.plan["commands"][0]


# What anybody may have named


HOSTILE = [
    "<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "{{ 7 * 7 }}{% raw %}",
    "\u202eeman\u202c", "\U0001f469\u200d\U0001f680", "x" * 10_000, "-- --force", "`a` == 'b'",
]  # fmt: skip


def test_hostile_names_and_categories_are_text_everywhere(tmp_path, commands):
    names = ['"' + each.replace('"', '""') + '"' for each in HOSTILE]
    browser = Browser(tmp_path, [",".join(names), ",".join(["<b>1</b>"] * len(names))])
    browser.post("table", protects="record")
    form = {f"{i}.kind": "categorical" for i in range(len(HOSTILE))}
    form |= {f"{i}.categories": f"<b>1</b>\r\n{name}" for i, name in enumerate(HOSTILE)}
    pages = [browser.get("table").text, browser.get("columns").text]
    pages.append(browser.post("columns", **form, public="on").text)
    browser.post(
        "questions", **{f"ask.{each}": "on" for each in steps.suggested(browser.wizard.domain)}
    )
    assert browser.step == "epsilon", browser.wizard.wrong
    ledger = {**USUAL["ledger"], "purpose": "<script>alert(2)</script>"}
    pages.append(browser.until("confirm", ledger=ledger).text)
    pages.append(browser.confirmed().text)
    # Jinja's `{{ 7 * 7 }}` would be 49.
    for page in pages:
        assert not re.search(r"<(script|img)|>49<", page) and HOSTILE[1] not in page
    assert html.escape(HOSTILE[0]) in pages[1]
    saved = Domain.from_json(tmp_path / "view.json")
    assert list(saved.names) == HOSTILE


# A release, and one that is killed


def test_from_a_file_to_a_page(browser, tmp_path):
    browser.until("confirm")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "table.csv", "view.json", "view.sh",
    ]  # fmt: skip
    browser.confirmed()
    assert "The release is made" in browser.text
    ledger = skdp.PrivacyLedger(path=tmp_path / "l")
    assert ledger.spent == 1 and "a test" in ledger.to_frame()["purpose"].tolist()
    view = skdp.Synopsis.load(tmp_path / "view.skdp")
    assert view.domain.fingerprint == Domain.from_json(tmp_path / "view.json").fingerprint
    for end in ("html", "skdp", "csv", "sh"):
        found = browser.pages.answer("GET", f"/{browser.pages.token}/file/{end}", {"host": HOST})
        assert found.body == (tmp_path / f"view.{end}").read_bytes()
    found = browser.pages.answer("GET", f"/{browser.pages.token}/file/html", {"host": HOST})
    assert found.headers["Content-Security-Policy"].startswith("sandbox allow-scripts ")
    # The commands do the same, and are refused because it has been done.
    command = browser.wizard.made["commands"][0]
    assert main(command) == 2 and ledger.spent == 1


def test_a_wizard_that_is_killed_leaves_what_says_what_happened(tmp_path, monkeypatch):
    # As in a process of its own, killed while the release runs: the release ends by itself.
    code = (
        "import sys, os, signal; from pathlib import Path\n"
        "from skdp.app.wizard.steps import run_command\n"
        "def say(line):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "run_command(sys.argv[2:], Path(sys.argv[1]), say)"
    )
    browser = Browser(tmp_path).until("confirm")
    command = browser.wizard.plan["commands"][0]
    log = tmp_path / "view.log"
    killed = subprocess.run([sys.executable, "-c", code, log, *command], env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    for _ in range(200):
        if "Spent: " in log.read_text():
            break
        time.sleep(0.1)
    assert skdp.PrivacyLedger(path=tmp_path / "l").spent == 1
    assert (tmp_path / "view.skdp").exists() and "Spent: " in log.read_text()
    # The next wizard does not charge for the same name.
    again = Browser(tmp_path).until("ledger", questions={})
    again.post("ledger", **USUAL["ledger"])
    assert "exists already" in again.text


@pytest.mark.parametrize(
    ("code", "said"), [(2, "Refused"), (3, "Over budget"), (5, "Stopped"), (130, "Interrupted")]
)
def test_a_release_that_fails_says_so(browser, monkeypatch, code, said):
    monkeypatch.setattr(steps, "run_command", lambda each, log, say: say("A line.") or code)
    browser.until("confirm")
    browser.confirmed()
    assert said in browser.text and "A line." in browser.text and "file/html" not in browser.text


# The command


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    browser = Browser(tmp_path, ["a;b", "1;2"])
    assert "Between fields" in browser.get("table").text
    assert browser.post("table", protects="record").status == 422
    assert browser.post("table", protects="record", sep=";", do="header").step == "table"
    assert "2: <bdi" in browser.text and not browser.wizard.names
    assert browser.post("table", protects="record", sep=";").step == "columns"
    assert browser.wizard.names == ["a", "b"]
    # The line that names the columns may be another.
    browser.post("table", **{"sep": ";", "skip-lines": "1", "protects": "record"})
    assert browser.wizard.names == ["1", "2"]


def test_a_declaration_to_begin_with(tmp_path):
    domain = Domain({"age": Numeric(0, 99, integer=True), "sex": Categorical(["F", "M"])})
    (tmp_path / "d.json").write_text(domain.to_json())
    browser = Browser(tmp_path, domain=str(tmp_path / "d.json"))
    browser.post("table", protects="record")
    typed = browser.wizard.typed["columns"]
    assert (typed["0.upper"], typed["1.categories"], typed["2.kind"]) == ("99", "F\nM", "")
    browser.post("columns", **typed, public="on")
    assert browser.step == "questions" and domain == browser.wizard.domain
