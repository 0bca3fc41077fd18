"""Randomness: the only module of the package that makes a source of random numbers.

There are two kinds, with different duties. `NoiseSource` feeds the noise of private
releases and reads the operating system's entropy; anyone who predicts it can subtract the noise.
`sampling_generator` gives ordinary NumPy generators for post-processing of what has already been
released (synthetic rows, starts of an optimiser), where only quality and speed matter.

Both are obtained by one call, which is therefore the seam for `skdp.audit.replay`: while a `Tape`
is recording, every source is the tape.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import math
import numbers
import os
import random
import secrets
import sys
import sysconfig
import tempfile
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, overload

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc
from sklearn import config_context

from ._validation import FloatArray, IntArray, batches
from .exceptions import InsecureSeedWarning

_BUFFER_WORDS = 1024
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

Size = int | tuple[int, ...]


# Counts the forks between the first process and this one. A process id alone can be reused: a
# grandchild may get that of its dead grandparent.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def process_mark() -> tuple[int, int]:
    """What differs between this process and its forks."""
    return os.getpid(), _forks


class NoiseSource:
    """Uniform random words for noise, from the operating system's entropy.

    Small requests are served from a buffer of `os.urandom`. Each thread has its own, so that no
    word is used twice, and a buffer is dropped when the process id changes, so that forked
    processes do not repeat each other's noise.

    Attributes
    ----------
    seeded : bool
        False: words come from the operating system. True: they come from a seed, and noise made
        from them gives no protection.

    Notes
    -----
    Copies are the same object: a copied stream would repeat noise, and the difference of two
    releases with equal noise is exact. Pickling gives the operating system's source again; a
    seeded source refuses, since its state reveals the noise.

    To script or record the words in tests, subclass and override ``_take``.
    """

    seeded = False

    def __init__(self) -> None:
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"<NoiseSource: {'seeded, no guarantee' if self.seeded else 'system entropy'}>"

    def __copy__(self) -> NoiseSource:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> NoiseSource:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (NoiseSource, ())

    def _take(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` fresh words; all other methods of this class use it."""
        if count >= _BUFFER_WORDS:
            return _entropy(count)
        local = self._local
        process = process_mark()
        if getattr(local, "process", None) != process or local.used + count > _BUFFER_WORDS:
            local.buffer = _entropy(_BUFFER_WORDS)
            local.used = 0
            local.process = process
        used = local.used
        local.used = used + count
        words: NDArray[np.uint64] = local.buffer[used : used + count]
        return words

    def words(self, size: Size) -> NDArray[np.uint64]:
        """Uniform 64-bit words.

        Parameters
        ----------
        size : int or tuple of int
            Shape of the result.

        Returns
        -------
        ndarray of uint64
        """
        if isinstance(size, tuple):
            return self._take(_count(size)).reshape(size)
        return self._take(size)

    def half_words(self, size: Size) -> NDArray[np.uint16]:
        """Uniform 16-bit numbers, at a quarter of the cost of `words`.

        Parameters
        ----------
        size : int or tuple of int
            Shape of the result.

        Returns
        -------
        ndarray of uint16
        """
        count = _count(size)
        halves = self._take(-(-count // 4)).view(np.uint16)[:count]
        return halves.reshape(size)

    @overload
    def below(self, bound: int, size: None = None) -> int: ...
    @overload
    def below(self, bound: int, size: Size) -> IntArray: ...
    @overload
    def below(self, bound: NDArray[np.integer], size: Size | None = None) -> IntArray: ...

    def below(self, bound: int | NDArray[np.integer], size: Size | None = None) -> int | IntArray:
        """Unbiased uniform integers in [0, bound).

        Parameters
        ----------
        bound : int or ndarray of int
            At least 1 and at most 2**63; an array gives each element its own bound.
        size : int or tuple of int, optional
            Shape of the result; by default that of ``bound`` (a Python int for a scalar).

        Returns
        -------
        int or ndarray of int64
        """
        # The words below 2**64 mod bound are refused; the others are a whole number of
        # periods of the remainder, hence no bias.
        if isinstance(bound, np.ndarray):
            shape = bound.shape if size is None else size
            if bound.dtype.kind not in "iu" or (bound.size and bound.min() < 1):
                raise ValueError("bound must hold integers of at least 1.")
            bounds = np.broadcast_to(bound.astype(np.uint64), shape).ravel()
            refused = (np.uint64(0) - bounds) % bounds if bounds.size else bounds
            words = self._take(bounds.size)
            again = np.flatnonzero(words < refused)
            words = words % bounds
            while again.size:
                fresh = self._take(again.size)
                words[again] = fresh % bounds[again]
                again = again[fresh < refused[again]]
            return words.view(np.int64).reshape(shape)
        if not 1 <= bound <= 2**63:
            raise ValueError(f"bound must be between 1 and 2**63, got {bound}.")
        least = 2**64 % bound
        if size is None:
            while True:
                word = int(self._take(1)[0])
                if word >= least:
                    return word % bound
        words = self._take(_count(size))
        again = np.flatnonzero(words < np.uint64(least))
        words = words % np.uint64(bound)
        while again.size:
            fresh = self._take(again.size)
            words[again] = fresh % np.uint64(bound)
            again = again[fresh < np.uint64(least)]
        return words.view(np.int64).reshape(size)

    def branches(self, count: int) -> list[NoiseSource]:
        """Sources of parts that are made in any order, by this process or by others."""
        return [self] * count

    def record_words(
        self, size: int, records: NDArray[Any] | None = None, owners: NDArray[Any] | None = None
    ) -> NDArray[np.uint64]:
        """Secret random words that belong to records: one for each, drawn independently.

        Parameters
        ----------
        size : int
            How many records there are.
        records : ndarray of shape (size, ...), optional
            Everything known about each record: equal records must be interchangeable. None: a
            record is identified by its position in the data. Only a tape reads this, to give a
            record the same words in a neighbouring data set.
        owners : ndarray of int, shape (size,), optional
            The person that each record belongs to. Persons with equal records are interchangeable,
            however they are numbered.

        Returns
        -------
        ndarray of uint64, shape (size,)
        """
        return self.words(size)

    def record_below(self, bound: int, size: int, records: NDArray[Any] | None = None) -> IntArray:
        """Secret uniform integers in [0, bound), one for each record; see `record_words`."""
        coins = np.empty(size, dtype=np.int64)
        for part in batches(size):
            coins[part] = self.below(bound, part.stop - part.start)
        return coins


class _SeededSource(NoiseSource):
    """Words that repeat with the seed: for experiments and tests only.

    One stream serves all threads; the bit generator's own lock keeps them from getting the
    same words. A forked process continues the parent's stream, as repeating is the purpose.
    """

    seeded = True

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._bits = seeded_bits(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "A seeded noise source cannot be pickled: its state would reveal all "
            "later noise. Use random_state=None, or make the source where it is used."
        )

    def branches(self, count: int) -> list[NoiseSource]:
        return [_Branch(int(word)) for word in self.words(count)]

    def _take(self, count: int) -> NDArray[np.uint64]:
        return self._bits.random_raw(count)


class _Branch(_SeededSource):
    """A seeded stream of one part alone, which may be sent to the process that makes it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def __reduce__(self) -> tuple[Any, ...]:
        return _Branch, (self._seed,)


class Call(NamedTuple):
    """The arguments of a mechanism, as a `Tape` sees them.

    Attributes
    ----------
    mechanism : str
        Which distribution the answer has: "discrete_laplace", "max_norm", "selection", "buckets",
        "top_k", "top_k, together", "threshold", "stream", "sparse_counts" or "line".
    values : ndarray of int64
        Exact values, the only part that may depend on records. For "sparse_counts" the distinct
        rows of a table, each with its count in the last column; for "line" the first integer and
        the score of each piece. Their number is private.
    rate : Fraction
        Rate of the noise: the privacy loss for each unit by which a value changes.
    public : tuple
        Everything else; equal on neighbouring data sets.
    """

    mechanism: str
    values: IntArray
    rate: Fraction
    public: tuple[Any, ...] = ()


WORKERS = (
    "A recorded run cannot use worker processes: their draws would not be seen. Set n_jobs=None "
    "everywhere."
)


class Tape(NoiseSource):
    """Stands in for all noise while a run is recorded, and answers every mechanism call itself.

    A mechanism that is given a tape returns ``tape.answer(call)`` and draws nothing. Words that are
    asked for elsewhere are public coins; `record_words` gives secret coins of records. See
    `skdp.audit.replay`, which has the only implementation.

    Attributes
    ----------
    missed : int
        Sources that were made outside the recorded context while it was open: by other threads, or
        by processes that were started meanwhile.
    """

    missed = 0

    def answer(self, call: Call) -> Any:
        """Return what the mechanism releases."""
        raise NotImplementedError

    def serial(self) -> int:
        """Return a number for a mechanism that is called several times, such as a sparse vector."""
        raise NotImplementedError

    def refuse(self, why: str) -> NoReturn:
        """End the run, because it cannot be replayed."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        self.refuse(WORKERS)


_GLOBAL_SEED = 0
# Names a file that exists while a run is recorded, for processes that are started meanwhile: they
# inherit the environment, if nothing else.
_MARK = "SKDP_RECORDING"
_current: ContextVar[Tape | None] = ContextVar("skdp_tape", default=None)
# Tapes that are recording in any thread. A thread started meanwhile does not see the tape, and what
# it draws must not go unnoticed.
_recording: list[Tape] = []


@contextlib.contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Make ``tape`` the source of all noise in this context.

    The generators of the process, such as NumPy's, which seeds scikit-learn's estimators, give
    public coins too.
    """
    outer = os.environ.get(_MARK)
    handle, drawn = tempfile.mkstemp(prefix="skdp-recording-")
    os.close(handle)
    os.environ[_MARK] = drawn
    token = _current.set(tape)
    _recording.append(tape)
    try:
        with shared_generators_kept():
            np.random.seed(_GLOBAL_SEED)  # noqa: NPY002
            random.seed(_GLOBAL_SEED)
            yield
    finally:
        os.environ.pop(_MARK, None)
        if outer is not None:
            os.environ[_MARK] = outer
        with contextlib.suppress(OSError):
            tape.missed += os.path.getsize(drawn)
            os.unlink(drawn)
        _recording.remove(tape)
        _current.reset(token)


def _tape() -> Tape | None:
    tape = _current.get()
    if tape is None:
        for other in _recording:
            other.missed += 1
        if not _recording:
            report_draw()
    return tape


def report_draw() -> None:
    """Report a draw to the process that started this one, if that is recording a run."""
    path = os.environ.get(_MARK)
    if path is not None:
        with contextlib.suppress(OSError), open(path, "r+b") as file:
            file.write(b"1")


def seeded_bits(seed: int) -> np.random.Philox:
    """A stream of random words that repeats with the seed: for tapes and experiments."""
    return np.random.Philox(seed)


_SYSTEM = NoiseSource()


def noise_source(random_state: Any = None) -> NoiseSource:
    """Turn the ``random_state`` of a private release into a source of noise.

    Parameters
    ----------
    random_state : None, int or NoiseSource
        None: the operating system's entropy. An int: a stream that repeats with it, for
        experiments on data that need no protection. A source is passed through.

    Returns
    -------
    NoiseSource

    Raises
    ------
    TypeError
        For anything else, NumPy's generators included: their state can be recovered from
        their output, and with it the noise.
    ValueError
        If the int is negative.

    Warns
    -----
    InsecureSeedWarning
        If an int is given.
    """
    tape = _tape()
    if tape is not None:
        return tape
    if random_state is None:
        return _SYSTEM
    if isinstance(random_state, NoiseSource):
        return random_state
    if isinstance(
        random_state, (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
    ):
        raise TypeError(
            f"random_state is a NumPy {type(random_state).__name__}, which cannot make private "
            "noise: its state can be computed from its output. Use random_state=None for the "
            "operating system's entropy, or an int in an experiment on public data."
        )
    seed = _as_seed(
        random_state,
        "None (the operating system's entropy) or an int (for experiments on public data)",
    )
    warnings.warn(
        "The noise comes from a seed: anyone who knows or guesses it can remove the noise, so "
        "this release has no privacy guarantee. Use random_state=None for real data.",
        InsecureSeedWarning,
        stacklevel=caller_level(),
    )
    return _SeededSource(seed)


def is_generator(thing: Any) -> bool:
    """Whether this is a generator of Python or NumPy, whose state can be kept and set."""
    if isinstance(thing, random.Random):
        return not isinstance(thing, random.SystemRandom)
    if isinstance(thing, np.random.BitGenerator | np.random.Generator | np.random.RandomState):
        # Bit generators of other libraries may not take a seed.
        return hasattr(np.random, _state_of(thing)["bit_generator"])
    return False


@contextlib.contextmanager
def shared_generators_kept(more: Iterable[Any] = ()) -> Iterator[Callable[[Iterable[int]], None]]:
    """Put back the generators that all code of a process shares, whatever is drawn from them.

    How far they have gone would tell how much was drawn. These are Python's and NumPy's; those of
    other libraries cannot be reached.

    Parameters
    ----------
    more : iterable
        Other generators to keep and to seed, for which `is_generator`.

    Yields
    ------
    callable
        Seeds all of them by a few integers of at least 0, such as the words of a `NoiseSource`.
    """
    # The two that the functions of both modules draw from.
    usual: Any = random.getstate, np.random.get_state  # noqa: NPY002
    generators = [*(function.__self__ for function in usual), *more]
    states = [_state_of(each) for each in generators]

    def seed(words: Iterable[int]) -> None:
        streams = np.random.SeedSequence([int(word) for word in words]).spawn(len(generators))
        for each, stream in zip(generators, streams, strict=True):
            _seed(each, stream)

    try:
        yield seed
    finally:
        for each, state in zip(generators, states, strict=True):
            _set_state(each, state)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return getattr(generator, "bit_generator", generator).state


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        getattr(generator, "bit_generator", generator).state = state


def _seed(generator: Any, stream: np.random.SeedSequence) -> None:
    if isinstance(generator, random.Random):
        generator.seed(stream.generate_state(8).tobytes())
    else:
        kind = getattr(np.random, _state_of(generator)["bit_generator"])
        _set_state(generator, kind(stream).state)


def token() -> str:
    """Text that nobody can guess, for an address."""
    return secrets.token_urlsafe(24)


def even_points(n_points: int, n_columns: int) -> FloatArray:
    """Public points in [0, 1) that lie evenly, (n_points, n_columns), the same in each call.

    A power of 2 of them: Sobol's, moved by random numbers so that none lies at an end.
    """
    sequence = qmc.Sobol(n_columns, scramble=False)
    points: FloatArray = sequence.random_base2(n_points.bit_length() - 1)
    return (points + sampling_generator(0).random(n_columns)) % 1.0


def sampling_generator(random_state: Any = None) -> np.random.Generator:
    """Turn a ``random_state`` into a NumPy generator, for post-processing of releases only.

    Sampling from something released costs no privacy, whatever the generator: no warning.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or NoiseSource
        None: seeded by the operating system. A generator is passed through; a source seeds a
        new generator with its next words, so that a seeded source repeats here too.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        If the int is negative.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        # While a run is recorded, an unseeded generator is a public coin.
        random_state = _tape() or _SYSTEM
    if isinstance(random_state, NoiseSource):
        return np.random.default_rng([int(word) for word in random_state.words(4)])
    seed = _as_seed(random_state, "None, an int or a numpy.random.Generator for sampling")
    return np.random.default_rng(seed)


def _as_seed(random_state: Any, allowed: str) -> int:
    """A seed that is an int and not negative."""
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(
        random_state, (int, np.integer)
    ):
        raise TypeError(f"random_state must be {allowed}, got {type(random_state).__name__}.")
    if random_state < 0:
        raise ValueError("random_state must not be negative. Use None, or an int of at least 0.")
    return int(random_state)


def _entropy(count: int) -> NDArray[np.uint64]:
    # A bytearray, so that callers may work in place whatever the source.
    return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


def _count(size: Size) -> int:
    return math.prod(size) if isinstance(size, tuple) else size


def caller_level() -> int:
    """Stack level at which a warning names the first line outside the package."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    return level


def warn_after_charge(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something that was paid for: shown, not raised, where warnings are errors.

    An exception would lose the release, and the budget with it.
    """
    level = caller_level()
    try:
        warnings.warn(message, category, stacklevel=level)
    except category:
        with warnings.catch_warnings():
            warnings.simplefilter("always", category)
            warnings.warn(message, category, stacklevel=level)


# --- seeds of private noise are hidden: anyone who knows one can subtract the noise


class Seed(int):
    """The seed of private noise: an integer whose repr hides its value.

    Pipelines, searches and notebooks print the parameters of the estimators inside them.
    """

    def __repr__(self) -> str:
        return "<seeded: no guarantee>"

    __str__ = __repr__

    def __reduce__(self) -> tuple[type[Seed], tuple[int]]:
        return Seed, (int(self),)

    # As for an int: clone() compares parameters by identity.
    def __copy__(self) -> Seed:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Seed:
        return self


class HidesSeed:
    """Keeps an integer ``random_state``, which draws private noise, as a `Seed`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "random_state":
            value = as_seed(value)
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Files of other libraries hold a plain number.
        if "random_state" in state:
            state = {**state, "random_state": as_seed(state["random_state"])}
        # Some base classes have none, and object has none.
        getattr(super(), "__setstate__", self.__dict__.update)(state)


def as_seed(value: Any) -> Any:
    """``value``, as a `Seed` if it is an integer."""
    known = isinstance(value, bool | np.bool_ | Seed)
    return Seed(value) if isinstance(value, numbers.Integral) and not known else value


# --- the code of others, run on records: how much it draws from a generator may depend on a record,
# so no run can tell another anything


def is_installed(module: str | None) -> bool:
    """Whether a module is installed, as opposed to written by whoever runs this."""
    top = (module or "").partition(".")[0]
    if top == "skdp" or top in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return any(file.startswith(sysconfig.get_path(key) + os.sep) for key in ("purelib", "platlib"))


def shared_generators(thing: object, twin: object) -> list[Any]:
    """Generators that an object and its deep copy have in common.

    They belong to classes, modules, and closures, defaults and global variables of functions.
    """
    own, others = _generators(thing), _generators(twin)
    return [generator for place, generator in own.items() if place in others]


def _generators(thing: object) -> dict[int, Any]:
    """The generators that an object can reach without the code of libraries, by identity."""
    left, found = [thing], {}
    # The objects themselves are kept, so that no identity is used again.
    seen: dict[int, object] = {}
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if is_generator(one):
            found[id(one)] = one
        elif isinstance(one, types.FunctionType):
            if not is_installed(one.__module__):
                names = _names(one.__code__)
                left += [value for name, value in one.__globals__.items() if name in names]
            left += [one.__defaults__, one.__kwdefaults__, one.__closure__, one.__dict__]
        elif isinstance(one, type | types.ModuleType):
            place = one.__module__ if isinstance(one, type) else one.__name__
            left += [] if is_installed(place) else gc.get_referents(one)
        elif isinstance(one, np.ndarray):
            left += one.tolist() if one.dtype.kind == "O" else []
        else:
            left += gc.get_referents(one)
    return found


def _names(code: types.CodeType) -> set[str]:
    """All names in a function, and in the functions within it."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return {*code.co_names}.union(*map(_names, inner))


def copied(value: Any, name: str) -> Any:
    """A deep copy; refuses what has none, before anything is charged.

    Raises
    ------
    TypeError
        If `copy.deepcopy` fails.
    """
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise TypeError(
            f"{name} cannot be copied ({type(error).__name__}: {error}), but every run needs a "
            "copy of its own, so that no run can tell another anything. Leave out what holds open "
            "files, locks or connections."
        ) from error


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    """Put back filters of warnings and settings of NumPy and scikit-learn."""
    with warnings.catch_warnings(), np.errstate(), config_context():
        yield


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings, and errors made from them: both would depend on a value."""
    with settings_kept():
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        yield


@contextlib.contextmanager
def kept_apart(generators: Iterable[Any]) -> Iterator[Callable[[Iterable[int]], None]]:
    """Keep the generators of the process and others; joblib's work stays in this process.

    Worker processes live on after a run, with generators of their own that cannot be seeded from
    here, and what they print cannot be held back: threads take their place.

    Yields
    ------
    callable
        As in `shared_generators_kept`.
    """
    with shared_generators_kept(generators) as seed, joblib.parallel_config(backend="threading"):
        yield seed
