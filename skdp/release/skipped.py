"""SkippedRecords: noisy counts of the records that a release kept and skipped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from .._validation import dyadic_floor, table_html
from ..domain import Categorical, Domain
from ..mechanisms import discrete_laplace_quantile, discrete_laplace_variance
from ..mechanisms.laplace import noise_bound
from .files import fraction

# The part of epsilon that pays for these counts.
SKIPPED = "skipped"
# A loss of more than this share of the records is a reason to stop.
_TOO_MUCH = 0.1
# At most this share of releases warns although nothing was skipped: those whose noise is so large.
_FALSE_WARNINGS = 0.001
# At most this share stops although no more than a tenth was skipped. It is reached only where about
# a tenth was, or where there are hardly any records.
_FALSE_STOPS = 0.005


# A column by its name; what is no column as a tuple, which no name equals.
Reason = str | tuple[str]
_RULES: Reason = ("rules",)
_LINES: Reason = ("lines",)


@dataclass(frozen=True)
class SkippedRecords:
    """How many records a release kept and skipped: noisy counts, released with it.

    A record is kept, or is skipped because of the first declared column in which its value has no
    code (it is missing where that is not declared, no number, an undeclared category), or has all
    codes and breaks a rule of the domain, or is a line of a file that cannot be read. These are
    disjoint cells of all records, so all counts together cost what one of them costs. Where a
    person is protected, its skipped records count only up to what its kept ones leave of
    ``max_rows_per_id``, and records without a unit nowhere.

    Attributes
    ----------
    kept : int
        Records that the release measured. Like all counts here with noise: it may be negative.
    columns : dict of str to int
        Records that were skipped because of each measured column, in the order of the domain.
    rules : int or None
        Records that break a rule; None where no rule forbids anything.
    lines : int or None
        Lines of a file that were not well formed; None where there was no file, or a person is
        protected.
    epsilon : Fraction
        At which the noise of each count was drawn: that of one record.
    """

    kept: int
    columns: Mapping[str, int]
    rules: int | None
    lines: int | None
    epsilon: Fraction
    _domain: Domain | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, domain: Domain, noisy: Any, epsilon: Fraction) -> SkippedRecords:
        """From the noisy cells: kept, each column, rules and lines where there are any."""
        kept, *skipped = (int(count) for count in noisy)
        columns = dict(zip(domain.names, skipped, strict=False))
        more = skipped[len(domain) :]
        rules = more.pop(0) if domain.structure.zeros else None
        # A fraction of its own: that of a loss is made anew where it is unpickled.
        own = Fraction(epsilon)
        return cls(kept, columns, rules, more[0] if more else None, own, domain)

    @property
    def std(self) -> float:
        """Standard deviation of the noise of each count, in records."""
        return math.sqrt(discrete_laplace_variance(self.epsilon))

    @property
    def total(self) -> int:
        """All skipped records."""
        return sum(self._reasons.values())

    @property
    def _reasons(self) -> dict[Reason, int]:
        reasons: dict[Reason, int] = {}
        reasons.update(self.columns)
        more = {_RULES: self.rules, _LINES: self.lines}
        return reasons | {key: count for key, count in more.items() if count is not None}

    def above_noise(self) -> dict[Reason, int]:
        """Reasons whose count is above its noise, most first: columns, ("rules",), ("lines",).

        Noise alone makes any of them appear in at most one of 1,000 releases.
        """
        reasons = self._reasons
        least = discrete_laplace_quantile(1 - 2 * _FALSE_WARNINGS / len(reasons), self.epsilon)
        found = {name: count for name, count in reasons.items() if count > least}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def too_many(self) -> bool:
        """Whether more than a tenth of the records was skipped, beyond doubt.

        True although at most a tenth was skipped in at most one of 200 releases.
        """
        # With S for the skipped and K for the kept: if at most a tenth is skipped, the mean of
        # 0.9 S - 0.1 K is not positive.
        weights = np.append(np.full(len(self._reasons), 1 - _TOO_MUCH), _TOO_MUCH)
        scales = np.full(len(weights), float(dyadic_floor(self.epsilon)))
        noise = noise_bound(weights, weights, scales, np.ones(len(weights)), _FALSE_STOPS)
        return (1 - _TOO_MUCH) * self.total - _TOO_MUCH * self.kept > noise

    def texts(self) -> list[str]:
        """What was skipped for which reason, most first, with remedies; empty below the noise."""
        total = max(self.kept + self.total, 1)
        found = self.above_noise()
        if not found and self.too_many:
            # Many columns, each below its noise: the largest counts.
            found = dict(sorted(self._reasons.items(), key=lambda item: -item[1])[:3])
        return [
            f"about {count:,} of {max(total, count):,} records ({min(count / total, 1):.0%}) "
            + f"because {_because(name)}: {self._remedy(name)}"
            for name, count in found.items()
        ]

    def _remedy(self, name: Reason) -> str:
        if name == _RULES:
            return "correct the rule, or leave it out"
        if name == _LINES:
            return "a wrong separator (--sep), or line breaks inside quotes (--multiline)"
        attribute: Any = None if self._domain is None else self._domain[str(name)]
        gaps = "" if getattr(attribute, "nullable", False) else "missing values (nullable=True) or "
        if isinstance(attribute, Categorical):
            return f"{gaps}categories that are not declared (declare them, or other=)"
        return f"{gaps}values in another form than declared (convert the column)"

    def __str__(self) -> str:
        reasons = ", ".join(
            f"{count:,} because {_because(name)}" for name, count in self.above_noise().items()
        )
        skipped = f"skipped {reasons}" if reasons else "skipped none that shows above the noise"
        return f"kept {self.kept:,}, {skipped} (noise: standard deviation {self.std:.3g})"

    def table(self) -> str:
        """The counts as HTML, one row each."""
        rows = {"kept": self.kept}
        rows |= {f"skipped because {_because(name)}": n for name, n in self._reasons.items()}
        counts = pd.Series({name: f"{count:,}" for name, count in rows.items()})
        return table_html(counts.to_frame(), header=False)

    def to_data(self) -> dict[str, Any]:
        """As JSON holds it."""
        held = {name: getattr(self, name) for name in ("kept", "columns", "rules", "lines")}
        return held | {"epsilon": str(self.epsilon)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], domain: Domain) -> SkippedRecords:
        """What `to_data` wrote.

        Raises
        ------
        ValueError
            If it does not belong to the domain, or is no such thing.
        """
        columns, rules, lines = data["columns"], data["rules"], data["lines"]
        more = [each for each in (rules, lines) if each is not None]
        counts = [data["kept"], *columns.values(), *more]
        if list(columns) != list(domain.names) or not all(type(each) is int for each in counts):
            raise ValueError("its counts of skipped records do not fit its domain")
        epsilon = fraction(data["epsilon"])
        return cls(data["kept"], dict(columns), rules, lines, epsilon, domain)


def _because(name: Reason) -> str:
    if name == _RULES:
        return "they break a rule of the domain"
    return "their lines are not well formed" if name == _LINES else f"of {name!r}"
