"""
Can an attacker tell who was in a release?
==========================================

An attacker has a release and a list of people, half of whom were in the table. For each of them the
attacker compares how likely the row is under the release and in the population, and names those
with the largest ratio. Epsilon limits how often such a guess is right; a copy of the records limits
nothing.
"""

# %%
# Records, half of them released
# ------------------------------
# A coin for each person decides who is in the table. Other people of the same population are what
# the attacker knows beforehand.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric

rng = np.random.default_rng(0)


def town(n):
    """People of one town."""
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {
            "age": age,
            "income": np.clip(rng.gamma(3, 12, n) + 0.3 * age, 0, 149).astype(int),
            "district": rng.choice([f"d{k:02d}" for k in range(20)], n),
            "children": np.minimum(rng.poisson(1.2, n), 5),
        }
    )


domain = Domain(
    {
        "age": Numeric(18, 89, integer=True),
        "income": Numeric(0, 149, integer=True, bins=50),
        "district": Categorical([f"d{k:02d}" for k in range(20)]),
        "children": Numeric(0, 5, integer=True),
    }
)
people, others = town(1_000), town(20_000)
member = rng.random(len(people)) < 0.5

# %%
# The attack
# ----------
# The attacker guesses that the half with the largest likelihood ratio was in the table. Without the
# release half of these guesses are right.


def density(rows, epsilon):
    """Log density of the people under a release of some rows."""
    release = MarginalSynthesizer(epsilon=epsilon, domain=domain).fit(rows)
    return release.score_samples(people)


def share_right(ratio):
    """Share of right guesses of an attacker who names the half with the largest ratio."""
    guess = ratio > np.median(ratio)
    return (guess == member).mean()


# Of the other people the attacker knows the records themselves.
usual = density(others, epsilon=1_000)
epsilons = [0.1, 0.3, 1.0, 3.0, 10.0]
right = [share_right(density(people[member], epsilon) - usual) for epsilon in epsilons]
for epsilon, share in zip(epsilons, right, strict=True):
    print(f"epsilon {epsilon}: {share:.1%} of the guesses are right")

# %%
# A copy gives everybody away
# ---------------------------
# "Synthetic" rows that are the records themselves: whoever has a row in them was in the table.
copy = set(people[member].itertuples(index=False, name=None))
in_copy = np.array([row in copy for row in people.itertuples(index=False, name=None)])
copied = (in_copy == member).mean()
print(f"guesses from a copy that are right: {copied:.1%}")

# %%
# What epsilon allows
# -------------------
# A guess about a coin is right with a probability of at most exp(epsilon) / (1 + exp(epsilon)),
# whatever the attacker knows. The attack stays far below: it is not the worst that there could be,
# and an attack that fails proves nothing.
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
grid = np.geomspace(0.1, 10, 100)
ax.fill_between(grid, 0.5, 1 / (1 + np.exp(-grid)), color="#dddddd", label="allowed by epsilon")
ax.plot(epsilons, right, "o-", color="#31688e", label="attack on the release")
ax.axhline(copied, color="#b5367a", linestyle="--", label="attack on a copy of the records")
ax.set_title("Right guesses of an attacker, and what epsilon allows")
ax.set_xscale("log")
ax.set_xlabel("epsilon")
ax.set_ylabel("share of right guesses")
ax.legend(loc="center left")
plt.show()
