"""Pairs of neighbouring inputs: checking them and searching for the most revealing ones."""

from __future__ import annotations

import itertools
import numbers
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..tables import as_frame, is_missing, object_array
from ._events import choose
from ._trials import ConstantOutputError, Trials

# Trials a side and pair in the first round. The best quarter of the pairs (at least three) goes on
# to a round of four times as many, and so on up to those of the audit.
_PILOT = 40_000
# Standard errors subtracted from the predicted bound of a pair: among many pairs in short runs, a
# rare outcome makes one look revealing by chance.
_CAUTION = 2.0
_FINALISTS = 3  # pairs compared in the last round
_MOST_RECORDS = 50  # records that are removed in turn


class NeighbourPair(NamedTuple):
    """A pair of inputs, the bound that a pilot run predicts for it, and the event of that run."""

    dataset: Any
    neighbour: Any
    predicted: float
    event: str


def check_neighbours(dataset: Any, neighbour: Any, relation: Any, sensitivity: float) -> str:
    """Refuse inputs that are not neighbours; returns how they were checked.

    Raises
    ------
    ValueError
        If they differ in more than one record, or by more than `sensitivity` in an answer.
    TypeError
        If their records cannot be identified.
    """
    if relation is None:
        return "not checked"
    if callable(relation):
        if not relation(dataset, neighbour):
            raise ValueError(f"relation={relation!r} says that the two inputs are not neighbours.")
        return f"checked by {getattr(relation, '__name__', 'a function')}"
    if relation not in ("auto", "records", "answers"):
        raise ValueError(
            f"relation must be 'auto', 'records', 'answers', a function or None, got {relation!r}."
        )
    if relation == "answers" or (relation == "auto" and _are_answers(dataset, neighbour)):
        return _check_answers(dataset, neighbour, sensitivity)
    return _check_records(dataset, neighbour)


def _are_answers(dataset: Any, neighbour: Any) -> bool:
    if all(isinstance(data, numbers.Real | np.number) for data in (dataset, neighbour)):
        return True
    shapes = []
    for data in (dataset, neighbour):
        if not isinstance(data, np.ndarray | list | tuple):
            return False
        if not isinstance(data, np.ndarray) and not all(
            isinstance(value, numbers.Real | np.number) for value in data
        ):
            return False
        array = np.asarray(data)
        if array.ndim != 1 or array.dtype.kind not in "biuf":
            return False
        shapes.append(array.shape)
    return shapes[0] == shapes[1]


def _check_answers(dataset: Any, neighbour: Any, sensitivity: float) -> str:
    here, there = (np.asarray(data, dtype=float) for data in (dataset, neighbour))
    if here.shape != there.shape:
        raise ValueError(
            f"relation='answers' needs equally many answers on both sides, got shapes {here.shape} "
            f"and {there.shape}."
        )
    change = float(np.max(np.abs(here - there), initial=0.0))
    if not change <= sensitivity * (1 + 1e-12):
        raise ValueError(
            "The inputs are not neighbours: read as query answers, one of them moves by "
            f"{change:g}, more than sensitivity={sensitivity:g}. Pass the true sensitivity; if "
            "they are records, a neighbour has one record more or one less, not a changed one "
            "(relation='records')."
        )
    if change == 0:
        raise ValueError("The two inputs are equal: nothing can be learned from them.")
    return f"query answers that move by at most {sensitivity:g}"


def _check_records(dataset: Any, neighbour: Any) -> str:
    here, there = (Counter(records(data)) for data in (dataset, neighbour))
    added = sum((there - here).values())
    removed = sum((here - there).values())
    if added + removed == 0:
        raise ValueError("The two data sets hold the same records: nothing can be learned.")
    if added + removed > 1:
        raise ValueError(
            f"The data sets are not neighbours: {removed} records of the dataset are missing in "
            f"the neighbour and {added} are new. Add or remove exactly one record; a changed "
            "record counts as one removed and one added. For query answers instead of records pass "
            "relation='answers'."
        )
    return "one record removed" if removed else "one record added"


