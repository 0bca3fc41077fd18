"""How near each call of a mechanism comes to what it was paid for, in a replay.

A replay adds up losses, and a small part of epsilon hides behind the others. Here every call is
looked at by itself: by how much its exact values changed, as a share of the sensitivity or the
score range that its noise was drawn for, and what it was paid.

- No call changes by more than it declares, but for those with "several" in `worst.toml`.
- What all calls of a run were paid adds up to no more than epsilon, but for "parallel" branches.
- What the steps of a part of the budget cost together is within that part.
- Every call reaches what it declares on its worst pair: a sensitivity that is too small shows.
"""

import ast
import contextlib
import fnmatch
import functools
import importlib
import math
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from skdp.audit import _tapes
from skdp.mechanisms import laplace

# A change of this share is as large as declared: sensitivities are rounded up, and a record among
# n changes some scores by n / (n + 1) of the range.
REACHED = 0.97
_DRAWING = ("laplace", "selection", "sparse_vector")

# While replays are watched, another function has its place.
_noise_rate = laplace.noise_rate


class _Rate(Fraction):
    """A rate that remembers what it was made of."""

    epsilon: Fraction
    sensitivity: Fraction


def _rate(epsilon: Any, sensitivity: Any) -> _Rate:
    plain = _noise_rate(epsilon, sensitivity)
    rate = _Rate(plain.numerator, plain.denominator)
    rate.sensitivity = Fraction(sensitivity)
    rate.epsilon = plain * rate.sensitivity
    return rate


@dataclass(frozen=True)
class Call:
    """A call in both runs of a replay.

    Attributes
    ----------
    step : str
        Function and mechanism, and which one of several calls in the function; without the module.
    epsilon : float
        What it was paid, as drawn: the largest dyadic number up to the given epsilon. 0 for a
        comparison of a sparse vector, which pays for all of them at once.
    share : float
        Change of its exact values, in units of the declared sensitivity or score range.
    """

    step: str
    epsilon: float
    share: float


@contextlib.contextmanager
def watching() -> Iterator[list[Call]]:
    """The calls with exact values of all replays inside."""
    calls: list[Call] = []
    count = _tapes.Follower._count

    def counted(self: Any, told: Any, entry: Any) -> None:
        count(self, told, entry)
        calls.append(_call(told, entry))

    with contextlib.ExitStack() as stack:
        for name in _DRAWING:
            module = importlib.import_module(f"skdp.mechanisms.{name}")
            stack.callback(setattr, module, "noise_rate", module.noise_rate)
            module.noise_rate = _rate
        stack.callback(setattr, _tapes.Follower, "_count", count)
        _tapes.Follower._count = counted
        yield calls


# By how much more than one winner's range a selection is paid for.
_TIMES = {"top_k": lambda public: public[2], "top_k, together": lambda public: 2}


def _call(told: Any, entry: Any) -> Call:
    rate, here, there = entry.public[0], told.values, entry.values
    if entry.mechanism == "sparse_counts":
        here, there = _tapes._matched(here, there)
    elif entry.mechanism == "line":
        here, there = _tapes._on_common_pieces(here, there)
    change = _tapes._change(here, there)
    step = _step(entry)
    if entry.mechanism == "stream":
        return Call(step, 0.0, float(np.abs(change).max(initial=0)) / float(entry.public[4]))
    if entry.mechanism in ("discrete_laplace", "sparse_counts", "threshold", "max_norm"):
        sizes, largest = np.abs(change), entry.mechanism == "max_norm"
        moved = sizes.max(initial=0) if largest else sizes.sum(dtype=np.float64)
        share = float(moved) / float(rate.sensitivity)
        return Call(step, float(rate.epsilon), share)
    width = entry.public[1]
    starts = entry.public[2] if entry.mechanism == "selection" else np.zeros(1, dtype=np.int64)
    spread = np.maximum.reduceat(change, starts) - np.minimum.reduceat(change, starts)
    epsilon = rate * width * _TIMES.get(entry.mechanism, lambda public: 1)(entry.public)
    return Call(step, float(epsilon), float(spread.sum(dtype=np.float64)) / float(width))


# What a mechanism is called by in the code, where a function may call it more than once.
_CALLED = {
    "discrete_laplace": ("discrete_laplace", "bounded_sum"),
    "selection": ("noisy_max", "exponential", "permute_and_flip"),
}


