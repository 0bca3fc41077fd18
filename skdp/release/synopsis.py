"""Synopsis: the released object. It answers queries, draws synthetic rows, and is saved.

Everything here is post-processing of a release. The package can reach neither rows nor exact
counts (it imports no module that holds them), so whatever a `Synopsis` holds, answers, draws or
saves costs no privacy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any, Unpack

import numpy as np
import pandas as pd

from .._random import sampling_generator
from .._validation import as_level, dyadic_floor, some, table_html
from ..accounting import PrivacyLoss
from ..domain import Categorical, Domain
from ..domain.query import Query
from ..mechanisms import discrete_laplace_quantile, discrete_laplace_variance
from ..mechanisms.laplace import noise_bound
from .boxes import BoxModel, StrategyModel
from .files import demand, fraction, loss_from_data, loss_to_data, read_archive, write_archive
from .grouping import Groups, group_table, view_of
from .marginals import ViewsModel
from .model import Release
from .network import NetworkModel
from .page import Page
from .quantiles import quantiles
from .result import Answer
from .sampling import Draws
from .statistics import Confidence, How, Statistics

# --- noisy counts of the records that a release kept and skipped

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


# --- the released object

_MAX_VIEW_CELLS = 50_000_000
_FOLLOWS = (
    " Intervals of means and standard deviations are simulated from a covariance that covers {}. "
    "Those of means and quantiles allow numbers anywhere in their bins."
)

_KINDS: tuple[type[Release], ...] = (BoxModel, StrategyModel, NetworkModel, ViewsModel)


class Synopsis:
    """A private release of a table: counts, sums, means and synthetic rows at no further cost.

    Parameters
    ----------
    domain : Domain
        The public schema, or its `fine`, whose codes the model counts.
    model : Release
        The released numbers: a `BoxModel`, `NetworkModel` or `ViewsModel`.
    privacy_loss : PrivacyLoss, default=None
        What the release cost, with its parts, and whether a seed drew its noise.
    mechanism : str, default=""
        How the release was made, in words.
    skipped : SkippedRecords, default=None
        How many records were kept and skipped.

    Attributes
    ----------
    domain : Domain
        The public schema.
    counted : Domain
        The domain whose codes the model counts.
    model : Release
    privacy_loss : PrivacyLoss or None
    mechanism : str
    skipped : SkippedRecords or None
        Noisy counts of the records that were kept, and skipped because of each column.

    Notes
    -----
    Answers are not clamped: noise may make a count negative. Sums of many counts are unbiased only
    for this reason.

    Examples
    --------
    >>> from skdp import Categorical, Domain, Numeric, Synopsis
    >>> from skdp.release import Boxes, BoxModel, Intervals
    >>> domain = Domain({"age": Numeric(20, 59, integer=True), "sex": Categorical(["F", "M"])})
    >>> boxes = Boxes(lower=[[0, 0], [20, 0]], upper=[[20, 2], [40, 2]])
    >>> model = BoxModel(boxes, [800, 400], domain.shape, Intervals(0.1))
    >>> release = Synopsis(domain, model)
    >>> release.count("30 <= age < 50 and sex == 'F'")
    300.0
    >>> release.count({"age": (20, 39)}, return_interval=True, level=0.9).lower
    777.0
    >>> release.to_frame()
            age  sex  count
    0  20 to 39  any    800
    1  40 to 59  any    400
    """

    def __init__(
        self,
        domain: Domain,
        model: Release,
        *,
        privacy_loss: PrivacyLoss | None = None,
        mechanism: str = "",
        skipped: SkippedRecords | None = None,
    ) -> None:
        self.counted = domain
        self.domain = domain.coarse
        self.model = model
        self.privacy_loss = privacy_loss
        self.mechanism = mechanism
        self.skipped = skipped

    @property
    def total(self) -> float:
        """Estimated number of records; it may be negative."""
        return self.model.total

    @property
    def total_std(self) -> float:
        """Standard deviation of the noise in ``total``, in records.

        Raises
        ------
        ValueError
            If the release does not say how its noise is distributed.
        """
        try:
            return math.sqrt(self.model.total_variance)
        except ValueError:
            loss = self.privacy_loss
            if loss is None or "total" not in loss.parts:
                raise
            return math.sqrt(discrete_laplace_variance(loss.of_record.parts["total"]))

    @property
    def epsilon(self) -> Fraction | None:
        """What the release cost, if it is known."""
        return None if self.privacy_loss is None else self.privacy_loss.epsilon

    @property
    def seeded(self) -> bool:
        """Whether a seed drew the noise: then there is no guarantee."""
        return self.privacy_loss is not None and self.privacy_loss.seeded

    def _facts(self) -> dict[str, str]:
        """What `repr` and the notebook show."""
        loss = "unknown loss" if self.epsilon is None else f"epsilon={float(self.epsilon):g}"
        facts = {
            "made by": self.mechanism or "unknown",
            "privacy": "seeded: no guarantee" if self.seeded else loss,
            "columns": ", ".join(map(str, self.counted.names)),
            "holds": self.model.about,
            "estimated records": f"{max(self.total, 0.0):,.6g}",
            "counted": self.rows,
            "records": "" if self.skipped is None else str(self.skipped),
        }
        return {name: text for name, text in facts.items() if text}

    def __repr__(self) -> str:
        facts = self._facts()
        shown = [f"{name} {value}" for name, value in facts.items() if name != "columns"]
        return f"<Synopsis of {len(self.counted.names)} columns: {'; '.join(shown)}>"

    def _repr_html_(self) -> str:
        return table_html(pd.Series(self._facts()).to_frame(), header=False)

    @property
    def about(self) -> str:
        """Which records answers are about, in words; "" where they are about all."""
        rules = " It is about the records that satisfy the rules of the domain."
        rows = f" Answers count {self.rows}: rows beyond these are in none." if self.rows else ""
        return rules * bool(self.counted.structure.rules) + rows

    @property
    def rows(self) -> str:
        """Which rows count: "at most 2 rows of each person"; "" where all do."""
        most = self.privacy_loss and self.privacy_loss.max_rows_per_id
        return f"at most {most} row{'s' * (most > 1)} of each person" if most else ""

    def _asked(self, return_interval: Any = False, level: Any = 0.95, **unknown: Any) -> Statistics:
        """Statistics with the intervals that a user asks for."""
        if unknown:
            what = "a question takes return_interval= and level= by name"
            raise TypeError(f"Unexpected keyword argument {some([*unknown])}: {what}.")
        level = as_level(level)
        confidence = Confidence(level, self.about) if return_interval else None
        return Statistics(self.model, self.counted, confidence)

    def _of_each(self, query: Any, how: How, of: Callable[..., Any], *what: Any) -> Any:
        """A statistic of a query, or of each of a list of queries."""
        statistics = self._asked(**how)
        if isinstance(query, list | tuple):
            return of(statistics, *what, list(query))
        found = of(statistics, *what, [query])
        value = found.tolist()[0] if hasattr(found, "tolist") else found[0]
        if not isinstance(value, float):
            return value
        asked: How = {**how, "return_interval": True}
        return Answer(value, partial(self._of_each, query, asked, of, *what))

    def count(self, query: Any = None, **how: Unpack[How]) -> Any:
        """Estimate how many records satisfy a query.

        Parameters
        ----------
        query : dict, str, None, or a list of these, default=None
            See :func:`skdp.release.parse`. None asks
            for all records.
        return_interval : bool, default=False
            Whether to return a `QueryResult` with the standard deviation of the noise and an
            interval.
        level : float, default=0.95
            Confidence of the interval. ``guarantee`` of the answer says what it promises. Where it
            holds for a query that was fixed before looking at the release, and you pick m queries
            after looking, ask for ``1 - (1 - level) / m``.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            One for a query, an array or list for a list of queries. Values are not clamped: a count
            may be negative. Intervals hold no negative counts.

        Raises
        ------
        ValueError
            If a query cannot be understood, or an interval is asked for and the release does not
            describe its noise.

        Notes
        -----
        An interval covers the noise, by a law between the normal one and that of a single noise,
        and, if the release has bounds on it, the uneven spread of the records inside boxes that the
        query cuts; ``guarantee`` says which. Of a list every query has the interval that it has by
        itself.
        """
        return self._of_each(query, how, Statistics.counts)

    def sum(self, column: str, query: Any = None, **how: Unpack[How]) -> Any:
        """Estimate the sum of a numeric column over the records that satisfy a query.

        Parameters
        ----------
        column : str
            A `Numeric`, or a `Categorical` whose categories are numbers.
        query : dict, str, None, or a list of these, default=None
        return_interval, level
            As in `count`.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            Every record counts with the middle of its bin (of the part that the query covers, if
            it constrains ``column``), or the mean of the bin's integers. Missing values add
            nothing. An interval covers numbers anywhere in their bins.

        Raises
        ------
        ValueError
            If the column has no numbers, a query cannot be understood, or as in `count`.
        """
        return self._of_each(query, how, Statistics.sums, column)

    def mean(self, column: str, query: Any = None, **how: Unpack[How]) -> Any:
        """Estimate the mean of a numeric column over the records that satisfy a query.

        Parameters
        ----------
        column : str
            As in `sum`.
        query : dict, str, None, or a list of these, default=None
        return_interval, level
            As in `count`.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            `sum` divided by the number of records whose value is not missing, clipped to the range
            of the column; nan where that number is not positive. Of dates a Timestamp, or a
            DatetimeIndex for a list; a mean of months is a day of a month. An interval covers
            numbers anywhere in their bins, and is the whole range where nothing is known.

        Raises
        ------
        ValueError
            As in `sum`.
        """
        return self._of_each(query, how, Statistics.moments, "mean", [column])

    def std(self, column: str, query: Any = None, **how: Unpack[How]) -> Any:
        """Estimate the standard deviation of a numeric column, as ``numpy.std``.

        Parameters
        ----------
        column : str
            As in `sum`; neither dates nor a total.
        query : dict, str, None, or a list of these, default=None
        return_interval, level
            As in `count`.

        Returns
        -------
        float or QueryResult, or a list of these
            Numbers count as spread evenly inside their bins, also for the interval; nan where the
            number of records is not positive.

        Raises
        ------
        ValueError
            As in `sum`.
        """
        return self._of_each(query, how, Statistics.moments, "std", [column])

    def covariance(self, first: str, second: str, query: Any = None, **how: Unpack[How]) -> Any:
        """Estimate the covariance of two numeric columns, divided by the number of records.

        Parameters
        ----------
        first, second : str
            Different columns as for `std`.
        query : dict, str, None, or a list of these, default=None
        return_interval, level
            As in `count`.

        Returns
        -------
        float or QueryResult, or a list of these
            Over the records with a value in both columns; nan where their number is not positive.
            Inside bins, numbers are taken as spread evenly and independently of other columns.

        Raises
        ------
        ValueError
            As in `sum`, or if the columns are equal.
        """
        return self._of_each(query, how, Statistics.moments, "covariance", [first, second])

    def correlation(self, first: str, second: str, query: Any = None, **how: Unpack[How]) -> Any:
        """Estimate Pearson's correlation of two numeric columns.

        Parameters
        ----------
        first, second : str
            Different columns as for `std`.
        query : dict, str, None, or a list of these, default=None
        return_interval, level
            As in `count`.

        Returns
        -------
        float or QueryResult, or a list of these
            As for `covariance`; nan, with the interval from -1 to 1, where a column has no spread.

        Raises
        ------
        ValueError
            As in `covariance`.
        """
        return self._of_each(query, how, Statistics.moments, "correlation", [first, second])

    def quantile(self, column: str, q: Any = 0.5, query: Any = None, **how: Unpack[How]) -> Any:
        """Estimate quantiles of a column over the records that satisfy a query.

        Parameters
        ----------
        column : str
            A `Numeric`, a date, or an ordered `Categorical`.
        q : float or sequence of float, default=0.5
            Shares of the records, between 0 and 1.
        query : dict, str or None, default=None
        return_interval, level
            As in `count`.

        Returns
        -------
        float or QueryResult, or a list of these for a list of shares
            Of the records with a value. Of dates Timestamps, of categories a category. nan (of
            categories None) if no count is positive.

        Raises
        ------
        ValueError
            If ``q`` lies outside of (0, 1), the categories have no order, or as in `count`.
        """
        single = np.ndim(q) == 0
        found = quantiles(self._asked(**how), column, [q] if single else q, query)
        return found[0] if single else found

    def proportion(self, query: Any, among: Any = None, **how: Unpack[How]) -> Any:
        """Estimate the share of the records of one query among those of another.

        Parameters
        ----------
        query : dict, str or None
            As in `count`.
        among : dict, str or None, default=None
            None: among all records.
        return_interval, level
            As in `count`.

        Returns
        -------
        float or QueryResult
            Between 0 and 1; nan where the number of records of ``among`` is not positive. The
            interval is then all of [0, 1].

        Raises
        ------
        ValueError
            As in `count`.
        """
        statistics = self._asked(**how)
        return statistics.proportion(query, among)

    def aggregate(
        self,
        by: str | Sequence[str],
        column: str | None = None,
        query: Any = None,
        *,
        bands: Mapping[str, Any] | None = None,
        right: bool = True,
        **how: Unpack[How],
    ) -> pd.DataFrame:
        """Estimate counts, and sums and means of a column, of every group of records.

        Parameters
        ----------
        by : str or sequence of str
            Columns whose codes make the groups; at most 100,000 groups.
        column : str, default=None
            A `Numeric`, or a `Categorical` whose categories are numbers.
        query : dict, str or None, default=None
            Conditions on the records to include.
        bands : mapping of str to array-like, default=None
            For numeric columns of ``by`` the edges of the groups, as for ``pandas.cut``:
            ``{"age": [17, 29, 64, 90]}``. An infinite edge leaves an end open. Values outside, and
            missing values, are in no group.
        right : bool, default=True
            Whether a band contains its right edge, as in ``pandas.cut``; else its left.
        return_interval : bool, default=False
            Whether to add the columns ``std_error``, ``lower`` and ``upper``: the standard
            deviation of the error and the ends of an interval. They are of the mean if ``column``
            is given, else of the count.
        level
            As in `count`.

        Returns
        -------
        DataFrame
            One row for each combination of codes or bands, with the columns ``by``, ``count``
            and, if ``column`` is given, ``sum`` and ``mean``: as
            ``frame.groupby(by)[column].agg(["count", "sum", "mean"])``, groups without records
            included; dates have no sum. Bins that are wider than one integer are intervals, missing
            values None. As in `sum`, records without a value in ``column`` do not count there.
            Counts and sums add up to those of all records, by whatever columns, but where sums by
            ``by`` were measured (``workload``): those are as they were measured, and differ from
            the rest within both margins.
            With intervals, ``attrs`` holds ``level`` and ``guarantee``.

        Raises
        ------
        ValueError
            As in `count` and `mean`, if ``by`` is empty, repeats a column or makes too many
            groups, or if ``bands`` names others or cannot be read.

        Examples
        --------
        >>> from skdp import Categorical, Domain, Numeric, Synopsis
        >>> from skdp.release import Boxes, BoxModel
        >>> domain = Domain({"age": Numeric(20, 59, integer=True), "sex": Categorical(["F", "M"])})
        >>> boxes = Boxes(lower=[[0, 0], [0, 1]], upper=[[40, 1], [40, 2]])
        >>> release = Synopsis(domain, BoxModel(boxes, [800, 400], domain.shape))
        >>> release.aggregate("sex", "age", "age < 30")
          sex  count     sum  mean
        0   F  200.0  4900.0  24.5
        1   M  100.0  2450.0  24.5
        >>> release.aggregate("age", bands={"age": [19, 29, 59]})
                age  count
        0  (19, 29]  300.0
        1  (29, 59]  900.0
        """
        groups = Groups(by, self.counted, bands, right)
        results, said = self._of_groups(groups, query, column, how)
        table = group_table(groups, results)
        table.attrs = said
        return table

    def _of_groups(
        self, groups: Groups, query: Any, column: str | None, how: How
    ) -> tuple[dict[str, Any], dict[Any, Any]]:
        """What is estimated of each group, by name, and what is said of the intervals."""
        statistics = self._asked(**how)
        counts, sums, found = statistics.groups(groups, query, column)
        results: dict[str, Any] = {"count": counts}
        as_value: Any = np.asarray if column is None else self.counted[column].shown
        if column is not None and self.counted[column].summable:
            results["sum"] = sums
        if statistics.confidence is None:
            return results if column is None else results | {"mean": as_value(found)}, {}
        held = found.shown(as_value)
        results["count" if column is None else "mean"] = held.pop("value")
        said = {
            "level": statistics.confidence.level,
            "guarantee": max(sorted(set(found.guarantee)), key=len),
        }
        return results | held, said

    def crosstab(
        self,
        index: str,
        columns: str,
        query: Any = None,
        *,
        bands: Mapping[str, Any] | None = None,
        right: bool = True,
        **how: Unpack[How],
    ) -> pd.DataFrame:
        """Estimate the counts of all combinations of two columns, as ``pandas.crosstab``.

        Parameters
        ----------
        index, columns : str
            Columns whose codes (or bands) are the rows and the columns of the table.
        query, bands, right, return_interval, level
            As in `aggregate`.

        Returns
        -------
        DataFrame
            With intervals, four tables beside each other: ``count``, ``std_error``, ``lower`` and
            ``upper`` are the first level of the columns, so that ``table["lower"]`` is one of them.

        Raises
        ------
        ValueError
            As in `aggregate`.

        Examples
        --------
        >>> from skdp import Categorical, Domain, Numeric, Synopsis
        >>> from skdp.release import Boxes, BoxModel
        >>> domain = Domain({"age": Numeric(20, 59, integer=True), "sex": Categorical(["F", "M"])})
        >>> boxes = Boxes(lower=[[0, 0], [0, 1]], upper=[[40, 1], [40, 2]])
        >>> release = Synopsis(domain, BoxModel(boxes, [800, 400], domain.shape))
        >>> release.crosstab("sex", "age", bands={"age": [19, 39, 59]}).loc["F"].tolist()
        [400.0, 400.0]
        """
        groups = Groups([index, columns], self.counted, bands, right)
        results, said = self._of_groups(groups, query, None, how)
        names = zip(groups.labels(), groups.names, strict=True)
        rows, across = (pd.Index(labels, name=name) for labels, name in names)
        tables = {
            title: pd.DataFrame(values.reshape(groups.shape), rows, across)
            for title, values in results.items()
        }
        if not said:
            return tables["count"]
        table = pd.concat(tables, axis=1)
        table.attrs = said
        return table

    def describe(self, *, level: float = 0.95) -> pd.DataFrame:
        """Statistics of every column with their intervals, one row a column.

        Parameters
        ----------
        level : float, default=0.95
            Confidence of each interval.

        Returns
        -------
        DataFrame
            A row for each column that can be asked for, with ``count`` of values that are not
            missing; of categories ``unique`` (how many are declared), ``top`` (the most frequent
            one) and ``freq``; of numbers ``mean``, ``std``, ``25%``, ``50%``, ``75%`` and the range
            of the domain, ``lower`` and ``upper``, which is no estimate; dates have no ``std``.
            Estimates are each a `QueryResult`, which prints its interval, or plain numbers if the
            release has no error bars. ``attrs`` holds ``level`` and ``guarantee``: what intervals
            cover, or why there are none.

        Notes
        -----
        This is post-processing of the release and costs no privacy. The answers are those of
        `count`, `mean`, `std` and `quantile`.

        Examples
        --------
        >>> from skdp import Domain, Numeric, Synopsis
        >>> from skdp.release import Boxes, BoxModel, Intervals
        >>> domain = Domain({"age": Numeric(20, 59, integer=True)})
        >>> boxes = Boxes(lower=[[0], [20]], upper=[[20], [40]])
        >>> release = Synopsis(domain, BoxModel(boxes, [800, 400], domain.shape, Intervals(0.1)))
        >>> release.describe()[["count", "mean"]]
                            count                  mean
        age  1,200 [1,159, 1,241]  36.17 [35.82, 36.51]
        """
        asked = self._asked(True, level)
        try:
            found = _described(asked)
            said = found["count"].iloc[0].guarantee + _FOLLOWS.format(self.model.covers)
        except ValueError as error:
            found, said = _described(self._asked()), str(error)
        found.attrs = {"level": level, "guarantee": said}
        return found

    def page(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str = "A private release",
        level: float = 0.95,
        source: str = "release.skdp",
    ) -> Page | None:
        """Write a page that answers questions about the release: one HTML file.

        It says what was released and whom it protects, shows every column with margins of error,
        and answers counts, shares, means, quantiles, cross tables and means by group as this object
        does, each with its interval.

        Parameters
        ----------
        path : str or path-like, default=None
            An existing file is replaced. None returns the page, which a notebook shows.
        title : str, default="A private release"
            Title of the page.
        level : float, default=0.95
            Confidence of the margins of columns.
        source : str, default="release.skdp"
            File of the release, for the lines of Python that the page offers.

        Returns
        -------
        Page or None
            With the file as ``text``, and its ``fingerprint``; None with a path.

        Notes
        -----
        The page requests nothing from the network. It holds what the release holds, so that it is
        as safe to publish, and costs no privacy.
        """
        return Page(self, title, as_level(level), source).written(path)

    def sample_codes(
        self,
        n_samples: int | None = None,
        random_state: Any = None,
        *,
        where: Any = None,
        method: str = "rounded",
    ) -> np.ndarray:
        """Draw synthetic records as integer codes of the domain ``counted``.

        Parameters
        ----------
        n_samples, random_state, where, method
            As for `sample`.

        Returns
        -------
        ndarray of int32, shape (n_samples, n_attributes)
            Boxes have rows in proportion to their positive counts, spread evenly inside each; if
            no count is positive, all cells of the domain are equally likely.

        Raises
        ------
        ValueError
            As `sample`.
        """
        generator = sampling_generator(random_state)
        return Draws(self.model, self.counted, generator, where, method).codes(n_samples)

    def sample(
        self,
        n_samples: int | None = None,
        random_state: Any = None,
        *,
        where: Any = None,
        method: str = "rounded",
    ) -> pd.DataFrame:
        """Draw synthetic records: any, or only those of a kind.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows. None: the estimated number of records (that satisfy ``where``), at
            least 0; ValueError if that makes more than 500 million values (rows times columns).
        random_state : None, int or numpy.random.Generator, default=None
            Seed of the draw. It is safe to set: sampling from a release is free.
        where : dict, str or None, default=None
            A condition that every row satisfies, as in `count`. Rows follow the release's
            conditional distribution, and none are rejected: rare kinds cost no more than
            frequent ones. Where fewer than 50 of the release's records meet the condition (the
            weighted ones of `MarginalSynthesizer`, or 131,072 drawn from boxes or a network), rows
            follow as much of it as 50 meet, and its other columns are drawn by themselves. If none
            meets it, a warning says so.
        method : {"rounded", "independent"}, default="rounded"
            "rounded": the expected counts, rounded to whole numbers, in random order. Counts of
            single columns and of the pairs that the release joins are off by a few rows, and those
            of other columns together by less than for independent rows. "independent": each row by
            itself, so that counts vary as those of a random sample do; choose it where rows are
            analysed as a sample, such as for standard errors.

        Returns
        -------
        DataFrame
            With the columns, order and dtypes of the domain.

        Raises
        ------
        ValueError
            If ``n_samples`` is negative, ``where`` cannot be understood or no value satisfies it,
            or ``method`` is another.

        Notes
        -----
        Drawing is post-processing: it costs nothing and reveals nothing beyond the release.

        Examples
        --------
        >>> from skdp import Categorical, Domain, Numeric, Synopsis
        >>> from skdp.release import Boxes, BoxModel
        >>> domain = Domain({"age": Numeric(20, 59, integer=True), "sex": Categorical(["F", "M"])})
        >>> boxes = Boxes(lower=[[0, 0], [20, 0], [20, 1]], upper=[[20, 2], [40, 1], [40, 2]])
        >>> release = Synopsis(domain, BoxModel(boxes, [800, 100, 300], domain.shape))
        >>> old = release.sample(1000, random_state=0, where="age >= 58 and sex == 'F'")
        >>> sorted(old["age"].unique().tolist()), old["sex"].unique().tolist()
        ([58, 59], ['F'])
        """
        generator = sampling_generator(random_state)
        return Draws(self.model, self.counted, generator, where, method).frame(n_samples)

    def view(self, columns: Sequence[str]) -> np.ndarray:
        """Estimated counts for every combination of the declared codes of one or two columns.

        Parameters
        ----------
        columns : sequence of str
            One or two names.

        Returns
        -------
        ndarray of float64
            One axis for each column, in their order.

        Raises
        ------
        ValueError
            For another number of columns, unknown or equal names, or more than 5e7 cells.
        """
        groups = Groups(columns, self.counted)
        cells = math.prod(self.counted.shape[axis] for axis in set(groups.axes))
        if len(groups.names) > 2 or max(groups.number, cells) > _MAX_VIEW_CELLS:
            raise ValueError(
                f"A view has one or two columns and at most {_MAX_VIEW_CELLS:,} cells; "
                f"{' and '.join(groups.names)} have {cells:,} cells. Ask for counts of ranges."
            )
        return view_of(self.model, groups)

    def plot(
        self,
        columns: Sequence[str] | str | None = None,
        ax: Any = None,
        *,
        blocks: bool = False,
        norm: Any = None,
    ) -> Any:
        """Draw the expected number of records over one or two columns.

        More than 128 bins of a column are added up to fewer.

        Parameters
        ----------
        columns : str or sequence of str, default=None
            One column gives bars, two a heat map, the first from left to right. None takes the
            first two (or the only one).
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        blocks : bool, default=False
            Outline the boxes, as far as they differ in the two columns.
        norm : matplotlib Normalize or str, default=None
            Colour scale of a heat map, such as "linear" or ``matplotlib.colors.LogNorm(1)``. None:
            the square root of counts, from zero. Negative cells have the colour of zero.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing; it comes with the extra ``skdp[plot]``.
        ValueError
            As in `view`, or if there are no boxes to outline or too many.
        """
        from ..plotting import plot_release

        return plot_release(self, columns, ax=ax, blocks=blocks, norm=norm)

    def to_frame(self) -> pd.DataFrame:
        """Everything released, in a readable table.

        Returns
        -------
        DataFrame
            For boxes: one row each, its range in every column in words, and ``count``. Else the
            `view` of each column, and of each pair that was measured together: ``first`` and
            ``second`` (names of columns; ``second`` is empty for one), ``first_value``,
            ``second_value`` and ``count``.
        """
        if isinstance(self.model, BoxModel):
            return self.model.to_frame(self.counted)
        names, parts = self.counted.names, []
        sets = [*zip(range(len(names))), *getattr(self.model, "pairs", ())]
        for columns in [[names[axis] for axis in axes] for axes in sets]:
            values = [self.domain[name].labels() for name in columns]
            both = [[name] for name in columns], values
            first, second = ([*each, [""]][:2] for each in both)
            titles = ["first", "second", "first_value", "second_value"]
            index = pd.MultiIndex.from_product([*first, *second], names=titles)
            parts.append(pd.Series(self.view(columns).ravel(), index, name="count"))
        return pd.concat(parts).reset_index()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the release to one file; it holds what `Synopsis` holds and is safe to publish.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced once the new one is complete.

        Notes
        -----
        The file is a zip archive of ``metadata.json`` (UTF-8: ``format`` "skdp synopsis",
        ``version`` 2, ``domain``, ``privacy`` with epsilon and parts as exact fractions and
        ``seeded``, ``mechanism``, ``skipped`` with noisy counts or null, ``model`` with its kind
        and facts) and of one ``NAME.npy`` array for each array of the model
        (NumPy's format, numbers only; for boxes ``lower``, ``upper``, ``counts``, perhaps
        ``measured``; for marginals ``rows``, ``row_weights``, ``columns.0.counts`` and others; for
        networks ``nodes.0.table`` and others), named where it belongs in the facts. It never holds
        a seed. Equal releases give equal bytes.
        """
        facts, arrays = self.model.to_arrays()
        loss = self.privacy_loss
        metadata = {
            "domain": json.loads(self.counted.to_json()),
            "privacy": loss and loss_to_data(loss),
            "mechanism": self.mechanism,
            "skipped": self.skipped and self.skipped.to_data(),
            "model": {"kind": self.model.kind, **facts},
        }
        write_archive(path, metadata, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str], *, max_bytes: int = 1 << 31) -> Synopsis:
        """Read a file written by `save`; nothing in it is executed.

        Parameters
        ----------
        path : str or path-like
        max_bytes : int, default=2**31
            Refuse files that would take more memory: arrays unpacked, and metadata, with the names
            of categories, 25 times.

        Returns
        -------
        Synopsis

        Raises
        ------
        ValueError
            If the file is not a synopsis, is damaged or too large, or comes from a later version.
        OSError
            If it cannot be opened.
        """
        return read_archive(path, cls._from_parts, max_bytes)

    @classmethod
    def _from_parts(cls, metadata: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Synopsis:
        domain = Domain.from_json(json.dumps(metadata["domain"]))
        facts = dict(metadata["model"])
        kind = facts.pop("kind")
        models = {each.kind: each for each in _KINDS}
        demand(kind in models, f"its model {kind!r} is unknown to this version of skdp")
        mechanism = metadata["mechanism"]
        demand(isinstance(mechanism, str), "its mechanism is not a text")
        privacy = metadata["privacy"]
        loss = None if privacy is None else loss_from_data(privacy)
        model = models[kind].from_arrays(domain.shape, facts, arrays)
        lost = metadata.get("skipped")
        skipped = None if lost is None else SkippedRecords.from_data(lost, domain)
        return cls(domain, model, privacy_loss=loss, mechanism=mechanism, skipped=skipped)


# --- statistics of every column

_QUANTILES = {"25%": 0.25, "50%": 0.5, "75%": 0.75}
_STATISTICS = ["count", "unique", "top", "freq", "mean", "std", *_QUANTILES, "lower", "upper"]


def _described(asked: Statistics) -> pd.DataFrame:
    """Statistics of all columns; see `Synopsis.describe`."""
    domain = asked.domain
    # Of objects each: a category that is an integer stays one beside columns that have none.
    rows = {name: pd.Series(_of_column(asked, name), dtype=object) for name in domain.known}
    frame = pd.DataFrame(rows, dtype=object).T
    return frame[[each for each in _STATISTICS if each in frame]]


def _of_column(asked: Statistics, name: str) -> dict[str, Any]:
    """What `describe` says of a column."""
    attribute, domain = asked.domain[name], asked.domain
    structure = domain.structure
    axis, n = domain.index(structure.base_of(name)), attribute.n_values

    def number(codes: Any) -> Any:
        weights = np.zeros(attribute.size)
        weights[codes] = 1.0
        return asked.counted([Query(({axis: structure.lifted(name, weights)},))])[0]

    row = {"count": number(slice(n))}
    if isinstance(attribute, Categorical):
        counts = view_of(asked.release, Groups([name], domain, by_code=True))
        top = int(np.argmax(counts[:n]))
        return row | {"unique": n, "top": attribute.categories[top], "freq": number(top)}
    ends = attribute.shown(np.array([attribute.lower, attribute.upper])).tolist()
    row |= dict(zip(("lower", "upper"), ends, strict=True))
    if float(row["count"]) > 0:
        for statistic in ("mean", "std") if attribute.summable else ("mean",):
            [row[statistic]] = asked.moments(statistic, [name], [None])
        values = quantiles(asked, name, list(_QUANTILES.values()), None)
        row |= dict(zip(_QUANTILES, values, strict=True))
    return row
