"""Lower bounds of epsilon by experiment: many runs on two neighbours, and one event counted.

One half of the runs chooses the event, the other half counts it, so that the bound holds however
the event was chosen. Events are plain: a number is at most, at least or equal to a value, several
numbers are beyond their medians together, the text is a certain one, or the whole output is.
"""

from __future__ import annotations

import inspect
import math
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
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

from .._validation import FloatArray, as_epsilon
from ..accounting import PrivacyLoss
from ..domain import Domain
from ..exceptions import InsecureSeedWarning
from ..inspection import ledgers
from ._neighbours import check_neighbours
from ._replay import Result, name_of

_SEEDED = (
    "{what} With a seed every trial would be the same, and an audit of one repeated trial says "
    "nothing. Let the mechanism draw from the operating system's entropy (random_state=None), "
    "or from one generator that goes on between the trials."
)
# Values of one number, and texts, that are tried.
_TRIED = 1_000
# Texts beside which each number is tried too.
_TEXTS = 5
# Outputs of one call.
_BATCH = 100_000
# Standard errors between the means of a number on the two sides from which on it joins others.
_TELLING = 4.0
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


# --- outputs as numbers with names, and a text for the rest


@dataclass(frozen=True)
class Outputs:
    """Outputs of many trials: their numbers by name, NaN where there is none, and their texts."""

    numbers: dict[str, FloatArray]
    texts: NDArray[Any]

    def number(self, name: str) -> FloatArray:
        """One number of each output."""
        return self.numbers.get(name, np.full(len(self.texts), np.nan))

    def text_codes(self) -> NDArray[np.uint64]:
        """A code of the text of each output."""
        return pd.util.hash_array(self.texts)

    def codes(self) -> NDArray[np.uint64]:
        """A code of each output as a whole."""
        codes = self.text_codes()
        for name, values in self.numbers.items():
            # Zero and minus zero are one value; a number that is missing adds nothing.
            factor = np.uint64(2 * zlib.crc32(name.encode()) + 1)
            hashed = pd.util.hash_array(values + 0.0) * factor
            codes = codes + np.where(np.isnan(values), np.uint64(0), hashed)
        return codes

    def shown(self, row: int) -> str:
        """One output in words."""
        found = {name: values[row] for name, values in self.numbers.items()}
        words = [f"{name} = {value:.6g}" for name, value in found.items() if value == value]
        return "; ".join([str(self.texts[row]), *words]).removeprefix("; ")


def _joined(parts: Sequence[Outputs]) -> Outputs:
    names = dict.fromkeys(name for part in parts for name in part.numbers)
    numbers = {name: np.concatenate([part.number(name) for part in parts]) for name in names}
    return Outputs(numbers, np.concatenate([part.texts for part in parts]))


def flatten(raw: Any) -> Outputs:
    """Split outputs into numbers and texts.

    Raises
    ------
    TypeError
        If an output is neither a number, a text, an array, nor built from these.
    """
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf":
        table = raw.reshape(len(raw), -1).astype(float)
        width = table.shape[1]
        names = [f"output[{j}]" for j in range(width)] if raw.ndim > 1 else ["output"]
        patterns, places = np.unique(np.isnan(table), axis=0, return_inverse=True)
        which = [np.array(names)[row].tolist() for row in patterns]
        labels = np.array(
            [f"{', '.join(each)} NaN" if each else "" for each in which], dtype=object
        )
        return Outputs(dict(zip(names, table.T, strict=True)), labels[places.ravel()])
    rows: list[dict[str, float]] = []
    words: list[str] = []
    for output in raw:
        numbers: dict[str, float] = {}
        words.append("; ".join(_walk(output, "output", numbers)))
        rows.append(numbers)
    frame = pd.DataFrame(rows, index=range(len(rows)), dtype=float)
    columns = {str(name): frame[name].to_numpy() for name in frame}
    return Outputs(columns, np.array(words, dtype=object))


