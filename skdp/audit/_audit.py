"""Empirical lower bounds on epsilon."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._validation import as_epsilon
from ._events import DIRECTIONS, Event, choose, clopper_pearson, log_ratio_bound
from ._neighbours import check_neighbours, find_neighbours
from ._trials import Trials

# --- the common base of audit and replay results


class Result:
    """The verdict on a claimed privacy loss, as text, as a table, and for notebooks."""

    # Verdict when the claim stands.
    _good: ClassVar[str]
    name: str

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        raise NotImplementedError

    @property
    def verdict(self) -> str:
        """``"convicted"``, or ``"not refuted"`` (audits) and ``"certified"`` (replays)."""
        return self._good if self.passed else "convicted"

    def _row(self) -> dict[str, Any]:
        """Columns of `to_frame`."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """The result as a DataFrame of one row, with the name as index."""
        return pd.DataFrame(self._row(), index=pd.Index([self.name], name="mechanism"))

    def _repr_html_(self) -> str:
        head, *rest = str(self).split("\n")
        body = "<br>".join(html.escape(line.strip()) for line in rest)
        return f"<p><b>{html.escape(head)}</b><br>{body}</p>"


def name_of(mechanism: Any) -> str:
    """Class of an estimator, or name of a function."""
    if hasattr(mechanism, "fit"):
        return type(mechanism).__name__
    return str(getattr(mechanism, "__name__", "mechanism"))


def labelled(ax: Any, results: Sequence[Result], quantity: str) -> Any:
    """Name the bars, one below the other, and count the convictions."""
    ax.set_yticks(np.arange(len(results)), [result.name for result in results])
    ax.set_ylim(len(results) - 0.4, -0.6)
    ax.set_xlabel(quantity)
    convicted = sum(not result.passed for result in results)
    ax.set_title(f"{convicted} of {len(results)} convicted", fontsize="medium")
    return ax


@dataclass(frozen=True)
class AuditResult(Result):
    """Result of an audit: a lower bound on the privacy loss.

    Attributes
    ----------
    epsilon : float
        The claimed privacy loss.
    epsilon_lower_bound : float
        The mechanism's true loss is at least this, at the stated confidence. 0 if nothing was
        found, because some event always has a ratio of at least 1.
    confidence : float
        Probability, over the trials, with which the bound holds.
    passed : bool
        False if the bound exceeds the claim: the mechanism is convicted. True says only that
        these trials on this pair of data sets found nothing.
    event : Event
        The set of outputs that was measured; ``str(event)`` describes it.
    n_trials : int
        Trials on each data set; half of them chose the event.
    reachable : float
        The largest bound that this number of trials could have given, reached if the two data
        sets had no output in common.
    counts : tuple of two int
        Trials of the second half that fell into the event, on the data set and the neighbour.
    candidates : list of (str, float)
        Best event of each kind and the bound that the first half predicted for it.
    dataset, neighbour : object
        The pair audited (the one found, if it was searched for).
    relation : str
        How the pair was checked to be neighbours.
    seconds : float
        Wall-clock time.
    name : str
    """

    _good = "not refuted"

    epsilon: float
    epsilon_lower_bound: float
    confidence: float
    event: Event
    n_trials: int
    reachable: float
    counts: tuple[int, int]
    candidates: list[tuple[str, float]] = field(repr=False)
    dataset: Any = field(repr=False)
    neighbour: Any = field(repr=False)
    relation: str = ""
    seconds: float = 0.0
    name: str = "mechanism"

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        return self.epsilon_lower_bound <= self.epsilon

    @property
    def table(self) -> pd.DataFrame:
        """Frequencies of the event and their confidence bounds, one row per data set."""
        n, tail = self.n_trials - self.n_trials // 2, (1 - self.confidence) / 2
        bounds = [clopper_pearson(count, n, tail) for count in self.counts]
        return pd.DataFrame(
            {
                "trials": [n, n],
                "in event": list(self.counts),
                "frequency": [count / n for count in self.counts],
                "lower": [float(low) for low, _ in bounds],
                "upper": [float(high) for _, high in bounds],
            },
            index=pd.Index(["dataset", "neighbour"], name="side"),
        )

    def _row(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "epsilon_lower_bound": self.epsilon_lower_bound,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "n_trials": self.n_trials,
            "reachable": self.reachable,
            "event": str(self.event),
            "direction": self.event.direction,
            "in_event_dataset": self.counts[0],
            "in_event_neighbour": self.counts[1],
            "seconds": round(self.seconds, 2),
        }

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.verdict}. epsilon >= {self.epsilon_lower_bound:.4g} at "
            f"{100 * self.confidence:.6g}% confidence, {self.epsilon:g} claimed "
            f"({self.n_trials:,} trials per side, at most {self.reachable:.3g} reachable).\n"
            f"  event: {self.event} ({self.event.direction})\n"
            f"  seen {self.counts[0]:,} times on the dataset and {self.counts[1]:,} times on the "
            f"neighbour in {self.n_trials - self.n_trials // 2:,} trials each"
        )

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}{self.table.to_html()}"

    def plot(self, ax: Any = None) -> Any:
        """Draw the event's frequency on both data sets and the ratio that the claim allows.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from ..plotting import axes_or_new, current_inks

        ax = axes_or_new(ax, (5.0, 4.0))
        inks, table = current_inks(), self.table
        colour = inks.main if self.passed else inks.bad
        floor = 0.2 / table["trials"].iloc[0]
        values = np.maximum(table["frequency"].to_numpy(), floor)
        low = np.maximum(table["lower"].to_numpy(), floor)
        high = table["upper"].to_numpy()
        less = 1 if self.event.direction.startswith("dataset") else 0
        # Above the band the more likely side contradicts the claim, even with the less likely side
        # at the upper end of what its count allows.
        limit = min(high[less] * np.exp(self.epsilon), 1.0)
        bottom = max(low.min() / 4, floor / 2)
        ax.axhspan(bottom, limit, color=inks.faint, alpha=0.5, lw=0)
        errors = [np.maximum(values - low, 0), np.maximum(high - values, 0)]
        ax.errorbar(np.arange(2), values, yerr=errors, fmt="o", color=colour, capsize=6, lw=2)
        for place, value in enumerate(table["frequency"]):
            ax.annotate(
                f"{value:.3g}", (place, values[place]), (10, 0), textcoords="offset points",
                va="center", color=colour,
            )  # fmt: skip
        # From the rate of the less likely side to the largest that the claim allows the other.
        least, factor = float(values[less]), math.exp(self.epsilon)
        most, x = least * factor, 0.5
        ax.plot([x - 0.06, x, x, x - 0.06], [least, least, most, most], color=inks.ink, lw=1.0)
        words = f"allowed:\n× e$^{{{self.epsilon:g}}}$ = {factor:.3g}"
        style = {"textcoords": "offset points", "va": "center", "fontsize": 9}
        ax.annotate(words, (x, math.sqrt(least * most)), (4, 0), **style)
        ax.set_yscale("log")
        ax.set_ylim(bottom, max(2.0 * values.max(), limit * 1.5, 1.5 * values[less]))
        ax.set_xlim(-0.6, 1.6)
        ax.set_xticks(np.arange(2), ["dataset", "neighbour"])
        ax.set_ylabel("frequency of the event")
        ax.set_title(
            f"{self.name}: {self.verdict}\nclaimed epsilon = {self.epsilon:g}, found at least "
            f"{self.epsilon_lower_bound:.3g} at {100 * self.confidence:.6g}% confidence",
            fontsize="medium",
        )
        return ax


