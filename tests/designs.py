"""Designs, records and refusals that tests of linear models share."""

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp._models import feature_columns
from skdp.algorithms.linear import Design

DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(0, 100, bins=20, nullable=True),
        "score": skdp.Numeric(-1, 1, bins=8, special=[9]),
        "city": skdp.Categorical(["a", "b", "c"]),
    }
)


def design_of(domain=DOMAIN, one_hot="categories"):
    columns = feature_columns(domain, one_hot, 32, {})
    return Design(tuple(each.column for each in columns)), columns


def people(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "score": rng.uniform(-1, 1, n),
            "city": rng.choice(["a", "b", "c"], n),
        }
    )
    score = (rows["age"] - 50) / 15 + 2 * rows["city"].map({"a": 1.0, "b": 0.0, "c": -1.0})
    pay = 20 + 0.3 * rows["age"] + 10 * (rows["city"] == "a") + rng.normal(0, 3, n)
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    return rows, pay, ill


def refused(estimator, error, match, *data):
    estimator.set_params(ledger=skdp.PrivacyLedger())
    with pytest.raises(error, match=match):
        estimator.fit(*data)
    assert estimator.ledger.spent == 0
