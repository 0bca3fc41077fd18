"""
What does epsilon buy? Errors before anything is spent
======================================================

A city wants to publish statistics of 30,000 commuters, and must choose epsilon first. Nobody can
take back what was spent, so the errors should be known before. This example computes them from
public facts alone, chooses epsilon, releases, and fits a regression with what is left.
"""

# %%
# What is public
# --------------
# The columns and their ranges are public. So is last year's survey of 4,000 people, which was
# published with the consent of those who took part.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import skdp

domain = skdp.Domain(
    {
        "age": skdp.Numeric(18, 70, bins=13),
        "distance": skdp.Numeric(0, 50, bins=10),
        "mode": skdp.Categorical(["foot", "bike", "bus", "car"]),
        "minutes": skdp.Numeric(0, 120, bins=8),
    }
)


def commuters(n, seed):
    """Simulated people: speed depends on how they travel, and that on the distance."""
    rng = np.random.default_rng(seed)
    distance = rng.gamma(1.6, 6, n).clip(0.3, 50)
    speed = {"foot": 5, "bike": 15, "bus": 20, "car": 35}
    near = distance < 3
    mode = np.where(
        near,
        rng.choice(["foot", "bike", "car"], n, p=[0.5, 0.3, 0.2]),
        rng.choice(["bike", "bus", "car"], n, p=[0.2, 0.3, 0.5]),
    )
    hours = distance / pd.Series(mode).map(speed).to_numpy()
    minutes = (5 + 60 * hours + rng.normal(0, 6, n)).clip(0, 120)
    age = rng.normal(42, 12, n).clip(18, 70)
    return pd.DataFrame({"age": age, "distance": distance, "mode": mode, "minutes": minutes})


survey = commuters(4_000, seed=1)

# %%
# What to expect
# --------------
# The release is tried out on rows drawn from the survey, at several epsilon. No private row is
# read, and the ledger stays untouched.
ledger = skdp.PrivacyLedger(epsilon=2)
release = skdp.MarginalSynthesizer(domain=domain, ledger=ledger)
expected = release.expected_error(n=30_000, epsilon=[0.05, 0.2, 0.8], like=survey, n_tables=2)
print(expected.round(1))
print("spent:", float(ledger.spent))

# %%
# Lines are root mean square errors over random questions of each kind. At small epsilon the errors
# on two and three columns hardly depend on it: there the noise hides how the columns depend on each
# other.
ax = expected.T.plot(logy=True, marker="o", figsize=(6.4, 4.2))
ax.set(ylabel="expected error (records)", title="Errors that a release of 30,000 records will have")
plt.show()

# %%
# Choosing epsilon
# ----------------
# Counts of two columns shall be right to about 150 of the 30,000.
tried = release.expected_error(30_000, [0.2, 0.4, 0.8, 1.6], like=survey, n_tables=1)
enough = tried.columns[tried.loc["two-column range"] <= 150]
print(f"epsilon {enough[0]:g} is enough")

# %%
# One release
# -----------
people = commuters(30_000, seed=2)
view = release.set_params(epsilon=0.8).fit(people)
query = "distance >= 20 and mode == 'car'"
exact = int(((people["distance"] >= 20) & (people["mode"] == "car")).sum())
print(f"far by car: {view.count(query):.0f}, exactly {exact}; spent {float(ledger.spent):g}")

# %%
# A regression with the rest of the budget
# ----------------------------------------
# Bars are two standard errors of the noise, and the crosses have hardly any noise. Shrinkage is not
# in the bars, and of the indicators of a column only differences mean something.
features = ["age", "distance", "mode"]
model = skdp.PrivateLinearRegression(
    epsilon=1.2, domain=domain.select(features), target_range=(0, 120), ledger=ledger
)
model.fit(people[features], people["minutes"])
exact = skdp.PrivateLinearRegression(
    epsilon=100_000,
    domain=domain.select(features),
    target_range=(0, 120),
    ledger=skdp.PrivacyLedger(),
)
exact.fit(people[features], people["minutes"])
fig, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
places = np.arange(len(model.coef_))
ax.errorbar(
    model.coef_,
    places,
    xerr=2 * model.coef_std_,
    fmt="o",
    color="#0072B2",
    capsize=3,
    label="private",
)
ax.plot(exact.coef_, places, "kx", label="without noise")
ax.set_yticks(places, model.feature_labels_)
ax.invert_yaxis()
ax.axvline(0, color="black", linewidth=0.8)
ax.set_xlabel("minutes")
ax.legend(frameon=False, loc="lower right")
fig.suptitle("Coefficients of a private regression, with two standard errors of the noise")
plt.show()
