"""Real tables: impossible rows, point masses, skewed money, and a trained observer.

For each table and epsilon the default synthesizer is fitted with

- ``declared``: the attributes and the public structure that the table's documentation gives;
- ``plain``: every number in 32 bins of equal width, no special values, no structure, and columns
  that follow from others measured like the rest, as before these could be declared;
- ``independent``: the rows of ``declared`` with every column shuffled by itself.

Loans are generated (50 columns; tune), Adult has 15 columns (tune), NIST's excerpt of the American
Community Survey 24 (check). Reported are the share of impossible rows, the largest error of the
share of a point mass, the median and largest relative errors of the means and of the quartiles
of skewed columns, the mean difference of rank correlations, the mean total variation distance of
all pairs of columns, and the AUC of boosted trees that tell records from synthetic rows.

Run as ``python -m benchmarks.real_tables --out real_tables.json``; ``--tables`` and ``--epsilon``
choose, ``--seeds`` says how many fits (default 10), ``--quick`` makes one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import _data, loans, scores
from skdp import (
    Categorical,
    Date,
    Domain,
    Identifier,
    MarginalSynthesizer,
    Numeric,
    derived,
    forbid,
)
from skdp.exceptions import InsecureSeedWarning

EPSILONS = (1.0, 3.0)


class Table(NamedTuple):
    """A table, its declaration, and what is checked."""

    rows: pd.DataFrame
    domain: Domain
    impossible: Callable[[pd.DataFrame], pd.Series]
    point_masses: dict[str, Any]  # column -> value
    skewed: tuple[str, ...]
    sums: Mapping[str, list[str]] = MappingProxyType({})  # column -> its parts


def loan_table() -> Table:
    """Generated loans, declared by their code book."""
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder, "codebook.csv")
        loans.code_book().to_csv(book, index=False)
        domain = Domain.from_schema(book, structure=loans.structure())
    masses = dict.fromkeys(loans.ZERO_INFLATED, 0.0)
    sums = {"total_paid": ["principal_paid", "interest_paid"]}
    return Table(loans.loans(), domain, loans.violations, masses, tuple(loans.AMOUNTS), sums)


def adult_table() -> Table:
    """Adult, all 15 columns; the number of years of education is that of the degree."""
    rows = _data.frame("adult")
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    rows = rows.rename(columns=lambda name: name.replace("_", "-"))
    rows = rows.astype(dict.fromkeys(numbers, "int64"))
    degrees = [
        "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
        "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school",
        "Doctorate",
    ]  # fmt: skip
    attributes: dict[str, Any] = {}
    for name in rows.columns:
        if name not in numbers:
            # The lists of categories are printed in the documentation of the data.
            attributes[name] = Categorical(sorted(rows[name].unique()))
    attributes |= {
        "age": Numeric(17, 90, integer=True),
        "fnlwgt": Numeric(10_000, 1_500_000, scale="log", integer=True, bins=32),
        "education": Categorical(degrees, ordered=True),
        "education-num": Categorical(range(1, 17)),
        "capital-gain": Numeric(0, 99_999, scale="log", integer=True, bins=32, special=[0, 99_999]),
        "capital-loss": Numeric(0, 4_500, integer=True, bins=32, special=[0]),
        "hours-per-week": Numeric(1, 99, integer=True),
    }
    years = {degree: place + 1 for place, degree in enumerate(degrees)}
    domain = Domain(
        {name: attributes[name] for name in rows.columns},
        structure=[derived("education-num", from_="education", map=years),
                   forbid({"relationship": "Husband", "sex": "Female"}),
                   forbid({"relationship": "Wife", "sex": "Male"}),
                   forbid("age < 18 and education in ['Masters', 'Doctorate']")],
    )  # fmt: skip

    def impossible(table: pd.DataFrame) -> pd.Series:
        return (
            (table["education"].map(years) != table["education-num"])
            | ((table["relationship"] == "Husband") & (table["sex"] == "Female"))
            | ((table["relationship"] == "Wife") & (table["sex"] == "Male"))
            | ((table["age"] < 18) & table["education"].isin(["Masters", "Doctorate"]))
        )

    return Table(rows, domain, impossible, {"capital-gain": 0, "capital-loss": 0}, ("fnlwgt",))


def nist_table() -> Table:
    """NIST's excerpt, declared by its schema; what is impossible is said in its code book."""
    path = _data.data_path("nist", "national2019.csv.gz")
    schema = _data.data_path("nist", "national2019.schema.json")
    rows = pd.read_csv(path, na_values=["N"], keep_default_na=False)
    texts = ["MSP", "NOC", "NPF", "INDP", "INDP_CAT", "EDU", "PINCP_DECILE", "DVET", "DREM", "DPHY"]
    rows = rows.astype(dict.fromkeys(texts, "Int64"))
    said = json.loads(schema.read_text())["schema"]
    values = {name: said[name].get("values", ()) for name in rows.columns}
    attributes: dict[str, Any] = {name: Categorical(v) for name, v in values.items() if v}
    for name in texts:
        # The schema writes the codes as text; the rows are read as integers.
        codes = [int(value) for value in values[name] if value != "N"]
        attributes[name] = Categorical(codes, nullable=True)
    # Published lists, read off here: the group of each industry, the density of each area.
    listed = rows[["INDP", "INDP_CAT"]].dropna().drop_duplicates()
    groups = {int(code): int(group) for code, group in listed.itertuples(index=False)}
    density = dict(rows[["PUMA", "DENSITY"]].drop_duplicates().itertuples(index=False))
    codes = [code for code in attributes["INDP"].categories if code in groups]
    gap = {"nullable": True}
    attributes |= {
        "AGEP": Numeric(0, 99, integer=True),
        "PINCP": Numeric(-20_000, 1_500_000, scale="sqrt", step=100, bins=64, special=[0], **gap),
        "POVPIP": Numeric(0, 500, integer=True, bins=50, special=[0, 501], **gap),
        "DENSITY": Categorical(sorted(set(density.values()))),
        "PWGTP": Numeric(1, 3_000, integer=True, scale="log", bins=32),
        "WGTP": Numeric(1, 3_000, integer=True, scale="log", bins=32, special=[0]),
        "INDP": Categorical(codes, **gap),
    }
    young = {"MSP": 15, "PINCP": 15, "PINCP_DECILE": 15, "EDU": 3, "DREM": 5, "DPHY": 5}
    group_of = {**{code: groups[code] for code in codes}, None: None}
    rules: list[Any] = [
        derived("INDP_CAT", from_="INDP", map=group_of),
        derived("DENSITY", from_="PUMA", map=density),
    ]
    for name, age in young.items():
        rules += [
            forbid(f"{name} != None and AGEP < {age}"),
            forbid(f"AGEP >= {age} and {name} == None"),
        ]
    rules += [
        forbid("INDP != None and AGEP < 16"),
        forbid("DVET != None and AGEP < 17"),
        forbid("HOUSING_TYPE == 1 and OWN_RENT == 0"),
        forbid("HOUSING_TYPE in [2, 3] and OWN_RENT in [1, 2]"),
        forbid("NOC != None and HOUSING_TYPE != 1"),
        forbid("NPF != None and HOUSING_TYPE != 1"),
    ]

    def impossible(table: pd.DataFrame) -> pd.Series:
        broken = (table["HOUSING_TYPE"] == 1) == (table["OWN_RENT"] == 0)
        broken |= table["INDP"].map(groups).astype("Int64").fillna(-1) != table["INDP_CAT"].fillna(
            -1
        )
        for name, age in young.items():
            broken |= table[name].isna() != (table["AGEP"] < age)
        for name in ("NOC", "NPF"):
            broken |= table[name].notna() & (table["HOUSING_TYPE"] != 1)
        broken |= table["INDP"].notna() & (table["AGEP"] < 16)
        return broken | (table["DVET"].notna() & (table["AGEP"] < 17))

    domain = Domain({name: attributes[name] for name in rows.columns}, structure=rules)
    return Table(
        rows, domain, impossible, {"PINCP": 0, "POVPIP": 501, "WGTP": 0}, ("PINCP", "PWGTP")
    )


