"""
Train on data you may not keep
==============================

A clinic may use its records for a week and must then delete them, but it wants to keep a
classifier. It releases one private table of counts, made for classification, trains on that, and
deletes the records. Every model that is trained on the release, now or next year, protects every
patient at the epsilon of the release.
"""

# %%
# The records (simulated): age, blood pressure, yearly visits, ward, smoker, and whether a patient
# came back within a month.
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
# Ranges, categories and the two labels are declared from public knowledge, not read from the
# records. Visits are skewed: most are near zero and a few are large. So each number of visits is a
# bin, and groups whose width grows with the number are then among the candidates.
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
release = PrivPfCTransformer(epsilon=0.5, domain=domain, classes=["no", "yes"], ledger=ledger)
release.fit(X, y)
release.grid_.to_frame()

# %%
# The release consists of the grid and its noisy counts; ``release`` may be kept or published. Its
# cells, weighted by their counts, train any classifier, and ``prepare`` maps new rows to the cells.
rows, labels, weights = release.make_training_set()
model = LogisticRegression(max_iter=500).fit(rows, labels, sample_weight=weights)
print(f"{len(X)} records became {len(rows)} weighted cells; epsilon spent: {ledger.spent}")
print(f"error on new patients: {1 - model.score(release.prepare(X_new), y_new):.3f}")

# %%
# What does privacy cost in accuracy? The plot shows the error against epsilon, with two baselines:
# always predicting "no", and boosting on the true records, a model that would have to be deleted
# together with them.
epsilons = [0.02, 0.05, 0.1, 0.3, 1.0]


def error(make, epsilon, runs=2):
    found = [1 - make(epsilon).fit(X, y).score(X_new, y_new) for _ in range(runs)]
    return np.mean(found)


declared = {"domain": domain, "classes": ["no", "yes"], "max_grids": 3000}
makers = {
    "logistic regression on the release": lambda epsilon: PrivateClassifier(
        LogisticRegression(max_iter=500), PrivPfCTransformer(epsilon=epsilon, **declared)
    ),
    "PrivPfCClassifier": lambda epsilon: PrivPfCClassifier(epsilon=epsilon, **declared),
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
# The errors above were computed on true new patients. They are exact and for the data owner only:
# not private, and not part of the release. Every point of the curve is a separate release; in
# practice you would make and pay for one.
