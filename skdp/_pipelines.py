"""What one ``fit`` of a composed estimator reads, spends and reveals, by one rule.

Records meet estimators of skdp, and in front of them a few stateless steps, alone or put together
by scikit-learn's Pipeline, ColumnTransformer and FeatureUnion. Behind a release stand estimators
of installed libraries whose parameters are plain values. Everything else is not known to be
private. Nothing is fitted, and no row is read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from ._foreign import is_installed, library, replaced
from ._random import NoiseSource
from ._validation import as_epsilon
from .accounting import PrivacyLedger
from .base import PrivateEstimator
from .domain import Attribute, Categorical, Domain, PublicTable
from .release import Synopsis
from .tables import as_numbers, as_texts

# --- what is reported about a step, and what a step is given

PRIVATE, PUBLIC, RELEASE = "private", "public", "post-processing"
LEAKS, UNKNOWN = "leaks", "unknown"
# Kinds of columns that earlier steps have ensured: "" where the columns are as they came; float64;
# Python's text; types that no value decides.
_NUMBERS, _TEXTS, _FIXED = "numbers", "texts", "fixed"


@dataclass(frozen=True)
class Rows:
    """What a step is given.

    Attributes
    ----------
    released : bool
        Whether the rows are synthetic rows of a release instead of people's.
    columns : str
        Their kind.
    longest : int
        Of lists that could describe columns or categories of a release: a longer one is a table.
    """

    released: bool = False
    columns: str = ""
    longest: int = 32


@dataclass(frozen=True)
class Step:
    """One step of a composed estimator.

    Attributes
    ----------
    name : str
        Path of the step, such as ``"classify__synthesizer"``; empty for the whole.
    kind : str
        Its class.
    reads : str
        "raw rows and labels", "a release" or "nothing".
    verdict : str
        "private", "public" (learns nothing from the rows), "post-processing" (of a release),
        "leaks" or "unknown".
    why, remedy : str
        In words; the remedy is empty where none is needed.
    epsilon : Fraction or None
        What the step spends in one fit of the whole; None if it is not known.
    estimator : object
        The step itself.
    seeded : bool
        Whether its only flaw is a seed that draws noise.
    """

    name: str
    kind: str
    reads: str
    verdict: str
    why: str
    remedy: str = ""
    epsilon: Fraction | None = Fraction(0)
    estimator: Any = None
    seeded: bool = False

    @property
    def sound(self) -> bool:
        """Whether the step keeps the guarantee."""
        return self.verdict in (PRIVATE, PUBLIC, RELEASE)

    def judged(self, verdict: str, why: str, remedy: str = "", **more: Any) -> Step:
        """The step with another verdict."""
        return replace(self, verdict=verdict, why=why, remedy=remedy, **more)

    def seeded_by(self) -> Step:
        """The step, if a seed draws its noise."""
        why = "its noise comes from a seed: anyone who knows or guesses it can subtract the noise."
        remedy = "random_state=None, the operating system's entropy."
        return self.judged(LEAKS, why, remedy, seeded=True)


# The steps of an estimator, and what the next step is given.
_Result = tuple[list[Step], Rows]


def step_of(estimator: Any, name: str, rows: Rows, verdict: str, why: str = "") -> Step:
    """A step that is fitted to everything in ``rows``."""
    reads = "a release" if rows.released else "raw rows and labels"
    return Step(name, type(estimator).__name__, reads, verdict, why)


def child(name: str, part: str) -> str:
    """Path of a part, as in ``set_params``."""
    return f"{name}__{part}" if name else part


def total_price(prices: Iterable[Fraction | None]) -> Fraction | None:
    """The sum of prices; None if one of them is not known."""
    total = Fraction(0)
    for each in prices:
        if each is None:
            return None
        total += each
    return total


def ledgers(estimator: Any) -> dict[str, PrivacyLedger]:
    """The ledgers that a fit of ``estimator`` charges, by the names of their parameters."""
    params = estimator.get_params(deep=True)
    return {key: value for key, value in params.items() if isinstance(value, PrivacyLedger)}


def price(estimator: Any) -> Fraction | None:
    """What one fit of ``estimator`` spends; None if it is not known beforehand."""
    return total_price(step.epsilon for step in walk(estimator))


def released_by(estimator: Any, classes: Any = None) -> Rows:
    """What a step is given that reads the synthetic rows of an estimator, and declared labels."""
    release = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    declared = getattr(release, "domain_", getattr(release, "domain", None))
    declared = declared.attributes if isinstance(declared, Domain) else declared
    several = declared.values() if isinstance(declared, Mapping) else declared
    attributes = [*several] if isinstance(several, Iterable) else [several]
    sizes = [each.n_values for each in [*attributes, classes] if isinstance(each, Categorical)]
    sizes += [len(classes)] if isinstance(classes, Sized) else []
    return Rows(released=True, longest=max([Rows().longest, len(attributes), *sizes]))


# --- the short list of stateless steps


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
    # `as_texts` read each cell of any table by itself and never raise. The others work on what
    # these make, cell by cell, and are silent on every float64, or every text, under the parameters
    # asked for here; classes and functions are compared by identity, and values by exact types.
    if type(step) is FunctionTransformer:
        options = {} if step.kw_args is None else step.kw_args
        others = (step.inverse_func, step.inv_kw_args, step.accept_sparse, step.validate)
        if not all(each is None or each is False for each in others) or type(options) is not dict:
            return None
        if not (step.feature_names_out is None or _is_word(step.feature_names_out, "one-to-one")):
            return None
        if not all(type(key) is str and _is_number(each) for key, each in options.items()):
            return None
        if not options and (step.func is None or step.func is as_numbers or step.func is as_texts):
            made = _NUMBERS if step.func is as_numbers else _TEXTS
            return given if step.func is None else made
        low, high = (options.get(f"a_{end}", options.get(end)) for end in ("min", "max"))
        known = step.func is np.nan_to_num and set(options) <= {"nan"}
        if step.func is np.clip and len(options) == 2 and low is not None and high is not None:
            known = low <= high
        return given if known and given == _NUMBERS else None
    if type(step) not in (OneHotEncoder, OrdinalEncoder) or given != _TEXTS:
        return None
    lists = (list, tuple, np.ndarray)
    declared = type(step.categories) in lists and all(
        type(one) in lists and all(type(value) in (str, np.str_) for value in one)
        for one in step.categories
    )
    rare = step.min_frequency is not None or step.max_categories is not None
    if not declared or rare or not (step.dtype is float or step.dtype is np.float64):
        return None
    if type(step) is OrdinalEncoder:
        silent = _is_word(step.handle_unknown, "use_encoded_value")
        return _NUMBERS if silent and _is_number(step.unknown_value) else None
    silent = _is_word(step.handle_unknown, "ignore") and step.drop is None
    plain = step.sparse_output is False and _is_word(step.feature_name_combiner, "concat")
    return _NUMBERS if silent and plain else None


_STATELESS = (
    "Put it behind the release, inside PrivateClassifier or PrivateRegressor, or learn privately, "
    "as PrivateStandardScaler does. In front of a release may stand: FunctionTransformer with "
    "as_numbers or as_texts of skdp.preprocessing; behind as_numbers one with np.clip and two "
    "numbers, or with np.nan_to_num; behind as_texts OneHotEncoder and OrdinalEncoder with "
    "declared categories that encode what is unknown (handle_unknown='ignore', "
    "sparse_output=False; 'use_encoded_value')."
)

# --- what parameters may carry of rows that were read elsewhere, or do with those of the fit

_PLAIN = {type(None), bool, complex, float, int, str, bytes, range, *np.sctypeDict.values()}
_PLAIN -= {np.object_, np.void}
_PLAIN_MODULES = {"datetime", "decimal", "fractions", "uuid", "zoneinfo"}
# Functions and types that may be given by name.
_NAMED = (as_numbers, as_texts, np.clip, np.exp, np.log, np.log1p, np.nan_to_num, np.sqrt, *_PLAIN)
# Bytes of a text or a number: more could hold a table.
_LARGEST = 10_000


def _is_estimator_of_library(thing: Any, top: str) -> bool:
    """Whether this is another library's estimator; one that is frozen brings what it learned."""
    if top in ("", "skdp") or isinstance(thing, type | FrozenEstimator):
        return False
    return is_installed(type(thing).__module__) and hasattr(thing, "get_params")