TABLES = {"loans": loan_table, "adult": adult_table, "nist": nist_table}


def plain(domain: Domain) -> Domain:
    """The same columns without uneven bins, special values and structure."""
    attributes: dict[str, Any] = {}
    for name in domain.columns:
        attribute = domain.declared(name)
        if isinstance(attribute, Identifier):
            continue
        if isinstance(attribute, Numeric) and not isinstance(attribute, Date):
            given = {"integer": True} if attribute.integer else {}
            low = min([attribute.lower, *attribute.special])
            high = max([attribute.upper, *attribute.special])
            bins = 32 if not attribute.integer or high - low > 200 else None
            attribute = Numeric(low, high, bins, nullable=attribute.nullable, **given)
        attributes[name] = attribute
    return Domain(attributes)


def measure(table: Table, synthetic: pd.DataFrame, full: bool) -> dict[str, float]:
    """All scores of synthetic rows; the slow ones only if ``full``."""
    rows = table.rows[list(synthetic.columns)]
    masses = [
        abs((rows[name] == value).mean() - (synthetic[name] == value).mean())
        for name, value in table.point_masses.items()
    ]
    means, quartiles = [], []
    for name in table.skewed:
        means.append(synthetic[name].mean() / rows[name].mean() - 1)
        cut = [0.25, 0.5, 0.75]
        ratio = synthetic[name].quantile(cut) / rows[name].quantile(cut)
        quartiles += [abs(each - 1) for each in ratio]
    found = {
        "impossible": float(table.impossible(synthetic).mean()),
        "point mass, largest error": float(max(masses)),
        "mean, median |error|": float(np.median(np.abs(means))),
        "mean, largest |error|": float(np.max(np.abs(means))),
        "quartiles, median |error|": float(np.median(quartiles)),
    }
    if full:
        names = [name for name in synthetic.columns if not _is_id(table.domain, name)]
        found["rank correlation"] = scores.spearman_difference(rows[names], synthetic[names])
        codes = scores.joint_codes(rows[names], synthetic[names])
        found["pairs"] = scores.total_variation(*codes)
        found["observer"] = scores.observer_auc(rows[names], synthetic[names])
    return found


