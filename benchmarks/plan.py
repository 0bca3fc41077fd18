"""Numbers of the plan of views, leave one table out: does another value err less elsewhere too?

Each number of `skdp.kernels.views.tuning.Tuning` is made smaller and larger, all others as they
are. The error of a value on a table is the geometric mean, over epsilons and kinds of questions of
`benchmarks.questions`, of its root mean square error as a ratio to that of the present value.
``ratio`` is its mean over tables with its standard error. ``left out`` is the mean ratio on each
table of the value that errs least on all others: below 1, and by more than ``s.e.``, the present
value should change; at 1 it cannot be told from it.

Run as ``python -m benchmarks.plan``. ``--fields`` names some of the numbers.
"""

from __future__ import annotations

import argparse
import functools
import json
import warnings
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks._question_tables import TABLES
from benchmarks.questions import measured, of_each_kind
from skdp.kernels.views.ladders import column_plan
from skdp.kernels.views.tuning import TUNING, Tuning

NAMES = ("skewed", "delays", "twelve", "nist", "adult-default", "phoneme", "electricity")
EPSILONS = (0.1, 1.0, 8.0)
KINDS = ("tails", "thresholds", "declared", "means", "triples")
FACTORS = (Fraction(2, 3), Fraction(3, 2))
MOST = 24  # questions of a kind
# Errors are at least this part of the largest of their kind: what is exact says nothing.
LEAST = 1e-3

Floats = NDArray[np.float64]


def errors(tuning: Tuning, name: str, fits: int) -> Floats:
    """Root mean square error for each epsilon and kind of question; NaN where there is none."""
    # All modules of the kernel have the one object.
    vars(TUNING).update(vars(tuning))
    column_plan.cache_clear()
    table, found = TABLES[name](), []
    chosen = of_each_kind(table, KINDS, MOST)
    for epsilon in EPSILONS:
        of = {row["kind"]: row["rms"] for row in measured(table, epsilon, chosen, range(fits))}
        found.append([of.get(kind, np.nan) for kind in KINDS])
    return np.array(found)


def ratio_of(new: Floats, old: Floats) -> float:
    """Geometric mean of the ratios of errors."""
    least = LEAST * np.nanmax(old, axis=0, initial=0.0)
    logs = np.log(np.maximum(new, least)) - np.log(np.maximum(old, least))
    return float(np.exp(np.nanmean(logs[np.isfinite(logs)])))


def left_out(ratios: pd.DataFrame) -> pd.Series:
    """Ratio on each table of the value that is best on all others; tables are rows."""
    logs = np.log(ratios)
    return pd.Series(
        {name: ratios.loc[name, logs.drop(index=name).mean().idxmin()] for name in ratios.index}
    )


def main() -> None:
    """Print a line for each number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fields", nargs="+", default=[each.name for each in fields(Tuning)])
    parser.add_argument("--tables", nargs="+", default=list(NAMES), choices=sorted(TABLES))
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--out", type=Path, help="JSON file for the ratios")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    now = Tuning()
    of_now = functools.cache(lambda name: errors(now, name, options.fits))
    kept: dict[str, Any] = {}
    print(
        f"{'number':15}{'value':>8}{'tried':>8}{'ratio':>8}{'s.e.':>7}{'left out':>10}{'s.e.':>7}"
    )
    for field in options.fields:
        value = getattr(now, field)
        tried = [value, *(type(value)(value * factor) for factor in FACTORS)]
        ratios = pd.DataFrame(1.0, index=options.tables, columns=list(map(float, tried)))
        for other in tried[1:]:
            for name in options.tables:
                new = errors(replace(now, **{field: other}), name, options.fits)
                ratios.loc[name, float(other)] = ratio_of(new, of_now(name))
        out = left_out(ratios)
        for other in tried[1:]:
            column = ratios[float(other)]
            print(
                f"{field:15}{float(value):8.3g}{float(other):8.3g}{column.mean():8.3f}"
                f"{column.sem():7.3f}{out.mean():10.3f}{out.sem():7.3f}",
                flush=True,
            )
        kept[field] = ratios.to_dict()
        if options.out:
            options.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
