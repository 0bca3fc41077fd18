"""What `Domain.check` says of messy records, and the declaration that it proposes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdp import Categorical, Date, Domain, DomainError, Identifier, Numeric, PrivacyLeakWarning
from skdp.domain.doctor import examined
from skdp.rows import as_frame

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
        (DAYS.dt.strftime("%d-%b-%y %H:%M"), YEAR, "%H:%M reads 100%", "format='%d-%b-%y %H:%M'"),
        (["05/06/2020"] * 9, YEAR, "which is it?", "format="),
        (["Bern", "bern "] * 9, Categorical(["Bern", "Basel"]), "by case or blanks", ""),
        (["Bern", "Ems"] * 9, Categorical(["Bern", "Basel"]), "50% of the values are not", ""),
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
            "spouse": np.where(city == "a", REAL, np.nan),
            "years": np.where(city == "a", REAL[::-1], np.nan),
        }
    )
    gaps = Numeric(0, 100, nullable=True)
    domain = Domain(
        {
            "loan": Numeric(0, 1000),
            "balance": Numeric(0, 1000),
            "city": Categorical(["a", "b", "c"]),
            "region": Categorical(["x", "y"]),
            "spouse": gaps,
            "years": gaps,
        }
    )
    found = rules_of(frame, domain)
    for rule in (
        "at_most('balance', 'loan'): 100",
        "derived('region', from_='city', map=...): 100",
        "only_if('spouse', {'city': ['a']}): 100",
        "missing_together(['spouse', 'years']): 100",
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
        report.declaration("json")
    with pytest.raises(DomainError):
        exec(report.declaration().replace("100", "...", 1), {})


def test_odd_values_raise_nothing():
    odd = [None, "", " ", "?", np.nan, np.inf, 10**400, "1e999", b"x", [1], object(), "0/0/0", True]
    frame = pd.DataFrame({"x": pd.Series(odd, dtype=object), "y": pd.Series(odd, dtype=object)})
    for x in (Numeric(0, 9), Numeric(0, 9, integer=True), YEAR, Categorical([1, 2]), Identifier()):
        Domain({"x": x, "y": Categorical(["a", "b"])}).check(frame)
    examined(None, as_frame(frame))
