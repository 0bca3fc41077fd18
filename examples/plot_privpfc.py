"""
Train on data you may not keep
==============================

A clinic may use its records for a week and must then delete them. It wants a classifier that can
stay. Here it releases one private table of counts, made for this task, trains on that, and deletes
the records: whatever is trained on the release, now or next year, protects every patient at the
epsilon of the release.
"""

# %%
# The records (made up for this page): age, blood pressure, yearly visits, ward, smoker, and whether
# a patient came back within a month.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from skdp import (
    Categorical,
    Domain,
    Numeric,
    PrivacyLedger,
    PrivateClassifier,
    PrivPfCClassifier,
    PrivPfCTransformer,
)

rng = np.random.default_rng(0)


def patients(n):
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 99, n),
            "pressure": rng.normal(130, 18, n).round(),
            "visits": rng.geometric(0.12, n),
            "ward": rng.choice(["heart", "lung", "bones", "other"], n),
            "smoker": rng.choice(["yes", "no"], n, p=[0.25, 0.75]),
        }
    )
    risk = (
        (frame["age"] > 70) * 1.6
        + (frame["ward"] == "heart") * 1.4
        + (frame["ward"] == "lung") * (frame["smoker"] == "yes") * 2.2
        + np.log2(frame["visits"]) * 0.6
        - 3.2
    )
    back = np.where(risk + rng.logistic(0, 0.5, n) > 0, "yes", "no")
    return frame, pd.Series(back, name="back")


X, y = patients(30_000)
X_new, y_new = patients(10_000)

# %%
# Public knowledge is declared, not read: ranges, categories, and the two labels. Visits crowd near
# zero and reach far up, so they get one bin each: groups of growing width are then on offer.
domain = Domain(
    {
        "age": Numeric(18, 98, integer=True),
        "pressure": Numeric(60, 220, bins=32),
        "visits": Numeric(0, 200, integer=True),
        "ward": Categorical(["heart", "lung", "bones", "other"]),
        "smoker": Categorical(["yes", "no"]),
    }
)
ledger = PrivacyLedger(0.5)
release = PrivPfCTransformer(0.5, domain=domain, classes=["no", "yes"], ledger=ledger)
release.fit(X, y)
release.grid_.to_frame()

# %%
# The grid and its noisy counts are all there is; ``release`` may be kept or given away. Its cells
# with their counts as weights train any classifier, and ``prepare`` maps new rows to the cells.
rows, labels, weights = release.make_training_set()
model = LogisticRegression(max_iter=500).fit(rows, labels, sample_weight=weights)
print(f"{len(X)} records became {len(rows)} weighted cells; epsilon spent: {ledger.spent}")
print(f"error on new patients: {1 - model.score(release.prepare(X_new), y_new):.3f}")

# %%
# What does protection cost? The error against epsilon, beside two lines: always saying "no", and
# boosting on the records themselves, which would have to be deleted with them.
epsilons = [0.02, 0.05, 0.1, 0.3, 1.0]


def error(make, epsilon, runs=2):
    found = [1 - make(epsilon).fit(X, y).score(X_new, y_new) for _ in range(runs)]
    return np.mean(found)


declared = {"domain": domain, "classes": ["no", "yes"], "max_grids": 3000}
makers = {
    "logistic regression on the release": lambda epsilon: PrivateClassifier(
        LogisticRegression(max_iter=500), PrivPfCTransformer(epsilon, **declared)
    ),
    "PrivPfCClassifier": lambda epsilon: PrivPfCClassifier(epsilon, **declared),
}

raw = X.astype({"ward": "category", "smoker": "category"})
raw_new = X_new.astype({"ward": "category", "smoker": "category"})
boosting = HistGradientBoostingClassifier(categorical_features="from_dtype").fit(raw, y)

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, make in makers.items():
    line = "o-" if "Classifier" in name else "s--"
    ax.plot(epsilons, [error(make, epsilon) for epsilon in epsilons], line, label=name)
ax.axhline(np.mean(y_new == "yes"), color="0.6", linestyle="--", label="always no")
ax.axhline(
    1 - boosting.score(raw_new, y_new), color="0.2", linestyle=":", label="boosting, true records"
)
ax.set_xscale("log")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.set_xlabel("epsilon")
ax.set_ylabel("misclassification of new patients")
ax.set_ylim(bottom=0)
ax.set_title("Misclassification of new patients against epsilon")
ax.legend(frameon=False)
plt.show()

# %%
# The scores above were computed on true new patients: they are exact, for the holder's eyes, and
# not part of the release. Every point of the curve is a release of its own; in earnest you would
# pay for one.
