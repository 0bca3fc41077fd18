"""Tables of the fidelity benchmark, each with its declared domain.

A table whose file is missing is replaced by a small generated one, and the reason is printed; the
targets do not apply to it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _data
from benchmarks.privpfc import Problem, electricity, nltcs, phoneme
from benchmarks.views import problem, random_ranges, wide_rows
from skdp import Categorical, Domain, Numeric
from skdp.tables import CountTable

__all__ = ["RANGES", "TABLES", "Table", "load", "stand_in", "subsample"]

_NIST_COLUMNS = (
    "AGEP", "DEYE", "DVET", "EDU", "HOUSING_TYPE",
    "MSP", "OWN_RENT", "PINCP_DECILE", "RAC1P", "SEX",
)  # fmt: skip
_STAND_IN_ROWS = 1_500


class Table(NamedTuple):
    """Rows with a declared domain, and the range queries that belong to them."""

    name: str
    rows: pd.DataFrame
    domain: Domain
    target: str | None = None
    ranges: _data.RangeTable | None = None
    generated: bool = False

    @property
    def codes(self) -> NDArray[np.int32]:
        """Codes of all rows, (n, d)."""
        return self.domain.encode(self.rows)

    def part(self, rows: Any) -> Table:
        """The table with some of its rows, given by position; its ranges are those of these."""
        some = self._replace(rows=self.rows.iloc[rows].reset_index(drop=True))
        if self.ranges is None:
            return some
        exact = CountTable.from_codes(some.codes, self.domain.shape)
        return some._replace(ranges=self.ranges._replace(codes=exact.codes, counts=exact.counts))


def nist() -> Table:
    """NIST's excerpt, ten columns: ages in 20 bins 0-4 to 95-99, "N" a category."""
    path = _data.data_path("nist", "national2019.csv.gz")
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)[list(_NIST_COLUMNS)]
    rows["AGEP"] = rows["AGEP"].astype("int64")
    attributes: dict[str, Any] = {
        # The code book lists the categories; every one of them occurs.
        name: Categorical(sorted(rows[name].unique(), key=_number_first))
        for name in _NIST_COLUMNS
        if name != "AGEP"
    }
    domain = Domain({"AGEP": Numeric(0, 99, bins=20, integer=True), **attributes})
    return Table("nist", rows, domain, target="OWN_RENT")


def _number_first(text: str) -> tuple[bool, int]:
    return (not text.isdigit(), int(text) if text.isdigit() else 0)


def adult() -> Table:
    """Adult, 14 columns without fnlwgt: "?" a category, years as they are, capital in 50 bins."""
    rows = _data.frame("adult").drop(columns="fnlwgt")
    attributes: dict[str, Any] = {
        "age": Numeric(17, 90, integer=True),
        "education-num": Numeric(1, 16, integer=True),
        "capital-gain": Numeric(0, 99_999, bins=50),
        "capital-loss": Numeric(0, 4_356, bins=50),
        "hours-per-week": Numeric(1, 99, integer=True),
    }
    rows = rows.astype(dict.fromkeys(attributes, "int64"))
    for name in rows.columns:
        if name not in attributes:
            # The documentation of the data lists the categories.
            attributes[name] = Categorical(sorted(rows[name].unique()))
    domain = Domain({name: attributes[name] for name in rows.columns})
    return Table("adult", rows, domain, target="income")


def acs() -> Table:
    """ACSIncome, 194,665 rows of 9 coded columns."""
    with np.load(_data.data_path("acs_income_lin.npz")) as data:
        names = [str(name) for name in data["columns"]]
        rows = pd.DataFrame(data["train"].astype(np.int64), columns=names)
        sizes = data["shape"].tolist()
    kinds = {
        name: Numeric(0, size - 1, integer=True)
        if name in ("AGEP", "SCHL", "WKHP", "PINCP")
        else Categorical(range(size))
        for name, size in zip(names, sizes, strict=True)
    }
    return Table("acs", rows, Domain(kinds), target="PINCP")


def _labelled(make: Callable[[], Problem]) -> Table:
    found = make()
    return Table(found.name, found.rows, found.domain, target=found.target)


def _with_ranges(name: str) -> Table:
    table, domain, rows = problem(name)
    return Table(f"hdpview/{name}", rows, domain, ranges=table)


def _points(name: str) -> Table:
    points = _data.kmeans_set(name)["X"]
    rows = pd.DataFrame(points, columns=[f"x{axis}" for axis in range(points.shape[1])])
    return Table(
        f"kmeans/{name}", rows, Domain({each: Numeric(-1, 1, bins=64) for each in rows.columns})
    )


