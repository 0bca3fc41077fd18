"""
Publish a health cube
=====================

A hospital group wants to publish its admissions of a year: by sex, by age, by region, by
diagnosis, and by every combination of these. There are three requirements. The tables must agree
with each other, so that all totals add up. No admission may be revealed, not even to somebody who
knows all the others. And each number must come with its accuracy, because readers will plan with
it. The result is one tidy CSV file that meets all three.
"""

# %%
# The records
# -----------
# We simulate 30,000 admissions. The domain is public: the columns and the values that they can
# have, but not how often each occurs. Age is published in groups of ten years, because every
# further cell costs accuracy.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import Categorical, DataCube, Domain, Numeric

rng = np.random.default_rng(7)
n = 30_000
age = np.clip(rng.normal(58, 22, n), 0, 99).astype(int)
sex = rng.choice(["F", "M"], n)
odds = np.stack(
    [
        1 + 0.03 * age + 0.8 * (sex == "M"),
        1 + 0.02 * age,
        np.full(n, 1.5),
        np.where((sex == "F") & (age > 17) & (age < 45), 4.0, 0.02),
    ],
    axis=1,
)
diagnoses = ["heart", "cancer", "injury", "birth"]
admissions = pd.DataFrame(
    {
        "sex": sex,
        "age": age,
        "region": rng.choice(["north", "east", "south", "west"], n, p=[0.1, 0.2, 0.3, 0.4]),
        "diagnosis": [rng.choice(diagnoses, p=row / row.sum()) for row in odds],
    }
)
domain = Domain(
    {
        "sex": Categorical(["F", "M"]),
        "age": Numeric(0, 99, bins=10, integer=True),
        "region": Categorical(["north", "east", "south", "west"]),
        "diagnosis": Categorical(diagnoses),
    }
)

# %%
# The plan
# --------
# Before it spends anything, the group wants to know how accurate the tables will be at an epsilon
# of 0.5. Which tables to measure, and how to divide epsilon among them, follows from the domain
# alone. So the accuracy of all sixteen tables, or *cuboids*, is known in advance. In the plot each
# bar is the standard error of a cell of a cuboid; a dark one is measured.
cube = DataCube(epsilon=0.5, domain=domain)
plan = cube.plan()
table = plan.to_frame().sort_values("std_error")
colours = np.where(table["epsilon"] > 0, "#31688e", "0.75")
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.barh(table["cuboid"], table["std_error"], color=colours)
ax.set_xlabel("standard error of a cell")
ax.set_title("Plan of the cube, epsilon = 0.5")
plt.show()

# %%
# How good is the plan? The two simplest plans are to measure everything ("all"), or to measure only
# the largest table and sum it ("base"). Both are less accurate:
for strategy in ("auto", "bmax", "base", "all"):
    other = DataCube(epsilon=0.5, domain=domain, strategy=strategy).plan()
    print(f"{strategy:10} largest standard error {other.max_std_error:5.1f}")

# %%
# The release
# -----------
# ``fit`` spends epsilon, once. Every number below is computed from what was released.
cube.fit(admissions)
print(cube.cuboid(["sex", "diagnosis"]).round(1).to_string(index=False))

# %%
# The first requirement: women and men add up exactly to the total.
print(float(cube.cuboid("sex")["count"].sum() - cube.cuboid()["count"][0]))

# %%
# One file holds everything, with the standard error beside each count. A star stands for a
# dimension that is summed over.
path = Path(tempfile.mkdtemp()) / "admissions.csv"
cube.to_frame().round(2).to_csv(path, index=False)
print(*path.read_text().splitlines()[:8], "...", sep="\n")

# %%
# The reader
# ----------
# A newspaper has only the file. It plots heart admissions by age, with error bars of two standard
# errors: there are more men than women, most clearly in middle age, and the difference is larger
# than the uncertainty.
published = pd.read_csv(path)
hearts = published[
    (published["cuboid"] == "sex, age, diagnosis") & (published["diagnosis"] == "heart")
]
fig, ax = plt.subplots(layout="constrained")
for shift, mark, (name, group) in zip((-0.1, 0.1), "os", hearts.groupby("sex"), strict=True):
    places = np.arange(len(group)) + shift
    ax.errorbar(places, group["count"], 2 * group["std_error"], fmt=mark, capsize=3, label=name)
ax.set_xticks(np.arange(len(group)), group["age"], rotation=45, ha="right")
ax.set_xlabel("age")
ax.set_ylabel("heart admissions")
ax.set_title("Heart admissions by age and sex, from the published file")
ax.legend(title="sex")
plt.show()

# %%
# Are the stated errors correct? Only the hospital can check this, against its own records: by how
# many standard errors is each cell of sex and diagnosis off? Nearly all should be between -2 and 2.
# This check reads the true counts, so it must not be published.
truth = (
    admissions.groupby(["sex", "diagnosis"])
    .size()
    .reindex(pd.MultiIndex.from_product([["F", "M"], diagnoses]), fill_value=0)
)
table = cube.cuboid(["sex", "diagnosis"])
z = (table["count"].to_numpy() - truth.to_numpy()) / table["std_error"].to_numpy()
print("errors in standard errors:", z.round(1))
