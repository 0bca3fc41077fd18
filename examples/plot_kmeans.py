"""
Clustering customers: what may be published
===========================================

A shop wants to tell its suppliers which kinds of customers it has, without revealing anything about
any one customer. Centroids are only means, but a mean over a small cluster, or the same mean before
and after one customer joined, reveals a lot. So the centroids are released with noise. This example
shows what else is released, and what may be published and what may not.
"""

# %%
# The customers
# -------------
# We simulate 20,000 customers: how much they spend on a visit, and how many days lie between
# visits. There are four kinds, but the shop does not know that.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

import skdp

warnings.simplefilter("ignore", skdp.exceptions.InsecureSeedWarning)
rng = np.random.default_rng(3)
kinds = {  # customers, spending, days
    "daily bread": (9_000, 12, 3),
    "weekly shop": (6_000, 78, 8),
    "party": (2_000, 150, 27),
    "passing by": (3_000, 25, 24),
}
customers = pd.DataFrame(
    {
        "spending": np.concatenate([rng.normal(s, 9, n) for n, s, _ in kinds.values()]),
        "days": np.concatenate([rng.normal(d, 1.6, n) for n, _, d in kinds.values()]),
    }
).clip(lower=0)

# %%
# Distances are Euclidean, so features need comparable scales. Both are scaled to about [0, 1] by
# public numbers, never by the smallest and largest value in the data, because those belong to
# particular customers. Values outside the domain are clipped.
SCALE = pd.Series({"spending": 200.0, "days": 35.0})
scaled = customers / SCALE

# %%
# One fit
# -------
# One fit is one charge to the ledger. It tries two to eight clusters and chooses among them from
# the released grid, so trying several numbers costs nothing extra.
ledger = skdp.PrivacyLedger(epsilon=1)
model = skdp.DPKMeans(range(2, 9), epsilon=0.5, domain=(0, 1), ledger=ledger)
model.fit(scaled)
print(f"{model.n_clusters_} clusters; spent {float(ledger.spent)}, left {float(ledger.remaining)}")

# %%
# What may be published
# ---------------------
# The centroids, the noisy cluster sizes, and the noisy boxes. The boxes answer further queries (how
# many spend over 120 on a visit, with more than 17 days between visits?) and yield synthetic
# customers. The epsilon that was spent covers all of it.
table = pd.DataFrame(model.cluster_centers_ * SCALE.to_numpy(), columns=customers.columns)
print(table.assign(customers=model.cluster_counts_).round(1).to_string(index=False))
print(round(model.synopsis_.count("spending > 0.6 and days > 0.5")))

# %%
# Left: the released boxes with the centroids. Right: the validity of each number of clusters; the
# lowest was chosen.
figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
model.plot(ax=panels[0])
numbers, validity = zip(*sorted(model.validity_.items()), strict=True)
panels[1].plot(numbers, validity, "o-", color="#31688e")
panels[1].set_xlabel("clusters")
panels[1].set_ylabel("validity (smaller is better)")
panels[1].spines[["top", "right"]].set_visible(False)
figure.suptitle("The released boxes with the centroids, and the choice of their number")
plt.show()

# %%
# What may not be published
# -------------------------
# The label of a customer in the data, and the score on the data. Both are computed exactly from
# the rows, so they are for the data owner only: not private. The label of a *new* customer reveals
# nothing about the customers in the data: it follows from the released centroids.
labels = model.predict(scaled)
print(f"for the data owner only: mean squared distance {-model.score(scaled) / len(scaled):.5f}")
print("for everybody:", model.predict(pd.DataFrame({"spending": [0.1], "days": [0.05]})))

# %%
# What it costs in accuracy
# -------------------------
# The plot shows how much larger the mean squared distance of each algorithm is than that of
# k-means without privacy, for eight clusters in four dimensions. Every point is the mean of three
# releases of simulated data.
places = rng.uniform(0.15, 0.85, size=(8, 4))
X = np.clip(places[rng.integers(0, 8, 10_000)] + rng.normal(0, 0.04, size=(10_000, 4)), 0, 1)
best = KMeans(8, n_init=20, random_state=0).fit(X).inertia_ / len(X)
epsilons = [0.1, 0.2, 0.5, 1, 2]
algorithms = {
    "auto": "#1b1b1b",
    "hybrid": "#31688e",
    "extended-grid": "#35b779",
    "uniform-grid": "#86a81c",
    "lloyd-improved": "#b5694a",
    "lloyd": "#d6a84f",
    "sample-aggregate": "#9c9c9c",
}
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for mark, (algorithm, colour) in zip("osD^v<>", algorithms.items(), strict=True):
    errors = [
        np.mean(
            [
                -skdp.DPKMeans(8, epsilon=e, domain=(0, 1), algorithm=algorithm, random_state=s)
                .fit(X)
                .score(X)
                / len(X)
                - best
                for s in range(3)
            ]
        )
        for e in epsilons
    ]
    ax.plot(epsilons, errors, marker=mark, markersize=4, color=colour, label=algorithm)
ax.axhline(best, color="0.7", linewidth=0.8, linestyle="--")
ax.annotate("mean squared distance without privacy", (2, best), ha="right", va="bottom", fontsize=8)
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xticks(epsilons, labels=[f"{e:g}" for e in epsilons])
ax.minorticks_off()
ax.set_xlabel("epsilon")
ax.set_ylabel("excess mean squared distance")
ax.set_title("Excess of seven algorithms over k-means without privacy")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
