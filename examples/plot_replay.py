"""
Check a privacy argument by replay
==================================

An audit estimates a privacy loss from many runs, and misses rare events. A replay computes it. The
estimator runs on a data set, with made-up outputs in place of noisy ones, and runs again on a
neighbouring data set with the same outputs. If both runs make the same mechanism calls and release
the same, the privacy loss follows from how much the exact values differ.
"""

# %%
# Certified
# ---------
# Two neighbouring tables: the second lacks the last person. The made-up outputs are, in turn: exact
# values, noise of the usual scale, five times that, noise to one side only, and zeros.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    Categorical,
    DataCube,
    Domain,
    DPKMeans,
    GridSynthesizer,
    MarginalSynthesizer,
    Numeric,
    PrivTreeSynthesizer,
)
from skdp.audit import replay
from skdp.mechanisms import bounded_sum, discrete_laplace, noisy_max

rng = np.random.default_rng(1)
domain = Domain({"age": Numeric(0, 100, bins=10), "sex": Categorical(["F", "M"])})
people = pd.DataFrame({"age": rng.uniform(0, 100, 60), "sex": rng.choice(["F", "M"], 60)})
without_last = people.iloc[:-1]

result = replay(MarginalSynthesizer(epsilon=1.0, domain=domain), people, without_last)
print(result)

# %%
# The parts are the functions that called a mechanism. On this pair their losses add up to all of
# epsilon, so none of it is wasted. Other algorithms reach their epsilon on other pairs only.
estimators = [
    MarginalSynthesizer(epsilon=1.0, domain=domain),
    PrivTreeSynthesizer(epsilon=1.0, domain=domain),
    GridSynthesizer(epsilon=1.0, domain=domain),
    DataCube(epsilon=1.0, domain=domain),
]
results = [replay(estimator, people, without_last) for estimator in estimators]
points = people[["age"]]
results.append(replay(DPKMeans(3, epsilon=1.0, domain=(0, 100)), points, points.iloc[:-1]))

# %%
# Convicted
# ---------
# Functions of the data can be replayed, too. These have common mistakes: noise for twice the
# budget, a second selection that is not paid for, division by the exact number of records, and a
# number of rounds that depends on the exact number of records.


def too_little_noise(rows):
    return int(discrete_laplace(len(rows), 2.0))


def two_choices(rows):
    counts = np.bincount((rows["age"] // 25).astype(int), minlength=5)
    return noisy_max(counts, 1.0, 1), noisy_max(-counts, 1.0, 1)


def mean_age(rows):
    return bounded_sum(rows["age"], 0, 100, 1.0) / len(rows)


def halving(rows):
    for _ in range(len(rows) // 20):
        rows = rows[::2]
        discrete_laplace(len(rows), 0.1)


broken = [
    replay(function, people, without_last, epsilon=1.0)
    for function in (too_little_noise, two_choices, mean_age, halving)
]
for each in broken:
    print(f"{each.name}: {'; '.join(each.reasons)}")

# %%
# All of them in one picture. A bar beyond the line costs more than was claimed. A hatched bar has
# no finite loss: the mechanisms gave the same outputs on both tables, but the release or the calls
# differed.
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for place, each in enumerate([*results, *broken]):
    if each.differs is not None or not np.isfinite(each.loss):
        ax.barh(place, 2.4, color="white", edgecolor="#c0392b", hatch="///")
        continue
    left = 0.0
    for loss, shade in zip(
        each.by_part.values(), ("#31688e", "#7fb3d5", "#1f4e6b") * 4, strict=False
    ):
        colour = shade if each.passed else "#c0392b"
        ax.barh(place, loss / each.epsilon, left=left, color=colour, edgecolor="white")
        left += loss / each.epsilon
ax.axvline(1, color="0.3")
ax.set_yticks(range(len(results) + len(broken)), [each.name for each in (*results, *broken)])
ax.invert_yaxis()
ax.set(xlabel="privacy loss / claimed epsilon, by step", xlim=(0, 2.4))
ax.set_title("Four functions are convicted")
plt.show()

# %%
# What it shows, and what it does not
# -----------------------------------
# A certificate holds exactly, for this pair of tables and the outputs that were tried. It trusts
# that the mechanisms draw from the distribution that they state; the audit of :doc:`plot_audit`
# does not. `skdp.audit.replay_library` replays the whole library.