def _strange(values: Iterable[Any], longest: int | None) -> str:
    """The first thing in parameters that is neither a plain value nor an unfitted estimator.

    Parameters
    ----------
    values : iterable
    longest : int or None
        The most values of one list; None for declarations, which hold no rows, but whose code is
        given true values.

    Returns
    -------
    str
        In words; "" if there is none.
    """
    left, count = list(values), 0
    # The objects themselves are kept, so that no identity is used again.
    seen: dict[int, object] = {}
    while left:
        one = left.pop()
        kind, top = type(one), library(one)
        held: Any = ()
        named = any(one is known for known in _NAMED)
        if kind in _PLAIN or top in _PLAIN_MODULES or named:
            if longest is not None and sys.getsizeof(one) > _LARGEST:
                return f"a long {kind.__name__}"
            continue
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if kind in (list, tuple, set, frozenset, dict, np.ndarray):
            count += len(one) if kind is not np.ndarray else one.size
            flat = kind is not np.ndarray or (one.ndim == 1 and one.dtype.kind != "V")
            if longest is not None and not (flat and len(one) <= longest and count < 224 + longest):
                return f"a table, or a long {kind.__name__}"
            held = one.ravel().tolist() if kind is np.ndarray else one
            held = [*one, *one.values()] if kind is dict else held
        elif replaced(one):
            return f"a {replaced(one)} of its own, on the instance"
        elif _is_estimator_of_library(one, top):
            # A fit makes it anew from its parameters, but for these.
            params = one.get_params(deep=False)
            again = [params.get(name, False) for name in ("prefit", "warm_start")]
            if again != [False, False] or _is_word(params.get("cv"), "prefit"):
                return "what it learned before (warm_start= or prefit)"
            held = params.values()
        elif kind is make_column_selector or (top == "sklearn" and hasattr(one, "get_n_splits")):
            held = vars(one).values()
        elif top == "scipy" and hasattr(one, "rvs") and hasattr(one, "kwds"):
            held = (one.args, one.kwds)
        elif longest is None and top in ("skdp", "pandas"):
            held = vars(one).values() if isinstance(one, Attribute | Domain) else ()
        else:
            name = getattr(one, "__name__", kind.__name__)
            return f"a {name}, which may hold or do anything"
        left += held
    return ""


