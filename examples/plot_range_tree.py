"""
Range trees: why consistency is free accuracy
=============================================

When do trips begin? One histogram of the 1,440 minutes of a day is released once, to answer queries
about five minutes as well as about half a day. This example compares ways to measure it before any
record is read, releases it, and plots the result.
"""

# %%
# 60,000 simulated trips: two rush hours, a lunch break, and the rest of the day.
import matplotlib.pyplot as plt
import numpy as np

import skdp

rng = np.random.default_rng(7)
minutes = np.concatenate(
    [
        rng.normal(8 * 60, 35, 18_000),
        rng.normal(17.5 * 60, 60, 24_000),
        rng.normal(12.5 * 60, 25, 6_000),
        rng.uniform(5 * 60, 24 * 60, 12_000),
    ]
).clip(0, 1439)

# %%
# Two trees over the same bins. The binary tree measures 12 levels with equal shares of epsilon; the
# default measures the few levels that are worth their share.
day = {"epsilon": 1.0, "domain": skdp.Numeric(0, 1440, bins=1440)}
trees = {
    "Binary tree, equal shares": {"branching": 2, "budget": "uniform"},
    "The default": {},
}
print(skdp.RangeTreeHistogram(**day).plan().round(1).to_string(index=False))

# %%
# ``plan`` computes the errors in closed form and reads no record. Each count is measured several
# times, by itself, by the sum of its children, and by its parent minus its siblings. Weighted least
# squares combines these, at no cost to privacy.
figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (title, options) in zip(panels, trees.items(), strict=True):
    plan = skdp.RangeTreeHistogram(**day, **options).plan()
    length = plan["length"]
    ax.plot(length, plan["plain_std_error"], color="0.6", label="bins alone")
    ax.plot(length, plan["std_error"], color="#31688e", label="the tree")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_title(title, loc="left")
    ax.set_xlabel("length of the range, minutes")
    ax.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("standard error, records")
panels[0].set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
panels[0].yaxis.set_minor_formatter("")
figure.suptitle("Standard error of a range")
panels[1].legend(frameon=False, loc="lower right")
plt.show()

# %%
# Release it, and run queries. Counts come with exact standard errors. Quantiles and samples are
# free.
release = skdp.RangeTreeHistogram(**day).fit(minutes)
for start, stop in [(480, 485), (420, 540), (0, 720)]:
    answer = release.count((start, stop), return_interval=True)
    exact = int(((minutes >= start) & (minutes < stop)).sum())
    print(
        f"{start:>4} to {stop:>4}: {answer.value:>8.0f}, between {answer.lower:.0f} and "
        f"{answer.upper:.0f} (true, not private: {exact})"
    )
print("Quartiles:", np.round(release.quantile([0.25, 0.5, 0.75]), 1))

# %%
# The histogram with its pointwise 95% band; then at a tenth of the epsilon, without and with the
# constraint that counts are not negative. The constraint helps most at night, when there are few
# trips.
small = {**day, "epsilon": 0.1}
pictures = {
    "Epsilon 1": release,
    "Epsilon 0.1": skdp.RangeTreeHistogram(**small).fit(minutes),
    "Epsilon 0.1, non-negative": skdp.RangeTreeHistogram(**small, non_negative=True).fit(minutes),
}
figure, panels = plt.subplots(3, 1, figsize=(8, 8), sharex=True, sharey=True, layout="constrained")
for ax, (title, each) in zip(panels, pictures.items(), strict=True):
    each.plot(ax=ax)
    ax.set_title(title, loc="left")
    ax.set_xlabel("")
panels[-1].set_xlabel("minute of the day")
figure.suptitle("Released histograms of a day, minute by minute")
plt.show()
