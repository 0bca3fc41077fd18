"""`ExpectsErrors`: the error of a release before anything is spent, for all estimators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_regressor

from .._validation import as_epsilon, as_integer, as_level, as_number
from ..exceptions import InsecureSeedWarning
from ..rows import as_array, as_frame, select_columns
from .tables import TrialTable, is_of_records

__all__ = ["ExpectedError", "ExpectsErrors", "ExpectsScores"]

# --- expected errors of a release by kind of question and epsilon


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

    def __init__(
        self,
        runs: Mapping[float, Sequence[Mapping[str, float]]],
        *,
        n: int,
        unit: str,
        how: str,
        estimator: str,
        what: str = "error",
    ) -> None:
        self.n = n
        self.unit = unit
        self.how = how
        self.estimator = estimator
        self.what = what
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
            error = self.errors[epsilon]
            parts.append(
                pd.DataFrame(
                    {
                        "question": error.index,
                        "epsilon": epsilon,
                        "error": error.to_numpy(),
                        "lowest": runs.min().to_numpy(),
                        "highest": runs.max().to_numpy(),
                        "share": error.to_numpy() / self.n if self._of_records else np.nan,
                        "unit": self.unit,
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw error against epsilon, a line for each kind of question, both axes logarithmic.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        from ..plotting import plot_errors

        title = f"{self.estimator}, {self.n:,} records"
        return plot_errors(self.to_frame(), unit=self.unit, title=title, ax=ax)

    @property
    def _of_records(self) -> bool:
        return self.unit == "records"

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


# --- expected errors of models that predict a label: scores on held-out public rows


class ExpectsScores(ExpectsErrors):
    """Classifiers and regressors: the error on rows of ``like`` that were held out.

    ``like`` is ``(X, y)``, or a table with a column for the label.
    """

    def _unit_of_errors(self) -> str:
        return "units of the target" if is_regressor(self) else "share of rows"

    def _label_name(self) -> str | None:
        """Column of the label, where the domain has one."""
        return self.target  # type: ignore[attr-defined,no-any-return]

    def _public_table(self, n: int, like: Any, seed: int) -> TrialTable:
        if like is None:
            raise ValueError(
                f"The error of {type(self).__name__} depends on how well the label can be "
                "predicted at all, which no domain says. Give like=(X, y), public rows with their "
                "labels."
            )
        if isinstance(like, tuple):
            return TrialTable.of(like, n, seed)
        label = self._label_name()
        names = as_frame(like).named
        if label is None or label not in names:
            raise ValueError(
                "like has no column for the label: give like=(X, y), public rows and their labels."
            )
        X = select_columns(like, [name for name in names if name != label])
        y = as_array(select_columns(like, [label]))[:, 0]
        return TrialTable.of((X, y), n, seed)

    def _tried_errors(self, table: TrialTable) -> Mapping[str, float]:
        (X, y), (X_new, y_new) = table.rows, table.held_out
        predicted = self.fit(X, y).predict(X_new)  # type: ignore[attr-defined]
        y_new = np.asarray(y_new)
        if is_regressor(self):
            return {"root mean square error": float(np.sqrt(np.mean((predicted - y_new) ** 2)))}
        return {"error rate": float(np.mean(predicted != y_new))}
