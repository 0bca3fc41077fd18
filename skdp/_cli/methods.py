"""Names of the synthesizers on the command line."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from ..synthesis import (
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
)
from .workloads import read_workload

__all__ = ["METHODS", "class_of", "estimator_of", "number"]

METHODS: dict[str, Callable[..., Any]] = {
    "grid": GridSynthesizer,
    "hdpview": HDPViewSynthesizer,
    "kdtree": KDTreeSynthesizer,
    "marginals": MarginalSynthesizer,
    "privbayes": PrivBayesSynthesizer,
    "privtree": PrivTreeSynthesizer,
}


# How the description of a release by each method begins.
_MADE_BY = {
    "grid": "GridSynthesizer",
    "HDPView": "HDPViewSynthesizer",
    "kd-tree": "KDTreeSynthesizer",
    "marginals": "MarginalSynthesizer",
    "PrivBayes": "PrivBayesSynthesizer",
    "PrivTree": "PrivTreeSynthesizer",
}


def class_of(mechanism: str) -> str | None:
    """Name of the synthesizer that made a release; None if it is not known."""
    return _MADE_BY.get(mechanism.split(",")[0].split(";")[0])


def number(text: str | None, name: str) -> float | None:
    """The number of an option, None where it was not given.

    Raises
    ------
    ValueError
        If it is not a number.
    """
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}.") from None


def estimator_of(options: Namespace, domain: Any) -> Any:
    """The synthesizer that the options describe, without a ledger.

    Raises
    ------
    ValueError
        If an option is missing, is no number, or belongs to another method.
    """
    if (options.unit is None) != (options.max_contributions is None):
        given, lacking = "--unit COLUMN", "--max-contributions K"
        if options.unit is None:
            given, lacking = lacking, given
        raise ValueError(
            f"{given} was given without {lacking}. They belong together: the column that "
            "identifies the person a row belongs to, and how many rows of each person to keep."
        )
    more = _of_marginals(options)
    return METHODS[options.method](
        number(options.epsilon, "--epsilon"),
        domain=domain,
        target=options.target,
        unit=options.unit,
        max_contributions=options.max_contributions,
        **more,
    )


def _of_marginals(options: Namespace) -> dict[str, Any]:
    """The options that only marginals have, where they were given."""
    given = {"max_order": options.max_order, "workload": options.workload}
    found = {name: value for name, value in given.items() if value is not None}
    if found and options.method != "marginals":
        names = " and ".join(f"--{name.replace('_', '-')}" for name in found)
        belong = "belongs" if len(found) == 1 else "belong"
        raise ValueError(f"{names} {belong} to --method marginals, not to {options.method}.")
    if "workload" in found:
        found["workload"] = read_workload(found["workload"])
    return found
