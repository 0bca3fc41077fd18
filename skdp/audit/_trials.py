"""Running a mechanism many times, and flattening its outputs to codes and numbers."""

from __future__ import annotations

import inspect
import math
import numbers
import sys
import time
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from .._validation import IntArray
from ..exceptions import InsecureSeedWarning

SEEDED = (
    "{what} With a seed every trial would be the same, and an audit of one repeated trial says "
    "nothing. Let the mechanism draw from the operating system's entropy (random_state=None), "
    "or from one generator that goes on between the trials."
)
_PLAIN = (bool, int, float, np.number, np.bool_)
_PROBE = 32  # trials that detect a seeded, failing or misdeclared mechanism before the long run
_BY_CHANCE = 1e-9  # two runs are refused as copies where chance makes them equal less often


class ConstantOutputError(ValueError):
    """All trials gave one output on each side."""


class Raised(NamedTuple):
    """The outcome of a trial that raised: an adversary sees that, too."""

    kind: str
    message: str


class Vocabulary(dict[Hashable, int]):
    """Numbers the structures (everything about an output except its numbers) as they appear."""

    def __missing__(self, token: Hashable) -> int:
        self[token] = len(self)
        return self[token]


@dataclass(eq=False)
class Outputs:
    """Outputs of many trials.

    Parameters
    ----------
    structure : int array of shape (n,)
        Code of each output's structure: nesting, lengths, strings, keys, exceptions.
    numbers : array of shape (n, d)
        The numbers in it, in order; NaN where an output has fewer than the longest one.
    raw : array or list of length n
        The outputs as the mechanism gave them, for events that a user defines.
    """

    structure: IntArray
    numbers: NDArray[Any]
    raw: Any

    def __len__(self) -> int:
        return len(self.structure)

    def __getitem__(self, rows: slice) -> Outputs:
        return Outputs(self.structure[rows], self.numbers[rows], self.raw[rows])

    def column(self, j: int) -> NDArray[Any]:
        """Column ``j`` of the numbers; all NaN if no output of this batch is long enough."""
        if j < self.numbers.shape[1]:
            return self.numbers[:, j]
        return np.full(len(self), np.nan)

    @staticmethod
    def concatenate(parts: list[Outputs]) -> Outputs:
        """Join batches, padding the shorter ones with NaN."""
        width = max(part.numbers.shape[1] for part in parts)
        matrices = [_padded(part.numbers, width) for part in parts]
        raws = [part.raw for part in parts]
        shapes = {raw.shape[1:] if isinstance(raw, np.ndarray) else None for raw in raws}
        alike = len(shapes) == 1 and None not in shapes
        raw = np.concatenate(raws) if alike else [row for each in raws for row in each]
        return Outputs(
            np.concatenate([part.structure for part in parts]), np.concatenate(matrices), raw
        )


def _padded(matrix: NDArray[Any], width: int) -> NDArray[Any]:
    missing = width - matrix.shape[1]
    if not missing:
        return matrix
    return np.pad(matrix.astype(float), ((0, 0), (0, missing)), constant_values=np.nan)


def flatten(raw: Any, vocabulary: Vocabulary) -> Outputs:
    """Split outputs into structures and numbers.

    Raises
    ------
    TypeError
        If an output is neither a number, an array, a hashable value, nor built from these.
    """
    matrix = _as_matrix(raw)
    if matrix is not None:
        token = ("array", matrix.shape[1:]) if matrix.ndim > 1 else "number"
        n = len(matrix)
        return Outputs(np.full(n, vocabulary[token], dtype=np.int64), matrix.reshape(n, -1), raw)
    structure = np.empty(len(raw), dtype=np.int64)
    rows: list[list[float]] = []
    for i, output in enumerate(raw):
        leaves: list[float] = []
        structure[i] = vocabulary[_structure(output, leaves)]
        rows.append(leaves)
    width = max((len(row) for row in rows), default=0)
    table = np.full((len(rows), width), np.nan)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return Outputs(structure, table, raw)


