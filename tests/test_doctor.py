"""What `Domain.check` says of messy records, and the declaration that it proposes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdp import Categorical, Date, Domain, DomainError, Identifier, Numeric, PrivacyLeakWarning
from skdp.domain.doctor import examined
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
    code = next(line for line in report.declaration().splitlines() if repr(name) in line)
    return "; ".join(lines), code


WHOLE = RNG.integers(0, 100, N).astype(float)
REAL = RNG.random(N) * 100
DAYS = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 360, N), unit="D"))
YEAR = Date("2020-01-01", "2020-12-31")


@pytest.mark.parametrize(
    ("values", "attribute", "finding", "code"),
    [
        (WHOLE, Numeric(0, 100, 32), "whole numbers", "Numeric(0, 100, integer=True)"),
        (np.round(REAL, 2), Numeric(0, 100), "no value has more than 2 decimals", "decimals=2"),
        (np.where(WHOLE < 30, np.nan, REAL), Numeric(0, 100), "have no value", "nullable=True"),
        (np.where(WHOLE < 30, 0, REAL), Numeric(0, 100), "share one value, 0", "special=..."),
        (REAL / 30, Numeric(0, 100, 20), "one bin holds", "bins='auto'"),
        (REAL / 30, Numeric(0, 100, 20), "lowest tenth", "scale='log'"),
        ([f"${v:,.2f}" for v in REAL * 99], Numeric(0, 9999), "signs or groups", "decimals=2"),
        ([f"{v:.2f}".replace(".", ",") for v in REAL], Numeric(0, 100), "decimal comma", ""),
        (DAYS.dt.strftime("%m/%d/%Y"), YEAR, "%m/%d/%Y reads 100%", "format='%m/%d/%Y'"),
        (DAYS.dt.strftime("%d.%m.%Y"), YEAR, "%d.%m.%Y reads 100%", "format='%d.%m.%Y'"),
        (DAYS.dt.strftime("%d %b %Y"), YEAR, "%d %b %Y reads 100%", "format='%d %b %Y'"),
        (DAYS.dt.strftime("%b %d %Y"), YEAR, "%b %d %Y reads 100%", "format='%b %d %Y'"),
        (DAYS.dt.strftime("%d-%b-%y %H:%M"), YEAR, "%H:%M reads 100%", "format='%d-%b-%y %H:%M'"),
        (["05/06/2020"] * 9, YEAR, "which is it?", "format="),
        (["Bern", "bern "] * 9, Categorical(["Bern", "Basel"]), "by case or blanks", ""),
        (["Bern", "Ems"] * 9, Categorical(["Bern", "Basel"]), "'Ems': add them, or one for", ""),
        (np.where(REAL < 30, 2000000205, WHOLE), Numeric(0, 9), "one value, 2000000205 (", ""),
        (["ZÃ¼rich", "Bern"] * 9, Categorical(["Zürich", "Bern"]), "wrong encoding", ""),
        (np.arange(N) // 2, Identifier(), "2000 rows of 1000 different ones", "Identifier()"),
    ],
)
def test_findings_and_corrections(values, attribute, finding, code):
    found, proposed = said(values, attribute)
    assert finding in found and code in proposed


@pytest.mark.parametrize(
    ("values", "attribute"),
    [
        (WHOLE, Numeric(0, 100, integer=True)),
        (np.where(WHOLE < 40, 0, WHOLE), Numeric(0, 100, integer=True)),  # each has its own cell
        (REAL, Numeric(0, 100)),
        (DAYS.dt.strftime("%Y-%m-%d"), YEAR),
        (DAYS, YEAR),
        (["Zürich", "Bern"] * 9, Categorical(["Zürich", "Bern"])),
        (np.arange(N), Identifier()),
        (np.zeros(0), Numeric(0, 100)),
    ],
)
def test_nothing_is_said_of_what_is_declared_well(values, attribute):
    found, proposed = said(values, attribute)
    assert not found and eval(proposed.split(": ", 1)[1].rstrip(","), globals()) == attribute


def test_kept_shares_of_a_person():
    found, _ = said(np.repeat(np.arange(500), 4), Identifier(), "person")
    assert "1: 25%, 2: 50%" in found and "at most 4" in found


def rules_of(frame, domain):
    return "; ".join(line for line in domain.check(frame).findings if line.startswith("rule?"))


def test_rules_that_nearly_all_records_keep():
    loan = RNG.random(N) * 1000
    city = RNG.choice(["a", "b", "c"], N)
    frame = pd.DataFrame(
        {
            "loan": loan,
            "balance": loan * RNG.random(N),
            "city": city,
            "region": pd.Series(city).map({"a": "x", "b": "x", "c": "y"}),
        }
    )
    domain = Domain(
        {
            "loan": Numeric(0, 1000),
            "balance": Numeric(0, 1000),
            "city": Categorical(["a", "b", "c"]),
            "region": Categorical(["x", "y"]),
        }
    )
    found = rules_of(frame, domain)
    for rule in (
        "at_most('balance', 'loan'): 100",
        "derived('region', from_='city', map=...): 100",
    ):
        assert rule in found
    assert "at_most('loan'" not in found and "derived('city'" not in found
    shuffled = pd.DataFrame({name: RNG.permutation(frame[name]) for name in frame})
    assert not rules_of(shuffled, domain)


def test_a_proposal_for_a_table_of_which_nothing_is_declared():
    frame = pd.DataFrame(
        {
            "person_id": np.arange(N) // 2,
            "amount": [f"${v:,.2f}" for v in REAL],
            "n": WHOLE,
            "day": DAYS.dt.strftime("%d.%m.%Y"),
            "grade": RNG.choice(["a", "b"], N),
            "code": RNG.integers(1, 4, N),
            "asked": ["N" if w < 20 else str(int(w)) for w in WHOLE],
            "note": [f"note {i}" for i in range(N)],
            "nothing": [None] * N,
        }
    )
    found = examined(None, as_frame(frame))
    drafts = {name: data for name, data, _ in found.drafts}
    kinds = {name: data["type"] for name, data in drafts.items()}
    assert kinds == {
        "person_id": "identifier", "amount": "numeric", "n": "numeric", "day": "date",
        "grade": "categorical", "code": "categorical", "asked": "numeric",
        "note": "identifier", "nothing": ...,
    }  # fmt: skip
    assert any("no numbers, such as 'N': missing" in line for line in found.lines)
    assert drafts["asked"]["nullable"] is True
    assert drafts["amount"]["decimals"] == 2 and drafts["n"]["integer"] is True
    assert drafts["day"]["format"] == "%d.%m.%Y" and drafts["grade"]["categories"] is ...
    # No value of the records is in it.
    assert all(data.get("lower", ...) is ... for data in drafts.values())


def test_findings_stay_out_of_what_is_saved():
    domain = Domain({"x": Numeric(0, 100, 32), "y": Categorical(["a", "b"])})
    before = domain.to_json(), hash(domain), repr(domain)
    frame = pd.DataFrame({"x": WHOLE, "y": "a"})
    with pytest.warns(PrivacyLeakWarning):
        report = domain.check(frame)
    assert report.findings and "whole numbers" in repr(report) and "<li>" in report._repr_html_()
    assert (domain.to_json(), hash(domain), repr(domain)) == before
    with pytest.raises(ValueError, match="style"):
        report.declaration("yaml")
    with pytest.raises(DomainError):
        exec(report.declaration().replace("100", "...", 1), {})


def test_odd_values_raise_nothing():
    odd = [None, "", " ", "?", np.nan, np.inf, 10**400, "1e999", b"x", [1], object(), "0/0/0", True]
    frame = pd.DataFrame({"x": pd.Series(odd, dtype=object), "y": pd.Series(odd, dtype=object)})
    for x in (Numeric(0, 9), Numeric(0, 9, integer=True), YEAR, Categorical([1, 2]), Identifier()):
        Domain({"x": x, "y": Categorical(["a", "b"])}).check(frame)
    examined(None, as_frame(frame))


# Columns of which nothing is declared


def kind_of(values, name="x", **options):
    """What is proposed for one column, and the findings on it."""
    rows = len(values)
    frame = pd.DataFrame({name: values, "other": [str(i % 3) for i in range(rows)]}, **options)
    report = Domain.propose(frame)
    data = {name: data for name, data, _ in report.drafts}[name]
    return data, "; ".join(line for line in report.findings if line.startswith(name))


HEAPED = RNG.lognormal(9, 1, N).round(-2)
DIAGNOSES = [f"A{min(int(v), 199)}" for v in RNG.exponential(12, N)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        # Hospital numbers, each a few times; numbers without a gap; text with digits.
        (RNG.choice(RNG.integers(100_000, 999_999, 700), N), "identifier"),
        (RNG.permutation(np.arange(1, N + 1) // 2), "identifier"),
        ([f"17-{i // 3:06d}" for i in range(N)], "identifier"),
        # A category, an amount and a count of many values are none.
        (DIAGNOSES, "categorical"),
        (HEAPED, "numeric"),
        (RNG.integers(0, 1440, N), "numeric"),
        (RNG.exponential(400, N).round(), "numeric"),
        (RNG.choice([f"{n}" for n in range(98101, 98180)], N), "numeric"),
    ],
)
def test_identifiers_are_found_by_values(values, kind):
    data, found = kind_of(values)
    assert data["type"] == kind and ("different ones" in found) == (kind == "identifier")


def test_what_a_column_is_by_its_values():
    name = [f"{a}{b} {c}" for a in "abcdefg" for b in "hijklmn" for c in "opqrst"] * 7
    assert kind_of(name)[0]["type"] is None and "free text" in kind_of(name)[1]
    assert kind_of([f"{i % 24}:{i % 60:02d}" for i in range(N)])[0]["type"] is None
    assert kind_of(RNG.integers(98101, 98250, 900), "zip_code")[0]["type"] == "categorical"
    assert kind_of([f"{v:.2f}".replace(".", ",") for v in REAL])[0] == {
        "type": "numeric", "lower": ..., "upper": ..., "nullable": False, "decimals": 2,
    }  # fmt: skip
    assert kind_of([20200101 + i % 28 for i in range(N)])[0]["type"] == "date"
    month = kind_of(["Jan-2018", "Mar-2018"] * 9)[0]
    assert month["type"] == "date" and month["unit"] == "month"


@pytest.mark.parametrize(
    "written", ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M", ""]
)
def test_times_are_proposed_as_times(written):
    times = DAYS + pd.to_timedelta(RNG.integers(0, 86_400, N), unit="s")
    data, _ = kind_of(times.dt.strftime(written) if written else times)
    assert data["type"] == "datetime"
    assert kind_of(DAYS)[0]["type"] == "date"


def test_numbers_in_a_form_that_is_not_read_are_not_missing():
    found, proposed = said(["12 kg", "15 kg", "9"] * 9, Numeric(0, 100))
    assert "such as '12 kg': a form that is not read" in found and "nullable" not in proposed
    found, proposed = said(["unknown", "15", "9"] * 9, Numeric(0, 100))
    assert "missing" in found and "nullable=True" in proposed
    found, proposed = said([f"{v:.2f}".replace(".", ",") for v in REAL], Numeric(0, 100))
    assert "--decimal ," in found and "decimal=','" in found and "nullable" not in proposed


def test_whole_numbers_of_a_wide_range_get_bins():
    assert "Numeric(0, 9999, bins='auto', integer=True)" in said(WHOLE * 90, Numeric(0, 9999, 9))[1]


def test_values_are_common_by_their_neighbours():
    few = RNG.binomial(60, 0.5, N).astype(float) + RNG.integers(0, 2, N) * 40
    assert "share one value" not in said(few, Numeric(0, 120, integer=True))[0]


def test_text_for_no_value_and_many_spellings():
    found, _ = said(["yes", "no", "NA"] * 9, Categorical(["yes", "no"], nullable=True))
    assert "--missing NA" in found and "na_values=['NA']" in found
    many = [f"{name}{' ' * (i % 2)}" for i in range(2) for name in "abcdefgh"] * 9
    found, _ = said(many, Categorical(list("abcdefgh")))
    assert found.count("case or blanks") == 1 and ".str.strip()" in found


def test_a_second_line_of_names():
    rows = {"town": ["Name", "a", "b"] * 1 + ["a"] * 30, "n": ["count"] + ["3"] * 32}
    report = Domain.propose(pd.DataFrame(rows))
    assert any("second line of names" in line for line in report.findings)
    assert {name: data for name, data, _ in report.drafts}["n"]["type"] == "categorical"
    for first in ("NA", "3"):
        rows["n"][0] = first
        assert not any("second" in line for line in Domain.propose(pd.DataFrame(rows)).findings)


# Rules


def test_declared_rules_stay_and_are_not_proposed_again():
    from skdp import at_most, derived, forbid

    low = pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), unit="D")
    stay = RNG.integers(0, 20, N)
    city = RNG.choice(list("abcdef"), N)
    gap = np.where(city == "a", REAL, np.nan)
    frame = pd.DataFrame(
        {
            "admitted": pd.Series(low).dt.strftime("%d.%m.%Y"),
            "left": pd.Series(low + pd.to_timedelta(stay, unit="D")).dt.strftime("%Y-%m-%d"),
            "city": city,
            "region": pd.Series(city).map(dict(zip("abcdef", "xxyyzz", strict=True))),
            "one": gap,
            "two": 100 - gap,
        }
    )
    attributes = {
        "admitted": Date("2020-01-01", "2020-12-31", format="%d.%m.%Y"),
        "left": Date("2020-01-01", "2020-12-31"),
        "city": Categorical(list("abcdef")),
        "region": Categorical(list("xyz")),
        "one": Numeric(0, 100, 10, nullable=True),
        "two": Numeric(0, 100, 10, nullable=True),
    }
    found = rules_of(frame, Domain(attributes))
    for rule in (
        "at_most('admitted', 'left')", "derived('region', from_='city', map=...)",
    ):  # fmt: skip
        assert rule in found
    rules = [
        at_most("admitted", "left"),
        derived("region", "city", dict(zip("abcdef", "xxyyzz", strict=True))),
        forbid("one != None and city != 'a'"),
        forbid({"two": None, "city": ["a"]}),
    ]
    domain = Domain(attributes, structure=rules)
    report = domain.check(frame)
    again = [line for line in report.findings if line.startswith("rule?")]
    assert not any("at_most" in line for line in again)
    assert not any("derived('region', from_='city'" in line for line in again)
    # Both forms of the declaration read back as they were.
    for style in ("python", "json"):
        text = report.declaration(style)
        if style == "json":
            assert Domain.from_json(text) == domain
        else:
            scope = {}
            exec(text, scope)
            assert scope["domain"] == domain


def test_rules_that_hold_by_chance_are_not_proposed():
    frame = pd.DataFrame(
        {
            # Nearly always below, and as often where the columns have nothing in common.
            "short": RNG.exponential(20, N).round(),
            "long": RNG.normal(200, 40, N).round(),
            # Gaps that a rare value happens not to have.
            "gap": np.where(RNG.random(N) < 0.3, np.nan, WHOLE),
            "rare": np.where(np.arange(N) < 4, "rare", RNG.choice(["a", "b"], N)),
        }
    )
    frame.loc[:3, "gap"] = np.nan
    assert not [line for line in Domain.propose(frame).findings if line.startswith("rule?")]


def test_an_identifier_that_is_not_declared_is_told():
    frame = pd.DataFrame({"number": np.arange(N) // 4 * 7 + 10_001, "x": WHOLE})
    found = Domain({"x": Numeric(0, 100, integer=True)}).check(frame).findings
    assert len(found) == 1 and "number: 2000 rows of 500" in found[0]
    assert "--privacy-id 'number'" in found[0]
