"""Records and a pipeline that tests of model selection share."""

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

import skdp

N = 2_000


rng = np.random.default_rng(0)


X = pd.DataFrame({"a": rng.uniform(0, 1, N), "b": rng.uniform(0, 1, N)})


Y = pd.Series(np.where(X["a"] > 0.5, "high", "low"), name="label")


SQUARE = skdp.Domain({"a": skdp.Numeric(0, 1, bins=8), "b": skdp.Numeric(0, 1, bins=2)})


def model(epsilon=1.0, estimator=None, ledger=None, random_state=None):
    release = skdp.HDPViewSynthesizer(
        epsilon=epsilon, domain=SQUARE, ledger=ledger, random_state=random_state
    )
    tree = DecisionTreeClassifier(max_depth=3) if estimator is None else estimator
    return skdp.PrivateClassifier(tree, release, classes=["high", "low"])