# --- verdicts on single estimators


def _unknown(estimator: Any, name: str, rows: Rows, why: str, remedy: str) -> _Result:
    """The step of something that may do anything, and what the next step is given."""
    step = step_of(estimator, name, rows, UNKNOWN).judged(UNKNOWN, f"{why}.", remedy)
    if _strange([estimator], 1_000):
        # It may hold private estimators.
        step = replace(step, epsilon=None)
    return [step], replace(rows, columns="")


def _of_declared(params: Mapping[str, Any]) -> str:
    """What is strange about parameters whose code is given true values, in words; or ""."""
    # A ledger reads no rows. What is trained, and how it is searched, is looked at elsewhere.
    others = ("estimator", "ledger", "param_grid", "prior", "random_state", "synthesizer")
    return _strange([value for key, value in params.items() if key not in others], None)


def _of_private(estimator: PrivateEstimator, name: str, rows: Rows) -> Step:
    """The step of an estimator that charges and releases with noise."""
    step = step_of(estimator, name, rows, PRIVATE)
    try:
        epsilon = as_epsilon(estimator.epsilon)
    except (TypeError, ValueError) as error:
        why = f"will refuse its fit: {error}"
        return step.judged(UNKNOWN, why, "Give a positive epsilon.", epsilon=None)
    why = f"releases what it learns with noise, at epsilon {float(epsilon):g}."
    step = replace(step, why=why, epsilon=epsilon, estimator=estimator)
    params = estimator.get_params(deep=False)
    prior = params.get("prior")
    if not (prior is None or type(prior) is PublicTable):
        made = type(prior) is Synopsis and prior.privacy_loss is not None
        if not made or prior.seeded:
            why = "starts from rows, or from a release without a guarantee, in prior=."
            remedy = "A PublicTable, or a release without a seed."
            return step.judged(LEAKS, why, remedy)
    if rows.released:
        free = params.get("ledger") is None
        why = f"reads a release, which is free{'.' if free else '; its ledger is charged.'}"
        return step.judged(RELEASE, why, epsilon=Fraction(0) if free else epsilon)
    # SampleAggregate fits `estimator` to blocks: noise hides what one block changes, nothing else.
    strange = _of_declared(params) or _strange([params.get("estimator")], rows.longest)
    if strange:
        why = f"has among its parameters {strange}."
        return step.judged(UNKNOWN, why, "Plain values, and classes of skdp.")
    loss, given = getattr(estimator, "privacy_loss_", None), estimator.random_state
    # Any source but the system's: a source that a user wrote may repeat its words.
    has_seed = not (given is None or type(given) is NoiseSource)
    return step.seeded_by() if has_seed or (loss is not None and loss.seeded) else step


