"""Every estimator and every branch of its parameters, with pairs of data sets that are hard on it.

`audit/test_replay.py` replays all of them. A new estimator, or a parameter that changes what is
measured, is added here (test_replay.py fails until every estimator is).
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from odd_values import CONTAINERS, ODD_VALUES, odd_pair
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skdp
from skdp import _pipelines
from skdp._random import noise_source
from skdp._validation import as_epsilon
from skdp.algorithms.additive import pairs as calibration
from skdp.algorithms.additive.model import UNIT, Logit, Records
from skdp.model_selection import (
    PrivateGridSearchCV,
    private_confusion_matrix,
    private_cross_val_score,
    private_score,
)

INF, NAN = np.inf, np.nan
LABEL = skdp.Categorical(["a", "b"])
LINE = skdp.Domain({"x": skdp.Numeric(0, 8, bins=8)})
PLANE = skdp.Domain({"x": skdp.Numeric(0, 4, bins=4), "s": LABEL})
SPACE = skdp.Domain(
    {
        "x": skdp.Numeric(0, 4, bins=4),
        "y": skdp.Numeric(-1, 1, bins=3, nullable=True),
        "z": skdp.Numeric(0, 2, integer=True),
        "s": LABEL,
    }
)
# The ranges of two columns have to be found.
UNKNOWN = skdp.Domain(
    {**dict(SPACE.items()), "x": skdp.Numeric(), "z": skdp.Numeric(integer=True, special=[0])}
)
# Structural zeros: a code, a pair of columns, and three columns that no tree of pairs can hold.
RULED = skdp.Domain(
    SPACE.items(),
    structure=[
        skdp.forbid("z == 1"),
        skdp.forbid("x < 2 and s == 'b'"),
        skdp.forbid("x >= 2 and x <= 4 and z == 0 and s == 'a'"),
    ],
)
KINDS = skdp.Categorical([f"c{i}" for i in range(24)])
# More classes than get a model of their own; more codes than are kept apart in a pair.
CLASSES = skdp.Domain(
    {"x": skdp.Numeric(0, 4, bins=4), "y": skdp.Numeric(0, 2, bins=2), "s": KINDS}
)
CODES = skdp.Domain(
    {"x": skdp.Numeric(0, 600, bins=600), "y": skdp.Numeric(0, 2, bins=2), "s": LABEL}
)
MANY_CODES = skdp.Domain({"x": skdp.Numeric(0, 2500, bins=2500), "y": skdp.Numeric(0, 2, bins=2)})
MAP = skdp.Domain({"x": skdp.Numeric(0, 40, bins=40), "y": skdp.Numeric(0, 40, bins=40)})
BINARY = skdp.Domain(
    {
        "x": skdp.Numeric(0, 2, bins=2),
        "y": skdp.Numeric(0, 2, bins=2),
        "s": LABEL,
        "t": skdp.Categorical(["c", "d"]),
    }
)
BOX = (-1.0, 1.0)


def spread(domain: skdp.Domain, n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows in which the columns depend on each other."""
    rng = np.random.default_rng(seed)
    level = rng.beta(0.6, 0.9, n_rows)
    columns = {}
    for name, attribute in domain.items():
        noisy = np.clip(level + rng.normal(0, 0.08, n_rows), 0, 0.999)
        if isinstance(attribute, skdp.Categorical):
            kinds = list(attribute.categories)
            columns[name] = [kinds[int(v * len(kinds))] for v in noisy]
        else:
            values = attribute.lower + noisy * (attribute.upper - attribute.lower)
            columns[name] = np.floor(values) if attribute.integer else values
    return pd.DataFrame(columns)


def edge(domain: skdp.Domain, side: int, value: float | None = None) -> pd.DataFrame:
    """One row in a corner of the domain, or one whose numbers are all ``value``."""
    return pd.DataFrame(
        {
            name: [
                attribute.categories[side and -1]
                if isinstance(attribute, skdp.Categorical)
                else (attribute.upper if side else attribute.lower)
                if value is None
                else value
            ]
            for name, attribute in domain.items()
        }
    )


def pairs_of(domain: skdp.Domain) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Data sets and neighbours with one record less."""

    def join(*parts: pd.DataFrame) -> pd.DataFrame:
        return pd.concat(parts, ignore_index=True)

    def less(rows: pd.DataFrame, place: int = -1) -> pd.DataFrame:
        return rows.drop(index=rows.index[place]).reset_index(drop=True)

    low, high, table = edge(domain, 0), edge(domain, 1), spread(domain, 40)
    tied = join(*[high] * 25)
    doubled = join(table[:8], table[:8], table[:8])
    pairs = {
        "nobody": low,
        "two": join(low, high),
        "tied": tied,
        "alone in a corner": join(tied, low),
        "duplicates": doubled,
        "corners": join(*[low] * 10, *[high] * 11),
        "from the middle": table,
        "crowded": join(*[table] * 12, low),
    }
    found = {name: (rows, less(rows)) for name, rows in pairs.items()}
    found["from the middle"] = (table, less(table, 17))
    for value in (NAN, INF, -INF, 1e300):
        rows = join(table[:15], edge(domain, 1, value))
        found[f"a row of {value:g}"] = (rows, less(rows))
    unknown = join(table[:15], low)
    for name, attribute in domain.items():
        if isinstance(attribute, skdp.Categorical):
            unknown[name] = [*unknown[name][:-1], "martian"]
    found["unknown categories"] = (unknown, less(unknown))
    return found


def gaps(domain: skdp.Domain) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """What becomes of records with gaps may not depend on the others."""
    ends = [*[edge(domain, 1, NAN)] * 3, *[edge(domain, 0)] * 3, *[edge(domain, 1)] * 6]
    rows = pd.concat(ends, ignore_index=True)
    return {"others have gaps": (rows, rows[:-1])}


def apart(pairs: dict, label: str) -> dict:
    """The same pairs as (X, y)."""
    return {
        name: tuple((rows.drop(columns=label), rows[label]) for rows in pair)
        for name, pair in pairs.items()
    }


def contrary() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """A record alone with its label among many in one column, and with its value in the others."""
    crowd = pd.DataFrame({"x": 0.5, "y": -0.9, "z": 0, "s": ["b"] * 60})
    odd = pd.DataFrame({"x": [0.5], "y": [0.9], "z": [2], "s": ["a"]})
    return {"contrary": (pd.concat([crowd, odd], ignore_index=True), crowd)}


def arrays_of(n_columns: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    domain = skdp.Domain({f"x{i}": skdp.Numeric(*BOX) for i in range(n_columns)})
    return {
        name: tuple(rows.to_numpy(dtype=float) for rows in pair)
        for name, pair in pairs_of(domain).items()
    }


def persons_of(domain: skdp.Domain) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbours without all rows of one person, who may have more than count."""
    table = spread(domain, 30)
    table["who"] = ["ann", "bea", "cyd"] * 4 + ["dot"] * 12 + ["eve", "fay"] * 3
    odd = edge(domain, 1, NAN).assign(who="gus")
    alike = pd.concat([edge(domain, 0).assign(who=who) for who in "aaabbb"], ignore_index=True)
    ghosts = table.assign(who=[None, NAN, *table["who"][2:]])

    def without(rows: pd.DataFrame, who: str) -> pd.DataFrame:
        return rows[rows["who"] != who].reset_index(drop=True)

    return {
        "many rows": (table, without(table, "dot")),
        "few rows": (table, without(table, "fay")),
        "the first": (table, without(table, "ann")),
        "missing values": (pd.concat([table, odd]), table),
        "like another": (alike, without(alike, "a")),
        "unknown persons": (ghosts, without(ghosts, "eve")),
        "nobody": (without(alike, "a"), without(without(alike, "a"), "b")),
    }


def _first(data: Any) -> Any:
    return data[0] if isinstance(data, tuple) else data


