"""Tables of `benchmarks.questions`: those of the fidelity benchmark, and four that are generated.

The generated ones have skewed numbers that depend most in their tails: normal variables with common
factors, divided by one heavy-tailed variable a row, then ranked. Formulas and seeds are fixed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _data, _unseen_tables
from benchmarks import _fidelity_tables as tables
from skdp import Categorical, Domain, Numeric

Floats = NDArray[np.float64]


def edges_of(table: tables.Table, column: str) -> Floats:
    """Edges of the bins of a number.

    Of a column that is declared without bins those of 32 equal ones, whatever the default of the
    tree that is measured, so that all trees are asked the same questions.
    """
    attribute: Any = table.domain[column]
    if table.name in _unseen_tables.TABLES or attribute.auto:
        return np.linspace(attribute.lower, attribute.upper, 33)
    return np.asarray(attribute.edges, dtype=np.float64)


def nist() -> tables.Table:
    """NIST's excerpt: seven numbers, some with missing values, and six categories."""
    path = _data.data_path("nist", "national2019.csv.gz")
    gap: dict[str, Any] = {"nullable": True}
    attributes: dict[str, Any] = {
        "AGEP": Numeric(0, 99, bins=20, integer=True),
        "EDU": Numeric(1, 12, integer=True, **gap),
        "PINCP": Numeric(-20_000, 1_500_000, scale="sqrt", bins=64, special=[0], **gap),
        "POVPIP": Numeric(0, 500, integer=True, bins=50, special=[501], **gap),
        "NPF": Numeric(2, 12, integer=True, **gap),
        "PWGTP": Numeric(1, 3_000, integer=True, scale="log", bins=32),
        "WGTP": Numeric(0, 3_000, integer=True, scale="log", bins=32),
        "SEX": Categorical([1, 2]),
        "RAC1P": Categorical(range(1, 10)),
        "MSP": Categorical(range(1, 7), **gap),
        "HOUSING_TYPE": Categorical([1, 2, 3]),
        "OWN_RENT": Categorical([0, 1, 2]),
        "DVET": Categorical(range(1, 7), **gap),
    }
    rows = pd.read_csv(path, na_values=["N"], keep_default_na=False)[list(attributes)]
    whole = ["EDU", "POVPIP", "NPF", "MSP", "DVET"]
    return tables.Table("nist", rows.astype(dict.fromkeys(whole, "Int64")), Domain(attributes))


def adult_default() -> tables.Table:
    """Adult with numbers declared by their ranges only, and six categories."""
    rows = _data.frame("adult")
    ranges = {
        "age": (17, 90), "fnlwgt": (0, 1_500_000), "capital-gain": (0, 99_999),
        "capital-loss": (0, 4_500), "hours-per-week": (1, 99),
    }  # fmt: skip
    numbers: dict[str, Any] = {name: Numeric(*ends) for name, ends in ranges.items()}
    texts = ["workclass", "marital-status", "relationship", "race", "sex", "income"]
    categories = {name: Categorical(sorted(rows[name].unique())) for name in texts}
    rows = rows.astype(dict.fromkeys(numbers, "float64"))[[*numbers, *texts]]
    return tables.Table("adult-default", rows, Domain({**numbers, **categories}))


def ranks(rng: np.random.Generator, loadings: Sequence[Sequence[float]], n_rows: int) -> Floats:
    """Ranks from 0 to 1, (n_rows, d), of variables that share factors and a heavy-tailed scale."""
    share = np.array(loadings)  # (d, factors)
    own = np.sqrt(1 - (share**2).sum(axis=1))
    drawn = rng.normal(size=(n_rows, share.shape[1])) @ share.T
    drawn += own * rng.normal(size=drawn.shape)
    drawn /= np.sqrt(rng.chisquare(3, n_rows) / 3)[:, None]
    return (drawn.argsort(axis=0).argsort(axis=0) + 0.5) / n_rows


def exponential(rank: Floats, mean: float, most: float) -> Floats:
    """Exponential numbers, cut at the largest."""
    return np.minimum(-mean * np.log1p(-rank), most)


def heavy(rank: Floats, median: float, power: float, most: float) -> Floats:
    """Log-logistic numbers, cut at the largest; a larger power has a heavier tail."""
    return np.minimum(median * (rank / (1 - rank)) ** power, most)


def groups(rng: np.random.Generator, rank: Floats, shares: Sequence[float]) -> NDArray[np.int64]:
    """Codes of groups with about these shares, larger ones where the rank is high."""
    mixed = rank + 0.6 * rng.random(len(rank))
    return np.searchsorted(np.quantile(mixed, np.cumsum(shares)[:-1]), mixed)


def named(codes: NDArray[np.int64], letters: str) -> NDArray[Any]:
    """Codes as letters."""
    return np.array(list(letters))[codes]


def skewed() -> tables.Table:
    """30,000 rows: five skewed numbers of 40 to 55 bins, and a text of five."""
    rng = np.random.default_rng(1)
    rank = ranks(rng, [[0.92], [0.85], [0.7], [-0.75], [0.55]], 30_000)
    columns = {
        "spend": exponential(rank[:, 0], 40, 400),
        "debt": heavy(rank[:, 1], 25, 0.6, 800),
        "age": np.floor(18 + 70 * rank[:, 2] ** 1.5),
        "score": 100 * rank[:, 3] ** 0.4,
        "visits": np.floor(exponential(rank[:, 4], 9, 79)),
        "region": named(groups(rng, rank[:, 0], [0.4, 0.25, 0.2, 0.1, 0.05]), "abcde"),
    }
    attributes = {
        "spend": Numeric(0, 400, bins=50),
        "debt": Numeric(0, 800, bins=55),
        "age": Numeric(18, 89, integer=True, bins=45),
        "score": Numeric(0, 100, bins=48),
        "visits": Numeric(0, 79, integer=True, bins=40),
        "region": Categorical(list("abcde")),
    }
    return _table("skewed", columns, attributes)


