"""Every estimator and every branch of its parameters, with pairs of data sets that are hard on it.

They stand in `replays.toml`, and `audit/test_replay.py` replays all of them. A new estimator, or a
parameter that changes what is measured, is added there (test_replay.py fails until every estimator
is).
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import tomllib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import neighbours
import numpy as np
import pandas as pd
import pytest
from neighbours import (
    BOX,
    NUMBERS,
    PLANE,
    SPACE,
    Pairs,
    apart,
    arrays_of,
    edge,
    labels_and_scores,
    pairs_of,
    persons_of,
    spread,
    with_broken_rules,
)
from odd_values import CONTAINERS, ODD_VALUES, odd_pair
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skdp
from skdp import inspection, model_selection
from skdp.model_selection import PrivateGridSearchCV
from skdp.release import Boxes, BoxModel, Intervals

EPSILONS = (0.05, 1.0, 1000.0)


def _first(data: Any) -> Any:
    return data[0] if isinstance(data, tuple) else data


def n_rows(data: Any) -> int:
    """Rows of a table, or of the first part of a pair of X and y."""
    return len(_first(data))


@dataclass(frozen=True)
class Branch:
    """An estimator, or a function of the data, and pairs to replay it on."""

    name: str
    make: Callable[[float], Any]
    pairs: Callable[[], Pairs]
    epsilons: tuple[float, ...] = EPSILONS
    # How often epsilon a function claims; None where the fitted estimator says it.
    times: float | None = None
    # Pairs of runs for each pair of data sets and epsilon; of 2, the default suite takes 1.
    runs: int = 2
    # What it needs besides skdp's own requirements.
    needs: tuple[str, ...] = ()
    # Rows that count of a person, in functions; estimators say it themselves.
    rows_of_person: int = 1

    def claim(self, epsilon: float) -> float | None:
        """What a replay is to claim; None where the fitted estimator says it."""
        return None if self.times is None else self.times * epsilon

    @property
    def usual(self) -> tuple[Any, ...]:
        """What a fit on the data set that is nearest to 40 rows is given."""
        found = min(
            (one for one, _ in self.pairs().values()), key=lambda one: abs(n_rows(one) - 40)
        )
        return found if isinstance(found, tuple) else (found,)

    def odd(self, everything: bool = False) -> Iterator[tuple[str, tuple[Any, Any]]]:
        """Pairs in other containers, with an odd value in the record: all, or one by turns."""
        pairs = self.pairs()
        data = min(
            (pair[1] for pair in pairs.values() if n_rows(pair[1])),
            key=lambda data: abs(n_rows(data) - 20),
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
        if self.name == "private_score, log_loss of three":
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


def of(
    name: str,
    *,
    on: Any = SPACE,
    pairs: Any = None,
    epsilons: tuple[float, ...] = EPSILONS,
    runs: int = 2,
    engine: Callable[[Any], Any] | None = None,
    **params: Any,
) -> Branch:
    """A branch of the estimator that its name begins with.

    Parameters
    ----------
    name : str
        A branch "persons" has these as the unit of privacy.
    on : Domain or pair
    pairs : function of the domain, or names of `pairs_of`
    engine : function of a pair of frames, default=None
        It holds them in its own way, and is named as the library that it needs.
    **params
        With a target, its column is taken out.
    """
    kind, _, about = name.partition(",")
    estimator = getattr(skdp, kind, None) or getattr(model_selection, kind)
    persons = "persons" in about
    target = None if persons else params.get("target")
    if persons:
        params |= {"max_rows_per_id": 3, "privacy_id": "who"}
    find = pairs if callable(pairs) else persons_of if persons else pairs_of

    def data() -> Pairs:
        found = find(on)
        if isinstance(pairs, list):
            found = {key: found[key] for key in pairs}
        if engine is not None:
            found = {key: engine(pair) for key, pair in found.items()}
        return apart(found, target) if target else found

    return Branch(
        name,
        lambda epsilon: estimator(**{"epsilon": epsilon, "domain": on, **params}),
        data,
        epsilons,
        runs=runs,
        needs=(engine.__name__,) if engine else (),
    )


def call(
    name: str,
    function: Callable[..., Any],
    pairs: Callable[[], Pairs],
    *,
    runs: int = 12,
    times: float = 1.0,
    rows_of_person: int = 1,
) -> Branch:
    """A branch of a function of the data and epsilon."""
    return Branch(
        name,
        lambda epsilon: lambda data: function(data, epsilon=epsilon),
        pairs,
        times=times,
        runs=runs,
        rows_of_person=rows_of_person,
    )


# --- what the table names: releases of tables

PRIOR = skdp.PublicTable(spread(SPACE, 300, seed=1))


def some_with_broken_rules(domain: Any) -> Pairs:
    wanted = ("two", "corners", "from the middle", "crowded", "a row of nan", "most break a rule")
    return {name: pair for name, pair in with_broken_rules(domain).items() if name in wanted}


def stopping(estimator: Any) -> Callable[[float], Any]:
    """A release that stops where records are lost: what was released then is in the error."""

    def make(epsilon: float) -> Callable[[Any], Any]:
        def fitted(rows: Any) -> Any:
            try:
                return estimator(epsilon=epsilon, domain=SPACE, on_loss="stop").fit(rows)
            except skdp.RecordsLostError as error:
                return error

        return fitted

    return make


# --- around other estimators


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
_installed = inspection.is_installed
inspection.is_installed = lambda module: module == __name__ or _installed(module)


class DrawingClassifier(ClassifierMixin, BaseEstimator):
    """Its labels are drawn from the generators of the process; predicting draws, too."""

    def fit(self, X: Any, y: Any) -> DrawingClassifier:
        self.classes_ = np.unique(y)
        self.coins_ = np.random.random(), random.random()  # noqa: NPY002
        return self

    def predict(self, X: Any) -> Any:
        draw_from_all(int(X["x"].nunique()))
        return np.repeat(self.classes_[int(2 * self.coins_[0]) : :][:1], len(X))


def blocks(name: str, *, model: Any, pairs: Any = None, **params: Any) -> Branch:
    """A branch of sample and aggregate."""

    def make(epsilon: float) -> Any:
        given = {"output_range": ([0, 0], [1, 1]), "output": "end_", **params}
        return skdp.SampleAggregate(model(), epsilon=epsilon, **given)

    return Branch(name, make, partial(pairs or arrays_of(2), None))


def trees(epsilon: float) -> Any:
    encoded = make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        DecisionTreeClassifier(max_depth=2),
    )
    release = skdp.MarginalSynthesizer(epsilon=epsilon, domain=SPACE, target="s")
    return skdp.PrivateClassifier(encoded, release, n_samples=60)


def regressor(epsilon: float) -> Any:
    release = skdp.HDPViewSynthesizer(epsilon=epsilon, domain=SPACE.select(["x", "z"]), target="x")
    return skdp.PrivateRegressor(DecisionTreeRegressor(max_depth=2), release, n_samples=60)


def search(epsilon: float, *, model: Any = trees, grid: Any = None, **params: Any) -> Any:
    grid = grid or {"estimator__decisiontreeclassifier__max_depth": [1, 3]}
    return PrivateGridSearchCV(model(epsilon), grid, epsilon=epsilon, **params)


def two_releases(epsilon: float) -> Any:
    return search(epsilon, grid={"synthesizer__epsilon": [epsilon, epsilon / 2]})


def regressor_search(epsilon: float) -> Any:
    grid = {"estimator": [DecisionTreeRegressor(max_depth=1), LinearRegression()]}
    return search(epsilon, model=regressor, grid=grid, metric="mean_squared_error", domain=(0, 4))


def three_folds(data: Any, epsilon: float) -> Any:
    return model_selection.private_cross_val_score(trees(epsilon), *data, epsilon=epsilon, cv=3)


def three_folds_that_draw(data: Any, epsilon: float) -> Any:
    plain = skdp.GridSynthesizer(epsilon=epsilon, domain=PLANE, target="s")
    model = skdp.PrivateClassifier(DrawingClassifier(), plain, n_samples=20)
    return model_selection.private_cross_val_score(model, *data, epsilon=epsilon, cv=3)


def labelled() -> Pairs:
    return apart(pairs_of(SPACE), "s")


def measured() -> Pairs:
    return apart(pairs_of(NUMBERS), "x")


def labelled_plane() -> Pairs:
    pairs = pairs_of(PLANE)
    return apart({name: pairs[name] for name in ("nobody", "two", "from the middle")}, "s")


# --- functions


def score(name: str, *, pairs: Any = None, runs: int = 4, **options: Any) -> Branch:
    """A branch of a score, by the metric that its name ends with."""
    given = {"metric": name.partition(", ")[2], **options}

    def release(data: Any, epsilon: float) -> Any:
        return model_selection.private_score(*data, epsilon=epsilon, **given)

    return call(name, release, pairs or labels_and_scores(), runs=runs)


@cache
def clusters() -> Any:
    return skdp.DPKMeans(2, epsilon=1.0, domain=(0, 8), random_state=0).fit(np.eye(9, 2) * 4)


def placed() -> Pairs:
    clusters()  # fitted before a replay begins
    return arrays_of(2)(BOX)


def distances(rows: Any, epsilon: float) -> Any:
    return model_selection.private_score(rows, clusters(), "nicv", epsilon=epsilon)


def quality(rows: Any, epsilon: float) -> Any:
    report = skdp.quality.quality_report(rows, edge(SPACE, 0), domain=SPACE, epsilon=epsilon)
    return [report.scores, report.columns, report.pairs]


of_labels = labels_and_scores(lambda score: np.where(score > 0.4, 1, 0))
of_shares = labels_and_scores(lambda score: np.column_stack([1 - score, score]))
of_three = labels_and_scores(lambda score: np.column_stack([1 - score, score / 2, score / 2]))


def baskets() -> Pairs:
    full = [["a"], ["a", "b"], ["b", "b", "martian"], [], ["a", "b", "c"]]
    return {
        "three items": (full, full[:-1]),
        "nothing": (full[:4], full[:3]),
        "nobody": (full[:1], []),
        "the first": (full, full[1:]),
        "no basket": ([*full, ODD_VALUES["a value that raises"]], full),
        "odd items": ([*full, ["a", *ODD_VALUES.values()]], full),
    }


def items(name: str, *, k: int = 2, pairs: Any = baskets, **options: Any) -> Branch:
    """A branch of frequent items."""
    given = {"items": ["a", "b", "c", "d"], "max_items": 2, **options}

    def release(data: Any, epsilon: float) -> Any:
        return skdp.most_frequent_items(data, k, epsilon=epsilon, **given)

    return call(name, release, pairs)


def large_counts(rows: Any, epsilon: float, columns: int, threshold: int) -> Any:
    return skdp.mechanisms.sparse_counts(
        np.tile(rows, columns),
        np.ones(len(rows), dtype=int),
        (2, 3, 5) * columns,
        epsilon,
        threshold,
        max_false=10**60,
    )


# One box for the whole plane, as an earlier release might have it.
ONE_BOX = skdp.Synopsis(
    PLANE, BoxModel(Boxes([[0, 0]], [list(PLANE.shape)]), [8], PLANE.shape, Intervals(0.2))
)


def asked(rows: Any, epsilon: float) -> Any:
    """A session in which later questions depend on which answers were paid for."""
    curator = skdp.Curator(rows, ONE_BOX, epsilon=epsilon, threshold=2, max_paid=2)
    told = []
    for query in ("x < 1", None, "x < 1 or x > 3", "x < 1", None):
        if curator.remaining:
            told.append(curator.ask(query if curator.remaining == 2 else None))
    return told, curator.remaining, curator.history.drop(columns="query").to_numpy().tolist()


def quantiles(
    name: str,
    *,
    shares: Any = (0.25, 0.5, 0.75),
    on: Any = (0, 100),
    pairs: Any = neighbours.values_on_a_line,
    **options: Any,
) -> Branch:
    """A branch of quantiles."""

    def release(data: Any, epsilon: float) -> Any:
        given = {"step": 1, **options}
        if isinstance(data, pd.DataFrame):
            data, given["persons"] = data["value"], data["who"]
        return skdp.private_quantiles(data, shares, epsilon=epsilon, domain=on, **given)

    return call(name, release, pairs, rows_of_person=options.get("max_rows_per_id", 1))


# --- the same counts from engines


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


# --- all of them

_MAKERS = {
    "SampleAggregate": blocks,
    "most_frequent_items": items,
    "private_quantiles": quantiles,
    "private_score": score,
}


def tabled() -> Iterator[Branch]:
    """The branches of the table."""
    names = {**vars(neighbours), **globals()}
    expressions = ("on", "pairs", "engine", "model", "make", "function")

    def meant(key: str, value: Any) -> Any:
        if isinstance(value, str) and (key in expressions or value[0] == "="):
            return eval(value.removeprefix("= "), names)
        return tuple(value) if key == "epsilons" else value

    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    for kind, entries in tomllib.loads(text).items():
        shared = entries.pop("*", {})
        for about, entry in entries.items():
            given = {key: meant(key, value) for key, value in {**shared, **entry}.items()}
            usual = _MAKERS.get(kind, of)
            maker = Branch if "make" in given else call if "function" in given else usual
            yield maker(f"{kind}, {about}" if about else kind, **given)


BRANCHES = [*tabled()]

# Those whose records can be held in another container: not in an engine, as baskets or as codes.
CONTAINED = [
    branch
    for branch in BRANCHES
    if not branch.needs
    and not branch.name.startswith(("most_frequent_items", "sparse_counts", "a step of"))
    # Models for frames.
    and not branch.name.endswith("models that draw")
]

# Estimators that charge a ledger of their own.
CHARGED = [
    branch
    for branch in BRANCHES
    if not branch.needs
    and branch.times is None
    and {"ledger", "random_state"} <= {*getattr(branch.make(1.0), "get_params", dict)()}
    and "synthesizer__epsilon" not in branch.make(1.0).get_params()
    and "param_grid" not in branch.make(1.0).get_params()
]

# --- which of them run

# Words of the branches to run: `tests/mutants.py` chooses those that reach a file.
CHOSEN = os.environ.get("SKDP_BRANCHES", "")
_FAMILY = 5
# Branches that cost seconds and whose steps are in other branches too.
SLOW = {
    "MarginalSynthesizer, four columns",
    "MarginalSynthesizer, duckdb",
    "PrivateGridSearchCV, a release each",
    "PrivateClassifier",
}


def chosen(name: str, words: str = CHOSEN) -> bool:
    """Whether a name is one after "=", or holds all words of an alternative; "or" is between."""
    if words.startswith("="):
        return name in words[1:].split(" or ")
    alternatives = (re.findall(r"\w+", each) for each in words.split(" or "))
    return any(all(word in name for word in each) for each in alternatives)


def families() -> Iterator[Any]:
    """Branches of one estimator, a few at a time, of those whose libraries are installed."""
    found: dict[str, list[Branch]] = {}
    for branch in BRANCHES:
        if chosen(branch.name) and all(map(importlib.util.find_spec, branch.needs)):
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