def reachable_epsilon(n_trials: int, confidence: float = 0.999) -> float:
    """Largest lower bound that an audit can give: all outputs differ between the data sets.

    Parameters
    ----------
    n_trials : int
        Trials on each data set; half of them measure.
    confidence : float, default=0.999

    Examples
    --------
    >>> round(reachable_epsilon(1_000_000), 1)
    11.1
    """
    n = n_trials - n_trials // 2
    return log_ratio_bound(n, 0, n, 1 - confidence) if n > 0 else -math.inf


# More trials than this are never asked for.
_MOST_TRIALS = 10**9


def _needed(epsilon: float, confidence: float) -> int:
    """Fewest trials whose reachable bound exceeds ``epsilon``."""
    n = 16
    # Quantiles of SciPy below 1.12 are useless at a confidence above 1 - 1e-5.
    while n < _MOST_TRIALS and reachable_epsilon(n, confidence) <= epsilon:
        n = n + n // 8
    return n


def audit(
    mechanism: Any,
    dataset: Any = None,
    neighbour: Any = None,
    epsilon: Any = None,
    n_trials: int = 100_000,
    *,
    confidence: float = 0.999,
    features: Callable[[Any], Any] | None = None,
    vectorised: bool = False,
    relation: Any = "auto",
    sensitivity: float = 1,
    search: str | Iterable[tuple[Any, Any]] | None = None,
    events: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] = (),
    representation: bool = True,
    n_jobs: int = 1,
    batch_size: int = 250_000,
    verbose: int = 0,
    name: str | None = None,
) -> AuditResult:
    """Bound the privacy loss of a mechanism from below, by experiment.

    The mechanism runs many times on two neighbouring data sets. Half of the trials choose an event,
    a set of outputs that is likely on one and unlikely on the other; the other half count it. If
    its two probabilities differ by more than a factor ``exp(epsilon)``, with certainty
    ``confidence``, the mechanism is not epsilon-differentially private.

    Parameters
    ----------
    mechanism : callable or estimator
        ``mechanism(data)`` returns a number, a vector, a hashable, or tuples, lists and dicts of
        them. An exception is an outcome like any other. An estimator is cloned without its ledger
        and fitted in every trial (a pair ``(X, y)`` is passed as two arguments).
    dataset, neighbour : object
        Two inputs that differ in one record; see `relation`. Leave both out to search for them
        (`search`), or only `neighbour` with ``search="records"``.
    epsilon : number, optional
        The claim. Default: the estimator's ``epsilon``.
    n_trials : int, default=100_000
        Trials on EACH of the two inputs.
    confidence : float, default=0.999
        Probability with which the bound holds, that is, one minus the rate of false alarms.
    features : callable, optional
        Applied to every output, or to the fitted estimator. Required for an estimator.
    vectorised : bool, default=False
        The mechanism is ``mechanism(data, n)`` and returns ``n`` independent outputs at once, an
        array or list of length n (features then takes that).
    relation : {"auto", "records", "answers"}, callable or None, default="auto"
        What makes the inputs neighbours. "records": they are frames, arrays or lists of records and
        one record is added or removed. "answers": they are numbers or vectors of query answers (or
        scores), each of which moves by at most `sensitivity`. A callable decides; None skips the
        check. "auto" means answers for numbers and for numeric vectors of equal length, else
        records.
    sensitivity : float, default=1
        See `relation`.
    search : {"records", "scores", "answers"} or iterable of pairs, optional
        Where to search for the pair; see `find_neighbours`.
    events : callable or sequence of callables, optional
        Events to consider besides those found: functions from an output to a truth value (from an
        array of outputs to an array, if `vectorised`).
    representation : bool, default=True
        Whether to look at the bits of floating-point outputs too: which doubles occur, and how
        their last bits are set. This convicts textbook noise added in floating point, such as
        ``value + rng.laplace(scale=1)``, because its last bits reveal the value. Set False for a
        prototype of a mechanism that is defined on real numbers.
    n_jobs : int, default=1
        Processes, for mechanisms that are not vectorised. Each draws its own entropy.
    batch_size : int, default=250_000
        Largest number of trials in one call.
    verbose : int, default=0
        Print progress to standard error.
    name : str, optional
        Name in the report.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        If the inputs are not neighbours, the mechanism is seeded or constant, or so few trials were
        asked for that no outcome could exceed `epsilon`.
    TypeError
        If an output cannot be compared by value.

    Notes
    -----
    With n trials in the second half, k of them in the event on one input and j on the other, the
    bound is ``log(lower(k, n) / upper(j, n))`` with one-sided Clopper-Pearson limits, each missed
    with probability at most ``(1 - confidence) / 2``; or, for rare events, the exact limit of the
    odds ratio given k + j (nine tenths of ``1 - confidence``) with a Clopper-Pearson limit of the
    smaller proportion (one tenth). Event, direction and kind of bound are fixed before the second
    half is drawn, so that nothing is tested twice. Passing is not a proof of privacy: the pair may
    be harmless, the revealing event rare, and a ratio near the claim needs many trials.

    References
    ----------
    C. J. Clopper, E. S. Pearson. The use of confidence or fiducial limits illustrated in the case
    of the binomial. Biometrika 26(4), 1934.

    Z. Ding, Y. Wang, G. Wang, D. Zhang, D. Kifer. Detecting violations of differential privacy.
    CCS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import audit
    >>> rng = np.random.default_rng(0)
    >>> def too_little_noise(count, n):
    ...     return np.round(count + rng.laplace(scale=0.5, size=n), 2)
    >>> result = audit(too_little_noise, 0, 1, epsilon=1.0, n_trials=100_000, vectorised=True)
    >>> result.passed, result.epsilon_lower_bound > 1.8  # the truth is 2
    (False, True)
    """
    start = time.perf_counter()
    if epsilon is None:
        epsilon = getattr(mechanism, "epsilon", None)
    if epsilon is None:
        raise TypeError(
            "epsilon, the privacy loss that the mechanism claims, must be given: what does the "
            "audit have to refute?"
        )
    claimed = float(as_epsilon(epsilon))
    reachable = _check_sizes(n_trials, confidence, claimed)
    how: dict[str, Any] = {
        "features": features, "vectorised": vectorised, "n_jobs": n_jobs, "verbose": verbose
    }  # fmt: skip
    trials = Trials(mechanism, batch_size=batch_size, **how)
    if neighbour is None:
        dataset, neighbour = find_neighbours(
            mechanism,
            dataset,
            search=search,
            n_trials=n_trials,
            confidence=confidence,
            sensitivity=sensitivity,
            **how,
        )[:2]
    elif search is not None:
        raise ValueError("Give a neighbour or search for one, not both.")
    related = check_neighbours(dataset, neighbour, relation, sensitivity)
    alpha = 1 - confidence
    first, second = n_trials // 2, n_trials - n_trials // 2
    trials.probe(dataset, neighbour)
    candidates = choose(
        trials, dataset, neighbour, first, second, alpha, events, representation=representation
    )
    event = candidates[0]
    # The second half: how often the event occurs on each side.
    here, there = (
        sum(event.count(batch) for batch in trials.draw(data, second, side))
        for side, data in enumerate((dataset, neighbour))
    )
    more, less = (here, there) if event.direction == DIRECTIONS[0] else (there, here)
    return AuditResult(
        epsilon=claimed,
        epsilon_lower_bound=max(0.0, log_ratio_bound(more, less, second, alpha, event.method)),
        confidence=confidence,
        event=event,
        n_trials=n_trials,
        reachable=reachable,
        counts=(here, there),
        candidates=[(str(each), each.predicted) for each in candidates],
        dataset=dataset,
        neighbour=neighbour,
        relation=related,
        seconds=time.perf_counter() - start,
        name=name or name_of(mechanism),
    )