def _step(entry: Any) -> str:
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith((*_tapes._SEAMS, __name__)):
        frame = frame.f_back
    # Comprehensions are functions of their own before Python 3.12.
    function = frame.f_code.co_qualname.partition(".<locals>")[0]
    lines = _lines(frame.f_code.co_filename, function, _CALLED.get(entry.mechanism, ()))
    place = sum(line <= frame.f_lineno for line in lines)
    return f"{function}, {entry.mechanism}" + (f" ({place})" if place > 1 else "")


@functools.cache
def _lines(file: str, function: str, names: tuple[str, ...]) -> list[int]:
    """First lines of the calls of some functions within a function."""
    node: Any = ast.parse(Path(file).read_text(encoding="utf-8"))
    for name in function.split("."):
        inside = [each for each in ast.iter_child_nodes(node) if getattr(each, "name", "") == name]
        if not inside:
            return []
        node = inside[-1]
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    return sorted(each.lineno for each in calls if getattr(each.func, "id", None) in names)


KNOWN = tomllib.loads(Path(__file__).with_name("worst.toml").read_text(encoding="utf-8"))
STEPS, PARALLEL = KNOWN["step"], KNOWN["parallel"]
# Parts of the budget by step, whichever of several calls in a function.
PARTS = {re.sub(r" \(\d\)$", "", step): known.get("part") for step, known in STEPS.items()}


def assert_paid(name: str, calls: list[Call], epsilon: float, most: int) -> None:
    """No call of a run changes by more than it declares, and all together cost epsilon.

    ``most``: rows that may count of what differs, each of which has its part of epsilon.
    """
    for call in calls:
        fits = call.share <= most * (1 + 1e-9) or "several" in STEPS.get(call.step, {})
        assert fits, (name, call)
    paid = math.fsum(call.epsilon * max(1.0, call.share / most) for call in calls)
    if parallel(name) is None:
        assert paid <= epsilon / most * (1 + 1e-9), (name, paid, epsilon)


def parallel(name: str) -> dict[str, Any] | None:
    """What is known of a branch in which a record is in one of several parts."""
    return next((PARALLEL[each] for each in PARALLEL if fnmatch.fnmatchcase(name, each)), None)


def assert_parts(result: Any) -> None:
    """What the steps of a part cost together is within its budget."""
    spent: dict[str | None, float] = defaultdict(float)
    for step, loss in result.by_part.items():
        spent[PARTS[_without_module(step)]] += loss
    for part, loss in spent.items():
        # A step may spend one of several parts, and an estimator around another one has its own.
        names = [name for name in (part or "").split(" + ") if name in result.declared]
        declared = sum(result.declared[name] for name in names)
        assert not names or loss <= declared * (1 + 1e-9) + 1e-9, (part, str(result))


def _without_module(step: str) -> str:
    function, _, mechanism = step.partition(", ")
    names = function.partition(".<locals>")[0].split(".")
    texts = [f"{'.'.join(names[first:])}, {mechanism}" for first in range(len(names))]
    return next(text for text in texts if text in PARTS)


def assert_reached(name: str, reached: dict[str, dict[str, float]], tightest: float) -> None:
    """Calls of a branch have been as near to what they declare as is known.

    ``reached``: for each step the largest share on each pair, of what a person may contribute.
    ``tightest``: the largest part of epsilon that a run has cost.
    """
    for step, by_pair in reached.items():
        assert step in STEPS, f"{step} has no worst pair: add one to tests/worst.toml"
        known, found = STEPS[step], max(by_pair.values())
        branch, pair = known.get("worst", ("", ""))
        least = known.get("least", REACHED)
        assert found >= least - 5e-4, f"{name}: {step} reaches {found:.4f}, below {least}"
        if branch == name:
            share, wanted = by_pair[pair], known.get("reaches", REACHED)
            assert share >= wanted, f"{name}: {step} reaches {share:.4f} on its worst pair"
    # Where a record is in one of several parts, what is spent twice shows in the sum alone.
    least = (parallel(name) or {"least": 0.0})["least"]
    assert tightest >= least - 1e-3, f"{name}: costs {tightest:.4f}, below {least}"
