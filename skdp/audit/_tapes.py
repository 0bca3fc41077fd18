"""Tapes: they answer mechanisms in place of noise, and add up the privacy loss of the answers.

The first run is recorded with outputs that are made up; the second gets the same outputs. Records
that are in both data sets get the same random numbers in both runs.
"""

from __future__ import annotations

import copy
import hashlib
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._random import (
    WORKERS,
    Call,
    Tape,
    process_mark,
    report_draw,
    sampling_generator,
    seeded_bits,
)
from .._validation import BoolArray, CodeArray, FloatArray, IntArray
from ..exceptions import ReplayError
from ..mechanisms.selection import least_cost_edges
from ._released import first_difference, records

#: How a tape makes up outputs: noise of this many times the usual scale, with both signs, or only
#: below or above the true values; or zeros.
OUTPUTS = {
    "exact": (0, "both"),
    "noisy": (1, "both"),
    "wide": (5, "both"),
    "low": (3, "below"),
    "high": (3, "above"),
    "blank": (0, "zero"),
}
# Empty cells that are made to reach the threshold of sparse counts, where noise is made up.
_FALSE_CELLS = 3
_T = TypeVar("_T")
_PACKAGE = __name__.partition(".")[0]
_SEAMS = tuple(f"{_PACKAGE}.{name}" for name in ("_random", "mechanisms", "audit._tapes"))


class Diverged(BaseException):
    """Ends a run that does not follow the tape; not caught by handlers of the estimator."""


# --- records and their coins


class Alignment:
    """Which records of two neighbouring data sets are the same ones, by position.

    If they are no neighbours, records at the same position are, and losses mean nothing.
    """

    def __init__(self, first: Any, second: Any, neighbours: bool = True) -> None:
        self._data, self.neighbours = (first, second), neighbours
        self._ids: tuple[list[int], list[int]] | None = None

    def ids(self, side: int) -> list[int]:
        """A number for each record of one side; the same record has the same on both."""
        if self._ids is None:
            here, there = (records(data) for data in self._data)
            if not self.neighbours:
                self._ids = list(range(len(here))), list(range(len(there)))
            elif len(here) >= len(there):
                self._ids = list(range(len(here))), _places(there, here)
            else:
                self._ids = _places(here, there), list(range(len(there)))
        return self._ids[side]


def _places(short: list[Any], long: list[Any]) -> list[int]:
    """Positions in the longer list of the records of the shorter, which are in the same order."""
    places = []
    begin = 0
    for record in short:
        while begin < len(long) and long[begin] != record:
            begin += 1
        places.append(begin)
        begin += 1
    if begin > len(long):
        raise ReplayError(
            "Records draw coins by position here, and the two data sets do not hold the same "
            "records in the same order. Make the neighbour by deleting or inserting one record."
        )
    return places


def _coin(seed: bytes, *tokens: bytes) -> int:
    digest = hashlib.blake2b(seed, digest_size=8)
    for token in tokens:
        digest.update(len(token).to_bytes(8, "little") + token)
    return int.from_bytes(digest.digest(), "little")


def _occurrences(tokens: Sequence[_T]) -> Iterator[tuple[_T, bytes]]:
    """Each token with the number of its earlier occurrences."""
    seen: Counter[_T] = Counter()
    for token in tokens:
        yield token, seen[token].to_bytes(8, "little")
        seen[token] += 1


# --- tapes


@dataclass
class _Entry:
    """A call on a tape: the part that is equal on neighbours, the exact values, and the answer."""

    mechanism: str
    shape: tuple[int, ...]
    public: tuple[Any, ...]
    site: str
    values: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    answer: Any = None

    @property
    def step(self) -> str:
        """Name of the call in reports."""
        return f"{self.site}, {self.mechanism}"

    def __str__(self) -> str:
        return f"{self.mechanism} in {self.site}"