# --- the walk over the steps, in the order in which a fit runs them


def walk(estimator: Any, name: str = "", rows: Rows | None = None) -> list[Step]:
    """All steps of ``estimator``, in the order in which a ``fit`` runs them.

    Parameters
    ----------
    estimator : estimator
        Before or after its fit.
    name : str, default=""
        Path of ``estimator`` itself.
    rows : Rows, optional
        What it is given; by default people's rows.
    """
    return _visit(estimator, name, rows or Rows())[0]


def _visit(estimator: Any, name: str, rows: Rows) -> _Result:
    """All steps of ``estimator``, and what the next step is given."""
    kind, ours = type(estimator), library(estimator) == "skdp" and not replaced(estimator)
    if estimator is None or _is_word(estimator, "passthrough", "drop"):
        word = estimator or "passthrough"
        return [Step(name, word, "nothing", PUBLIC, "hands on the columns or drops them.")], rows
    if ours and isinstance(estimator, PrivateEstimator):
        # A selector hands on columns as they came; what others compute has types of its own.
        columns = "" if hasattr(estimator, "get_support") else _FIXED
        return [_of_private(estimator, name, rows)], replace(rows, columns=columns)
    if ours and hasattr(estimator, "_privacy_steps"):
        return _of_meta(estimator, name, rows), replace(rows, columns="")
    if kind is FrozenEstimator and len(vars(estimator)) == 1 and _is_paid(estimator.estimator):
        why = f"is not fitted again; {type(estimator.estimator).__name__} was paid for."
        step = Step(name, kind.__name__, "nothing", PRIVATE, why, estimator=estimator.estimator)
        return [step], replace(rows, columns="")
    if kind in (Pipeline, ColumnTransformer, FeatureUnion):
        return _composite(estimator, name, rows)
    if rows.released:
        strange = _strange([estimator], rows.longest)
        if strange:
            why, remedy = f"reads a release, but may carry {strange}", "Plain parameters."
            return _unknown(estimator, name, rows, why, remedy)
        return [step_of(estimator, name, rows, RELEASE, "learns from a release, for free.")], rows
    after = None if replaced(estimator) else _columns_after(estimator, rows.columns)
    if after is None:
        why = "reads true rows, and is not known to be private"
        return _unknown(estimator, name, rows, why, _STATELESS)
    why = "transforms each row independently and learns nothing from them."
    return [Step(name, kind.__name__, "nothing", PUBLIC, why)], replace(rows, columns=after)


def _of_meta(estimator: Any, name: str, rows: Rows) -> list[Step]:
    """A meta-estimator of skdp, which knows its own steps."""
    steps: list[Step] = estimator._privacy_steps(name, rows)
    own = estimator.get_params(deep=False)
    grid = own.get("param_grid", {})
    grids = grid if type(grid) in (list, tuple) else [grid]
    lists = (list, tuple, range, np.ndarray)
    strange = _of_declared(own)
    if not all(type(g) is dict and all(type(v) in lists for v in g.values()) for g in grids):
        strange = "candidates that cannot be listed"
    if strange:
        why, remedy = f"has among its parameters {strange}", "Plain values, and classes of skdp."
        steps += _unknown(estimator, name, rows, why, remedy)[0]
    return steps


