"""The task "inference": the same noisy tables, and what each library makes of them.

The sets that are measured are chosen from the true table: what is compared is not a release, but
the step after the noise. They are a tree of pairs, triples that share pairs (both are what a
junction tree is made for), or a tree and as many more pairs, which close loops.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _data
from skdp import Categorical, Domain, Numeric
from skdp._random import noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.mechanisms import discrete_laplace, discrete_laplace_variance

__all__ = ["KINDS", "problems"]

Axes = tuple[int, ...]
Floats = NDArray[np.float64]
KINDS = ("a tree", "triples", "loops")
# Cells of the largest table that is measured or asked for.
_MOST_CELLS = 20_000
# Sets that are asked for and were not measured.
_PAIRS, _TRIPLES = 20, 10
# Numbers of more values than this are compared in bins.
_BINS = 16
_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_SURVEY = "AGEP DEYE DVET EDU HOUSING_TYPE MSP OWN_RENT PINCP_DECILE RAC1P SEX".split()


class Problem(NamedTuple):
    """Noisy tables for a worker, and the score of the tables that it gives back."""

    setting: str
    data: dict[str, Any]
    score: Callable[[dict[str, Any]], dict[str, float]]


def problems(epsilon: float, quick: bool) -> Iterator[Problem]:
    """Every table with every kind of sets."""
    for name in ("NIST",) if quick else TABLES:
        codes, shape = TABLES[name]()
        for kind in KINDS[:1] if quick else KINDS:
            yield _problem(name, codes, shape, kind, epsilon)


def nist() -> tuple[Any, tuple[int, ...]]:
    """Ten columns; ages in bins."""
    path = _data.data_path("nist", "national2019.csv.gz")
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)[_SURVEY]
    attributes: dict[str, Any] = {
        name: Categorical(sorted(rows[name].unique(), key=lambda text: (len(text), text)))
        for name in _SURVEY
    }
    rows["AGEP"] = rows["AGEP"].astype(int)
    return _binned(rows, Domain(attributes | {"AGEP": Numeric(0, 99, integer=True)}))


def adult() -> tuple[Any, tuple[int, ...]]:
    """All 15 columns; numbers in bins."""
    table = _data.hdpview_table("adult")
    domain = Domain(
        {
            name: Numeric(0, size - 1, integer=True)
            if name in _NUMBERS
            else Categorical(list(range(size)))
            for name, size in zip(table.columns, table.shape, strict=True)
        }
    )
    codes = np.repeat(table.codes, table.counts, axis=0)
    return _binned(pd.DataFrame(codes, columns=list(table.columns)), domain)


def wide() -> tuple[Any, tuple[int, ...]]:
    """All 24 columns of NIST's excerpt; numbers in bins, where "N" is one more."""
    rows = pd.read_csv(
        _data.data_path("nist", "national2019.csv.gz"), dtype=str, keep_default_na=False
    )
    codes, shape = [], []
    for name in rows:
        code, values = pd.factorize(rows[name])
        size = len(values)
        if size > 30:
            x = pd.to_numeric(rows[name], errors="coerce")
            place = np.floor((x - x.min()) / (x.max() - x.min()) * _BINS).clip(0, _BINS - 1)
            code, size = place.fillna(_BINS).to_numpy(dtype=np.int64), _BINS + 1
        codes.append(code)
        shape.append(size)
    return np.column_stack(codes), tuple(shape)


def _binned(rows: pd.DataFrame, domain: Domain) -> tuple[Any, tuple[int, ...]]:
    """Codes, those of numbers of many values in bins, and how many there are."""
    codes, sizes = np.array(domain.encode(rows)), list(domain.shape)
    for axis, attribute in enumerate(domain.attributes):
        if isinstance(attribute, Numeric) and sizes[axis] > _BINS:
            codes[:, axis] = codes[:, axis] * _BINS // sizes[axis]
            sizes[axis] = _BINS
    return codes, tuple(sizes)


TABLES: dict[str, Callable[[], tuple[Any, tuple[int, ...]]]] = {
    "NIST": nist,
    "Adult": adult,
    "NIST, wide": wide,
}


