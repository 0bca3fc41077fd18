"""Expected errors against measured ones: predicted over measured, by kind of question.

``like``
    The prediction comes from one half of a table (``like=``), the measurement from the other half.
``generated``
    The prediction comes from generated tables, that is from the domain and the number of rows
    alone. Constants of generated tables were chosen on the tables of `TUNED`.

Run as ``python -m benchmarks.expected_error --out expected_error.json``; ``--quick`` takes three
tables and one epsilon.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import _data
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric

TUNED = ("small", "nltcs", "electricity")
CHECKED = ("acs", "phoneme", "numerical", "mdsalary")
RELEASES = {"marginals": MarginalSynthesizer}
EPSILONS = (0.1, 0.5)
_ROWS = 40_000


def coded(name: str) -> tuple[Domain, pd.DataFrame]:
    """A table of integer codes."""
    table = _data.hdpview_table(name)
    domain = Domain(
        {
            column: Numeric(0, size - 1, integer=True)
            for column, size in zip(table.columns, table.shape, strict=True)
        }
    )
    rows = pd.DataFrame(np.repeat(table.codes, table.counts, axis=0), columns=list(table.columns))
    return domain, rows


def raw(name: str) -> tuple[Domain, pd.DataFrame]:
    """A table of numbers and categories; its ranges are read from it, as if they were public."""
    rows = _data.frame(name).drop(columns=["day"], errors="ignore")
    domain = {
        column: Numeric(float(values.min()), float(values.max()), bins=32)
        if values.dtype.kind == "f"
        else Categorical(sorted(values.unique().tolist()))
        for column, values in rows.items()
    }
    return Domain(domain), rows


def nltcs() -> tuple[Domain, pd.DataFrame]:
    """Sixteen disabilities."""
    patterns, counts = _data.nltcs()
    names = [f"q{number}" for number in range(patterns.shape[1])]
    rows = pd.DataFrame(np.repeat(patterns, counts, axis=0), columns=names)
    return Domain(dict.fromkeys(names, Categorical([0, 1]))), rows


def acs() -> tuple[Domain, pd.DataFrame]:
    """ACSIncome with all its codes."""
    with np.load(_data.data_path("acs_income_lin.npz"), allow_pickle=True) as data:
        names = [str(name) for name in data["columns"]]
        rows = pd.DataFrame(data["train"], columns=names)
        sizes = [int(size) for size in data["shape"]]
    numbers = ("AGEP", "WKHP", "PINCP")
    domain = {
        name: Numeric(0, size - 1, integer=True)
        if name in numbers
        else Categorical(list(range(size)))
        for name, size in zip(names, sizes, strict=True)
    }
    return Domain(domain), rows


TABLES: dict[str, Callable[[], tuple[Domain, pd.DataFrame]]] = {
    "nltcs": nltcs,
    "electricity": lambda: raw("electricity"),
    "phoneme": lambda: raw("phoneme"),
    "acs": acs,
    **{name: (lambda name=name: coded(name)) for name in ("small", "numerical", "mdsalary")},
}


def ratios(release: str, name: str, how: str, epsilons: tuple[float, ...]) -> pd.DataFrame:
    """Predicted over measured errors, a row for each kind of question."""
    domain, rows = TABLES[name]()
    rows = rows.sample(min(_ROWS, len(rows)), random_state=0)
    half = len(rows) // 2
    estimator = RELEASES[release](domain=domain)
    known = rows[:half] if how == "like" else None
    predicted = estimator.expected_error(half, epsilons, like=known).errors
    measured = estimator.expected_error(half, epsilons, like=rows[half:], random_state=100).errors
    return predicted / measured


def main() -> None:
    """Run the benchmark and print the ratios, and how many are within a factor of 1.5."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--release", choices=tuple(RELEASES))
    options = parser.parse_args()
    epsilons = EPSILONS[:1] if options.quick else EPSILONS
    results: dict[str, Any] = {}
    for how in ("like", "generated"):
        for group in (TUNED, CHECKED):
            found = []
            for name in group[:2] if options.quick else group:
                for release in [options.release] if options.release else RELEASES:
                    each = ratios(release, name, how, epsilons)
                    found.append(each.to_numpy().ravel())
                    results[f"{how}, {name}, {release}"] = each.to_dict()
                    print(f"{how}, {name}, {release}\n{each.round(2).to_string()}", flush=True)
            joined = np.concatenate(found)
            within = np.mean((joined < 1.5) & (joined > 1 / 1.5))
            print(f"{how}, {'/'.join(group)}: {within:.0%} of {len(joined)} within 1.5", flush=True)
    _data.write_json(options.out, "expected_error", results)


if __name__ == "__main__":
    main()