def assert_epsilon(
    mechanism: Any,
    dataset: Any = None,
    neighbour: Any = None,
    epsilon: Any = None,
    n_trials: int = 100_000,
    **options: Any,
) -> AuditResult:
    """Fail if an audit convicts the mechanism; for tests.

    Takes what `audit` takes. A correct mechanism fails with probability at most
    ``1 - confidence``; with m such assertions in a test suite, at most m times that.

    Returns
    -------
    AuditResult

    Raises
    ------
    AssertionError
        If the lower bound exceeds `epsilon`; the message names the event.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import assert_epsilon
    >>> rng = np.random.default_rng(0)
    >>> def count(records):
    ...     return round(len(records) + rng.laplace(scale=2.0))
    >>> assert_epsilon(count, ["Ann", "Bob"], ["Ann"], 0.5, n_trials=5_000).passed
    True
    """
    result = audit(mechanism, dataset, neighbour, epsilon, n_trials, **options)
    if not result.passed:
        raise AssertionError(str(result))
    return result


def _check_sizes(n_trials: int, confidence: float, epsilon: float) -> float:
    if isinstance(n_trials, bool) or not isinstance(n_trials, int | np.integer) or n_trials < 1:
        raise ValueError(f"n_trials must be a positive integer, got {n_trials!r}.")
    if not 0.5 <= confidence < 1:
        raise ValueError(
            f"confidence must lie in [0.5, 1), got {confidence!r}; 0.999 means one false alarm in "
            "a thousand audits of correct mechanisms."
        )
    reachable = reachable_epsilon(int(n_trials), confidence)
    if n_trials < 16 or reachable <= epsilon:
        raise ValueError(
            f"n_trials={n_trials} is too small to say anything: at confidence {confidence:g} the "
            f"largest bound that {n_trials} trials per side can give, to a mechanism whose outputs "
            f"always differ, is {max(reachable, 0):.3g}, and the claim is epsilon={epsilon:g}. At "
            f"least {_needed(epsilon, confidence):,} trials are needed to convict even that one, "
            "and far more for a subtle error."
        )
    return reachable


