"""The cases of an audit of the library, registered by name in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..release import BoxModel, Synopsis

__all__ = ["AUDITS", "AuditCase", "audited", "synopsis_features"]


@dataclass(frozen=True)
class AuditCase:
    """What to audit, and how thoroughly.

    Attributes
    ----------
    mechanism : callable or estimator
    dataset, neighbour : object
    epsilon : number, optional
        The claim; None takes the estimator's.
    n_trials, quick_trials : int
        Trials on each data set in a full and in a quick run.
    options : mapping
        Further arguments of `audit`.
    replays : bool
        Whether it can be replayed; False for bare noise, which a replay cannot follow.
    draws : bool
        Whether it draws noise; False for steps that must be silent: they are replayed, once.
    """

    mechanism: Any
    dataset: Any
    neighbour: Any
    epsilon: Any = None
    n_trials: int = 5_000
    quick_trials: int = 600
    options: Mapping[str, Any] = field(default_factory=dict)
    replays: bool = True
    draws: bool = True


#: Name of a mechanism or estimator, perhaps followed by a comma and a variant, to a function that
#: makes its case when it is run.
AUDITS: dict[str, Callable[[], AuditCase]] = {}


def audited(name: str) -> Callable[[Callable[[], AuditCase]], Callable[[], AuditCase]]:
    """Register a function that makes an `AuditCase` in `AUDITS`.

    Parameters
    ----------
    name : str
        The public name of the mechanism or class, optionally followed by a comma and a variant.
    """

    def enter(make: Callable[[], AuditCase]) -> Callable[[], AuditCase]:
        if name in AUDITS:
            raise ValueError(f"There is an audit of {name!r} already.")
        AUDITS[name] = make
        return make

    return enter


def synopsis_features(estimator: Any) -> Any:
    """Everything that a released synopsis of a tiny domain would keep in a file.

    For blocks, their geometry as text and the count of each cell, so that releases with different
    blocks can be compared; for other models, all facts and numbers.

    Parameters
    ----------
    estimator : fitted estimator with a ``synopsis_``
    """
    synopsis = estimator.synopsis_
    facts, arrays = synopsis.model.to_arrays()
    if not {"lower", "upper"} <= arrays.keys():
        return facts, arrays
    numbers = {"counts", "measured"}
    others = [
        arrays[name].tolist() for name in sorted(arrays.keys() - numbers - {"lower", "upper"})
    ]
    text = f"{arrays['lower'].tolist()} to {arrays['upper'].tolist()} {others}"
    views = [
        Synopsis(
            synopsis.domain, BoxModel(synopsis.model.boxes, arrays[name], synopsis.domain.shape)
        )
        .view(list(synopsis.domain.names))
        .ravel()
        for name in sorted(numbers & arrays.keys())
    ]
    return text.replace(" ", ""), np.concatenate(views)