def records(data: Any) -> list[Any]:
    """Records of a data set as hashables, in order.

    Raises
    ------
    TypeError
        If it is not a frame, an array, a list, or a pair of X and y.
    """
    if _is_labelled(data):
        first, second = (records(part) for part in data)
        if len(first) != len(second):
            raise ValueError(f"X has {len(first)} records and y has {len(second)}.")
        return list(zip(first, second, strict=True))
    if isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.ndim):
        return [_plain(row) for row in data]
    for name in ("to_list", "to_pylist"):  # a column: pandas and Polars, PyArrow
        if hasattr(data, name) and not hasattr(data, "columns"):
            return [_plain(value) for value in getattr(data, name)()]
    try:
        frame = as_frame(data)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"It is not known what the records of a {type(data).__name__} are, or whether the "
            "inputs are neighbours. Pass a frame, an array or a list of records; for query answers "
            "pass relation='answers'; or a function relation(dataset, neighbour) -> bool, or "
            "relation=None to vouch for it yourself."
        ) from error
    columns = []
    for name in frame.names:
        values, missing = frame.column(name).values()
        columns.append(
            [None if gone else _plain(value) for value, gone in zip(values, missing, strict=True)]
        )
    return list(zip(*columns, strict=True))


def _is_labelled(data: Any) -> bool:
    """Whether this is a pair of X and y rather than two records."""
    return (
        isinstance(data, tuple)
        and len(data) == 2
        and all(hasattr(part, "__len__") and not isinstance(part, str | tuple) for part in data)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tuple(_plain(part) for part in value.tolist())
    if isinstance(value, list | tuple):
        return tuple(_plain(part) for part in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _plain(part)) for key, part in value.items()))
    # A missing value may differ from itself; in a record it is one value.
    return None if is_missing(value) else value


def score_pairs(
    n_candidates: int = 2, score_range: int = 1, gaps: Iterable[int] = range(13)
) -> Iterator[tuple[list[int], list[int]]]:
    """Pairs of score vectors for mechanisms that select one of several candidates.

    The loss of a selection is largest if the favourite moves and an outsider stays, or the other
    way round: the outsider's probability then changes by nearly the whole factor. With a larger gap
    the change is closer to the whole factor, but the outsider is selected less often, so the gap
    matters.

    Parameters
    ----------
    n_candidates : int, default=2
    score_range : int, default=1
        Width of the interval that holds all changes of scores.
    gaps : iterable of int
        Distances between the favourite and the outsider, in units of `score_range`.

    Yields
    ------
    scores, neighbouring scores : lists of int
    """
    for gap in gaps:
        lead = gap * score_range
        for leaders in sorted({1, n_candidates - 1}):
            low = [0] * (n_candidates - leaders)
            yield [lead] * leaders + low, [lead + score_range] * leaders + low


def answer_pairs(sensitivity: int = 1) -> Iterator[tuple[list[int], list[int]]]:
    """Pairs of six answers for mechanisms that compare a stream of queries with a threshold of 0.

    The first answers rise by the sensitivity and the last ones fall (or all rise): the pattern
    "all first ones below, all last ones above" then loses most.

    Parameters
    ----------
    sensitivity : int, default=1

    Yields
    ------
    answers, neighbouring answers : lists of int
    """
    levels = range(-3, 4)
    for count, below, above in itertools.product((1, 2), levels, levels):
        first = 6 - count
        here = [below] * first + [above] * count
        yield here, [below + sensitivity] * first + [above - sensitivity] * count
        yield here, [below + sensitivity] * first + [above] * count


def record_pairs(dataset: Any) -> Iterator[tuple[Any, Any]]:
    """Remove each distinct record of a data set in turn, 50 at most.

    Parameters
    ----------
    dataset : frame, array, list, or pair of X and y

    Yields
    ------
    dataset, neighbour
    """
    firsts = {record: i for i, record in reversed([*enumerate(records(dataset))])}
    for i in sorted(firsts.values())[:_MOST_RECORDS]:
        yield dataset, _without(dataset, i)


