"""
A survey published every year
=============================

A survey asks new people every year. The first year was published as rows; from the second on, each
year is released privately, at a small epsilon. What is known already is the prior of the next
release: it costs nothing, and the release says by a fingerprint which prior it was.
"""

# %%
# The surveys
# -----------
# They are simulated. Pay rises from year to year, and home work becomes more common. The domain is
# public.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric, PublicTable
from skdp.quality import k_marginal


def survey(year, n=12_000):
    rng = np.random.default_rng(year)
    school = rng.choice(4, n, p=[0.2, 0.4, 0.25, 0.15])
    age = np.clip(rng.normal(45 - 2 * school, 13), 18, 79).astype(int)
    office = rng.random(n) < 0.15 + 0.2 * school
    pay = np.exp(rng.normal(7.3 + 0.25 * school + 0.03 * (year - 2021), 0.35)) * (age > 22)
    home = office & (rng.random(n) < 0.25 + 0.1 * (year - 2021))
    rent = 0.3 * pay + rng.gamma(4, 90, n)
    car = rng.random(n) < 0.3 + 0.5 * (age > 35) * ~home
    return pd.DataFrame(
        {
            "school": np.array(["none", "school", "college", "university"])[school],
            "age": age,
            "work": np.where(office, "office", "elsewhere"),
            "pay": np.clip(pay, 0, 7_999),
            "home": np.where(home, "yes", "no"),
            "rent": np.clip(rent, 0, 3_999),
            "car": np.where(car, "yes", "no"),
        }
    )


domain = Domain(
    {
        "school": Categorical(["none", "school", "college", "university"]),
        "age": Numeric(18, 79, integer=True),
        "work": Categorical(["office", "elsewhere"]),
        "pay": Numeric(0, 8_000, bins=32),
        "home": Categorical(["no", "yes"]),
        "rent": Numeric(0, 4_000, bins=32),
        "car": Categorical(["no", "yes"]),
    }
)

# %%
# Release them
# ------------
# The prior of 2022 is the published table, which ``PublicTable`` declares to be public. The prior
# of each later year is the release before it. For comparison each year is also released without
# one.
epsilon = 0.1
prior = PublicTable(survey(2021))
scores = {"with a prior": [], "without": []}
years = [2022, 2023, 2024]
for year in years:
    records = survey(year)
    release = MarginalSynthesizer(epsilon=epsilon, domain=domain, prior=prior).fit(records)
    alone = MarginalSynthesizer(epsilon=epsilon, domain=domain).fit(records)
    truth = domain.encode(records)
    for name, made in (("with a prior", release), ("without", alone)):
        drawn = domain.encode(made.sample(12_000, random_state=0))
        scores[name].append(k_marginal(truth, drawn, domain.shape))
    prior = release.synopsis_

print(release.synopsis_.mechanism)

# %%
# How near are the rows?
# ----------------------
# NIST's score compares synthetic rows with the records in all pairs of columns: 1,000 is equal. It
# is exact, and for the data owner only.
fig, ax = plt.subplots(figsize=(6, 3))
for shift, (name, values) in zip((-0.2, 0.2), scores.items(), strict=True):
    ax.bar(np.array(years) + shift, values, width=0.38, label=name)
ax.set(xticks=years, ylim=(700, 1_000), ylabel="k-marginal score", title=f"epsilon {epsilon}")
ax.legend(loc="lower left")
fig.tight_layout()

# %%
# What was measured corrects the answers, with or without a prior. The guarantee of an answer names
# the prior where a part of its bar rests on it.
answer = release.count("pay >= 4100 and rent >= 1900", return_interval=True)
print(f"{answer.value:.0f} [{answer.lower:.0f}, {answer.upper:.0f}]")
print(answer.guarantee)