def _as_matrix(raw: Any) -> NDArray[Any] | None:
    """Numeric outputs of one shape as an array with the trials on its first axis, else None."""
    if isinstance(raw, np.ndarray):
        return raw if raw.dtype.kind in "biuf" else None
    kinds = set(map(type, raw))
    if all(issubclass(kind, _PLAIN) for kind in kinds):
        matrix = np.array(raw)
    elif kinds <= {np.ndarray} and len({(row.shape, row.dtype.kind) for row in raw}) == 1:
        matrix = np.stack(raw)
    elif kinds <= {list, tuple} and len(kinds) == 1 and len(set(map(len, raw))) == 1:
        # Only flat rows of plain numbers: NumPy would turn a string beside a number into two
        # strings, and an array of arrays of another length into an error.
        if not all(isinstance(value, _PLAIN) for row in raw for value in row):
            return None
        matrix = np.array(raw)
    else:
        return None
    return matrix if matrix.dtype.kind in "biuf" else None


def _structure(output: Any, leaves: list[float]) -> Hashable:
    """Everything about ``output`` except its numbers, which are appended to ``leaves``."""
    if isinstance(output, Raised):
        return output
    if isinstance(output, numbers.Real | np.bool_):
        try:
            leaves.append(float(output))
        except OverflowError:
            large: Any = output
            leaves.append(math.inf if large > 0 else -math.inf)
        return "number"
    if isinstance(output, np.ndarray):
        if output.dtype.kind in "biuf":
            leaves.extend(output.ravel().tolist())
            return ("array", output.shape)
        return ("array", output.shape, *(_structure(v, leaves) for v in output.ravel().tolist()))
    if isinstance(output, list | tuple):
        return ("sequence", *(_structure(value, leaves) for value in output))
    if isinstance(output, dict):
        keys = sorted(output, key=repr)
        return ("mapping", *((key, _structure(output[key], leaves)) for key in keys))
    if isinstance(output, set | frozenset):
        return ("set", *sorted(map(repr, output)))
    if isinstance(output, str | bytes) or output is None:
        return ("value", output)
    if type(output).__hash__ in (None, object.__hash__):
        raise TypeError(
            f"The mechanism returned a {type(output).__name__}, which cannot be compared with "
            "another one by value. Return numbers, strings, arrays, or tuples, lists and dicts "
            "of them; for a fitted estimator or a frame give features=, a function from it to "
            "such a value."
        )
    return ("value", output)


