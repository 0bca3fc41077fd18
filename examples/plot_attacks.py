"""
Attack your own release
=======================

A release is about to be published. Its owner tries to break it first: which of these people were in
the table, and what can be inferred about them? Each attack stands beside what epsilon allows and
beside the same attack on a table that merely copies the records. All of this is exact, and for the
data owner only.
"""

# %%
# Records, half of them released
# ------------------------------
# A coin for each record decides whether it is in the table. The others are people of the same
# population, with which the attacks are compared.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric
from skdp.attacks import attack_report, canary_audit
from skdp.quality import quality_report

rng = np.random.default_rng(0)
n = 4_000
age = rng.integers(18, 90, n)
people = pd.DataFrame(
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
coin = rng.random(n) < 0.5
members, others = people[coin], people[~coin]
release = MarginalSynthesizer(epsilon=1.0, domain=domain).fit(members)

# %%
# Every attack
# ------------
# The grey bars reach from what an attack achieves without the release to the most that epsilon
# allows. The release (dots) stays near the left ends; a copy of the records (crosses) is far beyond
# the right ones.
warnings.simplefilter("ignore")  # it warns that the report is not private
report = attack_report(release, members, others, random_state=0)
figure = report.plot()
plt.show()

# %%
print(report.verdict)

# %%
# A copy is convicted
# -------------------
# Synthetic rows of any library can be attacked. Here "synthetic" rows that claim an epsilon of 1
# are the records themselves.
copied = attack_report(members, members, others, domain=domain, epsilon=1, random_state=0)
print(copied.verdict)

# %%
# Canaries
# --------
# Planted rows, each in or out by a coin, bound epsilon from a single fit. Without records this
# reads nothing private, and may be published.
audit = canary_audit(MarginalSynthesizer(epsilon=1.0, domain=domain), random_state=0)
print(audit)
print(canary_audit(lambda rows: rows, domain=domain, epsilon=1, random_state=0))

# %%
# Quality, with noise
# -------------------
# How good the rows are may be published too, if it is paid for.
synthetic = release.sample(2_000)
quality = quality_report(members, synthetic, domain=domain, epsilon=0.5)
bars = quality.columns.set_index("column")
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
places = np.arange(len(bars))
ax.bar(places, bars["distance"], color="#31688e")
reach = [
    bars["distance"] - bars["distance_lower"],
    bars["distance_upper"] - bars["distance"],
]
ax.errorbar(places, bars["distance"], yerr=reach, fmt="none", color="#1d2733", capsize=4)
ax.set_xticks(places, bars.index)
ax.set_ylabel("distance to the records")
ax.set_title("Private quality report, epsilon = 0.5")
plt.show()
