"""Records that a release skips: exact cells of the rows, what is released of them, stops."""

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp._random import noise_source
from skdp.rows import Coded, Contributions, read_rows

DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(0, 100, bins=10),
        "sex": skdp.Categorical(["F", "M"]),
        "pay": skdp.Numeric(0, 10, bins=5),
    },
    structure=[skdp.forbid("age < 50 and sex == 'M'")],
)


def messy(n=400, seed=0):
    """Rows of which many do not fit, for one reason or several."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.choice([10.0, 60.0, np.nan, 70.0], n),
            "sex": rng.choice(["F", "M", "x", None], n, p=[0.5, 0.3, 0.1, 0.1]),
            "pay": rng.choice([1.0, 5.0, np.nan], n),
            "person": rng.choice([*map(float, range(60)), np.nan], n),
        }
    )


def cell_of(row):
    """One row at a time."""
    for place, name in enumerate(DOMAIN.names, 1):
        value = row[name]
        if pd.isna(value) or (name == "sex" and value not in ("F", "M")):
            return place
    return 4 if row["age"] < 50 and row["sex"] == "M" else 0


def by_hand(frame, most=None):
    """Cells of the rows; of a person, kept ones first and `most` together."""
    cells = frame.apply(cell_of, axis=1)
    if most is None:
        return np.bincount(cells, minlength=5)
    counted = []
    for _, own in cells.groupby(frame["person"]):
        counted += sorted(own)[:most]
    return np.bincount(counted, minlength=5)


def as_container(frame, kind):
    if kind == "pandas":
        return frame
    if kind == "polars":
        pl = pytest.importorskip("polars")
        return pl.from_pandas(frame, nan_to_null=True).lazy()
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.connect().from_df(frame)
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(frame, npartitions=3)


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb", "dask"])
@pytest.mark.parametrize("most", [None, 1, 3, 50])
def test_cells_are_those_of_brute_force(kind, most):
    if kind == "dask" and most is not None:
        pytest.skip("refused in Dask")
    frame = messy()
    rows = read_rows(as_container(frame, kind))
    bound = None if most is None else Contributions("person", most, noise_source(1))
    coded = Coded(rows, DOMAIN, bound)
    np.testing.assert_array_equal(coded.cells(), by_hand(frame, most))
    # What is kept here is what is counted.
    assert coded.counts().n == coded.cells()[0]
