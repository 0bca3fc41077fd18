"""Lower bounds of epsilon by experiment: many runs on two neighbours, and one event counted.

One half of the runs chooses the event, the other half counts it, so that the bound holds however
the event was chosen. Events are plain: a number is at most, at least or equal to a value, the text
is a certain one, or the whole output is.
"""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binomtest
from sklearn.base import clone

from .._validation import FloatArray, as_between, as_epsilon, as_integer, as_number
from ..accounting import PrivacyLoss, for_trial
from ..domain import Domain
from ..exceptions import InsecureSeedWarning
from ..inspection import ledgers
from ._released import check_neighbours
from ._replay import name_of

_SEEDED = (
    "{what} With a seed every trial would be the same, and an audit of one repeated trial says "
    "nothing. Let the mechanism draw from the operating system's entropy (random_state=None), "
    "or from one generator that goes on between the trials."
)
# Values of one number, and texts, that are tried.
_TRIED = 1_000
# Words beside which each number is tried too.
_FREQUENT = 5
# Two batches are refused as copies where chance makes them equal less often.
_BY_CHANCE = 1e-9
_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": np.less_equal, ">=": np.greater_equal, "==": np.equal
}  # fmt: skip


# --- bounds


def log_ratio_bound(more: int, less: int, n: int, alpha: float) -> float:
    """Lower bound on ``log(p / q)``, wrong with probability at most ``alpha``.

    ``more`` of ``n`` trials with success probability p succeeded and ``less`` of ``n`` with q.
    """
    # Clopper and Pearson's limits: each is missed with probability at most alpha / 2.
    above, below = (binomtest(k, n).proportion_ci(1 - alpha, "exact") for k in (more, less))
    return math.log(above.low / below.high) if above.low > 0 else -math.inf


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


# --- outputs as numbers with names, and words for the rest

_WORDS = "in words"


def flatten(raw: Any) -> pd.DataFrame:
    """A row for each output: its numbers by name, NaN where there is none, and the rest in words.

    Raises
    ------
    TypeError
        If an output is neither a number, a text, an array, nor built from these.
    """
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf":
        table = raw.reshape(len(raw), -1).astype(float)
        width = table.shape[1]
        names = [f"output[{j}]" for j in range(width)] if raw.ndim > 1 else ["output"]
        outputs = pd.DataFrame(table, columns=names)
        words = pd.Series("", outputs.index, dtype=object)
        for name in names:
            words[outputs[name].isna()] += f"{name} is NaN; "
        outputs[_WORDS] = words
    else:
        rows = []
        for output in raw:
            row: dict[str, Any] = {}
            row[_WORDS] = "; ".join(_walk(output, "output", row))
            rows.append(row)
        outputs = pd.DataFrame(rows)
    # Zero and minus zero are one value.
    return outputs.assign(**{name: outputs[name] + 0.0 for name in _numbers(outputs)})


def _numbers(*sides: pd.DataFrame) -> list[str]:
    """Names of the numbers of outputs."""
    return [str(name) for name in dict.fromkeys(itertools.chain(*sides)) if name != _WORDS]


def _codes(names: list[str], outputs: pd.DataFrame) -> NDArray[Any]:
    """A code of what each output holds of some names."""
    return pd.util.hash_pandas_object(outputs.reindex(columns=names), index=False).to_numpy()


def _number(name: str, outputs: pd.DataFrame) -> FloatArray:
    found: FloatArray = outputs.reindex(columns=[name])[name].to_numpy(float)
    return found


def _shown(output: pd.Series) -> str:
    """One output in words."""
    found = output.drop(_WORDS).dropna()
    numbers = [f"{name} = {value:.6g}" for name, value in found.items()]
    return "; ".join([str(output[_WORDS]), *numbers]).removeprefix("; ")


def _walk(value: Any, name: str, numbers: dict[str, Any]) -> Iterator[str]:
    """Enter the numbers of a value by their places; what else it holds, in words."""
    if isinstance(value, np.bool_ | bool):
        numbers[name] = float(value)
    elif isinstance(value, Real):
        numbers[name] = as_number(value, name)
        if math.isnan(numbers[name]):
            yield f"{name} is NaN"
    elif isinstance(value, set | frozenset):
        yield f"{name} is {sorted(map(repr, value))}"
    elif isinstance(value, Mapping | pd.DataFrame | pd.Series):
        yield f"{name} has {list(value.keys())}"
        for key, part in value.items():
            yield from _walk(part, f"{name}[{key!r}]", numbers)
    elif isinstance(value, np.ndarray | list | tuple):
        yield f"{name} has {np.shape(value) if isinstance(value, np.ndarray) else len(value)}"
        parts = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        for place, part in enumerate(parts):
            yield from _walk(part, f"{name}[{place}]", numbers)
    elif value is None or type(value).__hash__ not in (None, object.__hash__):
        yield f"{name} is {value!r}"
    else:
        raise TypeError(
            f"The mechanism returned a {type(value).__name__}, which cannot be compared with "
            "another one by value. Return numbers, strings, arrays, or tuples, lists and dicts "
            "of them, or give features=, a function from the output to such a value."
        )