class Trials:
    """Runs a mechanism, or fits an estimator, repeatedly.

    Parameters
    ----------
    mechanism : callable or estimator
        ``mechanism(data)``; with ``vectorised`` it is ``mechanism(data, n)`` and gives n outputs.
        Anything with a ``fit`` is cloned (without its ledger) and fitted in every trial.
    features : callable or None
        Applied to each output (vectorised: to each batch), or to the fitted estimator.
    vectorised : bool
    n_jobs : int
        Processes.
    batch_size : int
        Largest number of trials run at once.
    verbose : int
        Whether to print progress to standard error.
    """

    def __init__(
        self,
        mechanism: Any,
        features: Callable[[Any], Any] | None = None,
        *,
        vectorised: bool = False,
        n_jobs: int = 1,
        batch_size: int = 250_000,
        verbose: int = 0,
    ) -> None:
        what = "mechanism"
        if hasattr(mechanism, "fit") and not inspect.isclass(mechanism):
            if vectorised:
                raise ValueError(
                    "An estimator is fitted once per trial and cannot be used with vectorised=True."
                )
            if features is None:
                raise TypeError(
                    "To audit an estimator give features=, a function from the fitted estimator to "
                    "a number, a vector or a hashable, for instance "
                    "features=lambda est: est.cluster_centers_.ravel()."
                )
            what, mechanism = "estimator", _Fit(mechanism)
        elif not callable(mechanism) or inspect.isclass(mechanism):
            raise TypeError(
                f"mechanism must be a function of the data or an estimator, got {mechanism!r}."
            )
        self.run = _Run(what, mechanism, features, vectorised)
        self.vectorised = vectorised
        self.n_jobs = n_jobs
        self.batch_size = batch_size
        self.verbose = verbose
        self.vocabulary = Vocabulary()
        self._single: dict[int, bool] = {}

    def probe(self, dataset: Any, neighbour: Any) -> None:
        """Run a few trials, to refuse early what cannot be audited."""
        firsts: list[Any] = []
        for side, data in enumerate((dataset, neighbour)):
            raw = self.run.batch(data, _PROBE)
            # A vectorised mechanism that raises takes the whole batch with it: call it one by one.
            self._single[side] = self.vectorised and raw is None
            if self._single[side]:
                raw = [self.run.single(data) for _ in range(_PROBE)]
            first = flatten(raw, self.vocabulary)
            firsts.extend(row for row in raw if isinstance(row, Raised))
            if self.vectorised and not self._single[side]:
                again = flatten(self.run.batch(data, _PROBE), self.vocabulary)
                if _repeats(first, again):
                    raise ValueError(
                        SEEDED.format(what="Two batches gave exactly the same outputs.")
                    )
        if len(firsts) == 2 * _PROBE and len({kind for kind, _ in firsts}) == 1:
            kind, message = firsts[0]
            raise ValueError(
                f"The mechanism raised {kind} in every trial on both data sets: {message}"
            )

    def draw(self, data: Any, n: int, side: int) -> Iterable[Outputs]:
        """Outputs of ``n`` fresh trials on ``data``, in batches; ``side`` is 0 or 1."""
        if self.vectorised and not self._single[side]:
            yield from self._in_batches(data, n, side)
        else:
            yield from self._one_by_one(data, n, side)

    def _in_batches(self, data: Any, n: int, side: int) -> Iterable[Outputs]:
        progress = _Progress(n, side, self.verbose)
        done = 0
        while done < n:
            size = min(self.batch_size, n - done)
            raw = self.run.batch(data, size)
            if raw is None:
                raise ValueError(
                    "The vectorised mechanism raised in one batch and not in another, so the "
                    "outcomes of the other trials of that batch are unknown. Let it return a mark "
                    "for a failed trial (NaN, say), or pass vectorised=False."
                )
            done += size
            progress(done)
            yield flatten(raw, self.vocabulary)

    def _one_by_one(self, data: Any, n: int, side: int) -> Iterable[Outputs]:
        progress = _Progress(n, side, self.verbose)
        jobs = max(1, self.n_jobs)
        # Short rounds while the speed of a trial is unknown, then rounds of some seconds. With
        # several jobs the first round is long enough to detect jobs that repeat each other.
        size, done = min(n, 8 if jobs == 1 else _PROBE * jobs), 0
        with Parallel(n_jobs=jobs) as pool:
            while done < n:
                size = min(size, n - done)
                start = time.perf_counter()
                shares = np.diff(np.linspace(0, size, jobs + 1).astype(int)).tolist()
                # Each job draws from its own process's entropy; data are sent to it, never a seed.
                chunks = pool(delayed(_repeat)(self.run, data, share) for share in shares if share)
                raw = [row for chunk in chunks for row in chunk]
                outputs = flatten(raw, self.vocabulary)
                if jobs > 1:
                    _refuse_repeats(outputs, [len(chunk) for chunk in chunks])
                done += size
                progress(done)
                yield outputs
                seconds = max(time.perf_counter() - start, 1e-6)
                size = int(min(max(size * 3.0 / seconds, jobs), 8 * size, self.batch_size))


def _repeat(run: Any, data: Any, n: int) -> list[Any]:
    return [run.single(data) for _ in range(n)]


def constant(outputs: Outputs) -> bool:
    """Whether all outputs are the same."""
    numbers = outputs.numbers
    return bool(
        np.all(outputs.structure == outputs.structure[0])
        and np.all((numbers == numbers[0]) | ((numbers != numbers) & (numbers[0] != numbers[0])))
    )


def _repeats(first: Outputs, again: Outputs) -> bool:
    """Whether two runs are the same where chance would hardly ever make them so.

    Independent runs of n outputs agree with probability c^n, c being the chance that two outputs
    agree, here from the shares of the outcomes. A mechanism that nearly always answers the same
    agrees with itself often.
    """
    if not np.array_equal(first.structure, again.structure):
        return False
    numbers = first.numbers.astype(float)
    if not np.array_equal(numbers, again.numbers.astype(float), equal_nan=True):
        return False
    table = np.column_stack([first.structure, np.nan_to_num(numbers, nan=np.inf)])
    counts = np.unique(table, axis=0, return_counts=True)[1]
    agree = float(np.square(counts / len(table)).sum())
    return len(table) * math.log(agree) < math.log(_BY_CHANCE)


