"""Replay: an exact check of a privacy argument on one pair of neighbouring data sets.

A run on one data set gets made-up outputs (a tape) in place of noisy ones; the run on the neighbour
gets the same outputs. If both make the same calls and release the same results, the log ratio of
the probabilities of that release is a sum over the calls, and the term of a call is computed from
the change of its exact values. Nothing is estimated from samples.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.tree import DecisionTreeClassifier

from .. import (
    additive,
    classification,
    cluster,
    compose,
    datacube,
    decomposition,
    histogram,
    linear_model,
    naive_bayes,
    preprocessing,
    sample_aggregate,
    selection,
    synthesis,
    tree,
)
from .._random import Tape, recording
from .._validation import as_epsilon, as_integer
from ..accounting import for_trial
from ..domain import Categorical, Domain, Numeric
from ..exceptions import ReplayError
from ..inspection import ledgers
from ._released import first_difference, independent, raised, released
from ._tapes import OUTPUTS, Alignment, Diverged, Follower, Recorder

# Rounding in sums of logarithms; a true excess is far larger.
_TOLERANCE = 1e-9


def name_of(mechanism: Any) -> str:
    """Class of an estimator, or name of a function."""
    if hasattr(mechanism, "fit"):
        return type(mechanism).__name__
    return str(getattr(mechanism, "__name__", "mechanism"))


@dataclass(frozen=True)
class ReplayResult:
    """Result of replaying a mechanism on a pair of data sets.

    Attributes
    ----------
    epsilon : float
        The claimed privacy loss.
    loss : float
        Largest privacy loss of all runs, in units of epsilon: no output that was tried is more than
        ``exp(loss)`` times as likely on one data set as on the other. Infinite if runs diverged.
    by_part : dict of str to float
        Loss of each step in the run with the largest loss: a function that called a mechanism, and
        the mechanism. One step may exceed its share of the budget if another stays below.
    declared : dict of str to float
        Parts of the claim by name, from ``privacy_loss_``; empty for functions.
    diverged_at : str or None
        The first mechanism call that differs between the two data sets; None if none does.
    differs : str or None
        The first released value that differs between the two data sets; None if none does.
    violations : tuple of str
        Calls whose exact values changed by more than the declared sensitivity or score range.
    n_runs : int
        Pairs of runs.
    n_calls : int
        Calls of mechanisms in all runs on the first data set.
    n_errors : int
        Pairs of runs in which both runs ended in the same exception.
    name : str, default="mechanism"
        Name in reports.
    """

    epsilon: float
    loss: float
    by_part: dict[str, float] = field(repr=False)
    declared: dict[str, float] = field(repr=False)
    diverged_at: str | None
    differs: str | None
    violations: tuple[str, ...]
    n_runs: int
    n_calls: int
    n_errors: int
    name: str = "mechanism"

    @property
    def passed(self) -> bool:
        """Whether the claim holds on this pair, for the outputs that were tried."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """Why the claim is refuted, as a list of str; empty if it stands."""
        why = []
        if self.diverged_at is not None:
            why.append(f"the runs diverge at {self.diverged_at}")
        if self.differs is not None:
            why.append(f"released, and not the same on both data sets: {self.differs}")
        why += self.violations
        most = self.epsilon * (1 + _TOLERANCE) + _TOLERANCE
        if self.diverged_at is None and not self.loss <= most:
            why.append(f"the loss is {self.loss:.6g}, and {self.epsilon:g} was claimed")
        return why

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {'passed' if self.passed else 'refuted'}. Loss {self.loss:.6g} of "
            f"{self.epsilon:g} claimed "
            f"({self.n_runs} pairs of runs, {self.n_calls:,} calls of mechanisms"
            + (f"; {self.n_errors} pairs ended in an exception)." if self.n_errors else ").")
        ]
        lines += [f"  {reason}" for reason in self.reasons]
        lines += [f"  {loss:10.6g}  {part}" for part, loss in self.by_part.items()]
        return "\n".join(lines)


def replay(
    mechanism: Any,
    data: Any,
    neighbour: Any,
    *,
    outputs: str | Sequence[str] = "mixed",
    n: int = 12,
    epsilon: Any = None,
    random_state: int = 0,
    name: str | None = None,
) -> ReplayResult:
    """Check the privacy argument of an estimator or a function exactly, on one pair of data sets.

    In a run on ``data`` every mechanism call returns a made-up output, and in a run on
    ``neighbour`` it returns the same output. The claim stands if both runs make the same
    calls, with the same shapes, budgets and sensitivities, release the same to the last bit, and if
    the privacy loss, computed from the change of the exact values, is at most epsilon.

    Parameters
    ----------
    mechanism : estimator or callable
        An estimator, which is cloned without its ledger for every run, or a function of the data
        that returns what it releases (give `epsilon`).
    data, neighbour : object
        Two neighbouring data sets, as ``fit`` or the function takes them; a tuple ``(X, y)`` is
        passed to ``fit`` as two arguments.
    outputs : {"mixed", "exact", "noisy", "wide", "low", "high", "blank"} or list of them
        How outputs are made up: "exact" values; "noisy", with noise of the usual scale; "wide", of
        five times that scale; "low" and "high", with noise below or above the exact values only;
        "blank", zeros. "mixed" takes all six in turn.
    n : int, default=12
        Number of pairs of runs. Every other pair makes its outputs from ``neighbour`` instead of
        ``data``.
    epsilon : number, optional
        The claimed privacy loss. Needed for a function; default for an estimator: that of its
        ``privacy_loss_`` after the fit, the smallest of all runs.
    random_state : int, default=0
        Seed of the outputs and of all other random numbers, so that a replay is reproducible.
    name : str, optional
        Name in reports. Default: that of the class or function.

    Returns
    -------
    ReplayResult

    Raises
    ------
    ReplayError
        If draws cannot be recorded (other threads or processes, so ``n_jobs`` must be None or 1;
        bare `geometric` noise), if records cannot be matched between the data sets, or if every run
        raises.
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    Notes
    -----
    With o the outputs of all calls, P[data gives o] / P[neighbour gives o] is the product of the
    calls' own ratios as long as everything else is the same function of o on both sides. For
    discrete Laplace noise of rate r the ratio is at most ``exp(r |change|_1)``, and so for the
    counts of all cells that `sparse_counts` adds it to; for a selection
    whose score changes lie within an interval of length w at most ``exp(r w)``; for a thresholded
    test it is the exact ratio of two tails; for a sparse vector, the bound in the proof of
    `SparseVector`.

    Random numbers unrelated to records (candidates of a pool, starting points of an optimiser,
    synthetic rows, seeds of inner estimators) are the same in both runs. Those that belong to a
    record (its fold, whether it is among the rows kept for a person) are the same for that record
    in both runs.

    A replay trusts that mechanisms draw from the distribution that they state, and shows nothing
    about pairs and outputs that were not tried. `audit` needs no such trust, but misses rare
    events. Every run gets a copy of its data set; everything that it returns, prints, logs or
    raises, and its warnings, are compared. Running time, files, and data kept outside the result
    and its class are not compared: a cache that outlives a run can pass to the second run what the
    first one has read. A seed given as ``random_state`` is not used, and does not convict an
    estimator. Made-up outputs are not private, so use artificial data.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GridSynthesizer, Numeric
    >>> from skdp.audit import replay
    >>> rows = np.array([[0.5], [0.5], [1.5]])
    >>> view = GridSynthesizer(epsilon=0.5, domain=Numeric(0, 2, bins=2), rule="identity")
    >>> result = replay(view, rows, rows[:2])
    >>> result.passed, round(result.loss, 2)
    (True, 0.5)

    A budget that depends on the data is refuted:

    >>> from skdp.mechanisms import discrete_laplace
    >>> def count(records):
    ...     epsilon = 1.0 if len(records) > 2 else 0.5
    ...     return int(discrete_laplace(len(records), epsilon))
    >>> print(replay(count, rows, rows[:2], epsilon=1.0).diverged_at)  # doctest: +ELLIPSIS
    call 1, discrete_laplace in ...count: rate 1 and 1/2
    """
    modes = _modes(outputs)
    for each in (data, neighbour):
        if hasattr(each, "__next__"):
            raise TypeError(
                f"A {type(each).__name__} is empty after the first run. Give a list or an array."
            )
    as_integer(n, "n", 1)
    run = _runner(mechanism)
    tally = _Tally(epsilon)
    for turn in range(n):
        mode = modes[turn // 2 % len(modes)]
        first, second = (data, neighbour) if turn % 2 == 0 else (neighbour, data)
        same = Alignment(first, second)
        seed = int(random_state) * 1_000_003 + turn
        tape = Recorder(seed, mode, same)
        seen = run(independent(first), tape)
        follower = Follower(seed, tape.calls, same)
        other = run(independent(second), follower)
        _refuse_unrecorded(tape, follower)
        tally.add(tape, follower, seen, other)
    if tally.n_errors == n and tally.differs is None:
        # A misspelt parameter would pass.
        _refuse_errors(seen)
    claimed = tally.claimed
    if claimed is None and not hasattr(mechanism, "epsilon"):
        raise ValueError(
            "epsilon is needed: the privacy loss that the function claims. Only a fitted estimator "
            "has it in privacy_loss_."
        )
    return ReplayResult(
        float(as_epsilon(mechanism.epsilon)) if claimed is None else claimed,
        tally.worst if tally.diverged is None else math.inf,
        tally.parts,
        tally.declared,
        tally.diverged,
        tally.differs,
        tuple(tally.violations),
        n,
        tally.n_calls,
        tally.n_errors,
        name or name_of(mechanism),
    )


class _Tally:
    """What has been seen in the pairs of runs so far."""

    def __init__(self, epsilon: Any) -> None:
        # Without a given claim, the smallest of all runs.
        self.given = epsilon is not None
        self.claimed = None if epsilon is None else float(as_epsilon(epsilon))
        self.worst = -math.inf
        self.parts: dict[str, float] = {}
        self.declared: dict[str, float] = {}
        self.diverged: str | None = None
        self.differs: str | None = None
        # A dict keeps each text once, in order.
        self.violations: dict[str, None] = {}
        self.n_calls = self.n_errors = 0

    def add(self, tape: Recorder, follower: Follower, seen: Any, other: Any) -> None:
        """Compare two runs: what was recorded and released on each data set."""
        self.n_calls += len(tape.calls)
        if follower.apart is not None:
            self.diverged = self.diverged or follower.apart
            return
        self.n_errors += "error" in seen
        self.differs = self.differs or first_difference(seen, other)
        result = seen.get("result")
        loss = getattr(result, "privacy_loss_", None) or getattr(result, "privacy_loss", None)
        # A person may change scores as much as all rows that are kept together.
        most = getattr(loss, "max_rows_per_id", None) or 1
        self.violations.update((text, None) for times, text in follower.excesses if times > most)
        if follower.loss > self.worst:
            self.worst, self.parts = follower.loss, follower.by_part()
        if loss is None:
            return
        if not self.given:
            self.claimed = min(self.claimed or math.inf, float(loss.epsilon))
        self.declared = {part: float(budget) for part, budget in loss.parts.items()}


def _refuse_errors(seen: dict[str, Any]) -> NoReturn:
    kind, text = seen["error"]
    raise ReplayError(f"Every run ended in {kind.__name__}, so there is nothing to replay: {text}")


def _refuse_unrecorded(*tapes: Recorder | Follower) -> None:
    """Refuse runs in which something escaped the recording."""
    for each in tapes:
        if each.missed:
            raise ReplayError(
                "Another thread or process drew noise or coins while the run was recorded. Set "
                "n_jobs=None everywhere, and replay while nothing else uses skdp."
            )
        if each.refused is not None:
            raise each.refused


def _modes(outputs: str | Sequence[str]) -> list[str]:
    wanted = list(OUTPUTS) if outputs == "mixed" else outputs
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [mode for mode in wanted if mode not in OUTPUTS]
    if unknown or not wanted:
        raise ValueError(f"outputs must be 'mixed' or among {list(OUTPUTS)}, got {outputs!r}.")
    return wanted


def _runner(mechanism: Any, whole: bool = True) -> Callable[[Any, Tape], Any]:
    """A function from data and tape to the released result, or to the divergence.

    Without ``whole`` files and samples of an estimator, which it makes of itself, are left out.
    """
    is_estimator = hasattr(mechanism, "fit") and not isinstance(mechanism, type)
    if not is_estimator and not callable(mechanism):
        raise TypeError(
            "The first argument must be an estimator or a function of the data; got "
            f"{type(mechanism).__name__}."
        )

    def act(data: Any, made: list[Any]) -> Any:
        if not is_estimator:
            return mechanism(data)
        estimator = _prepared(mechanism)
        made.append(estimator)
        return estimator.fit(*data) if isinstance(data, tuple) else estimator.fit(data)

    def run(data: Any, tape: Tape) -> Any:
        made: list[Any] = []
        return _recorded(lambda: act(data, made), made, tape, whole)

    return run


def _recorded(act: Callable[[], Any], made: list[Any], tape: Tape, whole: bool) -> Any:
    """Everything that a run outputs, or the divergence that ended it.

    ``made`` holds the estimators that the run has made, also if it raises.
    """
    printed = io.StringIO()
    logged = _Log()
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(record=True) as warned,
        logged,
        recording(tape),
    ):
        warnings.simplefilter("always")
        try:
            result = act()
        except ReplayError:
            raise
        except Diverged as divergence:
            return divergence
        except Exception as error:
            outcome = {"error": (type(error), str(error)), "raised": raised(error)}
            # A handler of the exception still has the estimator.
            outcome["left behind"] = [vars(each) for each in made]
        else:
            outcome = released(result) if whole else {"result": result}
    messages = [(each.category, str(each.message)) for each in warned]
    outcome |= {"printed": printed.getvalue(), "warnings": messages, "logged": logged.lines}
    # Compared last: changes by a later run are still visible, though not in every attribute.
    if whole:
        outcome["when it was released"] = independent(outcome)
    return outcome


class _Log(logging.Handler):
    """Keeps what is logged while it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.name, self.format(record)))

    def __enter__(self) -> None:
        logging.getLogger().addHandler(self)

    def __exit__(self, *exc: object) -> None:
        logging.getLogger().removeHandler(self)


