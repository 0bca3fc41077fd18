"""
Check a privacy argument by replay
==================================

An audit estimates a privacy loss from many runs and sees only what is frequent. A replay computes
it. The estimator runs on a data set while a tape answers every mechanism in place of noise, and
runs again on a neighbouring data set with the same answers. If both runs make the same calls and
release the same, the privacy loss of that release follows from the change of the exact values.
"""

# %%
# Certified
# ---------
# Two neighbouring tables: the second lacks the last person. The tape makes up the exact values,
# noise of the usual size, five times that, noise to one side only, and zeros.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    Categorical,
    DataCube,
    Domain,
    DPKMeans,
    GridSynthesizer,
    Numeric,
    PairViewSynthesizer,
    PrivTreeSynthesizer,
)
from skdp.audit import plot_replays, replay
from skdp.mechanisms import bounded_sum, discrete_laplace, noisy_max

rng = np.random.default_rng(1)
domain = Domain({"age": Numeric(0, 100, bins=10), "sex": Categorical(["F", "M"])})
people = pd.DataFrame({"age": rng.uniform(0, 100, 60), "sex": rng.choice(["F", "M"], 60)})
without_last = people.iloc[:-1]

result = replay(PairViewSynthesizer(epsilon=1.0, domain=domain), people, without_last)
print(result)

# %%
# The parts are the functions that called a mechanism. Together they use all of epsilon: the
# algorithm wastes none of it on this pair. Other algorithms need other neighbours to come close.
estimators = [
    PairViewSynthesizer(epsilon=1.0, domain=domain),
    PrivTreeSynthesizer(epsilon=1.0, domain=domain),
    GridSynthesizer(epsilon=1.0, domain=domain),
    DataCube(epsilon=1.0, domain=domain),
]
results = [replay(estimator, people, without_last) for estimator in estimators]
points = people[["age"]]
results.append(replay(DPKMeans(3, epsilon=1.0, bounds=(0, 100)), points, points.iloc[:-1]))

# %%
# Convicted
# ---------
# Functions of the data can be replayed, too. These have mistakes that are easy to make: noise for
# twice the budget, a second selection that nobody paid for, an exact number of records as divisor,
# and a number of rounds that depends on it.


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
# no finite loss: something was released, or done, that differs between the two tables although
# every mechanism gave the same answer.
plot_replays([*results, *broken])
plt.show()

# %%
# What it shows, and what it does not
# -----------------------------------
# A certificate holds for this pair of tables and the outputs that were tried, without any
# probability of error. It takes on trust that the mechanisms draw from the law that they state; the
# audit of :doc:`plot_audit` does not. ``python -m skdp audit --replay`` replays the whole library.