def _is_id(domain: Domain, name: str) -> bool:
    return isinstance(domain.declared(name), Identifier)


def shuffled(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Every column in an order of its own."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rows[name].to_numpy()[rng.permutation(len(rows))] for name in rows})


def run(name: str, epsilon: float, seeds: Sequence[int]) -> dict[str, Any]:
    """Scores of all ways on one table: medians over the fits, and means of the columns."""
    table = TABLES[name]()
    # A sum of columns is computed from the drawn rows where structure is declared.
    declared = table.domain.select([n for n in table.domain.columns if n not in table.sums])
    domains = {"declared": declared, "plain": plain(table.domain)}
    found: dict[str, list[dict[str, float]]] = {"declared": [], "plain": [], "independent": []}
    means: dict[str, list[list[float]]] = {"declared": [], "plain": []}
    for seed in seeds:
        full = seed == seeds[0]
        drawn = None
        for way, domain in domains.items():
            given = table.rows[list(domain.columns)]
            start = time.process_time()
            fit = MarginalSynthesizer(epsilon, domain=domain, random_state=seed).fit(given)
            seconds = time.process_time() - start
            synthetic = fit.sample(random_state=seed)
            if way == "declared":
                parts = {name: synthetic[each].sum(axis=1) for name, each in table.sums.items()}
                synthetic = synthetic.assign(**parts)[list(table.domain.columns)]
            found[way].append({**measure(table, synthetic, full), "fit, CPU s": seconds})
            means[way].append([fit.mean(each) / table.rows[each].mean() for each in table.skewed])
            drawn = synthetic if way == "declared" else drawn
        assert drawn is not None
        found["independent"].append(measure(table, shuffled(drawn, seed), full))
    result: dict[str, Any] = {
        way: {
            score: float(np.median([each[score] for each in fits if score in each]))
            for score in fits[0]
        }
        for way, fits in found.items()
    }
    for way, ratios in means.items():
        result[way]["means over truth, median of fits"] = dict(
            zip(table.skewed, np.round(np.median(ratios, axis=0), 3).tolist(), strict=True)
        )
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=sorted(TABLES), default=list(TABLES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", InsecureSeedWarning)
    results = []
    for name in options.tables:
        for epsilon in options.epsilon:
            found = run(name, epsilon, range(1 if options.quick else options.seeds))
            results.append({"table": name, "epsilon": epsilon, **found})
            print(f"\n{name}, epsilon {epsilon:g}")
            frame = pd.DataFrame({way: found[way] for way in found})
            means = frame.loc[frame.index.str.startswith("means")]
            print(frame.drop(means.index).astype(float).round(4).to_string(na_rep=""))
            for way, ratios in means.iloc[0].dropna().items() if len(means) else ():
                print(f"  means over truth, {way}: {ratios}")
    _data.write_json(options.out, "real_tables", results)


if __name__ == "__main__":
    main()
