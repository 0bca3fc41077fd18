"""Synthesizers by name, with parameters, as the command lines of benchmarks take them."""

from __future__ import annotations

import ast
import warnings
from typing import Any

import skdp
from benchmarks._fidelity_tables import Table

__all__ = ["parsed", "release"]


def release(name: str, table: Table, epsilon: float, seed: int, **given: Any) -> Any:
    """A fitted synthesizer of the library.

    Parameters
    ----------
    name : str
        The name of its class, with parameters if they are not the defaults, such as
        "MarginalSynthesizer(max_order=2)".
    table : Table
    epsilon : float
    seed : int
        Makes the benchmark repeatable.
    **given
        More parameters, such as the label.
    """
    title, parameters = parsed(name)
    made = getattr(skdp, title, None)
    if not title.endswith("Synthesizer") or made is None:
        here = sorted(each for each in skdp.__all__ if each.endswith("Synthesizer"))
        raise SystemExit(f"skdp has no synthesizer {title!r}. It has {', '.join(here)}.")
    with warnings.catch_warnings():
        # Seeds, columns whose codes are grouped, and totals near zero are expected here.
        warnings.simplefilter("ignore", UserWarning)
        synthesizer = made(
            epsilon=epsilon, domain=table.domain, random_state=seed, **{**given, **parameters}
        )
        return synthesizer.fit(table.rows)


def parsed(name: str) -> tuple[str, dict[str, Any]]:
    """The class and the keywords of "Class" or "Class(keyword=value, ...)"."""
    try:
        call = ast.parse(name, mode="eval").body
        if not isinstance(call, ast.Call):
            return name, {}
        keywords = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        return ast.unparse(call.func), keywords
    except (SyntaxError, ValueError):
        raise SystemExit(
            f"The method {name!r} is not understood. Write the name of a class, with keywords in "
            "parentheses if it needs any."
        ) from None
