"""Verdicts on single estimators: those of skdp, and unknown ones."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from .._base import PrivateEstimator
from .._random import NoiseSource
from .._validation import as_epsilon
from ..domain import Attribute, Categorical, Domain, PublicTable
from ..release import Synopsis
from .carried import carries
from .origin import is_held, is_library, kind_of
from .steps import LEAKS, PRIVATE, RELEASE, UNKNOWN, Lengths, Range, Rows, Step

# Types that the module does not hold which they name.
_BUILTINS = {
    value
    for value in vars(types).values()
    if isinstance(value, type) and value.__module__ == "builtins"
}


def step_of(
    estimator: Any, name: str, rows: Rows, verdict: str, why: str, remedy: str = ""
) -> Step:
    """A step that is fitted to everything in ``rows``."""
    return Step(name, kind_of(estimator), rows.read, verdict, why, remedy)


def unknown(estimator: Any, name: str, rows: Rows, why: str) -> tuple[list[Step], Rows]:
    """The step of something that may do anything, and what the next step is given."""
    remedy = "Train it on a release, or make sure that it learns nothing."
    step = step_of(estimator, name, rows, UNKNOWN, why + ".", remedy)
    if isinstance(estimator, PrivateEstimator):
        step = replace(step, epsilon=None)
    doubtful = rows.doubtful or name or kind_of(estimator)
    return [step], replace(rows, doubtful=doubtful, range=Range())


def of_private(estimator: PrivateEstimator, name: str, rows: Rows) -> Step:
    """The step of an estimator that charges and releases with noise."""
    try:
        epsilon = as_epsilon(estimator.epsilon)
    except (TypeError, ValueError) as error:
        text, remedy = f"Its fit will refuse: {error}", "Give a positive epsilon."
        return Step(name, kind_of(estimator), "nothing", UNKNOWN, text, remedy, None)
    why = f"releases what it learns with noise, at epsilon {float(epsilon):g}."
    step = step_of(estimator, name, rows, PRIVATE, why)
    step = replace(step, epsilon=epsilon, estimator=estimator)
    declared = [*estimator.get_params(deep=False).values(), getattr(estimator, "domain_", None)]
    if any(is_inferred(value) for value in declared):
        # This includes a step that reads a release: what was inferred is exact.
        return of_records(step)
    leak, remedy = _of_prior(getattr(estimator, "prior", None))
    if leak:
        return step.judged(LEAKS, f"{leak}.", remedy)
    if rows.released:
        return _on_release(step)
    strange = of_strangers(estimator.get_params(deep=False))
    if strange:
        return step.judged(UNKNOWN, f"{strange}.", "Classes of skdp.")
    # SampleAggregate fits it to blocks of rows; noise hides what one block changes, nothing else.
    carried = carries(getattr(estimator, "estimator", None), lambda fitted: False)
    if carried:
        why = f"fits an estimator that carries {carried}."
        return step.judged(UNKNOWN, why, "Give an estimator without it.")
    if _has_seed(estimator):
        return seeded(step)
    return _on_doubtful_rows(step, rows)


def _of_prior(prior: Any) -> tuple[str, str]:
    """In words: what is not protected in rows that a release starts from, and the remedy."""
    if prior is None or type(prior) is PublicTable:
        return "", ""
    if type(prior) is not Synopsis:
        return (
            f"has a {type(prior).__name__} as prior=, whose rows are not protected",
            "If they are public, prior=PublicTable(frame); else the synopsis_ of their release.",
        )
    if prior.privacy_loss is None or prior.seeded or prior.domain.inferred:
        return (
            "starts from a release without a guarantee: its loss is unknown, its noise came from a "
            "seed, or its domain was inferred",
            "Give a release made with random_state=None and a declared domain.",
        )
    return "", ""


def released_by(estimator: Any, classes: Any = None) -> Rows:
    """What a step is given that reads the synthetic rows of an estimator, and declared labels."""
    release = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    declared = getattr(release, "domain_", getattr(release, "domain", None))
    if isinstance(declared, Domain):
        declared = declared.attributes
    several = declared.values() if isinstance(declared, Mapping) else declared
    attributes = [*several] if isinstance(several, Iterable) else [several]
    sizes = [each.n_values for each in [*attributes, classes] if isinstance(each, Categorical)]
    sizes += [len(classes)] if isinstance(classes, Sized) else [0]
    usual, columns = Lengths(), len(attributes)
    longest = max(usual.one, columns, *sizes)
    return Rows(released=True, lengths=Lengths(longest, usual.all + 2 * columns + sum(sizes)))


def is_inferred(value: Any) -> bool:
    """Whether a declaration was read from records: a domain, an attribute or several of them."""
    if isinstance(value, Domain | Attribute):
        return value.inferred
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, list | tuple) and any(
        isinstance(one, Attribute) and one.inferred for one in value
    )


def of_strangers(params: Mapping[str, Any]) -> str:
    """In words: a declaration whose code is given true values, and is the user's; or ""."""
    for key, value in params.items():
        # A ledger reads no rows. What is trained, and how it is searched, is looked at elsewhere.
        if key not in ("estimator", "ledger", "param_grid", "prior", "random_state", "synthesizer"):
            for kind in _kinds(value, {}):
                ours = is_library(kind.__module__) and is_held(kind)
                if not (ours or kind in _BUILTINS):
                    return (
                        f"has a {kind.__name__} in {key}=, whose code may do anything with values"
                    )
    return ""