def _refuse_repeats(outputs: Outputs, sizes: list[int]) -> None:
    """Refuse jobs that repeat each other: a generator was copied into each process."""
    ends = np.cumsum(sizes)
    parts = [outputs[slice(end - size, end)] for size, end in zip(sizes, ends, strict=True)]
    for part in parts[1:]:
        if _repeats(parts[0][: len(part)], part):
            raise ValueError(
                SEEDED.format(what="Two processes gave exactly the same sequence of outputs.")
                + " A generator that the mechanism holds is copied into every process: make it "
                "inside, or use n_jobs=1."
            )


def _outcome(what: str, act: Callable[[], Any]) -> Any:
    """What a trial gives, or that it raised; a seed is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InsecureSeedWarning)
        try:
            return act()
        except InsecureSeedWarning as warning:
            raise ValueError(SEEDED.format(what=f"The {what} is seeded: {warning}.")) from warning
        except Exception as error:
            return Raised(type(error).__name__, str(error)[:200])


@dataclass
class _Run:
    """One trial of a function, or many at once."""

    what: str
    mechanism: Callable[..., Any]
    features: Callable[[Any], Any] | None
    vectorised: bool

    def _released(self, *arguments: Any) -> Any:
        output = self.mechanism(*arguments)
        return output if self.features is None else self.features(output)

    def single(self, data: Any) -> Any:
        """Output of one trial."""
        if self.vectorised:
            return _outcome(self.what, lambda: self._released(data, 1)[0])
        return _outcome(self.what, lambda: self._released(data))

    def batch(self, data: Any, n: int) -> Any:
        """Outputs of ``n`` trials; None if a vectorised mechanism raised."""
        if not self.vectorised:
            return [self.single(data) for _ in range(n)]
        raw = _outcome(self.what, lambda: self._released(data, n))
        if isinstance(raw, Raised):
            return None
        if not isinstance(raw, np.ndarray | list) or len(raw) != n:
            size = f" of length {len(raw)}" if hasattr(raw, "__len__") else ""
            raise ValueError(
                f"A vectorised mechanism must return an array or a list of {n} outputs when asked "
                f"for {n}, one for each trial; it returned a {type(raw).__name__}{size}."
            )
        return raw


class _Fit:
    """Fits a clone of an estimator."""

    def __init__(self, estimator: Any) -> None:
        params = estimator.get_params(deep=True)
        # A nested seed may belong to post-processing; a nested seed of noise warns in the fit.
        if params.get("random_state") is not None:
            raise ValueError(
                SEEDED.format(what=f"The estimator has random_state={params['random_state']!r}.")
            )
        # Trials are not releases: they must not charge the ledger of a real data set.
        ledgers = {name: None for name in params if name.split("__")[-1] == "ledger"}
        self.estimator = clone(estimator).set_params(**ledgers)

    def __call__(self, data: Any) -> Any:
        estimator = clone(self.estimator)
        fitted = estimator.fit(*data) if isinstance(data, tuple) else estimator.fit(data)
        return estimator if fitted is None else fitted


class _Progress:
    """A line on standard error every few seconds."""

    def __init__(self, total: int, side: int, verbose: int) -> None:
        self.total = total
        self.name = ("dataset", "neighbour")[side]
        self.verbose = verbose
        self.start: tuple[float, int] | None = None
        self.last = time.perf_counter()

    def __call__(self, done: int) -> None:
        now = time.perf_counter()
        if self.start is None:
            # The first batch includes imports and new processes, so its speed is not
            # representative.
            self.start = (now, done)
        elif self.verbose and now - self.last > 2 and done < self.total:
            self.last = now
            left = (now - self.start[0]) / (done - self.start[1]) * (self.total - done)
            print(
                f"audit: {done:,} of {self.total:,} trials on the {self.name}, "
                f"about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
