"""Any two tables of one schema that get the same answers run alike, in every branch.

Whatever a run decides by must have been released to it before. So each branch is replayed on tables
that have nothing to do with each other, on either side of all that the code tells apart.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from replays import Branch, n_rows

from skdp.audit import _replay as replays_of
from skdp.audit._released import first_difference, independent
from skdp.audit._tapes import OUTPUTS, Alignment, Follower, Recorder

MODES = tuple(OUTPUTS)
# More rows than most thresholds of answers, at epsilon 1; up to which epsilon they are recorded.
MANY, MIDDLE = 3_000, 10
# Tables that are on different sides of most thresholds.
EXTREMES = ("many unrelated", "nobody at all", "many alike")
# A run makes several releases and models, which have branches of their own: one recording of each.
SEARCHES = ("PrivateGridSearchCV", "private_cross_val_score")


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


def constant(number: float, integer: int, *text: Any) -> Callable[[np.ndarray], Any]:
    """One value in all columns of a type; without a text, one that is there."""

    def change(column: np.ndarray) -> np.ndarray:
        by_kind = {"f": number, "i": integer, "u": integer}
        value = by_kind.get(column.dtype.kind, *text or column[:1].tolist())
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
            "many zeros": each_column(many, constant(0.0, 0)),
            "narrow": each_column(many, narrow),
            "all missing": each_column(many, constant(np.nan, -1, None)),
            "beyond all bounds": each_column(many, constant(1e300, 99, "martian")),
        }
    return found | given


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


# --- runs on any tables


def replay_any(
    mechanism: Any,
    data: Any,
    others: Mapping[str, Any],
    *,
    outputs: str | Sequence[str] = "mixed",
    random_state: int = 0,
) -> str | None:
    """How runs on arbitrary tables of one schema differ that get the same outputs of mechanisms.

    Which calls follow, with which shapes, budgets and sensitivities, and what is released may
    depend on data by earlier outputs alone. So all tables run alike, not only neighbours, and a
    decision by an exact number shows with any table on the other side of it. Losses are not
    computed. Secret coins follow from a seed, so the rows that are kept for a person do not vary.
    Files and samples, which an estimator makes of itself, are compared by `replay`.

    Parameters
    ----------
    mechanism, outputs, random_state
        As for `skdp.audit.replay`; each way to make up outputs is taken once.
    data : object
        What outputs are made up from.
    others : mapping of str to object
        Names and tables. The types of their columns are public, and those of ``data``.

    Returns
    -------
    str or None
        The name of the first table whose run differs from that on ``data``, at which call or in
        which released value, and how. None if none does.

    Raises
    ------
    ReplayError
        If draws cannot be recorded, or if every run raises.
    """
    run, finished, seen = replays_of._runner(mechanism, whole=False), False, {}
    for turn, mode in enumerate(replays_of._modes(outputs)):
        seed = int(random_state) * 1_000_003 + turn
        tape = Recorder(seed, mode, Alignment(data, data, neighbours=False))
        seen = run(independent(data), tape)
        for name, other in others.items():
            follower = Follower(seed, tape.calls, Alignment(data, other, neighbours=False))
            found = run(independent(other), follower)
            replays_of._refuse_unrecorded(tape, follower)
            if follower.apart is not None:
                return f"{name}, outputs {mode!r}: the runs differ at {follower.apart}"
            differs = first_difference(seen, found)
            if differs is not None:
                return f"{name}, outputs {mode!r}: released, and not the same: {differs}"
        finished = finished or "error" not in seen
    if not finished:
        replays_of._refuse_errors(seen)
    return None


# --- every branch


def assert_alike(branch, everything=False):
    if branch.name in PROGRAMS and not everything:
        return
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
