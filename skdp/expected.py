"""What a release will cost in accuracy, before anything is spent: ``expected_error``.

Nothing here reads private rows or touches a ledger: estimators are tried out on public tables.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from sklearn.base import clone

from ._random import sampling_generator
from ._validation import CodeArray, FloatArray, as_epsilon, as_integer, as_level, as_number
from .domain import Domain
from .domain.query import Query
from .exceptions import DomainError, InsecureSeedWarning
from .release.model import Release
from .tables import as_frame, take_rows

# --- public tables on which a release is tried out: given rows, or rows generated from a domain

# Constants of generated tables, chosen by predicted over measured errors on public tables.
# Hidden causes of all columns, and the range of their share in the variance of a column.
_CAUSES = 1
_DEPENDENCE = (0.0, 0.8)
# Exponents of the frequencies of categories.
_ZIPF = (0.3, 1.5)
# Share of columns of numbers in which one value is frequent, and how frequent it is.
_SPIKED = 0.4
_SPIKE = (0.5, 0.95)
# Spread of the bumps of a column of numbers, as parameters of beta distributions.
_BUMPS = (1.0, 6.0)


class TrialTable(NamedTuple):
    """Rows that are public, to fit an estimator to.

    Attributes
    ----------
    rows : table or ndarray
    seed : int
        For what else is drawn.
    """

    rows: Any
    seed: int

    @classmethod
    def of(cls, like: Any, n: int, seed: int) -> TrialTable:
        """``n`` rows drawn from a table, repeated if it has fewer."""
        generator = sampling_generator(seed)
        size = len(as_frame(like))
        if not size:
            raise ValueError("like has no rows.")
        drawn = generator.permutation(size)[:n] if n <= size else generator.integers(0, size, n)
        return cls(take_rows(like, drawn), seed)


def generated_table(domain: Any, n: int, seed: int) -> tuple[Domain, TrialTable]:
    """The domain with all its columns, and a table that is generated from it."""
    found = require_columns(domain)
    generator = sampling_generator(seed)
    rows = found.decode(generated_codes(found, n, seed), generator)
    return found, TrialTable(rows, seed)


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


def generated_codes(domain: Domain, n: int, seed: int) -> CodeArray:
    """Codes of a table with skewed columns that depend on each other.

    Every column follows a normal variable, which is partly a mixture of a few hidden causes. Its
    ranks are cut into codes, whose frequencies are drawn at random: of numbers a smooth density
    with one or two bumps, and sometimes one frequent value; of categories those of Zipf's law.

    Parameters
    ----------
    domain : Domain
    n : int
    seed : int

    Returns
    -------
    ndarray of int32, shape (n, n_columns)
    """
    generator = sampling_generator(seed)
    causes = generator.standard_normal((n, _CAUSES))
    codes = np.empty((n, len(domain.shape)), dtype=np.int32)
    for axis, attribute in enumerate(domain.attributes):
        size = domain.shape[axis]
        ordered = attribute.order() is not None
        frequencies = _frequencies(size, ordered, generator)
        direction = generator.standard_normal(_CAUSES)
        direction /= np.linalg.norm(direction)
        share = generator.uniform(*_DEPENDENCE)
        noise = generator.standard_normal(n)
        score = np.sqrt(share) * (causes @ direction) + np.sqrt(1 - share) * noise
        codes[:, axis] = _cut(score, frequencies)
    lawful: CodeArray = domain.structure.lawful_codes(codes)
    return lawful


def _frequencies(size: int, ordered: bool, generator: np.random.Generator) -> FloatArray:
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
    if generator.random() < _SPIKED:
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
        errors = _errors(model, codes, domain, used, order, name == "cell", generator)
        found[name] = float(np.sqrt(np.mean(errors**2)))
    return found


def _errors(
    model: Release,
    codes: CodeArray,
    domain: Domain,
    used: list[int],
    order: int,
    cells: bool,
    generator: np.random.Generator,
) -> FloatArray:
    """Answers minus truth for questions on some sets of columns."""

    def weights(axis: int) -> FloatArray:
        size = domain.shape[axis]
        if cells:
            return (np.arange(size) == generator.integers(0, size)).astype(np.float64)
        return random_weights(size, domain.attributes[axis].order() is not None, generator)

    parts = []
    for _ in range(_SETS):
        axes = sorted(generator.choice(used, order, replace=False).tolist()) if order else []
        queries = [{axis: weights(axis) for axis in axes} for _ in range(_QUESTIONS // _SETS)]
        exact = []
        for query in queries:
            agree = np.ones(len(codes))
            for axis, wanted in query.items():
                agree *= wanted[codes[:, axis]]
            exact.append(agree.sum())
        parts.append(np.asarray(model.answer([Query((each,)) for each in queries])) - exact)
    return np.concatenate(parts)


def random_weights(size: int, ordered: bool, generator: np.random.Generator) -> FloatArray:
    """Weights 1 on a random range of codes, or on a random subset of unordered ones, else 0."""
    weights = np.zeros(size)
    if ordered:
        low, high = sorted(generator.integers(0, size, size=2).tolist())
        weights[low : high + 1] = 1.0
    else:
        most = int(generator.integers(1, size + 1))
        weights[generator.permutation(size)[:most]] = 1.0
    return weights


# A count is asked for by its query alone.
_STATISTIC = re.compile(
    r"(sum|mean|median|std|quantile|proportion|correlation)\s*\((.*?)\)(?:\s+where\s+(.+))?\s*",
    re.DOTALL,
)


def bar_of(release: Any, question: str, level: float) -> float:
    """Half width of the interval of a release's answer to a question in words."""
    found = _STATISTIC.fullmatch(question.strip())
    how = {"return_interval": True, "level": level}
    if found is None:
        answer = release.count(question, **how)
    else:
        name, inside, query = found.groups()
        given = [inside] if name == "proportion" else [part.strip() for part in inside.split(",")]
        if name == "median":
            given, name = [*given, 0.5], "quantile"
        elif name == "quantile" and len(given) == 2:
            given[1] = float(given[1])
        wanted = 2 if name in ("quantile", "correlation") else 1
        if len(given) != wanted:
            raise ValueError(
                f"{question!r} cannot be read: write a count as 'age >= 65', and others as "
                "'mean(pay)', 'median(pay) where age >= 65', 'quantile(pay, 0.9)', "
                "'proportion(age >= 65)' or 'correlation(age, pay)'."
            )
        answer = getattr(release, name)(*given, query, **how)
    return float(answer.upper - answer.lower) / 2


