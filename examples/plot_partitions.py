"""
What the partitions look like
=============================

Five releases of the same two columns at the same epsilon: where HDPView, PrivTree, two kd-trees and
a grid place their boxes, and how accurate their answers are.

30,000 simulated trips start near one of three places or anywhere in a city of 64 x 64 blocks.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm

import skdp

rng = np.random.default_rng(7)
centres = np.array([[18.0, 44.0], [44.0, 40.0], [30.0, 14.0]])
spread = np.array([3.0, 1.5, 6.0])
place = rng.choice(3, size=27_000, p=[0.5, 0.3, 0.2])
starts = centres[place] + rng.normal(size=(27_000, 2)) * spread[place, None]
starts = np.concatenate([starts, rng.uniform(0, 64, size=(3_000, 2))])
trips = pd.DataFrame(starts, columns=["east", "north"])

domain = skdp.Domain({"east": skdp.Numeric(0, 64, bins=64), "north": skdp.Numeric(0, 64, bins=64)})

# %%
# The releases
# ------------
# Each spends an epsilon of 0.5 on a partition and its counts.
releases = {
    "HDPView": skdp.HDPViewSynthesizer(epsilon=0.5, domain=domain),
    "PrivTree": skdp.PrivTreeSynthesizer(epsilon=0.5, domain=domain),
    "kd-tree, two-step": skdp.KDTreeSynthesizer(epsilon=0.5, domain=domain),
    "kd-tree, hierarchical": skdp.KDTreeSynthesizer(
        epsilon=0.5, domain=domain, strategy="hierarchical"
    ),
    "grid, extended": skdp.GridSynthesizer(epsilon=0.5, domain=domain),
}
for release in releases.values():
    release.fit(trips)

# %%
# The boxes
# ---------
# The colour shows the released density, on the same scale as the true one at the top left. HDPView
# cuts where the two sides differ most, PrivTree halves both columns in the middle, the kd-trees
# cut at medians of noisy counts, and the grid does not adapt to the records.
figure, axes = plt.subplots(2, 3, figsize=(13, 8.6), layout="constrained")
true, _, _ = np.histogram2d(trips["east"], trips["north"], bins=64, range=[[0, 64], [0, 64]])
norm = PowerNorm(0.5, vmin=0, vmax=true.max(), clip=True)
mesh = axes[0, 0].pcolormesh(np.arange(65), np.arange(65), true.T, norm=norm)
axes[0, 0].set(title="true counts (private)", xlabel="east", ylabel="north")
figure.colorbar(mesh, ax=axes[0, 0])
for (name, release), ax in zip(releases.items(), axes.flat[1:], strict=True):
    release.synopsis_.plot(["east", "north"], ax=ax, blocks=True, norm=norm)
    ax.set_title(f"{name}: {len(release.synopsis_.to_frame())} boxes")
for ax in axes.flat:
    ax.set_aspect("equal")
figure.suptitle("True density of three clusters, and the boxes of five releases over it")

# %%
# The errors
# ----------
# Root mean square error over 500 random rectangles. It is computed from the true answers, so it is
# for the data owner only: not private.
low = rng.integers(0, 64, size=(500, 2))
high = rng.integers(low, 64)
questions = [
    {"east": (a, c + 0.999), "north": (b, d + 0.999)}
    for (a, b), (c, d) in zip(low.tolist(), high.tolist(), strict=True)
]
sums = np.pad(true.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
answers = (
    sums[high[:, 0] + 1, high[:, 1] + 1]
    - sums[low[:, 0], high[:, 1] + 1]
    - sums[high[:, 0] + 1, low[:, 1]]
    + sums[low[:, 0], low[:, 1]]
)
errors = {
    name: np.sqrt(np.mean((release.count(questions) - answers) ** 2))
    for name, release in releases.items()
}
print(pd.Series(errors, name="root mean square error").round(1).to_string())

# %%
# Every answer has an interval. It covers the noise and the uneven spread of the records inside the
# boxes that the query cuts. HDPView's tests bound that spread. The other releases have no such
# bound: any number of a box's records, from none to all, may lie in the part that the query
# covers.
question = "10 <= east < 25 and north >= 38"
print(f"\n{question}: {len(trips.query(question))} in truth\n")
for name, release in releases.items():
    answer = release.count(question, return_interval=True, level=0.95)
    print(f"{name:<22} {answer.value:8.0f}   95%: {answer.lower:6.0f} to {answer.upper:6.0f}")

plt.show()