def released_values(item: Any) -> Any:
    """What a fitted estimator has released, as numbers, texts, arrays, and dicts and lists of them.

    All fitted attributes but the domain and the privacy loss, which are public. What a model of
    another library holds follows from the release that it was trained on.
    """
    if hasattr(item, "to_arrays"):
        return item.to_arrays()
    if isinstance(item, Mapping):
        return {key: released_values(part) for key, part in item.items()}
    if isinstance(item, list | tuple):
        return [released_values(part) for part in item]
    if isinstance(item, Real | str | np.ndarray | pd.DataFrame):
        return item
    if isinstance(item, Domain | PrivacyLoss) or not type(item).__module__.startswith("skdp."):
        return None
    held = {name: getattr(item, name) for name in getattr(item, "__slots__", vars(item))}
    fitted = hasattr(item, "fit")
    return {
        name: released_values(part)
        for name, part in held.items()
        if name.endswith("_") or not fitted
    }


# --- trials


# What a trial that raised has released: an adversary sees that, too.
_RAISED = "raised {}"


class _Trials:
    """Runs a mechanism, or fits an estimator, repeatedly."""

    def __init__(self, mechanism: Any, features: Any, vectorised: bool) -> None:
        self.what, self.features, self.vectorised = "mechanism", features, vectorised
        self.mechanism = mechanism
        if hasattr(mechanism, "fit") and not inspect.isclass(mechanism):
            if vectorised:
                raise ValueError(
                    "An estimator is fitted once per trial and cannot be used with vectorised=True."
                )
            self.what, self.features = "estimator", features or released_values
            self.mechanism = _fitting(mechanism)
        elif not callable(mechanism) or inspect.isclass(mechanism):
            raise TypeError(
                f"mechanism must be a function of the data or an estimator, got {mechanism!r}."
            )

    def draw(self, data: Any, n: int) -> pd.DataFrame:
        """Outputs of ``n`` fresh trials; a seed is refused."""
        try:
            if not self.vectorised:
                return flatten([self._outcome(data) for _ in range(n)])
            raw = self._run(data, n)
        except InsecureSeedWarning as warning:
            what = f"The {self.what} is seeded: {warning}."
            raise ValueError(_SEEDED.format(what=what)) from warning
        if not isinstance(raw, np.ndarray | list) or len(raw) != n:
            raise ValueError(
                f"A vectorised mechanism must return an array or a list of {n} outputs when asked "
                f"for {n}, one for each trial; it returned a {type(raw).__name__}."
            )
        return flatten(raw)

    def _outcome(self, data: Any) -> Any:
        """What a trial gives, or that it raised."""
        try:
            return self._run(data)
        except InsecureSeedWarning:
            raise
        except Exception as error:
            return _RAISED.format(type(error).__name__)

    def _run(self, *arguments: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", InsecureSeedWarning)
            output = self.mechanism(*arguments)
            return output if self.features is None else self.features(output)


def _refuse_copy(first: pd.DataFrame, second: pd.DataFrame) -> None:
    """Refuse two batches that are equal where chance would hardly ever make them so."""
    size = min(len(first), len(second), 1_000)
    both = pd.concat([first[:size], second[:size]])
    # Two independent outputs agree with this probability.
    agree = np.square(both[:size].value_counts(normalize=True, dropna=False)).sum()
    if both[:size].equals(both[size:]) and size * math.log(agree) < math.log(_BY_CHANCE):
        raise ValueError(_SEEDED.format(what="Two batches gave exactly the same outputs."))


def _fitting(estimator: Any) -> Callable[[Any], Any]:
    """A function of the data that fits a clone."""
    params = estimator.get_params(deep=True)
    # Trials are not releases: they must not charge the ledger of a real data set.
    unfitted = clone(estimator).set_params(
        **{name: for_trial(params[name]) for name in ledgers(estimator)}
    )

    def fitted(data: Any) -> Any:
        parts = data if isinstance(data, tuple) else (data,)
        return clone(unfitted).fit(*parts)

    return fitted


# --- events


@dataclass(frozen=True)
class Event:
    """A set of outputs: what is read of them, and how it compares with a value.

    Attributes
    ----------
    text : str
        The event in words.
    direction : str
        The side on which it is likelier, such as "dataset > neighbour".
    """

    text: str
    direction: str
    _read: Callable[[pd.DataFrame], NDArray[Any]] = field(repr=False)
    _test: str = field(repr=False)
    _value: Any = field(repr=False)

    def count(self, outputs: pd.DataFrame) -> int:
        """How many of the outputs are in it."""
        return int(np.count_nonzero(_TESTS[self._test](self._read(outputs), self._value)))

    def __str__(self) -> str:
        return self.text


_DIRECTIONS = ("dataset > neighbour", "neighbour > dataset")


def choose(here: pd.DataFrame, there: pd.DataFrame, alpha: float) -> Event:
    """The event with the largest predicted bound, from as many trials on each side."""
    n, z = len(here), float(-ndtri(alpha / 2))
    best, event = -math.inf, None
    for name, read in _readings(here, there):
        sides = [np.sort(values[values == values]) for values in (read(here), read(there))]
        cuts = _cuts(np.concatenate(sides))
        below = [np.searchsorted(side, cuts) for side in sides]
        up_to = [np.searchsorted(side, cuts, side="right") for side in sides]
        counts = {
            "==": [b - a for a, b in zip(below, up_to, strict=True)],
            "<=": up_to,
            ">=": [len(side) - a for side, a in zip(sides, below, strict=True)],
        }
        # Codes have no order.
        for test in ["=="] if cuts.dtype.kind == "u" else counts:
            for k in (0, 1):
                more, less = counts[test][k] / n, counts[test][1 - k] / n
                predicted = _predicted(more, less, n, z)
                i = int(np.argmax(predicted))
                if event is None or predicted[i] > best:
                    best = predicted[i]
                    text = f"{name} {test} {cuts[i]:.6g}"
                    if cuts.dtype.kind == "u":
                        outputs = (here, there)[k]
                        row = int(np.argmax(read(outputs) == cuts[i]))
                        text = name.format(_shown(outputs.iloc[row]))
                    event = Event(text, _DIRECTIONS[k], read, test, cuts[i])
    assert event is not None
    return event


def _readings(here: pd.DataFrame, there: pd.DataFrame) -> Iterator[tuple[str, Callable[..., Any]]]:
    """What events compare: codes of words and of whole outputs; each number, also beside words."""
    numbers = _numbers(here, there)
    yield "the output is {}", partial(_codes, [_WORDS, *numbers])
    yield "the words of the output are those of {}", partial(_codes, [_WORDS])
    found = pd.concat([here[_WORDS], there[_WORDS]]).value_counts().index
    for name in numbers:
        yield name, partial(_number, name)
        for words in found[:_FREQUENT] if len(found) > 1 else ():
            yield f"the words are {words!r} and {name}", partial(_beside, words, name)


def _beside(words: str, name: str, outputs: pd.DataFrame) -> FloatArray:
    return np.where(outputs[_WORDS] == words, _number(name, outputs), np.nan)


def _cuts(values: NDArray[Any]) -> NDArray[Any]:
    """The values to compare with: all, or the most frequent codes, or many quantiles."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _TRIED:
        return distinct if len(distinct) else np.zeros(1)
    if values.dtype.kind == "u":
        return distinct[np.argsort(-counts)[:_TRIED]]
    return np.unique(np.sort(values)[np.linspace(0, len(values) - 1, _TRIED).astype(int)])


def _predicted(more: FloatArray, less: FloatArray, n: int, z: float) -> FloatArray:
    """Log ratio of rough confidence limits of two proportions."""
    low = more - z * np.sqrt(more * (1 - more) / n) - z * z / (2 * n)
    high = less + z * np.sqrt(less * (1 - less) / n) + z * z / (2 * n)
    return np.log(np.maximum(low, 1e-300) / high)


# --- the audit


@dataclass(frozen=True)
class AuditResult:
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
        False if the bound exceeds the claim: the claim is refuted. True says only that
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
    name : str
    """

    epsilon: float
    epsilon_lower_bound: float
    confidence: float
    event: Event
    n_trials: int
    reachable: float
    counts: tuple[int, int]
    name: str = "mechanism"

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        return self.epsilon_lower_bound <= self.epsilon

    def __str__(self) -> str:
        return (
            f"{self.name}: {'not ' * self.passed}refuted. epsilon >= "
            f"{self.epsilon_lower_bound:.4g} at "
            f"{100 * self.confidence:.6g}% confidence, {self.epsilon:g} claimed "
            f"({self.n_trials:,} trials per side, at most {self.reachable:.3g} reachable).\n"
            f"  event: {self.event} ({self.event.direction})\n"
            f"  seen {self.counts[0]:,} times on the dataset and {self.counts[1]:,} times on the "
            f"neighbour in {self.n_trials - self.n_trials // 2:,} trials each"
        )


def audit(
    mechanism: Any,
    dataset: Any,
    neighbour: Any,
    epsilon: Any = None,
    n_trials: int = 100_000,
    *,
    confidence: float = 0.999,
    features: Callable[[Any], Any] | None = None,
    vectorised: bool = False,
    sensitivity: float | None = 1,
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
        Two inputs that differ in one record, which is added or removed: frames, arrays or lists of
        records. Numbers, and numeric vectors of equal length, are query answers (or scores), each
        of which moves by at most `sensitivity`.
    epsilon : number, optional
        The claim. Default: the estimator's ``epsilon``.
    n_trials : int, default=100_000
        Trials on EACH of the two inputs.
    confidence : float, default=0.999
        Probability with which the bound holds, that is, one minus the rate of false alarms.
    features : callable, optional
        Applied to every output, or to the fitted estimator. Default for an estimator: all of its
        fitted attributes.
    vectorised : bool, default=False
        The mechanism is ``mechanism(data, n)`` and returns ``n`` independent outputs at once, an
        array or list of length n (features then takes that). It must not raise.
    sensitivity : float, default=1
        By how much one record moves an answer. None: nothing is checked of the pair; vouch for it
        yourself.
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
    with probability at most ``(1 - confidence) / 2``. Event and direction are fixed by the first
    half, so that nothing is tested twice. Passing is not a proof of privacy: the pair may be
    harmless, the revealing event rare or of another kind (no event looks at the bits of a number),
    and a ratio near the claim needs many trials. `replay` computes the loss instead.

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
    claimed = getattr(mechanism, "epsilon", None) if epsilon is None else epsilon
    if claimed is None:
        raise TypeError(
            "epsilon, the privacy loss that the mechanism claims, must be given: what does the "
            "audit have to refute?"
        )
    claimed = float(as_epsilon(claimed))
    reachable = _check_sizes(n_trials, confidence, claimed)
    trials = _Trials(mechanism, features, vectorised)
    check_neighbours(dataset, neighbour, sensitivity)
    halves = [trials.draw(data, n_trials // 2) for data in (dataset, neighbour)]
    _refuse_constant(halves)
    event = choose(halves[0], halves[1], 1 - confidence)
    n = n_trials - n_trials // 2
    counts = []
    for data, before in zip((dataset, neighbour), halves, strict=True):
        outputs = trials.draw(data, n)
        _refuse_copy(before, outputs)
        counts.append(event.count(outputs))
    more, less = counts if event.direction == _DIRECTIONS[0] else counts[::-1]
    return AuditResult(
        epsilon=claimed,
        epsilon_lower_bound=max(0.0, log_ratio_bound(more, less, n, 1 - confidence)),
        confidence=confidence,
        event=event,
        n_trials=n_trials,
        reachable=reachable,
        counts=(counts[0], counts[1]),
        name=name or name_of(mechanism),
    )


def _refuse_constant(sides: list[pd.DataFrame]) -> None:
    """Refuse a mechanism without noise, and one that raises always."""
    if all(len(side.drop_duplicates()) == 1 for side in sides):
        shown = [_shown(side.iloc[0]) for side in sides]
        if all(_RAISED.format("") in text for text in shown):
            raise ValueError(f"The mechanism raised in every trial on both data sets: {shown[0]}")
        raise ValueError(
            _SEEDED.format(what="All trials gave the same output: there is no noise, or a seed.")
        )


def _check_sizes(n_trials: int, confidence: float, epsilon: float) -> float:
    """The largest bound that so many trials can give; refused where that is below the claim."""
    as_integer(n_trials, "n_trials", 16)
    as_between(
        confidence, "confidence", 0.5, 1, meaning="0.999 means one false alarm in a thousand"
    )
    reachable = reachable_epsilon(n_trials, confidence)
    if reachable <= epsilon:
        raise ValueError(
            f"n_trials={n_trials} is too small to say anything: at confidence {confidence:g} the "
            f"largest bound that {n_trials} trials per side can give, to a mechanism whose outputs "
            f"always differ, is {max(reachable, 0):.3g}, and the claim is epsilon={epsilon:g}. "
            "Far more are needed for a subtle error."
        )
    return reachable
