"""
From a CSV file to a published one
==================================

A region wants to publish what happened in its hospitals: 3,000 people, several visits each, with
ids, dates, money, gaps, a code for "unknown", and columns that depend on each other. We start
from two files, the table and its code book, and end with a release and with synthetic rows that
look like the table and contain no impossible row.
"""

# %%
# The two files
# -------------
# The records are made up. Skip the code here: an analyst gets both files from somebody else.
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    Domain,
    MarginalSynthesizer,
    PrivacyLedger,
    Synopsis,
    at_most,
    derived,
    forbid,
)
from skdp.inspection import assert_private, privacy_report

folder = Path(tempfile.mkdtemp(prefix="skdp-visits-"))
rng = np.random.default_rng(7)

people = pd.DataFrame(
    {
        "person": rng.permutation(90_000)[:3_000] + 10_000,
        "born": rng.triangular(1930, 1955, 2022, 3_000),
    }
)
visits = people.loc[np.repeat(people.index, rng.geometric(0.5, 3_000).clip(max=3))].reset_index(
    drop=True
)
n = len(visits)
age = 2024 - visits["born"]
mother = age.between(20, 42) & (rng.random(n) < 0.35)
adults = rng.choice(["Heart", "Lungs", "Surgery", "Eyes", "Skin"], n, p=[0.3, 0.2, 0.2, 0.2, 0.1])
visits["ward"] = np.select([age < 16, mother], ["Children", "Maternity"], adults)
hospital_of = {
    "Children": "North", "Heart": "North", "Surgery": "North", "Eyes": "Harbour", "Skin": "Harbour",
    "Lungs": "South", "Maternity": "South",
}  # fmt: skip
visits["hospital"] = visits["ward"].map(hospital_of)
months = ((visits["born"] - 1970) * 12).astype("int64").to_numpy().astype("datetime64[M]")
visits["born"] = months.astype("datetime64[D]").astype(str)
day = np.datetime64("2023-01-01") + (731 * rng.beta(1.4, 1, n)).astype(int)
visits["day"] = day.astype(str)
usual = visits["ward"].map({"Surgery": 2_000, "Heart": 900, "Maternity": 1_200}).fillna(200)
billed = np.clip(usual * rng.lognormal(0, 0.7, n), 1, 10_000).round(2)
visits["billed"] = np.where(rng.random(n) < 0.3, 0, billed)
visits["paid"] = (visits["billed"] * np.where(rng.random(n) < 0.5, 0, rng.beta(2, 3, n))).round(2)
visits.loc[visits["paid"] < 1, "paid"] = 0
score = np.clip(20 + 0.6 * age + rng.normal(0, 12, n), 0, 99).round()
score = np.where(rng.random(n) < 0.1, 999, score)
risk = pd.Series(np.select([score == 999, score >= 60], ["?", "high"], "low"))
asked = rng.random(n) > 0.08
visits["score"], visits["risk"] = pd.Series(score, dtype="Int64").where(asked), risk.where(asked)
visits["week"] = pd.Series(rng.integers(5, 41, n), dtype="Int64").where(
    visits["ward"] == "Maternity"
)
visits.insert(0, "visit", np.arange(1, n + 1))
visits.to_csv(folder / "visits.csv", index=False)

(folder / "codebook.csv").write_text(
    """\
name,type,unit,min,max,values,special,missing,scale,decimals,bins,label
visit,identifier,,,,,,,,,,Number of the visit
person,identifier,,,,,,,,,,Number of the person
born,date,month,1930-01,2022-12,,,,,,31,Month of birth
day,date,,2023-01-01,2024-12-31,,,,,,24,Day of the visit
ward,category,,,,Children|Eyes|Heart|Lungs|Maternity|Skin|Surgery,,,,,,Ward
hospital,category,,,,Harbour|North|South,,,,,,Where the ward is
billed,number,,1,10000,,0,no,log,2,16,Cost of the visit
paid,number,,1,10000,,0,no,log,2,16,Part that the person paid
score,integer,,0,99,,999=unknown,yes,,,20,Risk score
risk,category,,,,?|low|high,,yes,,,,Band of the score
week,integer,,1,42,,,yes,,,,Week of pregnancy
"""
)
print((folder / "codebook.csv").read_text())

# %%
# Say what is public
# ------------------
# One line reads the code book. The rules between columns are public too, and written from general
# knowledge, never from the records. A ward is in one hospital, the risk follows from the score, a
# person pays at most the bill, weeks are counted in one ward only, and two wards do not take
# everybody.
rules = [
    derived("hospital", "ward", hospital_of),
    derived("risk", "score", {(0, 60): "low", (60, 100): "high", 999: "?"}),
    at_most("paid", "billed"),
    forbid("week != None and ward != 'Maternity'"),
    forbid("ward == 'Children' and born < '2005-01'"),
    forbid("ward == 'Maternity' and born < '1966-01'"),
    forbid("ward == 'Maternity' and born >= '2011-01'"),
]
domain = Domain(Domain.from_schema(folder / "codebook.csv"), structure=rules)
print(domain)

# %%
# Check it
# --------
# Does the code book describe the table? Only the data owner may look at this report. It is exact,
# and warns about that; the warning is silenced here. If it showed wrong ranges, the remedy would
# be a better code book, not ranges read from the records.
table = pd.read_csv(folder / "visits.csv", dtype={"score": "Int64", "week": "Int64"})
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    report = domain.check(table)
print(report)

# %%
# Release
# -------
# A person has up to three visits, because the insurance pays for no more. At most three rows of
# each person are kept, and epsilon then protects the person, not only a visit. (Of people with
# more, three rows would be chosen secretly.) The ledger holds the budget for these people. Hospital
# and risk follow from other columns, so nothing is spent on them.
ledger = PrivacyLedger(3, path=folder / "visits.ledger", name="visits")
view = MarginalSynthesizer(
    epsilon=2, domain=domain, privacy_id="person", max_rows_per_id=3, ledger=ledger
)
assert_private(view)
privacy_report(view)

