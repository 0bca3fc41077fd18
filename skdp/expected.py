"""What a release will cost in accuracy, before anything is spent: ``expected_error``.

Nothing here reads private rows or touches a ledger: estimators are tried out on public tables.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from sklearn.base import clone

from ._random import sampling_generator
from ._validation import CodeArray, FloatArray, as_epsilon, as_integer, as_level
from .domain import Date, Datetime, Domain
from .domain.query import Query
from .exceptions import DomainError, InsecureSeedWarning
from .release.model import Release
from .tables import as_frame, take_rows

# --- public tables on which a release is tried out: given rows, or rows generated from a domain

# Constants of generated tables, chosen by predicted over measured errors on public tables.
# Range of the share of what all columns depend on in the variance of a column.
_DEPENDENCE = (0.0, 0.8)
# Exponents of the frequencies of categories.
_ZIPF = (0.3, 1.5)
# Share of columns of numbers in which one value is frequent, and how frequent it is.
_SPIKED = 0.4
_SPIKE = (0.5, 0.95)
# Spread of the bumps of a column of numbers, as parameters of beta distributions.
_BUMPS = (1.0, 6.0)


def public_rows(estimator: Any, n: int, like: Any, seed: int, spiked: bool = True) -> Any:
    """``n`` rows drawn from a table, repeated if it has fewer; without one from the domain.

    An estimator whose rows are made from its domain gets the domain of all its columns.
    """
    generator = sampling_generator(seed)
    if like is None:
        domain = require_columns(estimator.domain)
        estimator.set_params(domain=domain)
        return domain.decode(generated_codes(domain, n, seed, spiked), generator)
    size = len(as_frame(like))
    if not size:
        raise ValueError("like has no rows.")
    return take_rows(
        like, generator.permutation(size)[:n] if n <= size else generator.integers(0, size, n)
    )


def require_columns(domain: Any) -> Domain:
    """The domain with all its columns; DomainError if it does not name or number them."""
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, Mapping):
        return Domain(domain)
    if isinstance(domain, list) and domain:
        return Domain.for_array(domain, len(domain))
    raise DomainError(
        "A domain is needed that lists its columns, such as Domain({'age': Numeric(0, 120)}), or "
        "like=, public rows: one attribute for all columns of an array does not say how many "
        "columns there are."
    )


def generated_codes(domain: Domain, n: int, seed: int, spiked: bool = True) -> CodeArray:
    """Codes of a table with skewed columns that depend on each other.

    Every column follows a normal variable, which is partly one hidden cause of all of them. Its
    ranks are cut into codes, whose frequencies are drawn at random: of numbers a smooth density
    with one or two bumps, and sometimes one frequent value; of categories those of Zipf's law.

    Parameters
    ----------
    domain : Domain
    n : int
    seed : int
    spiked : bool, default=True
        Whether some columns have a value that most records share.

    Returns
    -------
    ndarray of int32, shape (n, n_columns)
    """
    generator = sampling_generator(seed)
    cause = generator.standard_normal(n)
    codes = np.empty((n, len(domain.shape)), dtype=np.int32)
    for axis, attribute in enumerate(domain.attributes):
        size = domain.shape[axis]
        ordered = attribute.order() is not None
        frequencies = _frequencies(size, ordered, generator, spiked)
        direction = np.sign(generator.standard_normal())
        share = generator.uniform(*_DEPENDENCE)
        noise = generator.standard_normal(n)
        score = np.sqrt(share) * cause * direction + np.sqrt(1 - share) * noise
        codes[:, axis] = _cut(score, frequencies)
    lawful: CodeArray = domain.structure.zeros.mended(codes)
    return lawful


def _frequencies(
    size: int, ordered: bool, generator: np.random.Generator, spiked: bool
) -> FloatArray:
    """Probabilities of the codes of a column."""
    if size < 2:
        return np.ones(size)
    if not ordered or size == 2:
        weights = np.arange(1.0, size + 1) ** -generator.uniform(*_ZIPF)
        return generator.permutation(weights / weights.sum())
    middles = (np.arange(size) + 0.5) / size
    density = np.zeros(size)
    for _ in range(int(generator.integers(1, 3))):
        a, b = generator.uniform(*_BUMPS, size=2)
        bump = middles ** (a - 1) * (1 - middles) ** (b - 1)
        density += generator.uniform(0.2, 1.0) * bump / bump.sum()
    density /= density.sum()
    if spiked and generator.random() < _SPIKED:
        spike = generator.uniform(*_SPIKE)
        at = 0 if generator.random() < 0.5 else int(generator.integers(0, size))
        density *= 1 - spike
        density[at] += spike
    return density


def _cut(score: FloatArray, frequencies: FloatArray) -> CodeArray:
    """Ranks of scores as codes with these frequencies."""
    ranks = np.empty(len(score))
    ranks[np.argsort(score, kind="stable")] = (np.arange(len(score)) + 0.5) / max(len(score), 1)
    edges = np.cumsum(frequencies)[:-1]
    return np.searchsorted(edges, ranks).astype(np.int32)


# --- random questions of each kind to a release, and its errors on rows that are public

# Questions of each kind, and columns or sets of columns that they are on.
_QUESTIONS = 240
_SETS = 24
_KINDS = {"one-column range": 1, "two-column range": 2, "three-column range": 3}


def errors_of_answers(
    model: Release, codes: CodeArray, domain: Domain, seed: int
) -> Mapping[str, float]:
    """Root mean square errors of a release on random questions of each kind.

    Ranges lie between two uniform codes; of unordered categories any subset is asked for, whose
    size is uniform. A cell is one code of each of two columns (of one, if there is only one).

    Parameters
    ----------
    model : Release
        Fitted to ``codes``.
    codes : ndarray of int, shape (n_rows, n_columns)
    domain : Domain
    seed : int
        Of the questions.

    Returns
    -------
    dict of str to float
        In records; kinds that need more columns than exist are left out.
    """
    generator = sampling_generator(seed)
    used = [axis for axis, size in enumerate(domain.shape) if size > 1]
    kinds = {name: order for name, order in _KINDS.items() if order <= len(used)}
    found = {}
    for name, order in {"cell": min(2, len(used)), **kinds}.items():
        errors = []
        for _ in range(_SETS):
            axes = sorted(generator.choice(used, order, replace=False).tolist()) if order else []
            queries, exact = [], []
            for _ in range(_QUESTIONS // _SETS):
                weights = {axis: _random_weights(domain, axis, name, generator) for axis in axes}
                agree = np.ones(len(codes))
                for axis, wanted in weights.items():
                    agree *= wanted[codes[:, axis]]
                queries.append(Query((weights,)))
                exact.append(agree.sum())
            errors.append(np.asarray(model.answer(queries)) - exact)
        found[name] = float(np.sqrt(np.mean(np.square(errors))))
    return found


def _random_weights(
    domain: Domain, axis: int, kind: str, generator: np.random.Generator
) -> FloatArray:
    """1 for a random code, range of codes, or subset of unordered ones, else 0."""
    size = domain.shape[axis]
    weights = np.zeros(size)
    if kind == "cell":
        weights[generator.integers(0, size)] = 1.0
    elif domain.attributes[axis].order() is not None:
        low, high = sorted(generator.integers(0, size, size=2).tolist())
        weights[low : high + 1] = 1.0
    else:
        most = int(generator.integers(1, size + 1))
        weights[generator.permutation(size)[:most]] = 1.0
    return weights


# --- questions in words: one grammar for the command line, the wizard and the errors to expect

_OF_CONDITIONS, _OF_TWO = ("count", "proportion"), ("quantile", "correlation")
_STATISTICS = ("sum", "mean", "std", "median", *_OF_TWO, *_OF_CONDITIONS)
_STATISTIC = re.compile(rf"({'|'.join(_STATISTICS)})\s*\(", re.IGNORECASE)
# Names and texts in quotes are read whole: what is in them ends nothing.
_PIECE = re.compile(r"""`[^`]*`|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|.""", re.DOTALL)
_WHERE = re.compile(r"\s*(?:where\s+(.+))?", re.IGNORECASE | re.DOTALL)
# Outside quotes, what no condition has: `avg(pay)`, or `mean pay where age >= 65`.
_NO_CONDITION = re.compile(r"(?!not\b)[^\W\d]\w*\s*\(|.*\bwhere\b", re.IGNORECASE | re.DOTALL)


class Asked(NamedTuple):
    """A question in words, such as ``mean(age) where sex == 'F'``.

    Attributes
    ----------
    statistic : str
        A method of a release.
    about : list
        Columns, and the share of a quantile; of a proportion its condition.
    where : str or None
        Condition on the records.
    """

    statistic: str
    about: list[Any]
    where: str | None

    @classmethod
    def read(cls, question: str) -> Asked:
        """What a question asks for; what begins with no statistic is a condition to count.

        Raises
        ------
        ValueError
            If a statistic is not asked for as it has to be.
        """
        question = question.strip()
        start = _STATISTIC.match(question)
        if start is None:
            bare = "".join(piece for piece in _PIECE.findall(question) if len(piece) == 1)
            if _NO_CONDITION.match(bare):
                raise _unread(question)
            return cls("count", [], question or None)
        statistic, inside, end = start[1].lower(), [""], start.end()
        depth = 1
        for piece in _PIECE.findall(question, end):
            end += len(piece)
            depth += {"(": 1, ")": -1}.get(piece, 0)
            if depth == 0:
                break
            if piece == "," and depth == 1 and statistic not in _OF_CONDITIONS:
                inside.append("")
            else:
                inside[-1] += piece
        rest = _WHERE.fullmatch(question, end)
        about: list[Any] = [each.strip() for each in inside]
        if depth or rest is None or len(about) != 1 + (statistic in _OF_TWO) or not all(about):
            raise _unread(question)
        if statistic == "count":
            both = [f"({each})" for each in (about[0], rest[1]) if each and each != "*"]
            return cls(statistic, [], " and ".join(both) or None)
        if statistic != "proportion":
            quoted = re.compile(r"""([`'"])(.*)\1""", re.DOTALL)
            about = [match[2] if (match := quoted.fullmatch(each)) else each for each in about]
        if statistic == "median":
            return cls("quantile", [*about, 0.5], rest[1])
        if statistic == "quantile":
            try:
                about[1] = float(about[1])
            except ValueError:
                raise _unread(question) from None
        return cls(statistic, about, rest[1])

    def answer(self, release: Any, level: float | None = 0.95) -> Any:
        """The answer of a release, with its interval, or without if ``level`` is None."""
        how = {} if level is None else {"return_interval": True, "level": level}
        return getattr(release, self.statistic)(*self.about, self.where, **how)