def _kinds(value: Any, seen: dict[int, object]) -> Iterator[type]:
    """Classes of a declaration and of what it holds."""
    yield type(value)
    if id(value) in seen:
        return
    seen[id(value)] = value
    held: Iterable[Any] = ()
    if type(value) in (list, tuple, set, frozenset):
        held = value
    elif type(value) is dict:
        held = [*value, *value.values()]
    elif type(value) is np.ndarray and value.dtype == object:
        held = value.tolist()
    elif isinstance(value, Attribute | Domain):
        held = vars(value).values()
    for one in held:
        yield from _kinds(one, seen)


def of_records(step: Step) -> Step:
    """The step, if its domain was inferred."""
    why = "its domain was inferred from the records, exactly and for free."
    return step.judged(LEAKS, why, "Declare the domain from public knowledge.")


def seeded(step: Step, by: str = "") -> Step:
    """The step, if a seed draws its noise; ``by`` is the class that sets the seed."""
    why, remedy = (
        "its noise comes from a seed",
        "random_state=None, the operating system's entropy.",
    )
    if by:
        why += f" that {by} sets, whatever random_state says"
        remedy = "Turn it inside out: the ensemble inside, on a release."
    why += ": anyone who knows or guesses it can subtract the noise."
    return step.judged(LEAKS, why, remedy, seeded=True)


def _has_seed(estimator: PrivateEstimator) -> bool:
    loss, given = getattr(estimator, "privacy_loss_", None), estimator.random_state
    # Any source but the system's: a source that a user wrote may repeat its words.
    return not (given is None or type(given) is NoiseSource) or (loss is not None and loss.seeded)


def _on_release(step: Step) -> Step:
    if getattr(step.estimator, "ledger", None) is None:
        return step.judged(RELEASE, "reads a release, which is free.", epsilon=Fraction(0))
    why = "reads a release, which is free; its ledger is charged all the same."
    return step.judged(RELEASE, why, "ledger=None.")


def _on_doubtful_rows(step: Step, rows: Rows) -> Step:
    """The step as it is, unless an earlier step lets one record change several rows."""
    if rows.mixed_by is not None:
        return step.judged(
            LEAKS,
            f"gets its rows from {rows.mixed_by!r}, which was fitted to all of them: one record "
            "may change every row, and the noise only hides a change of one.",
            f"Remove {rows.mixed_by!r}, declare what it learns, or learn that privately.",
        )
    if rows.doubtful is not None:
        return step.judged(
            UNKNOWN,
            f"gets its rows from {rows.doubtful!r}: the noise is enough only if that treats each "
            "row independently.",
            f"If you are sure that it does, apply {rows.doubtful!r} before the pipeline.",
        )
    return step
