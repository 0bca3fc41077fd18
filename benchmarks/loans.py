"""A generated table of loans whose structure is known: money, dates, point masses, gaps.

It has the shape of published tables of loans: amounts and incomes are log-normal, many amounts are
0 for most people, a grade follows from a sub-grade, a balance is at most the amount, a second
income belongs to joint applications only, the columns on hardship are missing together, cities
lie in states. Nothing of it comes from real people.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdp import at_most, derived, forbid

__all__ = ["AMOUNTS", "ZERO_INFLATED", "code_book", "loans", "structure", "violations"]

GRADES = tuple("ABCDEFG")
SUB_GRADES = tuple(f"{grade}{number}" for grade in GRADES for number in range(1, 6))
STATES = {
    "CA": ("Los Angeles", "San Diego", "San Jose"),
    "TX": ("Houston", "Dallas", "Austin"),
    "NY": ("New York", "Buffalo"),
    "FL": ("Miami", "Tampa", "Orlando"),
    "IL": ("Chicago", "Aurora"),
    "WA": ("Seattle", "Spokane"),
}
PURPOSES = ("debt", "card", "home", "car", "medical", "move", "wedding", "other")
HOMES = ("rent", "mortgage", "own", "other")
YEARS_EMPLOYED = ("<1", *map(str, range(1, 10)), "10+")
STATUSES = ("current", "paid", "late", "default")
REASONS = ("unemployment", "illness", "disaster", "other")
# Share of zeros of the columns that are mostly zero, and the median of the others.
ZERO_INFLATED = {
    "late_fees": (0.86, 30.0),
    "collections": (0.93, 400.0),
    "tax_liens": (0.97, 2_000.0),
    "settlement": (0.95, 1_500.0),
    "recoveries": (0.90, 800.0),
    "overdue": (0.80, 150.0),
    "cash_advance": (0.75, 300.0),
}
# Further columns of amounts, by their medians; all are log-normal with sigma 1.
AMOUNTS = {
    "income": 65_000.0,
    "card_limit": 20_000.0,
    "card_balance": 8_000.0,
    "car_debt": 12_000.0,
    "savings": 5_000.0,
    "rent_paid": 1_200.0,
}
# Counts of accounts and events, by their means.
COUNTS = {
    "open_accounts": 11.0,
    "all_accounts": 24.0,
    "inquiries": 0.6,
    "late_payments": 0.3,
    "bankruptcies": 0.1,
    "mortgages": 1.6,
    "cards": 4.0,
    "cars": 1.1,
    "dependants": 1.2,
    "past_loans": 0.9,
}
FLAGS = ("verified", "online", "insured", "autopay")
_FIRST_DAY = np.datetime64("2012-01-01")
_DAYS = 365 * 7


def loans(n_rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Draw the table: 50 columns, with the types that a careful reader of a CSV file gives them."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(size=n_rows)  # how well off a person is
    risk = np.clip(0.5 - 0.15 * worth + 0.15 * rng.normal(size=n_rows), 0.0, 0.999)

    def amount(median: float, tie: float = 0.6) -> NDArray[np.float64]:
        spread = tie * worth + np.sqrt(1 - tie**2) * rng.normal(size=n_rows)
        return np.round(median * np.exp(spread), 2)

    table: dict[str, object] = {"loan_id": rng.permutation(n_rows) + 10_000_000}
    sub_grade = np.array(SUB_GRADES)[(risk * len(SUB_GRADES)).astype(int)]
    table["sub_grade"] = sub_grade
    table["grade"] = pd.Series(sub_grade).str[0]
    lent = np.clip(
        np.round(9_000 * np.exp(0.3 * worth + 0.6 * rng.normal(size=n_rows)) / 25), 40, 1_600
    )
    table["amount"] = lent * 25.0
    status = rng.choice(4, n_rows, p=[0.55, 0.3, 0.1, 0.05])
    table["status"] = np.array(STATUSES)[status]
    share = np.where(status == 1, 0.0, rng.beta(2, 2, n_rows))
    table["balance"] = np.floor(lent * 25.0 * share * 100) / 100
    table["term"] = np.where(rng.random(n_rows) < 0.3 + 0.3 * risk, 60, 36)
    table["rate"] = np.round(5 + 25 * risk + rng.normal(0, 0.5, n_rows), 2).clip(5, 31)
    joint = rng.random(n_rows) < 0.12
    table["type"] = np.where(joint, "joint", "single")
    for name, median in AMOUNTS.items():
        table[name] = amount(median)
    joint_income = amount(110_000.0)
    table["joint_income"] = np.where(joint, joint_income, np.nan)
    issued = _FIRST_DAY + rng.integers(0, _DAYS, n_rows)
    table["issued"] = pd.Series(issued.astype("datetime64[ns]"))
    paid = issued + rng.integers(0, 1_100, n_rows)
    never = rng.random(n_rows) < 0.04
    table["last_payment"] = pd.Series(paid.astype("datetime64[ns]")).mask(never)
    state = rng.choice(list(STATES), n_rows, p=[0.3, 0.2, 0.18, 0.14, 0.1, 0.08])
    table["city"] = [rng.choice(STATES[each]) for each in state]
    table["state"] = state
    table["purpose"] = rng.choice(
        PURPOSES, n_rows, p=[0.45, 0.2, 0.1, 0.07, 0.06, 0.04, 0.03, 0.05]
    )
    table["home"] = np.array(HOMES)[
        np.clip((1.2 + worth + rng.normal(size=n_rows)).astype(int), 0, 3)
    ]
    years = np.clip(5 + 2 * worth + 3 * rng.normal(size=n_rows), 0, 10).astype(int)
    table["employed"] = pd.Categorical.from_codes(years, YEARS_EMPLOYED, ordered=True)
    principal = np.floor((lent * 25.0 - np.asarray(table["balance"])) * 100) / 100
    interest = np.round(principal * np.asarray(table["rate"]) / 100 * rng.random(n_rows) * 3, 2)
    table["principal_paid"], table["interest_paid"] = principal, interest
    table["total_paid"] = np.round(principal + interest, 2)
    for name, (zeros, median) in ZERO_INFLATED.items():
        table[name] = np.where(
            rng.random(n_rows) < zeros, 0.0, np.maximum(amount(median, 0.2), 0.01)
        )
    hardship = rng.random(n_rows) < 0.06
    table["hardship_reason"] = pd.Series(rng.choice(REASONS, n_rows), dtype=object).where(hardship)
    table["hardship_months"] = pd.Series(rng.integers(1, 13, n_rows), dtype="Int64").where(hardship)
    table["hardship_payment"] = pd.Series(amount(200.0)).where(hardship)
    for name, mean in COUNTS.items():
        table[name] = rng.poisson(mean * np.exp(0.3 * rng.normal(size=n_rows))).clip(0, 100)
    for place, name in enumerate(FLAGS):
        table[name] = rng.random(n_rows) < 1 / (1 + np.exp(-(place - 3) / 2 - 0.5 * worth))
    return pd.DataFrame(table)


def code_book() -> pd.DataFrame:
    """The code book of the table, as its publisher would write it: one row for each column."""
    money = {"type": "number", "decimals": "2"}
    rows: list[dict[str, str]] = []

    def add(name: str, **cells: str) -> None:
        rows.append({"name": name, **cells})

    def add_list(name: str, values: Sequence[str], **cells: str) -> None:
        add(name, type="category", values="|".join(values), **cells)

    add("loan_id", type="identifier")
    add_list("sub_grade", SUB_GRADES)
    add_list("grade", GRADES)
    add("amount", type="number", range="0-40000", step="25", bins="32")
    add_list("status", STATUSES)
    add("balance", range="0-40000", special="0", **money)
    add("term", type="category", values="36|60")
    add("rate", range="5-31", **money)
    add_list("type", ("single", "joint"))
    for name, median in AMOUNTS.items():
        add(name, range=f"0-{30 * median:g}", scale="log", **money)
    add("joint_income", range="0-3300000", scale="log", missing="yes", **money)
    add("issued", type="date", range="2012-01-01..2018-12-31", bins="84")
    add("last_payment", type="date", range="2012-01-01..2022-12-31", bins="132", missing="yes")
    add_list("city", [city for cities in STATES.values() for city in cities])
    add_list("state", list(STATES))
    add_list("purpose", PURPOSES)
    add_list("home", HOMES)
    add_list("employed", YEARS_EMPLOYED, ordered="yes")
    add("principal_paid", range="0-40000", special="0", **money)
    add("interest_paid", range="0-40000", special="0", **money)
    add("total_paid", range="0-80000", **money)
    for name, (_, median) in ZERO_INFLATED.items():
        add(name, range=f"0-{30 * median:g}", scale="log", special="0", **money)
    add_list("hardship_reason", REASONS, missing="yes")
    add("hardship_months", type="integer", range="1-12", missing="yes")
    add("hardship_payment", range="0-6000", scale="log", missing="yes", **money)
    for name in COUNTS:
        add(name, type="integer", range="0-100")
    for name in FLAGS:
        add(name, type="boolean")
    return pd.DataFrame(rows).fillna("")


def structure() -> list[Any]:
    """What is publicly known of every loan."""
    return [
        derived("grade", from_="sub_grade", map={each: each[0] for each in SUB_GRADES}),
        derived("state", "city", {city: state for state in STATES for city in STATES[state]}),
        at_most("balance", "amount"),
        at_most("principal_paid", "amount"),
        at_most("issued", "last_payment"),
        forbid("joint_income != None and type != 'joint'"),
        forbid("balance != 0 and status not in ['current', 'late', 'default']"),
        *(
            forbid(f"hardship_{one} == None and hardship_{other} != None")
            for name in ("months", "payment")
            for one, other in permutations(["reason", name])
        ),
    ]


def violations(table: pd.DataFrame) -> pd.Series:
    """Whether each row is impossible, by rules that are checked here once more."""
    states = {city: state for state in STATES for city in STATES[state]}
    hardship = table[["hardship_reason", "hardship_months", "hardship_payment"]].isna()
    paid = table["principal_paid"] + table["interest_paid"]
    return (
        (table["sub_grade"].astype(str).str[0] != table["grade"])
        | (table["city"].map(states) != table["state"])
        | (table["balance"] > table["amount"])
        | (table["principal_paid"] > table["amount"])
        | (table["issued"] > table["last_payment"])
        | (table["joint_income"].notna() & (table["type"] != "joint"))
        | ((table["status"] == "paid") & (table["balance"] != 0))
        | (hardship.any(axis=1) & ~hardship.all(axis=1))
        | ((table["total_paid"] - paid).abs() > 0.006)
    )