def _prepared(estimator: Any) -> Any:
    """A clone that charges nothing and uses no workers."""
    fresh = clone(estimator)
    params = fresh.get_params(deep=True)
    fresh.set_params(**{name: for_trial(params[name]) for name in ledgers(fresh)})
    for name, value in fresh.get_params(deep=True).items():
        if name.rpartition("__")[2] == "n_jobs" and value not in (None, 1):
            raise ReplayError(
                f"{name}={value!r} asks for worker processes, whose draws cannot be recorded. Set "
                f"{name}=None."
            )
    return fresh


# --- replays of the library itself: a few records of each estimator, one of which changes most

LABEL = Categorical([0, 1])
LINE = Domain({"x": Numeric(0, 4, bins=4)})
PLANE = Domain({"x": Numeric(0, 3, bins=3), "s": Categorical(["a", "b"])})
_SPACE = PLANE.with_attribute("z", Numeric(0, 1, integer=True))
_NUMBERS = _SPACE.select(["x", "z"])
LINE_ROWS = pd.DataFrame({"x": [0.5, 0.5, 0.5, 2.5]})
PLANE_ROWS = LINE_ROWS.assign(s=["a", "a", "b", "b"])
_SPACE_ROWS = PLANE_ROWS.assign(z=[0, 0, 1, 1])
_NUMBERS_ROWS = LINE_ROWS.assign(z=[0, 1, 0, 1])
# Enough records for grids of several cells to be candidates. The last record is removed; its label
# is rare in its cell.
_GRID_ROWS = pd.DataFrame({"x": [0.5] * 15 + [2.5] * 15, "s": ["a"] * 14 + ["b"] * 15 + ["a"]})
# One column is right and one constant; without the last record the lead is smaller.
_SELECTED_ROWS = pd.DataFrame({"u": [0] * 4 + [1] * 4, "v": 0, "y": [0] * 4 + [1] * 4})
_SELECTED = Domain({name: Numeric(0, 1, integer=True) for name in "uv"} | {"y": LABEL})
# The record that is removed is alone in its cluster.
_CLUSTERED = np.array([[-0.5]] * 4 + [[0.75]])