# --- pictures


def plot_audits(results: Sequence[AuditResult], ax: Any = None) -> Any:
    """Draw many audits, one below the other: the bound found, as a multiple of the claim.

    Parameters
    ----------
    results : sequence of AuditResult
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Bars that pass the line at 1 are convictions. The grey bars show the largest bound that an
        audit of that many trials can reach.
    """
    results = list(results)
    from ..plotting import axes_or_new, current_inks

    ax, inks = axes_or_new(ax, (8.0, 1.2 + 0.32 * len(results))), current_inks()
    left, right = 0.05, 30.0
    for place, result in enumerate(results):
        colour = inks.main if result.passed else inks.bad
        share = result.epsilon_lower_bound / result.epsilon
        reachable = min(result.reachable / result.epsilon, right)
        ax.barh(place, reachable - left, left=left, height=0.8, color=inks.faint, alpha=0.4)
        if share > left:
            ax.barh(place, min(share, right) - left, left=left, height=0.5, color=colour)
        ax.text(
            max(min(share, right), left) * 1.06, place, f"{result.epsilon_lower_bound:.2f}",
            va="center", fontsize="small", color=colour, zorder=3,
            bbox={"facecolor": inks.paper, "edgecolor": "none", "pad": 1.0, "alpha": 0.8},
        )  # fmt: skip
    ax.axvline(1.0, color=inks.ink, lw=1.2)
    ax.set_xscale("log")
    ax.set_xlim(left, right)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    return labelled(ax, results, "lower bound on epsilon / claimed epsilon")
