"""What one ``fit`` of a composed estimator reads, spends and reveals, by one rule.

Records meet estimators of skdp, and in front of them a few stateless steps, alone or put together
by scikit-learn's Pipeline, ColumnTransformer and FeatureUnion. Behind a release stand estimators
of installed libraries whose parameters are plain values. Everything else is not known to be
private. Nothing is fitted, and no row is read.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from ._random import NoiseSource, is_installed
from ._validation import as_epsilon
from .accounting import PrivacyLedger, neighbours
from .algorithms.cuboids import consistency_bound
from .algorithms.dpcube import sufficient_epsilon, usefulness
from .base import PrivateEstimator
from .domain import Attribute, Domain
from .release import Synopsis
from .tables import PublicTable, as_numbers, as_texts

__all__ = [
    "PrivacyReport",
    "assert_private",
    "consistency_bound",
    "privacy_report",
    "sufficient_epsilon",
    "usefulness",
]

# --- who wrote an object


def library(thing: object) -> str:
    """The top-level package that defines an object's class, or "" where that cannot be verified.

    A class can name any module as its own. It counts as a library's only where that module holds
    it under its name. A subclass belongs to whoever wrote it; a class with a borrowed name belongs
    to no library.
    """
    kind = type(thing)
    return kind.__module__.partition(".")[0] if is_held(kind) else ""


def is_held(thing: object) -> bool:
    """Whether a class is found in its module under its own name."""
    found: object = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in getattr(thing, "__qualname__", "?").split("."):
        found = getattr(found, part, None)
    return found is thing


def replaced(thing: object) -> str:
    """The first method or property of the class that the instance overrides, or ""."""
    classes = [vars(kind) for kind in type(thing).__mro__]
    for name in getattr(thing, "__dict__", {}):
        held = next((names[name] for names in classes if name in names), None)
        # A cached property keeps its own value there.
        if hasattr(held, "__get__") and not isinstance(held, functools.cached_property):
            return name
    return ""


# --- what is reported about a step

PRIVATE, PUBLIC, RELEASE = "private", "public", "post-processing"
LEAKS, UNKNOWN = "leaks", "unknown"


@dataclass(frozen=True)
class Step:
    """One step of a composed estimator.

    Attributes
    ----------
    name : str
        Path of the step, such as ``"classify__synthesizer"``; empty for the whole.
    estimator : object
        The step itself.
    verdict : str
        "private", "public" (learns nothing from the rows), "post-processing" (of a release),
        "leaks" (a seed draws its noise, its only flaw) or "unknown".
    why, remedy : str
        In words; the remedy is empty where none is needed.
    epsilon : Fraction or None
        What the step spends in one fit of the whole; None if it is not known.
    reads : str
        "raw rows and labels", "a release" or "nothing".
    payer : PrivacyLedger or None
        Ledger of a search around it, which is charged for all of its steps.
    """

    name: str
    estimator: Any
    verdict: str
    why: str
    remedy: str = ""
    epsilon: Fraction | None = Fraction(0)
    reads: str = "raw rows and labels"
    payer: Any = None

    @property
    def kind(self) -> str:
        """Class of the step."""
        return type(self.estimator).__name__

    @property
    def sound(self) -> bool:
        """Whether the step keeps the guarantee."""
        return self.verdict in (PRIVATE, PUBLIC, RELEASE)


def child(name: str, part: str) -> str:
    """Path of a part, as in ``set_params``."""
    return f"{name}__{part}" if name else part


def price(steps: Sequence[Step]) -> Fraction | None:
    """What all steps spend; None if that of one of them is not known."""
    known = [step.epsilon for step in steps if step.epsilon is not None]
    return sum(known, Fraction(0)) if len(known) == len(steps) else None


def ledgers(estimator: Any) -> list[str]:
    """Names of the parameters that are ledgers, which a fit of ``estimator`` charges."""
    params = estimator.get_params(deep=True)
    return [name for name, value in params.items() if isinstance(value, PrivacyLedger)]


# --- the short list of stateless steps

# Kinds of columns: as they came; or of types that no value decides, numbers, Python's text, both.
_RAW, _NUMBERS, _TEXTS, _MIXED = "raw", "numbers", "texts", "mixed"


def _is_word(value: Any, *words: str) -> bool:
    """Whether this is one of some texts, by its exact type: a subclass may equal anything."""
    return type(value) is str and value in words


def _is_number(value: Any) -> bool:
    """Whether this is a number, by its exact type: NumPy asks subclasses what to do."""
    return type(value) in (int, float, np.int64, np.float64) and bool(-1e300 <= value <= 1e300)


def _columns_after(step: Any, given: str) -> str | None:
    """The kind of the columns behind a stateless step; None for whatever is not on the list."""
    # Privacy. Before a charge, a step may neither learn, nor let one record change several rows,
    # nor raise or warn on a value: an error would tell that value for free. `as_numbers` and
    # `as_texts` read each cell of any table by itself and never raise. The others work on numbers,
    # cell by cell, and are silent on all of them under the options asked for here; classes and
    # functions are compared by identity, and values by exact types.
    if type(step) is not FunctionTransformer:
        return None
    others = (step.inverse_func, step.inv_kw_args, step.accept_sparse, step.validate)
    names, options = step.feature_names_out, {} if step.kw_args is None else step.kw_args
    plain = type(options) is dict and all(
        type(name) is str and _is_number(value) for name, value in options.items()
    )
    named = names is None or _is_word(names, "one-to-one")
    if not (plain and named and all(each is None or each is False for each in others)):
        return None
    if not options and (step.func is as_numbers or step.func is as_texts):
        return _NUMBERS if step.func is as_numbers else _TEXTS
    known = step.func is np.nan_to_num and set(options) <= {"nan"}
    if step.func is np.clip and set(options) == {"a_min", "a_max"}:
        known = options["a_min"] <= options["a_max"]
    return _NUMBERS if known and given == _NUMBERS else None


_STATELESS = (
    "Put it behind the release, inside PrivateClassifier or PrivateRegressor, or learn privately, "
    "as PrivateStandardScaler does. In front of a release may stand: FunctionTransformer with "
    "as_numbers or as_texts of skdp.preprocessing, and behind numbers one with np.clip and two "
    "numbers, or with np.nan_to_num; frozen, a fitted release of skdp."
)

# --- what parameters may carry of rows that were read elsewhere, or do with those of the fit

_PLAIN = {type(None), bool, complex, float, int, str, bytes, range, pd.Timestamp}
_PLAIN |= {*np.sctypeDict.values()} - {np.object_, np.void}
_PLAIN_MODULES = {"datetime", "decimal", "fractions"}
# Functions and types that may be given by name.
_NAMED = (as_numbers, as_texts, np.clip, np.exp, np.log, np.log1p, np.nan_to_num, np.sqrt, *_PLAIN)
_LISTS = (list, tuple, set, frozenset, dict, np.ndarray)
# Of a parameter: values in its lists together, and bytes of one. More could be a table.
_MOST, _LARGEST = 100, 10_000
_PARAMETERS = (
    "Plain values, lists of up to 100 of them, and unfitted estimators of installed libraries, "
    "without warm_start= and prefit; for declarations, plain values and classes of skdp; for "
    "prior=, a PublicTable or a release without a seed."
)


def _flat(value: Any) -> list[Any]:
    """A value and, if it is a list, what is in it and in the lists within it."""
    held: Any = value if type(value) in _LISTS else ()
    if type(value) is dict:
        held = [*value, *value.values()]
    elif type(value) is np.ndarray:
        held = value.ravel().tolist()
    return [value, *chain.from_iterable(map(_flat, held))]


def _inside(thing: Any, declared: bool) -> Iterable[Any] | None:
    """What an object was made of; None if it may hold or do more than that."""
    top = library(thing)
    if replaced(thing):
        return None
    if declared and top == "skdp":
        return vars(thing).values() if isinstance(thing, Attribute | Domain) else ()
    if declared or top in ("", "skdp") or isinstance(thing, type | FrozenEstimator):
        return None
    if type(thing) is make_column_selector or (top == "sklearn" and hasattr(thing, "get_n_splits")):
        return vars(thing).values()
    if not is_installed(type(thing).__module__) or not hasattr(thing, "get_params"):
        return None
    # A fit makes an estimator anew from its parameters, but for these.
    params = thing.get_params(deep=False)
    learned = any(params.get(name, False) is not False for name in ("prefit", "warm_start"))
    return None if learned or _is_word(params.get("cv"), "prefit") else params.values()


def _strange(values: Iterable[Any], *, declared: bool = False) -> str:
    """The first thing in parameters that may hold rows or run a user's code, in words; or "".

    Plain values, short lists of them and unfitted estimators of installed libraries do neither.
    Declarations hold no rows, but their code is given true values: lists of them may be long, and
    hold declarations of skdp in place of estimators.
    """
    for value in values:
        things = _flat(value)
        is_table = any(type(one) is np.ndarray and one.ndim != 1 for one in things)
        if not declared and (is_table or len(things) > _MOST):
            return "a table, or a long list"
        for one in things:
            kind = type(one)
            if kind in _PLAIN or library(one) in _PLAIN_MODULES or any(one is n for n in _NAMED):
                if not declared and sys.getsizeof(one) > _LARGEST:
                    return f"a long {kind.__name__}"
            elif kind not in _LISTS:
                inside = _inside(one, declared)
                if inside is None:
                    name = getattr(one, "__name__", kind.__name__)
                    return f"a {name}, which may hold or do anything"
                strange = _strange(inside, declared=declared)
                if strange:
                    return strange
    return ""


# --- verdicts on single estimators


def _unknown(estimator: Any, name: str, why: str, remedy: str, **more: Any) -> Step:
    """The step of something that may do anything, and hold private estimators."""
    return Step(name, estimator, UNKNOWN, why, remedy, epsilon=None, **more)


def trained(estimator: Any, name: str) -> Step:
    """The step of what a fit trains on a release, and on nothing else."""
    strange = _strange([estimator])
    if strange:
        why = f"reads a release, but may carry {strange}."
        return _unknown(estimator, name, why, _PARAMETERS, reads="a release")
    return Step(name, estimator, RELEASE, "learns from a release, for free.", reads="a release")


def paid(estimator: Any, name: str, why: str) -> Step:
    """The step of what charges its epsilon and adds noise, if no seed draws that."""
    epsilon, given = as_epsilon(estimator.epsilon), estimator.random_state
    loss = getattr(estimator, "privacy_loss_", None)
    # Any source but the system's: a source that a user wrote may repeat its words.
    if (given is None or type(given) is NoiseSource) and not (loss is not None and loss.seeded):
        return Step(name, estimator, PRIVATE, why, epsilon=epsilon)
    why = "draws its noise from a seed: anyone who knows or guesses it can subtract the noise."
    remedy = "random_state=None, the operating system's entropy."
    return Step(name, estimator, LEAKS, why, remedy, epsilon=epsilon)


def _of_ours(estimator: Any, name: str) -> list[Step]:
    """The steps of an estimator of skdp."""
    params = estimator.get_params(deep=False)
    # A ledger reads no rows. What is trained, and how it is searched, is looked at elsewhere.
    others = ("estimator", "ledger", "param_grid", "prior", "random_state", "synthesizer")
    own = [value for key, value in params.items() if key not in others]
    strange, prior = _strange(own, declared=True), params.get("prior")
    if isinstance(estimator, PrivateEstimator):
        steps = [paid(estimator, name, "releases what it learns with noise.")]
        # SampleAggregate fits it to blocks: noise hides what one block changes, nothing else.
        strange = strange or _strange([params.get("estimator")])
    else:
        steps = estimator._privacy_steps(name)
    made = type(prior) is Synopsis and prior.privacy_loss is not None and not prior.seeded
    if not (made or prior is None or type(prior) is PublicTable):
        strange = "rows, or a release without a guarantee, in prior="
    grid, lists = params.get("param_grid", {}), (list, tuple, range, np.ndarray)
    for each in grid if type(grid) in (list, tuple) else [grid]:
        if type(each) is not dict or not all(type(values) in lists for values in each.values()):
            strange = "candidates that may be others when they are listed again"
    why = f"has among its parameters {strange}."
    return [*steps, _unknown(estimator, name, why, _PARAMETERS)] if strange else steps


# --- the walk over the steps, in the order in which a fit runs them

# Parameters that hold the steps.
_PARTS = {Pipeline: "steps", ColumnTransformer: "transformers", FeatureUnion: "transformer_list"}


def walk(estimator: Any, name: str = "") -> list[Step]:
    """All steps of an estimator that is given records, in the order in which a ``fit`` runs them.

    Parameters
    ----------
    estimator : estimator
        Before or after its fit.
    name : str, default=""
        Path of ``estimator`` itself.
    """
    return _visit(estimator, name, _RAW)[0]


def _visit(estimator: Any, name: str, columns: str) -> tuple[list[Step], str]:
    """All steps of ``estimator``, and the kind of the columns behind it."""
    if estimator is None or _is_word(estimator, "passthrough", "drop"):
        why = "hands on the columns or drops them."
        return [Step(name, estimator, PUBLIC, why, reads="nothing")], columns
    if replaced(estimator):
        why = f"has a {replaced(estimator)} of its own, on the instance."
        return [_unknown(estimator, name, why, "Leave its methods as they are.")], _RAW
    private = isinstance(estimator, PrivateEstimator)
    if library(estimator) == "skdp" and (private or hasattr(estimator, "_privacy_steps")):
        # A selector hands on columns as they came; what others compute is numbers.
        computed = private and not hasattr(estimator, "get_support")
        return _of_ours(estimator, name), _NUMBERS if computed else _RAW
    if type(estimator) in _PARTS:
        return _composite(estimator, name, columns)
    if type(estimator) is FrozenEstimator and len(vars(estimator)) == 1:
        fitted = estimator.estimator
        made = isinstance(fitted, PrivateEstimator) and "privacy_loss_" in vars(fitted)
        if made and all(step.sound for step in walk(fitted)):
            why = "is not fitted again: it was paid for."
            return [Step(name, fitted, PRIVATE, why, reads="nothing")], _RAW
    after = _columns_after(estimator, columns)
    if after is None:
        why = "reads true rows, and is not known to be private."
        return [_unknown(estimator, name, why, _STATELESS)], _RAW
    why = "transforms each row independently and learns nothing from them."
    return [Step(name, estimator, PUBLIC, why, reads="nothing")], after


def _composite(estimator: Any, name: str, columns: str) -> tuple[list[Step], str]:
    """Steps one after the other, or side by side."""
    own = estimator.get_params(deep=False)
    parts, rest = own.pop(_PARTS[type(estimator)]), own.pop("remainder", "drop")
    lists = (list, tuple)
    plain = type(parts) in lists and all(type(each) in lists and len(each) > 1 for each in parts)
    chosen = [each[2:] for each in parts] if plain else []
    kept = [own.get("memory"), own.get("transformer_weights")]
    others = _strange([*own.values(), *chosen], declared=True)
    if not plain or others or any(each is not None for each in kept):
        why = "has memory=, transformer_weights=, a function that chooses columns, or odd lists."
        return [_unknown(estimator, name, why, "Plain lists and names instead.")], _RAW
    steps: list[Step] = []
    if type(estimator) is Pipeline:
        for part, inner in parts:
            more, columns = _visit(inner, child(name, part), columns)
            steps += more
        return steps, columns
    # All parts read the same people, whichever columns: what they spend adds up.
    kinds = set()
    for part, inner, *_ in [*parts, ("remainder", rest)]:
        if not _is_word(inner, "drop"):
            more, kind = _visit(inner, child(name, part), columns)
            steps += more
            kinds.add(kind)
    if kinds and _RAW not in kinds:
        return steps, kinds.pop() if len(kinds) == 1 else _MIXED
    # Privacy. Joined, columns get a common type: one text turns all numbers into objects, and one
    # missing integer turns others into floats, which are not exact.
    why = "joins columns that are as they came, so that one value may decide the type of all."
    return [*steps, _unknown(estimator, name, why, _STATELESS)], _RAW


# --- the report


def _as_number(epsilon: Fraction | None) -> str:
    """Epsilon as text."""
    return "unknown" if epsilon is None else f"{float(epsilon):.6g}"


def _contributions(estimator: Any) -> int:
    """Bound on the rows of a person that an estimator protects; 0 if it protects records."""
    released = getattr(getattr(estimator, "privacy_loss_", None), "max_rows_per_id", None)
    return getattr(estimator, "max_rows_per_id", released) or released or 0


class PrivacyReport:
    """A table of the steps with verdicts, and the privacy cost of a fit.

    Attributes
    ----------
    steps : list of Step
        In the order in which a ``fit`` runs them, each with ``name``, ``kind``, ``reads``,
        ``verdict``, ``why``, ``remedy`` and ``epsilon`` (Fraction or None where it is not known).
    private : bool
        Whether at least one step is private and no other step breaks the guarantee.
    reasons : list of str
        Why it is not private; empty if ``private``.
    epsilon : Fraction or None
        Epsilon of one ``fit`` of the whole estimator; None if the cost of a step is not known.
    notes : list of str
        Further remarks.
    """

    def __init__(self, name: str, steps: list[Step]) -> None:
        self.name = name
        self.steps = steps
        self.epsilon = price(steps)
        self.reasons = [
            f"{step.name or step.kind} ({step.kind}) {step.why} Remedy: {step.remedy}"
            for step in steps
            if not step.sound
        ]
        private = [step for step in steps if step.verdict == PRIVATE]
        if not private and not self.reasons:
            self.reasons = ["No step is private: nothing that is learned here is protected."]
        self.private = not self.reasons
        units = sorted({_contributions(step.estimator) for step in private})
        self.notes = [f"Neighbours: {neighbours(most or None)}." for most in units]
        if len(units) > 1:
            self.notes.append("Some steps protect other neighbours than others: the sum neither.")
        if any(step.payer is None is getattr(step.estimator, "ledger", 0) for step in private):
            self.notes.append("A private step has no ledger: what it spends is not recorded.")

    def to_frame(self) -> pd.DataFrame:
        """All steps.

        Returns
        -------
        DataFrame
            Columns ``step``, ``kind``, ``reads``, ``verdict``, ``epsilon`` (NaN where it is not
            known), ``why``, ``remedy``.
        """
        names = ("name", "kind", "reads", "verdict", "epsilon", "why", "remedy")
        rows = [[getattr(step, name) for name in names] for step in self.steps]
        return pd.DataFrame(rows, columns=["step", *names[1:]]).astype({"epsilon": float})

    def __repr__(self) -> str:
        verdict = "private" if self.private else "NOT private"
        lines = [f"{self.name} is {verdict}; one fit spends epsilon = {_as_number(self.epsilon)}"]
        for step in self.steps:
            spends = "" if step.epsilon == 0 else f", epsilon {_as_number(step.epsilon)}"
            lines.append(
                f"  [{step.verdict}] {step.name or '(the whole)'}: {step.kind} reads {step.reads}"
                f"{spends}. It {step.why}" + (f" Remedy: {step.remedy}" if step.remedy else "")
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def privacy_report(estimator: Any) -> PrivacyReport:
    """List the steps of a composed estimator: what each reads, spends and reveals.

    Records may meet estimators of skdp, and in front of them a few stateless steps; what is trained
    on a release, estimators of known libraries with plain parameters. Pipelines, column
    transformers and feature unions are examined step by step. Whatever else there is gets the
    verdict "unknown", never "private".

    Parameters
    ----------
    estimator : estimator
        Before or after its fit. Nothing is fitted and no row is read.

    Returns
    -------
    PrivacyReport
        Prints as text, in notebooks as a table; ``to_frame()`` gives a DataFrame.

    Raises
    ------
    TypeError
        If ``estimator`` is a class, or not an estimator.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import HDPViewSynthesizer, Numeric, PrivateClassifier
    >>> from skdp.inspection import privacy_report
    >>> release = HDPViewSynthesizer(epsilon=0.5, domain=Numeric(0, 1))
    >>> model = PrivateClassifier(LogisticRegression(), release, classes=[0, 1])
    >>> report = privacy_report(model)
    >>> report.private, float(report.epsilon)
    (True, 0.5)
    >>> privacy_report(make_pipeline(StandardScaler(), model)).private
    False
    """
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        given = getattr(estimator, "__name__", type(estimator).__name__)
        raise TypeError(f"privacy_report needs an instance of a class with a fit, got {given}.")
    return PrivacyReport(type(estimator).__name__, walk(estimator))


def assert_private(estimator: Any) -> None:
    """Raise unless every step of ``estimator`` keeps the guarantee.

    Parameters
    ----------
    estimator : estimator

    Raises
    ------
    AssertionError
        With the reasons: a step that leaks or is not known, a seed.

    Examples
    --------
    >>> from skdp import HDPViewSynthesizer, Numeric
    >>> from skdp.inspection import assert_private
    >>> assert_private(HDPViewSynthesizer(epsilon=0.5, domain=Numeric(0, 1)))
    """
    report = privacy_report(estimator)
    if not report.private:
        reasons = "\n".join(f"- {reason}" for reason in report.reasons)
        raise AssertionError(f"{report.name} is not private:\n{reasons}")