def is_of_records(question: str) -> bool:
    """Whether a bar grows with the number of records at the same share of noise."""
    found = _STATISTIC.fullmatch(question.strip())
    return found is None or found[1] == "sum"


# --- expected errors of a release by kind of question and epsilon


@dataclass(eq=False, repr=False)
class ExpectedError:
    """Expected errors of a release, before anything is spent.

    Attributes
    ----------
    errors : DataFrame
        Root mean square error of each kind of question (rows) at each epsilon (columns); of
        questions that were given, the error bar.
    n : int
        Number of records.
    unit : str
        Unit of the errors.
    how : str
        "formula", "simulated on a generated table" or "simulated on the table given".
    estimator : str
        What would be released.
    what : str
        "error", or what the numbers of questions that were given are.

    Examples
    --------
    >>> from skdp import Domain, Numeric, RangeTreeHistogram
    >>> ages = RangeTreeHistogram(domain=Numeric(0, 100, bins=128))
    >>> expected = ages.expected_error(n=10_000, epsilon=[0.1, 1.0])
    >>> list(expected.errors.columns)
    [0.1, 1.0]
    """

    runs: InitVar[Mapping[float, Sequence[Mapping[str, float]]]]
    _: KW_ONLY
    n: int
    unit: str
    how: str
    estimator: str
    what: str = "error"

    def __post_init__(self, runs: Mapping[float, Sequence[Mapping[str, float]]]) -> None:
        # Of each epsilon the errors of every run, a row each.
        self._runs = {epsilon: pd.DataFrame(list(found)) for epsilon, found in runs.items()}
        self.errors = pd.DataFrame(
            {epsilon: np.sqrt((each**2).mean()) for epsilon, each in self._runs.items()}
        )
        self.errors.index.name = "question"
        self.errors.columns.name = "epsilon"

    def to_frame(self) -> pd.DataFrame:
        """One row for each kind of question and epsilon.

        Returns
        -------
        DataFrame
            ``question``, ``epsilon``, ``error`` (root mean square), ``lowest`` and ``highest`` (of
            the tables tried), ``share`` (of the number of records; NaN for errors that are not in
            records), ``unit``.
        """
        parts = []
        for epsilon, runs in self._runs.items():
            ends = {"error": self.errors[epsilon], "lowest": runs.min(), "highest": runs.max()}
            parts.append(pd.DataFrame(ends).rename_axis("question").reset_index())
            parts[-1].insert(1, "epsilon", epsilon)
        table = pd.concat(parts, ignore_index=True)
        share = table["error"] / self.n if self.unit == "records" else np.nan
        return table.assign(share=share, unit=self.unit)

    def _shown(self) -> pd.DataFrame:
        return self.errors.map(lambda value: f"{value:.3g}")

    @property
    def _caption(self) -> str:
        return (
            f"{self.estimator}: expected {self.what} in {self.unit}, {self.n:,} records "
            f"({self.how}; nothing was spent)"
        )

    def __repr__(self) -> str:
        return f"{self._caption}\n{self._shown().to_string()}"

    def _repr_html_(self) -> str:
        return f"<div>{self._caption}{self._shown().to_html()}</div>"