class _Tape(Tape):
    """What both runs share: public coins, secret coins of records, and a guard against workers."""

    def __init__(self, seed: int, alignment: Alignment, side: int) -> None:
        super().__init__()
        self._seed = seed.to_bytes(16, "little", signed=True)
        self._bits = seeded_bits(seed % 2**64)
        self._alignment, self._side = alignment, side
        self._process = process_mark()
        self._streams = 0
        # Kept, because the code that runs may handle every exception.
        self.refused: ReplayError | None = None

    def _enter(self, entry: _Entry) -> Any:
        raise NotImplementedError

    def refuse(self, why: str) -> NoReturn:
        self.refused = ReplayError(why)
        raise self.refused

    def _check(self) -> None:
        if process_mark() != self._process:
            report_draw()
            self.refuse(WORKERS)

    def answer(self, call: Call) -> Any:
        self._check()
        public = (call.rate, *call.public)
        shape = call.values.shape
        if call.mechanism in ("sparse_counts", "line"):
            # How many cells hold records is private, and so is the number of pieces.
            shape = shape[1:]
        return self._enter(_Entry(call.mechanism, shape, public, _site(), call.values.copy()))

    def serial(self) -> int:
        self._streams += 1
        return self._streams

    def _take(self, count: int) -> NDArray[np.uint64]:
        self._check()
        self._enter(_Entry("public coins", (count,), (), _site()))
        return self._bits.random_raw(count)

    def record_words(
        self, size: int, records: NDArray[Any] | None = None, owners: NDArray[Any] | None = None
    ) -> NDArray[np.uint64]:
        self._check()
        entry = _Entry("coins of records", (), (), _site())
        turn = self._enter(entry).to_bytes(8, "little")
        if records is None:
            ids = self._alignment.ids(self._side)
            if len(ids) != size:
                self.refuse(
                    f"{size} coins were drawn for records by position in {entry.site}, but the "
                    f"data set has {len(ids)} records, so coins cannot be matched to records."
                )
            tokens: list[tuple[bytes, ...]] = [(place.to_bytes(8, "little"),) for place in ids]
        else:
            rows = [np.ascontiguousarray(row).tobytes() for row in records]
            tokens = list(_owned(rows, owners) if owners is not None else _occurrences(rows))
        coins = [_coin(self._seed, turn, *token) for token in tokens]
        return np.array(coins, dtype=np.uint64)

    def record_below(self, bound: int, size: int, records: NDArray[Any] | None = None) -> IntArray:
        words = self.record_words(size, records)
        return (words % np.uint64(bound)).astype(np.int64)


def _owned(rows: list[bytes], owners: NDArray[Any]) -> Iterator[tuple[bytes, ...]]:
    """Identity of a record of a person: all records of the person, and its position among them."""
    pairs = list(zip(owners.tolist(), rows, strict=True))
    belongings: dict[int, list[bytes]] = defaultdict(list)
    for owner, row in pairs:
        belongings[owner].append(row)
    persons = [hashlib.blake2b(b"".join(sorted(mine))).digest() for mine in belongings.values()]
    names = dict(zip(belongings, _occurrences(persons), strict=True))
    for (owner, row), number in _occurrences(pairs):
        yield *names[owner], row, number


