"""What is reported about a step of a composed estimator, and what a step is given."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

PRIVATE, PUBLIC, RELEASE, LEAKS, UNKNOWN = (
    "private",
    "public",
    "post-processing",
    "leaks",
    "unknown",
)

# Kinds of columns that earlier steps have ensured: "" where the columns are as they came; float64;
# Python text; types that no value decides; and whatever no rule can fail on.
NUMBERS, TEXTS, FIXED, TAME = "numbers", "texts", "fixed", "tame"


@dataclass(frozen=True)
class Range:
    """What earlier steps have ensured for all numbers in the rows, and the kind of the columns."""

    low: float = -math.inf
    high: float = math.inf
    missing: bool = True
    kind: str = ""

    @property
    def bounded(self) -> bool:
        """Whether all numbers are finite, and small enough that a few products do not overflow."""
        return max(abs(self.low), abs(self.high)) <= 1e30

    @property
    def finite(self) -> bool:
        """Whether every number is there and bounded."""
        return self.bounded and not self.missing

    def joined(self, other: Range) -> Range:
        """What is known about columns of both."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        kind = "" if not (self.kind and other.kind) else FIXED
        kind = self.kind if self.kind == other.kind else kind
        return Range(low, high, self.missing or other.missing, kind)


class Lengths(NamedTuple):
    """How long lists may be that describe a table: a longer one is a table itself.

    Attributes
    ----------
    one : int
        The most columns, or categories of a column; or else as many values as one writes by hand,
        such as the candidates of a search.
    all : int
        Values of lists in lists: of all columns together.
    """

    one: int = 32
    all: int = 256


@dataclass(frozen=True)
class Rows:
    """What a step is given.

    Attributes
    ----------
    released : bool
        Whether the rows are synthetic rows of a release instead of people's.
    mixed_by : str or None
        The earlier step that let every row depend on the others.
    doubtful : str or None
        The earlier step for which this is unknown.
    range : Range
        What earlier steps have ensured for every number.
    lengths : Lengths
        Of lists that could describe the columns of a release.
    """

    released: bool = False
    mixed_by: str | None = None
    doubtful: str | None = None
    range: Range = field(default_factory=Range)
    lengths: Lengths = field(default_factory=Lengths)

    @property
    def read(self) -> str:
        """What an estimator reads that is fitted to these rows."""
        return "a release" if self.released else "raw rows and labels"


@dataclass(frozen=True)
class Step:
    """One step of a composed estimator.

    Attributes
    ----------
    name : str
        Path of the step, such as ``"classify__synthesizer"``; empty for the whole.
    kind : str
        Its class.
    reads : str
        "raw rows", "raw rows and labels", "raw labels", "a release" or "nothing".
    verdict : str
        "private", "public" (learns nothing from the rows), "post-processing" (of a release),
        "leaks" or "unknown".
    why, remedy : str
        In words; the remedy is empty where none is needed.
    epsilon : Fraction or None
        What the step spends in one fit of the whole; None if it is not known.
    n_fits : int
        How often the step is fitted in one fit of the whole.
    estimator : object
        The step itself.
    seeded : bool
        Whether its only flaw is a seed that draws noise.
    """

    name: str
    kind: str
    reads: str
    verdict: str
    why: str
    remedy: str = ""
    epsilon: Fraction | None = Fraction(0)
    n_fits: int = 1
    estimator: Any = None
    seeded: bool = False

    def judged(self, verdict: str, why: str, remedy: str = "", **more: Any) -> Step:
        """The step with another verdict."""
        return replace(self, verdict=verdict, why=why, remedy=remedy, **more)

    @property
    def sound(self) -> bool:
        """Whether the step keeps the guarantee."""
        return self.verdict in (PRIVATE, PUBLIC, RELEASE)


class Refusal(NamedTuple):
    """Why a step is not known to transform each row independently, without errors or warnings.

    Attributes
    ----------
    why, remedy : str
    alone : bool
        Whether each row of its output still depends on the same input row only.
    learns : bool
        Whether it is known to learn from the rows.
    """

    why: str
    remedy: str
    alone: bool = True
    learns: bool = False


def child(name: str, part: str) -> str:
    """Path of a part, as in ``set_params``."""
    return f"{name}__{part}" if name else part


def total_price(prices: Iterable[Fraction | None]) -> Fraction | None:
    """The sum of prices; None if one of them is not known."""
    result = Fraction(0)
    for price in prices:
        if price is None:
            return None
        result += price
    return result
