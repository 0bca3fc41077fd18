"""SkippedRecords: noisy counts of the records that a release kept and skipped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from .._validation import dyadic_floor, table_html
from ..domain import Domain
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


_CONVERT = (
    "missing values (nullable=True), undeclared categories (declare them, or other=), or values in "
    "another form than declared (convert the column)"
)
_SEPARATE = "a wrong separator (--sep), or line breaks inside quotes (--multiline)"


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

    @classmethod
    def of(cls, domain: Domain, noisy: Any, epsilon: Fraction) -> SkippedRecords:
        """From the noisy cells: kept, each column, rules and lines where there are any."""
        kept, *skipped = (int(count) for count in noisy)
        columns = dict(zip(domain.names, skipped, strict=False))
        more = skipped[len(domain) :]
        rules = more.pop(0) if domain.structure.zeros else None
        # A fraction of its own: that of a loss is made anew where it is unpickled.
        return cls(kept, columns, rules, more[0] if more else None, Fraction(epsilon))

    @property
    def std(self) -> float:
        """Standard deviation of the noise of each count, in records."""
        return math.sqrt(discrete_laplace_variance(self.epsilon))

    @property
    def total(self) -> int:
        """All skipped records."""
        return sum(count for count, *_ in self._reasons)

    @property
    def _reasons(self) -> list[tuple[int, str, str]]:
        """How many records were skipped, why, and a remedy."""
        found = [(count, f"of {name!r}", _CONVERT) for name, count in self.columns.items()]
        more = (
            (self.rules, "they break a rule of the domain", "correct the rule, or leave it out"),
            (self.lines, "their lines are not well formed", _SEPARATE),
        )
        return found + [(count, why, remedy) for count, why, remedy in more if count is not None]

    def above_noise(self) -> dict[str, int]:
        """Reasons in words whose counts are above their noise, most first.

        Noise alone makes any of them appear in at most one of 1,000 releases.
        """
        return {why: count for count, why, _ in self._largest()}

    def _largest(self) -> list[tuple[int, str, str]]:
        """Of `_reasons` those whose counts are above their noise, most first."""
        chance = 2 * _FALSE_WARNINGS / len(self._reasons)
        least = discrete_laplace_quantile(1 - chance, self.epsilon)
        return sorted((each for each in self._reasons if each[0] > least), key=lambda x: -x[0])

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
        total, found = max(self.kept + self.total, 1), self._largest()
        if not found and self.too_many:
            # Many columns, each below its noise: the largest counts.
            found = sorted(self._reasons, key=lambda x: -x[0])[:3]
        return [
            f"about {count:,} of {max(total, count):,} records ({min(count / total, 1):.0%}) "
            + f"because {why}: {remedy}"
            for count, why, remedy in found
        ]

    def __str__(self) -> str:
        reasons = ", ".join(f"{n:,} because {why}" for why, n in self.above_noise().items())
        skipped = f"skipped {reasons}" if reasons else "skipped none that shows above the noise"
        return f"kept {self.kept:,}, {skipped} (noise: standard deviation {self.std:.3g})"

    def table(self) -> str:
        """The counts as HTML, one row each."""
        rows = {f"skipped because {why}": count for count, why, _ in self._reasons}
        counts = pd.Series({"kept": self.kept, **rows}).map("{:,}".format)
        return table_html(counts.to_frame(), header=False)

    def to_data(self) -> dict[str, Any]:
        """As JSON holds it."""
        return vars(self) | {"epsilon": str(self.epsilon)}

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
        return cls(data["kept"], dict(columns), rules, lines, fraction(data["epsilon"]))