def large() -> tables.Table:
    """100,000 rows: five skewed numbers of 48 to 70 bins, and two texts."""
    rng = np.random.default_rng(2)
    rank = ranks(rng, [[0.9, 0], [0.8, 0.3], [0.4, 0.8], [0, 0.9], [-0.6, 0.5]], 100_000)
    columns = {
        "income": heavy(rank[:, 0], 30_000, 0.45, 500_000),
        "rent": heavy(rank[:, 1], 900, 0.3, 6_000),
        "claims": exponential(rank[:, 2], 2_500, 30_000),
        "days": np.floor(exponential(rank[:, 3], 30, 364)),
        "risk": rank[:, 4] ** 2.5,
        "kind": named(groups(rng, rank[:, 3], [0.5, 0.3, 0.2]), "xyz"),
        "area": named(
            groups(rng, 1 - rank[:, 0], [0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05]), "abcdefg"
        ),
    }
    attributes = {
        "income": Numeric(0, 500_000, bins=70),
        "rent": Numeric(0, 6_000, bins=64),
        "claims": Numeric(0, 30_000, bins=48),
        "days": Numeric(0, 364, integer=True, bins=52),
        "risk": Numeric(0, 1, bins=60),
        "kind": Categorical(list("xyz")),
        "area": Categorical(list("abcdefg")),
    }
    return _table("large", columns, attributes)


def delays() -> tables.Table:
    """20,000 journeys: two delays, waiting times in a range that is far too wide, a distance."""
    rng = np.random.default_rng(3)
    rank = ranks(rng, [[0.95], [0.93], [0.8], [0.3]], 20_000)
    columns = {
        "departure": np.floor(heavy(rank[:, 0], 12, 0.8, 1_279) - 20),
        "arrival": np.floor(heavy(rank[:, 1], 25, 0.65, 1_279) - 20),
        "waiting": exponential(rank[:, 2], 3, 1_000),
        "distance": heavy(rank[:, 3], 600, 0.4, 5_000),
        "carrier": named(groups(rng, rank[:, 0], [0.3, 0.25, 0.2, 0.15, 0.07, 0.03]), "abcdef"),
        "weekday": rng.integers(0, 7, 20_000),
    }
    attributes = {
        "departure": Numeric(-20, 1_259, integer=True, bins=128),
        "arrival": Numeric(-20, 1_259, integer=True, bins=64),
        "waiting": Numeric(0, 1_000),
        "distance": Numeric(0, 5_000, bins=64),
        "carrier": Categorical(list("abcdef")),
        "weekday": Categorical(range(7)),
    }
    return _table("delays", columns, attributes)


def twelve() -> tables.Table:
    """40,000 rows of eight numbers in two groups, and four categories."""
    rng = np.random.default_rng(4)
    loadings: list[list[float]] = [
        [0.9, 0], [0.8, 0.2], [-0.7, 0], [0.6, 0.5], [0, 0.9], [0.2, 0.8], [0, 0.7], [0, 0],
    ]  # fmt: skip
    rank = ranks(rng, loadings, 40_000)
    columns = {
        "x0": exponential(rank[:, 0], 10, 100),
        "x1": heavy(rank[:, 1], 5, 0.5, 200),
        "x2": 50 * rank[:, 2] ** 2,
        "x3": np.floor(exponential(rank[:, 3], 6, 59)),
        "x4": heavy(rank[:, 4], 100, 0.35, 2_000),
        "x5": exponential(rank[:, 5], 1, 12),
        "x6": np.floor(100 * rank[:, 6] ** 0.5),
        "x7": exponential(rank[:, 7], 20, 250),
        "c0": groups(rng, rank[:, 0], [0.5, 0.3, 0.2]),
        "c1": groups(rng, rank[:, 4], [0.4, 0.3, 0.15, 0.1, 0.05]),
        "c2": rng.choice(8, 40_000, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05]),
        "c3": groups(rng, rank[:, 6], [0.7, 0.3]),
    }
    attributes = {
        "x0": Numeric(0, 100, bins=40),
        "x1": Numeric(0, 200, bins=64),
        "x2": Numeric(0, 50, bins=32),
        "x3": Numeric(0, 59, integer=True, bins=30),
        "x4": Numeric(0, 2_000, bins=48),
        "x5": Numeric(0, 12, bins=36),
        "x6": Numeric(0, 99, integer=True, bins=50),
        "x7": Numeric(0, 250, bins=40),
        "c0": Categorical(range(3)),
        "c1": Categorical(range(5)),
        "c2": Categorical(range(8)),
        "c3": Categorical(range(2)),
    }
    return _table("twelve", columns, attributes)


def _table(name: str, columns: dict[str, Any], attributes: dict[str, Any]) -> tables.Table:
    return tables.Table(name, pd.DataFrame(columns), Domain(attributes))


TABLES: dict[str, Callable[[], tables.Table]] = {
    "skewed": skewed,
    "large": large,
    "delays": delays,
    "twelve": twelve,
    "nist": nist,
    "adult-default": adult_default,
    **_unseen_tables.TABLES,
    **{
        name: functools.partial(tables.load, name)
        for name in tables.TABLES
        if name not in ("nist", "nltcs", "survey")
    },
}