# --- what estimators answer

# A release of more records is tried out on so many, at an epsilon that is larger in proportion:
# what noise does depends on their product. Not where epsilon would be larger than this.
_MOST_ROWS = 100_000
_MOST_EPSILON = 4.0
# Range of epsilon that `epsilon_for` searches, and how close it comes.
_LEAST, _LARGEST = 0.001, 64.0
_CLOSE = 1.1


class ExpectsErrors:
    """Estimators that can say how large the errors of a release would be.

    A subclass defines either ``_formula_errors(n)``, in closed form, or ``_tried_errors(table)``
    and ``_tried_bars(table, questions, level)``, which fit ``self`` to public rows, and
    ``_public_table(n, like, seed)``.
    """

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
    ) -> ExpectedError:
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
            interval that the release will state. None: random questions of each kind.
        level : float, default=0.95
            Confidence of these intervals.
        like : table, default=None
            PUBLIC rows that resemble the private ones, such as those of an earlier year that were
            published; never the private rows themselves, as errors that are computed from them are
            not private. ``n`` of them are drawn, repeated if there are fewer. None: generated rows
            with skewed columns that depend on each other moderately, which predict typical errors
            less closely.
        n_tables : int, default=3
            Number of tables that are tried.
        random_state : int, default=0
            Seed of public rows, of the questions and of the noise of these trials.

        Returns
        -------
        ExpectedError
            ``errors`` (a table) and ``to_frame()``. Errors are root mean squares over
            random questions.

        Raises
        ------
        DomainError, ValueError
            If a parameter is invalid, or public rows are needed that are not given.
        """
        records = as_integer(n, "n", 1)
        number = as_integer(n_tables, "n_tables", 1)
        own: Any = self
        values = [own.epsilon] if epsilon is None else _as_list(epsilon)
        wanted = [as_epsilon(value) for value in values]
        asked = None
        if questions is not None:
            asked = [questions] if isinstance(questions, str) else list(questions)
            level = as_level(level)
        runs = {
            float(each): self._errors_at(each, records, like, number, random_state, asked, level)
            for each in wanted
        }
        return ExpectedError(
            runs,
            n=records,
            unit=self._unit_of_errors() if asked is None else "the unit of each question",
            how=self._how(like),
            estimator=type(self).__name__,
            what="error" if asked is None else f"error bar (half the {level:.0%} interval)",
        )

    def epsilon_for(
        self, error: float, n: int, *, question: str | None = None, **how: Any
    ) -> float:
        """Smallest epsilon with an expected error of at most ``error``, before anything is spent.

        Parameters
        ----------
        error : float
            In the unit of :meth:`expected_error`; positive.
        n, **how
            As in :meth:`expected_error`: ``like``, ``n_tables`` and ``random_state``.
        question : str, default=None
            Kind of question, a row of ``expected_error(...).errors``. None: the kind with the
            largest error.

        Returns
        -------
        float
            Between 0.001 and 64, at most a tenth larger than needed by the expectation.

        Raises
        ------
        DomainError, ValueError
            As in :meth:`expected_error`, and if no epsilon up to 64 is enough.
        """
        wanted = as_number(error, "error")
        if not wanted > 0:
            raise ValueError(f"error must be positive, got {error!r}.")

        def expected(epsilon: float) -> float:
            found = self.expected_error(n, epsilon, **how).errors[epsilon]
            if question is None:
                return float(found.max())
            if question not in found.index:
                raise ValueError(
                    f"question must be one of {found.index.tolist()}, got {question!r}."
                )
            return float(found[question])

        return _smallest(expected, wanted)

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

    def _formula_errors(self, n: int) -> Mapping[str, float] | None:
        """Errors in closed form; None where there is none."""
        return None

    def _public_table(self, n: int, like: Any, seed: int) -> TrialTable:
        # Where there is a formula, only questions come here.
        raise ValueError(
            f"{type(self).__name__} has no release that answers questions: leave questions out."
        )

    def _tried_errors(self, table: TrialTable) -> Mapping[str, float]:
        raise NotImplementedError

    def _tried_bars(
        self, table: TrialTable, questions: Sequence[str], level: float
    ) -> Mapping[str, float]:
        raise NotImplementedError

    # -- the path that all take

    def _how(self, like: Any) -> str:
        if type(self)._formula_errors is not ExpectsErrors._formula_errors:
            return "formula"
        return "simulated on " + ("generated tables" if like is None else "the rows of like")

    def _errors_at(
        self,
        epsilon: Fraction,
        n: int,
        like: Any,
        n_tables: int,
        seed: int,
        questions: Sequence[str] | None = None,
        level: float = 0.95,
    ) -> Sequence[Mapping[str, float]]:
        """Errors of each trial at one epsilon, or error bars of the questions."""
        closed = None if questions else self._trial(epsilon, seed)._formula_errors(n)
        if closed is not None:
            return [closed]
        rows = _rows_tried(n, epsilon)
        of_records = self._unit_of_errors() == "records"
        found = []
        for number in range(n_tables):
            trial = self._trial(epsilon * n / rows, seed + number)
            table = trial._public_table(rows, like, seed + number)
            # The rows are public: a seed makes the trial repeatable, and there is nothing to warn
            # of, neither of few records nor of coarse tables.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InsecureSeedWarning)
                warnings.simplefilter("ignore", UserWarning)
                if questions is None:
                    errors = trial._tried_errors(table)
                else:
                    errors = trial._tried_bars(table, questions, level)
            found.append(
                {
                    kind: error * (n / rows if of_records and is_of_records(kind) else 1.0)
                    for kind, error in errors.items()
                }
            )
        return found


def _as_list(values: Any) -> list[Any]:
    single = np.isscalar(values) or isinstance(values, Fraction) or not isinstance(values, Iterable)
    found = [values] if single else list(values)
    if not found:
        raise ValueError("epsilon is an empty list: give at least one number.")
    return found


def _rows_tried(n: int, epsilon: Fraction) -> int:
    """How many rows to try a release of ``n`` records with."""
    return min(n, max(_MOST_ROWS, math.ceil(n * float(epsilon) / _MOST_EPSILON)))


def _smallest(expected: Callable[[float], float], wanted: float) -> float:
    """Smallest epsilon at which an error that falls with it is small enough."""

    def excess(place: float) -> float:
        return math.log(max(expected(math.exp(place)), 1e-300) / wanted)

    low, high = math.log(_LEAST), math.log(_LARGEST)
    if excess(low) <= 0:
        return _LEAST
    if (most := excess(high)) > 0:
        raise ValueError(
            f"No epsilon up to {_LARGEST:g} brings the expected error down to {wanted:g}: it "
            f"is {wanted * math.exp(most):.3g} there. Allow a larger error, declare fewer bins or "
            "columns, or ask another kind of question."
        )
    near = math.log(_CLOSE) / 2
    found = math.exp(brentq(excess, low, high, xtol=near) + near)
    # Rounded up: an epsilon that is a little larger is still enough.
    scale = 10.0 ** (2 - math.floor(math.log10(found)))
    return math.ceil(found * scale) / scale