def _unread(question: str) -> ValueError:
    return ValueError(
        f"{question!r} cannot be read: write a count as 'age >= 65', and others as 'mean(pay)', "
        "'median(pay) where age >= 65', 'quantile(pay, 0.9)', 'sum(pay)', 'std(pay)', "
        "'proportion(age >= 65)' or 'correlation(age, pay)'."
    )


def bar_of(release: Any, question: str, level: float) -> float:
    """Half width of the interval of a release's answer to a question in words; of dates in days."""
    answer = Asked.read(question).answer(release, level)
    if isinstance(answer.upper, str):
        raise ValueError(
            f"{question!r} has a category as its answer, which has no margin of error."
        )
    width = answer.upper - answer.lower
    return float(width / pd.Timedelta(days=1) if isinstance(width, pd.Timedelta) else width) / 2


def bar_texts(errors: pd.DataFrame, domain: Domain) -> dict[str, list[str]]:
    """The bars of each question for people: two digits, shares in per cent, dates in days."""
    found = {}
    for question, *bars in errors.itertuples():
        asked, factor, unit = Asked.read(question), 1.0, ""
        if asked.statistic == "proportion":
            factor, unit = 100.0, "%"
        elif asked.about and isinstance(domain[asked.about[0]], Date | Datetime):
            unit = " days"
        widths = [factor * bar for bar in bars]
        found[question] = [
            f"\u00b1 {bar:,.0f}{unit}" if bar >= 99.5 else f"\u00b1 {bar:.2g}{unit}"
            for bar in widths
        ]
    return found