def _is_paid(fitted: Any) -> bool:
    """Whether a release, or a model trained on one, is fitted, and all it learned is private."""
    held, trained = getattr(fitted, "__dict__", {}), hasattr(fitted, "_train_on")
    if "privacy_loss_" not in held or not (trained or isinstance(fitted, PrivateEstimator)):
        return False
    steps = walk(fitted)
    private = library(fitted) == "skdp" and any(step.verdict == PRIVATE for step in steps)
    # Parameters may have been changed since: what it made and trained is looked at, too.
    if "estimator_" in held:
        steps += walk(held["estimator_"], rows=released_by(held.get("synthesizer_")))
    if "synthesizer_" in held:
        private = private and _is_paid(held["synthesizer_"])
    return private and all(step.sound for step in steps)


def _composite(estimator: Any, name: str, rows: Rows) -> _Result:
    """Steps one after the other, or side by side."""
    if replaced(estimator):
        why, remedy = f"has a {replaced(estimator)} of its own", "Leave its methods as they are."
        return _unknown(estimator, name, rows, why, remedy)
    own = estimator.get_params(deep=False)
    where = {ColumnTransformer: "transformers", FeatureUnion: "transformer_list"}
    parts = own.pop(where.get(type(estimator), "steps"))
    rest = own.pop("remainder", "drop")
    size = 3 if type(estimator) is ColumnTransformer else 2
    plain = type(parts) in (list, tuple) and all(
        type(part) in (list, tuple) and len(part) == size for part in parts
    )
    columns = [part[2] for part in parts if size == 3] if plain else []
    strange = _strange([*own.values(), *columns], rows.longest) if plain else "odd lists of steps"
    if not rows.released and not strange:
        kept = [own.get("memory"), own.get("transformer_weights"), *filter(callable, columns)]
        if any(each is not None for each in kept):
            strange = "memory=, transformer_weights= or a function that chooses columns"
    if strange:
        why, remedy = f"has {strange}", "Plain lists and names instead."
        return _unknown(estimator, name, rows, why, remedy)
    if type(estimator) in where:
        several = [part[:2] for part in parts]
        several += [] if _is_word(rest, "drop") else [("remainder", rest)]
        return _side_by_side(estimator, several, name, rows)
    steps: list[Step] = []
    for part, inner in parts:
        more, rows = _visit(inner, child(name, part), rows)
        steps += more
    return steps, rows


def _side_by_side(estimator: Any, parts: list[Any], name: str, rows: Rows) -> _Result:
    # All parts read the same people, whichever columns: what they spend adds up.
    results = [_visit(inner, child(name, part), rows) for part, inner in parts]
    steps = [step for found, _ in results for step in found]
    kept = zip(parts, results, strict=True)
    kinds = {behind.columns for (_, inner), (_, behind) in kept if not _is_word(inner, "drop")}
    columns = "" if "" in kinds or not kinds else kinds.pop() if len(kinds) == 1 else _FIXED
    behind = replace(rows, columns=columns)
    if rows.released or columns or not all(step.sound for step in steps):
        return steps, behind
    # Joined, columns get a common type: one text turns all numbers into objects, and one missing
    # integer turns others into floats, which are not exact.
    why = "joins columns that are as they came, so that one value may decide the type of all"
    more, behind = _unknown(estimator, name, behind, why, _STATELESS)
    return [*steps, *more], behind


def walk_all(
    estimators: list[Any], name: str, rows: Rows | None = None, *, shared: bool = False
) -> list[Step]:
    """Steps of estimators that are all fitted to the same rows, as in a search.

    Parameters
    ----------
    estimators : list of estimator
    name : str
        Path of each of them.
    rows : Rows, optional
    shared : bool, default=False
        Whether all use the release of the first.

    Returns
    -------
    list of Step
        Each name and kind once, with the sum of its prices and the worst of its verdicts.
    """
    found: dict[tuple[str, str], list[Step]] = {}
    for place, estimator in enumerate(estimators):
        for step in walk(estimator, name, rows):
            if shared and place:
                step = replace(step, epsilon=Fraction(0))
            found.setdefault((step.name, step.kind), []).append(step)
    return [
        replace(
            next((step for step in same if not step.sound), same[0]),
            epsilon=total_price(step.epsilon for step in same),
        )
        for same in found.values()
    ]
