"""
Release a wide table
====================

A table of flats has nine columns, and some depend on each other. We release private views, look at
which pairs of columns were measured, run queries, and check, as the data owner, how good the
synthetic rows are.
"""

# %%
# The records
# -----------
# They are simulated. The domain is public: the columns and the values that they can have.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import Categorical, Domain, HDPViewSynthesizer, MarginalSynthesizer, Numeric
from skdp.quality import quality_report

rng = np.random.default_rng(3)
n = 30_000
area = np.clip(rng.gamma(6, 13, n), 15, 240)
rooms = np.clip(np.round(area / 28 + rng.normal(0.4, 0.6, n)), 1, 8).astype(int)
quarter = rng.choice(
    ["centre", "north", "south", "harbour", "hills"], n, p=[0.3, 0.25, 0.2, 0.15, 0.1]
)
price = pd.Series(quarter).map({"centre": 14, "north": 9, "south": 10, "harbour": 12, "hills": 15})
rent = np.clip(area * (price + rng.normal(0, 1.5, n)) + 80, 150, 3900)
flats = pd.DataFrame(
    {
        "area": area,
        "rooms": rooms,
        "quarter": quarter,
        "rent": rent,
        "people": np.clip(rng.poisson(rooms * 0.7) + 1, 1, 10),
        "built": rng.choice([1900, 1930, 1960, 1990, 2010], n) + rng.integers(0, 15, n),
        "balcony": rng.choice(["no", "yes"], n),
        "floor": rng.integers(0, 7, n),
        "pets": rng.choice(["none", "cat", "dog", "other"], n, p=[0.6, 0.2, 0.15, 0.05]),
    }
)
domain = Domain(
    {
        "area": Numeric(0, 250, bins=50),
        "rooms": Numeric(1, 8, integer=True),
        "quarter": Categorical(["centre", "harbour", "hills", "north", "south"]),
        "rent": Numeric(0, 4_000, bins=80),
        "people": Numeric(1, 10, integer=True),
        "built": Numeric(1900, 2030, bins=26),
        "balcony": Categorical(["no", "yes"]),
        "floor": Numeric(0, 6, integer=True),
        "pets": Categorical(["none", "cat", "dog", "other"]),
    }
)

# %%
# Release
# -------
# One fit spends all of epsilon. The pairs of dependent columns that were chosen are part of the
# release.
release = MarginalSynthesizer(epsilon=1.0, domain=domain).fit(flats)
for a, b in release.synopsis_.model.pairs[: len(domain.names) - 1]:
    print(domain.names[a], "-", domain.names[b])

# %%
# Queries
# -------
# Each answer has its own interval, for the noise and for what was not measured. An answer may be
# negative; its interval ends at 0. The true answers are for the data owner only: not private.
questions = [
    "area <= 50 and rent <= 600",
    "quarter == 'hills' and rent >= 1500",
    "rooms >= 4 and people <= 2",
    "built < 1940 and balcony == 'yes'",
]
answers = [release.count(question, return_interval=True) for question in questions]
print(
    pd.DataFrame(
        {
            "query": questions,
            "answer": [round(answer.value) for answer in answers],
            "from": [round(answer.lower) for answer in answers],
            "to": [round(answer.upper) for answer in answers],
            "true (not private)": [len(flats.query(question)) for question in questions],
        }
    ).to_string(index=False)
)

# %%
# The same two columns in three plots
# -----------------------------------
# The release follows the band where most flats are, in groups of bins; elsewhere noise is visible.
# HDPView partitions the whole table into blocks, which are smoother and coarser here.
blocks = HDPViewSynthesizer(epsilon=1.0, domain=domain).fit(flats)
figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained", sharey=True)
axes[0].hist2d(flats["area"], flats["rent"], bins=[50, 80], range=[[0, 250], [0, 4000]])
axes[0].set(title="the records (not private)", xlabel="area", ylabel="rent")
release.plot(["area", "rent"], ax=axes[1])
axes[1].set_title("marginals, epsilon 1")
blocks.plot(["area", "rent"], ax=axes[2])
axes[2].set_title("HDPView, epsilon 1")
figure.suptitle("Area and rent of the flats")

# %%
# How good are the synthetic rows?
# --------------------------------
# The data owner may compare them with the records, column by column and pair by pair. The
# comparison is exact and must not be published, unless it has an epsilon of its own, as here.
report = quality_report(flats, release.sample(10_000), domain=release.domain_, epsilon=0.5)
print(report)
bars = report.columns.set_index("column")
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
reach = [
    bars["distance"] - bars["distance_lower"],
    bars["distance_upper"] - bars["distance"],
]
ax.bar(bars.index, bars["distance"], yerr=reach, color="#31688e", ecolor="#1d2733", capsize=4)
ax.set_ylabel("distance to the records")
ax.set_title("Private quality report, epsilon = 0.5")
plt.show()
