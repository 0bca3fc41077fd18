"""
Publish a health cube
=====================

A hospital group wants to publish its admissions of a year: by sex, by age, by region, by
diagnosis, and by every combination of these. Three demands come with the wish. The tables must
agree with each other, or a reader will find the total that does not add up. Nobody's admission may
show, not even to somebody who knows everybody else's. And each number must say how accurate it is,
since the readers are going to plan with it. The result is one tidy CSV file that meets all three.
"""

# %%
# The records
# -----------
# The real ones stay in the hospital; we make up 30,000. What is publicly known of them is the
# domain: the columns and the values that they can have, not how often anything occurs. Age is
# published in tens of years, because nobody asked for more and every further cell costs accuracy.
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
# Before anything is spent the group wants to know what it will get for its epsilon of one half.
# Which tables to measure, and how to divide epsilon among them, follows from the domain alone, so
# the accuracy of all sixteen tables, or *cuboids*, can be told now. Each dot of the picture is a
# cuboid, lines lead to those with one dimension less, and the number is the standard error of a
# cell; rings mark what is measured.
cube = DataCube(epsilon=0.5, domain=domain, strategy="optimized")
plan = cube.plan()
ax = plan.plot()
ax.set_title("Plan of the cube, epsilon = 0.5")
plt.show()

# %%
# Is the plan any good? The two obvious ones are to measure everything, or to measure the largest
# table alone and add it up. Both are less accurate:
for strategy in ("optimized", "bmax", "base", "all"):
    other = DataCube(epsilon=0.5, domain=domain, strategy=strategy).plan()
    print(f"{strategy:10} largest standard error {other.max_std_error:5.1f}")

# %%
# The release
# -----------
# The board agrees. ``fit`` spends epsilon, once; every number that follows is computed from what
# was released.
cube.fit(admissions)
print(cube.cuboid(["sex", "diagnosis"]).round(1).to_string(index=False))

# %%
# The first demand: women and men add up to the total, to the last digit.
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
# A newspaper has the file, and nothing else. It draws heart admissions by age, with two standard
# errors up and down: more men than women, above all in middle age, and by more than the
# uncertainty.
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
# Were the readers told the truth about the errors? Only the hospital can check, against its own
# records: how many standard errors is each cell of sex and diagnosis off by? Between -2 and 2,
# nearly always, is as it should be. The check itself is not for publication.
truth = (
    admissions.groupby(["sex", "diagnosis"])
    .size()
    .reindex(pd.MultiIndex.from_product([["F", "M"], diagnoses]), fill_value=0)
)
table = cube.cuboid(["sex", "diagnosis"])
z = (table["count"].to_numpy() - truth.to_numpy()) / table["std_error"].to_numpy()
print("errors in standard errors:", z.round(1))