def _site() -> str:
    """The function outside the seam that made the call."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_SEAMS):
        frame = frame.f_back
    module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname
    if module.partition(".")[0] != _PACKAGE:
        return function
    return f"{module.removeprefix(_PACKAGE + '.')}.{function}"


class Recorder(_Tape):
    """Answers the first run with made-up outputs, and keeps the calls."""

    def __init__(self, seed: int, mode: str, alignment: Alignment) -> None:
        super().__init__(seed, alignment, 0)
        self.calls: list[_Entry] = []
        self._factor, self._side_of_noise = OUTPUTS[mode]
        self._generator = sampling_generator(seed % 2**64)

    def _enter(self, entry: _Entry) -> Any:
        make = _OUTPUTS.get(entry.mechanism)
        if entry.mechanism == "sparse_counts":
            entry.answer = self._sparse_counts(entry)
        elif entry.mechanism == "line":
            entry.answer = self._on_line(entry)
        elif make is not None:
            entry.answer = make(self._noisy(entry.values, entry.public[0]), entry.public)
        else:
            entry.answer = len(self.calls)
        self.calls.append(entry)
        return copy.deepcopy(entry.answer)

    def _noisy(self, values: IntArray, rate: Fraction) -> IntArray:
        if self._side_of_noise == "zero":
            return np.zeros_like(values)
        scale = self._factor * max(float(1 / rate), 1.0)
        noise = np.rint(self._generator.laplace(scale=scale, size=values.shape)) if scale else 0
        if self._side_of_noise != "both":
            noise = np.abs(noise) * (-1 if self._side_of_noise == "below" else 1)
        return values + np.clip(noise, -(2.0**60), 2.0**60).astype(np.int64)

    def _sparse_counts(self, entry: _Entry) -> tuple[CodeArray, IntArray]:
        """Cells with noisy counts that reach the threshold, a few empty ones among them."""
        rate, shape, threshold = entry.public
        false = self._generator.integers(0, shape, size=(_FALSE_CELLS, len(shape)))
        lifted = self._noisy(np.full(_FALSE_CELLS, threshold), rate)
        cells = dict(zip(map(tuple, false.tolist()), lifted.tolist(), strict=True))
        noisy = self._noisy(entry.values[:, -1], rate)
        cells |= zip(map(tuple, entry.values[:, :-1].tolist()), noisy.tolist(), strict=True)
        kept = sorted((cell, min(n, 2**60)) for cell, n in cells.items() if n >= threshold)
        codes = np.array([cell for cell, _ in kept], dtype=np.int32).reshape(-1, len(shape))
        return codes, np.array([n for _, n in kept], dtype=np.int64)

    def _on_line(self, entry: _Entry) -> int:
        """An integer of the piece with the highest noisy score: an end of it, or any."""
        starts, scores = entry.values.T
        piece = int(self._noisy(scores, entry.public[0]).argmax())
        first, last = int(starts[piece]), int(np.append(starts, entry.public[2])[piece + 1]) - 1
        return (first, last, int(self._generator.integers(first, last + 1)))[len(self.calls) % 3]


class Follower(_Tape):
    """Answers the second run like the first, and adds up the loss from the change of the values."""

    def __init__(self, seed: int, calls: list[_Entry], alignment: Alignment) -> None:
        super().__init__(seed, alignment, 1)
        self.position = 0
        # Kept, because the code that runs may handle every exception.
        self.diverged: Diverged | None = None
        # Calls whose values change by more than was declared for one record, and how many times.
        self.excesses: list[tuple[float, str]] = []
        self._calls = calls
        # What bounds the loss in both directions, and log ratios that have a sign.
        self._bound: dict[str, float] = defaultdict(float)
        self._signed: dict[str, float] = defaultdict(float)
        self._stream: dict[tuple[str, int], list[_Comparisons]] = defaultdict(list)

    def _enter(self, entry: _Entry) -> Any:
        if self.position >= len(self._calls):
            self._diverge(f"call {self.position + 1}, {entry}: on one data set only")
        told = self._calls[self.position]
        self.position += 1
        if (told.mechanism, told.shape) != (entry.mechanism, entry.shape):
            self._diverge(
                f"call {self.position}: {told} of shape {told.shape} and {entry} of shape "
                f"{entry.shape}"
            )
        odd = _difference_of_public(told, entry)
        if odd is not None:
            self._diverge(f"call {self.position}, {entry}: {odd}")
        if entry.public and self._alignment.neighbours:
            self._count(told, entry)
        return copy.deepcopy(told.answer)

    def _diverge(self, where: str) -> NoReturn:
        self.diverged = self.diverged or Diverged(where)
        raise self.diverged

    @property
    def apart(self) -> str | None:
        """Where the calls of the two runs differ; None if nowhere."""
        if self.diverged is None and self.position < len(self._calls):
            # The first run went on and this one stopped.
            told = self._calls[self.position]
            return f"call {self.position + 1}, {told}: on one data set only"
        return None if self.diverged is None else str(self.diverged)

    def _count(self, told: _Entry, entry: _Entry) -> None:
        here, there = told.values, entry.values
        if entry.mechanism == "sparse_counts":
            here, there = _matched(here, there)
        elif entry.mechanism == "line":
            here, there = _on_common_pieces(here, there)
        change = _change(here, there)
        if not change.size:
            return
        rate = float(entry.public[0])
        # Sparse counts are a function of noisy counts of all cells, each with noise of this rate.
        if entry.mechanism in ("discrete_laplace", "sparse_counts"):
            self._bound[entry.step] += rate * float(np.abs(change).sum(dtype=np.float64))
        elif entry.mechanism == "max_norm":
            self._bound[entry.step] += rate * float(np.abs(change).max())
        elif entry.mechanism == "threshold":
            level = entry.public[1]
            logs = [_log_side(each, level, rate, told.answer) for each in (here, there)]
            self._signed[entry.step] += float((logs[0] - logs[1]).sum())
        elif entry.mechanism == "stream":
            self._follow_stream(told, entry, change)
        else:
            segmented = entry.mechanism == "selection"
            starts = entry.public[2] if segmented else np.zeros(1, dtype=np.int64)
            spread = np.maximum.reduceat(change, starts) - np.minimum.reduceat(change, starts)
            self._compare_with_declared(
                int(spread.max()), entry.public[1], entry, "scores move {} apart"
            )
            # What is compared moves by more than the scores: each winner's score in turn, or the
            # difference of two scores.
            times = {"top_k": entry.public[-1], "top_k, together": 2}.get(entry.mechanism, 1)
            self._bound[entry.step] += times * rate * float(spread.sum())

    def _compare_with_declared(self, moved: int, declared: Any, entry: _Entry, what: str) -> None:
        if moved > declared:
            text = f"{what.format(moved)} in {entry.site}, and {declared} was declared"
            self.excesses.append((moved / declared, text))

    def _follow_stream(self, told: _Entry, entry: _Entry, change: IntArray) -> None:
        _, serial, *_, shift, _, _, monotonic = entry.public
        places = told.answer[0]
        remaining = entry.public[3]
        answered = len(change) if len(places) < remaining else places[-1] + 1
        change = change[:answered]
        self._compare_with_declared(int(np.abs(change).max()), shift, entry, "queries move by {}")
        if monotonic and (change > 0).any() and (change < 0).any():
            text = (
                f"queries in {entry.site} move in both directions, and monotonic=True was declared"
            )
            self.excesses.append((math.inf, text))
        positive = np.zeros(answered, dtype=bool)
        positive[places] = True
        self._stream[entry.step, serial].append(_Comparisons(change, positive, entry.public))

    @property
    def loss(self) -> float:
        """Loss of the whole run, in the worse direction."""
        total = sum(self._bound.values()) + abs(sum(self._signed.values()))
        return total + sum(_stream_loss(chunks) for chunks in self._stream.values())

    def by_part(self) -> dict[str, float]:
        """Loss of each step: a mechanism, and the function that called it."""
        parts = defaultdict(float, self._bound)
        for step, loss in self._signed.items():
            parts[step] += abs(loss)
        for (step, _), chunks in self._stream.items():
            parts[step] += _stream_loss(chunks)
        return dict(parts)


def _matched(here: IntArray, there: IntArray) -> tuple[IntArray, IntArray]:
    """Counts of the cells that hold records in one of two tables, zeros where one has none."""
    tables = [
        dict(zip(map(tuple, t[:, :-1].tolist()), t[:, -1], strict=True)) for t in (here, there)
    ]
    cells = sorted(tables[0].keys() | tables[1].keys())
    counts = [[table.get(cell, 0) for cell in cells] for table in tables]
    return np.array(counts[0], dtype=np.int64), np.array(counts[1], dtype=np.int64)


def _on_common_pieces(here: IntArray, there: IntArray) -> tuple[IntArray, IntArray]:
    """Scores of two lines on all pieces on which both are constant."""
    starts = np.union1d(here[:, 0], there[:, 0])
    first, second = (
        line[np.searchsorted(line[:, 0], starts, side="right") - 1, 1] for line in (here, there)
    )
    return first, second


def _change(here: IntArray, there: IntArray) -> NDArray[Any]:
    """Exact changes of values, as Python integers if 64 bits may not be enough."""
    extremes = [int(f(each)) for f in (np.min, np.max) for each in (here, there) if each.size]
    if any(abs(each) > 2**60 for each in extremes):
        return there.astype(object) - here.astype(object)
    return there - here


def _difference_of_public(told: _Entry, entry: _Entry) -> str | None:
    if not entry.public:
        return None
    if told.public[0] != entry.public[0]:
        return f"rate {told.public[0]} and {entry.public[0]}"
    return first_difference(told.public, entry.public, "public arguments")


# --- outputs that a tape makes up, from noisy values


def _selected(noisy: IntArray, public: tuple[Any, ...]) -> IntArray:
    starts = public[2]
    ends = np.append(starts[1:], len(noisy))
    return np.array(
        [a + int(noisy[a:b].argmax()) for a, b in zip(starts, ends, strict=True)], dtype=np.int64
    )


def _partitioned(noisy: IntArray, public: tuple[Any, ...]) -> IntArray:
    _, _, n_bins, lengths, penalty = public
    costs = -noisy.astype(object)
    return least_cost_edges(costs, lengths, n_bins, penalty)


def _compared(noisy: IntArray, public: tuple[Any, ...]) -> Any:
    places = np.flatnonzero(noisy >= 0)[: public[3]]
    return places.tolist(), noisy[places]


def _clamped(noisy: IntArray, public: tuple[Any, ...]) -> IntArray:
    return np.clip(noisy, -(2**60), 2**60)


_OUTPUTS: dict[str, Callable[[IntArray, tuple[Any, ...]], Any]] = {
    "discrete_laplace": _clamped,
    "max_norm": _clamped,
    "threshold": lambda noisy, public: noisy > public[1],
    "selection": _selected,
    "buckets": _partitioned,
    "top_k": lambda noisy, public: np.argsort(-noisy, kind="stable")[: public[2]],
    "top_k, together": lambda noisy, public: np.argsort(-noisy, kind="stable")[: public[2]],
    "stream": _compared,
}


# --- the loss of a call


def _log_side(values: IntArray, threshold: int, rate: float, above: BoolArray) -> FloatArray:
    """Log probability of the side of each value + discrete Laplace noise that was answered.

    With r = exp(-rate): P(noise > m) is r**(m + 1) / (1 + r) for m >= 0, and the distribution is
    symmetric.
    """
    # Values are clamped, so all thresholds far beyond them are equivalent.
    margin = max(-(2**61), min(threshold, 2**61)) - values.astype(np.int64)
    # P(noise > margin), or P(noise <= margin) = P(noise > -margin - 1).
    margin = np.where(above, margin, -margin - 1)
    log_tail = -rate * (np.abs(np.where(margin >= 0, margin, -margin - 1)) + 1)
    log_tail -= np.log1p(np.exp(-rate))
    return np.where(margin >= 0, log_tail, np.log1p(-np.exp(np.minimum(log_tail, -1e-300))))


@dataclass
class _Comparisons:
    """Answered comparisons of a sparse vector: changes of the margins, and which were positive."""

    change: IntArray
    positive: BoolArray
    public: tuple[Any, ...]


def _stream_loss(chunks: list[_Comparisons]) -> float:
    """Loss of the answers of one sparse vector, by the argument beside `SparseVector`."""
    change = np.concatenate([chunk.change for chunk in chunks]).astype(np.float64)
    positive = np.concatenate([chunk.positive for chunk in chunks])
    query_rate, _, threshold_rate, _, _, one_sided, refreshing, _ = chunks[0].public
    ends = np.flatnonzero(positive) + 1 if refreshing else np.zeros(0, dtype=np.int64)
    rates = float(threshold_rate), float(query_rate)

    def total(change: FloatArray) -> float:
        runs = zip(np.split(change, ends), np.split(positive, ends), strict=True)
        return sum(_run_loss(moved, hit, *rates, one_sided) for moved, hit in runs)

    return max(total(change), total(-change))


def _run_loss(
    change: FloatArray,
    positive: BoolArray,
    threshold_rate: float,
    query_rate: float,
    one_sided: bool,
) -> float:
    """Cheapest shift of the threshold's noise that keeps all answers, and those of the positives.

    A shift of s keeps negatives negative if no margin rises by more than s; a positive then needs
    its own noise shifted by s minus its change. One-sided noise can only be shifted upward.
    """
    if not change.size:
        return 0.0
    least = change[~positive].max(initial=-np.inf)
    if one_sided:
        candidates = [max(0.0, float(change.max()))]
    else:
        candidates = [s for s in {0.0, least, *change[positive]} if s >= least and np.isfinite(s)]
    return min(
        threshold_rate * abs(s) + query_rate * float(np.abs(s - change[positive]).sum())
        for s in candidates
    )