class _Largest(BaseEstimator):
    """The worst that an output can do: it jumps from one end of the range to the other."""

    def fit(self, X: Any, y: Any = None) -> _Largest:
        self.found_ = float(np.max(X) > 2)
        return self


_LINES: dict[str, Any] = {"epsilon": 1.0, "domain": LINE}
_PLANES: dict[str, Any] = {"epsilon": 1.0, "domain": PLANE}
_LABELS = {**_PLANES, "target": "s"}


def cases() -> tuple[tuple[Any, Any], ...]:
    """An estimator of each class, and its rows, or a pair of rows and labels."""
    return (
        (synthesis.HDPViewSynthesizer(**_LINES), LINE_ROWS),
        (synthesis.PrivTreeSynthesizer(**_LINES), LINE_ROWS),
        (synthesis.KDTreeSynthesizer(**_LINES, xi0=2, xi1=1), LINE_ROWS),
        (synthesis.GridSynthesizer(**_LINES, rule="uniform"), LINE_ROWS),
        (synthesis.HDMMSynthesizer(**_LINES), LINE_ROWS),
        (histogram.RangeTreeHistogram(**_LINES), LINE_ROWS),
        (preprocessing.PrivateStandardScaler(epsilon=1.0, domain=(0, 4)), LINE_ROWS),
        (
            preprocessing.PrivateQuantileClipper(
                epsilon=1.0, domain=(0, 4), quantiles=(0.25, 0.75)
            ),
            LINE_ROWS,
        ),
        (classification.PrivPfCTransformer(**_LABELS), _GRID_ROWS),
        (classification.PrivPfCClassifier(**_LABELS), _GRID_ROWS),
        (classification.DiffGenTransformer(**_LABELS, n_specializations=2), _GRID_ROWS),
        (classification.ProjectedHistogramTransformer(**_LABELS, n_attributes=1), _GRID_ROWS),
        (additive.PrivateAdditiveClassifier(**_LABELS), PLANE_ROWS),
        (
            additive.PrivateAdditiveRegressor(epsilon=1.0, domain=_NUMBERS, target="x"),
            _NUMBERS_ROWS,
        ),
        (tree.PrivateDecisionTreeClassifier(**_LABELS, max_depth=1, prune=False), PLANE_ROWS),
        (tree.PrivateRandomForestClassifier(**_LABELS, max_depth=1), PLANE_ROWS),
        (linear_model.PrivateLinearRegression(**_PLANES, target="x"), PLANE_ROWS),
        (linear_model.PrivateLogisticRegression(**_LABELS), PLANE_ROWS),
        (linear_model.PrivateLinearSVC(**_LABELS, solver="genetic"), PLANE_ROWS),
        (naive_bayes.PrivateNaiveBayes(**_LABELS), PLANE_ROWS),
        (
            sample_aggregate.SampleAggregate(
                _Largest(), epsilon=1.0, output_range=(0, 1), output="found_"
            ),
            PLANE_ROWS[["x"]],
        ),
        (decomposition.PrivatePCA(epsilon=1.0, domain=_NUMBERS), _NUMBERS_ROWS),
        (selection.DPTopKSelector(1, epsilon=1.0, domain=_SELECTED, target="y"), _SELECTED_ROWS),
        # Two sources: the record in one cell of each shifts both, and both budgets must count.
        (datacube.DataCube(**_LINES, strategy={"x": 1, (): 1}), LINE_ROWS),
        (synthesis.MarginalSynthesizer(epsilon=1.0, domain=_SPACE), pd.concat([_SPACE_ROWS] * 600)),
        # A network without a choice: the total and two tables.
        (synthesis.PrivBayesSynthesizer(**_PLANES), PLANE_ROWS),
        (cluster.DPKMeans(2, epsilon=1.0, domain=(-1, 1), n_init=2), _CLUSTERED),
        (
            compose.PrivateClassifier(
                DecisionTreeClassifier(max_depth=2), synthesis.HDPViewSynthesizer(**_LABELS)
            ),
            (PLANE_ROWS[["x"]], PLANE_ROWS["s"]),
        ),
        (compose.PrivateRegressor(**_PLANES, target="x"), (PLANE_ROWS[["s"]], PLANE_ROWS["x"])),
    )


def _last_gone(data: Any) -> Any:
    return tuple(part[:-1] for part in data) if isinstance(data, tuple) else data[:-1]


#: An estimator and two neighbouring tables, by the name of its class.
REPLAYS = {type(made).__name__: (made, data, _last_gone(data)) for made, data in cases()}


def replay_library(names: Iterable[str] | None = None, *, n: int = 12) -> list[ReplayResult]:
    """Replay every estimator of the library on its pair.

    Parameters
    ----------
    names : iterable of str, optional
        Entries of `REPLAYS`, the names of classes; default all.
    n : int, default=12
        Number of pairs of runs for each entry.

    Returns
    -------
    list of ReplayResult

    Raises
    ------
    ValueError
        If a name has no entry.
    """
    chosen = list(REPLAYS if names is None else names)
    unknown = [name for name in chosen if name not in REPLAYS]
    if unknown:
        raise ValueError(f"There is no replay of {unknown[0]!r}; there are {', '.join(REPLAYS)}.")
    return [replay(*REPLAYS[name], n=n) for name in chosen]