def _without(data: Any, i: int) -> Any:
    if _is_labelled(data):
        return tuple(_without(part, i) for part in data)
    if isinstance(data, list | tuple):
        entries: Any = data
        return entries[:i] + entries[i + 1 :]
    kept = np.delete(np.arange(len(data)), i)
    if isinstance(data, np.ndarray):
        return data[kept]
    # Rows by position: pandas and PyArrow have a method for it, Polars the brackets.
    return data.take(kept) if hasattr(data, "take") else data[kept]


class Unruly:
    """Raises whatever is asked of it, with a text that tells of it."""

    def refuse(self, *_: Any) -> Any:
        raise RuntimeError("a value that raises was read")

    __eq__ = __lt__ = __float__ = __int__ = __str__ = __repr__ = __len__ = __iter__ = refuse
    __hash__ = __bool__ = __array__ = __index__ = refuse


#: Values of one record that libraries may take as a reason to read the others in another way.
ODD_VALUES: Mapping[str, Any] = {
    "None": None,
    "a fraction": 0.5,
    "text": "martian",
    "a complex number": 1 + 2j,
    "a list": [1, 2],
    "a huge integer": 10**400,
    "2**63": 2**63,
    "an array": np.array([0.5, 1.5]),
    "NaN": float("nan"),
    "bytes": b"a",
    "a decimal": Decimal("0.5"),
    "a signalling NaN": Decimal("sNaN"),
    "a Fraction": Fraction(1, 3),
    "a truth value": True,
    "an integer": 1,
    "a number as text": "1.0",
    "NaT": pd.NaT,
    "a NumPy integer": np.int8(1),
    "a NumPy truth value": np.bool_(False),
    "a NumPy float": np.float32(0.5),
    "NA": pd.NA,
    "a date": pd.Timestamp("2020-01-01"),
    "a list of one": [1],
    "a dictionary": {"a": 1},
    "an empty list": [],
    "text with NUL": "a\0b",
    "a duration": np.timedelta64(1, "s"),
    "a value that raises": Unruly(),
}

# A table, or one column of values, of a list for each column.
_Columns = Mapping[Any, list[Any]]


def _objects_of(columns: _Columns) -> Any:
    array = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for place, values in enumerate(columns.values()):
        array[:, place] = object_array(values)
    return array


def _object_series(values: list[Any]) -> pd.Series:
    return pd.Series(object_array(values), dtype=object)


def _inferred(values: Any) -> pd.Series:
    """A column of the type that pandas chooses; older ones fail at huge or unruly values."""
    try:
        return pd.Series(values)
    except (OverflowError, RuntimeError):
        return _object_series(values)


#: Ways to hold a table, and a single column of labels or values.
CONTAINERS: Mapping[str, tuple[Callable[[_Columns], Any], Callable[[list[Any]], Any]]] = {
    "lists": (lambda columns: [list(row) for row in zip(*columns.values(), strict=True)], list),
    "arrays of objects": (_objects_of, object_array),
    "columns of objects": (
        lambda columns: pd.DataFrame({str(n): _object_series(v) for n, v in columns.items()}),
        _object_series,
    ),
    "columns of a type that pandas chose": (
        lambda columns: pd.DataFrame({str(n): _inferred(v) for n, v in columns.items()}),
        _inferred,
    ),
}


def odd_pair(
    data: Any, container: str, value: str, place: int = 0, *, unit: str | None = None
) -> tuple[Any, Any]:
    """A data set with one record more, which holds an odd value, and the data set itself.

    Parameters
    ----------
    data : frame, array, or pair of X and y
        With at least one record.
    container : str
        What holds the records, of `CONTAINERS`.
    value : str
        The value, of `ODD_VALUES`.
    place : int, default=0
        The column of the value, modulo their number; `y` is the last.
    privacy_id : str, default=None
        A column that identifies persons: the record is that of a new one.

    Returns
    -------
    dataset, neighbour
    """
    table, column = CONTAINERS[container]
    parts = data if _is_labelled(data) else (data,)
    held: list[dict[Any, list[Any]]] = []
    for part in parts:
        frame = part if isinstance(part, pd.DataFrame) else pd.DataFrame(np.asarray(part))
        held.append({name: frame[name].astype(object).tolist() for name in frame})
    cells = [(number, name) for number, each in enumerate(held) for name in each if name != unit]
    odd = cells[place % len(cells)]

    def made(extra: bool) -> Any:
        found = []
        for number, (part, columns) in enumerate(zip(parts, held, strict=True)):
            more = {name: list(values) for name, values in columns.items()}
            for name, values in more.items():
                new = "a new person" if name == unit else values[0]
                values += [ODD_VALUES[value] if (number, name) == odd else new] * extra
            flat = np.ndim(part) == 1
            found.append(column(next(iter(more.values()))) if flat else table(more))
        return tuple(found) if len(found) > 1 else found[0]

    return made(True), made(False)


