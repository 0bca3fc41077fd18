"""How CPU seconds and memory of one fit grow with rows, columns and codes of a column.

Every estimator of skdp, `private_quantiles`, and beside them the counts of all pairs of columns by
Polars and DuckDB on one thread. Each fit has a process of its own, so that the peak is its own;
imports, and what a first fit on few rows prepares, count in the memory and not in the seconds.
Tables are generated: columns that share one normal variable, in codes of equal width. An exponent
is the slope of the logarithm of seconds, for rows over the last step: 1 is in proportion.

Run as ``python -m benchmarks.growth --out growth.csv``; ``--only NAME`` chooses, and ``--rows``
takes other numbers of rows.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import math
import multiprocessing
import os
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skdp
from skdp import Domain, Numeric

Fit = Callable[[pd.DataFrame, Domain], Any]
Size = tuple[int, int, int]

ROWS = (10_000, 100_000, 1_000_000)
# Rows, columns and codes of the middle, and what the last two grow to.
MIDDLE, MOST_COLUMNS, MOST_CODES = (100_000, 10, 32), 40, 1_000
# Those that are for few columns get so many.
NARROW = {
    "DataCube": 4,
    "GridSynthesizer": 3,
    "KDTreeSynthesizer": 2,
    "PrivTreeSynthesizer": 3,
    "RangeTreeHistogram": 1,
    "private_quantiles": 1,
}
# A fit is run again, up to three times, within so many seconds; the least counts.
AGAIN = 2.0


def _estimator(name: str) -> Fit:
    kind = getattr(skdp, name)

    def fit(rows: pd.DataFrame, domain: Domain) -> Any:
        top = domain.shape[0] - 1
        first = rows.iloc[:, 0]
        taken = inspect.signature(kind).parameters
        about = {
            "domain": domain if len(domain) > 1 else domain[domain.names[0]],
            "classes": [0, 1],
            "epsilon": 1.0,
            "target_range": (0, top),
            "estimator": {
                "SampleAggregate": LinearRegression(),
                "PrivateClassifier": DecisionTreeClassifier(max_depth=6),
                "PrivateRegressor": DecisionTreeRegressor(max_depth=6),
            }.get(name),
            "output_range": (np.full(len(domain), -1), np.full(len(domain), 1)),
        }
        if "domain" not in taken:
            about["bounds"] = (0, top)
        y = (first > top // 2).astype(int) if "classes" in taken else first
        made = kind(**{key: value for key, value in about.items() if key in taken})
        labelled = {"classes", "target_range", "estimator"} & {*taken}
        return made.fit(rows, y) if labelled else made.fit(rows)

    return fit


def _quantiles(rows: pd.DataFrame, domain: Domain) -> Any:
    bounds = (0, domain.shape[0] - 1)
    return skdp.private_quantiles(rows.iloc[:, 0], [0.25, 0.5, 0.75], bounds=bounds)


def _polars(rows: pd.DataFrame, domain: Domain) -> Any:
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as pl

    frame = pl.from_pandas(rows).lazy()
    pairs = itertools.combinations(rows.columns, 2)
    return pl.collect_all([frame.group_by(pair).len() for pair in pairs])


def _duckdb(rows: pd.DataFrame, domain: Domain) -> Any:
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", rows)
        pairs = itertools.combinations(rows.columns, 2)
        questions = [f"select {a}, {b}, count(*) from rows group by all" for a, b in pairs]
        return [connection.execute(question).fetchnumpy() for question in questions]


FITS: dict[str, Fit] = {
    **{
        name: _estimator(name)
        for name in skdp.__all__
        if isinstance(getattr(skdp, name), type) and issubclass(getattr(skdp, name), BaseEstimator)
    },
    "private_quantiles": _quantiles,
    "Polars, all pairs": _polars,
    "DuckDB, all pairs": _duckdb,
}


def table(n: int, d: int, codes: int) -> pd.DataFrame:
    """Generated rows."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=n)
    columns = {}
    for j in range(d):
        value = rng.normal(size=n) + shared * (j % 3)
        columns[f"c{j}"] = np.clip((value / 10 + 0.5) * codes, 0, codes - 1).astype(np.int64)
    return pd.DataFrame(columns)


def one(name: str, size: Size) -> tuple[float, float]:
    """Fit, and return the least CPU seconds and the peak in megabytes."""
    warnings.simplefilter("ignore")
    n, d, codes = size
    rows = table(n, min(d, NARROW.get(name, d)), codes)
    domain = Domain({column: Numeric(0, codes - 1, integer=True) for column in rows})
    # Imports are not counted.
    FITS[name](rows[:100], domain)
    runs: list[float] = []
    while len(runs) < 3 and sum(runs) < AGAIN:
        begin = time.process_time()
        FITS[name](rows, domain)
        runs.append(time.process_time() - begin)
    return min(runs), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, size: Size, limit: float) -> tuple[float, float]:
    """Seconds and megabytes of a process of its own; infinite beyond the limit of its time."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            return pool.apply_async(one, (name, size)).get(limit)
        except (multiprocessing.TimeoutError, ValueError) as error:
            print(f"{name}, {size}: {error!r}"[:300], flush=True)
            return math.inf, math.inf


def _written(value: float, digits: int = 2) -> str:
    """A number; nothing, where a fit was refused or not done in time."""
    return f"{value:.{digits}f}" if math.isfinite(value) else ""


def line(name: str, rows: list[int], limit: float) -> dict[str, str]:
    """Seconds, exponents and the peak of one fit."""
    n, d, codes = MIDDLE
    found = {each: measure(name, (each, d, codes), limit) for each in rows}
    entry = {"fit": name}
    entry |= {f"{each:,} rows": _written(seconds) for each, (seconds, _) in found.items()}
    (before, _), (last, peak) = found[rows[-2]], found[rows[-1]]
    entry["exponent"] = _written(math.log(last / before) / math.log(rows[-1] / rows[-2]))
    entry["peak MB"] = _written(peak, 0)
    middle = (found.get(n) or measure(name, MIDDLE, limit))[0]
    wider = {
        "columns": ((n, MOST_COLUMNS, codes), MOST_COLUMNS, d),
        "codes": ((n, d, MOST_CODES), MOST_CODES, codes),
    }
    for grows, (size, most, least) in wider.items():
        narrow = grows == "columns" and name in NARROW
        seconds = math.inf if narrow else measure(name, size, limit)[0]
        slope = math.log(seconds / middle) / math.log(most / least)
        entry[f"{most:,} {grows}"] = _written(seconds)
        entry[f"exponent of {grows}"] = _written(slope)
    return entry


def main() -> None:
    """Print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(FITS), default=list(FITS))
    parser.add_argument("--rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of one process")
    parser.add_argument("--out", type=Path, help="CSV file to write")
    arguments = parser.parse_args()
    lines = []
    for name in arguments.only:
        lines.append(line(name, arguments.rows, arguments.limit))
        print(*lines[-1].values(), sep="; ", flush=True)
        if arguments.out is not None:
            pd.DataFrame(lines).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
