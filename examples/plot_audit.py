"""
Convict broken mechanisms
=========================

Some published mechanisms look private and are not. Each mechanism below claims an epsilon of 1. An
audit runs it many times on two data sets that differ in one record, and computes from the outputs a
lower bound on the epsilon that it really costs.
"""

# %%
# Mechanisms, right and wrong
# ---------------------------
# Each is a function of the data and the number of trials. The first two are correct.
import matplotlib.pyplot as plt
import numpy as np

from skdp.audit import audit
from skdp.mechanisms import discrete_laplace

rng = np.random.default_rng(4)


def counting(records, n):
    return discrete_laplace(np.full(n, len(records)), epsilon=1.0)


def above_threshold(answers, n, threshold_scale=2.0, query_scale=4.0, most=1):
    """Sparse vector: which answers are above a noisy threshold of 0, up to `most` positives."""
    threshold = rng.laplace(0, threshold_scale, n)
    told = np.full((n, len(answers)), -1)
    found = np.zeros(n, dtype=int)
    for i, answer in enumerate(answers):
        above = answer + rng.laplace(0, query_scale, n) >= threshold
        told[:, i] = np.where(found < most, above, -1)
        found += above
    return told


# %%
# The next four are wrong: noise whose scale is a quarter too small; a mean that divides by the
# exact number of records; a sum that raises an error if a value is out of range; and a sparse
# vector that gives three positive answers with noise for one.


def narrow(records, n):
    return np.round(len(records) + rng.laplace(0, 0.75, n), 2)


def exact_size(records, n):
    return (sum(records) + discrete_laplace(np.zeros(n, dtype=int), 1.0)) / len(records)


def strict(records):  # one output: an error is that of a trial
    if max(records) > 10:
        raise ValueError("values must lie in [0, 10]")
    return np.round(sum(records) + rng.laplace(0, 10), 2)


def generous(answers, n):
    return above_threshold(answers, n, 4.0, 4 / 3, most=3)


# %%
# Audits
# ------
# Half of the trials are used to choose an event, a set of outputs that is likely on one data set
# and unlikely on the other. The other half count it. If the claim is true, the ratio of its two
# probabilities is at most :math:`e^{\varepsilon}`.
ones, quiet, loud = [1] * 6, [0] * 4 + [1] * 3, [1] * 4 + [0] * 3
audits = [
    ("a noisy count of skdp", counting, ones, ones[1:]),
    ("sparse vector", above_threshold, quiet, loud),
    ("noise a quarter too small", narrow, ones, ones[1:]),
    ("sparse vector, too generous", generous, quiet, loud),
    ("mean over the exact size", exact_size, ones, ones[1:]),
    ("an error about a value", strict, [5, 7], [5, 7, 99]),
]
results = [
    audit(
        mechanism,
        here,
        there,
        epsilon=1.0,
        n_trials=200_000,
        vectorised=mechanism is not strict,
        name=name,
    )
    for name, mechanism, here, there in audits
]
for result in results:
    verdict = "passed" if result.passed else "refuted"
    print(f"{result.name}: {verdict}. {result.event}")

# %%
# The bound, as a multiple of the claim. A bar beyond the line at 1 convicts the mechanism, at 99.9%
# confidence. The grey bars show the largest bound that this number of trials can give. The last two
# mechanisms have no finite epsilon: with more trials, their bounds grow without limit.
fig, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
names = [result.name for result in results]
ax.barh(names, [result.reachable for result in results], height=0.8, color="0.9")
colours = ["#31688e" if result.passed else "#c0392b" for result in results]
ax.barh(names, [result.epsilon_lower_bound for result in results], height=0.5, color=colours)
ax.axvline(1, color="0.3")
ax.invert_yaxis()
ax.set(xlabel="lower bound on epsilon / claimed epsilon", title="Four of six are convicted")
plt.show()
