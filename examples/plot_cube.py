"""
Publish a health cube
=====================

A hospital group wants to publish its admissions of a year: by sex, by age, by region, by diagnosis,
and by every combination of these. The tables must agree with each other, nobody's admission may
show, and the readers want to know how accurate each number is. The result is one tidy CSV file.
"""

# %%
# The records
# -----------
# We make up 30,000 admissions. What is publicly known of them is the domain: the columns and the
# values that they can have, not how often anything occurs.
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
# Which tables to measure, and how to divide epsilon among them, follows from the domain alone. So
# the accuracy of all sixteen cuboids is known before a record is read. Each dot of the picture is a
# cuboid, lines lead to those with one dimension less, and the number is the standard error of a
# cell; rings mark what is measured.
cube = DataCube(epsilon=0.5, domain=domain, strategy="optimized")
plan = cube.plan()
ax = plan.plot()
ax.set_title("Plan of the cube, epsilon = 0.5")
plt.show()

# %%
# Measuring everything, or the largest table alone, would be less accurate:
for strategy in ("optimized", "bmax", "base", "all"):
    other = DataCube(epsilon=0.5, domain=domain, strategy=strategy).plan()
    print(f"{strategy:10} largest standard error {other.max_std_error:5.1f}")

# %%
# The release
# -----------
# ``fit`` spends epsilon, once. Every number that follows is computed from what was released.
cube.fit(admissions)
print(cube.cuboid(["sex", "diagnosis"]).round(1).to_string(index=False))

# %%
# Cuboids agree: women and men add up to the total, to the last digit.
print(float(cube.cuboid("sex")["count"].sum() - cube.cuboid()["count"][0]))

# %%
# One file with everything. A star stands for a dimension that is summed over.
path = Path(tempfile.mkdtemp()) / "admissions.csv"
cube.to_frame().round(2).to_csv(path, index=False)
print(*path.read_text().splitlines()[:8], "...", sep="\n")

# %%
# The reader
# ----------
# Somebody who has the file, and nothing else, draws heart admissions by age, with two standard
# errors up and down.
published = pd.read_csv(path)
hearts = published[
    (published["cuboid"] == "sex, age, diagnosis") & (published["diagnosis"] == "heart")
]
fig, ax = plt.subplots(layout="constrained")
for shift, (name, group) in zip((-0.1, 0.1), hearts.groupby("sex"), strict=True):
    places = np.arange(len(group)) + shift
    ax.errorbar(places, group["count"], 2 * group["std_error"], fmt="o", capsize=3, label=name)
ax.set_xticks(np.arange(len(group)), group["age"], rotation=45, ha="right")
ax.set_xlabel("age")
ax.set_ylabel("heart admissions")
ax.legend(title="sex")
plt.show()

# %%
# The holder can check how far off the numbers are; readers cannot, and need not: the standard
# errors tell them.
truth = (
    admissions.groupby(["sex", "diagnosis"])
    .size()
    .reindex(pd.MultiIndex.from_product([["F", "M"], diagnoses]), fill_value=0)
)
table = cube.cuboid(["sex", "diagnosis"])
z = (table["count"].to_numpy() - truth.to_numpy()) / table["std_error"].to_numpy()
print("errors in standard errors:", z.round(1))
