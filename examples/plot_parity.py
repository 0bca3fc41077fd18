"""
Learning a parity function from a release
=========================================

The label is the parity of some of the columns. This is hard for learners that look at one column at
a time: the label is independent of every single column, and of every small set of columns. Counts
over all cells keep the dependence. This is the example of appendix C of the DPCube paper.

20,000 simulated records have eight random bits and a ninth that is the parity of four of them,
flipped for one record in ten. The task is to find these four from a release that was not made for
it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import skdp
from skdp.inspection import usefulness

n_bits = 8
columns = [*map(str, range(n_bits)), "label"]
secret = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=bool)
rng = np.random.default_rng(11)


def records(n):
    """Random bits, and the parity of the secret ones, flipped with probability 0.1."""
    bits = rng.integers(0, 2, size=(n, n_bits))
    label = bits[:, secret].sum(axis=1) % 2 ^ (rng.random(n) < 0.1)
    return pd.DataFrame(np.column_stack([bits, label]), columns=columns)


domain = skdp.Domain({column: skdp.Categorical([0, 1]) for column in columns})
table = records(20_000)

# %%
# The release
# -----------
# There are 512 cells. Each is counted with noise. Everything below reads only the release.
view = skdp.KDTreeSynthesizer(epsilon=0.1, domain=domain, strategy="cell").fit(table)
bound = usefulness(2**9, 0.1, 0.05)
print(f"Counts over half of the cells are off by at most {bound.queries:,.0f} records (one query),")
print(
    f"at most {bound.every_query:,.0f} (every query); the published bound: {bound.published:,.0f}"
)


# %%
# Learning from queries
# ---------------------
# A parity query counts the records whose label is the parity of the bits in a vector. All 255 are
# answered from the released counts: one vector agrees with 90% of the records, the others with
# half.
def agreement(release):
    """Share of the records that agree with every parity vector but the zero one."""
    cells = release.synopsis_.to_frame()
    bits = cells[[str(i) for i in range(n_bits)]].astype(int).to_numpy()
    counts = cells["count"].to_numpy()
    vectors = np.array(list(np.ndindex(*(2,) * n_bits)))[1:]
    parity = bits @ vectors.T % 2
    agrees = parity == cells["label"].astype(int).to_numpy()[:, None]
    return vectors.astype(bool), counts @ agrees / counts.sum()


vectors, shares = agreement(view)
best = vectors[shares.argmax()]
print(f"\nsecret bits {np.flatnonzero(secret)}, best vector {np.flatnonzero(best)}")


# %%
# Learning by elimination
# -----------------------
# The paper's learner needs only synthetic records. It draws a few of them, and adds them up
# (modulo 2) until one bit is left. The label of the sum is then the value of that bit of the
# vector, unless it includes an odd number of flipped labels. The majority of many tries decides.
def vote(rows, target, generator, tries=301):
    """Share of tries that find the bit of the vector at ``target`` to be set."""
    found = []
    while len(found) < tries:
        sample = rows[generator.integers(0, len(rows), size=n_bits + 4)].copy()
        for column in range(n_bits):
            if column == target:
                continue
            pivots = np.flatnonzero(sample[:, column])
            if len(pivots):
                pivot = sample[pivots[0]].copy()
                sample = np.delete(sample, pivots[0], axis=0)
                sample[sample[:, column] == 1] ^= pivot
        sample = sample[(sample[:, target] == 1) & (sample[:, :n_bits].sum(axis=1) == 1)]
        if len(sample):
            found.append(sample[generator.integers(len(sample)), n_bits])
    return np.mean(found)


synthetic = view.sample(random_state=0).astype(int).to_numpy()
votes = [vote(synthetic, bit, np.random.default_rng(bit)) for bit in range(n_bits)]
print("votes for each bit:", np.round(votes, 2))
print("found by voting:", np.flatnonzero(np.array(votes) > 0.5))

# %%
# How small may epsilon be?
# -------------------------
# Noise in the cells acts like more flipped labels. The right vector is found as long as its share
# is larger than those of the 254 wrong ones.
epsilons = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5]
right, wrong = [], []
for epsilon in epsilons:
    release = skdp.KDTreeSynthesizer(epsilon=epsilon, domain=domain, strategy="cell").fit(table)
    _, shares = agreement(release)
    hit = (vectors == secret).all(axis=1)
    right.append(shares[hit][0])
    wrong.append(shares[~hit].max())

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
axes[0].bar(range(n_bits), votes, color=np.where(secret, "C0", "0.7"))
axes[0].axhline(0.5, color="black", lw=1)
axes[0].set(xlabel="bit (blue: in the secret vector)", ylabel="share of votes", ylim=(0, 1))
axes[0].set_title("Elimination on synthetic rows, epsilon 0.1")
axes[1].semilogx(epsilons, right, "o-", label="the secret vector")
axes[1].semilogx(epsilons, wrong, "o--", color="0.5", label="best of the 254 others")
axes[1].set(xlabel="epsilon", ylabel="share of records that agree", ylim=(0.3, 1.2))
axes[1].set_title("Parity queries on released counts")
axes[1].legend(frameon=False)
figure.suptitle("A secret vector found in a release of all cells")
plt.show()