def find_neighbours(
    mechanism: Any,
    dataset: Any = None,
    *,
    search: str | Iterable[tuple[Any, Any]] | None = None,
    n_trials: int = 1_000_000,
    confidence: float = 0.999,
    features: Callable[[Any], Any] | None = None,
    vectorised: bool = False,
    sensitivity: float = 1,
    n_jobs: int = 1,
    verbose: int = 0,
) -> NeighbourPair:
    """Try pairs of neighbouring inputs in short pilot runs and return the most revealing one.

    Parameters
    ----------
    mechanism : callable or estimator
        As in `audit`.
    dataset : object, optional
        For ``search="records"``.
    search : {"records", "scores", "answers"} or iterable of pairs
        "records": `record_pairs` of `dataset`. "scores": `score_pairs` of two and of five
        candidates with range `sensitivity`. "answers": `answer_pairs` with `sensitivity`.
        Default: "records" if a data set is given.
    n_trials, confidence : int, float
        Those of the audit that follows: its size decides how rare an event may be.
    features, vectorised, sensitivity, n_jobs, verbose
        As in `audit`.

    Returns
    -------
    NeighbourPair
        ``(dataset, neighbour, predicted, event)``. The audit itself must use fresh trials, as
        `audit` does.
    """
    if search is None:
        if dataset is None:
            raise TypeError(
                "Give a dataset and a neighbour, or say where to search for them: "
                "search='records', 'scores', 'answers' or an iterable of pairs."
            )
        search = "records"
    pairs = _pairs(search, dataset, sensitivity)
    n_pilot = min(_PILOT, n_trials)
    while True:
        tried: list[NeighbourPair] = []
        for here, there in pairs:
            trials = Trials(
                mechanism, features, vectorised=vectorised, n_jobs=n_jobs, verbose=verbose
            )
            trials.probe(here, there)
            try:
                # In a round as long as the audit itself, predicted bounds are sharp enough.
                caution = _CAUTION if n_pilot < n_trials else 0.5
                event = choose(
                    trials, here, there, n_pilot, n_trials // 2, 1 - confidence, caution=caution
                )[0]
            except ConstantOutputError:
                # A pair with a certain outcome shows nothing; another may.
                continue
            tried.append(NeighbourPair(here, there, event.predicted, str(event)))
        if not tried:
            raise ValueError("No pair of inputs gave outputs that vary: is the mechanism seeded?")
        tried.sort(key=lambda pair: -pair.predicted)
        if len(tried) == 1 or n_pilot == n_trials:
            return tried[0]
        pairs = [pair[:2] for pair in tried[: max(_FINALISTS, len(tried) // 4)]]
        n_pilot = 4 * n_pilot if 8 * n_pilot <= n_trials else n_trials


def _pairs(search: Any, dataset: Any, sensitivity: float) -> Iterable[tuple[Any, Any]]:
    if not isinstance(search, str):
        return search
    if search == "records":
        if dataset is None:
            raise TypeError("search='records' needs a dataset to take records from.")
        return record_pairs(dataset)
    if search == "scores":
        unit = int(sensitivity)
        return [*score_pairs(2, unit), *score_pairs(5, unit)]
    if search == "answers":
        return answer_pairs(sensitivity=int(sensitivity))
    raise ValueError(
        f"search must be 'records', 'scores', 'answers' or an iterable of pairs, got {search!r}."
    )
