"""What tests of cubes share: records, a domain and a cube; small lattices, some measured."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from skdp import Categorical, DataCube, Domain, Numeric, Taxonomy
from skdp.algorithms.cuboids import dimensions_of
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


# ------------------------------------------------------------------------------------------------
# Small cubes of which some cuboids were measured.


ADULT = (9, 16, 7, 15, 6, 5, 2, 2)


def noise_of(cube, variances):
    noise = np.full(len(cube), np.inf)
    for mask, variance in variances.items():
        noise[cube.position[mask]] = variance
    return noise


def aggregation(sizes, mask):
    """Dense matrix that sums the cells of the base cuboid to those of another."""
    kept = dimensions_of(mask)
    shape = tuple(sizes[i] for i in kept)
    cells = np.indices(sizes).reshape(len(sizes), -1)[list(kept)]
    target = np.ravel_multi_index(cells, shape) if kept else np.zeros(math.prod(sizes), dtype=int)
    matrix = np.zeros((math.prod(shape), math.prod(sizes)))
    matrix[target, np.arange(math.prod(sizes))] = 1
    return matrix


def plan_noise(cube, plan):
    """Variances at epsilon 1 as the planners count them, 2 / epsilon_C**2."""
    pairs = zip(plan.masks, plan.shares, strict=True)
    return noise_of(cube, {mask: 2 / float(share) ** 2 for mask, share in pairs})


@st.composite
def measured(draw, max_dims=3):
    """A small cube, some measured cuboids with variances, and a seed."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=max_dims)))
    every = range(1 << len(sizes))
    masks = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    variances = {mask: draw(st.floats(0.1, 50)) for mask in masks}
    return sizes, variances, draw(st.integers(0, 2**31))
