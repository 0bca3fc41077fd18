"""Tables of the benchmarks, each with its declared domain."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _data
from skdp import Categorical, Domain, Numeric

_NIST_COLUMNS = (
    "AGEP", "DEYE", "DVET", "EDU", "HOUSING_TYPE",
    "MSP", "OWN_RENT", "PINCP_DECILE", "RAC1P", "SEX",
)  # fmt: skip


class Table(NamedTuple):
    """Rows with a declared domain, and perhaps a label to predict."""

    name: str
    rows: pd.DataFrame
    domain: Domain
    target: str | None = None

    @property
    def codes(self) -> NDArray[np.int32]:
        """Codes of all rows, (n, d)."""
        return self.domain.encode(self.rows)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of all rows."""
        return self.rows[self.target].to_numpy()

    @property
    def predictors(self) -> pd.DataFrame:
        """The rows without the label."""
        return self.rows.drop(columns=self.target)


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


def nltcs() -> Table:
    """Sixteen limitations of daily life; the last one is the label."""
    patterns, counts = _data.nltcs()
    names = [f"item {number + 1}" for number in range(patterns.shape[1])]
    rows = pd.DataFrame(np.repeat(patterns, counts, axis=0), columns=names)
    domain = Domain({name: Categorical([0, 1]) for name in names})
    return Table("nltcs", rows, domain, names[-1])


def _numbers_and_label(name: str, kinds: Callable[[str], Numeric]) -> Table:
    """Numbers, and a label in the last column."""
    rows = _data.frame(name)
    *numbers, label = rows.columns
    attributes: dict[str, Any] = {each: kinds(each) for each in numbers}
    attributes[label] = Categorical(list(np.unique(rows[label])))
    return Table(name, rows, Domain(attributes), label)


def phoneme() -> Table:
    """Five features of a sound; is it nasal or oral?"""
    return _numbers_and_label("phoneme", lambda name: Numeric(-4, 4, bins=64))


def electricity() -> Table:
    """Prices and demand, scaled to 0..1; does the price rise?"""
    return _numbers_and_label(
        "electricity",
        lambda name: Numeric(1, 7, integer=True) if name == "day" else Numeric(0, 1, bins=256),
    )


@functools.cache
def range_table(name: str) -> Table:
    """A table of `_data.hdpview_table`, one row per record."""
    table = _data.hdpview_table(name)
    sizes = zip(table.columns, table.shape, strict=True)
    domain = Domain({column: Numeric(0, size - 1, integer=True) for column, size in sizes})
    rows = pd.DataFrame(np.repeat(table.codes, table.counts, axis=0), columns=list(table.columns))
    return Table(f"hdpview/{name}", rows, domain)


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


TABLES: dict[str, Callable[[], Table]] = {
    "nist": nist,
    "adult": adult,
    "acs": acs,
    "electricity": electricity,
    "phoneme": phoneme,
    "nltcs": nltcs,
    "survey": survey,
    **{f"hdpview/{name}": functools.partial(range_table, name) for name in _data.HDPVIEW_TABLES},
}


@functools.cache
def load(name: str) -> Table:
    """A table by name, one of `TABLES`."""
    return TABLES[name]()


def subsample(table: Table, n_rows: int, seed: int) -> Table:
    """Some of the rows of a table, drawn without replacement."""
    chosen = np.random.default_rng(seed).permutation(len(table.rows))[:n_rows]
    return table._replace(rows=table.rows.iloc[np.sort(chosen)].reset_index(drop=True))
