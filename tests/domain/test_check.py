"""What `Domain.check` says of messy records, and the declaration that it proposes."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loops import over

import skdp
from skdp import Categorical, Date, Domain, Numeric, at_most
from skdp.domain.check import examined
from skdp.tables import as_frame

pytestmark = pytest.mark.filterwarnings("ignore::skdp.PrivacyLeakWarning")
N = 2_000
RNG = np.random.default_rng(0)


def said(values, attribute, name="x", **more):
    """Findings on one column, and its corrected declaration."""
    other = Categorical(["a", "b"])
    frame = pd.DataFrame({name: values, "other": RNG.choice(["a", "b"], len(values))})
    report = Domain({name: attribute, "other": other}).check(frame)
    lines = [line.removeprefix(f"{name}: ") for line in report.findings if line.startswith(name)]
    return "; ".join(lines), report.drafts[0].entries


WHOLE = RNG.integers(0, 100, N).astype(float)
REAL = RNG.random(N) * 100
DAYS = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 360, N), unit="D"))
YEAR = Date("2020-01-01", "2020-12-31")


NULLABLE, CENTS = {"nullable": True}, {"decimals": 2}
LOG, SPECIAL = {"bins": "auto", "scale": "log"}, {"special": ...}
COMMAS = [f"{v:.2f}".replace(".", ",") for v in REAL]
YES_NO, TOWNS = Categorical(["yes", "no"]), Categorical(["Bern", "Basel"])


@over(
    "values, attribute, finding, changed",
    [
        (WHOLE, Numeric(0, 100, 32), "whole numbers", {"integer": True}),
        (np.round(REAL, 2), Numeric(0, 100), "more than 2 decimal places", CENTS),
        (np.where(WHOLE < 30, np.nan, REAL), Numeric(0, 100), "have no value", NULLABLE),
        (np.where(WHOLE < 30, 0, REAL), Numeric(0, 100), "are 0 or such", SPECIAL),
        (REAL / 30, Numeric(0, 100, 20), "small part of the range: scale=", LOG),
        (COMMAS, Numeric(0, 100), "decimal=','", CENTS),
        (["12 kg", "15 kg", "9.5"] * 9, Numeric(0, 100), "'12 kg': mend them", NULLABLE),
        *(
            (DAYS.dt.strftime(form), YEAR, f"{form} reads 100%", {"format": form})
            for form in ("%m/%d/%Y", "%d %b %Y", "%d-%b-%y %H:%M")
        ),
        (["05/06/2020"] * 9, YEAR, "which is it?", {"format": "%m/%d/%Y"}),
        (["Bern", "bern "] * 9, TOWNS, "'bern ': mend their spelling", {}),
        (["yes", "no", "?"] * 9, YES_NO, "--missing ? (in Python na_values=['?']", {}),
        (np.arange(N) // 2, skdp.Identifier(), "2000 rows of 1000 persons", {}),
        ([None] * 9, Numeric(0, 9), "100% of the records have no value", NULLABLE),
    ],
)
def test_findings_and_corrections(values, attribute, finding, changed):
    found, entries = said(values, attribute)
    assert finding in found and changed.items() <= entries.items()
    assert ("nullable" in entries) == (changed == NULLABLE)


@over(
    "values, attribute",
    [
        (np.where(WHOLE < 40, 0, WHOLE), Numeric(0, 100, integer=True)),  # each has its own cell
        (REAL, Numeric(0, 100)),
        (DAYS.dt.strftime("%Y-%m-%d"), YEAR),
        (["Zürich", "Bern"] * 9, Categorical(["Zürich", "Bern"])),
    ],
)
def test_nothing_is_said_of_what_is_declared_well(values, attribute):
    found, entries = said(values, attribute)
    assert not found and Domain({"x": entries, "y": [0]}).declared("x") == attribute


def test_a_proposal_for_a_table_of_which_nothing_is_declared():
    frame = pd.DataFrame(
        {
            "person_id": np.arange(N) // 2,
            "amount": [f"${v:,.2f}" for v in REAL],
            "day": DAYS.dt.strftime("%d.%m.%Y"),
            "grade": RNG.choice(["a", "b"], N),
            "asked": ["N" if w < 20 else str(int(w)) for w in WHOLE],
            "note": [f"note {i}" for i in range(N)],
            "nothing": [None] * N,
        }
    )
    found = examined(None, as_frame(frame))
    drafts = {draft.name: draft.data for draft in found.drafts}
    kinds = ["identifier", "numeric", "date", "categorical", "numeric", "identifier", ...]
    assert [data["type"] for data in drafts.values()] == kinds
    assert any("no numbers, such as 'N': " in line for line in found.findings)
    assert drafts["asked"]["nullable"] is True and drafts["asked"]["integer"] is True
    assert drafts["amount"]["decimals"] == 2 and drafts["day"]["format"] == "%d.%m.%Y"
    # No value of the records is in it.
    assert all(not {"lower", "upper", "categories"} & data.keys() for data in drafts.values())
    blank = '{"name": "grade", "type": "categorical", "categories": "..."}'
    assert blank in found.declaration()
    one = Domain({"day": Date("2020-01-01", "2020-12-31")}).check(frame[["day", "person_id"]])
    assert any("2000 rows of 1000 persons" in line for line in one.findings)
    assert any("--privacy-id 'person_id'" in line for line in one.findings)


def test_findings_stay_out_of_what_is_saved():
    domain = Domain({"x": Numeric(0, 100, 32), "y": Categorical(["a", "b"])})
    frame = pd.DataFrame({"x": WHOLE, "y": "a"})
    with pytest.warns(skdp.PrivacyLeakWarning):
        report = domain.check(frame)
    assert report.findings and "- x: all values are whole numbers" in repr(report)
    with pytest.raises(skdp.DomainError, match="placeholder"):
        Domain.from_json(report.declaration().replace(": 100.0", ': "..."', 1))


def test_a_second_line_of_names():
    rows = {"town": ["Name", "a", "b"] * 1 + ["a"] * 30, "n": ["count"] + ["3"] * 32}
    report = Domain.propose(pd.DataFrame(rows))
    assert any("second line of names" in line for line in report.findings)
    assert report.drafts[1].data["type"] == "categorical"


def test_rules_are_never_proposed_and_declared_ones_stay():
    frame = pd.DataFrame({"low": WHOLE, "high": WHOLE + 5, "city": RNG.choice(["a", "b"], N)})
    frame["region"] = frame["city"].map({"a": "x", "b": "y"})
    whole = Numeric(0, 110, integer=True)
    columns = {"low": whole, "high": whole, "city": ["a", "b"], "region": ["x", "y"]}
    findings = Domain(columns).check(frame).findings
    assert not any("at_most" in line or "derived" in line for line in findings)
    derive = skdp.derived("region", "city", {"a": "x", "b": "y"})
    limits = [at_most("low", "high"), skdp.forbid("low > 100 and city == 'a'")]
    domain = Domain(columns, structure=[*limits, derive])
    report = domain.check(frame)
    assert Domain.from_json(report.declaration()) == domain


# Kinds


COLUMNS = json.loads(Path(__file__).with_name("columns.json").read_text(encoding="utf-8"))


def kind_of(values, name="x"):
    """The kind that is proposed for one column, and the findings."""
    report = Domain.propose(pd.DataFrame({name: values}))
    return report.drafts[0].data["type"], "; ".join(report.findings)


def test_kinds_of_columns_of_public_files():
    """At least 57 of 60 columns of public files, labelled before they were tried."""
    wrong = []
    for each in COLUMNS:
        values = pd.Series(each["values"].split("\n"), dtype=object)
        kind = kind_of(values, each["name"])[0]
        if {"datetime": "date", None: "none"}.get(kind, kind) != each["kind"]:
            wrong.append(each["name"])
    assert len(COLUMNS) == 60 and len(wrong) <= 3, wrong


def visits(ids):
    return [str(n) for n in ids for _ in range(int(n) % 3 + 1)]


TIMES = DAYS + pd.to_timedelta(RNG.integers(0, 86_400, N), unit="s")
NAMES = [f"{a}{b} {c}" for a in "abcdefg" for b in "hijklmn" for c in "opqrst"] * 7


@over(
    "name, values, kind",
    [
        *(
            ("age", [*(str(i % 90) for i in range(990)), *[word] * 10], "numeric")
            for word in ("Unknown", "<0.5", "-")
        ),
        ("cost", COMMAS, "numeric"),
        ("year", [str(n) for n in range(1950, 2020)], "numeric"),
        ("id_paciente", visits(range(1, 200)), "identifier"),
        # Hospital numbers, each a few times; numbers without a gap; text with digits.
        ("x", RNG.choice(RNG.integers(100_000, 999_999, 700), N), "identifier"),
        ("x", RNG.permutation(np.arange(1, N + 1) // 2), "identifier"),
        ("x", [f"17-{i // 3:06d}" for i in range(N)], "identifier"),
        ("x", [f"A{min(int(v), 199)}" for v in RNG.exponential(12, N)], "categorical"),
        ("zip_code", RNG.integers(98101, 98250, 900), "categorical"),
        ("pressure", [f"{n}/80" for n in RNG.integers(100, 160, 200)], "categorical"),
        ("seen", DAYS.dt.strftime("%Y-%d-%m"), "date"),
        ("seen", [int(day) for day in DAYS.dt.strftime("%d%m%Y")], "date"),
        ("admission_date", [str(n) for n in RNG.integers(43_000, 44_500, 400)], "date"),
        # Midnight is no time of the day.
        ("seen", DAYS.dt.strftime("%Y-%m-%d 00:00:00"), "date"),
        ("seen", TIMES.dt.strftime("%Y-%m-%dT%H:%M:%SZ"), "datetime"),
        ("time", [f"{i % 24}:{i % 60:02d}" for i in range(N)], None),
        ("who", NAMES, None),
        ("age", RNG.integers(18, 91, 300), "numeric"),
    ],
)
def test_kinds_of_messy_columns(name, values, kind):
    found, lines = kind_of(values, name)
    assert found == kind and ("spreadsheet" in lines) == (name == "admission_date")
    if kind == "identifier" and len(set(values)) < len(values):
        assert f"{len(values)} rows of {len(set(values))} persons" in lines
    assert kind in ("identifier", None) or "persons" not in lines


def test_report_names_what_changes_with_shares():
    domain = Domain(
        {
            "a": Numeric(0, 9, integer=True),
            "b": Numeric(0, 9, integer=True),
            "c": Categorical(["x", "y"], nullable=True),
            "day": Date("2024-01-01", "2024-12-31", nullable=True),
            "pay": Numeric(0, 10, nullable=True),
        },
        structure=[at_most("a", "b")],
    )
    frame = pd.DataFrame(
        {
            "a": [1, 5, 3, 20, 3],
            "b": pd.Series([2, 3, 4, 30, "old"], dtype=object),
            "c": ["x", None, "z", "y", "x"],
            "day": ["2024-03-01", "01/03/2024", None, "soon", "2024-03-02"],
            "pay": pd.Series([1, " ", "?", np.nan, 2], dtype=object),
        }
    )
    report = domain.check(frame)
    assert report.columns["not_understood"].tolist() == [0, 1, 0, 2, 1]
    assert report.columns["to_missing"].tolist() == [0, 0, 1, 3, 3]
    assert report.columns["skipped"].tolist() == [0, 1, 1, 0, 0]
    assert "records skipped: 3 of 5 (60%)" in repr(report)
    assert re.search(r"at_most\('a', 'b'\) +1 \(20%\)", repr(report))
    assert "records skipped: 0 of 0 (0%)" in repr(domain.check(frame[:0]))
    assert "- 'who': not declared" in repr(domain.check(frame.assign(who="a")))


def test_a_proposal_says_in_which_century_years_of_two_digits_are():
    born = [f"{1 + i % 28:02d}-{1 + i % 12:02d}-{i % 100:02d}" for i in range(300)]
    found = Domain.propose(pd.DataFrame({"born": born})).findings
    assert any("%d-%m-%y" in each and "00 to 68 are 2000 to 2068" in each for each in found)