def survey() -> Table:
    """Six generated answers of yes or no and the age of 254,654 persons, as in a health survey."""
    rng = np.random.default_rng(0)
    n = 254_654
    age = np.clip(rng.normal(52, 19, n).round(), 18, 99).astype(np.int64)
    health = rng.normal(0, 1, n) + (age - 52) / 30
    answers = {}
    for number, cut in enumerate((0.2, 0.8, 1.3, 1.9, -0.4, 2.4)):
        own = health + rng.normal(0, 0.6 + 0.2 * number, n)
        # Two of the answers depend on others beside health: together, not one by one.
        if number == 4:
            own = own + (answers["yes0"] ^ answers["yes2"])
        answers[f"yes{number}"] = (own > cut).astype(np.int64)
    rows = pd.DataFrame({"age": age, **answers})
    kinds = dict.fromkeys(answers, Categorical([0, 1]))
    return Table("survey", rows, Domain({"age": Numeric(18, 99, integer=True), **kinds}))


def wide() -> Table:
    """Sixty generated columns and a million rows."""
    rows = wide_rows()
    return Table("wide", rows, Domain({each: Numeric(0, 29, integer=True) for each in rows}))


RANGES = tuple(f"hdpview/{name}" for name in _data.HDPVIEW_TABLES)
_KMEANS = (
    "adult_numeric", "checkin", "gauss10d_k3", "gauss10d_k8", "gauss2d_k15", "gauss6d_k8",
    "s1_privkmeans",
)  # fmt: skip
TABLES: dict[str, Callable[[], Table]] = {
    "nist": nist,
    "adult": adult,
    "acs": acs,
    "electricity": functools.partial(_labelled, electricity),
    "phoneme": functools.partial(_labelled, phoneme),
    "nltcs": functools.partial(_labelled, nltcs),
    **{f"hdpview/{name}": functools.partial(_with_ranges, name) for name in _data.HDPVIEW_TABLES},
    **{f"kmeans/{name}": functools.partial(_points, name) for name in _KMEANS},
    "survey": survey,
    "wide": wide,
}


def stand_in(name: str) -> Table:
    """A small generated table under the name of another one: four columns that depend on a class.

    Parameters
    ----------
    name : str
    """
    rng = np.random.default_rng(0)
    n = _STAND_IN_ROWS
    label = rng.integers(0, 2, n)
    codes = np.column_stack(
        [
            np.clip(rng.normal(7 + 5 * label, 3, n), 0, 19).astype(int),
            (label + (rng.random(n) < 0.3)) % 2 + 2 * rng.integers(0, 2, n),
            np.minimum(rng.poisson(1 + label, n), 5),
            label,
        ]
    )
    columns = ("size", "colour", "level", "class")
    shape = (20, 4, 6, 2)
    # Tables with ranges have a number in every column, as the real ones.
    plain = name in RANGES
    attributes: dict[str, Any] = {
        each: Numeric(0, size - 1, integer=True)
        if plain or each == "size"
        else Categorical(range(size))
        for each, size in zip(columns, shape, strict=True)
    }
    rows = pd.DataFrame(codes, columns=list(columns))
    distinct, counts = np.unique(codes, axis=0, return_counts=True)
    ranges = _data.RangeTable(
        distinct.astype(np.int32), counts.astype(np.int64), shape, columns, np.empty((0, 6), int)
    )
    ranges = ranges._replace(queries=random_ranges(ranges, 2, 200, seed=0))
    return Table(name, rows, Domain(attributes), "class", ranges if plain else None, True)


@functools.cache
def load(name: str, small: bool = False) -> Table:
    """A table by name; a small generated one if ``small`` or if its file is missing.

    Parameters
    ----------
    name : str
        One of `TABLES`.
    small : bool, default=False
    """
    if name not in TABLES:
        raise SystemExit(f"There is no table {name!r}. Choose among {', '.join(TABLES)}.")
    if small:
        return stand_in(name)
    try:
        return TABLES[name]()
    except SystemExit as missing:
        print(f"{name}: generated stand-in. {missing}", file=sys.stderr, flush=True)
        return stand_in(name)


def subsample(table: Table, n_rows: int, seed: int) -> Table:
    """Some of the rows of a table, drawn without replacement."""
    chosen = np.random.default_rng(seed).permutation(len(table.rows))[:n_rows]
    return table.part(np.sort(chosen))
