"""Any two tables of one schema that get the same answers run alike, in every branch.

Whatever a run decides by must have been released to it before. So each branch is replayed on tables
that have nothing to do with each other, on either side of all that the code tells apart.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from replays import BRANCHES, SLOW, Branch, parameters
from sklearn.base import BaseEstimator

from skdp.audit import replay
from skdp.audit._replay import replay_any
from skdp.audit._tapes import OUTPUTS
from skdp.exceptions import ReplayError
from skdp.mechanisms import discrete_laplace, noisy_max

MODES = tuple(OUTPUTS)
# More rows than most thresholds of answers, at epsilon 1; up to which epsilon they are recorded.
MANY, MIDDLE = 3_000, 10
# Tables that are on different sides of most thresholds.
EXTREMES = ("many unrelated", "nobody at all", "many alike")
# A run makes several releases and models, which have branches of their own: one recording of each.
SEARCHES = ("PrivateGridSearchCV", "private_cross_val_score")


def n_rows(data: Any) -> int:
    """Rows of a table, or of the first part of a pair of X and y."""
    return len(data[0] if isinstance(data, tuple) else data)


def take(data: Any, places: Any) -> Any:
    """The rows at some places, in the same container."""
    if isinstance(data, tuple):
        return tuple(take(part, places) for part in data)
    if isinstance(data, pd.DataFrame | pd.Series):
        return data.iloc[places].reset_index(drop=True)
    return [data[place] for place in places] if isinstance(data, list) else data[places]


def each_column(data: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """The same table with other values of the same types, column by column."""
    if isinstance(data, tuple):
        return tuple(each_column(part, change) for part in data)
    if isinstance(data, pd.DataFrame):
        return pd.DataFrame({name: each_column(data[name], change) for name in data})
    if isinstance(data, pd.Series):
        return pd.Series(change(data.to_numpy()), index=data.index, dtype=data.dtype)
    columns = data if data.ndim == 2 else data[:, None]
    found = np.empty_like(columns)
    for place, column in enumerate(columns.T):
        found[:, place] = change(column)
    return found.reshape(data.shape)


def constant(number: float, text: Any, integer: int) -> Callable[[np.ndarray], Any]:
    """One value in all columns of a type."""
    by_kind = {"f": number, "i": integer, "u": integer}

    def change(column: np.ndarray) -> np.ndarray:
        value = by_kind.get(column.dtype.kind, text)
        return np.full(len(column), value, dtype=column.dtype)

    return change


def narrow(column: np.ndarray) -> Any:
    """Numbers that are nearly alike, and one text."""
    if not len(column):
        return column
    if column.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return column[0] + 1e-4 * np.nan_to_num(column - column[0], posinf=0, neginf=0)
    return np.repeat(column[:1], len(column))


def unrelated(column: np.ndarray, rng: np.random.Generator) -> Any:
    """Values in another order in each column; half of the numbers anywhere between the ends."""
    mixed = column[rng.permutation(len(column))]
    if column.dtype.kind == "f" and np.isfinite(column).any():
        ends = column[np.isfinite(column)]
        anywhere = rng.uniform(ends.min(), ends.max(), len(column))
        mixed = np.where(rng.random(len(column)) < 0.5, anywhere, mixed)
    return mixed


def tables_of(branch: Branch) -> dict[str, Any]:
    """Arbitrary tables of the schema of a branch; one with usual values comes first."""
    given = {name: pair[0] for name, pair in branch.pairs().items()}
    if branch.needs:
        # An engine only counts: the same methods are tried in memory.
        return given | {f"{name}, less": pair[1] for name, pair in branch.pairs().items()}
    usual = min(given, key=lambda name: abs(n_rows(given[name]) - 40))
    base = given.pop(usual)
    n = n_rows(base)
    rng = np.random.default_rng(zlib.crc32(branch.name.encode()))
    found = {
        usual: base,
        "nobody at all": take(base, []),
        "many alike": take(base, np.zeros(MANY, dtype=int)),
        "in another order": take(base, rng.permutation(n)),
        "backwards": take(base, np.arange(n)[::-1]),
        "every row five times": take(base, np.repeat(np.arange(n), 5)),
        "half of the rows, each twice": take(base, np.repeat(np.arange((n + 1) // 2), 2)),
        "one of them": take(base, [0]),
    }
    if not isinstance(base, list):
        more = take(base, rng.integers(0, n, 3 * n + 1))
        many = take(base, rng.integers(0, n, MANY))
        found |= {
            "unrelated": each_column(more, lambda column: unrelated(column, rng)),
            "many unrelated": each_column(many, lambda column: unrelated(column, rng)),
            "many zeros": each_column(many, constant(0.0, _first_text(base), 0)),
            "narrow": each_column(many, narrow),
            "all missing": each_column(many, constant(np.nan, None, -1)),
            "beyond all bounds": each_column(many, constant(1e300, "martian", 99)),
        }
    return found | given


def _first_text(data: Any) -> Any:
    for part in data if isinstance(data, tuple) else (data,):
        columns = [part[name] for name in part] if isinstance(part, pd.DataFrame) else [part]
        for column in columns:
            if column.dtype == object and len(column):
                return np.asarray(column)[0]
    return None


def turns(
    branch: Branch, tables: dict[str, Any], everything: bool = False
) -> Iterator[tuple[str, list[str], float, str]]:
    """What to record and what to run after it: a table, the others, epsilon, and outputs.

    By default every epsilon is recorded once (of searches the middle one); extreme tables run after
    all of these, each other one after one of them.
    """
    names = list(tables)
    if everything:
        recorded = [name for name in (names[0], *EXTREMES, "crowded") if name in tables]
        for place, mode in enumerate(MODES):
            for turn, epsilon in enumerate(branch.epsilons):
                name = recorded[(place + turn) % len(recorded)]
                yield name, [each for each in names if each != name], epsilon, mode
        return
    first, number = zlib.crc32(branch.name.encode()), len(branch.epsilons)
    for turn, epsilon in enumerate(branch.epsilons):
        if branch.name.startswith(SEARCHES) and turn != number // 2:
            continue
        # Records times epsilon decide much: neither a few nor a few million.
        name = EXTREMES[0] if epsilon <= MIDDLE and EXTREMES[0] in tables else names[0]
        others = [
            each
            for i, each in enumerate(names)
            if (each in EXTREMES or i % number == turn) and each != name
        ]
        yield name, others, epsilon, MODES[(first + turn) % len(MODES)]


# --- every branch


def assert_alike(branch, everything=False):
    tables = tables_of(branch)
    for place, (name, others, epsilon, mode) in enumerate(turns(branch, tables, everything)):
        differs = replay_any(
            branch.make(epsilon),
            tables[name],
            {other: tables[other] for other in others},
            outputs=mode,
            random_state=place,
        )
        assert differs is None, f"{branch.name}, epsilon {epsilon:g}, {name} and {differs}"


# These solve linear programs after the last answer.
PROGRAMS = {"DataCube, consistency in l1", "DataCube, consistency in linf"}


@pytest.mark.parametrize("branch", list(parameters(BRANCHES, SLOW | PROGRAMS)))
def test_any_two_tables_run_alike(branch):
    assert_alike(branch)


@pytest.mark.slow
@pytest.mark.parametrize("branch", list(parameters(BRANCHES)))
def test_any_two_tables_run_alike_with_all_outputs(branch):
    assert_alike(branch, everything=True)


def test_every_table_and_every_epsilon_has_its_turn():
    taken = set()
    for branch in (each for each in BRANCHES if not each.name.startswith(SEARCHES)):
        names = [f"table {i}" for i in range(9)]
        dealt = list(turns(branch, dict.fromkeys(names)))
        assert {name for one, others, *_ in dealt for name in (one, *others)} == {*names}
        assert [epsilon for *_, epsilon, _ in dealt] == [*branch.epsilons]
        taken |= {mode for *_, mode in dealt}
    assert taken == {*MODES}


# --- what is steered by something exact is refuted


class Steered(BaseEstimator):
    """Releases a noisy size and counts, and decides something by one fact: a noisy one is fine."""

    def __init__(self, by="the noisy size", what="a budget"):
        self.by = by
        self.what = what

    def fit(self, X, y=None):
        x = X[:, 0]
        size = int(discrete_laplace(len(x), Fraction(1, 2)))
        fact = {
            "the noisy size": lambda: size > 30,
            "the size": lambda: len(x) > 30,
            "a zero": lambda: bool((x == 0).any()),
            "the order": lambda: bool(len(x) and x[0] > x[-1]),
            "the number of distinct rows": lambda: len(np.unique(x)) > 9,
        }[self.by]()

        def steered(what, one, other):
            return other if fact and what == self.what else one

        bins = steered("a shape", 8, 4)
        counts = np.bincount((x * bins).astype(int).clip(0, bins - 1), minlength=bins)
        rate = steered("a budget", Fraction(1, 2), Fraction(1, 4))
        counts = discrete_laplace(counts, rate, steered("a sensitivity", 1, 2))
        if steered("a call", False, True):
            counts = counts - discrete_laplace(np.zeros(len(counts), dtype=int), Fraction(1, 2))
        if steered("a mechanism", False, True):
            noisy_max(np.arange(3), Fraction(1, 2), 1)
        else:
            discrete_laplace(np.zeros(3, dtype=int), Fraction(1, 2))
        self.size_, self.counts_ = size, counts
        if steered("an attribute", False, True):
            self.large_ = True
        return self


LINE = np.linspace(0.01, 0.99, 12)[:, None]
# Of each fact, a table on its other side.
FACTS = {
    "the size": np.repeat(LINE, 3, axis=0),
    "a zero": np.append(LINE, [[0.0]], axis=0),
    "the order": LINE[::-1],
    "the number of distinct rows": np.repeat(LINE[:6], 2, axis=0),
}
FOUND = {
    "a shape": "the runs differ at call 2: discrete_laplace in Steered.fit of shape",
    "a budget": "the runs differ at call 2, discrete_laplace in Steered.fit: rate",
    "a sensitivity": "the runs differ at call 2, discrete_laplace in Steered.fit: rate",
    "a call": "the runs differ at call 3: discrete_laplace in Steered.fit of shape (",
    "a mechanism": "the runs differ at call 3: ",
    "an attribute": "released, and not the same: result: attributes ['large_']",
}


@pytest.mark.parametrize("by", FACTS)
@pytest.mark.parametrize("what", FOUND)
def test_what_is_steered_by_something_exact_is_refuted(by, what):
    tables = {other: table for other, table in FACTS.items() if other != by}
    steered = Steered(by, what)
    for here, there in ((LINE, FACTS[by]), (FACTS[by], LINE)):
        text = replay_any(steered, here, {"the other": there}, outputs="noisy")
        assert text.startswith("the other, outputs 'noisy': ") and FOUND[what] in text
    # The noisy size decides as it likes, on all tables.
    assert replay_any(Steered("the noisy size", what), LINE, tables | {by: FACTS[by]}) is None


def test_neighbours_on_one_side_of_a_threshold_show_nothing():
    steered = Steered("the size", "a budget")
    assert replay(steered, LINE, LINE[:-1], epsilon=2).passed
    assert replay_any(steered, LINE, {"fewer": LINE[:-1]}) is None
    assert "rate 1/2 and 1/4" in replay_any(steered, LINE, {"more": FACTS["the size"]})


def test_all_ways_to_make_up_outputs_are_tried():
    class Steps(BaseEstimator):
        """Decides by an exact number after a large answer only."""

        def fit(self, X, y=None):
            large = discrete_laplace(len(X), Fraction(1, 50)) > 60
            discrete_laplace(0, Fraction(1, 2 if large and len(X) < 9 else 1))
            return self

    tables = {"less": LINE[:3]}
    assert replay_any(Steps(), LINE, tables, outputs=["exact", "low", "blank"]) is None
    assert "less, outputs 'high': the runs differ at call 2" in replay_any(Steps(), LINE, tables)


def test_a_longer_run_on_either_table_is_refuted():
    def rounds(records):
        for _ in range(len(records)):
            noisy_max([1, 2], 0.01, 1)

    for data, other in ((LINE, LINE[:3]), (LINE[:3], LINE)):
        text = replay_any(rounds, data, {"the other": other})
        assert "call 4, selection in test_a_longer" in text and "on one data set only" in text


def test_an_estimator_that_always_fails_is_not_alike():
    class Fails(BaseEstimator):
        def fit(self, X, y=None):
            raise ValueError("misspelt")

    with pytest.raises(ReplayError, match="Every run ended in ValueError.*: misspelt"):
        replay_any(Fails(), LINE, {"less": LINE[:3]})