@dataclass(frozen=True)
class Branch:
    """An estimator, or a function of the data, and pairs to replay it on."""

    name: str
    make: Callable[[float], Any]
    pairs: Callable[[], dict[str, tuple[Any, Any]]]
    epsilons: tuple[float, ...] = (0.05, 1.0, 1000.0)
    # None where the fitted estimator says it.
    claim: Callable[[float], float] | None = None
    # Pairs of runs for each pair of data sets and epsilon; of 2, the default suite takes 1.
    runs: int = 2
    # What it needs besides skdp's own requirements.
    needs: tuple[str, ...] = field(default_factory=tuple)
    # Rows that count of a person, in functions; estimators say it themselves.
    rows_of_person: int = 1

    def odd(self, everything: bool = False) -> Iterator[tuple[str, tuple[Any, Any]]]:
        """Pairs in other containers, with an odd value in the record: all, or one by turns."""
        pairs = self.pairs()
        data = min(
            (pair[1] for pair in pairs.values() if len(_first(pair[1]))),
            key=lambda rows: abs(len(_first(rows)) - 20),
        )
        frame = _first(data)
        unit = "who" if isinstance(frame, pd.DataFrame) and "who" in frame else None
        for box, value, place in self.turns(unit, everything):
            yield f"{value} in {box}", odd_pair(data, box, value, place, unit=unit)

    def turns(
        self, unit: str | None = None, everything: bool = False
    ) -> Iterator[tuple[str, str, int]]:
        """Containers and odd values, each with the column that holds the value."""
        names = [name for name in CONTAINERS if unit is None or name.startswith("columns")]
        if self.name == "private_score, brier_score":
            names.remove("lists")  # probabilities of three labels are an array or a frame
        turn = zlib.crc32(self.name.encode())
        values = list(ODD_VALUES)
        if everything:
            yield from ((box, value, turn + k) for k, value in enumerate(values) for box in names)
        else:
            yield names[turn % len(names)], values[turn // 7 % len(values)], turn // 11

    @property
    def most(self) -> int:
        """Rows that may count of what differs between two data sets."""
        made = self.make(1.0)
        known = made.get_params(deep=False) if isinstance(made, BaseEstimator) else {}
        return known.get("max_rows_per_id") or self.rows_of_person

    @property
    def tight(self) -> float:
        """Part of epsilon that at least one pair must cost."""
        return next((part for name, part in LOOSE.items() if self.name.startswith(name)), 1.0)


def synthesizers() -> list[Branch]:
    views = {
        "HDPView": (
            skdp.HDPViewSynthesizer,
            [
                {},
                {"calibration": "paper"},
                {"calibration": "paper", "alpha": 3, "beta": 0.3, "gamma": 0.5, "ratio": 0.6},
            ],
        ),
        "PrivTree": (
            skdp.PrivTreeSynthesizer,
            [{}, {"calibration": "paper"}, {"split_attributes": 1}],
        ),
        "KDTree": (
            skdp.KDTreeSynthesizer,
            [
                {"xi0": 2, "xi1": 1},
                {"strategy": "cell"},
                {"strategy": "hierarchical"},
                {"strategy": "hierarchical", "height": 3},
                {"strategy": "range-tree", "height": 3},
                {"unevenness": "entropy", "xi0": 2, "xi1": 1},
                {"cell_share": 0.2, "noise_correction": False},
            ],
        ),
        "Grid": (
            skdp.GridSynthesizer,
            [
                *({"rule": rule} for rule in ("identity", "uniform", "extended", "m-estimator", 2)),
                {"rule": "uniform", "theta": 1},
            ],
        ),
        "PrivBayes": (
            skdp.PrivBayesSynthesizer,
            [
                {},
                {"encoding": "hierarchical", "theta": 1},
                {"score_function": "mutual_information"},
                {"max_candidates": 2, "negatives": "zero", "theta": 0.01},
            ],
        ),
    }
    found = []
    for name, (estimator, variants) in views.items():
        for variant in variants:
            text = ", ".join(f"{key}={value}" for key, value in variant.items())
            paper = variant.get("calibration") == "paper"
            for domain, kind in ((LINE, "one column"), (SPACE, "four columns")):
                found.append(
                    Branch(
                        f"{name}Synthesizer, {kind}{', ' if text else ''}{text}",
                        lambda epsilon, e=estimator, v=variant, d=domain: e(
                            epsilon=epsilon, domain=d, **v
                        ),
                        lambda d=domain, more=name == "Grid": (
                            pairs_of(d) | (gaps(d) if more else {})
                        ),
                        # The paper's noise would cut a domain down to its cells at a large epsilon.
                        epsilons=(0.05, 1.0, 2.0) if paper else (0.05, 1.0, 1000.0),
                    )
                )
        found.append(
            Branch(
                f"{name}Synthesizer, persons",
                lambda epsilon, e=estimator: e(
                    epsilon=epsilon, domain=PLANE, max_rows_per_id=3, privacy_id="who"
                ),
                lambda: persons_of(PLANE),
            )
        )
    found.append(
        Branch(
            "PrivBayesSynthesizer, score F",
            lambda epsilon: skdp.PrivBayesSynthesizer(
                epsilon=epsilon, domain=BINARY, score_function="F"
            ),
            lambda: pairs_of(BINARY),
        )
    )
    found.append(
        Branch(
            "PrivBayesSynthesizer, rare codes",
            lambda epsilon: skdp.PrivBayesSynthesizer(epsilon=epsilon, domain=THREE),
            rare_codes,
            epsilons=(1.0,),
        )
    )
    return found


THREE = skdp.Domain({name: skdp.Numeric(0, 2, integer=True) for name in ("a", "b", "c")})


def broken_rules() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Just more than half of the records break a rule, or just half."""
    fine, broken = edge(RULED, 0), edge(RULED, 0).assign(z=1)
    rows = pd.concat([*[fine] * 5, *[broken] * 6], ignore_index=True)
    return {"most break a rule": (rows, rows[:-1])}


def rare_codes() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Score R of one pair of columns rises by its most with a record, and that of another falls.

    With 10,000 records, 200 of a rare code of a, and 200 others of one of c. Ten of the former have
    a code of b, the record has one of its own.
    """
    codes = np.zeros((10_000, 3), dtype=int)
    codes[:200, 0], codes[200:400, 2], codes[:10, 1] = 1, 1, 1
    record = [[1, 2, 1]]
    found = {}
    # Which column has no parents is drawn.
    for order in itertools.permutations(range(3)):
        rows = pd.DataFrame(codes[:, list(order)], columns=list("abc"))
        more = pd.DataFrame(np.array(record)[:, list(order)], columns=list("abc"))
        name = "".join("abc"[place] for place in order)
        found[f"as {name}"] = (pd.concat([rows, more], ignore_index=True), rows)
    return found


def marginals() -> list[Branch]:
    """Every way through the release of views.

    At epsilon 1000 the counts of all columns together are measured; of "crowded", all columns are
    one table at 1 or 2 if sets of three columns are allowed, else pairs are measured.
    """
    some = ("two", "corners", "from the middle", "crowded", "a row of nan")

    def few(pairs: dict, names: tuple[str, ...] = some) -> dict:
        return {name: both for name, both in pairs.items() if name in names}

    def branch(
        name: str,
        pairs: Callable[[], dict],
        epsilons: tuple[float, ...] = (0.05, 1.0, 1000.0),
        runs: int = 2,
        **parameters: Any,
    ) -> Branch:
        parameters = {"domain": SPACE, **parameters}
        return Branch(
            f"MarginalSynthesizer, {name}",
            lambda epsilon: skdp.MarginalSynthesizer(epsilon=epsilon, **parameters),
            pairs,
            epsilons=epsilons,
            runs=runs,
        )

    def crowded(domain: skdp.Domain) -> dict:
        return few(pairs_of(domain), ("crowded",))

    weights = {("x", "s"): 1, ("y", "z"): 0.5, ("x", "y", "s"): 0.25}
    prior = skdp.PublicTable(spread(SPACE, 300, seed=1))
    ruled_plane = skdp.Domain(
        PLANE.items(),
        structure=[skdp.forbid("x < 2 and s == 'b'"), skdp.forbid("x >= 3 and s == 'a'")],
    )
    return [
        branch("prior", lambda: few(pairs_of(SPACE)), prior=prior, max_order=2, runs=1),
        branch(
            "prior, target", lambda: apart(crowded(SPACE), "s"), (1.0,), prior=prior, target="s"
        ),
        branch("one column", lambda: pairs_of(LINE), domain=LINE),
        branch("two columns", lambda: few(pairs_of(PLANE)), domain=PLANE),
        branch("two columns of many codes", lambda: few(pairs_of(MAP)), domain=MAP, runs=1),
        branch("more than 512 codes", lambda: few(pairs_of(CODES)), domain=CODES, runs=1),
        branch(
            "more than 512 codes of two",
            lambda: few(pairs_of(MANY_CODES)),
            domain=MANY_CODES,
            runs=1,
        ),
        branch("four columns", lambda: pairs_of(SPACE)),
        branch("unknown ranges", lambda: few(pairs_of(SPACE)), domain=UNKNOWN),
        *(
            branch(f"max_order={order}", lambda: few(pairs_of(SPACE)), max_order=order)
            for order in (1, 2, 4)
        ),
        *(
            branch(f"workload {name}", lambda: few(pairs_of(SPACE)), workload=workload)
            for name, workload in (("ranges",) * 2, ("cells",) * 2, ("of sets", weights))
        ),
        branch(
            "workload of means", lambda: few(pairs_of(SPACE)), workload={"means": {"x": ["s", "y"]}}
        ),
        branch(
            "workload of means, rules",
            lambda: few(pairs_of(RULED)),
            runs=1,
            domain=RULED,
            workload={"means": {"y": "s"}, ("x", "s"): 1},
        ),
        branch("pairs", lambda: crowded(SPACE), (1.3,), 4, max_order=2),
        branch("pairs, rules", lambda: crowded(RULED), (3.0,), domain=RULED, max_order=2),
        branch("all columns, or pairs", lambda: crowded(SPACE), (0.7,), 4),
        branch("all columns as one table", lambda: crowded(SPACE), (2.0,), 4),
        branch("all columns as one table, rules", lambda: crowded(RULED), (3.0,), domain=RULED),
        branch("joint counts", lambda: few(pairs_of(SPACE)), (12.0,)),
        # Where the threshold of a count follows from the number of records.
        branch("joint counts of many codes", lambda: few(pairs_of(MAP)), (6.5,), 1, domain=MAP),
        branch("joint counts, rules", lambda: few(pairs_of(RULED)), (12.0,), domain=RULED),
        branch("target", lambda: few(apart(pairs_of(SPACE), "s")), target="s"),
        branch(
            "target, pairs", lambda: apart(crowded(SPACE), "s"), (2.0,), target="s", max_order=2
        ),
        branch(
            "more than 20 classes",
            lambda: few(apart(pairs_of(CLASSES), "s")),
            domain=CLASSES,
            target="s",
        ),
        branch(
            "rules",
            lambda: few(pairs_of(RULED)) | broken_rules(),
            (0.05, 5.0, 1000.0),
            domain=RULED,
        ),
        branch(
            "rules, target",
            lambda: few(apart(pairs_of(RULED), "s")),
            (1.0, 1000.0),
            domain=RULED,
            target="s",
        ),
        branch(
            "rules, persons",
            lambda: persons_of(PLANE),
            domain=ruled_plane,
            max_rows_per_id=3,
            privacy_id="who",
        ),
        branch("persons", lambda: persons_of(SPACE), runs=1, max_rows_per_id=3, privacy_id="who"),
    ]


def stopping() -> list[Branch]:
    """Releases that stop where records are lost: what was released then is in the error."""

    def make(estimator: Any, epsilon: float) -> Callable[[Any], Any]:
        def fitted(rows: Any) -> Any:
            try:
                return estimator(epsilon=epsilon, domain=SPACE, on_loss="stop").fit(rows)
            except skdp.RecordsLostError as error:
                return error

        return fitted

    def pairs() -> dict:
        lost = spread(SPACE, 40).assign(s="martian")
        some = pd.concat([spread(SPACE, 40), lost[:20]], ignore_index=True)
        return {
            **pairs_of(SPACE),
            "all are lost": (lost, lost[1:].reset_index(drop=True)),
            "some are lost": (some, some[1:].reset_index(drop=True)),
        }

    return [
        Branch(
            f"{estimator.__name__}, stop",
            lambda epsilon, e=estimator: make(e, epsilon),
            pairs,
            # At 50 it is beyond doubt that a third is lost.
            epsilons=(0.05, 50.0, 1000.0),
        )
        for estimator in (skdp.GridSynthesizer, skdp.MarginalSynthesizer)
    ]


def histograms() -> list[Branch]:
    variants: list[dict[str, Any]] = [
        {},
        {"branching": 2, "budget": "uniform"},
        {"branching": 2, "budget": "geometric"},
        {"workload": "quantiles"},
        {"consistency": None},
        {"consistency": "iterative"},
        {"non_negative": True},
        {"partition": "dawa"},
        {"partition": "ahp"},
        {"partition": "adaptive"},
        {"partition": "auto"},
    ]
    found = [
        Branch(
            f"RangeTreeHistogram, {variant or 'defaults'}",
            lambda epsilon, v=variant: skdp.RangeTreeHistogram(epsilon=epsilon, domain=LINE, **v),
            lambda: pairs_of(LINE),
        )
        for variant in variants
    ]
    found.append(
        Branch(
            "RangeTreeHistogram, persons",
            lambda epsilon: skdp.RangeTreeHistogram(
                epsilon=epsilon, domain=LINE, max_rows_per_id=3, privacy_id="who"
            ),
            lambda: persons_of(LINE),
        )
    )
    # Levels that are divided or not, missing values, and more bins than buckets begin at.
    wide = skdp.Domain({"x": skdp.Numeric(0, 600, bins=600, nullable=True)})
    many = skdp.Domain({"x": skdp.Numeric(0, 9000, bins=9000)})
    for name, domain, partition in (
        ("600 bins", wide, "dawa"),
        ("600 bins", wide, "ahp"),
        ("600 bins", wide, "adaptive"),
        ("9,000 bins", many, "dawa"),
    ):
        found.append(
            Branch(
                f"RangeTreeHistogram, {partition}, {name}",
                lambda epsilon, d=domain, p=partition: skdp.RangeTreeHistogram(
                    epsilon=epsilon, domain=d, partition=p
                ),
                lambda d=domain: pairs_of(d),
            )
        )
    return found


def clusterings() -> list[Branch]:
    starts = [[-0.5, -0.5], [0.5, 0.5]]
    variants: dict[str, dict[str, Any]] = {
        "auto": {},
        "auto, a grid and a round": {"n_samples": 400},
        "auto, choice of k": {"n_clusters": [2, 3]},
        "lloyd": {"algorithm": "lloyd", "init": starts, "n_rounds": 2},
        "lloyd, random start": {"algorithm": "lloyd", "n_rounds": 2},
        "lloyd-improved": {"algorithm": "lloyd-improved"},
        "lloyd-improved, given size": {"algorithm": "lloyd-improved", "n_samples": 100},
        "uniform-grid": {"algorithm": "uniform-grid"},
        "m-estimator": {"algorithm": "m-estimator"},
        "extended-grid": {"algorithm": "extended-grid"},
        "hybrid": {"algorithm": "hybrid"},
        "sample-aggregate": {"algorithm": "sample-aggregate"},
        "sample-aggregate, given blocks": {"algorithm": "sample-aggregate", "n_blocks": 3},
        "genetic": {"algorithm": "genetic"},
    }
    found = [
        Branch(
            f"DPKMeans, {name}",
            lambda epsilon, v=variant: skdp.DPKMeans(
                **{"n_clusters": 2, "epsilon": epsilon, "domain": BOX, "n_init": 2, **v}
            ),
            lambda: arrays_of(2),
        )
        for name, variant in variants.items()
    ]
    found += [
        Branch(
            f"DPKMeans, tree in five dimensions, {text}",
            lambda epsilon, v=variant: skdp.DPKMeans(2, epsilon=epsilon, domain=BOX, n_init=2, **v),
            lambda: arrays_of(5),
        )
        for text, variant in {
            "small": {},
            "with margins": {"n_samples": 2_000},
            "large": {"n_samples": 200_000},
        }.items()
    ]
    alike = np.full((9_000, 1), 0.3)
    # The first record is farther from its centroid than a round clips: a record at the end of an
    # even cluster is about as far as that, and with noise in the radius may cost a little less.
    spread = np.append(-0.25, np.linspace(0, 5, 8_999))[:, None]
    found.append(
        Branch(
            "DPKMeans, narrow ranges",
            lambda epsilon: skdp.DPKMeans(
                2, epsilon=epsilon, domain=(-1_000, 1_000), n_init=2, n_samples=9_000
            ),
            lambda: {
                "alike": (alike, alike[1:]),
                "end": (spread, spread[1:]),
                "far": (
                    np.append(np.full((9_000, 1), 0.3), [[900.0]], 0),
                    np.full((9_000, 1), 0.3),
                ),
            },
        )
    )
    both = np.repeat(spread, 2, axis=1)
    found.append(
        Branch(
            "DPKMeans, narrow ranges of two columns",
            lambda epsilon: skdp.DPKMeans(
                2, epsilon=epsilon, domain=(-1_000, 1_000), n_init=2, n_samples=9_000
            ),
            lambda: {"end": (both, both[1:])},
            epsilons=(1.0,),
        )
    )
    found += [
        Branch(
            f"DPKMeans, many columns, {text}",
            lambda epsilon, v=variant: skdp.DPKMeans(
                2, epsilon=epsilon, **{"domain": BOX, "n_init": 2, **v}
            ),
            lambda: arrays_of(51),
        )
        for text, variant in {
            "few rows": {},
            "many rows": {"n_samples": 20_000},
            "far from the middle": {"n_samples": 20_000, "domain": (-1_000, 50)},
            "given starts": {"init": np.eye(2, 51)},
        }.items()
    ]
    found.append(
        Branch(
            "DPKMeans, persons",
            lambda epsilon: skdp.DPKMeans(
                2, epsilon=epsilon, domain=(0, 8), n_init=2, max_rows_per_id=3, privacy_id="who"
            ),
            lambda: persons_of(LINE),
        )
    )
    return found


def grids() -> list[Branch]:
    variants: dict[str, tuple[type, dict[str, Any]]] = {
        "PrivPfCTransformer": (skdp.PrivPfCTransformer, {"max_grids": 500}),
        "PrivPfCTransformer, as in the paper": (skdp.PrivPfCTransformer, {"selection": "paper"}),
        "PrivPfCTransformer, other shares": (
            skdp.PrivPfCTransformer,
            {"selection": "paper", "shares": (3, 10, 87)},
        ),
        "PrivPfCTransformer, few grids": (skdp.PrivPfCTransformer, {"max_grids": 5}),
        "PrivPfCClassifier": (skdp.PrivPfCClassifier, {"max_grids": 500}),
        "DiffGenTransformer": (skdp.DiffGenTransformer, {"n_specializations": 3}),
        "ProjectedHistogramTransformer": (
            skdp.ProjectedHistogramTransformer,
            {"n_attributes": 2},
        ),
    }
    found = [
        Branch(
            name,
            lambda epsilon, e=estimator, v=variant: e(
                epsilon=epsilon, domain=SPACE, target="s", **v
            ),
            lambda: apart(pairs_of(SPACE) | contrary(), "s"),
        )
        for name, (estimator, variant) in variants.items()
    ]
    found += [
        Branch(
            f"{estimator.__name__}, persons",
            lambda epsilon, e=estimator: e(
                epsilon=epsilon, domain=PLANE, target="s", max_rows_per_id=3, privacy_id="who"
            ),
            lambda: persons_of(PLANE),
        )
        for estimator in (
            skdp.PrivPfCTransformer,
            skdp.PrivPfCClassifier,
            skdp.DiffGenTransformer,
            skdp.ProjectedHistogramTransformer,
        )
    ]
    found += [
        Branch(
            "PrivPfCTransformer, merged values",
            lambda epsilon: skdp.PrivPfCTransformer(
                epsilon=epsilon, domain=SPACE, target="s", max_grids=500
            ),
            lambda: {"crowded": apart(pairs_of(SPACE), "s")["crowded"]},
            epsilons=(40.0,),
            runs=3,
        ),
        Branch(
            "PrivPfCClassifier, more than 20 classes",
            lambda epsilon: skdp.PrivPfCClassifier(
                epsilon=epsilon, domain=CLASSES, target="s", max_grids=500
            ),
            lambda: apart(pairs_of(CLASSES), "s"),
        ),
        *(
            Branch(
                f"DPTopKSelector{'' if method == 'one-shot' else ', ' + method}",
                lambda epsilon, method=method: skdp.DPTopKSelector(
                    2, epsilon=epsilon, domain=SPACE, target="s", method=method
                ),
                lambda: apart(pairs_of(SPACE), "s"),
            )
            for method in ("one-shot", "canonical", "joint")
        ),
    ]
    return found


def additive() -> list[Branch]:
    found = [
        Branch(
            f"PrivateAdditiveClassifier, {name}",
            lambda epsilon, d=domain: skdp.PrivateAdditiveClassifier(
                epsilon=epsilon, domain=d, target="s"
            ),
            lambda d=domain: apart(pairs_of(d), "s"),
            # With the last, sums of residuals pay.
            epsilons=(0.05, 1.0, 1000.0),
        )
        for name, domain in {"two classes": SPACE, "many classes": CLASSES}.items()
    ]
    found += [
        *(
            Branch(
                f"PrivateAdditiveClassifier, pairs {name}",
                lambda epsilon, d=domain, asked=interactions: skdp.PrivateAdditiveClassifier(
                    epsilon=epsilon, domain=d, target="s", interactions=asked
                ),
                lambda d=domain: apart(pairs_of(d), "s"),
                runs=2,
            )
            # "auto" chooses pairs in the branches above, with the largest epsilon.
            for name, domain, interactions in (
                ("chosen", SPACE, 1),
                ("listed", CLASSES, [("x", "y")]),
            )
        ),
        Branch(
            "PrivateAdditiveRegressor, pairs",
            lambda epsilon: skdp.PrivateAdditiveRegressor(
                epsilon=epsilon, domain=SPACE, target="x", interactions=1
            ),
            lambda: apart(pairs_of(SPACE), "x"),
            runs=2,
        ),
        Branch(
            "PrivateAdditiveRegressor",
            lambda epsilon: skdp.PrivateAdditiveRegressor(
                epsilon=epsilon, domain=SPACE, target="x"
            ),
            lambda: apart(pairs_of(SPACE), "x"),
        ),
        Branch(
            "PrivateAdditiveClassifier, persons",
            lambda epsilon: skdp.PrivateAdditiveClassifier(
                epsilon=epsilon, domain=PLANE, target="s", max_rows_per_id=3, privacy_id="who"
            ),
            lambda: persons_of(PLANE),
            runs=1,
        ),
    ]
    return found


def trees() -> list[Branch]:
    tree, forest = skdp.PrivateDecisionTreeClassifier, skdp.PrivateRandomForestClassifier
    variants: dict[str, tuple[Any, skdp.Domain, dict[str, Any]]] = {
        "defaults": (tree, SPACE, {}),
        "many classes": (tree, CLASSES, {"quality": "gini"}),
        "id3": (tree, SPACE, {"algorithm": "id3", "max_depth": 2}),
        "c4.5": (tree, SPACE, {"algorithm": "c4.5", "quality": "information", "max_depth": 2}),
        "max": (tree, SPACE, {"quality": "max", "max_depth": 1}),
        "shared": (forest, SPACE, {"max_features": 0.5}),
        "apart": (forest, SPACE, {"rows": "apart", "n_trees": 2}),
    }
    found = [
        Branch(
            f"{make.__name__}, {name}",
            lambda epsilon, m=make, d=domain, p=params: m(
                epsilon=epsilon, domain=d, target="s", **p
            ),
            lambda d=domain: apart(pairs_of(d), "s"),
            runs=1,
        )
        for name, (make, domain, params) in variants.items()
    ]
    found += [
        Branch(
            f"{make.__name__}, persons",
            lambda epsilon, m=make: m(
                epsilon=epsilon, domain=PLANE, target="s", max_rows_per_id=3, privacy_id="who"
            ),
            lambda: persons_of(PLANE),
            runs=1,
        )
        for make in (tree, forest)
    ]
    return found


class Extreme(BaseEstimator):
    """Answers with one end of the range of its output, and raises on some records."""

    def fit(self, X: Any, y: Any = None) -> Extreme:
        if len(X) % 3 == 2:
            raise ValueError(f"A text with values: {X}")
        end = float(len(X) % 3)
        self.end_ = np.array([end, 1.0 - end])
        return self


class Largest(BaseEstimator):
    """Sees which records are in a block, not only how many."""

    def fit(self, X: Any, y: Any = None) -> Largest:
        self.end_ = np.max(X, axis=0)
        return self


class Drawing(Extreme):
    """Draws from the generators of the process, and the more often the more records there are."""

    def fit(self, X: Any, y: Any = None) -> Drawing:
        coins = np.random.random() < 0.5, random.random() < 0.5  # noqa: NPY002
        draw_from_all(len(X))
        super().fit(X)
        if coins[0] != coins[1]:
            self.end_ = self.end_[::-1]
        return self


def draw_from_all(times: int) -> None:
    """Draw from the generators of the process."""
    np.random.random(times)  # noqa: NPY002
    random.getrandbits(32 * times)


# Classes of a user's may not stand behind a release; those of this module may, as a library's.
_installed = _pipelines.is_installed
_pipelines.is_installed = lambda module: module == __name__ or _installed(module)


class DrawingClassifier(ClassifierMixin, BaseEstimator):
    """Its labels are drawn from the generators of the process; predicting draws, too."""

    def fit(self, X: Any, y: Any) -> DrawingClassifier:
        self.classes_ = np.unique(y)
        self.coins_ = np.random.random(), random.random()  # noqa: NPY002
        return self

    def predict(self, X: Any) -> Any:
        draw_from_all(int(X["x"].nunique()))
        return np.repeat(self.classes_[int(2 * self.coins_[0]) : :][:1], len(X))


def aggregates() -> list[Branch]:
    settings: dict[str, dict[str, Any]] = {
        "mean": {},
        "winsorised": {"aggregate": "winsorised", "n_blocks": 8},
        "median": {"aggregate": "median", "n_blocks": 9},
    }
    # Two blocks of five would have the ones if records were dealt out by position.
    ends = np.tile([[1.0], [-1], [1], [-1], [-1]], (8, 2))
    return [
        Branch(
            f"SampleAggregate, {name}",
            lambda epsilon, p=params: skdp.SampleAggregate(
                Extreme(), epsilon=epsilon, output_range=([0, 0], [1, 1]), output="end_", **p
            ),
            lambda: arrays_of(2),
        )
        for name, params in settings.items()
    ] + [
        Branch(
            "SampleAggregate, largest of blocks",
            lambda epsilon: skdp.SampleAggregate(
                Largest(),
                epsilon=epsilon,
                output_range=([-1, -1], [1, 1]),
                n_blocks=5,
                output="end_",
            ),
            lambda: {
                "nobody": (ends[:1], ends[:0]),
                "others move up": (ends, np.delete(ends, 3, 0)),
            },
        ),
        Branch(
            "SampleAggregate, blocks that draw",
            lambda epsilon: skdp.SampleAggregate(
                Drawing(), epsilon=epsilon, output_range=([0, 0], [1, 1]), n_blocks=5, output="end_"
            ),
            lambda: arrays_of(2),
        ),
    ]


def linear() -> list[Branch]:
    """Solvers of linear models; whole numbers alone, so that "auto" takes second moments too."""
    numbers = skdp.Domain({"x": skdp.Numeric(0, 3, integer=True), "z": SPACE["z"]})
    solvers = ("auto", "functional", "local-search", "genetic")
    found = [
        Branch(
            f"{name}, {solver}",
            lambda epsilon, n=name, s=solver: getattr(skdp, n)(
                epsilon=epsilon, domain=SPACE, target="s", solver=s
            ),
            lambda: apart(pairs_of(SPACE), "s"),
            runs=1,
        )
        # The solvers of both are the same, but for the loss of searches.
        for name, solver in [
            *(("PrivateLogisticRegression", solver) for solver in solvers),
            ("PrivateLinearSVC", "local-search"),
        ]
    ]
    found += [
        Branch(
            f"PrivateLinearRegression, {solver}",
            lambda epsilon, s=solver: skdp.PrivateLinearRegression(
                epsilon=epsilon, domain=SPACE, target="x", solver=s
            ),
            lambda: apart(pairs_of(SPACE), "x"),
            runs=1,
        )
        for solver in solvers
    ]
    return found + [
        Branch(
            "PrivateLogisticRegression, functional, many classes",
            lambda epsilon: skdp.PrivateLogisticRegression(
                epsilon=epsilon, domain=CLASSES, target="s", solver="functional", one_hot="all"
            ),
            lambda: apart(pairs_of(CLASSES), "s"),
            runs=1,
        ),
        Branch(
            "PrivateRidge",
            lambda epsilon: skdp.PrivateRidge(epsilon=epsilon, domain=numbers, target="x"),
            lambda: apart(pairs_of(numbers), "x"),
        ),
        Branch(
            "PrivateNaiveBayes",
            lambda epsilon: skdp.PrivateNaiveBayes(epsilon=epsilon, domain=SPACE, target="s"),
            lambda: apart(pairs_of(SPACE), "s"),
        ),
        Branch(
            "PrivatePCA",
            lambda epsilon: skdp.PrivatePCA(epsilon=epsilon, domain=numbers),
            lambda: pairs_of(numbers),
        ),
        *(
            Branch(
                f"{name}, persons",
                lambda epsilon, n=name, t=target: getattr(skdp, n)(
                    epsilon=epsilon, domain=PLANE, target=t, max_rows_per_id=3, privacy_id="who"
                ),
                lambda: persons_of(PLANE),
                runs=1,
            )
            for name, target in (
                ("PrivateLinearRegression", "x"),
                ("PrivateRidge", "x"),
                ("PrivateAdditiveRegressor", "x"),
                ("PrivateRegressor", "x"),
                ("PrivateNaiveBayes", "s"),
                ("PrivateLogisticRegression", "s"),
                ("PrivateLinearSVC", "s"),
            )
        ),
        Branch(
            "PrivatePCA, persons",
            lambda epsilon: skdp.PrivatePCA(
                epsilon=epsilon, domain=numbers, max_rows_per_id=3, privacy_id="who"
            ),
            lambda: persons_of(numbers),
            runs=1,
        ),
        Branch("a step of Newton's method", newton_step, steep, claim=lambda epsilon: epsilon),
    ]


def newton_step(epsilon: float) -> Any:
    """A step of an additive model from scores that are given: those of no estimator are worst."""

    def step(rows: np.ndarray) -> Any:
        link, scores, values = Logit(2), rows[:, :1], rows[:, 1:2]
        places = np.arange(len(rows), dtype=np.int32)[:, None]
        labels, counts = rows[:, 2], np.ones(len(rows), dtype=np.int64)
        found = calibration.newton_step(
            Records(places, labels, counts, (max(len(rows), 1),), scores),
            link,
            lambda groups: values[groups[:, 0]][None],
            np.zeros(1),
            1.0,
            as_epsilon(epsilon),
            noise_source(None),
        )
        return vars(found)

    return step


def steep() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Records of a score, the value of a function, and a label."""
    gradient = np.array([[-20 * UNIT, 4 * UNIT, 1]])
    curvature = np.array([[0, 39 * UNIT, 1]])
    none = gradient[:0]
    return {
        "a score that is quite wrong": (gradient, none),
        "a score between, and a great value": (curvature, none),
    }


def cubes() -> list[Branch]:
    variants: dict[str, dict[str, Any]] = {
        "defaults": {},
        "bmax": {"strategy": "bmax"},
        "pmost": {"strategy": "pmost", "max_variance": 1e6},
        "all cuboids": {"strategy": "all"},
        "base": {"strategy": "base"},
        "optimized": {"strategy": "optimized", "max_order": 2},
        "optimized for the mean": {"strategy": "optimized", "objective": "mean"},
        "given sources": {"strategy": {"x": 1, (): 1}},
        "no consistency": {"strategy": "all", "max_order": 2, "consistency": None},
        "sums": {"measure": "sum", "value": "x", "resolution": 0.5, "dimensions": ["z", "s"]},
        "sums of signed values": {"measure": "sum", "value": "y", "dimensions": ["s"]},
        "means": {"measure": "mean", "value": "x", "resolution": 0.5, "dimensions": ["z", "s"]},
        "means of signed values": {"measure": "mean", "value": "y", "dimensions": ["s"]},
    }
    found = [
        Branch(
            f"DataCube, {name}",
            lambda epsilon, v=variant: skdp.DataCube(epsilon=epsilon, domain=SPACE, **v),
            lambda: pairs_of(SPACE),
        )
        for name, variant in variants.items()
    ]
    found += [
        Branch(
            f"DataCube, consistency in {norm}",
            lambda epsilon, n=norm: skdp.DataCube(
                epsilon=epsilon, domain=PLANE, strategy="all", consistency=n
            ),
            # Linear programs take their time.
            lambda: {name: pairs_of(PLANE)[name] for name in ("nobody", "from the middle")},
            runs=1,
        )
        for norm in ("l1", "linf")
    ]
    found.append(
        Branch(
            "DataCube, persons",
            lambda epsilon: skdp.DataCube(
                epsilon=epsilon, domain=PLANE, max_rows_per_id=3, privacy_id="who"
            ),
            lambda: persons_of(PLANE),
        )
    )
    found += [
        Branch(
            f"DataCube, {measure}s of persons",
            lambda epsilon, m=measure: skdp.DataCube(
                epsilon=epsilon,
                domain=PLANE,
                max_rows_per_id=3,
                privacy_id="who",
                measure=m,
                value="x",
            ),
            lambda: persons_of(PLANE),
        )
        for measure in ("sum", "mean")
    ]
    return found


def scalers() -> list[Branch]:
    return [
        Branch(
            "PrivateStandardScaler",
            lambda epsilon: skdp.PrivateStandardScaler(epsilon=epsilon, domain=BOX),
            lambda: arrays_of(2),
        ),
        Branch(
            "PrivateQuantileClipper",
            lambda epsilon: skdp.PrivateQuantileClipper(
                epsilon=epsilon, domain=BOX, quantiles=(0.1, 0.75)
            ),
            lambda: arrays_of(2),
        ),
    ]


def composed() -> list[Branch]:
    def release(epsilon: float, **parameters: Any) -> Any:
        return skdp.MarginalSynthesizer(epsilon=epsilon, domain=SPACE, target="s", **parameters)

    def trees(epsilon: float) -> Any:
        encoded = make_pipeline(
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            DecisionTreeClassifier(max_depth=2),
        )
        return skdp.PrivateClassifier(encoded, release(epsilon), n_samples=60)

    def search(epsilon: float) -> Any:
        return PrivateGridSearchCV(
            trees(epsilon),
            {"estimator__decisiontreeclassifier__max_depth": [1, 3]},
            epsilon=epsilon,
        )

    def two_releases(epsilon: float) -> Any:
        return PrivateGridSearchCV(
            trees(epsilon), {"synthesizer__epsilon": [epsilon, epsilon / 2]}, epsilon=epsilon
        )

    def area_search(epsilon: float) -> Any:
        return search(epsilon).set_params(metric="roc_auc")

    def regressor(epsilon: float) -> Any:
        domain = skdp.Domain({name: SPACE[name] for name in ("x", "z")})
        return skdp.PrivateRegressor(
            DecisionTreeRegressor(max_depth=2),
            skdp.HDPViewSynthesizer(epsilon=epsilon, domain=domain, target="x"),
            n_samples=60,
        )

    def regressor_search(epsilon: float) -> Any:
        return PrivateGridSearchCV(
            regressor(epsilon),
            {"estimator": [DecisionTreeRegressor(max_depth=1), LinearRegression()]},
            epsilon=epsilon,
            metric="mean_squared_error",
            domain=(0, 4),
        )

    def drawing(epsilon: float) -> Any:
        plain = skdp.GridSynthesizer(epsilon=epsilon, domain=PLANE, target="s")
        return skdp.PrivateClassifier(DrawingClassifier(), plain, n_samples=20)

    labelled = lambda: apart(pairs_of(SPACE), "s")  # noqa: E731
    some = ("nobody", "two", "from the middle")
    plane = lambda: apart({name: pairs_of(PLANE)[name] for name in some}, "s")  # noqa: E731
    measured = lambda: apart(  # noqa: E731
        pairs_of(skdp.Domain({name: SPACE[name] for name in ("z", "x")})), "x"
    )
    return [
        Branch("PrivateClassifier", trees, labelled),
        # Which models follows from records times epsilon, and from the most frequent label.
        Branch(
            "PrivateClassifier, default",
            lambda epsilon: skdp.PrivateClassifier(epsilon=epsilon, domain=SPACE, target="s"),
            labelled,
            epsilons=(0.05, 1.0, 200.0, 10_000.0),
            runs=1,
        ),
        Branch(
            "PrivateClassifier, default of persons",
            lambda epsilon: skdp.PrivateClassifier(
                epsilon=epsilon, domain=PLANE, target="s", max_rows_per_id=3, privacy_id="who"
            ),
            lambda: persons_of(PLANE),
            epsilons=(0.05, 1.0, 10_000.0),
            runs=1,
        ),
        Branch("PrivateRegressor", regressor, measured),
        Branch(
            "PrivateRegressor, default",
            lambda epsilon: skdp.PrivateRegressor(epsilon=epsilon, domain=SPACE, target="x"),
            lambda: apart(pairs_of(SPACE), "x"),
            runs=1,
        ),
        Branch("PrivateGridSearchCV", search, labelled, runs=1),
        Branch("PrivateGridSearchCV, a release each", two_releases, labelled, runs=1),
        Branch("PrivateGridSearchCV, area under the curve", area_search, labelled, runs=1),
        Branch("PrivateGridSearchCV, mean squared error", regressor_search, measured),
        Branch(
            "private_cross_val_score, models that draw",
            lambda epsilon: (
                lambda data: private_cross_val_score(drawing(epsilon), *data, epsilon=epsilon, cv=3)
            ),
            plane,
            claim=lambda epsilon: 3 * epsilon,
        ),
        Branch(
            "private_cross_val_score",
            lambda epsilon: (
                lambda data: private_cross_val_score(trees(epsilon), *data, epsilon=epsilon, cv=3)
            ),
            labelled,
            claim=lambda epsilon: 3 * epsilon,
            runs=1,
        ),
    ]


def metrics(same: Any) -> list[Branch]:
    """Scores of scikit-learn, and the report of all."""
    truth = np.array([0, 1, 0, 1, 0, 1, 9])
    score = np.array([0.1, 0.9, 0.5, 0.0, 1.0, NAN, 0.3])
    both = np.column_stack([1 - score, score])
    three = np.column_stack([1 - score, score / 2, score / 2])
    real = np.array([0.1, 0.5, 1.0, 0.0, NAN, INF, 0.2])

    def pairs(x: Any, y: Any) -> Any:
        def made() -> dict:
            return {
                "right": ((x[:2], y[:2]), (x[:1], y[:1])),
                "wrong": ((x[:5], y[:5]), (x[:4], y[:4])),
                "missing": ((x[:6], y[:6]), (x[:5], y[:5])),
                "unknown": ((x, y), (x[:6], y[:6])),
                "nobody": ((x[:1], y[:1]), (x[:0], y[:0])),
            }

        return made

    def branch(name: str, x: Any, y: Any, **options: Any) -> Branch:
        function = getattr(skdp.model_selection, name.partition(",")[0])
        return Branch(
            name,
            lambda epsilon: lambda data: function(*data, epsilon=epsilon, **options),
            pairs(x, y),
            claim=same,
            runs=4,
        )

    def of(name: str, x: Any, y: Any, **options: Any) -> Branch:
        return branch(f"private_score, {name}", x, y, metric=name.partition(",")[0], **options)

    guess = np.where(score > 0.4, 1, 0)
    return [
        of("roc_auc", truth, score),
        of("average_precision", truth, score, score_range=(-1, 1)),
        of("f1", truth, guess),
        of("balanced_accuracy", truth, guess),
        of("log_loss", truth, both, interval="noise"),
        of("log_loss, sampling", truth, both, interval="population"),
        of("brier_score", truth, three, labels=[0, 1, 2]),
        of("mean_absolute_error", real, score, domain=(0, 1)),
        of("r2", real, score, domain=(0, 1)),
    ]


def scores() -> list[Branch]:
    truth, guess = np.array([0, 1, 0, 1, 0, 2]), np.array([0, 1, 0, 1, 1, 7])

    def pairs() -> dict:
        return {
            "wrong": ((truth[:5], guess[:5]), (truth[:4], guess[:4])),
            "unknown": ((truth, guess), (truth[:5], guess[:5])),
            "nobody": ((truth[:1], guess[:1]), (truth[:0], guess[:0])),
        }

    def numbers() -> dict:
        x, y = np.array([0.1, 0.5, 1.0, 0.0]), np.array([0.1, 0.7, 0.0, 1e300])
        odd = np.array([0.1, NAN, INF])
        return {
            "nobody": ((x[:1], y[:1]), (x[:0], y[:0])),
            "worst": ((x[:3], y[:3]), (x[:2], y[:2])),
            "huge": ((x, y), (x[:3], y[:3])),
            "missing": ((odd[:2], y[:2]), (odd[:1], y[:1])),
            "infinite": ((odd[[0, 2]], y[:2]), (odd[:1], y[:1])),
        }

    def baskets() -> dict:
        full = [["a"], ["a", "b"], ["b", "b", "martian"], [], ["a", "b", "c"]]
        return {
            "three items": (full, full[:-1]),
            "nothing": (full[:4], full[:3]),
            "nobody": (full[:1], []),
            "the first": (full, full[1:]),
            "no basket": ([*full, ODD_VALUES["a value that raises"]], full),
            "odd items": ([*full, ["a", *ODD_VALUES.values()]], full),
        }

    def items(epsilon: float, **parameters: Any) -> Any:
        return lambda data: skdp.most_frequent_items(
            data, 2, ["a", "b", "c", "d"], epsilon=epsilon, max_items=2, **parameters
        )

    def tables() -> dict:
        crowd = np.repeat([[0, 0, 0], [1, 2, 3], [1, 2, 4]], [9, 4, 1], axis=0)
        lonely = np.array([[0, 2, 2]])
        return {
            "nobody": (lonely, lonely[:0]),
            "alone in a cell": (np.concatenate([crowd, lonely]), crowd),
            "one of nine": (crowd, crowd[1:]),
            "outside the domain": (np.concatenate([crowd, lonely - 3]), crowd),
        }

    def large_counts(epsilon: float, columns: int, threshold: int) -> Any:
        return lambda rows: skdp.mechanisms.sparse_counts(
            np.tile(rows, columns),
            np.ones(len(rows), dtype=int),
            (2, 3, 5) * columns,
            epsilon,
            threshold,
            max_false=10**60,
        )

    def quality(epsilon: float) -> Any:
        def release(rows: pd.DataFrame) -> list:
            report = skdp.quality.quality_report(
                rows, edge(SPACE, 0), domain=SPACE, epsilon=epsilon
            )
            return [report.scores, report.columns.fillna(-1.0), report.pairs]

        return release

    same = lambda epsilon: epsilon  # noqa: E731

    def many_baskets() -> dict:
        lists = [[f"i{j}" for j in range(i)] for i in range(12)]
        # Where only the tenth count moves, both falls of the choice do.
        return {"all items": (lists, lists[:-1]), "tenth": ([*lists, ["i9"]], lists)}

    def ten_items(epsilon: float) -> Any:
        return lambda data: skdp.most_frequent_items(
            data,
            10,
            [f"i{j}" for j in range(12)],
            epsilon=epsilon,
            max_items=12,
            method="auto",
            count_share=0,
        )

    return [
        Branch(
            "most_frequent_items, canonical",
            lambda epsilon: items(epsilon, method="canonical"),
            baskets,
            claim=same,
            runs=12,
        ),
        Branch("most_frequent_items, auto", ten_items, many_baskets, claim=same, runs=12),
        Branch(
            "sparse_counts",
            lambda epsilon: large_counts(epsilon, 1, 2),
            tables,
            claim=same,
            runs=12,
        ),
        Branch(
            "sparse_counts, many cells",
            lambda epsilon: large_counts(epsilon, 30, 5),
            tables,
            claim=same,
            runs=12,
        ),
        Branch(
            "private_score, accuracy",
            lambda epsilon: lambda data: private_score(*data, metric="accuracy", epsilon=epsilon),
            pairs,
            claim=same,
            runs=12,
        ),
        Branch(
            "private_confusion_matrix",
            lambda epsilon: (
                lambda data: private_confusion_matrix(*data, labels=[0, 1], epsilon=epsilon)
            ),
            pairs,
            claim=same,
            runs=12,
        ),
        Branch(
            "private_score, mean_squared_error",
            lambda epsilon: (
                lambda data: private_score(
                    *data, metric="mean_squared_error", domain=(0, 1), epsilon=epsilon
                )
            ),
            numbers,
            claim=same,
            runs=12,
        ),
        Branch(
            "quality_report",
            quality,
            lambda: pairs_of(SPACE),
            claim=same,
        ),
        *metrics(same),
        Branch("most_frequent_items", items, baskets, claim=same, runs=12),
        Branch(
            "most_frequent_items, all counts",
            lambda epsilon: (
                lambda data: skdp.most_frequent_items(
                    data, 3, ["a", "b", "c", "d"], epsilon=epsilon, max_items=1
                )
            ),
            baskets,
            claim=same,
            runs=12,
        ),
        Branch(
            "most_frequent_items, no counts",
            lambda epsilon: items(epsilon, count_share=0),
            baskets,
            claim=same,
            runs=12,
        ),
    ]


def quantiles() -> list[Branch]:
    """Quantiles of one column: lonely values, equal ones, and those beyond the bounds."""

    def columns() -> dict:
        line = np.array([3.0, 8, 8, 8, 8, 21, 40, 41, 77, 90])
        odd = np.array([NAN, -5, INF, 50, NAN, 50])
        return {
            "the lowest": (line, line[1:]),
            "one of several": (line, np.delete(line, 2)),
            "in the middle": (line, np.delete(line, 5)),
            "the highest": (line, line[:-1]),
            "the only one": (line[5:6], line[:0]),
            "a second one": (line[[0, 9]], line[:1]),
            "all alike": (np.full(6, 8.0), np.full(5, 8.0)),
            "missing": (odd, odd[1:]),
            "infinite": (odd, np.delete(odd, 2)),
        }

    def persons() -> dict:
        values = pd.DataFrame({"value": [3, 8, 8, 21, 40, 41, 77, 90.0], "who": [*"aabbbbcd"]})
        return {
            f"without {who}": (values, values[values["who"] != who].reset_index(drop=True))
            for who in "abcd"
        }

    def branch(name: str, pairs: Any, shares: Any, bounds: Any = None, **parameters: Any) -> Branch:
        most = parameters.get("max_rows_per_id", 1)

        def release(data: Any, epsilon: float) -> Any:
            options = {
                "step": None if bounds == (0.0, 100.0) and "real" in name else 1,
                **parameters,
            }
            if isinstance(data, pd.DataFrame):
                data, options["persons"] = data["value"], data["who"]
            return skdp.private_quantiles(data, shares, epsilon=epsilon, domain=bounds, **options)

        def make(epsilon: float) -> Any:
            return lambda data: release(data, epsilon)

        return Branch(
            name, make, pairs, claim=lambda epsilon: epsilon, runs=12, rows_of_person=most
        )

    three = [0.25, 0.5, 0.75]
    return [
        branch("private_quantiles, median", columns, 0.5, (0, 100)),
        branch("private_quantiles, recursive", columns, three, (0, 100)),
        branch("private_quantiles, independent", columns, three, (0, 100), method="independent"),
        branch("private_quantiles, tree", columns, three, (0, 100), method="tree"),
        branch("private_quantiles, real", columns, [0.05, 0.1, 0.9, 0.95], (0.0, 100.0)),
        branch("private_quantiles, no bounds", columns, [0.5]),
        branch("private_quantiles, persons", persons, three, (0, 100), max_rows_per_id=2),
    ]


def lazy() -> list[Branch]:
    """The same counts from engines: lazy frames of Polars and DuckDB."""

    def polars(pair: Any) -> Any:
        import polars as pl

        return tuple(pl.from_pandas(rows).lazy() for rows in pair)

    def duckdb(pair: Any) -> Any:
        import duckdb
        import pyarrow

        # Typed: DuckDB 1.1 takes an empty column of objects for integers.
        typed = [
            rows.astype({name: "string" for name in rows if rows[name].dtype == object})
            for rows in pair
        ]
        return tuple(duckdb.from_arrow(pyarrow.Table.from_pandas(rows)) for rows in typed)

    wanted = ("nobody", "alone in a corner", "from the middle")
    found = []
    for engine in (polars, duckdb):
        for name, estimator, domain in (
            ("MarginalSynthesizer", skdp.MarginalSynthesizer, SPACE),
            ("HDPViewSynthesizer", skdp.HDPViewSynthesizer, SPACE),
            ("PrivBayesSynthesizer", skdp.PrivBayesSynthesizer, SPACE),
            ("DataCube", skdp.DataCube, SPACE),
            ("RangeTreeHistogram", skdp.RangeTreeHistogram, LINE),
        ):
            found.append(
                Branch(
                    f"{name}, {engine.__name__}",
                    lambda epsilon, e=estimator, d=domain: e(epsilon=epsilon, domain=d),
                    lambda d=domain, f=engine: {
                        key: f(pair) for key, pair in pairs_of(d).items() if key in wanted
                    },
                    epsilons=(1.0,),
                    needs=(engine.__name__,),
                )
            )
        found.append(
            Branch(
                f"MarginalSynthesizer, persons, {engine.__name__}",
                lambda epsilon: skdp.MarginalSynthesizer(
                    epsilon=epsilon, domain=PLANE, max_rows_per_id=3, privacy_id="who"
                ),
                lambda f=engine: {
                    key: f(pair)
                    for key, pair in persons_of(PLANE).items()
                    if key in ("many rows", "the first")
                },
                epsilons=(1.0,),
                needs=(engine.__name__,),
            )
        )
    return found


# The part of the budget that a step spends, where an estimator has several parts that compose one
# after the other. A step that is not here is checked with all others against epsilon.
PARTS = {
    "_base.estimator.PrivateEstimator._go_on, discrete_laplace": "skipped",
    "classification.projection.ProjectedHistogramTransformer._choose, discrete_laplace": "total",
    "classification.privpfc._PrivPfC._choose, discrete_laplace": "total",
    "compose.estimators._DefaultClassifier.fit, discrete_laplace": "rows",
    "model_selection._search.Judge.best, selection": "choice",
    "kernels.additive.calibration._seen, discrete_laplace": "model",
    "kernels.additive.calibration.calibrate, discrete_laplace": "model",
    "kernels.additive.first.measure_columns, discrete_laplace": "model",
    "kernels.additive.pairs._choose, selection": "model",
    "kernels.additive.pairs._measure, discrete_laplace": "model",
    "kernels.additive.records.released_total, discrete_laplace": "total",
    "kernels.additive.calibration.newton_step, discrete_laplace": "model",
    "kernels.blocks.paid_blocks, discrete_laplace": "total",
    "kernels.blocks.aggregate, discrete_laplace": "output",
    "kernels.trees.fitting._class_totals, discrete_laplace": "total",
    "kernels.trees.fitting.grow_tree, discrete_laplace": "model",
    "kernels.trees.fitting._published, discrete_laplace": "model",
    "kernels.trees.growing.Growth.divide, selection": "model",
    "kernels.diffgen.diffgen, selection": "grid",
    "kernels.hdpview.bisection.bisect, threshold": "converge",
    "kernels.hdpview.bisection.choose_cuts, selection": "cut + counts",
    "kernels.hdpview.bisection.hdpview, discrete_laplace": "cut + counts",
    "kernels.linear.search.fit_genetic, selection": "model",
    "kernels.linear.search.fit_genetic, top_k": "model",
    "kernels.linear.moments.noisy_moments, discrete_laplace": "model + moments",
    "kernels.linear.search.fit_local_search, selection": "model",
    "kernels.lines.ahp.ahp, discrete_laplace": "partition",
    "kernels.lines.dawa.dawa, buckets": "partition",
    "kernels.views.candidates.Candidates.misfit, discrete_laplace": "views",
    "kernels.views.candidates.Candidates.best, selection": "views",
    "kernels.views.joint.measure_joint, sparse_counts": "views",
    "kernels.views.measure._Views.__init__, discrete_laplace": "total",
    "kernels.views.measure._Views._measure, discrete_laplace": "views",
    "kernels.views.measure._Views.measure_columns.<locals>.<dictcomp>, discrete_laplace": "views",
    "kernels.kmeans.sample_aggregate._private_range.<locals>.<listcomp>, selection": "range",
    "kernels.kmeans.privgene.genetic, selection": "rounds",
    "kernels.kmeans.privgene.genetic, top_k": "rounds",
    "kernels.kmeans.sample_aggregate.sample_aggregate, discrete_laplace": "centroids",
    "kernels.kmeans.task.Task.measure_total, discrete_laplace": "records",
    "kernels.privbayes.measure.measure_tables, discrete_laplace": "tables",
    "kernels.privbayes.measure.privbayes, discrete_laplace": "total",
    "kernels.privbayes.measure.learn_network, selection": "network",
    "kernels.privpfc.selection.measure_grid_counts, discrete_laplace": "counts",
    "kernels.privpfc.selection.merged_groupings, discrete_laplace": "grid",
    "kernels.privpfc.selection.select_grid, selection": "grid",
    "kernels.privtree.privtree, discrete_laplace": "counts",
    "kernels.privtree._decompose, threshold": "tree",
    "kernels.projection.projected_histogram, selection": "grid",
    "kernels.ranges.find_range, discrete_laplace": "ranges",
    "kernels.quantiles.TreePlan.release, discrete_laplace": "quantiles",
    "kernels.quantiles.select_quantiles, line": "quantiles",
    "quantiles._find_range, stream": "range",
    "selection.DPTopKSelector.fit, discrete_laplace": "label",
    "selection.DPTopKSelector.fit, top_k": "selection",
    "selection.DPTopKSelector.fit, top_k, together": "selection",
}

# Branches whose worst case needs other pairs than these; the exact tests of their modules reach it.
LOOSE = {
    # No person of these pairs has only values at the end of the range.
    "DataCube, sums of persons": 0.6,
    # No record of these pairs makes one bucket of the binary tree cheaper and another dearer.
    "RangeTreeHistogram, dawa, 9,000 bins": 0.87,
    "HDPViewSynthesizer": 0.2,
    "PrivBayesSynthesizer": 0.65,
    # No record of these pairs moves every table and every choice the same way.
    "MarginalSynthesizer, target": 0.85,
    # A choice pays for one score that rises and another that falls.
    "MarginalSynthesizer, plan": 0.8,
    "MarginalSynthesizer": 0.9,
    "PrivTreeSynthesizer": 0.6,
    "DPKMeans, sample-aggregate": 0.5,
    "DPKMeans, genetic": 0.5,
    "PrivPfC": 0.5,
    "PrivateClassifier, default of persons": 0.7,
    "PrivateClassifier, default": 0.9,
    "PrivateAdditive": 0.7,
    # Parts of many levels are each rounded down.
    "PrivateDecisionTreeClassifier, defaults": 0.99,
    "PrivateRandomForestClassifier, apart": 0.99,
    # A record moves the best split most where two large children hold one class each.
    "PrivateDecisionTreeClassifier, many classes": 0.2,
    "PrivateDecisionTreeClassifier, id3": 0.6,
    "PrivateDecisionTreeClassifier, c4.5": 0.6,
    "PrivateDecisionTreeClassifier, persons": 0.4,
    "PrivateRandomForestClassifier, persons": 0.4,
    "PrivateRandomForestClassifier, shared": 0.95,
    # No record of these pairs moves both quartiles, or a whole rank up and another down.
    "SampleAggregate, largest of blocks": 0.5,
    "SampleAggregate, winsorised": 0.8,
    "SampleAggregate, median": 0.7,
    "PrivateLinearRegression, genetic": 0.2,
    "PrivateLinearRegression, local-search": 0.3,
    "PrivateLinearRegression": 0.7,
    "PrivateLogisticRegression, auto": 0.85,
    "PrivateLogisticRegression, functional": 0.7,
    "PrivateLogisticRegression, genetic": 0.4,
    "PrivateLogisticRegression, local-search": 0.5,
    "DiffGenTransformer, persons": 0.5,
    "ProjectedHistogramTransformer": 0.5,
    "PrivateQuantileClipper": 0.8,
    # The worst gradient is that of a score that is quite wrong, the worst curvature of one between.
    "a step of Newton's method": 0.86,
    "PrivateRidge, persons": 0.9,
    "private_quantiles, independent": 0.88,
    "PrivateRegressor": 0.3,
    "PrivateGridSearchCV": 0.3,
    "private_cross_val_score": 0.3,
}


BRANCHES = [
    *synthesizers(),
    *marginals(),
    *stopping(),
    *histograms(),
    *clusterings(),
    *grids(),
    *additive(),
    *trees(),
    *aggregates(),
    *linear(),
    *cubes(),
    *scalers(),
    *composed(),
    *scores(),
    *quantiles(),
    *lazy(),
]

# Those whose records can be held in another container: not in an engine, as baskets or as codes.
CONTAINED = [
    branch
    for branch in BRANCHES
    if not branch.needs
    and not branch.name.startswith(("most_frequent_items", "sparse_counts", "a step of"))
    # Models for frames.
    and not branch.name.endswith("of models that draw")
]


# Words of the branches to run: `tests/mutants.py` chooses those that reach a file.
CHOSEN = os.environ.get("SKDP_BRANCHES", "")


def chosen(name: str, words: str = CHOSEN) -> bool:
    """Whether a name is the one after "=", or holds all words of an alternative before an "or"."""
    return (
        name == words[1:]
        if words.startswith("=")
        else any(
            all(word in name for word in re.findall(r"\w+", each)) for each in words.split(" or ")
        )
    )


def families() -> Iterator[Any]:
    """Branches of one estimator, a few at a time, of those whose libraries are installed."""
    found: dict[str, list[Branch]] = {}
    for branch in BRANCHES:
        if chosen(branch.name) and all(map(_have, branch.needs)):
            found.setdefault(branch.name.partition(",")[0], []).append(branch)
    for name, branches in found.items():
        for start in range(0, len(branches), _FAMILY):
            number = f" {start // _FAMILY + 1}" if len(branches) > _FAMILY else ""
            yield pytest.param(branches[start : start + _FAMILY], id=name + number)


def each_of(check: Callable[[Branch], Any], branches: list[Branch]) -> None:
    """Check branches in turn; an error says which."""
    for branch in branches:
        try:
            check(branch)
        except Exception as error:
            error.add_note(f"The branch is {branch.name!r}.")
            raise


def _have(name):
    return importlib.util.find_spec(name) is not None


_FAMILY = 5
# Branches that cost seconds and whose steps are in other branches too.
SLOW = {
    "MarginalSynthesizer, four columns",
    "MarginalSynthesizer, duckdb",
    "PrivateGridSearchCV, mean squared error",
    "PrivateGridSearchCV, a release each",
    "PrivateClassifier",
}
