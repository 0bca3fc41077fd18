"""Running the code of others on records: no error gets out, and no run can tell another anything.

Whether a user's code or a library raises, what its error says, and how much it draws from a
generator may depend on a record.
"""

from __future__ import annotations

import contextlib
import copy
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import joblib
import numpy as np
from sklearn import config_context

from ._random import shared_generators_kept

T = TypeVar("T")
D = TypeVar("D")


def attempt(ask: Callable[[], T], otherwise: D) -> T | D:
    """What ``ask`` returns, or ``otherwise`` if it raises, whatever it raises.

    Only what the user ends the process with gets out; see `reraise_interrupts`.
    """
    try:
        return ask()
    except BaseException as error:  # panics of Rust, which quote values, are not an Exception
        reraise_interrupts(error)
    return otherwise


def reraise_interrupts(error: BaseException) -> None:
    """Raise ``error`` again if the user ends the process with it, and return otherwise.

    That is Ctrl-C, and what the handler of a signal raises, such as SystemExit for SIGTERM. A
    SystemExit of the code that ran is like any other error: its text may quote a value.
    """
    if isinstance(error, KeyboardInterrupt):
        raise error
    if not isinstance(error, Exception) and _raised_by_a_signal(error):
        raise error


def _raised_by_a_signal(error: BaseException) -> bool:
    handlers = (signal.getsignal(each) for each in signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


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
