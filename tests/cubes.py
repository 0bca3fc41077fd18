"""Records, a domain and a cube that tests of cubes share."""

import numpy as np
import pandas as pd
import pytest

from skdp import Categorical, DataCube, Domain, Numeric, Taxonomy
from skdp.datacube import cube as cube_module

DOMAIN = Domain(
    {
        "age": Numeric(20, 59, bins=4, integer=True),
        "sex": Categorical(["F", "M"]),
        "region": Categorical(
            ["N", "S", "E", "W"],
            taxonomy=Taxonomy.from_tree({"all": {"polar": ["N", "S"], "other": ["E", "W"]}}),
            nullable=True,
        ),
        "pay": Numeric(0, 100, bins=5),
    }
)


DIMENSIONS = ["age", "sex", "region"]


def people(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n_rows),
            "sex": rng.choice(["F", "M"], n_rows),
            "region": rng.choice(["N", "S", "E", "W", None], n_rows, p=[0.4, 0.3, 0.1, 0.1, 0.1]),
            "pay": rng.gamma(2, 20, n_rows).round(2),
        }
    )


ROWS = people(500)


def make(**params):
    return DataCube(**{"domain": DOMAIN, "dimensions": DIMENSIONS, **params})


def recorded(monkeypatch):
    """Replaces the mechanism by one without noise, and records its calls."""
    made = []

    def recording(values, epsilon, sensitivity=1, *, random_state=None):
        made.append((np.array(values), epsilon, sensitivity, random_state))
        return np.asarray(values)

    monkeypatch.setattr(cube_module, "discrete_laplace", recording)
    return made


def fitted_without_noise(cube, rows):
    with pytest.MonkeyPatch.context() as patch:
        recorded(patch)
        return cube.fit(rows)


def true_table(rows, dimensions):
    """Exact counts, missing values included."""
    if not dimensions:
        return np.array(float(len(rows)))
    axes = []
    for name in dimensions:
        if name == "age":
            codes = (rows["age"].to_numpy() - 20) // 10
            axes.append((codes, 4))
        elif name == "sex":
            axes.append((rows["sex"].map({"F": 0, "M": 1}).to_numpy(), 2))
        else:
            codes = rows["region"].map({"N": 0, "S": 1, "E": 2, "W": 3}).fillna(4).to_numpy()
            axes.append((codes.astype(int), 5))
    table = np.zeros([size for _, size in axes])
    np.add.at(table, tuple(codes for codes, _ in axes), 1)
    return table
