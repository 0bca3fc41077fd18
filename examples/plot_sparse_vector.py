"""
Sparse vector: a thousand queries, five positive answers
========================================================

A region monitors a thousand diagnoses for outbreaks every week. Almost all counts are small and
need not be published; the few that are above a threshold should be named. A sparse vector pays for
these few only.
"""

# %%
# A thousand counts of patients. Two outbreaks are large, one is a little above the threshold.
import matplotlib.pyplot as plt
import numpy as np

from skdp import PrivacyLedger
from skdp.mechanisms import SparseVector, top_k

rng = np.random.default_rng(1)
counts = rng.poisson(rng.gamma(2, 15, size=1000))
outbreaks = [120, 480, 800]
counts[outbreaks] += [420, 600, 260]
threshold = 200

# %%
# All of epsilon is charged when the object is made. One patient has one diagnosis here and so
# changes all counts in the same direction, which ``monotonic=True`` declares.
ledger = PrivacyLedger(1.0, name="patients")
watch = SparseVector(
    epsilon=0.5, threshold=threshold, cutoff=5, monotonic=True, expected_queries=1000, ledger=ledger
)
answers = watch.query_many(counts)
print(f"named: {watch.positives.tolist()}, {watch.remaining} of 5 positives left")
print(f"spent: {float(ledger.spent)} for {watch.n_queries} answers")

# %%
# Every positive answer comes with its gap at no cost: the noisy distance from the threshold. The
# band is two standard deviations of the comparison to each side: counts above it are nearly always
# named, counts below it almost never.
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.scatter(np.arange(1000), counts, s=6, color="0.6", label="true counts (not private)")
ax.axhline(threshold, color="C3", label="threshold")
ax.axhspan(
    threshold - 2 * watch.comparison_std,
    threshold + 2 * watch.comparison_std,
    color="C3",
    alpha=0.15,
    label="noise of the comparison",
)
ax.scatter(
    watch.positives, threshold + watch.gaps, marker="_", s=250, linewidths=3, label="released"
)
ax.set(xlabel="diagnosis", ylabel="patients in the week")
ax.set_title("A week of 1,000 diagnoses: counts, threshold and what was released")
ax.legend(loc="upper left", fontsize=8)


# %%
# How far above the threshold must a count be to be named? The default draws one-sided noise. At the
# same epsilon the two-sided noise of the literature is less accurate, and new threshold noise after
# every positive answer (Dwork and Roth's book) is much less accurate.
def found(lead, n_runs=300, **variant):
    """How often a count that is ``lead`` above the threshold is named after 50 small ones."""
    stream = np.append(np.zeros(50, dtype=int), threshold + lead)
    hits = 0
    for _ in range(n_runs):
        vector = SparseVector(0.5, threshold, 5, monotonic=True, **variant)
        given = vector.query_many(stream)
        hits += len(given) == 51 and bool(given[-1])
    return hits / n_runs


variants = {
    "one-sided noise": {},
    "two-sided noise": {"noise": "two-sided"},
    "new threshold each time": {"noise": "two-sided", "variant": "dwork-roth"},
}
leads = np.arange(-60, 161, 20)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for marker, (name, variant) in zip("os^", variants.items(), strict=True):
    ax.plot(leads, [found(lead, **variant) for lead in leads], marker=marker, label=name)
ax.axvline(0, color="0.6", linewidth=1)
ax.set(xlabel="patients above the threshold", ylabel="probability of being named")
ax.set_title("Probability of being named, by distance above the threshold")
ax.legend()

# %%
# If all counts are known in advance, no threshold is needed: `top_k` names the largest for the same
# epsilon, with less noise, because no threshold has to be protected.
print(f"top three: {sorted(top_k(counts, 3, epsilon=0.5, score_range=1).tolist())}")
plt.show()