def is_of_records(question: str) -> bool:
    """Whether a bar grows with the number of records at the same share of noise."""
    return Asked.read(question).statistic in ("count", "sum")


# --- what estimators answer

# A release of more records is tried out on so many, at an epsilon that is larger in proportion:
# what noise does depends on their product. Not where epsilon would be larger than this.
_MOST_ROWS = 100_000
_MOST_EPSILON = 4.0


class ExpectsErrors:
    """Estimators that can say how large the errors of a release would be.

    A subclass defines either ``_formula_errors(n)``, in closed form, or ``_tried_errors``, which
    fits ``self`` to public rows.
    """

    # How many public rows can stand for all records when error bars are asked for; None: all are
    # needed. For how many records they do in a trial.
    _rows_of_bars: int | None = None
    _stand_for: int | None = None

    def expected_error(
        self,
        n: int,
        epsilon: Any = None,
        *,
        questions: Sequence[str] | None = None,
        level: float = 0.95,
        like: Any = None,
        n_tables: int = 3,
        random_state: int = 0,
    ) -> pd.DataFrame:
        """Expected error of each kind of question, or of your own, BEFORE anything is spent.

        Nothing private is read, and no budget of any ledger is touched. Where there is no formula,
        the estimator is fitted, with its own parameters and each epsilon, to public rows: those of
        ``like``, or some that are generated from the domain.

        Parameters
        ----------
        n : int
            Number of records to expect. It is a public guess: never the exact number of private
            rows.
        epsilon : number or sequence of numbers, default=None
            None: that of the estimator.
        questions : sequence of str, default=None
            Your own questions, for estimators with a ``synopsis_``: counts such as
            ``"age >= 65 and sex == 'F'"``, and ``"mean(pay)"``, ``"median(pay) where age >= 65"``,
            ``"quantile(pay, 0.9)"``, ``"sum(pay)"``, ``"std(pay)"``, ``"proportion(age >= 65)"`` or
            ``"correlation(age, pay)"``. Of each the error bar is expected: half the width of the
            interval that the release will state. Of more than three epsilons the smallest, the
            middle and the largest are tried, and a power of epsilon is fitted to their widths.
            None: random questions of each kind.
        level : float, default=0.95
            Confidence of these intervals.
        like : table, default=None
            PUBLIC rows that resemble the private ones, such as those of an earlier year that were
            published; never the private rows themselves, as errors that are computed from them are
            not private. ``n`` of them are drawn, repeated if there are fewer. None: generated rows,
            which assume that each column has a smooth density or Zipf's frequencies, and that one
            hidden cause explains up to 80% of it. Where yours are not so, errors may be a tenth of
            these or ten times as large.
        n_tables : int, default=3
            Number of tables that are tried.
        random_state : int, default=0
            Seed of public rows, of the questions and of the noise of these trials.

        Returns
        -------
        DataFrame
            Root mean square error of each kind of question (rows) at each epsilon (columns); of
            questions that were given, the error bar. ``attrs`` holds ``unit``, and ``how`` errors
            were found: "formula", or on which tables.

        Raises
        ------
        DomainError, ValueError
            If a parameter is invalid, or public rows are needed that are not given.

        Examples
        --------
        >>> from skdp import Numeric, RangeTreeHistogram
        >>> ages = RangeTreeHistogram(domain=Numeric(0, 100, bins=128))
        >>> errors = ages.expected_error(n=10_000, epsilon=[0.1, 1.0])
        >>> errors.rename_axis(index=None).round(1)
        epsilon            0.1  1.0
        cell              22.4  2.2
        one-column range  71.0  7.0
        """
        records = as_integer(n, "n", 1)
        number = as_integer(n_tables, "n_tables", 1)
        own: Any = self
        values = own.epsilon if epsilon is None else epsilon
        wanted = [as_epsilon(value) for value in np.atleast_1d(np.array(values, dtype=object))]
        if not wanted:
            raise ValueError("epsilon is an empty list: give at least one number.")
        asked, unit, how = None, self._unit_of_errors(), "formula"
        if not self._has_formula:
            made = "generated tables, which may be off by up to 10 times"
            how = f"simulated on {made if like is None else 'the rows of like'}"
        if questions is not None:
            if self._has_formula:
                raise ValueError(
                    f"{type(self).__name__} knows errors by formula, and of no single questions: "
                    "leave questions out."
                )
            asked = [questions] if isinstance(questions, str) else list(questions)
            unit = f"half the {level:.0%} interval of each question"
        trial = partial(self._errors_at, n=records, like=like, asked=asked, level=as_level(level))
        tried = sorted({*wanted})
        few = asked is not None and len(tried) > 3
        if few:
            tried = [tried[0], tried[len(tried) // 2], tried[-1]]
        errors = {}
        for each in tried:
            seeds = range(random_state, random_state + (1 if how == "formula" else number))
            runs = pd.DataFrame([trial(each, seed=seed) for seed in seeds])
            errors[float(each)] = np.sqrt((runs**2).mean())
        table = pd.DataFrame(errors)
        if few:
            table = _powers_of(table, [*map(float, wanted)])
        table = table.rename_axis(index="question", columns="epsilon")
        table.attrs = {"unit": unit, "how": how}
        return table

    # -- what subclasses may define

    def _unit_of_errors(self) -> str:
        """What errors are in. Those in records grow with their number if noise does."""
        return "records"

    def _trial(self, epsilon: Fraction, seed: int) -> Any:
        """A copy of the estimator for public rows: no ledger, and epsilon for one row."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        most = params.get("max_rows_per_id")
        changed = {"epsilon": epsilon / (most or 1), "ledger": None, "random_state": seed}
        if "privacy_id" in params:
            changed |= {"privacy_id": None, "max_rows_per_id": None}
        if "verbose" in params:
            changed["verbose"] = 0
        return clone(self).set_params(**changed)  # type: ignore[type-var]

    def _formula_errors(self, n: int) -> Mapping[str, float]:
        """Errors in closed form."""
        raise NotImplementedError

    def _tried_errors(
        self, rows: Any, seed: int, questions: Sequence[str] | None, level: float
    ) -> Mapping[str, float]:
        """Errors of random questions after a fit to public rows, or error bars of some."""
        raise NotImplementedError

    # -- the path that all take

    @property
    def _has_formula(self) -> bool:
        return type(self)._formula_errors is not ExpectsErrors._formula_errors

    def _errors_at(
        self,
        epsilon: Fraction,
        *,
        n: int,
        like: Any,
        seed: int,
        asked: Sequence[str] | None,
        level: float,
    ) -> Mapping[str, float]:
        """Errors of one trial at one epsilon, or error bars of the questions."""
        if self._has_formula:
            return cast(Mapping[str, float], self._trial(epsilon, seed)._formula_errors(n))
        if asked is not None and self._rows_of_bars is not None:
            rows, trial = min(n, self._rows_of_bars), self._trial(epsilon, seed)
            trial._stand_for = n
        else:
            rows = min(n, max(_MOST_ROWS, math.ceil(n * float(epsilon) / _MOST_EPSILON)))
            trial = self._trial(epsilon * n / rows, seed)
        # The rows are public: a seed makes the trial repeatable, and there is nothing to warn of,
        # neither of few records nor of coarse tables.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureSeedWarning)
            warnings.simplefilter("ignore", UserWarning)
            # Of a value that most records share a median is certain, and a margin of 0 would
            # promise that.
            public = public_rows(trial, rows, like, seed, spiked=asked is None)
            errors = trial._tried_errors(public, seed, asked, level)
        of_records = self._unit_of_errors() == "records" and trial._stand_for is None
        return {
            kind: error * (n / rows if of_records and is_of_records(kind) else 1.0)
            for kind, error in errors.items()
        }


def _powers_of(widths: pd.DataFrame, epsilons: list[float]) -> pd.DataFrame:
    """Widths as powers of epsilon, as noise alone is, fitted to those of a few epsilons.

    None grows with epsilon: that would be chance of a trial.
    """
    logs = np.log(np.maximum(widths.to_numpy(), np.finfo(float).tiny))
    at = np.log([*widths]) - np.mean(np.log([*widths]))
    slopes = np.minimum(logs @ at / (at @ at), 0.0)
    apart = np.log(epsilons) - np.mean(np.log([*widths]))
    found = np.exp(logs.mean(axis=1)[:, None] + np.outer(slopes, apart))
    return pd.DataFrame(found, index=widths.index, columns=list(epsilons))