# %%
view.fit(table)
view.synopsis_.save(folder / "visits.skdp")
print(view.privacy_loss_)
print(f"spent {float(ledger.spent)}, remaining {float(ledger.remaining)}")

# %%
# What a reader can ask
# ---------------------
# A reader has the file only. Dates are written as ISO text, and the special values 0 and 999 as
# numbers. Questions about hospital and risk are answered from ward and score. An interval covers
# the noise and, as an estimate, what was not measured. The true counts are for comparison: not
# private.
release = Synopsis.load(folder / "visits.skdp")
questions = [
    "hospital == 'South'",
    "risk == 'high' and born < '1950-01'",
    "ward == 'Heart' and day >= '2024-07-01'",
    "billed == 0",
    "billed > 0 and paid == 0",
    "score == 999",
    "score == None",
    "ward == 'Maternity' and week >= 20",
    "ward == 'Children' and born < '2005-01'",
]
answers = [release.count(question, return_interval=True) for question in questions]
counts = pd.DataFrame(
    {
        "query": questions,
        "answer": [round(answer.value) for answer in answers],
        "from": [max(0, round(answer.lower)) for answer in answers],
        "to": [round(answer.upper) for answer in answers],
        "true (not private)": [
            len(table.query(question.replace("== None", ".isna()"))) for question in questions
        ],
    }
)
print(counts.to_string(index=False))

# %%
# In a table as small as this, the noise hides part of the dependence of two columns, where no rule
# says how they depend. The intervals of such questions are wide.

# %%
# Means use the special values as the numbers that they are, so 999 is left out by a condition. The
# mean of dates is a date.
known = table[table["score"] < 100]
means = pd.DataFrame(
    {
        "released": [
            round(release.mean("billed"), 2),
            round(release.mean("paid", "billed > 0"), 2),
            round(release.mean("score", "score < 100"), 2),
            release.mean("day").date(),
        ],
        "true (not private)": [
            round(table["billed"].mean(), 2),
            round(table.loc[table["billed"] > 0, "paid"].mean(), 2),
            round(known["score"].mean(), 2),
            pd.to_datetime(table["day"]).mean().date(),
        ],
    },
    index=["billed", "paid, where something was billed", "score, where known", "day"],
)
print(means)

# %%
# Rows that look like the table
# -----------------------------
# Synthetic rows have the columns and the order of the table, and the types of the domain: days are
# dates, money has cents, scores are integers with gaps. Ids are fresh, one for each row: which
# visits belong to the same person is not released.
rows = view.sample()
rows.to_csv(folder / "published.csv", index=False)
print("same columns and order:", list(rows) == list(table))
rows.head(8)

# %%
# No row is impossible. Nothing is repaired or thrown away for that: the rules hold in every draw.
children, mothers = rows["ward"] == "Children", rows["ward"] == "Maternity"
impossible = {
    "ward in another hospital": rows["ward"].map(hospital_of) != rows["hospital"],
    "paid more than the bill": rows["paid"] > rows["billed"],
    "high risk with a low score": (rows["risk"] == "high") & (rows["score"] < 60).fillna(True),
    "weeks in another ward": rows["week"].notna() & ~mothers,
    "too old for the children's ward": children & (rows["born"] < "2005-01"),
    "not of an age for maternity": mothers & ~rows["born"].between("1966-01", "2010-12-31"),
    "fractions of a cent": rows[["billed", "paid"]]
    .ne(rows[["billed", "paid"]].round(2))
    .any(axis=1),
}
print(pd.Series({name: int(found.sum()) for name, found in impossible.items()}).to_string())

# %%
# A condition draws rows of one kind, as many as are needed, even if the kind is rare. It costs
# nothing, because only the release is read. The file has never seen the table, so here the order
# and the types are those of the domain: dates are dates.
late = release.sample(
    500, where="ward == 'Maternity' and week >= 37 and day >= '2024-07-01' and paid > 0"
)
late.head()

# %%
# Side by side
# ------------
# Bills of 0 have a cell of their own, so they are as frequent as in the table. The other bins grow
# with the amount.
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
edges = np.geomspace(10, 10_000, 25)
for data, colour, name in ((table, "0.75", "table (not private)"), (rows, "C0", "synthetic rows")):
    style = {"color": colour, "fill": data is table, "linewidth": 2}
    ax.stairs(np.histogram(data["billed"], edges)[0] / len(data), edges, label=name, **style)
    ax.stairs([(data["billed"] == 0).mean()], [3, 5], **style)
ax.set(xscale="log", xlabel="billed", ylabel="share of visits")
ax.set_xticks([4, 10, 100, 1_000, 10_000], ["0", "10", "100", "1,000", "10,000"])
ax.minorticks_off()
ax.legend()
ax.set_title("Bills of 3,000 people, released at epsilon 2")

# %%
# Nobody is in a ward that does not take them: the ranges that the rules forbid are empty.
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
wards = sorted(hospital_of, reverse=True)
for ax, data, name in ((axes[0], table, "table (not private)"), (axes[1], rows, "synthetic rows")):
    year = pd.to_datetime(data["born"]).dt.year
    height = data["ward"].map(wards.index) + rng.uniform(-0.35, 0.35, len(data))
    ax.scatter(year, height, s=3, alpha=0.4, color="0.4" if data is table else "C0")
    ax.set(xlabel="born", title=name, yticks=range(len(wards)), yticklabels=wards)
figure.suptitle("Ward and year of birth")
plt.show()
