"""`ExpectsErrors`: the error of a release before anything is spent, for all estimators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone

from .._validation import as_epsilon, as_integer, as_level, as_number
from ..exceptions import InsecureSeedWarning
from .questions import is_of_records
from .result import ExpectedError
from .tables import TrialTable

__all__ = ["ExpectsErrors"]

# A release of more records is tried out on so many, at an epsilon that is larger in proportion:
# what noise does depends on their product. Not where epsilon would be larger than this.
_MOST_ROWS = 100_000
_MOST_EPSILON = 4.0
# Range of epsilon that `epsilon_for` searches, and how close it comes.
_LEAST, _LARGEST = 0.001, 64.0
_CLOSE = 1.1


class ExpectsErrors:
    """Estimators that can say how large the errors of a release would be.

    A subclass defines either ``_formula_errors(n)``, in closed form, or ``_tried_errors(table)``,
    which fits ``self`` to public rows, and ``_public_table(n, like, seed)``.
    """

    def expected_error(
        self,
        n: int,
        epsilon: Any = None,
        *,
        questions: Sequence[str] | None = None,
        level: float = 0.95,
        domain: Any = None,
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
        domain : Domain, default=None
            None: that of the estimator.
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
            ``errors`` (a table), ``to_frame()`` and ``plot()``. Errors are root mean squares over
            random questions.

        Raises
        ------
        DomainError, ValueError
            If a parameter is invalid, or public rows are needed that are not given.
        """
        records = as_integer(n, "n", 1)
        number = as_integer(n_tables, "n_tables", 1)
        values = [self._own_epsilon()] if epsilon is None else _as_list(epsilon)
        wanted = [as_epsilon(value) for value in values]
        estimator = self if domain is None else self._with_domain(domain)
        own = None
        if questions is not None:
            own = [questions] if isinstance(questions, str) else list(questions)
            level = as_level(level)
        runs = {
            float(each): estimator._errors_at(each, records, like, number, random_state, own, level)
            for each in wanted
        }
        return ExpectedError(
            runs,
            n=records,
            unit=self._unit_of_errors() if own is None else "the unit of each question",
            how=estimator._how(like),
            estimator=type(self).__name__,
            what="error" if own is None else f"error bar (half the {level:.0%} interval)",
        )

    def epsilon_for(
        self,
        error: float,
        n: int,
        *,
        question: str | None = None,
        domain: Any = None,
        like: Any = None,
        n_tables: int = 3,
        random_state: int = 0,
    ) -> float:
        """Smallest epsilon with an expected error of at most ``error``, before anything is spent.

        Parameters
        ----------
        error : float
            In the unit of :meth:`expected_error`; positive.
        n, domain, like, n_tables, random_state
            As in :meth:`expected_error`.
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
            found = self.expected_error(
                n,
                epsilon,
                domain=domain,
                like=like,
                n_tables=n_tables,
                random_state=random_state,
            ).errors[epsilon]
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

    def _own_epsilon(self) -> Any:
        return self.epsilon  # type: ignore[attr-defined]

    def _with_domain(self, domain: Any) -> Any:
        return clone(self).set_params(domain=domain)  # type: ignore[type-var]

    def _trial(self, epsilon: Fraction, seed: int) -> Any:
        """A copy of the estimator for public rows: no ledger, and epsilon for one row."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        most = params.get("max_contributions")
        changed = {"epsilon": epsilon / (most or 1), "ledger": None, "random_state": seed}
        if "unit" in params:
            changed |= {"unit": None, "max_contributions": None}
        if "verbose" in params:
            changed["verbose"] = 0
        return clone(self).set_params(**changed)  # type: ignore[type-var]

    def _formula_errors(self, n: int) -> Mapping[str, float] | None:
        """Errors in closed form; None where there is none."""
        return None

    def _public_table(self, n: int, like: Any, seed: int) -> TrialTable:
        raise NotImplementedError

    def _tried_errors(self, table: TrialTable) -> Mapping[str, float]:
        raise NotImplementedError

    def _tried_bars(
        self, table: TrialTable, questions: Sequence[str], level: float
    ) -> Mapping[str, float]:
        raise ValueError(
            f"{type(self).__name__} has no release that answers questions: leave questions out."
        )

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
    low, high, place, slope = _LEAST / 2, 2 * _LARGEST, 1.0, 1.0
    last: tuple[float, float] | None = None
    while high > _CLOSE * low:
        error = expected(place)
        if error <= wanted:
            high = place
        else:
            low = place
        if high <= _LEAST:
            return _LEAST
        if low >= _LARGEST:
            raise ValueError(
                f"No epsilon up to {_LARGEST:g} brings the expected error down to {wanted:g}: it "
                f"is {error:.3g} there. Allow a larger error, declare fewer bins or columns, or "
                "ask another kind of question."
            )
        if last is not None and error > 0 and last[1] > 0:
            slope = math.log(error / last[1]) / math.log(last[0] / place)
        last = place, error
        place = _next(place, max(error, 1e-300) / wanted, slope, low, high)
    # Rounded up: an epsilon that is a little larger is still enough.
    scale = 10.0 ** (2 - math.floor(math.log10(high)))
    return math.ceil(high * scale) / scale


def _next(place: float, excess: float, slope: float, low: float, high: float) -> float:
    """Where to look next: a little beyond where a power of epsilon through here would be right."""
    beyond = _CLOSE**0.4 if excess > 1 else _CLOSE**-0.4
    guess = place * excess ** (1 / min(max(slope, 0.25), 2.0)) * beyond
    if not low < guess < high:
        guess = math.sqrt(low * high)
    return min(max(guess, _LEAST), _LARGEST)