def _problem(name: str, codes: Any, shape: Sequence[int], kind: str, epsilon: float) -> Problem:
    chosen, rounds = _sets(codes, shape, kind)
    singles = [(axis,) for axis in range(len(shape))]
    # A third of epsilon for the single columns, as MST has it; the rest for the sets.
    budget = Fraction(epsilon).limit_denominator(1000)
    costs = [budget / 3 / len(singles)] * len(singles)
    costs += [2 * budget / 3 / len(chosen)] * len(chosen)
    measured = [*singles, *chosen]
    exact = [_counts(codes, shape, axes) for axes in measured]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        source = noise_source(0)
    noisy = [
        discrete_laplace(table, cost, random_state=source)
        for table, cost in zip(exact, costs, strict=True)
    ]
    others = _others(chosen, shape)
    asked = [*chosen, *others]
    truth = [_counts(codes, shape, axes) / len(codes) for axes in asked]
    data = {
        "shape": np.array(shape),
        "sets": _padded(measured),
        "rounds": np.array([0] * len(singles) + rounds),
        "variances": np.array([discrete_laplace_variance(cost) for cost in costs]),
        "noisy": np.concatenate([table.ravel() for table in noisy]).astype(np.float64),
        "asked": _padded(asked),
        "epsilon": epsilon,
    }
    groups = {
        "measured": range(len(chosen)),
        "other pairs": [i for i in range(len(chosen), len(asked)) if len(asked[i]) == 2],
        "other triples": [i for i in range(len(chosen), len(asked)) if len(asked[i]) == 3],
    }

    def score(result: dict[str, Any]) -> dict[str, float]:
        ends = np.cumsum([table.size for table in truth])[:-1]
        tables = np.split(result["tables"], ends)
        errors = [
            np.abs(np.maximum(table, 0) / max(table.sum(), 1e-9) - true.ravel()).sum() / 2
            for table, true in zip(tables, truth, strict=True)
        ]
        found = {
            key: float(np.mean([errors[i] for i in part])) for key, part in groups.items() if part
        }
        return {**found, "CPU s": result["cpu"], "CPU s of the answers": result["answering"]}

    return Problem(f"{name}, {kind}", data, score)


def _sets(codes: Any, shape: Sequence[int], kind: str) -> tuple[list[Axes], list[int]]:
    """Sets of a kind, those that depend most on each other, and the round of each."""
    told = {
        pair: _information(_counts(codes, shape, pair) / len(codes))
        for pair in itertools.combinations(range(len(shape)), 2)
        if math.prod(shape[axis] for axis in pair) <= _MOST_CELLS
    }
    best = sorted(told, key=lambda pair: (-told[pair], pair))
    if kind == "triples":
        triples = _triples(best[0], told, shape)
        return triples, [1 + place * 3 // len(triples) for place in range(len(triples))]
    component = np.arange(len(shape))
    tree: list[Axes] = []
    for a, b in best:
        if component[a] != component[b]:
            tree.append((a, b))
            component[component == component[b]] = component[a]
    if kind == "a tree":
        return tree, [1] * len(tree)
    more = [pair for pair in best if pair not in tree][: len(tree)]
    return [*tree, *more], [1] * len(tree) + [2] * len(more)


def _triples(first: Axes, told: dict[Any, float], shape: Sequence[int]) -> list[Axes]:
    """Each next column joins the two joined columns that tell most about it."""
    edges, joined, found = [first], set(first), []
    while len(joined) < len(shape):
        strength = {
            (edge, axis): sum(told.get((min(axis, b), max(axis, b)), 0.0) for b in edge)
            for edge in edges
            for axis in range(len(shape))
            if axis not in joined
            and math.prod(shape[other] for other in (*edge, axis)) <= _MOST_CELLS
        }
        if not strength:
            break
        edge, axis = max(strength, key=lambda both: strength[both])
        found.append(tuple(sorted((*edge, axis))))
        edges += [(edge[0], axis), (edge[1], axis)]
        joined.add(axis)
    return found


def _others(measured: Sequence[Axes], shape: Sequence[int]) -> list[Axes]:
    """Some pairs and triples within no measured set."""
    rng = np.random.default_rng(0)
    found: list[Axes] = []
    for order, most in ((2, _PAIRS), (3, _TRIPLES)):
        sets = [
            axes
            for axes in itertools.combinations(range(len(shape)), order)
            if not any(set(axes) <= set(each) for each in measured)
            and math.prod(shape[axis] for axis in axes) <= _MOST_CELLS
        ]
        found += [sets[i] for i in sorted(rng.permutation(len(sets))[:most])]
    return found


def _counts(codes: Any, shape: Sequence[int], axes: Axes) -> NDArray[np.int64]:
    sizes = [shape[axis] for axis in axes]
    cell = np.ravel_multi_index(tuple(codes[:, axis] for axis in axes), sizes)
    return np.bincount(cell, minlength=math.prod(sizes)).reshape(sizes)


def _information(table: Floats) -> float:
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    there = table > 0
    return float((table[there] * np.log(table[there] / apart[there])).sum())


def _padded(sets: Sequence[Axes]) -> NDArray[np.int64]:
    return np.array([[*axes, *[-1] * (3 - len(axes))] for axes in sets])