def _walk(value: Any, name: str, numbers: dict[str, float]) -> Iterator[str]:
    """Enter the numbers of a value by their places; what else it holds, in words."""
    if isinstance(value, Real | np.bool_):
        try:
            numbers[name] = float(value)
        except OverflowError:
            large: Any = value
            numbers[name] = math.inf if large > 0 else -math.inf
        if math.isnan(numbers[name]):
            yield f"{name} is NaN"
    elif isinstance(value, str | bytes) or value is None:
        yield f"{name} is {value!r}"
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
    elif isinstance(value, Raised) or type(value).__hash__ not in (None, object.__hash__):
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


@dataclass(frozen=True)
class Raised:
    """The outcome of a trial that raised: an adversary sees that, too."""

    kind: str
    message: str = field(compare=False, repr=False)


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

    def draw(self, data: Any, n: int) -> Outputs:
        """Outputs of ``n`` fresh trials."""
        if not self.vectorised:
            return flatten([self._outcome(data) for _ in range(n)])
        sizes = [min(_BATCH, n - done) for done in range(0, n, _BATCH)]
        batches = [self._at_once(data, size) for size in sizes]
        for other in batches[1:]:
            self.refuse_copy(batches[0], other)
        return _joined(batches)

    def refuse_copy(self, first: Outputs, second: Outputs) -> None:
        """Refuse two batches that are equal where chance would hardly ever make them so."""
        size = min(len(first.texts), len(second.texts), 1_000)
        here, there = (each.codes()[:size] for each in (first, second))
        # Two independent outputs agree with this probability.
        agree = np.square(np.unique(here, return_counts=True)[1] / size).sum()
        if np.array_equal(here, there) and size * math.log(agree) < math.log(_BY_CHANCE):
            raise ValueError(_SEEDED.format(what="Two batches gave exactly the same outputs."))

    def _at_once(self, data: Any, n: int) -> Outputs:
        raw = self._outcome(data, n)
        if isinstance(raw, Raised):
            # An error takes the other trials of its call with it.
            singles = [self._at_once(data, 1) for _ in range(n)] if n > 1 else [flatten([raw])]
            return _joined(singles)
        if not isinstance(raw, np.ndarray | list) or len(raw) != n:
            raise ValueError(
                f"A vectorised mechanism must return an array or a list of {n} outputs when asked "
                f"for {n}, one for each trial; it returned a {type(raw).__name__}."
            )
        return flatten(raw)

    def _outcome(self, *arguments: Any) -> Any:
        """What a trial gives, or that it raised; a seed is refused."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", InsecureSeedWarning)
            try:
                output = self.mechanism(*arguments)
                return output if self.features is None else self.features(output)
            except InsecureSeedWarning as warning:
                what = f"The {self.what} is seeded: {warning}."
                raise ValueError(_SEEDED.format(what=what)) from warning
            except Exception as error:
                return Raised(type(error).__name__, str(error)[:200])


def _fitting(estimator: Any) -> Callable[[Any], Any]:
    """A function of the data that fits a clone."""
    params = estimator.get_params(deep=True)
    # A nested seed may belong to post-processing; a nested seed of noise warns in the fit.
    if params.get("random_state") is not None:
        raise ValueError(
            _SEEDED.format(what=f"The estimator has random_state={params['random_state']!r}.")
        )
    # Trials are not releases: they must not charge the ledger of a real data set.
    unfitted = clone(estimator).set_params(**dict.fromkeys(ledgers(estimator)))

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
    _read: Callable[[Outputs], NDArray[Any]] = field(repr=False)
    _test: str = field(repr=False)
    _value: Any = field(repr=False)

    def count(self, outputs: Outputs) -> int:
        """How many of the outputs are in it."""
        return int(np.count_nonzero(_TESTS[self._test](self._read(outputs), self._value)))

    def __str__(self) -> str:
        return self.text


_DIRECTIONS = ("dataset > neighbour", "neighbour > dataset")


def choose(here: Outputs, there: Outputs, alpha: float) -> Event:
    """The event with the largest predicted bound, from as many trials on each side."""
    n, z = len(here.texts), float(-ndtri(alpha / 2))
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
                        text = name.format(outputs.shown(row))
                    event = Event(text, _DIRECTIONS[k], read, test, cuts[i])
    assert event is not None
    return event


def _readings(here: Outputs, there: Outputs) -> Iterator[tuple[str, Callable[..., Any]]]:
    """What events compare: codes of texts and of whole outputs, each number, several at once."""
    yield "the output is {}", Outputs.codes
    yield "the text of the output is that of {}", Outputs.text_codes
    texts = pd.Series(np.concatenate([here.texts, there.texts])).value_counts().index
    frequent = list(texts[:_TEXTS]) if len(texts) > 1 else []
    telling: dict[str, tuple[float, float]] = {}
    for name in {**here.numbers, **there.numbers}:
        yield name, partial(Outputs.number, name=name)
        for text in frequent:
            yield f"the text is {text!r} and {name}", partial(_beside, text, name)
        sides = [outputs.number(name) for outputs in (here, there)]
        sides = [values[np.isfinite(values)] for values in sides]
        if min(map(len, sides)) < 2:
            continue
        with np.errstate(all="ignore"):
            apart = sides[0].mean() - sides[1].mean()
            spread = math.sqrt(sum(values.var() / len(values) for values in sides))
        if math.isfinite(spread) and abs(apart) > _TELLING * spread > 0:
            scale = math.copysign(spread, apart)
            telling[name] = float(np.median(np.concatenate(sides))), scale
    if len(telling) > 1:
        # What moves several numbers shows most where all of them are far out together.
        yield f"the least of {list(telling)}, scaled,", partial(_together, telling, np.min)
        yield f"the largest of {list(telling)}, scaled,", partial(_together, telling, np.max)


def _beside(text: str, name: str, outputs: Outputs) -> FloatArray:
    return np.where(outputs.texts == text, outputs.number(name), np.nan)


def _together(telling: dict[str, tuple[float, float]], least: Any, outputs: Outputs) -> FloatArray:
    rows = [(outputs.number(name) - middle) / scale for name, (middle, scale) in telling.items()]
    return np.asarray(least(rows, axis=0))


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
    name: str = "mechanism"

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        return self.epsilon_lower_bound <= self.epsilon

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.verdict}. epsilon >= {self.epsilon_lower_bound:.4g} at "
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
    relation: Any = "auto",
    sensitivity: float = 1,
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
        Two inputs that differ in one record; see `relation`.
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
        array or list of length n (features then takes that).
    relation : {"auto", "records", "answers"} or None, default="auto"
        What makes the inputs neighbours. "records": they are frames, arrays or lists of records and
        one record is added or removed. "answers": they are numbers or vectors of query answers (or
        scores), each of which moves by at most `sensitivity`. None skips the check: vouch for the
        pair yourself. "auto" means answers for numbers and for numeric vectors of equal length,
        else records.
    sensitivity : float, default=1
        See `relation`.
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
    check_neighbours(dataset, neighbour, relation, sensitivity)
    halves = [trials.draw(data, n_trials // 2) for data in (dataset, neighbour)]
    _refuse_constant(halves)
    event = choose(halves[0], halves[1], 1 - confidence)
    n = n_trials - n_trials // 2
    counts = []
    for data, before in zip((dataset, neighbour), halves, strict=True):
        outputs = trials.draw(data, n)
        trials.refuse_copy(before, outputs)
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


def _refuse_constant(sides: Sequence[Outputs]) -> None:
    """Refuse a mechanism without noise, and one that raises always."""
    if all(np.ptp(side.codes()) == 0 for side in sides):
        shown = [side.shown(0) for side in sides]
        if all(text.startswith("output is Raised") for text in shown):
            raise ValueError(f"The mechanism raised in every trial on both data sets: {shown[0]}")
        raise ValueError(
            _SEEDED.format(what="All trials gave the same output: there is no noise, or a seed.")
        )


def _check_sizes(n_trials: int, confidence: float, epsilon: float) -> float:
    """The largest bound that so many trials can give; refused where that is below the claim."""
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
            f"always differ, is {max(reachable, 0):.3g}, and the claim is epsilon={epsilon:g}. "
            "Far more are needed for a subtle error."
        )
    return reachable
