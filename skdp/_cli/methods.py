"""Names of the synthesizers on the command line."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..domain.data import read_json
from ..exceptions import DomainError
from ..synthesis import (
    GridSynthesizer,
    HDPViewSynthesizer,
    KDTreeSynthesizer,
    MarginalSynthesizer,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
)

# --- ``--workload``: what a release of marginals should serve: a word, sets of columns, or a file

# A set of columns as it was given, and its weight.
Given = tuple[tuple[str, ...], Any]

_WORDS = ("all", "ranges", "cells")
_KEYS = {"columns", "weight"}


def read_workload(text: str) -> str | dict[tuple[str, ...], Any]:
    """The parameter ``workload`` of `MarginalSynthesizer`, which checks names and weights.

    Parameters
    ----------
    text : str
        "all", "ranges" or "cells"; sets of columns such as ``"age,sex=0.5;age,pay"``; or the name
        of a JSON file, a list of objects such as ``{"columns": ["age", "sex"], "weight":
        0.5}``. A set without a weight has the weight 1.

    Raises
    ------
    DomainError
        If a file holds anything else. It may be one of records by mistake, so nothing of it is
        quoted.
    OSError
        If a file cannot be opened.
    ValueError
        If a weight is no number, or a set is there twice.
    """
    if text in _WORDS:
        return text
    if workload_file(text) is not None:
        return _unique(_of_file(text))
    if not any(mark in text for mark in ",;="):
        raise ValueError(
            "--workload must be 'all', 'ranges', 'cells', sets of columns such as "
            f"'age,sex=0.5;age,pay', or a .json file, got {text!r}."
        )
    return _unique(_of_line(part) for part in text.split(";") if part.strip())


def workload_file(text: str | None) -> str | None:
    """The file that the option names; None if it names none."""
    return text if text is not None and Path(text).suffix.lower() == ".json" else None


def _of_line(text: str) -> Given:
    names, sign, weight = text.rpartition("=")
    if not sign:
        return _split(text), 1
    try:
        return _split(names), float(weight)
    except ValueError:
        raise ValueError(
            f"--workload has the weight {weight!r} in {text!r}, which is no number. A column whose "
            "name contains ',', ';' or '=' can be named in a .json file."
        ) from None


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",")) if names.strip() else ()


def _of_file(path: str) -> list[Given]:
    form = f'{path} is no workload: a list of objects such as {{"columns": ["age"], "weight": 0.5}}'
    try:
        source = read_json(path)
    except DomainError as error:
        raise DomainError(f"{form}. {error}") from None
    if not isinstance(source, list) or not all(map(_is_set, source)):
        raise DomainError(f'{form}, where "weight" may be left out.')
    return [(tuple(each["columns"]), each.get("weight", 1)) for each in source]


def _is_set(source: Any) -> bool:
    return (
        isinstance(source, Mapping)
        and "columns" in source
        and set(source) <= _KEYS
        and isinstance(source["columns"], list)
        and all(isinstance(name, str | int | float | bool) for name in source["columns"])
    )


def _unique(given: Iterable[Given]) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for columns, weight in given:
        if columns in found:
            raise ValueError(f"--workload has the set of columns {columns} twice.")
        found[columns] = weight
    return found


# --- names and estimators

# The description of a release begins with the name of its method.
METHODS: dict[str, type[Any]] = {
    "grid": GridSynthesizer,
    "hdpview": HDPViewSynthesizer,
    "kdtree": KDTreeSynthesizer,
    "marginals": MarginalSynthesizer,
    "privbayes": PrivBayesSynthesizer,
    "privtree": PrivTreeSynthesizer,
}


def class_of(mechanism: str) -> str | None:
    """Name of the synthesizer that made a release; None if it is not known."""
    method = METHODS.get(re.split("[,;]", mechanism)[0].replace("-", "").lower())
    return None if method is None else method.__name__


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
